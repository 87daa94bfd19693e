//! Conditions as monotone formulas.
//!
//! An allow grants if its condition is true; a deny applies if its condition is not false. Both
//! questions pass through `all`, `any` and `not` down to the tests, so that what is left are joins
//! of two-valued questions about tests.

use alloc::vec::Vec;

use syscap_policy::{Condition, Truth};

/// The required answer of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Is {
    True,
    False,
    NotTrue,
    NotFalse,
}

impl Is {
    pub(super) fn met(self, truth: Truth) -> bool {
        match self {
            Self::True => truth == Truth::True,
            Self::False => truth == Truth::False,
            Self::NotTrue => truth != Truth::True,
            Self::NotFalse => truth != Truth::False,
        }
    }

    /// The question about a condition that is this question about its negation.
    const fn of_negation(self) -> Self {
        match self {
            Self::True => Self::False,
            Self::False => Self::True,
            Self::NotTrue => Self::NotFalse,
            Self::NotFalse => Self::NotTrue,
        }
    }

    /// True if joined values meet it when one of them does.
    pub(super) const fn joins_any(self) -> bool {
        matches!(self, Self::NotTrue | Self::NotFalse)
    }

    /// True if a conjunction meets it when each part does; else when one does.
    const fn joins_all(self) -> bool {
        matches!(self, Self::True | Self::NotFalse)
    }
}

/// Which of a test's answers are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Needs {
    pub(super) truth: bool,
    pub(super) falsity: bool,
}

impl Needs {
    pub(super) fn add(&mut self, is: Is) {
        match is {
            Is::True | Is::NotTrue => self.truth = true,
            Is::False | Is::NotFalse => self.falsity = true,
        }
    }

    /// An answer, with those that are not told apart made one. It commutes with `agree`.
    pub(super) const fn reduce(self, truth: Truth) -> Truth {
        match truth {
            Truth::True if self.truth => Truth::True,
            Truth::False if self.falsity => Truth::False,
            _ => Truth::Unknown,
        }
    }
}

/// A formula over questions about tests, which are known by their numbers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Formula {
    All(Vec<Formula>),
    Any(Vec<Formula>),
    Is(usize, Is),
}

impl Formula {
    /// A condition's requirement, as a formula. `number` numbers its tests.
    pub(super) fn of(
        condition: &Condition,
        is: Is,
        number: &mut dyn FnMut(&syscap_policy::Test) -> usize,
    ) -> Self {
        let (parts, every) = match condition {
            Condition::Test(test) => return Self::Is(number(test), is),
            Condition::Not(part) => return Self::of(part, is.of_negation(), number),
            Condition::All(parts) => (parts, is.joins_all()),
            Condition::Any(parts) => (parts, !is.joins_all()),
        };
        let mut parts: Vec<Self> = parts.iter().map(|part| Self::of(part, is, number)).collect();
        parts.sort();
        parts.dedup();
        if every { Self::All(parts) } else { Self::Any(parts) }
    }

    /// True if it holds; `None` if the answers so far leave that open.
    pub(super) fn state(&self, answers: &[Option<Truth>]) -> Option<bool> {
        let (parts, every) = match self {
            Self::Is(atom, is) => {
                return answers.get(*atom).copied().flatten().map(|truth| is.met(truth));
            }
            Self::All(parts) => (parts, true),
            Self::Any(parts) => (parts, false),
        };
        let mut open = false;
        for part in parts {
            match part.state(answers) {
                None => open = true,
                Some(state) if state != every => return Some(state),
                Some(_) => {}
            }
        }
        (!open).then_some(every)
    }

    /// Visits the questions that still matter.
    pub(super) fn open(&self, answers: &[Option<Truth>], see: &mut dyn FnMut(usize, Is)) {
        match self {
            Self::Is(atom, is) => {
                if answers.get(*atom).copied().flatten().is_none() {
                    see(*atom, *is);
                }
            }
            Self::All(parts) | Self::Any(parts) => {
                for part in parts.iter().filter(|part| part.state(answers).is_none()) {
                    part.open(answers, see);
                }
            }
        }
    }

    /// True if it asks anything.
    pub(super) fn has_questions(&self) -> bool {
        match self {
            Self::Is(..) => true,
            Self::All(parts) | Self::Any(parts) => parts.iter().any(Self::has_questions),
        }
    }
}
