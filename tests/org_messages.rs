//! `org.send_message` and the inbox: whom a message may be for, what is kept of it, how much, and
//! what a crash leaves.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::{fs, thread};

use crate::stranger::{World, world};
use host_support::{end, last_label};
use syscap::format::{Canonical, Item, Label, Profile, Scope, TxOutcome, json};
use syscap::prelude::*;

const INBOX: [&str; 4] =
    ["org.list_messages", "org.read_message", "org.delete_message", "stranger.say"];

fn budget() -> Budget {
    [Dimension::Calls, Dimension::DiskFiles, Dimension::DiskWriteBytes, Dimension::WallUs]
        .into_iter()
        .fold(Budget::standard(), |budget, dimension| budget.with(dimension, 1 << 40))
        .with(Dimension::CpuUs, 1 << 40)
}

fn sends_to<'a>(agent: &str, to: impl IntoIterator<Item = &'a str>) -> Grant {
    let tools = INBOX.into_iter().chain(["org.send_message"]);
    let outbox = Scope::names(to).unwrap();
    Grant::to(agent).tools(tools).scope("outbox", outbox).budget(budget())
}

impl World {
    fn reader(&self, agent: &str) -> Session {
        self.open(agent, Grant::to(agent).tools(INBOX).budget(budget()))
    }

    fn folder(&self, agent: &str, which: &str) -> PathBuf {
        self.home.join("files/agents").join(agent.replace('/', "+")).join(which)
    }

    fn files(&self, agent: &str, which: &str) -> Vec<PathBuf> {
        files(&self.folder(agent, which))
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
}

fn send(session: &Session, args: &str) -> ToolResult {
    session.request("send_message").json(args, Escapes::Data).wait().unwrap()
}

fn to(agents: &[&str]) -> String {
    let quoted: Vec<String> = agents.iter().map(|agent| format!("\"{agent}\"")).collect();
    format!(r#"{{"recipients": [{}], "kind": "note", "text": "hello"}}"#, quoted.join(", "))
}

fn text(item: Item<'_>, key: &str) -> String {
    item.get(key).and_then(Item::as_text).unwrap_or_default().to_owned()
}

/// The ids in an inbox.
fn ids(session: &Session) -> Vec<String> {
    let (mut ids, mut after) = (Vec::new(), None::<String>);
    loop {
        let args = match &after {
            Some(after) => args! { "after": after.as_str() },
            None => args! {},
        };
        let result = session.call("list_messages", args).unwrap();
        let value = result.value().unwrap();
        ids.extend(value.get("messages").unwrap().elements().map(|one| text(one, "id")));
        after = ids.last().cloned();
        if value.get("more").and_then(Item::as_bool) == Some(false) {
            return ids;
        }
    }
}

fn read(session: &Session, id: &str) -> ToolResult {
    session.call("read_message", args! { "id": id }).unwrap()
}

#[test]
fn outgoing_entries_must_include_recipients() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["bob", "cy"]));
    for (args, reason) in [
        (r#"{"kind": "note", "text": "x"}"#, Reason::MissingArgument),
        (r#"{"kind": "note", "to": ["bob"]}"#, Reason::MissingArgument),
        (r#"{"recipients": null, "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": [], "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": "", "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": {"bob": 1}, "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": ["bob", 7], "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": ["bob", "bob"], "kind": "note"}"#, Reason::BadArgument),
        (r#"{"recipients": ["bob"]}"#, Reason::MissingArgument),
        (r#"{"recipients": ["bob"], "kind": ""}"#, Reason::BadArgument),
    ] {
        assert_eq!(send(&ann, args).reason(), Some(reason), "{args}");
    }
    let many: Vec<String> = (0..101).map(|n| format!("a{n}")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(send(&ann, &to(&many)).reason(), Some(Reason::BadArgument));
    assert_eq!(world.files("bob", "inbox"), Vec::<PathBuf>::new());
    let sent = send(&ann, &to(&["bob", "cy"]));
    assert_eq!((sent.reason(), sent.tx_outcome()), (None, TxOutcome::Committed));
    let bytes: u64 = ["bob", "cy"]
        .iter()
        .map(|agent| fs::metadata(&world.files(agent, "inbox")[0]).unwrap().len())
        .sum();
    assert_eq!(sent.receipt().used.get(Dimension::DiskWriteBytes), bytes);
    assert_eq!(send(&ann, r#"{"recipients": "bob", "kind": "note"}"#).reason(), None);
    assert_eq!(world.files("bob", "inbox").len(), 2);
    assert_eq!(world.files("bob", "incoming"), Vec::<PathBuf>::new());
}

#[test]
fn recipients_must_be_within_the_allowlist() {
    let world = world();
    let lead = world.open("team/lead", sends_to("team/lead", ["team/a", "boss"]));
    for (agents, reason) in [
        (&["eve"][..], Reason::OutOfScope),
        (&["team/a", "eve"], Reason::OutOfScope),
        (&["team"], Reason::OutOfScope),
        (&["team/a/b"], Reason::OutOfScope),
        (&["team/lead"], Reason::OutOfScope),
        (&["team/lead/x"], Reason::OutOfScope),
        (&["boss.x"], Reason::OutOfScope),
        (&["bos"], Reason::OutOfScope),
        (&["BOSS"], Reason::BadArgument),
        (&["boss/"], Reason::BadArgument),
        (&["/boss"], Reason::BadArgument),
        (&["team/lead/../a"], Reason::BadArgument),
        (&["../boss"], Reason::BadArgument),
        (&["team+a"], Reason::BadArgument),
        (&["boss "], Reason::BadArgument),
        (&["boss,eve"], Reason::BadArgument),
        (&["b\\u043ess"], Reason::BadArgument),
        (&["boss\\u0000"], Reason::BadArgument),
        (&["boss\\u200b"], Reason::BadArgument),
        (&["*"], Reason::BadArgument),
    ] {
        assert_eq!(send(&lead, &to(agents)).reason(), Some(reason), "{agents:?}");
    }
    assert!(!world.folder("boss", "inbox").exists(), "it was delivered to nobody");
    assert_eq!(send(&lead, &to(&["boss", "team/a"])).reason(), None);
    // Nobody, unless the grant names them.
    let tools = Grant::to("ann").tools(["org.send_message"]);
    assert_eq!(send(&world.open("ann", tools), &to(&["boss"])).reason(), Some(Reason::OutOfScope));
    let other = Grant::to("ann").tools(["org.send_message", "org.list_agents"]);
    let other = other.scope("agent", Scope::names(["boss"]).unwrap());
    assert_eq!(send(&world.open("ann", other), &to(&["boss"])).reason(), Some(Reason::OutOfScope));
    let none = world.open("ann", Grant::to("ann").tools(["echo"]));
    assert_eq!(send(&none, &to(&["boss"])).reason(), Some(Reason::NotGranted));
    assert_eq!(world.files("boss", "inbox").len(), 1);
}

#[test]
fn unknown_kinds_and_fields_are_kept_byte_for_byte() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["bob"]));
    let bob = world.reader("bob");
    let fields = r#""kind": "x.telepathy/v9", "text": "\u00fc\u202e\u0000", "zz": [], "f": 0.1,
        "body": {"deep": [1, {"b": null}]}, "v": 7, "id": "another", "to": "eve", "sent_ms": 0,
        "big": 18446744073709551615, "low": -9223372036854775808, "message": {"message": true},
        "\ud83d\udc1d": "bee", "": "no name""#;
    let sent = send(&ann, &format!(r#"{{"recipients": ["bob"], {fields}}}"#));
    assert_eq!(sent.reason(), None);
    let meant = json::to_data(format!("{{{fields}}}").as_bytes()).unwrap();
    let result = read(&bob, &ids(&bob)[0]);
    let value = result.value().unwrap();
    let message = value.get("message").unwrap();
    assert_eq!(message.as_bytes(), meant.as_bytes());
    // On the disk it is the same.
    let file = fs::read(&world.files("bob", "inbox")[0]).unwrap();
    let file = Canonical::check(file, Profile::DATA).unwrap();
    assert_eq!(file.item().get("message").unwrap().as_bytes(), meant.as_bytes());
    // As JSON it comes back as it went.
    let back = json::to_data(json::from_data(message).as_bytes()).unwrap();
    assert_eq!(back.as_bytes(), meant.as_bytes());
    // As deep as can be read back, and no deeper.
    let deep = |depth| {
        let body = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        send(&ann, &format!(r#"{{"recipients": ["bob"], "kind": "k", "body": {body}}}"#)).reason()
    };
    assert_eq!((deep(61), deep(62)), (None, None));
    assert_eq!(deep(63), Some(Reason::TooDeep));
    for id in ids(&bob) {
        assert_eq!(read(&bob, &id).reason(), None, "{id}");
    }
    // In all it has a size.
    let long = "x".repeat(65_536);
    let refused = send(&ann, &format!(r#"{{"recipients": ["bob"], "kind": "k", "x": "{long}"}}"#));
    assert_eq!(refused.reason(), Some(Reason::BadArgument));
}

#[test]
fn the_sender_is_who_sent_it() {
    let world = world();
    let ann = world.open("team/ann", sends_to("team/ann", ["bob"]));
    let bob = world.reader("bob");
    let spoofed = r#"{"recipients": ["bob"], "kind": "note", "from": "boss", "sender": "boss",
        "message": {"from": "boss"}, "id": "000000000001-0000000000000000.boss"}"#;
    assert_eq!(send(&ann, spoofed).reason(), None);
    let listed = bob.call("list_messages", args! {}).unwrap();
    let one = listed.value().unwrap().get("messages").unwrap().elements().next().unwrap();
    assert_eq!((text(one, "from"), text(one, "integrity")), ("team/ann".into(), "trusted".into()));
    let result = read(&bob, &text(one, "id"));
    let value = result.value().unwrap();
    assert_eq!(text(value, "from"), "team/ann");
    assert_eq!(text(value.get("message").unwrap(), "from"), "boss");
    let to: Vec<_> = value.get("to").unwrap().elements().filter_map(Item::as_text).collect();
    assert_eq!(to, ["bob"]);
    assert!(value.get("sent_ms").and_then(Item::as_uint).unwrap() > 1_700_000_000_000);
}

/// An inbox is its agent's alone, and an id is no path.
#[test]
fn an_inbox_is_its_agents_alone() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["bob", "bob/x", "ann"]));
    assert_eq!(send(&ann, &to(&["bob"])).reason(), None);
    let bob = world.reader("bob");
    let id = ids(&bob)[0].clone();
    for other in ["ann", "bob/x", "b"] {
        let session = world.reader(other);
        assert_eq!(ids(&session), [""; 0], "{other}");
        assert_eq!(read(&session, &id).reason(), Some(Reason::NotFound), "{other}");
        let deleted = session.call("delete_message", args! { "id": id.as_str() }).unwrap();
        assert_eq!(deleted.reason(), Some(Reason::NotFound), "{other}");
        for path in ["../../bob/inbox/", "/", "..", ".", "inbox/", "%2e%2e/"] {
            let refused = read(&session, &format!("{path}{id}"));
            assert_eq!(refused.reason(), Some(Reason::BadArgument), "{path}");
        }
    }
    // No file tool leads there.
    let files = Grant::to("bob").tools(["fs.list", "fs.read"]).workspace();
    let refused = world.open("bob", files).call("fs.list", args! { "path": "../inbox" }).unwrap();
    assert!(refused.reason().is_some());
    let delete = || bob.call("delete_message", args! { "id": id.as_str() }).unwrap();
    assert_eq!((delete().reason(), delete().reason()), (None, Some(Reason::NotFound)));
    assert_eq!(ids(&bob), [""; 0]);
    // What somebody else put there is no message.
    assert_eq!(send(&ann, &to(&["bob"])).reason(), None);
    let file = &world.files("bob", "inbox")[0];
    fs::write(file, "no message").unwrap();
    fs::write(world.folder("bob", "inbox").join("x.msg"), "no name").unwrap();
    assert_eq!(ids(&bob).len(), 1);
    let listed = bob.call("list_messages", args! {}).unwrap();
    let skipped = listed.value().unwrap().get("skipped").and_then(Item::as_uint);
    assert_eq!(skipped, Some(1));
    assert_eq!(read(&bob, &ids(&bob)[0]).reason(), Some(Reason::NotAFile));
}

#[test]
fn a_message_keeps_the_label_of_what_its_sender_had_read() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["bob"]));
    assert_eq!(send(&ann, &to(&["bob"])).reason(), None);
    ann.call("stranger.say", args! {}).unwrap();
    assert_eq!(send(&ann, &to(&["bob"])).reason(), None);
    let bob = world.reader("bob");
    let [clean, tainted] = ids(&bob).try_into().unwrap();
    let given = || {
        ids(&bob);
        last_label(&world.home)
    };
    // Whoever lists them has read none of them, and sees which is which.
    assert_eq!(given(), Label::PUBLIC);
    let listed = bob.call("list_messages", args! {}).unwrap();
    let listed = listed.value().unwrap().get("messages").unwrap();
    let integrity: Vec<String> = listed.elements().map(|one| text(one, "integrity")).collect();
    assert_eq!(integrity, ["trusted", "untrusted"]);
    assert_eq!(read(&bob, &clean).reason(), None);
    assert_eq!(given(), Label::PUBLIC);
    assert_eq!(read(&bob, &tainted).reason(), None);
    assert_eq!(given(), Label::UNTRUSTED);
    drop((ann, bob));
    end(&world.rt, &world.home);
}

/// One sender has a share of an inbox, and those that it makes have no other.
#[test]
fn a_flood_fills_its_own_share_only() {
    let world = world();
    let flood = |agent: &str, text: &str| {
        let session = world.open(agent, sends_to(agent, ["bob", "cy"]));
        let args = format!(r#"{{"recipients": ["bob"], "kind": "k", "text": "{text}"}}"#);
        let mut sent = 0;
        loop {
            let result = send(&session, &args);
            match result.reason() {
                None => sent += 1,
                Some(reason) => {
                    assert_eq!((reason, result.tx_outcome()), (Reason::Quota, TxOutcome::NoOp));
                    break (sent, session);
                }
            }
        }
    };
    let (sent, eve) = flood("eve", "x");
    assert_eq!(sent, 100);
    // With its share used up it reaches nobody by a list that bob is on.
    assert_eq!(send(&eve, &to(&["cy", "bob"])).reason(), Some(Reason::Quota));
    assert_eq!((world.files("cy", "inbox").len(), world.files("cy", "incoming").len()), (0, 0));
    assert_eq!(send(&eve, &to(&["cy"])).reason(), None);
    for (agent, count) in
        [("eve/a", 100), ("eve/b", 100), ("eve/b/c", 100), ("eve/d", 100), ("eve/e", 0)]
    {
        assert_eq!(flood(agent, "x").0, count, "{agent}");
    }
    // By size too: 2 MiB.
    assert_eq!(flood("mallory", &"y".repeat(65_000)).0, 32);
    // Another's share is as it was; and deleting makes room.
    let bob = world.reader("bob");
    let ann = world.open("ann", sends_to("ann", ["bob"]));
    assert_eq!(send(&ann, &to(&["bob"])).reason(), None);
    let of_eve = ids(&bob).into_iter().find(|id| id.ends_with(".eve")).unwrap();
    bob.call("delete_message", args! { "id": of_eve.as_str() }).unwrap().value().unwrap();
    assert_eq!(send(&eve, &to(&["bob"])).reason(), None);
    assert_eq!(send(&eve, &to(&["bob"])).reason(), Some(Reason::Quota));
    // All of it is bounded: of 1,000 there is room for so many more.
    let left = 1_000 - world.files("bob", "inbox").len();
    let mut filled = 0;
    for tree in 0..12 {
        filled += flood(&format!("t{tree}"), "x").0;
    }
    assert_eq!((filled, world.files("bob", "inbox").len()), (left, 1_000));
    assert_eq!(send(&ann, &to(&["bob"])).reason(), Some(Reason::Quota));
}

/// Senders in parallel find no place twice, and spend no more than there is.
#[test]
fn parallel_senders_overspend_nothing() {
    let world = world();
    let limit = 40;
    let grant = sends_to("ann", ["bob", "cy"]).limit(Dimension::Calls, limit);
    let token = world.rt.issue(grant).unwrap();
    let start = Barrier::new(8);
    let reasons: Vec<Option<Reason>> = thread::scope(|scope| {
        let run = |_| {
            let (world, start) = (&world, &start);
            scope.spawn(move || -> Vec<Option<Reason>> {
                let session = world.rt.session("ann", token).unwrap();
                start.wait();
                (0..10).map(|_| send(&session, &to(&["cy", "bob"])).reason()).collect()
            })
        };
        let threads: Vec<_> = (0..8).map(run).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let count = |reason| reasons.iter().filter(|found| **found == reason).count();
    // A slow machine may keep somebody waiting for too long.
    let (sent, waited) = (count(None), count(Some(Reason::Busy)));
    assert_eq!(sent + waited, usize::try_from(limit).unwrap());
    assert_eq!(count(Some(Reason::OverBudget)), 40);
    assert!(sent > 20, "{reasons:?}");
    assert_eq!((world.files("bob", "inbox").len(), world.files("cy", "inbox").len()), (sent, sent));
    // The last places of a share.
    let start = Barrier::new(8);
    let sent: usize = thread::scope(|scope| {
        let run = |_| {
            let (world, start) = (&world, &start);
            let session = world.open("eve", sends_to("eve", ["bob"]));
            scope.spawn(move || {
                start.wait();
                (0..20).filter(|_| send(&session, &to(&["bob"])).reason().is_none()).count()
            })
        };
        let threads: Vec<_> = (0..8).map(run).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sent, 100);
    end(&world.rt, &world.home);
}

/// What one recipient can't be given nobody is given.
#[test]
fn all_of_them_or_none() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["a", "b", "c"]));
    // Where its folder should be stands a file.
    fs::create_dir_all(world.folder("b", "")).unwrap();
    fs::write(world.folder("b", "incoming"), "").unwrap();
    let refused = send(&ann, &to(&["a", "b", "c"]));
    assert_eq!(refused.reason(), Some(Reason::NotAFolder));
    assert_eq!(refused.tx_outcome(), TxOutcome::RolledBack);
    for agent in ["a", "c"] {
        assert_eq!(world.files(agent, "inbox"), Vec::<PathBuf>::new(), "{agent}");
        assert_eq!(world.files(agent, "incoming"), Vec::<PathBuf>::new(), "{agent}");
    }
    fs::remove_file(world.folder("b", "incoming")).unwrap();
    assert_eq!(send(&ann, &to(&["a", "b", "c"])).reason(), None);
}

/// From the first inbox on there is no way back: who has it, and who has not, is told.
#[test]
fn undelivered_recipients_are_reported() {
    let world = world();
    let ann = world.open("ann", sends_to("ann", ["a", "b", "c"]));
    assert_eq!(send(&ann, &to(&["b"])).reason(), None);
    let inbox = world.folder("b", "inbox");
    let fixed = |flag: &str| {
        let done = Command::new("chattr").arg(flag).arg(&inbox).stderr(Stdio::null()).status();
        done.is_ok_and(|status| status.success())
    };
    if !fixed("+i") {
        println!("skipped: no folder can be made immutable here");
        return;
    }
    // Before that nobody has it.
    let refused = send(&ann, &to(&["b", "a", "c"]));
    assert_eq!(refused.reason(), Some(Reason::AccessDenied));
    assert_eq!(refused.tx_outcome(), TxOutcome::RolledBack);
    assert_eq!((world.files("a", "inbox").len(), world.files("a", "incoming").len()), (0, 0));
    let result = send(&ann, &to(&["a", "b", "c"]));
    assert!(fixed("-i"));
    let value = result.value().unwrap();
    let delivered = value.get("delivered").unwrap().elements().filter_map(Item::as_text);
    assert_eq!(delivered.collect::<Vec<_>>(), ["a", "c"]);
    let failed = value.get("failed").unwrap().elements().next().unwrap();
    assert_eq!(
        (text(failed, "agent"), text(failed, "reason")),
        ("b".into(), "access_denied".into())
    );
    assert_eq!(result.tx_outcome(), TxOutcome::Committed);
    assert_eq!((world.files("a", "inbox").len(), world.files("c", "inbox").len()), (1, 1));
    assert_eq!(world.files("b", "inbox").len(), 1);
}
