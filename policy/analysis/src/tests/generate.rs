//! Small random documents.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use alloc::{format, vec};

use syscap_format::{
    AgentId, Cidr, ConstraintId, EffectClass, Host, Obligation, ParamType, ToolId,
};
use syscap_policy::{
    Ask, Attribute, Condition, Constant, Constraint, Document, Effect, OnFail, Subject, Test,
};

/// Constants that are addresses, in more than one spelling. [`brute`](super::brute) has these as
/// values, and one more of each part that blocks here cut addresses into.
pub(super) const ADDRESSES: [&str; 12] = [
    "10.1.0.1",
    "::ffff:10.1.0.1",
    "::ffff:a01:1",
    "10.0.0.0",
    "::ffff:10.0.0.0",
    "10.1.0.0",
    "0.0.0.0",
    "::",
    "::1",
    "0000:0000:0000:0000:0000:0000:0000:0001",
    "fc00::",
    "x",
];

/// Constants that are hosts, in more than one spelling; values have one more below each.
pub(super) const HOSTS: [&str; 6] = ["b", "a.b", "https://A.b/", "a.b.", "c.a.b", "a.c.a.b"];

/// Constants that are paths; values have one more below each.
pub(super) const PATHS: [&str; 8] =
    ["ws", "ws/a", "ws/a/b", "ws/other", "other", "workspace/a", "a.b", "b"];

/// xorshift: the same numbers everywhere.
pub(super) struct Random(u64);

pub(super) fn document(mut constraints: Vec<Constraint>) -> Document {
    constraints.sort_by(|a, b| a.id.cmp(&b.id));
    Document { constraints, risk: BTreeMap::new() }
}

pub(super) fn constraint(id: &str, effect: Effect, when: Condition) -> Constraint {
    Constraint {
        id: ConstraintId::new(id).unwrap(),
        effect,
        subject: Subject::All,
        when,
        on_fail: OnFail::Block,
        reason: Box::from("a reason"),
        obligations: Vec::new(),
    }
}

pub(super) fn test(attribute: &str, ask: Ask) -> Condition {
    let attribute = Attribute::parse(attribute).unwrap();
    Condition::Test(Test { attribute, ask })
}

pub(super) fn text(text: &str) -> Constant {
    Constant::Text(Box::from(text))
}

pub(super) fn has_tests(condition: &Condition) -> bool {
    match condition {
        Condition::Test(_) => true,
        Condition::Not(part) => has_tests(part),
        Condition::All(parts) | Condition::Any(parts) => parts.iter().any(has_tests),
    }
}

const POOLS: [&[&str]; 9] = [
    &["args.a", "args.b"],
    &["args.r", "call.agent"],
    &["args.a", "args.a.x", "args.a.x.y"],
    &["fact.f", "fact.f.x", "fact.f.y"],
    &["args.r", "args.r.x", "risk"],
    &["call.tool", "call.effect", "risk", "call.agent"],
    &["now.ms", "now.hour", "now.weekday", "call.agent"],
    &["budget.calls", "history.calls.tool.minute", "token.read_only", "fact.f"],
    &["args.t", "args.b"],
];

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..8 {
            random.below(2);
        }
        random
    }

    pub(super) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from((self.0 >> 11) % u64::try_from(n).unwrap()).unwrap()
    }

    pub(super) fn of<T: Clone>(&mut self, from: &[T]) -> T {
        let n = self.below(from.len());
        from[n].clone()
    }

    /// One allow of what is in a block, or below a host or a path, and none of some constants.
    pub(super) fn excepting(&mut self) -> Document {
        let some = |random: &mut Self, of: &[&str]| {
            let some = of.iter().filter(|_| random.below(4) > 0).map(|constant| text(constant));
            Ask::In(some.chain([text("x")]).collect())
        };
        let (attribute, is_in, named) = match self.below(3) {
            0 => ("args.r", Ask::Domain(Host::new("a.b").unwrap()), some(self, &HOSTS)),
            1 => ("args.r", Ask::Within("ws".into()), some(self, &PATHS)),
            _ => ("args.t", self.block(), some(self, &ADDRESSES)),
        };
        let other = Condition::Not(Box::new(test(attribute, named)));
        let mut all = vec![test(attribute, is_in), other];
        if self.below(2) == 0 {
            let more = test(attribute, self.about_addresses());
            all.push(Condition::Not(Box::new(more)));
        }
        document(vec![constraint("a", Effect::Allow, Condition::All(all))])
    }

    pub(super) fn tool(&mut self) -> ToolId {
        ToolId::new(self.of(&["fs.read", "fs.write", "net.get", "other"])).unwrap()
    }

    pub(super) fn agent(&mut self) -> AgentId {
        AgentId::new(self.of(&["team", "team/a", "b"])).unwrap()
    }

    /// Two documents: unlike, or one made from the other with or without a change in meaning.
    pub(super) fn pair(&mut self) -> (Document, Document) {
        let pool = self.of(&POOLS);
        let first = self.document(pool);
        let second = match self.below(4) {
            0 => self.document(pool),
            1 => self.reworded(&first),
            _ => self.changed(&first, pool),
        };
        (first, second)
    }

    fn document(&mut self, pool: &[&str]) -> Document {
        let count = self.below(5) + 1;
        let mut made = document((0..count).map(|n| self.constraint(n, pool)).collect());
        if self.below(4) == 0 {
            made.risk.insert(self.tool(), u8::try_from(self.below(101)).unwrap());
        }
        made
    }

    fn constraint(&mut self, n: usize, pool: &[&str]) -> Constraint {
        let effect = self.of(&[Effect::Allow, Effect::Allow, Effect::Deny]);
        let when = self.condition(pool, 2);
        let mut made = constraint(&format!("c{n}"), effect, when);
        made.subject = match self.below(4) {
            0 => Subject::Tool(self.tool()),
            1 => Subject::Capability(self.of(EffectClass::ALL)),
            _ => Subject::All,
        };
        made.on_fail = self.of(&[OnFail::Ask, OnFail::Defer, OnFail::Block]);
        let takes = [Obligation::read_only(), Obligation::result_cap(10)];
        let takes = [takes[0].clone(), takes[1].clone(), Obligation::result_cap(20)];
        if effect == Effect::Deny && self.below(4) == 0 {
            made.on_fail = OnFail::Degrade;
            made.obligations.push(self.of(&takes));
        } else if self.below(5) == 0 {
            let notify = Obligation::notify("a");
            let any = effect == Effect::Allow || made.on_fail == OnFail::Ask;
            made.obligations.push(if any { self.of(&takes) } else { notify });
        }
        made
    }

    fn condition(&mut self, pool: &[&str], depth: usize) -> Condition {
        let kind = if depth == 0 { 9 } else { self.below(10) };
        match kind {
            0..=2 => Condition::All(self.conditions(pool, depth - 1)),
            3 | 4 => Condition::Any(self.conditions(pool, depth - 1)),
            5 => Condition::Not(Box::new(self.condition(pool, depth - 1))),
            _ => {
                let attribute = self.of(pool);
                let ask = self.ask(attribute);
                test(attribute, ask)
            }
        }
    }

    fn conditions(&mut self, pool: &[&str], depth: usize) -> Vec<Condition> {
        (0..self.below(4)).map(|_| self.condition(pool, depth)).collect()
    }

    fn ask(&mut self, attribute: &str) -> Ask {
        match attribute {
            "call.tool" => match self.below(4) {
                0 => Ask::Prefix(self.of(&["fs", "fs.", "net.get", "n"]).into()),
                1 => Ask::Suffix(self.of(&["read", ".get", "x"]).into()),
                2 => Ask::In(vec![self.tool_text(), self.tool_text()]),
                _ => Ask::Eq(self.tool_text()),
            },
            "call.effect" => {
                let class = self.of(EffectClass::ALL);
                Ask::Eq(text(class.name()))
            }
            "call.agent" => match self.below(3) {
                0 => Ask::Eq(text(self.agent().as_str())),
                _ => Ask::Within(Box::from(self.agent().as_str())),
            },
            "risk" => self.integer(&[0, 10, 30, 60, 90]),
            "now.ms" => self.integer(&[0, 1, 3_599_999, 86_400_000, 100_000_000]),
            "now.hour" => self.integer(&[0, 1, 12, 23]),
            "now.weekday" => self.integer(&[1, 4, 5, 7]),
            "budget.calls" | "call.args_bytes" | "history.calls.tool.minute" => {
                self.integer(&[0, 3, 4])
            }
            "token.read_only" => Ask::Eq(Constant::Bool(self.below(2) == 0)),
            "args.r" => self.about_resources(),
            "args.t" => self.about_addresses(),
            _ => self.about_data(),
        }
    }

    fn tool_text(&mut self) -> Constant {
        text(self.tool().as_str())
    }

    fn integer(&mut self, from: &[i128]) -> Ask {
        let bound = self.of(from);
        let other = self.of(from);
        match self.below(6) {
            0 => Ask::Lt(bound),
            1 => Ask::Le(bound),
            2 => Ask::Gt(bound),
            3 => Ask::Ge(bound),
            4 => Ask::In(vec![Constant::Int(bound), Constant::Int(other)]),
            _ => Ask::Eq(Constant::Int(bound)),
        }
    }

    fn constant(&mut self) -> Constant {
        match self.below(6) {
            0 => Constant::Int(self.of(&[0, 3])),
            1 => Constant::Bool(self.below(2) == 0),
            _ => text(self.of(&["", "a", "ab", "b", "ba", "aba"])),
        }
    }

    fn about_data(&mut self) -> Ask {
        match self.below(9) {
            0 => Ask::Prefix(self.of(&["", "a", "ab", "b"]).into()),
            1 => Ask::Suffix(self.of(&["a", "b", "ba"]).into()),
            2 => Ask::Exists,
            3 => Ask::Missing,
            4 => Ask::In(vec![self.constant(), self.constant()]),
            5 => Ask::Schema(self.of(ParamType::ALL)),
            6 => self.integer(&[0, 3]),
            _ => Ask::Eq(self.constant()),
        }
    }

    fn about_resources(&mut self) -> Ask {
        let place = self.of(&PATHS);
        match self.below(8) {
            0 | 1 => Ask::Within(place.into()),
            2 => Ask::Domain(Host::new(self.of(&["b", "a.b", "c.a.b", "c"])).unwrap()),
            3 => self.about_addresses(),
            4 => Ask::In(vec![text(place), text(self.of(&HOSTS)), Constant::Int(3)]),
            5 => self.integer(&[0, 3]),
            6 => self.of(&[Ask::Exists, Ask::Missing, Ask::Schema(ParamType::Path)]),
            _ => match self.below(2) {
                0 => Ask::Eq(text(self.of(&HOSTS))),
                _ => Ask::Eq(text(self.of(&PATHS))),
            },
        }
    }

    fn block(&mut self) -> Ask {
        let (address, prefix) = self.of(&[
            ("0.0.0.0", 0),
            ("10.0.0.0", 8),
            ("10.1.0.0", 16),
            ("10.1.0.1", 32),
            ("::", 0),
            ("::1", 128),
            ("fc00::", 7),
        ]);
        Ask::Cidr(Cidr::new(address.parse().unwrap(), prefix).unwrap())
    }

    fn about_addresses(&mut self) -> Ask {
        match self.below(6) {
            0 => Ask::Eq(text(self.of(&ADDRESSES))),
            1 => Ask::In(vec![text(self.of(&ADDRESSES)), text(self.of(&ADDRESSES))]),
            2 => Ask::In(ADDRESSES.map(text).into_iter().skip(self.below(4)).collect()),
            _ => self.block(),
        }
    }

    /// The same in other words.
    fn reworded(&mut self, document: &Document) -> Document {
        let mut other = document.clone();
        for constraint in &mut other.constraints {
            constraint.when = self.rewording(&constraint.when);
        }
        other
    }

    fn rewording(&mut self, condition: &Condition) -> Condition {
        let not = |condition| Condition::Not(Box::new(condition));
        let all = |parts: &[Condition], random: &mut Self| -> Vec<Condition> {
            parts.iter().rev().map(|part| random.rewording(part)).collect()
        };
        match condition {
            Condition::All(parts) if self.below(2) == 0 => {
                let parts = all(parts, self);
                not(Condition::Any(parts.into_iter().map(not).collect()))
            }
            Condition::All(parts) => Condition::All(all(parts, self)),
            Condition::Any(parts) => Condition::Any(all(parts, self)),
            Condition::Not(part) => not(self.rewording(part)),
            Condition::Test(_) if self.below(2) == 0 => not(not(condition.clone())),
            Condition::Test(Test { attribute, ask: Ask::Lt(bound) }) => {
                let ask = Ask::Ge(*bound);
                not(Condition::Test(Test { attribute: attribute.clone(), ask }))
            }
            Condition::Test(_) => Condition::Any(vec![condition.clone()]),
        }
    }

    fn changed(&mut self, document: &Document, pool: &[&str]) -> Document {
        let mut other = document.clone();
        let at = self.below(other.constraints.len());
        match self.below(5) {
            0 => drop(other.constraints.remove(at)),
            1 => other.constraints[at].when = self.condition(pool, 2),
            2 => {
                let when = other.constraints[at].when.clone();
                other.constraints[at].when = Condition::All(vec![when, self.condition(pool, 1)]);
            }
            3 => {
                let when = other.constraints[at].when.clone();
                let mut more = other.constraints[at].clone();
                more.id = ConstraintId::new("d").unwrap();
                more.when = Condition::All(vec![when, self.condition(pool, 1)]);
                other.constraints.push(more);
            }
            _ => {
                let tool = self.tool();
                other.risk.insert(tool, u8::try_from(self.below(101)).unwrap());
            }
        }
        other
    }
}

#[test]
fn the_pool_is_made_of_attributes() {
    for name in POOLS.iter().copied().flatten() {
        assert_eq!(format!("{}", Attribute::parse(name).unwrap()), *name);
    }
}
