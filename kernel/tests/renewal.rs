//! Tokens that must be renewed: from a time on they are as revoked, unless they were.

use kernel_support::FromStore;
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Ending, Sim, home, refused_with};
use syscap_format::{
    Body, Canonical, Encoder, OutcomeFlags, Profile, Reason, Role, TokenBody, TokenId,
};
use syscap_kernel::{Ack, Event};
use syscap_verify::{Extent, Options as VerifyOptions, verify};

const LOOK: &str = r#"{"tool_id": "look", "args": {"at": 1}}"#;
const SPEND: &str = r#"{"tool_id": "spend", "args": {"units": 1}}"#;
/// In milliseconds.
const BOUND: u64 = 10_000;
const LIFE: u64 = 100_000;

fn forward(sim: &mut Sim, ms: u64) {
    (sim.wall, sim.boottime) = (sim.wall + ms, sim.boottime + ms);
    sim.event(Event::Tick);
}

/// Registers a body, and says what came of it.
fn register(sim: &mut Sim, body: &TokenBody) -> Result<TokenId, (Reason, bool)> {
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(body), None));
    sim.commit();
    sim.tokens.push((TokenBody::id_of(&body.to_bytes()), 100));
    match sim.acked(ticket).unwrap() {
        Ok(Ack::Token(id)) => Ok(*id),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err((refused.reason(), refused.is_about("renew_by"))),
    }
}

/// A token of `a0` that must be renewed within that time, held by the home.
fn bound(sim: &mut Sim, ms: u64) -> TokenBody {
    let mut body = sim.token_body("a0", budget(100, 100), LIFE);
    body.caveats = vec![TokenBody::renew_by_caveat(sim.kernel.now().plus(ms))];
    (body.holder, body.depth_max) = (Some(sim::keys::public_of(&sim::keys::holder())), 2);
    body
}

fn leased(sim: &mut Sim) -> TokenId {
    let body = bound(sim, BOUND);
    register(sim, &body).unwrap()
}

/// Renews it until then, and gives nothing.
fn renew(sim: &mut Sim, old: TokenId, life_ms: u64) -> Result<TokenId, (Reason, bool)> {
    let mut body = sim.token_body("a0", syscap_format::Budget::none(), life_ms);
    body.renews = Some(old);
    body.grants = syscap_format::Grants::new();
    register(sim, &body)
}

fn replays_and_verifies(sim: &mut Sim) {
    sim.commit();
    while sim.kernel.wants_commit() {
        sim.commit();
    }
    assert_eq!(sim.reopened().unwrap().state_image(), sim.kernel.state_image());
    let mut source = FromStore(&mut sim.store);
    let report = verify(&mut source, Extent::AtRest, &VerifyOptions::default()).unwrap();
    assert_eq!(report.findings, []);
}

#[test]
fn unrenewed_token_is_revoked_at_its_bound() {
    let mut sim = home();
    let token = leased(&mut sim);
    let session = sim.seat(token);
    forward(&mut sim, BOUND - 1);
    sim::ok(&mut sim, session);
    forward(&mut sim, 1);
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    assert!(sim.kernel.token(&token).unwrap().is_revoked(sim.kernel.now()));
    // It is too late to renew it.
    assert_eq!(renew(&mut sim, token, LIFE), Err((Reason::Revoked, false)));
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    replays_and_verifies(&mut sim);
}

#[test]
fn a_renewal_carries_it_on_and_no_further() {
    let mut sim = home();
    let token = leased(&mut sim);
    let session = sim.seat(token);
    forward(&mut sim, BOUND / 2);
    let first = renew(&mut sim, token, 2 * BOUND).unwrap();
    forward(&mut sim, BOUND);
    sim::ok(&mut sim, session);
    // A shorter one takes nothing away; what ends it sooner is a revocation.
    renew(&mut sim, token, 1_000).unwrap();
    forward(&mut sim, BOUND - 1);
    sim::ok(&mut sim, session);
    forward(&mut sim, 1);
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    // Not by renewing the renewal: what has ended stays so.
    assert_eq!(renew(&mut sim, first, LIFE).map(drop), Ok(()));
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    replays_and_verifies(&mut sim);
}

/// A renewal that must be renewed itself carries on both.
#[test]
fn renewals_of_renewals_carry_on_the_first() {
    let mut sim = home();
    let token = leased(&mut sim);
    let session = sim.seat(token);
    let mut next = bound(&mut sim, 2 * BOUND);
    next.renews = Some(token);
    let next = register(&mut sim, &next).unwrap();
    forward(&mut sim, BOUND);
    let mut last = bound(&mut sim, 2 * BOUND);
    last.renews = Some(next);
    register(&mut sim, &last).unwrap();
    forward(&mut sim, 2 * BOUND - 1);
    sim::ok(&mut sim, session);
    forward(&mut sim, 1);
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    replays_and_verifies(&mut sim);
}

#[test]
fn delegated_token_ends_at_its_parents_bound() {
    let mut sim = home();
    let token = leased(&mut sim);
    sim.derive(token, 50, 50, LIFE - 1);
    sim.commit();
    let (child, _) = *sim.tokens.last().unwrap();
    let session = sim.seat(child);
    sim::ok(&mut sim, session);
    forward(&mut sim, BOUND);
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
    // Nothing is handed on any more.
    let body = sim.derived(token, budget(1, 1), 1_000).unwrap();
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&sim::keys::holder(), &body), None));
    sim.commit();
    assert_eq!(sim.acked(ticket).unwrap().as_ref().unwrap_err().reason(), Reason::Revoked);
    replays_and_verifies(&mut sim);
}

/// What has its intent and not its permit does not run; what runs is flagged.
#[test]
fn the_bound_falls_between_intent_and_permit() {
    let mut sim = home();
    let token = leased(&mut sim);
    let session = sim.seat(token);
    forward(&mut sim, BOUND - 2);
    sim.submit_json(session, SPEND);
    sim.commit();
    let waits = sim.submit_json(session, SPEND);
    forward(&mut sim, 2);
    sim.commit();
    sim.end_job(0, Ending::Runs);
    sim.commit();
    assert_eq!(sim.reason_of(waits), Some(Reason::NotRun));
    let flags: Vec<OutcomeFlags> = sim::records(&mut sim)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Outcome(outcome) => Some(outcome.flags),
            _ => None,
        })
        .collect();
    assert_eq!(flags, [OutcomeFlags::REVOKED; 2]);
    assert_eq!(sim.world.lock().unwrap().spent.len(), 1);
    replays_and_verifies(&mut sim);
}

#[test]
fn only_roots_say_it_and_once() {
    let mut sim = home();
    let caveat = |items: &[u64]| {
        let mut encoder = Encoder::new();
        encoder.array(items.len());
        items.iter().for_each(|item| encoder.uint(*item));
        Canonical::check(encoder.into_bytes(), Profile::CONTROL).unwrap()
    };
    let now = sim.kernel.now();
    let by = |ms: u64| TokenBody::renew_by_caveat(now.plus(ms));
    let unknown = Reason::UnknownAuthority;
    for (caveats, reason) in [
        (vec![by(0)], (Reason::BadToken, true)),
        (vec![by(LIFE)], (Reason::BadToken, true)),
        (vec![by(5), by(5)], (unknown, false)),
        (vec![caveat(&[3, now.get() + 5])], (unknown, false)),
        (vec![caveat(&[1])], (unknown, false)),
        (vec![caveat(&[1, now.get() + 5, 0])], (unknown, false)),
        (vec![Canonical::null()], (unknown, false)),
    ] {
        let mut body = sim.token_body("a0", budget(1, 1), LIFE);
        (body.not_before, body.expires) = (now, now.plus(LIFE));
        body.caveats = caveats;
        assert_eq!(register(&mut sim, &body), Err(reason));
    }
    let token = leased(&mut sim);
    let mut child = sim.derived(token, budget(1, 1), 1_000).unwrap();
    child.caveats = vec![TokenBody::renew_by_caveat(sim.kernel.now().plus(500))];
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&sim::keys::holder(), &child), None));
    sim.commit();
    let refused = sim.acked(ticket).unwrap().as_ref().unwrap_err();
    assert!(refused.reason() == Reason::BadToken && refused.is_about("renew_by"));
    // Who is not the issuer renews nothing.
    let mut body = sim.token_body("a0", budget(1, 1), LIFE);
    body.renews = Some(token);
    body.issuer = sim::keys::public(Role::Operator);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&sim::key(Role::Operator), &body), None));
    sim.commit();
    assert!(sim.acked(ticket).unwrap().is_err());
    let session = sim.seat(token);
    forward(&mut sim, BOUND);
    refused_with(&mut sim, session, LOOK, Reason::Revoked);
}
