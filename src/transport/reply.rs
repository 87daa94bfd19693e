//! Answers: the requested data, a refusal, or an error.

use syscap_format::field::{Field, choice, shape};
use syscap_format::{
    AgentId, Amounts, Canonical, DecodeError, DecodeFault, Decoder, Encoder, Reason, Refused,
    Retry, Seq, TokenId, ToolResult, TxOutcome,
};
use syscap_kernel::StoreError;

use crate::error::Error;
use crate::keys::{KeyUse, SignerError};
use crate::tools::host::uses::{Begun, Settled};
use crate::tools::provide::{HostRan, Offer};
use crate::transport::frame::{Carries, Frame, frame};
use crate::transport::limits::TOOLS_MAX;
use crate::transport::wire::Broken;

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// The requested data, as bytes; the requester knows their form.
    Done(Vec<u8>),
    /// The kernel, or the holder, refused it: nothing happened.
    Refused(Refused),
    /// It could not be had.
    Failed(Failure),
}

choice! {
    /// Why something could not be had.
    pub(crate) enum Failure {
        /// A name is not of its form: what is named, and the name.
        1 => Name(Named),
        /// A key is sealed: whoever asked can sign in the holder's place.
        2 => Sealed(KeyUse),
        /// Anything else, in words.
        3 => Other(String),
        /// The named thing does not exist.
        4 => NoSuch(Named),
    }
}

shape! {
    pub(crate) struct Named {
        1 => pub(crate) what: What,
        2 => pub(crate) got: String,
    }
}

/// A kind of name that can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct What(&'static str);

const NAMES: [&str; 8] = [
    "the agent",
    "the tool",
    "the token",
    "the path (it begins with a root's name, as in `workspace/notes`)",
    "a built-in tool",
    "a delegated tool",
    "a tool's alias",
    "a tool whose definition has changed",
];

impl Field for What {
    const SHAPE: &'static str = "text";

    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self.0);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let name = decoder.text()?;
        NAMES.into_iter().find(|what| *what == name).map(Self).ok_or(fault)
    }
}

impl Field for KeyUse {
    const SHAPE: &'static str = "text";

    fn put(&self, encoder: &mut Encoder) {
        encoder.text(self.name());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        Self::named(decoder.text()?).ok_or(fault)
    }
}

impl Reply {
    pub(crate) fn done<T: Field>(value: &T) -> Self {
        let mut encoder = Encoder::new();
        value.put(&mut encoder);
        Self::Done(encoder.into_bytes())
    }

    /// An answer without data.
    pub(crate) fn nothing() -> Self {
        Self::done(&())
    }

    pub(crate) fn refused(why: impl Into<Refused>) -> Self {
        Self::Refused(why.into())
    }

    /// In the place of an answer whose form is wrong in a sound frame: nobody can read it.
    pub(crate) const fn unreadable() -> Self {
        Self::Done(Vec::new())
    }

    /// In the place of an answer that no frame can hold.
    pub(crate) fn too_long() -> Self {
        Self::Failed(Failure::Other("the answer is too long".to_owned()))
    }

    /// In the place of an answer that was being made.
    pub(crate) fn broke_off() -> Self {
        Self::Failed(Failure::Other("the holder broke off".to_owned()))
    }

    pub(crate) fn of<T: Field>(result: Result<T, Error>) -> Self {
        result.map_or_else(Self::failed, |value| Self::done(&value))
    }

    /// An answer that is made already.
    pub(crate) fn made(answer: Result<Vec<u8>, Error>) -> Self {
        answer.map_or_else(Self::failed, Self::Done)
    }

    /// An error, as it is told to whoever asked.
    fn failed(error: Error) -> Self {
        match error {
            Error::Refused(refused) => Self::Refused(refused),
            // The home was let go with nothing of it on record.
            Error::Home(StoreError::Busy) => {
                Self::Refused(Refused::new(Reason::Busy).field("home"))
            }
            // Who asked reads the document too, and says in its own words what is wrong with it.
            Error::Policy(error) => {
                let refused = Refused::new(Reason::BadPolicy).field(&error.place);
                Self::Refused(refused.got(&error.to_string()))
            }
            Error::BadName { what, got } => {
                Self::Failed(Failure::Name(Named { what: What(what), got }))
            }
            Error::NoSuch { what, got } => {
                Self::Failed(Failure::NoSuch(Named { what: What(what), got }))
            }
            Error::Signer(SignerError::Sealed(key)) => Self::Failed(Failure::Sealed(key)),
            error => Self::Failed(Failure::Other(error.to_string())),
        }
    }

    /// The requested data, or the error that the requester would have got in the server.
    pub(crate) fn into_bytes(self) -> Result<Vec<u8>, Error> {
        Err(match self {
            Self::Done(body) => return Ok(body),
            Self::Refused(refused) => Error::Refused(refused),
            Self::Failed(Failure::Name(Named { what, got })) => {
                Error::BadName { what: what.0, got }
            }
            Self::Failed(Failure::NoSuch(Named { what, got })) => {
                Error::NoSuch { what: what.0, got }
            }
            Self::Failed(Failure::Sealed(key)) => SignerError::Sealed(key).into(),
            Self::Failed(Failure::Other(text)) => Error::Holder(text),
        })
    }

    /// How long it is, more or less, where it may be long.
    pub(crate) const fn bytes(&self) -> usize {
        match self {
            Self::Done(body) => body.len(),
            Self::Refused(_) | Self::Failed(_) => 0,
        }
    }

    pub(crate) fn frame(&self, id: u64) -> Vec<u8> {
        match self {
            Self::Done(body) => {
                let mut bytes = frame(id, Carries::Done, |_| {});
                bytes.extend_from_slice(body);
                bytes
            }
            Self::Refused(refused) => frame(id, Carries::Refused, |encoder| refused.put(encoder)),
            Self::Failed(failure) => frame(id, Carries::Failed, |encoder| failure.put(encoder)),
        }
    }

    /// The answer that a frame carries.
    pub(crate) fn read(frame: &Frame<'_>) -> Result<Self, Broken> {
        match frame.carries {
            Carries::Done => Ok(Self::Done(frame.body().to_vec())),
            Carries::Refused => frame.take().map(Self::Refused),
            Carries::Failed => frame.take().map(Self::Failed),
            Carries::AgentAsk | Carries::Ask | Carries::Order => Err(Broken::Form),
        }
    }
}

shape! {
    /// A session that was lent, as the one sees it who takes it.
    pub(crate) struct Taken {
        1 => pub(crate) session: Seq,
        2 => pub(crate) agent: AgentId,
        3 => pub(crate) token: TokenId,
    }
}

shape! {
    /// How the tools stand that were offered.
    pub(crate) struct Offers {
        1 => pub(crate) list: Vec<Offer> [..TOOLS_MAX],
    }
}

/// An answer to a call. The delivered value stands apart: it may nest as deep as data may.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Answered(pub(crate) ToolResult);

impl Field for Answered {
    const SHAPE: &'static str = "array [map, any]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(2);
        self.0.head().put(encoder);
        self.0.delivered().put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        let (head, delivered) = <(Canonical, Canonical)>::take(decoder)?;
        ToolResult::from_parts(head.item(), delivered).map(Self).ok_or(fault)
    }
}

choice! {
    /// The answer to a request for leave.
    pub(crate) enum Leave {
        /// The use may be made; its intent stands there.
        1 => Out(Seq),
        /// It must not be made.
        2 => Answered(Answered),
    }
}

impl From<Begun> for Leave {
    fn from(begun: Begun) -> Self {
        match begun {
            Begun::Out(intent) => Self::Out(intent),
            Begun::Answered(answer) => Self::Answered(Answered(*answer)),
        }
    }
}

impl From<Leave> for Begun {
    fn from(leave: Leave) -> Self {
        match leave {
            Leave::Out(intent) => Self::Out(intent),
            Leave::Answered(Answered(answer)) => Self::Answered(Box::new(answer)),
        }
    }
}

choice! {
    /// The answer to a report of a use.
    pub(crate) enum OnRecord {
        /// The outcome on record.
        1 => Answered(Answered),
        /// The record of a late report.
        2 => Late(Seq),
    }
}

impl From<Settled> for OnRecord {
    fn from(settled: Settled) -> Self {
        match settled {
            Settled::Answered(answer) => Self::Answered(Answered(*answer)),
            Settled::Late(record) => Self::Late(record),
        }
    }
}

impl From<OnRecord> for Settled {
    fn from(on_record: OnRecord) -> Self {
        match on_record {
            OnRecord::Answered(Answered(answer)) => Self::Answered(Box::new(answer)),
            OnRecord::Late(record) => Self::Late(record),
        }
    }
}

shape! {
    /// The result of a run.
    pub(crate) struct Ran {
        1 => came: Came,
        2 => tx: TxOutcome,
        3 => used: Amounts,
    }
}

choice! {
    enum Came {
        1 => Result(Canonical),
        2 => Refused(Refused),
        /// The tool failed by its own word; what it gave.
        3 => Failed(Canonical),
        /// The same, and nobody but a person may have it tried again.
        4 => FailedAsk(Canonical),
        /// The same, and it is not to be tried again.
        5 => FailedNever(Canonical),
    }
}

impl From<HostRan> for Ran {
    fn from(HostRan { result, tx, failed, retry, used }: HostRan) -> Self {
        let came = match result {
            Ok(output) if failed => match retry {
                Some(Retry::Never) => Came::FailedNever(output),
                Some(Retry::Ask) => Came::FailedAsk(output),
                _ => Came::Failed(output),
            },
            Ok(result) => Came::Result(result),
            Err(refused) => Came::Refused(refused),
        };
        Self { came, tx, used }
    }
}

impl From<Ran> for HostRan {
    fn from(Ran { came, tx, used }: Ran) -> Self {
        let (result, failed, retry) = match came {
            Came::Result(result) => (Ok(result), false, None),
            Came::Failed(output) => (Ok(output), true, None),
            Came::FailedAsk(output) => (Ok(output), true, Some(Retry::Ask)),
            Came::FailedNever(output) => (Ok(output), true, Some(Retry::Never)),
            Came::Refused(refused) => (Err(refused), false, None),
        };
        Self { result, tx, failed, retry, used }
    }
}
