//! Each tool through the kernel, with the log in memory and durable on disk, beside what somebody
//! would write with the plain library. What writes a file syncs it and its folder, on both sides.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use harness::{Figure, time};
use icalendar::{CalendarComponent, Component as _, DatePerhapsTime, parser};
use syscap::audit::MemoryStore;
use syscap::format::{Durability, Scope};
use syscap::policy::Policy;
use syscap::prelude::*;

const ROUNDS: usize = 7;
const TEXT: usize = 4_096;
/// Events of the calendar, one an hour; numbers of a vector; files that are searched.
const EVENTS: usize = 1_000;
const NUMBERS: usize = 384;
const FILES: usize = 50;

const POLICY: &[u8] =
    br#"{"v": 1, "constraints": [{"id": "all", "effect": "allow", "subject": null,
    "when": {"op": "all", "args": []}, "on_fail": "block", "reason": ""}]}"#;

const TOOLS: [&str; 13] = [
    "fs.read",
    "fs.stat",
    "fs.list",
    "fs.search",
    "fs.write",
    "fs.edit",
    "memory.read",
    "memory.write",
    "calendar.find",
    "email.draft",
    "org.send_message",
    "vecdb.upsert",
    "shell",
];

/// What a call is, and what is done without the kernel.
struct Row {
    tool: &'static str,
    what: &'static str,
    each: u32,
    args: String,
    plain: Box<dyn FnMut()>,
}

struct World {
    rt: Runtime,
    home: PathBuf,
    _dir: tempfile::TempDir,
}

fn world(options: Options) -> World {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let policy = Policy::from_json(POLICY).unwrap();
    let rt = options.policy(policy).create(&home).unwrap();
    World { rt, home, _dir: dir }
}

fn session(world: &World) -> Session {
    let budget = Budget::standard();
    let budget = Dimension::ALL
        .into_iter()
        .filter(|dimension| *dimension != Dimension::Concurrent)
        .fold(budget, |budget, dimension| budget.with(dimension, 1 << 50));
    let names = |names: &[&str]| Scope::names(names.iter().copied()).unwrap();
    let grant = Grant::to("a")
        .tools(TOOLS)
        .workspace()
        .scope("recipient", names(&["ann@example.com"]))
        .scope("outbox", names(&["b"]))
        .scope("collection", names(&["docs"]))
        .scope("program", names(&["true"]))
        .budget(budget);
    let session = world.rt.session("a", world.rt.issue(grant).unwrap()).unwrap();
    laid_out(&world.home.join("files/agents/a/workspace"));
    let put = session.call("memory.write", args! { "key": "kept", "value": text() }).unwrap();
    assert_eq!(put.reason(), None, "{}", put.to_json());
    // An agent has an inbox once it has a token.
    world.rt.issue(Grant::to("b").tools(["org.list_messages"])).unwrap();
    session
}

fn text() -> String {
    "x".repeat(TEXT)
}

/// The files of a workspace, and the same beside it for the plain library.
fn laid_out(folder: &Path) {
    fs::create_dir_all(folder.join("many")).unwrap();
    fs::write(folder.join("four.txt"), text()).unwrap();
    for n in 0..FILES {
        let line = format!("line {n}\n");
        fs::write(folder.join(format!("many/{n}.txt")), line.repeat(400)).unwrap();
    }
    let mut calendar = String::from("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:-//bench//\r\n");
    for n in 0..EVENTS {
        let (day, hour) = (n / 24, n % 24);
        let (month, day) = (day / 28 + 1, day % 28 + 1);
        calendar.push_str(&format!(
            "BEGIN:VEVENT\r\nUID:{n}\r\nDTSTAMP:20260101T000000Z\r\nSUMMARY:event {n}\r\n\
             DTSTART:2026{month:02}{day:02}T{hour:02}0000Z\r\nDURATION:PT1H\r\nEND:VEVENT\r\n"
        ));
    }
    calendar.push_str("END:VCALENDAR\r\n");
    fs::write(folder.join("calendar.ics"), calendar).unwrap();
}

/// A file that is there whole after a power cut, or not at all.
fn kept(folder: &Path, name: &str, bytes: &[u8]) {
    let beside = folder.join("beside");
    let mut file = File::create(&beside).unwrap();
    file.write_all(bytes).unwrap();
    file.sync_all().unwrap();
    fs::rename(&beside, folder.join(name)).unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

/// Events of the second of January, as the crate `icalendar` reads them.
fn found(path: &Path) -> usize {
    let text = fs::read_to_string(path).unwrap();
    let calendar = parser::read_calendar(&text).unwrap();
    let calendar = icalendar::Calendar::from(calendar);
    let day = |event: &icalendar::Event| match event.get_start() {
        Some(DatePerhapsTime::DateTime(icalendar::CalendarDateTime::Utc(at))) => {
            at.format("%Y%m%d").to_string() == "20260102"
        }
        _ => false,
    };
    let events = calendar.components.iter().filter_map(CalendarComponent::as_event);
    events.filter(|event| day(event)).count()
}

/// The message as a library writes it, in a Maildir.
fn drafted(folder: &Path, n: u32) {
    let message = mail_builder::MessageBuilder::new()
        .from("a@example.com")
        .to("ann@example.com")
        .subject("Minutes")
        .text_body(text());
    kept(folder, &format!("{n}:2,D"), &message.write_to_vec().unwrap());
}

/// The paths in a call are those of the workspace, which has the same files as the folder.
fn row(
    tool: &'static str,
    what: &'static str,
    (each, args): (u32, &str),
    plain: impl FnMut() + 'static,
) -> Row {
    Row { tool, what, each, args: String::from(args), plain: Box::new(plain) }
}

fn readers(folder: &Path) -> Vec<Row> {
    let path = |name: &str| folder.join(name);
    let (read, looked, memory) = (path("four.txt"), path("four.txt"), path("four.txt"));
    let (listed, searched, ics) = (path("many"), path("many"), path("calendar.ics"));
    let search = r#"{"path":"many","pattern":"line 49"}"#;
    let find = r#"{"path":"calendar.ics","from":"2026-01-02","to":"2026-01-03"}"#;
    vec![
        row("fs.read", "std, 4 KiB", (500, r#"{"path":"four.txt"}"#), move || {
            assert_eq!(fs::read(&read).unwrap().len(), TEXT);
        }),
        row("fs.stat", "std", (500, r#"{"path":"four.txt"}"#), move || {
            assert!(fs::metadata(&looked).unwrap().is_file());
        }),
        row("fs.list", "std, 50 names and lengths", (100, r#"{"path":"many"}"#), move || {
            let entries = fs::read_dir(&listed).unwrap();
            let lengths = entries.map(|one| one.unwrap().metadata().unwrap().len());
            assert!(lengths.sum::<u64>() > 0);
        }),
        row("fs.search", "std, 50 files of 3 KiB", (20, search), move || {
            let entries = fs::read_dir(&searched).unwrap();
            let texts = entries.map(|one| fs::read_to_string(one.unwrap().path()).unwrap());
            assert_eq!(texts.filter(|text| text.contains("line 49")).count(), 1);
        }),
        row("memory.read", "std, 4 KiB", (200, r#"{"key":"kept"}"#), move || {
            assert_eq!(fs::read_to_string(&memory).unwrap().len(), TEXT);
        }),
        row("calendar.find", "icalendar, 1,000 events", (5, find), move || {
            assert_eq!(found(&ics), 24);
        }),
    ]
}

fn writers(folder: &Path) -> Vec<Row> {
    let [file, edit, memory, mail, inbox, store, here] = [(); 7].map(|()| folder.to_path_buf());
    let vector: Vec<String> = (0..NUMBERS).map(|n| (n % 9).to_string()).collect();
    let upsert = format!(r#"{{"items":[{{"id":"one","embedding":[{}]}}]}}"#, vector.join(","));
    let text = text();
    let write = format!(r#"{{"path":"new.txt","text":"{text}"}}"#);
    let value = format!(r#"{{"key":"new","value":"{text}"}}"#);
    let draft = format!(r#"{{"to":"ann@example.com","subject":"Minutes","body":"{text}"}}"#);
    let message = format!(r#"{{"recipients":["b"],"kind":"note","text":"{text}"}}"#);
    let synced = "std, 4 KiB, synced and renamed";
    let keep = |folder: PathBuf| {
        let bytes = text.clone().into_bytes();
        move || kept(&folder, "kept", &bytes)
    };
    let mut drafts = 0_u32;
    vec![
        row("fs.write", synced, (20, &write), keep(file)),
        row("fs.edit", synced, (20, ""), move || {
            let text = fs::read_to_string(edit.join("four.txt")).unwrap();
            kept(&edit, "edited.txt", text.replacen('x', "y", 1).as_bytes());
        }),
        row("memory.write", synced, (20, &value), keep(memory)),
        row("email.draft", "mail-builder, 4 KiB", (20, &draft), move || {
            drafts += 1;
            drafted(&mail, drafts);
        }),
        row("org.send_message", synced, (5, &message), keep(inbox)),
        row("vecdb.upsert", "std, 1.5 KiB, appended and synced", (20, &upsert), move || {
            let mut file = File::options().create(true).append(true).open(store.join("v")).unwrap();
            file.write_all(&[1; NUMBERS * 4]).unwrap();
            file.sync_all().unwrap();
        }),
        row("shell", "std::process, true", (5, r#"{"argv":["true"]}"#), move || {
            let output = Command::new("true").current_dir(&here).output().unwrap();
            assert!(output.status.success());
        }),
    ]
}

/// One call, which must have gone well. An edit goes there and back, so that each finds its text.
fn call(session: &Session, row: &Row, turn: u64) {
    let args = match (row.tool, turn % 2) {
        ("fs.edit", 0) => r#"{"path":"edit.txt","old":"one","new":"two"}"#,
        ("fs.edit", _) => r#"{"path":"edit.txt","old":"two","new":"one"}"#,
        _ => &row.args,
    };
    let result = session.request(row.tool).json(args, Escapes::Data).wait().unwrap();
    assert_eq!(result.reason(), None, "{}: {}", row.tool, result.to_json());
}

fn through(session: &Session, row: &Row) -> Figure {
    let mut turn = 0;
    time(ROUNDS, row.each, || {
        call(session, row, turn);
        turn += 1;
    })
}

fn main() {
    syscap::launch::entry();
    let dir = tempfile::tempdir().unwrap();
    laid_out(dir.path());
    let memory = world(Options::new().store(MemoryStore::new()).durability(Durability::Memory));
    let disk = world(Options::new());
    let [in_memory, durable] = [&memory, &disk].map(session);
    for world in [&memory, &disk] {
        let edited = format!("one\n{}", text());
        fs::write(world.home.join("files/agents/a/workspace/edit.txt"), edited).unwrap();
    }
    // What has just changed is looked at anew by each read.
    std::thread::sleep(std::time::Duration::from_secs(4));
    println!(
        "{:<18} {:<34} {:>10} {:>10} {:>6} {:>10} {:>10}",
        "microseconds", "plain", "", "in memory", "ratio", "durable", "beyond"
    );
    for mut row in readers(dir.path()).into_iter().chain(writers(dir.path())) {
        let plain = time(ROUNDS, row.each, &mut row.plain);
        let off = through(&in_memory, &row);
        let on = through(&durable, &row);
        let [plain, off, on] = [plain, off, on].map(|figure| figure.median / 1e3);
        println!(
            "{:<18} {:<34} {plain:>10.1} {off:>10.1} {:>6.2} {on:>10.1} {:>10.1}",
            row.tool,
            row.what,
            off / plain,
            on - plain
        );
    }
}
