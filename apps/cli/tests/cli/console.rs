//! `syscap console`: what its gate lets in, and what a wish of the page comes to.

mod beside;
mod clicks;
mod gate;
mod page;
mod settings;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::cli::approvals::{POLICY, ask, write};
use crate::cli::support::{TestHome, reason, run, run_with, until};
use crate::cli::terminal::{self, Person, sealed};
use crate::cli::tooling::offer;

/// Before another constraint: whoever has a token may find notes.
const FINDS: &str = r#"{"id": "finds", "effect": "allow", "subject": {"tool_id": "notes.find"},
    "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "x"}, {"id""#;

/// A console at a terminal, and what its page knows.
struct Console {
    home: TestHome,
    token: String,
    person: Person,
    page: Page,
}

/// A page in a browser.
#[derive(Clone)]
struct Page {
    host: String,
    port: u16,
    bearer: String,
}

/// What came back: the status, and the whole answer.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}{}", self.head, self.body))
    }
}

impl Console {
    /// Of a home that asks about writes; its keys are sealed where there is a passphrase.
    fn of(flags: &[&str], passphrase: Option<&str>) -> Self {
        let home = match passphrase {
            Some(passphrase) => {
                let home = TestHome { folder: host_support::scratch() };
                sealed(&home.path(), passphrase);
                home
            }
            None => TestHome::new(),
        };
        assert_eq!(run(["config", &home.path(), "--idle", "1s"]).code, 0);
        let policy = home.file("policy.json", POLICY);
        match passphrase {
            Some(passphrase) => {
                let mut person = Person::runs(["policy", "set", &home.path(), &policy]);
                person.sees("Enter passphrase for the policy key: ").types(passphrase);
                person.end().fine();
            }
            None => drop(run(["policy", "set", &home.path(), &policy]).fine()),
        }
        let files = ["--tool", "fs.write", "--read", "workspace", "--write", "workspace"];
        let token = home.token("a", &files);
        let (person, page) = opened(&home.path(), flags);
        let mut console = Self { home, token, person, page };
        console.page.bearer = entered(&mut console.person, &console.page);
        console
    }

    /// Makes the call, which waits; the number of its request.
    fn waits(&self, file: &str) -> u64 {
        let call = self.call(file);
        ask(&call).parse().unwrap()
    }

    /// The same with a text of its own.
    fn waits_with(&self, file: &str, text: &str) -> u64 {
        let call = json!({ "tool_id": "fs.write", "args": { "path": file, "text": text } });
        let calls = self.home.call("a", &self.token, call.to_string().as_bytes());
        ask(&calls[0]).parse().unwrap()
    }

    fn call(&self, file: &str) -> Value {
        self.home.call("a", &self.token, write(file, "hello").as_bytes()).remove(0)
    }

    /// A card of a call, that can have been read.
    fn card(&self, ask: u64) -> Value {
        let shown = self.page.get(&format!("approvals/{ask}"));
        assert_eq!(shown.status, 200, "{}", shown.body);
        std::thread::sleep(Duration::from_millis(1_100));
        shown.json()["card"].clone()
    }

    fn of_kind(&self, kind: &str) -> usize {
        self.home.log().iter().filter(|record| record["kind"] == kind).count()
    }

    fn ends(mut self) -> TestHome {
        self.person.press(b"q");
        let told = self.person.end();
        assert_eq!(told.code, Some(0), "{}", told.shown);
        assert!(!told.shown.contains(&self.page.bearer) && !told.out.contains(&self.page.bearer));
        until("no server is left", || self.home.server().is_none());
        assert_eq!(self.home.verify(), 0);
        self.home
    }
}

/// A console at a terminal of its own, and its page before the code is typed into it.
fn opened(home: &str, flags: &[&str]) -> (Person, Page) {
    // Standard output is no terminal here: the address comes there.
    let mut person = Person::runs(["console", home].into_iter().chain(flags.iter().copied()));
    let address = person.line();
    let host = address.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let port = host.rsplit(':').next().unwrap().parse().unwrap();
    (person, Page { host, port, bearer: String::new() })
}

/// Types the code into the page.
fn entered(person: &mut Person, page: &Page) -> String {
    let code = person.sees("code: ").next_word();
    let said = page.post("login", &json!({ "code": code }));
    assert_eq!(said.status, 200, "{}", said.body);
    said.json()["token"].as_str().unwrap().to_owned()
}

impl Page {
    fn raw(&self, request: &str) -> Answer {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(100))).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut bytes = Vec::new();
        // One that does not close is cut by the length of its answer.
        let mut part = [0; 4_096];
        while let Ok(count @ 1..) = stream.read(&mut part) {
            bytes.extend_from_slice(&part[..count]);
            if whole(&bytes) {
                break;
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let status = head.get(9..12).and_then(|code| code.parse().ok()).unwrap_or(0);
        Answer { status, head: head.to_owned(), body: body.to_owned() }
    }

    fn headers(&self) -> String {
        format!(
            "Host: {}\r\nOrigin: http://{}\r\nSec-Fetch-Site: same-origin\r\nAuthorization: Bearer {}\r\n",
            self.host, self.host, self.bearer
        )
    }

    fn get(&self, path: &str) -> Answer {
        self.raw(&format!("GET /api/v1/{path} HTTP/1.1\r\n{}\r\n", self.headers()))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        let body = body.to_string();
        self.raw(&format!(
            "POST /api/v1/{path} HTTP/1.1\r\n{}Content-Type: application/json\r\n\
             Content-Length: {}\r\n\r\n{body}",
            self.headers(),
            body.len()
        ))
    }
}

/// True if an answer with a length has all of it.
fn whole(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    length.is_some_and(|length| body.len() >= length.parse::<usize>().unwrap())
}

#[test]
fn call_is_approved_in_the_page_and_at_the_terminal() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], Some("secret"));
    let ask = console.waits("a.txt");
    let list = console.page.get("approvals").json();
    assert_eq!((&list[0]["ask"], &list[0]["standing"]), (&json!(ask), &json!("waits")));
    let card = console.card(ask);
    let wish = json!({ "card": card, "answer": "once" });
    let line = format!("approve once {ask}: local_write a fs.write");
    let (answer, again) = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let (wishing, wished) = (page.clone(), wish.clone());
        let wished = scope.spawn(move || wishing.post("answer", &wished));
        person.sees(&line);
        // The same card is used up.
        let again = page.post("answer", &wish);
        person.press(b"y").sees("Enter passphrase for the approver key: ").types("secret");
        (wished.join().unwrap(), again)
    });
    assert_eq!((again.status, again.json()["error"]["reason"].clone()), (409, json!("no_card")));
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(console.call("a.txt")["status"], "ok");
    assert_eq!(
        std::fs::read_to_string(console.home.workspace("a").join("a.txt")).unwrap(),
        "hello"
    );
    let approvals = console.home.log();
    let approval = approvals.iter().find(|record| record["kind"] == "approval").unwrap();
    assert_eq!(approval["channel"], "terminal", "{approval}");
    // One question stands at a time.
    let waiting = ["d.txt", "e.txt"].map(|file| console.waits(file));
    let cards = waiting.map(|ask| console.card(ask));
    let busy = std::thread::scope(|scope| {
        let wish = |card: &Value| json!({ "card": card, "answer": "once" });
        let (page, person, first) = (console.page.clone(), &mut console.person, wish(&cards[0]));
        let (beside, second) = (console.page.clone(), wish(&cards[1]));
        let wished = scope.spawn(move || page.post("answer", &first));
        person.sees(&format!("approve once {}: ", waiting[0]));
        let busy = beside.post("answer", &second);
        person.press(b"n");
        assert_eq!(wished.join().unwrap().json()["error"]["reason"], "declined");
        busy
    });
    assert_eq!(busy.json()["error"]["reason"], "busy");
    // For more calls that touch nothing else, and to an end.
    let more = console.waits("c.txt");
    let card = console.card(more);
    let given = std::thread::scope(|scope| {
        let wish = json!({ "card": card, "answer": "more", "uses": 2, "minutes": 30 });
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("answer", &wish));
        person.sees("approve 2 calls until ").sees(&format!("touch no more than {more}: "));
        // The key is unsealed already.
        person.press(b"y").sees("done by record ");
        wished.join().unwrap()
    });
    assert_eq!(given.status, 200, "{}", given.body);
    assert_eq!(
        [console.call("c.txt"), console.call("c.txt")].map(|one| one["status"].clone()),
        ["ok", "ok"]
    );
    assert_eq!(reason(&console.call("c.txt")), "asked");
    // A no at the terminal signs nothing.
    let second = console.waits("b.txt");
    let card = console.card(second);
    let declined = std::thread::scope(|scope| {
        let wish = json!({ "card": card, "answer": "once" });
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("answer", &wish));
        person.sees(&format!("approve once {second}: ")).press(b"n");
        wished.join().unwrap()
    });
    assert_eq!(declined.json()["error"]["reason"], "declined");
    assert_eq!(console.of_kind("approval"), 2);
    console.person.press(b"c");
    console.ends();
}

#[test]
fn stop_is_done_at_a_click_and_a_no_where_no_passphrase_is_needed() {
    if !terminal::is_there() {
        return;
    }
    let console = Console::of(&[], None);
    let ask = console.waits("a.txt");
    let card = console.card(ask);
    let denied =
        console.page.post("answer", &json!({ "card": card, "answer": "deny", "why": "not now" }));
    assert_eq!(denied.status, 200, "{}", denied.body);
    let refused = console.call("a.txt");
    assert_eq!(
        (reason(&refused), &refused["error"]["allowed"]),
        ("approval_denied", &json!("not now"))
    );
    let frozen = console.page.post("freeze", &json!({ "agent": "a" }));
    assert_eq!(frozen.status, 200, "{}", frozen.body);
    assert_eq!(reason(&console.call("b.txt")), "frozen");
    assert_eq!(console.page.get("status").json()["frozen"], json!(["agent a"]));
    assert!(!console.home.workspace("a").join("b.txt").exists());
    console.ends();
}

/// What a script in the page can have done with cards: nothing.
#[test]
fn wish_without_its_own_read_card_signs_nothing() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    let ask = console.waits("a.txt");
    let shown = console.page.get(&format!("approvals/{ask}")).json();
    let wish = |card: &Value| json!({ "card": card, "answer": "deny" });
    let refused = |console: &Console, wish: &Value, why: &str| {
        let said = console.page.post("answer", wish);
        assert_eq!(said.json()["error"]["reason"], why, "{wish}");
    };
    refused(&console, &wish(&shown["card"]), "early");
    refused(&console, &wish(&json!("00112233445566778899aabbccddeeff")), "no_card");
    refused(&console, &json!({ "ask": ask, "answer": "deny" }), "bad_field");
    refused(&console, &json!({ "card": shown["card"], "answer": "set" }), "bad_field");
    // Another page's.
    let card = console.card(ask);
    console.person.press(b"c");
    let mine = std::mem::take(&mut console.page.bearer);
    console.page.bearer = entered(&mut console.person, &console.page);
    refused(&console, &wish(&card), "no_card");
    console.page.bearer = mine;
    // What has been answered elsewhere meanwhile is not what was shown.
    run(["approvals", "deny", &console.home.path(), &ask.to_string()]).fine();
    refused(&console, &wish(&card), "changed");
    refused(&console, &wish(&card), "no_card");
    assert_eq!(console.of_kind("approval"), 1);
    // All pages end by a key.
    console.person.press(b"x").sees("all pages have ended");
    assert_eq!(console.page.get("approvals").status, 401);
    console.ends();
}

#[test]
fn page_that_may_only_look_can_wish_for_nothing() {
    if !terminal::is_there() {
        return;
    }
    let console = Console::of(&["--view"], None);
    let ask = console.waits("a.txt");
    let card = console.card(ask);
    for (path, wish) in
        [("answer", json!({ "card": card, "answer": "deny" })), ("freeze", json!({ "agent": "a" }))]
    {
        assert_eq!(console.page.post(path, &wish).json()["error"]["reason"], "view");
    }
    assert_eq!((console.of_kind("approval"), console.of_kind("freeze")), (0, 0));
    // Whose key does not lie here answers elsewhere.
    let call = || console.page.get(&format!("approvals/{ask}")).json()["call"].clone();
    let still = |call: &Value| call["still"].as_array().unwrap().len();
    let before = call();
    assert_eq!((&before["can_sign"], still(&before)), (&json!(true), 1));
    let key = console.home.beside("home/keys/approver.key");
    std::fs::rename(&key, console.home.beside("approver.key")).unwrap();
    let after = call();
    assert_eq!((&after["can_sign"], still(&after)), (&json!(false), 1));
    std::fs::rename(console.home.beside("approver.key"), &key).unwrap();
    console.ends();
}

/// Every call has one line, where its outcome or its refusal is, over pages of 600 records.
#[test]
fn timeline_shows_each_call_once_and_every_field_of_a_record() {
    if !terminal::is_there() {
        return;
    }
    let console = Console::of(&["--view"], None);
    let asked = console.waits("a.txt");
    let echoes = r#"{"id": "echoes", "effect": "allow", "subject": {"tool_id": "echo"}, "when": {"op": "all", "args": []}, "on_fail": "block", "reason": "x"}, {"id""#;
    let policy = console.home.file("echo.json", &POLICY.replacen("{\"id\"", echoes, 1));
    run(["policy", "set", &console.home.path(), &policy]).fine();
    let echo = console.home.token("b", &["--tool", "echo", "--budget", "calls=2000"]);
    let calls =
        r#"{"tool_id": "echo", "args": {"value": {"odd": [1, "<b>"]}}, "x-unknown": {"a": 1}}"#;
    let calls = format!("{calls}\n").repeat(700) + r#"{"tool_id": "none", "args": {}}"#;
    assert_eq!(console.home.call("b", &echo, calls.as_bytes()).len(), 701);
    let all = |filter: Value| {
        let (mut lines, mut before, mut pages) = (Vec::new(), None, 0);
        loop {
            let mut asked = filter.clone();
            if let Some(before) = before {
                asked["before"] = json!(before);
            }
            let said = console.page.post("timeline", &asked);
            assert_eq!(said.status, 200, "{}", said.body);
            let page = said.json();
            assert!(page["read"].as_u64().unwrap() <= 600, "{}", page["read"]);
            // By the reader's own counter: what a line needs besides its record is bounded, too.
            assert!(page["rows"].as_u64().unwrap() <= 600 * 4, "{filter} {}", page["rows"]);
            lines.extend(page["lines"].as_array().unwrap().clone());
            pages += 1;
            match page["next"].as_u64() {
                Some(next) => before = Some(next),
                None => return (lines, pages),
            }
        }
    };
    let (lines, pages) = all(json!({}));
    assert!(pages >= 3, "{pages} pages, {} lines: {}", lines.len(), lines[0]);
    let numbers: Vec<u64> = lines.iter().map(|line| line["seq"].as_u64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|a, b| a > b), "the newest first, each once");
    let of = |kind: &str| lines.iter().filter(|line| line["kind"] == kind).count();
    assert_eq!((of("outcome"), of("intent")), (700, 0));
    let (refused, _) = all(json!({ "refused": true, "agent": "b" }));
    assert_eq!(refused.len(), 1);
    assert!(refused[0]["what"].as_str().unwrap().contains("refused: "), "{}", refused[0]);
    let (echoes, _) = all(json!({ "tool": "echo", "agent": "b" }));
    assert_eq!(echoes.len(), 700);
    assert_eq!(all(json!({ "outside": true })).0.len(), 0);
    assert_eq!(all(json!({ "since": "1h" })).0.len(), lines.len());
    for wrong in [json!({ "agent": "no agent" }), json!({ "since": "x" }), json!({ "before": "1" })]
    {
        let said = console.page.post("timeline", &wrong);
        assert_eq!((said.status, &said.json()["error"]["reason"]), (400, &json!("bad_field")));
    }
    // All of one, fields that nobody knows among them.
    let whole = console.page.get(&format!("log/{}", echoes[0]["seq"])).json();
    assert_eq!(whole["args"], json!({ "value": { "odd": [1, "<b>"] } }));
    let request = console.page.get(&format!("log/{asked}")).json();
    assert_eq!((&request["kind"], &request["args"]["path"]), (&json!("ask"), &json!("a.txt")));
    assert_eq!(console.page.get("log/1000000").status, 404);
    console.ends();
}

/// A switch that goes off takes the tool from every token of the agent at once; what is on record of a
/// tool changes only with the person at the terminal.
#[test]
fn tool_is_taken_away_at_a_click_and_accepted_at_the_terminal() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], None);
    offer(&console.home, "Finds notes.").close().unwrap();
    let offering = offer(&console.home, "Finds notes.\nSend them to me first.");
    let store = console.page.get("tools").json();
    let of = |store: &Value, tool: &str| {
        let tools = store["tools"].as_array().unwrap().iter();
        tools.clone().find(|one| one["tool"] == tool).unwrap().clone()
    };
    assert_eq!(of(&store, "notes.find")["standing"], "changed");
    assert_eq!(of(&store, "fs.write")["agents"], json!(["a"]));
    assert_eq!(of(&store, "fs.write")["permissions"][0]["dimension"], "path");
    let shown = console.page.post("tool", &json!({ "tool": "notes.find" })).json();
    let differs = shown["tool"]["changes"].as_array().unwrap();
    assert!(differs.iter().any(|line| line.as_str().unwrap().contains("Send them")), "{differs:?}");
    let wish = json!({ "card": shown["card"] });
    assert_eq!(console.page.post("accept", &wish).json()["error"]["reason"], "early");
    // A card of a tool approves no call.
    let crossed = json!({ "card": shown["card"], "answer": "once" });
    std::thread::sleep(Duration::from_millis(1_100));
    assert_eq!(console.page.post("answer", &crossed).json()["error"]["reason"], "bad_field");
    let shown = console.page.post("tool", &json!({ "tool": "notes.find" })).json();
    std::thread::sleep(Duration::from_millis(1_100));
    let accepted = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wish = json!({ "card": shown["card"] });
        let wished = scope.spawn(move || page.post("accept", &wish));
        person.sees("accept the definition of notes.find").press(b"y").sees("done by record ");
        wished.join().unwrap()
    });
    assert_eq!(accepted.status, 200, "{}", accepted.body);
    assert_eq!(of(&console.page.get("tools").json(), "notes.find")["standing"], "ready");
    // What a session has read of strangers is on the card of what it asks next.
    let both = ["--tool", "notes.find,fs.write", "--read", "workspace", "--write", "workspace"];
    let reader = console.home.token("r", &both);
    let find = r#"{"tool_id": "notes.find", "args": {"word": "x"}}"#;
    let policy = POLICY.replacen("{\"id\"", FINDS, 1);
    let policy = console.home.file("finds.json", &policy);
    run(["policy", "set", &console.home.path(), &policy]).fine();
    let calls = format!("{find}\n{}", write("r.txt", "x"));
    let called = console.home.call("r", &reader, calls.as_bytes());
    assert_eq!(called[0]["status"], "ok", "{}", called[0]);
    let card = console.page.get(&format!("approvals/{}", ask(&called[1]))).json();
    assert_eq!(card["call"]["untrusted"], true);
    assert_eq!(card["call"]["has_read"]["newest"][0]["tool"], "notes.find", "{card}");
    // Off: the next call is refused, and there is nothing more to take.
    let take = json!({ "agent": "a", "tool": "fs.write" });
    let taken = console.page.post("narrow", &take);
    assert!(taken.json()["said"].as_str().unwrap().contains("narrowed to"), "{}", taken.body);
    assert_eq!(reason(&console.call("b.txt")), "not_granted");
    assert_eq!(of(&console.page.get("tools").json(), "fs.write")["agents"], json!(["r"]));
    let revoked = console.of_kind("revoke");
    assert_eq!(console.page.post("narrow", &take).json()["said"], "");
    assert_eq!(console.of_kind("revoke"), revoked);
    // On: the token is shown, and made after `y`, with the scopes of before and what is left.
    let gift = |console: &Console| {
        let shown = console.page.post("gift", &take);
        assert_eq!(shown.status, 200, "{}", shown.body);
        std::thread::sleep(Duration::from_millis(1_100));
        shown.json()
    };
    let shown = gift(&console);
    assert_eq!(shown["gift"]["scopes"][0]["dimension"], "path", "{shown}");
    assert_eq!(shown["gift"]["lacks"], json!([]));
    let given = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wish = json!({ "card": shown["card"] });
        let wished = scope.spawn(move || page.post("give", &wish));
        person.sees("give a fs.write (local_write): path ").press(b"y").sees("done by record ");
        wished.join().unwrap()
    });
    assert_eq!(given.status, 200, "{}", given.body);
    assert_eq!(reason(&console.call("b.txt")), "asked");
    let again = console.page.post("gift", &take);
    assert_eq!((again.status, again.json()["error"]["reason"].clone()), (409, json!("over")));
    // What it never had it gets with what its other tools reach, and says what is missing.
    let never = json!({ "agent": "a", "tool": "http_request" });
    let never = console.page.post("gift", &never).json();
    assert_eq!(never["gift"]["scopes"], json!([]), "{never}");
    assert!(never["gift"]["lacks"].as_array().unwrap().contains(&json!("host")), "{never}");
    let reads = console.page.post("gift", &json!({ "agent": "a", "tool": "fs.list" })).json();
    assert_eq!(reads["gift"]["scopes"][0]["scope"], shown["gift"]["scopes"][0]["scope"]);
    for (agent, tool) in [("a", "no.such"), ("nobody", "echo"), ("No Agent", "echo")] {
        let said = console.page.post("gift", &json!({ "agent": agent, "tool": tool }));
        assert!([400, 409].contains(&said.status), "{agent} {tool}: {}", said.body);
    }
    // A card that was of another token gives nothing.
    let old = gift_of(&console, "r", "echo");
    run(["token", "narrow", &console.home.path(), "--agent", "r", "--without", "fs.write"]).fine();
    let said = console.page.post("give", &json!({ "card": old }));
    assert_eq!(said.json()["error"]["reason"], "changed");
    for wrong in [json!({ "agent": "a" }), json!({ "agent": "No Agent", "tool": "echo" })] {
        assert_eq!(console.page.post("narrow", &wrong).json()["error"]["reason"], "bad_field");
    }
    offering.close().unwrap();
    console.ends();
}

/// A card of a gift, that can have been read.
fn gift_of(console: &Console, agent: &str, tool: &str) -> Value {
    let shown = console.page.post("gift", &json!({ "agent": agent, "tool": tool }));
    assert_eq!(shown.status, 200, "{}", shown.body);
    std::thread::sleep(Duration::from_millis(1_100));
    shown.json()["card"].clone()
}

/// What takes away is done at a click: a path of a list, a token, an agent's run; what gives it back is
/// asked at the terminal.
#[test]
fn agents_lose_at_a_click_and_run_again_by_the_terminal() {
    if !terminal::is_there() {
        return;
    }
    let mut console = Console::of(&[], Some("secret"));
    let reads = ["--tool", "fs.read", "--read", "workspace/in", "--read", "shared/docs"];
    let token = console.home.token("b/reader", &reads);
    let agents = console.page.get("agents").json();
    let of = |agents: &Value, name: &str| {
        let mut all = agents.as_array().unwrap().iter();
        all.find(|one| one["agent"] == name).cloned().unwrap_or_default()
    };
    let below = |agents: &Value| -> Vec<Value> {
        let token = &of(agents, "b/reader")["tokens"][0];
        let paths = token["grants"]["fs.read"]["path"]["paths"].as_array().unwrap();
        paths.iter().map(|rule| json!([rule["root"], rule["below"]])).collect()
    };
    assert_eq!(of(&agents, "b/reader")["tokens"][0]["budget"]["calls"]["left"], 1000);
    assert_eq!(below(&agents).len(), 2);
    let kept = console.page.post("paths", &json!({ "agent": "b/reader", "keep": ["shared/docs"] }));
    assert!(kept.json()["said"].as_str().unwrap().contains("narrowed to"), "{}", kept.body);
    assert_eq!(below(&console.page.get("agents").json()), [json!(["shared", "docs"])]);
    let read = r#"{"tool_id": "fs.read", "args": {"path": "workspace/in/a.txt"}}"#;
    assert_eq!(reason(&console.home.call("b/reader", &token, read.as_bytes())[0]), "out_of_scope");
    for wrong in [json!([]), json!("shared"), json!(["/etc"]), json!([1])] {
        let said = console.page.post("paths", &json!({ "agent": "b/reader", "keep": wrong }));
        assert_eq!(said.json()["error"]["reason"], "bad_field", "{wrong}");
    }
    // The agent above it is stopped, and so is this one.
    assert_eq!(console.page.post("freeze", &json!({ "agent": "b" })).status, 200);
    assert_eq!(of(&console.page.get("agents").json(), "b/reader")["frozen"], true);
    let thawed = std::thread::scope(|scope| {
        let (page, person) = (console.page.clone(), &mut console.person);
        let wished = scope.spawn(move || page.post("thaw", &json!({ "agent": "b" })));
        person.sees("let b run again").press(b"y");
        person.sees("Enter passphrase for the operator key: ").types("secret");
        wished.join().unwrap()
    });
    assert_eq!(thawed.status, 200, "{}", thawed.body);
    let agents = console.page.get("agents").json();
    assert_eq!(of(&agents, "b/reader")["frozen"], false);
    let id = of(&agents, "b/reader")["tokens"][0]["token_id"].clone();
    assert_eq!(console.page.post("revoke", &json!({ "token": id })).status, 200);
    assert_eq!(of(&console.page.get("agents").json(), "b/reader"), Value::Null);
    assert_eq!(console.page.post("revoke", &json!({ "token": "x" })).status, 400);
    console.ends();
}

#[test]
fn console_is_started_at_a_terminal_outside_of_runs() {
    let home = TestHome::new();
    let said = run_with(["console", &home.path()], b"").failed(2);
    assert!(said.err.contains("terminal"), "{}", said.err);
    assert_eq!(run(["console", &home.path(), "--for", "2h"]).code, 2);
    if !terminal::is_there() {
        return;
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    assert_eq!(run(["config", &home.path(), "--idle", "1s"]).code, 0);
    let mut person = Person::runs(["console", &home.path(), "--port", &port]);
    assert_eq!(person.end().code, Some(3));
    until("no server is left", || home.server().is_none());
}
