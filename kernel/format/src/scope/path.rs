//! Paths below roots, and rights to them.

use alloc::{borrow::ToOwned as _, format, string::String, sync::Arc};
use core::{cmp::Ordering, fmt};

use super::ScopeError;
use super::shown::{Shown, Whole};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::Field;
use crate::id::AgentId;

/// The rights at a path: a set of three bits.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rights(u8);

impl Field for Rights {
    const SHAPE: &'static str = "uint bits";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(u64::from(self.0));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let bits = u8::try_from(decoder.uint()?).map_err(|_| fault)?;
        Self::from_bits(bits).ok_or(fault)
    }
}

impl Rights {
    /// No rights: a rule with it takes away the rights that a rule above gives.
    pub const NONE: Self = Self(0);
    /// To read files and to list folders.
    pub const READ: Self = Self(1);
    /// To create, change and remove.
    pub const WRITE: Self = Self(2);
    /// To follow symbolic links that lie there and lead to what is granted. It needs
    /// [`Rights::READ`] there too: to follow a link is to read it.
    pub const FOLLOW: Self = Self(4);
    /// All of them.
    pub const ALL: Self = Self(7);

    /// The bits on the wire.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The rights of `bits`; `None` where a bit is unknown.
    pub const fn from_bits(bits: u8) -> Option<Self> {
        if bits <= Self::ALL.0 { Some(Self(bits)) } else { None }
    }

    /// The rights of either.
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// The rights of both.
    pub const fn intersection(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    /// True if `other` has all of these.
    #[must_use]
    pub const fn leq(self, other: Self) -> bool {
        self.0 & other.0 == self.0
    }
}

impl fmt::Display for Rights {
    /// `read, write, follow links`, or `nothing`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            0 => "nothing",
            1 => "read",
            2 => "write",
            3 => "read, write",
            4 => "follow links",
            5 => "read, follow links",
            6 => "write, follow links",
            _ => "read, write, follow links",
        })
    }
}

/// The name of a root that belongs to no agent, such as `shared`: 1 to [`RootName::BYTES_MAX`]
/// of `[A-Za-z0-9._-]`, not beginning with a dot, neither `agents` nor `workspace`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RootName(Arc<str>);

impl RootName {
    /// Longest name, in bytes: it is typed by people and models.
    pub const BYTES_MAX: usize = 64;

    /// Checks the form.
    ///
    /// # Errors
    /// [`ScopeError::Root`].
    pub fn new(text: &str) -> Result<Self, ScopeError> {
        let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'_' | b'-');
        let fine = (1..=Self::BYTES_MAX).contains(&text.len())
            && text.bytes().all(allowed)
            && !text.starts_with('.')
            // `agents` is the folder of all workspaces; a workspace has an owner.
            && !matches!(text, "agents" | Root::WORKSPACE);
        if fine { Ok(Self(Arc::from(text))) } else { Err(ScopeError::Root) }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The root of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Root {
    /// A root that belongs to no agent.
    Named(RootName),
    /// The workspace of one agent.
    Workspace(AgentId),
}

impl Root {
    /// The name of every workspace, in paths and on the wire.
    pub const WORKSPACE: &str = "workspace";

    /// A root that belongs to no agent.
    ///
    /// # Errors
    /// [`ScopeError::Root`].
    pub fn named(name: &str) -> Result<Self, ScopeError> {
        RootName::new(name).map(Self::Named)
    }

    /// The name, as paths begin with it.
    pub fn name(&self) -> &str {
        match self {
            Self::Named(name) => name.as_str(),
            Self::Workspace(_) => Self::WORKSPACE,
        }
    }

    /// The owner of the root.
    pub const fn owner(&self) -> Option<&AgentId> {
        match self {
            Self::Named(_) => None,
            Self::Workspace(owner) => Some(owner),
        }
    }
}

/// A path as a root and components below it. Text that climbs, or that a file system could read
/// in another way, has no such form.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RootedPath {
    root: Root,
    /// The components joined by `/`, which none of them contains.
    below: Arc<str>,
}

impl RootedPath {
    /// Longest component, in bytes: what Linux takes as a file name.
    pub const COMPONENT_BYTES_MAX: usize = 255;
    /// Most components: deeper trees are no work of agents, and lookups stay short.
    pub const COMPONENTS_MAX: usize = 64;

    /// Checks the components.
    ///
    /// # Errors
    /// [`ScopeError::Component`] or [`ScopeError::Depth`].
    pub fn new<I>(root: Root, components: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item: AsRef<str>>,
    {
        let mut below = String::new();
        for (n, component) in components.into_iter().enumerate() {
            let component = component.as_ref();
            if n >= Self::COMPONENTS_MAX {
                return Err(ScopeError::Depth);
            }
            if !is_component(component) {
                return Err(ScopeError::Component);
            }
            if n > 0 {
                below.push('/');
            }
            below.push_str(component);
        }
        Ok(Self { root, below: Arc::from(below) })
    }

    /// The root.
    pub const fn root(&self) -> &Root {
        &self.root
    }

    /// The components joined by `/`; empty for the root itself.
    pub fn below(&self) -> &str {
        &self.below
    }

    /// The same text as `{:#}`, escaped and never cut: no two paths have the same.
    pub fn in_full(&self) -> String {
        let below = Whole(&self.below);
        let name = self.root.name();
        match (self.below.is_empty(), self.root.owner()) {
            (true, None) => name.to_owned(),
            (false, None) => format!("{name}/{below}"),
            (true, Some(owner)) => format!("{name} of {owner}"),
            (false, Some(owner)) => format!("{name}/{below} of {owner}"),
        }
    }

    /// Reads it.
    pub(super) fn from_full(text: &str) -> Option<Self> {
        let (name, below) = text.split_once('/').unwrap_or((text, ""));
        let workspace = text.strip_prefix(Root::WORKSPACE);
        let (root, below) = match workspace.and_then(|rest| rest.rsplit_once(" of ")) {
            Some((below, owner)) => {
                (Root::Workspace(AgentId::new(owner)?), below.strip_prefix('/').unwrap_or(below))
            }
            None => (Root::named(name).ok()?, below),
        };
        let components = below.split('/').filter(|component| !component.is_empty());
        Self::new(root, components).ok()
    }

    /// The components.
    pub fn components(&self) -> impl Iterator<Item = &str> {
        self.below.split('/').filter(|component| !component.is_empty())
    }

    /// True if this is `other` or lies below it, by whole components.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.root == other.root
            && match self.below.strip_prefix(&*other.below) {
                Some(rest) => other.below.is_empty() || rest.is_empty() || rest.starts_with('/'),
                None => false,
            }
    }
}

impl Ord for RootedPath {
    /// By root, then component by component: what lies below a path directly follows it.
    fn cmp(&self, other: &Self) -> Ordering {
        // A separator must sort before every byte that a component can have; none has NUL.
        let key = |byte: u8| if byte == b'/' { 0 } else { byte };
        let below = || self.below.bytes().map(key).cmp(other.below.bytes().map(key));
        self.root.cmp(&other.root).then_with(below)
    }
}

impl PartialOrd for RootedPath {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for RootedPath {
    /// `workspace/notes/a.txt`, escaped and cut. `{:#}` adds whose workspace it is.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.root.name())?;
        if !self.below.is_empty() {
            write!(f, "/{}", Shown(&self.below))?;
        }
        match self.root.owner() {
            Some(owner) if f.alternate() => write!(f, " of {owner}"),
            _ => Ok(()),
        }
    }
}

fn is_component(text: &str) -> bool {
    (1..=RootedPath::COMPONENT_BYTES_MAX).contains(&text.len())
        && !matches!(text, "." | "..")
        && !text.bytes().any(|b| matches!(b, b'/' | b'\\' | 0))
}
