//! Reads constants, and holds them against what an attribute can be.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::net::IpAddr;

use syscap_format::{AgentId, Cidr, EffectClass, ItemKind, ToolId, json};

use super::attribute::{Attribute, Type};
use super::condition::{Ask, Constant};
use super::error::{LoadError, LoadFault};
use super::place::Node;
use crate::{limits::TEXT_CONSTANT_BYTES_MAX, value::host_of};

/// The constant that is written there.
pub(super) fn read(node: &Node<'_, '_>) -> Result<Constant, LoadError> {
    match node.item.kind() {
        ItemKind::Text => {
            let text = node.text()?;
            if text.len() > TEXT_CONSTANT_BYTES_MAX {
                return Err(node.error(LoadFault::TextTooLong, text));
            }
            Ok(Constant::Text(Box::from(text)))
        }
        ItemKind::Bool => node.boolean().map(Constant::Bool),
        ItemKind::Uint | ItemKind::Negative => node
            .item
            .as_int()
            .map(Constant::Int)
            .ok_or_else(|| node.error(LoadFault::BadConstant, "")),
        _ => Err(node.error(LoadFault::BadConstant, &json::from_item(node.item))),
    }
}

/// The test of a binary operator.
pub(super) fn ask(
    op: &str,
    attribute: &Attribute,
    constant: Constant,
    node: &Node<'_, '_>,
) -> Result<Ask, LoadError> {
    match op {
        "eq" => {
            check(attribute, &constant, node)?;
            return Ok(Ask::Eq(constant));
        }
        "lt" | "le" | "gt" | "ge" => {
            let Constant::Int(bound) = constant else { return Err(node.wrong_type("an integer")) };
            let kind = attribute.kind();
            if !kind.is_open() && !kind.is_integer() {
                return Err(never(attribute, node, op));
            }
            return Ok(match op {
                "lt" => Ask::Lt(bound),
                "le" => Ask::Le(bound),
                "gt" => Ask::Gt(bound),
                _ => Ask::Ge(bound),
            });
        }
        _ => {}
    }
    let Constant::Text(text) = constant else { return Err(node.wrong_type("text")) };
    let fits = match attribute.kind() {
        Type::Fact | Type::Argument | Type::Field => true,
        Type::TokenId | Type::Tool | Type::EffectClass => matches!(op, "prefix" | "suffix"),
        Type::Agent => op == "within",
        Type::UpTo(_) | Type::Among(..) | Type::Bool => false,
    };
    if !fits {
        return Err(never(attribute, node, op));
    }
    match op {
        "prefix" => Ok(Ask::Prefix(text)),
        "suffix" => Ok(Ask::Suffix(text)),
        "within" => within(attribute, text, node),
        "domain" => match host_of(&text) {
            Some(host) => Ok(Ask::Domain(host)),
            None => Err(node.error(LoadFault::BadHost, &text)),
        },
        _ => match cidr(&text) {
            Some(block) => Ok(Ask::Cidr(block)),
            None => Err(node.error(LoadFault::BadCidr, &text)),
        },
    }
}

fn within(attribute: &Attribute, text: Box<str>, node: &Node<'_, '_>) -> Result<Ask, LoadError> {
    if attribute.kind() == Type::Agent && AgentId::new(&text).is_none() {
        return Err(bad_agent(node, &text));
    }
    if text.contains(['*', '?']) {
        let until = text.split('/').take_while(|component| !component.contains(['*', '?']));
        let above = until.collect::<Vec<_>>().join("/");
        let near = (!above.is_empty()).then_some(above);
        return Err(node.error(LoadFault::PathWildcard, &text).suggest(near));
    }
    let fine = !text.contains(['\\', '\0'])
        && text.split('/').all(|component| !matches!(component, "" | "." | ".."));
    if fine {
        return Ok(Ask::Within(text));
    }
    let trimmed = text.trim_matches('/');
    let near = (!trimmed.is_empty() && trimmed.len() < text.len()).then(|| String::from(trimmed));
    Err(node.error(LoadFault::BadPath, &text).suggest(near))
}

/// Checks that the attribute can ever equal the constant.
pub(super) fn check(
    attribute: &Attribute,
    constant: &Constant,
    node: &Node<'_, '_>,
) -> Result<(), LoadError> {
    match (attribute.kind(), constant) {
        (Type::Among(least, most), Constant::Int(value)) => {
            if (i128::from(least)..=i128::from(most)).contains(value) {
                return Ok(());
            }
            let text = alloc::format!("{value}");
            let valid = Some(alloc::format!("{least} to {most}"));
            Err(node.error(LoadFault::ConstantRange, &text).suggest(valid))
        }
        (Type::Tool, Constant::Text(text)) => tool(node, text).map(|_| ()),
        (Type::EffectClass, Constant::Text(text)) => class(node, text).map(|_| ()),
        (Type::Agent, Constant::Text(text)) => match AgentId::new(text) {
            Some(_) => Ok(()),
            None => Err(bad_agent(node, text)),
        },
        (Type::UpTo(_), Constant::Int(_))
        | (Type::Bool, Constant::Bool(_))
        | (Type::TokenId, Constant::Text(_))
        | (Type::Fact | Type::Argument | Type::Field, _) => Ok(()),
        _ => Err(never(attribute, node, &json::from_item(node.item))),
    }
}

fn never(attribute: &Attribute, node: &Node<'_, '_>, what: &str) -> LoadError {
    let wanted = match attribute.kind() {
        Type::UpTo(_) | Type::Among(..) => "an integer",
        Type::Bool => "true or false",
        Type::Agent => "an agent id, with eq, in or within",
        _ => "text",
    };
    node.error(LoadFault::ConstantType, what).suggest(Some(String::from(wanted)))
}

/// A tool id, or why it is none.
pub(super) fn tool(node: &Node<'_, '_>, text: &str) -> Result<ToolId, LoadError> {
    if let Some(id) = ToolId::new(text) {
        return Ok(id);
    }
    if text.contains(['*', '?']) {
        return Err(node.error(LoadFault::Wildcard, text));
    }
    let near = respelt(text, '_');
    let near = near.filter(|near| ToolId::new(near).is_some());
    Err(node.error(LoadFault::BadTool, text).suggest(near))
}

/// An effect class, or why it is none.
pub(super) fn class(node: &Node<'_, '_>, text: &str) -> Result<EffectClass, LoadError> {
    let found = EffectClass::ALL.iter().copied().find(|class| class.name() == text);
    found.ok_or_else(|| {
        let names: Vec<&str> = EffectClass::ALL.iter().map(|class| class.name()).collect();
        node.not_one_of(LoadFault::UnknownEffectClass, text, &names)
    })
}

pub(super) fn bad_agent(node: &Node<'_, '_>, text: &str) -> LoadError {
    let near = respelt(text, '-').filter(|near| AgentId::new(near).is_some());
    node.error(LoadFault::BadAgent, text).suggest(near)
}

/// The text in lower case, with `joint` for what ids can't have between words.
fn respelt(text: &str, joint: char) -> Option<String> {
    let other = if joint == '_' { '-' } else { '_' };
    let lower = text.trim().to_ascii_lowercase();
    let joined =
        if joint == '_' { lower.replace([' ', other], "_") } else { lower.replace(' ', "-") };
    (joined.len() <= AgentId::BYTES_MAX && joined != text).then_some(joined)
}

/// A block of addresses as it prints: `10.0.0.0/8`.
pub(crate) fn cidr(text: &str) -> Option<Cidr> {
    let (address, prefix) = text.split_once('/')?;
    let digits = !prefix.is_empty()
        && prefix.bytes().all(|b| b.is_ascii_digit())
        && (prefix == "0" || !prefix.starts_with('0'));
    let address: IpAddr = address.parse().ok()?;
    if digits { Cidr::new(address, prefix.parse().ok()?).ok() } else { None }
}
