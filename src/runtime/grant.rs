//! Grants: a host's builder for the body of a token.

use std::time::Duration;

use syscap_format::field::shape;
use syscap_format::{
    AgentId, Budget, DIMENSIONS_MAX, Dimension, GRANTS_MAX, Grants, Label, Name, Paths, PublicKey,
    Rights, Root, RootedPath, Rule, Scope, ScopeError, TOKEN_LIFE_MS_MAX, TokenBody, TokenFlags,
    TokenId, ToolGrant, ToolId, UnixMillis,
};
use syscap_syscalls::fs::PATH_DIMENSION;

use crate::error::Error;

/// Most tools, paths and dimensions that a grant may name where it comes from another process: a
/// few times as many as a token can hold, so that it is the kernel that says so.
const TOOLS_MAX: usize = 4 * GRANTS_MAX;
const PATHS_MAX: usize = 4_096;
const SCOPES_MAX: usize = 4 * DIMENSIONS_MAX;
const LIMITS_MAX: usize = Dimension::ALL.len();

/// The fault of a path without a root.
const ROOT: &str = "the path (it begins with a root's name, as in `workspace/notes`)";

shape! {
    /// A builder for a token's grant. It grants only the parts that it names.
    ///
    /// ```
    /// use syscap::prelude::*;
    ///
    /// # fn main() -> Result<(), Error> {
    /// # let folder = tempfile::tempdir().expect("a temporary folder");
    /// # let rt = Runtime::create(folder.path().join("home"))?;
    /// let grant = Grant::to("researcher")
    ///     .tools(["fs.read", "fs.write"])
    ///     .workspace()
    ///     .read("docs/guides")
    ///     .budget(Budget::standard().with(Dimension::Calls, 100))
    ///     .expires_in(Duration::from_secs(3600));
    /// let token = rt.issue(grant)?;
    /// # drop(token);
    /// # rt.close()
    /// # }
    /// ```
    #[must_use]
    pub struct Grant {
        1 => agent: String,
        2 => tools: Vec<String> [..TOOLS_MAX],
        3 => paths: Vec<(String, Rights)> [..PATHS_MAX],
        4 => scopes: Vec<(String, Scope)> [..SCOPES_MAX],
        /// Tools with scopes of their own.
        5 => apart: Vec<Apart> [..TOOLS_MAX],
        6 => budget: Option<Budget>,
        7 => life_ms: Option<u64>,
        8 => pub(crate) flags: TokenFlags,
        /// The token that it is to be derived from.
        9 => pub(crate) parent: Option<TokenId>,
        /// How many levels it may be handed on.
        10 => pub(crate) levels: u64,
        /// The holder that may delegate it; by default the home, if it is delegable.
        11 => pub(crate) holder: Option<PublicKey>,
        /// Limits that are others than those of its budget.
        12 => limits: Vec<(Dimension, u64)> [..LIMITS_MAX],
        /// The token that it takes the place of.
        13 => pub(crate) renews: Option<TokenId>,
        /// Within which time it must be renewed.
        14 => pub(crate) renew_ms: Option<u64>,
        /// How old the home's list of revocations may be.
        15 => pub(crate) fresh_ms: Option<u64>,
        /// The label with which its sessions begin.
        16 => pub(crate) label: Label,
        /// When a root ends, in place of how long it lives.
        17 => pub(crate) ends: Option<UnixMillis>,
    }
}

shape! {
    /// A tool, and what is granted to it in each dimension.
    struct Apart {
        1 => tool: ToolId,
        2 => scopes: Vec<(String, Scope)> [..SCOPES_MAX],
    }
}

impl Grant {
    /// A grant to an agent, of no tools, with [`Budget::standard`], for an hour; where it is
    /// derived from another token, with the budget and to the end of that.
    pub fn to(agent: &str) -> Self {
        Self {
            agent: agent.to_owned(),
            tools: Vec::new(),
            paths: Vec::new(),
            scopes: Vec::new(),
            apart: Vec::new(),
            budget: None,
            life_ms: None,
            flags: TokenFlags::default(),
            parent: None,
            levels: 0,
            holder: None,
            limits: Vec::new(),
            renews: None,
            renew_ms: None,
            fresh_ms: None,
            label: Label::PUBLIC,
            ends: None,
        }
    }

    /// A grant equal to a token's: the same tools, scopes, limits and flags, unused, with as long a
    /// life. The holder of that token may delegate this one as far.
    pub fn like(body: &TokenBody) -> Self {
        let life = body.expires.since(body.not_before);
        let mut grant = Self::to(body.agent.as_str())
            .budget(body.budget)
            .expires_in(Duration::from_millis(life))
            .delegable(body.depth_max.saturating_sub(body.depth));
        for (tool, scopes) in body.grants.iter() {
            grant = grant.tool_with(tool.clone(), scopes.clone());
        }
        grant.flags = body.flags;
        grant.holder = body.holder.filter(|_| grant.levels > 0);
        grant.fresh_ms = body.fresh_within();
        grant.label = body.label();
        grant
    }

    /// Sets what sessions by the token begin with: what whoever goes on by it has read before.
    pub fn begins_with(mut self, label: Label) -> Self {
        self.label = self.label.join(label);
        self
    }

    /// Adds tools, by their ids.
    pub fn tools<S: AsRef<str>>(mut self, tools: impl IntoIterator<Item = S>) -> Self {
        self.tools.extend(tools.into_iter().map(|tool| tool.as_ref().to_owned()));
        self
    }

    /// Lets the agent read and write its own workspace.
    pub fn workspace(self) -> Self {
        self.path("workspace", Rights::READ.union(Rights::WRITE))
    }

    /// Lets the agent read below a root: `workspace`, `shared`, `docs/guides`. It is a path below
    /// the base directory and never begins with `/`; `docs/files.md` says how calls name it.
    pub fn read(self, root: &str) -> Self {
        self.path(root, Rights::READ)
    }

    /// Lets the agent write below a root.
    pub fn write(self, root: &str) -> Self {
        self.path(root, Rights::WRITE)
    }

    /// Gives rights below a root, beside those given already.
    pub fn path(mut self, root: &str, rights: Rights) -> Self {
        self.paths.push((root.to_owned(), rights));
        self
    }

    /// Gives every tool of the grant a scope in a dimension.
    pub fn scope(mut self, dimension: &str, scope: Scope) -> Self {
        self.scopes.push((dimension.to_owned(), scope));
        self
    }

    /// Adds a tool with scopes of its own: what is said of the grant's other tools is not said
    /// of it.
    pub fn tool_with(mut self, tool: ToolId, grant: ToolGrant) -> Self {
        let scopes = grant.iter().map(|(dimension, scope)| (dimension.to_owned(), scope.clone()));
        self.apart.push(Apart { tool, scopes: scopes.collect() });
        self
    }

    /// Gives every tool that [has scopes of its own](Self::tool_with) what was said of all tools
    /// besides what it has: what is granted [once more](Self::like), and more.
    ///
    /// # Errors
    /// As [`Runtime::issue`](crate::Runtime::issue).
    pub fn besides(mut self) -> Result<Self, Error> {
        let agent = self.agent()?;
        let mut said = self.scopes.clone();
        if !self.paths.is_empty() {
            said.push((PATH_DIMENSION.to_owned(), Scope::Paths(self.rules(&agent)?)));
        }
        for Apart { scopes, .. } in &mut self.apart {
            for (dimension, more) in &said {
                match scopes.iter_mut().find(|(other, _)| other == dimension) {
                    Some((_, has)) => *has = both(has, more)?,
                    None => scopes.push((dimension.clone(), more.clone())),
                }
            }
        }
        Ok(self)
    }

    /// Sets the budget.
    pub fn budget(mut self, budget: Budget) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Sets one limit of the budget, and leaves the others as they are.
    pub fn limit(mut self, dimension: Dimension, limit: u64) -> Self {
        self.limits.retain(|(other, _)| *other != dimension);
        self.limits.push((dimension, limit));
        self
    }

    /// Its budget, where `otherwise` is that of a grant that says nothing.
    pub(crate) fn budget_or(&self, otherwise: Budget) -> Budget {
        let budget = self.budget.unwrap_or(otherwise);
        self.limits
            .iter()
            .fold(budget, |budget, (dimension, limit)| budget.with(*dimension, *limit))
    }

    /// Sets how long the token lives, from when it is issued; at most 90 days. One that is signed
    /// [beside the process that holds the home](crate::Inspection::token) begins a minute, and at
    /// most a tenth of that time, before it is signed, and ends as much earlier.
    pub fn expires_in(mut self, life: Duration) -> Self {
        self.life_ms = Some(u64::try_from(life.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Sets when the token ends, if it is derived from no other: what takes the place of another
    /// goes on no longer.
    pub fn ends_at(mut self, time: UnixMillis) -> Self {
        self.ends = Some(time);
        self
    }

    /// Lets the token be handed on so many levels down, 16 at the most: what is derived from
    /// it gives no more than it does, to the same agent or one below, and what that uses is charged
    /// to it as well. The home's own holder key signs what is derived by
    /// [`Runtime::attenuate`](crate::Runtime::attenuate), unless another [holds it](Self::held_by).
    pub fn delegable(mut self, levels: u64) -> Self {
        self.levels = levels;
        self
    }

    /// To be derived from that token.
    pub(crate) fn from(mut self, parent: TokenId) -> Self {
        self.parent = Some(parent);
        self
    }

    /// Names the key by which the token can be handed on: its owner need not ask this home for a
    /// signature, and [registers](crate::Runtime::register) what it derives.
    pub fn held_by(mut self, holder: PublicKey) -> Self {
        self.holder = Some(holder);
        self
    }

    /// Takes the place of another token of the same agent, which was issued and not revoked: a
    /// call that repeats an idempotency key of that one, or of one that it renewed itself, gets the
    /// first outcome, as far as this grants the tool. It gives nothing else, and takes nothing from
    /// the other.
    pub fn renews(mut self, token: TokenId) -> Self {
        self.renews = Some(token);
        self
    }

    /// Ends the token at that time after it is issued, unless another that [renews](Self::renews)
    /// it is issued before: then it goes on until that one must be renewed, or ends. The time lies
    /// before the token's own end. A token that is derived from another has none of its own, and
    /// ends with those above it.
    pub fn renew_within(mut self, time: Duration) -> Self {
        self.renew_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Makes it valid only while the home has a list of revocations that is no older than that
    /// time: what stops hearing of revocations stops. A token that is derived from another follows
    /// that one.
    pub fn fresh_within(mut self, time: Duration) -> Self {
        self.fresh_ms = Some(u64::try_from(time.as_millis()).unwrap_or(u64::MAX));
        self
    }

    /// Grants only tools that leave everything as it is, whatever else is said, and no change of
    /// the agent's state.
    pub fn read_only(mut self) -> Self {
        self.flags = self.flags.and(TokenFlags::READ_ONLY);
        self
    }

    pub(crate) fn agent(&self) -> Result<AgentId, Error> {
        let got = self.agent.clone();
        AgentId::new(&self.agent).ok_or(Error::BadName { what: "the agent", got })
    }

    /// How long it lives, where that is said.
    pub(crate) fn life_ms(&self) -> Option<u64> {
        self.life_ms.map(|life| life.min(TOKEN_LIFE_MS_MAX))
    }

    /// The paths in roots that belong to no agent.
    pub(crate) fn shared(&self) -> impl Iterator<Item = &str> {
        let root = |path: &str| path.split('/').find(|name| !name.is_empty()) == Some("workspace");
        let apart = self.apart.iter().flat_map(|apart| &apart.scopes);
        let apart = apart.filter_map(|(_, scope)| match scope {
            Scope::Paths(paths) => Some(paths.rules()),
            _ => None,
        });
        let roots = apart.flatten().map(|rule| rule.path.root());
        let named = roots.filter(|root| root.owner().is_none()).map(Root::name);
        let paths = self.paths.iter().map(|(path, _)| path.as_str());
        paths.filter(move |path| !root(path)).chain(named)
    }

    /// The grants of the token. `owner` is whose workspace is meant: of a token that is derived
    /// from another it is that one's agent, since a part of it is handed on.
    pub(crate) fn grants(&self, owner: &AgentId) -> Result<Grants, Error> {
        let scoped = |grant: ToolGrant, scopes: &[(String, Scope)]| {
            scopes
                .iter()
                .fold(grant, |grant, (dimension, scope)| grant.with(dimension, scope.clone()))
        };
        let mut grant = ToolGrant::new();
        if !self.paths.is_empty() {
            grant = grant.with(PATH_DIMENSION, Scope::Paths(self.rules(owner)?));
        }
        grant = scoped(grant, &self.scopes);
        let mut grants = Grants::new();
        for tool in &self.tools {
            let got = tool.clone();
            let tool = ToolId::new(tool).ok_or(Error::BadName { what: "the tool", got })?;
            grants = grants.with(tool, grant.clone());
        }
        for Apart { tool, scopes } in &self.apart {
            grants = grants.with(tool.clone(), scoped(ToolGrant::new(), scopes));
        }
        Ok(grants)
    }

    /// One rule a path, with the rights that are given to it and to the paths above it: what is
    /// said of a grant adds up, while in a token the longest prefix decides alone.
    pub(crate) fn rules(&self, agent: &AgentId) -> Result<Paths, Error> {
        let mut given = Vec::with_capacity(self.paths.len());
        for (path, rights) in &self.paths {
            if path.starts_with('/') {
                return Err(Error::BadName { what: ROOT, got: path.clone() });
            }
            let mut names = path.split('/').filter(|name| !name.is_empty());
            let root = match names.next() {
                Some("workspace") => Root::Workspace(agent.clone()),
                Some(name) => Root::named(name)?,
                None => return Err(Error::BadName { what: ROOT, got: path.clone() }),
            };
            let path = RootedPath::new(root, names)?;
            given.push((path, *rights));
        }
        Ok(add_up(given)?)
    }
}

/// The union of two scopes. A path that was excluded from a folder stays excluded.
fn both(has: &Scope, more: &Scope) -> Result<Scope, ScopeError> {
    match (has, more) {
        (Scope::Paths(has), Scope::Paths(more)) => {
            let mut rules = has.rules().to_vec();
            for new in more.rules() {
                let rights = new.rights.union(has.rights(&new.path));
                rules.retain(|rule| rule.path != new.path);
                rules.push(Rule { path: new.path.clone(), rights });
            }
            Scope::paths(rules)
        }
        (Scope::Names(has), Scope::Names(more)) => {
            let all = has.as_slice().iter().chain(more.as_slice());
            Scope::names(all.map(Name::as_str))
        }
        (Scope::Hosts(has), Scope::Hosts(more)) => {
            let all = has.patterns().iter().chain(more.patterns());
            Scope::hosts(all.map(ToString::to_string))
        }
        (Scope::Ports(has), Scope::Ports(more)) => {
            Scope::ports(has.ranges().iter().chain(more.ranges()).copied())
        }
        (Scope::Cidrs(has), Scope::Cidrs(more)) => {
            Scope::cidrs(has.blocks().iter().chain(more.blocks()).copied())
        }
        // Of another type: what it was is not what the tool needs.
        _ => Ok(more.clone()),
    }
}

/// One rule a path, with the rights that are given to it and to the paths above it.
pub(crate) fn add_up(
    given: impl IntoIterator<Item = (RootedPath, Rights)>,
) -> Result<Paths, ScopeError> {
    let mut rules: Vec<Rule> = Vec::new();
    for (path, rights) in given {
        let is_full = rules.len() >= Paths::RULES_MAX;
        match rules.iter_mut().find(|rule| rule.path == path) {
            Some(rule) => rule.rights = rule.rights.union(rights),
            None if is_full => return Err(ScopeError::TooMany),
            None => rules.push(Rule { path, rights }),
        }
    }
    let given = rules.clone();
    for rule in &mut rules {
        for above in given.iter().filter(|above| rule.path.is_within(&above.path)) {
            rule.rights = rule.rights.union(above.rights);
        }
    }
    Paths::new(rules)
}
