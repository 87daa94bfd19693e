//! A token as a person names it: by its id, or by the first digits that the log shows.

use std::path::Path;

use syscap::format::TokenId;

use crate::{exit::Failure, parse::BadWord, runtime};

/// Fewest digits that name a token.
const DIGITS_MIN: usize = 8;
/// Digits of an id.
const DIGITS: usize = 64;

/// A token's id, or its first digits: 8 or more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenName(String);

impl TokenName {
    /// Reads hexadecimal digits in lower case.
    ///
    /// # Errors
    /// [`BadWord::Token`] for anything else.
    pub(crate) fn parse(text: &str) -> Result<Self, BadWord> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let fits = digits && (DIGITS_MIN..=DIGITS).contains(&text.len());
        fits.then(|| Self(text.to_owned())).ok_or(BadWord::Token)
    }

    /// The token of a home that has this name.
    ///
    /// # Errors
    /// [`Failure::UnknownToken`] where no token of the home begins with these digits, and
    /// [`Failure::Usage`] where several do. A whole id is not looked up.
    pub(crate) fn of(&self, home: &Path) -> Result<TokenId, Failure> {
        if let Some(id) = TokenId::from_hex(&self.0) {
            return Ok(id);
        }
        let log = runtime::look(home)?;
        let ids = log.kernel().tokens().map(|token| token.id);
        self.only(ids.filter(|id| id.to_string().starts_with(&self.0)), |id| *id, home)
    }

    pub(crate) fn digits(&self) -> &str {
        &self.0
    }

    /// The only one of those that have this name, as [`TokenName::of`].
    pub(crate) fn only<T>(
        &self,
        found: impl IntoIterator<Item = T>,
        id: impl Fn(&T) -> TokenId,
        home: &Path,
    ) -> Result<T, Failure> {
        let mut found = found.into_iter();
        match (found.next(), found.next()) {
            (Some(one), None) => Ok(one),
            (None, _) => {
                Err(Failure::UnknownToken { home: home.to_path_buf(), token: self.0.clone() })
            }
            (Some(one), Some(other)) => {
                let advice = format!("begins {} and {}: give more digits", id(&one), id(&other));
                Err(Failure::Usage { what: format!("token {}", self.0), advice })
            }
        }
    }

    /// The same of a name that may be missing.
    pub(crate) fn of_any(name: Option<&Self>, home: &Path) -> Result<Option<TokenId>, Failure> {
        name.map(|name| name.of(home)).transpose()
    }
}
