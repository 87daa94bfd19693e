//! A store in memory that keeps every rule but the one that its fault breaks.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use syscap_audit::MemoryStore;
use syscap_format::{Head, Object, ObjectId, Seq, VaultWrite};
use syscap_kernel::{Batch, Next, Room, Store, StoreError};

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    // Empty.
    HasAnyObject,
    BeginsWithARecord,
    // Follow.
    RefusesTheSecond,
    RefusesTheFirst,
    // Order.
    Swaps,
    SkipsOne,
    ChangesAByte,
    BeginsAtTheBeginning,
    // Enough.
    ReadsOn,
    // Objects.
    LosesObjects,
    CutsObjects,
    RefusesAnObjectAgain,
    // Vault.
    LosesLargeRows,
    LosesSmallRows,
    RefusesLargeRows,
    GivesTheRowBefore,
    TellsAnotherLength,
    ReadsNothingBeside,
    // Reopen.
    ForgetsTheLastRecord,
    ForgetsObjects,
    ForgetsRows,
    ForgetsTheHead,
    // Erased.
    KeepsErasedRows,
    ErasesTheRowAfter,
    RefusesWhatIsGone,
    // Long.
    CutsLongRecords,
    // Many.
    ReadsFourThousand,
    RefusesLargeBatches,
    // Idle.
    ClearsTheVaultWhenIdle,
    FailsWhenIdle,
    // Place.
    OpensWhatIsMissing,
    MakesAnew,
    SaysDamagedForMissing,
    // Exclusive.
    Shares,
    GivesTheLockToWhoTries,
    MakesAnewWhatIsOpen,
    // HeadSeq.
    TakesAnyHead,
    TakesAnyHeadOnAnEmptyLog,
    TakesAGenesisAgain,
    SaysDamagedForHeadMoved,
    // HeadLeaf.
    TakesAnyLeaf,
    // Refused.
    KeepsRowsOfWhatItRefuses,
    KeepsObjectsOfWhatItRefuses,
    KeepsRecordsOfWhatItRefuses,
    // Poisoned.
    HealsByItself,
    HealsAtTheSecondTry,
    SaysIoForPoisoned,
    // Whole.
    Tears,
    LosesRowsOfATornBatch,
    IsStuckAfterAnError,
    GoesOnAfterAnError,
}

/// What lies at a place.
#[derive(Clone, Debug, Default)]
struct Log {
    head: Option<Head>,
    records: Vec<Vec<u8>>,
    objects: BTreeMap<ObjectId, Object>,
    vault: Vec<VaultWrite>,
    stuck: bool,
}

/// A place: its log, and whether it is open.
#[derive(Clone, Default)]
struct Place {
    log: Arc<Mutex<Log>>,
    open: Arc<Mutex<bool>>,
}

/// The places of stores with one fault.
pub(crate) struct Places {
    fault: Fault,
    all: Mutex<HashMap<PathBuf, Place>>,
}

impl Places {
    pub(crate) fn new(fault: Fault) -> Self {
        Self { fault, all: Mutex::default() }
    }

    pub(crate) fn create(&self, path: &Path) -> Result<Broken, StoreError> {
        let mut all = self.all.lock().unwrap();
        let found = all.get(path);
        let open = found.is_some_and(|place| *place.open.lock().unwrap());
        let anew = if open { Fault::MakesAnewWhatIsOpen } else { Fault::MakesAnew };
        if found.is_some() && self.fault != anew {
            return Err(StoreError::Exists);
        }
        let place = Place::default();
        if self.fault == Fault::BeginsWithARecord {
            place.log.lock().unwrap().records.push(vec![0]);
        }
        all.insert(path.to_path_buf(), place.clone());
        drop(all);
        Broken::over(place, self.fault)
    }

    pub(crate) fn open(&self, path: &Path) -> Result<Broken, StoreError> {
        let found = self.all.lock().unwrap().get(path).cloned();
        let Some(place) = found else {
            return match self.fault {
                Fault::OpensWhatIsMissing => self.create(path),
                Fault::SaysDamagedForMissing => Err(StoreError::Damaged),
                _ => Err(StoreError::Missing),
            };
        };
        let store = Broken::over(place, self.fault)?;
        let mut log = store.log();
        if log.stuck {
            return Err(StoreError::Damaged);
        }
        match self.fault {
            Fault::ForgetsTheLastRecord => drop(log.records.pop()),
            Fault::ForgetsObjects => log.objects.clear(),
            Fault::ForgetsRows => log.vault.clear(),
            Fault::ForgetsTheHead => log.head = None,
            _ => {}
        }
        drop(log);
        Ok(store)
    }

    /// A store whose first commit fails half-way, whose second fails when all is done, and whose
    /// third goes through.
    pub(crate) fn failing(&self, path: &Path, number: u64) -> Result<Broken, StoreError> {
        let mut store = self.open(path)?;
        store.fails_at = number;
        Ok(store)
    }
}

pub(crate) struct Broken {
    place: Place,
    fault: Fault,
    poisoned: bool,
    tries: u64,
    fails_at: u64,
}

impl Drop for Broken {
    fn drop(&mut self) {
        *self.place.open.lock().unwrap() = false;
    }
}

impl Broken {
    fn over(place: Place, fault: Fault) -> Result<Self, StoreError> {
        let mut open = place.open.lock().unwrap();
        if *open && fault != Fault::Shares {
            *open = fault != Fault::GivesTheLockToWhoTries;
            return Err(StoreError::Locked);
        }
        *open = true;
        drop(open);
        Ok(Self { place, fault, poisoned: false, tries: 0, fails_at: 0 })
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.place.log.lock().unwrap()
    }

    fn follows(&self, batch: &Batch, log: &Log) -> bool {
        let (after, head) = (batch.after(), log.head);
        match self.fault {
            Fault::RefusesTheFirst if head.is_none() => false,
            Fault::RefusesTheSecond if log.records.len() == 1 => false,
            Fault::TakesAnyHead => after.is_some() == head.is_some(),
            Fault::TakesAnyHeadOnAnEmptyLog if head.is_none() => true,
            Fault::TakesAGenesisAgain if after.is_none() => true,
            Fault::TakesAnyLeaf => after.map(|head| head.seq) == head.map(|head| head.seq),
            _ => after == head,
        }
    }

    /// Why the batch is refused, if it is.
    fn refusal(&self, batch: &Batch, log: &mut Log) -> Result<(), StoreError> {
        if !self.follows(batch, log) {
            match self.fault {
                Fault::KeepsRowsOfWhatItRefuses => log.vault.extend(batch.vault().to_vec()),
                Fault::KeepsObjectsOfWhatItRefuses => keep_objects(log, batch),
                Fault::KeepsRecordsOfWhatItRefuses => keep_records(log, batch, usize::MAX),
                Fault::SaysDamagedForHeadMoved => return Err(StoreError::Damaged),
                _ => {}
            }
            return Err(StoreError::HeadMoved);
        }
        let again = batch.objects().iter().any(|object| log.objects.contains_key(&object.id));
        let large = batch.vault().iter().any(|write| write.row.len() > 1 << 20);
        match self.fault {
            Fault::RefusesAnObjectAgain if again => Err(StoreError::Damaged),
            Fault::RefusesLargeRows if large => Err(StoreError::Io(27)),
            Fault::RefusesLargeBatches if batch.links().len() > 1_000 => Err(StoreError::Io(7)),
            _ => Ok(()),
        }
    }

    fn write(&self, batch: &Batch) -> Result<(), StoreError> {
        let mut log = self.log();
        self.refusal(batch, &mut log)?;
        if self.fails_at == 1 {
            match self.fault {
                Fault::Tears => keep_records(&mut log, batch, 1),
                Fault::IsStuckAfterAnError => log.stuck = true,
                Fault::LosesRowsOfATornBatch => {
                    keep_records(&mut log, batch, usize::MAX);
                    keep_objects(&mut log, batch);
                }
                _ => {}
            }
            return Err(StoreError::Io(5));
        }
        keep_records(&mut log, batch, usize::MAX);
        keep_objects(&mut log, batch);
        let fault = self.fault;
        let lost = |write: &&VaultWrite| match fault {
            Fault::LosesLargeRows => write.row.len() > 1 << 20,
            Fault::LosesSmallRows => write.row.len() < 40,
            _ => false,
        };
        log.vault.extend(batch.vault().iter().filter(|write| !lost(write)).cloned());
        for seq in batch.erased() {
            let place = log.vault.iter().position(|write| write.seq == *seq);
            match (fault, place) {
                (Fault::RefusesWhatIsGone, None) => return Err(StoreError::Damaged),
                (Fault::KeepsErasedRows, _) | (_, None) => {}
                (Fault::ErasesTheRowAfter, Some(at)) if at + 1 < log.vault.len() => {
                    log.vault.drain(at..=at + 1);
                }
                (_, Some(at)) => drop(log.vault.remove(at)),
            }
        }
        if self.fails_at == 2 { Err(StoreError::Io(5)) } else { Ok(()) }
    }
}

fn keep_records(log: &mut Log, batch: &Batch, records: usize) {
    for link in batch.links().iter().take(records) {
        log.records.push(link.bytes.clone());
        log.head = Some(Head { seq: link.seq, leaf: link.leaf });
    }
}

fn keep_objects(log: &mut Log, batch: &Batch) {
    for object in batch.objects() {
        log.objects.entry(object.id).or_insert_with(|| object.clone());
    }
}

impl Store for Broken {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.tries += 1;
        let heals = match self.fault {
            Fault::HealsByItself => true,
            Fault::HealsAtTheSecondTry => self.tries > 5,
            Fault::GoesOnAfterAnError => self.fails_at > 0,
            _ => false,
        };
        if self.poisoned && !heals {
            let io = self.fault == Fault::SaysIoForPoisoned;
            return Err(if io { StoreError::Io(5) } else { StoreError::Poisoned });
        }
        let written = self.write(batch);
        self.poisoned = written.is_err();
        written
    }

    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        let mut records = self.log().records.clone();
        let mut from = usize::try_from(from.get()).unwrap();
        match self.fault {
            Fault::Swaps if records.len() > 4 => records.swap(2, 3),
            Fault::SkipsOne if records.len() > 4 => drop(records.remove(3)),
            Fault::ChangesAByte if records.len() > 4 => records[3][20] ^= 1,
            Fault::BeginsAtTheBeginning => from = 0,
            Fault::ReadsFourThousand => records.truncate(4_000),
            _ => {}
        }
        for (seq, bytes) in records.iter_mut().enumerate().skip(from) {
            if self.fault == Fault::CutsLongRecords {
                bytes.truncate(60_000);
            }
            let next = each(Seq::new(seq as u64), bytes);
            if next == Next::Enough && self.fault != Fault::ReadsOn {
                break;
            }
        }
        Ok(())
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        let mut found = self.log().objects.get(id).cloned();
        match self.fault {
            Fault::HasAnyObject if found.is_none() => {
                let kind = syscap_format::ObjectKind::Policy;
                found = Some(Object { kind, id: *id, bytes: Vec::new() });
            }
            Fault::LosesObjects => found = None,
            Fault::CutsObjects => found.iter_mut().for_each(|o| o.bytes.truncate(1_000)),
            _ => {}
        }
        Ok(found)
    }

    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        let log = self.log();
        let found = log.vault.iter().find(|write| before(self.fault, write.seq) == seq);
        Ok(found.map(|write| write.row.clone()))
    }

    fn vault_len(&mut self, seq: Seq) -> Result<Option<usize>, StoreError> {
        let short = usize::from(self.fault == Fault::TellsAnotherLength);
        Ok(self.vault(seq)?.map(|row| row.len() - short))
    }

    fn reader(&self) -> Result<Option<Box<dyn Store>>, StoreError> {
        let empty = self.fault == Fault::ReadsNothingBeside;
        Ok(empty.then(|| -> Box<dyn Store> { Box::new(MemoryStore::new()) }))
    }

    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Enough)
    }

    fn idle(&mut self) -> Result<(), StoreError> {
        match self.fault {
            Fault::ClearsTheVaultWhenIdle => self.log().vault.clear(),
            Fault::FailsWhenIdle => return Err(StoreError::Io(5)),
            _ => {}
        }
        Ok(())
    }
}

/// The record under which a row is found.
fn before(fault: Fault, seq: Seq) -> Seq {
    match fault {
        Fault::GivesTheRowBefore => Seq::new(seq.get().saturating_sub(1)),
        _ => seq,
    }
}
