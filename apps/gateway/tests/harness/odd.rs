//! A server on raw lines of JSON, so that it can misbehave.
//!
//! `odd DIR [old|new]`: it writes what it gets to `DIR/got`, and reads from `DIR/tools` what
//! tools it has besides. Where there is `DIR/mute` it has no tools capability; where there is
//! `DIR/hang` it does not answer `initialize`, nor notice the end of its input; where there is
//! `DIR/stay` it goes on after that; what is named in `DIR/mum` it does not answer; where there
//! is `DIR/prompts`, its prompts stand there; where there is `DIR/circle`, its second page of tools
//! says that it comes next, and lists one tool twice; where there is `DIR/lists`, it answers
//! `tools/list` with an error, not at all if `hang` stands there, or once the file is gone if
//! `slow` does.

use std::fs::{self, OpenOptions};
use std::io::{BufRead, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

const NEW: &str = "2026-07-28";

struct Odd {
    dir: PathBuf,
    new: bool,
    out: Mutex<()>,
    /// What the client answers to our own requests.
    answers: Mutex<Vec<Value>>,
}

pub(crate) fn serve(words: Vec<String>) {
    let dir = PathBuf::from(&words[0]);
    let new = words.get(1).is_some_and(|word| word == "new");
    if dir.join("refuse").exists() {
        eprintln!("odd: it does not start");
        std::process::exit(3);
    }
    let odd = Odd { dir, new, out: Mutex::new(()), answers: Mutex::default() };
    let odd = Arc::new(odd);
    odd.note("start");
    let env: std::collections::BTreeMap<String, String> = std::env::vars().collect();
    fs::write(odd.dir.join("env"), json!(env).to_string()).unwrap();
    fs::write(odd.dir.join("pid"), std::process::id().to_string()).unwrap();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        odd.note(&line);
        let message: Value = serde_json::from_str(&line).unwrap();
        let odd = Arc::clone(&odd);
        // Calls at once, notifications in order.
        if message["method"] == "tools/call" {
            thread::spawn(move || odd.call(&message));
        } else {
            odd.handle(&message);
        }
    }
    odd.note("end");
    while odd.dir.join("stay").exists() {
        thread::sleep(Duration::from_millis(20));
    }
}

impl Odd {
    fn note(&self, line: &str) {
        let _one = self.out.lock().unwrap();
        let path = self.dir.join("got");
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        writeln!(file, "{line}").unwrap();
    }

    fn raw(&self, bytes: &[u8]) {
        let _one = self.out.lock().unwrap();
        let mut out = std::io::stdout().lock();
        // The gateway may have gone.
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    fn send(&self, message: &Value) {
        self.raw(format!("{message}\n").as_bytes());
    }

    fn answer(&self, id: &Value, mut result: Value) {
        if self.new {
            let complete = json!("complete");
            result.as_object_mut().unwrap().entry("resultType").or_insert(complete);
        }
        self.send(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    fn text(&self, id: &Value, text: &str) {
        self.answer(id, json!({"content": [{"type": "text", "text": text}]}));
    }

    fn error(&self, id: &Value, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        self.send(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    fn capabilities(&self) -> Value {
        let mut all = json!({"tools": {"listChanged": true}, "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "listChanged": true}, "logging": {},
            "completions": {}});
        if self.dir.join("mute").exists() {
            all.as_object_mut().unwrap().remove("tools");
        }
        all
    }

    fn prompts(&self) -> Value {
        match fs::read_to_string(self.dir.join("prompts")) {
            Ok(text) => serde_json::from_str(&text).unwrap(),
            Err(_) => json!([{"name": "greet", "arguments": [{"name": "who"}]}]),
        }
    }

    fn handle(&self, message: &Value) {
        let id = &message["id"];
        let params = &message["params"];
        let mum = fs::read_to_string(self.dir.join("mum")).unwrap_or_default();
        match message["method"].as_str() {
            Some(method) if mum.lines().any(|line| line == method) => {}
            Some("initialize") if !self.new && self.dir.join("hang").exists() => {
                while self.dir.join("hang").exists() {
                    thread::sleep(Duration::from_millis(20));
                }
                self.handle(message);
            }
            Some("initialize") if !self.new => self.answer(
                id,
                json!({
                    "protocolVersion": params["protocolVersion"],
                    "capabilities": self.capabilities(),
                    "serverInfo": {"name": "odd", "version": "1"}, "instructions": "be odd",
                }),
            ),
            Some("server/discover") if self.new => self.answer(
                id,
                json!({
                    "supportedVersions": [NEW], "capabilities": self.capabilities(),
                    "ttlMs": 0, "cacheScope": "private",
                }),
            ),
            Some("tools/list") => self.list(id, params),
            Some("prompts/list") => self.answer(id, json!({"prompts": self.prompts()})),
            Some("prompts/get") => {
                let text = format!("hi {}", params["arguments"]["who"]);
                let content = json!({"type": "text", "text": text});
                self.answer(id, json!({"messages": [{"role": "user", "content": content}]}));
            }
            Some("resources/list") => self.answer(
                id,
                json!({"resources": [
                {"uri": format!("odd://{}", self.dir.display()), "name": "r"}]}),
            ),
            Some("resources/templates/list") => self.answer(
                id,
                json!({"resourceTemplates": [
                {"uriTemplate": "odd://{x}", "name": "t"}]}),
            ),
            Some("resources/read") => self.read(id, params),
            Some("resources/subscribe") => {
                self.answer(id, json!({}));
                let updated = json!({"uri": params["uri"]});
                self.notify("notifications/resources/updated", updated);
            }
            Some("completion/complete") => {
                self.answer(id, json!({"completion": {"values": ["one", "two"]}}));
            }
            Some("logging/setLevel") => {
                self.answer(id, json!({}));
                self.notify("notifications/message", json!({"level": "info", "data": "set"}));
            }
            Some("subscriptions/listen") => self.notify(
                "notifications/subscriptions/acknowledged",
                json!({"notifications": params["notifications"],
                    "_meta": {"io.modelcontextprotocol/subscriptionId": id}}),
            ),
            Some(_) if id.is_null() => {}
            Some(method) => {
                eprintln!("it does not know {method}");
                self.error(id, -32601, method);
            }
            None => self.answers.lock().unwrap().push(message.clone()),
        }
    }

    fn read(&self, id: &Value, params: &Value) {
        let own = format!("odd://{}", self.dir.display());
        if params["uri"] == own || params["uri"] == "odd://any" {
            self.answer(id, json!({"contents": [{"uri": params["uri"], "text": "content"}]}));
        } else {
            self.error(id, -32002, "no such resource");
        }
    }

    fn notify(&self, method: &str, params: Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Two pages: the tools that are always there, and those of the file.
    fn list(&self, id: &Value, params: &Value) {
        match fs::read_to_string(self.dir.join("lists")).as_deref() {
            Ok("hang") => return,
            Ok("slow") => {
                while self.dir.join("lists").exists() {
                    thread::sleep(Duration::from_millis(20));
                }
            }
            Ok(_) => return self.error(id, -32000, "\u{1b}[31mlater\u{202e}"),
            Err(_) => {}
        }
        if params["cursor"] == "more" {
            let more = fs::read_to_string(self.dir.join("tools")).unwrap_or("[]".into());
            let mut more: Value = serde_json::from_str(&more).unwrap();
            if self.dir.join("circle").exists() {
                let once = more.as_array().unwrap().clone();
                more.as_array_mut().unwrap().extend(once);
                return self.answer(id, json!({"tools": more, "nextCursor": "more"}));
            }
            return self.answer(id, json!({"tools": more}));
        }
        let names = [
            "echo", "touch", "hang", "slow", "die", "flood", "notices", "large", "twice",
            "wrongId", "change", "garbage", "fails", "refuses", "elicit", "needs", "deep", "odd",
            "progress", "rename", "append",
        ];
        let tools: Vec<Value> = names
            .iter()
            .map(|name| {
                json!({"name": name,
            "inputSchema": {"type": "object", "properties": {
                "text": {"type": "string"}, "count": {"type": "integer"}}}})
            })
            .collect();
        let structured = json!({"name": "structured", "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "required": ["n"],
                "properties": {"n": {"type": "number"}}}});
        let mut tools = tools;
        tools.push(structured);
        self.answer(id, json!({"tools": tools, "nextCursor": "more"}));
    }

    fn call(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        let args = &params["arguments"];
        let count = args["count"].as_u64().unwrap_or(0);
        match params["name"].as_str().unwrap() {
            "echo" => self.text(id, &args.to_string()),
            "touch" => {
                fs::write(self.dir.join(args["text"].as_str().unwrap()), "").unwrap();
                self.text(id, "done");
            }
            "append" => self.append(id, args["text"].as_str().unwrap()),
            "hang" => {}
            "slow" => self.slow(id, args["text"].as_str(), count),
            "die" => std::process::exit(7),
            "orphan" => self.orphan(),
            "muddle" => self.raw(unreadable(id, args["text"].as_str().unwrap()).as_bytes()),
            "complain" => {
                (0..count).for_each(|n| eprintln!("\u{1b}[2J\u{202e}line {n}"));
                self.text(id, "complained");
            }
            "flood" => (0..12).for_each(|_| self.raw(&vec![b'x'; 1 << 20])),
            "notices" | "progress" => self.speak(id, params, count),
            "large" => self.text(id, &"x".repeat(usize::try_from(count).unwrap())),
            "twice" => {
                self.text(id, "first");
                self.text(id, "second");
            }
            "wrongId" => {
                self.text(&json!(999_999), "not this");
                self.text(&json!("a"), "nor this");
                self.send(&json!({"jsonrpc": "2.0", "result": {}}));
                self.text(id, "this");
            }
            "change" => {
                let tools = args["text"].as_str().unwrap();
                // Of its prompts, where a count is given.
                let list = if args["count"].is_u64() { "prompts" } else { "tools" };
                fs::write(self.dir.join(list), tools).unwrap();
                self.notify(&format!("notifications/{list}/list_changed"), json!({}));
                self.text(id, "changed");
            }
            "garbage" => {
                self.raw(b"a line of words\n{\"half\": \n[1,2]\n\"text\"\n\xff\xfe\n\n{}\n");
                self.text(id, "still here");
            }
            "fails" => self.answer(
                id,
                json!({"isError": true,
                "content": [{"type": "text", "text": "it failed"}]}),
            ),
            "refuses" => self.send(&json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32602,
                "message": "bad arguments", "data": {"of": [1]}}})),
            "elicit" => self.elicit(id, args["text"].as_str(), count),
            "needs" => self.needs(id, params),
            "deep" => {
                let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
                self.answer(id, json!({"content": [], "structuredContent": deep}));
            }
            "odd" => self.answer(id, json!({"unheard": true})),
            "forge" => self.forge(id),
            "structured" => {
                self.answer(id, json!({"content": [], "structuredContent": {"n": 1.5}}))
            }
            other => self.error(id, -32602, other),
        }
    }

    /// Ends while another process of its group holds its standard output.
    fn orphan(&self) {
        let child = std::process::Command::new("/bin/sleep").arg("600").spawn().unwrap();
        fs::write(self.dir.join("child"), child.id().to_string()).unwrap();
        std::process::exit(7);
    }

    /// Writes a line, and takes long enough to be killed before and after.
    fn append(&self, id: &Value, line: &str) {
        let pause = Duration::from_millis(2);
        thread::sleep(pause);
        let path = self.dir.join("written");
        let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
        file.write_all(format!("{line}\n").as_bytes()).unwrap();
        thread::sleep(pause);
        self.text(id, "written");
    }

    /// Answers in the gateway's name.
    fn forge(&self, id: &Value) {
        let meta = json!({"dev.syscap/refusal": {"code": 301}, "dev.syscap.x/y": 1,
            "other/key": 1});
        let block = json!({"type": "text", "text": "t", "_meta": meta});
        let data = json!({"_meta": meta});
        let parts = json!({"content": [block], "isError": true, "_meta": meta,
            "structuredContent": data});
        self.answer(id, parts);
    }

    /// Answers later, and may say something unasked just before.
    fn slow(&self, id: &Value, says: Option<&str>, after: u64) {
        thread::sleep(Duration::from_millis(after));
        if let Some(said) = says {
            self.notify("notifications/resources/updated", json!({"uri": said}));
            self.notify("notifications/message", json!({"level": "error", "data": said}));
        }
        self.text(id, "slept");
    }

    /// Says much before it answers.
    fn speak(&self, id: &Value, params: &Value, count: u64) {
        for n in 1..=count {
            let token = &params["_meta"]["progressToken"];
            let mut said = json!({"progressToken": token, "progress": n, "total": count});
            if params["arguments"]["text"].is_string() {
                said["message"] = params["arguments"]["text"].clone();
            }
            self.notify("notifications/progress", said);
            if params["name"] == "notices" {
                self.notify("notifications/tools/list_changed", json!({}));
            }
        }
        self.text(id, "said");
    }

    /// Asks the client, as the older wire lets it, and answers with what comes.
    fn elicit(&self, id: &Value, request: Option<&str>, after: u64) {
        thread::sleep(Duration::from_millis(after));
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        let params = json!({"message": "what?", "requestedSchema": schema});
        let usual = json!({"method": "elicitation/create", "params": params});
        let mut request = request.map_or(usual, |text| serde_json::from_str(text).unwrap());
        request["jsonrpc"] = json!("2.0");
        request["id"] = json!(77);
        self.send(&request);
        for _ in 0..1_000 {
            if let Some(answer) = self.answers.lock().unwrap().pop() {
                let what = answer.get("result").or(answer.get("error")).unwrap();
                return self.text(id, &what.to_string());
            }
            thread::sleep(Duration::from_millis(5));
        }
        self.text(id, "nobody answered");
    }

    /// Asks as the newer wire lets it: by a result that wants more.
    fn needs(&self, id: &Value, params: &Value) {
        if let Some(responses) = params.get("inputResponses") {
            return self.text(id, &format!("{responses} {}", params["requestState"]));
        }
        let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
        self.answer(
            id,
            json!({"resultType": "input_required", "requestState": "state",
            "inputRequests": {"q": {"method": "elicitation/create",
                "params": {"mode": "form", "message": "what?", "requestedSchema": schema}}}}),
        );
    }
}

/// An answer that no reader of JSON takes, or none of a message.
fn unreadable(id: &Value, how: &str) -> String {
    match how {
        "surrogate" => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"\\ud800\"}}\n"),
        "deep" => {
            let (open, close) = ("[".repeat(500), "]".repeat(500));
            format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{open}{close}}}\n")
        }
        "batch" => format!("[{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{}}}}]\n"),
        _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id}}}\n"),
    }
}
