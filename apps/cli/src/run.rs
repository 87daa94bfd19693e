//! `syscap run`: an agent, or its client, behind a boundary.
//!
//! This process holds the home, or attaches to who does, and starts the program confined. The
//! program reaches syscap by the channel: commands outside, whose options are fixed here.

mod client;
mod door;
mod environment;
mod gemini;
mod linked;
mod prepared;
mod record;
mod screen;
mod shim;
mod signals;
mod start;
mod token;
mod watch;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};

use clap::Args;
use syscap::format::{AgentId, TokenId};
use syscap::launch::{Level, Network};

use self::{client::Known, prepared::Prepared};
use crate::exit::{Ended, Failure, diagnose};
use crate::lane::Service;
use crate::mcp::{failed, words::absolute};
use crate::starter::{self, Presence};
use crate::ticket::Offers;
use crate::token::TokenName;
use crate::{parse, recording, runtime};

/// Start an agent, its client or a shell in a sandbox: the home, its keys and its socket are out of
/// reach.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Example:
  syscap run home --agent coder --workspace project --state claude-state --net host \\
    --env ANTHROPIC_API_KEY -- claude

The program gets the system's programs and libraries, its workspace, a HOME and a TMPDIR of its own,
and what the options open. Inside, `syscap hook`, `syscap mcp` and `syscap call` are answered by
commands outside, for this agent and by its token.

For Claude Code and Gemini CLI the hook is set up and configured, read-only; with --mcp the gateway,
too. The client's shell is another tool inside: docs/run.md says which, and what asks.")]
pub(crate) struct Run {
    /// The home.
    home: PathBuf,
    /// The agent that calls.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// The folder that it works in and may change. The current folder if absent. It must not hold
    /// the home or lie in it.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    workspace: Option<PathBuf>,
    /// A file or folder to read (may be repeated).
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    ro: Vec<PathBuf>,
    /// A file or folder to read and write (may be repeated).
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    rw: Vec<PathBuf>,
    /// A file or folder to read and execute: programs outside the system's folders (may be
    /// repeated).
    #[arg(long, value_name = "PATH", help_heading = "Files")]
    exec: Vec<PathBuf>,
    /// The folder that is its HOME and stays: logins, histories. A new one, removed at the end, if
    /// absent.
    #[arg(long, value_name = "DIR", help_heading = "Files")]
    state: Option<PathBuf>,
    /// The action for files that the agent may write and that have another name outside (hard links):
    /// copy gives each bytes of its own, pass lets the agent change both. Asked at a terminal, else
    /// refused, if absent.
    #[arg(long, value_enum, value_name = "ACTION", help_heading = "Files")]
    linked: Option<linked::Choice>,
    /// The network: none; loopback, its own; host, all that the host reaches.
    #[arg(long, value_name = "NET", default_value = "none", value_parser = parse::network)]
    #[arg(help_heading = "Boundary")]
    net: Network,
    /// The least confinement that will do: confined or contained.
    #[arg(long, value_name = "LEVEL", default_value = "contained", value_parser = level)]
    #[arg(help_heading = "Boundary")]
    require: Level,
    /// Open descriptors of each process, at most. This process's own limit less 320 if absent.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(8..))]
    #[arg(help_heading = "Boundary")]
    descriptors: Option<u64>,
    /// A variable of its environment; by its name alone with the value that it has here (may be
    /// repeated).
    #[arg(long, value_name = "NAME[=VALUE]", help_heading = "Boundary")]
    env: Vec<OsString>,
    /// Its token. The agent's newest that fits if absent.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse, help_heading = "Client")]
    token: Option<TokenName>,
    /// The client: claude-code, gemini-cli or none. By the program's name if absent.
    #[arg(long, value_name = "CLIENT", value_parser = client::named, help_heading = "Client")]
    client: Option<Known>,
    /// More options of `syscap hook`: '--class read=mcp__docs__*'.
    #[arg(long, value_name = "OPTIONS", value_parser = words, allow_hyphen_values = true)]
    #[arg(help_heading = "Client")]
    hook: Option<Words>,
    /// Give it the gateway, with these options of `syscap mcp`: '-- npx -y SERVER'. The servers run
    /// outside.
    #[arg(long, value_name = "OPTIONS", value_parser = words, allow_hyphen_values = true)]
    #[arg(help_heading = "Client")]
    mcp: Option<Words>,
    #[command(flatten, next_help_heading = "Channel")]
    offers: Offers,
    #[command(flatten)]
    people: runtime::People,
    /// The program and its arguments.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

/// Words of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Words(Vec<String>);

fn words(text: &str) -> Result<Words, String> {
    syscap_gateway::split(text).map(Words).map_err(|error| error.to_string())
}

fn level(name: &str) -> Result<Level, String> {
    // What is only bounded may touch what its user may: it is no boundary.
    let known = Level::named(name).filter(|level| *level > Level::Bounded);
    known.ok_or("not a level of a boundary: confined, contained".to_owned())
}

impl Run {
    pub(crate) fn run(self) -> Ended {
        if crate::lane::is_here() {
            let problem = "this is within `syscap run` already; start it outside".to_owned();
            return Err(Failure::NotStarted { problem, exit: crate::exit::Exit::NotStarted });
        }
        // What is wrong with the command line is seen before anything is opened or signed.
        let known = self.known();
        let prepared = Prepared::of(&self, known)?;
        if known == Known::GeminiCli {
            gemini::check(&prepared.program()?, &self.program)?;
        }
        let passed = linked::settle(prepared.written(), self.linked)?;
        let access = starter::reach(&self.home, self.people, Presence::Stays)?;
        runtime::finish(access, |access| {
            recording::warn_of_run(access)?;
            let token = token::of(&self, known, access)?;
            let gateway = self.gateway(&prepared)?;
            let location = prepared.location(&self, passed.as_ref())?;
            let services = self.services(known, token, gateway, location, &prepared.uses)?;
            let ended = start::run(&self, prepared, access, token, services);
            passed.iter().for_each(linked::Passed::list);
            ended
        })
    }

    /// Settles the gateway, before the program can write anything: its servers are started once, their
    /// tools are put on record, and the token is chosen or issued. The rest of its command line.
    fn gateway(&self, prepared: &Prepared) -> Result<Option<Vec<OsString>>, Failure> {
        self.tell_names();
        let (Some(mcp), written) = (token::mcp(self)?, prepared.writable()?) else {
            return Ok(None);
        };
        let mut options = mcp.of_run(written.clone())?;
        options.token = TokenName::of_any(self.token.as_ref(), &self.home)?.or(options.token);
        let settled = syscap_gateway::settle(options).map_err(failed(&self.home))?;
        for server in &settled.left_out {
            diagnose(&format!("server {server} is left out of this run: it can't be started"));
        }
        let Some(token) = settled.token else {
            diagnose("the agent gets no gateway: none of its servers can be started");
            return Ok(None);
        };
        let mut words: Vec<OsString> = vec!["--settled".into(), token.to_string().into()];
        for place in written {
            words.extend(["--written".into(), place.into_os_string()]);
        }
        for server in settled.left_out {
            words.extend(["--without".into(), server.into()]);
        }
        words.extend(self.mcp_words().into_iter().map(OsString::from));
        Ok(Some(words))
    }

    /// Says which words of the gateway's are left as they are, though they are names of folders here:
    /// the servers start elsewhere.
    fn tell_names(&self) {
        let Some(mcp) = &self.mcp else { return };
        for name in absolute(mcp.0.clone()).names {
            diagnose(&format!(
                "--mcp: {name} is a folder here, and the servers start in /: write ./{name} if it is \
                 meant"
            ));
        }
    }

    /// The options of the gateway, with whole paths: what answers starts elsewhere.
    fn mcp_words(&self) -> Vec<String> {
        self.mcp.as_ref().map(|words| absolute(words.0.clone()).words).unwrap_or_default()
    }

    /// The options of the hook, in the same way.
    fn hook_words(&self) -> Vec<String> {
        self.hook.as_ref().map(|words| absolute(words.0.clone()).words).unwrap_or_default()
    }

    /// Which client it is.
    fn known(&self) -> Known {
        let name = self.program.first().map(PathBuf::from);
        self.client
            .unwrap_or_else(|| Known::by_name(name.as_deref().and_then(|name| name.file_name())))
    }

    /// The commands outside that answer, each with all of its words.
    fn services(
        &self,
        known: Known,
        token: TokenId,
        gateway: Option<Vec<OsString>>,
        location: String,
        uses: &Path,
    ) -> Result<Vec<door::Command>, Failure> {
        let home = std::path::absolute(&self.home).map_err(Failure::file(&self.home))?;
        let base = |name: &str| {
            let words = [name.into(), home.clone().into(), "--agent".into()];
            let mut words: Vec<OsString> = Vec::from(words);
            words.push(self.agent.to_string().into());
            words.extend(self.people.are_absent().then(|| "--headless".into()));
            words
        };
        let with_token = |name: &str| {
            let mut words = base(name);
            words.extend(["--token".into(), token.to_string().into()]);
            words
        };
        let mut services =
            vec![door::Command { service: Service::Call, words: with_token("call") }];
        let mut short = with_token("call");
        short.push("--short".into());
        services.push(door::Command { service: Service::CallShort, words: short });
        if let Some(client) = known.client() {
            let mut words = with_token("hook");
            words.extend(["--client".into(), client.option().into(), "--in-run".into()]);
            words.extend(["--location".into(), location.into()]);
            if let Some(inside) = token::inside(self) {
                words.extend(["--inside".into(), inside.option().into()]);
            }
            if gateway.is_some() {
                words.extend(["--gateway".into(), client::GATEWAY.into()]);
                words.extend(["--uses".into(), uses.into()]);
            }
            words.extend(self.hook_words().into_iter().map(OsString::from));
            services.push(door::Command { service: Service::Hook, words });
        }
        if let Some(more) = gateway {
            let mut words = base("mcp");
            words.extend(["--uses".into(), uses.into()]);
            words.extend(more);
            services.push(door::Command { service: Service::Mcp, words });
        }
        Ok(services)
    }

    /// True if it gets its own terminal: if both sides of it are here.
    fn has_screen() -> bool {
        std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
    }
}
