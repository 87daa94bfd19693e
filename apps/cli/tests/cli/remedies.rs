//! Every command that a refusal prints, run as it is printed, grants no more than before.

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;
use syscap::format::{Budget, Dimension, Grants, Reason, Seq, TokenBody, TokenId, ToolId};
use syscap::prelude::*;
use syscap::remedy::Remedy;

use crate::cli::support::{Run, TestHome, reason, run};

const READ: &str = r#"{"tool_id": "fs.read", "args": {"path": "workspace/a.txt"}}"#;

/// What a token holds.
#[derive(Debug, PartialEq, Eq)]
struct Held {
    grants: Grants,
    budget: Budget,
    life_ms: u64,
}

impl Held {
    fn leq(&self, other: &Self) -> bool {
        self.grants.leq(&other.grants)
            && self.budget.leq(&other.budget)
            && self.life_ms <= other.life_ms
    }
}

/// What each token of a home holds, the oldest first.
fn granted(home: &TestHome) -> Vec<(TokenId, Held)> {
    let log = Options::new().inspect(home.beside("home")).unwrap();
    let tokens = log.kernel().tokens();
    let held = tokens.map(|token| {
        let TokenBody { grants, budget, expires, not_before, .. } = token.body;
        let (grants, life_ms) = (grants.clone(), expires.since(*not_before));
        (token.id, Held { grants, budget: *budget, life_ms })
    });
    held.collect()
}

/// What is in force beside tokens: a policy and tools.
fn in_force(home: &TestHome) -> (Option<[u8; 32]>, Option<[u8; 32]>) {
    let log = Options::new().inspect(home.beside("home")).unwrap();
    let kernel = log.kernel();
    let policy = kernel.policy_hash().map(|hash| *hash.as_bytes());
    (policy, kernel.tools_hash().map(|hash| *hash.as_bytes()))
}

/// Runs a command as a person pastes it.
fn pasted(command: &str) -> Run {
    let program = Path::new(env!("CARGO_BIN_EXE_syscap")).parent().unwrap();
    let path = format!("{}:/usr/bin:/bin", program.display());
    let mut shell = Command::new("sh");
    shell.args(["-c", command]).env("PATH", path).stdin(Stdio::null());
    Run::of(shell.output().unwrap())
}

/// Runs a command, and says which tokens there are since; nothing else may have changed.
fn issued(home: &TestHome, command: &str) -> (Run, Vec<Held>) {
    let (before, force) = (granted(home), in_force(home));
    let ran = pasted(command);
    assert_eq!(in_force(home), force, "{command}");
    let mut after = granted(home);
    let new = after.split_off(before.len());
    assert_eq!(after, before, "{command}");
    (ran, new.into_iter().map(|(_, held)| held).collect())
}

/// A home whose agent may read one root, with a call that was refused, one that waits and one that
/// ran: the token, the approval request and the intent.
fn used() -> (TestHome, TokenId, Seq, Seq) {
    let (home, token) = crate::cli::approvals::asking();
    let write = crate::cli::approvals::write("a.txt", "x");
    let asked = crate::cli::approvals::ask(&home.call("a", &token, write.as_bytes())[0]);
    run(["approvals", "approve", &home.path(), &asked]).fine();
    assert_eq!(home.call("a", &token, write.as_bytes())[0]["status"], "ok");
    let waits = crate::cli::approvals::write("b.txt", "x");
    let asked = crate::cli::approvals::ask(&home.call("a", &token, waits.as_bytes())[0]);
    let log = home.log();
    let intent = log.iter().find(|line| line["kind"] == "intent").unwrap();
    let intent = intent["seq"].as_u64().unwrap();
    let token = granted(&home).iter().map(|(id, _)| *id).find(|id| id.to_string() == token);
    (home, token.unwrap(), Seq::new(asked.parse().unwrap()), Seq::new(intent))
}

/// All that a remedy can be made of, for each reason.
fn remedies<'a>(
    reason: Reason,
    tool: &'a ToolId,
    token: TokenId,
    (ask, intent): (Seq, Seq),
) -> Vec<Remedy<'a>> {
    let plain =
        Remedy { reason, tool: Some(tool), token: Some(token), got: None, ask: None, intent: None };
    let with = |got| Remedy { got: Some(got), ..plain };
    vec![
        plain,
        with("read, write shared/a b.txt"),
        with("write all below shared/x"),
        with("read shared/c"),
        with("read machine/etc/shadow"),
        with("curl"),
        Remedy { ask: Some(ask), ..plain },
        Remedy { intent: Some(intent), ..plain },
    ]
}

#[test]
fn printed_command_grants_no_more_than_before() {
    let (home, token, ask, intent) = used();
    let held = granted(&home).into_iter().find(|(id, _)| *id == token).unwrap().1;
    let tool = ToolId::new("fs.delete").unwrap();
    assert!(held.grants.get(&tool).is_none());
    let mut commands = Vec::new();
    for reason in Reason::ALL {
        for remedy in remedies(*reason, &tool, token, (ask, intent)) {
            commands.extend(remedy.command(&home.beside("home")));
        }
    }
    commands.sort();
    commands.dedup();
    let mut widening = 0;
    for command in &commands {
        let (ran, new) = issued(&home, command);
        for new in &new {
            assert!(new.leq(&held), "{command}: {new:?}");
        }
        let Some(grants_more) = command.strip_suffix(" --dry-run") else { continue };
        widening += 1;
        // It shows what is to be granted, and its last word is all that keeps it from that.
        assert!(new.is_empty() && ran.out.starts_with("+ "), "{command}: {}{}", ran.out, ran.err);
        let (ran, new) = issued(&home, grants_more);
        assert_eq!((ran.code, new.len()), (0, 1), "{grants_more}: {}", ran.err);
        assert!(held.leq(&new[0]) && !new[0].leq(&held), "{grants_more}");
    }
    assert!(commands.len() >= 10 && widening >= 3, "{commands:?}");
    assert_eq!(home.verify(), 0);
}

/// The same as `log show` prints it of a call that was refused.
#[test]
fn command_of_a_refused_call_grants_no_more_than_before() {
    let home = TestHome::new();
    let token = home.token("a", &["--tool", "fs.read", "--read", "shared"]);
    let held = granted(&home).remove(0).1;
    let delete = r#"{"tool_id": "fs.delete", "args": {"path": "shared/a.txt"}}"#;
    for (call, why) in [(READ, "out_of_scope"), (delete, "not_granted")] {
        let answer = home.call("a", &token, call.as_bytes()).remove(0);
        assert_eq!(reason(&answer), why);
        let record = record(&answer);
        let shown = run(["log", "show", &home.path(), &record]).fine().out;
        let line = shown.lines().find_map(|line| line.strip_prefix("goes on by"));
        let command = line.expect("a command").trim();
        let (ran, new) = issued(&home, command);
        assert_eq!((ran.code, new.len()), (0, 0), "{command}");
        let grants_more = command.strip_suffix(" --dry-run").expect("it would grant more");
        let (ran, new) = issued(&home, grants_more);
        assert_eq!((ran.code, new.len()), (0, 1), "{grants_more}");
        assert!(held.leq(&new[0]) && !new[0].leq(&held), "{grants_more}");
    }
}

/// Limits and life are shown too, and a token like the old one is no more.
#[test]
fn dry_run_of_more_limits_and_life_shows_them_and_issues_nothing() {
    let home = TestHome::new();
    let token = home.token("a", &["--tool", "fs.read", "--expires", "1h"]);
    let base = format!("syscap token reissue {} {token}", home.path());
    let calls = granted(&home)[0].1.budget.amounts().get(Dimension::Calls);
    let shown = |more: &str| {
        let (ran, new) = issued(&home, &format!("{base} {more} --dry-run"));
        assert_eq!((ran.code, new.len()), (0, 0), "{more}: {}", ran.err);
        ran.out
    };
    assert_eq!(shown(""), "");
    assert_eq!(shown(&format!("--budget calls={calls} --expires 30m")), "");
    let more = calls.checked_add(1).unwrap();
    let out = shown(&format!("--budget calls={more} --expires 2h"));
    assert_eq!(out, format!("+ calls={more}\n+ life: 7200 s\n"));
}

fn record(answer: &Value) -> String {
    let receipt = &answer["receipt"];
    receipt["outcome_seq"].as_u64().expect("a record").to_string()
}
