//! Arguments: what values of one have in common, and how often that would not hold.
//!
//! A class turns each value into one or a few keys, and asks that a later value has keys that were
//! seen. A task that is the only one to show a key would be refused if it had not been recorded, so
//! the share of such tasks estimates how often the next one will be (Good and Turing). In a range,
//! a task is alone if the others' range would not hold it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use syscap_format::{Ints, Item, ItemKind};
use syscap_policy::limits::LIST_MAX;
use syscap_policy::semantics::eval;
use syscap_policy::{Ask, Attribute, Condition, Constant, Test, Truth};

use super::{evidence::Call, narrowed::Class};

/// Most values that a condition lists: more are data, and no choice.
const VALUES_MAX: usize = 64;
/// Most beginnings or endings that a condition lists.
const PARTS_MAX: usize = 16;
/// Longest text that is listed: longer text is written, not chosen.
const TEXT_MAX: usize = 256;
/// Shortest beginning or ending, in bytes.
const PART_MIN: usize = 3;

/// How many keys a condition may list.
const fn keys_max(class: Class) -> usize {
    match class {
        Class::Values => VALUES_MAX,
        _ => PARTS_MAX,
    }
}

/// A class that says something about all values that were seen.
pub(super) struct Fitted {
    pub(super) class: Class,
    pub(super) condition: Option<Condition>,
    /// Tasks that alone show a value of it.
    pub(super) alone: BTreeSet<usize>,
}

/// A class for an argument, `None` where it can't say what was seen.
pub(super) fn fit(class: Class, name: &str, calls: &[Call<'_>], headroom: u64) -> Option<Fitted> {
    let (condition, alone) = match class {
        Class::Free => (None, BTreeSet::new()),
        Class::Range => range(&attribute(name)?, calls, headroom)?,
        _ => keyed(class, &attribute(name)?, calls)?,
    };
    let holds =
        |condition: &Condition| calls.iter().all(|call| eval(condition, call) == Truth::True);
    // What the engine would not say of the evidence itself is not proposed: of a list whose
    // elements end in several ways no ending can be said.
    let fine = condition.as_ref().is_none_or(holds);
    fine.then_some(Fitted { class, condition, alone })
}

/// How many different values there are; of lists, elements.
pub(super) fn distinct(name: &str, calls: &[Call<'_>]) -> usize {
    let values = calls.iter().filter_map(|call| call.item().get(name));
    let each = values.flat_map(|value| match value.kind() {
        ItemKind::Array => value.elements().map(Item::as_bytes).collect::<Vec<_>>(),
        _ => Vec::from([value.as_bytes()]),
    });
    each.collect::<BTreeSet<_>>().len()
}

/// The attribute of an argument, `None` where no document can name it.
fn attribute(name: &str) -> Option<Attribute> {
    let mut text = alloc::string::String::from("args.");
    text.push_str(name);
    let attribute = Attribute::parse(&text)?;
    let whole = matches!(&attribute, Attribute::Argument(_, fields) if fields.is_empty());
    whole.then_some(attribute)
}

/// A key: a constant of a condition, or that there is no value.
type Key = Option<Constant>;

/// The condition on keys, and who is alone.
type Narrowed = (Option<Condition>, BTreeSet<usize>);

fn keyed(class: Class, attribute: &Attribute, calls: &[Call<'_>]) -> Option<Narrowed> {
    let name = attribute.argument()?;
    let mut owners: BTreeMap<Key, BTreeSet<usize>> = BTreeMap::new();
    for call in calls {
        for key in keys(class, call.item().get(name))? {
            owners.entry(key).or_default().insert(call.task);
        }
        if owners.len() > keys_max(class).saturating_add(1) {
            return None;
        }
    }
    let missing = owners.contains_key(&None);
    let alone = owners.values().filter(|tasks| tasks.len() == 1).flatten().copied().collect();
    let constants: Vec<Constant> = owners.into_keys().flatten().collect();
    if constants.len() > keys_max(class) || constants.is_empty() != (class == Class::Absent) {
        return None;
    }
    let condition = one_of(class, attribute, constants);
    Some((Some(unless_missing(attribute, condition, missing)), alone))
}

/// The keys of a value; of a list, of its elements.
fn keys(class: Class, value: Option<Item<'_>>) -> Option<Vec<Key>> {
    let Some(value) = value else { return Some(Vec::from([None])) };
    if value.kind() != ItemKind::Array {
        return constant(class, value).map(|key| Vec::from([Some(key)]));
    }
    if !(1..=LIST_MAX).contains(&value.count()) {
        return None;
    }
    let keys: Option<BTreeSet<Key>> =
        value.elements().map(|element| constant(class, element).map(Some)).collect();
    keys.map(|keys| keys.into_iter().collect())
}

fn constant(class: Class, value: Item<'_>) -> Option<Constant> {
    let text = value.as_text().filter(|text| text.len() <= TEXT_MAX);
    let part = match class {
        Class::Values => {
            let int = || value.as_int().map(Constant::Int);
            let boolean = || value.as_bool().map(Constant::Bool);
            return text.map(|text| Constant::Text(Box::from(text))).or_else(int).or_else(boolean);
        }
        Class::Folder => up_to(text?, text?.rfind('/')?)?,
        Class::Domain => {
            let (before, _) = text?.split_once('@')?;
            text?.get(before.len()..).filter(|rest| rest.matches('@').count() == 1)?
        }
        Class::Origin => {
            let text = text?;
            let start = text.find("://").map_or(0, |at| at.saturating_add(3));
            let length = text.get(start..)?.find('/')?;
            up_to(text, start.saturating_add(length))?
        }
        Class::Absent | Class::Range | Class::Free => return None,
    };
    // Digits and signs alone are dates and numbers: what they begin with passes.
    let fine = part.len() >= PART_MIN && part.bytes().any(|byte| byte.is_ascii_alphabetic());
    fine.then(|| Constant::Text(Box::from(part)))
}

/// The beginning of a text, the byte at `at` included.
fn up_to(text: &str, at: usize) -> Option<&str> {
    text.get(..at.saturating_add(1))
}

fn one_of(class: Class, attribute: &Attribute, mut constants: Vec<Constant>) -> Condition {
    let test = |ask| Condition::Test(Test { attribute: attribute.clone(), ask });
    if class == Class::Values {
        return match (constants.pop(), constants.is_empty()) {
            (Some(only), true) => test(Ask::Eq(only)),
            (Some(last), false) => {
                constants.push(last);
                test(Ask::In(constants))
            }
            (None, _) => Condition::Any(Vec::new()),
        };
    }
    let parts = constants.into_iter().filter_map(|constant| match (class, constant) {
        (Class::Domain, Constant::Text(text)) => Some(test(Ask::Suffix(text))),
        (_, Constant::Text(text)) => Some(test(Ask::Prefix(text))),
        _ => None,
    });
    any(parts.collect())
}

fn unless_missing(attribute: &Attribute, condition: Condition, missing: bool) -> Condition {
    if !missing {
        return condition;
    }
    let absent = Condition::Test(Test { attribute: attribute.clone(), ask: Ask::Missing });
    match condition {
        Condition::Any(mut parts) => {
            parts.insert(0, absent);
            any(parts)
        }
        one => Condition::Any(Vec::from([absent, one])),
    }
}

fn any(mut parts: Vec<Condition>) -> Condition {
    match (parts.pop(), parts.is_empty()) {
        (Some(only), true) => only,
        (Some(last), false) => {
            parts.push(last);
            Condition::Any(parts)
        }
        (None, _) => Condition::Any(Vec::new()),
    }
}

/// The least and the greatest of what a task gave.
type Bounds = (i128, i128);

fn range(attribute: &Attribute, calls: &[Call<'_>], headroom: u64) -> Option<Narrowed> {
    let name = attribute.argument()?;
    let (mut tasks, mut missing) = (BTreeMap::<usize, Bounds>::new(), BTreeSet::new());
    for call in calls {
        match call.item().get(name) {
            None => drop(missing.insert(call.task)),
            Some(value) => {
                let (least, greatest) = bounds(value)?;
                let entry = tasks.entry(call.task).or_insert((least, greatest));
                *entry = (entry.0.min(least), entry.1.max(greatest));
            }
        }
    }
    let widened = |bounds: &mut dyn Iterator<Item = &Bounds>| {
        let hull = bounds.copied().reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
        hull.map(|hull| widen(hull, headroom))
    };
    let all = widened(&mut tasks.values())?;
    let extremes = Extremes::of(&tasks);
    let alone = |(task, (least, greatest)): (&usize, &Bounds)| {
        let others = extremes.without(*task).map(|hull| widen(hull, headroom));
        let held = others.is_some_and(|hull| hull.0 <= *least && *greatest <= hull.1);
        (!held).then_some(*task)
    };
    let mut alone: BTreeSet<usize> = tasks.iter().filter_map(alone).collect();
    if missing.len() == 1 {
        alone.extend(&missing);
    }
    let test = |ask| Condition::Test(Test { attribute: attribute.clone(), ask });
    let both = Condition::All(Vec::from([test(Ask::Ge(all.0)), test(Ask::Le(all.1))]));
    Some((Some(unless_missing(attribute, both, !missing.is_empty())), alone))
}

fn bounds(value: Item<'_>) -> Option<Bounds> {
    if value.kind() != ItemKind::Array {
        return value.as_int().map(|n| (n, n));
    }
    let each: Option<Vec<i128>> = value.elements().map(Item::as_int).collect();
    let each = each.filter(|each| each.len() <= LIST_MAX)?;
    Some((*each.iter().min()?, *each.iter().max()?))
}

/// With headroom away from 0, within what the codec can write.
fn widen((least, greatest): Bounds, headroom: u64) -> Bounds {
    let times = |n: i128| n.saturating_mul(i128::from(headroom.max(1)));
    (times(least.min(0)).max(Ints::MIN), times(greatest.max(0)).min(Ints::MAX))
}

/// The two least and the two greatest tasks: enough to leave any one of them out.
struct Extremes {
    least: [Option<(i128, usize)>; 2],
    greatest: [Option<(i128, usize)>; 2],
}

impl Extremes {
    fn of(tasks: &BTreeMap<usize, Bounds>) -> Self {
        let mut least: Vec<_> = tasks.iter().map(|(task, bounds)| (bounds.0, *task)).collect();
        let mut greatest: Vec<_> = tasks.iter().map(|(task, bounds)| (bounds.1, *task)).collect();
        least.sort_unstable();
        greatest.sort_unstable_by(|a, b| b.cmp(a));
        let two = |sorted: &[(i128, usize)]| [sorted.first().copied(), sorted.get(1).copied()];
        Self { least: two(&least), greatest: two(&greatest) }
    }

    fn without(&self, task: usize) -> Option<Bounds> {
        let first = |two: &[Option<(i128, usize)>; 2]| {
            two.iter().flatten().find(|(_, owner)| *owner != task).map(|(n, _)| *n)
        };
        Some((first(&self.least)?, first(&self.greatest)?))
    }
}
