//! Documents and calls by chance, the same for the same seed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, reason = "tests")]

use syscap_format::{
    AgentId, Dimension, EffectClass, Host, Name, Resource, TokenFlags, ToolId, UnixMillis,
};
use syscap_kernel::Past;
use syscap_policy::{Attribute, Given, Other, Scenario};

use kernel_support::asking::{Asked, rooted};

/// Which documents are made.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kinds {
    /// All.
    All,
    /// Without `exists` and `missing`, and without allows that take something away.
    WithoutPresence,
}

const TOOLS: [&str; 3] = ["t.a", "t.b", "t.c"];
const CLASSES: [&str; 3] = ["read", "local_write", "irreversible"];
const AGENTS: [&str; 4] = ["bob", "team", "team/eve", "teams"];
const INTS: [i64; 7] = [-1, 0, 1, 2, 5, 20, 90];
const TEXTS: [&str; 12] = [
    "a",
    "b",
    "ab",
    "shared",
    "shared/a",
    "workspace/a/b",
    "example.com",
    "https://Example.com./",
    "a.example.com",
    "10.0.0.1",
    "::ffff:10.0.0.1",
    "example.org",
];
const PATHS: [&str; 6] =
    ["shared", "shared/a", "shared/a/b", "shared/ab", "workspace/a/b", "workspace"];
const HOSTS: [&str; 4] = ["example.com", "a.example.com", "badexample.com", "example.org"];
const ADDRESSES: [&str; 5] = ["10.0.0.1", "10.255.0.1", "11.0.0.1", "::ffff:10.0.0.1", "fd00::1"];
const OPEN: [&str; 9] =
    ["args.p", "args.h", "args.i", "args.t", "args.l", "args.m.k", "fact.a", "fact.b.x", "goal.g"];
/// Rows of attributes that are integers; of many, one.
fn numbers() -> Vec<&'static str> {
    let rows = Attribute::TABLE.iter().filter(|row| row.kind.is_integer());
    rows.map(|row| match row.name {
        "call.hold.DIMENSION" => "call.hold.egress_bytes",
        "budget.DIMENSION" => "budget.calls",
        "history.MEASURE.WHO.SPAN" => "history.calls.tool.minute",
        name => name,
    })
    .collect()
}

/// Splitmix64.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(n).unwrap()).unwrap()
    }

    fn once_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for n in (1..list.len()).rev() {
            list.swap(n, self.below(n + 1));
        }
    }

    /// The constraints of a document, and what follows them in it.
    pub(crate) fn document(&mut self, kinds: Kinds) -> (Vec<String>, String) {
        let count = if self.once_in(20) { 40 } else { 1 + self.below(8) };
        let mut constraints = Vec::new();
        for n in 0..count {
            let id = format!("c{}.{n}", self.below(10));
            let one = if self.once_in(2) { self.deny(&id, kinds) } else { self.allow(&id, kinds) };
            constraints.push(one);
        }
        let mut params = Vec::new();
        if self.once_in(8) {
            params.push(r#""tools":["t.a","t.b"]"#.to_owned());
        }
        if self.once_in(8) {
            params.push(r#""agents":{"bob":["t.a"],"team":[],"team/eve":["t.c"]}"#.to_owned());
        }
        if self.once_in(4) {
            params.push(format!(r#""risk":{{"t.b":{}}}"#, self.below(101)));
        }
        params.push(r#""one":"a","many":["shared/a",5,true],"none":[]"#.to_owned());
        // Every parameter must be asked for by some constraint.
        let asks = ["one", "many", "none"]
            .map(|name| format!(r#"{{"op":"in","args":["args.p",{{"param":"{name}"}}]}}"#));
        constraints.push(format!(
            r#"{{"id":"uses","effect":"deny","subject":{{"tool_id":"t.nobody"}},
                "when":{{"op":"any","args":[{}]}},"on_fail":"block","reason":""}}"#,
            asks.join(",")
        ));
        (constraints, format!(r#","params":{{{}}}"#, params.join(",")))
    }

    pub(crate) fn deny(&mut self, id: &str, kinds: Kinds) -> String {
        let on_fail = self.pick(&["block", "ask", "defer", "degrade"]);
        let obligations = match on_fail {
            "degrade" => self.pick(&[
                r#"{"type":"read_only"}"#,
                r#"{"type":"result_cap","bytes":7}"#,
                r#"{"type":"result_cap","bytes":9},{"type":"notify","topic":"d"}"#,
            ]),
            "ask" => self.pick(&["", r#"{"type":"approval","level":"elevated"}"#]),
            _ => self.pick(&["", r#"{"type":"notify","topic":"x"}"#]),
        };
        // No condition of an allow is of so many: they don't contradict one another.
        let count = self.pick(&[1, 3]);
        let (subject, when) = (self.subject(), self.joint("all", count, kinds));
        constraint(id, "deny", &subject, &when, on_fail, obligations)
    }

    fn allow(&mut self, id: &str, kinds: Kinds) -> String {
        let on_fail = self.pick(&["block", "ask", "defer"]);
        let obligations = match kinds {
            Kinds::All => self.pick(&[
                "",
                "",
                r#"{"type":"budget_cut","dimension":"egress_bytes","max":5}"#,
                r#"{"type":"notify","topic":"y"}"#,
                r#"{"type":"openat2"}"#,
            ]),
            Kinds::WithoutPresence => "",
        };
        let (op, count) = self.pick(&[("any", 1), ("all", 2)]);
        let (subject, when) = (self.subject(), self.joint(op, count, kinds));
        constraint(id, "allow", &subject, &when, on_fail, obligations)
    }

    fn subject(&mut self) -> String {
        match self.below(3) {
            0 => "null".to_owned(),
            1 => format!(r#"{{"tool_id":"{}"}}"#, self.pick(&TOOLS)),
            _ => format!(r#"{{"capability":"{}"}}"#, self.pick(&CLASSES)),
        }
    }

    fn joint(&mut self, op: &str, count: usize, kinds: Kinds) -> String {
        let parts: Vec<String> = (0..count).map(|_| self.condition(2, kinds)).collect();
        format!(r#"{{"op":"{op}","args":[{}]}}"#, parts.join(","))
    }

    fn condition(&mut self, depth: usize, kinds: Kinds) -> String {
        if depth == 0 || self.once_in(2) {
            return self.test(kinds);
        }
        let op = self.pick(&["all", "any", "not"]);
        let count = if op == "not" { 1 } else { self.below(4) };
        let parts: Vec<String> = (0..count).map(|_| self.condition(depth - 1, kinds)).collect();
        format!(r#"{{"op":"{op}","args":[{}]}}"#, parts.join(","))
    }

    fn test(&mut self, kinds: Kinds) -> String {
        let (op, attribute, constant) = match self.below(13) {
            0 => {
                let attribute = self.pick(&numbers());
                (self.pick(&["lt", "le", "gt", "ge"]), attribute, self.pick(&INTS).to_string())
            }
            1 => ("in", "now.weekday", "[1,4,7]".to_owned()),
            2 => ("eq", "call.tool", format!("\"{}\"", self.pick(&TOOLS))),
            3 => ("eq", "call.effect", format!("\"{}\"", self.pick(&CLASSES))),
            4 => {
                let op = self.pick(&["eq", "within"]);
                (op, "call.agent", format!("\"{}\"", self.pick(&AGENTS)))
            }
            12 => {
                let op = self.pick(&["prefix", "suffix", "eq"]);
                (op, "token.id", self.pick(&["\"0\"", "\"a\"", "\"\""]).to_owned())
            }
            5 => ("eq", "token.read_only", self.pick(&["true", "false"]).to_owned()),
            6 if kinds == Kinds::All => {
                let attribute = self.pick(&[OPEN[0], OPEN[2], OPEN[5], OPEN[6], OPEN[8], "risk"]);
                let op = self.pick(&["exists", "missing"]);
                return format!(r#"{{"op":"{op}","args":["{attribute}"]}}"#);
            }
            _ => {
                let attribute = self.pick(&OPEN);
                let (op, constant) = self.open();
                (op, attribute, constant)
            }
        };
        format!(r#"{{"op":"{op}","args":["{attribute}",{constant}]}}"#)
    }

    fn open(&mut self) -> (&'static str, String) {
        let text = |random: &mut Self| format!("\"{}\"", random.pick(&TEXTS));
        match self.below(14) {
            0..=2 => ("eq", self.constant()),
            3..=5 => {
                let count = 1 + self.below(4);
                let all: Vec<String> = (0..count).map(|_| self.constant()).collect();
                ("in", format!("[{}]", all.join(",")))
            }
            6 => ("in", self.pick(&[r#"{"param":"many"}"#, r#"{"param":"none"}"#]).to_owned()),
            7 => (self.pick(&["lt", "le", "gt", "ge"]), self.pick(&INTS).to_string()),
            8 => ("prefix", text(self)),
            9 => ("suffix", text(self)),
            10 => ("within", format!("\"{}\"", self.pick(&PATHS))),
            11 => ("domain", format!("\"{}\"", self.pick(&HOSTS))),
            12 => ("cidr", self.pick(&["\"10.0.0.0/8\"", "\"fd00::/8\"", "\"0.0.0.0/0\""]).into()),
            _ => {
                let types =
                    ["text", "integer", "boolean", "bytes", "list", "map", "path", "number"];
                ("schema", format!("\"{}\"", self.pick(&types)))
            }
        }
    }

    fn constant(&mut self) -> String {
        match self.below(8) {
            0 => self.pick(&["true", "false"]).to_owned(),
            1..=2 => self.pick(&INTS).to_string(),
            3 => r#"{"param":"one"}"#.to_owned(),
            _ => format!("\"{}\"", self.pick(&TEXTS)),
        }
    }

    /// Values of a call. Some attributes are missing, some of another type than is usual.
    pub(crate) fn scenario(&mut self) -> Scenario {
        let mut scenario = Scenario::new();
        let mut set = |text: &str, value| scenario.set(Attribute::parse(text).expect(text), value);
        if !self.once_in(16) {
            set("call.tool", Given::text(self.pick(&TOOLS)));
        }
        if !self.once_in(16) {
            set("call.effect", Given::text(self.pick(&CLASSES)));
        }
        set("call.agent", Given::Agent(AgentId::new(self.pick(&AGENTS)).unwrap()));
        set("token.read_only", Given::Bool(self.once_in(2)));
        set("token.id", Given::text(&self.pick(&["0", "a"]).repeat(64)));
        for name in numbers() {
            if !self.once_in(4) {
                set(name, Given::Int(self.pick(&INTS).into()));
            }
        }
        for name in OPEN {
            if !self.once_in(4) {
                set(name, self.given());
            }
        }
        scenario
    }

    fn given(&mut self) -> Given {
        let count = 1 + self.below(3);
        match self.below(12) {
            0 => Given::Erased,
            1 => Given::Other(self.pick(&[
                Other::Null,
                Other::Float,
                Other::Bytes,
                Other::EmptyList,
                Other::Map,
            ])),
            2..=3 => Given::List((0..count).map(|_| self.one()).collect()),
            4..=5 => Given::Resources((0..count).map(|_| self.resource()).collect()),
            _ => self.one(),
        }
    }

    fn one(&mut self) -> Given {
        match self.below(8) {
            0 => Given::Bool(self.once_in(2)),
            1 => Given::Other(Other::Null),
            2..=4 => Given::text(self.pick(&TEXTS)),
            _ => self.resource(),
        }
    }

    fn resource(&mut self) -> Given {
        match self.below(6) {
            0 => Given::text(self.pick(&TEXTS)),
            1 => Given::Int(self.pick(&INTS).into()),
            2 => Given::Path(rooted(self.pick(&PATHS))),
            5 => Given::Tree(rooted(self.pick(&PATHS))),
            3 => Given::Host(Host::new(self.pick(&HOSTS)).unwrap()),
            _ => Given::Address(self.pick(&ADDRESSES).parse().unwrap()),
        }
    }

    /// A call as the kernel asks about it.
    pub(crate) fn asked(&mut self) -> Asked {
        let class = self.pick(&[EffectClass::Read, EffectClass::LocalWrite, EffectClass::Pure]);
        let mut args = Vec::new();
        for name in ["p", "h", "i", "t", "l"] {
            if !self.once_in(3) {
                args.push(format!("\"{name}\":{}", self.json(1)));
            }
        }
        if self.once_in(2) {
            args.push(format!(r#""m":{{"k":{}}}"#, self.json(1)));
        }
        let tool = self.pick(&TOOLS);
        let mut asked = Asked::new(tool, class, &format!("{{{}}}", args.join(",")));
        for name in ["p", "h", "i", "p"] {
            if self.once_in(2) {
                let resource = self.named();
                asked = asked.demand(name, resource);
            }
        }
        for key in ["fact.a", "goal.g"] {
            if self.once_in(2) {
                let value = self.json(2);
                asked = asked.fact(key, if self.once_in(4) { None } else { Some(&value) });
            }
        }
        if self.once_in(2) {
            let value = format!(r#"{{"x":{}}}"#, self.json(1));
            asked = asked.fact("fact.b", Some(&value));
        }
        asked.agent = AgentId::new(self.pick(&AGENTS)).unwrap();
        asked.manifest.tool = ToolId::new(tool).unwrap();
        asked.now = UnixMillis::new(self.next() >> 20);
        asked.body.depth = self.below(3).try_into().unwrap();
        if self.once_in(2) {
            asked.body.flags = TokenFlags::READ_ONLY;
        }
        asked.hold = asked.hold.with(Dimension::EgressBytes, self.below(3).try_into().unwrap());
        let calls = self.below(3).try_into().unwrap();
        asked.history = asked.history.with(Past::CallsToolMinute, calls);
        asked.left = asked.left.with(Dimension::Calls, self.below(3).try_into().unwrap());
        asked
    }

    fn named(&mut self) -> Resource {
        match self.below(7) {
            0 => Resource::Name(Name::new(self.pick(&TEXTS)).unwrap()),
            1 => Resource::Int(self.pick(&INTS).into()),
            2 => Resource::Port(self.pick(&[1, 2, 443])),
            3 => Resource::Host(Host::new(self.pick(&HOSTS)).unwrap()),
            4 => Resource::Addr(self.pick(&ADDRESSES).parse().unwrap()),
            5 => Resource::Tree {
                path: rooted(self.pick(&PATHS)),
                needs: syscap_format::Rights::READ,
            },
            _ => Resource::Path {
                path: rooted(self.pick(&PATHS)),
                needs: syscap_format::Rights::READ,
            },
        }
    }

    fn json(&mut self, depth: usize) -> String {
        match self.below(10) {
            0 => "null".to_owned(),
            1 => "1.5".to_owned(),
            2 => r#"{"$bytes":"AA=="}"#.to_owned(),
            3 => self.pick(&["true", "false"]).to_owned(),
            4 => self.pick(&INTS).to_string(),
            5 if depth > 0 => format!(r#"{{"x":{}}}"#, self.json(depth - 1)),
            6 if depth > 0 => {
                let count = self.below(3);
                let all: Vec<String> = (0..count).map(|_| self.json(depth - 1)).collect();
                format!("[{}]", all.join(","))
            }
            _ => format!("\"{}\"", self.pick(&TEXTS)),
        }
    }
}

/// A constraint as JSON.
pub(crate) fn constraint(
    id: &str,
    effect: &str,
    subject: &str,
    when: &str,
    on_fail: &str,
    obligations: &str,
) -> String {
    format!(
        concat!(
            r#"{{"id":"{}","effect":"{}","subject":{},"when":{},"on_fail":"{}","#,
            r#""reason":"because","obligations":[{}]}}"#
        ),
        id, effect, subject, when, on_fail, obligations
    )
}
