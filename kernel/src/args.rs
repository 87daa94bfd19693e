//! Arguments: references resolved, checked against the manifest, completed by defaults.

use alloc::{borrow::Cow, string::String, vec::Vec};

use crate::{
    cbor::{Canonical, Encoder, Item, Kind, Profile},
    id::Seq,
    limits::{ENVELOPE_BYTES_MAX, REFERENCES_MAX},
    manifest::{Extra, Manifest, Param, ParamType, Presence},
    reason::{Reason, Refused},
};

/// A reference to an earlier result, by record and path into it.
pub(crate) struct Reference<'a> {
    pub(crate) record: Seq,
    path: Item<'a>,
}

/// The references in arguments, in the order in which they stand.
///
/// # Errors
/// [`Reason::BadReference`] where one has another form or there are more than
/// [`REFERENCES_MAX`].
pub(crate) fn references(args: Item<'_>) -> Result<Vec<Seq>, Refused> {
    let mut found = Vec::new();
    collect(args, &mut found)?;
    if found.len() > REFERENCES_MAX {
        return Err(Refused::new(Reason::BadReference));
    }
    Ok(found)
}

fn collect(item: Item<'_>, found: &mut Vec<Seq>) -> Result<(), Refused> {
    match item.kind() {
        Kind::Array => item.elements().try_for_each(|element| collect(element, found)),
        Kind::Map => match escape(item)? {
            Escape::Reference(reference) => {
                found.push(reference.record);
                Ok(())
            }
            Escape::Literal(_) => Ok(()),
            Escape::None => item.entries().try_for_each(|(_, value)| collect(value, found)),
        },
        _ => Ok(()),
    }
}

/// Replaces each reference by what `lookup` finds and each `$lit` by its content. What is put
/// in is never looked at again.
pub(crate) fn resolve<'a, F>(args: Item<'a>, mut lookup: F) -> Result<Cow<'a, [u8]>, Refused>
where
    F: FnMut(&Reference<'_>) -> Result<Canonical, Refused>,
{
    // A dollar sign in a key is rare; without one, arguments stand as they came.
    if !has_escape(args) {
        return Ok(Cow::Borrowed(args.as_bytes()));
    }
    let mut encoder = Encoder::with_capacity(args.as_bytes().len());
    rewrite(args, &mut encoder, &mut lookup)?;
    let resolved = encoder.into_bytes();
    // What was put in may have made it larger, or deeper, than a caller may send.
    if resolved.len() > ENVELOPE_BYTES_MAX {
        return Err(Refused::new(Reason::TooLarge).field("args"));
    }
    match Item::check(&resolved, Profile::DATA) {
        Ok(_) => Ok(Cow::Owned(resolved)),
        Err(_) => Err(Refused::new(Reason::TooDeep).field("args")),
    }
}

fn has_escape(item: Item<'_>) -> bool {
    match item.kind() {
        Kind::Array => item.elements().any(has_escape),
        Kind::Map => {
            item.entries().any(|(key, value)| matches!(key, "$ref" | "$lit") || has_escape(value))
        }
        _ => false,
    }
}

fn rewrite<F>(item: Item<'_>, encoder: &mut Encoder, lookup: &mut F) -> Result<(), Refused>
where
    F: FnMut(&Reference<'_>) -> Result<Canonical, Refused>,
{
    match item.kind() {
        Kind::Array => {
            encoder.array(item.count());
            item.elements().try_for_each(|element| rewrite(element, encoder, lookup))
        }
        Kind::Map => match escape(item)? {
            Escape::Reference(reference) => {
                encoder.item(lookup(&reference)?.item());
                // Stops before sixteen large results are put together.
                if encoder.len() > ENVELOPE_BYTES_MAX {
                    return Err(Refused::new(Reason::TooLarge).field("args"));
                }
                Ok(())
            }
            Escape::Literal(content) => {
                encoder.item(content);
                Ok(())
            }
            Escape::None => {
                encoder.map(item.count());
                item.entries().try_for_each(|(key, value)| {
                    encoder.text(key);
                    rewrite(value, encoder, lookup)
                })
            }
        },
        _ => {
            encoder.item(item);
            Ok(())
        }
    }
}

enum Escape<'a> {
    None,
    Literal(Item<'a>),
    Reference(Reference<'a>),
}

fn escape(map: Item<'_>) -> Result<Escape<'_>, Refused> {
    let mut entries = map.entries();
    let (Some((key, value)), None) = (entries.next(), entries.next()) else {
        return Ok(Escape::None);
    };
    match key {
        "$lit" => Ok(Escape::Literal(value)),
        "$ref" => {
            let bad = || Refused::new(Reason::BadReference);
            let record = value.get("record").and_then(Item::as_uint).ok_or_else(bad)?;
            let path = value.get("path").ok_or_else(bad)?;
            if value.count() != 2 || path.kind() != Kind::Array {
                return Err(bad());
            }
            Ok(Escape::Reference(Reference { record: Seq::new(record), path }))
        }
        _ => Ok(Escape::None),
    }
}

impl Reference<'_> {
    /// The part of `result` that the path names: text for keys, integers for places in lists.
    pub(crate) fn pick(&self, result: Item<'_>) -> Result<Canonical, Refused> {
        let unknown = || Refused::new(Reason::UnknownReference).field("$ref");
        let mut at = result;
        for step in self.path.elements() {
            let next = match (step.as_text(), step.as_uint()) {
                (Some(key), _) => at.get(key),
                (None, Some(place)) => {
                    usize::try_from(place).ok().and_then(|place| at.elements().nth(place))
                }
                (None, None) => None,
            };
            at = next.ok_or_else(unknown)?;
        }
        Ok(Canonical::from(at))
    }
}

/// Checks arguments against the manifest, drops optional nulls, adds defaults.
pub(crate) fn conform<'a>(
    manifest: &Manifest,
    args: Cow<'a, [u8]>,
) -> Result<Cow<'a, [u8]>, Refused> {
    let map = Item::trusted(&args);
    if map.kind() != Kind::Map {
        return Err(Refused::new(Reason::BadArgument).field("args").allowed("a map"));
    }
    let mut given: Vec<(&str, Item<'_>)> = Vec::with_capacity(map.count());
    let mut same = true;
    for (name, value) in map.entries() {
        let Some(param) = find(manifest, name) else {
            if manifest.extra == Extra::Taken {
                given.push((name, value));
                continue;
            }
            return Err(Refused::new(Reason::UnknownArgument)
                .field(name)
                .allowed(&names(manifest)));
        };
        if value.is_null() && param.presence == Presence::Optional {
            same = false;
            continue;
        }
        check(param, value)?;
        given.push((name, value));
    }
    for param in &manifest.params.0 {
        if given.iter().any(|(name, _)| *name == &*param.name) {
            continue;
        }
        match &param.default {
            Some(default) => {
                same = false;
                given.push((&param.name, default.item()));
            }
            None if param.presence == Presence::Required => {
                return Err(Refused::new(Reason::MissingArgument)
                    .field(&param.name)
                    .allowed(param.kind.name()));
            }
            None => {}
        }
    }
    if same {
        return Ok(args);
    }
    given.sort_by(|(a, _), (b, _)| a.len().cmp(&b.len()).then_with(|| a.cmp(b)));
    let mut encoder = Encoder::with_capacity(args.len());
    encoder.map(given.len());
    for (name, value) in given {
        encoder.text(name);
        encoder.item(value);
    }
    Ok(Cow::Owned(encoder.into_bytes()))
}

fn find<'m>(manifest: &'m Manifest, name: &str) -> Option<&'m Param> {
    manifest.params.0.iter().find(|param| *param.name == *name)
}

fn names(manifest: &Manifest) -> String {
    let mut names = String::new();
    for param in &manifest.params.0 {
        if !names.is_empty() {
            names.push_str(", ");
        }
        names.push_str(&param.name);
    }
    names
}

fn check(param: &Param, value: Item<'_>) -> Result<(), Refused> {
    let bad = || {
        let bounds = match (param.min, param.max) {
            (Some(min), Some(max)) => alloc::format!("{} from {min} to {max}", param.kind),
            _ => String::from(param.kind.name()),
        };
        Refused::new(Reason::BadArgument).field(&param.name).allowed(&bounds)
    };
    let right_type = match param.kind {
        ParamType::Any => true,
        ParamType::Text | ParamType::Path => value.kind() == Kind::Text,
        ParamType::Int => matches!(value.kind(), Kind::Uint | Kind::Negative),
        ParamType::Bool => value.kind() == Kind::Bool,
        ParamType::Bytes => value.kind() == Kind::Bytes,
        ParamType::List => value.kind() == Kind::Array,
        ParamType::Map => value.kind() == Kind::Map,
        ParamType::Number => matches!(value.kind(), Kind::Uint | Kind::Negative | Kind::Float),
    };
    if !right_type {
        return Err(bad().got(kind_name(value.kind())));
    }
    let size = match value.kind() {
        Kind::Text => value.as_text().map(|text| length(text.len())),
        Kind::Bytes => value.as_byte_string().map(|bytes| length(bytes.len())),
        Kind::Array | Kind::Map => Some(length(value.count())),
        Kind::Uint | Kind::Negative => value.as_int(),
        _ => None,
    };
    let within = size.is_none_or(|size| {
        param.min.is_none_or(|min| size >= i128::from(min))
            && param.max.is_none_or(|max| size <= i128::from(max))
    });
    if within { Ok(()) } else { Err(bad()) }
}

fn length(len: usize) -> i128 {
    u64::try_from(len).map_or(i128::MAX, i128::from)
}

const fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Uint | Kind::Negative => "integer",
        Kind::Bytes => "bytes",
        Kind::Text => "text",
        Kind::Array => "list",
        Kind::Map => "map",
        Kind::Bool => "boolean",
        Kind::Null => "null",
        Kind::Float => "float",
    }
}
