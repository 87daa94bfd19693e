//! Decisions: what they must hold, on which head they were made, what the shadow said beside
//! them, and what they ask of a run.

use syscap_format::{
    AgentId, Amounts, CallFields, Decision, Dimension, MATCHES_MAX, Manifest,
    OBLIGATION_NAME_BYTES_MAX, OBLIGATIONS_MAX, Obligation, ObligationKind, Reason, Seq, Verdict,
};

use super::{Account, Entry, Fault, Ledger};

impl Ledger {
    /// The agent of a session; where there is none, the one that the call names.
    fn agent_of<'a>(&'a self, call: &'a CallFields) -> Option<&'a AgentId> {
        let session = call.session.and_then(|number: Seq| self.sessions.get(&number));
        session.map(|session| &session.agent).or(call.agent_id.as_ref())
    }

    /// The named snapshot, the head and the shadow of a call; and its decision, if there is one.
    pub(super) fn decided(&self, entry: &mut Entry<'_>, call: &CallFields) {
        let heads = self.agent_of(call).and_then(|agent| self.heads.get(agent));
        let named = call.state_snapshot_id;
        let known = |named| heads.is_some_and(|heads| heads.knows(named));
        entry.expect(named.is_none_or(known), Fault::Snapshot);
        let Some(decision) = &call.decision else {
            entry.expect(call.head.is_none(), Fault::Head);
            return entry.expect(call.shadow.is_none(), Fault::Shadow);
        };
        entry.expect(is_sound(decision), Fault::Decision);
        // Nothing can be said of the head of a call that names none of the agent's.
        if let (Some(named), Some(heads)) = (named.filter(|named| known(*named)), heads) {
            let head = heads.head();
            entry.expect(call.head == (head != named).then_some(head), Fault::Head);
        }
        let shadow = call.shadow.as_ref();
        let asked = shadow.map(|shadow| shadow.policy) == self.shadow;
        entry.expect(asked && shadow.is_none_or(|said| is_sound(&said.decision)), Fault::Shadow);
    }

    /// For a refused call whose arguments were resolved: it had reached the policy. The token was
    /// live and granted the tool, as for a call that ran; and the policy was in force, where it was
    /// asked.
    pub(super) fn asked(&self, entry: &mut Entry<'_>, account: Account, call: &CallFields) {
        let session = call.session.and_then(|number| self.sessions.get(&number));
        let resolved = call.args_hash.is_some() && call.call_hash.is_some();
        let Some(session) = session.filter(|_| call.decision.is_some() || resolved) else {
            return;
        };
        entry.expect(call.capability_token_id == Some(session.token), Fault::NotBound);
        if call.decision.is_some() {
            self.in_force(entry, account, call);
        }
        // The policy is not asked for a token that has no call left.
        entry.expect(self.accounts.calls_left(account) > 0, Fault::OverBudget);
        let Some(tool) = &call.tool_id else {
            return self.live(entry, account);
        };
        self.authority(entry, account, &session.agent, tool);
        let Some(registered) = self.tools.get(tool) else {
            return entry.fault(Fault::Tool);
        };
        entry.expect(call.manifest == Some(registered.id), Fault::Tool);
        self.may_write(entry, account, &registered.manifest);
    }

    /// For a call that the policy allowed and that did not run: the reason.
    pub(super) fn unkept(&self, entry: &mut Entry<'_>, call: &CallFields, reason: Reason) {
        let Some(decision) = call.decision.as_ref().filter(|d| d.verdict <= Verdict::Degrade)
        else {
            return;
        };
        // That there is no such tool was found before.
        let tool = call.tool_id.as_ref().and_then(|tool| self.tools.get(tool));
        let Some(registered) = tool else {
            return;
        };
        let asked = &decision.obligations;
        let keepable = |asked: &&Obligation| is_keepable(asked, &registered.manifest);
        let fine = match reason {
            Reason::Obligation => !asked.iter().all(|asked| keepable(&asked)),
            // Whether a plan needs more than a cut leaves it is not in the log.
            Reason::Reduced => asked.iter().take_while(keepable).any(|asked| cut(asked).is_some()),
            _ => asked.iter().all(|asked| keepable(&asked)),
        };
        entry.expect(fine, Fault::Obligation);
        let account = call.capability_token_id.and_then(|token| self.accounts.find(&token));
        let spent = call.agent_id.as_ref().is_some_and(|agent| self.credits.is_spent(agent));
        let exhausted = spent || account.is_some_and(|account| self.accounts.is_exhausted(account));
        match reason {
            Reason::OverBudget | Reason::ConcurrencyLimit => {
                entry.expect(!exhausted, Fault::Exhausted);
            }
            Reason::Exhausted => entry.expect(exhausted, Fault::Exhausted),
            _ => {}
        }
    }
}

/// A decision's own parts agree, and it fits its limits.
fn is_sound(decision: &Decision) -> bool {
    let Decision { verdict, matches, match_count, matches_digest, obligations, .. } = decision;
    let listed = u64::try_from(matches.len()).unwrap_or(u64::MAX);
    let names = obligations.iter().filter_map(|asked| asked.name.as_ref());
    matches.len() <= MATCHES_MAX
        && *match_count >= listed
        && matches_digest.is_some() == (*match_count > listed)
        && matches.is_sorted_by(|one, next| one < next)
        && obligations.len() <= OBLIGATIONS_MAX
        && names.into_iter().all(|name| name.len() <= OBLIGATION_NAME_BYTES_MAX)
        && obligations.is_sorted_by(|one, next| place(one) < place(next))
        && match verdict {
            Verdict::Allow => !obligations.iter().any(takes_away),
            Verdict::Degrade => obligations.iter().any(takes_away),
            Verdict::Ask | Verdict::Defer | Verdict::Deny => true,
        }
}

/// Its place among others; each place is taken once.
fn place(asked: &Obligation) -> (u64, Option<&str>) {
    (asked.kind.code(), asked.name.as_deref())
}

/// True if it gives a run less.
fn takes_away(asked: &Obligation) -> bool {
    matches!(
        asked.kind,
        ObligationKind::ResultCap | ObligationKind::ReadOnly | ObligationKind::BudgetCut
    )
}

/// True if a run of the tool can meet it.
fn is_keepable(asked: &Obligation, manifest: &Manifest) -> bool {
    let honours = manifest.honours.contains(&asked.kind);
    match asked.kind {
        ObligationKind::ResultCap => honours && asked.max.is_some(),
        ObligationKind::ReadOnly => honours || manifest.effect.is_read_only(),
        ObligationKind::Openat2 => honours,
        ObligationKind::BudgetCut => cut(asked).is_some(),
        // Who may answer, and for how many calls, is held against the ask.
        ObligationKind::Notify | ObligationKind::ApprovalUses => true,
        ObligationKind::Approval => false,
    }
}

/// The dimension that it cuts, and to what.
fn cut(asked: &Obligation) -> Option<(Dimension, u64)> {
    let name = asked.name.as_deref().filter(|_| asked.kind == ObligationKind::BudgetCut)?;
    let dimension = Dimension::ALL.into_iter().find(|dimension| dimension.name() == name)?;
    let metered = !matches!(
        dimension,
        Dimension::Calls | Dimension::CpuUs | Dimension::WallUs | Dimension::Concurrent
    );
    metered.then_some((dimension, asked.max?))
}

/// True if a run of the tool with that hold meets all obligations.
pub(super) fn keeps<'o>(
    asked: impl Iterator<Item = &'o Obligation>,
    manifest: &Manifest,
    held: &Amounts,
) -> bool {
    let cuts = |one| cut(one).is_none_or(|(dimension, max)| held.get(dimension) <= max);
    asked.fold(true, |fine, one| fine && cuts(one) && is_keepable(one, manifest))
}

/// The least hold, after the obligations have been applied.
pub(super) fn cut_down(asked: &[Obligation], wanted: Amounts) -> Amounts {
    asked.iter().filter_map(cut).fold(wanted, |wanted, (dimension, max)| {
        wanted.with(dimension, wanted.get(dimension).min(max))
    })
}
