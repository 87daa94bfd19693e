//! What a session's token grants, and what is left of it, for who shows tools to a model.

use std::collections::{BTreeMap, BTreeSet};

use syscap_format::field::shape;
use syscap_format::{
    Amounts, Canonical, EffectClass, Extra, Label, Manifest, MapBuilder, Param, ParamType,
    Presence, TokenId, ToolId, UnixMillis,
};
use syscap_kernel::Kernel;

use crate::inspect::view::{TokenStanding, ToolInfo};
use crate::server::Holding;
use crate::tools::provide::Standing;
use crate::transport::limits::MANIFESTS_BYTES_MAX;
use crate::{Error, Session};

/// Longest name that a model is told, in characters: the least that the providers of models take.
const NAME_CHARS_MAX: usize = 64;

shape! {
    /// A tool that a session's token grants, by the definition on record.
    pub struct GrantedTool {
        /// The id: calls name it.
        1 => pub tool: ToolId,
        /// The name for a model: at most 64 of `[A-Za-z0-9_-]`, another for each tool of the list.
        2 => pub name: String,
        /// Its title.
        3 => pub title: String,
        /// Its description.
        4 => pub description: String,
        /// The JSON Schema (2020-12) of its arguments, as a value.
        5 => pub schema: Canonical,
        /// The effect class.
        6 => pub effect: EffectClass,
        /// The label of its results.
        7 => pub label: Label,
        /// How it stands: calls of one that is [`Changed`](Standing::Changed) are refused.
        8 => pub standing: Standing,
        /// True if somebody runs it.
        9 => pub provided: bool,
    }
}

shape! {
    /// The tools that a session's token grants, sorted by id.
    pub struct Granted {
        /// As many as an answer holds.
        1 => pub tools: Vec<GrantedTool> [..crate::transport::limits::VIEW_TOOLS_MAX],
        /// How many there are.
        2 => pub in_all: u64,
    }
}

shape! {
    /// What is left of a session's token: the least of it and of those that it was derived from.
    pub struct Left {
        /// Whether it can be used.
        1 => pub standing: TokenStanding,
        /// Its limits.
        2 => pub limits: Amounts,
        /// What is left of them; of `concurrent` the places that are free.
        3 => pub left: Amounts,
        /// When it ends, in kernel time.
        4 => pub expires: UnixMillis,
        /// The kernel's time.
        5 => pub now: UnixMillis,
    }
}

impl Session {
    /// The tools that its token grants, by the definitions on record. It makes no record.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn tools(&self) -> Result<Granted, Error> {
        self.told(crate::server::request::Request::Tools)
    }

    /// What is left of its token. It makes no record.
    ///
    /// # Errors
    /// As [`Session::call`].
    pub fn left(&self) -> Result<Left, Error> {
        self.told(crate::server::request::Request::Left)
    }
}

/// The tools that a token grants.
pub(crate) fn granted(holding: &Holding, token: TokenId) -> Granted {
    let delegated = holding.providers.delegated();
    let delegated: BTreeMap<ToolId, _> =
        delegated.into_iter().map(|(manifest, offers)| (manifest.tool, offers)).collect();
    let mut found: Vec<(Manifest, ToolInfo)> = holding.look(|kernel| {
        let body = kernel.token(&token).map(|view| view.body);
        let granted: BTreeSet<&ToolId> =
            body.iter().flat_map(|body| body.grants.iter().map(|(tool, _)| tool)).collect();
        let meant = kernel.manifests().filter(|manifest| granted.contains(&manifest.tool));
        let all = meant.map(|manifest| {
            (manifest.clone(), ToolInfo::of(manifest, delegated.get(&manifest.tool)))
        });
        all.collect()
    });
    let in_all = u64::try_from(found.len()).unwrap_or(u64::MAX);
    found.sort_by(|(one, _), (other, _)| one.tool.cmp(&other.tool));
    let (mut names, mut bytes) = (BTreeSet::new(), 0_usize);
    let tools = found.into_iter().map_while(|(manifest, info)| {
        bytes = bytes.saturating_add(manifest.to_bytes().len());
        (bytes <= MANIFESTS_BYTES_MAX).then(|| of(&manifest, &info, &mut names))
    });
    Granted { tools: tools.collect(), in_all }
}

/// What is left of a token; `None` where there is none.
pub(crate) fn left(kernel: &Kernel, token: TokenId) -> Option<Left> {
    let (view, now) = (kernel.token(&token)?, kernel.now());
    Some(Left {
        standing: TokenStanding::of(&view, now),
        limits: *view.body.budget.amounts(),
        left: view.left,
        expires: view.body.expires,
        now,
    })
}

fn of(manifest: &Manifest, info: &ToolInfo, names: &mut BTreeSet<String>) -> GrantedTool {
    let name = name(manifest, names);
    names.insert(name.clone());
    GrantedTool {
        tool: manifest.tool.clone(),
        name,
        title: manifest.title.to_string(),
        description: manifest.description.to_string(),
        schema: schema(manifest),
        effect: manifest.effect,
        label: manifest.label,
        standing: info.standing,
        provided: info.provided,
    }
}

/// A name that providers of models take, and that no tool before has.
fn name(manifest: &Manifest, taken: &BTreeSet<String>) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let safe = manifest.tool.as_str().chars().map(|c| if fits(c) { c } else { '_' });
    let base: String = safe.take(NAME_CHARS_MAX).collect();
    let numbered = |n: usize| {
        let end = format!("_{n}");
        let room = NAME_CHARS_MAX.saturating_sub(end.len());
        base.chars().take(room).collect::<String>() + &end
    };
    match taken.contains(&base) {
        false => base,
        true => (2..).map(numbered).find(|name| !taken.contains(name)).unwrap_or_default(),
    }
}

/// The JSON Schema of a tool's arguments: its own, where its whole definition is on record, else one
/// made of what the manifest says.
fn schema(manifest: &Manifest) -> Canonical {
    if let Some(whole) = manifest.whole_definition()
        && let Some(own) = whole.item().get("inputSchema")
    {
        return own.into();
    }
    let params = manifest.params.iter();
    let properties = params
        .clone()
        .fold(MapBuilder::new(), |map, param| map.item(&param.name, argument(param).item()));
    let required = params.filter(|param| param.presence == Presence::Required);
    let required: Vec<Canonical> = required.map(|param| Canonical::text(&param.name)).collect();
    let required = Canonical::list(required.into_iter());
    let map = MapBuilder::new()
        .text("type", "object")
        .item("properties", properties.finish().item())
        .item("required", required.item());
    match manifest.extra {
        Extra::Refused => map.boolean("additionalProperties", false).finish(),
        Extra::Taken => map.finish(),
    }
}

/// The schema of an argument. Lengths in bytes bound those in characters from above only.
fn argument(param: &Param) -> Canonical {
    let kind = |name: &str| MapBuilder::new().text("type", name);
    let most = |map: MapBuilder, name: &str| match param.max {
        Some(max) => map.uint(name, max),
        None => map,
    };
    let some = |map: MapBuilder, name: &str| match param.min {
        Some(1..) => map.uint(name, 1),
        _ => map,
    };
    let map = match param.kind {
        ParamType::Any => MapBuilder::new(),
        ParamType::Text | ParamType::Path | ParamType::Code => {
            some(most(kind("string"), "maxLength"), "minLength")
        }
        ParamType::Int => match param.min {
            Some(min) => most(kind("integer"), "maximum").uint("minimum", min),
            None => most(kind("integer"), "maximum"),
        },
        ParamType::Bool => kind("boolean"),
        ParamType::Number => kind("number"),
        ParamType::Map => kind("object"),
        ParamType::List => some(most(kind("array"), "maxItems"), "minItems"),
        ParamType::Argv => {
            let texts = kind("string").finish();
            some(most(kind("array"), "maxItems"), "minItems").item("items", texts.item())
        }
        // As JSON has byte strings: see the table of escapes.
        ParamType::Bytes => {
            let text = kind("string").finish();
            let bytes = MapBuilder::new().item("$bytes", text.item()).finish();
            let required = Canonical::list([Canonical::text("$bytes")].into_iter());
            let map = kind("object").item("properties", bytes.item());
            map.item("required", required.item()).boolean("additionalProperties", false)
        }
    };
    let map = match &param.default {
        Some(default) => map.item("default", default.item()),
        None => map,
    };
    map.text("description", &param.description).finish()
}
