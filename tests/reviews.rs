//! What hostile reviews found, each mended once and for all.

use crate::rules::world::{World, allow_all, constraint, document};
use syscap::Error;
use syscap::policy::{LoadFault, Policy};
use syscap::prelude::*;

fn every_call() -> String {
    constraint("every-call", "allow", "null", r#"{"op": "all", "args": []}"#, "block")
}

/// What a call did with less is not told as if it were whole, also not to who asks again when the
/// policy asks for nothing any more.
#[test]
fn a_repeat_is_told_what_was_taken_away_from_the_first_call() {
    let all = r#"{"op": "all", "args": []}"#;
    let cut = r#""obligations": [{"type": "budget_cut", "dimension": "egress_bytes", "max": 1}],
        "reason""#;
    let capped = constraint("cut", "allow", "null", all, "block").replace("\"reason\"", cut);
    let world = World::new(&document(&[capped]));
    let (_, agent) = world.seat("a", ["mail"]);
    let call =
        || agent.request("mail").args(args! { "to": "a@example.com" }).key("k").wait().unwrap();
    let first = call();
    assert_eq!((first.reason(), first.degraded().len()), (None, 1));
    world.runtime.set_policy(Policy::from_json(allow_all().as_bytes()).unwrap()).unwrap();
    let again = call();
    assert_eq!(again.degraded(), first.degraded());
    assert_eq!(world.effects.count(), 1);
}

/// A deny that names an alias would say nothing of the tool: no way leads past the check.
#[test]
fn a_policy_that_names_a_tool_by_an_alias_is_taken_nowhere() {
    let deny = constraint(
        "no",
        "deny",
        r#"{"tool_id": "fs_write"}"#,
        r#"{"op": "all", "args": []}"#,
        "block",
    );
    let text = document(&[every_call(), deny]);
    let aliased = || Policy::from_json(text.as_bytes()).unwrap();
    let world = World::new(&allow_all());
    let before = world.runtime.look(|kernel| (kernel.policy_hash(), kernel.shadow_hash())).unwrap();
    for refused in [world.runtime.set_policy(aliased()), world.runtime.set_shadow(aliased())] {
        let Err(Error::Refused(refused)) = refused else { panic!("{refused:?}") };
        assert_eq!(refused.reason(), Reason::BadPolicy);
        assert_eq!(world.last_refusal().reason, Reason::BadPolicy);
    }
    let Err(Error::Policy(error)) = world.runtime.read_policy(text.as_bytes()) else { panic!() };
    assert_eq!(error.fault, LoadFault::Alias);
    let after = world.runtime.look(|kernel| (kernel.policy_hash(), kernel.shadow_hash())).unwrap();
    assert_eq!(after, before);
    let folder = tempfile::tempdir().unwrap();
    let made = Options::new().policy(aliased()).create(folder.path().join("home"));
    assert!(matches!(made.err(), Some(Error::Refused(r)) if r.reason() == Reason::BadPolicy));
}

/// What the vault could not give back is not taken: else a fact would be known until a restart.
#[test]
fn a_fact_that_nests_too_deep_is_refused_and_its_neighbour_stays_out_too() {
    let world = World::new(&allow_all());
    let (_, agent) = world.seat("a", ["echo"]);
    let nested = format!("{}1{}", "[".repeat(63), "]".repeat(63));
    let deep = syscap::format::json::to_cbor(nested.as_bytes()).unwrap();
    agent.propose(args! { "goal.deep": deep.clone() }).unwrap();
    let deeper = syscap::format::json::to_cbor(format!("[{nested}]").as_bytes()).unwrap();
    let refused = agent.propose(args! { "goal.deeper": deeper, "goal.ok": true });
    let Err(Error::Refused(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.reason(), Reason::TooDeep);
    let home = world.home();
    let folder = world.close();
    let (runtime, _) = World::open(&home);
    let states = runtime.states().unwrap();
    assert_eq!(states[0].facts, [("goal.deep".to_owned(), Some(deep))]);
    drop(folder);
}

/// Changes are made from what is on record, one after the other: none is lost or refused.
#[test]
fn swaps_and_shadows_set_at_once_lose_nothing() {
    let world = World::new(&allow_all());
    let other = |id: &str| {
        let when = r#"{"op": "all", "args": []}"#;
        Policy::from_json(document(&[constraint(id, "allow", "null", when, "block")]).as_bytes())
            .unwrap()
    };
    for round in 0..30 {
        let (policy, shadow) = (format!("p{round}"), format!("s{round}"));
        std::thread::scope(|scope| {
            scope.spawn(|| world.runtime.set_policy(other(&policy)).unwrap());
            scope.spawn(|| world.runtime.set_shadow(other(&shadow)).unwrap());
        });
        let on_record =
            world.runtime.look(|kernel| (kernel.policy_hash(), kernel.shadow_hash())).unwrap();
        assert_eq!(on_record, (Some(other(&policy).hash()), Some(other(&shadow).hash())));
    }
}

/// A caller that sends much must not hold up everybody else: of a long list nothing is known.
#[test]
fn a_list_too_long_to_compare_is_unknown() {
    let only = constraint(
        "list",
        "allow",
        r#"{"tool_id": "echo"}"#,
        r#"{"op": "eq", "args": ["args.value", "a"]}"#,
        "block",
    );
    let world = World::new(&document(&[only]));
    let (_, agent) = world.seat("a", ["echo"]);
    let of = |count: usize| {
        let list = syscap::format::Canonical::list(
            (0..count).map(|_| syscap::format::Canonical::text("a")),
        );
        agent.call("echo", args! { "value": list }).unwrap().reason()
    };
    assert_eq!(of(256), None);
    assert_eq!(of(257), Some(Reason::Constraint));
}
