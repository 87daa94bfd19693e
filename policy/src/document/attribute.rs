//! Attributes: what a condition may ask about.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;

use syscap_format::{budget::Dimension, id::FactKey};

use super::suggestion;
use crate::limits::{FIELDS_MAX, TEXT_CONSTANT_BYTES_MAX};

/// The kinds of attributes, for people.
const FORMS: &str = "fact.*, goal.*, args.*, call.*, token.*, budget.*, now.*, risk";

/// One thing about a call, its token, its agent's state or the time.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Attribute {
    /// `fact.NAME..` or `goal.NAME..`: a fact of the head snapshot, and fields within it.
    Fact(FactKey, Vec<Box<str>>),
    /// `args.NAME..`: an argument, and fields within it. One that names resources stands for
    /// them and not for its text.
    Argument(Box<str>, Vec<Box<str>>),
    /// `call.tool`: the tool's id.
    Tool,
    /// `call.effect`: the name of its effect class.
    EffectClass,
    /// `call.agent`: the calling agent.
    Agent,
    /// `call.args_bytes`: size of the resolved arguments in canonical bytes.
    ArgumentBytes,
    /// `call.hold.DIMENSION`: what the call would set aside.
    Hold(Dimension),
    /// `token.id`: 64 hexadecimal digits.
    TokenId,
    /// `token.depth`: how many tokens it was derived through.
    TokenDepth,
    /// `token.read_only`: whether it is for reading only.
    TokenReadOnly,
    /// `token.left_ms`: milliseconds until it expires.
    TokenLeftMs,
    /// `budget.DIMENSION`: what is left, the tightest of the token's chain.
    Budget(Dimension),
    /// `now.ms`: kernel time in milliseconds since 1970.
    NowMs,
    /// `now.hour`: hour of the day in UTC, 0 to 23.
    NowHour,
    /// `now.weekday`: day of the week in UTC, 1 for Monday to 7.
    NowWeekday,
    /// `risk`: points from 0 to 100, by effect class, raised by `params.risk`.
    Risk,
}

/// Why a text names no attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum AttributeError {
    /// There is no attribute of that name.
    #[error("no attribute has this name")]
    Unknown,
    /// `constraint.*` and `policy.*` are the policy itself.
    #[error("a policy can't ask about itself")]
    OfPolicy,
    /// `history.*` and `label.*` come with a later version.
    #[error("this attribute is not there yet")]
    NotYet,
    /// A fact, goal, argument or field whose name has not the form that it must have.
    #[error("a name in this attribute has not the right form")]
    Name,
    /// More than [`FIELDS_MAX`](crate::limits::FIELDS_MAX) fields.
    #[error("this attribute has too many fields")]
    Fields,
}

impl Attribute {
    /// Attributes without a name of their own, in the order in which they are listed to people.
    pub const CLOSED: [(&str, Self); 12] = [
        ("call.tool", Self::Tool),
        ("call.effect", Self::EffectClass),
        ("call.agent", Self::Agent),
        ("call.args_bytes", Self::ArgumentBytes),
        ("token.id", Self::TokenId),
        ("token.depth", Self::TokenDepth),
        ("token.read_only", Self::TokenReadOnly),
        ("token.left_ms", Self::TokenLeftMs),
        ("now.ms", Self::NowMs),
        ("now.hour", Self::NowHour),
        ("now.weekday", Self::NowWeekday),
        ("risk", Self::Risk),
    ];

    /// The attribute of that text; `None` where there is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_text(text).ok()
    }

    /// The attribute of that text: the one text that [`Display`](fmt::Display) gives it.
    ///
    /// # Errors
    /// Why there is none.
    pub fn from_text(text: &str) -> Result<Self, AttributeError> {
        if let Some((_, closed)) = Self::CLOSED.iter().find(|(name, _)| *name == text) {
            return Ok(closed.clone());
        }
        let dimension = |name| Dimension::from_name(name).ok_or(AttributeError::Unknown);
        if let Some(name) = text.strip_prefix("call.hold.") {
            return dimension(name).map(Self::Hold);
        }
        match text.split_once('.') {
            Some(("budget", name)) => dimension(name).map(Self::Budget),
            Some(("args", path)) => {
                let (name, fields) = path_of(path)?;
                Ok(Self::Argument(name, fields))
            }
            Some((namespace @ ("fact" | "goal"), path)) => {
                let (name, fields) = path_of(path)?;
                let mut key = String::from(namespace);
                key.push('.');
                key.push_str(&name);
                Ok(Self::Fact(FactKey::new(&key).ok_or(AttributeError::Name)?, fields))
            }
            Some(("constraint" | "policy", _)) => Err(AttributeError::OfPolicy),
            Some(("history" | "label", _)) => Err(AttributeError::NotYet),
            _ => Err(AttributeError::Unknown),
        }
    }

    /// What somebody may have meant by text that names no attribute.
    pub(super) fn near(text: &str) -> Option<String> {
        let closed = || Self::CLOSED.iter().map(|(name, _)| *name);
        let counted = |start: &str, name: &str| {
            let names = Dimension::ALL.into_iter().map(Dimension::name);
            suggestion::near(name, names).map(|name| alloc::format!("{start}{name}"))
        };
        if let Some(name) = text.strip_prefix("call.hold.") {
            return counted("call.hold.", name);
        }
        if let Some(found) = suggestion::near(text, closed()) {
            return Some(String::from(found));
        }
        let Some((start, rest)) = text.split_once('.') else {
            return Some(String::from(FORMS));
        };
        if start == "budget" {
            return counted("budget.", rest);
        }
        let open = suggestion::near(start, ["fact", "goal", "args", "budget", "call", "token"]);
        let fixed = open.map(|start| alloc::format!("{start}.{rest}"));
        match fixed.filter(|fixed| Self::parse(fixed).is_some()) {
            Some(fixed) => Some(fixed),
            None => {
                let below = |name: &&str| name.split_once('.').is_some_and(|(s, _)| s == start);
                let all = closed().filter(below).collect::<Vec<_>>().join(", ");
                Some(if all.is_empty() { String::from(FORMS) } else { all })
            }
        }
    }

    /// The argument that it is, or lies in.
    #[must_use]
    pub fn argument(&self) -> Option<&str> {
        match self {
            Self::Argument(name, _) => Some(name),
            _ => None,
        }
    }
}

/// A name and the fields below it.
fn path_of(path: &str) -> Result<(Box<str>, Vec<Box<str>>), AttributeError> {
    let mut parts = path.split('.');
    let mut part = || {
        let name = parts.next()?;
        let fine = !name.is_empty()
            && name.len() <= TEXT_CONSTANT_BYTES_MAX
            && !name.chars().any(char::is_control);
        Some(if fine { Ok(Box::from(name)) } else { Err(AttributeError::Name) })
    };
    let name = part().unwrap_or(Err(AttributeError::Name))?;
    let mut fields = Vec::new();
    while let Some(field) = part() {
        if fields.len() >= FIELDS_MAX {
            return Err(AttributeError::Fields);
        }
        fields.push(field?);
    }
    Ok((name, fields))
}

impl fmt::Display for Attribute {
    /// As it is written in a document.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = match self {
            Self::Fact(key, fields) => {
                f.write_str(key.as_str())?;
                fields
            }
            Self::Argument(name, fields) => {
                write!(f, "args.{name}")?;
                fields
            }
            Self::Hold(dimension) => return write!(f, "call.hold.{}", dimension.name()),
            Self::Budget(dimension) => return write!(f, "budget.{}", dimension.name()),
            closed => {
                let named = Self::CLOSED.iter().find(|(_, attribute)| attribute == closed);
                return f.write_str(named.map_or("", |(name, _)| name));
            }
        };
        fields.iter().try_for_each(|field| write!(f, ".{field}"))
    }
}
