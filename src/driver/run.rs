//! Running a job: measured, caught if it panics, given up if it takes too long.

pub(crate) mod clock;
pub(crate) mod limit;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use syscap_format::Seq;
use syscap_kernel::{Event, Job, Lost, Measured};

use crate::driver::clock::thread_cpu_us;
use crate::driver::guard::caught;
use crate::driver::pool;
use crate::driver::run::clock::Clock;
use crate::tools::provide::Cancel;

thread_local! {
    /// The cancellation and the clock of the run on this thread.
    static HERE: RefCell<Option<(Cancel, Arc<Clock>)>> = const { RefCell::new(None) };
    /// The action of this thread before it runs something that may block.
    static BEFORE: RefCell<Option<Box<dyn Fn()>>> = const { RefCell::new(None) };
}

/// The cancellation of the run on this thread. A run that can't be never hears of it.
pub(crate) fn given_up() -> Cancel {
    HERE.with_borrow(|here| here.as_ref().map(|(cancel, _)| cancel.clone())).unwrap_or_default()
}

/// The time of the run on this thread, where that has a limit.
pub(crate) fn time() -> Option<Arc<Clock>> {
    HERE.with_borrow(|here| here.as_ref().map(|(_, clock)| Arc::clone(clock)))
}

/// Says what this thread does before it runs something that may block.
pub(crate) fn before(act: Option<Box<dyn Fn()>>) {
    BEFORE.set(act);
}

/// How a run ended.
pub(crate) enum Ended {
    /// In time, or it was given up here.
    Here(Event, Option<GivenUp>),
    /// After it had been given up, and another thread had taken this one's place.
    Late(Event),
}

/// Gives a run up after so long, in the place of the thread that runs it.
pub(crate) type TakeOver = Box<dyn FnOnce(Seq, Duration, GivenUp) + Send>;

/// The actions of the caller of a job when the job outlasts its limit.
pub(crate) struct Means {
    /// Takes what it came to after it had been given up.
    pub(crate) late: Box<dyn FnOnce(Event) + Send>,
    /// Stands in for the caller, who runs it then; else the run gets a thread.
    pub(crate) stand_in: Option<TakeOver>,
}

/// Runs a job and says how it ended. A tool whose manifest gives no limit can't block and runs
/// on the caller's own thread, and so does another where somebody can stand in for the caller; else
/// it gets a thread, so that it can be given up, and hears of `cancel`.
pub(crate) fn run(cancels: &Cancels, job: Job, means: Means, cancel: &Cancel) -> Ended {
    let Some(ms) = job.wall_ms_max() else { return Ended::Here(run_here(job, None), None) };
    // A run that is given up says so to nobody but itself: the caller may have others.
    let (own, limit) = (cancel.part(), Duration::from_millis(ms));
    let _running = cancels.enter(job.intent(), &own);
    let Means { late, stand_in } = means;
    let clock = Arc::new(Clock::start(limit));
    if let Some(limited) = stand_in.and_then(|one| limited(one, job.intent(), limit, &own)) {
        let number = limited.number();
        clock.when_moved(move |clock| limit::move_to(number, || clock.until()));
        HERE.set(Some((own, Arc::clone(&clock))));
        BEFORE.with_borrow(|before| before.iter().for_each(|act| act()));
        let event = run_here(job, Some(&clock));
        // The thread's next job is another's.
        HERE.set(None);
        return if limited.ends() { Ended::Here(event, None) } else { Ended::Late(event) };
    }
    let (event, given_up) = run_apart(job, late, &own, &clock);
    Ended::Here(event, given_up)
}

/// Has another thread take the caller's place where the run that begins takes longer than that.
fn limited(
    take_over: TakeOver,
    intent: Seq,
    limit: Duration,
    own: &Cancel,
) -> Option<limit::Limited> {
    let own = own.clone();
    // Its limit is what it took, as where it has a thread of its own.
    limit::limit(limit, move || take_over(intent, limit, GivenUp(own)))
}

/// The runs that can be told that nobody waits for them any more.
#[derive(Default)]
pub(crate) struct Cancels(Mutex<Waited>);

#[derive(Default)]
struct Waited {
    out: BTreeMap<Seq, Cancel>,
    /// Calls that were cancelled between their permit and their run.
    told: BTreeSet<Seq>,
}

impl Cancels {
    fn enter(&self, intent: Seq, cancel: &Cancel) -> Entered<'_> {
        let mut runs = self.lock();
        runs.out.insert(intent, cancel.clone());
        let told = runs.told.remove(&intent);
        drop(runs);
        if told {
            cancel.cancel();
        }
        Entered(self, intent)
    }

    /// Its run was given up: whoever gave it up has told it.
    pub(crate) fn leave(&self, intent: Seq) {
        self.lock().out.remove(&intent);
    }

    /// A call was cancelled: its run is told, or is when it begins. `in_flight` are all that may
    /// begin yet.
    pub(crate) fn cancel(&self, intent: Seq, in_flight: &BTreeSet<Seq>) {
        let mut runs = self.lock();
        let run = runs.out.get(&intent).cloned();
        if run.is_none() {
            runs.told.insert(intent);
            runs.told.retain(|told| in_flight.contains(told));
        }
        drop(runs);
        // What was registered is the host's code: nothing is locked meanwhile.
        run.iter().for_each(Cancel::cancel);
    }

    /// Abandons all of them.
    pub(crate) fn cancel_all(&self) {
        let cancels: Vec<Cancel> = self.lock().out.values().cloned().collect();
        cancels.iter().for_each(Cancel::cancel);
    }

    fn lock(&self) -> MutexGuard<'_, Waited> {
        // Every change is one step that can't break off half way.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A run, taken off when it has ended.
struct Entered<'a>(&'a Cancels, Seq);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.lock().out.remove(&self.1);
    }
}

/// A run that was given up, to be told so once the kernel knows: told before, it could end in
/// time after all.
#[must_use = "the run must be told"]
pub(crate) struct GivenUp(Cancel);

impl GivenUp {
    /// Tells it. The registered function is the host's code: the caller must hold no lock, and its
    /// panic is not the caller's.
    pub(crate) fn tell(self) {
        caught(|| self.0.cancel()).unwrap_or_default();
    }
}

fn run_here(job: Job, clock: Option<&Clock>) -> Event {
    let intent = job.intent();
    let (wall, cpu) = (Instant::now(), thread_cpu_us());
    let ended = caught(|| job.run());
    // What a person took is not its own time.
    let paused = clock.map_or(Duration::ZERO, Clock::paused);
    let wall_us = micros(wall.elapsed().saturating_sub(paused));
    let measured = Measured { cpu_us: thread_cpu_us().saturating_sub(cpu), wall_us };
    match ended {
        Some(ran) => Event::Ran(ran, measured),
        None => Event::Lost(intent, Lost::Panicked, measured),
    }
}

/// Between the thread that runs and the one that waits.
enum Slot {
    Running,
    Ended(Box<Event>),
    GivenUp,
}

/// A run on a thread of its own, as the one that waits for it sees it.
struct Apart {
    slot: Mutex<Slot>,
    changed: Condvar,
}

fn run_apart(
    job: Job,
    late: Box<dyn FnOnce(Event) + Send>,
    cancel: &Cancel,
    clock: &Arc<Clock>,
) -> (Event, Option<GivenUp>) {
    let intent = job.intent();
    let shared = Arc::new(Apart { slot: Mutex::new(Slot::Running), changed: Condvar::new() });
    let (theirs, time) = (Arc::clone(&shared), Arc::clone(clock));
    let given_up = cancel.clone();
    let waiter = Arc::clone(&shared);
    clock.when_moved(move |_| {
        // Locked: else it might come between the waiter's look at the time and its sleep.
        drop(waiter.slot.lock().unwrap_or_else(PoisonError::into_inner));
        waiter.changed.notify_one();
    });
    // Kept here, too, until a thread takes it.
    let waiting = Arc::new(Mutex::new(Some(job)));
    let taken = Arc::clone(&waiting);
    let take = |job: &Mutex<Option<Job>>| job.lock().unwrap_or_else(PoisonError::into_inner).take();
    let started = pool::spawn(move || {
        let Some(job) = take(&taken) else { return };
        HERE.set(Some((given_up, Arc::clone(&time))));
        let event = run_here(job, Some(&time));
        // The thread's next job is another's.
        HERE.set(None);
        let mut slot = theirs.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*slot, Slot::GivenUp) {
            drop(slot);
            late(event);
        } else {
            // Before the caller is told: it looks whether anything still runs.
            drop(late);
            *slot = Slot::Ended(Box::new(event));
            theirs.changed.notify_one();
        }
    });
    if started.is_ok() {
        return wait(&shared, intent, clock, cancel.clone());
    }
    // There was no thread for it: it has not begun.
    let lost = || Event::Lost(intent, Lost::Abandoned, Measured::default());
    (take(&waiting).map_or_else(lost, |job| Event::GivenBack(Box::new(job))), None)
}

fn wait(run: &Apart, intent: Seq, clock: &Clock, cancel: Cancel) -> (Event, Option<GivenUp>) {
    let Apart { slot, changed } = run;
    let mut slot = slot.lock().unwrap_or_else(PoisonError::into_inner);
    while matches!(*slot, Slot::Running) {
        let left = clock.until().map(|until| until.saturating_duration_since(Instant::now()));
        slot = match left {
            Some(Duration::ZERO) => break,
            Some(left) => {
                let woken = changed.wait_timeout(slot, left);
                woken.unwrap_or_else(PoisonError::into_inner).0
            }
            None => changed.wait(slot).unwrap_or_else(PoisonError::into_inner),
        };
    }
    match std::mem::replace(&mut *slot, Slot::GivenUp) {
        Slot::Ended(event) => (*event, None),
        Slot::Running | Slot::GivenUp => {
            // Its limit is what it took. That it is found out a moment later is not its doing,
            // and would count as more than was set aside for it.
            let measured =
                Measured { cpu_us: 0, wall_us: micros(clock.elapsed().min(clock.limit())) };
            (Event::Lost(intent, Lost::TimedOut, measured), Some(GivenUp(cancel)))
        }
    }
}

pub(crate) fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
