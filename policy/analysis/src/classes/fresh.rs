//! Names that no constant is.

use alloc::{string::String, vec::Vec};

/// A value that stands for a class.
pub(super) enum Fresh<T> {
    /// It was seen to be in the class.
    Found(T),
    /// There is none: the shortest name is too long.
    Empty,
    /// None was found, and there may be one.
    Unknown,
}

/// The first name of which `make` makes something free: the usual name, else the shortest ones. Each
/// of `taken` constants takes one name at most.
pub(super) fn fresh<T>(
    usual: &str,
    taken: usize,
    make: impl Fn(&str) -> Option<T>,
    is_free: impl Fn(&T) -> bool,
) -> Fresh<T> {
    let first = [usual].into_iter().filter(|usual| !usual.is_empty()).filter_map(&make);
    let others = (0..=taken).map(short).filter_map(|name| make(&name));
    match first.chain(others).find(|value| is_free(value)) {
        Some(value) => Fresh::Found(value),
        None if make("a").is_none() => Fresh::Empty,
        None => Fresh::Unknown,
    }
}

/// Adds what was found; false if there may be more.
pub(super) fn add<T>(all: &mut Vec<T>, found: Fresh<T>) -> bool {
    match found {
        Fresh::Found(value) => {
            all.push(value);
            true
        }
        Fresh::Empty => true,
        Fresh::Unknown => false,
    }
}

/// The nth name of letters and digits, the shortest first.
fn short(n: usize) -> String {
    const LETTERS: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
    let (mut name, mut rest) = (Vec::new(), n.saturating_add(1));
    while let Some(left) = rest.checked_sub(1) {
        let letter = left.checked_rem(LETTERS.len()).unwrap_or_default();
        name.extend(LETTERS.get(letter).copied().map(char::from));
        rest = left.checked_div(LETTERS.len()).unwrap_or_default();
    }
    name.into_iter().rev().collect()
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_distinct_and_the_shortest_first() {
        let names: Vec<String> = (0..2_000).map(short).collect();
        assert_eq!((&*names[0], &*names[35], &*names[36], &*names[1_332]), ("a", "9", "aa", "aaa"));
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        assert!(names.windows(2).all(|pair| pair[0].len() <= pair[1].len()));
    }
}
