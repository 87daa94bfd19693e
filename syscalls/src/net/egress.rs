//! `net.egress`: sends a payload by a route that the operator has named.

use std::{collections::BTreeMap, sync::Arc};

use syscap_format::{
    Canonical, Cidrs, EffectClass, Item, Label, Manifest, Name, ObligationKind, Param, ParamType,
    Reason, Refused, Resource, ToolId,
};
use syscap_kernel::{Demand, Demands, Permit, Plan, Ran, Request, Tool};

use super::method::Method;
use super::names::{NET_EGRESS, PURPOSE_DIMENSION, ROUTE_DIMENSION};
use super::parcel::Parcel;
use super::parts::{Network, USER_AGENT};
use super::request::{REQUEST_BYTES_MAX, bad, body};
use super::settings::{
    self, Placed, Settings, SettingsError, Spot, TIMEOUT_MS_MAX, Through, entries, text, unknown,
    wrong,
};
use super::target::Target;

/// Characters of the answer that are given back where a route doesn't say.
const ANSWER_CHARS: usize = 2_000;
/// Most routes.
const ROUTES_MAX: usize = 256;

/// One route: where to, and how.
#[derive(Clone)]
struct Route {
    target: Target,
    method: Method,
    headers: Vec<(String, String)>,
    media: Option<String>,
    secrets: Vec<Placed>,
    addresses: Option<Arc<Cidrs>>,
    bytes_max: u64,
    timeout_ms: u64,
}

/// Its settings.
struct Routes {
    all: BTreeMap<String, Route>,
    label: Label,
    through: Through,
}

impl Routes {
    fn none() -> Self {
        let Settings { through, label, .. } = Settings::standard();
        Self { all: BTreeMap::new(), label, through }
    }

    fn read(item: Item<'_>) -> Result<Self, SettingsError> {
        let mut routes = Self::none();
        for (key, value) in entries(item, "settings")? {
            match key {
                "template" if value.as_text() == Some(NET_EGRESS) => {}
                "template" => return Err(wrong(key, NET_EGRESS)),
                "routes" => {
                    let all = entries(value, key)?;
                    if all.len() > ROUTES_MAX {
                        return Err(wrong(key, &format!("at most {ROUTES_MAX}")));
                    }
                    for (name, route) in all {
                        let at = format!("routes.{name}");
                        Name::new(name).map_err(|_| wrong(&at, "a shorter name"))?;
                        routes.all.insert(name.to_owned(), Route::read(&at, route)?);
                    }
                }
                "confidentiality" => routes.label = settings::label(key, value)?,
                "roots" => routes.through.trust = settings::trust(key, value)?,
                "proxy" => routes.through.proxy = Some(settings::proxy_of(key, value)?),
                _ => {
                    let known = ["template", "routes", "confidentiality", "roots", "proxy"];
                    return Err(unknown(key, &known));
                }
            }
        }
        Ok(routes)
    }
}

impl Route {
    fn read(at: &str, item: Item<'_>) -> Result<Self, SettingsError> {
        let url = item.get("url").ok_or_else(|| wrong(at, "a route with its `url`"))?;
        let mut route = Self {
            target: settings::url(&format!("{at}.url"), url)?,
            method: Method::Post,
            headers: Vec::new(),
            media: None,
            secrets: Vec::new(),
            addresses: None,
            bytes_max: REQUEST_BYTES_MAX,
            timeout_ms: settings::TIMEOUT_MS,
        };
        for (key, value) in entries(item, at)? {
            let place = format!("{at}.{key}");
            match key {
                "url" => {}
                "method" => route.method = settings::method(&place, value)?,
                "headers" => route.headers = settings::headers(&place, value)?,
                "content_type" => {
                    let media = text(&place, value)?;
                    let fine = super::headers::is_value(media);
                    let media = Some(media.to_owned()).filter(|_| fine);
                    route.media = Some(media.ok_or_else(|| wrong(&place, "a media type"))?);
                }
                "secrets" => route.secrets = settings::placed(&place, value)?,
                "addresses" => route.addresses = Some(settings::addresses(&place, value)?),
                "max_bytes" => {
                    route.bytes_max = settings::within(&place, value, REQUEST_BYTES_MAX)?;
                }
                "timeout_ms" => {
                    route.timeout_ms = settings::within(&place, value, TIMEOUT_MS_MAX)?;
                }
                _ => {
                    let known = [
                        "url",
                        "method",
                        "headers",
                        "content_type",
                        "secrets",
                        "addresses",
                        "max_bytes",
                        "timeout_ms",
                    ];
                    return Err(unknown(&place, &known));
                }
            }
        }
        if route.method.is_safe() {
            return Err(wrong(&format!("{at}.method"), "POST, PUT, PATCH or DELETE"));
        }
        let clash = |placed: &Placed| match &placed.spot {
            Spot::Header(name, _) => route.headers.iter().any(|(known, _)| known == name),
            Spot::Query(name) => route.target.queries(name),
        };
        if route.secrets.iter().any(clash) {
            return Err(wrong(&format!("{at}.secrets"), "places that nothing else has"));
        }
        Ok(route)
    }
}

/// `net.egress`.
pub struct NetEgress {
    manifest: Manifest,
    routes: Routes,
    network: Network,
}

impl NetEgress {
    pub(super) fn standard(network: &Network) -> Option<Self> {
        let routes = Routes::none();
        let manifest = manifest(ToolId::new(NET_EGRESS)?, &routes);
        Some(Self { manifest, routes, network: network.clone() })
    }

    pub(super) fn manifest_of(
        tool: ToolId,
        settings: Canonical,
    ) -> Result<Manifest, SettingsError> {
        Ok(manifest(tool, &Routes::read(settings.item())?).set_to(settings))
    }

    pub(super) fn of(manifest: &Manifest, network: &Network) -> Result<Self, SettingsError> {
        let routes = match &manifest.settings {
            Some(settings) => Routes::read(settings.item())?,
            None => Routes::none(),
        };
        Ok(Self { manifest: manifest.clone(), routes, network: network.clone() })
    }
}

pub(super) fn unset(tool: ToolId) -> Manifest {
    manifest(tool, &Routes::none())
}

fn manifest(tool: ToolId, routes: &Routes) -> Manifest {
    let payload = "What is sent: text, bytes, or what is sent as JSON; an earlier result by $ref.";
    Manifest::new(tool, EffectClass::ExternalWrite)
        .described("Send something out", "Sends a payload by a named route, for a named purpose.")
        .param(Param::required("route", ParamType::Text, "A route that the operator has set."))
        .param(Param::required("purpose", ParamType::Text, "What it is sent for."))
        .param(Param::required("payload_ref", ParamType::Any, payload))
        .needs(ROUTE_DIMENSION)
        .needs(PURPOSE_DIMENSION)
        .honours(ObligationKind::ResultCap)
        .labelled(routes.label)
}

impl Tool for NetEgress {
    type Plan = EgressPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<EgressPlan, Refused> {
        let demand = |dimension, argument| {
            let text = request.args.get(argument).and_then(Item::as_text).unwrap_or_default();
            let name = Name::new(text).map_err(|_| bad(argument, text, "a name"))?;
            Ok::<_, Refused>(Demand { dimension, resource: Resource::Name(name), argument })
        };
        let resources =
            vec![demand(ROUTE_DIMENSION, "route")?, demand(PURPOSE_DIMENSION, "purpose")?];
        let named = request.args.get("route").and_then(Item::as_text).unwrap_or_default();
        // Only to who may use it is it said whether there is such a route.
        let permitted = request.grant.scope(ROUTE_DIMENSION);
        let permitted = permitted
            .is_some_and(|scope| resources.first().is_some_and(|d| scope.permits(&d.resource)));
        let Some(route) = self.routes.all.get(named).filter(|_| permitted) else {
            let refused = Refused::new(Reason::OutOfScope).field("route").got(named);
            let known = self.routes.all.keys().filter(|name| {
                let scope = request.grant.scope(ROUTE_DIMENSION);
                let name = Name::new(name).map(Resource::Name);
                scope.is_some_and(|scope| name.is_ok_and(|name| scope.permits(&name)))
            });
            let known: Vec<&str> = known.map(String::as_str).collect();
            let said = match known.is_empty() {
                true => "nothing: an operator has set no route that this token grants".to_owned(),
                false => format!("one of: {}", known.join(", ")),
            };
            return Err(refused.allowed(&said));
        };
        let payload = body(request.args.get("payload_ref"))?;
        let (payload, media) = payload.ok_or_else(|| bad("payload_ref", "null", "a payload"))?;
        if u64::try_from(payload.len()).unwrap_or(u64::MAX) > route.bytes_max {
            let allowed = format!("at most {} bytes", route.bytes_max);
            return Err(bad("payload_ref", "a longer payload", &allowed));
        }
        let mut headers = route.headers.clone();
        let mut add = |name: &str, value: &str| {
            if headers.iter().all(|(known, _)| known != name) {
                headers.push((name.to_owned(), value.to_owned()));
            }
        };
        add("content-type", route.media.as_deref().unwrap_or(media));
        add("user-agent", USER_AGENT);
        let settings = Settings { through: self.routes.through.clone(), ..Settings::standard() };
        let mut parcel = Parcel::of(&settings, route.target.clone(), &self.network, request.agent);
        (parcel.method, parcel.headers, parcel.body) = (route.method, headers, Some(payload));
        parcel.secrets.clone_from(&route.secrets);
        parcel.granted.clone_from(&route.addresses);
        parcel.granted_by = "what `addresses` of the route names, which an operator sets";
        (parcel.timeout_ms, parcel.response_chars) = (route.timeout_ms, ANSWER_CHARS);
        let demands = Demands { resources, hold: parcel.uses() };
        Ok(EgressPlan { demands, parcel })
    }
}

/// A planned `net.egress`.
pub struct EgressPlan {
    demands: Demands,
    parcel: Parcel,
}

impl Plan for EgressPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        self.parcel.deliver(permit)
    }
}
