//! The tools' requests to the server.

use std::collections::BTreeSet;

use syscap_format::{AgentId, Budget, Grants, Label, Refused, TokenId, ToolId};

/// The server's part: it signs and registers parts of tokens, and knows its agents. It is asked in
/// runs and probes, outside the kernel's lock; but for [`Registrar::tool`].
pub trait Registrar: Send + Sync {
    /// The id of a tool that is called so. It is asked while a call is planned, and answers from
    /// what was known when the home was opened.
    fn tool(&self, called: &ToolId) -> Option<ToolId>;

    /// Signs a part of a token by the home's own key of the holder, and has it registered: it is
    /// on record, and durable, when this returns.
    fn hand_on(&self, part: &Part) -> Result<TokenId, NotHandedOn>;

    /// The registered part of that token with that nonce, if there is one. It is asked while a home
    /// is opened; `None` where it can't be said.
    fn was_handed_on(&self, parent: &TokenId, nonce: &[u8; 16]) -> Option<bool>;

    /// The agents that somebody may see, in the order of their names; `None` where nobody holds the
    /// home any more.
    fn agents(&self, seen: &Seen) -> Option<Page>;
}

/// A part of a token, for a new agent.
#[derive(Clone, Debug)]
pub struct Part {
    /// The token.
    pub parent: TokenId,
    /// The agent that hands it on.
    pub by: AgentId,
    /// The agent that it is for.
    pub agent: AgentId,
    /// The nonce, by which the part is unique and known again.
    pub nonce: [u8; 16],
    /// The tools and their scopes.
    pub grants: Grants,
    /// The budget.
    pub budget: Budget,
    /// How long it lives; `None` for as long as the token.
    pub life_ms: Option<u64>,
    /// How many levels it may be handed on itself.
    pub levels: u64,
    /// The label with which its sessions begin.
    pub label: Label,
}

/// Why nothing was handed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHandedOn {
    /// There is such an agent, which is not to be made again.
    Exists,
    /// It was refused, and is not registered.
    Refused(Refused),
    /// The home's own key can't sign it. It is not registered.
    Unsigned,
    /// The home stopped: it may be registered or not.
    Unknown,
}

/// A request to see agents.
#[derive(Clone, Debug)]
pub struct Seen {
    /// The agent that sees itself and all agents below it.
    pub by: AgentId,
    /// Others that it may see.
    pub others: BTreeSet<String>,
    /// Only those behind this name.
    pub after: String,
    /// How many at most.
    pub limit: usize,
}

/// Some of the agents that somebody may see.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Page {
    /// The agents, in the order of their names.
    pub agents: Vec<Listed>,
    /// True if there are more behind them.
    pub more: bool,
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub agent: AgentId,
    /// How many tokens it has that have not ended, and what they grant; of an agent beside the
    /// one that asks nothing is said.
    pub standing: Option<(u64, BTreeSet<ToolId>)>,
    /// The label of its name: what those had read who gave it.
    pub label: Label,
}
