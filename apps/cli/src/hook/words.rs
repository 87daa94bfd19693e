//! A refusal in words that a model can act on.

use std::path::Path;

use syscap::{
    format::envelope::ToolResult,
    format::{cbor::Item, id::ToolId, json, reason::Reason},
};

/// Why a use must not be made, and what to do about it.
pub(super) fn refusal(home: &Path, tool: &ToolId, answer: &ToolResult) -> String {
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
    if let Some(hint) = error.get("hint").and_then(Item::as_text) {
        text.push_str(&format!(" {hint}"));
    }
    if let Some(ask) = answer.ask() {
        let home = std::path::absolute(home).unwrap_or_else(|_| home.to_path_buf());
        let command = format!("syscap approvals approve {} {ask}", home.display());
        text.push_str(&format!(
            " A person approves it with: {command}; then use it again as it is."
        ));
    } else if reason == Reason::Asked {
        text.push_str(" Nobody can be asked; the operator can let it through by policy.");
    }
    text.push_str(&format!(" (record {record})"));
    text
}
