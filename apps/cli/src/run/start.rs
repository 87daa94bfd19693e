//! Starts the program, and stays with it to its end.

use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use syscap::Runtime;
use syscap::boundary::runs;
use syscap::format::{AgentId, TokenId};
use syscap::launch::{
    Ended as Over, LaunchError, Launcher, Level, Orders, Report, Running, Said, Stream,
};
use syscap_gateway::Uses;

use super::prepared::{Prepared, real};
use super::screen::Screen;
use super::{Run, door, record, shim, signals, token, watch};
use crate::changes::{Baseline, Noted};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::hook::client::Inside;
use crate::runtime;

/// The exit code of a run that a freeze or a revocation ended: as one that SIGKILL ended.
const STOPPED: u8 = 128 + 9;

pub(super) fn run(
    run: &Run,
    prepared: Prepared,
    access: &Runtime,
    token: TokenId,
    services: Vec<door::Command>,
) -> Ended {
    let has_screen = Run::has_screen();
    let ticket = run.offers.ticket(access, &run.agent, token)?;
    let door = door::Door::new(services, has_screen, ticket, &run.home)?;
    let mut plan = prepared.plan(run, token, &door.services())?;
    let mut screen = None;
    if has_screen {
        let (made, lower) = Screen::new().map_err(Failure::Stream)?;
        (screen, plan.terminal) = (Some(made), Some(lower));
    } else {
        plan.input = Some(input()?);
    }
    let caller = runtime::session(access, &run.agent, token)?;
    let workspace = real(&prepared.workspace)?;
    let writable = prepared.writable()?;
    let noted = Baseline::begin(&run.home, caller.number(), &run.agent, writable)?;
    runs::remember(&run.home, &prepared.named(run)?)?;
    let noted = Noted::new(&run.home, noted);
    let launched = |error| not_started(run, error);
    let mut running = Launcher::this().and_then(|it| it.start(&plan)).map_err(launched)?;
    // Handles that the program holds alone end with it.
    drop(plan);
    let achieved = running.begun().map_err(launched)?;
    let level = record::begun(access, &caller, &achieved, run.net, &workspace)?;
    signals::forward(
        running.orders().map_err(launched)?,
        screen.as_ref().map(Screen::sized).transpose().map_err(Failure::Stream)?,
    )?;
    tell_start(run, level, token);
    for (given, real) in &prepared.elsewhere {
        tell(&format!("{} is {}", given.display(), real.display()));
    }
    if let Some(screen) = &mut screen {
        screen.begin().map_err(Failure::Stream)?;
    }
    let orders = running.orders().map_err(launched)?;
    let (ended, stopped) =
        watched(access, &run.agent, token, orders, || stay(&mut running, &door))?;
    drop(running);
    if let Some(screen) = screen.take() {
        screen.end();
    }
    let said = door.close();
    let alone = prepared.alone();
    tell_missed(&prepared.uses);
    if let Err(error) = prepared.scratch.remove() {
        diagnose(&format!("left behind: {error}"));
    }
    // A server's words, of which a terminal must not obey any.
    String::from_utf8_lossy(&said).lines().for_each(tell);
    drop(noted);
    // What was revoked or frozen meanwhile writes nothing any more, and need not.
    if let Err(failure) =
        record::ended(access, &caller).and_then(|()| Ok(caller.close().map(drop)?))
    {
        diagnose(&format!("the end of the run is not on record: {failure}"));
    }
    if let Some(why) = stopped {
        diagnose(&format!("{why}: the run was ended"));
        return Ok(Exit::Program(STOPPED));
    }
    let ended = code(&ended.map_err(launched)?);
    if let Exit::Program(code) = ended
        && let Some(advice) = alone.and_then(|path| shim::advice(&path, code))
    {
        diagnose(&advice);
    }
    Ok(ended)
}

/// Says which uses the client made past the gateway.
fn tell_missed(uses: &Path) {
    match Uses::at(uses.to_path_buf()).missed() {
        Ok(missed) => missed.lines().for_each(|line| {
            diagnose(&format!("a use that this run's gateway got no call of: {line}"));
        }),
        Err(error) => diagnose(&format!("uses past the gateway are not known: {error}")),
    }
}

/// Says what has begun, and what its boundary does not hold.
fn tell_start(run: &Run, level: Level, token: TokenId) {
    let network = run.net.name();
    let token = token.to_string();
    tell(&format!("{} runs {}, network {network}, token {token:.12}", run.agent, level.name()));
    if token::inside(run) == Some(Inside::ContainedOnline) {
        tell(
            "the network is open: what the program can read, its own login too, may leave by it, and \
             services of this machine that ask for no password may act outside for it",
        );
    }
}

/// Stays with the program, and has it ended where the home says so; why, then.
fn watched<T>(
    access: &Runtime,
    agent: &AgentId,
    token: TokenId,
    orders: Orders,
    stay: impl FnOnce() -> T,
) -> Result<(T, Option<String>), Failure> {
    let (running, over) = mpsc::channel();
    thread::scope(|scope| {
        let watch = move || {
            let stopped = watch::wait(access, agent, token, &over);
            if stopped.is_some() {
                orders.cancel();
            }
            stopped
        };
        let named = thread::Builder::new().name("syscap-watch".to_owned());
        let watch = named.spawn_scoped(scope, watch).map_err(Failure::Stream)?;
        let ended = stay();
        drop(running);
        let broken = || Some("the watch for freezes broke off".to_owned());
        Ok((ended, watch.join().unwrap_or_else(|_| broken())))
    })
}

/// Hears of it to its end.
fn stay(running: &mut Running, door: &door::Door) -> Result<Report, LaunchError> {
    loop {
        match running.recv()? {
            Said::Output(stream, bytes) => {
                let written = match stream {
                    Stream::Out => {
                        let mut out = io::stdout();
                        out.write_all(&bytes).and_then(|()| out.flush())
                    }
                    Stream::Err => io::stderr().write_all(&bytes),
                };
                // Nobody listens any more: as a program that writes to a closed pipe is ended.
                if written.is_err() {
                    running.cancel();
                }
            }
            Said::Connected(end) => door.admit(end),
            Said::Ended(report) => return Ok(report),
        }
    }
}

/// The program's input: this process's, of which the launcher gives no more than the bytes.
fn input() -> Result<OwnedFd, Failure> {
    let again = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3);
    again.map_err(|error| Failure::Stream(error.into()))
}

fn code(report: &Report) -> Exit {
    Exit::Program(match report.ended {
        Over::Exited(code) => code,
        Over::Signalled(signal) => signal.saturating_add(128),
        // It has no bounds.
        Over::Bound(_) => 124,
        // By a closed pipe.
        Over::Cancelled => 128 + 13,
    })
}

/// Why nothing runs, and what goes on.
fn not_started(run: &Run, error: LaunchError) -> Failure {
    let exit = match &error {
        LaunchError::Execute(error) if error.kind() == io::ErrorKind::NotFound => {
            Exit::Program(127)
        }
        LaunchError::Execute(_) => Exit::Program(126),
        _ => Exit::NotStarted,
    };
    let advice = match &error {
        LaunchError::Level { had: Level::Bounded, .. } => {
            "; no boundary is to be had here: `syscap doctor` says what is missing".to_owned()
        }
        LaunchError::Level { had, .. } => format!(
            "; `syscap doctor` says what is missing; to go on with less: syscap run --require {}",
            had.name()
        ),
        _ => String::new(),
    };
    let program = run.program.first().map(|name| name.display().to_string()).unwrap_or_default();
    Failure::NotStarted { problem: format!("{program}: {error}{advice}"), exit }
}
