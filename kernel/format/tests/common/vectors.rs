//! Valid and invalid encodings, written from the rules of RFC 8949 (its appendix A has most of
//! these values) and of the profile.
#![allow(dead_code, clippy::unwrap_used, reason = "tests; not every test uses everything")]

use syscap_format::DecodeFault;

use super::tree::Tree;

pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        text.chars().map(|digit| u8::try_from(digit.to_digit(16).unwrap()).unwrap()).collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty());
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}

/// Encodings of the profile `DATA` and what they mean.
pub(crate) fn valid() -> Vec<(&'static str, Tree)> {
    let mut all = scalars();
    all.extend(structures());
    all
}

fn scalars() -> Vec<(&'static str, Tree)> {
    use Tree::{Bool, Bytes, Negative, Null, Uint};
    let (text, float) = (Tree::text, Tree::float);
    vec![
        ("00", Uint(0)),
        ("01", Uint(1)),
        ("0a", Uint(10)),
        ("17", Uint(23)),
        ("1818", Uint(24)),
        ("1819", Uint(25)),
        ("1864", Uint(100)),
        ("18ff", Uint(255)),
        ("190100", Uint(256)),
        ("1903e8", Uint(1000)),
        ("19ffff", Uint(65535)),
        ("1a00010000", Uint(65536)),
        ("1a000f4240", Uint(1_000_000)),
        ("1affffffff", Uint(0xffff_ffff)),
        ("1b0000000100000000", Uint(0x1_0000_0000)),
        ("1b000000e8d4a51000", Uint(1_000_000_000_000)),
        ("1bffffffffffffffff", Uint(u64::MAX)),
        ("20", Negative(0)),
        ("29", Negative(9)),
        ("37", Negative(23)),
        ("3818", Negative(24)),
        ("3863", Negative(99)),
        ("3903e7", Negative(999)),
        ("3a00010000", Negative(65536)),
        ("3b7fffffffffffffff", Negative(0x7fff_ffff_ffff_ffff)),
        ("f90000", float(0.0)),
        ("f98000", float(-0.0)),
        ("f93c00", float(1.0)),
        ("f93e00", float(1.5)),
        ("f97bff", float(65504.0)),
        ("f90001", float(5.960_464_477_539_063e-8)),
        ("f903ff", float(6.097_555_160_522_461e-5)),
        ("f90400", float(0.000_061_035_156_25)),
        ("f9c400", float(-4.0)),
        ("fa47c35000", float(100_000.0)),
        ("fa47800000", float(65536.0)),
        ("fa7f7fffff", float(3.402_823_466_385_288_6e38)),
        ("fa33000000", float(2.980_232_238_769_531_2e-8)),
        ("fa00000001", float(1.401_298_464_324_817e-45)),
        ("fb3ff199999999999a", float(1.1)),
        ("fbc010666666666666", float(-4.1)),
        ("fb7e37e43c8800759c", float(1e300)),
        ("fb0000000000000001", float(5e-324)),
        ("f4", Bool(false)),
        ("f5", Bool(true)),
        ("f6", Null),
        ("40", Bytes(vec![])),
        ("4401020304", Bytes(vec![1, 2, 3, 4])),
        ("60", text("")),
        ("6161", text("a")),
        ("6449455446", text("IETF")),
        ("62225c", text("\"\\")),
        ("62c3bc", text("\u{fc}")),
        ("63e6b0b4", text("\u{6c34}")),
        ("64f0908591", text("\u{10151}")),
        ("6100", text("\0")),
        ("63efbbbf", text("\u{feff}")),
        ("6365cc81", text("e\u{301}")),
        ("7818616161616161616161616161616161616161616161616161", text(&"a".repeat(24))),
    ]
}

fn structures() -> Vec<(&'static str, Tree)> {
    use Tree::{Array, Bytes, Null, Text, Uint, Uints};
    let (text, map) = (Tree::text, |entries: Vec<(&str, Tree)>| Tree::map(entries));
    let letters = |text: &str| text.chars().map(String::from).map(Text).collect::<Vec<_>>();
    vec![
        ("80", Array(vec![])),
        ("83010203", Array(vec![Uint(1), Uint(2), Uint(3)])),
        (
            "8301820203820405",
            Array(vec![Uint(1), Array(vec![Uint(2), Uint(3)]), Array(vec![Uint(4), Uint(5)])]),
        ),
        (
            "98190102030405060708090a0b0c0d0e0f101112131415161718181819",
            Array((1..=25).map(Uint).collect()),
        ),
        ("a0", map(vec![])),
        ("a201020304", Uints(vec![(1, Uint(2)), (3, Uint(4))])),
        ("a2001818181800", Uints(vec![(0, Uint(24)), (24, Uint(0))])),
        ("a26161016162820203", map(vec![("a", Uint(1)), ("b", Array(vec![Uint(2), Uint(3)]))])),
        ("826161a161626163", Array(vec![text("a"), map(vec![("b", text("c"))])])),
        (
            "a56161614161626142616361436164614461656145",
            Tree::map(letters("abcde").into_iter().zip(letters("ABCDE")).map(|(key, value)| {
                match key {
                    Text(key) => (key, value),
                    _ => (String::new(), value),
                }
            })),
        ),
        // Length first: "" < "b" < "aa".
        ("a360f66162f6626161f6", map(vec![("", Null), ("b", Null), ("aa", Null)])),
        ("a161618181f6", map(vec![("a", Array(vec![Array(vec![Null])]))])),
        ("a1016161", Uints(vec![(1, text("a"))])),
        ("8241ff63e6b0b4", Array(vec![Bytes(vec![0xff]), text("\u{6c34}")])),
    ]
}

/// Encodings that the profile `DATA` refuses.
pub(crate) const INVALID: &[(&str, DecodeFault)] = &[
    ("", DecodeFault::End),
    ("18", DecodeFault::End),
    ("1900", DecodeFault::End),
    ("1b00000000000000", DecodeFault::End),
    ("81", DecodeFault::Length),
    ("8201", DecodeFault::Length),
    ("a1", DecodeFault::Length),
    ("a101", DecodeFault::End),
    ("820181", DecodeFault::Length),
    ("f9", DecodeFault::End),
    ("fa0000", DecodeFault::End),
    ("61", DecodeFault::Length),
    ("4401", DecodeFault::Length),
    ("0000", DecodeFault::Trailing),
    ("a000", DecodeFault::Trailing),
    ("f6ff", DecodeFault::Trailing),
    ("1817", DecodeFault::NonShortest),
    ("190018", DecodeFault::NonShortest),
    ("1900ff", DecodeFault::NonShortest),
    ("1a0000ffff", DecodeFault::NonShortest),
    ("1b00000000ffffffff", DecodeFault::NonShortest),
    ("3800", DecodeFault::NonShortest),
    ("5800", DecodeFault::NonShortest),
    ("780161", DecodeFault::NonShortest),
    ("9800", DecodeFault::NonShortest),
    ("b800", DecodeFault::NonShortest),
    ("5fff", DecodeFault::Indefinite),
    ("5f42010243030405ff", DecodeFault::Indefinite),
    ("7f657374726561646d696e67ff", DecodeFault::Indefinite),
    ("9fff", DecodeFault::Indefinite),
    ("9f018202039f0405ffff", DecodeFault::Indefinite),
    ("83018202039f0405ff", DecodeFault::Indefinite),
    ("bf61610161629f0203ffff", DecodeFault::Indefinite),
    ("826161bf61626163ff", DecodeFault::Indefinite),
    ("ff", DecodeFault::Indefinite),
    ("81ff", DecodeFault::Indefinite),
    ("1c", DecodeFault::Reserved),
    ("1d", DecodeFault::Reserved),
    ("1e", DecodeFault::Reserved),
    ("1f", DecodeFault::Reserved),
    ("3f", DecodeFault::Reserved),
    ("5c", DecodeFault::Reserved),
    ("9e", DecodeFault::Reserved),
    ("df00", DecodeFault::Reserved),
    ("fc", DecodeFault::Reserved),
    ("c074323031332d30332d32315432303a30343a30305a", DecodeFault::Tag),
    ("c11a514b67b0", DecodeFault::Tag),
    ("c1fb41d452d9ec200000", DecodeFault::Tag),
    ("c249010000000000000000", DecodeFault::Tag),
    ("c349010000000000000000", DecodeFault::Tag),
    ("c24101", DecodeFault::Tag),
    ("d74401020304", DecodeFault::Tag),
    ("d818456449455446", DecodeFault::Tag),
    ("d9d9f700", DecodeFault::Tag),
    ("a1c1616101", DecodeFault::Tag),
    ("a16161c101", DecodeFault::Tag),
    ("e0", DecodeFault::Simple),
    ("f0", DecodeFault::Simple),
    ("f3", DecodeFault::Simple),
    ("f7", DecodeFault::Simple),
    ("f800", DecodeFault::Simple),
    ("f814", DecodeFault::Simple),
    ("f818", DecodeFault::Simple),
    ("f8ff", DecodeFault::Simple),
    ("f97c00", DecodeFault::NotFinite),
    ("f9fc00", DecodeFault::NotFinite),
    ("f97e00", DecodeFault::NotFinite),
    ("f97c01", DecodeFault::NotFinite),
    ("fa7f800000", DecodeFault::NotFinite),
    ("fa7fc00000", DecodeFault::NotFinite),
    ("fb7ff0000000000000", DecodeFault::NotFinite),
    ("fbfff0000000000000", DecodeFault::NotFinite),
    ("fb7ff8000000000000", DecodeFault::NotFinite),
    ("fa3f800000", DecodeFault::Float),
    ("fa00000000", DecodeFault::Float),
    ("fb3ff0000000000000", DecodeFault::Float),
    ("fb40f86a0000000000", DecodeFault::Float),
    ("fb8000000000000000", DecodeFault::Float),
    ("3b8000000000000000", DecodeFault::IntRange),
    ("3bffffffffffffffff", DecodeFault::IntRange),
    ("61ff", DecodeFault::Utf8),
    ("62c080", DecodeFault::Utf8),
    ("63eda080", DecodeFault::Utf8),
    ("64f4908080", DecodeFault::Utf8),
    ("61c3", DecodeFault::Utf8),
    ("a2616200616100", DecodeFault::KeyOrder),
    ("a262616100616200", DecodeFault::KeyOrder),
    ("a201000000", DecodeFault::KeyOrder),
    ("a2181800020000", DecodeFault::KeyOrder),
    ("a2616101616102", DecodeFault::DuplicateKey),
    ("a201020103", DecodeFault::DuplicateKey),
    ("a26161f6616161f6", DecodeFault::DuplicateKey),
    ("a1416101", DecodeFault::KeyType),
    ("a12001", DecodeFault::KeyType),
    ("a1f60a", DecodeFault::KeyType),
    ("a1f501", DecodeFault::KeyType),
    ("a1f93c0001", DecodeFault::KeyType),
    ("a1800100", DecodeFault::KeyType),
    ("a1a00100", DecodeFault::KeyType),
    ("a20001616101", DecodeFault::KeyType),
    ("5bffffffffffffffff", DecodeFault::Length),
    ("7a80000000", DecodeFault::Length),
    ("9bffffffffffffffff", DecodeFault::Length),
    ("bb7fffffffffffffff", DecodeFault::Length),
    ("9a7fffffff00", DecodeFault::Length),
];
