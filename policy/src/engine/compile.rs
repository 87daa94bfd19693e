//! Turns conditions into flat code: constants become numbers, so that most tests compare two.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cmp::Reverse;

use syscap_format::Host;

use super::code::{Asked, Constants, Op, Rule, Set, Slot, Test};
use super::gates::{self, Gates};
use super::number::{NONE, number};
use super::outers::Outers;
use super::run::First;
use crate::document::{self, Ask, Attribute, Condition, Constant, Constraint, Effect};
use crate::semantics::of_grant;
use crate::value::host_of;

/// The constraints of one subject. Each stands in one group only.
pub(super) struct Group {
    pub(super) rules: Box<[Rule]>,
    /// The rules of it that are found by their first test. They follow the others.
    pub(super) gates: Box<[Gates]>,
    /// The result of its allows when none grants.
    pub(super) failed: First,
    pub(super) code: Box<[Op]>,
    pub(super) slots: Box<[Slot]>,
    pub(super) constants: Constants,
}

impl Group {
    pub(super) fn new<'a>(
        constraints: impl Iterator<Item = (u16, &'a Constraint)> + Clone,
    ) -> Self {
        let mut constants: BTreeMap<&Attribute, Compared<'_>> = BTreeMap::new();
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
                outers: Outers::new(&constants.outers),
            })
            .collect();
        let mut writer = Writer { slots, ..Writer::default() };
        let (mut rules, mut failed) = (Vec::new(), First::default());
        for (place, constraint) in constraints {
            if constraint.effect == Effect::Allow {
                failed.note(constraint.on_fail.verdict(), place);
            }
            rules.push(writer.rule(place, constraint));
        }
        Self {
            gates: gates::sort(&mut rules, &writer.slots),
            rules: rules.into_boxed_slice(),
            failed,
            code: writer.code.into_boxed_slice(),
            slots: writer.slots.into_boxed_slice(),
            constants: Constants {
                sets: writer.sets.into_boxed_slice(),
                asks: writer.asks.into_boxed_slice(),
            },
        }
    }
}

/// The constants of one attribute.
#[derive(Default)]
struct Compared<'a> {
    texts: BTreeSet<&'a str>,
    hosts: BTreeSet<Host>,
    ints: BTreeSet<i128>,
    outers: BTreeSet<&'a str>,
}

impl<'a> Compared<'a> {
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

fn gather<'a>(condition: &'a Condition, all: &mut BTreeMap<&'a Attribute, Compared<'a>>) {
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
            constants.outers.insert(outer);
        }
        _ => {}
    }
}

#[derive(Default)]
struct Writer {
    code: Vec<Op>,
    slots: Vec<Slot>,
    sets: Vec<Set>,
    asks: Vec<Ask>,
}

/// The parts of a condition that must all hold, where `all` stands within `all`.
fn parts<'a>(condition: &'a Condition, found: &mut Vec<&'a Condition>) {
    match condition {
        Condition::All(all) => all.iter().for_each(|part| parts(part, found)),
        part => found.push(part),
    }
}

/// How much there is to do for a part. Their order is nothing to what they mean.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Effort {
    /// Rules are found by it: the more constants the slot has, the fewer rules each finds.
    Found(Reverse<usize>),
    /// Numbers are compared.
    Compared,
    /// The value is looked at.
    Looked,
    Joint,
}

impl Writer {
    fn rule(&mut self, place: u16, constraint: &Constraint) -> Rule {
        let mut found = Vec::new();
        parts(&constraint.when, &mut found);
        found.sort_by_cached_key(|part| self.effort(part));
        let (gate, rest) = match found.split_first() {
            Some((Condition::Test(test), rest)) => (Some(self.test(test)), rest),
            _ => (None, &*found),
        };
        let start = number(self.code.len());
        rest.iter().for_each(|part| self.condition(part));
        let verdict = match constraint.effect {
            Effect::Allow => of_grant(constraint),
            Effect::Deny => constraint.on_fail.verdict(),
        };
        let end = number(self.code.len());
        Rule { place, effect: constraint.effect, verdict, gate, start, end }
    }

    fn effort(&self, part: &Condition) -> Effort {
        let Condition::Test(test) = part else { return Effort::Joint };
        let slot = self.slots.get(self.slot(&test.attribute));
        let found = |constants: Option<usize>| Effort::Found(Reverse(constants.unwrap_or(0)));
        match test.ask {
            Ask::Eq(Constant::Text(_)) => found(slot.map(|slot| slot.texts.len())),
            Ask::Within(_) => found(slot.map(|slot| slot.outers.len())),
            Ask::Eq(_) | Ask::Lt(_) | Ask::Le(_) | Ask::Gt(_) | Ask::Ge(_) => Effort::Compared,
            Ask::Exists | Ask::Missing => Effort::Compared,
            Ask::In(_) | Ask::Schema(_) | Ask::Prefix(_) | Ask::Suffix(_) => Effort::Looked,
            Ask::Domain(_) | Ask::Cidr(_) => Effort::Looked,
        }
    }

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
                let test = self.test(test);
                self.code.push(Op::Test(test));
            }
        }
    }

    fn test(&mut self, test: &document::Test) -> Test {
        let slot = self.slot(&test.attribute);
        Test { slot: number(slot), ask: self.ask(slot, &test.ask) }
    }

    fn slot(&self, attribute: &Attribute) -> usize {
        let slot = self.slots.binary_search_by(|slot| slot.attribute.cmp(attribute));
        // Every attribute was gathered before.
        slot.unwrap_or(usize::MAX)
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
            Ask::Lt(n) => Asked::Below(self.int(slot, *n)),
            Ask::Le(n) => Asked::AtMost(self.int(slot, *n)),
            Ask::Gt(n) => Asked::Above(self.int(slot, *n)),
            Ask::Ge(n) => Asked::AtLeast(self.int(slot, *n)),
            Ask::Within(text) => {
                let outers = self.slots.get(slot).map(|slot| &slot.outers);
                let (start, end) = outers.map_or((NONE, NONE), |outers| outers.within(text));
                Asked::Within { start, end }
            }
            Ask::Schema(_) | Ask::Prefix(_) | Ask::Suffix(_) | Ask::Domain(_) | Ask::Cidr(_) => {
                Asked::Look(push(&mut self.asks, ask.clone()))
            }
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

fn push<T>(list: &mut Vec<T>, value: T) -> u32 {
    let place = number(list.len());
    list.push(value);
    place
}
