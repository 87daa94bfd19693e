//! Scripts that are read before they run, since their token says what scripts may do.

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
fn a_script_does_no_more_than_its_token_says() {
    let world = world();
    let session = world.session(held(&["project_code"]));
    let ran = script(&session, "echo a > made && cat made | head -1");
    assert_eq!(text(&ran, "stdout"), "a\n");
    for (what, dimension) in [
        ("cp made other", "does_run"),
        ("rm -r ./src", "does_irreversible"),
        ("eval 'echo a'", "does_unknown"),
        ("frobnicate", "does_unknown"),
        ("echo a > .git/hooks/pre-commit", "does_hides"),
        ("echo a > .github/x", "does_automation"),
    ] {
        let refused = script(&session, what);
        assert_eq!(refused.reason(), Some(Reason::OutOfScope), "{what}");
        assert!(refused.to_json().contains(dimension), "{what}: {}", refused.to_json());
    }
    // Of a grant that says nothing of it nothing is read.
    let session = world.session(grant());
    assert_eq!(text(&script(&session, "eval 'echo b'"), "stdout"), "b\n");
    assert_eq!(text(&script(&session, "cp made other && cat other"), "stdout"), "a\n");
}

/// What the token lets through the policy still judges.
#[test]
fn a_policy_judges_what_a_script_does() {
    let document = Preset::Coder.document().replace("\"workspace/.", "\"elsewhere/.");
    let world = world_under(Some(Policy::from_json(document.as_bytes()).unwrap()));
    let all = ["automation", "hides", "irreversible", "project_code", "unknown"];
    let session = world.session(held(&all));
    assert_eq!(script(&session, "eval 'echo a'").reason(), Some(Reason::Constraint));
    assert_eq!(script(&session, "rm -r ./src").reason(), Some(Reason::Asked));
}
