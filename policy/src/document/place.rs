//! A document's items with their places, for errors.

use alloc::{format, string::String, vec::Vec};
use core::fmt::Write as _;

use syscap_format::{Item, ItemKind, json};

use super::error::{LoadError, LoadFault};
use super::suggestion;

/// The place of an item: rendered only for a fault.
#[derive(Clone, Copy)]
pub(super) struct Place<'p> {
    above: Option<&'p Place<'p>>,
    step: Step<'p>,
}

#[derive(Clone, Copy)]
enum Step<'p> {
    Key(&'p str),
    Index(usize),
}

impl<'p> Place<'p> {
    /// The document itself.
    pub(super) const TOP: Self = Self { above: None, step: Step::Key("") };

    pub(super) const fn key(&'p self, key: &'p str) -> Self {
        Self { above: Some(self), step: Step::Key(key) }
    }

    pub(super) const fn index(&'p self, index: usize) -> Self {
        Self { above: Some(self), step: Step::Index(index) }
    }

    pub(super) fn text(&self) -> String {
        let mut steps = Vec::new();
        let mut place = self;
        while let Some(above) = place.above {
            steps.push(place.step);
            place = above;
        }
        let mut text = String::new();
        for step in steps.iter().rev() {
            // Writing to a string does not fail.
            let written = match step {
                Step::Key(key) if text.is_empty() => write!(text, "{key}"),
                Step::Key(key) => write!(text, ".{key}"),
                Step::Index(index) => write!(text, "[{index}]"),
            };
            if written.is_err() {
                break;
            }
        }
        if text.is_empty() { String::from("document") } else { text }
    }

    pub(super) fn error(&self, fault: LoadFault, key: &str) -> LoadError {
        LoadError::new(fault, key, self.text())
    }
}

/// An item and its place.
#[derive(Clone, Copy)]
pub(super) struct Node<'a, 'p> {
    pub(super) item: Item<'a>,
    pub(super) place: Place<'p>,
}

impl<'a, 'p> Node<'a, 'p> {
    pub(super) fn error(&self, fault: LoadFault, key: &str) -> LoadError {
        self.place.error(fault, key)
    }

    /// A word that is not among those that are valid.
    pub(super) fn not_one_of(&self, fault: LoadFault, word: &str, valid: &[&str]) -> LoadError {
        self.error(fault, word).suggest(suggestion::near_or_all(word, valid))
    }

    /// The fault of another type than `wanted`.
    pub(super) fn wrong_type(&self, wanted: &str) -> LoadError {
        let found = json::from_item(self.item);
        self.error(LoadFault::Type, &found).suggest(Some(String::from(wanted)))
    }

    pub(super) fn text(&self) -> Result<&'a str, LoadError> {
        self.item.as_text().ok_or_else(|| self.wrong_type("text"))
    }

    pub(super) fn uint(&self) -> Result<u64, LoadError> {
        self.item.as_uint().ok_or_else(|| self.wrong_type("an integer from 0"))
    }

    pub(super) fn boolean(&self) -> Result<bool, LoadError> {
        self.item.as_bool().ok_or_else(|| self.wrong_type("true or false"))
    }

    /// The elements of a list, at most `max`.
    pub(super) fn list(&self, max: usize, over: LoadFault) -> Result<Vec<Item<'a>>, LoadError> {
        if self.item.kind() != ItemKind::Array {
            return Err(self.wrong_type("a list"));
        }
        if self.item.count() > max {
            return Err(self.error(over, &format!("{}", self.item.count())));
        }
        Ok(self.item.elements().collect())
    }

    /// The entries of a map with text keys.
    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Item<'a>)>, LoadError> {
        let entries: Vec<_> = self.item.entries().collect();
        if self.item.kind() != ItemKind::Map || entries.len() != self.item.count() {
            return Err(self.wrong_type("a map with text keys"));
        }
        Ok(entries)
    }

    /// The values of a map's keys, all of which must be among `keys`.
    pub(super) fn keys<const N: usize>(
        &self,
        keys: [&'static str; N],
    ) -> Result<[Option<Item<'a>>; N], LoadError> {
        let mut values = [None; N];
        for (key, value) in self.entries()? {
            let slot = keys.iter().position(|known| *known == key);
            match slot.and_then(|at| values.get_mut(at)) {
                Some(slot) => *slot = Some(value),
                None => return Err(self.not_one_of(LoadFault::UnknownKey, key, &keys)),
            }
        }
        Ok(values)
    }

    /// The value of a key that must be there.
    pub(super) fn need(
        &self,
        key: &'static str,
        value: Option<Item<'a>>,
    ) -> Result<Item<'a>, LoadError> {
        value.ok_or_else(|| self.error(LoadFault::MissingKey, key))
    }

    /// The item below, under a key.
    pub(super) const fn below(&'p self, key: &'p str, item: Item<'a>) -> Self {
        Self { item, place: self.place.key(key) }
    }

    /// The item below, at a place in a list.
    pub(super) const fn at(&'p self, index: usize, item: Item<'a>) -> Self {
        Self { item, place: self.place.index(index) }
    }
}

/// The places of the first float, and of the first item that lies deeper than `depth_max`.
pub(super) fn find_foreign(node: Node<'_, '_>, depth_left: u8) -> Option<LoadError> {
    let deeper = || depth_left.checked_sub(1);
    match node.item.kind() {
        ItemKind::Float => Some(node.error(LoadFault::Float, &json::from_item(node.item))),
        ItemKind::Array => {
            let Some(left) = deeper() else { return Some(node.error(LoadFault::TooDeep, "")) };
            let mut below = node.item.elements().enumerate();
            below.find_map(|(n, item)| find_foreign(node.at(n, item), left))
        }
        ItemKind::Map => {
            let Some(left) = deeper() else { return Some(node.error(LoadFault::TooDeep, "")) };
            let mut below = node.item.entries();
            below.find_map(|(key, item)| find_foreign(node.below(key, item), left))
        }
        _ => None,
    }
}
