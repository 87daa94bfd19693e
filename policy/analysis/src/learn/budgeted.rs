//! How many tasks may be refused something: one account for all that is narrowed.

use alloc::collections::BTreeSet;

/// Tasks that would be refused if they were left out of the evidence. Each counts once: where
/// one tool refuses a task anyway, another may as well.
#[derive(Clone, Debug)]
pub(super) struct Budgeted {
    tasks: usize,
    percent: u64,
    lost: BTreeSet<usize>,
}

impl Budgeted {
    pub(super) const fn new(tasks: usize, percent: u64) -> Self {
        Self { tasks, percent, lost: BTreeSet::new() }
    }

    /// Takes the loss of a scope on, if all losses stay within the bound.
    pub(super) fn spend_on_scope(&mut self, alone: &BTreeSet<usize>) -> bool {
        self.spend(alone, 0)
    }

    /// The same of an argument, with one more task, that is refused, as if the next one had been
    /// recorded already (Laplace): of many ways to narrow many arguments one always happens to
    /// fit a few tasks, and few tasks can't promise much.
    pub(super) fn spend_on_argument(&mut self, alone: &BTreeSet<usize>) -> bool {
        self.spend(alone, 1)
    }

    fn spend(&mut self, alone: &BTreeSet<usize>, next: u64) -> bool {
        let more = alone.difference(&self.lost).count();
        let lost = count(self.lost.len().saturating_add(more)).saturating_add(next);
        let tasks = count(self.tasks).saturating_add(next);
        let fine = lost.saturating_mul(100) <= self.percent.saturating_mul(tasks);
        if fine {
            self.lost.extend(alone);
        }
        fine
    }

    pub(super) fn lost(&self) -> usize {
        self.lost.len()
    }
}

/// The least percentage that so many tasks can promise.
pub(super) fn least_percent(tasks: usize) -> u64 {
    100_u64.div_ceil(count(tasks).saturating_add(1))
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}
