//! The agents' states: proposals of changes, and the values that lie in the vault.

use alloc::collections::btree_map::Entry;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::call::context::Context;
use crate::call::diagnostics::token_has_room;
use crate::events::{Ack, Proposal};
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::state::fold::State;
use crate::store::Store;
use crate::vault::vault_entry;
use syscap_format::{
    AgentId, Amounts, BodyView, CHANGES_MAX, CallFields, Canonical, Commitment, Dimension,
    FACT_BYTES_MAX, FACTS_MAX, FactId, FactKey, Facts, Item, ItemKind, Namespace, Object,
    PROVENANCE_INPUTS_MAX as INPUTS_MAX, Profile, Provenance, Reason, Refused, Seq, Snapshot,
    Source, StateChange, TokenFlags, VaultEntry, VaultWrite, changes_hash, fact_id,
};

/// A proposal that has been checked.
struct Change {
    set: BTreeMap<FactKey, FactId>,
    removed: Vec<FactKey>,
    next: Snapshot,
}

impl Kernel {
    /// Checks a proposal, and moves the agent's head.
    pub(crate) fn propose(&mut self, proposal: Proposal) -> Result<(), Halt> {
        let Proposal { ticket, session, writer, salts, .. } = proposal;
        let mut fields = CallFields::unknown();
        let Change { set, removed, next } = match self.proposed(&proposal, &mut fields) {
            Ok(change) => change,
            Err(refused) => {
                return self.refuse_proposal(ticket, session, &salts, fields, refused);
            }
        };
        self.close_aggregate(Some(session))?;
        fields.used = Amounts::ZERO.with(Dimension::Calls, 1);
        let (snapshot, number, agent) = (next.id(), next.number, next.agent.clone());
        let record = StateChange {
            call: fields,
            snapshot,
            number,
            writer,
            set: set.into_keys().collect(),
            removed,
        };
        let objects = [Object::snapshot(&next)].into();
        let (seq, _) = self.append_with(BodyView::State(&record), objects)?;
        let facts = self.facts.entry(agent).or_default();
        record.removed.iter().for_each(|key| facts.remove(key));
        for key in record.set {
            let value = proposal.changes.item().get(key.as_str()).map(Canonical::from);
            facts.set(key, value);
        }
        let changes = proposal.changes.as_bytes();
        self.pending.keep(VaultWrite::new(seq, Some(&salts), Some(changes), None));
        self.acknowledge(seq, ticket, Ack::State(snapshot, seq));
        Ok(())
    }

    fn proposed(&self, proposal: &Proposal, fields: &mut CallFields) -> Result<Change, Refused> {
        let context = self.context(proposal.session, proposal.writer);
        let context = context.ok_or_else(|| self.no_session())?;
        let (session, state) = (context.session, context.agent);
        fields.agent_id = Some(session.agent.clone());
        fields.session = Some(proposal.session);
        fields.policy_hash = self.state.policy;
        fields.capability_token_id = Some(session.token_id);
        fields.state_snapshot_id = Some(state.id());
        fields.args_hash = Some(changes_hash(&proposal.salts.args, proposal.changes.item()));
        let known = |input: &Seq| session.released(*input).is_some();
        fields.provenance = Some(Provenance {
            source: proposal.writer,
            time: Some(context.now),
            // What a record names, the home knows.
            inputs: proposal.inputs.iter().copied().filter(known).take(INPUTS_MAX).collect(),
            trace: None,
            claimed: None,
        });
        self.may_write(&context)?;
        if proposal.inputs.len() > INPUTS_MAX {
            return Err(Refused::new(Reason::BadFact).field("inputs"));
        }
        if !proposal.inputs.iter().all(known) {
            return Err(Refused::new(Reason::UnknownReference).field("inputs"));
        }
        if proposal.inputs.iter().any(|input| *input > context.durable) {
            return Err(Refused::new(Reason::ReferenceInFlight).field("inputs"));
        }
        if proposal.base.is_some_and(|base| base != state.id()) {
            let head = alloc::format!("{}", state.id());
            let got = proposal.base.map(|base| alloc::format!("{base}")).unwrap_or_default();
            let refused = Refused::new(Reason::StaleSnapshot).field("base").got(&got);
            return Err(refused.allowed(&head));
        }
        let (set, removed) = read(proposal)?;
        let is_goal = |key: &&FactKey| Namespace::of(key) == Some(Namespace::Goal);
        let goal = set.keys().chain(&removed).find(is_goal);
        if let Some(goal) = goal.filter(|_| self.grants_nothing(&context)) {
            let refused = Refused::new(Reason::Namespace).field(goal.as_str());
            return Err(refused.allowed("fact.NAME: this token grants no tool"));
        }
        let next = state.after(&set, &removed).ok_or_else(|| {
            let most = alloc::format!("at most {FACTS_MAX} facts in all");
            Refused::new(Reason::TooManyFacts).field("changes").allowed(&most)
        })?;
        Ok(Change { set, removed, next })
    }

    /// True if the session acts for its parent's agent by a token that grants no tool: it may not say
    /// what that agent is after, by which the policy judges the parent's calls.
    fn grants_nothing(&self, context: &Context<'_>) -> bool {
        let body = context.token.body;
        let parent = body.parent.and_then(|id| self.state.tokens.find(&id));
        let parent = parent.and_then(|parent| self.state.tokens.body(parent));
        body.grants.iter().next().is_none()
            && parent.is_some_and(|parent| parent.agent == body.agent)
    }

    /// The session's token is live, not for reading only and has a call left, and nobody has
    /// stopped the agent.
    fn may_write(&self, context: &Context<'_>) -> Result<(), Refused> {
        self.takes_work()?;
        context.is_live(None)?;
        if context.token.body.flags.has(TokenFlags::READ_ONLY) {
            return Err(Reason::ReadOnlyToken.into());
        }
        token_has_room(context, &Amounts::ZERO.with(Dimension::Calls, 1))
    }
}

/// The keys that are set, with their commitments, and those that are taken away.
type Changes = (BTreeMap<FactKey, FactId>, Vec<FactKey>);

fn read(proposal: &Proposal) -> Result<Changes, Refused> {
    let changes = proposal.changes.item();
    let bad = |field: &str| Refused::new(Reason::BadFact).field(field);
    if changes.kind() != ItemKind::Map || changes.count() == 0 {
        return Err(bad("changes").allowed("a map with at least one key"));
    }
    // A map that has keys of another type than text has no entries.
    if changes.entries().count() != changes.count() {
        return Err(bad("changes").allowed("text keys"));
    }
    // They are read back from the vault in this profile: what it refuses would be lost.
    if Item::check(changes.as_bytes(), Profile::DATA).is_err() {
        return Err(Refused::new(Reason::TooDeep).field("changes"));
    }
    if changes.count() > CHANGES_MAX {
        return Err(bad("changes").allowed(&alloc::format!("at most {CHANGES_MAX} keys")));
    }
    let (mut set, mut removed) = (BTreeMap::new(), BTreeSet::new());
    for (name, value) in changes.entries() {
        let key = FactKey::new(name).ok_or_else(|| bad(name).allowed("goal.NAME, fact.NAME"))?;
        if !Namespace::of(&key).is_some_and(|space| space.is_written_by(proposal.writer)) {
            let allowed = match proposal.writer {
                Source::Agent | Source::User => "goal.NAME",
                Source::Tool | Source::Encoder => "fact.NAME",
                Source::Observer => "nothing",
            };
            return Err(Refused::new(Reason::Namespace).field(name).allowed(allowed));
        }
        if value.is_null() {
            removed.insert(key);
            continue;
        }
        if value.as_bytes().len() > FACT_BYTES_MAX {
            let most = alloc::format!("at most {FACT_BYTES_MAX} bytes");
            return Err(bad(name).allowed(&most));
        }
        let id = fact_id(&proposal.salts.args, &key, value);
        set.insert(key, id);
    }
    Ok((set, removed.into_iter().collect()))
}

/// The values of all facts in force, as far as the vault has them and they are what the
/// snapshots commit to.
pub(crate) fn known_facts(
    state: &State,
    store: &mut dyn Store,
) -> Result<BTreeMap<AgentId, Facts>, Halt> {
    let mut all = BTreeMap::new();
    for (agent, state) in &state.agents {
        let mut facts = Facts::default();
        let mut rows: BTreeMap<Seq, VaultEntry> = BTreeMap::new();
        for (key, fact) in state.facts() {
            let row = match rows.entry(fact.written) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => {
                    place.insert(vault_entry(store, fact.written, fact.written)?)
                }
            };
            facts.set(key.clone(), row.committed(Commitment::Fact(fact.id, key)));
        }
        all.insert(agent.clone(), facts);
    }
    Ok(all)
}
