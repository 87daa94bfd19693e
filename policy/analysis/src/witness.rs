//! Scenarios that can come about.

use syscap_policy::{Attribute, Given, Other, Scenario};

use super::classes::{Shape, at, default_of};
use super::problem::{Call, Problem, of_call};
use super::variable::Variable;
use alloc::vec::Vec;

/// An attribute, and the shape of its value.
#[derive(Clone, Copy)]
pub(super) struct Shaped<'a> {
    pub(super) attribute: &'a Attribute,
    pub(super) shape: Shape,
}

/// True if two values of one fact or argument can exist at once. A field is missing unless a map
/// holds it, and what was erased was erased as a whole.
pub(super) fn go_together(a: Shaped<'_>, b: Shaped<'_>) -> bool {
    if (a.shape == Shape::Erased) != (b.shape == Shape::Erased) {
        return false;
    }
    let below = |inner: Shaped<'_>, outer: Shaped<'_>| {
        !is_below(inner.attribute, outer.attribute)
            || matches!(inner.shape, Shape::Missing | Shape::Erased)
            || outer.shape == Shape::Inner
    };
    below(a, b) && below(b, a)
}

/// True if an attribute is a field of another.
fn is_below(inner: &Attribute, outer: &Attribute) -> bool {
    let (inner, outer) = match (inner, outer) {
        (Attribute::Fact(a, inner), Attribute::Fact(b, outer)) if a == b => (inner, outer),
        (Attribute::Argument(a, inner), Attribute::Argument(b, outer)) if a == b => (inner, outer),
        _ => return false,
    };
    inner.len() > outer.len() && inner.starts_with(outer)
}

/// A scenario with these values. It has the fields that the kernel fills in, and a map around each
/// present field.
pub(super) fn complete(
    problem: &Problem<'_>,
    call: &Call,
    given: impl Iterator<Item = (Attribute, Given)>,
) -> Scenario {
    let mut scenario = of_call(&call.tool, call.class);
    if let Some(agent) = default_of(&Attribute::Agent) {
        scenario.set(Attribute::Agent, agent);
    }
    let given: Vec<(Attribute, Given)> = given.collect();
    for variable in &problem.variables {
        match variable {
            Variable::Call => {}
            Variable::Now => {
                at(0).for_each(|(attribute, value)| scenario.set(attribute, value));
            }
            Variable::One(attribute) => {
                if let Some(value) = default_of(attribute) {
                    scenario.set(attribute.clone(), value);
                }
                if let Some(value) = implied(attribute, &given) {
                    scenario.set(attribute.clone(), value);
                }
            }
        }
    }
    given.into_iter().for_each(|(attribute, value)| scenario.set(attribute, value));
    scenario
}

/// The value that others imply.
fn implied(attribute: &Attribute, given: &[(Attribute, Given)]) -> Option<Given> {
    let family = |other: &Attribute| match (attribute, other) {
        (Attribute::Fact(a, _), Attribute::Fact(b, _)) => a == b,
        _ => false,
    };
    let erased = |(other, value): &(Attribute, Given)| family(other) && *value == Given::Erased;
    if given.iter().any(erased) {
        return Some(Given::Erased);
    }
    let holds = given.iter().any(|(other, _)| is_below(other, attribute));
    holds.then_some(Given::Other(Other::Map))
}
