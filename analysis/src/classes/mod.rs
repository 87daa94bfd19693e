//! Classes of values: those that the tests at hand can't tell apart.
//!
//! Each class has one value that stands for it. Together they are exact: every vector of answers
//! that some value gives is given by one of them, unless [`Classes::exact`] says otherwise.

mod combine;
mod net;
mod text;
mod time;

use alloc::{
    boxed::Box,
    collections::{BTreeMap, BTreeSet},
    vec,
    vec::Vec,
};

use syscap_format::id::AgentId;

pub(super) use combine::{Combine, types};
pub(super) use text::{agents, tools};
pub(super) use time::at;

use super::{
    formula::{Is, Needs},
    problem::{Atom, Variable},
};
use syscap_policy::{
    Other, Truth, Value,
    document::{Ask, Attribute, Constant, Type},
    scenario::Given,
    semantics,
};

/// What a value is to the fields below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shape {
    Missing,
    Erased,
    /// A map, or an argument that names resources: fields can be below it.
    Inner,
    Leaf,
}

/// One class of values of a variable.
#[derive(Clone, Debug)]
pub(super) struct Class {
    /// The value that stands for it, by attribute. What is missing is not listed.
    pub(super) given: Vec<(Attribute, Given)>,
    /// Its answers, in the order of the tests asked for.
    pub(super) answers: Vec<Truth>,
    pub(super) shape: Shape,
}

/// All classes of a variable.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    /// Whether nothing was left out.
    pub(super) exact: bool,
}

/// A test to tell values apart by.
#[derive(Clone, Copy)]
pub(super) struct Asked<'a> {
    pub(super) atom: &'a Atom,
    /// The answers that matter.
    pub(super) needs: Needs,
    /// The group of which only matters whether any of its tests is met, and how this one is.
    pub(super) group: Option<(usize, Is)>,
}

/// Answers as far as they matter: what is alike here stays alike whatever is joined to it. Of a
/// group one answer is enough, since a list or a bundle meets a question of a group where one of
/// its parts does.
pub(super) fn reduced(
    answers: impl Iterator<Item = Option<Truth>>,
    asked: &[Asked<'_>],
) -> Vec<Option<Truth>> {
    let mut kept = Vec::new();
    let mut groups: BTreeMap<usize, Option<Truth>> = BTreeMap::new();
    for (truth, one) in answers.zip(asked) {
        match one.group {
            None => kept.push(truth.map(|truth| one.needs.reduce(truth))),
            Some((group, is)) => {
                let met = truth.map(|truth| Truth::of(is.met(truth)));
                let slot = groups.entry(group).or_default();
                *slot = (*slot).max(met);
            }
        }
    }
    kept.extend(groups.into_values());
    kept
}

/// The classes of a variable by these tests. Values of different shapes are told apart where
/// `shapes` says so.
pub(super) fn classes(
    variable: &Variable,
    asked: &[Asked<'_>],
    shapes: bool,
    combine: Combine,
) -> Classes {
    let mut sieve = Sieve { asked, shapes, seen: BTreeSet::new(), all: Vec::new() };
    let exact = match variable {
        Variable::Call => true,
        Variable::Now => time::fill(&mut sieve),
        Variable::One(attribute) => fill(attribute, &mut sieve, combine),
    };
    Classes { all: sieve.all, exact }
}

fn fill(attribute: &Attribute, sieve: &mut Sieve<'_, '_>, combine: Combine) -> bool {
    let asks: Vec<&Ask> = sieve.asked.iter().map(|one| &one.atom.ask).collect();
    match attribute.kind() {
        Type::Agent => {
            for agent in agents(&asks, None) {
                sieve.one(attribute, Some(Given::Agent(agent)));
            }
            true
        }
        Type::TokenId => {
            let (texts, exact) = text::token_ids(&asks);
            texts.iter().for_each(|text| sieve.one(attribute, Some(Given::text(text))));
            exact
        }
        Type::Bool => {
            sieve.one(attribute, Some(Given::Bool(false)));
            sieve.one(attribute, Some(Given::Bool(true)));
            true
        }
        Type::Fact | Type::Argument | Type::Field => data(attribute, &asks, sieve, combine),
        Type::UpTo(most) => {
            integers(&asks, 0, most).for_each(|given| sieve.one(attribute, Some(given)));
            true
        }
        Type::Among(least, most) => {
            let given = integers(&asks, i128::from(least), most);
            given.for_each(|given| sieve.one(attribute, Some(given)));
            true
        }
        // They come with the call, and are fixed before.
        Type::Tool | Type::EffectClass => true,
    }
}

/// Values of a fact or an argument.
fn data(attribute: &Attribute, asks: &[&Ask], sieve: &mut Sieve<'_, '_>, combine: Combine) -> bool {
    sieve.one(attribute, None);
    let (texts, mut exact) = text::texts(asks);
    let mut scalars: Vec<Given> = texts.iter().map(|text| Given::text(text)).collect();
    scalars.extend(integers(asks, i128::from(i64::MIN), u64::MAX));
    scalars.extend([Given::Bool(false), Given::Bool(true)]);
    for scalar in &scalars {
        sieve.one(attribute, Some(scalar.clone()));
    }
    if attribute.kind() == Type::Argument {
        let mut all: Vec<Given> = scalars
            .iter()
            .filter(|scalar| matches!(scalar, Given::Text(_) | Given::Int(_)))
            .cloned()
            .collect();
        all.extend(text::paths(asks));
        all.extend(net::hosts(asks).into_iter().map(Given::Host));
        all.extend(net::addresses(asks).into_iter().map(Given::Address));
        let (bundles, all_of_them) = combine::bundles(all, sieve.asked, combine);
        exact &= all_of_them;
        for bundle in bundles {
            sieve.one(attribute, Some(Given::Resources(bundle)));
        }
    }
    scalars.push(Given::Other(Other::Null));
    let (lists, all_of_them) = combine::lists(scalars, sieve.asked, combine);
    exact &= all_of_them;
    for list in lists {
        sieve.one(attribute, Some(Given::List(list)));
    }
    let others = [Other::Null, Other::Float, Other::Bytes, Other::EmptyList, Other::Map];
    for other in others {
        sieve.one(attribute, Some(Given::Other(other)));
    }
    if attribute.kind() == Type::Fact {
        sieve.one(attribute, Some(Given::Erased));
    }
    exact
}

/// Integers around every constant, and the extremes.
fn integers(asks: &[&Ask], least: i128, most: u64) -> impl Iterator<Item = Given> {
    let most = i128::from(most);
    let mut around = BTreeSet::from([0_i128.max(least), least, most]);
    for ask in asks {
        for bound in integer_constants(ask) {
            for near in [bound.saturating_sub(1), bound, bound.saturating_add(1)] {
                if (least..=most).contains(&near) {
                    around.insert(near);
                }
            }
        }
    }
    around.into_iter().map(Given::Int)
}

fn integer_constants(ask: &Ask) -> Vec<i128> {
    let of = |constant: &Constant| match constant {
        Constant::Int(value) => Some(*value),
        _ => None,
    };
    match ask {
        Ask::Lt(bound) | Ask::Le(bound) | Ask::Gt(bound) | Ask::Ge(bound) => vec![*bound],
        Ask::Eq(constant) => of(constant).into_iter().collect(),
        Ask::In(constants) => constants.iter().filter_map(of).collect(),
        _ => Vec::new(),
    }
}

/// Text constants that a value may equal.
fn text_constants<'a>(asks: &[&'a Ask]) -> Vec<&'a str> {
    let of = |constant: &'a Constant| match constant {
        Constant::Text(text) => Some(&**text),
        _ => None,
    };
    let mut found = Vec::new();
    for ask in asks {
        match ask {
            Ask::Eq(constant) => found.extend(of(constant)),
            Ask::In(constants) => found.extend(constants.iter().filter_map(of)),
            _ => {}
        }
    }
    found
}

/// Lets one value of each class through.
pub(super) struct Sieve<'a, 'b> {
    asked: &'a [Asked<'b>],
    shapes: bool,
    seen: BTreeSet<(Vec<Option<Truth>>, Option<Shape>)>,
    all: Vec<Class>,
}

impl Sieve<'_, '_> {
    fn one(&mut self, attribute: &Attribute, given: Option<Given>) {
        let shape = match &given {
            None => Shape::Missing,
            Some(Given::Erased) => Shape::Erased,
            Some(Given::Other(Other::Map) | Given::Resources(_)) => Shape::Inner,
            Some(_) => Shape::Leaf,
        };
        let value = given.as_ref().map_or(Value::Missing, Given::value);
        let answer = |atom: &Atom| semantics::ask(&atom.ask, &value);
        let answers: Vec<Truth> = self.asked.iter().map(|one| answer(one.atom)).collect();
        self.take(given.into_iter().map(|given| (attribute.clone(), given)), answers, shape);
    }

    fn take(
        &mut self,
        given: impl Iterator<Item = (Attribute, Given)>,
        answers: Vec<Truth>,
        shape: Shape,
    ) {
        let reduced = reduced(answers.iter().copied().map(Some), self.asked);
        if self.seen.insert((reduced, self.shapes.then_some(shape))) {
            self.all.push(Class { given: given.collect(), answers, shape });
        }
    }
}

/// A value of an attribute that varies by itself and that the kernel fills in; the others can be
/// left out.
pub(super) fn default_of(attribute: &Attribute) -> Option<Given> {
    match attribute.kind() {
        Type::Fact | Type::Argument | Type::Field | Type::Tool | Type::EffectClass => None,
        Type::Agent => AgentId::new(text::SOME_AGENT).map(Given::Agent),
        Type::TokenId => Some(Given::Text(Box::from("0".repeat(64)))),
        Type::Bool => Some(Given::Bool(false)),
        Type::UpTo(_) => Some(Given::Int(0)),
        Type::Among(least, _) => Some(Given::Int(i128::from(least))),
    }
}
