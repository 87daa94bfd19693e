//! Scripts of a token that says what scripts may do: the server reads none, so each is unknown.

use syscap::{
    host::DOES_DIMENSION,
    policy::{Policy, Preset},
    prelude::*,
};

use super::{Scope, grant, script, text, world, world_under};

fn held(does: &[&str]) -> Grant {
    let programs = ["cat", "echo", "eval", "head", "rm", "sh", "touch"];
    let grant = grant().scope("program", Scope::names(programs).unwrap());
    grant.scope(DOES_DIMENSION, Scope::names(does).unwrap())
}

#[test]
fn script_is_unknown_where_its_token_says_what_scripts_do() {
    let world = world();
    let others = ["automation", "hides", "irreversible", "network", "project_code"];
    let session = world.session(held(&others));
    for what in ["echo a > made", "rm -r ./src", "eval 'echo a'", "frobnicate"] {
        let refused = script(&session, what);
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{what}");
        assert!(refused.to_json().contains("does_unknown"), "{what}: {}", refused.to_json());
    }
    let session = world.session(held(&["unknown"]));
    assert_eq!(text(&script(&session, "echo a > made && cat made | head -1"), "stdout"), "a\n");
    // A grant without the dimension asks for nothing.
    let session = world.session(grant());
    assert_eq!(text(&script(&session, "eval 'echo b'"), "stdout"), "b\n");
    assert_eq!(text(&script(&session, "cp made other && cat other"), "stdout"), "a\n");
}

/// What the token lets through the policy still judges.
#[test]
fn policy_asks_about_an_unknown_script() {
    let document = Preset::Coder.document().replace("\"workspace/.", "\"elsewhere/.");
    let world = world_under(Some(Policy::from_json(document.as_bytes()).unwrap()));
    let session = world.session(held(&["unknown"]));
    assert_eq!(script(&session, "eval 'echo a'").reason(), Some(Reason::Asked));
    assert_eq!(script(&session, "rm -r ./src").reason(), Some(Reason::Asked));
}

/// A reader of commands allocated without end on this text, and the server died of it.
#[test]
fn script_that_exhausts_a_reader_leaves_the_server_up() {
    let world = world();
    let session = world.session(held(&["project_code"]));
    let refused = script(&session, "rm -rf lib; sh -c '\"\"<<$[  '");
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    assert_eq!(text(&script(&world.session(grant()), "echo b"), "stdout"), "b\n");
}
