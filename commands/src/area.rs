//! Absolute paths by components, and what lies below them.

use std::fmt;

/// A file or folder by its absolute path; or a folder and all below it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Area {
    path: Absolute,
    below: bool,
}

impl Area {
    pub(crate) const fn one(path: Absolute) -> Self {
        Self { path, below: false }
    }

    pub(crate) const fn below(path: Absolute) -> Self {
        Self { path, below: true }
    }

    /// The path: absolute, without `.`, `..` and empty parts.
    #[must_use]
    pub fn path(&self) -> String {
        self.path.to_string()
    }

    /// Its components; none of the root.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.path.0.iter().map(String::as_str)
    }

    /// Whether all that lies below it is meant, too.
    #[must_use]
    pub const fn is_tree(&self) -> bool {
        self.below
    }

    pub(crate) const fn at(&self) -> &Absolute {
        &self.path
    }
}

/// An absolute path without `.`, `..` and empty components.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct Absolute(Vec<String>);

impl Absolute {
    /// Reads one that is in plain form.
    pub(crate) fn plain(text: &str) -> Option<Self> {
        let rest = text.strip_prefix('/')?;
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if rest.is_empty() {
            return Some(Self::default());
        }
        let fine = |part: &str| !part.is_empty() && part != "." && part != ".." && sane(part);
        let parts: Vec<String> = rest.split('/').map(str::to_owned).collect();
        parts.iter().all(|part| fine(part)).then_some(Self(parts))
    }

    pub(crate) fn is_within(&self, outer: &Self) -> bool {
        self.0.starts_with(&outer.0)
    }

    pub(crate) fn parent(&self) -> Self {
        let most = self.0.len().saturating_sub(1);
        Self(self.0.iter().take(most).cloned().collect())
    }

    pub(crate) fn join(&self, name: &str) -> Self {
        let mut parts = self.0.clone();
        parts.push(name.to_owned());
        Self(parts)
    }
}

impl fmt::Display for Absolute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("/");
        }
        self.0.iter().try_for_each(|part| write!(f, "/{part}"))
    }
}

/// A folder that a command may be in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Base {
    pub(crate) path: Absolute,
    /// How many of its components are those of the folder that was reported, and so no links: what
    /// `cd` entered may be one, and then `..` of it is not what stands before it.
    real: usize,
}

impl Base {
    pub(crate) const fn reported(path: Absolute) -> Self {
        let real = path.0.len();
        Self { path, real }
    }

    /// A folder of which any part may be a link.
    pub(crate) const fn unseen(path: Absolute) -> Self {
        Self { path, real: 0 }
    }

    /// Where a program that is run here finds a path; `None` where a link could decide that.
    pub(crate) fn file(&self, text: &str) -> Option<Absolute> {
        let (mut parts, mut real) = self.begin(text);
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." if parts.len() > real => return None,
                ".." => {
                    parts.pop();
                    real = parts.len();
                }
                part if !sane(part) => return None,
                part => parts.push(part.to_owned()),
            }
        }
        Some(Absolute(parts))
    }

    /// Where `cd` leads, which follows `..` by name. Who names this very folder, or one above it,
    /// by its absolute path goes through no more links than there are in it.
    pub(crate) fn enter(&self, text: &str) -> Option<Self> {
        let (mut parts, mut real) = self.begin(text);
        let known = self.path.0.get(..self.real).unwrap_or_default();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => {
                    parts.pop();
                    real = real.min(parts.len());
                }
                part if !sane(part) => return None,
                part => {
                    let as_known = known.get(real).is_some_and(|known| known == part);
                    real += usize::from(real == parts.len() && as_known);
                    parts.push(part.to_owned());
                }
            }
        }
        Some(Self { path: Absolute(parts), real })
    }

    fn begin(&self, text: &str) -> (Vec<String>, usize) {
        match text.starts_with('/') {
            true => (Vec::new(), 0),
            false => (self.path.0.clone(), self.real),
        }
    }
}

/// Whether a component is one that every part of the way reads alike.
fn sane(part: &str) -> bool {
    part.len() <= 255 && !part.contains(['\\', '\0', '\n', '\r'])
}
