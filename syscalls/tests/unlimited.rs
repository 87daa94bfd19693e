//! Arguments of servers' tools that look as if they named something.

use syscap_format::{Canonical, EffectClass, Manifest, ToolId, json};
use syscap_syscalls::stated::Unlimited;

fn looks_like(argument: &str, schema: &str) -> Option<&'static str> {
    let definition = format!(r#"{{"inputSchema": {{"properties": {{"{argument}": {schema}}}}}}}"#);
    let definition: Canonical = json::to_cbor(definition.as_bytes()).unwrap();
    let tool = ToolId::new("notes.read").unwrap();
    let manifest = Manifest::new(tool, EffectClass::Read).defined_as(&definition);
    Unlimited::of(&manifest).first().map(|one| one.kind)
}

#[test]
fn argument_is_known_by_name_or_format_never_by_description() {
    let text = r#"{"type": "string"}"#;
    for (argument, schema, kind) in [
        ("path", text, Some("path")),
        ("filePath", text, Some("path")),
        ("image_url", text, Some("url")),
        ("file-paths", r#"{"type": "array", "items": {"type": "string"}}"#, Some("path")),
        ("to", r#"{"type": ["string", "null"]}"#, Some("recipient")),
        ("where", r#"{"type": "string", "format": "hostname"}"#, Some("host")),
        ("where", r#"{"items": {"format": "email"}}"#, Some("recipient")),
        ("target", "true", None),
        ("pathology", text, None),
        ("top", text, None),
        ("file_count", r#"{"type": "integer"}"#, None),
        ("query", r#"{"type": "string", "description": "a path, or a URL"}"#, None),
    ] {
        assert_eq!(looks_like(argument, schema), kind, "{argument} {schema}");
    }
}

/// What is no server's says itself what its arguments name.
#[test]
fn tool_without_definition_has_none() {
    let tool = ToolId::new("fs.read").unwrap();
    assert_eq!(Unlimited::of(&Manifest::new(tool, EffectClass::Read)), []);
}
