//! What one part of a text does to the folders that others go through.
//!
//! A path is told by its text. Once another part has moved, removed or linked what the path goes
//! through, that text says nothing. Loops, pipelines and the background run parts in any order,
//! so the whole text counts as one.

use std::collections::BTreeSet;

use crate::{area::Absolute, limits::WAYS_MAX};

/// Which command it was, and whether that may run more than once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    number: usize,
    again: bool,
}

impl Turn {
    /// A command finds its own paths before it changes anything, the first time.
    const fn is_apart(self, other: Self) -> bool {
        self.number != other.number || self.again
    }
}

/// A path that a command goes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    turn: Turn,
    /// Where it begins, if it is relative.
    base: Option<Absolute>,
    path: Absolute,
    /// Whether it goes on to any name below.
    tree: bool,
}

/// Ways, and what is changed below them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Moved {
    turn: Turn,
    loops: usize,
    ways: BTreeSet<Way>,
    /// Places of which something was moved away or removed.
    gone: BTreeSet<(Turn, Absolute)>,
    /// Places where there may be a link now.
    links: BTreeSet<(Turn, Absolute)>,
}

impl Moved {
    /// Another command begins, or a part of one that is not at the same time as the last.
    pub(crate) const fn next(&mut self) {
        self.turn.number = self.turn.number.saturating_add(1);
    }

    /// What follows may run many times.
    pub(crate) const fn begin_loop(&mut self) {
        self.loops = self.loops.saturating_add(1);
        self.turn.again = true;
        self.next();
    }

    pub(crate) const fn end_loop(&mut self) {
        self.loops = self.loops.saturating_sub(1);
        self.turn.again = self.loops > 0;
        self.next();
    }

    pub(crate) fn goes(&mut self, base: Option<Absolute>, path: Absolute, tree: bool) {
        self.ways.insert(Way { turn: self.turn, base, path, tree });
    }

    pub(crate) fn takes(&mut self, place: Absolute) {
        self.gone.insert((self.turn, place));
    }

    pub(crate) fn links(&mut self, place: Absolute) {
        self.links.insert((self.turn, place));
    }

    /// Why a path of the text can't be told, if so.
    pub(crate) fn unclear(&self) -> Option<String> {
        let changes = self.gone.len().saturating_add(self.links.len());
        if self.ways.len().saturating_mul(changes) > WAYS_MAX {
            return Some("too many paths where something is moved".to_owned());
        }
        self.ways.iter().find_map(|way| {
            let begins = |(turn, place): &(Turn, Absolute)| {
                let base = way.base.as_ref();
                turn.is_apart(way.turn) && base.is_some_and(|base| base.is_within(place))
            };
            if self.gone.iter().chain(&self.links).any(begins) {
                return Some(format!("{}, where its folder may be another", way.path));
            }
            let through = |(turn, place): &(Turn, Absolute)| {
                let inside = way.tree && place.is_within(&way.path);
                turn.is_apart(way.turn) && (inside || way.path.is_within(place))
            };
            let linked = self.links.iter().any(through);
            linked.then(|| format!("{}, where a link may have come", way.path))
        })
    }
}
