//! From a name to addresses, once a call.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::Duration;

use syscap_format::{AgentId, Host};

/// Most look-ups of the system's resolver at a time: one that hangs can't be ended.
const LOOKUPS_MAX: usize = 256;
/// Most of them that are one agent's, with all agents below it: who has a name looked up that nobody
/// answers for keeps no other agent from the network.
const LOOKUPS_OF_AGENT_MAX: usize = 16;

/// Why a name has no address now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LookupError {
    /// There is no such name, or it has no address.
    #[error("the name has no address")]
    NotFound,
    /// The resolver did not answer in time.
    #[error("nobody said in time what the name's address is")]
    TimedOut,
    /// Too many look-ups are out.
    #[error("too many names are looked up")]
    Busy,
}

/// A resolver of names. It is asked once a call; each address that it gives is judged, and nothing
/// else is connected to.
pub trait Lookup: Send + Sync + 'static {
    /// The addresses of a name, within a time.
    fn lookup(&self, host: &Host, limit: Duration) -> Result<Vec<IpAddr>, LookupError>;

    /// The same for an agent, for who shares what it has among them.
    fn lookup_for(
        &self,
        _agent: &AgentId,
        host: &Host,
        limit: Duration,
    ) -> Result<Vec<IpAddr>, LookupError> {
        self.lookup(host, limit)
    }
}

/// The system's resolver. Names are looked up as they stand: none is completed by a search list.
/// `localhost` and what is below it is this machine, and nobody is asked (RFC 6761, 6.3).
#[derive(Debug, Default)]
pub struct SystemLookup {
    out: Arc<Mutex<BTreeMap<Box<str>, usize>>>,
}

/// One look-up that is out, and the agent that it is for.
struct Out(Arc<Mutex<BTreeMap<Box<str>, usize>>>, Box<str>);

impl Out {
    fn begin(all: &Arc<Mutex<BTreeMap<Box<str>, usize>>>, agent: &str) -> Option<Self> {
        let agent = Box::from(agent.split('/').next().unwrap_or_default());
        let mut out = all.lock().unwrap_or_else(PoisonError::into_inner);
        let own = out.get(&agent).copied().unwrap_or(0);
        if own >= LOOKUPS_OF_AGENT_MAX || out.values().sum::<usize>() >= LOOKUPS_MAX {
            return None;
        }
        out.insert(Box::clone(&agent), own.saturating_add(1));
        Some(Self(Arc::clone(all), agent))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match out.get_mut(&self.1) {
            Some(own) if *own > 1 => *own = own.saturating_sub(1),
            _ => drop(out.remove(&self.1)),
        }
    }
}

impl SystemLookup {
    fn of(&self, agent: &str, host: &Host, limit: Duration) -> Result<Vec<IpAddr>, LookupError> {
        if is_this_machine(host) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let out = Out::begin(&self.out, agent).ok_or(LookupError::Busy)?;
        let name = format!("{host_name}.", host_name = host.as_str());
        let (answer, answered) = mpsc::sync_channel(1);
        let look_up = move || {
            let found = (name.as_str(), 0).to_socket_addrs().map(|found| {
                let addresses: Vec<IpAddr> = found.map(|address| address.ip()).collect();
                addresses
            });
            drop(out);
            // Where nobody waits any more, nobody is to be told.
            answer.send(found).unwrap_or_default();
        };
        let thread = thread::Builder::new().name("syscap-lookup".to_owned());
        thread.spawn(look_up).map_err(|_| LookupError::Busy)?;
        match answered.recv_timeout(limit) {
            Ok(Ok(found)) if !found.is_empty() => Ok(found),
            Ok(_) => Err(LookupError::NotFound),
            Err(_) => Err(LookupError::TimedOut),
        }
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, host: &Host, limit: Duration) -> Result<Vec<IpAddr>, LookupError> {
        self.of("", host, limit)
    }

    fn lookup_for(
        &self,
        agent: &AgentId,
        host: &Host,
        limit: Duration,
    ) -> Result<Vec<IpAddr>, LookupError> {
        self.of(agent.as_str(), host, limit)
    }
}

fn is_this_machine(host: &Host) -> bool {
    host.as_str() == "localhost" || host.as_str().ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_machine_is_known_without_asking() {
        let lookup = SystemLookup::default();
        for name in ["localhost", "db.localhost"] {
            let found = lookup.lookup(&Host::new(name).unwrap(), Duration::ZERO).unwrap();
            assert!(found.iter().all(IpAddr::is_loopback) && found.len() == 2, "{name}");
        }
        assert!(!is_this_machine(&Host::new("notlocalhost").unwrap()));
    }

    #[test]
    fn look_ups_that_are_out_are_shared_by_agent() {
        let lookup = SystemLookup::default();
        let begin = |agent: &str| Out::begin(&lookup.out, agent);
        // Whoever is below an agent has of its share.
        let own: Vec<Out> = (0..LOOKUPS_OF_AGENT_MAX)
            .map(|n| begin(if n % 2 == 0 { "team" } else { "team/ada" }).unwrap())
            .collect();
        assert!(begin("team").is_none() && begin("team/bob").is_none());
        let others: Vec<Out> = (LOOKUPS_OF_AGENT_MAX..LOOKUPS_MAX)
            .map(|n| begin(&format!("a{}", n / LOOKUPS_OF_AGENT_MAX)).unwrap())
            .collect();
        assert!(begin("last").is_none());
        let (agent, name) = (AgentId::new("last").unwrap(), Host::new("example.invalid").unwrap());
        let found = lookup.lookup_for(&agent, &name, Duration::from_secs(1));
        assert_eq!(found, Err(LookupError::Busy));
        drop((own, others));
        assert!(lookup.out.lock().unwrap().is_empty());
    }
}
