//! Homes whose policy has no document, or whose engine this program does not have.

use std::path::Path;

use serde_json::json;
use syscap::Options;
use syscap::format::{Decision, EngineIdentity, Verdict};
use syscap::kernel::{PolicyEngine, Question};
use syscap::policy::WithinToken;
use tempfile::TempDir;

use crate::cli::support::{Run, run};

/// An engine that the command line does not have.
struct Other;

impl PolicyEngine for Other {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("other"), version: 7 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa1, 0x61, b'k', 0x01]
    }

    fn decide(&self, _: &Question<'_>) -> Decision {
        Decision::plain(Verdict::Deny)
    }
}

fn home(engine: impl PolicyEngine + Sync + 'static) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    Options::new().policy(engine).create(&home).unwrap().close().unwrap();
    let path = home.to_str().unwrap().to_owned();
    (folder, path)
}

fn doctor(home: &str) -> Run {
    assert!(Path::new(home).is_dir());
    run(["doctor", home, "--json"])
}

const CALL: &str = r#"{"call.tool":"echo","call.effect":"pure","call.agent":"a"}"#;

#[test]
fn within_token_is_said_plainly() {
    let (_folder, path) = home(WithinToken);
    let text = run(["policy", "show", &path]).fine().out;
    assert!(text.starts_with("engine within-token 1: no document"), "{text}");
    let shown = run(["policy", "show", &path, "--json"]).fine().one();
    assert_eq!(shown["engine"], "within-token");
    assert_eq!(shown["document"], json!({}));
    assert_eq!(run(["policy", "hash", &path]).fine().out.trim(), shown["hash"]);
    // Without a document there is nothing to analyse.
    run(["policy", "explain", &path, "--given", CALL]).failed(1);
    run(["policy", "diff", &path, "preset:standard"]).failed(1);
    run(["policy", "diff", &path, &path]).fine();
    run(["policy", "who-can", &path, "echo"]).failed(1);
    run(["policy", "replay", &path, "--against", &path]).fine();
    let run = doctor(&path).fine();
    let policy = run.json().into_iter().find(|finding| finding["what"] == "policy").unwrap();
    assert!(policy["says"].as_str().unwrap().starts_with("engine within-token 1"));
}

#[test]
fn an_engine_that_is_not_known_is_named() {
    let (_folder, path) = home(Other);
    let hash = run(["policy", "hash", &path]).fine().out;
    let line = run(["policy", "show", &path]).failed(1).err;
    assert!(line.contains("other 7"), "{line}");
    let shown = run(["policy", "show", &path, "--json"]).fine().one();
    assert_eq!((&shown["hash"], &shown["engine"]), (&json!(hash.trim()), &json!("other")));
    assert_eq!(shown["document"], json!({"k": 1}));
    run(["policy", "explain", &path, "--given", CALL]).failed(1);
    run(["policy", "replay", &path, "--against", &path]).failed(1);
    let sick = doctor(&path);
    let policy = sick.json().into_iter().find(|finding| finding["what"] == "policy").unwrap();
    assert_eq!((sick.code, &policy["level"]), (1, &json!("bad")));
    // One that is known can be put in its place.
    run(["policy", "set", &path, "preset:coder"]).fine();
    doctor(&path).fine();
}
