//! Vectors of `cbor.md`: items, shapes and names.

use serde_json::json;
use syscap_format::field::Field;
use syscap_format::{
    AgentId, ConstraintId, Decoder, EngineIdentity, FactKey, FreezeTarget, HomeLimits,
    IdempotencyKey, Item, Profile, Rights, Role, ToolId, json as text,
};

use crate::case::{Cases, Of, hex, unhex};

/// Items of profile `DATA`, and what an implementation refuses, by requirement.
const ITEMS: &[(Of, &str, &str)] = &[
    (
        Of("SYSCAP-CBOR-001", "two readers that stop at different places see different items"),
        "00 01 0a 17 20 29 37 40 4401020304 60 6161 6449455446 62225c 62c3bc 63e6b0b4 \
         64f0908591 6100",
        "0000 a000 f6ff",
    ),
    (
        Of("SYSCAP-CBOR-002", "memory is set aside for a count that the input does not have"),
        "80 83010203 8301820203820405 a0 8241ff63e6b0b4",
        "- 18 1900 1b00000000000000 81 8201 a1 a101 820181 f9 fa0000 61 4401 \
         5bffffffffffffffff 7a80000000 9bffffffffffffffff bb7fffffffffffffff 9a7fffffff00",
    ),
    (
        Of("SYSCAP-CBOR-003", "one value has two encodings, so two hashes"),
        "1818 1819 1864 18ff 190100 1903e8 19ffff 1a00010000 1a000f4240 1affffffff \
         1b0000000100000000 1b000000e8d4a51000 1bffffffffffffffff 3818 3863 3903e7 3a00010000 \
         7818616161616161616161616161616161616161616161616161 \
         98190102030405060708090a0b0c0d0e0f101112131415161718181819",
        "1817 190018 1900ff 1a0000ffff 1b00000000ffffffff 3800 5800 780161 9800 b800",
    ),
    (
        Of("SYSCAP-CBOR-004", "a chunked string equals no other string byte by byte"),
        "5818000000000000000000000000000000000000000000000000",
        "5fff 5f42010243030405ff 7f657374726561646d696e67ff 9fff 9f018202039f0405ffff \
         83018202039f0405ff bf61610161629f0203ffff 826161bf61626163ff ff 81ff",
    ),
    (
        Of("SYSCAP-CBOR-005", "a reserved head is read as a length"),
        "1b7fffffffffffffff",
        "1c 1d 1e 1f 3f 5c 9e df00 fc",
    ),
    (
        Of("SYSCAP-CBOR-006", "a tagged value passes for the value in it"),
        "826161a161626163",
        "c074323031332d30332d32315432303a30343a30305a c11a514b67b0 c1fb41d452d9ec200000 \
         c249010000000000000000 c349010000000000000000 c24101 d74401020304 d818456449455446 \
         d9d9f700 a1c1616101 a16161c101",
    ),
    (
        Of("SYSCAP-CBOR-007", "`undefined` passes for null"),
        "f4 f5 f6",
        "e0 f0 f3 f7 f800 f814 f818 f8ff",
    ),
    (
        Of("SYSCAP-CBOR-008", "a negative integer overflows a signed word"),
        "3b7fffffffffffffff",
        "3b8000000000000000 3bffffffffffffffff",
    ),
    (
        Of("SYSCAP-CBOR-009", "a key of another type is looked up as text"),
        "a201020304 a26161016162820203",
        "a1416101 a12001 a1f60a a1f501 a1f93c0001 a1800100 a1a00100",
    ),
    (
        Of("SYSCAP-CBOR-010", "integer and text keys name the same field"),
        "a1016161 a161618181f6",
        "a20001616101",
    ),
    (
        Of(
            "SYSCAP-CBOR-011",
            "a key that stands twice means one thing to one reader and another to the next",
        ),
        "a2001818181800 a360f66162f6626161f6 a56161614161626142616361436164614461656145",
        "a2616200616100 a262616100616200 a201000000 a2181800020000 a2616101616102 a201020103 \
         a26161f6616161f6",
    ),
    (
        Of("SYSCAP-CBOR-012", "broken text is replaced, so two names become one"),
        "6100 63efbfbd",
        "61ff 62c080 63eda080 64f4908080 61c3",
    ),
    (Of("SYSCAP-CBOR-013", "two names that look alike become one"), "6365cc81 62c3a9 63efbbbf", ""),
    (
        Of("SYSCAP-CBOR-016", "one number has two encodings, so two hashes"),
        "f90000 f98000 f93c00 f93e00 f97bff f90001 f903ff f90400 f9c400 fa47c35000 fa47800000 \
         fa7f7fffff fa33000000 fa00000001 fb3ff199999999999a fbc010666666666666 \
         fb7e37e43c8800759c fb0000000000000001",
        "fa3f800000 fa00000000 fb3ff0000000000000 fb40f86a0000000000 fb8000000000000000",
    ),
    (
        Of("SYSCAP-CBOR-017", "NaN compares unequal to itself"),
        "fb7fefffffffffffff",
        "f97c00 f9fc00 f97e00 f97c01 fa7f800000 fa7fc00000 fb7ff0000000000000 \
         fbfff0000000000000 fb7ff8000000000000",
    ),
];

/// The vectors.
pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    for (of, valid, invalid) in ITEMS {
        for digits in valid.split_whitespace() {
            item(&mut cases, *of, "", "DATA", &unhex(digits), true);
        }
        for digits in invalid.split_whitespace() {
            item(&mut cases, *of, "", "DATA", &unhex(digits.trim_matches('-')), false);
        }
    }
    depth(&mut cases);
    hashed(&mut cases);
    shapes(&mut cases);
    names(&mut cases);
    cases
}

/// An item under a profile, held against ours. One that is taken stands there in JSON as well.
fn item(cases: &mut Cases, of: Of, comment: &str, profile: &str, bytes: &[u8], valid: bool) {
    let ours = if profile == "DATA" { Profile::DATA } else { Profile::CONTROL };
    let found = Item::check(bytes, ours);
    assert_eq!(found.is_ok(), valid, "{of:?} {} {found:?}", hex(bytes));
    let mut given = json!({"kind": "item", "profile": profile, "bytes": hex(bytes)});
    // Maps with integer keys have no form in JSON that reads back.
    let printed = found.ok().map(text::from_item).filter(|printed| {
        text::to_cbor(printed.as_bytes()).is_ok_and(|read| read.as_bytes() == bytes)
    });
    if let Some(printed) = printed {
        given["json"] = json!(printed);
    }
    cases.add(of, valid, comment, given);
}

fn depth(cases: &mut Cases) {
    let of = Of("SYSCAP-CBOR-014", "a deep item overflows the stack");
    for (profile, most) in [("DATA", 64), ("CONTROL", 16)] {
        for open in ["81", "a16161", "a100"] {
            let nested = |depth: usize| unhex(&(open.repeat(depth - 1) + "80"));
            item(cases, of, "as deep as may be", profile, &nested(most), true);
            item(cases, of, "one deeper", profile, &nested(most + 1), false);
            let endless = unhex(&open.repeat(1_000));
            item(cases, of, "much deeper, and no end", profile, &endless, false);
        }
    }
    let of = Of("SYSCAP-CBOR-015", "a float decides, and rounds");
    item(cases, of, "an integer", "CONTROL", &unhex("8101"), true);
    for digits in ["f93c00", "81f90000", "a100fb3ff199999999999a"] {
        item(cases, of, "a float", "CONTROL", &unhex(digits), false);
    }
}

fn hashed(cases: &mut Cases) {
    let of = Of("SYSCAP-CBOR-018", "what is hashed was decoded and encoded again");
    for digits in ["a10180", "a201a2016c77697468696e2d746f6b656e02010241a0"] {
        let bytes = unhex(digits);
        let id = syscap_format::object_id(&bytes);
        let given =
            json!({"kind": "hash", "domain": "OBJECT_ID", "bytes": digits, "hash": id.to_string()});
        cases.valid(of, "an object's id", given);
    }
}

/// A decoder of one type.
type Take = fn(&[u8]) -> bool;

/// A type and what decodes it.
type Typed = (&'static str, Take);

fn takes<T: Field>(bytes: &[u8]) -> bool {
    let mut decoder = Decoder::new(bytes, Profile::CONTROL);
    T::take(&mut decoder).is_ok() && decoder.finish().is_ok()
}

fn typed(cases: &mut Cases, of: Of, (name, take): Typed, bytes: &[u8], valid: bool) {
    assert_eq!(take(bytes), valid, "{of:?} {name} {}", hex(bytes));
    cases.add(of, valid, "", json!({"kind": "type", "type": name, "bytes": hex(bytes)}));
}

fn shapes(cases: &mut Cases) {
    let engine: Typed = ("EngineIdentity", takes::<EngineIdentity>);
    let limits: Typed = ("HomeLimits", takes::<HomeLimits>);
    let name = "a20164737330310201";
    let mut add = |requirement, catches, (what, valid, invalid): (Typed, &str, &str)| {
        let of = Of(requirement, catches);
        for (all, is_valid) in [(valid, true), (invalid, false)] {
            for digits in all.split_whitespace() {
                typed(cases, of, what, &unhex(digits), is_valid);
            }
        }
    };
    add(
        "SYSCAP-CBOR-020",
        "a field that is missing has a default that nobody signed",
        (engine, name, "a1016473733031 a10201 a0"),
    );
    add(
        "SYSCAP-CBOR-021",
        "a field that a reader skips means something to the next version",
        (engine, name, "a3016473733031020103f6 a20164737330310301 a300000164737330310201"),
    );
    add(
        "SYSCAP-CBOR-022",
        "a number passes for text, or null for a value",
        (engine, name, "a201010201 a201f60201 a201647373303102f6 a20144737330310201 80 f6"),
    );
    let with = "a4011a000493e002190400031b00000001cf7c58000405";
    let null = "a4011a000493e002190400031b00000001cf7c580004f6";
    let without = "a3011a000493e002190400031b00000001cf7c5800";
    add(
        "SYSCAP-CBOR-023",
        "an absent key and null are two encodings of one meaning",
        (limits, &format!("{with} {without}"), null),
    );
    add(
        "SYSCAP-CBOR-024",
        "an unknown code is taken for one that is known",
        (("uint Role", takes::<Role>), "01 06", "00 07 1bffffffffffffffff"),
    );
    add(
        "SYSCAP-CBOR-024",
        "an unknown code is taken for one that is known",
        (("uint FreezeTarget", takes::<FreezeTarget>), "01 03", "00 04"),
    );
    add(
        "SYSCAP-CBOR-025",
        "a right that a later version adds is granted by an earlier one",
        (("uint bits Rights", takes::<Rights>), "00 01 07", "08 0f 1820"),
    );
}

fn names(cases: &mut Cases) {
    let long = |count| "a".repeat(count);
    let agent: Typed = ("text AgentId", takes::<AgentId>);
    let tool: Typed = ("text ToolId", takes::<ToolId>);
    let key: Typed = ("text IdempotencyKey", takes::<IdempotencyKey>);
    let constraint: Typed = ("text ConstraintId", takes::<ConstraintId>);
    let fact: Typed = ("text FactKey", takes::<FactKey>);
    let of = [
        Of("SYSCAP-CBOR-030", "a name climbs out of its folder, or covers another"),
        Of("SYSCAP-CBOR-031", "two tools have names that read alike"),
        Of("SYSCAP-CBOR-032", "a key is cut where it is stored"),
        Of("SYSCAP-CBOR-033", "a constraint's name breaks the page that shows it"),
        Of("SYSCAP-CBOR-034", "a fact is written into another's namespace"),
    ];
    let goal = |count| format!("goal.{}", long(count));
    let all = [
        (
            agent,
            strings(&["a", "team/reader", "a-1/b_2/c.3", &long(128)]),
            strings(&[
                "",
                "/a",
                "a/",
                "a//b",
                ".a",
                "a/.b",
                "a/..",
                "A",
                "a b",
                "a\\b",
                "\u{e9}",
                &long(129),
            ]),
        ),
        (
            tool,
            strings(&["a", "fs.read", "a1.b_2", &long(64)]),
            strings(&["", ".a", "a.", "a..b", "1a", "a.1", "_a", "A", "a-b", "a/b", &long(65)]),
        ),
        (
            key,
            strings(&["a", "A.b_c:d-9", &long(64)]),
            strings(&["", "a b", "a/b", "\u{e9}", &long(65)]),
        ),
        (
            constraint,
            strings(&["a", "A/b.c_d-9", &long(160)]),
            strings(&["", "a b", "a:b", "\u{e9}", &long(161)]),
        ),
        (
            fact,
            strings(&["goal.topic", "fact.a-b_9", &goal(64)]),
            strings(&["", "goal", "goal.", "other.a", "goal.A", "goal.a.b", "Goal.a", &goal(65)]),
        ),
    ];
    for ((what, valid, invalid), of) in all.into_iter().zip(of) {
        for (names, is_valid) in [(valid, true), (invalid, false)] {
            for name in names {
                let mut encoder = syscap_format::Encoder::new();
                encoder.text(&name);
                typed(cases, of, what, &encoder.into_bytes(), is_valid);
            }
        }
    }
}

fn strings(all: &[&str]) -> Vec<String> {
    all.iter().map(|one| (*one).to_owned()).collect()
}
