//! The request that an approval answers: it names the leaf of the record that asked.

use std::collections::BTreeMap;

use syscap::audit::SqliteReader;
use syscap::format::{
    ApprovalBody, Body, ControlBody as _, EffectClass, Leaf, Record, Seq, ToolId, leaf,
};
use syscap::kernel::{Next, StoreError};

use crate::hook::client::Client;

/// A call that was asked about.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) ask: Seq,
    pub(super) agent: String,
    pub(super) tool: String,
    pub(super) class: Option<EffectClass>,
}

impl Asked {
    /// Its tool as people read it.
    pub(super) fn shown(&self) -> String {
        ToolId::new(&self.tool).map_or_else(|| self.tool.clone(), |it| Client::shown(&it, None))
    }
}

/// The calls that were asked about, as far as the log was read for them: only where there is an
/// answer to be shown.
#[derive(Default)]
pub(super) struct Answers {
    asks: BTreeMap<Leaf, Asked>,
    /// The first record that was not read.
    next: Seq,
}

impl Answers {
    /// The request that a record answers; `None` if it answers none, or an unknown one.
    pub(super) fn of(
        &mut self,
        record: &Record,
        reader: &mut SqliteReader,
    ) -> Result<Option<Asked>, StoreError> {
        let Body::Approval(event) = &record.body else { return Ok(None) };
        let Ok(body) = ApprovalBody::from_bytes(&event.control.body) else { return Ok(None) };
        if self.next < record.seq {
            reader.records(self.next, &mut |seq, bytes| {
                if seq >= record.seq {
                    return Next::Enough;
                }
                self.read(seq, bytes);
                Next::More
            })?;
            self.next = record.seq;
        }
        Ok(self.asks.get(&body.ask).cloned())
    }

    fn read(&mut self, ask: Seq, bytes: &[u8]) {
        // One that can't be read is shown as such where it stands.
        let Ok(Record { body: Body::Ask(asked), .. }) = Record::decode(bytes) else { return };
        let named = |name: Option<String>| name.unwrap_or_default();
        let agent = named(asked.call.agent_id.as_ref().map(ToString::to_string));
        let tool = named(asked.call.tool_id.as_ref().map(ToString::to_string));
        let class = Some(asked.call_effect);
        self.asks.insert(leaf(bytes), Asked { ask, agent, tool, class });
    }
}
