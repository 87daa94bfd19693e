//! What `policy check` finds odd: only what is so whatever the parameters are.

use serde_json::{Value, json};
use syscap::policy::Preset;

use super::{always, constraint, document, tools, when};
use crate::cli::support::{TestHome, run};

fn check(home: &TestHome, text: &str, flags: &[&str]) -> crate::cli::support::Run {
    let file = home.file("policy.json", text);
    run(["policy", "check", &file].iter().chain(flags))
}

/// Of each in one list of the answer: the constraint and the kind.
fn kinds(json: &Value, list: &str) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let found = json[list].as_array().unwrap().iter();
    found.map(|one| (text(&one["constraint"]), text(&one["kind"]))).collect()
}

fn pairs(all: &[(&str, &str)]) -> Vec<(String, String)> {
    all.iter().map(|(id, kind)| ((*id).to_owned(), (*kind).to_owned())).collect()
}

/// Their lists of tools are empty until somebody fills them in, and no tool has 100 points of risk
/// until somebody says so.
#[test]
fn no_preset_is_odd_for_what_its_parameters_leave_open() {
    let home = TestHome::new();
    let root = home.text_beside("");
    let setup =
        ["hook", &home.path(), "--agent", "a", "--client", "claude-code", "--setup", "--print"];
    assert_eq!(run(setup.iter().chain(&["--root", &root])).code, 0);
    for preset in Preset::ALL {
        let name = format!("preset:{}", preset.name());
        for flags in [&[][..], &["--home", &home.path()]] {
            let json = run(["policy", "check", &name, "--json"].iter().chain(flags)).fine().one();
            let mut odd = kinds(&json, "warnings");
            // The tool that sends mail is another server's.
            odd.retain(|(_, kind)| preset != Preset::Mailer || kind != "unknown_tool");
            assert_eq!(odd, [], "{name}");
        }
    }
    run(["policy", "check", "preset:coder", "--strict"]).fine();
    let json = run(["policy", "check", "preset:coder", "--json"]).fine().one();
    let notes = ["external-read", "external-write", "risk.refused"];
    let notes = notes.map(|id| (id, "never_matches"));
    assert_eq!(kinds(&json, "notes"), pairs(&notes));
    let says = json["notes"][0]["says"].as_str().unwrap();
    assert!(says.contains("while the parameters are as they are"), "{says}");
    assert!(says.contains("its on_fail, ask, counts all the same"), "{says}");
    // The risk of a class alone does what the constraint beside it does.
    let json = run(["policy", "check", "preset:standard", "--json"]).fine().one();
    let notes = kinds(&json, "notes");
    assert!(notes.contains(&("irreversible.elevated".into(), "redundant".into())), "{notes:?}");
    let text = run(["policy", "check", "preset:coder"]).fine().out;
    assert_eq!(text.lines().skip(1).filter(|line| line.starts_with("note: ")).count(), 3, "{text}");
    assert_eq!(text.lines().count(), 4, "{text}");
}

/// One's own version of a preset is put in force without a word about what was in it before.
#[test]
fn a_preset_of_ones_own_is_no_odder() {
    let home = TestHome::new();
    let mut own: Value = serde_json::from_str(Preset::Coder.document()).unwrap();
    own["params"]["risk_elevated"] = json!(85);
    let file = home.file("own.json", &own.to_string());
    let set = run(["policy", "set", &home.path(), &file]).fine();
    assert_eq!(set.err, "");
}

/// What never matches whatever a parameter is stays a warning, and so does what no parameter is
/// about in the same document.
#[test]
fn constraint_that_no_parameter_changes_gives_a_warning() {
    let home = TestHome::new();
    let read = json!({"capability": "read"});
    let listed = |list: &str| json!({"op": "in", "args": ["call.tool", {"param": list}]});
    let both = json!({"op": "all", "args": [
        listed("some"), when("eq", "call.agent", "a"), when("eq", "call.agent", "b")]});
    let of = |list: Value| {
        let text = json!({"v": 1, "params": {"some": list}, "constraints": [
            constraint("both", "allow", &read, &both),
            constraint("listed", "allow", &read, &listed("some")),
            constraint("never", "allow", &read, &json!({"op": "any", "args": []})),
            constraint("reads", "allow", &read, &when("eq", "call.agent", "a")),
        ]});
        check(&home, &text.to_string(), &["--json"]).fine().one()
    };
    let certain = [
        ("both", "never_matches"),
        ("both", "redundant"),
        ("never", "never_matches"),
        ("never", "redundant"),
    ];
    for (list, notes) in [(json!([]), &[("listed", "never_matches")][..]), (json!(["x"]), &[])] {
        let json = of(list);
        assert_eq!(kinds(&json, "warnings"), pairs(&certain));
        assert_eq!(kinds(&json, "notes"), pairs(notes));
    }
}

/// An allow that never matches, and asks: that is not nothing.
#[test]
fn unmatched_allow_that_asks_gives_no_warning() {
    let home = TestHome::new();
    let read = json!({"capability": "read"});
    let mut never = constraint("never", "allow", &read, &json!({"op": "any", "args": []}));
    never["on_fail"] = json!("ask");
    let json = check(&home, &document(&[never]), &["--json"]).fine().one();
    let says: Vec<_> = json["warnings"].as_array().unwrap().iter().map(|w| &w["says"]).collect();
    let expected = [
        "nothing is ever allowed unasked: no allow ever matches",
        "never: no call matches it; its on_fail, ask, counts all the same",
    ];
    assert_eq!(says, expected);
}

/// What a command does is no argument that a tool declares, and the machine's files are a root of
/// every home, before any client's tools are on record.
#[test]
fn command_attributes_give_no_unknown_argument_warning() {
    let home = TestHome::new();
    let path = home.path();
    let says = |tool: &str, when: Value| {
        let text = tools(&[(tool, json!({"op": "not", "args": [when]}))]);
        let json = check(&home, &text, &["--home", &path, "--json"]).fine().one();
        let kinds = ["unknown_argument", "unknown_root", "unknown_mark"];
        let found = json["warnings"].as_array().unwrap().iter();
        let found = found.filter(|warning| kinds.iter().any(|kind| warning["kind"] == *kind));
        found.map(|warning| warning["says"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let exists = |name: &str| json!({"op": "exists", "args": [format!("args.{name}")]});
    for fine in ["does_run", "does_hides", "does_project_code", "does_write"] {
        assert_eq!(says("shell_script", exists(fine)), [""; 0], "{fine}");
        assert_eq!(says("later.tool", exists(fine)), [""; 0], "{fine}");
    }
    // These tools run nothing.
    assert_eq!(says("fs.write", exists("does_run")).len(), 1);
    let wrong = says("later.tool", exists("does_hide"));
    let expected = "allow.later.tool: nothing that a command does is called does_hide, \
                    did you mean does_hides?";
    assert_eq!(wrong, [expected]);
    let machine = when("within", "args.does_write", "machine/srv/project");
    assert_eq!(says("later.tool", machine), [""; 0]);
    let machine = when("within", "args.path", "machine/srv/project");
    assert_eq!(says("fs.write", machine), [""; 0]);
    check(&home, &document(&[constraint("a", "allow", &Value::Null, &always())]), &[]).fine();
}

/// A hook's manifests take any argument; what a client's own tool never has is a slip all the same.
#[test]
fn argument_that_a_hook_tool_lacks_is_a_warning() {
    let home = TestHome::new();
    let path = home.path();
    let setup = ["hook", &path, "--agent", "a", "--client", "claude-code", "--setup", "--print"];
    assert_eq!(run(setup.iter().chain(&["--root", &home.text_beside("")])).code, 0);
    let odd = |tool: &str, argument: &str| {
        let exists = json!({"op": "exists", "args": [format!("args.{argument}")]});
        let text = tools(&[(tool, json!({"op": "not", "args": [exists]}))]);
        let json = check(&home, &text, &["--home", &path, "--json"]).fine().one();
        kinds(&json, "warnings").iter().any(|(_, kind)| kind == "unknown_argument")
    };
    for (tool, known, slip) in [
        ("claude_code.write", "file_path", "path"),
        ("claude_code.bash", "command", "cmd"),
        ("claude_code.bash", "does_unknown", "description"),
        ("claude_code.edit", "does_hides", "filepath"),
        ("claude_code.web_fetch", "url", "uri"),
    ] {
        assert!(!odd(tool, known), "{tool} {known}");
        assert!(odd(tool, slip), "{tool} {slip}");
    }
    // Nothing is known of a tool that takes no part in the table.
    assert!(!odd("claude_code.task", "anything"));
}
