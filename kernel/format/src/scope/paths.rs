//! Rights to paths: the longest rule decides.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use super::parts::{self, Parts};
use super::{Rights, Root, RootName, RootedPath, ScopeError, shown};
use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder, ItemKind};
use crate::id::AgentId;
use crate::summary::summary;

/// Rights to a path and to all below it for which no longer rule stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The path from which the rule holds.
    pub path: RootedPath,
    /// The rights there.
    pub rights: Rights,
}

/// Rules, of which the longest that is a path's prefix, by whole components, decides alone: a
/// deeper rule can give less than the one above it.
///
/// Normal form: sorted by path, no path twice, and no rule that gives what its nearest rule
/// above gives, where none above means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paths(Vec<Rule>);

impl Paths {
    /// Most rules: more are a sign that access was listed file by file.
    pub const RULES_MAX: usize = 256;

    /// The scope of `rules`, in any order.
    ///
    /// # Errors
    /// [`ScopeError::Conflict`], [`ScopeError::Empty`] or [`ScopeError::TooMany`].
    pub fn new<I>(rules: I) -> Result<Self, ScopeError>
    where
        I: IntoIterator<Item = Rule>,
    {
        let mut rules: Vec<Rule> = rules.into_iter().collect();
        rules.sort_by(|a, b| a.path.cmp(&b.path));
        let conflict = |a: &Rule, b: &Rule| a.path == b.path && a.rights != b.rights;
        if rules.iter().zip(rules.iter().skip(1)).any(|(a, b)| conflict(a, b)) {
            return Err(ScopeError::Conflict);
        }
        Self::from_parts(rules)
    }

    /// The rules, sorted by path.
    pub fn rules(&self) -> &[Rule] {
        &self.0
    }

    /// The rule that decides for `path`, if there is one.
    pub fn deciding(&self, path: &RootedPath) -> Option<&Rule> {
        deciding(&self.0, path)
    }

    /// The rights at `path`.
    pub fn rights(&self, path: &RootedPath) -> Rights {
        rights(&self.0, path)
    }

    /// True if `path` has all of `needs`. To need nothing is not a use that could be permitted.
    #[must_use]
    pub fn permits(&self, path: &RootedPath, needs: Rights) -> bool {
        needs != Rights::NONE && needs.leq(self.rights(path))
    }

    /// True if `path` and every path below it has all of `needs`.
    #[must_use]
    pub fn permits_tree(&self, path: &RootedPath, needs: Rights) -> bool {
        let mut below = self.0.iter().filter(|rule| rule.path.is_within(path));
        self.permits(path, needs) && below.all(|rule| needs.leq(rule.rights))
    }

    /// The paths that have these rights, in words: `below workspace or below shared/notes, not
    /// below workspace/old`. Workspaces stand first: that is where a path begins that names no
    /// root.
    pub fn advice(&self, needs: Rights) -> String {
        let permitted = |rule: &&Rule| needs != Rights::NONE && needs.leq(rule.rights);
        let below = |rule: &Rule| format!("below {}", ShownRule(rule, self.owners()).path());
        let mut permitting: Vec<&Rule> = self.0.iter().filter(permitted).collect();
        permitting.sort_by_key(|rule| rule.path.root().owner().is_none());
        let may = summary(permitting.into_iter().map(below));
        if may.is_empty() {
            return String::from("nothing");
        }
        let above = |rule: &Rule| {
            let mut rules = self.0.iter().filter(permitted);
            rules.any(|above| rule.path.is_within(&above.path))
        };
        let inner = self.0.iter().filter(|rule| !permitted(rule) && above(rule));
        let inner = summary(inner.map(|rule| format!("not {}", below(rule))));
        let may = may.replace(", below ", " or below ");
        if inner.is_empty() { may } else { format!("{may}, {inner}") }
    }

    /// Decides if workspaces are shown with their owners: only where there are several owners.
    fn owners(&self) -> Owners {
        let mut found = self.0.iter().filter_map(|rule| rule.path.root().owner());
        let first = found.next();
        if found.any(|owner| Some(owner) != first) { Owners::Shown } else { Owners::Clear }
    }

    /// The rights of both scopes change only at their rules: any path has the rights that the
    /// longest rule of either that is its prefix has in each. And every rule's path is itself a
    /// path, so the comparison at the rules is exact.
    pub(super) fn leq(&self, other: &Self) -> bool {
        let holds = |rule: &Rule| self.rights(&rule.path).leq(other.rights(&rule.path));
        self.0.iter().chain(&other.0).all(holds)
    }

    pub(super) fn meet(&self, other: &Self) -> Option<Self> {
        let both = |path: &RootedPath| self.rights(path).intersection(other.rights(path));
        let rule = |rule: &Rule| Rule { path: rule.path.clone(), rights: both(&rule.path) };
        Self::unlimited(self.0.iter().chain(&other.0).map(rule).collect())
    }
}

impl Parts for Paths {
    type Part = Rule;
    const PARTS_MAX: usize = Self::RULES_MAX;

    /// Callers give one path the same rights wherever it stands; on the wire a path that stands
    /// twice is refused because the result is shorter.
    fn normalise(mut rules: Vec<Rule>) -> Vec<Rule> {
        rules.sort_by(|a, b| a.path.cmp(&b.path));
        rules.dedup_by(|a, b| a.path == b.path);
        let mut kept: Vec<Rule> = Vec::with_capacity(rules.len());
        for rule in rules {
            // Sorted, all rules above this one are in `kept` or had the rights of one that is.
            if rule.rights != rights(&kept, &rule.path) {
                kept.push(rule);
            }
        }
        kept
    }

    fn from_normal(rules: Vec<Rule>) -> Self {
        Self(rules)
    }

    fn parts(&self) -> &[Rule] {
        &self.0
    }

    fn write(rule: &Rule, encoder: &mut Encoder) {
        encoder.array(4);
        encoder.text(rule.path.root().name());
        match rule.path.root().owner() {
            Some(owner) => encoder.text(owner.as_str()),
            None => encoder.null(),
        }
        encoder.array(rule.path.components().count());
        rule.path.components().for_each(|component| encoder.text(component));
        encoder.uint(u64::from(rule.rights.bits()));
    }

    fn read(decoder: &mut Decoder<'_>) -> Result<Rule, DecodeError> {
        let refused = decoder.fault(DecodeFault::Value);
        parts::fixed(decoder, 4)?;
        let name = decoder.text()?;
        let root = if decoder.peek()? == ItemKind::Null {
            decoder.null()?;
            RootName::new(name).ok().map(Root::Named)
        } else {
            let owner = AgentId::new(decoder.text()?);
            owner.filter(|_| name == Root::WORKSPACE).map(Root::Workspace)
        };
        let mut components = Vec::new();
        decoder.each(|decoder| {
            if components.len() >= RootedPath::COMPONENTS_MAX {
                return Err(refused);
            }
            components.push(decoder.text()?);
            Ok(())
        })?;
        let rights = u8::try_from(decoder.uint()?).ok().and_then(Rights::from_bits);
        let path = RootedPath::new(root.ok_or(refused)?, components).map_err(|_| refused)?;
        Ok(Rule { path, rights: rights.ok_or(refused)? })
    }
}

/// A rule and whether to say whose workspace it is about.
struct ShownRule<'a>(&'a Rule, Owners);

/// Decides if owners are shown.
#[derive(Clone, Copy)]
enum Owners {
    Shown,
    Clear,
}

impl ShownRule<'_> {
    /// The path alone.
    fn path(&self) -> String {
        let Self(Rule { path, .. }, owners) = self;
        match owners {
            Owners::Shown => format!("{path:#}"),
            Owners::Clear => format!("{path}"),
        }
    }
}

impl fmt::Display for ShownRule<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Rule { path, rights }, owners) = self;
        match owners {
            Owners::Shown => write!(f, "{path:#} ({rights})"),
            Owners::Clear => write!(f, "{path} ({rights})"),
        }
    }
}

impl fmt::Display for Paths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let owners = if f.alternate() { Owners::Shown } else { self.owners() };
        let rules: Vec<_> = self.0.iter().map(|rule| ShownRule(rule, owners)).collect();
        shown::list(f, &rules)
    }
}

/// In the order of paths the last prefix of a path is its longest.
fn deciding<'a>(rules: &'a [Rule], path: &RootedPath) -> Option<&'a Rule> {
    let end = rules.partition_point(|rule| rule.path <= *path);
    let before = rules.get(..end).unwrap_or_default();
    before.iter().rev().find(|rule| path.is_within(&rule.path))
}

fn rights(rules: &[Rule], path: &RootedPath) -> Rights {
    deciding(rules, path).map_or(Rights::NONE, |rule| rule.rights)
}
