//! The clients that `run` knows, and how each is told of hook and gateway by files that it can't
//! change.

use std::{ffi::OsStr, fs, path::Path};

use syscap_gateway::KnownClient;

use crate::{exit::Failure, hook::client::Client, hook::setup};

/// The clients' name for the run's gateway.
pub(super) const GATEWAY: &str = "syscap";

/// A client, if it is one that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Known {
    ClaudeCode,
    GeminiCli,
    None,
}

/// The client of that name.
pub(super) fn named(name: &str) -> Result<Known, String> {
    match name {
        "claude-code" => Ok(Known::ClaudeCode),
        "gemini-cli" => Ok(Known::GeminiCli),
        "none" => Ok(Known::None),
        _ => Err("there is no such client; there are claude-code, gemini-cli, none".to_owned()),
    }
}

/// The settings by which a program asks the hook, and finds the gateway.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Before its own arguments.
    pub(super) arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
}

impl Known {
    pub(super) fn by_name(program: Option<&OsStr>) -> Self {
        match program.and_then(OsStr::to_str) {
            Some("claude") => Self::ClaudeCode,
            Some("gemini") => Self::GeminiCli,
            _ => Self::None,
        }
    }

    /// As the hook knows it.
    pub(super) const fn client(self) -> Option<Client> {
        match self {
            Self::ClaudeCode => Some(Client::ClaudeCode),
            Self::GeminiCli => Some(Client::GeminiCli),
            Self::None => None,
        }
    }

    /// Writes its files into a folder, which is to be read-only for it.
    pub(super) fn configure(
        self,
        folder: &Path,
        hook: &str,
        gateway: Option<(&str, &[String])>,
    ) -> Result<Configured, Failure> {
        let write = |name: &str, text: &str| {
            let path = folder.join(name);
            fs::write(&path, text).map_err(Failure::file(&path))?;
            setup::path(&path)
        };
        let mut made = Configured::default();
        match self {
            Self::None => {}
            Self::ClaudeCode => {
                if let Some((program, words)) = gateway {
                    let client = Some(KnownClient::ClaudeCode);
                    let text = syscap_gateway::snippet(client, GATEWAY, program, words);
                    let path = write("mcp.json", &text.to_string())?;
                    // As one word: the option takes as many as follow it. Strict: no server of a
                    // project's or a user's is started beside it, or in its place.
                    made.arguments.push(format!("--mcp-config={path}"));
                    made.arguments.push("--strict-mcp-config".to_owned());
                }
                // What stands here is above what projects and users say.
                let text = joined(hook, r#""disableAllHooks":false"#);
                made.arguments.extend(["--settings".to_owned(), write("settings.json", &text)?]);
            }
            Self::GeminiCli => {
                let mut text = hook.to_owned();
                if let Some((program, words)) = gateway {
                    let client = Some(KnownClient::Gemini);
                    let servers = syscap_gateway::snippet(client, GATEWAY, program, words);
                    if let Some(servers) = servers.get("mcpServers") {
                        text = joined(&text, &format!("\"mcpServers\":{servers}"));
                        text = joined(&text, &format!("\"mcp\":{{\"allowed\":[\"{GATEWAY}\"]}}"));
                    }
                }
                let path = write("settings.json", &text)?;
                made.environment.push(("GEMINI_CLI_SYSTEM_SETTINGS_PATH".to_owned(), path));
            }
        }
        Ok(made)
    }
}

/// A JSON object with another member.
fn joined(object: &str, member: &str) -> String {
    let inner = object.trim().strip_suffix('}').unwrap_or(object);
    format!("{inner},{member}}}")
}
