//! What `syscap hook --setup` grants: which tools, and what a client's shell may do.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

use syscap::{
    Runtime,
    format::{
        budget::{Budget, Dimension},
        scope::{Paths, Rights, Root, RootedPath, Rule, Scope, ScopeError},
        token,
    },
    host::{DOES_DIMENSION, MACHINE_ROOT},
    syscalls::marks::Mark,
    view::Whose,
};
use syscap_commands::programs;

use super::{Hook, class::class};
use crate::exit::Failure;

/// Uses that may be out at once: clients make some together, and tell of some never.
const USES_OUT: u64 = 128;
/// Uses that the token is for.
const USES: u64 = 100_000;
/// What each sets aside beside its limit, of wall and of processor time, in microseconds.
const SLACK_US: u64 = 2_000_000;

impl Hook {
    /// Whether a tool's calls are judged by what their command does: a client's shell, unless the
    /// operator says what it does.
    pub(super) fn reads_commands(&self, name: &str) -> bool {
        self.client.is_shell(name) && class(&self.classes, name).is_none()
    }

    /// The other tools that were asked for, by the client's names. A pattern names those that are
    /// on record, since they were used.
    pub(super) fn named(&self, access: &Runtime) -> Result<Vec<String>, Failure> {
        let mut names = Vec::new();
        for asked in &self.tools {
            let Some(stem) = asked.strip_suffix('*') else {
                names.push(asked.clone());
                continue;
            };
            let before = names.len();
            for manifest in access.manifests(Whose::All)? {
                let name = manifest.title.to_string();
                let own = self.client.tool(&name).as_ref() == Some(&manifest.tool);
                if own && name.starts_with(stem) && !names.contains(&name) {
                    names.push(name);
                }
            }
            if names.len() == before {
                let advice = "names no tool that was seen; let the client use it once (it is \
                    denied), or name it in full";
                return Err(Failure::Usage { what: asked.clone(), advice: advice.to_owned() });
            }
        }
        Ok(names)
    }

    /// As many uses as a day has, also where none of them is ever told of.
    pub(super) fn budget(&self) -> Budget {
        let ms = u64::try_from(self.limit.as_millis()).unwrap_or(u64::MAX);
        let wall = ms.saturating_mul(1_000).saturating_add(SLACK_US).saturating_mul(USES);
        Budget::working_day()
            .with(Dimension::Concurrent, USES_OUT)
            .with(Dimension::WallUs, wall)
            .with(Dimension::CpuUs, SLACK_US.saturating_mul(USES))
    }

    /// What the shell's commands may touch and do; policy judges them besides.
    pub(super) fn scopes(&self) -> Result<token::Grant, Failure> {
        let bad = |what: String| {
            move |error: ScopeError| Failure::Usage { what, advice: error.to_string() }
        };
        let roots = match &*self.roots {
            [] => vec![env::current_dir().map_err(Failure::Stream)?],
            named => named.to_vec(),
        };
        let mut rules: Vec<Rule> = Vec::new();
        let all = Rights::READ.union(Rights::WRITE);
        for root in roots {
            let rule = rule(&root, all)?;
            if !rules.contains(&rule) {
                rules.push(rule);
            }
        }
        // Who may write there decides for himself.
        let home = rule(&self.home, Rights::NONE)?;
        if rules.iter().any(|rule| rule.path == home.path) {
            let advice = "is the home itself, which no command may touch".to_owned();
            return Err(Failure::Usage { what: self.home.display().to_string(), advice });
        }
        if rules.iter().any(|rule| home.path.is_within(&rule.path)) {
            rules.push(home);
        }
        let paths = Paths::new(rules).map_err(bad("--root".to_owned()))?;
        let names = |names: Vec<&str>| Scope::names(names).map_err(bad("names".to_owned()));
        let mut grant = token::Grant::new()
            .with("path", Scope::Paths(paths))
            .with(DOES_DIMENSION, names(Mark::ALL.map(Mark::name).to_vec())?);
        // Where the operator says what the shell does, no tool compares programs or hosts.
        if !self.client.known().iter().any(|(name, _, _)| self.reads_commands(name)) {
            return match &self.hosts[..] {
                [] => Ok(grant),
                [host, ..] => Err(Failure::Usage {
                    what: format!("--host {host}"),
                    advice: "bounds nothing: --class says what the shell does".to_owned(),
                }),
            };
        }
        grant = grant.with("program", names(programs())?);
        if !self.hosts.is_empty() {
            let hosts = Scope::hosts(&self.hosts).map_err(bad(self.hosts.join(", ")))?;
            grant = grant.with("host", hosts);
        }
        Ok(grant)
    }
}

/// Whether it is a root as tools have them, `ROOT=FOLDER`.
fn is_named(folder: &Path) -> bool {
    let named = folder.to_str().and_then(|text| text.split_once('='));
    named.is_some_and(|(name, folder)| !name.contains('/') && Path::new(folder).is_dir())
}

/// A folder, by its real path, and what may be done there.
fn rule(folder: &Path, rights: Rights) -> Result<Rule, Failure> {
    let bad = |advice: &str| Failure::Usage {
        what: folder.display().to_string(),
        advice: advice.to_owned(),
    };
    let real: PathBuf = fs::canonicalize(folder).map_err(|error| match is_named(folder) {
        true => bad("is no folder; the hook's roots have no names: --root FOLDER"),
        false => Failure::file(folder)(error),
    })?;
    let text = real.to_str().ok_or_else(|| bad("is no UTF-8"))?;
    let mut names = text.split('/').filter(|name| !name.is_empty()).peekable();
    if names.peek().is_none() {
        return Err(bad("is all of the machine"));
    }
    let path = Root::named(MACHINE_ROOT).and_then(|root| RootedPath::new(root, names));
    Ok(Rule { path: path.map_err(|error| bad(&error.to_string()))?, rights })
}
