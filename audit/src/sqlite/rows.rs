//! Statements over a home's tables.

use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::{Connection, OptionalExtension, Row, params};
use syscap_format::{Head, Leaf, Object, ObjectId, ObjectKind, Seq, VaultWrite};
use syscap_kernel::{Batch, Next, StoreError};

use super::error::from_sqlite;

type Written = Result<(), StoreError>;

/// The rows that were read in this process.
static READ: AtomicU64 = AtomicU64::new(0);

/// How many rows of homes' tables this process has read, by all its readers: to count what a look
/// costs.
pub fn rows_read() -> u64 {
    READ.load(Ordering::Relaxed)
}

fn count_read() {
    READ.fetch_add(1, Ordering::Relaxed);
}

/// Runs a statement without parameters or rows.
pub(super) fn execute(connection: &Connection, sql: &str) -> Written {
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    statement.execute([]).map(drop).map_err(from_sqlite)
}

/// Writes a batch, inside a transaction.
pub(super) fn write(connection: &Connection, batch: &Batch) -> Written {
    move_head(connection, batch)?;
    for link in batch.links() {
        let sql = "INSERT INTO records (seq, body) VALUES (?1, ?2)";
        insert(connection, sql, params![number(link.seq)?, link.bytes])?;
    }
    for object in batch.objects() {
        write_object(connection, object)?;
    }
    batch.vault().iter().try_for_each(|write| write_vault(connection, write))?;
    batch.erased().iter().try_for_each(|seq| {
        insert(connection, "DELETE FROM vault WHERE seq = ?1", params![number(*seq)?])
    })
}

/// The compare-and-swap: the log must end where the batch begins.
fn move_head(connection: &Connection, batch: &Batch) -> Written {
    let last = batch.links().last().ok_or(StoreError::HeadMoved)?;
    let (seq, leaf) = (number(last.seq)?, last.leaf.as_bytes());
    let changed = match batch.after() {
        Some(after) => {
            let sql = "UPDATE head SET seq = ?1, leaf = ?2 WHERE seq = ?3 AND leaf = ?4";
            let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
            statement.execute(params![seq, leaf, number(after.seq)?, after.leaf.as_bytes()])
        }
        None => {
            let sql = "INSERT INTO head (one, seq, leaf) SELECT 1, ?1, ?2 \
                       WHERE NOT EXISTS (SELECT 1 FROM head)";
            let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
            statement.execute(params![seq, leaf])
        }
    };
    if changed.map_err(from_sqlite)? == 1 { Ok(()) } else { Err(StoreError::HeadMoved) }
}

/// An object that is there already must be the same.
fn write_object(connection: &Connection, object: &Object) -> Written {
    let sql = "INSERT OR IGNORE INTO objects (id, kind, body) VALUES (?1, ?2, ?3)";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let kind = i64::try_from(object.kind.code()).map_err(|_| StoreError::Damaged)?;
    let row = params![object.id.as_bytes(), kind, object.bytes];
    if statement.execute(row).map_err(from_sqlite)? == 0 {
        let same = self::object(connection, &object.id)?.as_ref() == Some(object);
        return if same { Ok(()) } else { Err(StoreError::Damaged) };
    }
    Ok(())
}

fn write_vault(connection: &Connection, write: &VaultWrite) -> Written {
    let sql = "INSERT INTO vault (seq, row) VALUES (?1, ?2)";
    insert(connection, sql, params![number(write.seq)?, write.row])
}

fn insert(connection: &Connection, sql: &str, row: impl rusqlite::Params) -> Written {
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    statement.execute(row).map(drop).map_err(from_sqlite)
}

/// The bytes that a batch adds to the tables.
pub(super) fn size(batch: &Batch) -> u64 {
    let records = batch.links().iter().map(|link| link.bytes.len());
    let objects = batch.objects().iter().map(|object| object.bytes.len());
    let vault = batch.vault().iter().map(|write| write.row.len());
    let each = records.chain(objects).chain(vault);
    each.fold(0, |sum, len| sum.saturating_add(u64::try_from(len).unwrap_or(u64::MAX)))
}

/// The head of the log.
pub(super) fn head(connection: &Connection) -> Result<Option<Head>, StoreError> {
    let mut statement =
        connection.prepare_cached("SELECT seq, leaf FROM head").map_err(from_sqlite)?;
    let row = statement.query_row([], |row| Ok((unsigned(row, 0)?, row.get(1)?)));
    let row = row.optional().map_err(from_sqlite)?;
    Ok(row.map(|(seq, leaf)| Head { seq: Seq::new(seq), leaf: Leaf::from_bytes(leaf) }))
}

/// Gives `each` the records from `from` on, until it says no.
pub(super) fn records(
    connection: &Connection,
    from: Seq,
    each: &mut dyn FnMut(Seq, &[u8]) -> Next,
) -> Result<(), StoreError> {
    let sql = "SELECT seq, body FROM records WHERE seq >= ?1 ORDER BY seq";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let mut rows = statement.query(params![number(from)?]).map_err(from_sqlite)?;
    while let Some(row) = rows.next().map_err(from_sqlite)? {
        count_read();
        if each(Seq::new(unsigned(row, 0).map_err(from_sqlite)?), blob(row, 1)?) == Next::Enough {
            break;
        }
    }
    Ok(())
}

/// A control document.
pub(super) fn object(connection: &Connection, id: &ObjectId) -> Result<Option<Object>, StoreError> {
    let sql = "SELECT kind, body FROM objects WHERE id = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let row = statement.query_row(params![id.as_bytes()], |row| {
        Ok((unsigned(row, 0)?, row.get::<_, Vec<u8>>(1)?))
    });
    let Some((kind, bytes)) = row.optional().map_err(from_sqlite)? else {
        return Ok(None);
    };
    count_read();
    let kind = ObjectKind::from_code(kind).ok_or(StoreError::Damaged)?;
    Ok(Some(Object { kind, id: *id, bytes }))
}

/// The names of all control documents.
pub(super) fn object_ids(connection: &Connection) -> Result<Vec<ObjectId>, StoreError> {
    let sql = "SELECT id FROM objects ORDER BY id";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let ids = statement.query_map([], |row| row.get(0).map(ObjectId::from_bytes));
    ids.and_then(Iterator::collect).map_err(from_sqlite)
}

/// The vault's row beside a record.
pub(super) fn vault(connection: &Connection, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT row FROM vault WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let row = statement.query_row(params![number(seq)?], |row| row.get(0));
    let row = row.optional().map_err(from_sqlite)?;
    if row.is_some() {
        count_read();
    }
    Ok(row)
}

/// How long that row is: SQLite knows it without reading the row.
pub(super) fn vault_len(connection: &Connection, seq: Seq) -> Result<Option<usize>, StoreError> {
    let sql = "SELECT length(row) FROM vault WHERE seq = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(from_sqlite)?;
    let len = statement.query_row(params![number(seq)?], |row| unsigned(row, 0));
    let len = len.optional().map_err(from_sqlite)?;
    Ok(len.map(|len| usize::try_from(len).unwrap_or(usize::MAX)))
}

fn blob<'a>(row: &'a Row<'_>, column: usize) -> Result<&'a [u8], StoreError> {
    let value = row.get_ref(column).map_err(from_sqlite)?;
    value.as_blob().map_err(|_| StoreError::Damaged)
}

/// A number that is not negative; SQLite has only signed ones.
pub(super) fn unsigned(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| rusqlite::Error::IntegralValueOutOfRange(column, value))
}

/// A position as SQLite has numbers.
fn number(seq: Seq) -> Result<i64, StoreError> {
    i64::try_from(seq.get()).map_err(|_| StoreError::Damaged)
}
