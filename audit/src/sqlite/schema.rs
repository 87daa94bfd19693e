//! The tables of a home, and how connections are set up.

use std::path::Path;

use rusqlite::{Connection, OpenFlags, config::DbConfig};
use syscap_format::Durability;
use syscap_kernel::StoreError;

use super::{error::from_sqlite, files::make_file};
use crate::disk::{DATABASE_FILE, from_io, sync_folder};

/// Marks the file as ours: "sysc".
pub const APPLICATION_ID: i32 = 0x7379_7363;
/// Version of the tables.
pub const FORMAT: i32 = 2;
/// 3.51.2 and before can lose what was written when a WAL is reset (sqlite.org/wal.html).
const SQLITE_MIN: i32 = 3_051_003;
/// A reader may hold up the writer for as long as it takes to rebuild the WAL's index.
pub(super) const BUSY: std::time::Duration = std::time::Duration::from_secs(5);

/// Every table and trigger. Triggers guard against bugs, not against who owns the file.
const TABLES: &str = "
CREATE TABLE records (seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;
CREATE TABLE objects (id BLOB PRIMARY KEY, kind INTEGER NOT NULL, body BLOB NOT NULL)
    STRICT, WITHOUT ROWID;
CREATE TABLE head (one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL,
    leaf BLOB NOT NULL) STRICT;
CREATE TABLE vault (seq INTEGER PRIMARY KEY, row BLOB NOT NULL) STRICT;
CREATE TRIGGER records_update BEFORE UPDATE ON records
    BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER records_delete BEFORE DELETE ON records
    BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER objects_update BEFORE UPDATE ON objects
    BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER objects_delete BEFORE DELETE ON objects
    BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER head_update BEFORE UPDATE ON head WHEN NEW.seq <= OLD.seq
    BEGIN SELECT RAISE(ABORT, 'append only'); END;
CREATE TRIGGER head_delete BEFORE DELETE ON head BEGIN SELECT RAISE(ABORT, 'append only'); END;
";

/// Refuses a library that is known to lose data.
pub(super) fn check_library() -> Result<(), StoreError> {
    if rusqlite::version_number() < SQLITE_MIN { Err(StoreError::Library) } else { Ok(()) }
}

/// Makes the database file, whole or not at all: it gets its name when it is complete.
pub(super) fn create(home: &Path) -> Result<(), StoreError> {
    let new = home.join("home.db.new");
    make_file(&new)?;
    let connection = Connection::open_with_flags(&new, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))
        .map_err(from_sqlite)?;
    fill(&connection).map_err(from_sqlite)?;
    connection.close().map_err(|(_, error)| from_sqlite(error))?;
    let named = std::fs::rename(&new, home.join(DATABASE_FILE)).and_then(|()| sync_folder(home));
    named.map_err(|error| from_io(&error))
}

fn fill(connection: &Connection) -> rusqlite::Result<()> {
    // The mode stands in the file's header, so it has to be set only here.
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    connection.execute_batch(&format!("BEGIN IMMEDIATE;{TABLES}COMMIT;"))?;
    connection.pragma_update(None, "application_id", APPLICATION_ID)?;
    connection.pragma_update(None, "user_version", FORMAT)
}

/// Opens the database for writing.
pub(super) fn open_writer(home: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE_FILE);
    let connection = Connection::open_with_flags(&path, flags(OpenFlags::SQLITE_OPEN_READ_WRITE))
        .map_err(from_sqlite)?;
    check(&connection)?;
    set_up_writer(&connection, durability).map_err(from_sqlite)?;
    Ok(connection)
}

fn set_up_writer(connection: &Connection, durability: Durability) -> rusqlite::Result<()> {
    let synchronous = match durability {
        Durability::Full => "FULL",
        // Each commit survives the process; a power cut may take the last ones.
        Durability::Process | Durability::Memory => "NORMAL",
    };
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", synchronous)?;
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    // Erasing from the vault must leave nothing in free pages.
    connection.pragma_update(None, "secure_delete", "ON")?;
    // What undoes a statement stays in small pieces in memory: 64 KiB at once, each time, cost
    // more than the statement itself.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    connection.set_prepared_statement_cache_capacity(32);
    Ok(())
}

/// Opens the database for reading only, beside a writer or alone.
pub(super) fn open_reader(home: &Path) -> Result<Connection, StoreError> {
    let path = home.join(DATABASE_FILE);
    let read = flags(OpenFlags::SQLITE_OPEN_READ_ONLY);
    let connection = Connection::open_with_flags(&path, read).map_err(from_sqlite)?;
    match check(&connection) {
        // A WAL database in a folder that can't be written to, or on a full disk, can be read only
        // as a file that nobody changes; without a WAL it is one.
        Err(StoreError::Io(_) | StoreError::Full) if is_at_rest(home) => {
            let uri = immutable_uri(&path).ok_or(StoreError::Missing)?;
            let read = read | OpenFlags::SQLITE_OPEN_URI;
            let connection = Connection::open_with_flags(uri, read).map_err(from_sqlite)?;
            check(&connection)?;
            Ok(connection)
        }
        Err(error) => Err(error),
        Ok(()) => Ok(connection),
    }
}

/// Opens the database as a copy of it would be that lacks its write-ahead log.
pub(super) fn open_alone(home: &Path) -> Result<Connection, StoreError> {
    let uri = immutable_uri(&home.join(DATABASE_FILE)).ok_or(StoreError::Missing)?;
    let read = flags(OpenFlags::SQLITE_OPEN_READ_ONLY) | OpenFlags::SQLITE_OPEN_URI;
    Connection::open_with_flags(uri, read).map_err(from_sqlite)
}

fn is_at_rest(home: &Path) -> bool {
    std::fs::metadata(home.join(super::files::WAL_FILE)).map_or(true, |meta| meta.len() == 0)
}

fn immutable_uri(path: &Path) -> Option<String> {
    let path = std::path::absolute(path).ok()?;
    let mut uri = String::from("file://");
    for byte in path.to_str()?.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02x}"));
        }
    }
    uri.push_str("?immutable=1");
    Some(uri)
}

/// Checks that the file is a home of a format that this version reads, with our tables and no
/// others.
fn check(connection: &Connection) -> Result<(), StoreError> {
    set_up(connection).map_err(from_sqlite)?;
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i32>(0));
    if number("application_id").map_err(from_sqlite)? != APPLICATION_ID {
        return Err(StoreError::Damaged);
    }
    let format = number("user_version").map_err(from_sqlite)?;
    match format.cmp(&FORMAT) {
        std::cmp::Ordering::Less => {
            return Err(StoreError::TooOld(u32::try_from(format).unwrap_or(0)));
        }
        std::cmp::Ordering::Greater => {
            return Err(StoreError::Newer(u32::try_from(format).unwrap_or(u32::MAX)));
        }
        std::cmp::Ordering::Equal => {}
    }
    let model = Connection::open_in_memory().map_err(from_sqlite)?;
    model.execute_batch(TABLES).map_err(from_sqlite)?;
    if tables(connection).map_err(from_sqlite)? != tables(&model).map_err(from_sqlite)? {
        return Err(StoreError::Damaged);
    }
    Ok(())
}

fn set_up(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // What a file's schema says is not trusted, and can't be changed through SQL.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DEFENSIVE, true)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false)?;
    connection.pragma_update(None, "mmap_size", 0)?;
    connection.pragma_update(None, "cell_size_check", "ON")
}

/// The statements that made the tables.
fn tables(connection: &Connection) -> rusqlite::Result<Vec<(String, Option<String>)>> {
    let mut statement =
        connection.prepare("SELECT type || ' ' || name, sql FROM sqlite_schema ORDER BY 1")?;
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
    rows.collect()
}

/// One connection is used by one thread at a time, so it needs no mutex of its own.
fn flags(access: OpenFlags) -> OpenFlags {
    access | OpenFlags::SQLITE_OPEN_NO_MUTEX
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use syscap_format::Durability;

    use super::{create, open_reader, open_writer};

    fn number(connection: &Connection, name: &str) -> i64 {
        connection.pragma_query_value(None, name, |row| row.get(0)).unwrap()
    }

    /// A property that no test of a running process can see: a commit waits for the disk.
    #[test]
    fn a_writer_is_set_up_as_its_durability_asks() {
        let home = tempfile::tempdir().unwrap();
        create(home.path()).unwrap();
        let (normal, full) = (1, 2);
        for (durability, synchronous) in
            [(Durability::Full, full), (Durability::Process, normal), (Durability::Memory, normal)]
        {
            let writer = open_writer(home.path(), durability).unwrap();
            assert_eq!(number(&writer, "synchronous"), synchronous, "{durability:?}");
            assert_eq!(number(&writer, "wal_autocheckpoint"), 0);
            assert_eq!(number(&writer, "secure_delete"), 1, "what is erased leaves nothing");
            assert_eq!(number(&writer, "trusted_schema"), 0);
            assert_eq!(number(&writer, "mmap_size"), 0);
            let mode = |row: &rusqlite::Row<'_>| row.get::<_, String>(0);
            assert_eq!(writer.pragma_query_value(None, "journal_mode", mode).unwrap(), "wal");
        }
        let reader = open_reader(home.path()).unwrap();
        assert!(reader.execute_batch("DELETE FROM vault").is_err(), "a reader writes nothing");
    }
}
