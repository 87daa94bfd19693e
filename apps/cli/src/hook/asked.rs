//! A use that the policy wants a person to approve: waited for, handed to the client's own prompt,
//! or denied at once.

use std::path::Path;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use syscap::Runtime;
use syscap::approvals::{Waited, answer_in_client};
use syscap::audit::SqliteReader;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, ControlBody as _, Record, Seq,
};
use syscap::kernel::Next;

use super::{Hook, client::Client};

/// The part of the hook's own time that is left for the steps after a wait.
const SPARE: Duration = Duration::from_secs(5);

/// The action when a person is to be asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ask {
    /// Wait for an answer to it, within --patience.
    #[default]
    Wait,
    /// Let the client ask its user, where the policy lets that count; else wait.
    Prompt,
    /// Deny at once: the same use goes on once it was approved.
    Deny,
}

impl Ask {
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Wait => "wait",
            Self::Prompt => "prompt",
            Self::Deny => "deny",
        }
    }
}

/// The result of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// It was answered, or is over: the same use, begun again, goes on or is told why not.
    Answered,
    /// The client's prompt is the approval, on record as that: the client must ask.
    ToTheClient,
    /// It waits still.
    Waits,
}

impl Hook {
    /// The result of a waiting use, within the rest of the hook's own time.
    pub(super) fn taken_up(
        &self,
        access: &Runtime,
        ask: Seq,
        since: Instant,
        notes: &mut Vec<String>,
    ) -> Taken {
        if self.ask == Ask::Prompt && self.in_run {
            // The agent itself would answer there, and no person is expected elsewhere.
            return Taken::Waits;
        }
        if self.ask == Ask::Prompt && self.client.can_ask() && self.counts(access, ask) {
            let (answer, means) = (ApprovalAnswer::Once, ApprovalChannel::ClientPrompt);
            match answer_in_client(&self.home, access, ask, answer, means) {
                Ok(_) => return Taken::ToTheClient,
                Err(error) => notes.push(format!("the client's prompt does not count: {error}")),
            }
        }
        let whole = self.patience.saturating_sub(SPARE);
        let left = whole.saturating_sub(since.elapsed());
        if self.ask == Ask::Deny || left.is_zero() {
            return Taken::Waits;
        }
        match access.wait(&self.agent, ask, left) {
            Ok(Waited::Waiting) => Taken::Waits,
            Ok(_) => Taken::Answered,
            Err(error) => {
                notes.push(format!("how a use stands that waits is not known: {error}"));
                Taken::Waits
            }
        }
    }

    /// True if a person approved this very use: the approval that its intent uses up is for one
    /// call, and not by the client's own window, which is on record before it is shown. An
    /// unreadable record is no approval.
    pub(super) fn is_approved(&self, intent: Seq, notes: &mut Vec<String>) -> bool {
        let approval = match record(&self.home, intent) {
            Ok(Body::Intent(intent)) => intent.approval,
            Ok(_) => None,
            Err(error) => {
                notes.push(format!("who approved a use is not known: {error}"));
                None
            }
        };
        let answer = approval.map(|approval| record(&self.home, approval));
        match answer {
            Some(Ok(Body::Approval(event))) => {
                match ApprovalBody::from_bytes(&event.control.body) {
                    Ok(said) => said.answer == ApprovalAnswer::Once && !said.means.is_a_clients(),
                    Err(_) => false,
                }
            }
            _ => false,
        }
    }

    /// True if the policy lets the client's prompt count for it.
    fn counts(&self, access: &Runtime, ask: Seq) -> bool {
        let (asks, _) = access.waiting().unwrap_or_default();
        asks.iter()
            .any(|call| call.ask == ask && call.means.contains(&ApprovalChannel::ClientPrompt))
    }
}

/// The body of a home's record.
fn record(home: &Path, seq: Seq) -> Result<Body, String> {
    let mut reader = SqliteReader::open(home).map_err(|error| error.to_string())?;
    let mut found = None;
    let read = reader.records(seq, &mut |at, bytes| {
        found = (at == seq).then(|| Record::decode(bytes));
        Next::Enough
    });
    read.map_err(|error| error.to_string())?;
    let record = found.ok_or("there is no such record")?.map_err(|error| error.to_string())?;
    Ok(record.body)
}

impl Client {
    /// True if it can be told to ask its user.
    const fn can_ask(self) -> bool {
        matches!(self, Self::ClaudeCode)
    }
}
