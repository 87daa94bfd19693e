//! A call that is seen through by whichever thread is there for it: the one that brought it runs it
//! too, and where the run outlasts its limit another goes on in its place. So a run that ends in
//! time, as nearly all do, costs no thread of its own and no hand-over.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use syscap_format::Seq;
use syscap_kernel::{Event, Halt, Lost, Measured, Ticket};

use crate::Error;
use crate::driver::core::locked::Locked;
use crate::driver::core::mail::{Brought, Caller, Mailbox, Out};
use crate::driver::core::{Answer, Core};
use crate::driver::guard::caught;
use crate::driver::run::{GivenUp, Means, TakeOver, micros};
use crate::tools::provide::Cancel;

type Finish = Box<dyn FnOnce(Result<Answer, Error>) + Send>;

pub(crate) struct StandIn {
    core: Arc<Core>,
    first: Ticket,
    mail: Arc<Mailbox>,
    cancel: Cancel,
    /// Told the answer, once, by the thread that is there for the call then.
    finish: Mutex<Option<Finish>>,
}

/// Another thread has taken this one's place.
pub(crate) struct Displaced;

impl Core {
    /// Refuses new requests once the home is closing.
    pub(crate) fn may_request(&self) -> Result<(), Halt> {
        if self.is_closed() {
            return Err(self.lock().why_closed());
        }
        if self.short.load(Ordering::SeqCst) {
            self.look_for_room();
        }
        Ok(())
    }

    pub(crate) fn tickets(&self, many: u64) -> Ticket {
        Ticket(self.next.fetch_add(many, Ordering::Relaxed))
    }

    /// The actions taken when a run outlasts its limit.
    pub(crate) fn means(self: &Arc<Self>, out: &Out, stand_in: Option<&Arc<StandIn>>) -> Means {
        let (core, out) = (Arc::clone(self), Out::clone(out));
        Means {
            late: Box::new(move |event| core.came_late(event, out)),
            stand_in: stand_in.map(Arc::clone).map(|one| -> TakeOver {
                Box::new(move |intent, ran, given_up| one.take_over(intent, ran, given_up))
            }),
        }
    }

    /// Brings an event before the kernel, and sees it through to its answer, which `finish` is
    /// told. This thread is needed until its run has ended, whoever tells the answer.
    pub(crate) fn request_then(
        self: &Arc<Self>,
        event: impl FnOnce(Ticket) -> Event,
        cancel: &Cancel,
        finish: impl FnOnce(Result<Answer, Error>) + Send + 'static,
    ) {
        if let Err(halt) = self.may_request() {
            return finish(Err(halt.into()));
        }
        let (mail, first) = (Arc::<Mailbox>::default(), self.tickets(1));
        let stand_in = Arc::new(StandIn {
            core: Arc::clone(self),
            first,
            mail: Arc::clone(&mail),
            cancel: cancel.clone(),
            finish: Mutex::new(Some(Box::new(finish))),
        });
        let brought = Brought::Requests(first, Caller::here(&mail, 1), vec![event(first)]);
        let held = self.bring(&mail, brought);
        stand_in.go_on(held);
    }
}

impl StandIn {
    /// Sees it through on this thread.
    fn go_on(self: &Arc<Self>, held: Option<Locked<'_>>) {
        let seen = caught(|| {
            let mut answer = None;
            let (mail, cancel) = (&self.mail, &self.cancel);
            let seen = |_, came| {
                answer = Some(came);
                true
            };
            let ended = self.core.see_through(held, self.first, mail, cancel, Some(self), seen);
            ended.map(|()| answer)
        });
        let answer = match seen {
            Some(Ok(Some(answer))) => Ok(answer),
            // Another thread is in this one's place.
            Some(Ok(None)) => return,
            Some(Err(halt)) => Err(halt.into()),
            None => Err(Error::BrokeOff),
        };
        let finish = self.finish.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(finish) = finish {
            finish(answer);
        }
    }

    /// Its run is given up after so long, and runs on on the thread that was here; what is left of
    /// the call is this thread's.
    fn take_over(self: &Arc<Self>, intent: Seq, ran: Duration, given_up: GivenUp) {
        let measured = Measured { cpu_us: 0, wall_us: micros(ran) };
        let mut shared = self.core.lock();
        if let Some(caller) = shared.callers.get_mut(&self.first) {
            caller.moves_here();
        }
        self.core.handle(&mut shared, Event::Lost(intent, Lost::TimedOut, measured));
        drop(shared);
        // Once the kernel knows: told before, it could end in time after all.
        given_up.tell();
        self.core.cancels.leave(intent);
        self.go_on(None);
    }
}
