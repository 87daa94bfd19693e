//! Another program holds a lock of the database, as one that copies or browses it may.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use host_support::end;
use rusqlite::Connection;
use syscap::format::{EffectClass, Freeze, FreezeChange, FreezeTarget};
use syscap::host::HostTool;
use syscap::kernel::{StoreError, Tool};
use syscap::prelude::*;
use syscap::{Operator, Session};

/// The other program's connection, which has begun to write.
fn other(home: &Path) -> Connection {
    let other = Connection::open(home.join("home.db")).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    other
}

fn lets_go(other: &Connection) {
    other.execute_batch("ROLLBACK").unwrap();
}

/// A tool that counts its runs.
#[derive(Clone, Default)]
struct Runs(Arc<AtomicUsize>);

impl Runs {
    fn tool(&self) -> impl Tool {
        let runs = Arc::clone(&self.0);
        HostTool::new("stamp", EffectClass::LocalWrite).unwrap().run(move |_| {
            runs.fetch_add(1, Ordering::SeqCst);
            Ok("done")
        })
    }

    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn agent(rt: &Runtime) -> Session {
    let token = rt.issue(Grant::to("a").tools(["stamp", "echo"])).unwrap();
    rt.session("a", token).unwrap()
}

fn everything(change: FreezeChange) -> Freeze {
    Freeze { target: FreezeTarget::Kernel, name: Box::from(""), change }
}

fn busy<T: std::fmt::Debug>(result: Result<T, Error>) {
    let refused =
        matches!(&result, Err(Error::Refused(refused)) if refused.reason() == Reason::Busy);
    assert!(refused, "{result:?}");
}

/// The head of the log, as its reader sees it.
fn head(home: &Path) -> u64 {
    let count = "SELECT max(seq) FROM records";
    let reader = Connection::open(home.join("home.db")).unwrap();
    reader.query_row(count, [], |row| row.get::<_, i64>(0)).unwrap().unsigned_abs()
}

fn place() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    (folder, home)
}

/// Nothing begins until the lock is free, no operator's act is in force meanwhile, and each says so.
#[test]
fn calls_wait_and_acts_are_busy_while_the_database_is_locked() {
    let ((_folder, home), runs) = (place(), Runs::default());
    let rt = Options::new().tool(runs.tool()).unwrap().create(&home).unwrap();
    let agent = agent(&rt);
    let lock = other(&home);
    let before = head(&home);
    thread::scope(|scope| {
        let calls = ["stamp", "echo"].map(|tool| {
            let agent = &agent;
            scope.spawn(move || match tool {
                "stamp" => agent.call(tool, args! {}).unwrap(),
                _ => agent.call(tool, args! { "value": "hello" }).unwrap(),
            })
        });
        let operator = Operator::open(&home).unwrap();
        for _ in 0..2 {
            busy(operator.freeze(&everything(FreezeChange::Freeze)));
            busy(rt.freeze(&everything(FreezeChange::Freeze)));
            busy(operator.status());
        }
        assert!(calls.iter().all(|call| !call.is_finished()));
        assert_eq!((runs.count(), head(&home)), (0, before));
        lets_go(&lock);
        for call in calls {
            assert_eq!(call.join().unwrap().reason(), None);
        }
        assert_eq!(runs.count(), 1);
        operator.freeze(&everything(FreezeChange::Freeze)).unwrap();
        let refused = agent.call("stamp", args! {}).unwrap();
        assert_eq!(refused.reason(), Some(Reason::Frozen));
    });
    end(&rt, &home);
}

/// After so long the kernel halts, and the home is let go: it can be opened anew, by this process too.
/// A call that is told so was not made.
#[test]
fn home_that_is_locked_for_too_long_is_let_go() {
    let ((_folder, home), runs) = (place(), Runs::default());
    let made = Options::new().tool(runs.tool()).unwrap().create(&home).unwrap();
    let token = made.issue(Grant::to("a").tools(["stamp"])).unwrap();
    made.close().unwrap();
    let short = Options::new().tool(runs.tool()).unwrap().stall_time(Duration::ZERO);
    let rt = short.open(&home).unwrap();
    let agent = rt.session("a", token).unwrap();
    let lock = other(&home);
    let before = head(&home);
    let refused = agent.call("stamp", args! {});
    assert!(matches!(refused, Err(Error::Home(StoreError::Busy))), "{refused:?}");
    assert_eq!((runs.count(), head(&home)), (0, before));
    lets_go(&lock);
    while !matches!(agent.call("stamp", args! {}), Err(Error::Closed)) {
        thread::yield_now();
    }
    let rt = Options::new().tool(runs.tool()).unwrap().open(&home).unwrap();
    let agent = rt.session("a", token).unwrap();
    assert_eq!(agent.call("stamp", args! {}).unwrap().reason(), None);
    assert_eq!(runs.count(), 1);
    end(&rt, &home);
}
