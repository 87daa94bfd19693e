//! Arguments cut into pieces: what a call refers to lies in a row of the vault already, and is not
//! written once more where it is long.

use alloc::vec::Vec;

use crate::call::fetch::Part;
use syscap_format::{ArgsPiece, Canonical, Decoder, Item, ItemKind, Profile, REFERENCES_MAX};

/// Least bytes of a part that is not written once more: shorter ones are no longer than what would
/// stand in their place, or not worth another read.
const PART_BYTES_MIN: usize = 1_024;
/// Most levels of arguments in which parts are looked for: each level is one more look at all that
/// lies below it. A deeper part is written as it is.
const LEVELS_MAX: usize = 4;

/// The pieces of arguments that refer to these parts of results; nothing where they are better
/// written as they are.
pub(crate) fn cut(args: Item<'_>, referred: &[Part], parts: &[Canonical]) -> Vec<ArgsPiece> {
    let long = |(_, part): &(&Part, &Canonical)| part.as_bytes().len() >= PART_BYTES_MIN;
    let long: Vec<(&Part, &Canonical)> = referred.iter().zip(parts).filter(long).collect();
    let mut found = Vec::new();
    if !long.is_empty() {
        find(&mut reader(args), LEVELS_MAX, &long, &mut found);
    }
    let (bytes, mut pieces, mut end) = (args.as_bytes(), Vec::new(), 0);
    let bytes_to = |pieces: &mut Vec<ArgsPiece>, from: usize, to: usize| {
        let between = bytes.get(from..to).filter(|between| !between.is_empty());
        pieces.extend(between.map(|between| ArgsPiece::Bytes(between.into())));
    };
    for (start, len, part) in found {
        bytes_to(&mut pieces, end, start);
        pieces.push(ArgsPiece::Part(part.of.outcome, part.path.clone()));
        end = start.saturating_add(len);
    }
    if !pieces.is_empty() {
        bytes_to(&mut pieces, end, bytes.len());
    }
    pieces
}

/// The positions of the parts in an item, so many levels deep. `None` where the item ends before it
/// should; then nothing is cut out of the rest.
fn find<'p>(
    decoder: &mut Decoder<'_>,
    levels: usize,
    parts: &[(&'p Part, &Canonical)],
    found: &mut Vec<(usize, usize, &'p Part)>,
) -> Option<()> {
    let (start, mut after) = (decoder.position(), decoder.clone());
    let item = after.item().ok()?.as_bytes();
    let is_long = item.len() >= PART_BYTES_MIN && found.len() < REFERENCES_MAX;
    let same = parts.iter().find(|(_, part)| is_long && part.as_bytes() == item);
    if let Some((part, _)) = same {
        found.push((start, item.len(), part));
    } else if let Some(below) = levels.checked_sub(1).filter(|_| is_long) {
        match decoder.peek().ok()? {
            ItemKind::Array => {
                let count = decoder.array().ok()?;
                return (0..count).try_for_each(|_| find(decoder, below, parts, found));
            }
            ItemKind::Map => {
                return (0..decoder.map_head().ok()?).try_for_each(|_| {
                    decoder.text().ok()?;
                    find(decoder, below, parts, found)
                });
            }
            _ => {}
        }
    }
    *decoder = after;
    Some(())
}

fn reader(item: Item<'_>) -> Decoder<'_> {
    Decoder::new(item.as_bytes(), Profile::DATA)
}
