//! What approvers' keys have said ends with them: a change of the role ends what waits and what was
//! answered, and what is still wanted is asked anew.

use ed25519_dalek::{Signer as _, SigningKey};
use kernel_support::FromStore;
use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::keys::public_of;
use kernel_support::sim::tokens::budget;
use kernel_support::sim::{self, Ending, Policed, Sim};
use syscap_audit::MemoryStore;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, HomeLimits, KeyChange, Leaf, POSSESSION_CONTEXT,
    Possession, Reason, RecordKind, Role, RoleSet, Seq, Signature, Status, TokenBody, UnixMillis,
    possession, preimage,
};
use syscap_kernel::{Ack, Event};
use syscap_verify::{Extent, Options as VerifyOptions, verify};

/// The rule asks about 21 units.
const CALL: &str = r#"{"tool_id": "trim", "args": {"units": 21}}"#;

fn seeded(byte: u8) -> SigningKey {
    SigningKey::from_bytes(&[byte; 32])
}

fn start() -> (Sim, Seq) {
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::with(store, HomeLimits::default(), Policed::ByRule);
    let token = sim.issue("a0", 200, 900, 500_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = *sim.sessions.last().unwrap();
    (sim, session)
}

fn ask(sim: &mut Sim, session: Seq) -> Leaf {
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    let ask = sim.reply_to(ticket).unwrap().ask().unwrap();
    sim.kernel.asks().find(|waits| waits.ask == ask).unwrap().leaf
}

/// The operator gives the approvers' role these keys.
fn approvers(sim: &mut Sim, keys: &[SigningKey], threshold: u64) {
    let role = Role::Approver;
    let mut sorted: Vec<&SigningKey> = keys.iter().collect();
    sorted.sort_by_key(|key| key.verifying_key().to_bytes());
    let proof = |key: &&SigningKey| {
        let message = possession(&sim.kernel.home(), role, &public_of(key));
        let signature = key.sign(&preimage(POSSESSION_CONTEXT, &message)).to_bytes();
        Possession { key: public_of(key), signature: Signature::from_bytes(signature) }
    };
    let known = sim.kernel.roles().set(role).unwrap();
    let new = sorted.iter().filter(|key| !known.holds(&public_of(key)));
    let proofs = new.map(proof).collect();
    let set = RoleSet::any_of(role, sorted.iter().map(|key| public_of(key)));
    let change = KeyChange { set: RoleSet { threshold, ..set }, proofs, cut_off: None };
    let control = sim.signed(&change);
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Key, control, None, None));
    sim.commit();
    assert!(sim.acked(ticket).unwrap().is_ok(), "{:?}", sim.acked(ticket));
}

fn say(
    sim: &mut Sim,
    ask: Leaf,
    (answer, uses, expires): (ApprovalAnswer, Option<u64>, Option<UnixMillis>),
    by: &SigningKey,
) -> Result<(), Reason> {
    let (scopes, reason) = (None, None);
    let body =
        ApprovalBody { ask, answer, means: ApprovalChannel::Signer, scopes, uses, expires, reason };
    let control = sim.signed_with(&body, by);
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Approval, control, None, None));
    sim.commit();
    match sim.acked(ticket).unwrap() {
        Ok(Ack::Recorded(_)) => Ok(()),
        Ok(other) => panic!("{other:?}"),
        Err(refused) => Err(refused.reason()),
    }
}

/// Makes the call again. Whether it ran.
fn runs(sim: &mut Sim, session: Seq) -> bool {
    let ticket = sim.submit_json(session, CALL);
    sim.commit();
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    sim.reply_to(ticket).map(|reply| reply.status()) == Some(Status::Ok)
}

/// Nobody approves what is done by a token that was derived from one of theirs.
#[test]
fn holder_of_an_ancestor_is_no_approver_of_the_child() {
    let (mut sim, _) = start();
    let (above, other) = (seeded(91), seeded(92));
    approvers(&mut sim, &[above.clone(), other.clone()], 1);
    let mut body = sim.token_body("a0", budget(200, 900), 500_000_000);
    (body.holder, body.depth_max) = (Some(public_of(&above)), 2);
    let issue = |sim: &mut Sim, body: &TokenBody, wire: Vec<u8>| {
        let ticket = sim.ticket();
        sim.event(Event::Issue(ticket, wire, None));
        sim.commit();
        assert!(sim.acked(ticket).unwrap().is_ok(), "{:?}", sim.acked(ticket));
        let token = TokenBody::id_of(&body.to_bytes());
        sim.tokens.push((token, 0));
        token
    };
    let parent = issue(&mut sim, &body, Sim::wire(&body));
    let mut child = sim.derived(parent, budget(100, 300), 60_000).unwrap();
    (child.issuer, child.holder) = (public_of(&above), None);
    (child.depth_max, child.budget) = (child.depth, budget(100, 300));
    let child = issue(&mut sim, &child, Sim::wire_by(&above, &child));
    let session = sim.seat(child);
    let leaf = ask(&mut sim, session);
    let eligible = sim.kernel.asks().find(|waits| waits.leaf == leaf).unwrap().eligible;
    assert_eq!(eligible, [public_of(&other)]);
    let once = (ApprovalAnswer::Once, None, None);
    assert_eq!(say(&mut sim, leaf, once, &above), Err(Reason::NotEligible));
    assert_eq!(say(&mut sim, leaf, once, &other), Ok(()));
    assert!(runs(&mut sim, session));
    replays(&mut sim);
}

/// What a thief of the key has let through, once or often, is over with the key.
#[test]
fn approval_by_a_removed_key_is_void() {
    for (answer, uses, life) in
        [(ApprovalAnswer::Once, None, None), (ApprovalAnswer::Set, Some(9), Some(60_000))]
    {
        let (mut sim, session) = start();
        let leaf = ask(&mut sim, session);
        let end = life.map(|ms| sim.kernel.now().plus(ms));
        say(&mut sim, leaf, (answer, uses, end), &sim::key(Role::Approver)).unwrap();
        approvers(&mut sim, &[seeded(91)], 1);
        assert!(!runs(&mut sim, session), "{answer}");
        assert_eq!(sim.kernel.sets().count(), 0);
        replays(&mut sim);
    }
}

/// Two must approve. One does, and that key is taken away: the other alone is not enough.
#[test]
fn half_a_yes_by_a_key_that_is_gone_does_not_count() {
    let (mut sim, session) = start();
    let (stolen, good, new) = (seeded(91), seeded(92), seeded(93));
    approvers(&mut sim, &[stolen.clone(), good.clone()], 2);
    let leaf = ask(&mut sim, session);
    say(&mut sim, leaf, (ApprovalAnswer::Once, None, None), &stolen).unwrap();
    approvers(&mut sim, &[good.clone(), new.clone()], 2);
    let late = say(&mut sim, leaf, (ApprovalAnswer::Once, None, None), &good);
    assert_eq!(late, Err(Reason::UnknownAsk));
    assert!(!runs(&mut sim, session));
    // Asked anew, both of now are.
    let leaf = ask(&mut sim, session);
    say(&mut sim, leaf, (ApprovalAnswer::Once, None, None), &good).unwrap();
    assert!(!runs(&mut sim, session));
    say(&mut sim, leaf, (ApprovalAnswer::Once, None, None), &new).unwrap();
    assert!(runs(&mut sim, session));
    replays(&mut sim);
}

/// After a rotation what waited is asked anew, of who may answer.
#[test]
fn waiting_request_is_asked_anew_after_a_rotation() {
    let (mut sim, session) = start();
    let first = ask(&mut sim, session);
    let own = seeded(91);
    approvers(&mut sim, std::slice::from_ref(&own), 1);
    let anew = ask(&mut sim, session);
    assert_ne!(anew, first);
    say(&mut sim, anew, (ApprovalAnswer::Once, None, None), &own).unwrap();
    assert!(runs(&mut sim, session));
    replays(&mut sim);
}

/// What an approver says of a set: for how many calls, and until when from now.
type Said = (u64, Option<u64>);
/// The same of the set that stands, and whether it ends with its session.
type Stands = (u64, Option<u64>, bool);

/// A set by two approvers is for the fewest calls, until the earliest end. It ends with the session
/// where either named no end.
#[test]
fn set_of_two_approvers_is_what_both_let_through() {
    const MINUTE: u64 = 60_000;
    let cases: [(Said, Said, Stands); 6] = [
        ((5, Some(2 * MINUTE)), (2, Some(MINUTE)), (2, Some(MINUTE), false)),
        ((2, Some(MINUTE)), (5, Some(2 * MINUTE)), (2, Some(MINUTE), false)),
        ((2, Some(2 * MINUTE)), (5, Some(MINUTE)), (2, Some(MINUTE), false)),
        ((3, None), (5, Some(MINUTE)), (3, Some(MINUTE), true)),
        ((5, Some(MINUTE)), (3, None), (3, Some(MINUTE), true)),
        ((2, None), (2, None), (2, None, true)),
    ];
    for (one, two, (uses, life, with_session)) in cases {
        let (mut sim, session) = start();
        let keys = [seeded(91), seeded(92)];
        approvers(&mut sim, &keys, 2);
        let leaf = ask(&mut sim, session);
        let now = sim.kernel.now();
        for ((uses, life), key) in [one, two].into_iter().zip(&keys) {
            assert_eq!(sim.kernel.sets().count(), 0, "one of two is not enough");
            let end = life.map(|ms| now.plus(ms));
            say(&mut sim, leaf, (ApprovalAnswer::Set, Some(uses), end), key).unwrap();
        }
        let set = sim.kernel.sets().next().unwrap();
        assert_eq!((set.left, set.session), (uses, with_session.then_some(session)));
        assert!(life.is_none_or(|ms| set.until == now.plus(ms)), "{:?}", set.until);
        for _ in 0..uses {
            assert!(runs(&mut sim, session));
        }
        assert!(!runs(&mut sim, session));
        sound(&mut sim);
    }
}

/// Two who name other ends: from the earliest on nothing runs.
#[test]
fn set_of_two_approvers_ends_at_the_earliest_end() {
    let (mut sim, session) = start();
    let keys = [seeded(91), seeded(92)];
    approvers(&mut sim, &keys, 2);
    let leaf = ask(&mut sim, session);
    for (ms, key) in [120_000, 60_000].into_iter().zip(&keys) {
        let end = sim.kernel.now().plus(ms);
        say(&mut sim, leaf, (ApprovalAnswer::Set, Some(9), Some(end)), key).unwrap();
    }
    assert!(runs(&mut sim, session));
    (sim.wall, sim.boottime) = (sim.wall + 60_000, sim.boottime + 60_000);
    assert!(!runs(&mut sim, session));
    sound(&mut sim);
}

/// A set stands for a day at most, and never longer than the token that asked.
#[test]
fn set_outlasts_neither_a_day_nor_its_token() {
    const DAY: u64 = 24 * 3_600_000;
    // The token lives 500,000 seconds: more than five days. Another lives an hour.
    for (life, named, most) in [(5 * DAY, 2 * DAY, DAY), (DAY / 24, DAY / 2, DAY / 24)] {
        let (mut sim, _) = start();
        let token = sim.issue("a0", 200, 900, life);
        sim.open("a0", token);
        sim.commit();
        let session = *sim.sessions.last().unwrap();
        let leaf = ask(&mut sim, session);
        let now = sim.kernel.now();
        let said = (ApprovalAnswer::Set, Some(9), Some(now.plus(named)));
        say(&mut sim, leaf, said, &sim::key(Role::Approver)).unwrap();
        let set = sim.kernel.sets().next().unwrap();
        assert!(set.until <= now.plus(most), "{:?}", set.until);
        assert!(runs(&mut sim, session));
        (sim.wall, sim.boottime) = (sim.wall + most, sim.boottime + most);
        assert!(!runs(&mut sim, session));
        assert_eq!(sim.kernel.sets().count(), 0);
        sound(&mut sim);
    }
}

/// The verifier derives the same.
fn sound(sim: &mut Sim) {
    replays(sim);
    let report = verify(&mut FromStore(&mut sim.store), Extent::AtRest, &VerifyOptions::default());
    assert_eq!(report.unwrap().findings, []);
}

/// The same log makes the same state.
fn replays(sim: &mut Sim) {
    let image = sim.kernel.state_image();
    assert!(sim.reopened().unwrap().state_image() == image);
}
