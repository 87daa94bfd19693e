//! Hosts and addresses.

use alloc::{collections::BTreeSet, format, vec::Vec};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use syscap_format::{Cidr, Host};
use syscap_policy::{Ask, host_of};

use super::constants::text_constants;

/// The first address after those that stand for IPv4 addresses.
const AFTER_MAPPED: u128 = 0x1_0000_0000_0000;
/// The first of them.
const MAPPED: u128 = 0xffff_0000_0000;

/// Each host that is named, one right below it, and one elsewhere.
pub(super) fn hosts(asks: &[&Ask]) -> Vec<Host> {
    let mut named: BTreeSet<Host> = text_constants(asks).into_iter().filter_map(host_of).collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Domain(host) => Some(host.clone()),
        _ => None,
    }));
    let labels: BTreeSet<&str> = named.iter().flat_map(|host| host.as_str().split('.')).collect();
    // One character first: below the longest host there may be room for no more.
    let mut fresh = ('a'..='z').map(|c| format!("{c}")).chain((0..).map(|n| format!("h{n}")));
    let fresh = fresh.find(|label| !labels.contains(&**label)).unwrap_or_default();
    let mut all: Vec<Host> = named.iter().cloned().collect();
    all.extend(named.iter().filter_map(|host| Host::new(&format!("{fresh}.{host}")).ok()));
    all.extend(Host::new(&fresh));
    all
}

/// One address of each part that the blocks cut all addresses into: such a part begins at the
/// first address, at the first of a block, or right after the last of one.
pub(super) fn addresses(asks: &[&Ask]) -> Vec<IpAddr> {
    let mut v4 = BTreeSet::from([0_u32]);
    let mut v6 = BTreeSet::from([0_u128, AFTER_MAPPED]);
    for ask in asks {
        if let Ask::Cidr(block) = ask {
            let bits = u32::from(block.prefix());
            match block.addr() {
                IpAddr::V4(first) => {
                    let first = first.to_bits();
                    let hosts = u32::MAX.checked_shr(bits).unwrap_or(0);
                    v4.insert(first);
                    v4.extend((first | hosts).checked_add(1));
                }
                IpAddr::V6(first) => {
                    let first = first.to_bits();
                    let hosts = u128::MAX.checked_shr(bits).unwrap_or(0);
                    v6.insert(first);
                    v6.extend((first | hosts).checked_add(1));
                }
            }
        }
    }
    v6.retain(|bits| !(MAPPED..AFTER_MAPPED).contains(bits));
    let v4 = v4.into_iter().map(|bits| IpAddr::V4(Ipv4Addr::from_bits(bits)));
    v4.chain(v6.into_iter().map(|bits| IpAddr::V6(Ipv6Addr::from_bits(bits)))).collect()
}

/// Texts of an address: the usual one, and others for where that one is a constant.
pub(super) fn address_texts(address: IpAddr) -> Vec<alloc::string::String> {
    let usual = format!("{address}");
    let bits = match address {
        IpAddr::V4(address) => return [usual, format!("::ffff:{address}")].into(),
        IpAddr::V6(address) => address.segments(),
    };
    let full: Vec<_> = bits.iter().map(|segment| format!("{segment:04x}")).collect();
    [usual, full.join(":")].into()
}

/// The address blocks that these ask for.
pub(super) fn blocks(asks: &[&Ask]) -> Vec<Cidr> {
    let of = |ask: &&Ask| if let Ask::Cidr(block) = ask { Some(*block) } else { None };
    asks.iter().filter_map(of).collect()
}
