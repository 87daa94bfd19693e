//! Resources that a call touches, and their types.

use alloc::format;
use alloc::string::{String, ToString};
use core::{fmt, net::IpAddr};

use super::{Host, Name, Rights, RootedPath, shown::Whole};
use crate::field::code;

/// One thing that a call touches. Its dimension is named beside it, by the tool's manifest.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
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
    /// A path and all that lies below it, and what is to be done there.
    Tree {
        /// The path at its beginning.
        path: RootedPath,
        /// All that is needed, everywhere in it; no scope permits [`Rights::NONE`].
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
    pub const fn scope_type(&self) -> ScopeType {
        match self {
            Self::Name(_) => ScopeType::Names,
            Self::Int(_) => ScopeType::Ints,
            Self::Path { .. } | Self::Tree { .. } => ScopeType::Paths,
            Self::Host(_) => ScopeType::Hosts,
            Self::Port(_) => ScopeType::Ports,
            Self::Addr(_) => ScopeType::Cidrs,
        }
    }

    /// The same text as `{:#}`, escaped and never cut: within one type no two resources have the
    /// same. It is what a person approves, and what a bounded set is held against.
    pub fn in_full(&self) -> String {
        match self {
            Self::Name(name) => Whole(name.as_str()).to_string(),
            Self::Host(host) => Whole(host.as_str()).to_string(),
            Self::Path { path, needs } => format!("{needs} {}", path.in_full()),
            Self::Tree { path, needs } => format!("{needs} all below {}", path.in_full()),
            Self::Int(_) | Self::Port(_) | Self::Addr(_) => self.to_string(),
        }
    }
}

impl Resource {
    /// Reads what [`in_full`](Self::in_full) writes of a path. `None` for any other text, and where
    /// something is escaped.
    pub fn path_in_full(text: &str) -> Option<Self> {
        let all = (1..=Rights::ALL.bits()).filter_map(Rights::from_bits);
        let mut read = all.filter_map(|needs| {
            let path = text.strip_prefix(&format!("{needs} "))?;
            RootedPath::from_full(path).map(|path| Self::Path { path, needs })
        });
        read.find(|resource| resource.in_full() == text)
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
            Self::Tree { path, needs } => {
                write!(f, "{needs} all below ")?;
                fmt::Display::fmt(path, f)
            }
            Self::Host(host) => fmt::Display::fmt(host, f),
            Self::Port(port) => write!(f, "port {port}"),
            Self::Addr(addr) => write!(f, "{addr}"),
        }
    }
}

code! {
    /// The type of a scope, and of the resources that it can permit.
    pub enum ScopeType {
        /// Text from a finite set.
        Names = 1 "names",
        /// Integers.
        Ints = 2 "ints",
        /// Paths.
        Paths = 3 "paths",
        /// Hosts.
        Hosts = 4 "hosts",
        /// Ports.
        Ports = 5 "ports",
        /// IP addresses.
        Cidrs = 6 "cidrs",
    }
}
