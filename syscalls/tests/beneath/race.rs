//! A thread swaps names with links out of the base while the calls run: none ever escapes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use syscap_syscalls::beneath::{Effect, Existing, FsError, Location, Parents, Rename};

use crate::beneath::support::{CANARY, Links, World, is_openat2, snapshot};

/// How many reads each of the four races makes with `SYSCAP_SOAK`: ten million of each opener, of
/// which `cap-std` is started twice, with `openat2` and without. A fifth with `SYSCAP_LONG`.
const SOAK: u32 = 2_500_000;

/// How many reads each race makes. Each opens a name that is exchanged meanwhile.
fn reads() -> u32 {
    let (soak, usual) = if is_openat2() { (SOAK, 25_000) } else { (SOAK / 2, 8_000) };
    let is_set = |name| std::env::var_os(name).is_some();
    match (is_set("SYSCAP_SOAK"), is_set("SYSCAP_LONG")) {
        (true, _) => soak,
        (false, true) => soak / 5,
        (false, false) => usual,
    }
}
/// One in so many calls is a write.
const WRITE_EVERY: u32 = 50;

/// Exchanges two names as fast as it can until it is dropped.
fn while_swapping<R>(one: &Path, other: &Path, body: impl FnOnce() -> R) -> (R, u64) {
    let (stop, swaps) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let swapped = renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE);
                swaps.fetch_add(u64::from(swapped.is_ok()), Ordering::Relaxed);
            }
        });
        // The race begins when both run.
        while swaps.load(Ordering::Relaxed) == 0 {
            std::thread::yield_now();
        }
        // A failing assertion must not leave the thread running.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(body));
        stop.store(true, Ordering::Relaxed);
        let result = result.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (result, swaps.load(Ordering::Relaxed))
    })
}

/// Makes calls on `path` while it is swapped, and prints how they ended.
fn run(world: &World, name: &str, path: &str, swap: [&str; 2], links: Links, writes: bool) {
    let before = snapshot(&world.outside(""));
    let (mut read, mut refused, mut written, mut write_refused) = (0, 0, 0, 0);
    let ((), swaps) = while_swapping(&world.inside(swap[0]), &world.inside(swap[1]), || {
        for n in 0..reads() {
            match world.read(path, links) {
                Ok(bytes) => {
                    assert_ne!(bytes, CANARY, "read from outside after {n} reads");
                    assert!(bytes == b"inside" || bytes == b"written");
                    read += 1;
                }
                Err(FsError::Link | FsError::Escapes | FsError::ManyLinks | FsError::Busy) => {
                    refused += 1;
                }
                Err(other) => panic!("{other:?}"),
            }
            if writes && n % WRITE_EVERY == 0 {
                match world.put("d/new", b"written") {
                    Ok(_) => written += 1,
                    Err(failure) => {
                        assert_eq!(
                            (failure.error, failure.effect),
                            (FsError::Link, Effect::NotDone)
                        );
                        write_refused += 1;
                    }
                }
            }
        }
    });
    assert_eq!(snapshot(&world.outside("")), before, "{name}: outside changed");
    println!(
        "race {name}: {} opens during {swaps} swaps; reads {read} ok, {refused} refused; \
         writes {written} ok, {write_refused} refused; 0 escapes",
        read + refused + written + write_refused
    );
    assert!(read > 0 && refused > 0, "{name}: the race was never lost or never won");
}

/// `d` holds a file of the same name as the secret outside.
fn world() -> World {
    let world = World::fast();
    fs::create_dir(world.inside("d")).unwrap();
    fs::write(world.inside("d/secret"), b"inside").unwrap();
    world
}

#[test]
fn directory_swapped_with_a_symlink_out() {
    let world = world();
    symlink("../outside", world.inside("l")).unwrap();
    run(&world, "directory/symlink", "d/secret", ["d", "l"], Links::Refuse, true);
}

#[test]
fn directory_swapped_with_a_symlink_out_links_followed() {
    let world = world();
    symlink(world.outside(""), world.inside("l")).unwrap();
    run(&world, "directory/symlink, followed", "d/secret", ["d", "l"], Links::FollowWithin, false);
}

#[test]
fn file_swapped_with_a_symlink_out() {
    let world = world();
    symlink("../../outside/secret", world.inside("d/l")).unwrap();
    run(&world, "file/symlink", "d/secret", ["d/secret", "d/l"], Links::Refuse, true);
}

#[test]
fn file_swapped_with_a_hard_link_out() {
    let world = world();
    fs::hard_link(world.outside("secret"), world.inside("d/l")).unwrap();
    run(&world, "file/hard link", "d/secret", ["d/secret", "d/l"], Links::Refuse, true);
}

/// The target of the writes itself is swapped with a hard link and a symlink out: at most its
/// name is replaced, never its content.
#[test]
fn target_of_a_write_swapped_with_links_out() {
    let world = world();
    let before = snapshot(&world.outside(""));
    let (mut written, mut refused, mut swaps) = (0, 0, 0);
    for n in 0..2000 {
        let link = world.inside("l");
        if n % 2 == 0 {
            symlink("../outside/secret", &link).unwrap();
        } else {
            fs::hard_link(world.outside("secret"), &link).unwrap();
        }
        let target = world.inside("f");
        fs::write(&target, b"inside").unwrap();
        let (done, some) = while_swapping(&target, &link, || {
            (0..10).find_map(|_| world.put("f", b"written").err().map(|failure| failure.error))
        });
        match done {
            None => written += 1,
            Some(FsError::Link | FsError::ManyLinks) => refused += 1,
            Some(other) => panic!("{other:?}"),
        }
        swaps += some;
        fs::remove_file(&link).unwrap();
        fs::remove_file(&target).unwrap();
    }
    assert_eq!(snapshot(&world.outside("")), before);
    println!("race write target: {swaps} swaps; {written} rounds ok, {refused} with a refusal");
    assert!(swaps > 0);
}

/// Somebody exchanges the file with a link out after it was judged: what lies outside keeps its
/// content, and the caller is told that it does not know what it moved.
#[test]
fn a_file_exchanged_before_its_rename_is_told() {
    let world = world();
    let before = snapshot(&world.outside(""));
    let (from, to) = (Location::new(&["f"]).unwrap(), Location::new(&["g"]).unwrap());
    let job = Rename { existing: Existing::Replace, expected: [None; 2] };
    let (mut moved, mut told) = (0, 0);
    // As many rounds as it takes, where one processor has much else to do.
    for round in 0..200_000 {
        if round > reads() / 100 && moved > 0 && told > 0 {
            break;
        }
        let (file, link) = (world.inside("f"), world.inside("l"));
        fs::write(&file, b"inside").unwrap();
        symlink("../outside/secret", &link).unwrap();
        let (done, _) = while_swapping(&file, &link, || {
            let turns =
                world.base.turns(&from, &to, Parents::Require, Duration::ZERO, &mut |_| Ok(()))?;
            world.base.rename(turns, &job)
        });
        match done {
            Ok(_) => {
                assert!(world.base.open_file(&to, 100).is_ok(), "it is the file that was moved");
                moved += 1;
            }
            Err(failure) if failure.effect == Effect::Unknown => {
                assert_eq!(failure.error, FsError::Changed);
                told += 1;
            }
            Err(failure) => {
                assert!([FsError::Link, FsError::Changed].contains(&failure.error), "{failure:?}")
            }
        }
        for name in ["f", "g", "l"] {
            fs::remove_file(world.inside(name)).unwrap_or_default();
        }
    }
    assert_eq!(snapshot(&world.outside("")), before);
    println!("race rename: {moved} moved, {told} told that it may be another");
    assert!(moved > 0 && told > 0);
}

/// A file that others replace all the time is still read, whole: old or new.
#[test]
fn file_replaced_by_writes() {
    let world = world();
    world.put("f", &[0; 5000]).unwrap();
    let stop = AtomicBool::new(false);
    let reads = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for n in 0..5000_u32 {
                world.put("f", &[n as u8; 5000]).unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        let mut reads = 0_u64;
        while !stop.load(Ordering::Relaxed) && !writer.is_finished() {
            let bytes = world.read("f", Links::Refuse).unwrap();
            assert!(bytes.len() == 5000 && bytes.iter().all(|byte| *byte == bytes[0]), "torn");
            reads += 1;
        }
        reads
    });
    println!("race replaced: {reads} reads during 5000 writes");
}

/// The rule this layer replaces: canonicalise, compare prefixes, open. It loses the same race.
#[test]
fn control_canonicalise_and_prefix_escapes() {
    let world = world();
    symlink("../outside", world.inside("l")).unwrap();
    let inside = world.inside("").canonicalize().unwrap();
    let path = world.inside("d/secret");
    let begun = Instant::now();
    let ((escapes, tries), swaps) = while_swapping(&world.inside("d"), &world.inside("l"), || {
        let (mut escapes, mut tries) = (0, 0);
        while tries < 100_000 || (escapes == 0 && begun.elapsed() < Duration::from_secs(20)) {
            tries += 1;
            let real = path.canonicalize();
            if !real.is_ok_and(|real| real.starts_with(&inside)) {
                continue;
            }
            escapes += u32::from(fs::read(&path).is_ok_and(|bytes| bytes == CANARY));
        }
        (escapes, tries)
    });
    println!("race control: {swaps} swaps; {tries} tries, {escapes} escapes");
    if escapes == 0 {
        println!("the control did not fire: the machine is too calm to prove anything");
    }
}
