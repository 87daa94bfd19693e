//! `recover`.

use serde_json::json;
use syscap::audit::SqliteStore;
use syscap::format::{Amounts, Body, Durability, EffectClass, Record, Refused};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Transactional};
use syscap::kernel::{Batch, Broken, Finding, Store, StoreError};
use syscap::policy::WithinToken;
use syscap::prelude::*;

use crate::cli::support::{Run, Serving, TestHome, run};

/// A disk that breaks when an outcome is to be kept.
struct Breaks(SqliteStore);

impl Store for Breaks {
    fn commit(&mut self, batch: &Batch) -> Result<(), StoreError> {
        let body = |bytes: &[u8]| Record::decode(bytes).unwrap().body;
        if batch.links().iter().any(|link| matches!(body(&link.bytes), Body::Outcome(_))) {
            return Err(StoreError::Io(5));
        }
        self.0.commit(batch)
    }

    kernel_support::forward!(self.0 => records object vault room);
}

/// A home in which a write with that key was running when the disk broke: whether it was done the
/// log does not say.
fn broken(key: &str) -> (TestHome, String) {
    let home = TestHome::new();
    let id = home.worker("a");
    let store = SqliteStore::open(home.beside("home").as_path(), Durability::Full).unwrap();
    let rt = Options::new().store(Breaks(store)).open(home.path()).unwrap();
    let token = rt.look(|kernel| kernel.tokens().next().unwrap().id).unwrap();
    let agent = rt.session("a", token).unwrap();
    let args = args! { "path": "f", "text": "x".repeat(300) };
    assert!(agent.request("fs.write").args(args).key(key).wait().is_err(), "nobody was told");
    drop((agent, rt));
    // Any server will do, whatever store this one had.
    std::fs::remove_file(home.beside("home/server")).unwrap();
    (home, id)
}

fn list(home: &TestHome) -> Run {
    run(["recover", "list", &home.path(), "--json"]).fine()
}

fn resolve(home: &TestHome, intent: &str, verdict: &str) -> Run {
    run(["recover", "resolve", &home.path(), intent, verdict, "--json"])
}

fn again(home: &TestHome, token: &str, key: &str) -> serde_json::Value {
    let args = json!({"path": "f", "text": "x".repeat(300)});
    let call = json!({"tool_id": "fs.write", "args": args, "idempotency_key": key});
    home.call("a", token, format!("{call}\n").as_bytes()).remove(0)
}

#[test]
fn unknown_outcome_is_listed_and_resolved_once() {
    for (verdict, reason) in [("done", json!("outcome_lost")), ("not-done", json!(null))] {
        let (home, token) = broken("turn-1");
        let listed = list(&home).one();
        let intent = listed["intent"].to_string();
        assert_eq!(listed["agent"], "a");
        assert_eq!((&listed["tool"], &listed["key"]), (&json!("fs.write"), &json!("turn-1")));
        assert_eq!(listed["args"]["path"], "f");
        assert_eq!(listed["charged"]["disk_write_bytes"], 300);
        let row = run(["recover", "list", &home.path()]).fine().out;
        assert!(row.contains("turn-1") && row.trim_end().ends_with("x.."), "{row}");
        assert_eq!(again(&home, &token, "turn-1")["error"]["reason"], "outcome_unknown");
        for other in ["0", "99999"] {
            let line = resolve(&home, other, verdict).failed(2).err;
            assert!(line.contains("syscap recover list"), "{line}");
        }
        assert_eq!(resolve(&home, &intent, "perhaps").code, 2);
        let shown = |form: &[&str]| run(["log", "show", &home.path()].iter().chain(form)).fine();
        let became = || shown(&[&intent, "--json"]).one()["became"].clone();
        let unknown = (json!("unknown"), json!(false));
        assert_eq!((became()["verdict"].clone(), became()["operator"].clone()), unknown);
        let said = resolve(&home, &intent, verdict).fine().one();
        // Who looks up the call sees what became of it.
        let (says, operator) = (json!(verdict.replace('-', "_")), json!(true));
        let expected = json!({"verdict": says, "record": said["record"], "operator": operator});
        assert_eq!(became(), expected);
        let by = format!("(record {})", said["record"]);
        assert!(shown(&[&intent]).out.contains(&by));
        assert!(shown(&[]).out.lines().any(|line| line.contains("fs.write") && line.contains(&by)));
        assert_eq!(said["intent"].to_string(), intent);
        assert_eq!(said["verdict"], verdict.replace('-', "_"));
        let record = &home.log()[usize::try_from(said["record"].as_u64().unwrap()).unwrap()];
        assert_eq!((&record["kind"], &record["verdict"]), (&json!("recovery"), &said["verdict"]));
        assert_eq!(list(&home).out, "");
        resolve(&home, &intent, verdict).failed(2);
        assert_eq!(again(&home, &token, "turn-1")["error"]["reason"], reason);
        assert_eq!(home.verify(), 0);
    }
}

#[test]
fn a_holder_may_be_there() {
    let (home, token) = broken("k");
    let holder = Serving::of(&home.path(), &[]);
    let intent = list(&home).one()["intent"].to_string();
    resolve(&home, &intent, "not-done").fine();
    assert_eq!(again(&home, &token, "k")["error"]["reason"], json!(null));
    assert_eq!(list(&home).out, "");
    drop(holder);
}

/// What only another program's tool can prove is left for that program.
#[test]
fn probe_of_another_program_leaves_the_call_open() {
    let home = TestHome { folder: host_support::scratch() };
    let note = || {
        let note = HostTool::new("t.note", EffectClass::ExternalWrite).unwrap();
        Options::new().tool(note.transactional::<Proves>()).unwrap().policy(WithinToken)
    };
    let rt = note().create(home.path()).unwrap();
    let token = rt.issue(Grant::to("a").tools(["t.note"])).unwrap();
    rt.close().unwrap();
    let broken = || {
        let store = SqliteStore::open(home.beside("home").as_path(), Durability::Full).unwrap();
        let rt = note().store(Breaks(store)).open(home.path()).unwrap();
        let agent = rt.session("a", token).unwrap();
        assert!(agent.request("t.note").args(args! {}).key("k").wait().is_err(), "nobody was told");
    };
    broken();
    let records = home.log().len();
    let left = run(["recover", "list", &home.path(), "--json"]);
    assert_eq!((left.code, left.out.as_str(), home.log().len()), (0, "", records));
    assert!(left.err.contains("t.note"), "{}", left.err);
    note().open(home.path()).unwrap().close().unwrap();
    assert_eq!(home.log().iter().find(|r| r["kind"] == "recovery").unwrap()["verdict"], "not_done");
    let clean = list(&home);
    assert_eq!((clean.out, clean.err), (String::new(), String::new()));
    // Where that program is no more, nobody knows.
    broken();
    let unknown = run(["recover", "list", &home.path(), "--anyway", "--json"]).fine().one();
    assert_eq!((&unknown["tool"], &unknown["key"]), (&json!("t.note"), &json!("k")));
    assert_eq!(home.verify(), 0);
}

/// A tool that has always prepared, and never done, what it was asked.
struct Proves;

impl Transactional for Proves {
    type Prepared = ();
    type Answer = ();

    fn plan(_: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        Ok(Planned::new(Self))
    }

    fn prepare(self, _: &ToolCall) -> Result<(), Failure> {
        Ok(())
    }

    fn commit((): (), _: &ToolCall) -> Result<(), Failure> {
        Ok(())
    }

    fn probe(_: &Broken<'_>) -> Finding {
        Finding::NotDone(Amounts::ZERO)
    }
}

/// What an agent had sent under one token it can send again under the next.
#[test]
fn a_token_that_renews_another_repeats_what_that_did() {
    let home = TestHome::new();
    let old = home.worker("a");
    let first = again(&home, &old, "turn-1");
    assert_eq!(first["error"], json!(null));
    let flags = ["--tool", "fs.write", "--write", "workspace"];
    let other = home.token("a", &flags);
    assert_eq!(again(&home, &other, "turn-1")["error"]["reason"], "not_bound");
    let new = home.token("a", &[&flags[..], &["--renews", &old]].concat());
    let repeated = again(&home, &new, "turn-1");
    assert_eq!((&repeated["status"], &repeated["result"]), (&first["status"], &first["result"]));
    let shown = run(["token", "show", &home.path(), &new, "--json"]).fine().one();
    assert_eq!(shown["renews"], json!(old));
    let issue =
        ["token", "issue", &home.path(), "--agent", "b", "--tool", "echo", "--renews", &old];
    let line = run(issue).failed(3).err;
    assert!(line.contains("bad_token (804)"), "{line}");
    run(["revoke", &home.path(), &old]).fine();
    assert_eq!(again(&home, &new, "turn-1")["result"], first["result"]);
    assert_eq!(home.verify(), 0);
}
