//! What lasts of a state: all of a change or nothing, and what is known once values are gone.

use kernel_support::fault::{FaultPoint, FaultStore};
use syscap_audit::MemoryStore;
use syscap_format::{Object, ObjectId, Seq, Source, VaultEntry, json};
use syscap_kernel::{Anchor, Halt, Kernel, Store, StoreError};

use super::sim::{self, Sim, records, seated};
use super::{aim, change, known, replays, verifies};

/// A store in which some things are no longer what they were.
struct Changed<'a> {
    store: &'a mut FaultStore<MemoryStore>,
    vault: fn(Seq, &mut VaultEntry),
    missing: Option<ObjectId>,
}

impl Store for Changed<'_> {
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        if self.missing == Some(*id) { Ok(None) } else { self.store.object(id) }
    }
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let row = self.store.vault(seq)?;
        Ok(row.map(|row| {
            let mut entry = VaultEntry::from_row(&row).unwrap();
            (self.vault)(seq, &mut entry);
            entry.to_row()
        }))
    }
    fn idle(&mut self) -> Result<(), StoreError> {
        self.store.idle()
    }

    kernel_support::forward!(self.store => commit records room);
}

#[test]
fn erased_fact_is_unknown() {
    let (mut sim, session) = seated();
    aim(&mut sim, session, r#"{"goal.a": 1, "goal.b": 1}"#).unwrap();
    let first = records(&mut sim).pop().unwrap().seq;
    assert_eq!(first, Seq::new(6));
    aim(&mut sim, session, r#"{"goal.b": 2}"#).unwrap();
    let forgotten: [fn(Seq, &mut VaultEntry); 4] = [
        |seq, entry| {
            if seq == Seq::new(6) {
                entry.args = None;
            }
        },
        |seq, entry| {
            if seq == Seq::new(6) {
                entry.salts = None;
            }
        },
        // Others in the place of what was there are not what the log commits to.
        |seq, entry| {
            if seq == Seq::new(6) {
                let other = json::to_cbor(br#"{"goal.a": 2, "goal.b": 2}"#).unwrap();
                entry.args = Some(other.into_bytes());
            }
        },
        |seq, entry| {
            if seq == Seq::new(6) {
                entry.args = Some(vec![0xff]);
            }
        },
    ];
    let world = std::sync::Arc::clone(&sim.world);
    for forgotten in forgotten {
        let mut store = Changed { store: &mut sim.store, vault: forgotten, missing: None };
        let kernel = Kernel::open(&mut store, sim::parts(&world), &Anchor::default()).unwrap();
        assert_eq!(known(&kernel, "goal.a").unwrap(), "erased");
        assert_eq!(known(&kernel, "goal.b").unwrap(), "2", "written later, and still there");
        assert_eq!(known(&kernel, "goal.c"), None);
        assert_eq!(kernel.state_image(), sim.kernel.state_image(), "the state is the same");
    }
    verifies(&mut sim);
}

/// A crash at each commit leaves the whole change or nothing of it: record, object and values.
#[test]
fn a_crash_leaves_all_of_a_change_or_nothing() {
    for after in [false, true] {
        for commit in 1..9 {
            let point = if after { FaultPoint::After(commit) } else { FaultPoint::Before(commit) };
            let mut sim = Sim::new(FaultStore::new(MemoryStore::new(), point));
            let mut answered = 0;
            if sim.kernel.halted().is_none() {
                let token = sim.issue("a0", 100, 100, 1_000_000);
                sim.open("a0", token);
                sim.commit();
            }
            for n in 1..6_u64 {
                if let (Some(session), None) = (sim.sessions.first(), sim.kernel.halted()) {
                    let goal = format!(r#"{{"goal.a": {n}, "goal.b{n}": {n}}}"#);
                    let ticket = sim.propose(*session, Source::Agent, &goal);
                    sim.commit();
                    answered = if sim.acked(ticket).is_some() { n } else { answered };
                }
            }
            if sim.crash().is_err() {
                assert!(!after && commit == 1, "nothing was ever durable");
                continue;
            }
            sim.boot();
            let Some((_, head, facts)) = sim.kernel.states().next() else {
                assert_eq!(answered, 0);
                continue;
            };
            let number = head.number;
            let unanswered = number - answered;
            assert!(unanswered <= u64::from(after), "{number} of {answered} answered");
            assert_eq!(facts.iter().count() as u64, if number == 0 { 0 } else { number + 1 });
            if number > 0 {
                assert_eq!(known(&sim.kernel, "goal.a").unwrap(), number.to_string());
            }
            verifies(&mut sim);
            replays(&mut sim);
        }
    }
}

/// A home whose log names a snapshot that is not there is not opened.
#[test]
fn a_missing_snapshot_is_found() {
    let (mut sim, session) = seated();
    aim(&mut sim, session, r#"{"goal.a": 1}"#).unwrap();
    let head = change(&mut sim).snapshot;
    let world = std::sync::Arc::clone(&sim.world);
    let missing = Some(ObjectId::from_bytes(*head.as_bytes()));
    let mut store = Changed { store: &mut sim.store, vault: |_, _| {}, missing };
    let opened = Kernel::open(&mut store, sim::parts(&world), &Anchor::default());
    assert!(matches!(opened, Err(Halt::Object { .. })));
}
