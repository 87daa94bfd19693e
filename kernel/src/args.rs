//! Arguments: references resolved, checked against the manifest, completed by defaults.

use alloc::{format, string::String, vec::Vec};
use core::fmt;

use syscap_format::summary::summary;
use syscap_format::{
    Canonical, Decoder, ENVELOPE_BYTES_MAX, Encoder, Extra, Item, ItemKind, Manifest, PARAMS_MAX,
    Param, ParamType, Presence, Profile, REFERENCES_MAX, Reason, Refused, Seq, json, kind_name,
    levels,
};

/// A reference to an earlier result, by record and path into it.
pub(crate) struct Reference<'a> {
    pub(crate) record: Seq,
    pub(crate) path: Item<'a>,
}

/// What arguments refer to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// The records, and the paths into their results, in the order in which they stand.
    pub(crate) all: Vec<(Seq, Canonical)>,
    /// Whether there is anything to be replaced at all.
    escapes: bool,
}

/// The references in arguments. One pass: each byte is read once, however deep it lies.
///
/// # Errors
/// [`Reason::BadReference`] where one has another form or there are more than
/// [`REFERENCES_MAX`].
pub(crate) fn references(args: Item<'_>) -> Result<References, Refused> {
    let mut found = References::default();
    walk(&mut reader(args), &mut |piece| match piece {
        Piece::Reference(reference) => {
            found.escapes = true;
            if found.all.len() >= REFERENCES_MAX {
                let most = format!("at most {REFERENCES_MAX} references");
                return Err(bad_reference().allowed(&most));
            }
            found.all.push((reference.record, reference.path.into()));
            Ok(())
        }
        Piece::Literal(_) => {
            found.escapes = true;
            Ok(())
        }
        Piece::Array(_) | Piece::Map(_) | Piece::Key(_) | Piece::Value(_) => Ok(()),
    })?;
    Ok(found)
}

/// Replaces each reference by its part, in their order, and each `$lit` by its content. What is
/// put in is never looked at again. `None` where there is nothing to replace.
pub(crate) fn resolve(
    args: Item<'_>,
    references: &References,
    parts: &[Canonical],
) -> Result<Option<Canonical>, Refused> {
    let mut parts = parts.iter();
    if !references.escapes {
        return Ok(None);
    }
    let mut encoder = Encoder::with_capacity(args.as_bytes().len());
    walk(&mut reader(args), &mut |piece| {
        match piece {
            Piece::Array(count) => encoder.array(count),
            Piece::Map(count) => encoder.map(count),
            Piece::Key(key) => encoder.text(key),
            Piece::Value(value) | Piece::Literal(value) => encoder.item(value),
            // All parts together are no larger than arguments may be.
            Piece::Reference(_) => {
                let unknown = || Refused::new(Reason::UnknownReference).field("$ref.record");
                encoder.item(parts.next().ok_or_else(unknown)?.item());
            }
        }
        Ok(())
    })?;
    let resolved = encoder.into_bytes();
    // What was put in may have made it larger, or deeper, than a caller may send.
    if resolved.len() > ENVELOPE_BYTES_MAX {
        return Err(too_large(resolved.len()));
    }
    let Ok(resolved) = Canonical::check(resolved, Profile::DATA) else {
        return Err(Refused::new(Reason::TooDeep).field("args").allowed(&levels()));
    };
    // What was put in may have any keys. One that is no text names no argument: no manifest and
    // no policy would see it.
    if has_text_keys(&mut reader(resolved.item())).is_none() {
        let refused = Refused::new(Reason::BadArgument).field("args");
        return Err(refused.got("a key that is no text").allowed("text keys"));
    }
    Ok(Some(resolved))
}

/// `None` where a map of the item has other keys than text.
fn has_text_keys(decoder: &mut Decoder<'_>) -> Option<()> {
    match decoder.peek().ok()? {
        ItemKind::Array => (0..decoder.array().ok()?).try_for_each(|_| has_text_keys(decoder)),
        ItemKind::Map => (0..decoder.map_head().ok()?).try_for_each(|_| {
            decoder.text().ok()?;
            has_text_keys(decoder)
        }),
        _ => decoder.item().ok().map(|_| ()),
    }
}

fn too_large(len: usize) -> Refused {
    let refused = Refused::new(Reason::TooLarge).field("args").got(&format!("{len} bytes"));
    refused.allowed(&format!("at most {ENVELOPE_BYTES_MAX} bytes"))
}

/// What arguments consist of, in the order of their bytes.
enum Piece<'a> {
    Array(usize),
    Map(usize),
    Key(&'a str),
    Value(Item<'a>),
    Literal(Item<'a>),
    Reference(Reference<'a>),
}

fn reader(item: Item<'_>) -> Decoder<'_> {
    Decoder::new(item.as_bytes(), Profile::DATA)
}

/// Goes through one item, front to back. The item is canonical, so its depth is bounded, and a
/// fault of the codec can't come up; if one did, the call would be refused.
fn walk<'a, F>(decoder: &mut Decoder<'a>, each: &mut F) -> Result<(), Refused>
where
    F: FnMut(Piece<'a>) -> Result<(), Refused>,
{
    let malformed = |_| Refused::new(Reason::Malformed).field("args");
    match decoder.peek().map_err(malformed)? {
        ItemKind::Array => {
            let count = size(decoder.array().map_err(malformed)?);
            each(Piece::Array(count))?;
            (0..count).try_for_each(|_| walk(decoder, each))
        }
        ItemKind::Map => {
            let count = size(decoder.map_head().map_err(malformed)?);
            if count != 1 {
                each(Piece::Map(count))?;
            }
            for _ in 0..count {
                let key = decoder.text().map_err(malformed)?;
                match (count, key) {
                    (1, "$lit") => each(Piece::Literal(decoder.item().map_err(malformed)?))?,
                    (1, "$ref") => {
                        let value = decoder.item().map_err(malformed)?;
                        each(Piece::Reference(Reference::read(value)?))?;
                    }
                    _ => {
                        if count == 1 {
                            each(Piece::Map(count))?;
                        }
                        each(Piece::Key(key))?;
                        walk(decoder, each)?;
                    }
                }
            }
            Ok(())
        }
        _ => each(Piece::Value(decoder.item().map_err(malformed)?)),
    }
}

fn size(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

fn bad_reference() -> Refused {
    let refused = Refused::new(Reason::BadReference).field("$ref");
    refused.allowed("{\"record\": N, \"path\": [text or N, ..]}")
}

impl<'a> Reference<'a> {
    fn read(value: Item<'a>) -> Result<Self, Refused> {
        let record = value.get("record").and_then(Item::as_uint).ok_or_else(bad_reference)?;
        let path = value.get("path").ok_or_else(bad_reference)?;
        let fits = value.count() == 2
            && path.kind() == ItemKind::Array
            && path.count() <= usize::from(Profile::DATA.depth_max());
        if fits { Ok(Self { record: Seq::new(record), path }) } else { Err(bad_reference()) }
    }

    /// The part of `result` that the path names: text for keys, integers for places in lists.
    /// One cursor goes down; what it passes by is skipped once.
    pub(crate) fn pick(&self, result: Item<'_>) -> Result<Canonical, Refused> {
        let mut decoder = reader(result);
        for step in self.path.elements() {
            let here = decoder.clone();
            let entered = match (step.as_text(), step.as_uint()) {
                (Some(key), _) => enter_key(&mut decoder, key),
                (None, Some(place)) => enter_place(&mut decoder, place),
                (None, None) => None,
            };
            entered.ok_or_else(|| lost(step, here))?;
        }
        let part = decoder.item().ok();
        part.map(Canonical::from).ok_or(Refused::new(Reason::UnknownReference).field("$ref.path"))
    }
}

/// A step that leads nowhere, and what there is instead: the result was given to this session.
fn lost(step: Item<'_>, mut here: Decoder<'_>) -> Refused {
    let got = step.as_text().map_or_else(|| json::from_data(step), String::from);
    let allowed = match here.item() {
        Ok(map) if map.kind() == ItemKind::Map => {
            format!("one of: {}", summary(map.entries().map(|(key, _)| key)))
        }
        Ok(list) if list.kind() == ItemKind::Array => format!("less than {}", list.count()),
        _ => String::from("a path that ends before it"),
    };
    Refused::new(Reason::UnknownReference).field("$ref.path").got(&got).allowed(&allowed)
}

/// Moves to the value of a key of the map that comes next.
fn enter_key(decoder: &mut Decoder<'_>, key: &str) -> Option<()> {
    if decoder.peek().ok()? != ItemKind::Map {
        return None;
    }
    for _ in 0..decoder.map_head().ok()? {
        if decoder.text().ok()? == key {
            return Some(());
        }
        decoder.item().ok()?;
    }
    None
}

/// Moves to a place in the list that comes next.
fn enter_place(decoder: &mut Decoder<'_>, place: u64) -> Option<()> {
    if decoder.peek().ok()? != ItemKind::Array || place >= decoder.array().ok()? {
        return None;
    }
    (0..place).try_for_each(|_| decoder.item().ok().map(|_| ()))
}

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

/// What a tool says of its arguments itself, where somebody else defined it: read once, and only
/// for a call with an argument that is null.
struct Foreign(Option<Option<Canonical>>);

impl Foreign {
    /// Whether the tool's own schema has a meaning for null there.
    fn permits_null(&mut self, manifest: &Manifest, name: &str) -> bool {
        let whole = self.0.get_or_insert_with(|| manifest.whole_definition()).as_ref();
        let schema = whole.and_then(|whole| whole.item().get("inputSchema"));
        let schema = schema.and_then(|schema| schema.get("properties")?.get(name));
        schema.is_some_and(permits_null)
    }
}

/// Whether a JSON Schema permits null: by its `type`, `enum`, `const`, `anyOf`, `oneOf`, `allOf`,
/// and OpenAPI's `nullable`. What another keyword says is left to who wrote it. A schema nests no
/// deeper than data may.
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

/// Whether an argument is null, and may be left out.
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

/// What was given where another type is needed. Of a map its keys: it may be a result that was
/// referred to as a whole.
fn described(value: Item<'_>) -> String {
    match value.kind() {
        ItemKind::Map if value.count() > 0 => {
            format!("map of {}", summary(value.entries().map(|(key, _)| key)))
        }
        kind => String::from(kind_name(kind)),
    }
}

/// What was given, in what its bounds count.
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
