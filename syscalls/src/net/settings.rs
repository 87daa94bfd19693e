//! An operator's settings of an HTTP tool.
//!
//! It is a map of the fields that `docs/http.md` lists. It stands in the tool's manifest, so it is
//! on record by the operator's signature, and every call names it by the manifest's hash.

use std::sync::Arc;

use syscap_format::{AgentId, Cidrs, Confidentiality, Integrity, Item, ItemKind, Label, Scope};

use super::exchange::Trust;
use super::headers::{FIELDS_MAX, is_credential, is_query, is_value, name};
use super::method::Method;
use super::names::HTTP_REQUEST;
use super::roots;
use super::secret::is_secret_name;
use super::target::Target;

/// Milliseconds that an exchange may take where nothing else is set.
pub const TIMEOUT_MS: u64 = 10_000;
/// Most that may be set.
pub const TIMEOUT_MS_MAX: u64 = 120_000;
/// Characters of an answer that are kept where nothing else is set.
pub const RESPONSE_CHARS: u64 = 20_000;
/// Most that may be set.
pub const RESPONSE_CHARS_MAX: u64 = 200_000;
/// Longest title and description, in bytes.
const TITLE_BYTES_MAX: usize = 128;
const DESCRIPTION_BYTES_MAX: usize = 2_000;
/// Most agents, secrets and routes.
const LIST_MAX: usize = 64;

/// The fault of settings.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {allowed}")]
pub struct SettingsError {
    /// The field, by its path.
    pub field: String,
    /// The permitted values.
    pub allowed: String,
}

pub(super) fn wrong(field: &str, allowed: &str) -> SettingsError {
    SettingsError { field: field.to_owned(), allowed: allowed.to_owned() }
}

/// How an answer's body is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum ResponseFormat {
    /// As its media type says.
    #[default]
    Auto,
    /// JSON, or the call fails.
    Json,
    /// Text.
    Text,
    /// Not at all: its status is enough.
    Withheld,
}

/// The place of a secret in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A header, behind a beginning such as `Bearer `.
    Header(String, String),
    /// A name of the query.
    Query(String),
}

/// A secret, and where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Placed {
    pub(super) secret: String,
    pub(super) spot: Spot,
}

/// How the network is reached.
#[derive(Clone, Debug)]
pub(super) struct Through {
    pub(super) trust: Trust,
    /// The proxy that all of it goes through.
    pub(super) proxy: Option<Target>,
}

/// The settings of one tool.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) title: Option<String>,
    pub(super) description: Option<String>,
    pub(super) agents: Vec<AgentId>,
    pub(super) base: Option<Target>,
    /// True if a call may name a URL that is not below the base.
    pub(super) anywhere: bool,
    /// True if a token must name the path.
    pub(super) by_path: bool,
    pub(super) methods: Vec<Method>,
    pub(super) default_method: Method,
    pub(super) headers: Vec<(String, String)>,
    pub(super) query: Vec<(String, String)>,
    pub(super) timeout_ms: u64,
    pub(super) format: ResponseFormat,
    pub(super) response_chars: usize,
    pub(super) secrets: Vec<Placed>,
    pub(super) label: Label,
    pub(super) through: Through,
}

impl Settings {
    /// The default settings.
    pub(super) fn standard() -> Self {
        Self {
            title: None,
            description: None,
            agents: Vec::new(),
            base: None,
            anywhere: true,
            by_path: false,
            methods: vec![Method::Get, Method::Head],
            default_method: Method::Get,
            headers: Vec::new(),
            query: Vec::new(),
            timeout_ms: TIMEOUT_MS,
            format: ResponseFormat::Auto,
            response_chars: chars(RESPONSE_CHARS),
            secrets: Vec::new(),
            label: Label::UNTRUSTED,
            through: Through { trust: Trust::public(), proxy: None },
        }
    }

    pub(super) fn read(item: Item<'_>) -> Result<Self, SettingsError> {
        let mut settings = Self::standard();
        let (mut first, mut proxy, mut withhold) = (None, None, false);
        for (key, value) in entries(item, "settings")? {
            match key {
                "template" if value.as_text() == Some(HTTP_REQUEST) => {}
                "template" => return Err(wrong(key, HTTP_REQUEST)),
                "title" => settings.title = Some(words(key, value, TITLE_BYTES_MAX)?),
                "description" => {
                    settings.description = Some(words(key, value, DESCRIPTION_BYTES_MAX)?);
                }
                "agents" => settings.agents = agents(key, value)?,
                "base_url" => settings.base = Some(base(key, value)?),
                "anywhere" => {
                    settings.anywhere =
                        value.as_bool().ok_or_else(|| wrong(key, "true or false"))?;
                }
                "by_path" => {
                    settings.by_path =
                        value.as_bool().ok_or_else(|| wrong(key, "true or false"))?;
                }
                "allowed_methods" => settings.methods = methods(key, value)?,
                "default_method" => first = Some(method(key, value)?),
                "default_headers" => settings.headers = headers(key, value)?,
                "default_query" => settings.query = query(key, value)?,
                "timeout_ms" => settings.timeout_ms = within(key, value, TIMEOUT_MS_MAX)?,
                // It counts in the policy only: no tool lets itself through.
                "auto_approve" if value.as_bool().is_some() => {}
                "auto_approve" => return Err(wrong(key, "true or false")),
                "response_format" => settings.format = format(key, value)?,
                "withhold" => {
                    withhold = value.as_bool().ok_or_else(|| wrong(key, "true or false"))?;
                }
                "max_response_chars" => {
                    settings.response_chars = chars(within(key, value, RESPONSE_CHARS_MAX)?);
                }
                "secrets" => settings.secrets = placed(key, value)?,
                "confidentiality" => settings.label = label(key, value)?,
                "roots" => settings.through.trust = trust(key, value)?,
                "proxy" => proxy = Some(proxy_of(key, value)?),
                _ => return Err(unknown(key, &FIELDS)),
            }
        }
        settings.through.proxy = proxy;
        if withhold {
            settings.format = ResponseFormat::Withheld;
        }
        let fallback = settings.methods.first().copied().unwrap_or(Method::Get);
        settings.default_method = first.unwrap_or(fallback);
        if !settings.methods.contains(&settings.default_method) {
            return Err(wrong("default_method", "one of `allowed_methods`"));
        }
        settings.no_clash()?;
        Ok(settings)
    }

    /// A secret's place is its own.
    fn no_clash(&self) -> Result<(), SettingsError> {
        let taken = |spot: &Spot| match spot {
            Spot::Header(name, _) => self.headers.iter().any(|(known, _)| known == name),
            Spot::Query(name) => self.query.iter().any(|(known, _)| known == name),
        };
        let is_one = |(place, one): (usize, &Placed)| {
            self.secrets.iter().take(place).all(|other| !same_spot(&other.spot, &one.spot))
        };
        let fine = self.secrets.iter().enumerate().all(is_one);
        if !fine || self.secrets.iter().any(|placed| taken(&placed.spot)) {
            return Err(wrong("secrets", "each header and each name of the query once"));
        }
        Ok(())
    }
}

/// The fields, for who has misspelt one.
const FIELDS: [&str; 20] = [
    "template",
    "title",
    "description",
    "agents",
    "base_url",
    "anywhere",
    "by_path",
    "allowed_methods",
    "default_method",
    "default_headers",
    "default_query",
    "timeout_ms",
    "auto_approve",
    "response_format",
    "withhold",
    "max_response_chars",
    "secrets",
    "confidentiality",
    "roots",
    "proxy",
];

pub(super) fn same_spot(one: &Spot, other: &Spot) -> bool {
    match (one, other) {
        (Spot::Header(one, _), Spot::Header(other, _)) => one == other,
        (Spot::Query(one), Spot::Query(other)) => one == other,
        _ => false,
    }
}

pub(super) fn unknown(key: &str, known: &[&str]) -> SettingsError {
    wrong(key, &format!("one of: {}", known.join(", ")))
}

/// The entries of a map.
pub(super) fn entries<'a>(
    item: Item<'a>,
    field: &str,
) -> Result<Vec<(&'a str, Item<'a>)>, SettingsError> {
    if item.kind() != ItemKind::Map {
        return Err(wrong(field, "an object"));
    }
    Ok(item.entries().collect())
}

fn list<'a>(field: &str, item: Item<'a>) -> Result<Vec<Item<'a>>, SettingsError> {
    let all: Vec<Item<'a>> = match item.kind() {
        ItemKind::Array => item.elements().collect(),
        _ => return Err(wrong(field, "a list")),
    };
    let fine = (1..=LIST_MAX).contains(&all.len());
    if fine { Ok(all) } else { Err(wrong(field, &format!("1 to {LIST_MAX}"))) }
}

pub(super) fn text<'a>(field: &str, item: Item<'a>) -> Result<&'a str, SettingsError> {
    item.as_text().ok_or_else(|| wrong(field, "a text"))
}

/// One line that shows what it says.
fn words(field: &str, item: Item<'_>, most: usize) -> Result<String, SettingsError> {
    let said = text(field, item)?;
    let is_hidden = |c: char| {
        c.is_control()
            || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}')
            || matches!(c, '\u{2060}'..='\u{206f}' | '\u{feff}')
    };
    if said.is_empty() || said.len() > most || said.contains(is_hidden) {
        return Err(wrong(field, &format!("1 to {most} bytes of text on one line")));
    }
    Ok(said.to_owned())
}

fn agents(field: &str, item: Item<'_>) -> Result<Vec<AgentId>, SettingsError> {
    let agent =
        |one: Item<'_>| AgentId::new(text(field, one)?).ok_or_else(|| wrong(field, "agents"));
    list(field, item)?.into_iter().map(agent).collect()
}

fn base(field: &str, item: Item<'_>) -> Result<Target, SettingsError> {
    let target = url(field, item)?;
    if target.as_str().contains('?') {
        return Err(wrong(field, "a URL without a query; see `default_query`"));
    }
    Ok(target.folder())
}

/// An absolute URL.
pub(super) fn url(field: &str, item: Item<'_>) -> Result<Target, SettingsError> {
    let target = Target::absolute(text(field, item)?);
    target.map_err(|fault| wrong(field, &format!("a URL; this one {fault}")))
}

pub(super) fn method(field: &str, item: Item<'_>) -> Result<Method, SettingsError> {
    let names = Method::ALL.map(Method::name).join(", ");
    Method::named(text(field, item)?).ok_or_else(|| wrong(field, &format!("one of: {names}")))
}

fn methods(field: &str, item: Item<'_>) -> Result<Vec<Method>, SettingsError> {
    list(field, item)?.into_iter().map(|one| method(field, one)).collect()
}

/// Headers with their values, by names in small letters.
pub(super) fn headers(field: &str, item: Item<'_>) -> Result<Vec<(String, String)>, SettingsError> {
    let mut all: Vec<(String, String)> = Vec::new();
    for (key, value) in fields(field, item)? {
        let at = format!("{field}.{key}");
        let allowed = "a header that is not the connection's own, with visible ASCII as its value";
        let name = name(key).filter(|_| is_value(value)).ok_or_else(|| wrong(&at, allowed))?;
        no_credential(&at, &name, value)?;
        if all.iter().any(|(known, _)| *known == name) {
            return Err(wrong(&at, "each header once"));
        }
        all.push((name, value.to_owned()));
    }
    Ok(all)
}

fn query(field: &str, item: Item<'_>) -> Result<Vec<(String, String)>, SettingsError> {
    let mut all = Vec::new();
    for (key, value) in fields(field, item)? {
        let at = format!("{field}.{key}");
        if !is_query(key, value) {
            return Err(wrong(&at, "a shorter name or value"));
        }
        no_credential(&at, key, value)?;
        all.push((key.to_owned(), value.to_owned()));
    }
    Ok(all)
}

fn fields<'a>(field: &str, item: Item<'a>) -> Result<Vec<(&'a str, &'a str)>, SettingsError> {
    let all = entries(item, field)?;
    if all.len() > FIELDS_MAX {
        return Err(wrong(field, &format!("at most {FIELDS_MAX}")));
    }
    all.into_iter().map(|(key, value)| Ok((key, text(field, value)?))).collect()
}

/// Refuses credentials: settings stand in the log.
fn no_credential(at: &str, name: &str, value: &str) -> Result<(), SettingsError> {
    if is_credential(name, value) {
        let allowed = "no credential: set it with `syscap secret set`, and name it in `secrets`";
        return Err(wrong(at, allowed));
    }
    Ok(())
}

pub(super) fn within(field: &str, item: Item<'_>, most: u64) -> Result<u64, SettingsError> {
    let number = item.as_uint().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| wrong(field, &format!("an integer from 1 to {most}")))
}

fn chars(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

fn format(field: &str, item: Item<'_>) -> Result<ResponseFormat, SettingsError> {
    match text(field, item)? {
        "auto" => Ok(ResponseFormat::Auto),
        "json" => Ok(ResponseFormat::Json),
        "text" => Ok(ResponseFormat::Text),
        _ => Err(wrong(field, "auto, json or text")),
    }
}

/// A stranger's word, whoever may see it.
pub(super) fn label(field: &str, item: Item<'_>) -> Result<Label, SettingsError> {
    let said = text(field, item)?;
    let found = Confidentiality::ALL.iter().find(|one| one.name() == said).copied();
    let allowed = "public, internal, private, sensitive or secret";
    found.map(|found| Label::new(Integrity::Untrusted, found)).ok_or_else(|| wrong(field, allowed))
}

/// The places of secrets: `{"secret": S, "header": H, "prefix": P}` or `{"secret": S, "query": Q}`.
pub(super) fn placed(field: &str, item: Item<'_>) -> Result<Vec<Placed>, SettingsError> {
    let one = |item: Item<'_>| {
        let allowed = "{secret, header, prefix?} or {secret, query}";
        let get = |key: &str| item.get(key).and_then(Item::as_text);
        let known = ["secret", "header", "prefix", "query"];
        if entries(item, field)?.iter().any(|(key, _)| !known.contains(key)) {
            return Err(wrong(field, allowed));
        }
        let secret = get("secret").filter(|name| is_secret_name(name));
        let prefix = get("prefix").unwrap_or_default();
        let spot = match (get("header"), get("query")) {
            (Some(header), None) => name(header)
                .filter(|_| prefix.bytes().all(|byte| matches!(byte, b' '..=b'~')))
                .filter(|_| prefix.len() <= 64 && !prefix.starts_with(' '))
                .map(|header| Spot::Header(header, prefix.to_owned())),
            (None, Some(query)) if is_query(query, "") && prefix.is_empty() => {
                Some(Spot::Query(query.to_owned()))
            }
            _ => None,
        };
        match (secret, spot) {
            (Some(secret), Some(spot)) => Ok(Placed { secret: secret.to_owned(), spot }),
            _ => Err(wrong(field, allowed)),
        }
    };
    list(field, item)?.into_iter().map(one).collect()
}

/// Certificates in PEM.
pub(super) fn trust(field: &str, item: Item<'_>) -> Result<Trust, SettingsError> {
    let certificates = roots::read(text(field, item)?);
    certificates.map(|all| Trust::only(&all)).ok_or_else(|| wrong(field, "certificates in PEM"))
}

/// `http://proxy.example.com:3128`.
pub(super) fn proxy_of(field: &str, item: Item<'_>) -> Result<Target, SettingsError> {
    let target = url(field, item)?;
    let is_bare = !target.is_secure() && target.as_str().matches('/').count() == 3;
    if is_bare { Ok(target) } else { Err(wrong(field, "http://HOST:PORT")) }
}

/// Addresses that are not of the Internet at large, and may be reached.
pub(super) fn addresses(field: &str, item: Item<'_>) -> Result<Arc<Cidrs>, SettingsError> {
    let allowed = "blocks of addresses, as 10.0.0.0/8";
    let block = |one: Item<'_>| {
        let (address, prefix) =
            text(field, one)?.split_once('/').ok_or_else(|| wrong(field, allowed))?;
        let (address, prefix) = (address.parse(), prefix.parse());
        let (Ok(address), Ok(prefix)) = (address, prefix) else {
            return Err(wrong(field, allowed));
        };
        syscap_format::Cidr::new(address, prefix).map_err(|_| wrong(field, allowed))
    };
    let blocks: Result<Vec<_>, _> = list(field, item)?.into_iter().map(block).collect();
    match Scope::cidrs(blocks?) {
        Ok(Scope::Cidrs(blocks)) => Ok(Arc::new(blocks)),
        _ => Err(wrong(field, allowed)),
    }
}
