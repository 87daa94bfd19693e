//! The kernel and its store, shared by the threads that call.
//!
//! There is no thread of the runtime's own. The first caller that needs durability commits the
//! whole queue (the *leader*). The others wait, and find their records durable when they wake. So a
//! lone call costs its own fsync and no hand-over, and many callers share one: group commit without
//! timers.
//!
//! Nor does anybody wait for the kernel's lock who has only something to bring: it is laid into the
//! inbox, and whoever has the lock sees to it before and after letting go of it (flat combining:
//! Hendler, Incze, Shavit and Tzafrir, SPAA 2010). A caller that has queued a request sleeps
//! anyway, until its records are durable.
//!
//! The host's parts may panic: the store, the clock, and the parts of tools that the kernel calls.
//! It is caught, the kernel is halted, and whoever waits is told.

mod locked;
mod mail;
mod notices;
mod stall;
mod stand_in;
mod stored;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError};
use std::time::Duration;
use std::{mem, thread};

use syscap_kernel::{Ack, Clock, Effect, Event, Halt, Kernel, Room, Store, StoreError, Ticket};

use syscap_audit::HomeLock;
use syscap_format::{Reason, Refused, ToolResult};

use crate::driver::bell::Bell;
use crate::driver::core::locked::Locked;
use crate::driver::core::mail::{Asked, Brought, Caller, Delivery, Mailbox};
use crate::driver::core::stand_in::{Displaced, StandIn};
pub(crate) use crate::driver::core::{mail::Out, notices::Notices, stall::STALL_TIME};
use crate::driver::counters::Counters;
use crate::driver::entropy::Salts;
use crate::driver::guard::caught;
use crate::driver::run::{self, Cancels, Ended};
use crate::home::claim;
use crate::tools::provide::Cancel;

/// The kernel and its store.
pub(crate) struct Core {
    shared: Mutex<Shared>,
    /// The requests that nobody has processed yet.
    inbox: Mutex<Vec<Brought>>,
    /// The number of the next request.
    next: AtomicU64,
    /// `None` once the home is closed and nothing runs any more: sessions may outlive it.
    store: Mutex<Option<Held>>,
    /// Another handle on it, that only reads: no commit waits for it.
    reader: Mutex<Option<Box<dyn Store>>>,
    clock: Arc<dyn Clock>,
    pub(crate) salts: Salts,
    pub(crate) counters: Counters,
    pub(crate) notices: Arc<Notices>,
    /// Rung where what waits for a person changes.
    pub(crate) asks: Bell,
    /// Rung with it, and where a request begins to wait.
    pub(crate) waits: Bell,
    pub(crate) cancels: Cancels,
    /// As [`Shared::closed`], to be looked at without the lock.
    closed: AtomicBool,
    /// True if runs are abandoned: no run begins any more.
    ending: AtomicBool,
    /// True if [`Shared::room`] is the reserve; readable without the lock.
    short: AtomicBool,
    /// True while another program keeps a commit from beginning.
    stalled: AtomicBool,
    /// How long that may last.
    stall_time: Duration,
    /// True once it has lasted longer.
    gave_up: AtomicBool,
    /// What is done then.
    let_go: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// A store, and the lock of the home that it is for.
pub(crate) struct Held {
    pub(crate) store: Box<dyn Store>,
    /// The claim on the base.
    pub(crate) _claim: claim::Held,
    // Given up after the store is dropped: fields drop in this order.
    pub(crate) _lock: HomeLock,
}

pub(crate) struct Shared {
    kernel: Kernel,
    /// The callers that wait for answers, by the first of their consecutive tickets.
    callers: BTreeMap<Ticket, Caller>,
    /// True if a leader commits at the moment.
    led: bool,
    /// True if a request without a waiting caller was queued meanwhile: it may be the last for
    /// long.
    posted: bool,
    /// The thread that was woken to commit and has not arrived yet.
    summoned: Option<Arc<Mailbox>>,
    room: Room,
    /// Each run that is out holds a share of it.
    runs: Out,
    /// True if the home was closed: no request is taken, and runs in flight are awaited.
    closed: bool,
    /// Room for what is taken out of the inbox.
    taken: Vec<Brought>,
}

/// The result of a request.
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
        stall_time: Duration,
    ) -> Result<Arc<Self>, StoreError> {
        let reader = store.store.reader()?;
        let shared = Shared {
            kernel,
            callers: BTreeMap::new(),
            led: false,
            posted: false,
            summoned: None,
            room: Room::Enough,
            runs: Out::default(),
            closed: false,
            taken: Vec::new(),
        };
        Ok(Arc::new(Self {
            shared: Mutex::new(shared),
            inbox: Mutex::default(),
            next: AtomicU64::new(0),
            store: Mutex::new(Some(store)),
            reader: Mutex::new(reader),
            clock,
            salts,
            counters: Counters::new(),
            notices: Arc::default(),
            asks: Bell::default(),
            waits: Bell::default(),
            cancels: Cancels::default(),
            closed: AtomicBool::new(false),
            ending: AtomicBool::new(false),
            short: AtomicBool::new(false),
            stalled: AtomicBool::new(false),
            stall_time,
            gave_up: AtomicBool::new(false),
            let_go: OnceLock::new(),
        }))
    }

    /// Brings an event before the kernel and sees it through to its answer: runs the job, reads
    /// the vault, follows links and commits as the kernel asks.
    pub(crate) fn request(
        self: &Arc<Self>,
        event: impl FnOnce(Ticket) -> Event,
    ) -> Result<Answer, Halt> {
        let mut answered = None;
        let mut event = Some(event);
        let begin = |ticket| event.take().map(|event| event(ticket));
        self.request_all(1, begin, &Cancel::new(), |_, answer| answered = Some(answer))?;
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
        if count == 0 {
            return Ok(());
        }
        self.may_request()?;
        let mail = Arc::<Mailbox>::default();
        let many = u64::try_from(count).unwrap_or(u64::MAX);
        let Ticket(first) = self.tickets(many);
        // What they are is read here: the kernel does nothing else meanwhile.
        let events = (0..many).map_while(|n| event(Ticket(first.wrapping_add(n))));
        let events: Vec<Event> = events.collect();
        let mut left = events.len();
        let caller = Caller::here(&mail, left);
        let held = self.bring(&mail, Brought::Requests(Ticket(first), caller, events));
        self.see_through(held, Ticket(first), &mail, cancel, None, |ticket, answer| {
            answered(usize::try_from(ticket.0.wrapping_sub(first)).unwrap_or(usize::MAX), answer);
            left = left.saturating_sub(1);
            left == 0
        })
    }

    /// Brings something before the kernel. If another thread has the lock, that one processes the
    /// request, and this thread must sleep. It counts as sleeping from before that, so that it can
    /// be woken to commit.
    fn bring(&self, mail: &Mailbox, brought: Brought) -> Option<Locked<'_>> {
        mail.sleeps(true);
        self.inbox().push(brought);
        let mut held = self.try_lock()?;
        mail.sleeps(false);
        self.take_in(&mut held);
        Some(held)
    }

    /// Sees requests through to their answers, until `answered` says that the last has come. The
    /// lock is held only where the kernel is asked.
    fn see_through<'a>(
        self: &'a Arc<Self>,
        mut held: Option<Locked<'a>>,
        first: Ticket,
        mail: &Mailbox,
        cancel: &Cancel,
        stand_in: Option<&Arc<StandIn>>,
        mut answered: impl FnMut(Ticket, Answer) -> bool,
    ) -> Result<(), Halt> {
        let mut others_ran = false;
        let ended = loop {
            if held.is_none() && mail.is_free() {
                thread::park();
            }
            mail.sleeps(false);
            let Some((ticket, delivery)) = mail.take() else {
                let shared = held.take().unwrap_or_else(|| self.lock());
                if !mail.is_empty() {
                    held = Some(shared);
                } else if let Some(halt) = shared.kernel.halted().cloned() {
                    held = Some(shared);
                    // No record of it was written where none of it has run.
                    let is_lost = others_ran && halt == Halt::Store(StoreError::Busy);
                    break Err(if is_lost { Halt::Halted } else { halt });
                } else {
                    held = self.wait(shared, mail);
                }
                continue;
            };
            let answer = match delivery {
                Delivery::Reply(result) => Some(Answer::Reply(result)),
                Delivery::Ack(ack) => {
                    if let Ok(Ack::Cancelled(_, intent)) = &ack {
                        drop(held.take());
                        let running = |k: &Kernel| k.running().map(|(seq, ..)| seq).collect();
                        self.cancels.cancel(*intent, &self.look(running));
                    }
                    Some(Answer::Ack(ack))
                }
                Delivery::Closed(halt) => break Err(halt),
                Delivery::Job(job) => {
                    drop(held.take());
                    let is_run = matches!(job, Asked::Run(..));
                    held = match self.serve(mail, ticket, job, others_ran, cancel, stand_in) {
                        Ok(held) => held,
                        Err(Displaced) => return Ok(()),
                    };
                    others_ran |= is_run;
                    None
                }
            };
            if answer.is_some_and(|answer| answered(ticket, answer)) {
                break Ok(());
            }
        };
        // Who was woken for the answer has nothing to see to: whoever woke it does that.
        if let Some(mut shared) = held.or_else(|| self.is_closed().then(|| self.lock())) {
            shared.callers.remove(&first);
            drop(self.spent(shared));
        }
        ended
    }

    /// Does what the kernel asks for, without the lock, and brings it what came of that. A job that
    /// must not begin any more is given back.
    fn serve(
        self: &Arc<Self>,
        mail: &Mailbox,
        ticket: Ticket,
        asked: Asked,
        has_waited: bool,
        cancel: &Cancel,
        stand_in: Option<&Arc<StandIn>>,
    ) -> Result<Option<Locked<'_>>, Displaced> {
        let brought = match asked {
            Asked::Run(job, out) => {
                let gone = cancel.is_cancelled() || self.ending.load(Ordering::SeqCst);
                // Much may have happened since its permit was made, where others ran before it.
                if gone || has_waited {
                    let mut shared = self.lock();
                    if gone || !shared.kernel.may_begin(&job) {
                        self.handle(&mut shared, Event::GivenBack(job));
                        drop(out);
                        return Ok(Some(shared));
                    }
                }
                let (event, given_up) =
                    match run::run(&self.cancels, *job, self.means(&out, stand_in), cancel) {
                        Ended::Here(event, given_up) => (event, given_up),
                        Ended::Late(event) => {
                            self.came_late(event, out);
                            return Err(Displaced);
                        }
                    };
                if matches!(&event, Event::Ran(ran, _) if ran.tells_of_a_failure()) {
                    self.counters.tool_failed();
                }
                if let Some(given_up) = given_up {
                    self.handle(&mut self.lock(), event);
                    given_up.tell();
                    return Ok(Some(self.lock()));
                }
                Brought::Done(Box::new(event), Some(out))
            }
            Asked::Fetch(fetching) => match self.read(|store| Ok(fetching.run(store)?)) {
                Ok(fetched) => Brought::Done(Box::new(Event::Fetched(ticket, fetched)), None),
                Err(halt) => Brought::Failed(halt),
            },
            Asked::Resolve(resolving) => {
                let found = caught(|| resolving.run());
                let found = found.unwrap_or_else(|| Err(Refused::new(Reason::Panicked)));
                Brought::Done(Box::new(Event::Resolved(ticket, found)), None)
            }
            Asked::Inspect(inspecting) => {
                let seen = caught(|| inspecting.run());
                Brought::Done(Box::new(Event::Inspected(ticket, seen)), None)
            }
        };
        Ok(self.bring(mail, brought))
    }

    /// An event that nobody waits for. Its record is durable when this returns, or the current
    /// leader commits it.
    pub(crate) fn post(&self, event: Event) {
        let mut shared = self.lock();
        self.handle(&mut shared, event);
        shared.posted = shared.led;
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

    /// Commits, if nobody does and something wants it; else lets go of the lock, to sleep.
    fn wait<'a>(&'a self, shared: Locked<'a>, mail: &Mailbox) -> Option<Locked<'a>> {
        if !shared.led && shared.kernel.wants_commit() {
            return Some(self.lead(shared));
        }
        mail.sleeps(true);
        drop(shared);
        None
    }

    /// Commits what is queued, and what was posted meanwhile; once the home is closed, until
    /// nothing is.
    fn lead<'a>(&'a self, mut shared: Locked<'a>) -> Locked<'a> {
        while let Some(batch) = shared.kernel.take_batch() {
            (shared.led, shared.summoned) = (true, None);
            drop(shared);
            let (committed, room) = self.commit(batch);
            shared = self.lock();
            shared.led = false;
            match committed {
                Ok(stored) => self.handle(&mut shared, Event::Stored(stored)),
                Err(halt) => shared.halt(halt),
            }
            self.take_room(&mut shared, room);
            if !mem::take(&mut shared.posted) && !shared.closed {
                break;
            }
        }
        shared
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

    pub(crate) fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> T {
        // Nothing may have happened for hours, in which tokens have expired.
        let reading = caught(|| self.clock.read());
        let mut locked = self.lock();
        if let Some(reading) = reading {
            locked.kernel.follow(reading);
        }
        look(&locked.kernel)
    }

    fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Abandons all runs in flight, and lets none begin.
    pub(crate) fn give_up_runs(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.cancels.cancel_all();
    }

    /// Closes the home: no request is taken any more. The store goes as soon as no run is out
    /// and nothing is left to commit.
    pub(crate) fn close(&self) -> Result<(), StoreError> {
        let mut shared = self.lock();
        shared.closed = true;
        self.ending.store(true, Ordering::SeqCst);
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
    fn spent(&self, mut shared: Locked<'_>) -> Option<Held> {
        let running = Arc::strong_count(&shared.runs) > 1;
        if !shared.closed || running || shared.led || shared.kernel.wants_commit() {
            return None;
        }
        shared.halt(Halt::Halted);
        drop(shared);
        // Before the store: what closes a database last tidies it up, and can only be who writes.
        drop(self.reader.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.store.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Sees to what was brought, and to somebody who commits.
    fn see_to(&self, shared: &mut Shared) {
        self.take_in(shared);
        shared.wake_leader();
    }

    /// The same, as long as there is something, and nobody has the lock who will do it.
    fn see_to_the_rest(&self) {
        while !self.inbox().is_empty() {
            let Some(mut shared) = self.unless_taken() else { return };
            self.see_to(&mut shared);
        }
    }

    /// Takes what was brought.
    fn take_in(&self, shared: &mut Shared) {
        let mut taken = mem::take(&mut shared.taken);
        loop {
            mem::swap(&mut *self.inbox(), &mut taken);
            if taken.is_empty() {
                break;
            }
            for brought in taken.drain(..) {
                match brought {
                    Brought::Requests(first, caller, _) if shared.closed => {
                        let closed = Delivery::Closed(shared.why_closed());
                        shared.hand(&caller, first, closed);
                    }
                    Brought::Requests(first, caller, events) => {
                        shared.callers.insert(first, caller);
                        events.into_iter().for_each(|event| self.handle(shared, event));
                    }
                    Brought::Done(event, out) => {
                        self.handle(shared, *event);
                        drop(out);
                    }
                    Brought::Failed(halt) => shared.halt(halt),
                }
            }
        }
        shared.taken = taken;
    }

    fn inbox(&self) -> MutexGuard<'_, Vec<Brought>> {
        // Every change is one step.
        self.inbox.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> Locked<'_> {
        let shared = self.shared.lock().unwrap_or_else(Shared::left_behind);
        Locked::new(shared, self)
    }

    /// `None` where somebody has it.
    fn try_lock(&self) -> Option<Locked<'_>> {
        Some(Locked::new(self.unless_taken()?, self))
    }

    fn unless_taken(&self) -> Option<MutexGuard<'_, Shared>> {
        match self.shared.try_lock() {
            Ok(shared) => Some(shared),
            Err(TryLockError::WouldBlock) => None,
            Err(TryLockError::Poisoned(poisoned)) => Some(Shared::left_behind(poisoned)),
        }
    }
}

impl Shared {
    /// A thread that panicked while it held the lock may have left the kernel between two
    /// states: it is halted, and the home must be opened again.
    fn left_behind(poisoned: PoisonError<MutexGuard<'_, Self>>) -> MutexGuard<'_, Self> {
        let mut shared = poisoned.into_inner();
        shared.led = false;
        shared.halt(Halt::Halted);
        shared
    }

    /// Why no request is taken any more.
    fn why_closed(&self) -> Halt {
        self.kernel.halted().cloned().unwrap_or(Halt::Halted)
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
                Effect::Inspect(ticket, what) => (ticket, Delivery::Job(Asked::Inspect(what))),
                Effect::Reply(ticket, result) => (ticket, Delivery::Reply(result)),
                Effect::Ack(ticket, ack) => (ticket, Delivery::Ack(ack)),
            };
            // Of those whose first request was not later the last is the one, if it still waits.
            let before = self.callers.range_mut(..=ticket).next_back();
            let one = before.filter(|(first, one)| one.has_made(ticket.0.wrapping_sub(first.0)));
            let Some((first, one)) = one else { continue };
            let is_answer = !matches!(delivery, Delivery::Job(_));
            let (first, caller) = (*first, one.clone());
            // Who has all answers waits for nothing more.
            if is_answer && one.has_all() {
                self.callers.remove(&first);
            }
            self.hand(&caller, ticket, delivery);
        }
        if self.kernel.halted().is_some() {
            self.callers.values().for_each(Caller::wake);
        }
    }

    /// Hands something over. A thread that was woken to commit then has other work: the thread that
    /// caused it commits the rest.
    fn hand(&mut self, caller: &Caller, ticket: Ticket, delivery: Delivery) {
        let summoned = self.summoned.take();
        self.summoned = summoned.filter(|mail| !Arc::ptr_eq(mail, caller.mail()));
        caller.deliver(ticket, delivery);
    }

    /// Wakes somebody to commit what is queued, where this thread is about to do otherwise. One is
    /// enough: until somebody commits, or there is something else for that one to do, no other is
    /// woken.
    fn wake_leader(&mut self) {
        if !self.led
            && self.summoned.is_none()
            && self.kernel.wants_commit()
            && let Some(caller) = self.callers.values().find(|caller| caller.mail().is_free())
        {
            self.summoned = Some(Arc::clone(caller.mail()));
            caller.wake();
        }
    }

    fn halt(&mut self, halt: Halt) {
        self.kernel.halt(halt);
        self.callers.values().for_each(Caller::wake);
    }
}
