//! From a resume to a grant.

use syscap_format::{
    AgentId, Grants, Manifest, Paths, Rights, Root, RootedPath, Rule, Scope, ScopeDimension,
    ScopeError, ToolGrant, ToolId,
};
use syscap_syscalls::{fs::PATH_DIMENSION, org::OUTBOX_DIMENSION};

use crate::runtime::grant::Grant;
use crate::runtime::resume::error::ResumeError;
use crate::runtime::resume::paths;
use crate::runtime::resume::read::{FILES, LISTS, OUTBOXES, PERMISSIONS, Resume, TOOLS};

/// The tool that sends to agents.
const SENDS: &str = "send_message";

/// The result of compiling a resume for a home.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Compiled {
    /// The grant: each tool with its own scopes.
    pub grant: Grant,
    /// The same, as it will stand in the token.
    pub grants: Grants,
    /// The tools, by their own ids, each once, in the order of the resume.
    pub tools: Vec<ToolId>,
    /// The names that are no tool here: they give nothing, and calling one is refused.
    pub unknown: Vec<String>,
    /// The tools that can do nothing without a scope that they are not given, and its dimension.
    pub lacking: Vec<(ToolId, String)>,
}

/// The tool of a name: its own, or an alias.
pub(crate) fn find<'m>(tools: &'m [Manifest], name: &str) -> Option<&'m Manifest> {
    let by_id = tools.iter().find(|manifest| manifest.tool.as_str() == name);
    let called = |manifest: &&Manifest| manifest.aliases.iter().any(|it| it.as_str() == name);
    by_id.or_else(|| tools.iter().find(called))
}

impl Resume {
    /// Compiles the grant for the agent from the home's tools: only listed tools are granted. A
    /// tool that changes nothing gets no right to write, one that runs programs no path outside the
    /// agent's own workspace. `more` are scopes that no resume has a section for; every tool gets
    /// them.
    ///
    /// # Errors
    /// [`ResumeError::Missing`] without `permissions` or `permissions.tools`;
    /// [`ResumeError::Name`]; a path that can't be granted, or more of them than a token holds.
    pub fn compile(
        &self,
        agent: &AgentId,
        tools: &[Manifest],
        more: &[(String, Scope)],
    ) -> Result<Compiled, ResumeError> {
        self.expect(agent)?;
        let names = self.tools.as_ref().ok_or_else(|| ResumeError::Missing {
            section: if self.whole.get(PERMISSIONS).is_some() { TOOLS } else { "permissions" },
        })?;
        let (files, outboxes) = (self.paths(agent)?, self.outbox_scope()?);
        let mut compiled = Compiled {
            grant: Grant::to(agent.as_str()),
            grants: Grants::new(),
            tools: Vec::new(),
            unknown: Vec::new(),
            lacking: Vec::new(),
        };
        for name in names {
            let Some(manifest) = find(tools, name) else {
                compiled.unknown.push(name.clone());
                continue;
            };
            if compiled.tools.contains(&manifest.tool) {
                continue;
            }
            let mut grant = ToolGrant::new();
            if needs(manifest, PATH_DIMENSION)
                && let Some(scope) = for_tool(files.as_ref(), manifest, agent)?
            {
                grant = grant.with(PATH_DIMENSION, scope);
            }
            if (needs(manifest, OUTBOX_DIMENSION) || is_called(manifest, SENDS))
                && let Some(scope) = &outboxes
            {
                grant = grant.with(OUTBOX_DIMENSION, scope.clone());
            }
            let with =
                |grant: ToolGrant, (of, scope): &(String, Scope)| grant.with(of, scope.clone());
            let grant = more.iter().fold(grant, with);
            let gives =
                |of: &str| grant.iter().any(|(given, _)| ScopeDimension::compares(given, of));
            let lacks = manifest.dimensions.iter().filter(|of| !gives(of));
            let tool = manifest.tool.clone();
            compiled.lacking.extend(lacks.map(|of| (tool.clone(), of.to_string())));
            compiled.grants = compiled.grants.with(tool.clone(), grant.clone());
            compiled.grant = compiled.grant.tool_with(tool.clone(), grant);
            compiled.tools.push(tool);
        }
        Ok(compiled)
    }

    /// The paths that may be read and written, of all tools together. `None` is nothing.
    pub(crate) fn paths(&self, agent: &AgentId) -> Result<Option<Paths>, ResumeError> {
        let mut given = Vec::new();
        match &self.files {
            Some(lists) => {
                for ((_, place, right), list) in LISTS.iter().zip(lists) {
                    for path in list {
                        given.push((paths::parse(agent, place, path)?, *right));
                    }
                }
            }
            None => {
                for path in paths::DEFAULTS {
                    let both = Rights::READ.union(Rights::WRITE);
                    given.push((paths::parse(agent, FILES, path)?, both));
                }
            }
        }
        paths::together(&given)
    }

    /// True if its paths give each of these tools exactly the token's paths.
    pub(crate) fn gives_paths(
        &self,
        agent: &AgentId,
        granted: &Grants,
        tools: &[Manifest],
    ) -> Result<bool, ResumeError> {
        let files = self.paths(agent)?;
        for (tool, grant) in granted.iter() {
            let manifest = tools.iter().find(|manifest| manifest.tool == *tool);
            let Some(manifest) = manifest.filter(|it| needs(it, PATH_DIMENSION)) else { continue };
            let said = for_tool(files.as_ref(), manifest, agent)?;
            if said.as_ref() != grant.scope(PATH_DIMENSION) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whom may be sent to; where the resume does not say, nobody.
    fn outbox_scope(&self) -> Result<Option<Scope>, ResumeError> {
        let names = self.outboxes.as_deref().unwrap_or_default();
        if names.is_empty() {
            return Ok(None);
        }
        let scope = Scope::names(names.iter().map(AgentId::as_str));
        scope.map(Some).map_err(|source| ResumeError::Scope { section: OUTBOXES, source })
    }
}

fn needs(manifest: &Manifest, dimension: &str) -> bool {
    manifest.dimensions.iter().any(|it| **it == *dimension)
}

fn is_called(manifest: &Manifest, name: &str) -> bool {
    manifest.aliases.iter().chain([&manifest.tool]).any(|it| it.as_str() == name)
}

/// The paths of one tool.
fn for_tool(
    files: Option<&Paths>,
    manifest: &Manifest,
    agent: &AgentId,
) -> Result<Option<Scope>, ResumeError> {
    let Some(files) = files else { return Ok(None) };
    let wrong = |source| ResumeError::Scope { section: FILES, source };
    if manifest.runs_code() {
        let own = RootedPath::new(Root::Workspace(agent.clone()), [""; 0]).map_err(wrong)?;
        let own = Scope::paths([Rule { path: own, rights: Rights::ALL }]).map_err(wrong)?;
        return Ok(Scope::Paths(files.clone()).meet(&own));
    }
    let most = if manifest.effect.is_read_only() { Rights::READ } else { Rights::ALL };
    let rule = |rule: &Rule| Rule { rights: rule.rights.intersection(most), ..rule.clone() };
    match Scope::paths(files.rules().iter().map(rule)) {
        Ok(scope) => Ok(Some(scope)),
        Err(ScopeError::Empty) => Ok(None),
        Err(source) => Err(wrong(source)),
    }
}
