//! From a tool's definition, as its server gives it, to a manifest.
//!
//! The kernel checks the arguments' names, their presence and plain types by the input schema.
//! Other parts of a schema (nesting, bounds, patterns, alternatives) the kernel does not check: the
//! server validates its own arguments.

use rmcp::model::{JsonObject, MetaObject, Prompt, Tool, ToolAnnotations};
use serde_json::{Value, json};
use syscap::format::{
    Amounts, Canonical, DefinitionHash, Dimension, EffectClass, Extra, Label, Manifest, PARAMS_MAX,
    Param, ParamType, ToolId, definition_hash,
};

use crate::governed::{data, disown, names};
use crate::upstream::method::Method;

/// Largest definition, in canonical bytes.
const DEFINITION_BYTES_MAX: usize = 256 << 10;
/// Longest description of a tool in its manifest, in bytes. Clients see the whole.
const DESCRIPTION_BYTES_MAX: usize = 2_048;
/// Longest description of an argument, and longest name of one, in bytes.
const PARAM_BYTES_MAX: usize = 256;
/// How long a call may run, where nobody says.
const WALL_MS: u64 = 60_000;
/// How large a result may be, where nobody says.
const RESULT_BYTES: u64 = 1 << 20;
/// The processor time that a call reserves, which here only passes data on.
const CPU_US: u64 = 1_000_000;
/// How long the kernel may take to give a run up.
const GRACE_MS: u64 = 5_000;
/// The parts of a definition that are pinned as they came, shown to a client or not. Any other part
/// that a client is shown is pinned as it is shown.
const PINNED: [&str; 6] =
    ["name", "title", "description", "inputSchema", "outputSchema", "annotations"];

/// The same of a prompt's definition.
const PROMPT_PINNED: [&str; 4] = ["name", "title", "description", "arguments"];
/// How long a server may take to list its resources, or to watch one.
const LIST_MS: u64 = 10_000;
/// How large a list may be: as much as the kernel records.
const LIST_BYTES: u64 = 4 << 20;
/// How long a client, and the person before it, may take for an answer.
pub(crate) const ASK_MS: u64 = 600_000;

/// A tool as its server defines it; or a prompt, or what else of a server's can be called.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Definition {
    /// The method of its calls at the server.
    pub(crate) method: Method,
    /// The definition that clients are shown, without the name.
    pub(crate) tool: Tool,
    pub(crate) prompt: Option<Prompt>,
    /// The pinned parts: all that clients are shown.
    pub(crate) pinned: Canonical,
    /// Names what is pinned.
    pub(crate) hash: DefinitionHash,
}

/// Why a tool of a server is not offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Unfit {
    /// Not of MCP's form.
    #[error("it is no tool definition: {0}")]
    Form(String),
    /// Its name.
    #[error("its name is empty, too long, or has characters that are not seen")]
    Name,
    /// It nests too deep, or holds numbers that can't be said.
    #[error("its definition {0}")]
    Data(#[from] data::BadData),
    /// It is too large.
    #[error("its definition has {0} bytes, more than {DEFINITION_BYTES_MAX}")]
    Large(usize),
}

/// The limits of a call; the usual ones by default.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Limits {
    /// Longest run in milliseconds.
    pub(crate) wall_ms: Option<u64>,
    /// Largest result in bytes.
    pub(crate) result_bytes: Option<u64>,
}

impl Limits {
    /// The limits of a method: other calls wait for a list, and a person may take long.
    fn of(self, method: Method) -> Self {
        match method {
            Method::List => Self { wall_ms: Some(LIST_MS), result_bytes: Some(LIST_BYTES) },
            Method::Subscribe => Self { wall_ms: Some(LIST_MS), ..self },
            Method::Ask(_) => Self { wall_ms: Some(ASK_MS), ..self },
            Method::Tool | Method::Prompt | Method::Read | Method::Complete => self,
        }
    }

    fn wall_ms(self) -> u64 {
        self.wall_ms.unwrap_or(WALL_MS)
    }

    /// The amounts that a call reserves: more than a run may take. A run that is measured to have
    /// taken more than was set aside would use its token up.
    fn hold(self) -> Amounts {
        let wall_ms = self.wall_ms();
        let wall_ms = wall_ms.saturating_add(wall_ms / 4).saturating_add(GRACE_MS);
        Amounts::ZERO
            .with(Dimension::CpuUs, CPU_US)
            .with(Dimension::WallUs, wall_ms.saturating_mul(1_000))
    }
}

impl Definition {
    /// Reads one entry of `tools/list`.
    pub(crate) fn read(value: &Value) -> Result<Self, Unfit> {
        let form = |error: serde_json::Error| Unfit::Form(error.to_string());
        let mut tool: Tool = serde_json::from_value(value.clone()).map_err(form)?;
        tool.meta = tool.meta.and_then(others);
        if !names::is_fit(&tool.name) {
            return Err(Unfit::Name);
        }
        let shown = serde_json::to_value(&tool).map_err(form)?;
        let pinned = pinned(value, shown, &PINNED, Method::Tool)?;
        let hash = definition_hash(pinned.item());
        Ok(Self { method: Method::Tool, tool, prompt: None, pinned, hash })
    }

    /// Reads one entry of `prompts/list`.
    pub(crate) fn prompt(value: &Value) -> Result<Self, Unfit> {
        let form = |error: serde_json::Error| Unfit::Form(error.to_string());
        let mut prompt: Prompt = serde_json::from_value(value.clone()).map_err(form)?;
        prompt.meta = prompt.meta.and_then(others);
        if !names::is_fit(&prompt.name) {
            return Err(Unfit::Name);
        }
        let method = Method::Prompt;
        let shown = serde_json::to_value(&prompt).map_err(form)?;
        let pinned = pinned(value, shown, &PROMPT_PINNED, method)?;
        let hash = definition_hash(pinned.item());
        let (mut properties, mut required) = (JsonObject::new(), Vec::new());
        for argument in prompt.arguments.iter().flatten() {
            let schema = json!({"type": "string", "description": argument.description});
            properties.insert(argument.name.clone(), schema);
            required.extend(argument.required.unwrap_or(false).then(|| argument.name.clone()));
        }
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let tool = json!({"name": prompt.name, "title": prompt.title,
            "description": prompt.description, "inputSchema": schema});
        let tool = serde_json::from_value(tool).map_err(form)?;
        Ok(Self { method, tool, prompt: Some(prompt), pinned, hash })
    }

    /// The manifest of a method that a server has once: it has no definition of its own.
    pub(crate) fn single(method: Method) -> Result<Self, Unfit> {
        let text = json!({"type": "string"});
        let (words, properties) = match method {
            Method::List => ("Lists what resources a server has", json!({"of": text})),
            Method::Read => ("Reads a resource of a server", json!({"uri": text})),
            Method::Subscribe => {
                ("Hears when a resource of a server changes", json!({"uri": text}))
            }
            Method::Complete => ("Completes an argument", json!({"ref": {}, "argument": {}})),
            Method::Tool | Method::Prompt | Method::Ask(_) => {
                ("Lets a server ask the client", json!({}))
            }
        };
        let required: Vec<&String> =
            properties.as_object().into_iter().flat_map(|p| p.keys()).collect();
        let schema = json!({"type": "object", "properties": properties, "required": required});
        let value = json!({"name": method.id(), "description": words, "inputSchema": schema});
        let pinned = pinned(&value, Value::Null, &PINNED, method)?;
        let hash = definition_hash(pinned.item());
        let tool = serde_json::from_value(value).map_err(|e| Unfit::Form(e.to_string()))?;
        Ok(Self { method, tool, prompt: None, pinned, hash })
    }

    /// The upstream name.
    pub(crate) fn name(&self) -> &str {
        &self.tool.name
    }

    /// Its annotations.
    pub(crate) const fn annotations(&self) -> Option<&ToolAnnotations> {
        self.tool.annotations.as_ref()
    }

    /// The title and the description of its manifest.
    pub(crate) fn words(&self) -> (&str, &str) {
        let tool = &self.tool;
        let annotated = tool.annotations.as_ref().and_then(|says| says.title.as_deref());
        let title = tool.title.as_deref().or(annotated).unwrap_or(&tool.name);
        let description = tool.description.as_deref().unwrap_or_default();
        (cut(title, PARAM_BYTES_MAX), cut(description, DESCRIPTION_BYTES_MAX))
    }

    /// How much text its manifest has, in bytes.
    pub(crate) fn text_bytes(&self) -> usize {
        let (title, description) = self.words();
        let (params, _) = params(&self.tool.input_schema);
        let params = params.iter().map(|p| p.name.len().saturating_add(p.description.len()));
        let words = title.len().saturating_add(description.len());
        params.fold(words.saturating_add(self.pinned.as_bytes().len()), usize::saturating_add)
    }

    /// The manifest under that id and class.
    pub(crate) fn manifest(&self, id: ToolId, class: EffectClass, limits: Limits) -> Manifest {
        let (title, description) = self.words();
        let limits = limits.of(self.method);
        let mut manifest = Manifest::new(id, class)
            .described(title, description)
            .defined_as(&self.pinned)
            .labelled(Label::UNTRUSTED);
        let (params, extra) = params(&self.tool.input_schema);
        manifest.params = params;
        manifest.extra = extra;
        manifest.hold = limits.hold();
        manifest.wall_ms_max = Some(limits.wall_ms());
        manifest.result_bytes_max = limits.result_bytes.unwrap_or(RESULT_BYTES);
        manifest
    }
}

/// A server's `_meta` without our keys; `None` if nothing is left.
fn others(mut meta: MetaObject) -> Option<MetaObject> {
    meta.0.retain(|key, _| !disown::is_own(key));
    (!meta.0.is_empty()).then_some(meta)
}

/// The pinned parts, in canonical form: the named parts as they came, and all other shown parts. A
/// part that is neither named nor shown is not pinned.
fn pinned(came: &Value, shown: Value, keys: &[&str], method: Method) -> Result<Canonical, Unfit> {
    let part = |key: &&str| came.get(*key).map(|part| ((*key).to_owned(), part.clone()));
    let mut parts: JsonObject = keys.iter().filter_map(part).collect();
    if let Value::Object(shown) = shown {
        let others = shown.into_iter().filter(|(key, _)| !keys.contains(&key.as_str()));
        parts.extend(others);
    }
    // No tool is taken for anything else.
    if method != Method::Tool {
        parts.insert(String::from("method"), Value::from(method.id()));
    }
    let pinned: Canonical = data::to_canonical(&Value::Object(parts))?;
    let len = pinned.as_bytes().len();
    if len > DEFINITION_BYTES_MAX {
        return Err(Unfit::Large(len));
    }
    Ok(pinned)
}

/// The arguments, and whether there may be others. A schema that can't be said so takes all.
fn params(schema: &JsonObject) -> (Vec<Param>, Extra) {
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    // Either may declare arguments elsewhere.
    let elsewhere =
        ["allOf", "anyOf", "oneOf", "$ref", "patternProperties", "if", "dependentSchemas"];
    let plain = !elsewhere.iter().any(|key| schema.contains_key(*key));
    let properties = match schema.get("properties") {
        Some(Value::Object(map)) => map.clone(),
        _ => JsonObject::new(),
    };
    let required: Vec<&str> = match schema.get("required") {
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let fit = properties.keys().all(|name| name.len() <= PARAM_BYTES_MAX);
    if properties.len() > PARAMS_MAX || !fit {
        return (Vec::new(), Extra::Taken);
    }
    let params = properties.iter().map(|(name, schema)| {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        let text = cut(text, PARAM_BYTES_MAX);
        if required.contains(&name.as_str()) {
            Param::required(name, kind(schema), text)
        } else {
            Param::optional(name, kind(schema), text)
        }
    });
    let extra = if closed && plain { Extra::Refused } else { Extra::Taken };
    (params.collect(), extra)
}

/// A plain type. An integer may be written `1.0` in JSON, so it is a number here.
fn kind(schema: &Value) -> ParamType {
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => ParamType::Text,
        Some("integer" | "number") => ParamType::Number,
        Some("boolean") => ParamType::Bool,
        Some("array") => ParamType::List,
        Some("object") => ParamType::Map,
        _ => ParamType::Any,
    }
}

/// At most so many bytes, cut between characters.
fn cut(text: &str, bytes: usize) -> &str {
    let end = (0..=bytes.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
    end.and_then(|end| text.get(..end)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn manifest(definition: &Value) -> Manifest {
        let id = ToolId::new("srv.x").unwrap();
        Definition::read(definition).unwrap().manifest(id, EffectClass::Read, Limits::default())
    }

    #[test]
    fn params_from_the_top_level() {
        let manifest = manifest(&json!({
            "name": "x", "title": "X", "description": "does x",
            "inputSchema": {"type": "object", "required": ["s", "any", "ghost"],
                "additionalProperties": false, "properties": {
                "s": {"type": "string", "minLength": 3, "description": "an s"},
                "i": {"type": "integer"}, "n": {"type": "number"}, "b": {"type": "boolean"},
                "l": {"type": "array", "items": {"type": "string"}}, "m": {"type": "object"},
                "any": {"type": ["string", "null"]}, "ref": {"$ref": "#/$defs/x"}, "t": true}},
        }));
        let kinds: Vec<(String, ParamType)> =
            manifest.params.iter().map(|p| (p.name.to_string(), p.kind)).collect();
        let kind = |name: &str| kinds.iter().find(|(n, _)| n == name).unwrap().1;
        assert_eq!(kind("s"), ParamType::Text);
        assert_eq!(kind("i"), ParamType::Number);
        assert_eq!(kind("n"), ParamType::Number);
        assert_eq!(kind("b"), ParamType::Bool);
        assert_eq!(kind("l"), ParamType::List);
        assert_eq!(kind("m"), ParamType::Map);
        for name in ["any", "ref", "t"] {
            assert_eq!(kind(name), ParamType::Any, "{name}");
        }
        let required =
            manifest.params.iter().filter(|p| p.presence == syscap::format::Presence::Required);
        let required: Vec<&str> = required.map(|p| &*p.name).collect();
        assert_eq!(required.len(), 2);
        assert!(required.contains(&"s") && required.contains(&"any"));
        assert_eq!(manifest.extra, Extra::Refused);
        assert_eq!(manifest.label, Label::UNTRUSTED);
        assert_eq!(manifest.wall_ms_max, Some(60_000));
        assert!(manifest.hold.get(Dimension::WallUs) > 60_000_000);
        assert!(manifest.hold.get(Dimension::CpuUs) > 0);
        assert!(manifest.definition.is_some());
    }

    #[test]
    fn schemas_that_say_more_take_more() {
        for schema in [
            json!({"type": "object"}),
            json!({"additionalProperties": {"type": "string"}}),
            json!({"additionalProperties": false, "allOf": [{}]}),
            json!({"additionalProperties": false, "patternProperties": {"^x": {}}}),
        ] {
            let manifest = manifest(&json!({"name": "x", "inputSchema": schema}));
            assert_eq!(manifest.extra, Extra::Taken, "{schema}");
        }
        let many: JsonObject =
            (0..65).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
        let schema = json!({"additionalProperties": false, "properties": many});
        let manifest = manifest(&json!({"name": "x", "inputSchema": schema}));
        assert_eq!((manifest.params.len(), manifest.extra), (0, Extra::Taken));
    }

    #[test]
    fn the_hash_covers_what_a_model_reads_and_a_call_means() {
        let base = json!({"name": "x", "title": "t", "description": "d",
            "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": true}});
        let hash = |value: &Value| Definition::read(value).unwrap().hash;
        for key in PINNED {
            let mut other = base.clone();
            match key {
                "inputSchema" | "outputSchema" | "annotations" => {
                    other[key]["x"] = json!({"$ref": "#/y"});
                }
                _ => other[key] = json!("changed"),
            }
            assert_ne!(hash(&base), hash(&other), "{key}");
        }
        // Whatever else a client is shown is pinned too, and what nobody is shown is not.
        let shown = [("_meta", json!({"x": 1})), ("icons", json!([{"src": "https://a/b"}]))];
        for (key, value) in shown {
            let mut other = base.clone();
            other[key] = value;
            assert!(
                Definition::read(&other).unwrap().tool != Definition::read(&base).unwrap().tool
            );
            assert_ne!(hash(&base), hash(&other), "{key}");
        }
        let mut same = base.clone();
        same["_meta"] = json!({"dev.syscap/token": 1});
        same["unknown"] = json!("no client is shown this");
        assert_eq!(hash(&base), hash(&same));
        let list: Value = data::to_json(Definition::read(&base).unwrap().pinned.item());
        assert_eq!(list, base);
    }

    #[test]
    fn unfit_definition_is_not_offered() {
        let read = |value: Value| Definition::read(&value);
        assert!(matches!(read(json!({"name": "x"})), Err(Unfit::Form(_))));
        assert!(matches!(read(json!([])), Err(Unfit::Form(_))));
        let schema = json!({"type": "object"});
        assert_eq!(read(json!({"name": "a b", "inputSchema": schema})), Err(Unfit::Name));
        let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
        let deep = read(json!({"name": "x", "inputSchema": {"default": deep}}));
        assert!(matches!(deep, Err(Unfit::Data(_))), "{deep:?}");
        let large = "x".repeat(DEFINITION_BYTES_MAX);
        let large = read(json!({"name": "x", "inputSchema": {}, "description": large}));
        assert!(matches!(large, Err(Unfit::Large(_))));
    }

    #[test]
    fn descriptions_are_cut_between_characters() {
        assert_eq!(cut("ab\u{e9}", 3), "ab");
        assert_eq!(cut("ab\u{e9}", 4), "ab\u{e9}");
        let long = manifest(&json!({"name": "x", "inputSchema": {},
            "description": "\u{e9}".repeat(5_000)}));
        assert!(long.description.len() <= DESCRIPTION_BYTES_MAX);
    }
}
