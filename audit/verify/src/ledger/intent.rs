//! Intents: whether the call was allowed to run.

use syscap_format::{
    AgentId, Amounts, CallFields, Dimension, Filled, Intent, Label, Manifest, ObligationKind,
    RunMode, Seq, TokenFlags, ToolId, UnixMillis, Verdict,
};

use super::decision::{cut_down, keeps};
use super::{Account, Entry, Fault, KeyUse, Ledger, Open, Phase, Slot};

impl Ledger {
    pub(super) fn intent(&mut self, entry: &mut Entry<'_>, intent: Intent) {
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        entry.expect(is_whole(&intent), Fault::IntentForm);
        let in_flight = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        entry.expect(in_flight < self.limits.in_flight_max, Fault::InFlight);
        let account = self.bound(entry, &intent.call);
        if let (Some(account), Some(agent), Some(tool)) =
            (account, &intent.call.agent_id, &intent.call.tool_id)
        {
            self.authority(entry, account, agent, tool);
            self.tool(entry, account, tool, &intent);
            self.policy_of(entry, account, &intent);
            let held = &intent.call.held;
            let spent = self.accounts.is_exhausted(account) || self.credits.is_spent(agent);
            entry.expect(!spent, Fault::Exhausted);
            let covered = self.accounts.covers(account, held) && self.credits.covers(agent, held);
            entry.expect(covered, Fault::OverBudget);
            self.accounts.hold(account, held);
            self.credits.hold(agent, entry.seq, held);
        }
        if let Some(approval) = intent.approval {
            self.used_up(entry, approval, &intent.call, &intent.preconditions);
        } else {
            entry.expect(intent.preconditions.is_empty(), Fault::Approval);
        }
        let slot = slot(&intent);
        if let Some(slot) = &slot {
            let taken = self.keys.get(slot).is_some_and(|used| self.is_kept(used, entry.time));
            entry.expect(!taken, Fault::KeyReused);
            let until = entry.time.plus(self.limits.key_life_ms);
            let used = KeyUse { intent: entry.seq, until, ended: false };
            self.keys.insert(slot.clone(), used);
        }
        self.came_from(entry, &intent.call);
        self.named_head(entry, &intent);
        let given = intent.call.session.and_then(|number| self.sessions.get(&number));
        let given = given.map_or(Label::PUBLIC, |session| self.label_of(session));
        entry.expect(intent.label == given, Fault::Label);
        let tool = intent.call.tool_id.as_ref().and_then(|tool| self.tools.get(tool));
        let label = tool.map_or(Label::PUBLIC, |tool| tool.manifest.label);
        let Intent { call, effect, .. } = intent;
        let cancelled = false;
        self.open.insert(entry.seq, Open { call, account, effect, label, slot, cancelled });
    }

    /// True if a key still stands for its first call.
    pub(super) fn is_kept(&self, used: &KeyUse, now: UnixMillis) -> bool {
        !used.ended || !self.is_over(used.intent, used.until, now)
    }

    /// True if a key's time is over. While the time is not confirmed nobody can tell that of what
    /// lies before.
    pub(super) fn is_over(&self, intent: Seq, until: UnixMillis, now: UnixMillis) -> bool {
        now >= until && intent >= self.unconfirmed_before
    }

    /// The session's account, if agent and token are the session's.
    fn bound(&mut self, entry: &mut Entry<'_>, call: &CallFields) -> Option<Account> {
        let Some(session) = call.session.and_then(|seq| self.sessions.get_mut(&seq)) else {
            entry.fault(Fault::UnknownSession);
            return self.accounts.find(&call.capability_token_id?);
        };
        let bound = call.agent_id.as_ref() == Some(&session.agent)
            && call.capability_token_id == Some(session.token);
        entry.expect(bound, Fault::NotBound);
        entry.expect(session.row.aggregate.is_none(), Fault::Aggregate);
        session.row.reset();
        let account = session.account;
        // A call that names no snapshot at all lacks what it must have.
        entry.expect(call.state_snapshot_id.is_some(), Fault::Snapshot);
        self.decided(entry, call);
        if bound { Some(account) } else { self.accounts.find(&call.capability_token_id?) }
    }

    /// The token was live and granted the tool.
    pub(super) fn authority(
        &self,
        entry: &mut Entry<'_>,
        account: Account,
        agent: &AgentId,
        tool: &ToolId,
    ) {
        entry.expect(!self.frozen.stops(agent, tool), Fault::Frozen);
        self.live(entry, account);
        let granted = self.accounts.body(account).is_some_and(|b| b.grants.get(tool).is_some());
        entry.expect(granted, Fault::NotGranted);
    }

    /// The token was neither revoked nor out of its time.
    pub(super) fn live(&self, entry: &mut Entry<'_>, account: Account) {
        entry.expect(!self.accounts.is_revoked(account, entry.time), Fault::Revoked);
        let Some(body) = self.accounts.body(account) else {
            return;
        };
        entry.expect(entry.time < body.expires, Fault::Expired);
        entry.expect(entry.time >= body.not_before, Fault::NotYetValid);
        let as_of = self.list.map(|(_, as_of)| as_of);
        let fresh = |within| as_of.is_some_and(|as_of| entry.time < as_of.plus(within));
        let fresh = self.accounts.fresh_within(account).is_none_or(fresh);
        entry.expect(fresh, Fault::StaleRevocations);
        let rooted = self.accounts.rooted(account);
        let confirmed = rooted.is_some_and(|rooted| rooted >= self.unconfirmed_before);
        entry.expect(confirmed, Fault::ClockUnconfirmed);
    }

    /// The tool was in force as its manifest says.
    fn tool(&self, entry: &mut Entry<'_>, account: Account, tool: &ToolId, intent: &Intent) {
        let Some(registered) = self.tools.get(tool) else {
            return entry.fault(Fault::Tool);
        };
        let manifest = &registered.manifest;
        let read_only = manifest.effect.is_read_only();
        let same = intent.call.manifest == Some(registered.id)
            && intent.effect == manifest.effect
            && intent.call_effect <= intent.effect;
        entry.expect(same && (read_only || intent.mode == RunMode::IntentFirst), Fault::Tool);
        let held = &intent.call.held;
        let wanted = manifest.hold.with(Dimension::Calls, 1).with(Dimension::Concurrent, 1);
        let asked = intent.call.decision.as_ref().map_or(&[][..], |said| &said.obligations);
        let wanted = cut_down(asked, wanted);
        let one = held.get(Dimension::Calls) == 1 && held.get(Dimension::Concurrent) == 1;
        entry.expect(one && wanted.leq(held), Fault::Hold);
        // Of a level was whoever approved: that is held against the ask.
        let approved = intent.approval.is_some();
        let kept = asked.iter().filter(|one| !approved || one.kind != ObligationKind::Approval);
        entry.expect(keeps(kept, manifest, held), Fault::Obligation);
        self.may_write(entry, account, manifest);
    }

    /// The token is not read only, or the tool only reads.
    pub(super) fn may_write(&self, entry: &mut Entry<'_>, account: Account, manifest: &Manifest) {
        let body = self.accounts.body(account);
        let only_reads = body.is_some_and(|body| body.flags.has(TokenFlags::READ_ONLY));
        entry.expect(manifest.effect.is_read_only() || !only_reads, Fault::ReadOnlyToken);
    }

    /// The policy was the one in force, and the token's where that names one.
    pub(super) fn in_force(&self, entry: &mut Entry<'_>, account: Account, call: &CallFields) {
        let bound = self.accounts.body(account).and_then(|body| body.policy);
        let in_force = self.policy.is_some() && call.policy_hash == self.policy;
        entry.expect(in_force && (bound.is_none() || bound == self.policy), Fault::Policy);
    }

    /// The policy in force let it through, or asked for a person, and one has approved.
    fn policy_of(&self, entry: &mut Entry<'_>, account: Account, intent: &Intent) {
        let Intent { call, approval, .. } = intent;
        self.in_force(entry, account, call);
        let verdict = call.decision.as_ref().map(|decision| decision.verdict);
        let allowed = match verdict {
            Some(Verdict::Allow | Verdict::Degrade) => approval.is_none(),
            Some(Verdict::Ask) => approval.is_some(),
            _ => false,
        };
        entry.expect(allowed, Fault::Decision);
    }
}

/// All that an intent must hold is there, and nothing that comes later.
fn is_whole(intent: &Intent) -> bool {
    let call = &intent.call;
    let known = call.agent_id.is_some()
        && call.policy_hash.is_some()
        && call.state_snapshot_id.is_some()
        && call.capability_token_id.is_some()
        && call.tool_id.is_some()
        && call.args_hash.is_some()
        && call.provenance.is_some()
        && call.call_hash.is_some()
        && call.session.is_some()
        && call.decision.is_some()
        && call.manifest.is_some();
    let later = call.result_hash.is_some() || call.enforcement.is_some();
    let keyed = intent.key.is_some() == intent.sent_hash.is_some();
    // Who says where a call came from says who brought it about.
    let filled = intent.filled.has(Filled::PROVENANCE);
    let said = call.provenance.as_ref().is_some_and(|from| from.claimed.is_some());
    known && !later && keyed && filled != said && call.used == Amounts::ZERO
}

fn slot(intent: &Intent) -> Option<Slot> {
    let key = intent.key.clone()?;
    Some((intent.call.agent_id.clone()?, intent.call.tool_id.clone()?, key))
}

impl Open {
    /// True if an outcome's call is this one.
    pub(super) fn is_of(&self, call: &CallFields) -> bool {
        let CallFields {
            agent_id,
            policy_hash,
            state_snapshot_id,
            capability_token_id,
            tool_id,
            args_hash,
            result_hash: _,
            provenance,
            call_hash,
            session,
            decision,
            manifest,
            held,
            used: _,
            enforcement: _,
            head,
            shadow,
        } = call;
        let own = &self.call;
        own.agent_id == *agent_id
            && own.policy_hash == *policy_hash
            && own.state_snapshot_id == *state_snapshot_id
            && own.capability_token_id == *capability_token_id
            && own.tool_id == *tool_id
            && own.args_hash == *args_hash
            && own.provenance == *provenance
            && own.call_hash == *call_hash
            && own.session == *session
            && own.decision == *decision
            && own.manifest == *manifest
            && own.held == *held
            && own.head == *head
            && own.shadow == *shadow
    }
}
