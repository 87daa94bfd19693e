//! How arguments are narrowed.

use super::*;

const PAY: (&str, EffectClass) = ("bank.pay", EffectClass::ExternalWrite);

fn learned<'a>(each: impl IntoIterator<Item = &'a str>) -> Proposal {
    let mut world = World::new(&[PAY]);
    world.calls("bank.pay", each);
    world.propose()
}

fn says(proposal: &Proposal, args: &str) -> Verdict {
    verdict(proposal, AGENT, "bank.pay", args)
}

#[test]
fn values_that_come_back_are_all_that_is_allowed() {
    let proposal =
        learned([r#"{"to": "ann"}"#, r#"{"to": "ann"}"#, r#"{"to": "bob"}"#, r#"{"to": "bob"}"#]);
    let line = argument(&proposal, "bank.pay", "to");
    assert_eq!((line.class, line.values, line.alone), (Class::Values, 2, 0));
    assert_eq!(says(&proposal, r#"{"to": "bob"}"#), Verdict::Allow);
    assert_eq!(says(&proposal, r#"{"to": "eve"}"#), Verdict::Deny);
    assert_eq!(says(&proposal, "{}"), Verdict::Deny);
    // Nobody ever gave `cc`.
    assert_eq!(class(&proposal, "bank.pay", "cc"), Class::Absent);
    assert_eq!(says(&proposal, r#"{"to": "bob", "cc": "eve"}"#), Verdict::Deny);
}

/// Five percent: the next task alone needs nineteen before it, and one that is alone among
/// those, thirty-nine.
#[test]
fn few_tasks_promise_little() {
    for (tasks, lonely, wanted) in
        [(18, 0, Class::Free), (19, 0, Class::Values), (38, 1, Class::Free), (39, 1, Class::Values)]
    {
        let mut world = World::new(&[PAY]);
        world.calls("bank.pay", core::iter::repeat_n(r#"{"to": "ann"}"#, tasks - lonely));
        world.calls("bank.pay", core::iter::repeat_n(r#"{"to": "bob"}"#, lonely));
        let proposal = world.propose_with(&Settings::default());
        assert_eq!(class(&proposal, "bank.pay", "to"), wanted, "{tasks} {lonely}");
        let one = &proposal.agents[0];
        let refused = if wanted == Class::Values { lonely } else { 0 };
        assert_eq!(one.refused, refused, "{tasks}");
        assert_eq!(one.least_percent() <= 5, tasks >= 19, "{tasks}");
    }
}

/// The account is one: where one tool has spent it another has nothing left, but for the same
/// task; and the riskiest tool comes first.
#[test]
fn refusal_allowance_goes_once_to_the_riskiest_tool() {
    let learned = |odd_write: usize, odd_delete: usize| {
        let mut world = World::new(&[
            ("a.write", EffectClass::LocalWrite),
            ("z.delete", EffectClass::Irreversible),
        ]);
        for n in 0..40 {
            let session = world.session("");
            let to = |odd: bool| format!(r#"{{"to": "{}"}}"#, if odd { "odd" } else { "even" });
            world.call(session, "a.write", &to(n == odd_write));
            world.call(session, "z.delete", &to(n == odd_delete));
        }
        let proposal = world.propose_with(&Settings::default());
        let classes = ["z.delete", "a.write"].map(|tool| class(&proposal, tool, "to"));
        (classes, proposal.agents[0].refused)
    };
    assert_eq!(learned(3, 5), ([Class::Values, Class::Free], 1));
    assert_eq!(learned(5, 5), ([Class::Values, Class::Values], 1));
}

#[test]
fn an_argument_that_is_sometimes_left_out_may_be() {
    let proposal = learned([r#"{"to": "ann"}"#, r#"{"to": "ann"}"#, "{}", "{}"]);
    assert_eq!(says(&proposal, "{}"), Verdict::Allow);
    assert_eq!(says(&proposal, r#"{"to": "ann"}"#), Verdict::Allow);
    assert_eq!(says(&proposal, r#"{"to": "eve"}"#), Verdict::Deny);
}

#[test]
fn numbers_have_headroom_upwards_and_none_below_zero() {
    let each = ["1", "40", "7", "40"].map(|n| format!(r#"{{"n": {n}}}"#));
    let proposal = learned(each.iter().map(String::as_str));
    assert_eq!(class(&proposal, "bank.pay", "n"), Class::Range);
    let n = |n: i64| says(&proposal, &format!(r#"{{"n": {n}}}"#));
    assert_eq!((n(0), n(80)), (Verdict::Allow, Verdict::Allow));
    assert_eq!((n(-1), n(81)), (Verdict::Deny, Verdict::Deny));
    // A task that alone gave much more than twice the others.
    let each = ["1", "2", "3", "100"].map(|n| format!(r#"{{"n": {n}}}"#));
    assert_eq!(class(&learned(each.iter().map(String::as_str)), "bank.pay", "n"), Class::Free);
    let each = ["-5", "-4", "-3", "-5"].map(|n| format!(r#"{{"n": {n}}}"#));
    let proposal = learned(each.iter().map(String::as_str));
    let n = |n: i64| says(&proposal, &format!(r#"{{"n": {n}}}"#));
    assert_eq!(
        (n(-10), n(-11), n(0), n(1)),
        (Verdict::Allow, Verdict::Deny, Verdict::Allow, Verdict::Deny)
    );
}

/// No policy compares numbers with a fraction, so nothing is asked of them.
#[test]
fn numbers_with_a_fraction_are_free() {
    let proposal = learned([r#"{"n": 1.5}"#, r#"{"n": 1.5}"#, r#"{"n": 2}"#, r#"{"n": 2}"#]);
    let line = argument(&proposal, "bank.pay", "n");
    assert_eq!((line.class, &line.condition), (Class::Free, &None));
    assert!(line.tried.iter().all(|(_, alone)| alone.is_none()), "{:?}", line.tried);
    assert_eq!(says(&proposal, r#"{"n": 99}"#), Verdict::Allow);
}

#[test]
fn texts_have_beginnings_and_endings_in_common() {
    for (values, wanted, good, bad) in [
        (["a@x.org", "b@x.org", "c@x.org"], Class::Domain, "z@x.org", "z@y.org"),
        (["docs/a/1", "docs/a/2", "docs/a/3"], Class::Folder, "docs/a/9", "docs/b/9"),
        (["docs/a/1", "docs/b/2", "docs/c/3"], Class::Origin, "docs/z/9", "src/a/1"),
        (
            ["https://x.org/1/a", "https://x.org/2/b", "https://x.org/3/c"],
            Class::Origin,
            "https://x.org/",
            "https://x.org.evil.net/",
        ),
    ] {
        let each = values.map(|value| format!(r#"{{"to": "{value}"}}"#));
        let proposal = learned(each.iter().map(String::as_str));
        assert_eq!(class(&proposal, "bank.pay", "to"), wanted, "{values:?}");
        assert_eq!(says(&proposal, &format!(r#"{{"to": "{good}"}}"#)), Verdict::Allow);
        assert_eq!(says(&proposal, &format!(r#"{{"to": "{bad}"}}"#)), Verdict::Deny);
    }
}

/// What dates begin with passes; what a list has of both can't be said; long text is no choice.
#[test]
fn short_lived_or_unsayable_values_are_not_learned() {
    let long = "x".repeat(300);
    for values in [
        ["\"2024/05/1\"", "\"2024/05/2\"", "\"2024/05/3\""],
        [r#"["a@x.org", "b@y.org"]"#, r#"["c@x.org"]"#, r#"["d@y.org"]"#],
        ["[]", "[]", "[]"],
        ["{}", "{}", "{}"],
        ["\"a@b@x.org\"", "\"c@b@x.org\"", "\"d@b@x.org\""],
        [&format!("\"{long}\""), &format!("\"{long}\""), &format!("\"{long}\"")],
    ] {
        let each = values.map(|value| format!(r#"{{"to": {value}}}"#));
        let proposal = learned(each.iter().map(String::as_str));
        assert_eq!(class(&proposal, "bank.pay", "to"), Class::Free, "{}", values[0]);
    }
}

#[test]
fn every_list_element_must_be_known() {
    let each = [r#"["a", "b"]"#, r#"["b", "c"]"#, r#"["a", "c"]"#];
    let each = each.map(|value| format!(r#"{{"to": {value}}}"#));
    let proposal = learned(each.iter().map(String::as_str));
    assert_eq!(class(&proposal, "bank.pay", "to"), Class::Values);
    assert_eq!(argument(&proposal, "bank.pay", "to").values, 3);
    assert_eq!(says(&proposal, r#"{"to": ["c", "b", "a"]}"#), Verdict::Allow);
    assert_eq!(says(&proposal, r#"{"to": ["c", "eve"]}"#), Verdict::Deny);
}

/// Of a tool that only reads nothing is asked; of one that reads elsewhere it is: what is asked
/// there is told there.
#[test]
fn reading_is_free_and_asking_elsewhere_is_not() {
    let mut world =
        World::new(&[("a.look", EffectClass::Read), ("b.ask", EffectClass::ExternalRead)]);
    world.calls("a.look", [r#"{"to": "x"}"#; 2]);
    world.calls("b.ask", [r#"{"to": "x"}"#; 2]);
    let proposal = world.propose();
    assert_eq!(verdict(&proposal, AGENT, "a.look", r#"{"to": "y"}"#), Verdict::Allow);
    assert_eq!(verdict(&proposal, AGENT, "b.ask", r#"{"to": "y"}"#), Verdict::Deny);
    assert_eq!(verdict(&proposal, AGENT, "b.ask", r#"{"to": "x"}"#), Verdict::Allow);
}

/// Names that no document can write are left alone.
#[test]
fn an_argument_with_a_dotted_name_is_free() {
    let proposal = learned([r#"{"a.b": "x"}"#; 2]);
    assert_eq!(class(&proposal, "bank.pay", "a.b"), Class::Free);
}
