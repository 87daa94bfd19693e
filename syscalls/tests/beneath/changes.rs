//! Looking, removing and renaming: each trap, and what is left of it.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use sha2::{Digest as _, Sha256};
use syscap_syscalls::beneath::{
    Charge, Effect, Existing, FolderMode, FsError, KEY_FILE_BEGINS, Kind, Location, Parents,
    Refused, Removal, Rename, Renamed, WriteFailure,
};

use crate::beneath::support::{CANARY, Links, World, mount, names, snapshot, turn, with_mounts};

fn at(path: &str) -> Location {
    Location::new(&names(path)).unwrap()
}

fn remove_as(
    world: &World,
    path: &str,
    what: Removal,
    expected: Option<[u8; 32]>,
) -> Result<(), WriteFailure> {
    world.base.remove(turn(&*world.base, &at(path))?, what, expected)
}

fn remove(world: &World, path: &str) -> Result<(), WriteFailure> {
    remove_as(world, path, Removal::File, None)
}

fn rename_with(
    world: &World,
    (from, to): (&str, &str),
    (existing, parents): (Existing, Parents),
    meter: &mut dyn FnMut(Charge) -> Result<(), Refused>,
) -> Result<Renamed, WriteFailure> {
    let (from, to) = (at(from), at(to));
    let turns = world.base.turns(&from, &to, parents, Duration::ZERO, meter)?;
    world.base.rename(turns, &Rename { existing, expected: [None; 2] })
}

fn rename(world: &World, from: &str, to: &str) -> Result<Renamed, WriteFailure> {
    rename_with(world, (from, to), (Existing::Replace, Parents::Require), &mut |_| Ok(()))
}

fn not_done(error: FsError) -> WriteFailure {
    WriteFailure { error, effect: Effect::NotDone, folders: 0 }
}

/// A file, a folder with a file, a link out to each, a FIFO, a file with two names.
fn traps() -> World {
    let world = World::new();
    fs::write(world.inside("f"), "file").unwrap();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/g"), "below").unwrap();
    symlink("../outside/secret", world.inside("out")).unwrap();
    symlink("../outside/folder", world.inside("way")).unwrap();
    fs::hard_link(world.outside("secret"), world.inside("hard")).unwrap();
    mknodat(CWD, world.inside("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    world
}

#[test]
fn a_look_tells_of_what_could_be_opened_only() {
    let world = traps();
    let look = |path| world.base.metadata(&at(path));
    let file = look("f").unwrap();
    assert_eq!((file.kind, file.size_bytes, file.writable), (Kind::File, 4, true));
    assert!(file.modified_ms > 1_600_000_000_000);
    assert_eq!(look("d").unwrap().kind, Kind::Directory);
    assert_eq!(look("").unwrap().kind, Kind::Directory);
    for (path, kind) in
        [("out", Kind::Link), ("way", Kind::Link), ("hard", Kind::Other), ("fifo", Kind::Other)]
    {
        let seen = look(path).unwrap();
        assert_eq!((seen.kind, seen.size_bytes, seen.modified_ms), (kind, 0, 0), "{path}");
    }
    assert_eq!(look("none"), Err(FsError::NotFound));
    // GHSA-m87g-7g5m-wpx4: to ask what a thing is passes the gates that to open it does.
    assert_eq!(look("way/secret"), Err(FsError::Link));
    assert_eq!(look("f/x"), Err(FsError::NotDirectory));
}

#[test]
fn a_removal_takes_a_name_and_nothing_else() {
    let world = traps();
    for path in ["f", "out", "way", "hard", "fifo"] {
        remove(&world, path).unwrap();
        assert!(fs::symlink_metadata(world.inside(path)).is_err(), "{path}");
    }
    assert_eq!(fs::read(world.outside("secret")).unwrap(), CANARY);
    assert_eq!(fs::read(world.outside("folder/secret")).unwrap(), CANARY);
    let before = snapshot(world.root());
    for (path, what, error) in [
        ("f", Removal::File, FsError::NotFound),
        ("d", Removal::File, FsError::IsDirectory),
        ("d", Removal::EmptyFolder, FsError::NotEmpty),
        ("d/g", Removal::EmptyFolder, FsError::NotDirectory),
        ("", Removal::File, FsError::IsDirectory),
        ("", Removal::EmptyFolder, FsError::IsDirectory),
    ] {
        assert_eq!(remove_as(&world, path, what, None), Err(not_done(error)), "{path}");
    }
    assert_eq!(snapshot(world.root()), before);
    remove(&world, "d/g").unwrap();
    remove_as(&world, "d", Removal::EmptyFolder, None).unwrap();
    assert!(!world.inside("d").exists());
}

/// The file and its place as a caller sees them, and what neither may do.
#[test]
fn a_file_gets_another_name_in_its_folder_or_another() {
    let world = traps();
    let moved = rename(&world, "f", "d/h").unwrap();
    assert_eq!(moved, Renamed { size_bytes: 4, folders: 0, replaced: false });
    assert_eq!(fs::read(world.inside("d/h")).unwrap(), b"file");
    assert!(!world.inside("f").exists());
    let refuse = (Existing::Refuse, Parents::Require);
    let refused = rename_with(&world, ("d/h", "d/g"), refuse, &mut |_| Ok(()));
    assert_eq!(refused, Err(not_done(FsError::Exists)));
    assert!(rename(&world, "d/h", "d/g").unwrap().replaced);
    assert_eq!(fs::read(world.inside("d/g")).unwrap(), b"file");
    // Onto itself nothing happens.
    assert!(rename(&world, "d/g", "d/g").unwrap().replaced);
    assert_eq!(fs::read(world.inside("d/g")).unwrap(), b"file");
    let create = (Existing::Refuse, Parents::Create(FolderMode::Private));
    let mut folders = 0;
    let mut count = |charge| {
        folders += u32::from(charge == Charge::Folder);
        Ok(())
    };
    let moved = rename_with(&world, ("d/g", "a/b/c"), create, &mut count).unwrap();
    assert_eq!((moved.folders, folders), (2, 2));
    assert_eq!(fs::read(world.inside("a/b/c")).unwrap(), b"file");
}

#[test]
fn move_of_anything_but_a_plain_file_is_refused() {
    let world = traps();
    fs::write(world.inside("sealed"), "kept").unwrap();
    fs::set_permissions(world.inside("sealed"), fs::Permissions::from_mode(0o444)).unwrap();
    let before = snapshot(world.root());
    for (from, to, error) in [
        ("out", "x", FsError::Link),
        ("way", "x", FsError::Link),
        ("hard", "x", FsError::ManyLinks),
        ("fifo", "x", FsError::NotRegular),
        ("d", "x", FsError::IsDirectory),
        ("", "x", FsError::IsDirectory),
        ("none", "x", FsError::NotFound),
        ("sealed", "x", FsError::Denied),
        ("f", "sealed", FsError::Denied),
        ("f", "out", FsError::Link),
        ("f", "hard", FsError::ManyLinks),
        ("f", "fifo", FsError::NotRegular),
        ("f", "d", FsError::IsDirectory),
        ("f", "", FsError::IsDirectory),
        ("f", "none/x", FsError::NotFound),
        ("f", "f/x", FsError::NotDirectory),
        // Links on the way lead out, as source and as target.
        ("way/secret", "x", FsError::Link),
        ("f", "way/x", FsError::Link),
    ] {
        assert_eq!(rename(&world, from, to), Err(not_done(error)), "{from} to {to}");
    }
    assert_eq!(remove(&world, "way/secret"), Err(not_done(FsError::Link)));
    assert_eq!(remove(&world, "sealed"), Err(not_done(FsError::Denied)));
    let create = (Existing::Replace, Parents::Create(FolderMode::Private));
    let refused = rename_with(&world, ("f", "way/y/x"), create, &mut |_| Ok(()));
    assert_eq!(refused, Err(not_done(FsError::Link)));
    let refused = rename_with(&world, ("f", "y/x"), create, &mut |_| Err(Refused));
    assert_eq!(refused, Err(not_done(FsError::Refused)));
    assert_eq!(snapshot(world.root()), before);
}

/// No home is made, moved or taken apart by its names.
#[test]
fn homes_and_keys_keep_theirs() {
    let world = World::new();
    fs::create_dir_all(world.inside("home/keys")).unwrap();
    fs::write(world.inside("home/home.db"), "log").unwrap();
    fs::write(world.inside("f"), "file").unwrap();
    fs::write(world.inside("policy.key"), b"\xa5\x63use key").unwrap();
    fs::write(world.inside("like"), b"\xa5\x63use key").unwrap();
    let before = snapshot(world.root());
    for path in ["home/home.db", "home/keys/x", "home.db", "policy.key"] {
        assert_eq!(remove(&world, path), Err(not_done(FsError::Home)), "{path}");
        assert_eq!(rename(&world, path, "x"), Err(not_done(FsError::Home)), "{path}");
    }
    for path in ["home/x", "home.db", "policy.key", "d/HOME.DB"] {
        assert_eq!(rename(&world, "f", path), Err(not_done(FsError::Home)), "{path}");
    }
    // What would be a key under its new name.
    assert_eq!(rename(&world, "like", "audit.key"), Err(not_done(FsError::Home)));
    assert_eq!(world.base.metadata(&at("home")), Err(FsError::Home));
    assert_eq!(world.base.metadata(&at("home/home.db")), Err(FsError::Home));
    let removed = remove_as(&world, "home", Removal::EmptyFolder, None);
    assert_eq!(removed, Err(not_done(FsError::Home)));
    assert_eq!(snapshot(world.root()), before);
}

/// What was approved is what is there, or nothing is done.
#[test]
fn change_of_an_unexpected_file_is_refused() {
    let world = traps();
    let digest = |text: &str| Some(<[u8; 32]>::from(Sha256::digest(text)));
    let before = snapshot(world.root());
    let removed = remove_as(&world, "f", Removal::File, digest("other"));
    assert_eq!(removed, Err(not_done(FsError::Changed)));
    let (from, to) = (at("f"), at("d/g"));
    let rename = |expected| {
        let turns =
            world.base.turns(&from, &to, Parents::Require, Duration::ZERO, &mut |_| Ok(()))?;
        world.base.rename(turns, &Rename { existing: Existing::Replace, expected })
    };
    for expected in [[digest("other"), None], [None, digest("other")], [digest("file"), digest("")]]
    {
        assert_eq!(rename(expected), Err(not_done(FsError::Changed)));
    }
    assert_eq!(snapshot(world.root()), before);
    assert!(rename([digest("file"), digest("below")]).is_ok());
    remove_as(&world, "d/g", Removal::File, digest("file")).unwrap();
}

/// Somebody exchanges the file while folders are made for it: what lies outside keeps its content.
#[test]
fn a_file_exchanged_before_its_turn_is_not_moved() {
    let world = traps();
    let secret = world.outside("secret");
    let create = (Existing::Refuse, Parents::Create(FolderMode::Private));
    let mut exchange = |_: Charge| {
        fs::remove_file(world.inside("f")).unwrap();
        symlink(&secret, world.inside("f")).unwrap();
        Ok(())
    };
    let moved = rename_with(&world, ("f", "new/x"), create, &mut exchange);
    let failed = WriteFailure { error: FsError::Link, effect: Effect::Partly, folders: 1 };
    assert_eq!(moved, Err(failed));
    assert_eq!(fs::read(&secret).unwrap(), CANARY);
    assert_eq!(world.base.metadata(&at("new/x")), Err(FsError::NotFound));
}

/// A mount among the files is another device, whichever way a rename would go.
/// A file system that folds letters opens a key by a name that is none: what was opened is one.
#[test]
fn a_key_is_one_under_another_letter() {
    let world = World::new();
    // The Kelvin sign is a `k` to such file systems.
    let name = "policy.\u{212a}ey";
    fs::write(world.inside(name), KEY_FILE_BEGINS).unwrap();
    fs::write(world.inside("\u{fc}ber.txt"), "no key").unwrap();
    let before = snapshot(world.root());
    assert_eq!(world.read(name, Links::Refuse), Err(FsError::Home));
    assert_eq!(world.put(name, b"x").unwrap_err().error, FsError::Home);
    assert_eq!(world.put("n\u{e9}w", &KEY_FILE_BEGINS).unwrap_err().error, FsError::Home);
    assert_eq!(rename(&world, name, "x"), Err(not_done(FsError::Home)));
    assert_eq!(remove(&world, name), Err(not_done(FsError::Home)));
    assert_eq!(snapshot(world.root()), before);
    assert_eq!(world.read("\u{fc}ber.txt", Links::Refuse).unwrap(), b"no key");
}

#[test]
fn no_name_crosses_into_a_mount() {
    with_mounts("beneath::changes::no_name_crosses_into_a_mount", || {
        let world = World::new();
        fs::write(world.inside("f"), "file").unwrap();
        fs::create_dir_all(world.inside("bound")).unwrap();
        mount(&["--bind", world.outside("").to_str().unwrap()], &world.inside("bound"));
        assert_eq!(rename(&world, "f", "bound/x"), Err(not_done(FsError::OtherDevice)));
        assert_eq!(rename(&world, "bound/secret", "x"), Err(not_done(FsError::OtherDevice)));
        assert_eq!(remove(&world, "bound/secret"), Err(not_done(FsError::OtherDevice)));
        assert_eq!(world.base.metadata(&at("bound/secret")), Err(FsError::OtherDevice));
        assert_eq!(fs::read(world.outside("secret")).unwrap(), CANARY);
    });
}
