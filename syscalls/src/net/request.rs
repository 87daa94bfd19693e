//! `http_request`: the template, and the tools that operators make of it.

use std::sync::Arc;

use syscap_format::{
    Canonical, Cidrs, EffectClass, Item, ItemKind, Manifest, Name, ObligationKind, Param,
    ParamType, Reason, Refused, Resource, Rights, Scope, ToolGrant, ToolId, json,
};
use syscap_kernel::{Demand, Demands, Permit, Plan, Ran, Request, Tool};

use super::headers::{FIELDS_MAX, is_anothers, is_query, is_value, name, same};
use super::method::Method;
use super::names::{
    ADDRESS_DIMENSION, HOST_DIMENSION, HTTP_REQUEST, PORT_DIMENSION, SCHEME_DIMENSION,
    URL_PATH_DIMENSION,
};
use super::parcel::Parcel;
use super::parts::{Network, USER_AGENT};
use super::settings::{Settings, SettingsError, Spot};
use super::target::{Place, Target, UrlFault};

/// Longest body of a request, in bytes.
pub const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// `http_request`, or a tool that an operator made of it: one request to one server, and its
/// answer. No redirect is followed.
pub struct HttpRequest {
    manifest: Manifest,
    settings: Settings,
    network: Network,
}

impl HttpRequest {
    pub(super) fn standard(network: &Network) -> Option<Self> {
        let settings = Settings::standard();
        let manifest = manifest(ToolId::new(HTTP_REQUEST)?, &settings);
        Some(Self { manifest, settings, network: network.clone() })
    }

    /// The manifest of a tool that is set so.
    pub(super) fn manifest_of(
        tool: ToolId,
        settings: Canonical,
    ) -> Result<Manifest, SettingsError> {
        Ok(manifest(tool, &Settings::read(settings.item())?).set_to(settings))
    }

    /// The tool that a manifest on record is of.
    pub(super) fn of(manifest: &Manifest, network: &Network) -> Result<Self, SettingsError> {
        let settings = match &manifest.settings {
            Some(settings) => Settings::read(settings.item())?,
            None => Settings::standard(),
        };
        Ok(Self { manifest: manifest.clone(), settings, network: network.clone() })
    }
}

pub(super) fn unset(tool: ToolId) -> Manifest {
    manifest(tool, &Settings::standard())
}

fn manifest(tool: ToolId, settings: &Settings) -> Manifest {
    let is_safe = settings.methods.iter().all(|method| method.is_safe());
    let effect = if is_safe { EffectClass::ExternalRead } else { EffectClass::ExternalWrite };
    let methods: Vec<&str> = settings.methods.iter().map(|method| method.name()).collect();
    let methods = format!("One of: {}.", methods.join(", "));
    let path = match &settings.base {
        Some(base) => format!("A path below {}, or a whole URL.", base.as_str()),
        None => "A whole URL.".to_owned(),
    };
    let title = settings.title.as_deref().unwrap_or("Request a URL");
    let said = "Makes one HTTP request and gives the answer. Redirects are not followed.";
    let described = settings.description.as_deref().unwrap_or(said);
    // Host and port say little of what a request that writes does: so no set of calls is approved.
    let method = if is_safe { ParamType::Text } else { ParamType::Code };
    let manifest = Manifest::new(tool, effect);
    let manifest = if settings.by_path { manifest.needs(URL_PATH_DIMENSION) } else { manifest };
    manifest
        .described(title, described)
        .param(Param::optional("method", method, &methods))
        .param(Param::optional("url", ParamType::Text, "A whole URL."))
        .param(Param::optional("path", ParamType::Text, &path))
        .param(Param::optional("headers", ParamType::Map, "Headers, as texts."))
        .param(Param::optional("query", ParamType::Map, "The query, as texts."))
        .param(Param::optional("body", ParamType::Any, "Text, or what is sent as JSON."))
        .needs(HOST_DIMENSION)
        .honours(ObligationKind::ResultCap)
        .honours(ObligationKind::ReadOnly)
        .labelled(settings.label)
}

impl Tool for HttpRequest {
    type Plan = HttpPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<HttpPlan, Refused> {
        let settings = &self.settings;
        if !settings.agents.is_empty() && !settings.agents.contains(request.agent) {
            let refused = Refused::new(Reason::NotGranted).field("tool_id");
            return Err(refused.got(self.manifest.tool.as_str()));
        }
        let text = |name| request.args.get(name).and_then(Item::as_text);
        let method = method(settings, text("method"))?;
        let target = target(settings, text("url"), text("path"))?;
        let target = queried(settings, &target, request.args.get("query"))?;
        let (mut headers, body) =
            (headers(settings, request.args.get("headers"))?, body(request.args.get("body"))?);
        if method.is_safe() && body.is_some() {
            return Err(bad("body", "a body", "none, for a request that only reads"));
        }
        let (body, media) = body.map_or((None, None), |(body, media)| (Some(body), Some(media)));
        if let Some(media) = media.filter(|_| !has(&headers, "content-type")) {
            headers.push(("content-type".to_owned(), media.to_owned()));
        }
        if !has(&headers, "user-agent") {
            headers.push(("user-agent".to_owned(), USER_AGENT.to_owned()));
        }
        let mut resources = resources(&target)?;
        let needs = if method.is_safe() { Rights::READ } else { Rights::WRITE };
        let described = target.path().map(|path| {
            let (dimension, resource) = (URL_PATH_DIMENSION, Resource::Path { path, needs });
            Demand { dimension, resource, argument: URL_PATH_DIMENSION }
        });
        if settings.by_path {
            let allowed = "a path that servers read in one way only";
            let field = if request.args.get("path").is_some() { "path" } else { "url" };
            let refused = || bad(field, target.as_str(), allowed);
            resources.push(described.clone().ok_or_else(refused)?);
        }
        let mut parcel = Parcel::of(settings, target, &self.network, request.agent);
        (parcel.method, parcel.headers, parcel.body) = (method, headers, body);
        parcel.granted = granted(request.grant);
        let demands = Demands { resources, hold: parcel.uses() };
        Ok(HttpPlan { demands, described, parcel })
    }
}

pub(super) fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

fn method(settings: &Settings, text: Option<&str>) -> Result<Method, Refused> {
    let Some(text) = text else { return Ok(settings.default_method) };
    let found = Method::named(text).filter(|method| settings.methods.contains(method));
    let names: Vec<&str> = settings.methods.iter().map(|method| method.name()).collect();
    found.ok_or_else(|| bad("method", text, &format!("one of: {}", names.join(", "))))
}

/// The target of `url` or `path`. A path with or without a slash before it is below the base.
fn target(settings: &Settings, url: Option<&str>, path: Option<&str>) -> Result<Target, Refused> {
    let (field, text) = match (url, path) {
        (Some(url), None) => ("url", url),
        (None, Some(path)) => ("path", path),
        (None, None) => {
            let base = settings.base.clone();
            return base.ok_or_else(|| Refused::new(Reason::MissingArgument).field("url"));
        }
        (Some(_), Some(path)) => return Err(bad("path", path, "nothing, where `url` is given")),
    };
    let is_whole = text.get(..8).unwrap_or(text).to_ascii_lowercase();
    let is_whole = is_whole.starts_with("http://") || is_whole.starts_with("https://");
    let found = match (&settings.base, is_whole) {
        (Some(base), true) if !settings.anywhere => match Target::absolute(text) {
            Ok(found) if !base.holds(&found) => {
                return Err(bad(field, text, &format!("a URL below {}", base.as_str())));
            }
            found => found,
        },
        (_, true) => Target::absolute(text),
        (Some(base), false) if field == "path" && !text.starts_with("//") => {
            base.below(text.strip_prefix('/').unwrap_or(text))
        }
        _ => Err(UrlFault::Form),
    };
    found.map_err(|fault| {
        Refused::new(Reason::BadArgument)
            .field(field)
            .got(text)
            .allowed(&format!("what {fault} not"))
    })
}

/// The same with the query: what is set, and what the call says instead or besides.
fn queried(
    settings: &Settings,
    target: &Target,
    given: Option<Item<'_>>,
) -> Result<Target, Refused> {
    let given = texts("query", given)?;
    if let Some((key, value)) = given.iter().find(|(key, value)| !is_query(key, value)) {
        return Err(bad("query", &format!("{key}={value}"), "shorter names and values"));
    }
    let is_secret = |name: &str| {
        let of_query = |spot: &Spot| matches!(spot, Spot::Query(known) if known == name);
        settings.secrets.iter().any(|placed| of_query(&placed.spot))
    };
    let named = settings.secrets.iter().find_map(|placed| match &placed.spot {
        Spot::Query(name) if target.queries(name) => Some(name.as_str()),
        _ => None,
    });
    if let Some(name) = given.iter().map(|(key, _)| *key).find(|key| is_secret(key)).or(named) {
        return Err(bad("query", name, "what is not set by the operator"));
    }
    let is_said = |name: &str| given.iter().any(|(key, _)| *key == name) || target.queries(name);
    let set = settings.query.iter().filter(|(name, _)| !is_said(name));
    let set = set.map(|(name, value)| (name.as_str(), value.as_str()));
    Ok(target.with_query(set.chain(given.iter().copied())))
}

/// The headers that are set, and what the call says instead or besides; case does not matter.
fn headers(settings: &Settings, given: Option<Item<'_>>) -> Result<Vec<(String, String)>, Refused> {
    let mut all: Vec<(String, String)> = Vec::new();
    let is_secret = |name: &str| {
        let of = |spot: &Spot| matches!(spot, Spot::Header(known, _) if same(known) == same(name));
        settings.secrets.iter().any(|placed| of(&placed.spot))
    };
    for (key, value) in texts("headers", given)? {
        let allowed = "headers that are not the connection's own and name no other request, with \
                       values of visible ASCII";
        let name = name(key).filter(|name| is_value(value) && !is_anothers(name));
        let name = name.ok_or_else(|| bad("headers", key, allowed))?;
        if is_secret(&name) {
            return Err(bad("headers", key, "headers that are not set by the operator"));
        }
        if has(&all, &name) {
            return Err(bad("headers", key, "each header once"));
        }
        all.push((name, value.to_owned()));
    }
    let set: Vec<_> = settings.headers.iter().filter(|(name, _)| !has(&all, name)).collect();
    all.extend(set.into_iter().cloned());
    Ok(all)
}

fn has(headers: &[(String, String)], name: &str) -> bool {
    headers.iter().any(|(known, _)| same(known) == same(name))
}

fn texts<'a>(
    field: &'static str,
    given: Option<Item<'a>>,
) -> Result<Vec<(&'a str, &'a str)>, Refused> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(Vec::new()) };
    if given.count() > FIELDS_MAX {
        return Err(bad(field, "more", &format!("at most {FIELDS_MAX}")));
    }
    let text = |(key, value): (&'a str, Item<'a>)| {
        let value = value.as_text().ok_or_else(|| bad(field, key, "texts as values"))?;
        Ok((key, value))
    };
    given.entries().map(text).collect()
}

/// The body's bytes and its media type.
pub(super) fn body(given: Option<Item<'_>>) -> Result<Option<(Vec<u8>, &'static str)>, Refused> {
    let Some(given) = given.filter(|given| !given.is_null()) else { return Ok(None) };
    let (bytes, media) = match given.kind() {
        ItemKind::Text => {
            (given.as_text().unwrap_or_default().as_bytes().to_vec(), "text/plain; charset=utf-8")
        }
        ItemKind::Bytes => {
            let bytes = given.as_byte_string().unwrap_or_default().to_vec();
            (bytes, "application/octet-stream")
        }
        _ => (json::from_data(given).into_bytes(), "application/json"),
    };
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= REQUEST_BYTES_MAX) {
        Ok(Some((bytes, media)))
    } else {
        Err(bad("body", "a longer body", &format!("at most {REQUEST_BYTES_MAX} bytes")))
    }
}

/// The resources that a token must permit: the host, or the address if the URL has one; a port that
/// is not the scheme's own; and a scheme that anybody on the way can read.
pub(crate) fn resources(target: &Target) -> Result<Vec<Demand>, Refused> {
    let (place, dimension) = match target.place() {
        Place::Name(name) => (Resource::Host(name.clone()), HOST_DIMENSION),
        Place::Address(address) => (Resource::Addr(*address), ADDRESS_DIMENSION),
    };
    let mut all = vec![Demand { dimension, resource: place, argument: "url" }];
    let usual = if target.is_secure() { 443 } else { 80 };
    // What a token leaves out permits less, never more: so the usual port can't depend on it.
    if target.port() != usual {
        let resource = Resource::Port(target.port());
        all.push(Demand { dimension: PORT_DIMENSION, resource, argument: "port" });
    }
    if !target.is_secure() {
        let name = Name::new("http").map_err(|_| Refused::new(Reason::Failed))?;
        let resource = Resource::Name(name);
        all.push(Demand { dimension: SCHEME_DIMENSION, resource, argument: "scheme" });
    }
    Ok(all)
}

fn granted(grant: &ToolGrant) -> Option<Arc<Cidrs>> {
    match grant.scope(ADDRESS_DIMENSION) {
        Some(Scope::Cidrs(blocks)) => Some(Arc::new(blocks.clone())),
        _ => None,
    }
}

/// A planned request.
pub struct HttpPlan {
    demands: Demands,
    /// Its path, unless that has more than one reading.
    described: Option<Demand>,
    parcel: Parcel,
}

impl Plan for HttpPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn described(&self) -> Option<&Demand> {
        self.described.as_ref()
    }

    fn effect(&self) -> Option<EffectClass> {
        Some(self.parcel.method.effect())
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        self.parcel.deliver(permit)
    }
}
