//! Blocks of IP addresses.

use alloc::vec::Vec;
use core::fmt;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::ScopeError;
use super::parts::{self, Parts};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};

/// All addresses that share a prefix. No bit after the prefix is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cidr {
    family: Family,
    /// The address's bits, the first one highest, in both families.
    bits: u128,
    prefix: u8,
}

/// IPv4 sorts first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Family {
    V4,
    V6,
}

impl Cidr {
    /// The block of the addresses whose first `prefix` bits are those of `addr`.
    ///
    /// # Errors
    /// [`ScopeError::PrefixLength`], [`ScopeError::HostBits`] or [`ScopeError::Mapped`].
    pub fn new(addr: IpAddr, prefix: u8) -> Result<Self, ScopeError> {
        let (family, bits, prefix_max) = match addr {
            IpAddr::V4(addr) => (Family::V4, v4_bits(addr), 32),
            IpAddr::V6(addr) => (Family::V6, addr.to_bits(), 128),
        };
        let block = Self { family, bits, prefix };
        if prefix > prefix_max {
            Err(ScopeError::PrefixLength)
        } else if bits & !block.mask() != 0 {
            Err(ScopeError::HostBits)
        } else if MAPPED.covers(block) {
            Err(ScopeError::Mapped)
        } else {
            Ok(block)
        }
    }

    /// The first address.
    pub fn addr(self) -> IpAddr {
        match self.family {
            // The shift leaves 32 bits.
            Family::V4 => Ipv4Addr::from_bits(u32::try_from(self.bits >> 96).unwrap_or(0)).into(),
            Family::V6 => Ipv6Addr::from_bits(self.bits).into(),
        }
    }

    /// How many bits all addresses share.
    pub const fn prefix(self) -> u8 {
        self.prefix
    }

    fn mask(self) -> u128 {
        // A shift by all 128 bits leaves none: a prefix of 0 fixes nothing.
        !u128::MAX.checked_shr(u32::from(self.prefix)).unwrap_or(0)
    }

    fn covers(self, other: Self) -> bool {
        self.family == other.family
            && self.prefix <= other.prefix
            && (self.bits ^ other.bits) & self.mask() == 0
    }

    /// The block of both, if they are its lower and its upper half.
    fn joined(self, upper: Self) -> Option<Self> {
        let whole = Self { prefix: self.prefix.checked_sub(1)?, ..self };
        let halves = self.prefix == upper.prefix && self.bits < upper.bits;
        (halves && whole.covers(upper)).then_some(whole)
    }
}

/// `::ffff:0:0/96`. Connecting to such an address connects to the IPv4 address in it, so that
/// is how it is judged, and IPv6 blocks never decide about it.
const MAPPED: Cidr = Cidr { family: Family::V6, bits: 0xffff_0000_0000, prefix: 96 };

impl fmt::Display for Cidr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.addr(), self.prefix)
    }
}

/// Blocks of addresses, sorted, none within another, and no two that make up a larger one.
///
/// An IPv4-mapped IPv6 address is judged as the IPv4 address in it, by IPv4 blocks only. That
/// IPv6 blocks reach over the mapped range, or not, has no meaning; in normal form they reach
/// over it where that makes the list shorter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cidrs(Vec<Cidr>);

impl Cidrs {
    /// Most blocks in a set: a list that grows beyond belongs to policy.
    pub const BLOCKS_MAX: usize = 1024;

    /// The addresses of all `blocks`.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn new<I>(blocks: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = Cidr>,
    {
        Self::from_parts(blocks.into_iter().collect())
    }

    /// The blocks, in ascending order.
    pub fn blocks(&self) -> &[Cidr] {
        &self.0
    }

    /// True if a block contains `addr`.
    #[must_use]
    pub fn permits(&self, addr: IpAddr) -> bool {
        self.covers(match addr.to_canonical() {
            IpAddr::V4(addr) => Cidr { family: Family::V4, bits: v4_bits(addr), prefix: 32 },
            IpAddr::V6(addr) => Cidr { family: Family::V6, bits: addr.to_bits(), prefix: 128 },
        })
    }

    /// Siblings are joined, so a block is covered by one block or not at all.
    pub(super) fn leq(&self, other: &Self) -> bool {
        self.0.iter().all(|block| other.covers(*block))
    }

    /// Two blocks that overlap lie one within the other, so the inner ones are the meet.
    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let of_self = self.0.iter().filter(|block| other.covers(**block));
        let of_other = other.0.iter().filter(|block| self.covers(**block));
        Self::unlimited(of_self.chain(of_other).copied().collect())
    }

    /// No block lies within another, so only the last that begins at or before `block` can have
    /// it; one that begins at the same address but is smaller sorts after it.
    fn covers(&self, block: Cidr) -> bool {
        let end = self.0.partition_point(|found| *found <= block);
        let found = end.checked_sub(1).and_then(|at| self.0.get(at));
        found.is_some_and(|found| found.covers(block))
    }
}

impl Parts for Cidrs {
    type Part = Cidr;
    const PARTS_MAX: usize = Self::BLOCKS_MAX;

    fn normalise(mut blocks: Vec<Cidr>) -> Vec<Cidr> {
        // The mapped range is free to join its neighbours; left alone it means nothing.
        blocks.push(MAPPED);
        blocks.sort();
        let mut kept: Vec<Cidr> = Vec::with_capacity(blocks.len());
        for mut block in blocks {
            if kept.last().is_some_and(|last| last.covers(block)) {
                continue;
            }
            while let Some(whole) = kept.last().and_then(|last| last.joined(block)) {
                kept.pop();
                block = whole;
            }
            kept.push(block);
        }
        kept.retain(|block| *block != MAPPED);
        kept
    }

    fn from_normal(blocks: Vec<Cidr>) -> Self {
        Self(blocks)
    }

    fn parts(&self) -> &[Cidr] {
        &self.0
    }

    fn write(block: &Cidr, encoder: &mut Encoder) {
        encoder.array(2);
        match block.addr() {
            IpAddr::V4(addr) => encoder.bytes(&addr.octets()),
            IpAddr::V6(addr) => encoder.bytes(&addr.octets()),
        }
        encoder.uint(u64::from(block.prefix));
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Cidr, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        parts::fixed(decoder, 2)?;
        let octets = decoder.bytes()?;
        let v4 = <[u8; 4]>::try_from(octets).map(IpAddr::from);
        let addr = v4.or_else(|_| <[u8; 16]>::try_from(octets).map(IpAddr::from));
        let prefix = u8::try_from(decoder.uint()?).map_err(|_| refused)?;
        Cidr::new(addr.map_err(|_| refused)?, prefix).map_err(|_| refused)
    }
}

fn v4_bits(addr: Ipv4Addr) -> u128 {
    u128::from(addr.to_bits()) << 96
}
