//! One change of a name at a time: what was read is what is replaced.

use std::{fs, thread, time::Duration};

use syscap_syscalls::beneath::{
    Effect, Existing, FolderMode, FsError, Location, Opener, Parents, Removal, Rename, Turn, Write,
    WriteFailure,
};

use crate::beneath::support::{SIZE_MAX, World, fresh_temp, names, replacing, snapshot, turn};

fn at(path: &str) -> Location {
    Location::new(&names(path)).unwrap()
}

fn wait(base: &dyn Opener, path: &str, ms: u64) -> Result<Turn, WriteFailure> {
    base.turn(&at(path), Parents::Require, &[], Duration::from_millis(ms), &mut |_| Ok(()))
}

/// Adds one to the number that a file holds.
fn count(base: &dyn Opener, path: &str) {
    let turn = wait(base, path, 60_000).unwrap();
    let file = base.open_file(&at(path), SIZE_MAX).unwrap();
    let text = String::from_utf8(file.read(0, 1 << 10).unwrap().bytes).unwrap();
    let (next, temp) = ((text.parse::<u64>().unwrap() + 1).to_string(), fresh_temp());
    let made_from = Some(&file);
    let job = Write { made_from, ..replacing(next.as_bytes(), &temp) };
    base.write(turn, &job, &mut |_| Ok(())).unwrap();
}

#[test]
fn no_change_of_two_at_once_is_lost() {
    let world = World::new();
    fs::write(world.inside("n"), "0").unwrap();
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..25).for_each(|_| count(&*world.base, "n")));
        }
    });
    assert_eq!(fs::read_to_string(world.inside("n")).unwrap(), "100");
}

/// Whatever changes a name waits for who has it, and does nothing where that takes too long; who
/// changes another name does not wait.
#[test]
fn a_name_that_somebody_has_is_busy() {
    let world = World::new();
    for name in ["f", "g"] {
        fs::write(world.inside(name), name).unwrap();
    }
    fs::create_dir(world.inside("d")).unwrap();
    let before = snapshot(world.root());
    let busy = WriteFailure { error: FsError::Busy, effect: Effect::NotDone, folders: 0 };
    let held = turn(&*world.base, &at("f")).unwrap();
    assert_eq!(wait(&*world.base, "f", 10).map(drop), Err(busy));
    let turns = |from, to| {
        let wait = Duration::from_millis(10);
        world.base.turns(&at(from), &at(to), Parents::Require, wait, &mut |_| Ok(()))
    };
    assert_eq!(turns("f", "h").map(drop), Err(busy));
    assert_eq!(turns("g", "f").map(drop), Err(busy));
    assert_eq!(snapshot(world.root()), before);
    // None of both names was kept.
    drop(turns("g", "h").unwrap());
    drop(wait(&*world.base, "d/f", 0).unwrap());
    drop(held);
    let [from, to] = turns("f", "f").unwrap();
    drop((from, to));
    // Folders that were made for a change that is not made stay, and that is said.
    let parents = Parents::Create(FolderMode::Private);
    let made =
        world.base.turn(&at("new/f"), parents, &[], Duration::ZERO, &mut |_| Ok(())).unwrap();
    assert_eq!(made.folders(), 1);
    // The folder has another name now: it is the same file.
    fs::rename(world.inside("new"), world.inside("old")).unwrap();
    assert_eq!(wait(&*world.base, "old/f", 10).map(drop), Err(busy));
}

/// A folder that became a home while somebody waited is changed no more.
#[test]
fn a_folder_that_is_a_home_by_then_is_left_alone() {
    let world = World::new();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/f"), "old").unwrap();
    let held = turn(&*world.base, &at("d/f")).unwrap();
    let waited = thread::scope(|scope| {
        let waits = scope.spawn(|| wait(&*world.base, "d/f", 60_000).map(drop));
        // It has opened the folder by then, or does so now and finds the home: the same answer.
        thread::sleep(Duration::from_millis(50));
        fs::write(world.inside("d/home.db"), "").unwrap();
        drop(held);
        waits.join().unwrap()
    });
    let home = WriteFailure { error: FsError::Home, effect: Effect::NotDone, folders: 0 };
    assert_eq!(waited, Err(home));
}

/// A turn is over with the change.
#[test]
fn a_change_ends_the_turn() {
    let world = World::new();
    let (base, temp) = (&*world.base, fresh_temp());
    let job = replacing(b"one", &temp);
    base.write(turn(base, &at("f")).unwrap(), &job, &mut |_| Ok(())).unwrap();
    let turns = base.turns(&at("f"), &at("g"), Parents::Require, Duration::ZERO, &mut |_| Ok(()));
    let job = Rename { existing: Existing::Refuse, expected: [None; 2] };
    base.rename(turns.unwrap(), &job).unwrap();
    base.remove(turn(base, &at("g")).unwrap(), Removal::File, None).unwrap();
    assert!(base.remove(turn(base, &at("g")).unwrap(), Removal::File, None).is_err());
    for name in ["f", "g"] {
        drop(turn(base, &at(name)).unwrap());
    }
}

/// Another program has no turn. What it did is seen before the rename, even where it put the same
/// text there: another file may have another label.
#[test]
fn a_file_that_another_program_exchanged_is_not_replaced() {
    let world = World::new();
    let same = |text: &str| fs::write(world.inside("f"), text).unwrap();
    let exchange = |text: &str| {
        fs::write(world.inside("other"), text).unwrap();
        fs::rename(world.inside("other"), world.inside("f")).unwrap();
    };
    let changes: [&dyn Fn(); 4] =
        [&|| exchange("read"), &|| same("longer than that"), &|| same("else"), &|| {
            fs::remove_file(world.inside("f")).unwrap()
        }];
    for change in changes {
        same("read");
        let held = turn(&*world.base, &at("f")).unwrap();
        let file = world.base.open_file(&at("f"), SIZE_MAX).unwrap();
        let (expected, temp) = (Some(file.digest().unwrap()), fresh_temp());
        change();
        let before = snapshot(world.root());
        let made_from = Some(&file);
        let job = Write { expected, made_from, ..replacing(b"written", &temp) };
        let failed = world.base.write(held, &job, &mut |_| Ok(())).unwrap_err();
        assert_eq!((failed.error, failed.effect), (FsError::Changed, Effect::NotDone));
        assert_eq!(snapshot(world.root()), before);
    }
}
