//! `syscap hook`: an agent's client asks before each use of a tool, and tells of it afterwards.
//!
//! Any fault before a use means that it must not be made: exit code 2, which clients take for no. A
//! fault afterwards, or with a user's prompt, changes nothing.

mod asked;
mod class;
pub(crate) mod client;
mod event;
mod grant;
mod halves;
mod json_text;
mod known;
mod leads;
mod model;
mod passed;
pub(crate) mod setup;
mod tokens;
mod used;
mod user_settings;
pub(crate) mod version;
mod watch;
mod words;

use std::io::{self, Read as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use syscap::Runtime;
use syscap::format::{AgentId, EffectClass, Manifest, Reason, Refused, Seq, TokenId, ToolResult};
use syscap::host::{Begun, Prompt, Reported, Settled, ToolUse};
use syscap::kernel::StoreError;
use syscap::remedy::{Remedy, for_model};
use syscap::syscalls::auto_executed::{Kind, kinds_of_path};
use syscap::syscalls::stated::Stated;

use self::asked::{Ask, Taken};
use self::class::ClassRule;
use self::client::{Client, Inside};
use self::event::{Event, Phase, Told};
use self::tokens::Found;
use self::used::Naming;
use self::watch::Watch;
use crate::exit::{Ended, Exit, Failure, diagnose};
use crate::output::Out;
use crate::starter::{self, Presence};
use crate::token::TokenName;
use crate::{lane, parse, runtime};

/// Longest event, in bytes: a call and a result of the kernel's own limits, written as JSON.
const EVENT_BYTES_MAX: usize = 8 << 20;
/// How long the hook may take, before it says no itself: what `--setup` tells the client to wait
/// is more.
const PATIENCE: &str = "40s";

/// Judge each tool that Claude Code or Gemini CLI runs itself: before a use, decide and record; after
/// it, record the result.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap hook home --agent coder --client claude-code --setup

--setup puts the client's tools on record, issues a token for them, and writes the hook into the
client's user settings: a terminal shows the file and what changes in it, and asks; elsewhere --yes is
needed. The client then runs the hook with one event on standard input. --remove takes it out again.

A use that the policy allows runs; the intent is on record before. A use that the policy asks about
waits for a person. Any other use is denied with the reason. Exit code 2 denies a use, too.

If no process serves the home, the hook starts `syscap serve HOME --idle 10m`.")]
pub(crate) struct Hook {
    /// The home.
    home: PathBuf,
    /// The agent that calls.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// The client that runs the tools.
    #[arg(long, value_enum)]
    client: Client,
    /// The agent's token. Its newest valid one that grants the tool if absent.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    pub(crate) token: Option<TokenName>,
    /// Put the client's tools on record, issue a token, and write the hook into the client's user
    /// settings.
    #[arg(long, group = "settings", help_heading = "Set up")]
    pub(crate) setup: bool,
    /// Print what belongs into the client's settings, and write nothing.
    #[arg(long, requires = "setup", help_heading = "Set up")]
    print: bool,
    /// Take out of the client's settings what a set-up for this home has put in, and nothing else.
    #[arg(long, group = "settings", help_heading = "Set up")]
    remove: bool,
    /// The settings of the project in this folder, which its repository does not hold; else the user's.
    #[arg(long, requires = "settings", help_heading = "Set up")]
    project: bool,
    /// Change the file without a question, as where there is no terminal.
    #[arg(long, requires = "settings", help_heading = "Set up")]
    yes: bool,
    /// Grant another tool, by the client's name; with a * at the end all such that were seen (may
    /// be repeated).
    #[arg(long = "tool", value_name = "NAME", requires = "setup", help_heading = "Set up")]
    tools: Vec<String>,
    /// A folder that the client's own file tools may read and write (may be repeated). Anywhere if
    /// none was ever named; this folder if one was. The shell is not held to it.
    #[arg(long = "root", value_name = "FOLDER", requires = "setup", help_heading = "Set up")]
    roots: Vec<PathBuf>,
    /// How long the token is valid.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, default_value = "12h")]
    #[arg(requires = "setup", help_heading = "Set up")]
    expires: Duration,
    /// The action when the policy asks a person: wait, prompt (the client asks, if the policy names
    /// client_prompt) or deny.
    #[arg(long, value_enum, default_value_t, help_heading = "Decisions")]
    ask: Ask,
    /// Answer `allow` for an allowed use, so that the client does not ask its user, too.
    #[arg(long, help_heading = "Decisions")]
    allow: bool,
    /// The classes of tools, by the client's own names: read=mcp__docs__* (may be repeated).
    #[arg(long = "class", value_name = "CLASS=TOOL,TOOL*", value_parser = ClassRule::parse)]
    #[arg(help_heading = "Decisions")]
    classes: Vec<ClassRule>,
    /// Vouch for the tools' results: they count as trusted, for `syscap learn` too.
    #[arg(long, help_heading = "Decisions")]
    trust_results: bool,
    /// The place of the client. `syscap run` says so to the hook that it starts.
    #[arg(long, value_enum, help_heading = "Decisions")]
    pub(crate) inside: Option<Inside>,
    /// The client is inside a run: `syscap run` says so.
    #[arg(long, hide = true)]
    in_run: bool,
    /// The location of the run, in words: `syscap run` says so.
    #[arg(long, hide = true, requires = "in_run")]
    location: Option<String>,
    /// The client's name for the gateway of the run: `syscap run` says so.
    #[arg(long, value_name = "SERVER", hide = true, requires_all = ["in_run", "uses"])]
    gateway: Option<String>,
    /// The folder where uses are held against the gateway's calls: `syscap run` says so.
    #[arg(long, value_name = "DIR", hide = true, requires = "gateway")]
    uses: Option<PathBuf>,
    /// How long a use may be in flight.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, default_value = "10m")]
    #[arg(help_heading = "Time")]
    limit: Duration,
    /// How long the hook may take before it denies the use. The client must wait longer.
    #[arg(long, value_name = "DURATION", value_parser = parse::life, default_value = PATIENCE)]
    #[arg(help_heading = "Time")]
    pub(crate) patience: Duration,
    #[command(flatten)]
    people: runtime::People,
    /// The workspace, where `syscap run` prepares the hook: what the client's file tools are held to
    /// where no root is named. The current folder elsewhere.
    #[arg(skip)]
    pub(crate) workspace: Option<PathBuf>,
}

impl Hook {
    pub(crate) fn run(mut self, out: &mut Out) -> Ended {
        // Errors name it as it is given: `for_model` finds an absolute path.
        self.home = std::path::absolute(&self.home).unwrap_or(self.home);
        if self.setup {
            return self.set_up(out);
        }
        if self.remove {
            return self.take_out();
        }
        // A client takes any code but 2 for no objection.
        let answered = catch_unwind(AssertUnwindSafe(|| self.answer(out)));
        Ok(answered.unwrap_or_else(|_| {
            diagnose("the hook broke off, so this use is denied");
            Exit::Blocked
        }))
    }

    fn answer(&self, out: &mut Out) -> Exit {
        if lane::is_here() {
            return self.answer_by_lane();
        }
        let since = Instant::now();
        // First of all: the client may also be slow to say what it wants.
        let begun = Watch::start(self.patience).and_then(|watch| {
            let told = Told::read(self.client, &read()?)?;
            Ok((watch, told))
        });
        let (watch, event) = match begun {
            Ok((watch, Told::Use(event))) => (watch, event),
            Ok((watch, Told::Prompt { conversation, text })) => {
                watch.is_after();
                return self.heard(conversation, text, out).unwrap_or_else(|problem| {
                    diagnose(&format!("what the user said could not be recorded: {problem}"));
                    Exit::Failed
                });
            }
            Ok((watch, Told::Batch(events))) => {
                watch.is_after();
                return self.over(events).unwrap_or_else(|problem| {
                    diagnose(&format!("uses that were not made could not be recorded: {problem}"));
                    Exit::Failed
                });
            }
            Err(problem) => {
                diagnose(&format!("{problem}; denied"));
                return Exit::Blocked;
            }
        };
        match event.phase {
            Phase::Before => {
                let mut notes = Vec::new();
                match self.before(&event, since, &mut notes, out) {
                    // A client gives its model what stands on standard error for exit code 2 alone.
                    Ok(exit) => {
                        notes.iter().for_each(|note| diagnose(note));
                        exit
                    }
                    Err(problem) => {
                        let problem = for_model(&self.home, &problem);
                        diagnose(&format!("{} is denied: {problem}", event.tool));
                        Exit::Blocked
                    }
                }
            }
            Phase::After(_) => {
                watch.is_after();
                self.after(event).unwrap_or_else(|problem| {
                    diagnose(&format!("what a use came to could not be recorded: {problem}"));
                    Exit::Failed
                })
            }
        }
    }

    /// Within `syscap run` the hook outside answers, by the words that it was started with there.
    fn answer_by_lane(&self) -> Exit {
        let asked = Watch::start(self.patience)
            .and_then(|_watch| lane::ask(lane::Service::Hook, io::stdin()));
        let printed = asked.and_then(|answer| {
            let printed = lane::pass(lane::Kind::Err, &answer.err)
                .and_then(|()| lane::pass(lane::Kind::Out, &answer.out));
            printed.map_err(|error| error.to_string()).map(|()| answer.code)
        });
        match printed {
            Ok(code) => Exit::Program(code),
            Err(problem) => {
                diagnose(&format!("{problem}; denied"));
                Exit::Blocked
            }
        }
    }

    /// Records a prompt of the client's user. If it can't, the user is told, and continues: a
    /// prompt has no effect by itself.
    fn heard(&self, conversation: String, text: String, out: &mut Out) -> Result<Exit, String> {
        let access = starter::reach(&self.home, self.people, Presence::Passes)
            .map_err(|failure| self.why(failure))?;
        // A picture alone, say, comes without words.
        if !text.is_empty() {
            let token = match self.token_now(&access)? {
                Some(token) => token,
                None => {
                    match tokens::newest(&access, &self.agent, |tool| self.client.runs(tool))? {
                        Found::Live(token) => token,
                        Found::Expired(token, at) => {
                            let home = crate::output::word_of(&self.home);
                            return Err(format!(
                                "the token of {} expired at {at}; go on with: \
                             syscap token reissue {home} {token}",
                                self.agent
                            ));
                        }
                    }
                }
            };
            let prompt = Prompt { agent: self.agent.clone(), conversation, text };
            access.heard(token, &prompt).map_err(|error| error.to_string())?;
        }
        let said = self.client.heard().map_or(Ok(()), |said| out.line(said));
        said.and_then(|()| out.flush()).map_err(|failure| failure.to_string())?;
        access.close().map_err(|error| error.to_string())?;
        Ok(Exit::Done)
    }

    /// Answers for a use, and notes what the operator is told on standard error.
    fn before(
        &self,
        event: &Event,
        since: Instant,
        notes: &mut Vec<String>,
        out: &mut Out,
    ) -> Result<Exit, String> {
        if self.passes(event)? {
            let said = self.client.let_through(self.allow);
            let printed = said.map_or(Ok(()), |said| out.line(&said)).and_then(|()| out.flush());
            return printed.map(|()| Exit::Done).map_err(|failure| failure.to_string());
        }
        let access = starter::reach(&self.home, self.people, Presence::Passes)
            .map_err(|why| model::unreached(&why))?;
        let named = self.token_now(&access)?;
        let naming = self.naming(&access, named, event)?;
        let used = self.used(event, naming)?;
        let manifest = match naming {
            Naming::Own => self.manifest(&event.tool, used.tool.clone()),
            Naming::Other => self.manifest_of_others(used.tool.clone()),
        };
        let found = match named {
            Some(token) => Found::Live(token),
            None => tokens::newest(&access, &self.agent, |tool| *tool == used.tool)?,
        };
        let token = found.id();
        let begin = || match access.begin_use(token, &used, &manifest) {
            // Its conversation has no session by that token, so that no record can be made.
            Err(syscap::Error::Refused(why)) if why.reason() == Reason::Expired => Ok(None),
            begun => begun.map(Some).map_err(|error| error.to_string()),
        };
        let mut begun = begin()?;
        let (mut taken, mut before) = (Taken::Waits, None);
        // What is over asks anew: then it is waited for that, by a question that is another.
        while let Some(ask) = begun.as_ref().and_then(asked).filter(|ask| before != Some(*ask)) {
            before = Some(ask);
            taken = self.taken_up(&access, ask, since, notes);
            if taken == Taken::Waits {
                break;
            }
            begun = begin()?;
        }
        let said = match begun {
            Some(Begun::Out(_)) if taken == Taken::ToTheClient => {
                let why = format!("the policy wants a person to approve {}", event.tool);
                self.client.asked(&why)
            }
            Some(Begun::Out(intent)) => {
                match self.plants(event).or_else(|| strays(event, &access, &used)) {
                    Some(what) if !self.is_approved(intent, notes) => {
                        self.client.asked(&format!("{} {what}", event.tool))
                    }
                    _ => self.client.let_through(self.allow),
                }
            }
            Some(Begun::Answered(answer)) => {
                let (said, note) = self.refused(&access, event, &manifest, token, &answer)?;
                notes.extend(note);
                Some(said)
            }
            None => {
                let (said, note) = self.expired(&access, event, &used, token)?;
                notes.extend(note);
                Some(said)
            }
        };
        let printed = said.map_or(Ok(()), |said| out.line(&said)).and_then(|()| out.flush());
        printed.map_err(|failure| failure.to_string())?;
        access.close().map_err(|error| error.to_string())?;
        Ok(Exit::Done)
    }

    /// The refusal for the model, and the command for the operator.
    fn refused(
        &self,
        access: &Runtime,
        event: &Event,
        manifest: &Manifest,
        token: TokenId,
        answer: &ToolResult,
    ) -> Result<(String, Option<String>), String> {
        let tool = &manifest.tool;
        // What is not on record counts as what it would be put there as.
        let class = access.tool(tool).map_or(manifest.effect, |it| it.manifest.effect);
        let expired = match answer.reason() {
            Some(Reason::Expired) => tokens::expiry(access, token)?,
            _ => None,
        };
        let home = &*self.home;
        let name = &*event.tool;
        let against = words::Against { home, name, tool, token, class, expired };
        let command = match answer.reason() {
            // A token of before the list had it, or before others had one.
            Some(Reason::NotGranted | Reason::UnknownTool) if self.is_of_setup(name) => {
                Some(self.setting_up().map_err(|failure| failure.to_string())?)
            }
            // The hook's own words are what has changed: they are accepted, and no token is issued.
            Some(Reason::ToolChanged) => {
                Some(self.accepting(&event.tool, token).map_err(|failure| failure.to_string())?)
            }
            _ => words::remedy(tool, token, answer).and_then(|remedy| remedy.command(&self.home)),
        };
        let note = command.map(|command| goes_on(name, &command));
        Ok((self.client.denied(&words::refusal(&against, answer)), note))
    }

    /// The same where the token expired before the conversation's first use.
    fn expired(
        &self,
        access: &Runtime,
        event: &Event,
        used: &ToolUse,
        token: TokenId,
    ) -> Result<(String, Option<String>), String> {
        let (tool, reason) = (&used.tool, Reason::Expired);
        let (got, ask, intent) = (None, None, None);
        let remedy = Remedy { reason, tool: Some(tool), token: Some(token), got, ask, intent };
        let command = remedy.command(&self.home);
        let note = command.map(|command| goes_on(&event.tool, &command));
        let at = tokens::expiry(access, token)?;
        Ok((self.client.denied(&words::expired(&event.tool, at)), note))
    }

    /// The danger if one of the client's own tools for files writes a file that other programs
    /// execute or obey. A policy that knows nothing of that lets the use through, or nothing says
    /// that the argument is a path; so the client's user is asked, whatever `--allow` says, where
    /// nobody was.
    fn plants(&self, event: &Event) -> Option<&'static str> {
        let writes = self.client.class(&event.tool) != EffectClass::Read;
        let argument = self.client.file_argument(&event.tool).filter(|_| writes)?;
        let path = event.args.item().get(argument)?.as_text()?;
        let mut kinds = kinds_of_path(path.split('/'));
        match leads::to(event.folder.as_deref(), path) {
            Some(real) => kinds.extend(kinds_of_path(real.split('/'))),
            None => return Some("writes where a path leads that can't be followed"),
        }
        kinds.first().map(|kind| match kind {
            Kind::Settings => "writes what git, shells, editors or agents execute or obey",
            Kind::Automation => "writes what a forge runs on its own",
            Kind::Instructions => "writes instructions that agents obey",
        })
    }

    /// Why the home can't be reached, with the command that makes one where there is none.
    fn why(&self, failure: Failure) -> String {
        let missing = matches!(&failure, Failure::Home { source, .. }
            if matches!(&**source, syscap::Error::Home(StoreError::Missing)));
        match missing {
            true => {
                let home = setup::quoted(&self.home.display().to_string());
                format!("there is no home at {home}; make one with: syscap init {home}")
            }
            false => failure.to_string(),
        }
    }

    fn after(&self, event: Event) -> Result<Exit, String> {
        let Phase::After(reported) = &event.phase else { return Ok(Exit::Done) };
        if let Some(exit) = self.settled_by_gateway(&event, reported)? {
            return Ok(exit);
        }
        let named = self.own_token().map_err(|failure| failure.to_string())?;
        let access = self.reached()?;
        let settled = self.settle(&access, named, &event, reported);
        access.close().map_err(|error| error.to_string())?;
        let settled = settled?;
        match settled {
            Ok(Settled::Answered(answer))
                if matches!(answer.reason(), Some(Reason::TimedOut | Reason::Cancelled)) =>
            {
                Err("the use timed out a moment before".into())
            }
            Ok(Settled::Answered(_) | Settled::Late(_)) => Ok(Exit::Done),
            Err(syscap::Error::Refused(why)) if why.reason() == Reason::UnknownReference => {
                Err("no such use is in flight: it was not asked about, or was reported already"
                    .into())
            }
            Err(error) => Err(error.to_string()),
        }
    }

    /// Tells of the uses of a message that were not made: of them no result was reported before. All
    /// others are settled already.
    fn over(&self, events: Vec<Event>) -> Result<Exit, String> {
        let named = self.own_token().map_err(|failure| failure.to_string())?;
        let access = self.reached()?;
        let mut failed = Ok(Exit::Done);
        for event in events {
            let Phase::After(reported) = &event.phase else { continue };
            let settled = match self.is_passed(&event) {
                // A gateway makes no call for it, and nothing is in flight.
                Ok(true) => continue,
                Ok(false) => self.settle(&access, named, &event, reported),
                Err(problem) => Err(problem),
            };
            match settled {
                Ok(Err(syscap::Error::Refused(why)))
                    if why.reason() == Reason::UnknownReference => {}
                Ok(Ok(_)) => {}
                Ok(Err(error)) => failed = Err(error.to_string()),
                Err(problem) => failed = Err(problem),
            }
        }
        access.close().map_err(|error| error.to_string())?;
        failed
    }

    /// Tells of a use with the token that it was begun with: where none is named that need not be
    /// the newest any more, but one that the agent has a session with.
    fn settle(
        &self,
        access: &Runtime,
        named: Option<TokenId>,
        event: &Event,
        reported: &Reported,
    ) -> Result<Result<Settled, syscap::Error>, String> {
        let tokens = match named {
            // It may have been narrowed since.
            Some(token) => {
                let now = runtime::going_on(access, token).map_err(|error| error.to_string())?;
                if now == token { vec![token] } else { vec![token, now] }
            }
            None => tokens::used(access, &self.agent).map_err(|error| error.to_string())?,
        };
        let mut uses = vec![self.used(event, Naming::Own)?];
        if self.client.is_other(&event.tool) {
            uses.push(self.used(event, Naming::Other)?);
        }
        let tried = uses.iter().flat_map(|used| tokens.iter().map(move |token| (used, *token)));
        for (used, token) in tried {
            match access.settle_use(token, used, reported) {
                Err(syscap::Error::Refused(why)) if why.reason() == Reason::UnknownReference => {}
                settled => return Ok(settled),
            }
        }
        let unknown = Refused::new(Reason::UnknownReference).field("tool_use_id");
        Ok(Err(syscap::Error::Refused(unknown)))
    }

    /// The token by which what the command line names goes on.
    fn token_now(&self, access: &Runtime) -> Result<Option<TokenId>, String> {
        let named = self.own_token().map_err(|failure| failure.to_string())?;
        let now = named.map(|token| runtime::going_on(access, token)).transpose();
        now.map_err(|error| error.to_string())
    }

    /// The token that the command line names.
    fn own_token(&self) -> Result<Option<TokenId>, Failure> {
        TokenName::of_any(self.token.as_ref(), &self.home)
    }
}

/// A pattern is no path to a scope, and some lead out of the folder that the use names. If the tool
/// is held to roots the client's user is asked.
fn strays(event: &Event, access: &Runtime, used: &ToolUse) -> Option<&'static str> {
    let pattern = event.args.item().get("pattern").filter(|_| event.tool == "Glob")?.as_text()?;
    if is_plain(pattern) {
        return None;
    }
    // What can't be told counts as held.
    let stated = access.tool(&used.tool).ok().and_then(|tool| Stated::of(&tool.manifest).ok());
    stated
        .is_none_or(|stated| !stated.arguments.is_empty())
        .then_some("looks outside of the folder that it is given")
}

/// True if a pattern stays in its folder whatever a client makes of it: names of plain letters, and
/// `*` in them. Braces, brackets, extended forms and escapes can expand to `..` or `/`, and a `*`
/// behind a dot matches `..` in some dialects.
fn is_plain(pattern: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "._-*".contains(c);
    pattern.split('/').all(|name| {
        let leads_up = name.starts_with('.') && (name.contains('*') || matches!(name, "." | ".."));
        !name.is_empty() && name.chars().all(is_letter) && !leads_up
    })
}

/// The remedy for a refused use, for the operator.
fn goes_on(tool: &str, command: &str) -> String {
    format!("{tool}: an operator goes on with: {command}")
}

/// The question by which a use waits.
fn asked(begun: &Begun) -> Option<Seq> {
    match begun {
        Begun::Answered(answer) => answer.ask(),
        Begun::Out(_) => None,
    }
}

/// One event, whole.
fn read() -> Result<Vec<u8>, String> {
    let most = u64::try_from(EVENT_BYTES_MAX).unwrap_or(u64::MAX);
    let mut text = Vec::new();
    let mut input = io::stdin().lock().take(most.saturating_add(1));
    input.read_to_end(&mut text).map_err(|error| format!("no event can be read: {error}"))?;
    if text.len() > EVENT_BYTES_MAX {
        return Err(format!("the event is longer than {EVENT_BYTES_MAX} bytes"));
    }
    Ok(text)
}
