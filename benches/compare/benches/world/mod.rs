//! Documents of any size, and calls of the one tool that is asked about.

use syscap_compare::cedar::{Declared, Kind, Presence};
use syscap_format::{
    AgentId, Amounts, Budget, Canonical, Dimension, EffectClass, Facts, Grants, HomeId, Host,
    Manifest, MapBuilder, Param, ParamType, PublicKey, Resource, Rights, Root, RootedPath, Source,
    TokenBody, TokenFlags, TokenId, ToolGrant, ToolId, UnixMillis,
};
use syscap_kernel::{Demand, History, Question};
use syscap_policy::{Attribute, Given, Scenario};

/// The tool that is asked about.
pub const TOOL: &str = "net.download";
/// How many constraints each other tool has.
const OTHERS: usize = 20;
/// How many teams the agents belong to.
const TEAMS: usize = 16;

/// A document of `all` constraints of which `here` are about [`TOOL`], spread over it, and the
/// others about other tools. As JSON.
pub fn document(all: usize, here: usize) -> String {
    let step = all / here;
    let mut text = String::from(r#"{"v":1,"constraints":["#);
    for n in 0..all {
        let of_tool = n % step == 0 && n / step < here;
        // Constraints of one tool are a mixture, whichever tool it is.
        let (tool, kind) = if of_tool {
            (TOOL.to_owned(), n / step)
        } else {
            (format!("tool{}.run", n / OTHERS), n)
        };
        let comma = if n == 0 { "" } else { "," };
        let (effect, tests) = tests(kind);
        text.push_str(comma);
        text.push_str(&constraint(&format!("c{n:05}"), effect, &tool, &tests));
    }
    text.push_str("]}");
    text
}

fn constraint(id: &str, effect: &str, tool: &str, tests: &str) -> String {
    let head = format!(r#"{{"id":"{id}","effect":"{effect}","subject":{{"tool_id":"{tool}"}}"#);
    let when = format!(r#""when":{{"op":"all","args":[{tests}]}}"#);
    format!(r#"{head},{when},"on_fail":"block","reason":"Rule {id}."}}"#)
}

/// The effect of a constraint, and what it asks.
fn tests(n: usize) -> (&'static str, String) {
    let team = n / 5 % TEAMS;
    let project = n / 5;
    let test = |op: &str, name: &str, value: String| {
        format!(r#"{{"op":"{op}","args":["{name}",{value}]}}"#)
    };
    let agent = |op: &str, below: &str| test(op, "call.agent", format!(r#""team{team}{below}""#));
    let path = |root: &str, below: &str| {
        test("within", "args.path", format!(r#""{root}/project{project}{below}""#))
    };
    let host = |name: String| test("domain", "args.host", format!(r#""{name}""#));
    let bytes = |op: &str, bound: usize| test(op, "args.bytes", bound.to_string());
    match n % 5 {
        0 => {
            ("allow", [agent("within", ""), path("workspace", ""), bytes("le", 1 << 20)].join(","))
        }
        1 => ("deny", [agent("eq", "/intern"), host(format!("bad{project}.example"))].join(",")),
        2 => {
            let most = bytes("le", 1_000 * (project + 1));
            ("allow", [agent("eq", "/lead"), path("shared", "/in"), most].join(","))
        }
        3 => ("deny", [path("workspace", "/secret"), bytes("ge", 1)].join(",")),
        _ => {
            let (host, least) = (host(format!("cdn{project}.example")), bytes("ge", 16));
            ("allow", [agent("within", "/ops"), host, least, bytes("le", 1 << 16)].join(","))
        }
    }
}

/// A document of which 40 constraints of the asked tool grant [`calls`]' first.
pub fn many_matches() -> String {
    let team = r#"{"op":"within","args":["call.agent","team0"]}"#;
    let each: Vec<String> = (0..40)
        .map(|n| {
            let most = 100_000 + n;
            let bytes = format!(r#"{{"op":"le","args":["args.bytes",{most}]}}"#);
            constraint(&format!("m{n:02}"), "allow", TOOL, &format!("{team},{bytes}"))
        })
        .collect();
    format!(r#"{{"v":1,"constraints":[{}]}}"#, each.join(","))
}

/// One call, as the kernel has it.
pub struct Call {
    pub agent: AgentId,
    pub path: RootedPath,
    pub host: Host,
    pub bytes: u64,
    args: Canonical,
    demands: Vec<Demand>,
}

/// The calls that are timed in turn.
pub fn calls() -> Vec<Call> {
    vec![
        // A grant, and nothing against it.
        call("team0/ops/bot", "project0/data/today.csv", "mirror.cdn7.example", 5_000),
        // Another root than is granted.
        call("team0/ops/bot", "elsewhere/today.csv", "mirror.cdn7.example", 5_000),
        // Granted, and denied where the document has the deny.
        call("team0/ops/bot", "project0/secret/key.pem", "files.example", 100),
        // A grant by host, where the document has it.
        call("team1/ops/bot", "tmp/x", "eu.cdn1.example", 4_096),
    ]
}

fn call(agent: &str, below: &str, host: &str, bytes: u64) -> Call {
    let agent = AgentId::new(agent).unwrap();
    let path = RootedPath::new(Root::Workspace(agent.clone()), below.split('/')).unwrap();
    let args = MapBuilder::new()
        .text("path", &format!("workspace/{below}"))
        .text("host", host)
        .uint("bytes", bytes)
        .finish();
    let host = Host::new(host).unwrap();
    let resource = Resource::Path { path: path.clone(), needs: Rights::READ };
    let demands = vec![
        Demand { dimension: "path", resource, argument: "path" },
        Demand { dimension: "host", resource: Resource::Host(host.clone()), argument: "host" },
    ];
    Call { agent, path, host, bytes, args, demands }
}

impl Call {
    /// The same as a scenario, for Cedar and Rego.
    pub fn scenario(&self) -> Scenario {
        let named = |name: &str| Attribute::Argument(Box::from(name), Vec::new());
        Scenario::call(&tool(), EffectClass::ExternalRead, &self.agent)
            .with(named("path"), Given::Path(self.path.clone()))
            .with(named("host"), Given::Host(self.host.clone()))
            .with(named("bytes"), Given::Int(self.bytes.into()))
    }

    /// The same as Rego's input.
    pub fn input(&self) -> String {
        format!(
            r#"{{"tool":"{TOOL}","agent":"{}","path":"workspace/{}","host":"{}","bytes":{}}}"#,
            self.agent.as_str(),
            self.path.below(),
            self.host.as_str(),
            self.bytes
        )
    }
}

/// The types of the arguments.
pub fn declared() -> Declared {
    [("path", Kind::Path), ("host", Kind::Host), ("bytes", Kind::Int)].into_iter().fold(
        Declared::default(),
        |declared, (name, kind)| {
            let attribute = Attribute::Argument(Box::from(name), Vec::new());
            declared.with(attribute, kind, Presence::Always)
        },
    )
}

/// What all calls have in common.
pub struct Kernel {
    body: TokenBody,
    grant: ToolGrant,
    manifest: Manifest,
    hold: Amounts,
    left: Amounts,
}

fn tool() -> ToolId {
    ToolId::new(TOOL).unwrap()
}

impl Kernel {
    pub fn new() -> Self {
        // The base point of the curve: some key.
        let mut key = [0x66; 32];
        key[0] = 0x58;
        let manifest = Manifest::new(tool(), EffectClass::ExternalRead)
            .param(Param::required("path", ParamType::Path, ""))
            .param(Param::required("host", ParamType::Text, ""))
            .param(Param::required("bytes", ParamType::Int, ""))
            .needs("path")
            .needs("host");
        let body = TokenBody {
            version: 2,
            nonce: [7; 16],
            issuer: PublicKey::new(key).unwrap(),
            holder: None,
            agent: AgentId::new("team0/ops/bot").unwrap(),
            parent: None,
            depth: 0,
            depth_max: 0,
            not_before: UnixMillis::new(1_790_000_000_000),
            expires: UnixMillis::new(1_790_003_600_000),
            epoch: 0,
            grants: Grants::new().with(tool(), ToolGrant::new()),
            budget: Budget::standard(),
            caveats: Vec::new(),
            policy: None,
            flags: TokenFlags::default(),
            ext: MapBuilder::new().finish(),
            audience: HomeId::from_bytes([9; 32]),
            head: None,
            renews: None,
        };
        let left = *body.budget.amounts();
        let hold = Amounts::ZERO.with(Dimension::Calls, 1);
        Self { body, grant: ToolGrant::new(), manifest, hold, left }
    }

    /// The question that the kernel asks about a call.
    pub fn question<'a>(&'a self, call: &'a Call) -> Question<'a> {
        Question {
            described: None,
            agent: &call.agent,
            token: TokenId::from_bytes([3; 32]),
            body: &self.body,
            grant: &self.grant,
            manifest: &self.manifest,
            effect: self.manifest.effect,
            args: call.args.item(),
            demands: &call.demands,
            hold: &self.hold,
            left: &self.left,
            history: History::none().into(),
            facts: Facts::none(),
            source: Source::Agent,
            now: UnixMillis::new(1_790_000_001_000),
        }
    }
}
