//! Faults of a document, and their places.

use alloc::{boxed::Box, string::String};
use core::fmt;

use syscap_format::{DecodeFault, ToolId, json::JsonFault};

/// One way in which a document is no policy. The document is refused whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum LoadFault {
    /// It is not JSON that can be read.
    #[error("{0}")]
    Json(JsonFault),
    /// It is not canonical CBOR.
    #[error("{0}")]
    Cbor(DecodeFault),
    /// It is larger than a document may be.
    #[error("the document is too large")]
    TooLarge,
    /// It nests deeper than a control document may.
    #[error("nested too deep")]
    TooDeep,
    /// A number with a fraction or an exponent.
    #[error("a policy has no floats: write an integer")]
    Float,
    /// A key that stands twice in one map.
    #[error("this key stands twice")]
    DuplicateKey,
    /// A key that is not known there.
    #[error("this key is not known here")]
    UnknownKey,
    /// A key that must be there.
    #[error("this key is missing")]
    MissingKey,
    /// A value of another type than must stand there.
    #[error("a value has the wrong type")]
    Type,
    /// A version other than 1.
    #[error("only version 1 is known")]
    Version,
    /// More constraints than a document may have.
    #[error("the document has too many constraints")]
    TooManyConstraints,
    /// An id that has not the form of one.
    #[error("an id is 1 to 160 of [A-Za-z0-9._/-]")]
    BadId,
    /// An id that begins with `params.`: the engine makes those.
    #[error("ids that begin with params. are taken")]
    ReservedId,
    /// An id that stands twice.
    #[error("this id stands twice")]
    DuplicateId,
    /// Neither `allow` nor `deny`.
    #[error("no effect has this name")]
    UnknownEffect,
    /// Not an `on_fail`.
    #[error("no on_fail has this name")]
    UnknownOnFail,
    /// `degrade` on an allow: an allow that fails grants nothing.
    #[error("an allow can't degrade")]
    DegradeOnAllow,
    /// `degrade` without an obligation that takes something away.
    #[error("degrade needs an obligation that takes something away")]
    DegradeWithoutObligation,
    /// A subject that is neither null nor has exactly one key.
    #[error("a subject is null, {{\"tool_id\": ..}} or {{\"capability\": ..}}")]
    Subject,
    /// A tool id with a wildcard.
    #[error("tools are named one by one: there are no wildcards")]
    Wildcard,
    /// Text that has not the form of a tool id.
    #[error("this is not a tool id")]
    BadTool,
    /// Text that has not the form of an agent id.
    #[error("this is not an agent id")]
    BadAgent,
    /// Not an effect class.
    #[error("no effect class has this name")]
    UnknownEffectClass,
    /// A reason longer than an error may carry.
    #[error("a reason has at most 256 bytes")]
    ReasonTooLong,
    /// Not an operator.
    #[error("no operator has this name")]
    UnknownOp,
    /// An operator or an attribute of a later version.
    #[error("this is not there yet")]
    NotYet,
    /// More or fewer arguments than the operator has.
    #[error("the operator has another number of arguments")]
    Arity,
    /// More nodes than a condition may have.
    #[error("the condition has too many parts")]
    TooManyNodes,
    /// Not an attribute.
    #[error("no attribute has this name")]
    UnknownAttribute,
    /// A fact, goal, argument or field whose name has not the right form.
    #[error("a name in this attribute has not the right form")]
    AttributeName,
    /// More fields than an attribute may have.
    #[error("this attribute has too many fields")]
    AttributeFields,
    /// An attribute of the policy itself.
    #[error("a policy can't ask about itself")]
    OfPolicy,
    /// A constant that is neither text, an integer nor a boolean.
    #[error("a constant is text, an integer or a boolean")]
    BadConstant,
    /// A constant, or an operator, of a type that the attribute never has.
    #[error("this attribute never has that type")]
    ConstantType,
    /// A constant that the attribute can never be.
    #[error("this attribute never has that value")]
    ConstantRange,
    /// A text constant that is too long.
    #[error("a text constant has at most 4,096 bytes")]
    TextTooLong,
    /// `in` without constants.
    #[error("in needs at least one constant")]
    EmptyIn,
    /// More constants than a list may have.
    #[error("a list has at most 4,096 constants")]
    TooManyConstants,
    /// Not the name of a type.
    #[error("no type has this name")]
    UnknownType,
    /// `within` of text that is no path by components.
    #[error("this is not a path: no empty, . or .. component, no slash first or last")]
    BadPath,
    /// `within` of text with a `*` or `?`: it would be taken as it stands.
    #[error("paths have no wildcards: within covers all that lies below")]
    PathWildcard,
    /// `domain` of text that is no host.
    #[error("this is not a host")]
    BadHost,
    /// `cidr` of text that is no block of addresses.
    #[error("this is not a block of addresses such as 10.0.0.0/8")]
    BadCidr,
    /// A parameter that is not there.
    #[error("no parameter has this name")]
    UnknownParam,
    /// A parameter that no constraint asks for, and that has no meaning of its own.
    #[error("no constraint asks for this parameter")]
    UnusedParam,
    /// A parameter that is a list where one constant must stand.
    #[error("this parameter is a list: only in takes one")]
    ListParam,
    /// A parameter's name that has not the right form.
    #[error("a parameter's name is a letter, then up to 63 of [a-z0-9_]")]
    ParamName,
    /// More parameters than a document may have.
    #[error("the document has too many parameters")]
    TooManyParams,
    /// Points of risk beyond 100.
    #[error("risk is 0 to 100")]
    Risk,
    /// `params.elevated` says what can't be met, or what counts for nobody.
    #[error(
        "elevated has up to 16 keys, approvals of 1 to as many as keys, and at least one means"
    )]
    Level,
    /// A key that is none, or that stands there twice.
    #[error("a key is 64 lower-case hexadecimal digits, as syscap keys list shows it, each once")]
    LevelKey,
    /// Not a kind of obligation.
    #[error("no obligation has this name")]
    UnknownObligation,
    /// A value that the obligation can't have.
    #[error("the obligation can't have this value")]
    BadObligation,
    /// A dimension that is unknown, or that a run does not count unit by unit.
    #[error("no dimension of this name can be cut")]
    UnknownDimension,
    /// An obligation that this effect and `on_fail` can't have; one that asks can have each.
    #[error("this obligation can't stand here: use a deny with on_fail ask")]
    ObligationNotHere,
    /// More obligations than a constraint or a document may have.
    #[error("too many obligations")]
    TooManyObligations,
    /// More examples than a constraint may have.
    #[error("a constraint has at most 64 examples")]
    TooManyExamples,
    /// An example whose scenario can't be read.
    #[error("the scenario can't be read")]
    Scenario,
    /// Not a verdict.
    #[error("no verdict has this name")]
    UnknownVerdict,
    /// An example that says neither `holds` nor `verdict`.
    #[error("an example needs holds or verdict")]
    EmptyExample,
    /// An example that does not hold.
    #[error("the example does not hold")]
    Example,
    /// A tool's alias: calls are decided under the tool's own id, so the constraint would never
    /// apply. Only who has the tools can say this.
    #[error("this is another name of a tool: use its own id")]
    Alias,
    /// An allow and a deny that say the opposite of the same calls.
    #[error("an allow and a deny that blocks have the same subject and condition")]
    Contradiction,
}

/// Why a document was refused: what is wrong, with what, where, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadError {
    /// The fault.
    pub fault: LoadFault,
    /// The key, name or value that is at fault, cut where it is long.
    pub key: Box<str>,
    /// Where: `constraints[3].when.args[0]`, places counted from 0 as written, or `byte 17`.
    pub place: Box<str>,
    /// The possible entries: the nearest one, or all if they are few.
    pub suggestion: Option<Box<str>>,
}

impl LoadError {
    pub(crate) fn new(fault: LoadFault, key: &str, place: String) -> Self {
        Self { fault, key: cut(key), place: place.into_boxed_str(), suggestion: None }
    }

    /// A document that names a tool by an alias.
    pub fn alias(alias: &ToolId, tool: &ToolId) -> Self {
        Self::new(LoadFault::Alias, alias.as_str(), String::from("tools"))
            .suggest(Some(String::from(tool.as_str())))
    }

    pub(crate) fn suggest(mut self, suggestion: Option<String>) -> Self {
        self.suggestion = suggestion.map(String::into_boxed_str);
        self
    }
}

/// Longest key in an error, in characters.
const KEY_CHARS_MAX: usize = 80;

fn cut(key: &str) -> Box<str> {
    let mut short: String = key.chars().take(KEY_CHARS_MAX).collect();
    if short.len() < key.len() {
        short.push_str("...");
    }
    short.into_boxed_str()
}

impl fmt::Display for LoadError {
    /// One line: `constraints[0]: this key is not known here: "efect"; try: effect`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place.escape_debug(), self.fault)?;
        if !self.key.is_empty() {
            write!(f, ": {:?}", self.key)?;
        }
        match &self.suggestion {
            Some(suggestion) => write!(f, "; try: {}", suggestion.escape_debug()),
            None => Ok(()),
        }
    }
}

impl core::error::Error for LoadError {}
