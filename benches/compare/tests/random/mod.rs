//! Documents and scenarios by a seed: small pools, so that constants and values often meet, and
//! texts that have a meaning in patterns and literals.

use serde_json::{Value, json};
use syscap_compare::cedar::{Declared, Kind, Presence};
use syscap_format::{AgentId, EffectClass, Host, Root, RootedPath};
use syscap_policy::{Attribute, Given, Scenario};

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 to below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    pub fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }

    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }
}

const TOOLS: [&str; 4] = ["fs.read", "fs.write", "fs", "net.get"];
const AGENTS: [&str; 6] = ["a", "a/b", "a/b/c", "ab", "a/bc", "b"];
const TEXTS: [&str; 18] = [
    "",
    "a",
    "ab",
    "abc",
    "b",
    "*",
    "a*",
    "a*b",
    "**",
    "\\",
    "\\*",
    "\"",
    "a\"b",
    "\n",
    "\u{0}",
    "\u{e9}",
    "\u{1f600}a",
    "${x}",
];
const PATHS: [&str; 10] = [
    "workspace",
    "workspace/a",
    "workspace/a/b",
    "workspace/ab",
    "workspace/a/b/c",
    "shared",
    "shared/a",
    "shared/+",
    "shared/+/b",
    "shared/\"\u{e9}",
];
const HOSTS: [&str; 7] =
    ["example", "a.example", "b.a.example", "xa.example", "a-example", "com", "a.com"];
/// Hosts as people write them, and what is none.
const HOST_TEXTS: [&str; 12] = [
    "example",
    "a.example",
    "b.a.example",
    "xa.example",
    "A.Example.",
    "https://a.example/",
    "com",
    "a.com",
    "10.0.0.1",
    "*.example",
    "",
    "a..com",
];
const ADDRESSES: [&str; 10] = [
    "10.0.0.1",
    "10.0.1.1",
    "10.255.255.255",
    "11.0.0.0",
    "0.0.0.0",
    "::ffff:10.0.0.1",
    "::1",
    "2001:db8::1",
    "2001:db9::",
    "255.255.255.255",
];
const BLOCKS: [&str; 10] = [
    "10.0.0.0/8",
    "10.0.0.0/24",
    "10.0.0.1/32",
    "0.0.0.0/0",
    "::/0",
    "2001:db8::/32",
    "::1/128",
    "10.0.1.0/31",
    "128.0.0.0/1",
    "2001:db8::/31",
];
const INTS: [i64; 10] = [i64::MIN, -3, -1, 0, 1, 2, 3, 7, 100, i64::MAX];
const SMALL: [i64; 5] = [0, 1, 2, 3, 7];

/// The attributes that documents ask about. Closed ones have their types by themselves.
const ASKED: [(&str, Kind, Presence); 21] = [
    ("call.tool", Kind::Text, Presence::Always),
    ("call.effect", Kind::Text, Presence::Always),
    ("call.agent", Kind::Agent, Presence::Always),
    ("call.args_bytes", Kind::Int, Presence::Always),
    ("budget.calls", Kind::Int, Presence::Always),
    ("now.hour", Kind::Int, Presence::Always),
    ("token.read_only", Kind::Bool, Presence::Always),
    ("risk", Kind::Int, Presence::Always),
    ("args.text", Kind::Text, Presence::Always),
    ("args.n", Kind::Int, Presence::Always),
    ("args.flag", Kind::Bool, Presence::Always),
    ("args.path", Kind::Path, Presence::Always),
    ("args.host", Kind::Host, Presence::Always),
    ("args.at", Kind::Address, Presence::Always),
    ("fact.name.of", Kind::Text, Presence::Always),
    ("args.may_text", Kind::Text, Presence::Sometimes),
    ("args.may_n", Kind::Int, Presence::Sometimes),
    ("args.may_path", Kind::Path, Presence::Sometimes),
    ("args.may_host.x y", Kind::Host, Presence::Sometimes),
    ("fact.may_at", Kind::Address, Presence::Sometimes),
    ("goal.may_flag", Kind::Bool, Presence::Sometimes),
];

pub fn attribute(text: &str) -> Attribute {
    Attribute::parse(text).unwrap()
}

pub fn declared() -> Declared {
    let open = ASKED.iter().skip(8);
    open.fold(Declared::default(), |all, (name, kind, presence)| {
        all.with(attribute(name), *kind, *presence)
    })
}

fn agent(random: &mut Random) -> Given {
    Given::Agent(AgentId::new(random.one(&AGENTS)).unwrap())
}

/// The path of a text.
pub fn path(text: &str) -> Given {
    let (root, below) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
    let root = match root {
        Root::WORKSPACE => Root::Workspace(AgentId::new("a").unwrap()),
        other => Root::named(other).unwrap(),
    };
    let below = below.into_iter().flat_map(|below| below.split('/'));
    Given::Path(RootedPath::new(root, below).unwrap())
}

fn value(name: &str, kind: Kind, random: &mut Random) -> Given {
    match (name, kind) {
        ("call.tool", _) => Given::text(random.one(&TOOLS)),
        ("call.effect", _) => Given::text(random.one(EffectClass::ALL).name()),
        ("now.hour", _) => Given::Int(random.below(24) as i128),
        ("call.args_bytes" | "budget.calls", _) => Given::Int(i128::from(random.one(&SMALL))),
        (_, Kind::Text) => Given::text(random.one(&TEXTS)),
        (_, Kind::Int) => {
            let n = i128::from(random.one(&INTS)) + random.below(3) as i128 - 1;
            Given::Int(n.clamp(i64::MIN.into(), i64::MAX.into()))
        }
        (_, Kind::Bool) => Given::Bool(random.chance(50)),
        (_, Kind::Path) => path(random.one(&PATHS)),
        (_, Kind::Host) => Given::Host(Host::new(random.one(&HOSTS)).unwrap()),
        (_, Kind::Address) => Given::Address(random.one(&ADDRESSES).parse().unwrap()),
        (_, Kind::Agent) => agent(random),
    }
}

/// A call. Risk is given in one of ten, else it follows.
pub fn scenario(random: &mut Random) -> Scenario {
    let mut scenario = Scenario::new();
    for (name, kind, presence) in ASKED {
        let given = match presence {
            _ if name == "risk" => random.chance(10),
            Presence::Always => true,
            Presence::Sometimes => random.chance(50),
        };
        if given {
            let risk = |random: &mut Random| Given::Int(random.below(101) as i128);
            let value = if name == "risk" { risk(random) } else { value(name, kind, random) };
            scenario.set(attribute(name), value);
        }
    }
    scenario
}

fn op(op: &str, args: Value) -> Value {
    json!({"op": op, "args": args})
}

fn constant(name: &str, kind: Kind, random: &mut Random) -> Value {
    match (name, kind) {
        ("call.tool", _) => json!(random.one(&TOOLS)),
        ("call.effect", _) => json!(random.one(EffectClass::ALL).name()),
        ("now.hour", _) => json!(random.below(24)),
        ("risk", _) => json!(random.one(&[0, 10, 20, 30, 59, 60, 61, 90])),
        ("call.args_bytes" | "budget.calls", _) => json!(random.one(&SMALL)),
        (_, Kind::Text) => json!(random.one(&TEXTS)),
        (_, Kind::Int) => json!(random.one(&INTS)),
        (_, Kind::Bool) => json!(random.chance(50)),
        (_, Kind::Path) => json!(random.one(&PATHS)),
        (_, Kind::Host) => json!(random.one(&HOST_TEXTS)),
        (_, Kind::Address) => json!(random.one(&BLOCKS)),
        (_, Kind::Agent) => json!(random.one(&AGENTS)),
    }
}

fn is_host(text: &Value) -> bool {
    syscap_policy::host_of(text.as_str().unwrap()).is_some()
}

const OPS: [&str; 11] =
    ["eq", "in", "lt", "le", "gt", "ge", "prefix", "suffix", "within", "domain", "cidr"];

fn answers(kind: Kind, op: &str) -> bool {
    match op {
        "eq" | "in" => kind != Kind::Address,
        "prefix" | "suffix" => kind == Kind::Text,
        "within" => matches!(kind, Kind::Path | Kind::Agent),
        "domain" => kind == Kind::Host,
        "cidr" => kind == Kind::Address,
        _ => kind == Kind::Int,
    }
}

fn test(random: &mut Random) -> Value {
    let asked = random.one(&OPS);
    let (name, kind, presence) = loop {
        let drawn = random.one(&ASKED);
        if answers(drawn.1, asked) {
            break drawn;
        }
    };
    let closed = matches!(name, "call.tool" | "call.effect");
    let test = match asked {
        "in" => {
            let list: Vec<Value> =
                (0..=random.below(3)).map(|_| constant(name, kind, random)).collect();
            op("in", json!([name, list]))
        }
        "prefix" | "suffix" if closed => {
            op(asked, json!([name, random.one(&["f", "fs", "fs.", "get", "_write", "re", "read"])]))
        }
        "domain" => {
            let host = loop {
                let host = constant(name, kind, random);
                if is_host(&host) {
                    break host;
                }
            };
            op("domain", json!([name, host]))
        }
        asked => op(asked, json!([name, constant(name, kind, random)])),
    };
    match (presence, random.below(10)) {
        (_, 0) => op("exists", json!([name])),
        (_, 1) => op("missing", json!([name])),
        (Presence::Always, _) => test,
        (Presence::Sometimes, 2..=4) => op("any", json!([op("missing", json!([name])), test])),
        (Presence::Sometimes, 5) => {
            let no = op("not", json!([op("exists", json!([name]))]));
            op("any", json!([op("all", json!([])), no, test]))
        }
        (Presence::Sometimes, 6) => {
            let there = op("all", json!([op("exists", json!([name])), op("all", json!([]))]));
            op("all", json!([there, op("not", json!([test]))]))
        }
        (Presence::Sometimes, _) => op("all", json!([op("exists", json!([name])), test])),
    }
}

fn condition(random: &mut Random, depth: usize) -> Value {
    match random.below(if depth == 0 { 5 } else { 10 }) {
        5 | 6 => op("all", parts(random, depth)),
        7 | 8 => op("any", parts(random, depth)),
        9 => op("not", json!([condition(random, depth - 1)])),
        _ => test(random),
    }
}

fn parts(random: &mut Random, depth: usize) -> Value {
    let count = random.one(&[0, 1, 2, 2, 2, 3, 3]);
    (0..count).map(|_| condition(random, depth - 1)).collect()
}

/// A document as JSON. It may hold a contradiction, which is no document.
pub fn document(random: &mut Random) -> Value {
    let count = 1 + random.below(20);
    let constraints: Vec<Value> = (0..count)
        .map(|n| {
            let subject = match random.below(4) {
                0 => json!({"tool_id": random.one(&TOOLS)}),
                1 => json!({"capability": random.one(EffectClass::ALL).name()}),
                _ => Value::Null,
            };
            json!({
                "id": format!("c{}-{n}", random.below(10)),
                "effect": if random.chance(65) { "allow" } else { "deny" },
                "subject": subject,
                "when": condition(random, 3),
                "on_fail": "block",
                "reason": "",
            })
        })
        .collect();
    let mut document = json!({"v": 1, "constraints": constraints});
    if random.chance(20) {
        document["params"] = json!({"risk": {random.one(&TOOLS): random.below(101)}});
    }
    document
}
