//! `memory.*`: what an agent keeps, for itself alone, within its limits, with its label.

use std::{fs, path::PathBuf, sync::Barrier, thread};

use host_support::{ample, by_cap_std, end, new_home, records, verdict};
use syscap::Args;
use syscap::format::{Body, Durability, EffectClass, Item, Label, ToolId, TxOutcome};
use syscap::host::HostTool;
use syscap::prelude::*;
use syscap::verify::Soundness;

const TOOLS: [&str; 5] =
    ["memory.read", "memory.list", "memory.write", "memory.delete", "stranger.say"];

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

fn world(options: Options) -> World {
    let (dir, home) = new_home();
    let stranger = HostTool::new("stranger.say", EffectClass::Read).unwrap();
    let stranger = stranger.labelled(Label::UNTRUSTED).run(|_| Ok("do as I say"));
    let rt = options.durability(Durability::Memory).tool(stranger).unwrap().create(&home).unwrap();
    World { _dir: dir, home, rt }
}

impl World {
    fn session(&self, agent: &str) -> Session {
        let budget = ample();
        let token = self.rt.issue(Grant::to(agent).tools(TOOLS).budget(budget)).unwrap();
        self.rt.session(agent, token).unwrap()
    }

    fn folder(&self, agent: &str) -> PathBuf {
        self.home.join("files/agents").join(agent).join("memory")
    }
}

fn text(result: &ToolResult, key: &str) -> Option<String> {
    result.value().ok()?.get(key).and_then(Item::as_text).map(str::to_owned)
}

fn write(session: &Session, key: &str, value: &str) -> ToolResult {
    session.call("memory.write", args! { "key": key, "value": value }).unwrap()
}

fn read(session: &Session, key: &str) -> Option<String> {
    text(&session.call("memory.read", args! { "key": key }).unwrap(), "value")
}

#[test]
fn memory_is_kept_for_its_agent_alone() {
    let world = world(Options::new());
    let (ada, bob) = (world.session("team/ada"), world.session("team"));
    assert_eq!(ada.call("memory.list", args! {}).unwrap().reason(), None);
    assert_eq!(write(&ada, "plan", "one\u{e9}").tx_outcome(), TxOutcome::Committed);
    assert_eq!(read(&ada, "plan").as_deref(), Some("one\u{e9}"));
    assert_eq!(read(&bob, "plan"), None);
    write(&bob, "plan", "another");
    assert_eq!(read(&ada, "plan").as_deref(), Some("one\u{e9}"));
    write(&ada, "plans.2", "");
    write(&ada, "note", "x");
    let keys = |args: Args| -> Vec<String> {
        let listed = ada.call("memory_list", args).unwrap();
        let value = listed.value().unwrap();
        let key = |one: Item<'_>| one.get("key").and_then(Item::as_text).unwrap().to_owned();
        value.get("keys").unwrap().elements().map(key).collect()
    };
    assert_eq!(keys(args! {}), ["note", "plan", "plans.2"]);
    assert_eq!(keys(args! { "prefix": "plan" }), ["plan", "plans.2"]);
    let delete = || ada.call("memory.delete", args! { "key": "plan" }).unwrap().reason();
    assert_eq!((delete(), delete()), (None, Some(Reason::NotFound)));
    assert_eq!(keys(args! {}), ["note", "plans.2"]);
    // What nobody keeps there is no key, and is counted.
    let skipped = || {
        let listed = ada.call("memory.list", args! {}).unwrap();
        listed.value().unwrap().get("skipped").and_then(Item::as_uint)
    };
    assert_eq!(skipped(), None);
    std::fs::write(world.folder("team+ada").join("note.md"), "x").unwrap();
    std::fs::create_dir(world.folder("team+ada").join("old.txt")).unwrap();
    assert_eq!(skipped(), Some(2));
    drop((ada, bob));
    let again = world.session("team/ada");
    assert_eq!(read(&again, "note").as_deref(), Some("x"));
    drop(again);
    end(&world.rt, &world.home);
}

/// No key is a path, another key, a hidden file, or a name that means something.
#[test]
fn a_key_is_a_plain_word() {
    let world = world(Options::new());
    let agent = world.session("a");
    let long = "k".repeat(65);
    for key in [
        "",
        ".",
        "..",
        "../x",
        "/x",
        "a/b",
        "a\\b",
        ".x",
        "A",
        "\u{e9}",
        "a b",
        "a\0",
        "a\n",
        &long,
        "\u{ff0e}",
        "a%2fb",
        "con\u{b9}",
        "~",
        "*",
    ] {
        for (tool, args) in [
            ("memory.write", args! { "key": key, "value": "x" }),
            ("memory.read", args! { "key": key }),
            ("memory.delete", args! { "key": key }),
        ] {
            let reason = agent.call(tool, args).unwrap().reason();
            assert_eq!(reason, Some(Reason::BadArgument), "{tool} {key:?}");
        }
    }
    assert!(!world.folder("a").exists());
    for key in ["home.db", "policy.key", "a..b", "-", "con", "aux.txt", &long[..64]] {
        assert_eq!(write(&agent, key, "\u{65}use").reason(), None, "{key}");
        assert_eq!(read(&agent, key).as_deref(), Some("\u{65}use"), "{key}");
    }
}

/// A prefix is the beginning of a key of one's own: no other agent's keys, no folder, no pattern.
#[test]
fn a_prefix_is_of_ones_own_keys() {
    let world = world(Options::new());
    let (own, other) = (world.session("a"), world.session("a2"));
    write(&own, "plan", "x");
    write(&other, "secret", "y");
    let (mut calls, mut kept) = (2, 0);
    for prefix in
        ["", "p", "plan", "lan", "s", "secret", "a2", "..", "../a2+", "/", "*", "%", "\0", "P"]
    {
        let listed = own.call("memory.list", args! { "prefix": prefix }).unwrap();
        calls += 1;
        let Ok(value) = listed.value() else {
            assert_eq!(listed.reason(), Some(Reason::BadArgument), "{prefix:?}");
            continue;
        };
        let keys = value.get("keys").unwrap().elements();
        let keys: Vec<&str> =
            keys.map(|one| one.get("key").and_then(Item::as_text).unwrap()).collect();
        let expected: &[&str] = if "plan".starts_with(prefix) { &["plan"] } else { &[] };
        assert_eq!(keys, expected, "{prefix:?}");
        kept += keys.len();
    }
    assert_eq!(kept, 2);
    drop((own, other));
    world.rt.close().unwrap();
    // Each call has its record.
    let answered = |record: &syscap::format::Record| match &record.body {
        Body::Outcome(_) | Body::Refusal(_) => 1,
        Body::Refusals(run) => run.count.unwrap_or(0),
        _ => 0,
    };
    assert_eq!(records(&world.home).iter().map(answered).sum::<u64>(), calls);
    assert_eq!(verdict(&world.home), Soundness::Sound);
}

/// A write that was held to a version does not undo another's.
#[test]
fn no_update_is_lost() {
    let world = world(Options::new());
    let agent = world.session("a");
    let held = |version: &str, value: &str| {
        let args = args! { "key": "k", "value": value, "if_version": version };
        agent.call("memory.write", args).unwrap()
    };
    let first = held("none", "one");
    assert_eq!(held("none", "two").reason(), Some(Reason::Exists));
    let version = text(&first, "version").unwrap();
    let given = agent.call("memory.read", args! { "key": "k" }).unwrap();
    assert_eq!(text(&given, "version").as_ref(), Some(&version));
    write(&agent, "k", "theirs");
    assert_eq!(held(&version, "two").reason(), Some(Reason::Changed));
    assert_eq!(read(&agent, "k").as_deref(), Some("theirs"));
    assert_eq!(held("17", "two").reason(), Some(Reason::BadArgument));
    let version = text(&agent.call("memory.read", args! { "key": "k" }).unwrap(), "version");
    assert_eq!(held(&version.unwrap(), "two").reason(), None);
    assert_eq!(read(&agent, "k").as_deref(), Some("two"));
}

#[test]
fn a_memory_that_is_full_takes_no_more() {
    let world = world(Options::new());
    let agent = world.session("a");
    let large = "x".repeat(64 << 10);
    let too_large = agent.call("memory.write", args! { "key": "k", "value": format!("{large}x") });
    assert_eq!(too_large.unwrap().reason(), Some(Reason::BadArgument));
    write(&agent, "small", "s");
    // What others put there counts as well.
    for n in 0..255 {
        fs::write(world.folder("a").join(format!("k{n}.txt")), &large).unwrap();
    }
    let full = write(&agent, "more", &large);
    assert_eq!((full.reason(), full.tx_outcome()), (Some(Reason::Quota), TxOutcome::NoOp));
    assert_eq!(full.receipt().used.get(Dimension::DiskWriteBytes), 0);
    // What takes the place of another, or fits.
    assert_eq!(write(&agent, "k7", &large).reason(), None);
    assert_eq!(write(&agent, "more", &large[1..]).reason(), None);
    for n in 0..998 {
        fs::write(world.folder("a").join(format!("k{n}.txt")), "").unwrap();
    }
    assert_eq!(write(&agent, "another", "").reason(), Some(Reason::Quota));
    assert_eq!(write(&agent, "k7", "still").reason(), None);
    // Of many at once no more than fit get in.
    for n in 0..998 {
        fs::remove_file(world.folder("a").join(format!("k{n}.txt"))).unwrap();
    }
    for n in 0..253 {
        fs::write(world.folder("a").join(format!("k{n}.txt")), &large).unwrap();
    }
    let barrier = Barrier::new(8);
    let (rt, at) = (&world, &barrier);
    let done: Vec<bool> = thread::scope(|scope| {
        let all = (0..8).map(|n| {
            let large = &large;
            scope.spawn(move || {
                let session = rt.session("a");
                at.wait();
                write(&session, &format!("race{n}"), large).reason().is_none()
            })
        });
        all.collect::<Vec<_>>().into_iter().map(|one| one.join().unwrap()).collect()
    });
    let total: u64 = fs::read_dir(world.folder("a"))
        .unwrap()
        .map(|f| f.unwrap().metadata().unwrap().len())
        .sum();
    assert!(total <= 16 << 20, "{total}");
    assert_eq!(done.iter().filter(|done| **done).count(), 2);
}

/// What was planted by a stranger's word is a stranger's word a session later.
#[test]
fn memory_keeps_its_label() {
    let world = world(Options::new());
    let tainted = world.session("a");
    tainted.call("stranger.say", args! {}).unwrap();
    assert_eq!(write(&tainted, "k", "obey").reason(), None);
    drop(tainted);
    let clean = world.session("a");
    assert_eq!(write(&clean, "mine", "x").reason(), None);
    assert_eq!(read(&clean, "mine").as_deref(), Some("x"));
    assert_eq!(read(&clean, "k").as_deref(), Some("obey"));
    assert_eq!(write(&clean, "mine", "y").reason(), None);
    drop(clean);
    let late = world.session("a");
    assert_eq!(read(&late, "mine").as_deref(), Some("y"));
    write(&late, "end", "z");
    drop(late);
    let writes: Vec<Label> = records(&world.home)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Intent(intent) => {
                let is_write = |tool: &ToolId| tool.as_str() == "memory.write";
                intent.call.tool_id.as_ref().is_some_and(is_write).then_some(intent.label)
            }
            _ => None,
        })
        .collect();
    let (public, untrusted) = (Label::PUBLIC, Label::UNTRUSTED);
    assert_eq!(writes, [untrusted, public, untrusted, untrusted]);
    end(&world.rt, &world.home);
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("memory_tools::");
}

/// What is kept for an agent its owner alone reads; the files of its workspace are as files are.
#[test]
fn kept_files_are_their_owners_only() {
    use std::os::unix::fs::PermissionsExt as _;
    let world = world(Options::new());
    for agent in ["ada", "team/ada"] {
        let grant = Grant::to(agent).tools(["fs.write", "memory.write"]).budget(ample());
        let token = world.rt.issue(grant.write("workspace")).unwrap();
        let session = world.rt.session(agent, token).unwrap();
        for text in ["one", "two"] {
            assert_eq!(write(&session, "plan", text).reason(), None);
            let wrote = session.call("fs.write", args! { "path": "x", "text": text }).unwrap();
            assert_eq!(wrote.reason(), None);
        }
    }
    let mut modes: Vec<(String, u32)> = Vec::new();
    let mut folders = vec![world.home.join("files/agents")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            let (meta, path) = (entry.metadata().unwrap(), entry.path());
            match meta.is_dir() {
                true => folders.push(path),
                false => {
                    modes.push((path.display().to_string(), meta.permissions().mode() & 0o777))
                }
            }
        }
    }
    let of = |part: &str| modes.iter().filter(|(path, _)| path.contains(part)).collect::<Vec<_>>();
    assert!(of("/memory/").len() >= 2 && of("/memory/").iter().all(|(_, mode)| *mode == 0o600));
    assert!(
        of("/workspace/").len() == 2 && of("/workspace/").iter().all(|(_, mode)| *mode == 0o644)
    );
    end(&world.rt, &world.home);
}
