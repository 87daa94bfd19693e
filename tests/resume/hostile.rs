//! Resumes that nobody wrote who meant well.

use syscap::format::json::JsonFault;
use syscap::resume::{Resume, ResumeError};

use crate::resume::{name, read, world};

fn fault(text: &[u8]) -> Option<JsonFault> {
    match Resume::read(text) {
        Err(ResumeError::Json(error)) => Some(error.fault),
        _ => None,
    }
}

#[test]
fn ambiguous_json_is_refused() {
    for (text, wanted) in [
        (&b""[..], JsonFault::End),
        (b"{", JsonFault::End),
        (b"{\"a\": \"x", JsonFault::End),
        (b"{\"a\": \"x\\", JsonFault::End),
        (b"{} {}", JsonFault::Trailing),
        (b"{\"a\": 1,}", JsonFault::Unexpected),
        (b"{a: 1}", JsonFault::Unexpected),
        (b"{\"a\" 1}", JsonFault::Unexpected),
        (b"{\"a\": [1 2]}", JsonFault::Unexpected),
        (b"{\"a\": tru}", JsonFault::Unexpected),
        (b"// {}", JsonFault::Unexpected),
        (b"\xef\xbb\xbf{}", JsonFault::Bom),
        (b"{\"a\": \"\xff\"}", JsonFault::Utf8),
        (b"{\"a\": \"\t\"}", JsonFault::Control),
        (b"{\"a\": \"\\x\"}", JsonFault::Escape),
        (b"{\"a\": \"\\ud800\"}", JsonFault::Surrogate),
        (b"{\"a\": 01}", JsonFault::LeadingZero),
        (b"{\"a\": -}", JsonFault::Number),
        (b"{\"a\": 1.}", JsonFault::Number),
        (b"{\"a\": 1e}", JsonFault::Number),
        // However it is escaped, and however deep.
        (b"{\"permissions\": {}, \"permissions\": {}}", JsonFault::DuplicateKey),
        (b"{\"permissions\": {}, \"permission\\u0073\": {}}", JsonFault::DuplicateKey),
        (b"{\"x\": [{\"a\": 1, \"a\": 1}]}", JsonFault::DuplicateKey),
    ] {
        assert_eq!(fault(text), Some(wanted), "{}", String::from_utf8_lossy(text));
    }
    // Numbers that no machine holds are kept, since nobody reads them.
    read(r#"{"a": [1e999, -0, 123456789012345678901234567890, 0.1E-9]}"#);
}

#[test]
fn depth_and_length_have_an_end() {
    let nested = |depth: usize| {
        format!("{{\"a\": {}{}}}", "[".repeat(depth), "]".repeat(depth)).into_bytes()
    };
    assert!(Resume::read(&nested(63)).is_ok());
    assert_eq!(fault(&nested(64)), Some(JsonFault::Depth));
    assert_eq!(fault(&nested(400_000)), Some(JsonFault::Depth));
    assert_eq!(fault(&b"{\"a\":".repeat(100_000)), Some(JsonFault::Depth));
    let padded = |length: usize| format!("{{\"a\": \"{}\"}}", "x".repeat(length)).into_bytes();
    assert!(Resume::read(&padded(Resume::BYTES_MAX - 10)).is_ok());
    let long = Resume::read(&padded(Resume::BYTES_MAX - 8)).unwrap_err();
    assert!(matches!(long, ResumeError::TooLong { .. }), "{long}");
    // Many of everything: it ends, and soon.
    let many = format!("{{\"permissions\": {{\"tools\": [{}0]}}}}", "0,".repeat(500_000));
    assert!(matches!(Resume::read(many.as_bytes()), Err(ResumeError::Type { .. })));
}

#[test]
fn a_section_of_another_type_is_no_section() {
    for text in [
        r"[]",
        r"null",
        r#""resume""#,
        r#"{"name": 1}"#,
        r#"{"name": null}"#,
        r#"{"permissions": null}"#,
        r#"{"permissions": []}"#,
        r#"{"permissions": {"tools": null}}"#,
        r#"{"permissions": {"tools": "file_read"}}"#,
        r#"{"permissions": {"tools": {"file_read": true}}}"#,
        r#"{"permissions": {"tools": ["file_read", 1]}}"#,
        r#"{"permissions": {"tools": [], "file_access": null}}"#,
        r#"{"permissions": {"tools": [], "file_access": true}}"#,
        r#"{"permissions": {"tools": [], "file_access": {"allow_read": "shared"}}}"#,
        r#"{"permissions": {"tools": [], "file_access": {"allow_write": null}}}"#,
        r#"{"permissions": {"tools": [], "file_access": {"allow_read": [["shared"]]}}}"#,
        r#"{"permissions": {"tools": [], "send_outboxes": null}}"#,
        r#"{"permissions": {"tools": [], "send_outboxes": "b"}}"#,
    ] {
        let refused = Resume::read(text.as_bytes()).unwrap_err();
        assert!(matches!(refused, ResumeError::Type { .. }), "{text}: {refused}");
    }
    for agent in ["", ".", "..", "A", "a b", "a/../b", "/a", "a/", "\\u202ea", "\\u0000", "a//b"] {
        let text = format!(r#"{{"name": "{agent}"}}"#);
        let refused = Resume::read(text.as_bytes()).unwrap_err();
        assert!(matches!(refused, ResumeError::Agent { .. }), "{text}: {refused}");
        // Nothing that a terminal obeys is said of it.
        assert!(refused.to_string().is_ascii(), "{refused}");
        assert!(!refused.to_string().contains(char::is_control), "{refused}");
    }
}

#[test]
fn a_path_is_granted_as_it_stands_or_not_at_all() {
    let world = world();
    let compile = |list: &str, path: &str| {
        let files = format!(r#"{{"{list}": ["{path}"]}}"#);
        let text =
            format!(r#"{{"permissions": {{"tools": ["file_write"], "file_access": {files}}}}}"#);
        read(&text).compile(&name("researcher"), &world.tools(), &[])
    };
    let long = "x".repeat(256);
    let deep = format!("shared{}", "/a".repeat(65));
    for path in [
        "",
        "/",
        "/etc",
        "/shared",
        ".",
        "..",
        "./shared",
        "../shared",
        "shared/../keys",
        "shared/..",
        "shared/./a",
        "shared//a",
        "shared///",
        "shared\\\\a",
        "C:\\\\shared",
        "shared/a\\u0000",
        ".hidden",
        "*",
        "sh\\u202eared",
        "~",
        "agents",
        "agents/",
        "agents/other",
        "agents/other/mail",
        "agents/../workspace",
        "agents/Other/workspace",
        "agents/team/a/workspace",
        "agents/a++b/workspace",
        "agents/+a/workspace",
        "agents/*/workspace",
        &long,
        &deep,
    ] {
        for list in ["allow_read", "allow_write"] {
            let refused = compile(list, path).map(|_| ()).unwrap_err();
            assert!(matches!(refused, ResumeError::Path { .. }), "{path}: {refused}");
        }
    }
    for path in ["shared", "shared/", "shared/a b/c", "workspace", "agents/team+a/workspace/"] {
        assert_eq!(compile("allow_write", path).unwrap().lacking, [], "{path}");
    }
    // More paths than a token holds.
    let many: Vec<String> = (0..300).map(|n| format!("\"shared/{n}\"")).collect();
    let text = format!(
        r#"{{"permissions": {{"tools": ["fs.read"], "file_access": {{"allow_read": [{}]}}}}}}"#,
        many.join(",")
    );
    let refused = read(&text).compile(&name("a"), &world.tools(), &[]).unwrap_err();
    assert!(matches!(refused, ResumeError::Scope { .. }), "{refused}");
}
