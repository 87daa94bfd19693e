//! Capability tokens: immutable, named by the hash of their body, verified once.
//!
//! The wire is CBOR `[version, algorithm, body, signature]`. The body's bytes are the truth:
//! the id is their hash, the signature is over them, and the parsed [`TokenBody`] is a view.

mod attenuate;
mod body;
mod caveat;
mod grants;
mod proof;

pub use attenuate::attenuates;
pub use body::{TOKEN_CONTEXT, Token, TokenBody, TokenFlags};
pub use grants::{Grants, ToolGrant};
pub use proof::{Opening, Proof};
