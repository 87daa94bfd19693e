//! What opens an agent's files: it is in the record, a home can ask for it, and no call changes it.

use std::{fs, path::Path};

use host_support::records;
use kernel_support::absent::{ABSENT, without_openat2};
use syscap::Home;
use syscap::format::{Body, Durability, Enforcement, Item, Reason};
use syscap::policy::Policy;
use syscap::prelude::*;
use syscap::syscalls::beneath::{FsError, Openers};
use syscap::verify::{Options as VerifyOptions, verify_home};

fn options() -> Options {
    Options::new().durability(Durability::Process)
}

/// What a write and a read in a home were enforced by, by their receipts.
fn levels(rt: &Runtime) -> [Enforcement; 2] {
    let grant = Grant::to("a").tools(["fs.read", "fs.write"]).workspace();
    let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    let write = agent.call("fs.write", args! { "path": "f", "text": "x" }).unwrap();
    let read = agent.call("fs.read", args! { "path": "f" }).unwrap();
    assert_eq!(read.text().unwrap(), "x");
    [write, read].map(|result| result.receipt().enforcement)
}

#[test]
fn the_level_is_on_record() {
    let dir = tempfile::tempdir().unwrap();
    for (openers, level) in [
        (Openers::Strongest, Enforcement::Openat2),
        (Openers::Openat2, Enforcement::Openat2),
        (Openers::CapStd, Enforcement::CapStd),
    ] {
        let home = dir.path().join(openers.name());
        let rt = options().openers(openers).create(&home).unwrap();
        assert_eq!(levels(&rt), [level; 2]);
        rt.close().unwrap();
        let outcomes = records(&home).into_iter().filter_map(|record| match record.body {
            Body::Outcome(outcome) => outcome.call.enforcement,
            _ => None,
        });
        assert_eq!(outcomes.collect::<Vec<_>>(), [level; 2], "{openers:?}");
    }
}

/// A policy that asks for `openat2` lets a file's tool run where that opens its files, and nothing
/// where something weaker does; what opens no file can't promise it either.
#[test]
fn a_policy_can_demand_the_level() {
    const DEMANDS: &[u8] = br#"{
        "v": 1, "constraints": [
            {"id": "all", "effect": "allow", "subject": null, "when": {"op": "all", "args": []},
             "on_fail": "block", "reason": "", "obligations": [{"type": "openat2"}]}
        ]
    }"#;
    let dir = tempfile::tempdir().unwrap();
    for (openers, level) in [
        (Openers::Openat2, Some(Enforcement::Openat2)),
        (Openers::CapStd, None), // Refused: nothing was opened at all.
    ] {
        let home = dir.path().join(openers.name());
        let policy = Policy::from_json(DEMANDS).unwrap();
        let rt = options().openers(openers).policy(policy).create(&home).unwrap();
        let grant = Grant::to("a").tools(["fs.write", "memory.write", "echo"]).workspace();
        let agent = rt.session("a", rt.issue(grant).unwrap()).unwrap();
        let file = agent.call("fs.write", args! { "path": "f", "text": "x" }).unwrap();
        let kept = agent.call("memory.write", args! { "key": "k", "value": "x" }).unwrap();
        let echo = agent.call("echo", args! { "value": "x" }).unwrap();
        for result in [&file, &kept] {
            let reason = level.is_none().then_some(Reason::Obligation);
            assert_eq!(result.reason(), reason, "{openers:?}");
            assert_eq!(result.degraded(), [], "nothing is taken away");
            if level.is_none() {
                let field = result.delivered().item().get("field").and_then(Item::as_text);
                assert_eq!(field, Some("openat2"));
            }
        }
        assert_eq!(echo.reason(), Some(Reason::Obligation), "{openers:?}");
        rt.close().unwrap();
        let outcomes = records(&home).into_iter().filter_map(|record| match record.body {
            Body::Outcome(outcome) => outcome.call.enforcement,
            _ => None,
        });
        let wanted = Vec::from_iter([level, level].into_iter().flatten());
        assert_eq!(outcomes.collect::<Vec<_>>(), wanted, "{openers:?}");
        let report = verify_home(&home, &VerifyOptions::default()).unwrap();
        assert_eq!(report.findings, []);
    }
}

/// Where the system has no `openat2`, a home that asks for none other is not opened and none is
/// made; one that asks for nothing is, at the level that there is.
#[test]
fn a_home_is_not_opened_by_less_than_it_asks_for() {
    let dir = tempfile::tempdir().unwrap();
    let (strict, usual) = (dir.path().join("strict"), dir.path().join("usual"));
    options().openers(Openers::Openat2).create(&strict).unwrap().close().unwrap();
    let rt = options().create(&usual).unwrap();
    assert_eq!(levels(&rt), [Enforcement::Openat2; 2]);
    rt.close().unwrap();
    let elsewhere = dir.path().join("base");
    fs::create_dir(&elsewhere).unwrap();
    for errno in ABSENT {
        without_openat2(errno, || {
            let is_refused = |opened: Result<Runtime, Error>| {
                assert!(matches!(opened, Err(Error::Base(FsError::Unsupported))));
            };
            is_refused(options().open(&strict));
            let new = dir.path().join("new");
            is_refused(options().openers(Openers::Openat2).create(&new));
            is_refused(options().openers(Openers::Openat2).base(&elsewhere).create(&new));
            assert_eq!(fs::read_dir(&new).unwrap().count(), 0, "nothing was made");
            // What is on record can be looked at all the same.
            assert!(options().inspect(&strict).is_ok());
            let rt = options().open(&usual).unwrap();
            assert_eq!(levels(&rt), [Enforcement::CapStd; 2]);
            rt.close().unwrap();
        });
    }
    let rt = options().open(&strict).unwrap();
    assert_eq!(levels(&rt), [Enforcement::Openat2; 2]);
    rt.close().unwrap();
}

/// A home says it by name; what is no opener's opens nothing.
#[test]
fn a_home_says_what_opens_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let says = |home: &Path, text: &str| fs::write(home.join("opener"), text).unwrap();
    let home = dir.path().join("home");
    options().create(&home).unwrap().close().unwrap();
    assert_eq!(Home::at(&home).openers().unwrap(), Openers::Strongest);
    assert!(!home.join("opener").exists());
    says(&home, "cap_std\n");
    let rt = options().open(&home).unwrap();
    assert_eq!(levels(&rt), [Enforcement::CapStd; 2]);
    rt.close().unwrap();
    for text in ["", "openat", "lexical", "\u{fe}"] {
        says(&home, text);
        assert!(matches!(options().open(&home), Err(Error::File { .. })), "{text:?}");
    }
}
