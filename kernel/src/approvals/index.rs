//! Which approval request a call is about: an index in memory.
//!
//! A record commits to arguments by a salt of its own, so without an index each request would have
//! to be read from the vault and hashed to find the one that a call repeats. The index holds an
//! unsalted hash of tool, manifest and resolved arguments for each request, beside its agent. It is
//! never recorded. It is kept while the kernel runs, and read from the vault when a home is opened.

use alloc::collections::{BTreeMap, BTreeSet};

use crate::approvals::sets::{RESOURCES, location_of};
use crate::state::fold::State;
use crate::store::{Store, StoreError};
use crate::vault::vault_entry;
use syscap_format::{
    AgentId, ArgsHash, Commitment, Item, ObjectId, Salt, Seq, TextHash, ToolId, VaultEntry,
    VaultText, args_hash,
};

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

/// What a person was shown of a request, beside the call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown {
    /// The salt of the arguments, by which all that was shown is committed to as well.
    pub(crate) salt: Salt,
    /// The commitment to the location; `None` where none was shown.
    pub(crate) at: Option<TextHash>,
}

/// The commitment to the location among the texts of a request, of which it is the last. A resource
/// of a dimension that is called `where` is taken for one: then a standing approval covers less.
pub(crate) fn located(texts: &[VaultText]) -> Option<TextHash> {
    let last = texts.iter().rfind(|text| text.field == RESOURCES);
    last.filter(|text| location_of(&text.text).is_some()).map(VaultText::hash)
}

/// The requests that wait or were answered, and those that standing approvals came from.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    /// What was shown of those that were not erased.
    shown: BTreeMap<Seq, Shown>,
    /// The requests whose arguments were not erased.
    by_call: BTreeMap<SameCall, BTreeSet<Seq>>,
}

impl Requests {
    /// Adds a request that was just recorded, and forgets those that the state knows no more.
    pub(crate) fn add(&mut self, seq: Seq, call: SameCall, shown: Shown, state: &State) {
        let of_sets: BTreeSet<Seq> = state.sets.all().map(|set| set.ask).collect();
        self.shown.retain(|known, _| state.asks.has(*known) || of_sets.contains(known));
        let known = &self.shown;
        self.by_call.retain(|_, found| {
            found.retain(|seq| known.contains_key(seq));
            !found.is_empty()
        });
        self.insert(seq, Some(call), shown);
    }

    /// The rows of these records were erased.
    pub(crate) fn forget(&mut self, records: &[Seq]) {
        self.shown.retain(|seq, _| records.binary_search(seq).is_err());
        self.by_call.retain(|_, found| {
            found.retain(|seq| records.binary_search(seq).is_err());
            !found.is_empty()
        });
    }

    /// The requests about that call.
    pub(crate) fn about(&self, call: &SameCall) -> impl Iterator<Item = (Seq, &Salt)> {
        let found = self.by_call.get(call).into_iter().flatten();
        found.filter_map(|seq| Some((*seq, &self.shown.get(seq)?.salt)))
    }

    /// What was shown of a request; `None` where it was erased.
    pub(crate) fn shown(&self, seq: Seq) -> Option<&Shown> {
        self.shown.get(&seq)
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
            if let Some(shown) = shown_by(&entry) {
                requests.insert(seq, call, shown);
            }
        }
        for set in state.sets.all() {
            if let Some(shown) = shown_by(&vault_entry(store, set.ask, set.ask)?) {
                requests.insert(set.ask, None, shown);
            }
        }
        Ok(requests)
    }

    fn insert(&mut self, seq: Seq, call: Option<SameCall>, shown: Shown) {
        if let Some(call) = call {
            self.by_call.entry(call).or_default().insert(seq);
        }
        self.shown.insert(seq, shown);
    }
}

/// What a request's row has of what was shown.
fn shown_by(entry: &VaultEntry) -> Option<Shown> {
    entry.salts.as_ref().map(|salts| Shown { salt: salts.args, at: located(&entry.texts) })
}
