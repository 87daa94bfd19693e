//! Ways to change records.

use ed25519_dalek::SigningKey;
use syscap_format::{
    Body, CallFields, ClockFlags, Control, ControlBody, HomeId, Outcome, Record, Role, Seq,
    SignedEvent, UnixMillis, leaf,
};

use kernel_support::driver::{key, signed};

/// Makes a function that takes a record apart as one of a kind.
macro_rules! part {
    ($($name:ident $kind:ident $type:ident)*) => {$(
        pub(crate) fn $name(record: &mut Record) -> &mut syscap_format::$type {
            match &mut record.body {
                Body::$kind(body) => body,
                other => panic!("{:?}", other.kind()),
            }
        }
    )*};
}
part! {
    intent Intent Intent
    outcome Outcome Outcome
    boot Boot Boot
    shutdown Shutdown Shutdown
    issue Issue Issue
    session Session SessionChange
    refusal Refusal Refusal
    refusals Refusals Refusals
    repeat Repeat Repeat
    late Late Late
    report LateReport LateReport
    recovery Recovery Recovery
    state State StateChange
}

/// Changes the call of an intent and of its outcome alike.
pub(crate) fn both(records: &mut [Record], place: usize, change: impl Fn(&mut CallFields)) {
    change(&mut intent(&mut records[place]).call);
    let seq = records[place].seq;
    for record in records.iter_mut() {
        if let Body::Outcome(outcome) = &mut record.body
            && outcome.intent == seq
        {
            let (used, result) = (outcome.call.used, outcome.call.result_hash);
            let enforcement = outcome.call.enforcement;
            change(&mut outcome.call);
            outcome.call.used = used;
            outcome.call.result_hash = result;
            outcome.call.enforcement = enforcement;
        }
    }
}

pub(crate) fn home(records: &[Record]) -> HomeId {
    HomeId::from_bytes(*leaf(&records[0].encode()).as_bytes())
}

/// Dates a record, and what of it the kernel dates alike.
pub(crate) fn date(record: &mut Record, time: UnixMillis) {
    let call = match &mut record.body {
        Body::Intent(intent) => Some(&mut intent.call),
        Body::Outcome(outcome) => Some(&mut outcome.call),
        Body::Refusal(refusal) => Some(&mut refusal.call),
        Body::Ask(ask) => Some(&mut ask.call),
        Body::Repeat(repeat) => Some(&mut repeat.call),
        _ => None,
    };
    let from = call.and_then(|call| call.provenance.as_mut());
    if let Some(from) = from.filter(|from| from.time == Some(record.time)) {
        from.time = Some(time);
    }
    record.time = time;
}

/// Every record of a boot after a gap says so.
pub(crate) fn gap_from(records: &mut [Record], place: usize) {
    records[place..].iter_mut().for_each(|record| record.clock = ClockFlags::GAP);
}

/// A body beside the records that it is to stand with.
pub(crate) fn like(record: &Record, body: Body) -> Record {
    Record { body, ..record.clone() }
}

/// Puts a record in, and moves every reference to a record behind it.
pub(crate) fn insert(records: &mut Vec<Record>, place: usize, body: Body) {
    let time_of = place.min(records.len() - 1);
    let record = like(&records[time_of], body);
    let order = (0..records.len()).collect::<Vec<_>>();
    let mut tagged: Vec<(Option<usize>, Record)> =
        order.into_iter().map(Some).zip(records.drain(..)).collect();
    tagged.insert(place, (None, record));
    *records = renumber(tagged);
}

/// Takes a record out, and moves every reference to a record behind it.
pub(crate) fn remove(records: &mut Vec<Record>, place: usize) -> Record {
    let mut tagged: Vec<(Option<usize>, Record)> =
        (0..records.len()).map(Some).zip(records.drain(..)).collect();
    let (_, record) = tagged.remove(place);
    *records = renumber(tagged);
    record
}

/// Moves a record from one place to another, with all references to it.
pub(crate) fn shift(records: &mut Vec<Record>, from: usize, to: usize) {
    let mut tagged: Vec<(Option<usize>, Record)> =
        (0..records.len()).map(Some).zip(records.drain(..)).collect();
    let record = tagged.remove(from);
    tagged.insert(to, record);
    *records = renumber(tagged);
}

fn renumber(tagged: Vec<(Option<usize>, Record)>) -> Vec<Record> {
    let places: Vec<Option<usize>> = tagged.iter().map(|(tag, _)| *tag).collect();
    let now = |seq: Seq| {
        let old = usize::try_from(seq.get()).unwrap();
        let new = places.iter().position(|tag| *tag == Some(old));
        new.map_or(seq, |new| Seq::new(new as u64))
    };
    let mut records: Vec<Record> = tagged.into_iter().map(|(_, record)| record).collect();
    for (place, record) in records.iter_mut().enumerate() {
        if places[place].is_some() {
            references(record, &now);
        }
        record.seq = Seq::new(place as u64);
    }
    records
}

fn references(record: &mut Record, now: &dyn Fn(Seq) -> Seq) {
    let of_call = |call: &mut CallFields| call.session = call.session.map(now);
    match &mut record.body {
        Body::Session(change) => change.session = change.session.map(now),
        Body::Charge(charge) => charge.session = now(charge.session),
        Body::Intent(intent) => of_call(&mut intent.call),
        Body::State(change) => {
            of_call(&mut change.call);
            let inputs = change.call.provenance.iter_mut().flat_map(|from| &mut from.inputs);
            inputs.for_each(|input| *input = now(*input));
        }
        Body::Outcome(outcome) => {
            of_call(&mut outcome.call);
            outcome.intent = now(outcome.intent);
        }
        Body::Refusal(refusal) => of_call(&mut refusal.call),
        Body::Refusals(refusals) => {
            refusals.session = refusals.session.map(now);
            refusals.opened = refusals.opened.map(now);
        }
        Body::Repeat(repeat) => {
            of_call(&mut repeat.call);
            repeat.intent = now(repeat.intent);
            repeat.outcome = now(repeat.outcome);
        }
        Body::Late(late) => late.intent = now(late.intent),
        Body::LateReport(report) => report.intent = now(report.intent),
        Body::Cancel(cancel) => {
            cancel.intent = now(cancel.intent);
            cancel.session = cancel.session.map(now);
        }
        Body::Recovery(recovery) => recovery.intent = now(recovery.intent),
        _ => {}
    }
}

/// A signed event, by the role's own key.
pub(crate) fn event<B: ControlBody>(home: &HomeId, counter: u64, body: &B) -> Control {
    event_by(home, &key(Role::of(B::KIND).unwrap()), counter, body)
}

pub(crate) fn event_by<B: ControlBody>(
    home: &HomeId,
    key: &SigningKey,
    counter: u64,
    body: &B,
) -> Control {
    signed(home, key, counter, B::KIND, body.to_bytes())
}

pub(crate) fn boxed(control: Control) -> Box<SignedEvent> {
    Box::new(SignedEvent { control })
}

/// The control event of a record.
pub(crate) fn control(record: &mut Record) -> &mut Control {
    match &mut record.body {
        Body::Key(event)
        | Body::Revoke(event)
        | Body::Freeze(event)
        | Body::FreezeBecause(event)
        | Body::Policy(event)
        | Body::PolicyBecause(event)
        | Body::Tools(event)
        | Body::Config(event)
        | Body::Redact(event)
        | Body::Credit(event) => &mut event.control,
        other => panic!("{:?}", other.kind()),
    }
}

pub(crate) fn as_outcome(outcome: Outcome) -> Body {
    Body::Outcome(Box::new(outcome))
}
