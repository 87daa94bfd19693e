//! Vectors of `verification.md` whose chain, or whose end, is not what it must be. The verifier's
//! own tests make those of the records' contents, and compare them
//! (`tests/support/kernel/src/driver/vectors.rs`).

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{every_kind, everything, small};
use kernel_support::driver::vectors::file_of;
use syscap_format::{Encoder, Profile, Record};

use crate::random::Random;

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
            with(&|log| log.records[last] = set(&log.records[last], 0, 4)),
        ),
        (
            Some("SYSCAP-VER-005"),
            "a later kind, and then a break of the chain",
            with(&|log| {
                log.records[last - 1] = set(&log.records[last - 1], 0, 4);
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

/// The text of a file of logs that were changed by chance, chained and signed anew.
pub(crate) fn random(count: usize, seed: u64) -> Vec<String> {
    let bases = [small(|_, _| {}), everything(), every_kind()].map(|store| Log::of(&store));
    let mut random = Random::new(seed);
    let file = |base: &Log| {
        let mut logs = Vec::new();
        while logs.len() < count / bases.len() {
            let mut log = base.clone();
            if log_changed(&mut log, &mut random) {
                logs.push((None, "changed by chance", log));
            }
        }
        file_of("random", base, &logs)
    };
    bases.iter().map(file).collect()
}

/// Changes one thing of a log; false where no record would be one any more.
fn log_changed(log: &mut Log, random: &mut Random) -> bool {
    let count = log.records.len() - 1;
    let (place, other) = (1 + random.below(count), 1 + random.below(count));
    match random.below(10) {
        0 => log.forge(|records| drop(records.remove(place))),
        1 => log.forge(|records| records.insert(other, records[place].clone())),
        2 => log.forge(|records| records.swap(place, other)),
        _ => {
            let changed = changed(&log.records[place], random);
            let Ok(record) = Record::decode(&changed) else { return false };
            log.forge(|records| records[place] = record);
        }
    }
    true
}

/// The bytes of a record with one scalar of another value.
fn changed(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut scalars = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let (major, info) = (bytes[at] >> 5, bytes[at] & 31);
        let width = if info < 24 { 0 } else { 1 << (info - 24) };
        let argument =
            bytes[at + 1..=at + width].iter().fold(0, |value, byte| value << 8 | u64::from(*byte));
        let value = if width == 0 { u64::from(info) } else { argument };
        let content =
            if matches!(major, 2 | 3) { usize::try_from(value).expect("short") } else { 0 };
        if !matches!(major, 4 | 5) {
            scalars.push((at, major, value, at + 1 + width, at + 1 + width + content));
        }
        at += 1 + width + content;
    }
    let (from, major, value, start, end) = scalars[random.below(scalars.len())];
    let mut encoder = Encoder::new();
    match major {
        0 => encoder.uint(
            [value ^ 1, value + 1, value.saturating_sub(1), 0, 1, value + 1_000][random.below(6)],
        ),
        2 | 3 if end > start => {
            let mut content = bytes[start..end].to_vec();
            let place = random.below(content.len());
            content[place] ^= 1;
            match String::from_utf8(content) {
                Ok(text) if major == 3 => encoder.text(&text),
                Ok(text) => encoder.bytes(text.as_bytes()),
                Err(content) => encoder.bytes(content.as_bytes()),
            }
        }
        7 => match random.below(3) {
            0 => encoder.null(),
            1 => encoder.uint(0),
            _ => encoder.bytes(&[7; 32]),
        },
        _ => encoder.null(),
    }
    [&bytes[..from], &encoder.into_bytes(), &bytes[end..]].concat()
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
