//! Symbolic links through the kernel: where a grant lets them be followed, scope, policy and record
//! are about what they lead to; a refusal tells nothing of that, and a race wins nothing.

use host_support::{ample, by_cap_std};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::{fs, thread};
use syscap::audit::MemoryStore;
use syscap::format::{
    Body, Canonical, Durability, Item, Paths, Profile, Record, Rights, Root, RootedPath, Rule,
    Scope, Seq, Verdict, args_hash,
};
use syscap::kernel::{Tally, vault_entry};
use syscap::policy::Policy;
use syscap::prelude::*;

const SECRET: &str = "SECRET-CANARY";
/// From a workspace to the base.
const BASE: &str = "../../..";

/// Every call, but none that touches `shared/secret`.
const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "all"},
    {"id": "no-secrets", "effect": "deny", "subject": null,
     "when": {"op": "within", "args": ["args.path", "shared/secret"]},
     "on_fail": "block", "reason": "no secrets"}]}"#;

struct World {
    dir: tempfile::TempDir,
    store: MemoryStore,
    rt: Runtime,
    agent: Session,
}

fn policy() -> Policy {
    Policy::from_json(POLICY.as_bytes()).unwrap()
}

fn path(root: Root, below: &[&str]) -> RootedPath {
    RootedPath::new(root, below).unwrap()
}

fn named(root: &str, below: &[&str]) -> RootedPath {
    path(Root::named(root).unwrap(), below)
}

fn workspace(agent: &str) -> RootedPath {
    path(Root::Workspace(AgentId::new(agent).unwrap()), &[])
}

/// A home whose agent `a` has these rights, with `shared/secret/s.txt`, `shared/open/o.txt`,
/// `private/p.txt` and a file outside the base.
fn world(rules: &[(RootedPath, Rights)]) -> World {
    let (dir, store) = (tempfile::tempdir().unwrap(), MemoryStore::new());
    let home = dir.path().join("home");
    let options = Options::new().store(store.share()).durability(Durability::Memory);
    let rt = options.policy(policy()).create(&home).unwrap();
    let files = home.join("files");
    for (folder, name, content) in [
        ("shared/secret", "s.txt", SECRET),
        ("shared/open", "o.txt", "open"),
        ("private", "p.txt", SECRET),
        ("../../outside", "x.txt", SECRET),
    ] {
        fs::create_dir_all(files.join(folder)).unwrap();
        fs::write(files.join(folder).join(name), content).unwrap();
    }
    let budget = ample();
    let rules = rules.iter().map(|(path, rights)| Rule { path: path.clone(), rights: *rights });
    let scope = Scope::Paths(Paths::new(rules).unwrap());
    let grant = Grant::to("a").tools(["fs.read", "fs.list", "fs.write"]).budget(budget);
    let token = rt.issue(grant.scope("path", scope)).unwrap();
    let agent = rt.session("a", token).unwrap();
    World { dir, store, rt, agent }
}

/// Everything in its workspace and in `shared`, links too.
fn free() -> World {
    world(&[(workspace("a"), Rights::ALL), (named("shared", &[]), Rights::ALL)])
}

impl World {
    fn files(&self, path: &str) -> PathBuf {
        self.dir.path().join("home/files").join(path)
    }

    fn workspace(&self, path: &str) -> PathBuf {
        self.files("agents/a/workspace").join(path)
    }

    /// A link in the workspace.
    fn link(&self, name: &str, target: &str) {
        let link = self.workspace(name);
        drop(fs::remove_file(&link));
        symlink(target, link).unwrap();
    }

    fn read(&self, path: &str) -> ToolResult {
        self.agent.call("fs.read", args! { "path": path }).unwrap()
    }

    fn list(&self, path: &str) -> ToolResult {
        self.agent.call("fs.list", args! { "path": path }).unwrap()
    }

    fn write(&self, path: &str, text: &str) -> ToolResult {
        self.agent.call("fs.write", args! { "path": path, "text": text }).unwrap()
    }

    fn records(&self) -> Vec<Record> {
        let records = self.store.all_records();
        records.iter().map(|bytes| Record::decode(bytes).unwrap()).collect()
    }

    /// The path in the vault for the last call that a policy was asked about, which must be what
    /// its record commits to.
    fn recorded(&self) -> String {
        let decided = self.records().into_iter().rev().find_map(|record| {
            let call = match record.body {
                Body::Intent(intent) => intent.call,
                Body::Refusal(refusal) => refusal.call,
                _ => return None,
            };
            call.decision.is_some().then_some((record.seq, call))
        });
        let (seq, call): (Seq, _) = decided.unwrap();
        let entry = vault_entry(&mut self.store.share(), seq, seq).unwrap();
        let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
        let (tool, manifest) = (call.tool_id.unwrap(), call.manifest.unwrap());
        let hash = args_hash(&entry.salts.unwrap().args, &tool, &manifest, args.item());
        assert_eq!(call.args_hash, Some(hash), "the record commits to what lies in the vault");
        args.item().get("path").and_then(Item::as_text).unwrap().to_owned()
    }
}

/// A deny of a folder holds for links to a file in it, to the folder and through a chain, for all
/// tools; what may be had may be had by a link; and the record is about what the link led to.
#[test]
fn a_link_is_judged_by_what_it_leads_to() {
    let world = free();
    world.link("file", &format!("{BASE}/shared/secret/s.txt"));
    world.link("folder", &format!("{BASE}/shared/secret"));
    world.link("chain", "chain-2");
    world.link("chain-2", "./folder/../secret/s.txt");
    symlink("../secret/s.txt", world.files("shared/open/inner")).unwrap();
    let direct = world.read("shared/secret/s.txt").reason();
    assert_eq!(direct, Some(Reason::Constraint));
    for path in ["file", "folder/s.txt", "chain", "workspace/./file", "shared/open/inner"] {
        assert_eq!(world.read(path).reason(), direct, "{path} was read");
        assert_eq!(world.recorded(), "shared/secret/s.txt", "{path}");
        assert_eq!(world.write(path, "gone").reason(), direct, "{path} was overwritten");
        assert_eq!(world.recorded(), "shared/secret/s.txt", "{path}");
    }
    assert_eq!(world.write("folder/new.txt", "new").reason(), direct);
    assert_eq!(world.recorded(), "shared/secret/new.txt");
    assert_eq!(world.list("folder").reason(), direct);
    assert_eq!(world.recorded(), "shared/secret");
    assert_eq!(fs::read_to_string(world.files("shared/secret/s.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(world.files("shared/secret")).unwrap().count(), 1);

    // What may be had.
    world.link("fine", &format!("{BASE}/shared/open/o.txt"));
    world.link("own", "./a.txt");
    assert_eq!(world.read("fine").text().unwrap(), "open");
    assert_eq!(world.recorded(), "shared/open/o.txt");
    assert_eq!(world.write("fine", "changed").reason(), None);
    assert_eq!(world.recorded(), "shared/open/o.txt");
    assert_eq!(fs::read_to_string(world.files("shared/open/o.txt")).unwrap(), "changed");
    assert!(world.workspace("fine").is_symlink(), "what it led to was replaced, and not the link");
    // A link to nothing is written through.
    assert_eq!(world.write("own", "mine").reason(), None);
    assert_eq!(world.recorded(), "workspace/a.txt");
    assert_eq!(fs::read_to_string(world.workspace("a.txt")).unwrap(), "mine");
    world.rt.close().unwrap();
}

/// The policy that made the log decides it again to the letter, from the vault alone: the links
/// and what they led to are gone.
#[test]
fn a_followed_link_is_replayed_without_the_files() {
    let world = free();
    world.link("file", &format!("{BASE}/shared/secret/s.txt"));
    world.link("fine", &format!("{BASE}/shared/open/o.txt"));
    let calls = 6;
    for path in ["file", "fine"] {
        world.read(path);
        world.write(path, "x");
        world.list(path);
    }
    fs::remove_dir_all(world.files("")).unwrap();
    let mut tally = Tally::default();
    let mut store = world.store.share();
    world.rt.look(|k| k.replay(&mut store, &policy(), &mut |one| tally.add(one)).unwrap()).unwrap();
    assert_eq!((tally.same, tally.changed.len(), tally.not_asked.len()), (calls, 0, 0));
    let denied = r#"{"v": 1, "constraints": []}"#;
    let other = Policy::from_json(denied.as_bytes()).unwrap();
    let mut tally = Tally::default();
    world.rt.look(|k| k.replay(&mut store, &other, &mut |one| tally.add(one)).unwrap()).unwrap();
    let now = tally.changed.iter().map(|one| one.now.as_ref().unwrap().verdict);
    assert_eq!(now.collect::<Vec<_>>(), [Verdict::Deny; 3]);
}

/// The paths by which [`told`] asks.
const SENT: [&str; 3] = ["link", "link/s.txt", "./link"];

/// What all tools say of paths through `link`, which must all be refused for this reason and name
/// what was sent, and nothing else.
fn told(world: &World, reason: Reason) -> [[Canonical; 3]; 3] {
    // Who is only refused waits.
    assert_eq!(world.list(".").reason(), None);
    SENT.map(|sent| {
        let results = [world.read(sent), world.list(sent), world.write(sent, "x")];
        results.map(|result| {
            assert_eq!(result.reason(), Some(reason), "{sent}");
            let got = result.delivered().item().get("got").and_then(Item::as_text);
            assert_eq!(got, Some(sent));
            result.delivered().clone()
        })
    })
}

/// A refusal is the same to the last byte, whether what a link leads to is there or not, and
/// whatever it is; what it says is what was sent.
#[test]
fn a_refusal_does_not_tell_where_a_link_leads() {
    let world = free();
    let outside = world.dir.path().join("outside/x.txt");
    let out = [
        // Above the base, absolute, not granted, no place of files, another's workspace.
        "../../../../../outside/x.txt",
        "../../../../../outside/none",
        "../../../../../../../../../../../../etc/passwd",
        outside.to_str().unwrap(),
        "/nowhere",
        "/",
        "../../../private/p.txt",
        "../../../private/none",
        "../../../none/none",
        "../../../private",
        "../../../private/p.txt/below",
        "../..",
        "../../..",
        "../../../agents/a",
        "../../../agents/a/none",
        "../../b/workspace",
        "../../b/workspace/none",
        // Nothing but links.
        "link",
        "./../workspace/link",
    ];
    world.link("link", "../../../private/p.txt");
    let first = told(&world, Reason::OutOfScope);
    for target in out {
        world.link("link", target);
        assert_eq!(told(&world, Reason::OutOfScope), first, "{target}");
    }
    // In scope, and denied by policy.
    world.link("link", "../../../shared/secret/s.txt");
    let denied = told(&world, Reason::Constraint);
    let dead = ["secret/none", "secret/none/", "secret/s.txt/none", "secret/s.txt/", "secret"];
    for target in dead {
        world.link("link", &format!("../../../shared/{target}"));
        assert_eq!(told(&world, Reason::Constraint), denied, "{target}");
    }
    // A way past what is denied says nothing of what stands on it.
    let past = ["secret/s.txt/../../none", "secret/none/../../none", "secret/../none"];
    let [first, same @ ..] = past.map(|target| {
        world.link("link", &format!("../../../shared/{target}"));
        let list = world.list("link");
        assert_eq!(world.recorded(), "shared/none", "{target}");
        (list.reason(), list.delivered().clone())
    });
    assert_eq!(first.0, Some(Reason::NotFound));
    assert!(same.iter().all(|one| *one == first));
    assert_eq!(fs::read_to_string(outside).unwrap(), SECRET);
    assert_eq!(fs::read_to_string(world.files("private/p.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_to_string(world.files("shared/secret/s.txt")).unwrap(), SECRET);
}

/// As many links as the operating system follows, and no more.
#[test]
fn chains_of_links_end() {
    let world = free();
    fs::write(world.workspace("l0"), "end").unwrap();
    for n in 1..=41 {
        world.link(&format!("l{n}"), &format!("l{}", n - 1));
    }
    assert_eq!(world.read("l40").text().unwrap(), "end");
    assert_eq!(fs::read_to_string(world.workspace("l40")).unwrap(), "end");
    assert_eq!(world.read("l41").reason(), Some(Reason::OutOfScope));
    assert!(fs::read_to_string(world.workspace("l41")).is_err(), "nor does the system");
    // Few links, and names without end.
    world.link("wide", &"./".repeat(1_000));
    world.link("far", "wide/wide");
    assert_eq!(world.list("wide").reason(), None);
    assert_eq!(world.list("far").reason(), Some(Reason::OutOfScope));
}

/// Links lie in places too: one in a place that the token does not let be read, or does not let
/// links be followed in, is not read, even where it leads back to what may be had.
#[test]
fn links_are_read_only_where_they_may_be_followed() {
    let read = Rights::READ.union(Rights::WRITE);
    let follow = Rights::WRITE.union(Rights::FOLLOW);
    let world = world(&[
        (workspace("a"), Rights::ALL),
        (named("shared", &[]), Rights::ALL),
        (named("shared", &["plain"]), read),
        (named("shared", &["drop"]), follow),
        (named("shared", &["none"]), Rights::NONE),
    ]);
    fs::write(world.workspace("a.txt"), "mine").unwrap();
    for place in ["private", "shared/plain", "shared/drop", "shared/none"] {
        fs::create_dir_all(world.files(place)).unwrap();
        let up = if place == "private" { ".." } else { "../.." };
        symlink(format!("{up}/agents/a/workspace/a.txt"), world.files(place).join("l")).unwrap();
        symlink(format!("{up}/agents/a/workspace"), world.files(place).join("d")).unwrap();
    }
    let reasons = |place: &str| {
        world.link("way", &format!("{BASE}/{place}/l"));
        world.link("wayd", &format!("{BASE}/{place}/d/a.txt"));
        ["way", "wayd"].map(|path| world.read(path).reason())
    };
    assert_eq!(reasons("private"), [Some(Reason::OutOfScope); 2]);
    assert_eq!(reasons("shared/none"), [Some(Reason::OutOfScope); 2]);
    assert_eq!(reasons("shared/drop"), [Some(Reason::OutOfScope); 2]);
    // It may be opened, but not through the link.
    assert_eq!(reasons("shared/plain"), [Some(Reason::Link); 2]);
    // A way through what may not be had is a way by name.
    fs::remove_dir_all(world.files("private")).unwrap();
    world.link("past", &format!("{BASE}/private/gone/../../agents/a/workspace/a.txt"));
    assert_eq!(world.read("past").text().unwrap(), "mine");
    assert_eq!(world.recorded(), "workspace/a.txt");
    // Another agent's workspace, where the token grants it, is named from one's own.
    let world = self::world(&[(workspace("a"), Rights::ALL), (workspace("team/b"), Rights::READ)]);
    fs::create_dir_all(world.files("agents/team+b/workspace")).unwrap();
    fs::write(world.files("agents/team+b/workspace/b.txt"), "theirs").unwrap();
    world.link("theirs", "../../team+b/workspace/b.txt");
    assert_eq!(world.read("theirs").text().unwrap(), "theirs");
    assert_eq!(world.recorded(), "../../team+b/workspace/b.txt");
    assert_eq!(world.write("theirs", "x").reason(), Some(Reason::OutOfScope));
}

/// While a thread swaps what stands on the way with links, no call reads or changes anything but
/// what its record names and its policy allows.
#[test]
fn raced_links_win_nothing() {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    let world = free();
    fs::create_dir(world.workspace("d")).unwrap();
    fs::write(world.workspace("d/s.txt"), "mine").unwrap();
    world.link("l", &format!("{BASE}/shared/secret"));
    world.link("way", "d");
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    let (mut read, mut refused, mut written) = (0, 0, 0);
    thread::scope(|scope| {
        scope.spawn(|| {
            let (one, other) = (world.workspace("d"), world.workspace("l"));
            while !stop.load(Ordering::Relaxed) {
                let swapped = renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE);
                swaps.fetch_add(u64::from(swapped.is_ok()), Ordering::Relaxed);
            }
        });
        while swaps.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for n in 0..6_000 {
                let path = if n % 2 == 0 { "d/s.txt" } else { "way/s.txt" };
                let result = world.read(path);
                match result.reason() {
                    None => {
                        let text = result.text().unwrap().to_owned();
                        assert!(text == "mine" || text == "new", "{text} was read");
                        let (intent, _) = result.receipt().intent.unwrap();
                        let entry = vault_entry(&mut world.store.share(), intent, intent).unwrap();
                        let args = Canonical::check(entry.args.unwrap(), Profile::DATA).unwrap();
                        let path = args.item().get("path").and_then(Item::as_text);
                        assert_eq!(path, Some("workspace/d/s.txt"));
                        read += 1;
                    }
                    Some(Reason::Constraint) => refused += 1,
                    Some(Reason::Link | Reason::Busy) => refused += 1,
                    other => panic!("{other:?}"),
                }
                if n % 20 == 0 {
                    written += u32::from(world.write(path, "new").reason().is_none());
                }
            }
        }));
        stop.store(true, Ordering::Relaxed);
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
    let swaps = swaps.into_inner();
    println!("{swaps} swaps; reads {read} ok, {refused} refused; {written} writes; 0 escapes");
    assert!(read > 0 && refused > 0 && written > 0, "the race was never lost or never won");
    assert_eq!(fs::read_to_string(world.files("shared/secret/s.txt")).unwrap(), SECRET);
    assert_eq!(fs::read_dir(world.files("shared/secret")).unwrap().count(), 1);
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("links::");
}
