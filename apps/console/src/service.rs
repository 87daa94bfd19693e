//! Requests that have passed the gate, and the answers.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread;
use std::time::Duration;

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use syscap_format::{Canonical, Item, ItemKind, json};
use tokio::sync::{mpsc, watch};

use crate::gate::{self, Route};
use crate::pages::{PageId, Stranger};
use crate::{Answer, Problem, Shared, Stretch, Wanted, Wish, cards, hex, random};

/// How long the body of a request may take.
const BODY_TIME: Duration = Duration::from_secs(5);
/// How long the home is asked for a change at a time.
const WATCH: Duration = Duration::from_secs(20);
/// How long nothing is told after a change: two a second.
const PAUSE: Duration = Duration::from_millis(500);
/// How often a stream says that it is there.
const BEAT: Duration = Duration::from_secs(15);
/// How long an approval may stand, in minutes: a day.
const MINUTES_MAX: u64 = 24 * 60;
/// Most paths of a list.
const PATHS_MAX: usize = 256;
/// Longest reason that a person gives, in bytes.
const WHY_BYTES_MAX: usize = 4 << 10;

/// The body of an answer.
pub(crate) enum Said {
    Whole(Option<Bytes>),
    Live(mpsc::Receiver<Bytes>),
}

impl Body for Said {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Live(lines) => {
                lines.poll_recv(context).map(|line| line.map(|bytes| Ok(Frame::data(bytes))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                let length = bytes.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Live(_) => SizeHint::default(),
        }
    }
}

/// Tells streams that something has changed; it says no more.
#[derive(Clone)]
pub(crate) struct Live(watch::Receiver<u64>);

impl Live {
    pub(crate) fn start(shared: Arc<Shared>) -> Self {
        let (tell, told) = watch::channel(0);
        // By a thread of its own: it waits nearly always.
        let asking = move || {
            let mut seen = None;
            while !tell.is_closed() {
                match shared.home.changed(seen, WATCH) {
                    Ok(count) if seen != Some(count) => {
                        seen = Some(count);
                        tell.send_modify(|told: &mut u64| *told = told.wrapping_add(1));
                        thread::sleep(PAUSE);
                    }
                    Ok(_) => {}
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        };
        // Without a thread for it pages are told nothing, and look when they are asked to.
        drop(thread::Builder::new().name("syscap-watch".to_owned()).spawn(asking));
        Self(told)
    }

    /// A line for each change, until the page has ended.
    fn stream(mut self, shared: Arc<Shared>, page: PageId) -> Said {
        let (tell, told) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut line = "{\"changed\":true}\n";
            while tell.send(Bytes::from_static(line.as_bytes())).await.is_ok() {
                line = match tokio::time::timeout(BEAT, self.0.changed()).await {
                    Ok(Ok(())) => "{\"changed\":true}\n",
                    Ok(Err(_)) => break,
                    Err(_) => "{\"changed\":false}\n",
                };
                if !shared.pages().lasts(page) {
                    break;
                }
            }
        });
        Said::Live(told)
    }
}

/// Answers a request.
pub(crate) async fn answer(
    request: Request<Incoming>,
    shared: Arc<Shared>,
    live: Live,
) -> Result<Response<Said>, Infallible> {
    let response = match gate::pass(&request, &shared.host, &shared.origin) {
        Err(status) => refused(status),
        Ok(Route::File(file)) => whole(StatusCode::OK, file.kind, Bytes::from_static(file.bytes)),
        Ok(Route::Login) => match body(request).await {
            Err(status) => refused(status),
            Ok(given) => login(&given, &shared),
        },
        Ok(route) => {
            let known = gate::token(&request).ok_or(Stranger::Unknown);
            match known.and_then(|token| shared.pages().known(token)) {
                Err(Stranger::Unknown) => unknown(),
                Err(Stranger::Busy) => refused(StatusCode::TOO_MANY_REQUESTS),
                Ok(page) => serve(route, request, page, shared, live).await,
            }
        }
    };
    Ok(with_headers(response))
}

async fn serve(
    route: Route,
    request: Request<Incoming>,
    page: PageId,
    shared: Arc<Shared>,
    live: Live,
) -> Response<Said> {
    let wanted = match route {
        Route::Live => {
            let said = live.stream(shared, page);
            return response(StatusCode::OK, "application/x-ndjson", said);
        }
        Route::Logout => {
            shared.pages().end(page);
            return json_answer(StatusCode::OK, "{}".to_owned());
        }
        Route::Status => Some(Wanted::Status),
        Route::Approvals => Some(Wanted::Approvals),
        Route::Approval(ask) => Some(Wanted::Approval(ask)),
        Route::Record(seq) => Some(Wanted::Record(seq)),
        Route::Tools => Some(Wanted::Tools),
        Route::Agents => Some(Wanted::Agents),
        Route::Home => Some(Wanted::Home),
        Route::Connectors => Some(Wanted::Connectors),
        _ => None,
    };
    let given = match wanted {
        Some(_) => None,
        None => match body(request).await {
            Ok(given) => Some(given),
            Err(status) => return refused(status),
        },
    };
    let work = move || match (wanted, given) {
        (Some(wanted), _) => look(wanted, page, &shared),
        (None, Some(given)) => act(route, &given, page, &shared),
        (None, None) => Err(bad("body")),
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(json)) => json_answer(StatusCode::OK, json),
        Ok(Err(problem)) => told(&problem),
        Err(_) => told(&Problem::new(500, "broke_off", "the console broke off")),
    }
}

/// What is looked at; with a card, where something can be done with it.
fn look(wanted: Wanted, page: PageId, shared: &Shared) -> Result<String, Problem> {
    let json = shared.home.look(&wanted)?;
    let name = match wanted {
        Wanted::Approval(_) => "call",
        Wanted::Tool(_) => "tool",
        Wanted::Connector(_) => "connector",
        Wanted::Gift { .. } => "gift",
        _ => return Ok(json),
    };
    let card = hex(&random::<16>().map_err(|_| Problem::new(500, "entropy", "no randomness"))?);
    let shown = format!("{{\"card\":\"{card}\",\"{name}\":{json}}}");
    shared.cards().give(&card, page, wanted, json);
    Ok(shown)
}

/// What a page filters by.
fn stretch(given: &Canonical) -> Result<Stretch, Problem> {
    let given = given.item();
    let words = |name: &'static str| match given.get(name).map(|value| value.as_text()) {
        None | Some(Some("")) => Ok(None),
        Some(Some(text)) => Ok(Some(text.to_owned())),
        Some(None) => Err(bad(name)),
    };
    let before = match given.get("before") {
        None => None,
        Some(number) => Some(number.as_uint().ok_or_else(|| bad("before"))?),
    };
    let is = |name: &str| given.get(name).and_then(Item::as_bool) == Some(true);
    Ok(Stretch {
        before,
        agent: words("agent")?,
        tool: words("tool")?,
        since: words("since")?,
        refused: is("refused"),
        outside: is("outside"),
    })
}

fn act(route: Route, given: &Canonical, page: PageId, shared: &Shared) -> Result<String, Problem> {
    match route {
        Route::Timeline => return look(Wanted::Timeline(stretch(given)?), page, shared),
        Route::Tool => return look(Wanted::Tool(text(given, "tool")?), page, shared),
        Route::Gift => {
            let wanted = Wanted::Gift { agent: text(given, "agent")?, tool: text(given, "tool")? };
            return look(wanted, page, shared);
        }
        Route::Connector => return look(Wanted::Connector(text(given, "tool")?), page, shared),
        _ => {}
    }
    if shared.view {
        return Err(Problem::new(403, "view", "this console was started with --view"));
    }
    let wish = wish(route, given, page, shared)?;
    // A stop has to wait for nothing.
    if !wish.is_stop() && !shared.pages().may_act() {
        let words = "at most 10 acts a minute, and 100 an hour";
        return Err(Problem::new(429, "too_many", words));
    }
    shared.home.act(wish)
}

fn wish(route: Route, given: &Canonical, page: PageId, shared: &Shared) -> Result<Wish, Problem> {
    match route {
        Route::Freeze => Ok(Wish::Freeze { agent: text(given, "agent")? }),
        Route::Narrow => {
            Ok(Wish::Narrow { agent: text(given, "agent")?, tool: text(given, "tool")? })
        }
        Route::Revoke => Ok(Wish::Revoke { token: text(given, "token")? }),
        Route::Thaw => Ok(Wish::Thaw { agent: text(given, "agent")? }),
        Route::Paths => {
            let keep = given.item().get("keep").filter(|keep| keep.kind() == ItemKind::Array);
            let keep = keep.ok_or_else(|| bad("keep"))?.elements();
            let keep: Option<Vec<String>> =
                keep.map(|path| path.as_text().map(str::to_owned)).collect();
            match keep {
                Some(keep) if (1..=PATHS_MAX).contains(&keep.len()) => {
                    Ok(Wish::Paths { agent: text(given, "agent")?, keep })
                }
                _ => Err(bad("keep")),
            }
        }
        Route::Connect => {
            let changes = given.item().get("changes").filter(|it| it.kind() == ItemKind::Map);
            let changes = json::from_data(changes.ok_or_else(|| bad("changes"))?);
            match card(given, page, shared)? {
                (Wanted::Connector(tool), shown) => Ok(Wish::Connect { tool, changes, shown }),
                _ => Err(bad("card")),
            }
        }
        Route::Give => match card(given, page, shared)? {
            (Wanted::Gift { agent, tool }, shown) => Ok(Wish::Give { agent, tool, shown }),
            _ => Err(bad("card")),
        },
        Route::Secret => {
            let name = text(given, "name")?;
            match card(given, page, shared)? {
                (Wanted::Connector(tool), shown) => Ok(Wish::Secret { tool, name, shown }),
                _ => Err(bad("card")),
            }
        }
        Route::Accept => match card(given, page, shared)? {
            (Wanted::Tool(tool), shown) => Ok(Wish::Accept { tool, shown }),
            _ => Err(bad("card")),
        },
        Route::Answer => wish_to_answer(given, page, shared),
        _ => Err(bad("path")),
    }
}

fn wish_to_answer(given: &Canonical, page: PageId, shared: &Shared) -> Result<Wish, Problem> {
    let answer = match &*text(given, "answer")? {
        "once" => Answer::Once,
        "more" => {
            let uint = |name| given.item().get(name).and_then(Item::as_uint);
            let (uses, minutes) = (uint("uses"), uint("minutes"));
            match uses.zip(minutes) {
                Some((uses @ 1.., minutes @ 1..=MINUTES_MAX)) => Answer::More { uses, minutes },
                _ => return Err(bad("uses")),
            }
        }
        "deny" => Answer::Deny,
        _ => return Err(bad("answer")),
    };
    let why = match given.item().get("why") {
        None => None,
        Some(_) => Some(text(given, "why")?).filter(|why| !why.is_empty()),
    };
    if why.as_ref().is_some_and(|why| why.len() > WHY_BYTES_MAX) {
        return Err(bad("why"));
    }
    match card(given, page, shared)? {
        (Wanted::Approval(ask), shown) => Ok(Wish::Answer { ask, answer, why, shown }),
        _ => Err(bad("card")),
    }
}

fn text(given: &Canonical, name: &'static str) -> Result<String, Problem> {
    let text = given.item().get(name).and_then(Item::as_text);
    text.map(str::to_owned).ok_or_else(|| bad(name))
}

/// What the named card is of, and what was shown of it.
fn card(given: &Canonical, page: PageId, shared: &Shared) -> Result<(Wanted, String), Problem> {
    let name = text(given, "card")?;
    shared.cards().take(&name, page).map_err(|why| match why {
        cards::NoCard::Unknown => {
            Problem::new(409, "no_card", "look at it again: what was shown is over")
        }
        cards::NoCard::Early => Problem::new(409, "early", "nobody can have read this yet"),
    })
}

fn login(given: &Canonical, shared: &Shared) -> Response<Said> {
    let code = given.item().get("code").and_then(Item::as_text).unwrap_or_default();
    let Ok(token) = random::<32>().map(|bytes| hex(&bytes)) else {
        return refused(StatusCode::INTERNAL_SERVER_ERROR);
    };
    if !shared.pages().enter(code, &token) {
        return unknown();
    }
    let view = shared.view;
    json_answer(StatusCode::OK, format!("{{\"token\":\"{token}\",\"view\":{view}}}"))
}

/// The body of a request: a JSON object.
async fn body(request: Request<Incoming>) -> Result<Canonical, StatusCode> {
    let length = gate::body_bytes(&request)?;
    let mut body = request.into_body();
    let read = async move {
        let mut bytes = Vec::with_capacity(length);
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| StatusCode::BAD_REQUEST)?;
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len().saturating_add(data.len()) > length {
                return Err(StatusCode::PAYLOAD_TOO_LARGE);
            }
            bytes.extend_from_slice(&data);
        }
        Ok(bytes)
    };
    let read = tokio::time::timeout(BODY_TIME, read).await;
    let bytes = read.map_err(|_| StatusCode::REQUEST_TIMEOUT)??;
    let given = json::to_data(&bytes).map_err(|_| StatusCode::BAD_REQUEST)?;
    match given.item().kind() {
        ItemKind::Map => Ok(given),
        _ => Err(StatusCode::BAD_REQUEST),
    }
}

fn bad(field: &str) -> Problem {
    Problem::new(400, "bad_field", format!("`{field}` is missing, or not of its form"))
}

/// Refuses without a word.
fn refused(status: StatusCode) -> Response<Said> {
    let mut response = Response::new(Said::Whole(None));
    *response.status_mut() = status;
    if status != StatusCode::TOO_MANY_REQUESTS {
        // What such a peer sends next is not read.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(hyper::header::CONNECTION, close);
    }
    response
}

fn unknown() -> Response<Said> {
    let mut response = refused(StatusCode::UNAUTHORIZED);
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

fn told(problem: &Problem) -> Response<Said> {
    let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let quoted = |text: &str| json::from_data(Canonical::text(text).item());
    let (reason, words) = (quoted(problem.reason), quoted(&problem.words));
    json_answer(status, format!("{{\"error\":{{\"reason\":{reason},\"words\":{words}}}}}"))
}

fn json_answer(status: StatusCode, json: String) -> Response<Said> {
    whole(status, "application/json", Bytes::from(json))
}

fn whole(status: StatusCode, kind: &'static str, bytes: Bytes) -> Response<Said> {
    response(status, kind, Said::Whole(Some(bytes)))
}

fn response(status: StatusCode, kind: &'static str, said: Said) -> Response<Said> {
    let mut response = Response::new(said);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

fn with_headers(mut response: Response<Said>) -> Response<Said> {
    for (name, value) in gate::HEADERS {
        response.headers_mut().insert(name, value);
    }
    response
}
