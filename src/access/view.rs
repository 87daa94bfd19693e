//! What there is at a home at present, for those who look.

use std::{cmp::Reverse, collections::BTreeMap};

use syscap_kernel::{
    budget::Amounts,
    control::Freeze,
    id::{AgentId, HomeId, PolicyHash, Seq, TokenId, ToolId},
    kernel::{Kernel, TokenView},
    label::Label,
    manifest::Manifest,
    record::CallFields,
    time::UnixMillis,
};

use crate::{
    Inspection, Runtime,
    attach::limits::VIEW_MAX,
    counters::Counts,
    provide::{Offer, Standing},
};

/// Tools, tokens, sessions, running calls and counters, as they are at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct View {
    /// The home.
    pub home: HomeId,
    /// Its log's last record.
    pub head: Seq,
    /// Kernel time.
    pub now: UnixMillis,
    /// The policy in force.
    pub policy: Option<PolicyHash>,
    /// The policy that is asked for the record only.
    pub shadow: Option<PolicyHash>,
    /// What is frozen, each as the event that froze it.
    pub frozen: Vec<Freeze>,
    /// The tools, in the order of their names.
    pub tools: Vec<ToolInfo>,
    /// The newest tokens, the newest first.
    pub tokens: Vec<TokenInfo>,
    /// How many tokens there are.
    pub tokens_in_all: u64,
    /// The newest open sessions, the newest first.
    pub sessions: Vec<SessionInfo>,
    /// How many sessions are open.
    pub sessions_in_all: u64,
    /// The calls that run, the oldest first.
    pub running: Vec<Running>,
    /// How many calls run.
    pub running_in_all: u64,
    /// What was counted since the holder opened the home.
    pub counts: Counts,
}

/// A tool and how it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolInfo {
    /// Its manifest, as it is on record.
    pub manifest: Manifest,
    /// How it stands: [`Changed`](Standing::Changed) where only another definition than that on
    /// record is offered.
    pub standing: Standing,
    /// What [`accept`](crate::access::Access::accept) would put on record: the newest offer that
    /// is not as the manifest on record.
    pub offered: Option<Manifest>,
    /// Whether there is somebody who runs it: the holder itself, or a process that offers it.
    pub provided: bool,
    /// Whether a process runs it, and not the holder's kernel.
    pub delegated: bool,
}

/// A token and its standing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenInfo {
    /// The id.
    pub id: TokenId,
    /// The agent that may use it.
    pub agent: AgentId,
    /// The record that registered it.
    pub issued: Seq,
    /// When it ends.
    pub expires: UnixMillis,
    /// Whether it was revoked.
    pub revoked: bool,
    /// The tools that it grants.
    pub tools: Vec<ToolId>,
    /// What it may use in all.
    pub limits: Amounts,
    /// What was used.
    pub used: Amounts,
    /// What is set aside for calls in flight.
    pub held: Amounts,
    /// What is left.
    pub left: Amounts,
}

/// An open session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionInfo {
    /// The record that opened it.
    pub number: Seq,
    /// The agent.
    pub agent: AgentId,
    /// The token.
    pub token: TokenId,
    /// What it has been given carries this.
    pub label: Label,
}

/// A call that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Running {
    /// Its intent.
    pub intent: Seq,
    /// The tool.
    pub tool: ToolId,
    /// The agent.
    pub agent: AgentId,
    /// Since when, in kernel time.
    pub since: UnixMillis,
}

impl TokenInfo {
    fn of(token: &TokenView<'_>) -> Self {
        Self {
            id: token.id,
            agent: token.body.agent.clone(),
            issued: token.issued,
            expires: token.body.expires,
            revoked: token.revoked,
            tools: token.body.grants.iter().map(|(tool, _)| tool.clone()).collect(),
            limits: *token.body.budget.amounts(),
            used: token.used,
            held: token.held,
            left: token.left,
        }
    }

    /// Whether calls with it may be let through at `now`.
    #[must_use]
    pub fn is_live(&self, now: UnixMillis) -> bool {
        !self.revoked && now < self.expires
    }
}

impl View {
    /// The tool of that name.
    #[must_use]
    pub fn tool(&self, tool: &ToolId) -> Option<&ToolInfo> {
        self.tools.iter().find(|info| info.manifest.tool == *tool)
    }

    /// The token of that id.
    #[must_use]
    pub fn token(&self, token: TokenId) -> Option<&TokenInfo> {
        self.tokens.iter().find(|info| info.id == token)
    }

    /// The newest token of an agent that can be used.
    #[must_use]
    pub fn newest_live(&self, agent: &AgentId) -> Option<&TokenInfo> {
        self.tokens.iter().find(|token| token.agent == *agent && token.is_live(self.now))
    }

    pub(crate) fn of(runtime: &Runtime) -> Self {
        let (delegated, counts) = (runtime.delegated(), runtime.counters().counts());
        runtime.look(|kernel| Self::new(kernel, delegated, counts))
    }

    fn new(kernel: &Kernel, delegated: Vec<(Manifest, Vec<Offer>)>, counts: Counts) -> Self {
        let delegated = delegated.into_iter().map(|(manifest, offers)| (manifest.tool, offers));
        let delegated: BTreeMap<ToolId, Vec<Offer>> = delegated.collect();
        Self {
            home: kernel.home(),
            head: kernel.head().seq,
            now: kernel.now(),
            policy: kernel.policy_hash(),
            shadow: kernel.shadow_hash(),
            frozen: kernel.frozen(),
            tools: tools(kernel, &delegated),
            tokens: tokens(kernel),
            tokens_in_all: count(kernel.tokens().count()),
            sessions: sessions(kernel),
            sessions_in_all: count(kernel.sessions().count()),
            running: kernel.running().filter_map(running).take(VIEW_MAX).collect(),
            running_in_all: count(kernel.running().count()),
            counts,
        }
    }
}

impl Inspection {
    /// What there is as the log leaves it: nobody offers a tool, and nothing is counted.
    #[must_use]
    pub fn view(&self) -> View {
        View::new(self.kernel(), self.providers.delegated(), Counts::default())
    }
}

fn tools(kernel: &Kernel, delegated: &BTreeMap<ToolId, Vec<Offer>>) -> Vec<ToolInfo> {
    let info = |manifest: &Manifest| {
        let offers = delegated.get(&manifest.tool);
        let changed = offers.is_some_and(|offers| {
            !offers.is_empty() && offers.iter().all(|offer| offer.standing != Standing::Ready)
        });
        let offered = offers.iter().flat_map(|offers| offers.iter().rev());
        ToolInfo {
            manifest: manifest.clone(),
            standing: if changed { Standing::Changed } else { Standing::Ready },
            offered: offered.map(|offer| &offer.manifest).find(|m| *m != manifest).cloned(),
            provided: offers.is_none_or(|offers| !offers.is_empty()),
            delegated: offers.is_some(),
        }
    };
    let mut tools: Vec<ToolInfo> = kernel.manifests().map(info).collect();
    tools.sort_by(|one, other| one.manifest.tool.cmp(&other.manifest.tool));
    tools
}

fn tokens(kernel: &Kernel) -> Vec<TokenInfo> {
    let mut newest: Vec<TokenView<'_>> = kernel.tokens().collect();
    newest.sort_by_key(|token| Reverse(token.issued));
    newest.iter().take(VIEW_MAX).map(TokenInfo::of).collect()
}

fn sessions(kernel: &Kernel) -> Vec<SessionInfo> {
    let mut newest: Vec<_> = kernel.sessions().collect();
    newest.sort_by_key(|session| Reverse(session.number));
    let info = |session: &syscap_kernel::kernel::SessionView<'_>| SessionInfo {
        number: session.number,
        agent: session.agent.clone(),
        token: session.token,
        label: session.label,
    };
    newest.iter().take(VIEW_MAX).map(info).collect()
}

fn running((intent, since, fields): (Seq, UnixMillis, &CallFields)) -> Option<Running> {
    let (tool, agent) = (fields.tool_id.clone()?, fields.agent_id.clone()?);
    Some(Running { intent, tool, agent, since })
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
