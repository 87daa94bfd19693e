//! A home, its tools, and names that lead where a test says.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use host_support::{ample, records};
use syscap::Configured;
use syscap::format::{Body, Cidr, Durability, EffectClass, Host, Item, PortRange, Scope, json};
use syscap::prelude::*;
use syscap::secrets::SecretFiles;
use syscap::syscalls::net::Network;
use syscap::syscalls::net::lookup::{Lookup, LookupError};

/// Names and their addresses, one list for each time that they are asked for; the last one stays.
#[derive(Clone, Default)]
pub(crate) struct Names {
    known: Arc<Mutex<BTreeMap<String, Vec<Vec<IpAddr>>>>>,
    pub(crate) asked: Arc<AtomicUsize>,
}

impl Names {
    pub(crate) fn lead(&self, name: &str, addresses: &[&[&str]]) {
        let lists = addresses.iter().map(|list| list.iter().map(|a| a.parse().unwrap()).collect());
        self.known.lock().unwrap().insert(name.to_owned(), lists.collect());
    }
}

impl Lookup for Names {
    fn lookup(&self, host: &Host, _: Duration) -> Result<Vec<IpAddr>, LookupError> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        let mut known = self.known.lock().unwrap();
        let lists = known.get_mut(host.as_str()).ok_or(LookupError::NotFound)?;
        if lists.len() > 1 { Ok(lists.remove(0)) } else { Ok(lists[0].clone()) }
    }
}

pub(crate) struct World {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) rt: Runtime,
    pub(crate) names: Names,
}

pub(crate) fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let (home, names) = (dir.path().join("home"), Names::default());
    let options = Options::new().durability(Durability::Memory).lookup(names.clone());
    let rt = options.create(&home).unwrap();
    World { dir, home, rt, names }
}

/// Grants tools on this machine's own address, at any port, without TLS.
pub(crate) fn local(tools: &[&str]) -> Grant {
    local_to("a", tools)
}

pub(crate) fn local_to(agent: &str, tools: &[&str]) -> Grant {
    let big = 1 << 40;
    let budget = ample().with(Dimension::EgressBytes, big).with(Dimension::IngressBytes, big);
    let budget = budget.with(Dimension::Concurrent, 64);
    Grant::to(agent)
        .tools(tools.iter().copied())
        .scope("address", blocks(&[("127.0.0.1", 32)]))
        .scope("host", Scope::hosts(["*.test"]).unwrap())
        .scope("port", Scope::ports([PortRange::new(1, 65_535).unwrap()]).unwrap())
        .scope("scheme", Scope::names(["http"]).unwrap())
        .budget(budget)
}

pub(crate) fn blocks(all: &[(&str, u8)]) -> Scope {
    let block =
        |(address, prefix): &(&str, u8)| Cidr::new(address.parse().unwrap(), *prefix).unwrap();
    Scope::cidrs(all.iter().map(block)).unwrap()
}

impl World {
    pub(crate) fn session(&self, grant: Grant) -> Session {
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    /// A session that may use `http_request` on this machine.
    pub(crate) fn local(&self) -> Session {
        self.session(local(&["http_request"]))
    }

    /// Sets a tool, as an operator does.
    pub(crate) fn set(&self, tool: &str, settings: &str) {
        let settings = json::to_data(settings.as_bytes()).unwrap();
        let manifest = Network::manifest(ToolId::new(tool).unwrap(), settings).unwrap();
        self.rt.configure(&Configured { set: vec![manifest], unset: Vec::new() }).unwrap();
    }

    pub(crate) fn secrets(&self) -> SecretFiles {
        SecretFiles::of(&syscap::Home::at(&self.home))
    }

    /// Closes the home; its log must be sound.
    pub(crate) fn end(self) -> tempfile::TempDir {
        self.rt.close().unwrap();
        let verdict = host_support::verdict(&self.home);
        assert_eq!(verdict, syscap::verify::Soundness::Sound);
        self.dir
    }

    /// The classes of the last intent: the manifest's, and the call's.
    pub(crate) fn last_effects(&self) -> (EffectClass, EffectClass) {
        let all = records(&self.home);
        let last = all.iter().rev().find_map(|record| match &record.body {
            Body::Intent(intent) => Some((intent.effect, intent.call_effect)),
            _ => None,
        });
        last.unwrap()
    }
}

pub(crate) fn call(session: &Session, tool: &str, args: &str) -> ToolResult {
    session.request(tool).json(args, Escapes::Data).wait().unwrap()
}

pub(crate) fn get(session: &Session, url: &str) -> ToolResult {
    call(session, "http_request", &format!(r#"{{"url": "{url}"}}"#))
}

pub(crate) fn text(result: &ToolResult, key: &str) -> Option<String> {
    let value = result.value().unwrap_or_else(|error| panic!("{error}"));
    value.get(key).and_then(Item::as_text).map(str::to_owned)
}

pub(crate) fn uint(result: &ToolResult, key: &str) -> Option<u64> {
    result.value().unwrap().get(key).and_then(Item::as_uint)
}

pub(crate) fn flag(result: &ToolResult, key: &str) -> Option<bool> {
    result.value().unwrap().get(key).and_then(Item::as_bool)
}
