//! Verification of a home, by `syscap-verify`: what reads stores is joined to it here.

pub use syscap_verify::{
    Anchor, AnchorNeed, Chunk, End, Extent, FINDINGS_MAX, Fault, Finding, Newer, Options, Report,
    Soundness, Source, Trust, TrustSource, VerifyError, verify, verify_export,
};

mod vault;

pub use vault::{ALTERED_MAX, Altered, Part, VaultReport, verify_vault};

#[cfg(feature = "sqlite")]
use syscap_audit::SqliteReader;
use syscap_audit::{LockState, LogReader};
use syscap_format::{Head, Leaf, Object, ObjectId, Seq, leaf};
use syscap_kernel::{Next, Store, StoreError};

/// Verifies a home that keeps its log in its database, also while a process holds it.
///
/// ```
/// use syscap::{prelude::*, verify::{Options, TrustSource, Soundness, verify_home}};
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// # let home = folder.path().join("home");
/// Runtime::create(&home)?.close()?;
/// // Whoever doubts the home keeps this file elsewhere.
/// let trust = TrustSource::File(home.join("trust.cbor"));
/// let report = verify_home(&home, &Options { trust, ..Options::default() })?;
/// assert_eq!(report.verdict(), Soundness::Sound);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`VerifyError`], also where the database itself is damaged.
#[cfg(feature = "sqlite")]
pub fn verify_home(
    home: &std::path::Path,
    options: &Options,
) -> Result<Report, VerifyError<StoreError>> {
    verify_log(&mut SqliteReader::open(home)?, options)
}

/// Verifies a log in any store, also while a process writes it.
///
/// # Errors
/// [`VerifyError`], also where the store itself is damaged.
pub fn verify_log(
    reader: &mut dyn LogReader,
    options: &Options,
) -> Result<Report, VerifyError<StoreError>> {
    let mut tries = 0_u32;
    loop {
        let (extent, head) = extent_of(reader)?;
        let report = verify(&mut FromReader(reader), extent, options)?;
        tries = tries.saturating_add(1);
        // Somebody took the home meanwhile: what looked like the end of a home at rest was none.
        let moved = matches!(extent, Extent::Head(_)) && reader.head()? != Some(head);
        if !moved || tries >= TRIES_MAX {
            return Ok(report);
        }
    }
}

/// How often a home is verified anew that somebody takes meanwhile.
const TRIES_MAX: u32 = 8;

/// How far a home's log goes at this moment, and its head.
fn extent_of(reader: &mut dyn LogReader) -> Result<(Extent, Head), StoreError> {
    let before = reader.lock_state()?;
    let head = reader.head()?;
    // Held at either moment: the head may lie in between.
    let held = before == LockState::Held || reader.lock_state()? == LockState::Held;
    match head {
        Some(head) if held => Ok((Extent::Live(head), head)),
        Some(head) => Ok((Extent::Head(head), head)),
        // Records without a head: somebody took it away. No records either: nothing was begun.
        None if has_records(reader)? => Err(StoreError::Damaged),
        None => Err(StoreError::Missing),
    }
}

fn has_records(reader: &mut dyn LogReader) -> Result<bool, StoreError> {
    let mut any = false;
    reader.records(Seq::GENESIS, &mut |_, _| {
        any = true;
        Next::Enough
    })?;
    Ok(any)
}

/// The leaf of the first record that a store gives out from a position on.
fn first_leaf(
    read: impl FnOnce(&mut dyn FnMut(Seq, &[u8]) -> Next) -> Result<(), StoreError>,
) -> Result<Option<Leaf>, StoreError> {
    let mut found = None;
    read(&mut |_, bytes| {
        found = Some(leaf(bytes));
        Next::Enough
    })?;
    Ok(found)
}

fn push(chunk: &mut Chunk, bytes: &[u8]) -> Next {
    chunk.push(bytes);
    if chunk.is_full() { Next::Enough } else { Next::More }
}

/// Any store as a source.
pub struct FromStore<'a>(pub &'a mut dyn Store);

impl Source for FromStore<'_> {
    type Error = StoreError;

    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        self.0.records(from, &mut |_, bytes| push(chunk, bytes))
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        first_leaf(|each| self.0.records(seq, each))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.0.object(id)
    }
}

/// A home's database as a source, also while a process holds it.
struct FromReader<'a>(&'a mut dyn LogReader);

impl Source for FromReader<'_> {
    type Error = StoreError;

    fn read(&mut self, from: Seq, chunk: &mut Chunk) -> Result<(), StoreError> {
        self.0.records(from, &mut |_, bytes| push(chunk, bytes))
    }

    fn leaf(&mut self, seq: Seq) -> Result<Option<Leaf>, StoreError> {
        first_leaf(|each| self.0.records(seq, each))
    }

    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        self.0.object(id)
    }
}
