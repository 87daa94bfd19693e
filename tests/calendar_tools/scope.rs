//! Which files are read, what a call may ask, and what its answer carries.

use std::{fs, os::unix::fs::symlink};

use host_support::end;
use syscap::Args;
use syscap::format::{AgentId, Body, Label, Paths, Rights, Root, RootedPath, Rule, Scope};
use syscap::prelude::*;

use crate::calendar_tools::records;
use crate::calendar_tools::world::{calendar, grant, seen, skipped, world};

const EVENT: &str = "UID:u\nDTSTART:20260304T081500Z";

fn with_path(path: &str) -> Args {
    args! { "from": "2026-03-01", "to": "2026-04-01", "path": path }
}

#[test]
fn only_what_the_token_grants_is_read() {
    let world = world();
    for folder in ["shared/team", "shared/other", "agents/other/workspace/calendar"] {
        let folder = world.home.join("files").join(folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("x.ics"), calendar(&[EVENT])).unwrap();
    }
    world.put("x.ics", calendar(&[EVENT]));
    let grant = || Grant::to("team/a").tools(["calendar.find"]);
    let reason = |grant: Grant, path: &str| {
        world.session(grant).call("calendar.find", with_path(path)).unwrap().reason()
    };
    let out = Some(Reason::OutOfScope);
    assert_eq!(reason(grant(), "calendar"), out, "no scope, no files");
    assert_eq!(reason(grant().write("workspace"), "calendar"), out, "to write is not to read");
    let some = || grant().read("workspace/calendar").read("shared/team");
    for (path, expected) in [
        ("calendar", None),
        ("calendar/x.ics", None),
        ("shared/team", None),
        ("shared/team/x.ics", None),
        (".", out),
        ("other.ics", out),
        ("shared", out),
        ("shared/other", out),
        ("shared/other/x.ics", out),
        ("../../other/workspace/calendar", out),
        ("../../other/workspace/calendar/x.ics", out),
        ("calendar/../../../other/workspace/calendar/x.ics", out),
        ("calendar/none.ics", Some(Reason::NotFound)),
        ("calendar/none", Some(Reason::NotFound)),
        ("calendar/x.ics/", Some(Reason::NotAFolder)),
        ("/etc", Some(Reason::BadPath)),
        ("calendar\\x.ics", Some(Reason::BadPath)),
    ] {
        assert_eq!(reason(some(), path), expected, "{path}");
    }
    // One file is enough to ask for one file, and not for those beside it.
    assert_eq!(reason(grant().read("workspace/calendar/x.ics"), "calendar/x.ics"), None);
    assert_eq!(reason(grant().read("workspace/calendar/x.ics"), "calendar"), out);
    // A folder of which a part may not be read is not gone through.
    let root = Root::Workspace(AgentId::new("team/a").unwrap());
    let rule = |path: &[&str], rights| {
        let path = RootedPath::new(root.clone(), path.iter().copied()).unwrap();
        Rule { path, rights }
    };
    let rules = [rule(&["calendar"], Rights::READ), rule(&["calendar", "private"], Rights::WRITE)];
    let part = || grant().scope("path", Scope::Paths(Paths::new(rules.clone()).unwrap()));
    assert_eq!(reason(part(), "calendar"), out);
    assert_eq!(reason(part(), "calendar/private"), out);
    assert_eq!(reason(part(), "calendar/x.ics"), None);
}

/// A link, a pipe, a file of two names: none is followed or opened.
#[test]
fn calendar_link_or_pipe_is_not_opened() {
    let world = world();
    let outside = world.home.join("files/secret.ics");
    fs::write(&outside, calendar(&["UID:secret\nDTSTART:20260304T081500Z"])).unwrap();
    world.put("ok.ics", calendar(&[EVENT]));
    let folder = world.workspace().join("calendar");
    symlink(&outside, folder.join("link.ics")).unwrap();
    symlink(world.home.join("files"), folder.join("folder")).unwrap();
    symlink("/etc/passwd", folder.join("passwd.ics")).unwrap();
    fs::hard_link(&outside, folder.join("hard.ics")).unwrap();
    fs::create_dir(folder.join("folder.ics")).unwrap();
    let pipe = std::process::Command::new("mkfifo").arg(folder.join("pipe.ics")).status();
    assert!(pipe.unwrap().success());
    let result = world.find(with_path("calendar"));
    assert_eq!(seen(&result).iter().map(|one| one.uid.as_str()).collect::<Vec<_>>(), ["u"]);
    let expected = ["hard.ics", "link.ics", "passwd.ics", "pipe.ics"]
        .map(|name| format!("{name}: unreadable"));
    assert_eq!(skipped(&result), expected);
    let session = world.session(grant());
    for (path, reason) in [
        ("calendar/link.ics", Reason::Link),
        ("calendar/passwd.ics", Reason::Link),
        ("calendar/hard.ics", Reason::NotAFile),
        ("calendar/pipe.ics", Reason::NotAFile),
        ("calendar/folder.ics", Reason::NotAFile),
        ("calendar/folder", Reason::Link),
    ] {
        let refused = session.call("calendar.find", with_path(path)).unwrap();
        assert_eq!(refused.reason(), Some(reason), "{path}");
    }
}

#[test]
fn a_range_is_bounded_and_said_in_one_way() {
    let world = world();
    world.put("x.ics", calendar(&[EVENT]));
    let session = world.session(grant());
    let call =
        |args: &str| session.request("calendar_find").json(args, Escapes::Data).wait().unwrap();
    for args in [
        r#"{"range": "2026-03-01/2026-04-01"}"#,
        r#"{"range": {"from": "2026-03-01", "to": "2026-04-01"}}"#,
        r#"{"from": "2026-03-01T00:00:00Z", "to": "2026-04-01T00:00", "zone": "Asia/Tokyo"}"#,
        r#"{"from": "2026-01-01", "to": "2027-01-02", "range": null}"#,
    ] {
        let result = call(args);
        assert_eq!(result.reason(), None, "{}", result.to_json());
        assert_eq!(seen(&result).len(), 1, "{args}");
    }
    for args in [
        "{}",
        r#"{"from": "2026-03-01"}"#,
        r#"{"to": "2026-03-01"}"#,
        r#"{"range": "2026-03-01"}"#,
        r#"{"range": "2026-03-01/2026-04-01/2026-05-01"}"#,
        r#"{"range": ["2026-03-01", "2026-04-01"]}"#,
        r#"{"range": 7}"#,
        r#"{"range": {"from": "2026-03-01"}}"#,
        r#"{"range": "2026-03-01/2026-04-01", "from": "2026-03-01"}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-01"}"#,
        r#"{"from": "2026-03-02", "to": "2026-03-01"}"#,
        r#"{"from": "2026-01-01", "to": "2027-01-03"}"#,
        r#"{"from": "0000-01-01", "to": "0000-01-02"}"#,
        r#"{"from": "9999-12-30", "to": "9999-12-31"}"#,
        r#"{"from": "+292277026596-12-04", "to": "2026-01-01"}"#,
        r#"{"from": "yesterday", "to": "2026-01-01"}"#,
        r#"{"from": 20260101, "to": "2026-01-01"}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-02", "zone": "../../etc/passwd"}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-02", "zone": "Nowhere"}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-02", "limit": 0}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-02", "limit": 1001}"#,
        r#"{"from": "2026-03-01", "to": "2026-03-02", "text": ""}"#,
    ] {
        assert_eq!(call(args).reason(), Some(Reason::BadArgument), "{args}");
    }
    let more = r#"{"range": "2026-03-01/2026-04-01", "url": "http://x.test"}"#;
    assert_eq!(call(more).reason(), Some(Reason::UnknownArgument));
}

/// What a stranger's word was written into brings that word, also where nothing is found in it.
#[test]
fn a_calendar_keeps_its_label() {
    let world = world();
    let tainted = world.session(grant());
    tainted.call("stranger.say", args! {}).unwrap();
    let text = calendar(&["UID:planted\nDTSTART:20300304T081500Z"]);
    let path = "calendar/planted.ics";
    let written = tainted.call("fs.write", args! { "path": path, "text": &*text }).unwrap();
    assert_eq!(written.reason(), None);
    drop(tainted);
    world.put("own.ics", calendar(&[EVENT]));
    let brings = |path: &str| {
        let session = world.session(grant());
        session.call("calendar.find", with_path(path)).unwrap();
        session.call("stranger.say", args! {}).unwrap();
        drop(session);
        let label = |record: syscap::format::Record| match record.body {
            Body::Intent(intent) => Some(intent.label),
            _ => None,
        };
        records(&world.home).into_iter().rev().find_map(label).unwrap()
    };
    assert_eq!(brings("calendar/own.ics"), Label::PUBLIC);
    assert_eq!(brings("calendar/planted.ics"), Label::UNTRUSTED);
    assert_eq!(brings("calendar"), Label::UNTRUSTED);
    end(&world.rt, &world.home);
}
