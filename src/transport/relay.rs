//! A tool's run, carried to the process that offered the tool.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use syscap_format::{Amounts, Reason, Refused, TxOutcome};

use crate::driver::guard::caught;
use crate::driver::pool;
use crate::tools::provide::{Done, HostCall, HostRan, Provider};
use crate::transport::frame::{Message as _, take};
use crate::transport::message::Order;
use crate::transport::peer::{Peer, Pending};
use crate::transport::reply::{Ran, Reply};
use crate::transport::turn;

/// Runs tools in the process at the other end of a connection.
pub(crate) struct Relay {
    pub(crate) peer: Arc<Peer>,
}

impl Provider for Relay {
    /// Waits until the run has ended, or the connection: one that was given up still runs there,
    /// as far as anybody knows here, until the process says otherwise.
    fn run(&self, call: HostCall) -> HostRan {
        let cancel = call.cancel.clone();
        let order = Order::Run(Box::new(call.into()));
        let asked = |pending: &Pending| {
            let (peer, run) = (Arc::clone(&self.peer), pending.id);
            cancel.on_cancel(move || tell(peer, run));
        };
        let ask = || {
            let order = order;
            self.peer.ask(|id| order.frame(id))
        };
        let Ok(answer) = turn::ask(&self.peer, ask, asked) else {
            return ended(Reason::ProviderGone, TxOutcome::NoOp);
        };
        match answer {
            Ok(Reply::Done(body)) => match take::<Ran>(&body) {
                Ok(ran) => ran.into(),
                // Its other runs go on: what became of this one nobody knows.
                Err(_) => {
                    self.peer.is_unreadable();
                    ended(Reason::BadResponse, TxOutcome::Unknown)
                }
            },
            // It did not begin.
            Ok(Reply::Refused(_)) => ended(Reason::ProviderGone, TxOutcome::NoOp),
            Ok(Reply::Failed(_)) | Err(_) => ended(Reason::ProviderGone, TxOutcome::Unknown),
        }
    }
}

/// Says that nobody waits for a run. On a thread of its own: whoever gives it up must not wait
/// for a peer that does not read.
fn tell(peer: Arc<Peer>, run: u64) {
    let told = thread::Builder::new().name("syscap-cancel".to_owned());
    let told = told.spawn(move || peer.ask(|id| Order::Cancel(run).frame(id)).map(drop));
    // Where there is no thread to be had the run goes on, and what it brings is not delivered.
    drop(told);
}

fn ended(reason: Reason, tx: TxOutcome) -> HostRan {
    HostRan::new(Err(Refused::new(reason)), tx, Amounts::ZERO)
}

/// Has a call run here, for the holder: whatever the provider does, `done` is told of it once.
pub(crate) fn start(
    provider: Arc<dyn Provider>,
    call: HostCall,
    done: impl FnOnce(HostRan) + Send + 'static,
) {
    let (limit, begun) = (call.result_bytes_max, Arc::new(AtomicBool::new(true)));
    let mut ending = Ending { limit, begun: Arc::clone(&begun), done: Some(Box::new(done)) };
    let told: Done = Box::new(move |ran| ending.end(ran));
    // Where it panics `told` is dropped, and so says that it broke off.
    let Some((call, told)) = caught(|| provider.begin(call, told)).flatten() else { return };
    begun.store(false, Ordering::SeqCst);
    let run = move || {
        begun.store(true, Ordering::SeqCst);
        let ran = caught(|| provider.run(call));
        told(ran.unwrap_or_else(|| ended(Reason::Failed, TxOutcome::Unknown)));
    };
    // Where no thread can be had it is dropped, and `told` with it.
    pool::spawn(run).unwrap_or(());
}

/// A run that is out. One that is dropped and was not told the end of has broken off, or never
/// began.
struct Ending {
    /// The largest result, in bytes.
    limit: usize,
    begun: Arc<AtomicBool>,
    done: Option<Done>,
}

impl Ending {
    fn end(&mut self, mut ran: HostRan) {
        let Some(done) = self.done.take() else { return };
        if ran.result.as_ref().is_ok_and(|result| result.as_bytes().len() > self.limit) {
            ran.result = Err(Refused::new(Reason::ResultTooLarge));
        }
        done(ran);
    }
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.end(match self.begun.load(Ordering::SeqCst) {
            true => ended(Reason::Failed, TxOutcome::Unknown),
            false => ended(Reason::ProviderGone, TxOutcome::NoOp),
        });
    }
}
