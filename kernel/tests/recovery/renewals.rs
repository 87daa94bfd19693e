//! A token that takes the place of another answers its idempotency keys.

use syscap_format::{
    AgentId, Body, Grants, Reason, RecordKind, Revocation, Seq, TokenBody, TokenFlags, TokenId,
    ToolGrant, ToolId,
};
use syscap_kernel::Event;

use crate::recovery::probes::{run, sound, spent};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{Ending, Sim, records, refused_with, seated};

const ONCE: &str = r#"{"tool_id": "spend", "args": {"units": 3}, "idempotency_key": "k"}"#;

/// Registers a token of `a0` that renews another.
fn renew(
    sim: &mut Sim,
    old: TokenId,
    change: impl FnOnce(&mut TokenBody),
) -> Result<TokenId, Reason> {
    let mut body = sim.token_body("a0", budget(50, 50), 1_000_000);
    body.renews = Some(old);
    change(&mut body);
    let id = TokenBody::id_of(&body.to_bytes());
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.tokens.push((id, 50));
    sim.commit();
    match sim.acked(ticket).unwrap() {
        Ok(_) => Ok(id),
        Err(refused) => Err(refused.reason()),
    }
}

/// One who has run the call once, under a token that others are to renew.
fn begun() -> (Sim, TokenId) {
    let (mut sim, session) = seated();
    run(&mut sim, session, ONCE);
    assert_eq!(spent(&sim), 3);
    let token = sim.tokens[0].0;
    (sim, token)
}

fn repeated(sim: &mut Sim, session: Seq) {
    let ticket = sim.submit_json(session, ONCE);
    sim.commit();
    assert_eq!(sim.reason_of(ticket), None);
    assert!(matches!(records(sim).pop().unwrap().body, Body::Repeat(_)));
    assert_eq!(spent(sim), 3, "nothing ran again");
}

#[test]
fn renewed_token_answers_for_its_idempotency_keys() {
    let (mut sim, old) = begun();
    let new = renew(&mut sim, old, |_| ()).unwrap();
    let session = sim.seat(new);
    repeated(&mut sim, session);
    let other = ONCE.replace('3', "4");
    refused_with(&mut sim, session, &other, Reason::KeyReused);
    // Also after a restart, over more than one renewal, and though the first has been revoked.
    let third = renew(&mut sim, new, |_| ()).unwrap();
    let revoked = sim.signed(&Revocation::subtree(old));
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Revoke, revoked, None, None));
    sim.commit();
    sim.crash().unwrap();
    sim.boot();
    let session = sim.seat(third);
    repeated(&mut sim, session);
    sound(&mut sim);
}

/// Only its own predecessors': not those of one who renews the same, nor of one who renews it.
#[test]
fn a_renewal_reaches_back_only() {
    let (mut sim, old) = begun();
    let (one, two) = (
        renew(&mut sim, old, |_| ()).unwrap(),
        renew(&mut sim, old, |body| body.nonce = [7; 16]).unwrap(),
    );
    let (one, two) = (sim.seat(one), sim.seat(two));
    let own = ONCE.replace(r#""k""#, r#""own""#);
    run(&mut sim, one, &own);
    assert_eq!(spent(&sim), 6);
    refused_with(&mut sim, two, &own, Reason::NotBound);
    let first = sim.seat(old);
    refused_with(&mut sim, first, &own, Reason::NotBound);
    let third = sim.issue("a0", 10, 10, 1_000_000);
    let third = sim.seat(third);
    refused_with(&mut sim, third, ONCE, Reason::NotBound);
    assert_eq!(spent(&sim), 6);
    sound(&mut sim);
}

/// It answers for a tool that it grants itself, and for no other.
#[test]
fn a_renewal_answers_for_what_it_grants() {
    let (mut sim, old) = begun();
    let look = || Grants::new().with(ToolId::new("look").unwrap(), ToolGrant::new());
    let new = renew(&mut sim, old, |body| body.grants = look()).unwrap();
    let session = sim.seat(new);
    refused_with(&mut sim, session, ONCE, Reason::NotGranted);
    let new = renew(&mut sim, old, |body| body.flags = TokenFlags::READ_ONLY).unwrap();
    let session = sim.seat(new);
    refused_with(&mut sim, session, ONCE, Reason::ReadOnlyToken);
}

/// A key that is out, or whose end nobody knows, is so for who renews as well.
#[test]
fn renewed_token_sees_keys_in_flight_or_unknown() {
    let (mut sim, session) = seated();
    let token = sim.tokens[0].0;
    let new = renew(&mut sim, token, |_| ()).unwrap();
    let renewed = sim.seat(new);
    sim.submit_json(session, ONCE);
    sim.commit();
    refused_with(&mut sim, renewed, ONCE, Reason::KeyInFlight);
    sim.end_job(0, Ending::Panics);
    sim.commit();
    refused_with(&mut sim, renewed, ONCE, Reason::OutcomeUnknown);
    assert_eq!(spent(&sim), 0);
}

#[test]
fn unfit_renewal_is_refused() {
    let (mut sim, old) = begun();
    let nobody = TokenId::from_bytes([9; 32]);
    assert_eq!(renew(&mut sim, nobody, |_| ()), Err(Reason::UnknownToken));
    let another = |body: &mut TokenBody| body.agent = AgentId::new("a1").unwrap();
    assert_eq!(renew(&mut sim, old, another), Err(Reason::BadToken));
    // A part of a token takes nobody's place, and nobody takes the place of a part.
    sim.derive(old, 5, 5, 1_000);
    sim.commit();
    let part = sim.tokens.last().unwrap().0;
    assert!(sim.kernel.token(&part).is_some());
    assert_eq!(renew(&mut sim, part, |_| ()), Err(Reason::BadToken));
    let revoked = sim.signed(&Revocation::subtree(old));
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Revoke, revoked, None, None));
    sim.commit();
    assert_eq!(renew(&mut sim, old, |_| ()), Err(Reason::Revoked));
}
