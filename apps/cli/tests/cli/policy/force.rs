//! `policy set`, and what `doctor` says of it.

use std::fs;

use serde_json::{Value, json};
use syscap::kernel::PolicyEngine as _;
use syscap::policy::{Policy, Preset};

use super::{always, tools, when};
use crate::cli::support::{ECHO, TestHome, reason, run};

const WRITE: &str = r#"{"tool_id":"fs.write","args":{"path":"x","text":"y"}}"#;

fn hash(target: &str) -> String {
    run(["policy", "hash", target]).fine().out.trim().to_owned()
}

fn doctor(home: &TestHome, what: &str) -> Option<(String, String)> {
    let findings = run(["doctor", &home.path(), "--json"]).json();
    let found = findings.into_iter().find(|finding| finding["what"] == what)?;
    let text = |key: &str| found[key].as_str().unwrap().to_owned();
    Some((text("level"), text("says")))
}

#[test]
fn init_takes_a_preset() {
    for name in ["standard", "read-only", "coder", "researcher", "mailer"] {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home").to_str().unwrap().to_owned();
        let init = ["init", &home, "--preset", name, "--json", "--no-passphrase"];
        let made = run(init).fine().one();
        let preset = hash(&format!("preset:{name}"));
        assert_eq!((&made["preset"], &made["policy"]), (&json!(name), &json!(preset)));
        assert_eq!(hash(&home), preset);
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    assert_eq!(run(["init", &home, "--preset", "strict"]).code, 2);
    let text = run(["init", &home, "--no-passphrase"]).fine().out;
    assert!(text.contains("policy standard"), "{text}");
}

#[test]
fn a_policy_that_is_set_decides() {
    let home = TestHome::new();
    let id = home.worker("a");
    assert_eq!(home.call("a", &id, WRITE.as_bytes())[0]["status"], "ok");
    let set = run(["policy", "set", &home.path(), "preset:read-only", "--json"]).fine().one();
    let read_only = hash("preset:read-only");
    assert_eq!((&set["policy"], &set["shadow"]), (&json!(read_only), &Value::Null));
    let log = home.log();
    let record = &log[usize::try_from(set["record"].as_u64().unwrap()).unwrap()];
    assert_eq!(record["kind"], "policy");
    assert_eq!(record["control"]["says"], json!({"policy": read_only, "shadow": null}));
    assert_eq!(reason(&home.call("a", &id, WRITE.as_bytes())[0]), "denied");
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    assert_eq!(hash(&home.path()), read_only);
    let (level, says) = doctor(&home, "policy").unwrap();
    assert_eq!(level, "ok");
    assert!(says.contains("preset read-only, engine ss01 1") && says.contains(&read_only));
    let own = home.file("own.json", &tools(&[("echo", always())]));
    let text = run(["policy", "set", &home.path(), &own]).fine().out;
    assert!(text.starts_with(&format!("policy {} by record ", hash(&own))), "{text}");
    let (_, says) = doctor(&home, "policy").unwrap();
    assert!(says.starts_with("engine ss01 1"), "{says}");
    assert_eq!(home.verify(), 0);
}

#[test]
fn shown_policy_can_be_set() {
    let (home, other) = (TestHome::new(), TestHome::new());
    run(["policy", "set", &home.path(), "preset:coder"]).fine();
    let shown = run(["policy", "show", &home.path()]).fine().out;
    run(["policy", "set", &other.path(), &other.file("p", &shown)]).fine();
    assert_eq!(hash(&other.path()), hash("preset:coder"));
    let cbor = other.text_beside("cbor");
    fs::write(&cbor, Policy::preset(Preset::Mailer).unwrap().document()).unwrap();
    assert_eq!(run(["policy", "set", &other.path(), &cbor]).code, 0);
    assert_eq!(hash(&other.path()), hash("preset:mailer"));
}

#[test]
fn a_document_that_is_not_sound_is_refused_on_the_record() {
    let home = TestHome::new();
    let (path, before) = (home.path(), hash(&home.path()));
    let good = tools(&[("fs.read", always())]);
    let cases = [
        (good.replace("on_fail", "on_fial"), "constraints[0]", "did you mean on_fail?"),
        (good.replace("fs.read", "file_write"), "tools", "did you mean fs.write?"),
        ("{".to_owned(), ":1:2: ", ""),
        ("\u{a1}".to_owned(), "", ""),
    ];
    let count = cases.len();
    for (text, place, suggestion) in cases {
        let file = home.file("bad", &text);
        for flags in [&[][..], &["--shadow"]] {
            let args = ["policy", "set", &path, &file];
            let line = run(args.iter().chain(flags)).failed(3).err;
            let begins = line.starts_with(&format!("syscap: {file}:"));
            assert!(begins && line.contains(place), "{line}");
            assert!(line.trim_end().ends_with(suggestion), "{line}");
        }
    }
    assert_eq!(hash(&path), before);
    let refused: Vec<Value> =
        home.log().into_iter().filter(|record| record["kind"] == "refusal").collect();
    assert_eq!(refused.len(), 2 * count);
    for record in &refused {
        let expected = (&json!("bad_policy"), &json!("control"));
        assert_eq!((&record["reason"], &record["refusal_kind"]), expected);
    }
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_shadow_is_recorded_and_changes_nothing() {
    let home = TestHome::new();
    let id = home.worker("a");
    let (path, standard) = (home.path(), hash("preset:standard"));
    run(["policy", "show", &path, "--shadow"]).failed(1);
    assert_eq!(doctor(&home, "shadow"), None);
    let text = run(["policy", "set", &path, "preset:read-only", "--shadow"]).fine().out;
    let read_only = hash("preset:read-only");
    assert!(text.starts_with(&format!("shadow {read_only} by record ")), "{text}");
    assert_eq!(hash(&path), standard);
    let shown = run(["policy", "show", &path, "--shadow", "--json"]).fine().one();
    assert_eq!(shown["hash"], read_only);
    assert_eq!(doctor(&home, "shadow").unwrap().0, "note");
    assert_eq!(home.call("a", &id, WRITE.as_bytes())[0]["status"], "ok");
    let log = home.log();
    let intent = log.iter().find(|record| record["kind"] == "intent").unwrap();
    assert_eq!(intent["decision"]["verdict"], "allow");
    assert_eq!(intent["decision"]["deciding"], "local-write");
    assert_eq!(intent["shadow"]["policy"], read_only);
    assert_eq!(intent["shadow"]["decision"]["verdict"], "deny");
    let rows = run(["log", "show", &path, "--records"]).fine().out;
    assert!(rows.contains("allow by local-write; shadow: deny"), "{rows}");
    // Another policy leaves the shadow where it is; no file goes with --no-shadow.
    let set = run(["policy", "set", &path, "preset:coder", "--json"]).fine().one();
    assert_eq!(set["shadow"], read_only);
    assert_eq!(run(["policy", "set", &path, "preset:coder", "--no-shadow"]).code, 2);
    assert_eq!(run(["policy", "set", &path, "--no-shadow", "--shadow"]).code, 2);
    assert_eq!(run(["policy", "set", &path]).code, 2);
    let set = run(["policy", "set", &path, "--no-shadow", "--json"]).fine().one();
    assert_eq!((&set["policy"], &set["shadow"]), (&json!(hash("preset:coder")), &Value::Null));
    let text = run(["policy", "set", &path, "--no-shadow"]).fine().out;
    assert!(text.starts_with("no shadow by record "), "{text}");
    assert_eq!(doctor(&home, "shadow"), None);
    assert_eq!(home.verify(), 0);
}

/// What is odd is said, and put in force all the same.
#[test]
fn odd_policy_is_set_with_a_warning() {
    let home = TestHome::new();
    let text = tools(&[
        (
            "fs.write",
            json!({"op": "all", "args": [
            when("within", "args.path", "notes"), when("eq", "args.bcc", "x")]}),
        ),
        ("web.get", json!({"op": "any", "args": []})),
    ]);
    let file = home.file("odd", &text);
    let checked = run(["policy", "check", &file, "--home", &home.path()]).fine().out;
    let warned: Vec<String> =
        checked.lines().skip(1).map(|line| format!("syscap: {line}")).collect();
    assert!(warned.len() >= 4, "{warned:?}");
    for flags in [&[][..], &["--shadow"]] {
        let set = run(["policy", "set", &home.path(), &file].iter().chain(flags));
        assert_eq!((set.code, set.out.lines().count()), (0, 1), "{}", set.err);
        assert_eq!(set.err.lines().collect::<Vec<_>>(), warned);
        assert_eq!(hash(&home.path()), hash(&file));
    }
    // With JSON there is one document on standard output.
    let set = run(["policy", "set", &home.path(), &file, "--json"]);
    assert_eq!((set.code, &set.one()["policy"]), (0, &json!(hash(&file))));
    // What would take long is left to `policy check`.
    let many = (0..201).map(|n| (format!("a.t{n}"), always())).collect::<Vec<_>>();
    let many: Vec<_> = many.iter().map(|(tool, when)| (tool.as_str(), when.clone())).collect();
    let set = run(["policy", "set", &home.path(), &home.file("many", &tools(&many))]);
    let first = set.err.lines().next().unwrap();
    assert_eq!((set.code, set.err.lines().count()), (0, 202));
    assert_eq!(first, "syscap: warning: not analysed: 201 constraints; see `syscap policy check`");
    // What a preset finds odd about itself is to be expected; what the home lacks is not.
    let set = run(["policy", "set", &home.path(), "preset:mailer"]);
    let lacks = |line: &str| line.starts_with("syscap: warning: the home has no tool ");
    assert!(set.code == 0 && set.err.lines().count() == 1 && set.err.lines().all(lacks));
    let empty = home.file("empty", &tools(&[]));
    let set = run(["policy", "set", &home.path(), &empty]);
    let said = "syscap: warning: nothing is ever allowed: there is no allow\n";
    assert_eq!((set.code, &*set.err), (0, said));
}

/// What can't be read is no matter for the log, whoever holds the home.
#[test]
fn missing_policy_file_sets_nothing() {
    let home = TestHome::new();
    let id = home.worker("a");
    let (path, before) = (home.path(), home.log().len());
    run(["policy", "set", &path, &home.text_beside("missing")]).failed(1);
    run(["policy", "set", &path, &path]).failed(2);
    run(["policy", "set", &path, "preset:strict"]).failed(2);
    run(["policy", "set", &home.text_beside("nowhere"), "preset:coder"]).failed(4);
    assert_eq!(home.log().len(), before);
    let mut holder = home.hold("a", &id);
    assert_eq!(holder.ask(ECHO)["status"], "ok");
    let before = home.log().len();
    run(["policy", "set", &path, &home.text_beside("missing")]).failed(1);
    run(["policy", "set", &path, "preset:strict"]).failed(2);
    assert_eq!(home.log().len(), before);
    assert_eq!(hash(&path), hash("preset:standard"));
    let shown = run(["policy", "show", &path]).fine().out;
    assert_eq!(hash(&home.file("p", &shown)), hash("preset:standard"));
    run(["policy", "set", &path, "preset:coder"]).fine();
    assert_eq!(hash(&path), hash("preset:coder"));
    run(["policy", "set", &path, "preset:read-only", "--shadow"]).fine();
    let shadow = run(["policy", "show", &path, "--shadow"]).fine().out;
    assert_eq!(hash(&home.file("p", &shadow)), hash("preset:read-only"));
    run(["policy", "set", &path, "--no-shadow"]).fine();
    run(["policy", "show", &path, "--shadow"]).failed(1);
    assert_eq!(holder.end(), 0);
}

#[test]
fn obligations_stand_in_the_log() {
    let home = TestHome::new();
    let id = home.worker("a");
    let text = json!({"v": 1, "constraints": [{
        "id": "echo", "effect": "allow", "subject": {"tool_id": "echo"}, "when": always(),
        "on_fail": "block", "reason": "Seen.",
        "obligations": [{"type": "notify", "topic": "ops"}],
    }]});
    run(["policy", "set", &home.path(), &home.file("p", &text.to_string())]).fine();
    assert_eq!(home.call("a", &id, ECHO.as_bytes())[0]["status"], "ok");
    let intent = home.log().into_iter().find(|record| record["kind"] == "intent").unwrap();
    let notify = json!([{"kind": "notify", "name": "ops", "max": null}]);
    assert_eq!(intent["decision"]["obligations"], notify);
    let rows = run(["log", "show", &home.path(), "--records"]).fine().out;
    assert!(rows.contains("allow by echo, notify ops"), "{rows}");
}

/// What no host is equals no host: a deny by it would never apply, and is not put in force. One that
/// is in force decides as before, and `doctor` says so.
#[test]
fn constant_that_is_no_host_is_an_error() {
    let home = TestHome::new();
    let document = |host: &str, op: &str| {
        json!({"v": 1, "constraints": [{
            "id": "no", "effect": "deny", "subject": {"tool_id": "http_request"},
            "when": {"op": op, "args": ["args.url", host]}, "on_fail": "block", "reason": "no",
        }]})
        .to_string()
    };
    for host in ["localhost:8080", "*", "*.example.com", "https://example.com/a", ""] {
        let file = home.file("p.json", &document(host, "eq"));
        for flags in [&[][..], &["--home", &home.path()]] {
            let checked = run(["policy", "check", &file].iter().chain(flags));
            assert!(checked.code == 1 && checked.out.contains("error: no: "), "{}", checked.out);
        }
        let errors = run(["policy", "check", &file, "--json"]).one()["errors"].clone();
        assert_eq!(errors[0]["kind"], "never_matches", "{errors}");
        let before = home.log().len();
        run(["policy", "set", &home.path(), &file]).failed(1);
        let kinds = home.log().split_off(before);
        assert!(kinds.iter().all(|record| record["kind"] != "policy"), "{kinds:?}");
    }
    for (host, op) in
        [("localhost", "eq"), ("https://Example.com/", "eq"), ("example.com", "domain")]
    {
        let file = home.file("p.json", &document(host, op));
        assert!(!run(["policy", "check", &file]).fine().out.contains("error"), "{host}");
        assert_eq!(run(["policy", "set", &home.path(), &file]).code, 0);
    }
    // The library, and a program that signs by itself, may put it in force: it did before.
    let rt = syscap::Runtime::open(home.path()).unwrap();
    rt.set_policy(syscap::policy::Policy::from_json(document("*", "eq").as_bytes()).unwrap())
        .unwrap();
    rt.close().unwrap();
    let said = run(["doctor", &home.path()]).out;
    assert!(said.contains("no: no host is \"*\""), "{said}");
}
