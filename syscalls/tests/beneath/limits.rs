//! Sizes: nothing is allocated or answered on the word of a file's size.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;

use syscap_syscalls::beneath::{FsError, Location};

use crate::beneath::support::{SIZE_MAX, World};

#[test]
fn sparse_file_of_one_tebibyte() {
    let world = World::new();
    let size = 1 << 40;
    File::create(world.inside("sparse")).unwrap().set_len(size).unwrap();
    let at = Location::new(&["sparse"]).unwrap();
    assert_eq!(world.base.open_file(&at, SIZE_MAX).map(drop), Err(FsError::TooLarge));
    let file = world.base.open_file(&at, u64::MAX).unwrap();
    assert_eq!(file.size_bytes(), size);
    let chunk = file.read(0, 4096).unwrap();
    assert_eq!((chunk.bytes.len(), chunk.more, chunk.size_bytes), (4096, true, size));
    assert!(chunk.bytes.capacity() <= 1 << 17, "{}", chunk.bytes.capacity());
    let end = file.read(size - 10, 4096).unwrap();
    assert_eq!((end.bytes.len(), end.more), (10, false));
}

#[test]
fn a_size_that_was_claimed_is_not_allocated() {
    let world = World::new();
    let sparse = File::create(world.inside("sparse")).unwrap();
    sparse.set_len(1 << 40).unwrap();
    let file = world.base.open_file(&Location::new(&["sparse"]).unwrap(), u64::MAX).unwrap();
    sparse.set_len(3).unwrap();
    let chunk = file.read(0, usize::MAX).unwrap();
    assert_eq!((chunk.bytes.len(), chunk.more, chunk.size_bytes), (3, false, 3));
    assert!(chunk.bytes.capacity() <= 1 << 17, "{}", chunk.bytes.capacity());
}

#[test]
fn the_size_limit_is_inclusive() {
    let world = World::new();
    fs::write(world.inside("f"), b"12345").unwrap();
    let at = Location::new(&["f"]).unwrap();
    assert!(world.base.open_file(&at, 5).is_ok());
    assert_eq!(world.base.open_file(&at, 4).map(drop), Err(FsError::TooLarge));
}

#[test]
fn a_huge_limit_allocates_nothing() {
    let world = World::new();
    fs::write(world.inside("f"), b"12345").unwrap();
    let file = world.base.open_file(&Location::new(&["f"]).unwrap(), 5).unwrap();
    let chunk = file.read(0, usize::MAX).unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.more), (b"12345".as_slice(), false));
    assert!(chunk.bytes.capacity() < 1000);
}

#[test]
fn every_offset_and_limit() {
    let world = World::new();
    // Longer than the step in which the buffer grows.
    let content: Vec<u8> = (0..200_000_u32).flat_map(u32::to_le_bytes).collect();
    fs::write(world.inside("f"), &content).unwrap();
    let file = world.base.open_file(&Location::new(&["f"]).unwrap(), u64::MAX).unwrap();
    let len = content.len();
    let marks = [0, 1, 65_535, 65_536, 65_537, 131_072, len - 1, len, len + 1, usize::MAX];
    for offset in marks {
        for limit in marks {
            let chunk = file.read(offset as u64, limit).unwrap();
            let rest = content.get(offset..).unwrap_or_default();
            let expected = &rest[..limit.min(rest.len())];
            assert!(chunk.bytes == expected, "{offset} {limit}");
            assert_eq!(chunk.more, expected.len() < rest.len(), "{offset} {limit}");
        }
    }
    assert_eq!(file.read(i64::MAX as u64, 10).unwrap().bytes, b"");
}

#[test]
fn a_file_that_grows_or_shrinks() {
    let world = World::new();
    fs::write(world.inside("f"), b"12345").unwrap();
    let file = world.base.open_file(&Location::new(&["f"]).unwrap(), 5).unwrap();
    let mut other = OpenOptions::new().append(true).open(world.inside("f")).unwrap();
    other.write_all(b"67890").unwrap();
    let chunk = file.read(0, 7).unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.more), (b"1234567".as_slice(), true));
    assert_eq!((file.size_bytes(), chunk.size_bytes), (5, 10));
    other.set_len(3).unwrap();
    let chunk = file.read(0, 7).unwrap();
    assert_eq!((chunk.bytes.as_slice(), chunk.more), (b"123".as_slice(), false));
    assert_eq!(file.read(5, 7).unwrap().bytes, b"");
}

#[test]
fn a_replaced_file_stays_readable_by_its_handle() {
    let world = World::new();
    world.put("f", b"old").unwrap();
    let file = world.base.open_file(&Location::new(&["f"]).unwrap(), 5).unwrap();
    world.put("f", b"new").unwrap();
    assert_eq!(file.read(0, 10).unwrap().bytes, b"old");
}
