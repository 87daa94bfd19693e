//! The kinds of records.

use crate::field::code;

code! {
    /// The kind of a record. A home that holds a reserved one is not opened.
    pub enum RecordKind {
        /// The log begins.
        Genesis = 1 "genesis",
        /// A role gets another key.
        Key = 2 "key",
        /// A kernel opened the home.
        Boot = 3 "boot",
        /// A kernel closed the home.
        Shutdown = 4 "shutdown",
        /// A token was registered.
        Issue = 5 "issue",
        /// A session was opened or closed.
        Session = 6 "session",
        /// Tokens were revoked.
        Revoke = 7 "revoke",
        /// A freeze began or ended.
        Freeze = 8 "freeze",
        /// Another policy is in force.
        Policy = 9 "policy",
        /// The tools are others.
        Tools = 10 "tools",
        /// The configuration changed.
        Config = 11 "config",
        /// A user's message to an agent.
        Input = 12 "input",
        /// An agent's state changed.
        State = 13 "state",
        /// Reserved: a label was lowered.
        Declassify = 14 "declassify",
        /// A call waits for a person.
        Ask = 15 "ask",
        /// A person's answer.
        Approval = 16 "approval",
        /// The host posted usage after the fact.
        Charge = 17 "charge",
        /// A call is about to run.
        Intent = 18 "intent",
        /// The outcome of a call.
        Outcome = 19 "outcome",
        /// A call, or a control event, was refused.
        Refusal = 20 "refusal",
        /// A run of refusals begins or ends, in one record each.
        Refusals = 21 "refusals",
        /// A call repeated an idempotency key and got the first outcome.
        Repeat = 22 "repeat",
        /// A call was cancelled.
        Cancel = 23 "cancel",
        /// A run that was given up came back.
        Late = 24 "late",
        /// An intent was found open at boot, or an operator says what became of it.
        Recovery = 25 "recovery",
        /// Payloads were erased.
        Redact = 26 "redact",
        /// Reserved: old records were dropped.
        Prune = 27 "prune",
        /// Reserved: the tree was signed.
        Checkpoint = 28 "checkpoint",
        /// An operator gave an agent credits.
        Credit = 29 "credit",
    }
}

impl RecordKind {
    /// True if all records of this kind may have a row in the vault; of two more kinds
    /// [some](crate::Body::may_have_row) may.
    #[must_use]
    pub const fn may_have_row(self) -> bool {
        matches!(
            self,
            Self::Intent
                | Self::Outcome
                | Self::Refusal
                | Self::Repeat
                | Self::State
                | Self::Ask
                | Self::Approval
                | Self::Input
                | Self::Revoke
                | Self::Cancel
                | Self::Redact
        )
    }
}
