//! The paths of a resume: from the base, as the seed writes them.

use syscap_format::{AgentId, Paths, Rights, Root, RootedPath};

use crate::{runtime::grant::add_up, runtime::resume::error::ResumeError};

/// The folder of all workspaces.
const AGENTS: &str = "agents";

/// The meaning of a path of an allowlist: `shared/notes`, `agents/NAME/workspace`, `workspace` (the
/// agent's own). A slash may end it; nothing in it is resolved.
pub(crate) fn parse(
    agent: &AgentId,
    section: &'static str,
    text: &str,
) -> Result<RootedPath, ResumeError> {
    let bad = |why| ResumeError::Path { section, got: text.to_owned(), why };
    if text.starts_with('/') {
        return Err(bad("paths begin with a root, as in `shared/notes`, and never with `/`"));
    }
    if text.contains(['\\', '\0']) {
        return Err(bad("components are joined by `/`"));
    }
    let names: Vec<&str> = text.strip_suffix('/').unwrap_or(text).split('/').collect();
    if names.iter().any(|name| matches!(*name, "" | "." | "..")) {
        return Err(bad("write it in full, without `.`, `..` and empty components"));
    }
    let (root, below) = match names.as_slice() {
        [Root::WORKSPACE, below @ ..] => (Root::Workspace(agent.clone()), below),
        [AGENTS, owner, Root::WORKSPACE, below @ ..] => {
            let owner = AgentId::new(&owner.replace('+', "/"));
            let why = "no agent has this name (a `/` in it is a `+` here)";
            (Root::Workspace(owner.ok_or_else(|| bad(why))?), below)
        }
        [AGENTS, ..] => return Err(bad("of an agent's folder only `workspace` can be granted")),
        [root, below @ ..] => {
            let root = Root::named(root);
            (root.map_err(|_| bad("no root can have this name"))?, below)
        }
        [] => return Err(bad("it is empty")),
    };
    RootedPath::new(root, below).map_err(|_| bad("a component is too long, or there are too many"))
}

/// The same path as text.
pub(crate) fn written(path: &RootedPath) -> String {
    let root = match path.root() {
        Root::Workspace(owner) => format!("{AGENTS}/{}/{}", owner.folder(), Root::WORKSPACE),
        root @ Root::Named(_) => root.name().to_owned(),
    };
    if path.below().is_empty() { root } else { format!("{root}/{}", path.below()) }
}

/// The roots that an agent may read and write if its resume names none.
pub(crate) const DEFAULTS: [&str; 2] = [Root::WORKSPACE, "shared"];

/// The union of paths; `None` if it is empty.
pub(crate) fn together(given: &[(RootedPath, Rights)]) -> Result<Option<Paths>, ResumeError> {
    if given.is_empty() {
        return Ok(None);
    }
    let section = "permissions.file_access";
    let paths = add_up(given.iter().cloned());
    paths.map(Some).map_err(|source| ResumeError::Scope { section, source })
}
