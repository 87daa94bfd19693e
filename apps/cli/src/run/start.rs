//! Starts the program, and stays with it to its end.

use std::ffi::OsString;
use std::io::{self, Write as _};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;

use syscap::Runtime;
use syscap::boundary::environment as begins;
use syscap::boundary::{BoundaryError, Guarded, Link, Place, Scratch, Way, runs};
use syscap::format::{AgentId, TokenId};
use syscap::kernel::StoreError;
use syscap::launch::{
    Access as Right, Ended as Over, Granted, LaunchError, Launcher, Level, Orders, Plan, Report,
    Running, Said, Stream,
};

use super::client::Known;
use super::screen::Screen;
use super::{Run, door, environment, record, shim, signals, token, watch};
use crate::changes::{Baseline, Noted};
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::hook::client::Inside;
use crate::hook::setup::{self, quoted};
use crate::{lane, runtime};

/// The exit code of a run that a freeze or a revocation ended: as one that SIGKILL ended.
const STOPPED: u8 = 128 + 9;

fn open(path: &Path) -> Result<Place, Failure> {
    Place::open(path).map_err(Failure::file(path))
}

fn guarded(run: &Run) -> Result<Guarded, Failure> {
    Guarded::of(&run.home).map_err(|error| match error {
        BoundaryError::File { path, source }
            if path == run.home && source.kind() == io::ErrorKind::NotFound =>
        {
            Failure::home(&run.home)(StoreError::Missing.into())
        }
        error => error.into(),
    })
}

/// Opens the run's own folders, and the named paths beside the workspace.
fn granted(
    run: &Run,
    own: [&PathBuf; 2],
    links: &mut Links,
) -> Result<Vec<(Place, Right)>, Failure> {
    let mut granted = Vec::new();
    for path in own {
        // No link leads to a folder that was made for this run.
        let first = match run.state.as_ref() == Some(path) {
            true => open_to_write(path, links)?,
            false => open(path)?,
        };
        granted.extend([(first, Right::Write), (open(path)?, Right::Execute)]);
    }
    let named = [(&run.ro, Right::Read), (&run.rw, Right::Write), (&run.exec, Right::Execute)];
    for (paths, right) in named {
        for path in paths {
            let place = match right {
                Right::Write => open_to_write(path, links)?,
                Right::Read | Right::Execute => open(path)?,
            };
            granted.push((place, right));
        }
    }
    Ok(granted)
}

/// The writable paths to which a link leads, each with its real path.
fn elsewhere(
    granted: &[(Place, Right)],
    workspace: &Place,
    links: &Links,
) -> Result<Vec<(PathBuf, PathBuf)>, Failure> {
    let written = granted.iter().filter(|(_, right)| *right == Right::Write);
    let written = written.map(|(place, _)| place).chain([workspace]);
    let linked = written.filter(|place| links.iter().any(|(path, _)| path == place.shown()));
    linked.map(|place| Ok((place.shown().to_path_buf(), real(place)?))).collect()
}

/// The links on the ways of paths that are opened to write, with the path.
type Links = Vec<(PathBuf, Link)>;

/// Descriptors that a process of the run may have: fewer than one outside. Those that are on their way
/// through Unix sockets count for the user, and are compared with the sender's own limit (unix(7)).
/// One message carries 253, so that those inside leave room for those outside.
fn descriptors() -> Option<u64> {
    const ROOM: u64 = 320;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map(|soft| soft.saturating_sub(ROOM).max(ROOM))
}

/// Opens what a path leads to, and notes the links on its way.
fn open_to_write(path: &Path, links: &mut Links) -> Result<Place, Failure> {
    let failed = |error| Failure::file(path)(error);
    let mut way = Way::of(&by_shell(path), Path::new(".")).map_err(failed)?;
    links.extend(way.take_links().into_iter().map(|link| (path.to_path_buf(), link)));
    Ok(way.into_end().map_err(failed)?.named(path))
}

/// A path as the shell would follow it, which remembers the links that led to its folder.
fn by_shell(path: &Path) -> PathBuf {
    let shells = std::env::var_os("PWD").map(PathBuf::from).filter(|folder| folder.is_absolute());
    let is_here = |folder: &PathBuf| {
        let places =
            Place::open(folder).and_then(|shells| Ok((shells, Place::open(".".as_ref())?)));
        places.is_ok_and(|(shells, here)| shells.contains(&here) && here.contains(&shells))
    };
    match shells.filter(is_here) {
        Some(folder) => folder.join(path),
        None => path.to_path_buf(),
    }
}

fn real(place: &Place) -> Result<PathBuf, Failure> {
    place.real().map_err(Failure::file(place.shown()))
}

fn again(place: &Place) -> Result<OwnedFd, Failure> {
    place.handle().map_err(Failure::file(place.shown()))
}

/// The paths that are opened to the program, all of them checked.
pub(super) struct Prepared {
    program: Place,
    workspace: Place,
    own: Place,
    known: Known,
    granted: Vec<(Place, Right)>,
    config: (PathBuf, Place),
    /// The writable paths to which a link leads, each with its real path.
    elsewhere: Vec<(PathBuf, PathBuf)>,
    state: PathBuf,
    temporary: PathBuf,
    /// Dropped last: the folders that it is about.
    scratch: Scratch,
}

impl Prepared {
    pub(super) fn of(run: &Run, known: Known) -> Result<Self, Failure> {
        let guarded = guarded(run)?;
        drop(token::mcp(run)?);
        if let Some(client) = known.client() {
            drop(token::hook(run, client)?);
        }
        let mut links = Vec::new();
        let path = run.workspace.as_deref().unwrap_or(Path::new("."));
        let workspace = open_to_write(path, &mut links)?;
        if !workspace.is_folder() {
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
        let granted = granted(run, [&state, &temporary], &mut links)?;
        let elsewhere = elsewhere(&granted, &workspace, &links)?;
        let program = run.program.first().map(|program| environment::find(program)).transpose()?;
        let program = program.ok_or_else(|| {
            let what = "PROGRAM".to_owned();
            Failure::Usage { what, advice: "is missing".to_owned() }
        })?;
        let own = open(Path::new("/proc/self/exe"))?;
        let configured = open(&config)?;
        let prepared = Self {
            config: (config, configured),
            elsewhere,
            program,
            workspace,
            own,
            known,
            granted,
            state,
            temporary,
            scratch,
        };
        prepared.check(&guarded)?;
        prepared.check_links(run, &links)?;
        if run.mcp.is_some() {
            prepared.check_outside()?;
            prepared.tell_settings();
        }
        Ok(prepared)
    }

    /// That nothing of the home's is opened, and nothing that holds this boundary is writable.
    fn check(&self, guarded: &Guarded) -> Result<(), Failure> {
        guarded.expect_apart(&self.program)?;
        for (place, right) in &self.granted {
            guarded.expect_apart(place)?;
            let is_written = || self.written().any(|written| written.contains(place));
            if *right == Right::Read && is_written() {
                let what = format!("--ro {}", place.shown().display());
                let advice =
                    "lies in a place that the agent may write, and would be written, too: leave \
                    it out, or move it elsewhere"
                        .to_owned();
                return Err(Failure::Usage { what, advice });
            }
        }
        for place in self.written() {
            let (config, own) = (&self.config.1, &self.own);
            let what = match (place.contains(config), place.contains(own)) {
                (true, _) => "the run's own configuration: set TMPDIR to a folder elsewhere",
                (_, true) => "the program `syscap` itself: start one that lies elsewhere",
                (false, false) => continue,
            };
            let what = format!("would let the agent change {what}");
            let place = real(place)?.display().to_string();
            return Err(Failure::Usage { what: place, advice: what });
        }
        Ok(())
    }

    /// Refuses a path that is opened to write if an agent could have said where it leads.
    fn check_links(&self, run: &Run, links: &Links) -> Result<(), Failure> {
        let earlier = runs::ever_writable(&run.home)?;
        let earlier: Vec<Place> =
            earlier.iter().filter_map(|path| Place::open(path).ok()).collect();
        for (path, link) in links {
            let who = match self.written().chain(&earlier).any(|place| link.is_within(place)) {
                true => "an agent",
                false if link.is_others => "another user",
                false => continue,
            };
            let what = path.display().to_string();
            let advice = format!(
                "is opened to write, and leads through the link {}, which {who} could have put there: \
                 name the path that it leads to",
                link.path.display()
            );
            return Err(Failure::Usage { what, advice });
        }
        Ok(())
    }

    /// Refuses a HOME or TMPDIR of servers that the agent may write.
    fn check_outside(&self) -> Result<(), Failure> {
        let home = std::env::var_os("HOME").map(PathBuf::from);
        let all = [("HOME", home), ("TMPDIR", Some(std::env::temp_dir()))];
        for (name, folder) in all {
            let Some(folder) = folder else { continue };
            let way = Way::of(&folder, Path::new("/")).map_err(Failure::file(&folder))?;
            if self.written().any(|place| way.touches(place)) {
                let advice = format!(
                    "is {}, which the agent may write, and the servers of --mcp find their settings \
                     and files there: name another workspace, or start it as {name}=DIR syscap run ..",
                    folder.display()
                );
                return Err(Failure::Usage { what: name.to_owned(), advice });
            }
        }
        Ok(())
    }

    /// Says which places the agent may write where programs of this user keep settings and code.
    fn tell_settings(&self) {
        let Some(home) = std::env::var_os("HOME").and_then(|home| Place::open(home.as_ref()).ok())
        else {
            return;
        };
        for place in self.written().filter(|place| home.contains(place)) {
            let below = home.real().and_then(|home| Ok((home, place.real()?)));
            let Ok((home, real)) = below else { continue };
            let first = real.strip_prefix(&home).ok().and_then(|below| below.components().next());
            if first.is_some_and(|first| first.as_os_str().as_bytes().starts_with(b".")) {
                diagnose(&format!(
                    "the agent may write {}: a server of --mcp that keeps settings or code there runs \
                     what the agent puts there",
                    real.display()
                ));
            }
        }
    }

    pub(super) fn written(&self) -> impl Iterator<Item = &Place> + Clone {
        let named = self.granted.iter().filter(|(_, right)| *right == Right::Write);
        [&self.workspace].into_iter().chain(named.map(|(place, _)| place))
    }

    /// The real paths that the agent may write, the workspace first.
    pub(super) fn writable(&self) -> Result<Vec<PathBuf>, Failure> {
        self.written().map(real).collect()
    }

    /// The same without the folders that end with the run.
    fn named(&self, run: &Run) -> Result<Vec<PathBuf>, Failure> {
        let own = [Some(&self.temporary), run.state.is_none().then_some(&self.state)];
        let mut all = self.writable()?;
        all.retain(|path| !own.contains(&Some(path)));
        Ok(all)
    }

    /// The program's path, if it lies in no opened folder.
    fn alone(&self) -> Option<PathBuf> {
        let granted = self.granted.iter().map(|(place, _)| place);
        let opened = granted.chain([&self.workspace]).any(|place| place.contains(&self.program));
        let known = opened || begins::is_the_systems(&self.program);
        (!known).then(|| self.program.real().ok()).flatten()
    }

    /// The plan of it, without streams.
    fn plan(&self, run: &Run, token: TokenId, services: &str) -> Result<Plan, Failure> {
        let own = real(&self.own)?;
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
            let gateway = services
                .split(',')
                .any(|service| service == lane::Service::Mcp.name())
                .then_some((own.as_str(), gateway.as_slice()));
            configured = self.known.configure(&self.config.0, &settings, gateway)?;
        }
        let (name, arguments) = run.program.split_first().unzip();
        let name = name.cloned().unwrap_or_default();
        let mut plan = Plan::new(again(&self.program)?, name, again(&self.workspace)?);
        plan.arguments.extend(configured.arguments.iter().map(OsString::from));
        plan.arguments.extend(arguments.unwrap_or_default().iter().cloned());
        let folders = [(&self.workspace, Right::Write), (&self.workspace, Right::Execute)];
        let all = self.granted.iter().map(|(place, right)| (place, *right));
        let owns = [(&self.own, Right::Execute), (&self.config.1, Right::Read)];
        for (place, access) in all.chain(folders).chain(owns) {
            plan.granted.push(Granted { handle: again(place)?, access });
        }
        let network = run.net == syscap::launch::Network::Host;
        let names = begins::NETWORK.iter().filter(|_| network);
        for path in begins::BEGINNING.iter().chain(names) {
            if let Ok(handle) = Place::open(Path::new(path)).and_then(|place| place.handle()) {
                plan.granted.push(Granted { handle, access: Right::Read });
            }
        }
        let executed = self.granted.iter().filter(|(_, right)| *right == Right::Execute);
        let executed: Vec<&Place> =
            executed.map(|(place, _)| place).chain([&self.workspace]).collect();
        let absolute = |path: &PathBuf| std::path::absolute(path).map_err(Failure::file(path));
        let here = std::env::var_os("PATH").unwrap_or_default();
        let mut variables: Vec<(OsString, OsString)> = vec![
            ("PATH".into(), begins::path(&here, &executed, Some(&real(&self.own)?))),
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
        plan.limits.descriptors = run.descriptors.or_else(descriptors);
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
