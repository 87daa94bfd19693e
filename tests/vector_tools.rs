//! `vecdb.*`: what is found, for whom, and what no input makes of it.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, thread};

use crate::stranger::{World, options, world};
use host_support::{ample, by_cap_std, end, records};
use serde_json::{Value, json};
use syscap::Written;
use syscap::format::{Body, Label, Scope, TxOutcome};
use syscap::prelude::*;

const TOOLS: [&str; 4] = ["vecdb.query", "vecdb.upsert", "vecdb.delete", "stranger.say"];

impl World {
    fn session(&self, collections: &[&str]) -> Session {
        let budget = ample();
        let scope = Scope::names(collections.iter().copied()).unwrap();
        let grant = Grant::to("a").tools(TOOLS).scope("collection", scope).budget(budget);
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    fn again(self) -> Self {
        let Self { _dir, home, rt } = self;
        rt.close().unwrap();
        let rt = options().open(&home).unwrap();
        Self { _dir, home, rt }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.home.join("files/agents/.vectors").join(format!("{name}.vec"))
    }
}

fn call(session: &Session, tool: &str, args: &Value) -> ToolResult {
    session.request(tool).json(&args.to_string(), Escapes::Data).wait().unwrap()
}

fn value(result: &ToolResult) -> Value {
    serde_json::from_str(&result.to_json()).unwrap()
}

fn upsert(session: &Session, items: &Value) -> ToolResult {
    call(session, "vecdb.upsert", &json!({ "items": items }))
}

fn hits(session: &Session, args: &Value) -> Vec<String> {
    let found = call(session, "vecdb.query", args);
    assert_eq!(found.reason(), None, "{}", found.to_json());
    let all = value(&found);
    all["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap().into()).collect()
}

#[test]
fn the_nearest_are_found_and_stay_found() {
    let world = world();
    let agent = world.session(&["acme/docs"]);
    let items = json!([
        { "id": "east", "embedding": [1, 0], "metadata": { "lang": "en", "year": 2020 } },
        { "id": "north", "embedding": [0, 2.5], "metadata": { "lang": "de", "year": 2024 } },
        { "id": "west", "embedding": [-3, 0] },
    ]);
    assert!(hits(&agent, &json!({ "embedding": [1, 0] })).is_empty());
    let put = upsert(&agent, &items);
    assert_eq!(put.tx_outcome(), TxOutcome::Committed);
    assert_eq!(value(&put), json!({ "created": 3, "replaced": 0 }));
    assert_eq!(hits(&agent, &json!({ "embedding": [1, 0.1] })), ["east", "north", "west"]);
    assert_eq!(hits(&agent, &json!({ "embedding": [0.1, 1], "k": 1 })), ["north"]);
    let found = value(&call(&agent, "vecdb.query", &json!({ "embedding": [5, 0], "k": 1 })));
    assert_eq!(found["hits"][0]["score"], 1.0);
    assert_eq!(found["hits"][0]["metadata"], json!({ "lang": "en", "year": 2020 }));
    assert_eq!(found["vectors"], 3);
    let moved = json!([{ "id": "east", "embedding": [0, -1] }]);
    assert_eq!(value(&upsert(&agent, &moved)), json!({ "created": 0, "replaced": 1 }));
    let delete = |ids: Value| call(&agent, "vecdb.delete", &json!({ "ids": ids }));
    let deleted = delete(json!(["west", "none", "west"]));
    assert_eq!(
        (value(&deleted)["deleted"].clone(), deleted.tx_outcome()),
        (json!(1), TxOutcome::Committed)
    );
    assert_eq!(delete(json!(["west"])).tx_outcome(), TxOutcome::NoOp);
    assert_eq!(hits(&agent, &json!({ "embedding": [0, 1] })), ["north", "east"]);
    drop(agent);
    let world = world.again();
    let agent = world.session(&["acme/docs"]);
    assert_eq!(hits(&agent, &json!({ "embedding": [0, 1] })), ["north", "east"]);
    drop(agent);
    end(&world.rt, &world.home);
}

/// The tenant is the token's: no argument leads to another's vectors.
#[test]
fn no_tenant_sees_anothers() {
    let world = world();
    let (ours, theirs) =
        (world.session(&["ours/docs"]), world.session(&["theirs/docs", "theirs/x"]));
    upsert(&ours, &json!([{ "id": "secret", "embedding": [1, 0] }]));
    let put = json!({ "collection": "theirs/docs", "items": [{ "id": "t", "embedding": [1, 0] }] });
    assert_eq!(call(&theirs, "vecdb.upsert", &put).reason(), None);
    for name in ["ours/docs", "ours", "theirs/docs2", "theirs/docs/x"] {
        for (tool, mut args) in [
            ("vecdb.query", json!({ "embedding": [1, 0] })),
            ("vecdb.upsert", json!({ "items": [{ "id": "secret", "embedding": [0, 1] }] })),
            ("vecdb.delete", json!({ "ids": ["secret"] })),
        ] {
            args["collection"] = name.into();
            assert_eq!(call(&theirs, tool, &args).reason(), Some(Reason::OutOfScope), "{name}");
        }
    }
    for name in
        ["../ours/docs", "theirs/../ours/docs", "/x", "a//b", ".x", "A", "a\u{0}", "a/b/c/d/e"]
    {
        let args = json!({ "collection": name, "embedding": [1, 0] });
        let refused = call(&theirs, "vecdb.query", &args).reason();
        assert_eq!(refused, Some(Reason::BadArgument), "{name}");
    }
    let unnamed = call(&theirs, "vecdb.query", &json!({ "embedding": [1, 0] }));
    assert_eq!(unnamed.reason(), Some(Reason::MissingArgument));
    let own = json!({ "collection": "theirs/docs", "embedding": [1, 0] });
    assert_eq!(hits(&theirs, &own), ["t"]);
    assert_eq!(hits(&ours, &json!({ "embedding": [1, 0] })), ["secret"]);
}

/// What an engine would answer with anything to is refused before.
#[test]
fn vectors_without_a_direction_are_refused() {
    let world = world();
    let agent = world.session(&["docs"]);
    upsert(&agent, &json!([{ "id": "a", "embedding": [1, 0, 0] }]));
    let before = fs::read(world.file("docs")).unwrap();
    let long = vec![1; 4_097];
    let one = json!([1, 0, 0]);
    for (bad, reason) in [
        (json!([0, 0, 0]), Reason::BadArgument),
        (json!([0.0, -0.0, 0]), Reason::BadArgument),
        (json!([1e39, 0, 0]), Reason::BadArgument),
        (json!([]), Reason::BadArgument),
        (json!(long), Reason::BadArgument),
        (json!(["1", 0, 0]), Reason::BadArgument),
        (json!([[1], 0, 0]), Reason::BadArgument),
        (json!([null, 0, 0]), Reason::BadArgument),
        (json!([1, 0]), Reason::Mismatch),
        (json!([1, 0, 0, 0]), Reason::Mismatch),
    ] {
        let asked = call(&agent, "vecdb.query", &json!({ "embedding": bad }));
        assert_eq!(asked.reason(), Some(reason), "query {bad}");
        let put = upsert(&agent, &json!([{ "id": "b", "embedding": bad }]));
        assert_eq!(put.reason(), Some(reason), "upsert {bad}");
        assert_eq!(put.tx_outcome(), TxOutcome::NoOp);
    }
    for items in [
        json!([]),
        json!([{ "embedding": one }]),
        json!([{ "id": "", "embedding": one }]),
        json!([{ "id": "x\u{0}", "embedding": one }]),
        json!([{ "id": "x".repeat(129), "embedding": one }]),
        json!([{ "id": "x", "embedding": one, "tenant": "theirs" }]),
        json!([{ "id": "x", "embedding": one }, { "id": "x", "embedding": one }]),
        json!([{ "id": "x", "embedding": one }, { "id": "y", "embedding": [1] }]),
        json!([{ "id": "x", "embedding": one, "metadata": { "a": [1] } }]),
        json!([{ "id": "x", "embedding": one, "metadata": { "a": 1.5 } }]),
        json!([{ "id": "x", "embedding": one, "metadata": { "a": "y".repeat(5_000) } }]),
        json!(["x"]),
    ] {
        assert_eq!(upsert(&agent, &items).reason(), Some(Reason::BadArgument), "{items}");
    }
    for k in [json!(0), json!(-1), json!(4_097), json!(1_000_000_000)] {
        let asked = call(&agent, "vecdb.query", &json!({ "embedding": one, "k": k }));
        assert_eq!(asked.reason(), Some(Reason::BadArgument), "{k}");
    }
    assert_eq!(hits(&agent, &json!({ "embedding": one, "k": 4_096 })), ["a"]);
    // NaN and the infinities have no JSON; an envelope of CBOR can bring them.
    for bits in [0x7e00_u16, 0x7c00, 0xfc00] {
        let mut cbor = b"\xa2\x64args\xa1\x69embedding\x83\x01\x00\xf9".to_vec();
        cbor.extend_from_slice(&bits.to_be_bytes());
        cbor.extend_from_slice(b"\x67tool_id\x6bvecdb.query");
        assert!(
            agent.envelope(&cbor, Written::Cbor).wait().unwrap().reason().is_some(),
            "{bits:x}"
        );
    }
    assert_eq!(fs::read(world.file("docs")).unwrap(), before);
}

#[test]
fn filters_are_tests_and_nothing_else() {
    let world = world();
    let agent = world.session(&["docs"]);
    let item = |id: &str, lang: &str, year: u32, free: bool| {
        let metadata = json!({ "lang": lang, "year": year, "free": free, "eq": "odd" });
        json!({ "id": id, "embedding": [1, 0], "metadata": metadata })
    };
    let bare = json!({ "id": "e", "embedding": [1, 0] });
    upsert(
        &agent,
        &json!([
            item("a", "en", 2020, true),
            item("b", "en", 2024, false),
            item("c", "de", 2024, true),
            item("d", "fr", 1990, false),
            bare
        ]),
    );
    let found =
        |filters: Value| hits(&agent, &json!({ "embedding": [1, 0], "filters": filters })).join("");
    for (filters, ids) in [
        (json!({}), "abcde"),
        (json!({ "lang": "en" }), "ab"),
        (json!({ "lang": "en", "year": 2024 }), "b"),
        (json!({ "eq": { "eq": "odd", "free": true } }), "ac"),
        (json!({ "in": { "lang": ["de", "fr"] } }), "cd"),
        (json!({ "in": { "lang": [] } }), ""),
        (json!({ "range": { "year": { "gte": 2020, "lt": 2024 } } }), "a"),
        (json!({ "range": { "year": { "gt": 2020 } } }), "bc"),
        (json!({ "range": { "lang": { "gt": 0 } } }), ""),
        (json!({ "not": { "lang": "en" } }), "cde"),
        (json!({ "or": [{ "lang": "de" }, { "year": 1990 }] }), "cd"),
        (json!({ "or": [] }), ""),
        (json!({ "and": [{ "lang": "en" }, { "not": { "free": true } }] }), "b"),
        (json!({ "lang": "en' OR '1'='1" }), ""),
        (json!({ "year": "2024" }), ""),
    ] {
        assert_eq!(found(filters.clone()), ids, "{filters}");
    }
    let deep = (0..9).fold(json!({ "a": 1 }), |inner, _| json!({ "not": inner }));
    let wide: Vec<Value> = (0..65).map(|n| json!({ "a": n })).collect();
    for filters in [
        json!("lang = 'en'"),
        json!({ "and": { "lang": "en" } }),
        json!({ "or": ["x"] }),
        json!({ "lang": { "$gt": "" } }),
        json!({ "lang": [] }),
        json!({ "range": { "year": { "like": 1 } } }),
        json!({ "range": { "year": 5 } }),
        json!({ "in": { "lang": "en" } }),
        json!({ "eq": [] }),
        deep,
        json!({ "or": wide }),
    ] {
        let asked =
            call(&agent, "vecdb.query", &json!({ "embedding": [1, 0], "filters": filters }));
        assert_eq!(asked.reason(), Some(Reason::BadArgument), "{filters}");
    }
}

fn append(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().append(true).open(path).unwrap().write_all(bytes).unwrap();
}

/// Whatever a crash left behind the last whole frame is not read, and is written over.
#[test]
fn torn_frame_is_overwritten() {
    let mut world = world();
    let agent = world.session(&["docs"]);
    upsert(&agent, &json!([{ "id": "a", "embedding": [1, 0] }]));
    let whole = fs::read(world.file("docs")).unwrap();
    upsert(&agent, &json!([{ "id": "z", "embedding": [1, 0] }]));
    drop(agent);
    let both = fs::read(world.file("docs")).unwrap();
    let frame = &both[whole.len()..];
    let mut flipped = frame.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    let huge = [0xff; 40];
    let tails: [&[u8]; 6] =
        [&frame[..1], &frame[..frame.len() - 1], &flipped, &huge, &[0; 3], &[0; 4_096]];
    for tail in tails {
        fs::write(world.file("docs"), &whole).unwrap();
        append(&world.file("docs"), tail);
        world = world.again();
        let agent = world.session(&["docs"]);
        let skipped = || {
            let found = call(&agent, "vecdb.query", &json!({ "embedding": [1, 0] }));
            found.value().unwrap().get("skipped_bytes").and_then(syscap::format::Item::as_uint)
        };
        assert_eq!(hits(&agent, &json!({ "embedding": [1, 0] })), ["a"]);
        assert_eq!(skipped(), Some(tail.len() as u64), "that there was more is said");
        assert_eq!(upsert(&agent, &json!([{ "id": "b", "embedding": [0, 1] }])).reason(), None);
        assert_eq!(skipped(), None);
        drop(agent);
        world = world.again();
        let agent = world.session(&["docs"]);
        assert_eq!(hits(&agent, &json!({ "embedding": [1, 0] })), ["a", "b"]);
    }
    // A first write that was broken off, at any byte.
    for cut in [1, 11, 12, 15, 16, 20, whole.len() - 1] {
        fs::write(world.file("docs"), &whole[..cut]).unwrap();
        world = world.again();
        let agent = world.session(&["docs"]);
        assert!(hits(&agent, &json!({ "embedding": [1, 0] })).is_empty());
        assert_eq!(upsert(&agent, &json!([{ "id": "c", "embedding": [1, 2, 3] }])).reason(), None);
        assert_eq!(hits(&agent, &json!({ "embedding": [1, 0, 0] })), ["c"], "{cut}");
    }
    // What is no collection is not made one.
    for other in ["a text that somebody put there", "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"] {
        fs::write(world.file("docs"), other).unwrap();
        world = world.again();
        let agent = world.session(&["docs"]);
        let asked = call(&agent, "vecdb.query", &json!({ "embedding": [1, 0] }));
        assert_eq!(asked.reason(), Some(Reason::NotAFile));
        let put = upsert(&agent, &json!([{ "id": "c", "embedding": [1, 2, 3] }]));
        assert_eq!((put.reason(), put.tx_outcome()), (Some(Reason::NotAFile), TxOutcome::NoOp));
        assert_eq!(fs::read(world.file("docs")).unwrap(), other.as_bytes());
    }
}

/// A file of which most is gone is written anew, and says the same.
#[test]
fn mostly_deleted_file_is_rewritten() {
    let mut world = world();
    let agent = world.session(&["docs", "other"]);
    let put = |id: &str, n: usize, name: &str| {
        let numbers: Vec<usize> = (0..1_000).map(|m| 1 + m % (n + 1)).collect();
        let args = json!({ "collection": name, "items": [{ "id": id, "embedding": numbers }] });
        assert_eq!(call(&agent, "vecdb.upsert", &args).reason(), None);
    };
    for n in 0..100 {
        put(&format!("keep{n}"), n, "docs");
    }
    put("other", 1, "other");
    call(&agent, "stranger.say", &json!({}));
    put("tainted", 3, "docs");
    // A crash left one half written.
    let stale = world.file("docs").with_file_name(".syscap-vectors-0000000000000000.tmp");
    fs::write(stale, "half").unwrap();
    for n in 0..400 {
        put("again", n % 50, "docs");
    }
    let size = fs::metadata(world.file("docs")).unwrap().len();
    assert!((400_000..1_100_000).contains(&size), "{size}");
    let all = json!({ "collection": "docs", "embedding": vec![1; 1_000], "k": 4_096 });
    let before = hits(&agent, &all);
    assert_eq!(before.len(), 102);
    drop(agent);
    world = world.again();
    let agent = world.session(&["docs", "other"]);
    assert_eq!(hits(&agent, &all), before);
    drop(agent);
    // What is written anew keeps the label of each.
    let label = |id: usize, k: usize| {
        let agent = world.session(&["docs"]);
        let numbers: Vec<usize> = (0..1_000).map(|m| 1 + m % (id + 1)).collect();
        let asked = json!({ "embedding": numbers, "k": k });
        call(&agent, "vecdb.query", &asked);
        call(&agent, "vecdb.query", &asked);
        let last = records(&world.home).into_iter().rev().find_map(|record| match record.body {
            Body::Intent(intent) => Some(intent.label),
            _ => None,
        });
        last.unwrap()
    };
    assert_eq!((label(90, 1), label(3, 2)), (Label::PUBLIC, Label::UNTRUSTED));
    drop(world);
}

/// Many at once: nothing is lost, in memory or on disk.
#[test]
fn concurrent_upserts_are_all_kept() {
    let world = world();
    thread::scope(|scope| {
        for n in 0..8 {
            let world = &world;
            scope.spawn(move || {
                let agent = world.session(&["docs"]);
                for m in 0..20 {
                    let items = json!([{ "id": format!("{n}-{m}"), "embedding": [n + 1, m] }]);
                    assert_eq!(upsert(&agent, &items).reason(), None);
                    let there = hits(&agent, &json!({ "embedding": [n + 1, m], "k": 4_096 }));
                    assert!(there.contains(&format!("{n}-{m}")));
                    if m % 4 == 0 {
                        let ids = json!({ "ids": [format!("{n}-{m}")] });
                        assert_eq!(call(&agent, "vecdb.delete", &ids).reason(), None);
                    }
                }
            });
        }
    });
    let all = json!({ "embedding": [1, 1], "k": 4_096 });
    let before = hits(&world.session(&["docs"]), &all);
    assert_eq!(before.len(), 8 * 15);
    let world = world.again();
    assert_eq!(hits(&world.session(&["docs"]), &all), before);
}

/// What is found brings the label of the session that put it there.
#[test]
fn found_vectors_keep_their_label() {
    let world = world();
    let tainted = world.session(&["docs"]);
    call(&tainted, "stranger.say", &json!({}));
    upsert(&tainted, &json!([{ "id": "theirs", "embedding": [1, 0] }]));
    drop(tainted);
    let world = world.again();
    let clean = world.session(&["docs"]);
    upsert(&clean, &json!([{ "id": "ours", "embedding": [0, 1] }]));
    assert_eq!(hits(&clean, &json!({ "embedding": [0, 1], "k": 1 })), ["ours"]);
    assert_eq!(hits(&clean, &json!({ "embedding": [1, 0], "k": 1 })), ["theirs"]);
    upsert(&clean, &json!([{ "id": "later", "embedding": [0, 1] }]));
    drop(clean);
    // That nothing fits says something of all that was looked at.
    let asks = world.session(&["docs"]);
    let none = json!({ "embedding": [0, 1], "filters": { "who": "bob" } });
    assert_eq!(hits(&asks, &none), [""; 0]);
    upsert(&asks, &json!([{ "id": "last", "embedding": [0, 1] }]));
    drop(asks);
    let labels: Vec<Label> = records(&world.home)
        .into_iter()
        .filter_map(|record| match record.body {
            Body::Intent(intent) => Some(intent.label),
            _ => None,
        })
        .collect();
    let (public, untrusted) = (Label::PUBLIC, Label::UNTRUSTED);
    let told = [public, untrusted];
    assert_eq!(
        labels,
        [&[public, untrusted, public, public, public, untrusted][..], &told].concat()
    );
    end(&world.rt, &world.home);
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("vector_tools::");
}
