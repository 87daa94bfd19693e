//! Vectors of `verification.md` whose chain, or whose end, is not what it must be. Those of what the
//! records say are made by the verifier's own tests, which compare them
//! (`tests/support/kernel/src/driver/vectors.rs`).

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::small;
use kernel_support::driver::vectors::file_of;
use syscap_format::{Encoder, Profile};

/// The text of `logs/chain.json`.
pub(crate) fn chain() -> String {
    let base = Log::of(&small(|_, _| {}));
    let with = |change: &dyn Fn(&mut Log)| {
        let mut log = base.clone();
        change(&mut log);
        log
    };
    let last = base.records.len() - 1;
    let all = [
        (None, "as it was", base.clone()),
        (None, "nothing", with(&|log| log.records.clear())),
        (None, "a byte more in a record", with(&|log| log.records[2].push(0))),
        (Some("SYSCAP-VER-002"), "half of a record", with(&|log| log.records[2].truncate(40))),
        (None, "no record at all", with(&|log| log.records[2] = vec![0xa0])),
        (None, "a record of 65,536 bytes", with(&|log| log.records[2].resize(65_536, 0))),
        (
            None,
            "a version from before the formats were settled",
            with(&|log| log.records[2] = set(&log.records[2], 0, 1)),
        ),
        (None, "a record is missing", with(&|log| drop(log.records.remove(2)))),
        (None, "a record stands twice", with(&|log| log.records.insert(3, log.records[2].clone()))),
        (None, "two records have changed places", with(&|log| log.records.swap(2, 3))),
        (
            None,
            "a record with another time, its link kept",
            with(&|log| log.records[2] = set(&log.records[2], 4, 1 << 41)),
        ),
        (None, "no genesis", with(&|log| log.records[0] = set(&log.records[2], 1, 0))),
        (None, "a genesis of boot 1", with(&|log| log.records[0] = set(&log.records[0], 5, 1))),
        (None, "another home", with(&|log| log.records[0] = set(&log.records[0], 4, 7))),
        (None, "no end", with(&|log| log.records.truncate(last))),
        (None, "no end, and an open intent", with(&|log| log.records.truncate(11))),
        (
            None,
            "a kind of a later version",
            with(&|log| log.records[last] = set(&log.records[last], 3, 30)),
        ),
        (
            None,
            "a later version of a kind",
            with(&|log| log.records[last] = set(&log.records[last], 0, 3)),
        ),
        (
            Some("SYSCAP-VER-005"),
            "a later kind, and then a break of the chain",
            with(&|log| {
                log.records[last - 1] = set(&log.records[last - 1], 0, 3);
            }),
        ),
        (
            Some("SYSCAP-VER-006"),
            "a fault, and then a later kind",
            with(&|log| {
                log.records[2] = set(&log.records[2], 5, 9);
                log.records[last] = set(&log.records[last], 3, 30);
            }),
        ),
        (None, "an object that is not its name's", with(&|log| log.objects[0].bytes.push(0))),
        (None, "an object is missing", with(&|log| drop(log.objects.remove(0)))),
    ];
    file_of("chain", &base, &all)
}

/// A record with another unsigned integer under one of its first keys.
fn set(bytes: &[u8], key: u64, value: u64) -> Vec<u8> {
    let mut decoder = syscap_format::Decoder::new(bytes, Profile::CONTROL);
    let count = decoder.map_head().expect("a record");
    let mut encoder = Encoder::new();
    encoder.map(usize::try_from(count).expect("few"));
    for _ in 0..count {
        let found = decoder.uint().expect("a key");
        let item = decoder.item().expect("a value");
        encoder.uint(found);
        if found == key {
            encoder.uint(value);
        } else {
            encoder.item(item);
        }
    }
    encoder.into_bytes()
}
