//! Tokens that nobody may issue, or that give more than those above them.

use ed25519_dalek::SigningKey;
use syscap_format::{
    Body, Dimension, Head, HomeId, Object, ObjectId, ObjectKind, OutcomeFlags, Record, RecordKind,
    Revocation, Role, Seq, Snapshot, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, TokenId,
    UnixMillis, leaf,
};
use syscap_kernel::{Anchor, Forgery, Halt, Kernel};
use syscap_verify::Fault;

use super::check;
use super::fields::Forged;
use super::tools::{boxed, event, home, insert, issue, outcome, session};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, keyed, small, small_with};
use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{
    HOUR_MS, START_MS, agent, body, key, key_change, parts, public, sign,
};

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

fn signed_by(key: &SigningKey, body: &TokenBody) -> Object {
    let bytes = body.to_bytes();
    let wire = Token::wire(&bytes, &sign(key, TOKEN_CONTEXT, &bytes));
    let id = ObjectId::from_bytes(*TokenBody::id_of(&bytes).as_bytes());
    Object { kind: ObjectKind::Token, id, bytes: wire }
}

/// Puts another token in the place of bob's, in every record that names it.
fn with_token(base: &Log, key: &SigningKey, body: &TokenBody) -> Log {
    with_token_at(base, 6, key, body)
}

/// The same for the token that a record registers.
fn with_token_at(base: &Log, place: usize, key: &SigningKey, body: &TokenBody) -> Log {
    let object = signed_by(key, body);
    let id = TokenId::from_bytes(*object.id.as_bytes());
    let snapshot = Snapshot::genesis(body.agent.clone());
    let mut log = base.clone();
    log.objects.push(object);
    let snapshot_id = ObjectId::from_bytes(*snapshot.id().as_bytes());
    let bytes = snapshot.to_bytes();
    log.objects.push(Object { kind: ObjectKind::Snapshot, id: snapshot_id, bytes });
    log.forge(|records| {
        let old = issue(&mut records[place]).token;
        for record in records.iter_mut() {
            replace(record, old, id, body);
        }
    });
    log
}

fn replace(record: &mut Record, old: TokenId, new: TokenId, token: &TokenBody) {
    let snapshot = Snapshot::genesis(token.agent.clone()).id();
    match &mut record.body {
        Body::Issue(issue) if issue.token == old => {
            issue.token = new;
            issue.issuer = token.issuer;
            issue.parent = token.parent;
            issue.agent = token.agent.clone();
        }
        Body::Session(change) if change.token == old => {
            change.token = new;
            change.agent = token.agent.clone();
            change.snapshot = snapshot;
        }
        Body::Repeat(repeat) if repeat.call.capability_token_id == Some(old) => {
            repeat.call.capability_token_id = Some(new);
        }
        Body::Intent(_) | Body::Outcome(_) => {
            let call = match &mut record.body {
                Body::Intent(intent) => &mut intent.call,
                Body::Outcome(outcome) => &mut outcome.call,
                _ => return,
            };
            if call.capability_token_id == Some(old) {
                call.capability_token_id = Some(new);
                call.agent_id = Some(token.agent.clone());
                call.state_snapshot_id = Some(snapshot);
            }
        }
        _ => {}
    }
}

#[test]
fn a_token_is_of_the_right_form_and_by_the_issuer() {
    let log = base();
    let issuer = key(Role::Issuer);
    let bob = |change: &dyn Fn(&mut TokenBody)| {
        let mut body = body(log.home(), 3, &agent("bob"));
        body.head = Some(Head { seq: Seq::new(5), leaf: leaf(&log.records[5]) });
        change(&mut body);
        body
    };
    let found = |key: &SigningKey, change: &dyn Fn(&mut TokenBody)| {
        let faults = with_token(&log, key, &bob(change)).faults();
        faults.into_iter().find(|(place, _)| *place == 6).map(|(_, fault)| fault)
    };
    let day = 24 * HOUR_MS;
    assert_eq!(found(&issuer, &|_| {}), None);
    assert_eq!(found(&issuer, &|body| body.nonce = [9; 16]), None);
    assert_eq!(found(&key(Role::Operator), &|_| {}), Some(Fault::BadSignature));
    let by_operator = |body: &mut TokenBody| body.issuer = public(&key(Role::Operator));
    assert_eq!(found(&key(Role::Operator), &by_operator), Some(Fault::WrongIssuer));
    let other_home = |body: &mut TokenBody| body.audience = HomeId::from_bytes([1; 32]);
    assert_eq!(found(&issuer, &other_home), Some(Fault::WrongAudience));
    let ended = |body: &mut TokenBody| {
        body.not_before = UnixMillis::new(START_MS - 10);
        body.expires = UnixMillis::new(START_MS);
    };
    assert_eq!(found(&issuer, &ended), Some(Fault::IssuedLate));
    let bad: [&dyn Fn(&mut TokenBody); 8] = [
        &|body| body.version = 1,
        &|body| body.version = 3,
        &|body| body.head = None,
        &|body| body.expires = body.not_before,
        &|body| body.expires = body.not_before.plus(90 * day + 1),
        &|body| body.depth_max = 17,
        &|body| body.depth = 1,
        &|body| body.parent = Some(TokenId::from_bytes([1; 32])),
    ];
    for change in bad {
        assert_eq!(found(&issuer, change), Some(Fault::BadToken));
    }
    let orphan = |body: &mut TokenBody| {
        (body.parent, body.head) = (Some(TokenId::from_bytes([1; 32])), None);
        (body.depth, body.depth_max) = (1, 1);
    };
    assert_eq!(found(&issuer, &orphan), Some(Fault::UnknownToken));
    let names = |place: usize, of: usize| {
        let head = Head { seq: Seq::new(place as u64), leaf: leaf(&log.records[of]) };
        found(&issuer, &move |body: &mut TokenBody| body.head = Some(head))
    };
    assert_eq!(names(5, 4), Some(Fault::NamedHead), "another record's leaf");
    assert_eq!(names(6, 5), Some(Fault::NamedHead), "its own place");
    assert_eq!(names(3, 3), Some(Fault::StaleHead), "before the issuer's last token");
    assert_eq!(names(4, 4), None, "the issuer's last token");
}

/// Ada's token, and another of hers, which renews it: the place of that, and of a repeat under it.
fn renewed(revoked: bool) -> (Log, TokenBody, usize, usize) {
    let mut said = None;
    let log = Log::of(&small(|driver, _| {
        let first = driver.kernel.tokens().next().unwrap().id;
        let mut body = body(driver.kernel.home(), 9, &agent("ada"));
        body.head = driver.kernel.durable();
        body.renews = Some(first).filter(|_| !revoked);
        if revoked {
            driver.control(Role::Revoker, &Revocation::subtree(first)).unwrap();
        }
        let token = driver.issue(&body);
        let session = driver.session(&agent("ada"), token);
        driver.call(session, &keyed("post", 100, if revoked { "other" } else { "first" }));
        said = Some(TokenBody { renews: Some(first), ..body });
    }));
    let issued = log.places(RecordKind::Issue)[2];
    let repeat = log.places(RecordKind::Repeat).first().copied().unwrap_or_default();
    (log, said.unwrap(), issued, repeat)
}

#[test]
fn a_token_renews_a_root_of_its_agent_that_was_not_revoked() {
    let (log, body, place, _) = renewed(false);
    let found = |log: &Log, place: usize, change: &dyn Fn(&mut TokenBody)| {
        let mut body = body.clone();
        change(&mut body);
        let faults = with_token_at(log, place, &key(Role::Issuer), &body).faults();
        faults.into_iter().find(|(at, _)| *at == place).map(|(_, fault)| fault)
    };
    assert_eq!(log.faults(), []);
    assert_eq!(found(&log, place, &|body| body.nonce = [8; 16]), None);
    let another = |body: &mut TokenBody| body.agent = agent("bob");
    assert_eq!(found(&log, place, &another), Some(Fault::Renewal));
    let nobodys = |body: &mut TokenBody| body.renews = Some(TokenId::from_bytes([3; 32]));
    assert_eq!(found(&log, place, &nobodys), Some(Fault::UnknownToken));
    let (log, body, place, _) = renewed(true);
    let faults = with_token_at(&log, place, &key(Role::Issuer), &body).faults();
    assert!(faults.contains(&(place, Fault::Revoked)), "{faults:?}");
}

#[test]
fn a_repeat_is_under_the_first_token_or_one_that_renews_it() {
    let (log, mut body, place, repeat) = renewed(false);
    assert!(repeat > place);
    body.renews = None;
    let faults = with_token_at(&log, place, &key(Role::Issuer), &body).faults();
    assert_eq!(faults, [(repeat, Fault::RepeatForm)]);
}

/// From its bound on a token is as revoked, unless another has renewed it before.
#[test]
fn call_after_an_unrenewed_bound_is_found() {
    let mut said = None;
    let minute = HOUR_MS / 60;
    let log = Log::of(&small_with(
        |body| body.caveats = vec![TokenBody::renew_by_caveat(body.not_before.plus(minute))],
        |driver, session| {
            let first = driver.kernel.tokens().next().unwrap().id;
            let mut body = body(driver.kernel.home(), 9, &agent("ada"));
            body.head = driver.kernel.durable();
            body.renews = Some(first);
            driver.issue(&body);
            driver.reading.wall = driver.reading.wall.plus(2 * minute);
            driver.reading.boottime_ms += 2 * minute;
            driver.call(session, ECHO);
            said = Some(body);
        },
    ));
    assert_eq!(log.faults(), []);
    let (place, last) =
        (log.places(RecordKind::Issue)[2], *log.places(RecordKind::Intent).last().unwrap());
    let with = |change: &dyn Fn(&mut TokenBody)| {
        let mut body = said.clone().unwrap();
        change(&mut body);
        with_token_at(&log, place, &key(Role::Issuer), &body).faults()
    };
    assert_eq!(with(&|body| body.nonce = [8; 16]), []);
    let ended = [(last, Fault::Revoked), (last + 1, Fault::OutcomeFlags)];
    assert_eq!(with(&|body| body.renews = None), ended);
    let shorter = |body: &mut TokenBody| body.expires = body.not_before.plus(minute + 1_000);
    assert_eq!(with(&shorter), ended);
}

/// A token that lapsed stays so, whatever a forged log registers to renew it afterwards.
#[test]
fn renewal_after_the_lapse_revives_nothing() {
    let minute = HOUR_MS / 60;
    let mut lapse = None;
    let mut log = Log::of(&small_with(
        |body| {
            let end = body.not_before.plus(minute);
            body.caveats = vec![TokenBody::renew_by_caveat(end)];
            lapse = Some(end);
        },
        |driver, session| {
            let first = driver.kernel.tokens().next().unwrap().id;
            let mut body = body(driver.kernel.home(), 9, &agent("ada"));
            body.head = driver.kernel.durable();
            body.renews = Some(first);
            driver.issue(&body);
            driver.pass(2 * minute);
            driver.call(session, ECHO);
        },
    ));
    assert_eq!(log.faults(), []);
    let (place, last) =
        (log.places(RecordKind::Issue)[2], *log.places(RecordKind::Intent).last().unwrap());
    assert!(place < last);
    let lapse = lapse.unwrap();
    let opened = |log: &Log| {
        let anchor = Anchor { trust: Some(log.trust()), keys: Vec::new() };
        Kernel::open(&mut Forged(log.clone()), parts(AllowAll::new(1)), &anchor).err()
    };
    assert_eq!(opened(&log), None);
    log.forge(|records| records[place].time = lapse.plus(1));
    let ended = [(place, Fault::Revoked), (last, Fault::Revoked), (last + 1, Fault::OutcomeFlags)];
    assert_eq!(log.faults(), ended);
    let (seq, why) = (Seq::new(place as u64), Forgery::Renewal);
    assert_eq!(opened(&log), Some(Halt::Forged { seq, why }), "and no kernel opens it");
}

#[test]
fn a_token_issued_before_a_key_change_stays_good() {
    let log = Log::of(&small(|driver, session| {
        let other = SigningKey::from_bytes(&[77; 32]);
        let change = key_change(&driver.kernel.home(), Role::Issuer, &other);
        driver.control(Role::Operator, &change).unwrap();
        driver.call(session, ECHO);
    }));
    let place = log.places(RecordKind::Key)[0];
    check(
        &log,
        &[(
            "a token by the old key after it",
            &|r| super::tools::shift(r, place, 4),
            &[(5, Fault::WrongIssuer), (7, Fault::WrongIssuer), (7, Fault::NamedHead)],
        )],
    );
}

/// A log with a token that can be handed on, and what may be derived from it.
fn family() -> (Log, TokenBody, SigningKey) {
    family_then(&[])
}

/// The same, and calls of the parent after the child's.
fn family_then(calls: &[&str]) -> (Log, TokenBody, SigningKey) {
    let holder = SigningKey::from_bytes(&[50; 32]);
    let store = small_with(
        |body| {
            body.holder = Some(public(&holder));
            body.depth_max = 2;
        },
        |driver, session| {
            let bob = syscap_format::Seq::new(7);
            driver.call(bob, r#"{"tool_id":"post","args":{"bytes":600}}"#);
            for call in calls {
                driver.call(session, call);
            }
        },
    );
    let log = Log::of(&store);
    let mut record = log.record(4);
    let parent = issue(&mut record).token;
    let mut child = body(log.home(), 3, &agent("ada/helper"));
    child.issuer = public(&holder);
    child.parent = Some(parent);
    (child.depth, child.depth_max) = (1, 2);
    child.head = None;
    child.budget = child
        .budget
        .with(Dimension::Calls, 40)
        .with(Dimension::EgressBytes, 900)
        .with(Dimension::Concurrent, 3);
    (log, child, holder)
}

#[test]
fn a_derived_token_takes_away() {
    let (log, child, holder) = family();
    assert_eq!(with_token(&log, &holder, &child).faults(), []);
    let changes: [&dyn Fn(&mut TokenBody); 7] = [
        &|body| body.agent = agent("bob"),
        &|body| body.expires = body.expires.plus(1),
        &|body| body.not_before = UnixMillis::new(START_MS - 1),
        &|body| body.depth_max = 3,
        &|body| body.budget = body.budget.with(Dimension::EgressBytes, 1_001),
        &|body| {
            let more = syscap_format::ToolId::new("more").unwrap();
            body.grants = body.grants.clone().with(more, syscap_format::ToolGrant::new());
        },
        &|body| (body.depth, body.depth_max) = (2, 2),
    ];
    for change in changes {
        let mut body = child.clone();
        change(&mut body);
        assert_eq!(with_token(&log, &holder, &body).faults()[0], (6, Fault::Attenuation));
    }
    let mut body = child;
    body.issuer = public(&key(Role::Issuer));
    let by_issuer = with_token(&log, &key(Role::Issuer), &body);
    assert_eq!(by_issuer.faults()[0], (6, Fault::Attenuation), "not by the parent's holder");
}

#[test]
fn a_part_is_not_of_what_has_ended() {
    let (log, child, holder) = family();
    let mut log = with_token(&log, &holder, &child);
    assert_eq!(log.faults(), []);
    log.forge(|r| {
        let revocation = Revocation::subtree(issue(&mut r[4]).token);
        let body = Body::Revoke(boxed(event(&home(r), 1, &revocation)));
        insert(r, 6, body);
    });
    assert_eq!(log.faults()[0], (7, Fault::Revoked));
}

/// What the child used, its parent has not left: 1,000 less 99 and 599.
#[test]
fn overspent_parent_is_found() {
    let (after, child, holder) = family_then(&[r#"{"tool_id":"post","args":{"bytes":1}}"#]);
    let after = with_token(&after, &holder, &child);
    let hold = |r: &mut Vec<Record>, amount| {
        super::tools::both(r, 16, |call| {
            call.held = call.held.with(Dimension::EgressBytes, amount);
        });
    };
    check(
        &after,
        &[
            ("all that the child has left", &|r| hold(r, 302), &[]),
            ("a byte more", &|r| hold(r, 303), &[(16, Fault::OverBudget)]),
        ],
    );
}

#[test]
fn a_derived_token_is_paid_for_and_revoked_with_its_parent() {
    let (log, child, holder) = family();
    let log = with_token(&log, &holder, &child);
    assert_eq!(log.places(RecordKind::Intent), [8, 10, 12, 14]);
    let hold = |r: &mut Vec<Record>, amount| {
        super::tools::both(r, 14, |call| {
            call.held = call.held.with(Dimension::EgressBytes, amount);
        });
    };
    check(
        &log,
        &[
            // The child has 900 of its own, the parent 1,000 less the 99 that it used.
            ("all that the child has", &|r| hold(r, 900), &[]),
            ("more than the child has", &|r| hold(r, 901), &[(14, Fault::OverBudget)]),
            (
                "more than the parent has left",
                &|r| {
                    let outcome = outcome(&mut r[11]);
                    outcome.call.used = outcome.call.used.with(Dimension::EgressBytes, 100);
                    hold(r, 900);
                },
                &[],
            ),
            (
                "one byte more than the parent has left",
                &|r| {
                    let outcome = outcome(&mut r[11]);
                    outcome.call.used = outcome.call.used.with(Dimension::EgressBytes, 101);
                    super::tools::both(r, 10, |call| {
                        call.held = call.held.with(Dimension::EgressBytes, 101);
                    });
                    hold(r, 900);
                },
                &[(14, Fault::OverBudget)],
            ),
            (
                "the parent was revoked",
                &|r| {
                    let revocation = Revocation::subtree(issue(&mut r[4]).token);
                    insert(r, 14, Body::Revoke(boxed(event(&home(r), 1, &revocation))));
                    outcome(&mut r[16]).flags = OutcomeFlags::REVOKED;
                },
                &[(15, Fault::Revoked)],
            ),
            (
                "another's session",
                &|r| session(&mut r[7]).agent = agent("ada"),
                &[
                    (7, Fault::SessionForm),
                    (7, Fault::Snapshot),
                    (14, Fault::NotBound),
                    (14, Fault::Snapshot),
                    (17, Fault::SessionForm),
                ],
            ),
        ],
    );
    let terminal = |body: &mut TokenBody| body.flags = TokenFlags::TERMINAL;
    let mut body = child;
    terminal(&mut body);
    assert_eq!(with_token(&family().0, &holder, &body).faults(), []);
}

#[test]
fn an_issue_says_what_its_token_says() {
    let form: &[(usize, Fault)] = &[(6, Fault::IssueForm)];
    check(
        &base(),
        &[
            ("another agent", &|r| issue(&mut r[6]).agent = agent("eve"), form),
            ("another issuer", &|r| issue(&mut r[6]).issuer = public(&key(Role::Policy)), form),
            ("a parent", &|r| issue(&mut r[6]).parent = Some(issue(&mut r[4]).token), form),
            (
                "a second time",
                &|r| {
                    let again = issue(&mut r[4]).clone();
                    insert(r, 8, Body::Issue(Box::new(again)));
                },
                &[(8, Fault::IssuedTwice)],
            ),
        ],
    );
}
