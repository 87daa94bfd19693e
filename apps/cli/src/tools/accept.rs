//! `syscap tools accept`.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{ObjectId, Role, Seq, ToolId};
use syscap::provide::Standing;
use syscap::view::{ToolDetail, ToolInfo};
use syscap::{Beside, Error, Inspection, Runtime};

use super::seen::{changed, delegated, names, to_accept};
use super::{show, words};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Object, Out};
use crate::signing::{self, Hand};
use crate::{parse, runtime, terminal};

/// Which definitions to put on record.
#[derive(Args, Debug)]
#[command(after_long_help = "\
The process that holds the home knows what is offered: it must be there, and so must the process
that offers the tool. =MANIFEST is the id that `tools show` names: nothing else is accepted than
what was looked at. Without it the difference is printed and a terminal asks whether to accept it;
where there is no terminal nothing is accepted.

--own puts the tools that this program has itself on record, where others are there and the
operator's key is sealed: until then every call is refused.")]
pub(crate) struct Accept {
    /// The home.
    home: PathBuf,
    /// The tools.
    #[arg(value_name = "TOOL[=MANIFEST]", value_parser = parse::definition,
          required_unless_present = "own")]
    tools: Vec<(ToolId, Option<ObjectId>)>,
    /// Accept only what differs in words, titles and descriptions, from the definition on record: it is
    /// shown, and nobody is asked. What changes arguments, class or resources is not accepted.
    #[arg(long, conflicts_with = "own")]
    words: bool,
    /// The tools that this program has itself.
    #[arg(long, conflicts_with = "tools")]
    own: bool,
}

impl Accept {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        if self.own {
            return self.own(out);
        }
        let attached = runtime::connected(&self.home).map_err(Failure::home(&self.home))?;
        let access = attached.ok_or_else(|| Failure::Nobody {
            folder: self.home.clone(),
            why: "nobody offers a definition; start what offers the tool first",
        })?;
        let mut accepted: Vec<(ToolId, ObjectId)> = Vec::new();
        let mut details = Vec::new();
        let log = runtime::look(&self.home)?;
        for (tool, looked_at) in &self.tools {
            let detail = to_accept(&log, tool, delegated(&access, tool)?)?;
            let offered = offered(&detail.info, *looked_at)?;
            let tool = &detail.info.tool;
            if accepted.iter().any(|(named, _)| named == tool) {
                let advice = "name each tool once".to_owned();
                return Err(Failure::Usage { what: tool.to_string(), advice });
            }
            let is_words = |new| {
                detail.info.standing == Standing::Changed && words::are_all(&detail.manifest, new)
            };
            if self.words && !detail.offered.as_ref().is_some_and(is_words) {
                let advice = "differs in more than words: look at it with `syscap tools show`";
                let (what, advice) = (tool.to_string(), advice.to_owned());
                return Err(Failure::Usage { what, advice });
            }
            accepted.push((tool.clone(), offered));
            details.push(detail);
        }
        let is_named = self.words || self.tools.iter().all(|(_, looked_at)| looked_at.is_some());
        if !is_named && !terminal::is_there() {
            return Err(self.nobody_to_ask(&details));
        }
        // Who is asked at a terminal reads it there, wherever standard output goes.
        let mut aside = Out::aside();
        show_all(&details, if is_named { out } else { &mut aside })?;
        if !is_named && !agree(&details)? {
            return Ok(Exit::Failed);
        }
        let seq = record(&self.home, &access, &accepted)?;
        let tools: Vec<ToolId> = accepted.into_iter().map(|(tool, _)| tool).collect();
        let json = Object::new().json("tools", &names(&tools)).uint("record", seq.get());
        out.both(&format!("accepted by record {seq}"), json)?;
        Ok(Exit::Done)
    }

    /// Without a person to ask, the accepted manifest must be named.
    fn nobody_to_ask(&self, details: &[ToolDetail]) -> Failure {
        let named = details.iter().filter_map(|detail| {
            Some(show::command(&self.home, &detail.info.tool, detail.offered.as_ref()?))
        });
        let named: Vec<String> = named.collect();
        let advice = format!(
            "and there is no terminal to ask at; look at it with `syscap tools show`, then name \
             what was shown: {}",
            named.join("; ")
        );
        Failure::Usage { what: "no definition was named".to_owned(), advice }
    }

    /// If no person has to be asked it is on record as soon as the home is opened.
    fn own(self, out: &mut Out) -> Ended {
        let change = |log: &Inspection| {
            log.own_tools_change().ok_or_else(|| Failure::Usage {
                what: "--own".to_owned(),
                advice: "the tools of syscap itself are on record; a program that has others puts \
                         them there by opening the home with keys that it can ask for: \
                         docs/keys.md"
                    .to_owned(),
            })
        };
        change(&runtime::look(&self.home)?)?;
        let hand = signing::hand(&self.home, Role::Operator)?;
        runtime::with(&self.home, |access| {
            let Hand::Person(person) = &hand else { return Ok(()) };
            person.submit(access, change, &Beside::OwnTools, Failure::from).map(drop)
        })?;
        let tools = runtime::look(&self.home)?;
        let tools = tools.kernel().tools_hash().map_or("none".to_owned(), |hash| hash.to_string());
        let json = Object::new().text("tools", &tools);
        out.both(&format!("on record: {tools}"), json)?;
        Ok(Exit::Done)
    }
}

/// Puts these definitions on record; a person is asked for the operator's passphrase, where it is sealed.
pub(crate) fn record(
    home: &Path,
    access: &Runtime,
    accepted: &[(ToolId, ObjectId)],
) -> Result<Seq, Failure> {
    let other = |error| match error {
        Error::NoSuch { got, .. } => Failure::Usage { what: got, advice: OTHER.to_owned() },
        error => error.into(),
    };
    match signing::hand(home, Role::Operator)? {
        Hand::Holder => access.accept_as(accepted).map_err(other),
        Hand::Person(person) => {
            let change = |log: &Inspection| changed(log.tools_change(accepted, &[]));
            let beside = Beside::Accepted(accepted.to_vec());
            person.submit(access, change, &beside, other)
        }
    }
}

/// Asks a person who was shown the definitions to accept them.
fn agree(shown: &[ToolDetail]) -> Result<bool, Failure> {
    let what = match shown {
        [one] => one.info.tool.to_string(),
        several => format!("these {} definitions", several.len()),
    };
    let question = format!("Accept {what} as shown? y, n: ");
    let answer = terminal::ask_shown(&question).map_err(Failure::Stream)?;
    Ok(matches!(answer.trim(), "y" | "yes"))
}

/// Shows what is to be accepted, and nothing but that is.
fn show_all(details: &[ToolDetail], out: &mut Out) -> Result<(), Failure> {
    for detail in details {
        out.text(&format!("{}:", detail.info.tool))?;
        show::changes(detail, out)?;
        if detail.info.standing == Standing::New {
            show::whole(detail, out)?;
        }
    }
    out.flush()
}

/// Said where what was looked at is not what is there any more.
const OTHER: &str = "another definition is offered than was looked at; see `syscap tools show`";

/// The offer in a tool's place.
fn offered(info: &ToolInfo, looked_at: Option<ObjectId>) -> Result<ObjectId, Failure> {
    let usage = |advice: &str| {
        Err(Failure::Usage { what: info.tool.to_string(), advice: advice.to_owned() })
    };
    let Some(offered) = info.offered else {
        return usage(match info.provided {
            true => "what is offered is what is on record",
            false => "nobody offers it at present",
        });
    };
    if looked_at.is_some_and(|seen| seen != offered) { usage(OTHER) } else { Ok(offered) }
}
