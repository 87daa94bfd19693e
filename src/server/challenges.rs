//! Challenges for holders who are elsewhere.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

/// Most challenges that are out: who draws more makes the oldest worthless.
const CHALLENGES_MAX: usize = 1_024;

/// Challenges that were drawn and have not come back.
#[derive(Default)]
pub(crate) struct Challenges(Mutex<VecDeque<[u8; 32]>>);

impl Challenges {
    pub(crate) fn draws(&self, challenge: [u8; 32]) {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        out.push_back(challenge);
        if out.len() > CHALLENGES_MAX {
            out.pop_front();
        }
    }

    /// Takes one back; `false` where it was never drawn, or has been taken.
    pub(crate) fn takes(&self, challenge: &[u8; 32]) -> bool {
        let mut out = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = out.iter().position(|drawn| drawn == challenge);
        place.is_some_and(|place| out.remove(place).is_some())
    }
}
