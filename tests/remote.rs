//! Holders who are elsewhere: nothing but their signature over just that opens a session, or makes
//! a call.

use ed25519_dalek::{Signer as _, SigningKey};
use host_support::new_home;
use syscap::ProvedSession;
use syscap::format::{
    Amounts, HomeId, MapBuilder, Opening, Proof, PublicKey, Seq, Signature, preimage,
};
use syscap::prelude::*;

struct Far {
    key: SigningKey,
}

impl Far {
    fn new(seed: u8) -> Self {
        Self { key: SigningKey::from_bytes(&[seed; 32]) }
    }

    fn public(&self) -> PublicKey {
        PublicKey::new(self.key.verifying_key().to_bytes()).unwrap()
    }

    fn sign(&self, context: &[u8], message: &[u8]) -> Signature {
        Signature::from_bytes(self.key.sign(&preimage(context, message)).to_bytes())
    }

    fn opening(&self, home: &HomeId, token: TokenId, challenge: [u8; 32]) -> Opening {
        let message = Opening::message(home, &token, &challenge);
        Opening { challenge, signature: self.sign(Opening::CONTEXT, &message) }
    }

    fn proof(&self, of: (&HomeId, Seq, &[u8; 32]), counter: u64, envelope: &[u8]) -> Proof {
        let (home, session, challenge) = of;
        let message = Proof::message(home, session, challenge, counter, envelope);
        Proof { counter, signature: self.sign(Proof::CONTEXT, &message) }
    }
}

struct World {
    _folder: tempfile::TempDir,
    rt: Runtime,
    far: Far,
    token: TokenId,
}

fn world() -> World {
    let folder = tempfile::tempdir().unwrap();
    let rt = Runtime::create(folder.path().join("home")).unwrap();
    let far = Far::new(7);
    let grant = Grant::to("far").tools(["echo"]).delegable(1).held_by(far.public());
    let token = rt.issue(grant).unwrap();
    World { _folder: folder, rt, far, token }
}

impl World {
    fn opened(&self) -> (ProvedSession, [u8; 32]) {
        let challenge = self.rt.challenge().unwrap();
        let opening = self.far.opening(&self.rt.id(), self.token, challenge);
        (self.rt.open_proved("far", self.token, opening).unwrap(), challenge)
    }

    fn refused(&self, token: TokenId, opening: Opening) -> Reason {
        match self.rt.open_proved("far", token, opening) {
            Err(Error::Refused(refused)) => refused.reason(),
            Err(error) => panic!("{error}"),
            Ok(session) => panic!("session {} is open", session.number()),
        }
    }
}

fn echo(value: &str) -> Vec<u8> {
    let args = MapBuilder::new().text("value", value).finish();
    MapBuilder::new().text("tool_id", "echo").item("args", args.item()).finish().into_bytes()
}

fn reason(session: &ProvedSession, envelope: &[u8], proof: Option<Proof>) -> Option<Reason> {
    session.call(envelope.to_vec(), proof).unwrap().reason()
}

#[test]
fn only_its_holder_opens_a_session_over_a_challenge_of_the_hosts() {
    let world = world();
    let World { rt, far, token, .. } = &world;
    let home = rt.id();
    // By another key; by the holder over a challenge that was never drawn, for another home, or for
    // another token.
    let stranger = Far::new(8);
    let other = rt.issue(Grant::to("far").tools(["echo"])).unwrap();
    let drawn = || rt.challenge().unwrap();
    for opening in [
        stranger.opening(&home, *token, drawn()),
        far.opening(&home, *token, [1; 32]),
        far.opening(&HomeId::from_bytes([9; 32]), *token, drawn()),
        far.opening(&home, other, drawn()),
        Opening { challenge: drawn(), ..far.opening(&home, *token, drawn()) },
    ] {
        assert_eq!(world.refused(*token, opening), Reason::BadProof);
    }
    // A token that nobody holds elsewhere; one of another agent.
    assert_eq!(world.refused(other, far.opening(&home, other, drawn())), Reason::BadProof);
    let strange = rt.issue(Grant::to("b").tools(["echo"]).delegable(1).held_by(far.public()));
    let strange = strange.unwrap();
    assert_eq!(world.refused(strange, far.opening(&home, strange, drawn())), Reason::NotBound);
    // Who has read an opening, good or bad, can't use it again.
    let opening = far.opening(&home, *token, drawn());
    let session = rt.open_proved("far", *token, opening).unwrap();
    assert_eq!(world.refused(*token, opening), Reason::BadProof);
    session.close().unwrap();
    assert_eq!(world.refused(*token, opening), Reason::BadProof);
}

#[test]
fn a_call_needs_its_holders_proof_over_just_that() {
    let world = world();
    let (home, (session, challenge)) = (world.rt.id(), world.opened());
    let (other, second) = world.opened();
    let of = (&home, session.number(), &challenge);
    let (hello, bye) = (echo("hello"), echo("bye"));
    let far = &world.far;
    let elsewhere = (&HomeId::from_bytes([9; 32]), session.number(), &challenge);
    let bad = Some(Reason::BadProof);
    for proof in [
        None,
        Some(Far::new(8).proof(of, 5, &hello)),
        Some(far.proof(of, 5, &bye)),
        Some(far.proof((&home, other.number(), &challenge), 5, &hello)),
        Some(far.proof((&home, session.number(), &second), 5, &hello)),
        Some(far.proof(elsewhere, 5, &hello)),
        Some(Proof { counter: 6, ..far.proof(of, 5, &hello) }),
        // No counter is below the first.
        Some(far.proof(of, 0, &hello)),
    ] {
        assert_eq!(reason(&session, &hello, proof), bad);
    }
    // None of them has used a counter up.
    assert_eq!(reason(&session, &hello, Some(far.proof(of, 1, &hello))), None);
}

/// What was sent once is not sent again by whoever has read it: whatever came of it.
#[test]
fn used_proof_is_refused_again() {
    let world = world();
    let (home, (session, challenge)) = (world.rt.id(), world.opened());
    let of = (&home, session.number(), &challenge);
    let (hello, unknown) = (echo("hello"), b"\xa0".to_vec());
    let first = Some(world.far.proof(of, 3, &hello));
    assert_eq!(reason(&session, &hello, first), None);
    assert_eq!(reason(&session, &hello, first), Some(Reason::BadProof));
    // An earlier one that was held back.
    let held = Some(world.far.proof(of, 2, &hello));
    assert_eq!(reason(&session, &hello, held), Some(Reason::BadProof));
    // One that was refused: what is refused now might be let through later.
    let refused = Some(world.far.proof(of, 4, &unknown));
    assert_eq!(reason(&session, &unknown, refused), Some(Reason::MissingField));
    let frozen = Some(world.far.proof(of, 5, &hello));
    world.rt.freeze(&syscap::format::Freeze::all()).unwrap();
    assert_eq!(reason(&session, &hello, frozen), Some(Reason::Frozen));
    world.rt.freeze(&syscap::format::Freeze::all().thaw()).unwrap();
    assert_eq!(reason(&session, &hello, frozen), Some(Reason::BadProof));
    let last = Some(world.far.proof(of, u64::MAX, &hello));
    assert_eq!(reason(&session, &hello, last), None);
    assert_eq!(reason(&session, &hello, last), Some(Reason::BadProof));
}

/// A token that was handed on: its parent's wire and holder open the parent alone.
#[test]
fn a_parent_opens_nothing_of_its_childs() {
    let world = world();
    let part = Grant::to("far/part").tools(["echo"]);
    let team = world.rt.issue(Grant::to("far").tools(["echo"]).delegable(1)).unwrap();
    let child = world.rt.attenuate(team, part).unwrap();
    let opening = world.far.opening(&world.rt.id(), child, world.rt.challenge().unwrap());
    let refused = world.rt.open_proved("far/part", child, opening).map(|session| session.number());
    assert!(matches!(refused, Err(Error::Refused(why)) if why.reason() == Reason::BadProof));
}

/// Challenges that nobody uses are forgotten, the oldest first; who draws many stops nobody for
/// longer than that.
#[test]
fn challenges_are_bounded() {
    let world = world();
    let first = world.rt.challenge().unwrap();
    let kept: Vec<_> = (0..1_024).map(|_| world.rt.challenge().unwrap()).collect();
    let home = world.rt.id();
    let late = world.far.opening(&home, world.token, first);
    assert_eq!(world.refused(world.token, late), Reason::BadProof);
    let opening = world.far.opening(&home, world.token, kept[0]);
    assert!(world.rt.open_proved("far", world.token, opening).is_ok());
}

/// A session of the host's own takes no proof: none is taken for checked.
#[test]
fn connected_client_opens_no_remote_session() {
    let world = world();
    let (_folder, home) = new_home();
    Runtime::create(&home).unwrap().close().unwrap();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    assert!(matches!(attached.challenge(), Err(Error::NotHolder)));
    let opening = world.far.opening(&world.rt.id(), world.token, [0; 32]);
    let opened = attached.open_proved("far", world.token, opening).map(|one| one.number());
    assert!(matches!(opened, Err(Error::NotHolder)));
    attached.close().unwrap();
    holder.close().unwrap();
}

/// The proof comes before the envelope is read: whoever has only the session's number can't ask
/// what the token holds, and can't use up its calls.
#[test]
fn unproved_call_learns_and_pays_nothing() {
    let world = world();
    let (session, _) = world.opened();
    let left = || world.rt.look(|kernel| kernel.token(&world.token).unwrap().left).unwrap();
    let (before, known) = (left(), echo("x"));
    let no_tool = MapBuilder::new().text("tool_id", "none").finish().into_bytes();
    let not_granted = MapBuilder::new().text("tool_id", "fs.read").finish().into_bytes();
    let bad_args = MapBuilder::new().text("tool_id", "echo").uint("args", 1).finish().into_bytes();
    let empty = MapBuilder::new().finish().into_bytes();
    let mut told = Vec::new();
    // More than the refusals in a row that have records of their own.
    for envelope in
        [known, no_tool, not_granted, bad_args, empty, vec![0xff]].iter().cycle().take(40)
    {
        let result = session.call(envelope.clone(), None).unwrap();
        assert_eq!(result.reason(), Some(Reason::BadProof));
        assert_eq!(result.receipt().left, Amounts::ZERO);
        assert_eq!((result.tool(), result.provenance()), (None, None));
        told.push(result.delivered().clone());
    }
    assert!(told.iter().all(|one| *one == told[0]), "each is told the same: {told:?}");
    assert!(told[0].item().get("allowed").is_none());
    assert_eq!(left(), before, "its holder pays nothing");
}
