//! Trees of values, texts of them, and vectors.

pub(crate) mod data;
pub(crate) mod json_tree;
pub(crate) mod mutate;
pub(crate) mod tree;
pub(crate) mod vectors;
