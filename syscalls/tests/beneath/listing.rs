//! Listings: order, limit, kinds.

use std::fs;

use syscap_syscalls::beneath::{Entry, FsError, Kind, Listing, Location, SCAN_MAX};

use crate::beneath::support::World;

fn entry(name: &str, kind: Kind, size_bytes: u64) -> Entry {
    Entry { name: name.as_bytes().to_vec(), kind, size_bytes }
}

#[test]
fn sorted_with_kinds_and_sizes() {
    let world = World::new();
    fs::create_dir(world.inside("b")).unwrap();
    fs::write(world.inside("c"), b"123").unwrap();
    fs::write(world.inside("a"), b"").unwrap();
    fs::write(world.inside("B"), b"1").unwrap();
    let listing = world.base.list(&Location::default(), 100).unwrap();
    let entries = vec![
        entry("B", Kind::File, 1),
        entry("a", Kind::File, 0),
        entry("b", Kind::Directory, 0),
        entry("c", Kind::File, 3),
    ];
    assert_eq!(listing, Listing { entries, truncated: false });
    let empty = world.base.list(&Location::new(&["b"]).unwrap(), 0).unwrap();
    assert_eq!(empty, Listing { entries: vec![], truncated: false });
}

#[test]
fn a_limit_keeps_the_first_names_whatever_their_order_on_disk() {
    let world = World::new();
    for n in (0..500).rev() {
        fs::write(world.inside(&format!("{n:03}")), b"").unwrap();
    }
    fs::write(world.inside(".syscap-0.tmp"), b"").unwrap();
    for limit in [0, 1, 10, 499, 500, 501, usize::MAX] {
        let listing = world.base.list(&Location::default(), limit).unwrap();
        let names: Vec<_> = listing.entries.into_iter().map(|entry| entry.name).collect();
        let all = (0..500).map(|n| format!("{n:03}").into_bytes());
        assert_eq!(names, all.take(limit).collect::<Vec<_>>());
        assert_eq!(listing.truncated, limit < 500, "{limit}");
    }
}

#[test]
fn a_directory_over_the_scan_limit_is_refused() {
    let world = World::fast();
    for n in 0..SCAN_MAX {
        rustix::fs::mknodat(
            rustix::fs::CWD,
            world.inside(&n.to_string()),
            rustix::fs::FileType::RegularFile,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
    }
    let listing = world.base.list(&Location::default(), 3).unwrap();
    assert_eq!((listing.entries.len(), listing.truncated), (3, true));
    fs::write(world.inside("one more"), b"").unwrap();
    assert_eq!(world.base.list(&Location::default(), 3), Err(FsError::TooLarge));
}
