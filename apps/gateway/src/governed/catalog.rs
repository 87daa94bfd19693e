//! The tools as clients see them.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use syscap::format::summary::nearest;
use syscap::format::{EffectClass, Extra, Manifest, Param, ParamType, Presence, ToolId};
use syscap::provide::Standing;

use crate::{governed::manifest::Definition, governed::names, upstream::method::Method};

/// Most names that are known, of tools that are offered or were.
const NAMES_MAX: usize = 4_096;

/// A tool on record whose server is starting, for the first time or again.
#[derive(Clone, Debug)]
pub(crate) struct StartingTool {
    /// The server, by its place.
    pub(crate) server: usize,
    /// The name that clients have for it, where that is free.
    pub(crate) name: String,
    /// The definition that clients are shown. `None` where the record has the definition's hash
    /// alone.
    pub(crate) pinned: Option<Tool>,
}

#[derive(Clone, Debug)]
pub(crate) struct ServerTool {
    /// Which server, by its place.
    pub(crate) server: usize,
    /// As the server defines it.
    pub(crate) definition: Definition,
    /// The class on record.
    pub(crate) effect: EffectClass,
    /// True if an operator has set its class.
    pub(crate) set: bool,
    /// True if its results count as the operator's own word.
    pub(crate) trusted: bool,
    /// How many arguments look as if they named something, and are not limited.
    pub(crate) unlimited: usize,
    /// Its standing: callable, or not.
    pub(crate) standing: Standing,
}

/// All tools, and the names that clients have for them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Catalog {
    offered: BTreeMap<ToolId, ServerTool>,
    built_in: BTreeMap<ToolId, Manifest>,
    starting: BTreeMap<ToolId, StartingTool>,
    ids: BTreeMap<String, ToolId>,
    names: BTreeMap<ToolId, String>,
}

impl Catalog {
    /// The catalog of the servers' tools and the home's own. `prefixes` has a server's prefix by
    /// its place; it is empty where clients see upstream names as they are.
    ///
    /// The home's tools that are granted have the first right to their names: no server's tool
    /// is taken for one of them.
    ///
    /// A name in the catalog `before` stays, even if its tool is no longer offered: a learnt name
    /// never comes to mean another tool.
    pub(crate) fn new(
        offered: BTreeMap<ToolId, ServerTool>,
        built_in: Vec<Manifest>,
        granted: &BTreeSet<ToolId>,
        prefixes: &[String],
        before: &Self,
    ) -> Self {
        let prefix = |server: usize| prefixes.get(server).map_or("", String::as_str);
        let tools = offered.iter().filter(|(_, tool)| tool.definition.method == Method::Tool);
        let mut wanted: Vec<(ToolId, String, String)> = tools
            .map(|(id, tool)| {
                let name = tool.definition.name();
                (id.clone(), format!("{}{name}", prefix(tool.server)), format!("{id} {name}"))
            })
            .collect();
        // What is shown as it is named goes first, whatever its id.
        wanted.sort_by(|(a_id, a, _), (b_id, b, _)| a.cmp(b).then_with(|| a_id.cmp(b_id)));
        let own = built_in.iter().map(|manifest| {
            let id = &manifest.tool;
            (id.clone(), id.as_str().replace('.', "_"), format!("built-in {id}"))
        });
        let (mut first, last): (Vec<_>, Vec<_>) = own.partition(|(id, _, _)| granted.contains(id));
        first.extend(wanted);
        first.extend(last);
        let mut ids = names::visible(first, &before.ids);
        for (name, id) in &before.ids {
            if ids.len() < NAMES_MAX {
                ids.entry(name.clone()).or_insert_with(|| id.clone());
            }
        }
        let names = ids.iter().map(|(name, id)| (id.clone(), name.clone())).collect();
        let built_in =
            built_in.into_iter().map(|manifest| (manifest.tool.clone(), manifest)).collect();
        Self { offered, built_in, starting: BTreeMap::new(), ids, names }
    }

    /// Adds the tools of servers that are starting. A tool gets its name where that is free.
    pub(crate) fn with_starting(mut self, starting: BTreeMap<ToolId, StartingTool>) -> Self {
        for (id, tool) in &starting {
            let free = !self.ids.contains_key(&tool.name) && !self.names.contains_key(id);
            if free && self.ids.len() < NAMES_MAX {
                self.names.insert(id.clone(), tool.name.clone());
                self.ids.insert(tool.name.clone(), id.clone());
            }
        }
        self.starting = starting;
        self
    }

    /// The tools of servers that are starting.
    pub(crate) const fn starting(&self) -> &BTreeMap<ToolId, StartingTool> {
        &self.starting
    }

    /// True if the server of a tool is starting.
    pub(crate) fn is_starting(&self, id: &ToolId) -> bool {
        self.starting.contains_key(id)
    }

    /// The tool that clients call by that name.
    pub(crate) fn id(&self, name: &str) -> Option<&ToolId> {
        self.ids.get(name)
    }

    /// The name that clients have for a tool; the id, where it has none.
    pub(crate) fn name<'t>(&'t self, id: &'t str) -> &'t str {
        ToolId::new(id).and_then(|id| self.names.get(&id)).map_or(id, String::as_str)
    }

    /// The callable alternatives for a refusal: the granted tools by their clients' names, the
    /// nearest to `called` first.
    pub(crate) fn callable(&self, granted: &BTreeSet<ToolId>, called: &str) -> String {
        nearest(called, granted.iter().map(|id| self.name(id.as_str())))
    }

    /// The server's tool of that id.
    pub(crate) fn offered(&self, id: &ToolId) -> Option<&ServerTool> {
        self.offered.get(id)
    }

    /// Its class.
    pub(crate) fn class(&self, id: &ToolId) -> Option<EffectClass> {
        let own = self.built_in.get(id).map(|manifest| manifest.effect);
        own.or(self.offered.get(id).map(|tool| tool.effect))
    }

    /// True if the home runs it itself.
    pub(crate) fn is_built_in(&self, id: &str) -> bool {
        ToolId::new(id).is_some_and(|id| self.built_in.contains_key(&id))
    }

    /// How many tools the home runs itself.
    pub(crate) fn own(&self) -> usize {
        self.built_in.len()
    }

    pub(crate) const fn all(&self) -> &BTreeMap<ToolId, ServerTool> {
        &self.offered
    }

    /// The client's list, sorted by name: granted tools that can be called, now or once their
    /// server has started.
    pub(crate) fn list(&self, granted: &BTreeSet<ToolId>) -> Vec<Tool> {
        let shown = self.ids.iter().filter(|(_, id)| granted.contains(*id));
        shown.filter_map(|(name, id)| self.show(name, id)).collect()
    }

    fn show(&self, name: &str, id: &ToolId) -> Option<Tool> {
        let mut tool = match (self.offered.get(id), self.built_in.get(id)) {
            (Some(offered), _) if offered.standing == Standing::Ready => {
                offered.definition.tool.clone()
            }
            (None, Some(manifest)) => own(manifest),
            (None, None) => self.starting.get(id)?.pinned.clone()?,
            _ => return None,
        };
        tool.name = Cow::Owned(name.to_owned());
        Some(tool)
    }
}

/// A built-in tool as a client sees it.
fn own(manifest: &Manifest) -> Tool {
    let properties: JsonObject = manifest.params.iter().map(property).collect();
    let needed = |param: &&Param| param.presence == Presence::Required && param.default.is_none();
    let required: Vec<&str> = manifest.params.iter().filter(needed).map(|p| &*p.name).collect();
    let schema = json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": manifest.extra == Extra::Taken,
    });
    let schema = match schema {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    let mut tool =
        Tool::new(manifest.tool.to_string(), manifest.description.to_string(), Arc::new(schema));
    tool.title = Some(manifest.title.to_string());
    let effect = manifest.effect;
    let open = matches!(effect, EffectClass::ExternalRead | EffectClass::ExternalWrite);
    let reads = effect.is_read_only() || effect == EffectClass::ExternalRead;
    tool.annotations = Some(ToolAnnotations::new().read_only(reads).open_world(open));
    tool
}

fn property(param: &Param) -> (String, Value) {
    let kind = match param.kind {
        ParamType::Text | ParamType::Path | ParamType::Code => Some("string"),
        ParamType::Int => Some("integer"),
        ParamType::Number => Some("number"),
        ParamType::Bool => Some("boolean"),
        ParamType::List | ParamType::Argv => Some("array"),
        ParamType::Map | ParamType::Bytes => Some("object"),
        ParamType::Any => None,
    };
    let mut schema = JsonObject::new();
    if let Some(kind) = kind {
        schema.insert(String::from("type"), Value::from(kind));
    }
    schema.insert(String::from("description"), Value::from(&*param.description));
    (param.name.to_string(), Value::Object(schema))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(server: usize, name: &str, standing: Standing) -> ServerTool {
        let definition = json!({"name": name, "inputSchema": {"type": "object"}});
        let definition = Definition::read(&definition).unwrap();
        let (effect, set, trusted) = (EffectClass::Read, false, false);
        ServerTool { server, definition, effect, set, trusted, unlimited: 0, standing }
    }

    fn id(text: &str) -> ToolId {
        ToolId::new(text).unwrap()
    }

    fn catalog(granted: &BTreeSet<ToolId>, prefixes: &[String]) -> Catalog {
        let tools = [
            (id("a.read_file"), offered(0, "read_file", Standing::Ready)),
            (id("a.fs_read"), offered(0, "fs_read", Standing::Ready)),
            (id("a.gone"), offered(0, "gone", Standing::Changed)),
            (id("a.taken"), offered(0, "taken", Standing::Taken)),
        ];
        let own = Manifest::new(id("fs.read"), EffectClass::Read).param(Param::required(
            "path",
            ParamType::Path,
            "where",
        ));
        let tools = tools.into_iter().collect();
        Catalog::new(tools, vec![own], granted, prefixes, &Catalog::default())
    }

    #[test]
    fn only_what_is_granted_and_ready_is_shown() {
        let granted: BTreeSet<ToolId> =
            ["a.read_file", "a.gone", "a.taken", "fs.read", "b.ghost"].map(id).into();
        let catalog = catalog(&granted, &[String::new()]);
        let shown = catalog.list(&granted);
        let names: Vec<&str> = shown.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["fs_read", "read_file"]);
        assert_eq!(catalog.id("fs_read"), Some(&id("fs.read")));
        assert!(catalog.name("a.fs_read").starts_with("fs_read_"));
        assert_eq!(catalog.id("nothing"), None);
        assert_eq!(shown[0].input_schema["required"], json!(["path"]));
        assert_eq!(shown[0].input_schema["additionalProperties"], false);
    }

    /// A built-in tool that is not granted takes no name from a server's.
    #[test]
    fn ungranted_builtin_takes_no_name() {
        let catalog = catalog(&["a.fs_read"].map(id).into(), &[String::new()]);
        assert_eq!(catalog.id("fs_read"), Some(&id("a.fs_read")));
        assert!(catalog.name("fs.read").starts_with("fs_read_"));
    }

    /// A name whose tool is gone still means that tool; it is not shown.
    #[test]
    fn removed_tool_keeps_its_name() {
        let before = catalog(&BTreeSet::new(), &[String::new()]);
        let after = Catalog::new(BTreeMap::new(), Vec::new(), &BTreeSet::new(), &[], &before);
        assert_eq!(after.id("read_file"), Some(&id("a.read_file")));
        assert!(after.list(&[id("a.read_file")].into()).is_empty());
    }

    #[test]
    fn prefixes_are_the_servers() {
        let catalog = catalog(&BTreeSet::new(), &[String::from("a_")]);
        let shown = catalog.list(&["a.read_file", "fs.read"].map(id).into());
        let names: Vec<&str> = shown.iter().map(|tool| &*tool.name).collect();
        assert_eq!(names, ["a_read_file", "fs_read"]);
    }
}
