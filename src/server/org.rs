//! The requests of an organisation's tools to the server.
//!
//! The tools are made before there is a kernel, and belong to it; so what they ask is here, and is
//! told of the home once that is held. It keeps no home alive.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use syscap_format::{AgentId, Label, Reason, TokenBody, TokenId, ToolId};
use syscap_kernel::{Clock, Kernel, Registry};
use syscap_syscalls::beneath::Opener;
use syscap_syscalls::org::{Listed, NotHandedOn, Org, Page, Part, Registrar, Seen};

use crate::error::Error;
use crate::server::{Holding, WeakHolding};

/// Most tokens that are looked at for one list of agents.
const LOOKS_MAX: usize = 10_000;

/// The office that the tools of one kernel ask.
#[derive(Default)]
pub(crate) struct Office {
    /// The tools by all their names, as they were when the home was opened.
    tools: OnceLock<BTreeMap<ToolId, ToolId>>,
    home: Mutex<At>,
    index: Mutex<Index>,
    /// Held from looking whether there is such an agent until it is there.
    making: Mutex<()>,
}

/// How far the home has come.
#[derive(Default)]
enum At {
    /// It is not open, or is only looked at.
    #[default]
    Nowhere,
    /// It is being opened: what was handed on, by token and nonce.
    Opening(BTreeSet<(TokenId, [u8; 16])>),
    /// It is held.
    Held(WeakHolding),
}

impl Office {
    /// All tools are there.
    pub(crate) fn has_tools(&self, registry: &Registry) {
        let names = registry.manifests().flat_map(|manifest| {
            let all = std::iter::once(&manifest.tool).chain(&manifest.aliases);
            all.map(|name| (name.clone(), manifest.tool.clone()))
        });
        self.tools.get_or_init(|| names.collect());
    }

    /// A home is being opened: runs that were broken off are about to be asked after.
    pub(crate) fn opens(&self, kernel: &Kernel) {
        if kernel.open_intents().is_empty() {
            return;
        }
        let parts =
            kernel.tokens().filter_map(|token| Some((token.body.parent?, token.body.nonce)));
        *self.at() = At::Opening(parts.collect());
    }

    /// The home is held.
    pub(crate) fn holds(&self, holding: &Holding) {
        *self.at() = At::Held(holding.weak());
    }

    fn holding(&self) -> Option<Holding> {
        match &*self.at() {
            At::Held(holding) => holding.upgrade(),
            At::Nowhere | At::Opening(_) => None,
        }
    }

    fn at(&self) -> MutexGuard<'_, At> {
        // Every change is one step.
        self.home.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The agents, as of all tokens that there are.
    fn index(&self, kernel: &Kernel) -> MutexGuard<'_, Index> {
        let mut index = self.index.lock().unwrap_or_else(PoisonError::into_inner);
        index.catch_up(kernel);
        index
    }
}

impl Registrar for Office {
    fn tool(&self, called: &ToolId) -> Option<ToolId> {
        self.tools.get()?.get(called).cloned()
    }

    fn hand_on(&self, part: &Part) -> Result<TokenId, NotHandedOn> {
        let holding = self.holding().ok_or(NotHandedOn::Unsigned)?;
        let _one_at_a_time = self.making.lock().unwrap_or_else(PoisonError::into_inner);
        if holding.look(|kernel| self.index(kernel).is_taken(kernel, part)) {
            return Err(NotHandedOn::Exists);
        }
        holding.hand_on(part).map_err(|error| match error {
            Error::Refused(why) if why.reason() == Reason::WrongIssuer => NotHandedOn::Unsigned,
            Error::Refused(why) => NotHandedOn::Refused(why),
            Error::Signer(_) => NotHandedOn::Unsigned,
            _ => NotHandedOn::Unknown,
        })
    }

    fn was_handed_on(&self, parent: &TokenId, nonce: &[u8; 16]) -> Option<bool> {
        match &*self.at() {
            At::Opening(parts) => Some(parts.contains(&(*parent, *nonce))),
            At::Nowhere | At::Held(_) => None,
        }
    }

    fn agents(&self, seen: &Seen) -> Option<Page> {
        let holding = self.holding()?;
        Some(holding.look(|kernel| self.index(kernel).page(kernel, seen)))
    }
}

/// The agents of a home: those that a token was ever for.
#[derive(Default)]
struct Index {
    last: Option<TokenId>,
    agents: BTreeMap<AgentId, Known>,
}

/// The facts about an agent.
#[derive(Default)]
struct Known {
    /// Its tokens, without some that have ended.
    live: Vec<TokenId>,
    /// True if it has, or had, a token that its parent agent did not delegate.
    apart: bool,
    /// What those had read who gave it its name.
    label: Label,
}

impl Known {
    /// Forgets the tokens that have ended: none of them comes back.
    fn forget_ended(&mut self, kernel: &Kernel) {
        let now = kernel.now();
        self.live.retain(|id| {
            kernel.token(id).is_some_and(|token| !token.is_revoked(now) && now < token.body.expires)
        });
    }
}

impl Index {
    /// Takes in the tokens that are new. None is ever dropped, and they stand in their order.
    fn catch_up(&mut self, kernel: &Kernel) {
        let last = self.last;
        for token in kernel.tokens().rev().take_while(|token| Some(token.id) != last) {
            if self.last == last {
                self.last = Some(token.id);
            }
            let apart = !is_handed_on(kernel, token.body);
            let known = self.agents.entry(token.body.agent.clone()).or_default();
            known.live.push(token.id);
            known.apart |= apart;
            known.label = known.label.join(token.body.label());
        }
    }

    /// True if an agent must not be created: it has a valid token, or had one from another source
    /// than its parent agent, which then must not read its memory.
    fn is_taken(&mut self, kernel: &Kernel, part: &Part) -> bool {
        let Some(known) = self.agents.get_mut(&part.agent) else { return false };
        known.forget_ended(kernel);
        known.apart || !known.live.is_empty()
    }

    fn page(&mut self, kernel: &Kernel, seen: &Seen) -> Page {
        let (mut agents, mut looks) = (Vec::new(), 0_usize);
        for agent in self.visible(seen) {
            if agents.len() >= seen.limit || looks > LOOKS_MAX {
                return Page { agents, more: true };
            }
            let standing = match self.agents.get_mut(&agent) {
                Some(known) if agent.is_within(&seen.by) => {
                    looks = looks.saturating_add(known.live.len());
                    known.forget_ended(kernel);
                    Some(standing(kernel, &known.live))
                }
                _ => None,
            };
            let label = self.agents.get(&agent).map_or(Label::PUBLIC, |known| known.label);
            agents.push(Listed { agent, standing, label });
        }
        Page { agents, more: false }
    }

    /// The first of those that somebody may see, and one more than is asked for.
    fn visible(&self, seen: &Seen) -> BTreeSet<AgentId> {
        let by = seen.by.as_str();
        // All that begins with `team/` stands before `team0`, the next after a slash.
        let (first, end) = (format!("{by}/"), format!("{by}0"));
        let from = if seen.after < first {
            Bound::Included(first.as_str())
        } else {
            Bound::Excluded(seen.after.as_str())
        };
        let is_after = |agent: &&AgentId| agent.as_str() > seen.after.as_str();
        let below = (seen.after < end).then(|| {
            self.agents
                .range::<str, _>((from, Bound::Excluded(end.as_str())))
                .map(|(agent, _)| agent)
        });
        let named = seen.others.iter().map(String::as_str).chain([by]);
        let named =
            named.filter_map(|name| self.agents.get_key_value(name).map(|(agent, _)| agent));
        let count = seen.limit.saturating_add(1);
        let mut visible: BTreeSet<AgentId> = named.filter(is_after).cloned().collect();
        visible.extend(below.into_iter().flatten().take(count).cloned());
        while visible.len() > count {
            visible.pop_last();
        }
        visible
    }
}

/// True if the parent agent delegated the token: the one that created the agent, and not the
/// operator.
fn is_handed_on(kernel: &Kernel, body: &TokenBody) -> bool {
    let Some((above, _)) = body.agent.as_str().rsplit_once('/') else { return false };
    let mut parent = body.parent.and_then(|parent| kernel.token(&parent));
    while let Some(token) = parent {
        if token.body.agent.as_str() == above {
            return true;
        }
        parent = token.body.parent.and_then(|parent| kernel.token(&parent));
    }
    false
}

fn standing(kernel: &Kernel, live: &[TokenId]) -> (u64, BTreeSet<ToolId>) {
    let tokens = live.iter().filter_map(|id| kernel.token(id));
    let tools = tokens.flat_map(|token| token.body.grants.iter().map(|(tool, _)| tool));
    (u64::try_from(live.len()).unwrap_or(u64::MAX), tools.cloned().collect())
}

/// Adds the tools of an organisation.
pub(crate) fn add_tools(
    registry: &mut Registry,
    base: &Arc<dyn Opener>,
    clock: &Arc<dyn Clock>,
    office: &Arc<Office>,
) -> Result<(), Error> {
    let registrar: Arc<dyn Registrar> = office.clone();
    Ok(Org::over(Arc::clone(base), Arc::clone(clock), registrar).add_to(registry)?)
}
