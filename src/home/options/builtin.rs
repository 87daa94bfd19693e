//! The tools that a home has: the host's, and the built-in ones.

use std::sync::Arc;

use syscap_kernel::Registry;
use syscap_syscalls::beneath::Opener;
use syscap_syscalls::builtin::{CurrentTime, Echo};
#[cfg(feature = "calendar")]
use syscap_syscalls::calendar;
use syscap_syscalls::calls::NotAdded;
#[cfg(feature = "mail")]
use syscap_syscalls::email::EmailDraft;
use syscap_syscalls::fs::Files;
use syscap_syscalls::memory::Memory;
use syscap_syscalls::net::Network;
use syscap_syscalls::page::ResultPage;
#[cfg(feature = "shell")]
use syscap_syscalls::shell::Programs;
#[cfg(feature = "vectors")]
use syscap_syscalls::vecdb::Vectors;

use crate::error::Error;
use crate::home::Home;
use crate::home::options::Options;
#[cfg(feature = "http")]
use crate::keys::secrets::SecretFiles;
use crate::server::org::{self, Office};

impl Options {
    #[cfg(not(feature = "http"))]
    pub(super) fn network(&self, _: &Home) -> Network {
        Network
    }

    #[cfg(feature = "http")]
    pub(super) fn network(&self, home: &Home) -> Network {
        let secrets = self.secrets.as_ref().map(Arc::clone);
        let secrets = secrets.unwrap_or_else(|| Arc::new(SecretFiles::of(home)));
        Network::new(Arc::clone(&self.lookup), secrets)
    }

    /// The host's tools, and the built-in ones.
    pub(super) fn tools(
        &self,
        files: &Files,
        network: &Network,
        office: &Arc<Office>,
    ) -> Result<Registry, Error> {
        let mut registry = Registry::new();
        self.tools.iter().try_for_each(|add| add(&mut registry))?;
        files.add_to(&mut registry)?;
        Memory::over(Arc::clone(files.base())).add_to(&mut registry)?;
        self.add_by_feature(&mut registry, files.base(), network)?;
        registry.add_read(ResultPage::new().ok_or(NotAdded::Name)?)?;
        org::add_tools(&mut registry, files.base(), &self.clock, office)?;
        registry.add_read(Echo::new().ok_or(NotAdded::Name)?)?;
        registry.add_read(CurrentTime::new(Arc::clone(&self.clock)).ok_or(NotAdded::Name)?)?;
        office.has_tools(&registry);
        Ok(registry)
    }

    /// The tools that a feature of this crate brings. One that is on record and not here is known by
    /// its manifest, and a call of it is refused with
    /// [`Reason::NoProvider`](crate::format::Reason::NoProvider).
    #[cfg_attr(
        not(all(feature = "calendar", feature = "http", feature = "mail", feature = "shell")),
        allow(unused_variables, reason = "each is used by some feature")
    )]
    fn add_by_feature(
        &self,
        registry: &mut Registry,
        base: &Arc<dyn Opener>,
        network: &Network,
    ) -> Result<(), Error> {
        #[cfg(feature = "vectors")]
        Vectors::over(Arc::clone(base)).add_to(registry)?;
        #[cfg(feature = "shell")]
        {
            let programs = Programs::over(Arc::clone(base), self.launcher.clone());
            registry.add(programs.shell().ok_or(NotAdded::Name)?)?;
            registry.add(programs.script().ok_or(NotAdded::Name)?)?;
        }
        #[cfg(feature = "mail")]
        {
            let draft = EmailDraft::over(Arc::clone(base), Arc::clone(&self.clock));
            registry.add(draft.ok_or(NotAdded::Name)?)?;
        }
        #[cfg(feature = "http")]
        {
            registry.add(network.request().ok_or(NotAdded::Name)?)?;
            registry.add(network.egress().ok_or(NotAdded::Name)?)?;
        }
        #[cfg(feature = "calendar")]
        calendar::add_to(registry, base)?;
        Ok(())
    }
}
