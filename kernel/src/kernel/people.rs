//! Whether there is anybody to be asked.

use super::machine::Kernel;

/// Whether a call may wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum People {
    /// Whoever may answer is looked for.
    There,
    /// Nobody looks: what waits would wait in vain.
    Absent,
}

impl Kernel {
    /// The same kernel where nobody is there to be asked, as in a build: a call that the policy
    /// asks a person about is refused as [`Asked`](syscap_format::reason::Reason::Asked) at once,
    /// and none is put on record to wait. What waited before can be answered, and goes on, as
    /// elsewhere: the state is the same.
    #[must_use]
    pub fn headless(mut self) -> Self {
        self.people = People::Absent;
        self
    }
}
