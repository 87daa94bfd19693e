//! One call, moved forward by value: each step names the only next one.
//!
//! | step | file | can say no with |
//! |---|---|---|
//! | decode the envelope | `decode` | 1xx |
//! | check: bound, not revoked, not frozen, not expired, granted; a repeated key is found | `check` | 2xx |
//! | dereference: results take the place of references | `dereference` | 25x |
//! | follow links, where the grant does | `follow` | 3xx |
//! | plan, scopes | `plan` | 3xx |
//! | decide | `decide` | 4xx |
//! | reserve | `reserve` | 5xx |
//!
//! The later steps, from the intent to the answer, are in [`run`](crate::run).
//!
//! The types are crate-private, so no other crate can make, skip, repeat or reorder a step; and
//! they are fed from the kernel's own tokens, tools, policy and budgets, so no other can be put in
//! their place. Each step lends its findings to the next ones: session and token by the
//! [`Context`](crate::call::context::Context), tool and grant by [`Found`], the envelope as it was
//! read. A step that says no leaves what is known of the call where it is recorded from.

mod answered;
pub(crate) mod arguments;
mod check;
pub(crate) mod context;
pub(crate) mod decide;
mod decode;
mod dereference;
pub(crate) mod diagnostics;
pub(crate) mod fetch;
pub(crate) mod follow;
pub(crate) mod links;
mod pieces;
mod plan;
pub(crate) mod reference;
mod reserve;

use alloc::{boxed::Box, vec::Vec};

use crate::approvals::request::{Asking, Yes};
use crate::authority::tokens::TokenIndex;
use crate::call::decide::Kept;
use crate::call::fetch::Part;
use crate::call::links::AsSent;
use crate::call::reference::References;
use crate::registry::{Mode, Registered};
use crate::state::idempotency::KeyUse;
use crate::tool::{AnyPlan, Demand};
use syscap_format::{
    AgentId, Amounts, CallDigest, CallFields, Canonical, EffectClass, ErrorKind, Filled,
    IdempotencyKey, Item, Label, Reason, RefusalKind, Refused, SentHash, Seq, ToolCall, ToolGrant,
    ToolId,
};

mod step {
    /// Marks the steps; sealed.
    pub(crate) trait Step {}
}
use step::Step;

/// A call at step `S`, beside the fields of its record. No `Clone`; every method takes it by
/// value.
#[must_use = "a call must be moved forward or refused on the record"]
pub(crate) struct Call<'c, S: Step> {
    fields: &'c mut CallFields,
    at: S,
}

/// The subject of a call: the registered tool, and the token's grant for it.
#[derive(Clone, Copy)]
pub(crate) struct Found<'k> {
    pub(crate) tool: &'k Registered,
    pub(crate) grant: &'k ToolGrant,
}

/// The envelope was read and completed.
pub(crate) struct Decoded<'k> {
    call: &'k ToolCall<'k>,
    tool: Option<&'k Registered>,
}

/// The session's token is live, and grants the tool.
pub(crate) struct Checked<'k> {
    call: &'k ToolCall<'k>,
    found: Found<'k>,
    references: References,
}

/// The arguments are resolved, fit the manifest and are hashed.
pub(crate) struct Dereferenced<'k> {
    call: &'k ToolCall<'k>,
    found: Found<'k>,
    /// The arguments, where they are others than were sent.
    args: Option<Canonical>,
    /// The argument whose links were followed.
    sent: Option<AsSent>,
}

/// The tool made a plan, and all that it would touch lies in scope.
pub(crate) struct Planned<'k> {
    resolved: Dereferenced<'k>,
    plan: Box<dyn AnyPlan>,
    demands: Vec<Demand>,
    /// The amounts that the plan needs.
    needed: Amounts,
    hold: Amounts,
}

/// The policy allows it.
pub(crate) struct Approved<'k> {
    resolved: Dereferenced<'k>,
    plan: Box<dyn AnyPlan>,
    hold: Amounts,
    kept: Kept,
    /// The approval that lets it through, where the policy asks for one.
    approval: Option<Yes>,
}

/// The budget of the token and of all its ancestors has room. All that the intent and the run
/// need of what the steps were lent.
pub(crate) struct Reserved {
    pub(crate) plan: Box<dyn AnyPlan>,
    pub(crate) digest: CallDigest,
    pub(crate) agent: AgentId,
    pub(crate) token: TokenIndex,
    pub(crate) tool: ToolId,
    pub(crate) effect: EffectClass,
    pub(crate) call_effect: EffectClass,
    pub(crate) mode: Mode,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) sent: Option<SentHash>,
    pub(crate) approval: Option<Yes>,
    pub(crate) filled: Filled,
    /// The label of everything that the session was given before.
    pub(crate) given: Label,
    /// The label of the tool's results.
    pub(crate) label: Label,
    pub(crate) wall_ms_max: Option<u64>,
    pub(crate) result_bytes_max: usize,
    pub(crate) read_only: bool,
    /// The vault's row of the intent.
    pub(crate) row: Vec<u8>,
}

impl Step for Decoded<'_> {}
impl Step for Checked<'_> {}
impl Step for Dereferenced<'_> {}
impl Step for Planned<'_> {}
impl Step for Approved<'_> {}
impl Step for Reserved {}

impl Dereferenced<'_> {
    fn args(&self) -> Item<'_> {
        self.args.as_ref().map_or(self.call.args(), Canonical::item)
    }

    /// A refusal that keeps the arguments, and tells nothing of where links led that were followed.
    fn stopped(&self, refused: Refused) -> Stopped {
        let refused = match &self.sent {
            Some(sent) => sent.shown(refused),
            None => refused,
        };
        Stopped { args: Some(self.args().into()), ..refused.into() }
    }
}

impl Call<'_, Reserved> {
    /// Gives up the call for its intent. The caller is `Kernel::intend`, the only one.
    pub(crate) fn into_reserved(self) -> Reserved {
        self.at
    }
}

/// Why a step said no to a call.
#[must_use = "a refusal must be recorded"]
pub(crate) struct Stopped {
    pub(crate) refused: Refused,
    pub(crate) kind: RefusalKind,
    /// The resolved arguments, where it came to such: they are kept, so that an operator sees what
    /// was refused, and another policy can be asked about the call later.
    pub(crate) args: Option<Canonical>,
    /// The question for a person, if one could approve it.
    pub(crate) asking: Option<Box<Asking>>,
}

impl Stopped {
    pub(crate) const fn error_kind(&self) -> ErrorKind {
        match self.kind {
            RefusalKind::Refused | RefusalKind::Control => ErrorKind::Refused,
            RefusalKind::Asked => ErrorKind::Asked,
            RefusalKind::Deferred => ErrorKind::Deferred,
        }
    }
}

impl From<Refused> for Stopped {
    fn from(refused: Refused) -> Self {
        Self { refused, kind: RefusalKind::Refused, args: None, asking: None }
    }
}

impl From<Reason> for Stopped {
    fn from(reason: Reason) -> Self {
        Refused::new(reason).into()
    }
}

type Stepped<'c, S> = Result<Call<'c, S>, Stopped>;

/// A call's needs from the vault before it can continue.
pub(crate) enum Needs<'k> {
    Nothing,
    /// The first outcome of an idempotency key: how it was used, and the outcome.
    Repeat(&'k KeyUse, Seq),
    /// Parts of results that its arguments refer to.
    Parts(Vec<Part>),
}
