//! Every combination of many values, tried one by one.
//!
//! The values are more than those that stand for classes. Of those that answer every test of the
//! documents alike, and let fields be below them alike, one is kept.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};

use syscap_format::{AgentId, EffectClass, Host, ToolId};
use syscap_policy::{
    Attribute, Condition, Document, Given, Other, Scenario, Test, Truth, Value, risk, semantics,
};

use super::generate::{ADDRESSES, HOSTS, PATHS};

/// Values that go together.
type Choice = Vec<(Attribute, Option<Given>)>;
type Tests = BTreeMap<Attribute, BTreeSet<Test>>;

#[derive(Clone)]
pub(super) struct Domain(Vec<Vec<Choice>>);

impl Domain {
    /// All calls, of all tools or of one.
    pub(super) fn new(documents: &[&Document], tool: Option<&ToolId>) -> Self {
        let mut tests = Tests::new();
        let constraints = documents.iter().flat_map(|document| &document.constraints);
        constraints.for_each(|constraint| collect(&constraint.when, &mut tests));
        let mut choices = vec![calls(documents, tool, &tests), agents()];
        let now = [Attribute::NowMs, Attribute::NowHour, Attribute::NowWeekday];
        if now.iter().any(|attribute| tests.contains_key(attribute)) {
            choices.push(distinct(instants(), &tests));
        }
        let mut families: BTreeMap<String, Vec<Choice>> = BTreeMap::new();
        for attribute in tests.keys() {
            let name = format!("{attribute}");
            if name == "risk" || name == "call.tool" || name == "call.effect" {
                continue;
            }
            if *attribute == Attribute::Agent || now.contains(attribute) {
                continue;
            }
            let all = values(attribute, &tests).into_iter();
            let all = all.map(|given| vec![(attribute.clone(), given)]).collect();
            let all = distinct(all, &tests);
            let root: Vec<&str> = name.split('.').take(2).collect();
            let family = families.entry(root.join(".")).or_insert_with(|| vec![vec![]]);
            *family = family.iter().flat_map(|before| extended(before, &all)).collect();
        }
        choices.extend(families.into_values());
        Self(choices)
    }

    /// With the agent fixed.
    pub(super) fn by(mut self, agent: &AgentId) -> Self {
        self.0[1] = vec![vec![(Attribute::Agent, Some(Given::Agent(agent.clone())))]];
        self
    }

    /// The first scenario of which that holds.
    pub(super) fn find(&self, is: &mut dyn FnMut(&Scenario) -> bool) -> Option<Scenario> {
        let mut scenario = Scenario::new();
        find(&self.0, &mut scenario, is).then_some(scenario)
    }
}

fn find(
    choices: &[Vec<Choice>],
    scenario: &mut Scenario,
    is: &mut dyn FnMut(&Scenario) -> bool,
) -> bool {
    let Some((first, rest)) = choices.split_first() else { return is(scenario) };
    first.iter().any(|choice| {
        for (attribute, given) in choice {
            match given {
                Some(given) => scenario.set(attribute.clone(), given.clone()),
                None => scenario.remove(attribute),
            }
        }
        find(rest, scenario, is)
    })
}

/// What was chosen with one more, where they go together: a field is there only below a map, or
/// an argument that names something, and what is erased is erased as a whole.
fn extended(before: &Choice, all: &[Choice]) -> Vec<Choice> {
    let mut choices = Vec::new();
    for choice in all {
        let (attribute, given) = &choice[0];
        let fits = before.iter().all(|(outer, of_outer)| {
            let below = format!("{attribute}").starts_with(&format!("{outer}."));
            let holds = matches!(of_outer, Some(Given::Other(Other::Map) | Given::Resources(_)));
            let erased = |given: &Option<Given>| *given == Some(Given::Erased);
            let there = given.is_some() && !erased(given);
            (!below || !there || holds) && erased(given) == erased(of_outer)
        });
        if fits {
            choices.push(before.iter().cloned().chain(choice.iter().cloned()).collect());
        }
    }
    choices
}

/// One of those that answer all tests alike.
fn distinct(all: Vec<Choice>, tests: &Tests) -> Vec<Choice> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for choice in all {
        let mut answers: Vec<Truth> = Vec::new();
        for (attribute, given) in &choice {
            let value = given.as_ref().map_or(Value::Missing, Given::value);
            let asked = tests.get(attribute).into_iter().flatten();
            answers.extend(asked.map(|test| semantics::ask(&test.ask, &value)));
        }
        let shape = match &choice[0].1 {
            None => 0,
            Some(Given::Erased) => 1,
            Some(Given::Other(Other::Map) | Given::Resources(_)) => 2,
            Some(_) => 3,
        };
        if seen.insert((answers, shape)) {
            kept.push(choice);
        }
    }
    kept
}

fn calls(documents: &[&Document], tool: Option<&ToolId>, tests: &Tests) -> Vec<Choice> {
    let tools = [
        "fs.read",
        "fs.write",
        "net.get",
        "other",
        "fs.x",
        "nx",
        "a.read",
        "q.x",
        "fs",
        "fsx.get",
        "n.read",
        "net.getx",
        "net.get.read",
        "fs.a.get",
        "zz",
    ];
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for name in tools {
        if tool.is_some_and(|tool| tool.as_str() != name) {
            continue;
        }
        for class in EffectClass::ALL {
            let choice = vec![
                (Attribute::Tool, Some(Given::text(name))),
                (Attribute::EffectClass, Some(Given::text(class.name()))),
            ];
            let mut scenario = Scenario::new();
            for (attribute, given) in &choice {
                scenario.set(attribute.clone(), given.clone().unwrap());
            }
            let mut key = Vec::new();
            for document in documents {
                let points = i128::from(risk::points(document, name, *class));
                scenario.set(Attribute::Risk, Given::Int(points));
                let subjects = document.constraints.iter();
                key.extend(
                    subjects.map(|one| Truth::of(semantics::is_about(&one.subject, &scenario))),
                );
                for attribute in [Attribute::Tool, Attribute::EffectClass, Attribute::Risk] {
                    for test in tests.get(&attribute).into_iter().flatten() {
                        let value = scenario.get(&attribute).unwrap().value();
                        key.push(semantics::ask(&test.ask, &value));
                    }
                }
            }
            if seen.insert(key) {
                kept.push(choice);
            }
        }
    }
    kept
}

fn agents() -> Vec<Choice> {
    let all = ["team", "team/a", "team/a/x", "teamx", "b", "b/a"].into_iter();
    let all = all.map(|agent| Given::Agent(AgentId::new(agent).unwrap()));
    all.map(|agent| vec![(Attribute::Agent, Some(agent))]).collect()
}

/// Every half hour of two weeks, and the milliseconds around what is compared with.
fn instants() -> Vec<Choice> {
    let mut all: Vec<i128> = (0..2 * 14 * 24).map(|n| n * 1_800_000).collect();
    for near in [1, 3_599_999, 86_400_000, 100_000_000_i128] {
        all.extend(near - 1..=near + 1);
    }
    let of = |ms: i128| {
        let (hours, days) = (ms / 3_600_000, ms / 86_400_000);
        let week = [4, 5, 6, 7, 1, 2, 3];
        let weekday = week[usize::try_from(days % 7).unwrap()];
        vec![
            (Attribute::NowMs, Some(Given::Int(ms))),
            (Attribute::NowHour, Some(Given::Int(hours % 24))),
            (Attribute::NowWeekday, Some(Given::Int(weekday))),
        ]
    };
    all.into_iter().map(of).collect()
}

/// All texts of up to four of three letters, and some addresses.
fn texts() -> Vec<Given> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..4 {
        let longer = last.iter().flat_map(|text| ["a", "b", "c"].map(|c| format!("{text}{c}")));
        last = longer.collect();
        all.extend(last.iter().cloned());
    }
    all.extend(ADDRESSES.map(String::from));
    // What no constant is: of each part, of which two have one address.
    for address in
        ["11.0.0.0", "10.2.0.0", "10.1.0.2", "::FFFF:A01:1", "fd00::1", "fe80::1", "::01"]
    {
        all.push(String::from(address));
    }
    all.extend(HOSTS.map(String::from));
    all.extend(PATHS.map(String::from));
    all.iter().map(|text| Given::text(text)).collect()
}

/// Names and addresses that documents here use, and some beside them.
fn resources() -> Vec<Given> {
    let paths = [
        "ws",
        "ws/a",
        "ws/a/b",
        "ws/a/c",
        "ws/ab",
        "ws/other",
        "ws/other/x",
        "other/x",
        "workspace/a",
        "workspace",
        "other",
        "b",
        "b/x",
        "a.b",
        "a.b/x",
        "a",
        "ab",
        "ba",
        "aba",
        "x",
        "10.1.0.1",
        "10.0.0.0",
    ];
    let hosts = [
        "b", "a.b", "c.a.b", "x.c.a.b", "a.c.a.b", "x.a.b", "xa.b", "x.b", "c", "x.c", "z", "a",
        "ab", "ba", "aba",
    ];
    let addresses = ["10.1.0.1", "10.1.0.2", "10.2.0.0", "11.0.0.0", "::1", "fd00::1", "fe80::1"];
    let mut all: Vec<Given> = paths.iter().map(|text| Given::path(text).unwrap()).collect();
    all.extend(paths.iter().map(|text| Given::tree(text).unwrap()));
    let constants = || HOSTS.iter().chain(&PATHS).chain(&ADDRESSES);
    all.extend(constants().filter_map(|text| Given::path(text)));
    all.extend(constants().filter_map(|text| Given::tree(text)));
    all.extend(hosts.map(|text| Given::Host(Host::new(text).unwrap())));
    all.push(Given::Host(Host::new("x").unwrap()));
    all.extend(addresses.map(|text| Given::Address(text.parse().unwrap())));
    all.extend((-1..9).map(Given::Int));
    all
}

/// Values that an attribute can have.
fn values(attribute: &Attribute, tests: &Tests) -> Vec<Option<Given>> {
    match attribute {
        Attribute::TokenReadOnly => return [false, true].map(|is| Some(Given::Bool(is))).into(),
        Attribute::Fact(..) | Attribute::Argument(..) => {}
        _ => return (0..9).map(|n| Some(Given::Int(n))).collect(),
    }
    let texts = texts();
    let mut all = texts.clone();
    all.extend((-1..9).map(Given::Int));
    all.extend([Given::Bool(false), Given::Bool(true)]);
    let mut elements = all.clone();
    elements.push(Given::Other(Other::Null));
    let bundled = |one: Given| Given::Resources(vec![one]);
    let listed = |one: Given| Given::List(vec![one]);
    all.extend(tuples(&unlike(elements, attribute, tests, &listed)).into_iter().map(Given::List));
    let others = [Other::Null, Other::Float, Other::Bytes, Other::EmptyList, Other::Map];
    all.extend(others.map(Given::Other));
    match attribute {
        Attribute::Fact(..) => all.push(Given::Erased),
        Attribute::Argument(_, fields) if fields.is_empty() => {
            let mut resources = resources();
            resources.extend(texts);
            let unlike = unlike(resources, attribute, tests, &bundled);
            all.extend(tuples(&unlike).into_iter().map(Given::Resources));
        }
        _ => {}
    }
    core::iter::once(None).chain(all.into_iter().map(Some)).collect()
}

/// One of those of a type that answer all tests alike.
fn unlike(
    all: Vec<Given>,
    attribute: &Attribute,
    tests: &Tests,
    wrap: &dyn Fn(Given) -> Given,
) -> Vec<Given> {
    let mut seen = BTreeSet::new();
    let mut kept = Vec::new();
    for given in all {
        let kind = match given {
            Given::Text(_) => 0,
            Given::Int(_) => 1,
            Given::Path(_) => 2,
            Given::Host(_) => 3,
            Given::Tree(_) => 5,
            _ => 4,
        };
        let wrapped = wrap(given.clone());
        let asked = tests.get(attribute).into_iter().flatten();
        let answers = asked.map(|test| semantics::ask(&test.ask, &wrapped.value()));
        let answers: Vec<Truth> = answers.collect();
        if seen.insert((answers, kind)) {
            kept.push(given);
        }
    }
    kept
}

/// All of one, two and three.
fn tuples(of: &[Given]) -> Vec<Vec<Given>> {
    let mut all = Vec::new();
    for (n, a) in of.iter().enumerate() {
        all.push(vec![a.clone()]);
        for (m, b) in of.iter().enumerate().skip(n + 1) {
            all.push(vec![a.clone(), b.clone()]);
            for c in of.iter().skip(m + 1) {
                all.push(vec![a.clone(), b.clone(), c.clone()]);
            }
        }
    }
    all
}

fn collect(condition: &Condition, tests: &mut Tests) {
    match condition {
        Condition::Test(test) => {
            tests.entry(test.attribute.clone()).or_default().insert(test.clone());
        }
        Condition::Not(part) => collect(part, tests),
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| collect(part, tests));
        }
    }
}
