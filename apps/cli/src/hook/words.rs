//! A refusal in words that a model can act on.

use std::path::Path;

use syscap::format::{EffectClass, Item, Reason, TokenId, ToolId, ToolResult, UnixMillis, json};
use syscap::plain::plain;
use syscap::remedy::{Remedy, allowed_word, for_model};

/// The rules that a use was compared with.
pub(super) struct Against<'a> {
    pub(super) home: &'a Path,
    /// The client's name for the tool.
    pub(super) name: &'a str,
    pub(super) tool: &'a ToolId,
    pub(super) token: TokenId,
    /// The class of the tool.
    pub(super) class: EffectClass,
    /// When the token expired, where that is why.
    pub(super) expired: Option<UnixMillis>,
}

/// Why a use must not be made, and what to do about it.
pub(super) fn refusal(against: &Against<'_>, answer: &ToolResult) -> String {
    let Against { tool, token, .. } = *against;
    let name = plain(against.name);
    let record = answer.receipt().outcome_seq.get();
    let Some(reason) = answer.reason() else {
        return format!("syscap: this use of {name} has ended already (record {record}).");
    };
    let mut text = format!("syscap refused {name}: {} ({}).", reason.name(), reason.code());
    let error = answer.delivered().item();
    for key in ["field", "got", "allowed"] {
        if let Some(value) = error.get(key) {
            let value = value.as_text().map_or_else(|| json::from_data(value), str::to_owned);
            // What was asked for the model knows.
            let value = if key == "allowed" { for_model(against.home, &value) } else { value };
            let key = if key == "allowed" { allowed_word(reason) } else { key };
            text.push_str(&format!(" {key}: {}.", value.trim_end_matches('.')));
        }
    }
    text.push_str(&format!(" class: {}.", against.class.name()));
    if let Some(constraint) = answer.constraint() {
        text.push_str(&format!(" constraint: {constraint}."));
    }
    if let Some(hint) = error.get("hint").and_then(Item::as_text) {
        text.push_str(&format!(" {hint}"));
    }
    if let Some(expired) = against.expired {
        text.push_str(&format!(" The token expired at {expired}."));
    }
    if let Some(advice) = remedy(tool, token, answer).and_then(|remedy| remedy.advice()) {
        text.push_str(&format!(" To go on: {advice}."));
    }
    text.push_str(&format!(" (record {record})"));
    text
}

/// The remedy for it.
pub(super) fn remedy<'a>(
    tool: &'a ToolId,
    token: TokenId,
    answer: &'a ToolResult,
) -> Option<Remedy<'a>> {
    let got = answer.delivered().item().get("got").and_then(Item::as_text);
    let (tool, token) = (Some(tool), Some(token));
    let reason = answer.reason()?;
    Some(Remedy { reason, tool, token, got, ask: answer.ask(), intent: None })
}

/// The same where nothing could be recorded, since the token had expired before.
pub(super) fn expired(tool: &str, at: Option<UnixMillis>) -> String {
    let reason = Reason::Expired;
    let at = at.map_or_else(String::new, |at| format!(" The token expired at {at}."));
    let (tool, name, code) = (plain(tool), reason.name(), reason.code());
    format!(
        "syscap refused {tool}: {name} ({code}).{at} To go on: an operator can issue the token \
         once more."
    )
}
