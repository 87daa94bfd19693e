//! Values: what an attribute can be.

use alloc::vec::Vec;
use core::net::IpAddr;

use syscap_format::scope::{Host, RootedPath};

/// What an attribute is for one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// It is not there.
    Missing,
    /// It was there and was erased.
    Erased,
    /// `false` or `true`.
    Bool(bool),
    /// An integer, or a port.
    Int(i128),
    /// Text, or a resource that is a name.
    Text(&'a str),
    /// An agent: compared by components.
    Agent(&'a str),
    /// A path below a root: compared by components, whosever workspace it is.
    Path(&'a RootedPath),
    /// A host: compared by labels.
    Host(&'a Host),
    /// An address. An IPv4-mapped IPv6 address counts as the IPv4 address in it.
    Address(IpAddr),
    /// Something that nothing can be compared with: null, a float, bytes, a map, an empty list.
    Other(Other),
    /// The elements of a list, at least one. What is asked holds if it holds of every one, does
    /// not hold if it holds of none, and else can't be said.
    List(Vec<Value<'a>>),
    /// The resources that an argument names, at least one. What is asked is asked of all of them,
    /// as of a list: where one is of another type than the question is about it can't be said.
    Resources(Vec<Value<'a>>),
}

/// Types that nothing can be compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Other {
    /// `null`.
    Null,
    /// A float.
    Float,
    /// A byte string.
    Bytes,
    /// A list without elements, or with more than
    /// [`LIST_MAX`](crate::limits::LIST_MAX).
    EmptyList,
    /// A map.
    Map,
}

impl Other {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Null, Self::Float, Self::Bytes, Self::EmptyList, Self::Map];

    /// The name by which a scenario has some value of that type; `None` for null, which is written
    /// as it is.
    #[must_use]
    pub const fn type_name(self) -> Option<&'static str> {
        match self {
            Self::Null => None,
            Self::Float => Some("float"),
            Self::Bytes => Some("bytes"),
            Self::EmptyList => Some("empty_list"),
            Self::Map => Some("map"),
        }
    }
}

/// Where the values of a call come from.
pub trait Values {
    /// What an attribute is.
    fn value(&self, attribute: &crate::document::Attribute) -> Value<'_>;
}
