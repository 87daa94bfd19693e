//! Every field of every kind of record, changed: the rest of the log is rechained, and all that is
//! signed is signed anew by its own keys. What can be derived is refused; and the verifier refuses
//! whatever the kernel does.

use std::collections::{BTreeMap, BTreeSet};

use ed25519_dalek::SigningKey;
use syscap_format::{
    Body, CONTROL_CONTEXT, Control, Leaf, Object, ObjectId, ObjectKind, PublicKey, Record, Seq,
    Token, TokenBody, leaf,
};
use syscap_kernel::{Anchor, Batch, Kernel, Next, Room, Store, StoreError};
use syscap_verify::Soundness;

use super::item::Tree;
use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::every_kind;
use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{parts, public, sign, wire};

/// What must be found in a record where a field of it was changed: `KIND.KEY` and what lies below,
/// then the faults, or `open` where a change can be accepted. The specification leaves open a
/// caller's or a host's own word, a commitment that only the vault can open, what a run used and
/// did, what the policy said, when something happened between the records beside it, and what
/// whoever has the key might as well have signed.
const TABLE: &str = include_str!("fields.txt");

/// A log as a store to open.
pub(crate) struct Forged(pub(crate) Log);

impl Store for Forged {
    fn commit(&mut self, _: &Batch) -> Result<(), StoreError> {
        Err(StoreError::Poisoned)
    }
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let all = (0..).map(Seq::new).zip(&self.0.records).filter(|(seq, _)| *seq >= from);
        for (seq, bytes) in all {
            if each(seq, bytes) == Next::Enough {
                break;
            }
        }
        Ok(())
    }
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(self.0.objects.iter().find(|object| object.id == *id).cloned())
    }
    fn vault(&mut self, _: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Enough)
    }
}

/// Whoever forges: has all keys, and the log as it was.
struct Forger<'a> {
    log: &'a Log,
    leaves: Vec<Leaf>,
    keys: BTreeMap<PublicKey, SigningKey>,
}

/// What names of 32 bytes have become.
type Renamed = Vec<([u8; 32], [u8; 32])>;

impl Forger<'_> {
    /// The log with another record in one place. `None` where that is no record.
    fn forge(&self, place: usize, changed: &[u8]) -> Option<Log> {
        let mut log = Log { records: self.log.records[..place].to_vec(), ..self.log.clone() };
        let mut leaves = self.leaves[..place].to_vec();
        let mut renamed = Renamed::new();
        for seq in place..self.log.records.len() {
            let before = if seq == place { changed } else { &self.log.records[seq] };
            let mut record = Record::decode(&rename(before, &renamed)).ok()?;
            record.prev = leaves.last().copied().unwrap_or_else(|| Leaf::from_bytes([0; 32]));
            self.sign_again(&mut record, &leaves);
            if let Body::Issue(issue) = &mut record.body {
                let old = *issue.token.as_bytes();
                if let Some((id, object)) = self.issued_again(&log.objects, old, &leaves) {
                    issue.token = id;
                    renamed.push((old, *id.as_bytes()));
                    log.objects.push(object);
                }
            }
            let bytes = record.encode();
            if matches!(record.body, Body::Ask(_)) {
                renamed.push((*self.leaves[seq].as_bytes(), *leaf(&bytes).as_bytes()));
            }
            leaves.push(leaf(&bytes));
            log.records.push(bytes);
        }
        Some(log)
    }

    /// The leaf that a head names now, where it named one of the log as it was.
    fn moved(&self, seq: Seq, named: Leaf, leaves: &[Leaf]) -> Option<Leaf> {
        let place = usize::try_from(seq.get()).ok()?;
        let stood = self.leaves.get(place) == Some(&named);
        leaves.get(place).copied().filter(|_| stood)
    }

    fn sign_again(&self, record: &mut Record, leaves: &[Leaf]) {
        let kind = record.body.kind();
        let Some(control) = control_of(&mut record.body) else { return };
        if let Some(moved) = self.moved(control.head.seq, control.head.leaf, leaves) {
            control.head.leaf = moved;
        }
        let home = self.log.home();
        let (head, body) = (control.head, control.body.clone());
        for signed in &mut control.signatures {
            let Some(key) = self.keys.get(&signed.key) else { continue };
            let message = Control::message(&home, &head, &signed.key, signed.counter, kind, &body);
            signed.signature = sign(key, CONTROL_CONTEXT, &message);
        }
    }

    /// A root token over the head that it names now.
    fn issued_again(
        &self,
        objects: &[Object],
        id: [u8; 32],
        leaves: &[Leaf],
    ) -> Option<(syscap_format::TokenId, Object)> {
        let object = objects.iter().find(|object| *object.id.as_bytes() == id)?;
        let mut body = Token::read(&object.bytes).ok()?.body().clone();
        let head = body.head.as_mut()?;
        head.leaf = self.moved(head.seq, head.leaf, leaves).filter(|leaf| *leaf != head.leaf)?;
        let bytes = wire(&body);
        let id = TokenBody::id_of(&body.to_bytes());
        let name = ObjectId::from_bytes(*id.as_bytes());
        Some((id, Object { kind: ObjectKind::Token, id: name, bytes }))
    }
}

fn control_of(body: &mut Body) -> Option<&mut Control> {
    match body {
        Body::Key(event)
        | Body::Revoke(event)
        | Body::Freeze(event)
        | Body::FreezeBecause(event)
        | Body::Policy(event)
        | Body::PolicyBecause(event)
        | Body::Tools(event)
        | Body::Config(event)
        | Body::Credit(event)
        | Body::Approval(event)
        | Body::Redact(event) => Some(&mut event.control),
        Body::Recovery(recovery) => recovery.control.as_mut(),
        Body::Cancel(cancel) => cancel.control.as_mut(),
        _ => None,
    }
}

fn rename(bytes: &[u8], renamed: &Renamed) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for (old, new) in renamed {
        for at in 0..bytes.len().saturating_sub(31) {
            if bytes[at..at + 32] == *old {
                bytes[at..at + 32].copy_from_slice(new);
            }
        }
    }
    bytes
}

/// Every small change of a record, with the field that it is in: its own, and those of what it
/// signs.
fn changes(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let tree = Tree::read(bytes);
    let Ok(record) = Record::decode(bytes) else { return Vec::new() };
    let kind = record.body.kind().name();
    // Positions and links are made anew, and the form is what makes a record one.
    let common = [".0", ".1", ".2", ".3"];
    let own = tree.changes().into_iter().map(|(at, changed)| (at, changed.bytes()));
    let mut all: Vec<(String, Vec<u8>)> = own.collect();
    let mut body = record.body.clone();
    if let Some(control) = control_of(&mut body) {
        for (at, changed) in Tree::read(&control.body).changes() {
            let mut tree = tree.clone();
            let key = match record.body {
                Body::Recovery(_) => 13,
                Body::Cancel(_) => 12,
                _ => 10,
            };
            let signed = tree.at(key).and_then(|control| control.at(2)).unwrap();
            *signed = Tree::Bytes(changed.bytes());
            all.push((format!(".body{at}"), tree.bytes()));
        }
    }
    let first = |at: &str| at.split('.').nth(1).map(|key| format!(".{key}")).unwrap_or_default();
    all.retain(|(at, changed)| {
        !common.contains(&&*first(at)) && Record::decode(changed).is_ok_and(|it| it != record)
    });
    all.into_iter().map(|(at, changed)| (format!("{kind}{at}"), changed)).collect()
}

/// A change to try: where, in which field, and what stands there then.
type Try = (usize, String, Vec<u8>);

/// At most so many changes of one field of a kind are tried, spread over its records.
const OF_A_FIELD: usize = 10;

fn tries(log: &Log) -> Vec<Try> {
    let mut fields: BTreeMap<String, Vec<Try>> = BTreeMap::new();
    for (place, bytes) in log.records.iter().enumerate().skip(1) {
        for (field, changed) in changes(bytes) {
            fields.entry(field.clone()).or_default().push((place, field, changed));
        }
    }
    let spread = |all: Vec<Try>| {
        let step = all.len().div_ceil(OF_A_FIELD).max(1);
        all.into_iter().step_by(step).collect::<Vec<_>>()
    };
    fields.into_values().flat_map(spread).collect()
}

#[derive(Default)]
struct Judged {
    forged: usize,
    /// By field: the faults that were found in the changed record itself.
    found: BTreeMap<String, BTreeSet<String>>,
    /// The kernel refuses what the verifier accepts.
    only_kernel: Vec<(usize, String)>,
}

#[test]
fn forged_field_makes_the_faults_of_its_row() {
    let log = Log::of(&every_kind());
    let leaves = log.records.iter().map(|bytes| leaf(bytes)).collect();
    let known = (0..=255).map(|seed| SigningKey::from_bytes(&[seed; 32]));
    let keys = known.map(|key| (public(&key), key)).collect();
    let forger = Forger { log: &log, leaves, keys };
    let tries = tries(&log);
    let (one, two) = tries.split_at(tries.len() / 2);
    let (mut one, two) = std::thread::scope(|scope| {
        let named = std::thread::Builder::new().name("forge::fields::the_other_half".to_owned());
        let two = named.spawn_scoped(scope, || judge(&forger, two)).unwrap();
        (judge(&forger, one), two.join().unwrap())
    });
    for (field, faults) in two.found {
        one.found.entry(field).or_default().extend(faults);
    }
    let only_kernel: Vec<_> = one.only_kernel.iter().chain(&two.only_kernel).collect();
    let forged = one.forged + two.forged;
    println!("{forged} forged, {} fields", one.found.len());
    assert!(forged >= 2_300, "{forged}");
    assert!(only_kernel.is_empty(), "the kernel refuses, the verifier does not: {only_kernel:?}");
    let row = |(field, faults): (&String, &BTreeSet<String>)| {
        let faults: Vec<&str> = faults.iter().map(String::as_str).collect();
        format!("{field}: {}", faults.join(" "))
    };
    let rows: Vec<String> = one.found.iter().map(row).collect();
    if std::env::var_os("UPDATE").is_some() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/forge/fields.txt");
        std::fs::write(path, rows.join("\n") + "\n").unwrap();
    }
    let table: Vec<&str> = TABLE.lines().collect();
    let differs: Vec<_> = rows.iter().filter(|row| !table.contains(&row.as_str())).collect();
    assert!(
        differs.is_empty(),
        "UPDATE=1 writes audit/verify/tests/forge/fields.txt: {differs:#?}"
    );
    assert_eq!(rows.len(), table.len(), "rows of fields that are no more");
}

fn judge(forger: &Forger<'_>, tries: &[Try]) -> Judged {
    let mut judged = Judged::default();
    assert_eq!(forger.log.faults(), [], "the log before");
    let trust = forger.log.trust();
    let anchor = Anchor { trust: Some(trust.clone()), keys: Vec::new() };
    for (place, field, changed) in tries {
        let Some(log) = forger.forge(*place, changed) else { continue };
        judged.forged += 1;
        let report = log.verify(trust.clone());
        let faults = judged.found.entry(field.clone()).or_default();
        if report.verdict() == Soundness::Tampered {
            let own = report
                .findings
                .iter()
                .filter(|it| it.seq == Seq::new(u64::try_from(*place).unwrap()));
            faults.extend(own.map(|finding| format!("{:?}", finding.fault)));
            continue;
        }
        faults.insert("open".to_owned());
        let opened = Kernel::open(&mut Forged(log), parts(AllowAll::new(1)), &anchor);
        if opened.is_err() {
            judged.only_kernel.push((*place, field.clone()));
        }
    }
    judged
}
