//! Uses of tools that an agent's client runs itself, on the wire.

use syscap_format::{
    cbor::{Canonical, Item, MapBuilder},
    id::{AgentId, Seq, TokenId, ToolId},
    manifest::Manifest,
};

use super::{
    reply::{answer, read_answer},
    wire::{Broken, Fields, data},
};
use crate::host::uses::{Begun, Reported, ToolUse};

fn write(map: MapBuilder, used: &ToolUse) -> MapBuilder {
    let map = map
        .text("agent", used.agent.as_str())
        .text("conversation", &used.conversation)
        .text("tool", used.tool.as_str())
        .bytes("args", used.args.as_bytes());
    match &used.id {
        Some(id) => map.text("use", id),
        None => map,
    }
}

fn read(fields: &mut Fields<'_>) -> Result<ToolUse, Broken> {
    let id = match fields.maybe("use") {
        Some(id) => Some(id.as_text().ok_or(Broken::Form)?.to_owned()),
        None => None,
    };
    Ok(ToolUse {
        agent: AgentId::new(fields.text("agent")?).ok_or(Broken::Form)?,
        conversation: fields.text("conversation")?.to_owned(),
        id,
        tool: ToolId::new(fields.text("tool")?).ok_or(Broken::Form)?,
        args: data(fields.bytes("args")?)?,
    })
}

/// What is asked by `begin`.
pub(crate) struct Begin {
    pub(crate) token: TokenId,
    pub(crate) used: ToolUse,
    pub(crate) manifest: Manifest,
}

impl Begin {
    pub(super) fn write(&self, map: MapBuilder) -> MapBuilder {
        let map = map.bytes("token", self.token.as_bytes());
        write(map, &self.used).bytes("manifest", &self.manifest.to_bytes())
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Broken> {
        Ok(Self {
            token: TokenId::from_bytes(fields.digest("token")?),
            manifest: Manifest::from_bytes(fields.bytes("manifest")?).map_err(|_| Broken::Form)?,
            used: read(fields)?,
        })
    }
}

/// What is told by `settle`.
pub(crate) struct Settle {
    pub(crate) token: TokenId,
    pub(crate) used: ToolUse,
    pub(crate) reported: Reported,
}

impl Settle {
    pub(super) fn write(&self, map: MapBuilder) -> MapBuilder {
        let map = write(map.bytes("token", self.token.as_bytes()), &self.used);
        match &self.reported {
            Reported::Result(result) => map.bytes("result", result.as_bytes()),
            Reported::Failed(words) => map.text("failed", words),
        }
    }

    pub(super) fn read(fields: &mut Fields<'_>) -> Result<Self, Broken> {
        let reported = match fields.maybe("failed") {
            Some(words) => Reported::Failed(words.as_text().ok_or(Broken::Form)?.to_owned()),
            None => Reported::Result(data(fields.bytes("result")?)?),
        };
        let token = TokenId::from_bytes(fields.digest("token")?);
        Ok(Self { token, used: read(fields)?, reported })
    }
}

/// What is answered to `begin`.
pub(super) fn begun(begun: &Begun) -> Canonical {
    match begun {
        Begun::Out(intent) => MapBuilder::new().uint("out", intent.get()),
        Begun::Answered(answered) => MapBuilder::new().item("answer", answer(answered).item()),
    }
    .finish()
}

pub(crate) fn read_begun(item: Item<'_>) -> Result<Begun, Broken> {
    let mut fields = Fields::of(item)?;
    let begun = match fields.maybe("answer") {
        Some(answered) => Begun::Answered(Box::new(read_answer(answered)?)),
        None => Begun::Out(Seq::new(fields.uint("out")?)),
    };
    fields.end()?;
    Ok(begun)
}
