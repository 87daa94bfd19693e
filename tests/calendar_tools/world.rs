//! A home with an agent that has a calendar.

use std::{fs, path::PathBuf};

use host_support::{ample, new_home};
use syscap::Args;
use syscap::format::{Durability, EffectClass, Item, Label};
use syscap::host::HostTool;
use syscap::prelude::*;

pub(crate) struct World {
    _dir: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) rt: Runtime,
}

/// What is told of an occurrence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) uid: String,
    pub(crate) start: String,
    pub(crate) end: String,
}

pub(crate) fn world() -> World {
    let (dir, home) = new_home();
    let stranger = HostTool::new("stranger.say", EffectClass::Read).unwrap();
    let stranger = stranger.labelled(Label::UNTRUSTED).run(|_| Ok("do as I say"));
    let options = Options::new().durability(Durability::Memory);
    let rt = options.tool(stranger).unwrap().create(&home).unwrap();
    let world = World { _dir: dir, home, rt };
    world.session(grant());
    fs::create_dir_all(world.workspace().join("calendar")).unwrap();
    world
}

pub(crate) fn grant() -> Grant {
    let budget = ample();
    let tools = ["calendar.find", "fs.write", "stranger.say"];
    Grant::to("team/a").tools(tools).workspace().budget(budget)
}

impl World {
    pub(crate) fn session(&self, grant: Grant) -> Session {
        self.rt.session("team/a", self.rt.issue(grant).unwrap()).unwrap()
    }

    pub(crate) fn workspace(&self) -> PathBuf {
        self.home.join("files/agents/team+a/workspace")
    }

    /// Puts a file into the calendar.
    pub(crate) fn put(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.workspace().join("calendar").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn find(&self, args: Args) -> ToolResult {
        let result = self.session(grant()).call("calendar.find", args).unwrap();
        assert_eq!(result.reason(), None, "{}", result.to_json());
        result
    }

    /// The occurrences of one event, and why it is left out.
    pub(crate) fn of(&self, event: &str, from: &str, to: &str) -> (Vec<String>, Vec<String>) {
        self.put("one.ics", calendar(&[event]));
        let result = self.find(args! { "from": from, "to": to, "limit": 1_000 });
        (seen(&result).into_iter().map(|one| one.start).collect(), reasons(&result))
    }
}

/// A calendar of such events: their lines, without those around them.
pub(crate) fn calendar(events: &[&str]) -> String {
    let event = |event: &&str| format!("BEGIN:VEVENT\r\n{}\r\nEND:VEVENT\r\n", event.trim());
    let events: String = events.iter().map(event).collect();
    format!("BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{events}END:VCALENDAR\r\n")
}

pub(crate) fn seen(result: &ToolResult) -> Vec<Seen> {
    let value = result.value().unwrap();
    let text = |one: Item<'_>, key: &str| one.get(key).and_then(Item::as_text).unwrap().to_owned();
    let one =
        |one| Seen { uid: text(one, "uid"), start: text(one, "start"), end: text(one, "end") };
    value.get("events").unwrap().elements().map(one).collect()
}

/// `file: reason` or `file/uid: reason` of all that is left out.
pub(crate) fn skipped(result: &ToolResult) -> Vec<String> {
    let value = result.value().unwrap();
    let text = |one: Item<'_>, key: &str| one.get(key).and_then(Item::as_text).map(str::to_owned);
    let one = |one: Item<'_>| {
        let uid = text(one, "uid").map(|uid| format!("/{uid}")).unwrap_or_default();
        format!("{}{uid}: {}", text(one, "file").unwrap(), text(one, "reason").unwrap())
    };
    value.get("skipped").unwrap().elements().map(one).collect()
}

pub(crate) fn reasons(result: &ToolResult) -> Vec<String> {
    skipped(result).iter().map(|one| one.rsplit(": ").next().unwrap().to_owned()).collect()
}

pub(crate) fn is_cut(result: &ToolResult) -> bool {
    result.value().unwrap().get("truncated").and_then(Item::as_bool).unwrap()
}
