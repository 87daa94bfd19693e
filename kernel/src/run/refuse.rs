//! Refusals: each on the record, a flood of them counted together.

use alloc::{boxed::Box, vec::Vec};

use crate::call::Stopped;
use crate::events::{Effect, Submit};
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::run::aggregate::Counted;
use crate::run::answer::Reply;
use crate::run::flight::Waiting;
use crate::state::sessions::Aggregate;
use crate::tool::Ticket;
use syscap_format::{
    AGGREGATE_MS_MAX, AggregatePhase, Amounts, BodyView, CallFields, CallSalts, Canonical,
    Dimension, ErrorKind, Leaf, REFUSALS_IN_A_ROW_MAX, Reason, Refusal, RefusalKind, Refusals,
    Refused, Seq, Status, TxOutcome, VaultWrite, result_hash,
};

/// How a refusal stands in the log.
struct Written {
    /// The record that answers for it.
    seq: Seq,
    leaf: Leaf,
    /// True if that record is its own; else an aggregate counts it.
    own: bool,
    fields: CallFields,
    delivered: Canonical,
}

impl Kernel {
    /// Answers a call that a step said no to.
    pub(crate) fn refuse(
        &mut self,
        submit: &Submit,
        fields: CallFields,
        stopped: Stopped,
    ) -> Result<(), Halt> {
        let reason = stopped.refused.reason();
        // A caller without a good proof is in no session: it learns nothing of the token, and the
        // token's holder pays nothing.
        let session = self.is_proved(submit).then_some(submit.session);
        let refused = self.write_down(session, &submit.salts, fields, stopped)?;
        let Written { seq, leaf, own, fields, delivered } = refused;
        let reply = Reply {
            ticket: submit.ticket,
            intent: None,
            reason: Some(reason),
            delivered,
            tx: TxOutcome::NoOp,
            left: fields.session.map_or(Amounts::ZERO, |session| self.left_of(session)),
            degraded: Vec::new(),
        };
        if own {
            self.answer(seq, leaf, &fields, reply);
        } else {
            // An answer that names a request waits for it: the request may be newer than the
            // aggregate.
            let after = if reason == Reason::Asked { self.state.head.seq } else { seq };
            self.answer_after(after, seq, leaf, &fields, reply);
        }
        Ok(())
    }

    /// Answers a proposal that is refused.
    pub(crate) fn refuse_proposal(
        &mut self,
        ticket: Ticket,
        session: Seq,
        salts: &CallSalts,
        fields: CallFields,
        refused: Refused,
    ) -> Result<(), Halt> {
        let stopped = Stopped::from(refused.clone());
        let Written { seq, own, .. } = self.write_down(Some(session), salts, fields, stopped)?;
        let ack = Waiting::Ack(ticket, Err(refused));
        if own {
            self.waiting.push_back((seq, ack));
        } else {
            self.when_durable(seq, ack);
        }
        Ok(())
    }

    /// Puts a refusal in the log, in a record of its own or in an aggregate.
    fn write_down(
        &mut self,
        session: Option<Seq>,
        salts: &CallSalts,
        mut fields: CallFields,
        stopped: Stopped,
    ) -> Result<Written, Halt> {
        let session = session.filter(|session| self.state.sessions.contains_key(session));
        let delivered = stopped.refused.error_object(stopped.error_kind());
        fields.session = session;
        let hash = result_hash(&salts.result, Status::Error.code(), delivered.item());
        fields.result_hash = Some(hash);
        let reason = stopped.refused.reason();
        if let Some((aggregate, leaf)) = self.aggregated(session, reason)? {
            let seq = aggregate.opened;
            return Ok(Written { seq, leaf, own: false, fields, delivered });
        }
        fields.held = Amounts::ZERO;
        fields.used = session.map_or(Amounts::ZERO, |session| self.refusal_fee(session));
        let refusal = Refusal { call: fields, refusal_kind: stopped.kind, reason };
        let (seq, leaf) = self.append(BodyView::Refusal(&refusal))?;
        let (args, result) =
            (stopped.args.as_ref().map(Canonical::as_bytes), Some(delivered.as_bytes()));
        self.pending.keep(VaultWrite::new(seq, Some(salts), args, result));
        Ok(Written { seq, leaf, own: true, fields: refusal.call, delivered })
    }

    /// Refuses a control event, a token or a session, on the record.
    pub(crate) fn refuse_control(&mut self, ticket: Ticket, refused: Refused) -> Result<(), Halt> {
        let reason = refused.reason();
        if let Some((aggregate, _)) = self.aggregated(None, reason)? {
            self.when_durable(aggregate.opened, Waiting::Ack(ticket, Err(refused)));
            return Ok(());
        }
        let call = CallFields::unknown();
        let refusal = Refusal { call, refusal_kind: RefusalKind::Control, reason };
        let (seq, _) = self.append(BodyView::Refusal(&refusal))?;
        self.waiting.push_back((seq, Waiting::Ack(ticket, Err(refused))));
        Ok(())
    }

    /// Counts a refusal into the aggregate of its session, opening or renewing one where there
    /// have been too many in a row; `None` where it gets a record of its own.
    fn aggregated(
        &mut self,
        session: Option<Seq>,
        reason: Reason,
    ) -> Result<Option<(Aggregate, Leaf)>, Halt> {
        let now = self.now();
        if self.aggregates.get(&session).is_some_and(|run| now.since(run.since) >= AGGREGATE_MS_MAX)
        {
            self.close_aggregate(session)?;
        }
        let Some(run) = self.state.streak_of(session) else {
            return Ok(None);
        };
        if run.in_a_row < REFUSALS_IN_A_ROW_MAX {
            return Ok(None);
        }
        let answered = self.aggregates.get(&session).map_or(0, |live| live.count);
        if run.aggregate.is_some_and(|aggregate| answered >= aggregate.answers_max) {
            self.close_aggregate(session)?;
        }
        self.open_aggregate(session)?;
        let aggregate = self.state.streak_of(session).and_then(|run| run.aggregate);
        let live = self.aggregates.entry(session).or_default();
        live.count(now, reason);
        Ok(aggregate.zip(live.leaf))
    }

    fn open_aggregate(&mut self, session: Option<Seq>) -> Result<(), Halt> {
        let Some(run) = self.state.streak_of(session).filter(|run| run.aggregate.is_none()) else {
            return Ok(());
        };
        let answers_max = run.next_max;
        let left = session.map_or(0, |session| self.left_of(session).get(Dimension::Calls));
        let token = session.and_then(|session| self.state.sessions.get(&session));
        let refusals = Refusals {
            phase: AggregatePhase::Open,
            session,
            token: token.map(|session| session.token_id),
            opened: None,
            answers_max,
            // Half of what is left, so that refusals lock no good call out.
            reserved: left.div_ceil(2).min(answers_max),
            count: None,
            digest: None,
        };
        let (_, leaf) = self.append(BodyView::Refusals(&refusals))?;
        let since = self.now();
        self.aggregates.insert(session, Counted::open(leaf, since));
        Ok(())
    }

    /// Closes the aggregate of a session, if one is open.
    pub(crate) fn close_aggregate(&mut self, session: Option<Seq>) -> Result<(), Halt> {
        let Some(aggregate) = self.state.streak_of(session).and_then(|run| run.aggregate) else {
            return Ok(());
        };
        let live = self.aggregates.remove(&session).unwrap_or_default();
        let token = session.and_then(|session| self.state.sessions.get(&session));
        let refusals = Refusals {
            phase: AggregatePhase::Close,
            session,
            token: token.map(|session| session.token_id),
            opened: Some(aggregate.opened),
            answers_max: aggregate.answers_max,
            reserved: aggregate.reserved,
            count: Some(live.count),
            digest: Some(live.digest()),
        };
        self.append(BodyView::Refusals(&refusals)).map(|_| ())
    }

    /// Closes aggregates that have been open long enough.
    pub(crate) fn tick(&mut self) -> Result<(), Halt> {
        let now = self.now();
        let old: Vec<Option<Seq>> = self
            .aggregates
            .iter()
            .filter(|(_, run)| now.since(run.since) >= AGGREGATE_MS_MAX)
            .map(|(session, _)| *session)
            .collect();
        old.into_iter().try_for_each(|session| self.close_aggregate(session))
    }

    /// Turns a call away because too many are in flight. It is answered at once, and counted in
    /// the next aggregate of such.
    pub(crate) fn overload(&mut self, submit: &Submit) -> Result<(), Halt> {
        let now = self.now();
        self.overloaded.count(now, Reason::Overloaded);
        let refused = Refused::new(Reason::Overloaded);
        let delivered = refused.error_object(ErrorKind::Refused);
        let mut fields = CallFields::unknown();
        fields.result_hash =
            Some(result_hash(&submit.salts.result, Status::Error.code(), delivered.item()));
        let reply = Reply {
            ticket: submit.ticket,
            intent: None,
            reason: Some(Reason::Overloaded),
            delivered,
            tx: TxOutcome::NoOp,
            left: match self.is_proved(submit) {
                true => self.left_of(submit.session),
                false => Amounts::ZERO,
            },
            degraded: Vec::new(),
        };
        // There is no record of its own to point to: the last durable one says when it was.
        let head = self.pending.durable().unwrap_or(self.state.head);
        let result = self.result(head.seq, head.leaf, &fields, reply);
        self.emit(Effect::Reply(submit.ticket, Box::new(result)));
        Ok(())
    }

    /// Writes down how many calls were turned away, now that there is room again.
    pub(crate) fn report_overload(&mut self) -> Result<(), Halt> {
        if self.overloaded.count == 0 {
            return Ok(());
        }
        let live = core::mem::take(&mut self.overloaded);
        let refusals = Refusals {
            phase: AggregatePhase::Overload,
            session: None,
            token: None,
            opened: None,
            answers_max: live.count,
            reserved: 0,
            count: Some(live.count),
            digest: Some(live.digest()),
        };
        self.append(BodyView::Refusals(&refusals)).map(|_| ())
    }

    /// Answers a refusal that was only counted, once a record is durable.
    fn answer_after(
        &mut self,
        after: Seq,
        opened: Seq,
        leaf: Leaf,
        fields: &CallFields,
        reply: Reply,
    ) {
        let ticket = reply.ticket;
        let result = Box::new(self.result(opened, leaf, fields, reply));
        self.when_durable(after, Waiting::Reply(ticket, result));
    }

    /// Lets an answer go as soon as a record that exists already is durable.
    fn when_durable(&mut self, seq: Seq, waiting: Waiting) {
        if self.pending.is_durable(seq) {
            match waiting {
                Waiting::Reply(ticket, result) => self.emit(Effect::Reply(ticket, result)),
                Waiting::Ack(ticket, ack) => self.emit(Effect::Ack(ticket, ack)),
                Waiting::Intent(..) => {}
            }
            return;
        }
        // The queue is in order of records; what comes later may wait a little longer.
        let last = self.waiting.back().map_or(seq, |(last, _)| seq.max(*last));
        self.waiting.push_back((last, waiting));
    }
}
