//! What is said of a tool that an agent's client runs itself.

use syscap_format::{
    cbor::Canonical,
    envelope::ToolResult,
    id::{AgentId, Seq, ToolId},
};

/// A use of a tool, as an agent's client tells of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolUse {
    /// The agent.
    pub agent: AgentId,
    /// The client's name for the conversation: each has a session of its own.
    pub conversation: String,
    /// The client's name for the use; where it gives none, the oldest use of the same tool with
    /// the same arguments is meant.
    pub id: Option<String>,
    /// The tool.
    pub tool: ToolId,
    /// The arguments: a map.
    pub args: Canonical,
}

/// What the kernel says of a use before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It may be made; its intent stands there.
    Out(Seq),
    /// It must not be made: refused, failed, or a repeat of one that has ended.
    Answered(Box<ToolResult>),
}

/// What a client says that a use came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reported {
    /// A result.
    Result(Canonical),
    /// It failed: in the client's words.
    Failed(String),
}
