//! Writing what a token grants into a resume: what does not change keeps its bytes.

use std::ops::Range;

use syscap_format::{
    AgentId, Canonical, Grants, Manifest, Name, Paths, Rights, RootedPath, Rule, Scope, ToolGrant,
    ToolId, json,
};
use syscap_syscalls::{fs::PATH_DIMENSION, org::OUTBOX_DIMENSION};

use crate::runtime::resume::compile::find;
use crate::runtime::resume::error::ResumeError;
use crate::runtime::resume::paths;
use crate::runtime::resume::read::{LISTS, PERMISSIONS, Resume};
use crate::runtime::resume::text::{Kind, Value};

/// The names of the seed: a tool that has one is written by it, so that others know it.
const SEED: [&str; 9] = [
    "file_read",
    "file_write",
    "file_list",
    "shell",
    "memory_read",
    "memory_write",
    "create_agent",
    "list_agents",
    "send_message",
];

/// A resume that was written.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Written {
    /// The new text.
    pub resume: Resume,
    /// The tools to which the token gives more than a resume can say.
    pub less: Vec<ToolId>,
}

/// A replacement for a range of the text.
type Edit = (Range<usize>, String);

impl Resume {
    /// The resume with `permissions.tools`, `.file_access` and `.send_outboxes` as a token of the
    /// agent grants them, where `tools` are the home's. A section that says so already is left
    /// alone, whatever its form, and so is an entry of a list that stays. Names that are no tool
    /// here stay in `tools`: they give nothing.
    ///
    /// # Errors
    /// [`ResumeError::Wider`] where what a resume can say would give a tool more than the token
    /// does; [`ResumeError::Name`]; as [`Resume::compile`] of what is there.
    pub fn with(
        &self,
        agent: &AgentId,
        granted: &Grants,
        tools: &[Manifest],
    ) -> Result<Written, ResumeError> {
        self.expect(agent)?;
        let given = given_paths(granted, tools)?;
        let mut edits = Vec::new();
        let mut missing = Vec::new();
        let permissions = self.whole.get(PERMISSIONS);
        let section = |key| permissions.and_then(|it| it.get(key));
        match section("tools") {
            Some(list) => edits.extend(self.tools_edit(list, granted, tools)),
            None => {
                let names = granted.iter().map(|(tool, _)| quote(name_of(tool, tools)));
                missing.push(("tools", list_of(names)));
            }
        }
        if !self.gives_paths(agent, granted, tools)? {
            match section("file_access") {
                Some(files) => edits.extend(self.files_edits(files, agent, given.as_ref())?),
                None => {
                    let lists = LISTS.map(|(key, _, right)| {
                        let paths = roots(given.as_ref(), right);
                        let paths = paths.iter().map(|path| quote(&paths::written(path)));
                        format!("\"{key}\": {}", list_of(paths))
                    });
                    missing.push(("file_access", format!("{{{}}}", lists.join(", "))));
                }
            }
        }
        let names = outboxes(granted);
        match section("send_outboxes") {
            Some(list) => edits.extend(self.outboxes_edit(list, &names)),
            None if names.is_empty() => {}
            None => missing.push(("send_outboxes", list_of(names.iter().map(|it| quote(it))))),
        }
        match permissions {
            Some(map) => edits.extend(self.insert(map, &missing)),
            None => {
                let sections = missing.iter().map(|(key, value)| format!("\"{key}\": {value}"));
                let sections = sections.collect::<Vec<_>>().join(", ");
                let permissions = [(PERMISSIONS, format!("{{{sections}}}"))];
                edits.extend(self.insert(&self.whole, &permissions));
            }
        }
        let resume = Self::read(self.edited(edits).as_bytes())?;
        let less = resume.compared(agent, granted, tools)?;
        Ok(Written { resume, less })
    }

    /// Reads what was written as whoever is given it would, and holds it against the token.
    fn compared(
        &self,
        agent: &AgentId,
        granted: &Grants,
        tools: &[Manifest],
    ) -> Result<Vec<ToolId>, ResumeError> {
        let said = self.compile(agent, tools, &[])?.grants;
        let is_wider = |(tool, grant): &(&ToolId, &ToolGrant)| {
            !granted.get(tool).is_some_and(|most| grant.leq(most))
        };
        if let Some((tool, _)) = said.iter().find(is_wider) {
            return Err(ResumeError::Wider { tool: tool.to_string() });
        }
        let less = granted
            .iter()
            .filter(|(tool, grant)| !said.get(tool).is_some_and(|said| grant.leq(said)));
        Ok(less.map(|(tool, _)| tool.clone()).collect())
    }

    fn tools_edit(&self, list: &Value, granted: &Grants, tools: &[Manifest]) -> Option<Edit> {
        let tool_of = |item: &Value| find(tools, text_of(item)).map(|manifest| &manifest.tool);
        let keep = |item: &Value| match tool_of(item) {
            Some(tool) => granted.get(tool).is_some(),
            None => true,
        };
        let items = items_of(list);
        let named = |tool: &ToolId| {
            items.iter().any(|item| tool_of(item) == Some(tool) || text_of(item) == tool.as_str())
        };
        let new = granted.iter().map(|(tool, _)| tool).filter(|tool| !named(tool));
        let new = new.map(|tool| quote(name_of(tool, tools))).collect();
        self.list_edit(list, keep, new)
    }

    fn files_edits(
        &self,
        files: &Value,
        agent: &AgentId,
        given: Option<&Paths>,
    ) -> Result<Vec<Edit>, ResumeError> {
        let (mut edits, mut missing) = (Vec::new(), Vec::new());
        for (key, place, right) in LISTS {
            let Some(list) = files.get(key) else {
                let new = roots(given, right);
                let new = list_of(new.iter().map(|path| quote(&paths::written(path))));
                missing.push((key, new));
                continue;
            };
            let mut kept = Vec::new();
            for item in items_of(list) {
                let path = paths::parse(agent, place, text_of(item))?;
                if given.is_some_and(|given| given.permits_tree(&path, right)) {
                    kept.push((item.span.start, path));
                }
            }
            let keep = |item: &Value| kept.iter().any(|(at, _)| *at == item.span.start);
            let new = roots(given, right).into_iter();
            let new = new.filter(|path| !kept.iter().any(|(_, kept)| path.is_within(kept)));
            let new = new.map(|path| quote(&paths::written(&path))).collect();
            edits.extend(self.list_edit(list, keep, new));
        }
        missing.retain(|(_, list)| list != "[]");
        edits.extend(self.insert(files, &missing));
        Ok(edits)
    }

    fn outboxes_edit(&self, list: &Value, names: &[&str]) -> Option<Edit> {
        let items = items_of(list);
        let new = names.iter().filter(|name| !items.iter().any(|item| text_of(item) == **name));
        let new = new.map(|name| quote(name)).collect();
        self.list_edit(list, |item| names.contains(&text_of(item)), new)
    }

    /// A list of which some items stay and to which others are added; `None` where it stays as it
    /// is. The space between items is that which the list has.
    fn list_edit(
        &self,
        list: &Value,
        keep: impl Fn(&Value) -> bool,
        new: Vec<String>,
    ) -> Option<Edit> {
        let items = items_of(list);
        let (kept, gone): (Vec<&Value>, Vec<&Value>) = items.iter().partition(|item| keep(item));
        if gone.is_empty() && new.is_empty() {
            return None;
        }
        let (start, end) = (list.span.start.saturating_add(1), list.span.end.saturating_sub(1));
        let [first, second] = [items.first(), items.get(1)];
        let head = first.map_or("", |first| self.part(start..first.span.start));
        let tail = items.last().map_or("", |last| self.part(last.span.end..end));
        let between = match (first, second) {
            (Some(first), Some(second)) => self.part(first.span.end..second.span.start).to_owned(),
            _ if head.contains('\n') => format!(",{head}"),
            _ => ", ".to_owned(),
        };
        let kept = kept.iter().map(|item| self.part(item.span.clone()).to_owned());
        let all: Vec<String> = kept.chain(new).collect();
        let text = match all.is_empty() {
            true => "[]".to_owned(),
            false => format!("[{head}{}{tail}]", all.join(&between)),
        };
        Some((list.span.clone(), text))
    }

    /// New entries at the end of a map, set apart as its last one is.
    fn insert(&self, map: &Value, new: &[(&str, String)]) -> Option<Edit> {
        if new.is_empty() {
            return None;
        }
        let new: Vec<String> =
            new.iter().map(|(key, value)| format!("\"{key}\": {value}")).collect();
        let Some(last) = map.entries().last() else {
            let at = map.span.start.saturating_add(1);
            return Some((at..at, new.join(", ")));
        };
        let before = self.part(map.span.start..last.at);
        let lead = before.get(before.trim_end().len()..).unwrap_or_default();
        let text: String = new.iter().map(|entry| format!(",{lead}{entry}")).collect();
        Some((last.value.span.end..last.value.span.end, text))
    }

    fn part(&self, span: Range<usize>) -> &str {
        self.text.get(span).unwrap_or_default()
    }

    fn edited(&self, mut edits: Vec<Edit>) -> String {
        edits.sort_by_key(|(span, _)| span.start);
        let (mut text, mut at) = (String::with_capacity(self.text.len()), 0);
        for (span, new) in edits {
            text.push_str(self.part(at..span.start));
            text.push_str(&new);
            at = span.end;
        }
        text.push_str(self.part(at..self.text.len()));
        text
    }
}

fn items_of(list: &Value) -> &[Value] {
    match &list.kind {
        Kind::List(items) => items,
        _ => &[],
    }
}

fn text_of(item: &Value) -> &str {
    match &item.kind {
        Kind::Text(text) => text,
        _ => "",
    }
}

fn quote(text: &str) -> String {
    json::from_item(Canonical::text(text).item())
}

fn list_of(items: impl Iterator<Item = String>) -> String {
    format!("[{}]", items.collect::<Vec<_>>().join(", "))
}

/// The name of a tool in a resume.
fn name_of<'t>(tool: &'t ToolId, tools: &'t [Manifest]) -> &'t str {
    let aliases = tools.iter().filter(|it| it.tool == *tool).flat_map(|it| &it.aliases);
    let mut names = aliases.map(ToolId::as_str);
    names.find(|alias| SEED.contains(alias)).unwrap_or(tool.as_str())
}

/// The paths that all tools together may use. A tool that runs programs always has fewer of them,
/// and counts only if no other tool has paths.
fn given_paths(granted: &Grants, tools: &[Manifest]) -> Result<Option<Paths>, ResumeError> {
    let runs_code =
        |tool: &ToolId| tools.iter().any(|manifest| manifest.tool == *tool && manifest.runs_code());
    let scopes = |programs: bool| -> Vec<&Paths> {
        let of = granted.iter().filter(|(tool, _)| runs_code(tool) == programs);
        of.filter_map(|(_, grant)| grant.scope(PATH_DIMENSION)).filter_map(as_paths).collect()
    };
    let scopes = Some(scopes(false)).filter(|it| !it.is_empty()).unwrap_or_else(|| scopes(true));
    let mut given = Vec::new();
    for Rule { path, .. } in scopes.iter().flat_map(|paths| paths.rules()) {
        let rights = scopes.iter().fold(Rights::NONE, |all, of| all.union(of.rights(path)));
        given.push((path.clone(), rights.intersection(Rights::READ.union(Rights::WRITE))));
    }
    given.retain(|(_, rights)| *rights != Rights::NONE);
    paths::together(&given)
}

fn as_paths(scope: &Scope) -> Option<&Paths> {
    match scope {
        Scope::Paths(paths) => Some(paths),
        _ => None,
    }
}

/// The paths that give a right, none of them below another.
fn roots(given: Option<&Paths>, right: Rights) -> Vec<RootedPath> {
    let rules = given.map(Paths::rules).unwrap_or_default();
    let mut found: Vec<RootedPath> = Vec::new();
    for rule in rules.iter().filter(|rule| right.leq(rule.rights)) {
        if !found.iter().any(|above| rule.path.is_within(above)) {
            found.push(rule.path.clone());
        }
    }
    found
}

/// Whom the token lets be sent to.
fn outboxes(granted: &Grants) -> Vec<&str> {
    let mut found: Vec<&str> = Vec::new();
    for (_, grant) in granted.iter() {
        if let Some(Scope::Names(names)) = grant.scope(OUTBOX_DIMENSION) {
            found.extend(names.as_slice().iter().map(Name::as_str));
        }
    }
    found.sort_unstable();
    found.dedup();
    found
}
