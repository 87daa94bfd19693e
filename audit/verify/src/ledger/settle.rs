//! Outcomes and late returns.

use syscap_format::{
    Amounts, Dimension, Label, Late, LateReport, Outcome, OutcomeFlags, Reason, Recovered, Seq,
    Status, TxOutcome,
};

use super::{Entry, Fault, Finished, Ledger, Open, Slot, Unreported, more};

impl Ledger {
    pub(super) fn outcome(&mut self, entry: &mut Entry<'_>, outcome: Outcome) {
        let Some(open) = self.open.remove(&outcome.intent) else {
            return entry.fault(Fault::NoIntent);
        };
        entry.expect(open.is_of(&outcome.call), Fault::OutcomeCall);
        entry.expect(is_consistent(&outcome) && open.ends_so(&outcome), Fault::OutcomeForm);
        let effect = matches!(outcome.tx, TxOutcome::Committed | TxOutcome::RolledBack);
        entry.expect(!(effect && open.effect.is_read_only()), Fault::OutcomeForm);
        let (held, used) = (&open.call.held, &outcome.call.used);
        // Time can only be measured after the fact; all else is counted before it is used.
        let overspent = pairs(used, held).any(|(d, used, held)| !d.is_measured() && used > held);
        entry.expect(!overspent && used.get(Dimension::Concurrent) == 0, Fault::Overspent);
        entry.expect(pays_enough(&outcome, held), Fault::Undercharged);
        entry.expect(outcome.flags == self.flags(entry, &open, &outcome), Fault::OutcomeFlags);
        self.settle(&open, &outcome);
        // What did not run brought nothing; what ran, what its tool brings, and the label of what
        // the tool kept earlier.
        let (due, is_due) = match outcome.reason {
            Some(Reason::NotRun) => (Label::PUBLIC, outcome.label == Label::PUBLIC),
            _ => (open.label, open.label.leq(outcome.label)),
        };
        entry.expect(is_due, Fault::Label);
        let label = if is_due { outcome.label } else { due };
        // Of a session that has ended as well: its agent may repeat the call, or look at its result.
        if let Some(account) = open.account {
            self.accounts.give(account, label);
        }
        if let Some(session) = open.call.session.and_then(|seq| self.sessions.get_mut(&seq)) {
            session.is_given(label);
            if outcome.is_of_the_tool() {
                session.release(entry.seq);
            }
        }
        if outcome.may_be_reported() {
            self.unreported(outcome.intent, &open);
        }
        if let Some(slot) = open.slot {
            match (outcome.reason, outcome.tx) {
                (Some(Reason::NotRun), _) => drop(self.keys.remove(&slot)),
                (_, TxOutcome::Unknown) => {}
                _ => {
                    let used = self.keys.get_mut(&slot);
                    let until = used.map_or(entry.time, |used| {
                        used.ended = true;
                        used.until
                    });
                    let (agent, tool, _) = slot;
                    let (outcome_seq, account) = (entry.seq, open.account);
                    let finished =
                        Finished { until, outcome: outcome_seq, label, agent, tool, account };
                    self.finished.insert(outcome.intent, finished);
                }
            }
        }
    }

    /// Frees what was held and charges what was used.
    fn settle(&mut self, open: &Open, outcome: &Outcome) {
        let Some(account) = open.account else {
            return;
        };
        let mut freed = open.call.held;
        if outcome.flags.has(OutcomeFlags::RUNNING) {
            // It may still run: its slot stays taken.
            freed = freed.with(Dimension::Concurrent, 0);
            self.running.insert(outcome.intent, (account, open.slot.clone()));
        }
        self.accounts.free(account, &freed);
        self.accounts.pay(account, &outcome.call.used);
        if let Some(agent) = &open.call.agent_id {
            self.credits.free(agent, outcome.intent, &freed);
            self.credits.pay(agent, outcome.intent, &outcome.call.used);
        }
        if outcome.flags.has(OutcomeFlags::OVERRUN) {
            self.accounts.exhaust(account);
        }
    }

    /// The flags that the outcome must have.
    fn flags(&self, entry: &Entry<'_>, open: &Open, outcome: &Outcome) -> OutcomeFlags {
        let (held, used) = (&open.call.held, &outcome.call.used);
        let overrun = pairs(used, held).any(|(d, used, held)| d.is_measured() && used > held);
        let is_revoked = |account| self.accounts.is_revoked(account, entry.time);
        let revoked = open.account.is_some_and(is_revoked);
        let frozen = match (&open.call.agent_id, &open.call.tool_id) {
            (Some(agent), Some(tool)) => self.frozen.stops(agent, tool),
            _ => false,
        };
        // A tool may say by itself that something timed out: then it is back.
        let running =
            outcome.reason == Some(Reason::TimedOut) && outcome.flags.has(OutcomeFlags::RUNNING);
        let given_back = outcome.reason == Some(Reason::NotRun)
            && outcome.flags.has(OutcomeFlags::GIVEN_BACK)
            && !revoked
            && !frozen
            && !open.cancelled;
        // A tool's own word, which only comes with what it delivered.
        let tool_failed =
            outcome.status == Status::Ok && outcome.flags.has(OutcomeFlags::TOOL_FAILED);
        let when = |holds, flag| if holds { flag } else { OutcomeFlags::default() };
        when(overrun, OutcomeFlags::OVERRUN)
            .and(when(revoked, OutcomeFlags::REVOKED))
            .and(when(frozen && !revoked, OutcomeFlags::FROZEN))
            .and(when(running, OutcomeFlags::RUNNING))
            .and(when(given_back, OutcomeFlags::GIVEN_BACK))
            .and(when(open.cancelled, OutcomeFlags::CANCELLED))
            .and(when(tool_failed, OutcomeFlags::TOOL_FAILED))
    }

    pub(super) fn late(&mut self, entry: &mut Entry<'_>, late: &Late) {
        // One that broke off brought nothing, and nobody says what it did.
        let broke_off = late.status == Status::Error && late.tx == TxOutcome::Unknown;
        entry.expect(late.result_hash.is_some() || broke_off, Fault::LateForm);
        match self.running.remove(&late.intent) {
            Some((account, key)) => {
                let slot = Amounts::ZERO.with(Dimension::Concurrent, 1);
                self.accounts.free(account, &slot);
                self.key_after(verdict(late.tx), key);
            }
            None => entry.fault(Fault::LateForm),
        }
    }

    /// A run was closed without its provider's word, who may still report it.
    pub(super) fn unreported(&mut self, intent: Seq, open: &Open) {
        let (account, effect, slot) = (open.account, open.effect, open.slot.clone());
        let run = Unreported { account, slot, tool: open.call.tool_id.clone(), effect };
        self.unreported.insert(intent, run);
        while more(0, self.unreported.len()) > self.limits.in_flight_max {
            self.unreported.pop_first();
        }
    }

    /// A run that was closed without its provider's word was reported.
    pub(super) fn late_report(&mut self, entry: &mut Entry<'_>, report: &LateReport) {
        let Some(run) = self.unreported.remove(&report.intent) else {
            return entry.fault(Fault::LateForm);
        };
        let effect = matches!(report.tx, TxOutcome::Committed | TxOutcome::RolledBack);
        entry.expect(!(effect && run.effect.is_read_only()), Fault::LateForm);
        let tool = run.tool.and_then(|tool| self.tools.get(&tool));
        let due = tool.map_or(Label::UNTRUSTED, |tool| tool.manifest.label);
        entry.expect(due.leq(report.label), Fault::Label);
        let verdict = verdict(report.tx);
        if verdict != Recovered::Unknown {
            self.unknown.remove(&report.intent);
            // Nobody has said meanwhile what became of it.
            let is_its = |slot: &Slot| {
                self.keys.get(slot).is_some_and(|used| used.intent == report.intent && !used.ended)
            };
            let slot = run.slot.filter(is_its);
            self.key_after(verdict, slot);
        }
        if let Some(account) = run.account {
            self.accounts.give(account, due.join(report.label));
        }
    }
}

/// What a report of its effect makes of a call.
const fn verdict(tx: TxOutcome) -> Recovered {
    match tx {
        TxOutcome::Committed => Recovered::Done,
        TxOutcome::RolledBack | TxOutcome::NoOp => Recovered::NotDone,
        TxOutcome::Unknown => Recovered::Unknown,
    }
}

/// The outcome's own parts agree.
fn is_consistent(outcome: &Outcome) -> bool {
    let call = &outcome.call;
    let delivered = call.result_hash.is_some() && call.enforcement.is_some();
    let error = outcome.status == Status::Error;
    let not_run = outcome.reason == Some(Reason::NotRun);
    let why = [
        OutcomeFlags::REVOKED,
        OutcomeFlags::FROZEN,
        OutcomeFlags::GIVEN_BACK,
        OutcomeFlags::CANCELLED,
    ];
    let stopped = why.into_iter().any(|why| outcome.flags.has(why));
    delivered
        && error == outcome.reason.is_some()
        && (!not_run || (stopped && outcome.tx == TxOutcome::NoOp))
}

/// A call that ran pays for itself, and in full where what it did is not known; one that did not
/// run pays nothing.
fn pays_enough(outcome: &Outcome, held: &Amounts) -> bool {
    let used = &outcome.call.used;
    if outcome.reason == Some(Reason::NotRun) {
        return *used == Amounts::ZERO;
    }
    let given_up = outcome.flags.has(OutcomeFlags::RUNNING)
        || matches!(outcome.reason, Some(Reason::Panicked | Reason::Abandoned));
    let in_full = given_up || outcome.tx == TxOutcome::Unknown;
    let mut counted =
        pairs(used, held).filter(|(d, ..)| !d.is_measured() && *d != Dimension::Concurrent);
    let paid = !in_full || counted.all(|(_, used, held)| used == held);
    paid && used.get(Dimension::Calls) == 1
}

/// Each dimension with both amounts.
fn pairs(used: &Amounts, held: &Amounts) -> impl Iterator<Item = (Dimension, u64, u64)> {
    used.iter().zip(held.iter()).map(|((dimension, used), (_, held))| (dimension, used, held))
}
