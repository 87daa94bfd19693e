//! A view on the wire.

use std::collections::BTreeMap;

use syscap_format::{
    cbor::{Canonical, Item, Kind, MapBuilder},
    control::{ControlBody as _, Freeze},
    id::{AgentId, DefinitionHash, HomeId, ObjectId, PolicyHash, Seq, TokenId, ToolId},
    label::{Confidentiality, Integrity, Label},
    manifest::{EffectClass, Manifest},
    reason::Reason,
    time::UnixMillis,
};

use super::{
    limits::{VIEW_MAX, VIEW_TOOLS_MAX},
    reply::{standing_name, standing_named},
    wire::{Broken, Fields, amounts, byte_strings, read_amounts, texts, written},
};
use crate::{
    counters::Counts,
    view::{Running, SessionInfo, TokenInfo, ToolDetail, ToolInfo, View},
};

impl View {
    pub(crate) fn to_canonical(&self) -> Canonical {
        let policy = |map: MapBuilder, key: &str, hash: &Option<PolicyHash>| match hash {
            Some(hash) => map.bytes(key, hash.as_bytes()),
            None => map,
        };
        let map = MapBuilder::new()
            .bytes("home", self.home.as_bytes())
            .uint("head", self.head.get())
            .uint("now", self.now.get())
            .item("frozen", byte_strings(self.frozen.iter().map(Freeze::to_bytes)).item())
            .uint("frozen_in_all", self.frozen_in_all)
            .item("tools", list(&self.tools, ToolInfo::to_canonical).item())
            .uint("tools_in_all", self.tools_in_all)
            .item("tokens", list(&self.tokens, TokenInfo::to_canonical).item())
            .uint("tokens_in_all", self.tokens_in_all)
            .item("sessions", list(&self.sessions, SessionInfo::to_canonical).item())
            .uint("sessions_in_all", self.sessions_in_all)
            .item("running", list(&self.running, Running::to_canonical).item())
            .uint("running_in_all", self.running_in_all)
            .item("counts", write_counts(&self.counts).item());
        let map = policy(map, "policy", &self.policy);
        policy(map, "shadow", &self.shadow).finish()
    }

    pub(crate) fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let view = Self {
            home: HomeId::from_bytes(fields.digest("home")?),
            head: Seq::new(fields.uint("head")?),
            now: UnixMillis::new(fields.uint("now")?),
            policy: read_hash(fields.maybe("policy"))?,
            shadow: read_hash(fields.maybe("shadow"))?,
            frozen: fields.list("frozen", VIEW_MAX, |item| {
                let bytes = item.as_byte_string().ok_or(Broken::Form)?;
                Freeze::from_bytes(bytes).map_err(|_| Broken::Form)
            })?,
            frozen_in_all: fields.uint("frozen_in_all")?,
            tools: fields.list("tools", VIEW_TOOLS_MAX, ToolInfo::read)?,
            tools_in_all: fields.uint("tools_in_all")?,
            tokens: fields.list("tokens", VIEW_MAX, TokenInfo::read)?,
            tokens_in_all: fields.uint("tokens_in_all")?,
            sessions: fields.list("sessions", VIEW_MAX, SessionInfo::read)?,
            sessions_in_all: fields.uint("sessions_in_all")?,
            running: fields.list("running", VIEW_MAX, Running::read)?,
            running_in_all: fields.uint("running_in_all")?,
            counts: read_counts(fields.take("counts")?)?,
        };
        fields.end()?;
        Ok(view)
    }
}

impl ToolInfo {
    fn to_canonical(&self) -> Canonical {
        let map = MapBuilder::new()
            .text("tool", self.tool.as_str())
            .text("effect", self.effect.name())
            .text("title", &self.title)
            .bytes("manifest", self.manifest.as_bytes())
            .text("standing", standing_name(self.standing))
            .boolean("provided", self.provided)
            .boolean("delegated", self.delegated);
        let map = write_label(map, &self.label);
        let map = match &self.definition {
            Some(definition) => map.bytes("definition", definition.as_bytes()),
            None => map,
        };
        match &self.offered {
            Some(offered) => map.bytes("offered", offered.as_bytes()),
            None => map,
        }
        .finish()
    }

    fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let effect = fields.text("effect")?;
        let info = Self {
            tool: ToolId::new(fields.text("tool")?).ok_or(Broken::Form)?,
            effect: *EffectClass::ALL.iter().find(|e| e.name() == effect).ok_or(Broken::Form)?,
            label: label(&mut fields)?,
            title: fields.text("title")?.to_owned(),
            definition: digest(fields.maybe("definition"))?.map(DefinitionHash::from_bytes),
            manifest: ObjectId::from_bytes(fields.digest("manifest")?),
            standing: standing_named(fields.text("standing")?).ok_or(Broken::Form)?,
            offered: digest(fields.maybe("offered"))?.map(ObjectId::from_bytes),
            provided: fields.boolean("provided")?,
            delegated: fields.boolean("delegated")?,
        };
        fields.end()?;
        Ok(info)
    }
}

impl ToolDetail {
    pub(super) fn to_canonical(&self) -> Canonical {
        let map = MapBuilder::new()
            .item("info", self.info.to_canonical().item())
            .bytes("manifest", &self.manifest.to_bytes());
        match &self.offered {
            Some(offered) => map.bytes("offered", &offered.to_bytes()),
            None => map,
        }
        .finish()
    }

    pub(crate) fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let detail = Self {
            info: ToolInfo::read(fields.take("info")?)?,
            manifest: manifest(fields.take("manifest")?)?,
            offered: fields.maybe("offered").map(manifest).transpose()?,
        };
        fields.end()?;
        Ok(detail)
    }
}

pub(super) fn manifests(manifests: &[Manifest]) -> Canonical {
    byte_strings(manifests.iter().map(Manifest::to_bytes))
}

pub(crate) fn read_manifests(item: Item<'_>) -> Result<Vec<Manifest>, Broken> {
    if item.kind() != Kind::Array {
        return Err(Broken::Form);
    }
    item.elements().map(manifest).collect()
}

fn manifest(item: Item<'_>) -> Result<Manifest, Broken> {
    let bytes = item.as_byte_string().ok_or(Broken::Form)?;
    Manifest::from_bytes(bytes).map_err(|_| Broken::Form)
}

impl TokenInfo {
    fn to_canonical(&self) -> Canonical {
        MapBuilder::new()
            .bytes("id", self.id.as_bytes())
            .text("agent", self.agent.as_str())
            .uint("issued", self.issued.get())
            .uint("expires", self.expires.get())
            .boolean("revoked", self.revoked)
            .item("tools", texts(self.tools.iter().map(ToolId::as_str)).item())
            .item("limits", amounts(&self.limits).item())
            .item("used", amounts(&self.used).item())
            .item("held", amounts(&self.held).item())
            .item("left", amounts(&self.left).item())
            .finish()
    }

    fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let info = Self {
            id: TokenId::from_bytes(fields.digest("id")?),
            agent: agent(&mut fields)?,
            issued: Seq::new(fields.uint("issued")?),
            expires: UnixMillis::new(fields.uint("expires")?),
            revoked: fields.boolean("revoked")?,
            tools: fields.list("tools", usize::MAX, |item| {
                item.as_text().and_then(ToolId::new).ok_or(Broken::Form)
            })?,
            limits: read_amounts(fields.take("limits")?)?,
            used: read_amounts(fields.take("used")?)?,
            held: read_amounts(fields.take("held")?)?,
            left: read_amounts(fields.take("left")?)?,
        };
        fields.end()?;
        Ok(info)
    }
}

impl SessionInfo {
    fn to_canonical(&self) -> Canonical {
        let map = MapBuilder::new()
            .uint("number", self.number.get())
            .text("agent", self.agent.as_str())
            .bytes("token", self.token.as_bytes());
        write_label(map, &self.label).finish()
    }

    fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let info = Self {
            number: Seq::new(fields.uint("number")?),
            agent: agent(&mut fields)?,
            token: TokenId::from_bytes(fields.digest("token")?),
            label: label(&mut fields)?,
        };
        fields.end()?;
        Ok(info)
    }
}

impl Running {
    fn to_canonical(&self) -> Canonical {
        MapBuilder::new()
            .uint("intent", self.intent.get())
            .text("tool", self.tool.as_str())
            .text("agent", self.agent.as_str())
            .uint("since", self.since.get())
            .finish()
    }

    fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let info = Self {
            intent: Seq::new(fields.uint("intent")?),
            tool: ToolId::new(fields.text("tool")?).ok_or(Broken::Form)?,
            agent: agent(&mut fields)?,
            since: UnixMillis::new(fields.uint("since")?),
        };
        fields.end()?;
        Ok(info)
    }
}

fn write_counts(counts: &Counts) -> Canonical {
    let refused = counts.refused.iter();
    let refused = refused.fold(MapBuilder::new(), |map, (reason, n)| map.uint(reason.name(), *n));
    MapBuilder::new()
        .uint("calls", counts.calls)
        .uint("allowed", counts.allowed)
        .uint("failed", counts.failed)
        .uint("repeats", counts.repeats)
        .item("refused", refused.finish().item())
        .uint("connections", counts.connections)
        .uint("attached", counts.attached)
        .uint("foreign", counts.foreign)
        .finish()
}

fn read_counts(item: Item<'_>) -> Result<Counts, Broken> {
    let mut fields = Fields::of(item)?;
    let mut refused = BTreeMap::new();
    for (name, count) in fields.take("refused")?.entries() {
        let reason = Reason::ALL.iter().find(|reason| reason.name() == name);
        let count = count.as_uint().ok_or(Broken::Form)?;
        refused.insert(*reason.ok_or(Broken::Form)?, count);
    }
    let counts = Counts {
        calls: fields.uint("calls")?,
        allowed: fields.uint("allowed")?,
        failed: fields.uint("failed")?,
        repeats: fields.uint("repeats")?,
        refused,
        connections: fields.uint("connections")?,
        attached: fields.uint("attached")?,
        foreign: fields.uint("foreign")?,
    };
    fields.end()?;
    Ok(counts)
}

fn list<T>(values: &[T], write: impl Fn(&T) -> Canonical) -> Canonical {
    written(|encoder| {
        encoder.array(values.len());
        values.iter().for_each(|value| encoder.item(write(value).item()));
    })
}

fn write_label(map: MapBuilder, label: &Label) -> MapBuilder {
    map.text("integrity", label.integrity().name())
        .text("confidentiality", label.confidentiality().name())
        .uint("categories", label.categories().into())
}

fn label(fields: &mut Fields<'_>) -> Result<Label, Broken> {
    let (integrity, whose) = (fields.text("integrity")?, Integrity::ALL);
    let (confidentiality, whom) = (fields.text("confidentiality")?, Confidentiality::ALL);
    let label = Label::new(
        *whose.iter().find(|one| one.name() == integrity).ok_or(Broken::Form)?,
        *whom.iter().find(|one| one.name() == confidentiality).ok_or(Broken::Form)?,
    );
    let categories = u32::try_from(fields.uint("categories")?).map_err(|_| Broken::Form)?;
    Ok(label.with_categories(categories))
}

fn agent(fields: &mut Fields<'_>) -> Result<AgentId, Broken> {
    AgentId::new(fields.text("agent")?).ok_or(Broken::Form)
}

fn read_hash(item: Option<Item<'_>>) -> Result<Option<PolicyHash>, Broken> {
    Ok(digest(item)?.map(PolicyHash::from_bytes))
}

fn digest(item: Option<Item<'_>>) -> Result<Option<[u8; 32]>, Broken> {
    let Some(item) = item else { return Ok(None) };
    let bytes = item.as_byte_string().and_then(|bytes| bytes.try_into().ok());
    bytes.map(Some).ok_or(Broken::Form)
}
