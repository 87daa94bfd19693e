//! The names of temporary files.

/// Temporary files begin so. No case is told apart: some file systems don't.
const PREFIX: &[u8] = b".syscap-";
/// Temporary files end so.
const SUFFIX: &[u8] = b".tmp";

/// True if a name has the form of our temporary files, which no caller may read, write or see.
pub(super) fn is_temp(name: &[u8]) -> bool {
    let begins = name.get(..PREFIX.len()).is_some_and(|s| s.eq_ignore_ascii_case(PREFIX));
    let end = name.len().saturating_sub(SUFFIX.len());
    begins && name.get(end..).is_some_and(|s| s.eq_ignore_ascii_case(SUFFIX))
}
