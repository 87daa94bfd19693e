//! `syscap`: homes, tokens, calls and the log from the command line.
//!
//! A module a command. A command's output goes through [`output::Out`]; its end is an
//! [`exit::Exit`].
#![deny(clippy::as_conversions)]

mod approvals;
mod artifacts;
mod call;
mod cancel;
mod changes;
mod channel;
mod config;
mod console;
mod credits;
mod demo;
mod doctor;
mod erase;
mod exit;
mod fields;
mod freeze;
mod help;
mod hook;
mod http;
mod init;
mod keys;
mod lane;
mod learn;
mod lines;
mod log;
mod mcp;
mod near;
mod output;
mod owner;
mod parse;
mod policy;
mod process;
mod recording;
mod recover;
mod resume;
mod run;
mod runtime;
mod secret;
mod serve;
mod signed;
mod signing;
mod started;
mod starter;
mod state;
mod terminal;
mod ticket;
mod token;
mod tools;
mod top;
mod verify;

use std::{ffi::OsString, io::Write as _, process::ExitCode};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use syscap::{audit::HomeLock, format::FreezeChange};

use crate::exit::Exit;
use crate::output::{Form, Out, plain};

/// Check, limit and record every tool call of your AI agents.
#[derive(Debug, Parser)]
#[command(name = "syscap", bin_name = "syscap", version, about)]
#[command(propagate_version = true)]
struct Cli {
    /// Print for machines: one JSON document, or one JSON line for each item.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a home: log, keys, policy and files.
    Init(init::Init),
    /// Issue, list, show and attenuate tokens.
    #[command(subcommand)]
    Token(token::Token),
    /// List, show, approve and deny calls that wait.
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    /// Show a page for approvals on loopback.
    Console(console::Console),
    /// End a token or a key for good.
    Revoke(token::Revoke),
    /// Stop calls of an agent, a tool or all.
    Freeze(freeze::Frozen),
    /// Cancel one call that has not ended.
    Cancel(cancel::Cancel),
    /// Let a frozen agent, tool or home run again.
    Thaw(freeze::Frozen),
    /// List, add, remove and rotate signing keys.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// Show tools and accept changed definitions.
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Define tools that make HTTP requests.
    #[command(subcommand)]
    Http(http::Http),
    /// Set, list and remove secrets that tools send.
    #[command(subcommand)]
    Secret(secret::Secret),
    /// Read and write agents' resumes (`resume.json`).
    #[command(subcommand)]
    Resume(resume::Resumes),
    /// Check, show, set, test and replay policies.
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Show agents' states and propose changes.
    #[command(subcommand)]
    State(state::State),
    /// Make calls from JSON lines.
    Call(call::Call),
    /// Start an agent's program with a ticket for sessions.
    Ticket(ticket::Ticket),
    /// Carry the agents' channel on standard input and output.
    Channel(channel::Channel),
    /// Put syscap in front of MCP servers.
    Mcp(Box<mcp::Mcp>),
    /// Judge the tools that an agent's client runs itself.
    Hook(hook::Hook),
    /// Start an agent in a sandbox.
    Run(run::Run),
    /// List files that a run changed and others execute.
    Changes(changes::Changes),
    /// Show and add to what agents may spend.
    #[command(subcommand)]
    Credits(credits::Credits),
    Erase(erase::Erase),
    /// Show and change a home's settings.
    Config(config::Config),
    /// Settle calls that a crash interrupted.
    #[command(subcommand)]
    Recover(recover::Recover),
    /// Propose the least token for recorded calls.
    Learn(learn::Learn),
    /// Serve a home to other processes.
    Serve(serve::Serve),
    /// Watch running calls, budgets and refusals.
    Top(top::Top),
    /// Show or export the log.
    #[command(subcommand)]
    Log(log::Log),
    /// List and show results of calls.
    #[command(subcommand)]
    Artifacts(artifacts::Artifacts),
    /// Check the log for tampering and gaps.
    Verify(verify::Verify),
    /// Check this machine and a home.
    Doctor(doctor::Doctor),
    /// Run the conformance suite on an implementation.
    Conformance(syscap_conformance::Suite),
    /// Show 28 calls: which run, which are refused.
    Demo(demo::Demo),
}

fn main() -> ExitCode {
    // This program is the launcher too: it starts a second time as it, from here on.
    syscap::launch::entry();
    if let Some(code) = owner::go_on_as_owner() {
        return code;
    }
    started::set_up();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(text) = help::asked(&words, &Cli::command()) {
        return match std::io::stdout().write_all(text.as_bytes()) {
            Ok(()) => Exit::Done.into(),
            Err(_) => Exit::Failed.into(),
        };
    }
    let cli = Cli::try_parse().or_else(with_home);
    let cli = cli.unwrap_or_else(|error| exit::usage(&of_plain_words(error)));
    let mut out = Out::new(if cli.json { Form::Json } else { Form::Text });
    let ended = match cli.command {
        Command::Init(init) => init.run(&mut out),
        Command::Token(token) => token.run(&mut out),
        Command::Approvals(approvals) => approvals.run(&mut out),
        Command::Console(console) => console.run(&mut out),
        Command::Revoke(revoke) => revoke.run(&mut out),
        Command::Freeze(frozen) => frozen.run(FreezeChange::Freeze, &mut out),
        Command::Cancel(cancel) => cancel.run(&mut out),
        Command::Thaw(frozen) => frozen.run(FreezeChange::Thaw, &mut out),
        Command::Keys(keys) => keys.run(&mut out),
        Command::Tools(tools) => tools.run(&mut out),
        Command::Http(http) => http.run(&mut out),
        Command::Secret(secret) => secret.run(&mut out),
        Command::Resume(resumes) => resumes.run(&mut out),
        Command::Policy(policy) => policy.run(&mut out),
        Command::State(state) => state.run(&mut out),
        Command::Call(call) => call.run(&mut out),
        Command::Ticket(ticket) => ticket.run(),
        Command::Channel(channel) => channel.run(),
        Command::Mcp(mcp) => mcp.run(&mut out),
        Command::Hook(hook) => hook.run(&mut out),
        Command::Run(run) => run.run(),
        Command::Changes(changes) => changes.run(&mut out),
        Command::Credits(credits) => credits.run(&mut out),
        Command::Erase(erase) => erase.run(&mut out),
        Command::Config(config) => config.run(&mut out),
        Command::Recover(recover) => recover.run(&mut out),
        Command::Learn(learn) => learn.run(&mut out),
        Command::Serve(serve) => serve.run(),
        Command::Top(top) => top.run(&mut out),
        Command::Log(log) => log.run(&mut out),
        Command::Artifacts(artifacts) => artifacts.run(&mut out),
        Command::Verify(verify) => verify.run(&mut out),
        Command::Doctor(doctor) => doctor.run(&mut out),
        Command::Conformance(suite) => {
            let own = ["conformance"];
            let code = suite.run(&own, &mut std::io::stdout(), &mut std::io::stderr());
            Ok(Exit::Program(code))
        }
        Command::Demo(demo) => demo.run(&mut out),
    };
    let flushed = out.flush();
    let exit = match (ended, flushed) {
        // Its client takes any other code for no objection, whatever can't be printed.
        (Ok(Exit::Blocked), _) => Exit::Blocked,
        (Ok(exit), Ok(())) => exit,
        (Err(failure), _) | (Ok(_), Err(failure)) => {
            failure.report();
            lane::explain(&failure);
            failure.exit()
        }
    };
    exit.into()
}

/// The same command line with the home that it leaves out: `syscap approvals approve 13`.
fn with_home(error: clap::Error) -> Result<Cli, clap::Error> {
    let mut words: Vec<OsString> = std::env::args_os().collect();
    if error.kind() != ErrorKind::MissingRequiredArgument || words.get(1).is_some_and(is_init) {
        return Err(error);
    }
    let answers = words.get(1).is_some_and(|word| word == "approvals");
    let open = || if answers { HomeLock::only() } else { None };
    let Some(home) = runtime::home_of_environment().or_else(open) else { return Err(error) };
    // It stands behind the words that name the command.
    let (mut command, mut at) = (&Cli::command(), 1);
    while let Some(inner) = words.get(at).and_then(|word| command.find_subcommand(word)) {
        (command, at) = (inner, at.saturating_add(1));
    }
    words.insert(at, home.clone().into_os_string());
    let cli = Cli::try_parse_from(words).map_err(|_| error)?;
    exit::tell(&format!("home: {}", home.display()));
    Ok(cli)
}

/// `init` makes a home, and takes none that is there.
fn is_init(word: &OsString) -> bool {
    word == "init"
}

/// The error with the same words, and without characters that a terminal obeys: text that is made
/// plain afterwards would lose a part.
fn of_plain_words(error: clap::Error) -> clap::Error {
    let words: Vec<String> =
        std::env::args_os().map(|word| plain(&word.to_string_lossy()).into_owned()).collect();
    let same = std::env::args_os().zip(&words).all(|(word, plain)| *word == **plain);
    match Cli::try_parse_from(words) {
        Err(plainer) if !same && plainer.use_stderr() => plainer,
        _ => error,
    }
}
