//! `org.list_messages`, `org.read_message`, `org.delete_message`: the caller's own inbox.

use std::sync::Arc;

use syscap_format::{
    AgentId, Canonical, EffectClass, Item, Label, Manifest, MapBuilder, ObligationKind, Param,
    ParamType, Reason, Refused, TxOutcome,
};
use syscap_kernel::{Demands, Permit, Plan, Ran, ReadPermit, ReadPlan, ReadTool, Request, Tool};

use super::inbox::{MessageId, messages};
use super::manifest;
use super::message::{FILE_BYTES_MAX, Kept};
use crate::beneath::{FsError, Opener, Parents, Removal};
use crate::fs::{refusal, tx_of};
use crate::turns::wait_of;

/// Most messages that one call lists.
pub const LIST_MAX: u64 = 50;
/// Most bytes of a result that are not its messages.
const FRAME_BYTES: usize = 64;

fn id_param() -> Param {
    Param::required("id", ParamType::Text, "Its id, of org.list_messages.").within(1, 200)
}

fn id(request: &Request<'_>) -> Result<MessageId, Refused> {
    let text = request.args.get("id").and_then(Item::as_text).unwrap_or_default();
    MessageId::parse(text).ok_or_else(|| {
        let refused = Refused::new(Reason::BadArgument).field("id").got(text);
        refused.allowed("an id of org.list_messages")
    })
}

/// An error of the file layer, about a message.
fn wrong(error: FsError) -> Refused {
    let refused = match error {
        FsError::NotFound => Refused::new(Reason::NotFound).allowed("a message in your inbox"),
        error => refusal(error),
    };
    refused.field("id")
}

/// A message that is there, and the label of what its sender had read.
fn open(base: &dyn Opener, of: &AgentId, id: &MessageId) -> Result<(Option<Kept>, Label), FsError> {
    let file = base.open_file(&id.in_inbox(of)?, FILE_BYTES_MAX)?;
    let label = file.label()?;
    let limit = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
    Ok((Kept::read(file.read(0, limit)?.bytes), label))
}

/// `org.list_messages`: what lies in the inbox. It tells who sent each and what label it has, and
/// nothing that a sender wrote: so whoever lists has read none of it, and can choose.
pub struct ListMessages {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl ListMessages {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
        let after = "Only those behind this id: the last one of the list before.";
        let manifest = manifest("list_messages", EffectClass::Read)?
            .described("List messages", "Lists this agent's inbox, the oldest message first.")
            .param(Param::optional("after", ParamType::Text, after).within(1, 200))
            .param(
                Param::optional("limit", ParamType::Int, "How many at most.").within(1, LIST_MAX),
            )
            .honours(ObligationKind::ResultCap);
        Some(Self { manifest: base.promised(manifest), base })
    }
}

impl ReadTool for ListMessages {
    type Plan = ListMessagesPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ListMessagesPlan, Refused> {
        let after = request.args.get("after").and_then(Item::as_text).unwrap_or_default();
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(LIST_MAX);
        Ok(ListMessagesPlan {
            demands: Demands::default(),
            agent: request.agent.clone(),
            after: after.to_owned(),
            limit: usize::try_from(limit.min(LIST_MAX)).unwrap_or(usize::MAX),
            base: Arc::clone(&self.base),
        })
    }
}

/// A planned `org.list_messages`.
pub struct ListMessagesPlan {
    demands: Demands,
    agent: AgentId,
    after: String,
    limit: usize,
    base: Arc<dyn Opener>,
}

impl ReadPlan for ListMessagesPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        match self.list(permit.result_bytes_max()) {
            Ok(result) => permit.ok(result, TxOutcome::NoOp),
            Err(error) => permit.failed(refusal(error), TxOutcome::NoOp),
        }
    }
}

impl ListMessagesPlan {
    /// `{messages: [{id, from, sent_ms, bytes, integrity, confidentiality}], more, total}`, and
    /// `skipped`, where there is what no message is called.
    fn list(&self, bytes_max: usize) -> Result<Canonical, FsError> {
        let (all, skipped) = messages(&*self.base, &self.agent)?;
        let total = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let mut room = bytes_max.saturating_sub(FRAME_BYTES);
        let (mut shown, mut more) = (Vec::new(), false);
        for (id, size_bytes) in all.iter().filter(|(id, _)| id.as_str() > self.after.as_str()) {
            let one = match self.show(id, *size_bytes) {
                // It was deleted meanwhile.
                Err(FsError::NotFound) => continue,
                one => one?,
            };
            let left = room.checked_sub(one.as_bytes().len());
            match left.filter(|_| shown.len() < self.limit) {
                Some(left) => room = left,
                None => {
                    more = true;
                    break;
                }
            }
            shown.push(one);
        }
        let shown = Canonical::list(shown.into_iter());
        let result = MapBuilder::new().item("messages", shown.item()).boolean("more", more);
        let result = result.uint("total", total);
        Ok(if skipped > 0 { result.uint("skipped", skipped) } else { result }.finish())
    }

    fn show(&self, id: &MessageId, size_bytes: u64) -> Result<Canonical, FsError> {
        let (kept, label) = open(&*self.base, &self.agent, id)?;
        let map = MapBuilder::new()
            .text("id", id.as_str())
            .text("from", id.from().as_ref().map_or("", |from| from.as_str()))
            .uint("bytes", size_bytes)
            .text("integrity", label.integrity().name())
            .text("confidentiality", label.confidentiality().name());
        Ok(match kept {
            Some(kept) => map.uint("sent_ms", kept.sent().get()).finish(),
            None => map.boolean("damaged", true).finish(),
        })
    }
}

/// `org.read_message`: a message of the inbox, with the label of what its sender had read.
pub struct ReadMessage {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl ReadMessage {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
        let manifest = manifest("read_message", EffectClass::Read)?
            .described("Read a message", "Gives a message of this agent's inbox, as it was sent.")
            .param(id_param());
        Some(Self { manifest: base.promised(manifest), base })
    }
}

impl ReadTool for ReadMessage {
    type Plan = ReadMessagePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ReadMessagePlan, Refused> {
        let (id, agent) = (id(request)?, request.agent.clone());
        Ok(ReadMessagePlan { demands: Demands::default(), agent, id, base: Arc::clone(&self.base) })
    }
}

/// A planned `org.read_message`.
pub struct ReadMessagePlan {
    demands: Demands,
    agent: AgentId,
    id: MessageId,
    base: Arc<dyn Opener>,
}

impl ReadPlan for ReadMessagePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        match open(&*self.base, &self.agent, &self.id) {
            Ok((Some(kept), label)) => {
                permit.brings(label);
                permit.ok(kept.shown(self.id.as_str()), TxOutcome::NoOp)
            }
            // What is no message was put there by somebody else.
            Ok((None, _)) => {
                let refused = Refused::new(Reason::NotAFile).field("id").got("no message");
                permit.failed(refused, TxOutcome::NoOp)
            }
            Err(error) => permit.failed(wrong(error), TxOutcome::NoOp),
        }
    }
}

/// `org.delete_message`: takes a message out of the inbox, so that there is room again.
pub struct DeleteMessage {
    manifest: Manifest,
    base: Arc<dyn Opener>,
}

impl DeleteMessage {
    pub(super) fn new(base: Arc<dyn Opener>) -> Option<Self> {
        let manifest = manifest("delete_message", EffectClass::LocalWrite)?
            .described("Delete a message", "Takes a message out of this agent's inbox.")
            .param(id_param());
        Some(Self { manifest: base.promised(manifest), base })
    }
}

impl Tool for DeleteMessage {
    type Plan = DeleteMessagePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<DeleteMessagePlan, Refused> {
        let (id, agent) = (id(request)?, request.agent.clone());
        let base = Arc::clone(&self.base);
        Ok(DeleteMessagePlan { demands: Demands::default(), agent, id, base })
    }
}

/// A planned `org.delete_message`.
pub struct DeleteMessagePlan {
    demands: Demands,
    agent: AgentId,
    id: MessageId,
    base: Arc<dyn Opener>,
}

impl Plan for DeleteMessagePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.enforced_by(self.base.enforcement());
        let location = match self.id.in_inbox(&self.agent) {
            Ok(location) => location,
            Err(error) => return permit.failed(wrong(error), TxOutcome::NoOp),
        };
        let wait = wait_of(permit.hold());
        let turn = self.base.turn(&location, Parents::Require, &[], wait, &mut |_| Ok(()));
        match turn.and_then(|turn| self.base.remove(turn, Removal::File, None)) {
            Ok(()) => {
                permit.ok(MapBuilder::new().boolean("deleted", true).finish(), TxOutcome::Committed)
            }
            Err(failure) => permit.failed(wrong(failure.error), tx_of(failure.effect)),
        }
    }
}
