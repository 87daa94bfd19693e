//! `fs.stat`, `fs.search`, `fs.edit`, `fs.move` and `fs.delete`: what each does, and what neither
//! token nor policy lets it do.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use host_support::{by_cap_std, new_home};
use syscap::Args;
use syscap::audit::MemoryStore;
use syscap::format::{
    AgentId, ApprovalAnswer, Durability, Item, Rights, Root, RootedPath, Rule, Scope, TxOutcome,
};
use syscap::policy::Policy;
use syscap::prelude::*;

const TOOLS: [&str; 8] =
    ["fs.read", "fs.list", "fs.stat", "fs.search", "fs.write", "fs.edit", "fs.move", "fs.delete"];

struct World {
    _dir: tempfile::TempDir,
    files: PathBuf,
    rt: Runtime,
    agent: Session,
}

fn world(policy: Option<&str>, grant: impl Fn(Grant) -> Grant) -> World {
    let (dir, home) = new_home();
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let options = match policy {
        Some(json) => options.policy(Policy::from_json(json.as_bytes()).unwrap()),
        None => options,
    };
    let rt = options.create(&home).unwrap();
    let token = rt.issue(grant(Grant::to("a").tools(TOOLS))).unwrap();
    let agent = rt.session("a", token).unwrap();
    World { _dir: dir, files: home.join("files"), rt, agent }
}

impl World {
    fn call(&self, tool: &str, args: Args) -> ToolResult {
        self.agent.call(tool, args).unwrap()
    }

    fn file(&self, path: &str) -> PathBuf {
        self.files.join("agents/a/workspace").join(path)
    }

    fn put(&self, path: &str, text: &str) {
        fs::create_dir_all(self.file(path).parent().unwrap()).unwrap();
        fs::write(self.file(path), text).unwrap();
    }

    fn text(&self, path: &str) -> String {
        fs::read_to_string(self.file(path)).unwrap()
    }

    /// `path:line` of each match.
    fn search(&self, args: Args) -> Vec<String> {
        let result = self.call("fs.search", args);
        assert_eq!(result.reason(), None);
        let value = result.value().unwrap();
        let shown = |found: Item<'_>| {
            let path = found.get("path").and_then(Item::as_text).unwrap().to_owned();
            format!("{path}:{}", found.get("line").and_then(Item::as_uint).unwrap())
        };
        value.get("matches").unwrap().elements().map(shown).collect()
    }
}

#[test]
fn stat_says_what_stands_there() {
    let world = world(None, Grant::workspace);
    world.put("d/a.txt", "hello");
    symlink("d/a.txt", world.file("link")).unwrap();
    let seen = world.call("fs.stat", args! { "path": "d/a.txt", "digest": true });
    let value = seen.value().unwrap();
    let text = |name| value.get(name).and_then(Item::as_text).map(str::to_owned);
    assert_eq!(text("kind").unwrap(), "file");
    assert_eq!(value.get("size_bytes").and_then(Item::as_uint), Some(5));
    // Of "hello", by FIPS 180-4.
    let hello = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824";
    assert_eq!(text("sha256").unwrap(), hello);
    let kind = |path: &str| {
        let seen = world.call("fs.stat", args! { "path": path });
        seen.value().map(|v| v.get("kind").and_then(Item::as_text).unwrap().to_owned()).ok()
    };
    assert_eq!(kind("d").as_deref(), Some("folder"));
    assert_eq!(kind(".").as_deref(), Some("folder"));
    assert_eq!(kind("link").as_deref(), Some("link"));
    let missing = world.call("fs.stat", args! { "path": "none" });
    assert_eq!(missing.reason(), Some(Reason::NotFound));
    let outside = world.call("fs.stat", args! { "path": "../../b/workspace/x" });
    assert_eq!(outside.reason(), Some(Reason::OutOfScope));
}

#[test]
fn an_edit_replaces_what_stands_there_once() {
    let world = world(None, Grant::workspace);
    world.put("a.rs", "fn a() {}\nfn b() {}\nfn c() {}\n");
    let edit = |old: &str, new: &str| {
        world.call("fs.edit", args! { "path": "a.rs", "old": old, "new": new })
    };
    let done = edit("fn b() {}", "fn b() -> u8 {\n    1\n}");
    assert_eq!((done.reason(), done.tx_outcome()), (None, TxOutcome::Committed));
    assert_eq!(world.text("a.rs"), "fn a() {}\nfn b() -> u8 {\n    1\n}\nfn c() {}\n");
    let value = done.value().unwrap();
    assert_eq!(value.get("line").and_then(Item::as_uint), Some(2));
    let diff = value.get("diff").and_then(Item::as_text).unwrap();
    let wanted =
        "@@ -1,3 +1,5 @@\n fn a() {}\n-fn b() {}\n+fn b() -> u8 {\n+    1\n+}\n fn c() {}\n";
    assert_eq!(diff, wanted);
    let size = u64::try_from(world.text("a.rs").len()).unwrap();
    assert_eq!(done.receipt().used.get(Dimension::DiskWriteBytes), size);
    let before = world.text("a.rs");
    for (old, new, reason) in [
        ("fn ", "x", Reason::NoMatch),
        ("none", "x", Reason::NoMatch),
        ("fn a", "fn a", Reason::BadArgument),
        ("", "x", Reason::BadArgument),
    ] {
        let refused = edit(old, new);
        assert_eq!(refused.reason(), Some(reason), "{old}");
        assert_eq!(refused.receipt().used.get(Dimension::DiskWriteBytes), 0);
    }
    // What overlaps itself stands there twice.
    world.put("x", "aaa");
    let twice = world.call("fs.edit", args! { "path": "x", "old": "aa", "new": "b" });
    assert_eq!(twice.reason(), Some(Reason::NoMatch));
    fs::write(world.file("bytes"), b"a\xff").unwrap();
    let bytes = world.call("fs.edit", args! { "path": "bytes", "old": "a", "new": "b" });
    assert_eq!(bytes.reason(), Some(Reason::NoMatch));
    let args = args! { "path": "a.rs", "old": "fn a", "new": "fn aa", "max_bytes": 10_u64 };
    assert_eq!(world.call("fs.edit", args).reason(), Some(Reason::FileTooLarge));
    let args = args! { "path": "x", "old": "aaa", "new": "bbbbbbbbbbb", "max_bytes": 10_u64 };
    assert_eq!(world.call("fs.edit", args).reason(), Some(Reason::FileTooLarge));
    assert_eq!((world.text("a.rs"), world.text("x")), (before, "aaa".to_owned()));
}

/// A write tells nothing of what was there: a policy may forbid to read it by another tool's name.
#[test]
fn a_write_shows_nothing_of_what_was_there() {
    let world = world(None, |grant| grant.workspace().path("drop", Rights::WRITE));
    fs::write(world.files.join("drop/a"), "secret\n").unwrap();
    world.put("a", "known\n");
    for path in ["a", "drop/a"] {
        let written = world.call("fs.write", args! { "path": path, "text": "new\n" });
        let value = written.value().unwrap();
        let mut keys: Vec<&str> = value.entries().map(|(key, _)| key).collect();
        keys.sort_unstable();
        assert_eq!(keys, ["created", "folders", "size_bytes"]);
    }
    let edit = args! { "path": "drop/a", "old": "new", "new": "x" };
    assert_eq!(world.call("fs.edit", edit).reason(), Some(Reason::OutOfScope));
}

/// GHSA-4ch3-9j33-3pmj: a rename out of a root that can be read gave the right to write, and one
/// out of a root that can be written gives the right to read.
#[test]
fn ghsa_4ch3_9j33_3pmj_no_move_between_roots_gives_a_right() {
    let world = world(None, |grant| {
        grant.workspace().read("library").path("drop", Rights::WRITE).read("shared").write("shared")
    });
    for root in ["library", "drop", "shared"] {
        fs::write(world.files.join(root).join("x"), root).unwrap();
    }
    world.put("mine", "mine");
    let go = |from: &str, to: &str| world.call("fs.move", args! { "from": from, "to": to });
    for (from, to, field) in [
        ("library/x", "taken", "from"),
        ("drop/x", "taken", "from"),
        ("mine", "library/y", "to"),
        ("../../b/workspace/x", "taken", "from"),
        ("mine", "../../b/workspace/x", "to"),
    ] {
        let refused = go(from, to);
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{from} to {to}");
        assert!(refused.to_json().contains(&format!(r#""field":"{field}""#)), "{from} to {to}");
        assert!(!world.file("taken").exists());
    }
    for path in ["library/x", "../../b/workspace/x"] {
        let refused = world.call("fs.delete", args! { "path": path });
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{path}");
    }
    assert_eq!(go("mine", "drop/y").reason(), None);
    assert_eq!(go("shared/x", "from_shared").reason(), None);
    assert_eq!(world.text("from_shared"), "shared");
    assert_eq!(go("from_shared", "drop/y").reason(), Some(Reason::Exists));
    assert_eq!(world.call("fs.delete", args! { "path": "drop/x" }).reason(), None);
    assert!(world.files.join("library/x").exists() && !world.files.join("drop/x").exists());
}

#[test]
fn a_delete_takes_one_name() {
    let world = world(None, Grant::workspace);
    world.put("d/a", "a");
    symlink("d", world.file("way")).unwrap();
    let delete = |path: &str, folder: bool| {
        world.call("fs.delete", args! { "path": path, "folder": folder }).reason()
    };
    assert_eq!(delete("d", false), Some(Reason::NotAFile));
    assert_eq!(delete("d", true), Some(Reason::NotEmpty));
    assert_eq!(delete("way/a", false), Some(Reason::Link));
    assert_eq!(delete(".", true), Some(Reason::NotAFile));
    assert_eq!(delete("d/a/", false), Some(Reason::BadPath));
    assert_eq!(delete("way", false), None);
    assert_eq!(world.text("d/a"), "a");
    assert_eq!((delete("d/a", false), delete("d/", true)), (None, None));
    assert_eq!(delete("d", true), Some(Reason::NotFound));
}

#[test]
fn a_search_finds_lines() {
    let world = world(None, Grant::workspace);
    world.put("b.md", "one\nTwo a+b\nthree\n");
    world.put("a/c.md", "two\n\u{e9}t\u{e9} two\n");
    world.put("a/d.txt", "two");
    world.put("z.bin", "two\0");
    // A sparse file of a tebibyte is passed over, and ends nothing.
    fs::File::create(world.file("a0")).unwrap().set_len(1 << 40).unwrap();
    fs::hard_link(world.file("b.md"), world.file("hard")).unwrap();
    fs::hard_link(world.file("z.bin"), world.file("hard2")).unwrap();
    fs::remove_file(world.file("hard")).unwrap();
    symlink("/etc", world.file("etc")).unwrap();
    assert_eq!(world.search(args! { "pattern": "two" }), ["a/c.md:1", "a/c.md:2", "a/d.txt:1"]);
    let lower = args! { "pattern": "^two", "ignore_case": true, "name": "*.md" };
    assert_eq!(world.search(lower), ["b.md:2", "a/c.md:1"]);
    assert_eq!(world.search(args! { "pattern": "a+b", "literal": true }), ["b.md:2"]);
    assert_eq!(world.search(args! { "pattern": "two", "path": "a", "limit": 1_u64 }), ["c.md:1"]);
    let cut = world.call("fs.search", args! { "pattern": "two", "limit": 1_u64 });
    assert_eq!(cut.value().unwrap().get("truncated").and_then(Item::as_bool), Some(true));
    let all = world.call("fs.search", args! { "pattern": "two" });
    let value = all.value().unwrap();
    assert_eq!(value.get("truncated").and_then(Item::as_bool), Some(false));
    // Two names of a file that has two, the link, and what is too large.
    assert_eq!(value.get("skipped").and_then(Item::as_uint), Some(4));
    assert_eq!(value.get("files").and_then(Item::as_uint), Some(3));
    let bad = world.call("fs.search", args! { "pattern": "(a)\\1" });
    assert_eq!(bad.reason(), Some(Reason::BadArgument));
    let missing = world.call("fs.search", args! { "pattern": "x", "path": "none" });
    assert_eq!(missing.reason(), Some(Reason::NotFound));
}

/// A pattern for which every text is hard ends within what was set aside, and the token goes on.
#[test]
fn a_hard_pattern_ends_within_what_was_set_aside() {
    let world = world(None, Grant::workspace);
    let mut x = 12_345_u64;
    let mut letter = || {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        if x >> 20 & 1 == 0 { 'a' } else { 'b' }
    };
    for n in 0..15 {
        let lines =
            (0..240).map(|_| (0..4_000).map(|_| letter()).chain(['\n']).collect::<String>());
        world.put(&format!("{n}.txt"), &lines.collect::<String>());
    }
    let found = world.call("fs.search", args! { "pattern": "(a[ab]{0,40}){8}[^ab]" });
    assert_eq!(found.reason(), None);
    let truncated = found.value().unwrap().get("truncated").and_then(Item::as_bool);
    assert_eq!(truncated, Some(true));
    assert_eq!(world.search(args! { "pattern": "c" }), [""; 0]);
}

/// What no read may show, a search of the folder above may not show either.
#[test]
fn a_search_sees_no_more_than_a_read() {
    // A token that takes a part away.
    let rule = |below: &[&str], rights| {
        let owner = Root::Workspace(AgentId::new("a").unwrap());
        Rule { path: RootedPath::new(owner, below).unwrap(), rights }
    };
    let rules = [rule(&[], Rights::READ), rule(&["private"], Rights::NONE)];
    let narrow = world(None, |grant| grant.scope("path", Scope::paths(rules.clone()).unwrap()));
    narrow.put("private/x", "needle");
    narrow.put("open/x", "needle");
    let refused = narrow.call("fs.search", args! { "pattern": "needle" });
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    assert_eq!(narrow.search(args! { "pattern": "needle", "path": "open" }), ["x:1"]);
    // A policy that does.
    let policy = r#"{"v": 1, "constraints": [
        {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
         "on_fail": "block", "reason": "Fine."},
        {"id": "private", "effect": "deny", "subject": null,
         "when": {"op": "within", "args": ["args.path", "workspace/private"]},
         "on_fail": "block", "reason": "Nobody reads that."}
    ]}"#;
    let closed = world(Some(policy), Grant::workspace);
    closed.put("private/deep/x", "needle");
    closed.put("open/x", "needle");
    for path in [".", "private", "private/deep", "workspace"] {
        let refused = closed.call("fs.search", args! { "pattern": "needle", "path": path });
        assert_eq!(refused.reason(), Some(Reason::Constraint), "{path}");
    }
    assert_eq!(closed.search(args! { "pattern": "needle", "path": "open" }), ["x:1"]);
    assert_eq!(closed.call("fs.list", args! { "path": "." }).reason(), None);
}

/// What was shown to the person who approved must still be so.
#[test]
fn moved_file_must_be_the_approved_one() {
    let policy = r#"{"v": 1, "constraints": [
        {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
         "on_fail": "block", "reason": "Fine."},
        {"id": "writes", "effect": "deny", "subject": {"capability": "local_write"},
         "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
    ]}"#;
    let world = world(Some(policy), Grant::workspace);
    let approved = |tool: &str, args: Args, between: &dyn Fn()| {
        let ask = world.call(tool, args.clone()).ask().unwrap();
        world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
        between();
        world.call(tool, args).reason()
    };
    let nothing = || ();
    world.put("a", "a");
    let delete = args! { "path": "a" };
    let change = || world.put("a", "b");
    assert_eq!(approved("fs.delete", delete.clone(), &change), Some(Reason::Changed));
    assert_eq!(world.text("a"), "b");
    assert_eq!(approved("fs.delete", delete, &nothing), None);
    assert!(!world.file("a").exists());
    world.put("from", "from");
    let go = args! { "from": "from", "to": "to", "replace": true };
    let appear = || world.put("to", "theirs");
    assert_eq!(approved("fs.move", go.clone(), &appear), Some(Reason::Changed));
    let change = || world.put("from", "other");
    assert_eq!(approved("fs.move", go.clone(), &change), Some(Reason::Changed));
    assert_eq!((world.text("from"), world.text("to")), ("other".to_owned(), "theirs".to_owned()));
    assert_eq!(approved("fs.move", go, &nothing), None);
    assert_eq!(world.text("to"), "other");
    let edit = args! { "path": "to", "old": "other", "new": "new" };
    let change = || world.put("to", "other too");
    assert_eq!(approved("fs.edit", edit.clone(), &change), Some(Reason::Changed));
    assert_eq!(world.text("to"), "other too");
    assert_eq!(approved("fs.edit", edit, &nothing), None);
    assert_eq!(world.text("to"), "new too");
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("file_tools::");
}
