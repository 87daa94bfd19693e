//! What a call that waits for a person would change.

use syscap_format::{Item, PreconditionKind, Resource, Rights, ToolId};
use syscap_kernel::Condition;

use super::condition::{digest_of, sha256};
use super::{Files, diff, edit, path};
use crate::beneath::{FsError, Location};

impl Files {
    /// What a call of `fs.write`, `fs.edit` or `fs.delete` would change in the file that its run is
    /// bound to, as a unified diff of at most 8 KiB, cut at a line.
    ///
    /// `None` for any other tool, where the file is not the one that the condition names by now, and
    /// where either content is no UTF-8, has over 256 KiB, or differs in over 400 lines. Whoever
    /// looks needs the right to read the base: a token is not asked for.
    pub fn difference(
        &self,
        tool: &ToolId,
        args: Item<'_>,
        condition: &Condition,
    ) -> Option<String> {
        let subject = format!("{} {}", Rights::READ, condition.subject);
        let Some(Resource::Path { path, .. }) = Resource::path_in_full(&subject) else {
            return None;
        };
        let before = self.before(&path::location_of(&path).ok()?, condition)?;
        let text = |name| args.get(name).and_then(Item::as_text);
        let after = match tool.as_str() {
            "fs.write" => {
                let bytes = || args.get("bytes").and_then(Item::as_byte_string);
                text("text").map(str::as_bytes).or_else(bytes)?.to_vec()
            }
            "fs.edit" => edit::replaced(&before, text("old")?, text("new")?).ok()?.1,
            "fs.delete" => Vec::new(),
            _ => return None,
        };
        diff::unified(&before, &after)
    }

    /// The content that a condition names, if it is there.
    fn before(&self, at: &Location, condition: &Condition) -> Option<Vec<u8>> {
        let opened = self.base.open_file(at, diff::TEXT_BYTES_MAX);
        match (condition.kind, condition.seen.as_deref()) {
            (PreconditionKind::Absent, None) => {
                (opened.err() == Some(FsError::NotFound)).then(Vec::new)
            }
            (PreconditionKind::Digest, Some(seen)) => {
                let limit = usize::try_from(diff::TEXT_BYTES_MAX).ok()?;
                let chunk = opened.ok()?.read(0, limit).ok()?;
                (!chunk.more && digest_of(seen) == Some(sha256(&chunk.bytes)))
                    .then_some(chunk.bytes)
            }
            _ => None,
        }
    }
}
