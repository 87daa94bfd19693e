//! Admission: everything that can say no, then the intent.

use alloc::{boxed::Box, vec::Vec};

use crate::approvals::conditions::Inspecting;
use crate::approvals::request::{Asking, WantsTexts};
use crate::call::context::Context;
use crate::call::decide::Engines;
use crate::call::diagnostics::keyed;
use crate::call::fetch::{Fetched, Fetching, Found, Stored, Wanted};
use crate::call::links::{Lookup, Resolving};
use crate::call::{Call, Checked, Needs, Reserved, Stopped};
use crate::events::{Effect, Submit};
use crate::halt::Halt;
use crate::machine::Kernel;
use crate::registry::Mode;
use crate::run::answer::Reply;
use crate::run::flight::{Awaited, Brought, Gathered, InFlight, Parked, Waiting};
use crate::state::idempotency::KeyUse;
use crate::store::Room;
use crate::tool::Live;
use crate::tool::Ticket;
use syscap_format::{
    Amounts, BodyView, CallFields, Canonical, Dimension, Intent, Item, Label, Obligation, Reason,
    Refused, Repeat, RunMode, Seq, Source, Status, TxOutcome, VaultWrite, call_hash, result_hash,
};

/// Why a call is not admitted, or not yet.
enum Pause {
    Stop(Stopped),
    Fetch(Wanted),
    Resolve(Lookup, Box<Resolving>),
    Repeat(Box<Repeated>),
}

impl<T: Into<Stopped>> From<T> for Pause {
    fn from(stopped: T) -> Self {
        Self::Stop(stopped.into())
    }
}

/// A call whose idempotency key was used before, with what the vault has of the first one.
struct Repeated {
    intent: Seq,
    outcome: Seq,
    delivered: Canonical,
    status: Status,
    degraded: Vec<Obligation>,
    label: Label,
}

impl Kernel {
    /// A call comes in.
    pub(crate) fn submit(&mut self, mut submit: Submit) -> Result<(), Halt> {
        submit.proof = submit.proof.filter(|proof| self.takes(proof, &submit));
        if self.is_full() {
            return self.overload(&submit);
        }
        self.submit_with(submit, Gathered::default())
    }

    fn submit_with(&mut self, submit: Submit, mut gathered: Gathered) -> Result<(), Halt> {
        let mut fields = CallFields::unknown();
        match self.admit(&submit, &mut fields, &mut gathered) {
            Ok(call) => self.intend(submit, fields, call),
            Err(Pause::Stop(mut stopped)) => match stopped.asking.take() {
                Some(asking) => self.look_and_ask(submit, fields, stopped, asking, gathered),
                None => self.refuse(&submit, fields, stopped),
            },
            Err(Pause::Repeat(repeated)) => self.repeat(&submit, fields, *repeated),
            Err(Pause::Fetch(wanted)) => {
                self.fetch(submit.ticket, wanted.clone());
                self.park(submit, Awaited::Vault(wanted), gathered);
                Ok(())
            }
            Err(Pause::Resolve(lookup, resolving)) => {
                self.emit(Effect::Resolve(submit.ticket, resolving));
                self.park(submit, Awaited::Links(lookup), gathered);
                Ok(())
            }
        }
    }

    /// Asks a person, who is shown what is there that the call would change.
    fn look_and_ask(
        &mut self,
        submit: Submit,
        fields: CallFields,
        stopped: Stopped,
        mut asking: Box<Asking>,
        mut gathered: Gathered,
    ) -> Result<(), Halt> {
        let of = fields.args_hash;
        match (asking.inspector.take(), gathered.looked.take()) {
            (None, _) => self.ask(&submit, fields, stopped, &asking, &[]),
            (Some(_), Some((same, Some(seen)))) if same == of => {
                self.ask(&submit, fields, stopped, &asking, &seen.0)
            }
            (Some(_), Some((_, None))) => {
                self.refuse(&submit, fields, Refused::new(Reason::Panicked).into())
            }
            // A link leads elsewhere by now: once is enough.
            (Some(_), Some(_)) => self.refuse(&submit, fields, stopped),
            // Nothing is looked at for somebody who is not asked.
            (Some(_), None) if self.askable(&submit, &fields, &asking).is_none() => {
                self.refuse(&submit, fields, stopped)
            }
            (Some(inspector), None) => {
                self.emit(Effect::Inspect(submit.ticket, Box::new(Inspecting(inspector))));
                // Links are followed anew after that: much may have happened.
                gathered.links = None;
                self.park(submit, Awaited::Look(of), gathered);
                Ok(())
            }
        }
    }

    /// Goes on with a call that had to wait for something. All is checked again: the state may have
    /// moved in between. One that waits for something else goes on waiting for that.
    pub(crate) fn go_on(&mut self, ticket: Ticket, with: Brought) -> Result<(), Halt> {
        let Some(Parked { submit, waits_for, mut gathered }) = self.parked.remove(&ticket) else {
            return Ok(());
        };
        match (waits_for, with) {
            (Awaited::Vault(wanted), Brought::Fetched(fetched))
                if fetched.wanted == wanted && fetched.since != self.erased =>
            {
                self.fetch(ticket, wanted.clone());
                self.park(submit, Awaited::Vault(wanted), gathered);
                return Ok(());
            }
            (Awaited::Vault(wanted), Brought::Fetched(fetched)) if fetched.wanted == wanted => {
                let since = fetched.since;
                match (wanted, fetched.found) {
                    (Wanted::Texts(seq), Found::Texts(entry)) => {
                        gathered.texts = Some((seq, entry));
                    }
                    (wanted, found) => gathered.results = Some(Fetched { wanted, since, found }),
                }
            }
            (Awaited::Links(lookup), Brought::Found(found)) => {
                gathered.links = Some((lookup, found));
            }
            (Awaited::Look(of), Brought::Seen(seen)) => gathered.looked = Some((of, seen)),
            (waits_for, _) => {
                self.park(submit, waits_for, gathered);
                return Ok(());
            }
        }
        self.submit_with(submit, gathered)
    }

    /// Has the vault read for a call.
    fn fetch(&mut self, ticket: Ticket, wanted: Wanted) {
        self.emit(Effect::Fetch(ticket, Box::new(Fetching { wanted, since: self.erased })));
    }

    /// Rows are gone: what calls that wait have of them is read again.
    pub(crate) fn unread(&mut self, erased: Seq) {
        self.erased = erased;
        for parked in self.parked.values_mut() {
            (parked.gathered.results, parked.gathered.texts) = (None, None);
        }
    }

    fn park(&mut self, submit: Submit, waits_for: Awaited, gathered: Gathered) {
        self.parked.insert(submit.ticket, Parked { submit, waits_for, gathered });
    }

    fn is_full(&self) -> bool {
        let busy = self.in_flight.len().saturating_add(self.waiting.len());
        let busy = busy.saturating_add(self.parked.len());
        usize::try_from(self.state.limits.in_flight_max).is_ok_and(|max| busy >= max)
    }

    fn admit(
        &self,
        submit: &Submit,
        fields: &mut CallFields,
        gathered: &mut Gathered,
    ) -> Result<Reserved, Pause> {
        let context = self.context(submit.session, submit.source);
        let context = &context.ok_or_else(|| self.no_session())?;
        let (received, form, salts) = (&submit.received[..], submit.form, &submit.salts);
        // Before all that would tell what the token holds.
        if !self.is_proved(submit) {
            fields.call_hash = Some(call_hash(&salts.call, received));
            return Err(Refused::new(Reason::BadProof).field("proof").into());
        }
        let mut place = None;
        let registry = &self.registry;
        let decoded = Call::decode(received, form, salts, context, registry, fields, &mut place)?;
        let checked = decoded.check(context)?;
        self.is_open()?;
        let (checked, needs) = checked.needs(context)?;
        let (referred, parts) =
            match needs {
                Needs::Nothing => (&[][..], &[][..]),
                Needs::Repeat(used, outcome) => {
                    let (intent, result) = (used.intent, used.result);
                    let wanted = Wanted::Outcome(Stored { intent, outcome, result });
                    let found = gathered.results.take().filter(|found| found.wanted == wanted);
                    let Some(found) = found else { return Err(Pause::Fetch(wanted)) };
                    let repeated = first_outcome(&checked, used, outcome, found)?;
                    // Its family was given both, or it could not have made the first call.
                    debug_assert!(used.delivered().leq(context.label), "a repeat brings a label");
                    return Err(Pause::Repeat(Box::new(repeated)));
                }
                // What was fetched must be what is needed now: in between, another call with the same
                // key may have come and gone.
                Needs::Parts(parts) => match &gathered.results {
                    Some(Fetched {
                        wanted: Wanted::Parts(of), found: Found::Parts(found), ..
                    }) if *of == parts => (of.as_slice(), found.as_deref().map_err(Clone::clone)?),
                    _ => return Err(Pause::Fetch(Wanted::Parts(parts))),
                },
            };
        let resolved = checked.dereference(parts, salts)?;
        let (ticket, label) = (submit.ticket, context.label);
        let live = Live { ticket, session: submit.session, label };
        let (followed, unseen) = resolved.follow(context, salts, live, gathered.links.clone())?;
        if let Some((lookup, resolving)) = unseen {
            return Err(Pause::Resolve(lookup, resolving));
        }
        let planned = followed.plan(context, live)?;
        let answered = planned.answered(&self.requests, gathered.texts.as_ref(), context);
        let answered = answered.map_err(|WantsTexts(seq)| Pause::Fetch(Wanted::Texts(seq)))?;
        let shadow = self.shadow.as_ref().map(|(hash, engine)| (*hash, &**engine));
        let approved =
            planned.decide(context, Engines { policy: &*self.engine, shadow }, &answered)?;
        Ok(approved.reserve(context, salts, referred, parts)?.into_reserved())
    }

    /// A session and what is known around it, as of now.
    pub(crate) fn context(&self, session: Seq, source: Source) -> Option<Context<'_>> {
        let (durable, now) = (self.durable_seq(), self.now());
        Context::of(&self.state, session, &self.facts, source, durable, now)
    }

    /// Why nothing is done in a session that is not open.
    pub(crate) fn no_session(&self) -> Refused {
        match self.closing {
            true => Refused::new(Reason::Closing),
            false => Refused::new(Reason::NoSession).field("session"),
        }
    }

    /// The kernel takes new calls, and its policy and tools are those on record.
    fn is_open(&self) -> Result<(), Reason> {
        self.takes_work()?;
        if self.state.policy != Some(self.engine_hash)
            || self.state.shadow != self.shadow.as_ref().map(|(hash, _)| *hash)
            || self.aliased
        {
            Err(Reason::PolicyNotInForce)
        } else if self.state.tools != Some(self.tools_hash) {
            Err(Reason::ToolsMismatch)
        } else {
            Ok(())
        }
    }

    /// The kernel is not closing, and has room.
    pub(crate) fn takes_work(&self) -> Result<(), Reason> {
        if self.closing {
            Err(Reason::Closing)
        } else if self.room == Room::Reserve {
            Err(Reason::NoRoom)
        } else {
            Ok(())
        }
    }

    /// Writes down what is about to happen; this record sets the cost aside.
    fn intend(&mut self, submit: Submit, fields: CallFields, call: Reserved) -> Result<(), Halt> {
        self.close_aggregate(Some(submit.session))?;
        let preconditions = call.approval.as_ref().map(|yes| yes.recorded.clone());
        let preconditions = preconditions.unwrap_or_default();
        let intent = Intent {
            call: fields,
            effect: call.effect,
            mode: match call.mode {
                Mode::IntentFirst => RunMode::IntentFirst,
                Mode::WithOutcome => RunMode::WithOutcome,
            },
            key: call.key,
            sent_hash: call.sent,
            filled: call.filled,
            label: call.given,
            call_effect: call.call_effect,
            arguments: Vec::new(),
            approval: call.approval.as_ref().map(|yes| yes.by),
            preconditions,
        };
        let (seq, leaf) = self.append(BodyView::Intent(&intent))?;
        self.pending.keep(VaultWrite { seq, row: call.row });
        let flight = Box::new(InFlight {
            since: self.now(),
            live: Live { ticket: submit.ticket, session: submit.session, label: call.given },
            leaf,
            agent: call.agent,
            token: call.token,
            tool: call.tool,
            salts: submit.salts,
            fields: intent.call,
            effect: call.effect,
            label: call.label,
            digest: call.digest,
            result_bytes_max: call.result_bytes_max,
            read_only: call.read_only,
            wall_ms_max: call.wall_ms_max,
            conditions: call.approval.map(|yes| yes.conditions).unwrap_or_default(),
        });
        match call.mode {
            Mode::IntentFirst => {
                self.waiting.push_back((seq, Waiting::Intent(flight, call.plan)));
            }
            // A read's intent is durable with its outcome, before the answer leaves.
            Mode::WithOutcome => self.start(seq, flight, call.plan),
        }
        Ok(())
    }

    /// Answers a repeated key by the first outcome.
    fn repeat(
        &mut self,
        submit: &Submit,
        mut fields: CallFields,
        repeated: Repeated,
    ) -> Result<(), Halt> {
        self.close_aggregate(Some(submit.session))?;
        let Repeated { intent, outcome, delivered, status, degraded, label } = repeated;
        let hash = result_hash(&submit.salts.result, status.code(), delivered.item());
        fields.result_hash = Some(hash);
        fields.used = self.refusal_fee(submit.session);
        let error = delivered.item().get("code").and_then(Item::as_uint);
        let reason = match status {
            Status::Ok => None,
            Status::Error => error.and_then(Reason::from_code).or(Some(Reason::Failed)),
        };
        let repeat = Repeat { call: fields, intent, outcome, label };
        let (seq, leaf) = self.append(BodyView::Repeat(&repeat))?;
        self.pending.keep(VaultWrite::new(seq, Some(&submit.salts), None, None));
        // The result itself lies in the vault already, under the first outcome.
        let reply = Reply {
            ticket: submit.ticket,
            intent: None,
            reason,
            delivered,
            tx: TxOutcome::NoOp,
            left: self.left_of(submit.session),
            degraded,
        };
        self.answer(seq, leaf, &repeat.call, reply);
        Ok(())
    }

    /// The charge of a refused or repeated call: one of `calls`, as long as there is one.
    pub(crate) fn refusal_fee(&self, session: Seq) -> Amounts {
        let left = self.left_of(session).get(Dimension::Calls);
        Amounts::ZERO.with(Dimension::Calls, left.min(1))
    }

    pub(crate) fn left_of(&self, session: Seq) -> Amounts {
        let session = self.state.sessions.get(&session);
        session.map_or(Amounts::ZERO, |session| self.state.left(session.token))
    }
}

/// Compares a repeat with the first call by that call's own salt, and takes its outcome only if
/// the outcome is what its record commits to.
fn first_outcome(
    call: &Call<'_, Checked<'_>>,
    used: &KeyUse,
    outcome: Seq,
    fetched: Fetched,
) -> Result<Repeated, Refused> {
    let erased = || keyed(Reason::OutcomeErased);
    let Found::Outcome { salts, delivered } = fetched.found else { return Err(erased()) };
    // Without its salts the first call can't be compared with this one.
    let salts = salts.filter(|_| delivered.is_some() || used.result.is_none());
    if call.sent_by(&salts.ok_or_else(erased)?) != used.sent {
        return Err(keyed(Reason::KeyReused).allowed("a new key, or left out"));
    }
    // It is known to be done, but not what it brought.
    let (_, status) = used.result.ok_or_else(|| keyed(Reason::OutcomeLost))?;
    let delivered = delivered.ok_or_else(erased)?;
    let (degraded, label) = (used.degraded.clone(), used.label);
    Ok(Repeated { intent: used.intent, outcome, delivered, status, degraded, label })
}
