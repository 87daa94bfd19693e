//! Writes: whole, durable, metered, or nothing.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use syscap_syscalls::beneath::{
    CHUNK_BYTES, Charge, Discarded, Effect, Existing, FolderMode, FsError, Location, Parents,
    Refused, TempName, Write, WriteFailure, Written,
};

use crate::beneath::support::{
    Links, World, is_root, mount, open, replacing, snapshot, turn, with_mounts,
};

fn at(names: &[&str]) -> Location {
    Location::new(names).unwrap()
}

const fn failure(error: FsError, effect: Effect, folders: u32) -> WriteFailure {
    WriteFailure { error, effect, folders }
}

#[test]
fn creates_and_replaces() {
    let world = World::new();
    let new = world.put("f", b"one").unwrap();
    assert_eq!(new, Written { size_bytes: 3, folders: 0, replaced: false });
    let old = world.put("f", b"").unwrap();
    assert_eq!(old, Written { size_bytes: 0, folders: 0, replaced: true });
    assert_eq!(fs::read(world.inside("f")).unwrap(), b"");
    assert_eq!(fs::read_dir(world.inside("")).unwrap().count(), 1, "no temporary file");
}

#[test]
fn create_only_never_replaces() {
    let world = World::new();
    let create =
        |path: &str| world.write(path, b"new", Existing::Refuse, Parents::Require, Links::Refuse);
    assert!(create("f").is_ok());
    fs::create_dir(world.inside("d")).unwrap();
    symlink("../outside/new", world.inside("way")).unwrap();
    let before = snapshot(world.root());
    for path in ["f", "d", "way"] {
        assert_eq!(create(path), Err(failure(FsError::Exists, Effect::NotDone, 0)));
    }
    assert_eq!(snapshot(world.root()), before);
}

#[test]
fn create_only_loses_to_a_file_made_during_the_write() {
    let world = World::new();
    let done =
        world.write_at(&at(&["f"]), b"mine", Existing::Refuse, Parents::Require, &mut |charge| {
            if matches!(charge, Charge::Bytes(_)) {
                fs::write(world.inside("f"), b"theirs").unwrap();
            }
            Ok(())
        });
    assert_eq!(done, Err(failure(FsError::Exists, Effect::NotDone, 0)));
    assert_eq!(fs::read(world.inside("f")).unwrap(), b"theirs");
    assert_eq!(fs::read_dir(world.inside("")).unwrap().count(), 1);
}

#[test]
fn the_meter_is_asked_before_everything() {
    let world = World::new();
    let content = vec![7; 2 * CHUNK_BYTES + 5];
    let mut asked = Vec::new();
    let target = at(&["a", "b", "f"]);
    let parents = Parents::Create(FolderMode::Private);
    let done = world.write_at(&target, &content, Existing::Replace, parents, &mut |charge| {
        asked.push(charge);
        Ok(())
    });
    assert_eq!(done, Ok(Written { size_bytes: content.len() as u64, folders: 2, replaced: false }));
    let chunk = Charge::Bytes(CHUNK_BYTES as u64);
    let all = [Charge::Folder, Charge::Folder, Charge::File, chunk, chunk, Charge::Bytes(5)];
    assert_eq!(asked, all);
    assert!(fs::read(world.inside("a/b/f")).unwrap() == content);
}

#[test]
fn a_refusal_by_the_meter_leaves_the_old_content() {
    let content = vec![7; 2 * CHUNK_BYTES + 5];
    // One step more is allowed each time; six are needed.
    for allowed in 0..=6 {
        let world = World::new();
        let mut left = allowed;
        let mut meter = |_: Charge| {
            left = i32::checked_sub(left, 1).filter(|left| *left >= 0).ok_or(Refused)?;
            Ok(())
        };
        let parents = Parents::Create(FolderMode::Shared);
        let target = at(&["a", "b", "f"]);
        let done = world.write_at(&target, &content, Existing::Replace, parents, &mut meter);
        let expected = match allowed {
            0 => Err(failure(FsError::Refused, Effect::NotDone, 0)),
            1 => Err(failure(FsError::Refused, Effect::Partly, 1)),
            2..=5 => Err(failure(FsError::Refused, Effect::Partly, 2)),
            _ => Ok(content.len() as u64),
        };
        assert_eq!(done.map(|written| written.size_bytes), expected, "{allowed}");
        assert_eq!(world.inside("a").exists(), allowed >= 1);
        assert_eq!(world.inside("a/b").exists(), allowed >= 2);
        let files = fs::read_dir(world.inside("a/b")).map_or(0, Iterator::count);
        assert_eq!(files, usize::from(allowed >= 6), "no temporary file, {allowed}");
    }
    let world = World::new();
    fs::write(world.inside("f"), b"old").unwrap();
    let mut meter = |_: Charge| Err(Refused);
    let done = world.write_at(&at(&["f"]), b"new", Existing::Replace, Parents::Require, &mut meter);
    assert_eq!(done, Err(failure(FsError::Refused, Effect::NotDone, 0)));
    assert_eq!(fs::read(world.inside("f")).unwrap(), b"old");
    assert_eq!(fs::read_dir(world.inside("")).unwrap().count(), 1);
}

#[test]
fn full_disk_keeps_the_old_content() {
    with_mounts("beneath::writes::full_disk_keeps_the_old_content", || {
        let world = World::new();
        fs::create_dir(world.inside("small")).unwrap();
        mount(&["-t", "tmpfs", "-o", "size=64k", "none"], &world.inside("small"));
        let base = open(&world.inside("small")).unwrap();
        fs::write(world.inside("small/f"), b"old content!").unwrap();
        let (target, temp) = (at(&["f"]), TempName::new("x").unwrap());
        let mut job = replacing(&[7; 200_000], &temp);
        let write = |job: &Write<'_>| {
            turn(&*base, &target).and_then(|turn| base.write(turn, job, &mut |_| Ok(())))
        };
        let done = write(&job);
        assert_eq!(done, Err(failure(FsError::NoSpace, Effect::NotDone, 0)));
        assert_eq!(fs::read(world.inside("small/f")).unwrap(), b"old content!");
        assert_eq!(fs::read_dir(world.inside("small")).unwrap().count(), 1, "temporary file");
        job.content = b"short";
        assert!(write(&job).is_ok(), "the space is free again");
    });
}

#[test]
fn permissions_are_kept_and_never_widened() {
    let world = World::new();
    let mode = |path: &str| fs::metadata(world.inside(path)).unwrap().permissions().mode() & 0o7777;
    for bits in [0o600, 0o640, 0o755, 0o4755, 0o6777] {
        fs::write(world.inside("f"), b"old").unwrap();
        fs::set_permissions(world.inside("f"), fs::Permissions::from_mode(bits)).unwrap();
        let target = at(&["f"]);
        let done =
            world.write_at(&target, b"new", Existing::Replace, Parents::Require, &mut |_| {
                let temps = fs::read_dir(world.inside("")).unwrap().map(Result::unwrap);
                let temp = temps.map(|e| e.file_name()).find(|name| name != "f").unwrap();
                assert_eq!(mode(temp.to_str().unwrap()), 0o600, "while it is being written");
                Ok(())
            });
        assert!(done.is_ok());
        assert_eq!(mode("f"), bits & 0o777, "set-user-id is not passed on");
    }
    world.put("new", b"").unwrap();
    fs::write(world.inside("plain"), b"").unwrap();
    assert_eq!(mode("new"), mode("plain") & 0o644, "as the umask has it");
}

#[test]
fn a_read_only_file_is_not_replaced() {
    let world = World::new();
    fs::write(world.inside("f"), b"old").unwrap();
    fs::set_permissions(world.inside("f"), fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(world.put("f", b"new"), Err(failure(FsError::Denied, Effect::NotDone, 0)));
    assert_eq!(fs::read(world.inside("f")).unwrap(), b"old");
}

#[test]
fn a_folder_without_rights_is_denied() {
    if is_root() {
        println!("skipped: root has every right");
        return;
    }
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/f"), b"f").unwrap();
    fs::write(world.inside("unreadable"), b"f").unwrap();
    fs::set_permissions(world.inside("unreadable"), fs::Permissions::from_mode(0o200)).unwrap();
    fs::set_permissions(world.inside("d"), fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(world.put("d/f", b"x"), Err(failure(FsError::Denied, Effect::NotDone, 0)));
    assert_eq!(world.put("d/new", b"x"), Err(failure(FsError::Denied, Effect::NotDone, 0)));
    assert_eq!(world.read("unreadable", Links::Refuse), Err(FsError::Denied));
    fs::set_permissions(world.inside("d"), fs::Permissions::from_mode(0o000)).unwrap();
    assert_eq!(world.read("d/f", Links::Refuse), Err(FsError::Denied));
    fs::set_permissions(world.inside("d"), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn parents_are_made_only_when_asked() {
    let world = World::new();
    assert_eq!(world.put("a/f", b"x"), Err(failure(FsError::NotFound, Effect::NotDone, 0)));
    assert!(!world.inside("a").exists());
}

#[test]
fn a_leftover_of_a_crash_is_kept_apart_and_discarded_by_name() {
    let world = World::new();
    let (target, temp) = (at(&["f"]), TempName::new("7").unwrap());
    let leftover = world.inside(".syscap-7.tmp");
    fs::write(&leftover, b"half").unwrap();
    let job = replacing(b"x", &temp);
    let write = || {
        let turn = turn(&*world.base, &target)?;
        world.base.write(turn, &job, &mut |_| Ok(()))
    };
    let done = write();
    assert_eq!(done, Err(failure(FsError::Busy, Effect::NotDone, 0)));
    assert_eq!(fs::read(&leftover).unwrap(), b"half", "what is not ours is not written");
    assert_eq!(world.base.discard(&target, &temp), Ok(Discarded::Removed { size_bytes: 4 }));
    assert!(!leftover.exists());
    assert_eq!(world.base.discard(&target, &temp), Ok(Discarded::Absent));
    assert_eq!(world.base.discard(&at(&["none", "f"]), &temp), Ok(Discarded::Absent));
    assert!(write().is_ok());
}

#[test]
fn a_temporary_name_that_is_a_symlink_is_not_written_through() {
    let world = World::new();
    symlink("../outside/secret", world.inside(".syscap-9.tmp")).unwrap();
    let before = snapshot(world.root());
    let (target, temp) = (at(&["f"]), TempName::new("9").unwrap());
    let job = replacing(b"x", &temp);
    let turn = turn(&*world.base, &target).unwrap();
    let done = world.base.write(turn, &job, &mut |_| Ok(()));
    assert_eq!(done, Err(failure(FsError::Busy, Effect::NotDone, 0)));
    assert_eq!(snapshot(world.root()), before);
    assert_eq!(world.base.discard(&target, &temp), Ok(Discarded::Removed { size_bytes: 17 }));
    assert!(world.outside("secret").exists());
}

#[test]
fn a_rename_that_fails_removes_the_temporary_file() {
    let world = World::new();
    let done =
        world.write_at(&at(&["f"]), b"x", Existing::Replace, Parents::Require, &mut |charge| {
            if matches!(charge, Charge::Bytes(_)) {
                // The name becomes a directory during the write.
                fs::create_dir(world.inside("f")).unwrap();
            }
            Ok(())
        });
    assert_eq!(done, Err(failure(FsError::IsDirectory, Effect::NotDone, 0)));
    assert_eq!(fs::read_dir(world.inside("")).unwrap().count(), 1);
}

#[test]
fn a_temporary_file_that_cannot_be_removed_is_told() {
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    let done = world.write_at(
        &at(&["d", "f"]),
        b"x",
        Existing::Replace,
        Parents::Require,
        &mut |charge| {
            if matches!(charge, Charge::Bytes(_)) {
                // The folder is gone, so neither the rename nor the removal finds the file.
                fs::remove_dir_all(world.inside("d")).unwrap();
            }
            Ok(())
        },
    );
    assert_eq!(done, Err(failure(FsError::NotFound, Effect::Partly, 0)));
}
