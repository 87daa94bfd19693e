//! Waiting for a person's answer.

use std::time::{Duration, Instant};

use syscap_format::field::code;
use syscap_format::{AgentId, Seq};
use syscap_kernel::AskStanding;

use crate::runtime::backend::Step;
use crate::runtime::session::Session;
use crate::transport::Ask;
use crate::transport::{Waits, limits};
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

impl From<Option<AskStanding>> for Waited {
    fn from(standing: Option<AskStanding>) -> Self {
        match standing {
            Some(AskStanding::Waits) => Self::Waiting,
            Some(AskStanding::Approved) => Self::Approved,
            Some(AskStanding::Denied) => Self::Denied,
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
    /// [`Error::Closed`] where the home is closed meanwhile; [`Error::NoServer`]; on the agents'
    /// lane [`Error::Refused`]: there the same call, made again, says how it stands.
    pub fn wait(&self, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        self.home.wait(&self.agent, ask, limit)
    }
}

impl Runtime {
    /// The same for a call of any agent's.
    ///
    /// # Errors
    /// As [`Session::wait`].
    pub fn wait(&self, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        self.home.wait(agent, ask, limit)
    }
}

impl crate::runtime::failover::Failover {
    fn wait(&self, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        let since = Instant::now();
        loop {
            let left = limit.saturating_sub(since.elapsed());
            let found = self.each(|up| {
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
            if found != Waited::Waiting || left.is_zero() {
                return Ok(found);
            }
        }
    }
}
