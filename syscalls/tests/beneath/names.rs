//! Names that climb, hide or are too long, and the plain cases beside them.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt};

use syscap_syscalls::beneath::{FsError, Kind, Location, TempName};

use crate::beneath::support::{Links, World};

fn world() -> World {
    let world = World::new();
    fs::create_dir_all(world.inside("d/e")).unwrap();
    fs::write(world.inside("ok"), b"ok").unwrap();
    fs::write(world.inside("d/e/ok"), b"deep").unwrap();
    world
}

#[test]
fn plain_files_and_folders_work() {
    let world = world();
    assert_eq!(world.read("ok", Links::Refuse).unwrap(), b"ok");
    assert_eq!(world.read("d/e/ok", Links::Refuse).unwrap(), b"deep");
    assert_eq!(world.read("d/e/ok", Links::FollowWithin).unwrap(), b"deep");
    assert_eq!(world.list("", Links::Refuse).unwrap(), [b"d".to_vec(), b"ok".to_vec()]);
    assert_eq!(world.read("none", Links::Refuse), Err(FsError::NotFound));
    assert_eq!(world.read("none/none", Links::Refuse), Err(FsError::NotFound));
}

#[test]
fn dot_dot_is_no_name() {
    let world = world();
    for path in ["..", "../outside/secret", "d/../../outside/secret", "d/e/../e/ok", "d/.."] {
        world.assert_refused(path, Links::Refuse, FsError::BadName);
        world.assert_refused(path, Links::FollowWithin, FsError::BadName);
    }
}

#[test]
fn dot_and_empty_are_no_names() {
    let world = world();
    for path in [".", "./ok", "d//e/ok", "ok/", "ok/.", "d/", "/"] {
        world.assert_refused(path, Links::Refuse, FsError::BadName);
        world.assert_refused(path, Links::FollowWithin, FsError::BadName);
    }
}

#[test]
fn an_absolute_path_or_a_slash_in_a_name_is_no_name() {
    let world = world();
    world.assert_refused("/etc/passwd", Links::Refuse, FsError::BadName);
    let secret = world.outside("secret");
    for name in ["/", "d/e", "/etc", "ok/", secret.to_str().unwrap()] {
        assert_eq!(Location::new(&[name]), Err(FsError::BadName), "{name}");
    }
}

#[test]
fn nul_is_no_name() {
    for name in ["\0", "ok\0", "ok\0.txt"] {
        assert_eq!(Location::new(&[name]), Err(FsError::BadName));
    }
}

#[test]
fn long_names_and_paths() {
    let world = world();
    world.assert_refused(&"n".repeat(256), Links::Refuse, FsError::NameTooLong);
    assert_eq!(Location::new(&["n".repeat(256)]), Err(FsError::NameTooLong));
    assert_eq!(world.read(&"n".repeat(255), Links::Refuse), Err(FsError::NotFound));
    world.assert_refused(&vec!["n"; 3000].join("/"), Links::Refuse, FsError::NameTooLong);
    assert!(Location::new(&["n"; 2048]).is_ok(), "4095 bytes");
    assert_eq!(Location::new(&["n"; 2049]), Err(FsError::NameTooLong));
}

#[test]
fn a_file_has_nothing_below_it() {
    let world = world();
    world.assert_refused("ok/child", Links::Refuse, FsError::NotDirectory);
    world.assert_refused("ok/child/deeper", Links::FollowWithin, FsError::NotDirectory);
}

#[test]
fn our_temporary_files_are_no_names() {
    let world = world();
    fs::write(world.inside(".syscap-1.tmp"), b"half").unwrap();
    fs::write(world.inside(".syscap-2"), b"not one of ours").unwrap();
    world.assert_refused(".syscap-1.tmp", Links::Refuse, FsError::BadName);
    world.assert_refused(".SYSCAP-1.TMP", Links::Refuse, FsError::BadName);
    world.assert_refused(".syscap-1.tmp/x", Links::FollowWithin, FsError::BadName);
    std::os::unix::fs::symlink(".syscap-1.tmp", world.inside("way")).unwrap();
    world.assert_refused("way", Links::FollowWithin, FsError::BadName);
    let listed = world.list("", Links::Refuse).unwrap();
    assert!(listed.contains(&b".syscap-2".to_vec()));
    assert!(!listed.contains(&b".syscap-1.tmp".to_vec()));
    for unique in ["", "a/b", "..", "a.b", &"x".repeat(65)] {
        assert_eq!(TempName::new(unique), Err(FsError::BadName), "{unique}");
    }
}

#[test]
fn names_that_are_not_utf8_do_not_alias() {
    let world = World::new();
    let raw = [b"a\xff".as_slice(), b"a\xfe", "a\u{fffd}".as_bytes(), b"a\xff\xff"];
    for name in raw {
        fs::write(world.inside("").join(OsStr::from_bytes(name)), name).unwrap();
    }
    let listing = world.base.list(&Location::default(), 10).unwrap();
    let mut expected = raw.map(<[u8]>::to_vec).to_vec();
    expected.sort();
    let names: Vec<_> = listing.entries.iter().map(|entry| entry.name.clone()).collect();
    assert_eq!(names, expected);
    assert!(listing.entries.iter().all(|entry| entry.kind == Kind::File));
    let lossy = world.read("a\u{fffd}", Links::Refuse).unwrap();
    assert_eq!(lossy, "a\u{fffd}".as_bytes(), "only the file that is really called so");
}
