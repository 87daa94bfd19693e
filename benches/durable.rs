//! Durable calls: a lone one beside its fsyncs, 64 callers beside bare SQLite batches of the
//! same mean size; what a call takes on disk; how fast a log is verified.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::{
    path::Path,
    time::{Duration, Instant},
};

use harness::{figure, row};
use syscap::{
    format::{
        envelope::TxOutcome,
        manifest::{EffectClass, Manifest},
        reason::Refused,
    },
    kernel::tool::{Demands, Permit, Plan, Ran, Request, Tool},
    prelude::*,
    verify::{Options as VerifyOptions, verify_home},
};

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
        permit.ok(syscap::format::cbor::Canonical::null(), TxOutcome::Committed)
    }
}

fn runtime(home: &Path) -> (Runtime, TokenId) {
    let tool = Touch(Manifest::new(ToolId::new("touch").unwrap(), EffectClass::LocalWrite));
    let rt = Options::new().tool(tool).unwrap().create(home).unwrap();
    let big = 1 << 50;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big)
        .with(Dimension::Concurrent, 1_000);
    let token = rt.issue(Grant::to("a").tools(["touch"]).budget(budget)).unwrap();
    (rt, token)
}

/// Calls for so long by so many threads; records, seconds, and each call's time.
fn calls(home: &Path, callers: usize, long: Duration) -> (u64, f64, Vec<f64>) {
    let (rt, token) = runtime(home);
    let agent = rt.session("a", token).unwrap();
    let start = Instant::now();
    let mut times: Vec<f64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..callers)
            .map(|_| {
                let agent = &agent;
                scope.spawn(move || {
                    let mut times = Vec::new();
                    while start.elapsed() < long {
                        let begin = Instant::now();
                        agent.call("touch", args! {}).unwrap().value().unwrap();
                        times.push(begin.elapsed().as_nanos() as f64);
                    }
                    times
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let seconds = start.elapsed().as_secs_f64();
    times.sort_by(f64::total_cmp);
    let records = times.len() as u64 * 2;
    rt.close().unwrap();
    (records, seconds, times)
}

/// Bare SQLite as a user would set it up: WAL, FULL, one table, batches of one size.
fn bare(folder: &Path, batch: u64, long: Duration) -> (f64, Vec<f64>) {
    let database = rusqlite::Connection::open(folder.join("bare.db")).unwrap();
    database
        .execute_batch(
            "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; \
             CREATE TABLE r(seq INTEGER PRIMARY KEY, body BLOB NOT NULL) STRICT;",
        )
        .unwrap();
    let body = [7_u8; 420];
    let (start, mut times, mut seq) = (Instant::now(), Vec::new(), 0_i64);
    while start.elapsed() < long {
        let begin = Instant::now();
        database.execute_batch("BEGIN IMMEDIATE").unwrap();
        for _ in 0..batch {
            let mut insert = database.prepare_cached("INSERT INTO r VALUES (?1, ?2)").unwrap();
            insert.execute((seq, &body[..])).unwrap();
            seq += 1;
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
    let (_, mut one) = bare(dir.path(), 1, long);
    let one = figure(&mut one);
    row("bare SQLite, one record a transaction", one);
    let home = dir.path().join("lone");
    let (_, _, mut times) = calls(&home, 1, long);
    let lone = figure(&mut times);
    row("a lone durable mutating call (two transactions)", lone);
    println!("ratio to its two bare transactions: {:.2}", lone.median / (2.0 * one.median));

    for callers in [16, 64] {
        let home = dir.path().join(format!("home{callers}"));
        let (records, seconds, times) = calls(&home, callers, long);
        let commits = records as f64 / (callers as f64);
        let rate = records as f64 / seconds;
        let p = |share: f64| times.get(((times.len() - 1) as f64 * share) as usize).unwrap() / 1e3;
        println!(
            "{callers} callers: {rate:.0} records a second ({:.0} calls), call p50 {:.0} us, \
             p99 {:.0} us",
            rate / 2.0,
            p(0.5),
            p(0.99)
        );
        let folder = dir.path().join(format!("bare{callers}"));
        std::fs::create_dir(&folder).unwrap();
        // What a batch holds where every caller has one record in it.
        let (bare_rate, mut bare_times) = bare(&folder, callers as u64, long);
        bare_times.sort_by(f64::total_cmp);
        let at = ((bare_times.len() - 1) as f64 * 0.99) as usize;
        println!(
            "  bare SQLite, batches of {callers}: {bare_rate:.0} records a second, p99 {:.0} us; \
             ratio {:.2} ({commits:.0} batches at the least)",
            bare_times.get(at).unwrap() / 1e3,
            rate / bare_rate
        );
        println!("  on disk: {:.0} bytes a call", size(&home) as f64 / (records as f64 / 2.0));
    }
    let home = dir.path().join("home64");
    let start = Instant::now();
    let report = verify_home(&home, &VerifyOptions::default()).unwrap();
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "verify: {:.0} records a second ({:?})",
        report.records as f64 / seconds,
        report.verdict()
    );
}
