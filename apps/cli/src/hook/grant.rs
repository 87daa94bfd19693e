//! The grants of `syscap hook --setup`: its tools, and the client's shell.

use std::path::{Path, PathBuf};
use std::{env, fs};

use syscap::Runtime;
use syscap::format::{
    Budget, Dimension, EffectClass, Grants, Paths, Rights, Root, RootedPath, Rule, Scope,
    ToolGrant, ToolId,
};
use syscap::host::{DOES_DIMENSION, MACHINE_ROOT};
use syscap::syscalls::marks::Mark;
use syscap::view::Whose;

use super::{Hook, class::class};
use crate::exit::Failure;

/// Uses that may be out at once: clients make some together, and tell of some never.
const USES_OUT: u64 = 128;
/// Uses that the token is for.
const USES: u64 = 100_000;
/// The amounts that each reserves beside its limit, of wall and of processor time, in microseconds.
const SLACK_US: u64 = 2_000_000;

impl Hook {
    /// True if a tool's effect is unknown: of a client's shell, unless the operator classifies it.
    pub(super) fn is_black_box(&self, name: &str) -> bool {
        let outside = self.inside.is_none();
        outside && self.client.is_shell(name) && class(&self.classes, name).is_none()
    }

    /// True if a tool is the client's shell, and the client runs inside a contained run.
    pub(super) fn is_shell_inside(&self, name: &str) -> bool {
        self.inside.is_some() && self.client.is_shell(name)
    }

    /// The tool that the client means by a name; `None` where the name is too long for one.
    pub(crate) fn tool(&self, name: &str) -> Option<ToolId> {
        match self.inside.filter(|_| self.client.is_shell(name)) {
            Some(inside) => self.client.shell_inside(inside),
            None => self.client.tool(name),
        }
    }

    /// The client's shell.
    pub(crate) fn shell(&self) -> Option<ToolId> {
        self.tool(self.client.shell())
    }

    /// The class of a tool: the operator's, else the known one.
    pub(super) fn effect(&self, name: &str) -> EffectClass {
        class(&self.classes, name).unwrap_or_else(|| match self.inside {
            Some(inside) if self.client.is_shell(name) => inside.effect(),
            _ => self.client.class(name),
        })
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

    /// The grant of the client's shell: commands of unknown effect.
    pub(super) fn of_shell() -> Result<ToolGrant, Failure> {
        Ok(ToolGrant::new().with(DOES_DIMENSION, marks(&[Mark::Unknown])?))
    }

    /// The roots of the client's own tools for files, if they are held to roots: the named ones,
    /// else this folder, since another set-up may have held them. And what else a write does;
    /// policy judges them besides.
    pub(crate) fn of_files(&self) -> Result<ToolGrant, Failure> {
        let roots = match (&*self.roots, &self.workspace) {
            ([], Some(workspace)) => vec![workspace.clone()],
            ([], None) => vec![env::current_dir().map_err(Failure::Stream)?],
            (named, _) => named.to_vec(),
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
            let advice = "is the home itself, which no tool may touch".to_owned();
            return Err(Failure::Usage { what: self.home.display().to_string(), advice });
        }
        if rules.iter().any(|rule| home.path.is_within(&rule.path)) {
            rules.push(home);
        }
        let paths = Paths::new(rules).map_err(|error| Failure::Usage {
            what: "--root".to_owned(),
            advice: error.to_string(),
        })?;
        let grant = ToolGrant::new().with("path", Scope::Paths(paths));
        Ok(grant.with(DOES_DIMENSION, marks(&Mark::ALL)?))
    }
}

impl Hook {
    /// True if a token grants all of the client's own tools, those of its list here and the others.
    pub(crate) fn has_tools(&self, grants: &Grants) -> bool {
        let known = self.client.known().iter().map(|known| self.tool(known.name));
        let mut all = known.chain([self.client.other()]);
        all.all(|tool| tool.is_some_and(|tool| grants.get(&tool).is_some()))
    }

    /// True if a token holds each of the client's own tools for files to exactly these roots.
    pub(crate) fn has_roots(&self, grants: &Grants, roots: &ToolGrant) -> bool {
        self.client.known().iter().filter(|known| known.file.is_some()).all(|known| {
            let granted = self.client.tool(known.name).and_then(|tool| grants.get(&tool).cloned());
            granted.is_some_and(|granted| granted == *roots)
        })
    }
}

fn marks(marks: &[Mark]) -> Result<Scope, Failure> {
    Scope::names(marks.iter().map(|mark| mark.name())).map_err(|error| Failure::Usage {
        what: DOES_DIMENSION.to_owned(),
        advice: error.to_string(),
    })
}

/// True if it is a root as tools have them, `ROOT=FOLDER`.
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
