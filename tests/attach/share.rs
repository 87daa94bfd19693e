//! What attached processes do together: one kernel decides for all of them.

use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use host_support::end;
use syscap::format::{
    Amounts, Body, Canonical, Freeze, Item, MapBuilder, OutcomeFlags, PolicyObject, Rights, Scope,
    SessionPhase, Source, TokenFlags, ToolGrant,
};
use syscap::policy::Preset;
use syscap::prelude::*;
use syscap::verify::Soundness;
use syscap::{Runtime, Written};

use crate::{attach::wire::*, attach::world::*};

#[test]
fn two_share_a_home() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    assert!(holder.is_holder() && !attached.is_holder());
    let theirs = caller(&attached, &["echo"]);
    let ours = holder.session("a", theirs.token()).unwrap();
    for caller in [&ours, &theirs] {
        assert_eq!(echo(caller).unwrap().reason(), None);
        let refused = call(caller, "fs.read", args! { "path": "a" }).unwrap();
        assert_eq!(refused.reason(), Some(Reason::NotGranted));
    }
    let (here, mut there) = (holder.view().unwrap(), attached.view().unwrap());
    // They look one after the other, and the clock goes on.
    assert!(there.now >= here.now);
    there.now = here.now;
    assert_eq!(here, there);
    assert_eq!(here.sessions.len(), 2);
    assert_eq!((here.counts.calls, here.counts.allowed, here.counts.failed), (4, 2, 0));
    assert_eq!(here.counts.refused[&Reason::NotGranted], 2);
    assert_eq!(here.tokens[0].used.get(Dimension::Calls), 4);
    assert!(here.tool(&tool("echo")).unwrap().provided);
    // What can't be: the same as it is in the holder.
    assert!(matches!(attached.session("A", theirs.token()), Err(Error::BadName { .. })));
    assert!(matches!(
        attached.issue(Grant::to("a").tools(["no.tool"])),
        Err(Error::NoSuch { what: "the tool", .. })
    ));
    let foreign = attached.session("b", theirs.token()).err().unwrap();
    let Error::Refused(foreign) = foreign else { panic!("{foreign}") };
    assert_eq!(foreign.reason(), Reason::NotBound);
    theirs.close().unwrap();
    assert_eq!(holder.view().unwrap().sessions.len(), 1);
    attached.close().unwrap();
    end(&holder, &home);
}

/// Two clients each edit a line of one file, again and again: no edit that was answered as done is
/// lost.
#[test]
fn two_clients_edit_one_file() {
    const LINES: u64 = 40;
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let theirs = caller(&attached, &["fs.edit"]);
    let ours = holder.session("a", theirs.token()).unwrap();
    let file = home.join("files/agents/a/workspace/f");
    std::fs::write(&file, (0..2 * LINES).map(|n| format!("old {n};\n")).collect::<String>())
        .unwrap();
    let edit = |caller: &Session, n: u64| {
        let (old, new) = (format!("old {n};"), format!("new {n};"));
        let args = args! { "path": "f", "old": old.as_str(), "new": new.as_str() };
        assert_eq!(call(caller, "fs.edit", args).unwrap().reason(), None);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| (0..LINES).for_each(|n| edit(&ours, n)));
        scope.spawn(|| (LINES..2 * LINES).for_each(|n| edit(&theirs, n)));
    });
    let wanted: String = (0..2 * LINES).map(|n| format!("new {n};\n")).collect();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), wanted);
    attached.close().unwrap();
    end(&holder, &home);
}

/// An answer is the same, to the byte, wherever the caller is; also one that nests as deep as
/// data may.
#[test]
fn an_answer_travels_whole() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let theirs = caller(&attached, &["echo"]);
    let ours = holder.session("a", theirs.token()).unwrap();
    // The result stands in the arguments' map: one level less than data may have.
    let deep = (0..60).fold(Canonical::text("x"), |item, _| Canonical::list([item].into_iter()));
    let envelope = MapBuilder::new()
        .text("tool_id", "echo")
        .item("args", MapBuilder::new().item("value", deep.item()).finish().item())
        .text("idempotency_key", "once")
        .finish();
    let here = ours.envelope(envelope.as_bytes(), Written::Cbor).wait().unwrap();
    let there = theirs.envelope(envelope.as_bytes(), Written::Cbor).wait().unwrap();
    assert_eq!((here.reason(), there.reason()), (None, None));
    assert_eq!(here.delivered(), there.delivered());
    let keys = |answer: &ToolResult| {
        let envelope = answer.to_canonical();
        envelope.item().entries().map(|(key, _)| key.to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(keys(&here), keys(&there));
    // The same call: the second is a repeat of the first.
    let Body::Repeat(repeat) = record(&home, there.receipt().outcome_seq).body else { panic!() };
    assert_eq!(repeat.outcome, here.receipt().outcome_seq);
    let counts = holder.view().unwrap().counts;
    assert_eq!((counts.calls, counts.allowed, counts.repeats), (2, 1, 1));

    let json = br#"{"tool_id": "echo", "args": {"value": "from JSON"}}"#;
    let answer = theirs.envelope(json, Written::Json).wait().unwrap();
    let said = answer.delivered().item().get("value").and_then(Item::as_text);
    assert_eq!(said, Some("from JSON"));
    let bad = theirs.envelope(b"{", Written::Json).wait().unwrap();
    assert_eq!(bad.reason(), Some(Reason::Malformed));
    assert!(matches!(record(&home, bad.receipt().outcome_seq).body, Body::Refusal(_)));
    let traced = theirs.request("echo").args(args! { "value": 1_u64 }).trace("trace-7");
    let traced = traced.wait().unwrap();
    let trace = outcome(&home, &traced).call.provenance.unwrap().trace;
    assert_eq!(trace.as_deref(), Some("trace-7"));
}

#[test]
fn a_grant_means_the_same_there() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let grant = || {
        let apart = ToolGrant::new().with("route", Scope::names(["r"]).unwrap());
        Grant::to("team/a")
            .tools(["fs.read", "fs.write", "http_request"])
            .workspace()
            .path("shared/docs", Rights::READ)
            .scope("host", Scope::hosts(["example.com"]).unwrap())
            .tool_with(tool("net.egress"), apart)
            .budget(budget(7))
            .expires_in(Duration::from_secs(77))
    };
    let ids = [
        holder.issue(grant()).unwrap(),
        attached.issue(grant()).unwrap(),
        attached.issue(grant().read_only()).unwrap(),
    ];
    holder.close().unwrap();
    drop(attached);
    let log = Options::new().inspect(&home).unwrap();
    let bodies = ids.map(|id| log.kernel().token(&id).unwrap().body.clone());
    let [here, there, read_only] = bodies;
    assert_eq!(here.grants, there.grants);
    assert_eq!((here.budget, &here.agent, here.flags), (there.budget, &there.agent, there.flags));
    assert_eq!(here.expires.since(here.not_before), there.expires.since(there.not_before));
    assert_eq!(here.grants, read_only.grants);
    assert!(read_only.flags.has(TokenFlags::READ_ONLY));
}

#[test]
fn revoked_by_another_while_it_runs() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let [runs, calls, revokes] = [(); 3].map(|()| Runtime::connect(&home).unwrap());
    let gate = Gate::new(WhenCancelled::Ends);
    runs.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let caller = caller(&calls, &["t.wait", "echo"]);
    std::thread::scope(|scope| {
        let running = scope.spawn(|| call(&caller, "t.wait", args! {}).unwrap());
        until("it runs", || !gate.came().is_empty());
        let view = revokes.view().unwrap();
        assert_eq!(view.running.len(), 1);
        assert_eq!(view.running[0].tool, tool("t.wait"));
        assert_eq!(view.running[0].intent, gate.came()[0].0);
        assert!(view.running[0].since <= view.now);
        assert!(view.running[0].since >= record(&home, gate.came()[0].0).time);
        let at = revokes.revoke(caller.token()).unwrap();
        assert_eq!(echo(&caller).unwrap().reason(), Some(Reason::Revoked));
        gate.open();
        let answer = running.join().unwrap();
        assert_eq!(answer.reason(), None);
        let outcome = outcome(&home, &answer);
        assert!(outcome.intent < at && at < answer.receipt().outcome_seq);
        assert!(outcome.flags.has(OutcomeFlags::REVOKED));
    });
    assert_eq!(call(&caller, "t.wait", args! {}).unwrap().reason(), Some(Reason::Revoked));
    assert_eq!(gate.came().len(), 1);
    assert!(holder.view().unwrap().token(caller.token()).unwrap().revoked);
}

#[test]
fn another_sets_the_policy() {
    let (_dir, home) = home();
    let _holder = Runtime::open(&home).unwrap();
    let [calls, decides] = [(); 2].map(|()| Runtime::connect(&home).unwrap());
    let caller = caller(&calls, &["fs.write"]);
    let write = || call(&caller, "fs.write", args! { "path": "a", "text": "x" }).unwrap();
    let before = write();
    assert_eq!(before.reason(), None);
    let strict = preset(Preset::ReadOnly);
    decides.set_policy_object(&strict).unwrap();
    let after = write();
    assert_eq!(after.reason(), Some(Reason::Denied));
    let Body::Refusal(refusal) = record(&home, after.receipt().outcome_seq).body else { panic!() };
    assert_eq!(refusal.call.policy_hash, Some(strict.hash()));
    assert_eq!(decides.view().unwrap().policy, Some(strict.hash()));
    // A shadow changes nothing but the records.
    let loose = preset(Preset::Recording);
    decides.set_shadow_object(&loose).unwrap();
    let shadowed = write();
    assert_eq!(shadowed.reason(), Some(Reason::Denied));
    let Body::Refusal(refusal) = record(&home, shadowed.receipt().outcome_seq).body else {
        panic!()
    };
    assert_eq!(refusal.call.shadow.unwrap().policy, loose.hash());
    decides.clear_shadow().unwrap();
    assert_eq!(decides.view().unwrap().shadow, None);
    // One that nobody here can read is refused, on the record, and the one in force stays.
    let unknown = PolicyObject { document: vec![0xa0], ..strict.clone() };
    let Err(Error::Refused(refused)) = decides.set_policy_object(&unknown) else { panic!() };
    assert_eq!(refused.reason(), Reason::BadPolicy);
    assert_eq!(decides.view().unwrap().policy, Some(strict.hash()));
    let frozen = Freeze::all();
    decides.freeze(&frozen).unwrap();
    assert_eq!(write().reason(), Some(Reason::Frozen));
}

#[test]
fn eight_race_for_one_budget() {
    const CALLS: u64 = 200;
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let grant = Grant::to("a").tools(["fs.write"]).workspace().budget(budget(CALLS));
    let token = holder.issue(grant).unwrap();
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for process in 0..8 {
            let (home, written) = (&home, &written);
            scope.spawn(move || {
                let attached = Runtime::connect(home).unwrap();
                assert!(!attached.is_holder());
                let caller = attached.session("a", token).unwrap();
                let call = |thread: u64, n: u64| {
                    let path = format!("{process}-{thread}-{n}");
                    let args = args! { "path": &path, "text": "x" };
                    let answer = call(&caller, "fs.write", args).unwrap();
                    match answer.reason() {
                        None => drop(written.fetch_add(1, Ordering::SeqCst)),
                        Some(reason) => assert_eq!(reason, Reason::OverBudget),
                    }
                };
                std::thread::scope(|scope| {
                    for thread in 0..4 {
                        let call = &call;
                        scope.spawn(move || (0..12).for_each(|n| call(thread, n)));
                    }
                });
            });
        }
    });
    assert_eq!(written.load(Ordering::SeqCst), CALLS);
    let files = std::fs::read_dir(home.join("files/agents/a/workspace")).unwrap().count();
    assert_eq!(u64::try_from(files).unwrap(), CALLS);
    let view = holder.view().unwrap();
    let standing = view.token(token).unwrap();
    assert_eq!(standing.used.get(Dimension::Calls), CALLS);
    assert_eq!((standing.held, standing.left.get(Dimension::Calls)), (Amounts::ZERO, 0));
    assert_eq!((view.counts.connections, view.counts.allowed), (8, CALLS));
    end(&holder, &home);
}

#[test]
fn state_and_charges_travel() {
    let (_dir, home) = home();
    let _holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let caller = caller(&attached, &["echo"]);
    let first = caller.propose(args! { "goal.task": "read" }).unwrap();
    let stale = first.snapshot;
    let second = caller.propose_from(stale, args! { "goal.task": "write" }).unwrap();
    assert!(second.record > first.record);
    let Err(Error::Refused(refused)) = caller.propose_from(stale, args! { "goal.task": "x" })
    else {
        panic!()
    };
    assert_eq!(refused.reason(), Reason::StaleSnapshot);
    let result = echo(&caller).unwrap().receipt().outcome_seq;
    let fact = args! { "fact.said": "hello" };
    let seen = attached.observe(&caller, Source::Tool, &[result], fact).unwrap();
    let Body::State(change) = record(&home, seen.record).body else { panic!() };
    assert_eq!(change.call.provenance.unwrap().inputs, [result]);
    let amounts = Amounts::ZERO.with(Dimension::LlmTokens, 5);
    caller.charge(amounts).unwrap();
    let view = attached.view().unwrap();
    let used = view.token(caller.token()).unwrap().used;
    assert_eq!(used.get(Dimension::LlmTokens), 5);
}

/// A client that vanishes in the middle of a call: the call ends, on the record, and so does its
/// session.
#[test]
fn a_client_that_vanishes_leaves_nothing_open() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let gate = Gate::new(WhenCancelled::Ends);
    holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let caller = caller(&attached, &["t.wait"]);
    let session = attached.view().unwrap().sessions[0].number;
    std::thread::scope(|scope| {
        let out = scope.spawn(|| call(&caller, "t.wait", args! {}));
        until("it runs", || !gate.came().is_empty());
        attached.close().unwrap();
        assert!(matches!(out.join().unwrap(), Err(Error::HolderGone)));
    });
    until("it has ended", || {
        let view = holder.view().unwrap();
        view.running.is_empty() && view.sessions.is_empty()
    });
    let intent = gate.came()[0].0;
    assert_eq!(gate.cancelled(), [intent]);
    let held = holder.view().unwrap().token(caller.token()).unwrap().held;
    assert_eq!(held, Amounts::ZERO);
    holder.close().unwrap();
    let records = records(&home);
    let outcome = records.iter().find_map(|record| match &record.body {
        Body::Outcome(outcome) if outcome.intent == intent => Some(outcome),
        _ => None,
    });
    assert_eq!(outcome.unwrap().reason, Some(Reason::Cancelled));
    assert!(records.iter().any(|record| match &record.body {
        Body::Session(change) => {
            change.phase == SessionPhase::Close && change.session == Some(session)
        }
        _ => false,
    }));
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// A call that is given up in the same breath in which it is asked for, and may not have begun,
/// is given up all the same.
#[test]
fn a_call_can_be_given_up_before_it_begins() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let gate = Gate::new(WhenCancelled::Ends);
    holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let opened = caller(&holder, &["t.wait"]);
    let ticket = opened.lend().unwrap();
    let session = holder.view().unwrap().sessions[0].number.get();
    let mut stream = greeted_by(&home, &HELLO_AGENTS);
    let taken = ask(&mut stream, &asking(0, AGENT_ASK, TAKE, |e| e.bytes(ticket.as_bytes())));
    assert_eq!(parts(&taken).1, DONE);
    let args = MapBuilder::new().finish();
    let envelope = MapBuilder::new().text("tool_id", "t.wait").item("args", args.item()).finish();
    for call in (1..60).step_by(2) {
        let called = calling_by(call, session, Source::Agent, envelope.as_bytes());
        let given_up = asking(call + 1, AGENT_ASK, CANCEL, |encoder| encoder.uint(call));
        stream.write_all(&[frame(&called), frame(&given_up)].concat()).unwrap();
        let mut answered = [receive(&mut stream), receive(&mut stream)]
            .map(|answer| parts(&answer.expect("an answer")).0);
        answered.sort_unstable();
        assert_eq!(answered, [call, call + 1]);
    }
    assert!(holder.view().unwrap().running.is_empty());
    let cancelled = records(&home).into_iter().filter(|record| match &record.body {
        // Where it had begun the tool says what became of it.
        Body::Outcome(outcome) => {
            matches!(outcome.reason, Some(Reason::NotRun | Reason::Cancelled))
        }
        _ => false,
    });
    assert_eq!(cancelled.count(), 30);
}
