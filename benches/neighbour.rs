//! What one agent's calls cost another: a victim's durable calls a second beside each attacker, as
//! a share of its calls a second beside a quiet neighbour.
#![allow(clippy::unwrap_used, clippy::as_conversions, reason = "bench")]

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use syscap::format::json::Escapes;
use syscap::format::{EffectClass, Param, ParamType};
use syscap::host::HostTool;
use syscap::prelude::*;

const MEGABYTE: usize = 1_000_000;
/// Requests of the attacker that wait, one fewer than may.
const WAITING: usize = 31;
/// References of one call.
const REFERENCES: usize = 16;

/// What the other agent does in a loop.
#[derive(Clone, Copy)]
enum Neighbour {
    /// Small calls.
    Quiet,
    /// Small calls that ask, beside large requests that wait.
    Asks,
    /// Calls that refer to more than may be read.
    RefersTooMuch,
    /// Calls that refer to as much as may be read.
    Refers,
    /// Repeats of a call with a large result.
    Repeats,
}

/// What other agents do in a loop, each in so many threads.
#[derive(Clone, Copy)]
struct Crowd {
    agents: usize,
    threads: usize,
    tool: &'static str,
}

fn runtime(folder: &std::path::Path) -> Runtime {
    let tool = |name, effect| HostTool::new(name, effect).unwrap();
    let touch = tool("touch", EffectClass::LocalWrite).run(|_| Ok(0_u64));
    let send = tool("mail.send", EffectClass::ExternalWrite);
    let send = send.text("body", "What.").run(|_| Ok("sent"));
    let give = tool("text.give", EffectClass::Read).integer("bytes", "How many.").run(|call| {
        let bytes = call.integer("bytes").map_or(0, |bytes| usize::try_from(bytes).unwrap_or(0));
        Ok("x".repeat(bytes))
    });
    let take = tool("text.take", EffectClass::Pure);
    let take = take.arg(Param::required("parts", ParamType::List, "Texts.")).run(|_| Ok("taken"));
    let mut options = Options::new();
    for tool in [touch, send, give, take] {
        options = options.tool(tool).unwrap();
    }
    options.create(folder.join("home")).unwrap()
}

fn session(rt: &Runtime, agent: &str) -> Session {
    let tools = ["touch", "echo", "mail.send", "text.give", "text.take"];
    let budget = Budget::standard().with(Dimension::Calls, 1 << 40);
    let token = rt.issue(Grant::to(agent).tools(tools).budget(budget)).unwrap();
    rt.session(agent, token).unwrap()
}

fn references(records: &[u64]) -> String {
    let part = |record: &u64| format!(r#"{{"$ref": {{"record": {record}, "path": []}}}}"#);
    let parts: Vec<String> = records.iter().map(part).collect();
    format!(r#"{{"parts": [{}]}}"#, parts.join(", "))
}

/// The victim's calls a second, and the neighbour's.
fn measure(neighbour: Neighbour, span: Duration) -> (f64, f64) {
    let folder = tempfile::tempdir().unwrap();
    let rt = runtime(folder.path());
    let (victim, other) = (session(&rt, "victim"), session(&rt, "other"));
    let give = |bytes: usize| {
        let given = other.call("text.give", args! { "bytes": bytes as u64 }).unwrap();
        given.receipt().outcome_seq.get()
    };
    let (mut args, mut n) = (String::new(), 0_u64);
    match neighbour {
        Neighbour::Quiet => {}
        Neighbour::Asks => {
            for n in 0..WAITING {
                let body = format!("{n}{}", "x".repeat(MEGABYTE));
                other.call("mail.send", args! { "body": &body }).unwrap();
            }
        }
        Neighbour::RefersTooMuch => {
            let records: Vec<u64> = (0..REFERENCES).map(|_| give(MEGABYTE)).collect();
            args = references(&records);
        }
        Neighbour::Refers => args = references(&[give(MEGABYTE)]),
        Neighbour::Repeats => {
            let bytes = args! { "bytes": 4 * MEGABYTE as u64 };
            other.request("text.give").args(bytes).key("k").wait().unwrap();
        }
    }
    let mut act = || {
        n += 1;
        let told = match neighbour {
            Neighbour::Quiet => other.call("touch", args! {}),
            Neighbour::Asks => other.call("mail.send", args! { "body": &format!("{}", n % 8) }),
            Neighbour::RefersTooMuch | Neighbour::Refers => {
                other.request("text.take").json(&args, Escapes::Read).wait()
            }
            Neighbour::Repeats => other
                .request("text.give")
                .args(args! { "bytes": 4 * MEGABYTE as u64 })
                .key("k")
                .wait(),
        };
        told.unwrap();
    };
    let over = AtomicBool::new(false);
    let (calls, others) = std::thread::scope(|scope| {
        let attacker = scope.spawn(|| {
            let mut count = 0_u64;
            while !over.load(Ordering::SeqCst) {
                act();
                count += 1;
            }
            count
        });
        let (start, mut calls) = (Instant::now(), 0_u64);
        while start.elapsed() < span {
            assert_eq!(victim.call("touch", args! {}).unwrap().reason(), None);
            calls += 1;
        }
        over.store(true, Ordering::SeqCst);
        (calls, attacker.join().unwrap())
    });
    rt.close().unwrap();
    (calls as f64 / span.as_secs_f64(), others as f64 / span.as_secs_f64())
}

/// The victim's calls a second, and its longest wait, beside a crowd.
fn beside(crowd: Crowd, span: Duration) -> (f64, Duration) {
    let folder = tempfile::tempdir().unwrap();
    let rt = runtime(folder.path());
    let victim = session(&rt, "victim");
    let others: Vec<Session> =
        (0..crowd.agents).map(|n| session(&rt, &format!("other{n}"))).collect();
    let over = AtomicBool::new(false);
    let (calls, worst) = std::thread::scope(|scope| {
        for other in others.iter().flat_map(|other| std::iter::repeat_n(other, crowd.threads)) {
            scope.spawn(|| {
                while !over.load(Ordering::SeqCst) {
                    let args = if crowd.tool == "echo" {
                        args! { "value": "x" }
                    } else {
                        args! {}
                    };
                    other.call(crowd.tool, args).unwrap();
                }
            });
        }
        let (start, mut calls, mut worst) = (Instant::now(), 0_u64, Duration::ZERO);
        while start.elapsed() < span {
            let before = Instant::now();
            assert_eq!(victim.call("touch", args! {}).unwrap().reason(), None);
            worst = worst.max(before.elapsed());
            calls += 1;
        }
        over.store(true, Ordering::SeqCst);
        (calls, worst)
    });
    rt.close().unwrap();
    (calls as f64 / span.as_secs_f64(), worst)
}

/// Beside refused calls nobody may have less than beside as many granted ones.
fn crowds(span: Duration) {
    for (agents, threads) in [(1, 1), (1, 4), (1, 16), (16, 1)] {
        let measure = |tool| beside(Crowd { agents, threads, tool }, span);
        // Not granted, in reach of the policy, and of no effect.
        let [refused, granted, pure] = ["none", "touch", "echo"].map(measure);
        println!(
            "{agents:>2} agents of {threads:>2} threads: refused {:.0} calls/s (worst {:.1} ms), \
             granted {:.0} ({:.1} ms), pure {:.0} ({:.1} ms)",
            refused.0,
            refused.1.as_secs_f64() * 1e3,
            granted.0,
            granted.1.as_secs_f64() * 1e3,
            pure.0,
            pure.1.as_secs_f64() * 1e3,
        );
    }
}

fn main() {
    let span = Duration::from_secs(3);
    crowds(span);
    let quiet = measure(Neighbour::Quiet, span);
    let (rate, other) = quiet;
    println!("{:<44} {rate:.0} calls/s (other: {other:.0})", "beside a quiet neighbour");
    for (name, neighbour) in [
        ("31 large requests wait, small calls ask", Neighbour::Asks),
        ("16 references of 1 MB in each call", Neighbour::RefersTooMuch),
        ("one reference of 1 MB in each call", Neighbour::Refers),
        ("repeats of a result of 4 MB", Neighbour::Repeats),
    ] {
        // Before and after each other: the machine may be busy with something else meanwhile.
        let (calm, attacked) = (measure(Neighbour::Quiet, span), measure(neighbour, span));
        let share = attacked.0 / calm.0;
        let (rate, other) = attacked;
        println!("{name:<44} {rate:.0} calls/s, share {share:.2} (other: {other:.0})");
    }
}
