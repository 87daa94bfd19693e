//! One home, used by many processes: one holds it, the others are attached to that one.
//!
//! [`Access::open`] holds the home and serves it, where nobody does; else it attaches to the
//! process that does. Which of the two it is makes no difference to what can be done. When the
//! holder ends, the next process that needs the home opens it, recovers what was in flight, and
//! the others attach to that one: their tools are offered again and their sessions are opened
//! again, by themselves.
//!
//! A call that was out when the holder went is [`Error::HolderGone`]: what it came to stands in
//! the log after the recovery. It is never sent twice. One that an ending holder turned away has
//! not begun, and is sent to the next holder.
//!
//! Two lanes lead to a holder. The operator's can do everything, and is what [`Access::open`] and
//! its like use. On the agents' ([`Access::agent`]) a session that an operator opened and lent
//! ([`Caller::lend`]) can be taken and called through; all else is refused as
//! [`WrongLane`](syscap_format::reason::Reason::WrongLane). An [`Operator`] stops a home whatever
//! version its holder is of, and however full.
//!
//! ```
//! use syscap::{access::Access, prelude::*};
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! # let home = folder.path().join("home");
//! Runtime::create(&home)?.close()?;
//! let holder = Access::open(&home)?;
//! let attached = Access::open(&home)?;
//! assert!(holder.is_holder() && !attached.is_holder());
//! let token = attached.issue(Grant::to("a").tools(["echo"]))?;
//! let caller = attached.session("a", token)?;
//! let args = args! { "value": "hello" }.finish();
//! let answer = caller.call("echo", &args, &Default::default())?;
//! assert_eq!(answer.status(), Status::Ok);
//! assert!(holder.view()?.sessions.iter().any(|session| session.token == token));
//! # attached.close()?;
//! holder.close()
//! # }
//! ```

mod answer;
mod caller;
mod link;
mod operator;
#[cfg(test)]
mod tests;
mod view;

use std::{path::Path, sync::Arc, time::Duration};

use syscap_format::{
    control::{Control, Freeze},
    id::{HomeId, ObjectId, Seq, SnapshotId, TokenId, ToolId},
    json::Escapes,
    manifest::Manifest,
    object::PolicyObject,
    provenance::Source,
    record::Kind,
};
use syscap_policy::Policy;

use self::link::{Link, Mode, Seat};
pub use self::{
    answer::Answer,
    caller::{CallWith, Caller},
    operator::Operator,
    view::{Running, SessionInfo, TokenInfo, ToolDetail, ToolInfo, View, Whose},
};
pub(crate) use self::{caller::send, view::manifests};
pub use crate::attach::{HolderStatus, Phase, SessionTicket, Versions};
use crate::{
    Args, Changed, Error, Grant, Runtime,
    attach::{
        Ask, Command,
        client::Step,
        limits::ANSWER_TIME,
        reply::{read_answer, read_nothing, read_record, read_token},
        uses::{Begin, Settle, read_begun},
        views::read_manifests,
    },
    engine,
    host::{Begun, Reported, ToolUse},
    provide::{Offer, Provider},
    submit::{Beside, Submission},
};

/// How an envelope is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// Canonical CBOR.
    Cbor,
    /// JSON.
    Json,
    /// Canonical CBOR whose `args` are a byte string: the text of [`Caller::call_json`].
    Arguments(Escapes),
}

/// A home, held by this process or by another. It can be shared between threads.
///
/// One that is dropped is closed; what goes wrong with that is lost.
pub struct Access {
    link: Arc<Link>,
    /// How long a holder may take over what is asked in haste.
    answer_time: Duration,
}

impl Access {
    /// Holds the home and serves it to others; attaches to the process that does, where there is
    /// one. While a holder comes or goes it tries for some seconds.
    ///
    /// # Errors
    /// [`Error::Unserved`] where another process holds the home and serves it to nobody;
    /// [`Error::Version`] or [`Error::Foreign`] where it can't be attached to; else as
    /// [`Runtime::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::with(folder, Mode::Serve)
    }

    /// The same for a command that soon ends: where it holds the home it serves it to nobody,
    /// and others wait until it has ended.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn command(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Self::with(folder, Mode::Command)
    }

    /// Attaches, and never holds the home: `None` where nobody serves it.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn attach_only(folder: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let link = Link::new(folder.as_ref(), Mode::Attach);
        Ok(if link.look()? { Some(Self::by(link)) } else { None })
    }

    /// Attaches on the agents' lane, and never holds the home: `None` where nobody serves it. On
    /// it a session can be [taken](Access::take) that was lent, and called through; the holder
    /// refuses everything else.
    ///
    /// # Errors
    /// As [`Access::open`].
    pub fn agent(folder: impl AsRef<Path>) -> Result<Option<Self>, Error> {
        let link = Link::new(folder.as_ref(), Mode::Agent);
        Ok(if link.look()? { Some(Self::by(link)) } else { None })
    }

    /// Serves a runtime that this process holds already.
    ///
    /// # Errors
    /// [`Error::File`] where the socket can't be made.
    pub fn serve(runtime: Runtime) -> Result<Self, Error> {
        let link = Link::new(runtime.home().folder(), Mode::Serve);
        link.hold(runtime)?;
        Ok(Self::by(link))
    }

    const fn by(link: Arc<Link>) -> Self {
        Self { link, answer_time: ANSWER_TIME }
    }

    fn with(folder: impl AsRef<Path>, mode: Mode) -> Result<Self, Error> {
        let link = Link::new(folder.as_ref(), mode);
        link.up()?;
        Ok(Self::by(link))
    }

    /// Whether this process holds the home at present.
    #[must_use]
    pub fn is_holder(&self) -> bool {
        self.link.is_holder()
    }

    /// The home's folder.
    #[must_use]
    pub fn folder(&self) -> &Path {
        self.link.folder()
    }

    /// The home's id.
    ///
    /// # Errors
    /// As [`Access::view`].
    pub fn id(&self) -> Result<HomeId, Error> {
        self.view().map(|view| view.home)
    }

    /// As [`Runtime::issue`].
    ///
    /// # Errors
    /// As [`Runtime::issue`]; [`Error::HolderGone`].
    pub fn issue(&self, grant: Grant) -> Result<TokenId, Error> {
        // What is not sound is said in the same words, whoever holds the home.
        grant.grants()?;
        let ask = Ask::Issue(Box::new(grant.clone()));
        self.act(&ask, |runtime| runtime.issue(grant.clone()), read_token)
    }

    /// As [`Runtime::revoke`].
    ///
    /// # Errors
    /// As [`Runtime::revoke`]; [`Error::HolderGone`].
    pub fn revoke(&self, token: TokenId) -> Result<Seq, Error> {
        let here = |runtime: &Runtime| runtime.revoke(token);
        self.link.operate(&Command::Revoke(token), here, read_record)
    }

    /// As [`Runtime::freeze`].
    ///
    /// # Errors
    /// As [`Runtime::freeze`]; [`Error::HolderGone`].
    pub fn freeze(&self, freeze: &Freeze) -> Result<Seq, Error> {
        let here = |runtime: &Runtime| runtime.freeze(freeze);
        self.link.operate(&Command::Freeze(freeze.clone()), here, read_record)
    }

    /// As [`Runtime::read_policy`].
    ///
    /// # Errors
    /// As [`Runtime::read_policy`]; [`Error::Refused`] where only the holder finds a fault in it;
    /// [`Error::HolderGone`].
    pub fn read_policy(&self, document: &[u8]) -> Result<Policy, Error> {
        let ask = Ask::ReadPolicy(document.to_vec());
        let held = |runtime: &Runtime| runtime.read_policy(document).map(drop);
        let read = self.act(&ask, held, read_nothing);
        match (read, engine::parse(document)) {
            (Ok(()) | Err(Error::Refused(_)), Err(error)) => Err(Error::Policy(error)),
            (Ok(()), Ok(policy)) => Ok(policy),
            (Err(error), _) => Err(error),
        }
    }

    /// As [`Runtime::set_policy_object`].
    ///
    /// # Errors
    /// As [`Runtime::set_policy_object`]; [`Error::HolderGone`].
    pub fn set_policy(&self, policy: &PolicyObject) -> Result<Seq, Error> {
        let ask = Ask::Policy(policy.clone());
        self.act(&ask, |runtime| runtime.set_policy_object(policy), read_record)
    }

    /// As [`Runtime::set_shadow_object`].
    ///
    /// # Errors
    /// As [`Runtime::set_shadow_object`]; [`Error::HolderGone`].
    pub fn set_shadow(&self, policy: &PolicyObject) -> Result<Seq, Error> {
        let ask = Ask::Shadow(policy.clone());
        self.act(&ask, |runtime| runtime.set_shadow_object(policy), read_record)
    }

    /// As [`Runtime::clear_shadow`].
    ///
    /// # Errors
    /// As [`Runtime::clear_shadow`]; [`Error::HolderGone`].
    pub fn clear_shadow(&self) -> Result<Seq, Error> {
        self.act(&Ask::NoShadow, Runtime::clear_shadow, read_record)
    }

    /// As [`Runtime::session`]. The session is opened again with each new holder.
    ///
    /// # Errors
    /// As [`Runtime::session`]; [`Error::HolderGone`].
    pub fn session(&self, agent: &str, token: TokenId) -> Result<Caller, Error> {
        Caller::open(&self.link, agent, token)
    }

    /// Takes a session that was [lent](Caller::lend). It ends with this process, or with its
    /// holder: it is not opened again with another.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`NotBound`](syscap_format::reason::Reason::NotBound) where the
    /// ticket opens nothing here, or not any more; [`Error::HolderGone`].
    pub fn take(&self, ticket: &SessionTicket) -> Result<Caller, Error> {
        Caller::take(&self.link, ticket)
    }

    /// As [`Runtime::observe`].
    ///
    /// # Errors
    /// As [`Runtime::observe`]; [`Error::HolderGone`].
    pub fn observe(
        &self,
        caller: &Caller,
        writer: Source,
        inputs: &[Seq],
        changes: Args,
    ) -> Result<Changed, Error> {
        self.observe_from(caller, writer, inputs, None, changes)
    }

    /// As [`Runtime::observe_from`].
    ///
    /// # Errors
    /// As [`Runtime::observe_from`]; [`Error::HolderGone`].
    pub fn observe_from(
        &self,
        caller: &Caller,
        writer: Source,
        inputs: &[Seq],
        base: Option<SnapshotId>,
        changes: Args,
    ) -> Result<Changed, Error> {
        caller.change(writer, inputs.to_vec(), changes.finish(), base)
    }

    /// Offers tools that this process runs itself, until they are withdrawn or it ends; also to
    /// each new holder. As [`Runtime::provide`].
    ///
    /// # Errors
    /// As [`Runtime::provide`]; [`Error::HolderGone`].
    pub fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Error> {
        self.link.provide(tools, provider)
    }

    /// Takes back some of what was offered.
    ///
    /// # Errors
    /// [`Error::HolderGone`]; the tools are not offered again even so.
    pub fn withdraw(&self, tools: &[ToolId]) -> Result<(), Error> {
        self.link.forget(tools);
        let ask = Ask::Withdraw(tools.to_vec());
        self.act(
            &ask,
            |runtime| {
                link::withdraw(runtime, tools);
                Ok(())
            },
            read_nothing,
        )
    }

    /// As [`Runtime::accept`].
    ///
    /// # Errors
    /// As [`Runtime::accept`]; [`Error::HolderGone`].
    pub fn accept(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        let ask = Ask::Accept(tools.to_vec());
        self.act(&ask, |runtime| runtime.accept(tools), read_record)
    }

    /// As [`Runtime::accept_as`].
    ///
    /// # Errors
    /// As [`Runtime::accept_as`]; [`Error::HolderGone`].
    pub fn accept_as(&self, tools: &[(ToolId, ObjectId)]) -> Result<Seq, Error> {
        let ask = Ask::AcceptAs(tools.to_vec());
        self.act(&ask, |runtime| runtime.accept_as(tools), read_record)
    }

    /// As [`Runtime::forget`].
    ///
    /// # Errors
    /// As [`Runtime::forget`]; [`Error::HolderGone`].
    pub fn forget(&self, tools: &[ToolId]) -> Result<Seq, Error> {
        let ask = Ask::Forget(tools.to_vec());
        self.act(&ask, |runtime| runtime.forget(tools), read_record)
    }

    /// As [`Runtime::submit_with`].
    ///
    /// # Errors
    /// As [`Runtime::submit_with`]; [`Error::HolderGone`], after which it may have been done.
    pub fn submit(&self, kind: Kind, control: &Control, beside: &Beside) -> Result<Seq, Error> {
        let submission = Submission { kind, control: control.clone(), beside: beside.clone() };
        let here = |runtime: &Runtime| runtime.submit_with(kind, control.clone(), beside);
        self.act(&Ask::Submit(Box::new(submission)), here, read_record)
    }

    /// Asks for leave to use a tool that the caller runs itself, and tells of afterwards by
    /// [`Access::settle_use`]. The tool is offered by the holder, for those who use it so.
    ///
    /// # Errors
    /// [`Error::BadName`] where the tool's name is that of another; [`Error::Refused`] where there
    /// is no such token, or the holder has no room; [`Error::HolderGone`]. After any of them the
    /// use must not be made.
    pub fn begin_use(
        &self,
        token: TokenId,
        used: &ToolUse,
        manifest: &Manifest,
    ) -> Result<Begun, Error> {
        let begin = || Begin { token, used: used.clone(), manifest: manifest.clone() };
        let here = |runtime: &Runtime| {
            let Begin { token, used, manifest } = begin();
            runtime.desk().begin(runtime, (token, used), manifest)
        };
        self.act_within(self.answer_time, &Ask::Begin(Box::new(begin())), here, read_begun)
    }

    /// Tells what a use came to that was begun with that token; gives the answer that is on
    /// record.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`Reason::UnknownReference`](syscap_format::reason::Reason) where no
    /// such use is out: it was not begun, or with another token, was told of already, or was
    /// given up; [`Error::HolderGone`].
    pub fn settle_use(
        &self,
        token: TokenId,
        used: &ToolUse,
        reported: &Reported,
    ) -> Result<Answer, Error> {
        let settle = Settle { token, used: used.clone(), reported: reported.clone() };
        let here = |runtime: &Runtime| runtime.desk().settle(token, used, reported.clone());
        self.act_within(self.answer_time, &Ask::Settle(Box::new(settle)), here, read_answer)
    }

    /// Lets the kernel notice that time has passed, where this process holds the home.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped.
    pub fn tick(&self) -> Result<(), Error> {
        self.link.tick()
    }

    /// A tool whole: its manifest on record, and what is offered in its place.
    ///
    /// # Errors
    /// [`Error::BadName`] where there is no such tool; [`Error::HolderGone`].
    pub fn tool(&self, tool: &ToolId) -> Result<ToolDetail, Error> {
        let ask = Ask::Tool(tool.clone());
        self.act(&ask, |runtime| ToolDetail::of(runtime, tool), ToolDetail::read)
    }

    /// The manifests on record, in the order of the tools' names: as many as have 8 MiB, which
    /// all delegated ones have not.
    ///
    /// # Errors
    /// [`Error::HolderGone`].
    pub fn manifests(&self, whose: Whose) -> Result<Vec<Manifest>, Error> {
        let here = |runtime: &Runtime| Ok(manifests(runtime, whose));
        self.act(&Ask::Manifests(whose), here, read_manifests)
    }

    /// What there is at present: tools, tokens, sessions, running calls, counters.
    ///
    /// # Errors
    /// [`Error::HolderGone`], or why the home can't be opened or attached to.
    pub fn view(&self) -> Result<View, Error> {
        let here = |runtime: &Runtime| Ok(View::of(runtime));
        self.act_within(self.answer_time, &Ask::View, here, View::read)
    }

    /// Ends it: the sessions end, the tools are withdrawn. Where this process holds the home,
    /// what runs is waited for and then given up, each for some seconds, and the home is closed.
    ///
    /// # Errors
    /// As [`Runtime::close`].
    pub fn close(self) -> Result<(), Error> {
        self.link.close().map(drop)
    }

    /// Does it here, or asks the holder for it.
    fn act<T>(
        &self,
        ask: &Ask,
        here: impl Fn(&Runtime) -> Result<T, Error>,
        read: impl Fn(syscap_format::cbor::Item<'_>) -> Result<T, crate::attach::wire::Broken>,
    ) -> Result<T, Error> {
        self.act_within(Duration::MAX, ask, here, read)
    }

    /// The same. A holder that takes longer is given up.
    fn act_within<T>(
        &self,
        limit: Duration,
        ask: &Ask,
        here: impl Fn(&Runtime) -> Result<T, Error>,
        read: impl Fn(syscap_format::cbor::Item<'_>) -> Result<T, crate::attach::wire::Broken>,
    ) -> Result<T, Error> {
        self.link.each(|up| match &up.seat {
            Seat::Held(held) => Step::Done(here(&held.runtime)),
            Seat::Attached(holder) => holder.ask_within(limit, ask, &read),
        })
    }
}

impl Drop for Access {
    fn drop(&mut self) {
        // Whoever wants to know what comes of it closes it.
        drop(self.link.close());
    }
}
