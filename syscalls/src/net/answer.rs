//! From an answer to a result: decoded, without secrets, cut.

use encoding_rs::{Encoding, UTF_8};
use syscap_format::{Canonical, Item, MapBuilder, Profile, Reason, Refused, json};

use super::exchange::Answer;
use super::method::Method;
use super::scrub::Scrubber;
use super::settings::ResponseFormat;
use super::target::Target;

/// The part of an answer that is read beyond the kept one: a cut leaves no part of a secret.
pub(super) const SLACK_BYTES: usize = 32 << 10;
/// The size of a result beside its data, in bytes.
const FRAME_BYTES: usize = 12 << 10;

/// How a result is made.
pub(super) struct Shape<'a> {
    pub(super) target: &'a Target,
    pub(super) method: Method,
    pub(super) format: ResponseFormat,
    /// Most characters of data.
    pub(super) chars: usize,
    /// Most bytes of the whole result.
    pub(super) bytes: usize,
    pub(super) scrubber: &'a Scrubber,
}

/// The form in which a body was read.
enum Data {
    Json(Canonical),
    /// And whether it was cut.
    Text(String, bool),
    Bytes(Vec<u8>, bool),
    /// It has a secret in it, and is no text.
    Withheld,
    None,
}

impl Shape<'_> {
    /// The result: `ok`, `status`, `url`, `data` and what belongs to it.
    pub(super) fn result(&self, answer: Answer) -> Result<Canonical, Refused> {
        let data = self.data(&answer)?;
        let whole = self.with(&answer, &data);
        // What is canonical alone may be too deep within a result.
        match (data, Item::check(whole.as_bytes(), Profile::DATA).is_ok()) {
            (Data::Json(value), false) => {
                let (text, is_cut) = self.cut(json::from_data(value.item()));
                Ok(self.with(&answer, &Data::Text(text, is_cut)))
            }
            _ => Ok(whole),
        }
    }

    fn with(&self, answer: &Answer, data: &Data) -> Canonical {
        let map = MapBuilder::new()
            .boolean("ok", (200..300).contains(&answer.status))
            .uint("status", answer.status.into())
            .text("url", self.target.as_str())
            .text("method", self.method.name());
        let map = match data {
            Data::Json(value) => map.text("format", "json").item("data", value.item()),
            Data::Text(text, _) => map.text("format", "text").text("data", text),
            Data::Bytes(bytes, _) => map.text("format", "bytes").bytes("data", bytes),
            Data::Withheld => map.text("format", "withheld").item("data", Canonical::null().item()),
            Data::None => map.text("format", "none").item("data", Canonical::null().item()),
        };
        let is_cut = matches!(data, Data::Text(_, true) | Data::Bytes(_, true));
        let map = map.boolean("truncated", is_cut);
        if self.format == ResponseFormat::Withheld {
            return map.finish();
        }
        let map = match &answer.content_type {
            Some(kind) => map.text("content_type", &self.short(kind)),
            None => map,
        };
        let leads = answer.location.as_deref().filter(|_| (300..400).contains(&answer.status));
        match leads.and_then(|location| self.target.redirected(location).ok()) {
            Some(target) => map.text("redirect", &self.clean(target.as_str())).finish(),
            None => map.finish(),
        }
    }

    fn clean(&self, text: &str) -> String {
        self.scrubber.scrub(text, text.len())
    }

    fn short(&self, text: &str) -> String {
        self.clean(text).chars().take(128).collect()
    }

    fn data(&self, answer: &Answer) -> Result<Data, Refused> {
        if self.format == ResponseFormat::Withheld {
            return Ok(Data::Withheld);
        }
        if self.method == Method::Head || answer.body.is_empty() {
            return Ok(Data::None);
        }
        let kind = answer.content_type.as_deref().unwrap_or_default();
        let Some(text) = decoded(kind, &answer.body, answer.is_cut) else {
            if self.scrubber.is_in(&answer.body) {
                return Ok(Data::Withheld);
            }
            let most = self.chars.min(self.room());
            let is_cut = answer.is_cut || answer.body.len() > most;
            let bytes = answer.body.iter().take(most).copied().collect();
            return match self.format {
                ResponseFormat::Json => Err(no_json()),
                _ => Ok(Data::Bytes(bytes, is_cut)),
            };
        };
        let end = match answer.is_cut {
            true => text.len().saturating_sub(self.scrubber.tail_bytes()),
            false => text.len(),
        };
        let clean = self.scrubber.scrub(&text, end);
        // As it was sent, and not as it reads: another encoding takes its letters apart.
        if !self.scrubber.is_in(text.as_bytes()) && self.scrubber.is_in(&answer.body) {
            return Ok(Data::Withheld);
        }
        let (text, is_cut) = self.cut(clean);
        let is_cut = is_cut || answer.is_cut;
        let wanted = match self.format {
            ResponseFormat::Json => true,
            ResponseFormat::Auto => is_json(kind),
            ResponseFormat::Text | ResponseFormat::Withheld => false,
        };
        if !wanted || is_cut {
            return Ok(Data::Text(text, is_cut));
        }
        match json::to_data(text.as_bytes()) {
            Ok(value) if value.as_bytes().len() <= self.room() => Ok(Data::Json(value)),
            Err(_) if self.format == ResponseFormat::Json => Err(no_json()),
            _ => Ok(Data::Text(text, false)),
        }
    }

    /// Bytes that data may have.
    const fn room(&self) -> usize {
        self.bytes.saturating_sub(FRAME_BYTES)
    }

    fn cut(&self, text: String) -> (String, bool) {
        let mut room = self.room();
        let kept: String = text
            .chars()
            .take(self.chars)
            .take_while(|c| match room.checked_sub(c.len_utf8()) {
                Some(left) => {
                    room = left;
                    true
                }
                None => false,
            })
            .collect();
        let is_cut = kept.len() < text.len();
        (kept, is_cut)
    }
}

fn no_json() -> Refused {
    let refused = Refused::new(Reason::BadResponse).field("response_format");
    refused.got("a body that is no JSON").allowed("JSON, as the tool is set to")
}

fn is_json(kind: &str) -> bool {
    let media = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media == "application/json" || media == "text/json" || media.ends_with("+json")
}

/// The text of a body, where it is one.
fn decoded(kind: &str, body: &[u8], is_cut: bool) -> Option<String> {
    let kind = kind.to_ascii_lowercase();
    let label = kind.split("charset=").nth(1).map(|rest| {
        rest.trim_start_matches('"').split(['"', ';', ' ', ',']).next().unwrap_or_default()
    });
    let encoding = label.and_then(|label| Encoding::for_label(label.as_bytes()));
    let is_text = encoding.is_some()
        || is_json(&kind)
        || kind.starts_with("text/")
        || ["xml", "javascript", "x-www-form-urlencoded", "yaml"]
            .iter()
            .any(|part| kind.split(';').next().is_some_and(|media| media.contains(part)));
    let is_utf_8 = match std::str::from_utf8(body) {
        Ok(_) => true,
        // Cut within a character.
        Err(error) => is_cut && error.error_len().is_none(),
    };
    if !is_text && !is_utf_8 {
        return None;
    }
    let (text, _, _) = encoding.unwrap_or(UTF_8).decode(body);
    let text = match is_cut {
        true => text.trim_end_matches('\u{fffd}').to_owned(),
        false => text.into_owned(),
    };
    Some(text)
}
