//! A value tree of the tests' own, and a CBOR encoder that shares nothing with the kernel's.
#![allow(
    dead_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "tests; not every test uses everything"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use proptest::prelude::*;
use syscap_format::{Canonical, Decoder, Encoder, Item, ItemKind, MapBuilder, Profile};

/// A value of the profile. Equality is equality of meaning: a float is its bits, entries stand in
/// canonical order, and an empty map is `Texts`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tree {
    Null,
    Bool(bool),
    Uint(u64),
    /// -1 - n
    Negative(u64),
    Float(u64),
    Bytes(Vec<u8>),
    Text(String),
    Array(Vec<Tree>),
    Texts(Vec<(String, Tree)>),
    Uints(Vec<(u64, Tree)>),
}

impl Tree {
    pub(crate) fn text(text: &str) -> Self {
        Self::Text(text.to_owned())
    }

    pub(crate) fn float(value: f64) -> Self {
        Self::Float(value.to_bits())
    }

    /// A map with text keys, sorted here.
    pub(crate) fn map<K: Into<String>>(entries: impl IntoIterator<Item = (K, Tree)>) -> Self {
        let mut entries: Vec<(String, Tree)> =
            entries.into_iter().map(|(key, value)| (key.into(), value)).collect();
        entries.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        Self::Texts(entries)
    }

    pub(crate) fn children(&self) -> Vec<&Tree> {
        match self {
            Self::Array(items) => items.iter().collect(),
            Self::Texts(entries) => entries.iter().map(|(_, value)| value).collect(),
            Self::Uints(entries) => entries.iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        }
    }

    pub(crate) fn depth(&self) -> usize {
        let below = self.children().into_iter().map(Tree::depth).max().unwrap_or(0);
        below + usize::from(matches!(self, Self::Array(_) | Self::Texts(_) | Self::Uints(_)))
    }

    pub(crate) fn any(&self, what: &dyn Fn(&Tree) -> bool) -> bool {
        what(self) || self.children().into_iter().any(|child| child.any(what))
    }

    /// Written by the kernel's encoder and map builder.
    pub(crate) fn ours(&self) -> Vec<u8> {
        let mut encoder = Encoder::new();
        match self {
            Self::Null => encoder.null(),
            Self::Bool(value) => encoder.boolean(*value),
            Self::Uint(value) => encoder.uint(*value),
            Self::Negative(value) => encoder.int(-1 - i64::try_from(*value).unwrap()),
            Self::Float(bits) => encoder.float(f64::from_bits(*bits)),
            Self::Bytes(bytes) => encoder.bytes(bytes),
            Self::Text(text) => encoder.text(text),
            Self::Array(items) => {
                encoder.array(items.len());
                items.iter().for_each(|child| encoder.item(canonical(child).item()));
            }
            Self::Texts(entries) => {
                let add = |map: MapBuilder, (key, value): &(String, Tree)| {
                    map.item(key, canonical(value).item())
                };
                // The builder sorts, so it gets the entries backwards.
                let map = entries.iter().rev().fold(MapBuilder::new(), add).finish();
                encoder.item(map.item());
            }
            Self::Uints(entries) => {
                encoder.map(entries.len());
                for (key, value) in entries {
                    encoder.uint(*key);
                    encoder.item(canonical(value).item());
                }
            }
        }
        encoder.into_bytes()
    }

    /// Written by the rules of RFC 8949 section 4.2.1 alone.
    pub(crate) fn emit(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => out.push(0xf6),
            Self::Bool(value) => out.push(0xf4 + u8::from(*value)),
            Self::Uint(value) => head(0, *value, out),
            Self::Negative(value) => head(1, *value, out),
            Self::Float(bits) => out.extend(float(f64::from_bits(*bits))),
            Self::Bytes(bytes) => {
                head(2, bytes.len() as u64, out);
                out.extend(bytes);
            }
            Self::Text(text) => {
                head(3, text.len() as u64, out);
                out.extend(text.as_bytes());
            }
            Self::Array(items) => {
                head(4, items.len() as u64, out);
                items.iter().for_each(|child| child.emit(out));
            }
            Self::Texts(entries) => {
                head(5, entries.len() as u64, out);
                for (key, value) in entries {
                    Self::text(key).emit(out);
                    value.emit(out);
                }
            }
            Self::Uints(entries) => {
                head(5, entries.len() as u64, out);
                for (key, value) in entries {
                    head(0, *key, out);
                    value.emit(out);
                }
            }
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.emit(&mut out);
        out
    }
}

/// The kernel's bytes, checked.
pub(crate) fn canonical(tree: &Tree) -> Canonical {
    Canonical::check(tree.ours(), Profile::DATA).unwrap()
}

/// Bytes written by the tests' encoder, checked by the kernel.
pub(crate) fn foreign(tree: &Tree) -> Canonical {
    Canonical::check(tree.bytes(), Profile::DATA).unwrap()
}

/// The tree as [`Item`] shows it.
pub(crate) fn walk(item: Item<'_>) -> Tree {
    match item.kind() {
        ItemKind::Null => {
            assert!(item.is_null());
            Tree::Null
        }
        ItemKind::Bool => Tree::Bool(item.as_bool().unwrap()),
        ItemKind::Uint => Tree::Uint(item.as_uint().unwrap()),
        ItemKind::Negative => Tree::Negative(u64::try_from(-1 - item.as_int().unwrap()).unwrap()),
        ItemKind::Float => Tree::float(item.as_float().unwrap()),
        ItemKind::Bytes => Tree::Bytes(item.as_byte_string().unwrap().to_vec()),
        ItemKind::Text => Tree::text(item.as_text().unwrap()),
        ItemKind::Array => Tree::Array(item.elements().map(walk).collect()),
        ItemKind::Map => match item.entries().count() {
            // Entries show text keys only.
            0 if item.count() > 0 => pull(&mut Decoder::new(item.as_bytes(), Profile::DATA)),
            count => {
                assert_eq!(count, item.count());
                let entry = |(key, value): (&str, Item<'_>)| (key.to_owned(), walk(value));
                Tree::Texts(item.entries().map(entry).collect())
            }
        },
    }
}

/// The tree as [`Decoder`] reads it.
pub(crate) fn pull(decoder: &mut Decoder<'_>) -> Tree {
    match decoder.peek().unwrap() {
        ItemKind::Null => {
            decoder.null().unwrap();
            Tree::Null
        }
        ItemKind::Bool => Tree::Bool(decoder.boolean().unwrap()),
        ItemKind::Uint => Tree::Uint(decoder.uint().unwrap()),
        ItemKind::Negative => Tree::Negative(u64::try_from(-1 - decoder.int().unwrap()).unwrap()),
        ItemKind::Float => Tree::float(decoder.float().unwrap()),
        ItemKind::Bytes => Tree::Bytes(decoder.bytes().unwrap().to_vec()),
        ItemKind::Text => Tree::text(decoder.text().unwrap()),
        ItemKind::Array => {
            let mut items = Vec::new();
            decoder
                .each(|decoder| {
                    items.push(pull(decoder));
                    Ok(())
                })
                .unwrap();
            Tree::Array(items)
        }
        ItemKind::Map => {
            let count = decoder.clone().item().unwrap().count() as u64;
            let mut probe = decoder.clone();
            probe.shape(count).unwrap();
            if count > 0 && probe.peek().unwrap() == ItemKind::Uint {
                *decoder = probe;
                let entry = |_| (decoder.uint().unwrap(), pull(decoder));
                return Tree::Uints((0..count).map(entry).collect());
            }
            let mut entries = Vec::new();
            decoder
                .text_map(|key, decoder| {
                    entries.push((key.to_owned(), pull(decoder)));
                    Ok(())
                })
                .unwrap();
            Tree::Texts(entries)
        }
    }
}

/// A major type and an argument in the fewest bytes.
pub(crate) fn head(major: u8, value: u64, out: &mut Vec<u8>) {
    match shortest_width(value) {
        0 => out.push(major << 5 | value as u8),
        width => wide_head(major, value, width, out),
    }
}

/// The bytes of the argument after the first byte: 0, 1, 2, 4 or 8.
pub(crate) fn shortest_width(value: u64) -> usize {
    if value < 24 {
        return 0;
    }
    [1, 2, 4].into_iter().find(|width| value >> (8 * width) == 0).unwrap_or(8)
}

/// A head whose argument takes `width` bytes, needed or not.
pub(crate) fn wide_head(major: u8, value: u64, width: usize, out: &mut Vec<u8>) {
    let info = [(1, 24), (2, 25), (4, 26), (8, 27)].into_iter().find(|(w, _)| *w == width);
    out.push(major << 5 | info.unwrap().1);
    out.extend_from_slice(&value.to_be_bytes()[8 - width..]);
}

/// Every half-precision number, by the formula of RFC 8949 appendix D.
static HALVES: LazyLock<HashMap<u64, u16>> = LazyLock::new(|| {
    let value = |half: u16| {
        let (exponent, mantissa) = (i32::from(half >> 10 & 0x1f), f64::from(half & 0x3ff));
        let magnitude = match exponent {
            0 => mantissa * 2_f64.powi(-24),
            _ => (mantissa + 1024.0) * 2_f64.powi(exponent - 25),
        };
        if half >> 15 == 1 { -magnitude } else { magnitude }
    };
    let finite = (0..=u16::MAX).filter(|half| half >> 10 & 0x1f != 31);
    finite.map(|half| (value(half).to_bits(), half)).collect()
});

/// The shortest form of a finite float.
pub(crate) fn float(value: f64) -> Vec<u8> {
    let (single, mut out) = (value as f32, Vec::new());
    if let Some(half) = HALVES.get(&value.to_bits()) {
        out.push(0xf9);
        out.extend(half.to_be_bytes());
    } else if f64::from(single).to_bits() == value.to_bits() {
        out.push(0xfa);
        out.extend(single.to_be_bytes());
    } else {
        out.push(0xfb);
        out.extend(value.to_be_bytes());
    }
    out
}

/// Which trees a strategy makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flavour {
    /// Everything.
    All,
    /// ASCII text, no floats: what `dcbor` takes too.
    Dcbor,
    /// Text keys only, and many maps with one key that is an escape of JSON.
    Json,
}

pub(crate) fn trees(flavour: Flavour) -> BoxedStrategy<Tree> {
    let float = prop_oneof![
        any::<u16>().prop_map(|n| f64::from(n) / 64.0),
        any::<f32>().prop_map(f64::from),
        any::<f64>(),
        any::<i32>().prop_map(|n| f64::from(n) * 2_f64.powi(-24)),
        Just(-0.0),
    ];
    let float = float.prop_map(|f| if f.is_finite() { f } else { 0.5 }).prop_map(Tree::float);
    let number = prop_oneof![0..300_u64, any::<u32>().prop_map(u64::from), any::<u64>()];
    let ascii = prop_oneof![4 => "[ -~]{0,30}", 1 => "[a-z]{250,260}"];
    let text: BoxedStrategy<String> = match flavour {
        Flavour::Dcbor => ascii.boxed(),
        _ => prop_oneof![ascii, any::<String>(), "[\u{0}-\u{a0}\u{2020}-\u{2030}\u{e0041}]{0,6}"]
            .boxed(),
    };
    let leaf = prop_oneof![
        Just(Tree::Null),
        any::<bool>().prop_map(Tree::Bool),
        number.clone().prop_map(Tree::Uint),
        number.prop_map(|n| Tree::Negative(n >> 1)),
        prop::collection::vec(any::<u8>(), 0..30).prop_map(Tree::Bytes),
        text.clone().prop_map(Tree::Text),
    ];
    let leaf = match flavour {
        Flavour::Dcbor => leaf.boxed(),
        _ => prop_oneof![6 => leaf, 1 => float].boxed(),
    };
    let key = prop_oneof![3 => "[a-c$]{0,3}", 1 => text, 1 => r"\$(bytes|lit|ref)"];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let array = prop::collection::vec(inner.clone(), 0..6).prop_map(Tree::Array);
        let texts = prop::collection::btree_map(key.clone(), inner.clone(), 0..6);
        let texts = texts.prop_map(Tree::map);
        match flavour {
            Flavour::Json => {
                let lone = (r"\$(bytes|lit|lit|ref)", inner.clone());
                let lone = lone.prop_map(|entry| Tree::map([entry]));
                prop_oneof![2 => array, 2 => texts, 3 => lone, 1 => references()].boxed()
            }
            _ => {
                let uints = (prop::collection::btree_map(0..300_u64, inner, 1..6))
                    .prop_map(|map: BTreeMap<_, _>| Tree::Uints(map.into_iter().collect()));
                prop_oneof![array, texts, uints].boxed()
            }
        }
    })
    .boxed()
}

/// `{"$ref": {"record": uint, "path": [text or uint, ...]}}`
pub(crate) fn references() -> impl Strategy<Value = Tree> {
    let step = prop_oneof!["[a-z$]{0,6}".prop_map(Tree::Text), (0..99_u64).prop_map(Tree::Uint)];
    (any::<u64>(), prop::collection::vec(step, 0..4)).prop_map(|(record, path)| {
        let inner = [("record", Tree::Uint(record)), ("path", Tree::Array(path))];
        Tree::map([("$ref", Tree::map(inner))])
    })
}

/// No files are written beside the sources.
pub(crate) fn cases(count: u32) -> ProptestConfig {
    ProptestConfig { cases: count, failure_persistence: None, ..ProptestConfig::default() }
}
