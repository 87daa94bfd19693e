//! The gateway's view of the kernel.

use std::sync::Arc;
use std::time::Duration;

use syscap::approvals::Waited;
use syscap::format::{
    ApprovalAnswer, Canonical, Item, Manifest, ObjectId, Reason, Seq, TokenId, ToolId, TxOutcome,
};
use syscap::kernel::StoreError;
use syscap::provide::{Offer, Provider};
use syscap::view::{Stamp, TokenInfo};
use syscap::{CallContext, Error};

use crate::say::say;

/// Why the kernel can't be reached. A client may give its model all that it is told, so it is told
/// less than the operator: no path of the home, no token id and no command.
#[derive(Clone, Debug)]
pub(crate) struct Unreached {
    client: String,
    operator: String,
}

impl Unreached {
    /// The same for both.
    pub(crate) fn new(why: &'static str) -> Self {
        Self::of(why, why)
    }

    /// Each told in its own words.
    pub(crate) fn of(client: impl Into<String>, operator: impl Into<String>) -> Self {
        Self { client: client.into(), operator: operator.into() }
    }

    /// The text for the client.
    pub(crate) fn for_client(&self) -> &str {
        &self.client
    }

    /// The text for the operator.
    pub(crate) fn for_operator(&self) -> &str {
        &self.operator
    }

    /// Tells the operator, and gives what the client is told.
    pub(crate) fn tell(&self) -> &str {
        if self.operator != self.client {
            say(&self.operator);
        }
        &self.client
    }
}

impl From<Error> for Unreached {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl From<&Error> for Unreached {
    fn from(error: &Error) -> Self {
        let client = match error {
            Error::Refused(why) => {
                let reason = why.reason();
                format!("refused: {} ({})", reason.name(), reason.code())
            }
            Error::HolderGone | Error::BrokeOff | Error::NotStarted | Error::Closed => {
                error.to_string()
            }
            Error::Halted(_) => "the kernel has stopped".to_owned(),
            Error::NoServer { .. } => "no process serves the home".to_owned(),
            Error::Home(StoreError::Busy) => "another program locks the home's database".to_owned(),
            Error::Holder(_) => "the process that holds the home could not do it".to_owned(),
            _ => "the home can't be used".to_owned(),
        };
        Self::of(client, error.to_string())
    }
}

/// The state of an accepted definition: on record, or waiting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accepted {
    /// It is.
    Recorded,
    /// No signer was available.
    Waits,
}

/// A kernel, in this process or at another's.
pub(crate) trait Kernelside: Send + Sync + 'static {
    /// Offers tools.
    fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Unreached>;

    /// Takes offers back.
    fn withdraw(&self, tools: &[ToolId]) -> Result<(), Unreached>;

    /// Puts what is offered in the place of what is on record, where it is the manifest of that
    /// id.
    fn accept(&self, tools: &[(ToolId, ObjectId)]) -> Result<Accepted, Unreached>;

    /// The manifests of the tools that the home itself runs.
    fn built_in(&self) -> Result<Vec<Manifest>, Unreached>;

    /// The manifests on record, of all tools.
    fn recorded(&self) -> Result<Vec<Manifest>, Unreached>;

    /// Opens the session: by the token that is named, by the agent's newest that lives, or by a
    /// new one for these tools.
    fn open_session(&self, tools: &[ToolId]) -> Result<Arc<dyn KernelSession>, Unreached>;

    /// Opens a session for more tools, where the token of the one before was issued for it here
    /// and lives.
    fn widen(&self, tools: &[ToolId]) -> Result<Option<Arc<dyn KernelSession>>, Unreached>;

    /// Opens another session where the token of one has ended, is spent or lacks something: by a
    /// newer one that an operator issued, or by one that is issued here like it. `None` where
    /// there is neither.
    fn go_on(
        &self,
        ended: TokenId,
        lack: &Lack,
    ) -> Result<Option<Arc<dyn KernelSession>>, Unreached>;

    /// Opens a session by a token that grants some of these tools besides all that the other does:
    /// by one that an operator issued since, or by one that is issued here, as far as the operator
    /// said that such tools may be granted. `None` where there is neither.
    fn grow(
        &self,
        from: TokenId,
        tools: &[ToolId],
    ) -> Result<Option<Arc<dyn KernelSession>>, Unreached>;

    /// A number that changes with each record of tools or tokens.
    fn stamp(&self) -> Result<Stamp, Unreached>;

    /// Why a token lets nothing through, after "the token". `None` while it does.
    fn ended(&self, token: TokenId) -> Result<Option<String>, Unreached>;

    /// Why nothing is let through by a token, of what no record of a call would say: the agent is
    /// frozen, or the token was revoked or has expired.
    fn stopped(&self, token: TokenId) -> Result<Option<Reason>, Unreached>;

    /// True if the policy would let an answer of the client's own window count for a waiting call, and
    /// here it counts for none, since the agent is inside a run.
    fn needs_another_window(&self, ask: Seq) -> Result<bool, Unreached>;

    /// A call that waits, as a client's own user may be shown it; `None` where it may not be asked.
    fn shown(&self, ask: Seq) -> Result<Option<ShownCall>, Unreached>;

    /// How a call stands that waits for a person, once it waits no more, or after so long.
    fn wait(&self, ask: Seq, limit: Duration) -> Result<Waited, Unreached>;

    /// The answer of the client's own user.
    fn answer(&self, ask: Seq, answer: ApprovalAnswer) -> Result<(), Unreached>;

    /// The home, as a command names it: one word for a shell.
    fn home(&self) -> String;
}

/// The missing authority or budget of a refused call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lack {
    pub(crate) tool: Option<ToolId>,
    /// True if it was a scope: another token must grant all tools that this one does.
    pub(crate) scope: bool,
    /// True if the same token, unused, would do.
    pub(crate) renewable: bool,
}

pub(crate) trait KernelSession: Send + Sync + 'static {
    /// The token, and what it granted when the session was opened.
    fn token(&self) -> &TokenInfo;

    /// Sends an envelope, under a name of our own for the call; `done` is told the answer. If the
    /// server ends before it has answered, the call is sent again under its idempotency key.
    fn submit(self: Arc<Self>, envelope: Arc<Envelope>, context: CallContext, done: Done);

    /// The intent of the newest call with that key, where the log has one.
    fn intent_of(&self, key: &str) -> Option<Seq>;

    /// Closes it.
    fn close(&self) -> Result<(), Unreached>;
}

/// Takes the answer to a call. It must not block.
pub(crate) type Done = Box<dyn FnOnce(Result<CallOutcome, NoAnswer>) + Send>;

/// A call as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Envelope {
    /// In canonical form.
    Canonical(Canonical),
    /// The same, but with the arguments as text, where they have no such form: they are refused,
    /// on the record.
    Text(Canonical),
}

/// Why a call has no answer of the kernel's.
#[derive(Clone, Debug)]
pub(crate) enum NoAnswer {
    /// It was not made: nothing ran.
    NotMade(Unreached),
    /// Its effect is unknown; its intent, if the log has one.
    Unknown(Unreached, Option<Seq>),
}

impl NoAnswer {
    /// Tells the operator why, and gives what the client is told.
    pub(crate) fn tell(&self) -> String {
        match self {
            Self::NotMade(why) => format!("it was not made, and nothing ran: {}", why.tell()),
            Self::Unknown(why, Some(intent)) => {
                let why = why.tell();
                format!("what it did is not known: {why}; its intent is record {intent}")
            }
            Self::Unknown(why, None) => format!("what it did is not known: {}", why.tell()),
        }
    }
}

/// The kernel's answer to a call.
#[derive(Clone, Debug)]
pub(crate) struct CallOutcome {
    /// Why there is no result.
    pub(crate) reason: Option<Reason>,
    /// The result, or the error object.
    pub(crate) delivered: Canonical,
    /// Its record.
    pub(crate) record: Seq,
    /// The constraint of the policy that said no.
    pub(crate) constraint: Option<String>,
    /// The effect's outcome.
    pub(crate) tx: TxOutcome,
    /// The record by which it waits for a person.
    pub(crate) ask: Option<Seq>,
    /// True if the operator was told the command that answers that.
    pub(crate) told: bool,
}

impl CallOutcome {
    /// What the tool gave, whether it failed by its own word or not; else why it gave nothing.
    pub(crate) fn output(&self) -> Result<Item<'_>, Reason> {
        let delivered = self.delivered.item();
        match self.reason {
            None => Ok(delivered),
            Some(reason @ Reason::ToolFailed) => delivered.get("output").ok_or(reason),
            Some(reason) => Err(reason),
        }
    }
}

/// A call that waits, as a client's user is shown it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShownCall {
    pub(crate) agent: String,
    pub(crate) tool: String,
    /// As JSON.
    pub(crate) args: String,
    /// The resources that it would touch, and its preconditions.
    pub(crate) touches: Vec<String>,
    pub(crate) constraint: Option<String>,
    /// True if untrusted content was there before it.
    pub(crate) untrusted: bool,
}

/// Asks the kernel on a thread that may block.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Unreached> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Unreached::new("a thread of the gateway broke off"))
}
