//! Decisions, heads, shadows and obligations that are not what they must be.

use syscap_format::{
    budget::Dimension,
    control::PolicyChange,
    decision::{Decision, Shadow, Verdict},
    id::{ConstraintId, PolicyHash, SnapshotId},
    obligation::{Obligation, ObligationKind},
    provenance::Source,
    reason::Reason,
    record::{Body, Kind, Record},
    snapshot::Snapshot,
};
use syscap_verify::Fault;

use super::{
    check,
    tools::{both, boxed, event, home, insert, outcome, refusal},
};
use kernel_support::driver::{
    agent,
    log::Log,
    scenario::{call, named, small},
};

/// The call of `disk.write`, of which the policy asked nothing.
const PLAIN: usize = 12;
/// A call that was degraded, on the head.
const HEAD: usize = 16;
/// The same, naming the snapshot before.
const BEFORE: usize = 18;
/// Calls that were refused: a cut leaves less than is needed, denied, asked, deferred.
const REDUCED: usize = 20;
const DENIED: usize = 21;
const ASKED: usize = 22;
const DEFERRED: usize = 23;
/// A call after the shadow has gone; its decision lists fewer matches than there are.
const ALONE: usize = 25;

fn genesis() -> SnapshotId {
    Snapshot::genesis(agent("ada")).id()
}

fn base() -> Log {
    let log = Log::of(&small(|driver, session| {
        driver.propose(session, Source::Agent, r#"{"goal.a":1}"#).unwrap();
        driver.set_policies(0, Some(9));
        driver.call(session, &call("trim", 1));
        driver.call(session, &named("trim", 1, &genesis()));
        for bytes in [3, 13, 4, 5] {
            driver.call(session, &call("trim", bytes));
        }
        driver.set_policy(0);
        driver.call(session, &call("trim", 7));
    }));
    assert_eq!(log.places(Kind::Intent)[3..], [HEAD, BEFORE, ALONE]);
    assert_eq!(log.places(Kind::Refusal), [REDUCED, DENIED, ASKED, DEFERRED]);
    log
}

fn head(records: &mut [Record]) -> SnapshotId {
    super::tools::state(&mut records[14]).snapshot
}

fn says(records: &mut [Record], place: usize, change: impl Fn(&mut Decision)) {
    both(records, place, |call| change(call.decision.as_mut().unwrap()));
}

fn refused(records: &mut [Record], place: usize) -> &mut Decision {
    refusal(&mut records[place]).call.decision.as_mut().unwrap()
}

#[test]
fn a_decision_is_made_on_the_head() {
    let wrong = |place| [(place, Fault::Head)];
    let unknown = |place| [(place, Fault::Snapshot)];
    let bobs = Snapshot::genesis(agent("bob")).id();
    check(
        &base(),
        &[
            (
                "the named one said again",
                &|r| {
                    let head = head(r);
                    both(r, HEAD, |c| c.head = Some(head));
                },
                &wrong(HEAD),
            ),
            ("left out", &|r| both(r, BEFORE, |c| c.head = None), &wrong(BEFORE)),
            ("one before", &|r| both(r, BEFORE, |c| c.head = Some(genesis())), &wrong(BEFORE)),
            ("another's", &|r| both(r, BEFORE, |c| c.head = Some(bobs)), &wrong(BEFORE)),
            (
                "named before it is there",
                &|r| {
                    let head = head(r);
                    both(r, PLAIN, |c| c.state_snapshot_id = Some(head));
                },
                &unknown(PLAIN),
            ),
            (
                "another's named",
                &|r| both(r, BEFORE, |c| c.state_snapshot_id = Some(bobs)),
                &unknown(BEFORE),
            ),
            (
                "an outcome on another head",
                &|r| outcome(&mut r[BEFORE + 1]).call.head = None,
                &[(BEFORE + 1, Fault::OutcomeCall)],
            ),
            (
                "a refusal on another head",
                &|r| refusal(&mut r[DENIED]).call.head = Some(genesis()),
                &wrong(DENIED),
            ),
            (
                "another's named in a refusal",
                &|r| refusal(&mut r[DENIED]).call.state_snapshot_id = Some(bobs),
                &unknown(DENIED),
            ),
            (
                "a head, and nothing decided",
                &|r| {
                    let call = &mut refusal(&mut r[REDUCED]).call;
                    (call.decision, call.shadow, call.head) = (None, None, Some(genesis()));
                    refusal(&mut r[REDUCED]).reason = Reason::OutOfScope;
                },
                &wrong(REDUCED),
            ),
        ],
    );
}

#[test]
fn a_shadow_is_asked_where_one_is_in_force() {
    let wrong = |place| [(place, Fault::Shadow)];
    let other = PolicyHash::from_bytes([1; 32]);
    let degrade = Decision::plain(Verdict::Degrade);
    let shadow = |r: &mut Vec<Record>, change: &dyn Fn(&mut Shadow)| {
        both(r, HEAD, |c| change(c.shadow.as_mut().unwrap()));
    };
    check(
        &base(),
        &[
            ("left out", &|r| both(r, HEAD, |c| c.shadow = None), &wrong(HEAD)),
            ("another's", &|r| shadow(r, &|s| s.policy = other), &wrong(HEAD)),
            ("unsound", &|r| shadow(r, &|s| s.decision = degrade.clone()), &wrong(HEAD)),
            (
                "it would have said no",
                &|r| shadow(r, &|s| s.decision = Decision::plain(Verdict::Deny)),
                &[],
            ),
            (
                "in a refusal left out",
                &|r| refusal(&mut r[DENIED]).call.shadow = None,
                &wrong(DENIED),
            ),
            (
                "after it has gone",
                &|r| {
                    let decision = Decision::plain(Verdict::Deny);
                    both(r, ALONE, |c| {
                        c.shadow = Some(Shadow { policy: other, decision: decision.clone() });
                    });
                },
                &wrong(ALONE),
            ),
            (
                "and nothing decided",
                &|r| {
                    refusal(&mut r[REDUCED]).call.decision = None;
                    refusal(&mut r[REDUCED]).reason = Reason::OutOfScope;
                },
                &wrong(REDUCED),
            ),
            (
                "an outcome's is another",
                &|r| outcome(&mut r[HEAD + 1]).call.shadow = None,
                &[(HEAD + 1, Fault::OutcomeCall)],
            ),
            (
                "without an object",
                &|r| {
                    let policy = refusal(&mut r[DENIED]).call.policy_hash.unwrap();
                    let change = PolicyChange { policy, shadow: Some(other) };
                    insert(r, ALONE + 2, Body::Policy(boxed(event(&home(r), 9, &change))));
                },
                &[(ALONE + 2, Fault::ObjectMissing)],
            ),
        ],
    );
}

#[test]
fn a_decisions_parts_agree() {
    let wrong: &[(usize, Fault)] = &[(ALONE, Fault::Decision)];
    let many = |n: usize| (0..n).map(|n| ConstraintId::new(&format!("{n:02}")).unwrap()).collect();
    check(
        &base(),
        &[
            ("not in order", &|r| says(r, ALONE, |d| d.matches.swap(0, 1)), wrong),
            ("twice", &|r| says(r, ALONE, |d| d.matches[1] = d.matches[0].clone()), wrong),
            ("fewer than listed", &|r| says(r, ALONE, |d| d.match_count = 1), wrong),
            ("no digest", &|r| says(r, ALONE, |d| d.matches_digest = None), wrong),
            ("all listed, and a digest", &|r| says(r, ALONE, |d| d.match_count = 2), wrong),
            (
                "all listed",
                &|r| says(r, ALONE, |d| (d.match_count, d.matches_digest) = (2, None)),
                &[],
            ),
            (
                "sixteen",
                &|r| {
                    says(r, ALONE, |d| {
                        d.matches = many(16);
                        d.match_count = 17;
                    });
                },
                &[],
            ),
            (
                "too many listed",
                &|r| {
                    says(r, ALONE, |d| {
                        d.matches = many(17);
                        d.match_count = 18;
                    });
                },
                wrong,
            ),
            ("in a refusal", &|r| refused(r, DENIED).match_count = 1, &[(DENIED, Fault::Decision)]),
        ],
    );
}

#[test]
fn what_is_asked_is_sorted_and_agrees_with_the_verdict() {
    let wrong: &[(usize, Fault)] = &[(ALONE, Fault::Decision)];
    let notify = |n: usize| Obligation::notify(&format!("{n:02}"));
    let many = |n: usize| (0..n).map(notify).collect();
    let long = |bytes: usize| vec![Obligation::notify(&"x".repeat(bytes))];
    check(
        &base(),
        &[
            ("32 obligations", &|r| says(r, ALONE, |d| d.obligations = many(32)), &[]),
            ("33 obligations", &|r| says(r, ALONE, |d| d.obligations = many(33)), wrong),
            ("a name of 64", &|r| says(r, ALONE, |d| d.obligations = long(64)), &[]),
            ("a name of 65", &|r| says(r, ALONE, |d| d.obligations = long(65)), wrong),
            ("degraded by nothing", &|r| says(r, ALONE, |d| d.verdict = Verdict::Degrade), wrong),
            (
                "degraded by a notice",
                &|r| {
                    says(r, ALONE, |d| {
                        (d.verdict, d.obligations) = (Verdict::Degrade, many(1));
                    });
                },
                wrong,
            ),
            (
                "allowed, with less",
                &|r| says(r, HEAD, |d| d.verdict = Verdict::Allow),
                &[(HEAD, Fault::Decision)],
            ),
            ("asked twice", &|r| says(r, ALONE, |d| d.obligations = vec![notify(1); 2]), wrong),
            (
                "asked out of order",
                &|r| says(r, HEAD, |d| d.obligations.swap(0, 1)),
                &[(HEAD, Fault::Decision)],
            ),
            (
                "names out of order",
                &|r| says(r, ALONE, |d| d.obligations = vec![notify(2), notify(1)]),
                wrong,
            ),
            (
                "a name before none",
                &|r| {
                    let none = Obligation { name: None, ..notify(1) };
                    says(r, ALONE, |d| d.obligations = vec![notify(1), none.clone()]);
                },
                wrong,
            ),
            (
                "a refusal asks twice",
                &|r| refused(r, ASKED).obligations.push(Obligation::elevated()),
                &[(ASKED, Fault::Decision)],
            ),
            (
                "a shadow asks twice",
                &|r| {
                    both(r, HEAD, |c| {
                        let said = &mut c.shadow.as_mut().unwrap().decision;
                        said.obligations = vec![notify(1); 2];
                    });
                },
                &[(HEAD, Fault::Shadow)],
            ),
        ],
    );
}

/// Asks something of the plain call.
fn asks(records: &mut [Record], asked: &Obligation) {
    says(records, PLAIN, |decision| {
        decision.obligations = vec![asked.clone()];
        if asked.kind.takes_away() {
            decision.verdict = Verdict::Degrade;
        }
    });
}

#[test]
fn what_is_asked_of_a_run_is_kept() {
    let wrong = |place| [(place, Fault::Obligation)];
    let held = |r: &mut Vec<Record>, bytes| {
        both(r, HEAD, |c| c.held = c.held.with(Dimension::EgressBytes, bytes));
    };
    let cut = |name: &str, max| Obligation {
        kind: ObligationKind::BudgetCut,
        name: Some(name.into()),
        max,
    };
    let bytes = |max| cut("disk_write_bytes", Some(max));
    let uncapped = Obligation { max: None, ..Obligation::result_cap(1) };
    check(
        &base(),
        &[
            ("more than was cut", &|r| held(r, 21), &wrong(HEAD)),
            ("less than was left", &|r| held(r, 19), &[(HEAD, Fault::Hold)]),
            (
                "not cut any more",
                &|r| says(r, HEAD, |d| d.obligations.retain(|asked| asked.max != Some(20))),
                &[(HEAD, Fault::Hold)],
            ),
            (
                "cut to less",
                &|r| {
                    let less = cut("egress_bytes", Some(19));
                    says(r, HEAD, |d| d.obligations[2] = less.clone());
                },
                &wrong(HEAD),
            ),
            (
                "a cap without a number",
                &|r| {
                    says(r, HEAD, |d| d.obligations[0] = uncapped.clone());
                },
                &wrong(HEAD),
            ),
            ("a cap not honoured", &|r| asks(r, &Obligation::result_cap(9)), &wrong(PLAIN)),
            ("read only", &|r| asks(r, &Obligation::read_only()), &wrong(PLAIN)),
            ("an opener not promised", &|r| asks(r, &Obligation::openat2()), &wrong(PLAIN)),
            ("approval", &|r| asks(r, &Obligation::elevated()), &wrong(PLAIN)),
            ("a notice", &|r| asks(r, &Obligation::notify("disk")), &[]),
            ("a cut to what is held", &|r| asks(r, &bytes(50)), &[]),
            ("a cut below", &|r| asks(r, &bytes(49)), &wrong(PLAIN)),
            ("a cut of calls", &|r| asks(r, &cut("calls", Some(9))), &wrong(PLAIN)),
            ("a cut of time", &|r| asks(r, &cut("wall_us", Some(9))), &wrong(PLAIN)),
            ("a cut of what there is not", &|r| asks(r, &cut("none", Some(9))), &wrong(PLAIN)),
            ("a cut to nothing", &|r| asks(r, &cut("egress_bytes", None)), &wrong(PLAIN)),
            (
                "a reader is read only",
                &|r| {
                    let asked = vec![Obligation::read_only()];
                    says(r, 8, |decision| {
                        decision.verdict = Verdict::Degrade;
                        decision.obligations = asked.clone();
                    });
                },
                &[],
            ),
        ],
    );
}

#[test]
fn a_refused_run_could_not_keep_to_what_was_asked() {
    let form = |place| [(place, Fault::RefusalForm)];
    let unkept = [(REDUCED, Fault::Obligation)];
    let verdict = |r: &mut Vec<Record>, place, verdict| refused(r, place).verdict = verdict;
    let reason = |r: &mut Vec<Record>, place: usize, reason| refusal(&mut r[place]).reason = reason;
    let notify = vec![Obligation::notify("x")];
    check(
        &base(),
        &[
            ("reduced, denied", &|r| verdict(r, REDUCED, Verdict::Deny), &form(REDUCED)),
            ("reduced, deferred", &|r| verdict(r, REDUCED, Verdict::Defer), &form(REDUCED)),
            // Nobody is asked about what a cut leaves no room for.
            ("reduced, asked", &|r| verdict(r, REDUCED, Verdict::Ask), &[]),
            (
                "reduced, allowed",
                &|r| {
                    verdict(r, REDUCED, Verdict::Allow);
                    refused(r, REDUCED).obligations = notify.clone();
                },
                &[(REDUCED, Fault::RefusalForm), (REDUCED, Fault::Obligation)],
            ),
            (
                "reduced, and nothing cut",
                &|r| refused(r, REDUCED).obligations = vec![Obligation::read_only()],
                &unkept,
            ),
            (
                "reduced, and not kept before",
                &|r| {
                    let uncapped = Obligation { max: None, ..Obligation::result_cap(1) };
                    refused(r, REDUCED).obligations.insert(0, uncapped);
                },
                &unkept,
            ),
            (
                "reduced, and not kept after",
                &|r| refused(r, REDUCED).obligations.push(Obligation::elevated()),
                &[],
            ),
            ("unkept, and all kept", &|r| reason(r, REDUCED, Reason::Obligation), &unkept),
            (
                "unkept, allowed",
                &|r| {
                    reason(r, REDUCED, Reason::Obligation);
                    verdict(r, REDUCED, Verdict::Allow);
                    refused(r, REDUCED).obligations = vec![Obligation::elevated()];
                },
                &[],
            ),
            (
                "unkept, degraded",
                &|r| {
                    reason(r, REDUCED, Reason::Obligation);
                    refused(r, REDUCED).obligations.push(Obligation::elevated());
                },
                &[],
            ),
            (
                "unkept, and nothing asked",
                &|r| {
                    reason(r, REDUCED, Reason::Obligation);
                    verdict(r, REDUCED, Verdict::Allow);
                    refused(r, REDUCED).obligations = Vec::new();
                },
                &unkept,
            ),
        ],
    );
}

#[test]
fn a_refusals_reason_is_what_the_policy_said() {
    let form = |place| [(place, Fault::RefusalForm)];
    let verdict = |r: &mut Vec<Record>, place, verdict| refused(r, place).verdict = verdict;
    let reason = |r: &mut Vec<Record>, place: usize, reason| refusal(&mut r[place]).reason = reason;
    check(
        &base(),
        &[
            (
                "over budget, and not kept",
                &|r| {
                    reason(r, REDUCED, Reason::OverBudget);
                    refused(r, REDUCED).obligations.push(Obligation::elevated());
                },
                &[(REDUCED, Fault::Obligation)],
            ),
            ("over budget", &|r| reason(r, REDUCED, Reason::OverBudget), &[]),
            (
                "exhausted, and it is not",
                &|r| reason(r, REDUCED, Reason::Exhausted),
                &[(REDUCED, Fault::Exhausted)],
            ),
            ("before the policy", &|r| reason(r, REDUCED, Reason::OutOfScope), &form(REDUCED)),
            ("denied for an argument", &|r| reason(r, DENIED, Reason::Constraint), &[]),
            ("denied by its budget", &|r| reason(r, DENIED, Reason::Exhausted), &form(DENIED)),
            ("denied by obligation", &|r| reason(r, DENIED, Reason::Obligation), &form(DENIED)),
            ("denied, allowed", &|r| verdict(r, DENIED, Verdict::Allow), &form(DENIED)),
            ("asked, deferred", &|r| verdict(r, ASKED, Verdict::Defer), &form(ASKED)),
            ("deferred, denied", &|r| verdict(r, DEFERRED, Verdict::Deny), &form(DEFERRED)),
            (
                "denied without a decision",
                &|r| {
                    let call = &mut refusal(&mut r[DENIED]).call;
                    (call.decision, call.shadow) = (None, None);
                },
                &form(DENIED),
            ),
        ],
    );
}
