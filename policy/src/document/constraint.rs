//! The written form: a document, its constraints, and their subjects.

use alloc::{boxed::Box, collections::BTreeMap, vec::Vec};

use syscap_format::{ConstraintId, EffectClass, Obligation, ToolId, Verdict};

use super::condition::Condition;

/// A policy's document: constraints, sorted by id, and points of risk. It can be made of any, to be
/// looked at by [`semantics`](crate::semantics); to be in force, it must be read
/// ([`Policy`](crate::Policy)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Document {
    /// The written constraints, and those that `params.tools` and `params.agents` stand for. Sorted
    /// by id.
    pub constraints: Vec<Constraint>,
    /// Points by tool, of `params.risk`.
    pub risk: BTreeMap<ToolId, u8>,
}

/// One constraint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Constraint {
    /// Its name, once in a document.
    pub id: ConstraintId,
    /// Its effect: it grants or restricts.
    pub effect: Effect,
    /// Which calls it is about.
    pub subject: Subject,
    /// When it applies.
    pub when: Condition,
    /// For a deny, the verdict where it applies or its condition is unknown. For an allow, the
    /// verdict where no allow grants.
    pub on_fail: OnFail,
    /// Why, for callers and people.
    pub reason: Box<str>,
    /// The obligations beside its verdict.
    pub obligations: Vec<Obligation>,
}

/// The effect of a constraint: it grants or restricts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// It grants where its condition holds.
    Allow,
    /// It restricts where its condition holds, or where that can't be said.
    Deny,
}

/// Which calls a constraint is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    /// All: `null`.
    All,
    /// Calls of one tool: `{"tool_id": ..}`.
    Tool(ToolId),
    /// Calls of tools of one effect class: `{"capability": ..}`.
    Capability(EffectClass),
}

impl Effect {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Allow, Self::Deny];

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Deny => "deny",
        }
    }
}

impl OnFail {
    /// All, as they are listed to people.
    pub const ALL: [Self; 4] = [Self::Block, Self::Ask, Self::Defer, Self::Degrade];

    /// The name in documents.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Degrade => "degrade",
            Self::Ask => "ask",
            Self::Defer => "defer",
            Self::Block => "block",
        }
    }

    /// The verdict that comes of it.
    pub const fn verdict(self) -> Verdict {
        match self {
            Self::Degrade => Verdict::Degrade,
            Self::Ask => Verdict::Ask,
            Self::Defer => Verdict::Defer,
            Self::Block => Verdict::Deny,
        }
    }
}

/// The verdict of a constraint that fails a call. In the order of strictness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OnFail {
    /// Run it with less. For a deny with obligations that give a run less.
    Degrade,
    /// A person must approve it.
    Ask,
    /// It may be sent again on a condition.
    Defer,
    /// It is denied.
    Block,
}
