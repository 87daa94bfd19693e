//! The conformance suite: checks that anything can be held against that governs an agent's tools,
//! judged by what the runner sees itself.
//!
//! A subject is a command that speaks line JSON: `docs/conformance.md` describes it. The runner
//! makes folders and a loopback server, asks the subject to grant, call, approve and revoke, kills
//! it, and looks at files, hits and exported logs. It never takes the subject's word for an effect.
//! This crate holds no kernel and no policy engine.

mod command;
mod http;
mod judge;
mod look;
mod mcp;
mod mcp_checks;
mod report;
mod run;
mod server;
mod set;
mod subject;
mod upstream;
mod world;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

pub use command::Suite;
pub use report::Report;
pub use run::{Host, Means};
pub use set::{Check, read};
pub use subject::Fault;

/// The set of December 2026.
pub const SET_2026_12: &str = include_str!("../sets/2026-12.toml");

/// The grade of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Grade {
    /// Everything due was seen, and nothing else.
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

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The subject's own name and version.
    pub implementation: (String, String),
    /// The areas that it claims.
    pub claims: BTreeSet<String>,
    /// Each check's grade, in the set's order.
    pub grades: Vec<Graded>,
}

/// A check that was held against a subject.
#[derive(Clone, Debug)]
pub struct Graded {
    /// Its name.
    pub id: String,
    /// Its area.
    pub area: String,
    /// The bug that it catches.
    pub bug: String,
    /// Its steps.
    pub input: Value,
    /// Its grade.
    pub grade: Grade,
    /// How long it took, in ms.
    pub ms: u64,
}

impl Outcome {
    /// Checks of each grade, by area.
    #[must_use]
    pub fn table(&self) -> BTreeMap<&str, BTreeMap<&'static str, u64>> {
        let mut table: BTreeMap<&str, BTreeMap<&'static str, u64>> = BTreeMap::new();
        for Graded { area, grade, .. } in &self.grades {
            let count = table.entry(area).or_default().entry(grade.word()).or_default();
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
    progress: &mut dyn FnMut(&Graded),
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
    let mut passed_so_far = Vec::new();
    for (number, check) in checks.into_iter().enumerate() {
        let began = std::time::Instant::now();
        let grade = if outcome.claims.contains(&check.area) {
            let place = folder.path().join(number.to_string());
            let world = world::World::new(place, number, &server)?;
            let (grade, late) = run::run(&check, means, &mut subject, world)?;
            if grade == Grade::Pass {
                passed_so_far.push((number, late));
            }
            grade
        } else {
            Grade::NotClaimed
        };
        let Check { id, area, bug, steps, .. } = check;
        let input = steps.into_iter().map(Value::Object).collect();
        let graded = Graded { id, area, bug, input, grade, ms: passed(began) };
        progress(&graded);
        outcome.grades.push(graded);
    }
    if !passed_so_far.is_empty() {
        std::thread::sleep(look::LATE);
    }
    for (number, late) in passed_so_far {
        if let (Some(why), Some(graded)) = (late.look()?, outcome.grades.get_mut(number)) {
            graded.grade = Grade::Fail(why);
        }
    }
    Ok(outcome)
}

fn passed(began: std::time::Instant) -> u64 {
    u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// Holds an MCP server against the checks of that half of which `wanted` says so.
///
/// # Errors
/// [`Fault::Harness`] where the runner could not do its part.
pub fn judge_mcp(
    means: &Means,
    wanted: impl Fn(&str, &str) -> bool,
    progress: &mut dyn FnMut(&Graded),
) -> Result<Outcome, Fault> {
    let folder = tempfile::tempdir().map_err(subject::harness("a temporary folder"))?;
    let url = means.url.as_deref().map(http::Url::parse).transpose().map_err(Fault::Harness)?;
    if let Some(url) = &url
        && means.is_elsewhere()
        && !url.listens()
    {
        let what = format!("no program listens at {url}: start the gateway, or give its command");
        return Err(Fault::Harness(what));
    }
    let name = means.url.as_ref().or(means.command.first()).cloned().unwrap_or_default();
    let claims = mcp_checks::AREAS.iter().map(|area| (*area).to_owned()).collect();
    let mut outcome =
        Outcome { implementation: (name, "over MCP".to_owned()), claims, grades: Vec::new() };
    let checks = mcp_checks::CHECKS.iter().filter(|check| wanted(check.id, check.area));
    for (number, check) in checks.enumerate() {
        let began = std::time::Instant::now();
        let mut client =
            mcp::Client::new(means, url.as_ref(), &folder.path().join(number.to_string()))?;
        let grade = match check.run(&mut client) {
            Ok(grade) => grade,
            Err(Fault::Harness(why)) => return Err(Fault::Harness(why)),
            Err(fault) => Grade::Fault(fault),
        };
        let (id, area, bug) = (check.id.into(), check.area.into(), check.bug.into());
        let graded = Graded { id, area, bug, input: check.input(), grade, ms: passed(began) };
        progress(&graded);
        outcome.grades.push(graded);
    }
    Ok(outcome)
}

/// The areas of both halves, in the order in which they are shown.
fn areas() -> impl Iterator<Item = &'static str> {
    set::AREAS.into_iter().chain(mcp_checks::AREAS)
}
