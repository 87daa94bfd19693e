//! The clients that are known: their tools, and what they take for an answer.

use clap::ValueEnum;
use syscap::format::{EffectClass, Item, ToolId};

use crate::output::{Object, plain};

/// An agent's client that runs a command before and after each use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    /// Claude Code: PreToolUse, PostToolUse, PostToolUseFailure, UserPromptSubmit.
    ClaudeCode,
    /// Gemini CLI: BeforeTool, AfterTool, BeforeAgent.
    GeminiCli,
}

/// The place of a client's shell when `syscap run` has started the client at level contained. The
/// shell is a tool of its own then: what is granted, approved or recorded for it says nothing of
/// the client's shell outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Inside {
    /// The network is none, or the run's own loopback: commands change the workspace at most.
    Contained,
    /// The network is the host's.
    ContainedOnline,
}

impl Inside {
    /// Its name on the command line of `syscap hook`.
    pub(crate) const fn option(self) -> &'static str {
        match self {
            Self::Contained => "contained",
            Self::ContainedOnline => "contained-online",
        }
    }

    /// Its part of a tool's name.
    const fn part(self) -> &'static str {
        match self {
            Self::Contained => "contained",
            Self::ContainedOnline => "contained_online",
        }
    }

    /// The effect class of a command there.
    pub(super) const fn effect(self) -> EffectClass {
        match self {
            Self::Contained => EffectClass::LocalWrite,
            Self::ContainedOnline => EffectClass::ExternalWrite,
        }
    }
}

impl Client {
    /// The first part of its tools' names.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude_code",
            Self::GeminiCli => "gemini_cli",
        }
    }

    /// The name of its shell: the tool that takes commands.
    pub(super) const fn shell(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Bash",
            Self::GeminiCli => "run_shell_command",
        }
    }

    /// The variable in which it tells a hook the project's folder.
    pub(super) const fn project_variable(self) -> &'static str {
        match self {
            Self::ClaudeCode => "CLAUDE_PROJECT_DIR",
            Self::GeminiCli => "GEMINI_PROJECT_DIR",
        }
    }

    pub(super) fn is_shell(self, name: &str) -> bool {
        name == self.shell()
    }

    /// Its shell inside a contained run.
    pub(super) fn shell_inside(self, inside: Inside) -> Option<ToolId> {
        let shell = self.known_as(self.shell())?;
        ToolId::new(&format!("{}.{}.{}", self.prefix(), inside.part(), shell.id))
    }

    /// The shells of all clients inside contained runs.
    pub(crate) fn shells_inside() -> impl Iterator<Item = ToolId> {
        let of = |client: &Self| {
            let client = *client;
            Inside::value_variants().iter().filter_map(move |inside| client.shell_inside(*inside))
        };
        Self::value_variants().iter().flat_map(of)
    }

    /// The shells of all clients, as they stand on record.
    pub(crate) fn shells() -> impl Iterator<Item = ToolId> {
        Self::value_variants().iter().filter_map(|client| client.tool(client.shell()))
    }

    /// The argument by which a tool of its own for files names one, always, and in full.
    pub(super) fn file_argument(self, name: &str) -> Option<&'static str> {
        self.known_as(name)?.file
    }

    /// The default class; a foreign tool may do anything.
    pub(super) fn class(self, name: &str) -> EffectClass {
        self.known_as(name).map_or(EffectClass::ExternalWrite, |known| known.class)
    }

    /// The tool of that name: no two names are one tool. The client's built-in tools have a place
    /// of their own, so that no foreign tool takes theirs; other names stand as they are if they
    /// can, and else escaped. `None` where that is too long.
    pub(crate) fn tool(self, name: &str) -> Option<ToolId> {
        let prefix = self.prefix();
        if let Some(known) = self.known_as(name) {
            return ToolId::new(&format!("{prefix}.{}", known.id));
        }
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let plain = name.bytes().all(fits) && name.starts_with(|c: char| c.is_ascii_lowercase());
        match plain {
            true => ToolId::new(&format!("{prefix}.tool.{name}")),
            false => ToolId::new(&format!("{prefix}.spelt.n{}", spelt(name))),
        }
    }

    /// Its own name for the tool of an id; `None` where the id is no tool's of that form, as that of its
    /// shell inside a run, which is another one.
    pub(crate) fn own_name(self, tool: &ToolId) -> Option<String> {
        let rest = tool.as_str().strip_prefix(self.prefix())?.strip_prefix('.')?;
        if let Some(known) = self.known().iter().find(|known| known.id == rest) {
            return Some(known.name.to_owned());
        }
        match rest.split_once('.')? {
            ("tool", name) => Some(name.to_owned()),
            ("spelt", name) => unspelt(name.strip_prefix('n')?),
            _ => None,
        }
    }

    /// A tool as people read it: `claude_code:WebFetch` where a client runs it itself, else its id. No id
    /// has a colon, so that no name that a client tells reads as another tool's.
    pub(crate) fn shown(tool: &ToolId, args: Option<Item<'_>>) -> String {
        let named = |client: &Self| {
            let name = match client.other().as_ref() == Some(tool) {
                true => args?.get("tool")?.as_text()?.to_owned(),
                false => client.own_name(tool)?,
            };
            Some(format!("{}:{}", client.prefix(), plain(&name)))
        };
        Self::value_variants().iter().find_map(named).unwrap_or_else(|| tool.to_string())
    }

    /// The same with its id, where that is another word.
    pub(crate) fn shown_with_id(tool: &ToolId, args: Option<Item<'_>>) -> String {
        let (shown, id) = (Self::shown(tool, args), tool.as_str());
        if shown == id { shown } else { format!("{shown} ({id})") }
    }

    /// The tool that [`Client::shown`] shows so.
    pub(crate) fn read(shown: &str) -> Option<ToolId> {
        let (prefix, name) = shown.split_once(':')?;
        let client = Self::value_variants().iter().find(|client| client.prefix() == prefix)?;
        client.tool(name)
    }

    /// The beginning of its names for tools of MCP servers.
    pub(super) const fn mcp_prefix(self) -> &'static str {
        match self {
            Self::ClaudeCode => "mcp__",
            Self::GeminiCli => "mcp_",
        }
    }

    /// Its name for a tool of an MCP server: what that name can't hold is replaced.
    pub(super) fn mcp_tool(self, server: &str, shown: &str) -> String {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
        match self {
            Self::ClaudeCode => {
                let shown: String = shown.chars().map(|c| if fits(c) { c } else { '_' }).collect();
                format!("{}{server}__{shown}", self.mcp_prefix())
            }
            Self::GeminiCli => format!("{}{server}_{shown}", self.mcp_prefix()),
        }
    }

    /// The event that tells of what its user says.
    pub(super) const fn prompt_event(self) -> &'static str {
        match self {
            Self::ClaudeCode => "UserPromptSubmit",
            Self::GeminiCli => "BeforeAgent",
        }
    }

    /// The event that tells that all uses of one of the model's messages are over.
    pub(super) const fn batch_event(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => Some("PostToolBatch"),
            Self::GeminiCli => None,
        }
    }

    /// True if it runs the tool itself.
    pub(crate) fn runs(self, tool: &ToolId) -> bool {
        tool.as_str().strip_prefix(self.prefix()).is_some_and(|rest| rest.starts_with('.'))
    }

    /// True if an argument of a tool is the folder in which the client's shell runs a command.
    pub(crate) fn is_folder_of_shell(tool: &ToolId, argument: &str) -> bool {
        argument == "place" && Self::value_variants().iter().any(|client| client.runs(tool))
    }

    /// The output for a prompt: the model would read any words.
    pub(super) const fn heard(self) -> Option<&'static str> {
        match self {
            Self::ClaudeCode => None,
            Self::GeminiCli => Some("{}"),
        }
    }

    /// The output for an allowed use: nothing, or nothing that decides, unless the operator wants
    /// the client to ask nobody.
    pub(super) fn let_through(self, allow: bool) -> Option<String> {
        match (self, allow) {
            (Self::ClaudeCode, false) => None,
            (Self::ClaudeCode, true) => Some(decision("allow", "syscap let it through")),
            (Self::GeminiCli, false) => Some("{}".to_owned()),
            (Self::GeminiCli, true) => Some(Object::new().text("decision", "allow").finish()),
        }
    }

    /// The output that makes the client ask its user.
    pub(super) fn asked(self, why: &str) -> Option<String> {
        let why = format!("syscap: {why}");
        match self {
            Self::ClaudeCode => Some(decision("ask", &why)),
            // It is never told to.
            Self::GeminiCli => Some(self.denied(&why)),
        }
    }

    /// The output for a denied use: the model reads the reason.
    pub(super) fn denied(self, why: &str) -> String {
        match self {
            Self::ClaudeCode => decision("deny", why),
            Self::GeminiCli => Object::new().text("decision", "deny").text("reason", why).finish(),
        }
    }
}

fn decision(decision: &str, why: &str) -> String {
    let inner = Object::new()
        .text("hookEventName", "PreToolUse")
        .text("permissionDecision", decision)
        .text("permissionDecisionReason", why);
    Object::new().json("hookSpecificOutput", &inner.finish()).finish()
}

/// A name in small letters and digits: what is neither stands as `_` and what tells it apart.
fn spelt(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' => text.push(char::from(byte)),
            b'_' => text.push_str("__"),
            b'-' => text.push_str("_m"),
            b'.' => text.push_str("_p"),
            b'A'..=b'Z' => {
                text.push_str("_c");
                text.push(char::from(byte.to_ascii_lowercase()));
            }
            _ => text.push_str(&format!("_x{byte:02x}")),
        }
    }
    text
}

/// The name that [`spelt`] wrote so.
fn unspelt(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'_' => match rest.next()? {
                b'_' => b'_',
                b'm' => b'-',
                b'p' => b'.',
                b'c' => rest.next()?.to_ascii_uppercase(),
                b'x' => {
                    let digits = [rest.next()?, rest.next()?];
                    u8::from_str_radix(str::from_utf8(&digits).ok()?, 16).ok()?
                }
                _ => return None,
            },
            byte => byte,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_server_takes_a_clients_prefix() {
        let prefixes = Client::value_variants().iter().map(|client| client.prefix());
        assert!(prefixes.into_iter().all(|prefix| !syscap_gateway::is_server_name(prefix)));
    }

    #[test]
    fn no_two_names_are_one_tool() {
        let tool = |name: &str| Client::ClaudeCode.tool(name).map(|tool| tool.to_string());
        for (name, id) in [
            ("WebFetch", "claude_code.web_fetch"),
            ("web_fetch", "claude_code.tool.web_fetch"),
            ("Webfetch", "claude_code.spelt.n_cwebfetch"),
            ("mcp__docs__find", "claude_code.tool.mcp__docs__find"),
            ("mcp__my-docs__find", "claude_code.spelt.nmcp____my_mdocs____find"),
            ("a b", "claude_code.spelt.na_x20b"),
            ("_x20", "claude_code.spelt.n__x20"),
            (" ", "claude_code.spelt.n_x20"),
            ("caf\u{e9}", "claude_code.spelt.ncaf_xc3_xa9"),
            ("", "claude_code.spelt.n"),
            ("spelt.na", "claude_code.spelt.nspelt_pna"),
        ] {
            assert_eq!(tool(name).as_deref(), Some(id), "{name}");
            let tool = ToolId::new(id).unwrap();
            assert_eq!(Client::ClaudeCode.own_name(&tool).as_deref(), Some(name));
            assert_eq!(Client::GeminiCli.own_name(&tool), None);
            assert_eq!(Client::read(&Client::shown(&tool, None)), Some(tool), "{name}");
        }
        assert_eq!(tool(&"x".repeat(64)), None);
        for id in ["claude_code.contained.bash", "claude_code.other", "claude_code.spelt.n_x8"] {
            assert_eq!(Client::ClaudeCode.own_name(&ToolId::new(id).unwrap()), None, "{id}");
        }
    }
}
