//! Why a resume is not taken.

use syscap_format::{ScopeError, json::JsonError};

/// Why a resume is not taken, and its agent skipped. Each names the place in the text.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeError {
    /// It is too long.
    #[error("it has more than {most} bytes")]
    TooLong {
        /// The most, in bytes.
        most: usize,
    },
    /// It is not JSON that has one meaning.
    #[error("no JSON that can be read: {0}")]
    Json(#[from] JsonError),
    /// A section that it must have is not there.
    #[error("`{section}` is missing, and has no default")]
    Missing {
        /// Which.
        section: &'static str,
    },
    /// A section is of another type.
    #[error("`{section}` is not {wanted}")]
    Type {
        /// Which.
        section: String,
        /// The required form.
        wanted: &'static str,
    },
    /// A name has not the form of an agent's.
    #[error("`{section}` names {got:?}; an agent is [a-z0-9._-] without a leading dot")]
    Agent {
        /// The section of the fault.
        section: &'static str,
        /// The name.
        got: String,
    },
    /// The resume is another agent's than was said.
    #[error("`name` is {got}, and not {wanted}")]
    Name {
        /// The name in it.
        got: String,
        /// The expected agent.
        wanted: String,
    },
    /// A path that can't be granted.
    #[error("`{section}` has {got:?}: {why}")]
    Path {
        /// The section of the fault.
        section: &'static str,
        /// The path.
        got: String,
        /// The fault, and a correct form.
        why: &'static str,
    },
    /// More than a token holds.
    #[error("`{section}`: {source}")]
    Scope {
        /// The section of the fault.
        section: &'static str,
        /// The fault of the scope.
        source: ScopeError,
    },
    /// The written resume would give a tool more than the token does.
    #[error("a resume has one list of paths for all tools, and it would give {tool} more")]
    Wider {
        /// The tool.
        tool: String,
    },
}
