//! The kernel and its store, shared by the threads that call.
//!
//! There is no thread of the runtime's own. Whoever needs a record durable, and finds nobody
//! committing, commits all that has been queued (the *leader*); the others wait, and find their
//! records durable when they wake. So a lone call costs its own fsync and no hand-over, and many
//! callers share one: group commit without timers.
//!
//! What is the host's may panic: store, clock, and the parts of tools that the kernel calls. It
//! is caught, the kernel is halted, and whoever waits is told.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, Thread},
};
use syscap_kernel::{
    halt::Halt,
    kernel::{Ack, Effect, Event, Kernel, Ticket},
    ports::Clock,
    resolve::Resolving,
    store::{Ancestor, Batch, Room, Store, StoreError, Stored, vault_entry},
    tool::Job,
};

use syscap_audit::lock::HomeLock;
use syscap_format::{
    envelope::ToolResult,
    id::Seq,
    reason::{Reason, Refused},
    record::Head,
    vault::VaultEntry,
};

use crate::{
    counters::Counters,
    entropy::Salts,
    guard::caught,
    provide::Cancel,
    run::{self, Cancels},
};

/// The kernel and its store.
pub(crate) struct Core {
    shared: Mutex<Shared>,
    /// `None` once the home is closed and nothing runs any more: sessions may outlive it.
    store: Mutex<Option<Held>>,
    clock: Arc<dyn Clock>,
    pub(crate) salts: Salts,
    pub(crate) counters: Counters,
    pub(crate) cancels: Cancels,
    /// As [`Shared::closed`], to be looked at without the lock.
    closed: AtomicBool,
}

/// A store, and the lock of the home that it is for.
pub(crate) struct Held {
    pub(crate) store: Box<dyn Store>,
    // Given up after the store is dropped: fields drop in this order.
    pub(crate) _lock: HomeLock,
}

struct Shared {
    kernel: Kernel,
    requests: BTreeMap<Ticket, Request>,
    next: u64,
    /// Whether somebody commits at the moment.
    led: bool,
    room: Room,
    /// Each run that is out holds a share of it.
    runs: Out,
    /// Whether the home was closed: no request is taken, and what runs is waited for.
    closed: bool,
}

/// Says that a job is out, from when the kernel gives it away until what it came to is with the
/// kernel, and its thread at an end.
pub(crate) type Out = Arc<()>;

/// What somebody wants an answer to.
struct Request {
    thread: Thread,
    mail: Arc<Mailbox>,
}

/// What has come for a thread, for any of its requests. It is put there under the kernel's lock
/// and taken without it: of those that a batch wakes none has to wait for the others.
#[derive(Default)]
struct Mailbox {
    mail: Mutex<VecDeque<(Ticket, Delivery)>>,
    /// Whether the thread sleeps, or is about to: only such a one can be woken to commit. One
    /// that runs its job would come back too late.
    asleep: AtomicBool,
}

impl Mailbox {
    fn put(&self, ticket: Ticket, delivery: Delivery) {
        self.lock().push_back((ticket, delivery));
    }

    fn take(&self) -> Option<(Ticket, Delivery)> {
        self.lock().pop_front()
    }

    fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Whether the thread would commit if it were woken. In this order: whoever has taken
    /// something has said first that it does not sleep.
    fn is_free(&self) -> bool {
        self.is_empty() && self.asleep.load(Ordering::SeqCst)
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<(Ticket, Delivery)>> {
        // Every change is one step.
        self.mail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

enum Delivery {
    Job(Asked),
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
}

/// What the kernel asks of whoever made the request.
enum Asked {
    Run(Box<Job>, Out),
    Fetch(Vec<(Seq, Seq)>),
    Resolve(Box<Resolving>),
}

/// What a request came to.
pub(crate) enum Answer {
    Reply(Box<ToolResult>),
    Ack(Result<Ack, Refused>),
}

impl Core {
    pub(crate) fn new(
        kernel: Kernel,
        store: Held,
        clock: Arc<dyn Clock>,
        salts: Salts,
    ) -> Arc<Self> {
        let shared = Shared {
            kernel,
            requests: BTreeMap::new(),
            next: 0,
            led: false,
            room: Room::Enough,
            runs: Out::default(),
            closed: false,
        };
        let (shared, store) = (Mutex::new(shared), Mutex::new(Some(store)));
        let (counters, cancels) = (Counters::new(), Cancels::default());
        let closed = AtomicBool::new(false);
        Arc::new(Self { shared, store, clock, salts, counters, cancels, closed })
    }

    /// Brings an event before the kernel and sees it through to its answer: runs the job, reads
    /// the vault, follows links and commits as the kernel asks.
    pub(crate) fn request(
        self: &Arc<Self>,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Result<Answer, Halt> {
        self.request_with(&Cancel::new(), event)
    }

    /// The same; what it runs hears of `cancel`.
    pub(crate) fn request_with(
        self: &Arc<Self>,
        cancel: &Cancel,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Result<Answer, Halt> {
        let mut answered = None;
        let mut event = Some(event);
        let begin = |ticket| event.take().map(|event| event(ticket));
        self.request_all(1, begin, cancel, |_, answer| answered = Some(answer))?;
        answered.ok_or(Halt::Halted)
    }

    /// Brings so many events before the kernel at once, and sees them through to their answers:
    /// what they need durable is committed together. Each is told with its number.
    pub(crate) fn request_all(
        self: &Arc<Self>,
        count: usize,
        mut event: impl FnMut(Ticket) -> Option<Event>,
        cancel: &Cancel,
        mut answered: impl FnMut(usize, Answer),
    ) -> Result<(), Halt> {
        let mut shared = self.lock();
        if shared.closed {
            return Err(shared.kernel.halted().cloned().unwrap_or(Halt::Halted));
        }
        if count == 0 {
            return Ok(());
        }
        if shared.room == Room::Reserve {
            shared = self.look_for_room(shared);
        }
        let (mail, mut tickets) = (Arc::<Mailbox>::default(), Vec::with_capacity(count));
        for _ in 0..count {
            let ticket = shared.register(&mail);
            tickets.push(ticket);
            if let Some(event) = event(ticket) {
                self.handle(&mut shared, event);
            }
        }
        let mut left = count;
        self.see_through(shared, (&tickets, &mail), cancel, |ticket, answer| {
            // They were given one after the other, under one lock.
            let first = tickets.first().map_or(ticket.0, |first| first.0);
            answered(usize::try_from(ticket.0.wrapping_sub(first)).unwrap_or(usize::MAX), answer);
            left = left.saturating_sub(1);
            left == 0
        })
    }

    /// Sees requests through to their answers, until `answered` says that the last has come. The
    /// lock is held only where the kernel is asked.
    fn see_through<'a>(
        self: &'a Arc<Self>,
        shared: MutexGuard<'a, Shared>,
        (tickets, mail): (&[Ticket], &Mailbox),
        cancel: &Cancel,
        mut answered: impl FnMut(Ticket, Answer) -> bool,
    ) -> Result<(), Halt> {
        let mut held = Some(shared);
        let ended = loop {
            let Some((ticket, delivery)) = mail.take() else {
                let shared = held.take().unwrap_or_else(|| self.lock());
                if !mail.is_empty() {
                    continue;
                }
                if let Some(halt) = shared.kernel.halted().cloned() {
                    held = Some(shared);
                    break Err(halt);
                }
                held = self.wait(shared, mail);
                continue;
            };
            let answer = match delivery {
                Delivery::Reply(result) => Some(Answer::Reply(result)),
                Delivery::Ack(ack) => Some(Answer::Ack(ack)),
                Delivery::Job(job) => {
                    Self::let_go(held.take());
                    held = self.serve(ticket, job, cancel);
                    None
                }
            };
            if answer.is_some_and(|answer| answered(ticket, answer)) {
                break Ok(());
            }
        };
        // Who was woken for the answer has nothing to see to: whoever woke it does that.
        if let Some(mut shared) = held.or_else(|| self.is_closed().then(|| self.lock())) {
            tickets.iter().for_each(|ticket| drop(shared.requests.remove(ticket)));
            shared.wake_leader();
            drop(self.spent(shared));
        }
        ended
    }

    /// Does what the kernel asks for, without the lock, and tells it what came of that.
    fn serve(
        self: &Arc<Self>,
        ticket: Ticket,
        asked: Asked,
        cancel: &Cancel,
    ) -> Option<MutexGuard<'_, Shared>> {
        let event = match asked {
            Asked::Run(job, out) => {
                let (event, given_up) = run::run(self, *job, &out, cancel);
                if let Some(given_up) = given_up {
                    self.handle(&mut self.lock(), event);
                    given_up.tell();
                    return None;
                }
                Ok(event)
            }
            Asked::Fetch(wanted) => {
                self.fetch(&wanted).map(|entries| Event::Fetched(ticket, entries))
            }
            Asked::Resolve(resolving) => {
                let found = caught(|| resolving.run());
                let found = found.unwrap_or_else(|| Err(Refused::new(Reason::Panicked)));
                Ok(Event::Resolved(ticket, found))
            }
        };
        let mut shared = self.lock();
        match event {
            Ok(event) => self.handle(&mut shared, event),
            Err(halt) => shared.halt(halt),
        }
        Some(shared)
    }

    /// Lets go of the lock, to do otherwise than commit.
    fn let_go(held: Option<MutexGuard<'_, Shared>>) {
        if let Some(shared) = held {
            shared.wake_leader();
        }
    }

    /// An event that nobody waits for. What it puts on record is durable when this returns, or
    /// else with the next batch, if one is on its way.
    pub(crate) fn post(&self, event: Event) {
        let mut shared = self.lock();
        self.handle(&mut shared, event);
        while !shared.led {
            shared = self.lead(shared);
            if !shared.kernel.wants_commit() {
                break;
            }
        }
    }

    /// A run that had been given up is back: it was answered long ago, and what is left is to
    /// free its place.
    pub(crate) fn came_late(&self, event: Event, out: Out) {
        self.post(event);
        drop(out);
        drop(self.spent(self.lock()));
    }

    /// Commits, if nobody does and something wants it; else sleeps until woken.
    fn wait<'a>(
        &'a self,
        shared: MutexGuard<'a, Shared>,
        mail: &Mailbox,
    ) -> Option<MutexGuard<'a, Shared>> {
        if !shared.led && shared.kernel.wants_commit() {
            return Some(self.lead(shared));
        }
        mail.asleep.store(true, Ordering::SeqCst);
        drop(shared);
        thread::park();
        mail.asleep.store(false, Ordering::SeqCst);
        None
    }

    /// Commits what is queued; once the home is closed, until nothing is.
    fn lead<'a>(&'a self, mut shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        while let Some(batch) = shared.kernel.take_batch() {
            shared.led = true;
            drop(shared);
            let (committed, room) = self.commit(batch);
            shared = self.lock();
            shared.led = false;
            match committed {
                Ok(stored) => self.handle(&mut shared, Event::Stored(stored)),
                Err(halt) => shared.halt(halt),
            }
            self.take_room(&mut shared, room);
            if !shared.closed {
                break;
            }
        }
        shared
    }

    /// Looks again where there was no room: refusals that are only counted commit nothing, and
    /// so would never find out.
    fn look_for_room<'a>(&'a self, shared: MutexGuard<'a, Shared>) -> MutexGuard<'a, Shared> {
        drop(shared);
        let room = self.ask(|store| Ok(store.room()?));
        let mut shared = self.lock();
        self.take_room(&mut shared, room);
        shared
    }

    fn take_room(&self, shared: &mut Shared, room: Result<Room, Halt>) {
        match room {
            Ok(room) if room != shared.room => {
                shared.room = room;
                self.handle(shared, Event::Room(room));
            }
            Ok(_) => {}
            Err(halt) => shared.halt(halt),
        }
    }

    fn commit(&self, batch: Batch) -> (Result<Stored, Halt>, Result<Room, Halt>) {
        let stored = self.ask(|store| batch.commit(store));
        let room = match stored {
            Ok(_) => self.ask(|store| Ok(store.room()?)),
            Err(_) => Ok(Room::Reserve),
        };
        (stored, room)
    }

    fn fetch(&self, wanted: &[(Seq, Seq)]) -> Result<Vec<VaultEntry>, Halt> {
        self.ask(|store| {
            let read = |(first, outcome): &(Seq, Seq)| vault_entry(store, *first, *outcome);
            Ok(wanted.iter().map(read).collect::<Result<_, StoreError>>()?)
        })
    }

    /// Looks whether a head is durable.
    pub(crate) fn ancestor(&self, head: Head) -> Result<Option<Ancestor>, Halt> {
        self.ask(|store| Ok(Ancestor::find(store, head)?))
    }

    /// Asks the store. One that panics may be between two states: the kernel must be halted, as
    /// after any error, and then nothing more is written.
    fn ask<T>(&self, ask: impl FnOnce(&mut dyn Store) -> Result<T, Halt>) -> Result<T, Halt> {
        let mut held = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let held = held.as_mut().ok_or(Halt::Store(StoreError::Poisoned))?;
        caught(|| ask(&mut *held.store)).unwrap_or(Err(Halt::Halted))
    }

    /// Moves the kernel on. A panic is of what it calls of the host's, and may leave it between
    /// two states: it is halted, and nothing of it goes on record any more.
    fn handle(&self, shared: &mut Shared, event: Event) {
        let handled = caught(|| shared.kernel.handle(event, self.clock.read()));
        if handled.is_none() {
            shared.halt(Halt::Halted);
        }
        shared.deliver();
    }

    /// A look at the kernel.
    pub(crate) fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        look(&self.lock().kernel)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Closes the home: no request is taken any more. The store goes as soon as no run is out
    /// and nothing is left to commit.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        let mut shared = self.lock();
        shared.closed = true;
        self.closed.store(true, Ordering::SeqCst);
        if !shared.led {
            shared = self.lead(shared);
        }
        let sound = shared.kernel.halted().is_none();
        match self.spent(shared) {
            Some(mut held) if sound => {
                caught(|| held.store.idle()).unwrap_or(Err(StoreError::Poisoned))
            }
            _ => Ok(()),
        }
    }

    /// The store, for the one who finds that nobody will need it any more. Dropping it frees the
    /// home, so it must stay as long as anything runs: whoever opens the home next takes what is
    /// open for ended.
    fn spent(&self, mut shared: MutexGuard<'_, Shared>) -> Option<Held> {
        let running = Arc::strong_count(&shared.runs) > 1;
        if !shared.closed || running || shared.led || shared.kernel.wants_commit() {
            return None;
        }
        shared.halt(Halt::Halted);
        drop(shared);
        self.store.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// A thread that panicked while it held the lock may have left the kernel between two
    /// states: it is halted, and the home must be opened again.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(|poisoned: PoisonError<_>| {
            let mut shared = poisoned.into_inner();
            shared.led = false;
            shared.halt(Halt::Halted);
            shared
        })
    }
}

impl Shared {
    fn register(&mut self, mail: &Arc<Mailbox>) -> Ticket {
        let ticket = Ticket(self.next);
        self.next = self.next.wrapping_add(1);
        let (thread, mail) = (thread::current(), Arc::clone(mail));
        self.requests.insert(ticket, Request { thread, mail });
        ticket
    }

    /// Hands the kernel's effects to the threads that they are for.
    fn deliver(&mut self) {
        while let Some(effect) = self.kernel.poll_effect() {
            let (ticket, delivery) = match effect {
                Effect::Run(ticket, job) => {
                    (ticket, Delivery::Job(Asked::Run(job, Out::clone(&self.runs))))
                }
                Effect::Fetch(ticket, wanted) => (ticket, Delivery::Job(Asked::Fetch(wanted))),
                Effect::Resolve(ticket, links) => (ticket, Delivery::Job(Asked::Resolve(links))),
                Effect::Reply(ticket, result) => (ticket, Delivery::Reply(result)),
                Effect::Ack(ticket, ack) => (ticket, Delivery::Ack(ack)),
            };
            // Whoever has its answer is a request no more.
            let request = match delivery {
                Delivery::Reply(_) | Delivery::Ack(_) => self.requests.remove(&ticket),
                _ => None,
            };
            if let Some(request) = request.as_ref().or_else(|| self.requests.get(&ticket)) {
                request.mail.put(ticket, delivery);
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
            && let Some(request) = self.requests.values().find(|request| request.mail.is_free())
        {
            request.thread.unpark();
        }
    }

    fn halt(&mut self, halt: Halt) {
        self.kernel.halt(halt);
        self.requests.values().for_each(|request| request.thread.unpark());
    }
}
