//! Near misses: what somebody may have meant.

use alloc::{string::String, vec::Vec};

/// Most edits between a word and what is suggested for it.
const EDITS_MAX: usize = 2;
/// Longest word for which near misses are looked for, in bytes: ids and names are shorter.
const WORD_BYTES_MAX: usize = 200;
/// Most words that are listed whole.
const LISTED_MAX: usize = 12;

/// The word of `valid` that is nearest to `word`: an edit away, else the only one that begins
/// with it, else two edits away.
pub(crate) fn near<'v>(word: &str, valid: impl IntoIterator<Item = &'v str>) -> Option<&'v str> {
    let mut best: Option<(usize, &str)> = None;
    let mut longer: Option<&str> = None;
    let mut longer_count = 0_usize;
    for candidate in valid {
        if !word.is_empty() && candidate.starts_with(word) {
            longer_count = longer_count.saturating_add(1);
            longer = Some(candidate);
        }
        let Some(edits) = edits(word, candidate) else { continue };
        // Two edits make any three letters nearly any other three.
        let alike = edits.saturating_mul(2) <= word.len().min(candidate.len());
        if alike && best.is_none_or(|(least, _)| edits < least) {
            best = Some((edits, candidate));
        }
    }
    match best {
        Some((0 | 1, candidate)) => Some(candidate),
        _ => longer.filter(|_| longer_count == 1).or(best.map(|(_, candidate)| candidate)),
    }
}

/// The near miss, else all that is valid where that is short.
pub(crate) fn near_or_all(word: &str, valid: &[&str]) -> Option<String> {
    if let Some(found) = near(word, valid.iter().copied()) {
        return Some(String::from(found));
    }
    let few = (1..=LISTED_MAX).contains(&valid.len());
    few.then(|| valid.join(", "))
}

/// How many characters must be put in, taken out or exchanged; `None` for more than
/// [`EDITS_MAX`].
fn edits(a: &str, b: &str) -> Option<usize> {
    if a.len().max(b.len()) > WORD_BYTES_MAX || a.len().abs_diff(b.len()) > EDITS_MAX {
        return None;
    }
    let b: Vec<u8> = b.bytes().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.bytes().enumerate() {
        let mut corner = n;
        let mut left = n.saturating_add(1);
        let mut next = Vec::with_capacity(row.len());
        next.push(left);
        for (y, above) in b.iter().zip(row.iter().skip(1)) {
            let exchanged = if x == *y { corner } else { corner.saturating_add(1) };
            left = exchanged.min(above.saturating_add(1)).min(left.saturating_add(1));
            corner = *above;
            next.push(left);
        }
        row = next;
    }
    row.last().copied().filter(|edits| *edits <= EDITS_MAX)
}
