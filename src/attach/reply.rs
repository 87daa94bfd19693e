//! What is answered: what was asked for, a refusal, or why it could not be had.

use syscap_format::{
    cbor::{Canonical, Item, MapBuilder},
    envelope::{ToolResult, TxOutcome},
    id::{AgentId, Seq, SnapshotId, TokenId},
    manifest::Manifest,
    reason::{ErrorKind, Reason, Refused},
};

use super::{
    lend::SessionTicket,
    limits::TOOLS_MAX,
    wire::{Broken, Fields, amounts, data, written},
};
use crate::{
    error::Error,
    keys::{KeyUse, SignerError},
    provide::{HostRan, Offer, Standing},
    state::Changed,
};

/// An answer.
pub(super) enum Reply {
    /// What was asked for; of which form, the one who asked knows.
    Done(Canonical),
    /// The kernel, or the holder, refused it: nothing happened.
    Refused(Refused),
    /// It could not be had.
    Failed(Failure),
}

/// Why something could not be had.
pub(super) enum Failure {
    /// A name is not of its form.
    Name { what: &'static str, got: String },
    /// A key is sealed: whoever asked can sign in the holder's place.
    Sealed(KeyUse),
    /// Anything else, in words.
    Other(String),
}

/// What can be named wrongly.
const NAMES: [&str; 7] = [
    "the agent",
    "the tool",
    "the root",
    "a built-in tool",
    "a delegated tool",
    "a tool's alias",
    "a tool whose definition has changed",
];

impl Reply {
    /// Nothing but that it was done.
    pub(super) fn nothing() -> Self {
        Self::Done(Canonical::null())
    }

    pub(super) fn refused(reason: Reason) -> Self {
        Self::Refused(Refused::new(reason))
    }

    /// In the place of an answer that no frame can hold.
    pub(super) fn too_long() -> Self {
        Self::Failed(Failure::Other("the answer is too long".to_owned()))
    }

    /// In the place of an answer that was being made.
    pub(super) fn broke_off() -> Self {
        Self::Failed(Failure::Other("the holder broke off".to_owned()))
    }

    pub(super) fn of<T>(result: Result<T, Error>, done: impl FnOnce(T) -> Canonical) -> Self {
        match result {
            Ok(value) => Self::Done(done(value)),
            Err(Error::Refused(refused)) => Self::Refused(refused),
            Err(Error::BadName { what, got }) => Self::Failed(Failure::Name { what, got }),
            Err(Error::Signer(SignerError::Sealed(key))) => Self::Failed(Failure::Sealed(key)),
            Err(error) => Self::Failed(Failure::Other(error.to_string())),
        }
    }

    /// What was asked for, or the error that the one who asked would have got at the holder.
    pub(super) fn into_result(self) -> Result<Canonical, Error> {
        match self {
            Self::Done(item) => Ok(item),
            Self::Refused(refused) => Err(Error::Refused(refused)),
            Self::Failed(Failure::Name { what, got }) => Err(Error::BadName { what, got }),
            Self::Failed(Failure::Sealed(key)) => Err(SignerError::Sealed(key).into()),
            Self::Failed(Failure::Other(text)) => Err(Error::Holder(text)),
        }
    }

    pub(super) fn write(&self, id: u64) -> Canonical {
        let map = MapBuilder::new().uint("id", id);
        match self {
            Self::Done(item) => map.item("done", item.item()),
            Self::Refused(refused) => {
                map.item("refused", refused.error_object(ErrorKind::Refused).item())
            }
            Self::Failed(failure) => map.item("failed", failure.write().item()),
        }
        .finish()
    }

    pub(super) fn read(mut fields: Fields<'_>) -> Result<Self, Broken> {
        let reply = if let Some(item) = fields.maybe("done") {
            Self::Done(Canonical::from(item))
        } else if let Some(item) = fields.maybe("refused") {
            Self::Refused(read_refused(item)?)
        } else {
            Self::Failed(Failure::read(fields.take("failed")?)?)
        };
        fields.end()?;
        Ok(reply)
    }
}

impl Failure {
    fn write(&self) -> Canonical {
        let map = MapBuilder::new();
        match self {
            Self::Name { what, got } => map.text("name", what).text("got", got),
            Self::Sealed(key) => map.text("sealed", key.name()),
            Self::Other(text) => map.text("text", text),
        }
        .finish()
    }

    fn read(item: Item<'_>) -> Result<Self, Broken> {
        let mut fields = Fields::of(item)?;
        let failure = if let Some(name) = fields.maybe("name").and_then(Item::as_text) {
            let what = NAMES.into_iter().find(|what| *what == name).ok_or(Broken::Form)?;
            Self::Name { what, got: fields.text("got")?.to_owned() }
        } else if let Some(key) = fields.maybe("sealed") {
            let key = key.as_text().and_then(KeyUse::named);
            Self::Sealed(key.ok_or(Broken::Form)?)
        } else {
            Self::Other(fields.text("text")?.to_owned())
        };
        fields.end()?;
        Ok(failure)
    }
}

/// A refusal from its error object: reason and details; the rest follows from the reason.
fn read_refused(item: Item<'_>) -> Result<Refused, Broken> {
    let code = item.get("code").and_then(Item::as_uint).ok_or(Broken::Form)?;
    let mut refused = Refused::new(Reason::from_code(code).ok_or(Broken::Form)?);
    let text = |key: &str| item.get(key).and_then(Item::as_text);
    if let Some(field) = text("field") {
        refused = refused.field(field);
    }
    if let Some(got) = text("got") {
        refused = refused.got(got);
    }
    if let Some(allowed) = text("allowed") {
        refused = refused.allowed(allowed);
    }
    Ok(refused)
}

pub(crate) fn read_nothing(item: Item<'_>) -> Result<(), Broken> {
    if item.is_null() { Ok(()) } else { Err(Broken::Form) }
}

pub(super) fn record(seq: Seq) -> Canonical {
    written(|encoder| encoder.uint(seq.get()))
}

pub(crate) fn read_record(item: Item<'_>) -> Result<Seq, Broken> {
    item.as_uint().map(Seq::new).ok_or(Broken::Form)
}

pub(super) fn token(token: TokenId) -> Canonical {
    written(|encoder| encoder.bytes(token.as_bytes()))
}

pub(crate) fn read_token(item: Item<'_>) -> Result<TokenId, Broken> {
    let bytes = item.as_byte_string().and_then(|bytes| bytes.try_into().ok());
    bytes.map(TokenId::from_bytes).ok_or(Broken::Form)
}

pub(super) fn ticket(ticket: &SessionTicket) -> Canonical {
    written(|encoder| encoder.bytes(ticket.as_bytes()))
}

pub(crate) fn read_ticket(item: Item<'_>) -> Result<SessionTicket, Broken> {
    let bytes = item.as_byte_string().and_then(|bytes| bytes.try_into().ok());
    bytes.map(SessionTicket::from_bytes).ok_or(Broken::Form)
}

/// A session that was lent, as the one sees it who takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Taken {
    pub(crate) session: Seq,
    pub(crate) agent: AgentId,
    pub(crate) token: TokenId,
}

pub(super) fn taken(taken: &Taken) -> Canonical {
    let map = MapBuilder::new().uint("session", taken.session.get());
    map.text("agent", taken.agent.as_str()).bytes("token", taken.token.as_bytes()).finish()
}

pub(crate) fn read_taken(item: Item<'_>) -> Result<Taken, Broken> {
    let mut fields = Fields::of(item)?;
    let taken = Taken {
        session: Seq::new(fields.uint("session")?),
        agent: AgentId::new(fields.text("agent")?).ok_or(Broken::Form)?,
        token: TokenId::from_bytes(fields.digest("token")?),
    };
    fields.end()?;
    Ok(taken)
}

pub(super) fn changed(changed: Changed) -> Canonical {
    let map = MapBuilder::new().bytes("snapshot", changed.snapshot.as_bytes());
    map.uint("record", changed.record.get()).finish()
}

pub(crate) fn read_changed(item: Item<'_>) -> Result<Changed, Broken> {
    let mut fields = Fields::of(item)?;
    let changed = Changed {
        snapshot: SnapshotId::from_bytes(fields.digest("snapshot")?),
        record: Seq::new(fields.uint("record")?),
    };
    fields.end()?;
    Ok(changed)
}

/// An answer to a call. What was delivered stands apart, as bytes: it may nest as deep as data
/// may.
pub(super) fn answer(answer: &ToolResult) -> Canonical {
    let envelope = answer.to_canonical();
    let head = envelope.item().entries().filter(|(key, _)| !is_delivered(key));
    let head = head.fold(MapBuilder::new(), |map, (key, item)| map.item(key, item));
    MapBuilder::new()
        .item("head", head.finish().item())
        .bytes("delivered", answer.delivered().as_bytes())
        .finish()
}

pub(crate) fn read_answer(item: Item<'_>) -> Result<ToolResult, Broken> {
    let mut fields = Fields::of(item)?;
    let head = fields.take("head")?;
    let delivered = data(fields.bytes("delivered")?)?;
    fields.end()?;
    let key = match head.get("status").and_then(Item::as_text) {
        Some("ok") => "result",
        Some("error") => "error",
        _ => return Err(Broken::Form),
    };
    if head.entries().any(|(key, _)| is_delivered(key)) {
        return Err(Broken::Form);
    }
    let map = head.entries().fold(MapBuilder::new(), |map, (key, item)| map.item(key, item));
    ToolResult::from_canonical(&map.item(key, delivered.item()).finish()).ok_or(Broken::Form)
}

fn is_delivered(key: &str) -> bool {
    matches!(key, "result" | "error")
}

pub(super) fn offers(offers: &[Offer]) -> Canonical {
    written(|encoder| {
        encoder.array(offers.len());
        for offer in offers {
            encoder.array(2);
            encoder.text(standing_name(offer.standing));
            encoder.bytes(&offer.manifest.to_bytes());
        }
    })
}

pub(crate) fn read_offers(item: Item<'_>) -> Result<Vec<Offer>, Broken> {
    if item.count() > TOOLS_MAX {
        return Err(Broken::Form);
    }
    let offer = |item: Item<'_>| {
        let mut parts = item.elements();
        let standing = parts.next().and_then(Item::as_text).and_then(standing_named);
        let manifest = parts.next().and_then(Item::as_byte_string);
        let manifest = manifest.and_then(|bytes| Manifest::from_bytes(bytes).ok());
        Some(Offer { standing: standing?, manifest: manifest? })
    };
    item.elements().map(|item| offer(item).ok_or(Broken::Form)).collect()
}

/// The word for how a tool stands.
pub(crate) const fn standing_name(standing: Standing) -> &'static str {
    match standing {
        Standing::Ready => "ready",
        Standing::Changed => "changed",
        Standing::Taken => "taken",
        Standing::New => "new",
    }
}

pub(crate) fn standing_named(name: &str) -> Option<Standing> {
    let all = [Standing::Ready, Standing::Changed, Standing::Taken, Standing::New];
    all.into_iter().find(|standing| standing_name(*standing) == name)
}

/// What a run came to.
pub(super) fn ran(ran: &HostRan) -> Canonical {
    let map = MapBuilder::new().text("tx", ran.tx.name()).item("used", amounts(&ran.used).item());
    match &ran.result {
        Ok(result) => map.bytes("result", result.as_bytes()),
        Err(refused) => map.item("refused", refused.error_object(ErrorKind::Failed).item()),
    }
    .finish()
}

pub(super) fn read_ran(item: Item<'_>) -> Result<HostRan, Broken> {
    let mut fields = Fields::of(item)?;
    let tx = fields.text("tx")?;
    let tx = *TxOutcome::ALL.iter().find(|one| one.name() == tx).ok_or(Broken::Form)?;
    let used = fields.amounts("used")?;
    let result = match fields.maybe("result") {
        Some(item) => Ok(data(item.as_byte_string().ok_or(Broken::Form)?)?),
        None => Err(read_refused(fields.take("refused")?)?),
    };
    fields.end()?;
    Ok(HostRan { result, tx, used })
}
