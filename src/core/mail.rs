//! What waits at the kernel, and what comes for it.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
};

use syscap_format::{envelope::ToolResult, id::Seq, reason::Refused};
use syscap_kernel::{
    halt::Halt,
    kernel::{Ack, Event, Ticket},
    resolve::Resolving,
    tool::Job,
};

/// Says that a job is out, from when the kernel gives it away until what it came to is with the
/// kernel, and its thread at an end.
pub(crate) type Out = Arc<()>;

/// What is brought before the kernel.
pub(super) enum Brought {
    /// A request, and the event that it is about.
    Request(Ticket, Request, Option<Box<Event>>),
    /// What a job came to; whatever says that it is out goes once the kernel has it.
    Done(Box<Event>, Option<Out>),
    /// The store has failed.
    Failed(Halt),
}

/// What somebody wants an answer to.
#[derive(Clone)]
pub(super) struct Request {
    thread: Thread,
    mail: Arc<Mailbox>,
}

impl Request {
    /// Of this thread.
    pub(super) fn here(mail: &Arc<Mailbox>) -> Self {
        Self { thread: thread::current(), mail: Arc::clone(mail) }
    }

    pub(super) const fn mail(&self) -> &Arc<Mailbox> {
        &self.mail
    }

    /// Hands something over, and wakes the thread.
    pub(super) fn deliver(&self, ticket: Ticket, delivery: Delivery) {
        self.mail.lock().push_back((ticket, delivery));
        self.wake();
    }

    pub(super) fn wake(&self) {
        self.thread.unpark();
    }
}

/// What has come for a thread, for any of its requests. It is put there under the kernel's lock
/// and taken without it: of those that a batch wakes none has to wait for the others.
#[derive(Default)]
pub(super) struct Mailbox {
    mail: Mutex<VecDeque<(Ticket, Delivery)>>,
    /// Whether the thread sleeps, or is about to: only such a one can be woken to commit. One
    /// that runs its job would come back too late.
    asleep: AtomicBool,
}

impl Mailbox {
    pub(super) fn take(&self) -> Option<(Ticket, Delivery)> {
        self.lock().pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The thread is about to sleep, or does not any more.
    pub(super) fn sleeps(&self, asleep: bool) {
        self.asleep.store(asleep, Ordering::SeqCst);
    }

    /// Whether the thread would commit if it were woken. In this order: whoever has taken
    /// something has said first that it does not sleep.
    pub(super) fn is_free(&self) -> bool {
        self.is_empty() && self.asleep.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Ticket, Delivery)>> {
        // Every change is one step.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) enum Delivery {
    Job(Asked),
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
    /// Nothing more comes: the home was closed before the request was taken.
    Closed(Halt),
}

/// What the kernel asks of whoever made the request.
pub(super) enum Asked {
    Run(Box<Job>, Out),
    Fetch(Vec<(Seq, Seq)>),
    Resolve(Box<Resolving>),
}
