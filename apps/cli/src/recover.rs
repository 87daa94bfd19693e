//! `syscap recover`: calls that a crash broke off, and what became of them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use syscap::audit::{LockState, SqliteReader};
use syscap::format::{Recovered, Resolution, Role, Seq, ToolId, json};
use syscap::{Beside, Inspection, Unresolved};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Form, Object, Out, quote};
use crate::{runtime, signing};

/// How many characters of the arguments a row shows.
const ARGS_MAX: usize = 120;

/// A command on interrupted calls.
#[derive(Debug, Subcommand)]
pub(crate) enum Recover {
    /// List the calls of which nobody knows what became. Works beside the process that holds the
    /// home.
    List(List),
    /// Say what became of one: its idempotency key follows that.
    Resolve(Resolve),
}

impl Recover {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        match self {
            Self::List(list) => list.run(out),
            Self::Resolve(resolve) => resolve.run(out),
        }
    }
}

/// Which home.
#[derive(Args, Debug)]
#[command(after_long_help = "\
When a home is opened after a crash, each call that was running is closed. What only reads was not
done; of the rest a tool may be able to prove what became of it, as fs.write by its temporary file.
What is listed here nobody could prove: it is charged in full, and its key is refused until an
operator has looked and says it by `syscap recover resolve`. What only another program's tool can
prove is left open for that program, and said on standard error.")]
pub(crate) struct List {
    /// The home.
    home: PathBuf,
    /// Also close as unknown what only another program could ask its tool about.
    #[arg(long)]
    anyway: bool,
}

impl List {
    fn run(self, out: &mut Out) -> Ended {
        let mut log = runtime::look(&self.home)?;
        let unasked = if self.anyway { Vec::new() } else { self.unasked(&log)? };
        for (intent, tool) in &unasked {
            tell(&format!(
                "{intent} was broken off, and {tool} is another program's tool: open the home by \
                 that program first, which asks the tool what became of it; with --anyway it is \
                 unknown"
            ));
        }
        if unasked.is_empty() && !log.kernel().open_intents().is_empty() {
            // They run, or nobody has opened the home since they were broken off.
            runtime::with(&self.home, |_| Ok(()))?;
            log = runtime::look(&self.home)?;
        }
        for call in log.unresolved()? {
            match out.form() {
                Form::Text => out.line(&row(&call))?,
                Form::Json => out.line(&object(&call).finish())?,
            }
        }
        Ok(Exit::Done)
    }
}

impl List {
    /// The calls that would be closed as unknown if this program were the first that opens the
    /// home.
    fn unasked(&self, log: &Inspection) -> Result<Vec<(Seq, ToolId)>, Failure> {
        let missing = |error| Failure::home(&self.home)(syscap::Error::Home(error));
        let reader = SqliteReader::open(&self.home).map_err(missing)?;
        match reader.lock_state().map_err(missing)? {
            LockState::Free => Ok(log.unasked()?),
            LockState::Held => Ok(Vec::new()),
        }
    }
}

fn row(call: &Unresolved) -> String {
    let none = || "-".to_owned();
    let (agent, tool) = (
        call.agent.as_ref().map_or_else(none, ToString::to_string),
        call.tool.as_ref().map_or_else(none, ToString::to_string),
    );
    let key = call.key.as_ref().map_or_else(none, ToString::to_string);
    let args = match &call.args {
        Some(args) => short(&json::from_data(args.item())),
        None => "(erased)".to_owned(),
    };
    let (intent, time) = (call.intent, call.time.to_string());
    let undone = call.compensated_by.as_ref();
    let undone = undone.map(|tool| format!("  (undone by {tool})")).unwrap_or_default();
    format!("{intent:>7}  {time:<24}  {agent:<16}  {tool:<12}  {key:<16}  {args}{undone}")
}

fn short(text: &str) -> String {
    match text.char_indices().nth(ARGS_MAX) {
        Some((end, _)) => format!("{}..", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

fn object(call: &Unresolved) -> Object {
    let text = |text: Option<String>| text.map_or("null".to_owned(), |text| quote(&text));
    let args = call.args.as_ref().map(|args| json::from_data(args.item()));
    Object::new()
        .uint("intent", call.intent.get())
        .shown("time", call.time)
        .json("agent", &text(call.agent.as_ref().map(ToString::to_string)))
        .json("tool", &text(call.tool.as_ref().map(ToString::to_string)))
        .json("key", &text(call.key.as_ref().map(ToString::to_string)))
        .amounts("charged", &call.held)
        .json("args", args.as_deref().unwrap_or("null"))
        .json("compensated_by", &text(call.compensated_by.as_ref().map(ToString::to_string)))
}

/// Which call, and what became of it.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Signed by the operator, and said once. `not-done` frees the call's idempotency key: the same call
runs if it is sent again. `done` does not: a repeat is told that it was done and that its result is
lost. What the call was charged stands either way.")]
pub(crate) struct Resolve {
    /// The home.
    home: PathBuf,
    /// The call, by its intent's number, as `syscap recover list` shows it.
    intent: u64,
    /// The outcome of the call.
    #[arg(value_enum)]
    verdict: Verdict,
}

/// An operator's statement about a call.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Verdict {
    /// Its effect was made.
    Done,
    /// Its effect was not made.
    NotDone,
}

impl Resolve {
    fn run(self, out: &mut Out) -> Ended {
        let intent = Seq::new(self.intent);
        let verdict = match self.verdict {
            Verdict::Done => Recovered::Done,
            Verdict::NotDone => Recovered::NotDone,
        };
        let resolution = |log: &Inspection| {
            if log.kernel().unresolved().contains(&intent) {
                return Ok(Resolution { intent, verdict });
            }
            let advice = "is no call of which nothing is known; see `syscap recover list`";
            Err(Failure::Usage { what: intent.to_string(), advice: advice.to_owned() })
        };
        // Where nobody holds the home this closes what the last holder left open.
        let person = signing::own(&self.home, Role::Operator)?;
        let seq = runtime::with(&self.home, |access| {
            person.submit(access, resolution, &Beside::Nothing, Failure::from)
        })?;
        let json = Object::new()
            .uint("intent", self.intent)
            .text("verdict", verdict.name())
            .uint("record", seq.get());
        out.both(&format!("{intent}: {verdict} by record {seq}"), json)?;
        Ok(Exit::Done)
    }
}
