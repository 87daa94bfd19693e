//! Servers of a gateway, which are started outside: they see no home, and are not the agent's code.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::{env, fs};

use serde_json::{Value, json};

use crate::cli::support::{Run, TestHome, run, syscap};
use crate::run::world::{AGENT, PYTHON, SYSCAP, World};

const NOBODY: u32 = 65_534;
const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/server.py");

/// Each case of `canaries.py`: the tool answers, and nothing that was planted reaches the world
/// outside.
fn each_canary_is_held(mut command: Command, program: &Path, folder: &Path) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/canaries.py");
    // By its text: somebody else may not read this folder.
    let text = fs::read_to_string(script).unwrap();
    let clients = env::var_os("SYSCAP_CLIENTS").map(PathBuf::from).unwrap_or_else(|| {
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("clients")
    });
    let path = env::join_paths(
        env::split_paths(&env::var_os("PATH").unwrap()).chain([clients.join("venv/bin")]),
    );
    command.args([PYTHON, "-c", &text]).arg(program).arg(folder).env("PATH", path.unwrap());
    let ran = command.current_dir(folder).output().unwrap();
    let (said, told) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{said}{told}");
    let mut held = 0;
    for line in said.lines() {
        match line.split_once(": skipped: ") {
            Some((case, why)) => println!("skipped: canary {case}: {why}"),
            None => {
                assert!(line.ends_with(": answered held"), "{line}: {told}");
                held += 1;
            }
        }
    }
    assert!(held >= 7, "{said}");
}

#[test]
fn planted_code_runs_nowhere_outside() {
    if World::new().is_none() {
        return;
    }
    let folder = host_support::scratch();
    each_canary_is_held(Command::new("env"), Path::new(SYSCAP), folder.path());
}

/// Runs a test with a command that becomes an ordinary user, the program where such a one reads it,
/// and a folder of that user's.
fn as_an_ordinary_user(test: impl Fn(Command, &Path, &Path)) {
    let folder = host_support::scratch();
    if !rustix::process::geteuid().is_root() {
        return test(Command::new("env"), Path::new(SYSCAP), folder.path());
    }
    let (own, program) = (folder.path().join("own"), folder.path().join("syscap"));
    fs::create_dir(&own).unwrap();
    assert!(Command::new("cp").args([Path::new(SYSCAP), &program]).status().unwrap().success());
    let mode = ["755".as_ref(), folder.path().as_os_str(), program.as_os_str()];
    assert!(Command::new("chmod").args(mode).status().unwrap().success());
    std::os::unix::fs::chown(&own, Some(NOBODY), Some(NOBODY)).unwrap();
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    command.env("TMPDIR", &own);
    test(command, &program, &own);
}

#[test]
fn planted_code_runs_nowhere_outside_for_an_ordinary_user() {
    if World::new().is_some() {
        as_an_ordinary_user(each_canary_is_held);
    }
}

#[test]
fn quotas_of_the_user_are_left_to_those_outside() {
    if World::new().is_none() {
        return;
    }
    as_an_ordinary_user(|mut command, program, folder| {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/quotas.py");
        let text = fs::read_to_string(script).unwrap();
        command.args([PYTHON, "-c", &text]).arg(program).arg(folder).current_dir(folder);
        let ran = command.output().unwrap();
        let told = String::from_utf8_lossy(&ran.stderr);
        assert_eq!(
            String::from_utf8_lossy(&ran.stdout),
            "sends: yes\nwatches: yes\nruns: yes\n",
            "{told}"
        );
    });
}

/// No other program of the user reads what one that opens keys has in its memory or has open, and what
/// that starts is as any program.
#[test]
fn memory_with_keys_is_read_by_no_other_program() {
    as_an_ordinary_user(|command, program, folder| {
        let words = || {
            let mut words = Command::new(command.get_program());
            words.args(command.get_args()).current_dir(folder);
            words
        };
        let home = folder.join("home");
        let made = words().arg(program).arg("init").arg(&home).arg("--no-passphrase").output();
        assert!(made.unwrap().status.success());
        let is_its_own = |pid: u32| {
            let user = fs::metadata(folder).unwrap().uid();
            user == 0 || fs::metadata(format!("/proc/{pid}/fd")).unwrap().uid() == user
        };
        let shown = |pid: u32| {
            let files = format!("/proc/{pid}/fd");
            words().args(["ls", &files]).output().unwrap().status.success()
        };
        let mut serves = words();
        serves.arg(program).arg("serve").arg(&home).stderr(Stdio::piped());
        let mut serves = serves.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(serves.stderr.take().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains("serving"), "{line}");
        assert!(!is_its_own(serves.id()) && !shown(serves.id()));
        // It is found all the same, by its command line.
        let found = words().arg(program).args(["approvals", "list"]).output().unwrap();
        let told = String::from_utf8_lossy(&found.stderr);
        assert!(found.status.success() && told.contains("home: "), "{told}");
        serves.kill().unwrap();
        serves.wait().unwrap();
        let mut gateway = words();
        let seconds = std::process::id().to_string();
        gateway.arg(program).arg("mcp").arg(&home).args(["--agent", "a", "--", "/bin/sleep"]);
        gateway.arg(&seconds).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut gateway = gateway.spawn().unwrap();
        gateway.stdin.as_mut().unwrap().write_all(hello().as_bytes()).unwrap();
        let line = format!("/bin/sleep\0{seconds}\0");
        let is_server = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == line.as_bytes())
        };
        let server = (0..500).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(20));
            let names = fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().file_name());
            names.filter_map(|name| name.to_str()?.parse().ok()).find(is_server)
        });
        let (id, server) = (gateway.id(), server.unwrap());
        assert!(!is_its_own(id) && !shown(id));
        assert!(is_its_own(server) && shown(server));
        gateway.kill().unwrap();
        gateway.wait().unwrap();
    });
}

/// A gateway and its client.
struct Gateway {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    asked: u64,
}

impl Gateway {
    fn start(command: &mut Command) -> Self {
        let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = streams.spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let mut gateway = Self { child, to, from: BufReader::new(from), asked: 0 };
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "c", "version": "1"}});
        gateway.ask("initialize", &hello);
        gateway.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        gateway
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.to, "{message}").unwrap();
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.asked += 1;
        let id = self.asked;
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        loop {
            let mut line = String::new();
            assert!(self.from.read_line(&mut line).unwrap() > 0, "the gateway ended");
            let said: Value = serde_json::from_str(&line).unwrap();
            if said["id"] == id {
                return said;
            }
        }
    }

    /// The server's word for the result.
    fn look(&mut self, what: &str, of: &Value) -> Value {
        let arguments = json!({"what": what, "of": of});
        let said = self.ask("tools/call", &json!({"name": "look", "arguments": arguments}));
        let text =
            said["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{said}"));
        serde_json::from_str(text).unwrap_or_else(|_| Value::from(text))
    }

    /// Ends it; what it said for the operator.
    fn end(self) -> String {
        drop((self.to, self.from));
        let output = self.child.wait_with_output().unwrap();
        String::from_utf8(output.stderr).unwrap()
    }
}

/// The command line of a gateway with this server over these words.
fn words(home: &TestHome, options: &[&str], words: &[&str]) -> Vec<String> {
    let home = home.path();
    let base = ["mcp", &home, "--agent", AGENT, "--name", "s", "--class", "read=look"];
    let server = ["--", PYTHON, SERVER];
    let all = base.iter().chain(options).chain(&server).chain(words);
    all.map(|word| (*word).to_owned()).collect()
}

fn gateway(home: &TestHome, options: &[&str], of: &[&str]) -> Gateway {
    Gateway::start(syscap().args(words(home, options, of)).current_dir(home.folder.path()))
}

#[test]
fn server_sees_no_home_and_no_key() {
    let Some(world) = World::new() else { return };
    let home = &world.home;
    let beside = home.text_beside("");
    let key = home.text_beside("home/keys/approver.key");
    let whole = fs::read(&key).unwrap();
    // Another home below its word, whose keys lie elsewhere, and one below the first's own files.
    let other = home.text_beside("work/deep/er/other");
    fs::create_dir_all(home.beside("work/deep/er")).unwrap();
    assert_eq!(run(["init", &other, "--no-passphrase"]).code, 0);
    fs::rename(format!("{other}/keys"), home.beside("keys")).unwrap();
    symlink(home.beside("keys"), format!("{other}/keys")).unwrap();
    let inner = home.text_beside("home/files/shared/inner");
    fs::create_dir_all(home.beside("home/files/shared")).unwrap();
    assert_eq!(run(["init", &inner, "--no-passphrase"]).code, 0);
    let of_it = home.text_beside("home/files");
    let mut gateway = gateway(home, &[], &[&beside, &of_it]);
    assert_eq!(gateway.look("list", &json!(home.path())), json!(["files"]));
    let hidden = [
        key.clone(),
        format!("{other}/home.db"),
        home.text_beside("keys/approver.key"),
        format!("{inner}/keys/approver.key"),
        home.text_beside("home/socket"),
    ];
    for path in hidden {
        assert_eq!(gateway.look("read", &json!(path)), "FileNotFoundError", "{path}");
        assert_ne!(gateway.look("write", &json!(path)), json!(13), "{path}");
    }
    // All else is as it was, the agents' files too.
    let note = home.text_beside("home/files/shared/note");
    assert_eq!(gateway.look("write", &json!(note)), json!(13));
    assert_eq!(fs::read_to_string(&note).unwrap(), "by the server");
    assert_eq!(gateway.look("cwd", &Value::Null), json!(home.folder.path()));
    let told = gateway.end();
    assert!(told.contains("what its servers see: s hidden"), "{told}");
    assert_eq!(fs::read(&key).unwrap(), whole);
    // The operator's word, and what is opened instead.
    let mut gateway = self::gateway(home, &["--unhidden", "s"], &[&beside]);
    assert!(gateway.look("list", &json!(home.path())).as_array().unwrap().len() > 1);
    gateway.end();
    assert_eq!(home.verify(), 0);
}

#[test]
fn confined_server_sees_what_is_opened_to_it() {
    let Some(world) = World::new() else { return };
    let home = &world.home;
    let (work, secret) = (home.text_beside("work"), home.text_beside("secret"));
    fs::write(&secret, "secret").unwrap();
    fs::write(home.beside("work/note"), "note").unwrap();
    let tests = Path::new(SERVER).parent().unwrap().to_str().unwrap();
    let mut gateway = gateway(home, &["--ro", tests, "--rw", &format!("s:{work}")], &[]);
    assert_eq!(gateway.look("read", &json!(format!("{work}/note"))), "note");
    assert_eq!(gateway.look("write", &json!(format!("{work}/made"))), json!(13));
    assert_eq!(gateway.look("read", &json!(secret)), "PermissionError");
    assert_eq!(gateway.look("list", &json!(home.path())), "PermissionError");
    let variables = gateway.look("env", &Value::Null);
    let (own, temporary) = (variables["HOME"].clone(), variables["TMPDIR"].clone());
    let scratch = json!(format!("{}/x", own.as_str().unwrap()));
    assert_eq!(gateway.look("write", &scratch), json!(13));
    let code = "import socket; socket.create_connection(('127.0.0.1', 1))";
    let said = gateway.look("run", &json!(["sh", "-c", format!("{PYTHON} -c \"{code}\" 2>&1")]));
    assert!(said.as_str().unwrap().contains("PermissionError"), "{said}");
    gateway.end();
    for folder in [own, temporary] {
        assert!(!Path::new(folder.as_str().unwrap()).exists());
    }
    // Neither what is opened nor the program may be the home's.
    for of_home in [home.path(), home.text_beside("home/keys/approver.key"), home.text_beside("")] {
        let refused = run(words(home, &["--ro", &of_home], &[]));
        assert!(refused.failed(2).err.contains("the home"), "{of_home}");
    }
    let both = run(words(home, &["--unhidden", "s", "--net", "host"], &[]));
    assert!(both.failed(2).err.contains("leave one out"));
    let many = (0..200).flat_map(|_| ["--ro", "/usr/bin"]).collect::<Vec<_>>();
    let (code, told) = refused_start(home, &many);
    assert!(code != 0 && told.contains("more than 200 files and folders"), "{told}");
}

/// A gateway whose only server can't be started.
fn refused_start(home: &TestHome, options: &[&str]) -> (i32, String) {
    let ran = crate::cli::support::run_with(words(home, options, &[]), hello().as_bytes());
    (ran.code, ran.err)
}

/// The line by which a client begins.
fn hello() -> String {
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "c", "version": "1"}}});
    format!("{hello}\n")
}

/// Takes namespaces and capabilities away before it executes what follows.
const APART: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
    --bounding-set=-all --inh-caps=-all \"$@\"";

#[test]
fn without_the_view_server_over_the_home_is_refused() {
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: to take namespaces away takes root");
    }
    let home = TestHome::new();
    home.worker(AGENT);
    fs::create_dir(home.beside("work")).unwrap();
    let (beside, work) = (home.text_beside(""), home.text_beside("work"));
    // A key of another home with a second name: that home can't be told apart from other folders.
    let linked = home.text_beside("linked");
    fs::create_dir(&linked).unwrap();
    assert_eq!(run(["init", &format!("{linked}/other"), "--no-passphrase"]).code, 0);
    fs::hard_link(format!("{linked}/other/keys/approver.key"), home.beside("key")).unwrap();
    let apart = |options: &[&str], of: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(["-Ur", "sh", "-c", APART, "sh", SYSCAP]).args(words(&home, options, of));
        command.current_dir(home.folder.path()).stdin(Stdio::null());
        command
    };
    let root = format!("--root={beside}");
    for word in [beside.clone(), home.text_beside("home/keys"), root, linked] {
        let refused = Run::of(apart(&[], &[&word]).output().unwrap()).failed(2);
        assert!(refused.err.contains("--unhidden s"), "{}", refused.err);
    }
    // It is said that it can't be had, and other servers start.
    for (options, of) in [(&["--unhidden", "s"][..], &beside), (&[], &work)] {
        let mut gateway = Gateway::start(&mut apart(options, &[of]));
        assert_eq!(gateway.look("list", &json!(work)), json!([]));
        let told = gateway.end();
        let said = told.lines().filter(|line| line.contains("can't be hidden")).count();
        assert_eq!(said, usize::from(options.is_empty()), "{told}");
    }
}

#[test]
fn program_where_a_recorded_run_may_write_is_refused() {
    let Some(world) = World::new() else { return };
    let home = &world.home;
    let program = home.text_beside("work/canary");
    fs::copy(SERVER, &program).unwrap();
    let notes = home.beside("home/runs");
    fs::create_dir_all(&notes).unwrap();
    // As a run leaves them that was killed, of each version.
    let other = home.text_beside("other");
    for head in [
        format!("syscap-run 1\ncoder\n{}\ntrue\n", home.text_beside("work")),
        format!(
            "syscap-run 2\ncoder\n{other}\ntrue\nwritable {other}\nwritable {}\n",
            home.text_beside("work")
        ),
    ] {
        fs::create_dir_all(&other).unwrap();
        fs::write(notes.join("9"), head).unwrap();
        let home_path = home.path();
        let mcp = ["mcp", &home_path, "--agent", AGENT, "--name", "s"];
        let refused = run(mcp.iter().chain(&["--", &program])).failed(2);
        assert!(refused.err.contains("--forget"), "{}", refused.err);
        let work = home.text_beside("work");
        let refused = run(words(home, &["--cwd", &work], &[])).failed(2);
        assert!(refused.err.contains("--forget"), "{}", refused.err);
        // A word of a command is no program.
        gateway(home, &[], &[&work]).end();
        run(["changes", &home_path, "--forget"]);
        gateway(home, &["--cwd", &work], &[]).end();
    }
    fs::write(notes.join("9"), "syscap-run 3\n").unwrap();
    assert!(run(words(home, &[], &[])).failed(2).err.contains("not a run's notes"));
}
