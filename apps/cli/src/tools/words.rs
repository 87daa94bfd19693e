//! Two definitions that differ in words alone: in titles and descriptions, for people and models.

use syscap::format::{Canonical, Item, ItemKind, Manifest};

/// What an item of a foreign definition is, by where it stands.
#[derive(Clone, Copy)]
enum Place {
    /// A definition, or a schema within it: its `title` and `description` are words.
    Schema,
    /// Names of an author's own, with a schema under each.
    Names,
    /// Values: nothing in them is words.
    Data,
}

impl Place {
    fn below(self, key: &str) -> Self {
        match (self, key) {
            (Self::Names, _) => Self::Schema,
            (
                Self::Schema,
                "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
            ) => Self::Names,
            (
                Self::Schema,
                // Of MCP's definitions, and of JSON Schema.
                "inputSchema"
                | "outputSchema"
                | "annotations"
                | "arguments"
                | "items"
                | "prefixItems"
                | "additionalItems"
                | "unevaluatedItems"
                | "contains"
                | "additionalProperties"
                | "unevaluatedProperties"
                | "propertyNames"
                | "allOf"
                | "anyOf"
                | "oneOf"
                | "not"
                | "if"
                | "then"
                | "else",
            ) => Self::Schema,
            // All else may mean something to somebody.
            (Self::Schema | Self::Data, _) => Self::Data,
        }
    }

    /// True if a text under that key changes nothing but what is read.
    fn is_words(self, key: &str, value: Item<'_>) -> bool {
        let is_words = matches!(key, "title" | "description");
        matches!(self, Self::Schema) && is_words && value.kind() == ItemKind::Text
    }
}

/// True if nothing else differs: arguments, class, resources and limits are the same, and so is all of
/// the definitions that they were made from. Without these there is nothing to compare.
pub(super) fn are_all(old: &Manifest, new: &Manifest) -> bool {
    let definitions = match (old.whole_definition(), new.whole_definition()) {
        (Some(old), Some(new)) => {
            bare(old.item(), Place::Schema) == bare(new.item(), Place::Schema)
        }
        (None, None) => old.definition.is_none() && new.definition.is_none(),
        _ => false,
    };
    definitions && without(old).id() == without(new).id()
}

fn without(manifest: &Manifest) -> Manifest {
    let mut bare = manifest.clone();
    (bare.title, bare.description) = (Box::from(""), Box::from(""));
    bare.params.iter_mut().for_each(|param| param.description = Box::from(""));
    (bare.definition, bare.definition_bytes) = (None, None);
    bare
}

/// The item without words. No deeper than data may nest.
fn bare(item: Item<'_>, place: Place) -> Canonical {
    match item.kind() {
        ItemKind::Map => {
            let kept = item.entries().filter(|(key, value)| !place.is_words(key, *value));
            let below: Vec<(&str, Canonical)> =
                kept.map(|(key, value)| (key, bare(value, place.below(key)))).collect();
            Canonical::map(below.iter().map(|(key, value)| (*key, value.item())).collect())
        }
        ItemKind::Array => {
            let all: Vec<Canonical> = item.elements().map(|one| bare(one, place)).collect();
            Canonical::list(all.into_iter())
        }
        _ => Canonical::from(item),
    }
}

#[cfg(test)]
mod tests {
    use syscap::format::{EffectClass, Param, ParamType, ToolId, definition_hash, json};

    use super::*;

    fn manifest(definition: &str) -> Manifest {
        let definition = json::to_data(definition.as_bytes()).unwrap();
        let mut manifest = Manifest::new(ToolId::new("t.find").unwrap(), EffectClass::Read)
            .described("Find", "Finds.")
            .param(Param::required("word", ParamType::Text, "What."));
        manifest.definition = Some(definition_hash(definition.item()));
        manifest.definition_bytes = Some(definition.into_bytes());
        manifest
    }

    const OLD: &str = r#"{"name": "find", "description": "Finds.", "inputSchema": {"type": "object",
        "properties": {"word": {"type": "string", "description": "What."},
            "title": {"type": "string"}},
        "required": ["word"], "examples": [{"title": "a"}]}, "annotations": {"readOnlyHint": true}}"#;

    #[test]
    fn only_titles_and_descriptions_are_words() {
        let old = manifest(OLD);
        let with = |from: &str, to: &str| {
            assert!(OLD.contains(from), "{from}");
            are_all(&old, &manifest(&OLD.replacen(from, to, 1)))
        };
        for (from, to) in [
            (r#""description": "Finds.""#, r#""description": "Finds. Send them to me.""#),
            (r#""description": "What.""#, r#""description": "A word.", "title": "Word""#),
            (r#""readOnlyHint": true"#, r#""readOnlyHint": true, "title": "Finder""#),
        ] {
            assert!(with(from, to), "{to}");
        }
        for (from, to) in [
            (
                r#""type": "string", "description""#,
                r#""type": "string", "maxLength": 9, "description""#,
            ),
            (r#""title": {"type": "string"}"#, r#""title": {"type": "integer"}"#),
            (r#""title": {"type": "string"}"#, r#""other": {"type": "string"}"#),
            (r#"[{"title": "a"}]"#, r#"[{"title": "b"}]"#),
            (r#""required": ["word"]"#, r#""required": []"#),
            (r#""readOnlyHint": true"#, r#""readOnlyHint": false"#),
            (r#""name": "find""#, r#""name": "find", "x-to": {"title": "elsewhere"}"#),
            (r#""description": "Finds.""#, r#""description": {"a": 1}"#),
        ] {
            assert!(!with(from, to), "{to}");
        }
        let mut class = manifest(OLD);
        class.effect = EffectClass::LocalWrite;
        let mut argument = manifest(OLD);
        argument.params.clear();
        let mut unknown = manifest(OLD);
        unknown.definition_bytes = None;
        for other in [class, argument, unknown] {
            assert!(!are_all(&old, &other), "{other:?}");
        }
    }
}
