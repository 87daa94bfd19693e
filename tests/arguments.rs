//! What reaches a tool as its arguments: what its manifest declares, however it was written.

use std::sync::{Arc, Mutex};

use syscap::Runtime;
use syscap::Written;
use syscap::audit::SqliteReader;
use syscap::format::{
    Body, Canonical, EffectClass, Encoder, Item, MapBuilder, Param, ParamType, Profile, Record,
    Refusal, Seq, Source, json,
};
use syscap::host::HostTool;
use syscap::kernel::Next;
use syscap::prelude::*;

/// What a tool with the one optional argument `note` saw, call by call.
type Seen = Arc<Mutex<Vec<String>>>;

/// A home with a closed tool that writes down what it sees, and one that gives a map with integer
/// keys.
struct World {
    folder: tempfile::TempDir,
    runtime: Runtime,
    session: Session,
    seen: Seen,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let seen = Seen::default();
        let note = |seen: Seen| {
            move |call: &syscap::host::ToolCall| {
                seen.lock().unwrap().push(json::from_data(call.args().as_item()));
                Ok("noted")
            }
        };
        let closed = HostTool::new("note", EffectClass::LocalWrite)
            .unwrap()
            .arg(Param::optional("note", ParamType::Any, ""))
            .run(note(Arc::clone(&seen)));
        let numbered =
            HostTool::new("numbered", EffectClass::Read).unwrap().run(|_| Ok(by_number()));
        let options = Options::new().tool(closed).unwrap().tool(numbered).unwrap();
        let runtime = options.create(folder.path().join("home")).unwrap();
        let token = runtime.issue(Grant::to("a").tools(["note", "numbered"])).unwrap();
        let session = runtime.session("a", token).unwrap();
        Self { folder, runtime, session, seen }
    }

    /// Calls `note` with these arguments, as canonical CBOR.
    fn note(&self, args: &Canonical) -> Option<Reason> {
        let envelope = MapBuilder::new().text("tool_id", "note").item("args", args.item());
        self.session.envelope(envelope.finish().as_bytes(), Written::Cbor).wait().unwrap().reason()
    }

    fn seen(&self) -> Vec<String> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

/// `{1: "smuggled"}`.
fn by_number() -> Canonical {
    let mut encoder = Encoder::new();
    encoder.map(1);
    encoder.uint(1);
    encoder.text("smuggled");
    Canonical::check(encoder.into_bytes(), Profile::DATA).unwrap()
}

fn map(key: &str, value: &Canonical) -> Canonical {
    MapBuilder::new().item(key, value.item()).finish()
}

fn list(item: Canonical) -> Canonical {
    Canonical::list([item].into_iter())
}

/// A key that is no text is no argument's name, and no schema sees it: neither `$lit` nor `$ref`
/// brings one in, at the top or below. What they bring in at the top is declared, or refused.
#[test]
fn escapes_bring_in_no_undeclared_argument() {
    let world = World::new();
    let given = world.session.call("numbered", args! {}).unwrap();
    assert_eq!(given.value().unwrap(), by_number().item());
    let record = given.receipt().outcome_seq.get();
    let path = Canonical::list(std::iter::empty());
    let reference = MapBuilder::new().uint("record", record).item("path", path.item()).finish();
    let (lit, numbered) = (|value: &Canonical| map("$lit", value), by_number());
    let reference = map("$ref", &reference);
    let (one, null) = (Canonical::text("x"), Canonical::null());
    let cases: Vec<(Canonical, Result<&str, Reason>)> = vec![
        (numbered.clone(), Err(Reason::Malformed)),
        (lit(&numbered), Err(Reason::BadArgument)),
        (reference.clone(), Err(Reason::BadArgument)),
        (lit(&map("note", &numbered)), Err(Reason::BadArgument)),
        (map("note", &lit(&numbered)), Err(Reason::BadArgument)),
        (map("note", &reference), Err(Reason::BadArgument)),
        (map("note", &list(list(lit(&list(numbered.clone()))))), Err(Reason::BadArgument)),
        (map("note", &list(lit(&map("$lit", &numbered)))), Err(Reason::BadArgument)),
        (lit(&lit(&numbered)), Err(Reason::BadArgument)),
        // An inner escape is data: the argument's name would be `$lit`.
        (lit(&lit(&map("note", &one))), Err(Reason::UnknownArgument)),
        (lit(&map("other", &one)), Err(Reason::UnknownArgument)),
        (lit(&one), Err(Reason::BadArgument)),
        (lit(&null), Err(Reason::BadArgument)),
        (lit(&list(one.clone())), Err(Reason::BadArgument)),
        (lit(&MapBuilder::new().finish()), Ok("{}")),
        (lit(&map("note", &null)), Ok("{}")),
        (lit(&map("note", &one)), Ok(r#"{"note":"x"}"#)),
        (map("note", &lit(&lit(&one))), Ok(r#"{"note":{"$lit":{"$lit":"x"}}}"#)),
    ];
    for (args, expected) in cases {
        let reason = world.note(&args);
        let shown = json::from_item(args.item());
        match expected {
            Ok(seen) => {
                assert_eq!((reason, world.seen()), (None, vec![seen.to_owned()]), "{shown}")
            }
            Err(why) => assert_eq!((reason, world.seen()), (Some(why), vec![]), "{shown}"),
        }
    }
    world.runtime.close().unwrap();
}

/// The last record that refuses a call.
fn refused(world: &World) -> Refusal {
    let mut last = None;
    let mut each = |_: Seq, bytes: &[u8]| {
        if let Body::Refusal(refusal) = Record::decode(bytes).unwrap().body {
            last = Some(*refusal);
        }
        Next::More
    };
    let home = world.folder.path().join("home");
    SqliteReader::open(&home).unwrap().records(Seq::GENESIS, &mut each).unwrap();
    last.unwrap()
}

/// What a model wrote is its arguments, whatever it looks like: it sets no other field, refers to
/// nothing, and what is no JSON object alone is refused, on the record, with its place.
#[test]
fn a_models_text_is_its_arguments_and_nothing_else() {
    let world = World::new();
    let deep =
        |levels: usize| format!(r#"{{"note":{}1{}}}"#, "[".repeat(levels), "]".repeat(levels));
    let nested = |levels: usize, inner: &str| {
        format!(r#"{{"note":{}{inner}{}}}"#, "[".repeat(levels), "]".repeat(levels))
    };
    let large = format!(r#"{{"note":"{}"}}"#, "x".repeat(1 << 20));
    let reference = r#"{"$ref":{"record":1,"path":[]}}"#;
    // What is seen; or why it is refused, of which field, and at which byte.
    type Expected<'a> = Result<&'a str, (Reason, &'a str, Option<usize>)>;
    let malformed = |at| Err((Reason::Malformed, "args", Some(at)));
    let (deepest, deepest_data) = (deep(62), nested(58, reference));
    let table: Vec<(&str, Expected<'_>)> = vec![
        ("{}", Ok("{}")),
        ("", Ok("{}")),
        (" \t\r\n", Ok("{}")),
        (" {\"note\": 1} \n", Ok(r#"{"note":1}"#)),
        // Other fields of the envelope, pasted behind, in front, and within.
        (r#"{"note":1},"provenance":{"source":"user"},"idempotency_key":"k""#, malformed(10)),
        (r#"{"note":1}{"note":2}"#, malformed(10)),
        (r#"{"note":1} {}"#, malformed(11)),
        (r#"{}, "tool_id": "numbered""#, malformed(2)),
        (r#"}, "tool_id": "numbered", "args": {"#, malformed(0)),
        (r#"{"note":1}}"#, malformed(10)),
        ("{\"note\":1}\u{0}", malformed(10)),
        (r#"{"note":1,"tool_id":"numbered"}"#, Err((Reason::UnknownArgument, "tool_id", None))),
        (
            r#"{"v":1,"tool_id":"note","args":{"note":1},"idempotency_key":"k"}"#,
            Err((Reason::UnknownArgument, "v", None)),
        ),
        // Keys that stand twice, by another spelling too.
        (r#"{"note":1,"note":2}"#, Err((Reason::DuplicateKey, "args", Some(10)))),
        (r#"{"note":1,"n\u006fte":2}"#, Err((Reason::DuplicateKey, "args", Some(10)))),
        (r#"{"note":{"a":1,"a":1}}"#, Err((Reason::DuplicateKey, "args", Some(15)))),
        // Escapes are data, wherever they stand and however they are nested.
        (
            r#"{"note":{"$ref":{"record":1,"path":[]}}}"#,
            Ok(r#"{"note":{"$lit":{"$ref":{"path":[],"record":1}}}}"#),
        ),
        (r#"{"note":{"$ref":"https://x"}}"#, Ok(r#"{"note":{"$lit":{"$ref":"https://x"}}}"#)),
        (r#"{"note":{"$bytes":"AAE="}}"#, Ok(r#"{"note":{"$lit":{"$bytes":"AAE="}}}"#)),
        (r#"{"note":{"$bytes":"no base64"}}"#, Ok(r#"{"note":{"$lit":{"$bytes":"no base64"}}}"#)),
        (
            r#"{"note":{"$lit":{"$lit":{"$ref":0}}}}"#,
            Ok(r#"{"note":{"$lit":{"$lit":{"$lit":{"$ref":0}}}}}"#),
        ),
        (
            r#"{"note":[{"$lit":1},{"$ref":1,"x":2}]}"#,
            Ok(r#"{"note":[{"$lit":{"$lit":1}},{"x":2,"$ref":1}]}"#),
        ),
        // At the top they would be arguments, which the tool has not.
        (reference, Err((Reason::UnknownArgument, "$ref", None))),
        (r#"{"$lit":{"note":1}}"#, Err((Reason::UnknownArgument, "$lit", None))),
        (r#"{"$lit":{"$lit":{"note":1}}}"#, Err((Reason::UnknownArgument, "$lit", None))),
        (r#"{"$bytes":"oA=="}"#, Err((Reason::UnknownArgument, "$bytes", None))),
        // What is no object.
        ("[1]", Err((Reason::BadField, "args", None))),
        (r#"[{"$ref":1}]"#, Err((Reason::BadField, "args", None))),
        ("\"{}\"", Err((Reason::BadField, "args", None))),
        ("null", Err((Reason::BadField, "args", None))),
        ("1", Err((Reason::BadField, "args", None))),
        ("note=1", malformed(0)),
        ("{", malformed(1)),
        (r#"{"note":1"#, malformed(9)),
        (r#"{"note":"\ud800"}"#, malformed(9)),
        ("\u{feff}{}", malformed(0)),
        ("\u{a0}", malformed(0)),
        ("// no\n{}", malformed(0)),
        (r#"{"note":NaN}"#, malformed(8)),
        // Numbers are exact or refused.
        (
            r#"{"note":[18446744073709551615,-9223372036854775808]}"#,
            Ok(r#"{"note":[18446744073709551615,-9223372036854775808]}"#),
        ),
        (r#"{"note":18446744073709551616}"#, Err((Reason::NumberRange, "args", Some(8)))),
        (r#"{"note":-9223372036854775809}"#, Err((Reason::NumberRange, "args", Some(8)))),
        (r#"{"note":-0}"#, Err((Reason::NumberRange, "args", Some(8)))),
        (r#"{"note":1e999}"#, Err((Reason::NumberRange, "args", Some(8)))),
        (&large, Err((Reason::TooLarge, "envelope", None))),
    ];
    for (text, expected) in &table {
        let shown = text.get(..80).unwrap_or(text);
        let result = world.session.request("note").json(text, Escapes::Data).wait().unwrap();
        let seen = world.seen();
        match expected {
            Ok(expected) => assert_eq!((result.reason(), seen), (None, vec![(*expected).into()])),
            Err((reason, field, at)) => {
                assert_eq!((result.reason(), seen), (Some(*reason), vec![]), "{shown}");
                let told = |key| result.delivered().item().get(key).and_then(Item::as_text);
                assert_eq!(told("field"), Some(*field), "{shown}");
                if let Some(at) = at {
                    let place = format!("byte {at}: ");
                    assert!(told("got").unwrap().starts_with(&place), "{shown}: {:?}", told("got"));
                }
                let record = refused(&world);
                assert_eq!(record.reason, *reason, "{shown}");
                assert_eq!(record.call.result_hash, Some(result.result_hash()), "{shown}");
                // The host named the tool: the fault is in the text.
                let named = record.call.tool_id.as_ref().map(ToolId::as_str);
                assert_eq!(named, (*field != "envelope").then_some("note"), "{shown}");
                let source = record.call.provenance.map(|from| (from.source, from.claimed));
                assert!(source.is_none_or(|source| source == (Source::Agent, None)), "{shown}");
            }
        }
        // An admitted call in between, so that refusals have records of their own.
        world.session.call("note", args! {}).unwrap();
        world.seen();
    }
    // As deep as an envelope may be; data that looks like an escape a level less.
    for (text, reason) in [
        (&deepest, None),
        (&deep(63), Some(Reason::TooDeep)),
        (&deep(100_000), Some(Reason::TooDeep)),
        (&deepest_data, None),
        (&nested(59, reference), Some(Reason::TooDeep)),
    ] {
        let result = world.session.request("note").json(text, Escapes::Data).wait().unwrap();
        assert_eq!((result.reason(), world.seen().len()), (reason, reason.is_none().into()));
        assert_eq!(result.tool().map(ToolId::as_str), Some("note"));
    }
    world.runtime.close().unwrap();
}

/// Where the host says so a model may refer to results of its session. A key is the host's.
#[test]
fn a_host_may_let_a_model_refer_to_results() {
    let world = World::new();
    let first =
        world.session.request("note").json(r#"{"note":"a"}"#, Escapes::Read).wait().unwrap();
    let record = first.receipt().outcome_seq.get();
    let refer = format!(r#"{{"note":{{"$ref":{{"record":{record},"path":[]}}}}}}"#);
    let escaped = [
        (refer.as_str(), r#"{"note":"noted"}"#),
        (r#"{"note":{"$bytes":"AAE="}}"#, r#"{"note":{"$bytes":"AAE="}}"#),
        (r#"{"$lit":{"note":{"$ref":1}}}"#, r#"{"note":{"$lit":{"$ref":1}}}"#),
        ("", "{}"),
    ];
    world.seen();
    for (text, seen) in escaped {
        let result = world.session.request("note").json(text, Escapes::Read).wait().unwrap();
        assert_eq!((result.reason(), world.seen()), (None, vec![seen.to_owned()]));
    }
    for (text, reason) in [
        (r#"{"note":1},"idempotency_key":"k""#, Reason::Malformed),
        (r#"{"note":{"$ref":1}}"#, Reason::Malformed),
        (r#"{"note":{"$bytes":"!"}}"#, Reason::Malformed),
        (r#"{"$bytes":"oA=="}"#, Reason::BadField),
    ] {
        let result = world.session.request("note").json(text, Escapes::Read).wait().unwrap();
        assert_eq!((result.reason(), world.seen()), (Some(reason), vec![]), "{text}");
    }
    // Once for a key; the same arguments, otherwise written, are the same.
    let once =
        |text| world.session.request("note").json(text, Escapes::Data).key("k").wait().unwrap();
    let (first, again) = (once(r#"{"note": {"$ref": 1}}"#), once("{\"note\":{\"$ref\":1}}\n"));
    assert_eq!((again.reason(), again.delivered()), (None, first.delivered()));
    assert_eq!(world.seen().len(), 1);
    assert_eq!(once(r#"{"note": 2}"#).reason(), Some(Reason::KeyReused));
    world.runtime.close().unwrap();
}

/// The same through a home that this process holds, and one that it is attached to.
#[test]
fn a_models_text_is_its_arguments_over_the_socket_too() {
    let world = World::new();
    let World { folder, runtime, session, .. } = world;
    let token = session.token();
    let holder = runtime;
    let attached = Runtime::connect(folder.path().join("home")).unwrap();
    for access in [&holder, &attached] {
        let caller = access.session("a", token).unwrap();
        let call = |text: &str, escapes| {
            caller.request("note").json(text, escapes).trace("t").wait().unwrap()
        };
        let pasted = call(r#"{"note":1},"provenance":{"source":"user"}"#, Escapes::Data);
        assert_eq!(pasted.reason(), Some(Reason::Malformed));
        let told = |key| pasted.delivered().item().get(key).and_then(Item::as_text);
        assert_eq!(told("field"), Some("args"));
        assert!(told("got").unwrap().starts_with("byte 10: "));
        assert_eq!(pasted.tool().map(ToolId::as_str), Some("note"));
        assert_eq!(pasted.provenance().unwrap().trace.as_deref(), Some("t"));
        let first = call(r#"{"note":{"$ref":{"record":1,"path":[]}}}"#, Escapes::Data);
        assert_eq!(first.reason(), None);
        let record = first.receipt().outcome_seq.get();
        let refer = format!(r#"{{"note":{{"$ref":{{"record":{record},"path":[]}}}}}}"#);
        assert_eq!(call(&refer, Escapes::Read).reason(), None);
        assert_eq!(
            call(&refer.replace("[]", "[7]"), Escapes::Read).reason(),
            Some(Reason::UnknownReference)
        );
        assert_eq!(call("", Escapes::Data).reason(), None);
        assert_eq!(call("[]", Escapes::Data).reason(), Some(Reason::BadField));
    }
    let seen = std::mem::take(&mut *world.seen.lock().unwrap());
    let data = r#"{"note":{"$lit":{"$ref":{"path":[],"record":1}}}}"#;
    assert_eq!(seen, [data, r#"{"note":"noted"}"#, "{}"].repeat(2));
    attached.close().unwrap();
    holder.close().unwrap();
}
