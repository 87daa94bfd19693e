//! Which addresses are of the Internet at large.
//!
//! All blocks of IANA's special-purpose registries (RFC 6890; IPv4 and IPv6, as of 2025) that are
//! not globally reachable are kept out, and of IPv6 all that is not global unicast (2000::/3, RFC
//! 4291). Kept out as well are multicast; every form of an IPv4 address within an IPv6 address,
//! whatever that is (mapped, compatible, NAT64, 6to4, Teredo, ISATAP), since a translator on the
//! way would lead anywhere; and what is not special to IANA but to a cloud.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is not of the Internet at large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// This host, this network, or loopback.
    Local,
    /// A private network, or one between a carrier and its customers.
    Private,
    /// One link, such as the metadata services of clouds have.
    LinkLocal,
    /// Many receivers.
    Multicast,
    /// Documentation, benchmarks, protocols' own use, or not assigned.
    Reserved,
    /// An IPv6 address with an IPv4 address in it.
    Embedded,
    /// A service of a cloud's host, at an address that looks public.
    Cloud,
}

impl Special {
    /// Its description, for people.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Local => "this machine or network",
            Self::Private => "a private network",
            Self::LinkLocal => "one link, where metadata services are",
            Self::Multicast => "many receivers",
            Self::Reserved => "a reserved address",
            Self::Embedded => "an IPv4 address within an IPv6 one",
            Self::Cloud => "a service of a cloud's host",
        }
    }
}

/// A block of IPv4 addresses, and what it is.
type Block4 = ([u8; 4], u32, Special);
/// The same of IPv6: the first four groups are enough for most.
type Block6 = ([u16; 8], u32, Special);

const BLOCKS_4: [Block4; 18] = [
    ([0, 0, 0, 0], 8, Special::Local),
    ([10, 0, 0, 0], 8, Special::Private),
    ([100, 64, 0, 0], 10, Special::Private),
    ([127, 0, 0, 0], 8, Special::Local),
    ([169, 254, 0, 0], 16, Special::LinkLocal),
    ([172, 16, 0, 0], 12, Special::Private),
    ([192, 0, 0, 0], 24, Special::Reserved),
    ([192, 0, 2, 0], 24, Special::Reserved),
    // The relays of 6to4, given up by RFC 7526.
    ([192, 88, 99, 0], 24, Special::Reserved),
    ([192, 168, 0, 0], 16, Special::Private),
    ([198, 18, 0, 0], 15, Special::Reserved),
    ([198, 51, 100, 0], 24, Special::Reserved),
    ([203, 0, 113, 0], 24, Special::Reserved),
    ([224, 0, 0, 0], 4, Special::Multicast),
    ([240, 0, 0, 0], 4, Special::Reserved),
    // Azure's host: DHCP, DNS and health probes.
    ([168, 63, 129, 16], 32, Special::Cloud),
    // Oracle's metadata service for its older images.
    ([192, 0, 0, 192], 32, Special::Cloud),
    // Alibaba's metadata service; also within 100.64.0.0/10.
    ([100, 100, 100, 200], 32, Special::Cloud),
];

/// The special blocks within 2000::/3, and those told apart outside of it.
const BLOCKS_6: [Block6; 17] = [
    ([0, 0, 0, 0, 0, 0, 0, 0], 128, Special::Local),
    ([0, 0, 0, 0, 0, 0, 0, 1], 128, Special::Local),
    // Compatible addresses, given up by RFC 4291; mapped ones.
    ([0, 0, 0, 0, 0, 0, 0, 0], 96, Special::Embedded),
    ([0, 0, 0, 0, 0, 0xffff, 0, 0], 96, Special::Embedded),
    // Translated ones of RFC 2765.
    ([0, 0, 0, 0, 0xffff, 0, 0, 0], 96, Special::Embedded),
    // NAT64: the well-known prefix, and the one for local use.
    ([0x64, 0xff9b, 0, 0, 0, 0, 0, 0], 96, Special::Embedded),
    ([0x64, 0xff9b, 1, 0, 0, 0, 0, 0], 48, Special::Embedded),
    // Teredo; the rest of the protocols' block: benchmarks, ORCHID, DRIP, port control.
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 32, Special::Embedded),
    ([0x2001, 0, 0, 0, 0, 0, 0, 0], 23, Special::Reserved),
    ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0], 32, Special::Reserved),
    ([0x2002, 0, 0, 0, 0, 0, 0, 0], 16, Special::Embedded),
    ([0x3fff, 0, 0, 0, 0, 0, 0, 0], 20, Special::Reserved),
    ([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7, Special::Private),
    ([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10, Special::LinkLocal),
    ([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10, Special::Private),
    ([0xff00, 0, 0, 0, 0, 0, 0, 0], 8, Special::Multicast),
    ([0x5f00, 0, 0, 0, 0, 0, 0, 0], 16, Special::Reserved),
];

/// The special use of an address; `None` for one of the Internet at large.
#[must_use]
pub fn special(address: IpAddr) -> Option<Special> {
    match address {
        IpAddr::V4(address) => special_4(address),
        IpAddr::V6(address) => special_6(address),
    }
}

fn special_4(address: Ipv4Addr) -> Option<Special> {
    let bits = address.to_bits();
    let holds = |(octets, length, _): &&Block4| {
        (bits ^ Ipv4Addr::from(*octets).to_bits()).leading_zeros() >= *length
    };
    // The smallest block says it best.
    let found = BLOCKS_4.iter().filter(holds).max_by_key(|(_, length, _)| *length);
    found.map(|(.., special)| *special)
}

fn special_6(address: Ipv6Addr) -> Option<Special> {
    let bits = address.to_bits();
    let holds = |(groups, length, _): &&Block6| {
        (bits ^ Ipv6Addr::from(*groups).to_bits()).leading_zeros() >= *length
    };
    let found = BLOCKS_6.iter().filter(holds).max_by_key(|(_, length, _)| *length);
    if let Some((.., special)) = found {
        return Some(*special);
    }
    let [first, .., fifth, sixth, _, _] = address.segments();
    if first & 0xe000 != 0x2000 {
        return Some(Special::Reserved);
    }
    // ISATAP (RFC 5214): an IPv4 address as the end of any prefix.
    let is_isatap = sixth == 0x5efe && fifth & !0x0200 == 0;
    is_isatap.then_some(Special::Embedded)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<Special> {
        special(text.parse().unwrap())
    }

    /// For each block the first address, the last, and their neighbours.
    #[test]
    fn blocks_begin_and_end_where_they_are_said_to() {
        for (octets, length, _) in BLOCKS_4 {
            let first = Ipv4Addr::from(octets).to_bits();
            let last = first | u32::MAX.checked_shr(length).unwrap_or(0);
            assert!(special_4(first.into()).is_some() && special_4(last.into()).is_some());
        }
        for (groups, length, _) in BLOCKS_6 {
            let first = Ipv6Addr::from(groups).to_bits();
            let last = first | u128::MAX.checked_shr(length).unwrap_or(0);
            assert!(special_6(first.into()).is_some() && special_6(last.into()).is_some());
        }
        for beside in [
            "1.0.0.0",
            "9.255.255.255",
            "11.0.0.0",
            "100.63.255.255",
            "100.128.0.0",
            "126.255.255.255",
            "128.0.0.0",
            "169.253.255.255",
            "169.255.0.0",
            "172.15.255.255",
            "172.32.0.0",
            "191.255.255.255",
            "192.0.1.0",
            "192.0.3.0",
            "192.88.98.255",
            "192.88.100.0",
            "192.167.255.255",
            "192.169.0.0",
            "198.17.255.255",
            "198.20.0.0",
            "198.51.99.255",
            "198.51.101.0",
            "203.0.112.255",
            "203.0.114.0",
            "223.255.255.255",
            "168.63.129.15",
            "168.63.129.17",
            "8.8.8.8",
            "192.31.196.1",
            "192.175.48.1",
            "2001:200::",
            "2001:1ff:ffff::1:0:0:0",
            "2001:db7:ffff::",
            "2001:db9::",
            "2003::",
            "2001:4860:4860::8888",
            "2620:4f:8000::1",
            "3fff:1000::",
            "2000::",
            "3ffe::",
        ] {
            let reserved = beside.starts_with("2001:1ff");
            assert_eq!(of(beside).is_some(), reserved, "{beside}");
        }
    }

    /// The table of Stripe's smokescreen, and what Python's `is_global` takes for global.
    #[test]
    fn no_way_to_an_inner_network_is_public() {
        use Special::{Cloud, Embedded, LinkLocal, Local, Multicast, Private, Reserved};
        for (address, is) in [
            ("0.0.0.0", Local),
            ("0.1.2.3", Local),
            ("127.0.0.1", Local),
            ("127.255.255.254", Local),
            ("10.0.0.1", Private),
            ("172.31.255.255", Private),
            ("192.168.0.1", Private),
            ("100.64.0.1", Private),
            ("100.100.100.200", Cloud),
            ("169.254.169.254", LinkLocal),
            ("169.254.170.2", LinkLocal),
            ("168.63.129.16", Cloud),
            ("192.0.0.192", Cloud),
            ("192.0.0.9", Reserved),
            ("192.88.99.1", Reserved),
            ("198.19.0.1", Reserved),
            ("224.0.0.1", Multicast),
            ("239.255.255.250", Multicast),
            ("240.0.0.1", Reserved),
            ("255.255.255.255", Reserved),
            ("::", Local),
            ("::1", Local),
            ("::2", Embedded),
            ("::127.0.0.1", Embedded),
            ("::ffff:127.0.0.1", Embedded),
            ("::ffff:8.8.8.8", Embedded),
            ("::ffff:0:8.8.8.8", Embedded),
            ("64:ff9b::a9fe:a9fe", Embedded),
            ("64:ff9b::8.8.8.8", Embedded),
            ("64:ff9b:1::1", Embedded),
            ("2001::1", Embedded),
            ("2001:2::1", Reserved),
            ("2001:20::1", Reserved),
            ("2001:db8::1", Reserved),
            ("2002:7f00:1::", Embedded),
            ("2002:808:808::1", Embedded),
            ("3fff::1", Reserved),
            ("2a00:1450::200:5efe:a9fe:a9fe", Embedded),
            ("2a00:1450::5efe:7f00:1", Embedded),
            ("fc00::1", Private),
            ("fd00:ec2::254", Private),
            ("fe80::1", LinkLocal),
            ("febf::1", LinkLocal),
            ("fec0::1", Private),
            ("ff02::1", Multicast),
            ("100::1", Reserved),
            ("4000::1", Reserved),
            ("5f00::1", Reserved),
            ("1::1", Reserved),
            ("e000::1", Reserved),
        ] {
            assert_eq!(of(address), Some(is), "{address}");
        }
    }
}
