//! Suggestions for a name that does not exist.

/// The name that takes the fewest edits, where these are few; the first of those that are alike.
pub(crate) fn near<'n>(word: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let each = names.into_iter().map(|name| (edits(word, name), name));
    let alike = |(edits, name): &(usize, &str)| {
        edits.saturating_mul(2) <= word.chars().count().max(name.chars().count())
    };
    each.filter(alike).min_by_key(|(edits, _)| *edits).map(|(_, name)| name)
}

/// `, did you mean NAME?`, else `LIST: a, b`, else nothing.
pub(crate) fn hint(word: &str, list: &str, names: &[&str]) -> String {
    match (near(word, names.iter().copied()), names) {
        (Some(near), _) => format!(", did you mean {near}?"),
        (None, []) => String::new(),
        (None, names) => format!("{list}: {}", names.join(", ")),
    }
}

/// How many characters must be put in, taken out, exchanged or swapped with the next one.
fn edits(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut rows: [Vec<usize>; 2] = [Vec::new(), (0..=b.len()).collect()];
    for (n, x) in a.iter().enumerate() {
        let mut next = vec![n.saturating_add(1)];
        for (m, y) in b.iter().enumerate() {
            let at = |row: &[usize], m: usize| row.get(m).copied().unwrap_or(usize::MAX);
            let [before, last] = &rows;
            let exchanged = at(last, m).saturating_add(usize::from(x != y));
            let longer = at(last, m.saturating_add(1)).min(at(&next, m)).saturating_add(1);
            let mut least = exchanged.min(longer);
            let swapped = n > 0 && m > 0 && a.get(n.wrapping_sub(1)) == Some(y);
            if swapped && b.get(m.wrapping_sub(1)) == Some(x) {
                least = least.min(at(before, m.wrapping_sub(1)).saturating_add(1));
            }
            next.push(least);
        }
        rows.rotate_left(1);
        rows[1] = next;
    }
    rows[1].last().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted() {
        let cases = [("", "", 0), ("", "ab", 2), ("path", "path", 0), ("path", "paht", 1)];
        let more = [("path", "pth", 1), ("path", "patch", 1), ("text", "tent", 1), ("ab", "cd", 2)];
        for (a, b, n) in cases.into_iter().chain(more) {
            assert_eq!((edits(a, b), edits(b, a)), (n, n), "{a} {b}");
        }
    }

    #[test]
    fn nearest_name_is_suggested() {
        let tools = ["echo", "fs.list", "fs.read", "fs.write"];
        assert_eq!(near("fs.wirte", tools), Some("fs.write"));
        assert_eq!(near("fs.raed", tools), Some("fs.read"));
        assert_eq!(near("web.get.page", tools), None);
        assert_eq!(hint("pth", "; it has", &["path", "text"]), ", did you mean path?");
        assert_eq!(hint("body", "; it has", &["a", "b"]), "; it has: a, b");
        assert_eq!(hint("body", "; it has", &[]), "");
    }
}
