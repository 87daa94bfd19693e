//! Sealed keys: what goes on without a person, what does not, and who is asked when.

use std::sync::atomic::Ordering;
use syscap::format::{EffectClass, Freeze, FreezeChange, FreezeTarget, RecordKind, Role};
use syscap::host::HostTool;
use syscap::kernel::object_of;
use syscap::keys::KeyUse;
use syscap::policy::WithinToken;
use syscap::prelude::*;
use syscap::{Beside, FileKeys, PolicyPlace, Signer as _, SignerError};

use crate::keys::world::{World, asked, token};

const POLICY: SignerError = SignerError::Sealed(KeyUse::Role(Role::Policy));
const SEALED_OPERATOR: SignerError = SignerError::Sealed(KeyUse::Role(Role::Operator));

fn freeze(change: FreezeChange) -> Freeze {
    Freeze { target: FreezeTarget::Kernel, name: Box::from(""), change }
}

/// Machines go on: a sealed home is made, opened and used, tokens are issued and revoked, and an
/// emergency stop works. Nobody is asked anything. To go on after a stop takes a person.
#[test]
fn a_sealed_home_works_without_a_person() {
    let world = World::sealed();
    assert_eq!((world.count(RecordKind::Tools), world.count(RecordKind::Policy)), (1, 1));
    for _ in 0..2 {
        let rt = world.open();
        let token = token(&rt);
        assert!(world.writes(&rt, token, &format!("{token}.txt")));
        rt.freeze(&freeze(FreezeChange::Freeze)).unwrap();
        assert!(!world.writes(&rt, token, "frozen.txt"));
        let records = world.records().len();
        match rt.freeze(&freeze(FreezeChange::Thaw)).unwrap_err() {
            Error::Signer(why) => assert_eq!(why, SEALED_OPERATOR),
            error => panic!("{error}"),
        }
        assert_eq!(world.records().len(), records);
        rt.revoke(token).unwrap();
        rt.close().unwrap();
        let (keys, count) = asked(&world, b"secret");
        let rt = Options::new().signer(keys).open(&world.home).unwrap();
        rt.freeze(&freeze(FreezeChange::Thaw)).unwrap();
        assert_eq!(count.load(Ordering::SeqCst), 1);
        assert!(!world.writes(&rt, token, "revoked.txt"));
        rt.close().unwrap();
    }
    // Nothing was signed again.
    assert_eq!((world.count(RecordKind::Tools), world.count(RecordKind::Policy)), (1, 1));
    world.is_sound();
}

/// What a person must sign fails at once with the key's name, and leaves no record.
#[test]
fn sealed_role_without_a_person_is_an_error() {
    let world = World::sealed();
    let rt = world.open();
    let before = world.records().len();
    match rt.set_policy(WithinToken).unwrap_err() {
        Error::Signer(why) => assert_eq!(why, POLICY),
        error => panic!("{error}"),
    }
    assert_eq!(world.records().len(), before);
    rt.close().unwrap();
    // The runtime that made the home has just made the keys.
    let fresh = Options::new().seal(crate::keys::world::seal());
    let rt = fresh.create(world.dir.path().join("other")).unwrap();
    rt.set_policy(WithinToken).unwrap();
    rt.close().unwrap();
}

/// Somebody is asked once for each key that signs, and never for one that does not.
#[test]
fn person_is_asked_once_for_each_key_that_signs() {
    let world = World::sealed();
    let (keys, count) = asked(&world, b"secret");
    let rt = Options::new().signer(keys).open(&world.home).unwrap();
    let token = token(&rt);
    rt.revoke(token).unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 0, "issuer and revoker need nobody");
    rt.set_policy(WithinToken).unwrap();
    rt.clear_shadow().unwrap();
    assert_eq!(count.load(Ordering::SeqCst), 1);
    rt.close().unwrap();
    world.is_sound();
}

/// A program that has tools of its own puts them on record where it can ask for the key, and needs
/// nobody after that.
#[test]
fn a_programs_own_tools_are_put_on_record_once() {
    let world = World::sealed();
    let options = || {
        let tool = HostTool::new("t.own", EffectClass::Pure).unwrap().run(|_| Ok(1));
        Options::new().tool(tool).unwrap()
    };
    let runs = |options: Options| {
        let rt = options.open(&world.home).unwrap();
        let token = rt.issue(Grant::to("a").tools(["t.own"])).unwrap();
        let answer = rt.session("a", token).unwrap().call("t.own", args! {}).unwrap();
        rt.close().unwrap();
        answer.reason()
    };
    assert_eq!(runs(options()), Some(Reason::ToolsMismatch));
    let (keys, count) = asked(&world, b"secret");
    assert_eq!(runs(options().signer(keys)), None);
    assert_eq!((count.load(Ordering::SeqCst), runs(options())), (1, None));
    world.is_sound();
}

/// A wrong passphrase signs nothing, and the next one may be right.
#[test]
fn a_wrong_passphrase_signs_nothing() {
    let world = World::sealed();
    let (keys, count) = asked(&world, b"guess");
    let rt = Options::new().signer(keys).open(&world.home).unwrap();
    let before = world.records().len();
    for tries in 1..=2 {
        let Err(Error::Signer(why)) = rt.set_policy(WithinToken) else { panic!("it signed") };
        assert_eq!(why, SignerError::Passphrase(KeyUse::Role(Role::Policy)));
        assert_eq!(count.load(Ordering::SeqCst), tries);
    }
    assert_eq!(world.records().len(), before);
    rt.close().unwrap();
}

/// Who has the passphrase need not hold the home: the event is signed from the log, and submitted.
#[test]
fn an_event_is_signed_beside_the_holder() {
    let world = World::sealed();
    let rt = world.open();
    let (keys, _) = asked(&world, b"secret");
    let key = keys.public_key(Role::Policy).unwrap();
    let object = object_of(&WithinToken);
    let submit = |place: &PolicyPlace, beside: &Beside| {
        let log = world.log();
        let change = log.policy_change(place).unwrap();
        let sign = |message: &[u8]| keys.sign(Role::Policy, message);
        let control = log.sign(&change, &key, sign).unwrap();
        (control.clone(), rt.submit_with(RecordKind::Policy, control, beside))
    };
    let document = Beside::Policy(Box::new(object.clone()));
    let (control, done) = submit(&PolicyPlace::InForce(object.clone()), &document);
    done.unwrap();
    assert_eq!(rt.look(|kernel| kernel.policy_hash()).unwrap(), Some(object.hash()));
    submit(&PolicyPlace::Shadow(object.clone()), &document).1.unwrap();
    submit(&PolicyPlace::NoShadow, &Beside::Nothing).1.unwrap();
    assert_eq!(rt.look(|kernel| kernel.shadow_hash()).unwrap(), None);
    // The same again is nothing new, and another kind is another event.
    let again = rt.submit_with(RecordKind::Policy, control.clone(), &document);
    assert_eq!(reason(again), Reason::StaleCounter);
    let other = rt.submit_with(RecordKind::Key, control, &Beside::Nothing);
    assert_eq!(reason(other), Reason::BadSignature);
    rt.close().unwrap();
    world.is_sound();
}

/// The keys on record alone sign: one that lies here and was replaced is no one's word.
#[test]
fn keys_that_are_asked_for_are_the_right_ones() {
    let world = World::sealed();
    let keys = FileKeys::open(&world.keys()).unwrap();
    for role in Role::IN_USE {
        let sealed = KeyUse::SEALED.contains(&KeyUse::Role(role));
        assert_eq!(keys.needs_person(role), sealed, "{role}");
        assert_eq!(keys.sign(role, b"x").is_err(), sealed, "{role}");
    }
}

pub(crate) fn reason<T>(result: Result<T, Error>) -> Reason {
    match result {
        Err(Error::Refused(refused)) => refused.reason(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was done"),
    }
}
