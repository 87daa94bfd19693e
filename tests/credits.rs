//! Credits of agents: an account above their tokens, that an operator adds to.

use std::sync::atomic::{AtomicU32, Ordering};

use kernel_support::sim::{self, Ending, Sim, home, refused_with, seated};
use syscap::format::{
    AgentId, CreditChange, Dimension, EffectClass, Item, Reason, RecordKind, Seq, Status,
};
use syscap::host::HostTool;
use syscap::kernel::{Event, Kernel};
use syscap::prelude::*;
use syscap::verify::{Extent, FromStore, Options as VerifyOptions, verify};

fn costs(credits: u64) -> String {
    format!(r#"{{"tool_id": "spend", "args": {{"units": 1, "credits": {credits}}}}}"#)
}

/// What was given, used, is set aside and left.
fn account(kernel: &Kernel, agent: &str) -> (u64, u64, u64, u64) {
    let found = kernel.accounts().find(|account| account.agent.as_str() == agent).unwrap();
    (found.granted, found.used, found.held, found.left)
}

fn replays_and_verifies(sim: &mut Sim) {
    sim.commit();
    assert_eq!(sim.reopened().unwrap().state_image(), sim.kernel.state_image());
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
}

/// Why the last call was refused, and what it is about.
fn refused(sim: &mut Sim, session: Seq, json: &str) -> (Option<Reason>, String) {
    let ticket = sim.submit_json(session, json);
    sim.commit();
    let result = sim.reply_to(ticket).unwrap();
    assert_eq!(result.status(), Status::Error);
    let field = result.delivered().item().get("field").and_then(Item::as_text).unwrap_or_default();
    (result.reason(), field.to_owned())
}

#[test]
fn credits_are_reserved_and_used() {
    let (mut sim, session) = seated();
    // Without an account nothing of this is asked.
    let free = sim.submit_json(session, &costs(40));
    sim.commit();
    sim.end_job(0, Ending::Runs);
    assert_eq!(sim.kernel.accounts().count(), 0);
    sim.give("a0", 10);
    assert_eq!(sim.reason_of(free), None);
    assert_eq!(account(&sim.kernel, "a0"), (10, 0, 0, 10));
    for held in [6, 4] {
        sim.submit_json(session, &costs(held));
    }
    assert_eq!(account(&sim.kernel, "a0"), (10, 0, 10, 0));
    let about = "credits of a0".to_owned();
    assert_eq!(refused(&mut sim, session, &costs(1)), (Some(Reason::OverBudget), about.clone()));
    // What holds none goes on while there is something that was not used.
    sim.submit_json(session, &costs(0));
    sim.commit();
    for _ in 0..3 {
        sim.end_job(0, Ending::Runs);
    }
    assert_eq!(account(&sim.kernel, "a0"), (10, 8, 0, 2));
    sim.submit_json(session, &costs(2));
    sim.commit();
    sim.end_job(0, Ending::Panics);
    assert_eq!(account(&sim.kernel, "a0"), (10, 10, 0, 0));
    // With none left nothing runs, whether it costs something or not.
    assert_eq!(refused(&mut sim, session, &costs(0)), (Some(Reason::Exhausted), about.clone()));
    assert_eq!(refused(&mut sim, session, &costs(1)), (Some(Reason::Exhausted), about));
    sim.give("a0", 1);
    sim.submit_json(session, &costs(1));
    sim.commit();
    assert_eq!(account(&sim.kernel, "a0"), (11, 10, 1, 0));
    replays_and_verifies(&mut sim);
    // What is broken off is charged as its recovery says.
    sim.crash().unwrap();
    sim.boot();
    assert_eq!(account(&sim.kernel, "a0"), (11, 11, 0, 0));
    replays_and_verifies(&mut sim);
}

#[test]
fn all_accounts_of_the_path_pay() {
    let mut sim = home();
    let token = sim.issue("team/a", 100, 100, 1_000_000);
    sim.open("team/a", token);
    sim.commit();
    let session = *sim.sessions.last().unwrap();
    for (agent, credits) in [("team/a", 20), ("team", 9), ("team/a/b", 1), ("tea", 0), ("other", 0)]
    {
        sim.give(agent, credits);
    }
    sim.submit_json(session, &costs(5));
    sim.commit();
    sim.end_job(0, Ending::Runs);
    assert_eq!(account(&sim.kernel, "team/a"), (20, 4, 0, 16));
    assert_eq!(account(&sim.kernel, "team"), (9, 4, 0, 5));
    assert_eq!(account(&sim.kernel, "team/a/b"), (1, 0, 0, 1));
    let over = refused(&mut sim, session, &costs(6));
    assert_eq!(over, (Some(Reason::OverBudget), "credits of team".to_owned()));
    // The tightest is what is left to the caller.
    let ticket = sim.submit_json(session, &costs(2));
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    let left = sim.reply_to(ticket).unwrap().receipt().left.get(Dimension::CreditsMicro);
    assert_eq!(left, 4);
    replays_and_verifies(&mut sim);
}

/// A call that was admitted before there was an account is none of its affair.
#[test]
fn an_account_pays_for_what_comes_after_it() {
    let (mut sim, session) = seated();
    sim.submit_json(session, &costs(50));
    sim.commit();
    sim.give("a0", 5);
    sim.end_job(0, Ending::Runs);
    assert_eq!(account(&sim.kernel, "a0"), (5, 0, 0, 5));
    replays_and_verifies(&mut sim);
}

#[test]
fn posted_credits_are_charged_afterwards() {
    let (mut sim, session) = seated();
    sim.post(session, 7);
    sim.give("a0", 10);
    assert_eq!(account(&sim.kernel, "a0"), (10, 0, 0, 10));
    sim.post(session, 7);
    assert_eq!(account(&sim.kernel, "a0"), (10, 7, 0, 3));
    // It was used, so it counts, also where it is more than there was.
    sim.post(session, 7);
    assert_eq!(account(&sim.kernel, "a0"), (10, 14, 0, 0));
    refused_with(&mut sim, session, &costs(0), Reason::Exhausted);
    sim.give("a0", 5);
    assert_eq!(account(&sim.kernel, "a0"), (15, 14, 0, 1));
    replays_and_verifies(&mut sim);
}

/// Nobody is asked about what there are no credits for.
#[test]
fn a_person_is_not_asked_in_vain() {
    let nowhere = kernel_support::fault::FaultPoint::Nowhere;
    let store = kernel_support::fault::FaultStore::new(Default::default(), nowhere);
    let mut sim = Sim::with(store, Default::default(), sim::Policed::ByRule);
    let token = sim.issue("a0", 100, 100, 1_000_000);
    let session = sim.seat(token);
    let asks = |credits: u64| {
        format!(r#"{{"tool_id": "spend", "args": {{"units": 21, "credits": {credits}}}}}"#)
    };
    sim.give("a0", 5);
    refused_with(&mut sim, session, &asks(6), Reason::OverBudget);
    assert_eq!(sim.kernel.asks().count(), 0);
    refused_with(&mut sim, session, &asks(5), Reason::Asked);
    assert_eq!(sim.kernel.asks().count(), 1);
    replays_and_verifies(&mut sim);
}

#[test]
fn credits_from_a_non_operator_are_refused() {
    let (mut sim, session) = seated();
    let agent = AgentId::new("a0").unwrap();
    let change = CreditChange { agent, added: 5 };
    for role in [syscap::format::Role::Issuer, syscap::format::Role::Revoker] {
        let control = sim.signed_by(&change, role);
        let ticket = sim.ticket();
        sim.event(Event::Control(ticket, RecordKind::Credit, control, None, None));
        sim.commit();
        let refused = sim.acked(ticket).unwrap().as_ref().unwrap_err();
        assert_eq!(refused.reason(), Reason::BadSignature);
    }
    assert_eq!(sim.kernel.accounts().count(), 0);
    // Nor more than there is room for.
    assert!(sim.give("a0", u64::MAX - 1).unwrap().is_ok());
    let refused = sim.give("a0", 2).unwrap().as_ref().unwrap_err();
    assert_eq!((refused.reason(), refused.is_about("added")), (Reason::BadControl, true));
    refused_with(&mut sim, session, &costs(2_000), Reason::OverBudget);
    replays_and_verifies(&mut sim);
}

/// However many call at once: what they use is never more than what the agent has.
#[test]
fn threads_race_for_one_account() {
    let folder = tempfile::tempdir().unwrap();
    let ran = std::sync::Arc::new(AtomicU32::new(0));
    let counted = std::sync::Arc::clone(&ran);
    let tool = HostTool::new("paid", EffectClass::LocalWrite)
        .unwrap()
        .hold(Dimension::CreditsMicro, 10)
        .run(move |call| {
            call.meter(Dimension::CreditsMicro, 10)?;
            counted.fetch_add(1, Ordering::SeqCst);
            Ok(1_u64)
        });
    let rt = Options::new().tool(tool).unwrap().create(folder.path().join("home")).unwrap();
    let agent = AgentId::new("a").unwrap();
    rt.control(&CreditChange { agent, added: 75 }).unwrap();
    std::thread::scope(|threads| {
        for _ in 0..16 {
            // Each with a token of its own: the account lies above them.
            let token = rt.issue(Grant::to("a").tools(["paid"])).unwrap();
            let session = rt.session("a", token).unwrap();
            threads.spawn(move || {
                for _ in 0..2 {
                    let result = session.call("paid", args! {}).unwrap();
                    let fine = [None, Some(Reason::OverBudget), Some(Reason::Exhausted)];
                    assert!(fine.contains(&result.reason()), "{:?}", result.reason());
                }
            });
        }
    });
    assert_eq!(ran.load(Ordering::SeqCst), 7);
    let left = rt.look(|kernel| account(kernel, "a")).unwrap();
    assert_eq!((left.2, left.0 - left.1), (0, left.3));
    rt.close().unwrap();
}
