//! `tools list` and `tools show` as a catalogue.

use serde_json::{Value, json};

use crate::cli::support::{Serving, TestHome, run};

fn listed(home: &TestHome) -> Vec<Value> {
    run(["tools", "list", &home.path(), "--json"]).fine().json()
}

fn shown(home: &TestHome, tool: &str) -> Value {
    run(["tools", "show", &home.path(), tool, "--json"]).fine().one()
}

/// "lists available tools/connectors with friendly descriptions and permissions required".
#[test]
fn the_catalogue_says_what_a_tool_is_and_needs() {
    let home = TestHome::new();
    for tool in listed(&home) {
        for key in ["title", "description"] {
            assert!(!tool[key].as_str().unwrap().is_empty(), "{tool}");
        }
        assert_eq!((&tool["can_be_called"], &tool["why_not"]), (&json!(true), &Value::Null));
        assert!(tool["limits"]["result_bytes"].as_u64().unwrap() > 0, "{tool}");
        assert!(tool["limits"]["sets_aside"]["cpu_us"].as_u64().unwrap() > 0, "{tool}");
        for permission in tool["permissions"].as_array().unwrap() {
            assert_ne!(permission["about"], "values that the token must name", "{tool}");
        }
        // What is listed is what is shown.
        let mut whole = shown(&home, tool["tool"].as_str().unwrap());
        let definitions = ["on_record_definition", "offered_definition"];
        for key in ["on_record", "offered", "offered_manifest"].into_iter().chain(definitions) {
            whole.as_object_mut().unwrap().remove(key).unwrap();
        }
        assert_eq!(whole, tool);
    }
    let read = shown(&home, "fs.read");
    assert_eq!(read["aliases"], json!(["fs_read", "file_read"]));
    assert_eq!((&read["effect"], &read["label"]), (&json!("read"), &json!("trusted public")));
    assert_eq!(read["permissions"][0]["dimension"], "path");
    assert_eq!(read["permissions"][0]["given_by"], "--read ROOT, --write ROOT");
    assert_eq!(read["other_arguments"], "refused");
    let path = &read["arguments"][0];
    assert_eq!(
        (&path["name"], &path["type"], &path["required"]),
        (&json!("path"), &json!("path"), &json!(true))
    );
    let shell = shown(&home, "shell");
    assert_eq!(shell["permissions"][1]["given_by"], "--scope program=VALUE");
    let text = run(["tools", "show", &home.path(), "shell"]).fine().out;
    assert!(text.contains("\npermission  program: programs that may be started"), "{text}");
    let text = run(["tools", "list", &home.path()]).fine().out;
    assert!(text.contains(" Also: fs_read, file_read\n    needs path (--read"), "{text}");
    assert!(
        text.contains("\n    needs path (--read ROOT, --write ROOT); program (--scope "),
        "{text}"
    );
}

#[test]
fn a_tool_is_found_by_any_of_its_names() {
    let home = TestHome::new();
    let path = home.path();
    let by_id = shown(&home, "fs.read");
    let serving = Serving::of(&path, &[]);
    for name in ["fs.read", "fs_read", "file_read"] {
        assert_eq!(shown(&home, name), by_id, "{name}");
    }
    for name in ["file_raed", "memory.raed", "nothing.like.it", "Fs.Read", "fs.read\u{202e}"] {
        let beside = run(["tools", "show", &path, name]);
        assert_eq!((beside.code, &*beside.out), (2, ""), "{name}");
        assert!(!beside.err.contains('\u{202e}'), "{}", beside.err);
    }
    let wrong = |name: &str| run(["tools", "show", &path, name]).failed(2).err;
    assert!(wrong("file_raed").contains("did you mean file_read?"));
    assert!(wrong("nothing.like.it").contains("; it has: "));
    serving.stop();
    assert!(wrong("file_raed").contains("did you mean file_read?"));
    for name in ["fs_read", "file_read"] {
        assert_eq!(shown(&home, name), by_id, "{name}");
    }
}

#[test]
fn frozen_tool_is_shown_as_not_callable() {
    let home = TestHome::new();
    let path = home.path();
    let why = |tool: &str| {
        let shown = shown(&home, tool);
        assert_eq!(shown["can_be_called"], shown["why_not"].is_null(), "{shown}");
        shown["why_not"].clone()
    };
    run(["freeze", &path, "--tool", "fs.read"]).fine();
    assert_eq!(run(["freeze", &path, "--agent", "a"]).code, 0);
    assert_eq!((why("file_read"), why("fs.write")), (json!("it is frozen"), Value::Null));
    let serving = Serving::of(&path, &[]);
    run(["freeze", &path, "--all"]).fine();
    assert_eq!(why("fs.write"), "every call is frozen");
    let text = run(["tools", "show", &path, "echo"]).fine().out;
    assert!(text.contains("\ncallable    no: every call is frozen\n"), "{text}");
    serving.stop();
}
