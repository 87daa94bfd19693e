//! The ledger: what the records say, each held against all before it.
//!
//! A record that is at fault still counts, as far as it can, so that what follows is judged by
//! what the log claims and one fault is found once.

mod account;
mod asks;
mod boot;
mod came;
mod control;
mod credits;
mod decision;
mod heads;
mod intent;
mod leaves;
mod reasons;
mod refuse;
mod session;
mod sets;
mod settle;
mod state;

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use syscap_format::{
    AgentId, Body, CallFields, EffectClass, Freeze, FreezeBecause, Genesis, HomeId, HomeLimits,
    IdempotencyKey, Label, Leaf, Manifest, Object, ObjectId, ObjectKind, PolicyBecause,
    PolicyChange, PolicyHash, PublicKey, Record, RecordKind, RecoveryHash, Role, Roles, Seq,
    SnapshotId, TokenId, ToolId, UnixMillis,
};

use super::report::{Fault, Findings};
use super::source::Source;
use account::{Account, Accounts};
use asks::Asks;
use credits::Credits;
use heads::Heads;
use leaves::{Leaves, Signer};

/// The state that is carried from record to record.
pub(super) struct Ledger {
    home: HomeId,
    limits: HomeLimits,
    time: UnixMillis,
    boot: u64,
    phase: Phase,
    /// True if this boot began after a gap that no operator has confirmed since.
    gap: bool,
    roles: Roles,
    recovery: Option<RecoveryHash>,
    signers: BTreeMap<PublicKey, Signer>,
    /// The records that last gave each role its keys, put a policy in force, and tools on record;
    /// genesis before the first.
    keys_changed: BTreeMap<Role, Seq>,
    policy_changed: Seq,
    tools_changed: Seq,
    leaves: Leaves,
    policy: Option<PolicyHash>,
    /// The policy that is asked for the record only.
    shadow: Option<PolicyHash>,
    tools: BTreeMap<ToolId, Registered>,
    accounts: Accounts,
    credits: Credits,
    /// Root tokens of earlier epochs have ended.
    epoch: u64,
    /// By these, and for these, no token is registered any more.
    revoked_keys: BTreeSet<PublicKey>,
    /// Version and time of the last list of revocations.
    list: Option<(u64, UnixMillis)>,
    /// The tokens of all lists that are not registered: none of them is.
    listed: BTreeSet<TokenId>,
    sessions: HashMap<Seq, Session>,
    /// The records that may have a row in the vault.
    rows: Places,
    /// True from the first session on that has its family's label.
    shared_labels: bool,
    heads: BTreeMap<AgentId, Heads>,
    frozen: Frozen,
    open: BTreeMap<Seq, Open>,
    running: BTreeMap<Seq, (Account, Option<Slot>)>,
    /// Intents of which nothing is known, with their keys.
    unknown: BTreeMap<Seq, Option<Slot>>,
    /// Runs that were closed without their providers' word: the newest, as many as may be in flight.
    unreported: BTreeMap<Seq, Unreported>,
    keys: HashMap<Slot, KeyUse>,
    /// Entries that were passed over, beside those of other tables.
    passed_over: u64,
    asks: Asks,
    /// Answers to more than one call, by the approvals that were the last ones needed.
    sets: BTreeMap<Seq, sets::Set>,
    /// Calls with a key that have an outcome.
    finished: HashMap<Seq, Finished>,
    /// Tokens registered before this boot wait for the time to be confirmed.
    unconfirmed_before: Seq,
    /// Refusals of no session.
    unbound: Row,
}

/// Positions of records, a bit for each.
#[derive(Default)]
struct Places(Vec<u64>);

impl Places {
    fn place(seq: Seq) -> Option<(usize, u64)> {
        let word = usize::try_from(seq.get().div_euclid(64)).ok()?;
        Some((word, 1 << seq.get().rem_euclid(64)))
    }

    /// Adds a position; they come in their order.
    fn insert(&mut self, seq: Seq) {
        if let Some((word, bit)) = Self::place(seq) {
            while self.0.len() <= word {
                self.0.push(0);
            }
            self.0.last_mut().into_iter().for_each(|last| *last |= bit);
        }
    }

    fn contains(&self, seq: Seq) -> bool {
        let found = Self::place(seq).and_then(|(word, bit)| Some(self.0.get(word)? & bit));
        found.is_some_and(|found| found != 0)
    }
}

/// The phase of the kernel's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Before the first boot.
    New,
    /// After a boot, while intents that it found open are being closed.
    Recovering,
    /// Calls are admitted.
    Running,
    /// After a shutdown.
    Shut,
}

/// A tool in force.
#[derive(Clone, Debug)]
struct Registered {
    id: ObjectId,
    manifest: Manifest,
}

/// An open session.
#[derive(Clone, Debug)]
struct Session {
    agent: AgentId,
    token: TokenId,
    account: Account,
    snapshot: SnapshotId,
    row: Row,
    /// Of a session that version 2 of its record opened: the join of what it began with and of
    /// what was delivered to it. Any other has its family's.
    alone: Option<Label>,
    /// Its last results that a change of state may name.
    released: VecDeque<Seq>,
}

/// Refusals in a row.
#[derive(Clone, Copy, Debug)]
struct Row {
    refusals: u32,
    next_max: u64,
    aggregate: Option<Aggregate>,
}

/// An aggregate of refusals that is open.
#[derive(Clone, Copy, Debug)]
struct Aggregate {
    opened: Seq,
    answers_max: u64,
    reserved: u64,
}

/// An open intent.
#[derive(Clone, Debug)]
struct Open {
    call: CallFields,
    account: Option<Account>,
    effect: EffectClass,
    /// The label that its outcome must carry.
    label: Label,
    slot: Option<Slot>,
    /// True if its `cancel` is on record.
    cancelled: bool,
}

/// A run that was closed without its provider's word.
#[derive(Clone, Debug)]
struct Unreported {
    account: Option<Account>,
    slot: Option<Slot>,
    tool: Option<ToolId>,
    effect: EffectClass,
}

/// A count with so many more.
fn more(count: u64, entries: usize) -> u64 {
    count.saturating_add(u64::try_from(entries).unwrap_or(u64::MAX))
}

/// The slot of an idempotency key.
type Slot = (AgentId, ToolId, IdempotencyKey);

/// The first call with an idempotency key.
#[derive(Clone, Copy, Debug)]
struct KeyUse {
    intent: Seq,
    /// From then on the key may be used again, if the call has a known end.
    until: UnixMillis,
    ended: bool,
}

/// A call with a key that has an outcome.
#[derive(Clone, Debug)]
struct Finished {
    until: UnixMillis,
    outcome: Seq,
    label: Label,
    agent: AgentId,
    tool: ToolId,
    account: Option<Account>,
}

/// The freezes in force.
#[derive(Clone, Debug, Default)]
struct Frozen {
    kernel: bool,
    agents: BTreeSet<AgentId>,
    tools: BTreeSet<ToolId>,
}

impl Frozen {
    fn stops_agent(&self, agent: &AgentId) -> bool {
        self.kernel || self.agents.iter().any(|frozen| agent.is_within(frozen))
    }

    fn stops(&self, agent: &AgentId, tool: &ToolId) -> bool {
        self.tools.contains(tool) || self.stops_agent(agent)
    }
}

/// A record under examination, and where faults are written down.
struct Entry<'a> {
    seq: Seq,
    time: UnixMillis,
    findings: &'a mut Findings,
}

impl Entry<'_> {
    fn fault(&mut self, fault: Fault) {
        self.findings.add(self.seq, fault);
    }

    /// Writes a fault down unless a condition holds.
    fn expect(&mut self, holds: bool, fault: Fault) {
        if !holds {
            self.fault(fault);
        }
    }
}

impl Ledger {
    pub(super) fn new(home: HomeId, genesis: &Genesis, time: UnixMillis) -> Self {
        Self {
            home,
            limits: genesis.limits.clone(),
            time,
            boot: 0,
            phase: Phase::New,
            gap: false,
            roles: genesis.roles.clone(),
            recovery: genesis.recovery,
            signers: BTreeMap::new(),
            keys_changed: BTreeMap::new(),
            policy_changed: Seq::GENESIS,
            tools_changed: Seq::GENESIS,
            leaves: Leaves::default(),
            policy: None,
            shadow: None,
            tools: BTreeMap::new(),
            accounts: Accounts::default(),
            credits: Credits::default(),
            epoch: 0,
            revoked_keys: BTreeSet::new(),
            list: None,
            listed: BTreeSet::new(),
            sessions: HashMap::new(),
            rows: Places::default(),
            shared_labels: false,
            heads: BTreeMap::new(),
            frozen: Frozen::default(),
            open: BTreeMap::new(),
            running: BTreeMap::new(),
            unknown: BTreeMap::new(),
            unreported: BTreeMap::new(),
            keys: HashMap::new(),
            passed_over: 0,
            asks: Asks::default(),
            sets: BTreeMap::new(),
            finished: HashMap::new(),
            unconfirmed_before: Seq::GENESIS,
            unbound: Row::default(),
        }
    }

    pub(super) const fn time(&self) -> UnixMillis {
        self.time
    }

    pub(super) fn is_shut(&self) -> bool {
        self.phase == Phase::Shut
    }

    pub(super) fn open_intents(&self) -> Vec<Seq> {
        self.open.keys().copied().collect()
    }

    pub(super) fn passed_over(&self) -> u64 {
        let parts = [self.passed_over, self.accounts.passed_over, self.asks.passed_over];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// Counts entries that are passed over.
    fn passes(&mut self, entries: usize) {
        self.passed_over = more(self.passed_over, entries);
    }

    pub(super) fn unknown_intents(&self) -> Vec<Seq> {
        self.unknown.keys().copied().collect()
    }

    /// The chain has one more record.
    pub(super) fn follow(&mut self, leaf: Leaf) {
        self.leaves.push(leaf);
    }

    /// Holds one more record against all before it.
    pub(super) fn enter<E>(
        &mut self,
        record: Record,
        leaf: Leaf,
        source: &mut dyn Source<Error = E>,
        findings: &mut Findings,
    ) -> Result<(), E> {
        let Record { seq, time, boot, clock, body, .. } = record;
        let mut entry = Entry { seq, time, findings };
        entry.expect(time >= self.time, Fault::TimeBack);
        let boots = u64::from(matches!(body, Body::Boot(_)));
        entry.expect(boot == self.boot.saturating_add(boots), Fault::BootNumber);
        if self.phase == Phase::Recovering {
            self.still_recovering(&mut entry, &body);
        }
        self.follow_gap(&mut entry, &body, clock);
        let has_row = body.may_have_row();
        match body {
            Body::Genesis(_) => entry.fault(Fault::SecondGenesis),
            Body::Boot(body) => self.boot(&mut entry, &body, clock),
            Body::Shutdown(body) => self.shutdown(&mut entry, &body),
            Body::Issue(body) => self.issue(&mut entry, &body, source)?,
            Body::Session(body) => {
                self.shared_labels = true;
                self.session(&mut entry, *body, false, source)?;
            }
            Body::SessionAlone(body) => {
                entry.expect(!self.shared_labels, Fault::SessionForm);
                self.session(&mut entry, *body, true, source)?;
            }
            Body::Key(event) => self.key(&mut entry, &event.control, source)?,
            Body::Revoke(event) => self.revoke(&mut entry, &event.control, source)?,
            Body::Freeze(event) => {
                let said = self.event::<Freeze, _>(&mut entry, &event.control, source)?;
                self.freeze(&mut entry, said);
            }
            Body::FreezeBecause(event) => {
                let said = self.event::<FreezeBecause, _>(&mut entry, &event.control, source)?;
                self.freeze(&mut entry, said.map(FreezeBecause::freeze));
            }
            Body::Policy(event) => {
                let said = self.event::<PolicyChange, _>(&mut entry, &event.control, source)?;
                self.policy(&mut entry, said, source)?;
            }
            Body::PolicyBecause(event) => {
                let said = self.event::<PolicyBecause, _>(&mut entry, &event.control, source)?;
                self.policy(&mut entry, said.map(|said| said.change()), source)?;
            }
            Body::Tools(event) => self.tools(&mut entry, &event.control, source)?,
            Body::Config(event) => self.config(&mut entry, &event.control, source)?,
            Body::Redact(event) => self.redact(&mut entry, &event.control, source)?,
            Body::Credit(event) => self.credit(&mut entry, &event.control, source)?,
            Body::State(body) => self.state(&mut entry, &body, source)?,
            Body::Charge(body) => self.charge(&mut entry, &body),
            Body::Intent(body) => self.intent(&mut entry, *body),
            Body::Outcome(body) => self.outcome(&mut entry, *body),
            Body::Refusal(body) => self.refusal(&mut entry, &body),
            Body::Refusals(body) => self.refusals(&mut entry, &body),
            Body::Repeat(body) => self.repeat(&mut entry, &body),
            Body::Late(body) => self.late(&mut entry, &body),
            Body::LateReport(body) => self.late_report(&mut entry, &body),
            Body::Recovery(body) => self.recovery(&mut entry, &body, source)?,
            Body::Ask(body) => self.ask(&mut entry, *body, leaf),
            Body::Approval(event) => self.approval(&mut entry, &event.control, source)?,
            Body::Cancel(body) => self.cancel(&mut entry, &body, source)?,
            Body::Input(body) => self.input(&mut entry, &body),
            // The decoder gives out none.
            Body::Declassify(_) | Body::Prune(_) | Body::Checkpoint(_) => {
                entry.fault(Fault::UnknownForm)
            }
        }
        if has_row {
            self.rows.insert(seq);
        }
        self.time = time.max(self.time);
        self.boot = boot;
        Ok(())
    }

    /// After a boot nothing may come before the recoveries but another boot, where a crash cut
    /// them off.
    fn still_recovering(&mut self, entry: &mut Entry<'_>, body: &Body) {
        let recovers = matches!(body, Body::Recovery(body) if body.control.is_none());
        if self.open.is_empty() {
            self.phase = Phase::Running;
        } else if !recovers && body.kind() != RecordKind::Boot {
            entry.fault(Fault::RecoveryMissing);
            self.phase = Phase::Running;
        }
    }
}

/// A control document that a record names, of the kind that it must be.
fn object<E>(
    entry: &mut Entry<'_>,
    source: &mut dyn Source<Error = E>,
    kind: ObjectKind,
    id: [u8; 32],
) -> Result<Option<Object>, E> {
    let id = ObjectId::from_bytes(id);
    let Some(object) = source.object(&id)? else {
        entry.fault(Fault::ObjectMissing);
        return Ok(None);
    };
    if object.kind != kind || object.id != id || !object.is_sound() {
        entry.fault(Fault::ObjectUnsound);
        return Ok(None);
    }
    Ok(Some(object))
}
