//! Arguments: checked against the manifest, completed by defaults.

use alloc::{format, string::String};
use core::fmt;

use syscap_format::summary::summary;
use syscap_format::{
    Canonical, ENVELOPE_BYTES_MAX, Extra, Item, ItemKind, Manifest, PARAMS_MAX, Param, ParamType,
    Presence, Reason, Refused, kind_name,
};

/// Checks arguments against the manifest, drops optional nulls that the tool's own schema does not
/// permit, adds defaults. `None` where they are as they must be.
pub(crate) fn conform(manifest: &Manifest, args: Item<'_>) -> Result<Option<Canonical>, Refused> {
    if args.kind() != ItemKind::Map {
        return Err(Refused::new(Reason::BadArgument).field("args").allowed("map"));
    }
    let (params, mut same) = (&manifest.params, true);
    let mut given = [false; PARAMS_MAX];
    let mut foreign = Foreign(None);
    for (name, value) in args.entries() {
        let named = params.iter().zip(given.iter_mut()).find(|(param, _)| *param.name == *name);
        let Some((param, given)) = named else {
            if manifest.extra == Extra::Taken {
                continue;
            }
            return Err(unknown(manifest, name, args));
        };
        if value.is_null() && foreign.permits_null(manifest, name) {
            *given = true;
            continue;
        }
        if is_left_out(param, value) {
            same = false;
            continue;
        }
        check(param, value)?;
        *given = true;
    }
    for (param, _) in params.iter().zip(given).filter(|(_, given)| !given) {
        if param.default.is_some() {
            same = false;
        } else if param.presence == Presence::Required {
            return Err(missing(manifest, param, args));
        }
    }
    Ok((!same).then(|| completed(manifest, args, &given)))
}

/// The arguments that a policy decides about, where they are others than those that the tool gets:
/// an optional null is to it as an argument that was not given.
pub(crate) fn decided(manifest: &Manifest, args: Item<'_>) -> Option<Canonical> {
    // Only such a tool is given one.
    manifest.definition_bytes.as_ref()?;
    let stays = |(name, value): &(&str, Item<'_>)| {
        find(manifest, name).is_none_or(|param| !is_left_out(param, *value))
    };
    let all_stay = args.entries().all(|entry| stays(&entry));
    (!all_stay).then(|| Canonical::map(args.entries().filter(stays).collect()))
}

/// A foreign tool's own schema of its arguments: read once, and only for a call with an argument
/// that is null.
struct Foreign(Option<Option<Canonical>>);

impl Foreign {
    /// True if the tool's own schema has a meaning for null there.
    fn permits_null(&mut self, manifest: &Manifest, name: &str) -> bool {
        let whole = self.0.get_or_insert_with(|| manifest.whole_definition()).as_ref();
        let schema = whole.and_then(|whole| whole.item().get("inputSchema"));
        let schema = schema.and_then(|schema| schema.get("properties")?.get(name));
        schema.is_some_and(permits_null)
    }
}

/// True if a JSON Schema permits null: by its `type`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`,
/// and OpenAPI's `nullable`. Other keywords are left to the tool's author. A schema nests no deeper
/// than data may.
fn permits_null(schema: Item<'_>) -> bool {
    if schema.kind() != ItemKind::Map {
        return schema.as_bool() == Some(true);
    }
    let all = |key: &str, holds: &dyn Fn(Item<'_>) -> bool| schema.get(key).is_none_or(holds);
    let nullable = schema.get("nullable").and_then(Item::as_bool) == Some(true);
    let of_type = |types: Item<'_>| {
        let is_null = |one: Item<'_>| one.as_text() == Some("null");
        nullable || is_null(types) || types.elements().any(is_null)
    };
    let some = |list: Item<'_>| list.elements().any(permits_null);
    all("type", &of_type)
        && all("enum", &|list| list.elements().any(Item::is_null))
        && all("const", &|one: Item<'_>| one.is_null())
        && all("anyOf", &some)
        && all("oneOf", &some)
        && all("allOf", &|list| list.elements().all(permits_null))
}

/// True if an argument is null, and may be left out.
fn is_left_out(param: &Param, value: Item<'_>) -> bool {
    value.is_null() && param.presence == Presence::Optional
}

/// The arguments without those that are left out, and with the defaults of those not given.
fn completed(manifest: &Manifest, args: Item<'_>, given: &[bool]) -> Canonical {
    let is_given = |name: &str| {
        let mut params = manifest.params.iter().zip(given);
        params.find(|(param, _)| *param.name == *name).is_none_or(|(_, given)| *given)
    };
    let stays = |(name, _): &(&str, Item<'_>)| is_given(name);
    let absent = manifest.params.iter().zip(given).filter(|(_, given)| !**given);
    let defaults = absent.filter_map(|(param, _)| {
        param.default.as_ref().map(|default| (&*param.name, default.item()))
    });
    Canonical::map(args.entries().filter(stays).chain(defaults).collect())
}

/// The arguments with a text in the place of one of them; `None` where that is no declared path
/// that is there, or the text does not fit.
pub(crate) fn replace(
    manifest: &Manifest,
    args: Item<'_>,
    name: &str,
    text: &str,
) -> Option<Canonical> {
    let param = find(manifest, name).filter(|param| param.kind == ParamType::Path)?;
    args.get(name)?;
    let text = Canonical::text(text);
    let with = |(key, value)| (key, if key == name { text.item() } else { value });
    let replaced = Canonical::map(args.entries().map(with).collect());
    let fits = check(param, text.item()).is_ok();
    (fits && replaced.as_bytes().len() <= ENVELOPE_BYTES_MAX).then_some(replaced)
}

fn find<'m>(manifest: &'m Manifest, name: &str) -> Option<&'m Param> {
    manifest.params.iter().find(|param| *param.name == *name)
}

/// All of a call's names that the tool doesn't have, and those that it has: one repair is enough.
fn unknown(manifest: &Manifest, first: &str, args: Item<'_>) -> Refused {
    let unknown = args.entries().map(|(name, _)| name).filter(|n| find(manifest, n).is_none());
    let taken = manifest.params.iter().map(|param| match param.presence {
        Presence::Required if param.default.is_none() => format!("{}: {}", param.name, param.kind),
        _ => format!("{}?: {}", param.name, param.kind),
    });
    let taken = summary(taken);
    let taken = if taken.is_empty() { "no arguments" } else { &taken };
    let refused = Refused::new(Reason::UnknownArgument).field(first);
    refused.got(&summary(unknown)).allowed(taken)
}

/// All that lacks.
fn missing(manifest: &Manifest, first: &Param, args: Item<'_>) -> Refused {
    let lacks = manifest.params.iter().filter(|param| {
        param.presence == Presence::Required
            && param.default.is_none()
            && args.get(&param.name).is_none()
    });
    let lacks = summary(lacks.map(|param| format!("{}: {}", param.name, TypeAndBounds(param))));
    Refused::new(Reason::MissingArgument).field(&first.name).allowed(&lacks)
}

/// Type and bounds, with what they count: `text of 1 to 4096 bytes`.
struct TypeAndBounds<'a>(&'a Param);

impl fmt::Display for TypeAndBounds<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Param { kind, min, max, .. } = self.0;
        let (of, unit) = match kind {
            ParamType::Any | ParamType::Int | ParamType::Bool | ParamType::Number => ("", ""),
            ParamType::List | ParamType::Map | ParamType::Argv => ("of ", " items"),
            _ => ("of ", " bytes"),
        };
        let from = if of.is_empty() { "from " } else { of };
        match (min, max) {
            (Some(min), Some(max)) => write!(f, "{kind} {from}{min} to {max}{unit}"),
            (Some(min), None) => write!(f, "{kind} {of}at least {min}{unit}"),
            (None, Some(max)) => write!(f, "{kind} {of}at most {max}{unit}"),
            (None, None) => f.write_str(kind.name()),
        }
    }
}

fn check(param: &Param, value: Item<'_>) -> Result<(), Refused> {
    let bad =
        || Refused::new(Reason::BadArgument).field(&param.name).allowed(&TypeAndBounds(param));
    let right_type = match param.kind {
        ParamType::Any => true,
        ParamType::Text | ParamType::Path | ParamType::Code => value.kind() == ItemKind::Text,
        ParamType::Int => matches!(value.kind(), ItemKind::Uint | ItemKind::Negative),
        ParamType::Bool => value.kind() == ItemKind::Bool,
        ParamType::Bytes => value.kind() == ItemKind::Bytes,
        ParamType::List => value.kind() == ItemKind::Array,
        ParamType::Argv => {
            value.kind() == ItemKind::Array
                && value.elements().all(|one| one.kind() == ItemKind::Text)
        }
        ParamType::Map => value.kind() == ItemKind::Map,
        ParamType::Number => {
            matches!(value.kind(), ItemKind::Uint | ItemKind::Negative | ItemKind::Float)
        }
    };
    if !right_type {
        return Err(bad().got(&described(value)));
    }
    let size = match value.kind() {
        ItemKind::Text => value.as_text().map(|text| length(text.len())),
        ItemKind::Bytes => value.as_byte_string().map(|bytes| length(bytes.len())),
        ItemKind::Array | ItemKind::Map => Some(length(value.count())),
        ItemKind::Uint | ItemKind::Negative => value.as_int(),
        _ => None,
    };
    let within = size.is_none_or(|size| {
        param.min.is_none_or(|min| size >= i128::from(min))
            && param.max.is_none_or(|max| size <= i128::from(max))
    });
    if within { Ok(()) } else { Err(bad().got(&Measured(value, size.unwrap_or_default()))) }
}

/// The given value, where another type is needed. A map is described by its keys: it may be a
/// result that was referred to as a whole.
fn described(value: Item<'_>) -> String {
    match value.kind() {
        ItemKind::Map if value.count() > 0 => {
            format!("map of {}", summary(value.entries().map(|(key, _)| key)))
        }
        kind => String::from(kind_name(kind)),
    }
}

/// The given value, in the unit of its bounds.
struct Measured<'a>(Item<'a>, i128);

impl fmt::Display for Measured<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(value, size) = self;
        match value.kind() {
            ItemKind::Text | ItemKind::Bytes => write!(f, "{size} bytes"),
            ItemKind::Array | ItemKind::Map => write!(f, "{size} items"),
            _ => write!(f, "{size}"),
        }
    }
}

fn length(len: usize) -> i128 {
    u64::try_from(len).map_or(i128::MAX, i128::from)
}
