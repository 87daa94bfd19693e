//! What an operator does with a base before any call.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use syscap_format::Enforcement;
use syscap_syscalls::beneath::{FolderMode, FsError, Location, Opener, Openers, Removal, open_by};

use crate::beneath::support::{
    OPENER, OPENERS, World, is_openat2, mount, open, snapshot, turn, with_mounts,
};
use kernel_support::absent::{ABSENT, without_openat2};

fn opened(path: PathBuf) -> Arc<dyn Opener> {
    open(&path).unwrap()
}

/// These tests are run once for each opener: here for the others, in a process of its own; and by
/// `cap-std` once more where it has no `openat2` either, and goes every step by itself.
#[test]
fn every_opener_passes_every_test() {
    if std::env::var_os(OPENER).is_some() {
        return;
    }
    let run = |name: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let output =
            command.args(["beneath::", "--show-output"]).env(OPENER, name).output().unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{name}: {said}");
        said.lines().filter(|line| line.starts_with("race ")).for_each(|line| println!("{line}"));
    };
    for (name, _) in &OPENERS[1..] {
        run(name);
    }
    without_openat2(ABSENT[0], || run("cap_std"));
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
    with_mounts("beneath::setup::contains_sees_a_bind_mount_of_the_base", || {
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

/// Where the system lacks `openat2` it can't be demanded, and what is opened says how.
#[test]
fn base_without_openat2_has_another_level() {
    if !is_openat2() {
        return;
    }
    let world = World::new();
    fs::write(world.inside("f"), b"inside").unwrap();
    let by = |openers| open_by(openers, &world.inside(""));
    for errno in ABSENT {
        without_openat2(errno, || {
            assert_eq!(by(Openers::Openat2).map(drop), Err(FsError::Unsupported));
            for openers in [Openers::Strongest, Openers::CapStd] {
                let base = by(openers).unwrap();
                assert_eq!(base.enforcement(), Enforcement::CapStd);
                let file = base.open_file(&Location::new(&["f"]).unwrap(), 100).unwrap();
                assert_eq!(file.read(0, 100).unwrap().bytes, b"inside");
            }
            assert_eq!(
                open_by(Openers::Strongest, &world.outside("none")).map(drop),
                Err(FsError::NotFound)
            );
        });
    }
    for (openers, level) in [
        (Openers::Strongest, Enforcement::Openat2),
        (Openers::Openat2, Enforcement::Openat2),
        (Openers::CapStd, Enforcement::CapStd),
    ] {
        assert_eq!(by(openers).unwrap().enforcement(), level);
        assert_eq!(Openers::named(openers.name()), Some(openers));
    }
    assert_eq!(Openers::named("lexical"), None);
}

/// A base that was opened by `openat2` stays so: where that fails later, with whatever error,
/// nothing else is tried in its place.
#[test]
fn later_failure_tries_no_other_way() {
    if !is_openat2() {
        return;
    }
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/f"), b"inside").unwrap();
    let base = open_by(Openers::Strongest, &world.inside("")).unwrap();
    let at = Location::new(&["d", "f"]).unwrap();
    let before = snapshot(world.root());
    for errno in ABSENT {
        let held = turn(&*base, &at).unwrap();
        without_openat2(errno, || {
            assert_eq!(base.enforcement(), Enforcement::Openat2);
            let removed = base.remove(held, Removal::File, None);
            assert_eq!(removed.map_err(|failure| failure.error), Err(FsError::Unsupported));
            assert_eq!(base.open_file(&at, 100).map(drop), Err(FsError::Unsupported));
            assert_eq!(base.metadata(&at), Err(FsError::Unsupported));
            assert_eq!(base.list(&Location::default(), 9), Err(FsError::Unsupported));
            assert_eq!(base.visit(&Location::default()), Err(FsError::Unsupported));
            let turn = turn(&*base, &at);
            assert_eq!(turn.map(drop).map_err(|it| it.error), Err(FsError::Unsupported));
            assert_eq!(
                base.make_folders(&Location::new(&["n"]).unwrap(), FolderMode::Shared),
                Err(FsError::Unsupported)
            );
        });
    }
    assert_eq!(snapshot(world.root()), before);
    assert!(base.open_file(&at, 100).is_ok());
}
