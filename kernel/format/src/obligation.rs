//! Obligations: what a policy asks of a run beside saying yes.
//!
//! The kernel sees to as much as it can by itself: it caps what a permit may deliver, cuts what is
//! set aside, and writes a notice down. If only the tool can meet an obligation, its manifest must
//! say so. One that can't be kept means that the call is refused.

use alloc::{boxed::Box, vec::Vec};
use core::fmt;

use crate::budget::Dimension;
use crate::field::{code, shape};

code! {
    /// The kind of an obligation.
    pub enum ObligationKind {
        /// The result has at most so many bytes; the tool cuts it and says so.
        ResultCap = 1 "result_cap",
        /// The run changes nothing.
        ReadOnly = 2 "read_only",
        /// At most so much of a counted dimension is set aside.
        BudgetCut = 3 "budget_cut",
        /// Approval must be of that level.
        Approval = 4 "approval",
        /// The record is marked for whoever watches the log, run or not.
        Notify = 5 "notify",
        /// An approval is for at most so many calls; 0: for this one alone.
        ApprovalUses = 6 "approval_uses",
        /// All that the run opens beneath its roots is resolved by the operating system, at once.
        Openat2 = 7 "openat2",
    }
}

impl ObligationKind {
    /// True if only a person of a level can meet it.
    #[must_use]
    pub const fn asks_for_a_level(self) -> bool {
        matches!(self, Self::Approval)
    }

    /// True if it gives a run less: then the verdict is `degrade`.
    #[must_use]
    pub const fn takes_away(self) -> bool {
        matches!(self, Self::ResultCap | Self::ReadOnly | Self::BudgetCut)
    }
}

shape! {
    /// One obligation, as it stands in a decision's record.
    pub struct Obligation {
        /// The kind.
        1 => pub kind: ObligationKind,
        /// The dimension of `budget_cut`, the level of `approval`, the topic of `notify`.
        2 => pub name: Option<Box<str>>,
        /// The maximum of `result_cap`, `budget_cut` and `approval_uses`.
        3 => pub max: Option<u64>,
    }
}

impl Obligation {
    /// The level of approval above the ordinary one.
    pub const ELEVATED: &str = "elevated";

    /// A result of at most so many bytes.
    pub const fn result_cap(bytes: u64) -> Self {
        Self { kind: ObligationKind::ResultCap, name: None, max: Some(bytes) }
    }

    /// A run that changes nothing.
    pub const fn read_only() -> Self {
        Self { kind: ObligationKind::ReadOnly, name: None, max: None }
    }

    /// A run whose files are opened by `openat2`, and by nothing weaker.
    pub const fn openat2() -> Self {
        Self { kind: ObligationKind::Openat2, name: None, max: None }
    }

    /// At most `max` of a dimension; `None` for one that a run does not meter unit by unit.
    pub fn budget_cut(dimension: Dimension, max: u64) -> Option<Self> {
        let name = Some(Box::from(dimension.name()));
        let cut = Self { kind: ObligationKind::BudgetCut, name, max: Some(max) };
        dimension.is_metered().then_some(cut)
    }

    /// Approval by somebody who may approve what can't be undone.
    pub fn elevated() -> Self {
        let name = Some(Box::from(Self::ELEVATED));
        Self { kind: ObligationKind::Approval, name, max: None }
    }

    /// At most so many calls by one approval.
    pub const fn approval_uses(max: u64) -> Self {
        Self { kind: ObligationKind::ApprovalUses, name: None, max: Some(max) }
    }

    /// A mark of that topic in the record.
    pub fn notify(topic: &str) -> Self {
        Self { kind: ObligationKind::Notify, name: Some(Box::from(topic)), max: None }
    }

    /// The obligation that these words, as its `Display` writes them, are of.
    pub fn named(words: &str) -> Option<Self> {
        let (kind, rest) = match words.split_once(' ') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (words, None),
        };
        let kind = *ObligationKind::ALL.iter().find(|known| known.name() == kind)?;
        let (name, max) = match (kind, rest) {
            (ObligationKind::ReadOnly | ObligationKind::Openat2, None) => (None, None),
            (ObligationKind::ResultCap | ObligationKind::ApprovalUses, Some(max)) => {
                (None, Some(max))
            }
            (ObligationKind::BudgetCut, Some(rest)) => {
                let (name, max) = rest.split_once(' ')?;
                (Some(name), Some(max))
            }
            (ObligationKind::Approval | ObligationKind::Notify, Some(name)) => (Some(name), None),
            _ => return None,
        };
        let max = max.map(str::parse).transpose().ok()?;
        Some(Self { kind, name: name.map(Box::from), max })
    }

    /// Joins obligations: sorted, each once, of two caps or cuts the smaller. So the order in
    /// which constraints stand never shows.
    pub fn unite(mut all: Vec<Self>) -> Vec<Self> {
        all.sort_by(|a, b| a.key().cmp(&b.key()).then(a.max.cmp(&b.max)));
        all.dedup_by(|later, first| later.key() == first.key());
        all
    }

    fn key(&self) -> (u64, Option<&str>) {
        (self.kind.code(), self.name.as_deref())
    }
}

impl fmt::Display for Obligation {
    /// `result_cap 4096`, `budget_cut disk_write_bytes 100`, `read_only`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.name())?;
        if let Some(name) = &self.name {
            write!(f, " {name}")?;
        }
        if let Some(max) = self.max {
            write!(f, " {max}")?;
        }
        Ok(())
    }
}
