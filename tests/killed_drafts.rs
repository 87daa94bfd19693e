//! kill -9 in the middle of `email.draft`, and a disk that is full: a draft is whole or not there.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use host_support::{ample, new_home, records, verdict};
use syscap::format::{Body, Recovered, Scope, TxOutcome};
use syscap::prelude::*;
use syscap::verify::Soundness;

const HOME: &str = "SYSCAP_DRAFTS_HOME";

fn grant() -> Grant {
    let budget = ample();
    let grant = Grant::to("a").tools(["email.draft"]).budget(budget);
    grant.scope("recipient", Scope::names(["ann@example.com"]).unwrap())
}

fn draft(session: &Session, body: &str) -> ToolResult {
    let args = args! { "to": "ann@example.com", "subject": "s", "body": body };
    session.call("email.draft", args).unwrap()
}

/// The end of each body, by which a whole one is known.
const END: &str = "the very last line";

fn body() -> String {
    format!("{}{END}\n", "a line of a letter, and another one\n".repeat(2_000))
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn drafts(base: &Path) -> PathBuf {
    base.join("agents/a/mail/Drafts")
}

/// Not a test: the process that is killed. It drafts, and says what was kept.
#[test]
fn child() {
    let Ok(home) = std::env::var(HOME) else { return };
    let rt = Runtime::open(&home).unwrap();
    let agent = rt.session("a", rt.issue(grant()).unwrap()).unwrap();
    loop {
        let kept = draft(&agent, &body());
        let file = kept.value().unwrap().get("file").and_then(|file| file.as_text()).unwrap();
        let mut out = std::io::stdout().lock();
        writeln!(out, "kept {file}").unwrap();
        out.flush().unwrap();
    }
}

/// Kills a child somewhere in the middle; what it said was kept.
fn kill_one(home: &Path, round: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "killed_drafts::child", "--nocapture"])
        .env(HOME, home)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let kept = |line: String| line.split_once("kept ").map(|(_, file)| file.to_owned());
    // Two were kept, and a little more time, which differs from round to round.
    let mut all: Vec<String> = lines.by_ref().filter_map(kept).take(2).collect();
    std::thread::sleep(Duration::from_micros(round * 7_919 % 20_000));
    child.kill().unwrap();
    child.wait().unwrap();
    // A line that the kill cut short is none.
    all.extend(lines.filter_map(kept).filter(|file| file.ends_with(":2,D")));
    all
}

#[test]
fn a_draft_that_was_killed_is_whole_or_not_there() {
    let (_dir, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let mut kept = Vec::new();
    for round in 0..40 {
        kept.extend(kill_one(&home, round));
    }
    Runtime::open(&home).unwrap().close().unwrap();
    let drafts = drafts(&home.join("files"));
    let mut whole = BTreeMap::new();
    for path in files(&drafts.join("cur")) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.ends_with(":2,D"), "{name}: nothing but drafts is left");
        let text = fs::read_to_string(&path).unwrap();
        assert!(text.trim_end().ends_with(END), "{name} is half");
        let intent: u64 = name.split('.').next().unwrap().parse().unwrap();
        whole.insert(intent, name);
    }
    assert_eq!(files(&drafts.join("tmp")).len() + files(&drafts.join("new")).len(), 0);
    assert!(kept.iter().all(|kept| whole.values().any(|name| name == kept)), "one was lost");
    // Each has its intent, and none that is said not to be done is there.
    let (mut intents, mut not_done, mut recovered) = (Vec::new(), 0, 0);
    for record in records(&home) {
        match record.body {
            Body::Intent(_) => intents.push(record.seq.get()),
            Body::Recovery(recovery) => {
                recovered += 1;
                if recovery.verdict == Recovered::NotDone {
                    not_done += 1;
                    assert!(!whole.contains_key(&recovery.intent.get()));
                }
            }
            _ => {}
        }
    }
    assert!(whole.keys().all(|intent| intents.contains(intent)));
    assert_eq!(verdict(&home), Soundness::Sound);
    println!("{} kept, {recovered} recovered, {not_done} not done", whole.len());
    assert!(recovered > 0, "no kill came in the middle of a call");
}

/// A small file system for the files, as long as this lives.
struct Disk(PathBuf);

impl Disk {
    fn mount(at: PathBuf) -> Option<Self> {
        fs::create_dir(&at).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=512k", "syscap-test"]).arg(&at);
        match mount.output() {
            Ok(output) if output.status.success() => Some(Self(at)),
            Ok(output) => {
                println!("skipped: mount: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: mount: {error}");
                None
            }
        }
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(&self.0).status());
    }
}

#[test]
fn a_draft_on_a_full_disk_is_not_there() {
    let dir = tempfile::tempdir().unwrap();
    let Some(disk) = Disk::mount(dir.path().join("base")) else { return };
    let options = Options::new().base(&disk.0);
    let rt = options.create(dir.path().join("home")).unwrap();
    let agent = rt.session("a", rt.issue(grant()).unwrap()).unwrap();
    assert_eq!(draft(&agent, "first\n").reason(), None);
    let junk = disk.0.join("junk");
    // Some room is left, and less than the message needs.
    fs::write(&junk, vec![0; 450 << 10]).unwrap();
    for _ in 0..3 {
        let full = draft(&agent, &body());
        assert_eq!(full.reason(), Some(Reason::DiskFull));
        assert_eq!(full.tx_outcome(), TxOutcome::NoOp);
        let drafts = drafts(&disk.0);
        let left = ["cur", "new", "tmp"].map(|folder| files(&drafts.join(folder)).len());
        assert_eq!(left, [1, 0, 0], "the first alone, and no temporary file");
    }
    fs::remove_file(&junk).unwrap();
    assert_eq!(draft(&agent, &body()).reason(), None);
    drop(agent);
    rt.close().unwrap();
    assert_eq!(verdict(&dir.path().join("home")), Soundness::Sound);
}
