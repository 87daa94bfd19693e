//! A tool that makes requests, as the console's page shows and changes it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use syscap::format::{Canonical, Item, ItemKind, Manifest, MapBuilder, Seq, ToolId, json};
use syscap::secrets::SecretFiles;
use syscap::syscalls::net::secret::Origin;
use syscap::syscalls::net::target::Target;
use syscap::syscalls::net::{HTTP_REQUEST, NET_EGRESS};
use syscap::{Configured, Home};

use super::{advice, bounded, made, put, secrets_of, taken};
use crate::exit::Failure;
use crate::output::{Object, array, quote, word_of};
use crate::runtime;
use crate::secret::wrong;

/// The fields that the page changes; the others stay as they are.
const FIELDS: [&str; 5] =
    ["base_url", "allowed_methods", "default_headers", "timeout_ms", "max_response_chars"];

/// A tool's settings, and the secrets that they name.
pub(crate) struct Connector {
    home: PathBuf,
    tool: ToolId,
    /// A map, which is empty where the tool is none yet.
    settings: Canonical,
    secrets: Vec<Named>,
    /// What is missing, in words.
    advice: Vec<String>,
}

/// A secret that settings name.
struct Named {
    name: String,
    /// Where it would be sent, if the settings say one place.
    server: Option<Origin>,
    /// Where it may be sent; `None` where it is not set, or can't be opened.
    origins: Option<Vec<String>>,
}

impl Named {
    /// The places of its next value: those of before, and where it would be sent.
    fn places(&self) -> Vec<String> {
        let mut places = self.origins.clone().unwrap_or_default();
        let covers = |place: &String, server: &Origin| {
            let target = Target::absolute(server.as_str()).ok();
            let place = Origin::parse(place);
            place.zip(target).is_some_and(|(place, target)| place.is_of(&target))
        };
        let server = self.server.as_ref();
        let more = server.filter(|server| !places.iter().any(|place| covers(place, server)));
        places.extend(more.map(|server| server.as_str().to_owned()));
        places
    }
}

/// All of them.
pub(crate) fn list_json(home: &Path) -> Result<String, Failure> {
    let log = runtime::look(home)?;
    let all = log.kernel().manifests().filter(|manifest| is_one(manifest));
    Ok(array(all.map(|manifest| {
        let settings = manifest.settings.as_ref().map(|settings| settings.item());
        let base = settings.and_then(|settings| settings.get("base_url")?.as_text());
        let object = Object::new()
            .shown("tool", &manifest.tool)
            .text("title", &manifest.title)
            .text("effect", manifest.effect.name());
        base.iter().fold(object, |object, base| object.text("base_url", base)).finish()
    })))
}

fn is_one(manifest: &Manifest) -> bool {
    manifest.settings.is_some() || [HTTP_REQUEST, NET_EGRESS].contains(&manifest.tool.as_str())
}

impl Connector {
    /// A tool of that name; a new one where there is none.
    pub(crate) fn of(home: &Path, tool: &ToolId) -> Result<Self, Failure> {
        let log = runtime::look(home)?;
        let found = log.kernel().manifests().find(|manifest| manifest.tool == *tool);
        if found.is_some_and(|found| !is_one(found)) {
            return Err(taken(tool.as_str()));
        }
        let settings = found.and_then(|found| found.settings.clone());
        let settings = settings.unwrap_or_else(|| MapBuilder::new().finish());
        let known = SecretFiles::of(&Home::at(home)).list()?;
        let named = secrets_of(settings.item()).map(|(server, name)| Named {
            name: name.to_owned(),
            server: server.and_then(Origin::parse),
            origins: known.iter().find(|one| one.name == name).and_then(|one| one.origins.clone()),
        });
        let secrets = named.collect();
        let advice = advice(home, log.kernel().policy_hash(), tool, &settings)?;
        Ok(Self { home: home.to_path_buf(), tool: tool.clone(), settings, secrets, advice })
    }

    /// For the page.
    pub(crate) fn json(&self) -> String {
        let secrets = self.secrets.iter().map(|secret| {
            let Named { name, server, origins } = secret;
            let texts = |all: &[String]| array(all.iter().map(|one| quote(one)));
            let object = Object::new()
                .text("name", name)
                .flag("is_set", origins.is_some())
                .json("origins", &texts(origins.as_deref().unwrap_or_default()))
                .json("places", &texts(&secret.places()));
            server.iter().fold(object, |it, server| it.text("server", server.as_str())).finish()
        });
        let (home, tool) = (word_of(&self.home), &self.tool);
        let fields = self.fields().iter().map(|field| quote(field));
        Object::new()
            .shown("tool", tool)
            .json("fields", &array(fields))
            .json("settings", &json::from_data(self.settings.item()))
            .json("secrets", &array(secrets))
            .json("advice", &array(self.advice.iter().map(|line| quote(line))))
            .text("command", &format!("syscap http set {home} {tool} FILE"))
            .finish()
    }

    /// The fields that the page may change: of the gateway for other programs there are none.
    fn fields(&self) -> &'static [&'static str] {
        if self.tool.as_str() == NET_EGRESS { &[] } else { &FIELDS }
    }

    /// The manifest with these fields changed, null taking one away, and what differs in words.
    pub(crate) fn with(&self, changes: &str) -> Result<(Manifest, Vec<String>), Failure> {
        let bad = |why: &str| Failure::Usage { what: "changes".to_owned(), advice: why.to_owned() };
        let changes = json::to_data(changes.as_bytes()).map_err(|error| bad(&error.to_string()))?;
        let changes = changes.item();
        if !changes.entries().all(|(name, _)| self.fields().contains(&name)) {
            return Err(bad("may name base URL, methods, headers and limits alone"));
        }
        let is_kept = |name: &str| changes.get(name).is_none();
        let kept = self.settings.item().entries().filter(|(name, _)| is_kept(name));
        let given = changes.entries().filter(|(_, value)| value.kind() != ItemKind::Null);
        let all = kept.chain(given);
        let settings = all.fold(MapBuilder::new(), |map, (name, value)| map.item(name, value));
        let settings = bounded(settings.finish());
        let lines = differences(self.settings.item(), settings.item());
        Ok((made(self.tool.clone(), settings, "the settings")?, lines))
    }

    /// The places that the next value of a secret may be sent to, if the settings name it and say
    /// where.
    pub(crate) fn places(&self, secret: &str) -> Option<Vec<String>> {
        let named = self.secrets.iter().find(|named| named.name == secret)?;
        Some(named.places()).filter(|places| !places.is_empty())
    }

    /// Puts a manifest on record.
    pub(crate) fn record(&self, manifest: Manifest) -> Result<Seq, Failure> {
        let change = Configured { set: vec![manifest], unset: Vec::new() };
        put(&self.home, &change)
    }

    /// Sets a secret to what the person types at the terminal.
    pub(crate) fn set_secret(&self, name: &str, places: &[String]) -> Result<(), Failure> {
        let value = crate::secret::value(name)?;
        let places: Vec<&str> = places.iter().map(String::as_str).collect();
        SecretFiles::of(&Home::at(&self.home)).set(name, &value, &places).map_err(wrong)
    }
}

/// A line for each field that differs.
fn differences(old: Item<'_>, new: Item<'_>) -> Vec<String> {
    let names: BTreeSet<&str> = old.entries().chain(new.entries()).map(|(name, _)| name).collect();
    let text = |item: Option<Item<'_>>| item.map_or_else(|| "none".to_owned(), json::from_data);
    let lines = names.into_iter().filter_map(|name| {
        let (was, is) = (text(old.get(name)), text(new.get(name)));
        (was != is).then(|| format!("{name} {is}, was {was}"))
    });
    lines.collect()
}
