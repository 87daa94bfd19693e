//! A client's input on standard input.

use syscap::format::{Canonical, Item, ItemKind, json};
use syscap::host::Reported;

use super::{client::Client, halves};

/// A client's event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Told {
    /// A use of a tool.
    Use(Event),
    /// A user's prompt.
    Prompt {
        /// The client's name for the conversation.
        conversation: String,
        text: String,
    },
    /// All uses of one of the model's messages are over: these, each with what the model is told of it.
    Batch(Vec<Event>),
}

/// What Claude Code writes itself where a user's prompt stands: a background task has ended.
const OWN_PROMPT: &str = "<task-notification>";
/// Longest name of a sub-agent with its type, in bytes: it stands in a record.
const PART_BYTES_MAX: usize = 64;

/// Before or after a use of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) phase: Phase,
    /// The client's name for the conversation.
    pub(super) conversation: String,
    /// The tool, by the client's name.
    pub(super) tool: String,
    /// The client's name for the use, where it has one.
    pub(super) id: Option<String>,
    pub(super) args: Canonical,
    /// The folder that the client works in, where it says one.
    pub(super) folder: Option<String>,
    /// The sub-agent that makes the use: the client's name for it, and its type.
    pub(super) part: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Before,
    After(Reported),
}

impl Told {
    /// Reads one JSON object. Other fields are the client's affair; a model wrote part of them, so
    /// nothing in them is an escape.
    ///
    /// Halves of surrogate pairs, which JavaScript's strings may hold and text can't, become U+FFFD
    /// in what decides nothing: what a user says, and what a use came to.
    pub(super) fn read(client: Client, text: &[u8]) -> Result<Self, String> {
        let told = Self::read_whole(client, text);
        if told.is_ok() {
            return told;
        }
        match halves::replaced(text).map(|mended| Self::read_whole(client, &mended)) {
            Some(Ok(mended)) if !mended.decides() => Ok(mended),
            _ => told,
        }
    }

    /// True if the event needs a decision.
    const fn decides(&self) -> bool {
        matches!(self, Self::Use(Event { phase: Phase::Before, .. }))
    }

    fn read_whole(client: Client, text: &[u8]) -> Result<Self, String> {
        let map = json::to_data(text).map_err(|error| format!("the event is no JSON: {error}"))?;
        let map = map.item();
        if map.kind() != ItemKind::Map {
            return Err("the event is no JSON object".to_owned());
        }
        let name = text_of(map, "hook_event_name")?;
        if client.prompt_event() == name {
            let (conversation, text) = (text_of(map, "session_id")?, text_of(map, "prompt")?);
            // No user said it, and a sub-agent's own words may stand in it.
            let is_own = client == Client::ClaudeCode && text.trim_start().starts_with(OWN_PROMPT);
            let text = if is_own { String::new() } else { text.to_owned() };
            return Ok(Self::Prompt { conversation: conversation.to_owned(), text });
        }
        if client.batch_event() == Some(name) {
            let calls = map.get("tool_calls").filter(|calls| calls.kind() == ItemKind::Array);
            let calls = calls.ok_or("the event has no tool_calls that are an array")?;
            let conversation = text_of(map, "session_id")?;
            let over = |call| Event::over(conversation, map, call);
            return calls.elements().map(over).collect::<Result<_, _>>().map(Self::Batch);
        }
        Event::of(client, name, map).map(Self::Use)
    }
}

impl Event {
    fn of(client: Client, name: &str, map: Item<'_>) -> Result<Self, String> {
        let args = map.get("tool_input").filter(|args| args.kind() == ItemKind::Map);
        let id = match client {
            Client::ClaudeCode => Some(text_of(map, "tool_use_id")?.to_owned()),
            Client::GeminiCli => None,
        };
        let phase = match (client, name) {
            (Client::ClaudeCode, "PreToolUse") | (Client::GeminiCli, "BeforeTool") => Phase::Before,
            (Client::ClaudeCode, "PostToolUse") => Phase::After(response(map)),
            (Client::ClaudeCode, "PostToolUseFailure") => {
                Phase::After(Reported::Failed(words(map.get("error"))))
            }
            (Client::GeminiCli, "AfterTool") => {
                let failed = map.get("tool_response").and_then(|it| it.get("error"));
                match failed.filter(|error| !error.is_null()) {
                    Some(error) => Phase::After(Reported::Failed(words(Some(error)))),
                    None => Phase::After(response(map)),
                }
            }
            _ => return Err(format!("{name} is no event before or after a tool, and no prompt")),
        };
        Ok(Self {
            phase,
            conversation: text_of(map, "session_id")?.to_owned(),
            tool: text_of(map, "tool_name")?.to_owned(),
            id,
            folder: map.get("cwd").and_then(Item::as_text).map(str::to_owned),
            part: part(map),
            args: Canonical::from(args.ok_or("the event has no tool_input that is an object")?),
        })
    }

    /// A use that is over: if its result was not reported before, it was not made.
    fn over(conversation: &str, map: Item<'_>, call: Item<'_>) -> Result<Self, String> {
        let args = call.get("tool_input").filter(|args| args.kind() == ItemKind::Map);
        let told = call.get("tool_response");
        Ok(Self {
            phase: Phase::After(Reported::NotMade(
                told.map_or_else(String::new, |it| words(Some(it))),
            )),
            conversation: conversation.to_owned(),
            tool: text_of(call, "tool_name")?.to_owned(),
            id: Some(text_of(call, "tool_use_id")?.to_owned()),
            folder: map.get("cwd").and_then(Item::as_text).map(str::to_owned),
            part: part(map),
            args: Canonical::from(args.ok_or("a use has no tool_input that is an object")?),
        })
    }
}

/// `a615ddd78959e1f1e general-purpose`: the sub-agent of an event, by the client's name and its type.
fn part(map: Item<'_>) -> Option<String> {
    let name = map.get("agent_id").and_then(Item::as_text)?;
    let kind = map.get("agent_type").and_then(Item::as_text).unwrap_or_default();
    let mut part = format!("{name} {kind}").trim_end().to_owned();
    while part.len() > PART_BYTES_MAX {
        part.pop();
    }
    Some(part)
}

fn text_of<'a>(map: Item<'a>, key: &str) -> Result<&'a str, String> {
    let found = map.get(key).and_then(Item::as_text);
    found.ok_or_else(|| format!("the event has no text {key}"))
}

/// The reported result of the tool; a silent client reports `null`.
fn response(map: Item<'_>) -> Reported {
    Reported::Result(Canonical::from(map.get("tool_response").unwrap_or(Item::NULL)))
}

/// An error in words, whatever form it has.
fn words(error: Option<Item<'_>>) -> String {
    let Some(error) = error else { return "it failed".to_owned() };
    let message = error.get("message").and_then(Item::as_text);
    match error.as_text().or(message) {
        Some(words) => words.to_owned(),
        None => json::from_data(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(client: Client, text: &str) -> Result<Event, String> {
        match Told::read(client, text.as_bytes())? {
            Told::Use(event) => Ok(event),
            told => Err(format!("{told:?}")),
        }
    }

    /// Each client has its own name for it, and the other's says nothing.
    #[test]
    fn a_prompt_is_told_of() {
        for (client, name) in
            [(Client::ClaudeCode, "UserPromptSubmit"), (Client::GeminiCli, "BeforeAgent")]
        {
            let read = |name: &str| {
                let text =
                    format!(r#"{{"hook_event_name":"{name}","session_id":"s","prompt":"a\nb"}}"#);
                Told::read(client, text.as_bytes())
            };
            let prompt = Told::Prompt { conversation: "s".into(), text: "a\nb".into() };
            assert_eq!(read(name), Ok(prompt));
            for other in ["UserPromptSubmit", "BeforeAgent", "Stop"] {
                assert_eq!(read(other).is_ok(), other == name, "{other}");
            }
        }
        let unsaid = r#"{"hook_event_name":"UserPromptSubmit","session_id":"s"}"#;
        Told::read(Client::ClaudeCode, unsaid.as_bytes()).unwrap_err();
    }

    /// JavaScript cuts its strings between the halves of a character, and a user may paste one: it
    /// is no reason to stop a user, nor to lose what a use came to. A decided text is always the
    /// one that runs.
    #[test]
    fn half_a_character_denies_uses_alone() {
        let of = |name: &str, said: &str| {
            let text = format!(
                r#"{{"hook_event_name":"{name}","session_id":"s","prompt":"{said}","error":"{said}",
                    "tool_name":"Read","tool_use_id":"t","tool_input":{{"a":"{said}"}}}}"#
            );
            Told::read(Client::ClaudeCode, text.as_bytes())
        };
        for (said, read) in [
            (r"a\ud83d", "a\u{fffd}"),
            (r"\uDE00\ud83d\n", "\u{fffd}\u{fffd}\n"),
            (r"\ud83d\ud83d\ude00", "\u{fffd}\u{1f600}"),
            (r"\ud83d\\ude00\ud83d", "\u{fffd}\\ude00\u{fffd}"),
        ] {
            let prompt = Told::Prompt { conversation: "s".into(), text: read.to_owned() };
            assert_eq!(of("UserPromptSubmit", said), Ok(prompt));
            let Ok(Told::Use(after)) = of("PostToolUseFailure", said) else { panic!("{said}") };
            assert_eq!(after.phase, Phase::After(Reported::Failed(read.to_owned())));
            of("PreToolUse", said).unwrap_err();
        }
        // Nothing else is mended.
        for broken in [r"\ud83", r"\ud83d\x", "\\", r"\ud83d\u"] {
            of("UserPromptSubmit", broken).unwrap_err();
        }
    }

    #[test]
    fn event_without_a_required_field_is_an_error() {
        let whole = r#"{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Read",
            "tool_use_id":"t","tool_input":{}}"#;
        assert_eq!(event(Client::ClaudeCode, whole).unwrap().phase, Phase::Before);
        for key in ["hook_event_name", "session_id", "tool_name", "tool_use_id", "tool_input"] {
            let other = whole.replace(key, "other");
            event(Client::ClaudeCode, &other).unwrap_err();
        }
        for bad in ["", "[]", "{", "null", r#"{"a":1,"a":1}"#] {
            event(Client::ClaudeCode, bad).unwrap_err();
        }
        event(Client::ClaudeCode, &whole.replace("{}", "[]")).unwrap_err();
        event(Client::GeminiCli, whole).unwrap_err();
    }

    /// A model's text is data, whatever it looks like: the judged text is the one that the client
    /// runs.
    #[test]
    fn escape_like_input_is_read_as_data() {
        for input in [
            r#"{"a":{"$bytes":"AAE="}}"#,
            r#"{"a":{"$bytes":"no base64"}}"#,
            r#"{"a":{"$ref":"https://x"}}"#,
            r#"{"$ref":{"record":1,"path":[]}}"#,
            r#"{"$lit":{"a":1}}"#,
            r#"{"$bytes":"AAE="}"#,
        ] {
            let text = format!(
                r#"{{"hook_event_name":"PreToolUse","session_id":"s","tool_name":"Read",
                    "tool_use_id":"t","tool_input":{input}}}"#
            );
            let args = event(Client::ClaudeCode, &text).unwrap().args;
            assert_eq!(args.item().kind(), ItemKind::Map, "{input}");
            assert_eq!(json::to_data(input.as_bytes()).unwrap(), args);
        }
    }

    #[test]
    fn failures_are_told_in_words() {
        let after = |response: &str| {
            let text = format!(
                r#"{{"hook_event_name":"AfterTool","session_id":"s","tool_name":"glob",
                    "tool_input":{{}},"tool_response":{response}}}"#
            );
            event(Client::GeminiCli, &text).unwrap().phase
        };
        let failed = |words: &str| Phase::After(Reported::Failed(words.to_owned()));
        assert_eq!(after(r#"{"error":{"message":"no"}}"#), failed("no"));
        assert_eq!(after(r#"{"error":"no"}"#), failed("no"));
        assert_eq!(after(r#"{"error":[1]}"#), failed("[1]"));
        assert!(matches!(after(r#"{"error":null}"#), Phase::After(Reported::Result(_))));
        assert!(matches!(after("null"), Phase::After(Reported::Result(_))));
    }
}
