//! Raw requests at the gate.

use serde_json::json;

use super::Console;
use crate::cli::terminal;

/// Raw requests: what is not let in gets a status and not a byte more.
#[test]
fn gate_refuses_without_a_word() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    let (host, port, headers) =
        (console.page.host.clone(), console.page.port, console.page.headers());
    let list = "GET /api/v1/approvals HTTP/1.1\r\n";
    let page = |host: &str| format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let with = |first: &str, from: &str, to: &str| {
        assert!(headers.contains(from), "{from}");
        format!("{first}{}\r\n", headers.replace(from, to))
    };
    let origin = format!("Origin: http://{host}\r\n");
    let bearer = format!("Bearer {}", console.page.bearer);
    let json = "Content-Type: application/json\r\n";
    let post = |more: &str, body: &str| {
        format!("POST /api/v1/freeze HTTP/1.1\r\n{headers}{more}\r\n{body}")
    };
    let long = "x".repeat(70_000);
    let cases: Vec<(&str, u16, String)> = vec![
        ("localhost", 403, page(&format!("localhost:{port}"))),
        ("address", 403, page(&format!("127.0.0.1:{port}"))),
        ("six", 403, page(&format!("[::1]:{port}"))),
        ("another name", 403, page(&format!("aaaaaaaaaaaaaaaa.localhost:{port}"))),
        ("no port", 403, page(host.split(':').next().unwrap())),
        ("no host", 400, "GET / HTTP/1.1\r\n\r\n".to_owned()),
        ("two hosts", 400, format!("GET / HTTP/1.1\r\nHost: {host}\r\nHost: {host}\r\n\r\n")),
        ("absolute", 400, format!("GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n")),
        ("1.0", 400, format!("GET / HTTP/1.0\r\nHost: {host}\r\n\r\n")),
        ("query", 400, format!("GET /?c=1 HTTP/1.1\r\nHost: {host}\r\n\r\n")),
        ("upgrade", 400, with(list, "Host", "Connection: Upgrade\r\nUpgrade: websocket\r\nHost")),
        ("expect", 400, with(list, "Host", "Expect: 100-continue\r\nHost")),
        ("two origins", 400, with(list, &origin, &origin.repeat(2))),
        (
            "two tokens",
            400,
            with(list, "Authorization", "Authorization: Bearer a\r\nAuthorization"),
        ),
        ("unknown path", 404, format!("GET /api/v1/none HTTP/1.1\r\n{headers}\r\n")),
        ("file outside", 404, format!("GET /../Cargo.toml HTTP/1.1\r\n{headers}\r\n")),
        ("number", 404, format!("GET /api/v1/approvals/+7 HTTP/1.1\r\n{headers}\r\n")),
        ("put", 405, format!("PUT /api/v1/approvals HTTP/1.1\r\n{headers}\r\n")),
        ("options", 405, format!("OPTIONS /api/v1/answer HTTP/1.1\r\n{headers}\r\n")),
        ("get of a post", 405, format!("GET /api/v1/freeze HTTP/1.1\r\n{headers}\r\n")),
        ("other origin", 403, with(list, &origin, "Origin: http://localhost:1\r\n")),
        ("null origin", 403, with(list, &origin, "Origin: null\r\n")),
        ("same site", 403, with(list, "same-origin", "same-site")),
        ("no site", 403, with(list, "Sec-Fetch-Site: same-origin\r\n", "")),
        ("typed", 403, with(list, "same-origin", "none")),
        ("post without origin", 403, post(json, "").replace(&origin, "")),
        ("no token", 401, with(list, &format!("Authorization: {bearer}\r\n"), "")),
        ("wrong token", 401, with(list, &bearer, "Bearer 00")),
        ("basic", 401, with(list, "Bearer", "Basic")),
        ("no type", 415, post("Content-Length: 2\r\n", "{}")),
        ("text", 415, post("Content-Type: text/plain\r\nContent-Length: 2\r\n", "{}")),
        ("no length", 411, post(json, "")),
        ("chunked", 400, post(&format!("{json}Transfer-Encoding: chunked\r\n"), "0\r\n\r\n")),
        ("long", 413, post(&format!("{json}Content-Length: 70000\r\n"), &long)),
        (
            "two keys",
            400,
            post(&format!("{json}Content-Length: 25\r\n"), r#"{"agent":"a","agent":"b"}"#),
        ),
        ("no object", 400, post(&format!("{json}Content-Length: 2\r\n"), "[]")),
        ("cut", 408, post(&format!("{json}Content-Length: 20\r\n"), "{")),
    ];
    let before = console.home.log().len();
    for (name, status, request) in &cases {
        let answer = console.page.raw(request);
        assert_eq!(answer.status, *status, "{name}: {}", answer.head);
        assert_eq!(answer.body, "", "{name}");
    }
    // Five wrong codes, and the right one is none any more.
    console.person.press(b"c");
    let code = console.person.sees("code: ").next_word();
    let login = |code: &str| console.page.post("login", &json!({ "code": code }));
    for _ in 0..5 {
        let wrong = login("aaaaaaaa");
        assert_eq!((wrong.status, &*wrong.body), (401, ""));
    }
    assert_eq!(login(&code).status, 401);
    assert_eq!(console.home.log().len(), before, "no record");
    // The page itself, with all that a browser is told.
    let shown = console.page.raw(&page(&host));
    assert_eq!(shown.status, 200);
    for header in [
        "content-security-policy: default-src 'none'",
        "cache-control: no-store",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
    ] {
        assert!(shown.head.contains(header), "{header}: {}", shown.head);
    }
    console.ends();
}
