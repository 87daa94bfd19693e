//! Lets one value of each class through.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use syscap_policy::{Attribute, Given, Other, Truth, Value, semantics};

use crate::formula::{Is, Needs};
use crate::variable::Atom;

/// The relation of a value to the fields below it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Shape {
    Missing,
    Erased,
    /// A map, or an argument that names resources: fields can be below it.
    Inner,
    Leaf,
}

/// One class of values of a variable.
#[derive(Clone, Debug)]
pub(crate) struct Class {
    /// The value that stands for it, by attribute. A missing value is not listed.
    pub(crate) given: Vec<(Attribute, Given)>,
    /// Its answers, in the order of the tests asked for.
    pub(crate) answers: Vec<Truth>,
    pub(crate) shape: Shape,
}

/// A test to tell values apart by.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) atom: &'a Atom,
    /// The answers that matter.
    pub(crate) needs: Needs,
    /// The group of which only matters whether any of its tests is met, and how this one is.
    pub(crate) group: Option<(usize, Is)>,
}

/// Answers as far as they matter: what is alike here stays alike whatever is joined to it. One
/// answer stands for a group, since a list or a bundle meets a question of a group if one of its
/// parts does.
pub(crate) fn reduced(
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

/// Lets one value of each class through.
pub(super) struct Sieve<'a, 'b> {
    pub(super) asked: &'a [Asked<'b>],
    shapes: bool,
    seen: BTreeSet<(Vec<Option<Truth>>, Option<Shape>)>,
    pub(super) all: Vec<Class>,
}

impl<'a, 'b> Sieve<'a, 'b> {
    pub(super) const fn new(asked: &'a [Asked<'b>], shapes: bool) -> Self {
        Self { asked, shapes, seen: BTreeSet::new(), all: Vec::new() }
    }

    pub(super) fn one(&mut self, attribute: &Attribute, given: Option<Given>) {
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

    pub(super) fn take(
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
