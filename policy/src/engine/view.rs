//! What one attribute is, as the numbers of a group's constants, and what a test says of it.

use alloc::vec::Vec;
use core::{cmp::Ordering, net::IpAddr};

use syscap_format::{
    manifest::ParamType,
    scope::{Cidr, Host, RootedPath},
};

use super::compile::{Asked, Group, NONE, Set, Slot, number, place};
use crate::{Other, Truth, Value, seen::Read};

/// Number of what is none of the constants, and lies within none.
const OTHER: u32 = NONE - 1;

/// What most tests need to know of a value.
#[derive(Clone, Copy)]
pub(super) struct Key {
    pub(super) tag: Tag,
    /// Which of the slot's constants it is.
    number: u32,
    /// The innermost of the slot's paths, or agents, that it lies within.
    outer: u32,
}

/// What a value is.
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
    Host,
    /// An address, what can't be compared, or several values.
    Other,
}

impl Key {
    pub(super) const UNREAD: Self = Self { tag: Tag::Unread, number: OTHER, outer: OTHER };

    /// What a test says where the numbers are enough to say it. It holds for a value and for a
    /// lone resource alike.
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
pub(super) enum View<'v> {
    /// A value.
    Plain(Key, Value<'v>),
    /// The one resource that an argument names.
    Resource(Key, Value<'v>),
    /// The elements of a list.
    List(Vec<View<'v>>),
    /// Several resources.
    Resources(Vec<View<'v>>),
}

impl<'v> View<'v> {
    pub(super) fn of(read: Read<'v>, slot: &Slot) -> Self {
        match read {
            Read::Plain(Value::List(all)) => Self::List(each(all, slot)),
            Read::Plain(Value::Resources(all)) => Self::Resources(each(all, slot)),
            Read::Plain(value) => Self::Plain(Key::of(&value, slot), value),
            Read::Resource(value) => Self::Resource(Key::of(&value, slot), value),
        }
    }

    pub(super) const fn key(&self) -> Key {
        match self {
            Self::Plain(key, _) | Self::Resource(key, _) => *key,
            Self::List(_) | Self::Resources(_) => {
                Key { tag: Tag::Other, number: OTHER, outer: OTHER }
            }
        }
    }

    /// What a test says of it.
    #[inline(never)]
    pub(super) fn ask(&self, asked: Asked, group: &Group) -> Truth {
        if let Some(truth) = self.key().ask(asked) {
            return truth;
        }
        match (self, asked) {
            (_, Asked::Schema(kind)) => self.is_of(kind),
            (Self::Plain(key, value), _) => compare(asked, *key, value, group),
            (Self::Resource(key, value), _) => {
                if is_asked(asked, value, group) {
                    compare(asked, *key, value, group)
                } else {
                    Truth::Unknown
                }
            }
            (Self::List(all), _) => agreed(all.iter(), asked, group),
            (Self::Resources(all), _) => {
                let of_type = |one: &&Self| match one {
                    Self::Plain(_, value) => is_asked(asked, value, group),
                    _ => false,
                };
                // What comes along with a trusted host must not hide behind it.
                if all.iter().all(|one| of_type(&one)) {
                    agreed(all.iter(), asked, group)
                } else {
                    Truth::Unknown
                }
            }
        }
    }

    fn is_of(&self, kind: ParamType) -> Truth {
        use ParamType as Kind;
        let is_path = |one: &Self| matches!(one, Self::Plain(_, Value::Path(_)));
        let value = match self {
            Self::Plain(_, value) => value,
            Self::Resource(_, value) => {
                let path = kind == Kind::Path && matches!(value, Value::Path(_));
                return Truth::of(path || matches!(kind, Kind::Text | Kind::Any));
            }
            Self::List(_) => return Truth::of(matches!(kind, Kind::List | Kind::Any)),
            Self::Resources(all) => {
                let paths = kind == Kind::Path && all.iter().all(is_path);
                return Truth::of(paths || matches!(kind, Kind::Text | Kind::Any));
            }
        };
        let name = match value {
            Value::Missing | Value::Erased => return Truth::Unknown,
            _ if kind == Kind::Any => return Truth::True,
            Value::Bool(_) => Kind::Bool,
            Value::Int(_) if kind == Kind::Number => Kind::Number,
            Value::Int(_) => Kind::Int,
            Value::Path(_) if kind == Kind::Path => Kind::Path,
            Value::Text(_) | Value::Agent(_) | Value::Host(_) | Value::Path(_) => Kind::Text,
            Value::Other(Other::Float) => Kind::Number,
            Value::Other(Other::Bytes) => Kind::Bytes,
            Value::Other(Other::Map) => Kind::Map,
            Value::Other(Other::EmptyList) | Value::List(_) => Kind::List,
            Value::Address(_) | Value::Other(Other::Null) | Value::Resources(_) => {
                return Truth::False;
            }
        };
        Truth::of(name == kind)
    }
}

fn each<'v>(values: Vec<Value<'v>>, slot: &Slot) -> Vec<View<'v>> {
    values.into_iter().map(|value| View::of(Read::Plain(value), slot)).collect()
}

/// What holds of all alike. Once two differ no further one matters.
fn agreed<'v: 'a, 'a>(
    mut views: impl Iterator<Item = &'a View<'v>>,
    asked: Asked,
    group: &Group,
) -> Truth {
    let Some(first) = views.next() else { return Truth::Unknown };
    let truth = first.ask(asked, group);
    let same = truth == Truth::Unknown || views.all(|view| view.ask(asked, group) == truth);
    if same { truth } else { Truth::Unknown }
}

/// What is asked of one value that is no list, where its number is not enough: unknown where
/// their types differ.
fn compare(asked: Asked, key: Key, value: &Value<'_>, group: &Group) -> Truth {
    if let Asked::In(set) = asked {
        return group.sets.get(place(set)).map_or(Truth::Unknown, |set| set.has(key));
    }
    look_at(asked, value, group).unwrap_or(Truth::Unknown)
}

/// The tests that look at the value itself.
fn look_at(asked: Asked, value: &Value<'_>, group: &Group) -> Option<Truth> {
    Some(Truth::of(match (asked, value) {
        (Asked::Prefix(n), Value::Text(text)) => text.starts_with(&**group.texts.get(place(n))?),
        (Asked::Suffix(n), Value::Text(text)) => text.ends_with(&**group.texts.get(place(n))?),
        (Asked::Domain(n), Value::Host(host)) => is_in_domain(host, group.hosts.get(place(n))?),
        (Asked::Cidr(n), Value::Address(address)) => is_in(*address, *group.blocks.get(place(n))?),
        (Asked::Cidr(n), Value::Text(text)) => {
            is_in(text.parse().ok()?, *group.blocks.get(place(n))?)
        }
        _ => return None,
    }))
}

/// Whether a resource is of a type that the test is about.
fn is_asked(asked: Asked, resource: &Value<'_>, group: &Group) -> bool {
    let set = match asked {
        Asked::In(set) => group.sets.get(place(set)),
        _ => None,
    };
    let has_text = set.is_some_and(|set| set.has_text);
    match (resource, asked) {
        (Value::Text(_) | Value::Path(_) | Value::Host(_), Asked::Text { .. })
        | (Value::Text(_), Asked::Prefix(_) | Asked::Suffix(_))
        | (Value::Path(_), Asked::Within { .. })
        | (Value::Host(_), Asked::Domain(_))
        | (Value::Address(_), Asked::Cidr(_))
        | (
            Value::Int(_),
            Asked::Int(_)
            | Asked::Below(_)
            | Asked::AtMost(_)
            | Asked::Above(_)
            | Asked::AtLeast(_),
        ) => true,
        (Value::Text(_) | Value::Path(_) | Value::Host(_), _) => has_text,
        (Value::Int(_), _) => set.is_some_and(|set| !set.ints.is_empty()),
        _ => false,
    }
}

impl Set {
    /// Whether the value is one of the constants; unknown where it is not, and one of them is of
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

fn is_in_domain(host: &Host, domain: &Host) -> bool {
    match host.as_str().strip_suffix(domain.as_str()) {
        Some(rest) => rest.is_empty() || rest.ends_with('.'),
        None => false,
    }
}

fn is_in(address: IpAddr, block: Cidr) -> bool {
    let differ = match (address.to_canonical(), block.addr()) {
        (IpAddr::V4(a), IpAddr::V4(b)) => u128::from(a.to_bits() ^ b.to_bits()) << 96,
        (IpAddr::V6(a), IpAddr::V6(b)) => a.to_bits() ^ b.to_bits(),
        _ => return false,
    };
    differ.leading_zeros() >= u32::from(block.prefix())
}
