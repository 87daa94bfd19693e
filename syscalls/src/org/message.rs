//! The contents of an inbox: a message as it was sent, and the known facts around it.

use syscap_format::{AgentId, Canonical, Item, MapBuilder, Profile, UnixMillis};

/// Largest message, in bytes of its canonical form.
pub const MESSAGE_BYTES_MAX: u64 = 64 << 10;
/// Largest file of one: with the names of all recipients.
pub(super) const FILE_BYTES_MAX: u64 = MESSAGE_BYTES_MAX + (32 << 10);

/// The argument that is no part of the message.
pub(super) const RECIPIENTS: &str = "recipients";

/// The message itself: all that was sent, but for whom it is for. Unknown fields are kept, byte for
/// byte.
pub(super) fn of(args: Item<'_>) -> Canonical {
    let kept = args.entries().filter(|(key, _)| *key != RECIPIENTS);
    kept.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value)).finish()
}

/// The file: who sent it, to whom and when stand beside the message, where nothing in it can say
/// otherwise. `None` where it would be deeper than what can be read back.
pub(super) fn file(
    from: &AgentId,
    to: &[AgentId],
    sent: UnixMillis,
    message: &Canonical,
) -> Option<Vec<u8>> {
    let to: Vec<Canonical> = to.iter().map(|agent| Canonical::text(agent.as_str())).collect();
    let file = MapBuilder::new()
        .uint("v", 1)
        .text("from", from.as_str())
        .item("to", Canonical::list(to.into_iter()).item())
        .uint("sent_ms", sent.get())
        .item("message", message.item());
    let bytes = file.finish().into_bytes();
    Item::check(&bytes, Profile::DATA).is_ok().then_some(bytes)
}

/// A file, read. `None` where it is none of ours.
pub(super) struct Kept(Canonical);

impl Kept {
    pub(super) fn read(bytes: Vec<u8>) -> Option<Self> {
        let kept = Self(Canonical::check(bytes, Profile::DATA).ok()?);
        let file = kept.0.item();
        let is_ours = file.get("v").and_then(Item::as_uint) == Some(1)
            && file.get("from").and_then(Item::as_text).is_some()
            && file.get("to").is_some()
            && file.get("sent_ms").and_then(Item::as_uint).is_some()
            && file.get("message").is_some();
        is_ours.then_some(kept)
    }

    pub(super) fn sent(&self) -> UnixMillis {
        UnixMillis::new(self.0.item().get("sent_ms").and_then(Item::as_uint).unwrap_or(0))
    }

    /// `{id, from, to, sent_ms, sent, message}`.
    pub(super) fn shown(&self, id: &str) -> Canonical {
        let kept = self.0.item().entries().filter(|(key, _)| *key != "v");
        let map = kept.fold(MapBuilder::new(), |map, (key, value)| map.item(key, value));
        map.text("id", id).text("sent", &self.sent().to_string()).finish()
    }
}
