//! Reports of a run, for people and for programs.

use std::collections::BTreeMap;
use std::fs;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Grade, Graded, Outcome, areas};

/// A run, with what it was a run of.
#[derive(Debug)]
pub struct Report<'r> {
    /// The grades of the checks.
    pub outcome: &'r Outcome,
    /// The set's name and text.
    pub set: (&'r str, &'r str),
    /// The subject's command.
    pub command: &'r [String],
    /// Grades that were expected, by the checks' names.
    pub baseline: &'r BTreeMap<String, String>,
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

impl Report<'_> {
    /// Checks of claimed areas that are no pass, and that the baseline does not expect so.
    pub fn failures(&self) -> impl Iterator<Item = (&str, &Grade)> {
        let expected = |id: &str, grade: &Grade| {
            self.baseline.get(id).map(String::as_str) == Some(grade.word())
        };
        let bad = |grade: &Grade| !matches!(grade, Grade::Pass | Grade::NotClaimed);
        let all = self.outcome.grades.iter().map(|graded| (graded.id.as_str(), &graded.grade));
        all.filter(move |(id, grade)| bad(grade) && !expected(id, grade))
    }

    /// Entries of the baseline that are not so any more, or name no check of the run.
    #[must_use]
    pub fn stale(&self) -> Vec<String> {
        let is_so = |(id, word): &(&String, &String)| {
            let found = self.outcome.grades.iter().find(|graded| graded.id == **id);
            found.is_some_and(|graded| graded.grade.word() == word.as_str())
        };
        let stale = self.baseline.iter().filter(|entry| !is_so(entry));
        stale.map(|(id, word)| format!("{id}: {word}")).collect()
    }

    /// A line for each check that is no pass, and a table of areas and grades.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        let mut line = |line: String| {
            text.push_str(&line);
            text.push('\n');
        };
        for Graded { id, bug, grade, .. } in &self.outcome.grades {
            if let Some(why) = grade.why() {
                line(format!("{:<10} {id}: {why}", grade.word()));
                line(format!("           the bug: {bug}"));
            }
        }
        let (name, version) = &self.outcome.implementation;
        line(format!("{name} {version}, set {}", self.set.0));
        line(format!(
            "{:<10} {:>5} {:>5} {:>9} {:>6}",
            "area", "pass", "fail", "unproved", "fault"
        ));
        let table = self.outcome.table();
        for area in areas() {
            let Some(of) = table.get(area) else { continue };
            let count = |word| of.get(word).copied().unwrap_or(0);
            if count("not_claimed") > 0 {
                line(format!("{area:<10} not claimed, checks: {}", count("not_claimed")));
            } else {
                line(format!(
                    "{area:<10} {:>5} {:>5} {:>9} {:>6}",
                    count("pass"),
                    count("fail"),
                    count("unproved"),
                    count("fault")
                ));
            }
        }
        for entry in self.stale() {
            line(format!("stale in the baseline: {entry}"));
        }
        text
    }

    /// `report.json`, of the form of `schema/report.json`.
    #[must_use]
    pub fn json(&self) -> Value {
        let (name, version) = &self.outcome.implementation;
        let files = self.command.iter().filter_map(|word| fs::read(word).ok());
        let files: Vec<String> = files.map(|bytes| digest(&bytes)).collect();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let checks =
            self.outcome.grades.iter().map(|Graded { id, area, bug, input, grade, ms }| {
                // What a failure is repeated by; a pass needs none.
                let input = if *grade == Grade::Pass { &Value::Null } else { input };
                json!({
                    "id": id, "area": area, "bug": bug, "input": input,
                    "grade": grade.word(), "why": grade.why(), "ms": ms,
                })
            });
        json!({
            "schema": 1,
            "set": {"name": self.set.0, "sha256": digest(self.set.1.as_bytes())},
            "subject": {
                "implementation": name, "version": version, "command": self.command,
                "sha256": files, "claims": self.outcome.claims,
            },
            "runner": {"version": env!("CARGO_PKG_VERSION")},
            "environment": {
                "os": std::env::consts::OS, "arch": std::env::consts::ARCH,
                "kernel": kernel.trim(),
                "cpus": std::thread::available_parallelism().map_or(0, usize::from),
            },
            "areas": self.outcome.table(),
            "stale": self.stale(),
            "checks": checks.collect::<Vec<_>>(),
        })
    }

    /// The same as JUnit's XML.
    #[must_use]
    pub fn junit(&self) -> String {
        let escape = |text: &str| {
            let text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            let printable = |c: char| if c.is_control() { '\u{fffd}' } else { c };
            text.replace('"', "&quot;").chars().map(printable).collect::<String>()
        };
        let mut cases = String::new();
        for Graded { id, area, grade, ms, .. } in &self.outcome.grades {
            let why = escape(&grade.why().unwrap_or_default());
            let inner = match grade {
                Grade::Pass => String::new(),
                Grade::NotClaimed => "<skipped message=\"not claimed\"/>".to_owned(),
                Grade::Fault(_) => format!("<error message=\"{why}\"/>"),
                Grade::Fail(_) | Grade::Unproved(_) => {
                    format!("<failure type=\"{}\" message=\"{why}\"/>", grade.word())
                }
            };
            let id = escape(id);
            let (seconds, ms) = (ms / 1_000, ms % 1_000);
            cases += &format!(
                "<testcase classname=\"{area}\" name=\"{id}\" time=\"{seconds}.{ms:03}\">{inner}</testcase>\n"
            );
        }
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"syscap conformance {}\" tests=\"{}\">\n{cases}</testsuite>\n",
            escape(self.set.0),
            self.outcome.grades.len()
        )
    }

    /// A badge, as endpoints of shields.io say it: `record 41/41, budget not claimed`.
    #[must_use]
    pub fn badge(&self) -> Value {
        let table = self.outcome.table();
        let parts = areas().filter_map(|area| {
            let of = table.get(area)?;
            let all: u64 = of.values().sum();
            match of.get("not_claimed") {
                Some(_) => Some(format!("{area} not claimed")),
                None => Some(format!("{area} {}/{all}", of.get("pass").copied().unwrap_or(0))),
            }
        });
        let message = parts.collect::<Vec<_>>().join(", ");
        let color = if self.failures().next().is_none() { "green" } else { "red" };
        json!({"schemaVersion": 1, "label": format!("syscap {}", self.set.0), "message": message, "color": color})
    }
}
