//! The conformance suite: checks that anything can be held against that governs an agent's tools,
//! judged by what the runner sees itself.
//!
//! A subject is a command that speaks line JSON: `docs/conformance.md` describes it. The runner
//! makes folders and a loopback server, asks the subject to grant, call, approve and revoke, kills
//! it, and looks at files, hits and exported logs. It never takes the subject's word for an effect.
//! This crate holds no kernel and no policy engine.

mod command;
mod judge;
mod look;
mod report;
mod run;
mod server;
mod set;
mod subject;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use command::{EXIT_FAULT, USAGE, main};
pub use report::Report;
pub use run::Means;
pub use set::{AREAS, Check, read};
pub use subject::Fault;

/// The set of December 2026.
pub const SET_2026_12: &str = include_str!("../sets/2026-12.toml");

/// What came of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grade {
    /// What must be seen was seen, and nothing else.
    Pass,
    /// Something was seen that must never be.
    Fail(String),
    /// Nothing was shown: a subject that does nothing passes nothing.
    Unproved(String),
    /// The subject broke the protocol.
    Fault(Fault),
    /// The subject does not claim the area.
    NotClaimed,
}

impl Grade {
    /// One word for it.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail(_) => "fail",
            Self::Unproved(_) => "unproved",
            Self::Fault(_) => "fault",
            Self::NotClaimed => "not_claimed",
        }
    }

    /// Why, where it is no pass.
    #[must_use]
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Pass | Self::NotClaimed => None,
            Self::Fail(why) | Self::Unproved(why) => Some(why.clone()),
            Self::Fault(fault) => Some(fault.text()),
        }
    }
}

/// What a run came to.
#[derive(Debug)]
pub struct Outcome {
    /// What the subject calls itself, and its version.
    pub implementation: (String, String),
    /// The areas that it claims.
    pub claims: BTreeSet<String>,
    /// Each check's grade, in the set's order, and how long it took in ms.
    pub grades: Vec<(Check, Grade, u64)>,
}

impl Outcome {
    /// Checks of each grade, by area.
    #[must_use]
    pub fn table(&self) -> BTreeMap<&str, BTreeMap<&'static str, u64>> {
        let mut table: BTreeMap<&str, BTreeMap<&'static str, u64>> = BTreeMap::new();
        for (check, grade, _) in &self.grades {
            let count = table.entry(&check.area).or_default().entry(grade.word()).or_default();
            *count = count.saturating_add(1);
        }
        table
    }
}

/// Holds a subject against checks, one after another. `progress` hears of each.
///
/// # Errors
/// [`Fault`] where the runner could not do its part, or the subject does not start.
pub fn judge_subject(
    checks: Vec<Check>,
    means: &Means,
    mut progress: impl FnMut(&Check, &Grade),
) -> Result<Outcome, Fault> {
    let folder = tempfile::tempdir().map_err(subject::harness("a temporary folder"))?;
    let server = server::Server::start()?;
    let (first, said) = run::start(means, None, None)?;
    let text = |key: &str| said.get(key).and_then(Value::as_str).unwrap_or("unnamed").to_owned();
    let claims = said.get("claims").and_then(Value::as_array);
    let claims: BTreeSet<String> = claims
        .ok_or_else(|| Fault::Form("`start` names no `claims`".to_owned()))?
        .iter()
        .filter_map(|claim| claim.as_str().map(str::to_owned))
        .collect();
    let mut outcome = Outcome {
        implementation: (text("implementation"), text("version")),
        claims,
        grades: Vec::new(),
    };
    let mut subject = Some(first);
    for (number, check) in checks.into_iter().enumerate() {
        let began = std::time::Instant::now();
        let grade = if outcome.claims.contains(&check.area) {
            let secret = format!("secret-{number}-{}", std::process::id());
            let place = folder.path().join(number.to_string());
            let world = world::World::new(place, secret, &server)?;
            run::run(&check, means, &mut subject, world)?
        } else {
            Grade::NotClaimed
        };
        progress(&check, &grade);
        let took = u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX);
        outcome.grades.push((check, grade, took));
    }
    Ok(outcome)
}
