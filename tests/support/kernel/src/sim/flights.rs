//! Batches on their way to the disk: other events may come while they are.

use syscap_kernel::{Attempt, Batch, Event, Stored};

use super::Sim;

/// A batch that was taken and of which the kernel has not heard.
pub enum Flight {
    /// It is not durable yet.
    Taken(Batch),
    /// It is durable.
    Durable(Stored),
}

impl Sim {
    /// Takes what is pending.
    pub fn take(&mut self) {
        self.flights.extend(self.kernel.take_batch().map(Flight::Taken));
    }

    /// Makes the oldest batch durable that isn't. A failed commit halts the kernel.
    pub fn write(&mut self) {
        let Some(place) = self.flights.iter().position(|f| matches!(f, Flight::Taken(_))) else {
            return;
        };
        let Some(Flight::Taken(batch)) = self.flights.remove(place) else { return };
        match batch.attempt(&mut self.store) {
            Ok(Attempt::Stored(stored)) => self.flights.insert(place, Flight::Durable(stored)),
            Ok(Attempt::Busy(same)) => self.flights.insert(place, Flight::Taken(same)),
            Err(halt) => {
                self.kernel.halt(halt);
                // What was taken later can't follow.
                self.flights.clear();
            }
        }
    }

    /// Tells the kernel of the oldest batch, if that is durable.
    pub fn tell(&mut self) {
        match self.flights.pop_front() {
            Some(Flight::Durable(stored)) => self.event(Event::Stored(stored)),
            Some(taken) => self.flights.push_front(taken),
            None => {}
        }
    }

    /// Makes everything durable that was taken, and tells the kernel.
    pub fn land(&mut self) {
        while !self.flights.is_empty() {
            self.write();
            self.tell();
        }
    }
}
