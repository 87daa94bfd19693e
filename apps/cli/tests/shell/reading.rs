//! Scripts of a token that says what scripts may do: none is read, so each is unknown.

use syscap::host::DOES_DIMENSION;
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;

use super::{Scope, grant, script, text, world, world_under};

fn held(does: &[&str]) -> Grant {
    let programs = ["cat", "echo", "eval", "head", "rm", "sh", "touch"];
    let grant = grant().scope("program", Scope::names(programs).unwrap());
    grant.scope(DOES_DIMENSION, Scope::names(does).unwrap())
}

#[test]
fn a_token_says_of_scripts_that_they_are_unknown() {
    let world = world();
    let others = ["automation", "hides", "irreversible", "network", "project_code"];
    for does in [&others[..], &["unknown", "network"]] {
        let Err(Error::Refused(why)) = world.rt.issue(held(does)) else { panic!("{does:?}") };
        assert_eq!(why.reason(), Reason::BadScope);
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
