//! Bytes and records that were changed, left out, doubled or moved, without the skill or the
//! right to make the chain anew.

use kernel_support::driver::log::Log;
use kernel_support::driver::scenario::{everything, small};
use syscap_format::{Head, Record, Seq, leaf};
use syscap_verify::{Extent, Fault, Options, Soundness};

/// Where a log ends, as its store says.
fn extent(log: &Log) -> Extent {
    let bytes = log.records.last().unwrap();
    let seq = Record::decode(bytes).unwrap().seq;
    Extent::Head(Head { seq, leaf: leaf(bytes) })
}

/// The first fault of a changed log, as the store's head stood before.
fn fault(log: &Log, extent: Extent) -> Option<(u64, Fault)> {
    let report = log.verify_with(extent, &Options::default());
    let sound = report.verdict() == Soundness::Sound;
    assert_eq!(sound, report.findings_count == 0 && report.open_intents.is_empty());
    report.findings.first().map(|finding| (finding.seq.get(), finding.fault))
}

/// One bit of a byte, each in turn.
fn flip(log: &mut Log, record: usize, byte: usize) {
    log.records[record][byte] ^= 1 << (byte % 8);
}

#[test]
fn no_byte_of_a_small_log_can_be_changed() {
    let mut log = Log::of(&small(|_, _| {}));
    let extent = extent(&log);
    assert_eq!(fault(&log, extent), None);
    for record in 0..log.records.len() {
        for byte in 0..log.records[record].len() {
            flip(&mut log, record, byte);
            let (seq, _) = fault(&log, extent).expect("found");
            let record = record as u64;
            assert!(seq == record || seq == record + 1, "record {record} byte {byte}: {seq}");
            flip(&mut log, record as usize, byte);
        }
    }
    assert_eq!(fault(&log, extent), None);
}

#[test]
fn no_byte_of_a_record_of_any_kind_can_be_changed() {
    let mut log = Log::of(&everything());
    let extent = extent(&log);
    for record in 0..log.records.len() {
        let len = log.records[record].len();
        for byte in (record % 97..len).step_by(97) {
            flip(&mut log, record, byte);
            assert!(fault(&log, extent).is_some(), "record {record} byte {byte}");
            flip(&mut log, record, byte);
        }
    }
    assert_eq!(fault(&log, extent), None);
}

#[test]
fn records_can_not_be_left_out_doubled_or_moved() {
    let whole = Log::of(&everything());
    let extent = extent(&whole);
    let count = whole.records.len();
    let at = |place: usize, fault| Some((place as u64, fault));
    for place in 0..count {
        let mut log = whole.clone();
        log.records.remove(place);
        let missing = if place + 1 == count { Fault::HeadMoved } else { Fault::Gap };
        assert_eq!(fault(&log, extent), at(place, missing));

        let mut log = whole.clone();
        let record = log.records[place].clone();
        log.records.insert(place, record);
        assert_eq!(fault(&log, extent), at(place + 1, Fault::Gap));

        let mut log = whole.clone();
        log.records.truncate(place);
        assert_eq!(fault(&log, extent), at(place, Fault::HeadMoved));
        if place + 1 < count {
            let mut log = whole.clone();
            log.records.swap(place, place + 1);
            assert_eq!(fault(&log, extent), at(place, Fault::Gap));
        }
        let mut log = whole.clone();
        let half = log.records[place].len() / 2;
        log.records[place].truncate(half);
        assert_eq!(fault(&log, extent), at(place, Fault::Undecodable));

        let mut log = whole.clone();
        log.records[place].push(0xf6);
        assert_eq!(fault(&log, extent), at(place, Fault::Undecodable));
    }
}

/// A log that was cut off is sound by itself. By a head that was noted it is found.
#[test]
fn log_that_was_cut_off_has_not_the_noted_head() {
    let whole = Log::of(&small(|_, _| {}));
    let heads: Vec<Head> = (0..)
        .map(Seq::new)
        .zip(&whole.records)
        .map(|(seq, bytes)| Head { seq, leaf: leaf(bytes) })
        .collect();
    let found = |log: &Log, noted: Head| {
        let options = Options { noted: Some(noted), ..Options::default() };
        let report = log.verify_with(Extent::AtRest, &options);
        assert_eq!(report.noted, Some(noted));
        report.findings.iter().map(|one| (one.seq, one.fault)).collect::<Vec<_>>()
    };
    for (place, noted) in heads.iter().enumerate() {
        assert_eq!(found(&whole, *noted), []);
        for len in 1..=heads.len() {
            let mut cut = whole.clone();
            cut.records.truncate(len);
            let missing = (Seq::new(len as u64), Fault::HeadMoved);
            assert_eq!(found(&cut, *noted), if len > place { vec![] } else { vec![missing] });
        }
        let other = Head { leaf: heads[(place + 1) % heads.len()].leaf, ..*noted };
        assert_eq!(found(&whole, other), [(noted.seq, Fault::HeadMoved)]);
    }
}

#[test]
fn a_record_changed_with_its_link_kept_breaks_the_next() {
    let whole = Log::of(&small(|_, _| {}));
    let extent = extent(&whole);
    for place in 0..whole.records.len() {
        let mut log = whole.clone();
        let mut record = log.record(place);
        record.time = record.time.plus(1);
        log.records[place] = record.encode();
        let last = place + 1 == whole.records.len();
        let found = if last { Fault::HeadMoved } else { Fault::Unchained };
        let report = log.verify_with(extent, &Options::default());
        let at = report.findings.last().unwrap();
        assert_eq!((at.seq.get(), at.fault), (place as u64 + 1, found));
    }
}

#[test]
fn records_of_other_versions_and_sizes_are_not_read() {
    let whole = Log::of(&small(|_, _| {}));
    let extent = extent(&whole);
    let change = |bytes: &[u8], with: &dyn Fn(&mut Vec<u8>)| {
        let mut log = whole.clone();
        let mut bytes = bytes.to_vec();
        with(&mut bytes);
        log.records[3] = bytes;
        fault(&log, extent).unwrap()
    };
    let record = &whole.records[3];
    assert_eq!(record[1..3], [0, 2], "key 0, version 2");
    assert_eq!(change(record, &|bytes| bytes[2] = 1), (3, Fault::UnknownForm));
    // Newer ones can't be judged; but the next record shows that they were changed.
    assert_eq!(change(record, &|bytes| bytes[2] = 4), (4, Fault::Unchained));
    // A policy without a reason has no form of one that has.
    assert_eq!(change(record, &|bytes| bytes[2] = 3), (3, Fault::BadControl));
    // seq and prev take 2 + 1 + 34 bytes more; then comes key 3 with the kind.
    let kind = record.windows(3).position(|w| w == [3, 9, 4]).expect("kind of a policy record");
    let reserved = change(record, &|bytes| bytes[kind + 1] = 14);
    assert_eq!(reserved, (4, Fault::Unchained));
    let large = change(record, &|bytes| bytes.resize(65_536, 0));
    assert_eq!(large, (3, Fault::TooLarge));
}

#[test]
fn a_log_begins_with_its_genesis() {
    let mut log = Log::of(&small(|_, _| {}));
    log.records.remove(0);
    assert_eq!(fault(&log, Extent::AtRest), Some((0, Fault::Gap)));
    log.forge(|_| {});
    assert_eq!(fault(&log, Extent::AtRest), Some((0, Fault::NotGenesis)));
    assert_eq!(log.record(0).seq, Seq::GENESIS);
    let mut log = Log::of(&small(|_, _| {}));
    log.forge(|records| records[0].boot = 1);
    assert_eq!(fault(&log, Extent::AtRest), Some((0, Fault::NotGenesis)));
}
