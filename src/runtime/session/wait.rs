//! Waiting for a person's answer.

use std::time::{Duration, Instant};

use syscap_format::field::{code, shape};
use syscap_format::{AgentId, Reason, Refused, Seq};
use syscap_kernel::AskStanding;

use crate::runtime::backend::Step;
use crate::runtime::session::Session;
use crate::server::request::Request;
use crate::transport::message::Awaited;
use crate::transport::{Ask, Waits, limits};
use crate::{Error, Runtime};

code! {
    /// The outcome of a call that waits for a person.
    pub enum Waited {
        /// It was approved: the same call, made again, goes on.
        Approved = 1 "approved",
        /// It was refused: the same call, made again, is told why, where that was said.
        Denied = 2 "denied",
        /// No person answered in time. A timeout is not a denial: the same call, made again, asks
        /// anew.
        Expired = 3 "expired",
        /// There is nothing to wait for any more: it has run, or what was approved has ended, or its
        /// tool has been set anew, or it was never asked. The same call, made again, is decided
        /// afresh.
        Over = 4 "over",
        /// It waits still.
        Waiting = 5 "waiting",
    }
}

shape! {
    /// How a call stands that waited for a person.
    pub struct Stands {
        /// What became of it.
        1 => pub waited: Waited,
        /// Why it was refused, where the person said so.
        2 => pub why: Option<String>,
    }
}

impl From<Option<AskStanding>> for Waited {
    fn from(standing: Option<AskStanding>) -> Self {
        match standing {
            Some(AskStanding::Waits) => Self::Waiting,
            Some(AskStanding::Approved) => Self::Approved,
            Some(AskStanding::Denied(..)) => Self::Denied,
            Some(AskStanding::Expired) => Self::Expired,
            None => Self::Over,
        }
    }
}

impl Session {
    /// Waits until a person has answered a call of this agent's that
    /// [waits](syscap_format::ToolResult::ask), for so long at most. To go on, make the
    /// same call again: the same tool and arguments, in this session or another of the agent's. It
    /// is decided afresh, uses the approval up, and pays one of `calls` as any other does; waiting
    /// pays nothing.
    ///
    /// ```
    /// use syscap::format::{ApprovalAnswer, EffectClass};
    /// use syscap::host::HostTool;
    /// use syscap::{approvals::Waited, prelude::*};
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// let mail = HostTool::new("mail.send", EffectClass::ExternalWrite)?.run(|_| Ok("sent"));
    /// let rt = Options::new().tool(mail)?.create(folder.path().join("home"))?;
    /// let agent = rt.session("a", rt.issue(Grant::to("a").tools(["mail.send"]))?)?;
    /// let ask = agent.call("mail.send", args! {})?.ask().expect("the policy asks a person");
    /// assert_eq!(agent.wait(ask, Duration::ZERO)?, Waited::Waiting);
    /// // A person approves: by `syscap approvals approve`, or here.
    /// rt.answer(ask, ApprovalAnswer::Once, None)?;
    /// if agent.wait(ask, Duration::from_secs(3_600))? == Waited::Approved {
    ///     assert_eq!(agent.call("mail.send", args! {})?.text()?, "sent");
    /// }
    /// # rt.close()
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::Closed`] where the home is closed meanwhile; [`Error::NoServer`].
    pub fn wait(&self, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        self.standing(ask, limit).map(|stands| stands.waited)
    }

    /// The same, and why the person refused it.
    ///
    /// # Errors
    /// As [`Session::wait`].
    pub fn standing(&self, ask: Seq, limit: Duration) -> Result<Stands, Error> {
        if !self.home.is_agents() {
            return self.home.wait(&self.agent, ask, limit);
        }
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            let step = u64::try_from(left.min(limits::AGENTS_WAIT_TIME).as_millis());
            let step = step.unwrap_or(u64::MAX);
            let wait = |session| Request::Wait(Awaited { session, ask, limit: step });
            let found: Stands = self.told(wait)?;
            if found.waited != Waited::Waiting || left.is_zero() {
                return Ok(found);
            }
        }
    }
}

impl Runtime {
    /// The same for a call of any agent's.
    ///
    /// # Errors
    /// As [`Session::wait`].
    pub fn wait(&self, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        self.home.wait(agent, ask, limit).map(|stands| stands.waited)
    }
}

impl crate::runtime::failover::Failover {
    fn wait(&self, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Stands, Error> {
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            let found: Stands = self.each(|up| {
                // A home of this process can be closed meanwhile: it waits for what it does itself.
                let most = match up.held() {
                    None => limits::WAIT_TIME,
                    Some(_) => limits::OWN_WAIT_TIME,
                };
                let step = u64::try_from(left.min(most).as_millis()).unwrap_or(u64::MAX);
                let waits = Waits { agent: agent.clone(), ask, limit: step };
                match up.ask(Ask::Wait(waits), Duration::MAX) {
                    // Nothing was changed: the next server can be asked.
                    Step::Done(Err(Error::HolderGone)) => Step::Again,
                    step => step,
                }
            })?;
            if found.waited != Waited::Waiting || left.is_zero() {
                return Ok(found);
            }
        }
    }
}

impl Awaited {
    /// For how long it waits.
    pub(crate) fn limit(&self) -> Result<Duration, Refused> {
        let most = limits::AGENTS_WAIT_TIME;
        let limit = Duration::from_millis(self.limit);
        if limit > most {
            let refused = Refused::new(Reason::TooLarge).field("limit").got(&self.limit);
            return Err(refused.allowed(&format_args!("at most {} ms", most.as_millis())));
        }
        Ok(limit)
    }
}

impl Waits {
    /// For how long it waits: a longer wait is asked for anew.
    pub(crate) fn limit(&self) -> Duration {
        Duration::from_millis(self.limit).min(limits::WAIT_TIME)
    }
}
