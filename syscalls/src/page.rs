//! `result.page`: a part of what an earlier call brought.
//!
//! A result may be longer than what a model is shown of it. The rest stays in the vault, and a
//! `$ref` gets it from there: the kernel looks it up, holds it against the commitment in the log
//! and puts it in the place of the argument, before this tool is asked. So all that is done here
//! is to cut. Only what was delivered to the session can be referred to.

use syscap_format::{
    Canonical, EffectClass, Item, ItemKind, Manifest, MapBuilder, ObligationKind, Param, ParamType,
    Reason, Refused, ToolId, TxOutcome, json,
};
use syscap_kernel::{Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request};

/// Most bytes that one call gives.
pub const PAGE_BYTES_MAX: u64 = 256 << 10;
/// The default size of a page: a few screens.
const PAGE_BYTES_DEFAULT: u64 = 16 << 10;
/// The least that can be asked for: the longest character has so many bytes, so that each page
/// goes on.
const PAGE_BYTES_MIN: u64 = 4;
const ROOM_BYTES_MIN: usize = 4;
/// Most bytes of a result that are not of the page: keys, numbers and heads.
const FRAME_BYTES: usize = 96;

/// `result.page`: a part of a text, of bytes, or of anything else as JSON.
#[derive(Debug)]
pub struct ResultPage {
    manifest: Manifest,
}

impl ResultPage {
    /// The tool.
    pub fn new() -> Option<Self> {
        let of = "What to show a part of: {\"$ref\": {\"record\": N, \"path\": [..]}} of an \
                  earlier result.";
        let mut manifest = Manifest::new(ToolId::new("result.page")?, EffectClass::Pure)
            .alias(ToolId::new("result_page")?)
            .described("Page a result", "Shows a part of what an earlier call brought.")
            .param(Param::required("of", ParamType::Any, of))
            .param(
                Param::optional("offset", ParamType::Int, "First byte; 0 if absent.")
                    .within(0, u64::MAX >> 1),
            )
            .param(
                Param::optional(
                    "max_bytes",
                    ParamType::Int,
                    "How many bytes at most; 16384 if absent.",
                )
                .within(PAGE_BYTES_MIN, PAGE_BYTES_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = PAGE_BYTES_MAX.saturating_add(1 << 10);
        Some(Self { manifest })
    }
}

impl ReadTool for ResultPage {
    type Plan = ResultPagePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<ResultPagePlan, Refused> {
        let of = request.args.get("of");
        let of = of.ok_or(Refused::new(Reason::MissingArgument).field("of"))?;
        let number = |name| request.args.get(name).and_then(Item::as_uint);
        let limit = number("max_bytes").unwrap_or(PAGE_BYTES_DEFAULT).min(PAGE_BYTES_MAX);
        Ok(ResultPagePlan {
            demands: Demands::default(),
            of: Canonical::from(of),
            // Beyond any result: nothing is there.
            offset: number("offset").map_or(0, |at| usize::try_from(at).unwrap_or(usize::MAX)),
            limit: usize::try_from(limit).unwrap_or(usize::MAX),
        })
    }
}

/// A planned `result.page`.
#[derive(Debug)]
pub struct ResultPagePlan {
    demands: Demands,
    of: Canonical,
    offset: usize,
    limit: usize,
}

impl ReadPlan for ResultPagePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        // A policy may ask for less: then the page is shorter, and the next one begins earlier.
        let room = permit.result_bytes_max().saturating_sub(FRAME_BYTES);
        if room < ROOM_BYTES_MIN {
            // A page of nothing that says that there is more would be asked for without end.
            let refused = Refused::new(Reason::ResultTooLarge).field("max_bytes");
            return permit.failed(refused, TxOutcome::NoOp);
        }
        let result = page(self.of.item(), self.offset, self.limit.min(room));
        permit.ok(result, TxOutcome::NoOp)
    }
}

/// `{text | bytes, offset, size_bytes, next_offset}`: `next_offset` where there is more. Text is
/// cut between two characters; a page begins with the character that its first byte is of.
fn page(of: Item<'_>, offset: usize, limit: usize) -> Canonical {
    let number = |at: usize| u64::try_from(at).unwrap_or(u64::MAX);
    let framed = |map: MapBuilder, begin: usize, end: usize, size: usize| {
        let map = map.uint("offset", number(begin)).uint("size_bytes", number(size));
        let map = if end < size { map.uint("next_offset", number(end)) } else { map };
        map.finish()
    };
    if let (ItemKind::Bytes, Some(bytes)) = (of.kind(), of.as_byte_string()) {
        let begin = offset.min(bytes.len());
        let end = begin.saturating_add(limit).min(bytes.len());
        let part = bytes.get(begin..end).unwrap_or_default();
        return framed(MapBuilder::new().bytes("bytes", part), begin, end, bytes.len());
    }
    let printed;
    let text = match of.as_text() {
        Some(text) => text,
        None => {
            printed = json::from_data(of);
            &printed
        }
    };
    let begin = text.floor_char_boundary(offset);
    let end = text.floor_char_boundary(begin.saturating_add(limit));
    let part = text.get(begin..end).unwrap_or_default();
    framed(MapBuilder::new().text("text", part), begin, end, text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(page: &Canonical, name: &str) -> Option<u64> {
        page.item().get(name).and_then(Item::as_uint)
    }

    /// Pages put together are the whole, whatever their size, and each is text.
    #[test]
    fn pages_are_the_whole_and_never_split_a_character() {
        let text = "a\u{e4}\u{20ac}\u{1f41d}\n".repeat(40);
        let (of, size) = (Canonical::text(&text), u64::try_from(text.len()).unwrap());
        for limit in 4..=17 {
            let (mut whole, mut at) = (String::new(), Some(0));
            while let Some(offset) = at {
                let shown = page(of.item(), usize::try_from(offset).unwrap(), limit);
                let part = shown.item().get("text").and_then(Item::as_text).unwrap();
                assert!(!part.is_empty() && part.len() <= limit);
                assert_eq!(number(&shown, "offset"), Some(offset));
                assert_eq!(number(&shown, "size_bytes"), Some(size));
                whole.push_str(part);
                at = number(&shown, "next_offset");
            }
            assert_eq!(whole, text, "{limit}");
        }
    }

    #[test]
    fn a_page_begins_with_a_whole_character_and_ends_with_the_text() {
        let of = Canonical::text("\u{20ac}\u{20ac}");
        for (offset, begins, shown) in
            [(0, 0, "\u{20ac}\u{20ac}"), (1, 0, "\u{20ac}\u{20ac}"), (4, 3, "\u{20ac}"), (6, 6, "")]
        {
            let page = page(of.item(), offset, 100);
            assert_eq!(number(&page, "offset"), Some(begins), "{offset}");
            assert_eq!(page.item().get("text").and_then(Item::as_text), Some(shown), "{offset}");
            assert_eq!(number(&page, "next_offset"), None);
        }
        let beyond = page(of.item(), usize::MAX, 100);
        assert_eq!((number(&beyond, "offset"), number(&beyond, "size_bytes")), (Some(6), Some(6)));
        let held = MapBuilder::new().bytes("b", b"\x00\xff\x01").finish();
        let bytes = page(held.item().get("b").unwrap(), 1, 4);
        assert_eq!(
            bytes.item().get("bytes").and_then(Item::as_byte_string),
            Some(&b"\xff\x01"[..])
        );
        let map = MapBuilder::new().uint("a", 1).finish();
        let json = page(map.item(), 1, 100);
        assert_eq!(json.item().get("text").and_then(Item::as_text), Some("\"a\":1}"));
    }
}
