//! A home's beginning, its opening, and its end; and what another policy would have decided.

pub(crate) mod boot;
pub(crate) mod probe;
pub(crate) mod redecide;
pub(crate) mod replay;
