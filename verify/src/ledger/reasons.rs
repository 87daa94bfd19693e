//! Reasons: which the kernel could have given, as the log stood.

use syscap_format::{
    envelope::TxOutcome,
    manifest::Enforcement,
    reason::Reason,
    record::{CallFields, Outcome, OutcomeFlags, Refusal, RefusalKind},
    token::TokenFlags,
};

use super::{Account, Entry, Fault, Ledger, Open, Phase, Session};

impl Ledger {
    /// Whether the kernel could have refused this for that reason.
    pub(super) fn could_refuse(
        &self,
        entry: &mut Entry<'_>,
        refusal: &Refusal,
        account: Option<Account>,
    ) {
        let Refusal { call, refusal_kind, reason } = refusal;
        // The kernel closes every session before its shutdown, and takes nothing after that.
        let shut = self.phase == Phase::Shut;
        if *reason == Reason::Closing && !shut {
            return entry.fault(Fault::Reason);
        }
        if *refusal_kind == RefusalKind::Control {
            return entry.expect(is_of_control(*reason), Fault::Reason);
        }
        let session = call.session.and_then(|number| self.sessions.get(&number));
        match (session, account) {
            (Some(session), Some(account)) if call.call_hash.is_some() => {
                self.refused_call(entry, refusal, (session, account));
            }
            (Some(session), Some(account)) => {
                self.refused_change(entry, refusal, (session, account));
            }
            _ => {
                // Of a call without its holder's proof nothing is on record but that it came.
                let call_hash = call.call_hash.filter(|_| *reason == Reason::BadProof);
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
        (session, account): (&Session, Account),
    ) {
        let Refusal { call, reason, .. } = refusal;
        // With a decision the policy is held against the one in force elsewhere.
        let in_force = call.decision.is_some() || call.policy_hash == self.policy;
        entry.expect(in_force, Fault::Policy);
        let asked = self.policy.is_some() || *reason == Reason::PolicyNotInForce;
        entry.expect(asked && is_of_a_call(*reason), Fault::Reason);
        // From there on the arguments were resolved: a tool may say why it makes no plan.
        if call.args_hash.is_some() || comes_first(*reason) {
            return;
        }
        entry.expect(call.capability_token_id == Some(session.token), Fault::NotBound);
        let fine = self.is_the_stop(entry, refusal, (session, account));
        let granted = call.tool_id.as_ref().is_some_and(|tool| {
            self.accounts.body(account).is_some_and(|body| body.grants.get(tool).is_some())
        });
        let calls = self.accounts.calls_left(account);
        let fine = fine
            && match reason {
                Reason::UnknownTool => call.tool_id.is_none(),
                Reason::NotGranted => call.tool_id.is_some() && !granted,
                Reason::ReadOnlyToken => granted && self.only_reads(account),
                Reason::OverBudget => granted && calls == 0,
                Reason::UnknownSnapshot => granted && call.state_snapshot_id.is_none(),
                reason if is_a_stop(*reason) => true,
                _ => granted,
            };
        entry.expect(fine, Fault::Reason);
    }

    /// A proposal to change a state.
    fn refused_change(
        &self,
        entry: &mut Entry<'_>,
        refusal: &Refusal,
        (session, account): (&Session, Account),
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
        let stopped = self.is_the_stop(entry, refusal, (session, account));
        let fine = match reason {
            Reason::ReadOnlyToken => self.only_reads(account),
            Reason::Exhausted => self.accounts.is_exhausted(account),
            Reason::OverBudget => self.accounts.calls_left(account) == 0,
            Reason::TooDeep
            | Reason::Namespace
            | Reason::BadFact
            | Reason::TooManyFacts
            | Reason::StaleSnapshot
            | Reason::UnknownReference
            | Reason::ReferenceInFlight
            | Reason::NoRoom => true,
            reason => is_a_stop(*reason),
        };
        entry.expect(fine && stopped, Fault::Reason);
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
        (session, account): (&Session, Account),
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

    /// What stops a session's work, as the kernel looks at it.
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

/// Whether it says that a token, or an agent, was stopped.
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

/// Whether it may be given before the token was looked at: the envelope is no call, or another's.
const fn comes_first(reason: Reason) -> bool {
    reason.code() < 200
        || matches!(reason, Reason::BadProof | Reason::NotBound | Reason::PolicyNotInForce)
}

/// Whether a control event, a token or a session may be refused for it.
const fn is_of_control(reason: Reason) -> bool {
    reason.code() >= 800
        || matches!(
            reason,
            Reason::TooLarge
                | Reason::NotBound
                | Reason::Revoked
                | Reason::Expired
                | Reason::BadProof
                | Reason::OutOfScope
                | Reason::ToolsMismatch
                | Reason::NoRoom
                | Reason::Closing
                | Reason::NoSession
        )
}

/// Whether a call of an open session may be refused for it. Not for what only a control event, a
/// change of a state, a run or another lane meets.
const fn is_of_a_call(reason: Reason) -> bool {
    // A tool may say of its plan that the token can't be handed on.
    (reason.code() < 800 || matches!(reason, Reason::NoDelegation))
        && !matches!(
            reason,
            Reason::WrongLane
                | Reason::Namespace
                | Reason::BadFact
                | Reason::TooManyFacts
                | Reason::StaleSnapshot
                | Reason::Overloaded
                | Reason::Closing
                | Reason::NoSession
                | Reason::TimedOut
                | Reason::NotRun
                | Reason::Abandoned
        )
}

impl Open {
    /// Whether a run may end so. Of one that the host gave up nothing is known but what it held.
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
