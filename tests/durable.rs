//! What makes a home is durable when it returns: keys, trust file, and the names of all of them.
//!
//! No power is cut here. The system calls of a process that makes homes are read (strace), and
//! every name that it made must have its folder synced afterwards, every file itself too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use host_support::{end, new_home, verdict};
use syscap::{FileKeys, SystemEntropy, keys::Seal, prelude::*, verify::Soundness};

const FOLDER: &str = "SYSCAP_DURABLE_FOLDER";

/// Not a test: the process that is looked at. Beside the marker nothing is made after the homes.
#[test]
fn child() {
    let Some(folder) = std::env::var_os(FOLDER) else { return };
    let folder = Path::new(&folder);
    let base = folder.join("base");
    // Threads that serve a home would stand in the lines of the trace.
    let rt = Options::new().alone().create(folder.join("deep/er/home")).unwrap();
    let other = Options::new().alone().base(&base).create(folder.join("apart/there")).unwrap();
    FileKeys::create(&folder.join("keys"), &Seal::Open, &SystemEntropy).unwrap();
    fs::write(folder.join("marker"), "").unwrap();
    rt.close().unwrap();
    other.close().unwrap();
}

/// What a process did to names and files, in order.
#[derive(Debug, PartialEq, Eq)]
enum Did {
    Made(PathBuf),
    /// What has the second name now had the first.
    Renamed(PathBuf, PathBuf),
    Synced(PathBuf),
}

/// What stands between quotes, or between `<` and `>`, at a place in a line.
fn between(line: &str, open: char, close: char) -> Option<&str> {
    let (_, rest) = line.split_once(open)?;
    Some(rest.split_once(close)?.0)
}

/// The path that a call names: as it stands, or below its folder's handle.
fn named(call: &str) -> Option<PathBuf> {
    let name = Path::new(between(call, '"', '"')?);
    let (before, _) = call.split_once('"')?;
    Some(match between(before, '<', '>') {
        Some(folder) => Path::new(folder).join(name),
        None => name.to_path_buf(),
    })
}

/// Reads a line of `strace -f -y`; `None` for what is of no interest, or failed.
fn did(line: &str) -> Option<Did> {
    let call = line.split_once(' ').map_or(line, |(_, call)| call).trim_start();
    let (call, result) = call.rsplit_once(" = ")?;
    if result.starts_with('-') {
        return None;
    }
    let (name, arguments) = call.split_once('(')?;
    match name {
        "fsync" | "fdatasync" => Some(Did::Synced(PathBuf::from(between(arguments, '<', '>')?))),
        "mkdir" | "mkdirat" => Some(Did::Made(named(arguments)?)),
        "open" | "openat" | "openat2" if arguments.contains("O_CREAT") => {
            Some(Did::Made(named(arguments)?))
        }
        "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
            let second = arguments.splitn(3, '"').nth(2)?;
            Some(Did::Renamed(named(arguments)?, named(second.trim_start_matches(','))?))
        }
        _ => None,
    }
}

/// Whether a name was made.
fn is_named(log: &[Did], path: &Path) -> bool {
    log.iter().any(|did| matches!(did, Did::Made(made) | Did::Renamed(_, made) if made == path))
}

/// The first time that each name was made, and what was synced after that.
fn unsynced(log: &[Did], is_file: impl Fn(&Path) -> bool) -> Vec<PathBuf> {
    let mut lost = Vec::new();
    for (at, made) in log.iter().enumerate() {
        let (before, path) = match made {
            Did::Made(path) => (None, path),
            Did::Renamed(from, path) => (Some(from), path),
            Did::Synced(_) => continue,
        };
        if is_named(&log[..at], path) {
            continue;
        }
        let synced = |path: &Path| log[at..].contains(&Did::Synced(path.to_path_buf()));
        let was_synced = before.is_some_and(|from| log[..at].contains(&Did::Synced(from.clone())));
        let is_whole = was_synced || synced(path);
        if !synced(path.parent().unwrap()) || (is_file(path) && !is_whole) {
            lost.push(path.clone());
        }
    }
    lost
}

#[test]
fn a_new_home_survives_a_power_cut() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().canonicalize().unwrap();
    for made in ["base", "apart/there"] {
        fs::create_dir_all(root.join(made)).unwrap();
    }
    let trace = root.join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-y", "-s", "4096", "-e", "trace=%file,%desc", "-o"]).arg(&trace);
    command
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "durable::child"])
        .env(FOLDER, &root);
    match command.stdout(Stdio::null()).stderr(Stdio::piped()).output() {
        Ok(run) if run.status.success() => {}
        Ok(run) => {
            // It may be there and not be let.
            let said = String::from_utf8_lossy(&run.stderr).into_owned();
            assert!(said.contains("ptrace") || said.contains("PTRACE"), "{said}");
            println!("skipped: strace: {said}");
            return;
        }
        Err(error) => {
            println!("skipped: strace: {error}");
            return;
        }
    }
    let text = fs::read_to_string(&trace).unwrap();
    let log: Vec<Did> = text.lines().filter_map(did).collect();
    let marker = Did::Made(root.join("marker"));
    let end = log.iter().position(|did| *did == marker).expect("all was made");
    let ours = |did: &&Did| {
        let (Did::Made(path) | Did::Synced(path) | Did::Renamed(_, path)) = did;
        path.starts_with(&root) || root.starts_with(path)
    };
    let before: Vec<Did> = log.into_iter().take(end).filter(|did| ours(&did)).collect();
    let made = |name: &str| is_named(&before, &root.join(name));
    for name in ["deep", "deep/er", "deep/er/home", "deep/er/home/keys", "apart/there/base", "keys"]
    {
        assert!(made(name), "{name} was not seen");
    }
    for folder in ["deep/er/home/keys", "apart/there/keys", "keys"] {
        for role in ["issuer", "policy", "revoker", "approver", "operator"] {
            assert!(made(&format!("{folder}/{role}.key")), "{folder}/{role}");
        }
    }
    assert!(made("deep/er/home/trust.cbor") && made("apart/there/trust.cbor"));
    let is_kept = |path: &Path| {
        path.extension().is_some_and(|kind| kind == "key" || kind == "cbor")
            || path.ends_with("there/base")
    };
    let lost = unsynced(&before, is_kept);
    // SQLite's index of the log is made anew when it is missing.
    let lost: Vec<_> = lost.iter().filter(|path| !path.ends_with("home.db-shm")).collect();
    assert!(lost.is_empty(), "{lost:#?}");
    // The home's folder was there in the second case, perhaps since a moment ago.
    assert!(before.contains(&Did::Synced(root.join("apart"))));
}

#[test]
fn unsynced_write_is_found() {
    let lines = [
        r#"12 mkdir("/t/home", 0700) = 0"#,
        r#"12 openat(AT_FDCWD</x>, "/t/home/a.key", O_WRONLY|O_CREAT, 0600) = 3</t/home/a.key>"#,
        r#"12 openat(AT_FDCWD</x>, "/t/home/b", O_RDONLY) = 3</t/home/b>"#,
        r#"12 mkdirat(4</t/home>, "c", 0700) = 0"#,
        r#"12 mkdir("/t/home", 0700) = -1 EEXIST (File exists)"#,
        r#"12 rename("/t/home/d.new", "/t/home/d") = 0"#,
        r#"12 fsync(3</t/home/a.key>) = 0"#,
        r#"12 fsync(3</t/home>) = -1 EIO (Input/output error)"#,
        r#"12 fsync(3</t>) = 0"#,
    ];
    let log: Vec<Did> = lines.iter().filter_map(|line| did(line)).collect();
    let paths = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
    let is_key = |path: &Path| path.ends_with("a.key");
    assert_eq!(unsynced(&log, is_key), paths(&["/t/home/a.key", "/t/home/c", "/t/home/d"]));
    let whole: Vec<Did> = log.into_iter().chain([Did::Synced(PathBuf::from("/t/home"))]).collect();
    assert!(unsynced(&whole, is_key).is_empty());
    assert_eq!(unsynced(&whole[..1], is_key), paths(&["/t/home"]));
    assert_eq!(unsynced(&whole, |_| true), paths(&["/t/home/c", "/t/home/d"]));
}

/// A backup program keeps a transaction open: each command once waited 100 s for it, `freeze` too.
#[test]
fn reader_that_stays_does_not_hold_up_a_boot() {
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let reader = rusqlite::Connection::open(home.join("home.db")).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM records;").unwrap();
    rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    rt.close().unwrap();
    let begun = std::time::Instant::now();
    let rt = Runtime::open(&home).unwrap();
    // Half a second, with room for a busy machine: SQLite's own patience is 5 s a try.
    assert!(begun.elapsed() < std::time::Duration::from_secs(20));
    rt.close().unwrap();
    drop(reader);
}

/// Somebody copies the database of a home in use, or of one that was killed, without its
/// write-ahead log: the copy shows that the home was opened and not closed.
#[test]
fn copy_without_the_write_ahead_log_is_incomplete() {
    let dir = tempfile::tempdir().unwrap();
    let (home, copy) = (dir.path().join("home"), dir.path().join("copy"));
    Runtime::create(&home).unwrap().close().unwrap();
    let rt = Runtime::open(&home).unwrap();
    let token = rt.issue(Grant::to("a").tools(["echo"])).unwrap();
    let agent = rt.session("a", token).unwrap();
    agent.call("echo", args! { "value": 1 }).unwrap().value().unwrap();
    fs::create_dir(&copy).unwrap();
    // By another process: to close the file here would drop the locks that SQLite has on it.
    let copied = Command::new("cp")
        .args([home.join("home.db"), home.join("trust.cbor")])
        .arg(&copy)
        .status();
    assert!(copied.unwrap().success());
    assert_eq!(verdict(&copy), Soundness::Incomplete);
    drop(agent);
    end(&rt, &home);
}
