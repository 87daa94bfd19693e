//! The tools that a kernel owns.

use alloc::{boxed::Box, sync::Arc, vec::Vec};

use crate::lookups;
use crate::policy::PolicyEngine;
use crate::tool::{AnyTool, Full, ReadTool, Reading, Tool};
use syscap_format::{
    EffectClass, Manifest, Object, ObjectId, PARAMS_MAX, Presence, ToolEntry, ToolId, ToolsObject,
};

/// When a tool's intent must be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Before the run.
    IntentFirst,
    /// With the outcome, before the answer.
    WithOutcome,
}

#[derive(Clone)]
pub(crate) struct Registered {
    pub(crate) tool: Arc<dyn AnyTool>,
    pub(crate) manifest: Manifest,
    pub(crate) manifest_id: ObjectId,
    pub(crate) mode: Mode,
}

/// Why a tool can't be registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegistryError {
    /// Another tool has that id or alias.
    #[error("two tools are called {0}")]
    Duplicate(ToolId),
    /// Only `pure` and `read` tools can be built-in reads.
    #[error("{0} is registered as a read but is of class {1}")]
    NotARead(ToolId, EffectClass),
    /// A manifest breaks a rule of its form.
    #[error(
        "the manifest of {0} is too large or too deep, has floats, has bad parameters, or names \
         resources by arguments that can't name them"
    )]
    BadManifest(ToolId),
    /// A tool declares a dimension, and none of its calls would compare anything with the token's
    /// scope there.
    #[error(
        "{tool} needs a scope in {dimension} and compares no argument with it: say which argument \
         names the resource, or make a plan that does"
    )]
    NotCompared {
        /// The tool.
        tool: ToolId,
        /// The dimension.
        dimension: Box<str>,
    },
}

/// The tools, taken by value: once they are here nothing else reaches them.
#[derive(Default)]
pub struct Registry {
    tools: Vec<Registered>,
    /// Ids and aliases, sorted, with the places of their tools.
    index: Vec<(ToolId, usize)>,
}

impl Registry {
    /// No tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool whose intent is durable before it runs.
    pub fn add<T: Tool>(&mut self, tool: T) -> Result<(), RegistryError> {
        self.insert(Arc::new(Full(tool)), Mode::IntentFirst)
    }

    /// Adds a built-in tool that only reads.
    ///
    /// # Errors
    /// [`RegistryError`], also where its class is another than `pure` or `read`.
    pub fn add_read<T: ReadTool>(&mut self, tool: T) -> Result<(), RegistryError> {
        self.insert(Arc::new(Reading(tool)), Mode::WithOutcome)
    }

    /// The manifests, in the order in which the tools were added.
    pub fn manifests(&self) -> impl Iterator<Item = &Manifest> {
        self.tools.iter().map(|registered| &registered.manifest)
    }

    /// The object that lists the manifests, sorted by tool.
    pub fn tools_object(&self) -> ToolsObject {
        let mut list: Vec<ToolEntry> = self
            .tools
            .iter()
            .map(|registered| ToolEntry {
                tool: registered.manifest.tool.clone(),
                manifest: registered.manifest_id,
            })
            .collect();
        list.sort_by(|a, b| a.tool.cmp(&b.tool));
        ToolsObject { tools: list }
    }

    /// These tools without those of `change` that go, and with those that come.
    ///
    /// # Errors
    /// [`RegistryError::Duplicate`].
    pub(crate) fn changed(&self, change: &ToolsDelta) -> Result<Self, RegistryError> {
        let mut changed = Self::new();
        let stays = |r: &&Registered| !change.remove.contains(&r.manifest.tool);
        for registered in self.tools.iter().filter(stays).chain(&change.add.tools) {
            changed.place(registered.clone())?;
        }
        Ok(changed)
    }

    /// A tool by its id or an alias.
    pub(crate) fn find(&self, tool: &str) -> Option<&Registered> {
        lookups::tool();
        let (_, place) = self.index.get(self.place_of(tool).ok()?)?;
        self.tools.get(*place)
    }

    /// A tool that a policy names by an alias, and its own id.
    pub(crate) fn alias_in(&self, engine: &dyn PolicyEngine) -> Option<(ToolId, ToolId)> {
        engine.tools().into_iter().find_map(|named| {
            let tool = self.find(named.as_str())?.manifest.tool.clone();
            (tool != named).then_some((named, tool))
        })
    }

    /// The position of a name in the index, or the position where it would be.
    fn place_of(&self, name: &str) -> Result<usize, usize> {
        self.index.binary_search_by(|(known, _)| known.as_str().cmp(name))
    }

    fn insert(&mut self, tool: Arc<dyn AnyTool>, mode: Mode) -> Result<(), RegistryError> {
        // Asked once: what is checked here is what is kept, whatever the tool would say next.
        let manifest = tool.manifest().clone();
        check(&manifest)?;
        if let Some(dimension) = tool.never_compared() {
            let (tool, dimension) = (manifest.tool, Box::from(dimension));
            return Err(RegistryError::NotCompared { tool, dimension });
        }
        if mode == Mode::WithOutcome && !manifest.effect.is_read_only() {
            return Err(RegistryError::NotARead(manifest.tool, manifest.effect));
        }
        let manifest_id = manifest.id();
        self.place(Registered { tool, manifest, manifest_id, mode })
    }

    fn place(&mut self, registered: Registered) -> Result<(), RegistryError> {
        let (place, manifest) = (self.tools.len(), &registered.manifest);
        for name in core::iter::once(&manifest.tool).chain(&manifest.aliases) {
            if self.place_of(name.as_str()).is_ok() {
                return Err(RegistryError::Duplicate(name.clone()));
            }
        }
        for name in core::iter::once(&manifest.tool).chain(&manifest.aliases) {
            if let Err(free) = self.place_of(name.as_str()) {
                self.index.insert(free, (name.clone(), place));
            }
        }
        self.tools.push(registered);
        Ok(())
    }
}

/// A change of tools: which go, and which come.
#[derive(Default)]
pub struct ToolsDelta {
    /// The tools that go, by their own ids. One that is not there is no matter.
    pub remove: Vec<ToolId>,
    /// The tools that come.
    pub add: Registry,
}

fn check(manifest: &Manifest) -> Result<(), RegistryError> {
    let params = &manifest.params;
    if params.len() > PARAMS_MAX {
        // First: what follows looks at each pair.
        return Err(RegistryError::BadManifest(manifest.tool.clone()));
    }
    let repeated = params
        .iter()
        .enumerate()
        .any(|(place, param)| params.iter().take(place).any(|other| other.name == param.name));
    // A default of null would read back as no default.
    let contradictory = params.iter().any(|param| match &param.default {
        Some(default) => param.presence == Presence::Required || default.item().is_null(),
        None => false,
    });
    // Bounded, canonical and without floats, so that what goes on record reads back the same.
    let sound = Object::manifest(manifest).is_sound();
    if !sound || repeated || contradictory || !manifest.has_sound_resources() {
        return Err(RegistryError::BadManifest(manifest.tool.clone()));
    }
    Ok(())
}
