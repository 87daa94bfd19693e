//! Headless mode: decides if calls may wait for a person.

use crate::{approvals::answers::Standing, machine::Kernel};
use syscap_format::{AgentId, Seq, TextHash, UnixMillis};

/// Decides if a call may wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum People {
    /// The kernel looks for an eligible approver.
    There,
    /// No person looks: a request would wait in vain.
    Absent,
}

impl Kernel {
    /// The same kernel where nobody is there to be asked, as in a build: a call that the policy
    /// asks a person about is refused as [`Asked`](syscap_format::Reason::Asked) at once, and none
    /// is put on record to wait. Earlier requests can be answered, and continue, as elsewhere: the
    /// state is the same.
    pub fn headless(mut self) -> Self {
        self.people = People::Absent;
        self
    }
}

/// How a call that a person was asked about stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskStanding {
    /// It waits: nobody has answered, or not everybody who must.
    Waits,
    /// It may run, once the same call is made again.
    Approved,
    /// It may not: the record that says so, and why, where that was said. The text is in the vault
    /// beside that record.
    Denied(Seq, Option<TextHash>),
    /// No person answered in time.
    Expired,
}

impl Kernel {
    /// How a call stands that an agent's session was told to wait for; `None` where there is no
    /// such call of that agent, or it is over: it has run, or what was approved has ended.
    pub fn standing(&self, agent: &AgentId, ask: Seq) -> Option<AskStanding> {
        let (now, durable) = (self.now(), self.durable_seq());
        // Also what has ended, as long as it is known.
        let mut all = self.state.asks.live(UnixMillis::new(0));
        if let Some((_, found)) = all.find(|(seq, _)| *seq == ask) {
            let standing = match found.standing {
                _ if now >= found.expires => AskStanding::Expired,
                Standing::Pending(..) => AskStanding::Waits,
                // Nobody is told of what may not be on record.
                Standing::Granted(by, _) | Standing::Denied(by, _) if by > durable => {
                    AskStanding::Waits
                }
                Standing::Granted(_, until) if now >= until => AskStanding::Expired,
                Standing::Granted(..) => AskStanding::Approved,
                Standing::Denied(by, why) => AskStanding::Denied(by, why),
            };
            return (found.agent == *agent).then_some(standing);
        }
        let set = self.state.sets.live(now).find(|(_, set)| set.ask == ask && set.agent == *agent);
        set.map(|_| AskStanding::Approved)
    }
}
