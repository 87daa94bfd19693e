//! A file that was judged is opened by one walk as long as nothing has changed, and is judged anew
//! as soon as anything has.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command, thread::sleep, time::Duration};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use syscap_syscalls::beneath::FsError;

use crate::beneath::special::assert_unopened;
use crate::beneath::support::{CANARY, Links, World, is_openat2, mount, snapshot, with_mounts};

/// Until then a change is too young for another one to be sure to show.
const SETTLED: Duration = Duration::from_millis(3_200);
/// The file that is read.
const FILE: &str = "a/b/f";

/// A world in which each of these files was judged, and is remembered.
fn judged(files: &[&str]) -> World {
    let world = World::new();
    for path in files {
        fs::create_dir_all(world.inside(path).parent().unwrap()).unwrap();
        fs::write(world.inside(path), path).unwrap();
    }
    sleep(SETTLED);
    for path in files {
        for _ in 0..3 {
            assert_eq!(world.read(path, Links::Refuse).unwrap(), path.as_bytes());
        }
    }
    world
}

/// The system calls of one read, by name.
#[test]
fn a_judged_file_is_read_by_one_walk() {
    let (inner, test) = ("SYSCAP_TEST_CALLS", "beneath::judged::a_judged_file_is_read_by_one_walk");
    let mark = Path::new("/syscap-test-mark");
    if std::env::var_os(inner).is_some() {
        let world = judged(&[FILE]);
        assert!(!mark.exists());
        world.read(FILE, Links::Refuse).unwrap();
        assert!(!mark.exists());
        return;
    }
    if !is_openat2() {
        return;
    }
    if !Command::new("strace").arg("true").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: {test} needs strace and the right to trace");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace");
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o"]).arg(&trace);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test]);
    let output = command.env(inner, "1").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read_to_string(&trace).unwrap();
    let mut parts = text.split("/syscap-test-mark");
    let between = parts.nth(1).unwrap();
    // The mark's own line ends first; a debug build looks at what it closes.
    let calls: Vec<&str> = between
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(' ')?.1.trim_start().split_once('('))
        .map(|(name, _)| name)
        .filter(|name| !["statx", "fcntl"].contains(name))
        .collect();
    // Two folders and the base are as they were; the file is opened, judged, read to its end.
    let expected =
        [["fstat", "fstat", "fstat"].as_slice(), &["openat2", "fstat", "pread64", "close"]];
    assert_eq!(calls, expected.concat(), "{between}");
}

/// Whatever is put in the place of a file that was judged is judged before it is opened.
#[test]
fn replacement_of_a_judged_file_is_judged_again() {
    let files = ["a/b/fifo", "a/b/link", "a/b/hard", "a/b/new", "a/b/gone", "c/f", "d/e/f"];
    let world = judged(&files);
    for path in files {
        fs::remove_file(world.inside(path)).unwrap();
    }
    mknodat(CWD, world.inside("a/b/fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    symlink(world.outside("secret"), world.inside("a/b/link")).unwrap();
    fs::hard_link(world.outside("secret"), world.inside("a/b/hard")).unwrap();
    fs::write(world.inside("a/b/new"), "new").unwrap();
    assert_unopened(&world.inside("a/b/fifo"), || {
        assert_eq!(world.read("a/b/fifo", Links::Refuse), Err(FsError::NotRegular));
    });
    assert_eq!(world.read("a/b/link", Links::Refuse), Err(FsError::Link));
    assert_eq!(world.read("a/b/hard", Links::Refuse), Err(FsError::ManyLinks));
    assert_eq!(world.read("a/b/new", Links::Refuse).unwrap(), b"new");
    assert_eq!(world.read("a/b/gone", Links::Refuse), Err(FsError::NotFound));
}

/// The folder of a judged file, or one above it, is exchanged: by a link out, by another folder,
/// by a home.
#[test]
fn a_judged_file_whose_way_has_changed_is_judged() {
    let files = ["a/b/f", "c/d/f", "e/g/f", "h/f", "i/j/f"];
    let world = judged(&files);
    for (folder, aside) in [("a", "a2"), ("c/d", "d2"), ("e", "e2"), ("h", "h2")] {
        fs::rename(world.inside(folder), world.outside(aside)).unwrap();
    }
    symlink(world.outside("a2"), world.inside("a")).unwrap();
    symlink(world.outside("d2"), world.inside("c/d")).unwrap();
    fs::create_dir_all(world.inside("e/g")).unwrap();
    mknodat(CWD, world.inside("e/g/f"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    fs::write(world.inside("i/home.db"), "").unwrap();
    let before = snapshot(world.root());
    assert_eq!(world.read("a/b/f", Links::Refuse), Err(FsError::Link));
    assert_eq!(world.read("c/d/f", Links::Refuse), Err(FsError::Link));
    assert_unopened(&world.inside("e/g/f"), || {
        assert_eq!(world.read("e/g/f", Links::Refuse), Err(FsError::NotRegular));
    });
    assert_eq!(world.read("h/f", Links::Refuse), Err(FsError::NotFound));
    assert_eq!(world.read("i/j/f", Links::Refuse), Err(FsError::Home));
    assert_eq!(snapshot(world.root()), before);
}

/// A file that stays, and changes: its size, its names, its content.
#[test]
fn a_judged_file_that_has_changed_is_judged() {
    let world = judged(&["a/large", "a/linked", "a/written"]);
    fs::File::options()
        .write(true)
        .open(world.inside("a/large"))
        .unwrap()
        .set_len((1 << 20) + 1)
        .unwrap();
    fs::hard_link(world.inside("a/linked"), world.outside("elsewhere")).unwrap();
    fs::write(world.inside("a/written"), "more than there was").unwrap();
    assert_eq!(world.read("a/large", Links::Refuse), Err(FsError::TooLarge));
    assert_eq!(world.read("a/linked", Links::Refuse), Err(FsError::ManyLinks));
    assert_eq!(world.read("a/written", Links::Refuse).unwrap(), b"more than there was");
}

/// A mount changes no folder, and is not entered all the same: over one on the way, and over the
/// file itself.
#[test]
fn mount_over_a_judged_file_is_not_read() {
    with_mounts("beneath::judged::mount_over_a_judged_file_is_not_read", || {
        let world = judged(&["a/b/f", "c/f"]);
        let outside = world.outside("folder").display().to_string();
        fs::write(world.outside("folder/f"), CANARY).unwrap();
        mount(&["--bind", &outside], &world.inside("a/b"));
        let secret = world.outside("secret").display().to_string();
        mount(&["--bind", &secret], &world.inside("c/f"));
        for path in ["a/b/f", "c/f"] {
            assert_eq!(world.read(path, Links::Refuse), Err(FsError::OtherDevice), "{path}");
        }
    });
}
