//! Locations beneath the base: lists of names that can't climb.

use std::borrow::Cow;

use super::{error::FsError, temp_name::is_temp};

/// The folder of the agents' folders.
pub const AGENTS: &str = "agents";
/// What the agents of homes to which the base does not belong have in it. No agent's name begins with a
/// dot.
pub const OF: &str = ".of";

/// The longest name Linux allows, in bytes.
const NAME_MAX_BYTES: usize = 255;
/// The longest path Linux takes in one call, in bytes, without its NUL.
const PATH_MAX_BYTES: usize = 4095;

/// The location of an entry beneath the base, or the base itself.
///
/// Every name was checked: none is empty, `.`, `..`, holds `/` or NUL, or looks like one of our
/// temporary files.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// The names joined by `/`; empty for the base.
    path: String,
}

impl Location {
    /// The location of these names below each other; no name is the base itself.
    ///
    /// # Errors
    /// [`FsError::BadName`] or [`FsError::NameTooLong`].
    pub fn new<S: AsRef<str>>(names: &[S]) -> Result<Self, FsError> {
        let mut at = Self { path: String::new() };
        for name in names {
            at.push(name.as_ref())?;
        }
        Ok(at)
    }

    /// The names from the base down.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.path.split('/').filter(|name| !name.is_empty())
    }

    /// True if it is what an agent's tools keep for it, and not below a folder of files: memories,
    /// messages, mail, vectors. Nobody else's program has to read it.
    pub(super) fn is_kept(&self) -> bool {
        let mut names = self.names().peekable();
        if names.next() != Some(AGENTS) {
            return false;
        }
        if names.next_if_eq(&OF).is_some() {
            names.next();
        }
        names.nth(1).is_some_and(|part| part != "workspace")
    }

    /// True for the folder of the agents' folders, and what lies in it.
    pub(super) fn is_agents(&self) -> bool {
        self.names().next() == Some(AGENTS)
    }

    /// Where it lies of a home to which the base does not belong.
    pub(super) fn of_home(&self, home: &str) -> Cow<'_, Self> {
        match self.path.strip_prefix(AGENTS) {
            Some(rest) if self.is_agents() => {
                Cow::Owned(Self { path: format!("{AGENTS}/{OF}/{home}{rest}") })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Goes down one name.
    pub(super) fn push(&mut self, name: &str) -> Result<(), FsError> {
        check_name(name)?;
        // The base takes no separator.
        let separator = if self.path.is_empty() { "" } else { "/" };
        if self.path.len() + separator.len() + name.len() > PATH_MAX_BYTES {
            return Err(FsError::NameTooLong);
        }
        self.path.push_str(separator);
        self.path.push_str(name);
        Ok(())
    }

    /// Goes up one name; from the base that is an escape.
    pub(super) fn pop(&mut self) -> Result<(), FsError> {
        if self.path.is_empty() {
            return Err(FsError::Escapes);
        }
        self.path.truncate(self.path.rfind('/').unwrap_or(0));
        Ok(())
    }

    /// The path to hand to a system call, `.` for the base.
    pub(super) fn as_path(&self) -> &str {
        path_or_dot(&self.path)
    }

    /// The path of the parent and the last name. The base has none: it is a directory.
    pub(super) fn split(&self) -> Result<(&str, &str), FsError> {
        if self.path.is_empty() {
            return Err(FsError::IsDirectory);
        }
        let (parent, name) = self.path.rsplit_once('/').unwrap_or(("", &self.path));
        Ok((path_or_dot(parent), name))
    }
}

fn check_name(name: &str) -> Result<(), FsError> {
    let bytes = name.as_bytes();
    if matches!(name, "" | "." | "..") || bytes.contains(&b'/') || bytes.contains(&0) {
        return Err(FsError::BadName);
    }
    if is_temp(bytes) {
        return Err(FsError::BadName);
    }
    if bytes.len() > NAME_MAX_BYTES {
        return Err(FsError::NameTooLong);
    }
    Ok(())
}

fn path_or_dot(path: &str) -> &str {
    if path.is_empty() { "." } else { path }
}
