//! Reads conditions.

use alloc::{boxed::Box, format, string::String, vec::Vec};

use syscap_format::{Item, ItemKind, ParamType};

use super::attribute::{Attribute, AttributeError};
use super::condition::{Ask, Condition, Constant, Test};
use super::error::{LoadError, LoadFault};
use super::params::Params;
use super::place::Node;
use super::{constant, suggestion};
use crate::limits::{CONSTANTS_MAX, NODES_MAX};

/// The operators, as they are listed to people.
const OPS: [&str; 17] = [
    "all", "any", "not", "eq", "in", "exists", "missing", "schema", "lt", "le", "gt", "ge",
    "prefix", "suffix", "within", "domain", "cidr",
];
/// Operators of a later version.
const LATER: [&str; 2] = ["label_le", "source"];

/// The names of the operators in other languages. A near miss by letters could mean the opposite:
/// `and` is nearer to `any` than to `all`.
const ELSEWHERE: [(&str, &str); 26] = [
    ("and", "all"),
    ("&&", "all"),
    ("or", "any"),
    ("||", "any"),
    ("!", "not"),
    ("none", "not around any"),
    ("==", "eq"),
    ("=", "eq"),
    ("is", "eq"),
    ("equals", "eq"),
    ("ne", "not around eq"),
    ("neq", "not around eq"),
    ("!=", "not around eq"),
    ("not_in", "not around in"),
    ("lte", "le"),
    ("gte", "ge"),
    ("<", "lt"),
    ("<=", "le"),
    (">", "gt"),
    (">=", "ge"),
    ("starts_with", "prefix, or within for paths"),
    ("startswith", "prefix, or within for paths"),
    ("ends_with", "suffix, or domain for hosts"),
    ("endswith", "suffix, or domain for hosts"),
    ("like", "within, domain, prefix or suffix"),
    ("glob", "within, domain, prefix or suffix"),
];

/// The operator that a misspelt word may mean.
fn meant(op: &str) -> String {
    let lower = op.to_ascii_lowercase();
    let elsewhere = ELSEWHERE.iter().find(|(word, _)| *word == lower).map(|(_, ours)| *ours);
    let same = || OPS.iter().copied().find(|ours| *ours == lower);
    let near = || suggestion::near(op, OPS);
    let found = elsewhere.or_else(same).or_else(near);
    found.map_or_else(|| OPS.join(", "), String::from)
}

/// Reads one condition.
pub(super) struct Reader<'a> {
    pub(super) params: &'a Params<'a>,
    /// How many more nodes it may have.
    nodes_left: usize,
}

impl<'a> Reader<'a> {
    pub(super) const fn new(params: &'a Params<'a>) -> Self {
        Self { params, nodes_left: NODES_MAX }
    }

    pub(super) fn condition(&mut self, node: &Node<'_, '_>) -> Result<Condition, LoadError> {
        let too_many = || node.error(LoadFault::TooManyNodes, &format!("{NODES_MAX}"));
        self.nodes_left = self.nodes_left.checked_sub(1).ok_or_else(too_many)?;
        let [op, args] = node.keys(["op", "args"])?;
        let op_node = node.below("op", node.need("op", op)?);
        let args_node = node.below("args", node.need("args", args)?);
        let op = op_node.text()?;
        if LATER.contains(&op) {
            return Err(op_node.error(LoadFault::NotYet, op));
        }
        if !OPS.contains(&op) {
            return Err(op_node.error(LoadFault::UnknownOp, op).suggest(Some(meant(op))));
        }
        let most = usize::MAX;
        let args = args_node.list(most, LoadFault::TooManyNodes)?;
        match op {
            "all" => self.conditions(&args_node, &args).map(Condition::All),
            "any" => self.conditions(&args_node, &args).map(Condition::Any),
            "not" => {
                let [inner] = exactly(&args_node, op, &args, "one condition")?;
                let inner = self.condition(&args_node.at(0, inner))?;
                Ok(Condition::Not(Box::new(inner)))
            }
            _ => Ok(match self.test(op, &args_node, &args)? {
                // Nothing is one of an empty parameter.
                Test { ask: Ask::In(none), .. } if none.is_empty() => Condition::Any(Vec::new()),
                test => Condition::Test(test),
            }),
        }
    }

    fn conditions(
        &mut self,
        node: &Node<'_, '_>,
        args: &[Item<'_>],
    ) -> Result<Vec<Condition>, LoadError> {
        let each = args.iter().enumerate();
        each.map(|(n, item)| self.condition(&Node { item: *item, place: node.place.index(n) }))
            .collect()
    }

    fn test(&self, op: &str, node: &Node<'_, '_>, args: &[Item<'_>]) -> Result<Test, LoadError> {
        let alone = matches!(op, "exists" | "missing");
        if alone {
            let [first] = exactly(node, op, args, "one attribute")?;
            let attribute = attribute(&node.at(0, first))?;
            let ask = if op == "exists" { Ask::Exists } else { Ask::Missing };
            return Ok(Test { attribute, ask });
        }
        let [first, second] = exactly(node, op, args, "an attribute and what it is held against")?;
        let attribute = attribute(&node.at(0, first))?;
        let value = Node { item: second, place: node.place.index(1) };
        if let Some(open) = self.opened(&attribute, &value)? {
            return Ok(open);
        }
        let ask = match op {
            "schema" => Ask::Schema(type_name(&value)?),
            "in" => Ask::In(self.list(&value, &attribute)?),
            _ => {
                let constant = self.constant(&value)?;
                constant::ask(op, &attribute, constant, &value)?
            }
        };
        Ok(Test { attribute, ask })
    }

    /// An open test in place of one that a parameter decides, of an argument that no other test
    /// asks about; for open parameters. `params.risk` decides the points of any tool.
    fn opened(
        &self,
        attribute: &Attribute,
        value: &Node<'_, '_>,
    ) -> Result<Option<Test>, LoadError> {
        let Some(count) = &self.params.open else { return Ok(None) };
        let name = param_name(value)?;
        if name.is_none() && *attribute != Attribute::Risk {
            return Ok(None);
        }
        if let Some(name) = name {
            self.params.asks_for(value, name)?;
        }
        let number = count.get();
        count.set(number.saturating_add(1));
        let argument = Attribute::from_text(&format!("args.open_parameter_{number}"));
        let test = |attribute| Test { attribute, ask: Ask::Exists };
        Ok(argument.ok().map(test))
    }

    fn list(&self, node: &Node<'_, '_>, attribute: &Attribute) -> Result<Vec<Constant>, LoadError> {
        let constants = match param_name(node)? {
            // A list that is kept elsewhere may have run empty: then nothing is one of it.
            Some(name) => match self.params.list(node, name)? {
                none if none.is_empty() => return Ok(none),
                constants => constants,
            },
            None => {
                let items = node.list(CONSTANTS_MAX, LoadFault::TooManyConstants)?;
                let each = items.iter().enumerate();
                each.map(|(n, item)| {
                    let element = node.at(n, *item);
                    let constant = self.constant(&element)?;
                    constant::check(attribute, &constant, &element)?;
                    Ok(constant)
                })
                .collect::<Result<Vec<_>, LoadError>>()?
            }
        };
        if constants.is_empty() {
            return Err(node.error(LoadFault::EmptyIn, ""));
        }
        constants.iter().try_for_each(|constant| constant::check(attribute, constant, node))?;
        Ok(constants)
    }

    /// One constant, written or by the name of a parameter.
    fn constant(&self, node: &Node<'_, '_>) -> Result<Constant, LoadError> {
        match param_name(node)? {
            Some(name) => self.params.one(node, name),
            None => constant::read(node),
        }
    }
}

/// The name of a parameter, where the item refers to one.
fn param_name<'a>(node: &Node<'a, '_>) -> Result<Option<&'a str>, LoadError> {
    if node.item.kind() != ItemKind::Map {
        return Ok(None);
    }
    let [name] = node.keys(["param"])?;
    let name = node.need("param", name)?;
    node.below("param", name).text().map(Some)
}

fn exactly<'a, const N: usize>(
    node: &Node<'_, '_>,
    op: &str,
    args: &[Item<'a>],
    wanted: &str,
) -> Result<[Item<'a>; N], LoadError> {
    let wrong = || node.error(LoadFault::Arity, op).suggest(Some(String::from(wanted)));
    <[Item<'a>; N]>::try_from(args).map_err(|_| wrong())
}

/// True if a value alone shows that it has that type. A text's type is known from a manifest only.
const fn is_told(kind: ParamType) -> bool {
    !matches!(kind, ParamType::Any | ParamType::Code | ParamType::Argv)
}

fn type_name(node: &Node<'_, '_>) -> Result<ParamType, LoadError> {
    let text = node.text()?;
    let known = || ParamType::ALL.iter().copied().filter(|kind| is_told(*kind));
    known().find(|kind| kind.name() == text).ok_or_else(|| {
        let names: Vec<&str> = known().map(ParamType::name).collect();
        node.not_one_of(LoadFault::UnknownType, text, &names)
    })
}

fn attribute(node: &Node<'_, '_>) -> Result<Attribute, LoadError> {
    let text = node.text()?;
    Attribute::from_text(text).map_err(|why| {
        let fault = match why {
            AttributeError::Unknown => LoadFault::UnknownAttribute,
            AttributeError::OfPolicy => LoadFault::OfPolicy,
            AttributeError::NotYet => LoadFault::NotYet,
            AttributeError::Name => LoadFault::AttributeName,
            AttributeError::Fields => LoadFault::AttributeFields,
        };
        let error = node.error(fault, text);
        if why == AttributeError::Unknown { error.suggest(Attribute::near(text)) } else { error }
    })
}
