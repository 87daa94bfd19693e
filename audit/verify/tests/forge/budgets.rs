//! Calls that cost more than there was, or ran twice.

use syscap_format::{
    Amounts, Body, Budget, Charge, Dimension, IdempotencyKey, OutcomeFlags, Record, RecordKind,
    SentHash, Seq,
};
use syscap_verify::Fault;

use super::check;
use super::tools::{both, insert, intent, issue, outcome, shift};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, small, small_with};

fn base() -> Log {
    Log::of(&small(|_, _| {}))
}

/// Each case changes the last intent, with its outcome.
const LAST: usize = 12;

fn hold(records: &mut [Record], place: usize, dimension: Dimension, amount: u64) {
    both(records, place, |c| c.held = c.held.with(dimension, amount));
}

#[test]
fn an_intent_stays_inside_the_budget() {
    let (post, over) = (10, Fault::OverBudget);
    let budget = |dimension| Budget::standard().amounts().get(dimension);
    check(
        &base(),
        &[
            ("all of it", &|r| hold(r, post, Dimension::EgressBytes, 1_000), &[]),
            ("one byte more", &|r| hold(r, post, Dimension::EgressBytes, 1_001), &[(post, over)]),
            (
                // 99 bytes were used by the call before.
                "what the call before left",
                &|r| hold(r, LAST, Dimension::EgressBytes, 1_000 - 99),
                &[],
            ),
            (
                "one byte more than it left",
                &|r| hold(r, LAST, Dimension::EgressBytes, 1_000 - 98),
                &[(LAST, over)],
            ),
            (
                "measured time",
                &|r| {
                    let all = budget(Dimension::WallUs);
                    hold(r, LAST, Dimension::WallUs, all);
                },
                &[(LAST, over)],
            ),
        ],
    );
    let store = small(|driver, session| {
        for _ in 0..40 {
            driver.call(session, ECHO);
        }
    });
    let log = Log::of(&store);
    // The last of forty calls that the budget has. As many again were refused.
    let last = *log.places(RecordKind::Intent).last().unwrap();
    assert_eq!(log.places(RecordKind::Intent).len(), 40);
    check(
        &log,
        &[(
            "a charge before the last call",
            &|r| {
                let (token, session) = (issue(&mut r[4]).token, Seq::new(5));
                let credits = budget(Dimension::CreditsMicro);
                let amounts = Amounts::ZERO.with(Dimension::CreditsMicro, credits);
                insert(r, last, Body::Charge(Box::new(Charge { token, session, amounts })));
            },
            &[(last + 1, Fault::Exhausted)],
        )],
    );
}

#[test]
fn concurrent_calls_stay_inside_the_budget() {
    let store = small(|driver, session| {
        for _ in 0..2 {
            driver.call(session, &call("post", 1));
        }
    });
    // The outcomes of three calls are put behind the last intent, so that four run at a time.
    let four = |r: &mut Vec<Record>| {
        shift(r, 11, 17);
        shift(r, 12, 17);
        shift(r, 13, 17);
    };
    check(&Log::of(&store), &[("four at a time", &four, &[(13, Fault::OverBudget)])]);
    let store = small_with(
        |body| body.budget = body.budget.with(Dimension::Concurrent, 9),
        |driver, session| {
            for _ in 0..3 {
                driver.call(session, &call("post", 1));
            }
        },
    );
    let five = |r: &mut Vec<Record>| {
        for place in [11, 12, 13, 14] {
            shift(r, place, 19);
        }
    };
    check(&Log::of(&store), &[("five at a time", &five, &[(14, Fault::InFlight)])]);
}

#[test]
fn an_overrun_exhausts_the_token() {
    check(
        &base(),
        &[(
            "an overrun before",
            &|r| {
                let outcome = outcome(&mut r[11]);
                outcome.call.used = outcome.call.used.with(Dimension::CpuUs, 1_000_001);
                outcome.flags = OutcomeFlags::OVERRUN;
            },
            &[(LAST, Fault::Exhausted)],
        )],
    );
}

#[test]
fn a_key_runs_once() {
    let store = small(|driver, session| {
        driver.call(session, &call("post", 7));
        driver.call(session, &call("disk.write", 7));
    });
    let again = |r: &mut Vec<Record>, place: usize| {
        let intent = intent(&mut r[place]);
        intent.key = IdempotencyKey::new("first");
        intent.sent_hash = Some(SentHash::from_bytes([1; 32]));
    };
    check(
        &Log::of(&store),
        &[
            ("the same tool", &|r| again(r, 14), &[(14, Fault::KeyReused)]),
            ("another tool", &|r| again(r, 16), &[]),
            (
                "while it runs",
                &|r| {
                    again(r, 14);
                    shift(r, 11, 15);
                },
                &[(13, Fault::KeyReused)],
            ),
        ],
    );
}
