//! What goes into a client's configuration.

use serde_json::{Value, json};

/// The snippet that makes a client start this gateway: `{"mcpServers": {NAME: ..}}`.
#[must_use]
pub fn snippet(name: &str, command: &str, args: &[String]) -> Value {
    json!({ "mcpServers": { name: { "command": command, "args": args } } })
}
