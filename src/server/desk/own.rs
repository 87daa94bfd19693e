//! Uses of tools that an agent's program offers by its ticket and runs itself.

use std::sync::Arc;

use syscap_format::{ItemKind, Reason, Seq, ToolId};

use crate::Error;
use crate::server::desk::args::placed;
use crate::server::desk::{Desk, Stage, Use, Uses, came_to, is_name, refused};
use crate::server::{Holding, LocalSession};
use crate::tools::host::uses::{Begun, OwnUse, Reported, Settled, ToolUse};
use crate::tools::provide::Provider;

impl Desk {
    /// Asks the kernel for leave to use a tool that an agent's program offers by its ticket, in a session
    /// of its own.
    pub(crate) fn begin_own(
        &self,
        runtime: &Holding,
        session: &Arc<LocalSession>,
        used: OwnUse,
        unasked: bool,
    ) -> Result<Begun, Error> {
        let OwnUse { id, tool, args, location, part } = used;
        if !id.as_deref().is_none_or(is_name) {
            return Err(refused(Reason::BadField, "id"));
        }
        if args.item().kind() != ItemKind::Map {
            return Err(refused(Reason::BadField, "args"));
        }
        let manifest =
            runtime.look(|kernel| kernel.manifests().find(|known| known.tool == tool).cloned());
        let manifest = manifest.ok_or_else(|| refused(Reason::UnknownTool, "tool"))?;
        let agent = session.agent().clone();
        let (conversation, place) = (String::new(), None);
        let used = ToolUse { agent, conversation, id, tool, args, place, location, part };
        let leave = (manifest.effect, placed(&used, &manifest)?);
        let by: Arc<dyn Provider> = Arc::new(Uses(Arc::clone(&self.0)));
        self.send(runtime, Arc::clone(session), used, leave, Some(by), unasked)
    }

    /// Says what a use came to that was begun in this session. Of one that was closed before it is
    /// recorded as late, where the program offers its tool.
    pub(crate) fn settle_own(
        &self,
        runtime: &Holding,
        session: &LocalSession,
        intent: Seq,
        reported: Reported,
        offers: impl Fn(&ToolId) -> bool,
    ) -> Result<Settled, Error> {
        let shared = &*self.0;
        let state = shared.lock();
        let is_meant = |one: &Use| {
            let is_out = matches!(one.stage, Stage::Out(out) if out == intent);
            is_out && one.is_own && one.session == session.number()
        };
        let found = state.uses.iter().find(|(_, one)| is_meant(one));
        let Some((tag, effect)) = found.map(|(tag, one)| (*tag, one.effect)) else {
            drop(state);
            let late = runtime.report_own_late(session, intent, reported, offers);
            return late.map(Settled::Late);
        };
        runtime.providers.owes(session.agent(), reported.len());
        shared.settles(state, tag, came_to(effect, true, reported))
    }
}
