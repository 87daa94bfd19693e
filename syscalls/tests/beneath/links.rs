//! Symbolic links: none is followed but by `resolve`, and none out of the base at all.

use std::{fs, os::unix::fs::symlink};

use syscap_syscalls::beneath::{FsError, Kind, Location};

use crate::beneath::support::{CANARY, Links, World, locate};

/// Links out, in every form.
fn world() -> World {
    let world = World::new();
    fs::create_dir_all(world.inside("d/e")).unwrap();
    fs::write(world.inside("d/ok"), b"ok").unwrap();
    for (name, target) in [
        ("up", "../outside/secret"),
        ("up_folder", "../outside"),
        ("up_slash", "../outside/"),
        ("d/e/up", "../../../outside/secret"),
        ("there_and_back", "../inside/d/ok"),
        ("parent", ".."),
        ("chain", "d/chain"),
        ("d/chain", "../up"),
    ] {
        symlink(target, world.inside(name)).unwrap();
    }
    symlink(world.outside("secret"), world.inside("absolute")).unwrap();
    symlink(world.outside("folder"), world.inside("absolute_folder")).unwrap();
    symlink(world.inside("d/ok"), world.inside("absolute_inside")).unwrap();
    symlink("/", world.inside("root")).unwrap();
    world
}

#[test]
fn relative_symlink_out() {
    for path in ["up", "d/e/up", "there_and_back", "parent", "chain", "up_folder"] {
        world().assert_refused(path, Links::Refuse, FsError::Link);
        world().assert_refused(path, Links::FollowWithin, FsError::Escapes);
    }
}

#[test]
fn absolute_symlink_out_or_in() {
    for path in ["absolute", "absolute_folder", "absolute_inside", "root"] {
        world().assert_refused(path, Links::Refuse, FsError::Link);
        world().assert_refused(path, Links::FollowWithin, FsError::Escapes);
    }
}

#[test]
fn child_of_a_symlink() {
    for path in ["up_folder/secret", "absolute_folder/secret", "root/etc/passwd", "parent/outside"]
    {
        world().assert_refused(path, Links::Refuse, FsError::Link);
        world().assert_refused(path, Links::FollowWithin, FsError::Escapes);
    }
}

#[test]
fn symlink_with_a_trailing_slash() {
    world().assert_refused("up_slash", Links::Refuse, FsError::Link);
    world().assert_refused("up_slash", Links::FollowWithin, FsError::Escapes);
    world().assert_refused("up_slash/secret", Links::FollowWithin, FsError::Escapes);
    world().assert_refused("up_slash/", Links::FollowWithin, FsError::BadName);
    // What stands behind a name that is no folder is taken by name: whether it is a file, or there
    // at all, makes no difference.
    let world = World::new();
    fs::write(world.inside("file"), b"file").unwrap();
    for (name, target) in [
        ("slash", "file/"),
        ("dot", "file/."),
        ("up", "file/../file"),
        ("gone", "none/../file"),
        ("below", "file/below/../../file/"),
    ] {
        symlink(target, world.inside(name)).unwrap();
        let at = locate(&*world.base, &[name], Links::FollowWithin).unwrap();
        assert_eq!(at, Location::new(&["file"]).unwrap(), "{name}");
        assert_eq!(world.read(name, Links::FollowWithin).unwrap(), b"file");
        world.assert_refused(name, Links::Refuse, FsError::Link);
    }
}

#[test]
fn a_new_file_through_a_dangling_symlink_out() {
    let world = World::new();
    symlink("../outside/new", world.inside("way")).unwrap();
    symlink(world.outside("new"), world.inside("absolute_way")).unwrap();
    world.assert_refused("way", Links::FollowWithin, FsError::Escapes);
    world.assert_refused("absolute_way", Links::FollowWithin, FsError::Escapes);
    let linked = world.put("way", b"x").unwrap_err().error;
    assert_eq!(linked, FsError::Link);
    assert!(!world.outside("new").exists());
}

#[test]
fn loops_and_long_chains_end() {
    let world = World::new();
    symlink("loop", world.inside("loop")).unwrap();
    symlink("b", world.inside("a")).unwrap();
    symlink("a/x", world.inside("b")).unwrap();
    fs::write(world.inside("l0"), b"end").unwrap();
    for n in 1..=41 {
        symlink(format!("l{}", n - 1), world.inside(&format!("l{n}"))).unwrap();
    }
    for path in ["loop", "a", "l41", "loop/x"] {
        world.assert_refused(path, Links::FollowWithin, FsError::Link);
    }
    assert_eq!(world.read("l40", Links::FollowWithin).unwrap(), b"end");
    // Few links, and names without end.
    symlink("./".repeat(1_000), world.inside("wide")).unwrap();
    symlink("wide/wide/l0", world.inside("far")).unwrap();
    assert_eq!(locate(&*world.base, &["wide"], Links::FollowWithin), Ok(Location::default()));
    world.assert_refused("far", Links::FollowWithin, FsError::Link);
}

#[test]
fn locate_gives_the_real_place() {
    let world = World::new();
    fs::create_dir_all(world.inside("other/deep")).unwrap();
    fs::create_dir_all(world.inside("mine")).unwrap();
    fs::write(world.inside("other/deep/f"), b"theirs").unwrap();
    symlink("../other", world.inside("mine/way")).unwrap();
    symlink("way/deep/./../deep//f", world.inside("mine/file")).unwrap();
    symlink("../new", world.inside("mine/new")).unwrap();
    for (written, real) in [
        (vec!["mine", "way", "deep", "f"], vec!["other", "deep", "f"]),
        (vec!["mine", "file"], vec!["other", "deep", "f"]),
        (vec!["mine", "way", "none", "x"], vec!["other", "none", "x"]),
        (vec!["mine", "new"], vec!["new"]),
        (vec![], vec![]),
    ] {
        let found = locate(&*world.base, &written, Links::FollowWithin).unwrap();
        assert_eq!(found, Location::new(&real).unwrap());
        assert_eq!(found.names().collect::<Vec<_>>(), real);
    }
    assert_eq!(world.read("mine/file", Links::FollowWithin).unwrap(), b"theirs");
}

/// Nothing is looked at where the caller does not let it be, nor behind what was not looked at: a
/// link there is a name like any.
#[test]
fn only_what_may_be_followed_is_looked_at() {
    let world = World::new();
    for folder in ["mine", "theirs/deep"] {
        fs::create_dir_all(world.inside(folder)).unwrap();
    }
    fs::write(world.inside("mine/f"), b"mine").unwrap();
    symlink("../../mine", world.inside("theirs/deep/back")).unwrap();
    symlink("../theirs/deep/back/f", world.inside("mine/way")).unwrap();
    symlink("../theirs/deep/back/../../../mine/last", world.inside("mine/past")).unwrap();
    symlink("f", world.inside("mine/last")).unwrap();
    let asked = std::cell::RefCell::new(Vec::new());
    let follow = |names: &[&str]| {
        asked.borrow_mut().clear();
        let may_follow = |at: &Location| {
            asked.borrow_mut().push(at.clone());
            at.names().next() == Some("mine")
        };
        world.base.resolve(&Location::new(names).unwrap(), &may_follow)
    };
    let at = |names: &[&str]| Ok(Location::new(names).unwrap());
    assert_eq!(follow(&["mine", "way"]), at(&["theirs", "deep", "back", "f"]));
    assert!(asked.borrow().contains(&Location::new(&["theirs", "deep", "back"]).unwrap()));
    // By name past it, and then on where it may.
    assert_eq!(follow(&["mine", "past"]), at(&["mine", "f"]));
    assert_eq!(follow(&["theirs", "deep", "back", "f"]), at(&["theirs", "deep", "back", "f"]));
}

#[test]
fn located_file_is_the_one_opened() {
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/secret"), b"inside").unwrap();
    symlink("d", world.inside("way")).unwrap();
    let at = locate(&*world.base, &["way", "secret"], Links::FollowWithin).unwrap();
    // The checked place becomes a link out after the check.
    fs::rename(world.inside("d"), world.inside("old")).unwrap();
    symlink("../outside", world.inside("d")).unwrap();
    assert_eq!(world.base.open_file(&at, 100).map(drop), Err(FsError::Link));
    assert_eq!(fs::read(world.outside("secret")).unwrap(), CANARY);
}

#[test]
fn a_link_is_listed_as_a_link() {
    let world = world();
    let listing = world.base.list(&Location::default(), 100).unwrap();
    for entry in listing.entries {
        let directory = entry.name == b"d";
        assert_eq!(entry.kind, if directory { Kind::Directory } else { Kind::Link });
        assert_eq!(entry.size_bytes, 0, "not the size of its target");
    }
}
