//! The kernel's knowledge of a host's tool.

use std::{future::Future, sync::Arc, time::Duration};

use syscap_format::{
    Dimension, EffectClass, Label, Manifest, ObligationKind, Param, ParamType, ScopeType, ToolId,
};

use crate::error::Error;
use crate::inspect::view::RUN_MARK;
use crate::runtime::args::IntoArg;
use crate::tools::host::call::ToolCall;
use crate::tools::host::closure::{ClosureTool, Ended};
use crate::tools::host::failure::Failure;
use crate::tools::host::future::{Task, block_on};
use crate::tools::host::transaction::{Transactional, TransactionalTool};
use crate::tools::host::typed::{Typed, TypedTool};

/// How long a run may take where the host doesn't say.
const LIMIT: Duration = Duration::from_secs(10);
/// The time reserved beyond the limit.
const SLACK_MS: u64 = 1_000;

/// The kernel's knowledge of a tool, needed before it can be called. [`run`](Self::run),
/// [`run_async`](Self::run_async) or [`typed`](Self::typed) makes the tool.
#[derive(Clone, Debug)]
#[must_use = "it is no tool before it is told how to run"]
pub struct HostTool {
    manifest: Manifest,
}

impl HostTool {
    /// A tool of that effect without arguments, that is given up after ten seconds. Its name is
    /// made of lower-case words joined by dots, such as `org.lookup`.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn new(name: &str, effect: EffectClass) -> Result<Self, Error> {
        let bad = || Error::BadName { what: "the tool", got: name.to_owned() };
        let tool = ToolId::new(name).filter(|tool| tool.as_str() != RUN_MARK).ok_or_else(bad)?;
        Ok(Self { manifest: Manifest::new(tool, effect) }.limit(LIMIT))
    }

    /// Says what it does, for a model.
    pub fn described(mut self, description: &str) -> Self {
        self.manifest.description = Box::from(description);
        self
    }

    /// Adds a text that must be given.
    pub fn text(self, name: &str, description: &str) -> Self {
        self.arg(Param::required(name, ParamType::Text, description))
    }

    /// Adds an integer that must be given.
    pub fn integer(self, name: &str, description: &str) -> Self {
        self.arg(Param::required(name, ParamType::Int, description))
    }

    /// Adds a boolean that must be given.
    pub fn boolean(self, name: &str, description: &str) -> Self {
        self.arg(Param::required(name, ParamType::Bool, description))
    }

    /// Adds a text that must be given, and is run: a script, a command line, a statement. No set of
    /// calls is ever approved of a tool that takes one, since nothing that a call names says what
    /// it does; for a list of texts, [`Self::arg`] with [`ParamType::Argv`].
    pub fn code(self, name: &str, description: &str) -> Self {
        self.arg(Param::required(name, ParamType::Code, description))
    }

    /// Adds any argument: optional, with a default, within bounds, of another type.
    pub fn arg(mut self, param: Param) -> Self {
        self.manifest = self.manifest.param(param);
        self
    }

    /// Sets how much of a counted dimension each call sets aside: the most that a run can
    /// [`meter`](ToolCall::meter).
    pub fn hold(mut self, dimension: Dimension, amount: u64) -> Self {
        self.manifest.hold = self.manifest.hold.with(dimension, amount);
        self
    }

    /// Sets after how long a run is given up. That much wall time is set aside, and a second for
    /// what the machine takes: a run that ends just in time must not exhaust its token.
    pub fn limit(mut self, limit: Duration) -> Self {
        let ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX).max(1);
        self.manifest.wall_ms_max = Some(ms);
        self.hold(Dimension::WallUs, ms.saturating_add(SLACK_MS).saturating_mul(1_000))
    }

    /// Sets the largest result that is taken from it, in bytes.
    pub fn result_bytes_max(mut self, bytes: u64) -> Self {
        self.manifest.result_bytes_max = bytes;
        self
    }

    /// Adds an obligation that a run keeps to. A tool that honours `read_only` must ask
    /// [`ToolCall::is_read_only`].
    pub fn honours(mut self, kind: ObligationKind) -> Self {
        self.manifest = self.manifest.honours(kind);
        self
    }

    /// Sets what its results carry: [`Label::UNTRUSTED`], where they are a stranger's words.
    pub fn labelled(mut self, label: Label) -> Self {
        self.manifest = self.manifest.labelled(label);
        self
    }

    /// Says that it needs a scope in this dimension, in which each [`Typed`] plan touches
    /// something, or says that it does not ([`Planned::untouched`](crate::host::Planned::untouched)). A
    /// closure makes no plan: it says by [`argument`](Self::argument) which argument names the
    /// resource, and is no tool without that.
    pub fn needs(mut self, dimension: &str) -> Self {
        self.manifest = self.manifest.needs(dimension);
        self
    }

    /// Says that an argument names resources of that type, in a dimension of the argument's name:
    /// the kernel lets a call through only where the token's scope there permits each of its
    /// values. The argument is a text, an integer or a list of them, and declared as well; of one
    /// that is left out nothing is compared. A path needs a [`Typed`] plan.
    ///
    /// ```
    /// use syscap::format::{EffectClass, Scope, ScopeType};
    /// use syscap::{host::HostTool, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let page = HostTool::new("team.page", EffectClass::LocalWrite)?
    ///     .text("team", "Whom.")
    ///     .argument("team", ScopeType::Names)
    ///     .run(|call| Ok(format!("paged {}", call.text("team")?)));
    /// let rt = Options::new().tool(page)?.create(folder.path().join("home"))?;
    /// let grant = Grant::to("clerk").tools(["team.page"]).scope("team", Scope::names(["red"])?);
    /// let clerk = rt.session("clerk", rt.issue(grant)?)?;
    /// assert_eq!(clerk.call("team.page", args! { "team": "red" })?.text()?, "paged red");
    /// let refused = clerk.call("team.page", args! { "team": "blue" })?;
    /// assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    /// # rt.close()
    /// # }
    /// ```
    pub fn argument(self, name: &str, kind: ScopeType) -> Self {
        self.argument_in(name, name, kind)
    }

    /// The same in a dimension of another name: `to` and `cc` may both name a `recipient`.
    pub fn argument_in(mut self, name: &str, dimension: &str, kind: ScopeType) -> Self {
        self.manifest = self.manifest.resource(name, dimension, kind);
        self
    }

    /// Says which tool takes back what a call of this one did, for people and agents to know:
    /// nobody calls it for them.
    ///
    /// # Errors
    /// [`Error::BadName`].
    pub fn compensated_by(mut self, tool: &str) -> Result<Self, Error> {
        let bad = || Error::BadName { what: "the tool", got: tool.to_owned() };
        self.manifest = self.manifest.compensated_by(ToolId::new(tool).ok_or_else(bad)?);
        Ok(self)
    }

    /// The manifest as it stands.
    pub const fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Runs it by a closure. It is called on a thread of its own, several at once where several
    /// calls are made.
    pub fn run<T, F>(self, body: F) -> ClosureTool
    where
        T: IntoArg,
        F: Fn(&ToolCall) -> Result<T, Failure> + Send + Sync + 'static,
    {
        let body = move |call: ToolCall| Ended::of(body(&call));
        ClosureTool { manifest: self.manifest, body: Arc::new(body) }
    }

    /// Runs it by a future, which `spawn` gives to an executor: with tokio
    /// `move |task| { handle.spawn(task); }`. The call's own thread waits for it meanwhile.
    ///
    /// When the run is given up, [`ToolCall::cancelled`] ends; a second later the future is
    /// dropped, where it stands. One that is dropped before it answered, then or because its task
    /// was aborted or its executor shut down, has failed: what it did is not known, and the call
    /// is charged in full.
    pub fn run_async<T, F, W>(
        self,
        spawn: impl Fn(Task) + Send + Sync + 'static,
        body: F,
    ) -> ClosureTool
    where
        T: IntoArg,
        F: Fn(ToolCall) -> W + Send + Sync + 'static,
        W: Future<Output = Result<T, Failure>> + Send + 'static,
    {
        let body = move |call: ToolCall| {
            let cancel = call.cancel();
            block_on(body(call), &cancel, &spawn)
        };
        ClosureTool { manifest: self.manifest, body: Arc::new(body) }
    }

    /// Runs it by a type: see [`Typed`].
    pub fn typed<P: Typed>(self) -> TypedTool<P> {
        TypedTool::new(self.manifest)
    }

    /// Runs it by a type that prepares its effect and then makes it: see [`Transactional`].
    pub fn transactional<P: Transactional>(self) -> TransactionalTool<P> {
        TransactionalTool::new(self.manifest)
    }
}
