//! What an operator does with a base before any call.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use syscap_syscalls::beneath::{FolderMode, FsError, Location, Opener};

use crate::support::{OPENER, OPENERS, World, mount, open, snapshot, with_mounts};

fn opened(path: PathBuf) -> Arc<dyn Opener> {
    open(&path).unwrap()
}

/// These tests are run once for each opener: here for the others, in a process of its own.
#[test]
fn every_opener_passes_every_test() {
    if std::env::var_os(OPENER).is_some() {
        return;
    }
    for (name, _) in &OPENERS[1..] {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output = command.env(OPENER, name).output().unwrap();
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stdout));
    }
}

#[test]
fn contains_goes_by_inode_not_by_name() {
    let world = World::new();
    fs::create_dir_all(world.inside("a/b/c")).unwrap();
    fs::create_dir_all(world.inside("ab")).unwrap();
    symlink(world.inside("a/b"), world.outside("way")).unwrap();
    let a = opened(world.inside("a"));
    for (other, expected) in [
        (world.inside("a"), true),
        (world.inside("a/b/c"), true),
        (world.outside("way/c"), true),
        (world.inside("ab/../a/b"), true),
        (world.inside("ab"), false),
        (world.inside(""), false),
        (world.outside(""), false),
        (PathBuf::from("/"), false),
    ] {
        assert_eq!(a.contains(&*opened(other.clone())), Ok(expected), "{}", other.display());
    }
    assert_eq!(opened(PathBuf::from("/")).contains(&*a), Ok(true));
}

#[test]
fn contains_sees_a_bind_mount_of_the_base() {
    with_mounts("setup::contains_sees_a_bind_mount_of_the_base", || {
        let world = World::new();
        fs::create_dir_all(world.inside("a/home")).unwrap();
        fs::create_dir_all(world.outside("bind")).unwrap();
        mount(&["--bind", world.inside("a").to_str().unwrap()], &world.outside("bind"));
        let base = opened(world.outside("bind"));
        assert_eq!(base.contains(&*opened(world.inside("a/home"))), Ok(true));
        assert_eq!(world.base.contains(&*base), Ok(false), "known: its parents are elsewhere");
    });
}

#[test]
fn contains_refuses_to_guess_in_the_depths() {
    let world = World::fast();
    let mut dir =
        rustix::fs::open(world.inside(""), rustix::fs::OFlags::PATH, rustix::fs::Mode::empty())
            .unwrap();
    // Deeper than a path can name; entered by /proc, as the operator might.
    for _ in 0..5000 {
        rustix::fs::mkdirat(&dir, "d", rustix::fs::Mode::RWXU).unwrap();
        let flags = rustix::fs::OFlags::PATH;
        dir = rustix::fs::openat(&dir, "d", flags, rustix::fs::Mode::empty()).unwrap();
    }
    let number = std::os::fd::AsRawFd::as_raw_fd(&dir);
    let deep = opened(PathBuf::from(format!("/proc/self/fd/{number}")));
    assert_eq!(world.base.contains(&*deep), Err(FsError::TooLarge));
    drop(deep);
    assert!(Command::new("rm").arg("-rf").arg(world.root()).status().unwrap().success());
}

#[test]
fn a_base_is_a_directory() {
    let world = World::new();
    assert_eq!(open(&world.outside("secret")).map(drop), Err(FsError::NotDirectory));
    assert_eq!(open(&world.outside("none")).map(drop), Err(FsError::NotFound));
}

#[test]
fn folders_are_made_by_handles() {
    let world = World::new();
    let at = |names: &[&str]| Location::new(names).unwrap();
    let make = |names: &[&str], mode| world.base.make_folders(&at(names), mode);
    assert_eq!(make(&["agents", "a", "workspace"], FolderMode::Private), Ok(3));
    assert_eq!(make(&["agents", "a", "workspace"], FolderMode::Private), Ok(0));
    assert_eq!(make(&["agents", "shared"], FolderMode::Shared), Ok(1));
    assert_eq!(make(&[], FolderMode::Shared), Ok(0));
    let mode = |path| fs::metadata(world.inside(path)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("agents/a/workspace"), 0o700);
    assert_eq!(mode("agents/shared") & 0o700, 0o700);
    symlink("../outside", world.inside("way")).unwrap();
    fs::write(world.inside("file"), b"").unwrap();
    let before = snapshot(world.root());
    assert_eq!(make(&["way", "new"], FolderMode::Shared), Err(FsError::Link));
    assert_eq!(make(&["way"], FolderMode::Shared), Err(FsError::Link));
    assert_eq!(make(&["file", "new"], FolderMode::Shared), Err(FsError::NotDirectory));
    assert_eq!(snapshot(world.root()), before);
}

/// Starts a test of this file again under a filter that answers `openat2` with an error.
fn under_filter(test: &str, errno: u32) {
    let inner = "SYSCAP_TEST_FILTER";
    if std::env::var_os(inner).is_some() {
        let dir = std::env::temp_dir();
        assert_eq!(open(&dir).map(drop), Err(FsError::Unsupported));
        return;
    }
    // Four instructions: load the call's number; 437 is openat2 everywhere; error; allow.
    let script = "import ctypes, os, struct, sys\n\
        f = struct.pack('HBBI' * 4, 0x20, 0, 0, 0, 0x15, 0, 1, 437, 6, 0, 0, 0x50000 | \
        int(sys.argv[1]), 6, 0, 0, 0x7fff0000)\n\
        b = ctypes.create_string_buffer(f)\n\
        p = struct.pack('HxxxxxxQ', 4, ctypes.addressof(b))\n\
        c = ctypes.CDLL(None)\n\
        r = c.prctl(38, 1, 0, 0, 0) or c.prctl(22, 2, p)\n\
        os.execv(sys.argv[2], sys.argv[2:]) if r == 0 else sys.exit(77)\n";
    let exe = std::env::current_exe().unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", script, &errno.to_string()]).arg(exe).args(["--exact", test]);
    match command.env(inner, "1").output() {
        Ok(output) if output.status.code() != Some(77) => {
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{output:?}");
        }
        other => println!("skipped: {test} needs python3 and seccomp: {other:?}"),
    }
}

#[test]
fn without_openat2_there_is_no_base_enosys() {
    under_filter("setup::without_openat2_there_is_no_base_enosys", 38);
}

#[test]
fn without_openat2_there_is_no_base_eperm() {
    under_filter("setup::without_openat2_there_is_no_base_eperm", 1);
}
