//! The third step: references are replaced by what they refer to, and the arguments are settled.

use crate::call::reference::replaced;
use crate::call::{Call, Checked, Dereferenced, Stepped, arguments};
use syscap_format::{CallSalts, Canonical, args_hash};

impl<'c, 'k> Call<'c, Checked<'k>> {
    /// Puts fetched results in the place of references, checks the arguments against the
    /// manifest, adds defaults, and commits to what came of it.
    pub(crate) fn dereference(
        self,
        parts: &[Canonical],
        salts: &CallSalts,
    ) -> Stepped<'c, Dereferenced<'k>> {
        let Self { fields, at: Checked { call, found, references } } = self;
        let manifest = &found.tool.manifest;
        let sent = call.args();
        let resolved = replaced(sent, &references, parts)?;
        let given = resolved.as_ref().map_or(sent, Canonical::item);
        let args = arguments::conform(manifest, given)?.or(resolved);
        let at = Dereferenced { call, found, args, sent: None };
        let hash = args_hash(&salts.args, &manifest.tool, &found.tool.manifest_id, at.args());
        fields.args_hash = Some(hash);
        Ok(Call { fields, at })
    }
}
