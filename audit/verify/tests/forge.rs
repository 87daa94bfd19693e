//! Logs made anew, chain and all, by somebody who may have the keys: what they claim is wrong.
//!
//! Every case begins with a log that the kernel wrote, changes what one record says, makes
//! positions and links anew, and names each fault that must be found, and no other.

mod asks;
mod budgets;
mod control;
mod credits;
mod decided;
mod decisions;
mod ends;
mod fields;
mod intents;
mod item;
mod keys;
mod labels;
mod life;
mod objects;
mod outcomes;
mod reasons;
mod refusals;
mod states;
mod tokens;
mod tools;
mod work;

use kernel_support::driver::log::Log;
use syscap_format::Record;
use syscap_verify::Fault;

/// A change of records, and the faults that it must make.
type Case<'a> = (&'a str, &'a dyn Fn(&mut Vec<Record>), &'a [(usize, Fault)]);

/// Forges each case from a log that is sound and compares the faults.
fn check(base: &Log, cases: &[Case<'_>]) {
    assert_eq!(base.faults(), [], "the log before");
    for (name, change, faults) in cases {
        let trust = base.trust();
        let mut log = base.clone();
        log.forge(change);
        assert_eq!(log.trust(), trust, "{name}: the home is the same");
        assert_eq!(log.faults(), *faults, "{name}");
    }
}
