//! The stage of the demo, and its actors.

use std::time::Duration;

use syscap::format::{Budget, Dimension, Item, Reason, Seq, ToolResult};
use syscap::{Grant, Runtime, Session};

use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out, word_of};

/// How long the token lives that is to expire.
pub(super) const SHORT_LIFE: Duration = Duration::from_millis(200);

/// The expected result of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expected {
    Ok,
    Refused(Reason),
}

/// The stage of the demo, and the attempts that went wrong.
pub(super) struct Stage<'a> {
    pub(super) out: &'a mut Out,
    rows: u32,
    ran: u32,
    wrong: u32,
}

impl<'a> Stage<'a> {
    pub(super) const fn new(out: &'a mut Out) -> Self {
        Self { out, rows: 0, ran: 0, wrong: 0 }
    }

    /// One attempt: what was tried, what happened, why, and where it stands in the log.
    pub(super) fn attempt(
        &mut self,
        tried: &str,
        expected: Expected,
        result: &ToolResult,
    ) -> Result<(), Failure> {
        let kind = result.delivered().item().get("kind").and_then(Item::as_text);
        let happened = match result.reason() {
            None => "ok",
            Some(_) => kind.unwrap_or("failed"),
        };
        self.row(tried, expected, happened, result.reason(), result.receipt().outcome_seq)
    }

    pub(super) fn row(
        &mut self,
        tried: &str,
        expected: Expected,
        happened: &str,
        reason: Option<Reason>,
        record: Seq,
    ) -> Result<(), Failure> {
        self.rows = self.rows.saturating_add(1);
        let wanted = match expected {
            Expected::Ok => None,
            Expected::Refused(reason) => Some(reason),
        };
        self.ran = self.ran.saturating_add(u32::from(reason.is_none()));
        let name = reason.map_or("", Reason::name);
        let as_expected = self.check(wanted == reason);
        let text = format!(
            "{:>2}  {tried:<52} {happened:<8} {name:<16} record {record}{}",
            self.rows,
            if as_expected { "" } else { "  NOT AS IT MUST BE" }
        );
        let json = Object::new()
            .uint("step", u64::from(self.rows))
            .text("tried", tried)
            .text("happened", happened)
            .json("reason", &reason.map_or("null".to_owned(), |r| crate::output::quote(r.name())))
            .uint("record", record.get())
            .flag("as_expected", as_expected);
        self.out.both(text.trim_end(), json)?;
        self.out.flush()
    }

    /// Something that was looked at outside the kernel.
    pub(super) fn fact(
        &mut self,
        what: &str,
        says: &str,
        as_expected: bool,
    ) -> Result<(), Failure> {
        self.check(as_expected);
        let mark = if as_expected { "" } else { "  NOT AS IT MUST BE" };
        let json =
            Object::new().text("fact", what).text("says", says).flag("as_expected", as_expected);
        self.out.both(&format!("    {what}: {says}{mark}"), json)
    }

    fn check(&mut self, as_expected: bool) -> bool {
        self.wrong = self.wrong.saturating_add(u32::from(!as_expected));
        as_expected
    }

    pub(super) fn end(self, kept: Option<&std::path::Path>) -> Ended {
        let (rows, wrong) = (self.rows, self.wrong);
        let json = Object::new().uint("steps", rows.into()).uint("unexpected", wrong.into());
        let json = kept.map_or(json.clone(), |home| json.shown("home", home.display()));
        let mut lines = match wrong {
            0 => vec![
                format!("all {rows} calls ended as they must: {} ran, {} refused", self.ran, rows.saturating_sub(self.ran)),
                "refused: paths outside the token's folders, other agents' tokens, malformed calls,".to_owned(),
                "  calls over budget, calls after expiry and revocation; a changed log was found".to_owned(),
            ],
            wrong => vec![format!("{wrong} things did not happen as they must")],
        };
        lines.push(match kept {
            Some(home) => format!("next: syscap log show {}", word_of(home)),
            None => "next: syscap init home".to_owned(),
        });
        self.out.all(&lines, json)?;
        Ok(if wrong == 0 { Exit::Done } else { Exit::Failed })
    }
}

/// The agents of the demo: each with a token of its own kind.
pub(super) struct Cast {
    pub(super) researcher: Session,
    pub(super) intern: Session,
    pub(super) frugal: Session,
    pub(super) hasty: Session,
}

impl Cast {
    pub(super) fn new(runtime: &Runtime) -> Result<Self, Failure> {
        let all = ["fs.read", "fs.write", "fs.list", "echo", "current_time"];
        let researcher = Grant::to("researcher").tools(all).workspace().read("shared");
        let intern = Grant::to("intern").tools(["fs.read"]).workspace();
        let budget =
            Budget::standard().with(Dimension::Calls, 3).with(Dimension::DiskWriteBytes, 16);
        let frugal = Grant::to("frugal").tools(["fs.write"]).workspace().budget(budget);
        let hasty = Grant::to("hasty").tools(["echo"]).expires_in(SHORT_LIFE);
        let seat = |agent: &str, grant| runtime.session(agent, runtime.issue(grant)?);
        Ok(Self {
            researcher: seat("researcher", researcher)?,
            intern: seat("intern", intern)?,
            frugal: seat("frugal", frugal)?,
            hasty: seat("hasty", hasty)?,
        })
    }
}
