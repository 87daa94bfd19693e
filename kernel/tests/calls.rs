//! What becomes of a call: run once for a key, with earlier results, cut off, lost, late.

use kernel_support::sim::flights::Flight;
use kernel_support::sim::{self, Ending, records, refused_with, seated};
use syscap_format::{
    Amounts, Body, Commitment, Dimension, Reason, Refused, Retry, Seq, Source, Status, TxOutcome,
    json,
};
use syscap_kernel::{Event, Lost, Proposal, Store, vault_entry};

/// A row of the vault for each record of a call, and no other: salts and arguments lie in one, the
/// result in the other, so each can be erased alone.
#[test]
fn a_call_writes_a_row_for_each_record() {
    let (mut sim, session) = seated();
    let written = |sim: &mut sim::Sim| {
        sim.take();
        let rows = sim.flights.iter().map(|flight| match flight {
            Flight::Taken(batch) => (batch.links().len(), batch.vault().len()),
            Flight::Durable(_) => (0, 0),
        });
        let counted: Vec<(usize, usize)> = rows.collect();
        sim.land();
        counted
    };
    sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 1}}"#);
    assert_eq!(written(&mut sim), [(1, 1)], "the intent");
    sim.end_job(0, Ending::Runs);
    assert_eq!(written(&mut sim), [(1, 1)], "the outcome");
    sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": -1}}"#);
    assert_eq!(written(&mut sim), [(1, 1)], "a refusal");
    sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    sim.end_job(0, Ending::Runs);
    assert_eq!(written(&mut sim), [(2, 2)], "a read");
}

#[test]
fn a_key_runs_once() {
    let (mut sim, session) = seated();
    let once = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "turn-1"}"#;
    let first = sim.submit_json(session, once);
    sim.commit();
    // In flight: not a second run.
    refused_with(&mut sim, session, once, Reason::KeyInFlight);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let again = sim.submit_json(session, once);
    sim.commit();
    assert_eq!(sim.world.lock().unwrap().spent.len(), 3);
    let (first, again) = (sim.reply_to(first).unwrap(), sim.reply_to(again).unwrap());
    assert_eq!(again.delivered(), first.delivered());
    assert_ne!(again.receipt().outcome_seq, first.receipt().outcome_seq);
    let last = records(&mut sim).pop().unwrap();
    assert!(matches!(last.body, Body::Repeat(_)));
    // Other arguments under the same key: refused. The same after a restart.
    let other = r#"{"tool_id": "spend", "args": {"units": 4}, "idempotency_key": "turn-1"}"#;
    refused_with(&mut sim, session, other, Reason::KeyReused);
    let token = sim.tokens[0].0;
    sim.crash().unwrap();
    sim.boot();
    let session = sim.seat(token);
    let again = sim.submit_json(session, once);
    sim.commit();
    assert_eq!(sim.reply_to(again).unwrap().status(), Status::Ok);
    assert_eq!(sim.world.lock().unwrap().spent.len(), 3);
    refused_with(&mut sim, session, other, Reason::KeyReused);
}

/// An outcome that is not durable yet is no outcome: until it is, its key is in flight. A client
/// that is told otherwise takes another key, and doubles the effect.
#[test]
fn a_repeat_waits_until_the_first_outcome_is_durable() {
    let (mut sim, session) = seated();
    let first_of = |key: &str, tool: &str, args: &str| {
        format!(r#"{{"tool_id": "{tool}", "args": {args}, "idempotency_key": "{key}"}}"#)
    };
    let cases = [
        (first_of("w", "spend", r#"{"units": 3}"#), Ending::Runs, None),
        (first_of("r", "look", r#"{"at": 1}"#), Ending::Runs, None),
        (first_of("u", "spend", r#"{"units": 1}"#), Ending::Panics, Some(Reason::OutcomeUnknown)),
    ];
    for (once, ending, after) in cases {
        let first = sim.submit_json(session, &once);
        if sim.jobs.is_empty() {
            sim.commit();
        }
        sim.end_job(0, ending);
        // Not with a batch yet; then with a batch that is on its way.
        let early = sim.submit_json(session, &once);
        let batch = sim.kernel.take_batch().unwrap();
        let later = sim.submit_json(session, &once);
        assert_eq!(sim.reply_to(first), None);
        let stored = batch.commit(&mut sim.store).unwrap();
        sim.event(Event::Stored(stored));
        let durable = sim.submit_json(session, &once);
        sim.commit();
        for waits in [early, later] {
            assert_eq!(sim.reason_of(waits), Some(Reason::KeyInFlight), "{once}");
        }
        assert_eq!(sim.reason_of(durable), after, "{once}");
        if after.is_none() {
            let (first, again) = (sim.reply_to(first).unwrap(), sim.reply_to(durable).unwrap());
            assert_eq!(again.delivered(), first.delivered());
        }
    }
    assert_eq!(sim.world.lock().unwrap().spent.len(), 3, "nothing ran twice");
}

/// A result that is not durable yet can't be referred to, by a number that was guessed: it may
/// still be lost. It is neither erased nor unknown: the reference waits.
#[test]
fn a_reference_waits_until_its_result_is_durable() {
    let (mut sim, session) = seated();
    let look = |at: &str| format!(r#"{{"tool_id": "look", "args": {{"at": {at}}}}}"#);
    let first = sim.submit_json(session, &look("7"));
    sim.end_job(0, Ending::Runs);
    let seq = sim.kernel.head().seq;
    let refer = look(&format!(r#"{{"$ref": {{"record": {seq}, "path": ["saw"]}}}}"#));
    let other = look(r#"{"$ref": {"record": 9999, "path": []}}"#);
    let early = sim.submit_json(session, &refer);
    let batch = sim.kernel.take_batch().unwrap();
    let (later, unknown) = (sim.submit_json(session, &refer), sim.submit_json(session, &other));
    assert!(sim.jobs.is_empty(), "nothing was read");
    let stored = batch.commit(&mut sim.store).unwrap();
    sim.event(Event::Stored(stored));
    let durable = sim.submit_json(session, &refer);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reply_to(first).unwrap().receipt().outcome_seq, seq);
    for waits in [early, later] {
        assert_eq!(sim.reason_of(waits), Some(Reason::ReferenceInFlight));
        assert_eq!(Reason::ReferenceInFlight.retry(), Retry::Wait);
    }
    // Nor is it named where another is looked for.
    let unknown = sim.reply_to(unknown).unwrap();
    assert_eq!(unknown.reason(), Some(Reason::UnknownReference));
    let allowed = unknown.delivered().item().get("allowed").unwrap();
    assert_eq!(allowed.as_text(), Some("nothing"));
    let (first, durable) = (sim.reply_to(first).unwrap(), sim.reply_to(durable).unwrap());
    assert_eq!(durable.delivered(), first.delivered());
    // Nor may a change of the state name it as its source.
    sim.submit_json(session, &look("8"));
    sim.end_job(0, Ending::Runs);
    let seq = sim.kernel.head().seq;
    let propose = |sim: &mut sim::Sim| {
        let (ticket, salts) = (sim.ticket(), sim.salts());
        let changes = json::to_cbor(br#"{"fact.seen": 8}"#).unwrap();
        let (writer, inputs, base) = (Source::Tool, vec![seq], None);
        let proposal = Proposal { ticket, session, writer, inputs, base, changes, salts };
        sim.event(Event::Propose(Box::new(proposal)));
        sim.commit();
        sim.acked(ticket).unwrap().as_ref().map(drop).map_err(Refused::reason)
    };
    assert_eq!(propose(&mut sim), Err(Reason::ReferenceInFlight));
    assert_eq!(propose(&mut sim), Ok(()));
}

#[test]
fn a_key_whose_run_was_lost_is_never_run_again() {
    let (mut sim, session) = seated();
    let once = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;
    sim.submit_json(session, once);
    sim.commit();
    sim.end_job(0, Ending::Panics);
    sim.commit();
    refused_with(&mut sim, session, once, Reason::OutcomeUnknown);
    // Nor one that was out when its process died.
    let other = once.replace(r#""k""#, r#""l""#);
    sim.submit_json(session, &other);
    sim.commit();
    assert_eq!(sim.jobs.len(), 1);
    let token = sim.tokens[0].0;
    sim.crash().unwrap();
    sim.boot();
    let session = sim.seat(token);
    for once in [once, &other] {
        refused_with(&mut sim, session, once, Reason::OutcomeUnknown);
    }
}

#[test]
fn a_reference_brings_the_released_result_and_nothing_else() {
    let (mut sim, session) = seated();
    let tricky =
        r#"{"tool_id": "look", "args": {"at": {"$lit": {"$ref": {"record": 0, "path": []}}}}}"#;
    let first = sim.submit_json(session, tricky);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let first = sim.reply_to(first).unwrap().clone();
    assert_eq!(first.status(), Status::Ok);
    let seq = first.receipt().outcome_seq;
    let refer = |path: &str| {
        format!(
            r#"{{"tool_id": "look", "args": {{"at": {}}}}}"#,
            format_args!(r#"{{"$ref": {{"record": {seq}, "path": {path}}}}}"#)
        )
    };
    let second = sim.submit_json(session, &refer(r#"["saw"]"#));
    sim.end_job(0, Ending::Runs);
    sim.commit();
    // The result that came in holds what looks like a reference: it is not followed.
    let second = sim.reply_to(second).unwrap();
    assert_eq!(second.delivered(), first.delivered());
    refused_with(&mut sim, session, &refer(r#"["nothing"]"#), Reason::UnknownReference);
    // Another session was never given that result.
    let token = sim.issue("a1", 10, 10, 1_000_000);
    sim.open("a1", token);
    sim.commit();
    let other = *sim.sessions.last().unwrap();
    refused_with(&mut sim, other, &refer("[]"), Reason::UnknownReference);
}

/// What a call refers to lies in the row of that result, and where it is long it is not written
/// once more; whoever reads the arguments gets them whole, or, where the result is erased, none.
#[test]
fn referenced_result_is_stored_once() {
    let (mut sim, session) = seated();
    let (long, list) = ("x".repeat(9_000), format!(r#"["{}", 7]"#, "y".repeat(2_000)));
    let said = format!(r#"{{"a": "{long}", "b": {list}, "c": "short"}}"#);
    let first =
        sim.submit_json(session, &format!(r#"{{"tool_id": "look", "args": {{"at": {said}}}}}"#));
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let result = sim.reply_to(first).unwrap().receipt().outcome_seq;
    let of = |path: &str| format!(r#"{{"$ref": {{"record": {result}, "path": {path}}}}}"#);
    let refer = |parts: [String; 5]| {
        let args = format!(r#"{{"at": [{}]}}"#, parts.join(", "));
        format!(r#"{{"tool_id": "look", "args": {args}}}"#)
    };
    let (a, b, c) = (of(r#"["saw", "a"]"#), of(r#"["saw", "b"]"#), of(r#"["saw", "c"]"#));
    let second = sim.submit_json(session, &refer([a.clone(), "{}".into(), b, c, a]));
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let (intent, _) = sim.reply_to(second).unwrap().receipt().intent.unwrap();
    let text = format!(r#""{long}""#);
    let whole = refer([text.clone(), "{}".into(), list, r#""short""#.into(), text]);
    let whole = json::to_data(whole.as_bytes()).unwrap();
    let all = records(&mut sim);
    let recorded = all.into_iter().find(|record| record.seq == intent).unwrap();
    let Body::Intent(recorded) = recorded.body else { panic!("an intent") };
    let (tool, manifest) = (recorded.call.tool_id.unwrap(), recorded.call.manifest.unwrap());
    let commitment = Commitment::Arguments(recorded.call.args_hash.unwrap(), &tool, &manifest);
    assert!(sim.store.vault(intent).unwrap().unwrap().len() < 400);
    let entry = vault_entry(&mut sim.store, intent, intent).unwrap();
    let args = entry.committed(commitment).unwrap();
    assert_eq!(Some(args.item()), whole.item().get("args"));
    sim.store.erase(result);
    let erased = vault_entry(&mut sim.store, intent, intent).unwrap();
    assert_eq!((erased.salts, erased.committed(commitment)), (entry.salts, None));
}

/// A revocation between intent and run: nothing runs, what was held is free.
#[test]
fn revoked_before_the_run_is_not_run() {
    let (mut sim, session) = seated();
    let ticket = sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 3}}"#);
    let token = sim.tokens[0].0;
    sim.revoke(token);
    sim.commit();
    sim.commit();
    assert!(sim.jobs.is_empty());
    assert_eq!(sim.reason_of(ticket), Some(Reason::NotRun));
    assert_eq!(sim.world.lock().unwrap().spent.len(), 0);
    let view = sim.kernel.token(&token).unwrap();
    assert_eq!((view.held, view.used.get(Dimension::DiskWriteBytes)), (Amounts::ZERO, 0));
}

/// A run that tries more than it set aside is cut off at what it set aside.
#[test]
fn metering_cuts_off() {
    let (mut sim, session) = seated();
    let greedy = r#"{"tool_id": "spend", "args": {"units": 3, "tries": 50}}"#;
    let ticket = sim.submit_json(session, greedy);
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::OverHold));
    assert_eq!(sim.world.lock().unwrap().spent.len(), 3);
}

/// Measured time that overruns is charged, and exhausts the token.
#[test]
fn an_overrun_exhausts() {
    let (mut sim, session) = seated();
    sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    let (_, job) = sim.jobs.remove(0);
    let measured = syscap_kernel::Measured { cpu_us: 10, wall_us: 5_000 };
    sim.event(Event::Ran(job.run(), measured));
    sim.commit();
    assert_eq!(exhausted(&mut sim, session), "measured time");
}

/// What a refusal names that says that a token has run out.
fn exhausted(sim: &mut sim::Sim, session: Seq) -> String {
    let ticket = sim.submit_json(session, r#"{"tool_id": "look", "args": {"at": 1}}"#);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), Some(Reason::Exhausted));
    let result = sim.reply_to(ticket).unwrap();
    let text = |key| result.delivered().item().get(key).and_then(|one| one.as_text());
    let field = text("field").unwrap_or_default();
    // Of what is counted: what the call asks for, and that none of so much is left.
    let is_left = text("allowed").is_some_and(|left| left.starts_with("nothing is left of "));
    assert_eq!((is_left, text("got").is_some()), [field != "measured time"; 2].into());
    field.to_owned()
}

#[test]
fn exhausted_dimension_is_named() {
    let (mut sim, session) = seated();
    let ticket = sim.ticket();
    let amounts = Amounts::ZERO.with(Dimension::LlmTokens, u64::MAX);
    sim.event(Event::Charge(ticket, session, amounts));
    assert_eq!(exhausted(&mut sim, session), "llm_tokens");
}

/// A host posts tokens of models and credits. All else the kernel counts itself.
#[test]
fn charge_of_a_dimension_that_the_kernel_counts_is_refused() {
    let (mut sim, session) = seated();
    let left = |sim: &sim::Sim| sim.kernel.token(&sim.tokens[0].0).unwrap().left;
    for dimension in Dimension::ALL {
        let before = left(&sim);
        let posted = matches!(dimension, Dimension::LlmTokens | Dimension::CreditsMicro);
        // Also beside one that may be posted.
        let amounts = Amounts::ZERO.with(Dimension::LlmTokens, 1).with(dimension, 1);
        let ticket = sim.ticket();
        sim.event(Event::Charge(ticket, session, amounts));
        sim.commit();
        let said = sim.acked(ticket).unwrap();
        let reason = said.as_ref().err().map(|refused| refused.reason());
        assert_eq!(reason, (!posted).then_some(Reason::BadControl), "{}", dimension.name());
        assert_eq!(left(&sim) == before, !posted, "{}", dimension.name());
    }
}

/// A late return frees its slot of the gauge, and only that.
#[test]
fn a_run_given_up_holds_its_slot_until_it_returns() {
    let (mut sim, session) = seated();
    let spend = r#"{"tool_id": "spend", "args": {"units": 1}}"#;
    for _ in 0..4 {
        sim.submit_json(session, spend);
    }
    sim.commit();
    for _ in 0..4 {
        sim.end_job(0, Ending::TimesOut);
    }
    sim.commit();
    refused_with(&mut sim, session, spend, Reason::ConcurrencyLimit);
    let ran = sim.late.pop().unwrap();
    sim.event(Event::Ran(ran, Default::default()));
    let ticket = sim.submit_json(session, spend);
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reply_to(ticket).unwrap().status(), Status::Ok);
}

/// A repeat pays a call like any other, is refused where there is none, breaks no row of refusals
/// and stores no second copy: it can't be used to grow the log.
#[test]
fn repeats_are_not_free() {
    let mut sim = sim::home();
    let token = sim.issue("a0", 20, 10, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let once = r#"{"tool_id": "spend", "args": {"units": 1}, "idempotency_key": "k"}"#;
    sim.submit_json(session, once);
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let before = records(&mut sim).len();
    for _ in 0..500 {
        sim.submit_json(session, once);
        for _ in 0..15 {
            sim.submit_json(session, "{");
        }
        sim.commit();
    }
    let grown = records(&mut sim).len() - before;
    assert!(grown < 80, "{grown} records");
    assert_eq!(sim.kernel.token(&token).unwrap().used.get(Dimension::Calls), 20);
    refused_with(&mut sim, session, once, Reason::OverBudget);
}

/// An answer is given again only to the token that it was first given under.
#[test]
fn a_repeat_under_another_token_is_refused() {
    let (mut sim, session) = seated();
    let once = r#"{"tool_id": "look", "args": {"at": 1}, "idempotency_key": "k"}"#;
    sim.submit_json(session, once);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let other = sim.issue("a0", 10, 10, 1_000_000);
    sim.open("a0", other);
    sim.commit();
    let other = *sim.sessions.last().unwrap();
    refused_with(&mut sim, other, once, Reason::NotBound);
    refused_with(&mut sim, session, &once.replace('1', "2"), Reason::KeyReused);
}

/// Sixteen references to one large result, put deep: refused by size, and read in one pass.
#[test]
fn references_cannot_be_used_to_multiply_work() {
    let (mut sim, session) = seated();
    let large = format!(r#"{{"tool_id": "look", "args": {{"at": "{}"}}}}"#, "x".repeat(900_000));
    let first = sim.submit_json(session, &large);
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let seq = sim.reply_to(first).unwrap().receipt().outcome_seq;
    let one = format!(r#"{{"$ref": {{"record": {seq}, "path": ["saw"]}}}}"#);
    let nested =
        format!("{}{}{}", "[".repeat(50), vec![one.as_str(); 16].join(","), "]".repeat(50));
    let call = format!(r#"{{"tool_id": "look", "args": {{"at": {nested}}}}}"#);
    refused_with(&mut sim, session, &call, Reason::TooLarge);
    let long = vec!["0"; 65].join(",");
    let path = format!(r#"{{"$ref": {{"record": {seq}, "path": [{long}]}}}}"#);
    let call = format!(r#"{{"tool_id": "look", "args": {{"at": {path}}}}}"#);
    refused_with(&mut sim, session, &call, Reason::BadReference);
    let many = vec![one.as_str(); 17].join(",");
    let call = format!(r#"{{"tool_id": "look", "args": {{"at": [{many}]}}}}"#);
    refused_with(&mut sim, session, &call, Reason::BadReference);
}

/// A run that was given up and then breaks off frees its slot like one that returns.
#[test]
fn a_run_given_up_that_panics_frees_its_slot() {
    let (mut sim, session) = seated();
    sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 1}}"#);
    sim.commit();
    let intent = sim.jobs[0].1.intent();
    sim.end_job(0, Ending::TimesOut);
    sim.commit();
    let token = sim.tokens[0].0;
    let held = |sim: &sim::Sim| sim.kernel.token(&token).unwrap().held;
    assert_eq!(held(&sim).get(Dimension::Concurrent), 1);
    // The whole of what was held is charged, measured time included.
    let used = sim.kernel.token(&token).unwrap().used;
    assert_eq!((used.get(Dimension::CpuUs), used.get(Dimension::WallUs)), (500, 1_000));
    sim.event(Event::Lost(intent, Lost::Panicked, Default::default()));
    sim.commit();
    assert_eq!(held(&sim), Amounts::ZERO);
    assert!(matches!(records(&mut sim).pop().unwrap().body, Body::Late(_)));
}

/// A report that another kernel's run made under the same number frees and settles nothing.
#[test]
fn a_foreign_report_is_not_taken() {
    let (mut sim, session) = seated();
    let (mut other, others) = seated();
    other.submit_json(others, r#"{"tool_id": "spend", "args": {"units": 2}}"#);
    other.commit();
    sim.submit_json(session, r#"{"tool_id": "spend", "args": {"units": 1}}"#);
    sim.commit();
    let (mine, foreign) = (sim.jobs[0].1.intent(), other.jobs.remove(0).1);
    assert_eq!(mine, foreign.intent());
    sim.end_job(0, Ending::TimesOut);
    sim.commit();
    sim.event(Event::Ran(foreign.run(), Default::default()));
    let token = sim.tokens[0].0;
    let held = sim.kernel.token(&token).unwrap().held;
    assert_eq!(held.get(Dimension::Concurrent), 1, "the slot is held for the run that has it");
    // Its own, which went well, is recorded as what it was.
    let mine = sim.late.remove(0);
    sim.event(Event::Ran(mine, Default::default()));
    sim.commit();
    let Body::Late(late) = records(&mut sim).pop().unwrap().body else { panic!("its return") };
    assert_eq!((late.status, late.tx), (Status::Ok, TxOutcome::Committed));
}
