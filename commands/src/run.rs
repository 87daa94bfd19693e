//! One program, and what it touches.

use std::collections::BTreeSet;

use syscap_syscalls::marks::write_marks;

use crate::{
    area::{Absolute, Area, Base},
    options::{Operands, Spec, Use},
    place::Origin,
    said::{Mark, Outside, Piece, Said, Simple},
    walk::{Bases, Bound, Ends, Walk},
};

/// Devices that keep and tell nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/tty"];

/// A program that is run.
pub(crate) struct Run<'r, 'w> {
    pub(crate) walk: &'r mut Walk<'w>,
    /// Whether its input is what another command wrote.
    pub(crate) piped: bool,
    /// Whether a program runs it, and not the shell, whose own commands it then has not.
    pub(crate) outside: bool,
    /// Whether a program may run it, as `time` does to some shells.
    pub(crate) timed: bool,
}

impl<'r, 'w> Run<'r, 'w> {
    pub(crate) fn of(walk: &'r mut Walk<'w>, piped: bool) -> Self {
        Self { walk, piped, outside: false, timed: false }
    }

    pub(crate) fn said(&mut self) -> &mut Said {
        self.walk.said
    }

    pub(crate) fn unknown(&mut self, why: impl Into<String>) {
        self.walk.unknown(why);
    }

    pub(crate) fn mark(&mut self, mark: Mark, why: impl Into<String>) {
        self.said().mark(mark, why);
    }

    pub(crate) fn stays(&self) -> Ends {
        Ends::in_place(&self.walk.bases)
    }

    /// A command, by its words.
    pub(crate) fn command(mut self, words: &[Piece]) -> Ends {
        let Some((program, args)) = words.split_first() else { return self.stays() };
        match program {
            Piece::Literal(name) => (self.walk.table)(self, name, args),
            _ => {
                self.unknown("a program whose name can't be told");
                self.stays()
            }
        }
    }

    /// A command that a program runs: `env`, `xargs`, `find -exec`.
    pub(crate) fn inner(&mut self, words: &[Piece]) {
        let (bases, depth) = (self.walk.bases.clone(), self.walk.depth.saturating_add(1));
        let (assignments, redirects) = (Vec::new(), Vec::new());
        let (words, piped) = (words.to_vec(), self.piped);
        if words.is_empty() || depth > crate::limits::DEPTH_MAX {
            return self.unknown("no command, or one that is too deep");
        }
        let walk = &mut *self.walk;
        let given = words.clone();
        if !walk.tell(Simple { words, assignments, redirects, piped, background: false, depth }) {
            return;
        }
        let (place, table) = (walk.place, walk.table);
        // Its words have been read, and it has no variables of the shell's.
        let bound = Bound::default();
        let mut inner = Walk { place, said: &mut *walk.said, bases, bound, depth, table };
        let run = Run { walk: &mut inner, piped, outside: true, timed: false };
        // Where it ends is its own affair.
        drop(run.command(&given));
        self.said().moved.next();
    }

    /// A program of the table: it counts where it is the one of that name. Says where it is from.
    pub(crate) fn program(&mut self, name: &str) -> Origin {
        let said = self.said();
        said.programs.insert(name.to_owned());
        said.needs.insert(name.to_owned());
        let origin = self.walk.place.program(name);
        match origin {
            Origin::System => {}
            Origin::Writable => self.unknown(format!("{name} may be a program of the agent's")),
            Origin::Unknown => self.unknown(format!("{name} was not looked for, or not found")),
        }
        origin
    }

    /// A command that the shell has itself; else a program.
    pub(crate) fn builtin(&mut self, name: &str) {
        match self.outside || self.timed {
            true => drop(self.program(name)),
            false => drop(self.said().programs.insert(name.to_owned())),
        }
    }

    /// A program whose options and operands say all.
    pub(crate) fn listed(&mut self, spec: &Spec, args: &[Piece]) {
        let line = match spec.line(args) {
            Ok(line) => line,
            Err(why) => return self.unknown(format!("{}: {why}", spec.name)),
        };
        for (_, kind, value) in &line.values {
            self.used(*kind, value);
        }
        let operands = &line.operands;
        match spec.operands {
            Operands::None if operands.is_empty() => {}
            Operands::None => self.unknown(format!("{}: what it is given", spec.name)),
            Operands::All(kind) => operands.iter().for_each(|word| self.used(kind, word)),
            Operands::Copy => {
                let unclear = operands.iter().take(1).any(|word| !self.is_one(word));
                if operands.len() > 2 || unclear {
                    self.unknown(format!("{}: what it is given", spec.name));
                }
                operands.iter().take(1).for_each(|word| self.read(word));
                operands.iter().skip(1).for_each(|word| self.write(word));
            }
        }
    }

    pub(crate) fn is_one(&self, word: &Piece) -> bool {
        matches!(
            word,
            Piece::Literal(_) | Piece::One | Piece::Stream | Piece::Pattern { one: true, .. }
        )
    }

    pub(crate) fn used(&mut self, kind: Use, word: &Piece) {
        match kind {
            Use::Data => {}
            Use::Read => self.read(word),
            Use::ReadAll => self.read_all(word),
            Use::Write => self.write(word),
        }
    }

    pub(crate) fn read(&mut self, word: &Piece) {
        if is_literal(word, "-") || *word == Piece::Stream {
            return;
        }
        let areas = self.areas(word);
        self.said().reads.extend(areas);
    }

    pub(crate) fn read_all(&mut self, word: &Piece) {
        if is_literal(word, "-") || *word == Piece::Stream {
            return;
        }
        let areas = self.areas(word);
        self.said().reads.extend(areas.iter().map(|area| Area::below(area.at().clone())));
    }

    pub(crate) fn write(&mut self, word: &Piece) {
        let areas = self.areas(word);
        self.writes(areas);
    }

    pub(crate) fn write_all(&mut self, word: &Piece) {
        let areas = self.areas(word);
        self.writes(areas.iter().map(|area| Area::below(area.at().clone())).collect());
    }

    /// A file of that name in a folder, or all below it where the name can't be told.
    pub(crate) fn write_in(&mut self, folder: &Piece, name: Option<&str>) {
        let areas = self.areas(folder);
        let below = areas.iter().map(|area| match name {
            Some(name) if !area.is_tree() => Area::one(area.at().join(name)),
            _ => Area::below(area.at().clone()),
        });
        let below = below.collect();
        self.writes(below);
    }

    pub(crate) fn writes(&mut self, areas: BTreeSet<Area>) {
        // Below a folder there may be any of these names, and nobody has looked.
        if let Some(tree) = areas.iter().find(|area| area.is_tree()) {
            self.mark(Mark::Automation, format!("anything below {}", tree.path()));
        }
        self.writes_named(areas);
    }

    /// Writes that put nothing below a folder that has a name of its own: what is removed with
    /// it, or renamed, or what a link leads to, whose own names are seen when it is used.
    pub(crate) fn writes_named(&mut self, areas: BTreeSet<Area>) {
        for area in areas {
            for mark in write_marks(area.components()) {
                let why = if mark == Mark::Hides { " is gone by later" } else { "" };
                self.mark(mark, format!("{}{why}", area.path()));
            }
            self.said().writes.insert(area);
        }
    }

    /// Where a word leads, from every folder that this may run in.
    pub(crate) fn areas(&mut self, word: &Piece) -> BTreeSet<Area> {
        let (text, tree) = match word {
            Piece::Literal(text) => (text, false),
            Piece::Pattern { folder, .. } => (folder, true),
            Piece::Stream => return BTreeSet::new(),
            Piece::One | Piece::Many => {
                self.unknown("a file whose name can't be told");
                return BTreeSet::new();
            }
        };
        if !tree && DEVICES.contains(&text.as_str()) {
            return BTreeSet::new();
        }
        if text.starts_with("/dev/tcp") || text.starts_with("/dev/udp") {
            self.mark(Mark::Network, "the shell connects");
            self.mark(Mark::Hides, "the shell connects");
        }
        let area = |path| if tree { Area::below(path) } else { Area::one(path) };
        self.places(text, tree).into_iter().map(area).collect()
    }

    /// Something is moved from there, or removed.
    pub(crate) fn takes(&mut self, areas: &BTreeSet<Area>) {
        areas.iter().for_each(|area| self.said().moved.takes(area.at().clone()));
    }

    /// There may be a link now, or something with links in it.
    pub(crate) fn links(&mut self, areas: &BTreeSet<Area>) {
        areas.iter().for_each(|area| self.said().moved.links(area.at().clone()));
    }

    fn places(&mut self, text: &str, tree: bool) -> BTreeSet<Absolute> {
        if text.is_empty() && !tree {
            return BTreeSet::new();
        }
        let bases = match (&self.walk.bases, text.starts_with('/')) {
            (_, true) => BTreeSet::from([Base::reported(Absolute::default())]),
            (Bases(Some(bases)), false) => bases.clone(),
            (Bases(None), false) => {
                self.unknown("the folder in which it runs");
                return BTreeSet::new();
            }
        };
        let mut found = BTreeSet::new();
        for base in bases {
            match base.file(text) {
                Some(path) => {
                    let from = (!text.starts_with('/')).then_some(base.path);
                    self.said().moved.goes(from, path.clone(), tree);
                    found.insert(path);
                }
                None => self.unknown(format!("where {text} leads")),
            }
        }
        found
    }

    pub(crate) fn goes_outside(&mut self, outside: Outside) {
        let said = self.said();
        said.outside = said.outside.max(outside);
    }
}

pub(crate) fn is_literal(word: &Piece, text: &str) -> bool {
    literal(word) == Some(text)
}

pub(crate) fn literal(word: &Piece) -> Option<&str> {
    match word {
        Piece::Literal(text) => Some(text),
        _ => None,
    }
}
