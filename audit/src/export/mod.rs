//! A log as plain files, for a verifier without a database.
//!
//! | file | what it is |
//! |---|---|
//! | `records.cborseq` | the records' exact bytes, one after another (RFC 8742) |
//! | `objects/HEX` | the control documents that they name, each under its name in hexadecimal |
//!
//! A file of an object does not say its kind: a name is a hash by the kind's own function, so at
//! most one kind fits, and whoever reads it tries them. The vault is never exported.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

use syscap_format::{Head, OBJECTS_FOLDER, ObjectId, RECORDS_FILE, Seq};
use syscap_kernel::{Next, StoreError};

use crate::reader::LogReader;

/// Why a log was not exported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// There is something at the place already.
    #[error("there is something there already")]
    Exists,
    /// The home can't be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The files can't be written.
    #[error("the export can't be written (code {0})")]
    Io(i32),
}

/// The result of an export.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Exported {
    /// The last record; `None` where the log is empty.
    pub head: Option<Head>,
    /// How many records.
    pub records: u64,
    /// How many objects.
    pub objects: u64,
}

/// Writes a log into a new folder, up to its head at the start; the home may be held and go on.
/// When it returns, the files are durable.
///
/// # Errors
/// [`ExportError`]; what was written by then is left behind.
pub fn export(reader: &mut dyn LogReader, folder: &Path) -> Result<Exported, ExportError> {
    let mut exported = Exported { head: reader.head()?, ..Exported::default() };
    if exported.head.is_none() {
        return Err(StoreError::Damaged.into());
    }
    make_folder(folder)?;
    let objects = folder.join(OBJECTS_FOLDER);
    make_folder(&objects)?;
    let mut records = BufWriter::with_capacity(1 << 20, make(&folder.join(RECORDS_FILE))?);
    if let Some(head) = exported.head {
        exported.records = write_records(reader, head.seq, &mut records)?;
    }
    let records = records.into_inner().map_err(|error| from_io(error.error()))?;
    records.sync_all().map_err(|error| from_io(&error))?;
    // Objects are committed with the first record that names them, so none that a record above
    // names is missing; one or the other may belong to a later record.
    for id in reader.object_ids()? {
        write_object(reader, &id, &objects)?;
        exported.objects = exported.objects.saturating_add(1);
    }
    let parent = folder.parent().filter(|parent| !parent.as_os_str().is_empty());
    for folder in [&*objects, folder, parent.unwrap_or(Path::new("."))] {
        let synced = File::open(folder).and_then(|folder| folder.sync_all());
        synced.map_err(|error| from_io(&error))?;
    }
    Ok(exported)
}

fn write_records(
    reader: &mut dyn LogReader,
    last: Seq,
    file: &mut impl Write,
) -> Result<u64, ExportError> {
    let (mut written, mut count) = (Ok(()), 0_u64);
    reader.records(Seq::GENESIS, &mut |seq, bytes| {
        written = file.write_all(bytes);
        count = count.saturating_add(1);
        if written.is_ok() && seq < last { Next::More } else { Next::Enough }
    })?;
    written.map_err(|error| from_io(&error))?;
    Ok(count)
}

fn write_object(
    reader: &mut dyn LogReader,
    id: &ObjectId,
    folder: &Path,
) -> Result<(), ExportError> {
    let object = reader.object(id)?.ok_or(StoreError::Damaged)?;
    let mut file = make(&folder.join(id.to_string()))?;
    let written = file.write_all(&object.bytes).and_then(|()| file.sync_all());
    written.map_err(|error| from_io(&error))
}

/// A log may name agents and tools: it is its owner's.
fn make_folder(path: &Path) -> Result<(), ExportError> {
    DirBuilder::new().mode(0o700).create(path).map_err(|error| from_io(&error))
}

fn make(path: &Path) -> Result<File, ExportError> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    file.map_err(|error| from_io(&error))
}

fn from_io(error: &std::io::Error) -> ExportError {
    match error.kind() {
        std::io::ErrorKind::AlreadyExists => ExportError::Exists,
        _ => ExportError::Io(error.raw_os_error().unwrap_or(0)),
    }
}
