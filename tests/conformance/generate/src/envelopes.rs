//! Vectors of `calls.md`, The call: envelopes, completed or refused.

use serde_json::{Map, Value, json};
use syscap_format::json::to_cbor;
use syscap_format::{
    AgentId, Defaults, ENVELOPE_BYTES_MAX, Form, PolicyHash, Provenance, Reason, Refused,
    SnapshotId, Source, TokenId, ToolCall, UnixMillis,
};

use crate::case::{Cases, Of, hex, unhex};
use crate::random::Random;

/// A field, values that it may have, values that it may not have, and the reason then.
type Field = (Of, &'static str, fn() -> [Vec<Value>; 2], Reason);

/// The fields in canonical order.
const FIELDS: [Field; 10] = [
    (Of("SYSCAP-CALL-007", "a version that is text is read as none"), "v", versions, BAD),
    (Of("SYSCAP-CALL-008", "a tool reads arguments that have no names"), "args", args, BAD),
    (Of("SYSCAP-CALL-009", "a proof that nobody checked is taken for one"), "proof", proofs, PROOF),
    (Of("SYSCAP-CALL-010", "two spellings of one tool"), "tool_id", tools, BAD),
    (Of("SYSCAP-CALL-011", "an agent's id leaves its own folder"), "agent_id", agents, BAD),
    (Of("SYSCAP-CALL-012", "a claim that can't be recorded"), "provenance", provenances, BAD),
    (Of("SYSCAP-CALL-013", "two spellings of one id"), "policy_hash", ids, BAD),
    (Of("SYSCAP-CALL-014", "two spellings of one key"), "idempotency_key", keys, BAD),
    (Of("SYSCAP-CALL-013", "two spellings of one id"), "state_snapshot_id", ids, BAD),
    (Of("SYSCAP-CALL-013", "two spellings of one id"), "capability_token_id", ids, BAD),
];

const BAD: Reason = Reason::BadField;
const PROOF: Reason = Reason::BadProof;

fn versions() -> [Vec<Value>; 2] {
    [vec![json!(1)], vec![json!("1"), json!(null), json!(-1), json!(1.5), json!([1])]]
}

fn args() -> [Vec<Value>; 2] {
    let some = json!({"path": "a", "more": [1, -2, 0.5, null, true, {"$bytes": "AAE="}]});
    let no = vec![json!([]), json!(null), json!("{}"), json!(1), json!({"$bytes": ""})];
    [vec![json!({}), some, json!({"$lit": {"$ref": 1}})], no]
}

/// There is no proof within an envelope.
fn proofs() -> [Vec<Value>; 2] {
    [vec![], vec![json!(null), json!("x"), json!({})]]
}

fn tools() -> [Vec<Value>; 2] {
    let longest = format!("a{}", "b".repeat(63));
    let texts = ["look", "fs.read", "a_1.b", &longest];
    let longer = format!("{longest}b");
    let wrong = ["", "Look", "1a", "a.", ".a", "a..b", "a.1", "_a", "a-b", "look\n", &longer];
    [of(&texts), of(&wrong).into_iter().chain([json!(7), json!(["look"]), json!(null)]).collect()]
}

fn agents() -> [Vec<Value>; 2] {
    let longest = "a".repeat(128);
    let longer = "a".repeat(129);
    let wrong =
        ["", "/a", "a/", "a//b", "../x", "a/..", ".a", "A", "a b", "a\n", "\u{e9}", &longer];
    [of(&["a", "a/b/c", "0-_.", "_", &longest]), of(&wrong).into_iter().chain([json!(7)]).collect()]
}

fn provenances() -> [Vec<Value>; 2] {
    let trace = |length| json!({"source": "user", "trace": "t".repeat(length)});
    let inputs = |count| json!({"source": "tool", "inputs": vec![3; count]});
    let mut taken: Vec<Value> = ["user", "agent", "tool", "encoder", "observer"]
        .map(|source| json!({"source": source, "time": 5}))
        .into();
    taken.extend([trace(0), trace(64), inputs(0), inputs(16), json!({"source": "user", "x": [1]})]);
    let refused = vec![
        json!("user"),
        json!({}),
        json!(null),
        json!({"time": 1}),
        json!({"source": "root"}),
        json!({"source": 1}),
        json!({"source": "user", "time": -1}),
        json!({"source": "user", "time": "5"}),
        json!({"source": "user", "time": null}),
        json!({"source": "user", "inputs": 1}),
        json!({"source": "user", "inputs": ["1"]}),
        json!({"source": "user", "trace": 1}),
        trace(65),
        inputs(17),
    ];
    [taken, refused]
}

fn keys() -> [Vec<Value>; 2] {
    let longest = "k".repeat(64);
    let longer = "k".repeat(65);
    [of(&["a", "A.b_c:d-1", &longest]), of(&["", "a b", "a/b", "a\n", &longer, "\u{e9}"])]
}

fn ids() -> [Vec<Value>; 2] {
    let bytes = |count| json!({"$bytes": base64(count)});
    let digits = "5".repeat(64);
    let refused = [json!("A".repeat(64)), json!("5".repeat(63)), json!(format!("{digits}5"))];
    let more = [json!(""), json!(1), json!(null), bytes(31), bytes(33), bytes(0)];
    [vec![json!(digits), bytes(32)], refused.into_iter().chain(more).collect()]
}

/// So many zero bytes.
fn base64(count: usize) -> String {
    let digits = (count * 8).div_ceil(6);
    format!("{}{}", "A".repeat(digits), "=".repeat(digits.next_multiple_of(4) - digits))
}

fn of(texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!(text)).collect()
}

/// An envelope with all that it needs.
fn least() -> Map<String, Value> {
    let least = json!({"tool_id": "look", "args": {"at": 1}});
    least.as_object().expect("an object").clone()
}

fn with(changes: &[(&str, Value)]) -> Map<String, Value> {
    let mut envelope = least();
    envelope.extend(changes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())));
    envelope
}

/// An envelope, and what it is completed with.
fn given(form: Form, bytes: &[u8]) -> Value {
    json!({
        "kind": "envelope",
        "form": if form == Form::Json { "json" } else { "cbor" },
        "bytes": hex(bytes),
        "session": {
            "agent_id": "team/a",
            "capability_token_id": "bb".repeat(32),
            "state_snapshot_id": "cc".repeat(32),
            "policy_hash": "dd".repeat(32),
            "source": "agent",
            "time": 1_800_000_000_000_u64,
        },
    })
}

/// Our decoder's form of an envelope.
fn completed_by_ours(received: &[u8], form: Form) -> Result<Vec<u8>, Refused> {
    let agent = AgentId::new("team/a").expect("an id");
    let defaults = Defaults {
        agent: &agent,
        token: TokenId::from_bytes([0xbb; 32]),
        snapshot: SnapshotId::from_bytes([0xcc; 32]),
        policy: PolicyHash::from_bytes([0xdd; 32]),
        provenance: Provenance::new(Source::Agent, UnixMillis::new(1_800_000_000_000)),
    };
    match ToolCall::decode(received, form, defaults) {
        Ok(call) => Ok(call.as_bytes().to_vec()),
        Err(faulty) => Err(faulty.refused().clone()),
    }
}

/// So many envelopes by chance, the same for the same seed. An envelope with changed bytes states
/// no reason: bytes can have several faults.
pub(crate) fn random(count: usize, seed: u64) -> Cases {
    let of = Of("SYSCAP-CALL-019", "two readers of one envelope see two calls");
    let (mut cases, mut random) = (Cases::default(), Random::new(seed));
    for _ in 0..count {
        let mut envelope = least();
        for (_, field, values, _) in FIELDS {
            let [taken, refused] = values();
            let from = if random.below(12) == 0 { refused } else { taken };
            match random.below(3) {
                0 if !from.is_empty() => {
                    envelope.insert(field.to_owned(), from[random.below(from.len())].clone());
                }
                1 if random.below(10) == 0 => drop(envelope.remove(field)),
                _ => {}
            }
        }
        let text = Value::Object(envelope).to_string().into_bytes();
        let is_json = random.below(2) == 0;
        let form = if is_json { Form::Json } else { Form::Cbor };
        let mut bytes = if is_json { text } else { to_cbor(&text).expect("converts").into_bytes() };
        let changes = if random.below(2) == 0 { 0 } else { 1 + random.below(3) };
        for _ in 0..changes {
            let (at, byte) = (random.below(bytes.len()), random.below(256));
            let byte = u8::try_from(byte).expect("a byte");
            match random.below(4) {
                0 => bytes.insert(at, byte),
                1 if bytes.len() > 1 => drop(bytes.remove(at)),
                2 => bytes[at] ^= 1 << random.below(8),
                _ => bytes[at] = byte,
            }
        }
        let mut given = given(form, &bytes);
        let answer = completed_by_ours(&bytes, form);
        match &answer {
            Ok(completed) => given["completed"] = json!(hex(completed)),
            Err(refused) if changes == 0 => given["reason"] = json!(refused.reason().name()),
            Err(_) => {}
        }
        cases.add(of, answer.is_ok(), format!("{changes} changes"), given);
    }
    cases
}

/// Asks our decoder; adds the vector, and says what it must answer.
struct Asked<'a> {
    cases: &'a mut Cases,
    of: Of,
}

impl Asked<'_> {
    /// Bytes, with so many spaces behind them.
    fn bytes(&mut self, form: Form, bytes: &[u8], pad: usize, wanted: Option<(Reason, &str)>) {
        let mut received = bytes.to_vec();
        received.resize(bytes.len() + pad, b' ');
        let shown: String = String::from_utf8_lossy(bytes).chars().take(60).collect();
        let shown = if form == Form::Json { shown } else { hex(bytes).chars().take(60).collect() };
        let mut given = given(form, bytes);
        if pad > 0 {
            given["pad"] = json!(pad);
        }
        match completed_by_ours(&received, form) {
            Ok(completed) => {
                assert_eq!(wanted, None, "{shown}: taken");
                given["completed"] = json!(hex(&completed));
            }
            Err(refused) => {
                let (reason, field) = wanted.unwrap_or_else(|| panic!("{shown}: {refused:?}"));
                assert_eq!(refused.reason(), reason, "{shown}");
                assert!(field.is_empty() || refused.is_about(field), "{shown}: {refused:?}");
                given["reason"] = json!(reason.name());
                if !field.is_empty() {
                    given["field"] = json!(field);
                }
            }
        }
        self.cases.add(self.of, wanted.is_none(), shown, given);
    }

    /// JSON.
    fn text(&mut self, text: &str, wanted: Option<(Reason, &str)>) {
        self.bytes(Form::Json, text.as_bytes(), 0, wanted);
    }

    /// An envelope in both forms.
    fn both(&mut self, envelope: Map<String, Value>, wanted: Option<(Reason, &str)>) {
        let text = Value::Object(envelope).to_string();
        let converted = to_cbor(text.as_bytes()).expect("converts");
        self.text(&text, wanted);
        self.bytes(Form::Cbor, converted.as_bytes(), 0, wanted);
    }
}

pub(crate) fn cases() -> Cases {
    let mut cases = Cases::default();
    sizes(&mut cases);
    unreadable(&mut cases);
    fields(&mut cases);
    missing(&mut cases);
    pairs(&mut cases);
    completed(&mut cases);
    cases
}

fn sizes(cases: &mut Cases) {
    let of = Of("SYSCAP-CALL-001", "memory that the caller chooses");
    let mut asked = Asked { cases, of };
    let text = Value::Object(least()).to_string();
    let left = ENVELOPE_BYTES_MAX - text.len();
    asked.bytes(Form::Json, text.as_bytes(), left, None);
    let large = Some((Reason::TooLarge, "envelope"));
    asked.bytes(Form::Json, text.as_bytes(), left + 1, large);
    asked.bytes(Form::Json, b"{", ENVELOPE_BYTES_MAX, large);
    asked.bytes(Form::Cbor, b"\xa0", ENVELOPE_BYTES_MAX, large);
}

/// Bytes that are no item, or none that is accepted.
fn unreadable(cases: &mut Cases) {
    let good = |at: &str| format!("a26461726773a1626174{at}67746f6f6c5f6964646c6f6f6b");
    let deep = |levels: usize| {
        let (open, close) = ("[".repeat(levels), "]".repeat(levels));
        format!(r#"{{"tool_id": "look", "args": {{"at": {open}{close}}}}}"#)
    };
    let at = |value: &str| format!(r#"{{"tool_id": "look", "args": {{"at": {value}}}}}"#);
    let keys = |key: &str| format!(r#"{{"tool_id": "look", "args": {{"at": 1, {key}: 1}}}}"#);
    let both = [("01", good("01")), ("00", good("00"))];
    for (value, bytes) in both {
        let of = Of("SYSCAP-CALL-002", "the hash is of other bytes than the tool reads");
        let mut asked = Asked { cases, of };
        asked.text(&at(&value[1..]), None);
        asked.bytes(Form::Cbor, &unhex(&bytes), 0, None);
    }
    let malformed = Some((Reason::Malformed, ""));
    let of = Of("SYSCAP-CALL-002", "the hash is of other bytes than the tool reads");
    let mut asked = Asked { cases, of };
    for text in
        ["", "{", "{} {}", "{}x", "nul", &at("01"), &at("\"\\ud800\""), &at("{\"$ref\": 1}")]
    {
        asked.text(text, malformed);
    }
    asked.bytes(Form::Json, b"\xff\xfe", 0, malformed);
    let trailing = format!("{}00", good("01"));
    let swapped = "a267746f6f6c5f6964646c6f6f6b6461726773a1626174 01".replace(' ', "");
    let bytes = ["", &good("1801"), &good("f7"), &good("c101"), &good("9fff"), &trailing, &swapped];
    for bytes in bytes.into_iter().chain([&good("01")[..40], &good("61ff"), "a10001"]) {
        asked.bytes(Form::Cbor, &unhex(bytes), 0, malformed);
    }
    let mut asked = Asked { cases, of: Of("SYSCAP-CALL-003", "a stack that the caller chooses") };
    asked.text(&deep(62), None);
    asked.text(&deep(63), Some((Reason::TooDeep, "")));
    asked.text(&deep(1000), Some((Reason::TooDeep, "")));
    for (levels, wanted) in [(62, None), (63, Some((Reason::TooDeep, "")))] {
        let inner = format!("{}80", "81".repeat(levels - 1));
        asked.bytes(Form::Cbor, &unhex(&good(&inner)), 0, wanted);
    }
    let of = Of("SYSCAP-CALL-004", "the check reads the first of two keys, and the tool the last");
    let mut asked = Asked { cases, of };
    asked.text(&keys("\"b\""), None);
    asked.text(&keys("\"at\""), Some((Reason::DuplicateKey, "")));
    asked.text(&keys("\"\\u0061t\""), Some((Reason::DuplicateKey, "")));
    let twice = "a36461726773a06461726773a067746f6f6c5f6964646c6f6f6b";
    asked.bytes(Form::Cbor, &unhex(twice), 0, Some((Reason::DuplicateKey, "args")));
    let of = Of("SYSCAP-CALL-005", "a number that one reader rounds");
    let mut asked = Asked { cases, of };
    asked.text(&at("18446744073709551615"), None);
    asked.bytes(Form::Cbor, &unhex(&good("3b7fffffffffffffff")), 0, None);
    for value in ["18446744073709551616", "-9223372036854775809", "1e999", "-0"] {
        asked.text(&at(value), Some((Reason::NumberRange, "")));
    }
    for value in ["f97e00", "f97c00", "3bffffffffffffffff"] {
        asked.bytes(Form::Cbor, &unhex(&good(value)), 0, Some((Reason::NumberRange, "args")));
    }
    let of = Of("SYSCAP-CALL-006", "fields are read where there are none");
    let mut asked = Asked { cases, of };
    asked.both(least(), None);
    for (text, bytes) in [("[]", "80"), ("null", "f6"), ("1", "01"), ("\"a\"", "6161")] {
        asked.text(text, Some((BAD, "envelope")));
        asked.bytes(Form::Cbor, &unhex(bytes), 0, Some((BAD, "envelope")));
    }
}

fn fields(cases: &mut Cases) {
    for (of, field, values, reason) in FIELDS {
        let [taken, refused] = values();
        let mut asked = Asked { cases, of };
        for value in taken {
            asked.both(with(&[(field, value)]), None);
        }
        if field == "proof" {
            asked.both(least(), None);
        }
        for value in refused {
            asked.both(with(&[(field, value)]), Some((reason, field)));
        }
    }
    let of = Of("SYSCAP-CALL-015", "what is not known gives a right, or is lost");
    let mut asked = Asked { cases, of };
    asked.both(
        with(&[("x", json!(1)), ("role", json!("admin")), ("z z", json!({"proof": 1}))]),
        None,
    );
    let of = Of("SYSCAP-CALL-016", "a call of a later version is read as one of this");
    let mut asked = Asked { cases, of };
    asked.both(with(&[("v", json!(1))]), None);
    for version in [json!(0), json!(2), json!(u64::MAX)] {
        asked.both(with(&[("v", version)]), Some((Reason::UnknownVersion, "v")));
    }
}

fn without(keys: &[&str], changes: &[(&str, Value)]) -> Map<String, Value> {
    let mut envelope = with(changes);
    keys.iter().for_each(|key| drop(envelope.remove(*key)));
    envelope
}

const MISSING: [(&str, &str); 2] = [("SYSCAP-CALL-017", "tool_id"), ("SYSCAP-CALL-018", "args")];

fn missing(cases: &mut Cases) {
    for (requirement, field) in MISSING {
        let mut asked = Asked { cases, of: Of(requirement, "what is missing is made up") };
        asked.both(least(), None);
        asked.both(without(&[field], &[]), Some((Reason::MissingField, field)));
    }
}

/// Every ordered pair of steps, with both faults.
fn pairs(cases: &mut Cases) {
    let of = Of("SYSCAP-CALL-019", "which of two reasons is told tells who decided");
    let mut asked = Asked { cases, of };
    let wrong = |values: fn() -> [Vec<Value>; 2]| values()[1][0].clone();
    for (n, (_, field, values, reason)) in FIELDS.into_iter().enumerate() {
        let first = (field, wrong(values));
        for (_, other, values, _) in FIELDS.into_iter().skip(n + 1) {
            asked.both(with(&[first.clone(), (other, wrong(values))]), Some((reason, field)));
        }
        if field != "v" {
            asked.both(with(&[first.clone(), ("v", json!(2))]), Some((reason, field)));
        }
        for (_, gone) in MISSING.into_iter().filter(|(_, gone)| *gone != field) {
            asked.both(without(&[gone], std::slice::from_ref(&first)), Some((reason, field)));
        }
        // A fault of the bytes is told before.
        let text = Value::Object(with(&[first])).to_string();
        let twice = text.replacen('{', "{\"twice\":1,\"twice\":1,", 1);
        asked.text(&twice, Some((Reason::DuplicateKey, "envelope")));
        let not_a_number = text.replacen('{', "{\"zz\":1e999,", 1);
        asked.text(&not_a_number, Some((Reason::NumberRange, "envelope")));
    }
    let version = ("v", json!(2));
    for (_, gone) in MISSING {
        let envelope = without(&[gone], std::slice::from_ref(&version));
        asked.both(envelope, Some((Reason::UnknownVersion, "v")));
    }
    asked.both(without(&["tool_id", "args"], &[]), Some((Reason::MissingField, "tool_id")));
    let large = Some((Reason::TooLarge, "envelope"));
    for text in ["[]", "{", "{\"a\":1,\"a\":1}", "{\"v\":2}", "{\"proof\":1}"] {
        asked.bytes(Form::Json, text.as_bytes(), ENVELOPE_BYTES_MAX, large);
    }
}

/// Every set of fields that is left out.
fn completed(cases: &mut Cases) {
    let of = Of("SYSCAP-CALL-020", "what is completed has other bytes elsewhere");
    let mut asked = Asked { cases, of };
    let id = |digit: &str| json!(digit.repeat(64));
    let all = [
        ("v", json!(1)),
        ("agent_id", json!("a")),
        ("provenance", json!({"source": "user"})),
        ("policy_hash", id("1")),
        ("state_snapshot_id", id("2")),
        ("capability_token_id", id("3")),
        ("idempotency_key", json!("k")),
    ];
    for set in 0..1_u32 << all.len() {
        let given: Vec<_> = (0..)
            .zip(&all)
            .filter(|(n, _)| set >> n & 1 == 1)
            .map(|(_, one)| one.clone())
            .collect();
        let text = Value::Object(with(&given)).to_string();
        let converted = to_cbor(text.as_bytes()).expect("converts");
        asked.bytes(Form::Cbor, converted.as_bytes(), 0, None);
    }
}
