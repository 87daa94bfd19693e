//! One small check each, without which something that the kernel promises would be gone.

use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Ending, Policed, Sim, home, ok, records, refused_with, seated};
use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Body, ConfigChange, Dimension, FreezeChange, Item, Label, OutcomeFlags, Reason,
    Record, RecordKind, Recovered, Recovery, Refusal, Resolution, Seq, Status, TokenBody, TokenId,
    TxOutcome, UnixMillis,
};
use syscap_kernel::{
    Anchor, Event, Forgery, Halt, Kernel, Lost, Measured, Next, Store, StoreError, Ticket,
};
use syscap_verify::{Extent, Options as VerifyOptions, verify};

const SPEND: &str = r#"{"tool_id": "spend", "args": {"units": 3}}"#;

/// Hands a call in, runs it and gives its ticket.
fn run(sim: &mut Sim, session: Seq, json: &str) -> Ticket {
    let ticket = sim.submit_json(session, json);
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    ticket
}

fn used(sim: &Sim, token: TokenId) -> Amounts {
    sim.kernel.token(&token).unwrap().used
}

fn held(sim: &Sim, token: TokenId) -> Amounts {
    sim.kernel.token(&token).unwrap().held
}

fn spent(sim: &Sim) -> usize {
    sim.world.lock().unwrap().spent.len()
}

fn verifies(sim: &mut Sim) {
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
}

fn last_refusal(sim: &mut Sim) -> Refusal {
    match records(sim).pop().unwrap().body {
        Body::Refusal(refusal) => *refusal,
        other => panic!("{:?}", other.kind()),
    }
}

/// The engine that a kernel is given decides only if it is the one on record.
#[test]
fn an_engine_that_is_not_on_record_decides_nothing() {
    let nowhere = kernel_support::fault::FaultPoint::Nowhere;
    let store = syscap_audit::MemoryStore::new();
    let store = kernel_support::fault::FaultStore::new(store, nowhere);
    let mut sim = Sim::with(store, Default::default(), Policed::ByRule);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    sim.commit();
    sim.crash().unwrap();
    // The same log, and an engine that lets through whatever the token does.
    let parts = sim::parts_of(&sim.world, Policed::ByToken);
    sim.kernel = Kernel::open(&mut sim.store, parts, &Anchor::default()).unwrap();
    sim.boot();
    let session = sim.seat(token);
    refused_with(&mut sim, session, SPEND, Reason::PolicyNotInForce);
    assert_eq!(spent(&sim), 0);
}

/// A run that was given up and has not come back holds its slot, but not across a boot.
#[test]
fn a_boot_frees_every_slot_of_concurrent() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    let ticket = sim.submit_json(session, SPEND);
    sim.commit();
    sim.end_job(0, Ending::TimesOut);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::TimedOut));
    assert_eq!(held(&sim, token).get(Dimension::Concurrent), 1);
    sim.crash().unwrap();
    sim.boot();
    assert_eq!(held(&sim, token), Amounts::ZERO);
}

/// An id that a caller made up stands nowhere in the log.
#[test]
fn an_id_that_a_caller_made_up_is_not_recorded() {
    let (mut sim, session) = seated();
    let made_up = "ab".repeat(32);
    for (field, reason) in
        [("capability_token_id", Reason::NotBound), ("state_snapshot_id", Reason::UnknownSnapshot)]
    {
        let call = format!(r#"{{"tool_id": "look", "args": {{"at": 1}}, "{field}": "{made_up}"}}"#);
        refused_with(&mut sim, session, &call, reason);
        let call = last_refusal(&mut sim).call;
        assert_eq!(call.capability_token_id.is_none(), field == "capability_token_id");
        assert_eq!(call.state_snapshot_id.is_none(), field == "state_snapshot_id");
    }
    let bytes: Vec<Vec<u8>> = records(&mut sim).iter().map(Record::encode).collect();
    let made_up = [0xab; 32];
    assert!(!bytes.iter().any(|bytes| bytes.windows(32).any(|window| window == made_up)));
}

/// Within a boot kernel time never goes back, whatever the wall clock does.
#[test]
fn a_clock_that_goes_back_is_not_followed() {
    let (mut sim, session) = seated();
    for step in [200_000_i64, -150_000, 100_000, -250_000] {
        sim.wall = sim.wall.saturating_add_signed(step);
        ok(&mut sim, session);
        assert_eq!(sim.kernel.halted(), None);
    }
    let times: Vec<u64> = records(&mut sim).iter().map(|record| record.time.get()).collect();
    assert!(times.is_sorted());
    assert_eq!(sim.kernel.now().get(), *times.iter().max().unwrap());
}

/// A boot begins no earlier than the last record, whatever the wall clock says.
#[test]
fn a_boot_begins_no_earlier_than_the_last_record() {
    let mut sim = home();
    let token = sim.issue("a0", 10, 10, 60_000);
    sim.wall += 100_000;
    sim.boottime += 100_000;
    sim.commit();
    sim.event(Event::Tick);
    let other = sim.issue("a1", 10, 10, 60_000);
    sim.commit();
    let last = records(&mut sim).pop().unwrap().time;
    sim.crash().unwrap();
    sim.wall -= 100_000;
    sim.boot();
    assert_eq!(sim.kernel.halted(), None);
    assert!(sim.kernel.now() >= last);
    // The token that had ended stays so.
    sim.open("a0", token);
    sim.open("a1", other);
    sim.commit();
    let (ended, live) = (sim.sessions[0], sim.sessions[1]);
    refused_with(&mut sim, ended, SPEND, Reason::Expired);
    ok(&mut sim, live);
}

/// The policy that a call names is the one in force, or it is not let through.
#[test]
fn a_call_under_another_policy_is_refused() {
    let (mut sim, session) = seated();
    let call = |hash: &str| {
        format!(r#"{{"tool_id": "spend", "args": {{"units": 1}}, "policy_hash": "{hash}"}}"#)
    };
    refused_with(&mut sim, session, &call(&"cd".repeat(32)), Reason::PolicyMismatch);
    assert_eq!(spent(&sim), 0);
    let right = call(&sim.kernel.policy_hash().unwrap().to_string());
    let ticket = run(&mut sim, session, &right);
    assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
}

/// The snapshot that a call names is the agent's, or it is not let through.
#[test]
fn a_call_on_another_agents_snapshot_is_refused() {
    let (mut sim, session) = seated();
    let token = sim.issue("a1", 10, 10, 60_000);
    sim.open("a1", token);
    sim.commit();
    let states = sim.kernel.states();
    let ids: Vec<(String, String)> =
        states.map(|(agent, head, _)| (agent.to_string(), head.id().to_string())).collect();
    assert_eq!(ids.len(), 2);
    for (agent, id) in ids {
        let call = format!(
            r#"{{"tool_id": "spend", "args": {{"units": 1}}, "state_snapshot_id": "{id}"}}"#
        );
        let ticket = run(&mut sim, session, &call);
        let reason = (agent != "a0").then_some(Reason::UnknownSnapshot);
        assert_eq!(sim.reason_of(ticket), reason, "{agent}");
    }
    assert_eq!(spent(&sim), 1);
}

/// A repeat is answered by the first outcome, runs nothing and pays a call.
#[test]
fn a_repeat_pays_a_call_and_runs_nothing() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    let call = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
    run(&mut sim, session, call);
    let before = used(&sim, token);
    let ticket = run(&mut sim, session, call);
    assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
    assert_eq!(spent(&sim), 3);
    let calls = before.get(Dimension::Calls) + 1;
    assert_eq!(used(&sim, token), before.with(Dimension::Calls, calls));
}

/// What a run did that does not know itself what it did is paid for in full.
#[test]
fn an_unknown_effect_is_charged_in_full() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    let call = r#"{"tool_id": "spend", "args": {"units": 30, "tries": 2, "lost": true}}"#;
    run(&mut sim, session, call);
    let Body::Outcome(outcome) = records(&mut sim).pop().unwrap().body else { panic!("outcome") };
    assert_eq!((outcome.tx, outcome.status), (TxOutcome::Unknown, Status::Error));
    assert_eq!(used(&sim, token).get(Dimension::DiskWriteBytes), 30);
    assert_eq!(spent(&sim), 2);
}

/// An error is a tool's words as well: what it carries counts for the session.
#[test]
fn the_label_of_an_error_is_joined() {
    let (mut sim, session) = seated();
    let label = |sim: &Sim| sim.kernel.sessions().next().unwrap().label;
    assert_eq!(label(&sim), Label::PUBLIC);
    let call = r#"{"tool_id": "spend", "args": {"units": 1, "tries": 2}}"#;
    let ticket = run(&mut sim, session, call);
    assert_eq!(sim.reason_of(ticket), Some(Reason::OverHold));
    assert_eq!(label(&sim), Label::UNTRUSTED);
    ok(&mut sim, session);
    let labels: Vec<Label> = records(&mut sim)
        .iter()
        .filter_map(|record| match &record.body {
            Body::Intent(intent) => Some(intent.label),
            _ => None,
        })
        .collect();
    assert_eq!(labels, [Label::PUBLIC, Label::UNTRUSTED]);
}

/// A token that was revoked, or a kernel that was frozen, between intent and permit: nothing runs.
#[test]
fn call_stopped_before_its_permit_does_not_run() {
    for flag in [OutcomeFlags::REVOKED, OutcomeFlags::FROZEN] {
        let (mut sim, session) = seated();
        let (token, _) = sim.tokens[0];
        let ticket = sim.submit_json(session, SPEND);
        if flag == OutcomeFlags::REVOKED {
            sim.revoke(token);
        } else {
            sim.freeze(FreezeChange::Freeze);
        }
        sim.commit();
        sim.commit();
        assert!(sim.jobs.is_empty());
        assert_eq!(sim.reason_of(ticket), Some(Reason::NotRun));
        let Body::Outcome(outcome) = records(&mut sim).pop().unwrap().body else { panic!("it") };
        assert_eq!(outcome.flags, flag);
        assert_eq!((spent(&sim), held(&sim, token)), (0, Amounts::ZERO));
    }
}

/// So after it, where the host has not begun: it gives the job back, and the kernel says why.
#[test]
fn permit_given_back_does_not_run() {
    for flag in [OutcomeFlags::REVOKED, OutcomeFlags::FROZEN, OutcomeFlags::GIVEN_BACK] {
        let (mut sim, session) = seated();
        let (token, _) = sim.tokens[0];
        let ticket = sim.submit_json(session, SPEND);
        sim.commit();
        assert!(sim.kernel.may_begin(&sim.jobs[0].1));
        match flag {
            OutcomeFlags::REVOKED => sim.revoke(token),
            OutcomeFlags::FROZEN => sim.freeze(FreezeChange::Freeze),
            _ => {}
        }
        let stopped = flag != OutcomeFlags::GIVEN_BACK;
        assert_eq!(sim.kernel.may_begin(&sim.jobs[0].1), !stopped);
        let (_, job) = sim.jobs.remove(0);
        sim.event(Event::GivenBack(job));
        sim.commit();
        assert_eq!(sim.reason_of(ticket), Some(Reason::NotRun));
        let Body::Outcome(outcome) = records(&mut sim).pop().unwrap().body else { panic!("it") };
        assert_eq!(outcome.flags, flag);
        assert_eq!((spent(&sim), held(&sim, token)), (0, Amounts::ZERO));
    }
}

/// A token whose time, or that of its list, is over by the permit, or by the turn of a job that
/// waited: nothing runs, nothing is paid, and the answer says since when.
#[test]
fn call_whose_token_ends_before_its_run_does_not_run() {
    for (before_permit, listed) in [(true, false), (false, false), (true, true), (false, true)] {
        let store = FaultStore::new(syscap_audit::MemoryStore::new(), FaultPoint::Nowhere);
        let mut sim = Sim::new(store);
        let mut body = sim.token_body("a0", budget(100, 100), 3_600_000);
        if listed {
            body.caveats = vec![TokenBody::fresh_within_caveat(1_000_000)];
        }
        let ticket = sim.ticket();
        sim.event(Event::Issue(ticket, Sim::wire(&body), None));
        let token = TokenBody::id_of(&body.to_bytes());
        sim.tokens.push((token, 100));
        if listed {
            sim.list(TokenId::from_bytes([9; 32]));
        }
        let session = sim.seat(token);
        sim.commit();
        let ticket = sim.submit_json(session, SPEND);
        if !before_permit {
            sim.commit();
            assert!(sim.kernel.may_begin(&sim.jobs[0].1));
        }
        let passed = if listed { 1_000_001 } else { 3_600_001 };
        (sim.wall, sim.boottime) = (sim.wall + passed, sim.boottime + passed);
        let reading = sim.reading();
        sim.kernel.follow(reading);
        if before_permit {
            sim.commit();
        } else {
            assert!(!sim.kernel.may_begin(&sim.jobs[0].1));
            let (_, job) = sim.jobs.remove(0);
            sim.event(Event::GivenBack(job));
        }
        sim.commit();
        assert!(sim.jobs.is_empty());
        assert_eq!(sim.reason_of(ticket), Some(Reason::NotRun));
        let reply = sim.reply_to(ticket).unwrap();
        let got = reply.delivered().item().get("got").and_then(Item::as_text).unwrap().to_owned();
        let why = if listed { "stale_revocations at " } else { "expired at " };
        assert!(got.starts_with(why), "{got}");
        let Body::Outcome(outcome) = records(&mut sim).pop().unwrap().body else { panic!("it") };
        assert_eq!(outcome.flags, OutcomeFlags::GIVEN_BACK);
        assert_eq!((spent(&sim), held(&sim, token)), (0, Amounts::ZERO));
    }
}

/// A run that was given up comes back, and says what it did: its key follows.
#[test]
fn late_return_settles_its_key() {
    let call = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
    let other = r#"{"tool_id": "spend", "args": {"units": 4}, "idempotency_key": "k"}"#;
    for (tx, again, changed) in [
        (TxOutcome::Committed, Some(Reason::OutcomeLost), Some(Reason::KeyReused)),
        (TxOutcome::RolledBack, None, None),
        (TxOutcome::NoOp, None, None),
        (TxOutcome::Unknown, Some(Reason::OutcomeUnknown), Some(Reason::OutcomeUnknown)),
    ] {
        for (call, wanted) in [(call, again), (other, changed)] {
            let (mut sim, session) = seated();
            let first = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
            let ticket = sim.submit_json(session, first);
            sim.commit();
            let (_, job) = sim.jobs.remove(0);
            sim.event(Event::Lost(job.intent(), Lost::TimedOut, Measured::default()));
            sim.commit();
            assert_eq!(sim.reason_of(ticket), Some(Reason::TimedOut));
            let repeated = sim.submit_json(session, call);
            sim.commit();
            assert_eq!(sim.reason_of(repeated), Some(Reason::OutcomeUnknown), "nobody knows yet");
            sim.world.lock().unwrap().ends = Some(tx);
            sim.event(Event::Ran(job.run(), Measured::default()));
            sim.world.lock().unwrap().ends = None;
            sim.commit();
            let repeated = sim.submit_json(session, call);
            sim.commit();
            assert_eq!(sim.reason_of(repeated), wanted, "{tx:?}");
            assert_eq!(sim.jobs.len(), usize::from(wanted.is_none()));
            verifies(&mut sim);
        }
    }
}

/// What a call is compared by, or its answer, was erased: nobody gets the first answer, whatever the
/// arguments.
#[test]
fn key_whose_rows_were_erased_alone_is_erased_for_all_arguments() {
    for (answer, arguments) in [(true, false), (false, true), (true, true)] {
        let (mut sim, session) = seated();
        let call = |units: u64| {
            format!(
                r#"{{"tool_id": "spend", "args": {{"units": {units}}}, "idempotency_key": "k"}}"#
            )
        };
        run(&mut sim, session, &call(3));
        let outcome = sim.kernel.head().seq;
        if answer {
            sim.store.erase(outcome);
        }
        if arguments {
            sim.store.erase(Seq::new(outcome.get() - 1));
        }
        for units in [3, 4] {
            let repeated = sim.submit_json(session, &call(units));
            sim.commit();
            assert_eq!(sim.reason_of(repeated), Some(Reason::OutcomeErased), "{units}");
        }
        assert_eq!(spent(&sim), 3);
    }
}

/// A key is answered for as long as the home says, and is new after that.
#[test]
fn a_key_is_kept_as_long_as_the_home_says() {
    let nowhere = kernel_support::fault::FaultPoint::Nowhere;
    let store = syscap_audit::MemoryStore::new();
    let store = kernel_support::fault::FaultStore::new(store, nowhere);
    let limits = syscap_format::HomeLimits { key_life_ms: 5_000, ..Default::default() };
    let mut sim = Sim::with_limits(store, limits);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let call = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
    let lost =
        r#"{"tool_id": "spend", "args": {"units": 1, "lost": true}, "idempotency_key": "l"}"#;
    run(&mut sim, session, call);
    run(&mut sim, session, lost);
    sim.boottime += 4_999;
    run(&mut sim, session, call);
    assert_eq!(spent(&sim), 4);
    sim.boottime += 1;
    run(&mut sim, session, call);
    assert_eq!(spent(&sim), 7, "the key is new");
    // Of one whose end is not known nobody can say that it may run again.
    let ticket = run(&mut sim, session, lost);
    assert_eq!(sim.reason_of(ticket), Some(Reason::OutcomeUnknown));
    assert_eq!(spent(&sim), 7);
}

/// A clock that leapt ahead makes no key free before an operator has said that it is right: what
/// is sent again meanwhile would run twice.
#[test]
fn a_key_is_not_over_by_a_time_that_nobody_confirmed() {
    let (mut sim, session) = seated();
    let call = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
    run(&mut sim, session, call);
    let old = sim.tokens[0].0;
    sim.crash().unwrap();
    let before = sim.wall;
    sim.wall += 200 * 86_400_000;
    sim.boot();
    let mut body = sim.token_body("a0", syscap_format::Budget::standard(), 90 * 86_400_000);
    body.renews = Some(old);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    let token = syscap_format::TokenBody::id_of(&body.to_bytes());
    sim.tokens.push((token, 1 << 40));
    let session = sim.seat(token);
    let ticket = run(&mut sim, session, call);
    assert_eq!((sim.reason_of(ticket), spent(&sim)), (None, 3), "the first outcome");
    // The same after another boot, and until somebody says that so much time has passed.
    sim.crash().unwrap();
    sim.boot();
    let session = sim.seat(token);
    run(&mut sim, session, call);
    assert_eq!(spent(&sim), 3);
    let confirmed = ConfigChange { confirm_time: Some(UnixMillis::new(before)) };
    let signed = sim.signed(&confirmed);
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Config, signed, None, None));
    sim.commit();
    verifies(&mut sim);
    run(&mut sim, session, call);
    assert_eq!(spent(&sim), 6, "its time is over");
    verifies(&mut sim);
}

/// A call that is refused pays one of `calls`, and nothing else.
#[test]
fn a_refusal_pays_a_call() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    refused_with(&mut sim, session, r#"{"tool_id": "none", "args": {}}"#, Reason::UnknownTool);
    assert_eq!(used(&sim, token), Amounts::ZERO.with(Dimension::Calls, 1));
}

/// What is set aside for one call is not there for another, and what is used is gone.
#[test]
fn reserved_and_used_units_are_not_left() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    let call = r#"{"tool_id": "spend", "args": {"units": 60, "tries": 10}}"#;
    let first = sim.submit_json(session, call);
    sim.commit();
    assert_eq!(held(&sim, token).get(Dimension::DiskWriteBytes), 60);
    refused_with(&mut sim, session, call, Reason::OverBudget);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reason_of(first), None);
    assert_eq!(used(&sim, token).get(Dimension::DiskWriteBytes), 10);
    assert_eq!(held(&sim, token), Amounts::ZERO);
    run(&mut sim, session, call);
    let more = r#"{"tool_id": "spend", "args": {"units": 81}}"#;
    refused_with(&mut sim, session, more, Reason::OverBudget);
    assert_eq!(spent(&sim), 20);
}

/// A token begins and ends to the millisecond.
#[test]
fn a_token_ends_at_its_time() {
    let mut sim = home();
    let mut body = sim.token_body("a0", syscap_format::Budget::standard(), 10_000);
    body.not_before = body.not_before.plus(1_000);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.open("a0", syscap_format::TokenBody::id_of(&body.to_bytes()));
    sim.tokens.push((TokenId::from_bytes([0; 32]), 1 << 40));
    sim.commit();
    let session = sim.sessions[0];
    sim.boottime += 999;
    refused_with(&mut sim, session, SPEND, Reason::NotYetValid);
    sim.boottime += 1;
    ok(&mut sim, session);
    sim.boottime += 8_999;
    ok(&mut sim, session);
    sim.boottime += 1;
    refused_with(&mut sim, session, SPEND, Reason::Expired);
}

/// What is frozen runs nothing, and what is thawed does.
#[test]
fn a_freeze_stops_every_call() {
    let (mut sim, session) = seated();
    sim.freeze(FreezeChange::Freeze);
    refused_with(&mut sim, session, SPEND, Reason::Frozen);
    assert_eq!(spent(&sim), 0);
    sim.freeze(FreezeChange::Thaw);
    ok(&mut sim, session);
}

/// A log in which the last record was changed.
struct Changed {
    store: MemoryStore,
    records: Vec<Vec<u8>>,
}

impl Store for Changed {
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let numbered = (0..).map(Seq::new).zip(&self.records);
        for (seq, bytes) in numbered.skip_while(|(seq, _)| *seq < from) {
            if each(seq, bytes) == Next::Enough {
                break;
            }
        }
        Ok(())
    }

    kernel_support::forward!(self.store => commit object vault room);
}

/// What a record says beside a signed word is what was signed.
#[test]
fn a_resolution_says_what_was_signed() {
    let (mut sim, session) = seated();
    for _ in 0..2 {
        sim.submit_json(session, SPEND);
    }
    sim.commit();
    sim.crash().unwrap();
    sim.boot();
    let recovered: Vec<Seq> = records(&mut sim)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Recovery(recovery) => Some(recovery.intent),
            _ => None,
        })
        .collect();
    let [first, second] = recovered[..] else { panic!("{recovered:?}") };
    let signed = sim.signed(&Resolution { intent: first, verdict: Recovered::NotDone });
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Recovery, signed, None, None));
    sim.commit();
    let last = records(&mut sim).pop().unwrap();
    let whole = sim.store.into_inner();
    let world = sim.world;
    let open_with = |change: &dyn Fn(&mut Record)| {
        let store = whole.copy();
        let mut records = store.all_records();
        let mut last = last.clone();
        change(&mut last);
        *records.last_mut().unwrap() = last.encode();
        let mut changed = Changed { store, records };
        Kernel::open(&mut changed, sim::parts(&world), &Anchor::default()).map(drop)
    };
    let open = |change: &dyn Fn(&mut Recovery)| {
        open_with(&|last| match &mut last.body {
            Body::Recovery(recovery) => change(recovery),
            other => panic!("{other:?}"),
        })
    };
    open(&|_| ()).unwrap();
    // Nor is a record of another time or boot than the ones before it, whatever else is right.
    let contradicts = Err(Halt::Contradiction { seq: last.seq });
    assert_eq!(open_with(&|last| last.time = UnixMillis::new(0)), contradicts);
    assert_eq!(open_with(&|last| last.boot += 1), contradicts);
    let forged = Err(Halt::Forged { seq: last.seq, why: Forgery::Form });
    assert_eq!(open(&|recovery| recovery.intent = second), forged);
    assert_eq!(open(&|recovery| recovery.verdict = Recovered::Done), forged);
    let one = Amounts::ZERO.with(Dimension::Calls, 1);
    assert_eq!(open(&|recovery| recovery.used = one), forged);
}
