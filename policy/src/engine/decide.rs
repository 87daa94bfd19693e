//! One decision: every constraint that applies is evaluated, none ends it early.

use alloc::{boxed::Box, vec::Vec};

use syscap_kernel::{
    field::List,
    id::ToolId,
    limits::MATCHES_MAX,
    manifest::EffectClass,
    obligation::Obligation,
    policy::{Decision, Verdict, matches_digest},
};

use super::{
    compile::{Asked, Group, Op, place},
    source::Source,
    tools::Tools,
    view::{Key, Tag, View},
};
use crate::{
    Truth,
    document::{Constraint, Document, Effect, Subject},
};

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
        let tool = source.tool().and_then(|tool| self.names.find(tool));
        if let Some(group) = tool.and_then(|number| self.tools.get(number)) {
            group.run(source, &mut run);
        }
        let class = source.class().and_then(|class| {
            let number = usize::try_from(class.code()).ok()?.checked_sub(1)?;
            self.classes.get(number)
        });
        if let Some(group) = class {
            group.run(source, &mut run);
        }
        self.all.run(source, &mut run);
        run.matched.sort();
        run
    }
}

/// What the constraints said. Places are those in the document.
#[derive(Default)]
pub(super) struct Run {
    pub(super) matched: Places,
    granted: First,
    /// Allows that did not grant.
    failed: First,
    denied: First,
}

/// The first place of each verdict that was contributed.
#[derive(Clone, Copy, Default)]
struct First([Option<u16>; 5]);

impl First {
    fn note(&mut self, verdict: Verdict, place: u16) {
        if let Some(first) = usize::try_from(verdict.code()).ok().and_then(|n| self.0.get_mut(n)) {
            *first = Some(first.map_or(place, |old| old.min(place)));
        }
    }

    fn of(&self, verdict: Verdict) -> Option<u16> {
        usize::try_from(verdict.code()).ok().and_then(|n| self.0.get(n).copied().flatten())
    }

    fn strictest(&self) -> Option<Verdict> {
        Verdict::ALL.iter().rev().copied().find(|verdict| self.of(*verdict).is_some())
    }
}

impl Run {
    /// The verdict, and the place of the constraint that decided.
    pub(super) fn verdict(&self) -> (Verdict, Option<u16>) {
        let granted = self.granted.strictest();
        let (base, allows) = match granted {
            Some(granted) => (granted, &self.granted),
            None => (self.failed.strictest().unwrap_or(Verdict::Deny), &self.failed),
        };
        let verdict = self.denied.strictest().map_or(base, |denied| denied.max(base));
        let places = [allows.of(verdict), self.denied.of(verdict)];
        (verdict, places.into_iter().flatten().min())
    }

    pub(super) fn decision(&self, document: &Document) -> Decision {
        let (verdict, deciding) = self.verdict();
        let find = |place: &u16| document.constraints.get(usize::from(*place));
        let places = self.matched.as_slice();
        let mut matches = Vec::with_capacity(places.len().min(MATCHES_MAX));
        let mut obligations = Vec::new();
        for constraint in places.iter().filter_map(find) {
            if matches.len() < MATCHES_MAX {
                matches.push(constraint.id.clone());
            }
            obligations.extend_from_slice(&constraint.obligations);
        }
        if obligations.len() > 1 {
            obligations = Obligation::unite(obligations);
        }
        let digest = (places.len() > MATCHES_MAX).then(|| matches_digest(places));
        Decision {
            verdict,
            deciding: deciding.as_ref().and_then(find).map(|constraint| constraint.id.clone()),
            matches: List(matches),
            match_count: u64::try_from(places.len()).unwrap_or(u64::MAX),
            matches_digest: digest,
            obligations: List(obligations),
        }
    }
}

/// Places of constraints; a list is made only where there are many.
pub(super) struct Places {
    few: [u16; FEW],
    count: usize,
    many: Vec<u16>,
}

/// Places that stand without a list.
const FEW: usize = 64;

impl Default for Places {
    fn default() -> Self {
        Self { few: [0; FEW], count: 0, many: Vec::new() }
    }
}

impl Places {
    fn push(&mut self, place: u16) {
        if let Some(free) = self.few.get_mut(self.count) {
            *free = place;
            self.count = self.count.saturating_add(1);
            return;
        }
        if self.many.is_empty() {
            self.many.extend_from_slice(&self.few);
        }
        self.many.push(place);
    }

    pub(super) fn as_slice(&self) -> &[u16] {
        if self.many.is_empty() {
            self.few.get(..self.count).unwrap_or_default()
        } else {
            &self.many
        }
    }

    fn sort(&mut self) {
        let list = if self.many.is_empty() {
            self.few.get_mut(..self.count).unwrap_or_default()
        } else {
            &mut self.many
        };
        if !list.is_sorted() {
            list.sort_unstable();
        }
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
        let mut asking = Asking { group: self, source, keys, views };
        for rule in &self.rules {
            let (truth, _) = asking.part(place(rule.start));
            match (rule.effect, truth) {
                (Effect::Deny, Truth::False) => {}
                (Effect::Deny, _) => {
                    run.denied.note(rule.on_fail, rule.place);
                    run.matched.push(rule.place);
                }
                (Effect::Allow, Truth::True) => {
                    run.granted.note(rule.granted, rule.place);
                    run.matched.push(rule.place);
                }
                (Effect::Allow, _) => run.failed.note(rule.on_fail, rule.place),
            }
        }
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
    /// What is known of a part, and the place behind it. Most are tests: these make no call.
    #[inline]
    fn part(&mut self, at: usize) -> (Truth, usize) {
        match self.group.code.get(at) {
            Some(Op::Test { slot, ask }) => (self.test(*slot, *ask), at.saturating_add(1)),
            _ => self.joint(at),
        }
    }

    #[inline(never)]
    fn joint(&mut self, at: usize) -> (Truth, usize) {
        let next = at.saturating_add(1);
        match self.group.code.get(at) {
            // Once a part does not hold, the others of `all` change nothing.
            Some(Op::All { end }) => {
                let (mut truth, mut at, end) = (Truth::True, next, place(*end));
                while at < end && truth != Truth::False {
                    let (part, behind) = self.part(at);
                    truth = truth.and(part);
                    at = behind;
                }
                (truth, end)
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
            Some(Op::Test { .. }) | None => (Truth::Unknown, usize::MAX),
        }
    }

    #[inline]
    fn test(&mut self, slot: u32, asked: Asked) -> Truth {
        let slot = place(slot);
        match self.keys.get(slot) {
            Some(key) if key.tag != Tag::Unread => match key.ask(asked) {
                Some(truth) => truth,
                None => self.look(slot, asked),
            },
            _ => {
                self.read(slot);
                self.look(slot, asked)
            }
        }
    }

    #[inline(never)]
    fn read(&mut self, slot: usize) {
        let source = self.source;
        let plan = self.group.slots.get(slot);
        if let (Some(plan), Some(key), Some(view)) =
            (plan, self.keys.get_mut(slot), self.views.get_mut(slot))
        {
            let read = View::of(source.read(&plan.attribute), plan);
            *key = read.key();
            *view = Some(read);
        }
    }

    fn look(&self, slot: usize, asked: Asked) -> Truth {
        match self.views.get(slot) {
            Some(Some(view)) => view.ask(asked, self.group),
            _ => Truth::Unknown,
        }
    }
}
