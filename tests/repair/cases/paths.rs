//! Paths: their forms, and what stands there.

use serde_json::Value;
use syscap::prelude::Reason::{self, BadPath, Exists, Link, NotAFile, NotAFolder, NotFound};

use super::{Case, fix, sent};
use crate::repair::world::World;

fn a_txt(world: &World, _: &Value) -> bool {
    world.file("a.txt").as_deref() == Some("hi")
}

fn bees(_: &World, result: &Value) -> bool {
    result["text"] == "bees"
}

fn wasps(_: &World, result: &Value) -> bool {
    result["text"] == "wasps"
}

pub(crate) fn cases() -> Vec<Case> {
    let mut all = forms();
    all.extend(places());
    all
}

fn forms() -> Vec<Case> {
    vec![
        fix("absolute", ("fs.write", r#"{"path": "/tmp/a.txt", "text": "hi"}"#), BadPath, a_txt),
        fix(
            "absolute, below a root's name",
            ("fs.read", r#"{"path": "/srv/a/workspace/notes/old.txt"}"#),
            BadPath,
            wasps,
        ),
        fix(
            "climbing out",
            ("fs.write", r#"{"path": "../../../../etc/a.txt", "text": "hi"}"#),
            BadPath,
            a_txt,
        ),
        fix("backslashes", ("fs.read", r#"{"path": "notes\\old.txt"}"#), BadPath, wasps),
        fix(
            "a drive",
            ("fs.write", r#"{"path": "C:\\Users\\me\\a.txt", "text": "hi"}"#),
            BadPath,
            a_txt,
        ),
        fix("a slash behind", ("fs.read", r#"{"path": "notes.txt/"}"#), BadPath, bees),
        fix("a NUL", ("fs.read", r#"{"path": "notes.txt\u0000"}"#), BadPath, bees),
        sent(
            "a name too long",
            |_| {
                let name = "x".repeat(300);
                format!(r#"{{"tool_id": "fs.write", "args": {{"path": "{name}", "text": "hi"}}}}"#)
            },
            BadPath,
            |world, _| world.file(&"x".repeat(255)).as_deref() == Some("hi"),
        ),
        fix("nothing", ("fs.list", r#"{"path": ""}"#), Reason::BadArgument, |_, result| {
            result["entries"].as_array().is_some_and(|all| all.len() > 2)
        }),
    ]
}

fn places() -> Vec<Case> {
    vec![
        fix(
            "no such folder",
            ("fs.write", r#"{"path": "new/a.txt", "text": "hi"}"#),
            NotFound,
            |world, _| world.file("new/a.txt").as_deref() == Some("hi"),
        ),
        fix(
            "there already",
            ("fs.write", r#"{"path": "notes.txt", "text": "hi", "create_only": true}"#),
            Exists,
            |world, _| {
                world.file("notes-2.txt").as_deref() == Some("hi")
                    && world.file("notes.txt").as_deref() == Some("bees")
            },
        ),
        fix(
            "a file is no folder",
            ("fs.list", r#"{"path": "notes/old.txt"}"#),
            NotAFolder,
            |_, result| result["entries"][0]["name"] == "old.txt",
        ),
        // What the caller would have to look up first: one retry isn't enough.
        sent(
            "a link",
            |world| {
                let link = world.files().join("agents/a/workspace/link.txt");
                std::os::unix::fs::symlink("notes.txt", link).unwrap();
                r#"{"tool_id": "fs.read", "args": {"path": "link.txt"}}"#.to_owned()
            },
            Link,
            bees,
        ),
        fix("a file misspelt", ("fs.read", r#"{"path": "note.txt"}"#), NotFound, bees),
        fix("a folder is no file", ("fs.read", r#"{"path": "notes"}"#), NotAFile, wasps),
    ]
}
