//! What every store must do, and what only the one on disk can.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use syscap_kernel::{
    Anchor, Attempt, Batch, Event, Halt, Kernel, Next, Room, Settled, Store, StoreError, WithRows,
    vault_entry,
};

use kernel_support::driver::tools::AllowAll;
use kernel_support::driver::{Driver, HOUR_MS, key, new_home, parts, start};
use kernel_support::fault::{FAULT, FaultPoint, FaultStore};
use rusqlite::Connection;
use syscap_audit::disk::expect_database;
use syscap_audit::sqlite::{BALLAST_BYTES, BALLAST_FILE, Settings, WRITER_FILE};
use syscap_audit::{DATABASE_FILE, LockState, MemoryStore, SqliteReader, SqliteStore};
use syscap_format::{ControlBody as _, Durability, RecordKind, RedactBody, Role, Seq};
use tempfile::TempDir;

fn genesis(entropy: u8) -> Batch {
    let mut kernel = Kernel::create(new_home(entropy), parts(AllowAll::new(0)), start()).unwrap();
    kernel.take_batch().unwrap()
}

fn records(store: &mut dyn Store, from: u64) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    let each = &mut |seq: Seq, bytes: &[u8]| {
        found.push((seq.get(), bytes.to_vec()));
        Next::More
    };
    store.records(Seq::new(from), each).unwrap();
    found
}

fn create(dir: &TempDir) -> SqliteStore {
    SqliteStore::create(dir.path(), Durability::Full).unwrap()
}

fn open(dir: &Path) -> Result<SqliteStore, StoreError> {
    SqliteStore::open(dir, Durability::Full)
}

/// A reader keeps pages from before an erasure in the log: it is said, and the next idle time ends it.
#[test]
fn a_reader_holds_a_purge_up_and_no_longer() {
    let dir = tempfile::tempdir().unwrap();
    let mut driver = Driver::ready(create(&dir));
    let (_, session) = driver.agent("ada", 1);
    driver.call(session, r#"{"tool_id":"disk.write","args":{"bytes":10}}"#);
    let reader = Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM vault").unwrap();
    let row = (0..64).find(|seq| driver.store.vault(Seq::new(*seq)).unwrap().is_some()).unwrap();
    let records = vec![Seq::new(row)];
    let rows = WithRows::find(&mut driver.store, &records).unwrap().unwrap();
    let body = RedactBody { records, cause: None };
    let control = driver.sign(&key(Role::Operator), RecordKind::Redact, body.to_bytes());
    let ticket = driver.ticket();
    driver.event(Event::Redact(ticket, control, None, rows, None));
    driver.acked(ticket).unwrap();
    let wal = || std::fs::metadata(dir.path().join("home.db-wal")).map_or(0, |found| found.len());
    assert_eq!(driver.store.purge(), Ok(Settled::NotYet));
    driver.store.idle().unwrap();
    assert_ne!(wal(), 0);
    drop(reader);
    driver.store.idle().unwrap();
    assert_eq!(wal(), 0);
    assert_eq!(driver.store.purge(), Ok(Settled::Whole));
    assert_eq!(driver.store.vault(Seq::new(row)).unwrap(), None);
}

/// The suite: `reopen` gives another store on what the first one has kept.
fn suite<S: Store>(store: S, reopen: impl FnOnce(S) -> S) {
    let mut driver = Driver::ready(store);
    let (token, session) = driver.agent("ada", 1);
    let ticket = driver.call(session, r#"{"tool_id":"disk.write","args":{"bytes":10}}"#);
    let receipt = driver.reply(ticket).receipt().clone();
    let delivered = driver.reply(ticket).delivered().clone();
    driver.shutdown();
    driver.flush();
    assert!(driver.error.is_none());
    let head = driver.kernel.head();
    let image = driver.kernel.state_image();

    let mut store = driver.crash();
    let before = records(&mut store, 0);
    let mut store = reopen(store);
    let all = records(&mut store, 0);
    assert_eq!(all, before);
    assert_eq!(all.len() as u64, head.seq.get() + 1);
    assert!(all.iter().enumerate().all(|(place, (seq, _))| place as u64 == *seq));
    assert_eq!(syscap_format::leaf(&all.last().unwrap().1), head.leaf);
    assert_eq!(records(&mut store, 5), all[5..]);

    let mut first = Vec::new();
    let each = &mut |seq: Seq, _: &[u8]| {
        first.push(seq.get());
        if first.len() < 3 { Next::More } else { Next::Enough }
    };
    store.records(Seq::new(1), each).unwrap();
    assert_eq!(first, [1, 2, 3]);

    let id = syscap_format::ObjectId::from_bytes(*token.as_bytes());
    let object = store.object(&id).unwrap().unwrap();
    assert!(object.is_sound());
    let absent = syscap_format::ObjectId::from_bytes([9; 32]);
    assert_eq!(store.object(&absent), Ok(None));

    let first = receipt.intent.unwrap().0;
    let entry = vault_entry(&mut store, first, receipt.outcome_seq).unwrap();
    assert!(entry.salts.is_some());
    assert_eq!(entry.result.as_deref(), Some(delivered.as_bytes()));
    assert_eq!(store.vault(Seq::GENESIS).unwrap(), None);
    assert_eq!(store.room(), Ok(Room::Enough));
    assert_eq!(store.idle(), Ok(()));

    let kernel = Kernel::open(&mut store, parts(AllowAll::new(0)), &Anchor::default()).unwrap();
    assert_eq!(kernel.head(), head);
    assert_eq!(kernel.state_image(), image, "replay makes the same state");

    // Another home's beginning does not follow this log; nor does anything after that.
    let other = genesis(1);
    assert_eq!(store.commit(&other), Err(StoreError::HeadMoved));
    assert_eq!(store.commit(&other), Err(StoreError::Poisoned));
}

#[test]
fn memory_store_keeps_what_it_acknowledged() {
    suite(MemoryStore::new(), |store| store.share());
}

#[test]
fn sqlite_store_keeps_what_it_acknowledged() {
    let dir = TempDir::new().unwrap();
    suite(create(&dir), |store| {
        drop(store);
        open(dir.path()).unwrap()
    });
}

#[test]
fn a_store_that_never_fails_is_transparent() {
    suite(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere), |store| {
        FaultStore::new(store.into_inner(), FaultPoint::Nowhere)
    });
}

/// Of two kernels on one log, one goes on.
#[test]
fn two_kernels_can_not_fork_a_log() {
    let mut first = Driver::ready(MemoryStore::new());
    let shared = first.store.share();
    let mut second = Driver::open(shared, first.reading, 0).unwrap();
    first.agent("ada", 1);
    second.kernel.handle(boot_event(), start());
    let batch = second.kernel.take_batch().unwrap();
    assert!(matches!(batch.commit(&mut second.store), Err(Halt::Store(StoreError::HeadMoved))));
    let head = first.store.head();
    assert_eq!(head, Some(first.kernel.head()));
}

fn boot_event() -> syscap_kernel::Event {
    syscap_kernel::Event::Boot {
        ticket: syscap_kernel::Ticket(1),
        id: [2; 16],
        software: Box::from("test"),
        durability: Durability::Full,
        probed: Vec::new(),
    }
}

/// Neither its position alone nor its leaf alone makes a head the one that a batch was made after.
#[test]
fn a_batch_follows_the_very_head_that_it_was_made_after() {
    let boot = |entropy: u8, store: &mut dyn Store| {
        store.commit(&genesis(entropy)).unwrap();
        let parts = parts(AllowAll::new(0));
        let mut kernel = Kernel::open(store, parts, &Anchor::default()).unwrap();
        kernel.handle(boot_event(), start());
        kernel.take_batch().unwrap()
    };
    // Another home's, which is as long.
    let dir = TempDir::new().unwrap();
    let mut store = create(&dir);
    let own = boot(1, &mut store);
    let others = boot(2, &mut MemoryStore::new());
    assert_eq!(store.commit(&others), Err(StoreError::HeadMoved));
    drop(store);
    let mut store = open(dir.path()).unwrap();
    assert_eq!(records(&mut store, 0).len(), 1);
    // The same a second time: the log has gone on.
    store.commit(&own).unwrap();
    assert_eq!(store.commit(&own), Err(StoreError::HeadMoved));
    drop(store);
    let mut store = open(dir.path()).unwrap();
    assert_eq!(records(&mut store, 0).len(), 2);
    assert_eq!(store.head().unwrap().unwrap().leaf, own.links()[0].leaf);
}

#[test]
fn a_stale_batch_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    let mut store = create(&dir);
    store.commit(&genesis(1)).unwrap();
    assert_eq!(store.commit(&genesis(2)), Err(StoreError::HeadMoved));
    drop(store);
    let mut store = open(dir.path()).unwrap();
    assert_eq!(records(&mut store, 0), [(0, genesis(1).links()[0].bytes.clone())]);
    assert_eq!(store.head().unwrap().unwrap().leaf, genesis(1).links()[0].leaf);
}

#[test]
fn a_batch_after_a_head_needs_one() {
    let mut driver = Driver::create(MemoryStore::new(), 1);
    driver.flush();
    driver.kernel.handle(boot_event(), start());
    let batch = driver.kernel.take_batch().unwrap();
    let dir = TempDir::new().unwrap();
    assert_eq!(create(&dir).commit(&batch), Err(StoreError::HeadMoved));
    assert_eq!(MemoryStore::new().commit(&batch), Err(StoreError::HeadMoved));
}

#[test]
fn records_and_objects_are_append_only() {
    let dir = TempDir::new().unwrap();
    let mut driver = Driver::ready(create(&dir));
    driver.agent("ada", 1);
    drop(driver.crash());
    let connection = Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    for sql in [
        "UPDATE records SET body = x'00' WHERE seq = 1",
        "DELETE FROM records",
        "UPDATE objects SET kind = 2",
        "DELETE FROM objects",
        "UPDATE head SET seq = seq - 1",
        "DELETE FROM head",
        "INSERT INTO head VALUES (2, 0, x'00')",
        "INSERT INTO records VALUES (1, 'text')",
    ] {
        assert!(connection.execute(sql, []).is_err(), "{sql}");
    }
    let count = |table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        connection.query_row(&sql, [], |row| row.get::<_, i64>(0)).unwrap()
    };
    assert!(count("records") > 4 && count("objects") > 4);
}

/// Another program's lock is waited for in vain: nothing was written, and the same batch is taken
/// once the lock is free.
#[test]
fn batch_that_could_not_begin_is_tried_again() {
    let dir = TempDir::new().unwrap();
    let mut store = create(&dir);
    let other = Connection::open(dir.path().join(DATABASE_FILE)).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(store.ready(), Err(StoreError::Busy));
    let mut batch = genesis(3);
    for _ in 0..2 {
        let Ok(Attempt::Busy(same)) = batch.attempt(&mut store) else { panic!("not busy") };
        batch = same;
    }
    assert_eq!(records(&mut store, 0), []);
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(store.ready(), Ok(()));
    drop(batch.commit(&mut store).unwrap());
    assert_eq!(records(&mut store, 0).len(), 1);
    assert_eq!(store.counts().commits, 1);
}

/// A commit into a file that has lost its name is none.
#[test]
fn database_that_was_replaced_takes_no_batch() {
    for name in [DATABASE_FILE, "home.db-wal", "home.db-shm"] {
        for is_put_anew in [false, true] {
            let dir = TempDir::new().unwrap();
            let mut store = create(&dir);
            let path = dir.path().join(name);
            let copy = dir.path().join("copy");
            std::fs::copy(&path, &copy).unwrap();
            match is_put_anew {
                true => std::fs::rename(&copy, &path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
            let failed = genesis(3).commit(&mut store).map(drop);
            assert_eq!(failed, Err(Halt::Store(StoreError::Replaced)), "{name}");
            assert_eq!(
                genesis(3).commit(&mut store).map(drop),
                Err(Halt::Store(StoreError::Poisoned))
            );
        }
    }
    // Moved away as a whole.
    let dir = TempDir::new().unwrap();
    let home = dir.path().join("home");
    let mut store = SqliteStore::create(&home, Durability::Full).unwrap();
    std::fs::rename(&home, dir.path().join("moved")).unwrap();
    let failed = genesis(3).commit(&mut store).map(drop);
    assert_eq!(failed, Err(Halt::Store(StoreError::Replaced)));
}

#[test]
fn a_home_has_one_holder() {
    let dir = TempDir::new().unwrap();
    let store = create(&dir);
    let reader = SqliteReader::open(dir.path()).unwrap();
    assert_eq!(reader.lock_state(), Ok(LockState::Held));
    assert_eq!(open(dir.path()).err(), Some(StoreError::Locked));
    assert_eq!(SqliteStore::create(dir.path(), Durability::Full).err(), Some(StoreError::Locked));
    drop(store);
    assert_eq!(reader.lock_state(), Ok(LockState::Free));
    assert_eq!(SqliteStore::create(dir.path(), Durability::Full).err(), Some(StoreError::Exists));
    let mut child = holder(dir.path());
    assert_eq!(open(dir.path()).err(), Some(StoreError::Locked));
    assert_eq!(reader.lock_state(), Ok(LockState::Held));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(reader.lock_state(), Ok(LockState::Free));
    let mut store = open(dir.path()).unwrap();
    assert_eq!(records(&mut store, 0).len(), 1);
}

const CHILD_HOME: &str = "SYSCAP_TEST_CHILD_HOME";

/// Another process that holds the home, once it says so.
fn holder(home: &Path) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stores::child_holds_the_home", "--nocapture"])
        .env(CHILD_HOME, home)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let held = lines.map(Result::unwrap).find(|line| line.contains("child holds"));
    assert!(held.is_some());
    child
}

/// Only does anything when the test above starts it: commits a genesis record and waits.
#[test]
fn child_holds_the_home() {
    let Some(home) = std::env::var_os(CHILD_HOME) else {
        return;
    };
    let mut store = open(Path::new(&home)).unwrap();
    store.commit(&genesis(1)).unwrap();
    let mut out = std::io::stdout();
    writeln!(out, "child holds").unwrap();
    out.flush().unwrap();
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[test]
fn folder_without_a_home_is_not_opened() {
    let dir = TempDir::new().unwrap();
    assert_eq!(open(dir.path()).err(), Some(StoreError::Missing));
    assert_eq!(SqliteReader::open(dir.path()).err(), Some(StoreError::Missing));
    assert_eq!(open(&dir.path().join("none")).err(), Some(StoreError::Missing));
    assert!(!dir.path().join("none").exists() && !dir.path().join(WRITER_FILE).exists());

    let file = dir.path().join(DATABASE_FILE);
    let damaged = |what: &str| {
        assert_eq!(open(dir.path()).err(), Some(StoreError::Damaged), "{what}");
        assert_eq!(SqliteReader::open(dir.path()).err(), Some(StoreError::Damaged), "{what}");
    };
    std::fs::write(&file, b"").unwrap();
    damaged("empty");
    std::fs::write(&file, [7; 8_192]).unwrap();
    damaged("no database");
    std::fs::remove_file(&file).unwrap();
    Connection::open(&file).unwrap().execute_batch("CREATE TABLE t (x)").unwrap();
    damaged("another program's");
}

#[test]
fn another_format_or_schema_is_not_opened() {
    let change = |sql: &str| {
        let dir = TempDir::new().unwrap();
        let mut store = create(&dir);
        store.commit(&genesis(1)).unwrap();
        drop(store);
        Connection::open(dir.path().join(DATABASE_FILE)).unwrap().execute_batch(sql).unwrap();
        let error = open(dir.path()).err();
        assert_eq!(SqliteReader::open(dir.path()).err(), error);
        error
    };
    assert_eq!(change("PRAGMA user_version = 3"), Some(StoreError::Newer(3)));
    assert_eq!(change("PRAGMA user_version = 1"), Some(StoreError::TooOld(1)));
    assert_eq!(change("PRAGMA application_id = 1"), Some(StoreError::Damaged));
    assert_eq!(change("DROP TRIGGER records_delete"), Some(StoreError::Damaged));
    assert_eq!(change("CREATE TABLE more (x)"), Some(StoreError::Damaged));
    assert_eq!(change("SELECT 1"), None);
}

#[test]
fn a_page_that_was_overwritten_is_found() {
    let dir = TempDir::new().unwrap();
    let mut driver = Driver::ready(create(&dir));
    driver.agent("ada", 1);
    drop(driver.crash());
    let file = dir.path().join(DATABASE_FILE);
    let mut bytes = std::fs::read(&file).unwrap();
    // All but the first page, which holds the schema.
    bytes[4_096..].fill(0xff);
    std::fs::write(&file, bytes).unwrap();
    let read =
        open(dir.path()).and_then(|mut store| store.records(Seq::GENESIS, &mut |_, _| Next::More));
    assert_eq!(read, Err(StoreError::Damaged));
}

#[test]
fn files_are_private() {
    use std::os::unix::fs::PermissionsExt;
    let dir = TempDir::new().unwrap();
    let home = dir.path().join("deep").join("home");
    let mut store = SqliteStore::create(&home, Durability::Full).unwrap();
    store.commit(&genesis(1)).unwrap();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&home), 0o700);
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&home).unwrap() {
        let entry = entry.unwrap();
        assert_eq!(mode(&entry.path()), 0o600, "{:?}", entry.file_name());
        names.push(entry.file_name().into_string().unwrap());
    }
    names.sort();
    assert_eq!(names, ["home.db", "home.db-lock", "home.db-shm", "home.db-wal", "reserve"]);
}

#[test]
fn a_full_disk_loses_nothing_that_was_acknowledged() {
    let dir = TempDir::new().unwrap();
    let settings = Settings::new(Durability::Full).pages_max(64).room_bytes_min(64 << 10);
    let store = SqliteStore::create_with(dir.path(), &settings).unwrap();
    assert!(std::fs::metadata(dir.path().join(BALLAST_FILE)).is_err(), "no room for ballast");
    drop(store);
    // A disk that was larger when the home was made.
    drop(open(dir.path()).unwrap());
    let ballast = std::fs::metadata(dir.path().join(BALLAST_FILE)).unwrap();
    assert_eq!(ballast.len(), BALLAST_BYTES);
    {
        use std::os::unix::fs::MetadataExt;
        assert!(ballast.blocks() * 512 >= BALLAST_BYTES, "the room is really taken");
    }

    let mut store = SqliteStore::open_with(dir.path(), &settings).unwrap();
    assert_eq!(store.room(), Ok(Room::Enough));
    let mut driver = Driver::ready(store);
    let (_, session) = driver.agent("ada", 1);
    let mut reserved_first = false;
    while driver.store.has_ballast() {
        driver.call(session, &call_of(2_000));
        reserved_first |= driver.store.has_ballast() && driver.store.room() == Ok(Room::Reserve);
        assert!(driver.error.is_none());
    }
    assert!(reserved_first, "the room ran low before it ran out");
    assert_eq!(driver.store.counts().retries, 1);
    assert!(std::fs::metadata(dir.path().join(BALLAST_FILE)).is_err());
    assert_eq!(driver.store.idle(), Ok(()));
    assert!(!driver.store.has_ballast(), "there is no room for it yet");

    // What the ballast left room for is used up too.
    while driver.error.is_none() {
        driver.call(session, &call_of(30_000));
    }
    assert_eq!(driver.error, Some(Halt::Store(StoreError::Full)));
    let commits = driver.store.commits();
    let answered = driver.replies.last().unwrap().1.receipt().clone();
    assert_eq!(driver.store.room(), Err(StoreError::Poisoned));
    let mut store = driver.crash();
    assert_eq!(store.commit(&genesis(1)), Err(StoreError::Poisoned));
    assert_eq!(store.commits(), commits);
    drop(store);

    let mut store = open(dir.path()).unwrap();
    assert!(store.has_ballast(), "it is made again where there is room");
    let kept = records(&mut store, answered.outcome_seq.get());
    assert_eq!(syscap_format::leaf(&kept[0].1), answered.outcome_leaf);
    let reading = start();
    let mut driver = Driver::open(store, reading, 0).unwrap();
    driver.boot();
    assert!(driver.error.is_none());
}

fn call_of(len: usize) -> String {
    format!(r#"{{"tool_id":"echo","args":{{"text":"{}"}}}}"#, "x".repeat(len))
}

#[test]
fn a_reader_reads_beside_a_writer() {
    let dir = TempDir::new().unwrap();
    let mut driver = Driver::ready(create(&dir));
    let mut reader = SqliteReader::open(dir.path()).unwrap();
    assert_eq!(reader.head(), Ok(Some(driver.kernel.head())));
    let (_, session) = driver.agent("ada", 1);
    driver.pass(HOUR_MS / 2);
    driver.call(session, r#"{"tool_id":"echo","args":{}}"#);
    assert_eq!(reader.head(), Ok(Some(driver.kernel.head())));
    let mut read = Vec::new();
    let each = &mut |seq: Seq, bytes: &[u8]| {
        read.push((seq.get(), bytes.to_vec()));
        Next::More
    };
    reader.records(Seq::GENESIS, each).unwrap();
    assert_eq!(read, records(&mut driver.store, 0));

    // A crash leaves a WAL behind: it is read too, and by a reader that comes first.
    let files = TempDir::new().unwrap();
    for name in ["home.db", "home.db-wal"] {
        std::fs::copy(dir.path().join(name), files.path().join(name)).unwrap();
    }
    let mut copy = SqliteReader::open(files.path()).unwrap();
    assert_eq!(copy.lock_state(), Ok(LockState::Free));
    assert_eq!(copy.head(), Ok(Some(driver.kernel.head())));
}

#[test]
fn the_wal_is_checkpointed_and_used_again() {
    let dir = TempDir::new().unwrap();
    let mut driver = Driver::ready(create(&dir));
    let (_, session) = driver.agent("ada", 1);
    let wal = || std::fs::metadata(dir.path().join("home.db-wal")).unwrap().len();
    let mut largest = 0;
    for _ in 0..300 {
        driver.call(session, &call_of(100_000));
        largest = largest.max(wal());
        if largest > 8 << 20 {
            driver.store.idle().unwrap();
        }
    }
    assert!(driver.error.is_none());
    let counts = driver.store.counts();
    assert!(counts.checkpoints >= 3, "{counts:?}");
    assert!(largest < 16 << 20, "{largest}");
    // Without idle time the WAL is kept within bounds too.
    for _ in 0..900 {
        driver.call(session, &call_of(100_000));
        largest = largest.max(wal());
    }
    assert!(driver.store.counts().checkpoints > counts.checkpoints);
    assert!(largest < 64 << 20, "{largest}");
}

#[test]
fn a_fault_stops_a_store_where_it_was_told_to() {
    for (point, kept) in [(FaultPoint::Before(3), 2), (FaultPoint::After(3), 3)] {
        let memory = MemoryStore::new();
        let mut driver = Driver::create(FaultStore::new(memory.share(), point), 1);
        driver.flush();
        driver.kernel.handle(boot_event(), start());
        driver.flush();
        assert!(driver.error.is_none());
        driver.kernel.handle(syscap_kernel::Event::Tick, start());
        let ticket = driver.ticket();
        driver.event(syscap_kernel::Event::Shutdown(ticket));
        assert_eq!(driver.error, Some(Halt::Store(FAULT)));
        assert_eq!(memory.all_records().len(), kept);
        let mut store = driver.crash();
        assert!(store.is_down());
        assert_eq!(store.commits(), 3);
        assert_eq!(store.room(), Err(StoreError::Poisoned));
    }
}

/// A home that can't be looked at is not a missing one: who believed that would make another.
#[test]
fn home_that_can_not_be_looked_at_is_not_missing() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let missing = expect_database(&home);
    assert_eq!(missing, Err(StoreError::Missing));
    std::os::unix::fs::symlink("home", &home).unwrap();
    assert!(matches!(expect_database(&home), Err(StoreError::Io(_))));
    assert!(matches!(SqliteReader::open(&home), Err(StoreError::Io(_))));
}
