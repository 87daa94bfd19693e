//! `net.egress` and `http_request` on loopback, with the log in memory and durable, beside `ureq`
//! alone. Nobody keeps a connection: each request has one of its own.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use harness::{row, time};
use syscap::Configured;
use syscap::audit::MemoryStore;
use syscap::format::{Canonical, Cidr, Durability, PortRange, Profile, Scope, json};
use syscap::kernel::PolicyEngine as _;
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;
use syscap::syscalls::net::Network;

/// Answers each request with 200 bytes of text.
fn server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let body = "x".repeat(200);
        let answer = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 200\r\n\r\n{body}"
        );
        for mut stream in listener.incoming().map_while(Result::ok) {
            let (mut held, mut part) = (Vec::new(), [0; 4096]);
            // A body of five bytes, or none.
            while !held.ends_with(b"\r\n\r\n") && !held.ends_with(b"hello") {
                let count = stream.read(&mut part).unwrap_or(0);
                if count == 0 {
                    break;
                }
                held.extend_from_slice(&part[..count]);
            }
            stream.write_all(answer.as_bytes()).unwrap_or_default();
        }
    });
    port
}

/// The standard preset, with `net.egress` let through.
fn policy() -> Policy {
    let document = Policy::preset(Preset::Standard).unwrap().document();
    let document = Canonical::check(document, Profile::CONTROL).unwrap();
    let text = json::from_data(document.item());
    let text = text.replace(r#""auto_approve":[]"#, r#""auto_approve":["net.egress"]"#);
    Policy::from_json(text.as_bytes()).unwrap()
}

/// The agent of a new home that may ask that server.
fn agent(options: Options, home: &Path, url: &str) -> (Runtime, Session) {
    let rt = options.policy(policy()).create(home).unwrap();
    let routes =
        format!(r#"{{"routes": {{"r": {{"url": "{url}", "addresses": ["127.0.0.1/32"]}}}}}}"#);
    let settings = json::to_data(routes.as_bytes()).unwrap();
    let tool = ToolId::new("net.egress").unwrap();
    let set = vec![Network::manifest(tool, settings).unwrap()];
    rt.configure(&Configured { set, unset: Vec::new() }).unwrap();
    let big = 1 << 50;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::EgressBytes, big)
        .with(Dimension::IngressBytes, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big);
    let here = Cidr::new("127.0.0.1".parse().unwrap(), 32).unwrap();
    let grant = Grant::to("a")
        .tools(["net.egress", "http_request"])
        .scope("route", Scope::names(["r"]).unwrap())
        .scope("purpose", Scope::names(["p"]).unwrap())
        .scope("address", Scope::cidrs([here]).unwrap())
        .scope("scheme", Scope::names(["http"]).unwrap())
        .scope("port", Scope::ports([PortRange::new(1, 65_535).unwrap()]).unwrap())
        .budget(budget);
    let session = rt.session("a", rt.issue(grant).unwrap()).unwrap();
    (rt, session)
}

fn main() {
    let port = server();
    let url = format!("http://127.0.0.1:{port}/a");
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let (_memory, in_memory) = agent(options, &dir.path().join("memory"), &url);
    let (_disk, durable) = agent(Options::new(), &dir.path().join("disk"), &url);
    let plain = ureq::Agent::config_builder().max_idle_connections(0).build().new_agent();
    let egress = |agent: &Session| {
        let args = args! { "route": "r", "purpose": "p", "payload_ref": "hello" };
        assert!(agent.call("net.egress", args).unwrap().value().is_ok());
    };
    let request = |agent: &Session| {
        let result = agent.call("http_request", args! { "url": url.as_str() }).unwrap();
        assert!(result.value().is_ok());
    };
    for _ in 0..3 {
        let alone = time(15, 200, || {
            plain.post(&url).send("hello").unwrap().body_mut().read_to_string().unwrap()
        });
        row("ureq, POST, a connection each", alone);
        let call = time(15, 200, || egress(&in_memory));
        row("net.egress through the kernel, in memory", call);
        println!("ratio to ureq: {:.2}", call.median / alone.median);
        row("the same, durable", time(9, 50, || egress(&durable)));
        let alone =
            time(15, 200, || plain.get(&url).call().unwrap().body_mut().read_to_string().unwrap());
        row("ureq, GET, a connection each", alone);
        let call = time(15, 200, || request(&in_memory));
        row("http_request through the kernel, in memory", call);
        println!("ratio to ureq: {:.2}", call.median / alone.median);
        row("the same, durable", time(9, 50, || request(&durable)));
    }
}
