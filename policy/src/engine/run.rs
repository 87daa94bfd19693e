//! The results of the applicable constraints, and the decision that follows.

use alloc::vec::Vec;

use syscap_format::{Decision, MATCHES_MAX, Obligation, Verdict, matches_digest};

use crate::{document::Document, limits::CONSTRAINTS_MAX};

/// The results of the constraints. Places are those in the document.
#[derive(Default)]
pub(super) struct Run {
    pub(super) matched: Places,
    pub(super) granted: First,
    /// All allows that apply: it counts where none of them grants.
    pub(super) failed: First,
    pub(super) denied: First,
}

/// The first place of each verdict that was contributed.
#[derive(Clone, Copy)]
pub(super) struct First([u16; 5]);

/// No constraint stands there: places end before it.
const NOWHERE: u16 = u16::MAX;
const _: () = assert!(CONSTRAINTS_MAX <= 65_535, "every place is before `NOWHERE`");

impl Default for First {
    fn default() -> Self {
        Self([NOWHERE; 5])
    }
}

impl First {
    pub(super) fn note(&mut self, verdict: Verdict, place: u16) {
        if let Some(first) = usize::try_from(verdict.code()).ok().and_then(|n| self.0.get_mut(n)) {
            *first = place.min(*first);
        }
    }

    /// Notes all that another has.
    pub(super) fn join(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(first, place)| *first = place.min(*first));
    }

    fn of(&self, verdict: Verdict) -> Option<u16> {
        let place = usize::try_from(verdict.code()).ok().and_then(|n| self.0.get(n).copied())?;
        (place != NOWHERE).then_some(place)
    }

    fn strictest(&self) -> Option<Verdict> {
        Verdict::ALL.iter().rev().copied().find(|verdict| self.of(*verdict).is_some())
    }
}

impl Run {
    /// The verdict, and the place of the constraint that decided.
    pub(super) fn verdict(&self) -> (Verdict, Option<u16>) {
        let granted = self.granted.strictest();
        let (base, allows) = match granted {
            Some(granted) => (granted, &self.granted),
            None => (self.failed.strictest().unwrap_or(Verdict::Deny), &self.failed),
        };
        let verdict = self.denied.strictest().map_or(base, |denied| denied.max(base));
        let places = [allows.of(verdict), self.denied.of(verdict)];
        (verdict, places.into_iter().flatten().min())
    }

    pub(super) fn decision(&self, document: &Document) -> Decision {
        let (verdict, deciding) = self.verdict();
        let find = |place: &u16| document.constraints.get(usize::from(*place));
        let places = self.matched.as_slice();
        let mut matches = Vec::with_capacity(places.len().min(MATCHES_MAX));
        let mut obligations = Vec::new();
        for constraint in places.iter().filter_map(find) {
            if matches.len() < MATCHES_MAX {
                matches.push(constraint.id.clone());
            }
            obligations.extend_from_slice(&constraint.obligations);
        }
        if obligations.len() > 1 {
            obligations = Obligation::unite(obligations);
        }
        let digest = (places.len() > MATCHES_MAX).then(|| matches_digest(places));
        Decision {
            verdict,
            deciding: deciding.as_ref().and_then(find).map(|constraint| constraint.id.clone()),
            matches,
            match_count: u64::try_from(places.len()).unwrap_or(u64::MAX),
            matches_digest: digest,
            obligations,
        }
    }
}

/// Places of constraints; a list is made only where there are many.
pub(super) struct Places {
    few: [u16; FEW],
    count: usize,
    many: Vec<u16>,
}

/// Places that stand without a list.
const FEW: usize = 64;

impl Default for Places {
    fn default() -> Self {
        Self { few: [0; FEW], count: 0, many: Vec::new() }
    }
}

impl Places {
    pub(super) fn push(&mut self, place: u16) {
        if let Some(free) = self.few.get_mut(self.count) {
            *free = place;
            self.count = self.count.saturating_add(1);
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(place);
    }

    pub(super) fn as_slice(&self) -> &[u16] {
        if self.many.is_empty() {
            self.few.get(..self.count).unwrap_or_default()
        } else {
            &self.many
        }
    }

    pub(super) fn sort(&mut self) {
        let list = if self.many.is_empty() {
            self.few.get_mut(..self.count).unwrap_or_default()
        } else {
            &mut self.many
        };
        if !list.is_sorted() {
            list.sort_unstable();
        }
    }
}
