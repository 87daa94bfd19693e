//! A client or a server that floods: what it costs of memory, and what an operator can do beside.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;
use syscap::format::{Body, Seq};
use syscap::prelude::*;

use crate::gateway::bench::{Bench, GatewayProcess, refusal, until};

/// How much the gateway that is flooded, and the one that holds the home, may grow, in KiB: by what
/// may wait (32 MiB of requests that are being answered, 8 MiB to be written), a few times over.
const GROWTH_KIB: u64 = 160 << 10;
/// How long a flood lasts before the token is revoked, and after.
const LASTS: Duration = Duration::from_millis(600);

/// Writes lines until it is told to stop; how many it has written.
struct Flood {
    stop: Arc<AtomicBool>,
    written: Arc<AtomicUsize>,
    thread: thread::JoinHandle<std::process::ChildStdin>,
}

impl Flood {
    fn begin(
        gateway: &mut GatewayProcess,
        line: impl Fn(usize) -> String + Send + 'static,
    ) -> Self {
        let mut stdin = gateway.stdin.take().unwrap();
        let (stop, written) = (Arc::<AtomicBool>::default(), Arc::<AtomicUsize>::default());
        let (stops, counts) = (Arc::clone(&stop), Arc::clone(&written));
        let thread = thread::spawn(move || {
            for n in 0.. {
                if stops.load(Ordering::Acquire) {
                    break;
                }
                stdin.write_all(line(n).as_bytes()).unwrap();
                counts.fetch_add(1, Ordering::AcqRel);
            }
            stdin
        });
        Self { stop, written, thread }
    }
}

/// How many calls were let through after that record.
fn admitted_after(bench: &Bench, seq: Seq) -> usize {
    let after = |record: &&syscap::format::Record| {
        record.seq > seq && matches!(record.body, Body::Intent(_))
    };
    bench.records().iter().filter(after).count()
}

/// Floods a gateway beside the one that holds the home, and revokes the token meanwhile.
fn flooded(kind: &str, line: impl Fn(usize) -> String + Send + 'static) {
    let bench = Bench::new();
    std::fs::create_dir(bench.server("even")).unwrap();
    let even = format!("server=odd:{}", bench.server("even").display());
    let holder = bench.start(&[&even, "class=local_write=*", "limit=concurrent:64"]).session();
    let mut gateway = bench.gateway(&["limit=concurrent:64"]).session();
    gateway.call("echo", json!({}));
    let before = (gateway.peak_kib(), holder.peak_kib());
    let beside = Runtime::connect(bench.home()).unwrap();
    let token = beside.view().unwrap().tokens[0].id;
    let flood = Flood::begin(&mut gateway, line);
    thread::sleep(LASTS);
    let since = Instant::now();
    let revoked = beside.revoke(token).unwrap();
    let took = since.elapsed();
    thread::sleep(LASTS);
    flood.stop.store(true, Ordering::Release);
    // What was asked before is answered, and nothing of it is let through any more.
    gateway.stdin = Some(flood.thread.join().unwrap());
    let mut last = json!({});
    until("there is room for one more", || {
        let id = gateway.begin("echo", json!({"text": "the last"}));
        last = gateway.answer(&id);
        last["error"]["code"] != -32_000 && refusal(&last["result"])["reason"] != "not_made"
    });
    assert_eq!(refusal(&last["result"])["reason"], "revoked", "{last}");
    let grown = (gateway.peak_kib() - before.0, holder.peak_kib() - before.1);
    println!(
        "{kind}: {} lines, gateway +{} KiB, holder +{} KiB, revoked in {took:?}, {} let through",
        flood.written.load(Ordering::Acquire),
        grown.0,
        grown.1,
        bench.outcomes().len(),
    );
    assert!(grown.0 < GROWTH_KIB && grown.1 < GROWTH_KIB, "{grown:?}");
    assert_eq!(admitted_after(&bench, revoked), 0);
    beside.close().unwrap();
    assert!(gateway.end().success());
    assert!(holder.end().success());
    until("all is settled", || bench.count("Intent") == bench.count("Outcome"));
    bench.settled();
}

fn call(n: usize, name: &str, args: &str, more: &str) -> String {
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"f{n}\",\"method\":\"tools/call\",\"params\":\
         {{\"name\":\"{name}\",\"arguments\":{args}{more}}}}}\n"
    )
}

#[test]
fn a_flood_of_calls_is_stopped_by_a_revocation() {
    flooded("calls", |n| call(n, "echo", "{}", ""));
}

#[test]
fn a_flood_of_notifications_is_stopped_by_nobody() {
    flooded("notifications", |n| {
        let method = ["cancelled", "roots/list_changed", "progress", "of/no/kind"][n % 4];
        format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/{method}\",\"params\":\
             {{\"requestId\":{n},\"progressToken\":{n},\"progress\":1}}}}\n"
        )
    });
}

#[test]
fn a_flood_of_odd_ids_is_answered() {
    flooded("odd ids", |n| {
        let id = ["1.5", "null", "[1]", "{}", "9223372036854775808", "true"][n % 6];
        format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{}}}}\n")
    });
}

#[test]
fn a_flood_of_large_arguments_is_stopped_by_a_revocation() {
    let text = "x".repeat(700 << 10);
    flooded("large arguments", move |n| call(n, "echo", &format!("{{\"text\":\"{text}\"}}"), ""));
}

#[test]
fn a_flood_of_progress_is_stopped_by_a_revocation() {
    flooded("progress", |n| {
        let args =
            "{\"count\":2000,\"text\":\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"}";
        call(n, "notices", args, &format!(",\"_meta\":{{\"progressToken\":{n}}}"))
    });
}
