//! `vecdb.*` against who means harm: numbers at their ends, others' vectors, the file of the index,
//! and results that would be too large.

use std::{fs, path::PathBuf};

use host_support::{ample, by_cap_std, new_home, records};
use serde_json::{Value, json};
use syscap::format::{Body, Durability, Scope};
use syscap::prelude::*;

const TOOLS: [&str; 9] = [
    "vecdb.query",
    "vecdb.upsert",
    "vecdb.delete",
    "fs.read",
    "fs.list",
    "fs.stat",
    "fs.write",
    "fs.move",
    "fs.delete",
];

struct World {
    _dir: tempfile::TempDir,
    home: PathBuf,
    rt: Runtime,
}

fn world() -> World {
    let (dir, home) = new_home();
    let rt = Options::new().durability(Durability::Memory).create(&home).unwrap();
    World { _dir: dir, home, rt }
}

impl World {
    fn session(&self, collection: &str) -> Session {
        let budget = ample();
        let scope = Scope::names([collection]).unwrap();
        let grant = Grant::to("a").tools(TOOLS).workspace().write("shared");
        let grant = grant.scope("collection", scope).budget(budget);
        self.rt.session("a", self.rt.issue(grant).unwrap()).unwrap()
    }

    fn vectors(&self) -> PathBuf {
        self.home.join("files/agents/.vectors")
    }
}

fn call(session: &Session, tool: &str, args: &Value) -> ToolResult {
    session.request(tool).json(&args.to_string(), Escapes::Data).wait().unwrap()
}

fn upsert(session: &Session, items: &Value) -> ToolResult {
    call(session, "vecdb.upsert", &json!({ "items": items }))
}

fn found(session: &Session, args: &Value) -> Value {
    let found = call(session, "vecdb.query", args);
    assert_eq!(found.reason(), None, "{}", found.to_json());
    serde_json::from_str(&found.to_json()).unwrap()
}

fn ids(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect()
}

/// The smallest and the largest numbers that there are: a vector of them has a direction that is
/// found again, with a score that is a number, or it is refused.
#[test]
fn numbers_at_their_ends_have_a_direction_or_none() {
    let world = world();
    let agent = world.session("docs");
    for numbers in [
        json!([1e-45, 0]),
        json!([1e-45, 1e-45]),
        json!([1e-38, -1e-38]),
        json!([1e-320, 1e-320]),
        json!([5e-324, 0]),
        json!([3.4e38, 3.4e38]),
        json!([3.4e38, 1e-45]),
        json!([1e300, 1]),
        json!([-0.0, 1]),
        json!([-0.0, -0.0]),
        json!([9_007_199_254_740_993_i64, 1]),
        json!([i64::MIN, i64::MAX]),
        json!([u64::MAX, 1]),
    ] {
        let put = upsert(&agent, &json!([{ "id": "one", "embedding": numbers }]));
        match put.reason() {
            None => {
                let found = found(&agent, &json!({ "embedding": numbers }));
                let score = found["hits"][0]["score"].as_f64().unwrap();
                assert!((0.999..=1.001).contains(&score), "{numbers}: {score}");
            }
            Some(reason) => assert_eq!(reason, Reason::BadArgument, "{numbers}"),
        }
    }
    let wide = vec![1; 65_536];
    let refused = call(&agent, "vecdb.query", &json!({ "embedding": wide }));
    assert_eq!(refused.reason(), Some(Reason::BadArgument));
    let refused = upsert(&agent, &json!([{ "id": "wide", "embedding": wide }]));
    assert_eq!(refused.reason(), Some(Reason::BadArgument));
    // One more, one less, and twice as many as there are.
    upsert(&agent, &json!([{ "id": "one", "embedding": [1, 0] }]));
    for numbers in [json!([1]), json!([1, 0, 0]), json!([1, 0, 1, 0])] {
        let refused = call(&agent, "vecdb.query", &json!({ "embedding": numbers }));
        assert_eq!(refused.reason(), Some(Reason::Mismatch), "{numbers}");
    }
}

/// A search that looks through all and filters afterwards finds fewer where others' are nearer, and
/// tells by how much: here others' are in no search.
#[test]
fn others_take_no_place_among_the_nearest() {
    let world = world();
    let (ours, theirs) = (world.session("ours/docs"), world.session("theirs/docs"));
    let items = |name: &str, count: usize, second: usize| -> Value {
        let item = |n: usize| {
            json!({ "id": format!("{name}{n}"), "embedding": [1_000, second + n],
            "metadata": { "of": name } })
        };
        (0..count).map(item).collect()
    };
    upsert(&ours, &items("ours", 10, 900));
    let query = json!({ "embedding": [1, 0], "k": 10 });
    let before = found(&ours, &query);
    assert_eq!(ids(&before).len(), 10);
    upsert(&theirs, &items("theirs", 100, 0));
    // To the last digit the same, with and without a filter.
    assert_eq!(found(&ours, &query), before);
    let filtered = json!({ "embedding": [1, 0], "k": 10, "filters": { "of": "ours" } });
    assert_eq!(found(&ours, &filtered)["hits"], before["hits"]);
    let none = json!({ "embedding": [1, 0], "k": 10, "filters": { "of": "theirs" } });
    assert_eq!(ids(&found(&ours, &none)).len(), 0);
    assert_eq!(before["vectors"], 10);
    // Nor do ids meet.
    let ids = json!({ "ids": ["theirs0", "theirs1"] });
    let deleted: Value =
        serde_json::from_str(&call(&ours, "vecdb.delete", &ids).to_json()).unwrap();
    assert_eq!(deleted["deleted"], 0);
    assert_eq!(found(&theirs, &query)["vectors"], 100);
}

/// An index that an agent can write is an index that an agent can break: no file tool gets there,
/// whatever its token grants.
#[test]
fn no_file_tool_reaches_an_index() {
    let world = world();
    let agent = world.session("docs");
    upsert(&agent, &json!([{ "id": "a", "embedding": [1, 0] }]));
    let before = fs::read(world.vectors().join("docs.vec")).unwrap();
    let mut refused = 0;
    for path in [
        "../../.vectors/docs.vec",
        "../../../agents/.vectors/docs.vec",
        "../../.vectors",
        ".vectors/docs.vec",
        "shared/../agents/.vectors/docs.vec",
        "agents/.vectors/docs.vec",
    ] {
        for (tool, args) in [
            ("fs.read", json!({ "path": path })),
            ("fs.list", json!({ "path": path })),
            ("fs.stat", json!({ "path": path, "digest": true })),
            ("fs.write", json!({ "path": path, "text": "x" })),
            ("fs.move", json!({ "from": path, "to": "mine" })),
            ("fs.move", json!({ "from": "own", "to": path, "replace": true })),
            ("fs.delete", json!({ "path": path })),
        ] {
            fs::write(world.home.join("files/agents/a/workspace/own"), "own").unwrap();
            assert!(call(&agent, tool, &args).reason().is_some(), "{tool} {path}");
            refused += 1;
        }
    }
    assert_eq!(fs::read(world.vectors().join("docs.vec")).unwrap(), before);
    assert_eq!(ids(&found(&agent, &json!({ "embedding": [1, 0] }))), ["a"]);
    // No grant names that folder either.
    for root in ["agents", "agents/.vectors", ".vectors", "../agents/.vectors"] {
        let grant = std::panic::catch_unwind(|| Grant::to("a").tools(TOOLS).write(root));
        assert!(grant.is_err() || world.rt.issue(grant.unwrap()).is_err(), "{root}");
    }
    // And each of those calls is on record.
    let of_calls = |body: &Body| matches!(body, Body::Refusal(_) | Body::Outcome(_));
    let answered = |body: &Body| match body {
        Body::Refusals(run) => run.count.unwrap_or(0),
        body => u64::from(of_calls(body)),
    };
    drop(agent);
    world.rt.close().unwrap();
    let all: u64 = records(&world.home).iter().map(|record| answered(&record.body)).sum();
    assert_eq!(all, refused + 2);
}

/// Metadata are bounded one by one; all of them together by what a result may have.
#[test]
fn a_result_that_would_be_too_large_is_cut_and_said() {
    let world = world();
    let agent = world.session("docs");
    let note = "x".repeat(3_900);
    for batch in 0..20 {
        let item = |n: usize| {
            json!({ "id": format!("{batch}-{n}"), "embedding": [1, batch * 60 + n],
            "metadata": { "note": note } })
        };
        let items: Value = (0..60).map(item).collect();
        assert_eq!(upsert(&agent, &items).reason(), None);
    }
    let result = call(&agent, "vecdb.query", &json!({ "embedding": [1, 0], "k": 4_096 }));
    assert_eq!(result.reason(), None);
    assert!(result.delivered().as_bytes().len() <= 4 << 20);
    let found: Value = serde_json::from_str(&result.to_json()).unwrap();
    assert_eq!((found["truncated"].clone(), found["vectors"].clone()), (json!(true), json!(1_200)));
    let shown = ids(&found).len();
    assert!((1_000..1_075).contains(&shown), "{shown}: the nearest, as far as there is room");
    assert_eq!(ids(&found)[0], "0-0");
    assert_eq!(ids(&self::found(&agent, &json!({ "embedding": [1, 0], "k": 5 }))).len(), 5);
}

/// Whatever one byte of an index becomes: what is still whole is found, with what belonged to it,
/// or the file is said to be none. Nothing else is found, and nothing ends but the call.
#[test]
fn any_byte_of_an_index_may_be_another() {
    let world = world();
    let agent = world.session("docs");
    for (id, numbers) in [("a", [1, 0]), ("b", [0, 1])] {
        let item = json!([{ "id": id, "embedding": numbers, "metadata": { "of": id } }]);
        assert_eq!(upsert(&agent, &item).reason(), None);
    }
    drop(agent);
    let World { _dir, home, mut rt } = world;
    let file = home.join("files/agents/.vectors/docs.vec");
    let whole = fs::read(&file).unwrap();
    let (mut both, mut less) = (0, 0);
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= [1, 0x80, 0xff][at % 3];
        fs::write(&file, &bytes).unwrap();
        rt.close().unwrap();
        rt = Options::new().durability(Durability::Memory).open(&home).unwrap();
        let world = World { _dir: tempfile::tempdir().unwrap(), home: home.clone(), rt };
        let agent = world.session("docs");
        let result = call(&agent, "vecdb.query", &json!({ "embedding": [1, 1], "k": 9 }));
        match result.reason() {
            None => {
                let found: Value = serde_json::from_str(&result.to_json()).unwrap();
                for hit in found["hits"].as_array().unwrap() {
                    assert_eq!(hit["metadata"]["of"], hit["id"], "byte {at}");
                }
                let ids = ids(&found);
                assert!([&["a", "b"][..], &["a"], &[]].contains(&&ids[..]), "byte {at}: {ids:?}");
                both += usize::from(ids.len() == 2);
                less += usize::from(ids.len() < 2);
            }
            Some(reason) => assert_eq!(reason, Reason::NotAFile, "byte {at}"),
        }
        drop(agent);
        rt = world.rt;
    }
    assert_eq!(both, 0, "each byte is held by a digest");
    assert!(less > 50, "{less}");
    rt.close().unwrap();
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    by_cap_std("vector_attacks::");
}
