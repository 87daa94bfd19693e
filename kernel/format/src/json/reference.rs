//! The one form of a reference.

use crate::cbor::{Decoder, ItemKind};

/// True if the next item is `{"path": [text or uint, ...], "record": uint}`.
pub(super) fn is_reference(mut decoder: Decoder<'_>) -> bool {
    let mut read = || {
        decoder.shape(2)?;
        let path = decoder.text()?;
        decoder.each(|step| match step.peek()? {
            ItemKind::Text => step.text().map(|_| ()),
            _ => step.uint().map(|_| ()),
        })?;
        let record = decoder.text()?;
        decoder.uint()?;
        Ok::<bool, crate::cbor::DecodeError>(path == "path" && record == "record")
    };
    read().unwrap_or(false)
}
