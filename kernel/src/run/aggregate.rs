//! The refusals that an open aggregate has answered.

use syscap_format::{Domain, Encoder, Hasher, Leaf, Reason, RefusalsDigest, UnixMillis};

/// The answers of an open aggregate so far. It is not in the log until the aggregate closes: after
/// a crash the aggregate counts in full.
#[derive(Default)]
pub(crate) struct Counted {
    pub(crate) count: u64,
    hasher: Option<Hasher>,
    pub(crate) leaf: Option<Leaf>,
    pub(crate) since: UnixMillis,
}

impl Counted {
    /// One that opens with this record.
    pub(crate) fn open(leaf: Leaf, since: UnixMillis) -> Self {
        Self { leaf: Some(leaf), since, ..Self::default() }
    }

    pub(crate) fn count(&mut self, now: UnixMillis, reason: Reason) {
        let mut encoder = Encoder::with_capacity(16);
        encoder.array(2);
        encoder.uint(now.get());
        encoder.uint(reason.code());
        let hasher = self.hasher.get_or_insert_with(|| Domain::REFUSALS.hasher());
        hasher.update(&encoder.into_bytes());
        self.count = self.count.saturating_add(1);
    }

    pub(crate) fn digest(&self) -> RefusalsDigest {
        let hasher = self.hasher.clone().unwrap_or_else(|| Domain::REFUSALS.hasher());
        RefusalsDigest::from_bytes(hasher.finish())
    }
}
