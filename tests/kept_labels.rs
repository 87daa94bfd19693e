//! What a session had read stays with what it wrote: whoever reads that later has read it too.

use std::{fs, path::PathBuf, process::Command};

use host_support::{by_cap_std, end, new_home, records};
use syscap::Args;
use syscap::format::{Body, Confidentiality, EffectClass, Integrity, Label};
use syscap::host::HostTool;
use syscap::prelude::*;

const SECRET: Label = Label::new(Integrity::Untrusted, Confidentiality::Private);

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

fn world() -> World {
    let (dir, home) = new_home();
    let tool = HostTool::new("mail.read", EffectClass::Read).unwrap().labelled(SECRET);
    let tool = tool.run(|_| Ok("a stranger's word"));
    let rt = Options::new().tool(tool).unwrap().create(&home).unwrap();
    World { _dir: dir, home, rt }
}

impl World {
    fn session(&self) -> Session {
        let tools =
            ["fs.read", "fs.write", "fs.edit", "fs.move", "fs.stat", "fs.search", "mail.read"];
        let token = self.rt.issue(Grant::to("a").tools(tools).workspace()).unwrap();
        self.rt.session("a", token).unwrap()
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.join("files/agents/a/workspace").join(name)
    }

    /// What a call brings a session that had read nothing.
    fn brings(&self, tool: &str, args: Args) -> Label {
        let session = self.session();
        let result = session.call(tool, args).unwrap();
        assert_eq!(result.reason(), None, "{tool}");
        session.call("fs.stat", args! { "path": "." }).unwrap();
        let given = records(&self.home).into_iter().rev().find_map(|record| match record.body {
            Body::Intent(intent) => Some(intent.label),
            _ => None,
        });
        given.unwrap()
    }

    /// Writes by a session that has read a stranger's word.
    fn write(&self, name: &str, text: &str) -> ToolResult {
        let session = self.session();
        session.call("mail.read", args! {}).unwrap();
        session.call("fs.write", args! { "path": name, "text": text }).unwrap()
    }
}

#[test]
fn file_keeps_the_label_of_its_writer() {
    let world = world();
    assert_eq!(world.write("a", "needle\n").reason(), None);
    fs::write(world.file("plain"), "needle\n").unwrap();
    let of = |name: &str| args! { "path": name };
    assert_eq!(world.brings("fs.read", of("a")), SECRET);
    assert_eq!(world.brings("fs.read", of("plain")), Label::PUBLIC);
    assert_eq!(world.brings("fs.stat", of("a")), Label::PUBLIC, "nothing of the content");
    assert_eq!(world.brings("fs.stat", args! { "path": "a", "digest": true }), SECRET);
    assert_eq!(world.brings("fs.search", args! { "pattern": "needle" }), SECRET);
    let other = args! { "pattern": "needle", "name": "plain" };
    assert_eq!(world.brings("fs.search", other), Label::PUBLIC);
    // A move takes it along, and an edit keeps it.
    assert_eq!(world.brings("fs.move", args! { "from": "a", "to": "b" }), Label::PUBLIC);
    assert_eq!(world.brings("fs.read", of("b")), SECRET);
    let edit = args! { "path": "b", "old": "needle", "new": "thread" };
    assert_eq!(world.brings("fs.edit", edit), SECRET);
    assert_eq!(world.brings("fs.read", of("b")), SECRET);
    // A write shows nothing of what was there; what is written anew is the writer's alone.
    let written = args! { "path": "b", "text": "mine" };
    assert_eq!(world.brings("fs.write", written), Label::PUBLIC);
    assert_eq!(world.brings("fs.read", of("b")), Label::PUBLIC);
    end(&world.rt, &world.home);
}

/// What stands there and is no label was put there by somebody else.
#[test]
fn a_label_that_can_not_be_read_is_the_most_careful() {
    let world = world();
    world.write("a", "x");
    let worst = Label::new(Integrity::Untrusted, Confidentiality::Sensitive);
    for value in ["\u{1}\u{1}", "", "much longer than a label"] {
        let mut python = Command::new("python3");
        let code =
            "import os, sys; os.setxattr(sys.argv[1], 'user.syscap.label', sys.argv[2].encode())";
        python.args(["-c", code]).arg(world.file("a")).arg(value);
        if !python.status().is_ok_and(|status| status.success()) {
            println!("skipped: no python3 to write an attribute with");
            return;
        }
        assert_eq!(world.brings("fs.read", args! { "path": "a" }), worst, "{value:?}");
    }
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("kept_labels::");
}
