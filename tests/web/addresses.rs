//! Names that lead elsewhere, and URLs that mean something else than they seem to.

use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use std::{fs, thread};

use host_support::server::{Server, answer};
use syscap::format::{Body, Durability, Host, Scope};
use syscap::prelude::*;
use syscap::syscalls::net::lookup::{Lookup, LookupError};

use crate::web::records;
use crate::web::world::{blocks, call, get, local, world};

/// DNS rebinding: what was judged is what is connected to, and nobody is asked again.
#[test]
fn a_name_that_changes_its_mind_leads_nowhere_else() {
    let world = world();
    let session = world.local();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    // First a public address, where nobody is; then this machine.
    world.names.lead("a.test", &[&["10.255.255.1"], &["127.0.0.1"]]);
    let refused = get(&session, &format!("http://a.test:{}/", server.port));
    assert_eq!(refused.reason(), Some(Reason::ForbiddenAddress));
    assert_eq!((world.names.asked.load(Ordering::SeqCst), server.seen().len()), (1, 0));
    // Then the second answer is judged anew, by the next call.
    let done = get(&session, &format!("http://a.test:{}/", server.port));
    assert_eq!((done.reason(), server.seen().len()), (None, 1));
    world.end();
}

/// One address of several that may not be reached forbids the name: which one is taken is not ours
/// to say.
#[test]
fn a_name_with_one_inner_address_is_not_gone_to() {
    let world = world();
    let session = world.local();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    for inner in [
        "10.0.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "100.100.100.200",
        "168.63.129.16",
        "0.0.0.0",
        "127.0.0.2",
        "224.0.0.1",
        "255.255.255.255",
        "::1",
        "::",
        "fe80::1",
        "fd00:ec2::254",
        "fc00::1",
        "::ffff:10.0.0.1",
        "::10.0.0.1",
        "64:ff9b::a9fe:a9fe",
        "64:ff9b:1::1",
        "2002:7f00:1::",
        "2001::1",
        "fec0::1",
        "ff02::1",
    ] {
        world.names.lead("a.test", &[&["127.0.0.1", inner]]);
        let refused = get(&session, &format!("http://a.test:{}/", server.port));
        assert_eq!(refused.reason(), Some(Reason::ForbiddenAddress), "{inner}");
    }
    let none: &[&str] = &[];
    world.names.lead("a.test", &[none]);
    let refused = get(&session, &format!("http://a.test:{}/", server.port));
    assert_eq!(refused.reason(), Some(Reason::Unreachable));
    let refused = get(&session, &format!("http://nobody.test:{}/", server.port));
    assert_eq!(refused.reason(), Some(Reason::Unreachable));
    assert_eq!(server.seen().len(), 0);
    world.end();
}

/// Where machines get their own credentials, no block of many addresses leads.
#[test]
fn metadata_services_are_granted_by_name_only() {
    let world = world();
    let wide = local(&["http_request"]).scope("address", blocks(&[("0.0.0.0", 0)]));
    let session = world.session(wide);
    world.names.lead("meta.test", &[&["169.254.169.254"]]);
    let refused = get(&session, "http://meta.test/latest/meta-data/");
    assert_eq!(refused.reason(), Some(Reason::ForbiddenAddress));
    let refused = get(&session, "http://169.254.169.254/latest/meta-data/");
    assert_eq!(refused.reason(), Some(Reason::ForbiddenAddress));
    world.end();
}

/// All addresses of a name are judged, also those that are never tried; of sixteen the first that
/// answers is asked, once.
#[test]
fn every_address_of_a_name_is_judged() {
    let world = world();
    let wide = local(&["http_request"]).scope("address", blocks(&[("127.0.0.0", 8)]));
    let session = world.session(wide);
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let url = format!("http://a.test:{}/", server.port);
    let ask = |addresses: &[String]| {
        let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
        world.names.lead("a.test", &[&addresses]);
        get(&session, &url).reason()
    };
    let here = |count: usize| vec!["127.0.0.1".to_owned(); count];
    let with = |mut list: Vec<String>, last: &str| {
        list.push(last.to_owned());
        list
    };
    for before in [1, 15, 16, 17, 40, 255] {
        let reason = ask(&with(here(before), "10.0.0.1"));
        assert_eq!(reason, Some(Reason::ForbiddenAddress), "{before}");
    }
    assert_eq!(ask(&here(257)), Some(Reason::Unreachable), "a list without end");
    assert_eq!(server.seen().len(), 0);
    // Nobody is at these.
    let dead = |count: u8| (0..count).map(|n| format!("127.0.1.{n}")).collect::<Vec<_>>();
    assert_eq!(ask(&with(dead(16), "127.0.0.1")), Some(Reason::Unreachable));
    assert_eq!(server.seen().len(), 0);
    assert_eq!(ask(&with(dead(15), "127.0.0.1")), None);
    assert_eq!(server.seen().len(), 1);
    world.end();
}

/// By the system's resolver: a name that means this machine is one of this machine's addresses,
/// and is granted as such or not at all.
#[test]
fn names_of_this_machine_are_this_machine() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().durability(Durability::Memory);
    let rt = options.create(dir.path().join("home")).unwrap();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let grant = || {
        let hosts = Scope::hosts(["localhost", "*.localhost", "*.test"]).unwrap();
        local(&["http_request"]).scope("host", hosts)
    };
    let session = |addresses: &[(&str, u8)]| {
        let grant = grant().scope("address", blocks(addresses));
        rt.session("a", rt.issue(grant).unwrap()).unwrap()
    };
    let elsewhere = session(&[("192.0.2.1", 32)]);
    let half = session(&[("127.0.0.1", 32)]);
    let whole = session(&[("127.0.0.1", 32), ("::1", 128)]);
    for name in ["localhost", "LOCALHOST.", "db.localhost", "a.b.localhost"] {
        let url = format!("http://{name}:{}/", server.port);
        let before = server.seen().len();
        for session in [&elsewhere, &half] {
            assert_eq!(get(session, &url).reason(), Some(Reason::ForbiddenAddress), "{name}");
        }
        assert_eq!(server.seen().len(), before);
        assert_eq!((get(&whole, &url).reason(), server.seen().len()), (None, before + 1), "{name}");
    }
    rt.close().unwrap();
}

/// A resolver that says nothing, until it must, and keeps how long that is.
#[derive(Clone, Default)]
struct Hangs {
    asked: Arc<AtomicUsize>,
    limits: Arc<Mutex<Vec<Duration>>>,
}

impl Lookup for Hangs {
    fn lookup(&self, _: &Host, limit: Duration) -> Result<Vec<IpAddr>, LookupError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.limits.lock().unwrap().push(limit);
        thread::sleep(limit);
        Err(LookupError::TimedOut)
    }
}

#[test]
fn a_resolver_that_hangs_gets_no_more_time() {
    let dir = tempfile::tempdir().unwrap();
    let (home, hangs) = (dir.path().join("home"), Hangs::default());
    let options = Options::new().durability(Durability::Memory).lookup(hangs.clone());
    let rt = options.create(&home).unwrap();
    let world =
        crate::web::world::World { dir, home, rt, names: crate::web::world::Names::default() };
    world.set("quick", r#"{"timeout_ms": 400}"#);
    let session = world.session(local(&["quick"]));
    let refused = call(&session, "quick", r#"{"url": "http://a.test/"}"#);
    assert_eq!(refused.reason(), Some(Reason::Unreachable));
    assert_eq!(hangs.asked.load(Ordering::SeqCst), 1);
    assert!(hangs.limits.lock().unwrap().iter().all(|limit| *limit <= Duration::from_millis(400)));
    let used = &refused.receipt().used;
    assert_eq!(used.get(Dimension::EgressBytes), 0);
    assert!(used.get(Dimension::WallUs) < 2_400_000, "within what was set aside");
    world.end();
}

/// What attackers write, as it stands within JSON.
fn hostile_urls() -> Vec<String> {
    let mut urls: Vec<String> = [
        "http://127.1",
        "http://0177.0.0.1",
        "http://0x7f000001",
        "http://2130706433",
        "http://0x7f.1",
        "http://127.0.0.1.",
        "http://[::1]",
        "http://[::ffff:127.0.0.1]",
        "http://[0:0:0:0:0:ffff:7f00:1]",
        "http://[::]",
        "http://0",
        "http://0.0.0.0",
        "http://localhost",
        "http://localhost.",
        "http://LOCALHOST",
        "http://x.localhost",
        "http://\\u2460\\u2461\\u2466.\\u24ea.\\u24ea.\\u2460",
        "http://127\\u30020\\u30020\\u30021",
        "http://allowed.test@127.0.0.1",
        "http://127.0.0.1@allowed.test",
        "http://a@b@allowed.test",
        "http://allowed.test:80@127.0.0.1",
        "http://allowed.test\\\\@127.0.0.1",
        "http://127.0.0.1#@allowed.test",
        "http://127.0.0.1?@allowed.test",
        "http://127.0.0.1%2f@allowed.test",
        "http://127.0.0.1\\t.allowed.test",
        "http://al\\nlowed.test",
        "HTTP://ALLOWED.TEST",
        "http:/\\/127.0.0.1",
        "http:///127.0.0.1",
        "http:127.0.0.1",
        "//127.0.0.1",
        "\\\\\\\\127.0.0.1",
        "/\\\\127.0.0.1",
        "http://127.0.0.1:0",
        "http://allowed.test:65536",
        "http://allowed.test:080",
        "http://allowed.test:",
        "gopher://127.0.0.1:6379",
        "file:///etc/passwd",
        "ftp://allowed.test",
        "data:,x",
        "javascript:alert(1)",
        "http://[fe80::1%25eth0]",
        "http://a..allowed.test",
        "http://allowed.test..",
        "http://xn--llowed-2nf.test",
        "http://\\u0430llowed.test",
        "http://allowed.test%00.evil.test",
        "http://allowed.test%0d%0aX",
        "http://%61llowed.test",
        "http://allo\\u00adwed.test",
        "http://",
    ]
    .iter()
    .map(|url| (*url).to_owned())
    .collect();
    let named = std::env::var_os("SYSCAP_DATA").map(PathBuf::from);
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    match fs::read_to_string(named.unwrap_or(beside).join("ssrf/patt_urls.txt")) {
        Ok(text) => {
            let lines = text.lines().filter(|line| !line.is_empty());
            urls.extend(lines.map(|line| line.escape_default().to_string().replace("\\'", "'")));
        }
        Err(_) => println!("skipped: no data of known URLs (PayloadsAllTheThings)"),
    }
    urls
}

/// Every way of writing this machine's address, and of hiding a host, that attackers are known to
/// try: the token grants other names, which all lead here.
#[test]
fn no_way_of_writing_a_url_leads_here() {
    let world = world();
    let server = Server::saying(answer("200 OK", "text/plain", "x"));
    let grant = local(&["http_request"]);
    let grant = grant.scope("host", Scope::hosts(["allowed.test", "*.allowed.test"]).unwrap());
    let grant = grant.scope("address", blocks(&[("192.0.2.1", 32)]));
    world.names.lead("allowed.test", &[&["127.0.0.1"]]);
    let port = server.port;
    let urls = hostile_urls();
    let (mut tried, mut said) = (0, Vec::new());
    for url in &urls {
        // Who is only refused waits.
        let session = world.session(grant.clone());
        for url in [url.clone(), format!("{url}/"), format!("{url}:{port}/")] {
            let url = url.replace('"', "\\\"").replace("\\u{", "\\\\u{");
            for field in ["url", "path"] {
                let args = format!(r#"{{"{field}": "{url}"}}"#);
                let Ok(result) = session.request("http_request").json(&args, Escapes::Data).wait()
                else {
                    panic!("{args}");
                };
                assert!(result.reason().is_some(), "{args}");
                said.push((result.receipt().outcome_seq, result.reason()));
                tried += 1;
            }
        }
    }
    assert!(tried > 300, "{tried}");
    assert_eq!(server.seen().len(), 0);
    // Each is on record by its reason, or by the record that answers for a run of refusals.
    let recorded = records(&world.home);
    for (seq, reason) in said {
        let record = recorded.iter().find(|record| record.seq == seq).unwrap();
        match &record.body {
            Body::Refusal(refusal) => assert_eq!(Some(refusal.reason), reason),
            Body::Outcome(outcome) => assert_eq!(outcome.reason, reason),
            Body::Refusals(run) => assert!(run.answers_max > 0),
            other => panic!("{other:?}"),
        }
    }
    // One that is what it seems to be does get there, where its address is granted.
    let grant = local(&["http_request"]);
    let session = world.session(grant.scope("host", Scope::hosts(["allowed.test"]).unwrap()));
    let args = format!(r#"{{"url": "http://ALLOWED.test.:{port}/"}}"#);
    assert_eq!(call(&session, "http_request", &args).reason(), None);
    assert_eq!(server.seen().len(), 1);
    world.end();
}
