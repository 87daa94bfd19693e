//! Changes of the agents' states.

use std::collections::BTreeSet;

use syscap_format::{
    Amounts, CHANGES_MAX, CallFields, Dimension, FACTS_MAX, FactKey, Label, ObjectKind,
    PROVENANCE_INPUTS_MAX, Provenance, RELEASED_MAX, Seq, Snapshot, Source as Writer, StateChange,
    TokenFlags,
};

use super::heads::{FactIds, Heads};
use super::{Account, Entry, Fault, Ledger, Phase, Session, Source, object};

impl Session {
    /// Joins what is delivered to it into the label of its own, if it has one.
    pub(super) fn is_given(&mut self, label: Label) {
        self.alone = self.alone.map(|before| before.join(label));
    }

    /// Remembers a result that was given to the session, as long as it can be referred to.
    pub(super) fn release(&mut self, outcome: Seq) {
        if self.released.len() >= RELEASED_MAX {
            self.released.pop_front();
        }
        self.released.push_back(outcome);
    }

    /// The sources of a change are results that it was given.
    fn was_given(&self, inputs: &[Seq]) -> bool {
        inputs.len() <= PROVENANCE_INPUTS_MAX
            && inputs.iter().all(|input| self.released.binary_search(input).is_ok())
    }
}

impl Ledger {
    pub(super) fn state<E>(
        &mut self,
        entry: &mut Entry<'_>,
        change: &StateChange,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        let call = &change.call;
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        entry.expect(is_whole(entry, change), Fault::StateForm);
        entry.expect(call.policy_hash == self.policy, Fault::Policy);
        entry.expect(may_write(change), Fault::Namespace);
        if let Some(account) = self.writer(entry, change) {
            self.live(entry, account);
            let body = self.accounts.body(account);
            let only_reads = body.is_some_and(|body| body.flags.has(TokenFlags::READ_ONLY));
            entry.expect(!only_reads, Fault::ReadOnlyToken);
            entry.expect(!self.accounts.is_exhausted(account), Fault::Exhausted);
            let one = Amounts::ZERO.with(Dimension::Calls, 1);
            entry.expect(call.used == one, Fault::Fee);
            entry.expect(self.accounts.covers(account, &one), Fault::OverBudget);
            self.accounts.pay(account, &call.used);
        }
        self.move_head(entry, change, source)
    }

    /// The account of the session whose agent's state it is.
    fn writer(&self, entry: &mut Entry<'_>, change: &StateChange) -> Option<Account> {
        let call = &change.call;
        let Some(session) = call.session.and_then(|number| self.sessions.get(&number)) else {
            entry.fault(Fault::UnknownSession);
            return self.accounts.find(&call.capability_token_id?);
        };
        let bound = call.agent_id.as_ref() == Some(&session.agent)
            && call.capability_token_id == Some(session.token);
        entry.expect(bound, Fault::NotBound);
        // An aggregate is closed before anything else of its session; its row goes on.
        entry.expect(session.row.aggregate.is_none(), Fault::Aggregate);
        entry.expect(!self.frozen.stops_agent(&session.agent), Fault::Frozen);
        let inputs = call.provenance.as_ref().map_or(&[][..], |from| &from.inputs);
        entry.expect(session.was_given(inputs), Fault::StateForm);
        Some(session.account)
    }

    /// The new head follows from the one before and from what was changed.
    fn move_head<E>(
        &mut self,
        entry: &mut Entry<'_>,
        change: &StateChange,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        let found = object(entry, source, ObjectKind::Snapshot, *change.snapshot.as_bytes())?;
        let next = found.and_then(|found| Snapshot::from_bytes(&found.bytes).ok());
        let Some(agent) = &change.call.agent_id else {
            return Ok(());
        };
        // The agent of an open session has a head.
        let heads = self.heads.entry(agent.clone());
        let heads = heads.or_insert_with(|| Heads::genesis(agent.clone()));
        let named = change.call.state_snapshot_id == Some(heads.head());
        let facts = next.as_ref().and_then(|next| next.fact_ids().ok());
        if let Some(next) = &next {
            let placed = named
                && next.version == 1
                && next.agent == *agent
                && next.parent == Some(heads.head())
                && Some(next.number) == heads.number().checked_add(1)
                && next.number == change.number
                && next.label.is_none();
            entry.expect(placed, Fault::Snapshot);
            let follows = match (heads.facts(), &facts) {
                (Some(before), Some(after)) => follows(before, change, after),
                (None, Some(after)) => after.len() <= FACTS_MAX,
                (_, None) => false,
            };
            entry.expect(follows, Fault::Facts);
        } else {
            entry.expect(named, Fault::Snapshot);
        }
        heads.advance(change.snapshot, change.number, facts);
        Ok(())
    }
}

/// True if the facts after are the facts before, except for the changed keys.
fn follows(before: &FactIds, change: &StateChange, after: &FactIds) -> bool {
    let (set, removed) = (&change.set, &change.removed);
    let kept = |key: &&FactKey| !removed.contains(key) && !set.contains(key);
    let expected: BTreeSet<&FactKey> = before.keys().filter(kept).chain(set).collect();
    after.len() <= FACTS_MAX
        && after.keys().eq(expected)
        && after.iter().filter(|(key, _)| kept(key)).all(|(key, id)| before.get(key) == Some(id))
}

/// True if the writer may write all the keys that were set or removed.
fn may_write(change: &StateChange) -> bool {
    let space = match change.writer {
        Writer::User | Writer::Agent => "goal",
        Writer::Tool | Writer::Encoder => "fact",
        Writer::Observer => return false,
    };
    let mut keys = change.set.iter().chain(&change.removed);
    keys.all(|key| key.as_str().split('.').next() == Some(space))
}

/// All that the record must hold is there, and nothing else; its keys are sorted, each once.
fn is_whole(entry: &Entry<'_>, change: &StateChange) -> bool {
    let StateChange { call, writer, set, removed, .. } = change;
    let Some(Provenance { source, time, trace, claimed, inputs: _ }) = &call.provenance else {
        return false;
    };
    // What is left of the call is that nothing else is known of it.
    let rest = CallFields {
        agent_id: None,
        policy_hash: None,
        state_snapshot_id: None,
        capability_token_id: None,
        args_hash: None,
        provenance: None,
        session: None,
        used: Amounts::ZERO,
        ..call.clone()
    };
    let keys = || set.iter().chain(removed.iter());
    let known = call.agent_id.is_some()
        && call.state_snapshot_id.is_some()
        && call.capability_token_id.is_some()
        && call.args_hash.is_some()
        && call.session.is_some();
    known
        && rest == CallFields::unknown()
        && (source, *time, trace, claimed) == (writer, Some(entry.time), &None, &None)
        && (1..=CHANGES_MAX).contains(&keys().count())
        && keys().collect::<BTreeSet<_>>().len() == keys().count()
        && set.is_sorted()
        && removed.is_sorted()
}
