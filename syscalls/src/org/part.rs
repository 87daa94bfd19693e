//! The token for a new agent, by the words of its creator.

use syscap_format::{
    AgentId, Budget, Dimension, Grants, Item, ItemKind, Label, Paths, Reason, Refused, Rights,
    Root, RootedPath, Rule, Scope, TokenBody, TokenId, ToolGrant, ToolId, attenuates,
};
use syscap_kernel::Request;

use super::registrar::{Part, Registrar};
use crate::fs::PATH_DIMENSION;

fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

fn beyond(field: &'static str, got: &str) -> Refused {
    Refused::new(Reason::OutOfScope).field(field).got(got)
}

/// The part that a call asks for, if it is a part of the call's own token. The kernel looks again
/// when it is registered.
pub(super) fn wanted(request: &Request<'_>, registrar: &dyn Registrar) -> Result<Part, Refused> {
    let (parent, above) = (id_of(request.token), request.token);
    if above.holder.is_none() {
        return Err(Refused::new(Reason::NoDelegation));
    }
    let by = request.agent;
    let agent = below(by, text(request, "name"))?;
    let grants = grants(request, above, registrar)?;
    let budget = budget(request, above.budget)?;
    let uint = |name| request.args.get(name).and_then(Item::as_uint);
    let levels = uint("levels").unwrap_or(0);
    let life_ms = uint("expires_in_s").map(|seconds| seconds.saturating_mul(1_000));
    let part = Part {
        parent,
        by: by.clone(),
        agent,
        nonce: [0; 16],
        grants,
        budget,
        life_ms,
        levels,
        label: Label::PUBLIC,
    };
    attenuates(&child(&part, above), parent, above).map_err(|why| match why.reason() {
        Reason::OutOfScope if why.is_about("depth_max") => {
            let left = above.depth_max.saturating_sub(above.depth).saturating_sub(1);
            beyond("levels", &levels.to_string()).allowed(&format!("at most {left}"))
        }
        Reason::OutOfScope if why.is_about("budget") => beyond("budget", "more than is granted"),
        Reason::OutOfScope => beyond("tools", "more than is granted"),
        _ => why,
    })?;
    Ok(part)
}

/// The part as a token, with the times of the one above: how late it is now, the run finds out.
fn child(part: &Part, above: &TokenBody) -> TokenBody {
    let depth = above.depth.saturating_add(1);
    TokenBody {
        issuer: above.holder.unwrap_or(above.issuer),
        agent: part.agent.clone(),
        parent: Some(part.parent),
        depth,
        depth_max: depth.saturating_add(part.levels),
        grants: part.grants.clone(),
        budget: part.budget,
        ..above.clone()
    }
}

/// The id of a token: there is one encoding of what it says.
pub(super) fn id_of(token: &TokenBody) -> TokenId {
    TokenBody::id_of(&token.to_bytes())
}

fn text<'a>(request: &Request<'a>, name: &str) -> &'a str {
    request.args.get(name).and_then(Item::as_text).unwrap_or_default()
}

/// The agent of that name below another: one component, so that it is below that one, and that
/// one only.
fn below(by: &AgentId, name: &str) -> Result<AgentId, Refused> {
    let form =
        "a to z, 0 to 9, `.`, `_` and `-`, no dot first; with this agent's at most 128 bytes";
    let whole = AgentId::new(&format!("{by}/{name}"));
    whole.filter(|_| !name.contains('/')).ok_or_else(|| bad("name", name, form))
}

/// Each tool with what the words say of the dimensions that the token gives it.
fn grants(
    request: &Request<'_>,
    above: &TokenBody,
    registrar: &dyn Registrar,
) -> Result<Grants, Refused> {
    let scopes = request.args.get("scopes").filter(|scopes| !scopes.is_null());
    let paths = paths(request, above)?;
    let whole_paths = scopes.is_some_and(|scopes| scopes.get(PATH_DIMENSION).is_some());
    if whole_paths && paths.is_some() {
        return Err(bad("scopes", PATH_DIMENSION, "either path, or read and write"));
    }
    let mut used: Vec<&str> = Vec::new();
    let mut grants = Grants::new();
    for named in request.args.get("tools").into_iter().flat_map(Item::elements) {
        let (tool, own) = tool(named, above, registrar)?;
        let mut grant = ToolGrant::new();
        if let (Some(paths), Some(wider)) = (&paths, own.scope(PATH_DIMENSION)) {
            let scope = Scope::Paths(paths.clone());
            if !scope.leq(wider) {
                let field = if has(paths, Rights::WRITE) { "write" } else { "read" };
                return Err(beyond(field, tool.as_str()).allowed(&wider.to_string()));
            }
            grant = grant.with(PATH_DIMENSION, scope);
        }
        for (dimension, wanted) in scopes.into_iter().flat_map(Item::entries) {
            let Some(wider) = own.scope(dimension) else { continue };
            used.push(dimension);
            grant = grant.with(dimension, narrowed(dimension, wanted, wider)?);
        }
        if grants.get(&tool).is_some() {
            return Err(bad("tools", tool.as_str(), "each tool once"));
        }
        grants = grants.with(tool, grant);
    }
    let mut named = scopes.into_iter().flat_map(Item::entries).map(|(dimension, _)| dimension);
    match named.find(|dimension| !used.contains(dimension)) {
        Some(unused) => Err(beyond("scopes", unused).allowed("what its tools are granted here")),
        None => Ok(grants),
    }
}

fn tool<'a>(
    named: Item<'_>,
    above: &'a TokenBody,
    registrar: &dyn Registrar,
) -> Result<(ToolId, &'a ToolGrant), Refused> {
    let text = named.as_text().unwrap_or("what is no text");
    let called = ToolId::new(text).ok_or_else(|| bad("tools", text, "names of tools"))?;
    let id = match above.grants.get(&called) {
        Some(_) => called,
        None => registrar.tool(&called).unwrap_or(called),
    };
    match above.grants.get(&id) {
        Some(grant) => Ok((id, grant)),
        None => Err(beyond("tools", text).allowed(&above.grants.names(text))),
    }
}

/// The scope that is asked for in a dimension: all that the token has, or some of its names.
fn narrowed(dimension: &str, wanted: Item<'_>, wider: &Scope) -> Result<Scope, Refused> {
    if wanted.as_bool() == Some(true) {
        return Ok(wider.clone());
    }
    let names: Option<Vec<&str>> = match wanted.kind() {
        ItemKind::Array => wanted.elements().map(Item::as_text).collect(),
        _ => None,
    };
    let scope = match (names, wider) {
        (Some(names), Scope::Names(_)) => Scope::names(names),
        (Some(names), Scope::Hosts(_)) => Scope::hosts(names),
        _ => return Err(bad("scopes", dimension, "true, or a list of some of the names")),
    };
    let scope = scope.map_err(|_| bad("scopes", dimension, "true, or a list of names"))?;
    if scope.leq(wider) {
        Ok(scope)
    } else {
        Err(beyond("scopes", dimension).allowed(&wider.to_string()))
    }
}

/// The paths that are named: `workspace` is that of the agent in which the token works.
fn paths(request: &Request<'_>, above: &TokenBody) -> Result<Option<Paths>, Refused> {
    let mut rules: Vec<Rule> = Vec::new();
    for (name, rights) in [("read", Rights::READ), ("write", Rights::WRITE)] {
        for root in request.args.get(name).into_iter().flat_map(Item::elements) {
            let text = root.as_text().unwrap_or("what is no text");
            let path = rooted(text, above).ok_or_else(|| {
                bad(name, text, "a root, and folders below it, as in workspace/notes")
            })?;
            match rules.iter_mut().find(|rule| rule.path == path) {
                Some(rule) => rule.rights = rule.rights.union(rights),
                None => rules.push(Rule { path, rights }),
            }
        }
    }
    if rules.is_empty() {
        return Ok(None);
    }
    // What is said adds up, while in a token the longest path decides alone.
    let given = rules.clone();
    for rule in &mut rules {
        for above in given.iter().filter(|above| rule.path.is_within(&above.path)) {
            rule.rights = rule.rights.union(above.rights);
        }
    }
    Paths::new(rules).map(Some).map_err(|_| bad("read", "so many paths", "fewer of them"))
}

fn rooted(text: &str, above: &TokenBody) -> Option<RootedPath> {
    let mut names = text.split('/');
    let root = match names.next()? {
        "workspace" => Root::Workspace(workspace_of(above).clone()),
        name => Root::named(name).ok()?,
    };
    RootedPath::new(root, names).ok()
}

fn has(paths: &Paths, rights: Rights) -> bool {
    paths.rules().iter().any(|rule| rights.leq(rule.rights))
}

/// The owner of the workspace that a token delegates: its agent, or the nearest ancestor whose
/// workspace it names.
#[must_use]
pub fn workspace_of(token: &TokenBody) -> &AgentId {
    let scopes = token.grants.iter().filter_map(|(_, grant)| grant.scope(PATH_DIMENSION));
    let paths = scopes.filter_map(|scope| match scope {
        Scope::Paths(paths) => Some(paths.rules()),
        _ => None,
    });
    let owners = paths.flatten().filter_map(|rule| match rule.path.root() {
        Root::Workspace(owner) if token.agent.is_within(owner) => Some(owner),
        _ => None,
    });
    owners.max_by_key(|owner| owner.as_str().len()).unwrap_or(&token.agent)
}

fn budget(request: &Request<'_>, own: Budget) -> Result<Budget, Refused> {
    let limits = request.args.get("budget").filter(|limits| !limits.is_null());
    limits.into_iter().flat_map(Item::entries).try_fold(own, |budget, (name, limit)| {
        let dimension = Dimension::from_name(name)
            .ok_or_else(|| bad("budget", name, "dimensions of a budget"))?;
        let limit = limit.as_uint().ok_or_else(|| bad("budget", name, "an amount"))?;
        let most = own.amounts().get(dimension);
        if limit > most {
            return Err(beyond("budget", name).allowed(&format!("at most {most}")));
        }
        Ok(budget.with(dimension, limit))
    })
}
