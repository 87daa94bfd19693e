//! The rules' checks. Each has places of its own, so that what one finds is its own.

use std::path::{Path, PathBuf};

use syscap_format::{ObjectId, RECORD_BYTES_MAX, Seq};
use syscap_kernel::{Batch, Next, Store, StoreError};

use super::found::{Found, Rule};
use super::holds::{holds, holds_objects, holds_records, holds_vault, lacks, lacks_row};
use super::place::Folder;
use super::script::{Kept, Script, Step};
use super::tool::FILL_MAX;
use super::{Kit, child};
use crate::memory::MemoryStore;

/// How many batches most rules begin with.
const FEW: usize = 3;
/// Batches of many records, and how many calls in each: more records in all than a store might
/// read at once.
const MANY: (usize, usize) = (4, 600);
/// How many writes are made to fail at most.
const FAULTS_MAX: u64 = 1_000;
/// After how many batches a process is killed.
const KILLS: [usize; 4] = [1, 4, 9, 17];
/// A batch that has some of everything.
const MIXED: Step = Step::Mixed(9);
/// The policy that is in force comes again.
const AGAIN: Step = Step::Policy(0, 0);
const LARGE_OBJECT: Step = Step::Policy(1, 1 << 20);
const LARGE_ROW: Step = Step::Calls(1, FILL_MAX);

type Checked = Result<(), Found>;

pub(super) fn check(kit: &mut Kit<'_>, folder: &mut Folder, rule: Rule) -> Checked {
    match rule {
        Rule::Place => places(kit, folder),
        Rule::Empty => empty(kit, folder),
        Rule::Follow => filled(kit, folder, 2 * FEW).map(drop),
        Rule::Order => order(kit, folder),
        Rule::Enough => enough(kit, folder),
        Rule::Objects => {
            let Filled { mut store, kept, .. } = with(kit, folder, &[AGAIN, LARGE_OBJECT])?;
            holds_objects(&mut *store, &kept)
        }
        Rule::Vault => {
            let Filled { mut store, kept, .. } = with(kit, folder, &[LARGE_ROW])?;
            holds_vault(&mut *store, &kept)
        }
        Rule::Erased => erased(kit, folder),
        Rule::Reopen => reopen(kit, folder),
        Rule::Idle => idle(kit, folder),
        Rule::HeadSeq => head_seq(kit, folder),
        Rule::HeadLeaf => {
            let Filled { mut store, .. } = filled(kit, folder, FEW)?;
            refuses(&mut *store, &foreign()?, StoreError::HeadMoved)
        }
        Rule::Refused => refused(kit, folder),
        Rule::Poisoned => poisoned(kit, folder),
        Rule::Exclusive => exclusive(kit, folder),
        Rule::Long => long(kit, folder),
        Rule::Many => many(kit, folder),
        Rule::Whole => whole(kit, folder),
        Rule::Durable => durable(kit, folder),
    }
}

/// A store with the script's first batches.
struct Filled {
    place: PathBuf,
    store: Box<dyn Store>,
    script: Script,
    kept: Vec<Kept>,
}

fn filled(kit: &mut Kit<'_>, folder: &mut Folder, batches: usize) -> Result<Filled, Found> {
    let place = folder.place();
    let (mut store, mut script) = ((kit.create)(&place)?, Script::begin(0, "kit")?);
    let kept = (0..batches).map(|_| script.next(&mut *store)).collect::<Result<_, _>>()?;
    Ok(Filled { place, store, script, kept })
}

/// A store with a few batches, and others after them.
fn with(kit: &mut Kit<'_>, folder: &mut Folder, steps: &[Step]) -> Result<Filled, Found> {
    let mut filled = filled(kit, folder, FEW)?;
    for step in steps {
        filled.kept.push(filled.script.commit(*step, &mut *filled.store)?);
    }
    Ok(filled)
}

/// The same script elsewhere, so far, and what it has committed.
fn script_at(seed: u8, batches: usize) -> Result<(Script, Vec<Kept>), Found> {
    let (mut script, mut memory) = (Script::begin(seed, "kit")?, MemoryStore::new());
    let kept = (0..batches).map(|_| script.next(&mut memory)).collect::<Result<_, _>>()?;
    Ok((script, kept))
}

/// A batch that follows [`FEW`] batches of another home.
fn foreign() -> Result<Batch, Found> {
    script_at(1, FEW)?.0.take(MIXED)
}

fn refuses(store: &mut dyn Store, batch: &Batch, owed: StoreError) -> Checked {
    fails(store.commit(batch), &owed)
}

fn fails<T>(done: Result<T, StoreError>, owed: &StoreError) -> Checked {
    match done {
        Ok(_) => Err(Found::Done),
        Err(error) if error == *owed => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn places(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    fails((kit.open)(&folder.place()), &StoreError::Missing)?;
    let Filled { place, store, kept, .. } = filled(kit, folder, FEW)?;
    drop(store);
    fails((kit.create)(&place), &StoreError::Exists)?;
    holds_records(&mut *(kit.open)(&place)?, &kept, 0)
}

fn empty(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let place = folder.place();
    is_empty(&mut *(kit.create)(&place)?)?;
    is_empty(&mut *(kit.open)(&place)?)
}

fn is_empty(store: &mut dyn Store) -> Checked {
    holds_records(store, &[], 0)?;
    lacks_row(store, Seq::GENESIS)?;
    let id = ObjectId::from_bytes([0; 32]);
    if store.object(&id)?.is_some() {
        return Err(Found::Object(id));
    }
    store.room()?;
    Ok(())
}

fn order(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { mut store, kept, .. } = filled(kit, folder, 2 * FEW)?;
    let records = kept.iter().map(|kept| kept.links.len()).sum();
    // And from where there is nothing yet.
    let beyond = usize::saturating_add(records, 2);
    (0..=beyond).try_for_each(|from| holds_records(&mut *store, &kept, from))
}

fn enough(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { mut store, .. } = filled(kit, folder, FEW)?;
    for enough in 1..=3_u64 {
        let mut read = 0_u64;
        store.records(Seq::new(1), &mut |_, _| {
            read = read.saturating_add(1);
            if read < enough { Next::More } else { Next::Enough }
        })?;
        if read > enough {
            return Err(Found::ReadsOn);
        }
        if read < enough {
            return Err(Found::Record(Seq::new(read.saturating_add(1))));
        }
    }
    Ok(())
}

fn long(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    // Beyond 255 bytes a name costs what it has, and as much again whatever it is.
    let name = |bytes: usize| "n".repeat(bytes);
    let sample = Script::begin(0, &name(1_000))?.take(Step::Genesis)?;
    let other = sample.links().iter().map(|link| link.bytes.len()).sum::<usize>();
    let name = name(RECORD_BYTES_MAX.saturating_sub(other.saturating_sub(1_000)));
    let place = folder.place();
    let mut store = (kit.create)(&place)?;
    let mut script = Script::begin(0, &name)?;
    let kept = [script.next(&mut *store)?];
    if kept.iter().flat_map(|kept| &kept.links).any(|link| link.bytes.len() != RECORD_BYTES_MAX) {
        return Err(Found::Script);
    }
    holds_records(&mut *store, &kept, 0)?;
    drop(store);
    holds_records(&mut *(kit.open)(&place)?, &kept, 0)
}

fn many(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { place, mut store, mut script, mut kept } = filled(kit, folder, FEW)?;
    for _ in 0..MANY.0 {
        kept.push(script.commit(Step::Calls(MANY.1, 10), &mut *store)?);
    }
    holds_records(&mut *store, &kept, 0)?;
    drop(store);
    let mut store = (kit.open)(&place)?;
    holds_records(&mut *store, &kept, 0)?;
    holds_vault(&mut *store, &kept)
}

fn erased(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { place, mut store, mut script, mut kept } = with(kit, folder, &[LARGE_ROW, MIXED])?;
    let all: Vec<Seq> = kept.iter().flat_map(|kept| &kept.vault).map(|write| write.seq).collect();
    // Every second one, and then some of them again.
    let gone: Vec<Seq> = all.iter().step_by(2).copied().collect();
    for records in [&gone[..], gone.get(..1).unwrap_or_default()] {
        kept.push(script.erase(records, &mut *store)?);
        store.purge()?;
    }
    kept.iter_mut().for_each(|kept| kept.vault.retain(|write| !gone.contains(&write.seq)));
    holds(&mut *store, &kept)?;
    kept.push(script.next(&mut *store)?);
    drop(store);
    holds(&mut *(kit.open)(&place)?, &kept)
}

fn reopen(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let steps = [AGAIN, LARGE_ROW, LARGE_OBJECT, MIXED];
    let Filled { place, store, mut script, mut kept } = with(kit, folder, &steps)?;
    drop(store);
    for _ in 0..2 {
        let mut store = (kit.open)(&place)?;
        holds(&mut *store, &kept)?;
        kept.push(script.next(&mut *store)?);
        holds(&mut *store, &kept)?;
    }
    holds(&mut *(kit.open)(&place)?, &kept)
}

fn idle(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let steps = [LARGE_ROW, MIXED];
    let Filled { place, mut store, mut script, mut kept } = with(kit, folder, &steps)?;
    store.idle()?;
    holds(&mut *store, &kept)?;
    kept.push(script.next(&mut *store)?);
    store.idle()?;
    drop(store);
    holds(&mut *(kit.open)(&place)?, &kept)
}

fn head_seq(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    // How many batches the log has, and how many the script that made the batch.
    for (log, batch) in [(FEW, 0), (FEW, 1), (FEW, 2), (2, FEW), (0, 1), (0, FEW)] {
        let Filled { mut store, .. } = filled(kit, folder, log)?;
        let batch = script_at(0, batch)?.0.propose()?;
        refuses(&mut *store, &batch, StoreError::HeadMoved)?;
    }
    Ok(())
}

fn refused(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { place, mut store, kept, .. } = filled(kit, folder, FEW)?;
    let foreign = foreign()?;
    refuses(&mut *store, &foreign, StoreError::HeadMoved)?;
    drop(store);
    let mut store = (kit.open)(&place)?;
    lacks(&mut *store, &foreign, &kept)?;
    script_at(0, FEW)?.0.next(&mut *store).map(drop)
}

fn poisoned(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { place, mut store, mut script, kept } = filled(kit, folder, FEW)?;
    refuses(&mut *store, &foreign()?, StoreError::HeadMoved)?;
    let good = script.propose()?;
    // More than once: nothing heals it but opening the store again.
    for _ in 0..2 {
        refuses(&mut *store, &good, StoreError::Poisoned)?;
    }
    drop(store);
    lacks(&mut *(kit.open)(&place)?, &good, &kept)
}

fn exclusive(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Filled { place, mut store, mut script, mut kept } = filled(kit, folder, FEW)?;
    fails((kit.open)(&place), &StoreError::Locked)?;
    match (kit.create)(&place) {
        Ok(_) => return Err(Found::Done),
        Err(StoreError::Locked | StoreError::Exists) => {}
        Err(error) => return Err(error.into()),
    }
    // Whoever was turned away changed nothing, and took nothing along.
    kept.push(script.next(&mut *store)?);
    fails((kit.open)(&place), &StoreError::Locked)?;
    drop(store);
    holds(&mut *(kit.open)(&place)?, &kept)
}

fn whole(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let mut faults = 0_u64;
    for number in 1..=FAULTS_MAX {
        let Some(failing) = &mut kit.failing else { return Ok(()) };
        let place = folder.place();
        let (mut store, mut script) = ((kit.create)(&place)?, Script::begin(0, "kit")?);
        let mut kept: Vec<Kept> =
            (0..FEW).map(|_| script.next(&mut *store)).collect::<Result<_, _>>()?;
        drop(store);
        let batch = script.take(MIXED)?;
        let next = Kept::of(&batch);
        // It may fail before there is a commit.
        let committed = failing(&place, number).and_then(|mut store| {
            let committed = store.commit(&batch);
            if committed.is_err() && store.commit(&batch) != Err(StoreError::Poisoned) {
                return Ok(Err(Found::Done));
            }
            committed.map(Ok)
        });
        let mut store = (kit.open)(&place)?;
        let is_there = has(&mut *store, &batch, &kept)?;
        if committed.is_err() && !is_there {
            lacks(&mut *store, &batch, &kept)?;
            // The log goes on from where it ends.
            store.commit(&batch)?;
        }
        kept.push(next);
        holds(&mut *store, &kept)?;
        match committed {
            Ok(healed) if faults > 0 => return healed,
            Ok(healed) => return healed.and(Err(Found::NoFault)),
            Err(_) => faults = faults.saturating_add(1),
        }
        remove(&place);
    }
    Ok(())
}

/// Checks that the log continues with a batch's first record after these batches.
fn has(store: &mut dyn Store, batch: &Batch, kept: &[Kept]) -> Result<bool, Found> {
    let last = kept.iter().flat_map(|kept| &kept.links).next_back();
    let mut found = false;
    store.records(last.map_or(Seq::GENESIS, |link| link.seq.next()), &mut |_, bytes| {
        found = batch.links().first().is_some_and(|link| link.bytes == bytes);
        Next::Enough
    })?;
    Ok(found)
}

fn durable(kit: &mut Kit<'_>, folder: &mut Folder) -> Checked {
    let Some(test) = kit.killed_in.clone() else { return Ok(()) };
    for batches in KILLS {
        let place = folder.place();
        let acknowledged = child::kill(&test, &place, batches)?;
        let (mut script, mut kept) = script_at(0, acknowledged)?;
        let mut store = (kit.open)(&place)?;
        // One more may have been on its way.
        let batch = script.propose()?;
        if has(&mut *store, &batch, &kept)? {
            kept.push(Kept::of(&batch));
            holds(&mut *store, &kept)?;
        } else {
            lacks(&mut *store, &batch, &kept)?;
            store.commit(&batch)?;
        }
    }
    Ok(())
}

/// Makes room; what can't be removed goes with the folder.
fn remove(place: &Path) {
    drop(std::fs::remove_dir_all(place).or_else(|_| std::fs::remove_file(place)));
}
