//! Reasons: which the kernel could have given, as the log stood.

use syscap_format::{
    CallFields, Enforcement, Outcome, OutcomeFlags, Reason, Refusal, RefusalKind, TokenFlags,
    TxOutcome,
};

use super::{Account, Entry, Fault, Ledger, Open, Phase, Session};

impl Ledger {
    /// Checks that the kernel could have refused this for that reason.
    pub(super) fn could_refuse(
        &self,
        entry: &mut Entry<'_>,
        refusal: &Refusal,
        account: Option<Account>,
    ) {
        let Refusal { call, refusal_kind, reason } = refusal;
        // The kernel closes every session before its shutdown, and takes nothing after that.
        let shut = self.phase == Phase::Shut;
        if *refusal_kind == RefusalKind::Control {
            return entry.expect(is_of_control(*reason, self.phase), Fault::Reason);
        }
        let session = call.session.and_then(|number| self.sessions.get(&number));
        match (session, account) {
            (Some(session), Some(account)) if call.call_hash.is_some() => {
                self.refused_call(entry, refusal, session, account);
            }
            (Some(session), Some(account)) => {
                self.refused_change(entry, refusal, session, account);
            }
            _ => {
                // Of a call without its holder's proof nothing is on record but that it came.
                let unproved = *reason == Reason::BadProof && !shut;
                let call_hash = call.call_hash.filter(|_| unproved);
                let result_hash = call.result_hash;
                let known = CallFields { result_hash, call_hash, ..CallFields::unknown() };
                entry.expect(*call == known, Fault::RefusalForm);
                let due = match call_hash {
                    Some(_) => Reason::BadProof,
                    None if shut => Reason::Closing,
                    None => Reason::NoSession,
                };
                entry.expect(*reason == due, Fault::Reason);
            }
        }
    }

    fn refused_call(
        &self,
        entry: &mut Entry<'_>,
        refusal: &Refusal,
        session: &Session,
        account: Account,
    ) {
        let Refusal { call, reason, .. } = refusal;
        // With a decision the policy is held against the one in force elsewhere, and the reason
        // against the decision.
        if call.decision.is_some() {
            return;
        }
        entry.expect(call.policy_hash == self.policy, Fault::Policy);
        let asked = self.policy.is_some() || *reason == Reason::PolicyNotInForce;
        let named = *reason != Reason::UnknownSnapshot || call.state_snapshot_id.is_none();
        entry.expect(asked && named, Fault::Reason);
        // Whether the call had come so far that it has this hash is checked with its form.
        if call.args_hash.is_some() {
            return entry.expect(is_of_arguments(*reason), Fault::Reason);
        }
        if comes_first(*reason) {
            return;
        }
        entry.expect(call.capability_token_id == Some(session.token), Fault::NotBound);
        let first = self.is_the_stop(entry, refusal, session, account);
        let fine = is_a_stop(*reason) || self.could_look(call, *reason, account);
        entry.expect(first && fine, Fault::Reason);
    }

    /// True if an unstopped call could be refused so before its arguments were resolved: for
    /// the first of these that held.
    fn could_look(&self, call: &CallFields, reason: Reason, account: Account) -> bool {
        let Some(tool) = &call.tool_id else {
            return reason == Reason::UnknownTool;
        };
        let grants =
            self.accounts.body(account).is_some_and(|body| body.grants.get(tool).is_some());
        if !grants {
            return reason == Reason::NotGranted;
        }
        // The kernel's tools may be others than those on record: then it says so afterwards.
        let on_record = self.tools.get(tool).filter(|found| call.manifest == Some(found.id));
        let writes = on_record.map(|found| !found.manifest.effect.is_read_only());
        let only_reads = self.only_reads(account);
        let none_left = self.accounts.calls_left(account) == 0;
        match reason {
            Reason::ReadOnlyToken => only_reads && writes != Some(false),
            _ if only_reads && writes == Some(true) => false,
            Reason::NoRoom | Reason::ToolsMismatch => true,
            Reason::OverBudget => none_left,
            reason => !none_left && comes_before_arguments(reason),
        }
    }

    /// A proposal to change a state.
    fn refused_change(
        &self,
        entry: &mut Entry<'_>,
        refusal: &Refusal,
        session: &Session,
        account: Account,
    ) {
        let Refusal { call, reason, .. } = refusal;
        entry.expect(call.policy_hash == self.policy, Fault::Policy);
        entry.expect(call.capability_token_id == Some(session.token), Fault::NotBound);
        let head = self.heads.get(&session.agent).map(super::Heads::head);
        // One that is not the agent's at all is found elsewhere.
        let heads = self.heads.get(&session.agent);
        let known = call.state_snapshot_id.zip(heads).is_none_or(|(id, heads)| heads.knows(id));
        entry.expect(!known || call.state_snapshot_id == head, Fault::Snapshot);
        let whole = call.args_hash.is_some() && call.tool_id.is_none() && call.decision.is_none();
        entry.expect(whole, Fault::RefusalForm);
        let first = self.is_the_stop(entry, refusal, session, account);
        let fine = is_a_stop(*reason) || self.could_propose(*reason, account);
        entry.expect(first && fine, Fault::Reason);
    }

    /// True if an unstopped change could be refused so: for the first of these that held.
    fn could_propose(&self, reason: Reason, account: Account) -> bool {
        let (only_reads, spent) = (self.only_reads(account), self.accounts.is_exhausted(account));
        let none_left = self.accounts.calls_left(account) == 0;
        match reason {
            Reason::NoRoom => true,
            Reason::ReadOnlyToken => only_reads,
            _ if only_reads => false,
            Reason::Exhausted => spent,
            _ if spent => false,
            Reason::OverBudget => none_left,
            reason => !none_left && is_of_a_change(reason),
        }
    }

    fn only_reads(&self, account: Account) -> bool {
        let body = self.accounts.body(account);
        body.is_some_and(|body| body.flags.has(TokenFlags::READ_ONLY))
    }

    /// A reason which says that the session's token, or its agent, was stopped is the first of
    /// those that held; any other says that none held.
    fn is_the_stop(
        &self,
        entry: &Entry<'_>,
        refusal: &Refusal,
        session: &Session,
        account: Account,
    ) -> bool {
        let Refusal { call, reason, .. } = refusal;
        // Room is asked about before a change of a state looks at the token.
        if call.call_hash.is_none() && *reason == Reason::NoRoom {
            return true;
        }
        let of_tool = call.tool_id.as_ref().map(|tool| self.frozen.tools.contains(tool));
        let frozen = self.frozen.stops_agent(&session.agent) || of_tool == Some(true);
        let said = Some(*reason).filter(|reason| is_a_stop(*reason));
        // A tool that is frozen and that there is no more stands in no record.
        let maybe = of_tool.is_none() && call.call_hash.is_some() && !self.frozen.tools.is_empty();
        let first = |frozen| self.first_stop(entry, account, frozen);
        said == first(frozen) || (maybe && said == first(true))
    }

    /// The stop of a session's work, in the kernel's order.
    fn first_stop(&self, entry: &Entry<'_>, account: Account, frozen: bool) -> Option<Reason> {
        let body = self.accounts.body(account)?;
        let as_of = self.list.map(|(_, as_of)| as_of);
        let fresh = |within| as_of.is_some_and(|as_of| entry.time < as_of.plus(within));
        let fresh = self.accounts.fresh_within(account).is_none_or(fresh);
        let rooted = self.accounts.rooted(account);
        let confirmed = rooted.is_some_and(|rooted| rooted >= self.unconfirmed_before);
        let stops = [
            (self.accounts.is_revoked(account, entry.time), Reason::Revoked),
            (frozen, Reason::Frozen),
            (entry.time >= body.expires, Reason::Expired),
            (entry.time < body.not_before, Reason::NotYetValid),
            (!fresh, Reason::StaleRevocations),
            (!confirmed, Reason::ClockUnconfirmed),
        ];
        stops.into_iter().find(|(holds, _)| *holds).map(|(_, reason)| reason)
    }
}

/// True if it reports a stopped token or agent.
const fn is_a_stop(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::Revoked
            | Reason::Frozen
            | Reason::Expired
            | Reason::NotYetValid
            | Reason::StaleRevocations
            | Reason::ClockUnconfirmed
    )
}

/// True if it may be given before the token was checked: the envelope can't be read, or is not the
/// session's. Later steps give some of these too, and no record tells which step did.
const fn comes_first(reason: Reason) -> bool {
    reason.code() < 200
        || matches!(reason, Reason::BadProof | Reason::NotBound | Reason::PolicyNotInForce)
}

/// True if a permitted call may be refused for it before its arguments are resolved.
const fn comes_before_arguments(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::KeyReused
            | Reason::KeyInFlight
            | Reason::OutcomeUnknown
            | Reason::OutcomeErased
            | Reason::OutcomeLost
            | Reason::UnknownReference
            | Reason::ReferenceErased
            | Reason::BadReference
            | Reason::ReferenceInFlight
            | Reason::UnknownArgument
            | Reason::MissingArgument
            | Reason::BadArgument
            | Reason::PolicyMismatch
            | Reason::UnknownSnapshot
    )
}

/// True if a call whose arguments were resolved may be refused for it before the policy decides.
const fn is_of_arguments(reason: Reason) -> bool {
    reason.is_of_a_plan()
        || matches!(reason, Reason::TooLarge | Reason::PolicyMismatch | Reason::UnknownSnapshot)
}

/// True if it reports the fault of a state change.
const fn is_of_a_change(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::TooDeep
            | Reason::Namespace
            | Reason::BadFact
            | Reason::TooManyFacts
            | Reason::StaleSnapshot
            | Reason::UnknownReference
            | Reason::ReferenceInFlight
    )
}

/// True if a control event, a token or a session may be refused for it.
fn is_of_control(reason: Reason, phase: Phase) -> bool {
    match reason {
        Reason::Closing => phase == Phase::Shut,
        // Who makes a token is told that, before anybody signs it.
        Reason::BadScope => false,
        Reason::TooLarge
        | Reason::NotBound
        | Reason::Revoked
        | Reason::Expired
        | Reason::BadProof
        | Reason::OutOfScope
        | Reason::ToolsMismatch
        | Reason::NoRoom
        | Reason::NoSession => true,
        reason => reason.code() >= 800,
    }
}

impl Open {
    /// True if a run may end so. Of an abandoned run only its hold is known.
    pub(super) fn ends_so(&self, outcome: &Outcome) -> bool {
        let Some(reason) = outcome.reason else {
            return true;
        };
        let nobodys = match reason {
            Reason::NotRun => return outcome.call.enforcement == Some(Enforcement::None),
            Reason::Panicked | Reason::Abandoned => true,
            Reason::TimedOut => outcome.flags.has(OutcomeFlags::RUNNING),
            reason => return reason.is_of_a_run(),
        };
        let tx = if self.effect.is_read_only() { TxOutcome::NoOp } else { TxOutcome::Unknown };
        nobodys && outcome.tx == tx && outcome.call.enforcement == Some(Enforcement::None)
    }
}
