//! A look at servers before anything of them is on record: what they offer, and what each tool is
//! proposed to count as, and why.

use std::{collections::BTreeMap, sync::Arc};

use rmcp::model::{ClientCapabilities, ToolAnnotations};
use syscap::format::{EffectClass, Manifest, ToolId};
use tokio::runtime::Builder;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::client::capabilities::{Able, WireKind};
use crate::error::Error;
use crate::governed::effect::{self, Because, ClassRule, Hints};
use crate::governed::manifest::{Definition, Limits};
use crate::governed::names;
use crate::options::Options;
use crate::upstream::lists::ListMethod;
use crate::upstream::notice::ChangedList;
use crate::upstream::server::McpServer;
use crate::upstream::view::Starter;
use crate::upstream::{Connection, tools};

/// A tool as a server offers it, and what it is proposed to count as.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Proposed {
    /// Its manifest as it would be offered, of that class. Its text is the server's word.
    pub manifest: Manifest,
    /// Why of that class.
    pub because: Because,
    /// The server's own statement about it: `readOnlyHint: true, openWorldHint: false`; nothing,
    /// where it says nothing.
    pub hints: String,
    /// As the server names it.
    name: String,
    annotations: Option<ToolAnnotations>,
}

/// Starts the servers, has them list their tools, and ends them.
///
/// With [`Hints::Confirmed`](crate::Hints::Confirmed) what the servers say of their tools is taken
/// as it is, and nothing is guessed by a name.
///
/// # Errors
/// [`Error::Name`], [`Error::Unsafe`], [`Error::Threads`]; [`Error::Begin`] where a server can't be started, or does
/// not list its tools.
pub fn survey(options: &Options) -> Result<Vec<Proposed>, Error> {
    if let Some(wrong) = options.servers.iter().find(|server| !names::is_server(&server.name)) {
        return Err(Error::Name(wrong.name.clone()));
    }
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(Error::Threads)?;
    let starter = Arc::new(Starter::new(options));
    starter.check_all(&options.servers)?;
    runtime.block_on(async {
        let mut all = BTreeMap::new();
        for command in &options.servers {
            let server = McpServer::new(command.clone(), options.passed(), options.servers.len());
            for (id, definition) in listed(&starter, &server).await? {
                all.insert(id.clone(), proposed(options, id, &definition));
            }
        }
        Ok(all.into_values().collect())
    })
}

/// The tools that a server lists, by their ids on record. It has ended by then.
async fn listed(
    starter: &Arc<Starter>,
    server: &McpServer,
) -> Result<BTreeMap<ToolId, Definition>, Error> {
    let begin = |why: &dyn std::fmt::Display| Error::Begin(format!("{}: {why}", server.name));
    let (tasks, closing) = (TaskTracker::new(), CancellationToken::new());
    let able = Able::new(WireKind::Session, ClientCapabilities::default());
    let opened = Connection::open(starter, &server.command, &tasks, &able).await;
    let (connection, notices, questions) = opened.map_err(|error| begin(&error))?;
    let listed = tools::list_of(server, &connection, ListMethod::Tools, &closing).await;
    let definitions =
        connection.listing(ChangedList::Tools).definitions.clone().unwrap_or_default();
    drop((notices, questions));
    connection.close().await;
    tasks.close();
    tasks.wait().await;
    listed.map_err(|error| begin(&error))?;
    let ids = names::ids(&server.name, definitions.iter().map(Definition::name));
    let each = definitions.iter().filter_map(|definition| {
        let id = ids.get(definition.name())?.clone();
        Some((id, definition.clone()))
    });
    Ok(each.collect())
}

fn proposed(options: &Options, id: ToolId, definition: &Definition) -> Proposed {
    let called = [definition.name(), id.as_str()];
    let hints = definition.annotations();
    let (_, description) = definition.words();
    let (class, because) =
        effect::proposed(&called, description, &options.classes, options.hints, hints);
    let timeout = options.timeout.map(|time| u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
    let limits = Limits { wall_ms: timeout, result_bytes: options.result_bytes };
    let manifest = definition.manifest(id, class, limits);
    Proposed {
        manifest,
        because,
        hints: hints.map(said).unwrap_or_default(),
        name: definition.name().to_owned(),
        annotations: hints.cloned(),
    }
}

fn said(annotations: &ToolAnnotations) -> String {
    let hints = [
        ("readOnlyHint", annotations.read_only_hint),
        ("destructiveHint", annotations.destructive_hint),
        ("openWorldHint", annotations.open_world_hint),
    ];
    let said = hints.iter().filter_map(|(name, says)| says.map(|says| format!("{name}: {says}")));
    said.collect::<Vec<String>>().join(", ")
}

impl Proposed {
    /// Takes in what the operator says now.
    pub fn say(&mut self, rules: &[ClassRule]) {
        let called = [self.name.as_str(), self.manifest.tool.as_str()];
        let hints = self.annotations.as_ref();
        let said = effect::class(&called, rules, Hints::Unconfirmed, hints);
        if let Some(class) = said {
            (self.manifest.effect, self.because) = (class, Because::Said);
        }
    }

    /// The proposed class.
    pub const fn class(&self) -> EffectClass {
        self.manifest.effect
    }
}
