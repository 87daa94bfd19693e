//! Agents' files, through the kernel: every path of the corpora is refused or stays inside its
//! scope, and so is every trap that a workspace can hold.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use host_support::{ample, by_cap_std};
use syscap::audit::MemoryStore;
use syscap::format::{Durability, Item, Rights};
use syscap::prelude::*;

const SECRET: &str = "SECRET-CANARY";

struct World {
    _dir: tempfile::TempDir,
    outside: PathBuf,
    home: PathBuf,
    rt: Runtime,
    agent: Session,
}

fn world(grant: impl Fn(Grant) -> Grant) -> World {
    let dir = tempfile::tempdir().unwrap();
    let (home, outside) = (dir.path().join("home"), dir.path().join("outside"));
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret.txt"), SECRET).unwrap();
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let rt = options.create(&home).unwrap();
    let budget = ample();
    let tools = [
        "fs.read",
        "fs.list",
        "fs.write",
        "fs.stat",
        "fs.search",
        "fs.edit",
        "fs.move",
        "fs.delete",
    ];
    let token = rt.issue(grant(Grant::to("a").tools(tools).budget(budget))).unwrap();
    let agent = rt.session("a", token).unwrap();
    World { _dir: dir, outside, home, rt, agent }
}

impl World {
    fn workspace(&self) -> PathBuf {
        self.home.join("files/agents/a/workspace")
    }

    fn read(&self, path: &str) -> ToolResult {
        self.agent.call("fs.read", args! { "path": path }).unwrap()
    }

    fn write(&self, path: &str, text: &str) -> ToolResult {
        self.agent.call("fs.write", args! { "path": path, "text": text }).unwrap()
    }

    fn list(&self, path: &str) -> ToolResult {
        self.agent.call("fs.list", args! { "path": path }).unwrap()
    }
}

fn data() -> Option<PathBuf> {
    let named = std::env::var_os("SYSCAP_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let found = named.unwrap_or(beside);
    found.join("paths").is_dir().then_some(found)
}

/// Every file and folder below, with its content, in order.
fn tree(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_path_buf()];
    while let Some(folder) = folders.pop() {
        let mut entries: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap()).collect();
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
                folders.push(entry.path());
            }
            let content = if kind.is_file() { fs::read(entry.path()).unwrap() } else { vec![] };
            found.push((entry.path(), content));
        }
    }
    found
}

/// Each line of the corpora, given to every tool: refused, or inside the workspace.
#[test]
fn every_path_of_the_corpora_is_refused_or_inside_its_scope() {
    let Some(data) = data() else {
        println!("skipped: no SYSCAP_DATA");
        return;
    };
    let world = world(Grant::workspace);
    let mut lines = 0;
    let (mut admitted, mut done) = (0, 0);
    let outside = tree(&world.outside);
    let passwd = fs::read("/etc/passwd").unwrap();
    for file in fs::read_dir(data.join("paths")).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
            let path = String::from_utf8_lossy(line);
            lines += 1;
            // What can be read is what an earlier line wrote, and nothing else.
            if let Ok(text) = world.read(&path).text() {
                assert_eq!(text, "mine", "{path} was read");
            }
            if world.write(&path, "mine").reason().is_none() {
                admitted += 1;
                // What was written lies in the workspace, and can be read back by that name.
                assert_eq!(world.read(&path).text().unwrap(), "mine");
            }
            world.list(&path);
            let (path, other) = (path.as_ref(), "other");
            for (tool, args) in [
                ("fs.stat", args! { "path": path, "digest": true }),
                ("fs.search", args! { "path": path, "pattern": "SECRET|root:" }),
                ("fs.edit", args! { "path": path, "old": "mine", "new": "mine" }),
                ("fs.move", args! { "from": path, "to": other }),
                ("fs.move", args! { "from": other, "to": path }),
                ("fs.move", args! { "from": path, "to": other, "replace": true }),
                ("fs.delete", args! { "path": path }),
                ("fs.delete", args! { "path": path, "folder": true }),
                ("fs.delete", args! { "path": other }),
            ] {
                let result = world.agent.call(tool, args).unwrap();
                let said = result.to_json();
                assert!(
                    !said.contains(SECRET) && !said.contains("root:x"),
                    "{tool} {path}: {said}"
                );
                done += u32::from(result.reason().is_none());
            }
            if lines % 64 == 0 {
                // Only the workspace has changed; so far it is all that there is to clear.
                fs::remove_dir_all(world.workspace()).unwrap();
                fs::create_dir(world.workspace()).unwrap();
            }
        }
    }
    assert!(lines > 1_500, "{lines} lines");
    assert_eq!(tree(&world.outside), outside);
    assert_eq!(fs::read("/etc/passwd").unwrap(), passwd);
    let below = |path: &Path| path.starts_with(world.home.join("files"));
    let strays: Vec<_> = tree(&world.home)
        .into_iter()
        .filter(|(path, content)| content == b"mine" && !below(path))
        .collect();
    assert!(strays.is_empty(), "{strays:?}");
    let elsewhere: Vec<_> = tree(&world.home.join("files"))
        .into_iter()
        .filter(|(path, _)| path.is_file() && !path.starts_with(world.workspace()))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
    println!(
        "{lines} lines, {admitted} of them were names inside the workspace, {done} calls done"
    );
    world.rt.close().unwrap();
}

/// Each trap in the workspace, read, listed and written: refused, and the outside unchanged.
#[test]
fn traps_in_the_workspace_lead_nowhere() {
    let world = world(Grant::workspace);
    let (workspace, outside) = (world.workspace(), &world.outside);
    symlink(outside, workspace.join("rel")).unwrap();
    symlink(outside.join("secret.txt"), workspace.join("abs")).unwrap();
    symlink("../../../../../outside/secret.txt", workspace.join("up")).unwrap();
    symlink("/proc/self/root", workspace.join("magic")).unwrap();
    fs::hard_link(outside.join("secret.txt"), workspace.join("hard")).unwrap();
    let before = tree(outside);
    for (path, reasons) in [
        ("abs", &[Reason::Link][..]),
        ("up", &[Reason::Link]),
        ("rel/secret.txt", &[Reason::Link]),
        ("rel/../secret.txt", &[Reason::NotFound]),
        ("magic/etc/passwd", &[Reason::Link]),
        ("hard", &[Reason::NotAFile]),
        ("abs/", &[Reason::BadPath]),
        ("/etc/passwd", &[Reason::BadPath]),
        ("..\\..\\x", &[Reason::BadPath]),
        ("a\0b", &[Reason::BadPath]),
        ("../../../../../../etc/passwd", &[Reason::BadPath]),
        ("../../b/workspace/x", &[Reason::OutOfScope]),
        ("../../../home.db", &[Reason::OutOfScope]),
        ("../x", &[Reason::BadPath]),
        ("", &[Reason::BadArgument]),
        (".", &[Reason::NotAFile]),
    ] {
        let read = world.read(path);
        assert!(reasons.contains(&read.reason().unwrap()), "read {path}: {:?}", read.reason());
        let shown = format!("{:?}", read.delivered());
        assert!(!shown.contains(SECRET), "{path} was read");
        assert!(world.list(path).reason().is_some() || path == ".", "list {path}");
    }
    // What a write does to a name that exists: links and hard links are refused.
    for path in ["abs", "up", "rel/new.txt", "magic/tmp/x", "hard", "../../b/workspace/x"] {
        assert!(world.write(path, "overwritten").reason().is_some(), "write {path}");
    }
    assert_eq!(tree(outside), before);
}

/// Links that a grant lets be followed must end inside what it grants, by what is opened.
#[test]
fn followed_links_stay_within_the_grant() {
    let follow = Rights::READ.union(Rights::WRITE).union(Rights::FOLLOW);
    let world = world(|grant| grant.path("workspace", follow));
    let workspace = world.workspace();
    fs::write(workspace.join("real.txt"), "inside").unwrap();
    fs::create_dir_all(world.home.join("files/shared")).unwrap();
    fs::write(world.home.join("files/shared/s.txt"), SECRET).unwrap();
    symlink("real.txt", workspace.join("link")).unwrap();
    symlink("../../../shared/s.txt", workspace.join("sideways")).unwrap();
    symlink(world.outside.join("secret.txt"), workspace.join("out")).unwrap();
    assert_eq!(world.read("link").text().unwrap(), "inside");
    // `shared` is below the base, but not granted.
    assert_eq!(world.read("sideways").reason(), Some(Reason::OutOfScope));
    assert_eq!(world.read("out").reason(), Some(Reason::OutOfScope));
    assert_eq!(world.write("sideways", "x").reason(), Some(Reason::OutOfScope));
    assert_eq!(fs::read_to_string(world.home.join("files/shared/s.txt")).unwrap(), SECRET);
}

/// A root that is granted for reading can't be written, by whatever name.
#[test]
fn rights_are_by_root() {
    let world = world(|grant| grant.workspace().read("shared"));
    fs::write(world.home.join("files/shared/s.txt"), "shared").unwrap();
    assert_eq!(world.read("shared/s.txt").text().unwrap(), "shared");
    assert_eq!(world.read("../../../shared/s.txt").text().unwrap(), "shared");
    for path in ["shared/s.txt", "shared/new", "../../../shared/s.txt", "x/../../../../shared/s"] {
        assert_eq!(world.write(path, "x").reason(), Some(Reason::OutOfScope), "{path}");
    }
    assert_eq!(fs::read_to_string(world.home.join("files/shared/s.txt")).unwrap(), "shared");
}

/// Where a root's folder is missing no tool makes a file in its place, by whatever name, and the
/// next token that names it makes the folder.
#[test]
fn a_missing_root_does_not_become_a_file() {
    let all = Rights::ALL;
    let world = world(|grant| grant.path("workspace", all).path("proj", all).path("shared", all));
    let files = world.home.join("files");
    let agents = files.join("agents");
    let paths = [
        "proj",
        "proj/.",
        "./../../../proj",
        "proj/x/..",
        "link",
        ".",
        "workspace",
        "x/..",
        "../workspace",
        "..",
        "../..",
        "../../..",
        "../../b",
        "../other",
        "../../../agents",
        "shared/../proj",
        "shared/../agents/a",
        "../../../other",
    ];
    for parents in [false, true] {
        for path in paths {
            let (proj, workspace) = (files.join("proj"), world.workspace());
            if path == "link" {
                symlink("../../../proj", workspace.join("link")).unwrap();
            } else {
                fs::remove_dir_all(&workspace).unwrap();
            }
            fs::remove_dir_all(&proj).unwrap();
            for text in ["", "x"] {
                let args = args! { "path": path, "text": text, "parents": parents };
                let result = world.agent.call("fs.write", args).unwrap();
                assert!(result.reason().is_some(), "{path} was written");
                assert!(world.read(path).reason().is_some());
            }
            let below = tree(&files);
            let is_file = |(path, _): &(PathBuf, _)| path.is_file();
            assert!(!below.iter().any(is_file), "{path}: {below:?}");
            assert!(fs::read_dir(&agents).unwrap().count() == 1, "{path}");
            let grant = Grant::to("a").tools(["fs.read"]).workspace().read("proj");
            world.rt.issue(grant).unwrap();
            assert!(proj.is_dir() && workspace.is_dir(), "{path}");
        }
    }
    // What lies in a root is made, with the root itself where that is asked for.
    fs::remove_dir_all(files.join("proj")).unwrap();
    assert_eq!(world.write("proj/a.txt", "x").reason(), Some(Reason::NotFound));
    let args = args! { "path": "proj/a.txt", "text": "x", "parents": true };
    assert_eq!(world.agent.call("fs.write", args).unwrap().reason(), None);
    assert_eq!(fs::read_to_string(files.join("proj/a.txt")).unwrap(), "x");
}

/// What a model would do first works.
#[test]
fn reading_writing_and_listing() {
    let world = world(Grant::workspace);
    let written = world.write("notes.txt", "one");
    assert_eq!(written.value().unwrap().get("created").and_then(Item::as_bool), Some(true));
    let again = world.write("notes.txt", "two");
    assert_eq!(again.value().unwrap().get("created").and_then(Item::as_bool), Some(false));
    assert_eq!(world.read("notes.txt").text().unwrap(), "two");
    assert_eq!(world.read("./notes.txt").text().unwrap(), "two");
    assert_eq!(world.read("workspace/notes.txt").text().unwrap(), "two");
    assert_eq!(world.write("deep/er/x.txt", "x").reason(), Some(Reason::NotFound));
    let args = args! { "path": "deep/er/x.txt", "text": "x", "parents": true };
    let made = world.agent.call("fs.write", args).unwrap();
    assert_eq!(made.value().unwrap().get("folders").and_then(Item::as_uint), Some(2));
    assert_eq!(made.receipt().used.get(Dimension::DiskFiles), 3);
    let args = args! { "path": "notes.txt", "text": "x", "create_only": true };
    assert_eq!(world.agent.call("fs.write", args).unwrap().reason(), Some(Reason::Exists));
    let listing = world.list(".");
    let names: Vec<String> = listing
        .value()
        .unwrap()
        .get("entries")
        .unwrap()
        .elements()
        .map(|entry| entry.get("name").and_then(Item::as_text).unwrap().to_owned())
        .collect();
    assert_eq!(names, ["deep", "notes.txt"]);
    let bytes: &[u8] = &[0, 159, 146, 150];
    let args = args! { "path": "b", "bytes": bytes };
    assert!(world.agent.call("fs.write", args).unwrap().reason().is_none());
    let read = world.read("b");
    assert_eq!(read.value().unwrap().get("bytes").and_then(Item::as_byte_string), Some(bytes));
    // A part of a text that ends within a character is cut before it.
    world.write("u", "a\u{e9}b");
    let part = world.agent.call("fs.read", args! { "path": "u", "max_bytes": 2_u64 }).unwrap();
    assert_eq!(part.text().unwrap(), "a");
    assert_eq!(part.value().unwrap().get("more").and_then(Item::as_bool), Some(true));
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("files::");
}
