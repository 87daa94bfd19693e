//! Reading a scenario.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use syscap_format::{AgentId, Host, Item, ItemKind, Root, RootedPath};

use super::{Given, Scenario, ScenarioError, ScenarioFault};
use crate::document::{Attribute, Type};
use crate::value::Other;

/// The owner of the workspace in a scenario's paths: no test reads it.
const OWNER: &str = "some-agent";

impl Scenario {
    /// Reads a scenario.
    ///
    /// # Errors
    /// The first fault in the order of the map's keys.
    pub fn from_item(item: Item<'_>) -> Result<Self, ScenarioError> {
        if item.kind() != ItemKind::Map || item.entries().count() != item.count() {
            return Err(fault(ScenarioFault::Map, &shown(item), ""));
        }
        let mut scenario = Self::new();
        for (key, item) in item.entries() {
            let Some(attribute) = Attribute::parse(key) else {
                return Err(fault(ScenarioFault::Attribute, key, key));
            };
            let value = read(&attribute, item, key)?;
            scenario.set(attribute, value);
        }
        Ok(scenario)
    }
}

/// The value of an attribute, one that it can have.
fn read(attribute: &Attribute, item: Item<'_>, place: &str) -> Result<Given, ScenarioError> {
    let value = value(item, place)?;
    let kind = attribute.kind();
    let value = match (kind, value) {
        (Type::Agent, Given::Text(text)) => AgentId::new(&text).map(Given::Agent),
        (_, value) => Some(value),
    };
    value
        .filter(|value| value.value().can_be(kind))
        .ok_or_else(|| fault(ScenarioFault::Never, &shown(item), place))
}

fn value(item: Item<'_>, place: &str) -> Result<Given, ScenarioError> {
    match item.kind() {
        ItemKind::Array => elements(item, place).map(Given::List),
        ItemKind::Map => typed(item, place),
        _ => scalar(item).ok_or_else(|| fault(ScenarioFault::Value, &shown(item), place)),
    }
}

fn scalar(item: Item<'_>) -> Option<Given> {
    match item.kind() {
        ItemKind::Text => item.as_text().map(Given::text),
        ItemKind::Uint | ItemKind::Negative => item.as_int().map(Given::Int),
        ItemKind::Bool => item.as_bool().map(Given::Bool),
        ItemKind::Null => Some(Given::Other(Other::Null)),
        _ => None,
    }
}

/// The elements of a list: anything but lists and what was erased.
fn elements(item: Item<'_>, place: &str) -> Result<Vec<Given>, ScenarioError> {
    let mut elements = Vec::new();
    for (n, element) in item.elements().enumerate() {
        let place = format!("{place}[{n}]");
        match value(element, &place)? {
            Given::List(_) | Given::Resources(_) => {
                return Err(fault(ScenarioFault::List, "list", &place));
            }
            Given::Erased => return Err(fault(ScenarioFault::Value, "erased", &place)),
            element => elements.push(element),
        }
    }
    if elements.is_empty() {
        return Err(fault(ScenarioFault::List, &shown(item), place));
    }
    Ok(elements)
}

/// A map with one key that says what its value is.
fn typed(item: Item<'_>, place: &str) -> Result<Given, ScenarioError> {
    let wrong = |what| fault(what, &shown(item), place);
    let mut entries = item.entries();
    let (Some((key, inner)), None) = (entries.next(), entries.next()) else {
        return Err(wrong(ScenarioFault::Value));
    };
    let text = inner.as_text();
    let said = |what| fault(what, text.unwrap_or(key), place);
    match (key, text) {
        ("path", Some(text)) => path(text).map(Given::Path).ok_or(said(ScenarioFault::Path)),
        ("tree", Some(text)) => path(text).map(Given::Tree).ok_or(said(ScenarioFault::Path)),
        ("host", Some(text)) => {
            Host::new(text).map(Given::Host).map_err(|_| said(ScenarioFault::Host))
        }
        ("address", Some(text)) => {
            text.parse().map(Given::Address).map_err(|_| said(ScenarioFault::Address))
        }
        ("type", Some(text)) => {
            let found = Other::ALL.into_iter().find(|other| other.type_name() == Some(text));
            found.map(Given::Other).ok_or(said(ScenarioFault::Value))
        }
        ("erased", None) if inner.as_bool() == Some(true) => Ok(Given::Erased),
        ("resources", None) if inner.kind() == ItemKind::Array => {
            let place = format!("{place}.resources");
            let all = elements(inner, &place)?;
            match all.iter().position(|one| !one.is_resource()) {
                Some(n) => Err(fault(ScenarioFault::Value, "", &format!("{place}[{n}]"))),
                None => Ok(Given::Resources(all)),
            }
        }
        _ => Err(said(ScenarioFault::Value)),
    }
}

/// The path of a text: its root's name, and components below.
pub(super) fn path(text: &str) -> Option<RootedPath> {
    let (root, below) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let root = if root == Root::WORKSPACE {
        Root::Workspace(AgentId::new(OWNER)?)
    } else {
        Root::named(root).ok()?
    };
    RootedPath::new(root, below.into_iter().flat_map(|below| below.split('/'))).ok()
}

fn fault(fault: ScenarioFault, key: &str, place: &str) -> ScenarioError {
    ScenarioError { fault, key: Box::from(key), place: Box::from(place) }
}

fn shown(item: Item<'_>) -> String {
    match item.kind() {
        ItemKind::Text => String::from(item.as_text().unwrap_or_default()),
        ItemKind::Uint | ItemKind::Negative => format!("{}", item.as_int().unwrap_or_default()),
        ItemKind::Map => item.entries().next().map_or("{}", |(key, _)| key).into(),
        ItemKind::Array => "list".into(),
        ItemKind::Bytes => "bytes".into(),
        ItemKind::Bool => "boolean".into(),
        ItemKind::Null => "null".into(),
        ItemKind::Float => "float".into(),
    }
}
