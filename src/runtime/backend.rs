//! What requests are made of: the kernel of this process, or the server of the home.

use std::sync::Arc;
use std::time::Duration;

use syscap_format::field::Field;
use syscap_format::{AgentId, Seq, TokenId, ToolResult};

use crate::Error;
use crate::runtime::held::Held;
use crate::runtime::session::call::Sent;
use crate::server::request::Request;
use crate::tools::provide::{Cancel, Offer, Offered, Provider};
use crate::transport::Command;
use crate::transport::frame::take;

/// The result of a request.
pub(crate) enum Step<T> {
    /// This.
    Done(Result<T, Error>),
    /// Nothing was carried out, and the server is ending: send the request to the next one.
    Again,
}

impl<T> Step<T> {
    pub(crate) fn map<U>(self, done: impl FnOnce(T) -> U) -> Step<U> {
        match self {
            Self::Done(result) => Step::Done(result.map(done)),
            Self::Again => Step::Again,
        }
    }
}

/// Is told what a call came to, once, on a thread that it must not block.
pub(crate) type Told = Box<dyn FnOnce(Step<ToolResult>) + Send>;

/// A session at one backend.
#[derive(Clone, Copy)]
pub(crate) struct Place<'s> {
    pub(crate) session: Seq,
    pub(crate) agent: &'s AgentId,
    pub(crate) token: TokenId,
}

/// The kernel of this process, or a connection to the server.
pub(crate) trait Backend: Send + Sync {
    /// Does what is asked; the answer is bytes, as on the wire. A server that takes longer is given
    /// up.
    fn bytes(&self, request: Request, limit: Duration) -> Step<Vec<u8>>;

    /// Does what an operator may ask in every version of the protocol.
    fn operate(&self, command: Command) -> Step<Vec<u8>>;

    /// An answer is not of its form: why nobody gets one.
    fn misread(&self) -> Error;

    /// Makes a call, and takes what is sent where it is carried out at most once here.
    fn call(&self, at: Place<'_>, sent: &mut Option<Sent>, cancel: &Cancel) -> Step<ToolResult>;

    /// Makes a call, and does not wait.
    fn submit(&self, at: Place<'_>, sent: Sent, told: Told);

    /// Makes calls together; none is given where it was turned away because the server ends.
    fn call_all(&self, at: Place<'_>, all: &[Sent]) -> Step<Vec<Option<ToolResult>>>;

    /// Offers tools.
    fn provide(
        &self,
        tools: Vec<Offered>,
        provider: &Arc<dyn Provider>,
        limit: Duration,
    ) -> Step<Vec<Offer>>;

    /// The home, where this process holds it.
    fn held(&self) -> Option<&Held>;

    /// True if it takes no more requests.
    fn is_over(&self) -> bool;

    /// Ends it; by which record, where this process held the home. A server that stayed for this
    /// process is told so, and its end is waited for.
    fn close(&self, stayed: bool) -> Result<Option<Seq>, Error>;
}

impl dyn Backend + '_ {
    /// Does what is asked.
    pub(crate) fn ask<T: Field>(&self, request: impl Into<Request>, limit: Duration) -> Step<T> {
        self.read(self.bytes(request.into(), limit))
    }

    /// What an answer says.
    pub(crate) fn read<T: Field>(&self, answer: Step<Vec<u8>>) -> Step<T> {
        match answer {
            Step::Done(Ok(bytes)) => Step::Done(take(&bytes).map_err(|_| self.misread())),
            Step::Done(Err(error)) => Step::Done(Err(error)),
            Step::Again => Step::Again,
        }
    }
}
