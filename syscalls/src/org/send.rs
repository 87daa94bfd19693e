//! `org.send_message`.

use std::sync::Arc;

use syscap_format::{
    AgentId, Amounts, Canonical, Dimension, EffectClass, Extra, Item, ItemKind, Manifest,
    MapBuilder, Name, Param, ParamType, Reason, Refused, Resource, TxOutcome, UnixMillis,
};
use syscap_kernel::{Broken, Clock, Demand, Demands, Finding, Permit, Plan, Ran, Request, Tool};

use super::inbox::{MessageId, expect_room};
use super::message::{self, MESSAGE_BYTES_MAX, RECIPIENTS};
use super::{OUTBOX_DIMENSION, Org, manifest};
use crate::beneath::{
    Discarded, Effect, Existing, FolderMode, FsError, Location, Opener, Parents, Removal, Rename,
    Write,
};
use crate::fs::{meter_of, refusal, temp_name, tx_of};
use crate::turns::{Turns, WAIT_MAX, wait_of};

/// Most recipients of a message.
pub const RECIPIENTS_MAX: usize = 100;
/// Longest text, in bytes.
const TEXT_BYTES_MAX: u64 = MESSAGE_BYTES_MAX;
/// Longest kind, in bytes.
const KIND_BYTES_MAX: u64 = 128;
/// Folders that a first message to an agent makes: of all agents, its own, and two of its inbox.
const FOLDERS: u64 = 4;
/// How long one recipient may take, beside what the manifest sets aside, in microseconds.
const WALL_US: u64 = 200_000;
/// The processor's part of that: its inbox is looked through.
const CPU_US: u64 = 50_000;

/// `org.send_message`: puts a message into the inboxes of agents that the grant names.
pub(super) struct SendMessage {
    manifest: Manifest,
    base: Arc<dyn Opener>,
    clock: Arc<dyn Clock>,
    busy: Arc<Turns<AgentId>>,
}

impl SendMessage {
    pub(super) fn new(org: &Org) -> Option<Self> {
        let whom = "The agents that it is for, each named; at most 100.";
        let mut manifest = manifest("send_message", EffectClass::LocalWrite)?
            .described("Send a message", "Puts a message into the inboxes of other agents.")
            .param(Param::required(RECIPIENTS, ParamType::Any, whom))
            .param(
                Param::required("kind", ParamType::Text, "What kind of message it is.")
                    .within(1, KIND_BYTES_MAX),
            )
            .param(Param::optional("text", ParamType::Text, "Its text.").within(0, TEXT_BYTES_MAX))
            .param(Param::optional("body", ParamType::Any, "What it holds besides."))
            .needs(OUTBOX_DIMENSION);
        // A message has fields that only its sender and its recipient know.
        manifest.extra = Extra::Taken;
        let (base, clock) = (Arc::clone(&org.base), Arc::clone(&org.clock));
        Some(Self { manifest: base.promised(manifest), base, clock, busy: Arc::clone(&org.busy) })
    }
}

impl Tool for SendMessage {
    type Plan = SendMessagePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<SendMessagePlan, Refused> {
        let to = recipients(request.args)?;
        let message = message::of(request.args);
        let size_bytes = u64::try_from(message.as_bytes().len()).unwrap_or(u64::MAX);
        if size_bytes > MESSAGE_BYTES_MAX {
            let got = format!("{size_bytes} bytes");
            let allowed = format!("at most {MESSAGE_BYTES_MAX} bytes in all");
            return Err(bad("body", &got, &allowed));
        }
        // As large and as deep as it will be, but for the time.
        let from = request.agent.clone();
        let file = message::file(&from, &to, UnixMillis::new(u64::MAX), &message)
            .ok_or_else(|| bad("body", "what is nested so deeply", "less deeply nested"))?;
        let demand = |agent: &AgentId| {
            let name = Name::new(agent.as_str());
            let name = name.map_err(|_| bad(RECIPIENTS, agent.as_str(), FORM))?;
            let resource = Resource::Name(name);
            Ok(Demand { dimension: OUTBOX_DIMENSION, resource, argument: RECIPIENTS })
        };
        Ok(SendMessagePlan {
            demands: Demands {
                resources: to.iter().map(demand).collect::<Result<_, Refused>>()?,
                hold: uses(to.len(), file.len()),
            },
            from,
            to,
            message,
            base: Arc::clone(&self.base),
            clock: Arc::clone(&self.clock),
            busy: Arc::clone(&self.busy),
        })
    }

    /// A run lays the message beside each inbox before it puts it into the first. So where it lies
    /// beside the first yet it was delivered to nobody, and whoever takes it away has proved that
    /// it won't be. If it lies beside other inboxes only, the first recipient has it, and may have
    /// read it: then the rest get it too. If it lies nowhere nothing is proved: the run may not
    /// have begun, or it was delivered to all and deleted.
    fn probe(&self, broken: &Broken<'_>) -> Finding {
        let Ok(plan) = self.plan(&broken.request) else { return Finding::Unknown };
        let id = MessageId::of(broken.intent, broken.leaf, &plan.from);
        plan.probe(&id, broken).unwrap_or(Finding::Unknown)
    }
}

const FORM: &str = "names of agents, each once: a list of 1 to 100";

fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

/// Each is named, and nobody twice.
fn recipients(args: Item<'_>) -> Result<Vec<AgentId>, Refused> {
    let parse = |item: Item<'_>| {
        let text = item.as_text().ok_or_else(|| bad(RECIPIENTS, "what is no text", FORM))?;
        AgentId::new(text).ok_or_else(|| bad(RECIPIENTS, text, FORM))
    };
    let to: Vec<AgentId> = match args.get(RECIPIENTS) {
        Some(list) if list.kind() == ItemKind::Array => list
            .elements()
            .take(RECIPIENTS_MAX.saturating_add(1))
            .map(parse)
            .collect::<Result<_, _>>()?,
        Some(one) => vec![parse(one)?],
        None => Vec::new(),
    };
    if to.is_empty() || to.len() > RECIPIENTS_MAX {
        let got = if to.is_empty() { "nobody" } else { "more of them" };
        return Err(bad(RECIPIENTS, got, FORM));
    }
    let mut sorted: Vec<&AgentId> = to.iter().collect();
    sorted.sort_unstable();
    let twice = sorted.windows(2).find_map(|pair| match pair {
        [one, other] if one == other => Some(one.to_string()),
        _ => None,
    });
    twice.map_or(Ok(to), |agent| Err(bad(RECIPIENTS, &agent, FORM)))
}

fn uses(recipients: usize, file_bytes: usize) -> Amounts {
    let count = u64::try_from(recipients).unwrap_or(u64::MAX);
    let bytes = u64::try_from(file_bytes).unwrap_or(u64::MAX);
    Amounts::ZERO
        .with(Dimension::DiskWriteBytes, bytes.saturating_mul(count))
        .with(Dimension::DiskFiles, FOLDERS.saturating_add(1).saturating_mul(count))
        .with(Dimension::WallUs, WALL_US.saturating_mul(count))
        .with(Dimension::CpuUs, CPU_US.saturating_mul(count))
}

/// From beside an inbox into it.
const DELIVERY: Rename = Rename { existing: Existing::Refuse, expected: [None, None] };
const MAKE_FOLDERS: Parents = Parents::Create(FolderMode::Private);

/// A planned `org.send_message`.
pub(super) struct SendMessagePlan {
    demands: Demands,
    from: AgentId,
    to: Vec<AgentId>,
    message: Canonical,
    base: Arc<dyn Opener>,
    clock: Arc<dyn Clock>,
    busy: Arc<Turns<AgentId>>,
}

impl Plan for SendMessagePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        let id = MessageId::of(permit.intent(), permit.leaf(), &self.from);
        let busy = Arc::clone(&self.busy);
        let Some(_filling) = busy.take(&self.to, wait_of(permit.hold())) else {
            let refused = Refused::new(Reason::Busy).field(RECIPIENTS);
            return permit.failed(refused.got("others fill these inboxes"), TxOutcome::NoOp);
        };
        let laid = self.lay(&id, &mut permit);
        match laid.and_then(|()| self.deliver(&id, &mut permit)) {
            Ok((result, tx)) => permit.ok(result, tx),
            Err((refused, effect)) => permit.failed(refused, tx_of(effect)),
        }
    }
}

type Failure = (Refused, Effect);

impl SendMessagePlan {
    /// Lays the message beside each inbox, where nobody reads it. If one has no room for it, or it
    /// can't be written there, it is taken away from all.
    fn lay(&self, id: &MessageId, permit: &mut Permit<'_, Self>) -> Result<(), Failure> {
        let not_done = |refused| (refused, Effect::NotDone);
        let wrong = |error| not_done(refusal(error).field(RECIPIENTS));
        let now = self.clock.read().wall;
        let file = message::file(&self.from, &self.to, now, &self.message);
        let file = file.ok_or_else(|| not_done(Refused::new(Reason::TooDeep).field("body")))?;
        let temp = temp_name(permit.intent(), permit.leaf()).map_err(wrong)?;
        let label = permit.live().label;
        let size_bytes = u64::try_from(file.len()).unwrap_or(u64::MAX);
        for to in &self.to {
            expect_room(&*self.base, to, &self.from, size_bytes).map_err(not_done)?;
        }
        for (laid, to) in self.to.iter().enumerate() {
            let at = id.incoming(to).map_err(wrong)?;
            let job = Write {
                content: &file,
                existing: Existing::Refuse,
                expected: None,
                made_from: None,
                temp: &temp,
                label,
            };
            let wait = wait_of(permit.hold());
            let meter = &mut meter_of(permit);
            let turn = self.base.turn(&at, MAKE_FOLDERS, job.content, wait, meter);
            if let Err(failure) = turn.and_then(|turn| self.base.write(turn, &job, meter)) {
                let refused = refusal(failure.error).field(RECIPIENTS).got(to.as_str());
                // What is beside an inbox nobody reads: it is never in doubt.
                let in_doubt = usize::from(failure.effect == Effect::Unknown);
                let left = if laid == 0 { failure.effect } else { Effect::Partly };
                let left = if left == Effect::Unknown { Effect::Partly } else { left };
                let left_behind = self.take_away(id, laid.saturating_add(in_doubt));
                let refused = match left_behind {
                    0 => refused,
                    count => refused.allowed(&format!("{count} copies, unread, to be removed")),
                };
                return Err((refused, left));
            }
        }
        Ok(())
    }

    /// Takes away what was laid beside the first inboxes, and says how many could not be. No agent
    /// reads those. The first goes last: as long as it is there, nothing was delivered.
    fn take_away(&self, id: &MessageId, laid: usize) -> usize {
        let mut laid: Vec<&AgentId> = self.to.iter().take(laid).collect();
        while let Some(to) = laid.last() {
            if !self.is_away(id, to) {
                break;
            }
            laid.pop();
        }
        laid.len()
    }

    fn is_away(&self, id: &MessageId, to: &AgentId) -> bool {
        let Ok(at) = id.incoming(to) else { return true };
        let turn = self.base.turn(&at, Parents::Require, &[], WAIT_MAX, &mut |_| Ok(()));
        match turn.and_then(|turn| self.base.remove(turn, Removal::File, None)) {
            Ok(()) => true,
            Err(failure) => failure.error == FsError::NotFound,
        }
    }

    /// Puts it into the inboxes, one after the other. From the first on there is no way back: who
    /// has it may have read it. From the first delivery on there is no way back: the recipient may
    /// have read it. A later failure is reported with the recipients that have it.
    fn deliver(
        &self,
        id: &MessageId,
        permit: &mut Permit<'_, Self>,
    ) -> Result<(Canonical, TxOutcome), Failure> {
        let (mut delivered, mut failed) = (Vec::new(), Vec::new());
        let mut tx = TxOutcome::Committed;
        for to in &self.to {
            let (refused, effect) = match self.put(id, to, permit) {
                Ok(()) => {
                    delivered.push(Canonical::text(to.as_str()));
                    continue;
                }
                Err(failure) => failure,
            };
            let is_unknown = effect == Effect::Unknown;
            if is_unknown {
                tx = TxOutcome::Unknown;
            } else if delivered.is_empty() && tx == TxOutcome::Committed {
                // What lies beside the inboxes stays as long as somebody may have it: if this
                // breaks off now, it is told by that what is left to do.
                self.take_away(id, self.to.len());
                return Err((refused, Effect::Partly));
            }
            let (to, word) = (to.as_str(), refused.reason().name());
            let one = MapBuilder::new().text("agent", to).text("reason", word);
            failed.push(one.boolean("unknown", is_unknown).finish());
        }
        let result = MapBuilder::new().text("id", id.as_str());
        let result = result.item("delivered", Canonical::list(delivered.into_iter()).item());
        let result = if failed.is_empty() {
            result
        } else {
            result.item("failed", Canonical::list(failed.into_iter()).item())
        };
        Ok((result.finish(), tx))
    }

    fn put(
        &self,
        id: &MessageId,
        to: &AgentId,
        permit: &mut Permit<'_, Self>,
    ) -> Result<(), Failure> {
        let wrong = |error| refusal(error).field(RECIPIENTS).got(to.as_str());
        let not_done = |error| (wrong(error), Effect::NotDone);
        let (from, at) = (id.incoming(to).map_err(not_done)?, id.in_inbox(to).map_err(not_done)?);
        let wait = wait_of(permit.hold());
        let turns = self.base.turns(&from, &at, MAKE_FOLDERS, wait, &mut meter_of(permit));
        let put = turns.and_then(|turns| self.base.rename(turns, &DELIVERY));
        put.map(drop).map_err(|failure| (wrong(failure.error), failure.effect))
    }

    fn probe(&self, id: &MessageId, broken: &Broken<'_>) -> Result<Finding, FsError> {
        let temp = temp_name(broken.intent, broken.leaf)?;
        let (mut used, mut within) = (Amounts::ZERO, 0_usize);
        let (mut cut_off, mut beside) = (Vec::new(), Vec::new());
        for to in &self.to {
            let (laid, at) = (id.incoming(to)?, id.in_inbox(to)?);
            let discarded = match self.base.discard(&laid, &temp)? {
                Discarded::Removed { size_bytes } => Some(size_bytes),
                Discarded::Absent => None,
            };
            let whole = self.size_of(&laid)?;
            if let Some(size_bytes) = discarded.or(whole) {
                used = used.plus(&uses(1, usize::try_from(size_bytes).unwrap_or(usize::MAX)));
            }
            cut_off.push(discarded.is_some());
            beside.push(whole.is_some());
            within = within.saturating_add(usize::from(self.size_of(&at)?.is_some()));
        }
        let is_laid = |all: &[bool]| all.contains(&true);
        if within == 0 && (beside.first() == Some(&true) || is_laid(&cut_off)) {
            let left = self.take_away(id, self.to.len());
            let not_done =
                Finding::NotDone(used.with(Dimension::WallUs, 0).with(Dimension::CpuUs, 0));
            return Ok(if left == 0 { not_done } else { Finding::Unknown });
        }
        // It was on its way into the inboxes, and nobody can take it back: the rest of them get it.
        for (to, _) in self.to.iter().zip(&beside).filter(|(_, is_beside)| **is_beside) {
            let (from, at) = (id.incoming(to)?, id.in_inbox(to)?);
            let turns = self.base.turns(&from, &at, MAKE_FOLDERS, WAIT_MAX, &mut |_| Ok(()));
            let put = turns.and_then(|turns| self.base.rename(turns, &DELIVERY));
            put.map_err(|failure| failure.error)?;
        }
        Ok(if within > 0 || is_laid(&beside) { Finding::Done } else { Finding::Unknown })
    }

    fn size_of(&self, at: &Location) -> Result<Option<u64>, FsError> {
        match self.base.metadata(at) {
            Ok(found) => Ok(Some(found.size_bytes)),
            Err(FsError::NotFound) => Ok(None),
            Err(error) => Err(error),
        }
    }
}
