//! The suite against subjects of its own: one that is right, changes of it that are not, and such
//! as break the protocol.
#![allow(clippy::expect_used, clippy::indexing_slicing, reason = "a fault in a test ends it")]

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::Mutex;
use std::{fs, thread};

use serde_json::Value;
use sha2::{Digest as _, Sha256};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn run(arguments: &[&str], subject: &[&str]) -> Output {
    let mut runner = Command::new(env!("CARGO_BIN_EXE_syscap-conformance"));
    runner.args(arguments).arg("--").args(subject).output().expect("runs")
}

/// The exit code, and the checks of the report: their names and grades.
fn judged(arguments: &[&str], subject: &[&str]) -> (i32, Vec<(String, String)>) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("report.json");
    let report = path.to_string_lossy().into_owned();
    let done = run(&[arguments, &["--report", &report]].concat(), subject);
    let report: Value = serde_json::from_slice(&fs::read(&path).expect("a report")).expect("JSON");
    let text = |check: &Value, key: &str| check[key].as_str().expect(key).to_owned();
    let checks = report["checks"].as_array().expect("checks").iter();
    let grades = checks.map(|check| (text(check, "id"), text(check, "grade"))).collect();
    (done.status.code().expect("an exit"), grades)
}

fn python(script: &str) -> [&str; 3] {
    ["python3", "-c", script]
}

/// The word of a subject's first line, and then what a script does with the lines that follow.
fn subject(then: &str) -> String {
    format!(
        r#"
import json, os, subprocess, sys, time
def say(ask, **said): print(json.dumps({{"id": ask["id"], **said}}), flush=True)
for line in sys.stdin:
    ask = json.loads(line)
    if ask["do"] == "start":
        say(ask, ok={{"claims": ["scope"], "pids": [os.getpid()]}})
        continue
{then}
"#
    )
}

const CHECK: [&str; 4] = ["--timeout", "1", "--check", "scope.write-dotdot"];

#[test]
fn toy_passes_what_it_claims() {
    let toy = folder().join("toy/toy.py");
    let (code, grades) = judged(&[], &["python3", &toy.to_string_lossy()]);
    let claimed: Vec<_> = grades.iter().filter(|(_, grade)| grade != "not_claimed").collect();
    let bad: Vec<_> = claimed.iter().filter(|(_, grade)| grade != "pass").collect();
    assert!(bad.is_empty(), "{bad:?}");
    assert!(claimed.len() >= 150 && code == 0, "{} checks, {code}", claimed.len());
}

/// Every check of the areas that the toy claims is failed by one at least.
#[test]
fn mutant_fails_each_check_that_it_names() {
    let toy = fs::read_to_string(folder().join("toy/toy.py")).expect("the toy");
    let list = fs::read_to_string(folder().join("toy/mutants.toml")).expect("the mutants");
    let list: toml::Table = list.parse().expect("TOML");
    let mutants = list["mutant"].as_array().expect("a list");
    let page = fs::read_to_string(folder().join("../../docs/conformance.md")).expect("the page");
    let place = tempfile::tempdir().expect("a folder");
    let failed = Mutex::new(BTreeSet::new());
    let one = |mutant: &toml::Value| {
        let words = |of: &toml::Value| -> Vec<String> {
            let words = of.as_array().expect("a list").iter();
            words.map(|word| word.as_str().expect("a text").to_owned()).collect()
        };
        let name = mutant["name"].as_str().expect("a name");
        let checks = words(&mutant["checks"]);
        let row = format!("| `{name}` | `{}` |", checks[0]);
        assert!(page.contains(&row), "not in the page's matrix: {row}");
        let mut changed = toy.clone();
        for change in mutant["changes"].as_array().expect("changes") {
            let [old, new] = &words(change)[..] else { panic!("{name}: two texts") };
            assert_eq!(changed.matches(old).count(), 1, "{name}: {old}");
            changed = changed.replace(old, new);
        }
        let path = place.path().join(name);
        fs::write(&path, changed).expect("writes");
        let options: Vec<&str> = checks.iter().flat_map(|id| ["--check", id]).collect();
        let (code, grades) = judged(&options, &["python3", &path.to_string_lossy()]);
        assert!(code == 1 && grades.len() == checks.len(), "{name}");
        assert!(grades.iter().all(|(_, grade)| grade == "fail"), "{name}: {grades:?}");
        failed.lock().expect("a lock").extend(checks);
    };
    thread::scope(|scope| {
        for half in mutants.chunks(mutants.len().div_ceil(2)) {
            scope.spawn(|| half.iter().for_each(&one));
        }
    });
    let all = syscap_conformance::read(syscap_conformance::SET_2026_12).expect("the set");
    let claimed = all.into_iter().filter(|check| !["record", "recover"].contains(&&*check.area));
    let claimed: BTreeSet<String> = claimed.map(|check| check.id).collect();
    let failed = failed.into_inner().expect("a lock");
    let toothless: Vec<_> = claimed.difference(&failed).collect();
    assert!(toothless.is_empty(), "{toothless:?}");
    assert!(mutants.len() >= 40 && toy.lines().count() <= 300);
}

#[test]
fn subject_that_says_yes_to_everything_passes_nothing() {
    let always = folder().join("toy/always.py");
    let (code, grades) =
        judged(&["--timeout", "1", "--smoke"], &["python3", &always.to_string_lossy()]);
    let passed: Vec<_> = grades.iter().filter(|(_, grade)| grade == "pass").collect();
    let failed = grades.iter().filter(|(_, grade)| grade == "fail").count();
    assert_eq!((code, passed), (1, Vec::new()));
    assert!(failed >= 15, "{grades:?}");
}

/// The set is frozen: later checks go into later sets. The pages say how many there are.
#[test]
fn set_is_as_it_was_released() {
    let checks = syscap_conformance::read(syscap_conformance::SET_2026_12).expect("a set").len();
    for page in ["README.md", "CHANGELOG.md", "docs/conformance.md"] {
        let page = fs::read_to_string(folder().join("../..").join(page)).expect("a page");
        assert!(page.contains(&format!("{checks} checks")), "{checks} checks");
    }
    let digest = Sha256::digest(syscap_conformance::SET_2026_12.as_bytes());
    let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, "e4c098aa3dbb84e45e7063e9675811672a940b16e101e40f90ade8b81dc2f407");
}

#[test]
fn smoke_is_twenty_checks() {
    let toy = folder().join("toy/toy.py");
    let (code, grades) = judged(&["--smoke"], &["python3", &toy.to_string_lossy()]);
    assert_eq!((code, grades.len()), (0, 20));
}

/// Each is a fault of its own, no check passes by it, and the runner goes on with the next check.
#[test]
fn broken_subject_is_a_fault_and_no_pass() {
    let cases = [
        ("hung", "    time.sleep(60)"),
        ("died", "    sys.exit(0)"),
        ("flooded", "    while True: sys.stdout.write('x' * 65536)"),
        ("not JSON", "    print('[1]', flush=True)"),
        ("unasked", "    say(ask, ok={}); say(ask, ok={}); say(ask, ok={})"),
        ("unasked", "    say({'id': ask['id'] + 7}, ok={})"),
        ("form", "    say(ask, ok={}, refused='x')"),
    ];
    for (fault, then) in cases {
        let script = subject(then);
        let checks = ["--check", "scope.write-above"];
        let done = run(&[&CHECK[..], &checks].concat(), &python(&script));
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        let found = text.matches(&format!(": {fault}")).count();
        assert_eq!((done.status.code(), found), (Some(1), 2), "{fault}: {text}");
        assert!(!text.contains("     1     0"), "{text}");
    }
}

/// The subject's processes end with it, even one that has left its group.
#[test]
fn subjects_processes_end_with_it() {
    let place = tempfile::tempdir().expect("a folder");
    let path = place.path().join("pid").to_string_lossy().into_owned();
    let start = format!(
        "    child = subprocess.Popen(['sleep', '600'], start_new_session=True)\n    open({path:?}, 'w').write(str(child.pid))\n    sys.exit(0)"
    );
    let script = subject(&start);
    run(&CHECK, &python(&script));
    let pid = fs::read_to_string(&path).expect("a process");
    assert!(!Path::new("/proc").join(pid).exists());
}

/// A server with nothing before it: no call is asked about.
#[test]
fn bare_mcp_server_fails() {
    let (code, grades) = judged(&["--mcp", "--area", "approval"], &["{upstream}"]);
    let failed: Vec<_> = grades.iter().filter(|(_, grade)| grade == "fail").collect();
    assert_eq!((code, grades.len(), failed.len()), (1, 8, 7), "{grades:?}");
}

/// Asks about each call in the stream that a client listens to, and answers as JSON.
const GATEWAY: &str = r#"
import json, os, queue, sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
asked, answers = queue.Queue(), queue.Queue()
calls = sys.argv[-1] + "/calls"
class Gateway(BaseHTTPRequestHandler):
    def head(self, status, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Mcp-Session-Id", "one")
        self.end_headers()
    def do_GET(self):
        self.head(200, "text/event-stream")
        while True:
            self.wfile.write(f"id: 1\r\ndata: {json.dumps(asked.get())}\r\n\r\n".encode())
    def do_POST(self):
        said = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        method, id, params = said.get("method"), said.get("id"), said.get("params")
        if method != "initialize" and self.headers["Mcp-Session-Id"] != "one":
            return self.head(404)
        if method is None: answers.put(said["result"])
        if method is None or id is None: return self.head(202)
        result = {"tools": [{"name": "add_note"}]}
        if method == "tools/call":
            asked.put({"jsonrpc": "2.0", "id": 1, "method": "elicitation/create", "params": {
                "message": json.dumps(params), "requestedSchema": {"properties": {}}}})
            if answers.get()["action"] == "accept":
                with open(calls, "a") as file: file.write(json.dumps(params) + "\n")
        self.head(200)
        self.wfile.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, indent=1).encode())
ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Gateway).serve_forever()
"#;

/// A process that ends with the test, however that ends.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().and_then(|()| self.0.wait()).expect("ends");
    }
}

/// A port that was free a moment ago, and its URL.
fn free() -> (String, String) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = listener.local_addr().expect("an address").port();
    (port.to_string(), format!("http://127.0.0.1:{port}/mcp"))
}

#[test]
fn gateway_is_reached_by_url() {
    let (port, url) = free();
    let options = ["--mcp", "--url", &url];
    let wanted = ["mcp.accepted", "mcp.declined", "mcp.shown", "mcp.yes-over-a-kill"];
    let checks: Vec<&str> = wanted.iter().flat_map(|id| ["--check", id]).collect();
    let command = ["python3", "-c", GATEWAY, &port, "{upstream}"];
    let (code, grades) = judged(&[&options[..], &checks].concat(), &command);
    assert_eq!(code, 0, "{grades:?}");
    assert_eq!(grades.len(), 4);

    // One that runs already. Nobody can kill it.
    let upstream = tempfile::tempdir().expect("a folder");
    let place = upstream.path().to_string_lossy().into_owned();
    fs::write(upstream.path().join("calls"), "of another run\n").expect("writes");
    let running = [&options[..], &["--upstream", &place], &checks].concat();
    let nobody = run(&running, &[]);
    assert_eq!(nobody.status.code(), Some(3), "nobody listens");
    let mut gateway = Command::new("python3");
    gateway.args(["-c", GATEWAY, &port, &place]).stderr(Stdio::null());
    let gateway = Running(gateway.spawn().expect("runs"));
    let address = ("127.0.0.1", port.parse().expect("a port"));
    let listens = (0..1_000).any(|_| {
        thread::sleep(std::time::Duration::from_millis(10));
        TcpStream::connect(address).is_ok()
    });
    assert!(listens);
    let one = [&options[..], &["--upstream", &place, "--check", "mcp.accepted"]].concat();
    let (accepted, _) = judged(&one, &[]);
    let one = [&options[..], &["--upstream", &place, "--check", "mcp.schema"]].concat();
    let (_, killed) = judged(&one, &[]);
    let taken = run(&options, &command);
    drop(gateway);
    assert_eq!(accepted, 0);
    assert_eq!(killed, [("mcp.schema".to_owned(), "unproved".to_owned())]);
    assert_eq!(taken.status.code(), Some(3), "somebody else listens");
}

/// A person is not asked without an end.
#[test]
fn gateway_that_asks_on_and_on_is_flooded() {
    let old = "            if answers.get()";
    let ask = r#"{"jsonrpc": "2.0", "id": 1, "method": "elicitation/create"}"#;
    let new = format!("            for _ in range(200): asked.put({ask})\n{old}");
    assert_eq!(GATEWAY.matches(old).count(), 1);
    let (port, url) = free();
    let script = GATEWAY.replace(old, &new);
    let gateway = ["python3", "-c", &script, &port, "{upstream}"];
    let done = run(&["--mcp", "--url", &url, "--check", "mcp.declined"], &gateway);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.code() == Some(1) && text.contains(": flooded"), "{text}");
}

/// A bare server passes these three; each bent gateway fails one.
#[test]
fn bent_gateway_fails_the_check_that_is_named() {
    let bent = [
        ("mcp.accepted", r#"(json.dumps(params) + "\n")"#, r#"((json.dumps(params) + "\n") * 2)"#),
        (
            "mcp.killed-in-call",
            "class Gateway",
            "if os.path.exists(calls):\n    again = open(calls).read()\n    \
             open(calls, 'a').write(again)\nclass Gateway",
        ),
        (
            "mcp.batch",
            r#"        method, id"#,
            "        for one in said if isinstance(said, list) else []:\n            \
             open(calls, 'a').write(json.dumps(one['params']) + '\\n')\n        method, id",
        ),
    ];
    for (check, old, new) in bent {
        assert_eq!(GATEWAY.matches(old).count(), 1, "{check}");
        let (port, url) = free();
        let gateway = ["python3", "-c", &GATEWAY.replace(old, new), &port, "{upstream}"];
        let (code, grades) = judged(&["--mcp", "--url", &url, "--check", check], &gateway);
        assert_eq!((code, grades), (1, vec![(check.to_owned(), "fail".to_owned())]));
    }
}

/// Each is given to every request: what comes first, and what without an end.
#[test]
fn broken_gateway_is_a_fault_and_no_pass() {
    let upstream = tempfile::tempdir().expect("a folder");
    let place = upstream.path().to_string_lossy().into_owned();
    let json = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n";
    let events = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
    let much = "x".repeat(1 << 16);
    let cases = [
        ("hung", String::new(), ""),
        ("died", "nonsense\r\n\r\n".to_owned(), ""),
        ("flooded", json.to_owned(), &much),
        ("flooded", events.to_owned(), &much),
        ("flooded", events.to_owned(), "data: more\n"),
        ("not JSON", format!("{json}[1]"), ""),
        ("not JSON", format!("{json}{{"), ""),
        ("form", "HTTP/1.1 500 No\r\n\r\n".to_owned(), ""),
        ("form", format!("{json}{{\"id\": 1}}"), ""),
    ];
    for (fault, first, then) in cases {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let (first, then) = (first.clone(), then.to_owned());
        let hangs = first.is_empty();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let (first, then) = (first.clone(), then.clone());
                thread::spawn(move || {
                    let mut read = BufReader::new(stream.try_clone().expect("a stream"));
                    let mut line = String::new();
                    while read.read_line(&mut line).is_ok_and(|length| length > 2) {
                        line.clear();
                    }
                    let mut goes_on = stream.write_all(first.as_bytes()).is_ok();
                    while goes_on && !then.is_empty() {
                        goes_on = stream.write_all(then.as_bytes()).is_ok();
                    }
                    if hangs {
                        thread::sleep(std::time::Duration::from_secs(60));
                    }
                });
            }
        });
        let arguments = ["--mcp", "--url", &url, "--upstream", &place, "--timeout", "1"];
        let done = run(&[&arguments[..], &["--check", "mcp.accepted"]].concat(), &[]);
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert_eq!(done.status.code(), Some(1), "{fault}: {text}");
        assert!(text.contains(&format!(": {fault}")), "{fault}: {text}");
    }
}

/// It answers `start`, and then reads no more, while a request is larger than a pipe.
#[test]
fn subject_that_does_not_read_hangs_nobody() {
    let script = subject("    say(ask, ok={'token': 't'})")
        .replace("continue", "\n        if 'folder' in ask: time.sleep(600)\n        continue");
    let script = script.replace("[\"scope\"]", "[\"record\"]");
    let large = ["--timeout", "1", "--check", "record.full-disk-large-calls"];
    let done = run(&large, &python(&script));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains(": hung"), "{text}");
}

/// A log that is sound, and was made before: it is none of this check.
#[test]
fn borrowed_log_does_not_pass() {
    let vectors = folder().join("vectors/logs/chain.json");
    let file: Value = serde_json::from_slice(&fs::read(vectors).expect("vectors")).expect("JSON");
    let place = tempfile::tempdir().expect("a folder");
    let export = place.path().join("export");
    fs::create_dir_all(export.join("objects")).expect("a folder");
    let bytes = |text: &Value| -> Vec<u8> {
        let digits = text.as_str().expect("hex").as_bytes().chunks(2);
        digits
            .map(|two| u8::from_str_radix(str::from_utf8(two).expect("hex"), 16).expect("hex"))
            .collect()
    };
    let records = file["base"]["records"].as_array().expect("records").iter().flat_map(bytes);
    fs::write(export.join("records.cborseq"), records.collect::<Vec<_>>()).expect("writes");
    for (name, object) in file["base"]["objects"].as_object().expect("objects") {
        fs::write(export.join("objects").join(name), bytes(object)).expect("writes");
    }
    let then = format!(
        "    import shutil, urllib.request\n    if ask['do'] == 'reset': place = ask\n    if ask['do'] == 'call': urllib.request.urlopen(place['server'] + '/count/' + str(ask['args']['by']))\n    if ask['do'] == 'export': shutil.copytree({:?}, ask['to'])\n    say(ask, ok={{'token': 't'}})",
        export.to_string_lossy()
    );
    let script = subject(&then).replace("[\"scope\"]", "[\"record\"]");
    let done = run(&["--check", "record.of-policy"], &python(&script));
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(text.contains("does not begin with this check"), "{text}");
}

#[test]
fn subject_that_claims_nothing_does_not_pass() {
    let script = subject("    say(ask, ok=None)").replace("[\"scope\"]", "[]");
    let (code, grades) = judged(&CHECK, &python(&script));
    assert_eq!((code, grades[0].1.as_str()), (1, "not_claimed"));
}

#[test]
fn harness_fault_is_apart() {
    let missing = run(&CHECK, &["/no/such/program"]);
    assert_eq!(missing.status.code(), Some(3));
    let url = run(&["--mcp", "--url", "http://127.0.0.1:1/mcp"], &[]);
    assert_eq!(url.status.code(), Some(2), "neither a command nor a folder");
    let usage = run(&["--nonsense"], &["true"]);
    assert_eq!(usage.status.code(), Some(2));
    let unknown = run(&["--check", "scope.nothing"], &["true"]);
    assert_eq!(unknown.status.code(), Some(2));
    // Where it may not write: its own folder, and the report.
    let toy = folder().join("toy/toy.py");
    let mut nowhere = Command::new(env!("CARGO_BIN_EXE_syscap-conformance"));
    nowhere.args(CHECK).arg("--").arg("python3").arg(&toy).env("TMPDIR", "/proc");
    assert_eq!(nowhere.output().expect("runs").status.code(), Some(3));
    let report = [&CHECK[..], &["--report", "/proc/none"]].concat();
    assert_eq!(run(&report, &["python3", &toy.to_string_lossy()]).status.code(), Some(3));
}

#[test]
fn stale_entry_of_a_baseline_fails() {
    let place = tempfile::tempdir().expect("a folder");
    let baseline = place.path().join("baseline.toml").to_string_lossy().into_owned();
    let toy = folder().join("toy/toy.py");
    let right = ["python3", &toy.to_string_lossy()];
    let always = folder().join("toy/always.py");
    let wrong = ["python3", &always.to_string_lossy()];
    fs::write(&baseline, "\"scope.write-dotdot\" = \"fail\"\n").expect("writes");
    let with = [&CHECK[..], &["--baseline", &baseline]].concat();
    assert_eq!(run(&with, &wrong).status.code(), Some(0), "expected to fail, and fails");
    assert_eq!(run(&with, &right).status.code(), Some(1), "expected to fail, and passes");
}
