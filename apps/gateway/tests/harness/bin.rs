//! For the tests: the gateway alone, the home's server, a server that does what servers should not, and
//! a client.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

mod client;
mod odd;
mod serve;

use std::{path::PathBuf, time::Duration};

use syscap::format::{AgentId, Dimension, TokenId};
use syscap_gateway::{ClassRule, Hints, Options, Question, ServerCommand};

fn main() {
    syscap::launch::entry();
    let mut words = std::env::args().skip(1);
    match words.next().as_deref() {
        Some("odd") => odd::serve(words.collect()),
        Some("gateway") => gateway(words.collect()),
        Some("client") => client::serve(words.collect()),
        Some("serve") => serve::serve(words.collect()),
        other => panic!("odd, gateway, client or serve, not {other:?}"),
    }
}

/// `gateway HOME [key=value]..`, with a server for each `server=NAME:WORDS`.
fn gateway(words: Vec<String>) {
    let mut words = words.into_iter();
    let home = PathBuf::from(words.next().unwrap());
    let mut options = Options::new(home, AgentId::new("agent").unwrap(), Vec::new());
    // Most tests have nobody who answers.
    options.approval_wait = Duration::ZERO;
    options.starter = Some(serve::starter(&options.home));
    for word in words {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            // `wrapped`: by a shell that waits for it, as a runner of packages does.
            "server" | "wrapped" => {
                let (name, odd) = value.split_once(':').unwrap();
                let own = std::env::current_exe().unwrap().to_string_lossy().into_owned();
                let mut command = vec![own, String::from("odd")];
                command.extend(odd.split(' ').map(String::from));
                if key == "wrapped" {
                    let shell = ["/bin/sh", "-c", "\"$0\" \"$@\"; true"].map(String::from);
                    command.splice(0..0, shell);
                }
                options.servers.push(ServerCommand::new(name.to_owned(), command));
            }
            // `SERVER:NAME`, of our own environment.
            "env" => {
                let (server, name) = value.split_once(':').unwrap();
                let server = options.servers.iter_mut().find(|known| known.name == server).unwrap();
                server.env.push((name.to_owned(), std::env::var_os(name).unwrap()));
            }
            // `SERVER:WHAT`.
            "allow" => {
                let (server, what) = value.split_once(':').unwrap();
                let server = options.servers.iter_mut().find(|known| known.name == server).unwrap();
                server.asks.push(Question::named(what).unwrap());
            }
            // `SERVER:NAME`, one of the tools that are taken.
            "tool" => {
                let (server, name) = value.split_once(':').unwrap();
                let server = options.servers.iter_mut().find(|known| known.name == server).unwrap();
                server.tools.push(name.to_owned());
            }
            "agent" => options.agent = AgentId::new(value).unwrap(),
            "token" => options.token = TokenId::from_hex(value),
            "class" => options.classes.push(ClassRule::parse(value).unwrap()),
            "renew" => options.renewals = Some(value.parse().unwrap()),
            "expires" => options.expires = Duration::from_millis(value.parse().unwrap()),
            "limit" => {
                let (dimension, limit) = value.split_once(':').unwrap();
                let dimension = Dimension::from_name(dimension).unwrap();
                options.limits.push((dimension, limit.parse().unwrap()));
            }
            "hints" => options.hints = Hints::Confirmed,
            "trust" => options.trust_results = true,
            "grant" => options.grants.push(value.to_owned()),
            "prefix" => options.prefix = true,
            "builtins" => options.built_in = true,
            "timeout" => options.timeout = Some(Duration::from_millis(value.parse().unwrap())),
            "wait" => options.approval_wait = Duration::from_millis(value.parse().unwrap()),
            "bytes" => options.result_bytes = Some(value.parse().unwrap()),
            "prompts" => options.prompts = value == "yes",
            "resources" => options.resources = value == "yes",
            other => panic!("{other}?"),
        }
    }
    if let Err(error) = syscap_gateway::run(options) {
        eprintln!("{error}");
        std::process::exit(1);
    }
}
