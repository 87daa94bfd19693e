//! `syscap hook --setup` writes the client's user settings, and nothing else of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;

use crate::cli::support::{Run, TestHome, syscap};
use crate::cli::terminal::{self, Person};

struct User {
    home: TestHome,
    folder: PathBuf,
}

impl User {
    fn new() -> Self {
        let home = TestHome::new();
        let folder = home.beside("user");
        fs::create_dir(&folder).unwrap();
        Self { home, folder }
    }

    fn set_up(&self, client: &str, more: &[&str]) -> Run {
        self.hook(&self.home.path(), client, &[&["--setup", "--yes"], more].concat())
    }

    fn hook(&self, home: &str, client: &str, more: &[&str]) -> Run {
        let mut command = syscap();
        command.args(["hook", home, "--agent", "a", "--client", client]).args(more);
        command.env("HOME", &self.folder).env_remove("CLAUDE_CONFIG_DIR");
        Run::of(command.current_dir(&self.folder).stdin(Stdio::null()).output().unwrap())
    }

    /// Nothing is written, or on record.
    fn refused(&self, why: &str) {
        let log = self.home.log().len();
        let ran = self.set_up("claude-code", &[]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(why) && ran.err.contains("--print"), "{}", ran.err);
        assert_eq!(self.home.log().len(), log);
    }
}

fn commands(file: &Path, event: &str) -> Vec<String> {
    let settings: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let entries = settings["hooks"][event].as_array().unwrap().iter();
    let commands = entries.map(|entry| entry["hooks"][0]["command"].as_str().unwrap().to_owned());
    commands.collect()
}

#[test]
fn hook_is_written_into_user_settings_and_the_rest_is_kept() {
    let user = User::new();
    let file = user.folder.join(".claude/settings.json");
    // There is none yet.
    let ran = user.set_up("claude-code", &[]);
    assert_eq!((ran.code, &*ran.out), (0, ""), "{}", ran.err);
    assert_eq!(commands(&file, "PreToolUse").len(), 1);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    // A person's own settings.
    let own = "{\n  \"model\": \"x\", \"theme\":1.0,\n  \"hooks\": {\"PreToolUse\": [\n    \
               {\"hooks\": [{\"type\": \"command\", \"command\": \"lint\"}]}]}\n}\n";
    fs::write(&file, own).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert_eq!(user.set_up("claude-code", &[]).code, 0);
    let written = fs::read_to_string(&file).unwrap();
    assert!(
        written.starts_with("{\n  \"model\": \"x\", \"theme\":1.0,\n  \"hooks\": "),
        "{written}"
    );
    let before = commands(&file, "PreToolUse");
    assert_eq!((before.len(), &*before[0]), (2, "lint"));
    assert_eq!(commands(&file, "UserPromptSubmit").len(), 1);
    let backup = file.with_file_name("settings.json.syscap-backup");
    assert_eq!(fs::read_to_string(&backup).unwrap(), own);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
    // Another set-up takes the place of the first; the same again writes nothing.
    assert_eq!(user.set_up("claude-code", &["--allow"]).code, 0);
    let again = commands(&file, "PreToolUse");
    assert!(again.len() == 2 && again[1].ends_with("--allow"), "{again:?}");
    fs::remove_file(&backup).unwrap();
    assert_eq!(user.set_up("claude-code", &["--allow"]).code, 0);
    assert!(!backup.exists());
    let names = || fs::read_dir(user.folder.join(".claude")).unwrap().count();
    assert_eq!(names(), 1, "no part of a file is left");
    // --print writes nothing.
    fs::remove_file(&file).unwrap();
    let printed = user.hook(&user.home.path(), "claude-code", &["--setup", "--print"]);
    assert!(printed.out.starts_with("{\"hooks\":{\"PreToolUse\""), "{}", printed.out);
    assert!(!file.exists());
    assert_eq!(user.set_up("gemini-cli", &[]).code, 0);
    assert_eq!(commands(&user.folder.join(".gemini/settings.json"), "BeforeTool").len(), 1);
}

/// What was put in is taken out, and nothing else: the file is byte for byte the first one, where nothing
/// else has changed in it.
#[test]
fn hook_is_taken_out_again() {
    let user = User::new();
    let (path, file) = (user.home.path(), user.folder.join(".claude/settings.json"));
    let remove = |home: &str, more: &[&str]| {
        user.hook(home, "claude-code", &[&["--remove", "--yes"], more].concat())
    };
    // There is none; there was no file.
    assert_eq!(remove(&path, &[]).code, 0);
    assert_eq!(user.set_up("claude-code", &[]).code, 0);
    assert_eq!(remove(&path, &[]).code, 0);
    assert!(!file.exists());
    // A person's own, set up three times.
    let own = "{ \"model\" : \"x\",\n\t\"hooks\": {\"Stop\": [ {\"hooks\": [{\"command\": \"lint\"}]} ]}\n}\n";
    fs::write(&file, own).unwrap();
    for flags in [&[][..], &["--allow"], &["--patience", "30s"]] {
        assert_eq!(user.set_up("claude-code", flags).code, 0);
    }
    let backup = file.with_file_name("settings.json.syscap-backup");
    assert_eq!(fs::read_to_string(&backup).unwrap(), own, "the first one is kept");
    assert_eq!(remove(&path, &[]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), own);
    // What has come since stays.
    assert_eq!(user.set_up("claude-code", &[]).code, 0);
    let since = fs::read_to_string(&file).unwrap();
    fs::write(&file, since.replace("\"x\"", "\"y\", \"permissions\": {\"allow\": [ \"Read\" ]}"))
        .unwrap();
    assert_eq!(remove(&path, &[]).code, 0);
    let left = fs::read_to_string(&file).unwrap();
    assert!(
        left.starts_with("{ \"model\" : \"y\", \"permissions\": {\"allow\": [ \"Read\" ]},\n"),
        "{left}"
    );
    assert!(left.contains("lint") && !left.contains("syscap"), "{left}");
    // Another home's set-up takes the place of the first; only that one's is taken out.
    let other = TestHome::new();
    assert_eq!(user.set_up("claude-code", &[]).code, 0);
    assert_eq!(user.hook(&other.path(), "claude-code", &["--setup", "--yes"]).code, 0);
    let two = fs::read_to_string(&file).unwrap();
    assert_eq!(remove(&path, &[]).code, 0);
    assert_eq!(fs::read_to_string(&file).unwrap(), two);
    assert_eq!(remove(&other.path(), &[]).code, 0);
    assert!(!fs::read_to_string(&file).unwrap().contains("syscap"));
    // A group of ours with another's hook in it is shown, and left.
    assert_eq!(user.set_up("claude-code", &[]).code, 0);
    let mixed = fs::read_to_string(&file).unwrap();
    let mixed = mixed.replacen("\"hooks\":[{", "\"hooks\":[{\"command\":\"mine\"},{", 1);
    fs::write(&file, &mixed).unwrap();
    assert_eq!(remove(&path, &[]).code, 2);
    assert_eq!(fs::read_to_string(&file).unwrap(), mixed);
}

/// A terminal shows the file and the change, and asks; without one nothing is changed unasked.
#[test]
fn file_is_changed_as_a_person_has_seen() {
    let user = User::new();
    let (path, file) = (user.home.path(), user.folder.join(".claude/settings.json"));
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "{\"a\": 1}\n").unwrap();
    let log = user.home.log().len();
    let refused = user.hook(&path, "claude-code", &["--setup"]);
    assert!(refused.code == 2 && refused.err.contains("--yes"), "{}", refused.err);
    assert_eq!(user.home.log().len(), log, "nothing is on record");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}\n");
    // A project's own settings, with a warning.
    let project = user.hook(&path, "claude-code", &["--setup", "--yes", "--project"]);
    assert_eq!(project.code, 0, "{}", project.err);
    assert!(project.err.contains("warning: .claude/settings.local.json"), "{}", project.err);
    assert_eq!(commands(&file.with_file_name("settings.local.json"), "PreToolUse").len(), 1);
    assert_eq!(user.hook(&path, "gemini-cli", &["--setup", "--yes", "--project"]).code, 2);
    for wrong in [&["--yes"][..], &["--project"], &["--setup", "--remove"]] {
        assert_eq!(user.hook(&path, "claude-code", wrong).code, 2, "{wrong:?}");
    }
    if !terminal::is_there() {
        return;
    }
    let hook = ["hook", &path, "--agent", "a", "--client", "claude-code"];
    let runs = |word: &str| {
        let words = hook.iter().copied().chain([word]);
        Person::runs_as(&user.folder, words)
    };
    let mut person = runs("--setup");
    person.sees("- {\"a\": 1}").sees("PreToolUse").sees("Change it so?").types("n");
    assert_eq!(person.end().code, Some(1));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}\n");
    let mut person = runs("--setup");
    person.sees("Change it so?").types("y");
    assert_eq!(person.end().code, Some(0));
    assert_eq!(commands(&file, "PreToolUse").len(), 1);
    let mut person = runs("--remove");
    person.sees("Change it so?").types("y");
    assert_eq!(person.end().code, Some(0));
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"a\": 1}\n");
}

#[test]
fn settings_that_are_a_link_or_no_json_are_refused() {
    let user = User::new();
    let folder = user.folder.join(".claude");
    let file = folder.join("settings.json");
    fs::create_dir(&folder).unwrap();
    let elsewhere = user.folder.join("elsewhere.json");
    for text in ["{\"a\": 1", "// mine\n{}", "[]", "{\"hooks\": 1}"] {
        fs::write(&file, text).unwrap();
        user.refused("settings.json");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    fs::write(&elsewhere, "{}").unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    user.refused("is a link");
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    user.refused("is no regular file");
    fs::remove_dir(&file).unwrap();
    // The folder may be a link as little.
    fs::rename(&folder, user.folder.join("other")).unwrap();
    symlink("other", &folder).unwrap();
    user.refused("is a link");
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "{}");
    assert_eq!(fs::read_dir(user.folder.join("other")).unwrap().count(), 0);
}

#[test]
fn settings_of_another_user_are_refused() {
    let user = User::new();
    let file = user.folder.join(".claude/settings.json");
    fs::create_dir(file.parent().unwrap()).unwrap();
    fs::write(&file, "{}").unwrap();
    if std::os::unix::fs::chown(&file, Some(12_345), None).is_err() {
        println!("skipped: no right to give a file away");
        return;
    }
    user.refused("another user");
    assert_eq!(fs::read_to_string(&file).unwrap(), "{}");
}
