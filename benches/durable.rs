//! Durable calls: a lone one beside its fsyncs, 64 callers beside bare SQLite batches of the
//! same mean size; what a call takes on disk; how fast a log is verified.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use harness::{figure, row};
use syscap::audit::SqliteStore;
use syscap::format::{
    Durability, EffectClass, Manifest, Object, ObjectId, Refused, Seq, TxOutcome,
};
use syscap::kernel::{
    Batch, Demands, Next, Permit, Plan, Ran, Request, Room, Store, StoreError, Tool,
};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, verify_home};

/// A mutating tool that does nothing: what is timed is the record-keeping.
struct Touch(Manifest);
struct TouchPlan(Demands);

impl Tool for Touch {
    type Plan = TouchPlan;
    fn manifest(&self) -> &Manifest {
        &self.0
    }
    fn plan(&self, _: &Request<'_>) -> Result<TouchPlan, Refused> {
        Ok(TouchPlan(Demands::default()))
    }
}

impl Plan for TouchPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }
    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(syscap::format::Canonical::null(), TxOutcome::Committed)
    }
}

/// Counts batches.
struct Counted(SqliteStore, Arc<AtomicU64>);

impl Store for Counted {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.commit(batch)
    }
    fn records(
        &mut self,
        from: Seq,
        each: &mut dyn FnMut(Seq, &[u8]) -> Next,
    ) -> Result<(), StoreError> {
        Store::records(&mut self.0, from, each)
    }
    fn object(&mut self, id: &ObjectId) -> Result<Option<Object>, StoreError> {
        Store::object(&mut self.0, id)
    }
    fn vault(&mut self, seq: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        self.0.vault(seq)
    }
    fn room(&mut self) -> Result<Room, StoreError> {
        self.0.room()
    }
}

fn runtime(home: &Path) -> (Runtime, TokenId, Arc<AtomicU64>) {
    let tool = Touch(Manifest::new(ToolId::new("touch").unwrap(), EffectClass::LocalWrite));
    std::fs::create_dir(home).unwrap();
    let commits = Arc::<AtomicU64>::default();
    let store = SqliteStore::create(home, Durability::Full).unwrap();
    let store = Counted(store, Arc::clone(&commits));
    let rt = Options::new().tool(tool).unwrap().store(store).create(home).unwrap();
    let big = 1 << 50;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big)
        .with(Dimension::Concurrent, 1_000);
    let token = rt.issue(Grant::to("a").tools(["touch"]).budget(budget)).unwrap();
    (rt, token, commits)
}

/// What calls came to: records, seconds, each call's time, records a batch.
struct Calls {
    records: u64,
    seconds: f64,
    times: Vec<f64>,
    batch: f64,
}

impl Calls {
    fn rate(&self) -> f64 {
        self.records as f64 / self.seconds
    }
}

/// Calls for so long by so many threads, so many together.
fn calls(home: &Path, callers: usize, together: usize, long: Duration) -> Calls {
    let (rt, token, commits) = runtime(home);
    let agent = rt.session("a", token).unwrap();
    let before = commits.load(Ordering::Relaxed);
    let start = Instant::now();
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|_| {
                let agent = &agent;
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while start.elapsed() < long {
                        let begin = Instant::now();
                        if together == 1 {
                            agent.call("touch", args! {}).unwrap().value().unwrap();
                        } else {
                            let calls = (0..together).map(|_| ("touch", args! {}));
                            let answers = agent
                                .wait_all(
                                    calls
                                        .into_iter()
                                        .map(|(tool, args)| agent.request(tool).args(args)),
                                )
                                .unwrap();
                            assert!(answers.iter().all(|answer| answer.reason().is_none()));
                        }
                        times.push(begin.elapsed().as_nanos() as f64);
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    let batches = commits.load(Ordering::Relaxed) - before;
    times.sort_by(f64::total_cmp);
    let records = (times.len() * together) as u64 * 2;
    rt.close().unwrap();
    Calls { records, seconds, times, batch: records as f64 / batches as f64 }
}

/// The mean lengths of a call's rows: of its records, and of the vault beside them.
fn rows(home: &Path) -> (usize, usize) {
    let database = rusqlite::Connection::open(home.join("home.db")).unwrap();
    let mean =
        |sql: &str| database.query_row(sql, [], |row| row.get::<_, f64>(0)).unwrap() as usize;
    let records = "SELECT avg(length(body)) FROM (SELECT body FROM records ORDER BY seq DESC \
                   LIMIT 10000 OFFSET 1)";
    let vault =
        "SELECT avg(length(row)) FROM (SELECT row FROM vault ORDER BY seq DESC LIMIT 10000)";
    (mean(records), mean(vault))
}

/// Bare SQLite as a user would set it up: WAL, FULL, batches of one size. Each record has a row of
/// its own and, where `beside` says so, one more of that length, and each batch moves a head.
fn bare(
    folder: &Path,
    batch: u64,
    (length, beside): (usize, Option<usize>),
    long: Duration,
) -> (f64, Vec<f64>) {
    let database = rusqlite::Connection::open(folder.join("bare.db")).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; \
             CREATE TABLE r(seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT; \
             CREATE TABLE v(seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT; \
             CREATE TABLE h(one INTEGER PRIMARY KEY, seq INTEGER NOT NULL) STRICT; \
             INSERT INTO h VALUES (1, 0);",
        )
        .unwrap();
    let (body, more) = (vec![7_u8; length], beside.map(|length| vec![7_u8; length]));
    let (start, mut times, mut seq) = (Instant::now(), Vec::new(), 0_i64);
    while start.elapsed() < long {
        let begin = Instant::now();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..batch {
            let mut insert = database.prepare_cached("INSERT INTO r VALUES (?1, ?2)").unwrap();
            insert.execute((seq, &body[..])).unwrap();
            if let Some(more) = &more {
                let mut insert = database.prepare_cached("INSERT INTO v VALUES (?1, ?2)").unwrap();
                insert.execute((seq, &more[..])).unwrap();
            }
            seq += 1;
        }
        if more.is_some() {
            let mut moved = database.prepare_cached("UPDATE h SET seq = ?1").unwrap();
            moved.execute([seq]).unwrap();
        }
        database.execute_batch("COMMIT").unwrap();
        times.push(begin.elapsed().as_nanos() as f64);
    }
    (seq as f64 / start.elapsed().as_secs_f64(), times)
}

fn fsyncs(folder: &Path) -> Vec<f64> {
    use std::io::Write;
    let mut file = std::fs::File::create(folder.join("fsync")).unwrap();
    let mut times = Vec::new();
    for _ in 0..300 {
        file.write_all(&[7; 4_096]).unwrap();
        let begin = Instant::now();
        file.sync_data().unwrap();
        times.push(begin.elapsed().as_nanos() as f64);
    }
    times
}

fn size(folder: &Path) -> u64 {
    let length = |name: &str| std::fs::metadata(folder.join(name)).map_or(0, |m| m.len());
    length("home.db") + length("home.db-wal")
}

fn main() {
    let long = Duration::from_secs(3);
    let dir = tempfile::tempdir().unwrap();
    row("a lone fdatasync of 4 KiB", figure(&mut fsyncs(dir.path())));
    let (_, mut one) = bare(dir.path(), 1, (420, None), long);
    let one = figure(&mut one);
    row("bare SQLite, one record a transaction", one);
    let home = dir.path().join("lone");
    let mut lone = calls(&home, 1, 1, long);
    let lone = figure(&mut lone.times);
    row("a lone durable mutating call (two transactions)", lone);
    println!("ratio to its two bare transactions: {:.2}", lone.median / (2.0 * one.median));

    for (callers, together) in [(16, 1), (64, 1), (1, 64)] {
        let home = dir.path().join(format!("home{callers}-{together}"));
        let ran = calls(&home, callers, together, long);
        let at = |share: f64| (ran.times.len().saturating_sub(1) as f64 * share) as usize;
        let p = |share: f64| ran.times.get(at(share)).unwrap() / 1e3;
        let (length, beside) = rows(&home);
        println!(
            "{callers} callers, {together} together: {:.0} calls a second, p50 {:.0} us, \
             p99 {:.0} us, \
             {:.1} records a batch; rows of {length} and {beside} bytes",
            ran.rate() / 2.0,
            p(0.5),
            p(0.99),
            ran.batch,
        );
        let batch = (ran.batch.round() as u64).max(1);
        for (name, beside) in [("one row", None), ("the same rows", Some(beside))] {
            let folder = dir.path().join(format!("bare{callers}-{together}-{}", beside.is_some()));
            std::fs::create_dir(&folder).unwrap();
            let (rate, _) = bare(&folder, batch, (length, beside), long);
            println!(
                "  bare SQLite, {name} a record: {rate:.0} records a second; {:.2} of it",
                ran.rate() / rate
            );
        }
        println!("  on disk: {:.0} bytes a call", size(&home) as f64 / (ran.records as f64 / 2.0));
    }
    let home = dir.path().join("home64-1");
    let start = Instant::now();
    let report = verify_home(&home, &VerifyOptions::default()).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "verify: {:.0} records a second ({:?})",
        report.records as f64 / seconds,
        report.verdict()
    );
}
