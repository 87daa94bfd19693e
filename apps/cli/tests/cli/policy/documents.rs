//! `policy check`, `hash` and `show`.

use std::fs;

use serde_json::{Value, json};
use syscap::kernel::PolicyEngine as _;
use syscap::policy::{Policy, Preset};

use super::{always, constraint, document, tools, when};
use crate::cli::support::{Run, TestHome, is_hash, run};

const PRESETS: [&str; 5] = ["standard", "read-only", "coder", "researcher", "mailer"];

fn check(home: &TestHome, text: &str, flags: &[&str]) -> Run {
    let file = home.file("policy.json", text);
    run(["policy", "check", &file].iter().chain(flags))
}

/// One line on standard error, and what machines get.
fn fault(home: &TestHome, text: &str) -> (String, Value) {
    let line = check(home, text, &[]).failed(1).err;
    let run = check(home, text, &["--json"]);
    assert_eq!((run.code, &run.err), (1, &line));
    let json = run.one();
    assert_eq!(json["sound"], false);
    for key in ["place", "fault", "key"] {
        assert!(line.contains(json[key].as_str().unwrap()), "{key} in {line}");
    }
    (line, json)
}

#[test]
fn presets_are_sound() {
    for name in PRESETS {
        let target = format!("preset:{name}");
        let hash = run(["policy", "hash", &target]).fine().out;
        assert_eq!(run(["policy", "hash", &target, "--json"]).fine().one()["hash"], hash.trim());
        let checked = run(["policy", "check", &target]).fine().out;
        assert!(checked.starts_with(hash.trim()), "{checked}");
        let json = run(["policy", "check", &target, "--json"]).fine().one();
        assert_eq!((&json["sound"], &json["hash"]), (&json!(true), &json!(hash.trim())));
        let shown = run(["policy", "show", &target, "--json"]).fine().one();
        assert_eq!(shown["hash"], hash.trim());
        assert_eq!((&shown["engine"], &shown["version"]), (&json!("ss01"), &json!(1)));
        let constraints = shown["document"]["constraints"].as_array().unwrap().len();
        assert_eq!(json["constraints"], constraints);
        assert!(checked.contains(&format!("{constraints} constraints")), "{checked}");
    }
}

#[test]
fn misspelt_key_is_named_with_its_correction() {
    let home = TestHome::new();
    let good = tools(&[("fs.read", when("eq", "call.agent", "a"))]);
    check(&home, &good, &[]).fine();
    let cases = [
        ("\"on_fail\"", "\"on_fial\"", "constraints[0]", "on_fial", "on_fail"),
        ("\"constraints\"", "\"constraint\"", "", "constraint", "constraints"),
        ("\"eq\"", "\"eqq\"", "constraints[0].when", "eqq", "eq"),
        ("call.agent", "call.agnet", "constraints[0].when", "call.agnet", "call.agent"),
        ("\"block\"", "\"blok\"", "constraints[0]", "blok", "block"),
        ("\"allow\"", "\"alow\"", "constraints[0]", "alow", "allow"),
    ];
    for (right, wrong, place, key, meant) in cases {
        let (line, json) = fault(&home, &good.replacen(right, wrong, 1));
        assert!(json["place"].as_str().unwrap().starts_with(place), "{json}");
        assert_eq!((&json["key"], &json["suggestion"]), (&json!(key), &json!(meant)), "{json}");
        let [place, fault] = [&json["place"], &json["fault"]].map(|v| v.as_str().unwrap());
        let expected = format!(": {place}: {fault} ({key}), did you mean {meant}?\n");
        assert!(line.starts_with("syscap: /") && line.ends_with(&expected), "{line}");
    }
    let (_, json) = fault(&home, "{\"v\": 1,");
    assert!(json["place"].as_str().unwrap().starts_with("1:9"), "{json}");
    assert_eq!(json["suggestion"], Value::Null);
    let (_, json) = fault(&home, &good.replacen("\"v\":1", "\"v\":2", 1));
    assert_ne!(json["fault"], "");
    for (text, place) in [
        ("{\"v\": 1,\n\n \"caf\u{e9}\": x}", "3:10"),
        ("\u{feff}{}", "1:1"),
        ("v: 1\nconstraints: []\n", "1:1"),
        ("// why\n{}", "1:1"),
    ] {
        let (line, json) = fault(&home, text);
        assert_eq!(json["place"], place, "{text:?}");
        assert!(!line.contains("CBOR"), "{line}");
    }
    // It is JSON, and no document.
    let (line, _) = fault(&home, "[]");
    assert!(!line.contains("CBOR") && !line.contains("byte"), "{line}");
    for text in ["", " ", "{}", "[]", "null", "\u{feff}{}", "{\"v\":1.0,\"constraints\":[]}"] {
        check(&home, text, &[]).failed(1);
    }
}

#[test]
fn order_and_form_never_show() {
    let home = TestHome::new();
    let one = constraint("a", "allow", &json!({"tool_id": "fs.read"}), &always());
    let two = constraint("b", "deny", &Value::Null, &when("ge", "risk", 90));
    let hash = |file: &str| run(["policy", "hash", file]).fine().out;
    let first = hash(&home.file("1", &document(&[one.clone(), two.clone()])));
    let spaced = format!("\n\t {}", document(&[two.clone(), one.clone()]).replace(',', " ,\r\n"));
    assert_eq!(hash(&home.file("2", &spaced)), first);
    assert_ne!(hash(&home.file("3", &document(&[one]))), first);
    // What is shown is a document that reads as the same.
    let shown = run(["policy", "show", &home.file("4", &spaced)]).fine().out;
    assert!(shown.starts_with("{\n") && shown.lines().count() > 10, "{shown}");
    assert_eq!(hash(&home.file("5", &shown)), first);
    assert!(is_hash(&json!(first.trim())));
}

#[test]
fn documents_are_read_as_cbor_too() {
    let home = TestHome::new();
    for preset in Preset::ALL {
        let policy = Policy::preset(preset).unwrap();
        let file = home.text_beside("policy.cbor");
        fs::write(&file, policy.document()).unwrap();
        assert_eq!(run(["policy", "hash", &file]).fine().out.trim(), policy.hash().to_string());
        run(["policy", "check", &file]).fine();
        // A byte less is not canonical CBOR any more.
        let cut = policy.document();
        fs::write(&file, &cut[..cut.len() - 1]).unwrap();
        let json = run(["policy", "check", &file, "--json"]);
        assert_eq!((json.code, &json.one()["sound"]), (1, &json!(false)));
        run(["policy", "hash", &file]).failed(1);
    }
}

#[test]
fn odd_policy_gives_a_warning() {
    let home = TestHome::new();
    let read = json!({"capability": "read"});
    let never = json!({"op": "all", "args": [
        when("eq", "call.agent", "a"), when("eq", "call.agent", "b")]});
    let text = document(&[
        constraint("never", "allow", &read, &never),
        constraint("reads", "allow", &read, &always()),
    ]);
    let warned = check(&home, &text, &[]).fine().out;
    let warnings: Vec<&str> = warned.lines().skip(1).collect();
    assert!(warnings.iter().any(|line| line.starts_with("warning: never: ")), "{warned}");
    assert!(warnings.iter().all(|line| line.starts_with("warning: ")), "{warned}");
    let strict = check(&home, &text, &["--strict"]);
    assert_eq!((strict.code, &strict.out, &*strict.err), (1, &warned, ""));
    let json = check(&home, &text, &["--json"]).fine().one();
    let kinds: Vec<_> = json["warnings"].as_array().unwrap().iter().map(|w| &w["kind"]).collect();
    assert!(kinds.contains(&&json!("never_matches")), "{json}");
    assert_eq!(kinds.len(), warnings.len());
    let fine = document(&[constraint("reads", "allow", &read, &always())]);
    assert_eq!(check(&home, &fine, &["--strict"]).fine().out.lines().count(), 1);
}

#[test]
fn a_document_that_allows_nothing_is_odd() {
    let home = TestHome::new();
    let read = json!({"capability": "read"});
    let says = |text: &str, flags: &[&str]| {
        let json = check(&home, text, &[&["--json"], flags].concat()).fine().one();
        let found = json["warnings"].as_array().unwrap().iter();
        let found = found.filter(|warning| warning["kind"] == "nothing_allowed");
        found.map(|warning| warning["says"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let deny = constraint("deny", "deny", &read, &always());
    let never = json!({"op": "any", "args": []});
    let (never, allow) = (
        constraint("never", "allow", &read, &never),
        constraint("allow", "allow", &read, &when("eq", "call.agent", "a")),
    );
    for empty in [&[][..], std::slice::from_ref(&deny)] {
        let found = says(&document(empty), &[]);
        assert_eq!(found, ["nothing is ever allowed: there is no allow"]);
    }
    let none = document(&[deny.clone(), never.clone()]);
    assert_eq!(says(&none, &[]), ["nothing is ever allowed: no allow ever matches"]);
    assert_eq!(says(&document(&[deny, never, allow]), &[]), [""; 0]);
    // What was not looked at is not said.
    assert_eq!(says(&none, &["--limit", "0"]), [""; 0]);
    assert_eq!(check(&home, &none, &["--limit", "x"]).code, 2);
    let limited = check(&home, &none, &["--limit", "0"]).fine().out;
    assert!(limited.contains("reached its limit"), "{limited}");
}

/// A constraint on an argument that there never is, or on a path that lies nowhere, is as silent
/// as one on a tool that there isn't.
#[test]
fn arguments_and_roots_are_held_against_a_home() {
    let home = TestHome::new();
    let path = home.path();
    fs::create_dir(home.beside("home/files/reports")).unwrap();
    fs::write(home.beside("home/files/file"), "").unwrap();
    let says = |tool: &str, when: Value| {
        let text = tools(&[(tool, json!({"op": "not", "args": [when]}))]);
        let json = check(&home, &text, &["--home", &path, "--json"]).fine().one();
        let found = json["warnings"].as_array().unwrap().iter();
        let kinds = ["unknown_argument", "unknown_root", "not_of_paths", "text_of_code"];
        let found = found.filter(|warning| kinds.iter().any(|kind| warning["kind"] == *kind));
        found.map(|warning| warning["says"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let within = |constant: &str| says("fs.write", when("within", "args.path", constant));
    for fine in ["workspace", "workspace/a/b", "shared/a", "reports", "reports/2026"] {
        assert_eq!(within(fine), [""; 0], "{fine}");
    }
    for (wrong, meant) in [
        ("src/lib", "workspace/src/lib"),
        ("notes", "workspace/notes"),
        ("worksapce/a", "workspace/a"),
        ("share", "shared"),
        ("agents/a", "workspace/agents/a"),
        ("file", "workspace/file"),
    ] {
        let first = wrong.split('/').next().unwrap();
        let says = format!("the home has no root {first}, did you mean {meant}?");
        assert_eq!(within(wrong), [format!("allow.fs.write: {says}")]);
    }
    let of_url = |path: &str| says("http_request", when("within", "args.url_path", path));
    assert_eq!(of_url("url/admin"), [""; 0]);
    let wrong = "allow.http_request: the path of a URL begins with url/, as url/admin";
    assert_eq!(of_url("admin"), [wrong]);
    let asks = |tool: &str, argument: &str| says(tool, when("eq", argument, "x"));
    assert_eq!(asks("fs.write", "args.text"), [""; 0]);
    // A text that is run says nothing of what it does.
    let around = "allow.shell_script: allows by the text of script, which is run: what a text does \
        can be written in another way";
    assert_eq!(asks("shell_script", "args.script"), [around]);
    assert_eq!(asks("http_request", "args.method"), [""; 0]);
    let wrong = "allow.fs.write: fs.write has no argument paht, did you mean path?";
    assert_eq!(asks("fs.write", "args.paht"), [wrong]);
    let far = asks("fs.write", "args.recipient.name").remove(0);
    assert!(far.starts_with("allow.fs.write: fs.write has no argument recipient; it has: "));
    assert!(far.contains("path") && far.contains("text"), "{far}");
    // A file has a root too, and no path ends in what a suffix says.
    assert_eq!(says("fs.write", when("eq", "args.path", "workspace/Cargo.toml")), [""; 0]);
    let bare = says("fs.write", when("eq", "args.path", "Cargo.toml"));
    assert!(bare[0].ends_with("did you mean workspace/Cargo.toml?"), "{bare:?}");
    let one = json!({"op": "in", "args": ["args.path", ["shared/a", "a"]]});
    assert_eq!(says("fs.write", one).len(), 1);
    let ends = says("fs.write", when("suffix", "args.path", ".toml"));
    assert!(ends.len() == 1 && ends[0].contains("path is a path"), "{ends:?}");
    assert_eq!(says("fs.write", when("suffix", "args.text", ".toml")), [""; 0]);
    // Of a tool that is not here nothing is known.
    assert_eq!(asks("web.get", "args.paht"), [""; 0]);
}

#[test]
fn a_homes_tools_are_held_against_a_document() {
    let home = TestHome::new();
    let path = home.path();
    let known = tools(&[("fs.read", always()), ("fs.write", always())]);
    check(&home, &known, &["--home", &path, "--strict"]).fine();
    let unknown = tools(&[("fs.read", always()), ("web.get", always())]);
    check(&home, &unknown, &["--strict"]).fine();
    let warned = check(&home, &unknown, &["--home", &path, "--json"]).fine().one();
    let warnings = &warned["warnings"];
    let expected = (&json!("unknown_tool"), &json!("web.get"));
    assert_eq!((&warnings[0]["kind"], &warnings[0]["tool"]), expected);
    assert_eq!(check(&home, &unknown, &["--home", &path, "--strict"]).code, 1);
    // A constraint on an alias would never apply.
    let alias = tools(&[("file_write", always())]);
    check(&home, &alias, &["--strict"]).fine();
    let line = check(&home, &alias, &["--home", &path]).failed(1).err;
    assert!(line.contains("(file_write), did you mean fs.write?"), "{line}");
    let before = home.log().len();
    check(&home, &known, &["--home", &home.text_beside("nowhere")]).failed(4);
    assert_eq!(home.log().len(), before);
}

#[test]
fn targets_that_are_none() {
    let home = TestHome::new();
    let (path, missing) = (home.path(), home.text_beside("missing"));
    let (folder, file) = (home.text_beside("empty"), home.file("f", &tools(&[])));
    fs::create_dir(&folder).unwrap();
    for command in ["hash", "show", "check", "explain"] {
        run(["policy", command, "preset:strict"]).failed(2);
        run(["policy", command, "preset:"]).failed(2);
        run(["policy", command, &missing]).failed(1);
    }
    run(["policy", "check", &path]).failed(2);
    run(["policy", "check", &folder]).failed(2);
    run(["policy", "hash", &folder]).failed(4);
    run(["policy", "show", &folder]).failed(4);
    run(["policy", "show", &file, "--shadow"]).failed(2);
    run(["policy", "show", "preset:coder", "--shadow"]).failed(2);
    run(["policy", "show", &path, "--shadow"]).failed(1);
}
