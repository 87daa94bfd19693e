//! Starts the program, and stays with it to its end.

use std::ffi::OsString;
use std::io::{self, IsTerminal as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use rustix::pipe::{PipeFlags, pipe_with};
use syscap::Runtime;
use syscap::format::{AgentId, TokenId};
use syscap::launch::{
    Access as Right, Ended as Over, Granted, LaunchError, Launcher, Level, Orders, Plan, Report,
    Running, Said, Stream,
};

use super::client::Known;
use super::paths::{Guarded, Place};
use super::screen::Screen;
use super::{Run, door, environment, record, shim, signals, token, watch};
use crate::changes::{Baseline, Noted};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::hook::client::Inside;
use crate::hook::setup::{self, quoted};
use crate::scratch::Scratch;
use crate::{lane, runtime};

/// The exit code of a run that a freeze or a revocation ended: as one that SIGKILL ended.
const STOPPED: u8 = 128 + 9;

/// The paths that are opened to the program, all of them checked.
pub(super) struct Prepared {
    program: Place,
    workspace: Place,
    own: Place,
    known: Known,
    granted: Vec<(Place, Right)>,
    config: (PathBuf, Place),
    state: PathBuf,
    temporary: PathBuf,
    /// Dropped last: the folders that it is about.
    _scratch: Scratch,
}

impl Prepared {
    pub(super) fn of(run: &Run, known: Known) -> Result<Self, Failure> {
        let guarded = Guarded::of(&run.home)?;
        token::check_mcp(run)?;
        if let Some(client) = known.client() {
            drop(token::hook(run, client)?);
        }
        let workspace = Place::open(run.workspace.as_deref().unwrap_or(Path::new(".")))?;
        if !workspace.is_folder {
            let what = "--workspace".to_owned();
            return Err(Failure::Usage { what, advice: "names no folder".to_owned() });
        }
        guarded.expect_apart(&workspace)?;
        let scratch = Scratch::new("run")?;
        let (config, temporary) = (scratch.folder("config")?, scratch.folder("tmp")?);
        let state = match &run.state {
            Some(state) => state.clone(),
            None => scratch.folder("home")?,
        };
        let mut granted = Vec::new();
        for path in [&state, &temporary] {
            granted
                .extend([(Place::open(path)?, Right::Write), (Place::open(path)?, Right::Execute)]);
        }
        let named = [(&run.ro, Right::Read), (&run.rw, Right::Write), (&run.exec, Right::Execute)];
        for (paths, right) in named {
            for path in paths {
                granted.push((Place::open(path)?, right));
            }
        }
        let program = run.program.first().map(|program| environment::find(program)).transpose()?;
        let program = program.ok_or_else(|| {
            let what = "PROGRAM".to_owned();
            Failure::Usage { what, advice: "is missing".to_owned() }
        })?;
        let own = Place::open(Path::new("/proc/self/exe"))?;
        let configured = Place::open(&config)?;
        let prepared = Self {
            config: (config, configured),
            program,
            workspace,
            own,
            known,
            granted,
            state,
            temporary,
            _scratch: scratch,
        };
        prepared.check(&guarded)?;
        Ok(prepared)
    }

    /// That nothing of the home's is opened, and nothing that holds this boundary is writable.
    fn check(&self, guarded: &Guarded) -> Result<(), Failure> {
        guarded.expect_apart(&self.program)?;
        for (place, _) in &self.granted {
            guarded.expect_apart(place)?;
        }
        let writable = self.granted.iter().filter(|(_, right)| *right == Right::Write);
        for place in writable.map(|(place, _)| place).chain([&self.workspace]) {
            let (config, own) = (&self.config.1, &self.own);
            let what = match (place.contains(config), place.contains(own)) {
                (true, _) => "the run's own configuration: set TMPDIR to a folder elsewhere",
                (_, true) => "the program `syscap` itself: start one that lies elsewhere",
                (false, false) => continue,
            };
            let what = format!("would let the agent change {what}");
            let place = place.real()?.display().to_string();
            return Err(Failure::Usage { what: place, advice: what });
        }
        Ok(())
    }

    /// The program's path, if it lies in no opened folder.
    fn alone(&self) -> Option<PathBuf> {
        let granted = self.granted.iter().map(|(place, _)| place);
        let opened = granted.chain([&self.workspace]).any(|place| place.contains(&self.program));
        let known = opened || environment::is_the_systems(&self.program);
        (!known).then(|| self.program.real().ok()).flatten()
    }

    /// The plan of it, without streams.
    fn plan(&self, run: &Run, token: TokenId, services: &str) -> Result<Plan, Failure> {
        let own = self.own.real()?;
        let home = std::path::absolute(&run.home).map_err(Failure::file(&run.home))?;
        let (own, home) = (setup::path(&own)?, setup::path(&home)?);
        // Within, what stands behind the first word is what was settled here.
        let line = |service: &str| {
            let words = [service, &home, "--agent", run.agent.as_str()];
            words.map(str::to_owned).to_vec()
        };
        let mut configured = super::client::Configured::default();
        if let Some(client) = self.known.client() {
            let hook = token::hook(run, client)?;
            let mut words = vec![own.clone()];
            words.extend(line("hook"));
            words.extend(["--client".to_owned(), client.option().to_owned()]);
            // The one within waits as long as the one outside, at least.
            let patience = format!("{}s", hook.patience.as_secs());
            words.extend(["--patience".to_owned(), patience]);
            let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
            let settings = hook.settings(&words.join(" "));
            let gateway = line("mcp");
            let gateway = run.mcp.as_ref().map(|_| (own.as_str(), gateway.as_slice()));
            configured = self.known.configure(&self.config.0, &settings, gateway)?;
        }
        let (name, arguments) = run.program.split_first().unzip();
        let name = name.cloned().unwrap_or_default();
        let mut plan = Plan::new(self.program.again()?, name, self.workspace.again()?);
        plan.arguments.extend(configured.arguments.iter().map(OsString::from));
        plan.arguments.extend(arguments.unwrap_or_default().iter().cloned());
        let folders = [(&self.workspace, Right::Write), (&self.workspace, Right::Execute)];
        let all = self.granted.iter().map(|(place, right)| (place, *right));
        let owns = [(&self.own, Right::Execute), (&self.config.1, Right::Read)];
        for (place, access) in all.chain(folders).chain(owns) {
            plan.granted.push(Granted { handle: place.again()?, access });
        }
        let network = run.net == syscap::launch::Network::Host;
        let names = environment::NETWORK.iter().filter(|_| network);
        for path in environment::BEGINNING.iter().chain(names) {
            if let Ok(place) = Place::open(Path::new(path)) {
                plan.granted.push(Granted { handle: place.handle, access: Right::Read });
            }
        }
        let executed = self.granted.iter().filter(|(_, right)| *right == Right::Execute);
        let executed: Vec<&Place> =
            executed.map(|(place, _)| place).chain([&self.workspace]).collect();
        let absolute = |path: &PathBuf| std::path::absolute(path).map_err(Failure::file(path));
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), environment::path(&executed, &self.own.real()?)),
            ("HOME".into(), absolute(&self.state)?.into()),
            ("TMPDIR".into(), absolute(&self.temporary)?.into()),
            (lane::VARIABLE.into(), services.into()),
            ("SYSCAP_AGENT".into(), run.agent.to_string().into()),
            ("SYSCAP_TOKEN".into(), token.to_string().into()),
        ];
        let more = configured.environment.into_iter();
        variables.extend(more.map(|(name, value)| (name.into(), value.into())));
        plan.environment = environment::of(&run.env, variables)?;
        (plan.network, plan.required, plan.door) = (run.net, run.require, true);
        Ok(plan)
    }
}

pub(super) fn run(
    run: &Run,
    prepared: Prepared,
    access: &Runtime,
    token: TokenId,
    services: Vec<door::Command>,
) -> Ended {
    let has_screen = Run::has_screen();
    let door = door::Door::new(services, has_screen)?;
    let mut plan = prepared.plan(run, token, &door.services())?;
    let mut screen = None;
    if has_screen {
        let (made, lower) = Screen::new().map_err(Failure::Stream)?;
        (screen, plan.terminal) = (Some(made), Some(lower));
    } else {
        plan.input = Some(input()?);
    }
    let caller = runtime::session(access, &run.agent, token)?;
    let workspace = prepared.workspace.real()?;
    let noted = Baseline::begin(&run.home, caller.number(), &run.agent, &workspace)?;
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
        && let Some(advice) = prepared.alone().and_then(|path| shim::advice(&path, code))
    {
        diagnose(&advice);
    }
    Ok(ended)
}

/// Says what has begun, and what its boundary does not hold.
fn tell_start(run: &Run, level: Level, token: TokenId) {
    let network = record::network_name(run.net);
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

/// The program's input: this process's. A terminal that is not its own is only read for it.
fn input() -> Result<OwnedFd, Failure> {
    let stdin = rustix::stdio::stdin();
    if !io::stdin().is_terminal() {
        let again = rustix::io::fcntl_dupfd_cloexec(stdin, 3);
        return again.map_err(|error| Failure::Stream(error.into()));
    }
    let (read, write) =
        pipe_with(PipeFlags::CLOEXEC).map_err(|error| Failure::Stream(error.into()))?;
    let mut write = std::fs::File::from(write);
    let carry = move || drop(io::copy(&mut io::stdin(), &mut write));
    let started = thread::Builder::new().name("syscap-typed".to_owned()).spawn(carry);
    started.map_err(Failure::Stream)?;
    Ok(read)
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
