//! Parameters: constants by name, and the lists that stand for constraints of their own.

use core::cell::Cell;

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use syscap_format::{AgentId, ConstraintId, ItemKind, ToolId};

use syscap_kernel::Level;

use super::attribute::Attribute;
use super::condition::{Ask, Condition, Constant, Test};
use super::constraint::{Constraint, Effect, OnFail, Subject};
use super::error::{LoadError, LoadFault};
use super::place::Node;
use super::{constant, level, suggestion};
use crate::limits::{CONSTANTS_ALL_MAX, CONSTANTS_MAX, PARAM_NAME_BYTES_MAX, PARAMS_MAX, RISK_MAX};

/// The prefix of the ids of constraints that parameters stand for.
pub(super) const RESERVED: &str = "params.";

/// The names that have a meaning of their own.
const MEANING: [&str; 5] = ["tools", "agents", "risk", "elevated", "client_means"];

/// The value of a parameter's name.
enum Value {
    One(Constant),
    List(Vec<Constant>),
}

/// The parameters of a document.
#[derive(Default)]
pub(super) struct Params<'a> {
    /// The values of names, and whether a constraint has read them.
    named: BTreeMap<&'a str, (Value, Cell<bool>)>,
    /// How many constants lists have been written out as.
    expanded: Cell<usize>,
    tools: Option<Vec<ToolId>>,
    agents: Option<Vec<(AgentId, Vec<ToolId>)>>,
    pub(super) risk: BTreeMap<ToolId, u8>,
    pub(super) elevated: Option<Level>,
    pub(super) client: Option<Level>,
    /// The number of open tests so far, if parameters are left open.
    pub(super) open: Option<Cell<usize>>,
}

impl<'a> Params<'a> {
    pub(super) fn read(node: &Node<'a, '_>) -> Result<Self, LoadError> {
        let mut params = Self::default();
        let entries = node.entries()?;
        if entries.len() > PARAMS_MAX {
            return Err(node.error(LoadFault::TooManyParams, &format!("{}", entries.len())));
        }
        for (name, item) in entries {
            let value = Node { item, place: node.place.key(name) };
            match name {
                "tools" => params.tools = Some(tools(&value)?),
                "agents" => params.agents = Some(agents(&value)?),
                "risk" => params.risk = risk(&value)?,
                "elevated" => params.elevated = Some(level::read(&value)?),
                "client_means" => params.client = Some(level::by_client(&value)?),
                _ if is_name(name) => {
                    params.named.insert(name, (named(&value)?, Cell::new(false)));
                }
                _ => return Err(value.error(LoadFault::ParamName, name)),
            }
        }
        Ok(params)
    }

    /// The one constant that a parameter stands for.
    pub(super) fn one(&self, node: &Node<'_, '_>, name: &str) -> Result<Constant, LoadError> {
        match self.find(node, name)? {
            Value::One(constant) => Ok(constant.clone()),
            Value::List(_) => Err(node.error(LoadFault::ListParam, name)),
        }
    }

    /// The constants that a parameter stands for.
    pub(super) fn list(&self, node: &Node<'_, '_>, name: &str) -> Result<Vec<Constant>, LoadError> {
        let (count, found) = match self.find(node, name)? {
            Value::One(constant) => (1, core::slice::from_ref(constant)),
            Value::List(constants) => (constants.len(), &constants[..]),
        };
        let all = self.expanded.get().saturating_add(count);
        self.expanded.set(all);
        if all > CONSTANTS_ALL_MAX {
            return Err(node.error(LoadFault::TooManyConstants, name));
        }
        Ok(found.to_vec())
    }

    /// Notes that a constraint asks for a parameter.
    pub(super) fn asks_for(&self, node: &Node<'_, '_>, name: &str) -> Result<(), LoadError> {
        self.find(node, name).map(|_| ())
    }

    fn find(&self, node: &Node<'_, '_>, name: &str) -> Result<&Value, LoadError> {
        let found = self.named.get(name);
        if let Some((_, asked)) = found {
            asked.set(true);
        }
        found.map(|(value, _)| value).ok_or_else(|| {
            let near = suggestion::near(name, self.named.keys().copied());
            node.error(LoadFault::UnknownParam, name).suggest(near.map(String::from))
        })
    }

    /// Every parameter is one that a constraint asks for: a misspelt list of tools must not be
    /// taken for a constant that nobody needs.
    ///
    /// # Errors
    /// [`LoadFault::UnusedParam`], for the first one.
    pub(super) fn all_used(&self, place: &Node<'_, '_>) -> Result<(), LoadError> {
        match self.named.iter().find(|(_, (_, asked))| !asked.get()) {
            None => Ok(()),
            Some((name, _)) => {
                let near = suggestion::near(name, MEANING).map(String::from);
                Err(place.error(LoadFault::UnusedParam, name).suggest(near))
            }
        }
    }

    /// The constraints that `tools` and `agents` stand for.
    pub(super) fn constraints(&self) -> Vec<Constraint> {
        let mut made = Vec::new();
        if let Some(tools) = &self.tools {
            let when = if tools.is_empty() { always() } else { not_one_of(tools) };
            made.extend(block("tools", when, "This tool is not on the policy's list of tools."));
        }
        if let Some(agents) = &self.agents {
            let known = agents.iter().map(|(agent, _)| below(agent)).collect();
            let when = Condition::Not(Box::new(Condition::Any(known)));
            made.extend(block("agents", when, "This agent is not on the policy's list of agents."));
            for (agent, tools) in agents {
                let when = if tools.is_empty() {
                    below(agent)
                } else {
                    Condition::All(Vec::from([below(agent), not_one_of(tools)]))
                };
                let name = format!("agents.{agent}");
                made.extend(block(
                    &name,
                    when,
                    "This tool is not on the policy's list for this agent.",
                ));
            }
        }
        made
    }

    /// Every tool that a parameter names.
    pub(super) fn tools(&self) -> BTreeSet<ToolId> {
        let of_agents = self.agents.iter().flatten().flat_map(|(_, tools)| tools);
        let named = self.tools.iter().flatten().chain(of_agents).chain(self.risk.keys());
        named.cloned().collect()
    }
}

/// A deny of every call of which `when` holds. The name is made of valid ids, so it is one.
fn block(name: &str, when: Condition, reason: &str) -> Option<Constraint> {
    Some(Constraint {
        id: ConstraintId::new(&format!("{RESERVED}{name}"))?,
        effect: Effect::Deny,
        subject: Subject::All,
        when,
        on_fail: OnFail::Block,
        reason: Box::from(reason),
        obligations: Vec::new(),
    })
}

const fn always() -> Condition {
    Condition::All(Vec::new())
}

fn below(agent: &AgentId) -> Condition {
    let ask = Ask::Within(Box::from(agent.as_str()));
    Condition::Test(Test { attribute: Attribute::Agent, ask })
}

fn not_one_of(tools: &[ToolId]) -> Condition {
    let constants = tools.iter().map(|tool| Constant::Text(Box::from(tool.as_str())));
    let ask = Ask::In(constants.collect());
    Condition::Not(Box::new(Condition::Test(Test { attribute: Attribute::Tool, ask })))
}

fn is_name(name: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_';
    name.len() <= PARAM_NAME_BYTES_MAX
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(allowed)
}

fn named(node: &Node<'_, '_>) -> Result<Value, LoadError> {
    if node.item.kind() != ItemKind::Array {
        return constant::read(node).map(Value::One);
    }
    let items = node.list(CONSTANTS_MAX, LoadFault::TooManyConstants)?;
    let each = items.iter().enumerate();
    let constants = each.map(|(n, item)| constant::read(&node.at(n, *item)));
    constants.collect::<Result<_, LoadError>>().map(Value::List)
}

fn tools(node: &Node<'_, '_>) -> Result<Vec<ToolId>, LoadError> {
    let items = node.list(CONSTANTS_MAX, LoadFault::TooManyConstants)?;
    let each = items.iter().enumerate();
    each.map(|(n, item)| {
        let element = node.at(n, *item);
        constant::tool(&element, element.text()?)
    })
    .collect()
}

fn agents(node: &Node<'_, '_>) -> Result<Vec<(AgentId, Vec<ToolId>)>, LoadError> {
    let entries = node.entries()?;
    if entries.len() > CONSTANTS_MAX {
        return Err(node.error(LoadFault::TooManyConstants, &format!("{}", entries.len())));
    }
    let each = entries.into_iter();
    each.map(|(name, item)| {
        let value = Node { item, place: node.place.key(name) };
        let agent = AgentId::new(name).ok_or_else(|| constant::bad_agent(&value, name))?;
        Ok((agent, tools(&value)?))
    })
    .collect()
}

fn risk(node: &Node<'_, '_>) -> Result<BTreeMap<ToolId, u8>, LoadError> {
    let each = node.entries()?.into_iter();
    each.map(|(name, item)| {
        let value = Node { item, place: node.place.key(name) };
        let tool = constant::tool(&value, name)?;
        let points = u8::try_from(value.uint()?).ok().filter(|points| *points <= RISK_MAX);
        let points = points.ok_or_else(|| {
            let found = item.as_uint().unwrap_or_default();
            value.error(LoadFault::Risk, &format!("{found}"))
        })?;
        Ok((tool, points))
    })
    .collect()
}
