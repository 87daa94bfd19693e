//! The meter of a run: the use of its hold.

use syscap_format::{Amounts, Dimension, Reason, Refused};

/// A run's limits in each dimension, and its use of them.
#[derive(Clone, Copy, Debug)]
pub struct Meter {
    hold: Amounts,
    /// Also what every run uses, and the processor time that a tool measured.
    pub(crate) used: Amounts,
}

/// A unit would exceed what was set aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more {} than was set aside", .0.name())]
pub struct OverHold(pub Dimension);

impl From<OverHold> for Refused {
    fn from(OverHold(dimension): OverHold) -> Self {
        Self::new(Reason::OverHold).field(dimension.name())
    }
}

impl Meter {
    /// A meter of an unused hold.
    pub const fn new(hold: Amounts) -> Self {
        Self { hold, used: Amounts::ZERO }
    }

    /// The call itself is used.
    pub(crate) fn of_call(hold: Amounts) -> Self {
        Self { hold, used: Amounts::ZERO.with(Dimension::Calls, 1) }
    }

    /// The reserved amounts.
    pub const fn hold(&self) -> &Amounts {
        &self.hold
    }

    /// The amounts used.
    pub const fn used(&self) -> &Amounts {
        &self.used
    }

    /// Counts units of a metered dimension *before* they are used.
    ///
    /// # Errors
    /// [`OverHold`]: the units must not be used.
    pub fn count(&mut self, dimension: Dimension, amount: u64) -> Result<(), OverHold> {
        let total = self.used.get(dimension).checked_add(amount).ok_or(OverHold(dimension))?;
        if !dimension.is_metered() || total > self.hold.get(dimension) {
            return Err(OverHold(dimension));
        }
        self.used.set(dimension, total);
        Ok(())
    }
}
