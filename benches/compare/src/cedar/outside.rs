//! Why something is not in the shared fragment.

use std::{error::Error, fmt};

/// What Cedar can't say in the same way. Nothing is translated by halves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outside {
    /// A deny that does not block, or an allow whose failure does not.
    OnFail(String),
    /// A constraint with obligations.
    Obligations(String),
    /// An attribute whose type was not declared.
    Undeclared(String),
    /// A test that an attribute of that type never answers, such as `lt` of text.
    Test(String),
    /// A test of an attribute that may be missing, without a guard before it.
    Unguarded(String),
    /// An integer beyond 64 bits.
    Integer(i128),
    /// An attribute that is asked about, is declared as always there, and is not given.
    NotGiven(String),
    /// A value that is erased, a list, or of another type than was declared.
    Value(String),
    /// What Cedar itself did not take.
    Refused(String),
}

impl fmt::Display for Outside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OnFail(id) => write!(f, "constraint {id}: only on_fail block has a like"),
            Self::Obligations(id) => write!(f, "constraint {id}: obligations have no like"),
            Self::Undeclared(name) => write!(f, "{name}: its type is not declared"),
            Self::Test(name) => write!(f, "{name}: this test does not go with its type"),
            Self::Unguarded(name) => write!(f, "{name}: it may be missing, and no guard is before"),
            Self::Integer(n) => write!(f, "{n}: an integer of Cedar has 64 bits"),
            Self::NotGiven(name) => write!(f, "{name}: it is asked about and not given"),
            Self::Value(name) => write!(f, "{name}: this value has no like"),
            Self::Refused(why) => write!(f, "Cedar: {why}"),
        }
    }
}

impl Error for Outside {}
