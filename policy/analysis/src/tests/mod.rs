mod brute;
mod generate;
mod known;

use alloc::{collections::BTreeSet, vec::Vec};

use syscap_format::Verdict;
use syscap_policy::{Attribute, Condition, Effect, Given, Scenario, semantics};

use super::*;
use brute::Domain;
use generate::Random;

/// Nodes for small documents: they never run out.
const PLENTY: u64 = 10_000_000;

fn rounds(usual: u64, long: u64) -> u64 {
    if option_env!("SYSCAP_LONG").is_some() { long } else { usual }
}

#[test]
fn diff_is_exact() {
    let (mut equal, mut different) = (0, 0);
    for seed in 0..rounds(300, 10_000) {
        let mut random = Random::new(seed);
        let (a, b) = random.pair();
        let brute = Domain::new(&[&a, &b], None).find(&mut |scenario| {
            let (x, y) = (semantics::decide(&a, scenario), semantics::decide(&b, scenario));
            (x.verdict, x.obligations) != (y.verdict, y.obligations)
        });
        match (diff(&a, &b, PLENTY), brute) {
            (Finding::Holds { .. }, None) => equal += 1,
            (Finding::Fails(_), Some(_)) => different += 1,
            (found, brute) => panic!("seed {seed}: {found:?}, but {brute:?}\n{a:?}\n{b:?}"),
        }
    }
    assert!(equal > 30 && different > 30, "{equal} equal, {different} different");
}

#[test]
fn not_looser_is_exact() {
    let (mut holds, mut fails) = (0, 0);
    for seed in 0..rounds(250, 10_000) {
        let mut random = Random::new(seed + 1_000_000);
        let (a, b) = random.pair();
        let brute = Domain::new(&[&a, &b], None).find(&mut |scenario| {
            semantics::decide(&b, scenario).verdict < semantics::decide(&a, scenario).verdict
        });
        match (not_looser(&a, &b, PLENTY), brute) {
            (Finding::Holds { .. }, None) => holds += 1,
            (Finding::Fails(_), Some(_)) => fails += 1,
            (found, brute) => panic!("seed {seed}: {found:?}, but {brute:?}\n{a:?}\n{b:?}"),
        }
    }
    assert!(holds > 25 && fails > 25, "{holds} hold, {fails} fail");
}

/// What is left of a block, a domain or a folder where constants are taken out of it.
#[test]
fn rest_beside_constants_is_exact() {
    let deny = generate::constraint("z", Effect::Deny, Condition::All(Vec::new()));
    let deny = generate::document([deny].into());
    let (mut holds, mut fails) = (0, 0);
    for seed in 0..rounds(600, 20_000) {
        let some = Random::new(seed + 4_000_000).excepting();
        let brute = Domain::new(&[&some], None)
            .find(&mut |scenario| semantics::decide(&some, scenario).verdict == Verdict::Allow);
        match (not_looser(&deny, &some, PLENTY), brute) {
            (Finding::Holds { .. }, None) => holds += 1,
            (Finding::Fails(_), Some(_)) => fails += 1,
            (found, brute) => panic!("seed {seed}: {found:?}, but {brute:?}\n{some:?}"),
        }
    }
    assert!(holds > 10 && fails > 100, "{holds} hold, {fails} fail");
}

#[test]
fn reachability_answers_are_exact() {
    let mut verdicts = BTreeSet::new();
    let (mut holds, mut fails) = (0, 0);
    for seed in 0..rounds(250, 5_000) {
        let mut random = Random::new(seed + 2_000_000);
        let (document, _) = random.pair();
        let tool = random.tool();
        let tool_is = Given::text(tool.as_str());
        let domain = Domain::new(&[&document], Some(&tool));
        for reach in who_can(&document, &tool, None, PLENTY) {
            assert_eq!(reach.proof, Proof::Exact, "seed {seed}");
            let agent = Given::Agent(reach.agent.clone());
            let fixed = domain.clone().by(&reach.agent);
            let verdict = reach.witness.outcome.verdict;
            verdicts.insert(verdict);
            let milder = fixed
                .find(&mut |scenario| semantics::decide(&document, scenario).verdict < verdict);
            assert_eq!(milder, None, "seed {seed}: {reach:?}\n{document:?}");
            let scenario = &reach.witness.scenario;
            assert_eq!(scenario.get(&Attribute::Agent), Some(&agent));
            assert_eq!(scenario.get(&Attribute::Tool), Some(&tool_is));
        }
        let agent = random.agent();
        let brute = domain.find(&mut |scenario| {
            let Some(Given::Agent(other)) = scenario.get(&Attribute::Agent) else { panic!() };
            !other.is_within(&agent)
                && semantics::decide(&document, scenario).verdict <= Verdict::Ask
        });
        match (only(&document, &tool, &agent, PLENTY), brute) {
            (Finding::Holds { .. }, None) => holds += 1,
            (Finding::Fails(_), Some(_)) => fails += 1,
            (found, brute) => panic!("seed {seed}: {found:?}, but {brute:?}\n{document:?}"),
        }
    }
    assert_eq!(verdicts.len(), 5, "{verdicts:?}");
    assert!(holds > 25 && fails > 25, "{holds} hold, {fails} fail");
}

#[test]
fn lints_are_exact() {
    let mut kinds = [0; 3];
    for seed in 0..rounds(150, 5_000) {
        let mut random = Random::new(seed + 3_000_000);
        let (document, _) = random.pair();
        let found = match lints(&document, PLENTY) {
            Finding::Fails(found) => found,
            Finding::Holds { .. } => Vec::new(),
            Finding::Unknown { .. } => panic!("seed {seed}"),
        };
        let domain = Domain::new(&[&document], None);
        for constraint in &document.constraints {
            let has = |kind| found.contains(&Lint { constraint: constraint.id.clone(), kind });
            let matches = |values: &Scenario| semantics::matches(&document, constraint, values);
            let never = domain.find(&mut |values| matches(values)).is_none();
            assert_eq!(has(LintKind::NeverMatches), never, "seed {seed}: {document:?}");
            let about = |values: &Scenario| semantics::is_about(&constraint.subject, values);
            let always = !never
                && generate::has_tests(&constraint.when)
                && domain.find(&mut |values| about(values) && !matches(values)).is_none();
            assert_eq!(has(LintKind::AlwaysMatches), always, "seed {seed}: {document:?}");
            let mut without = document.clone();
            without.constraints.retain(|other| other.id != constraint.id);
            let redundant = domain.find(&mut |values| {
                let a = semantics::decide(&document, values);
                let b = semantics::decide(&without, values);
                (a.verdict, a.obligations) != (b.verdict, b.obligations)
            });
            let redundant = redundant.is_none();
            assert_eq!(has(LintKind::Redundant), redundant, "seed {seed}: {document:?}");
            for (n, is) in [never, always, redundant].into_iter().enumerate() {
                kinds[n] += u32::from(is);
            }
        }
    }
    assert!(kinds.iter().all(|count| *count > 5), "{kinds:?}");
}
