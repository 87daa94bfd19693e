//! The store of `docs/examples/file_store`: it keeps every rule of the store kit, and what is torn off
//! or changed in its file is found.

#[path = "../docs/examples/file_store/store.rs"]
pub(crate) mod file_store;

use std::fs;
use std::path::{Path, PathBuf};

use file_store::FileStore;
use syscap::audit::kit::{Found, Kit, KitError, Rule, prove};
use syscap::format::{Object, ObjectId, Seq};
use syscap::kernel::{Batch, Next, Room, Settled, Store, StoreError};
use syscap::prelude::*;

/// Hands everything but commits on to the store in a file.
macro_rules! reads {
    () => {
        fn records(
            &mut self,
            from: Seq,
            each: &mut dyn FnMut(Seq, &[u8]) -> Next,
        ) -> Result<(), StoreError> {
            self.inner.records(from, each)
        }
        fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
            self.inner.object(id)
        }
        fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
            self.inner.vault(seq)
        }
        fn room(&mut self) -> Result<Room, StoreError> {
            self.inner.room()
        }
    };
}

/// A power cut in the midst of a commit: only so many bytes of it are there.
struct Torn {
    inner: FileStore,
    path: PathBuf,
    bytes: u64,
    torn: bool,
}

impl Store for Torn {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        if self.torn {
            return Err(StoreError::Poisoned);
        }
        let len = || fs::metadata(&self.path).unwrap().len();
        let before = len();
        self.inner.commit(batch)?;
        self.torn = before + self.bytes < len();
        if self.torn {
            let file = fs::OpenOptions::new().write(true).open(&self.path).unwrap();
            file.set_len(before + self.bytes).unwrap();
            return Err(StoreError::Io(5));
        }
        Ok(())
    }
    reads!();
}

#[test]
fn the_store_in_a_file_keeps_every_rule() {
    Kit::new(FileStore::create, FileStore::open)
        .failing(|path, number| {
            let (inner, path) = (FileStore::open(path)?, path.to_path_buf());
            // All of a header, and then a part of the body that is a little larger each time.
            let bytes = if number <= 42 { number - 1 } else { (number - 42) * 211 };
            Ok(Torn { inner, path, bytes, torn: false })
        })
        .killed_in("stores::the_store_in_a_file_keeps_every_rule")
        .check()
        .unwrap();
}

/// It writes beside its file, and puts that in place only when it is dropped.
struct Lazy {
    inner: FileStore,
    path: PathBuf,
}

impl Lazy {
    fn beside(path: &Path) -> PathBuf {
        path.with_extension("beside")
    }

    fn create(path: &Path) -> Result<Self, StoreError> {
        if path.exists() {
            return Err(StoreError::Exists);
        }
        let inner = FileStore::create(&Self::beside(path))?;
        fs::copy(Self::beside(path), path).unwrap();
        Ok(Self { inner, path: path.to_path_buf() })
    }

    fn open(path: &Path) -> Result<Self, StoreError> {
        // What is held is not to be written over.
        match FileStore::open(&Self::beside(path)) {
            Err(StoreError::Locked) => return Err(StoreError::Locked),
            _ if !path.exists() => return Err(StoreError::Missing),
            _ => drop(fs::copy(path, Self::beside(path)).unwrap()),
        }
        Ok(Self { inner: FileStore::open(&Self::beside(path))?, path: path.to_path_buf() })
    }
}

impl Store for Lazy {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.inner.commit(batch)
    }
    reads!();
}

impl Drop for Lazy {
    fn drop(&mut self) {
        drop(fs::copy(Self::beside(&self.path), &self.path));
    }
}

/// A store that says nothing of it is not believed to have no rest of what was erased.
#[test]
fn store_without_a_purge_claims_none() {
    let folder = tempfile::tempdir().unwrap();
    let mut store = FileStore::create(&folder.path().join("store")).unwrap();
    assert_eq!(store.purge(), Ok(Settled::NotYet));
}

/// Everything looks well as long as the process lives.
#[test]
fn a_store_that_writes_when_it_is_dropped_is_not_durable() {
    let test = "stores::a_store_that_writes_when_it_is_dropped_is_not_durable";
    let checked = Kit::new(Lazy::create, Lazy::open).killed_in(test).check();
    let found = Found::Record(Seq::GENESIS);
    assert_eq!(checked, Err(KitError { rule: Rule::Durable, found }));
    prove(Lazy::create, Lazy::open).unwrap();
}

fn records(path: &Path) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut records = Vec::new();
    FileStore::open(path)?.records(Seq::GENESIS, &mut |_, bytes| {
        records.push(bytes.to_vec());
        Next::More
    })?;
    Ok(records)
}

/// A file of a home with a few calls, and how long it was after each commit.
fn log(folder: &Path) -> (PathBuf, Vec<Vec<u8>>) {
    let path = folder.join("log");
    let rt = Options::new().store(FileStore::create(&path).unwrap());
    let rt = rt.create(folder.join("home")).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    for n in 0..3_u64 {
        agent.call("echo", args! { "value": n }).unwrap().value().unwrap();
    }
    rt.close().unwrap();
    let records = records(&path).unwrap();
    (path, records)
}

/// Whatever is cut off, what is left is whole batches; and the cut is made good by opening.
#[test]
fn a_torn_tail_is_cut_off() {
    let dir = tempfile::tempdir().unwrap();
    let (path, all) = log(dir.path());
    let whole = fs::read(&path).unwrap();
    let mut last = all.len();
    for len in (12..whole.len()).rev().filter(|len| len % 11 == 0 || *len < 400) {
        fs::write(&path, &whole[..len]).unwrap();
        let left = records(&path).unwrap();
        assert!(left.len() <= last && left == all[..left.len()], "{len}");
        last = left.len();
        let cut = fs::metadata(&path).unwrap().len();
        assert!(cut <= len as u64);
        assert_eq!(records(&path).unwrap(), left, "opened twice");
    }
    assert_eq!(last, 0);
    fs::write(&path, &whole[..11]).unwrap();
    assert_eq!(records(&path), Err(StoreError::Damaged), "no file of ours");
}

/// A byte that was changed makes the file damaged, or takes the last batch away: never others,
/// and nothing is made of it.
#[test]
fn a_changed_byte_is_found() {
    let dir = tempfile::tempdir().unwrap();
    let (path, all) = log(dir.path());
    let whole = fs::read(&path).unwrap();
    for at in (0..whole.len()).step_by(7).chain(0..120) {
        let mut changed = whole.clone();
        changed[at] ^= 0x10;
        fs::write(&path, &changed).unwrap();
        match records(&path) {
            Ok(left) => {
                // Only the end can have been torn.
                assert!(left == all[..left.len()] && left.len() < all.len(), "{at}");
                assert!(at + 2_000 > whole.len(), "{at} of {}", whole.len());
            }
            Err(StoreError::Newer(_)) => assert!((10..12).contains(&at)),
            Err(error) => {
                assert_eq!(error, StoreError::Damaged, "{at}");
                assert_eq!(fs::read(&path).unwrap(), changed, "left as it is");
            }
        }
    }
}
