//! A yes is for what was shown: the same words under another token name something else.

use std::{fs, path::PathBuf};

use host_support::new_home;
use syscap::approvals::{Rows, SetTerms};
use syscap::format::{ApprovalAnswer, Seq};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};

const POLICY: &str = r#"{"v": 1, "constraints": [
    {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
     "on_fail": "block", "reason": "Fine."},
    {"id": "writes", "effect": "deny", "subject": {"tool_id": "fs.write"},
     "when": {"op": "all", "args": []}, "on_fail": "ask", "reason": "Somebody looks at it."}
]}"#;

struct World {
    _folder: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

impl World {
    fn new() -> Self {
        let (folder, home) = new_home();
        let policy = Policy::from_json(POLICY.as_bytes()).unwrap();
        let rt = Options::new().policy(policy).create(&home).unwrap();
        Self { _folder: folder, home, rt }
    }

    /// A session of the agent's whose token lets it write there.
    fn writing(&self, root: &str) -> (TokenId, Session) {
        let token = self.rt.issue(Grant::to("a").tools(["fs.write"]).write(root)).unwrap();
        (token, self.rt.session("a", token).unwrap())
    }

    fn read(&self, at: &str) -> Option<String> {
        fs::read_to_string(self.home.join("files").join(at)).ok()
    }

    /// Nothing that happened contradicts what is on record.
    fn end(self) {
        self.rt.close().unwrap();
        let trust = TrustSource::File(self.home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        let report = verify_home(&self.home, &options).unwrap();
        assert_eq!((report.findings.len(), report.verdict()), (0, Soundness::Sound));
    }
}

fn write(agent: &Session) -> ToolResult {
    agent.call("fs.write", args! { "path": "shared/a.sh", "text": "new", "parents": true }).unwrap()
}

/// Under the one token it is a file in the workspace, under the other one that others read.
#[test]
fn a_yes_in_one_root_lets_nothing_through_in_another() {
    let world = World::new();
    let (_, own) = world.writing("workspace");
    let (_, shared) = world.writing("shared");
    let ask = write(&own).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    let other = write(&shared).ask().unwrap();
    assert_ne!(other, ask, "a person is asked about that by itself");
    assert_eq!(world.read("shared/a.sh"), None);
    // It waits there where it was asked.
    assert_eq!(write(&own).reason(), None);
    assert_eq!(world.read("agents/a/workspace/shared/a.sh").as_deref(), Some("new"));
    world.end();
}

/// Nor where what was seen is there too, as a copy that the agent has made.
#[test]
fn a_copy_of_what_was_seen_is_not_what_was_seen() {
    let world = World::new();
    for at in ["files/shared", "files/agents/a/workspace/shared"] {
        fs::create_dir_all(world.home.join(at)).unwrap();
        fs::write(world.home.join(at).join("a.sh"), "as it was").unwrap();
    }
    let ((_, own), (_, shared)) = (world.writing("workspace"), world.writing("shared"));
    let ask = write(&own).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert!(write(&shared).ask().is_some_and(|other| other != ask));
    assert_eq!(world.read("shared/a.sh").as_deref(), Some("as it was"));
    world.end();
}

/// Nor under another token for the same place: a yes goes on with its own, and with what renews it.
#[test]
fn a_yes_goes_on_under_its_token_or_one_that_renews_it() {
    let world = World::new();
    let (first, own) = world.writing("workspace");
    let (_, other) = world.writing("workspace");
    let ask: Seq = write(&own).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert!(write(&other).ask().is_some_and(|anew| anew != ask));
    assert_eq!(world.read("agents/a/workspace/shared/a.sh"), None);
    let renewal = Grant::to("a").tools(["fs.write"]).write("workspace").renews(first);
    let renewed = world.rt.session("a", world.rt.issue(renewal).unwrap()).unwrap();
    assert_eq!(write(&renewed).reason(), None);
    assert_eq!(world.read("agents/a/workspace/shared/a.sh").as_deref(), Some("new"));
    world.end();
}

/// Nor under one that renews it, but names another place.
#[test]
fn a_renewal_for_another_place_takes_nothing_up() {
    let world = World::new();
    let (first, own) = world.writing("workspace");
    let ask = write(&own).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    let renewal = Grant::to("a").tools(["fs.write"]).write("shared").renews(first);
    let renewed = world.rt.session("a", world.rt.issue(renewal).unwrap()).unwrap();
    assert!(write(&renewed).ask().is_some_and(|anew| anew != ask));
    assert_eq!(world.read("shared/a.sh"), None);
    world.end();
}

/// What differs is told from a call that somebody was shown: not from one that a set let through.
#[test]
fn call_under_a_standing_approval_is_no_reference_for_changes() {
    let world = World::new();
    let (_, agent) = world.writing("workspace");
    let send = |path: &str, text: &str| {
        agent.call("fs.write", args! { "path": path, "text": text }).unwrap()
    };
    let compared = |ask: Seq| {
        let log = Options::new().inspect(&world.home).unwrap();
        let call = log.waiting().unwrap().into_iter().find(|call| call.ask == ask).unwrap();
        Rows::open(&world.home).unwrap().compared(&call).unwrap().map(|last| last.changed.unwrap())
    };
    let ask = send("a.txt", "harmless").ask().unwrap();
    let terms = SetTerms { uses: 9, scopes: None, expires: None };
    world.rt.answer_set(ask, &terms, None).unwrap();
    assert_eq!(send("a.txt", "harmful").reason(), None);
    let ask = send("b.txt", "harmful").ask().unwrap();
    assert_eq!(compared(ask), None);
    world.rt.answer(ask, ApprovalAnswer::Once, None).unwrap();
    assert_eq!(send("b.txt", "harmful").reason(), None);
    let ask = send("c.txt", "harmful").ask().unwrap();
    let names: Vec<_> = compared(ask).unwrap().into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["path"]);
    world.end();
}

/// A no is one whoever asks again.
#[test]
fn a_no_holds_under_every_token() {
    let world = World::new();
    let ((_, own), (_, other)) = (world.writing("workspace"), world.writing("workspace"));
    let ask = write(&own).ask().unwrap();
    world.rt.answer(ask, ApprovalAnswer::Deny, Some("not that")).unwrap();
    assert_eq!(write(&other).reason(), Some(Reason::ApprovalDenied));
    world.end();
}
