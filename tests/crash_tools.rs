//! kill -9 in the middle of what tools write: nothing is half done, what was answered is there, and
//! no more is spent than there was. (What the log says of each is in `tests/crash.rs`.)

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use std::{fs, thread};

use host_support::{ample, by_cap_std, new_home, verdict};
use serde_json::{Value, json};
use syscap::format::{Item, Scope, TokenId};
use syscap::prelude::*;
use syscap::verify::Soundness;

const HOME: &str = "SYSCAP_KILLED_HOME";
const ROUND: &str = "SYSCAP_KILLED_ROUND";
const TOOLS: [&str; 6] =
    ["fs.write", "fs.move", "vecdb.upsert", "vecdb.query", "memory.write", "memory.read"];
/// What the second token gives: each of its calls makes a file.
const FILES: u64 = 24;

fn big() -> Budget {
    ample()
}

/// The two tokens of the home: all tools without end, and a few files.
fn tokens(rt: &Runtime) -> [TokenId; 2] {
    let mut all: Vec<(bool, TokenId)> = rt
        .look(|kernel| {
            kernel
                .tokens()
                .map(|token| (token.left.get(Dimension::Calls) > FILES, token.id))
                .collect()
        })
        .unwrap();
    all.sort_by_key(|(is_big, _)| !is_big);
    [all[0].1, all[1].1]
}

fn call(session: &Session, tool: &str, args: &Value) -> ToolResult {
    session.request(tool).json(&args.to_string(), Escapes::Data).wait().unwrap()
}

/// One letter, many times: a part of it, or two of it mixed, shows.
fn letters(n: u64, count: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(n % 26).unwrap());
    letter.to_string().repeat(count)
}

/// Not a test: the process that is killed. Each thread calls one tool, over and over, and says what
/// was answered.
#[test]
fn child() {
    let (Ok(home), Ok(round)) = (std::env::var(HOME), std::env::var(ROUND)) else { return };
    let round: u64 = round.parse().unwrap();
    let rt = Runtime::open(&home).unwrap();
    let [all, few] = tokens(&rt);
    let (agent, saver) = (rt.session("a", all).unwrap(), rt.session("a", few).unwrap());
    let say = |line: &str| {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{line}").unwrap();
        out.flush().unwrap();
    };
    say("ready");
    let fine = |tool, args: &Value| assert_eq!(call(&agent, tool, args).reason(), None, "{tool}");
    thread::scope(|scope| {
        scope.spawn(|| {
            for n in round.. {
                fine("fs.write", &json!({ "path": "whole", "text": letters(n, 200_000) }));
            }
        });
        scope.spawn(|| {
            for n in 0_u64.. {
                let (here, there) = if n % 2 == 0 { ("here", "there") } else { ("there", "here") };
                // The first may find that the last process got there.
                let moved = call(&agent, "fs.move", &json!({ "from": here, "to": there }));
                assert!(moved.reason().is_none_or(|why| why == Reason::NotFound && n == 0));
            }
        });
        scope.spawn(|| {
            for n in 0_u64.. {
                let id = format!("{round}-{n}");
                let embedding = vec![1 + n % 7; 64];
                let item = json!({ "id": &id, "embedding": embedding, "metadata": { "id": &id } });
                fine("vecdb.upsert", &json!({ "items": [item] }));
                say(&format!("kept {id}"));
            }
        });
        scope.spawn(|| {
            for n in round.. {
                fine("memory.write", &json!({ "key": "k", "value": letters(n, 30_000) }));
            }
        });
        scope.spawn(|| {
            for n in 0_u64.. {
                let path = format!("few/{round}-{n}");
                let made = call(&saver, "fs.write", &json!({ "path": path, "text": "x" }));
                if made.reason().is_some() {
                    break;
                }
                say(&format!("made {path}"));
            }
        });
    });
}

/// Runs the child until it has answered a little, kills it, and gives what it said.
fn kill_one(home: &Path, round: u64) -> Vec<String> {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "crash_tools::child", "--nocapture"])
        .env(HOME, home)
        .env(ROUND, round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = |line: &std::io::Result<String>| line.as_ref().unwrap().ends_with("ready");
    assert!(lines.any(|line| is_ready(&line)), "it did not begin");
    let mut said: Vec<String> =
        lines.by_ref().take(usize::try_from(round % 3).unwrap()).map(Result::unwrap).collect();
    thread::sleep(Duration::from_micros(round * 7_919 % 20_000));
    child.kill().unwrap();
    child.wait().unwrap();
    // A line that the kill cut short has no end, and no word too many.
    said.extend(lines.map_while(Result::ok));
    said
}

fn is_whole(text: &str, count: usize) -> bool {
    text.len() == count && text.bytes().all(|byte| Some(byte) == text.bytes().next())
}

/// That nothing is half done, once the home is open again.
fn look(home: &Path, session: &Session, kept: &[String]) {
    let folder = home.join("files/agents/a/workspace");
    let whole = fs::read_to_string(folder.join("whole")).unwrap();
    assert!(is_whole(&whole, 200_000), "{} bytes", whole.len());
    let at = ["here", "there"].map(|name| fs::read_to_string(folder.join(name)).ok());
    assert_eq!(at.iter().flatten().collect::<Vec<_>>(), ["moved"], "in one of two places");
    let read = call(session, "memory.read", &json!({ "key": "k" }));
    let value = read.value().unwrap().get("value").and_then(Item::as_text).unwrap();
    assert!(is_whole(value, 30_000), "{} bytes", value.len());
    for id in kept {
        let args = json!({ "embedding": vec![1; 64], "k": 2, "filters": { "id": id } });
        let found = call(session, "vecdb.query", &args);
        let hits: Value = serde_json::from_str(&found.to_json()).unwrap();
        assert_eq!(hits["hits"].as_array().map(Vec::len), Some(1), "{id}: {hits}");
    }
    for folder in [folder, home.join("files/agents/a/memory"), home.join("files/agents/.vectors")] {
        for entry in fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(!name.starts_with(".syscap-"), "{name} was left");
        }
    }
}

#[test]
fn kill_minus_nine_leaves_nothing_half_done() {
    let rounds: u64 = if std::env::var_os("SYSCAP_LONG").is_some() { 400 } else { 30 };
    let (_dir, home) = new_home();
    let rt = Runtime::create(&home).unwrap();
    let grant = Grant::to("a").tools(TOOLS).workspace().budget(big());
    let grant = grant.scope("collection", Scope::names(["docs"]).unwrap());
    let token = rt.issue(grant).unwrap();
    let few = Grant::to("a").tools(["fs.write"]).workspace();
    rt.issue(few.budget(big().with(Dimension::Calls, FILES))).unwrap();
    let agent = rt.session("a", token).unwrap();
    for (path, text) in [("whole", letters(0, 200_000)), ("here", "moved".to_owned())] {
        call(&agent, "fs.write", &json!({ "path": path, "text": text })).value().unwrap();
    }
    call(&agent, "memory.write", &json!({ "key": "k", "value": letters(0, 30_000) }));
    let first = json!([{ "id": "first", "embedding": vec![1; 64] }]);
    call(&agent, "vecdb.upsert", &json!({ "items": first })).value().unwrap();
    let folder = home.join("files/agents/a/workspace/few");
    fs::create_dir(&folder).unwrap();
    drop(agent);
    rt.close().unwrap();
    let (mut kept, mut made) = (0, 0);
    for round in 0..rounds {
        let said = kill_one(&home, round);
        let word = |name: &str| -> Vec<String> {
            let words = said.iter().filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
            words.map(str::to_owned).collect()
        };
        let (vectors, files) = (word("kept"), word("made"));
        let rt = Runtime::open(&home).unwrap();
        let session = rt.session("a", token).unwrap();
        look(&home, &session, &vectors);
        for path in &files {
            assert!(home.join("files/agents/a/workspace").join(path).exists(), "{path} is lost");
        }
        (kept, made) = (kept + vectors.len(), made + files.len());
        let there = fs::read_dir(&folder).unwrap().count();
        assert!(u64::try_from(there).unwrap() <= FILES, "{there} files for {FILES} calls");
        drop(session);
        rt.close().unwrap();
    }
    assert_eq!(verdict(&home), Soundness::Sound);
    println!("{rounds} kills: {kept} vectors and {made} files were answered, and are there");
    assert!(kept > 10 && made > 0, "the kills came too early");
}

/// All of it once more where files are opened by `cap-std`.
#[test]
fn by_cap_std_without_openat2() {
    if std::env::var_os(HOME).is_none() {
        by_cap_std("crash_tools::");
    }
}
