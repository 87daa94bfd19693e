//! The method of a call to a server: of a tool, a prompt, a resource, or a question that the server
//! puts to the client.

use rmcp::model::{InputRequest, ServerCapabilities};
use syscap::format::EffectClass;

use crate::options::{Passed, Question};

/// See the module. On record each is a tool below its server's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    /// `tools/call`: one for each tool.
    Tool,
    /// `prompts/get`: one for each prompt.
    Prompt,
    /// `resources/list` and `resources/templates/list`.
    List,
    /// `resources/read`.
    Read,
    /// `resources/subscribe`.
    Subscribe,
    /// `completion/complete`.
    Complete,
    /// A server's question to the client.
    Ask(Question),
}

impl Method {
    /// The methods that a server has once at most.
    const SINGLE: [Self; 7] = [
        Self::List,
        Self::Read,
        Self::Subscribe,
        Self::Complete,
        Self::Ask(Question::Sampling),
        Self::Ask(Question::Elicitation),
        Self::Ask(Question::Roots),
    ];

    /// The place of its calls on record, below the server's name. No tool's own name has a dot
    /// there.
    pub(crate) const fn id(self) -> &'static str {
        match self {
            Self::Tool => "",
            Self::Prompt => "prompts",
            Self::List => "resources.list",
            Self::Read => "resources.read",
            Self::Subscribe => "resources.subscribe",
            Self::Complete => "completion.complete",
            Self::Ask(Question::Sampling) => "ask.sampling",
            Self::Ask(Question::Elicitation) => "ask.elicitation",
            Self::Ask(Question::Roots) => "ask.roots",
        }
    }

    /// Its class, whatever a server says: all but tools only give data to the caller.
    pub(crate) const fn class(self) -> Option<EffectClass> {
        match self {
            Self::Tool => None,
            // Whoever answers is elsewhere, and what is answered goes to the server.
            Self::Ask(_) => Some(EffectClass::ExternalRead),
            _ => Some(EffectClass::Read),
        }
    }

    /// True if it is a question to the client.
    pub(crate) const fn is_question(self) -> bool {
        matches!(self, Self::Ask(_))
    }

    /// The single methods that a server has, as far as the operator lets them pass.
    pub(crate) fn of(has: &ServerCapabilities, passed: Passed, asks: &[Question]) -> Vec<Self> {
        let resources = has.resources.as_ref().filter(|_| passed.resources);
        let here = |method: &Self| match method {
            Self::List | Self::Read => resources.is_some(),
            Self::Subscribe => resources.is_some_and(|has| has.subscribe == Some(true)),
            Self::Complete => has.completions.is_some() && (passed.prompts || passed.resources),
            Self::Ask(question) => asks.contains(question),
            Self::Tool | Self::Prompt => false,
        };
        Self::SINGLE.into_iter().filter(here).collect()
    }
}

/// The kind of a server's request; `None` for one that no protocol spoken here has.
pub(crate) const fn question(request: &InputRequest) -> Option<Question> {
    match request {
        InputRequest::CreateMessage(_) => Some(Question::Sampling),
        InputRequest::Elicitation(_) => Some(Question::Elicitation),
        InputRequest::ListRoots(_) => Some(Question::Roots),
        _ => None,
    }
}
