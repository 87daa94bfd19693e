//! Attributes: what a condition may ask about.

use alloc::{boxed::Box, string::String, vec::Vec};
use core::fmt;

use syscap_format::{Dimension, FactKey};
use syscap_kernel::Past;

use super::suggestion;
use crate::limits::{FIELDS_MAX, TEXT_CONSTANT_BYTES_MAX};

/// The kinds of attributes, for people.
const FORMS: &str = "fact.*, goal.*, args.*, call.*, token.*, budget.*, history.*, now.*, risk";

/// Writes the table of attributes: the type, and a [`Row`] for each. A row is all that an attribute
/// is, beside what it is read from ([`Seen`](crate::Seen)) and what `docs/policy.md` says of it.
macro_rules! attributes {
    ($(
        $(#[$doc:meta])*
        $variant:ident $(($($part:ty),+))? = $name:literal, $kind:expr, $varies:ident;
    )+) => {
        /// One thing about a call, its token, its agent's state or the time.
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Attribute {
            $( $(#[$doc])* $variant $(($($part),+))?, )+
        }

        impl Attribute {
            /// All of them, in the order in which they are listed to people.
            pub const TABLE: &[Row] = &[$( Row {
                name: $name,
                attribute: attributes!(@alone $variant $(($($part),+))?),
                kind: $kind,
                varies: Varies::$varies,
            }, )+];

            /// Its type.
            #[must_use]
            pub const fn kind(&self) -> Type {
                match self {
                    Self::Argument(_, fields) if !fields.is_empty() => Type::Field,
                    $( Self::$variant { .. } => $kind, )+
                }
            }

            /// The thing that it varies with.
            #[must_use]
            pub const fn varies(&self) -> Varies {
                match self {
                    $( Self::$variant { .. } => Varies::$varies, )+
                }
            }

            /// Its row's name.
            const fn name(&self) -> &'static str {
                match self {
                    $( Self::$variant { .. } => $name, )+
                }
            }
        }
    };
    (@alone $variant:ident) => { Some(Self::$variant) };
    (@alone $variant:ident ($($part:ty),+)) => { None };
}

attributes! {
    /// `fact.NAME..` or `goal.NAME..`: a fact of the head snapshot, and fields within it.
    Fact(FactKey, Vec<Box<str>>) = "fact.NAME", Type::Fact, Alone;
    /// `args.NAME..`: an argument, and fields within it. One that names resources stands for
    /// them and not for its text.
    Argument(Box<str>, Vec<Box<str>>) = "args.NAME", Type::Argument, Alone;
    /// `call.tool`: the tool's id.
    Tool = "call.tool", Type::Tool, WithTool;
    /// `call.effect`: the name of its effect class.
    EffectClass = "call.effect", Type::EffectClass, WithTool;
    /// `call.agent`: the calling agent.
    Agent = "call.agent", Type::Agent, Alone;
    /// `call.args_bytes`: size of the resolved arguments in canonical bytes.
    ArgumentBytes = "call.args_bytes", Type::UpTo(u64::MAX), Alone;
    /// `call.hold.DIMENSION`: what the call would set aside.
    Hold(Dimension) = "call.hold.DIMENSION", Type::UpTo(u64::MAX), Alone;
    /// `token.id`: 64 hexadecimal digits.
    TokenId = "token.id", Type::TokenId, Alone;
    /// `token.depth`: how many tokens it was derived through.
    TokenDepth = "token.depth", Type::UpTo(u64::MAX), Alone;
    /// `token.read_only`: whether it is for reading only.
    TokenReadOnly = "token.read_only", Type::Bool, Alone;
    /// `token.left_ms`: milliseconds until it expires.
    TokenLeftMs = "token.left_ms", Type::UpTo(u64::MAX), Alone;
    /// `budget.DIMENSION`: what is left, the tightest of the token's chain.
    Budget(Dimension) = "budget.DIMENSION", Type::UpTo(u64::MAX), Alone;
    /// `history.MEASURE.WHO.SPAN`: what the agent has done of late.
    History(Past) = "history.MEASURE.WHO.SPAN", Type::UpTo(u64::MAX), Alone;
    /// `now.ms`: kernel time in milliseconds since 1970.
    NowMs = "now.ms", Type::UpTo(u64::MAX), WithTime;
    /// `now.hour`: hour of the day in UTC, 0 to 23.
    NowHour = "now.hour", Type::Among(0, 23), WithTime;
    /// `now.weekday`: day of the week in UTC, 1 for Monday to 7.
    NowWeekday = "now.weekday", Type::Among(1, 7), WithTime;
    /// `risk`: points from 0 to 100, by effect class, raised by `params.risk`.
    Risk = "risk", Type::UpTo(100), WithTool;
}

/// A row of the table of attributes: one attribute, or all whose names begin alike.
#[derive(Debug)]
pub struct Row {
    /// The name, with a word in capitals for what differs: `budget.DIMENSION`.
    pub name: &'static str,
    /// The attribute; `None` where the row is of many.
    pub attribute: Option<Attribute>,
    /// Its type.
    pub kind: Type,
    /// The thing that it varies with.
    pub varies: Varies,
}

/// The type of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// Data: a scalar, a list, a map, null; or missing, or erased.
    Fact,
    /// Data, the resources that it names, or missing.
    Argument,
    /// A field of an argument: data, or missing.
    Field,
    /// The id of a tool.
    Tool,
    /// The name of an effect class.
    EffectClass,
    /// An agent.
    Agent,
    /// The id of a token, in hexadecimal digits.
    TokenId,
    /// `false` or `true`.
    Bool,
    /// An integer from 0 to this.
    UpTo(u64),
    /// An integer from one to the other. They are few, so a constant that is none of them is a
    /// mistake.
    Among(u64, u64),
}

impl Type {
    /// True if it can have several types, and be missing. Each other attribute has one type, and
    /// the kernel fills it in for every call.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Fact | Self::Argument | Self::Field)
    }

    /// True if it is an integer.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        matches!(self, Self::UpTo(_) | Self::Among(..))
    }
}

/// The thing that an attribute varies with, from call to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Varies {
    /// By itself; the fields of one fact or argument with one another.
    Alone,
    /// With the tool and its effect class, from which it follows.
    WithTool,
    /// With the time, from which it follows: but for `now.ms` it repeats every week, and stays
    /// within an hour.
    WithTime,
}

/// Why a text names no attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub(super) enum AttributeError {
    /// There is no attribute of that name.
    #[error("no attribute has this name")]
    Unknown,
    /// `constraint.*` and `policy.*` are the policy itself.
    #[error("a policy can't ask about itself")]
    OfPolicy,
    /// `label.*` comes with a later version.
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
    /// The attribute of that text; `None` where there is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::from_text(text).ok()
    }

    /// The attribute of that text: the one text that [`Display`](fmt::Display) gives it.
    ///
    /// # Errors
    /// Why there is none.
    pub(super) fn from_text(text: &str) -> Result<Self, AttributeError> {
        let alone = |row: &Row| if row.name == text { row.attribute.clone() } else { None };
        if let Some(found) = Self::TABLE.iter().find_map(alone) {
            return Ok(found);
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
            Some(("history", name)) => {
                Past::from_name(name).map(Self::History).ok_or(AttributeError::Unknown)
            }
            Some(("constraint" | "policy", _)) => Err(AttributeError::OfPolicy),
            Some(("label", _)) => Err(AttributeError::NotYet),
            _ => Err(AttributeError::Unknown),
        }
    }

    /// The attribute that a misspelt text may mean.
    pub(super) fn near(text: &str) -> Option<String> {
        let alone = Self::TABLE.iter().filter(|row| row.attribute.is_some());
        let closed = || alone.clone().map(|row| row.name);
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
        if start == "history" {
            let names = Past::ALL.iter().map(|past| past.name());
            return suggestion::near(rest, names).map(|name| alloc::format!("history.{name}"));
        }
        let open =
            suggestion::near(start, ["fact", "goal", "args", "budget", "call", "token", "history"]);
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
            Self::History(past) => return write!(f, "history.{}", past.name()),
            Self::Budget(dimension) => return write!(f, "budget.{}", dimension.name()),
            alone => return f.write_str(alone.name()),
        };
        fields.iter().try_for_each(|field| write!(f, ".{field}"))
    }
}
