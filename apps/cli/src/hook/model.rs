//! What a client gives its model of a failure: standard error, where the exit code is 2.
//!
//! It holds no path of the home, no token id and no command of an operator. The user is told all of
//! it when the next prompt can't be recorded.

use std::path::Path;

use syscap::{host::MACHINE_ROOT, kernel::store::StoreError};

use crate::exit::Failure;

/// Digits of a token's id, and of any other hash.
const HASH_DIGITS: usize = 64;

/// Why the home can't be reached.
pub(super) fn unreached(failure: &Failure) -> String {
    let source = match failure {
        Failure::Home { source, .. } => Some(&**source),
        _ => None,
    };
    String::from(match source {
        Some(syscap::Error::Home(StoreError::Missing)) => "there is no home",
        Some(syscap::Error::Home(StoreError::Damaged)) => "the home is damaged",
        _ => "the home can't be reached",
    })
}

/// An error without what is the operator's.
pub(super) fn told(home: &Path, text: &str) -> String {
    let absolute = std::path::absolute(home).unwrap_or_else(|_| home.to_path_buf());
    let real = home.canonicalize().unwrap_or_else(|_| absolute.clone());
    let mut told = text.to_owned();
    for path in [real.as_path(), &absolute, home] {
        let path = path.to_string_lossy();
        if !path.is_empty() {
            // A scope with a rule for the home says so.
            told = told.replace(&format!(", not below {MACHINE_ROOT}{path}"), "");
            told = told.replace(&*path, "the home");
        }
    }
    let clauses = told.split(';').filter(|clause| !clause.contains("syscap "));
    let clauses: Vec<String> = clauses.map(without_hashes).collect();
    match clauses.is_empty() {
        true => "an operator can see why".to_owned(),
        false => clauses.join(";"),
    }
}

fn without_hashes(text: &str) -> String {
    let is_digit = |c: char| c.is_ascii_hexdigit();
    let is_hash = |word: &str| word.len() >= HASH_DIGITS && word.chars().all(is_digit);
    let words = text.split_inclusive(|c: char| !c.is_ascii_alphanumeric());
    let words = words.map(|word| match word.get(..HASH_DIGITS).is_some_and(is_hash) {
        true => format!("ID{}", word.get(HASH_DIGITS..).unwrap_or_default()),
        false => word.to_owned(),
    });
    words.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_for_the_model_names_neither_home_nor_token_nor_command() {
        let id = "0a".repeat(32);
        let text = format!("/srv/a b/home.db: no token {id}; `syscap token list` shows those");
        assert_eq!(told(Path::new("/srv/a b"), &text), "the home/home.db: no token ID");
        let allowed = "below machine/srv, not below machine/srv/a b";
        assert_eq!(told(Path::new("/srv/a b"), allowed), "below machine/srv");
        assert_eq!(told(Path::new("/x"), "run `syscap init`"), "an operator can see why");
    }
}
