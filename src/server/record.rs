//! The tools on record, and changes of them.

use std::collections::BTreeSet;

use syscap_format::{
    Control, ControlBody as _, Manifest, ObjectId, RecordKind, Role, Seq, ToolId, ToolsChange,
};
use syscap_kernel::{Event, Registry, RegistryError, ToolsDelta};
use syscap_syscalls::net::Network;
use syscap_syscalls::stated::{Stated, carried};

use crate::Error;
use crate::runtime::submit::Configured;
use crate::server::Holding;
use crate::tools::{bounded, delta, identity, names_of};

/// The signer of a change of tools.
pub(crate) enum By {
    /// The runtime's own signer.
    Signer,
    /// The remote signer of this event.
    Event(Box<Control>),
}

impl Holding {
    /// See [`Runtime::accept`](crate::Runtime::accept).
    pub(crate) fn accept(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        self.accept_such(tools, |_, _| true, By::Signer)
    }

    /// See [`Runtime::accept_as`](crate::Runtime::accept_as).
    pub(crate) fn accept_as(&self, tools: &[(ToolId, ObjectId)]) -> Result<Seq, Error> {
        self.accept_by(tools, By::Signer)
    }

    pub(crate) fn accept_by(&self, tools: &[(ToolId, ObjectId)], by: By) -> Result<Seq, Error> {
        let names: Vec<ToolId> = tools.iter().map(|(tool, _)| tool.clone()).collect();
        let such = |tool: &ToolId, offered: &Manifest| {
            let id = offered.id();
            tools.iter().any(|(named, manifest)| named == tool && *manifest == id)
        };
        self.accept_such(&names, such, by)
    }

    fn accept_such(
        &self,
        tools: &[ToolId],
        such: impl Fn(&ToolId, &Manifest) -> bool,
        by: By,
    ) -> Result<Seq, Error> {
        self.prepare_to_change_tools(&by)?;
        let _one_at_a_time = self.tooling();
        let table = self.providers.lock();
        let mut manifests = Vec::new();
        // Each once, however often it is named.
        let named: BTreeSet<&ToolId> = tools.iter().collect();
        for tool in named.iter().copied() {
            let known = table.tools.get(tool);
            let places = known.map(|known| &known.places).or(table.awaiting.get(tool));
            // What an operator has stated of the tool is not for who offers it to take back.
            let offers = places.into_iter().flatten().rev().map(|place| match known {
                Some(known) => carried(place.offered.clone(), &known.pinned),
                None => place.offered.clone(),
            });
            let is_other = |offered: &Manifest| {
                known.is_none_or(|known| *offered != known.pinned) && such(tool, offered)
            };
            let mut offers = offers;
            let other = offers.find(is_other);
            let none = || {
                let what = "a tool whose definition has changed";
                Error::NoSuch { what, got: tool.as_str().to_owned() }
            };
            manifests.push(other.ok_or_else(none)?);
        }
        table.has_room(&manifests)?;
        drop(table);
        let tools = named.into_iter().cloned().collect();
        self.change_tools(delta(manifests, tools, &self.providers)?, by)
    }

    /// See [`Runtime::forget`](crate::Runtime::forget).
    pub(crate) fn forget(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        self.forget_by(tools, By::Signer)
    }

    pub(crate) fn forget_by(&self, tools: &[ToolId], by: By) -> Result<Seq, Error> {
        self.prepare_to_change_tools(&by)?;
        let _one_at_a_time = self.tooling();
        let table = self.providers.lock();
        if let Some(unknown) = tools.iter().find(|tool| !table.tools.contains_key(tool)) {
            let got = unknown.as_str().to_owned();
            return Err(Error::NoSuch { what: "a delegated tool", got });
        }
        drop(table);
        self.change_tools(ToolsDelta { remove: tools.to_vec(), add: Registry::new() }, by)
    }

    /// See [`Runtime::configure`](crate::Runtime::configure).
    pub(crate) fn configure(&self, change: &Configured) -> Result<Seq, Error> {
        self.configure_by(change, By::Signer)
    }

    pub(crate) fn configure_by(&self, change: &Configured, by: By) -> Result<Seq, Error> {
        self.prepare_to_change_tools(&by)?;
        let _one_at_a_time = self.tooling();
        let known: Vec<Manifest> = self.core.look(|kernel| kernel.manifests().cloned().collect());
        let is_set = |tool: &ToolId| {
            known.iter().any(|manifest| manifest.tool == *tool && Network::makes(manifest))
        };
        if let Some(unknown) = change.unset.iter().find(|tool| !is_set(tool)) {
            let got = unknown.as_str().to_owned();
            return Err(Error::NoSuch { what: "a tool that an operator has set", got });
        }
        for manifest in &change.set {
            if manifest.definition.is_some() {
                self.statable(manifest, known.as_slice())?;
                continue;
            }
            let others = known.iter().filter(|one| one.tool != manifest.tool);
            let mut names = others.flat_map(names_of);
            let other = !is_set(&manifest.tool) && known.iter().any(|m| m.tool == manifest.tool);
            if other || names.any(|name| *name == manifest.tool) {
                return Err(RegistryError::Duplicate(manifest.tool.clone()).into());
            }
            // Before it is put on record: then it can be made.
            self.providers.try_made(manifest)?;
        }
        let delegated = change.set.iter().filter(|manifest| manifest.definition.is_some());
        let delegated: Vec<Manifest> = delegated.cloned().collect();
        self.providers.lock().has_room(&delegated)?;
        let mut remove = change.unset.clone();
        remove.extend(change.set.iter().map(|manifest| manifest.tool.clone()));
        let unset = change.unset.iter().filter_map(Network::unset);
        let add = change.set.iter().cloned().chain(unset).collect();
        self.change_tools(delta(add, remove, &self.providers)?, by)
    }

    /// Checks that a manifest belongs to a tool that another process runs, on record or new here,
    /// and differs from that by an operator's statements alone.
    fn statable(&self, manifest: &Manifest, known: &[Manifest]) -> Result<(), Error> {
        let got = || manifest.tool.as_str().to_owned();
        let form = || Error::BadName { what: "what is stated of a tool", got: got() };
        let stated = Stated::of(manifest).map_err(|_| form())?;
        let table = self.providers.lock();
        let pinned = table.tools.get(&manifest.tool).map(|known| known.pinned.clone());
        drop(table);
        let as_stated = match pinned {
            Some(pinned) if identity(&pinned) != identity(manifest) => {
                return Err(Error::NoSuch { what: "the definition on record", got: got() });
            }
            Some(pinned) => stated.on(&pinned),
            None => {
                let mut names = known.iter().flat_map(names_of);
                if names.any(|name| names_of(manifest).any(|own| own == name)) {
                    return Err(RegistryError::Duplicate(manifest.tool.clone()).into());
                }
                let plain = Stated::default().on(manifest).map_err(|_| form())?;
                stated.on(&bounded(plain))
            }
        };
        match as_stated {
            Ok(as_stated) if as_stated == *manifest => Ok(()),
            _ => Err(form()),
        }
    }

    /// Puts the tools that this runtime has itself on record, where others are.
    pub(crate) fn record_own_tools(&self, by: By) -> Result<Seq, Error> {
        let _one_at_a_time = self.tooling();
        self.change_tools(ToolsDelta::default(), by)
    }

    /// A person is asked before other callers have to wait.
    fn prepare_to_change_tools(&self, by: &By) -> Result<(), Error> {
        match by {
            By::Signer => self.prepare(Role::Operator),
            By::Event(_) => Ok(()),
        }
    }

    /// Changes what is on record. Tools that the kernel lacked, since its own were others, stay on
    /// record, and the kernel has them from here on.
    pub(crate) fn change_tools(&self, delta: ToolsDelta, by: By) -> Result<Seq, Error> {
        let (delta, pins) = (self.whole(&delta)?, self.whole(&delta)?);
        let event = |ticket, control, ancestor| Event::Tools(ticket, control, ancestor, delta);
        let changed = match by {
            By::Event(control) => self.submit_as(*control, event),
            By::Signer => self.sign_made(
                RecordKind::Tools,
                || {
                    let tools = self.core.look(|kernel| kernel.registry_hash_after(&pins));
                    let got = || Error::BadName { what: "a tool's alias", got: String::new() };
                    Ok(ToolsChange { tools: tools.ok_or_else(got)? }.to_bytes())
                },
                event,
            ),
        };
        if changed.is_ok() {
            self.providers.pin(&pins);
            *self.absent() = ToolsDelta::default();
        }
        changed
    }

    /// The same change, with the delegated tools made anew, and with those that the kernel lacks.
    fn whole(&self, change: &ToolsDelta) -> Result<ToolsDelta, Error> {
        let other = |tool: &ToolId| {
            !change.remove.contains(tool) && change.add.manifests().all(|new| new.tool != *tool)
        };
        let absent = self.absent();
        let kept = absent.add.manifests().filter(|manifest| other(&manifest.tool));
        let manifests = kept.chain(change.add.manifests()).cloned().collect();
        let remove = change.remove.iter().chain(&absent.remove).cloned().collect();
        delta(manifests, remove, &self.providers)
    }
}
