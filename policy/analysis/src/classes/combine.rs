//! Lists and bundles of resources: what several values are together.

use alloc::{collections::BTreeMap, vec::Vec};
use core::net::{IpAddr, Ipv4Addr};

use syscap_format::Host;
use syscap_policy::semantics::{self, is_asked};
use syscap_policy::{Ask, Given, Truth, Value};

use super::sieve::{Asked, reduced};

/// Answers that are joined for one attribute before the rest is given up.
const WORK_MAX: usize = 4_000_000;

/// Which combinations of values are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Combine {
    /// All.
    All,
    /// One of each type. For finding the mildest verdict that is enough: a second value of a
    /// type only makes answers unknown, so that fewer allows grant and more denies apply.
    OneOfEachType,
}

/// Answers of values together; `None` where none of them is of the type that is asked about.
type Answers = Vec<Option<Truth>>;

/// Lists of these elements, one for each vector of answers; whether they are all.
pub(super) fn lists(
    elements: Vec<Given>,
    asked: &[Asked<'_>],
    combine: Combine,
) -> (Vec<Vec<Given>>, bool) {
    let answer = |value: &Value<'_>| -> Answers {
        let one = asked.iter().map(|Asked { atom, .. }| match &atom.ask {
            Ask::Exists | Ask::Missing | Ask::Schema(_) => None,
            ask => Some(semantics::ask(ask, value)),
        });
        one.collect()
    };
    let parts = elements.into_iter().map(|element| (answer(&element.value()), 0, element));
    closure(distinct(parts, asked), asked, combine)
}

/// Bundles of these resources, one for each vector of answers; whether they are all.
pub(super) fn bundles(
    resources: Vec<Given>,
    asked: &[Asked<'_>],
    combine: Combine,
) -> (Vec<Vec<Given>>, bool) {
    let answer = |value: &Value<'_>| -> Answers {
        let one = asked.iter().map(|Asked { atom, .. }| match &atom.ask {
            Ask::Exists | Ask::Missing => None,
            // What is asked is whether all are paths.
            Ask::Schema(_) => {
                Some(semantics::ask(&atom.ask, &Value::Resources([value.clone()].into())))
            }
            ask if !is_asked(ask, value) => Some(Truth::Unknown),
            ask => Some(semantics::ask(ask, value)),
        });
        one.collect()
    };
    let parts = resources.into_iter().map(|resource| {
        let value = resource.value();
        let kind = match value {
            Value::Text(_) => 0_u8,
            Value::Int(_) => 1,
            Value::Path(_) => 2,
            Value::Host(_) => 3,
            _ => 4,
        };
        (answer(&value), kind, resource)
    });
    closure(distinct(parts, asked), asked, combine)
}

/// A value to combine: its answers, its type and itself.
type Part = (Answers, u8, Given);

fn distinct(parts: impl Iterator<Item = Part>, asked: &[Asked<'_>]) -> Vec<Part> {
    let mut seen = BTreeMap::new();
    let mut kept: Vec<Part> = Vec::new();
    for part in parts {
        let key = (reduced(part.0.iter().copied(), asked), part.1);
        if seen.insert(key, ()).is_none() {
            kept.push(part);
        }
    }
    kept
}

/// Combinations of parts until no new vector comes up, or too much work was done.
fn closure(parts: Vec<Part>, asked: &[Asked<'_>], combine: Combine) -> (Vec<Vec<Given>>, bool) {
    // Beside its answers a combination has the types in it where they count.
    let mut seen: BTreeMap<(Answers, u8), ()> = BTreeMap::new();
    let mut found: Vec<(Answers, u8, Vec<usize>)> = Vec::new();
    for (n, (answers, kind, _)) in parts.iter().enumerate() {
        let types = 1_u8.checked_shl(u32::from(*kind)).unwrap_or(0);
        let types_seen = if combine == Combine::All { 0 } else { types };
        let key = (reduced(answers.iter().copied(), asked), types_seen);
        if seen.insert(key, ()).is_none() {
            found.push((answers.clone(), types_seen, [n].into()));
        }
    }
    let mut work = 0_usize;
    let mut at = 0;
    let mut exact = true;
    'all: while let Some((answers, types, members)) = found.get(at).cloned() {
        at = at.saturating_add(1);
        for (n, (more, kind, _)) in parts.iter().enumerate() {
            let kind = 1_u8.checked_shl(u32::from(*kind)).unwrap_or(0);
            if combine == Combine::OneOfEachType && types & kind != 0 {
                continue;
            }
            work = work.saturating_add(asked.len()).saturating_add(1);
            if work > WORK_MAX {
                exact = false;
                break 'all;
            }
            let joined = join(&answers, more, asked);
            let types = if combine == Combine::All { 0 } else { types | kind };
            if seen.insert((reduced(joined.iter().copied(), asked), types), ()).is_none() {
                let mut members = members.clone();
                members.push(n);
                found.push((joined, types, members));
            }
        }
    }
    let value = |n: &usize| parts.get(*n).map(|(_, _, given)| given.clone());
    let lists = found.iter().map(|(_, _, members)| members.iter().filter_map(value).collect());
    (lists.collect(), exact)
}

fn join(a: &Answers, b: &Answers, asked: &[Asked<'_>]) -> Answers {
    let pairs = a.iter().zip(b).zip(asked);
    pairs
        .map(|((a, b), one)| match (a, b) {
            (Some(a), Some(b)) if matches!(one.atom.ask, Ask::Schema(_)) => Some(a.and(*b)),
            (Some(a), Some(b)) => Some(a.agree(*b)),
            (a, b) => a.or(*b),
        })
        .collect()
}

/// The types of resources that are asked about, as bits.
pub(crate) fn types(ask: &Ask) -> u8 {
    let address = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
    let mut examples = Vec::from([Value::Text(""), Value::Int(0), Value::Address(address)]);
    let path = Given::path("a");
    let host = Host::new("a").ok();
    examples.extend(path.as_ref().map(Given::value));
    examples.extend(host.as_ref().map(Value::Host));
    examples.iter().fold(0, |bits: u8, one| bits << 1 | u8::from(is_asked(ask, one)))
}
