//! `syscap call`: JSON lines in, one result a line out.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::PathBuf;

use clap::Args;
use syscap::artifact::{Cut, Short};
use syscap::format::{AgentId, Item, Reason, TokenId, ToolResult, json};
use syscap::{Session, Written};

use crate::exit::{Ended, Exit, Failure};
use crate::lines::{self, Read};
use crate::output::{Object, Out, with_hex};
use crate::starter::{self, Presence};
use crate::token::TokenName;
use crate::{artifacts, lane, parse, recording, runtime};

/// The agent, and the source of its calls.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Each line is a whole envelope, or {\"tool_id\": ..., \"args\": {...}}; blank lines are skipped.
A line that is no envelope is refused, on the record. Whoever writes a line sets all of its
fields: don't paste a model's arguments into one; programs have `Call::json` for them.
Each answer is printed as soon as it is durable. Where nobody serves the home a server is started,
which ends with the last client. Ids and hashes in it (result_hash, state_snapshot_id, the receipt's log
and leaves) are hexadecimal text;
byte strings in results are {\"$bytes\": base64}.")]
pub(crate) struct Call {
    /// The home.
    home: PathBuf,
    /// The agent that calls.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Its token.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    token: TokenName,
    #[command(flatten)]
    people: runtime::People,
    /// Print each answer in short: what `artifacts list --json` says of it. The whole of a result
    /// stays in the vault: `artifacts show` has it, and `result.page` for who calls.
    #[arg(long)]
    short: bool,
    /// The calls; standard input where it is - or left out.
    #[arg(default_value = "-")]
    file: PathBuf,
}

impl Call {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        // Before the home is opened: a file that is missing is no matter for the log.
        let mut input: Box<dyn BufRead + Send> = if self.file.as_os_str() == "-" {
            Box::new(BufReader::new(io::stdin()))
        } else {
            let file = File::open(&self.file).map_err(Failure::file(&self.file))?;
            Box::new(BufReader::new(file))
        };
        if lane::is_here() {
            let service = if self.short { lane::Service::CallShort } else { lane::Service::Call };
            return by_lane(service, input);
        }
        let access = starter::reach(&self.home, self.people, Presence::Stays)?;
        runtime::finish(access, |access| {
            recording::warn_of_recording(access)?;
            let named = self.token.of(&self.home)?;
            let open = |token| runtime::session(access, &self.agent, token);
            let mut caller = open(runtime::going_on(access, named)?)?;
            let next = |now: TokenId| match runtime::going_on(access, named)? {
                // The named one can be used no more.
                token if token == now || token == named => Ok(None),
                token => open(token).map(Some),
            };
            answer_all(&mut caller, next, &mut input, self.printed(), out)?;
            caller.close()?;
            Ok(Exit::Done)
        })
    }
}

/// Within `syscap run` what is called outside answers.
pub(crate) fn by_lane(service: lane::Service, input: impl io::Read + Send + 'static) -> Ended {
    match lane::forward(service, input, lane::pass) {
        Ok(code) => Ok(Exit::Program(code)),
        Err(problem) => Err(Failure::Lane(problem)),
    }
}

impl Call {
    const fn printed(&self) -> Printed {
        if self.short { Printed::Short } else { Printed::Whole }
    }
}

/// How much of an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Printed {
    Whole,
    Short,
}

/// Answers every line before the next one is read. What is refused since the token was revoked did
/// not run: it is sent again by the token that took its place, if there is one.
fn answer_all(
    caller: &mut Session,
    next: impl Fn(TokenId) -> Result<Option<Session>, Failure>,
    input: &mut impl BufRead,
    printed: Printed,
    out: &mut Out,
) -> Result<(), Failure> {
    let mut line = Vec::new();
    while lines::read(input, &mut line).map_err(Failure::Stream)? == Read::Line {
        if lines::is_blank(&line) {
            continue;
        }
        let mut answer = caller.envelope(&line, Written::Json).wait()?;
        if answer.reason() == Some(Reason::Revoked)
            && let Some(next) = next(caller.token())?
        {
            std::mem::replace(caller, next).close()?;
            answer = caller.envelope(&line, Written::Json).wait()?;
        }
        out.line(&match printed {
            Printed::Whole => envelope(&answer),
            Printed::Short => artifacts::short(&Short::of(&answer, Cut::default())).finish(),
        })?;
        out.flush()?;
    }
    Ok(())
}

/// An answer's envelope as JSON, ids and hashes as hexadecimal text.
fn envelope(answer: &ToolResult) -> String {
    let mut object = Object::new();
    for (key, value) in answer.to_canonical().item().entries() {
        let value = match key {
            "result" | "error" => json::from_data(value),
            "receipt" => receipt(value),
            _ => with_hex(value),
        };
        object = object.json(key, &value);
    }
    object.finish()
}

fn receipt(receipt: Item<'_>) -> String {
    receipt.entries().fold(Object::new(), |o, (key, value)| o.json(key, &with_hex(value))).finish()
}
