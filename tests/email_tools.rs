//! `email.draft`: who it may be for, what is kept, and that other programs read what was meant.

use std::{fs, path::PathBuf, process::Command};

use host_support::{ample, by_cap_std};
use proptest::prelude::*;
use syscap::format::{Durability, Item, Scope};
use syscap::prelude::*;

struct World {
    dir: tempfile::TempDir,
    rt: Runtime,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    World { dir, rt }
}

fn grant() -> Grant {
    let budget = ample();
    let grant = Grant::to("team/a").tools(["email.draft", "fs.read", "fs.list"]).workspace();
    let grant = grant.scope("recipient", Scope::names(["ann@example.com"]).unwrap());
    grant.scope("recipient_host", Scope::hosts(["*.test"]).unwrap()).budget(budget)
}

impl World {
    fn session(&self, grant: Grant) -> Session {
        self.rt.session("team/a", self.rt.issue(grant).unwrap()).unwrap()
    }

    fn drafts(&self) -> PathBuf {
        self.dir.path().join("home/files/agents/team+a/mail/Drafts")
    }

    /// What is kept, in the order of their names.
    fn kept(&self) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.drafts().join("cur")) else { return Vec::new() };
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.sort();
        paths.iter().map(|path| fs::read_to_string(path).unwrap()).collect()
    }
}

fn draft(session: &Session, args: &str) -> ToolResult {
    session.request("email.draft").json(args, Escapes::Data).wait().unwrap()
}

#[test]
fn a_draft_is_kept_in_a_maildir() {
    let world = world();
    let session = world.session(grant());
    let args = r#"{"to": "ann@example.com", "cc": ["Bob@Mail.TEST"], "bcc": ["c@x.test"],
        "subject": "Dinner, 7 \u00fcber all", "body": "Dear Ann,\n\nat seven?\n.\nFrom here"}"#;
    let result = draft(&session, args);
    let value = result.value().unwrap();
    assert_eq!(value.get("recipients").and_then(Item::as_uint), Some(3));
    let file = value.get("file").and_then(Item::as_text).unwrap();
    assert!(file.ends_with(":2,D"), "{file}: marked as a draft");
    let kept = fs::read(world.drafts().join("cur").join(file)).unwrap();
    assert_eq!(value.get("bytes").and_then(Item::as_uint), Some(kept.len() as u64));
    assert_eq!(result.receipt().used.get(Dimension::DiskWriteBytes), kept.len() as u64);
    for folder in ["new", "tmp"] {
        assert_eq!(fs::read_dir(world.drafts().join(folder)).unwrap().count(), 0);
    }
    // No file tool leads to it.
    let refused = session.call("fs.list", args! { "path": "../mail/Drafts/cur" }).unwrap();
    assert!(refused.reason().is_some());
}

#[test]
fn each_recipient_must_be_permitted() {
    let world = world();
    let session = world.session(grant());
    for (args, reason) in [
        (r#"{"to": "bob@example.com", "#, Reason::OutOfScope),
        (r#"{"to": "Ann@example.com", "#, Reason::OutOfScope),
        (r#"{"to": ["ann@example.com", "eve@evil.example"], "#, Reason::OutOfScope),
        (r#"{"to": "ann@example.com", "cc": "eve@evil.example", "#, Reason::OutOfScope),
        (r#"{"to": "ann@example.com", "bcc": ["eve@evil.example"], "#, Reason::OutOfScope),
        (r#"{"to": "a@test", "#, Reason::BadArgument),
        (r#"{"to": "ann@example.com, eve@evil.example", "#, Reason::BadArgument),
        (r#"{"to": "ann@example.com\r\nBcc: eve@evil.example", "#, Reason::BadArgument),
        (r#"{"to": "Ann <ann@example.com>", "#, Reason::BadArgument),
        (r#"{"to": ["ann@example.com", "ANN@example.com"], "#, Reason::BadArgument),
        (r#"{"to": "ann@example.com", "cc": "ann@example.com", "#, Reason::BadArgument),
        (r#"{"to": [], "#, Reason::BadArgument),
        (r#"{"to": {"a": 1}, "#, Reason::BadArgument),
    ] {
        let refused = draft(&session, &format!(r#"{args}"subject": "s", "body": "b"}}"#));
        assert_eq!(refused.reason(), Some(reason), "{args}");
    }
    let many: Vec<String> = (0..101).map(|n| format!("\"n{n}@x.test\"")).collect();
    let many = format!(r#"{{"to": [{}], "subject": "s", "body": "b"}}"#, many.join(","));
    assert_eq!(draft(&session, &many).reason(), Some(Reason::BadArgument));
    assert_eq!(world.kept(), [""; 0]);
    // Without a scope there is nobody.
    let nobody = world.session(Grant::to("team/a").tools(["email.draft"]));
    let refused = draft(&nobody, r#"{"to": "ann@example.com", "subject": "s", "body": "b"}"#);
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
}

#[test]
fn a_subject_is_one_line_and_a_body_is_text() {
    let world = world();
    let session = world.session(grant());
    for subject in [
        "a\\r\\nBcc: eve@evil.example",
        "a\\nb",
        "a\\u2028b",
        "a\\u0000b",
        "a\\u0085b",
        "=?utf-8?q?a?=",
        "a =?x",
        "pay\\u202etxt.exe",
        "a\\u200bb",
        " a",
        "",
    ] {
        let args = format!(r#"{{"to": "ann@example.com", "subject": "{subject}", "body": "b"}}"#);
        assert_eq!(draft(&session, &args).reason(), Some(Reason::BadArgument), "{subject}");
    }
    for body in ["a\\rb", "a\\u0000b", "a\\u001b[2Jb", ""] {
        let args = format!(r#"{{"to": "ann@example.com", "subject": "s", "body": "{body}"}}"#);
        assert_eq!(draft(&session, &args).reason(), Some(Reason::BadArgument), "{body}");
    }
    let args = r#"{"to": "ann@example.com", "subject": "s", "body": "b", "attach": "/etc/passwd"}"#;
    assert!(draft(&session, args).reason().is_some());
    assert_eq!(world.kept(), [""; 0]);
}

/// What would be headers, parts, ends or dots of a protocol, if it stood elsewhere.
const HEADERS_IN_BODIES: [&str; 5] = [
    "Content-Type: text/html\n\n<b>x</b>",
    "Bcc: eve@evil.example\nSubject: another\n\nx",
    "--=_boundary\nContent-Type: application/x-sh\n\nrm\n--=_boundary--",
    ".\n..\n.x\n\nQUIT",
    "\nFrom eve@evil.example Tue Nov 24 00:00:00 2026\nTo: eve@evil.example",
];

/// Reply-To, Resent-To and their like: there is no argument by which somebody else is reached, or
/// the type changed, or a file put in.
#[test]
fn no_other_header_can_be_given() {
    let world = world();
    let session = world.session(grant());
    for name in [
        "from",
        "sender",
        "reply_to",
        "Reply-To",
        "resent_to",
        "Resent-Bcc",
        "headers",
        "Bcc",
        "content_type",
        "attachments",
        "in_reply_to",
        "raw",
    ] {
        let args = format!(
            r#"{{"to": "ann@example.com", "subject": "s", "body": "b", "{name}": "eve@x.test"}}"#
        );
        assert_eq!(draft(&session, &args).reason(), Some(Reason::UnknownArgument), "{name}");
    }
    let many: Vec<String> = (0..10_000).map(|n| format!("\"n{n}@x.test\"")).collect();
    let many = format!(r#"{{"to": [{}], "subject": "s", "body": "b"}}"#, many.join(","));
    assert!(draft(&session, &many).reason().is_some());
    assert_eq!(world.kept(), [""; 0]);
}

/// A body is a body: it adds no header and no part, and no line of it is longer than a line may be
/// (RFC 5322, 2.1.1).
#[test]
fn a_body_stays_one() {
    let world = world();
    let session = world.session(grant());
    let long = format!("{}\n{}", "x".repeat(5_000), "\u{fc}".repeat(2_000));
    for body in HEADERS_IN_BODIES.into_iter().chain([long.as_str()]) {
        let args = args! { "to": "ann@example.com", "subject": "s", "body": body };
        assert_eq!(session.call("email.draft", args).unwrap().reason(), None, "{body}");
    }
    let kept = world.kept();
    assert_eq!(kept.len(), 6);
    for message in kept {
        let (head, _) = message.split_once("\r\n\r\n").unwrap();
        let names = head.split("\r\n").filter(|line| !line.starts_with([' ', '\t']));
        let mut names: Vec<&str> = names.map(|line| line.split(':').next().unwrap()).collect();
        names.sort_unstable();
        let expected = [
            "Content-Transfer-Encoding",
            "Content-Type",
            "Date",
            "MIME-Version",
            "Message-ID",
            "Subject",
            "To",
        ];
        assert_eq!(names, expected);
        assert!(head.contains("text/plain"), "{head}");
        assert!(message.split("\r\n").all(|line| line.len() <= 998));
    }
}

/// What can't be done by a mistake: nothing that speaks a protocol by which mail is sent, or put
/// into a box elsewhere, is built with.
#[test]
fn no_crate_that_sends_mail_is_linked() {
    let lock = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.lock");
    let text = fs::read_to_string(lock).unwrap();
    let crates: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("name = ")).collect();
    assert!(crates.contains(&"\"mail-builder\"") && crates.len() > 100);
    let senders =
        ["smtp", "lettre", "mail-send", "mailgun", "sendgrid", "sendmail", "imap", "jmap", "pop3"];
    for name in crates {
        assert!(!senders.iter().any(|sender| name.contains(sender)), "{name}");
    }
}

/// Python's own library, which shares no code with the two that were used, reads what was meant.
#[test]
fn another_mail_reader_reads_what_was_meant() {
    const READ: &str = r"
import json, mailbox, sys, email, email.policy
box = mailbox.Maildir(sys.argv[1], create=False)
out = []
for key in sorted(box.keys()):
    m = email.message_from_bytes(box.get_bytes(key), policy=email.policy.default)
    who = lambda h: [a.addr_spec for a in m[h].addresses] if m[h] else []
    out.append([who('To'), who('Cc'), who('Bcc'), m['Subject'],
        m.get_content().replace('\r\n', '\n'), 'D' in box.get_message(key).get_flags(),
        sorted(k.lower() for k in m.keys()), [str(d) for d in m.defects]])
print(json.dumps(out))
";
    let world = world();
    let session = world.session(grant());
    let long = format!("{}\n{}", "x".repeat(5_000), "\u{fc}".repeat(2_000));
    let mut bodies =
        vec!["plain", "Zeilen\nund \u{fc}mlaute\n\n.\nFrom me", "=3D =\n=?utf-8?q?x?=\n--\n"];
    bodies.extend(HEADERS_IN_BODIES.into_iter().chain([long.as_str()]));
    for body in &bodies {
        let body = *body;
        let args = args! {
            "to": "ann@example.com", "cc": "x@y.test", "body": body,
            "subject": "Gr\u{fc}\u{df}e, \u{65e5}\u{672c}"
        };
        let result = session.call("email.draft", args).unwrap();
        assert_eq!(result.reason(), None, "{body}");
    }
    let ran = match Command::new("python3").args(["-c", READ]).arg(world.drafts()).output() {
        Ok(ran) => ran,
        Err(error) => return eprintln!("skipped: python3 can't be run: {error}"),
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let read: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let mut found = Vec::new();
    for message in read.as_array().unwrap() {
        assert_eq!(message[0], serde_json::json!(["ann@example.com"]));
        assert_eq!(message[1], serde_json::json!(["x@y.test"]));
        assert_eq!(message[2], serde_json::json!([]));
        assert_eq!(message[3], "Gr\u{fc}\u{df}e, \u{65e5}\u{672c}");
        assert_eq!(message[5], true);
        assert_eq!(message[6].as_array().unwrap().len(), 8, "{message}");
        assert_eq!(message[7], serde_json::json!([]));
        found.push(message[4].as_str().unwrap().trim_end_matches('\n').to_owned());
    }
    found.sort();
    let meant = bodies.iter().map(|body| body.trim_end_matches('\n').to_owned());
    let mut meant: Vec<String> = meant.collect();
    meant.sort();
    assert_eq!(found, meant);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Whatever is taken is kept; whatever is refused keeps nothing. Nothing panics.
    #[test]
    fn accepted_draft_is_kept_whole(
        subject in "[ -~\u{a1}-\u{2ff}\u{4e00}-\u{4e20}]{1,120}",
        body in "([ -~\u{a1}-\u{2ff}]{0,90}\n){0,12}[a-z]?",
    ) {
        let world = world();
        let session = world.session(grant());
        let args = args! { "to": "ann@example.com", "subject": &*subject, "body": &*body };
        let result = session.call("email.draft", args).unwrap();
        let plain = subject.trim() == subject && !subject.contains("=?") && !body.is_empty();
        prop_assert_eq!(result.reason().is_none(), plain, "{:?} {:?}", subject, body);
        prop_assert_eq!(world.kept().len(), usize::from(plain));
    }
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("email_tools::");
}
