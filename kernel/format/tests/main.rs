//! Bytes and names: codec, JSON, hashes, scopes, tokens, manifests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod advice;
mod codec;
mod codec_mutants;
mod common;
mod conformance;
mod crypto_vectors;
mod hash;
mod json;
mod json_large;
mod json_laws;
mod labels;
mod manifests;
mod mutated;
mod obligations;
mod results;
mod scopes;
mod summaries;
mod tokens;
mod vault_rows;
