//! Scopes: what a grant covers, and resources: what a call touches.
//!
//! A grant gives a tool one [`Scope`] a dimension; a call needs every [`Resource`] that it
//! touches to be permitted by the scope of the resource's dimension. Each type of resource is
//! permitted by exactly one type of scope.
//!
//! Every question is decided exactly. [`Scope::leq`] holds if and only if all that one scope
//! permits the other permits too; [`Scope::meet`] permits exactly what both do. A scope is
//! always in normal form, and so one meaning has one value and one encoding. There is no empty
//! scope: a scope that would permit nothing can't be made, isn't valid on the wire, and is
//! `None` as a meet. A grant says "nothing" by leaving the dimension out.
//!
//! On the wire a scope is `[type, value]`. A list is accepted in its normal form only, in ascending
//! order:
//!
//! | type | value | order |
//! |---|---|---|
//! | 1 names | `[text, ..]` | by bytes |
//! | 2 ints | `[least, greatest]` | |
//! | 3 paths | `[[root, owner or null, [component, ..], rights], ..]` | null first, see below |
//! | 4 hosts | `[text, ..]`, `*.` before a suffix | by bytes |
//! | 5 ports | `[[first, last], ..]` | by number |
//! | 6 cidrs | `[[address: bstr, prefix bits], ..]` | IPv4 first, then by address |
//!
//! Rules stand in the order of owner (null first), root and then component by component, each by
//! its bytes; a path stands before what lies below it.

mod cidr;
pub mod dimension;
mod error;
mod host;
mod ints;
mod names;
mod parts;
mod path;
mod paths;
mod port;
mod read;
mod resource;
mod shown;

use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

pub use cidr::{Cidr, Cidrs};
pub use dimension::ScopeDimension;
pub use error::ScopeError;
pub use host::{Host, HostPattern, Hosts};
pub use ints::Ints;
pub use names::{Name, Names};
pub use path::{Rights, Root, RootName, RootedPath};
pub use paths::{Paths, Rule};
pub use port::{PortRange, Ports};
pub use resource::{Resource, ScopeType};

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::Field;
use crate::summary::summary;
use parts::Parts;

/// A grant's scope in one dimension. It permits at least one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// A finite set of text.
    Names(Names),
    /// An interval of integers.
    Ints(Ints),
    /// Rights to paths below roots.
    Paths(Paths),
    /// Hosts by name or by suffix.
    Hosts(Hosts),
    /// Ranges of ports.
    Ports(Ports),
    /// Blocks of IP addresses.
    Cidrs(Cidrs),
}

impl Scope {
    /// A finite set of text.
    ///
    /// # Errors
    /// [`ScopeError::NameLength`], [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn names<I>(names: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let names: Result<_, _> = names.into_iter().map(|name| Name::new(name.as_ref())).collect();
        Names::from_parts(names?).map(Self::Names)
    }

    /// The integers from `least` to `greatest`, both included.
    ///
    /// # Errors
    /// [`ScopeError::IntRange`], or [`ScopeError::Empty`] where `least` is the greater.
    pub fn ints(least: i128, greatest: i128) -> Result<Self, ScopeError> {
        Ints::new(least, greatest).map(Self::Ints)
    }

    /// Rights to paths, brought into normal form.
    ///
    /// # Errors
    /// [`ScopeError::Conflict`], [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn paths<I>(rules: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = Rule>,
    {
        Paths::new(rules).map(Self::Paths)
    }

    /// Hosts (`example.com`) and suffixes (`*.example.com`), as text.
    ///
    /// # Errors
    /// [`ScopeError::Host`], [`ScopeError::SuffixLength`], [`ScopeError::Empty`] or
    /// [`ScopeError::TooMany`].
    pub fn hosts<I>(patterns: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let patterns: Result<_, _> =
            patterns.into_iter().map(|pattern| HostPattern::parse(pattern.as_ref())).collect();
        Hosts::from_parts(patterns?).map(Self::Hosts)
    }

    /// Ranges of ports; they may overlap and come in any order.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn ports<I>(ranges: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = PortRange>,
    {
        Ports::new(ranges).map(Self::Ports)
    }

    /// Blocks of addresses; they may overlap and come in any order.
    ///
    /// # Errors
    /// [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn cidrs<I>(blocks: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = Cidr>,
    {
        Cidrs::new(blocks).map(Self::Cidrs)
    }

    /// The type.
    pub const fn scope_type(&self) -> ScopeType {
        match self {
            Self::Names(_) => ScopeType::Names,
            Self::Ints(_) => ScopeType::Ints,
            Self::Paths(_) => ScopeType::Paths,
            Self::Hosts(_) => ScopeType::Hosts,
            Self::Ports(_) => ScopeType::Ports,
            Self::Cidrs(_) => ScopeType::Cidrs,
        }
    }

    /// True if the scope covers the resource. A resource of another type is never covered.
    #[must_use]
    pub fn permits(&self, resource: &Resource) -> bool {
        match (self, resource) {
            (Self::Names(scope), Resource::Name(name)) => scope.permits(name),
            (Self::Ints(scope), Resource::Int(value)) => scope.permits(*value),
            (Self::Paths(scope), Resource::Path { path, needs }) => scope.permits(path, *needs),
            (Self::Paths(scope), Resource::Tree { path, needs }) => {
                scope.permits_tree(path, *needs)
            }
            (Self::Hosts(scope), Resource::Host(host)) => scope.permits(host),
            (Self::Ports(scope), Resource::Port(port)) => scope.permits(*port),
            (Self::Cidrs(scope), Resource::Addr(addr)) => scope.permits(*addr),
            _ => false,
        }
    }

    /// True if `other` permits everything that this permits. Between types it never holds.
    #[must_use]
    pub fn leq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Names(a), Self::Names(b)) => a.leq(b),
            (Self::Ints(a), Self::Ints(b)) => a.leq(b),
            (Self::Paths(a), Self::Paths(b)) => a.leq(b),
            (Self::Hosts(a), Self::Hosts(b)) => a.leq(b),
            (Self::Ports(a), Self::Ports(b)) => a.leq(b),
            (Self::Cidrs(a), Self::Cidrs(b)) => a.leq(b),
            _ => false,
        }
    }

    /// The scope that permits exactly what both permit; `None` where that is nothing.
    ///
    /// Limits bind what is made and what is decoded. A meet can have as many parts as both
    /// scopes together; one that exceeds a limit works, but its encoding is refused.
    pub fn meet(&self, other: &Self) -> Option<Self> {
        match (self, other) {
            (Self::Names(a), Self::Names(b)) => a.meet(b).map(Self::Names),
            (Self::Ints(a), Self::Ints(b)) => a.meet(b).map(Self::Ints),
            (Self::Paths(a), Self::Paths(b)) => a.meet(b).map(Self::Paths),
            (Self::Hosts(a), Self::Hosts(b)) => a.meet(b).map(Self::Hosts),
            (Self::Ports(a), Self::Ports(b)) => a.meet(b).map(Self::Ports),
            (Self::Cidrs(a), Self::Cidrs(b)) => a.meet(b).map(Self::Cidrs),
            _ => None,
        }
    }

    /// The permitted alternatives to a refused resource, in words for its caller: `below
    /// workspace/notes`, `one of: a, b`, `from 1 to 9`. It names only paths with the needed rights.
    pub fn advice(&self, refused: &Resource) -> String {
        match (self, refused) {
            (Self::Paths(scope), Resource::Path { needs, .. } | Resource::Tree { needs, .. }) => {
                scope.advice(*needs)
            }
            (Self::Names(scope), Resource::Name(_)) => shown::one_of(scope.parts(), refused),
            (Self::Hosts(scope), Resource::Host(_)) => shown::one_of(scope.parts(), refused),
            (Self::Ports(scope), Resource::Port(_)) => shown::one_of(scope.parts(), refused),
            (Self::Ints(scope), Resource::Int(_)) => shown::from(scope),
            (Self::Cidrs(scope), Resource::Addr(_)) => {
                format!("an address of {}", summary(scope.parts().iter().map(ToString::to_string)))
            }
            _ => String::from("nothing"),
        }
    }

    /// Writes `[type, value]`.
    pub fn encode(&self, encoder: &mut Encoder) {
        encoder.array(2);
        encoder.uint(self.scope_type().code());
        match self {
            Self::Names(scope) => scope.encode(encoder),
            Self::Ints(scope) => scope.encode(encoder),
            Self::Paths(scope) => scope.encode(encoder),
            Self::Hosts(scope) => scope.encode(encoder),
            Self::Ports(scope) => scope.encode(encoder),
            Self::Cidrs(scope) => scope.encode(encoder),
        }
    }

    /// Reads `[type, value]`, in normal form only.
    ///
    /// # Errors
    /// [`DecodeFault::Value`] for an unknown type, for a value that breaks a rule or a limit and for
    /// one that isn't in normal form; faults of the decoder.
    pub fn decode(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        parts::fixed(decoder, 2)?;
        let unknown = decoder.fault(DecodeFault::Value);
        match ScopeType::from_code(decoder.uint()?).ok_or(unknown)? {
            ScopeType::Names => Names::decode(decoder).map(Self::Names),
            ScopeType::Ints => Ints::decode(decoder).map(Self::Ints),
            ScopeType::Paths => Paths::decode(decoder).map(Self::Paths),
            ScopeType::Hosts => Hosts::decode(decoder).map(Self::Hosts),
            ScopeType::Ports => Ports::decode(decoder).map(Self::Ports),
            ScopeType::Cidrs => Cidrs::decode(decoder).map(Self::Cidrs),
        }
    }
}

impl Field for Scope {
    const SHAPE: &'static str = "array [uint type, value]";

    fn put(&self, encoder: &mut Encoder) {
        self.encode(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        Self::decode(decoder)
    }
}

/// The permitted resources, for an error message: `workspace (read, write), shared (read)`. Names
/// are escaped, and both their number and their length are bounded. It names a workspace's owner
/// where the scope has more than one, and always with `{:#}`.
impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Names(scope) => shown::list(f, scope.parts()),
            Self::Ints(scope) => fmt::Display::fmt(scope, f),
            Self::Paths(scope) => fmt::Display::fmt(scope, f),
            Self::Hosts(scope) => shown::list(f, scope.parts()),
            Self::Ports(scope) => shown::list(f, scope.parts()),
            Self::Cidrs(scope) => shown::list(f, scope.parts()),
        }
    }
}
