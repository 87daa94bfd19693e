//! A manifest as lines, with the whole definition that it was made from, and the lines in which two
//! of them differ.

use std::time::Duration;

use similar::{ChangeTag, TextDiff};

use syscap::format::{Extra, Item, ItemKind, Manifest, Param, Presence, json};

use crate::output::{plain, quote};

/// How long lines are compared for before what is left is shown as gone and new.
const TIME_MAX: Duration = Duration::from_secs(2);
/// How many unchanged lines stand around a change.
const CONTEXT: usize = 3;

/// All that a manifest says, a line each; texts of several lines are several. The whole definition
/// that it was made from stands at the end: what that says in full is not said before.
pub(super) fn lines(manifest: &Manifest) -> Vec<String> {
    let mut lines = Vec::new();
    let whole = manifest.whole_definition();
    let mut say = |name: &str, value: &str| {
        lines.extend(
            value.split('\n').map(|line| format!("{name:<11} {line}").trim_end().to_owned()),
        );
    };
    say("title", &manifest.title);
    for alias in &manifest.aliases {
        say("alias", alias.as_str());
    }
    say("effect", manifest.effect.name());
    if let Some(tool) = &manifest.compensated_by {
        say("undone by", tool.as_str());
    }
    say("label", &manifest.label.to_string());
    // A text of the definition is shown there; what only the manifest says is shown here.
    let about = |text: &str| match &whole {
        Some(whole) if has_text(whole.item(), text) => String::new(),
        _ => text.to_owned(),
    };
    match about(&manifest.description) {
        text if text.is_empty() => {}
        text => say("about", &text),
    }
    for param in &manifest.params {
        say("argument", &argument(param));
        match about(&param.description) {
            text if text.is_empty() => {}
            text => say("", &text),
        }
    }
    let others = match manifest.extra {
        Extra::Refused => "refused",
        Extra::Taken => "taken",
    };
    say("others", others);
    say("result", &format!("{} bytes at most", manifest.result_bytes_max));
    if let Some(ms) = manifest.wall_ms_max {
        say("run", &format!("{ms} ms at most"));
    }
    say("sets aside", &manifest.hold.to_string());
    manifest.dimensions.iter().for_each(|dimension| say("needs", dimension));
    if manifest.definition.is_some() {
        super::stated::lines(manifest).iter().for_each(|(name, text)| say(name, text));
    }
    manifest.honours.iter().for_each(|kind| say("honours", kind.name()));
    if let Some(definition) = &manifest.definition {
        say("definition", &definition.to_string());
    }
    say("manifest", &manifest.id().to_string());
    if let Some(whole) = whole {
        put_json(whole.item(), String::new(), "", 0, &mut lines);
    }
    lines.iter().map(|line| plain(line).into_owned()).collect()
}

/// A value as lines of JSON. A text of several lines is broken behind each of its `\n`.
fn put_json(item: Item<'_>, before: String, after: &str, depth: usize, lines: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let inner = depth.saturating_add(1);
    match item.kind() {
        ItemKind::Map if item.entries().next().is_some() => {
            lines.push(format!("{indent}{before}{{"));
            let mut entries = item.entries().peekable();
            while let Some((key, value)) = entries.next() {
                let comma = if entries.peek().is_some() { "," } else { "" };
                put_json(value, format!("{}: ", quote(key)), comma, inner, lines);
            }
            lines.push(format!("{indent}}}{after}"));
        }
        ItemKind::Array if item.elements().next().is_some() => {
            lines.push(format!("{indent}{before}["));
            let mut elements = item.elements().peekable();
            while let Some(value) = elements.next() {
                let comma = if elements.peek().is_some() { "," } else { "" };
                put_json(value, String::new(), comma, inner, lines);
            }
            lines.push(format!("{indent}]{after}"));
        }
        _ => {
            let text = match item.as_text() {
                Some(text) => text.split_inclusive('\n').map(escaped).collect(),
                None => vec![json::from_data(item)],
            };
            let quotes = if item.as_text().is_some() { "\"" } else { "" };
            let all = format!("{before}{quotes}{}{quotes}{after}", text.join("\n"));
            lines.extend(all.split('\n').map(|line| format!("{indent}{line}")));
        }
    }
}

/// A text as it stands between the quotes of JSON.
fn escaped(text: &str) -> String {
    let quoted = quote(text);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    inner.unwrap_or_default().to_owned()
}

/// `path: text, required, from 1 to 64, or "a" where it is left out`.
fn argument(param: &Param) -> String {
    let presence = match param.presence {
        Presence::Required => "required",
        Presence::Optional => "optional",
    };
    let mut text = format!("{}: {}, {presence}", param.name, param.kind.name());
    if let Some(min) = param.min {
        text.push_str(&format!(", from {min}"));
    }
    if let Some(max) = param.max {
        text.push_str(&format!(", to {max}"));
    }
    if let Some(default) = &param.default {
        text.push_str(&format!(", or {}", json::from_data(default.item())));
    }
    text
}

/// The difference between two manifests.
pub(crate) struct Difference {
    /// As a unified diff: each change with some lines around it.
    pub(crate) unified: Vec<String>,
    /// The changed lines alone.
    pub(super) changes: Vec<String>,
}

/// Compares the lines of two manifests.
pub(crate) fn between(old: &[String], new: &[String]) -> Difference {
    let [old_lines, new_lines] =
        [old, new].map(|lines| lines.iter().map(String::as_str).collect::<Vec<&str>>());
    let diff = TextDiff::configure().timeout(TIME_MAX).diff_slices(&old_lines, &new_lines);
    let mut difference = Difference { unified: Vec::new(), changes: Vec::new() };
    for group in diff.grouped_ops(CONTEXT) {
        if let (Some(first), Some(last)) = (group.first(), group.last()) {
            let (old, new) = (first.old_range().start, first.new_range().start);
            let ends = (last.old_range().end, last.new_range().end);
            let header = format!(
                "@@ -{},{} +{},{} @@",
                old.saturating_add(1),
                ends.0.saturating_sub(old),
                new.saturating_add(1),
                ends.1.saturating_sub(new)
            );
            difference.unified.push(header);
        }
        for change in group.iter().flat_map(|op| diff.iter_changes(op)) {
            let line = match change.tag() {
                ChangeTag::Equal => format!("  {}", change.value()),
                ChangeTag::Delete => format!("- {}", change.value()),
                ChangeTag::Insert => format!("+ {}", change.value()),
            };
            if change.tag() != ChangeTag::Equal {
                difference.changes.push(line.clone());
            }
            difference.unified.push(line);
        }
    }
    difference
}

/// True if it contains a text, whole, as a value.
fn has_text(item: Item<'_>, text: &str) -> bool {
    match item.kind() {
        ItemKind::Text => item.as_text() == Some(text),
        ItemKind::Array => item.elements().any(|one| has_text(one, text)),
        ItemKind::Map => item.entries().any(|(_, one)| has_text(one, text)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use syscap::format::{Canonical, EffectClass, MapBuilder, ToolId};

    use super::*;

    fn changes(old: &[&str], new: &[&str]) -> Vec<String> {
        let owned = |lines: &[&str]| lines.iter().map(ToString::to_string).collect::<Vec<_>>();
        between(&owned(old), &owned(new)).changes
    }

    #[test]
    fn changed_lines_are_marked() {
        assert_eq!(changes(&["a", "b", "c"], &["a", "x", "c"]), ["- b", "+ x"]);
        assert_eq!(changes(&["a", "b"], &["b"]), ["- a"]);
        assert_eq!(changes(&["b"], &["a", "b", "c"]), ["+ a", "+ c"]);
        assert_eq!(changes(&[], &["a"]), ["+ a"]);
        assert_eq!(changes(&["a"], &["a"]), [""; 0]);
    }

    /// Every text of a definition is a line, however deep, however long, and with every character
    /// that is not seen written out.
    #[test]
    fn definition_is_shown_whole() {
        let deep = MapBuilder::new().text("description", "one\ntwo\u{200b}\u{e0041}").finish();
        let whole = MapBuilder::new()
            .item("list", Canonical::list([deep].into_iter()).item())
            .text("text", &"x".repeat(10_000))
            .finish();
        let manifest =
            Manifest::new(ToolId::new("a.b").unwrap(), EffectClass::Read).defined_as(&whole);
        let lines = lines(&manifest);
        let from = lines.iter().position(|line| line == "{").unwrap();
        let long = format!("  \"text\": \"{}\"", "x".repeat(10_000));
        assert_eq!(
            lines[from..],
            [
                "{",
                "  \"list\": [",
                "    {",
                "      \"description\": \"one\\n",
                "      two\\u200b\\udb40\\udc41\"",
                "    }",
                "  ],",
                &long,
                "}"
            ]
        );
    }
}
