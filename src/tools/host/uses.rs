//! Statements about a tool that an agent's client runs itself.

use syscap_format::field::{choice, shape};
use syscap_format::{AgentId, Canonical, Seq, ToolId, ToolResult};

shape! {
    /// A use of a tool, as an agent's client tells of it.
    pub struct ToolUse {
        /// The agent.
        1 => pub agent: AgentId,
        /// The client's name for the conversation: each has a session of its own.
        2 => pub conversation: String,
        /// The client's name for the use; where it gives none, the oldest use of the same tool
        /// with the same arguments is meant.
        3 => pub id: Option<String>,
        /// The tool.
        4 => pub tool: ToolId,
        /// The arguments: a map.
        5 => pub args: Canonical,
        maybe {
            /// The location at which the client says that it runs a shell command: a map whose
            /// `folder` is recorded as the argument `place`, before the use only, and shown to the
            /// person who is asked. It decides nothing: a command's effect is unknown.
            6 => pub place: Canonical,
            /// The location where it acts, in words, as [`Provider::location`] of the program that
            /// asks for the client: the person who is asked sees it, and the answer holds there
            /// only.
            ///
            /// [`Provider::location`]: crate::provide::Provider::location
            7 => pub location: String,
            /// The part of the client that makes it, such as a sub-agent, by the client's name for it:
            /// at most 64 bytes. It stands in the call's provenance as its trace, and decides nothing.
            8 => pub part: String,
        }
    }
}

shape! {
    /// A use of a tool that an agent's program offers by its ticket and runs itself, in a session of
    /// its own.
    pub struct OwnUse {
        /// The program's name for the use: one that is of an idempotency key's form is that of the call.
        1 => pub id: Option<String>,
        /// The tool.
        2 => pub tool: ToolId,
        /// The arguments: a map.
        3 => pub args: Canonical,
        maybe {
            /// As in [`ToolUse`].
            4 => pub location: String,
            /// As in [`ToolUse`].
            5 => pub part: String,
        }
    }
}

shape! {
    /// A user's message, as an agent's client reports it.
    pub struct Prompt {
        /// The agent.
        1 => pub agent: AgentId,
        /// The client's name for the conversation, as in [`ToolUse`].
        2 => pub conversation: String,
        /// The message.
        3 => pub text: String,
    }
}

/// The kernel's answer before a use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It may be made; its intent stands there.
    Out(Seq),
    /// It must not be made: refused, failed, or a repeat of one that has ended.
    Answered(Box<ToolResult>),
}

choice! {
    /// A client's report of a use's result.
    pub enum Reported {
        /// A result.
        1 => Result(Canonical),
        /// It failed: in the client's words.
        2 => Failed(String),
        /// It was not made, since the client or its user refused it: in the client's words.
        3 => NotMade(String),
    }
}

/// The answer to a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// The outcome that is on record.
    Answered(Box<ToolResult>),
    /// The use was closed before, and charged in full, since its server had ended or its time was over.
    /// The report is on record there, as late.
    Late(Seq),
}

impl Reported {
    /// The bytes that are kept of it.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Result(result) => result.as_bytes().len(),
            Self::Failed(words) | Self::NotMade(words) => words.len(),
        }
    }
}
