//! Reports of uses that were closed without one: their server ended, or they timed out.

use syscap_format::{
    Body, Canonical, Commitment, EffectClass, ErrorKind, IdempotencyKey, Intent, Label, LateReport,
    Manifest, Reason, Record, Refused, Salt, Seq, Status, ToolId, result_hash,
};
use syscap_kernel::{Event, Halt, Store, record_at, vault_entry};

use crate::Error;
use crate::server::desk::args::{is_sent, placed};
use crate::server::desk::{came_to, refused};
use crate::server::session::acknowledged;
use crate::server::{Holding, LocalSession};
use crate::tools::host::uses::{Reported, ToolUse};
use crate::tools::provide::HostRan;

/// A use that was closed.
struct Closed {
    intent: Seq,
    effect: EffectClass,
    salt: Salt,
    /// True if it was let through with these arguments.
    same: bool,
}

impl Holding {
    /// Records a report of a use that was closed without one: the oldest that is meant by it.
    pub(super) fn report_late(&self, used: &ToolUse, reported: Reported) -> Result<Seq, Error> {
        let (intents, manifest) = self.look(|kernel| {
            let of_it = kernel.unreported().filter(|(_, tool)| **tool == used.tool);
            let mut intents: Vec<Seq> = of_it.map(|(intent, _)| intent).collect();
            if matches!(reported, Reported::NotMade(_)) {
                // One with an outcome may have been reported so before, and a client repeats that.
                let unresolved = kernel.unresolved();
                intents.retain(|intent| unresolved.binary_search(intent).is_ok());
            }
            let manifest = kernel.manifests().find(|known| known.tool == used.tool).cloned();
            (intents, manifest)
        });
        let unknown = || refused(Reason::UnknownReference, "tool_use_id");
        let manifest = manifest.filter(|_| !intents.is_empty()).ok_or_else(unknown)?;
        let find = |store: &mut dyn Store| closed(store, &intents, used, &manifest);
        let found = self.core.read(find)?.ok_or_else(unknown)?;
        self.providers.owes(&used.agent, reported.len());
        self.record_late(found, reported)
    }

    /// The same of one that was begun in this session, by its intent.
    pub(super) fn report_own_late(
        &self,
        session: &LocalSession,
        intent: Seq,
        reported: Reported,
        offers: impl Fn(&ToolId) -> bool,
    ) -> Result<Seq, Error> {
        let unknown = || refused(Reason::UnknownReference, "intent");
        let is_its = self.look(|kernel| {
            let mut closed = kernel.unreported();
            closed.any(|(closed, tool)| closed == intent && offers(tool))
        });
        if !is_its {
            return Err(unknown());
        }
        let found = self.core.read(|store| {
            let Some(bytes) = record_at(store, intent)? else { return Ok(None) };
            let Ok(Record { body: Body::Intent(record), .. }) = Record::decode(&bytes) else {
                return Ok(None);
            };
            let is_its = record.call.session == Some(session.number());
            let salts = vault_entry(store, intent, intent)?.salts.filter(|_| is_its);
            let effect = record.effect;
            Ok(salts.map(|salts| Closed { intent, effect, salt: salts.result, same: true }))
        })?;
        let found = found.ok_or_else(unknown)?;
        self.providers.owes(session.agent(), reported.len());
        self.record_late(found, reported)
    }

    fn record_late(&self, closed: Closed, reported: Reported) -> Result<Seq, Error> {
        let Closed { intent, effect, salt, same } = closed;
        let HostRan { result, tx, failed, retry, .. } = came_to(effect, same, reported);
        let (status, delivered) = match result {
            Ok(output) if failed => (Status::Error, Refused::tool_failed(output.item(), tx, retry)),
            Ok(result) => (Status::Ok, result),
            Err(why) => (Status::Error, why.error_object(ErrorKind::Failed(tx))),
        };
        let result_hash = result_hash(&salt, status.code(), delivered.item());
        // The kernel adds that of the tool's results.
        let label = Label::PUBLIC;
        let report = LateReport { intent, status, result_hash, tx, label };
        match acknowledged(self.core.request(|ticket| Event::Reported(ticket, report))) {
            // Another report of it was quicker.
            Err(Error::Refused(why)) if why.reason() == Reason::BadControl => {
                Err(refused(Reason::UnknownReference, "tool_use_id"))
            }
            reported => reported,
        }
    }
}

fn closed(
    store: &mut dyn Store,
    intents: &[Seq],
    used: &ToolUse,
    manifest: &Manifest,
) -> Result<Option<Closed>, Halt> {
    let key = used.id.as_deref().and_then(IdempotencyKey::new);
    for seq in intents {
        let Some(bytes) = record_at(store, *seq)? else { continue };
        let Ok(Record { body: Body::Intent(intent), .. }) = Record::decode(&bytes) else {
            continue;
        };
        if intent.call.agent_id.as_ref() != Some(&used.agent) || intent.key != key {
            continue;
        }
        let Some((salt, args)) = let_through(store, *seq, &intent)? else { continue };
        let same = placed(used, manifest).is_ok_and(|sent| is_sent(&sent, &args));
        if same || key.is_some() {
            return Ok(Some(Closed { intent: *seq, effect: intent.effect, salt, same }));
        }
    }
    Ok(None)
}

/// The arguments that a use was let through with, and the salt of its result, unless erased.
fn let_through(
    store: &mut dyn Store,
    seq: Seq,
    intent: &Intent,
) -> Result<Option<(Salt, Canonical)>, Halt> {
    let call = &intent.call;
    let named = call.args_hash.zip(call.tool_id.as_ref()).zip(call.manifest.as_ref());
    let Some(((hash, tool), manifest)) = named else { return Ok(None) };
    let entry = vault_entry(store, seq, seq)?;
    let args = entry.committed(Commitment::Arguments(hash, tool, manifest));
    Ok(entry.salts.map(|salts| salts.result).zip(args))
}
