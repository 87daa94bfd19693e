//! The agents' states: proposals of changes, and the values that lie in the vault.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    vec::Vec,
};

use super::{Ack, Kernel, Ticket};
use crate::{
    call::Stopped,
    halt::Halt,
    state::{State, TokenIndex},
    store::{Store, vault_entry},
};
use syscap_format::{
    budget::{Amounts, Dimension},
    cbor::{Canonical, Item, Kind, Profile},
    facts::{Facts, Namespace},
    field::List,
    hash::{changes_hash, fact_id},
    id::{AgentId, FactId, FactKey, Seq, SnapshotId},
    limits::{CHANGES_MAX, FACT_BYTES_MAX, FACTS_MAX},
    object::Object,
    provenance::{Provenance, Source},
    reason::{Reason, Refused},
    record::{Body, CallFields, StateChange},
    snapshot::Snapshot,
    token::TokenFlags,
    vault::{CallSalts, VaultWrite},
};

/// A change to the state of a session's agent: a map from keys to values, null to take a key
/// away. It is made whole or not at all, recorded either way, and pays one of `calls`.
#[derive(Debug)]
pub struct Proposal {
    /// The host's name for it.
    pub ticket: Ticket,
    /// The session whose agent's state it is.
    pub session: Seq,
    /// Who writes, by the host's word: agents and users `goal.*`, tools and encoders `fact.*`.
    pub writer: Source,
    /// Records that the values come from.
    pub inputs: Vec<Seq>,
    /// The head that it was made from; `None` for whatever is the head.
    pub base: Option<SnapshotId>,
    /// The changes.
    pub changes: Canonical,
    /// Random salts for its commitments.
    pub salts: CallSalts,
}

/// A proposal that has been checked.
struct Change {
    set: BTreeMap<FactKey, FactId>,
    removed: Vec<FactKey>,
    next: Snapshot,
}

impl Kernel {
    /// Checks a proposal, and moves the agent's head.
    pub(super) fn propose(&mut self, proposal: Proposal) -> Result<(), Halt> {
        let Proposal { ticket, session, writer, salts, .. } = proposal;
        let mut fields = Box::new(CallFields::unknown());
        let change = match self.proposed(&proposal, &mut fields) {
            Ok(change) => change,
            Err(refused) => {
                let stopped = Stopped::new(fields, refused);
                return self.refuse_proposal(ticket, (session, &salts), stopped);
            }
        };
        self.close_run(Some(session))?;
        fields.used = Amounts::ZERO.with(Dimension::Calls, 1);
        let Change { set, removed, next } = change;
        let (snapshot, number, agent) = (next.id(), next.number, next.agent.clone());
        let record = StateChange {
            call: *fields,
            snapshot,
            number,
            writer,
            set: List(set.into_keys().collect()),
            removed: List(removed),
        };
        let objects = [Object::snapshot(&next)].into();
        let (seq, _, body) = self.append_with(Self::boxed(record, Body::State), objects)?;
        let Body::State(record) = body else {
            return Err(Halt::Contradiction { seq });
        };
        let facts = self.facts.entry(agent).or_default();
        record.removed.0.iter().for_each(|key| facts.remove(key));
        for key in record.set.0 {
            let value = proposal.changes.item().get(key.as_str()).map(Canonical::from);
            facts.set(key, value);
        }
        let changes = proposal.changes.as_bytes();
        self.pending.keep(VaultWrite::new(seq, Some(&salts), Some(changes), None));
        self.acknowledge(seq, ticket, Ack::State(snapshot, seq));
        Ok(())
    }

    fn proposed(&self, proposal: &Proposal, fields: &mut CallFields) -> Result<Change, Refused> {
        let session = self.state.sessions.get(&proposal.session);
        let session = session.ok_or(Refused::new(Reason::Closing).field("session"))?;
        let agent = &session.agent;
        let state = self.state.agents.get(agent).ok_or(Refused::new(Reason::UnknownSnapshot))?;
        fields.agent_id = Some(agent.clone());
        fields.session = Some(proposal.session);
        fields.policy_hash = self.state.policy;
        fields.capability_token_id = Some(session.token_id);
        fields.state_snapshot_id = Some(state.id());
        fields.args_hash = Some(changes_hash(&proposal.salts.args, proposal.changes.item()));
        fields.provenance = Some(Provenance {
            source: proposal.writer,
            time: Some(self.now()),
            inputs: List(proposal.inputs.clone()),
            trace: None,
            claimed: None,
        });
        self.may_write(agent, session.token)?;
        let known = |input: &Seq| session.released(*input).is_some();
        if proposal.inputs.len() > syscap_format::limits::PROVENANCE_INPUTS_MAX {
            fields.provenance = None;
            return Err(Refused::new(Reason::BadFact).field("inputs"));
        }
        if !proposal.inputs.iter().all(known) {
            return Err(Refused::new(Reason::UnknownReference).field("inputs"));
        }
        if proposal.inputs.iter().any(|input| *input > self.durable_seq()) {
            return Err(Refused::new(Reason::ReferenceInFlight).field("inputs"));
        }
        if proposal.base.is_some_and(|base| base != state.id()) {
            let head = alloc::format!("{}", state.id());
            let got = proposal.base.map(|base| alloc::format!("{base}")).unwrap_or_default();
            let refused = Refused::new(Reason::StaleSnapshot).field("base").got(&got);
            return Err(refused.allowed(&head));
        }
        let (set, removed) = read(proposal)?;
        let next = state.after(&set, &removed).ok_or_else(|| {
            let most = alloc::format!("at most {FACTS_MAX} facts in all");
            Refused::new(Reason::TooManyFacts).field("changes").allowed(&most)
        })?;
        Ok(Change { set, removed, next })
    }

    /// The session's token is live, not for reading only and has a call left, and nobody has
    /// stopped the agent.
    fn may_write(&self, agent: &AgentId, token: TokenIndex) -> Result<(), Refused> {
        let tokens = &self.state.tokens;
        let body = tokens.body(token).ok_or(Refused::new(Reason::NotBound))?;
        let now = self.now();
        let reason = if self.closing {
            Reason::Closing
        } else if self.room == crate::store::Room::Reserve {
            Reason::NoRoom
        } else if tokens.is_revoked(token) {
            Reason::Revoked
        } else if self.state.frozen.stops_agent(agent) {
            Reason::Frozen
        } else if now >= body.expires {
            Reason::Expired
        } else if now < body.not_before {
            Reason::NotYetValid
        } else if self.state.unconfirmed_before.is_some_and(|b| tokens.issued(token) < Some(b)) {
            Reason::ClockUnconfirmed
        } else if body.flags.has(TokenFlags::READ_ONLY) {
            Reason::ReadOnlyToken
        } else if tokens.is_exhausted(token) {
            Reason::Exhausted
        } else if let Some(lacks) = tokens.lacks(token, &Amounts::ZERO.with(Dimension::Calls, 1)) {
            return Err(Refused::new(Reason::OverBudget).field(lacks.name()));
        } else {
            return Ok(());
        };
        Err(Refused::new(reason))
    }
}

/// The keys that are set, with their commitments, and those that are taken away.
type Changes = (BTreeMap<FactKey, FactId>, Vec<FactKey>);

fn read(proposal: &Proposal) -> Result<Changes, Refused> {
    let changes = proposal.changes.item();
    let bad = |field: &str| Refused::new(Reason::BadFact).field(field);
    if changes.kind() != Kind::Map || changes.count() == 0 {
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
pub(super) fn known_facts(
    state: &State,
    store: &mut dyn Store,
) -> Result<BTreeMap<AgentId, Facts>, Halt> {
    let mut all = BTreeMap::new();
    for (agent, state) in &state.agents {
        let mut facts = Facts::default();
        let mut rows: BTreeMap<Seq, Option<(CallSalts, Canonical)>> = BTreeMap::new();
        for (key, fact) in state.facts() {
            let row = match rows.entry(fact.written) {
                Entry::Occupied(found) => found.into_mut(),
                Entry::Vacant(place) => {
                    let entry = vault_entry(store, fact.written, fact.written)?;
                    let args = entry.args.map(|args| Canonical::check(args, Profile::DATA));
                    place.insert(entry.salts.zip(args.and_then(Result::ok)))
                }
            };
            let value = row.as_ref().and_then(|(salts, changes)| {
                let value = changes.item().get(key.as_str())?;
                (fact_id(&salts.args, key, value) == fact.id).then(|| Canonical::from(value))
            });
            facts.set(key.clone(), value);
        }
        all.insert(agent.clone(), facts);
    }
    Ok(all)
}
