//! Homes that somebody changed who has no keys: nothing of them is believed.

mod heads;
mod world;

use std::fs;
use syscap::format::{
    Body, CONTROL_CONTEXT, Checkpoint, Control, ControlBody, Head, HomeId, Issue, KeyChange,
    Object, ObjectKind, POSSESSION_CONTEXT, PolicyChange, Possession, PublicKey, RecordKind,
    Revocation, Role, RoleSet, Seq, Signature, Signed, SignedEvent, Token, TokenBody, possession,
    preimage,
};
use syscap::kernel::{Foreign, Forgery, Halt, object_of};
use syscap::prelude::*;
use syscap::verify::{Fault, Soundness};

use ed25519_dalek::{Signer as _, SigningKey};

use world::{World, grant, head_of, object, replace, rows};

const NOBODY: Signature = Signature::from_bytes([0; 64]);

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).unwrap()
}

/// The key of a role, as the log shows it.
fn key_of(world: &World, role: Role) -> PublicKey {
    let Body::Genesis(genesis) = &world.records()[0].body else { panic!("genesis") };
    genesis.roles.set(role).unwrap().keys().next().unwrap()
}

fn home_id(world: &World) -> HomeId {
    HomeId::from_bytes(*syscap::format::leaf(&rows(&world.home)[0]).as_bytes())
}

/// The body of the world's own token.
fn body_of(world: &World) -> TokenBody {
    let wire: Vec<u8> = rusqlite::Connection::open(world.home.join("home.db"))
        .unwrap()
        .query_row("SELECT body FROM objects WHERE kind = 1", [], |row| row.get(0))
        .unwrap();
    Token::read(&wire).unwrap().body().clone()
}

/// An `issue` record and its object, for a token that nobody signed.
fn forged_token(world: &World, change: impl FnOnce(&mut TokenBody)) -> (Body, Object) {
    let mut body = body_of(world);
    body.nonce = [9; 16];
    body.head = Some(head_of(&world.home));
    change(&mut body);
    let bytes = body.to_bytes();
    let token = TokenBody::id_of(&bytes);
    let issue = Issue { token, issuer: body.issuer, parent: body.parent, agent: body.agent };
    let wire = Token::wire(&bytes, &NOBODY);
    (Body::Issue(Box::new(issue)), object(ObjectKind::Token, *token.as_bytes(), wire))
}

fn signed_by(key: PublicKey, head: Head, body: Vec<u8>, signature: Signature) -> SignedEvent {
    SignedEvent { control: Control::by_one(head, body, Signed { key, counter: 99, signature }) }
}

fn call(session: &Session, path: &str) {
    session.call("fs.write", args! { "path": path, "text": "x" }).unwrap().text().unwrap();
}

/// SQL inserts of a token with a signature of zeros, keys elsewhere: it read another agent's file.
#[test]
fn a_token_that_nobody_signed_opens_no_home() {
    let world = World::new(|_, session, _| call(session, "secret.txt"));
    let bob = AgentId::new("bob").unwrap();
    let (issue, wire) = forged_token(&world, |body| body.agent = bob.clone());
    let at = world.append(vec![issue], &[wire]);
    let forged = Halt::Forged { seq: Seq::new(at), why: Forgery::Signature };
    assert_eq!(world.halt(), forged);
    assert!(world.faults().contains(&(at, Fault::BadSignature)));
    // Nor one by a key that is nobody's.
    let world = World::new(|_, _, _| {});
    let mallory = SigningKey::from_bytes(&[66; 32]);
    let mut body = body_of(&world);
    (body.issuer, body.head) = (public(&mallory), Some(head_of(&world.home)));
    let bytes = body.to_bytes();
    let token = TokenBody::id_of(&bytes);
    let signature = mallory.sign(&preimage(syscap::format::TOKEN_CONTEXT, &bytes));
    let wire = Token::wire(&bytes, &Signature::from_bytes(signature.to_bytes()));
    let issue = Issue { token, issuer: body.issuer, parent: None, agent: body.agent };
    let wire = object(ObjectKind::Token, *token.as_bytes(), wire);
    let at = world.append(vec![Body::Issue(Box::new(issue))], &[wire]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Role });
}

/// A record that says otherwise of a token than the token.
#[test]
fn an_issue_that_says_otherwise_than_its_token_opens_no_home() {
    let world = World::new(|_, _, _| {});
    let place = places(&world, RecordKind::Issue)[0];
    let whole = rows(&world.home);
    let changes: [&dyn Fn(&mut Issue); 3] = [
        &|issue| issue.agent = AgentId::new("bob").unwrap(),
        &|issue| issue.parent = Some(issue.token),
        &|issue| issue.issuer = public(&SigningKey::from_bytes(&[66; 32])),
    ];
    for change in changes {
        world.rewrite(|records| match &mut records[place].body {
            Body::Issue(issue) => change(issue),
            other => panic!("{:?}", other.kind()),
        });
        let forged = Halt::Forged { seq: Seq::new(place as u64), why: Forgery::Form };
        assert_eq!(world.halt(), forged);
        replace(&world.home, &whole);
    }
}

/// The same with every signed event.
#[test]
fn an_event_that_nobody_signed_opens_no_home() {
    let other = object_of(&syscap::policy::WithinToken);
    let policy = PolicyChange { policy: other.hash(), shadow: None }.to_bytes();
    let world = World::new(|_, _, _| {});
    let head = head_of(&world.home);
    let event = signed_by(key_of(&world, Role::Policy), head, policy, NOBODY);
    let named = object(ObjectKind::Policy, *other.hash().as_bytes(), other.to_bytes());
    let at = world.append(vec![Body::Policy(Box::new(event))], &[named]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Signature });
    assert!(world.faults().contains(&(at, Fault::BadSignature)));

    let world = World::new(|_, _, _| {});
    let (head, revoke) = (head_of(&world.home), Revocation::subtree(world.token).to_bytes());
    let event = signed_by(key_of(&world, Role::Operator), head, revoke.clone(), NOBODY);
    let at = world.append(vec![Body::Revoke(Box::new(event))], &[]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Role });

    // Signed, but over a head that is none of this log's.
    let world = World::new(|_, _, _| {});
    let (home, keys) = (home_id(&world), world.keys());
    let key = key_of(&world, Role::Revoker);
    let head = Head { leaf: syscap::format::Leaf::from_bytes([1; 32]), ..head_of(&world.home) };
    let message = Control::message(&home, &head, &key, 99, RecordKind::Revoke, &revoke);
    let signature =
        syscap::Signer::sign(&keys, Role::Revoker, &preimage(CONTROL_CONTEXT, &message));
    let event = signed_by(key, head, revoke, signature.unwrap());
    let at = world.append(vec![Body::Revoke(Box::new(event))], &[]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Head });
    assert!(world.faults().contains(&(at, Fault::NamedHead)));
}

/// A key that somebody gives to a role: by nobody's signature, and without its proof.
#[test]
fn a_key_that_nobody_gave_opens_no_home() {
    let mallory = SigningKey::from_bytes(&[66; 32]);
    let change = |proof: Signature| {
        let set = RoleSet::any_of(Role::Issuer, [public(&mallory)]);
        let proofs = vec![Possession { key: public(&mallory), signature: proof }];
        KeyChange { set, proofs, cut_off: None }.to_bytes()
    };
    let proved = |home: &HomeId| {
        let message = possession(home, Role::Issuer, &public(&mallory));
        let signature = mallory.sign(&preimage(POSSESSION_CONTEXT, &message));
        Signature::from_bytes(signature.to_bytes())
    };
    let world = World::new(|_, _, _| {});
    let (home, head) = (home_id(&world), head_of(&world.home));
    let body = change(proved(&home));
    let event = signed_by(key_of(&world, Role::Operator), head, body, NOBODY);
    let at = world.append(vec![Body::Key(Box::new(event))], &[]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Signature });

    // By the operator, for a key of which nobody shows that it is held.
    let world = World::new(|_, _, _| {});
    let (home, head) = (home_id(&world), head_of(&world.home));
    let (key, body) = (key_of(&world, Role::Operator), change(NOBODY));
    let message = Control::message(&home, &head, &key, 99, RecordKind::Key, &body);
    let signature =
        syscap::Signer::sign(&world.keys(), Role::Operator, &preimage(CONTROL_CONTEXT, &message));
    let event = signed_by(key, head, body, signature.unwrap());
    let at = world.append(vec![Body::Key(Box::new(event))], &[]);
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(at), why: Forgery::Possession });
    assert_eq!(world.faults()[0].1, Fault::KeySet);
}

/// Another home in the place of this one: sound by itself, and with the same public keys.
#[test]
fn another_home_is_not_this_one() {
    let (world, other) = (World::new(|_, _, _| {}), World::new(|_, _, _| {}));
    fs::copy(other.home.join("home.db"), world.home.join("home.db")).unwrap();
    assert_eq!(world.halt(), Halt::Foreign(Foreign::Home));
    assert_eq!(world.faults(), [(0, Fault::Foreign)]);
    // Without the trust file the keys of who would sign for it still tell.
    match syscap::Options::new().signer(world.keys()).open(&world.home) {
        Err(Error::Halted(Halt::Foreign(Foreign::Signer { .. }))) => {}
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it opens"),
    }
}

/// One intent and its outcome taken out, the rest renumbered and chained anew; keys and trust file
/// elsewhere.
#[test]
fn a_call_that_was_cut_out_is_missed() {
    let world = World::new(|rt, session, _| {
        call(session, "one.txt");
        call(session, "two.txt");
        let token = rt.issue(grant("bob")).unwrap();
        rt.revoke(token).unwrap();
        call(session, "three.txt");
    });
    assert_eq!(world.verify().verdict(), Soundness::Sound);
    let intents: Vec<usize> = (0..)
        .zip(world.records())
        .filter(|(_, record)| record.body.kind() == RecordKind::Intent)
        .map(|(place, _)| place)
        .collect();
    let cut = |place: usize| {
        move |records: &mut Vec<_>| drop(records.drain(place..place + 2).collect::<Vec<_>>())
    };
    let whole = rows(&world.home);
    for place in &intents[..2] {
        world.rewrite(|records| {
            cut(*place)(records);
            records.iter_mut().for_each(|record| shift(&mut record.body, *place as u64));
        });
        let issue = places(&world, RecordKind::Issue)[1] as u64;
        assert!(world.faults().contains(&(issue, Fault::NamedHead)), "{:?}", world.faults());
        let forged = Halt::Forged { seq: Seq::new(issue), why: Forgery::Head };
        assert_eq!(world.halt(), forged);
        replace(&world.home, &whole);
        assert_eq!(world.verify().verdict(), Soundness::Sound);
    }
    // Nor is one that was changed, with its place kept.
    world.rewrite(|records| records[intents[1]].time = records[intents[1]].time.plus(1));
    let issue = places(&world, RecordKind::Issue)[1] as u64;
    assert!(world.faults().contains(&(issue, Fault::NamedHead)), "{:?}", world.faults());
    assert_eq!(world.halt(), Halt::Forged { seq: Seq::new(issue), why: Forgery::Head });
    replace(&world.home, &whole);
    // What stays open: all after the last head that somebody named.
    world.rewrite(cut(intents[2]));
    assert_eq!(world.verify().verdict(), Soundness::Sound);
}

fn places(world: &World, kind: RecordKind) -> Vec<usize> {
    let records = world.records();
    (0..records.len()).filter(|place| records[*place].body.kind() == kind).collect()
}

/// Positions above one that was cut out, two fewer.
fn shift(body: &mut Body, place: u64) {
    let moved = |seq: &mut Seq| {
        if seq.get() > place {
            *seq = Seq::new(seq.get() - 2);
        }
    };
    match body {
        Body::Outcome(outcome) => moved(&mut outcome.intent),
        Body::Intent(_) | Body::Session(_) => {}
        _ => {}
    }
}

/// What newer software writes is refused by its name, and nothing is called.
#[test]
fn reserved_record_kind_is_refused_by_name() {
    let world = World::new(|_, session, _| call(session, "a.txt"));
    let checkpoint = Checkpoint { size: 7, root: [1; 32], state: None, note: vec![1] };
    let at = Seq::new(world.append(vec![Body::Checkpoint(Box::new(checkpoint))], &[]));
    assert_eq!(world.halt(), Halt::Reserved { seq: at, name: "checkpoint" });
    let report = world.verify();
    assert_eq!((report.verdict(), report.records), (Soundness::Newer, at.get()));
    assert_eq!(report.newer.map(|newer| newer.seq), Some(at));

    type Change = (&'static str, RecordKind, fn(&mut Body));
    let changes: [Change; 1] = [("principal", RecordKind::Session, |body| {
        if let Body::Session(session) = body {
            session.principal = Some(syscap::format::TextHash::from_bytes([1; 32]));
        }
    })];
    for (name, kind, change) in changes {
        let world = World::new(|_, session, _| call(session, "a.txt"));
        let place = places(&world, kind)[0];
        world.rewrite(|records| change(&mut records[place].body));
        assert_eq!(world.halt(), Halt::Reserved { seq: Seq::new(place as u64), name });
    }
}

/// What newer software signs is refused by its name as well.
#[test]
fn reserved_event_kind_is_refused_by_name() {
    let event_of = |world: &World, kind: RecordKind, role: Role, body: Vec<u8>| {
        let (home, head, key) = (home_id(world), head_of(&world.home), key_of(world, role));
        let message = Control::message(&home, &head, &key, 99, kind, &body);
        let signature =
            syscap::Signer::sign(&world.keys(), role, &preimage(CONTROL_CONTEXT, &message));
        Box::new(signed_by(key, head, body, signature.unwrap()))
    };
    let refused = |world: &World, body: Body, objects: &[Object], name: &'static str| {
        let at = Seq::new(world.append(vec![body], objects));
        assert_eq!(world.halt(), Halt::Reserved { seq: at, name });
    };
    let world = World::new(|_, _, _| {});
    let set = RoleSet::any_of(Role::Publisher, [public(&SigningKey::from_bytes(&[66; 32]))]);
    let change = KeyChange { set, proofs: Vec::new(), cut_off: None };
    let event = event_of(&world, RecordKind::Key, Role::Operator, change.to_bytes());
    refused(&world, Body::Key(event), &[], "publisher");
}

/// A token that renews what it may not opens no home: another agent's, or one that was revoked.
#[test]
fn a_token_that_renews_what_it_may_not_opens_no_home() {
    let forge = |world: &World, change: &dyn Fn(&mut TokenBody)| {
        let mut body = body_of(world);
        (body.nonce, body.head, body.renews) =
            ([9; 16], Some(head_of(&world.home)), Some(world.token));
        change(&mut body);
        let bytes = body.to_bytes();
        let token = TokenBody::id_of(&bytes);
        let message = preimage(syscap::format::TOKEN_CONTEXT, &bytes);
        let signature = syscap::Signer::sign(&world.keys(), Role::Issuer, &message).unwrap();
        let wire = Token::wire(&bytes, &signature);
        let wire = object(ObjectKind::Token, *token.as_bytes(), wire);
        let issue = Issue { token, issuer: body.issuer, parent: None, agent: body.agent };
        world.append(vec![Body::Issue(Box::new(issue))], &[wire]);
        world.halt()
    };
    let renewal = |halt| matches!(halt, Halt::Forged { why: Forgery::Renewal, .. });
    let world = World::new(|_, _, _| {});
    assert!(renewal(forge(&world, &|body| body.agent = AgentId::new("another").unwrap())));
    let world = World::new(|_, _, _| {});
    assert!(renewal(forge(&world, &|body| body.renews = Some(TokenId::from_bytes([7; 32])))));
    let world = World::new(|rt, _, token| assert!(rt.revoke(token).is_ok()));
    assert!(renewal(forge(&world, &|_| ())));
}

/// A home from before the formats were settled is refused with a word that says so.
#[test]
fn a_home_from_before_is_refused_with_a_clear_word() {
    let world = World::new(|_, _, _| {});
    let mut bytes = rows(&world.home);
    assert_eq!(bytes[0][1..3], [0, 2], "key 0, version 2");
    bytes[0][2] = 1;
    replace(&world.home, &bytes);
    assert_eq!(world.halt(), Halt::TooOld { form: 1 });
    bytes[0][2] = 9;
    replace(&world.home, &bytes);
    let newer = Halt::UnknownVersion { seq: Seq::GENESIS, kind: RecordKind::Genesis, version: 9 };
    assert_eq!(world.halt(), newer);
}
