//! A month at an office: agents behind the gateway and the hook, day after day, with a person who
//! does what refusals tell them to, and nothing else.
//!
//! The test holds the home with a clock that it sets itself; gateways, hooks and the person's
//! commands are processes of their own, attached to it. Three agents and three days by default, ten
//! and ten with `SYSCAP_LONG`, thirty and twenty with `SYSCAP_SOAK`.
#![cfg(target_os = "linux")]

mod client;
mod office;

use std::{collections::BTreeMap, time::Instant};

use office::Office;

/// How much of it.
struct Size {
    agents: usize,
    days: u64,
    rounds: usize,
}

#[test]
fn a_month_has_no_dead_end() {
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: there is no python3");
        return;
    }
    let is_set = |name| std::env::var_os(name).is_some();
    let (agents, days) = match (is_set("SYSCAP_SOAK"), is_set("SYSCAP_LONG")) {
        (true, _) => (30, 20),
        (false, true) => (10, 10),
        (false, false) => (3, 3),
    };
    let size = Size { agents, days, rounds: 4 };
    let began = Instant::now();
    let mut office = Office::new(size.agents);
    for day in 0..size.days {
        office.morning(day);
        for round in 0..size.rounds {
            office.work(day, round);
            office.hours(8 / size.rounds as u64);
        }
        office.evening();
        if day == size.days / 2 {
            office.rotate_keys();
            office.upgrade();
        }
    }
    let end = office.end();
    // Whatever was answered has happened, once, and nothing else has.
    assert_eq!(end.notes, end.answered);
    assert_eq!(end.of("set up"), size.agents * size.days as usize, "each morning");
    let expected = size.agents * size.days as usize * size.rounds;
    assert_eq!(end.of("uses"), expected, "every use of the client's own tools was let through");
    assert_eq!(end.of("asked"), size.agents * size.days as usize, "one a day each");
    assert!(end.of("renewed") > 0 && end.of("reissued") > 0, "{:?}", end.counts);
    assert_eq!(end.of("dead ends"), 0, "{:?}", end.counts);
    let calls = end.intents;
    assert!(end.bytes / calls < 16 * 1024, "{} bytes for {calls} calls", end.bytes);
    println!(
        "{} agents, {} days: {calls} calls, {} records, {} KiB more in the home ({} bytes a call), \
         {} KiB of memory at the most, {:?}; {} s",
        size.agents,
        size.days,
        end.records,
        end.bytes / 1024,
        end.bytes / calls,
        end.memory_kib,
        end.counts,
        began.elapsed().as_secs(),
    );
}

/// What there was at the end.
struct End {
    notes: Vec<String>,
    answered: Vec<String>,
    counts: BTreeMap<&'static str, usize>,
    intents: u64,
    records: usize,
    bytes: u64,
    memory_kib: u64,
}

impl End {
    fn of(&self, what: &str) -> usize {
        self.counts.get(what).copied().unwrap_or_default()
    }
}
