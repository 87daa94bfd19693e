//! What a verification says of logs that the kernel wrote.

use std::path::Path;

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{self, ECHO, call, every_kind, everything, small};
use kernel_support::driver::{Driver, Run, key, public};
use syscap::audit::export::{ExportError, export};
use syscap::audit::{MemoryStore, SqliteReader, SqliteStore};
use syscap::format::{
    Dimension, Durability, OBJECTS_FOLDER, RECORDS_FILE, RecordKind, Role, RoleSet, Seq,
};
use syscap::kernel::{Event, Store, StoreError};
use syscap::verify::{
    Anchor, AnchorNeed, End, Extent, FINDINGS_MAX, Fault, Finding, FromStore, Options, Report,
    Soundness, Trust, TrustSource, VerifyError, verify, verify_export, verify_home,
};
use tempfile::TempDir;

fn self_anchored() -> Options {
    Options::default()
}

#[test]
fn a_log_with_every_kind_is_sound() {
    let mut store = every_kind();
    let report = verify(&mut FromStore(&mut store), Extent::AtRest, &self_anchored()).unwrap();
    assert_eq!(report.findings, []);
    assert_eq!(report.verdict(), Soundness::Sound);
    assert_eq!(report.verdict().exit_code(), 0);
    assert_eq!((report.end, report.anchor), (End::Clean, Anchor::SelfAnchored));
    assert_eq!(report.head, store.head());
    assert_eq!(report.records, store.all_records().len() as u64);
    assert_eq!(report.counts.values().sum::<u64>(), report.records);
    assert!(report.open_intents.is_empty());
    // Of two unknown ones the operator resolved one.
    assert_eq!(report.unknown_intents.len(), 1);
    assert!(report.first_time < report.last_time);
    for kind in RecordKind::ALL {
        let written = !kind.is_reserved();
        assert_eq!(report.counts.contains_key(kind), written, "{kind}");
    }
    assert!(report.counts[&RecordKind::Refusals] >= 8);
    assert!(report.counts[&RecordKind::Recovery] >= 4);
}

#[test]
fn a_log_in_a_store_and_as_a_list_are_one() {
    let mut store = everything();
    let log = Log::of(&store);
    let live = verify(&mut FromStore(&mut store), Extent::AtRest, &self_anchored()).unwrap();
    assert_eq!(log.verify_with(Extent::AtRest, &self_anchored()), live);
}

#[test]
fn without_a_shutdown_a_log_is_incomplete() {
    let mut log = Log::of(&small(|_, _| {}));
    let whole = log.verify(log.trust());
    assert_eq!((whole.verdict(), whole.end), (Soundness::Sound, End::Clean));
    log.records.pop();
    let cut = log.verify(log.trust());
    assert_eq!((cut.verdict(), cut.end), (Soundness::Incomplete, End::Unclean));
    assert_eq!(cut.verdict().exit_code(), 11);
    // The store says where the log ended: it is cut off, not incomplete.
    let known = log.verify_with(Extent::Head(whole.head.unwrap()), &self_anchored());
    assert_eq!(known.verdict(), Soundness::Tampered);
    assert_eq!(known.verdict().exit_code(), 10);
    let cut_at = Seq::new(log.records.len() as u64);
    assert_eq!(known.findings, [Finding { seq: cut_at, fault: Fault::HeadMoved }]);
    log.records.truncate(1);
    assert_eq!(log.verify(log.trust()).verdict(), Soundness::Incomplete);
    log.records.clear();
    let empty = log.verify_with(Extent::AtRest, &self_anchored());
    assert_eq!(empty.findings, [Finding { seq: Seq::GENESIS, fault: Fault::Empty }]);
}

#[test]
fn a_live_log_is_sound_up_to_its_head() {
    let mut log = Log::of(&small(|_, _| {}));
    let end = log.verify(log.trust()).head.unwrap();
    log.records.pop();
    let head = log.verify(log.trust()).head.unwrap();
    let live = log.verify_with(Extent::Live(head), &self_anchored());
    assert_eq!((live.verdict(), live.end, live.head), (Soundness::Sound, End::Live, Some(head)));
    // What comes after the head is not looked at, what is missing before it is.
    log.records.push(vec![0]);
    assert_eq!(log.verify_with(Extent::Live(head), &self_anchored()).verdict(), Soundness::Sound);
    log.records.pop();
    assert_eq!(log.verify_with(Extent::Live(end), &self_anchored()).verdict(), Soundness::Tampered);
}

#[test]
fn open_intents_make_a_log_incomplete() {
    let store = small(|driver, session| {
        driver.run = Run::Later;
        driver.call(session, &call("post", 10));
    });
    let report = Log::of(&store).verify(Log::of(&store).trust());
    assert_eq!((report.end, report.findings_count), (End::Clean, 0));
    assert_eq!(report.open_intents.len(), 1);
    assert_eq!(report.verdict(), Soundness::Incomplete);

    // Its run settles after the shutdown: nothing is open.
    let mut driver = scenario::narrow(MemoryStore::new());
    let (_, session) = driver.agent("ada", 1);
    driver.run = Run::Later;
    driver.call(session, &call("post", 10));
    driver.shutdown();
    let ran = driver.jobs.remove(0).run();
    driver.ran(ran);
    driver.flush();
    let log = Log::of(&driver.store);
    assert_eq!(log.verify(log.trust()).verdict(), Soundness::Sound);
}

#[test]
fn a_trust_file_anchors_its_own_home_only() {
    let log = Log::of(&small(|_, _| {}));
    let need = |trust| Options { trust, anchor_need: AnchorNeed::Required, noted: None };
    let bare = log.verify_with(Extent::AtRest, &need(TrustSource::SelfAnchored));
    assert_eq!((bare.verdict(), bare.verdict().exit_code()), (Soundness::NotAnchored, 12));
    let trust = log.trust();
    assert_eq!(Trust::from_bytes(&trust.to_bytes()), Ok(trust.clone()));
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("trust.cbor");
    std::fs::write(&file, trust.to_bytes()).unwrap();
    let anchored = log.verify_with(Extent::AtRest, &need(TrustSource::File(file.clone())));
    assert_eq!((anchored.verdict(), anchored.anchor), (Soundness::Sound, Anchor::TrustFile));

    let mut other = trust.clone();
    other.roles.replace(RoleSet::any_of(Role::Policy, [public(&key(Role::Issuer))]));
    let foreign = [Finding { seq: Seq::GENESIS, fault: Fault::Foreign }];
    assert_eq!(log.verify(other).findings, foreign);
    let mut other = trust.clone();
    other.home = syscap::format::HomeId::from_bytes([1; 32]);
    assert_eq!(log.verify(other).findings, foreign);

    let mut bytes = trust.to_bytes();
    for place in 0..bytes.len() {
        bytes[place] ^= 1;
        assert_ne!(Trust::from_bytes(&bytes), Ok(trust.clone()), "{place}");
        bytes[place] ^= 1;
    }
    std::fs::write(&file, &bytes[1..]).unwrap();
    let options = need(TrustSource::File(file.clone()));
    let damaged = verify(&mut log.clone(), Extent::AtRest, &options);
    assert!(matches!(damaged, Err(VerifyError::Trust(_))));
    std::fs::remove_file(&file).unwrap();
    let missing = verify(&mut log.clone(), Extent::AtRest, &options);
    assert_eq!(missing, Err(VerifyError::TrustFile(2)));
}

fn many_calls(body: &mut syscap::format::TokenBody) {
    body.budget = body.budget.with(Dimension::Calls, 200);
}

#[test]
fn findings_are_listed_up_to_a_limit_and_counted_beyond() {
    let mut log = Log::of(&scenario::small_with(many_calls, |driver, session| {
        for _ in 0..70 {
            driver.call(session, ECHO);
        }
    }));
    // Every intent and outcome after it is by a token that was not issued.
    let issued = log.places(RecordKind::Issue)[0];
    let trust = log.trust();
    log.forge(|records| {
        let Some(before) = records.get(issued - 1).cloned() else { return };
        records[issued] = before;
    });
    let report = log.verify(trust);
    assert_eq!(report.findings.len(), FINDINGS_MAX);
    assert!(report.findings_count > 64);
    assert_eq!(report.verdict(), Soundness::Tampered);
}

/// Writes a home to disk: the same calls, by the same kernel.
fn home_on_disk(home: &Path) -> Driver<SqliteStore> {
    let store = SqliteStore::create(home, Durability::Full).unwrap();
    let mut driver = Driver::ready(store);
    let (_, session) = driver.agent("ada", 1);
    driver.call(session, ECHO);
    driver.call(session, &call("post", 100));
    driver.pass(10);
    driver
}

#[test]
fn a_home_is_verified_while_it_is_held_and_after() {
    let dir = TempDir::new().unwrap();
    let mut driver = home_on_disk(dir.path());
    let report = verify_home(dir.path(), &self_anchored()).unwrap();
    assert_eq!((report.verdict(), report.end), (Soundness::Sound, End::Live));
    assert_eq!(report.head, Some(driver.kernel.head()));
    assert_eq!(report.home, Some(driver.kernel.home()));
    driver.shutdown();
    let closed = driver.kernel.head();
    drop(driver.crash());
    let report = verify_home(dir.path(), &self_anchored()).unwrap();
    assert_eq!((report.verdict(), report.end), (Soundness::Sound, End::Clean));
    assert_eq!(report.head, Some(closed));
    let missing = verify_home(&dir.path().join("none"), &self_anchored());
    assert_eq!(missing, Err(VerifyError::Source(StoreError::Missing)));
}

#[test]
fn a_crash_makes_a_home_incomplete_until_it_is_opened() {
    let dir = TempDir::new().unwrap();
    let mut driver = home_on_disk(dir.path());
    let reading = driver.reading;
    driver.run = Run::Later;
    driver.call(Seq::new(6), ECHO);
    drop(driver.crash());
    let report = verify_home(dir.path(), &self_anchored()).unwrap();
    assert_eq!((report.verdict(), report.end), (Soundness::Incomplete, End::Unclean));
    let store = SqliteStore::open(dir.path(), Durability::Full).unwrap();
    let mut driver = Driver::open(store, reading, 0).unwrap();
    driver.boot();
    driver.shutdown();
    drop(driver.crash());
    let report = verify_home(dir.path(), &self_anchored()).unwrap();
    assert_eq!((report.verdict(), report.findings_count), (Soundness::Sound, 0));
}

#[test]
fn rows_that_were_cut_off_are_missed() {
    let dir = TempDir::new().unwrap();
    let mut driver = home_on_disk(dir.path());
    driver.shutdown();
    drop(driver.crash());
    let connection = rusqlite::Connection::open(dir.path().join("home.db")).unwrap();
    let sql: String = connection
        .query_row("SELECT sql FROM sqlite_schema WHERE name = 'records_delete'", [], |row| {
            row.get(0)
        })
        .unwrap();
    let cut = "DELETE FROM records WHERE seq = (SELECT max(seq) FROM records);";
    connection.execute_batch(&format!("DROP TRIGGER records_delete; {cut} {sql}")).unwrap();
    drop(connection);
    let report = verify_home(dir.path(), &self_anchored()).unwrap();
    assert_eq!(report.findings.iter().map(|f| f.fault).collect::<Vec<_>>(), [Fault::HeadMoved]);
}

fn exported(dir: &Path) -> (Report, Report) {
    let (home, out) = (dir.join("home"), dir.join("out"));
    let mut driver = home_on_disk(&home);
    driver.shutdown();
    drop(driver.crash());
    let mut reader = SqliteReader::open(&home).unwrap();
    let done = export(&mut reader, &out).unwrap();
    let report = verify_home(&home, &self_anchored()).unwrap();
    assert_eq!((done.head, done.records), (report.head, report.records));
    let files = std::fs::read_dir(out.join(OBJECTS_FOLDER)).unwrap();
    assert_eq!(files.count() as u64, done.objects);
    assert_eq!(export(&mut reader, &out), Err(ExportError::Exists));
    (report, verify_export(&out, &self_anchored()).unwrap())
}

#[test]
fn an_export_is_the_same_log() {
    let dir = TempDir::new().unwrap();
    let (home, export) = exported(dir.path());
    assert_eq!(home, export);
    assert_eq!(export.verdict(), Soundness::Sound);
    let all = std::fs::read(dir.path().join("out").join(RECORDS_FILE)).unwrap();
    let mut store = SqliteStore::open(&dir.path().join("home"), Durability::Full).unwrap();
    let mut bytes = Vec::new();
    let each = &mut |_: Seq, record: &[u8]| {
        bytes.extend_from_slice(record);
        syscap::kernel::Next::More
    };
    store.records(Seq::GENESIS, each).unwrap();
    assert_eq!(all, bytes);
}

#[test]
fn a_changed_export_is_found() {
    let dir = TempDir::new().unwrap();
    let (whole, _) = exported(dir.path());
    let out = dir.path().join("out");
    let file = out.join(RECORDS_FILE);
    let all = std::fs::read(&file).unwrap();
    let verdict = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        verify_export(&out, &self_anchored()).unwrap()
    };
    let last = Seq::new(whole.records - 1);
    let cut = verdict(&all[..all.len() - 1]);
    assert_eq!(cut.findings, [Finding { seq: last, fault: Fault::Undecodable }]);
    let mut more = all.clone();
    more.push(0);
    let more = verdict(&more);
    assert_eq!(more.findings, [Finding { seq: last.next(), fault: Fault::Undecodable }]);
    assert_eq!(verdict(b"").findings, [Finding { seq: Seq::GENESIS, fault: Fault::Empty }]);
    assert_eq!(verdict(&all).verdict(), Soundness::Sound);

    // Each object that a record names is missed, and found damaged.
    let mut files = 0;
    for entry in std::fs::read_dir(out.join(OBJECTS_FOLDER)).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let fault = || {
            let report = verify_export(&out, &self_anchored()).unwrap();
            assert_eq!(report.verdict(), Soundness::Tampered);
            report.findings[0].fault
        };
        std::fs::remove_file(&path).unwrap();
        assert_eq!(fault(), Fault::ObjectMissing);
        let mut changed = bytes.clone();
        let middle = changed.len() / 2;
        changed[middle] ^= 1;
        std::fs::write(&path, changed).unwrap();
        assert_eq!(fault(), Fault::ObjectUnsound);
        std::fs::write(&path, &bytes).unwrap();
        files += 1;
    }
    assert!(files >= 7);
    assert_eq!(verify_export(&out, &self_anchored()).unwrap(), whole);
    let missing = verify_export(dir.path(), &self_anchored());
    let why = |error: VerifyError<std::io::Error>| match error {
        VerifyError::Source(error) => error.kind(),
        other => panic!("{other}"),
    };
    assert_eq!(missing.map_err(why), Err(std::io::ErrorKind::NotFound));
}

#[test]
fn two_boots_and_a_gap_in_time_are_sound() {
    let mut driver = scenario::narrow(MemoryStore::new());
    driver.agent("ada", 1);
    driver.flush();
    let mut reading = driver.reading;
    reading.wall = reading.wall.plus(91 * 24 * 3_600_000);
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    driver.flush();
    // Not confirmed: the next boot has the flag too. Then the wall clock goes far back.
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    let confirm = syscap::format::ConfigChange { confirm_time: Some(reading.wall) };
    driver.control(Role::Operator, &confirm).unwrap();
    driver.flush();
    reading.wall = syscap::format::UnixMillis::new(5);
    let mut driver = Driver::open(driver.crash(), reading, 0).unwrap();
    driver.boot();
    driver.event(Event::Tick);
    driver.shutdown();
    driver.flush();
    let log = Log::of(&driver.store);
    assert_eq!(log.faults(), []);
    assert_eq!(log.verify(log.trust()).counts[&RecordKind::Boot], 4);
}
