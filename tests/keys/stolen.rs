//! Whoever steals the operator's key has the home until its owner brings the recovery key.

use std::fs;
use syscap::format::{
    Control, ControlBody, Freeze, KeyChange, PolicyChange, RecordKind, Revocation, Role, RoleSet,
    Seq, TOKEN_CONTEXT, Token, TokenBody, ToolsChange, ToolsHash, preimage,
};
use syscap::kernel::object_of;
use syscap::keys::{KeyFile, KeyUse, Rotation, SecretKey, alone};
use syscap::policy::WithinToken;
use syscap::prelude::*;
use syscap::{Beside, Error, Options};

use crate::keys::sealed::reason;
use crate::keys::world::{World, key, token};

/// The thief's own keys, one a role.
struct Thief([SecretKey; 5]);

impl Thief {
    fn key(&self, role: Role) -> &SecretKey {
        self.0.iter().find(|key| key.key_use() == KeyUse::Role(role)).unwrap()
    }

    fn signs<B: ControlBody>(&self, world: &World, role: Role, body: &B) -> Control {
        let key = self.key(role);
        world.log().sign(body, &key.public_key(), |message| Ok(key.sign(message))).unwrap()
    }
}

/// Gives every role the thief's key alone, as the operator whose key was stolen.
fn steal(world: &World, rt: &Runtime) -> Thief {
    let thief = Thief(Role::IN_USE.map(|role| key(role).1));
    let stolen = world.operator();
    // The operator's own comes last: until then it signs.
    for role in Role::IN_USE {
        let proof = thief.key(role).possession(&rt.id(), role);
        world.put(rt, &alone(&world.set(role), proof).unwrap(), &stolen);
    }
    for role in Role::IN_USE {
        assert_eq!(world.set(role).keys().collect::<Vec<_>>(), [thief.key(role).public_key()]);
    }
    thief
}

/// A token that a key issues, wherever it is.
fn issued_by(world: &World, rt: &Runtime, model: TokenId, issuer: &SecretKey) -> Vec<u8> {
    let mut body: TokenBody = rt.look(|kernel| kernel.token(&model).unwrap().body.clone()).unwrap();
    body.nonce = [9; 16];
    body.issuer = issuer.public_key();
    body.head = world.log().kernel().durable();
    let body = body.to_bytes();
    Token::wire(&body, &issuer.sign(&preimage(TOKEN_CONTEXT, &body)))
}

/// The owner gives a role a new key, by the recovery key; it alone signs from then on.
fn take_back(world: &World, rt: &Runtime, role: Role, cut_off: Option<Seq>) {
    let path = world.dir.path().join("recovery.key");
    let recovery = KeyFile::read_as(&path, KeyUse::Recovery).unwrap().open().unwrap();
    let rotation = Rotation::begin(&world.keys(), role, || Ok(key(role).0)).unwrap();
    let proof = rotation.next().open().unwrap().possession(&rt.id(), role);
    let change = KeyChange { cut_off, ..alone(&world.set(role), proof).unwrap() };
    world.put(rt, &change, &recovery);
    rotation.finish().unwrap();
}

/// A thief who has replaced every key loses them all to whoever has the recovery key: from then on
/// the thief's keys sign nothing, what was issued by them is over, and the log is sound.
#[test]
fn recovery_key_takes_the_home_back_from_a_thief() {
    let world = World::new();
    let elsewhere = world.dir.path().join("recovery.key");
    fs::rename(KeyUse::Recovery.path(&world.keys()), &elsewhere).unwrap();
    let rt = world.open();
    let mine = token(&rt);
    let cut_off = rt.durable().unwrap().seq;
    let thief = steal(&world, &rt);
    // The owner's keys sign nothing any more, and the thief issues tokens.
    assert!(matches!(rt.revoke(mine), Err(Error::Signer(_))));
    let theirs = issued_by(&world, &rt, mine, thief.key(Role::Issuer));
    let theirs = rt.register(&theirs).unwrap();
    assert!(world.writes(&rt, theirs, "stolen.txt"));
    rt.close().unwrap();

    // With the stale keys the home still opens: calls go on.
    let rt = world.open();
    assert!(world.writes(&rt, mine, "goes on.txt"));
    take_back(&world, &rt, Role::Operator, None);
    take_back(&world, &rt, Role::Issuer, Some(cut_off));
    for role in [Role::Policy, Role::Revoker, Role::Approver] {
        take_back(&world, &rt, role, None);
    }
    let before = world.records().len();
    let freeze = Freeze::all();
    let refused = |kind: RecordKind, control: Control, beside: Beside| {
        assert_eq!(reason(rt.submit_with(kind, control, &beside)), Reason::BadSignature, "{kind}");
    };
    let revoke = Revocation::subtree(mine);
    refused(RecordKind::Revoke, thief.signs(&world, Role::Revoker, &revoke), Beside::Nothing);
    refused(RecordKind::Freeze, thief.signs(&world, Role::Revoker, &freeze), Beside::Nothing);
    let policy = object_of(&WithinToken);
    let change = PolicyChange { policy: policy.hash(), shadow: None };
    let document = Beside::Policy(Box::new(policy));
    refused(RecordKind::Policy, thief.signs(&world, Role::Policy, &change), document);
    let tools = ToolsChange { tools: ToolsHash::from_bytes([1; 32]) };
    refused(RecordKind::Tools, thief.signs(&world, Role::Operator, &tools), Beside::OwnTools);
    for role in Role::IN_USE {
        let proof = thief.key(role).possession(&rt.id(), role);
        let change = alone(&world.set(role), proof).unwrap();
        refused(RecordKind::Key, thief.signs(&world, Role::Operator, &change), Beside::Nothing);
    }
    let again = issued_by(&world, &rt, mine, thief.key(Role::Issuer));
    assert_eq!(reason(rt.register(&again)), Reason::WrongIssuer);
    // What the thief issued is over; what the owner issued is not.
    assert!(!world.writes(&rt, theirs, "late.txt"));
    assert!(world.writes(&rt, mine, "mine.txt"));
    rt.revoke(mine).unwrap();
    token(&rt);
    rt.set_policy(WithinToken).unwrap();
    assert!(world.records().len() > before);
    rt.close().unwrap();
    world.is_sound();
    Runtime::open(&world.home).unwrap().close().unwrap();
}

/// The recovery key gives roles other keys, and does nothing else; no key of a role passes for it.
#[test]
fn the_recovery_key_changes_keys_and_nothing_else() {
    let world = World::new();
    let rt = world.open();
    let mine = token(&rt);
    let path = KeyUse::Recovery.path(&world.keys());
    let recovery = KeyFile::read(&path).unwrap().open().unwrap();
    let by = |key: &SecretKey, sets: &RoleSet| {
        let role = sets.role;
        let proof = crate::keys::world::key(role).1.possession(&rt.id(), role);
        world.change(&alone(sets, proof).unwrap(), key)
    };
    let sign = |message: &[u8]| Ok(recovery.sign(message));
    let revoke = Revocation::subtree(mine);
    let control = world.log().sign(&revoke, &recovery.public_key(), sign).unwrap();
    assert_eq!(reason(rt.submit(RecordKind::Revoke, control)), Reason::BadSignature);
    let set = world.set(Role::Issuer);
    // Beside another signature it is no recovery: the other has no right to it.
    let mut two = by(&recovery, &set);
    let other = by(&key(Role::Operator).1, &set);
    two.signatures = [two.signatures, other.signatures].concat();
    two.signatures.sort_by_key(|signed| signed.key);
    assert_eq!(reason(rt.submit(RecordKind::Key, two)), Reason::BadSignature);
    let stranger = crate::keys::world::key(Role::Operator).1;
    assert_eq!(reason(rt.submit(RecordKind::Key, by(&stranger, &set))), Reason::BadSignature);
    rt.submit(RecordKind::Key, by(&recovery, &set)).unwrap();
    rt.close().unwrap();
    // A home that was made without one has none.
    let none = World::with(Options::new().no_recovery());
    let rt = none.open();
    let proof = key(Role::Issuer).1.possession(&rt.id(), Role::Issuer);
    let change = alone(&none.set(Role::Issuer), proof).unwrap();
    let control = none.change(&change, &recovery);
    assert_eq!(reason(rt.submit(RecordKind::Key, control)), Reason::BadSignature);
    rt.close().unwrap();
    none.is_sound();
    world.is_sound();
}
