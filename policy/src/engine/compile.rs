//! Turns conditions into flat code: constants become numbers, so that most tests compare two.

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec::Vec,
};
use core::cmp::Ordering;

use syscap_kernel::{
    manifest::ParamType,
    policy::Verdict,
    scope::{Cidr, Host},
};

use crate::{
    document::{Ask, Attribute, Condition, Constant, Constraint, Effect},
    semantics::{host_of, of_grant},
};

/// Number of a constant that the attribute is equal to never.
pub(super) const NONE: u32 = u32::MAX;

/// The constraints of one subject. Each stands in one group only.
pub(super) struct Group {
    pub(super) rules: Box<[Rule]>,
    pub(super) code: Box<[Op]>,
    pub(super) slots: Box<[Slot]>,
    pub(super) sets: Box<[Set]>,
    pub(super) texts: Box<[Box<str>]>,
    pub(super) hosts: Box<[Host]>,
    pub(super) blocks: Box<[Cidr]>,
}

/// One constraint.
pub(super) struct Rule {
    /// Its place in the document.
    pub(super) place: u16,
    /// Where its code begins.
    pub(super) start: u32,
    pub(super) effect: Effect,
    /// The verdict of its `on_fail`.
    pub(super) on_fail: Verdict,
    /// Of an allow, the verdict where it grants.
    pub(super) granted: Verdict,
}

/// A step of a condition. A part stands behind what joins it, which knows where its last ends.
#[derive(Clone, Copy)]
pub(super) enum Op {
    All { end: u32 },
    Any { end: u32 },
    Not,
    Test { slot: u32, ask: Asked },
}

/// What is asked of a slot. Numbers stand for constants: of text and hosts their place among the
/// slot's, of integers twice that and one, so that what lies between two has a number as well.
/// What lies within a path stands among the slot's paths directly behind it, so these are a range.
#[derive(Clone, Copy)]
pub(super) enum Asked {
    Text { text: u32, host: u32 },
    Int(u32),
    Bool(bool),
    In(u32),
    Exists,
    Missing,
    Schema(ParamType),
    Below(u32),
    AtMost(u32),
    Above(u32),
    AtLeast(u32),
    Prefix(u32),
    Suffix(u32),
    Within { start: u32, end: u32 },
    Domain(u32),
    Cidr(u32),
}

/// An attribute that the group's conditions ask about, and the constants it is compared with,
/// sorted.
pub(super) struct Slot {
    pub(super) attribute: Attribute,
    pub(super) texts: Box<[Box<str>]>,
    pub(super) hosts: Box<[Host]>,
    pub(super) ints: Box<[i128]>,
    /// Paths and agents that others lie within, component by component: what lies within one
    /// follows it.
    pub(super) outers: Box<[Box<str>]>,
}

/// The constants of an `in`, as numbers, sorted.
#[derive(Default)]
pub(super) struct Set {
    pub(super) texts: Box<[u32]>,
    pub(super) hosts: Box<[u32]>,
    pub(super) ints: Box<[u32]>,
    /// Whether there is any text: hosts may be fewer.
    pub(super) has_text: bool,
    pub(super) bools: [bool; 2],
}

impl Group {
    pub(super) fn new<'a>(
        constraints: impl Iterator<Item = (u16, &'a Constraint)> + Clone,
    ) -> Self {
        let mut constants: BTreeMap<&Attribute, Constants<'_>> = BTreeMap::new();
        for (_, constraint) in constraints.clone() {
            gather(&constraint.when, &mut constants);
        }
        let slots: Vec<Slot> = constants
            .into_iter()
            .map(|(attribute, constants)| Slot {
                attribute: attribute.clone(),
                texts: constants.texts.iter().map(|text| Box::from(*text)).collect(),
                hosts: constants.hosts.into_iter().collect(),
                ints: constants.ints.into_iter().collect(),
                outers: constants.outers.iter().map(|outer| Box::from(outer.0)).collect(),
            })
            .collect();
        let mut writer = Writer { slots, ..Writer::default() };
        let mut rules = Vec::new();
        for (place, constraint) in constraints {
            rules.push(Rule {
                place,
                start: number(writer.code.len()),
                effect: constraint.effect,
                on_fail: constraint.on_fail.verdict(),
                granted: of_grant(constraint),
            });
            writer.condition(&constraint.when);
        }
        Self {
            rules: rules.into_boxed_slice(),
            code: writer.code.into_boxed_slice(),
            slots: writer.slots.into_boxed_slice(),
            sets: writer.sets.into_boxed_slice(),
            texts: writer.texts.into_boxed_slice(),
            hosts: writer.hosts.into_boxed_slice(),
            blocks: writer.blocks.into_boxed_slice(),
        }
    }
}

/// What one attribute is compared with.
#[derive(Default)]
struct Constants<'a> {
    texts: BTreeSet<&'a str>,
    hosts: BTreeSet<Host>,
    ints: BTreeSet<i128>,
    outers: BTreeSet<Outer<'a>>,
}

/// A path or an agent, in the order of its components.
#[derive(PartialEq, Eq)]
struct Outer<'a>(&'a str);

impl Ord for Outer<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        by_component(self.0.bytes(), other.0.bytes())
    }
}

impl PartialOrd for Outer<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The order in which what lies below a path directly follows it: a separator stands before
/// every other byte, and no constant has a zero byte.
pub(super) fn by_component(a: impl Iterator<Item = u8>, b: impl Iterator<Item = u8>) -> Ordering {
    let key = |byte| if byte == b'/' { 0 } else { byte };
    a.map(key).cmp(b.map(key))
}

impl<'a> Constants<'a> {
    fn add(&mut self, constant: &'a Constant) {
        match constant {
            Constant::Bool(_) => {}
            Constant::Int(n) => {
                self.ints.insert(*n);
            }
            Constant::Text(text) => {
                self.texts.insert(text);
                self.hosts.extend(host_of(text));
            }
        }
    }
}

fn gather<'a>(condition: &'a Condition, all: &mut BTreeMap<&'a Attribute, Constants<'a>>) {
    let test = match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            return parts.iter().for_each(|part| gather(part, all));
        }
        Condition::Not(part) => return gather(part, all),
        Condition::Test(test) => test,
    };
    let constants = all.entry(&test.attribute).or_default();
    match &test.ask {
        Ask::Eq(constant) => constants.add(constant),
        Ask::In(list) => list.iter().for_each(|constant| constants.add(constant)),
        Ask::Lt(n) | Ask::Le(n) | Ask::Gt(n) | Ask::Ge(n) => {
            constants.ints.insert(*n);
        }
        Ask::Within(outer) => {
            constants.outers.insert(Outer(outer));
        }
        _ => {}
    }
}

#[derive(Default)]
struct Writer {
    code: Vec<Op>,
    slots: Vec<Slot>,
    sets: Vec<Set>,
    texts: Vec<Box<str>>,
    hosts: Vec<Host>,
    blocks: Vec<Cidr>,
}

impl Writer {
    fn condition(&mut self, condition: &Condition) {
        match condition {
            Condition::All(parts) => {
                let place = self.joint(Op::All { end: 0 }, parts);
                let end = number(self.code.len());
                self.patch(place, Op::All { end });
            }
            Condition::Any(parts) => {
                let place = self.joint(Op::Any { end: 0 }, parts);
                let end = number(self.code.len());
                self.patch(place, Op::Any { end });
            }
            Condition::Not(part) => {
                self.code.push(Op::Not);
                self.condition(part);
            }
            Condition::Test(test) => {
                let slot = self.slots.binary_search_by(|slot| slot.attribute.cmp(&test.attribute));
                // Every attribute was gathered before.
                let slot = slot.unwrap_or(usize::MAX);
                let ask = self.ask(slot, &test.ask);
                self.code.push(Op::Test { slot: number(slot), ask });
            }
        }
    }

    fn joint(&mut self, op: Op, parts: &[Condition]) -> usize {
        let place = self.code.len();
        self.code.push(op);
        parts.iter().for_each(|part| self.condition(part));
        place
    }

    fn patch(&mut self, place: usize, op: Op) {
        if let Some(old) = self.code.get_mut(place) {
            *old = op;
        }
    }

    fn ask(&mut self, slot: usize, ask: &Ask) -> Asked {
        match ask {
            Ask::Eq(Constant::Bool(value)) => Asked::Bool(*value),
            Ask::Eq(Constant::Int(n)) => Asked::Int(self.int(slot, *n)),
            Ask::Eq(Constant::Text(text)) => {
                let (text, host) = self.text(slot, text);
                Asked::Text { text, host }
            }
            Ask::In(constants) => {
                let set = self.set(slot, constants);
                Asked::In(push(&mut self.sets, set))
            }
            Ask::Exists => Asked::Exists,
            Ask::Missing => Asked::Missing,
            Ask::Schema(kind) => Asked::Schema(*kind),
            Ask::Lt(n) => Asked::Below(self.int(slot, *n)),
            Ask::Le(n) => Asked::AtMost(self.int(slot, *n)),
            Ask::Gt(n) => Asked::Above(self.int(slot, *n)),
            Ask::Ge(n) => Asked::AtLeast(self.int(slot, *n)),
            Ask::Prefix(text) => Asked::Prefix(push(&mut self.texts, text.clone())),
            Ask::Suffix(text) => Asked::Suffix(push(&mut self.texts, text.clone())),
            Ask::Within(text) => self.within(slot, text),
            Ask::Domain(host) => Asked::Domain(push(&mut self.hosts, host.clone())),
            Ask::Cidr(block) => Asked::Cidr(push(&mut self.blocks, *block)),
        }
    }

    fn set(&self, slot: usize, constants: &[Constant]) -> Set {
        let mut set = Set::default();
        let (mut texts, mut hosts, mut ints) = (Vec::new(), Vec::new(), Vec::new());
        for constant in constants {
            match constant {
                Constant::Bool(false) => set.bools[0] = true,
                Constant::Bool(true) => set.bools[1] = true,
                Constant::Int(n) => ints.push(self.int(slot, *n)),
                Constant::Text(text) => {
                    let (text, host) = self.text(slot, text);
                    set.has_text = true;
                    texts.push(text);
                    hosts.extend((host != NONE).then_some(host));
                }
            }
        }
        for list in [&mut texts, &mut hosts, &mut ints] {
            list.sort_unstable();
            list.dedup();
        }
        set.texts = texts.into_boxed_slice();
        set.hosts = hosts.into_boxed_slice();
        set.ints = ints.into_boxed_slice();
        set
    }

    fn within(&self, slot: usize, text: &str) -> Asked {
        let outers = self.slots.get(slot).map(|slot| &*slot.outers).unwrap_or_default();
        let start = outers.partition_point(|outer| Outer(outer) < Outer(text));
        let rest = outers.get(start..).unwrap_or_default();
        let count = rest.partition_point(|outer| {
            outer.strip_prefix(text).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        });
        Asked::Within { start: number(start), end: number(start.saturating_add(count)) }
    }

    fn int(&self, slot: usize, n: i128) -> u32 {
        self.slots.get(slot).map_or(NONE, |slot| slot.int(n))
    }

    fn text(&self, slot: usize, text: &str) -> (u32, u32) {
        let Some(slot) = self.slots.get(slot) else { return (NONE, NONE) };
        let host = host_of(text).and_then(|host| slot.hosts.binary_search(&host).ok());
        let text = slot.texts.binary_search_by(|constant| (**constant).cmp(text)).ok();
        (text.map_or(NONE, number), host.map_or(NONE, number))
    }
}

impl Slot {
    /// The number of an integer: odd for a constant, even for what lies between two.
    pub(super) fn int(&self, n: i128) -> u32 {
        let (place, odd) = match self.ints.binary_search(&n) {
            Ok(place) => (place, 1),
            Err(place) => (place, 0),
        };
        number(place).saturating_mul(2).saturating_add(odd)
    }
}

/// A place as a number. A document has far fewer constants than there are numbers.
pub(super) fn number(place: usize) -> u32 {
    u32::try_from(place).unwrap_or(NONE)
}

fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    let place = number(list.len());
    list.push(value);
    place
}

/// A number as a place.
pub(super) fn place(number: u32) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}
