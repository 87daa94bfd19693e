//! What a call came to, as another process sees it.

use syscap_format::{
    cbor::{Canonical, Item},
    envelope::{Status, ToolResult, TxOutcome},
    id::Seq,
    reason::Reason,
};

/// The answer to a call: its whole envelope, in the process of the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    envelope: Canonical,
    reason: Option<Reason>,
    tx: TxOutcome,
    record: Seq,
}

impl Answer {
    pub(crate) fn of(result: &ToolResult) -> Self {
        Self {
            envelope: result.to_canonical(),
            reason: result.reason(),
            tx: result.tx_outcome(),
            record: result.receipt().outcome_seq,
        }
    }

    /// Of an envelope that another process made; `None` where it lacks what every answer has.
    pub(crate) fn read(envelope: Canonical) -> Option<Self> {
        let item = envelope.item();
        let tx = item.get("tx_outcome").and_then(Item::as_text)?;
        let tx = *TxOutcome::ALL.iter().find(|one| one.name() == tx)?;
        let record = item.get("receipt")?.get("outcome_seq").and_then(Item::as_uint)?;
        let reason = match item.get("status").and_then(Item::as_text)? {
            "ok" => None,
            _ => {
                let code = item.get("error")?.get("code").and_then(Item::as_uint)?;
                Some(Reason::from_code(code)?)
            }
        };
        Some(Self { reason, tx, record: Seq::new(record), envelope })
    }

    /// The whole envelope: a map with text keys, as of
    /// [`ToolResult::to_canonical`](syscap_format::envelope::ToolResult::to_canonical).
    #[must_use]
    pub fn as_item(&self) -> Item<'_> {
        self.envelope.item()
    }

    /// Whether there is a result.
    #[must_use]
    pub const fn status(&self) -> Status {
        if self.reason.is_some() { Status::Error } else { Status::Ok }
    }

    /// Why there is none.
    #[must_use]
    pub const fn reason(&self) -> Option<Reason> {
        self.reason
    }

    /// The result, or the error object.
    #[must_use]
    pub fn delivered(&self) -> Item<'_> {
        let key = if self.reason.is_some() { "error" } else { "result" };
        self.as_item().get(key).unwrap_or(Item::NULL)
    }

    /// The text of the result: its entry `text` where it is a map, else the result itself;
    /// `None` where there is no text in it, or no result.
    #[must_use]
    pub fn text(&self) -> Option<&str> {
        let value = match self.reason {
            None => self.delivered(),
            Some(_) => return None,
        };
        value.get("text").or(Some(value)).and_then(Item::as_text)
    }

    /// What became of the call's effect.
    #[must_use]
    pub const fn tx(&self) -> TxOutcome {
        self.tx
    }

    /// The record that answers it.
    #[must_use]
    pub const fn record(&self) -> Seq {
        self.record
    }
}
