//! The document: what a policy says, as it was written.

pub(crate) mod attribute;
mod condition;
mod constant;
mod constraint;
mod error;
mod level;
mod obligations;
mod params;
mod parse;
mod place;
mod suggestion;
mod when;
mod write;

pub use attribute::{Attribute, Row, Type, Varies};
pub use condition::{Ask, Condition, Constant, Test};
pub use constraint::{Constraint, Document, Effect, OnFail, Subject};
pub use error::{LoadError, LoadFault};
pub(crate) use parse::{Example, Parsed, text};
pub(crate) use write::json;
