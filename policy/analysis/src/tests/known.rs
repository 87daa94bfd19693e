//! Answers that are known.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use syscap_format::{AgentId, Cidr, Host, ToolId, Verdict};
use syscap_policy::{Ask, Attribute, Condition, Document, Effect, Given, Subject};

use super::super::*;
use super::PLENTY;
use super::generate::{constraint, document, test, text};

fn tool(id: &str) -> ToolId {
    ToolId::new(id).unwrap()
}

fn agent(id: &str) -> AgentId {
    AgentId::new(id).unwrap()
}

fn secretary(extra: Option<Condition>) -> Document {
    let is = test("call.agent", Ask::Within(Box::from("secretary")));
    let mut first = constraint("mail", Effect::Allow, is);
    first.subject = Subject::Tool(tool("email.draft"));
    let mut all = vec![first];
    if let Some(when) = extra {
        all.push(constraint("sloppy", Effect::Allow, when));
    }
    document(all)
}

#[test]
fn only_the_secretary_drafts_mail() {
    let (draft, secretary_id) = (tool("email.draft"), agent("secretary"));
    let fine = secretary(None);
    assert!(matches!(only(&fine, &draft, &secretary_id, PLENTY), Finding::Holds { .. }));
    let reach = who_can(&fine, &draft, None, PLENTY);
    let verdicts: Vec<(&str, Verdict)> =
        reach.iter().map(|one| (one.agent.as_str(), one.witness.outcome.verdict)).collect();
    assert_eq!(verdicts, [("secretary", Verdict::Allow), ("some-agent", Verdict::Deny)]);

    let prefix = test("call.tool", Ask::Prefix(Box::from("email.")));
    let small = test("args.n", Ask::Le(10));
    let sloppy = secretary(Some(Condition::All(vec![prefix, small])));
    let Finding::Fails(witness) = only(&sloppy, &draft, &secretary_id, PLENTY) else { panic!() };
    assert_eq!(witness.outcome.verdict, Verdict::Allow);
    assert_eq!(witness.outcome.matches.len(), 1);
    let given = witness.scenario.get(&Attribute::parse("args.n").unwrap());
    assert!(matches!(given, Some(Given::Int(n)) if *n <= 10), "{:?}", witness.scenario);
    assert!(matches!(not_looser(&fine, &sloppy, PLENTY), Finding::Fails(_)));
    assert!(matches!(not_looser(&sloppy, &fine, PLENTY), Finding::Holds { .. }));
}

#[test]
fn a_search_without_nodes_knows_nothing() {
    let document = secretary(None);
    let other = secretary(Some(test("args.n", Ask::Le(10))));
    let found = diff(&document, &other, 0);
    assert!(matches!(found, Finding::Unknown { nodes: 1 }), "{found:?}");
    // Nothing needs to be looked at where the constraints are the same.
    let same = diff(&document, &secretary(None), 0);
    assert!(matches!(same, Finding::Holds { nodes: 0 }), "{same:?}");
    let (draft, other) = (tool("email.draft"), agent("other"));
    assert!(matches!(only(&document, &draft, &other, 0), Finding::Unknown { .. }));
    let reach = who_can(&document, &draft, None, 0);
    assert_eq!(reach.len(), 0, "nothing was found: {reach:?}");
}

#[test]
fn more_combinations_than_can_be_tried_are_unknown() {
    // Any set of these may be in one list, and each denies for another reason.
    let denies = (0..40).map(|n| {
        let is = test("args.a", Ask::Eq(text(&alloc::format!("word{n}"))));
        let not_fact = test(&alloc::format!("fact.f{n}"), Ask::Missing);
        constraint(&alloc::format!("d{n}"), Effect::Deny, Condition::All(vec![is, not_fact]))
    });
    let mut first: Vec<_> = denies.collect();
    first.push(constraint("z", Effect::Allow, Condition::All(vec![])));
    let mut second = first.clone();
    let both = |n| {
        let is = test("args.a", Ask::Eq(text(n)));
        Condition::Not(Box::new(is))
    };
    let impossible = Condition::All(vec![both("word1"), test("args.a", Ask::Eq(text("word1")))]);
    second.push(constraint("y", Effect::Allow, impossible));
    let found = diff(&document(first), &document(second), 2_000);
    assert!(!matches!(found, Finding::Fails(_)), "{found:?}");
}

#[test]
fn denies_that_do_the_same_are_one() {
    // Any of these hosts may be named together: 2^60 bundles, of which two kinds matter.
    let denied = |n: usize| {
        let host = Host::new(&alloc::format!("h{n}.example")).unwrap();
        constraint(&alloc::format!("d{n}"), Effect::Deny, test("args.url", Ask::Domain(host)))
    };
    let mut first: Vec<_> = (0..60).map(denied).collect();
    let small = |bound| test("args.n", Ask::Le(bound));
    first.push(constraint("z", Effect::Allow, small(10)));
    let mut second = first.clone();
    second[60].when = small(11);
    let (first, second) = (document(first), document(second));
    assert!(matches!(not_looser(&second, &first, 20_000), Finding::Holds { .. }));
    let Finding::Fails(found) = diff(&first, &second, 20_000) else { panic!() };
    assert_eq!(found.scenario.get(&Attribute::parse("args.n").unwrap()), Some(&Given::Int(11)));
    assert_eq!((found.first.verdict, found.second.verdict), (Verdict::Deny, Verdict::Allow));
}

/// Each part of the addresses has many texts: where the usual ones are constants, others are not.
#[test]
fn address_that_no_constant_spells_is_found() {
    let deny = document(vec![constraint("z", Effect::Deny, Condition::All(vec![]))]);
    let ping = tool("net.ping");
    let cases: [(&str, u8, &[&str]); 3] = [
        ("10.0.0.0", 8, &["10.0.0.0", "::ffff:10.0.0.0"]),
        ("::1", 128, &["::1", "0000:0000:0000:0000:0000:0000:0000:0001"]),
        ("10.1.0.1", 32, &["10.1.0.1", "::ffff:10.1.0.1", "0:0:0:0:0:ffff:a01:1"]),
    ];
    for (block, prefix, constants) in cases {
        let is_in = Ask::Cidr(Cidr::new(block.parse().unwrap(), prefix).unwrap());
        let named = Ask::In(constants.iter().map(|constant| text(constant)).collect());
        let other = Condition::Not(Box::new(test("args.ip", named)));
        let when = Condition::All(vec![test("args.ip", is_in), other]);
        let some = document(vec![constraint("a", Effect::Allow, when)]);
        let Finding::Fails(witness) = not_looser(&deny, &some, PLENTY) else { panic!("{block}") };
        let given = witness.scenario.get(&Attribute::parse("args.ip").unwrap());
        assert!(matches!(given, Some(Given::Text(_))), "{block}: {given:?}");
        assert!(matches!(only(&some, &ping, &agent("bob"), PLENTY), Finding::Fails(_)));
        let reach = who_can(&some, &ping, None, PLENTY);
        assert!(reach.iter().all(|one| one.witness.outcome.verdict == Verdict::Allow));
        assert!(matches!(lints(&some, PLENTY), Finding::Holds { .. }), "{block}");
    }
}

/// All texts of an address that the analysis knows are constants: it says that it does not know.
#[test]
fn part_without_a_text_left_is_not_exact() {
    let address = "1111:1111:1111:1111:1111:1111:1111:1111";
    let is_in = Ask::Cidr(Cidr::new(address.parse().unwrap(), 128).unwrap());
    let other = Condition::Not(Box::new(test("args.ip", Ask::Eq(text(address)))));
    let when = Condition::All(vec![test("args.ip", is_in), other]);
    let some = document(vec![constraint("a", Effect::Allow, when)]);
    let deny = document(vec![constraint("z", Effect::Deny, Condition::All(vec![]))]);
    // In fact there is one: its last two groups may be dotted.
    assert!(matches!(not_looser(&deny, &some, PLENTY), Finding::Unknown { .. }));
}
