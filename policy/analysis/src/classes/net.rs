//! Hosts and addresses.

use alloc::{collections::BTreeSet, format, string::String, vec::Vec};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use syscap_format::{Cidr, Host};
use syscap_policy::{Ask, host_of};

use super::constants::text_constants;
use super::fresh::{Fresh, add, fresh};

/// The first address after those that stand for IPv4 addresses.
const AFTER_MAPPED: u128 = 0x1_0000_0000_0000;
/// The first of them.
const MAPPED: u128 = 0xffff_0000_0000;

/// Each host that is named, one right below it, and one elsewhere; whether they stand for all.
pub(super) fn hosts(asks: &[&Ask]) -> (Vec<Host>, bool) {
    let mut named: BTreeSet<Host> = text_constants(asks).into_iter().filter_map(host_of).collect();
    named.extend(asks.iter().filter_map(|ask| match ask {
        Ask::Domain(host) => Some(host.clone()),
        _ => None,
    }));
    // A host is within those that it is below: one that is right below a named one, and not named
    // itself, is within no other.
    let is_free = |host: &Host| !named.contains(host);
    let (mut all, mut exact) = (named.iter().cloned().collect::<Vec<_>>(), true);
    let outers = named.iter().map(|host| format!(".{host}")).chain([String::new()]);
    for outer in outers {
        let make = |label: &str| Host::new(&format!("{label}{outer}")).ok();
        exact &= add(&mut all, fresh("", named.len(), make, is_free));
    }
    (all, exact)
}

/// The parts that the blocks cut all addresses into, each by its first and last: such a part begins
/// at the first address, at the first of a block, or right after the last of one.
fn parts(asks: &[&Ask]) -> Vec<(IpAddr, IpAddr)> {
    let mut v4 = BTreeSet::from([0_u32]);
    let mut v6 = BTreeSet::from([0_u128, MAPPED, AFTER_MAPPED]);
    for block in blocks(asks) {
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
    let v4_last = v4.iter().skip(1).map(|next| next.saturating_sub(1)).chain([u32::MAX]);
    let v6_last = v6.iter().skip(1).map(|next| next.saturating_sub(1)).chain([u128::MAX]);
    let v4_address = |bits| IpAddr::V4(Ipv4Addr::from_bits(bits));
    let v6_address = |bits| IpAddr::V6(Ipv6Addr::from_bits(bits));
    let v4 = v4.iter().zip(v4_last).map(|(first, last)| (v4_address(*first), v4_address(last)));
    let v6 = v6.iter().zip(v6_last).filter(|(first, _)| !(MAPPED..AFTER_MAPPED).contains(*first));
    v4.chain(v6.map(|(first, last)| (v6_address(*first), v6_address(last)))).collect()
}

/// One address of each part.
pub(super) fn addresses(asks: &[&Ask]) -> Vec<IpAddr> {
    parts(asks).into_iter().map(|(first, _)| first).collect()
}

/// A text for each part that is an address in it and no constant; whether they stand for all. Each
/// text that is passed over is a constant, so that the work is bounded by those.
pub(super) fn address_texts(asks: &[&Ask], constants: &BTreeSet<&str>) -> (Vec<String>, bool) {
    let (mut all, mut exact) = (Vec::new(), true);
    for (first, last) in parts(asks) {
        let mut texts = addresses_from(first, last).flat_map(spellings);
        exact &= add(
            &mut all,
            match texts.find(|text| !constants.contains(&**text)) {
                Some(text) => Fresh::Found(text),
                None => Fresh::Unknown,
            },
        );
    }
    (all, exact)
}

fn addresses_from(first: IpAddr, last: IpAddr) -> impl Iterator<Item = IpAddr> {
    core::iter::successors(Some(first), move |address| {
        let next = match address {
            _ if *address == last => return None,
            IpAddr::V4(address) => {
                IpAddr::V4(Ipv4Addr::from_bits(address.to_bits().checked_add(1)?))
            }
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits().checked_add(1)?))
            }
        };
        Some(next)
    })
}

/// Texts of an address: the usual one, then with more zeros in front of the groups of an IPv6
/// address, in lower and in upper case. One of IPv4 is written as mapped, too. Some are left out:
/// zeros that `::` stands for, and a dotted end.
fn spellings(address: IpAddr) -> impl Iterator<Item = String> {
    let (usual, mapped) = match address {
        IpAddr::V4(address) => (format!("{address}"), address.to_ipv6_mapped()),
        IpAddr::V6(address) => (format!("{address}"), address),
    };
    let groups = mapped.segments();
    // Each group has as many digits as it needs, up to four.
    let needs = groups.map(|group| match group {
        0x1000.. => 4_u32,
        0x100.. => 3,
        0x10.. => 2,
        _ => 1,
    });
    let ways: u32 = needs.iter().map(|digits| 5_u32.saturating_sub(*digits)).product();
    let spelt = move |mut n: u32, upper: bool| {
        let mut texts: Vec<String> = Vec::new();
        for (group, digits) in groups.iter().zip(needs) {
            let choices = 5_u32.saturating_sub(digits);
            let more = n.checked_rem(choices).unwrap_or_default();
            n = n.checked_div(choices).unwrap_or_default();
            let width = usize::try_from(digits.saturating_add(more)).unwrap_or(4);
            texts.push(match upper {
                true => format!("{group:0width$X}"),
                false => format!("{group:0width$x}"),
            });
        }
        texts.join(":")
    };
    let all = (0..ways).map(move |n| spelt(n, false)).chain((0..ways).map(move |n| spelt(n, true)));
    core::iter::once(usual).chain(all)
}

/// The address blocks that these ask for.
pub(super) fn blocks(asks: &[&Ask]) -> Vec<Cidr> {
    let of = |ask: &&Ask| if let Ask::Cidr(block) = ask { Some(*block) } else { None };
    asks.iter().filter_map(of).collect()
}
