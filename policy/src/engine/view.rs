//! One attribute's value as the numbers of a group's constants, and the result of a test on it.

use alloc::{boxed::Box, format};
use core::{cmp::Ordering, ops::Range, slice::from_ref};

use syscap_format::RootedPath;

use super::code::{Asked, Constants, Set, Slot};
use super::number::{NONE, number, place};
use crate::limits::LIST_MAX;
use crate::seen::Read;
use crate::semantics;
use crate::truth::Truth;
use crate::value::{Value, path_text};

/// Number of what is none of the constants, and lies within none.
const OTHER: u32 = NONE - 1;

/// The part of a value that most tests need.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) tag: Tag,
    /// Which of the slot's constants it is.
    number: u32,
    /// The innermost of the slot's paths, or agents, that it lies within.
    outer: u32,
}

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag {
    /// It was not read yet.
    Unread,
    Missing,
    Erased,
    Bool,
    Int,
    Text,
    Agent,
    Path,
    /// A path and all below it: [`Below`] says more.
    Tree,
    Host,
    /// An address, what can't be compared, or several values.
    Other,
}

impl Key {
    pub(super) const UNREAD: Self = Self { tag: Tag::Unread, number: OTHER, outer: OTHER };
    /// The mark of a list, or of several resources.
    const SEVERAL: Self = Self { tag: Tag::Other, ..Self::UNREAD };

    /// The result of a test, where the numbers are enough. It holds for a value and for a lone
    /// resource alike.
    #[inline]
    pub(super) fn ask(self, asked: Asked) -> Option<Truth> {
        let Self { tag, number, outer } = self;
        Some(Truth::of(match (asked, tag) {
            (Asked::Text { text, .. }, Tag::Text | Tag::Path | Tag::Agent) => text == number,
            (Asked::Text { host, .. }, Tag::Host) => host == number,
            (Asked::Int(n), Tag::Int) => number == n,
            (Asked::Below(n), Tag::Int) => number < n,
            (Asked::AtMost(n), Tag::Int) => number <= n,
            (Asked::Above(n), Tag::Int) => number > n,
            (Asked::AtLeast(n), Tag::Int) => number >= n,
            (Asked::Bool(value), Tag::Bool) => u32::from(value) == number,
            (Asked::Within { start, end }, Tag::Path | Tag::Agent) => start <= outer && outer < end,
            (Asked::Exists | Asked::Missing, Tag::Erased) => return Some(Truth::Unknown),
            (Asked::Exists, _) => tag != Tag::Missing,
            (Asked::Missing, _) => tag == Tag::Missing,
            _ => return None,
        }))
    }

    /// The result of a test by numbers: unknown where the types differ.
    fn compare(self, asked: Asked, constants: &Constants) -> Truth {
        match asked {
            Asked::In(set) => {
                constants.sets.get(place(set)).map_or(Truth::Unknown, |set| set.has(self))
            }
            _ => self.ask(asked).unwrap_or(Truth::Unknown),
        }
    }

    /// Which of the slot's texts it is, where it is one that a text constant may be equal to by
    /// number.
    #[inline]
    pub(super) const fn text(self) -> Option<u32> {
        match self.tag {
            Tag::Text | Tag::Path | Tag::Agent => Some(self.number),
            _ => None,
        }
    }

    /// The innermost that it lies within, where it is a path or an agent.
    #[inline]
    pub(super) const fn outer(self) -> Option<u32> {
        match self.tag {
            Tag::Path | Tag::Agent => Some(self.outer),
            _ => None,
        }
    }

    fn of(value: &Value<'_>, slot: &Slot) -> Self {
        let text = |tag, text: &str| {
            let found = slot.texts.binary_search_by(|constant| (**constant).cmp(text));
            Self { tag, number: found.map_or(OTHER, number), outer: OTHER }
        };
        let outer =
            |root: &str, below: &str| slot.outers.innermost(root, below).map_or(OTHER, number);
        let plain = |tag, number| Self { tag, number, outer: OTHER };
        match value {
            Value::Missing => plain(Tag::Missing, OTHER),
            Value::Erased => plain(Tag::Erased, OTHER),
            Value::Bool(value) => plain(Tag::Bool, u32::from(*value)),
            Value::Int(n) => plain(Tag::Int, slot.int(*n)),
            Value::Text(value) => text(Tag::Text, value),
            Value::Agent(value) => Self { outer: outer("", value), ..text(Tag::Agent, value) },
            Value::Path(path) => {
                let (root, below) = (path.root().name(), path.below());
                let found = slot.texts.binary_search_by(|constant| order(constant, path));
                let outer = outer(root, below);
                Self { tag: Tag::Path, number: found.map_or(OTHER, number), outer }
            }
            Value::Tree(_) => plain(Tag::Tree, OTHER),
            Value::Host(host) => {
                plain(Tag::Host, slot.hosts.binary_search(host).map_or(OTHER, number))
            }
            _ => plain(Tag::Other, OTHER),
        }
    }
}

/// How a constant stands to a path's text, which is not put together for it.
fn order(constant: &str, path: &RootedPath) -> Ordering {
    let joint = if path.below().is_empty() { "" } else { "/" };
    let text = path.root().name().bytes().chain(joint.bytes()).chain(path.below().bytes());
    constant.bytes().cmp(text)
}

/// An attribute of this call.
pub(super) struct View<'v> {
    pub(super) key: Key,
    read: Read<'v>,
    /// For several values, the key of each.
    each: Box<[Key]>,
    /// For a tree, the constants that it holds.
    tree: Option<Box<Below>>,
}

/// Which of a slot's constants lie in a tree.
struct Below {
    /// The innermost of the slot's paths that all of it lies within.
    outer: u32,
    /// The slot's paths that lie in it.
    outers: Range<u32>,
    /// The text that is where it begins, and those that lie below.
    texts: [Range<u32>; 2],
}

impl Below {
    fn of(path: &RootedPath, slot: &Slot) -> Self {
        let text = path_text(path);
        let outer = slot.outers.innermost("", &text).map_or(OTHER, number);
        let (start, end) = slot.outers.within(&text);
        let below = |text: &str, prefix: &str| {
            let before = slot.texts.partition_point(|constant| **constant < *text);
            let rest = slot.texts.get(before..).unwrap_or_default();
            let count = rest.partition_point(|constant| constant.starts_with(prefix));
            number(before)..number(before.saturating_add(count))
        };
        let at =
            slot.texts.binary_search_by(|constant| (**constant).cmp(&text)).map_or(0..0, |n| {
                let at = number(n);
                at..at.saturating_add(1)
            });
        let inner = format!("{text}/");
        Self { outer, outers: start..end, texts: [at, below(&inner, &inner)] }
    }

    fn holds(&self, text: u32) -> bool {
        self.texts.iter().any(|range| range.contains(&text))
    }

    /// The result of a test by numbers: none, where it may hold of a part alone.
    fn ask(&self, asked: Asked, constants: &Constants) -> Truth {
        let unknown_or = |holds: bool, other| if holds { Truth::Unknown } else { other };
        match asked {
            Asked::Text { text, .. } => unknown_or(self.holds(text), Truth::False),
            Asked::Within { start, end } if start <= self.outer && self.outer < end => Truth::True,
            Asked::Within { start, .. } => unknown_or(self.outers.contains(&start), Truth::False),
            Asked::In(set) => constants.sets.get(place(set)).map_or(Truth::Unknown, |set| {
                let none = Key { tag: Tag::Path, number: OTHER, outer: OTHER };
                unknown_or(set.texts.iter().any(|text| self.holds(*text)), set.has(none))
            }),
            _ => Truth::Unknown,
        }
    }
}

impl<'v> View<'v> {
    pub(super) fn of(read: Read<'v>, slot: &Slot) -> Self {
        match &read {
            // Without keys each test is unknown: one that asks about the list itself looks at it.
            Read::Plain(Value::List(all)) if all.len() > LIST_MAX => {
                Self { key: Key::SEVERAL, read, each: Box::default(), tree: None }
            }
            Read::Plain(Value::List(all) | Value::Resources(all)) => {
                let each = all.iter().map(|one| Key::of(one, slot)).collect();
                let tree = if let [one] = &**all { tree(one, slot) } else { None };
                Self { key: Key::SEVERAL, read, each, tree }
            }
            Read::Plain(one) | Read::Resource(one) => {
                let tree = tree(one, slot);
                Self { key: Key::of(one, slot), read, each: Box::default(), tree }
            }
        }
    }

    /// The result of a test.
    #[inline(never)]
    pub(super) fn ask(&self, asked: Asked, constants: &Constants) -> Truth {
        if let Some(truth) = self.key.ask(asked) {
            return truth;
        }
        if let (Some(tree), false) = (&self.tree, matches!(asked, Asked::Look(_))) {
            return tree.ask(asked, constants);
        }
        match (asked, &self.read) {
            (Asked::Look(ask), read) => match (constants.asks.get(place(ask)), read) {
                (Some(ask), Read::Plain(value)) => semantics::ask(ask, value),
                (Some(ask), Read::Resource(one)) => semantics::of_resources(ask, from_ref(one)),
                (None, _) => Truth::Unknown,
            },
            // Of a resource of a type that is not asked about a number says nothing either.
            (_, Read::Plain(Value::List(_) | Value::Resources(_))) => {
                agreed(self.each.iter().map(|key| key.compare(asked, constants)))
            }
            (_, Read::Plain(_) | Read::Resource(_)) => self.key.compare(asked, constants),
        }
    }
}

fn tree(one: &Value<'_>, slot: &Slot) -> Option<Box<Below>> {
    match one {
        Value::Tree(path) => Some(Box::new(Below::of(path, slot))),
        _ => None,
    }
}

/// The truth that all share. Once two differ no further one matters.
fn agreed(mut truths: impl Iterator<Item = Truth>) -> Truth {
    let Some(first) = truths.next() else { return Truth::Unknown };
    let same = first == Truth::Unknown || truths.all(|truth| truth == first);
    if same { first } else { Truth::Unknown }
}

impl Set {
    /// The truth of the value being one of the constants: unknown if it is not, and one of them has
    /// another type.
    fn has(&self, key: Key) -> Truth {
        let [no, yes] = self.bools;
        let among = |list: &[u32]| list.binary_search(&key.number).is_ok();
        let (has_int, has_bool) = (!self.ints.is_empty(), no || yes);
        let (found, other) = match key.tag {
            Tag::Text | Tag::Agent | Tag::Path => (among(&self.texts), has_int || has_bool),
            Tag::Host => (among(&self.hosts), has_int || has_bool),
            Tag::Int => (among(&self.ints), self.has_text || has_bool),
            Tag::Bool => (if key.number == 0 { no } else { yes }, self.has_text || has_int),
            // Nothing is one of none, whatever it is.
            _ => (false, self.has_text || has_int || has_bool),
        };
        match (found, other) {
            (true, _) => Truth::True,
            (false, true) => Truth::Unknown,
            (false, false) => Truth::False,
        }
    }
}
