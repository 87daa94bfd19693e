//! Bytes and names: codec, JSON, hashes, scopes, tokens, manifests.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::too_many_lines,
    reason = "tests"
)]

mod codec;
mod codec_mutants;
mod common;
mod crypto_vectors;
mod hash;
mod json;
mod json_large;
mod json_laws;
mod manifests;
mod mutated;
mod obligations;
mod scopes;
mod tokens;
