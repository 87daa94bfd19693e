//! Secrets: sent to where they belong, and shown nowhere.

use std::{fs, path::Path, thread};

use host_support::server::{Server, answer};
use syscap::format::{Canonical, Item, Profile};
use syscap::syscalls::beneath::KEY_FILE_BEGINS;
use syscap::syscalls::net::secret::Secrets as _;
use syscap::syscalls::net::target::Target;
use syscap::{Error, prelude::*, secrets::SecretFiles};

use crate::web::world::{World, call, get, local, text, world};

const VALUE: &str = "ghp_Zx81Qw-77abcDEF";

fn with_secret(world: &World, server: &Server, settings: &str) -> Session {
    let origin = format!("http://127.0.0.1:{}", server.port);
    world.secrets().set("github", VALUE, &[&origin]).unwrap();
    world.set("api", settings);
    world.session(local(&["api", "http_request"]))
}

const BEARER: &str = r#"{"allowed_methods": ["GET", "POST"],
    "secrets": [{"secret": "github", "header": "Authorization", "prefix": "Bearer "},
                {"secret": "github", "query": "key"}]}"#;

/// Whether a text stands anywhere below a folder.
fn stands_below(folder: &Path, text: &str) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            return stands_below(&path, text);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    })
}

#[test]
fn a_secret_is_sent_to_its_own_server_only() {
    let world = world();
    let (own, other) = (
        Server::saying(answer("200 OK", "text/plain", "x")),
        Server::saying(answer("200 OK", "text/plain", "x")),
    );
    let session = with_secret(&world, &own, BEARER);
    let result = call(&session, "api", &format!(r#"{{"url": "{}"}}"#, own.url("/a?b=c")));
    let sent = &own.seen()[0];
    assert_eq!(sent.header("authorization"), Some(&*format!("Bearer {VALUE}")));
    assert_eq!(sent.line(), format!("GET /a?b=c&key={VALUE} HTTP/1.1"));
    assert_eq!(text(&result, "url"), Some(own.url("/a?b=c")), "as it was called");
    // Another server, another port, another tool.
    call(&session, "api", &format!(r#"{{"url": "{}"}}"#, other.url("/a")));
    get(&session, &own.url("/a"));
    assert_eq!(other.seen()[0].header("authorization"), None);
    assert_eq!(other.seen()[0].line(), "GET /a HTTP/1.1");
    assert_eq!(own.seen()[1].header("authorization"), None);
    // No call takes its place.
    for args in [
        format!(r#"{{"url": "{}", "headers": {{"AUTHORIZATION": "x"}}}}"#, own.url("/")),
        format!(r#"{{"url": "{}", "query": {{"key": "x"}}}}"#, own.url("/")),
        format!(r#"{{"url": "{}"}}"#, own.url("/?key=x")),
    ] {
        let refused = call(&session, "api", &args);
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{args}");
    }
    assert_eq!(own.seen().len(), 2);
    let home = world.home.clone();
    let _dir = world.end();
    assert!(!stands_below(&home, VALUE), "it stands in no file of the home");
    assert!(stands_below(&home, "127.0.0.1"), "what is looked for is found");
}

/// However a server sends it back.
#[test]
fn a_secret_that_comes_back_is_taken_out() {
    let world = world();
    let echo = Server::new(|sent, stream| {
        let auth = sent.header("authorization").unwrap().to_owned();
        let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
        let percent: String = VALUE.bytes().map(|byte| format!("%{byte:02X}")).collect();
        let json: String = VALUE.bytes().map(|byte| format!("\\u{byte:04x}")).collect();
        let split: String = VALUE.chars().map(|c| format!("{c} ")).collect();
        let body = format!(
            r#"{{"plain": "{auth}", "hex": "{hex}", "percent": "{percent}", "json": "{json}",
                "split": "{split}", "base64": "dXNlcjpnaHBfWng4MVF3LTc3YWJjREVG", "n": 1}}"#
        );
        let length = body.len();
        let head = format!(
            "HTTP/1.1 302 Found\r\nContent-Type: application/json; x={VALUE}\r\n\
             Location: /next?key={VALUE}\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
    });
    let session = with_secret(&world, &echo, BEARER);
    let result = call(&session, "api", &format!(r#"{{"url": "{}"}}"#, echo.url("/")));
    let shown = result.to_json();
    let bare = |text: &str| -> String {
        text.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect()
    };
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    assert!(!bare(&shown).contains(&bare(VALUE)), "{shown}");
    assert!(!bare(&shown).contains(&hex), "{shown}");
    assert!(!shown.contains("Z2hwX1p4ODFRdy03N2FiY0RFR") && !shown.contains("Wng4MVF3LTc3YWJjRE"));
    assert!(shown.contains("[secret]") && shown.contains("\"n\":1"), "{shown}");
    // In what is no text it is withheld with all of it.
    let binary = Server::new(|_, stream| {
        let body = [&[0xff, 0xfe, 0][..], VALUE.as_bytes()].concat();
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
        stream.write_all(&[head.as_bytes(), &body].concat()).unwrap();
    });
    let session = with_secret(&world, &binary, BEARER);
    let result = call(&session, "api", &format!(r#"{{"url": "{}"}}"#, binary.url("/")));
    assert_eq!(text(&result, "format").as_deref(), Some("withheld"));
    world.end();
}

/// Where it is cut, no part of a secret is left at the end: also where much of it is taken out, and
/// what was read last moves up.
#[test]
fn no_part_of_a_secret_is_left_at_the_cut() {
    let world = world();
    let long: String = (0..400_u64)
        .map(|n| char::from(b'a' + u8::try_from(n * n * 7 % 101 % 26).unwrap()))
        .collect();
    for (value, before) in [(VALUE, "x".repeat(19_990)), (&*long, String::new())] {
        let body = format!("{before}{}", value.repeat(300_000 / value.len()));
        let server = Server::saying(answer("200 OK", "text/plain", &body));
        let origin = format!("http://127.0.0.1:{}", server.port);
        world.secrets().set("github", value, &[&origin]).unwrap();
        world.set("api", BEARER);
        let session = world.session(local(&["api"]));
        let result = call(&session, "api", &format!(r#"{{"url": "{}"}}"#, server.url("/")));
        let data = text(&result, "data").unwrap();
        assert!(data.contains("[secret]") && data.len() <= 20_000);
        // The mark itself may be cut.
        let rest = data.replace("[secret]", "").replace('x', "");
        assert!("[secret]".starts_with(&rest), "{rest}");
    }
    world.end();
}

/// Written as a page, a script or a letter would, and in letters that are not what they seem.
#[test]
fn no_way_of_writing_gives_a_secret_away() {
    let world = world();
    let value = "Kq7&Zp9<Wm3xTr5vBn8y";
    let (kind, plain) = ("text/plain", |text: &str| text.as_bytes().to_vec());
    let bodies: [(&str, Vec<u8>); 6] = [
        ("text/html", plain("<p>Kq7&amp;Zp9&lt;Wm3xTr5vBn8y</p>")),
        (kind, plain("Kq7\\x26Zp9\\x3cWm3xTr5vBn8y")),
        (kind, plain("Kq7=26Zp9=3CWm3xTr5vBn8y")),
        ("application/octet-stream", [&[0xff, 0][..], b"Kq7%26Zp9%3CWm3xTr5vBn8y"].concat()),
        ("text/plain; charset=utf-16be", plain(value)),
        ("text/plain; charset=utf-16le", value.bytes().flat_map(|byte| [byte, 0]).collect()),
    ];
    for (kind, body) in bodies {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let server = Server::saying([head.as_bytes(), &body].concat());
        let origin = format!("http://127.0.0.1:{}", server.port);
        world.secrets().set("github", value, &[&origin]).unwrap();
        world.set("api", BEARER);
        let session = world.session(local(&["api"]));
        let result = call(&session, "api", &format!(r#"{{"url": "{}"}}"#, server.url("/")));
        let shown = result.to_json();
        let hidden = shown.contains("[secret]") || shown.contains("\"withheld\"");
        assert!(hidden && !shown.contains("Wm3xTr5v"), "{kind}: {shown}");
    }
    world.end();
}

#[test]
fn a_secret_that_is_not_there_is_said_by_name() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let session = with_secret(&world, &server, BEARER);
    let args = format!(r#"{{"url": "{}"}}"#, server.url("/"));
    world.secrets().remove("github").unwrap();
    let refused = call(&session, "api", &args);
    assert_eq!(refused.reason(), Some(Reason::NoSecret));
    assert!(refused.to_json().contains("\"field\":\"github\""));
    // One that was changed, or stands under another name, is none.
    let origin = format!("http://127.0.0.1:{}", server.port);
    world.secrets().set("other", VALUE, &[&origin]).unwrap();
    let folder = world.home.join("secrets");
    fs::copy(folder.join("other"), folder.join("github")).unwrap();
    assert_eq!(call(&session, "api", &args).reason(), Some(Reason::NoSecret));
    assert_eq!(server.seen().len(), 0);
    // What is set anew is sent at once.
    world.secrets().set("github", "another-Value-1", &[&origin]).unwrap();
    assert_eq!(call(&session, "api", &args).reason(), None);
    assert_eq!(server.seen()[0].header("authorization"), Some("Bearer another-Value-1"));
    world.end();
}

#[test]
fn unfit_secret_is_not_stored() {
    let world = world();
    let secrets = world.secrets();
    let fine = "https://a.test";
    let long = "x".repeat(5_000);
    for (name, value, origin) in [
        ("", VALUE, fine),
        ("../x", VALUE, fine),
        ("A", VALUE, fine),
        ("a", "short", fine),
        ("a", "with blank 123456", fine),
        ("a", "line\n123456789", fine),
        ("a", &long, fine),
        ("a", VALUE, "a.test"),
        ("a", VALUE, "https://a.test/path?query"),
        ("a", VALUE, "https://a.test/a%2fb"),
        ("a", VALUE, "ftp://a.test"),
    ] {
        let refused = secrets.set(name, value, &[origin]);
        assert!(matches!(&refused, Err(Error::BadName { got, .. }) if !got.contains("ghp_Z")));
    }
    assert!(secrets.set("a", VALUE, &[]).is_err());
    assert!(secrets.list().unwrap().is_empty());
    secrets.set("b", VALUE, &["https://B.test:443", "http://c.test:8080"]).unwrap();
    secrets.set("a", VALUE, &[fine]).unwrap();
    let all = secrets.list().unwrap();
    assert_eq!(all[1].name, "b");
    let origins = ["https://b.test".to_owned(), "http://c.test:8080".to_owned()];
    assert_eq!(all[1].origins.as_deref(), Some(&origins[..]));
    assert!(matches!(secrets.remove("none"), Err(Error::NoSuch { .. })));
    assert!(matches!(secrets.remove("../keys/operator.key"), Err(Error::NoSuch { .. })));
    // For its owner alone.
    use std::os::unix::fs::PermissionsExt as _;
    for file in ["secrets/a", "keys/secrets.key"] {
        let mode = fs::metadata(world.home.join(file)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    world.end();
}

/// The first secrets of a home, by many at once: there is one key, and each that was set is there.
#[test]
fn first_secrets_set_at_once_are_all_kept() {
    for _ in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let secrets = || SecretFiles::at(folder.path().join("secrets"), folder.path().join("key"));
        thread::scope(|scope| {
            for n in 0..4 {
                let (secrets, name) = (secrets(), format!("s{n}"));
                scope.spawn(move || {
                    secrets.set(&name, VALUE, &["https://a.test"]).unwrap();
                    secrets.set("same", VALUE, &["https://a.test"]).unwrap();
                });
            }
        });
        let all = secrets().list().unwrap();
        assert_eq!(all.len(), 5);
        assert!(all.iter().all(|secret| secret.origins.is_some()), "each can be opened");
        let kept = fs::read_dir(folder.path().join("secrets")).unwrap().count();
        assert_eq!((kept, fs::read_dir(folder.path()).unwrap().count()), (5, 2), "nothing is left");
    }
}

fn values(secrets: &SecretFiles, names: &[&str]) {
    let target = Target::absolute("https://a.test/").unwrap();
    for name in names {
        let found = secrets.find(name).unwrap();
        assert_eq!(found.value_for(&target), Some(VALUE), "{name}");
    }
}

/// A key file like the others, and known as one; of before it is read, and written anew.
#[test]
fn the_key_of_secrets_has_the_form_of_a_key() {
    let world = world();
    let secrets = world.secrets();
    secrets.set("a", VALUE, &["https://a.test"]).unwrap();
    let path = world.home.join("keys/secrets.key");
    let whole = fs::read(&path).unwrap();
    assert!(whole.starts_with(&KEY_FILE_BEGINS));
    // As `seed` it has the 32 bytes that the file was before.
    let map = Canonical::check(whole.clone(), Profile::DATA).unwrap();
    let seed = map.item().get("seed").and_then(Item::as_byte_string).unwrap().to_vec();
    assert_eq!((map.item().count(), seed.len()), (5, 32));
    let bare = || fs::write(&path, &seed).unwrap();
    let is_whole = || fs::read(&path).unwrap().starts_with(&KEY_FILE_BEGINS);
    bare();
    values(&secrets, &["a"]);
    secrets.keep_form().unwrap();
    assert!(is_whole());
    values(&secrets, &["a"]);
    bare();
    secrets.set("b", VALUE, &["https://a.test"]).unwrap();
    assert!(is_whole());
    values(&secrets, &["a", "b"]);
    // One that was changed opens nothing, and is not written over.
    for (at, byte) in whole.iter().enumerate() {
        let mut changed = whole.clone();
        changed[at] = byte ^ 1;
        fs::write(&path, &changed).unwrap();
        assert!(secrets.find("a").is_err(), "byte {at}");
        assert!(secrets.set("c", VALUE, &["https://a.test"]).is_err(), "byte {at}");
        assert_eq!(fs::read(&path).unwrap(), changed);
    }
    fs::write(&path, &whole).unwrap();
    // Wherever a copy lies, and whatever it is called, no file tool gives it out.
    let workspace = world.home.join("files/agents/a/workspace");
    let session = world.session(Grant::to("a").tools(["fs.read"]).workspace());
    for name in ["secrets.key", "x.key", "SECRETS.KEY", ".secrets.key.77-0.part", "old.key.next"] {
        fs::write(workspace.join(name), &whole).unwrap();
        let read = call(&session, "fs.read", &format!(r#"{{"path": "{name}"}}"#));
        assert!(read.reason().is_some(), "{name}");
    }
    drop(session);
    world.end();
}

#[test]
fn a_rotation_keeps_every_secret() {
    let folder = tempfile::tempdir().unwrap();
    let (files, key) = (folder.path().join("secrets"), folder.path().join("keys/secrets.key"));
    let secrets = SecretFiles::at(&files, &key);
    assert!(matches!(secrets.rotate(), Err(Error::NoSuch { .. })), "there is no key yet");
    for name in ["a", "b", "c"] {
        secrets.set(name, VALUE, &["https://a.test"]).unwrap();
    }
    fs::write(files.join("lost"), "sealed by nobody").unwrap();
    let (old, sealed) = (fs::read(&key).unwrap(), fs::read(files.join("a")).unwrap());
    assert_eq!(secrets.rotate().unwrap(), 3);
    values(&secrets, &["a", "b", "c"]);
    assert_ne!(fs::read(&key).unwrap(), old);
    assert_eq!(fs::read_dir(key.parent().unwrap()).unwrap().count(), 1, "nothing is left");
    // What was sealed before is opened by the old key only.
    fs::write(files.join("a"), sealed).unwrap();
    assert!(secrets.find("a").is_err());
    secrets.set("a", VALUE, &["https://a.test"]).unwrap();
    // A next key that somebody put there is no key.
    let next = key.with_extension("key.next");
    for planted in [&old[..], b"", &[7; 32]] {
        fs::write(&next, planted).unwrap();
        values(&secrets, &["a", "b", "c"]);
        assert_eq!(secrets.rotate().unwrap(), 3);
        values(&secrets, &["a", "b", "c"]);
        assert!(!next.exists());
    }
}
