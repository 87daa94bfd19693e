//! What is asked, from either side: each with an `id` that its answer repeats, and an `op`. All
//! of it is of version 1, and may be otherwise in another.

use syscap_format::{
    budget::Amounts,
    cbor::{Canonical, Item, Kind, MapBuilder},
    id::{AgentId, DefinitionHash, ObjectId, Seq, SnapshotId, TokenId, ToolId},
    json::Escapes,
    limits::PROVENANCE_INPUTS_MAX,
    manifest::Manifest,
    object::PolicyObject,
    provenance::Source,
};

use super::{
    grants,
    lend::SessionTicket,
    limits::TOOLS_MAX,
    reply::Reply,
    uses::{Begin, Settle},
    wire::{Broken, Fields, amounts, byte_strings, data, texts, written},
};
use crate::{
    grant::Grant,
    provide::{Cancel, HostCall},
    sent::{Sent, Written},
    submit::Submission,
    tools::DELEGATED_MAX,
    view::Whose,
};

/// A frame as it came in.
pub(super) enum Frame<'a> {
    /// Something is asked: the id, the `op`, and what else stands there.
    Asked(u64, &'a str, Fields<'a>),
    /// Something is answered.
    Replied(u64, Reply),
}

impl<'a> Frame<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Broken> {
        let mut fields = Fields::read(bytes)?;
        let id = fields.uint("id")?;
        match fields.maybe("op") {
            Some(op) => Ok(Self::Asked(id, op.as_text().ok_or(Broken::Form)?, fields)),
            None => Ok(Self::Replied(id, Reply::read(fields)?)),
        }
    }
}

/// What may be asked on the agents' lane: calls through sessions that were lent, and nothing that
/// shows or changes what is not the caller's. Everything else is the operator's.
pub(super) const AGENTS: [&str; 4] = ["take", "call", "cancel", "close"];

/// What an attached process asks of the holder.
pub(crate) enum Ask {
    Issue(Box<Grant>),
    Policy(PolicyObject),
    Shadow(PolicyObject),
    NoShadow,
    Open {
        agent: String,
        token: TokenId,
    },
    Lend(Seq),
    Take(SessionTicket),
    Close(Seq),
    Call {
        session: Seq,
        sent: Sent,
    },
    /// Nobody waits for the call that was asked for under this id.
    Cancel(u64),
    Charge {
        session: Seq,
        amounts: Amounts,
    },
    Propose(Box<Proposed>),
    Provide(Vec<Manifest>),
    Withdraw(Vec<ToolId>),
    Accept(Vec<ToolId>),
    AcceptAs(Vec<(ToolId, ObjectId)>),
    Forget(Vec<ToolId>),
    ReadPolicy(Vec<u8>),
    Submit(Box<Submission>),
    Begin(Box<Begin>),
    Settle(Box<Settle>),
    View,
    Tool(ToolId),
    Manifests(Whose),
}

/// A change to the state of a session's agent.
pub(crate) struct Proposed {
    pub(crate) session: Seq,
    pub(crate) writer: Source,
    pub(crate) inputs: Vec<Seq>,
    pub(crate) base: Option<SnapshotId>,
    pub(crate) changes: Canonical,
}

impl Ask {
    pub(super) fn write(&self, id: u64) -> Canonical {
        let map = MapBuilder::new().uint("id", id);
        let op = |op: &str| map.clone().text("op", op);
        match self {
            Self::Issue(grant) => op("issue").item("grant", grants::encode(grant).item()),
            Self::Policy(object) => op("set_policy").bytes("policy", &object.to_bytes()),
            Self::Shadow(object) => op("set_shadow").bytes("policy", &object.to_bytes()),
            Self::NoShadow => op("clear_shadow"),
            Self::Open { agent, token } => {
                op("open").text("agent", agent).bytes("token", token.as_bytes())
            }
            Self::Lend(session) => op("lend").uint("session", session.get()),
            Self::Take(ticket) => op("take").bytes("ticket", ticket.as_bytes()),
            Self::Close(session) => op("close").uint("session", session.get()),
            Self::Call { session, sent } => op("call")
                .uint("session", session.get())
                .bytes("envelope", &sent.envelope)
                .text("form", name_of(sent.form))
                .text("source", sent.source.name())
                .uint("tag", sent.tag),
            Self::Cancel(call) => op("cancel").uint("call", *call),
            Self::Charge { session, amounts: charged } => {
                op("charge").uint("session", session.get()).item("amounts", amounts(charged).item())
            }
            Self::Propose(proposed) => proposed.write(op("propose")),
            Self::Provide(tools) => {
                let tools = byte_strings(tools.iter().map(Manifest::to_bytes));
                op("provide").item("tools", tools.item())
            }
            Self::Withdraw(tools) => op("withdraw").item("tools", names(tools).item()),
            Self::Accept(tools) => op("accept").item("tools", names(tools).item()),
            Self::AcceptAs(tools) => op("accept_as").item("tools", definitions(tools).item()),
            Self::Forget(tools) => op("forget").item("tools", names(tools).item()),
            Self::ReadPolicy(document) => op("read_policy").bytes("document", document),
            Self::Submit(submission) => submission.write(op("submit")),
            Self::Begin(asked) => asked.write(op("begin")),
            Self::Settle(asked) => asked.write(op("settle")),
            Self::View => op("view"),
            Self::Tool(tool) => op("tool").text("tool", tool.as_str()),
            Self::Manifests(whose) => op("manifests").boolean("all", *whose == Whose::All),
        }
        .finish()
    }

    pub(super) fn read(op: &str, mut fields: Fields<'_>) -> Result<Self, Broken> {
        let f = &mut fields;
        let ask = match op {
            "issue" => Self::Issue(Box::new(grants::decode(f.take("grant")?)?)),
            "set_policy" => Self::Policy(read_policy(f)?),
            "set_shadow" => Self::Shadow(read_policy(f)?),
            "clear_shadow" => Self::NoShadow,
            "open" => Self::Open {
                agent: f.text("agent")?.to_owned(),
                token: TokenId::from_bytes(f.digest("token")?),
            },
            "lend" => Self::Lend(Seq::new(f.uint("session")?)),
            "take" => Self::Take(SessionTicket::from_bytes(f.digest("ticket")?)),
            "close" => Self::Close(Seq::new(f.uint("session")?)),
            "call" => Self::Call {
                session: Seq::new(f.uint("session")?),
                sent: Sent {
                    envelope: f.bytes("envelope")?.to_vec(),
                    form: read_form(f)?,
                    source: read_source(f.text("source")?)?,
                    tag: f.uint("tag")?,
                },
            },
            "cancel" => Self::Cancel(f.uint("call")?),
            "charge" => Self::Charge {
                session: Seq::new(f.uint("session")?),
                amounts: f.amounts("amounts")?,
            },
            "propose" => Self::Propose(Box::new(Proposed::read(f)?)),
            "provide" => Self::Provide(f.list("tools", TOOLS_MAX, |item| {
                let bytes = item.as_byte_string().ok_or(Broken::Form)?;
                Manifest::from_bytes(bytes).map_err(|_| Broken::Form)
            })?),
            "withdraw" => Self::Withdraw(f.list("tools", DELEGATED_MAX, read_tool)?),
            "accept" => Self::Accept(f.list("tools", DELEGATED_MAX, read_tool)?),
            "accept_as" => Self::AcceptAs(read_definitions(f.take("tools")?)?),
            "forget" => Self::Forget(f.list("tools", DELEGATED_MAX, read_tool)?),
            "read_policy" => Self::ReadPolicy(f.bytes("document")?.to_vec()),
            "submit" => Self::Submit(Box::new(Submission::read(f)?)),
            "begin" => Self::Begin(Box::new(Begin::read(f)?)),
            "settle" => Self::Settle(Box::new(Settle::read(f)?)),
            "view" => Self::View,
            "tool" => Self::Tool(read_tool(f.take("tool")?)?),
            "manifests" => {
                Self::Manifests(if f.boolean("all")? { Whose::All } else { Whose::Holders })
            }
            _ => return Err(Broken::Form),
        };
        fields.end()?;
        Ok(ask)
    }
}

/// How an envelope may be written.
const FORMS: [Written; 4] = [
    Written::Cbor,
    Written::Json,
    Written::Arguments(Escapes::Data),
    Written::Arguments(Escapes::Read),
];

const fn name_of(form: Written) -> &'static str {
    match form {
        Written::Cbor => "cbor",
        Written::Json => "json",
        Written::Arguments(Escapes::Data) => "arguments",
        Written::Arguments(Escapes::Read) => "escaped arguments",
    }
}

fn read_form(fields: &mut Fields<'_>) -> Result<Written, Broken> {
    let name = fields.text("form")?;
    FORMS.into_iter().find(|form| name_of(*form) == name).ok_or(Broken::Form)
}

impl Proposed {
    fn write(&self, map: MapBuilder) -> MapBuilder {
        let inputs = written(|encoder| {
            encoder.array(self.inputs.len());
            self.inputs.iter().for_each(|input| encoder.uint(input.get()));
        });
        let map = map
            .uint("session", self.session.get())
            .text("writer", self.writer.name())
            .item("inputs", inputs.item())
            .bytes("changes", self.changes.as_bytes());
        match self.base {
            Some(base) => map.bytes("base", base.as_bytes()),
            None => map,
        }
    }

    fn read(fields: &mut Fields<'_>) -> Result<Self, Broken> {
        let writer = fields.text("writer")?;
        // One more than the kernel takes, so that it is the kernel that refuses.
        let inputs = fields.list("inputs", PROVENANCE_INPUTS_MAX + 1, |item| {
            item.as_uint().map(Seq::new).ok_or(Broken::Form)
        })?;
        let base = match fields.maybe("base") {
            Some(item) => {
                let bytes = item.as_byte_string().and_then(|bytes| bytes.try_into().ok());
                Some(SnapshotId::from_bytes(bytes.ok_or(Broken::Form)?))
            }
            None => None,
        };
        Ok(Self {
            session: Seq::new(fields.uint("session")?),
            writer: read_source(writer)?,
            inputs,
            base,
            changes: data(fields.bytes("changes")?)?,
        })
    }
}

/// What the holder asks of an attached process.
pub(super) enum Order {
    /// Run a tool that the process offers.
    Run(Box<HostCall>),
    /// Nobody waits for the run that was asked for under this id.
    Cancel(u64),
    /// The holder ends: ask nothing more of it.
    Closing,
}

impl Order {
    pub(super) fn write(&self, id: u64) -> Canonical {
        let map = MapBuilder::new().uint("id", id);
        match self {
            Self::Run(call) => map
                .text("op", "run")
                .text("tool", call.tool.as_str())
                .bytes("definition", call.definition.as_bytes())
                .text("agent", call.agent.as_str())
                .uint("session", call.session.get())
                .uint("intent", call.intent.get())
                .bytes("args", call.args.as_bytes())
                .item("hold", amounts(&call.hold).item())
                .uint("result_bytes_max", u64::try_from(call.result_bytes_max).unwrap_or(u64::MAX))
                .boolean("read_only", call.read_only)
                .uint("tag", call.tag),
            Self::Cancel(run) => map.text("op", "cancel").uint("run", *run),
            Self::Closing => map.text("op", "closing"),
        }
        .finish()
    }

    pub(super) fn read(op: &str, mut fields: Fields<'_>) -> Result<Self, Broken> {
        let f = &mut fields;
        let order = match op {
            "run" => Self::Run(Box::new(HostCall {
                tool: ToolId::new(f.text("tool")?).ok_or(Broken::Form)?,
                definition: DefinitionHash::from_bytes(f.digest("definition")?),
                agent: AgentId::new(f.text("agent")?).ok_or(Broken::Form)?,
                session: Seq::new(f.uint("session")?),
                intent: Seq::new(f.uint("intent")?),
                args: data(f.bytes("args")?)?,
                hold: f.amounts("hold")?,
                result_bytes_max: usize::try_from(f.uint("result_bytes_max")?)
                    .map_err(|_| Broken::Form)?,
                read_only: f.boolean("read_only")?,
                tag: f.uint("tag")?,
                cancel: Cancel::new(),
            })),
            "cancel" => Self::Cancel(f.uint("run")?),
            "closing" => Self::Closing,
            _ => return Err(Broken::Form),
        };
        fields.end()?;
        Ok(order)
    }
}

fn read_source(name: &str) -> Result<Source, Broken> {
    Source::ALL.iter().copied().find(|source| source.name() == name).ok_or(Broken::Form)
}

fn read_policy(fields: &mut Fields<'_>) -> Result<PolicyObject, Broken> {
    PolicyObject::from_bytes(fields.bytes("policy")?).map_err(|_| Broken::Form)
}

pub(super) fn read_tool(item: Item<'_>) -> Result<ToolId, Broken> {
    item.as_text().and_then(ToolId::new).ok_or(Broken::Form)
}

/// Tools, each with the id of a manifest.
pub(super) fn definitions(tools: &[(ToolId, ObjectId)]) -> Canonical {
    let tools = tools.iter().map(|(tool, manifest)| (tool.as_str(), manifest));
    let map =
        |map: MapBuilder, (tool, manifest): (&str, &ObjectId)| map.bytes(tool, manifest.as_bytes());
    tools.fold(MapBuilder::new(), map).finish()
}

/// The same, read.
pub(super) fn read_definitions(item: Item<'_>) -> Result<Vec<(ToolId, ObjectId)>, Broken> {
    if item.kind() != Kind::Map || item.count() > DELEGATED_MAX {
        return Err(Broken::Form);
    }
    let definition = |(tool, manifest): (&str, Item<'_>)| {
        let manifest = manifest.as_byte_string().and_then(|bytes| bytes.try_into().ok());
        Some((ToolId::new(tool)?, ObjectId::from_bytes(manifest?)))
    };
    item.entries().map(|entry| definition(entry).ok_or(Broken::Form)).collect()
}

pub(super) fn names(tools: &[ToolId]) -> Canonical {
    texts(tools.iter().map(ToolId::as_str))
}
