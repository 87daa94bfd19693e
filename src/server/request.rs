//! Requests: what each verb does at the home stands here, once, for whoever asks.

use syscap_format::field::Field;
use syscap_format::{Encoder, Reason, Refused, Seq, ToolId};
use syscap_kernel::Kernel;

use crate::Error;
use crate::inspect::granted::{granted, left};
use crate::inspect::view::{Stamp, TOKENS_SCANNED_MAX, TokenDetail, ToolDetail, View, manifests};
use crate::server::Holding;
use crate::server::client::Client;
use crate::server::lend::SessionTicket;
use crate::server::waits;
use crate::transport::frame::Message;
use crate::transport::frozen::{Command, HolderStatus};
use crate::transport::message::{
    Aborted, AgentAsk, Ask, Awaited, Begin, BeginOwn, Call, Charge, Heard, Opening, Proposed,
    Provided, Settle, SettleOwn,
};
use crate::transport::reply::{Leave, OnRecord};

/// A request of a client, but for the call of a tool.
#[derive(Clone)]
pub(crate) enum Request {
    /// To have the session that was lent by this ticket.
    Take(SessionTicket),
    /// To end a session.
    Close(Seq),
    /// How a call stands that waits for a person, once it waits no more.
    Wait(Awaited),
    /// The tools that a session's token grants.
    Tools(Seq),
    /// What is left of a session's token.
    Left(Seq),
    /// To offer tools by a ticket.
    Offer(Vec<Provided>),
    /// To take some of them back.
    Withdraw(Vec<ToolId>),
    /// For leave to use a tool that the client runs itself.
    Begin(Box<BeginOwn>),
    /// What such a use came to.
    Settle(SettleOwn),
    /// On the operator's channel.
    Operator(Ask),
}

impl Request {
    /// The frame that asks it.
    pub(crate) fn frame(self, id: u64) -> Vec<u8> {
        match self {
            Self::Take(ticket) => AgentAsk::Take(ticket).frame(id),
            Self::Close(session) => AgentAsk::Close(session).frame(id),
            Self::Wait(awaited) => AgentAsk::Wait(awaited).frame(id),
            Self::Tools(session) => AgentAsk::Tools(session).frame(id),
            Self::Left(session) => AgentAsk::Left(session).frame(id),
            Self::Offer(tools) => AgentAsk::Offer(tools).frame(id),
            Self::Withdraw(tools) => AgentAsk::Withdraw(tools).frame(id),
            Self::Begin(begin) => AgentAsk::Begin(begin).frame(id),
            Self::Settle(settle) => AgentAsk::Settle(settle).frame(id),
            Self::Operator(ask) => ask.frame(id),
        }
    }
}

impl From<Ask> for Request {
    fn from(ask: Ask) -> Self {
        Self::Operator(ask)
    }
}

/// What a connected process asks.
pub(crate) enum Asked {
    Request(Request),
    Call(Box<Call>),
    /// Cancels the call that was requested under this id.
    Cancel(u64),
}

impl From<AgentAsk> for Asked {
    fn from(ask: AgentAsk) -> Self {
        match ask {
            AgentAsk::Take(ticket) => Self::Request(Request::Take(ticket)),
            AgentAsk::Close(session) => Self::Request(Request::Close(session)),
            AgentAsk::Wait(awaited) => Self::Request(Request::Wait(awaited)),
            AgentAsk::Tools(session) => Self::Request(Request::Tools(session)),
            AgentAsk::Left(session) => Self::Request(Request::Left(session)),
            AgentAsk::Offer(tools) => Self::Request(Request::Offer(tools)),
            AgentAsk::Withdraw(tools) => Self::Request(Request::Withdraw(tools)),
            AgentAsk::Begin(begin) => Self::Request(Request::Begin(begin)),
            AgentAsk::Settle(settle) => Self::Request(Request::Settle(settle)),
            AgentAsk::Call(call) => Self::Call(call),
            AgentAsk::Cancel(call) => Self::Cancel(call),
        }
    }
}

impl Holding {
    /// Does what a client asks for, and gives the answer as bytes: the process that holds the home
    /// reads them as a connected one does.
    pub(crate) fn serve(&self, client: &Client, request: Request) -> Result<Vec<u8>, Error> {
        match request {
            Request::Take(ticket) => body(client.take(self, &ticket)),
            Request::Close(session) => body(client.close(self, session)),
            Request::Wait(awaited) => {
                let session = client.session(awaited.session)?;
                body(self.wait(session.agent(), awaited.ask, awaited.limit()?))
            }
            Request::Tools(session) => {
                let session = client.session(session);
                body(session.map(|session| granted(self, session.token())))
            }
            Request::Left(session) => {
                let session = client.session(session)?;
                // The kernel's time is that of its last event.
                self.tick();
                let left = self.look(|kernel| left(kernel, session.token()));
                body(left.ok_or_else(|| Refused::new(Reason::UnknownToken).into()))
            }
            Request::Offer(tools) => body(client.offer(self, tools)),
            Request::Withdraw(tools) => body(client.withdraw(self, &tools)),
            Request::Begin(begin) => body(client.begin(self, *begin).map(Leave::from)),
            Request::Settle(settle) => body(client.settle(self, settle).map(OnRecord::from)),
            Request::Operator(ask) => self.serve_operator(client, ask),
        }
    }

    /// Does what an operator may ask in every version of the protocol, and a record says.
    pub(crate) fn stop(&self, command: &Command) -> Result<Seq, Error> {
        match command {
            Command::Revoke(token) => self.revoke(*token),
            Command::Freeze(freeze) => self.freeze(freeze),
            Command::Signed { kind, version, event } => self.submit_signed(*kind, *version, event),
            // These are for who serves the home.
            Command::Status | Command::Shutdown => Err(Error::NotHolder),
        }
    }

    /// The same for the process that holds the home, and how that stands.
    pub(crate) fn operate(&self, command: &Command) -> Result<Vec<u8>, Error> {
        match command {
            Command::Status => {
                self.may_act()?;
                body(Ok(self.look(HolderStatus::of)))
            }
            command => body(self.stop(command)),
        }
    }

    fn serve_operator(&self, client: &Client, ask: Ask) -> Result<Vec<u8>, Error> {
        let sets_tools = matches!(
            ask,
            Ask::Accept(_) | Ask::AcceptAs(_) | Ask::Forget(_) | Ask::Configure(_) | Ask::Submit(_)
        );
        let answer = self.answer_operator(client, ask);
        if sets_tools {
            // A call that waits may be of another tool by now.
            waits::ring(&self.core);
        }
        answer
    }

    fn answer_operator(&self, client: &Client, ask: Ask) -> Result<Vec<u8>, Error> {
        match ask {
            Ask::Issue(grant) => body(self.issue(*grant)),
            Ask::Register(wire) => body(self.register(&wire)),
            Ask::Policy(object) => body(self.set_policy_object(&object)),
            Ask::Shadow(object) => body(self.set_shadow_object(&object)),
            Ask::NoShadow => body(self.clear_shadow()),
            Ask::ReadPolicy(document) => body(self.read_policy(&document).map(drop)),
            Ask::Accept(tools) => body(self.accept(&tools)),
            Ask::AcceptAs(tools) => body(self.accept_as(&tools)),
            Ask::Forget(tools) => body(self.forget(&tools)),
            Ask::Configure(change) => body(self.configure(&change)),
            Ask::Submit(submission) => body(self.submit_with(&submission)),
            Ask::Purge => body(self.purge()),
            Ask::Waiting => body(self.waiting()),
            Ask::Sets => body(self.sets()),
            Ask::States => body(self.states()),
            Ask::Tokens(digits) => {
                let (most, digits) = (TOKENS_SCANNED_MAX, &*digits);
                let named = |k: &Kernel| TokenDetail::named(k, digits, k.now(), most);
                body(Ok(self.look(named)))
            }
            Ask::Successor(token) => {
                body(Ok(self.look(|kernel| TokenDetail::successor(kernel, token))))
            }
            Ask::Watch(watched) => body(Ok(self.watch(watched))),
            Ask::Counts => body(Ok(self.counters().counts())),
            Ask::Wait(waits) => body(self.wait(&waits.agent, waits.ask, waits.limit())),
            Ask::Stay(stays) => body(Ok(self.stays(client.number, stays))),
            Ask::Provide(tools) => body(client.provide(self, tools)),
            Ask::Withdraw(tools) => body(client.withdraw(self, &tools)),
            Ask::View => {
                // The kernel's time is that of its last event.
                self.tick();
                body(Ok(View::of(self)))
            }
            Ask::ViewOf(looked) => body(Ok(View::of_agent(self, &looked.agent, looked.token))),
            Ask::Stamp => body(Ok(Stamp::of(self))),
            Ask::Tool(tool) => body(ToolDetail::of(self, &tool)),
            Ask::Manifests(whose) => body(Ok(manifests(self, whose))),
            Ask::Begin(asked) => {
                let Begin { token, used, manifest, unasked } = *asked;
                body(self.desk().begin(self, token, used, manifest, unasked).map(Leave::from))
            }
            Ask::Settle(asked) => {
                let Settle { token, used, reported } = *asked;
                body(self.desk().settle(self, token, &used, reported).map(OnRecord::from))
            }
            Ask::Prompted(asked) => body(self.desk().heard(self, asked.token, &asked.prompt)),
            Ask::Open(Opening { agent, token }) => body(client.open(self, &agent, token)),
            Ask::Lend(session) => body(client.lend(self, session)),
            Ask::Ticket(ticketed) => body(client.register(self, ticketed)),
            Ask::Charge(Charge { session, amounts }) => {
                body(client.session(session).and_then(|session| session.charge(amounts)))
            }
            Ask::Abort(Aborted { session, intent }) => {
                body(client.session(session).and_then(|session| session.cancel(intent)))
            }
            Ask::Propose(asked) => {
                let Proposed { session, writer, inputs, base, changes } = *asked;
                let session = client.session(session);
                body(session.and_then(|session| session.change(writer, inputs, changes, base)))
            }
            Ask::Heard(asked) => {
                let Heard { session, text, label } = *asked;
                body(client.session(session).and_then(|session| session.heard(&text, label)))
            }
        }
    }
}

/// An answer, as both sides read it; an error stays what it is.
fn body<T: Field>(answer: Result<T, Error>) -> Result<Vec<u8>, Error> {
    let mut encoder = Encoder::new();
    answer?.put(&mut encoder);
    Ok(encoder.into_bytes())
}
