//! Sets of keys: how many must sign, who proves what, what a cut-off ends, what recovers a home.

use ed25519_dalek::SigningKey;
use syscap_audit::MemoryStore;
use syscap_format::{
    Body, CONTROL_CONTEXT, Control, ControlBody, FreezeChange, FreezeTarget, Head, HomeId,
    KeyChange, OutcomeFlags, PolicyChange, Record, RecordKind, Role, RoleSet, Seq, Signed,
    ToolsChange, leaf, recovery_hash,
};
use syscap_kernel::{Event, Kernel};
use syscap_verify::Fault;

use super::check;
use super::tools::{boxed, control, event, event_by, home, insert, outcome, shift};
use kernel_support::driver::log::{Keys, Log};
use kernel_support::driver::scenario::{ECHO, freeze, small};
use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{
    Driver, agent, key, key_change, new_home, parts, public, sign, signed_at, start,
};

fn seeded(seed: u8) -> SigningKey {
    SigningKey::from_bytes(&[seed; 32])
}

/// An event that several keys sign over one head, each with its counter.
fn signed_by<B: ControlBody>(
    home: &HomeId,
    head: Head,
    keys: &[(&SigningKey, u64)],
    body: &B,
) -> Control {
    let body = body.to_bytes();
    let mut signatures: Vec<Signed> = keys
        .iter()
        .map(|(signer, counter)| {
            let key = public(signer);
            let message = Control::message(home, &head, &key, *counter, B::KIND, &body);
            let signature = sign(signer, CONTROL_CONTEXT, &message);
            Signed { key, counter: *counter, signature }
        })
        .collect();
    signatures.sort_by_key(|signed| signed.key);
    Control { head, body, signatures }
}

fn head_at(records: &[Record], place: usize) -> Head {
    Head { seq: Seq::new(place as u64), leaf: leaf(&records[place].encode()) }
}

#[test]
fn as_many_keys_sign_as_the_role_asks_for() {
    let (one, two) = (key(Role::Revoker), seeded(77));
    let bob = |change| freeze(FreezeTarget::Agent, "bob", change);
    let log = Log::of(&small(|driver, _| {
        let mut change = key_change(&driver.kernel.home(), Role::Revoker, &two);
        change.set = RoleSet::any_of(Role::Revoker, [public(&one), public(&two)]);
        change.set.threshold = 2;
        driver.control(Role::Operator, &change).unwrap();
        let (home, head) = (driver.kernel.home(), driver.kernel.durable().unwrap());
        let keys = [(&one, 1), (&two, 1)];
        let control = signed_by(&home, head, &keys, &bob(FreezeChange::Freeze));
        let ticket = driver.ticket();
        driver.event(Event::Control(ticket, RecordKind::Freeze, control, None, None));
        driver.acked(ticket).unwrap();
    }));
    let by = |r: &mut Vec<Record>, keys: &[(&SigningKey, u64)]| {
        let head = head_at(r, 14);
        *control(&mut r[15]) = signed_by(&home(r), head, keys, &bob(FreezeChange::Freeze));
    };
    check(
        &log,
        &[
            ("one of two", &|r| by(r, &[(&one, 1)]), &[(15, Fault::Threshold)]),
            ("the other", &|r| by(r, &[(&two, 1)]), &[(15, Fault::Threshold)]),
            (
                "one of them twice",
                &|r| by(r, &[(&one, 1), (&one, 2)]),
                &[(15, Fault::BadControl), (15, Fault::StaleHead)],
            ),
            (
                "one of them and nobody's",
                &|r| by(r, &[(&one, 1), (&seeded(99), 1)]),
                &[(15, Fault::WrongRole)],
            ),
            (
                "a counter of one of them again",
                &|r| {
                    let keys = [(&one, 2), (&two, 1)];
                    let freeze = bob(FreezeChange::Freeze);
                    let again = signed_by(&home(r), head_at(r, 15), &keys, &freeze);
                    insert(r, 16, Body::Freeze(boxed(again)));
                },
                &[(16, Fault::StaleCounter)],
            ),
        ],
    );
}

/// Whoever forges here can't sign again what no longer fits: the head is what it is.
#[test]
fn a_head_is_not_before_the_last_record_of_its_key() {
    let stop = |name| freeze(FreezeTarget::Agent, name, FreezeChange::Freeze);
    let log = Log::of(&small(|driver, _| {
        driver.control(Role::Revoker, &stop("bob")).unwrap();
        driver.control(Role::Revoker, &stop("eve")).unwrap();
    }));
    let over = |place: usize| {
        let mut log = log.clone();
        log.forge_with(Keys::Elsewhere, |r| {
            let (home, head) = (home(r), head_at(r, place));
            let body = stop("eve").to_bytes();
            let signer = key(Role::Revoker);
            *control(&mut r[15]) = signed_at(&home, head, &signer, 2, RecordKind::Freeze, body);
        });
        log.faults()
    };
    assert_eq!(over(14), [], "its own last record");
    assert_eq!(over(13), [(15, Fault::StaleHead)], "the one before");
    assert_eq!(over(0), [(15, Fault::StaleHead)], "genesis");
}

/// The operator has two keys from 14 on; one gives the revoker another key at 15, and the other at
/// 16; one puts the tools on record again at 17, and the other at 18.
#[test]
fn replacement_without_the_last_head_is_found() {
    let (one, two, third) = (key(Role::Operator), seeded(77), seeded(78));
    let revoker = |home: &HomeId| key_change(home, Role::Revoker, &seeded(79));
    let log = Log::of(&small(|driver, _| {
        let home = driver.kernel.home();
        let mut change = key_change(&home, Role::Operator, &two);
        change.set = RoleSet::any_of(Role::Operator, [public(&one), public(&two)]);
        driver.control(Role::Operator, &change).unwrap();
        driver.control_by(&one, &key_change(&home, Role::Revoker, &third)).unwrap();
        driver.control_by(&two, &revoker(&home)).unwrap();
        driver.set_tools();
        driver.set_tools_by(&two);
    }));
    let keys = |r: &mut Vec<Record>, place| {
        let (home, head) = (home(r), head_at(r, place));
        *control(&mut r[16]) = signed_by(&home, head, &[(&two, 1)], &revoker(&home));
    };
    let tools = |r: &mut Vec<Record>, place| {
        let body = ToolsChange::from_bytes(&control(&mut r[18]).body).unwrap();
        *control(&mut r[18]) = signed_by(&home(r), head_at(r, place), &[(&two, 2)], &body);
    };
    check(
        &log,
        &[
            ("keys, seen", &|r| keys(r, 15), &[]),
            ("keys, from before", &|r| keys(r, 14), &[(16, Fault::StaleHead)]),
            ("tools, seen", &|r| tools(r, 17), &[]),
            ("tools, from before", &|r| tools(r, 16), &[(18, Fault::StaleHead)]),
        ],
    );
    // Policies, which two keys may sign too.
    let log = Log::of(&small(|driver, _| {
        let mut change = key_change(&driver.kernel.home(), Role::Policy, &two);
        change.set = RoleSet::any_of(Role::Policy, [public(&key(Role::Policy)), public(&two)]);
        driver.control(Role::Operator, &change).unwrap();
        driver.set_policy(1);
        driver.set_policy(1);
    }));
    let policy = |r: &mut Vec<Record>, place| {
        let body = PolicyChange::from_bytes(&control(&mut r[16]).body).unwrap();
        *control(&mut r[16]) = signed_by(&home(r), head_at(r, place), &[(&two, 1)], &body);
    };
    check(
        &log,
        &[
            ("a policy, seen", &|r| policy(r, 15), &[]),
            ("a policy, from before", &|r| policy(r, 14), &[(16, Fault::StaleHead)]),
        ],
    );
}

#[test]
fn a_key_that_is_new_proves_to_be_held() {
    let other = seeded(77);
    let log = Log::of(&small(|driver, _| {
        let change = key_change(&driver.kernel.home(), Role::Revoker, &other);
        driver.control(Role::Operator, &change).unwrap();
    }));
    let with = |r: &mut Vec<Record>, change: &dyn Fn(&mut KeyChange)| {
        let mut body = key_change(&home(r), Role::Revoker, &other);
        change(&mut body);
        *control(&mut r[14]) = event(&home(r), 2, &body);
    };
    let wrong: &[(usize, Fault)] = &[(14, Fault::KeySet)];
    let third = seeded(78);
    let proof_of = |home: &HomeId, role, key| key_change(home, role, key).proofs;
    check(
        &log,
        &[
            ("no proof", &|r| with(r, &|body| body.proofs.clear()), wrong),
            (
                "a proof of another key",
                &|r| {
                    let home = home(r);
                    with(r, &|body| body.proofs = proof_of(&home, Role::Revoker, &third));
                },
                wrong,
            ),
            (
                "a proof for another role",
                &|r| {
                    let home = home(r);
                    with(r, &|body| body.proofs = proof_of(&home, Role::Policy, &other));
                },
                wrong,
            ),
            (
                "a proof for another home",
                &|r| {
                    let elsewhere = HomeId::from_bytes([1; 32]);
                    with(r, &|body| body.proofs = proof_of(&elsewhere, Role::Revoker, &other));
                },
                wrong,
            ),
            (
                "more signatures asked for than there are keys",
                &|r| with(r, &|body| body.set.threshold = 2),
                wrong,
            ),
            ("none asked for", &|r| with(r, &|body| body.set.threshold = 0), wrong),
        ],
    );
}

/// | place | record |
/// |---|---|
/// | 14, 15 | a call of bob's, whose token stands at 6 |
/// | 16 | the issuer has another key; what the old one issued after 5 ends |
/// | 17, 18 | a call of ada's, whose token stands at 4 |
#[test]
fn a_cut_off_ends_what_the_old_key_issued_after_it() {
    let other = seeded(77);
    let change = |home: &HomeId| {
        let cut_off = Some(Seq::new(5));
        KeyChange { cut_off, ..key_change(home, Role::Issuer, &other) }
    };
    let log = Log::of(&small(|driver, ada| {
        driver.call(Seq::new(7), ECHO);
        let change = change(&driver.kernel.home());
        driver.control(Role::Operator, &change).unwrap();
        driver.call(ada, ECHO);
    }));
    assert_eq!((log.places(RecordKind::Key), log.places(RecordKind::Intent).len()), (vec![16], 5));
    let before_bobs_call = |r: &mut Vec<Record>| {
        shift(r, 16, 14);
        outcome(&mut r[16]).flags = OutcomeFlags::REVOKED;
    };
    let with = |r: &mut Vec<Record>, edit: &dyn Fn(&mut KeyChange)| {
        let mut body = change(&home(r));
        edit(&mut body);
        *control(&mut r[16]) = event(&home(r), 2, &body);
    };
    check(
        &log,
        &[
            ("before a call of bob's", &before_bobs_call, &[(15, Fault::Revoked)]),
            (
                "where the old key stays",
                &|r| {
                    let issuers = [public(&key(Role::Issuer)), public(&other)];
                    with(r, &|body| body.set = RoleSet::any_of(Role::Issuer, issuers));
                    shift(r, 16, 14);
                },
                &[],
            ),
            (
                "before the first token",
                &|r| with(r, &|body| body.cut_off = Some(Seq::new(3))),
                &[(17, Fault::Revoked), (18, Fault::OutcomeFlags)],
            ),
            (
                "after the head that was signed",
                &|r| with(r, &|body| body.cut_off = Some(Seq::new(16))),
                &[(16, Fault::BadControl)],
            ),
            (
                "of another role",
                &|r| {
                    let home = home(r);
                    with(r, &|body| {
                        *body = key_change(&home, Role::Revoker, &other);
                        body.cut_off = Some(Seq::new(15));
                    });
                },
                &[(16, Fault::BadControl)],
            ),
        ],
    );
}

/// A home with a recovery key, which gives the operator's role another key at 6; a freeze at 7.
#[test]
fn the_recovery_key_signs_nothing_but_keys() {
    let (rescue, other) = (seeded(88), seeded(77));
    let mut new = new_home(7);
    new.recovery = Some(recovery_hash(&public(&rescue)));
    let kernel = Kernel::create(new, parts(AllowAll::new(0)), start()).unwrap();
    let mut driver = Driver::with(kernel, MemoryStore::new(), start());
    driver.boot();
    driver.set_tools();
    driver.set_policy(0);
    driver.agent("ada", 1);
    let change = key_change(&driver.kernel.home(), Role::Operator, &other);
    driver.control_by(&rescue, &change).unwrap();
    let bob = freeze(FreezeTarget::Agent, "bob", FreezeChange::Freeze);
    driver.control(Role::Revoker, &bob).unwrap();
    driver.shutdown();
    driver.flush();
    assert_eq!(agent("bob").as_str(), "bob");
    let log = Log::of(&driver.store);
    assert_eq!((log.places(RecordKind::Key), log.places(RecordKind::Freeze)), (vec![6], vec![7]));
    check(
        &log,
        &[
            (
                "a freeze",
                &|r| *control(&mut r[7]) = event_by(&home(r), &rescue, 2, &bob),
                &[(7, Fault::WrongRole)],
            ),
            (
                "a change of keys by nobody",
                &|r| {
                    let change = key_change(&home(r), Role::Operator, &other);
                    *control(&mut r[6]) = event_by(&home(r), &seeded(99), 1, &change);
                },
                &[(6, Fault::WrongRole)],
            ),
            (
                "a change of keys with somebody else",
                &|r| {
                    let change = key_change(&home(r), Role::Operator, &other);
                    let keys = [(&rescue, 1), (&key(Role::Revoker), 1)];
                    *control(&mut r[6]) = signed_by(&home(r), head_at(r, 5), &keys, &change);
                },
                // The freeze has the revoker's first counter as well.
                &[(6, Fault::WrongRole), (7, Fault::StaleCounter)],
            ),
        ],
    );
}
