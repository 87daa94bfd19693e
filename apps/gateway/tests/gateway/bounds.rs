//! What a client or a server can cost others: memory, time, a wrong number, a forged word.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};
use syscap::format::Reason;

use crate::gateway::bench::{Bench, GatewayProcess, refusal, text, until};

/// How much the gateway may grow, in KiB, whatever is left unread. Optimised code takes more in
/// before it stops: what may wait (32 MiB of requests that are being answered, 8 MiB to be written),
/// and what the allocator keeps beside it.
fn growth_kib() -> u64 {
    if std::env::var_os("SYSCAP_LONG").is_some() { 64 << 10 } else { 24 << 10 }
}

/// The most that a client which does not read finds later of what it was told unasked, in bytes.
const TOLD_BYTES: usize = 5 << 20;

/// Writes lines in a thread of its own; how many it has written, and the input once it has.
fn flood(
    gateway: &mut GatewayProcess,
    lines: usize,
    line: impl Fn(usize) -> String + Send + 'static,
) -> (Arc<AtomicUsize>, thread::JoinHandle<std::process::ChildStdin>) {
    let mut stdin = gateway.stdin.take().unwrap();
    let written = Arc::<AtomicUsize>::default();
    let counts = Arc::clone(&written);
    let thread = thread::spawn(move || {
        for n in 0..lines {
            stdin.write_all(line(n).as_bytes()).unwrap();
            counts.fetch_add(1, Ordering::AcqRel);
        }
        stdin
    });
    (written, thread)
}

/// Waits until no more is taken in.
fn stalled(written: &AtomicUsize) -> usize {
    let mut before = 0;
    until("it takes no more in", || {
        thread::sleep(Duration::from_millis(500));
        let now = written.load(Ordering::Acquire);
        std::mem::replace(&mut before, now) == now
    });
    before
}

/// A client that asks and does not read is not read from; what is kept for it is bounded, and once
/// it reads it gets every answer.
#[test]
fn a_client_that_does_not_read_costs_no_memory() {
    const REQUESTS: usize = 20_000;
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let before = gateway.peak_kib();
    gateway.pause(true);
    let (written, flood) = flood(&mut gateway, REQUESTS, |n| {
        format!("{{\"jsonrpc\":\"2.0\",\"id\":\"f{n}\",\"method\":\"tools/list\"}}\n")
    });
    let taken = stalled(&written);
    let grown = gateway.peak_kib() - before;
    assert!(taken < REQUESTS, "{taken} taken, {grown} KiB grown");
    assert!(grown < growth_kib(), "{grown} KiB");
    gateway.pause(false);
    for n in 0..REQUESTS {
        assert!(gateway.answer(&json!(format!("f{n}")))["result"]["tools"].is_array());
    }
    gateway.stdin = Some(flood.join().unwrap());
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// What a server says unasked to a client that does not read is dropped; the call ends, and once
/// the client reads it is told what still holds.
#[test]
fn a_client_that_does_not_read_is_told_less() {
    const SAID: usize = 15_000;
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let before = gateway.peak_kib();
    gateway.pause(true);
    let id = gateway.id();
    let args = json!({"count": SAID, "text": "x".repeat(1_000)});
    let call = json!({"name": "notices", "arguments": args,
        "_meta": {"progressToken": 1}});
    gateway.send(&id, "tools/call", call);
    until("the call ends", || bench.outcomes().len() == 1);
    let changed = gateway.begin("change", json!({"text": extra("late")}));
    until("that one too", || bench.outcomes().len() == 2);
    let grown = gateway.peak_kib() - before;
    assert!(grown < growth_kib(), "{grown} KiB");
    gateway.pause(false);
    assert_eq!(text(&gateway.result(&id)), "said");
    assert_eq!(text(&gateway.result(&changed)), "changed");
    gateway.hears("notifications/tools/list_changed");
    let told: usize = gateway.unasked.iter().map(|said| said.to_string().len()).sum();
    assert!(told < TOLD_BYTES, "{told}");
    assert!(gateway.end().success());
    bench.settled();
}

/// A client that reads nothing and ends its input: what it left unsaid and unread holds nobody up.
#[test]
fn a_client_that_does_not_read_can_end() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    gateway.pause(true);
    let mut stdin = gateway.stdin.take().unwrap();
    rustix::fs::fcntl_setfl(&stdin, rustix::fs::OFlags::NONBLOCK).unwrap();
    let list = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n";
    let mut full = 0_usize;
    while full < 50 {
        // So short a line goes in whole or not at all.
        match stdin.write(list) {
            Ok(written) => full -= full.min(written),
            Err(_) => {
                full += 1;
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    drop(stdin);
    assert!(gateway.wait().success());
    assert_eq!(bench.got("odd").last().unwrap(), "end");
}

fn extra(name: &str) -> String {
    json!([{"name": name, "inputSchema": {"type": "object"}}]).to_string()
}

/// Every line that asks for something is answered, under its id where that can be told, and the
/// next request is.
#[test]
fn whatever_a_client_sends_is_answered() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    for id in ["1.5", "1e300", "123456789012345678901234567890", "-9223372036854775809"] {
        gateway.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"));
        let back = serde_json::from_str::<Value>(id).unwrap();
        assert_eq!(gateway.answer(&back)["error"]["code"], -32600, "{id}");
    }
    for id in ["null", "{\"a\":1}", "[1]", "true", "\"\\ud800\""] {
        gateway.write(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"ping\"}}"));
        assert!(gateway.answer(&Value::Null)["error"]["code"].is_i64(), "{id}");
    }
    let call = |id: &str, value: &[u8]| {
        let mut line = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":\
             {{\"name\":\"echo\",\"arguments\":{{\"x\":"
        )
        .into_bytes();
        line.extend_from_slice(value);
        line.extend_from_slice(b"}}}\n");
        line
    };
    let bad: [&[u8]; 6] =
        [b"\"\\udc00\"", b"NaN", b"Infinity", b"\"\xff\xfe\"", b"\"\x01\"", b"\"\xed\xa0\x80\""];
    for (n, value) in bad.into_iter().enumerate() {
        let id = json!(format!("bad{n}"));
        gateway.write_bytes(&call(&id.to_string(), value));
        assert_eq!(gateway.answer(&id)["error"]["code"], -32700, "{value:?}");
    }
    gateway.write_bytes(&call("\"deep\"", &[b"[".repeat(200), b"]".repeat(200)].concat()));
    assert_eq!(gateway.answer(&json!("deep"))["error"]["code"], -32700);
    gateway.write_bytes(&call("\"long\"", format!("\"{}\"", "x".repeat(5 << 20)).as_bytes()));
    assert_eq!(gateway.answer(&json!("long"))["error"]["code"], -32600);
    assert_eq!(bench.got_method("odd", "tools/call"), 0);
    assert_eq!(text(&gateway.call("echo", json!({}))), "{}");
    assert!(gateway.end().success());
    bench.settled();
}

/// An integer that no reader would keep is refused, on the record; the largest arrive as they are.
#[test]
fn an_integer_never_becomes_another_number() {
    let bench = Bench::new();
    let mut gateway = bench.gateway(&[]).session();
    let mut call = |args: &str, rest: &str| {
        let id = gateway.id();
        gateway.write(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":\
             {{\"name\":\"echo\",\"arguments\":{args}{rest}}}}}"
        ));
        gateway.answer(&id)
    };
    let odd =
        ["{\"n\":18446744073709551616}", "{\"n\":[{\"m\":-9223372036854775809}]}", "{\"n\":-0}"];
    for args in odd {
        let answer = call(args, "");
        assert_eq!(refusal(&answer["result"])["code"], Reason::NumberRange.code(), "{answer}");
    }
    let elsewhere = call("{}", ",\"_meta\":{\"n\":18446744073709551616}");
    assert_eq!(elsewhere["error"]["code"], -32602);
    let whole = "{\"f\":1.5,\"n\":18446744073709551615,\"z\":-9223372036854775808}";
    assert_eq!(text(&call(whole, "")["result"]), whole);
    assert!(gateway.end().success());
    assert_eq!(bench.got_method("odd", "tools/call"), 1);
    assert_eq!(bench.count("Refusal"), odd.len());
    bench.settled();
}
