//! Calls of a client's shell. No command is read, and its effect is unknown: each is an external
//! write that is marked `unknown`.
//!
//! Earlier versions had the hook read commands, and judged a call by what it had found. That stands
//! in the call, in the argument `place`: a call on record is decided again by it. No new call has it:
//! `place` comes from the hook, which says the folder and no more.

use std::collections::BTreeSet;

use syscap_format::{
    EffectClass, Host, Item, ItemKind, Manifest, Name, ParamType, Reason, Refused, Resource,
    Rights, Root, RootedPath, Scope, ToolGrant,
};
use syscap_kernel::{Demand, Demands, Request};
use syscap_syscalls::fs::PATH_DIMENSION;
use syscap_syscalls::marks::{Mark, write_marks};
use syscap_syscalls::net::HOST_DIMENSION;
use syscap_syscalls::shell::{DOES_DIMENSION, PROGRAM_DIMENSION};

use crate::tools::finding::Finding;

/// The argument that says where a command would run.
pub(crate) const PLACE: &str = "place";
/// The recorded part of it.
pub(crate) const FOLDER: &str = "folder";
/// The argument that is the command.
const COMMAND: &str = "command";
/// The root of the machine's own files, by their absolute paths.
pub const MACHINE_ROOT: &str = "machine";
/// Most resources that a call may name.
const RESOURCES_MAX: usize = 512;

/// The demands and the effect of a shell's call.
pub(super) struct Judged {
    pub(super) demands: Demands,
    pub(super) effect: Option<EffectClass>,
}

/// The maker of a shell's call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum MadeBy {
    /// The client, by its hook.
    Client,
    /// Somebody else, who says no place.
    Other,
    /// It was made earlier, and is decided again.
    Record,
}

/// True if a tool runs a text: a client's shell, or one of ours.
pub(crate) fn runs_text(manifest: &Manifest) -> bool {
    let is_code = |kind| kind == ParamType::Code;
    manifest.definition.is_none() && manifest.params.iter().any(|param| is_code(param.kind))
}

/// True if a tool is a client's shell, whose commands are never read.
pub(crate) fn is_shell(manifest: &Manifest) -> bool {
    let has = |name: &str, kind| {
        manifest.params.iter().any(|param| *param.name == *name && param.kind == kind)
    };
    manifest.definition.is_none() && has(COMMAND, ParamType::Code) && has(PLACE, ParamType::Map)
}

/// The demands of a call; a recorded call has those that were found at its time.
pub(super) fn judge(request: &Request<'_>, made_by: MadeBy) -> Result<Judged, Refused> {
    let place = request.args.get(PLACE);
    if place.is_some() && made_by == MadeBy::Other {
        return Err(Refused::new(Reason::BadArgument).field(PLACE).allowed("no such argument"));
    }
    let recorded = place.filter(|_| made_by == MadeBy::Record);
    let found = recorded.and_then(|place| found(place, request.grant)).unwrap_or_else(unknown);
    let granted = |dimension| request.grant.scope(dimension);
    let mut made = Made { resources: Vec::new(), lost: false };
    made.paths("does_read", &found.reads, Rights::READ);
    made.paths("does_write", &found.writes, Rights::WRITE);
    made.paths("does_repository", &found.repositories, Rights::READ.union(Rights::WRITE));
    for program in &found.programs {
        made.name(PROGRAM_DIMENSION, program, "does_run");
    }
    let mut marks = found.marks.clone();
    for host in &found.hosts {
        let resource = Host::new(host).map(Resource::Host).ok();
        match resource.filter(|host| granted(HOST_DIMENSION).is_some_and(|s| s.permits(host))) {
            Some(resource) => made.add(HOST_DIMENSION, resource, "does_reach"),
            // Where the token names no such host, one that is not told stands for it.
            None => drop(marks.insert(Mark::Network)),
        }
    }
    if made.lost {
        marks.insert(Mark::Unknown);
    }
    for mark in &marks {
        made.name(DOES_DIMENSION, mark.name(), mark.argument());
    }
    let known = !marks.contains(&Mark::Unknown);
    let effect = match marks.contains(&Mark::Network) {
        // Who is reached is not known, or nobody named him.
        true => EffectClass::ExternalWrite,
        false => found.effect,
    };
    let effect = known.then_some(effect);
    Ok(Judged { demands: Demands { resources: made.resources, ..Demands::default() }, effect })
}

/// A command of which nothing is known.
fn unknown() -> Finding {
    Finding {
        effect: EffectClass::ExternalWrite,
        reads: BTreeSet::new(),
        writes: BTreeSet::new(),
        repositories: BTreeSet::new(),
        programs: BTreeSet::new(),
        hosts: BTreeSet::new(),
        marks: BTreeSet::from([Mark::Unknown]),
    }
}

/// The marks of a write to the files that a call names by the machine's own paths: those of a
/// command that writes them.
pub(super) fn marks(named: &[Demand]) -> Vec<Demand> {
    let mut made = Made { resources: Vec::new(), lost: false };
    let mut marks = BTreeSet::new();
    for demand in named {
        let (Resource::Path { path, needs } | Resource::Tree { path, needs }) = &demand.resource
        else {
            continue;
        };
        if path.root().name() == MACHINE_ROOT && Rights::WRITE.leq(*needs) {
            marks.extend(write_marks(path.components()));
        }
    }
    for mark in marks {
        made.name(DOES_DIMENSION, mark.name(), mark.argument());
    }
    made.resources
}

struct Made {
    resources: Vec<Demand>,
    /// True if a path could not be named.
    lost: bool,
}

impl Made {
    fn add(&mut self, dimension: &'static str, resource: Resource, argument: &'static str) {
        match self.resources.len() < RESOURCES_MAX {
            true => self.resources.push(Demand { dimension, resource, argument }),
            false => self.lost = true,
        }
    }

    fn name(&mut self, dimension: &'static str, name: &str, argument: &'static str) {
        match Name::new(name) {
            Ok(name) => self.add(dimension, Resource::Name(name), argument),
            Err(_) => self.lost = true,
        }
    }

    fn paths(&mut self, argument: &'static str, paths: &BTreeSet<String>, needs: Rights) {
        for text in paths {
            let (text, tree) = match text.strip_suffix('/') {
                Some(folder) => (folder, true),
                None => (text.as_str(), false),
            };
            let Some(path) = machine(text) else {
                self.lost = true;
                continue;
            };
            let resource = match tree {
                true => Resource::Tree { path, needs },
                false => Resource::Path { path, needs },
            };
            self.add(PATH_DIMENSION, resource, argument);
        }
    }
}

/// A file or folder of the machine by its absolute path; the empty text is the top.
fn machine(text: &str) -> Option<RootedPath> {
    let root = Root::named(MACHINE_ROOT).ok()?;
    let parts = match text.strip_prefix('/') {
        Some(below) => below.split('/').collect(),
        None if text.is_empty() => Vec::new(),
        None => return None,
    };
    RootedPath::new(root, parts).ok()
}

/// The finding of a place; `None` where the place has not the form, or where the token lets
/// somebody write what the finding rests on.
fn found(place: Item<'_>, grant: &ToolGrant) -> Option<Finding> {
    let mut finding = Finding::read(place.get("finding")?)?;
    let list = |key: &str| {
        let list = place.get(key).filter(|list| list.kind() == ItemKind::Array)?;
        list.elements().map(Item::as_text).collect::<Option<Vec<_>>>()
    };
    let files = place.get("found").filter(|found| found.kind() == ItemKind::Map)?;
    let files = files.entries().map(|(_, file)| file.as_text()).collect::<Option<Vec<_>>>()?;
    // A program is the one of its name where an agent can put no other in its place.
    let programs = list("search")?.into_iter().chain(files);
    for path in programs {
        let path = machine(path.strip_suffix('/').unwrap_or(path))?;
        if is_written(&path, grant) {
            return None;
        }
    }
    // A script by its path is the project's where the token gives the project.
    let own = |path: &str| machine(path).is_some_and(|path| is_written(&path, grant));
    if finding.marks.contains(&Mark::ProjectCode) && !list("own")?.into_iter().all(own) {
        finding.marks.insert(Mark::Unknown);
    }
    Some(finding)
}

/// True if the token allows writing the path.
fn is_written(path: &RootedPath, grant: &ToolGrant) -> bool {
    let Some(Scope::Paths(paths)) = grant.scope(PATH_DIMENSION) else { return false };
    let mut writable = paths.rules().iter().filter(|rule| Rights::WRITE.leq(rule.rights));
    writable.any(|rule| path.is_within(&rule.path))
}

#[cfg(test)]
mod tests {
    use syscap_format::{Paths, Rule, json};

    use super::*;

    /// A recorded finding counts as little as when it was made: not at all where the token lets
    /// somebody write a program that the command names, and the project's code is known only where
    /// the token gives the project.
    #[test]
    fn recorded_finding_rests_on_the_grant() {
        let place = r#"{"folder": "/project", "own": ["/project"], "search": ["/programs"],
            "found": {"cat": "/programs/cat"}, "finding": {"effect": "external_write", "hosts": [],
            "marks": ["project_code"], "programs": ["cat"], "reads": [], "repositories": [],
            "writes": []}}"#;
        let place = json::to_data(place.as_bytes()).unwrap();
        let judged = |written: &[&str]| {
            let path = |text: &&str| machine(text).unwrap();
            let rules = written.iter().map(|text| Rule { path: path(text), rights: Rights::WRITE });
            let scope = Scope::Paths(Paths::new(rules).unwrap());
            found(place.item(), &ToolGrant::new().with(PATH_DIMENSION, scope))
                .map(|found| found.marks)
        };
        let code = BTreeSet::from([Mark::ProjectCode]);
        assert_eq!(judged(&["/project"]), Some(code));
        let both = BTreeSet::from([Mark::ProjectCode, Mark::Unknown]);
        assert_eq!(judged(&["/elsewhere"]), Some(both));
        for program in ["/programs", "/programs/cat", ""] {
            assert_eq!(judged(&["/project", program]), None, "{program}");
        }
    }
}
