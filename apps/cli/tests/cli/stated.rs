//! `tools class` and `tools argument`: what an operator says of tools that others run; and the
//! first look at a server, `mcp --review`.

use std::{fs, os::unix::fs::PermissionsExt as _, sync::Arc};

use serde_json::{Value, json};
use syscap::Runtime;
use syscap::format::{
    Amounts, Canonical, EffectClass, Label, Manifest, Param, ParamType, ToolId, TxOutcome,
    definition_hash,
};
use syscap::provide::{HostCall, HostRan, Provider};

use crate::cli::support::{Run, Serving, TestHome, reason, run, run_with};
use crate::cli::terminal::{self, Person, sealed};

struct Answers;

impl Provider for Answers {
    fn run(&self, _: HostCall) -> HostRan {
        HostRan::new(Ok(Canonical::text("done")), TxOutcome::NoOp, Amounts::ZERO)
    }
}

fn manifest(name: &str) -> Manifest {
    Manifest::new(ToolId::new(name).unwrap(), EffectClass::ExternalWrite)
        .param(Param::required("at", ParamType::Text, "Where."))
        .defined_by(definition_hash(Canonical::text(name).item()))
        .labelled(Label::UNTRUSTED)
}

/// A process that offers tools.
fn offer(home: &str) -> Runtime {
    let access = Runtime::connect(home).unwrap();
    let tools = ["notes.get", "notes.put", "mail.send"].map(manifest).to_vec();
    access.provide(tools, Arc::new(Answers)).unwrap();
    access
}

fn effect(home: &str, tool: &str) -> String {
    let shown = run(["tools", "show", home, tool, "--json"]).fine().one();
    shown["effect"].as_str().unwrap().to_owned()
}

fn call(home: &TestHome, token: &str, at: &str) -> Value {
    let line = json!({"tool_id": "notes.get", "args": {"at": at}}).to_string();
    home.call("a", token, line.as_bytes()).remove(0)
}

/// By name or by pattern, at once, by one record; what is no class, no tool, or built in is named.
#[test]
fn a_class_is_stated_and_taken_back() {
    let home = TestHome::new();
    let path = home.path();
    let serving = Serving::of(&path, &[]);
    let provided = offer(&path);
    let token = home.token("a", &["--tool", "notes.get"]);
    assert_eq!(reason(&call(&home, &token, "x")), "asked");
    let class = |words: &[&str]| run([&["tools", "class", path.as_str()], words].concat());
    let said = class(&["notes.get", "read", "--json"]).fine().one();
    assert_eq!((&said["tools"], &said["class"]), (&json!(["notes.get"]), &json!("read")));
    assert_eq!(call(&home, &token, "x")["status"], "ok");
    let lines = run(["tools", "show", &path, "notes.get"]).fine().out;
    assert!(lines.contains("set to      read"), "{lines}");
    let records = home.log().len();
    // What such a record changed, and nothing else, is shown with it.
    let set = home.log().into_iter().rfind(|record| record["kind"] == "tools").unwrap();
    let shown = run(["log", "show", &path, &set["seq"].to_string()]).fine().out;
    assert!(shown.contains("class of     notes.get from external_write to read"), "{shown}");
    assert!(!shown.contains("notes.put") && !shown.contains("added"), "{shown}");
    class(&["notes.*", "local_write"]).fine();
    assert_eq!(home.log().len(), records + 1);
    let effects = ["notes.get", "notes.put", "mail.send"].map(|tool| effect(&path, tool));
    assert_eq!(effects, ["local_write", "local_write", "external_write"]);
    class(&["notes.*", "--unset"]).fine();
    assert_eq!(effect(&path, "notes.get"), "external_write");
    for (words, names) in [
        (&["notes.get", "write"][..], "irreversible"),
        (&["notes.gte", "read"], "notes.get"),
        (&["nots.*", "read"], "notes.put"),
        (&["echo", "read"], "built in"),
        (&["notes.get"], "CLASS"),
        (&["notes.get", "read", "--unset"], "--unset"),
    ] {
        let failed = class(words);
        assert_eq!((failed.code, failed.out.as_str()), (2, ""), "{words:?}");
        assert!(failed.err.contains(names), "{words:?} {}", failed.err);
    }
    provided.close().unwrap();
    // It can be said where nobody offers the tool, too.
    class(&["notes.get", "irreversible"]).fine();
    serving.stop();
    class(&["notes.get", "read"]).fine();
    assert_eq!(effect(&path, "notes.get"), "read");
    assert_eq!(home.verify(), 0);
}

/// What the operator is told after a declaration is the command that goes on, and it does.
#[test]
fn a_declared_path_needs_a_root_and_the_command_that_grants_it_is_told() {
    let home = TestHome::new();
    let path = home.path();
    let serving = Serving::of(&path, &[]);
    let provided = offer(&path);
    let token = home.token("a", &["--tool", "notes.get"]);
    run(["tools", "class", &path, "notes.get", "read"]).fine();
    let argument = |words: &[&str]| run([&["tools", "argument", path.as_str()], words].concat());
    for (words, names) in [
        (&["notes.get", "at", "path"][..], "--root"),
        (&["notes.get", "at", "path", "--root", "docs=x"], "ROOT=/FOLDER"),
        (&["notes.get", "at", "url", "--root", "docs"], "--root"),
        (&["notes.get", "at", "file"], "recipient"),
        (&["notes.get", "to", "url"], "at"),
        (&["echo", "value", "url"], "built in"),
        (&["notes.get", "at"], "KIND"),
    ] {
        let failed = argument(words);
        assert_eq!((failed.code, failed.out.as_str()), (2, ""), "{words:?}");
        assert!(failed.err.contains(names), "{words:?} {}", failed.err);
    }
    let said = argument(&["notes.get", "at", "path", "--root", "docs=/srv/my docs", "--json"]);
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(said.one()["names"], "path");
    assert_eq!(reason(&call(&home, &token, "/srv/my docs/a")), "out_of_scope");
    let bad = call(&home, &token, "docs=/srv/my docs/a");
    assert_eq!(reason(&bad), "bad_path");
    let allowed = "an absolute path that begins with /srv/my docs/";
    assert_eq!(bad["error"]["allowed"], allowed);
    assert!(!bad["error"]["hint"].as_str().unwrap().contains("Use a relative path"), "{bad}");
    let bad = call(&home, &token, "/srv/my docs/../a");
    let allowed = format!("{allowed}, and without `.` or `..` in it");
    assert_eq!((reason(&bad), &bad["error"]["allowed"]), ("bad_path", &json!(allowed)));
    // A token names the root alone, and whoever writes more is told so.
    for words in
        [&["token", "issue", &path, "--agent", "a"][..], &["token", "reissue", &path, &token]]
    {
        for flag in ["--read", "--write"] {
            let failed = run([words, &["--tool", "notes.get", flag, "docs=/srv/docs"]].concat());
            assert_eq!(failed.code, 2, "{}", failed.err);
            assert!(failed.err.contains("a root alone: docs;"), "{}", failed.err);
        }
    }
    let lines = run(["tools", "show", &path, "notes.get"]).fine().out;
    assert!(lines.contains("names       at: a path below docs=/srv/my docs"), "{lines}");
    assert!(lines.contains("permission  path"), "{lines}");
    // As it was told, by a shell: it grants nothing before its last word is taken away.
    let command = said.err.trim_end().rsplit_once("syscap token").unwrap().1.to_owned();
    let shell = |command: &str| {
        let line = format!("{} token{command}", env!("CARGO_BIN_EXE_syscap"));
        Run::of(std::process::Command::new("sh").args(["-c", &line]).output().unwrap())
    };
    let shown = shell(&command);
    assert_eq!((shown.code, &*shown.out), (0, "+ notes.get  path: docs (read)\n"));
    let issued = shell(command.strip_suffix(" --dry-run").unwrap());
    let wider = issued.fine().out.trim_end().to_owned();
    assert_eq!(call(&home, &wider, "/srv/my docs/a")["status"], "ok");
    argument(&["notes.get", "at", "--unset"]).fine();
    assert_eq!(call(&home, &token, "anything")["status"], "ok");
    provided.close().unwrap();
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// Where the operator's key is sealed a person signs it, at a terminal and nowhere else.
#[test]
fn with_a_sealed_key_a_person_states_it() {
    if !terminal::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    sealed(&home, "secret");
    let words = ["mcp", &home, "--agent", "a", "--name", "notes", "--review", "--"];
    let server = server(folder.path());
    let mut person = Person::runs(words.into_iter().chain([server.as_str()]));
    person.sees("passphrase for the operator key: ").types("secret");
    person.sees("read=get_*,list: ").types("y");
    person.end().fine();
    assert_eq!(effect(&home, "notes.look"), "read");
    run(["tools", "class", &home, "notes.look", "pure"]).failed(1);
    let mut person = Person::runs(["tools", "class", &home, "notes.look", "external_read"]);
    person.sees("passphrase for the operator key: ").types("secret");
    person.end().fine();
    assert_eq!(effect(&home, "notes.look"), "external_read");
}

/// A server that lists three tools: of one it says that it reads, of the others nothing.
fn server(folder: &std::path::Path) -> String {
    let file = folder.join("server.sh");
    let schema = json!({"type": "object"});
    let hints = json!({"readOnlyHint": true, "openWorldHint": false});
    let tools = json!([
        {"name": "look", "inputSchema": schema, "annotations": hints},
        {"name": "get_note", "inputSchema": schema},
        {"name": "put", "inputSchema": schema},
    ]);
    let begun = json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
        "serverInfo": {"name": "notes", "version": "1"}});
    let script = format!(
        r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
  *'"initialize"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{begun}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{{"jsonrpc":"2.0","id":%s,"result":{{"tools":{tools}}}}}\n' "$id" ;;
  esac
done
"#
    );
    fs::write(&file, script).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    file.to_str().unwrap().to_owned()
}

fn mcp<'a>(home: &'a str, more: &[&'a str], server: &'a str) -> Vec<&'a str> {
    let first = ["mcp", home, "--agent", "a", "--name", "notes"];
    [&first[..], more, &["--", server]].concat()
}

/// At a terminal a server that nobody has looked at is shown first: what each tool is proposed to
/// count as, and why; and nothing is on record before a person says so.
#[test]
fn the_first_run_at_a_terminal_shows_and_asks() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome::new();
    let path = home.path();
    let server = server(home.beside("home").parent().unwrap());
    let before = home.log().len();
    let mut person = Person::runs(mcp(&path, &[], &server));
    // What nobody can approve as things stand is said before it is on record.
    person.sees("read=get_*,list: ").types("irreversible=put");
    person.sees("need a person whom the policy names").sees("read=get_*,list: ").types("n");
    let told = person.end();
    assert_eq!(told.code, Some(1), "{}", told.shown);
    assert_eq!(home.log().len(), before);
    let mut person = Person::runs(mcp(&path, &["--json"], &server));
    person.sees("read=get_*,list: ").types("wrong=put");
    person.sees("read=get_*,list: ").types("local_write=put");
    person.sees("read=get_*,list: ").types("y");
    let told = person.end().fine();
    let shown: Vec<Value> =
        told.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    let first = |tool: usize, key: &str| shown[0]["proposed"][tool][key].as_str().unwrap();
    let all = [0, 1, 2].map(|n| (first(n, "tool"), first(n, "class"), first(n, "why")));
    assert_eq!(
        all,
        [
            ("notes.get_note", "external_read", "its name"),
            ("notes.look", "read", "the server's hint"),
            ("notes.put", "external_write", "the server gives no hint"),
        ]
    );
    assert_eq!(first(1, "hints"), "readOnlyHint: true, openWorldHint: false");
    let effects = ["get_note", "look", "put"].map(|tool| effect(&path, &format!("notes.{tool}")));
    assert_eq!(effects, ["external_read", "read", "local_write"]);
    // Looked at again there is nothing to ask.
    let mut person = Person::runs(mcp(&path, &["--review"], &server));
    assert!(person.end().fine().out.contains("set before"));
    assert_eq!(home.verify(), 0);
}

/// Where nobody is to be asked nothing is confirmed, but what was said beforehand; and then nothing
/// is guessed.
#[test]
fn without_a_terminal_only_what_was_said_is_confirmed() {
    let home = TestHome::new();
    let path = home.path();
    let server = server(home.beside("home").parent().unwrap());
    let before = home.log().len();
    run(mcp(&path, &["--review"], &server)).failed(2);
    assert_eq!(home.log().len(), before);
    let said = run(mcp(&path, &["--review", "--confirm-hints"], &server));
    assert_eq!(said.code, 0, "{}", said.err);
    let effects = ["get_note", "look", "put"].map(|tool| effect(&path, &format!("notes.{tool}")));
    assert_eq!(effects, ["external_write", "read", "external_write"]);
    assert_eq!(home.verify(), 0);
}

/// What was shown and confirmed is not shown again at each start.
#[test]
fn reviewed_statement_is_not_shown_again() {
    let home = TestHome::new();
    let path = home.path();
    let server = server(home.beside("home").parent().unwrap());
    let notes = || {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}});
        let lines = [
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
            json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
            json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
        ];
        let input = lines.map(|line| format!("{line}\n")).concat();
        let said = run_with(mcp(&path, &[], &server), input.as_bytes());
        assert!(said.err.contains("may call"), "{}", said.err);
        said.err.lines().filter(|line| line.contains("count as external_write")).count()
    };
    assert_eq!(notes(), 1);
    let said = run(mcp(&path, &["--review", "--confirm-hints"], &server));
    assert_eq!(said.code, 0, "{}", said.err);
    assert_eq!(notes(), 0);
    run(["tools", "class", &path, "notes.put", "--unset"]).fine();
    assert_eq!(notes(), 1);
}

/// A call that waits for a tool that is another now is over: nobody is asked for a yes to it, nor
/// sent to accept anything.
#[test]
fn a_call_whose_tool_was_set_anew_is_over() {
    let home = TestHome::new();
    let path = home.path();
    let serving = Serving::of(&path, &[]);
    let provided = offer(&path);
    let token = home.token("a", &["--tool", "notes.get"]);
    assert_eq!(reason(&call(&home, &token, "x")), "asked");
    let list = || run(["approvals", "list", &path, "--all"]).fine().out;
    assert!(list().contains("  waits  ") && list().contains(" min left"), "{}", list());
    let ask = list().split_whitespace().next().unwrap().to_owned();
    run(["tools", "class", &path, "notes.get", "local_write"]).fine();
    assert!(list().contains("  superseded  ") && !list().contains(" min left"), "{}", list());
    let records = home.log().len();
    let said = run(["approvals", "approve", &path, &ask]);
    assert_eq!((said.code, said.out.as_str()), (2, ""));
    assert!(said.err.contains("notes.get has been set anew"), "{}", said.err);
    assert!(said.err.contains("asks anew") && !said.err.contains("accept it"), "{}", said.err);
    assert_eq!(home.log().len(), records);
    // A no is taken, and the call itself is decided by the tool as it is now.
    assert_eq!(run(["approvals", "deny", &path, &ask]).code, 0);
    assert_eq!(call(&home, &token, "x")["status"], "ok");
    provided.close().unwrap();
    serving.stop();
    assert_eq!(home.verify(), 0);
}
