//! The work of a server on a request, from its frame to its answer. Without room the request is
//! refused at once. Else an idle thread works on it; for a call that is the thread that reads the
//! connection, if it is idle (`turn`).

use std::{sync::Arc, sync::atomic::Ordering};

use syscap_format::{AgentId, Reason, Refused, Source};

use crate::driver::guard::caught;
use crate::runtime::session::call::Sent;
use crate::server::accept::{Hub, State};
use crate::server::request::{Asked, Request};
use crate::server::seat::{Seat, full};
use crate::transport::frame::{Carries, Frame};
use crate::transport::hello::Lane;
use crate::transport::limits::{
    AGENTS_REQUESTS_ALL_MAX, AGENTS_SETTLED_MAX, CALLS_MAX, REQUESTS_ALL_MAX, REQUESTS_BYTES_MAX,
    SETTLED_MAX,
};
use crate::transport::message::{AgentAsk, Ask};
use crate::transport::reply::Reply;
use crate::transport::turn::PeerCall;
use crate::transport::wire::Broken;

/// The kind of a request, for the bounds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Work {
    /// A call.
    Call,
    /// It has a session from then on, or offers tools, where it had and did not before.
    Settles,
    /// Anything else.
    Other,
}

impl Work {
    const fn of(asked: &Asked) -> Self {
        match asked {
            Asked::Call(_) => Self::Call,
            Asked::Request(
                Request::Take(_) | Request::Operator(Ask::Open(_) | Ask::Provide(_)),
            ) => Self::Settles,
            _ => Self::Other,
        }
    }
}

impl Hub {
    /// Takes one frame: hands an answer on, begins to work on a request; a call is left to be made.
    /// The memory of a refused request is freed before its peer is told, which may not read.
    pub(crate) fn take(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        lane: Lane,
        frame: Vec<u8>,
    ) -> Result<Option<PeerCall>, Broken> {
        let bytes = frame.len();
        let read = Frame::read(&frame)?;
        let id = read.id;
        let asked = match read.carries {
            Carries::AgentAsk => Ok(Asked::from(read.take::<AgentAsk>()?)),
            // It is not even looked at. The connection stays: other calls of it may be out.
            Carries::Ask if lane == Lane::Agents => Err(Reason::WrongLane),
            Carries::Ask => Ok(Asked::Request(Request::Operator(read.take()?))),
            Carries::Order => return Err(Broken::Form),
            Carries::Done | Carries::Refused | Carries::Failed => {
                seat.settle(&read);
                return Ok(None);
            }
        };
        drop(frame);
        let begun = match asked {
            Ok(Asked::Cancel(call)) => {
                // By this thread: it waits for nothing, and a flood of them is one thread's.
                seat.cancel(call);
                seat.peer.answer(id, Reply::nothing());
                return Ok(None);
            }
            Ok(asked) => {
                match &asked {
                    Asked::Call(call) => seat.hold_up(Some(call.session)),
                    Asked::Request(Request::Begin(begin)) => seat.hold_up(Some(begin.session)),
                    Asked::Request(Request::Operator(_)) => {}
                    _ => seat.hold_up(None),
                }
                self.begin(seat, lane, id, bytes, asked)
            }
            Err(reason) => {
                seat.hold_up(None);
                Err(reason.into())
            }
        };
        match &begun {
            Ok(_) => seat.backoff.taken(),
            Err(Refusal::Told(why)) if !is_of_room(why.reason()) => seat.backoff.refused(),
            Err(_) => {}
        }
        let (begun, asked) = match begun {
            Ok(begun) => begun,
            Err(Refusal::Told(why)) => {
                seat.peer.answer(id, Reply::refused(why));
                return Ok(None);
            }
            Err(Refusal::Broken(broken)) => return Err(broken),
        };
        let is_call = begun.kind == Work::Call;
        if matches!(asked, Asked::Request(Request::Wait(_) | Request::Operator(Ask::Wait(_)))) {
            // By this thread: it is parked, and holds none.
            begun.work(asked);
            return Ok(None);
        }
        let call = PeerCall { id, make: Box::new(move || begun.work(asked)) };
        if is_call {
            return Ok(Some(call));
        }
        seat.make_apart(call);
        Ok(None)
    }

    fn begin(
        self: &Arc<Self>,
        seat: &Arc<Seat>,
        lane: Lane,
        id: u64,
        bytes: usize,
        asked: Asked,
    ) -> Result<(Begun, Asked), Refusal> {
        let mut kind = Work::of(&asked);
        if let Asked::Call(call) = &asked {
            // What somebody else has brought about, and for whom a person is asked, is the host's
            // word, and an agent is no host.
            let Sent { source, context, .. } = &call.sent;
            let is_host = *source != Source::Agent || !context.within.is_empty();
            if lane == Lane::Agents && is_host {
                return Err(Reason::WrongLane.into());
            }
            // It takes nobody's place where it can't be made.
            if !seat.has(call.session) {
                return Err(Reason::NoSession.into());
            }
        }
        let most = match lane {
            Lane::Operator => REQUESTS_ALL_MAX,
            Lane::Agents => AGENTS_REQUESTS_ALL_MAX,
        };
        let agent = match &asked {
            Asked::Request(Request::Take(ticket)) => self.runtime.lent().agent_of(ticket),
            Asked::Request(Request::Operator(Ask::Open(opening))) => AgentId::new(&opening.agent),
            _ => None,
        };
        let mut state = self.state();
        if kind == Work::Settles && state.settled.contains_key(&seat.number) {
            kind = Work::Other;
        }
        // On the agents' channel some places are left to those who have no session yet.
        let (lanes, settled_max) = match lane {
            Lane::Operator => (&[Lane::Operator, Lane::Agents][..], SETTLED_MAX),
            Lane::Agents => (&[Lane::Agents][..], AGENTS_SETTLED_MAX),
        };
        let settled = state.settled_on(lanes).saturating_add(state.settling);
        // One that has no place any more is about to end, for another: it must attach again.
        if state.closing || !state.placed.contains_key(&seat.number) {
            return Err(Reason::Closing.into());
        }
        if let Some(full) = no_room(&state, kind, bytes, most) {
            return Err(Refusal::Told(full));
        }
        let is_one_too_many = kind == Work::Settles && settled >= settled_max;
        let gone = match (is_one_too_many, &agent) {
            (false, _) => None,
            (true, None) => return Err(Reason::Overloaded.into()),
            (true, Some(agent)) => {
                Some(state.take_from_most(agent, lanes).ok_or(Reason::Overloaded)?)
            }
        };
        if kind == Work::Call {
            // Before the next frame is read, which may be the one that gives it up.
            seat.expect(id).map_err(Refusal::Broken)?;
        }
        if let Err(full) = seat.begin(bytes) {
            if kind == Work::Call {
                seat.settled(id);
            }
            return Err(Refusal::Told(full));
        }
        state.asks = state.asks.saturating_add(1);
        seat.asked.store(state.asks, Ordering::SeqCst);
        state.requests = state.requests.saturating_add(1);
        state.bytes = state.bytes.saturating_add(bytes);
        state.calls = state.calls.saturating_add(usize::from(kind == Work::Call));
        state.settling = state.settling.saturating_add(usize::from(kind == Work::Settles));
        drop(state);
        if let Some(gone) = gone {
            gone.peer.break_off();
        }
        let (hub, seat) = (Arc::clone(self), Arc::clone(seat));
        let begun =
            Begun { hub, seat, id, bytes, in_work: bytes, kind, agent, owes: false, written: 0 };
        Ok((begun, asked))
    }
}

/// What there is too much of for one more request, of all connections.
fn no_room(state: &State, kind: Work, bytes: usize, most: usize) -> Option<Refused> {
    let more = state.bytes.saturating_add(bytes);
    match kind {
        Work::Call if state.calls >= CALLS_MAX => Some(full("calls", state.calls, CALLS_MAX)),
        _ if state.requests >= most => Some(full("requests", state.requests, most)),
        _ if more > REQUESTS_BYTES_MAX => Some(full("bytes", more, REQUESTS_BYTES_MAX)),
        _ => None,
    }
}

/// True if a client that is refused so has done nothing wrong: there is no room for it now.
const fn is_of_room(reason: Reason) -> bool {
    matches!(reason, Reason::Overloaded | Reason::Closing)
}

/// Why a request is not worked on.
enum Refusal {
    /// The peer is told.
    Told(Refused),
    /// It has broken a rule.
    Broken(Broken),
}

impl From<Reason> for Refusal {
    fn from(reason: Reason) -> Self {
        Self::Told(reason.into())
    }
}

/// A request that is worked on; counted off also where the work panics.
struct Begun {
    hub: Arc<Hub>,
    seat: Arc<Seat>,
    id: u64,
    bytes: usize,
    /// The number of requests being worked on.
    in_work: usize,
    kind: Work,
    /// The agent of the session that it asks for.
    agent: Option<AgentId>,
    /// True if it is being worked on, and has no answer yet.
    owes: bool,
    /// The bytes of its answer, which waits to be written.
    written: usize,
}

impl Begun {
    fn work(mut self, asked: Asked) {
        self.owes = true;
        let (hub, seat, id) = (Arc::clone(&self.hub), Arc::clone(&self.seat), self.id);
        // Where it panics this is dropped, and so says that it broke off.
        caught(|| seat.work(&hub.runtime, id, asked, move |reply| self.answer(reply)))
            .unwrap_or_default();
    }

    fn answer(&mut self, reply: Reply) {
        self.owes = false;
        self.is_done(matches!(reply, Reply::Done(_)));
        self.written = reply.bytes();
        self.seat.answers(self.written);
        self.seat.peer.answer(self.id, reply);
    }

    /// The work is over, and the answer not written yet: its id is free from here on, and its
    /// place among the calls.
    fn is_done(&mut self, well: bool) {
        let kind = std::mem::replace(&mut self.kind, Work::Other);
        if kind == Work::Call {
            self.seat.settled(self.id);
        }
        let mut state = self.hub.state();
        state.bytes = state.bytes.saturating_sub(std::mem::take(&mut self.in_work));
        state.calls = state.calls.saturating_sub(usize::from(kind == Work::Call));
        if kind == Work::Settles {
            state.settling = state.settling.saturating_sub(1);
            if well && state.placed.contains_key(&self.seat.number) {
                state.settled.insert(self.seat.number, self.agent.take());
            }
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        if self.owes {
            self.answer(Reply::broke_off());
        }
        self.is_done(false);
        self.seat.answered(self.written);
        self.seat.end(self.bytes);
        let mut state = self.hub.state();
        state.requests = state.requests.saturating_sub(1);
        let waited_for = state.waiting > 0;
        drop(state);
        if waited_for {
            self.hub.ended.notify_all();
        }
    }
}
