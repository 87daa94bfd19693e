//! What goes wrong at an awkward moment in a random history.

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::{
    Amounts, Body, ClockFlags, Dimension, Label, OutcomeFlags, Reason, Record, Recovered,
    TxOutcome, UnixMillis,
};

/// What goes wrong at an awkward moment, counted.
pub(crate) fn oddities(log: &[Record]) -> Vec<(&'static str, u32)> {
    let mut seen: BTreeMap<&str, u32> = [
        ("a repeat", 0),
        ("a repeat under a token that renews the first", 0),
        ("an unknown outcome", 0),
        ("a time-out across a boot", 0),
        ("a clock set back over a boot", 0),
        ("a clock that is not followed", 0),
        ("a revocation between intent and permit", 0),
        ("an intent that a boot closed", 0),
        ("a write that a probe knows not to be done", 0),
        ("a write that a probe knows to be done", 0),
        ("an error with a label", 0),
    ]
    .into();
    let mut count = |name, is: bool| *seen.entry(name).or_default() += u32::from(is);
    let (mut out, mut paid) = (BTreeSet::new(), BTreeMap::new());
    let mut last = UnixMillis::default();
    for record in log {
        count("a clock that is not followed", record.clock.has(ClockFlags::SKEWED));
        match &record.body {
            Body::Intent(intent) => {
                paid.insert(record.seq, intent.call.capability_token_id);
            }
            Body::Repeat(repeat) => {
                let token = repeat.call.capability_token_id;
                let renewed = paid.get(&repeat.intent) != Some(&token);
                count("a repeat", true);
                count("a repeat under a token that renews the first", renewed);
            }
            Body::Outcome(outcome) => {
                if outcome.flags.has(OutcomeFlags::RUNNING) {
                    out.insert(outcome.intent);
                }
                let not_run = outcome.reason == Some(Reason::NotRun);
                let revoked = outcome.flags.has(OutcomeFlags::REVOKED);
                count("an unknown outcome", outcome.tx == TxOutcome::Unknown);
                count("a revocation between intent and permit", not_run && revoked);
                let labelled = outcome.label != Label::PUBLIC && outcome.reason.is_some();
                count("an error with a label", labelled);
            }
            Body::Late(late) => drop(out.remove(&late.intent)),
            Body::Recovery(recovery) => {
                let calls = Amounts::ZERO.with(Dimension::Calls, 1);
                let not_done = recovery.verdict == Recovered::NotDone && recovery.used == calls;
                count("an intent that a boot closed", true);
                count("a write that a probe knows not to be done", not_done);
                let done = recovery.verdict == Recovered::Done;
                count("a write that a probe knows to be done", done);
            }
            Body::Boot(boot) => {
                count("a time-out across a boot", !out.is_empty());
                count("a clock set back over a boot", boot.wall < last);
                out.clear();
            }
            _ => {}
        }
        last = record.time;
    }
    seen.into_iter().collect()
}
