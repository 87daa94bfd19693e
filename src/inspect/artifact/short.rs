//! A result in short.

use std::borrow::Cow;

use syscap_format::{
    Canonical, Item, ItemKind, Reason, ResultHash, Retry, Seq, Status, ToolId, ToolResult,
    TxOutcome, json,
};

/// How much of a result's texts is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Most lines of each.
    pub lines: usize,
    /// Most bytes of each.
    pub bytes: usize,
}

impl Default for Cut {
    /// 20 lines, 1,200 bytes: what a person takes in at a glance.
    fn default() -> Self {
        Self { lines: 20, bytes: 1_200 }
    }
}

/// The beginning of a text of a result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt {
    /// The path within the result: the `path` of a `$ref`. Empty where it is all of it.
    pub path: Vec<Box<str>>,
    /// As much of it as is shown, cut between two characters.
    pub text: String,
    /// How many bytes all of it has.
    pub size_bytes: u64,
}

impl Excerpt {
    /// True if there is more of it.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        u64::try_from(self.text.len()).is_ok_and(|shown| shown < self.size_bytes)
    }
}

/// A result in short: status, size, digest, first lines; the diff, where it has one. A refusal has
/// its reason and the next step. It prints as text of which each line that comes from the result
/// begins with `| `.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Short {
    /// The record that answers: what a `$ref` names.
    pub record: Seq,
    /// The record of its intent. `None` where nothing ran: then nothing can refer to it either, an
    /// answer that was given again for its key included.
    pub intent: Option<Seq>,
    /// The tool, where the call named one that exists.
    pub tool: Option<ToolId>,
    /// The status: a result or an error.
    pub status: Status,
    /// Why there is none.
    pub reason: Option<Reason>,
    /// The caller's next step, if there is no result.
    pub retry: Option<Retry>,
    /// The effect's outcome.
    pub tx: TxOutcome,
    /// The size of what was delivered, in canonical bytes.
    pub size_bytes: u64,
    /// The salted commitment to what was delivered, as it stands on record.
    pub digest: ResultHash,
    /// The texts, at most two.
    pub excerpts: Vec<Excerpt>,
}

/// Which call a result is of.
pub(crate) struct Answered {
    pub(crate) record: Seq,
    pub(crate) intent: Option<Seq>,
    pub(crate) tool: Option<ToolId>,
}

impl Short {
    /// The short form of an answer.
    pub fn of(answer: &ToolResult, cut: Cut) -> Self {
        let delivered = answer.delivered();
        let receipt = answer.receipt();
        let intent = receipt.intent.as_ref().map(|(intent, _)| *intent);
        let tool = answer.tool().cloned();
        let answered = Answered { record: receipt.outcome_seq, intent, tool };
        let (reason, tx, digest) = (answer.reason(), answer.tx_outcome(), answer.result_hash());
        Self::new(answered, reason, tx, digest, delivered, cut)
    }

    pub(crate) fn new(
        Answered { record, intent, tool }: Answered,
        reason: Option<Reason>,
        tx: TxOutcome,
        digest: ResultHash,
        delivered: &Canonical,
        cut: Cut,
    ) -> Self {
        let object = delivered.item();
        let shown = |output, at: Option<Box<str>>| {
            let parts = parts(output).into_iter();
            let path = |path: Vec<Box<str>>| at.clone().into_iter().chain(path).collect();
            parts.map(|(below, text)| excerpt(path(below), text, cut)).collect()
        };
        let excerpts = match (reason, object.get("output")) {
            (None, _) => shown(object, None),
            (Some(Reason::ToolFailed), Some(output)) => shown(output, Some(Box::from("output"))),
            (Some(reason), _) => vec![excerpt(Vec::new(), why(reason, object).into(), cut)],
        };
        Self {
            record,
            intent,
            tool,
            status: if reason.is_none() { Status::Ok } else { Status::Error },
            reason,
            retry: reason.map(|reason| reason.retry_of(object, tx)),
            tx,
            size_bytes: u64::try_from(delivered.as_bytes().len()).unwrap_or(u64::MAX),
            digest,
            excerpts,
        }
    }
}

/// The texts of a result that are shown of it, each with its place: its entry `diff`; else `text`;
/// else `stdout` and `stderr`; else `value`; else `data`; else all of it as JSON. An empty part is
/// left out if there is another.
#[must_use]
pub fn parts(result: Item<'_>) -> Vec<(Vec<Box<str>>, Cow<'_, str>)> {
    if let (ItemKind::Text, Some(text)) = (result.kind(), result.as_text()) {
        return vec![(Vec::new(), text.into())];
    }
    let entry = |name: &str| {
        let text = result.get(name).and_then(Item::as_text)?;
        (!text.is_empty()).then(|| (vec![Box::from(name)], Cow::from(text)))
    };
    for names in [&["diff"][..], &["text"], &["stdout", "stderr"], &["value"], &["data"]] {
        let found: Vec<_> = names.iter().filter_map(|name| entry(name)).collect();
        if !found.is_empty() {
            return found;
        }
    }
    vec![(Vec::new(), json::from_data(result).into())]
}

/// Why there is no result, in a line.
fn why(reason: Reason, object: Item<'_>) -> String {
    let mut line = format!("{} ({})", reason.name(), reason.code());
    for name in ["field", "got", "allowed"] {
        if let Some(value) = object.get(name).and_then(Item::as_text) {
            line.push_str(&format!(", {name}: {value}"));
        }
    }
    line.push_str(&format!(". {}", reason.hint()));
    line
}

fn excerpt(path: Vec<Box<str>>, text: Cow<'_, str>, cut: Cut) -> Excerpt {
    let end = text.floor_char_boundary(cut.bytes);
    let shown = text.get(..end).unwrap_or_default();
    let lines = shown.match_indices('\n').nth(cut.lines.saturating_sub(1));
    let end = lines.map_or(end, |(at, _)| at.saturating_add(1));
    let size_bytes = u64::try_from(text.len()).unwrap_or(u64::MAX);
    Excerpt { path, text: text.get(..end).unwrap_or_default().to_owned(), size_bytes }
}
