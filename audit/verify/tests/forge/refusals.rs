//! Refusals, aggregates and repeats that don't add up.

use syscap_format::{Amounts, CallFields, Dimension, Reason, Record, RecordKind, Seq, TokenBody};
use syscap_verify::Fault;

use super::check;
use super::tools::{refusal, refusals, remove, repeat, shift};
use kernel_support::driver::agent;
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, keyed, small, small_with};

const PLACE: usize = 14;

/// A denied call at 14, a control event that was refused at 15.
fn base() -> Log {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, &call("post", 13));
        let ticket = driver.ticket();
        driver.event(syscap_kernel::Event::Issue(ticket, vec![0], None));
    }));
    assert_eq!(log.places(RecordKind::Refusal), [14, 15]);
    log
}

fn calls(n: u64) -> Amounts {
    Amounts::ZERO.with(Dimension::Calls, n)
}

#[test]
fn a_refusal_costs_one_call() {
    let fee: &[(usize, Fault)] = &[(PLACE, Fault::Fee)];
    check(
        &base(),
        &[
            ("nothing", &|r| refusal(&mut r[PLACE]).call.used = Amounts::ZERO, fee),
            ("two", &|r| refusal(&mut r[PLACE]).call.used = calls(2), fee),
            (
                "something else",
                &|r| refusal(&mut r[PLACE]).call.used = calls(1).with(Dimension::CpuUs, 1),
                fee,
            ),
            (
                "nobody's",
                &|r| refusal(&mut r[PLACE]).call.session = None,
                &[(PLACE, Fault::RefusalForm), (PLACE, Fault::Fee)],
            ),
            (
                "without a session, and free",
                &|r| {
                    let refusal = refusal(&mut r[PLACE]);
                    let result_hash = refusal.call.result_hash;
                    refusal.call = CallFields { result_hash, ..CallFields::unknown() };
                    refusal.reason = Reason::NoSession;
                },
                &[],
            ),
            (
                "of no session, and says whose",
                &|r| {
                    let call = &mut refusal(&mut r[PLACE]).call;
                    (call.session, call.used, call.decision) = (None, Amounts::ZERO, None);
                    refusal(&mut r[PLACE]).reason = Reason::NoSession;
                },
                &[(PLACE, Fault::RefusalForm)],
            ),
            (
                "decided without a session, and free",
                &|r| {
                    let call = &mut refusal(&mut r[PLACE]).call;
                    (call.session, call.used) = (None, Amounts::ZERO);
                },
                &[(PLACE, Fault::RefusalForm)],
            ),
        ],
    );
    // When all forty are used up, refusals are free.
    let log = Log::of(&small(|driver, session| {
        for _ in 0..40 {
            driver.call(session, ECHO);
        }
    }));
    let free = log.places(RecordKind::Refusal)[1];
    check(
        &log,
        &[(
            "a call too many",
            &|r| refusal(&mut r[free]).call.used = calls(1),
            &[(free, Fault::Fee)],
        )],
    );
}

fn many_calls(body: &mut TokenBody) {
    body.budget = body.budget.with(Dimension::Calls, 200);
}

/// Sixteen refusals, an aggregate of at most 64, closed by a call that is admitted.
fn flood() -> (Log, usize, usize) {
    let log = Log::of(&small_with(many_calls, |driver, session| {
        for _ in 0..20 {
            driver.call(session, &call("post", 13));
        }
        driver.call(session, ECHO);
    }));
    assert_eq!(log.places(RecordKind::Refusal).len(), 16);
    let places = log.places(RecordKind::Refusals);
    assert_eq!(places, [30, 31]);
    (log, places[0], places[1])
}

#[test]
fn an_aggregate_is_closed_as_it_must_be() {
    let (log, open, close) = flood();
    let wrong: &[(usize, Fault)] = &[(close, Fault::Aggregate)];
    check(
        &log,
        &[
            ("not before a call", &|r| shift(r, close, close + 2), &[(close, Fault::Aggregate)]),
            (
                "not at all",
                &|r| drop(remove(r, close)),
                &[(close, Fault::Aggregate), (close + 2, Fault::Aggregate)],
            ),
            ("without an opening", &|r| drop(remove(r, open)), &[(open, Fault::Aggregate)]),
            ("of another", &|r| refusals(&mut r[close]).opened = Some(Seq::new(5)), wrong),
            ("no count", &|r| refusals(&mut r[close]).count = None, wrong),
            ("counts too many", &|r| refusals(&mut r[close]).count = Some(65), wrong),
            ("no digest", &|r| refusals(&mut r[close]).digest = None, wrong),
            ("another reserve", &|r| refusals(&mut r[close]).reserved = 0, wrong),
            ("another limit", &|r| refusals(&mut r[close]).answers_max = 0, wrong),
            ("counts none", &|r| refusals(&mut r[close]).count = Some(0), wrong),
            ("counts fewer", &|r| refusals(&mut r[close]).count = Some(1), &[]),
        ],
    );
}

/// What an aggregate has set aside is not there for calls; what it gives back is.
#[test]
fn an_aggregate_costs_what_it_answered() {
    let log = Log::of(&small(|driver, session| {
        for _ in 0..20 {
            driver.call(session, &call("post", 13));
        }
        driver.pass(61_000);
        driver.event(syscap_kernel::Event::Tick);
        for _ in 0..17 {
            driver.call(session, ECHO);
        }
    }));
    let (close, last) =
        (log.places(RecordKind::Refusals)[1], *log.places(RecordKind::Intent).last().unwrap());
    assert_eq!(log.places(RecordKind::Intent).len(), 20, "every one of forty calls is used");
    check(
        &log,
        &[(
            "one more answered",
            &|r| refusals(&mut r[close]).count = Some(5),
            &[(last, Fault::OverBudget)],
        )],
    );
}

#[test]
fn a_repeat_is_of_a_finished_call_with_a_key() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, &keyed("post", 100, "first"));
    }));
    assert_eq!(log.places(RecordKind::Repeat), [PLACE]);
    let form: &[(usize, Fault)] = &[(PLACE, Fault::RepeatForm)];
    let with = |change: &dyn Fn(&mut CallFields), faults: &[(usize, Fault)]| {
        let changed = |r: &mut Vec<Record>| change(&mut repeat(&mut r[PLACE]).call);
        check(&log, &[("repeat", &changed, faults)]);
    };
    with(&|call| call.result_hash = None, form);
    with(&|call| call.call_hash = None, form);
    with(&|call| call.held = calls(1), form);
    with(&|call| call.tool_id = None, form);
    with(&|call| call.used = Amounts::ZERO, &[(PLACE, Fault::Fee)]);
    with(
        &|call| call.agent_id = Some(agent("eve")),
        &[(PLACE, Fault::RepeatForm), (PLACE, Fault::NotBound)],
    );
    check(
        &log,
        &[
            (
                "without a key",
                &|r| {
                    let repeat = repeat(&mut r[PLACE]);
                    (repeat.intent, repeat.outcome) = (Seq::new(12), Seq::new(13));
                },
                form,
            ),
            ("another outcome", &|r| repeat(&mut r[PLACE]).outcome = Seq::new(13), form),
            ("before the outcome", &|r| shift(r, PLACE, 11), &[(11, Fault::RepeatForm)]),
            (
                "without a session",
                &|r| {
                    let call = &mut repeat(&mut r[PLACE]).call;
                    (call.session, call.used) = (None, Amounts::ZERO);
                },
                form,
            ),
        ],
    );
    // A repeat is an admitted call: it closes an aggregate first.
    let log = Log::of(&small_with(many_calls, |driver, session| {
        for _ in 0..20 {
            driver.call(session, &call("post", 13));
        }
        driver.call(session, &keyed("post", 100, "first"));
    }));
    let (close, place) = (log.places(RecordKind::Refusals)[1], log.places(RecordKind::Repeat)[0]);
    assert_eq!(close + 1, place);
    check(&log, &[("in an aggregate", &|r| shift(r, close, place), &[(close, Fault::Aggregate)])]);
}
