//! Errors of single system calls, put in place by `strace --inject`; they also show that each
//! call is made, and in which order.

use std::{fs, process::Command};

use syscap_syscalls::beneath::{Effect, Existing, FolderMode, FsError, Parents, WriteFailure};

use crate::beneath::support::{Links, World, is_openat2};

/// Runs `body` in a process of its own in which system calls fail as `fault` says.
fn with_fault(test: &str, fault: &str, body: impl FnOnce(&World)) {
    let inner = "SYSCAP_TEST_FAULT";
    if std::env::var_os(inner).is_some_and(|running| running == *fault) {
        return body(&World::new());
    }
    if std::env::var_os(inner).is_some() {
        return;
    }
    if !Command::new("strace").arg("true").output().is_ok_and(|done| done.status.success()) {
        println!("skipped: {test} needs strace and the right to trace");
        return;
    }
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("inject={fault}")]);
    command.arg(std::env::current_exe().unwrap()).args(["--exact", test]);
    let output = command.env(inner, fault).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{fault}: {text}");
}

/// Writes over a file under a fault, and checks what is said and left.
fn write_fails(test: &str, fault: &str, error: FsError, effect: Effect, content: &[u8]) {
    with_fault(test, fault, |world| {
        fs::write(world.inside("f"), b"old").unwrap();
        assert_eq!(world.put("f", b"new"), Err(WriteFailure { error, effect, folders: 0 }));
        assert_eq!(fs::read(world.inside("f")).unwrap(), content);
        assert_eq!(fs::read_dir(world.inside("")).unwrap().count(), 1, "no temporary file");
    });
}

#[test]
fn sync_of_the_file_fails() {
    let test = "beneath::faults::sync_of_the_file_fails";
    write_fails(test, "fsync:error=EIO:when=1", FsError::Io(5), Effect::NotDone, b"old");
    write_fails(test, "fsync:error=ENOSPC:when=1", FsError::NoSpace, Effect::NotDone, b"old");
}

#[test]
fn sync_of_the_folder_fails() {
    let test = "beneath::faults::sync_of_the_folder_fails";
    write_fails(test, "fsync:error=EIO:when=2", FsError::Io(5), Effect::Unknown, b"new");
}

#[test]
fn rename_fails() {
    let test = "beneath::faults::rename_fails";
    let fault = |errno| format!("renameat,renameat2:error={errno}");
    write_fails(test, &fault("EIO"), FsError::Io(5), Effect::Unknown, b"old");
    write_fails(test, &fault("EACCES"), FsError::Denied, Effect::NotDone, b"old");
    write_fails(test, &fault("ENOSPC"), FsError::NoSpace, Effect::NotDone, b"old");
}

#[test]
fn permissions_of_the_temporary_file_fail() {
    let test = "beneath::faults::permissions_of_the_temporary_file_fail";
    write_fails(test, "fchmod:error=EPERM", FsError::Denied, Effect::NotDone, b"old");
}

#[test]
fn sync_after_a_new_folder_fails() {
    let test = "beneath::faults::sync_after_a_new_folder_fails";
    for (when, folders) in [(1, 1), (2, 2)] {
        with_fault(test, &format!("fsync:error=EIO:when={when}"), |world| {
            let parents = Parents::Create(FolderMode::Shared);
            let done = world.write("a/b/f", b"x", Existing::Replace, parents, Links::Refuse);
            let error = FsError::Io(5);
            assert_eq!(done, Err(WriteFailure { error, effect: Effect::Partly, folders }));
            assert!(!world.inside("a/b/f").exists());
        });
    }
}

#[test]
fn a_disturbed_walk_is_tried_again() {
    let test = "beneath::faults::a_disturbed_walk_is_tried_again";
    for errno in ["EAGAIN", "EINTR"] {
        // The first walk is the base's own.
        with_fault(test, &format!("openat2:error={errno}:when=2..20"), |world| {
            fs::write(world.inside("f"), b"f").unwrap();
            assert_eq!(world.read("f", Links::Refuse).unwrap(), b"f");
        });
    }
}

#[test]
fn a_storm_ends_as_busy() {
    with_fault("beneath::faults::a_storm_ends_as_busy", "openat2:error=EAGAIN:when=2+", |world| {
        fs::write(world.inside("f"), b"old").unwrap();
        if !is_openat2() {
            return assert_eq!(world.read("f", Links::Refuse).unwrap(), b"old");
        }
        world.assert_refused("f", Links::Refuse, FsError::Busy);
        world.assert_refused("f", Links::FollowWithin, FsError::Busy);
    });
}

#[test]
fn a_filter_installed_later_fails_closed() {
    let test = "beneath::faults::a_filter_installed_later_fails_closed";
    for errno in ["ENOSYS", "EPERM"] {
        with_fault(test, &format!("openat2:error={errno}:when=2+"), |world| {
            fs::write(world.inside("f"), b"old").unwrap();
            if !is_openat2() {
                return assert_eq!(world.read("f", Links::Refuse).unwrap(), b"old");
            }
            world.assert_refused("f", Links::Refuse, FsError::Unsupported);
            world.assert_refused("f", Links::FollowWithin, FsError::Unsupported);
        });
    }
}
