//! The gate: what every request must be before anything else looks at it, in this order.
//!
//! 1. HTTP/1.1 in origin form, none of the headers twice that decide something (400).
//! 2. The host is the page's own name (403). A page of another name, and of `localhost`, gets nothing.
//! 3. Path and method are in the table (404, 405).
//! 4. The request comes from the page itself (403): browsers say so, and no script can say otherwise.
//! 5. It has the token of a page (401), except for the files of the page and the code itself.
//! 6. It is one of few (429).
//! 7. Its body is short JSON (411, 413, 415), and comes in time (408).
//! 8. The body is JSON to the letter (400).
//!
//! The answers up to the fifth step have no body: who is not let in learns nothing.

use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HOST, HeaderMap, HeaderName,
    HeaderValue, ORIGIN, TE, TRANSFER_ENCODING, UPGRADE,
};
use hyper::{Method, Request, StatusCode, Version};

use crate::files::{self, File};

/// Longest body of a request, in bytes.
pub(crate) const BODY_BYTES_MAX: usize = 64 << 10;
/// Longest target of a request, in bytes.
const TARGET_BYTES_MAX: usize = 1_024;
const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a request is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// A file of the page.
    File(&'static File),
    /// The code, for a token.
    Login,
    Logout,
    /// Says when something has changed.
    Live,
    Status,
    Approvals,
    /// One call that waits.
    Approval(u64),
    /// A stretch of the log: asked for by POST, since a filter is no part of an address.
    Timeline,
    /// A record of it.
    Record(u64),
    Tools,
    /// A tool, named in the body.
    Tool,
    /// An answer to a call that waits.
    Answer,
    Accept,
    Agents,
    Home,
    Narrow,
    Paths,
    Revoke,
    Thaw,
    Freeze,
    Connectors,
    /// A tool that makes requests, named in the body.
    Connector,
    Connect,
    Secret,
    /// The token by which an agent would have a tool; both are named in the body.
    Gift,
    Give,
}

/// The paths below `/api/v1/` that have no number in them.
const TABLE: [(&str, Method, Route); 23] = [
    ("login", Method::POST, Route::Login),
    ("logout", Method::POST, Route::Logout),
    ("live", Method::GET, Route::Live),
    ("status", Method::GET, Route::Status),
    ("approvals", Method::GET, Route::Approvals),
    ("timeline", Method::POST, Route::Timeline),
    ("tools", Method::GET, Route::Tools),
    ("tool", Method::POST, Route::Tool),
    ("accept", Method::POST, Route::Accept),
    ("narrow", Method::POST, Route::Narrow),
    ("agents", Method::GET, Route::Agents),
    ("home", Method::GET, Route::Home),
    ("paths", Method::POST, Route::Paths),
    ("revoke", Method::POST, Route::Revoke),
    ("thaw", Method::POST, Route::Thaw),
    ("answer", Method::POST, Route::Answer),
    ("freeze", Method::POST, Route::Freeze),
    ("connectors", Method::GET, Route::Connectors),
    ("connector", Method::POST, Route::Connector),
    ("connect", Method::POST, Route::Connect),
    ("secret", Method::POST, Route::Secret),
    ("gift", Method::POST, Route::Gift),
    ("give", Method::POST, Route::Give),
];

/// Steps 1 to 4.
pub(crate) fn pass<B>(request: &Request<B>, host: &str, origin: &str) -> Result<Route, StatusCode> {
    framing(request)?;
    if header(request, &HOST) != Some(host) {
        return Err(StatusCode::FORBIDDEN);
    }
    let route = route(request.uri().path(), request.method())?;
    from_the_page(request, route, origin)?;
    Ok(route)
}

/// The value of a header that is there once.
pub(crate) fn header<'r, B>(request: &'r Request<B>, name: &HeaderName) -> Option<&'r str> {
    request.headers().get(name).and_then(|value| value.to_str().ok())
}

fn framing<B>(request: &Request<B>) -> Result<(), StatusCode> {
    let (uri, headers) = (request.uri(), request.headers());
    let once = |name: &HeaderName| headers.get_all(name).iter().count() <= 1;
    let decisive = [HOST, AUTHORIZATION, ORIGIN, CONTENT_LENGTH, CONTENT_TYPE, SITE];
    let is_origin_form = uri.scheme().is_none() && uri.authority().is_none();
    let none = |names: &[HeaderName]| names.iter().all(|name| !headers.contains_key(name));
    let target = uri.path_and_query().map_or(0, |target| target.as_str().len());
    let sound = request.version() == Version::HTTP_11
        && is_origin_form
        && uri.query().is_none()
        && (1..=TARGET_BYTES_MAX).contains(&target)
        && headers.contains_key(HOST)
        && decisive.iter().all(once)
        && none(&[UPGRADE, EXPECT, TE, TRANSFER_ENCODING])
        && !upgrades(headers);
    if sound { Ok(()) } else { Err(StatusCode::BAD_REQUEST) }
}

fn upgrades(headers: &HeaderMap) -> bool {
    let words = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    words.flat_map(|value| value.split(',')).any(|word| word.trim().eq_ignore_ascii_case("upgrade"))
}

fn route(path: &str, method: &Method) -> Result<Route, StatusCode> {
    let (allowed, route) = match path.strip_prefix("/api/v1/") {
        Some(path) => match path.split_once('/') {
            Some(("approvals", number)) => (Method::GET, Route::Approval(number_of(number)?)),
            Some(("log", number)) => (Method::GET, Route::Record(number_of(number)?)),
            Some(_) => return Err(StatusCode::NOT_FOUND),
            None => {
                let row = TABLE.into_iter().find(|(name, ..)| *name == path);
                let (_, method, route) = row.ok_or(StatusCode::NOT_FOUND)?;
                (method, route)
            }
        },
        None => (Method::GET, Route::File(files::find(path).ok_or(StatusCode::NOT_FOUND)?)),
    };
    if *method == allowed { Ok(route) } else { Err(StatusCode::METHOD_NOT_ALLOWED) }
}

/// A number as it is written: no sign, no zero in front.
fn number_of(text: &str) -> Result<u64, StatusCode> {
    let number = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
    number.ok_or(StatusCode::NOT_FOUND)
}

fn from_the_page<B>(request: &Request<B>, route: Route, origin: &str) -> Result<(), StatusCode> {
    let (from, site) = (header(request, &ORIGIN), header(request, &SITE));
    let says_origin = request.headers().contains_key(ORIGIN);
    let fine = match route {
        // Typed, or asked for by the page; a browser that says nothing is an old one, or none.
        Route::File(_) => {
            (!says_origin || from == Some(origin))
                && matches!(site, None | Some("none" | "same-origin"))
        }
        _ if *request.method() == Method::GET => {
            (!says_origin || from == Some(origin)) && site == Some("same-origin")
        }
        _ => from == Some(origin) && site == Some("same-origin"),
    };
    if fine { Ok(()) } else { Err(StatusCode::FORBIDDEN) }
}

/// The token that a request has.
pub(crate) fn token<B>(request: &Request<B>) -> Option<&str> {
    header(request, &AUTHORIZATION)?.strip_prefix("Bearer ")
}

/// Step 7, but for the time: the length of the body.
pub(crate) fn body_bytes<B>(request: &Request<B>) -> Result<usize, StatusCode> {
    if header(request, &CONTENT_TYPE) != Some("application/json") {
        return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
    }
    let length = header(request, &CONTENT_LENGTH).ok_or(StatusCode::LENGTH_REQUIRED)?;
    match length.parse::<usize>() {
        Ok(length) if length <= BODY_BYTES_MAX => Ok(length),
        _ => Err(StatusCode::PAYLOAD_TOO_LARGE),
    }
}

/// The headers of every answer.
pub(crate) const HEADERS: [(&str, HeaderValue); 8] = [
    (
        "content-security-policy",
        HeaderValue::from_static(
            "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
             img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             frame-src 'none'; worker-src 'none'; require-trusted-types-for 'script'; \
             trusted-types 'none'",
        ),
    ),
    ("x-content-type-options", HeaderValue::from_static("nosniff")),
    ("referrer-policy", HeaderValue::from_static("no-referrer")),
    ("cache-control", HeaderValue::from_static("no-store")),
    ("cross-origin-opener-policy", HeaderValue::from_static("same-origin")),
    ("cross-origin-resource-policy", HeaderValue::from_static("same-origin")),
    ("x-frame-options", HeaderValue::from_static("DENY")),
    ("permissions-policy", HeaderValue::from_static("clipboard-read=()")),
];
