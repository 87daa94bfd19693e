//! A subject that is an MCP server: a gateway, behind which the runner's own server stands. The
//! runner is its client, and the person whom it asks.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use crate::http::Url;
use crate::run::Means;
use crate::subject::{Fault, Line, Subject, harness};

/// The revision of the protocol that the client speaks.
pub(crate) const REVISION: &str = "2025-06-18";
/// How long nothing must happen where nothing may.
const QUIET: Duration = Duration::from_millis(250);

/// Questions that a person is asked in one check, at most.
const SHOWN_MAX: usize = 64;

/// The answer of the person who is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    Yes,
    No,
    /// Closes the window.
    Cancel,
    /// Sends the form off without the tick.
    Unticked,
    Nothing,
}

/// The place of one check, and a running subject.
pub(crate) struct Client<'m> {
    pub(crate) means: &'m Means,
    url: Option<&'m Url>,
    /// The gateway's, and that of the server behind it.
    home: PathBuf,
    upstream: PathBuf,
    /// The length of the calls written before, in bytes.
    before: u64,
    subject: Option<Subject>,
    /// The name of a tool of the server behind, as the subject lists it.
    names: BTreeMap<String, String>,
    next: u64,
    /// The texts that the person was shown.
    pub(crate) shown: Vec<String>,
}

impl<'m> Client<'m> {
    pub(crate) fn new(
        means: &'m Means,
        url: Option<&'m Url>,
        folder: &Path,
    ) -> Result<Self, Fault> {
        let home = folder.join("home");
        let upstream = match means.is_elsewhere() {
            true => means.upstream.clone(),
            false => folder.join("upstream"),
        };
        for place in [&home, &upstream] {
            fs::create_dir_all(place).map_err(harness("the check's folder"))?;
        }
        let before = fs::metadata(upstream.join("calls")).map_or(0, |calls| calls.len());
        let (names, shown) = (BTreeMap::new(), Vec::new());
        Ok(Self { means, url, home, upstream, before, subject: None, names, next: 0, shown })
    }

    /// Starts the subject. The command finds the server behind it in its environment, and a
    /// folder of its own.
    pub(crate) fn spawn(&mut self) -> Result<(), Fault> {
        let program = std::env::current_exe().map_err(harness("this program"))?;
        let place = |path: &Path| path.to_string_lossy().into_owned();
        let mut server = vec![place(&program)];
        server.extend(self.means.own.iter().cloned());
        server.push(place(&self.upstream));
        let words = self.means.command.iter().flat_map(|word| match word.as_str() {
            "{upstream}" => server.clone(),
            word => vec![word.to_owned()],
        });
        let command = words.collect();
        let environment =
            [("CONFORMANCE_FOLDER", place(&self.home)), ("CONFORMANCE_UPSTREAM", server.join(" "))];
        let means = Means { command, ..self.means.clone() };
        self.subject = Some(Subject::spawn_mcp(&means, self.url, &environment)?);
        Ok(())
    }

    /// Starts it, agrees on a version, and learns the tools' names.
    pub(crate) fn connect(&mut self) -> Result<(), Fault> {
        self.spawn()?;
        let hello = json!({
            "protocolVersion": REVISION, "capabilities": {"elicitation": {}},
            "clientInfo": {"name": "syscap-conformance", "version": env!("CARGO_PKG_VERSION")},
        });
        let id = self.request("initialize", hello)?;
        let hello = self.answer(id, Says::Nothing, self.means.timeout)?.ok_or(Fault::Hung)?;
        if hello.get("result").is_none() {
            return Err(Fault::Form(format!("`initialize` was answered by {hello}")));
        }
        self.line(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string())?;
        let id = self.request("tools/list", json!({}))?;
        let listed = self.answer(id, Says::Nothing, self.means.timeout)?.unwrap_or_default();
        let tools = listed.pointer("/result/tools").and_then(Value::as_array).cloned();
        for name in tools.unwrap_or_default().iter().filter_map(|tool| tool.get("name")?.as_str()) {
            for own in ["add_note", "slow"] {
                // A gateway may put the server's name before that of a tool.
                if name.ends_with(own) {
                    self.names.insert(own.to_owned(), name.to_owned());
                }
            }
        }
        Ok(())
    }

    /// The name by which a tool of the server behind is called; as it is where it is not listed.
    pub(crate) fn name(&self, tool: &str) -> String {
        self.names.get(tool).cloned().unwrap_or_else(|| {
            // As the listed ones are called.
            let before = self.names.get("add_note").and_then(|name| name.strip_suffix("add_note"));
            format!("{}{tool}", before.unwrap_or_default())
        })
    }

    pub(crate) fn line(&mut self, line: &str) -> Result<(), Fault> {
        self.subject.as_mut().ok_or(Fault::Died)?.write(line)
    }

    pub(crate) fn request(&mut self, method: &str, params: Value) -> Result<u64, Fault> {
        self.next = self.next.saturating_add(1);
        let request =
            json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.line(&request.to_string())?;
        Ok(self.next)
    }

    /// Waits for an answer, and speaks for the person meanwhile. `None` where none came in time.
    pub(crate) fn answer(
        &mut self,
        id: u64,
        says: Says,
        patience: Duration,
    ) -> Result<Option<Value>, Fault> {
        let deadline = Instant::now().checked_add(patience);
        loop {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
            let subject = self.subject.as_mut().ok_or(Fault::Died)?;
            let line = match subject.next_line(left.unwrap_or_default())? {
                Line::Is(line) => line,
                Line::Late => return Ok(None),
            };
            let method = line.get("method").and_then(Value::as_str).map(str::to_owned);
            let asker = line.get("id").cloned();
            match (method, asker) {
                (None, Some(of)) if of == id => return Ok(Some(line)),
                (Some(method), Some(of)) => self.asked(&method, of, &line, says)?,
                _ => {}
            }
        }
    }

    /// Answers a request of the subject to its client.
    fn asked(&mut self, method: &str, id: Value, line: &Value, says: Says) -> Result<(), Fault> {
        if method != "elicitation/create" {
            let result = json!({"jsonrpc": "2.0", "id": id, "result": {}});
            return self.line(&result.to_string());
        }
        let params = line.get("params").cloned().unwrap_or_default();
        let message = params.get("message").and_then(Value::as_str).unwrap_or_default();
        if self.shown.len() >= SHOWN_MAX {
            return Err(Fault::Flooded);
        }
        self.shown.push(message.to_owned());
        let result = match says {
            Says::Nothing => return Ok(()),
            Says::No => json!({"action": "decline"}),
            Says::Cancel => json!({"action": "cancel"}),
            Says::Yes => json!({"action": "accept", "content": filled(&params, true)}),
            Says::Unticked => json!({"action": "accept", "content": filled(&params, false)}),
        };
        self.line(&json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    }

    /// Calls a tool. A gateway may let a call wait instead of asking: then there is no answer.
    pub(crate) fn call(
        &mut self,
        tool: &str,
        args: Value,
        says: Says,
    ) -> Result<Option<Value>, Fault> {
        let params = json!({"name": self.name(tool), "arguments": args});
        let id = self.request("tools/call", params)?;
        let patience = if says == Says::Yes { self.means.timeout } else { QUIET };
        self.answer(id, says, patience)
    }

    /// The calls that have reached the server behind, after some quiet.
    pub(crate) fn reached(&self) -> Result<Vec<Value>, Fault> {
        thread::sleep(QUIET);
        let mut calls = String::new();
        match File::open(self.upstream.join("calls")) {
            // The server has not been started.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            opened => opened.and_then(|mut file| {
                file.seek(SeekFrom::Start(self.before))?;
                file.read_to_string(&mut calls)
            }),
        }
        .map_err(harness("the calls"))?;
        let call =
            |line| serde_json::from_str(line).map_err(|error| harness("a call")(error.into()));
        calls.lines().map(call).collect()
    }

    /// Waits for the first call that reaches it: whether one did.
    pub(crate) fn wait(&self) -> bool {
        let deadline = Instant::now().checked_add(self.means.timeout);
        let path = self.upstream.join("calls");
        loop {
            if fs::metadata(&path).is_ok_and(|found| found.len() > self.before) {
                return true;
            }
            if deadline.is_none_or(|at| Instant::now() > at) {
                return false;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Another definition of the tools, from the server's next start on.
    pub(crate) fn define(&self, number: &str) -> Result<(), Fault> {
        fs::write(self.upstream.join("definition"), number).map_err(harness("the definition"))
    }

    pub(crate) fn hold(&self, holds: bool) -> Result<(), Fault> {
        let path = self.upstream.join("held");
        let done = match (holds, path.exists()) {
            (true, _) => fs::write(path, ""),
            (false, true) => fs::remove_file(path),
            (false, false) => Ok(()),
        };
        done.map_err(harness("the held call"))
    }

    /// `SIGKILL` to the subject and all that it has started.
    pub(crate) fn kill(&mut self) -> Result<(), Fault> {
        self.names.clear();
        self.subject.take().map_or(Ok(()), |mut subject| subject.kill())
    }
}

/// The form as a person fills it in who agrees, or who leaves every box unticked.
fn filled(params: &Value, agrees: bool) -> Value {
    let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
    let fill = |(name, schema): (&String, &Value)| {
        let choices = schema.get("enum").and_then(Value::as_array).cloned().unwrap_or_default();
        let kind = schema.get("type").and_then(Value::as_str).unwrap_or("string");
        let words = if agrees {
            ["yes", "approve", "allow", "once"]
        } else {
            ["no", "den", "reject", "decline"]
        };
        let of_choice = choices.iter().find(|choice| {
            let text = choice.as_str().unwrap_or_default().to_lowercase();
            words.iter().any(|word| text.contains(word))
        });
        let value = match (kind, of_choice) {
            ("boolean", _) => json!(agrees),
            (_, Some(choice)) => choice.clone(),
            (_, None) => json!(if agrees { "yes" } else { "no" }),
        };
        (name.clone(), value)
    };
    let filled: Option<Map<String, Value>> = properties.map(|all| all.iter().map(fill).collect());
    Value::Object(filled.unwrap_or_default())
}
