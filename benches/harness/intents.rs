//! Calls in a kernel that keeps nothing.

use syscap::format::{Canonical, Form, Object, ObjectId, Seq, Source};
use syscap::kernel::{Batch, Effect, Event, Measured, Next, Room, Store, StoreError};

use super::{harness, sim::Sim};

/// Only the way in: from the envelope's bytes to the intent's record, chained.
pub fn to_intent(sim: &mut Sim, session: Seq, envelope: &Canonical) -> harness::Figure {
    let mut times = Vec::new();
    for _ in 0..31 {
        let mut total = std::time::Duration::ZERO;
        for _ in 0..1_000 {
            let received = envelope.as_bytes().to_vec();
            let submit = sim.submission(Source::Agent, session, received, Form::Cbor);
            let reading = sim.reading();
            let start = std::time::Instant::now();
            sim.kernel.handle(Event::Submit(submit), reading);
            total += start.elapsed();
            drain(sim);
        }
        times.push(total.as_nanos() as f64 / 1_000.0);
    }
    harness::figure(&mut times)
}

/// Takes what the kernel asks for: intents as durable at once, jobs run.
pub fn drain(sim: &mut Sim) {
    let reading = sim.reading();
    loop {
        while let Some(effect) = sim.kernel.poll_effect() {
            if let Effect::Run(_, job) = effect {
                let ran = job.run();
                sim.kernel.handle(Event::Ran(ran, Measured::default()), reading);
            }
        }
        match sim.kernel.take_batch() {
            Some(batch) => {
                let stored = batch.commit(&mut Nowhere).unwrap();
                sim.kernel.handle(Event::Stored(stored), reading);
            }
            None => break,
        }
    }
    sim.world.lock().unwrap().spent.clear();
}

/// A store that keeps nothing: what is timed is the kernel.
struct Nowhere;

impl Store for Nowhere {
    fn commit(&mut self, _: &Batch) -> Result<(), StoreError> {
        Ok(())
    }
    fn records(&mut self, _: Seq, _: &mut dyn FnMut(Seq, &[u8]) -> Next) -> Result<(), StoreError> {
        Ok(())
    }
    fn object(&mut self, _: &ObjectId) -> Result<Option<Object>, StoreError> {
        Ok(None)
    }
    fn vault(&mut self, _: Seq) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(None)
    }
    fn room(&mut self) -> Result<Room, StoreError> {
        Ok(Room::Enough)
    }
}
