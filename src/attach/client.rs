//! The attached side: asks of the holder, and runs what it offered when the holder asks.

use std::{
    collections::BTreeMap,
    io::ErrorKind,
    path::Path,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::Duration,
};

use syscap_kernel::{
    cbor::Item,
    id::{DefinitionHash, HomeId, ToolId},
    manifest::Manifest,
    reason::{Reason, Refused},
};

use super::{
    limits::{HELLO_TIME, PROTOCOL_VERSION, REQUESTS_MAX},
    message::{Ask, Frame, Order},
    peer::{NotSent, Peer},
    relay,
    reply::{self, Failure, Greeting, Reply},
    socket::{SOCKET_FILE, connect_to, is_ours},
    wire::{Broken, Reader},
};
use crate::{
    Error,
    error::at,
    provide::{Cancel, HostCall, Offer, Provider},
    tools::identity,
};

/// What was found at a home.
pub(crate) enum Found {
    /// A holder that serves it.
    Holder(Arc<Holder>),
    /// Nobody who does.
    Nobody,
    /// One that comes or goes.
    NotNow,
    /// One that has no room.
    Full,
}

/// What a request came to.
pub(crate) enum Step<T> {
    /// This.
    Done(Result<T, Error>),
    /// Nothing was carried out, and the holder goes: it is to be sent to the next one.
    Again,
}

/// The process that holds the home, as an attached one sees it.
pub(crate) struct Holder {
    peer: Peer,
    /// What it said when it let this process in: which home it holds.
    greeted: OnceLock<HomeId>,
    /// Whether it takes no requests any more.
    ending: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Who runs which definition of which tool. While another is being offered there are two of
    /// a tool.
    providers: BTreeMap<(ToolId, DefinitionHash), Arc<dyn Provider>>,
    /// The runs that the holder has asked for, by the ids of its requests.
    runs: BTreeMap<u64, Cancel>,
}

/// Attaches to the holder of a home. When a connection that was let in ends, `ended` is called.
pub(crate) fn attach(home: &Path, ended: impl FnOnce() + Send + 'static) -> Result<Found, Error> {
    let path = home.join(SOCKET_FILE);
    let stream = match connect_to(home) {
        Ok(stream) => stream,
        Err(error) => {
            return match error.kind() {
                ErrorKind::NotFound | ErrorKind::ConnectionRefused => Ok(Found::Nobody),
                _ => Err(at(&path)(error)),
            };
        }
    };
    if !is_ours(&stream).map_err(at(&path))? {
        return Err(Error::Foreign(home.to_path_buf()));
    }
    let stream = Arc::new(stream);
    let peer = Peer::new(Arc::clone(&stream)).map_err(at(&path))?;
    let reader = Reader::new(stream).map_err(at(&path))?;
    let (greeted, ending) = (OnceLock::new(), AtomicBool::new(false));
    let holder = Arc::new(Holder { peer, greeted, ending, state: Mutex::default() });
    let reading = Arc::clone(&holder);
    let started = thread::Builder::new().name("syscap-holder".to_owned()).spawn(move || {
        reading.read(reader);
        let greeted = reading.home();
        drop(reading);
        if greeted.is_some() {
            ended();
        }
    });
    started.map_err(at(&path))?;
    let greeted = holder.hello();
    if !matches!(greeted, Ok(Found::Holder(_))) {
        holder.close();
    }
    greeted
}

impl Holder {
    fn hello(self: &Arc<Self>) -> Result<Found, Error> {
        let hello = Ask::Hello { version: PROTOCOL_VERSION };
        let Ok(pending) = self.peer.ask(|id| hello.write(id)) else { return Ok(Found::NotNow) };
        match pending.wait_for(HELLO_TIME) {
            Some(Ok(Reply::Done(item))) => match Greeting::read(item.item()) {
                Ok(greeting) if greeting.version == PROTOCOL_VERSION => {
                    self.greeted.get_or_init(|| greeting.home);
                    Ok(Found::Holder(Arc::clone(self)))
                }
                Ok(greeting) => Err(Error::Version { holder: greeting.version }),
                Err(_) => Err(not_understood()),
            },
            Some(Ok(Reply::Failed(Failure::Version(holder)))) => Err(Error::Version { holder }),
            Some(Ok(Reply::Failed(_))) => Err(not_understood()),
            Some(Ok(Reply::Refused(why))) if why.reason() == Reason::Overloaded => Ok(Found::Full),
            Some(Ok(Reply::Refused(_)) | Err(_)) | None => Ok(Found::NotNow),
        }
    }

    /// Which home it holds, once it has let this process in.
    pub(crate) fn home(&self) -> Option<HomeId> {
        self.greeted.get().copied()
    }

    /// Asks for something, and reads what comes, however long that takes.
    pub(crate) fn ask<T>(
        &self,
        ask: &Ask,
        read: impl FnOnce(Item<'_>) -> Result<T, Broken>,
    ) -> Step<T> {
        self.ask_within(Duration::MAX, ask, read)
    }

    /// The same. A holder that takes longer is given up.
    pub(crate) fn ask_within<T>(
        &self,
        limit: Duration,
        ask: &Ask,
        read: impl FnOnce(Item<'_>) -> Result<T, Broken>,
    ) -> Step<T> {
        let pending = match self.peer.ask(|id| ask.write(id)) {
            Ok(pending) => pending,
            Err(NotSent::Over) => return Step::Again,
            Err(NotSent::TooLong) => {
                return Step::Done(Err(Error::Refused(Refused::new(Reason::TooLarge))));
            }
        };
        let Some(answer) = pending.wait_for(limit) else {
            self.peer.break_off();
            return Step::Done(Err(Error::HolderGone));
        };
        match answer {
            Err(_) => Step::Done(Err(Error::HolderGone)),
            Ok(Reply::Refused(refused)) if refused.reason() == Reason::Closing => {
                self.end_soon();
                Step::Again
            }
            Ok(reply) => Step::Done(reply.into_result().and_then(|item| {
                read(item.item()).map_err(|_| {
                    self.peer.break_off();
                    not_understood()
                })
            })),
        }
    }

    /// Offers tools. The holder must answer within `limit`.
    pub(crate) fn provide(
        &self,
        tools: &[Manifest],
        provider: &Arc<dyn Provider>,
        limit: Duration,
    ) -> Step<Vec<Offer>> {
        let keys = tools.iter().map(|manifest| (manifest.tool.clone(), identity(manifest)));
        let keys: Vec<(ToolId, DefinitionHash)> = keys.collect();
        // From before it is asked on: a run may be asked for before the answer is there.
        let mut before = Vec::new();
        let mut state = self.state();
        for key in &keys {
            before.push((key, state.providers.insert(key.clone(), Arc::clone(provider))));
        }
        drop(state);
        let offered = self.ask_within(limit, &Ask::Provide(tools.to_vec()), reply::read_offers);
        let mut state = self.state();
        let mut gone = Vec::new();
        if let Step::Done(Ok(_)) = &offered {
            let other = |(tool, own): &(ToolId, DefinitionHash), _: &mut Arc<dyn Provider>| {
                keys.iter().any(|(offered, new)| offered == tool && new != own)
            };
            gone.extend(state.providers.extract_if(.., other).map(|(_, provider)| provider));
        } else {
            for (key, runs) in before.into_iter().rev() {
                let runs = runs.and_then(|runs| state.providers.insert(key.clone(), runs));
                gone.extend(runs.or_else(|| state.providers.remove(key)));
            }
        }
        drop(state);
        // A provider is dropped when nothing is locked: it may do anything then.
        drop(gone);
        offered
    }

    /// Whether nothing can be asked of it any more.
    pub(crate) fn is_over(&self) -> bool {
        self.ending.load(Ordering::SeqCst) || self.peer.is_over()
    }

    /// Asks nothing more of it. What it has been asked, it still answers.
    pub(crate) fn end_soon(&self) {
        self.ending.store(true, Ordering::SeqCst);
        self.peer.stop_asking();
    }

    /// Ends the connection.
    pub(crate) fn close(&self) {
        self.peer.break_off();
    }

    fn read(self: &Arc<Self>, mut reader: Reader) {
        while let Ok(frame) = reader.next(None) {
            if self.take(&frame).is_err() {
                break;
            }
        }
        self.peer.finish();
        // Nobody waits for what it asked for.
        let runs = std::mem::take(&mut self.state().runs);
        if !runs.is_empty() {
            spawn("syscap-cancel", move || runs.into_values().for_each(|cancel| cancel.cancel()));
        }
    }

    /// Takes one frame: hands an answer on, or does what the holder asks.
    fn take(self: &Arc<Self>, frame: &[u8]) -> Result<(), Broken> {
        let (id, order) = match Frame::read(frame)? {
            Frame::Replied(id, reply) => return self.peer.settle(id, reply),
            Frame::Asked(id, op, fields) => (id, Order::read(op, fields)?),
        };
        match order {
            Order::Run(call) => self.start(id, *call),
            Order::Cancel(run) => {
                let cancel = self.state().runs.get(&run).cloned();
                // Its hooks are the provider's code: they must not keep the reader.
                if let Some(cancel) = cancel {
                    spawn("syscap-cancel", move || cancel.cancel());
                }
                self.peer.answer(id, &Reply::nothing());
            }
            Order::Closing => {
                self.end_soon();
                self.peer.answer(id, &Reply::nothing());
            }
        }
        Ok(())
    }

    /// Runs a call on a thread of its own, if there is room and somebody who runs it.
    fn start(self: &Arc<Self>, id: u64, call: HostCall) {
        let mut state = self.state();
        let room = state.runs.len() < REQUESTS_MAX && !state.runs.contains_key(&id);
        // What was let through under another definition is not this one's to run.
        let provider = state.providers.get(&(call.tool.clone(), call.definition));
        let provider = provider.filter(|_| room).map(Arc::clone);
        let Some(provider) = provider else {
            drop(state);
            let reason = if room { Reason::NoProvider } else { Reason::Overloaded };
            return self.peer.answer(id, &Reply::refused(reason));
        };
        state.runs.insert(id, call.cancel.clone());
        drop(state);
        let holder = Arc::clone(self);
        let started = spawn("syscap-provide", move || {
            let ran = relay::run(&*provider, call);
            holder.state().runs.remove(&id);
            holder.peer.answer(id, &Reply::Done(reply::ran(&ran)));
        });
        if !started {
            self.state().runs.remove(&id);
            self.peer.answer(id, &Reply::refused(Reason::Overloaded));
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Every change is one step that can't break off half way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether there was a thread to be had.
fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> bool {
    thread::Builder::new().name(name.to_owned()).spawn(run).is_ok()
}

fn not_understood() -> Error {
    Error::Holder("its answer is not of the protocol's form".to_owned())
}
