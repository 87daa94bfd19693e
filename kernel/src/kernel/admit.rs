//! Admission: everything that can say no, then the intent.

use alloc::{boxed::Box, format, vec::Vec};

use super::{
    Effect, Kernel, Submit, Ticket,
    settle::{InFlight, Reply, Waiting},
};
use crate::{
    call::{Call, Checked, Needs, Reserved, Seat, Seen, Stopped},
    decide::Engines,
    halt::Halt,
    registry::Mode,
    resolve::{Found, Lookup, Resolving},
    state::Released,
    store::Room,
    told::keyed,
    tool::Live,
};
use syscap_format::{
    budget::{Amounts, Dimension},
    cbor::{Canonical, Item, Profile},
    envelope::{Status, TxOutcome},
    facts::Facts,
    field::List,
    hash::result_hash,
    id::Seq,
    label::Label,
    limits::RESULT_BYTES_MAX,
    obligation::Obligation,
    reason::{Reason, Refused},
    record::{Body, CallFields, Intent, Repeat, RunMode},
    time::UnixMillis,
    vault::{VaultEntry, VaultWrite},
};

/// What admission came to.
enum Admission {
    Ready(Box<Call<Reserved>>),
    Fetch(Wanted, Option<Seen>),
    Resolve(Lookup, Box<Resolving>),
    Repeat(Box<Repeated>),
}

/// A call whose idempotency key was used before, with what the vault has of the first one.
struct Repeated {
    fields: Box<CallFields>,
    intent: Seq,
    outcome: Seq,
    delivered: Canonical,
    status: Status,
    degraded: Vec<Obligation>,
    label: Label,
}

/// Pairs of intent and outcome.
pub(super) type Wanted = Vec<(Seq, Seq)>;

/// What was fetched for a call, and in answer to what.
type Fetched<'a> = Option<(Wanted, &'a [VaultEntry])>;

type Admitted = Result<Admission, Box<Stopped>>;

/// A call that waits for the host.
pub(super) struct Parked {
    submit: Submit,
    waits_for: Awaited,
}

enum Awaited {
    /// Entries of the vault; with what links led to, where that is known already.
    Vault(Wanted, Option<Seen>),
    /// What links lead to. Entries that were fetched before are fetched again: they can be large.
    Links(Lookup),
}

impl Kernel {
    pub(super) fn submit(
        &mut self,
        submit: Submit,
        fetched: Fetched<'_>,
        seen: Option<Seen>,
    ) -> Result<(), Halt> {
        if fetched.is_none() && seen.is_none() && self.is_full() {
            return self.overload(&submit);
        }
        match self.admit(&submit, fetched.as_ref(), seen) {
            Ok(Admission::Ready(call)) => self.intend(submit, *call),
            Ok(Admission::Fetch(wanted, seen)) => {
                self.emit(Effect::Fetch(submit.ticket, wanted.clone()));
                self.park(submit, Awaited::Vault(wanted, seen));
                Ok(())
            }
            Ok(Admission::Resolve(lookup, resolving)) => {
                self.emit(Effect::Resolve(submit.ticket, resolving));
                self.park(submit, Awaited::Links(lookup));
                Ok(())
            }
            Ok(Admission::Repeat(repeated)) => self.repeat(&submit, *repeated),
            Err(stopped) => self.refuse(&submit, *stopped),
        }
    }

    /// Goes on with a call that had to wait for the vault. All is checked again: the state may
    /// have moved in between.
    pub(super) fn fetched(&mut self, ticket: Ticket, entries: &[VaultEntry]) -> Result<(), Halt> {
        match self.parked.remove(&ticket) {
            Some(Parked { submit, waits_for: Awaited::Vault(wanted, seen) }) => {
                self.submit(submit, Some((wanted, entries)), seen)
            }
            other => self.put_back(ticket, other),
        }
    }

    /// Goes on with a call whose links were followed. As after a fetch, all is checked again.
    pub(super) fn resolved(
        &mut self,
        ticket: Ticket,
        found: Result<Found, Refused>,
    ) -> Result<(), Halt> {
        match self.parked.remove(&ticket) {
            Some(Parked { submit, waits_for: Awaited::Links(lookup) }) => {
                self.submit(submit, None, Some((lookup, found)))
            }
            other => self.put_back(ticket, other),
        }
    }

    fn park(&mut self, submit: Submit, waits_for: Awaited) {
        self.parked.insert(submit.ticket, Parked { submit, waits_for });
    }

    /// A call that waits for something else goes on waiting for that.
    fn put_back(&mut self, ticket: Ticket, parked: Option<Parked>) -> Result<(), Halt> {
        self.parked.extend(parked.map(|parked| (ticket, parked)));
        Ok(())
    }

    fn is_full(&self) -> bool {
        let busy = self.in_flight.len().saturating_add(self.waiting.len());
        let busy = busy.saturating_add(self.parked.len());
        usize::try_from(self.state.limits.in_flight_max).is_ok_and(|max| busy >= max)
    }

    fn admit(
        &self,
        submit: &Submit,
        fetched: Option<&(Wanted, &[VaultEntry])>,
        seen: Option<Seen>,
    ) -> Admitted {
        let Some(session) = self.state.sessions.get(&submit.session) else {
            let refused = Refused::new(Reason::Closing).field("session");
            return Err(Box::new(Stopped::new(Box::new(CallFields::unknown()), refused)));
        };
        let facts = self.facts.get(&session.agent).unwrap_or(Facts::none());
        let agent = self.state.agents.get(&session.agent);
        let (state, number, durable) = (&self.state, submit.session, self.durable_seq());
        let source = submit.source;
        let seat = Seat { state, session, number, agent, facts, source, durable };
        let now = self.now();
        let (received, form, registry) = (&submit.received, submit.form, &self.registry);
        let decoded = Call::decode(received, form, &submit.salts, &seat, registry, now)?;
        let checked = decoded.check(&seat, &self.registry, now)?;
        let checked = self.is_open(checked)?;
        let (checked, needs) = checked.needs(&seat, now)?;
        let wanted = needs.wanted();
        // What was fetched must be what is needed now: in between, another call with the same
        // key may have come and gone.
        let entries = match fetched {
            _ if wanted.is_empty() => &[][..],
            Some((fetched, entries)) if *fetched == wanted => entries,
            _ => return Ok(Admission::Fetch(wanted, seen)),
        };
        let results = match needs {
            Needs::Nothing => Vec::new(),
            Needs::Repeat(intent, outcome) => {
                return first_outcome(checked, (&seat, now), (intent, outcome), entries);
            }
            Needs::Results(released) => match verified(&released, entries) {
                Ok(results) => results,
                Err(refused) => {
                    return Err(Box::new(Stopped::new(checked.into_fields(), refused)));
                }
            },
        };
        let resolved = checked.resolve(&results, &self.registry, &submit.salts)?;
        let live = Live { ticket: submit.ticket, session: submit.session };
        let with = (&submit.salts, live);
        let (followed, unseen) = resolved.follow(&seat, &self.registry, with, seen)?;
        if let Some((lookup, resolving)) = unseen {
            return Ok(Admission::Resolve(lookup, resolving));
        }
        let planned = followed.plan(&seat, &self.registry, live)?;
        let shadow = self.shadow.as_ref().map(|(hash, engine)| (*hash, &**engine));
        let engines = Engines { policy: &*self.engine, shadow };
        let approved = planned.decide(&seat, &self.registry, engines, now)?;
        let reserved = approved.reserve(&seat, &self.registry, &submit.salts)?;
        Ok(Admission::Ready(Box::new(reserved)))
    }

    /// The kernel takes new calls, and its policy and tools are those on record.
    fn is_open(&self, call: Call<Checked>) -> Result<Call<Checked>, Box<Stopped>> {
        let reason = if self.closing {
            Reason::Closing
        } else if self.room == Room::Reserve {
            Reason::NoRoom
        } else if self.state.policy != Some(self.engine_hash)
            || self.state.shadow != self.shadow.as_ref().map(|(hash, _)| *hash)
            || self.aliased
        {
            Reason::PolicyMismatch
        } else if self.state.tools != Some(self.tools_hash) {
            Reason::ToolsMismatch
        } else {
            return Ok(call);
        };
        Err(Box::new(Stopped::new(call.into_fields(), reason)))
    }

    /// Writes down what is about to happen; this record sets the cost aside.
    fn intend(&mut self, submit: Submit, call: Call<Reserved>) -> Result<(), Halt> {
        self.close_run(Some(submit.session))?;
        let (fields, at) = call.into_parts();
        let Some(registered) = self.registry.find(at.call.tool()) else {
            return self.refuse(&submit, Stopped::new(fields, Reason::UnknownTool));
        };
        let manifest = &registered.manifest;
        let (effect, wall_ms_max) = (manifest.effect, manifest.wall_ms_max);
        let (session, label) = (self.state.sessions.get(&submit.session), manifest.label);
        let given = session.map_or(Label::PUBLIC, |session| session.label);
        let cap = at.kept.result_bytes_max.and_then(|max| usize::try_from(max).ok());
        let result_bytes_max = cap.map_or(usize::MAX, |cap| cap).min(manifest.result_limit());
        let body = Self::boxed(
            Intent {
                call: *fields,
                effect,
                mode: match at.mode {
                    Mode::IntentFirst => RunMode::IntentFirst,
                    Mode::WithOutcome => RunMode::WithOutcome,
                },
                key: at.call.key().cloned(),
                sent_hash: at.sent,
                filled: at.call.filled(),
                label: given,
                call_effect: effect,
                arguments: List(Vec::new()),
                approval: None,
                preconditions: List(Vec::new()),
            },
            Body::Intent,
        );
        let (seq, leaf, body) = self.append(body)?;
        let Body::Intent(intent) = body else {
            return Err(Halt::Contradiction { seq });
        };
        self.pending.keep(VaultWrite::new(
            seq,
            Some(&submit.salts),
            Some(at.args.as_bytes()),
            None,
        ));
        let flight = InFlight {
            since: self.now(),
            ticket: submit.ticket,
            leaf,
            session: submit.session,
            salts: submit.salts,
            fields: Box::new(intent.call),
            effect,
            label,
            digest: at.digest,
            result_bytes_max,
            read_only: at.kept.read_only,
            wall_ms_max,
        };
        match at.mode {
            Mode::IntentFirst => {
                self.waiting.push_back((seq, Waiting::Intent(Box::new(flight), at.plan)));
            }
            // A read's intent is durable with its outcome, before the answer leaves.
            Mode::WithOutcome => self.start(seq, Box::new(flight), at.plan),
        }
        Ok(())
    }

    /// Answers a repeated key by the first outcome.
    fn repeat(&mut self, submit: &Submit, repeated: Repeated) -> Result<(), Halt> {
        self.close_run(Some(submit.session))?;
        let Repeated { mut fields, intent, outcome, delivered, status, degraded, label } = repeated;
        let hash = result_hash(&submit.salts.result, status.code(), delivered.item());
        fields.result_hash = Some(hash);
        fields.used = self.refusal_fee(submit.session);
        let error = delivered.item().get("code").and_then(Item::as_uint);
        let reason = match status {
            Status::Ok => None,
            Status::Error => error.and_then(Reason::from_code).or(Some(Reason::Failed)),
        };
        let body = Self::boxed(Repeat { call: *fields, intent, outcome, label }, Body::Repeat);
        let (seq, leaf, body) = self.append(body)?;
        let Body::Repeat(repeat) = body else {
            return Err(Halt::Contradiction { seq });
        };
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

    /// What a refused or repeated call pays: one of `calls`, as long as there is one.
    pub(super) fn refusal_fee(&self, session: Seq) -> Amounts {
        let left = self.left_of(session).get(Dimension::Calls);
        Amounts::ZERO.with(Dimension::Calls, left.min(1))
    }

    pub(super) fn left_of(&self, session: Seq) -> Amounts {
        let session = self.state.sessions.get(&session);
        session.map_or(Amounts::ZERO, |session| self.state.tokens.left(session.token))
    }
}

/// Compares a repeat with the first call by that call's own salt, and takes its outcome only if
/// the outcome is what its record commits to.
fn first_outcome(
    call: Call<Checked>,
    (seat, now): (&Seat<'_>, UnixMillis),
    (intent, outcome): (Seq, Seq),
    entries: &[VaultEntry],
) -> Admitted {
    let entry = entries.first().cloned().unwrap_or_default();
    let slot = call.key_slot();
    let used = slot.and_then(|slot| seat.state.keys.get(&slot, now));
    let stop = |call: Call<Checked>, reason: Reason| {
        let refused = keyed(reason);
        let refused = match reason {
            Reason::KeyReused => refused.allowed("a new key, or left out"),
            _ => refused,
        };
        Err(Box::new(Stopped::new(call.into_fields(), refused)))
    };
    let (Some(salts), Some(result), Some(used)) = (entry.salts, entry.result, used) else {
        return stop(call, Reason::OutcomeErased);
    };
    if call.sent_by(&salts) != Some(used.sent) {
        return stop(call, Reason::KeyReused);
    }
    let Ok(delivered) = Canonical::check(result, Profile::DATA) else {
        return stop(call, Reason::OutcomeErased);
    };
    let status = match used.result {
        Some((hash, status))
            if result_hash(&salts.result, status.code(), delivered.item()) == hash =>
        {
            status
        }
        _ => return stop(call, Reason::OutcomeErased),
    };
    let (degraded, label) = (used.degraded.clone(), used.label);
    let fields = call.into_fields();
    let repeated = Repeated { fields, intent, outcome, delivered, status, degraded, label };
    Ok(Admission::Repeat(Box::new(repeated)))
}

/// Fetched results that are what their records commit to.
fn verified(wanted: &[Released], entries: &[VaultEntry]) -> Result<Vec<(Seq, Canonical)>, Refused> {
    let erased = || Refused::new(Reason::ReferenceErased).field("$ref");
    if wanted.len() != entries.len() {
        return Err(erased());
    }
    let size = |entry: &VaultEntry| entry.result.as_ref().map_or(0, Vec::len);
    if entries.iter().map(size).fold(0, usize::saturating_add) > RESULT_BYTES_MAX {
        let refused = Refused::new(Reason::TooLarge).field("$ref");
        return Err(refused.allowed(&format!("at most {RESULT_BYTES_MAX} bytes in all")));
    }
    let each = wanted.iter().zip(entries).map(|(released, entry)| {
        let (Some(salts), Some(bytes)) = (entry.salts, entry.result.clone()) else {
            return Err(erased());
        };
        let result = Canonical::check(bytes, Profile::DATA).map_err(|_| erased())?;
        let hash = result_hash(&salts.result, Status::Ok.code(), result.item());
        if hash != released.result_hash {
            return Err(erased());
        }
        Ok((released.outcome, result))
    });
    each.collect()
}
