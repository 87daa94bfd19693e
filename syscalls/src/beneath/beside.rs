//! Programs that run at the same time in folders of which one holds the other read what each other
//! writes before it is marked. So each has the labels of all of them; and of what a tool puts where
//! one of them runs, since it may have been read and be gone again before the program ends.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use syscap_format::Label;

use super::location::Location;

/// The programs that run.
#[derive(Debug, Default)]
pub(super) struct Beside(Mutex<Vec<One>>);

#[derive(Debug)]
struct One {
    /// Tells it from all others that run.
    id: u64,
    names: Vec<String>,
    label: Label,
}

impl Beside {
    /// A program begins that may have read what this label says.
    pub(super) fn begin(self: &Arc<Self>, at: &Location, label: Label) -> Began {
        let mut all = self.lock();
        let id = all.iter().map(|one| one.id).max().map_or(0, |id| id.saturating_add(1));
        all.push(One { id, names: at.names().map(str::to_owned).collect(), label });
        share(&mut all);
        drop(all);
        Began { id, all: Arc::clone(self) }
    }

    /// A tool puts something there that carries this label.
    pub(super) fn reaches(&self, at: &Location, label: Label) {
        let names: Vec<String> = at.names().map(str::to_owned).collect();
        let mut all = self.lock();
        let near = all.iter_mut().filter(|one| names.starts_with(&one.names));
        near.for_each(|one| one.label = one.label.join(label));
        share(&mut all);
    }

    /// True if a running program could read a file there.
    pub(super) fn is_near(&self, at: &Location) -> bool {
        let names: Vec<String> = at.names().map(str::to_owned).collect();
        self.lock().iter().any(|one| names.starts_with(&one.names))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<One>> {
        // Every change is whole before anything can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Joins the labels of those that reach each other, also through a third.
fn share(all: &mut [One]) {
    loop {
        let before: Vec<(Vec<String>, Label)> =
            all.iter().map(|one| (one.names.clone(), one.label)).collect();
        for one in all.iter_mut() {
            let near = before.iter().filter(|(names, _)| is_near(names, &one.names));
            one.label = near.fold(one.label, |label, (_, other)| label.join(*other));
        }
        if all.iter().zip(&before).all(|(one, (_, label))| one.label == *label) {
            return;
        }
    }
}

/// True if one folder is the other or contains it.
fn is_near(one: &[String], other: &[String]) -> bool {
    one.starts_with(other) || other.starts_with(one)
}

/// A program that runs; when this is dropped, it has ended.
#[derive(Debug)]
pub struct Began {
    id: u64,
    all: Arc<Beside>,
}

impl Began {
    /// It may have read that too.
    pub fn reads(&self, label: Label) {
        let mut all = self.all.lock();
        let own = all.iter_mut().filter(|one| one.id == self.id);
        own.for_each(|one| one.label = one.label.join(label));
        share(&mut all);
    }

    /// The label of everything that it may have read, by itself and from programs beside it.
    pub fn label(&self) -> Label {
        let all = self.all.lock();
        all.iter().find(|one| one.id == self.id).map_or(Label::PUBLIC, |one| one.label)
    }
}

impl Drop for Began {
    fn drop(&mut self) {
        self.all.lock().retain(|one| one.id != self.id);
    }
}

#[cfg(test)]
mod tests {
    use syscap_format::{Confidentiality, Integrity};

    use super::*;

    fn at(path: &str) -> Location {
        Location::new(&path.split('/').collect::<Vec<_>>()).unwrap()
    }

    #[test]
    fn those_that_reach_each_other_share_their_labels() {
        let beside = Arc::new(Beside::default());
        let secret = Label::new(Integrity::Trusted, Confidentiality::Private);
        let clean = beside.begin(&at("a/x"), Label::PUBLIC);
        let apart = beside.begin(&at("b"), Label::PUBLIC);
        let stranger = beside.begin(&at("a/x/y"), Label::UNTRUSTED);
        assert_eq!(clean.label(), Label::UNTRUSTED);
        // It reaches the first, and the third through that.
        let outer = beside.begin(&at("a"), secret);
        for one in [&clean, &stranger, &outer] {
            assert_eq!(one.label(), Label::UNTRUSTED.join(secret));
        }
        assert_eq!(apart.label(), Label::PUBLIC);
        // Who ran beside it, has; who begins later, has not.
        drop((outer, stranger));
        assert_eq!(clean.label(), Label::UNTRUSTED.join(secret));
        drop(clean);
        // What is put where it runs reaches it, and what is put elsewhere does not.
        let runs = beside.begin(&at("a/x"), Label::PUBLIC);
        beside.reaches(&at("a/y.txt"), secret);
        assert_eq!(runs.label(), Label::PUBLIC);
        beside.reaches(&at("a/x/y/z.txt"), Label::UNTRUSTED);
        assert_eq!(runs.label(), Label::UNTRUSTED);
        assert!(beside.is_near(&at("a/x/b")) && !beside.is_near(&at("a/b")));
        runs.reads(secret);
        assert_eq!(runs.label(), Label::UNTRUSTED.join(secret));
        drop(runs);
        assert_eq!(beside.begin(&at("a"), Label::PUBLIC).label(), Label::PUBLIC);
        assert_eq!(beside.begin(&at("a2"), Label::PUBLIC).label(), Label::PUBLIC);
    }
}
