//! The plan of a server that sees only what is opened to it.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use syscap::boundary::environment::{self, BEGINNING, NETWORK, PASSED};
use syscap::boundary::{BoundaryError, Guarded, Place, Scratch};
use syscap::launch::{Access, Granted, Network, Plan};

use super::{CONFINED, NotStarted};
use crate::options::{Opened, ServerCommand};

/// A server that is started confined.
pub(super) struct Confined {
    program: (PathBuf, Place),
    arguments: Vec<OsString>,
    folder: Place,
    path: OsString,
    /// Its own variables.
    variables: Vec<(OsString, OsString)>,
    /// The places that the agent may write, which its command names.
    named: Vec<PathBuf>,
    granted: Vec<(Place, Access)>,
    network: Network,
}

fn open(path: &Path) -> Result<Place, BoundaryError> {
    Place::open(path).map_err(BoundaryError::file(path))
}

impl Confined {
    pub(super) fn new(
        home: &Path,
        command: &ServerCommand,
        program: PathBuf,
        folder: PathBuf,
        path: OsString,
        named: Vec<PathBuf>,
        opened: &Opened,
    ) -> Result<Self, NotStarted> {
        let guarded = Guarded::of(home).map_err(super::Unsafe::Opened)?;
        let rights = [
            (&named, Access::Read),
            (&opened.read, Access::Read),
            (&opened.write, Access::Write),
            (&opened.execute, Access::Execute),
        ];
        let mut granted = Vec::new();
        for (paths, right) in rights {
            for path in paths {
                let place = open(&folder.join(path)).map_err(super::Unsafe::Opened)?;
                guarded.expect_apart(&place).map_err(super::Unsafe::Opened)?;
                granted.push((place, right));
            }
        }
        let file = Place::open(&folder.join(&program))?;
        guarded.expect_apart(&file).map_err(super::Unsafe::Opened)?;
        let variables = command.env.iter().filter(|(name, _)| name != "PATH");
        Ok(Self {
            program: (program, file),
            arguments: command.command.iter().skip(1).map(OsString::from).collect(),
            folder: Place::open(&folder)?,
            path,
            variables: variables.map(|(name, value)| (name.into(), value.clone())).collect(),
            named,
            granted,
            network: opened.network,
        })
    }

    pub(super) const fn network(&self) -> Network {
        self.network
    }

    /// The plan, the folder with its HOME and TMPDIR, and a line about it.
    pub(super) fn into_plan(self) -> Result<(Plan, Scratch, String), NotStarted> {
        let line = self.line();
        let scratch = Scratch::new("server").map_err(super::Unsafe::Opened)?;
        let mut own = Vec::new();
        for name in ["home", "tmp"] {
            own.push(scratch.folder(name).map_err(super::Unsafe::Opened)?);
        }
        let executed = self.granted.iter().filter(|(_, right)| *right == Access::Execute);
        let executed: Vec<&Place> = executed.map(|(place, _)| place).collect();
        let path = environment::path(&self.path, &executed, None);
        let (name, program) = self.program;
        let mut plan = Plan::new(program.handle()?, name.into(), self.folder.handle()?);
        plan.arguments.extend(self.arguments);
        let passed = PASSED.iter().filter_map(|name| Some((name.into(), env::var_os(name)?)));
        plan.environment.extend(passed);
        plan.environment.push(("PATH".into(), path));
        for (name, folder) in ["HOME", "TMPDIR"].into_iter().zip(&own) {
            plan.environment.push((name.into(), folder.into()));
            for access in [Access::Write, Access::Execute] {
                let handle = open(folder).map_err(super::Unsafe::Opened)?.handle()?;
                plan.granted.push(Granted { handle, access });
            }
        }
        for (name, value) in self.variables {
            plan.environment.retain(|(known, _)| *known != name);
            plan.environment.push((name, value));
        }
        for (place, access) in &self.granted {
            plan.granted.push(Granted { handle: place.handle()?, access: *access });
        }
        let names = NETWORK.iter().filter(|_| self.network == Network::Host);
        for path in BEGINNING.iter().chain(names) {
            if let Ok(handle) = Place::open(Path::new(path)).and_then(|place| place.handle()) {
                plan.granted.push(Granted { handle, access: Access::Read });
            }
        }
        (plan.network, plan.required) = (self.network, CONFINED);
        Ok((plan, scratch, line))
    }

    fn line(&self) -> String {
        let mut line = format!("it runs confined, network {}", self.network.name());
        if self.named.is_empty() {
            return line;
        }
        let list = |all: Vec<String>| all.join(", ");
        let named = list(self.named.iter().map(|path| path.display().to_string()).collect());
        line.push_str(&format!(
            ", since its command names {named}, which the agent may write; it may read that; more is \
             opened by --ro, --rw, --exec and --net"
        ));
        if !self.variables.is_empty() {
            let names = self.variables.iter().map(|(name, _)| name.display().to_string());
            let names = list(names.collect());
            line.push_str(&format!("; what the agent puts there may read its variables: {names}"));
        }
        line
    }
}
