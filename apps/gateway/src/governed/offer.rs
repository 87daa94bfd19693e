//! Offers the servers' tools to the kernel, and learns how they stand.
//!
//! The record of a tool decides. A server can't change it: another definition is refused until it
//! is accepted. The operator can: what is said on the command line of class and limits is put on
//! record, and what is not said stays.

use std::{collections::BTreeMap, sync::Arc};

use syscap::format::{EffectClass, Label, Manifest, ObjectId, ToolId};
use syscap::provide::{Offer, Provider, Standing};
use syscap::syscalls::stated::{self, Stated, Unlimited, carried};
use tokio::runtime::Handle;

use crate::gateway::Gateway;
use crate::governed::catalog::{Catalog, ServerTool};
use crate::governed::effect::class;
use crate::governed::kernelside::{Accepted, Unreached, blocking};
use crate::governed::manifest::{Definition, Limits};
use crate::governed::names;
use crate::governed::provider::Runs;
use crate::say::say;
use crate::upstream::method::Method;
use crate::upstream::starting;

/// A tool of a server, by the server's place.
type ListedTools = BTreeMap<ToolId, (usize, Definition)>;

/// Offers all tools as they are listed, and takes back what is listed no more.
pub(crate) async fn offer(gateway: &Arc<Gateway>) -> Result<(), Unreached> {
    let _one = gateway.offering.lock().await;
    let (listed, before) = (listed(gateway), gateway.catalog());
    let gone = before.all().keys().filter(|id| !listed.contains_key(*id));
    let gone: Vec<ToolId> = gone.cloned().collect();
    if !gone.is_empty() {
        let kernel = Arc::clone(&gateway.kernel);
        blocking(move || kernel.withdraw(&gone)).await??;
    }
    let manifests =
        listed.iter().map(|(id, (place, tool))| manifest(gateway, id, *place, tool, None));
    let mut offers: BTreeMap<ToolId, Offer> = BTreeMap::new();
    for offer in provide(gateway, &listed, manifests.collect()).await? {
        offers.insert(offer.tool().clone(), offer);
    }
    for (id, offer) in restate(gateway, &listed, &offers).await? {
        offers.insert(id, offer);
    }
    let mut offered = BTreeMap::new();
    for (id, offer) in offers {
        let Some((server, definition)) = listed.get(&id) else { continue };
        let (standing, effect) = (offer.standing, offer.manifest.effect);
        if before.offered(&id).is_none_or(|known| known.standing != standing) {
            tell(&id, standing);
        }
        let definition = definition.clone();
        let trusted = offer.manifest.label == Label::PUBLIC;
        let server = *server;
        let set = Stated::of(&offer.manifest).is_ok_and(|stated| stated.class.is_some());
        let unlimited = Unlimited::of(&offer.manifest).len();
        offered.insert(
            id,
            ServerTool { server, definition, effect, set, trusted, unlimited, standing },
        );
    }
    // What no client has seen yet may have another name.
    let before = if gateway.opened.is_cancelled() { &*before } else { &Catalog::default() };
    name(gateway, offered, before).await
}

/// Names all tools anew, now that it is known which of the home's own are granted.
pub(crate) async fn rename(gateway: &Arc<Gateway>) -> Result<(), Unreached> {
    let _one = gateway.offering.lock().await;
    let offered = gateway.catalog().all().clone();
    name(gateway, offered, &Catalog::default()).await
}

async fn name(
    gateway: &Arc<Gateway>,
    offered: BTreeMap<ToolId, ServerTool>,
    before: &Catalog,
) -> Result<(), Unreached> {
    let kernel = Arc::clone(&gateway.kernel);
    let built_in = blocking(move || kernel.built_in()).await??;
    let prefixes: Vec<String> = (0..gateway.servers.len()).map(|n| gateway.prefix(n)).collect();
    let starting = starting::tools(gateway).await?;
    let catalog = Catalog::new(offered, built_in, &gateway.granted(), &prefixes, before);
    gateway.set_catalog(catalog.with_starting(starting));
    Ok(())
}

async fn provide(
    gateway: &Arc<Gateway>,
    listed: &ListedTools,
    manifests: Vec<Manifest>,
) -> Result<Vec<Offer>, Unreached> {
    if manifests.is_empty() {
        return Ok(Vec::new());
    }
    let kernel = Arc::clone(&gateway.kernel);
    let servers = listed.iter().map(|(tool, (place, _))| (tool.clone(), *place)).collect();
    let (gateway, handle) = (Arc::clone(gateway), Handle::current());
    let runs: Arc<dyn Provider> = Arc::new(Runs { gateway, handle, servers });
    blocking(move || kernel.provide(manifests, runs)).await?
}

/// Puts on record what the operator says otherwise of a tool whose definition is the one there.
async fn restate(
    gateway: &Arc<Gateway>,
    listed: &ListedTools,
    offers: &BTreeMap<ToolId, Offer>,
) -> Result<BTreeMap<ToolId, Offer>, Unreached> {
    let (mut plain, mut other, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for offer in offers.values().filter(|offer| offer.standing == Standing::Ready) {
        let Some((place, tool)) = listed.get(offer.tool()) else { continue };
        // What came on record after it was said is the newer word.
        if !gateway.is_said_first(offer.tool(), tool.hash) {
            continue;
        }
        let said = manifest(gateway, offer.tool(), *place, tool, Some(&offer.manifest));
        let whole = carried(said.clone(), &offer.manifest);
        if said.effect != whole.effect && said.effect != stated::plain(&offer.manifest).effect {
            say(&format!(
                "{}: it counts as {}, by `syscap tools class`, which stands over what the command \
                 line says; --unset ends that",
                whole.tool, whole.effect
            ));
        }
        if whole != offer.manifest {
            // A pin from before definitions were kept is completed: its hash is the same.
            let mut kept = offer.manifest.clone();
            kept.definition_bytes.clone_from(&whole.definition_bytes);
            told.extend((whole != kept).then(|| whole.clone()));
            plain.push(said);
            other.push(whole);
        }
    }
    if other.is_empty() {
        return Ok(BTreeMap::new());
    }
    let ids: Vec<(ToolId, ObjectId)> =
        other.iter().map(|manifest| (manifest.tool.clone(), manifest.id())).collect();
    provide(gateway, listed, plain).await?;
    let kernel = Arc::clone(&gateway.kernel);
    if blocking(move || kernel.accept(&ids)).await?? == Accepted::Waits {
        if told.is_empty() {
            return Ok(BTreeMap::new());
        }
        say("what is said otherwise of tools on record waits for an operator, whose key signs \
             nothing here without a person: `syscap tools accept HOME TOOL` puts it on record \
             while this runs; until then what is on record counts");
        return Ok(BTreeMap::new());
    }
    for manifest in &told {
        let results = if manifest.label == Label::PUBLIC { "trusted" } else { "untrusted" };
        say(&format!(
            "{}: on record as {} with {results} results from now on",
            manifest.tool,
            manifest.effect.name()
        ));
    }
    let ready =
        |manifest: Manifest| (manifest.tool.clone(), Offer { manifest, standing: Standing::Ready });
    Ok(other.into_iter().map(ready).collect())
}

/// All that can be called of every server, by the ids.
fn listed(gateway: &Gateway) -> ListedTools {
    let mut listed = BTreeMap::new();
    for (place, server) in gateway.servers.iter().enumerate() {
        let definitions = server.definitions();
        let names = |method: Method| {
            let of = definitions.iter().filter(move |definition| definition.method == method);
            of.map(Definition::name)
        };
        let tools = names::ids(&server.name, names(Method::Tool));
        let below = format!("{}.{}", server.name, Method::Prompt.id());
        let prompts = names::ids(&below, names(Method::Prompt));
        for definition in &definitions {
            let id = match definition.method {
                Method::Tool => tools.get(definition.name()).cloned(),
                Method::Prompt => prompts.get(definition.name()).cloned(),
                single => names::single(&server.name, single),
            };
            match id {
                Some(id) => {
                    listed.insert(id, (place, definition.clone()));
                }
                None => say(&format!(
                    "server {}: {:?} is not offered: its name can't be told from another",
                    server.name,
                    definition.name()
                )),
            }
        }
    }
    listed
}

/// The manifest of a tool: as the operator says, else as on record, else with the most care.
fn manifest(
    gateway: &Gateway,
    id: &ToolId,
    place: usize,
    definition: &Definition,
    recorded: Option<&Manifest>,
) -> Manifest {
    // What an operator has stated of it is put to it again by whoever puts it on record.
    let recorded = recorded.map(stated::plain);
    let recorded = recorded.as_ref();
    let visible = format!("{}{}", gateway.prefix(place), definition.name());
    let called = [definition.name(), &visible, id.as_str()];
    let options = &gateway.options;
    let said = || class(&called, &options.classes, options.hints, definition.annotations());
    let said = definition.method.class().or_else(said);
    let effect = said.or(recorded.map(|recorded| recorded.effect));
    let timeout = options.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let limits = Limits {
        wall_ms: timeout.or(recorded.and_then(|recorded| recorded.wall_ms_max)),
        result_bytes: options.result_bytes.or(recorded.map(|recorded| recorded.result_bytes_max)),
    };
    let manifest =
        definition.manifest(id.clone(), effect.unwrap_or(EffectClass::ExternalWrite), limits);
    match recorded {
        // What a server asks, no operator has vouched for.
        _ if definition.method.is_question() => manifest,
        _ if options.trust_results => manifest.labelled(Label::PUBLIC),
        Some(recorded) => manifest.labelled(recorded.label),
        None => manifest,
    }
}

fn tell(tool: &ToolId, standing: Standing) {
    let why = match standing {
        Standing::Ready => return,
        Standing::Changed => {
            "its definition is not the one on record; it is refused until an operator accepts it"
        }
        Standing::Taken => "the home has a tool of that name; it is not offered",
        Standing::New => {
            "it is not on record, and the operator's key signs nothing here without a person: \
             `syscap tools accept HOME TOOL` puts it there while this runs"
        }
    };
    say(&format!("{tool}: {why}"));
}
