//! Reasons that the kernel could not have given there, and records that a call can't come from.
//!
//! `docs/spec/verification.md` has a table of where which reasons can stand. Each test here takes a refusal
//! that the kernel wrote in one of those places, gives it every reason there is, one after another,
//! and compares what the verifier takes with the row.

use std::collections::BTreeSet;

use syscap_format::{
    Amounts, CallFields, Decision, Dimension, Enforcement, FreezeChange, FreezeTarget, Grants,
    OutcomeFlags, PROVENANCE_INPUTS_MAX, Reason, Record, RecordKind, Revocation, Role, Seq, Source,
    TRACE_BYTES_MAX, TokenBody, TokenFlags, ToolId, TxOutcome, Verdict,
};
use syscap_kernel::{Event, Lost};
use syscap_verify::Fault;

use super::check;
use super::tools::{both, outcome, refusal};
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{ECHO, call, freeze, keyed, small};
use kernel_support::driver::{Run, agent, all_parts};

type Reasons = BTreeSet<Reason>;

/// The reasons of a row of the table, by the beginning of its first cell.
fn row(place: &str) -> Reasons {
    let spec = include_str!("../../../../docs/spec/verification.md");
    let rows = spec.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let mut found = rows.filter_map(|row| row.split_once(" | ")).filter(|(at, _)| *at == place);
    let (_, cell) = found.next().unwrap_or_else(|| panic!("no row: {place}"));
    assert!(found.next().is_none(), "two rows: {place}");
    let words = cell.split([',', ';', ':']).map(str::trim);
    words.flat_map(|word| named(word.trim_start_matches("else "))).collect()
}

/// What a word of the table means.
fn named(word: &str) -> Vec<Reason> {
    let all = Reason::ALL.iter().copied();
    if let Some((first, last)) = word.split_once(" to ") {
        let (first, last): (u64, u64) = (first.parse().unwrap(), last.parse().unwrap());
        return all.filter(|reason| (first..=last).contains(&reason.code())).collect();
    }
    match word {
        "those of a plan" => all.filter(|reason| reason.is_of_a_plan()).collect(),
        "what stops it" | "or the first that holds of" => Vec::new(),
        word => {
            let name = word.trim_matches('`');
            vec![all.into_iter().find(|reason| reason.name() == name).expect(name)]
        }
    }
}

/// The reasons that the verifier takes of the refusal in that place.
fn taken(log: &Log, place: usize) -> Reasons {
    assert_eq!(log.faults(), [], "the log before");
    let takes = |reason: &Reason| {
        let mut log = log.clone();
        log.forge(|r| refusal(&mut r[place]).reason = *reason);
        let faults = log.faults();
        let of_it = [Fault::Reason, Fault::RefusalForm, Fault::Exhausted, Fault::Obligation];
        assert!(faults.iter().all(|(at, fault)| *at == place && of_it.contains(fault)));
        faults.is_empty()
    };
    Reason::ALL.iter().copied().filter(takes).collect()
}

fn last_refusal(log: &Log) -> usize {
    *log.places(RecordKind::Refusal).last().expect("a refusal")
}

fn all_of(rows: &[&str]) -> Reasons {
    rows.iter().flat_map(|at| row(at)).collect()
}

/// Whether the envelope could be read, and the kernel took calls, no record says.
const ANYWHERE: [&str; 1] = ["the envelope can't be read, or is not the session's"];

const CONTROL: &str = "`refusal_kind` is `control`";

#[test]
fn reason_of_a_control_event_is_of_its_row() {
    let bad_token = |driver: &mut kernel_support::driver::Driver<_>| {
        let ticket = driver.ticket();
        driver.event(Event::Issue(ticket, vec![0], None));
    };
    let log = Log::of(&small(|driver, _| bad_token(driver)));
    assert_eq!(taken(&log, last_refusal(&log)), row(CONTROL));
    // And after a shutdown.
    let log = Log::of(&small(|driver, _| {
        driver.shutdown();
        driver.flush();
        bad_token(driver);
        driver.flush();
    }));
    let shut = format!("{CONTROL}, after a shutdown");
    let rows: Reasons = row(CONTROL).into_iter().chain([Reason::Closing]).collect();
    assert!(spec_has(&shut));
    assert_eq!(taken(&log, log.places(RecordKind::Refusal)[0]), rows);
}

fn spec_has(place: &str) -> bool {
    include_str!("../../../../docs/spec/verification.md").contains(&format!("| {place} |"))
}

#[test]
fn reason_of_a_call_of_no_session_is_of_its_row() {
    let log = Log::of(&small(|driver, _| {
        driver.call(Seq::new(999), ECHO);
    }));
    let place = last_refusal(&log);
    assert_eq!(taken(&log, place), row("no open session"));
    // Without its holder's proof nothing is on record but that it came.
    let mut unproved = log.clone();
    unproved.forge(|r| {
        let refusal = refusal(&mut r[place]);
        refusal.reason = Reason::BadProof;
        refusal.call.call_hash = Some(syscap_format::CallHash::from_bytes([1; 32]));
    });
    assert_eq!(taken(&unproved, place), row("no open session, with `call_hash`"));
    let closed = |call_hash| {
        let mut log = Log::of(&small(|driver, session| {
            driver.shutdown();
            driver.flush();
            driver.call(session, ECHO);
            driver.flush();
        }));
        let place = log.places(RecordKind::Refusal)[0];
        log.forge(|r| refusal(&mut r[place]).call.call_hash = call_hash);
        (log, place)
    };
    let (log, place) = closed(None);
    assert_eq!(taken(&log, place), row("no open session, after a shutdown"));
    // After that no proof is looked at.
    let (mut log, place) = closed(Some(syscap_format::CallHash::from_bytes([1; 32])));
    assert_eq!(log.faults(), [(place, Fault::RefusalForm)]);
    log.forge(|r| refusal(&mut r[place]).reason = Reason::BadProof);
    assert_eq!(log.faults(), [(place, Fault::RefusalForm), (place, Fault::Reason)]);
}

fn read_only(body: &mut TokenBody) {
    body.flags = TokenFlags::READ_ONLY;
}

fn only_echo(body: &mut TokenBody) {
    let echo = ToolId::new("echo").unwrap();
    body.grants = Grants::new().with(echo, all_parts());
}

#[test]
fn reason_before_the_arguments_is_of_its_row() {
    let closed = "the kernel takes no call now";
    let of = |rows: &[&str]| all_of(&[&ANYWHERE, rows].concat());
    // It lacks an argument; the token grants it and has calls left.
    let log = Log::of(&small(|driver, session| {
        driver.call(session, r#"{"tool_id":"post","args":{}}"#);
    }));
    let place = last_refusal(&log);
    let mut wanted = of(&[closed, "else"]);
    assert!(wanted.remove(&Reason::UnknownSnapshot), "it names one that the home knows");
    assert_eq!(taken(&log, place), wanted);
    let mut unknown = log.clone();
    unknown.forge(|r| {
        refusal(&mut r[place]).call.state_snapshot_id = None;
    });
    assert_eq!(taken(&unknown, place), of(&[closed, "else"]));
    // A tool that there is not, or that the token does not grant.
    let log = Log::of(&small(|driver, session| {
        driver.call(session, r#"{"tool_id":"none","args":{}}"#);
    }));
    assert_eq!(taken(&log, last_refusal(&log)), of(&["the home has no such tool"]));
    let log = Log::of(&bare(only_echo, |driver, session| {
        driver.call(session, &call("post", 1));
    }));
    assert_eq!(taken(&log, last_refusal(&log)), of(&["the token does not grant the tool"]));
    // One that only reads, and a tool that writes.
    let log = Log::of(&bare(read_only, |driver, session| {
        driver.call(session, &call("post", 1));
    }));
    let place = last_refusal(&log);
    assert_eq!(taken(&log, place), of(&["the token only reads, and the tool does not"]));
    // The same where the tool reads: nothing is said of that.
    let log = Log::of(&bare(read_only, |driver, session| {
        driver.call(session, r#"{"tool_id":"echo","args":{"x":1}}"#);
    }));
    let mut wanted = of(&[closed, "else"]);
    wanted.remove(&Reason::UnknownSnapshot);
    assert_eq!(taken(&log, last_refusal(&log)), wanted);
    // No call is left.
    let log = Log::of(&bare(
        |body| body.budget = body.budget.with(Dimension::Calls, 1),
        |driver, session| {
            driver.call(session, ECHO);
            driver.call(session, ECHO);
        },
    ));
    assert_eq!(taken(&log, last_refusal(&log)), of(&[closed, "none of `calls` is left"]));
}

/// A log whose agent has done nothing before.
fn bare(
    token: impl FnOnce(&mut TokenBody),
    more: impl FnOnce(&mut kernel_support::driver::Driver<syscap_audit::MemoryStore>, Seq),
) -> syscap_audit::MemoryStore {
    small(|driver, _| {
        let mut body = kernel_support::driver::body(driver.kernel.home(), 9, &agent("carl"));
        token(&mut body);
        let token = driver.issue(&body);
        let session = driver.session(&agent("carl"), token);
        more(driver, session);
    })
}

#[test]
fn reason_of_a_stopped_call_is_what_stopped_it() {
    let stop = |target, name: &str| freeze(target, name, FreezeChange::Freeze);
    let frozen = |target, name: &'static str| {
        Log::of(&small(|driver, session| {
            driver.control(Role::Revoker, &stop(target, name)).unwrap();
            driver.call(session, ECHO);
        }))
    };
    let revoked = Log::of(&bare(
        |_| {},
        |driver, session| {
            let token = driver.kernel.sessions().last().unwrap().token;
            driver.control(Role::Revoker, &Revocation::subtree(token)).unwrap();
            driver.call(session, ECHO);
        },
    ));
    let expired = Log::of(&small(|driver, session| {
        driver.pass(2 * kernel_support::driver::HOUR_MS);
        driver.call(session, ECHO);
    }));
    let early = Log::of(&bare(
        |body| body.not_before = body.not_before.plus(60_000),
        |driver, session| {
            driver.call(session, ECHO);
        },
    ));
    for (log, why) in [
        (frozen(FreezeTarget::Agent, "ada"), Reason::Frozen),
        (frozen(FreezeTarget::Tool, "echo"), Reason::Frozen),
        (frozen(FreezeTarget::Kernel, ""), Reason::Frozen),
        (revoked, Reason::Revoked),
        (expired, Reason::Expired),
        (early, Reason::NotYetValid),
    ] {
        let wanted: Reasons = all_of(&ANYWHERE).into_iter().chain([why]).collect();
        assert_eq!(taken(&log, last_refusal(&log)), wanted, "{why}");
    }
}

#[test]
fn reason_of_resolved_arguments_is_of_its_row() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, r#"{"tool_id":"post","args":{"bytes":-1}}"#);
    }));
    let place = last_refusal(&log);
    assert!(refusal(&mut log.record(place)).call.args_hash.is_some());
    let mut wanted = row("with `args_hash`");
    wanted.remove(&Reason::UnknownSnapshot);
    assert_eq!(taken(&log, place), wanted);
    let mut unknown = log.clone();
    unknown.forge(|r| {
        refusal(&mut r[place]).call.state_snapshot_id = None;
    });
    assert_eq!(taken(&unknown, place), row("with `args_hash`"));
}

/// A refusal of each verdict, and the reasons that fit it.
#[test]
fn reason_fits_the_decision() {
    let (over, places) = (Reason::OverBudget, Reason::ConcurrencyLimit);
    let denied = Log::of(&small(|driver, session| {
        driver.call(session, &call("post", 13));
    }));
    let deny = [Reason::Denied, Reason::Constraint];
    assert_eq!(taken(&denied, last_refusal(&denied)), deny.into());
    let allowed = Log::of(&small(|driver, session| {
        driver.call(session, &call("post", 5_000));
    }));
    assert_eq!(taken(&allowed, last_refusal(&allowed)), [over, places].into());
    // Asked: what a person was to be shown, an answer, or no room even if it were approved.
    let mut asked = denied;
    let place = last_refusal(&asked);
    asked.forge(|r| {
        let refusal = refusal(&mut r[place]);
        refusal.call.decision = Some(Decision::plain(Verdict::Ask));
        refusal.reason = Reason::ApprovalDenied;
    });
    let more = [Reason::ApprovalDenied, Reason::Obligation, Reason::Reduced, Reason::Exhausted];
    let look = Reason::ALL.iter().copied().filter(|reason| reason.is_of_a_look());
    let wanted: Reasons = look.chain(more).chain([over, places]).collect();
    assert_eq!(taken(&asked, place), wanted);
}

#[test]
fn reason_of_a_refused_change_is_of_its_row() {
    let change = "a change of a state";
    let bad = |driver: &mut kernel_support::driver::Driver<_>, session| {
        driver.propose(session, Source::Tool, r#"{"goal.a":1}"#).unwrap_err();
    };
    let first = [Reason::ReadOnlyToken, Reason::Exhausted, Reason::OverBudget];
    let log = Log::of(&bare(|_| {}, bad));
    let fine: Reasons = row(change).into_iter().filter(|it| !first.contains(it)).collect();
    assert_eq!(taken(&log, last_refusal(&log)), fine);
    let log = Log::of(&bare(read_only, bad));
    let wanted: Reasons = [Reason::NoRoom, Reason::ReadOnlyToken].into();
    assert_eq!(taken(&log, last_refusal(&log)), wanted);
    let log = Log::of(&bare(
        |body| body.budget = body.budget.with(Dimension::Calls, 1),
        |driver, session| {
            driver.call(session, ECHO);
            bad(driver, session);
        },
    ));
    let wanted: Reasons = [Reason::NoRoom, Reason::OverBudget].into();
    assert_eq!(taken(&log, last_refusal(&log)), wanted);
    let log = Log::of(&bare(
        |body| body.budget = body.budget.with(Dimension::CreditsMicro, 5),
        |driver, session| {
            let (ticket, spent) = (driver.ticket(), Amounts::ZERO.with(Dimension::CreditsMicro, 5));
            driver.event(Event::Charge(ticket, session, spent));
            bad(driver, session);
        },
    ));
    let wanted: Reasons = [Reason::NoRoom, Reason::Exhausted].into();
    assert_eq!(taken(&log, last_refusal(&log)), wanted);
    let log = Log::of(&small(|driver, session| {
        let stop = freeze(FreezeTarget::Agent, "ada", FreezeChange::Freeze);
        driver.control(Role::Revoker, &stop).unwrap();
        bad(driver, session);
    }));
    let wanted: Reasons = [Reason::NoRoom, Reason::Frozen].into();
    assert_eq!(taken(&log, last_refusal(&log)), wanted);
}

/// A run that failed says what a tool says of a run; what the kernel and its host say comes with
/// what they record of it.
#[test]
fn reason_of_an_outcome_is_of_its_run() {
    let log = Log::of(&small(|driver, session| {
        driver.call(session, r#"{"tool_id":"post","args":{"bytes":9,"fail":true}}"#);
        driver.run = Run::Later;
        driver.call(session, &call("post", 50));
        let job = driver.jobs.remove(0);
        driver.lost(job.intent(), Lost::Panicked);
        driver.call(session, &keyed("post", 51, "slow"));
        let job = driver.jobs.remove(0);
        driver.lost(job.intent(), Lost::TimedOut);
    }));
    let outcomes = log.places(RecordKind::Outcome);
    let [failed, panicked, late] = outcomes[outcomes.len() - 3..] else { panic!("{outcomes:?}") };
    let taken = |place: usize, change: &dyn Fn(&mut Record)| {
        let takes = |reason: &Reason| {
            let mut log = log.clone();
            log.forge(|r| {
                outcome(&mut r[place]).reason = Some(*reason);
                change(&mut r[place]);
            });
            log.faults().is_empty()
        };
        Reason::ALL.iter().copied().filter(takes).collect::<Reasons>()
    };
    let run: Reasons = Reason::ALL.iter().copied().filter(|it| it.is_of_a_run()).collect();
    assert_eq!(taken(failed, &|_| {}), run);
    let lost = [Reason::Panicked, Reason::Abandoned];
    assert_eq!(taken(panicked, &|_| {}), run.iter().copied().chain(lost).collect());
    let running = [Reason::TimedOut];
    assert_eq!(taken(late, &|_| {}), running.into());
    // Nobody has kept to anything in a run that did not come back.
    let kept = |r: &mut Record| outcome(r).call.enforcement = Some(Enforcement::Lexical);
    assert_eq!(taken(panicked, &kept), run);
    assert_eq!(taken(late, &kept), Reasons::new());
    let stopped = |r: &mut Record| outcome(r).flags = OutcomeFlags::default();
    assert_eq!(taken(late, &stopped), run.into_iter().chain(lost).collect());
    let known = |r: &mut Record| outcome(r).tx = TxOutcome::Committed;
    assert!(taken(panicked, &known).is_disjoint(&lost.into()));
}

/// Which records a call came from: before it, no more than are recorded of one.
#[test]
fn inputs_are_records_before_the_call() {
    let log = Log::of(&small(|driver, session| {
        let from = r#"{"source":"tool","inputs":[8],"trace":"t"}"#;
        driver.call(session, &format!(r#"{{"tool_id":"echo","args":{{}},"provenance":{from}}}"#));
        driver.call(session, &call("post", 13));
        driver.propose(session, Source::Tool, r#"{"goal.a":1}"#).unwrap_err();
    }));
    let place = log.places(RecordKind::Intent).pop().unwrap();
    let inputs = |r: &mut Vec<Record>, all: Vec<u64>| {
        let all: Vec<Seq> = all.into_iter().map(Seq::new).collect();
        both(r, place, |call| call.provenance.as_mut().unwrap().inputs.clone_from(&all));
    };
    let trace = |r: &mut Vec<Record>, len: usize| {
        both(r, place, |call| {
            call.provenance.as_mut().unwrap().trace = Some("t".repeat(len).into())
        });
    };
    let (at, most) = (place as u64, PROVENANCE_INPUTS_MAX);
    let wrong: &[(usize, Fault)] = &[(place, Fault::Provenance)];
    check(
        &log,
        &[
            ("another", &|r| inputs(r, vec![at - 1]), &[]),
            ("as many as may", &|r| inputs(r, vec![0; most]), &[]),
            ("one too many", &|r| inputs(r, vec![0; most + 1]), wrong),
            ("as long a trace as may", &|r| trace(r, TRACE_BYTES_MAX), &[]),
            ("a longer one", &|r| trace(r, TRACE_BYTES_MAX + 1), wrong),
            ("itself", &|r| inputs(r, vec![at]), wrong),
            ("a later one", &|r| inputs(r, vec![0, at + 1]), wrong),
            ("none that there is", &|r| inputs(r, vec![u64::MAX]), wrong),
        ],
    );
    // The same of refusals; and what nobody claimed names nothing.
    let (refused, changed) =
        (log.places(RecordKind::Refusal)[0], log.places(RecordKind::Refusal)[1]);
    let with = |place: usize, change: &dyn Fn(&mut CallFields), faults: &[(usize, Fault)]| {
        check(&log, &[("refusal", &|r| change(&mut refusal(&mut r[place]).call), faults)]);
    };
    let named = |seq: u64| {
        move |call: &mut CallFields| {
            call.provenance.as_mut().unwrap().inputs = [Seq::new(seq)].into();
        }
    };
    let wrong = [(refused, Fault::Provenance)];
    with(refused, &named(8), &wrong);
    let trace = |call: &mut CallFields| call.provenance.as_mut().unwrap().trace = Some("t".into());
    with(refused, &trace, &wrong);
    let wrong = [(changed, Fault::Provenance)];
    with(changed, &named(8), &[]);
    with(changed, &named(changed as u64), &wrong);
    with(changed, &trace, &wrong);
}
