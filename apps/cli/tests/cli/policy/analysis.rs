//! `policy diff` and `policy who-can`.

use serde_json::{Value, json};

use super::{always, constraint, document, tools, when};
use crate::cli::support::{Run, TestHome, run, run_with};

fn diff(first: &str, second: &str, flags: &[&str]) -> Run {
    run(["policy", "diff", first, second].iter().chain(flags))
}

/// What each policy says of the call that tells them apart.
fn verdicts_of(targets: [&str; 2], given: &Value) -> [Value; 2] {
    targets.map(|target| {
        let given = given.to_string();
        let explained = run(["policy", "explain", target, "--given", &given, "--json"]).fine();
        explained.one()["decision"]["verdict"].clone()
    })
}

#[test]
fn policies_that_say_the_same_are_0() {
    let home = TestHome::new();
    assert_eq!(diff("preset:standard", "preset:standard", &[]).fine().out.lines().count(), 1);
    assert_eq!(diff(&home.path(), "preset:standard", &[]).fine().code, 0);
    // Written otherwise, and the same of every call.
    let one = home.file("1", &tools(&[("echo", when("eq", "call.agent", "a"))]));
    let not = |inner: Value| json!({"op": "not", "args": [inner]});
    let two = home.file("2", &tools(&[("echo", not(not(when("in", "call.agent", ["a"]))))]));
    let same = diff(&one, &two, &["--json"]).fine().one();
    assert_eq!(same["finding"], "same");
}

#[test]
fn policies_that_differ_are_1_and_a_call_shows_it() {
    let home = TestHome::new();
    let loose = home.file("loose", &tools(&[("echo", always())]));
    let tight = home.file("tight", &tools(&[("echo", when("within", "call.agent", "team"))]));
    for targets in [[&*loose, &tight], [&tight, &loose], ["preset:standard", &tight]] {
        let run = diff(targets[0], targets[1], &["--json"]);
        assert_eq!((run.code, &*run.err), (1, ""));
        let json = run.one();
        assert_eq!(json["finding"], "differ");
        assert_ne!(json["a"]["verdict"], json["b"]["verdict"]);
        let said = [json["a"]["verdict"].clone(), json["b"]["verdict"].clone()];
        assert_eq!(verdicts_of(targets, &json["given"]), said);
    }
    let text = diff(&loose, &tight, &[]);
    assert_eq!((text.code, text.out.lines().count()), (1, 3), "{}", text.out);
    assert!(text.out.starts_with("they differ: {"), "{}", text.out);
    assert!(text.out.contains("A  allow by allow.echo"), "{}", text.out);
}

/// Which of two it is that is not sound is said.
#[test]
fn a_document_that_is_not_sound_is_named() {
    let home = TestHome::new();
    let bad = home.file("bad", "{}");
    for targets in [["preset:coder", &bad], [&bad, "preset:coder"]] {
        let line = diff(targets[0], targets[1], &[]).failed(1).err;
        assert!(line.starts_with(&format!("syscap: {bad}: ")), "{line}");
    }
}

#[test]
fn a_search_that_ends_early_is_5() {
    let given = diff("preset:standard", "preset:coder", &["--limit", "0", "--json"]);
    assert_eq!((given.code, &*given.err), (5, ""));
    assert_eq!(given.one()["finding"], "unknown");
    assert_eq!(run(["policy", "diff", "preset:coder", "preset:mailer", "--limit", "x"]).code, 2);
    let effect = ["--effect", "local_write"];
    let who = ["policy", "who-can", "preset:coder", "fs.write", "--limit", "0"];
    let who = [&who[..], &effect].concat();
    assert_eq!(run(&who).code, 5);
    assert_eq!(run(who.iter().chain(&["--only", "a"])).code, 5);
}

/// A policy of a mail room: the secretary sends, others below the team draft.
fn mail_room(home: &TestHome) -> String {
    let tool = |tool: &str| json!({"tool_id": tool});
    let text = document(&[
        constraint("send", "allow", &tool("mail.send"), &when("eq", "call.agent", "secretary")),
        constraint("draft", "allow", &tool("mail.draft"), &when("within", "call.agent", "team")),
    ]);
    home.file("mail.json", &text)
}

#[test]
fn every_class_of_agents_has_a_line() {
    let home = TestHome::new();
    let mail = mail_room(&home);
    let who = ["policy", "who-can", &mail, "mail.send", "--effect", "external_write"];
    let lines = run(who.iter().chain(&["--json"])).fine().json();
    let verdict = |agent: &dyn Fn(&str) -> bool| {
        let of = lines.iter().filter(|line| agent(line["agent"].as_str().unwrap()));
        of.map(|line| line["outcome"]["verdict"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(verdict(&|agent| agent == "secretary"), ["allow"]);
    assert!(verdict(&|agent| agent != "secretary").iter().all(|verdict| *verdict == "deny"));
    assert!(lines.len() >= 2);
    for line in &lines {
        assert_eq!(line["proof"], "exact");
        assert_eq!(line["given"]["call.tool"], "mail.send");
        assert_eq!(line["given"]["call.agent"], line["agent"]);
        let said = verdicts_of([&mail, &mail], &line["given"]);
        assert_eq!(said[0], line["outcome"]["verdict"]);
    }
    let text = run(who).fine().out;
    assert!(text.lines().any(|line| line.starts_with("secretary  allow by send")), "{text}");
    assert_eq!(text.lines().count(), lines.len());
}

#[test]
fn an_effect_class_can_be_asked_for() {
    let who = |class: &str| {
        let args = ["policy", "who-can", "preset:standard", "org.drop", "--effect", class];
        run(args.iter().chain(&["--json"]))
    };
    for (class, verdict) in [("read", "allow"), ("external_write", "ask"), ("irreversible", "ask")]
    {
        for line in who(class).fine().json() {
            assert_eq!(line["outcome"]["verdict"], verdict, "{class}");
            assert_eq!(line["given"]["call.effect"], class);
        }
    }
    assert_eq!(who("write").code, 2);
    assert_eq!(run(["policy", "who-can", "preset:standard", "fs.*"]).code, 2);
}

#[test]
fn only_one_agent_can_or_somebody_else_can() {
    let home = TestHome::new();
    let mail = mail_room(&home);
    let only = |tool: &str, agent: &str, flags: &[&str]| {
        let who = ["policy", "who-can", &mail, tool, "--effect", "pure", "--only", agent];
        run(who.iter().chain(flags))
    };
    only("mail.send", "secretary", &[]).fine();
    only("mail.draft", "team", &[]).fine();
    only("no.such", "anybody", &[]).fine();
    let found = only("mail.send", "secretary", &["--json"]).fine().one();
    assert_eq!(found["finding"], "only");
    for (tool, agent) in [("mail.send", "team"), ("mail.draft", "team/a")] {
        let other = only(tool, agent, &["--json"]);
        assert_eq!((other.code, &*other.err), (1, ""));
        let json = other.one();
        assert_eq!(json["finding"], "somebody_else");
        assert_eq!(json["outcome"]["verdict"], "allow");
        assert_eq!(verdicts_of([&mail, &mail], &json["given"])[0], "allow");
        assert_ne!(json["given"]["call.agent"], agent);
    }
    // Of one class of effects nobody, of another somebody.
    let standard = |class: &str| {
        let args = ["policy", "who-can", "preset:read-only", "x", "--only", "a", "--effect", class];
        run(args).code
    };
    assert_eq!((standard("local_write"), standard("read")), (0, 1));
    assert_eq!(only("mail.send", "Secretary", &[]).code, 2);
}

/// A home knows what its tools are: the witness is a call that there can be.
#[test]
fn policy_who_can_uses_the_class_of_the_homes_tool() {
    let home = TestHome::new();
    let path = home.path();
    let line = run(["policy", "who-can", &path, "fs.write", "--json"]).fine().one();
    assert_eq!(line["given"]["call.effect"], "local_write");
    let only = run(["policy", "who-can", &path, "fs.write", "--only", "a", "--json"]).one();
    assert_eq!(only["given"]["call.effect"], "local_write");
}

/// A tool of HTTP writes by its manifest, and reads by a method: who can read by it can use it.
#[test]
fn policy_who_can_on_http_asks_about_each_class() {
    let home = TestHome::new();
    let path = home.path();
    let settings = |methods: &str| {
        format!(r#"{{"base_url": "https://a.test/", "allowed_methods": [{methods}]}}"#)
    };
    let set = |tool: &str, methods: &str| {
        let set = run_with(["http", "set", &path, tool, "-"], settings(methods).as_bytes());
        assert_eq!(set.code, 0, "{}", set.err);
    };
    set("both", r#""GET", "POST""#);
    set("writes", r#""POST""#);
    // Reading outside is allowed to all, writing to one.
    let reads = json!({"capability": "external_read"});
    let writes = json!({"capability": "external_write"});
    let text = document(&[
        constraint("read", "allow", &reads, &json!({"op": "all", "args": []})),
        constraint("write", "allow", &writes, &when("eq", "call.agent", "secretary")),
    ]);
    run(["policy", "set", &path, &home.file("p.json", &text)]);
    let only = |tool: &str, flags: &[&str]| {
        let args = ["policy", "who-can", &path, tool, "--only", "secretary", "--json"];
        run(args.iter().chain(flags))
    };
    let both = only("both", &[]);
    assert_eq!((both.code, &both.one()["given"]["call.effect"]), (1, &json!("external_read")));
    only("both", &["--effect", "external_write"]).fine();
    only("writes", &[]).fine();
    let lines = run(["policy", "who-can", &path, "both", "--json"]).fine().json();
    assert!(lines.len() >= 2);
    assert!(lines.iter().all(|line| line["outcome"]["verdict"] == "allow"), "{lines:?}");
    let lines = run(["policy", "who-can", &path, "writes", "--json"]).fine().json();
    let allowed = |line: &&Value| line["outcome"]["verdict"] == "allow";
    assert_eq!(lines.iter().filter(allowed).count(), 1, "{lines:?}");
}

/// An answer about a tool that a home has not, or by a name that no call is decided under, would
/// be an answer about nothing.
#[test]
fn a_home_is_asked_about_its_own_tools() {
    let home = TestHome::new();
    let path = home.path();
    let ask = |tool: &str, flags: &[&str]| {
        let all = [&["policy", "who-can", &path, tool][..], flags].concat();
        run(all).failed(2).err
    };
    for flags in [&[][..], &["--effect", "read"], &["--only", "a"]] {
        let line = ask("fs.wirte", flags);
        let meant = "fs.wirte: the home has no such tool, did you mean fs.write?\n";
        assert!(line.ends_with(meant), "{line}");
        let line = ask("file_write", flags);
        assert!(line.ends_with("is another name of fs.write: use its own id\n"), "{line}");
    }
    let line = ask("weather.find", &[]);
    assert!(line.contains("; it has: ") && line.contains("fs.read"), "{line}");
    run(["policy", "who-can", &home.text_beside("nowhere"), "echo"]).failed(1);
}

/// A file has no tools, so a class that a tool does not have is never guessed.
#[test]
fn policy_who_can_on_a_file_needs_a_class() {
    let home = TestHome::new();
    let file = home.file("own", &tools(&[("fs.write", always())]));
    for target in [&*file, "preset:standard"] {
        for flags in [&[][..], &["--only", "a"]] {
            let run = run(["policy", "who-can", target, "fs.write"].iter().chain(flags));
            let line = run.failed(2).err;
            let wants = "syscap: fs.write: name its effect class with --effect, or ask a home\n";
            assert_eq!(line, wants);
        }
        let given = ["policy", "who-can", target, "fs.write", "--effect", "local_write", "--json"];
        assert_eq!(run(given).fine().one()["given"]["call.effect"], "local_write");
    }
}
