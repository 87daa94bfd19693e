//! Paths and agents that others lie within, kept so that one search finds the innermost.

use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

use super::number::{NONE, number, place};

/// Bytes of a text that is folded without a list: few paths are longer.
const FEW: usize = 256;

/// The texts that an attribute may lie within.
pub(super) struct Outers {
    /// Folded and sorted: what lies within one directly follows it.
    texts: Vec<Box<[u8]>>,
    /// For each, the innermost other that contains it, or [`NONE`].
    parents: Vec<u32>,
}

impl Outers {
    pub(super) fn new(texts: &BTreeSet<&str>) -> Self {
        let mut folded: Vec<Box<[u8]>> =
            texts.iter().map(|text| text.bytes().map(fold).collect()).collect();
        folded.sort_unstable();
        let mut outers = Self { texts: folded, parents: Vec::new() };
        for (n, text) in outers.texts.iter().enumerate() {
            // Before it stands what it lies within, or another that lies within that as well.
            let parent = outers.outwards(n.checked_sub(1), text);
            outers.parents.push(parent.map_or(NONE, number));
        }
        outers
    }

    /// The range of those within a text, itself included.
    pub(super) fn within(&self, text: &str) -> (u32, u32) {
        let text: Box<[u8]> = text.bytes().map(fold).collect();
        let start = self.texts.partition_point(|outer| *outer < text);
        let rest = self.texts.get(start..).unwrap_or_default();
        let count = rest.partition_point(|inner| is_within(inner, &text));
        (number(start), number(start.saturating_add(count)))
    }

    pub(super) const fn len(&self) -> usize {
        self.texts.len()
    }

    /// The innermost other that one lies within, or [`NONE`].
    #[inline]
    pub(super) fn parent(&self, number: u32) -> u32 {
        self.parents.get(place(number)).copied().unwrap_or(NONE)
    }

    /// The place of the innermost that `root/below`, or `below` alone, lies within.
    pub(super) fn innermost(&self, root: &str, below: &str) -> Option<usize> {
        if self.texts.is_empty() {
            return None;
        }
        let joint = if root.is_empty() || below.is_empty() { "" } else { "/" };
        let parts = [root, joint, below];
        let length = parts.iter().map(|part| part.len()).fold(0, usize::saturating_add);
        let mut few = [0; FEW];
        match few.get_mut(..length) {
            Some(text) => {
                let mut rest = &mut *text;
                for part in parts {
                    let Some((start, behind)) = rest.split_at_mut_checked(part.len()) else {
                        break;
                    };
                    start.iter_mut().zip(part.bytes()).for_each(|(to, byte)| *to = fold(byte));
                    rest = behind;
                }
                self.holding(text)
            }
            None => {
                let text: Vec<u8> = parts.iter().flat_map(|part| part.bytes()).map(fold).collect();
                self.holding(&text)
            }
        }
    }

    /// The place of the innermost that a folded text lies within: the last that does not stand
    /// behind it, or what that one lies within.
    fn holding(&self, text: &[u8]) -> Option<usize> {
        let behind = self.texts.partition_point(|outer| **outer <= *text);
        self.outwards(behind.checked_sub(1), text)
    }

    /// The first that a folded text lies within, from a place outwards.
    fn outwards(&self, mut at: Option<usize>, text: &[u8]) -> Option<usize> {
        while let Some(found) = at {
            if is_within(text, self.texts.get(found)?) {
                break;
            }
            // No place is that of `NONE`, so the next look ends it.
            at = Some(place(self.parent(number(found))));
        }
        at
    }
}

/// True if a folded text is another, or lies below it.
fn is_within(text: &[u8], outer: &[u8]) -> bool {
    match text.strip_prefix(outer) {
        Some(rest) => rest.first().is_none_or(|byte| *byte == 0),
        None => false,
    }
}

/// Folds a byte of text so that plain order is that of components: a separator becomes zero,
/// before all else, and zero what no UTF-8 has, so that different texts stay different.
const fn fold(byte: u8) -> u8 {
    match byte {
        b'/' => 0,
        0 => u8::MAX,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use alloc::{format, vec};

    use super::{FEW, Outers, place};

    fn is_below(text: &str, outer: &str) -> bool {
        text.strip_prefix(outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    #[test]
    fn the_innermost_is_the_longest_that_holds() {
        let long = format!("a/{}", "b".repeat(FEW));
        let deep = format!("{long}/c/d");
        let last = format!("a/{}", "b".repeat(FEW - 2));
        let texts: Vec<&str> = vec![
            "a",
            "a/b",
            "a/b/c",
            "a-b",
            "a/b-c",
            "a.b",
            "a/b.c/d",
            "ab",
            "b/c",
            "b/c/d/e",
            "a/bc",
            "a0",
            "a/b/c/d/e/f",
            "\u{e9}",
            "\u{e9}/a",
            "",
            &long,
            &deep,
            &last,
        ];
        let more = ["b", "b/c/d", "a/c", "a\0b", "a/b\0", "b/cc", "a/b/c/d/e", "c", "a/b//c"];
        // Each stands with those that others leave.
        for step in 1..6 {
            let outers: BTreeSet<&str> = texts.iter().copied().step_by(step).collect();
            let compiled = Outers::new(&outers);
            for text in texts.iter().chain(&more) {
                let holding = outers.iter().filter(|outer| is_below(text, outer));
                let wanted = holding.max_by_key(|outer| outer.len());
                let mut ways = vec![("", *text)];
                ways.extend(text.split_once('/').filter(|(root, _)| !root.is_empty()));
                ways.push((text, ""));
                for (root, below) in ways {
                    let found = compiled.innermost(root, below);
                    let number = found.map(|found| u32::try_from(found).unwrap());
                    let ranges = wanted.map(|wanted| compiled.within(wanted));
                    assert_eq!(number, ranges.map(|(start, _)| start), "{root:?} {below:?}");
                    // A text lies within just those whose range has its innermost.
                    for outer in &outers {
                        let (start, end) = compiled.within(outer);
                        let is_in = number.is_some_and(|number| (start..end).contains(&number));
                        assert_eq!(is_in, is_below(text, outer), "{text:?} {outer:?}");
                    }
                    // So do those that are met outwards.
                    let mut at = number;
                    let mut met = Vec::<u32>::new();
                    while let Some(number) = at.filter(|at| place(*at) < compiled.len()) {
                        met.push(number);
                        at = Some(compiled.parent(number));
                    }
                    let count = outers.iter().filter(|outer| is_below(text, outer)).count();
                    assert_eq!(met.len(), count, "{text:?}");
                }
            }
        }
    }

    #[test]
    fn empty_set_of_outer_values_holds_nothing() {
        let outers = Outers::new(&BTreeSet::new());
        assert_eq!(outers.innermost("a", "b"), None);
        assert_eq!(outers.within("a"), (0, 0));
    }
}
