//! Threads that block, used again: making one, and ending it, costs more than what most of them do.
//!
//! Blocking work keeps its own thread, and its callers bound the number of threads. This pool keeps
//! idle threads for a while.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{io, thread};

use crate::driver::guard::caught;

/// Most threads that are kept while they have nothing to do: as many as work at once on a busy day.
const IDLE_MAX: usize = 64;
/// How long one is kept.
const IDLE_TIME: Duration = Duration::from_secs(10);

type Job = Box<dyn FnOnce() + Send>;

/// The idle ones; the last is the one that worked last, and is taken first.
static IDLE: Mutex<Vec<Arc<Worker>>> = Mutex::new(Vec::new());

#[derive(Default)]
struct Worker {
    job: Mutex<Option<Job>>,
    given: Condvar,
}

/// Runs a job on a thread of its own, which has no other until this one has ended.
///
/// # Errors
/// Where no thread can be had: then the job is dropped.
pub(crate) fn spawn(job: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let job: Job = Box::new(job);
    let worker = idle().pop();
    if let Some(worker) = worker {
        *worker.job() = Some(job);
        worker.given.notify_one();
        return Ok(());
    }
    let worker = Arc::<Worker>::default();
    thread::Builder::new().name("syscap-work".to_owned()).spawn(move || worker.work(job)).map(drop)
}

fn idle() -> MutexGuard<'static, Vec<Arc<Worker>>> {
    // Every change is one step.
    IDLE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Worker {
    fn job(&self) -> MutexGuard<'_, Option<Job>> {
        self.job.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(self: Arc<Self>, first: Job) {
        let mut job = first;
        loop {
            // Who gave it sees to a panic: it finds what the job was to leave behind missing.
            caught(job).unwrap_or(());
            let mut all = idle();
            if all.len() >= IDLE_MAX {
                return;
            }
            all.push(Arc::clone(&self));
            drop(all);
            match self.next() {
                Some(next) => job = next,
                None => return,
            }
        }
    }

    /// The next job of the thread. `None` where it was not given anything for long.
    fn next(self: &Arc<Self>) -> Option<Job> {
        let mut job = self.job();
        loop {
            if job.is_some() {
                return job.take();
            }
            let waited = self.given.wait_timeout(job, IDLE_TIME);
            let over;
            (job, over) = waited.unwrap_or_else(PoisonError::into_inner);
            if over.timed_out() && job.is_none() {
                drop(job);
                let mut all = idle();
                let place = all.iter().position(|idle| Arc::ptr_eq(idle, self));
                // Who is not there any more is about to be given something.
                if let Some(place) = place {
                    all.remove(place);
                    return None;
                }
                drop(all);
                job = self.job();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// A job that blocks keeps no other from running, and one that panics ends no other.
    #[test]
    fn each_job_has_a_thread() {
        let (done, all) = channel();
        let (go, goes) = channel::<()>();
        spawn(move || goes.recv().unwrap_or(())).unwrap();
        for n in 0..200 {
            let done = done.clone();
            spawn(move || {
                assert!(n % 10 != 0, "one that panics");
                done.send(thread::current().id()).unwrap();
            })
            .unwrap();
        }
        drop(done);
        let mut threads: Vec<_> = all.iter().collect();
        assert_eq!(threads.len(), 180);
        threads.sort_by_key(|thread| format!("{thread:?}"));
        drop(go);
        assert!(idle().len() <= IDLE_MAX);
    }

    /// One after the other need one thread.
    #[test]
    fn a_thread_is_used_again() {
        let mut threads = Vec::new();
        for _ in 0..100 {
            let (done, end) = channel();
            spawn(move || done.send(thread::current().id()).unwrap()).unwrap();
            threads.push(end.recv().unwrap());
            // It is idle a moment after it has said so.
            thread::sleep(Duration::from_millis(1));
        }
        threads.sort_by_key(|thread| format!("{thread:?}"));
        threads.dedup();
        assert!(threads.len() < 50, "{}", threads.len());
    }
}
