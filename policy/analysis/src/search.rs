//! The search for a scenario: tests are answered variable by variable, with bounds on what each
//! document can still say.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::rc::Rc;
use alloc::vec::Vec;

use syscap_format::{AgentId, EffectClass, Obligation, ToolId, Verdict};
use syscap_policy::{Ask, Attribute, Effect, Given, Scenario, Truth, semantics};

use super::classes::{self, Asked, Class, Classes, Combine, Shape};
use super::formula::{Is, Needs};
use super::problem::{Call, Problem, SIDES};
use super::variable::Variable;
use super::witness::{self, Shaped};

/// Open rules that cost as much as a node: so work and memory are bounded by the nodes.
const RULES_A_NODE: u64 = 16;
/// Sets of classes that are kept for when the same tests come up again.
const KEPT_MAX: usize = 4_096;

/// The goal of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// Verdicts or obligations that differ.
    Differ,
    /// A second verdict that is milder than the first.
    Milder,
    /// A first verdict that is at most this.
    AtMost(Verdict),
    /// The rule is about the call and matches.
    Matches(usize),
    /// The rule is about the call and does not match.
    Fails(usize),
}

/// Which calls are looked at.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Scope<'a> {
    pub(super) tool: Option<&'a ToolId>,
    pub(super) class: Option<EffectClass>,
    pub(super) agent: Option<&'a AgentId>,
}

/// How a search ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Found(Scenario),
    /// There is none.
    Nothing,
    /// Not everything was looked at.
    Unknown,
}

/// The verdicts that one document can still give.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Tally {
    granted: bool,
    grant: Verdict,
    deny: Verdict,
    /// The verdict where no allow grants.
    fail: Verdict,
    asks: BTreeSet<usize>,
}

/// Between what one document's verdict lies.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    least: Verdict,
    most: Verdict,
    base_most: Verdict,
    asks_open: Openness,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Openness {
    Open,
    Settled,
}

/// A place of the search: a variable whose classes are tried one by one.
struct Frame {
    open: Vec<usize>,
    tallies: [Tally; SIDES],
    variable: usize,
    atoms: Rc<Vec<usize>>,
    classes: Rc<Classes>,
    next: usize,
}

enum Step {
    Found,
    Dead,
    Branch(Frame),
}

/// A test of a variable, with the answers that matter and its group.
type Question = (usize, Needs, Option<(usize, Is)>);
/// Denies that do the same: whose, the verdict, the types that are asked about, and how.
type Group = ([bool; SIDES], Verdict, u8, Is);
type ClassesKey = (usize, Vec<Question>, Combine);

pub(super) struct Search<'p, 'd> {
    problem: &'p Problem<'d>,
    /// Which documents have each rule.
    pub(super) of: Vec<[bool; SIDES]>,
    pub(super) nodes: u64,
    limit: u64,
    inexact: bool,
    answers: Vec<Option<Truth>>,
    chosen: BTreeMap<usize, (Shape, Vec<(Attribute, Given)>)>,
    kept: BTreeMap<ClassesKey, Rc<Classes>>,
}

impl<'p, 'd> Search<'p, 'd> {
    pub(super) fn new(problem: &'p Problem<'d>, limit: u64) -> Self {
        Self {
            problem,
            of: problem.rules.iter().map(|rule| rule.of).collect(),
            nodes: 0,
            limit,
            inexact: false,
            answers: Vec::new(),
            chosen: BTreeMap::new(),
            kept: BTreeMap::new(),
        }
    }

    /// Looks for a scenario within the scope that meets the goal.
    pub(super) fn run(&mut self, goal: Goal, scope: Scope<'_>) -> Ending {
        let (named, exact) = self.problem.tools();
        self.inexact = scope.tool.is_none() && !exact;
        let tools = scope.tool.map_or(named.as_slice(), core::slice::from_ref);
        let mut seen = BTreeSet::new();
        for tool in tools {
            for class in EffectClass::ALL {
                if scope.class.is_some_and(|only| only != *class) {
                    continue;
                }
                let call = self.problem.call(tool, *class);
                if let Goal::Matches(rule) | Goal::Fails(rule) = goal
                    && call.rules.binary_search(&rule).is_err()
                {
                    continue;
                }
                let differs = |rule: &usize| self.has(*rule, 0) != self.has(*rule, 1);
                let compared = matches!(goal, Goal::Differ | Goal::Milder);
                if compared && !call.rules.iter().any(differs) {
                    continue;
                }
                if !self.pay(call.rules.len()) {
                    return Ending::Unknown;
                }
                if !seen.insert((call.rules.clone(), call.answers.clone())) {
                    continue;
                }
                match self.within(goal, call, scope.agent) {
                    Ending::Nothing => {}
                    ending => return ending,
                }
            }
        }
        if self.inexact { Ending::Unknown } else { Ending::Nothing }
    }

    /// Counts a node; whether there was one left.
    fn pay(&mut self, rules: usize) -> bool {
        let rules = u64::try_from(rules).unwrap_or(u64::MAX);
        let cost = rules.checked_div(RULES_A_NODE).unwrap_or(0).saturating_add(1);
        self.nodes = self.nodes.saturating_add(cost);
        self.nodes <= self.limit
    }

    fn within(&mut self, goal: Goal, call: Call, agent: Option<&AgentId>) -> Ending {
        self.answers = self.problem.atoms.iter().map(|_| None).collect();
        self.chosen.clear();
        for (atom, truth) in &call.answers {
            self.answer(*atom, Some(*truth));
        }
        if let Some(agent) = agent {
            self.fix(agent);
        }
        let tallies = [0, 1].map(|side| self.start(side, &call));
        let mut frames: Vec<Frame> = Vec::new();
        let mut step = self.look(goal, &call.rules, tallies);
        loop {
            match step {
                Step::Found => return self.confirm(goal, &call),
                Step::Branch(frame) => frames.push(frame),
                Step::Dead => {}
            }
            loop {
                let Some(mut frame) = frames.pop() else { return Ending::Nothing };
                self.undo(&frame);
                if self.choose(&mut frame) {
                    if !self.pay(frame.open.len()) {
                        return Ending::Unknown;
                    }
                    step = self.look(goal, &frame.open, frame.tallies.clone());
                    frames.push(frame);
                    break;
                }
            }
        }
    }

    /// The scenario at hand, if the definition of a document's meaning agrees.
    fn confirm(&self, goal: Goal, call: &Call) -> Ending {
        let given = self.chosen.values().flat_map(|(_, given)| given.iter().cloned());
        let scenario = witness::complete(self.problem, call, given);
        let met = self.is_met(goal, &scenario);
        debug_assert!(met, "a witness does not reproduce: {goal:?} {scenario:?}");
        if met { Ending::Found(scenario) } else { Ending::Unknown }
    }

    fn is_met(&self, goal: Goal, scenario: &Scenario) -> bool {
        let documents = self.problem.documents;
        let [first, second] = documents.map(|document| semantics::decide(document, scenario));
        let is_rule = |rule: usize| {
            let numbered = self.problem.rule_of.iter().zip(&documents[0].constraints);
            let mut of_rule = numbered.filter(move |(number, _)| **number == rule);
            of_rule.next().map(|(_, constraint)| constraint)
        };
        let matched = |rule| is_rule(rule).is_some_and(|one| first.matches.contains(&one.id));
        match goal {
            Goal::Differ if self.is_changed() => true,
            Goal::Differ => {
                (first.verdict, &first.obligations) != (second.verdict, &second.obligations)
            }
            Goal::Milder => second.verdict < first.verdict,
            Goal::AtMost(verdict) => first.verdict <= verdict,
            Goal::Matches(rule) => matched(rule),
            Goal::Fails(rule) => !matched(rule),
        }
    }

    /// True if a rule was taken out by hand: then the documents are not the compared ones.
    fn is_changed(&self) -> bool {
        self.of.iter().zip(&self.problem.rules).any(|(of, rule)| *of != rule.of)
    }

    fn fix(&mut self, agent: &AgentId) {
        let variable = Variable::One(Attribute::Agent);
        let given = Given::Agent(agent.clone());
        if let Some(number) = self.problem.number_of(&variable) {
            for (n, atom) in self.problem.atoms.iter().enumerate() {
                if atom.variable == number {
                    let truth = semantics::ask(&atom.ask, &given.value());
                    self.answer(n, Some(truth));
                }
            }
        }
        let number = self.problem.number_of(&variable).unwrap_or(usize::MAX);
        self.chosen.insert(number, (Shape::Leaf, [(Attribute::Agent, given)].into()));
    }

    fn answer(&mut self, atom: usize, truth: Option<Truth>) {
        if let Some(slot) = self.answers.get_mut(atom) {
            *slot = truth;
        }
    }

    fn has(&self, rule: usize, side: usize) -> bool {
        self.of.get(rule).and_then(|of| of.get(side)).copied().unwrap_or(false)
    }

    fn start(&self, side: usize, call: &Call) -> Tally {
        let of_side = call.rules.iter().filter(|rule| self.has(**rule, side));
        let rules = of_side.filter_map(|rule| self.problem.rules.get(*rule));
        let allows = rules.filter(|rule| rule.effect == Effect::Allow);
        Tally {
            granted: false,
            grant: Verdict::Allow,
            deny: Verdict::Allow,
            fail: allows.map(|rule| rule.fail).max().unwrap_or(Verdict::Deny),
            asks: BTreeSet::new(),
        }
    }

    fn undo(&mut self, frame: &Frame) {
        frame.atoms.iter().for_each(|atom| self.answer(*atom, None));
        self.chosen.remove(&frame.variable);
    }

    /// Takes the next class of a frame's variable that goes with what its relatives are.
    fn choose(&mut self, frame: &mut Frame) -> bool {
        while let Some(class) = frame.classes.all.get(frame.next) {
            frame.next = frame.next.saturating_add(1);
            if self.fits(frame.variable, class) {
                for (atom, truth) in frame.atoms.iter().zip(&class.answers) {
                    self.answer(*atom, Some(*truth));
                }
                self.chosen.insert(frame.variable, (class.shape, class.given.clone()));
                return true;
            }
        }
        false
    }

    fn fits(&self, variable: usize, class: &Class) -> bool {
        let relatives = self.problem.relatives.get(variable);
        relatives.into_iter().flatten().all(|relative| {
            let Some((shape, _)) = self.chosen.get(relative) else { return true };
            let of = |n: usize| self.problem.variables.get(n);
            match (of(variable), of(*relative)) {
                (Some(Variable::One(a)), Some(Variable::One(b))) => {
                    let a = Shaped { attribute: a, shape: class.shape };
                    witness::go_together(a, Shaped { attribute: b, shape: *shape })
                }
                _ => true,
            }
        })
    }

    /// The open rules at a place, and the next variable to try.
    fn look(&mut self, goal: Goal, rules: &[usize], mut tallies: [Tally; SIDES]) -> Step {
        if let Goal::Matches(rule) | Goal::Fails(rule) = goal {
            let wanted = matches!(goal, Goal::Matches(_));
            return match self.problem.rules.get(rule).map(|rule| rule.when.state(&self.answers)) {
                Some(Some(state)) if state == wanted => Step::Found,
                Some(None) => self.branch(goal, [rule].into(), tallies),
                _ => Step::Dead,
            };
        }
        let mut open = Vec::new();
        for number in rules {
            let Some(rule) = self.problem.rules.get(*number) else { continue };
            match rule.when.state(&self.answers) {
                Some(false) => {}
                None => open.push(*number),
                Some(true) => {
                    for (side, tally) in tallies.iter_mut().enumerate() {
                        if self.has(*number, side) {
                            tally.add(rule.effect, rule.verdict, rule.asks);
                        }
                    }
                }
            }
        }
        let bounds = [0, 1].map(|side| self.bounds(&tallies, side, &open));
        let [first, second] = &bounds;
        match goal {
            Goal::AtMost(verdict) if first.most <= verdict => return Step::Found,
            Goal::AtMost(verdict) if first.least > verdict => return Step::Dead,
            Goal::Milder if second.most < first.least => return Step::Found,
            Goal::Milder if second.least >= first.most => return Step::Dead,
            Goal::Differ if second.most < first.least || first.most < second.least => {
                return Step::Found;
            }
            _ => {}
        }
        open.retain(|rule| {
            [0, 1].into_iter().any(|side| self.matters(goal, *rule, side, &tallies, &bounds))
        });
        let differs = |rule: &usize| self.has(*rule, 0) != self.has(*rule, 1);
        let [a, b] = &tallies;
        if matches!(goal, Goal::Differ | Goal::Milder) && a == b && !open.iter().any(differs) {
            return Step::Dead;
        }
        if goal == Goal::Differ && bounds.iter().all(|bounds| bounds.asks_open == Openness::Settled)
        {
            let settled = |bounds: &Bounds| bounds.least == bounds.most;
            if self.united(a) != self.united(b) {
                return Step::Found;
            }
            if settled(first) && settled(second) && first.least == second.least {
                return Step::Dead;
            }
        }
        if open.is_empty() { Step::Dead } else { self.branch(goal, open, tallies) }
    }

    fn bounds(&self, tallies: &[Tally; SIDES], side: usize, open: &[usize]) -> Bounds {
        let Some(tally) = tallies.get(side) else {
            let (least, most) = (Verdict::Allow, Verdict::Deny);
            return Bounds { least, most, base_most: most, asks_open: Openness::Open };
        };
        let (mut mildest, mut grant_most, mut deny_most) = (None, tally.grant, tally.deny);
        let mut asks_open = Openness::Settled;
        for number in open.iter().filter(|rule| self.has(**rule, side)) {
            let Some(rule) = self.problem.rules.get(*number) else { continue };
            match rule.effect {
                Effect::Allow => {
                    mildest =
                        Some(mildest.map_or(rule.verdict, |one: Verdict| one.min(rule.verdict)));
                    grant_most = grant_most.max(rule.verdict);
                }
                Effect::Deny => deny_most = deny_most.max(rule.verdict),
            }
            if rule.asks.is_some_and(|asks| !tally.asks.contains(&asks)) {
                asks_open = Openness::Open;
            }
        }
        let (base_least, base_most) = match (tally.granted, mildest) {
            (true, _) => (tally.grant, grant_most),
            (false, None) => (tally.fail, tally.fail),
            (false, Some(mildest)) => (mildest.min(tally.fail), grant_most.max(tally.fail)),
        };
        let (least, most) = (base_least.max(tally.deny), base_most.max(deny_most));
        Bounds { least, most, base_most, asks_open }
    }

    /// True if a document's answer still depends on an open rule.
    fn matters(
        &self,
        goal: Goal,
        rule: usize,
        side: usize,
        tallies: &[Tally; SIDES],
        bounds: &[Bounds; SIDES],
    ) -> bool {
        let of_one = matches!(goal, Goal::AtMost(_)) && side > 0;
        if of_one || !self.has(rule, side) {
            return false;
        }
        let (Some(rule), Some(tally), Some(bounds)) =
            (self.problem.rules.get(rule), tallies.get(side), bounds.get(side))
        else {
            return true;
        };
        let asks = rule.asks.is_some_and(|asks| !tally.asks.contains(&asks));
        let of_verdict = match rule.effect {
            Effect::Deny => rule.verdict > bounds.least,
            Effect::Allow if tally.granted => rule.verdict > tally.grant.max(tally.deny),
            Effect::Allow => bounds.base_most > tally.deny,
        };
        of_verdict || (asks && goal == Goal::Differ)
    }

    fn united(&self, tally: &Tally) -> Vec<Obligation> {
        let sets = tally.asks.iter().filter_map(|asks| self.problem.asks.get(*asks));
        Obligation::unite(sets.flatten().cloned().collect())
    }

    /// Goes on with the variable that the most open rules ask about: one that a rule of only one
    /// document asks about where there is any, and rather one that the kernel fills in.
    fn branch(&mut self, goal: Goal, open: Vec<usize>, tallies: [Tally; SIDES]) -> Step {
        let mut counts: BTreeMap<usize, (bool, usize)> = BTreeMap::new();
        let mut asked: Vec<Vec<(usize, Is)>> = Vec::new();
        let mut takes = false;
        for number in &open {
            let Some(rule) = self.problem.rules.get(*number) else { continue };
            takes |= rule.effect == Effect::Allow && rule.verdict > Verdict::Allow;
            let differs = self.has(*number, 0) != self.has(*number, 1);
            let mut questions = Vec::new();
            rule.when.open(&self.answers, &mut |atom, is| questions.push((atom, is)));
            let variables: BTreeSet<usize> =
                questions.iter().filter_map(|(atom, _)| self.variable_of(*atom)).collect();
            for variable in variables {
                let count = counts.entry(variable).or_default();
                *count = (count.0 | differs, count.1.saturating_add(1));
            }
            asked.push(questions);
        }
        let best = counts.iter().max_by_key(|(variable, (differs, count))| {
            let found = self.problem.variables.get(**variable);
            (*differs, found.is_some_and(Variable::is_closed), *count)
        });
        let Some((&variable, _)) = best else { return Step::Dead };
        let combine = match goal {
            Goal::AtMost(verdict) if verdict > Verdict::Allow || !takes => Combine::OneOfEachType,
            _ => Combine::All,
        };
        let questions = self.questions(goal, variable, &open, &asked);
        let atoms = Rc::new(questions.iter().map(|question| question.0).collect());
        let classes = self.classes((variable, questions, combine));
        self.inexact |= !classes.exact;
        Step::Branch(Frame { open, tallies, variable, atoms, classes, next: 0 })
    }

    fn variable_of(&self, atom: usize) -> Option<usize> {
        self.problem.atoms.get(atom).map(|atom| atom.variable)
    }

    /// The open tests of a variable. Denies with the same effect that depend on one such test alone
    /// form one group: only whether any applies matters.
    fn questions(
        &self,
        goal: Goal,
        variable: usize,
        open: &[usize],
        asked: &[Vec<(usize, Is)>],
    ) -> Vec<Question> {
        let mut found: BTreeMap<usize, (Needs, BTreeSet<Option<Group>>)> = BTreeMap::new();
        for (number, questions) in open.iter().zip(asked) {
            let of_verdict = !matches!(goal, Goal::Matches(_) | Goal::Fails(_));
            let rule = self.problem.rules.get(*number);
            let alone = rule.filter(|rule| {
                let plain = rule.effect == Effect::Deny && rule.asks.is_none();
                of_verdict && plain && questions.len() == 1
            });
            for (atom, is) in questions {
                if self.variable_of(*atom) != Some(variable) {
                    continue;
                }
                let ask = self.problem.atoms.get(*atom).map(|atom| &atom.ask);
                let group = alone.zip(ask).filter(|_| is.joins_any()).map(|(rule, ask)| {
                    let of = self.of.get(*number).copied().unwrap_or_default();
                    (of, rule.verdict, classes::types(ask), *is)
                });
                let group = group.filter(|_| !ask.is_none_or(is_of_whole));
                let entry = found.entry(*atom).or_default();
                entry.0.add(*is);
                entry.1.insert(group);
            }
        }
        let mut groups: BTreeMap<Group, usize> = BTreeMap::new();
        let numbered = found.into_iter().map(|(atom, (needs, of))| {
            let only = if of.len() == 1 { of.into_iter().next().flatten() } else { None };
            let group = only.map(|group| {
                let next = groups.len();
                (*groups.entry(group).or_insert(next), group.3)
            });
            (atom, needs, group)
        });
        numbered.collect()
    }

    fn classes(&mut self, key: ClassesKey) -> Rc<Classes> {
        if let Some(classes) = self.kept.get(&key) {
            return classes.clone();
        }
        let (variable, questions, combine) = &key;
        let asked: Vec<Asked<'_>> = questions
            .iter()
            .filter_map(|(atom, needs, group)| {
                let atom = self.problem.atoms.get(*atom)?;
                Some(Asked { atom, needs: *needs, group: *group })
            })
            .collect();
        let family = self.problem.relatives.get(*variable).is_some_and(|all| !all.is_empty());
        let found = self.problem.variables.get(*variable);
        let classes = found.map_or(Classes { all: Vec::new(), exact: false }, |found| {
            classes::classes(found, &asked, family, *combine)
        });
        let classes = Rc::new(classes);
        if self.kept.len() >= KEPT_MAX {
            self.kept.clear();
        }
        self.kept.insert(key, classes.clone());
        classes
    }
}

/// True if it asks about a list or a bundle as a whole, and not about its parts.
const fn is_of_whole(ask: &Ask) -> bool {
    matches!(ask, Ask::Exists | Ask::Missing | Ask::Schema(_))
}

impl Tally {
    fn add(&mut self, effect: Effect, verdict: Verdict, asks: Option<usize>) {
        match effect {
            Effect::Allow => {
                self.granted = true;
                // It counts no more; so that equal tallies mean equal outcomes it is set.
                self.fail = Verdict::Allow;
                self.grant = self.grant.max(verdict);
            }
            Effect::Deny => self.deny = self.deny.max(verdict),
        }
        self.asks.extend(asks);
    }
}
