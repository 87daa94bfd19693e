//! Records as JSON, every field under the name that its table gives it.
//!
//! A record's bytes are walked as they are, led by the tables that the kernel made them with:
//! codes become their names, amounts a map of the dimensions that are not zero, and ids, hashes,
//! keys and signatures hexadecimal text.

use syscap::format::field::{FieldSpec, Shape as _};
use syscap::format::{
    AggregatePhase, Algorithm, ApprovalAnswer, ApprovalBody, ApprovalChannel, ArgumentLabel, Body,
    COMMON_FIELDS, CancelBody, ConfigChange, Control, CreditChange, Decision, Decoder, Dimension,
    Durability, EffectClass, Enforcement, FreezeBecause, FreezeChange, FreezeTarget, HomeLimits,
    Item, ItemKind, KeyChange, LateReport, Obligation, ObligationKind, PolicyBecause, Possession,
    Precondition, PreviousRun, Profile, Provenance, Reason, Record, RecordKind, Recovered,
    RedactBody, RefusalKind, Resolution, Revocation, RevokeTarget, Role, RoleKey, RoleSet, RunMode,
    SessionPhase, Shadow, Signed, Source, Status, ToolsChange, TxOutcome, Verdict, json, leaf,
};

use crate::output::{Object, array, quote, with_hex};

/// Keys below this are the same in all records, and number what stands inside them.
const OWN_KEYS_FROM: u64 = 10;

/// A record, with its leaf and its time for people. `body` of a signed event is read too.
pub(crate) fn record(record: &Record, bytes: &[u8]) -> Object {
    let kind = record.body.kind();
    let mut specs: Vec<FieldSpec> = COMMON_FIELDS.to_vec();
    specs.extend(match &record.body {
        Body::LateReport(_) => LateReport::fields(),
        _ => kind.fields(),
    });
    let object = Object::new().shown("leaf", leaf(bytes)).shown("utc", record.time);
    let checked = Item::check(bytes, Profile::CONTROL).unwrap_or(Item::NULL);
    entries(object, checked, &specs, kind)
}

/// A record that this program does not know: its fields as they stand, by their numbers.
pub(crate) fn unknown(bytes: &[u8]) -> Object {
    let checked = Item::check(bytes, Profile::CONTROL).unwrap_or(Item::NULL);
    let object = Object::new().shown("leaf", leaf(bytes));
    // Of no kind that says what a field is.
    entries(object, checked, &COMMON_FIELDS, RecordKind::Checkpoint)
}

/// The entries of a map with integer keys, by the names of its table.
fn entries(mut object: Object, map: Item<'_>, specs: &[FieldSpec], kind: RecordKind) -> Object {
    for (key, item) in uint_entries(map) {
        let spec = specs.iter().find(|spec| spec.key == key);
        let name = named(key, spec, kind);
        object = object.json(&name, &value(item, spec.map_or("any", |spec| spec.shape), kind));
        if name == "body"
            && let Some(bytes) = item.as_byte_string()
            && let Ok(body) = Item::check(bytes, Profile::CONTROL)
        {
            let said = entries(Object::new(), body, &said_by(kind), kind);
            object = object.json("says", &said.finish());
        }
    }
    object
}

/// The name of a key. A refusal has a kind of its own beside the record's.
fn named(key: u64, spec: Option<&FieldSpec>, kind: RecordKind) -> String {
    match spec {
        None => key.to_string(),
        Some(spec) if key >= OWN_KEYS_FROM && is_common(spec.name) => {
            format!("{}_{}", kind.name(), spec.name)
        }
        Some(spec) => spec.name.to_owned(),
    }
}

fn is_common(name: &str) -> bool {
    COMMON_FIELDS.iter().any(|common| common.name == name)
}

fn uint_entries(map: Item<'_>) -> Vec<(u64, Item<'_>)> {
    let mut decoder = Decoder::new(map.as_bytes(), Profile::CONTROL);
    let count = u64::try_from(map.count()).unwrap_or(0);
    if map.kind() != ItemKind::Map || decoder.shape(count).is_err() {
        return Vec::new();
    }
    (0..count).map_while(|_| Some((decoder.uint().ok()?, decoder.item().ok()?))).collect()
}

/// A value, by the shape that its table gives it.
fn value(item: Item<'_>, shape: &str, kind: RecordKind) -> String {
    match (shape, item.kind()) {
        (_, ItemKind::Null) => "null".to_owned(),
        ("any", _) => json::from_data(item),
        ("array of 10 uint", ItemKind::Array) => amounts(item),
        (shape, ItemKind::Array) => {
            let shape = shape.strip_prefix("array of 5 ").unwrap_or(shape);
            array(item.elements().map(|item| value(item, shape, kind)))
        }
        (shape, ItemKind::Map) => entries(Object::new(), item, &nested(shape), kind).finish(),
        (shape, ItemKind::Uint) => match item.as_uint().and_then(|code| name(shape, code)) {
            Some(name) => quote(name),
            None => json::from_data(item),
        },
        (_, ItemKind::Bytes) => with_hex(item),
        _ => json::from_data(item),
    }
}

/// The tables of what stands inside records.
fn nested(shape: &str) -> Vec<FieldSpec> {
    match shape {
        "Decision" => Decision::fields(),
        "Obligation" => Obligation::fields(),
        "Shadow" => Shadow::fields(),
        "Provenance" => Provenance::fields(),
        "Control" => Control::fields(),
        "HomeLimits" => HomeLimits::fields(),
        "RoleSet" => RoleSet::fields(),
        "RoleKey" => RoleKey::fields(),
        "Signed" => Signed::fields(),
        "Possession" => Possession::fields(),
        "ArgumentLabel" => ArgumentLabel::fields(),
        "Precondition" => Precondition::fields(),
        _ => Vec::new(),
    }
}

/// The tables of what signed events say.
fn said_by(kind: RecordKind) -> Vec<FieldSpec> {
    match kind {
        RecordKind::Key => KeyChange::fields(),
        RecordKind::Revoke => Revocation::fields(),
        // The keys of the bodies without a reason are the same.
        RecordKind::Freeze => FreezeBecause::fields(),
        RecordKind::Policy => PolicyBecause::fields(),
        RecordKind::Tools => ToolsChange::fields(),
        RecordKind::Config => ConfigChange::fields(),
        RecordKind::Recovery => Resolution::fields(),
        RecordKind::Credit => CreditChange::fields(),
        RecordKind::Cancel => CancelBody::fields(),
        RecordKind::Redact => RedactBody::fields(),
        RecordKind::Approval => ApprovalBody::fields(),
        _ => Vec::new(),
    }
}

fn name(shape: &str, code: u64) -> Option<&'static str> {
    macro_rules! names {
        ($($type:ident)*) => {
            match shape.strip_prefix("uint ")? {
                $( stringify!($type) => $type::from_code(code).map($type::name), )*
                _ => None,
            }
        };
    }
    names! {
        RecordKind Reason Status TxOutcome RefusalKind RunMode AggregatePhase SessionPhase PreviousRun
        Durability
        Recovered EffectClass Enforcement Verdict Source Role FreezeTarget FreezeChange
        ObligationKind RevokeTarget Algorithm ApprovalAnswer ApprovalChannel
    }
}

fn amounts(item: Item<'_>) -> String {
    let mut object = Object::new();
    for (dimension, amount) in Dimension::ALL.into_iter().zip(item.elements()) {
        match amount.as_uint() {
            Some(0) | None => {}
            Some(amount) => object = object.uint(dimension.name(), amount),
        }
    }
    object.finish()
}
