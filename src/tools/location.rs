//! Where the runs of a delegated tool act: stated by whoever runs them, shown to the person who is
//! asked, and compared at each repeat of a call.

use std::ffi::OsStr;
use std::sync::Arc;

use syscap_format::{Salt, VaultText};

use crate::inspect::plain::os_word;

/// Most bytes of a location that are shown as they are.
pub const LOCATION_BYTES_MAX: usize = 3_500;

/// The location of a provider's runs, as it is shown and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Location(Arc<str>);

impl Location {
    /// The end of a text that is too long is replaced by a digest of all of it.
    pub(crate) fn new(text: String) -> Self {
        if text.len() <= LOCATION_BYTES_MAX {
            return Self(text.into());
        }
        let begins = text.floor_char_boundary(LOCATION_BYTES_MAX);
        let begins = text.get(..begins).unwrap_or_default();
        let (salt, field, all) = (Salt::from_bytes([0; 32]), 0, text.len());
        let whole = VaultText { salt, field, text: text.as_str().into() }.hash();
        Self(format!("{begins}... ({all} bytes, digest {whole})").into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// A location in words: named parts, each with words as a shell has them, so that no two locations
/// read alike.
///
/// ```
/// use syscap::provide::LocationText;
///
/// let text = LocationText::default().part("server", ["run", "my db"]).part("folder", ["/srv"]);
/// assert_eq!(text.finish(), "server run 'my db'; folder /srv");
/// ```
#[derive(Clone, Debug, Default)]
pub struct LocationText(String);

impl LocationText {
    /// Adds a part; none if it has no words.
    #[must_use]
    pub fn part<W: AsRef<OsStr>>(mut self, name: &str, words: impl IntoIterator<Item = W>) -> Self {
        let mut words = words.into_iter().peekable();
        if words.peek().is_some() {
            self.0.push_str(if self.0.is_empty() { "" } else { "; " });
            self.0.push_str(name);
        }
        for word in words {
            self.0.push(' ');
            self.0.push_str(&os_word(word.as_ref()));
        }
        self
    }

    /// The text.
    #[must_use]
    pub fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt as _;

    use super::*;

    #[test]
    fn long_location_differs_in_its_cut_end() {
        let long = |end: &str| Location::new(format!("{}{end}", "ä".repeat(3_000)));
        let (one, two) = (long("x"), long("y"));
        assert_ne!(one, two);
        assert_eq!(one, long("x"));
        assert!(one.as_str().len() < 4_000);
        assert_eq!(Location::new("x".repeat(3_500)).as_str(), "x".repeat(3_500));
    }

    #[test]
    fn words_that_look_like_parts_stay_words() {
        let text = |words: &[&[u8]]| {
            let words = words.iter().map(|word| OsStr::from_bytes(word));
            LocationText::default().part("reads", words).finish()
        };
        assert_eq!(text(&[b"/a; network none"]), "reads '/a; network none'");
        assert_ne!(text(&[b"/a\xff"]), text(&[b"/a\xfe"]));
        assert_ne!(text(&[b"/a\xff"]), text(&["/a\u{fffd}".as_bytes()]));
        assert_ne!(text(&[b"/a\xff"]), text(&[br"$'/a\xff'"]));
        assert_eq!(text(&[]), "");
    }
}
