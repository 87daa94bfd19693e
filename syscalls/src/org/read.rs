//! `org.list_messages`, `org.read_message`, `org.delete_message`: the caller's own inbox.

use std::sync::Arc;

use syscap_format::{
    AgentId, Canonical, EffectClass, Item, Label, Manifest, MapBuilder, ObligationKind, Param,
    ParamType, Reason, Refused, TxOutcome,
};
use syscap_kernel::{Demands, Request};

use super::inbox::{MessageId, messages};
use super::manifest;
use super::message::{FILE_BYTES_MAX, Kept};
use crate::beneath::{Effect, FsError, Opener, Parents, Removal};
use crate::calls::{ChangeBy, ChangeCall, Changed, ReadBy, ReadCall};
use crate::fs::refusal;
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
#[derive(Debug)]
pub(super) struct List {
    agent: AgentId,
    after: String,
    limit: usize,
}

impl ReadCall for List {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let after = "Only those behind this id: the last one of the list before.";
        let manifest = manifest("list_messages", EffectClass::Read)?
            .described("List messages", "Lists this agent's inbox, the oldest message first.")
            .param(Param::optional("after", ParamType::Text, after).within(1, 200))
            .param(
                Param::optional("limit", ParamType::Int, "How many at most.").within(1, LIST_MAX),
            )
            .honours(ObligationKind::ResultCap);
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let after = request.args.get("after").and_then(Item::as_text).unwrap_or_default();
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(LIST_MAX);
        let demands = Demands::default();
        Ok((
            Self {
                agent: request.agent.clone(),
                after: after.to_owned(),
                limit: usize::try_from(limit.min(LIST_MAX)).unwrap_or(usize::MAX),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        self.list(&**on, permit.result_bytes_max()).map_err(refusal)
    }
}

impl List {
    /// `{messages: [{id, from, sent_ms, bytes, integrity, confidentiality}], more, total}`, and
    /// `skipped`, where there is what no message is called.
    fn list(&self, base: &dyn Opener, bytes_max: usize) -> Result<Canonical, FsError> {
        let (all, skipped) = messages(base, &self.agent)?;
        let total = u64::try_from(all.len()).unwrap_or(u64::MAX);
        let mut room = bytes_max.saturating_sub(FRAME_BYTES);
        let (mut shown, mut more) = (Vec::new(), false);
        for (id, size_bytes) in all.iter().filter(|(id, _)| id.as_str() > self.after.as_str()) {
            let one = match self.show(base, id, *size_bytes) {
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

    fn show(
        &self,
        base: &dyn Opener,
        id: &MessageId,
        size_bytes: u64,
    ) -> Result<Canonical, FsError> {
        let (kept, label) = open(base, &self.agent, id)?;
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
#[derive(Debug)]
pub(super) struct ReadOne {
    agent: AgentId,
    id: MessageId,
}

impl ReadCall for ReadOne {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("read_message", EffectClass::Read)?
            .described("Read a message", "Gives a message of this agent's inbox, as it was sent.")
            .param(id_param());
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        Ok((Self { agent: request.agent.clone(), id: id(request)? }, Demands::default()))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let (kept, label) = open(&**on, &self.agent, &self.id).map_err(wrong)?;
        // What is no message was put there by somebody else.
        let none = || Refused::new(Reason::NotAFile).field("id").got("no message");
        let kept = kept.ok_or_else(none)?;
        permit.brings(label);
        Ok(kept.shown(self.id.as_str()))
    }
}

/// `org.delete_message`: takes a message out of the inbox, so that there is room again.
#[derive(Debug)]
pub(super) struct DeleteOne {
    agent: AgentId,
    id: MessageId,
}

impl ChangeCall for DeleteOne {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let manifest = manifest("delete_message", EffectClass::LocalWrite)?
            .described("Delete a message", "Takes a message out of this agent's inbox.")
            .param(id_param());
        Some(manifest)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        Ok((Self { agent: request.agent.clone(), id: id(request)? }, Demands::default()))
    }

    fn run(&self, on: &Self::On, permit: &mut ChangeBy<'_, Self>) -> Changed {
        let at = self.id.in_inbox(&self.agent).map_err(|error| (wrong(error), Effect::NotDone))?;
        let wait = wait_of(permit.hold());
        let turn = on.turn(&at, Parents::Require, &[], wait, &mut |_| Ok(()));
        let removed = turn.and_then(|turn| on.remove(turn, Removal::File, None));
        removed.map_err(|failure| (wrong(failure.error), failure.effect))?;
        Ok((MapBuilder::new().boolean("deleted", true).finish(), TxOutcome::Committed))
    }
}
