//! What a call touches, and the types of it.

use core::{fmt, net::IpAddr};

use super::{Host, Name, Rights, RootedPath};

/// One thing that a call touches. Its dimension is named beside it, by the tool's manifest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Resource {
    /// Text.
    Name(Name),
    /// An integer. One outside the range of the codec is permitted by no scope.
    Int(i128),
    /// A path, and what is to be done there.
    Path {
        /// The path.
        path: RootedPath,
        /// All that is needed; no scope permits [`Rights::NONE`].
        needs: Rights,
    },
    /// A host.
    Host(Host),
    /// A port. No scope permits port 0.
    Port(u16),
    /// An address. An IPv4-mapped IPv6 address counts as the IPv4 address in it.
    Addr(IpAddr),
}

impl Resource {
    /// The one type of scope that can permit it.
    #[must_use]
    pub const fn scope_type(&self) -> ScopeType {
        match self {
            Self::Name(_) => ScopeType::Names,
            Self::Int(_) => ScopeType::Ints,
            Self::Path { .. } => ScopeType::Paths,
            Self::Host(_) => ScopeType::Hosts,
            Self::Port(_) => ScopeType::Ports,
            Self::Addr(_) => ScopeType::Cidrs,
        }
    }
}

impl fmt::Display for Resource {
    /// For error messages, escaped and of bounded length: `read workspace/notes/a.txt`. `{:#}`
    /// adds whose workspace it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => fmt::Display::fmt(name, f),
            Self::Int(value) => write!(f, "{value}"),
            Self::Path { path, needs } => {
                write!(f, "{needs} ")?;
                fmt::Display::fmt(path, f)
            }
            Self::Host(host) => fmt::Display::fmt(host, f),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Addr(addr) => write!(f, "{addr}"),
        }
    }
}

/// The type of a scope, and of the resources that it can permit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ScopeType {
    /// Text from a finite set.
    Names,
    /// Integers.
    Ints,
    /// Paths.
    Paths,
    /// Hosts.
    Hosts,
    /// Ports.
    Ports,
    /// IP addresses.
    Cidrs,
}

impl ScopeType {
    /// Every type, in ascending order of code.
    pub const ALL: [Self; 6] =
        [Self::Names, Self::Ints, Self::Paths, Self::Hosts, Self::Ports, Self::Cidrs];

    /// The number on the wire.
    #[must_use]
    pub const fn code(self) -> u64 {
        match self {
            Self::Names => 1,
            Self::Ints => 2,
            Self::Paths => 3,
            Self::Hosts => 4,
            Self::Ports => 5,
            Self::Cidrs => 6,
        }
    }

    /// The type of a number on the wire, if it has one.
    #[must_use]
    pub fn from_code(code: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|found| found.code() == code)
    }
}
