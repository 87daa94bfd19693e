//! A refusal in words that a model can act on.

use std::collections::BTreeSet;

use syscap::{
    format::envelope::ToolResult,
    format::{
        cbor::Item,
        id::{TokenId, ToolId},
        json,
        manifest::EffectClass,
        reason::Reason,
    },
    syscalls::marks::Mark,
};

use super::unclear::{self, Unclear};

/// What a use was held against.
pub(super) struct Against<'a> {
    /// The home, as a shell reads it.
    pub(super) home: &'a str,
    pub(super) tool: &'a ToolId,
    pub(super) token: TokenId,
    /// What the tool counts as; a shell's use by its command, where that can be told.
    pub(super) class: Option<EffectClass>,
    pub(super) unclear: &'a [Unclear],
    /// What a shell's command does besides, as far as it was read.
    pub(super) marks: &'a BTreeSet<Mark>,
    /// The command that sets the client up again.
    pub(super) set_up: &'a str,
}

/// Why a use must not be made, and what to do about it.
pub(super) fn refusal(against: &Against<'_>, answer: &ToolResult) -> String {
    let tool = against.tool;
    let record = answer.receipt().outcome_seq.get();
    let Some(reason) = answer.reason() else {
        return format!("syscap: this use of {tool} has ended already (record {record}).");
    };
    let mut text = format!("syscap refused {tool}: {} ({}).", reason.name(), reason.code());
    let error = answer.delivered().item();
    for key in ["field", "got", "allowed"] {
        if let Some(value) = error.get(key) {
            let value = value.as_text().map_or_else(|| json::from_data(value), str::to_owned);
            text.push_str(&format!(" {key}: {}.", value.trim_end_matches('.')));
        }
    }
    if let Some(class) = against.class {
        text.push_str(&format!(" class: {}.", class.name()));
    }
    if let Some(constraint) = answer.constraint() {
        text.push_str(&format!(" constraint: {constraint}."));
    }
    if let Some(hint) = error.get("hint").and_then(Item::as_text) {
        text.push_str(&format!(" {hint}"));
    }
    text.push_str(&unclear::told(against.unclear).unwrap_or_default());
    if reason == Reason::Asked {
        text.push_str(unclear::asked_for(against.marks).unwrap_or_default());
    }
    let ask = answer.ask().map(|ask| ask.to_string());
    if let Some(next) = against.next(reason, ask) {
        text.push_str(&format!(" {next}"));
    }
    text.push_str(&format!(" (record {record})"));
    text
}

impl Against<'_> {
    /// Who goes on, and by which command.
    fn next(&self, reason: Reason, ask: Option<String>) -> Option<String> {
        let Self { home, tool, token, set_up, .. } = self;
        if let Some(ask) = ask {
            return Some(format!(
                "A person approves it with: syscap approvals approve {home} {ask}; then use it \
                 again as it is."
            ));
        }
        Some(match reason {
            Reason::Asked => format!(
                "Nobody was asked: as many of the agent's calls wait as may (32), which an \
                 operator answers (`syscap approvals list {home}`), or the policy names nobody who \
                 may approve this (`syscap policy show {home}`)."
            ),
            Reason::Denied | Reason::Constraint | Reason::Obligation | Reason::Reduced => {
                format!("An operator sees what the policy says: `syscap policy show {home}`.")
            }
            Reason::NotGranted => format!(
                "An operator grants it besides: \
                 `syscap token reissue {home} {token} --tool {tool}`."
            ),
            // Its scopes are folders and hosts of the set-up.
            Reason::OutOfScope => format!(
                "An operator sets the client up with more, and names again what it has: \
                 `{set_up} --root FOLDER` (or --host NAME)."
            ),
            // The hook's own words are what has changed.
            Reason::ToolChanged => format!("An operator accepts what it is now: `{set_up}`."),
            Reason::Revoked | Reason::Expired | Reason::Exhausted | Reason::OverBudget => {
                format!("An operator issues a token anew: `syscap token reissue {home} {token}`.")
            }
            Reason::Frozen => {
                format!("An operator sees what is frozen: `syscap top {home} --once`.")
            }
            _ => return None,
        })
    }
}
