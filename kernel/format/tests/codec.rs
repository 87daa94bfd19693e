//! The codec: encoding and decoding are inverse on bytes, and other decoders agree.

use crate::common::json_tree::{Mode, alike, meaning};
use crate::common::tree::{self, Flavour, Tree, canonical, pull, trees, walk};
use crate::common::vectors::{bytes, cases, hex, valid};
use ciborium::Value;
use proptest::prelude::*;
use syscap_format::{DecodeError, DecodeFault, Decoder, Item, ItemKind, Profile};

/// What ciborium reads, as a tree; `None` where the profile has no such value.
fn from_ciborium(value: &Value) -> Option<Tree> {
    Some(match value {
        Value::Null => Tree::Null,
        Value::Bool(value) => Tree::Bool(*value),
        Value::Integer(value) => match i128::from(*value) {
            value @ 0.. => Tree::Uint(u64::try_from(value).ok()?),
            value => Tree::Negative(u64::try_from(-1 - value).ok()?),
        },
        Value::Float(value) => Tree::float(*value),
        Value::Bytes(bytes) => Tree::Bytes(bytes.clone()),
        Value::Text(text) => Tree::text(text),
        Value::Array(items) => Tree::Array(items.iter().map(from_ciborium).collect::<Option<_>>()?),
        Value::Map(entries) if entries.first().is_some_and(|(key, _)| key.is_integer()) => {
            let entry = |(key, value): &(Value, Value)| match from_ciborium(key)? {
                Tree::Uint(key) => Some((key, from_ciborium(value)?)),
                _ => None,
            };
            Tree::Uints(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Value::Map(entries) => {
            let entry = |(key, value): &(Value, Value)| {
                Some((key.as_text()?.to_owned(), from_ciborium(value)?))
            };
            Tree::Texts(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

/// If we accept the bytes: both ways of reading see the same tree, the tests' own encoder writes
/// the same bytes again, and ciborium reads the same meaning and writes the same bytes.
fn agrees(bytes: &[u8]) -> bool {
    let Ok(item) = Item::check(bytes, Profile::DATA) else {
        return false;
    };
    let tree = walk(item);
    let mut decoder = Decoder::new(bytes, Profile::DATA);
    assert_eq!(pull(&mut decoder), tree);
    assert_eq!(decoder.finish(), Ok(()));
    assert_eq!(tree.bytes(), bytes);
    let value: Value = ciborium::from_reader(bytes).expect("ciborium reads what we accept");
    assert_eq!(from_ciborium(&value).as_ref(), Some(&tree));
    let mut again = Vec::new();
    ciborium::into_writer(&value, &mut again).unwrap();
    assert_eq!(again, bytes);
    true
}

fn refusal(bytes: &[u8], profile: Profile) -> Option<DecodeFault> {
    Item::check(bytes, profile).err().map(|error| error.fault)
}

fn has_float(tree: &Tree) -> bool {
    tree.any(&|tree| matches!(tree, Tree::Float(_)))
}

/// What is taken means what its JSON says, to `serde_json` as well.
#[test]
fn items_are_taken_and_refused_as_the_vectors_say() {
    for case in cases("cbor.json", "item") {
        let profile = if case["profile"] == "DATA" { Profile::DATA } else { Profile::CONTROL };
        let (bytes, valid) = (bytes(&case, "bytes"), case["result"] == "valid");
        assert_eq!(Item::check(&bytes, profile).is_ok(), valid, "{case}");
        assert_eq!(agrees(&bytes), Item::check(&bytes, Profile::DATA).is_ok(), "{case}");
        if let Some(text) = case["json"].as_str() {
            let value = serde_json::from_str(text).unwrap();
            let tree = walk(Item::check(&bytes, profile).unwrap());
            let theirs = meaning(&value, Mode::Arguments).expect(text);
            assert!(alike(&tree, &theirs), "{case}");
            assert_eq!(tree.ours(), bytes, "{case}");
        }
    }
}

/// One of each fault.
#[test]
fn each_fault_is_named() {
    use DecodeFault as Fault;
    for (text, fault) in [
        ("", Fault::End),
        ("81", Fault::Length),
        ("0000", Fault::Trailing),
        ("1817", Fault::NonShortest),
        ("ff", Fault::Indefinite),
        ("1c", Fault::Reserved),
        ("c24101", Fault::Tag),
        ("f7", Fault::Simple),
        ("f97c00", Fault::NotFinite),
        ("fa3f800000", Fault::Float),
        ("3b8000000000000000", Fault::IntRange),
        ("61ff", Fault::Utf8),
        ("a201000000", Fault::KeyOrder),
        ("a201020103", Fault::DuplicateKey),
        ("a12001", Fault::KeyType),
    ] {
        assert_eq!(refusal(&hex(text), Profile::DATA), Some(fault), "{text}");
    }
    let deep = [&b"\x81".repeat(64)[..], &[0x80]].concat();
    assert_eq!(refusal(&deep, Profile::DATA), Some(Fault::Depth));
    assert_eq!(refusal(b"\xf9\x3c\x00", Profile::CONTROL), Some(Fault::Float));
}

/// Each typed read takes its own type and says of any other that it is another.
#[test]
fn typed_reads_take_one_type() {
    for (text, tree) in valid() {
        let bytes = hex(&text);
        let start = || Decoder::new(&bytes, Profile::DATA);
        let fault = |error: DecodeError| error.fault;
        let kind = start().peek().unwrap();
        let expect = |found: Result<(), DecodeFault>, kinds: &[ItemKind]| {
            let fine = kinds.contains(&kind);
            assert_eq!(
                found,
                if fine { Ok(()) } else { Err(DecodeFault::Type) },
                "{text} {kinds:?}"
            );
        };
        expect(start().uint().map(|_| ()).map_err(fault), &[ItemKind::Uint]);
        expect(start().int().map(|_| ()).map_err(fault), &[ItemKind::Uint, ItemKind::Negative]);
        expect(start().bytes().map(|_| ()).map_err(fault), &[ItemKind::Bytes]);
        expect(start().text().map(|_| ()).map_err(fault), &[ItemKind::Text]);
        expect(start().boolean().map(|_| ()).map_err(fault), &[ItemKind::Bool]);
        expect(start().null().map_err(fault), &[ItemKind::Null]);
        expect(start().float().map(|_| ()).map_err(fault), &[ItemKind::Float]);
        expect(start().array().map(|_| ()).map_err(fault), &[ItemKind::Array]);
        let count = tree.children().len() as u64;
        expect(start().shape(count).map_err(fault), &[ItemKind::Map]);
        if kind == ItemKind::Map {
            assert_eq!(start().shape(count + 1).map_err(fault), Err(DecodeFault::Key), "{text}");
        }
    }
    let mut decoder = Decoder::new(b"\xa2\x01\x43abc\x02\xf6", Profile::CONTROL);
    assert_eq!(decoder.shape(2), Ok(()));
    for other in [0, 2] {
        let error = decoder.clone().key(other).unwrap_err();
        assert_eq!((error.fault, error.at), (DecodeFault::Key, 1));
    }
    assert_eq!(decoder.key(1), Ok(()));
    assert_eq!(
        decoder.clone().array_of::<2>().map_err(|error| error.fault),
        Err(DecodeFault::Value)
    );
    assert_eq!(decoder.array_of::<3>(), Ok(*b"abc"));
    assert_eq!(decoder.clone().finish().map_err(|error| error.fault), Err(DecodeFault::Trailing));
    assert_eq!((decoder.key(2), decoder.null(), decoder.finish()), (Ok(()), Ok(()), Ok(())));
}

#[test]
fn every_half_and_its_neighbours_take_the_shortest_form() {
    let mut halves = 0;
    for half in 0..=u16::MAX {
        let [high, low] = half.to_be_bytes();
        let Ok(item) = Item::check(&[0xf9, high, low], Profile::DATA).map(walk) else {
            continue;
        };
        halves += 1;
        let Tree::Float(bits) = item else { panic!("{half}") };
        for near in [bits.wrapping_sub(1), bits, bits + 1] {
            let value = f64::from_bits(near);
            if value.is_finite() {
                assert_eq!(Tree::Float(near).ours(), tree::float(value));
            }
        }
        assert_eq!(Tree::Float(bits).ours(), [0xf9, high, low]);
    }
    // All but the two exponents of all ones.
    assert_eq!(halves, 65_536 - 2 * 1024);
}

#[test]
fn every_single_bit_flip_is_refused_or_canonical() {
    let (mut accepted, mut refused) = (0, 0);
    for (text, _) in valid() {
        let bytes = hex(&text);
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            if agrees(&flipped) { accepted += 1 } else { refused += 1 }
        }
    }
    assert!(accepted > 100 && refused > 100, "{accepted} {refused}");
}

proptest! {
    #![proptest_config(tree::cases(1024))]

    #[test]
    fn decoding_inverts_encoding(tree in trees(Flavour::All)) {
        let bytes = tree.ours();
        prop_assert_eq!(&bytes, &tree.bytes());
        prop_assert_eq!(walk(canonical(&tree).item()), tree.clone());
        prop_assert!(agrees(&bytes));
        let control = refusal(&bytes, Profile::CONTROL);
        prop_assert_eq!(control, has_float(&tree).then_some(DecodeFault::Float));
    }

    #[test]
    fn dcbor_agrees_on_ascii_without_floats(tree in trees(Flavour::Dcbor)) {
        let bytes = tree.ours();
        let theirs = dcbor::CBOR::try_from_data(&bytes).unwrap();
        prop_assert_eq!(theirs.to_cbor_data(), bytes);
    }

    #[test]
    fn damaged_bytes_are_refused_or_canonical(
        tree in trees(Flavour::All),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = tree.ours();
        for (place, byte) in damage {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        agrees(&bytes);
    }

    #[test]
    fn random_bytes_are_refused_or_canonical(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        agrees(&bytes);
    }

    /// Few distinct bytes, so that short canonical items come about often.
    #[test]
    fn structured_bytes_are_refused_or_canonical(
        bytes in prop::collection::vec(
            prop::sample::select(&b"\x00\x01\x17\x18\x20\x38\x41\x60\x61a\x80\x81\x82\
                \xa0\xa1\xa2\xf4\xf6\xf9\x3c\xfa\xc1\x7f\x9f\xff"[..]), 0..10),
    ) {
        if agrees(&bytes) {
            let tree = walk(Item::check(&bytes, Profile::DATA).unwrap());
            if !has_float(&tree) {
                let theirs = dcbor::CBOR::try_from_data(&bytes).unwrap();
                prop_assert_eq!(theirs.to_cbor_data(), bytes);
            }
        }
    }
}
