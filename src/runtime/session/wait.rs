//! Waiting for a person's answer.

use std::sync::Arc;
use std::time::{Duration, Instant};

use syscap_format::{AgentId, Reason, Seq};
use syscap_kernel::AskStanding;

use crate::Error;
use crate::driver::bell::Bell;
use crate::runtime::failover::{Failover, Side};
use crate::runtime::session::Session;
use crate::server::Holding;
use crate::transport::client::Step;

/// How long nobody looks whether something has expired.
const LOOK: Duration = Duration::from_millis(250);

/// The outcome of a call that waits for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waited {
    /// It was approved: the same call, made again, goes on.
    Approved,
    /// It was refused: the same call, made again, is told why, where that was said.
    Denied,
    /// No person answered in time. A timeout is not a denial: the same call, made again, asks anew.
    Expired,
    /// There is nothing to wait for any more: it has run, or what was approved has ended, or its
    /// tool has been set anew, or it was never asked. The same call, made again, is decided afresh.
    Over,
    /// It waits still.
    Waiting,
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
    /// [`Error::NotHolder`] where another process holds the home: there the same call, made again,
    /// says how it stands; [`Error::Closed`] where the home is closed meanwhile.
    pub fn wait(&self, ask: Seq, limit: Duration) -> Result<Waited, Error> {
        wait(&self.home, &self.agent, ask, limit)
    }
}

fn wait(home: &Failover, agent: &AgentId, ask: Seq, limit: Duration) -> Result<Waited, Error> {
    let since = Instant::now();
    loop {
        // Nothing of the home is held while this thread sleeps: it can be closed meanwhile.
        let (bell, rung, found) = home.each(|term| match &term.side {
            Side::Here(held) => Step::Done(look(&held.holding, agent, ask)),
            Side::There(_) => Step::Done(Err(Error::NotHolder)),
        })?;
        let left = limit.saturating_sub(since.elapsed());
        if found != Waited::Waiting || left.is_zero() {
            return Ok(found);
        }
        bell.wait(rung, left.min(LOOK));
    }
}

fn look(holding: &Holding, agent: &AgentId, ask: Seq) -> Result<(Arc<Bell>, u64, Waited), Error> {
    let bell = holding.answers();
    let rung = bell.count();
    // The kernel's time is that of its last event.
    holding.tick();
    let mut found = holding.look(|kernel| kernel.standing(agent, ask)).into();
    if matches!(found, Waited::Waiting | Waited::Approved) {
        found = match holding.stands(|view| view.ask == ask) {
            // No yes is taken any more, and none that was given lets it through.
            Err(Error::Refused(why)) if why.reason() == Reason::ToolChanged => Waited::Over,
            stands => stands.map(|()| found)?,
        };
    }
    Ok((bell, rung, found))
}
