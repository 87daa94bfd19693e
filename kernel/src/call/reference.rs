//! References to earlier results: found in arguments, and replaced by parts of those results.

use alloc::{format, string::String, vec::Vec};

use syscap_format::summary::summary;
use syscap_format::{
    Canonical, Decoder, ENVELOPE_BYTES_MAX, Encoder, Item, ItemKind, Profile, REFERENCES_MAX,
    Reason, Refused, Seq, json, levels,
};

/// A reference to an earlier result, by record and path into it.
pub(crate) struct Reference<'a> {
    pub(crate) record: Seq,
    pub(crate) path: Item<'a>,
}

/// The references in arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct References {
    /// The records, and the paths into their results, in the order in which they stand.
    pub(crate) all: Vec<(Seq, Canonical)>,
    /// True if any part is to be replaced.
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

/// Replaces each reference by its part, in their order, and each `$lit` by its content. The
/// inserted data is never searched again. `None` where there is nothing to replace.
pub(crate) fn replaced(
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

/// A piece of arguments, in the order of their bytes.
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
