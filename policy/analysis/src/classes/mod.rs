//! Classes of values: those that the tests at hand can't tell apart.
//!
//! Each class has one value that stands for it. Together they are exact: every vector of answers
//! that some value gives is given by one of them, unless [`Classes::exact`] says otherwise.

mod combine;
mod constants;
mod fresh;
mod net;
mod sieve;
mod text;
mod time;

use alloc::{boxed::Box, collections::BTreeSet, vec::Vec};

use syscap_format::AgentId;
use syscap_policy::{Ask, Attribute, Given, Other, Type};

pub(super) use combine::{Combine, types};
pub(super) use sieve::{Asked, Class, Shape};
pub(super) use text::{agents, tools};
pub(super) use time::at;

use crate::variable::Variable;
use constants::integer_constants;
use sieve::Sieve;

/// All classes of a variable.
#[derive(Debug)]
pub(super) struct Classes {
    pub(super) all: Vec<Class>,
    /// True if nothing was left out.
    pub(super) exact: bool,
}

/// The classes of a variable by these tests. Values of different shapes are told apart where
/// `shapes` says so.
pub(super) fn classes(
    variable: &Variable,
    asked: &[Asked<'_>],
    shapes: bool,
    combine: Combine,
) -> Classes {
    let mut sieve = Sieve::new(asked, shapes);
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
            let (agents, exact) = agents(&asks, None);
            for agent in agents {
                sieve.one(attribute, Some(Given::Agent(agent)));
            }
            exact
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
        let (paths, all_paths) = text::paths(asks);
        let (hosts, all_hosts) = net::hosts(asks);
        exact &= all_paths && all_hosts;
        all.extend(paths);
        all.extend(hosts.into_iter().map(Given::Host));
        all.extend(net::addresses(asks).into_iter().map(Given::Address));
        let (bundles, all_of_them) = combine::bundles(all, sieve.asked, combine);
        exact &= all_of_them;
        for bundle in bundles {
            sieve.one(attribute, Some(Given::Resources(bundle)));
        }
        let (trees, all_trees) = text::trees(asks);
        exact &= all_trees;
        // Beside another, paths or not, nothing that is compared can be said of a tree.
        let beside = trees.first().cloned().into_iter().flat_map(|tree| {
            [Vec::from([tree.clone(), tree.clone()]), Vec::from([tree, Given::text("")])]
        });
        for bundle in trees.iter().cloned().map(|tree| Vec::from([tree])).chain(beside) {
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
