//! Names and values of headers and queries.

/// Longest name of a header or in a query, in bytes.
const NAME_BYTES_MAX: usize = 128;
/// Longest value, in bytes.
const VALUE_BYTES_MAX: usize = 4 << 10;
/// Most headers of a request, and most values of a query.
pub(super) const FIELDS_MAX: usize = 64;

/// Headers that belong to the connection, or that turn one request into another: no caller sets
/// them.
const OWN: [&str; 17] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "via",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "forwarded",
];
/// Beginnings of such names.
const OWN_PREFIXES: [&str; 3] = ["proxy-", "sec-", "x-forwarded-"];

/// Headers by which a proxy tells a server of another path, method, host or client than those of the
/// request: a call that sets one says something else to the server than to the policy.
const ANOTHERS: [&str; 7] =
    ["destination", "x-host", "x-method", "x-override-url", "x-url", "base-url", "client-ip"];
/// Beginnings and ends of such names.
const ANOTHERS_PREFIXES: [&str; 5] =
    ["x-original-", "x-rewrite-", "x-real-", "x-accel-", "x-envoy-original-"];
const ANOTHERS_SUFFIXES: [&str; 2] = ["-client-ip", "-connecting-ip"];

/// Parts of names behind which credentials stand.
const CREDENTIALS: [&str; 16] = [
    "apikey",
    "auth",
    "authentication",
    "authorization",
    "cookie",
    "credential",
    "credentials",
    "jwt",
    "password",
    "passwd",
    "secret",
    "session",
    "sig",
    "signature",
    "token",
    "pat",
];
/// The prefixes of credentials that are known by them.
const BEGINNINGS: [&str; 12] = [
    "bearer ",
    "basic ",
    "sk-",
    "ghp_",
    "gho_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "akia",
    "eyj",
];

/// The name of a header in small letters, where it is one (RFC 9110, 5.1) that a caller may set.
pub(super) fn name(text: &str) -> Option<String> {
    let is_token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let is_name = (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(is_token);
    let name = text.to_ascii_lowercase();
    let read = same(&name);
    let is_own = OWN.contains(&&*read) || OWN_PREFIXES.iter().any(|own| read.starts_with(own));
    (is_name && !is_own).then_some(name)
}

/// True if some servers take it for the path, the method, the host or the client of the request: no
/// call sets it. An operator may.
#[must_use]
pub fn is_anothers(name: &str) -> bool {
    let read = same(&name.to_ascii_lowercase());
    ANOTHERS.contains(&&*read)
        || ANOTHERS_PREFIXES.iter().any(|begin| read.starts_with(begin))
        || ANOTHERS_SUFFIXES.iter().any(|end| read.ends_with(end))
}

/// The form of a name for many servers: to them `X_Api_Key` is `X-Api-Key`.
pub(super) fn same(name: &str) -> String {
    name.replace('_', "-")
}

/// True if it is the value of a header: visible ASCII, with blanks between.
pub(super) fn is_value(text: &str) -> bool {
    text.len() <= VALUE_BYTES_MAX
        && text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\t'))
        && text.trim() == text
}

/// True if a query may have it: it is encoded, with any content.
pub(super) fn is_query(name: &str, value: &str) -> bool {
    (1..=NAME_BYTES_MAX).contains(&name.len()) && value.len() <= VALUE_BYTES_MAX
}

/// True if it is a credential, as far as its name or its prefix shows.
pub(super) fn is_credential(name: &str, value: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let parts: Vec<&str> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let pairs = parts
        .windows(2)
        .any(|pair| matches!(pair, ["api" | "access" | "private" | "subscription" | "app", "key"]));
    let value = value.to_ascii_lowercase();
    let squeezed = name.replace(['-', '_'], "");
    pairs
        || name == "key"
        || parts.iter().any(|part| CREDENTIALS.contains(part))
        || ["apikey", "accesskey", "authtoken", "accesstoken"].iter().any(|c| squeezed.contains(c))
        || BEGINNINGS.iter().any(|begin| value.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_caller_sets_what_a_connection_needs() {
        for text in [
            "Host",
            "CONTENT-LENGTH",
            "Transfer-Encoding",
            "Connection",
            "Upgrade",
            "Expect",
            "TE",
            "Trailer",
            "Keep-Alive",
            "Proxy-Authorization",
            "X-HTTP-Method-Override",
            "X-Http_Method_Override",
            "X_Forwarded_For",
            "X-Forwarded-For",
            "Accept-Encoding",
            "",
            "a b",
            "a:b",
            "a\r\nb",
            "a\0",
            "\u{e9}",
            ":authority",
        ] {
            assert_eq!(name(text), None, "{text:?}");
        }
        assert_eq!(name("X-Request-ID").as_deref(), Some("x-request-id"));
        assert_eq!(name(&"a".repeat(129)), None);
    }

    #[test]
    fn no_call_names_another_request() {
        for name in [
            "X-Original-URL",
            "x_original_url",
            "X-Rewrite-URL",
            "X-Original-Method",
            "X-Method",
            "X-Real-IP",
            "True-Client-IP",
            "CF-Connecting-IP",
            "X-Client-IP",
            "X-Original-Host",
            "X-Host",
            "Destination",
        ] {
            assert!(is_anothers(name), "{name}");
        }
        for name in ["Accept", "X-Request-ID", "Origin", "X-Client", "Referer", "User-Agent"] {
            assert!(!is_anothers(name), "{name}");
        }
    }

    #[test]
    fn a_value_is_one_line() {
        assert!(is_value("text/html; q=0.9") && is_value(""));
        for text in ["a\r\nX: y", "a\nb", "a\0", "\u{e9}", " a", "a ", "a\u{7f}"] {
            assert!(!is_value(text), "{text:?}");
        }
    }

    #[test]
    fn credential_like_header_is_recognised() {
        for (name, value) in [
            ("Authorization", "x"),
            ("X-Api-Key", "x"),
            ("api_key", "x"),
            ("apikey", "x"),
            ("X-Auth-Token", "x"),
            ("access_token", "x"),
            ("Cookie", "x"),
            ("key", "x"),
            ("x-note", "Bearer abc"),
            ("x-note", "sk-live-1"),
            ("x-note", "ghp_abc"),
            ("Ocp-Apim-Subscription-Key", "x"),
        ] {
            assert!(is_credential(name, value), "{name}: {value}");
        }
        for (name, value) in [
            ("Accept", "application/json"),
            ("author", "ann"),
            ("keyword", "bees"),
            ("x-tokenizer", "yes"),
            ("X-Request-Id", "1"),
        ] {
            assert!(!is_credential(name, value), "{name}: {value}");
        }
    }
}
