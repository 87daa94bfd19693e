//! Calls that wait for a person, and what was answered.

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::{
    ASK_LIFE_MS, AgentId, ApprovalAnswer, ApprovalBody, ApprovalChannel, Ask, CallFields, Control,
    ControlBody, Leaf, ObligationKind, Precondition, PublicKey, RecordKind, Role, SETS_MAX, Seq,
    TokenId, UnixMillis, Verdict,
};

use super::sets::{Bounds, Of, Set, Terms};
use super::{Account, Entry, Fault, Ledger, Phase, Source};

/// The means that count where the policy lets no other do.
const MEANS: [ApprovalChannel; 4] = [
    ApprovalChannel::Terminal,
    ApprovalChannel::Command,
    ApprovalChannel::File,
    ApprovalChannel::Signer,
];

/// A call that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    of: Of,
    eligible: Vec<PublicKey>,
    threshold: u64,
    means: Vec<ApprovalChannel>,
    expires: UnixMillis,
    /// True if a person of a level was asked.
    elevated: bool,
    preconditions: Vec<Precondition>,
    bounds: Bounds,
    approved: Vec<PublicKey>,
    agreed: Option<Terms>,
    answer: Option<Given>,
}

/// How it was answered.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// It may run until then, by that record.
    Yes(Seq, UnixMillis),
    No,
}

/// Most requests of one agent that wait, and of all agents.
const OF_AGENT_MAX: usize = 32;
const ASKS_MAX: usize = 1_024;

/// The requests that are not over, by the leaves of their records. Nothing here goes through all of
/// them: a log may have millions.
#[derive(Clone, Debug, Default)]
pub(super) struct Asks {
    by_leaf: BTreeMap<Leaf, Waiting>,
    by_expiry: BTreeSet<(UnixMillis, Leaf)>,
    /// Those that were approved and have not run, by the last approval.
    granted: BTreeMap<Seq, Leaf>,
    /// How many were not denied, of each agent and of all.
    of_agent: BTreeMap<Option<AgentId>, usize>,
    waiting: usize,
    /// How many were passed over in all.
    pub(super) passed_over: u64,
}

impl Asks {
    fn insert(&mut self, leaf: Leaf, waiting: Waiting) {
        self.remove(&leaf);
        self.by_expiry.insert((waiting.expires, leaf));
        let of_agent = self.of_agent.entry(waiting.of.agent.clone()).or_default();
        *of_agent = of_agent.saturating_add(1);
        self.waiting = self.waiting.saturating_add(1);
        self.by_leaf.insert(leaf, waiting);
    }

    fn remove(&mut self, leaf: &Leaf) -> Option<Waiting> {
        let waiting = self.by_leaf.remove(leaf)?;
        self.by_expiry.remove(&(waiting.expires, *leaf));
        match waiting.answer {
            Some(Given::No) => return Some(waiting),
            Some(Given::Yes(by, _)) => drop(self.granted.remove(&by)),
            None => {}
        }
        self.no_longer_waits(&waiting.of.agent);
        Some(waiting)
    }

    fn no_longer_waits(&mut self, agent: &Option<AgentId>) {
        self.waiting = self.waiting.saturating_sub(1);
        if let Some(of_agent) = self.of_agent.get_mut(agent) {
            *of_agent = of_agent.saturating_sub(1);
            if *of_agent == 0 {
                self.of_agent.remove(agent);
            }
        }
    }

    /// Forgets those that are over.
    fn expire(&mut self, now: UnixMillis) {
        while let Some((expires, leaf)) = self.by_expiry.first().copied() {
            if now < expires {
                return;
            }
            self.remove(&leaf);
            self.passed_over = self.passed_over.saturating_add(1);
        }
    }

    /// True if an agent may have one more that waits.
    fn has_room(&self, agent: &Option<AgentId>) -> bool {
        let of_agent = self.of_agent.get(agent).copied().unwrap_or_default();
        of_agent < OF_AGENT_MAX && self.waiting < ASKS_MAX
    }

    /// A request was answered for good.
    fn answer(&mut self, leaf: Leaf, given: Given) {
        let Some(waiting) = self.by_leaf.get_mut(&leaf) else { return };
        waiting.answer = Some(given);
        match given {
            Given::Yes(by, _) => drop(self.granted.insert(by, leaf)),
            Given::No => {
                let agent = waiting.of.agent.clone();
                self.no_longer_waits(&agent);
            }
        }
    }
}

impl Ledger {
    pub(super) fn ask(&mut self, entry: &mut Entry<'_>, ask: Ask, leaf: Leaf) {
        let call = &ask.call;
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        let verdict = call.decision.as_ref().map(|decision| decision.verdict);
        let whole = verdict == Some(Verdict::Ask)
            && call.args_hash.is_some()
            && call.result_hash.is_some()
            && call.provenance.is_some()
            && call.call_hash.is_some()
            && call.manifest.is_some()
            && call.state_snapshot_id.is_some()
            && call.held == Default::default()
            && call.enforcement.is_none();
        entry.expect(whole, Fault::AskForm);
        let Some(Some(account)) = self.fee(entry, call) else {
            return entry.fault(Fault::AskForm);
        };
        self.asked(entry, account, call);
        self.came_from(entry, call);
        self.decided(entry, call);
        let tool = call.tool_id.as_ref().and_then(|tool| self.tools.get(tool));
        let effect = tool.map(|tool| tool.manifest.effect);
        let runs_code = tool.is_some_and(|tool| tool.manifest.runs_code());
        let fits = effect == Some(ask.effect) && ask.call_effect <= ask.effect;
        entry.expect(fits, Fault::Tool);
        let session = call.session.and_then(|number| self.sessions.get(&number));
        let given = session.map(|session| self.label_of(session));
        entry.expect(given == Some(ask.label), Fault::Label);
        let single = session.is_some_and(|session| session.row.aggregate.is_none());
        entry.expect(single, Fault::Aggregate);
        entry.expect(self.is_for(&ask, account, entry.time), Fault::AskForm);
        self.accounts.pay(account, &call.used);
        self.asks.expire(entry.time);
        entry.expect(self.asks.has_room(&call.agent_id), Fault::AskForm);
        let (bounds, elevated) = (Bounds::of(&ask, runs_code), asks_for_a_level(&ask.call));
        let Ask { call, eligible, threshold, means, expires, preconditions, .. } = ask;
        let waiting = Waiting {
            of: Of::call(&call),
            eligible,
            threshold,
            means,
            expires,
            elevated,
            preconditions,
            bounds,
            approved: Vec::new(),
            agreed: None,
            answer: None,
        };
        self.asks.insert(leaf, waiting);
    }

    /// It names who may answer, by which means and until when, as it must.
    fn is_for(&self, ask: &Ask, account: Account, now: UnixMillis) -> bool {
        let holders = self.accounts.holders(account);
        let Some(set) = self.roles.set(Role::Approver) else { return false };
        let eligible = set.keys().filter(|key| !holders.contains(key));
        let eligible: Vec<PublicKey> = eligible.collect();
        let end = self.accounts.body(account).map(|body| body.expires);
        // Of a level a policy may name fewer keys and means, and ask for more of them.
        let fewer = asks_for_a_level(&ask.call);
        let some = |all: &[PublicKey]| eligible.iter().filter(|key| all.contains(key)).count();
        let named = ask.eligible == eligible
            || (fewer && some(&ask.eligible) == ask.eligible.len() && ask.eligible.is_sorted());
        let many = ask.threshold == set.threshold || (fewer && ask.threshold > set.threshold);
        // What the policy lets a client's own window do is not in the log: one is no more than the
        // usual, where one approval is enough and no level is asked for.
        let usual = |one: &&ApprovalChannel| !one.is_a_clients();
        let client = ask.threshold == 1 && ask.means.iter().filter(usual).eq(&MEANS);
        let ordered = ask.means.is_sorted_by(|one, next| one.code() < next.code());
        let some = |one: &ApprovalChannel| MEANS.contains(one);
        let meant = match fewer {
            true => !ask.means.is_empty() && ask.means.iter().all(some),
            false => ask.means == MEANS || (client && ordered),
        };
        named
            && many
            && meant
            && u64::try_from(ask.eligible.len()).unwrap_or(0) >= ask.threshold
            && Some(ask.expires) == end.map(|end| now.plus(ASK_LIFE_MS).min(end))
    }

    pub(super) fn approval<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        self.signed(entry, RecordKind::Approval, control, source)?;
        let Ok(body) = ApprovalBody::from_bytes(&control.body) else {
            entry.fault(Fault::BadControl);
            return Ok(());
        };
        match &control.signatures[..] {
            [signed] => self.answered(entry, &body, signed.key),
            _ => entry.fault(Fault::Approval),
        }
        Ok(())
    }

    fn answered(&mut self, entry: &mut Entry<'_>, body: &ApprovalBody, key: PublicKey) {
        let now = entry.time;
        let later = body.expires.is_none_or(|until| now < until);
        let bare = body.scopes.is_none() && body.uses.is_none();
        let formed = match body.answer {
            ApprovalAnswer::Once => bare && later,
            ApprovalAnswer::Deny => bare && body.expires.is_none(),
            ApprovalAnswer::Set => body.uses.is_some() && later && !body.means.is_a_clients(),
        };
        self.passes(self.sets.len());
        let set = self.sets.iter().find(|(_, set)| set.leaf == body.ask && now < set.until);
        if let Some((by, set)) = set.map(|(by, set)| (*by, set)) {
            // A no of somebody who might have given it ends it.
            let ends = body.answer == ApprovalAnswer::Deny && set.eligible.contains(&key);
            entry.expect(formed, Fault::BadControl);
            entry.expect(ends, Fault::Approval);
            self.sets.remove(&by);
            return;
        }
        let permitted = self.asks.by_leaf.get(&body.ask).is_none_or(|waiting| {
            let set = body.answer == ApprovalAnswer::Set;
            let session = waiting.bounds.session();
            let open = session.is_some_and(|session| self.sessions.contains_key(&session));
            let permit = || waiting.bounds.permit(waiting.of.tool.as_ref(), body, open);
            waiting.means.contains(&body.means) && (!set || permit())
        });
        entry.expect(formed && permitted, Fault::BadControl);
        let Some(waiting) = self.asks.by_leaf.get_mut(&body.ask) else {
            return entry.fault(Fault::Approval);
        };
        let unanswered = waiting.answer.is_none();
        let counts = unanswered
            && now < waiting.expires
            && waiting.eligible.contains(&key)
            && !waiting.approved.contains(&key);
        entry.expect(counts, Fault::Approval);
        // A second answer is a fault, and changes nothing.
        if !unanswered {
            return;
        }
        if body.answer == ApprovalAnswer::Deny {
            return self.asks.answer(body.ask, Given::No);
        }
        waiting.approved.push(key);
        let said = Terms::of(body);
        let terms = match waiting.agreed.take() {
            Some(agreed) => agreed.and(said),
            None => Some(said),
        };
        let Some(terms) = terms else { return entry.fault(Fault::Approval) };
        if u64::try_from(waiting.approved.len()).unwrap_or(u64::MAX) < waiting.threshold {
            waiting.agreed = Some(terms);
        } else if terms.is_set() {
            if let Some(waiting) = self.asks.remove(&body.ask) {
                self.begin_set(entry, body.ask, waiting, &terms);
            }
        } else {
            let until = terms.expires.map_or(waiting.expires, |end| end.min(waiting.expires));
            self.asks.answer(body.ask, Given::Yes(entry.seq, until));
        }
    }

    /// A call that was let through by an approval uses it up: one for this agent and this tool,
    /// as it was when a person was asked.
    pub(super) fn used_up(
        &mut self,
        entry: &mut Entry<'_>,
        approval: Seq,
        call: &CallFields,
        preconditions: &[Precondition],
    ) {
        let account = call.capability_token_id.and_then(|token| self.accounts.find(&token));
        let holders = account.map(|account| self.accounts.holders(account)).unwrap_or_default();
        let stands = |waiting: &&Waiting| match waiting.answer {
            Some(Given::Yes(_, until)) => entry.time < until,
            _ => false,
        };
        let leaf = self.asks.granted.get(&approval).copied();
        let found = leaf.and_then(|leaf| Some((leaf, self.asks.by_leaf.get(&leaf)?)));
        let Some((leaf, waiting)) = found.filter(|(_, waiting)| stands(waiting)) else {
            entry.expect(preconditions.is_empty(), Fault::Approval);
            return self.use_set(entry, approval, call);
        };
        let elevated = waiting.elevated && waiting.bounds.policy() == call.policy_hash;
        let asked = waiting.bounds.token().and_then(|token| self.accounts.find(&token));
        let both = account.zip(asked);
        let same = waiting.of == Of::call(call)
            && both.is_some_and(|(token, asked)| self.accounts.renews(token, asked))
            // Nor by who holds the token that it goes on with.
            && !holders.iter().any(|holder| waiting.eligible.contains(holder))
            && (elevated || !asks_for_a_level(call))
            && waiting.preconditions == preconditions;
        entry.expect(same, Fault::Approval);
        self.asks.remove(&leaf);
    }

    fn begin_set(&mut self, entry: &mut Entry<'_>, leaf: Leaf, waiting: Waiting, terms: &Terms) {
        let Waiting { of, eligible, bounds, .. } = waiting;
        let account = bounds.token().and_then(|token| self.accounts.find(&token));
        let end = account.and_then(|account| self.accounts.body(account)).map(|body| body.expires);
        let now = entry.time;
        let begun = end.and_then(|end| Set::begin(of, leaf, eligible, bounds, end, now, terms));
        let Some(set) = begun else { return entry.fault(Fault::Approval) };
        self.passes(self.sets.len());
        self.sets.retain(|_, set| now < set.until);
        self.sets.insert(entry.seq, set);
        while self.sets.len() > SETS_MAX {
            self.sets.pop_first();
        }
    }

    /// A call was let through by a set.
    fn use_set(&mut self, entry: &mut Entry<'_>, by: Seq, call: &CallFields) {
        let given = call.session.and_then(|number| self.sessions.get(&number));
        let given = given.map(|session| self.label_of(session));
        let Some(set) = self.sets.get_mut(&by) else {
            return entry.fault(Fault::Approval);
        };
        let account = |token: Option<TokenId>| token.and_then(|id| self.accounts.find(&id));
        let both = account(call.capability_token_id).zip(account(set.token()));
        let goes_on = both.is_some_and(|(token, asked)| {
            let holders: Vec<PublicKey> = self.accounts.holders(token);
            self.accounts.renews(token, asked) && !set.is_answered_by(&holders)
        });
        entry.expect(set.spend(call, goes_on, given, entry.time), Fault::Approval);
        if set.is_used_up() {
            self.sets.remove(&by);
        }
    }

    /// Sets that were to end with a session, or with all of them, end.
    pub(super) fn end_sets(&mut self, session: Option<Seq>) {
        self.passes(self.sets.len());
        self.sets.retain(|_, set| !set.ends_with(session));
    }
}

/// True if the policy asked for a person of a level.
pub(super) fn asks_for_a_level(call: &CallFields) -> bool {
    let asked = call.decision.as_ref().map_or(&[][..], |said| &said.obligations);
    asked.iter().any(|asked| asked.kind == ObligationKind::Approval)
}
