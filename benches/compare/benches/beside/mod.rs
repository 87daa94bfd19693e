//! One document in all engines.

use std::{cell::RefCell, hint::black_box};

use cedar_policy::{Authorizer, Decision, Entities, PolicySet, Request};
use syscap_compare::cedar::{Policies, parse, text};
use syscap_format::Verdict;
use syscap_kernel::{PolicyEngine, Question};
use syscap_policy::{Document, Policy, Subject};

use super::rego::{self, Rego};
use super::timing::{Figure, allocations, in_turn};
use super::world::{Call, Kernel, TOOL, declared};

/// A document, by all engines.
pub struct World<'a> {
    ours: Policy,
    questions: Vec<Question<'a>>,
    cedar: Policies,
    /// Only what is about the asked tool, as a host could hold it by tool.
    sliced: PolicySet,
    requests: Vec<Request>,
    rules: Rego,
    table: Rego,
    inputs: Vec<regorus::Value>,
}

impl<'a> World<'a> {
    pub fn new(json: &str, kernel: &'a Kernel, calls: &'a [Call]) -> Self {
        let ours = Policy::from_json(json.as_bytes()).unwrap();
        let written = ours.written();
        let cedar = Policies::of(written, &declared()).unwrap();
        let sliced = parse(&text(&slice(written), &declared()).unwrap().0).unwrap();
        let requests = calls.iter().map(|call| cedar.request(&call.scenario()).unwrap()).collect();
        let rules = Rego::new(&rego::rules(written), None);
        let (text, data) = rego::table(written);
        let table = Rego::new(&text, Some(&data));
        let input = |call: &Call| regorus::Value::from_json_str(&call.input()).unwrap();
        let questions = calls.iter().map(|call| kernel.question(call)).collect();
        let inputs = calls.iter().map(input).collect();
        Self { ours, questions, cedar, sliced, requests, rules, table, inputs }
    }

    /// Holds the engines against each other; how many calls are allowed.
    pub fn agree(&mut self) -> usize {
        let ours: Vec<bool> = self
            .questions
            .iter()
            .map(|question| match self.ours.decide(question).verdict {
                Verdict::Allow => true,
                Verdict::Deny => false,
                other => panic!("{other:?}"),
            })
            .collect();
        for (n, ours) in ours.iter().enumerate() {
            let answer = self.cedar.decide(&self.requests[n]);
            assert_eq!(answer.errors.len(), 0);
            assert_eq!(answer.decision == Decision::Allow, *ours, "Cedar, call {n}");
            assert_eq!(by_cedar(&self.sliced, &self.requests[n]), *ours, "Cedar, call {n}");
            for rego in [&mut self.rules, &mut self.table] {
                if rego.is_in_machine() {
                    assert_eq!(rego.decide(&self.inputs[n]), *ours, "Rego, call {n}");
                }
                assert_eq!(rego.interpret(&self.inputs[n]), *ours, "Rego, call {n}");
            }
        }
        ours.iter().filter(|allowed| **allowed).count()
    }
}

impl World<'_> {
    /// How many constraints match in all calls together.
    pub fn matches(&self) -> u64 {
        self.questions.iter().map(|question| self.ours.decide(question).match_count).sum()
    }

    /// All calls by syscap, Cedar, Cedar by tool, Rego's rules in the machine and interpreted,
    /// and its data the same.
    pub fn times(&mut self) -> Vec<Option<Figure>> {
        let Self { ours, questions, cedar, sliced, requests, rules, table, inputs } = self;
        let (rules, table) = (RefCell::new(rules), RefCell::new(table));
        let has_machine = rules.borrow().is_in_machine();
        let mut operations: [Option<Box<dyn FnMut() + '_>>; 7] = [
            Some(Box::new(|| {
                questions.iter().for_each(|one| drop(black_box(ours.decide(black_box(one)))));
            })),
            Some(Box::new(|| requests.iter().for_each(|one| sink(by_cedar(cedar.set(), one))))),
            Some(Box::new(|| requests.iter().for_each(|one| sink(by_cedar(sliced, one))))),
            Some(Box::new(|| inputs.iter().for_each(|one| sink(rules.borrow_mut().decide(one))))),
            Some(Box::new(|| {
                inputs.iter().for_each(|one| sink(rules.borrow_mut().interpret(one)));
            })),
            Some(Box::new(|| inputs.iter().for_each(|one| sink(table.borrow_mut().decide(one))))),
            Some(Box::new(|| {
                inputs.iter().for_each(|one| sink(table.borrow_mut().interpret(one)));
            })),
        ];
        if !has_machine {
            operations[3] = None;
        }
        in_turn(&mut operations)
    }

    /// Allocations of all calls together: syscap, Cedar, Cedar by tool, and Rego's machine.
    pub fn allocations(&mut self) -> [Option<usize>; 5] {
        let Self { ours, questions, cedar, sliced, requests, rules, table, inputs } = self;
        let by = |set: &PolicySet| {
            allocations(|| requests.iter().for_each(|one| sink(by_cedar(set, one))))
        };
        let rego = |rego: &mut Rego| {
            let has_machine = rego.is_in_machine();
            has_machine
                .then(|| allocations(|| inputs.iter().for_each(|one| sink(rego.decide(one)))))
        };
        [
            Some(allocations(|| {
                questions.iter().for_each(|one| drop(black_box(ours.decide(one))));
            })),
            Some(by(cedar.set())),
            Some(by(sliced)),
            rego(rules),
            rego(table),
        ]
    }
}

fn sink(decision: bool) {
    black_box(decision);
}

fn by_cedar(set: &PolicySet, request: &Request) -> bool {
    let response = Authorizer::new().is_authorized(request, set, &Entities::empty());
    response.decision() == Decision::Allow
}

/// The constraints of the asked tool.
fn slice(document: &Document) -> Document {
    let mut sliced = document.clone();
    sliced.constraints.retain(|constraint| match &constraint.subject {
        Subject::Tool(tool) => tool.as_str() == TOOL,
        _ => true,
    });
    sliced
}
