//! A home has one holder, whatever its log is kept in.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, mpsc};

use crate::stores::file_store::FileStore;
use host_support::new_home;
use syscap::audit::{HomeLock, LOCK_FILE, LockState, MemoryStore, SqliteStore};
use syscap::format::{Durability, EffectClass};
use syscap::host::HostTool;
use syscap::kernel::{Store, StoreError};
use syscap::keys::Seal;
use syscap::prelude::*;
use syscap::{FileKeys, SystemEntropy};

/// A tool whose effect is one more byte in a file.
fn touch(effects: &Path) -> Options {
    let effects = effects.to_path_buf();
    let tool = HostTool::new("touch", EffectClass::LocalWrite).unwrap().run(move |_| {
        let file = fs::OpenOptions::new().create(true).append(true).open(&effects);
        file.unwrap().write_all(b"x").unwrap();
        Ok("done")
    });
    Options::new().tool(tool).unwrap()
}

/// Calls the tool by the only token that there is.
fn call(rt: &Runtime) -> Option<Reason> {
    let token = rt.look(|kernel| kernel.tokens().next().unwrap().id).unwrap();
    rt.session("a", token).unwrap().call("touch", args! {}).unwrap().reason()
}

fn is_locked<T>(opened: &Result<T, Error>) -> bool {
    matches!(opened, Err(Error::Home(StoreError::Locked)))
}

const FOLDER: &str = "SYSCAP_HOMES_FOLDER";

struct Places {
    home: PathBuf,
    log: PathBuf,
    copy: PathBuf,
    effects: PathBuf,
}

impl Places {
    fn below(folder: &Path) -> Self {
        let at = |name| folder.join(name);
        Self { home: at("home"), log: at("log"), copy: at("copy"), effects: at("effects") }
    }

    fn open(&self, log: &Path) -> Result<Runtime, Error> {
        touch(&self.effects).store(FileStore::open(log)?).open(&self.home)
    }

    fn effects(&self) -> usize {
        fs::read(&self.effects).unwrap_or_default().len()
    }
}

/// Not a test: the other process. It spends the budget, says so, and holds the home until its
/// input ends.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let places = Places::below(Path::new(&folder));
    let rt = places.open(&places.log).unwrap();
    assert_eq!(call(&rt), None);
    println!("\nspent");
    std::io::stdin().read_line(&mut String::new()).unwrap();
    rt.close().unwrap();
}

/// Another process that has spent the budget, and what it still says.
fn other_process(folder: &Path) -> (Child, BufReader<ChildStdout>) {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "homes::child", "--nocapture"])
        .env(FOLDER, folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut out = BufReader::new(child.stdout.take().unwrap());
    let said = out.by_ref().lines().any(|line| line.unwrap() == "spent");
    assert!(said, "it did not come to it");
    (child, out)
}

/// Two processes, a budget of one call, and two copies of the log that know nothing of each
/// other: what both have in common is the home.
#[test]
fn two_processes_spend_a_budget_once() {
    let dir = tempfile::tempdir().unwrap();
    let places = Places::below(dir.path());
    let store = FileStore::create(&places.log).unwrap();
    let rt = touch(&places.effects).store(store).create(&places.home).unwrap();
    let budget = Budget::standard().with(Dimension::Calls, 1);
    rt.issue(Grant::to("a").tools(["touch"]).budget(budget)).unwrap();
    rt.close().unwrap();
    fs::copy(&places.log, &places.copy).unwrap();

    let (mut other, _out) = other_process(dir.path());
    assert_eq!(FileStore::open(&places.log).err(), Some(StoreError::Locked));
    let opened = places.open(&places.copy);
    let refused = opened.map(|rt| call(&rt)).err();
    assert_eq!(places.effects(), 1, "one effect for one call");
    assert!(matches!(refused, Some(Error::Home(StoreError::Locked))), "{refused:?}");
    let made = touch(&places.effects).store(MemoryStore::new()).create(&places.home);
    assert!(is_locked(&made), "nor is another home made in its place");

    drop(other.stdin.take());
    assert!(other.wait().unwrap().success());
    let rt = places.open(&places.log).unwrap();
    assert_eq!(call(&rt), Some(Reason::OverBudget));
    assert_eq!(places.effects(), 1);
    rt.close().unwrap();
}

/// The same within one process; a run that is still out keeps the home.
#[test]
fn two_runtimes_do_not_share_a_home() {
    let (_dir, home) = new_home();
    let (begun, begins) = mpsc::channel();
    let (release, gate) = mpsc::channel::<()>();
    let gate = Mutex::new(gate);
    let slow = HostTool::new("slow", EffectClass::LocalWrite).unwrap().run(move |_| {
        begun.send(()).unwrap();
        gate.lock().unwrap().recv().unwrap();
        Ok("done")
    });
    let memory = MemoryStore::new();
    let kept = || Options::new().durability(Durability::Memory).store(memory.share());
    let rt = kept().tool(slow).unwrap().create(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["slow"])).unwrap();
    assert!(is_locked(&kept().open(&home)));
    // A look at it needs no lock; here there is no database to look at.
    let looked = Options::new().inspect(&home);
    assert!(matches!(looked, Err(Error::Home(StoreError::Missing))));

    let agent = rt.session("a", token).unwrap();
    std::thread::scope(|scope| {
        let called = scope.spawn(|| agent.call("slow", args! {}).unwrap().reason());
        begins.recv().unwrap();
        rt.close().unwrap();
        assert!(is_locked(&kept().open(&home)), "a run is out");
        release.send(()).unwrap();
        assert_eq!(called.join().unwrap(), None);
    });
    kept().open(&home).unwrap().close().unwrap();
}

/// A database that is opened by itself has one writer, and a runtime can be put on it.
#[test]
fn a_database_has_one_writer_without_a_runtime() {
    let (_dir, home) = new_home();
    let open = || SqliteStore::open(&home, Durability::Full);
    let rt = Options::new().store(SqliteStore::create(&home, Durability::Full).unwrap());
    let rt = rt.create(&home).unwrap();
    assert_eq!(open().err(), Some(StoreError::Locked));
    assert!(is_locked(&Runtime::open(&home)));
    rt.close().unwrap();

    let mut alone = open().unwrap();
    assert_eq!(HomeLock::state(&home), Ok(LockState::Free));
    assert!(is_locked(&Runtime::open(&home)), "its store is taken");
    // Who failed has let go of what it had taken by then.
    assert_eq!(alone.room().err(), None);
    drop(alone);
    let rt = Runtime::open(&home).unwrap();
    assert_eq!(HomeLock::state(&home), Ok(LockState::Held));
    Options::new().inspect(&home).unwrap();
    rt.close().unwrap();
}

/// What is no home is left as it is.
#[test]
fn folder_without_a_home_is_left_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(HomeLock::take(&dir.path().join("none")).err(), Some(StoreError::Missing));
    for folder in [dir.path().to_path_buf(), dir.path().join("none")] {
        let opened = Runtime::open(&folder);
        assert!(matches!(opened, Err(Error::Home(StoreError::Missing))));
        assert!(!folder.join(LOCK_FILE).exists());
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A process that is begun meanwhile has every file of this one for a moment: what this one has
/// given up is free all the same.
#[test]
fn a_child_process_holds_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let log = dir.path().join("log");
    drop(FileStore::create(&log).unwrap());
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let begun = (0..200).all(|_| Command::new("true").status().is_ok());
            done.store(true, Ordering::SeqCst);
            assert!(begun);
        });
        while !done.load(Ordering::SeqCst) {
            drop(FileStore::open(&log).unwrap());
            drop(HomeLock::take(dir.path()).unwrap());
        }
    });
}

/// Whoever opens a home holds it with what it was given itself: its tools and its store. A client of the
/// one before goes on there.
#[test]
fn each_server_has_its_own_options() {
    let dir = tempfile::tempdir().unwrap();
    let places = Places::below(dir.path());
    let log = FileStore::create(&places.log).unwrap();
    let first = touch(&places.effects).store(log).create(&places.home).unwrap();
    let token = first.issue(Grant::to("a").tools(["touch"])).unwrap();
    let client = Runtime::connect(&places.home).unwrap();
    let agent = client.session("a", token).unwrap();
    assert_eq!(agent.call("touch", args! {}).unwrap().reason(), None);
    first.close().unwrap();
    drop(first);
    let second = places.open(&places.log).unwrap();
    assert_eq!(agent.call("touch", args! {}).unwrap().reason(), None);
    assert_eq!(places.effects(), 2);
    assert!(!places.home.join("home.db").exists());
    let id = second.id();
    client.close().unwrap();
    second.close().unwrap();
    drop(second);
    let inspected = Options::new().store(FileStore::open(&places.log).unwrap());
    let view = inspected.inspect(&places.home).unwrap().view();
    assert_eq!((view.home, view.tokens_in_all), (id, 1));
    assert_eq!(view.tokens[0].used.get(Dimension::Calls), 2);
}

/// No base that an agent could reach a home by: its own under another name, or another one.
#[test]
fn no_base_leads_to_a_home() {
    let dir = tempfile::tempdir().unwrap();
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    Runtime::create(&one).unwrap().close().unwrap();
    for base in [one.clone(), one.join("keys"), one.join("files")] {
        let made = Options::new().base(&base).create(&two);
        assert!(matches!(made, Err(Error::BaseContainsHome(_))), "{base:?}");
    }
    // The folder that holds another home can be a base, but that home is no root in it.
    let rt = Options::new().base(dir.path().join("..").join(dir.path().file_name().unwrap()));
    assert!(matches!(rt.create(&two), Err(Error::BaseContainsHome(_))), "it holds the new home");
    let outer = tempfile::tempdir().unwrap();
    let rt = Options::new().base(dir.path()).create(outer.path().join("home")).unwrap();
    let grant = Grant::to("a").tools(["fs.read"]).read("one");
    assert!(matches!(rt.issue(grant), Err(Error::BaseContainsHome(_))));
    // Keys that lie in the base, or are it, whoever uses them.
    let inner = outer.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let keys = || FileKeys::create(&inner.join("keys"), &Seal::Open, &SystemEntropy).unwrap();
    let made = Options::new().base(&inner).signer(keys()).create(outer.path().join("second"));
    assert!(matches!(made, Err(Error::BaseContainsHome(_))));
    let made = Options::new().base(inner.join("keys")).create(outer.path().join("third"));
    assert!(matches!(made, Err(Error::BaseContainsHome(_))));
    // A link in the place of the default base.
    fs::rename(one.join("files"), one.join("files.old")).unwrap();
    std::os::unix::fs::symlink(".", one.join("files")).unwrap();
    assert!(matches!(Runtime::open(&one), Err(Error::BaseContainsHome(_))));
}

#[test]
fn a_base_that_contains_the_home_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let link = dir.path().join("link");
    std::os::unix::fs::symlink(dir.path(), &link).unwrap();
    let home = dir.path().join("home");
    for base in [dir.path().to_path_buf(), link] {
        let made = Options::new().base(&base).create(&home);
        assert!(matches!(made, Err(Error::BaseContainsHome(_))));
    }
    // Nothing half-made is left: the same folder makes a home now.
    Runtime::create(&home).unwrap().close().unwrap();
    let home = dir.path().join("inner");
    fs::create_dir_all(home.join("keys2")).unwrap();
    assert!(matches!(Runtime::create(&home), Err(Error::NotEmpty(_))));
    let made = Options::new().base(home.join("keys")).create(dir.path().join("other"));
    assert!(matches!(made, Err(Error::Base(_))), "a base must exist");
}

/// An empty folder that is made a home is its owner's alone; names of ours that are links are
/// not followed.
#[test]
fn a_home_is_its_owners_alone() {
    use std::os::unix::fs::PermissionsExt;
    let (dir, home) = new_home();
    fs::create_dir(&home).unwrap();
    fs::set_permissions(&home, fs::Permissions::from_mode(0o777)).unwrap();
    Runtime::create(&home).unwrap().close().unwrap();
    assert_eq!(fs::metadata(&home).unwrap().permissions().mode() & 0o777, 0o700);
    let victim = dir.path().join("victim");
    for name in ["reserve", "lock", "home.db-lock"] {
        fs::write(&victim, "kept").unwrap();
        fs::remove_file(home.join(name)).unwrap();
        std::os::unix::fs::symlink(&victim, home.join(name)).unwrap();
        assert!(Runtime::open(&home).is_err(), "{name} is a link");
        assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
        fs::remove_file(home.join(name)).unwrap();
        Runtime::open(&home).unwrap().close().unwrap();
    }
}
