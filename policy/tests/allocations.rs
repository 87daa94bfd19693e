//! How many allocations a decision costs: a count that noise can't move.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use std::{alloc::System, hint::black_box};

use kernel_support::asking::Asked;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use syscap_format::{EffectClass, Host, MATCHES_MAX, Resource};
use syscap_kernel::{PolicyEngine, Question};
use syscap_policy::Policy;

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A document of `count` allows that grant what `bob` asks of `shared/a`, beside one constraint
/// each way that does not match.
fn policy(count: usize) -> Policy {
    let test = |op: &str, args: &str| format!(r#"{{"op":"{op}","args":[{args}]}}"#);
    let tests = |path: &str| {
        let all = [
            test("within", r#""call.agent","bob""#),
            test("within", &format!(r#""args.path","{path}""#)),
            test("domain", r#""args.host","example.com""#),
            test("eq", r#""args.to","you""#),
            test("in", r#""args.n",[1,2,3]"#),
            test("prefix", r#""token.id","ab""#),
            format!(r#"{{"op":"not","args":[{}]}}"#, test("gt", r#""args.n",7"#)),
        ];
        all.join(",")
    };
    let one = |id: String, effect: &str, path: &str| {
        format!(
            concat!(
                r#"{{"id":"{}","effect":"{}","subject":{{"tool_id":"t"}},"#,
                r#""when":{{"op":"all","args":[{}]}},"on_fail":"block","reason":"because"}}"#
            ),
            id,
            effect,
            tests(path)
        )
    };
    let mut all: Vec<String> =
        (0..count).map(|n| one(format!("m{n:02}"), "allow", "shared/a")).collect();
    all.push(one("other".to_owned(), "allow", "shared/b"));
    all.push(one("secret".to_owned(), "deny", "shared/a/secret"));
    let text = format!(r#"{{"v":1,"constraints":[{}]}}"#, all.join(","));
    Policy::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// Allocations of a decision, and how many constraints matched.
fn count(policy: &Policy, question: &Question<'_>) -> (usize, u64) {
    let region = Region::new(ALLOCATOR);
    let decision = black_box(policy.decide(black_box(question)));
    let change = region.change();
    (change.allocations + change.reallocations, decision.match_count)
}

/// One thread, one test: nothing else allocates meanwhile.
#[test]
fn allocations_per_decision() {
    let asked = Asked::new("t", EffectClass::Read, r#"{"to":"you","n":2}"#)
        .path("path", "shared/a/x")
        .demand("host", Resource::Host(Host::new("a.example.com").unwrap()));
    let question = asked.question();
    assert_eq!(count(&policy(0), &question), (0, 0));
    // What is returned is a list of those that matched.
    for matches in [1, 2, MATCHES_MAX] {
        assert_eq!(count(&policy(matches), &question), (1, matches as u64));
    }
    // Too many for that list: their digest is made beside it.
    let many = MATCHES_MAX + 1;
    let (allocations, matches) = count(&policy(many), &question);
    assert_eq!(matches, many as u64);
    assert!(allocations <= 2, "{allocations} allocations with a digest");
}
