//! SQLite's errors in the store's terms.

use rusqlite::{Error, ErrorCode, ffi};
use syscap_kernel::StoreError;

pub(super) fn from_sqlite(error: Error) -> StoreError {
    let Error::SqliteFailure(failure, _) = error else {
        // The rest is about columns and values that are not of our schema.
        return StoreError::Damaged;
    };
    match failure.code {
        ErrorCode::DiskFull => StoreError::Full,
        // The index of the WAL can't grow. It is made anew whenever it is missing, so nothing is
        // lost with it, and trying again does no harm.
        ErrorCode::SystemIoFailure if failure.extended_code == ffi::SQLITE_IOERR_SHMSIZE => {
            StoreError::Full
        }
        ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => StoreError::Busy,
        // A constraint is broken only where a row that must not be there is.
        ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase | ErrorCode::ConstraintViolation => {
            StoreError::Damaged
        }
        _ => StoreError::Io(failure.extended_code),
    }
}

/// The error of a statement in a transaction: whether it was written is not known, also where
/// somebody held a lock.
pub(super) fn within(error: StoreError) -> StoreError {
    match error {
        StoreError::Busy => StoreError::Io(ffi::SQLITE_BUSY),
        error => error,
    }
}
