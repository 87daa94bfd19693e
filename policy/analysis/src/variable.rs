//! Variables, whose values a search tries.

use alloc::{format, string::String};

use syscap_policy::{Ask, Attribute, Varies};

/// A test, with the variable that it is about.
pub(crate) struct Atom {
    pub(crate) attribute: Attribute,
    pub(crate) ask: Ask,
    pub(crate) variable: usize,
    /// The document whose points of risk it is about, where they differ.
    pub(crate) side: Option<usize>,
}

/// A variable of the search.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Variable {
    /// The tool, its class and its risk: fixed before the search.
    Call,
    /// The time, its hour and its day.
    Now,
    /// Any other attribute.
    One(Attribute),
}

impl Variable {
    pub(crate) fn of(attribute: &Attribute) -> Self {
        match attribute.varies() {
            Varies::WithTool => Self::Call,
            Varies::WithTime => Self::Now,
            Varies::Alone => Self::One(attribute.clone()),
        }
    }

    /// True if the kernel fills it in, so that it has one type and is always there.
    pub(crate) const fn is_closed(&self) -> bool {
        match self {
            Self::One(attribute) => !attribute.kind().is_open(),
            Self::Call | Self::Now => true,
        }
    }

    /// The fact or argument that it is part of.
    pub(crate) fn root(&self) -> Option<String> {
        match self {
            Self::One(Attribute::Fact(key, _)) => Some(format!("{key}")),
            Self::One(Attribute::Argument(name, _)) => Some(format!("args.{name}")),
            _ => None,
        }
    }
}
