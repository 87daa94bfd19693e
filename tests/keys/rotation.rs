//! Other keys in the place of those that there are: at every point where it can break off.

use std::fs;

use syscap::format::{Body, Freeze, FreezeChange, FreezeTarget, KeyChange, RecordKind, Role};
use syscap::kernel::{Foreign, Halt};
use syscap::keys::{KeyFile, KeyUse, Rotation, adding, alone, removing, replacing};
use syscap::policy::WithinToken;
use syscap::prelude::*;
use syscap::{Error, FileKeys, Signer as _, SignerError};

use crate::keys::world::{World, copy_of, key, token};

/// The role does what it is there for.
fn works(rt: &Runtime, role: Role) -> Result<(), Error> {
    match role {
        Role::Issuer => rt.issue(Grant::to("a").tools(["echo"])).map(drop),
        Role::Policy => rt.set_policy(WithinToken).map(drop),
        Role::Revoker => {
            let (target, name) = (FreezeTarget::Agent, Box::from("nobody"));
            let freeze = Freeze { target, name, change: FreezeChange::Freeze };
            rt.freeze(&freeze).map(drop)
        }
        Role::Operator => {
            // Takes off nothing: a change all the same, for the operator to sign.
            rt.forget(&[]).map(drop)
        }
        _ => Ok(()),
    }
}

fn change_of(world: &World, role: Role, next: &KeyFile) -> KeyChange {
    let set = world.set(role);
    let home = world.log().kernel().home();
    let proof = next.open().unwrap().possession(&home, role);
    replacing(&set, &[world.file(role).public_key()], proof).unwrap()
}

fn begin(world: &World, role: Role) -> Rotation {
    Rotation::begin(&world.keys(), role, || Ok(key(role).0)).unwrap()
}

/// How far a rotation came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Broke {
    /// Half of the new file was written.
    Writing,
    /// The new file is there, and not on record.
    Written,
    /// It is on record, and has not taken the old one's place.
    Recorded,
    /// It has.
    Finished,
}

/// Wherever a rotation breaks off, the home opens, the role signs with the key on record, and the
/// next rotation goes on: in the end there is one file, and it is that of the key on record.
#[test]
fn a_rotation_may_break_off_anywhere() {
    use Broke::{Finished, Recorded, Writing, Written};
    for role in Role::IN_USE {
        for broke in [Writing, Written, Recorded, Finished] {
            let world = World::new();
            let old = world.file(role).public_key();
            let part = world.path(role).with_extension("key.part");
            match broke {
                Writing => fs::write(&part, b"half a ke").unwrap(),
                _ => {
                    let rotation = begin(&world, role);
                    if broke != Written {
                        let change = change_of(&world, role, rotation.next());
                        let rt = world.open();
                        world.put(&rt, &change, &world.operator());
                        rt.close().unwrap();
                    }
                    if broke == Finished {
                        rotation.finish().unwrap();
                    }
                }
            }
            let on_record: Vec<_> = world.set(role).keys().collect();
            assert_eq!(on_record.contains(&old), matches!(broke, Writing | Written));
            let rt = world.open();
            works(&rt, role).unwrap_or_else(|error| panic!("{role}, {broke:?}: {error}"));
            rt.close().unwrap();
            // The next one takes up what was left.
            let left = Rotation::left(&world.keys(), role).unwrap();
            assert_eq!(left.is_some(), matches!(broke, Written | Recorded), "{broke:?}");
            let rotation = begin(&world, role);
            if let Some(left) = &left {
                assert_eq!(rotation.next().public_key(), left.public_key());
            }
            if !world.set(role).holds(&rotation.next().public_key()) {
                let change = change_of(&world, role, rotation.next());
                let rt = world.open();
                let operator = FileKeys::open(&world.keys()).unwrap();
                operator.renew(world.log().kernel().roles());
                let log = world.log();
                let by = operator.public_key(Role::Operator).unwrap();
                let sign = |message: &[u8]| operator.sign(Role::Operator, message);
                rt.submit(RecordKind::Key, log.sign(&change, &by, sign).unwrap()).unwrap();
                rt.close().unwrap();
            }
            rotation.finish().unwrap();
            let file = world.file(role).public_key();
            assert_eq!(world.set(role).keys().collect::<Vec<_>>(), [file], "{role}, {broke:?}");
            assert_eq!(copy_of(&world.keys()).len(), 6, "nothing is left beside the keys");
            let rt = world.open();
            works(&rt, role).unwrap();
            rt.close().unwrap();
            world.is_sound();
        }
    }
}

/// A runtime that holds the home signs with the new key as soon as it is on record, whichever file
/// it lies in, and is not opened again for that.
#[test]
fn a_holder_finds_the_new_key() {
    for role in [Role::Issuer, Role::Revoker, Role::Policy] {
        let world = World::new();
        let rt = world.open();
        let rotation = begin(&world, role);
        let change = change_of(&world, role, rotation.next());
        world.put(&rt, &change, &world.operator());
        works(&rt, role).unwrap();
        rotation.finish().unwrap();
        works(&rt, role).unwrap();
        rt.close().unwrap();
        world.is_sound();
    }
}

/// A key that lies here and was replaced elsewhere opens the home and lets calls go on; it signs
/// nothing, and leaves no record of having tried.
#[test]
fn a_stale_key_opens_and_signs_nothing() {
    let world = World::new();
    let stale = copy_of(&world.keys());
    let rt = world.open();
    let worker = token(&rt);
    for role in [Role::Issuer, Role::Operator] {
        let rotation = begin(&world, role);
        let change = change_of(&world, role, rotation.next());
        world.put(&rt, &change, &world.operator());
        rotation.finish().unwrap();
    }
    rt.close().unwrap();
    stale.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
    let rt = world.open();
    assert!(world.writes(&rt, worker, "goes on.txt"));
    let before = world.records().len();
    for role in [Role::Issuer, Role::Operator] {
        match works(&rt, role) {
            Err(Error::Signer(why)) => assert_eq!(why, SignerError::NotOnRecord(role)),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(world.records().len(), before);
    rt.close().unwrap();
    world.is_sound();
}

/// A key that the role never had opens nothing: it would be another home's.
#[test]
fn a_key_that_never_was_on_record_is_foreign() {
    let world = World::new();
    fs::remove_file(world.path(Role::Issuer)).unwrap();
    let (file, _) = key(Role::Issuer);
    file.write_new(&world.path(Role::Issuer)).unwrap();
    match Runtime::open(&world.home).map(drop) {
        Err(Error::Halted(Halt::Foreign(Foreign::Signer { role, key }))) => {
            assert_eq!((role, key), (Role::Issuer, file.public_key()));
        }
        other => panic!("{other:?}"),
    }
}

/// Two that rotate at once would leave one of their keys behind: the second waits its turn.
#[test]
fn one_rotates_at_a_time() {
    let world = World::new();
    let first = begin(&world, Role::Issuer);
    let second = Rotation::begin(&world.keys(), Role::Policy, || Ok(key(Role::Policy).0));
    assert!(matches!(second.err(), Some(Error::KeysBusy(_))));
    drop(first);
    drop(begin(&world, Role::Policy));
    // A key of another role is not taken.
    let other = Rotation::begin(&world.keys(), Role::Revoker, || Ok(key(Role::Issuer).0));
    assert!(matches!(other.err(), Some(Error::Signer(SignerError::BadKey))));
    assert!(Rotation::left(&world.keys(), Role::Revoker).unwrap().is_none());
}

/// Keys are added with a proof, used, and removed; the last one stays.
#[test]
fn keys_come_and_go_by_the_operators_word() {
    let world = World::new();
    let rt = world.open();
    let (home, operator) = (rt.id(), world.operator());
    let (_, second) = key(Role::Operator);
    let set = world.set(Role::Operator);
    let proof = second.possession(&home, Role::Operator);
    assert!(adding(&set, operator.possession(&home, Role::Operator)).is_none(), "it has it");
    // A proof for another role is none.
    let wrong = adding(&set, second.possession(&home, Role::Issuer)).unwrap();
    let control = world.change(&wrong, &operator);
    assert_eq!(
        crate::keys::sealed::reason(rt.submit(RecordKind::Key, control)),
        Reason::BadSignature
    );
    world.put(&rt, &adding(&set, proof).unwrap(), &operator);
    // Either signs now, and takes the other's right away.
    let set = world.set(Role::Operator);
    assert_eq!(set.keys().count(), 2);
    world.put(&rt, &removing(&set, &operator.public_key()).unwrap(), &second);
    let set = world.set(Role::Operator);
    assert_eq!(set.keys().collect::<Vec<_>>(), [second.public_key()]);
    assert!(removing(&set, &second.public_key()).is_none(), "it is the last");
    assert!(removing(&set, &operator.public_key()).is_none(), "it is gone");
    let control = world.change(&KeyChange { cut_off: None, ..nothing(&world) }, &operator);
    assert_eq!(
        crate::keys::sealed::reason(rt.submit(RecordKind::Key, control)),
        Reason::BadSignature
    );
    rt.close().unwrap();
    world.is_sound();
}

fn nothing(world: &World) -> KeyChange {
    let set = world.set(Role::Issuer);
    let home = world.log().kernel().home();
    alone(&set, key(Role::Issuer).1.possession(&home, Role::Issuer)).unwrap()
}

/// A cut-off ends the tokens that the old key issued after a record, and no others: as calls show.
#[test]
fn a_cut_off_ends_exactly_what_was_issued_after_it() {
    let world = World::new();
    let rt = world.open();
    let before = token(&rt);
    let cut_off = rt.durable().unwrap().seq;
    let after = [token(&rt), token(&rt)];
    assert!(after.iter().all(|token| world.writes(&rt, *token, &format!("{token}.0"))));
    let rotation = begin(&world, Role::Issuer);
    let change = change_of(&world, Role::Issuer, rotation.next());
    let cut = KeyChange { cut_off: Some(cut_off), ..change };
    world.put(&rt, &cut, &world.operator());
    rotation.finish().unwrap();
    let new = token(&rt);
    let writes = |rt: &Runtime, token: TokenId, name: &str| world.writes(rt, token, name);
    for (n, token, lives) in
        [(1, before, true), (2, after[0], false), (3, after[1], false), (4, new, true)]
    {
        assert_eq!(writes(&rt, token, &format!("{n}.txt")), lives, "{n}");
    }
    rt.close().unwrap();
    // The same after the log was replayed.
    let rt = world.open();
    let revoked = |token| rt.look(|kernel| kernel.token(&token).unwrap().revoked).unwrap();
    assert_eq!([before, after[0], after[1], new].map(revoked), [false, true, true, false]);
    rt.close().unwrap();
    let keys = world.records().into_iter().filter(|r| matches!(r.body, Body::Key(_))).count();
    assert_eq!(keys, 1);
    world.is_sound();
}

/// A key that was sealed when it was made is sealed in its new place too.
#[test]
fn a_sealed_key_stays_sealed() {
    let world = World::sealed();
    let make = || {
        let key_use = KeyUse::Role(Role::Policy);
        let made = KeyFile::generate(key_use, &crate::keys::world::seal(), &syscap::SystemEntropy);
        made.map(|(file, _)| file)
    };
    let rotation = Rotation::begin(&world.keys(), Role::Policy, make).unwrap();
    let left = Rotation::left(&world.keys(), Role::Policy).unwrap().unwrap();
    assert!(left.is_sealed());
    let secret = rotation.next().unseal(&crate::keys::world::passphrase()).unwrap();
    let rt = world.open();
    let proof = secret.possession(&rt.id(), Role::Policy);
    let old = world.file(Role::Policy).public_key();
    let change = replacing(&world.set(Role::Policy), &[old], proof).unwrap();
    world.put(&rt, &change, &world.operator());
    rotation.finish().unwrap();
    assert!(world.file(Role::Policy).is_sealed());
    // Whoever holds the home knows of it, and still needs the person.
    let error = rt.set_policy(WithinToken).unwrap_err();
    let sealed = SignerError::Sealed(KeyUse::Role(Role::Policy));
    assert!(matches!(error, Error::Signer(why) if why == sealed));
    rt.close().unwrap();
    world.is_sound();
}

/// What a writer left that was killed goes with the next rotation, and with the next secret that is
/// set: the bytes may be a key's. What a process that lives writes stays.
#[test]
fn leftovers_of_killed_writers_are_swept() {
    let world = World::new();
    let own = std::process::id();
    // Beyond the greatest number of a process (pid_max, proc(5)).
    let left = |name: &str| world.keys().join(format!(".{name}.4194999-0.part"));
    let lives = world.keys().join(format!(".operator.key.{own}-7.part"));
    let others = world.keys().join(".notes.part");
    for path in [&left("operator.key.part"), &left("secrets.key"), &lives, &others] {
        fs::write(path, "a seed").unwrap();
    }
    drop(begin(&world, Role::Issuer));
    let there = |path: &std::path::Path| path.exists();
    assert!(!there(&left("operator.key.part")) && !there(&left("secrets.key")));
    fs::write(left("secrets.key"), "a seed").unwrap();
    let secrets = syscap::secrets::SecretFiles::of(&syscap::Home::at(&world.home));
    secrets.set("a", "Value-of-0123456789", &["https://a.test"]).unwrap();
    assert!(!there(&left("secrets.key")) && there(&lives) && there(&others));
}
