//! A home, whoever serves it.
//!
//! One process holds a home and serves it: by [`Runtime::open`], until it is closed. The others
//! connect to that one, by [`Runtime::connect`] or [`Connect`], and never hold the home: what the
//! server's process runs for them does not end with theirs. Which of the two it is makes no difference
//! to what can be done, but for what asks the kernel itself ([`Runtime::look`] and its like). A command
//! that soon ends does either ([`Runtime::command`]). When a server has gone, its clients look for the
//! next one, for some seconds, or start one where they were given [how](Starter): their tools are
//! offered again and their sessions are opened again, by themselves.
//!
//! A call that was out when the server went is [`Error::HolderGone`]: what it came to stands in
//! the log after the recovery. It is never sent twice. One that an ending server turned away has
//! not begun, and is sent to the next one.
//!
//! Two lanes lead to a holder. The operator's can do everything. On the agents'
//! ([`Runtime::agent`]) a session that an operator opened and lent ([`Session::lend`]) can be
//! taken and called through; all else is refused as
//! [`WrongLane`](syscap_format::Reason::WrongLane). An [`Operator`](crate::Operator) stops
//! a home whatever version its holder is of, and however full.

pub(crate) mod args;
pub(crate) mod backend;
pub(crate) mod connect;
mod control;
pub(crate) mod failover;
pub(crate) mod grant;
pub(crate) mod held;
pub(crate) mod operator;
pub(crate) mod remote;
pub mod resume;
pub(crate) mod session;
pub(crate) mod state;
pub(crate) mod submit;

#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use syscap_format::field::Field;
use syscap_format::{AgentId, Head, HomeId, Manifest, Seq, SnapshotId, Source, TokenId, ToolId};
use syscap_kernel::{Entropy as _, Halt, Kernel};

use crate::inspect::view::{Stamp, TokenDetail, ToolDetail, View, Whose};
use crate::runtime::backend::Step;
use crate::runtime::connect::{Connect, Setup};
use crate::runtime::failover::{Failover, Mode, Open};
use crate::server::Holding;
use crate::server::lend::SessionTicket;
use crate::server::offered::Prefix;
use crate::server::request::Request;
use crate::server::uses::Until;
use crate::tools::host::uses::{Begun, Prompt, Reported, Settled, ToolUse};
use crate::tools::provide::{Offer, Provider};
use crate::transport::client::Entry;
use crate::transport::limits::ANSWER_TIME;
use crate::transport::message::Ticketed;
use crate::transport::{Ask, Begin, Lane, Leave, Looked, OnRecord, Prompted, Settle};
use crate::{AgentState, Args, Changed, Counts, Error, Home, Options, Session, SystemEntropy};

/// A home, served by this process or by another. It can be shared between threads, and cloned: all
/// clones are one handle.
///
/// When the last clone and the last [`Session`] of it are dropped it is closed; what goes wrong
/// with that is lost, so whoever wants to know [closes](Runtime::close) it.
///
/// ```
/// use syscap::prelude::*;
///
/// # fn main() -> Result<(), Error> {
/// # let folder = tempfile::tempdir().expect("a temporary folder");
/// # let home = folder.path().join("home");
/// Runtime::create(&home)?.close()?;
/// let server = Runtime::open(&home)?;
/// let client = Runtime::connect(&home)?;
/// let token = client.issue(Grant::to("a").tools(["echo"]))?;
/// let agent = client.session("a", token)?;
/// assert_eq!(agent.call("echo", args! { "value": "hello" })?.status(), Status::Ok);
/// client.close()?;
/// server.close()
/// # }
/// ```
#[derive(Clone)]
pub struct Runtime {
    home: Arc<Open>,
    id: HomeId,
    /// How long a holder may take over what is asked in haste.
    answer_time: Duration,
}

impl Runtime {
    /// Makes a home in a folder, holds it and serves it, as [`Options::create`] with the defaults.
    ///
    /// # Errors
    /// As [`Options::create`].
    pub fn create(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().create(folder)
    }

    /// Holds a home and serves it, as [`Options::open`] with the defaults.
    ///
    /// # Errors
    /// As [`Options::open`].
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().open(folder)
    }

    /// For a command that soon ends, as [`Options::command`] with the defaults.
    ///
    /// # Errors
    /// As [`Options::command`].
    pub fn command(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Options::new().command(folder)
    }

    /// Connects to the server of a home, as [`Connect`] with the defaults.
    ///
    /// # Errors
    /// As [`Connect::open`].
    pub fn connect(folder: impl AsRef<Path>) -> Result<Self, Error> {
        Connect::to(folder).open()
    }

    /// Connects on the agents' lane. On it a session can be [taken](Runtime::take) that was lent, and
    /// called through; the server refuses everything else.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let home = folder.path().join("home");
    /// let rt = Runtime::create(&home)?;
    /// let ticket = rt.session("a", rt.issue(Grant::to("a").tools(["echo"]))?)?.lend()?;
    /// // In the agent's process, which was given the ticket.
    /// let lane = Runtime::agent(&home)?;
    /// let agent = lane.take(&ticket)?;
    /// assert_eq!(agent.call("echo", args! { "value": "hello" })?.status(), Status::Ok);
    /// assert!(lane.issue(Grant::to("a").tools(["fs.read"])).is_err());
    /// rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Connect::open`].
    pub fn agent(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let entry = Entry::Lane(Lane::Agents);
        let failover = Failover::new(Home::at(folder), Mode::Connect(Setup::default()), entry);
        failover.connect()?;
        Self::by(failover)
    }

    /// Connects to the server; holds the home where there is none.
    pub(crate) fn reach(folder: &Path, options: Options) -> Result<Self, Error> {
        let mode = Mode::Command(Box::new(Mutex::new(options)));
        let failover = Failover::new(Home::at(folder), mode, Entry::Lane(Lane::Operator));
        failover.up()?;
        Self::by(failover)
    }

    /// The runtime of a home that this process holds.
    pub(crate) fn holding(holding: Holding, until: Option<Until>) -> Result<Self, Error> {
        let entry = Entry::Lane(Lane::Operator);
        let failover = Failover::new(holding.home().clone(), Mode::Hold, entry);
        failover.hold(holding, until)?;
        Self::by(failover)
    }

    pub(crate) fn by(failover: Arc<Failover>) -> Result<Self, Error> {
        let id = failover.id().ok_or(Error::HolderGone)?;
        Ok(Self { home: Arc::new(Open(failover)), id, answer_time: ANSWER_TIME })
    }

    /// True if this process holds the home at present.
    #[must_use]
    pub fn is_holder(&self) -> bool {
        self.home.is_holder()
    }

    /// The home's folder, and what lies where in it.
    pub fn home(&self) -> &Home {
        self.home.home()
    }

    /// The home's id.
    pub const fn id(&self) -> HomeId {
        self.id
    }

    /// A look at the kernel: tokens, tools, policy, head.
    ///
    /// # Errors
    /// [`Error::NotHolder`] where another process holds the home; [`Runtime::view`] shows the most
    /// of it from there too.
    pub fn look<T>(&self, look: impl FnOnce(&Kernel) -> T) -> Result<T, Error> {
        self.here(|holding| Ok(holding.look(look)))
    }

    /// The states of all agents that have one: 1,024 at most, and 8 MiB.
    ///
    /// # Errors
    /// [`Error::HolderGone`]; [`Error::Refused`] or [`Error::Holder`] where there are more.
    pub fn states(&self) -> Result<Vec<AgentState>, Error> {
        self.in_haste(Ask::States)
    }

    /// Counters since the home was opened.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn counts(&self) -> Result<Counts, Error> {
        self.in_haste(Ask::Counts)
    }

    /// The head of the durable log: a remote signer names it in an event or a root token.
    ///
    /// # Errors
    /// As [`Runtime::look`].
    pub fn durable(&self) -> Result<Head, Error> {
        self.look(Kernel::durable)?.ok_or(Error::Halted(Halt::Empty))
    }

    /// Opens a session for an agent with a token that is for it. It is opened again with each new
    /// holder.
    ///
    /// # Errors
    /// [`Error::BadName`]; [`Error::Refused`] where there is no such token or it is another
    /// agent's; [`Error::Base`] where the agent's folder can't be made; [`Error::HolderGone`].
    pub fn session(&self, agent: &str, token: TokenId) -> Result<Session, Error> {
        Session::open(&self.home, agent, token)
    }

    /// Takes a session that was [lent](Session::lend). It ends with this process, or with its
    /// holder: it is not opened again with another.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`NotBound`](syscap_format::Reason::NotBound) where the
    /// ticket opens nothing here, or not any more, and as
    /// [`WrongLane`](syscap_format::Reason::WrongLane) where this process holds the home: it
    /// opens sessions, and takes none; [`Error::HolderGone`].
    pub fn take(&self, ticket: &SessionTicket) -> Result<Session, Error> {
        Session::take(&self.home, ticket)
    }

    /// A ticket by which an agent's programs open sessions of their own, each connection one with this
    /// agent and token: at most 16 connections at a time, as long as this process has the home. It is
    /// registered anew with each server. After that it opens nothing, and what it has opened ends.
    ///
    /// Such a program may offer tools under names of these prefixes, 16 at most: for the sessions of
    /// this ticket alone, of a class that is no milder than the prefix's, and 64 new names in all; more of
    /// them, and changed ones, wait for an operator. With `client_runs` it may run them itself too, by
    /// [`Session::begin_use`]: what it did then is its own word.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no such token, it is another agent's, a prefix covers a name
    /// that is another's, or the server has no room; [`Error::HolderGone`]; [`Error::Entropy`].
    pub fn ticket(
        &self,
        agent: &AgentId,
        token: TokenId,
        prefixes: &[Prefix],
        client_runs: bool,
    ) -> Result<SessionTicket, Error> {
        let mut bytes = [0; 32];
        SystemEntropy.fill(&mut bytes)?;
        let ticket = SessionTicket::from_bytes(bytes);
        let (agent, prefixes) = (agent.clone(), prefixes.to_vec());
        let ticketed = Ticketed { ticket: ticket.clone(), agent, token, prefixes, client_runs };
        self.home.register(ticketed)?;
        Ok(ticket)
    }

    /// Writes to the state of a session's agent in somebody's name: a user's `goal.*`, a tool's or
    /// an encoder's `fact.*`. This is the host's word, so agents must not reach it; `inputs` are
    /// records of results released to the session, from which the values come.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn observe(
        &self,
        session: &Session,
        writer: Source,
        inputs: &[Seq],
        changes: Args,
    ) -> Result<Changed, Error> {
        self.observe_from(session, writer, inputs, None, changes)
    }

    /// The same, made from a head that must still be the head, where one is given.
    ///
    /// # Errors
    /// As [`Session::propose`].
    pub fn observe_from(
        &self,
        session: &Session,
        writer: Source,
        inputs: &[Seq],
        base: Option<SnapshotId>,
        changes: Args,
    ) -> Result<Changed, Error> {
        session.change(writer, inputs.to_vec(), changes.finish(), base)
    }

    /// Offers tools that this process runs itself, until they are withdrawn or it ends; also to
    /// each new holder. New tools are put on record in one signed change. If no signer is available
    /// they wait for an operator, as [`Standing::New`](crate::provide::Standing::New). For all
    /// other tools the manifest on record stays. A tool needs no scope: what a delegated run
    /// touches nobody here sees, so its manifest must name no dimensions.
    ///
    /// # Errors
    /// [`Error::Registry`] where two of them share a name; [`Error::TooManyTools`];
    /// [`Error::Refused`], with the reason on record; [`Error::HolderGone`].
    pub fn provide(
        &self,
        tools: Vec<Manifest>,
        provider: Arc<dyn Provider>,
    ) -> Result<Vec<Offer>, Error> {
        self.home.provide(tools, provider)
    }

    /// Takes back some of what was offered.
    ///
    /// # Errors
    /// [`Error::HolderGone`]; the tools are not offered again even so.
    pub fn withdraw(&self, tools: &[ToolId]) -> Result<(), Error> {
        self.home.forget(tools);
        if self.home.is_agents() {
            let tools = tools.to_vec();
            return self.home.each(|up| up.ask(Request::Withdraw(tools.clone()), Duration::MAX));
        }
        self.act(Ask::Withdraw(tools.to_vec()))
    }

    /// Asks for leave to use a tool that the caller runs itself, and tells of afterwards by
    /// [`Runtime::settle_use`]. The tool is offered by the holder, for those who use it so.
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
        let (used, manifest, unasked) = (used.clone(), manifest.clone(), self.home.asks_nobody());
        let begin = Begin { token, used, manifest, unasked };
        let begun = self.in_haste(Ask::Begin(Box::new(begin)));
        begun.map(|leave: Leave| leave.into())
    }

    /// Reports what a use came to that was begun with that token; gives the answer that is on
    /// record. Of a use that was closed before, since its server ended or its time was over, the
    /// report is recorded as late, whatever the token: the use stays charged in full.
    ///
    /// # Errors
    /// [`Error::Refused`] as [`Reason::UnknownReference`](syscap_format::Reason) where no
    /// such use is in flight: it was not begun, or with another token, or was reported already; [`Error::HolderGone`].
    pub fn settle_use(
        &self,
        token: TokenId,
        used: &ToolUse,
        reported: &Reported,
    ) -> Result<Settled, Error> {
        let settle = Settle { token, used: used.clone(), reported: reported.clone() };
        let settled = self.in_haste(Ask::Settle(Box::new(settle)));
        settled.map(|settled: OnRecord| settled.into())
    }

    /// Puts on record what a user said in a conversation with an agent's client, as
    /// [`Session::heard`] does: in the session of [`Runtime::begin_use`], with that token.
    ///
    /// # Errors
    /// [`Error::Refused`] where there is no such token of that agent, the text is empty or too long
    /// ([`Reason::TooLarge`](syscap_format::Reason)), or the holder has no room;
    /// [`Error::HolderGone`].
    pub fn heard(&self, token: TokenId, prompt: &Prompt) -> Result<Seq, Error> {
        let prompted = Prompted { token, prompt: prompt.clone() };
        self.in_haste(Ask::Prompted(Box::new(prompted)))
    }

    /// Lets the kernel notice that time has passed, where this process holds the home.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped.
    pub fn tick(&self) -> Result<(), Error> {
        self.home.tick()
    }

    /// Waits until nobody uses the home any more that this process serves
    /// [as long as it is used](Options::serve_until), for so long at most; true once it is so. Nobody
    /// can connect from then on: close it.
    ///
    /// # Errors
    /// [`Error::NotHolder`] where this process does not serve the home.
    pub fn wait_unused(&self, limit: Duration) -> Result<bool, Error> {
        self.home.wait_unused(limit)
    }

    /// A tool whole, by its id or an alias: its manifest on record, and what is offered in its
    /// place.
    ///
    /// # Errors
    /// [`Error::NoSuch`] where there is no such tool; [`Error::HolderGone`].
    pub fn tool(&self, tool: &ToolId) -> Result<ToolDetail, Error> {
        self.act(Ask::Tool(tool.clone()))
    }

    /// The delegated tools as they are on record; for each, how every offer of it stands, with
    /// the manifest that was offered.
    ///
    /// # Errors
    /// As [`Runtime::look`].
    pub fn delegated(&self) -> Result<Vec<(Manifest, Vec<Offer>)>, Error> {
        self.here(|holding| Ok(holding.delegated()))
    }

    /// The manifests on record, in the order of the tools' names: as many as have 8 MiB, which
    /// all delegated ones have not.
    ///
    /// # Errors
    /// [`Error::HolderGone`].
    pub fn manifests(&self, whose: Whose) -> Result<Vec<Manifest>, Error> {
        self.act(Ask::Manifests(whose))
    }

    /// The present state: tools, tokens, sessions, running calls, counters.
    ///
    /// # Errors
    /// [`Error::HolderGone`], or why the home can't be opened or attached to.
    pub fn view(&self) -> Result<View, Error> {
        self.in_haste(Ask::View)
    }

    /// The same, of the tokens and sessions only one agent's; and that token, however old it is.
    /// Looked for are the newest 65,536 tokens of the home. It leaves out the freezes of other
    /// agents.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn view_of(&self, agent: &AgentId, token: Option<TokenId>) -> Result<View, Error> {
        let looked = Looked { agent: agent.clone(), token };
        self.in_haste(Ask::ViewOf(Box::new(looked)))
    }

    /// The tokens whose ids begin with these hexadecimal digits, whole: two of them at most. Of a part
    /// of an id the newest 65,536 tokens of the home are looked through.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn tokens(&self, digits: &str) -> Result<Vec<TokenDetail>, Error> {
        self.in_haste(Ask::Tokens(digits.to_owned()))
    }

    /// The token by which whoever had another goes on: the newest of the same agent that
    /// [renews](crate::Grant::renews) it, over any number of steps, grants no more than it, and can be
    /// used. Without such a one it is one that was not revoked and ends when that one does, as what
    /// stands for a token that is being [replaced](crate::view::TokenDetail::replaced_by); else `None`.
    /// Looked for are the newest 65,536 tokens of the home.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn successor(&self, token: TokenId) -> Result<Option<TokenDetail>, Error> {
        self.in_haste(Ask::Successor(token))
    }

    /// A number that changes with each record of tools or tokens: a cheap check for news.
    ///
    /// # Errors
    /// As [`Runtime::view`].
    pub fn stamp(&self) -> Result<Stamp, Error> {
        self.in_haste(Ask::Stamp)
    }

    /// Ends it: the sessions end, the tools are withdrawn. If this process holds the home, it waits
    /// for the runs in flight, then abandons them, each for some seconds, and closes the home. From
    /// then on every call by any handle is an error.
    ///
    /// A run that still continues then can't be stopped. While it does, the process holds the home,
    /// and opening it fails as [`Locked`](syscap_kernel::StoreError::Locked): who opens it takes
    /// what is open for ended. The last run that comes back is recorded, where the kernel has not
    /// stopped, and frees the home; so does the end of the process, and then the next boot finds
    /// open what had not come back.
    ///
    /// # Errors
    /// [`Error::Halted`] or [`Error::Home`] where the kernel has stopped.
    pub fn close(&self) -> Result<(), Error> {
        self.home.close().map(drop)
    }

    /// Does what only the kernel itself can be asked.
    pub(crate) fn here<T>(
        &self,
        act: impl FnOnce(&Holding) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut act = Some(act);
        self.home.each(|up| match (up.held(), act.take()) {
            (Some(held), Some(act)) => {
                let _working = held.works();
                Step::Done(act(&held.holding))
            }
            _ => Step::Done(Err(Error::NotHolder)),
        })
    }

    /// Asks for something that an operator may ask for.
    pub(crate) fn act<T: Field>(&self, ask: Ask) -> Result<T, Error> {
        self.act_within(Duration::MAX, ask)
    }

    /// The same. A holder that takes longer is given up.
    fn act_within<T: Field>(&self, limit: Duration, ask: Ask) -> Result<T, Error> {
        self.home.each(|up| up.ask(ask.clone(), limit))
    }

    /// Asks for something in haste.
    pub(crate) fn in_haste<T: Field>(&self, ask: Ask) -> Result<T, Error> {
        self.act_within(self.answer_time, ask)
    }
}
