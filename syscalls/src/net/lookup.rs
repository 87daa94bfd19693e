//! From a name to addresses, once a call.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, ToSocketAddrs as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use syscap_format::Host;

/// Most look-ups of the system's resolver at a time: one that hangs can't be ended.
const LOOKUPS_MAX: usize = 64;

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
}

/// The system's resolver. Names are looked up as they stand: none is completed by a search list.
/// `localhost` and what is below it is this machine, and nobody is asked (RFC 6761, 6.3).
#[derive(Debug, Default)]
pub struct SystemLookup {
    out: Arc<AtomicUsize>,
}

/// One look-up that is out.
struct Out(Arc<AtomicUsize>);

impl Out {
    fn begin(out: &Arc<AtomicUsize>) -> Option<Self> {
        let one_more = |out: usize| (out < LOOKUPS_MAX).then(|| out.saturating_add(1));
        let begun = out.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_more);
        begun.is_ok().then(|| Self(Arc::clone(out)))
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Lookup for SystemLookup {
    fn lookup(&self, host: &Host, limit: Duration) -> Result<Vec<IpAddr>, LookupError> {
        if is_this_machine(host) {
            return Ok(vec![Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()]);
        }
        let out = Out::begin(&self.out).ok_or(LookupError::Busy)?;
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
    fn look_ups_that_are_out_are_bounded() {
        let out = Arc::new(AtomicUsize::new(0));
        let held: Vec<Out> = (0..LOOKUPS_MAX).map(|_| Out::begin(&out).unwrap()).collect();
        assert!(Out::begin(&out).is_none());
        drop(held);
        assert!(Out::begin(&out).is_some());
        let busy = SystemLookup { out: Arc::new(AtomicUsize::new(LOOKUPS_MAX)) };
        let name = Host::new("example.invalid").unwrap();
        assert_eq!(busy.lookup(&name, Duration::from_secs(1)), Err(LookupError::Busy));
    }
}
