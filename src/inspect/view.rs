//! The present state of a home, for display.

mod choice;
mod token;

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::field::{code, shape};
use syscap_format::{
    AgentId, Amounts, CallFields, DefinitionHash, Dimension, EffectClass, Freeze, FreezeTarget,
    HomeId, Label, Manifest, ObjectId, PolicyHash, Seq, TokenBody, TokenId, ToolId, ToolsHash,
    UnixMillis,
};
use syscap_kernel::{Kernel, SessionView, TokenView};
use syscap_syscalls::stated::carried;

use crate::driver::counters::Counts;
use crate::server::Holding;
use crate::tools::provide::{Offer, Standing};
use crate::transport::limits::{
    GRANTED_BYTES_MAX, MANIFESTS_BYTES_MAX, TITLE_BYTES_MAX, VIEW_MAX, VIEW_TOOLS_MAX,
};
use crate::{Error, Inspection};

pub use choice::{Choice, Owner, RUN_MARK};

/// The delegated tools on record with their offers, and what is offered that is not on record.
type Offered = (Vec<(Manifest, Vec<Offer>)>, Vec<Manifest>);

shape! {
    /// Tools, tokens, sessions, running calls and counters, as they are at one moment.
    #[non_exhaustive]
    pub struct View {
        /// The home.
        1 => pub home: HomeId,
        /// Its log's last record.
        2 => pub head: Seq,
        /// Kernel time.
        3 => pub now: UnixMillis,
        /// The policy in force.
        4 => pub policy: Option<PolicyHash>,
        /// The policy that is asked for the record only.
        5 => pub shadow: Option<PolicyHash>,
        /// The freezes in force, each as the event that made it.
        6 => pub frozen: Vec<Freeze> [..VIEW_MAX],
        /// How many things are frozen.
        7 => pub frozen_in_all: u64,
        /// The tools, in the order of their names.
        8 => pub tools: Vec<ToolInfo> [..VIEW_TOOLS_MAX],
        /// How many tools there are.
        9 => pub tools_in_all: u64,
        /// The newest tokens, the newest first.
        10 => pub tokens: Vec<TokenInfo> [..VIEW_MAX],
        /// How many tokens there are.
        11 => pub tokens_in_all: u64,
        /// The newest open sessions, the newest first.
        12 => pub sessions: Vec<SessionInfo> [..VIEW_MAX],
        /// How many sessions are open.
        13 => pub sessions_in_all: u64,
        /// The calls that run, the oldest first.
        14 => pub running: Vec<Running> [..VIEW_MAX],
        /// How many calls run.
        15 => pub running_in_all: u64,
        /// Counters since the server opened the home.
        16 => pub counts: Counts,
    }
}

shape! {
    /// A number that changes with each record of tools or tokens.
    #[derive(Copy)]
    pub struct Stamp {
        /// The tools.
        1 => pub tools: Option<ToolsHash>,
        /// How many tokens were registered.
        2 => pub tokens: u64,
        /// How often the tools were changed at this holder: there and back is two changes.
        3 => pub changes: u64,
    }
}

impl Stamp {
    pub(crate) fn of(runtime: &Holding) -> Self {
        let changes = runtime.providers.lock().changes;
        let of = |kernel: &Kernel| (kernel.tools_hash(), kernel.token_count());
        let (tools, tokens) = runtime.look(of);
        Self { tools, tokens: count(tokens), changes }
    }
}

shape! {
    /// A tool and how it stands, in few words.
    pub struct ToolInfo {
        /// Its id.
        1 => pub tool: ToolId,
        /// The effect class.
        2 => pub effect: EffectClass,
        /// The label of its results.
        3 => pub label: Label,
        /// Its title; a long one is cut.
        4 => pub title: String,
        /// The hash of the foreign definition that it was made from.
        5 => pub definition: Option<DefinitionHash>,
        /// The id of its manifest, as it is on record; as it is offered, where it is new.
        6 => pub manifest: ObjectId,
        /// How it stands: [`Changed`](Standing::Changed) where only another definition than that on
        /// record is offered, [`New`](Standing::New) where it is not on record.
        7 => pub standing: Standing,
        /// The id of what [`accept`](crate::Runtime::accept) would put on record: the newest
        /// offer that is not as the manifest on record.
        8 => pub offered: Option<ObjectId>,
        /// True if the server or a connected process runs it.
        9 => pub provided: bool,
        /// True if a connected process runs it, and not the server's kernel.
        10 => pub delegated: bool,
    }
}

shape! {
    /// A tool whole.
    pub struct ToolDetail {
        /// How it stands.
        1 => pub info: ToolInfo,
        /// Its manifest, as it is on record.
        2 => pub manifest: Manifest,
        /// The manifest that `info.offered` is the id of.
        3 => pub offered: Option<Manifest>,
    }
}

code! {
    /// Which tools are meant.
    pub enum Whose {
        /// Tools that the server itself runs.
        Holders = 1 "holders",
        /// All.
        All = 2 "all",
    }
}

shape! {
    /// A token and its standing.
    pub struct TokenInfo {
        /// The id.
        1 => pub id: TokenId,
        /// The agent that may use it.
        2 => pub agent: AgentId,
        /// The record that registered it.
        3 => pub issued: Seq,
        /// When it ends.
        4 => pub expires: UnixMillis,
        /// True if it was revoked, or counts as revoked.
        5 => pub revoked: bool,
        /// The tools that it grants.
        6 => pub tools: Vec<ToolId>,
        /// Its limits.
        7 => pub limits: Amounts,
        /// The amounts used.
        8 => pub used: Amounts,
        /// The amounts reserved for calls in flight.
        9 => pub held: Amounts,
        /// The amounts left.
        10 => pub left: Amounts,
        /// True if a measurement or a charge has exhausted it: it lets no call through.
        11 => pub exhausted: bool,
        /// The label with which its sessions begin.
        12 => pub label: Label,
        /// Whether it can be used.
        13 => pub standing: TokenStanding,
    }
}

shape! {
    /// A token whole.
    pub struct TokenDetail {
        /// Its standing, at that time.
        1 => pub info: TokenInfo,
        /// What was signed.
        2 => pub body: TokenBody,
        /// From then on it counts as revoked, unless it is renewed before.
        3 => pub renew_by: Option<UnixMillis>,
        /// From then on it needs a newer list of revocations.
        4 => pub fresh_until: Option<UnixMillis>,
        /// When it stood so, in kernel time.
        5 => pub at: UnixMillis,
    }
}

code! {
    /// Whether a token can be used; the first that holds.
    pub enum TokenStanding {
        /// It, or an ancestor, was revoked.
        Revoked = 1 "revoked",
        /// It was not renewed in time: it counts as revoked.
        Lapsed = 2 "lapsed",
        /// Its time is over.
        Expired = 3 "expired",
        /// Its time has not come.
        Early = 4 "not_yet",
        /// It needs a newer list of revocations.
        Stale = 5 "stale",
        /// It lets no more calls through.
        Spent = 6 "spent",
        /// It can be used.
        Live = 7 "live",
    }
}

impl TokenStanding {
    /// Of a token at a time.
    pub fn of(token: &TokenView<'_>, now: UnixMillis) -> Self {
        if token.revoked {
            Self::Revoked
        } else if token.is_revoked(now) {
            Self::Lapsed
        } else if now >= token.body.expires {
            Self::Expired
        } else if now < token.body.not_before {
            Self::Early
        } else if token.fresh_until.is_some_and(|until| now >= until) {
            Self::Stale
        } else if token.exhausted || token.left.get(Dimension::Calls) == 0 {
            Self::Spent
        } else {
            Self::Live
        }
    }
}

shape! {
    /// An open session.
    pub struct SessionInfo {
        /// The record that opened it.
        1 => pub number: Seq,
        /// The agent.
        2 => pub agent: AgentId,
        /// The token.
        3 => pub token: TokenId,
        /// The label of everything that it has been given.
        4 => pub label: Label,
    }
}

shape! {
    /// A call that runs.
    pub struct Running {
        /// Its intent.
        1 => pub intent: Seq,
        /// The tool.
        2 => pub tool: ToolId,
        /// The agent.
        3 => pub agent: AgentId,
        /// Since when, in kernel time.
        4 => pub since: UnixMillis,
    }
}

impl TokenInfo {
    fn of(token: &TokenView<'_>, now: UnixMillis) -> Self {
        Self {
            id: token.id,
            agent: token.body.agent.clone(),
            issued: token.issued,
            expires: token.body.expires,
            revoked: token.is_revoked(now),
            tools: token.body.grants.iter().map(|(tool, _)| tool.clone()).collect(),
            limits: *token.body.budget.amounts(),
            used: token.used,
            held: token.held,
            left: token.left,
            exhausted: token.exhausted,
            label: token.begins,
            standing: TokenStanding::of(token, now),
        }
    }

    /// True if no call can be let through by it, however long it stays valid.
    #[must_use]
    pub fn is_spent(&self) -> bool {
        self.exhausted || self.left.get(Dimension::Calls) == 0
    }

    /// True if it may let calls through at `now`.
    #[must_use]
    pub fn is_live(&self, now: UnixMillis) -> bool {
        !self.revoked && now < self.expires
    }
}

impl View {
    /// The tool of that name.
    pub fn tool(&self, tool: &ToolId) -> Option<&ToolInfo> {
        self.tools.iter().find(|info| info.tool == *tool)
    }

    /// The token of that id.
    pub fn token(&self, token: TokenId) -> Option<&TokenInfo> {
        self.tokens.iter().find(|info| info.id == token)
    }

    pub(crate) fn of(runtime: &Holding) -> Self {
        let (providers, counts) = (&*runtime.providers, runtime.counters().counts());
        let (delegated, awaiting) = (providers.delegated(), providers.awaiting());
        runtime.look(|kernel| Self::new(kernel, (delegated, awaiting), counts))
    }

    /// The view of one agent, and of one requested token of it. It leaves out the freezes of other
    /// agents, so that the freeze that stops this one always fits.
    pub(crate) fn of_agent(runtime: &Holding, agent: &AgentId, token: Option<TokenId>) -> Self {
        let (providers, counts) = (&*runtime.providers, runtime.counters().counts());
        let (delegated, awaiting) = (providers.delegated(), providers.awaiting());
        runtime.look(|kernel| {
            let mut view = Self::new(kernel, (delegated, awaiting), counts);
            let concerns = |freeze: &Freeze| {
                freeze.target == FreezeTarget::Tool || choice::stops(freeze, agent)
            };
            let frozen: Vec<Freeze> = kernel.frozen().into_iter().filter(concerns).collect();
            view.frozen_in_all = count(frozen.len());
            view.frozen = frozen.into_iter().take(VIEW_MAX).collect();
            view.tokens = shown(kernel, |token| token.body.agent == *agent);
            if let Some(asked) = token.filter(|id| view.token(*id).is_none()) {
                let asked = kernel.token(&asked);
                view.tokens.extend(asked.map(|token| TokenInfo::of(&token, kernel.now())));
            }
            view.tokens_in_all = count(view.tokens.len());
            let sessions = || kernel.sessions().filter(|session| *session.agent == *agent);
            view.sessions_in_all = count(sessions().count());
            let newest = kernel.sessions().rev().filter(|session| *session.agent == *agent);
            view.sessions = newest.take(VIEW_MAX).map(|one| SessionInfo::of(&one)).collect();
            view
        })
    }

    fn new(kernel: &Kernel, (delegated, awaiting): Offered, counts: Counts) -> Self {
        let delegated = delegated.into_iter().map(|(manifest, offers)| (manifest.tool, offers));
        let delegated: BTreeMap<ToolId, Vec<Offer>> = delegated.collect();
        let frozen = kernel.frozen();
        Self {
            home: kernel.home(),
            head: kernel.head().seq,
            now: kernel.now(),
            policy: kernel.policy_hash(),
            shadow: kernel.shadow_hash(),
            frozen_in_all: count(frozen.len()),
            frozen: frozen.into_iter().take(VIEW_MAX).collect(),
            tools: tools(kernel, &delegated, &awaiting),
            tools_in_all: count(kernel.manifests().count().saturating_add(awaiting.len())),
            tokens: tokens(kernel),
            tokens_in_all: count(kernel.token_count()),
            sessions: sessions(kernel),
            sessions_in_all: count(kernel.sessions().len()),
            running: kernel
                .running()
                .filter_map(|(intent, since, fields)| running(intent, since, fields))
                .take(VIEW_MAX)
                .collect(),
            running_in_all: count(kernel.running().count()),
            counts,
        }
    }
}

impl Inspection {
    /// All tokens, in the order in which they were registered, as they stand at that time.
    pub fn tokens(&self, now: UnixMillis) -> Vec<TokenInfo> {
        self.kernel().tokens().map(|token| TokenInfo::of(&token, now)).collect()
    }

    /// The tokens whose ids begin with these hexadecimal digits, whole, as they stand at that time:
    /// two of them at most.
    pub fn tokens_named(&self, digits: &str, at: UnixMillis) -> Vec<TokenDetail> {
        TokenDetail::named(self.kernel(), digits, at, usize::MAX)
    }

    /// The view that the log gives: no tool is offered, and all counters are zero.
    pub fn view(&self) -> View {
        View::new(self.kernel(), (self.providers.delegated(), Vec::new()), Counts::default())
    }

    /// One of its tools, whole, by its id or an alias.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where there is no such tool.
    pub fn tool(&self, tool: &ToolId) -> Result<ToolDetail, Error> {
        ToolDetail::new(self.kernel(), (self.providers.delegated(), Vec::new()), tool)
    }
}

impl ToolInfo {
    pub(crate) fn of(manifest: &Manifest, offers: Option<&Vec<Offer>>) -> Self {
        let changed = offers.is_some_and(|offers| {
            !offers.is_empty() && offers.iter().all(|offer| offer.standing != Standing::Ready)
        });
        Self {
            tool: manifest.tool.clone(),
            effect: manifest.effect,
            label: manifest.label,
            title: cut(&manifest.title),
            definition: manifest.definition,
            manifest: manifest.id(),
            standing: if changed { Standing::Changed } else { Standing::Ready },
            offered: to_accept(manifest, offers).map(|offered| offered.id()),
            provided: offers.is_none_or(|offers| !offers.is_empty()),
            delegated: offers.is_some(),
        }
    }

    /// One that is not on record: there is but what is offered.
    fn awaiting(manifest: &Manifest) -> Self {
        let (standing, offered) = (Standing::New, Some(manifest.id()));
        let (provided, delegated) = (true, true);
        Self { standing, offered, provided, delegated, ..Self::of(manifest, None) }
    }
}

impl ToolDetail {
    /// The home's tool of that id.
    pub(crate) fn of(runtime: &Holding, tool: &ToolId) -> Result<Self, Error> {
        let providers = &*runtime.providers;
        let offered = (providers.delegated(), providers.awaiting());
        runtime.look(|kernel| Self::new(kernel, offered, tool))
    }

    fn new(kernel: &Kernel, (delegated, awaiting): Offered, tool: &ToolId) -> Result<Self, Error> {
        let got = || Error::NoSuch { what: "the tool", got: tool.as_str().to_owned() };
        if let Some(new) = awaiting.into_iter().find(|new| new.tool == *tool) {
            return Ok(Self {
                info: ToolInfo::awaiting(&new),
                manifest: new.clone(),
                offered: Some(new),
            });
        }
        let by_id = kernel.manifests().find(|manifest| manifest.tool == *tool);
        let called = |manifest: &&Manifest| manifest.aliases.contains(tool);
        let manifest = by_id.or_else(|| kernel.manifests().find(called));
        let manifest = manifest.ok_or_else(got)?.clone();
        let offers = delegated.into_iter().find(|(known, _)| known.tool == manifest.tool);
        let offers = offers.map(|(_, offers)| offers);
        let info = ToolInfo::of(&manifest, offers.as_ref());
        let offered = to_accept(&manifest, offers.as_ref());
        Ok(Self { info, manifest, offered })
    }
}

/// The manifests on record, in the order of the tools' names: as many as an answer can hold.
pub(crate) fn manifests(runtime: &Holding, whose: Whose) -> Vec<Manifest> {
    let delegated = match whose {
        Whose::All => BTreeSet::new(),
        Whose::Holders => {
            runtime.delegated().into_iter().map(|(manifest, _)| manifest.tool).collect()
        }
    };
    let own = |manifest: &&Manifest| !delegated.contains(&manifest.tool);
    let mut manifests: Vec<Manifest> =
        runtime.look(|kernel| kernel.manifests().filter(own).cloned().collect());
    manifests.sort_by(|one, other| one.tool.cmp(&other.tool));
    let size = |manifest: &Manifest| manifest.to_bytes().len();
    let fit = fitting(manifests.iter().map(size), MANIFESTS_BYTES_MAX);
    manifests.truncate(fit);
    manifests
}

/// The manifest to put on record: the offer with an operator's statements.
fn to_accept(on_record: &Manifest, offers: Option<&Vec<Offer>>) -> Option<Manifest> {
    let newest_first = offers.into_iter().flat_map(|offers| offers.iter().rev());
    let mut carried = newest_first.map(|offer| carried(offer.manifest.clone(), on_record));
    carried.find(|offered| offered != on_record)
}

/// How many of them, from the first on, have no more than `most` bytes together.
fn fitting(sizes: impl Iterator<Item = usize>, most: usize) -> usize {
    let sum = |sum: &mut usize, size: usize| {
        *sum = sum.saturating_add(size);
        Some(*sum)
    };
    sizes.scan(0, sum).take_while(|sum| *sum <= most).count()
}

fn cut(title: &str) -> String {
    let end = title.floor_char_boundary(TITLE_BYTES_MAX);
    title.get(..end).unwrap_or_default().to_owned()
}

fn tools(
    kernel: &Kernel,
    delegated: &BTreeMap<ToolId, Vec<Offer>>,
    awaiting: &[Manifest],
) -> Vec<ToolInfo> {
    let info = |manifest: &Manifest| ToolInfo::of(manifest, delegated.get(&manifest.tool));
    let on_record = kernel.manifests().map(info);
    let mut tools: Vec<ToolInfo> =
        on_record.chain(awaiting.iter().map(ToolInfo::awaiting)).collect();
    tools.sort_by(|one, other| one.tool.cmp(&other.tool));
    tools.truncate(VIEW_TOOLS_MAX);
    tools
}

/// No more than so many tokens are looked through: nobody can call meanwhile.
pub(crate) const TOKENS_SCANNED_MAX: usize = 65_536;

fn tokens(kernel: &Kernel) -> Vec<TokenInfo> {
    shown(kernel, |_| true)
}

/// The newest of those that are meant, as many as an answer holds.
fn shown(kernel: &Kernel, meant: impl Fn(&TokenView<'_>) -> bool) -> Vec<TokenInfo> {
    let size = |token: &TokenView<'_>| {
        let names = token.body.grants.iter().map(|(tool, _)| tool.as_str().len());
        names.fold(0, |sum: usize, name| sum.saturating_add(name).saturating_add(2))
    };
    let newest = kernel.tokens().rev().take(TOKENS_SCANNED_MAX).filter(meant);
    let newest: Vec<TokenView<'_>> = newest.take(VIEW_MAX).collect();
    let fit = fitting(newest.iter().map(size), GRANTED_BYTES_MAX);
    newest.iter().take(fit).map(|token| TokenInfo::of(token, kernel.now())).collect()
}

fn sessions(kernel: &Kernel) -> Vec<SessionInfo> {
    kernel.sessions().rev().take(VIEW_MAX).map(|session| SessionInfo::of(&session)).collect()
}

impl SessionInfo {
    fn of(session: &SessionView<'_>) -> Self {
        Self {
            number: session.number,
            agent: session.agent.clone(),
            token: session.token,
            label: session.label,
        }
    }
}

fn running(intent: Seq, since: UnixMillis, fields: &CallFields) -> Option<Running> {
    let (tool, agent) = (fields.tool_id.clone()?, fields.agent_id.clone()?);
    Some(Running { intent, tool, agent, since })
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}
