//! A kernel's beginning and end: genesis, replay, boot, shutdown.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::approvals::index::Requests;
use crate::approvals::people::People;
use crate::events::Ack;
use crate::halt::Halt;
use crate::lifecycle::probe::{Probed, Probing};
use crate::machine::Kernel;
use crate::policy::{PolicyEngine, object_of};
use crate::registry::Registry;
use crate::run::aggregate::Counted;
use crate::run::pending::Pending;
use crate::state::fold::{OpenIntent, State};
use crate::store::{Link, Room, Store, record_at};
use crate::time::{KernelClock, Reading};
use crate::tool::{Finding, Ticket};
use crate::vault::vault_entry;
use syscap_format::{
    Body, BodyView, Boot, ClockFlags, Commitment, DETAIL_BYTES_MAX, Dimension, Durability, Genesis,
    HomeId, HomeLimits, Leaf, PreviousRun, PublicKey, RECORD_BYTES_MAX, Reason, Record, Recovered,
    Recovery, RecoveryHash, Role, Roles, Seq, Shutdown, TOKEN_LIFE_MS_MAX, Trust, leaf, self_test,
};

/// The settings of a new home.
#[derive(Clone, Debug)]
pub struct NewHome {
    /// 32 random bytes.
    pub entropy: [u8; 32],
    /// A name for people.
    pub origin: Box<str>,
    /// The limits that are fixed for the home.
    pub limits: HomeLimits,
    /// The failures that an acknowledged record survives.
    pub durability: Durability,
    /// The keys of the five roles.
    pub roles: Roles,
    /// Hash of the recovery key; `None` for none.
    pub recovery: Option<RecoveryHash>,
}

/// External knowledge of a home. A log that contradicts it is not opened.
#[derive(Clone, Debug, Default)]
pub struct Anchor {
    /// Its id, and the keys that it began with.
    pub trust: Option<Trust>,
    /// Keys that roles have, or had at some time: those of who would sign for it.
    pub keys: Vec<(Role, PublicKey)>,
}

/// A kernel's parts besides its log.
pub struct Parts {
    /// The policy engine.
    pub engine: Box<dyn PolicyEngine>,
    /// The tools.
    pub registry: Registry,
}

impl Kernel {
    /// Begins a log. The genesis record is the first of the first batch.
    ///
    /// # Errors
    /// [`Halt::SelfTest`] where the signature library fails its known-answer test.
    pub fn create(new: NewHome, parts: Parts, reading: Reading) -> Result<Self, Halt> {
        self_test()?;
        let NewHome { entropy, origin, limits, durability, roles, recovery } = new;
        let genesis = Genesis { entropy, origin, limits, durability, roles, recovery };
        let record = Record {
            seq: Seq::GENESIS,
            prev: Leaf::from_bytes([0; 32]),
            time: reading.wall,
            boot: 0,
            clock: ClockFlags::default(),
            body: Body::Genesis(Box::new(genesis)),
        };
        let bytes = record.encode();
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(Halt::RecordTooLarge);
        }
        let leaf = leaf(&bytes);
        let state = State::begin(&record, leaf)?;
        let mut kernel = Self::with(state, parts, Pending::after(None));
        kernel.pending.push(Link { seq: record.seq, leaf, bytes });
        Ok(kernel)
    }

    pub(crate) fn with(state: State, parts: Parts, pending: Pending) -> Self {
        let Parts { engine, registry } = parts;
        let engine_hash = object_of(&*engine).hash();
        let tools_hash = registry.tools_object().hash();
        let aliased = registry.alias_in(&*engine).is_some();
        Self {
            state,
            engine,
            engine_hash,
            aliased,
            shadow: None,
            facts: BTreeMap::new(),
            requests: Requests::default(),
            erased: Seq::GENESIS,
            redacting: VecDeque::new(),
            registry,
            tools_hash,
            clock: None,
            gap: false,
            remote: BTreeMap::new(),
            room: Room::Enough,
            closing: true,
            people: People::There,
            pending,
            waiting: VecDeque::new(),
            in_flight: BTreeMap::new(),
            late: BTreeMap::new(),
            parked: BTreeMap::new(),
            aggregates: BTreeMap::new(),
            overloaded: Counted::default(),
            effects: VecDeque::new(),
            halted: None,
        }
    }

    /// Starts kernel time, and closes every intent that was found open.
    pub(crate) fn boot(
        &mut self,
        ticket: Ticket,
        id: [u8; 16],
        software: Box<str>,
        durability: Durability,
        probed: &[Probed],
        reading: Reading,
    ) -> Result<(), Halt> {
        // A kernel boots once: a second boot would recover what this one still runs.
        if self.clock.is_some() {
            return Err(Halt::Contradiction { seq: self.state.head.seq });
        }
        let last = self.state.time;
        let first = self.state.ended == PreviousRun::First;
        self.clock = Some(KernelClock::start(last, reading, self.state.limits.skew_ms_max));
        // So far ahead that every token would have ended: perhaps the clock is wrong.
        let gap = !first && reading.wall.since(last) > TOKEN_LIFE_MS_MAX;
        self.gap = gap;
        let boot = Boot {
            id,
            before: self.state.ended,
            wall: reading.wall,
            software: clipped(software),
            durability,
            open: syscap_format::field::count(self.state.open.len()),
        };
        let (mut seq, _) = self.append(BodyView::Boot(&boot))?;
        while let Some((intent, open)) = self.state.open.first_key_value() {
            let finding = found(probed, self.state.home, *intent);
            let recovery = recovery_of(*intent, open, finding);
            (seq, _) = self.append(BodyView::Recovery(&recovery))?;
        }
        self.closing = false;
        self.acknowledge(seq, ticket, Ack::Recorded(seq));
        Ok(())
    }

    /// Closes every session and the home. Calls in flight still settle; no new one is admitted.
    pub(crate) fn shutdown(&mut self, ticket: Ticket) -> Result<(), Halt> {
        // It is closed once: a second time nothing is left to close.
        if self.state.ended == PreviousRun::Clean {
            return self.refuse_control(ticket, Reason::Closing.into());
        }
        self.closing = true;
        self.close_aggregate(None)?;
        let sessions: Vec<Seq> = self.state.sessions.keys().copied().collect();
        for session in sessions {
            self.end_session(session)?;
        }
        self.report_overload()?;
        let open = syscap_format::field::count(self.state.open.len());
        let (seq, _) = self.append(BodyView::Shutdown(&Shutdown { open }))?;
        self.acknowledge(seq, ticket, Ack::Recorded(seq));
        Ok(())
    }
}

/// The probe result of an intent of this home.
fn found(probed: &[Probed], home: HomeId, intent: Seq) -> Finding {
    let own = probed.iter().find(|probed| probed.home == home && probed.intent == intent);
    own.map_or(Finding::Unknown, |probed| probed.finding)
}

/// An intent without an outcome: it is charged in full, unless a probe has shown that its effect
/// was not made.
fn recovery_of(intent: Seq, open: &OpenIntent, finding: Finding) -> Recovery {
    let held = open.held.with(Dimension::Concurrent, 0);
    let (verdict, used) = match finding {
        // A read leaves everything as it was, and its answer never left.
        _ if open.effect.is_read_only() => (Recovered::NotDone, held),
        Finding::NotDone(used) => {
            let calls = held.get(Dimension::Calls);
            (Recovered::NotDone, held.meet(&used).with(Dimension::Calls, calls))
        }
        Finding::Done => (Recovered::Done, held),
        Finding::Unknown => (Recovered::Unknown, held),
    };
    Recovery { intent, verdict, used, control: None }
}

/// A host's name for itself, as long as a boot record takes it: a home that a host can open must
/// not be stopped by how the host calls itself.
fn clipped(software: Box<str>) -> Box<str> {
    let fits = |end: &usize| software.is_char_boundary(*end);
    match (0..=DETAIL_BYTES_MAX).rev().find(fits) {
        Some(end) if software.len() > DETAIL_BYTES_MAX => {
            software.get(..end).map_or_else(Box::default, Box::from)
        }
        _ => software,
    }
}

impl Kernel {
    /// The intents without an outcome.
    pub fn open_intents(&self) -> Vec<Seq> {
        self.state.open.keys().copied().collect()
    }

    /// The probe of an open intent, made from its record and from what the vault has of it. `None`
    /// where nothing is to be asked: it only reads, its arguments are erased or not those that were
    /// recorded, or its tool is not there as it was.
    ///
    /// # Errors
    /// [`Halt`]: the store can't be read.
    pub fn probing(&self, intent: Seq, store: &mut dyn Store) -> Result<Option<Probing>, Halt> {
        let open = self.state.open.get(&intent).filter(|open| !open.effect.is_read_only());
        let Some((open, bytes)) = open.zip(record_at(store, intent)?) else {
            return Ok(None);
        };
        let Ok(Record { body: Body::Intent(said), .. }) = Record::decode(&bytes) else {
            return Ok(None);
        };
        let entry = vault_entry(store, intent, intent)?;
        let call = said.call;
        let probing = || {
            let (name, manifest) = (call.tool_id?, call.manifest?);
            let tool = self.registry.find(name.as_str())?;
            let same = tool.manifest.tool == name && tool.manifest_id == manifest;
            let tool = same.then(|| Arc::clone(&tool.tool))?;
            let arguments = Commitment::Arguments(call.args_hash?, &name, &manifest);
            let args = entry.committed(arguments)?;
            let token = Arc::clone(self.state.tokens.body(open.token)?);
            let (home, leaf, agent) = (self.state.home, leaf(&bytes), call.agent_id?);
            Some(Probing { home, intent, leaf, tool, name, agent, args, token })
        };
        Ok(probing())
    }
}
