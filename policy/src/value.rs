//! Values: what an attribute can be.

use alloc::{string::String, vec::Vec};
use core::net::IpAddr;

use syscap_format::{EffectClass, Host, RootedPath, TokenId, ToolId};

use crate::document::attribute::{Attribute, Type};

/// An attribute's value for one call.
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
    /// A path and all that lies below it: what may hold of a part of it alone can't be said.
    Tree(&'a RootedPath),
    /// A host: compared by labels.
    Host(&'a Host),
    /// An address. An IPv4-mapped IPv6 address counts as the IPv4 address in it.
    Address(IpAddr),
    /// Something that nothing can be compared with: null, a float, bytes, a map, an empty list.
    Other(Other),
    /// The elements of a list, at least one. A test holds if it holds of every element, does not
    /// hold if it holds of none, and else is unknown.
    List(Vec<Value<'a>>),
    /// The resources that an argument names, at least one. A test is about all of them, as of a
    /// list; if one has another type than the test it is unknown.
    Resources(Vec<Value<'a>>),
}

impl Value<'_> {
    /// True if an attribute of that type can have this value.
    #[must_use]
    pub fn can_be(&self, kind: Type) -> bool {
        let up_to = |least: u64, most: u64| {
            let range = i128::from(least)..=i128::from(most);
            matches!(self, Value::Int(n) if range.contains(n))
        };
        match kind {
            Type::Fact => self.is_data() || matches!(self, Value::Missing | Value::Erased),
            Type::Field => self.is_data() || *self == Value::Missing,
            Type::Argument => self.is_data() || self.is_resource() || *self == Value::Missing,
            Type::Tool => matches!(self, Value::Text(text) if ToolId::new(text).is_some()),
            Type::EffectClass => {
                let is_class = |text| EffectClass::ALL.iter().any(|class| class.name() == text);
                matches!(self, Value::Text(text) if is_class(*text))
            }
            Type::Agent => matches!(self, Value::Agent(_)),
            Type::TokenId => matches!(self, Value::Text(text) if TokenId::from_hex(text).is_some()),
            Type::Bool => matches!(self, Value::Bool(_)),
            Type::UpTo(most) => up_to(0, most),
            Type::Among(least, most) => up_to(least, most),
        }
    }

    /// True if it can stand in data: no list within a list.
    fn is_data(&self) -> bool {
        let is_element = |value: &Value<'_>| {
            let is_scalar = matches!(value, Value::Bool(_) | Value::Int(_) | Value::Text(_));
            is_scalar || matches!(value, Value::Other(_))
        };
        match self {
            Value::List(all) => all.iter().all(is_element),
            one => is_element(one),
        }
    }

    /// True if an argument can name it.
    const fn is_resource(&self) -> bool {
        matches!(
            self,
            Value::Resources(_)
                | Value::Path(_)
                | Value::Tree(_)
                | Value::Host(_)
                | Value::Address(_)
        )
    }
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

/// The source of a call's values.
pub trait Values {
    /// An attribute's value.
    fn value(&self, attribute: &Attribute) -> Value<'_>;
}

/// The text that a path is compared as: the name of its root, and what lies below it.
#[must_use]
pub fn path_text(path: &RootedPath) -> String {
    let mut text = String::from(path.root().name());
    if !path.below().is_empty() {
        text.push('/');
        text.push_str(path.below());
    }
    text
}

/// The host that a text stands for: a scheme before it, one `/` after it, upper case and one
/// final dot are nothing to it. `None` where it is no host.
#[must_use]
pub fn host_of(text: &str) -> Option<Host> {
    let text = text.split_once("://").map_or(text, |(_, rest)| rest);
    let text = text.strip_suffix('/').unwrap_or(text);
    let text = text.strip_suffix('.').unwrap_or(text);
    Host::new(&text.to_ascii_lowercase()).ok()
}
