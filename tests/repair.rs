//! Refusals are repairable: a scripted model, that sees its call and the error object only, mends
//! at least nine in ten of what a caller can mend at the first retry, and gives up on the rest.

pub(crate) mod cases;
mod change;
mod model;
mod text;
pub(crate) mod world;

use std::{collections::BTreeSet, sync::OnceLock, thread};

use self::{
    cases::{Case, Then, all},
    model::repair,
    world::{MARK, World},
};
use serde_json::Value;
use syscap::prelude::Reason;

/// What became of a case.
struct Outcome {
    name: &'static str,
    reason: Option<Reason>,
    expected: Reason,
    is_repairable: bool,
    sent: String,
    error: Value,
    /// The call as it was sent again, the answer, and whether it did what was meant.
    retried: Option<(String, Value, bool)>,
}

impl Outcome {
    fn is_repaired(&self) -> bool {
        self.retried.as_ref().is_some_and(|(_, _, right)| *right)
    }
}

fn run(case: &Case) -> Outcome {
    let world = World::new(&case.policy);
    let sent = (case.call)(&world);
    let (reason, error) = world.send(&sent);
    // What a model sent is a value to it; where it was no JSON, it is its text.
    let call = serde_json::from_str(&sent).unwrap_or_else(|_| Value::from(sent.as_str()));
    let retried = repair(&call, &error).map(|call| {
        let text = call.to_string();
        let (reason, answer) = world.send(&text);
        let right = match case.then {
            Then::Repair(check) => reason.is_none() && check(&world, &answer),
            Then::GiveUp => false,
        };
        (text, answer, right)
    });
    let is_repairable = matches!(case.then, Then::Repair(_));
    let (name, expected) = (case.name, case.reason);
    world.runtime.close().unwrap();
    Outcome { name, reason, expected, is_repairable, sent, error, retried }
}

/// All cases, each in a home of its own, run once for all tests.
fn outcomes() -> &'static [Outcome] {
    static OUTCOMES: OnceLock<Vec<Outcome>> = OnceLock::new();
    OUTCOMES.get_or_init(|| {
        let cases = all();
        let halves = cases.split_at(cases.len() / 2);
        thread::scope(|scope| {
            let other = scope.spawn(|| halves.1.iter().map(run).collect::<Vec<_>>());
            let mut outcomes: Vec<Outcome> = halves.0.iter().map(run).collect();
            outcomes.extend(other.join().unwrap());
            outcomes
        })
    })
}

fn short(text: &str) -> &str {
    change::shortened(text, 300)
}

#[test]
fn every_case_is_refused_for_its_reason() {
    let outcomes = outcomes();
    assert!(outcomes.len() >= 75, "{} cases", outcomes.len());
    let names: BTreeSet<&str> = outcomes.iter().map(|outcome| outcome.name).collect();
    assert_eq!(names.len(), outcomes.len(), "two cases of one name");
    let wrong = outcomes.iter().filter(|outcome| outcome.reason != Some(outcome.expected));
    let wrong: Vec<String> = wrong
        .map(|o| format!("{}: {:?}, not {:?}: {}", o.name, o.reason, o.expected, o.error))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn nine_in_ten_are_repaired_in_one_retry() {
    let repairable: Vec<&Outcome> = outcomes().iter().filter(|o| o.is_repairable).collect();
    let failed: Vec<&&Outcome> = repairable.iter().filter(|o| !o.is_repaired()).collect();
    let repaired = repairable.len() - failed.len();
    println!("repaired in one retry: {repaired} of {}", repairable.len());
    for outcome in &failed {
        println!("\n{} ({}):", outcome.name, outcome.expected);
        println!("  sent     {}", short(&outcome.sent));
        println!("  told     {}", outcome.error);
        match &outcome.retried {
            Some((text, answer, _)) => {
                println!("  retried  {}\n  answered {}", short(text), short(&answer.to_string()));
            }
            None => println!("  gave up"),
        }
    }
    assert!(repaired * 10 >= repairable.len() * 9, "{repaired} of {}", repairable.len());
}

/// `wait`, `ask` and `never` end the matter, and say so; what is repairable says `fix`.
#[test]
fn the_model_gives_up_where_it_should() {
    for outcome in outcomes() {
        let retry = outcome.error["retry"].as_str().unwrap();
        assert_eq!(retry == "fix", outcome.is_repairable, "{}: {retry}", outcome.name);
        if !outcome.is_repairable {
            assert!(outcome.retried.is_none(), "{}", outcome.name);
        }
    }
}

/// Constants of denies, other agents, their tokens' scopes, contents and names of files, facts:
/// none of it stands in what a caller is told.
#[test]
fn no_error_leaks() {
    // The search finds what is there: a path into another's workspace is shown to its caller.
    let own = |outcome: &Outcome| outcome.error["got"].to_string().contains(MARK);
    assert!(outcomes().iter().any(own));
    for outcome in outcomes() {
        let sent = outcome.sent.contains(MARK);
        let answers = outcome.retried.iter().map(|(_, answer, _)| answer);
        for told in [&outcome.error].into_iter().chain(answers) {
            for (key, value) in told.as_object().into_iter().flatten() {
                // What the caller wrote itself is shown to it as `got`.
                let own = sent && key == "got";
                let leaks = value.to_string().contains(MARK);
                // A listing that succeeded shows what the token lets be read.
                let is_error = told.get("retry").is_some();
                assert!(!leaks || own || !is_error, "{}: {told}", outcome.name);
            }
        }
    }
}
