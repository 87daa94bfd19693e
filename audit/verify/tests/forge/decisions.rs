//! Decisions, heads, shadows and obligations that are not what they must be.

use syscap_format::{
    Decision, Dimension, Obligation, ObligationKind, Reason, Record, RecordKind, Snapshot,
    SnapshotId, Source, Verdict,
};
use syscap_verify::Fault;

use super::check;
use super::tools::{both, refusal};
use kernel_support::driver::agent;
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{call, named, small};

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
    assert_eq!(log.places(RecordKind::Intent)[3..], [HEAD, BEFORE, ALONE]);
    assert_eq!(log.places(RecordKind::Refusal), [REDUCED, DENIED, ASKED, DEFERRED]);
    log
}

fn says(records: &mut [Record], place: usize, change: impl Fn(&mut Decision)) {
    both(records, place, |call| change(call.decision.as_mut().unwrap()));
}

fn refused(records: &mut [Record], place: usize) -> &mut Decision {
    refusal(&mut records[place]).call.decision.as_mut().unwrap()
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
fn forged_obligations_are_found() {
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
