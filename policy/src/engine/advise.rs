//! Advice to callers: the authors' texts, and an allow's conditions on an argument. Never what a
//! deny looks for.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use core::cell::RefCell;

use syscap_format::Decision;
use syscap_kernel::Advice;

use super::words;
use crate::document::{Attribute, Condition, Constraint, Document, Effect, OnFail, Test};
use crate::limits::ADVISED_MAX;
use crate::semantics;
use crate::truth::Truth;
use crate::value::{Value, Values};

/// Most alternatives that are named.
const ALTERNATIVES_MAX: usize = 3;

/// The advice on a decision. The allows that apply, by id, are asked for where they count.
pub(super) fn advise<'d>(
    document: &'d Document,
    values: &dyn Values,
    decision: &Decision,
    allows: impl FnOnce() -> Vec<&'d Constraint>,
) -> Advice {
    let find = |id| {
        let found = document.constraints.binary_search_by(|constraint| constraint.id.cmp(id));
        found.ok().and_then(|place| document.constraints.get(place))
    };
    let values: &dyn Values = &Remembered { values, known: RefCell::default() };
    match decision.deciding.as_ref().and_then(find) {
        None => Advice::default(),
        Some(deny) if deny.effect == Effect::Deny => {
            Advice { argument: escape_of(deny, values), allowed: written(deny) }
        }
        Some(_) => {
            let mut allows = allows();
            allows.truncate(ADVISED_MAX);
            of_allows(&allows, values)
        }
    }
}

/// Values that are read once each: a call can bring a megabyte, and every test asks again.
struct Remembered<'v> {
    values: &'v dyn Values,
    known: RefCell<BTreeMap<Attribute, Value<'v>>>,
}

impl Values for Remembered<'_> {
    fn value(&self, attribute: &Attribute) -> Value<'_> {
        if let Some(known) = self.known.borrow().get(attribute) {
            return known.clone();
        }
        let value = self.values.value(attribute);
        self.known.borrow_mut().insert(attribute.clone(), value.clone());
        value
    }
}

/// The text of a constraint's author.
fn written(constraint: &Constraint) -> Option<Box<str>> {
    (!constraint.reason.is_empty()).then(|| constraint.reason.clone())
}

/// The argument by which alone a call can get out of a deny.
fn escape_of(deny: &Constraint, values: &dyn Values) -> Option<Box<str>> {
    if matches!(deny.on_fail, OnFail::Ask | OnFail::Defer) {
        return None;
    }
    let mut asked = BTreeSet::new();
    attributes(&deny.when, &mut asked);
    let mut names: Vec<&str> = asked.iter().filter_map(|attribute| attribute.argument()).collect();
    names.dedup();
    let [argument] = *names else { return None };
    let can = reach(&deny.when, Free::Argument(argument), values).has(Truth::False);
    can.then(|| name_of(asked.iter().copied(), argument))
}

/// The argument, or the one field of it that is asked about.
fn name_of<'a>(asked: impl Iterator<Item = &'a Attribute>, argument: &str) -> Box<str> {
    let mut about = asked.filter(|attribute| attribute.argument() == Some(argument));
    match (about.next(), about.next()) {
        (Some(one), None) => without_prefix(one),
        _ => Box::from(argument),
    }
}

fn without_prefix(attribute: &Attribute) -> Box<str> {
    let text = attribute.to_string();
    Box::from(text.strip_prefix("args.").unwrap_or(&text))
}

/// A way in which one argument can be changed so that an allow grants.
struct Repair<'a> {
    argument: &'a str,
    failing: Vec<&'a Attribute>,
    text: String,
}

/// The conditions of the allows on an argument, where changing one is enough.
fn of_allows(allows: &[&Constraint], values: &dyn Values) -> Advice {
    let mut repairs: Vec<Repair<'_>> =
        allows.iter().filter_map(|allow| repair(allow, values)).collect();
    // Stable: among equals the first by id stays first.
    repairs.sort_by_key(|repair| repair.failing.len());
    let Some(best) = repairs.first() else {
        let allowed = allows.first().and_then(|allow| written(allow));
        return Advice { argument: None, allowed };
    };
    let same = repairs.iter().filter(|repair| repair.argument == best.argument);
    let mut texts: Vec<&str> = Vec::new();
    let mut asked = BTreeSet::new();
    for repair in same {
        if texts.len() < ALTERNATIVES_MAX && !texts.contains(&&*repair.text) {
            texts.push(&repair.text);
            asked.extend(repair.failing.iter().copied());
        }
    }
    Advice {
        argument: Some(name_of(asked.into_iter(), best.argument)),
        allowed: Some(texts.join(" or ").into_boxed_str()),
    }
}

fn repair<'a>(allow: &'a Constraint, values: &dyn Values) -> Option<Repair<'a>> {
    // Most allows are out of reach whatever the arguments are, and need no lists to say so.
    if !reach(&allow.when, Free::Arguments, values).has(Truth::True) {
        return None;
    }
    let mut asked = BTreeSet::new();
    attributes(&allow.when, &mut asked);
    let arguments: BTreeSet<&str> =
        asked.iter().filter_map(|attribute| attribute.argument()).collect();
    let of_argument = |argument: &'a str| {
        let change = Change { argument, values };
        if !reach(&allow.when, Free::Argument(argument), values).has(Truth::True) {
            return None;
        }
        let mut failing = Vec::new();
        let several = asked.iter().filter(|one| one.argument() == Some(argument)).count() > 1;
        let text = change.describe(&allow.when, Truth::True, several, &mut failing)?;
        Some(Repair { argument, failing, text: text.text })
    };
    let each = arguments.into_iter().filter_map(of_argument);
    each.min_by_key(|repair| repair.failing.len())
}

fn attributes<'a>(condition: &'a Condition, all: &mut BTreeSet<&'a Attribute>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| attributes(part, all));
        }
        Condition::Not(part) => attributes(part, all),
        Condition::Test(test) => {
            all.insert(&test.attribute);
        }
    }
}

/// The possible values of a condition.
#[derive(Clone, Copy)]
struct Reach([bool; 3]);

const ALL: [Truth; 3] = [Truth::False, Truth::Unknown, Truth::True];

impl Reach {
    fn only(truth: Truth) -> Self {
        Self(ALL.map(|one| one == truth))
    }

    fn iter(self) -> impl Iterator<Item = Truth> + Clone {
        ALL.into_iter().zip(self.0).filter(|(_, can)| *can).map(|(truth, _)| truth)
    }

    fn has(self, truth: Truth) -> bool {
        self.iter().any(|one| one == truth)
    }

    fn join(self, other: Self, by: fn(Truth, Truth) -> Truth) -> Self {
        let mut can = [false; 3];
        for truth in self.iter().flat_map(|a| other.iter().map(move |b| by(a, b))) {
            for (known, can) in ALL.iter().zip(&mut can) {
                *can |= *known == truth;
            }
        }
        Self(can)
    }
}

/// Which tests may come out in any way.
#[derive(Clone, Copy)]
enum Free<'f> {
    /// Tests of any argument.
    Arguments,
    /// Tests of this argument.
    Argument(&'f str),
}

impl Free<'_> {
    fn has(self, attribute: &Attribute) -> bool {
        match (self, attribute.argument()) {
            (Self::Arguments, Some(_)) => true,
            (Self::Argument(free), Some(argument)) => free == argument,
            (_, None) => false,
        }
    }
}

/// The possible values of a condition when free tests take any value, and all others keep theirs.
fn reach(condition: &Condition, free: Free<'_>, values: &dyn Values) -> Reach {
    let each = |parts: &[Condition], empty: Truth, by| {
        let parts = parts.iter().map(|part| reach(part, free, values));
        parts.fold(Reach::only(empty), |all, part| all.join(part, by))
    };
    match condition {
        Condition::All(parts) => each(parts, Truth::True, Truth::and),
        Condition::Any(parts) => each(parts, Truth::False, Truth::or),
        Condition::Not(part) => {
            let [no, unknown, yes] = reach(part, free, values).0;
            Reach([yes, unknown, no])
        }
        Condition::Test(test) if free.has(&test.attribute) => Reach([true; 3]),
        Condition::Test(test) => {
            Reach::only(semantics::ask(&test.ask, &values.value(&test.attribute)))
        }
    }
}

/// A change of one argument.
struct Change<'v> {
    argument: &'v str,
    values: &'v dyn Values,
}

/// A description, and whether it holds several that all must be met.
struct Described {
    text: String,
    is_several: bool,
}

impl Change<'_> {
    /// The change of the argument that brings the condition to `wanted`; `None` if it is there
    /// already, or can't be.
    fn describe<'a>(
        &self,
        condition: &'a Condition,
        wanted: Truth,
        with_names: bool,
        failing: &mut Vec<&'a Attribute>,
    ) -> Option<Described> {
        let is_there = semantics::eval(condition, self.values) == wanted;
        if is_there || !reach(condition, Free::Argument(self.argument), self.values).has(wanted) {
            return None;
        }
        let (parts, joined) = match (condition, wanted) {
            (Condition::Test(test), _) => {
                return Some(self.test(test, wanted, with_names, failing));
            }
            (Condition::Not(part), _) => {
                return self.describe(part, wanted.negate(), with_names, failing);
            }
            (Condition::All(parts), Truth::True) | (Condition::Any(parts), Truth::False) => {
                (parts, "; ")
            }
            (Condition::All(parts) | Condition::Any(parts), _) => (parts, " or "),
        };
        let mut found: Vec<Described> = parts
            .iter()
            .filter_map(|part| self.describe(part, wanted, with_names, failing))
            .collect();
        if found.len() == 1 {
            return found.pop();
        }
        let is_several = joined == "; ";
        let each = found.iter().map(|one| match one.is_several != is_several {
            true if one.text.contains("; ") || one.text.contains(" or ") => {
                format!("({})", one.text)
            }
            _ => one.text.clone(),
        });
        Some(Described { text: each.collect::<Vec<_>>().join(joined), is_several })
    }

    fn test<'a>(
        &self,
        test: &'a Test,
        wanted: Truth,
        with_names: bool,
        failing: &mut Vec<&'a Attribute>,
    ) -> Described {
        failing.push(&test.attribute);
        let text = words::wanted(&test.ask, wanted == Truth::False);
        let is_field =
            matches!(&test.attribute, Attribute::Argument(_, fields) if !fields.is_empty());
        let text = if with_names && is_field {
            format!("{}: {text}", words::bare(&without_prefix(&test.attribute)))
        } else {
            text
        };
        Described { text, is_several: false }
    }
}
