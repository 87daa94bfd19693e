//! Control events that nobody may make, or nobody made.

use ed25519_dalek::SigningKey;
use syscap_format::{
    budget::{Amounts, Dimension},
    control::{Freeze, FreezeChange, FreezeTarget, Revocation, Role},
    id::{HomeId, Seq, TokenId},
    record::{Body, Charge, Kind},
    sign::Signature,
};
use syscap_verify::Fault;

use super::{
    check,
    tools::{boxed, charge, control, event, event_by, home, insert, issue},
};
use kernel_support::driver::{
    key, key_change,
    log::Log,
    public,
    scenario::{freeze, small},
    signed,
};

/// Freezes of bob and of eve at 14 and 15.
fn base() -> Log {
    let stop = |name| freeze(FreezeTarget::Agent, name, FreezeChange::Freeze);
    let log = Log::of(&small(|driver, _| {
        driver.control(Role::Revoker, &stop("bob")).unwrap();
        driver.control(Role::Revoker, &stop("eve")).unwrap();
    }));
    assert_eq!(log.places(Kind::Freeze), [14, 15]);
    log
}

/// Who may stop may not go on, in a home that was made so.
#[test]
fn a_freeze_is_ended_by_the_operator() {
    let bob = |change| freeze(FreezeTarget::Agent, "bob", change);
    let log = Log::of(&small(|driver, _| {
        driver.control(Role::Revoker, &bob(FreezeChange::Freeze)).unwrap();
        driver.control(Role::Operator, &bob(FreezeChange::Thaw)).unwrap();
    }));
    let thaw = bob(FreezeChange::Thaw);
    check(
        &log,
        &[(
            "by the revoker",
            &|r| *control(&mut r[15]) = event_by(&home(r), &key(Role::Revoker), 2, &thaw),
            &[(15, Fault::WrongRole)],
        )],
    );
}

#[test]
fn an_event_is_by_the_key_of_its_role() {
    let signature: &[(usize, Fault)] = &[(14, Fault::BadSignature)];
    let role: &[(usize, Fault)] = &[(14, Fault::WrongRole)];
    let body = freeze(FreezeTarget::Agent, "bob", FreezeChange::Freeze);
    check(
        &base(),
        &[
            (
                "another role's key",
                &|r| *control(&mut r[14]) = event_by(&home(r), &key(Role::Operator), 2, &body),
                role,
            ),
            (
                "nobody's key",
                &|r| {
                    let nobody = SigningKey::from_bytes(&[99; 32]);
                    *control(&mut r[14]) = event_by(&home(r), &nobody, 1, &body);
                },
                role,
            ),
            (
                "a key that only claims to be the role's",
                &|r| {
                    let mut forged =
                        event_by(&home(r), &SigningKey::from_bytes(&[99; 32]), 1, &body);
                    forged.signatures[0].key = public(&key(Role::Revoker));
                    *control(&mut r[14]) = forged;
                },
                signature,
            ),
            (
                "another home's event",
                &|r| *control(&mut r[14]) = event(&HomeId::from_bytes([1; 32]), 1, &body),
                &[(14, Fault::NamedHead), (14, Fault::BadSignature)],
            ),
            (
                "another kind's event",
                &|r| {
                    let key = key(Role::Revoker);
                    *control(&mut r[14]) =
                        signed(&home(r), &key, 1, Kind::Revoke, control(&mut r[14]).body.clone());
                },
                signature,
            ),
            (
                "another body",
                &|r| {
                    let other = freeze(FreezeTarget::Agent, "eve", FreezeChange::Freeze);
                    control(&mut r[14]).body = event(&home(r), 1, &other).body;
                },
                signature,
            ),
            (
                "another counter",
                &|r| control(&mut r[14]).signatures[0].counter = 0,
                &[(14, Fault::StaleCounter), (14, Fault::BadSignature)],
            ),
            (
                "a changed signature",
                &|r| {
                    let mut bytes = *control(&mut r[14]).signatures[0].signature.as_bytes();
                    bytes[40] ^= 1;
                    control(&mut r[14]).signatures[0].signature = Signature::from_bytes(bytes);
                },
                signature,
            ),
        ],
    );
}

#[test]
fn an_event_is_used_once() {
    check(
        &base(),
        &[
            (
                "the same again",
                &|r| {
                    let again = r[14].body.clone();
                    insert(r, 15, again);
                },
                &[(15, Fault::StaleCounter)],
            ),
            ("in another order", &|r| super::tools::shift(r, 14, 15), &[(15, Fault::StaleCounter)]),
            ("one left out", &|r| drop(super::tools::remove(r, 14)), &[]),
        ],
    );
}

#[test]
fn an_events_body_is_of_its_kind() {
    let bad: &[(usize, Fault)] = &[(14, Fault::BadControl)];
    let named =
        |target, name: &str| Freeze { target, name: Box::from(name), change: FreezeChange::Freeze };
    let cases = [
        named(FreezeTarget::Agent, ""),
        named(FreezeTarget::Agent, "No Agent"),
        named(FreezeTarget::Tool, "No.Tool"),
        named(FreezeTarget::Kernel, "kernel"),
    ];
    for body in &cases {
        check(&base(), &[("a name", &|r| *control(&mut r[14]) = event(&home(r), 1, body), bad)]);
    }
    check(
        &base(),
        &[
            (
                "no body",
                &|r| {
                    *control(&mut r[14]) =
                        signed(&home(r), &key(Role::Revoker), 1, Kind::Freeze, vec![0xa0])
                },
                bad,
            ),
            (
                "a token that there isn't",
                &|r| {
                    let revocation = Revocation::subtree(TokenId::from_bytes([1; 32]));
                    r[14].body = Body::Revoke(boxed(event(&home(r), 1, &revocation)));
                },
                &[(14, Fault::UnknownToken)],
            ),
        ],
    );
}

#[test]
fn a_changed_key_takes_the_place_of_the_old_one() {
    let other = SigningKey::from_bytes(&[77; 32]);
    let bob = |change| freeze(FreezeTarget::Agent, "bob", change);
    let log = Log::of(&small(|driver, _| {
        let change = key_change(&driver.kernel.home(), Role::Revoker, &other);
        driver.control(Role::Operator, &change).unwrap();
        driver.control_by(&other, &bob(FreezeChange::Freeze)).unwrap();
    }));
    check(
        &log,
        &[
            (
                "the old key",
                &|r| *control(&mut r[15]) = event(&home(r), 1, &bob(FreezeChange::Freeze)),
                &[(15, Fault::WrongRole)],
            ),
            (
                "the new key before its time",
                &|r| super::tools::shift(r, 15, 14),
                &[(14, Fault::WrongRole)],
            ),
            (
                "a key that the revoker gave itself",
                &|r| {
                    let change = key_change(&home(r), Role::Revoker, &other);
                    *control(&mut r[14]) = event_by(&home(r), &key(Role::Revoker), 1, &change);
                },
                &[(14, Fault::WrongRole)],
            ),
        ],
    );
}

#[test]
fn a_charge_is_of_what_a_host_may_post() {
    let amounts = |dimension| Amounts::ZERO.with(dimension, 5);
    let post = |r: &mut Vec<_>, dimension| {
        let (token, session) = (issue(&mut r[4]).token, Seq::new(5));
        let charge = Charge { token, session, amounts: amounts(dimension) };
        insert(r, 14, Body::Charge(Box::new(charge)));
    };
    let form: &[(usize, Fault)] = &[(14, Fault::ChargeForm)];
    check(
        &base(),
        &[
            ("model tokens", &|r| post(r, Dimension::LlmTokens), &[]),
            ("credits", &|r| post(r, Dimension::CreditsMicro), &[]),
            ("calls", &|r| post(r, Dimension::Calls), form),
            ("egress", &|r| post(r, Dimension::EgressBytes), form),
            (
                "another's token",
                &|r| {
                    post(r, Dimension::LlmTokens);
                    charge(&mut r[14]).token = issue(&mut r[6]).token;
                },
                form,
            ),
            (
                "no session",
                &|r| {
                    post(r, Dimension::LlmTokens);
                    charge(&mut r[14]).session = Seq::new(4);
                },
                &[(14, Fault::UnknownSession)],
            ),
        ],
    );
}
