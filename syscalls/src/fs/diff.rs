//! The unified diff of an edit or a write.

use similar::TextDiff;

/// Largest text of which a diff is made, in bytes.
pub(super) const TEXT_BYTES_MAX: u64 = 256 << 10;
/// Most lines that differ on either side: the work grows with their product.
const LINES_MAX: usize = 400;
/// Largest diff, in bytes. It is for people and models to look at.
const DIFF_BYTES_MAX: usize = 8 << 10;
/// Lines around a change.
const CONTEXT: usize = 3;

/// The changes from a text to another, cut at a line; `None` where one is no UTF-8 or is too
/// large, or where too much differs.
pub(super) fn unified(old: &[u8], new: &[u8]) -> Option<String> {
    let small = |text: &[u8]| u64::try_from(text.len()).is_ok_and(|len| len <= TEXT_BYTES_MAX);
    if !small(old) || !small(new) {
        return None;
    }
    let (old, new) = (std::str::from_utf8(old).ok()?, std::str::from_utf8(new).ok()?);
    if !is_bounded(old, new) {
        return None;
    }
    let diff = TextDiff::from_lines(old, new);
    let mut text = String::new();
    let mut is_cut = false;
    'all: for hunk in diff.unified_diff().context_radius(CONTEXT).iter_hunks() {
        for line in hunk.to_string().split_inclusive('\n') {
            if text.len().saturating_add(line.len()) > DIFF_BYTES_MAX {
                is_cut = true;
                break 'all;
            }
            text.push_str(line);
        }
    }
    if is_cut {
        text.push_str("... cut\n");
    }
    Some(text)
}

/// True if few enough lines lie between the common beginning and the common end.
fn is_bounded(old: &str, new: &str) -> bool {
    let same = |ended: bool| {
        let pairs = |(a, b): &(&str, &str)| a == b;
        match ended {
            false => old.lines().zip(new.lines()).take_while(pairs).count(),
            true => old.lines().rev().zip(new.lines().rev()).take_while(pairs).count(),
        }
    };
    let shared = same(false).saturating_add(same(true));
    let differ = |text: &str| text.lines().count().saturating_sub(shared);
    differ(old) <= LINES_MAX && differ(new) <= LINES_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_says_what_changed_and_is_bounded() {
        let diff = unified(b"a\nb\nc\n", b"a\nB\nc\n").unwrap();
        assert_eq!(diff, "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n");
        assert_eq!(unified(b"a\xff", b"a"), None);
        assert_eq!(unified(b"a\n", b"a\n").unwrap(), "");
        let (many, others) = ("x\n".repeat(LINES_MAX + 1), "y\n".repeat(LINES_MAX + 1));
        assert_eq!(unified(many.as_bytes(), others.as_bytes()), None);
        // Much text, of which little differs.
        let near = format!("{many}z\n");
        assert!(unified(many.as_bytes(), near.as_bytes()).unwrap().ends_with("+z\n"));
        let long = format!("{}\n", "w".repeat(200));
        let (long, other) = (long.repeat(100), long.replace('w', "v").repeat(100));
        let cut = unified(long.as_bytes(), other.as_bytes()).unwrap();
        assert!(cut.len() <= DIFF_BYTES_MAX + 16 && cut.ends_with("... cut\n"));
        let large = vec![b'a'; usize::try_from(TEXT_BYTES_MAX).unwrap() + 1];
        assert_eq!(unified(&large, b"a"), None);
    }
}
