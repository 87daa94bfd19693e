//! Encodings of a tree with exactly one thing wrong.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

use syscap_format::DecodeFault;

use super::tree::{Tree, float, head, shortest_width, wide_head};

/// One way of writing a value wrongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    NonShortestInt,
    NonShortestLength,
    IndefiniteText,
    IndefiniteBytes,
    IndefiniteArray,
    IndefiniteMap,
    DuplicateKey,
    SwappedKeys,
    TagBeforeValue,
    OtherSimple,
    TwoByteSimple,
    TrailingByte,
    Truncated,
    NotFinite,
    NonShortestFloat,
    BelowRange,
    InvalidUtf8,
    TooDeep,
    LengthBeyondInput,
    ForeignKey,
    MixedKeys,
    Bignum,
    Reserved,
    Break,
}

impl Mutation {
    pub(crate) const ALL: [Self; 24] = [
        Self::NonShortestInt,
        Self::NonShortestLength,
        Self::IndefiniteText,
        Self::IndefiniteBytes,
        Self::IndefiniteArray,
        Self::IndefiniteMap,
        Self::DuplicateKey,
        Self::SwappedKeys,
        Self::TagBeforeValue,
        Self::OtherSimple,
        Self::TwoByteSimple,
        Self::TrailingByte,
        Self::Truncated,
        Self::NotFinite,
        Self::NonShortestFloat,
        Self::BelowRange,
        Self::InvalidUtf8,
        Self::TooDeep,
        Self::LengthBeyondInput,
        Self::ForeignKey,
        Self::MixedKeys,
        Self::Bignum,
        Self::Reserved,
        Self::Break,
    ];

    /// What the decoder must say to it.
    pub(crate) const fn faults(self) -> &'static [DecodeFault] {
        match self {
            Self::NonShortestInt | Self::NonShortestLength => &[DecodeFault::NonShortest],
            Self::IndefiniteText
            | Self::IndefiniteBytes
            | Self::IndefiniteArray
            | Self::IndefiniteMap
            | Self::Break => &[DecodeFault::Indefinite],
            Self::DuplicateKey => &[DecodeFault::DuplicateKey],
            Self::SwappedKeys => &[DecodeFault::KeyOrder],
            Self::TagBeforeValue | Self::Bignum => &[DecodeFault::Tag],
            Self::OtherSimple | Self::TwoByteSimple => &[DecodeFault::Simple],
            Self::TrailingByte => &[DecodeFault::Trailing],
            // By whether a head or what it announces is cut.
            Self::Truncated => &[DecodeFault::End, DecodeFault::Length],
            Self::NotFinite => &[DecodeFault::NotFinite],
            Self::NonShortestFloat => &[DecodeFault::Float],
            Self::BelowRange => &[DecodeFault::IntRange],
            Self::InvalidUtf8 => &[DecodeFault::Utf8],
            Self::TooDeep => &[DecodeFault::Depth],
            Self::LengthBeyondInput => &[DecodeFault::Length],
            Self::ForeignKey | Self::MixedKeys => &[DecodeFault::KeyType],
            Self::Reserved => &[DecodeFault::Reserved],
        }
    }

    /// Every encoding of `tree` that is wrong in this way at one place.
    pub(crate) fn mutants(self, tree: &Tree) -> Vec<Vec<u8>> {
        let bytes = tree.bytes();
        match self {
            Self::TrailingByte => [0x00, 0xf6, 0xff].map(|b| [&bytes[..], &[b]].concat()).to_vec(),
            Self::Truncated => (0..bytes.len()).map(|end| bytes[..end].to_vec()).collect(),
            Self::TooDeep => {
                let more = 65 - tree.depth();
                [&b"\x81"[..], b"\xa1\x60", b"\xa1\x00"]
                    .map(|open| [&open.repeat(more), &bytes[..]].concat())
                    .to_vec()
            }
            _ => {
                let mut all = Vec::new();
                for target in 0.. {
                    for variant in 0.. {
                        let mut writer = Writer { mutation: self, target, variant, ..WRITER };
                        writer.node(tree);
                        if writer.seen <= target {
                            return all;
                        }
                        if !writer.applied {
                            break;
                        }
                        all.push(writer.out);
                    }
                }
                all
            }
        }
    }
}

/// Writes a tree, and the `target`th of its values in the `variant`th form of a mutation.
struct Writer {
    mutation: Mutation,
    target: usize,
    variant: usize,
    seen: usize,
    applied: bool,
    out: Vec<u8>,
}

const WRITER: Writer = Writer {
    mutation: Mutation::Break,
    target: 0,
    variant: 0,
    seen: 0,
    applied: false,
    out: Vec::new(),
};

/// The parts of a value: its major type, its argument, its keys and its content.
struct Parts<'a> {
    major: u8,
    count: u64,
    keys: Vec<Vec<u8>>,
    children: Vec<&'a Tree>,
    content: Vec<u8>,
}

fn parts(tree: &Tree) -> Parts<'_> {
    let keys = match tree {
        Tree::Texts(entries) => entries.iter().map(|(key, _)| Tree::text(key).bytes()).collect(),
        Tree::Uints(entries) => entries.iter().map(|(key, _)| Tree::Uint(*key).bytes()).collect(),
        _ => Vec::new(),
    };
    let children = tree.children();
    let (major, count, content) = match tree {
        Tree::Uint(value) => (0, *value, vec![]),
        Tree::Negative(value) => (1, *value, vec![]),
        Tree::Bytes(bytes) => (2, bytes.len() as u64, bytes.clone()),
        Tree::Text(text) => (3, text.len() as u64, text.clone().into_bytes()),
        Tree::Array(items) => (4, items.len() as u64, vec![]),
        Tree::Texts(_) | Tree::Uints(_) => (5, children.len() as u64, vec![]),
        Tree::Null | Tree::Bool(_) | Tree::Float(_) => (7, 0, vec![]),
    };
    Parts { major, count, keys, children, content }
}

impl Writer {
    fn node(&mut self, tree: &Tree) {
        let here = self.seen == self.target;
        self.seen += 1;
        let parts = parts(tree);
        if here {
            self.applied = self.mutate(tree, &parts).is_some();
            if self.applied {
                return;
            }
        }
        if parts.major == 7 {
            return tree.emit(&mut self.out);
        }
        head(parts.major, parts.count, &mut self.out);
        self.body(&parts);
    }

    /// What follows the head.
    fn body(&mut self, parts: &Parts<'_>) {
        self.out.extend(&parts.content);
        for (place, child) in parts.children.iter().enumerate() {
            self.out.extend(parts.keys.get(place).into_iter().flatten());
            self.node(child);
        }
    }

    fn entry(&mut self, parts: &Parts<'_>, place: usize) {
        self.out.extend(&parts.keys[place]);
        self.node(parts.children[place]);
    }

    /// Writes the value wrongly, or nothing where the mutation has no such variant for it.
    fn mutate(&mut self, tree: &Tree, parts: &Parts<'_>) -> Option<()> {
        let major = parts.major;
        match self.mutation {
            Mutation::NonShortestInt => self.widen(parts, 0..=1),
            Mutation::NonShortestLength => self.widen(parts, 2..=5),
            Mutation::IndefiniteBytes => self.indefinite(parts, 2),
            Mutation::IndefiniteText => self.indefinite(parts, 3),
            Mutation::IndefiniteArray => self.indefinite(parts, 4),
            Mutation::IndefiniteMap => self.indefinite(parts, 5),
            Mutation::DuplicateKey | Mutation::SwappedKeys => self.reorder(parts),
            Mutation::ForeignKey | Mutation::MixedKeys => self.rekey(parts),
            Mutation::TagBeforeValue => {
                let tags = [&b"\xc0"[..], b"\xc2", b"\xd8\x20", b"\xd9\xd9\xf7", b"\xda\0\x01\0\0"];
                self.out.extend(*tags.get(self.variant)?);
                tree.emit(&mut self.out);
                Some(())
            }
            Mutation::OtherSimple => self.replace(&[b"\xf7", b"\xe0", b"\xf0", b"\xf3"]),
            Mutation::TwoByteSimple => {
                self.replace(&[b"\xf8\x14", b"\xf8\x15", b"\xf8\x16", b"\xf8\x18", b"\xf8\xff"])
            }
            Mutation::Break => self.replace(&[b"\xff"]),
            Mutation::Reserved => {
                let info = [28, 29, 30, 31].get(self.variant).filter(|n| **n < 31 || major < 2)?;
                self.out.push(major << 5 | info);
                Some(())
            }
            Mutation::NotFinite if matches!(tree, Tree::Float(_)) => self.replace(&[
                b"\xf9\x7c\0",
                b"\xf9\xfc\0",
                b"\xf9\x7e\0",
                b"\xfa\x7f\x80\0\0",
                b"\xfb\x7f\xf0\0\0\0\0\0\0",
                b"\xfb\xff\xf8\0\0\0\0\0\x01",
            ]),
            Mutation::NonShortestFloat => match (tree, self.variant) {
                (Tree::Float(bits), 0) if float(f64::from_bits(*bits))[0] != 0xfb => {
                    self.out.push(0xfb);
                    self.out.extend(bits.to_be_bytes());
                    Some(())
                }
                (Tree::Float(bits), 1) if float(f64::from_bits(*bits))[0] == 0xf9 => {
                    self.out.push(0xfa);
                    self.out.extend((f64::from_bits(*bits) as f32).to_be_bytes());
                    Some(())
                }
                _ => None,
            },
            Mutation::BelowRange if major == 1 => {
                self.replace(&[b"\x3b\x80\0\0\0\0\0\0\0", b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff"])
            }
            Mutation::InvalidUtf8 => self.garble(parts),
            Mutation::LengthBeyondInput if (2..=5).contains(&major) => {
                let lengths = [1 << 20, 1 << 32, i64::MAX as u64, u64::MAX];
                head(major, *lengths.get(self.variant)?, &mut self.out);
                self.body(parts);
                Some(())
            }
            Mutation::Bignum if major < 2 && self.variant == 0 => {
                self.out.extend([0xc2 + major, 0x48]);
                self.out.extend(parts.count.to_be_bytes());
                Some(())
            }
            _ => None,
        }
    }

    fn replace<const N: usize>(&mut self, forms: &[&[u8]; N]) -> Option<()> {
        self.out.extend(*forms.get(self.variant)?);
        Some(())
    }

    fn widen(&mut self, parts: &Parts<'_>, majors: std::ops::RangeInclusive<u8>) -> Option<()> {
        let shortest = shortest_width(parts.count);
        let mut wider = [1, 2, 4, 8].into_iter().filter(|width| *width > shortest);
        let width = wider.nth(self.variant).filter(|_| majors.contains(&parts.major))?;
        wide_head(parts.major, parts.count, width, &mut self.out);
        self.body(parts);
        Some(())
    }

    fn indefinite(&mut self, parts: &Parts<'_>, major: u8) -> Option<()> {
        if parts.major != major || self.variant > 0 {
            return None;
        }
        self.out.push(major << 5 | 31);
        if major < 4 {
            head(major, parts.count, &mut self.out);
        }
        self.body(parts);
        self.out.push(0xff);
        Some(())
    }

    /// The entry at the place of the variant twice, or after the one that should follow it.
    fn reorder(&mut self, parts: &Parts<'_>) -> Option<()> {
        let (last, place) = (parts.keys.len().checked_sub(1)?, self.variant);
        let twice = self.mutation == Mutation::DuplicateKey;
        if place > last || (place == last && !twice) {
            return None;
        }
        let mut order: Vec<usize> = (0..=last).collect();
        if twice {
            order.insert(place, place)
        } else {
            order.swap(place, place + 1)
        }
        head(5, order.len() as u64, &mut self.out);
        order.into_iter().for_each(|place| self.entry(parts, place));
        Some(())
    }

    /// A key that is neither text nor an unsigned integer in place of the first, or a key of the
    /// other type beside the others.
    fn rekey(&mut self, parts: &Parts<'_>) -> Option<()> {
        let text = parts.keys.first()?[0] >> 5 == 3;
        if self.mutation == Mutation::ForeignKey {
            let foreign: [&[u8]; 9] = [
                b"\x40",
                b"\x41a",
                b"\x20",
                b"\x80",
                b"\xa0",
                b"\xf4",
                b"\xf6",
                b"\xf9\x3c\0",
                b"\x5fAaAa\xff",
            ];
            let foreign = foreign.get(self.variant)?;
            head(5, parts.count, &mut self.out);
            self.out.extend(*foreign);
            self.node(parts.children[0]);
            (1..parts.keys.len()).for_each(|place| self.entry(parts, place));
            return Some(());
        }
        if self.variant > 0 {
            return None;
        }
        head(5, parts.count + 1, &mut self.out);
        if text {
            self.out.extend([0x00, 0xf6]);
        }
        self.body(parts);
        if !text {
            self.out.extend([0x60, 0xf6]);
        }
        Some(())
    }

    fn garble(&mut self, parts: &Parts<'_>) -> Option<()> {
        let wrong: [&[u8]; 6] = [
            b"\x61\xff",
            b"\x61\x80",
            b"\x62\xc0\x80",
            b"\x63\xed\xa0\x80",
            b"\x62\xe2\x82",
            b"\x64\xf4\x90\x80\x80",
        ];
        let wrong = wrong.get(self.variant)?;
        match parts.keys.first() {
            None if parts.major == 3 => self.out.extend(*wrong),
            Some(key) if key[0] >> 5 == 3 => {
                head(5, parts.count, &mut self.out);
                self.out.extend(*wrong);
                self.node(parts.children[0]);
                (1..parts.keys.len()).for_each(|place| self.entry(parts, place));
            }
            _ => return None,
        }
        Some(())
    }
}
