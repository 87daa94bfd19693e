//! Which approval request a call is about: an index in memory.
//!
//! A record commits to arguments by a salt of its own, so without an index each request would have
//! to be read from the vault and hashed to find the one that a call repeats. The index holds an
//! unsalted hash of tool, manifest and resolved arguments for each request, beside its agent. It is
//! never recorded. It is kept while the kernel runs, and read from the vault when a home is opened.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::state::fold::State;
use crate::store::{Store, StoreError};
use crate::vault::vault_entry;
use syscap_format::{AgentId, ArgsHash, Commitment, Item, ObjectId, Salt, Seq, ToolId, args_hash};

/// A call as the index knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SameCall {
    agent: AgentId,
    /// By a fixed salt: in memory it hides nothing, and finds the call again.
    call: ArgsHash,
}

impl SameCall {
    /// The call of an agent, to a tool with that manifest, with those resolved arguments.
    pub(crate) fn of(agent: &AgentId, tool: &ToolId, manifest: &ObjectId, args: Item<'_>) -> Self {
        let call = args_hash(&Salt::from_bytes([0; 32]), tool, manifest, args);
        Self { agent: agent.clone(), call }
    }
}

/// The requests that wait or were answered, and those that standing approvals came from.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// The salts of their arguments, by which their resources are committed to as well.
    salts: BTreeMap<Seq, Salt>,
    /// The requests whose arguments were not erased.
    by_call: BTreeMap<SameCall, BTreeSet<Seq>>,
}

impl Requests {
    /// Adds a request that was just recorded, and forgets those that the state knows no more.
    pub(crate) fn add(&mut self, seq: Seq, call: SameCall, salt: Salt, state: &State) {
        let of_sets: BTreeSet<Seq> = state.sets.all().map(|set| set.ask).collect();
        self.salts.retain(|known, _| state.asks.has(*known) || of_sets.contains(known));
        let salts = &self.salts;
        self.by_call.retain(|_, found| {
            found.retain(|seq| salts.contains_key(seq));
            !found.is_empty()
        });
        self.insert(seq, Some(call), salt);
    }

    /// The requests about that call.
    pub(crate) fn about(&self, call: &SameCall) -> impl Iterator<Item = (Seq, &Salt)> {
        let found = self.by_call.get(call).into_iter().flatten();
        found.filter_map(|seq| Some((*seq, self.salts.get(seq)?)))
    }

    /// The salt of a request's arguments; `None` where it was erased.
    pub(crate) fn salt(&self, seq: Seq) -> Option<&Salt> {
        self.salts.get(&seq)
    }

    /// True if it has no request that a call could repeat.
    pub(crate) fn is_empty(&self) -> bool {
        self.by_call.is_empty()
    }

    /// The index of a home that is opened: each row is read once, and one at a time.
    pub(crate) fn read(state: &State, store: &mut dyn Store) -> Result<Self, StoreError> {
        let mut requests = Self::default();
        for (seq, ask) in state.asks.all() {
            let entry = vault_entry(store, seq, seq)?;
            let committed = Commitment::Arguments(ask.args_hash, &ask.tool, &ask.manifest);
            let args = entry.committed(committed);
            let call =
                args.map(|args| SameCall::of(&ask.agent, &ask.tool, &ask.manifest, args.item()));
            if let Some(salts) = entry.salts {
                requests.insert(seq, call, salts.args);
            }
        }
        for set in state.sets.all() {
            // What was shown is committed to by its salt alone.
            if let Some(salts) = vault_entry(store, set.ask, set.ask)?.salts {
                requests.insert(set.ask, None, salts.args);
            }
        }
        Ok(requests)
    }

    fn insert(&mut self, seq: Seq, call: Option<SameCall>, salt: Salt) {
        if let Some(call) = call {
            self.by_call.entry(call).or_default().insert(seq);
        }
        self.salts.insert(seq, salt);
    }
}
