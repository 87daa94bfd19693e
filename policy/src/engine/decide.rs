//! One decision: every constraint that applies is evaluated, none ends it early.

use alloc::{boxed::Box, vec::Vec};
use core::ops::Range;

use syscap_format::{EffectClass, ToolId};

use super::code::{Asked, Op, Rule, Test};
use super::compile::Group;
use super::gates::Gates;
use super::number::place;
use super::run::Run;
use super::source::Source;
use super::tools::Tools;
use super::view::{Key, Tag, View};
use crate::document::{Constraint, Document, Effect, Subject};
use crate::truth::Truth;

/// A document, ready to be asked: its constraints by subject.
pub(super) struct Compiled {
    all: Group,
    classes: Box<[Group]>,
    tools: Box<[Group]>,
    names: Tools,
}

impl Compiled {
    pub(super) fn new(document: &Document) -> Self {
        let mut placed: Vec<(u16, &Constraint)> =
            (0..=u16::MAX).zip(&document.constraints).collect();
        // Stable: within a subject the order of ids stays.
        placed.sort_by(|(_, a), (_, b)| a.subject.cmp(&b.subject));
        let of = |wanted: &Subject| {
            let start = placed.partition_point(|(_, found)| found.subject < *wanted);
            let rest = placed.get(start..).unwrap_or_default();
            let end = rest.partition_point(|(_, found)| found.subject == *wanted);
            Group::new(rest.get(..end).unwrap_or_default().iter().copied())
        };
        let classes = EffectClass::ALL.iter().map(|class| of(&Subject::Capability(*class)));
        let mut names: Vec<ToolId> = placed
            .iter()
            .filter_map(|(_, constraint)| match &constraint.subject {
                Subject::Tool(tool) => Some(tool.clone()),
                _ => None,
            })
            .collect();
        names.dedup();
        Self {
            all: of(&Subject::All),
            classes: classes.collect(),
            tools: names.iter().map(|tool| of(&Subject::Tool(tool.clone()))).collect(),
            names: Tools::new(names),
        }
    }

    /// Evaluates all constraints that apply.
    #[inline]
    pub(super) fn run<S: Source>(&self, source: &S) -> Run {
        let mut run = Run::default();
        self.groups(source).into_iter().flatten().for_each(|group| group.run(source, &mut run));
        run.matched.sort();
        run
    }

    /// The allows that apply, by id.
    pub(super) fn allows<'d, S: Source>(
        &self,
        source: &S,
        document: &'d Document,
    ) -> Vec<&'d Constraint> {
        let groups = self.groups(source).into_iter().flatten();
        let rules = groups.flat_map(|group| &group.rules);
        let mut places: Vec<u16> =
            rules.filter(|rule| rule.effect == Effect::Allow).map(|rule| rule.place).collect();
        places.sort_unstable();
        let find = |place| document.constraints.get(usize::from(place));
        places.into_iter().filter_map(find).collect()
    }

    /// The groups of a call: of its tool, of its effect class, and of all calls.
    #[inline]
    fn groups<S: Source>(&self, source: &S) -> [Option<&Group>; 3] {
        let tool = source.tool().and_then(|tool| self.names.find(tool));
        let class = source.class().and_then(|class| {
            let number = usize::try_from(class.code()).ok()?.checked_sub(1)?;
            self.classes.get(number)
        });
        [tool.and_then(|number| self.tools.get(number)), class, Some(&self.all)]
    }
}

/// Attributes that are kept without a list.
const FEW_SLOTS: usize = 12;

impl Group {
    fn run<S: Source>(&self, source: &S, run: &mut Run) {
        if self.rules.is_empty() {
            return;
        }
        let count = self.slots.len();
        let (mut few_keys, mut few_views) = ([Key::UNREAD; FEW_SLOTS], [const { None }; FEW_SLOTS]);
        let (mut many_keys, mut many_views) = (Vec::new(), Vec::new());
        let (keys, views) = match (few_keys.get_mut(..count), few_views.get_mut(..count)) {
            (Some(keys), Some(views)) => (keys, views),
            _ => {
                many_keys.resize(count, Key::UNREAD);
                many_views.resize_with(count, || None);
                (&mut *many_keys, &mut *many_views)
            }
        };
        run.failed.join(&self.failed);
        let mut asking = Asking { group: self, source, keys, views };
        let found = self.gates.first().map_or(self.rules.len(), |gates| gates.rules.start);
        asking.each(0..found, run);
        self.gates.iter().for_each(|gates| asking.found(gates, run));
    }
}

/// A group's conditions, asked about one call. Each attribute is read when it is first asked
/// about, and once.
struct Asking<'g, 's, 'k, S> {
    group: &'g Group,
    source: &'s S,
    keys: &'k mut [Key],
    views: &'k mut [Option<View<'s>>],
}

impl<S: Source> Asking<'_, '_, '_, S> {
    /// Asks the rules whose gate what a slot holds meets, and all of them where its number does
    /// not say which these are.
    fn found(&mut self, gates: &Gates, run: &mut Run) {
        let group = self.group;
        let slot = place(gates.slot);
        let first = self.key(slot).and_then(|key| gates.first(key));
        let (Some(mut constant), Some(slot)) = (first, group.slots.get(slot)) else {
            return self.each(gates.rules.clone(), run);
        };
        while let Some(rules) = gates.of(constant) {
            let rules = group.rules.get(rules).unwrap_or_default();
            rules.iter().for_each(|rule| self.rest(Truth::True, rule, run));
            constant = gates.next(constant, slot);
        }
    }

    /// Asks rules one by one.
    fn each(&mut self, rules: Range<usize>, run: &mut Run) {
        for rule in self.group.rules.get(rules).unwrap_or_default() {
            let gate = rule.gate.map_or(Truth::True, |gate| self.test(gate));
            if gate != Truth::False {
                self.rest(gate, rule, run);
            }
        }
    }

    /// Asks what stands behind a rule's gate, and notes what comes of it.
    fn rest(&mut self, gate: Truth, rule: &Rule, run: &mut Run) {
        let matched = match (rule.effect, self.all(gate, place(rule.start), place(rule.end))) {
            (Effect::Allow, Truth::True) => &mut run.granted,
            (Effect::Deny, Truth::True | Truth::Unknown) => &mut run.denied,
            _ => return,
        };
        matched.note(rule.verdict, rule.place);
        run.matched.push(rule.place);
    }

    /// The truth of parts that must all hold. Once one does not, the others change nothing.
    #[inline]
    fn all(&mut self, mut truth: Truth, mut at: usize, end: usize) -> Truth {
        while at < end && truth != Truth::False {
            let (part, behind) = self.part(at);
            truth = truth.and(part);
            at = behind;
        }
        truth
    }

    /// The truth of a part, and the place behind it. Most are tests: these make no call.
    #[inline]
    fn part(&mut self, at: usize) -> (Truth, usize) {
        match self.group.code.get(at) {
            Some(Op::Test(test)) => (self.test(*test), at.saturating_add(1)),
            _ => self.joint(at),
        }
    }

    #[inline(never)]
    fn joint(&mut self, at: usize) -> (Truth, usize) {
        let next = at.saturating_add(1);
        match self.group.code.get(at) {
            Some(Op::All { end }) => {
                let end = place(*end);
                (self.all(Truth::True, next, end), end)
            }
            Some(Op::Any { end }) => {
                let (mut truth, mut at, end) = (Truth::False, next, place(*end));
                while at < end && truth != Truth::True {
                    let (part, behind) = self.part(at);
                    truth = truth.or(part);
                    at = behind;
                }
                (truth, end)
            }
            Some(Op::Not) => {
                let (truth, next) = self.part(next);
                (truth.negate(), next)
            }
            // Not so: tests are no joints, and every start and end is within the code.
            Some(Op::Test(_)) | None => (Truth::Unknown, usize::MAX),
        }
    }

    #[inline]
    fn test(&mut self, Test { slot, ask }: Test) -> Truth {
        let slot = place(slot);
        match self.keys.get(slot) {
            Some(key) if key.tag != Tag::Unread => match key.ask(ask) {
                Some(truth) => truth,
                None => self.look(slot, ask),
            },
            _ => {
                self.read(slot);
                self.look(slot, ask)
            }
        }
    }

    fn key(&mut self, slot: usize) -> Option<Key> {
        if self.keys.get(slot)?.tag == Tag::Unread {
            self.read(slot);
        }
        self.keys.get(slot).copied()
    }

    #[inline(never)]
    fn read(&mut self, slot: usize) {
        let source = self.source;
        let plan = self.group.slots.get(slot);
        if let (Some(plan), Some(key), Some(view)) =
            (plan, self.keys.get_mut(slot), self.views.get_mut(slot))
        {
            let read = View::of(source.read(&plan.attribute), plan);
            *key = read.key;
            *view = Some(read);
        }
    }

    fn look(&self, slot: usize, ask: Asked) -> Truth {
        match self.views.get(slot) {
            Some(Some(view)) => view.ask(ask, &self.group.constants),
            _ => Truth::Unknown,
        }
    }
}
