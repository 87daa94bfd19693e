//! Running and settling: from the durable intent to the answer.

use alloc::{boxed::Box, collections::btree_map::Entry};

use crate::events::{Effect, Lost, Measured};
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::meter::Meter;
use crate::run::answer::Reply;
use crate::run::flight::{InFlight, Waiting};
use crate::state::fold::State;
use crate::tool::{AnyPlan, Job, PermitCore, Ran, Ticket};
use syscap_format::{
    Amounts, BodyView, Canonical, Dimension, EffectClass, Enforcement, ErrorKind, Label, Late,
    LateReport, Outcome, OutcomeFlags, Reason, Refused, ResultHash, Seq, Status, TxOutcome,
    UnixMillis, VaultWrite, result_hash,
};

/// How a run ended.
struct End {
    reason: Option<Reason>,
    delivered: Canonical,
    used: Amounts,
    tx: TxOutcome,
    enforcement: Enforcement,
    flags: OutcomeFlags,
    /// The hash of the delivered value, if the run has computed it.
    hash: Option<ResultHash>,
}

impl End {
    /// The end of a call whose run gave nothing back.
    fn without(
        reason: Reason,
        kind: ErrorKind,
        tx: TxOutcome,
        used: Amounts,
        flags: OutcomeFlags,
    ) -> Self {
        let (delivered, enforcement) = (Refused::new(reason).error_object(kind), Enforcement::None);
        Self { reason: Some(reason), delivered, used, tx, enforcement, flags, hash: None }
    }
}

/// Why a call that was admitted does not run.
struct Stop {
    flags: OutcomeFlags,
    /// What is over, and since when, where no flag says it.
    why: Option<(Reason, UnixMillis)>,
}

impl Kernel {
    /// A record is durable: what waited for it goes on.
    pub(crate) fn proceed(&mut self, seq: Seq, waiting: Waiting) -> Result<(), Halt> {
        match waiting {
            Waiting::Reply(ticket, result) => self.emit(Effect::Reply(ticket, result)),
            Waiting::Ack(ticket, ack) => self.emit(Effect::Ack(ticket, ack)),
            Waiting::Intent(flight, plan) => match self.may_act(seq, &flight) {
                // The permit has not been made: nothing ran, and nothing will.
                Err(stop) => return self.not_run(seq, flight, stop),
                Ok(()) => self.start(seq, flight, plan),
            },
        }
        Ok(())
    }

    /// Makes the permit. From here on the call is running.
    pub(crate) fn start(&mut self, seq: Seq, mut flight: Box<InFlight>, plan: Box<dyn AnyPlan>) {
        let permit = PermitCore {
            intent: seq,
            tool: flight.tool.clone(),
            leaf: flight.leaf,
            digest: flight.digest,
            salt: flight.salts.result,
            result_bytes_max: flight.result_bytes_max,
            read_only: flight.read_only,
            live: flight.live,
            conditions: core::mem::take(&mut flight.conditions),
            meter: Meter::of_call(flight.fields.held),
            enforcement: Enforcement::None,
            flags: OutcomeFlags::default(),
            label: Label::PUBLIC,
        };
        let job = Job { plan, permit, wall_ms_max: flight.wall_ms_max };
        self.emit(Effect::Run(flight.live.ticket, Box::new(job)));
        self.in_flight.insert(seq, flight);
    }

    /// The stop since admission: the token was revoked, a freeze began or the call was cancelled.
    fn stopped(&self, seq: Seq, flight: &InFlight) -> Option<OutcomeFlags> {
        let State { tokens, frozen, open, .. } = &self.state;
        let revoked = tokens.is_revoked(flight.token, self.now());
        let frozen = !revoked && frozen.stops(&flight.agent, flight.tool.as_str());
        let cancelled = open.get(&seq).is_some_and(|open| open.cancelled);
        let flags = OutcomeFlags::REVOKED.when(revoked).and(OutcomeFlags::FROZEN.when(frozen));
        let flags = flags.and(OutcomeFlags::CANCELLED.when(cancelled));
        (flags != OutcomeFlags::default()).then_some(flags)
    }

    /// Checks that a call which was admitted may act now: nothing stopped it, and its token's time
    /// is not over, nor that of the list that it asks for.
    fn may_act(&self, seq: Seq, flight: &InFlight) -> Result<(), Stop> {
        if let Some(flags) = self.stopped(seq, flight) {
            return Err(Stop { flags, why: None });
        }
        let now = self.now();
        let over = self.state.tokens.view(flight.token).and_then(|token| {
            let stale = token.fresh_until.filter(|until| now >= *until);
            let expired = Some(token.body.expires).filter(|expires| now >= *expires);
            let expired = expired.map(|at| (Reason::Expired, at));
            expired.or(stale.map(|at| (Reason::StaleRevocations, at)))
        });
        match over {
            None => Ok(()),
            why => Err(Stop { flags: OutcomeFlags::GIVEN_BACK, why }),
        }
    }

    fn not_run(&mut self, seq: Seq, flight: Box<InFlight>, stop: Stop) -> Result<(), Halt> {
        let (kind, tx, flags) = (ErrorKind::Refused, TxOutcome::NoOp, stop.flags);
        let mut end = End::without(Reason::NotRun, kind, tx, Amounts::ZERO, flags);
        if let Some((why, at)) = stop.why {
            let refused = Refused::new(Reason::NotRun).field("capability_token_id");
            end.delivered = refused.got(&format_args!("{why} at {at}")).error_object(kind);
        }
        self.settle(seq, flight, end)
    }

    /// True if a job that has waited since its permit was made may begin: nothing has stopped it
    /// meanwhile, and the home is not closing.
    #[must_use]
    pub fn may_begin(&self, job: &Job) -> bool {
        let seq = job.permit.intent;
        let flight = self.in_flight.get(&seq);
        !self.closing && flight.is_some_and(|flight| self.may_act(seq, flight).is_ok())
    }

    /// A job came back that has not begun.
    pub(crate) fn given_back(&mut self, job: Job) -> Result<(), Halt> {
        let seq = job.permit.intent;
        let flight = match self.in_flight.entry(seq) {
            Entry::Occupied(found) if found.get().digest == job.permit.digest => found.remove(),
            // It is not this kernel's.
            _ => return Ok(()),
        };
        let given_back = Stop { flags: OutcomeFlags::GIVEN_BACK, why: None };
        let stop = self.may_act(seq, &flight).err().unwrap_or(given_back);
        self.not_run(seq, flight, stop)
    }

    /// A run came back.
    pub(crate) fn ran(&mut self, ran: Ran<'static>, mut measured: Measured) -> Result<(), Halt> {
        let seq = ran.intent;
        let mut flight = match self.in_flight.entry(seq) {
            Entry::Occupied(found) if found.get().digest == ran.digest => found.remove(),
            _ => return self.came_late(seq, Some(&ran)),
        };
        flight.label = flight.label.join(ran.label);
        let held = flight.fields.held;
        measured.cpu_us = measured.cpu_us.saturating_add(ran.used.get(Dimension::CpuUs));
        // The run is back: what time it took is known, also where what it did is not.
        let used = if ran.tx == TxOutcome::Unknown { held } else { ran.used };
        let tx = tx_of(flight.effect, ran.tx);
        let (used, overrun) = with_measured(used, &held, measured);
        let flags = overrun.and(self.stopped(seq, &flight).unwrap_or_default());
        let flags = flags.and(ran.flags);
        let end = End {
            reason: ran.reason,
            delivered: ran.delivered,
            used,
            tx,
            enforcement: ran.enforcement,
            flags,
            hash: Some(ran.result_hash),
        };
        self.settle(seq, flight, end)
    }

    /// A run will not come back, or not in time: it is charged in full, or what was measured
    /// where that is more.
    pub(crate) fn lost(&mut self, seq: Seq, lost: Lost, measured: Measured) -> Result<(), Halt> {
        let Some(flight) = self.in_flight.remove(&seq) else {
            return if lost == Lost::TimedOut { Ok(()) } else { self.came_late(seq, None) };
        };
        let (reason, running) = match lost {
            Lost::Panicked => (Reason::Panicked, OutcomeFlags::default()),
            Lost::TimedOut => (Reason::TimedOut, OutcomeFlags::RUNNING),
            Lost::Abandoned => (Reason::Abandoned, OutcomeFlags::default()),
        };
        if lost == Lost::TimedOut {
            self.late.insert(seq, flight.digest);
        }
        let held = flight.fields.held;
        let (used, overrun) = with_measured(held, &held, at_least(&held, measured));
        let flags = overrun.and(running).and(self.stopped(seq, &flight).unwrap_or_default());
        let tx = if flight.effect.is_read_only() { TxOutcome::NoOp } else { TxOutcome::Unknown };
        let end = End::without(reason, ErrorKind::Failed(tx), tx, used, flags);
        self.settle(seq, flight, end)
    }

    /// A run that had been given up came back, with a report or by breaking off: its slot is
    /// free, its charge stands.
    fn came_late(&mut self, seq: Seq, ran: Option<&Ran<'static>>) -> Result<(), Halt> {
        let expected = self.late.get(&seq);
        // What another kernel ran under the same number frees nothing here.
        if expected.is_none() || ran.is_some_and(|ran| Some(&ran.digest) != expected) {
            return Ok(());
        }
        self.late.remove(&seq);
        let (status, result_hash, tx) = match ran {
            Some(ran) if ran.reason.is_none() => (Status::Ok, Some(ran.result_hash), ran.tx),
            Some(ran) => (Status::Error, Some(ran.result_hash), ran.tx),
            None => (Status::Error, None, TxOutcome::Unknown),
        };
        let late = Late { intent: seq, status, result_hash, tx };
        self.append(BodyView::Late(&late)).map(|_| ())
    }

    /// A run that was closed without its provider's word is reported. Its charge stands.
    pub(crate) fn reported(&mut self, ticket: Ticket, report: LateReport) -> Result<(), Halt> {
        if let Err(reason) = self.takes_work() {
            return self.refuse_control(ticket, reason.into());
        }
        let Some(run) = self.state.unreported.get(&report.intent) else {
            let refused = Refused::new(Reason::BadControl).field("intent");
            return self.refuse_control(ticket, refused);
        };
        let tool = self.registry.find(run.tool.as_str());
        // Of a tool that is there no more the label is not known.
        let due = tool.map_or(Label::UNTRUSTED, |tool| tool.manifest.label);
        let tx = tx_of(run.effect, report.tx);
        let report = LateReport { tx, label: report.label.join(due), ..report };
        self.record(ticket, BodyView::LateReport(&report), None)
    }

    fn settle(&mut self, seq: Seq, flight: Box<InFlight>, end: End) -> Result<(), Halt> {
        let End { reason, delivered, used, tx, enforcement, flags, hash } = end;
        let status = if reason.is_some() { Status::Error } else { Status::Ok };
        let salt = &flight.salts.result;
        let hash = hash.unwrap_or_else(|| result_hash(salt, status.code(), delivered.item()));
        let InFlight { live, leaf: intent_leaf, mut fields, label, .. } = *flight;
        // What did not run brought nothing: the words are the kernel's.
        let label = if reason == Some(Reason::NotRun) { Label::PUBLIC } else { label };
        fields.result_hash = Some(hash);
        fields.used = used;
        fields.used.set(Dimension::Concurrent, 0);
        fields.enforcement = Some(enforcement);
        let outcome = Outcome { call: fields, intent: seq, status, tx, reason, flags, label };
        let (outcome_seq, leaf) = self.append(BodyView::Outcome(&outcome))?;
        self.pending.keep(VaultWrite::new(outcome_seq, None, None, Some(delivered.as_bytes())));
        let left = self.left_of(live.session);
        let intent = Some((seq, intent_leaf));
        let degraded = outcome.call.degraded();
        let reply = Reply { ticket: live.ticket, intent, reason, delivered, tx, left, degraded };
        self.answer(outcome_seq, leaf, &outcome.call, reply);
        self.report_overload()
    }
}

/// What became of the effect: what only reads makes none, whatever its run says.
fn tx_of(effect: EffectClass, said: TxOutcome) -> TxOutcome {
    match said {
        TxOutcome::Committed | TxOutcome::RolledBack if effect.is_read_only() => TxOutcome::NoOp,
        said => said,
    }
}

/// The measured amounts, but no less than the hold: the end of such a run is unknown.
fn at_least(held: &Amounts, measured: Measured) -> Measured {
    Measured {
        cpu_us: measured.cpu_us.max(held.get(Dimension::CpuUs)),
        wall_us: measured.wall_us.max(held.get(Dimension::WallUs)),
    }
}

/// Puts measured time into what was used; says whether it exceeds what was held.
fn with_measured(used: Amounts, held: &Amounts, measured: Measured) -> (Amounts, OutcomeFlags) {
    let used =
        used.with(Dimension::CpuUs, measured.cpu_us).with(Dimension::WallUs, measured.wall_us);
    let overran = Dimension::ALL
        .into_iter()
        .any(|dimension| dimension.is_measured() && used.get(dimension) > held.get(dimension));
    (used, OutcomeFlags::OVERRUN.when(overran))
}
