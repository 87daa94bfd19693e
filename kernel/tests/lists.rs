//! Lists of revocations: versions that only grow, tokens that are not here yet, and tokens that are
//! valid only while a list is new.

use kernel_support::sim::{self, Ending, Sim};
use syscap_format::{
    Budget, Reason, RecordKind, RevocationList, Seq, TokenBody, TokenId, UnixMillis,
};
use syscap_kernel::Event;

const LOOK: &str = r#"{"tool_id": "look", "args": {"at": 1}}"#;
const LIFE: u64 = 60_000;

/// Has a list recorded: the refusal's reason, and what it is about.
fn list(sim: &mut Sim, version: u64, as_of: UnixMillis, tokens: &[TokenId]) -> Result<(), Reason> {
    let mut tokens = tokens.to_vec();
    tokens.sort_unstable();
    listed(sim, &RevocationList { version, as_of, tokens, cause: None })
}

fn listed(sim: &mut Sim, list: &RevocationList) -> Result<(), Reason> {
    let control = sim.signed(list);
    let ticket = sim.ticket();
    sim.event(Event::Control(ticket, RecordKind::Revoke, control, None, None));
    sim.commit();
    sim.acked(ticket).unwrap().as_ref().map(drop).map_err(|refused| refused.reason())
}

fn register(sim: &mut Sim, body: &TokenBody) -> Result<TokenId, Reason> {
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(body), None));
    sim.commit();
    let id = TokenBody::id_of(&body.to_bytes());
    sim.acked(ticket).unwrap().as_ref().map(|_| id).map_err(|refused| refused.reason())
}

/// A token that needs a list no older than so many milliseconds.
fn fresh(sim: &mut Sim, within: u64) -> TokenBody {
    let mut body = sim.token_body("a0", Budget::standard(), LIFE);
    body.caveats = vec![TokenBody::fresh_within_caveat(within)];
    body
}

fn calls(sim: &mut Sim, session: Seq) -> Option<Reason> {
    let ticket = sim.submit_json(session, LOOK);
    sim.commit();
    while !sim.jobs.is_empty() {
        sim.end_job(0, Ending::Runs);
    }
    sim.commit();
    sim.reason_of(ticket)
}

fn pass(sim: &mut Sim, ms: u64) {
    (sim.wall, sim.boottime) = (sim.wall + ms, sim.boottime + ms);
    sim.event(Event::Tick);
}

/// The same log makes the same state, also for who opens it.
fn replays(sim: &mut Sim) {
    let image = sim.kernel.state_image();
    assert!(sim.reopened().unwrap().state_image() == image);
}

#[test]
fn listed_token_ends_and_never_begins() {
    let mut sim = sim::home();
    let here = sim.lease("a0", 100, 100, LIFE);
    let session = sim.seat(here);
    assert_eq!(calls(&mut sim, session), None);
    let coming = sim.token_body("a0", Budget::standard(), LIFE);
    let id = TokenBody::id_of(&coming.to_bytes());
    let now = sim.kernel.now();
    list(&mut sim, 1, now, &[here, id]).unwrap();
    assert_eq!(calls(&mut sim, session), Some(Reason::Revoked));
    assert_eq!(register(&mut sim, &coming), Err(Reason::Revoked));
    // A later list that names neither takes nothing back.
    list(&mut sim, 2, now, &[]).unwrap();
    assert_eq!(calls(&mut sim, session), Some(Reason::Revoked));
    assert_eq!(register(&mut sim, &coming), Err(Reason::Revoked));
    let list = sim.kernel.list().unwrap();
    assert_eq!((list.version, &list.tokens[..]), (2, &[id][..]));
    replays(&mut sim);
}

/// Who brings an older list, or the same again, would hide what has ended since.
#[test]
fn a_list_is_not_rolled_back() {
    let mut sim = sim::home();
    let now = sim.kernel.now();
    list(&mut sim, 7, now, &[]).unwrap();
    let earlier = UnixMillis::new(now.get() - 1);
    for (version, as_of) in [(7, now), (6, now), (0, now), (8, earlier)] {
        assert_eq!(list(&mut sim, version, as_of, &[]), Err(Reason::BadControl));
    }
    assert_eq!(sim.kernel.list().unwrap().version, 7);
    list(&mut sim, u64::MAX, now, &[]).unwrap();
    assert_eq!(list(&mut sim, u64::MAX, now, &[]), Err(Reason::BadControl));
    replays(&mut sim);
}

#[test]
fn a_list_is_of_its_form_and_bounded() {
    let mut sim = sim::home();
    let as_of = sim.kernel.now();
    let id = |n: u32| {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(&n.to_be_bytes());
        TokenId::from_bytes(bytes)
    };
    let many: Vec<TokenId> = (0..1_025).map(id).collect();
    for tokens in [vec![id(2), id(1)], vec![id(1), id(1)], many] {
        let list = RevocationList { version: 1, as_of, tokens, cause: None };
        assert_eq!(listed(&mut sim, &list), Err(Reason::BadControl));
    }
    assert!(sim.kernel.list().is_none());
    // As many as are kept of tokens that are not here, and no more; those of one list or none.
    for version in 1..=64 {
        let from = u32::try_from(version - 1).unwrap() * 1_024;
        let tokens: Vec<TokenId> = (from..from + 1_024).map(id).collect();
        list(&mut sim, version, as_of, &tokens).unwrap();
    }
    assert_eq!(list(&mut sim, 65, as_of, &[id(70_000)]), Err(Reason::BadControl));
    assert_eq!(sim.kernel.list().unwrap().tokens.len(), 65_536);
    list(&mut sim, 65, as_of, &[]).unwrap();
    replays(&mut sim);
}

/// A token that needs a new list stops when none comes, and goes on with the next one.
#[test]
fn a_token_stops_with_a_list_that_is_old() {
    let mut sim = sim::home();
    let body = fresh(&mut sim, 1_000);
    let token = register(&mut sim, &body).unwrap();
    let session = sim.seat(token);
    assert_eq!(calls(&mut sim, session), Some(Reason::StaleRevocations), "there is none");
    let now = sim.kernel.now();
    list(&mut sim, 1, now, &[]).unwrap();
    assert_eq!(calls(&mut sim, session), None);
    let left = now.plus(1_000).since(sim.kernel.now());
    pass(&mut sim, left - 1);
    assert_eq!(calls(&mut sim, session), None);
    let left = now.plus(1_000).since(sim.kernel.now());
    pass(&mut sim, left);
    assert_eq!(calls(&mut sim, session), Some(Reason::StaleRevocations));
    // One that says no more than the last did helps nobody.
    list(&mut sim, 2, now, &[]).unwrap();
    assert_eq!(calls(&mut sim, session), Some(Reason::StaleRevocations));
    let now = sim.kernel.now();
    list(&mut sim, 3, now, &[]).unwrap();
    assert_eq!(calls(&mut sim, session), None);
    // One that is signed ahead of the time is as of now.
    list(&mut sim, 4, now.plus(LIFE), &[]).unwrap();
    pass(&mut sim, 1_000);
    assert_eq!(calls(&mut sim, session), Some(Reason::StaleRevocations));
    replays(&mut sim);
}

/// What was handed on of it stops with it; what needs no list goes on.
#[test]
fn delegated_token_stops_with_its_listed_parent() {
    let mut sim = sim::home();
    let mut body = fresh(&mut sim, 1_000);
    (body.holder, body.depth_max) = (Some(sim::keys::public_of(&sim::keys::holder())), 2);
    let token = register(&mut sim, &body).unwrap();
    let now = sim.kernel.now();
    list(&mut sim, 1, now, &[]).unwrap();
    let mut child = sim.derived(token, Budget::standard(), LIFE / 2).unwrap();
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&sim::keys::holder(), &child), None));
    sim.commit();
    assert!(sim.acked(ticket).unwrap().is_ok(), "{:?}", sim.acked(ticket));
    let session = sim.seat(TokenBody::id_of(&child.to_bytes()));
    assert_eq!(calls(&mut sim, session), None);
    // Only a root says so.
    child.caveats = vec![TokenBody::fresh_within_caveat(LIFE)];
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire_by(&sim::keys::holder(), &child), None));
    sim.commit();
    assert_eq!(sim.acked(ticket).unwrap().as_ref().unwrap_err().reason(), Reason::BadToken);
    let plain = sim.lease("a0", 100, 100, LIFE);
    let other = sim.seat(plain);
    pass(&mut sim, 1_001);
    assert_eq!(calls(&mut sim, session), Some(Reason::StaleRevocations));
    assert_eq!(calls(&mut sim, other), None);
    replays(&mut sim);
}

/// Nothing, and more than any token lives, is no bound.
#[test]
fn a_bound_is_more_than_nothing() {
    let mut sim = sim::home();
    for within in [0, 90 * 86_400_000 + 1, u64::MAX] {
        let body = fresh(&mut sim, within);
        assert_eq!(register(&mut sim, &body), Err(Reason::BadToken));
    }
    let mut body = fresh(&mut sim, 5);
    body.caveats.push(TokenBody::fresh_within_caveat(6));
    assert_eq!(register(&mut sim, &body), Err(Reason::UnknownAuthority));
    let by = TokenBody::renew_by_caveat(body.not_before.plus(5));
    body.caveats = vec![TokenBody::fresh_within_caveat(6), by.clone()];
    assert_eq!(register(&mut sim, &body), Err(Reason::UnknownAuthority), "out of order");
    body.caveats.swap(0, 1);
    assert!(register(&mut sim, &body).is_ok());
}
