//! `syscap policy test`.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::analysis::table::{
    self, Failure as Failed, Report, TABLE_BYTES_MAX, Table, TableError,
};
use syscap::policy::Preset;

use super::json;
use super::target::{Target, is_text, located, parse, read, unsound};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array};
use crate::parse as words;

/// Which document, and which cases.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A table is {\"v\": 1, \"cases\": [{\"name\", \"given\", \"verdict\", \"deciding\"?, \
\"obligations\"?, \"matches\"?}, ..]};
`given` is a call as `policy explain` takes it. Exit codes: 0 all pass, and what is asked for
besides holds; else 1.")]
pub(crate) struct Test {
    /// A file or preset:NAME.
    #[arg(value_name = "FILE|preset:NAME")]
    document: PathBuf,
    /// The table; a preset has its own.
    table: Option<PathBuf>,
    /// Also change the document in small ways, and say which changes no case notices.
    #[arg(long)]
    mutants: bool,
    /// Fail where fewer of these changes are noticed; those without effect don't count.
    #[arg(long, value_name = "PERCENT", value_parser = words::percent)]
    min_score: Option<u64>,
    /// Fail where a constraint matched and decided in no case, or a test was seen one way only.
    #[arg(long)]
    coverage: bool,
}

impl Test {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (target, bytes) = Target::document(&self.document)?;
        let table = match (&self.table, &target) {
            (Some(file), _) => from_file(file)?,
            (None, Target::Preset(preset)) => of_preset(*preset)?,
            (None, _) => {
                let what = self.document.display().to_string();
                let advice = "name a table: only a preset has one of its own".to_owned();
                return Err(Failure::Usage { what, advice });
            }
        };
        let policy = parse(&bytes).map_err(unsound(&self.document))?;
        let shown = self.mutants || self.min_score.is_some();
        // Changes are tried where they are asked about: it is most of the work.
        let run = if shown { table::run } else { table::run_as_written };
        let report = run(policy.written(), &table);
        let printed = match out.form() {
            Form::Text => text(out, &report, shown),
            Form::Json => out.line(&report_json(&report, shown)),
        };
        let score = u64::try_from(report.mutation.permille()).unwrap_or(0);
        let scored = self.min_score.is_none_or(|least| score >= least.saturating_mul(10));
        let covered = !self.coverage || is_covered(&report);
        let passed = report.is_passed() && scored && covered;
        out.conclude(printed, if passed { Exit::Done } else { Exit::Failed })
    }
}

fn from_file(file: &Path) -> Result<Table, Failure> {
    let bytes = read(file, TABLE_BYTES_MAX)?;
    let table = if is_text(&bytes) { Table::from_json(&bytes) } else { Table::from_cbor(&bytes) };
    table.map_err(|mut error| {
        error.place = located(&bytes, &error.place).into();
        bad(&file.display().to_string(), &error)
    })
}

fn of_preset(preset: Preset) -> Result<Table, Failure> {
    let table = Table::from_json(preset.table().as_bytes());
    table.map_err(|error| bad(&format!("preset:{preset}"), &error))
}

fn bad(name: &str, TableError { fault, key, place }: &TableError) -> Failure {
    let place = if place.is_empty() { String::new() } else { format!("{place}: ") };
    let key = if key.is_empty() { String::new() } else { format!(" ({key})") };
    Failure::Policy { what: name.to_owned(), problem: format!("{place}{fault}{key}") }
}

/// True if every constraint matched or decided, and every test was seen both ways.
fn is_covered(report: &Report) -> bool {
    let (tests, both) = report.tests();
    tests == both && report.coverage.iter().all(|one| one.matched > 0 || one.decided > 0)
}

fn text(out: &mut Out, report: &Report, with_mutants: bool) -> Result<(), Failure> {
    let failed = report.failures.len();
    let passed = report.cases.saturating_sub(failed);
    out.line(&format!("{} cases, {passed} passed, {failed} failed", report.cases))?;
    for failure in &report.failures {
        out.line(&format!("failed {}: {}", failure.name, told(failure)))?;
    }
    let seen = report.coverage.iter().filter(|one| one.matched > 0 || one.decided > 0).count();
    let (constraints, (tests, both)) = (report.coverage.len(), report.tests());
    out.line(&format!(
        "{seen} of {constraints} constraints matched or decided, {both} of {tests} tests seen \
         both ways"
    ))?;
    for one in &report.coverage {
        if one.matched == 0 && one.decided == 0 {
            out.line(&format!("not covered {}: it never matched", one.id))?;
        }
        for (n, test) in one.tests.iter().enumerate().filter(|(_, test)| !test.is_covered()) {
            let seen = match (test.held, test.not_held) {
                (0, 0) => "was never seen",
                (0, _) => "never held",
                _ => "always held",
            };
            let attribute = &test.test.attribute;
            out.line(&format!("not covered {}: test {n}, of {attribute}, {seen}", one.id))?;
        }
    }
    if !with_mutants {
        return Ok(());
    }
    let mutation = &report.mutation;
    let score = mutation.permille();
    out.line(&format!(
        "score {}.{} %: {} changes noticed, {} not, {} without effect",
        score.div_euclid(10),
        score.rem_euclid(10),
        mutation.killed,
        mutation.survivors.len(),
        mutation.equivalent
    ))?;
    mutation.survivors.iter().try_for_each(|survivor| {
        out.line(&format!("not noticed {}: {}", survivor.constraint, survivor.change))
    })
}

/// The expected outcome of a case, as far as it says, and the actual one.
fn told(Failed { expected, got, .. }: &Failed) -> String {
    let mut text = format!("expected {}", expected.verdict);
    match &expected.deciding {
        None => {}
        Some(None) => text.push_str(" by default"),
        Some(Some(id)) => text.push_str(&format!(" by {id}")),
    }
    let list = |names: Vec<String>| {
        if names.is_empty() { "nothing".to_owned() } else { names.join(", ") }
    };
    if let Some(asked) = &expected.obligations {
        text.push_str(&format!(", with {}", list(asked.iter().map(|o| o.to_string()).collect())));
    }
    if let Some(ids) = &expected.matches {
        text.push_str(&format!(", of {}", list(ids.iter().map(|id| id.to_string()).collect())));
    }
    let said = json::said(got.verdict, got.deciding.as_ref(), &got.obligations);
    text.push_str(&format!("; got {said}"));
    if expected.matches.is_some() {
        let ids = got.matches.iter().map(|id| id.to_string()).collect();
        text.push_str(&format!(", of {}", list(ids)));
    }
    text
}

fn report_json(report: &Report, with_mutants: bool) -> String {
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    let failures = report.failures.iter().map(|failure| {
        Object::new()
            .text("name", &failure.name)
            .json("expected", &json::expected(&failure.expected))
            .json("got", &json::outcome(&failure.got))
            .finish()
    });
    let coverage = report.coverage.iter().map(|one| {
        let tests = one.tests.iter().map(|test| {
            Object::new()
                .shown("attribute", &test.test.attribute)
                .uint("held", count(test.held))
                .uint("not_held", count(test.not_held))
                .finish()
        });
        Object::new()
            .shown("id", &one.id)
            .uint("matched", count(one.matched))
            .uint("decided", count(one.decided))
            .json("tests", &array(tests))
            .finish()
    });
    let mutation = &report.mutation;
    let survivors = mutation.survivors.iter().map(|survivor| {
        Object::new()
            .shown("constraint", &survivor.constraint)
            .shown("change", &survivor.change)
            .finish()
    });
    let object = Object::new()
        .uint("cases", count(report.cases))
        .json("failures", &array(failures))
        .flag("covered", is_covered(report))
        .json("coverage", &array(coverage));
    if !with_mutants {
        return object.finish();
    }
    let mutation = Object::new()
        .uint("permille", count(mutation.permille()))
        .uint("noticed", count(mutation.killed))
        .uint("without_effect", count(mutation.equivalent))
        .json("survivors", &array(survivors));
    object.json("mutation", &mutation.finish()).finish()
}
