//! A base belongs to one home: what the tools keep for agents lies there under the agents' names.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use host_support::ample;
use kernel_support::mounts::{mount, with_mounts};
use serde_json::{Value, json};
use syscap::Error;
use syscap::format::Scope;
use syscap::prelude::*;

const TOOLS: [&str; 12] = [
    "fs.read",
    "fs.write",
    "fs.list",
    "memory.read",
    "memory.write",
    "memory.list",
    "vecdb.query",
    "vecdb.upsert",
    "email.draft",
    "org.send_message",
    "org.list_messages",
    "org.list_agents",
];

struct Place {
    dir: tempfile::TempDir,
    base: PathBuf,
}

fn place() -> Place {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base");
    fs::create_dir(&base).unwrap();
    Place { dir, base }
}

impl Place {
    fn home(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn make(&self, name: &str, options: Options) -> Result<Runtime, Error> {
        options.base(&self.base).create(self.home(name))
    }

    fn claim(&self) -> PathBuf {
        self.base.join("agents/.home")
    }
}

fn agent(rt: &Runtime, name: &str) -> Session {
    let names = |all: [&str; 1]| Scope::names(all).unwrap();
    let grant = Grant::to(name).tools(TOOLS).workspace().read("shared").write("shared");
    let grant = grant.scope("recipient", names(["ann@example.com"]));
    let grant = grant.scope("collection", names(["docs"])).scope("outbox", names(["a"]));
    rt.session(name, rt.issue(grant.budget(ample())).unwrap()).unwrap()
}

fn call(session: &Session, tool: &str, args: &Value) -> ToolResult {
    session.request(tool).json(&args.to_string(), Escapes::Data).wait().unwrap()
}

fn fine(session: &Session, tool: &str, args: &Value) -> Value {
    let result = call(session, tool, args);
    assert_eq!(result.reason(), None, "{tool}: {}", result.to_json());
    serde_json::from_str(&result.to_json()).unwrap()
}

fn taken(made: Result<Runtime, Error>, by: &Path, home: &Path) {
    match made {
        Err(Error::BaseTaken { there, home: own, .. }) => {
            assert_eq!((there, own), (by.canonicalize().unwrap(), home.to_path_buf()));
        }
        Err(other) => panic!("{other:?}"),
        Ok(_) => panic!("it is opened"),
    }
}

#[test]
fn a_second_home_is_refused_and_left_unmade() {
    let place = place();
    let (one, two) = (place.home("one"), place.home("two"));
    let first = place.make("one", Options::new()).unwrap();
    taken(place.make("two", Options::new()), &one, &two);
    taken(place.make("two", Options::new().take_base()), &one, &two);
    assert!(!two.exists(), "nothing half-made is left");
    // Nor is one of before that has claimed nothing, once another has.
    first.close().unwrap();
    fs::remove_file(place.claim()).unwrap();
    let second = place.make("two", Options::new()).unwrap();
    taken(Runtime::open(&one), &two, &one);
    second.close().unwrap();
    taken(Runtime::open(&one), &two, &one);
    Options::new().inspect(&one).unwrap();
    // The first opening of one of before claims; a base of its own claims nothing.
    fs::remove_file(place.claim()).unwrap();
    Options::new().inspect(&one).unwrap();
    assert!(!place.claim().exists());
    Runtime::open(&one).unwrap().close().unwrap();
    assert!(place.claim().exists());
    let own = place.home("own");
    Runtime::create(&own).unwrap().close().unwrap();
    assert!(!own.join("files/agents/.home").exists());
}

#[test]
fn sharing_a_base_shares_no_agents_folder() {
    let place = place();
    let one = place.make("one", Options::new()).unwrap();
    let two = place.make("two", Options::new().shared_base()).unwrap();
    let (a, b) = (agent(&one, "a"), agent(&two, "a"));
    for (session, text) in [(&a, "one"), (&b, "two")] {
        fine(session, "fs.write", &json!({ "path": "w.txt", "text": text }));
        fine(session, "memory.write", &json!({ "key": "k", "value": text }));
        let items = json!([{ "id": text, "embedding": [1, 0] }]);
        fine(session, "vecdb.upsert", &json!({ "items": items }));
        let order = json!({ "recipients": ["a"], "kind": "note", "text": text });
        fine(session, "org.send_message", &order);
        let mail = json!({ "to": ["ann@example.com"], "subject": text, "body": text });
        fine(session, "email.draft", &mail);
    }
    let folder = format!("agents/.of/{}", two.id());
    let beside = place.base.join(&folder).join("a");
    for (session, text, agents) in [(&a, "one", place.base.join("agents/a")), (&b, "two", beside)] {
        let read = fine(session, "fs.read", &json!({ "path": "w.txt" }));
        assert_eq!(read["text"], text);
        let kept = fine(session, "memory.read", &json!({ "key": "k" }));
        assert_eq!(kept["value"], text);
        let found = fine(session, "vecdb.query", &json!({ "embedding": [1, 0] }));
        let hits = found["hits"].as_array().unwrap();
        assert_eq!((hits.len(), &hits[0]["id"]), (1, &json!(text)));
        let inbox = fine(session, "org.list_messages", &json!({}));
        assert_eq!(inbox["messages"].as_array().unwrap().len(), 1);
        assert_eq!(fs::read_dir(agents.join("mail/Drafts/cur")).unwrap().count(), 1);
        assert_eq!(fs::read_to_string(agents.join("workspace/w.txt")).unwrap(), text);
        let mode = |at: &str| {
            use std::os::unix::fs::PermissionsExt as _;
            fs::metadata(agents.join(at)).unwrap().permissions().mode() & 0o777
        };
        let memory = fs::read_dir(agents.join("memory")).unwrap().next().unwrap().unwrap();
        let memory = format!("memory/{}", memory.file_name().to_str().unwrap());
        assert_eq!((mode(&memory), mode("workspace/w.txt")), (0o600, 0o644));
    }
    // The rest of the base is common to both, and no name leads to the other's agents.
    fine(&a, "fs.write", &json!({ "path": "shared/s.txt", "text": "for all" }));
    let read = fine(&b, "fs.read", &json!({ "path": "shared/s.txt" }));
    assert_eq!(read["text"], "for all");
    let (deep, up) = (format!("{folder}/a/workspace"), "../../a/workspace");
    std::os::unix::fs::symlink(format!("../{deep}"), place.base.join("shared/l")).unwrap();
    std::os::unix::fs::symlink("../../../../a/workspace", place.base.join(&deep).join("l"))
        .unwrap();
    for session in [&a, &b] {
        for path in ["shared/l/w.txt", "l/w.txt", &format!("{deep}/w.txt"), &format!("{up}/w.txt")]
        {
            let read = call(session, "fs.read", &json!({ "path": path }));
            let own = read.reason().is_none() && path.starts_with("..");
            assert!(own || read.reason().is_some(), "{path}: {}", read.to_json());
        }
    }
    // It stays so without another word, and whose base it was at first goes on.
    drop((a, b));
    one.close().unwrap();
    two.close().unwrap();
    for (name, text) in [("one", "one"), ("two", "two")] {
        let rt = Options::new().shared_base().open(place.home(name)).unwrap();
        let read = fine(&agent(&rt, "a"), "fs.read", &json!({ "path": "w.txt" }));
        assert_eq!(read["text"], text);
        rt.close().unwrap();
        Runtime::open(place.home(name)).unwrap().close().unwrap();
    }
}

#[test]
fn a_base_goes_with_its_home_and_with_no_copy() {
    let place = place();
    let (one, moved, copy) = (place.home("one"), place.home("moved"), place.home("copy"));
    place.make("one", Options::new()).unwrap().close().unwrap();
    fs::rename(&one, &moved).unwrap();
    Runtime::open(&moved).unwrap().close().unwrap();
    // Two copies of one home have one id.
    let copied = |from: &Path, to: &Path| {
        assert!(Command::new("cp").arg("-a").args([from, to]).status().unwrap().success());
    };
    copied(&moved, &copy);
    taken(Runtime::open(&copy), &moved, &copy);
    let holds = Runtime::open(&moved).unwrap();
    taken(Options::new().take_base().open(&copy), &moved, &copy);
    holds.close().unwrap();
    // One that was restored is the home.
    fs::remove_dir_all(&moved).unwrap();
    Runtime::open(&copy).unwrap().close().unwrap();
    // Of a home that is gone a base is taken by the operator's word alone.
    fs::remove_dir_all(&copy).unwrap();
    let two = place.home("two");
    assert!(matches!(place.make("two", Options::new()), Err(Error::BaseTaken { .. })));
    place.make("two", Options::new().take_base()).unwrap().close().unwrap();
    Runtime::open(&two).unwrap().close().unwrap();
}

/// What stands there and is no claim lets no home in.
#[test]
fn a_claim_that_can_not_be_read_is_none_of_ours() {
    let place = place();
    place.make("one", Options::new()).unwrap().close().unwrap();
    for bytes in [&b""[..], b"x", &[0x85, 1, 0x40, 0, 0, 0x40], &[0xff; 70_000]] {
        fs::write(place.claim(), bytes).unwrap();
        assert!(matches!(Runtime::open(place.home("one")), Err(Error::File { .. })));
        assert!(matches!(place.make("two", Options::new()), Err(Error::File { .. })));
    }
}

#[test]
fn a_base_that_takes_no_claim_is_read() {
    let test = "bases::a_base_that_takes_no_claim_is_read";
    with_mounts(test, || {
        let place = place();
        let home = place.home("one");
        let rt = place.make("one", Options::new()).unwrap();
        let writes = agent(&rt, "a");
        fine(&writes, "memory.write", &json!({ "key": "k", "value": "kept" }));
        fine(&writes, "fs.write", &json!({ "path": "shared/s.txt", "text": "x" }));
        drop(writes);
        rt.close().unwrap();
        fs::remove_file(place.claim()).unwrap();
        let base = place.base.to_str().unwrap();
        mount(&["--bind", base], &place.base);
        mount(&["-o", "remount,bind,ro", base], &place.base);
        let rt = Runtime::open(&home).unwrap();
        assert!(rt.home().base_is_unclaimed().unwrap());
        let reads = agent(&rt, "a");
        let kept = fine(&reads, "memory.read", &json!({ "key": "k" }));
        assert_eq!(kept["value"], "kept");
        let written = call(&reads, "memory.write", &json!({ "key": "k", "value": "new" }));
        assert!(written.reason().is_some(), "{}", written.to_json());
        drop(reads);
        rt.close().unwrap();
    });
}

/// Another process adds to a collection: what it put is read, and not taken for a crash's rest.
#[test]
fn vectors_of_another_process_stay() {
    let place = place();
    let rt = place.make("one", Options::new()).unwrap();
    let a = agent(&rt, "a");
    let put = |id: &str| {
        let items = json!([{ "id": id, "embedding": [1, 0] }]);
        call(&a, "vecdb.upsert", &json!({ "items": items }))
    };
    let file = place.base.join("agents/.vectors/docs.vec");
    assert_eq!(put("a1").reason(), None);
    let one = fs::read(&file).unwrap();
    assert_eq!(put("g1").reason(), None);
    let two = fs::read(&file).unwrap();
    // The same frame once more, as another process writes it, and a torn one behind it.
    let all = [&two[..], &two[one.len()..], &two[one.len()..two.len() - 1]].concat();
    fs::write(&file, &all).unwrap();
    assert_eq!(put("a2").reason(), Some(Reason::Changed));
    assert_eq!(fs::read(&file).unwrap(), all);
    assert_eq!(put("a2").reason(), None);
    let kept = fs::read(&file).unwrap();
    assert!(kept.starts_with(&all[..two.len() * 2 - one.len()]));
    let found = fine(&a, "vecdb.query", &json!({ "embedding": [1, 0] }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 3);
}
