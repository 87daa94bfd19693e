//! `resume import` and `resume export`.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::cli::support::{ECHO, Serving, TestHome, is_hash, names, reason, run};

const RESUME: &str = r#"{ "name" : "researcher",
  "title": "Reads, writes notes", "model": {"key": "gpt", "temperature": 1e-400},
  "permissions": {
    "tools": ["file_read", "file_write", "create_anything"],
    "file_access": {
      "allow_read": ["shared"],
      "allow_write": ["agents/researcher/workspace"],
      "note": "kept"
    },
    "later": [1, 2,
              3]
  },
  "unknown" : null }
"#;

fn write(agent: &str) -> Vec<u8> {
    format!(r#"{{"tool_id":"file_write","args":{{"path":"{agent}.txt","text":"x"}}}}"#).into_bytes()
}

#[test]
fn a_resume_becomes_a_token() {
    let home = TestHome::new();
    let file = home.file("resume.json", RESUME);
    let imported = run(["resume", "import", &home.path(), &file, "--json"]);
    assert_eq!(imported.code, 0, "{}", imported.err);
    let said = "there is no tool \"create_anything\": it is not granted";
    assert!(imported.err.contains(said), "{}", imported.err);
    let imported = imported.one();
    assert!(is_hash(&imported["token_id"]));
    assert_eq!(imported["agent"], "researcher");
    let scope = "shared (read), workspace of researcher (write)";
    assert_eq!(imported["grants"]["fs.write"]["path"], scope);
    assert_eq!(imported["unknown_tools"], json!(["create_anything"]));
    let unread = ["title", "model", "unknown", "permissions.later", "permissions.file_access.note"];
    assert_eq!(imported["unread_fields"], json!(unread));
    let token = imported["token_id"].as_str().unwrap();
    let answers = home.call("researcher", token, &write("own"));
    assert_eq!(answers[0]["status"], "ok");
    assert_eq!(names(&home.workspace("researcher")), ["own.txt"]);
    let read = br#"{"tool_id":"file_read","args":{"path":"own.txt"}}"#;
    assert_eq!(reason(&home.call("researcher", token, read)[0]), "out_of_scope");
    assert_eq!(reason(&home.call("researcher", token, ECHO.as_bytes())[0]), "not_granted");
    // "Unknown tool names result in a safe error recorded in the tool results".
    let unknown = br#"{"tool_id":"create_anything","args":{}}"#;
    assert_eq!(reason(&home.call("researcher", token, unknown)[0]), "unknown_tool");
    let refusals: Vec<Value> =
        home.log().into_iter().filter(|it| it["kind"] == "refusal").collect();
    assert_eq!(refusals.last().unwrap()["reason"], "unknown_tool");
    // Imported again it is another token; the first one stays, and is named.
    let again = run(["resume", "import", &home.path(), &file]);
    assert!(again.err.contains(&format!("`syscap revoke HOME {token}` ends")), "{}", again.err);
    assert!(again.out.ends_with("  researcher  fs.read fs.write\n"), "{}", again.out);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), RESUME);
    assert_eq!(home.verify(), 0);
}

#[test]
fn flags_say_what_a_resume_does_not() {
    let home = TestHome::new();
    let file = home.file("r.json", r#"{"permissions": {"tools": ["shell", "echo"]}}"#);
    let path = home.path();
    let flags = ["--agent", "team/a", "--scope", "program=true", "--budget", "calls=1"];
    let args = ["resume", "import", &path, &file, "--json", "--expires", "90s"];
    let before = home.log().len();
    let dry = run(args.iter().chain(&flags).chain(&["--dry-run"])).fine().one();
    assert_eq!((&dry["token_id"], home.log().len()), (&Value::Null, before));
    assert_eq!(dry["grants"]["shell"]["program"], "true");
    assert_eq!(dry["grants"]["shell"]["path"], "workspace of team/a (read, write)");
    let token = run(args.iter().chain(&flags)).fine().one();
    let token = token["token_id"].as_str().unwrap();
    let answers = home.call("team/a", token, format!("{ECHO}\n{ECHO}").as_bytes());
    assert_eq!(answers[0]["status"], "ok");
    assert_eq!(reason(&answers[1]), "over_budget");
    let shown = run(["token", "show", &path, token, "--json"]).fine().one();
    let life = shown["expires_ms"].as_u64().unwrap() - shown["not_before_ms"].as_u64().unwrap();
    assert_eq!(life, 90_000);
}

/// "the agent is skipped with a warning instead of crashing": the others are imported.
#[test]
fn import_skips_a_file_that_is_no_resume() {
    let home = TestHome::new();
    let good = home.file("good.json", r#"{"name": "b", "permissions": {"tools": ["echo"]}}"#);
    let mut files: Vec<String> = [
        r#"{"name": "a"}"#,
        r#"{"name": "a", "permissions": {}}"#,
        r#"{"permissions": {"tools": []}}"#,
        r#"{"name": "a", "permissions": null}"#,
        r#"{"name": "a", "permissions": {"tools": "echo"}}"#,
        r#"{"name": "a", "permissions": {"tools": [], "tools": ["echo"]}}"#,
        r#"{"name": "a", "permissions": {"tools": [], "file_access": {"allow_read": ["/etc"]}}}"#,
        r#"{"name": "\u202ea\u001b[2J", "permissions": {"tools": []}}"#,
        "not json",
        "",
    ]
    .iter()
    .enumerate()
    .map(|(n, text)| home.file(&format!("bad{n}.json"), text))
    .collect();
    files.push(home.file("deep.json", &"[".repeat(200_000)));
    files.push(home.file("huge.json", &format!("{{\"a\": \"{}\"}}", "x".repeat(2 << 20))));
    files.push(home.text_beside("missing.json"));
    files.push(home.path());
    let path = home.path();
    let bad = files.len();
    files.insert(3, good.clone());
    let args = ["resume", "import", &path, "--json"].map(str::to_owned).into_iter();
    let ran = run(args.chain(files));
    assert_eq!(ran.code, 1);
    assert_eq!(ran.err.lines().count(), bad, "{}", ran.err);
    assert!(ran.err.lines().all(|line| line.contains(": skipped: ")), "{}", ran.err);
    assert!(ran.err.is_ascii() && !ran.err.contains('\u{1b}'), "{}", ran.err);
    let lines = ran.json();
    let issued: Vec<&Value> = lines.iter().filter(|line| line["skipped"].is_null()).collect();
    assert_eq!(lines.len(), bad + 1);
    assert_eq!(issued.len(), 1);
    assert_eq!(issued[0]["agent"], "b");
    assert_eq!(run(["token", "list", &path, "--json"]).fine().json().len(), 1);
    // All of them in order, but for the exit code.
    let ran = run(["resume", "import", &path, &home.text_beside("bad0.json")]).failed(1);
    assert!(ran.err.contains("`permissions` is missing"), "{}", ran.err);
    let other = run(["resume", "import", &path, &good, "--agent", "c"]).failed(1);
    assert!(other.err.contains("`name` is b, and not c"), "{}", other.err);
}

#[test]
fn a_token_is_written_into_a_resume() {
    let home = TestHome::new();
    let (path, file) = (home.path(), home.file("resume.json", RESUME));
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let token = home.token("researcher", &["--tool", "fs.read,fs.list", "--read", "shared/notes"]);
    // Beside a process that holds the home, too.
    let serving = Serving::of(&path, &[]);
    let args = ["resume", "export", &path, "--agent", "researcher", &file, "--json"];
    let done = run(args).fine().one();
    assert_eq!((&done["changed"], &done["token_id"]), (&json!(true), &json!(token)));
    let wanted = RESUME
        .replace(
            "[\"file_read\", \"file_write\", \"create_anything\"]",
            "[\"file_read\", \"create_anything\", \"file_list\"]",
        )
        .replace("[\"shared\"]", "[\"shared/notes\"]")
        .replace("[\"agents/researcher/workspace\"]", "[]");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), wanted);
    let meta = std::fs::symlink_metadata(&file).unwrap();
    assert_eq!((meta.is_file(), meta.permissions().mode() & 0o7777), (true, 0o640));
    assert_eq!(names(home.folder.path()), ["home", "resume.json"]);
    assert_eq!(run(args).fine().one()["changed"], false);
    // What it says is what the token grants.
    let imported = run(["resume", "import", &path, &file, "--json"]).one();
    let id = imported["token_id"].as_str().unwrap();
    let grants =
        |id: &str| run(["token", "show", &path, id, "--json"]).fine().one()["grants"].clone();
    assert_eq!(grants(id), grants(&token));
    serving.stop();

    // A new one, to standard output.
    let fresh = run(["resume", "export", &path, "--agent", "researcher", "--token", &token]).fine();
    let fresh: Value = serde_json::from_str(&fresh.out).unwrap();
    assert_eq!(fresh["name"], "researcher");
    assert_eq!(fresh["permissions"]["tools"], json!(["file_list", "file_read"]));
    assert_eq!(fresh["permissions"]["file_access"]["allow_read"], json!(["shared/notes"]));
    let line = run(["resume", "export", &path, "--agent", "researcher", "--json"]).fine().one();
    assert_eq!(line["name"], "researcher");
}

/// An agent that may write where its resume lies puts a link there, or in the place of a folder on
/// the way: what it leads to is another agent's, and is not written.
#[test]
fn no_link_is_written_through() {
    use std::os::unix::fs::symlink;
    let home = TestHome::new();
    let path = home.path();
    home.token("researcher", &["--tool", "fs.read", "--read", "shared"]);
    let outside = home.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("resume.json"), RESUME).unwrap();
    let agents = home.workspace("researcher");
    std::fs::create_dir_all(agents.join("kept")).unwrap();
    symlink(outside.join("resume.json"), agents.join("resume.json")).unwrap();
    symlink(&outside, agents.join("folder")).unwrap();
    symlink(outside.join("nothing"), agents.join("nowhere.json")).unwrap();
    let export = |file: &std::path::Path| {
        run(["resume", "export", &path, "--agent", "researcher", file.to_str().unwrap()])
    };
    for name in ["resume.json", "folder/resume.json", "kept/../folder/resume.json", "nowhere.json"]
    {
        export(&agents.join(name)).failed(1);
    }
    assert_eq!(std::fs::read_to_string(outside.join("resume.json")).unwrap(), RESUME);
    assert_eq!(names(&outside), ["resume.json"]);
    // The way on is the place itself, which is named.
    let said = export(&agents.join("folder/resume.json")).err;
    let place = outside.join("resume.json").canonicalize().unwrap();
    assert!(said.contains(place.to_str().unwrap()), "{said}");
    export(&place).fine();
    assert_ne!(std::fs::read_to_string(&place).unwrap(), RESUME);
}

#[test]
fn export_leaves_an_unwritable_file_alone() {
    let home = TestHome::new();
    let (path, file) = (home.path(), home.file("resume.json", RESUME));
    let args = |agent: &str, more: &[&str]| {
        let mut args = vec!["resume", "export", &path, "--agent", agent, &file];
        args.extend(more);
        run(args)
    };
    args("researcher", &[]).failed(2);
    args("researcher", &["--token", &"0".repeat(64)]).failed(1);
    let token = home.token("b", &["--tool", "echo"]);
    args("researcher", &["--token", &token]).failed(2);
    // The resume is another's.
    args("b", &[]).failed(1);
    // A token that gives a tool what another one has not got.
    home.token("researcher", &["--tool", "shell", "--read", "workspace", "--scope", "program=git"]);
    let told = args("researcher", &["--json"]);
    assert_eq!(told.code, 0);
    assert!(told.err.contains("the token gives shell more than a resume can say"), "{}", told.err);
    let broken = home.file("broken.json", "{");
    run(["resume", "export", &path, "--agent", "b", &broken]).failed(1);
    assert_eq!(std::fs::read_to_string(broken).unwrap(), "{");
    run(["resume", "export", &path, "--agent", "b", &home.text_beside("none.json")]).failed(1);
}
