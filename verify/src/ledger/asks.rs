//! Calls that wait for a person, and what was answered.

use std::collections::BTreeMap;

use syscap_format::{
    control::{Control, ControlBody, Role},
    decision::Verdict,
    id::{AgentId, Leaf, ObjectId, Seq, ToolId},
    limits::ASK_LIFE_MS,
    obligation::ObligationKind,
    record::{Answer, ApprovalBody, Ask, CallFields, Kind, Means},
    sign::PublicKey,
    time::UnixMillis,
};

use super::{Account, Entry, Fault, Ledger, Phase, Source};

/// The means that count.
const MEANS: [Means; 4] = [Means::Terminal, Means::Command, Means::File, Means::Signer];

/// A call that waits.
#[derive(Clone, Debug)]
pub(super) struct Waiting {
    agent: Option<AgentId>,
    tool: Option<ToolId>,
    manifest: Option<ObjectId>,
    eligible: Vec<PublicKey>,
    threshold: u64,
    expires: UnixMillis,
    approved: Vec<PublicKey>,
    answer: Option<Given>,
}

/// How it was answered.
#[derive(Clone, Copy, Debug)]
enum Given {
    /// It may run until then, by that record.
    Yes(Seq, UnixMillis),
    No,
}

/// All that wait, by the leaves of their records.
pub(super) type Asks = BTreeMap<Leaf, Waiting>;

impl Ledger {
    pub(super) fn ask(&mut self, entry: &mut Entry<'_>, ask: Ask, leaf: Leaf) {
        let call = &ask.call;
        entry.expect(self.phase == Phase::Running, Fault::Closed);
        let verdict = call.decision.as_ref().map(|decision| decision.verdict);
        let whole = verdict == Some(Verdict::Ask)
            && call.args_hash.is_some()
            && call.result_hash.is_some()
            && call.provenance.is_some()
            && call.call_hash.is_some()
            && call.manifest.is_some()
            && call.held == Default::default()
            && call.enforcement.is_none();
        entry.expect(whole, Fault::AskForm);
        let Some(Some(account)) = self.fee(entry, call) else {
            return entry.fault(Fault::AskForm);
        };
        self.asked(entry, account, call);
        self.decided(entry, call);
        let tool = call.tool_id.as_ref().and_then(|tool| self.tools.get(tool));
        let effect = tool.map(|tool| tool.manifest.effect);
        entry.expect(effect == Some(ask.effect), Fault::Tool);
        let session = call.session.and_then(|number| self.sessions.get(&number));
        let given = session.map(|session| session.label);
        entry.expect(given == Some(ask.label), Fault::Label);
        let single = session.is_some_and(|session| session.row.aggregate.is_none());
        entry.expect(single, Fault::Aggregate);
        entry.expect(self.is_for(&ask, account, entry.time), Fault::AskForm);
        self.accounts.pay(account, &call.used);
        let now = entry.time;
        self.asks.retain(|_, waiting| now < waiting.expires);
        let Ask { call, eligible, threshold, expires, .. } = ask;
        let CallFields { agent_id: agent, tool_id: tool, manifest, .. } = call;
        let (approved, answer) = (Vec::new(), None);
        let waiting =
            Waiting { agent, tool, manifest, eligible, threshold, expires, approved, answer };
        self.asks.insert(leaf, waiting);
    }

    /// It names who may answer, by which means and until when, as it must.
    fn is_for(&self, ask: &Ask, account: Account, now: UnixMillis) -> bool {
        let holders = self.accounts.holders(account);
        let Some(set) = self.roles.set(Role::Approver) else { return false };
        let eligible = set.keys().filter(|key| !holders.contains(key));
        let eligible: Vec<PublicKey> = eligible.collect();
        let end = self.accounts.body(account).map(|body| body.expires);
        let asked = ask.call.decision.as_ref().map_or(&[][..], |said| &said.obligations);
        let level = asked.iter().any(|asked| asked.kind == ObligationKind::Approval);
        ask.eligible == eligible
            && ask.threshold == set.threshold
            && u64::try_from(eligible.len()).unwrap_or(0) >= set.threshold
            && ask.means == MEANS
            && Some(ask.expires) == end.map(|end| now.plus(ASK_LIFE_MS).min(end))
            && !level
    }

    pub(super) fn approval<E>(
        &mut self,
        entry: &mut Entry<'_>,
        control: &Control,
        source: &mut dyn Source<Error = E>,
    ) -> Result<(), E> {
        self.signed(entry, Kind::Approval, control, source)?;
        let Ok(body) = ApprovalBody::from_bytes(&control.body) else {
            entry.fault(Fault::BadControl);
            return Ok(());
        };
        let fine = match body.answer {
            Answer::Once => body.expires.is_none_or(|until| entry.time < until),
            Answer::Deny => body.expires.is_none(),
            Answer::Set => false,
        };
        let bare = body.scopes.is_none() && body.uses.is_none() && MEANS.contains(&body.means);
        entry.expect(fine && bare, Fault::BadControl);
        let ([signed], Some(waiting)) = (&control.signatures[..], self.asks.get_mut(&body.ask))
        else {
            entry.fault(Fault::Approval);
            return Ok(());
        };
        let counts = waiting.answer.is_none()
            && entry.time < waiting.expires
            && waiting.eligible.contains(&signed.key)
            && !waiting.approved.contains(&signed.key);
        entry.expect(counts, Fault::Approval);
        if body.answer == Answer::Deny {
            waiting.answer = Some(Given::No);
            return Ok(());
        }
        waiting.approved.push(signed.key);
        if u64::try_from(waiting.approved.len()).unwrap_or(u64::MAX) >= waiting.threshold {
            let until = body.expires.unwrap_or(waiting.expires).min(waiting.expires);
            waiting.answer = Some(Given::Yes(entry.seq, until));
        }
        Ok(())
    }

    /// A call that was let through by an approval uses it up: one for this agent and this tool,
    /// as it was when a person was asked.
    pub(super) fn used_up(&mut self, entry: &mut Entry<'_>, approval: Seq, call: &CallFields) {
        let account = call.capability_token_id.and_then(|token| self.accounts.find(&token));
        let holders = account.map(|account| self.accounts.holders(account)).unwrap_or_default();
        let by = |waiting: &Waiting| match waiting.answer {
            Some(Given::Yes(by, until)) => by == approval && entry.time < until,
            _ => false,
        };
        let found = self.asks.iter().find(|(_, waiting)| by(waiting));
        let Some((leaf, waiting)) = found.map(|(leaf, waiting)| (*leaf, waiting)) else {
            return entry.fault(Fault::Approval);
        };
        let same = (&waiting.agent, &waiting.tool, &waiting.manifest)
            == (&call.agent_id, &call.tool_id, &call.manifest)
            // Nor by who holds the token that it goes on with.
            && !holders.iter().any(|holder| waiting.eligible.contains(holder));
        entry.expect(same, Fault::Approval);
        self.asks.remove(&leaf);
    }
}
