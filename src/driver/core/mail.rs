//! The inbox of the kernel, and the mailboxes of the threads that wait for it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use syscap_format::{Refused, ToolResult};
use syscap_kernel::{Ack, Event, Fetching, Halt, Inspecting, Job, Resolving, Ticket};

/// Says that a job is out, from when the kernel gives it away until what it came to is with the
/// kernel, and its thread at an end.
pub(crate) type Out = Arc<()>;

/// A request to the kernel.
pub(crate) enum Brought {
    /// Requests, by the first ticket of whoever makes them, and the events that they are about.
    Requests(Ticket, Caller, Vec<Event>),
    /// The result of a job; a late result goes out once the kernel has it.
    Done(Box<Event>, Option<Out>),
    /// The store has failed.
    Failed(Halt),
}

/// Somebody who waits for answers.
#[derive(Clone)]
pub(crate) struct Caller {
    thread: Thread,
    mail: Arc<Mailbox>,
    /// How many requests it has made, and how many of them have no answer yet.
    made: usize,
    left: usize,
}

impl Caller {
    /// This thread, for so many requests.
    pub(crate) fn here(mail: &Arc<Mailbox>, made: usize) -> Self {
        Self { thread: thread::current(), mail: Arc::clone(mail), made, left: made }
    }

    /// From here on this thread waits in the place of the other.
    pub(crate) fn moves_here(&mut self) {
        self.thread = thread::current();
    }

    /// True if it has made a request with that distance from its first.
    pub(crate) fn has_made(&self, after: u64) -> bool {
        usize::try_from(after).is_ok_and(|after| after < self.made)
    }

    /// One more answer has come; whether it is the last.
    pub(crate) const fn has_all(&mut self) -> bool {
        self.left = self.left.saturating_sub(1);
        self.left == 0
    }

    pub(crate) const fn mail(&self) -> &Arc<Mailbox> {
        &self.mail
    }

    /// Hands something over, and wakes the thread.
    pub(crate) fn deliver(&self, ticket: Ticket, delivery: Delivery) {
        self.mail.lock().push_back((ticket, delivery));
        self.wake();
    }

    pub(crate) fn wake(&self) {
        self.thread.unpark();
    }
}

/// The messages for a thread, of any of its requests. It is put there under the kernel's lock and
/// taken without it: of those that a batch wakes none has to wait for the others.
#[derive(Default)]
pub(crate) struct Mailbox {
    mail: Mutex<VecDeque<(Ticket, Delivery)>>,
    /// True if the thread sleeps, or is about to. Only a sleeping thread can be woken to commit.
    /// One that runs its job would come back too late.
    asleep: AtomicBool,
}

impl Mailbox {
    pub(crate) fn take(&self) -> Option<(Ticket, Delivery)> {
        self.lock().pop_front()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The thread is about to sleep, or does not any more.
    pub(crate) fn sleeps(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
    }

    /// True if the thread would commit when woken. In this order: whoever has taken something has
    /// said first that it does not sleep.
    pub(crate) fn is_free(&self) -> bool {
        self.is_empty() && self.asleep.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Ticket, Delivery)>> {
        // Every change is one step.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) enum Delivery {
    Job(Asked),
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
    /// No more messages: the home was closed before the request was taken.
    Closed(Halt),
}

/// A request of the kernel to the caller.
pub(crate) enum Asked {
    Run(Box<Job>, Out),
    Fetch(Box<Fetching>),
    Resolve(Box<Resolving>),
    Inspect(Box<Inspecting>),
}
