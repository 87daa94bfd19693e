//! Documents: the canonical form, and what comes out again.

use crate::written::{constraint, document, load, one, with_params};
use syscap_format::{
    Canonical, ConstraintId, DecodeFault, EngineIdentity, Obligation, PolicyObject, Profile, json,
};
use syscap_kernel::{PolicyEngine, object_of};
use syscap_policy::limits::{DOCUMENT_BYTES_MAX, TEXT_BYTES_MAX};
use syscap_policy::{
    Ask, Attribute, Condition, Constant, Effect, LoadFault, OnFail, Policy, Subject, WithinToken,
    engine,
};

#[test]
fn canonical_form_forgets_how_it_was_written() {
    let b = constraint(&[
        ("id", r#""b""#),
        ("v", "1"),
        ("examples", "[]"),
        (
            "obligations",
            r#"[{"type":"notify","topic":"x"},{"type":"result_cap","bytes":9},
                {"type":"result_cap","bytes":5}]"#,
        ),
    ]);
    let a =
        constraint(&[("when", r#"{"args":["args.a",[2,1]],"op":"in"}"#), ("obligations", "[]")]);
    let first = load(&document(&[b.clone(), a.clone()])).unwrap();
    let again = load(&with_params(&format!("{a},{b}"), "{}")).unwrap();
    assert_eq!(first.document(), again.document());
    assert_eq!(first.hash(), again.hash());
    let bytes = first.document();
    assert_eq!(Policy::from_cbor(&bytes).unwrap().document(), bytes);
    assert_eq!(load(&first.to_json()).unwrap().document(), bytes);
    let text = json::from_item(Canonical::check(bytes, Profile::CONTROL).unwrap().item());
    let expected = concat!(
        r#"{"v":1,"constraints":["#,
        r#"{"id":"a","when":{"op":"in","args":["args.a",[2,1]]},"effect":"allow","reason":"","#,
        r#""on_fail":"block","subject":null},"#,
        r#"{"id":"b","when":{"op":"all","args":[]},"effect":"allow","reason":"","#,
        r#""on_fail":"block","subject":null,"obligations":[{"type":"result_cap","bytes":5},"#,
        r#"{"type":"notify","topic":"x"}]}]}"#
    );
    assert_eq!(text, expected);
    let obligations = &first.written().constraints[1].obligations;
    assert_eq!(obligations[..], [Obligation::result_cap(5), Obligation::notify("x")]);
}

#[test]
fn parameters_stand_for_constants_and_constraints() {
    let uses = constraint(&[
        ("when", r#"{"op":"in","args":["args.host",{"param":"hosts"}]}"#),
        ("subject", r#"{"tool_id":"http.get"}"#),
    ]);
    let params = r#"{"hosts":["a.example","b.example"],"tools":["http.get","fs.read"],
        "agents":{"bob":["fs.read"],"eve":[]},"risk":{"http.post":99}}"#;
    let policy = load(&with_params(&uses, params)).unwrap();
    let ids: Vec<&str> =
        policy.written().constraints.iter().map(|constraint| constraint.id.as_str()).collect();
    assert_eq!(
        ids,
        ["a", "params.agents", "params.agents.bob", "params.agents.eve", "params.tools"]
    );
    let tools: Vec<&str> = policy.tools().map(|tool| tool.as_str()).collect();
    assert_eq!(tools, ["fs.read", "http.get", "http.post"]);
    let Condition::Test(test) = &policy.written().constraints[0].when else { panic!("a test") };
    let constants = ["a.example", "b.example"].map(|text| Constant::Text(text.into()));
    assert_eq!(test.ask, Ask::In(constants.to_vec()));
    assert_eq!(test.attribute, Attribute::parse("args.host").unwrap());
    let made = &policy.written().constraints[4];
    assert_eq!(
        (made.effect, made.on_fail, &made.subject),
        (Effect::Deny, OnFail::Block, &Subject::All)
    );
    // References stay as they were written, and so does what stands for constraints.
    assert!(policy.to_json().contains(r#"{"param":"hosts"}"#), "{}", policy.to_json());
    assert!(!policy.to_json().contains("params.tools"));
    assert_eq!(load(&policy.to_json()).unwrap().written(), policy.written());
    // A list that stands elsewhere may be empty: nothing is one of it.
    let policy = load(&with_params(&uses, r#"{"hosts":[]}"#)).unwrap();
    assert_eq!(policy.written().constraints[0].when, Condition::Any(Vec::new()));
}

#[test]
fn attributes_print_as_they_read() {
    let alone = Attribute::TABLE.iter().filter(|row| row.attribute.is_some());
    let mut texts: Vec<String> = alone.map(|row| row.name.to_owned()).collect();
    assert!(texts.len() >= 12, "{texts:?}");
    texts.extend(
        [
            "fact.a",
            "goal.a-b.c.d",
            "args.x",
            "args.x.y z.0",
            "budget.calls",
            "call.hold.disk_files",
        ]
        .map(str::to_owned),
    );
    for text in texts {
        assert_eq!(Attribute::parse(&text).expect(&text).to_string(), text);
    }
    assert_eq!(Attribute::parse("call.token"), None);
}

#[test]
fn an_object_names_its_engine() {
    let policy = load(&one(&[])).unwrap();
    let object = object_of(&policy);
    let found = engine(&object).expect("an engine");
    assert_eq!(object_of(&*found), object);
    assert_eq!(object_of(&*found).hash(), policy.hash());
    let within = engine(&object_of(&WithinToken)).expect("an engine");
    assert_eq!(within.identity(), WithinToken.identity());

    let identity = |name: &str, version| EngineIdentity { name: name.into(), version };
    let others = [
        PolicyObject { engine: identity("ss01", 2), ..object.clone() },
        PolicyObject { engine: identity("ss02", 1), ..object.clone() },
        PolicyObject { engine: identity("within-token", 1), ..object.clone() },
        PolicyObject { engine: identity("within-token", 2), document: vec![0xa0] },
        PolicyObject { document: vec![0xa0], ..object.clone() },
        // A document that is not in canonical form is another text of the same policy.
        PolicyObject {
            document: json::to_cbor(one(&[("v", "1")]).as_bytes()).unwrap().into_bytes(),
            ..object
        },
    ];
    for other in others {
        assert!(engine(&other).is_none(), "{other:?}");
    }
}

#[test]
fn canonical_bytes_are_checked() {
    let error = Policy::from_cbor(&[0xa0, 0x00]).unwrap_err();
    assert_eq!(error.fault, LoadFault::Cbor(DecodeFault::Trailing));
    let error = Policy::from_cbor(&[0xa1, 0x01, 0x01]).unwrap_err();
    assert_eq!((error.fault, &*error.place), (LoadFault::Type, "document"));
    let large = vec![0; DOCUMENT_BYTES_MAX + 1];
    assert_eq!(Policy::from_cbor(&large).unwrap_err().fault, LoadFault::TooLarge);
    let large = vec![b' '; TEXT_BYTES_MAX + 1];
    assert_eq!(Policy::from_json(&large).unwrap_err().fault, LoadFault::TooLarge);
    // Bytes of all kinds are refused or read, and never panic.
    let good = load(&one(&[])).unwrap().document();
    for place in 0..good.len() {
        for byte in [0x00, 0x20, 0x60, 0x80, 0xa0, 0xf4, 0xf6, 0xf9, 0xff] {
            let mut bad = good.clone();
            bad[place] = byte;
            if let Ok(policy) = Policy::from_cbor(&bad) {
                assert_eq!(policy.document(), bad);
            }
        }
    }
}

#[test]
fn an_error_is_one_line_that_says_what_to_write() {
    let error = load(&one(&[("efect", "1")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        r#"constraints[0]: this key is not known here: "efect"; try: effect"#
    );
    let long = "x".repeat(1_000);
    let error = load(&one(&[(&long, "1")])).unwrap_err();
    assert!(error.to_string().len() < 300);
}

#[test]
fn ten_thousand_constraints_read() {
    let id = |n: usize| format!("\"c{n}\"");
    let all: Vec<String> = (0..10_000)
        .map(|n| {
            constraint(&[
                ("id", &id(n)),
                ("subject", &format!(r#"{{"tool_id":"tool.t{}"}}"#, n / 100)),
                ("when", &format!(r#"{{"op":"eq","args":["args.a","v{n}"]}}"#)),
            ])
        })
        .collect();
    let policy = load(&document(&all)).unwrap();
    assert_eq!(policy.written().constraints.len(), 10_000);
    assert_eq!(policy.tools().count(), 100);
    let wanted = ConstraintId::new("c9999").unwrap();
    assert_eq!(policy.written().constraints[9_999].id, wanted);
}
