//! Which addresses a call may connect to.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use syscap_format::{Cidrs, Host, Reason, Refused};

use super::address::{Special, special};
use super::lookup::LookupError;
use super::target::{Place, Target};

/// Most addresses of a name that are tried; all are judged.
const TRIED_MAX: usize = 16;
/// A name of more addresses than that is not gone to.
const FOUND_MAX: usize = 256;

/// Services that hand out a machine's own credentials, at addresses that are not link-local.
const METADATA: [IpAddr; 2] = [
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)),
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)),
];

/// True if an address of a name may be connected to: one of the Internet at large may; any other
/// only by a granted block. For addresses that give machines their own credentials, the block must
/// be of the one address alone.
#[must_use]
pub fn is_reachable(address: IpAddr, granted: Option<&Cidrs>) -> bool {
    let Some(kind) = special(address) else { return true };
    let Some(granted) = granted.filter(|blocks| blocks.permits(address)) else { return false };
    let plain = address.to_canonical();
    let hands_out = matches!(kind, Special::LinkLocal | Special::Cloud)
        || METADATA.contains(&plain)
        || matches!(special(plain), Some(Special::LinkLocal | Special::Cloud));
    !hands_out || granted.blocks().iter().any(|block| block.addr() == plain && is_one(*block))
}

fn is_one(block: syscap_format::Cidr) -> bool {
    match block.addr() {
        IpAddr::V4(_) => block.prefix() == 32,
        IpAddr::V6(_) => block.prefix() == 128,
    }
}

/// The addresses of a call: looked up once, all of them judged. If one address of a name is
/// forbidden all are: the caller has no say in the choice among them.
///
/// # Errors
/// [`Reason::Unreachable`] or [`Reason::ForbiddenAddress`].
pub(super) fn addresses(
    target: &Target,
    lookup: impl FnOnce(&Host, Duration) -> Result<Vec<IpAddr>, LookupError>,
    granted: Option<&Cidrs>,
    by: &str,
    limit: Duration,
) -> Result<Vec<SocketAddr>, Refused> {
    let found = match target.place() {
        Place::Address(address) => vec![*address],
        Place::Name(name) => lookup(name, limit).map_err(|error| {
            Refused::new(Reason::Unreachable).field("url").got(name.as_str()).allowed(&error)
        })?,
    };
    if found.is_empty() || found.len() > FOUND_MAX {
        return Err(Refused::new(Reason::Unreachable).field("url"));
    }
    if let Some(address) = found.iter().find(|address| !is_reachable(**address, granted)) {
        let kind = special(*address).map_or("an address", Special::words);
        let got = format!("{kind}: {address}");
        let refused = Refused::new(Reason::ForbiddenAddress).field("url").got(&got);
        return Err(refused.allowed(by));
    }
    Ok(found.iter().take(TRIED_MAX).map(|ip| SocketAddr::new(*ip, target.port())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use syscap_format::Scope;

    fn blocks(all: &[(&str, u8)]) -> Cidrs {
        let blocks = all.iter().map(|(address, prefix)| {
            syscap_format::Cidr::new(address.parse().unwrap(), *prefix).unwrap()
        });
        match Scope::cidrs(blocks).unwrap() {
            Scope::Cidrs(blocks) => blocks,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn non_public_address_needs_a_grant() {
        let granted = blocks(&[("10.0.0.0", 8), ("169.254.0.0", 16), ("fd00::", 8)]);
        for (address, without, with) in [
            ("8.8.8.8", true, true),
            ("10.1.2.3", false, true),
            ("127.0.0.1", false, false),
            ("::ffff:10.1.2.3", false, true),
            ("64:ff9b::a01:203", false, false),
            ("fd12::1", false, true),
            // Where a machine's credentials are, by name only.
            ("169.254.169.254", false, false),
            ("::ffff:169.254.169.254", false, false),
            ("169.254.1.1", false, false),
            ("fd00:ec2::254", false, false),
        ] {
            let address = address.parse().unwrap();
            let found = (is_reachable(address, None), is_reachable(address, Some(&granted)));
            assert_eq!(found, (without, with), "{address}");
        }
        let one = blocks(&[("169.254.169.254", 32), ("fd00:ec2::254", 128), ("0.0.0.0", 0)]);
        // Both are within a larger block now, which says nothing of them by name.
        assert!(!is_reachable("169.254.169.254".parse().unwrap(), Some(&one)));
        let one = blocks(&[("169.254.169.254", 32), ("fd00:ec2::254", 128)]);
        assert!(is_reachable("169.254.169.254".parse().unwrap(), Some(&one)));
        assert!(is_reachable("fd00:ec2::254".parse().unwrap(), Some(&one)));
        assert!(!is_reachable("169.254.169.253".parse().unwrap(), Some(&one)));
    }
}
