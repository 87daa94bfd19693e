//! A policy is swapped while callers are at work: every call is decided by exactly one policy, and
//! its record names it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::as_conversions,
    reason = "a test stops at the first surprise"
)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use host_support::new_home;
use syscap::audit::SqliteReader;
use syscap::format::{
    Body, CallFields, ControlBody, Durability, PolicyChange, PolicyHash, Reason, Record, Seq,
    Verdict,
};
use syscap::kernel::Next;
use syscap::policy::Policy;
use syscap::prelude::*;

const CALLERS: u64 = 64;
const CALLS_EACH: u64 = 20;

/// A policy that says of every call what `effect` says, under a name of its own.
fn policy(name: &str, effect: &str, obligation: &str) -> Policy {
    let text = format!(
        r#"{{"v": 1, "constraints": [
            {{"id": "{name}", "effect": "{effect}", "subject": null,
              "when": {{"op": "all", "args": []}}, "on_fail": "block", "reason": "{name}"
              {obligation}}}]}}"#
    );
    Policy::from_json(text.as_bytes()).unwrap()
}

#[test]
fn every_call_is_decided_by_one_policy_and_its_record_names_it() {
    let (_folder, home) = new_home();
    let first = policy("first", "allow", "");
    let second = policy("second", "deny", "");
    let third =
        policy("third", "allow", r#", "obligations": [{"type": "notify", "topic": "third"}]"#);
    let says: BTreeMap<PolicyHash, (&str, Verdict)> = [
        (first.hash(), ("first", Verdict::Allow)),
        (second.hash(), ("second", Verdict::Deny)),
        (third.hash(), ("third", Verdict::Allow)),
    ]
    .into();
    let runtime =
        Options::new().durability(Durability::Process).policy(first).create(&home).unwrap();
    let runtime = Arc::new(runtime);
    let (answers, refusals) = (AtomicU64::new(0), AtomicU64::new(0));
    let done = AtomicBool::new(false);
    let mut swaps = 0_u64;
    thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|n| {
                let (runtime, answers, refusals) = (&runtime, &answers, &refusals);
                scope.spawn(move || {
                    let agent = format!("agent{n}");
                    let grant = Grant::to(&agent).tools(["echo"]);
                    let token = runtime.issue(grant).unwrap();
                    let session = runtime.session(&agent, token).unwrap();
                    for value in 0..CALLS_EACH {
                        let result = session.call("echo", args! { "value": value }).unwrap();
                        match result.reason() {
                            None => answers.fetch_add(1, Ordering::Relaxed),
                            Some(reason) => {
                                assert_eq!(reason, Reason::Denied);
                                refusals.fetch_add(1, Ordering::Relaxed)
                            }
                        };
                    }
                })
            })
            .collect();
        let (runtime, done) = (&runtime, &done);
        let swapper = scope.spawn(move || {
            let mut swaps = 0_u64;
            while !done.load(Ordering::Relaxed) {
                runtime.set_policy(policy("second", "deny", "")).unwrap();
                let notify = r#", "obligations": [{"type": "notify", "topic": "third"}]"#;
                runtime.set_policy(policy("third", "allow", notify)).unwrap();
                runtime.set_policy(policy("first", "allow", "")).unwrap();
                swaps += 3;
            }
            swaps
        });
        callers.into_iter().for_each(|caller| caller.join().unwrap());
        done.store(true, Ordering::Relaxed);
        swaps = swapper.join().unwrap();
    });
    Arc::into_inner(runtime).unwrap().close().unwrap();

    let (seen, by) = decisions(&home, &says);
    // A flood of refusals is counted together, so not every refusal has a record of its own.
    assert_eq!(
        answers.load(Ordering::Relaxed) + refusals.load(Ordering::Relaxed),
        CALLERS * CALLS_EACH
    );
    assert!(seen >= answers.load(Ordering::Relaxed), "{by:?}");
    assert!(swaps >= 3, "{swaps} swaps");
    println!("{seen} decisions by {by:?} under {swaps} swaps");
}

/// Goes through the log: the policy that a record names is the one on record at that place, and
/// said what the record says. How many decisions there are, and by which policy.
fn decisions(
    home: &Path,
    says: &BTreeMap<PolicyHash, (&'static str, Verdict)>,
) -> (u64, BTreeMap<&'static str, u64>) {
    let mut in_force: Option<PolicyHash> = None;
    let mut by: BTreeMap<&str, u64> = BTreeMap::new();
    let mut check = |call: &CallFields, in_force: Option<PolicyHash>| {
        let Some(decision) = &call.decision else { return };
        assert_eq!(call.policy_hash, in_force);
        let (name, verdict) = says[&in_force.unwrap()];
        assert_eq!(decision.deciding.as_ref().unwrap().as_str(), name);
        assert_eq!(decision.verdict, verdict);
        assert_eq!(decision.obligations.is_empty(), name != "third");
        *by.entry(name).or_default() += 1;
    };
    let mut records = Vec::new();
    let mut gather = |_, bytes: &[u8]| {
        records.push(Record::decode(bytes).unwrap());
        Next::More
    };
    SqliteReader::open(home).unwrap().records(Seq::GENESIS, &mut gather).unwrap();
    for record in records {
        match &record.body {
            Body::Policy(event) => {
                in_force = Some(PolicyChange::from_bytes(&event.control.body).unwrap().policy);
            }
            Body::Intent(intent) => check(&intent.call, in_force),
            Body::Refusal(refusal) => check(&refusal.call, in_force),
            _ => {}
        }
    }
    (by.values().sum(), by)
}
