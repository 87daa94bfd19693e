//! Refusals, aggregates of them, repeats.

use syscap_format::{
    AGGREGATE_FIRST, AGGREGATE_MAX, AggregatePhase, Amounts, CallFields, Dimension,
    REFUSALS_IN_A_ROW_MAX, Reason, Refusal, RefusalKind, Refusals, Repeat, Seq, Verdict,
};

use super::{Account, Aggregate, Entry, Fault, Ledger, Row};

impl Default for Row {
    fn default() -> Self {
        Self { refusals: 0, next_max: AGGREGATE_FIRST, aggregate: None }
    }
}

impl Row {
    /// A call was admitted: the row is broken.
    pub(super) fn reset(&mut self) {
        self.refusals = 0;
        self.next_max = AGGREGATE_FIRST;
    }
}

impl Ledger {
    pub(super) fn refusal(&mut self, entry: &mut Entry<'_>, refusal: &Refusal) {
        let call = &refusal.call;
        let consistent = is_consistent(refusal);
        entry.expect(consistent, Fault::RefusalForm);
        // What a record names, the home knew.
        let known = |token| self.accounts.find(&token).is_some();
        entry.expect(call.capability_token_id.is_none_or(known), Fault::UnknownToken);
        let Some(account) = self.fee(entry, call) else {
            return;
        };
        if let Some(account) = account {
            self.asked(entry, account, call);
        }
        if consistent {
            self.could_refuse(entry, refusal, account);
        }
        self.came_from(entry, call);
        self.decided(entry, call);
        self.unkept(entry, call, refusal.reason);
        let row = self.row(call.session);
        row.refusals = row.refusals.saturating_add(1);
        let single = row.refusals <= REFUSALS_IN_A_ROW_MAX && row.aggregate.is_none();
        entry.expect(single, Fault::Aggregate);
        if let Some(account) = account {
            self.accounts.pay(account, &call.used);
        }
    }

    /// The charge of a call that did not run: one of `calls`, as long as its token has one. `None`
    /// where the session is not open.
    pub(super) fn fee(
        &mut self,
        entry: &mut Entry<'_>,
        call: &CallFields,
    ) -> Option<Option<Account>> {
        let Some(number) = call.session else {
            entry.expect(call.used == Amounts::ZERO, Fault::Fee);
            return Some(None);
        };
        let Some(session) = self.sessions.get(&number) else {
            entry.fault(Fault::UnknownSession);
            return None;
        };
        entry.expect(call.agent_id.as_ref() == Some(&session.agent), Fault::NotBound);
        let account = session.account;
        let owed = self.accounts.calls_left(account).min(1);
        entry.expect(call.used == Amounts::ZERO.with(Dimension::Calls, owed), Fault::Fee);
        Some(Some(account))
    }

    /// The row of a session, or of calls of none.
    fn row(&mut self, session: Option<Seq>) -> &mut Row {
        match session.and_then(|session| self.sessions.get_mut(&session)) {
            Some(session) => &mut session.row,
            None => &mut self.unbound,
        }
    }

    pub(super) fn refusals(&mut self, entry: &mut Entry<'_>, refusals: &Refusals) {
        let session = refusals.session.map(|number| self.sessions.get(&number));
        let (account, token) = match session {
            Some(Some(session)) => (Some(session.account), Some(session.token)),
            Some(None) => return entry.fault(Fault::UnknownSession),
            None => (None, None),
        };
        entry.expect(refusals.token == token, Fault::Aggregate);
        match refusals.phase {
            AggregatePhase::Open => self.open_aggregate(entry, refusals, account),
            AggregatePhase::Close => self.close_aggregate(entry, refusals, account),
            AggregatePhase::Overload => {
                let fine = refusals.session.is_none()
                    && refusals.opened.is_none()
                    && refusals.reserved == 0
                    && refusals.count == Some(refusals.answers_max)
                    && refusals.answers_max > 0
                    && refusals.digest.is_some();
                entry.expect(fine, Fault::Aggregate);
            }
        }
    }

    fn open_aggregate(
        &mut self,
        entry: &mut Entry<'_>,
        refusals: &Refusals,
        account: Option<Account>,
    ) {
        let left = account.map_or(0, |account| self.accounts.calls_left(account));
        let row = self.row(refusals.session);
        let Refusals { answers_max, reserved, .. } = *refusals;
        let fine = row.refusals >= REFUSALS_IN_A_ROW_MAX
            && row.aggregate.is_none()
            && answers_max == row.next_max
            && reserved == left.div_ceil(2).min(answers_max)
            && refusals.opened.is_none()
            && refusals.count.is_none()
            && refusals.digest.is_none();
        entry.expect(fine, Fault::Aggregate);
        row.aggregate = Some(Aggregate { opened: entry.seq, answers_max, reserved });
        row.next_max = row.next_max.saturating_mul(4).min(AGGREGATE_MAX);
        if let Some(account) = account {
            self.accounts.pay(account, &Amounts::ZERO.with(Dimension::Calls, reserved));
        }
    }

    fn close_aggregate(
        &mut self,
        entry: &mut Entry<'_>,
        refusals: &Refusals,
        account: Option<Account>,
    ) {
        let Some(open) = self.row(refusals.session).aggregate.take() else {
            return entry.fault(Fault::Aggregate);
        };
        let fine = refusals.opened == Some(open.opened)
            && refusals.answers_max == open.answers_max
            && refusals.reserved == open.reserved
            && refusals.count.is_some_and(|count| (1..=open.answers_max).contains(&count))
            && refusals.digest.is_some();
        entry.expect(fine, Fault::Aggregate);
        let unused = open.reserved.saturating_sub(refusals.count.unwrap_or(u64::MAX));
        if let Some(account) = account {
            self.accounts.refund(account, &Amounts::ZERO.with(Dimension::Calls, unused));
        }
    }

    /// The call's token is the first call's, or renews it.
    fn answers(&self, call: &CallFields, first: Option<Account>) -> bool {
        let token = call.session.and_then(|number| self.sessions.get(&number));
        let token = token.map(|session| session.account);
        token.zip(first).is_some_and(|(token, first)| self.accounts.renews(token, first))
    }

    /// A call that is answered by an earlier outcome had come as far as one that runs, but for its
    /// arguments.
    fn answered_again(&self, entry: &mut Entry<'_>, account: Account, call: &CallFields) {
        let session = call.session.and_then(|number| self.sessions.get(&number));
        let Some((session, tool)) = session.zip(call.tool_id.as_ref()) else {
            return;
        };
        entry.expect(call.capability_token_id == Some(session.token), Fault::NotBound);
        entry.expect(self.accounts.calls_left(account) > 0, Fault::OverBudget);
        self.in_force(entry, account, call);
        self.authority(entry, account, &session.agent, tool);
        let Some(registered) = self.tools.get(tool) else {
            return entry.fault(Fault::Tool);
        };
        entry.expect(call.manifest == Some(registered.id), Fault::Tool);
        self.may_write(entry, account, &registered.manifest);
    }

    pub(super) fn repeat(&mut self, entry: &mut Entry<'_>, repeat: &Repeat) {
        let call = &repeat.call;
        let first = self.finished.get(&repeat.intent).is_some_and(|finished| {
            !self.is_over(repeat.intent, finished.until, entry.time)
                && finished.outcome == repeat.outcome
                && finished.label == repeat.label
                && Some(&finished.agent) == call.agent_id.as_ref()
                && Some(&finished.tool) == call.tool_id.as_ref()
                && self.answers(call, finished.account)
        });
        let whole = call.session.is_some()
            && call.result_hash.is_some()
            && call.call_hash.is_some()
            && call.state_snapshot_id.is_some()
            && call.provenance.is_some()
            && call.args_hash.is_none()
            && call.decision.is_none()
            && call.enforcement.is_none()
            && call.held == Amounts::ZERO;
        entry.expect(first && whole, Fault::RepeatForm);
        let Some(Some(account)) = self.fee(entry, call) else {
            return;
        };
        self.answered_again(entry, account, call);
        self.came_from(entry, call);
        self.decided(entry, call);
        let row = self.row(call.session);
        entry.expect(row.aggregate.is_none(), Fault::Aggregate);
        self.accounts.pay(account, &call.used);
        if let Some(session) = call.session {
            self.given(session, repeat.label);
        }
    }
}

/// Or asks, where a person has said yes: what then stood in the way is told as for any other.
fn lets_through(verdict: Verdict) -> bool {
    matches!(verdict, Verdict::Allow | Verdict::Degrade | Verdict::Ask)
}

/// The refusal's own parts agree.
fn is_consistent(refusal: &Refusal) -> bool {
    let Refusal { call, refusal_kind: kind, reason } = refusal;
    let verdict = call.decision.as_ref().map(|decision| decision.verdict);
    let said = match (kind, reason) {
        (RefusalKind::Control, _) => return *call == CallFields::unknown(),
        (RefusalKind::Asked, Reason::Asked) => verdict == Some(Verdict::Ask),
        (RefusalKind::Deferred, Reason::Deferred) => verdict == Some(Verdict::Defer),
        (RefusalKind::Asked | RefusalKind::Deferred, _) => false,
        (RefusalKind::Refused, Reason::Denied | Reason::Constraint) => {
            verdict == Some(Verdict::Deny)
        }
        (RefusalKind::Refused, Reason::Asked | Reason::Deferred) => false,
        (RefusalKind::Refused, Reason::ApprovalDenied) => verdict == Some(Verdict::Ask),
        (RefusalKind::Refused, Reason::Obligation) => verdict.is_some_and(lets_through),
        (RefusalKind::Refused, Reason::Reduced) => {
            matches!(verdict, Some(Verdict::Degrade | Verdict::Ask))
        }
        // After a policy that let the call through only its budget is asked.
        (
            RefusalKind::Refused,
            Reason::OverBudget | Reason::Exhausted | Reason::ConcurrencyLimit,
        ) => verdict.is_none_or(lets_through),
        // Or the tool could not look at what a person would have been asked about.
        (RefusalKind::Refused, reason) => {
            let looked = reason.is_of_a_look();
            verdict.is_none() || (looked && verdict == Some(Verdict::Ask))
        }
    };
    let whole = call.decision.is_none() || is_whole(call);
    let ran = call.held != Amounts::ZERO || call.enforcement.is_some();
    let named = call.tool_id.is_some() == call.manifest.is_some();
    said && whole && named && !ran && call.result_hash.is_some()
}

/// All is there that a policy is asked about.
const fn is_whole(call: &CallFields) -> bool {
    call.agent_id.is_some()
        && call.policy_hash.is_some()
        && call.state_snapshot_id.is_some()
        && call.capability_token_id.is_some()
        && call.tool_id.is_some()
        && call.args_hash.is_some()
        && call.provenance.is_some()
        && call.call_hash.is_some()
        && call.session.is_some()
        && call.manifest.is_some()
}
