//! The page in a browser, driven as by a person, and its types.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::Console;
use crate::cli::approvals::write;
use crate::cli::support::{reason, run};
use crate::cli::terminal::{self, Person};

/// The browser's driver, as `scripts/browser` has installed it; says so where it has not.
fn driver() -> Option<PathBuf> {
    let own = || {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        target.join("browser")
    };
    let folder = std::env::var_os("SYSCAP_BROWSER").map_or_else(own, PathBuf::from);
    let there = folder.join("installed").exists() && terminal::is_there();
    if !there {
        eprintln!("skipped: the page in a browser: scripts/browser has not installed one");
    }
    there.then_some(folder)
}

fn beside(name: &str) -> String {
    format!("{}/tests/page/{name}", env!("CARGO_MANIFEST_DIR"))
}

/// A script of the browser's, whose steps are answered.
struct Script {
    child: Child,
    said: BufReader<std::process::ChildStdout>,
    input: ChildStdin,
}

impl Script {
    fn runs(name: &str, args: &[&str]) -> Self {
        let mut command = Command::new("node");
        command.arg(beside(name)).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let said = BufReader::new(child.stdout.take().unwrap());
        let input = child.stdin.take().unwrap();
        Self { child, said, input }
    }

    fn next(&mut self) -> String {
        let mut line = String::new();
        self.said.read_line(&mut line).unwrap();
        assert!(!line.is_empty(), "the browser's script broke off: {:?}", self.child.wait());
        line.trim_end().to_owned()
    }

    fn says(&mut self, word: &str) {
        writeln!(self.input, "{word}").unwrap();
    }

    fn ends(mut self) {
        assert_eq!(self.next(), "ended");
        assert!(self.child.wait().unwrap().success());
    }
}

impl Drop for Script {
    fn drop(&mut self) {
        self.child.kill().unwrap_or(());
        self.child.wait().map(drop).unwrap_or(());
    }
}

/// A connector with a secret that is not there yet.
fn sets_a_connector(console: &Console) {
    let settings = r#"{"base_url": "https://desk.example.com/api", "title": "Desk",
        "secrets": [{"secret": "desk", "header": "Authorization"}]}"#;
    let settings = console.home.file("desk.json", settings);
    assert_eq!(run(["http", "set", &console.home.path(), "ticket", &settings]).code, 0);
}

#[test]
fn person_answers_in_the_page() {
    let Some(folder) = driver() else { return };
    let mut console = Console::of(&[], None);
    // Texts of the agent's that a page could take for its own.
    let hostile = "<img src=x onerror=alert(1)><script>alert(2)</script>\u{202e}gpj.exe\u{200b}";
    let calls: Vec<u64> =
        (0..22).map(|n| console.waits_with(&format!("{n} {hostile}.md"), hostile)).collect();
    console.home.call("a", &console.token, br#"{"tool_id": "none", "args": {}}"#);
    for n in 0..20 {
        console.home.token(&format!("p{n}"), &["--tool", "echo"]);
    }
    let files = ["--tool", "fs.write,echo", "--read", "shared/docs", "--write", "workspace"];
    let other = console.home.token("c", &files);
    sets_a_connector(&console);
    console.person.press(b"c");
    let code = console.person.sees("code: ").next_word();
    let address = format!("http://{}/", console.page.host);
    let mut script = Script::runs("drive.mjs", &[folder.to_str().unwrap(), &address, &code]);
    assert_eq!(script.next(), "press y to give");
    console.person.sees("give c fs.write (local_write): path ").press(b"y");
    console.person.sees("done by record ");
    script.says("done");
    assert_eq!(script.next(), "press y to set");
    console.person.sees("set ticket (external_write): allowed_methods ").press(b"y");
    console.person.sees("done by record ");
    script.says("done");
    assert_eq!(script.next(), "type the secret");
    console.person.sees("set the secret desk, which is sent to ").press(b"y");
    console.person.sees("Value of desk: ").types("never-in-the-page-1");
    console.person.sees("done; nothing of it is on record");
    script.says("done");
    assert_eq!(script.next(), "press y");
    console.person.sees(&format!("approve once {}: local_write a fs.write", calls[0])).press(b"y");
    console.person.sees("done by record ");
    script.says("done");
    let deny = script.next();
    assert_eq!(deny, format!("deny {}", calls[3]));
    run(["approvals", "deny", &console.home.path(), &calls[3].to_string()]).fine();
    script.says("done");
    assert_eq!(script.next(), "quit");
    assert_eq!(reason(&console.call("z.txt")), "frozen");
    let taken = console.home.call("c", &other, write("a.txt", "x").as_bytes()).remove(0);
    // Taken and given back in the page: it is asked about again.
    assert_eq!(reason(&taken), "asked");
    let answers: Vec<_> = console.home.log();
    let answers = answers.iter().filter(|record| record["kind"] == "approval");
    let answers: Vec<&str> =
        answers.map(|record| record["control"]["says"]["answer"].as_str().unwrap()).collect();
    assert_eq!(answers, ["once", "deny", "deny"]);
    let home = console.ends();
    script.says("done");
    script.ends();
    drop(home);
}

/// Each text of each answer, found by the shape of the answers, is shown as a text, whatever it says.
#[test]
fn page_takes_no_text_for_its_own() {
    let Some(folder) = driver() else { return };
    let mut console = Console::of(&[], None);
    console.waits("a.txt");
    console.home.call("a", &console.token, br#"{"tool_id": "none", "args": {}}"#);
    sets_a_connector(&console);
    console.person.press(b"c");
    let code = console.person.sees("code: ").next_word();
    let address = format!("http://{}/", console.page.host);
    let mut script = Script::runs("corpus.mjs", &[folder.to_str().unwrap(), &address, &code]);
    let said = script.next();
    let count: usize = said.split(' ').next().unwrap().parse().unwrap();
    assert!(count > 100, "{said}");
    for panel in ["agents", "approvals", "connector", "home", "log/N", "status", "timeline", "tool"]
    {
        assert!(said.contains(&format!(" {panel}")), "{said}");
    }
    script.ends();
    console.ends();
}

/// What another local server left in the browser under `localhost` has no part in the page.
#[test]
fn page_of_an_earlier_local_server_gets_nothing() {
    let Some(folder) = driver() else { return };
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut script = Script::runs("worker.mjs", &[folder.to_str().unwrap(), &port]);
    assert_eq!(script.next(), "free");
    let console = Console::of(&["--port", &port], None);
    script.says(&format!("http://{}/", console.page.host));
    script.ends();
    console.ends();
}

#[test]
fn types_of_the_page_are_sound() {
    let Some(folder) = driver() else { return };
    let compiler = folder.join("node_modules/typescript/bin/tsc");
    let checked =
        Command::new("node").arg(compiler).args(["-p", &beside("tsconfig.json")]).output();
    let checked = checked.unwrap();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}

/// What the terminal writes out, so does the page: of all characters.
#[test]
fn page_hides_what_a_terminal_hides() {
    let Some(_) = driver() else { return };
    let script = format!(
        "import({:?}).then((dom) => {{ for (let at = 0; at < 0x110000; at++) {{ \
         if (at >= 0xd800 && at < 0xe000) continue; const one = String.fromCodePoint(at); \
         if (dom.plain(one) !== one) console.log(at); }} }})",
        format!("{}/../console/src/ui/dom.js", env!("CARGO_MANIFEST_DIR"))
    );
    let said = Command::new("node").args(["--input-type=module", "-e", &script]).output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
    let said = String::from_utf8(said.stdout).unwrap();
    let page: BTreeSet<u32> = said.lines().map(|line| line.parse().unwrap()).collect();
    let hidden = |c: &char| *c != '\n' && syscap::plain::plain(&c.to_string()) != c.to_string();
    let terminal: BTreeSet<u32> = ('\0'..=char::MAX).filter(hidden).map(u32::from).collect();
    assert_eq!(page, terminal);
}

/// An unsealed key is in a process that no other program of the user reads.
#[test]
fn memory_of_the_console_is_read_by_nobody() {
    if !terminal::is_there() {
        return;
    }
    let console = Console::of(&[], None);
    let own = |person: &Person| person.process();
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", own(&console.person))).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core file size")).unwrap();
    let words: Vec<&str> = core.split_whitespace().collect();
    assert_eq!((words[4], words[5]), ("0", "0"));
    console.ends();
}
