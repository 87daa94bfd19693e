//! The time, with the hour and the day of the week that follow from it.

use alloc::{collections::BTreeSet, vec::Vec};

use syscap_policy::{Attribute, Given, Truth, Value, semantics, time};

use super::constants::integer_constants;
use super::sieve::{Asked, Shape, Sieve};

const HOUR_MS: i128 = 3_600_000;
const HOURS_A_WEEK: usize = 168;

/// Between two constants only hour and day matter: the first instant of each hour of a week.
pub(super) fn fill(sieve: &mut Sieve<'_, '_>) -> bool {
    let most = i128::from(u64::MAX);
    let mut starts = BTreeSet::from([0]);
    let mut hours = 1;
    for Asked { atom, .. } in sieve.asked {
        if atom.attribute != Attribute::NowMs {
            hours = HOURS_A_WEEK;
            continue;
        }
        for bound in integer_constants(&atom.ask) {
            starts.extend([bound, bound.saturating_add(1)]);
        }
    }
    let starts: Vec<i128> = starts.into_iter().filter(|ms| (0..=most).contains(ms)).collect();
    for (n, start) in starts.iter().enumerate() {
        let after = starts.get(n.saturating_add(1)).copied();
        let end = after.unwrap_or(most.saturating_add(1));
        let mut ms = *start;
        // One more than a week has: an interval may begin within an hour.
        for _ in 0..=hours {
            if ms >= end {
                break;
            }
            instant(sieve, ms);
            let past = ms.checked_rem(HOUR_MS).unwrap_or(0);
            ms = ms.saturating_sub(past).saturating_add(HOUR_MS);
        }
    }
    true
}

/// All that varies with the time, at a time.
pub(crate) fn at(ms: u64) -> impl Iterator<Item = (Attribute, Given)> {
    let all = Attribute::TABLE.iter().filter_map(|row| row.attribute.clone());
    all.filter_map(move |attribute| {
        let value = time(&attribute, ms)?;
        Some((attribute, Given::Int(i128::from(value))))
    })
}

fn instant(sieve: &mut Sieve<'_, '_>, ms: i128) {
    let Ok(ms) = u64::try_from(ms) else { return };
    let answer = |one: &Asked<'_>| {
        let value = time(&one.atom.attribute, ms).map_or(Value::Missing, |n| Value::Int(n.into()));
        semantics::ask(&one.atom.ask, &value)
    };
    let answers: Vec<Truth> = sieve.asked.iter().map(answer).collect();
    sieve.take(at(ms), answers, Shape::Leaf);
}
