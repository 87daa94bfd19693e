//! What ends for good: what was derived from a token, an epoch, all of a key; and calls that are
//! out.

mod cancel;
mod cause;

use host_support::{records, verdict};
use kernel_support::sim::keys::{holder, public_of};
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Ending, Sim, key, ok, records as logged, seated};
use syscap::format::{
    Amounts, Body, Control, ControlBody, OutcomeFlags, Reason, Revocation, RevokeTarget, Revoked,
    Role, Signature, Signed, TextHash, TokenBody, TokenId, preimage,
};
use syscap::kernel::{Ack, Event, Ticket};
use syscap::verify::{Extent, FromStore, Options, verify};

const SPEND: &str = r#"{"tool_id": "spend", "args": {"units": 3}}"#;
const LOOK: &str = r#"{"tool_id": "look", "args": {"at": 1}}"#;

/// The log is sound, by the verifier, and makes the same state again.
fn sound(sim: &mut Sim) {
    sim.commit();
    let report =
        verify(&mut FromStore(&mut sim.store), Extent::AtRest, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
    let again = sim.reopened().unwrap();
    assert_eq!(again.state_image(), sim.kernel.state_image());
}

fn revoked(sim: &Sim, token: TokenId) -> bool {
    sim.kernel.token(&token).unwrap().revoked
}

/// Registers a token that is derived from another.
fn derived(sim: &mut Sim, parent: TokenId) -> TokenId {
    let body = sim.derived(parent, budget(5, 5), 1_000).unwrap();
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&holder(), &body), None));
    sim.commit();
    match sim.acked(ticket) {
        Some(Ok(Ack::Token(token))) => *token,
        ack => panic!("{ack:?}"),
    }
}

/// What is said of a token that is not registered any more.
fn not_issued(sim: &mut Sim, wire: Vec<u8>) -> (Reason, String) {
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, wire, None));
    refused(sim, ticket)
}

/// The reason on record and the field that it is about.
fn refused(sim: &mut Sim, ticket: Ticket) -> (Reason, String) {
    sim.commit();
    let refused = sim.acked(ticket).unwrap().clone().unwrap_err();
    let Body::Refusal(refusal) = logged(sim).pop().unwrap().body else { panic!("no refusal") };
    assert_eq!(refusal.reason, refused.reason());
    let object = refused.error_object(syscap::format::ErrorKind::Refused);
    let field = object.item().get("field").and_then(|field| field.as_text().map(str::to_owned));
    (refused.reason(), field.unwrap_or_default())
}

fn ends(sim: &mut Sim, revocation: &Revocation) {
    let ticket = sim.end(revocation);
    sim.commit();
    assert!(matches!(sim.acked(ticket), Some(Ok(Ack::Recorded(_)))), "{:?}", sim.acks.last());
}

#[test]
fn revoking_derived_tokens_leaves_the_token_valid() {
    let mut sim = sim::home();
    let (root, other) = (sim.issue("a0", 10, 10, 1_000_000), sim.issue("a0", 10, 10, 1_000_000));
    sim.commit();
    let child = derived(&mut sim, root);
    let (below, beside) = (derived(&mut sim, child), derived(&mut sim, other));
    ends(&mut sim, &Revocation::children(root));
    let standing = [root, child, below, other, beside].map(|token| revoked(&sim, token));
    assert_eq!(standing, [false, true, true, false, false]);
    let session = sim.seat(root);
    ok(&mut sim, session);
    let ended = sim.seat(child);
    sim::refused_with(&mut sim, ended, LOOK, Reason::Revoked);
    // What is derived afterwards is not touched.
    let later = derived(&mut sim, root);
    assert!(!revoked(&sim, later));
    let session = sim.seat(later);
    ok(&mut sim, session);
    // Nothing is derived from what has ended.
    let body = sim.derived(child, budget(1, 1), 100).unwrap();
    let wire = Sim::wire_by(&holder(), &body);
    assert_eq!(not_issued(&mut sim, wire), (Reason::Revoked, "parent".to_owned()));
    // Once more ends what came since.
    ends(&mut sim, &Revocation::children(root));
    assert_eq!([root, later].map(|token| revoked(&sim, token)), [false, true]);
    sound(&mut sim);
}

#[test]
fn an_epoch_ends_what_is_older_and_none_is_issued_below() {
    let mut sim = sim::home();
    let old = sim.issue("a0", 10, 10, 1_000_000);
    sim.commit();
    let child = derived(&mut sim, old);
    let ahead = TokenBody { epoch: 5, ..sim.token_body("a0", budget(1, 1), 1_000_000) };
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&ahead), None));
    sim.commit();
    let ahead = TokenBody::id_of(&ahead.to_bytes());
    ends(&mut sim, &Revocation::epoch(3));
    let standing = [old, child, ahead].map(|token| revoked(&sim, token));
    assert_eq!((standing, sim.kernel.epoch()), ([true, true, false], 3));
    // Below it none is issued any more; at it one is.
    for (epoch, said) in [(0, true), (2, true), (3, false), (4, false)] {
        let body = TokenBody { epoch, ..sim.token_body("a0", budget(1, 1), 1_000_000) };
        let wire = Sim::wire(&body);
        if said {
            assert_eq!(not_issued(&mut sim, wire), (Reason::Revoked, "epoch".to_owned()));
        } else {
            let ticket = sim.ticket();
            sim.event(Event::Issue(ticket, wire, None));
            sim.commit();
            assert!(matches!(sim.acked(ticket), Some(Ok(Ack::Token(_)))));
        }
    }
    // It never goes back, nor stands still.
    for least in [0, 2, 3] {
        let ticket = sim.end(&Revocation::epoch(least));
        assert_eq!(refused(&mut sim, ticket), (Reason::BadControl, "epoch".to_owned()));
    }
    assert_eq!(sim.kernel.epoch(), 3);
    ends(&mut sim, &Revocation::epoch(6));
    assert!(revoked(&sim, ahead));
    sound(&mut sim);
}

#[test]
fn a_key_ends_all_that_it_issued_or_holds() {
    let mut sim = sim::home();
    let held = sim.issue("a0", 10, 10, 1_000_000);
    let mut body = sim.token_body("a0", budget(10, 10), 1_000_000);
    let other = ed25519_dalek::SigningKey::from_bytes(&[78; 32]);
    (body.holder, body.depth_max) = (Some(public_of(&other)), 2);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    sim.commit();
    let kept = TokenBody::id_of(&body.to_bytes());
    let child = derived(&mut sim, held);
    let below = derived(&mut sim, child);
    // A key that nobody has ends nothing.
    let nobody = public_of(&ed25519_dalek::SigningKey::from_bytes(&[79; 32]));
    let ticket = sim.end(&Revocation::key(nobody));
    assert_eq!(refused(&mut sim, ticket), (Reason::UnknownToken, "key".to_owned()));
    ends(&mut sim, &Revocation::key(public_of(&holder())));
    let standing = [held, child, below, kept].map(|token| revoked(&sim, token));
    assert_eq!(standing, [true, true, true, false]);
    // Nothing is registered that it holds, or that it has issued.
    let mut body = sim.token_body("a0", budget(1, 1), 1_000);
    (body.holder, body.depth_max) = (Some(public_of(&holder())), 2);
    let said = not_issued(&mut sim, Sim::wire(&body));
    assert_eq!(said, (Reason::Revoked, "holder".to_owned()));
    let derived_now = TokenBody {
        issuer: public_of(&holder()),
        holder: None,
        depth_max: 1,
        ..sim.derived(kept, budget(1, 1), 100).unwrap()
    };
    let said = not_issued(&mut sim, Sim::wire_by(&holder(), &derived_now));
    assert_eq!(said, (Reason::Revoked, "issuer".to_owned()));
    // The issuer's own key: nothing more is issued until it has another one.
    ends(&mut sim, &Revocation::key(public_of(&key(Role::Issuer))));
    assert!(revoked(&sim, kept));
    let body = sim.token_body("a0", budget(1, 1), 1_000);
    let said = not_issued(&mut sim, Sim::wire(&body));
    assert_eq!(said, (Reason::Revoked, "issuer".to_owned()));
    sound(&mut sim);
}

/// Before the permit nothing runs; after it what runs is flagged, and what has not begun is given
/// back.
#[test]
fn a_revocation_of_any_target_prevents_the_run_or_flags_it() {
    let targets: [fn(TokenId) -> Revocation; 3] =
        [Revocation::children, |_| Revocation::epoch(1), |_| Revocation::key(public_of(&holder()))];
    for target in targets {
        for when in ["before", "waits", "runs"] {
            let mut sim = sim::home();
            let root = sim.issue("a0", 10, 10, 1_000_000);
            sim.commit();
            let token = derived(&mut sim, root);
            let session = sim.seat(token);
            let ticket = sim.submit_json(session, SPEND);
            if when != "before" {
                sim.commit();
            }
            sim.end(&target(root));
            sim.commit();
            sim.commit();
            let spent = match when {
                "before" => 0,
                "waits" => {
                    let (_, job) = sim.jobs.remove(0);
                    assert!(!sim.kernel.may_begin(&job));
                    sim.event(Event::GivenBack(job));
                    0
                }
                _ => {
                    sim.end_job(0, Ending::Runs);
                    3
                }
            };
            sim.commit();
            assert!(sim.jobs.is_empty());
            assert_eq!(sim.world.lock().unwrap().spent.len(), spent);
            assert_eq!(sim.reason_of(ticket), (spent == 0).then_some(Reason::NotRun));
            let Body::Outcome(outcome) = logged(&mut sim).pop().unwrap().body else { panic!() };
            assert_eq!(outcome.flags, OutcomeFlags::REVOKED);
            assert_eq!(sim.kernel.token(&root).unwrap().held, Amounts::ZERO);
            sound(&mut sim);
        }
    }
}

/// What is signed wrongly, or names what there isn't, ends nothing.
#[test]
fn a_revocation_that_is_not_sound_ends_nothing() {
    let (mut sim, session) = seated();
    let (token, _) = sim.tokens[0];
    sim.commit();
    let none = TokenId::from_bytes([3; 32]);
    let mixed = Revocation { epoch: Some(9), ..Revocation::children(token) };
    let empty = Revocation { target: RevokeTarget::Key, ..Revocation::subtree(token) };
    for (revocation, said) in [
        (Revocation::subtree(none), (Reason::UnknownToken, "token")),
        (Revocation::children(none), (Reason::UnknownToken, "token")),
        (mixed, (Reason::BadControl, "target")),
        (empty, (Reason::BadControl, "target")),
    ] {
        let ticket = sim.end(&revocation);
        let (reason, field) = refused(&mut sim, ticket);
        assert_eq!((reason, &*field), said);
    }
    let epoch = Revocation::epoch(1);
    let by = |sim: &mut Sim, role: Role, counter: u64| {
        let (signer, home) = (key(role), sim.kernel.home());
        let (key, body) = (public_of(&signer), ControlBody::to_bytes(&epoch));
        let head = sim.kernel.durable().unwrap();
        let message = Control::message(&home, &head, &key, counter, Revocation::KIND, &body);
        let message = preimage(syscap::format::CONTROL_CONTEXT, &message);
        let signature = ed25519_dalek::Signer::sign(&signer, &message).to_bytes();
        let signature = Signature::from_bytes(signature);
        let control = Control::by_one(head, body, Signed { key, counter, signature });
        let ticket = sim.ticket();
        sim.event(Event::Control(ticket, Revocation::KIND, control, None, None));
        refused(sim, ticket).0
    };
    assert_eq!(by(&mut sim, Role::Issuer, 9), Reason::BadSignature);
    assert_eq!(by(&mut sim, Role::Operator, 9), Reason::BadSignature);
    ends(&mut sim, &Revocation::epoch(1));
    assert_eq!(by(&mut sim, Role::Revoker, 1), Reason::StaleCounter);
    assert_eq!(sim.kernel.epoch(), 1);
    sim::refused_with(&mut sim, session, LOOK, Reason::Revoked);
    sound(&mut sim);
}

/// Each target has what names it, and nothing else.
#[test]
fn a_revocation_names_one_thing() {
    let (token, key) = (TokenId::from_bytes([3; 32]), public_of(&key(Role::Issuer)));
    for (revocation, revoked) in [
        (Revocation::subtree(token), Revoked::Subtree(token)),
        (Revocation::children(token), Revoked::Children(token)),
        (Revocation::epoch(7), Revoked::Epoch(7)),
        (Revocation::key(key), Revoked::Key(key)),
    ] {
        let revocation = revocation.because(TextHash::from_bytes([4; 32]));
        assert_eq!(revocation.revoked(), Some(revoked));
        assert_eq!(
            Revocation::from_bytes(&ControlBody::to_bytes(&revocation)),
            Ok(revocation.clone())
        );
        for target in RevokeTarget::ALL {
            let same = *target == revocation.target;
            let alike = [RevokeTarget::Subtree, RevokeTarget::Children];
            let fits = same || (alike.contains(target) && alike.contains(&revocation.target));
            let other = Revocation { target: *target, ..revocation.clone() };
            assert_eq!(other.revoked().is_some(), fits, "{target} {revoked:?}");
        }
        let more = [
            Revocation { token: Some(token), epoch: Some(7), ..revocation.clone() },
            Revocation { token: Some(token), key: Some(key), ..revocation.clone() },
            Revocation { epoch: Some(7), key: Some(key), ..revocation.clone() },
            Revocation { token: None, epoch: None, key: None, ..revocation.clone() },
        ];
        assert!(more.iter().all(|more| more.revoked().is_none()));
    }
}
