//! Random trees with traps in them, and random calls of every tool that has to do with files: what
//! lies outside is never read or changed.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use host_support::{ample, by_cap_std};
use proptest::{collection::vec, prelude::*, sample::select};
use serde_json::{Value, json};
use syscap::audit::MemoryStore;
use syscap::format::{Durability, Rights, Scope};
use syscap::prelude::*;

const SECRET: &str = "SECRET-CANARY";
const TOOLS: [&str; 13] = [
    "fs.read",
    "fs.list",
    "fs.stat",
    "fs.search",
    "fs.write",
    "fs.edit",
    "fs.move",
    "fs.delete",
    "memory.read",
    "memory.list",
    "memory.write",
    "memory.delete",
    "vecdb.upsert",
];

/// A home with an agent, and something secret beside it.
struct World {
    dir: tempfile::TempDir,
    agent: Session,
}

impl World {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let outside = dir.path().join("outside");
        fs::create_dir_all(outside.join("folder")).unwrap();
        for path in ["secret", "folder/secret"] {
            fs::write(outside.join(path), SECRET).unwrap();
        }
        let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
        let rt = options.create(dir.path().join("home")).unwrap();
        let budget = ample();
        let grant = Grant::to("a").tools(TOOLS).path("workspace", Rights::ALL).budget(budget);
        let grant = grant.scope("collection", Scope::names(["docs"]).unwrap());
        let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
        Self { dir, agent }
    }

    fn files(&self) -> PathBuf {
        self.dir.path().join("home/files")
    }

    /// The folder that a tree is planted in: the workspace, what is remembered, the vectors.
    fn folder(&self, which: usize) -> PathBuf {
        let names = ["agents/a/workspace", "agents/a/memory", "agents/.vectors"];
        self.files().join(names[which % names.len()])
    }

    fn outside(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        use std::os::unix::fs::MetadataExt;
        ["outside/secret", "outside/folder/secret", "outside", "outside/folder"]
            .map(|name| {
                let path = self.dir.path().join(name);
                let meta = fs::symlink_metadata(&path).unwrap();
                let names = || fs::read_dir(&path).unwrap().map(|e| e.unwrap().file_name());
                let content = match meta.is_dir() {
                    true => format!("{:?}", names().collect::<std::collections::BTreeSet<_>>()),
                    false => fs::read_to_string(&path).unwrap(),
                };
                (path, meta.mode(), content.into_bytes())
            })
            .into()
    }

    /// Puts something there, where real folders lead.
    fn plant(&self, which: usize, path: &str, node: &Node) {
        let mut at = self.folder(which);
        fs::create_dir_all(&at).unwrap();
        let (way, name) = path.rsplit_once('/').unwrap_or(("", path));
        for name in way.split('/').filter(|name| !name.is_empty()) {
            at.push(name);
            if !fs::symlink_metadata(&at).is_ok_and(|meta| meta.is_dir())
                && fs::create_dir(&at).is_err()
            {
                return;
            }
        }
        at.push(name);
        match fs::symlink_metadata(&at) {
            Ok(meta) if meta.is_dir() => fs::remove_dir_all(&at).unwrap(),
            Ok(_) => fs::remove_file(&at).unwrap(),
            Err(_) => {}
        }
        let outside = self.dir.path().join("outside");
        match node {
            Node::File => fs::write(at, "mine: a line\n").unwrap(),
            Node::Folder => fs::create_dir(at).unwrap(),
            Node::Link(target) => symlink(target, at).unwrap(),
            Node::Absolute(target) => symlink(outside.join(target), at).unwrap(),
            Node::HardLink => fs::hard_link(outside.join("secret"), at).unwrap(),
        }
    }
}

#[derive(Clone, Debug)]
enum Node {
    File,
    Folder,
    Link(String),
    Absolute(&'static str),
    HardLink,
}

#[derive(Clone, Debug)]
enum Step {
    /// The owner of the machine changes a tree.
    Plant(usize, String, Node),
    Call(&'static str, Value),
}

/// Names of things in each of the folders: `k` is a key, `docs` a collection.
const NAMES: [&str; 7] = ["a", "b", "secret", "folder", "k", "docs.vec", ".."];

fn path() -> impl Strategy<Value = String> {
    vec(select(&NAMES[..]), 1..4).prop_map(|names| names.join("/"))
}

fn node() -> impl Strategy<Value = Node> {
    let part = select(&["a", "b", "..", "..", "../../../../outside", "secret", "folder"][..]);
    prop_oneof![
        3 => Just(Node::File),
        3 => Just(Node::Folder),
        4 => vec(part, 1..5).prop_map(|parts| Node::Link(parts.join("/"))),
        2 => select(&["", "secret", "folder", "new"][..]).prop_map(Node::Absolute),
        2 => Just(Node::HardLink),
    ]
}

fn plant() -> impl Strategy<Value = (usize, String, Node)> {
    (0..3_usize, path(), node())
        .prop_filter("of the owner's no path climbs", |(_, path, _)| !path.contains(".."))
}

fn call() -> impl Strategy<Value = (&'static str, Value)> {
    let one = |tool: &'static str, more: Value| {
        path().prop_map(move |path| {
            let mut args = json!({ "path": path });
            args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            (tool, args)
        })
    };
    prop_oneof![
        2 => one("fs.read", json!({})),
        1 => one("fs.list", json!({})),
        1 => one("fs.stat", json!({ "digest": true })),
        1 => one("fs.search", json!({ "pattern": "." })),
        1 => Just(("fs.search", json!({ "pattern": "SECRET" }))),
        2 => one("fs.write", json!({ "text": "mine: a line\n", "parents": true })),
        1 => one("fs.write", json!({ "text": "mine", "create_only": true })),
        2 => one("fs.edit", json!({ "old": "mine", "new": "mine" })),
        1 => one("fs.delete", json!({})),
        1 => one("fs.delete", json!({ "folder": true })),
        3 => (path(), path(), any::<bool>()).prop_map(|(from, to, replace)| {
            ("fs.move", json!({ "from": from, "to": to, "replace": replace, "parents": true }))
        }),
        1 => Just(("memory.read", json!({ "key": "k" }))),
        1 => Just(("memory.list", json!({}))),
        1 => Just(("memory.write", json!({ "key": "k", "value": "mine" }))),
        1 => Just(("memory.delete", json!({ "key": "k" }))),
        1 => Just(("vecdb.upsert", json!({ "items": [{ "id": "e", "embedding": [1, 2] }] }))),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        1 => plant().prop_map(|(which, path, node)| Step::Plant(which, path, node)),
        4 => call().prop_map(|(tool, args)| Step::Call(tool, args)),
    ]
}

fn config() -> ProptestConfig {
    let cases = if std::env::var_os("SYSCAP_LONG").is_some() { 1_500 } else { 150 };
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn no_tool_reads_or_changes_the_outside(
        tree in vec(plant(), 0..12),
        steps in vec(step(), 1..30),
    ) {
        let world = World::new();
        for (which, path, node) in &tree {
            world.plant(*which, path, node);
        }
        let before = world.outside();
        for step in &steps {
            match step {
                Step::Plant(which, path, node) => world.plant(*which, path, node),
                Step::Call(tool, args) => {
                    let result = world.agent.request(tool).json(&args.to_string(), Escapes::Data).wait();
                    let said = result.unwrap().to_json();
                    // A refusal says again what was asked for, and no more.
                    prop_assert!(!said.contains(SECRET), "{} {}: {}", tool, args, said);
                }
            }
        }
        prop_assert_eq!(world.outside(), before);
    }
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("file_trees::");
}
