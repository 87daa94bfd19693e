//! Calls of a client's shell: judged by what their command would run and touch.
//!
//! The command says what, the argument `place` where; both stand in the call, so that who decides
//! it again sees the same. The place is the desk's word: nobody else may say it.

use std::collections::{BTreeMap, BTreeSet};

use syscap_commands::{Area, Effect, Mark, Place, Repository, Said, analyse, write_marks};
use syscap_format::{
    cbor::{Item, Kind},
    manifest::{EffectClass, Manifest, ParamType},
    reason::{Reason, Refused},
    scope::{Host, Name, Resource, Rights, Root, RootedPath, Scope},
    token::Grant,
};
use syscap_kernel::tool::{Demand, Demands, Request};
use syscap_syscalls::{
    fs::PATH_DIMENSION,
    net::HOST_DIMENSION,
    shell::{DOES_DIMENSION, PROGRAM_DIMENSION},
};

/// The argument that says where a command would run.
pub(crate) const PLACE: &str = "place";
/// The argument that is the command.
const COMMAND: &str = "command";
/// The root of the machine's own files, by their absolute paths.
pub const MACHINE_ROOT: &str = "machine";
/// Most resources that a call may name.
const RESOURCES_MAX: usize = 512;

/// What a call of a shell demands, and what it does.
pub(super) struct Judged {
    pub(super) demands: Demands,
    pub(super) effect: Option<EffectClass>,
}

/// Whether a tool is a shell whose commands are to be read.
pub(crate) fn is_shell(manifest: &Manifest) -> bool {
    let has = |name: &str, kind| {
        manifest.params.iter().any(|param| *param.name == *name && param.kind == kind)
    };
    manifest.definition.is_none() && has(COMMAND, ParamType::Code) && has(PLACE, ParamType::Map)
}

/// The dimensions that a call of such a shell is compared in, which its manifest does not name.
pub(crate) fn shell_dimensions() -> [Box<str>; 3] {
    [PATH_DIMENSION, PROGRAM_DIMENSION, HOST_DIMENSION].map(Box::from)
}

/// Reads a command. `ours`: the call came through the desk.
pub(super) fn judge(request: &Request<'_>, ours: bool) -> Result<Judged, Refused> {
    let place = request.args.get(PLACE);
    if place.is_some() && !ours {
        return Err(Refused::new(Reason::BadArgument).field(PLACE).allowed("no such argument"));
    }
    let place = place.and_then(|place| placed(place, request.grant));
    let said = match (place, request.args.get(COMMAND).and_then(Item::as_text)) {
        (Some(place), Some(command)) => analyse(command, &place),
        _ => {
            let mut unknown = Said::default();
            unknown.marks.insert(Mark::Unknown);
            unknown
        }
    };
    let granted = |dimension| request.grant.scope(dimension);
    let mut made = Made { resources: Vec::new(), lost: false };
    made.paths("does_read", &said.reads, Rights::READ);
    made.paths("does_write", &said.writes, Rights::WRITE);
    made.paths("does_repository", &said.repositories, Rights::READ.union(Rights::WRITE));
    for program in &said.programs {
        made.name(PROGRAM_DIMENSION, program, "does_run");
    }
    let mut marks = said.marks.clone();
    for host in &said.hosts {
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
        false => class(said.effect()),
    };
    let effect = known.then_some(effect);
    Ok(Judged { demands: Demands { resources: made.resources, ..Demands::default() }, effect })
}

/// What it is to write the files that a call names, where their paths are the machine's own: the
/// marks that a command which writes them would have.
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

const fn class(effect: Effect) -> EffectClass {
    match effect {
        Effect::Read => EffectClass::Read,
        Effect::LocalWrite => EffectClass::LocalWrite,
        Effect::ExternalRead => EffectClass::ExternalRead,
        Effect::ExternalWrite => EffectClass::ExternalWrite,
    }
}

struct Made {
    resources: Vec<Demand>,
    /// Whether something could not be named.
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

    fn paths<'a>(
        &mut self,
        argument: &'static str,
        areas: impl IntoIterator<Item = &'a Area>,
        needs: Rights,
    ) {
        for area in areas {
            let root = Root::named(MACHINE_ROOT);
            let Some(path) = root.ok().and_then(|r| RootedPath::new(r, area.components()).ok())
            else {
                self.lost = true;
                continue;
            };
            let resource = match area.is_tree() {
                true => Resource::Tree { path, needs },
                false => Resource::Path { path, needs },
            };
            self.add(PATH_DIMENSION, resource, argument);
        }
    }
}

/// Reads a place; one that has not the form is none.
fn placed(item: Item<'_>, grant: &Grant) -> Option<Place> {
    let text = |key: &str| item.get(key).map(|item| item.as_text().map(str::to_owned));
    let mut place = Place::at(&text("folder")??)?;
    place.home = match text("home") {
        Some(home) => Some(home?),
        None => None,
    };
    let search = item.get("search")?.elements().map(|item| item.as_text().map(str::to_owned));
    place.search = search.collect::<Option<_>>()?;
    let found = item.get("found").filter(|found| found.kind() == Kind::Map)?;
    let found =
        found.entries().map(|(name, file)| Some((name.to_owned(), file.as_text()?.to_owned())));
    place.found = found.collect::<Option<BTreeMap<_, _>>>()?;
    if let Some(top) = text("repository") {
        place.repository = Repository::Plain(top?);
    }
    if let Some(Scope::Paths(paths)) = grant.scope(PATH_DIMENSION) {
        let own = paths.rules().iter().filter(|rule| {
            rule.path.root().name() == MACHINE_ROOT && Rights::WRITE.leq(rule.rights)
        });
        place.writable = own.map(|rule| format!("/{}", rule.path.below())).collect();
    }
    Some(place)
}
