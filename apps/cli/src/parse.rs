//! Words of the command line with a form of their own.

use std::time::Duration;

use syscap::format::{
    AgentId, Canonical, Confidentiality, Dimension, EffectClass, FactKey, HomeId, ObjectId,
    PublicKey, Role, Scope, ScopeDimension, Signature, SnapshotId, TEXT_BYTES_MAX,
    TOKEN_LIFE_MS_MAX, ToolId, json,
};
use syscap::launch::Network;
use syscap::policy::Preset;
use syscap::syscalls::beneath::Openers;

use crate::hook::client::Client;

/// Why a word of the command line is not of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadWord {
    #[error("a token is named by 8 to 64 hexadecimal digits of its id, from the first on")]
    Token,
    #[error("an agent is [a-z0-9._-] without a leading dot, parts joined by /")]
    Agent,
    #[error("a root is workspace, shared or another name, perhaps with folders: shared/docs")]
    Root,
    #[error(
        "a token names a root alone: {0}; which folder that is for a tool `syscap tools argument \
         HOME TOOL ARGUMENT path --root {1}` says"
    )]
    RootFolder(String, String),
    #[error("write a duration as 90s, 15m, 1h or 7d, more than nothing")]
    Duration,
    #[error("a token lives 90 days at most")]
    TooLong,
    #[error("write a limit as DIMENSION=AMOUNT, such as calls=100")]
    Limit,
    #[error(
        "write a scope as DIMENSION=VALUE: collection=acme/docs, host=*.example.com, port=443, \
         address=10.1.0.0/16"
    )]
    Scope,
    #[error("an address is no host: write address={0}")]
    HostAddress(std::net::IpAddr),
    #[error("a snapshot's id has 64 hexadecimal digits")]
    Snapshot,
    #[error("a key is goal.NAME or fact.NAME, of [a-z0-9_-]")]
    FactKey,
    #[error("write KEY=JSON, text in quotes: goal.topic='\"bees\"'")]
    Fact,
    #[error("write credits as a number, with six decimals at most: 5, 0.25")]
    Credits,
    #[error("there is no such dimension; there are {}", dimensions())]
    Dimension,
    #[error("a tool is named [a-z][a-z0-9_]*, parts joined by dots: fs.read")]
    Tool,
    #[error("tools are named fs.read, fs.* for all of fs, or *")]
    Tools,
    #[error("a manifest's id has 64 hexadecimal digits")]
    Manifest,
    #[error("there is no such effect class; there are {}", classes())]
    Class,
    #[error("there is no such level; there are public, internal, private, sensitive, secret")]
    Level,
    #[error("there is no such preset; there are {}", presets())]
    Preset,
    #[error("there is no such opener; there are {}", Openers::ALL.map(Openers::name).join(", "))]
    Opener,
    #[error("there is no such role; there are {}", roles())]
    Role,
    #[error("a public key has 64 hexadecimal digits, and is one that can be used")]
    Key,
    #[error("a home's id has 64 hexadecimal digits")]
    Home,
    #[error("a proof has 128 hexadecimal digits")]
    Proof,
    #[error("a reason has 1 to {TEXT_BYTES_MAX} bytes")]
    Why,
    #[error("write a percentage as a number from 0 to 100")]
    Percent,
}

/// Why something is ended.
pub(crate) fn why(text: &str) -> Result<String, BadWord> {
    let fits = (1..=TEXT_BYTES_MAX).contains(&text.len());
    if fits { Ok(text.to_owned()) } else { Err(BadWord::Why) }
}

pub(crate) fn agent(text: &str) -> Result<AgentId, BadWord> {
    AgentId::new(text).ok_or(BadWord::Agent)
}

/// A tool by its id, or as the log shows one that a client runs itself: `claude_code:WebFetch`.
pub(crate) fn tool(text: &str) -> Result<ToolId, BadWord> {
    ToolId::new(text).or_else(|| Client::read(text)).ok_or(BadWord::Tool)
}

/// Tools: one by its name, all whose names begin alike, or all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tools {
    /// The one of this name.
    One(ToolId),
    /// Tools whose names begin so, with a dot at its end.
    Below(String),
    /// All.
    All,
}

impl Tools {
    /// True if a tool of that name is one of them.
    pub(crate) fn include(&self, tool: &str) -> bool {
        match self {
            Self::One(one) => one.as_str() == tool,
            Self::Below(prefix) => tool.starts_with(prefix.as_str()),
            Self::All => true,
        }
    }
}

/// `fs.read`, `fs.*` or `*`.
pub(crate) fn tools(text: &str) -> Result<Tools, BadWord> {
    match text.strip_suffix('*') {
        None => tool(text).map(Tools::One),
        Some("") => Ok(Tools::All),
        Some(prefix) => {
            let name = prefix.strip_suffix('.').ok_or(BadWord::Tools)?;
            tool(name).map_err(|_| BadWord::Tools)?;
            Ok(Tools::Below(prefix.to_owned()))
        }
    }
}

pub(crate) fn role(text: &str) -> Result<Role, BadWord> {
    Role::IN_USE.into_iter().find(|role| role.name() == text).ok_or(BadWord::Role)
}

pub(crate) fn key(text: &str) -> Result<PublicKey, BadWord> {
    let bytes = bytes(text).ok_or(BadWord::Key)?;
    PublicKey::new(bytes).map_err(|_| BadWord::Key)
}

/// A signature that proves that somebody holds a key.
pub(crate) fn proof(text: &str) -> Result<Signature, BadWord> {
    bytes(text).map(Signature::from_bytes).ok_or(BadWord::Proof)
}

/// A home's id.
pub(crate) fn home(text: &str) -> Result<HomeId, BadWord> {
    HomeId::from_hex(text).ok_or(BadWord::Home)
}

/// So many bytes in hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    hex(text)?.try_into().ok()
}

/// Bytes in hexadecimal digits.
pub(crate) fn hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let byte = |pair: &[u8; 2]| {
        let digits = std::str::from_utf8(pair).ok().filter(|_| pair[0] != b'+')?;
        u8::from_str_radix(digits, 16).ok()
    };
    let bytes: Option<Vec<u8>> = pairs.iter().map(byte).collect();
    bytes.filter(|_| rest.is_empty())
}

/// A tool, perhaps with the id of a manifest: `files.read=5d1f..`.
pub(crate) fn definition(text: &str) -> Result<(ToolId, Option<ObjectId>), BadWord> {
    let Some((name, manifest)) = text.split_once('=') else { return Ok((tool(text)?, None)) };
    Ok((tool(name)?, Some(ObjectId::from_hex(manifest).ok_or(BadWord::Manifest)?)))
}

pub(crate) fn class(text: &str) -> Result<EffectClass, BadWord> {
    EffectClass::ALL.iter().copied().find(|class| class.name() == text).ok_or(BadWord::Class)
}

/// How confidential something may be.
pub(crate) fn confidentiality(text: &str) -> Result<Confidentiality, BadWord> {
    let mut all = Confidentiality::ALL.iter().copied();
    all.find(|level| level.name() == text).ok_or(BadWord::Level)
}

pub(crate) fn preset(text: &str) -> Result<Preset, BadWord> {
    Preset::from_name(text).ok_or(BadWord::Preset)
}

/// The file backend.
pub(crate) fn openers(text: &str) -> Result<Openers, BadWord> {
    Openers::named(text).ok_or(BadWord::Opener)
}

/// Whole percents.
pub(crate) fn percent(text: &str) -> Result<u64, BadWord> {
    number(text).filter(|percent| *percent <= 100).ok_or(BadWord::Percent)
}

/// A root, and perhaps folders below it. The root's existence is checked later.
pub(crate) fn root(text: &str) -> Result<String, BadWord> {
    let first = text.split('/').next().unwrap_or_default();
    if let Some((root, _)) = first.split_once('=') {
        return Err(BadWord::RootFolder(root.to_owned(), text.to_owned()));
    }
    let fine = !text.is_empty() && !text.starts_with('/');
    fine.then(|| text.to_owned()).ok_or(BadWord::Root)
}

/// A snapshot's id.
pub(crate) fn snapshot(text: &str) -> Result<SnapshotId, BadWord> {
    SnapshotId::from_hex(text).ok_or(BadWord::Snapshot)
}

/// A key of an agent's state.
pub(crate) fn fact_key(text: &str) -> Result<FactKey, BadWord> {
    FactKey::new(text).ok_or(BadWord::FactKey)
}

/// A key of an agent's state and its value.
pub(crate) fn fact(text: &str) -> Result<(FactKey, Canonical), BadWord> {
    let (key, value) = text.split_once('=').ok_or(BadWord::Fact)?;
    let value = json::to_cbor(value.as_bytes()).map_err(|_| BadWord::Fact)?;
    Ok((fact_key(key)?, value))
}

/// How long a token lives: a number and `s`, `m`, `h` or `d`.
pub(crate) fn life(text: &str) -> Result<Duration, BadWord> {
    match age(text)? {
        life if life > Duration::from_millis(TOKEN_LIFE_MS_MAX) => Err(BadWord::TooLong),
        life => Ok(life),
    }
}

/// How long ago something may have been: written as a life.
pub(crate) fn age(text: &str) -> Result<Duration, BadWord> {
    let unit = text.chars().last().ok_or(BadWord::Duration)?;
    let ms_each: u64 = match unit {
        's' => 1_000,
        'm' => 60_000,
        'h' => 3_600_000,
        'd' => 86_400_000,
        _ => return Err(BadWord::Duration),
    };
    let digits = text.strip_suffix(unit).unwrap_or_default();
    let count = number(digits).ok_or(BadWord::Duration)?;
    match count.saturating_mul(ms_each) {
        0 => Err(BadWord::Duration),
        ms => Ok(Duration::from_millis(ms)),
    }
}

/// How long to wait: written as a life, or `0s` for not at all.
pub(crate) fn span(text: &str) -> Result<Duration, BadWord> {
    if text == "0s" { Ok(Duration::ZERO) } else { age(text) }
}

/// A dimension's limit: `calls=100`.
pub(crate) fn limit(text: &str) -> Result<(Dimension, u64), BadWord> {
    let (name, amount) = text.split_once('=').ok_or(BadWord::Limit)?;
    let amount = number(amount).ok_or(BadWord::Limit)?;
    Ok((Dimension::from_name(name).ok_or(BadWord::Dimension)?, amount))
}

/// The scope of a dimension of a grant: `collection=acme/docs`, `host=*.example.com`.
pub(crate) fn scope(text: &str) -> Result<(String, String), BadWord> {
    let (dimension, value) = text.split_once('=').ok_or(BadWord::Scope)?;
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._-".contains(&b);
    if dimension.is_empty() || !dimension.bytes().all(fine) || dimension == "path" {
        return Err(BadWord::Scope);
    }
    if let ("host", Ok(address)) = (dimension, value.parse()) {
        return Err(BadWord::HostAddress(address));
    }
    // What a host's own tool takes is known only to its manifest.
    let known = ScopeDimension::named(dimension);
    if known.is_some_and(|known| Scope::read(known.kind, &[value]).is_none()) || value.is_empty() {
        return Err(BadWord::Scope);
    }
    Ok((dimension.to_owned(), value.to_owned()))
}

/// Credits, in millionths: digits, and perhaps a point and up to six more.
pub(crate) fn credits(text: &str) -> Result<u64, BadWord> {
    let (whole, rest) = text.split_once('.').unwrap_or((text, "0"));
    let missing = u32::try_from(rest.len()).ok().and_then(|digits| 6_u32.checked_sub(digits));
    let micro = |missing: u32| {
        let rest = number(rest)?.checked_mul(10_u64.checked_pow(missing)?)?;
        number(whole)?.checked_mul(1_000_000)?.checked_add(rest)
    };
    missing.and_then(micro).ok_or(BadWord::Credits)
}

/// Digits only: no sign, no spaces.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

fn dimensions() -> String {
    Dimension::ALL.map(Dimension::name).join(", ")
}

fn classes() -> String {
    EffectClass::ALL.iter().map(|class| class.name()).collect::<Vec<_>>().join(", ")
}

fn roles() -> String {
    Role::IN_USE.map(Role::name).join(", ")
}

fn presets() -> String {
    Preset::ALL.map(Preset::name).join(", ")
}

/// The network that a program reaches.
pub(crate) fn network(name: &str) -> Result<Network, String> {
    match name {
        "none" => Ok(Network::None),
        "loopback" => Ok(Network::Loopback),
        "host" => Ok(Network::Host),
        _ => Err("not a network: none, loopback, host".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_a_number_and_a_unit() {
        for (text, seconds) in [("90s", 90), ("15m", 900), ("1h", 3_600), ("7d", 604_800)] {
            assert_eq!(life(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "s", "1", "-1s", "+1s", "1.5h", " 1h", "1h ", "0s", "1w", "1\u{e9}"] {
            assert_eq!(life(text), Err(BadWord::Duration), "{text}");
        }
        assert_eq!(life("91d"), Err(BadWord::TooLong));
        assert_eq!(life("99999999999999999999d"), Err(BadWord::Duration));
        assert_eq!(life("18446744073709551615d"), Err(BadWord::TooLong));
    }

    #[test]
    fn limits_name_a_dimension() {
        assert_eq!(limit("calls=0"), Ok((Dimension::Calls, 0)));
        assert_eq!(limit("wishes=3"), Err(BadWord::Dimension));
        for text in ["calls", "calls=", "calls=x", "calls=-1", "calls=1=2"] {
            assert_eq!(limit(text), Err(BadWord::Limit), "{text}");
        }
    }

    #[test]
    fn words_of_policies() {
        assert_eq!(preset("read-only"), Ok(Preset::ReadOnly));
        assert_eq!(preset("Standard"), Err(BadWord::Preset));
        assert_eq!(class("local_write"), Ok(EffectClass::LocalWrite));
        assert_eq!(class("write"), Err(BadWord::Class));
        assert_eq!((percent("0"), percent("100")), (Ok(0), Ok(100)));
        for text in ["", "101", "-1", "1.5", "5%", "18446744073709551616"] {
            assert_eq!(percent(text), Err(BadWord::Percent), "{text}");
        }
        assert!(tool("fs.read").is_ok());
        assert_eq!(tool("fs.*"), Err(BadWord::Tool));
        assert_eq!(definition("fs.read").map(|(_, manifest)| manifest), Ok(None));
        let id = "0".repeat(64);
        let (_, manifest) = definition(&format!("fs.read={id}")).unwrap();
        assert_eq!(manifest, ObjectId::from_hex(&id));
        assert_eq!(definition("fs.read="), Err(BadWord::Manifest));
        assert_eq!(definition(&format!("fs.*={id}")), Err(BadWord::Tool));
    }
}
