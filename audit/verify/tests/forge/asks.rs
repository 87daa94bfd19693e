//! Calls that wait for a person, and answers that there were not.

use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, ControlBody, Grants, Leaf, Precondition,
    PreconditionKind, Record, RecordKind, Role, Scope, Seq, TextHash, ToolGrant, Verdict,
};
use syscap_kernel::{Anchor, Kernel};
use syscap_verify::Fault;

use super::Case;
use super::fields::Forged;
use super::tools::{both, boxed, event, home, insert, intent, issue, outcome, remove, shift};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{self, said, small};
use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{agent, body, key, key_change, parts, public, signed_at, tool};

/// The ask, the approval, the intent of the same call, and one of another that was approved.
const ASK: usize = 14;
const APPROVAL: usize = 15;
const INTENT: usize = 16;
const SECOND: usize = 20;
/// The second intent of a set.
const OTHER: usize = 18;

fn base() -> Log {
    Log::of(&small(|driver, session| {
        for bytes in [17, 33] {
            let call = scenario::call("post", bytes);
            driver.call(session, &call);
            scenario::answer(driver, ApprovalAnswer::Once);
            driver.call(session, &call);
        }
    }))
}

/// As [`super::check`], up to the last fault that a case names: what comes after it, and every
/// head that is named by then, is of another log.
fn check(base: &Log, cases: &[Case<'_>]) {
    assert_eq!(base.faults(), [], "the log before");
    for (name, change, faults) in cases {
        let mut log = base.clone();
        log.forge(change);
        let last = faults.last().unwrap().0;
        let found = log.faults().into_iter();
        let found = found.filter(|(place, fault)| *place <= last && *fault != Fault::NamedHead);
        assert_eq!(found.collect::<Vec<_>>(), *faults, "{name}");
    }
}

/// Signs another answer in the place of the one that there is.
fn says(records: &mut [Record], role: Role, change: impl Fn(&mut ApprovalBody)) {
    let home = home(records);
    let Body::Approval(event) = &mut records[APPROVAL].body else { panic!("no approval") };
    let mut body = ApprovalBody::from_bytes(&event.control.body).unwrap();
    change(&mut body);
    let head = event.control.head;
    event.control = signed_at(&home, head, &key(role), 1, RecordKind::Approval, body.to_bytes());
}

#[test]
fn an_answer_is_by_who_may_to_what_waits() {
    let unanswered = |fault| vec![(APPROVAL, fault), (INTENT, Fault::Approval)];
    let (bad, not_it) = (unanswered(Fault::BadControl), unanswered(Fault::Approval));
    let kept = [(APPROVAL, Fault::BadControl)];
    check(
        &base(),
        &[
            (
                "to nothing",
                &|r| says(r, Role::Approver, |b| b.ask = Leaf::from_bytes([1; 32])),
                &not_it,
            ),
            (
                "no",
                &|r| says(r, Role::Approver, |b| b.answer = ApprovalAnswer::Deny),
                &[(INTENT, Fault::Approval)],
            ),
            ("a set", &|r| says(r, Role::Approver, |b| b.answer = ApprovalAnswer::Set), &kept),
            ("uses", &|r| says(r, Role::Approver, |b| b.uses = Some(9)), &kept),
            (
                "another means",
                &|r| says(r, Role::Approver, |b| b.means = ApprovalChannel::Elicitation),
                &kept,
            ),
            (
                "over before it was given",
                &|r| {
                    let time = r[APPROVAL].time;
                    says(r, Role::Approver, |b| b.expires = Some(time));
                },
                &bad,
            ),
            (
                "by the operator",
                &|r| says(r, Role::Operator, |_| {}),
                &[
                    (APPROVAL, Fault::WrongRole),
                    (APPROVAL, Fault::StaleCounter),
                    (APPROVAL, Fault::Approval),
                ],
            ),
        ],
    );
}

/// A tool that runs what it is given is approved call by call, whatever was signed.
#[test]
fn no_set_is_of_a_tool_that_runs_code() {
    let of = |tool: &str| {
        Log::of(&small(|driver, session| {
            driver.call(session, &scenario::call(tool, 17));
            scenario::answer(driver, ApprovalAnswer::Once);
        }))
    };
    let set = |r: &mut Vec<Record>| {
        says(r, Role::Approver, |b| (b.answer, b.uses) = (ApprovalAnswer::Set, Some(2)));
    };
    for (tool, faults) in [("post", vec![]), ("disk.write", vec![(APPROVAL, Fault::BadControl)])] {
        let mut log = of(tool);
        assert_eq!(log.faults(), [], "{tool}");
        log.forge(set);
        assert_eq!(log.faults(), faults, "{tool}");
    }
}

/// A set of two calls: the one that asked, another that touches the same, and one that asks anew.
#[test]
fn a_set_is_for_so_many_calls() {
    let base = Log::of(&small(|driver, session| {
        driver.call(session, &scenario::call("post", 17));
        scenario::answer_uses(driver, ApprovalAnswer::Set, Some(2));
        for bytes in [17, 33, 17] {
            driver.call(session, &scenario::call("post", bytes));
        }
    }));
    let by = |place: usize| match base.record(place).body {
        Body::Intent(intent) => intent.approval,
        _ => None,
    };
    let set = Some(Seq::new(APPROVAL as u64));
    assert_eq!([by(INTENT), by(OTHER)], [set; 2]);
    assert_eq!(base.places(RecordKind::Ask), [ASK, OTHER + 2]);
    let uses = |uses| move |r: &mut Vec<Record>| says(r, Role::Approver, |b| b.uses = uses);
    let wide = |scope: Scope| {
        move |r: &mut Vec<Record>| {
            let grants = ToolGrant::new().with("part", scope.clone());
            let grants = Grants::new().with(tool("post"), grants);
            says(r, Role::Approver, |b| b.scopes = Some(grants.clone()));
        }
    };
    let bad = [(APPROVAL, Fault::BadControl)];
    check(
        &base,
        &[
            ("one", &uses(Some(1)), &[(OTHER, Fault::Approval)]),
            (
                "once",
                &|r| says(r, Role::Approver, |b| (b.answer, b.uses) = (ApprovalAnswer::Once, None)),
                &[(OTHER, Fault::Approval)],
            ),
            ("none", &uses(Some(0)), &bad),
            ("no number", &uses(None), &bad),
            ("too many", &uses(Some(1_001)), &bad),
            ("wider without an end", &wide(Scope::ints(0, 3).unwrap()), &bad),
            ("names", &wide(Scope::names(["a"]).unwrap()), &bad),
            (
                "a no",
                &|r| says(r, Role::Approver, |b| (b.answer, b.uses) = (ApprovalAnswer::Deny, None)),
                &[(INTENT, Fault::Approval), (OTHER, Fault::Approval)],
            ),
        ],
    );
}

#[test]
fn a_call_goes_on_by_its_own_approval() {
    check(
        &base(),
        &[
            ("by none", &|r| intent(&mut r[INTENT]).approval = None, &[(INTENT, Fault::Decision)]),
            (
                "by one that there is not",
                &|r| drop(remove(r, APPROVAL)),
                &[(APPROVAL, Fault::Approval)],
            ),
            (
                "by one that was used up",
                &|r| intent(&mut r[SECOND]).approval = Some(Seq::new(APPROVAL as u64)),
                &[(SECOND, Fault::Approval)],
            ),
            (
                "bound to what was not shown",
                &|r| {
                    let subject = TextHash::from_bytes([7; 32]);
                    let kind = PreconditionKind::Absent;
                    let bound = Precondition { kind, subject, seen: None };
                    intent(&mut r[INTENT]).preconditions = vec![bound];
                },
                &[(INTENT, Fault::Approval)],
            ),
            (
                "where nobody was asked",
                &|r| {
                    let decision = intent(&mut r[INTENT]).call.decision.as_mut();
                    decision.unwrap().verdict = Verdict::Allow;
                    let Body::Outcome(outcome) = &mut r[INTENT + 1].body else { panic!("none") };
                    outcome.call.decision.as_mut().unwrap().verdict = Verdict::Allow;
                },
                &[(INTENT, Fault::Decision)],
            ),
        ],
    );
}

/// The approvers' keys are others before the call goes on.
#[test]
fn an_answer_ends_with_the_approvers_keys() {
    let other = ed25519_dalek::SigningKey::from_bytes(&[77; 32]);
    let change = |r: &mut Vec<Record>, role| {
        let home = home(r);
        let control = event(&home, 2, &key_change(&home, role, &other));
        insert(r, INTENT, Body::Key(boxed(control)));
    };
    check(
        &base(),
        &[("other approvers", &|r| change(r, Role::Approver), &[(INTENT + 1, Fault::Approval)])],
    );
}

/// The agent has another token for the same tool, and its call goes on by what was asked under the
/// first.
#[test]
fn an_answer_is_for_the_token_that_asked() {
    let base = Log::of(&small(|driver, session| {
        let call = scenario::call("post", 17);
        driver.call(session, &call);
        scenario::answer(driver, ApprovalAnswer::Once);
        driver.agent("ada", 9);
        driver.call(session, &call);
    }));
    let issued = *base.places(RecordKind::Issue).last().unwrap();
    let opened =
        base.places(RecordKind::Session).into_iter().find(|place| *place > issued).unwrap();
    let intent = *base.places(RecordKind::Intent).last().unwrap();
    let as_other = |r: &mut Vec<Record>| {
        let token = issue(&mut r[issued]).token;
        both(r, intent, |fields| {
            fields.session = Some(Seq::new(opened as u64));
            fields.capability_token_id = Some(token);
        });
    };
    check(&base, &[("under another token", &as_other, &[(intent, Fault::Approval)])]);
}

/// The token that asked was renewed for nobody, and for who approved. The call goes on under the
/// second.
#[test]
fn an_answer_is_not_for_a_renewal_that_its_approver_holds() {
    let mut log = Log::of(&small(|driver, session| {
        let asked = driver.kernel.tokens().next().unwrap().id;
        let call = scenario::call("post", 17);
        driver.call(session, &call);
        scenario::answer(driver, ApprovalAnswer::Once);
        let renewals = [None, Some(public(&key(Role::Approver)))].map(|holder| {
            let nonce = 7 + u8::from(holder.is_some());
            let mut body = body(driver.kernel.home(), nonce, &agent("ada"));
            (body.renews, body.holder) = (Some(asked), holder);
            let renewal = driver.issue(&body);
            driver.session(&agent("ada"), renewal)
        });
        driver.call(renewals[0], &call);
    }));
    let opens = |log: &Log| {
        let anchor = Anchor { trust: Some(log.trust()), keys: Vec::new() };
        Kernel::open(&mut Forged(log.clone()), parts(AllowAll::new(1)), &anchor).is_ok()
    };
    assert_eq!(log.faults(), []);
    assert!(opens(&log));
    let issued = *log.places(RecordKind::Issue).last().unwrap();
    let opened = issued + 1;
    let at = *log.places(RecordKind::Intent).last().unwrap();
    assert!(log.record(opened).body.kind() == RecordKind::Session && at > opened);
    log.forge(|r| {
        let token = issue(&mut r[issued]).token;
        both(r, at, |fields| {
            fields.session = Some(Seq::new(opened as u64));
            fields.capability_token_id = Some(token);
        });
    });
    assert_eq!(log.faults(), [(at, Fault::Approval)]);
    assert!(!opens(&log));
}

/// A set of more calls is used under a token that renews the one that asked: not under another of the
/// agent, nor under a renewal that its approver holds.
#[test]
fn a_set_is_for_its_token_and_for_renewals() {
    let base = Log::of(&small(|driver, session| {
        let asked = driver.kernel.tokens().next().unwrap().id;
        let call = scenario::call("post", 17);
        driver.call(session, &call);
        let until = Some(driver.kernel.now().plus(3_600_000));
        scenario::answer_until(driver, ApprovalAnswer::Set, Some(2), until);
        driver.agent("ada", 9);
        let renewals = [Some(public(&key(Role::Approver))), None].map(|holder| {
            let nonce = 7 + u8::from(holder.is_some());
            let mut body = body(driver.kernel.home(), nonce, &agent("ada"));
            (body.renews, body.holder) = (Some(asked), holder);
            let renewal = driver.issue(&body);
            driver.session(&agent("ada"), renewal)
        });
        driver.call(renewals[1], &call);
    }));
    let opens = |log: &Log| {
        let anchor = Anchor { trust: Some(log.trust()), keys: Vec::new() };
        Kernel::open(&mut Forged(log.clone()), parts(AllowAll::new(1)), &anchor).is_ok()
    };
    assert_eq!(base.faults(), []);
    assert!(opens(&base));
    let (issued, at) =
        (base.places(RecordKind::Issue), *base.places(RecordKind::Intent).last().unwrap());
    let [.., other, held, _] = issued[..] else { panic!("three tokens") };
    for place in [other, held] {
        let opened = base.places(RecordKind::Session).into_iter().find(|at| *at > place).unwrap();
        let mut log = base.clone();
        log.forge(|r| {
            let token = issue(&mut r[place]).token;
            both(r, at, |fields| {
                fields.session = Some(Seq::new(opened as u64));
                fields.capability_token_id = Some(token);
            });
        });
        assert_eq!(log.faults(), [(at, Fault::Approval)]);
        assert!(!opens(&log));
    }
}

/// What a user says comes before the second use of a set and not after it: the session then has
/// been given more than when the set was.
#[test]
fn a_set_is_for_the_label_it_was_given_under() {
    let mut log = Log::of(&small(|driver, session| {
        driver.call(session, &scenario::call("post", 17));
        scenario::answer_uses(driver, ApprovalAnswer::Set, Some(2));
        driver.call(session, &scenario::call("post", 17));
        driver.call(session, &scenario::call("post", 33));
        said(driver, session, "ada");
    }));
    assert_eq!(log.faults(), []);
    let input = *log.places(RecordKind::Input).last().unwrap();
    assert_eq!(input, OTHER + 2);
    log.forge(|r| {
        shift(r, input, OTHER);
        let Body::Input(told) = &r[OTHER].body else { panic!("no input") };
        let label = told.label;
        intent(&mut r[OTHER + 1]).label = label;
        outcome(&mut r[OTHER + 2]).label = label;
    });
    assert_eq!(log.faults(), [(OTHER + 1, Fault::Approval)]);
}
