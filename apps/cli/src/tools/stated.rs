//! `syscap tools class` and `syscap tools argument`: what an operator states of a tool that another
//! process runs.

use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{EffectClass, Manifest, Rights, Role, Seq, ToolId};
use syscap::plain::shell_word;
use syscap::syscalls::stated::{
    ArgumentKind, Declared, PathRoot, ROOTS_MAX, Stated, StatedError, Unlimited,
};
use syscap::{Beside, Configured, Error, Inspection, Runtime};

use super::seen::{self, Seen, changed, detail_at, names};
use crate::exit::{Ended, Exit, Failure, tell};
use crate::output::{Object, Out, word_of};
use crate::signing::{self, Hand};
use crate::{parse, runtime};

/// Most tools that one record states something of.
const TOOLS_MAX: usize = 64;
/// Most tokens that are named which lack a scope.
const TOKENS_TOLD_MAX: usize = 8;

/// Which tools, and what they count as.
#[derive(Args, Debug)]
#[command(after_long_help = "\
It is one signed record, and counts from the next call on, also where a gateway runs: calls that
are out end as they were let through. Tokens that grant the tool go on granting it. It stands until
another `tools class`, or --unset: over any --class and --confirm-hints of `syscap mcp`. Where
another definition of the tool is accepted a graver class stays; a lower one has to be set again.

Classes: pure, read, local_write, external_read, external_write, irreversible.")]
pub(crate) struct Class {
    /// The home.
    home: PathBuf,
    /// The tool: notes.get_note, or notes.* for all of that server that are on record now.
    #[arg(value_name = "TOOL")]
    tool: String,
    /// The effect class of the tool.
    #[arg(value_name = "CLASS", value_parser = class, required_unless_present = "unset")]
    class: Option<EffectClass>,
    /// Take the class of `tools class` back.
    #[arg(long, conflicts_with = "class")]
    unset: bool,
}

fn class(text: &str) -> Result<EffectClass, String> {
    let found = EffectClass::ALL.iter().copied().find(|class| class.name() == text);
    let names: Vec<&str> = EffectClass::ALL.iter().map(|class| class.name()).collect();
    found.ok_or_else(|| format!("there is no such class; there are {}", names.join(", ")))
}

impl Class {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let hand = signing::hand(&self.home, Role::Operator)?;
        let (tools, seq) = runtime::with(&self.home, |access| {
            let tools = delegated(access, &self.tool)?;
            let state = |mut stated: Stated| {
                stated.class = self.class;
                stated
            };
            let seq = put(access, &hand, &tools, state)?;
            Ok((tools, seq))
        })?;
        let tools: Vec<ToolId> = tools.into_iter().map(|manifest| manifest.tool).collect();
        let said = match self.class {
            Some(class) => format!("{class} from record {seq} on"),
            None => format!("as offered, from record {seq} on"),
        };
        let lines: Vec<String> =
            tools.iter().map(|tool| format!("{tool} counts as {said}")).collect();
        let json = Object::new().json("tools", &names(&tools));
        let json = match self.class {
            Some(class) => json.text("class", class.name()),
            None => json.json("class", "null"),
        };
        out.all(&lines, json.uint("record", seq.get()))?;
        Ok(Exit::Done)
    }
}

/// Which argument, and what it names.
#[derive(Args, Debug)]
#[command(after_long_help = "\
What a server says of its own tools declares nothing: this does, by one signed record. From then on
a call needs a token with a scope for what the argument names (--read and --write for paths, --scope
for others), and policies read `args.NAME` as that: a path, a host, a name. A text that is not of
the kind is refused, on the record. How a server keeps to it is its own affair (`delegated`).

Kinds: path (--root), tree (a folder with all below it; --root), url, host, recipient, command (what
is run: no approval covers more than the one call). Lists of texts are taken too.

--root docs=/srv/docs: texts begin with that folder, and count as docs/...; --root docs: texts
are names below it as they are. Names that climb are refused.")]
pub(crate) struct Argument {
    /// The home.
    home: PathBuf,
    /// The tool, by its id.
    #[arg(value_name = "TOOL", value_parser = parse::tool)]
    tool: ToolId,
    /// The argument's name.
    #[arg(value_name = "ARGUMENT")]
    argument: String,
    /// The kind of resource that it names.
    #[arg(value_name = "KIND", required_unless_present = "unset",
          value_parser = clap::builder::PossibleValuesParser::new(ArgumentKind::NAMES))]
    kind: Option<String>,
    /// A root that paths lie below, and where it is for the tool; may be given again.
    #[arg(long, value_name = "ROOT[=FOLDER]", value_parser = root)]
    root: Vec<PathRoot>,
    /// The rights at a path: read, write, or read,write; by default those of the tool's class.
    #[arg(long, value_name = "RIGHTS", value_parser = rights)]
    needs: Option<Rights>,
    /// The argument names nothing any more.
    #[arg(long, conflicts_with_all = ["kind", "root", "needs"])]
    unset: bool,
}

fn root(text: &str) -> Result<PathRoot, String> {
    let form = "write ROOT or ROOT=/FOLDER, as docs=/srv/docs; a root is [A-Za-z0-9._-]+";
    PathRoot::parse(text).ok_or_else(|| form.to_owned())
}

fn rights(text: &str) -> Result<Rights, String> {
    match text {
        "read" => Ok(Rights::READ),
        "write" => Ok(Rights::WRITE),
        "read,write" | "write,read" => Ok(Rights::READ.union(Rights::WRITE)),
        _ => Err("write read, write, or read,write".to_owned()),
    }
}

impl Argument {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let declared = self.declared()?;
        let hand = signing::hand(&self.home, Role::Operator)?;
        let seq = runtime::with(&self.home, |access| {
            let tools = delegated(access, self.tool.as_str())?;
            let state = |mut stated: Stated| {
                match &declared {
                    Some(declared) => {
                        stated.arguments.insert(Box::from(&*self.argument), declared.clone());
                    }
                    None => drop(stated.arguments.remove(&*self.argument)),
                }
                stated
            };
            put(access, &hand, &tools, state)
        })?;
        let (tool, argument) = (&self.tool, &self.argument);
        let kind = declared.as_ref().map(|declared| declared.kind.name());
        let is = kind.map_or("names nothing".to_owned(), |kind| format!("names a {kind}"));
        let json = Object::new().shown("tool", tool).text("argument", argument);
        let json = match kind {
            Some(kind) => json.text("names", kind),
            None => json.json("names", "null"),
        };
        let text = format!("{tool}: {argument} {is} from record {seq} on");
        out.both(&text, json.uint("record", seq.get()))?;
        out.flush()?;
        match declared {
            Some(declared) => self.tell_who_lacks(&declared.kind),
            None => Ok(Exit::Done),
        }
    }

    /// `None` where nothing is declared any more.
    fn declared(&self) -> Result<Option<Declared>, Failure> {
        let usage = |what: &str, advice: String| Err(Failure::Usage { what: what.into(), advice });
        let Some(name) = &self.kind else { return Ok(None) };
        let kind = ArgumentKind::named(name, self.root.clone());
        let Some(kind) = kind else { return usage(name, "is no kind".to_owned()) };
        let is_path = matches!(kind, ArgumentKind::Path(_) | ArgumentKind::Tree(_));
        match is_path {
            true if self.root.is_empty() => {
                usage(name, "lies below a root: say which, as --root docs=/srv/docs".into())
            }
            true if self.root.len() > ROOTS_MAX => usage("--root", format!("{ROOTS_MAX} at most")),
            false if !self.root.is_empty() || self.needs.is_some() => {
                usage(name, "has neither --root nor --needs, which paths have".to_owned())
            }
            _ => Ok(Some(Declared { kind, needs: self.needs })),
        }
    }

    /// Names the live tokens that grant the tool and let it touch nothing of that kind.
    fn tell_who_lacks(&self, kind: &ArgumentKind) -> Ended {
        let Some(dimension) = kind.dimension() else { return Ok(Exit::Done) };
        let log = runtime::look(&self.home)?;
        let kernel = log.kernel();
        let now = kernel.now();
        let lacks = |body: &syscap::format::TokenBody| {
            let grant = body.grants.get(&self.tool);
            grant.is_some_and(|grant| grant.scope(dimension).is_none())
        };
        let lacking = kernel.tokens().rev().filter(|token| {
            !token.is_revoked(now) && token.body.expires > now && lacks(token.body)
        });
        let home = word_of(&self.home);
        let by = match kind.roots().first() {
            // What only reads needs no more; what else it is, is its class.
            Some(root) => {
                let (root, effect) = (root.root.as_str(), log.kernel().manifests());
                let mut effects = effect.filter(|one| one.tool == self.tool);
                match effects.next().is_some_and(|one| one.effect.is_read_only()) {
                    true => format!("--read {root}"),
                    false => format!("--read {root} --write {root}"),
                }
            }
            None => format!("--scope {dimension}=VALUE"),
        };
        for token in lacking.take(TOKENS_TOLD_MAX) {
            tell(&format!(
                "token {} of {} grants {} and no {dimension}, so its calls are refused: \
                 syscap token reissue {home} {} {by} --dry-run",
                token.id, token.body.agent, self.tool, token.id
            ));
        }
        Ok(Exit::Done)
    }
}

/// The tools of other processes that a name or a pattern means, as the log has them: what is signed
/// here is made of these, and the server's word is not taken for it.
fn delegated(access: &Runtime, word: &str) -> Result<Vec<Manifest>, Failure> {
    let usage = |advice: String| Failure::Usage { what: word.to_owned(), advice };
    let pattern = parse::tools(word).map_err(|error| usage(error.to_string()))?;
    if !word.ends_with('*') {
        let tool = ToolId::new(word).ok_or_else(|| usage("is no tool's name".to_owned()))?;
        let detail = detail_at(access, &tool)?;
        if detail.info.delegated && detail.info.standing == syscap::provide::Standing::New {
            let advice = format!("is not on record yet: first `syscap tools accept HOME {word}`");
            return Err(usage(advice));
        }
        seen::delegated(access, &tool)?;
        let log = runtime::look(access.home().folder())?;
        let found = seen::on_record(&log, &tool).cloned();
        let found = found.ok_or_else(|| usage("is not on record".to_owned()))?;
        return Ok(vec![found]);
    }
    let seen = Seen::at(access.clone())?;
    let log = runtime::look(access.home().folder())?;
    let is_meant = |manifest: &Manifest| {
        let info = seen.view.tool(&manifest.tool);
        pattern.include(manifest.tool.as_str()) && info.is_some_and(|info| info.delegated)
    };
    let meant: Vec<Manifest> =
        log.kernel().manifests().filter(|manifest| is_meant(manifest)).cloned().collect();
    if meant.is_empty() {
        let others = seen.view.tools.iter().filter(|info| info.delegated);
        let others: Vec<&str> = others.map(|info| info.tool.as_str()).collect();
        let there = match others.as_slice() {
            [] => "there are none".to_owned(),
            others => format!("there are {}", others.join(", ")),
        };
        return Err(usage(format!("names no tool that another process runs; {there}")));
    }
    Ok(meant)
}

/// Has something stated of tools, by as many records as it takes; the last of them.
pub(crate) fn put(
    access: &Runtime,
    hand: &Hand,
    tools: &[Manifest],
    state: impl Fn(Stated) -> Stated,
) -> Result<Seq, Failure> {
    let restated = |manifest: &Manifest| -> Result<Manifest, StatedError> {
        state(Stated::of(manifest)?).on(manifest)
    };
    let mut set = Vec::new();
    for manifest in tools {
        let not = |error: StatedError| Failure::Usage {
            what: manifest.tool.to_string(),
            advice: error.to_string(),
        };
        set.push(restated(manifest).map_err(not)?);
    }
    record(access, hand, &set)
}

/// Puts manifests of tools of other processes on record, with what is stated of them.
pub(crate) fn record(access: &Runtime, hand: &Hand, set: &[Manifest]) -> Result<Seq, Failure> {
    let said = |error: Error| match error {
        Error::NoSuch { what, got } => Failure::Usage {
            what: got,
            advice: format!("is not {what} any more: it was changed meanwhile; try once more"),
        },
        error => error.into(),
    };
    let mut last = Seq::new(0);
    for set in set.chunks(TOOLS_MAX) {
        let change = Configured { set: set.to_vec(), unset: Vec::new() };
        last = match hand {
            Hand::Holder => access.configure(&change).map_err(said)?,
            Hand::Person(person) => {
                let body = |log: &Inspection| changed(log.settings_change(&change));
                let beside = Beside::Configured(Box::new(change.clone()));
                person.submit(access, body, &beside, said)?
            }
        };
    }
    Ok(last)
}

/// The statements about a tool, a line each.
pub(super) fn lines(manifest: &Manifest) -> Vec<(String, String)> {
    let Ok(stated) = Stated::of(manifest) else {
        return vec![("stated".to_owned(), "what this version does not know".to_owned())];
    };
    let class = stated.class.map(|class| ("set to".to_owned(), class.name().to_owned()));
    let arguments = stated.arguments.iter().map(|(name, declared)| {
        let mut text = format!("{name}: a {}", declared.kind);
        let roots: Vec<String> = declared.kind.roots().iter().map(PathRoot::to_string).collect();
        if !roots.is_empty() {
            text.push_str(&format!(" below {}", roots.join(", ")));
        }
        if let Some(needs) = declared.needs {
            text.push_str(&format!(", to {needs}"));
        }
        ("names".to_owned(), text)
    });
    class.into_iter().chain(arguments).collect()
}

/// The line about an unlimited argument.
pub(crate) fn not_limited(home: &Path, tool: &str, unlimited: &Unlimited) -> String {
    let Unlimited { argument, kind } = unlimited;
    let root = if *kind == "path" { " --root NAME=/FOLDER" } else { "" };
    // A server may name an argument like an option, and must not choose the command's options.
    let end = if argument.starts_with('-') { " --" } else { "" };
    format!(
        "{argument}: looks like a {kind}, not limited; limit it: syscap tools argument {} \
         {tool}{root}{end} {} {kind}",
        word_of(home),
        shell_word(argument)
    )
}
