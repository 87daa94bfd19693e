//! `fs.write` in a process that is killed at each point of a write, and what its probe says next
//! time, held against the file.

use std::fs;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host_support::{new_home, records};
use rustix::process::{Resource, Rlimit, Signal, getpid, kill_process, setrlimit};
use syscap::audit::{SqliteReader, SqliteStore};
use syscap::format::{Body, Durability, Record, RecordKind, Recovered, Recovery};
use syscap::kernel::{Batch, Store, StoreError};
use syscap::prelude::*;
use syscap::verify::{Options as VerifyOptions, Soundness, TrustSource, verify_home};

const HOME: &str = "SYSCAP_RECOVERY_HOME";
const POINT: &str = "SYSCAP_RECOVERY_POINT";
const PATH: &str = "SYSCAP_RECOVERY_PATH";
/// What the temporary file may hold before the process is killed.
const PART_BYTES: u64 = 1_000;
const WHOLE_BYTES: usize = 100_000;

/// Where the process dies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Point {
    /// The intent is durable, and nothing has run.
    BeforeTemp,
    /// Part of the temporary file is written.
    InTemp,
    /// The file is there; its outcome is on its way to the store.
    AfterRename,
    /// The outcome is durable, and nobody has been told.
    AfterOutcome,
}

const POINTS: [Point; 4] =
    [Point::BeforeTemp, Point::InTemp, Point::AfterRename, Point::AfterOutcome];

/// A store that kills its process.
struct Killing(SqliteStore, Point);

fn die() -> ! {
    kill_process(getpid(), Signal::KILL).unwrap();
    loop {
        std::thread::park();
    }
}

impl Store for Killing {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let has = |kind| {
            let kind_of = |bytes: &[u8]| Record::decode(bytes).unwrap().body.kind();
            batch.links().iter().any(|link| kind_of(&link.bytes) == kind)
        };
        let (intent, outcome) = (has(RecordKind::Intent), has(RecordKind::Outcome));
        if outcome && self.1 == Point::AfterRename {
            die();
        }
        self.0.commit(batch)?;
        match self.1 {
            Point::BeforeTemp if intent => die(),
            Point::InTemp if intent => {
                // The next file that grows beyond this ends the process.
                let limit = Rlimit { current: Some(PART_BYTES), maximum: Some(PART_BYTES) };
                setrlimit(Resource::Fsize, limit).unwrap();
                let none = Rlimit { current: Some(0), maximum: Some(0) };
                setrlimit(Resource::Core, none).unwrap();
            }
            Point::AfterOutcome if outcome => die(),
            _ => {}
        }
        Ok(())
    }

    kernel_support::forward!(self.0 => records object vault room);
}

fn content() -> String {
    "x".repeat(WHOLE_BYTES)
}

fn write(agent: &Session, path: &str) -> Result<ToolResult, Error> {
    let args = args! { "path": path, "text": content(), "parents": true };
    agent.request("fs.write").args(args).key("k").wait()
}

fn grant() -> Grant {
    let budget = Budget::standard().with(Dimension::DiskFiles, 100);
    Grant::to("a").tools(["fs.write"]).workspace().budget(budget)
}

/// Not a test: the process that is killed.
#[test]
fn child() {
    let (Some(home), Ok(point)) = (std::env::var_os(HOME), std::env::var(POINT)) else { return };
    let home = PathBuf::from(home);
    let point = POINTS[point.parse::<usize>().unwrap()];
    let store = SqliteStore::open(&home, Durability::Full).unwrap();
    let rt = Options::new().store(Killing(store, point)).open(&home).unwrap();
    let token = rt.look(|kernel| kernel.tokens().next().unwrap().id).unwrap();
    let agent = rt.session("a", token).unwrap();
    let ended = write(&agent, &std::env::var(PATH).unwrap());
    unreachable!("it was to be killed: {ended:?}");
}

/// Runs the child, which must die of a signal.
fn killed_at(home: &Path, point: Point, path: &str) {
    let place = POINTS.iter().position(|p| *p == point).unwrap();
    let ended = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "recovery::killed::child", "--nocapture"])
        .env(HOME, home)
        .env(POINT, place.to_string())
        .env(PATH, path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .unwrap();
    let signal = if point == Point::InTemp { Signal::XFSZ } else { Signal::KILL };
    assert_eq!(ended.signal(), Some(signal.as_raw()), "{point:?}: {ended:?}");
}

fn recovered(home: &Path) -> Vec<Recovery> {
    let recovery = |record: Record| match record.body {
        Body::Recovery(recovery) => Some(*recovery),
        _ => None,
    };
    records(home).into_iter().filter_map(recovery).collect()
}

fn temporary(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".syscap-")).count()
}

/// What the whole of a home says and holds after it was killed and opened again.
struct Again {
    folder: tempfile::TempDir,
    rt: Runtime,
    agent: Session,
    /// Whether the file was written, and how many temporary files there were, before it was opened.
    written: bool,
    left: usize,
}

fn again(point: Point, path: &str) -> Again {
    let (folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let token = rt.issue(grant()).unwrap();
    rt.close().unwrap();
    killed_at(&home, point, path);
    let file = home.join("files/agents/a/workspace").join(path);
    let written = fs::read_to_string(&file).is_ok_and(|text| text == content());
    let left = temporary(file.parent().unwrap());
    let rt = Runtime::open(&home).unwrap();
    assert_eq!(temporary(file.parent().unwrap()), 0, "{point:?}: what was left is cleared away");
    let agent = rt.session("a", token).unwrap();
    Again { folder, rt, agent, written, left }
}

impl Again {
    fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    fn ends(self, verdict: Soundness) {
        let home = self.home();
        drop(self.agent);
        self.rt.close().unwrap();
        let trust = TrustSource::File(home.join("trust.cbor"));
        let options = VerifyOptions { trust, ..VerifyOptions::default() };
        assert_eq!(verify_home(&home, &options).unwrap().verdict(), verdict);
    }
}

/// Nothing of the temporary file proves anything: the call may have been about to begin.
#[test]
fn before_the_temporary_file_nothing_is_known() {
    let again = again(Point::BeforeTemp, "f");
    assert!(!again.written && again.left == 0);
    let said = recovered(&again.home());
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].verdict, Recovered::Unknown);
    assert_eq!(said[0].used.get(Dimension::DiskWriteBytes), 100_000);
    assert_eq!(write(&again.agent, "f").unwrap().reason(), Some(Reason::OutcomeUnknown));
    again.ends(Soundness::Sound);
}

/// Whoever takes the temporary file away has proved that it never took its name.
#[test]
fn with_the_temporary_file_it_is_not_done_and_may_be_sent_again() {
    let again = again(Point::InTemp, "deep/er/f");
    assert!(!again.written && again.left == 1);
    let said = recovered(&again.home());
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].verdict, Recovered::NotDone);
    assert_eq!(said[0].used.get(Dimension::Calls), 1);
    assert_eq!(said[0].used.get(Dimension::DiskWriteBytes), PART_BYTES, "what was written");
    assert_eq!(said[0].used.get(Dimension::DiskFiles), 4, "folders stay");
    let first = write(&again.agent, "deep/er/f").unwrap();
    assert_eq!(first.reason(), None);
    assert_eq!(write(&again.agent, "deep/er/f").unwrap().delivered(), first.delivered());
    let file = again.home().join("files/agents/a/workspace/deep/er/f");
    assert_eq!(fs::read_to_string(file).unwrap(), content());
    again.ends(Soundness::Sound);
}

/// That the content is there does not prove who wrote it: it is not said to be done, and never
/// that it is not.
#[test]
fn after_the_rename_it_is_never_said_not_to_be_done() {
    let again = again(Point::AfterRename, "f");
    assert!(again.written && again.left == 0);
    let said = recovered(&again.home());
    assert_eq!(said.len(), 1);
    assert_eq!(said[0].verdict, Recovered::Unknown);
    assert_eq!(write(&again.agent, "f").unwrap().reason(), Some(Reason::OutcomeUnknown));
    again.ends(Soundness::Sound);
}

/// Once the outcome is durable a repeat has it, whoever was told.
#[test]
fn after_the_outcome_a_repeat_has_it() {
    let again = again(Point::AfterOutcome, "f");
    assert!(again.written && again.left == 0);
    assert_eq!(recovered(&again.home()).len(), 0);
    assert_eq!(write(&again.agent, "f").unwrap().reason(), None);
    let intents = |record: &&Record| matches!(record.body, Body::Intent(_));
    assert_eq!(records(&again.home()).iter().filter(intents).count(), 1);
    again.ends(Soundness::Sound);
}

/// Somebody who looks at a home asks no tool, and clears nothing away.
#[test]
fn inspection_probes_nothing() {
    let (_folder, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    rt.issue(grant()).unwrap();
    rt.close().unwrap();
    killed_at(&home, Point::InTemp, "f");
    let workspace = home.join("files/agents/a/workspace");
    let looked = Options::new().inspect(&home).unwrap();
    assert_eq!(looked.kernel().open_intents().len(), 1);
    assert_eq!(temporary(&workspace), 1);
    drop(SqliteReader::open(&home).unwrap());
    // Of another's temporary file nothing is taken for its own.
    let own = fs::read_dir(&workspace).unwrap().next().unwrap().unwrap().path();
    let intent = Options::new().inspect(&home).unwrap().kernel().open_intents()[0];
    let other = workspace.join(format!(".syscap-{intent}-{:016x}.tmp", 0));
    fs::rename(&own, &other).unwrap();
    Runtime::open(&home).unwrap().close().unwrap();
    assert!(other.exists());
    assert_eq!(recovered(&home)[0].verdict, Recovered::Unknown);
}
