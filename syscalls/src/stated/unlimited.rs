//! Arguments of a server's tool that look as if they name something, and that nothing limits.
//!
//! It is a hint for the operator, by the argument's name or the `format` of its schema (JSON Schema
//! 2020-12, section 7.3). It decides nothing: a server can name an argument as it likes.
//! Descriptions are not read, because a description is prose for a model.

use syscap_format::{Item, ItemKind, Manifest};

use super::Stated;

/// An argument that looks as if it named something, and that no operator has declared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unlimited {
    /// The argument, by the server's name for it.
    pub argument: Box<str>,
    /// The kind that it would be declared as: `path`, `url`, `host` or `recipient`.
    pub kind: &'static str,
}

/// Words in an argument's name, and what they hint at. The first that fits counts.
const NAMES: [(&str, &[&str]); 4] = [
    ("url", &["url", "urls", "uri", "uris", "href", "link", "links", "endpoint", "webhook"]),
    (
        "path",
        &[
            "path",
            "paths",
            "file",
            "files",
            "filename",
            "filepath",
            "folder",
            "folders",
            "dir",
            "directory",
            "directories",
            "cwd",
            "source",
            "destination",
        ],
    ),
    ("host", &["host", "hosts", "hostname", "domain", "ip"]),
    ("recipient", &["to", "cc", "bcc", "recipient", "recipients", "email", "emails"]),
];

/// The `format` of a schema, and what it hints at.
const FORMATS: [(&str, &str); 10] = [
    ("uri", "url"),
    ("uri-reference", "url"),
    ("iri", "url"),
    ("iri-reference", "url"),
    ("hostname", "host"),
    ("idn-hostname", "host"),
    ("ipv4", "host"),
    ("ipv6", "host"),
    ("email", "recipient"),
    ("idn-email", "recipient"),
];

impl Unlimited {
    /// The arguments of a tool, in the order of its schema. None for a tool that no server defined:
    /// what ours name is in their manifests.
    pub fn of(manifest: &Manifest) -> Vec<Self> {
        let (Some(whole), Ok(stated)) = (manifest.whole_definition(), Stated::of(manifest)) else {
            return Vec::new();
        };
        let schema = whole.item().get("inputSchema");
        let Some(properties) = schema.and_then(|schema| schema.get("properties")) else {
            return Vec::new();
        };
        let hint = |(name, schema): (&str, Item<'_>)| {
            let kind = by_format(schema).or_else(|| by_name(name))?;
            let undeclared = !stated.arguments.contains_key(name) && may_be_text(schema);
            undeclared.then(|| Self { argument: Box::from(name), kind })
        };
        properties.entries().filter_map(hint).collect()
    }
}

fn by_format(schema: Item<'_>) -> Option<&'static str> {
    let of = |schema: Item<'_>| {
        let format = schema.get("format")?.as_text()?;
        FORMATS.iter().find(|(name, _)| *name == format).map(|(_, kind)| *kind)
    };
    of(schema).or_else(|| schema.get("items").and_then(of))
}

fn by_name(name: &str) -> Option<&'static str> {
    let words = words(name);
    let has = |known: &&[&str]| words.iter().any(|word| known.contains(&word.as_str()));
    NAMES.iter().find(|(_, known)| has(known)).map(|(kind, _)| *kind)
}

/// Numbers and switches name nothing.
fn may_be_text(schema: Item<'_>) -> bool {
    let Some(declared) = schema.get("type") else { return true };
    let may = |one: Item<'_>| matches!(one.as_text(), Some("string" | "array") | None);
    if declared.kind() == ItemKind::Array { declared.elements().any(may) } else { may(declared) }
}

/// The words of a name: `filePath`, `file_path` and `file-path` are `file` and `path`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = '_';
    for letter in name.chars() {
        if !letter.is_alphanumeric() || (letter.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphanumeric()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words
}
