//! From the text of a path to a place beneath the base.

use std::{borrow::Cow, sync::Arc};

use syscap_format::{
    AgentId, Item, Paths, Reason, Refused, Resource, Rights, Root, RootedPath, Rule, Scope,
};
use syscap_kernel::{Demand, Request, Resolve};

use super::{PATH_DIMENSION, refusal};
use crate::beneath::{FsError, Location, Opener};

/// The folder that holds the agents' folders.
const AGENTS: &str = "agents";
/// The folder of an agent that is its root.
const WORKSPACE: &str = "workspace";

/// For how many names there is room at first: a workspace's and a few below it.
const NAMES: usize = 8;

/// Decides if a path may end in a slash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// It names a folder: it may.
    Folder,
    /// It names a file: it may not.
    File,
}

/// The rights that a token needs at a link for it to be followed: to follow a link is to read it.
const FOLLOWED: Rights = Rights::FOLLOW.union(Rights::READ);

/// A path that was parsed: where it leads by name.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    path: RootedPath,
    needs: Rights,
    argument: &'static str,
}

impl Place {
    /// Reads the argument `path`.
    pub(crate) fn parse(
        request: &Request<'_>,
        ending: Ending,
        needs: Rights,
    ) -> Result<Self, Refused> {
        Self::parse_argument("path", request, ending, needs)
    }

    /// Reads an argument.
    pub(super) fn parse_argument(
        argument: &'static str,
        request: &Request<'_>,
        ending: Ending,
        needs: Rights,
    ) -> Result<Self, Refused> {
        let bad = || Refused::new(Reason::BadPath).field(argument);
        let text = request.args.get(argument).and_then(Item::as_text).ok_or_else(bad)?;
        let Some(Scope::Paths(scope)) = request.grant.scope(PATH_DIMENSION) else {
            return Err(Refused::new(Reason::OutOfScope).field(argument).allowed("nothing"));
        };
        let refuse = || bad().got(text).allowed(&form(text, scope, needs));
        if text.starts_with('/') || text.contains(['\\', '\0']) {
            return Err(refuse());
        }
        if ending == Ending::File && (text.is_empty() || text.ends_with('/')) {
            return Err(refuse());
        }
        let names = names(text, own(request.agent, scope), scope).ok_or_else(refuse)?;
        let path = rooted(&names).ok_or_else(refuse)?;
        Ok(Self { path, needs, argument })
    }

    /// The plan's demand for it.
    pub(crate) fn demand(&self) -> Demand {
        let resource = Resource::Path { path: self.path.clone(), needs: self.needs };
        Demand { dimension: PATH_DIMENSION, resource, argument: self.argument }
    }

    /// The same for a folder with all that lies below it.
    pub(crate) fn demand_tree(&self) -> Demand {
        let resource = Resource::Tree { path: self.path.clone(), needs: self.needs };
        Demand { dimension: PATH_DIMENSION, resource, argument: self.argument }
    }

    /// The place of names below it, where there can be one.
    pub(crate) fn below<S: AsRef<str>>(&self, names: &[S]) -> Option<Location> {
        let own = located(&self.path);
        let all = own.iter().map(AsRef::as_ref).chain(names.iter().map(AsRef::as_ref));
        Location::new(&all.collect::<Vec<&str>>()).ok()
    }

    /// The path, for people, all of it.
    pub(super) fn in_full(&self) -> String {
        self.path.in_full()
    }

    /// How many folders it lies deep in its root.
    pub(super) fn depth(&self) -> u64 {
        u64::try_from(self.path.components().count()).unwrap_or(u64::MAX)
    }

    /// The location to open. The openers follow no link.
    pub(crate) fn location(&self) -> Result<Location, Refused> {
        location_of(&self.path).map_err(refusal)
    }

    /// The location of a file to open. A root is a folder, also where it is missing: a file in its
    /// place would be in the way of every token that names it.
    pub(crate) fn file(&self) -> Result<Location, Refused> {
        if self.path.below().is_empty() {
            return Err(refusal(FsError::IsDirectory));
        }
        self.location()
    }
}

/// The resolver of the argument `path`; none if the token allows following no link.
pub(crate) fn resolver(
    request: &Request<'_>,
    ending: Ending,
    needs: Rights,
    base: &Arc<dyn Opener>,
) -> Result<Option<Box<dyn Resolve>>, Refused> {
    let follows = |rule: &Rule| FOLLOWED.leq(rule.rights);
    let scope = match request.grant.scope(PATH_DIMENSION) {
        Some(Scope::Paths(scope)) if scope.rules().iter().any(follows) => scope,
        _ => return Ok(None),
    };
    let Place { path, .. } = Place::parse(request, ending, needs)?;
    if !FOLLOWED.leq(scope.rights(&path)) {
        return Ok(None);
    }
    let sent = request.args.get("path").and_then(Item::as_text).unwrap_or_default();
    Ok(Some(Box::new(Links {
        base: Arc::clone(base),
        own: own(request.agent, scope).clone(),
        scope: scope.clone(),
        path,
        needs,
        sent: Box::from(sent),
    })))
}

/// A path whose links are to be followed.
struct Links {
    base: Arc<dyn Opener>,
    own: AgentId,
    scope: Paths,
    path: RootedPath,
    needs: Rights,
    sent: Box<str>,
}

impl Resolve for Links {
    fn argument(&self) -> &'static str {
        "path"
    }

    /// Any fault of a link's target gives the same answer as a path that the scope does not permit,
    /// about the path as it was sent.
    fn resolve(self: Box<Self>) -> Result<String, Refused> {
        self.found().ok_or_else(|| {
            let refused = Refused::new(Reason::OutOfScope).field("path").got(&self.sent);
            refused.allowed(&self.scope.advice(self.needs))
        })
    }
}

impl Links {
    fn found(&self) -> Option<String> {
        let may_follow = |at: &Location| {
            let names: Vec<&str> = at.names().collect();
            rooted(&names).is_some_and(|path| FOLLOWED.leq(self.scope.rights(&path)))
        };
        let written = Location::new(&located(&self.path)).ok()?;
        let found = self.base.resolve(&written, &may_follow).ok()?;
        let found = rooted(&found.names().collect::<Vec<_>>())?;
        let text = written_out(&found, &self.own);
        // It must be read as the same place: the name of a root that is not granted is not.
        let read = names(&text, &self.own, &self.scope).and_then(|names| rooted(&names));
        (read == Some(found)).then_some(text)
    }
}

/// The owner of an unnamed workspace: the agent itself. An agent to which another has delegated a
/// part of its own workspace, and no other, gets that one's.
fn own<'a>(agent: &'a AgentId, scope: &'a Paths) -> &'a AgentId {
    let above = scope.rules().iter().filter_map(|rule| match rule.path.root() {
        Root::Workspace(owner) if agent.is_within(owner) => Some(owner),
        _ => None,
    });
    above.max_by_key(|owner| owner.as_str().len()).unwrap_or(agent)
}

/// A path as an agent writes it: `workspace/a`, `shared/b`, and from its own workspace to
/// another's `../../other/workspace/c`.
fn written_out(path: &RootedPath, own: &AgentId) -> String {
    let root = match path.root() {
        Root::Workspace(owner) if owner != own => format!("../../{}/{WORKSPACE}", owner.folder()),
        root => root.name().to_owned(),
    };
    if path.below().is_empty() { root } else { format!("{root}/{}", path.below()) }
}

/// The names from the base down. `.` and `..` are resolved by components; `None` where they
/// lead above the base.
fn names<'a>(text: &'a str, own: &AgentId, scope: &Paths) -> Option<Vec<Cow<'a, str>>> {
    let mut components = text.split('/').filter(|name| !name.is_empty()).peekable();
    let mut names: Vec<Cow<'a, str>> = Vec::with_capacity(NAMES);
    let workspace = || [Cow::Borrowed(AGENTS), own.folder().into(), Cow::Borrowed(WORKSPACE)];
    let first: Option<&&'a str> = components.peek();
    match first.and_then(|first| named_root(first, own, scope)) {
        Some(Root::Workspace(_)) => {
            components.next();
            names.extend(workspace());
        }
        Some(Root::Named(_)) => {}
        None => names.extend(workspace()),
    }
    for component in components {
        match component {
            "." => {}
            ".." => drop(names.pop()?),
            name => names.push(Cow::Borrowed(name)),
        }
    }
    Some(names)
}

/// The granted root of that name, if there is one.
fn named_root(name: &str, own: &AgentId, scope: &Paths) -> Option<Root> {
    let mut roots = scope.rules().iter().map(|rule| rule.path.root());
    let found = roots.find(|root| match root {
        Root::Named(granted) => granted.as_str() == name,
        Root::Workspace(owner) => name == WORKSPACE && owner == own,
    });
    found.cloned()
}

/// The root and the path in it that names from the base down stand for.
fn rooted<S: AsRef<str>>(names: &[S]) -> Option<RootedPath> {
    let mut rest = names.iter().map(AsRef::as_ref);
    let root = match rest.next()? {
        AGENTS => {
            let owner = AgentId::new(&rest.next()?.replace('+', "/"))?;
            (rest.next()? == WORKSPACE).then_some(Root::Workspace(owner))?
        }
        name => Root::named(name).ok()?,
    };
    RootedPath::new(root, rest).ok()
}

/// Where a path leads, by names from the base down.
pub(super) fn location_of(path: &RootedPath) -> Result<Location, FsError> {
    Location::new(&located(path))
}

/// The names from the base down that a root and a path in it stand for.
fn located(path: &RootedPath) -> Vec<Cow<'_, str>> {
    let mut names = Vec::with_capacity(NAMES);
    match path.root() {
        Root::Named(name) => names.push(Cow::Borrowed(name.as_str())),
        Root::Workspace(owner) => {
            names.extend([Cow::Borrowed(AGENTS), owner.folder().into(), Cow::Borrowed(WORKSPACE)]);
        }
    }
    names.extend(path.components().map(Cow::Borrowed));
    names
}

/// The form to write instead of an unreadable path: shorter, or below a granted root.
fn form(text: &str, scope: &Paths, needs: Rights) -> String {
    let names = || text.split(['/', '\\']).filter(|name| !name.is_empty());
    if names().any(|name| name.len() > RootedPath::COMPONENT_BYTES_MAX) {
        return format!("names of at most {} bytes", RootedPath::COMPONENT_BYTES_MAX);
    }
    if names().count() > RootedPath::COMPONENTS_MAX {
        return format!("at most {} names", RootedPath::COMPONENTS_MAX);
    }
    scope.advice(needs)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(agent: &AgentId) -> Paths {
        let workspace = RootedPath::new(Root::Workspace(agent.clone()), [""; 0]).unwrap();
        let shared = RootedPath::new(Root::named("shared").unwrap(), [""; 0]).unwrap();
        let rights = Rights::READ;
        Paths::new([Rule { path: workspace, rights }, Rule { path: shared, rights }]).unwrap()
    }

    /// Every form of path, and where it leads: `None` is refused.
    #[test]
    fn paths_resolve_by_components() {
        let agent = AgentId::new("team/a").unwrap();
        let scope = scope(&agent);
        let own = "agents/team+a/workspace";
        for (text, leads_to) in [
            ("a.txt", Some(format!("{own}/a.txt"))),
            ("./a//b/./c", Some(format!("{own}/a/b/c"))),
            ("a/../b", Some(format!("{own}/b"))),
            ("workspace/a", Some(format!("{own}/a"))),
            ("workspace/workspace/a", Some(format!("{own}/workspace/a"))),
            ("shared/x", Some("shared/x".into())),
            ("sharedx", Some(format!("{own}/sharedx"))),
            ("../../../shared/x", Some("shared/x".into())),
            ("../../other/workspace/x", Some("agents/other/workspace/x".into())),
            ("../../../..", None),
            ("../../../../etc/passwd", None),
        ] {
            let names = names(text, &agent, &scope).map(|names| names.join("/"));
            assert_eq!(names, leads_to, "{text}");
        }
    }

    /// A token may grant the workspace of somebody else: it is reached by its own name only.
    #[test]
    fn a_granted_workspace_of_another_is_not_the_callers_own() {
        let (own, other) = (AgentId::new("a").unwrap(), AgentId::new("b").unwrap());
        let workspace = RootedPath::new(Root::Workspace(other), [""; 0]).unwrap();
        let scope = Paths::new([Rule { path: workspace, rights: Rights::READ }]).unwrap();
        for (text, leads_to) in [
            ("workspace/x", "agents/a/workspace/workspace/x"),
            ("../../b/workspace/x", "agents/b/workspace/x"),
        ] {
            let names = names(text, &own, &scope).unwrap();
            assert_eq!(names.join("/"), leads_to, "{text}");
        }
    }

    #[test]
    fn only_workspaces_lie_below_agents() {
        assert_eq!(rooted(&["agents", "a", "workspace", "x"]).unwrap().below(), "x");
        for outside in [&["agents"][..], &["agents", "a"], &["agents", "a", "other"], &[]] {
            assert_eq!(rooted(outside), None);
        }
    }
}
