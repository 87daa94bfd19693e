//! What a log costs its verifier: counted, and proportional to its length.

use syscap_format::{Record, RecordKind};
use syscap_verify::{Extent, Fault, Options, TrustSource};

use super::check;
use kernel_support::driver::log::{Keys, Log};
use kernel_support::driver::scenario::every_kind;

/// The base up to a record, and that record so many times more; what was passed over.
fn passed_over(base: &Log, place: usize, times: usize) -> u64 {
    let mut log = base.clone();
    log.records.truncate(place + 1);
    log.forge_with(Keys::Elsewhere, |records| {
        let one = records[place].clone();
        records.extend(std::iter::repeat_n(one, times));
    });
    let trust = TrustSource::Given(Box::new(base.trust()));
    let report = log.verify_with(Extent::AtRest, &Options { trust, ..Options::default() });
    assert_eq!(report.records, u64::try_from(log.records.len()).unwrap());
    report.passed_over
}

/// Of each kind of record a log that is twice as long costs twice as much, and no more.
#[test]
fn twice_as_many_records_of_a_kind_are_twice_the_work() {
    const TIMES: usize = 400;
    let base = Log::of(&every_kind());
    let mut kinds = 0;
    for kind in RecordKind::ALL {
        let Some(place) = base.places(*kind).last().copied() else { continue };
        kinds += 1;
        let [none, once, twice] = [0, TIMES, 2 * TIMES].map(|n| passed_over(&base, place, n));
        let (once, twice) = (once - none, twice - none);
        println!("{kind}: {once} and {twice} entries");
        assert!(twice <= 2 * once + 100, "{kind}: {once}, then {twice}");
    }
    assert!(kinds > 20, "{kinds} kinds");
}

/// A kernel has at most 32 requests of an agent that wait.
#[test]
fn request_beyond_the_room_for_them_is_found() {
    let mut log = Log::of(&every_kind());
    let place = log.places(RecordKind::Ask)[0];
    log.records.truncate(place + 1);
    let copies = |count: usize| {
        move |records: &mut Vec<Record>| {
            let one = records[place].clone();
            records.extend(std::iter::repeat_n(one, count));
        }
    };
    check(
        &log,
        &[
            ("as many as there is room for", &copies(31), &[]),
            ("one more", &copies(32), &[(place + 32, Fault::AskForm)]),
        ],
    );
}
