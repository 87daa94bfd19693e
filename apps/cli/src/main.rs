//! `syscap`: homes, tokens, calls and the log from the command line.
//!
//! A module a command. What a command prints goes through [`output::Out`]; how it ends is an
//! [`exit::Exit`].
#![deny(clippy::as_conversions)]

mod approvals;
mod artifacts;
mod call;
mod cancel;
mod changes;
mod config;
mod credits;
mod demo;
mod doctor;
mod exit;
mod fields;
mod freeze;
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
mod parse;
mod policy;
mod recording;
mod recover;
mod resume;
mod run;
mod runtime;
mod scratch;
mod secret;
mod serve;
mod signing;
mod state;
mod terminal;
mod token;
mod tools;
mod top;
mod verify;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use syscap::format::control::FreezeChange;

use crate::{
    exit::Exit,
    output::{Form, Out, plain},
};

/// A capability kernel for AI agents' tools.
#[derive(Debug, Parser)]
#[command(name = "syscap", bin_name = "syscap", version, about)]
#[command(after_help = exit::HELP, propagate_version = true)]
struct Cli {
    /// Print for machines: one JSON document, or one JSON line for each item.
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Make a home: log, keys, trust file and the agents' files.
    Init(init::Init),
    /// Issue, list, show and revoke tokens.
    #[command(subcommand)]
    Token(token::Token),
    /// Calls that wait for a person: list, show, approve, deny.
    #[command(subcommand)]
    Approvals(approvals::Approvals),
    /// End a token and all that was derived from it, an epoch, or all of a key, for ever.
    Revoke(token::Revoke),
    /// Stop the calls of an agent or of a tool, or all, until they are thawed.
    Freeze(freeze::Frozen),
    /// End a call that is out: what has not begun does not run, what runs is told.
    Cancel(cancel::Cancel),
    /// Let go on what was frozen.
    Thaw(freeze::Frozen),
    /// List, add, remove and rotate the keys that sign.
    #[command(subcommand)]
    Keys(keys::Keys),
    /// List and show tools, accept changed definitions, forget tools.
    #[command(subcommand)]
    Tools(tools::Tools),
    /// Set what tools that make HTTP requests are for: where to, how, with which secrets.
    #[command(subcommand)]
    Http(http::Http),
    /// Set, list and remove secrets that tools send to servers.
    #[command(subcommand)]
    Secret(secret::Secret),
    /// Read agents' resumes (`resume.json`) into tokens, and write them from tokens.
    #[command(subcommand)]
    Resume(resume::Resumes),
    /// Check, show, set, explain, test, compare and replay policies.
    #[command(subcommand)]
    Policy(policy::Policy),
    /// Show agents' states, and propose changes to them.
    #[command(subcommand)]
    State(state::State),
    /// Make calls for an agent: JSON lines in, one result a line out.
    Call(call::Call),
    /// Put MCP servers behind the kernel: an MCP server itself, for one client.
    Mcp(mcp::Mcp),
    /// Judge the tools that an agent's client runs itself: run by the client, before and after.
    Hook(hook::Hook),
    /// Start an agent or its client confined: home, keys and the operator's lane out of its reach.
    Run(run::Run),
    /// List the files that a run changed and that other programs execute or obey.
    Changes(changes::Changes),
    /// Show and add to what agents may spend.
    #[command(subcommand)]
    Credits(credits::Credits),
    /// Show and change what the operator has set: who is told of calls that wait, the time.
    Config(config::Config),
    /// List calls that a crash broke off, and say what became of them.
    #[command(subcommand)]
    Recover(recover::Recover),
    /// Propose the least capability that recorded calls show a need for.
    Learn(learn::Learn),
    /// Hold a home, and serve it to other processes.
    Serve(serve::Serve),
    /// Watch what runs, what is used and what is refused.
    Top(top::Top),
    /// Show or export the log.
    #[command(subcommand)]
    Log(log::Log),
    /// List and show what calls brought, and the latest of it as text for a model.
    #[command(subcommand)]
    Artifacts(artifacts::Artifacts),
    /// Check that a log is whole and says what happened.
    Verify(verify::Verify),
    /// Look whether this machine, and a home, are fit for work.
    Doctor(doctor::Doctor),
    /// See what is allowed, what is refused, and that the log knows.
    Demo(demo::Demo),
}

fn main() -> ExitCode {
    // This program is the launcher too: it starts a second time as it, from here on.
    syscap::launch::entry();
    let cli = Cli::try_parse().unwrap_or_else(|error| exit::usage(&of_plain_words(error)));
    let mut out = Out::new(if cli.json { Form::Json } else { Form::Text });
    let ended = match cli.command {
        Command::Init(init) => init.run(&mut out),
        Command::Token(token) => token.run(&mut out),
        Command::Approvals(approvals) => approvals.run(&mut out),
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
        Command::Mcp(mcp) => mcp.run(&mut out),
        Command::Hook(hook) => hook.run(&mut out),
        Command::Run(run) => run.run(),
        Command::Changes(changes) => changes.run(&mut out),
        Command::Credits(credits) => credits.run(&mut out),
        Command::Config(config) => config.run(&mut out),
        Command::Recover(recover) => recover.run(&mut out),
        Command::Learn(learn) => learn.run(&mut out),
        Command::Serve(serve) => serve.run(),
        Command::Top(top) => top.run(&mut out),
        Command::Log(log) => log.run(&mut out),
        Command::Artifacts(artifacts) => artifacts.run(&mut out),
        Command::Verify(verify) => verify.run(&mut out),
        Command::Doctor(doctor) => doctor.run(&mut out),
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

/// What is wrong with the same words without what a terminal would obey: of text that is made
/// plain afterwards, a part would be lost.
fn of_plain_words(error: clap::Error) -> clap::Error {
    let words: Vec<String> =
        std::env::args_os().map(|word| plain(&word.to_string_lossy()).into_owned()).collect();
    let same = std::env::args_os().zip(&words).all(|(word, plain)| *word == **plain);
    match Cli::try_parse_from(words) {
        Err(plainer) if !same && plainer.use_stderr() => plainer,
        _ => error,
    }
}
