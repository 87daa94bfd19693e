//! Makes the conformance vectors: `syscap-vectors`, from the repository's root.
//!
//! Each vector says what any implementation must answer. This program asks ours while it makes them,
//! and stops where ours disagrees. With `--check` it writes nothing, and fails where a file differs
//! from what it would write, or where a requirement has no vector. `--random COUNT SEED FOLDER`
//! writes so many decisions of policies and envelopes by chance, and a tenth as many logs, for
//! another implementation to be held against.

mod admission;
mod arguments;
mod case;
mod cbor;
mod channel;
mod envelopes;
mod errors;
mod forms;
mod frames;
mod image;
mod index;
mod json;
mod keys;
mod logs;
mod policies;
#[path = "../../../../policy/tests/random/mod.rs"]
#[allow(dead_code, reason = "shared with the tests of policies")]
mod random;
mod records;
mod results;
mod scopes;
mod tables;
mod tokens;
mod world;

use std::path::Path;
use std::process::ExitCode;
use std::{env, fs};

use case::Cases;

/// The files of vectors, by name.
fn files() -> Vec<(&'static str, Cases)> {
    vec![
        ("admission", admission::cases()),
        ("arguments", arguments::cases()),
        ("cbor", cbor::cases()),
        ("channel", channel::cases()),
        ("envelopes", envelopes::cases()),
        ("errors", errors::cases()),
        ("forms", forms::cases()),
        ("frames", frames::cases(Path::new("docs/spec"))),
        ("json", json::cases()),
        ("keys", keys::cases()),
        ("policies", policies::cases()),
        ("results", results::cases()),
        ("scopes", scopes::cases()),
        ("tokens", tokens::cases()),
    ]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let check = match arguments[..] {
        [] => false,
        ["--check"] => true,
        ["--random", count, seed, folder] => {
            let (count, seed) = (count.parse().expect("a count"), seed.parse().expect("a seed"));
            let folder = Path::new(folder);
            let decisions = policies::random(count, seed).text("decisions");
            fs::write(folder.join("decisions.json"), decisions).expect("writes");
            let envelopes = envelopes::random(count, seed).text("envelopes");
            fs::write(folder.join("envelopes.json"), envelopes).expect("writes");
            for (n, text) in logs::random(count / 10, seed).iter().enumerate() {
                fs::write(folder.join(format!("logs{n}.json")), text).expect("writes");
            }
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("usage: syscap-vectors [--check | --random COUNT SEED FOLDER]");
            return ExitCode::from(2);
        }
    };
    let files = files();
    let documents = index::documents(Path::new("docs/spec"));
    let vectors = Path::new("tests/conformance/vectors");
    let logs = index::in_folder(&vectors.join("logs"));
    let mut faults = index::faults(&documents, &files, &logs);
    faults.extend(index::missing_reasons(&documents));
    let mut written: Vec<_> = files
        .iter()
        .map(|(name, cases)| (vectors.join(format!("{name}.json")), cases.text(name)))
        .collect();
    written.push((vectors.join("logs/chain.json"), logs::chain()));
    let folder = Path::new("docs/spec");
    written.push((folder.join("requirements.json"), index::text(&documents)));
    written.push((vectors.join("shapes.json"), tables::text(folder)));
    for (path, text) in written {
        if check && fs::read_to_string(&path).ok().as_deref() != Some(&text) {
            faults.push(format!("{} is not what syscap-vectors makes", path.display()));
        } else if !check {
            fs::write(path, text).expect("writes");
        }
    }
    let made = files.iter().flat_map(|(_, cases)| &cases.0).map(|case| case.requirement);
    let all: Vec<&str> = made.chain(logs.iter().map(|(id, _)| &**id)).collect();
    for (document, requirements) in &documents {
        let count = all.iter().filter(|id| requirements.contains_key(**id)).count();
        println!("{document}: {} requirements, {count} vectors", requirements.len());
    }
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    if faults.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
