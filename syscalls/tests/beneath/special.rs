//! Things that have a harmless name: hard links, mounts, FIFOs, devices, sockets.

use std::{fs, os::unix::net::UnixListener, path::Path, process::Command};

use rustix::fs::{CWD, FileType, Mode, inotify, mknodat};
use rustix::io::Errno;
use syscap_syscalls::beneath::{FsError, Kind, Location, Opener};

use crate::beneath::support::{
    CANARY, Links, OPENERS, SIZE_MAX, World, is_openat2, is_root, locate, mount, open, snapshot,
    with_mounts,
};

/// The kind and size a listing of the base shows for `name`.
fn listed(base: &dyn Opener, name: &str) -> (Kind, u64) {
    let listing = base.list(&Location::default(), 100).unwrap();
    let entry = listing.entries.iter().find(|entry| entry.name == name.as_bytes()).unwrap();
    (entry.kind, entry.size_bytes)
}

#[test]
fn hard_link_to_a_file_outside() {
    let world = World::new();
    fs::hard_link(world.outside("secret"), world.inside("link")).unwrap();
    let before = snapshot(world.root());
    for links in [Links::Refuse, Links::FollowWithin] {
        assert_eq!(world.read("link", links), Err(FsError::ManyLinks));
    }
    assert_eq!(world.put("link", b"gone").unwrap_err().error, FsError::ManyLinks);
    assert_eq!(listed(&*world.base, "link"), (Kind::Other, 0), "its size is a fact from outside");
    assert_eq!(snapshot(world.root()), before);
}

/// Asserts that nothing opens `path` while `body` runs. An `O_PATH` handle is no opening.
pub(crate) fn assert_unopened(path: &Path, body: impl FnOnce()) {
    let flags = inotify::CreateFlags::NONBLOCK | inotify::CreateFlags::CLOEXEC;
    let watch = inotify::init(flags).unwrap();
    inotify::add_watch(&watch, path, inotify::WatchFlags::OPEN).unwrap();
    body();
    let mut buffer = [std::mem::MaybeUninit::uninit(); 512];
    let seen = inotify::Reader::new(&watch, &mut buffer).next().map(|event| event.events());
    assert_eq!(seen, Err(Errno::AGAIN), "{} was opened", path.display());
}

fn assert_special(world: &World, name: &str) {
    assert_unopened(&world.inside(name), || {
        for links in [Links::Refuse, Links::FollowWithin] {
            assert_eq!(world.read(name, links), Err(FsError::NotRegular));
            assert_eq!(world.list(name, links), Err(FsError::NotDirectory));
        }
        assert_eq!(world.put(name, b"x").unwrap_err().error, FsError::NotRegular);
        assert_eq!(listed(&*world.base, name), (Kind::Other, 0));
    });
}

#[test]
fn fifo_neither_blocks_nor_is_opened() {
    let world = World::new();
    mknodat(CWD, world.inside("fifo"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    assert_special(&world, "fifo");
}

#[test]
fn character_device_is_not_opened() {
    let world = World::new();
    let null = rustix::fs::makedev(1, 3);
    let made = mknodat(CWD, world.inside("null"), FileType::CharacterDevice, Mode::RWXU, null);
    if made.is_err() {
        println!("skipped: mknod needs root ({made:?}, root: {})", is_root());
        return;
    }
    assert_special(&world, "null");
}

#[test]
fn socket_is_not_opened() {
    let world = World::new();
    let _listener = UnixListener::bind(world.inside("socket")).unwrap();
    assert_special(&world, "socket");
}

#[test]
fn bind_mount_inside() {
    with_mounts("beneath::special::bind_mount_inside", || {
        let world = World::new();
        fs::create_dir_all(world.inside("d/bind")).unwrap();
        fs::write(world.inside("file"), b"").unwrap();
        let (from, secret) = (world.outside(""), world.outside("secret"));
        // Both are on the base's own device: only the kernel's walk can tell.
        mount(&["--bind", from.to_str().unwrap()], &world.inside("d/bind"));
        mount(&["--bind", secret.to_str().unwrap()], &world.inside("file"));
        for links in [Links::Refuse, Links::FollowWithin] {
            for path in ["d/bind", "d/bind/secret", "d/bind/folder", "d/bind/new", "file"] {
                world.assert_refused(path, links, FsError::OtherDevice);
            }
        }
        assert_eq!(listed(&*world.base, "file"), (Kind::Other, 0));
        let d = world.base.list(&Location::new(&["d"]).unwrap(), 10).unwrap();
        assert_eq!((d.entries[0].kind, d.entries[0].size_bytes), (Kind::Other, 0));
        assert_eq!(fs::read(world.outside("secret")).unwrap(), CANARY);
    });
}

#[test]
fn other_file_system_inside() {
    with_mounts("beneath::special::other_file_system_inside", || {
        let world = World::new();
        fs::create_dir(world.inside("proc")).unwrap();
        mount(&["-t", "tmpfs", "none"], &world.inside("proc"));
        fs::write(world.inside("proc/f"), CANARY).unwrap();
        for path in ["proc", "proc/f", "proc/new"] {
            world.assert_refused(path, Links::Refuse, FsError::OtherDevice);
        }
        assert_eq!(listed(&*world.base, "proc"), (Kind::Other, 0));
        // A base of its own there is the operator's choice, and works.
        let base = open(&world.inside("proc")).unwrap();
        let at = Location::new(&["f"]).unwrap();
        assert_eq!(base.open_file(&at, SIZE_MAX).unwrap().read(0, 100).unwrap().bytes, CANARY);
    });
}

/// Neither opener enters a mount, of another file system or of a folder of the same.
#[test]
fn no_opener_enters_a_mount() {
    if !is_openat2() {
        return;
    }
    with_mounts("beneath::special::no_opener_enters_a_mount", || {
        let world = World::new();
        for name in ["other", "same"] {
            fs::create_dir(world.inside(name)).unwrap();
        }
        mount(&["-t", "tmpfs", "none"], &world.inside("other"));
        fs::create_dir(world.inside("other/folder")).unwrap();
        fs::write(world.inside("other/secret"), CANARY).unwrap();
        fs::write(world.inside("other/folder/secret"), CANARY).unwrap();
        mount(&["--bind", world.outside("").to_str().unwrap()], &world.inside("same"));
        for (name, open) in OPENERS {
            let base = open(&world.inside("")).unwrap();
            for path in ["other/secret", "other/folder/secret", "same/secret", "same/folder/secret"]
            {
                let at = Location::new(&path.split('/').collect::<Vec<_>>()).unwrap();
                let opened = base.open_file(&at, 100).map(drop);
                assert_eq!(opened, Err(FsError::OtherDevice), "{name}: {path}");
                assert_eq!(base.metadata(&at), Err(FsError::OtherDevice), "{name}: {path}");
            }
        }
    });
}

/// A file of another device without a mount on the way: `NO_XDEV` doesn't see it.
#[test]
fn file_of_another_device_on_an_overlay() {
    with_mounts("beneath::special::file_of_another_device_on_an_overlay", || {
        let world = World::new();
        for dir in ["lower", "upper"] {
            fs::create_dir(world.outside(dir)).unwrap();
            mount(&["-t", "tmpfs", "none"], &world.outside(dir));
        }
        fs::create_dir(world.outside("upper/upper")).unwrap();
        fs::create_dir(world.outside("upper/work")).unwrap();
        fs::write(world.outside("lower/f"), CANARY).unwrap();
        let part = |path| world.outside(path).to_str().unwrap().to_owned();
        let (lower, upper, work) = (part("lower"), part("upper/upper"), part("upper/work"));
        let how = format!("lowerdir={lower},upperdir={upper},workdir={work},xino=off");
        let mut mounted = Command::new("mount");
        mounted.args(["-t", "overlay", "none", "-o", &how]);
        if !mounted.arg(world.inside("")).status().unwrap().success() {
            println!("skipped: no overlay here");
            return;
        }
        let base = open(&world.inside("")).unwrap();
        let at = Location::new(&["f"]).unwrap();
        assert_eq!(base.open_file(&at, 100).map(drop), Err(FsError::OtherDevice));
        assert_eq!(listed(&*base, "f"), (Kind::Other, 0));
        let found = locate(&*base, &["f"], Links::FollowWithin).unwrap();
        assert_eq!(base.open_file(&found, 100).map(drop), Err(FsError::OtherDevice));
    });
}

#[test]
fn directory_as_file_and_file_as_directory() {
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("f"), b"f").unwrap();
    let before = snapshot(world.root());
    for path in ["d", ""] {
        assert_eq!(world.read(path, Links::Refuse), Err(FsError::IsDirectory));
        assert_eq!(world.put(path, b"x").unwrap_err().error, FsError::IsDirectory);
    }
    assert_eq!(world.list("f", Links::Refuse), Err(FsError::NotDirectory));
    assert_eq!(snapshot(world.root()), before);
}
