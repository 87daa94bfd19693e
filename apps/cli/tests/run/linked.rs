//! Files of a workspace that have another name outside.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

use crate::run::world::{PYTHON, World};

/// A file outside, and names of it in the workspace.
fn linked(world: &World, names: &[&str]) -> std::path::PathBuf {
    let outside = world.home.beside("cache");
    fs::create_dir_all(&outside).unwrap();
    let file = outside.join("api.py");
    fs::write(&file, "good").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    for name in names {
        let name = world.work().join(name);
        fs::create_dir_all(name.parent().unwrap()).unwrap();
        fs::hard_link(&file, name).unwrap();
    }
    file
}

const WRITE: [&str; 3] = ["/bin/sh", "-c", "echo evil > lib/api.py; chmod 777 lib/api.py"];

#[test]
fn file_with_a_name_outside_is_refused_copied_or_passed() {
    let Some(world) = World::new() else { return };
    let file = linked(&world, &["lib/api.py", "lib/again.py", ".git/objects/aa/bb"]);
    let before = fs::metadata(&file).unwrap();
    let refused = world.run(&[], &WRITE).failed(2);
    assert!(
        refused.err.contains("--linked copy") && refused.err.contains("/lib/"),
        "{}",
        refused.err
    );
    // By bytes of its own, which all names inside share.
    let copied = world.run(&["--linked", "copy"], &WRITE);
    assert_eq!(copied.code, 0, "{}", copied.err);
    assert_eq!(fs::read_to_string(&file).unwrap(), "good");
    let after = fs::metadata(&file).unwrap();
    assert_eq!((after.mode(), after.mtime(), after.nlink()), (before.mode(), before.mtime(), 1));
    let again = world.work().join("lib/again.py");
    assert_eq!(fs::read_to_string(&again).unwrap(), "evil\n");
    assert_eq!(fs::metadata(&again).unwrap().nlink(), 3);
    assert_eq!(fs::read_dir(world.work().join("lib")).unwrap().count(), 2, "no copy is left");
    // Nothing has a name outside any more.
    assert_eq!(world.run(&[], &["/bin/true"]).code, 0);
    fs::remove_dir_all(world.work().join("lib")).unwrap();
    fs::remove_dir_all(world.work().join(".git")).unwrap();
    let file = linked(&world, &["lib/api.py"]);
    let passed = world.run(&["--linked", "pass"], &["/bin/true"]);
    assert!(!passed.err.contains("have changed"), "{}", passed.err);
    let passed = world.run(&["--linked", "pass"], &WRITE);
    assert!(
        passed.err.contains("have changed") && passed.err.contains("lib/api.py"),
        "{}",
        passed.err
    );
    assert_eq!(fs::read_to_string(&file).unwrap(), "evil\n");
}

#[test]
fn copy_keeps_mode_and_times() {
    let Some(world) = World::new() else { return };
    let file = linked(&world, &["x"]);
    let before = fs::metadata(&file).unwrap();
    assert_eq!(world.run(&["--linked", "copy"], &["/bin/true"]).code, 0);
    let copy = fs::metadata(world.work().join("x")).unwrap();
    assert_ne!(copy.ino(), before.ino());
    assert_eq!(
        (copy.mode(), copy.mtime(), copy.mtime_nsec(), copy.uid(), copy.len()),
        (before.mode(), before.mtime(), before.mtime_nsec(), before.uid(), before.len())
    );
}

#[test]
fn all_writable_places_are_walked_together() {
    let Some(world) = World::new() else { return };
    let (rw, state) = (world.home.text_beside("rw"), world.home.text_beside("state"));
    for folder in [&rw, &state] {
        fs::create_dir(folder).unwrap();
    }
    // Each name lies in one of them: none is outside.
    fs::write(world.work().join("a"), "a").unwrap();
    fs::hard_link(world.work().join("a"), format!("{rw}/a")).unwrap();
    fs::hard_link(world.work().join("a"), format!("{state}/a")).unwrap();
    symlink("/etc", world.work().join("link")).unwrap();
    let all = ["--rw", &rw, "--state", &state];
    assert_eq!(world.run(&all, &["/bin/true"]).code, 0);
    // A place within another, and one that is a file of it, are not counted twice.
    let inner = world.home.text_beside("work/a");
    let within = ["--rw", &rw, "--rw", &inner, "--rw", &rw];
    world.run(&within, &["/bin/true"]).failed(2);
    world.run(&["--rw", &rw], &["/bin/true"]).failed(2);
    // In places that are only read they are no matter.
    fs::remove_file(format!("{rw}/a")).unwrap();
    fs::remove_file(format!("{state}/a")).unwrap();
    let file = linked(&world, &[]);
    fs::hard_link(&file, world.home.beside("rw/x")).unwrap();
    assert_eq!(world.run(&["--ro", &rw], &["/bin/true"]).code, 0);
    // A single file that is opened can't be given other bytes.
    let single = format!("{rw}/x");
    let refused = world.run(&["--rw", &single, "--linked", "copy"], &["/bin/true"]);
    assert!(refused.code != 0 && refused.err.contains("open its folder"), "{}", refused.err);
}

#[test]
fn folder_that_can_not_be_looked_into_is_refused() {
    let Some(world) = World::new() else { return };
    // Deeper than a path may be long.
    let deep = "import os\nfor _ in range(900): os.mkdir('deeper'); os.chdir('deeper')";
    let mut made = std::process::Command::new(PYTHON);
    made.args(["-c", deep]).current_dir(world.work());
    assert!(made.status().unwrap().success());
    let refused = world.run(&[], &["/bin/true"]).failed(2);
    assert!(refused.err.contains("--linked pass"), "{}", refused.err);
    world.run(&["--linked", "copy"], &["/bin/true"]).failed(2);
    assert_eq!(world.run(&["--linked", "pass"], &["/bin/true"]).code, 0);
}
