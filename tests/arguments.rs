//! What reaches a tool as its arguments: what its manifest declares, however it was written.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]
#![allow(clippy::too_many_lines, reason = "tables")]

use std::sync::{Arc, Mutex};

use syscap::{
    host::HostTool,
    kernel::{
        cbor::{Canonical, Encoder, MapBuilder, Profile},
        json,
        manifest::{EffectClass, Param, ParamType},
    },
    prelude::*,
};

/// What a tool with the one optional argument `note` saw, call by call.
type Seen = Arc<Mutex<Vec<String>>>;

/// A home with a closed tool that writes down what it sees, and one that gives a map with integer
/// keys.
struct World {
    _folder: tempfile::TempDir,
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
        Self { _folder: folder, runtime, session, seen }
    }

    /// Calls `note` with these arguments, as canonical CBOR.
    fn note(&self, args: &Canonical) -> Option<Reason> {
        let envelope = MapBuilder::new().text("tool_id", "note").item("args", args.item());
        self.session.send_cbor(envelope.finish().as_bytes()).unwrap().reason()
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
