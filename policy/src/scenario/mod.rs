//! Scenarios: the values of one call, written down.
//!
//! Examples, table tests, the witnesses of an analysis and the command line share one notation,
//! a map from the text of an attribute to its value, in JSON or CBOR:
//!
//! | written | means |
//! |---|---|
//! | text, an integer, `true`, `false`, `null` | the same |
//! | `{"path": "workspace/a.txt"}` | a path: the first component is its root |
//! | `{"host": "a.example"}`, `{"address": "10.0.0.1"}` | a host, an address |
//! | `{"type": "float"}`, or `bytes`, `map`, `empty_list` | some value of that type |
//! | `{"erased": true}` | a fact that was erased |
//! | `[..]` | a list of at least one of these but the last row |
//! | `{"resources": [..]}` | what an argument names: texts, integers, paths, hosts, addresses |
//!
//! A value that is not written is missing, except `risk`, which follows from the tool and its
//! class.

mod read;

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};
use core::net::IpAddr;

use syscap_format::json::{self, JsonError};
use syscap_format::{AgentId, EffectClass, Host, RootedPath, ToolId};

use crate::document::Attribute;
use crate::value::{Other, Value, Values};

/// A value that owns what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Given {
    /// It was erased. Facts and goals only.
    Erased,
    /// `false` or `true`.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// Text.
    Text(Box<str>),
    /// An agent.
    Agent(AgentId),
    /// A path.
    Path(RootedPath),
    /// A path and all below it.
    Tree(RootedPath),
    /// A host.
    Host(Host),
    /// An address.
    Address(IpAddr),
    /// Something that nothing can be compared with.
    Other(Other),
    /// The elements of a list, at least one, none of them a list.
    List(Vec<Given>),
    /// The resources that an argument names, at least one, none of them a list.
    Resources(Vec<Given>),
}

impl Given {
    /// Text.
    pub fn text(text: &str) -> Self {
        Self::Text(Box::from(text))
    }

    /// A path: its root's name, and what lies below it; `workspace` is some agent's. `None` where
    /// it is none.
    pub fn path(text: &str) -> Option<Self> {
        read::path(text).map(Self::Path)
    }

    /// A path and all below it, by a text such as [`path`](Self::path) reads.
    pub fn tree(text: &str) -> Option<Self> {
        read::path(text).map(Self::Tree)
    }

    /// A view of it.
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Erased => Value::Erased,
            Self::Bool(value) => Value::Bool(*value),
            Self::Int(value) => Value::Int(*value),
            Self::Text(text) => Value::Text(text),
            Self::Agent(agent) => Value::Agent(agent.as_str()),
            Self::Path(path) => Value::Path(path),
            Self::Tree(path) => Value::Tree(path),
            Self::Host(host) => Value::Host(host),
            Self::Address(address) => Value::Address(*address),
            Self::Other(other) => Value::Other(*other),
            Self::List(all) => Value::List(all.iter().map(Self::value).collect()),
            Self::Resources(all) => Value::Resources(all.iter().map(Self::value).collect()),
        }
    }

    const fn is_resource(&self) -> bool {
        let place =
            matches!(self, Self::Path(_) | Self::Tree(_) | Self::Host(_) | Self::Address(_));
        place || matches!(self, Self::Int(_) | Self::Text(_))
    }
}

impl From<&str> for Given {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<i128> for Given {
    fn from(value: i128) -> Self {
        Self::Int(value)
    }
}

/// The values of one call. A value that is not given is missing.
#[must_use]
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scenario(BTreeMap<Attribute, Given>);

impl Scenario {
    /// One in which everything is missing.
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// A call of a tool of that class by an agent.
    pub fn call(tool: &ToolId, class: EffectClass, agent: &AgentId) -> Self {
        Self::new()
            .with(Attribute::Tool, Given::text(tool.as_str()))
            .with(Attribute::EffectClass, Given::text(class.name()))
            .with(Attribute::Agent, Given::Agent(agent.clone()))
    }

    /// With a value set. It is not checked: see [`Scenario::set`].
    pub fn with(mut self, attribute: Attribute, value: Given) -> Self {
        self.set(attribute, value);
        self
    }

    /// Sets a value. It may be one that the attribute never has; a scenario that is read from
    /// its text is checked for that.
    pub fn set(&mut self, attribute: Attribute, value: Given) {
        self.0.insert(attribute, value);
    }

    /// Makes a value missing.
    pub fn remove(&mut self, attribute: &Attribute) {
        self.0.remove(attribute);
    }

    /// The value that is given.
    pub fn get(&self, attribute: &Attribute) -> Option<&Given> {
        self.0.get(attribute)
    }

    /// All that is given, in the order of attributes.
    pub fn iter(&self) -> impl Iterator<Item = (&Attribute, &Given)> {
        self.0.iter()
    }

    /// Reads a scenario's JSON text.
    ///
    /// # Errors The first fault. For a text that is not JSON the place is `byte N`.
    pub fn from_json(text: &[u8]) -> Result<Self, ScenarioError> {
        let item = json::to_cbor(text).map_err(|JsonError { fault, at }| ScenarioError {
            fault: ScenarioFault::Json,
            key: Box::from(alloc::format!("{fault}")),
            place: Box::from(alloc::format!("byte {at}")),
        })?;
        Self::from_item(item.item())
    }
}

impl Values for Scenario {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        self.0.get(attribute).map_or(Value::Missing, Given::value)
    }
}

/// One kind of mistake in a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioFault {
    /// The text is not JSON.
    #[error("this is not JSON")]
    Json,
    /// It is not a map with text keys.
    #[error("a scenario is a map from attributes to values")]
    Map,
    /// A key that is no attribute.
    #[error("this is no attribute")]
    Attribute,
    /// A value that is not written like any.
    #[error("this is no value")]
    Value,
    /// A path without a valid root and valid components.
    #[error("this is no path below a root")]
    Path,
    /// A text that is no host.
    #[error("this is no host")]
    Host,
    /// A text that is no address.
    #[error("this is no address")]
    Address,
    /// A list within a list, or a list of nothing: that is written `{"type": "empty_list"}`.
    #[error("a list holds at least one value, and no list")]
    List,
    /// A value that the attribute never has.
    #[error("this attribute never has such a value")]
    Never,
}

/// A mistake in a scenario, and where it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {fault}: {key}")]
pub struct ScenarioError {
    /// The fault.
    pub fault: ScenarioFault,
    /// The text there; if it is no text, its type.
    pub key: Box<str>,
    /// Its place: the attribute, and within it `[2]` or `.resources[2]`. Empty for the whole.
    pub place: Box<str>,
}

#[cfg(test)]
mod tests;
