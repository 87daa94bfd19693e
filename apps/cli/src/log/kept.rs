//! The vault's data of a call: its arguments, and its result.

use syscap::audit::SqliteReader;
use syscap::format::{
    Body, CallFields, Canonical, Commitment, MapBuilder, Record, Seq, Status, VaultEntry,
};
use syscap::kernel::{StoreError, vault_entry};

/// The state of data that a record commits to.
#[derive(Clone, Debug)]
pub(super) enum Kept {
    /// It.
    There(Canonical),
    /// The record commits to nothing.
    Never,
    /// It was erased.
    Erased,
    /// It was refused before a policy was asked: then only its error is kept.
    Unkept,
    /// Something else: it is not shown.
    Altered,
}

impl Kept {
    fn of(row: Option<&Vec<u8>>, entry: &VaultEntry, commitment: Option<Commitment<'_>>) -> Self {
        match (commitment, row, &entry.salts) {
            (None, ..) => Self::Never,
            (Some(_), None, _) | (Some(_), _, None) => Self::Erased,
            (Some(commitment), ..) => {
                entry.committed(commitment).map_or(Self::Altered, Self::There)
            }
        }
    }

    /// The words in its place if it can't be shown.
    pub(super) const fn word(&self) -> &'static str {
        match self {
            Self::There(_) => "there",
            Self::Never => "none",
            Self::Erased => "erased",
            Self::Unkept => "not kept",
            Self::Altered => "altered",
        }
    }
}

/// Both sides of a call; of what a user said, that as an argument.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub(super) arguments: Kept,
    /// The result, or the error object.
    pub(super) delivered: Kept,
}

impl Sides {
    pub(super) fn altered(&self) -> bool {
        [&self.arguments, &self.delivered].iter().any(|kept| matches!(kept, Kept::Altered))
    }

    /// The data of a record; `None` if it is no call's.
    pub(super) fn of(
        record: &Record,
        reader: &mut SqliteReader,
    ) -> Result<Option<Self>, StoreError> {
        let at = record.seq;
        Ok(Some(match &record.body {
            Body::Intent(intent) => Self::read(reader, at, at, &intent.call, None)?,
            Body::Ask(ask) => Self::read(reader, at, at, &ask.call, None)?,
            Body::Outcome(outcome) => {
                Self::read(reader, outcome.intent, at, &outcome.call, Some(outcome.status))?
            }
            Body::Refusal(refusal) => {
                let sides = Self::read(reader, at, at, &refusal.call, Some(Status::Error))?;
                match (&sides.arguments, &sides.delivered) {
                    (Kept::Erased, Kept::There(_)) => Self { arguments: Kept::Unkept, ..sides },
                    _ => sides,
                }
            }
            Body::Input(input) => {
                let entry = vault_entry(reader, at, at)?;
                let said = entry.text(&input.text);
                let said = said.map(|said| MapBuilder::new().text("said", said).finish());
                let arguments = match said {
                    Some(said) => Kept::There(said),
                    None if entry.texts.is_empty() => Kept::Erased,
                    None => Kept::Altered,
                };
                Self { arguments, delivered: Kept::Never }
            }
            _ => return Ok(None),
        }))
    }

    fn read(
        reader: &mut SqliteReader,
        first: Seq,
        last: Seq,
        call: &CallFields,
        ended: Option<Status>,
    ) -> Result<Self, StoreError> {
        let entry = vault_entry(reader, first, last)?;
        let named = call.args_hash.zip(call.tool_id.as_ref()).zip(call.manifest.as_ref());
        let arguments =
            named.map(|((hash, tool), manifest)| Commitment::Arguments(hash, tool, manifest));
        let delivered = call.result_hash.zip(ended);
        let delivered = delivered.map(|(hash, status)| Commitment::Result(hash, status));
        Ok(Self {
            arguments: Kept::of(entry.args.as_ref(), &entry, arguments),
            delivered: Kept::of(entry.result.as_ref(), &entry, delivered),
        })
    }
}
