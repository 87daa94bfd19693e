//! kill -9 in the middle of a body.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use host_support::{new_home, server::Server};
use syscap::format::{Body, Recovered};
use syscap::prelude::*;

use crate::web::records;
use crate::web::world::{get, local};

const HOME: &str = "SYSCAP_WEB_KILLED_HOME";
const URL: &str = "SYSCAP_WEB_KILLED_URL";

/// Not a test: the process that is killed.
#[test]
fn child() {
    let (Ok(home), Ok(url)) = (std::env::var(HOME), std::env::var(URL)) else { return };
    let rt = Runtime::open(&home).unwrap();
    let token = rt.view().unwrap().tokens[0].id;
    let session = rt.session("a", token).unwrap();
    println!("ready");
    get(&session, &url);
}

#[test]
fn a_body_that_is_cut_off_by_a_kill_is_charged_whole() {
    let (_dir, home) = new_home();
    let server = Server::new(|_, stream| {
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 50000\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        while stream.write_all(b"x").is_ok() {
            thread::sleep(Duration::from_millis(5));
        }
    });
    let limit = 10_000_000;
    let budget = Budget::standard().with(Dimension::IngressBytes, limit);
    let rt = Runtime::create(&home).unwrap();
    let token = rt.issue(local(&["http_request"]).budget(budget)).unwrap();
    rt.close().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "web::killed::child", "--nocapture"])
        .env(HOME, &home)
        .env(URL, server.url("/"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    while !lines.next().unwrap().unwrap().ends_with("ready") {}
    while server.seen().is_empty() {
        thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let rt = Runtime::open(&home).unwrap();
    let all = records(&home);
    let intent = all.iter().find_map(|record| match &record.body {
        Body::Intent(intent) => Some((record.seq, intent.call.held)),
        _ => None,
    });
    let (intent, held) = intent.unwrap();
    let recovered = all.iter().find_map(|record| match &record.body {
        Body::Recovery(recovery) => Some((recovery.intent, recovery.verdict)),
        _ => None,
    });
    assert_eq!(recovered, Some((intent, Recovered::Unknown)));
    let view = rt.view().unwrap();
    let left = view.token(token).unwrap().left.get(Dimension::IngressBytes);
    assert_eq!(limit - left, held.get(Dimension::IngressBytes));
    rt.close().unwrap();
}
