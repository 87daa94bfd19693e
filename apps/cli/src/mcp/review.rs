//! The first look at a server: what it offers, what each tool is proposed to count as and why; and
//! one question, after which that is on record.
//!
//! The servers have ended before anything is asked: none of them writes beside the question.

use std::path::Path;

use syscap::Runtime;
use syscap::format::{EffectClass, Manifest, Role, ToolId};
use syscap::syscalls::stated::{Stated, Unlimited};
use syscap_gateway::{ClassRule, Options, Proposed};

use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out, array, word_of};
use crate::signing::{self, Hand};
use crate::tools::stated::{not_limited, record};
use crate::{runtime, terminal};

/// How often it is asked again.
const QUESTIONS_MAX: u32 = 64;
/// Longest title of a tool that is shown, in characters.
const TITLE_MAX: usize = 60;

/// How it is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Confirmed {
    /// A person at the terminal is asked.
    Asked,
    /// It was said beforehand: what the servers say is taken as it is.
    Beforehand,
}

/// A tool under review.
struct Row {
    proposed: Proposed,
    recorded: Option<Manifest>,
}

impl Row {
    /// True if another definition is on record: then that is to be accepted first.
    fn is_changed(&self) -> bool {
        let recorded = self.recorded.as_ref();
        recorded.is_some_and(|recorded| recorded.definition != self.proposed.manifest.definition)
    }

    /// The class that a person has set.
    fn set(&self) -> Option<EffectClass> {
        self.recorded.as_ref().and_then(|recorded| Stated::of(recorded).ok()?.class)
    }

    fn why(&self) -> &'static str {
        match (self.is_changed(), self.set()) {
            (true, _) => "another definition is on record: see `syscap tools accept`",
            (false, Some(_)) => "set before",
            (false, None) => self.proposed.because.words(),
        }
    }

    fn class(&self) -> EffectClass {
        self.set().unwrap_or_else(|| self.proposed.class())
    }

    /// The arguments that nothing limits: by what is on record, where it is.
    fn unlimited(&self) -> Vec<Unlimited> {
        Unlimited::of(self.recorded.as_ref().unwrap_or(&self.proposed.manifest))
    }

    /// Its manifest as it comes on record; `None` where it is there so, or must be accepted first.
    fn to_record(&self) -> Option<Manifest> {
        if self.is_changed() || self.set().is_some() {
            return None;
        }
        let manifest = self.recorded.as_ref().unwrap_or(&self.proposed.manifest);
        let mut stated = Stated::of(manifest).ok()?;
        stated.class = Some(self.class());
        stated.on(manifest).ok()
    }
}

/// True if nothing of these servers is on record yet.
pub(crate) fn is_first(home: &Path, options: &Options) -> Result<bool, Failure> {
    let log = runtime::look(home)?;
    let of = |tool: &ToolId| {
        let server = tool.as_str().split('.').next();
        options.servers.iter().any(|known| Some(known.name.as_str()) == server)
    };
    let known = log.kernel().manifests().any(|manifest| of(&manifest.tool));
    Ok(!options.servers.is_empty() && !known)
}

/// Shows what the servers offer, and has it put on record where that is confirmed.
pub(crate) fn review(
    home: &Path,
    mut options: Options,
    confirmed: Confirmed,
    out: &mut Out,
) -> Ended {
    let hand = signing::hand(home, Role::Operator)?;
    let mut rows = rows(home, &options)?;
    if rows.is_empty() {
        return Err(Failure::Gateway("no server offers a tool".to_owned()));
    }
    show(home, &rows, out)?;
    for _ in 0..QUESTIONS_MAX {
        let set: Vec<Manifest> = rows.iter().filter_map(Row::to_record).collect();
        if set.is_empty() {
            out.text("all of that is on record already")?;
            return Ok(Exit::Done);
        }
        let answer = match confirmed {
            Confirmed::Beforehand => "y".to_owned(),
            Confirmed::Asked => {
                out.flush()?;
                let question = format!(
                    "{}Save these {} classes? y, n, or change one first, as read=get_*,list: ",
                    grave(&set),
                    set.len()
                );
                terminal::ask_shown(&question).map_err(Failure::Stream)?
            }
        };
        match answer.trim() {
            "y" | "yes" => return put(home, &hand, &set, out),
            "" | "n" | "no" => {
                tell("nothing is on record; unset tools count as external_write");
                return Ok(Exit::Failed);
            }
            rule => match ClassRule::parse(rule) {
                Ok(rule) => {
                    // What is said last is what is meant.
                    options.classes.insert(0, rule);
                    let classes = &options.classes;
                    rows.iter_mut().for_each(|row| row.proposed.say(classes));
                    show(home, &rows, out)?;
                }
                Err(error) => tell(&format!("{error}")),
            },
        }
    }
    Ok(Exit::Failed)
}

/// The warning before the question: calls of such a class that no person may approve are refused.
fn grave(set: &[Manifest]) -> &'static str {
    let is_grave = |manifest: &Manifest| {
        Stated::of(manifest).is_ok_and(|stated| stated.class == Some(EffectClass::Irreversible))
    };
    match set.iter().any(is_grave) {
        true => {
            "Irreversible calls need a person whom the policy names (params.elevated, \
             docs/approvals.md). The presets name nobody, and refuse such calls.\n"
        }
        false => "",
    }
}

fn rows(home: &Path, options: &Options) -> Result<Vec<Row>, Failure> {
    let proposed = syscap_gateway::survey(options).map_err(super::failed(home))?;
    let log = runtime::look(home)?;
    let recorded =
        |tool: &ToolId| log.kernel().manifests().find(|manifest| manifest.tool == *tool).cloned();
    let row = |proposed: Proposed| Row { recorded: recorded(&proposed.manifest.tool), proposed };
    Ok(proposed.into_iter().map(row).collect())
}

fn show(home: &Path, rows: &[Row], out: &mut Out) -> Result<(), Failure> {
    let json = rows.iter().map(|row| {
        let manifest = &row.proposed.manifest;
        let object = Object::new().shown("tool", &manifest.tool).text("class", row.class().name());
        let object = object.text("why", row.why()).text("hints", &row.proposed.hints);
        let unlimited = row.unlimited().into_iter().map(|one| {
            Object::new().text("argument", &one.argument).text("looks_like", one.kind).finish()
        });
        object.text("title", &manifest.title).json("unlimited", &array(unlimited)).finish()
    });
    let json = Object::new().json("proposed", &array(json));
    let longest = rows.iter().map(|row| row.proposed.manifest.tool.as_str().len()).max();
    let width = longest.unwrap_or(0);
    let mut lines = vec![format!("{:<width$}  {:<14}  why", "tool", "class")];
    for row in rows {
        let manifest = &row.proposed.manifest;
        let tool = manifest.tool.as_str();
        let title: String = manifest.title.chars().take(TITLE_MAX).collect();
        let hints = match row.proposed.hints.as_str() {
            "" => String::new(),
            hints => format!(" ({hints})"),
        };
        let class = row.class().name();
        let title = if tool.ends_with(&format!(".{title}")) { "" } else { &*title };
        lines.push(format!("{tool:<width$}  {class:<14}  {}{hints}  {title}", row.why()));
        lines.extend(
            row.unlimited().iter().map(|one| format!("  {}", not_limited(home, tool, one))),
        );
    }
    let lines: Vec<String> = lines.iter().map(|line| line.trim_end().to_owned()).collect();
    out.all(&lines, json)
}

fn put(home: &Path, hand: &Hand, set: &[Manifest], out: &mut Out) -> Ended {
    let seq = runtime::with(home, |access: &Runtime| record(access, hand, set))?;
    let tools = array(set.iter().map(|one| crate::output::quote(one.tool.as_str())));
    let json = Object::new().json("tools", &tools).uint("record", seq.get());
    let text = format!("saved {} classes (record {seq})", set.len());
    out.both(&text, json)?;
    out.flush()?;
    let home = word_of(home);
    tell(&format!(
        "next: the same command with --print-config in place of --review prints the block for your \
         client; change a class: syscap tools class {home} TOOL CLASS"
    ));
    Ok(Exit::Done)
}
