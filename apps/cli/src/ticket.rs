//! `syscap ticket`: starts an agent's program with a ticket, by which it opens sessions of its own.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::{env, thread};

use clap::Args;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::Signals;
use syscap::format::{AgentId, EffectClass, TokenId, ToolId};
use syscap::{Prefix, Runtime, SessionTicket};

use crate::exit::{Ended, Exit, Failure};
use crate::starter::{self, Presence};
use crate::token::TokenName;
use crate::{lane, parse, runtime, terminal};

/// The number of the descriptor that has the ticket.
const NUMBER: u8 = 3;

/// Start an agent's program with a ticket for sessions.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  syscap ticket home --agent a --token 3f0c8a21 -- python3 agent.py
  syscap ticket home --agent a --token 3f0c8a21 --offer py.=read -- python3 agent.py

Descriptor 3 of COMMAND is a file that nobody can change: 32 bytes of ticket, and then the path of the home.
Whoever has it opens sessions with this agent and token, on the agents' channel of the home's socket: at
most 16 connections at a time, until this command ends. Where the server was lost the ticket holds with
the next one. Signals are passed on; the exit code is the program's.")]
pub(crate) struct Ticket {
    /// The home.
    home: PathBuf,
    /// The agent that the program is.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Its token.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse)]
    token: TokenName,
    #[command(flatten)]
    offers: Offers,
    #[command(flatten)]
    people: runtime::People,
    /// The program, and what it is given.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What an agent's program may offer.
#[derive(Args, Clone, Debug)]
pub(crate) struct Offers {
    /// Names that the program may offer tools under, by whole components (py.). What it offers there counts
    /// as external_write, or as CLASS; its own word counts where it is more. At most 16.
    #[arg(long, value_name = "PREFIX[=CLASS]", value_parser = prefix)]
    offer: Vec<Prefix>,
    /// The program may run them itself, after leave: what it did then is its own word, as with a hook.
    #[arg(long, requires = "offer")]
    client_runs: bool,
}

impl Offers {
    /// A ticket for the agent's programs.
    pub(crate) fn ticket(
        &self,
        access: &Runtime,
        agent: &AgentId,
        token: TokenId,
    ) -> Result<SessionTicket, syscap::Error> {
        access.ticket(agent, token, &self.offer, self.client_runs)
    }
}

fn prefix(text: &str) -> Result<Prefix, String> {
    let (name, class) = text.split_once('=').map_or((text, None), |(name, it)| (name, Some(it)));
    let prefix = ToolId::new(name.strip_suffix('.').unwrap_or(name))
        .ok_or_else(|| format!("`{name}` begins no tool's name"))?;
    let class = class.map(|class| {
        let named = EffectClass::ALL.iter().find(|known| known.name() == class);
        named.copied().ok_or_else(|| format!("`{class}` is no class of effects"))
    });
    Ok(Prefix { prefix, class: class.transpose()?.unwrap_or(EffectClass::ExternalWrite) })
}

impl Ticket {
    pub(crate) fn run(self) -> Ended {
        if env::var_os(lane::VARIABLE).is_some() {
            let advice = "has no home to reach inside a run: it is started outside".to_owned();
            return Err(Failure::Usage { what: "ticket".to_owned(), advice });
        }
        let home = std::path::absolute(&self.home).map_err(Failure::file(&self.home))?;
        let access = starter::reach(&self.home, self.people, Presence::Stays)?;
        runtime::finish(access, |access| {
            let token = self.token.of(&self.home)?;
            let ticket = self.offers.ticket(access, &self.agent, token)?;
            let file = sealed(&ticket, &home).map_err(Failure::Stream)?;
            let ended = started(&self.command, file)?;
            let signal = ended.signal().and_then(|signal| u8::try_from(signal).ok());
            let code = ended.code().and_then(|code| u8::try_from(code).ok());
            let code = code.or(signal.map(|signal| signal.saturating_add(128)));
            Ok(Exit::Program(code.unwrap_or(1)))
        })
    }
}

/// A file in memory that can't be changed any more.
fn sealed(ticket: &SessionTicket, home: &Path) -> io::Result<OwnedFd> {
    let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
    let mut file = File::from(memfd_create(c"syscap-ticket", flags)?);
    file.write_all(ticket.as_bytes())?;
    file.write_all(home.as_os_str().as_bytes())?;
    let all = SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK | SealFlags::SEAL;
    fcntl_add_seals(&file, all)?;
    Ok(file.into())
}

/// Starts the program, and waits for its end.
fn started(command: &[OsString], file: OwnedFd) -> Result<ExitStatus, Failure> {
    let Some((program, arguments)) = command.split_first() else {
        let advice = "name a program behind --".to_owned();
        return Err(Failure::Usage { what: "ticket".to_owned(), advice });
    };
    // Before it is there: a signal that comes meanwhile is passed on.
    let heard = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT];
    let signals = Signals::new(heard).map_err(Failure::Stream)?;
    let mut starts = Command::new(program);
    starts.args(arguments);
    syscap::launch::give(&mut starts, file, NUMBER);
    let mut child = starts.spawn().map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 };
        let problem = format!("{}: {error}", program.display());
        Failure::NotStarted { problem, exit: Exit::Program(code) }
    })?;
    // The handle in `starts` goes: from here on the program alone has it.
    drop(starts);
    pass(&child, signals)?;
    child.wait().map_err(Failure::Stream)
}

/// Passes signals on from here on. What is typed at a terminal comes to both processes by itself.
fn pass(child: &Child, mut signals: Signals) -> Result<(), Failure> {
    // A handle, and no number: once the program has been waited for, its number may be another's.
    let child = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    let child = child.ok_or(rustix::io::Errno::SRCH);
    let child = child.and_then(|child| pidfd_open(child, PidfdFlags::empty()));
    let child = child.map_err(|error| Failure::Stream(error.into()))?;
    let typed = terminal::is_there();
    let hear = move || {
        for signal in signals.forever() {
            let is_typed = typed && matches!(signal, SIGINT | SIGQUIT);
            if let (Some(signal), false) = (Signal::from_named_raw(signal), is_typed) {
                // It may have ended already.
                pidfd_send_signal(&child, signal).unwrap_or(());
            }
        }
    };
    let started = thread::Builder::new().name("syscap-signals".to_owned()).spawn(hear);
    started.map(drop).map_err(Failure::Stream)
}
