//! The kernel and its store, shared by the threads that call.
//!
//! There is no thread of the runtime's own. Whoever needs a record durable, and finds nobody
//! committing, commits all that has been queued (the *leader*); the others wait, and find their
//! records durable when they wake. So a lone call costs its own fsync and no hand-over, and many
//! callers share one: group commit without timers.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, Thread},
};

use syscap_kernel::{
    envelope::ToolResult,
    halt::Halt,
    id::Seq,
    kernel::{Ack, Effect, Event, Kernel, Ticket},
    ports::Clock,
    reason::Refused,
    store::{Batch, Room, Store, StoreError, Stored, VaultEntry},
    tool::Job,
};

use crate::{entropy::Salts, run};

/// The kernel and its store.
pub(crate) struct Core {
    shared: Mutex<Shared>,
    /// `None` once the home is closed: sessions may outlive it.
    store: Mutex<Option<Box<dyn Store>>>,
    clock: Arc<dyn Clock>,
    pub(crate) salts: Salts,
}

struct Shared {
    kernel: Kernel,
    requests: BTreeMap<Ticket, Request>,
    next: u64,
    /// Whether somebody commits at the moment.
    led: bool,
    room: Room,
}

/// A thread that wants an answer, and what has come for it.
struct Request {
    thread: Thread,
    delivery: Option<Delivery>,
    /// Whether it sleeps, or is about to: only such a thread can be woken to commit. One that
    /// runs its job would come back too late.
    asleep: bool,
}

enum Delivery {
    Run(Box<Job>),
    Fetch(Vec<(Seq, Seq)>),
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
}

/// What a request came to.
pub(crate) enum Answer {
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
}

impl Core {
    pub(crate) fn new(
        kernel: Kernel,
        store: Box<dyn Store>,
        clock: Arc<dyn Clock>,
        salts: Salts,
    ) -> Arc<Self> {
        let requests = BTreeMap::new();
        let shared = Shared { kernel, requests, next: 0, led: false, room: Room::Enough };
        Arc::new(Self { shared: Mutex::new(shared), store: Mutex::new(Some(store)), clock, salts })
    }

    /// Brings an event before the kernel and sees it through to its answer: runs the job, reads
    /// the vault and commits as the kernel asks.
    pub(crate) fn request(
        self: &Arc<Self>,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Result<Answer, Halt> {
        let mut shared = self.lock();
        let ticket = shared.register();
        self.handle(&mut shared, event(ticket));
        loop {
            match shared.take(ticket) {
                Some(Delivery::Reply(result)) => {
                    return Ok(shared.leave(ticket, Answer::Reply(result)));
                }
                Some(Delivery::Ack(ack)) => return Ok(shared.leave(ticket, Answer::Ack(ack))),
                Some(Delivery::Run(job)) => {
                    shared.wake_leader();
                    drop(shared);
                    let event = run::run(self, *job);
                    shared = self.lock();
                    self.handle(&mut shared, event);
                }
                Some(Delivery::Fetch(wanted)) => {
                    shared.wake_leader();
                    drop(shared);
                    let fetched = self.fetch(&wanted);
                    shared = self.lock();
                    match fetched {
                        Ok(entries) => self.handle(&mut shared, Event::Fetched(ticket, entries)),
                        Err(error) => shared.halt(Halt::Store(error)),
                    }
                }
                None => {
                    if let Some(halt) = shared.kernel.halted().cloned() {
                        shared.requests.remove(&ticket);
                        return Err(halt);
                    }
                    shared = self.wait(shared, Some(ticket));
                }
            }
        }
    }

    /// An event that nobody waits for.
    pub(crate) fn post(self: &Arc<Self>, event: Event) {
        let mut shared = self.lock();
        self.handle(&mut shared, event);
        while !shared.led && shared.kernel.wants_commit() {
            shared = self.wait(shared, None);
        }
    }

    /// Commits, if nobody does and something wants it; else sleeps until woken.
    fn wait<'a>(
        &'a self,
        mut shared: MutexGuard<'a, Shared>,
        ticket: Option<Ticket>,
    ) -> MutexGuard<'a, Shared> {
        if shared.led || !shared.kernel.wants_commit() {
            shared.set_asleep(ticket, true);
            drop(shared);
            thread::park();
            let mut shared = self.lock();
            shared.set_asleep(ticket, false);
            return shared;
        }
        let Some(batch) = shared.kernel.take_batch() else {
            return shared;
        };
        shared.led = true;
        drop(shared);
        let (committed, room) = self.commit(batch);
        let mut shared = self.lock();
        shared.led = false;
        match committed {
            Ok(stored) => self.handle(&mut shared, Event::Stored(stored)),
            Err(halt) => shared.halt(halt),
        }
        match room {
            Ok(room) if room != shared.room => {
                shared.room = room;
                self.handle(&mut shared, Event::Room(room));
            }
            Ok(_) => {}
            Err(error) => shared.halt(Halt::Store(error)),
        }
        shared
    }

    fn commit(&self, batch: Batch) -> (Result<Stored, Halt>, Result<Room, StoreError>) {
        let gone = (Err(Halt::Store(StoreError::Poisoned)), Ok(Room::Reserve));
        let Ok(mut store) = self.store.lock() else {
            return gone;
        };
        let Some(store) = store.as_mut() else {
            return gone;
        };
        let stored = batch.commit(&mut **store);
        let room = if stored.is_ok() { store.room() } else { Ok(Room::Reserve) };
        (stored, room)
    }

    fn fetch(&self, wanted: &[(Seq, Seq)]) -> Result<Vec<VaultEntry>, StoreError> {
        let mut store = self.store.lock().map_err(|_| StoreError::Poisoned)?;
        let store = store.as_mut().ok_or(StoreError::Poisoned)?;
        wanted.iter().map(|(intent, outcome)| store.vault(*intent, *outcome)).collect()
    }

    fn handle(&self, shared: &mut Shared, event: Event) {
        shared.kernel.handle(event, self.clock.read());
        shared.deliver();
    }

    /// A look at the kernel.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        look(&self.lock().kernel)
    }

    /// Closes the store: what is left in the hands of sessions is answered no more.
    pub(crate) fn close_store(&self) -> Result<(), StoreError> {
        let mut store = self.store.lock().map_err(|_| StoreError::Poisoned)?;
        let mut store = store.take().ok_or(StoreError::Poisoned)?;
        store.idle()
    }

    /// A thread that panicked while it held the lock may have left the kernel between two
    /// states: it is halted, and the home must be opened again.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut shared = poisoned.into_inner();
            shared.halt(Halt::Halted);
            shared
        })
    }
}

impl Shared {
    fn register(&mut self) -> Ticket {
        let ticket = Ticket(self.next);
        self.next = self.next.wrapping_add(1);
        let request = Request { thread: thread::current(), delivery: None, asleep: false };
        self.requests.insert(ticket, request);
        ticket
    }

    fn set_asleep(&mut self, ticket: Option<Ticket>, asleep: bool) {
        if let Some(request) = ticket.and_then(|ticket| self.requests.get_mut(&ticket)) {
            request.asleep = asleep;
        }
    }

    fn take(&mut self, ticket: Ticket) -> Option<Delivery> {
        self.requests.get_mut(&ticket).and_then(|request| request.delivery.take())
    }

    fn leave(&mut self, ticket: Ticket, answer: Answer) -> Answer {
        self.requests.remove(&ticket);
        self.wake_leader();
        answer
    }

    /// Hands the kernel's effects to the threads that they are for.
    fn deliver(&mut self) {
        while let Some(effect) = self.kernel.poll_effect() {
            let (ticket, delivery) = match effect {
                Effect::Run(ticket, job) => (ticket, Delivery::Run(job)),
                Effect::Fetch(ticket, wanted) => (ticket, Delivery::Fetch(wanted)),
                Effect::Reply(ticket, result) => (ticket, Delivery::Reply(result)),
                Effect::Ack(ticket, ack) => (ticket, Delivery::Ack(ack)),
            };
            if let Some(request) = self.requests.get_mut(&ticket) {
                request.delivery = Some(delivery);
                request.thread.unpark();
            }
        }
        if self.kernel.halted().is_some() {
            self.requests.values().for_each(|request| request.thread.unpark());
        }
    }

    /// Wakes somebody to commit what is queued, where this thread is about to do otherwise.
    fn wake_leader(&self) {
        if !self.led
            && self.kernel.wants_commit()
            && let Some(request) = self.requests.values().find(|r| r.asleep && r.delivery.is_none())
        {
            request.thread.unpark();
        }
    }

    fn halt(&mut self, halt: Halt) {
        self.kernel.halt(halt);
        self.requests.values().for_each(|request| request.thread.unpark());
    }
}
