//! Replay: a log is decided again, by the policy that it was made with and by others.

use crate::rules::world::{World, allow_all, constraint, document};
use syscap::format::{Source, VaultEntry, Verdict};
use syscap::kernel::NotAsked;
use syscap::policy::Policy;
use syscap::prelude::*;

/// A policy that asks about all that a question holds: arguments, resources, state, budget, time,
/// token and risk.
fn curious() -> String {
    let all = r#"{"op": "all", "args": []}"#;
    let text = document(&[
        constraint("every", "allow", "null", all, "block"),
        constraint(
            "budget",
            "deny",
            "null",
            r#"{"op": "lt", "args": ["budget.calls", 960]}"#,
            "defer",
        ),
        constraint(
            "folder",
            "deny",
            r#"{"tool_id": "fs.write"}"#,
            r#"{"op": "not", "args": [{"op": "within", "args": ["args.path", "workspace/in"]}]}"#,
            "block",
        ),
        constraint(
            "often",
            "deny",
            r#"{"tool_id": "fs.list"}"#,
            r#"{"op": "any", "args": [{"op": "gt", "args": ["history.calls.tool.hour", 6]},
                {"op": "eq", "args": ["history.refusals.agent.minute", 3]},
                {"op": "ge", "args": ["history.bytes.agent.day", 6]}]}"#,
            "defer",
        ),
        constraint(
            "goal",
            "deny",
            r#"{"tool_id": "mail"}"#,
            r#"{"op": "not", "args": [{"op": "eq", "args": ["goal.topic", "bees"]}]}"#,
            "ask",
        ),
        constraint(
            "hours",
            "deny",
            r#"{"tool_id": "echo"}"#,
            r#"{"op": "any", "args": [{"op": "ge", "args": ["now.hour", 20]},
                {"op": "lt", "args": ["token.left_ms", 1000]},
                {"op": "gt", "args": ["call.args_bytes", 200]},
                {"op": "gt", "args": ["call.hold.disk_write_bytes", 0]}]}"#,
            "block",
        ),
    ]);
    text.replace(r#""v": 1,"#, r#""v": 1, "params": {"risk": {"fs.list": 70}},"#)
}

/// Some of everything: what runs, what is refused, asked and deferred, and states in between.
fn history() -> World {
    let world = World::new(&curious());
    let (_, agent) = world.seat("a", ["echo", "mail", "fs.write", "fs.read", "fs.list"]);
    for round in 0..12_u64 {
        world.clock.forward(200_000);
        let path = if round % 2 == 0 { "in/a.txt" } else { "out/a.txt" };
        let write = args! { "path": path, "text": "x", "parents": true };
        drop(agent.call("fs.write", write).unwrap());
        drop(agent.call("mail", args! { "to": "a@example.com" }).unwrap());
        drop(agent.call("echo", args! { "value": "y".repeat(round as usize * 30) }).unwrap());
        drop(agent.call("fs.list", args! { "path": "." }).unwrap());
        let topic = if round % 3 == 0 { "bees" } else { "wasps" };
        drop(agent.propose(args! { "goal.topic": topic }));
        if round == 6 {
            drop(agent.propose(args! { "goal.topic": syscap::format::Canonical::null() }));
        }
    }
    drop(world.runtime.observe(&agent, Source::Encoder, &[], args! { "fact.pages": 3_u64 }));
    world
}

#[test]
fn the_policy_that_made_a_log_decides_it_again_to_the_letter() {
    let world = history();
    let before = world.records().len();
    let own = Policy::from_json(curious().as_bytes()).unwrap();
    let tally = world.inspect().replay(&own).unwrap();
    assert_eq!(tally.changed, []);
    assert_eq!(tally.not_asked, []);
    assert!(tally.same >= 40, "{}", tally.same);
    assert_eq!(world.records().len(), before, "nothing is written");
}

#[test]
fn another_policy_shows_what_it_would_have_changed() {
    let world = history();
    let all = Policy::from_json(allow_all().as_bytes()).unwrap();
    let tally = world.inspect().replay(&all).unwrap();
    let decided = tally.same + u64::try_from(tally.changed.len()).unwrap();
    assert!(!tally.changed.is_empty() && tally.same > 0);
    for changed in &tally.changed {
        assert_ne!(changed.was.verdict, Verdict::Allow);
        assert_eq!(changed.now.as_ref().unwrap().verdict, Verdict::Allow);
    }
    let was: std::collections::BTreeSet<Verdict> =
        tally.changed.iter().map(|changed| changed.was.verdict).collect();
    assert_eq!(was, [Verdict::Ask, Verdict::Defer, Verdict::Deny].into());

    let none = constraint("none", "deny", "null", r#"{"op": "all", "args": []}"#, "block");
    let none = Policy::from_json(document(&[none]).as_bytes()).unwrap();
    let refused = world.inspect().replay(&none).unwrap();
    assert_eq!(refused.same + u64::try_from(refused.changed.len()).unwrap(), decided);
    assert!(refused.changed.iter().all(|changed| changed.was.verdict != Verdict::Deny));
}

#[test]
fn erased_call_is_not_replayed() {
    let world = history();
    let first =
        world.inspect().replay(&Policy::from_json(allow_all().as_bytes()).unwrap()).unwrap();
    let erased = first.changed[0].seq;
    let database = rusqlite::Connection::open(world.home().join("home.db")).unwrap();
    let gone = i64::try_from(erased.get()).unwrap();
    let row: Vec<u8> = database
        .query_row("SELECT row FROM vault WHERE seq = ?1", [gone], |row| row.get(0))
        .unwrap();
    assert_eq!(database.execute("DELETE FROM vault WHERE seq = ?1", [gone]).unwrap(), 1);
    let own = Policy::from_json(curious().as_bytes()).unwrap();
    let tally = world.inspect().replay(&own).unwrap();
    assert_eq!(tally.changed, []);
    assert_eq!(tally.not_asked.len(), 1);
    assert_eq!((tally.not_asked[0].seq, &tally.not_asked[0].now), (erased, &Err(NotAsked::Erased)));
    // Other arguments in their place are not taken for them.
    let entry = VaultEntry::from_row(&row).unwrap();
    assert!(entry.args.is_some());
    let other = VaultEntry { args: Some(vec![0xa0]), ..entry }.to_row();
    let sql = "INSERT INTO vault (seq, row) VALUES (?1, ?2)";
    database.execute(sql, rusqlite::params![gone, other]).unwrap();
    let tally = world.inspect().replay(&own).unwrap();
    assert_eq!(tally.not_asked.len(), 1);
}

/// An erased fact is unknown: the deny that asks about it restricts, in the home as in a replay.
#[test]
fn an_erased_fact_is_unknown_after_the_home_is_opened_again() {
    let world = World::new(&curious());
    let (token, agent) = world.seat("a", ["mail"]);
    let record = agent.propose(args! { "goal.topic": "bees" }).unwrap().record;
    let mail = |agent: &Session| agent.call("mail", args! { "to": "x" }).unwrap().reason();
    assert_eq!(mail(&agent), None);
    let (home, folder) = (world.home(), world.close());
    let (runtime, _effects) = World::open(&home);
    let agent = runtime.session("a", token).unwrap();
    assert_eq!(mail(&agent), None, "the value was found again");
    runtime.close().unwrap();
    let database = rusqlite::Connection::open(home.join("home.db")).unwrap();
    let gone = i64::try_from(record.get()).unwrap();
    assert_eq!(database.execute("DELETE FROM vault WHERE seq = ?1", [gone]).unwrap(), 1);
    drop(database);
    let (runtime, effects) = World::open(&home);
    let agent = runtime.session("a", token).unwrap();
    assert_eq!(mail(&agent), Some(Reason::Asked));
    assert_eq!(effects.count(), 0);
    let states = runtime.states().unwrap();
    assert_eq!(states[0].facts, [("goal.topic".to_owned(), None)]);
    drop(folder);
}

/// A policy may be its own shadow, in either order, and the home opens again.
#[test]
fn a_policy_may_be_its_own_shadow() {
    for policy_first in [true, false] {
        let world = World::new(&allow_all());
        let (token, _) = world.seat("a", ["echo"]);
        let other = || Policy::from_json(curious().as_bytes()).unwrap();
        if policy_first {
            world.runtime.set_policy(other()).unwrap();
            world.runtime.set_shadow(other()).unwrap();
        } else {
            world.runtime.set_shadow(other()).unwrap();
            world.runtime.set_policy(other()).unwrap();
        }
        let home = world.home();
        let folder = world.close();
        let (runtime, _) = World::open(&home);
        let hashes = runtime.look(|kernel| (kernel.policy_hash(), kernel.shadow_hash())).unwrap();
        assert_eq!(hashes, (Some(other().hash()), Some(other().hash())));
        let agent = runtime.session("a", token).unwrap();
        assert_eq!(agent.call("echo", args! { "value": 1_u64 }).unwrap().reason(), None);
        runtime.clear_shadow().unwrap();
        assert_eq!(runtime.look(|kernel| kernel.shadow_hash()).unwrap(), None);
        drop(folder);
    }
}
