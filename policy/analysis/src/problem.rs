//! One or two documents, made ready for the search.

use alloc::{collections::BTreeMap, format, string::String, vec::Vec};

use syscap_format::{EffectClass, Obligation, ToolId, Verdict};
use syscap_policy::semantics::{self, of_grant};
use syscap_policy::{
    Ask, Attribute, Condition, Constraint, Document, Effect, Given, Scenario, Subject, Test, Truth,
    Values, WithRisk,
};

use super::classes::tools;
use super::formula::{Formula, Is};
use super::variable::{Atom, Variable};

/// The first and the second document. A single document is both.
pub(super) const SIDES: usize = 2;

/// A constraint of one document or of both.
pub(super) struct Rule {
    pub(super) of: [bool; SIDES],
    pub(super) subject: Subject,
    pub(super) effect: Effect,
    /// The verdict that it raises to where it matches.
    pub(super) verdict: Verdict,
    /// For an allow, the verdict if none grants.
    pub(super) fail: Verdict,
    /// Its set of obligations, by number.
    pub(super) asks: Option<usize>,
    pub(super) when: Formula,
}

/// A call's tool and class, with the rules that are about it.
pub(super) struct Call {
    pub(super) tool: ToolId,
    pub(super) class: EffectClass,
    pub(super) rules: Vec<usize>,
    pub(super) answers: Vec<(usize, Truth)>,
}

#[derive(Default)]
struct Index {
    all: Vec<usize>,
    tools: BTreeMap<ToolId, Vec<usize>>,
    classes: BTreeMap<EffectClass, Vec<usize>>,
}

pub(super) struct Problem<'a> {
    pub(super) documents: [&'a Document; SIDES],
    pub(super) atoms: Vec<Atom>,
    pub(super) variables: Vec<Variable>,
    /// For each variable, those of the same fact or argument.
    pub(super) relatives: Vec<Vec<usize>>,
    pub(super) rules: Vec<Rule>,
    /// For each constraint of the first document, its rule.
    pub(super) rule_of: Vec<usize>,
    pub(super) asks: Vec<Vec<Obligation>>,
    index: Index,
    call_atoms: Vec<usize>,
    tools: (Vec<ToolId>, bool),
    numbers: BTreeMap<(Test, Option<usize>), usize>,
    variable_numbers: BTreeMap<Variable, usize>,
    rule_numbers: BTreeMap<Key, usize>,
}

/// The key by which a search treats two constraints as the same.
type Key = (Subject, Effect, Verdict2, Option<usize>, Formula);
/// The verdicts of a constraint where it matches and where not, by code.
type Verdict2 = (u64, u64);

impl<'a> Problem<'a> {
    pub(super) fn new(first: &'a Document, second: &'a Document) -> Self {
        let mut problem = Self {
            documents: [first, second],
            atoms: Vec::new(),
            variables: Vec::new(),
            relatives: Vec::new(),
            rules: Vec::new(),
            rule_of: Vec::new(),
            asks: Vec::new(),
            index: Index::default(),
            call_atoms: Vec::new(),
            tools: (Vec::new(), true),
            numbers: BTreeMap::new(),
            variable_numbers: BTreeMap::new(),
            rule_numbers: BTreeMap::new(),
        };
        let same_risk = first.risk == second.risk;
        let mut asks = BTreeMap::new();
        for (side, document) in problem.documents.into_iter().enumerate() {
            for constraint in &document.constraints {
                let rule = problem.add(constraint, side, same_risk, &mut asks);
                if side == 0 {
                    problem.rule_of.push(rule);
                }
            }
        }
        problem.relate();
        problem.index();
        problem.tools = problem.named_tools();
        problem
    }

    fn add(
        &mut self,
        constraint: &Constraint,
        side: usize,
        same_risk: bool,
        sets: &mut BTreeMap<String, usize>,
    ) -> usize {
        let (is, verdict) = match constraint.effect {
            Effect::Allow => (Is::True, of_grant(constraint)),
            Effect::Deny => (Is::NotFalse, constraint.on_fail.verdict()),
        };
        let fail = constraint.on_fail.verdict();
        let risk_side = (!same_risk).then_some(side);
        let when = self.formula(&constraint.when, is, risk_side);
        let obligations = Obligation::unite(constraint.obligations.clone());
        let asks = (!obligations.is_empty()).then(|| {
            let name: Vec<String> = obligations.iter().map(|one| format!("{one}")).collect();
            *sets.entry(name.join(",")).or_insert_with(|| {
                self.asks.push(obligations);
                self.asks.len().saturating_sub(1)
            })
        });
        let key = (
            constraint.subject.clone(),
            constraint.effect,
            (verdict.code(), fail.code()),
            asks,
            when.clone(),
        );
        let rules = &mut self.rules;
        let number = *self.rule_numbers.entry(key).or_insert_with(|| {
            let (subject, effect) = (constraint.subject.clone(), constraint.effect);
            rules.push(Rule { of: [false; SIDES], subject, effect, verdict, fail, asks, when });
            rules.len().saturating_sub(1)
        });
        if let Some(of) = self.rules.get_mut(number).and_then(|rule| rule.of.get_mut(side)) {
            *of = true;
        }
        number
    }

    fn formula(&mut self, when: &Condition, is: Is, risk_side: Option<usize>) -> Formula {
        Formula::of(when, is, &mut |test| {
            let side = risk_side.filter(|_| test.attribute == Attribute::Risk);
            let key = (test.clone(), side);
            if let Some(number) = self.numbers.get(&key) {
                return *number;
            }
            let number = self.atoms.len();
            let variable = self.variable(Variable::of(&test.attribute));
            let (attribute, ask) = (test.attribute.clone(), test.ask.clone());
            self.atoms.push(Atom { attribute, ask, variable, side });
            self.numbers.insert(key, number);
            number
        })
    }

    /// The number of a variable, a new one where it has none yet.
    fn variable(&mut self, variable: Variable) -> usize {
        let variables = &mut self.variables;
        *self.variable_numbers.entry(variable.clone()).or_insert_with(|| {
            variables.push(variable);
            variables.len().saturating_sub(1)
        })
    }

    pub(super) fn number_of(&self, variable: &Variable) -> Option<usize> {
        self.variable_numbers.get(variable).copied()
    }

    fn relate(&mut self) {
        let mut families: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        for (number, variable) in self.variables.iter().enumerate() {
            if let Some(root) = variable.root() {
                families.entry(root).or_default().push(number);
            }
        }
        self.relatives = self.variables.iter().map(|_| Vec::new()).collect();
        for family in families.values() {
            for member in family {
                let others = family.iter().copied().filter(|other| other != member);
                if let Some(relatives) = self.relatives.get_mut(*member) {
                    relatives.extend(others);
                }
            }
        }
    }

    fn index(&mut self) {
        for (number, rule) in self.rules.iter().enumerate() {
            match &rule.subject {
                Subject::All => self.index.all.push(number),
                Subject::Tool(tool) => {
                    self.index.tools.entry(tool.clone()).or_default().push(number);
                }
                Subject::Capability(class) => {
                    self.index.classes.entry(*class).or_default().push(number);
                }
            }
        }
        let of_call = |atom: &Atom| Variable::of(&atom.attribute) == Variable::Call;
        let numbered = self.atoms.iter().enumerate();
        self.call_atoms = numbered.filter(|(_, atom)| of_call(atom)).map(|(n, _)| n).collect();
    }

    /// Every tool that is named, and others that stand for the rest; whether those are exact.
    fn named_tools(&self) -> (Vec<ToolId>, bool) {
        let mut named: Vec<ToolId> = self.index.tools.keys().cloned().collect();
        named.extend(self.documents.iter().flat_map(|document| document.risk.keys().cloned()));
        let asks: Vec<&Ask> = self
            .call_atoms
            .iter()
            .filter_map(|atom| self.atoms.get(*atom))
            .filter(|atom| atom.attribute == Attribute::Tool)
            .map(|atom| &atom.ask)
            .collect();
        tools(named, &asks)
    }

    /// Tools to look at, and whether they stand for all.
    pub(super) const fn tools(&self) -> (&Vec<ToolId>, bool) {
        (&self.tools.0, self.tools.1)
    }

    pub(super) fn call(&self, tool: &ToolId, class: EffectClass) -> Call {
        let mut rules = self.index.all.clone();
        rules.extend(self.index.tools.get(tool).into_iter().flatten());
        rules.extend(self.index.classes.get(&class).into_iter().flatten());
        rules.sort_unstable();
        let given = of_call(tool, class);
        let sides = self.documents.map(|document| WithRisk::new(document, &given));
        let answers = self.call_atoms.iter().filter_map(|number| {
            let atom = self.atoms.get(*number)?;
            let value = sides.get(atom.side.unwrap_or(0))?.value(&atom.attribute);
            Some((*number, semantics::ask(&atom.ask, &value)))
        });
        let answers = answers.collect();
        Call { tool: tool.clone(), class, rules, answers }
    }
}

/// The facts about a call by its tool and class.
pub(super) fn of_call(tool: &ToolId, class: EffectClass) -> Scenario {
    Scenario::new()
        .with(Attribute::Tool, Given::text(tool.as_str()))
        .with(Attribute::EffectClass, Given::text(class.name()))
}
