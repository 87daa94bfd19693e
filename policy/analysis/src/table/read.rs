//! Reading a table.

use alloc::{boxed::Box, format, vec::Vec};

use syscap_format::{
    ConstraintId, Dimension, Item, ItemKind, Obligation, ObligationKind, Profile, Verdict, json,
};
use syscap_policy::Scenario;

use super::{CASES_MAX, Case, Expected, TABLE_BYTES_MAX, Table, TableError, TableFault};

impl Table {
    /// Reads a table's JSON text.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_json(text: &[u8]) -> Result<Self, TableError> {
        sized(text)?;
        let item = json::to_cbor(text).map_err(|error| {
            let place = format!("byte {}", error.at);
            wrong(TableFault::Json, &format!("{}", error.fault), &place)
        })?;
        Self::from_item(item.item())
    }

    /// Reads a table's canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_cbor(bytes: &[u8]) -> Result<Self, TableError> {
        sized(bytes)?;
        let item = Item::check(bytes, Profile::DATA);
        Self::from_item(item.map_err(|_| wrong(TableFault::Cbor, "", ""))?)
    }

    fn from_item(item: Item<'_>) -> Result<Self, TableError> {
        let [version, cases] = keys(item, ["v", "cases"], 2, "")?;
        if version.and_then(Item::as_uint) != Some(1) {
            return Err(wrong(TableFault::Version, "", "v"));
        }
        let cases = list(cases.unwrap_or(Item::NULL), "cases")?;
        if cases.len() > CASES_MAX {
            return Err(wrong(TableFault::Size, "", "cases"));
        }
        let numbered = cases.into_iter().enumerate();
        let cases = numbered.map(|(n, item)| case(item, &format!("cases[{n}]")));
        Ok(Self { cases: cases.collect::<Result<_, _>>()? })
    }
}

fn case(item: Item<'_>, place: &str) -> Result<Case, TableError> {
    let names = ["name", "given", "verdict", "deciding", "obligations", "matches"];
    let [name, given, verdict, deciding, obligations, matches] = keys(item, names, 3, place)?;
    let at = |key: &str| format!("{place}.{key}");
    let name = text(name.unwrap_or(Item::NULL), &at("name"))?;
    let given = Scenario::from_item(given.unwrap_or(Item::NULL)).map_err(|error| {
        let place = format!("{}.{}", at("given"), error.place);
        wrong(TableFault::Scenario(error), name, &place)
    })?;
    let said = text(verdict.unwrap_or(Item::NULL), &at("verdict"))?;
    let verdict = Verdict::ALL.iter().copied().find(|verdict| verdict.name() == said);
    let verdict = verdict.ok_or_else(|| wrong(TableFault::Value, said, &at("verdict")))?;
    let deciding = match deciding {
        None => None,
        Some(item) if item.is_null() => Some(None),
        Some(item) => Some(Some(id(item, &at("deciding"))?)),
    };
    let obligations = match obligations {
        None => None,
        Some(item) => {
            let place = at("obligations");
            let numbered = list(item, &place)?.into_iter().enumerate();
            let all = numbered.map(|(n, item)| obligation(item, &format!("{place}[{n}]")));
            Some(Obligation::unite(all.collect::<Result<_, _>>()?))
        }
    };
    let matches = match matches {
        None => None,
        Some(item) => {
            let place = at("matches");
            let numbered = list(item, &place)?.into_iter().enumerate();
            let all = numbered.map(|(n, item)| id(item, &format!("{place}[{n}]")));
            let mut all: Vec<ConstraintId> = all.collect::<Result<_, _>>()?;
            all.sort();
            Some(all)
        }
    };
    let expected = Expected { verdict, deciding, obligations, matches };
    Ok(Case { name: Box::from(name), given, expected })
}

/// An obligation as documents write it.
fn obligation(item: Item<'_>, place: &str) -> Result<Obligation, TableError> {
    let names = ["type", "bytes", "dimension", "max", "level", "topic"];
    let [kind, bytes, dimension, max, level, topic] = keys(item, names, 1, place)?;
    let said = text(kind.unwrap_or(Item::NULL), place)?;
    let kind = ObligationKind::ALL.iter().copied().find(|kind| kind.name() == said);
    let given = [bytes, dimension, max, level, topic];
    let only = |wanted: [bool; 5]| given.map(|item| item.is_some()) == wanted;
    let words = |item: Option<Item<'_>>| item.and_then(|item| item.as_text().map(Box::<str>::from));
    let number = |item: Option<Item<'_>>| item.and_then(Item::as_uint);
    let made = match kind {
        Some(ObligationKind::ResultCap) if only([true, false, false, false, false]) => {
            number(bytes).map(Obligation::result_cap)
        }
        Some(ObligationKind::ReadOnly) if only([false; 5]) => Some(Obligation::read_only()),
        Some(ObligationKind::Openat2) if only([false; 5]) => Some(Obligation::openat2()),
        Some(ObligationKind::BudgetCut) if only([false, true, true, false, false]) => {
            let dimension = words(dimension).and_then(|name| Dimension::from_name(&name));
            dimension.zip(number(max)).and_then(|(of, max)| Obligation::budget_cut(of, max))
        }
        Some(ObligationKind::ApprovalUses) if only([false, false, true, false, false]) => {
            number(max).map(Obligation::approval_uses)
        }
        Some(ObligationKind::Approval) if only([false, false, false, true, false]) => {
            let elevated = words(level).filter(|level| **level == *Obligation::ELEVATED);
            elevated.map(|_| Obligation::elevated())
        }
        Some(ObligationKind::Notify) if only([false, false, false, false, true]) => {
            words(topic).map(|topic| Obligation::notify(&topic))
        }
        _ => None,
    };
    made.ok_or_else(|| wrong(TableFault::Value, said, place))
}

/// The values of these keys, and of no others; the first `needed` must be there.
fn keys<'a, const N: usize>(
    item: Item<'a>,
    names: [&str; N],
    needed: usize,
    place: &str,
) -> Result<[Option<Item<'a>>; N], TableError> {
    if item.kind() != ItemKind::Map || item.entries().count() != item.count() {
        return Err(wrong(TableFault::Value, "", place));
    }
    if let Some((key, _)) = item.entries().find(|(key, _)| !names.contains(key)) {
        return Err(wrong(TableFault::UnknownKey, key, place));
    }
    let missing = names.iter().take(needed).find(|name| item.get(name).is_none());
    match missing {
        Some(name) => Err(wrong(TableFault::MissingKey, name, place)),
        None => Ok(names.map(|name| item.get(name))),
    }
}

fn list<'a>(item: Item<'a>, place: &str) -> Result<Vec<Item<'a>>, TableError> {
    if item.kind() == ItemKind::Array {
        Ok(item.elements().collect())
    } else {
        Err(wrong(TableFault::Value, "", place))
    }
}

fn text<'a>(item: Item<'a>, place: &str) -> Result<&'a str, TableError> {
    item.as_text().ok_or_else(|| wrong(TableFault::Value, "", place))
}

fn id(item: Item<'_>, place: &str) -> Result<ConstraintId, TableError> {
    let said = text(item, place)?;
    ConstraintId::new(said).ok_or_else(|| wrong(TableFault::Value, said, place))
}

fn sized(bytes: &[u8]) -> Result<(), TableError> {
    let fine = bytes.len() <= TABLE_BYTES_MAX;
    if fine { Ok(()) } else { Err(wrong(TableFault::Size, "", "")) }
}

fn wrong(fault: TableFault, key: &str, place: &str) -> TableError {
    TableError { fault, key: Box::from(key), place: Box::from(place) }
}
