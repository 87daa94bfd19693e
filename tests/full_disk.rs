//! A disk that is full, of bytes and of files: what was there is there, whole, no temporary file is
//! left, and when there is room again the same calls go on.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use host_support::{ample, by_cap_std};
use kernel_support::mounts::{mount, with_mounts};
use serde_json::{Value, json};
use syscap::audit::MemoryStore;
use syscap::format::{Durability, Scope};
use syscap::prelude::*;

const TOOLS: [&str; 7] = [
    "fs.write",
    "fs.edit",
    "fs.move",
    "memory.write",
    "vecdb.upsert",
    "vecdb.query",
    "email.draft",
];

struct World {
    _dir: tempfile::TempDir,
    base: PathBuf,
    rt: Runtime,
    agent: Session,
}

/// A home whose files lie on a small disk of their own, with a little of everything on it.
fn world() -> World {
    let mut dir = tempfile::tempdir().unwrap();
    dir.disable_cleanup(true);
    let base = dir.path().join("base");
    fs::create_dir(&base).unwrap();
    mount(&["-t", "tmpfs", "-o", "size=512k,nr_inodes=64", "none"], &base);
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let rt = options.base(&base).create(dir.path().join("home")).unwrap();
    let budget = ample();
    let grant = Grant::to("a").tools(TOOLS).workspace().budget(budget);
    let grant = grant.scope("recipient", Scope::names(["ann@example.com"]).unwrap());
    let grant = grant.scope("collection", Scope::names(["docs"]).unwrap());
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    let world = World { _dir: dir, base, rt, agent };
    world.fine(
        "fs.write",
        &json!({ "path": "old", "text": format!("once {}", "old ".repeat(2_000)) }),
    );
    world.fine("fs.write", &json!({ "path": "moved", "text": "moved" }));
    world.fine("memory.write", &json!({ "key": "k", "value": "old" }));
    let items = json!([{ "id": "east", "embedding": vec![1; 256] }]);
    world.fine("vecdb.upsert", &json!({ "items": items }));
    world.fine("email.draft", &mail("first"));
    world
}

fn mail(subject: &str) -> Value {
    json!({ "to": "ann@example.com", "subject": subject, "body": "x".repeat(8_000) })
}

/// Calls that each need room that is not there.
fn calls() -> Vec<(&'static str, Value)> {
    let vector = vec![2; 2_048];
    let items: Vec<Value> =
        (0..8).map(|n| json!({ "id": format!("n{n}"), "embedding": vector[..256] })).collect();
    vec![
        ("fs.write", json!({ "path": "old", "text": "new ".repeat(3_000) })),
        ("fs.write", json!({ "path": "new/er", "text": "new", "parents": true })),
        ("fs.edit", json!({ "path": "old", "old": "once", "new": "twice" })),
        ("memory.write", json!({ "key": "k", "value": "new ".repeat(2_000) })),
        ("memory.write", json!({ "key": "another", "value": "new ".repeat(2_000) })),
        ("vecdb.upsert", json!({ "items": items })),
        ("email.draft", mail("second")),
    ]
}

impl World {
    fn call(&self, tool: &str, args: &Value) -> ToolResult {
        self.agent.request(tool).json(&args.to_string(), Escapes::Data).wait().unwrap()
    }

    fn fine(&self, tool: &str, args: &Value) {
        let result = self.call(tool, args);
        assert_eq!(result.reason(), None, "{tool}: {}", result.to_json());
    }

    fn file(&self, path: &str) -> PathBuf {
        self.base.join("agents/a/workspace").join(path)
    }

    /// All that lies on the disk, but what fills it.
    fn all(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut found = BTreeMap::new();
        let mut folders = vec![self.base.clone()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
                let path = entry.path();
                if entry.file_name() == "filler" {
                    continue;
                }
                if entry.file_type().unwrap().is_dir() {
                    folders.push(path);
                } else {
                    found.insert(path.clone(), fs::read(path).unwrap());
                }
            }
        }
        found
    }
}

/// Takes every byte that is left.
fn fill(base: &Path) {
    let mut file = fs::File::create(base.join("filler")).unwrap();
    for size in [4_096, 1] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

#[test]
fn a_disk_without_a_byte_keeps_what_was_there() {
    with_mounts("full_disk::a_disk_without_a_byte_keeps_what_was_there", || {
        let world = world();
        fill(&world.base);
        let before = world.all();
        for (tool, args) in calls() {
            let result = world.call(tool, &args);
            assert_eq!(result.reason(), Some(Reason::DiskFull), "{tool}: {}", result.to_json());
            assert_eq!(world.all(), before, "{tool}");
        }
        // A name needs no room: it is there once, whole.
        world.fine("fs.move", &json!({ "from": "moved", "to": "there" }));
        assert_eq!(fs::read(world.file("there")).unwrap(), b"moved");
        assert!(!world.file("moved").exists());
        world.fine("vecdb.query", &json!({ "embedding": vec![1; 256], "k": 3 }));
        fs::remove_file(world.base.join("filler")).unwrap();
        for (tool, args) in calls().into_iter().filter(|(tool, _)| *tool != "fs.edit") {
            world.fine(tool, &args);
        }
        world.rt.close().unwrap();
    });
}

#[test]
fn a_disk_without_a_file_keeps_what_was_there() {
    with_mounts("full_disk::a_disk_without_a_file_keeps_what_was_there", || {
        let world = world();
        fs::create_dir(world.base.join("filler")).unwrap();
        let more = |n: u32| fs::File::create(world.base.join(format!("filler/{n}"))).is_ok();
        assert!((0..).take_while(|n| more(*n)).count() > 3);
        let before = world.all();
        let mut all = calls();
        // To a file that is there a vector is added without another file.
        all.retain(|(tool, _)| *tool != "vecdb.upsert");
        all.push(("fs.move", json!({ "from": "moved", "to": "new/there", "parents": true })));
        for (tool, args) in all {
            let result = world.call(tool, &args);
            assert_eq!(result.reason(), Some(Reason::DiskFull), "{tool}: {}", result.to_json());
            assert_eq!(world.all(), before, "{tool}");
        }
        world.rt.close().unwrap();
    });
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("full_disk::");
}
