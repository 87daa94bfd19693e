//! Decisions of syscap, Cedar and Rego (regorus) on the same documents and calls, in one run.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod beside;
#[path = "../../harness/mod.rs"]
mod harness;
mod rego;
mod timing;
mod world;

use std::{hint::black_box, time::Instant};

use beside::World;
use cedar_policy::PolicySet;
use syscap_analysis as analysis;
use syscap_compare::cedar::{parse, text};
use syscap_format::{ToolId, Verdict};
use syscap_kernel::PolicyEngine;
use syscap_policy::Policy;
use timing::{Figure, ROUNDS, allocations, row, slow, timed};
use world::{Call, Kernel, TOOL, calls, declared, document, many_matches};

/// Constraints in all, and of the asked tool.
const SIZES: [(usize, usize); 11] = [
    (10, 1),
    (10, 10),
    (100, 1),
    (100, 10),
    (100, 100),
    (1_000, 1),
    (1_000, 10),
    (1_000, 100),
    (10_000, 1),
    (10_000, 10),
    (10_000, 100),
];
fn main() {
    let wanted = std::env::args().nth(1).filter(|name| !name.starts_with('-'));
    let is_wanted = |name: &str| wanted.as_ref().is_none_or(|wanted| wanted == name);
    let kernel = Kernel::new();
    let calls = calls();
    if is_wanted("decide") {
        decisions(&kernel, &calls);
    }
    if is_wanted("load") {
        load();
    }
    if is_wanted("ours") {
        ours(&kernel, &calls);
    }
    if is_wanted("profile") {
        profile(&kernel, &calls);
    }
}

fn decisions(kernel: &Kernel, calls: &[Call]) {
    let count = calls.len();
    println!("One decision, us: median of {ROUNDS} rounds in turn, mean of {count} calls.");
    println!("best/: the fastest of the others beside syscap, by medians.");
    let columns = |names: [&str; 13]| {
        print!("{:>11} {:>5} {:>5} {:>5}", names[0], names[1], names[2], names[3]);
        names[4..].iter().for_each(|name| print!(" {name:>8}"));
        println!();
    };
    columns([
        "constraints",
        "here",
        "allow",
        "match",
        "syscap",
        "min",
        "Cedar",
        "Cedar",
        "Rego",
        "Rego",
        "Rego",
        "Rego",
        "best/",
    ]);
    columns([
        "", "", "", "", "", "", "", "by tool", "rules", "interp.", "data", "interp.", "syscap",
    ]);
    let mut counts = Vec::new();
    for (all, here) in SIZES {
        let mut world = World::new(&document(all, here), kernel, calls);
        let allowed = world.agree();
        let matches = world.matches();
        let figures = world.times();
        let us = |figure: &Figure| figure.median / count as f64 / 1e3;
        print!("{all:>11} {here:>5} {:>5} {matches:>5}", format!("{allowed}/{count}"));
        let own = figures[0].unwrap();
        print!(" {:>8.3} {:>8.3}", us(&own), own.min / count as f64 / 1e3);
        for figure in &figures[1..] {
            match figure {
                Some(figure) => print!(" {:>8.1}", us(figure)),
                None => print!(" {:>8}", "-"),
            }
        }
        let others = figures[1..].iter().flatten().map(us);
        println!(" {:>7.0}x", others.fold(f64::INFINITY, f64::min) / us(&own));
        counts.push((all, here, world.allocations()));
    }
    println!("\nAllocations of the {count} decisions together.");
    println!(
        "{:>11} {:>5} {:>8} {:>8} {:>8} {:>10} {:>9}",
        "constraints", "here", "syscap", "Cedar", "by tool", "Rego rules", "Rego data"
    );
    for (all, here, [own, cedar, sliced, rules, table]) in counts {
        let rules = rules.map_or("-".into(), |count| count.to_string());
        let [own, cedar, sliced, table] = [own, cedar, sliced, table].map(Option::unwrap);
        println!("{all:>11} {here:>5} {own:>8} {cedar:>8} {sliced:>8} {rules:>10} {table:>9}");
    }
}

fn ms(what: &str, figure: Figure, own: f64) {
    println!(
        "{what:<58} {:>10.1} ms  (min {:.1}, max {:.1})  {:>6.1}x",
        figure.median / 1e6,
        figure.min / 1e6,
        figure.max / 1e6,
        figure.median / own
    );
}

fn load() {
    let json = document(10_000, 100);
    let policy = Policy::from_json(json.as_bytes()).unwrap();
    let written = policy.written();
    let bytes = policy.document();
    let (cedar, _) = text(written, &declared()).unwrap();
    let cedar_json = parse(&cedar).unwrap().to_json().unwrap().to_string();
    let rules = rego::rules(written);
    let (text, data) = rego::table(written);
    println!("\nLoading 10,000 constraints: from text to ready, median of 7 rounds.");
    println!(
        "bytes: syscap {} (canonical {}), Cedar {} (JSON {}), Rego rules {}, data {}",
        json.len(),
        bytes.len(),
        cedar.len(),
        cedar_json.len(),
        rules.len(),
        data.len()
    );
    let own = slow(|| Policy::from_json(json.as_bytes()).unwrap());
    ms("syscap, JSON", own, own.median);
    let own = own.median;
    ms("syscap, CBOR", slow(|| Policy::from_cbor(&bytes).unwrap()), own);
    ms("Cedar, policy text", slow(|| parse(&cedar).unwrap()), own);
    ms("Cedar, JSON", slow(|| PolicySet::from_json_str(&cedar_json).unwrap()), own);
    ms("Rego rules, interpreter", slow(|| rego::interpreter(&rules, None)), own);
    match rego::machine(&rules, None) {
        Some(_) => ms("Rego rules, machine", slow(|| rego::machine(&rules, None)), own),
        None => println!("Rego rules, machine: it takes no more than 65,535 instructions"),
    }
    ms("Rego data, interpreter", slow(|| rego::interpreter(&text, Some(&data))), own);
    ms("Rego data, machine", slow(|| rego::machine(&text, Some(&data))), own);
}

/// What the others have no like of.
fn ours(kernel: &Kernel, calls: &[Call]) {
    println!("\nsyscap alone, medians.");
    let policy = Policy::from_json(document(10_000, 100).as_bytes()).unwrap();
    for (call, what) in calls.iter().zip(["granted", "no grant", "denied", "granted by host"]) {
        let question = kernel.question(call);
        let decision = policy.decide(&question);
        let count = allocations(|| policy.decide(&question));
        row(
            &format!(
                "decide, 100 of 10,000, {what} ({}, {} matches, {count} allocations)",
                decision.verdict.name(),
                decision.match_count
            ),
            timed(|| policy.decide(&question)),
        );
        if decision.verdict != Verdict::Allow {
            let count = allocations(|| policy.advise(&question, &decision));
            row(
                &format!("  advise ({count} allocations)"),
                timed(|| policy.advise(&question, &decision)),
            );
        }
    }
    let many = Policy::from_json(many_matches().as_bytes()).unwrap();
    let question = kernel.question(&calls[0]);
    let decision = many.decide(&question);
    assert!(decision.matches_digest.is_some());
    let count = allocations(|| many.decide(&question));
    row(
        &format!(
            "decide, 40 of 40, {} match, with their digest ({count} allocations)",
            decision.match_count
        ),
        timed(|| many.decide(&question)),
    );
    analyses();
}

fn analyses() {
    let json = document(1_000, 100);
    let read = |json: &str| Policy::from_json(json.as_bytes()).unwrap();
    let policy = read(&json);
    let first = policy.written();
    // One bound, one byte lower.
    let bound = (1 << 20).to_string();
    let other = json.replacen(&bound, &((1 << 20) - 1).to_string(), 1);
    assert_ne!(json, other);
    let second = read(&other);
    let tool = ToolId::new(TOOL).unwrap();
    let limit = analysis::NODES_DEFAULT;
    let reached = analysis::who_can(first, &tool, None, limit);
    let exact = reached.iter().filter(|one| one.proof == analysis::Proof::Exact).count();
    let what =
        format!("who_can, 100 of 1,000 ({} classes of agents, {exact} exact)", reached.len());
    row(&what, slow(|| analysis::who_can(first, &tool, None, limit)));
    for (what, second) in [("itself", first), ("one bound moved by 1", second.written())] {
        let found = match analysis::diff(first, second, limit) {
            analysis::Finding::Holds { nodes } => format!("holds, {nodes} nodes"),
            analysis::Finding::Unknown { nodes } => format!("unknown, {nodes} nodes"),
            analysis::Finding::Fails(shown) => {
                format!("found {}", analysis::scenario::to_json(&shown.scenario))
            }
        };
        println!("diff of 1,000 and {what}: {found}");
        row("  diff", slow(|| analysis::diff(first, second, limit)));
    }
}

/// Nothing but decisions, for so many seconds, for a profiler.
fn profile(kernel: &Kernel, calls: &[Call]) {
    let Ok(seconds) = std::env::var("PROFILE_SECONDS") else { return };
    let policy = Policy::from_json(document(10_000, 100).as_bytes()).unwrap();
    let question = kernel.question(&calls[0]);
    let end = Instant::now() + std::time::Duration::from_secs(seconds.parse().unwrap());
    while Instant::now() < end {
        (0..10_000).for_each(|_| drop(black_box(policy.decide(black_box(&question)))));
    }
}
