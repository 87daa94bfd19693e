//! The block for a client's configuration.

use serde_json::{Value, json};

/// A client whose form of configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum KnownClient {
    /// Claude Code.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor.
    Cursor,
    /// Visual Studio Code.
    VsCode,
    /// Gemini CLI.
    Gemini,
}

impl KnownClient {
    /// All that there are.
    pub const ALL: [Self; 5] =
        [Self::ClaudeCode, Self::ClaudeDesktop, Self::Cursor, Self::VsCode, Self::Gemini];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::VsCode => "vscode",
            Self::Gemini => "gemini",
        }
    }

    /// The client of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.name() == name)
    }

    /// The file that it reads servers from: of a project, where it has one for projects.
    pub const fn file(self) -> &'static str {
        match self {
            Self::ClaudeCode => ".mcp.json",
            Self::ClaudeDesktop => "claude_desktop_config.json",
            Self::Cursor => ".cursor/mcp.json",
            Self::VsCode => ".vscode/mcp.json",
            Self::Gemini => ".gemini/settings.json",
        }
    }

    /// The key under which its servers stand, and whether each says by which transport it speaks.
    const fn form(self) -> (&'static str, bool) {
        match self {
            Self::VsCode => ("servers", true),
            Self::ClaudeCode => ("mcpServers", true),
            Self::ClaudeDesktop | Self::Cursor | Self::Gemini => ("mcpServers", false),
        }
    }
}

/// The snippet that makes a client start this gateway: `{"mcpServers": {NAME: ..}}`, or in the form
/// of a client that is named.
#[must_use]
pub fn snippet(client: Option<KnownClient>, name: &str, command: &str, args: &[String]) -> Value {
    let (key, typed) = client.map_or(("mcpServers", false), KnownClient::form);
    let mut server = json!({ "command": command, "args": args });
    if let Some(server) = server.as_object_mut().filter(|_| typed) {
        server.insert(String::from("type"), Value::from("stdio"));
    }
    json!({ key: { name: server } })
}
