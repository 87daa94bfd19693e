//! syscap as a subject of the conformance suite: its verbs, as calls of the crate `syscap`.
//! `docs/conformance.md` describes them.

mod approve;
mod policy;
mod tools;

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

use serde_json::{Map, Value, json};
use syscap::format::{Name, Names, Rights, Scope, ToolGrant, ToolId, UnixMillis, json as text};
use syscap::kernel::{Clock, Reading};
use syscap::prelude::*;

/// The result of a verb: the answer's keys beside `id`.
type Said = Result<Value, Value>;

fn refused(why: impl std::fmt::Debug) -> Value {
    json!({"refused": format!("{why:?}")})
}

/// The runner's clock: it goes on with the machine's, and where it is told to.
#[derive(Clone)]
struct Moved {
    began: Instant,
    at: u64,
    wall: Arc<AtomicI64>,
    /// Since the boot: it never goes back.
    on: Arc<AtomicI64>,
}

impl Clock for Moved {
    fn read(&self) -> Reading {
        let passed = i64::try_from(self.began.elapsed().as_millis()).expect("a time");
        let plus = |base: u64, by: &AtomicI64| {
            base.saturating_add_signed(passed.saturating_add(by.load(Ordering::Acquire)))
        };
        let wall = UnixMillis::new(plus(self.at, &self.wall));
        Reading { wall, boottime_ms: plus(1_000, &self.on) }
    }
}

impl Moved {
    fn new(at: u64) -> Self {
        Self { began: Instant::now(), at, wall: Arc::default(), on: Arc::default() }
    }

    fn advance(&self, ms: i64) {
        self.wall.fetch_add(ms, Ordering::AcqRel);
        self.on.fetch_add(ms.max(0), Ordering::AcqRel);
    }
}

/// An open home.
struct World {
    runtime: Runtime,
    clock: Moved,
    sessions: Mutex<BTreeMap<(String, TokenId), Arc<Session>>>,
    home: PathBuf,
}

fn part<'a>(ask: &'a Value, key: &str) -> &'a str {
    ask[key].as_str().unwrap_or_default()
}

impl World {
    /// Makes a home, or opens the one that is there.
    fn open(ask: &Value) -> Result<Self, Value> {
        let clock = Moved::new(ask["clock"].as_u64().unwrap_or_default());
        let home = PathBuf::from(part(ask, "folder")).join("home");
        let options = || {
            let options = tools::added(Options::new(), part(ask, "server")).map_err(refused)?;
            Ok::<_, Value>(options.clock(clock.clone()))
        };
        let is_new = !home.exists();
        if is_new {
            options()?.create(&home).and_then(|made| made.close()).map_err(refused)?;
            // A base of its own, which a home does not claim: the suite's folder is for the tools' files
            // alone, and the claim would be one that no tool has written.
            let own = home.join("files");
            fs::remove_dir_all(&own)
                .and_then(|()| symlink(part(ask, "files"), own))
                .map_err(refused)?;
        }
        let runtime = options()?.open(&home).map_err(refused)?;
        let world = Self { runtime, clock, sessions: Mutex::default(), home };
        if is_new {
            let policy = policy::document(&ask["policy"]).to_string();
            let policy = world.runtime.read_policy(policy.as_bytes()).map_err(refused)?;
            world.runtime.set_policy(policy).map_err(refused)?;
            approve::install(&world.runtime, &ask["approvers"]).map_err(refused)?;
        }
        Ok(world)
    }

    fn grant(&self, ask: &Value) -> Said {
        let mut grant = Grant::to(part(ask, "agent"));
        let list = |of: &Value| -> Vec<String> {
            let names = of.as_array().cloned().unwrap_or_default();
            names.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
        };
        for (tool, scope) in ask["tools"].as_object().expect("tools") {
            let scope = list(scope);
            grant = match tool.as_str() {
                "write" => scope
                    .iter()
                    .fold(grant.tools(["fs.write"]), |grant, root| grant.path(root, Rights::WRITE)),
                "read" => scope
                    .iter()
                    .fold(grant.tools(["fs.read"]), |grant, root| grant.path(root, Rights::READ)),
                "get" => {
                    let names = scope.iter().map(|page| Name::new(page));
                    let names: Result<Vec<_>, _> = names.collect();
                    let names = Names::new(names.map_err(refused)?).map_err(refused)?;
                    let scope = ToolGrant::new().with("page", Scope::Names(names));
                    grant.tool_with(ToolId::new("get").expect("a name"), scope)
                }
                other => {
                    let tool = ToolId::new(other).ok_or_else(|| refused("no such tool"))?;
                    grant.tool_with(tool, ToolGrant::new())
                }
            };
        }
        let limits = [
            ("calls", Dimension::Calls),
            ("bytes", Dimension::DiskWriteBytes),
            ("units", Dimension::CreditsMicro),
        ];
        let budget = limits.into_iter().fold(Budget::standard(), |budget, (name, dimension)| {
            budget.with(dimension, ask["budget"][name].as_u64().unwrap_or_default())
        });
        let life = Duration::from_millis(ask["life_ms"].as_u64().unwrap_or_default());
        let depth = ask["depth"].as_u64().unwrap_or_default();
        let grant = grant.budget(budget).expires_in(life).delegable(depth);
        let token = match ask["parent"].as_str() {
            None => self.runtime.issue(grant),
            Some(parent) => {
                let parent = TokenId::from_hex(parent).ok_or_else(|| refused("no such token"))?;
                self.runtime.attenuate(parent, grant)
            }
        };
        Ok(json!({"ok": {"token": token.map_err(refused)?.to_string()}}))
    }

    fn session(&self, ask: &Value) -> Result<Arc<Session>, Value> {
        let token = TokenId::from_hex(part(ask, "token")).ok_or_else(|| refused("no token"))?;
        let mut sessions = self.sessions.lock().unwrap();
        let place = (part(ask, "agent").to_owned(), token);
        if let Some(session) = sessions.get(&place) {
            return Ok(Arc::clone(session));
        }
        let session = Arc::new(self.runtime.session(&place.0, token).map_err(refused)?);
        sessions.insert(place, Arc::clone(&session));
        Ok(session)
    }

    fn call(&self, ask: &Value) -> Said {
        let session = self.session(ask)?;
        let tool = match part(ask, "tool") {
            "write" => "fs.write",
            "read" => "fs.read",
            other => other,
        };
        let sent = ask["text"].as_str().map_or_else(|| ask["args"].to_string(), str::to_owned);
        let call = session.request(tool).json(&sent, Escapes::Data);
        let call = match ask["key"].as_str() {
            Some(key) => call.key(key),
            None => call,
        };
        let result = call.wait().map_err(refused)?;
        match result.reason() {
            None => {
                let value = text::from_data(result.delivered().item());
                Ok(json!({"ok": serde_json::from_str::<Value>(&value).expect("JSON")}))
            }
            Some(reason) => {
                let waits = result.ask().map(|ask| ask.get().to_string());
                Err(json!({"refused": reason.name(), "ask": waits}))
            }
        }
    }

    fn verb(&self, ask: &Value) -> Said {
        let done = || json!({"ok": null});
        match part(ask, "do") {
            "grant" => self.grant(ask),
            "call" => self.call(ask),
            "approve" => approve::answer(&self.runtime, ask).map(|()| done()),
            "revoke" => {
                let token = TokenId::from_hex(part(ask, "token"));
                let token = token.ok_or_else(|| refused("no such token"))?;
                self.runtime.revoke(token).map(|_| done()).map_err(refused)
            }
            "advance" => {
                self.clock.advance(ask["ms"].as_i64().unwrap_or_default());
                self.runtime.tick().map(|()| done()).map_err(refused)
            }
            "export" => {
                let mut reader = syscap::audit::SqliteReader::open(&self.home).map_err(refused)?;
                let to = PathBuf::from(part(ask, "to"));
                syscap::audit::export::export(&mut reader, &to).map(|_| done()).map_err(refused)
            }
            _ => Err(json!({"unsupported": true})),
        }
    }
}

/// The receiver of answers.
type Out = Arc<Mutex<Box<dyn Write + Send>>>;

/// Says the answer to a request.
fn say(out: &Out, ask: &Value, said: Said) {
    let mut line = Map::from_iter([("id".to_owned(), ask["id"].clone())]);
    let (Ok(Value::Object(said)) | Err(Value::Object(said))) = said else { panic!("{said:?}") };
    line.extend(said);
    let mut out = out.lock().unwrap();
    writeln!(out, "{}", Value::Object(line)).and_then(|()| out.flush()).expect("somebody reads");
}

fn start() -> Value {
    let claims = ["decide", "scope", "budget", "approve", "delegate", "record", "recover"];
    json!({"ok": {
        "implementation": "syscap", "version": env!("CARGO_PKG_VERSION"),
        "claims": claims, "pids": [std::process::id()],
    }})
}

/// Answers requests until `stop`, or until there are no more.
pub fn serve(requests: impl BufRead, answers: impl Write + Send + 'static) {
    let out: Out = Arc::new(Mutex::new(Box::new(answers)));
    let mut world: Option<Arc<World>> = None;
    for line in requests.lines() {
        let ask: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        match (part(&ask, "do"), &world) {
            ("start", _) if ask.get("folder").is_none() => say(&out, &ask, Ok(start())),
            (verb @ ("start" | "reset"), _) => {
                // The home that was open is left as it is.
                world = None;
                match World::open(&ask) {
                    Ok(opened) => {
                        world = Some(Arc::new(opened));
                        let done = if verb == "start" { start() } else { json!({"ok": null}) };
                        say(&out, &ask, Ok(done));
                    }
                    Err(why) => say(&out, &ask, Err(why)),
                }
            }
            ("stop", world) => {
                let closed = world.as_ref().map_or(Ok(()), |world| world.runtime.close());
                say(&out, &ask, closed.map(|()| json!({"ok": null})).map_err(refused));
                return;
            }
            (_, None) => say(&out, &ask, Err(refused("no home"))),
            // Calls go on beside each other; all else comes in its order.
            ("call", Some(world)) => {
                let (world, out) = (Arc::clone(world), Arc::clone(&out));
                thread::spawn(move || say(&out, &ask, world.call(&ask)));
            }
            (_, Some(world)) => say(&out, &ask, world.verb(&ask)),
        }
    }
}
