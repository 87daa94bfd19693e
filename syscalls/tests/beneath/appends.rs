//! Files that are added to: what is behind what is known goes, and nothing else is touched.

use std::{fs, os::unix::fs::symlink, time::Duration};

use rustix::fs::{CWD, FileType, Mode, mknodat};
use syscap_syscalls::beneath::{
    Append, Behind, CHUNK_BYTES, Charge, Effect, FolderMode, FsError, Location, Parents, Refused,
    WriteFailure,
};

use crate::beneath::support::{World, mount, names, snapshot, turn, with_mounts};

fn append(world: &World, path: &str, from_bytes: u64, text: &[u8]) -> Result<(), WriteFailure> {
    let at = Location::new(&names(path)).unwrap();
    let behind = Behind::Torn(1_000, |bytes| !bytes.starts_with(b"whole"));
    let job = Append { from_bytes, content: text, behind };
    let parents = Parents::Create(FolderMode::Private);
    let turn = world.base.turn(&at, parents, &[], Duration::ZERO, &mut |_| Ok(()))?;
    world.base.append(&turn, &job, &mut |_| Ok(()))
}

fn not_done(error: FsError) -> WriteFailure {
    WriteFailure { error, effect: Effect::NotDone, folders: 0 }
}

#[test]
fn append_goes_behind_the_known_length() {
    let world = World::new();
    append(&world, "d/log", 0, b"one").unwrap();
    append(&world, "d/log", 3, b"two").unwrap();
    assert_eq!(fs::read(world.inside("d/log")).unwrap(), b"onetwo");
    // What a crash left behind what is known is cut away.
    append(&world, "d/log", 3, b"2").unwrap();
    assert_eq!(fs::read(world.inside("d/log")).unwrap(), b"one2");
    assert_eq!(append(&world, "d/log", 9, b"x"), Err(not_done(FsError::Changed)));
    assert_eq!(append(&world, "d/none", 1, b"x"), Err(not_done(FsError::Changed)));
    assert_eq!(fs::read(world.inside("d/log")).unwrap(), b"one2");
    assert!(!world.inside("d/none").exists());
    // What another process added is left.
    fs::write(world.inside("d/log"), "one2whole frame").unwrap();
    assert_eq!(append(&world, "d/log", 4, b"x"), Err(not_done(FsError::Changed)));
    assert_eq!(fs::read(world.inside("d/log")).unwrap(), b"one2whole frame");
}

#[test]
fn a_no_of_the_meter_leaves_what_was_known() {
    let world = World::new();
    append(&world, "log", 0, b"known").unwrap();
    let at = Location::new(&["log"]).unwrap();
    let content = vec![b'x'; CHUNK_BYTES * 2];
    let job = Append { from_bytes: 5, content: &content, behind: Behind::Nothing };
    let turn = turn(&*world.base, &at).unwrap();
    let mut pieces = 0;
    let failed = world.base.append(&turn, &job, &mut |charge| {
        pieces += u32::from(matches!(charge, Charge::Bytes(_)));
        if pieces == 2 { Err(Refused) } else { Ok(()) }
    });
    assert_eq!((failed, pieces), (Err(not_done(FsError::Refused)), 2));
    assert_eq!(fs::read(world.inside("log")).unwrap(), b"known");
}

#[test]
fn append_takes_plain_files_only() {
    let world = World::new();
    symlink("../outside/secret", world.inside("out")).unwrap();
    symlink("../outside/folder", world.inside("way")).unwrap();
    fs::hard_link(world.outside("secret"), world.inside("hard")).unwrap();
    fs::create_dir_all(world.inside("home")).unwrap();
    fs::write(world.inside("home/home.db"), "").unwrap();
    mknodat(CWD, world.inside("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let before = snapshot(world.root());
    for (path, error) in [
        ("out", FsError::Link),
        ("way/secret", FsError::Link),
        ("way/new", FsError::Link),
        ("hard", FsError::ManyLinks),
        ("fifo", FsError::NotRegular),
        ("home", FsError::IsDirectory),
        ("home/log", FsError::Home),
        ("home.db", FsError::Home),
        ("", FsError::IsDirectory),
    ] {
        assert_eq!(append(&world, path, 0, b"gone"), Err(not_done(error)), "{path}");
    }
    assert_eq!(snapshot(world.root()), before);
}

/// Where the disk is full, what was known stays, and no more.
#[test]
fn a_full_disk_leaves_what_was_known() {
    with_mounts("beneath::appends::a_full_disk_leaves_what_was_known", || {
        let world = World::new();
        fs::create_dir_all(world.inside("small")).unwrap();
        mount(&["-t", "tmpfs", "-o", "size=64k", "none"], &world.inside("small"));
        let base = crate::beneath::support::open(&world.inside("small")).unwrap();
        let at = Location::new(&["log"]).unwrap();
        let add = |from_bytes, content: &[u8]| {
            let turn = turn(&*base, &at)?;
            base.append(
                &turn,
                &Append { from_bytes, content, behind: Behind::Nothing },
                &mut |_| Ok(()),
            )
        };
        add(0, b"known").unwrap();
        assert_eq!(add(5, &vec![1; 200_000]), Err(not_done(FsError::NoSpace)));
        assert_eq!(fs::read(world.inside("small/log")).unwrap(), b"known");
        add(5, b"more").unwrap();
    });
}
