//! The remedy for a refusal: a hint for the model, and a command for the operator.
//!
//! The model is given no path of the home, no token id and no operator's command but the one that
//! approves a call. The operator finds the whole command on standard error and in `syscap log
//! show`. Each command, run as printed, grants no more than before. If only a wider grant helps,
//! the command names exactly the refused part and ends in `--dry-run`. It shows the addition, and
//! the same command without that last word grants it.

use std::path::{Path, PathBuf};

use syscap_format::{Reason, Seq, TokenId, ToolId};

use crate::{inspect::plain::shell_word, tools::host::MACHINE_ROOT};

/// A call that was refused, or whose outcome nobody knows.
#[derive(Clone, Copy, Debug)]
pub struct Remedy<'a> {
    /// Why it was refused.
    pub reason: Reason,
    /// The tool that it called.
    pub tool: Option<&'a ToolId>,
    /// The token that it was made with.
    pub token: Option<TokenId>,
    /// The requested value, as the error object states it.
    pub got: Option<&'a str>,
    /// The approval request that waits for it.
    pub ask: Option<Seq>,
    /// The record of its intent, where nobody knows what it did.
    pub intent: Option<Seq>,
}

/// The heading of a refusal's `allowed` in text: of a denial it is the message of a person or a
/// constraint.
#[must_use]
pub const fn allowed_word(reason: Reason) -> &'static str {
    match reason {
        Reason::ApprovalDenied | Reason::Constraint | Reason::Denied => "because",
        _ => "allowed",
    }
}

impl Remedy<'_> {
    /// Tells the model who goes on.
    pub fn advice(&self) -> Option<String> {
        if let Some(ask) = self.ask {
            return Some(format!(
                "a person approves it with: syscap approvals approve HOME {ask}; then make the same \
                 call again"
            ));
        }
        Some(String::from(match self.reason {
            Reason::Asked => {
                "nobody was asked: as many of this agent's calls wait as may (32), which an \
                 operator answers; or the policy names nobody who may approve this"
            }
            Reason::Denied | Reason::Constraint | Reason::Obligation | Reason::Reduced => {
                "an operator can see what the policy says of it"
            }
            Reason::NotGranted => "an operator can grant the tool",
            Reason::OutOfScope => "an operator can grant it, by a token with a wider scope",
            Reason::ToolChanged => "an operator must accept the tool's new definition",
            Reason::Expired | Reason::Exhausted | Reason::OverBudget => {
                "an operator can issue the token once more"
            }
            Reason::Revoked => "an operator revoked the token, and can issue another",
            Reason::Frozen => "an operator has frozen it, and can end that",
            Reason::OutcomeUnknown => {
                "look at what it should have done before it is made again; an operator can say \
                 what became of it"
            }
            _ => return None,
        }))
    }

    /// The operator's command, for a POSIX shell.
    pub fn command(&self, home: &Path) -> Option<String> {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_path_buf());
        let home = home.to_string_lossy();
        let home = shell_word(&home);
        if let Some(ask) = self.ask {
            return Some(format!("syscap approvals approve {home} {ask}"));
        }
        let Self { tool, token, .. } = *self;
        match self.reason {
            Reason::Asked => Some(format!("syscap approvals list {home}")),
            Reason::Denied | Reason::Constraint | Reason::Obligation | Reason::Reduced => {
                Some(format!("syscap policy show {home}"))
            }
            Reason::NotGranted => {
                Some(format!("syscap token reissue {home} {} --tool {} --dry-run", token?, tool?))
            }
            Reason::OutOfScope => Some(match self.got.and_then(scoped) {
                Some(more) => format!("syscap token reissue {home} {} {more} --dry-run", token?),
                None => format!("syscap token show {home} {}", token?),
            }),
            // It shows what has changed, and the command that accepts just that.
            Reason::ToolChanged => Some(format!("syscap tools show {home} {}", tool?)),
            Reason::Revoked | Reason::Expired | Reason::Exhausted | Reason::OverBudget => {
                Some(format!("syscap token reissue {home} {}", token?))
            }
            Reason::Frozen => Some(format!("syscap top {home} --once")),
            Reason::OutcomeUnknown => Some(match self.intent {
                Some(intent) => format!("syscap log show {home} {intent}"),
                None => format!("syscap recover list {home}"),
            }),
            _ => None,
        }
    }
}

/// The words that grant a path below one of the home's roots, and nothing else: `read docs/a.txt`
/// makes `--read docs/a.txt`. For other tools only their author knows the dimension.
fn scoped(got: &str) -> Option<String> {
    let (reads, writes, path) = [("read, write ", true, true), ("read ", true, false)]
        .into_iter()
        .chain([("write ", false, true)])
        .find_map(|(words, reads, writes)| Some((reads, writes, got.strip_prefix(words)?)))?;
    let path = path.strip_prefix("all below ").unwrap_or(path);
    let root = path.split(['/', ' ']).next().filter(|root| !root.is_empty())?;
    // A workspace's owner stands behind the path.
    let path = match path.rsplit_once(" of ") {
        Some((path, _owner)) if root == "workspace" => path,
        Some(_) => return None,
        None => path,
    };
    // What is escaped, or cut, names another path than was asked for; and the machine is no root of
    // the home's.
    let plain = !path.contains(['\\', '"']) && path.is_ascii() && !path.ends_with("..");
    // A whole root is more than one look at it, and may be one that nobody meant to grant.
    if !plain || path == root || root == MACHINE_ROOT {
        return None;
    }
    let path = shell_word(path);
    let words =
        [reads.then(|| format!("--read {path}")), writes.then(|| format!("--write {path}"))];
    Some(words.into_iter().flatten().collect::<Vec<_>>().join(" "))
}

/// Digits of a token's id, and of any other hash.
const HASH_DIGITS: usize = 64;

/// The names of a home's folder that no model is told. Finding them reads the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HiddenHome {
    /// The path without links, where the folder is there.
    real: PathBuf,
    absolute: PathBuf,
}

impl HiddenHome {
    /// Finds the names of a home.
    pub fn of(home: &Path) -> Self {
        let absolute = std::path::absolute(home).unwrap_or_else(|_| home.to_path_buf());
        let real = home.canonicalize().unwrap_or_else(|_| absolute.clone());
        Self { real, absolute }
    }

    /// A text without what is the operator's: the absolute path of the home, ids of tokens, and
    /// clauses with a command. A text that names the home by a relative path keeps that path.
    pub fn for_model(&self, text: &str) -> String {
        let mut told = text.to_owned();
        for path in [&self.real, &self.absolute] {
            let path = path.to_string_lossy();
            // A scope with a rule for the home says so.
            told = told.replace(&format!(", not below {MACHINE_ROOT}{path}"), "");
            told = told.replace(&*path, "the home");
        }
        let clauses = told.split(';').filter(|clause| !clause.contains("syscap "));
        let clauses: Vec<String> = clauses.map(without_hashes).collect();
        match clauses.is_empty() {
            true => "an operator can see why".to_owned(),
            false => clauses.join(";"),
        }
    }
}

/// [`HiddenHome::for_model`], for one text.
#[must_use]
pub fn for_model(home: &Path, text: &str) -> String {
    HiddenHome::of(home).for_model(text)
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
    use std::path::Path;

    use super::{for_model, scoped};

    #[test]
    fn refused_path_is_all_that_its_command_grants() {
        for (got, words) in [
            (
                "read, write workspace/a b.txt of me",
                Some("--read 'workspace/a b.txt' --write 'workspace/a b.txt'"),
            ),
            ("read shared/a of b", None),
            ("read docs/a", Some("--read docs/a")),
            ("write all below workspace/x", Some("--write workspace/x")),
            ("read shared", None),
            ("write all below workspace of me", None),
            ("read machine/etc/shadow", None),
            (r"read docs/a\u0007", None),
            ("curl", None),
        ] {
            assert_eq!(scoped(got).as_deref(), words, "{got}");
        }
    }

    #[test]
    fn error_for_the_model_names_neither_home_nor_token_nor_command() {
        let id = "0a".repeat(32);
        let text = format!("/srv/a b/home.db: no token {id}; `syscap token list` shows those");
        assert_eq!(for_model(Path::new("/srv/a b"), &text), "the home/home.db: no token ID");
        let allowed = "below machine/srv, not below machine/srv/a b";
        assert_eq!(for_model(Path::new("/srv/a b"), allowed), "below machine/srv");
        assert_eq!(for_model(Path::new("/x"), "run `syscap init`"), "an operator can see why");
        // A word of a sentence is no path.
        assert_eq!(for_model(Path::new("home"), "the home is held"), "the home is held");
    }
}
