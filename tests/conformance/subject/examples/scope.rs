//! An adapter in a hundred lines: syscap as a subject that claims `scope`, and nothing else.
//! `cargo run -p syscap-conformance -- -- target/debug/syscap-scope-subject`

use std::fs;
use std::io::{BufRead as _, Read as _, Write as _, stdin, stdout};
use std::net::TcpStream;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use syscap::format::{EffectClass, Scope, ScopeType, ToolGrant, ToolId, json as text};
use syscap::host::{Failure, HostTool};
use syscap::policy::WithinToken;
use syscap::prelude::*;

fn part<'a>(ask: &'a Value, key: &str) -> &'a str {
    ask[key].as_str().unwrap_or_default()
}

/// Asks the runner's server for a page.
fn page(server: &str, page: &str) -> Result<String, Failure> {
    let rest = server.trim_start_matches("http://");
    let (host, base) = rest.split_once('/').unwrap_or((rest, ""));
    let mut stream = TcpStream::connect(host)?;
    write!(stream, "GET /{base}/{page} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A home whose files are the runner's; each token decides by itself.
fn open(ask: &Value) -> Result<Runtime, Error> {
    let options = || {
        let server = part(ask, "server").to_owned();
        let get = HostTool::new("get", EffectClass::ExternalWrite)?
            .text("page", "Which page.")
            .argument("page", ScopeType::Names)
            .run(move |call| page(&server, call.text("page")?));
        Ok::<_, Error>(Options::new().tool(get)?.policy(WithinToken))
    };
    let home = format!("{}/home", part(ask, "folder"));
    options()?.create(&home)?.close()?;
    // A home claims no base of its own; a claim would be a file that no tool has written.
    let own = format!("{home}/files");
    let linked = fs::remove_dir_all(&own).and_then(|()| symlink(part(ask, "files"), own));
    linked.map_err(|_| Error::NotStarted)?;
    options()?.open(home)
}

fn grant(rt: &Runtime, ask: &Value) -> Result<Value, Error> {
    let mut grant = Grant::to(part(ask, "agent"));
    for (tool, scope) in ask["tools"].as_object().into_iter().flatten() {
        let names = scope.as_array().into_iter().flatten().filter_map(Value::as_str);
        grant = match tool.as_str() {
            "write" => names.fold(grant.tools(["fs.write"]), |grant, root| grant.write(root)),
            "read" => names.fold(grant.tools(["fs.read"]), |grant, root| grant.read(root)),
            other => {
                let pages = ToolGrant::new().with("page", Scope::names(names)?);
                grant.tool_with(ToolId::new(other).ok_or(Error::NotStarted)?, pages)
            }
        };
    }
    Ok(json!({"token": rt.issue(grant)?.to_string()}))
}

fn call(rt: &Runtime, ask: &Value) -> Result<Value, Error> {
    let token = TokenId::from_hex(part(ask, "token")).ok_or(Error::NotStarted)?;
    let session = rt.session(part(ask, "agent"), token)?;
    let tool = match part(ask, "tool") {
        "write" => "fs.write",
        "read" => "fs.read",
        other => other,
    };
    let args = ask["text"].as_str().map_or_else(|| ask["args"].to_string(), str::to_owned);
    let result = session.request(tool).json(&args, Escapes::Data).wait()?;
    let value = text::from_data(result.value()?);
    Ok(serde_json::from_str(&value).unwrap_or_default())
}

fn main() {
    let mut rt = None;
    for line in stdin().lock().lines().map_while(Result::ok) {
        let ask: Value = serde_json::from_str(&line).expect("JSON");
        let said = match (part(&ask, "do"), &rt) {
            ("start", _) => Ok(json!({
                "implementation": "syscap", "version": env!("CARGO_PKG_VERSION"),
                "claims": ["scope"], "pids": [std::process::id()],
            })),
            ("reset", _) => open(&ask).map(|opened| {
                rt = Some(opened);
                Value::Null
            }),
            ("grant", Some(rt)) => grant(rt, &ask),
            ("call", Some(rt)) => call(rt, &ask),
            ("stop", Some(rt)) => rt.close().map(|()| Value::Null),
            _ => {
                println!("{}", json!({"id": ask["id"], "unsupported": true}));
                continue;
            }
        };
        let said = match said {
            Ok(value) => json!({"id": ask["id"], "ok": value}),
            Err(why) => json!({"id": ask["id"], "refused": why.to_string()}),
        };
        writeln!(stdout(), "{said}").expect("somebody reads");
    }
}
