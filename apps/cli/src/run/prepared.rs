//! The paths that are opened to the program, checked before anything is started or signed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use syscap::boundary::environment as begins;
use syscap::boundary::{BoundaryError, Guarded, Link, Place, Scratch, Way, runs};
use syscap::format::TokenId;
use syscap::kernel::StoreError;
use syscap::launch::{Access as Right, Granted, Plan};
use syscap::provide::LocationText;

use super::client::Known;
use super::linked::Passed;
use super::{Run, environment, token};
use crate::exit::{Failure, diagnose};
use crate::hook::setup::{self, quoted};
use crate::lane;

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

pub(super) fn real(place: &Place) -> Result<PathBuf, Failure> {
    place.real().map_err(Failure::file(place.shown()))
}

fn again(place: &Place) -> Result<OwnedFd, Failure> {
    place.handle().map_err(Failure::file(place.shown()))
}

/// The paths that are opened to the program, all of them checked.
pub(super) struct Prepared {
    program: Place,
    pub(super) workspace: Place,
    own: Place,
    known: Known,
    granted: Vec<(Place, Right)>,
    config: (PathBuf, Place),
    /// The writable paths to which a link leads, each with its real path.
    pub(super) elsewhere: Vec<(PathBuf, PathBuf)>,
    state: PathBuf,
    temporary: PathBuf,
    /// Where the hook and the gateways outside keep the client's uses; the program can't reach it.
    pub(super) uses: PathBuf,
    /// Dropped last: the folders that it is about.
    pub(super) scratch: Scratch,
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
        let uses = scratch.folder("uses")?;
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
            uses,
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

    /// The program's real path.
    pub(super) fn program(&self) -> Result<PathBuf, Failure> {
        real(&self.program)
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
    pub(super) fn named(&self, run: &Run) -> Result<Vec<PathBuf>, Failure> {
        let own = [Some(&self.temporary), run.state.is_none().then_some(&self.state)];
        let mut all = self.writable()?;
        all.retain(|path| !own.contains(&Some(path)));
        Ok(all)
    }

    /// The location of the run, in words: its workspace, what is opened, its network, and the names of
    /// its variables. The folders that it makes for itself are no part of it.
    pub(super) fn location(&self, run: &Run, passed: Option<&Passed>) -> Result<String, Failure> {
        let own = [&self.temporary, &self.state];
        let opened = |right: Right| -> Result<BTreeSet<PathBuf>, Failure> {
            let named = |(place, of): &&(Place, Right)| {
                *of == right && own.iter().all(|own| place.shown() != own.as_path())
            };
            self.granted.iter().filter(named).map(|(place, _)| real(place)).collect()
        };
        let state =
            self.granted.iter().find(|(place, _)| run.state.as_deref() == Some(place.shown()));
        let state = state.map(|(place, _)| real(place)).transpose()?;
        let names = run.env.iter().map(|variable| environment::name(variable));
        let text = LocationText::default()
            .part("run in", [real(&self.workspace)?])
            .part("state", state)
            .part("reads", opened(Right::Read)?)
            .part("writes", opened(Right::Write)?)
            .part("executes", opened(Right::Execute)?)
            .part("second names", passed.map(|_| "pass"))
            .part("network", [run.net.name()])
            .part("variables", names.collect::<BTreeSet<_>>());
        Ok(text.finish())
    }

    /// The program's path, if it lies in no opened folder.
    pub(super) fn alone(&self) -> Option<PathBuf> {
        let granted = self.granted.iter().map(|(place, _)| place);
        let opened = granted.chain([&self.workspace]).any(|place| place.contains(&self.program));
        let known = opened || begins::is_the_systems(&self.program);
        (!known).then(|| self.program.real().ok()).flatten()
    }

    /// The plan of it, without streams.
    pub(super) fn plan(&self, run: &Run, token: TokenId, services: &str) -> Result<Plan, Failure> {
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
