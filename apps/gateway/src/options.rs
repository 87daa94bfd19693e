//! How a gateway is run, and how its servers are started.

use std::{collections::BTreeSet, ffi::OsString, path::PathBuf, time::Duration};

use syscap::Starter;
use syscap::format::{AgentId, Budget, Dimension, TokenId, ToolId};
use syscap::launch::Network;
use syscap::provide::LocationText;
use syscap::view::Owner;

use crate::governed::effect::{ClassRule, Hints};
use crate::uses::Uses;

/// How a server is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerCommand {
    /// Its name: one component of its tools' ids.
    pub name: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// Its environment beside the variables that every program needs; no other variable of the
    /// gateway's own is passed on.
    pub env: Vec<(String, OsString)>,
    /// Its permitted requests to the client: none by default.
    pub asks: Vec<Question>,
    /// The folder that it starts in; the gateway's own where none is named.
    pub folder: Option<PathBuf>,
    /// Its view of this machine.
    pub view: ServerView,
    /// Which of its tools are taken, by their names; one that ends with `*` is of all that begin
    /// so. All, where none is named.
    pub tools: Vec<String>,
}

impl ServerCommand {
    /// One that finds nothing of its own in its environment and may ask nothing.
    pub const fn new(name: String, command: Vec<String>) -> Self {
        Self {
            name,
            command,
            env: Vec::new(),
            asks: Vec::new(),
            folder: None,
            view: ServerView::Hidden,
            tools: Vec::new(),
        }
    }

    /// Where its runs act, in words: its command, its folder, what it sees, and the names of its
    /// variables. The values of variables are secrets, and not told.
    pub(crate) fn location(&self) -> String {
        let folder = self.folder.clone().or_else(|| std::env::current_dir().ok());
        let folder = folder.map(|folder| std::fs::canonicalize(&folder).unwrap_or(folder));
        let names: BTreeSet<&String> = self.env.iter().map(|(name, _)| name).collect();
        let text = LocationText::default().part("server", &self.command).part("folder", folder);
        let text = match &self.view {
            ServerView::Hidden => text,
            ServerView::Unhidden => text.part("sees", ["all"]),
            ServerView::Confined(opened) => {
                let sorted =
                    |paths: &[PathBuf]| -> BTreeSet<PathBuf> { paths.iter().cloned().collect() };
                text.part("reads", sorted(&opened.read))
                    .part("writes", sorted(&opened.write))
                    .part("executes", sorted(&opened.execute))
                    .part("network", [opened.network.name()])
            }
        };
        text.part("variables", names).finish()
    }

    /// True if a tool of that name is taken.
    pub(crate) fn takes(&self, tool: &str) -> bool {
        let is_meant = |pattern: &String| match pattern.strip_suffix('*') {
            Some(begins) => tool.starts_with(begins),
            None => tool == pattern,
        };
        self.tools.is_empty() || self.tools.iter().any(is_meant)
    }
}

/// A server's view of this machine. If the agent's run may write anything that its command names,
/// the server is confined, whatever is said here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ServerView {
    /// All that the gateway's user sees, but for homes, their keys and their sockets, which are
    /// hidden from it. It is no boundary.
    #[default]
    Hidden,
    /// All that the gateway's user sees.
    Unhidden,
    /// The paths that are opened to it, the system's programs, and a HOME and a TMPDIR of its own.
    Confined(Opened),
}

/// The paths and the network that are opened to a confined server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Files and folders to read.
    pub read: Vec<PathBuf>,
    /// Files and folders to read and write.
    pub write: Vec<PathBuf>,
    /// Files and folders to read and execute.
    pub execute: Vec<PathBuf>,
    /// The reachable network.
    pub network: Network,
}

impl Default for Opened {
    fn default() -> Self {
        let (read, write, execute) = (Vec::new(), Vec::new(), Vec::new());
        Self { read, write, execute, network: Network::None }
    }
}

impl ServerCommand {
    /// Confines it to these paths. `None` where the operator lets it see everything.
    pub fn opened(&mut self) -> Option<&mut Opened> {
        if self.view == ServerView::Hidden {
            self.view = ServerView::Confined(Opened::default());
        }
        match &mut self.view {
            ServerView::Confined(opened) => Some(opened),
            ServerView::Hidden | ServerView::Unhidden => None,
        }
    }
}

/// A kind of request that a server may make to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    /// That its model says something: `sampling/createMessage`.
    Sampling,
    /// That its user answers: `elicitation/create`.
    Elicitation,
    /// Which folders it works in: `roots/list`.
    Roots,
}

impl Question {
    /// All that there are.
    pub const ALL: [Self; 3] = [Self::Sampling, Self::Elicitation, Self::Roots];

    /// Its name on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
            Self::Roots => "roots",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|question| question.name() == name)
    }
}

/// The parts that pass beside tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Passed {
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
}

/// How a gateway is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The home.
    pub home: PathBuf,
    /// The agent that calls.
    pub agent: AgentId,
    /// Its token; where none is named its newest that lives, and where it has none a new one.
    pub token: Option<TokenId>,
    /// How long a token lives that is issued here.
    pub expires: Duration,
    /// Limits of a token that is issued here which are others than [`Budget::working_day`] has.
    pub limits: Vec<(Dimension, u64)>,
    /// How often a token that expired or is used up is issued again here, counted over restarts;
    /// never one that was revoked, nor while its agent is frozen. `None`: one that expired is issued
    /// again at each start, one that is used up never.
    pub renewals: Option<u32>,
    /// The servers.
    pub servers: Vec<ServerCommand>,
    /// True if names carry their server's even with one server only.
    pub prefix: bool,
    /// True if a token that is issued here grants the home's own tools too.
    pub built_in: bool,
    /// Tools that a token may be issued anew for here when they turn up, by their ids or as
    /// `SERVER.*`, or `*`.
    pub grants: Vec<String>,
    /// The operator's classes of tools.
    pub classes: Vec<ClassRule>,
    /// The operator's trust in the servers' own hints.
    pub hints: Hints,
    /// True if the operator vouches for the servers' results; false leaves the record as it is.
    pub trust_results: bool,
    /// How long a call may run; as on record where it is not said, at first a minute.
    pub timeout: Option<Duration>,
    /// Largest result of a call, in bytes; as on record where it is not said, at first 1 MiB.
    pub result_bytes: Option<u64>,
    /// Starts a server of the home where there is none; none is started where nothing is said.
    pub starter: Option<Starter>,
    /// Nobody is there to be asked: a call that would wait for a person is refused at once.
    pub headless: bool,
    /// How long a call that waits for a person is waited for, before it ends with how to take it
    /// up: shorter than the client itself waits.
    pub approval_wait: Duration,
    /// The places that the agent may write where it is inside a run; none where it is not. Inside, no
    /// answer of the agent's own client counts as a person's.
    pub written: Vec<PathBuf>,
    /// The uses of the run's client, which its hook passes to the gateways.
    pub uses: Option<Uses>,
    /// The token that [`settle`](crate::settle) gave for this run: calls go by it, and by such that
    /// renew it and grant no more.
    pub settled: Option<TokenId>,
    /// True if prompts pass.
    pub prompts: bool,
    /// True if resources pass.
    pub resources: bool,
}

impl Options {
    /// The longest that a call may run.
    pub const TIMEOUT_MAX: Duration = Duration::from_hours(24);

    /// How long a call that waits for a person is waited for, where nobody says: clients give a
    /// request up after a minute.
    pub const APPROVAL_WAIT: Duration = Duration::from_secs(45);

    /// With what holds where nothing is said.
    pub fn new(home: PathBuf, agent: AgentId, servers: Vec<ServerCommand>) -> Self {
        Self {
            // What a client is told is searched for this path.
            home: std::path::absolute(&home).unwrap_or(home),
            agent,
            token: None,
            expires: Duration::from_hours(12),
            limits: Vec::new(),
            renewals: None,
            servers,
            prefix: false,
            built_in: false,
            grants: Vec::new(),
            classes: Vec::new(),
            hints: Hints::Unconfirmed,
            trust_results: false,
            timeout: None,
            result_bytes: None,
            starter: None,
            headless: false,
            approval_wait: Self::APPROVAL_WAIT,
            written: Vec::new(),
            uses: None,
            settled: None,
            prompts: true,
            resources: true,
        }
    }

    /// True if the agent is inside a run.
    pub(crate) const fn is_in_run(&self) -> bool {
        !self.written.is_empty()
    }

    /// The owner of the tokens that are looked for.
    pub(crate) const fn owner(&self) -> Owner {
        if self.is_in_run() { Owner::Run } else { Owner::Agent }
    }

    /// The limits of a token that is issued here.
    pub fn budget(&self) -> Budget {
        let limits = self.limits.iter();
        limits.fold(Budget::working_day(), |budget, (dimension, limit)| {
            budget.with(*dimension, *limit)
        })
    }

    /// True if the operator allowed issuing a token here for that tool when it turns up.
    pub(crate) fn may_grant(&self, tool: &ToolId) -> bool {
        self.grants.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(begins) => tool.as_str().starts_with(begins),
            None => tool.as_str() == pattern,
        })
    }

    pub(crate) const fn passed(&self) -> Passed {
        Passed { prompts: self.prompts, resources: self.resources }
    }

    /// True if clients see `NAME_tool` instead of `tool`.
    #[must_use]
    pub fn is_prefixed(&self) -> bool {
        self.prefix || self.servers.len() > 1
    }
}
