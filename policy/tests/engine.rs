//! What the engine decides, explains and advises.

use kernel_support::asking::{self, Asked, NOW};
use syscap_format::{
    Dimension, EffectClass, Host, Name, Resource, Scope, TokenFlags, ToolGrant, UnixMillis, Verdict,
};
use syscap_kernel::{Advice, PolicyEngine};
use syscap_policy::{
    Attribute, Effect, Given, Other, Policy, Scenario, Seen, Truth, Value, Values, WithinToken,
    semantics,
};

const ALWAYS: &str = r#"{"op":"all","args":[]}"#;

/// A policy of constraints as `effect id on_fail subject when reason`, each but the last without
/// blanks.
fn policy(constraints: &[&str]) -> Policy {
    let one = |line: &&str| {
        let parts: Vec<&str> = line.splitn(6, ' ').collect();
        let [effect, id, on_fail, subject, when, reason] = parts[..] else { panic!("{line}") };
        format!(
            concat!(
                r#"{{"effect":"{}","id":"{}","on_fail":"{}","subject":{},"when":{},"#,
                r#""reason":"{}"}}"#
            ),
            effect, id, on_fail, subject, when, reason
        )
    };
    let all: Vec<String> = constraints.iter().map(one).collect();
    load(&format!(r#"{{"v":1,"constraints":[{}]}}"#, all.join(",")))
}

fn load(text: &str) -> Policy {
    Policy::from_json(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn test(op: &str, args: &str) -> String {
    format!(r#"{{"op":"{op}","args":[{args}]}}"#)
}

fn verdict(policy: &Policy, asked: &Asked) -> (Verdict, String) {
    let decision = policy.decide(&asked.question());
    (decision.verdict, decision.deciding.map(|id| id.to_string()).unwrap_or_default())
}

fn advice(policy: &Policy, asked: &Asked) -> (String, String) {
    let question = asked.question();
    let Advice { argument, allowed } = policy.advise(&question, &policy.decide(&question));
    (String::from(argument.unwrap_or_default()), String::from(allowed.unwrap_or_default()))
}

/// The two constraints that SS-01 gives as examples, with ids, beside an allow of everything.
fn ss01() -> Policy {
    load(
        r#"{"v":1,"constraints":[
        {"v":1,"id":"constraint.no_send_email","effect":"deny","subject":{"tool_id":"email.send"},
         "when":{"op":"all","args":[]},"on_fail":"block","reason":"email sending is disabled"},
        {"v":1,"id":"constraint.requires_source","effect":"deny","subject":{"tool_id":"fs.write"},
         "when":{"op":"missing","args":["fact.source_ref"]},"on_fail":"ask",
         "reason":"writes need a source"},
        {"id":"everything","effect":"allow","subject":null,"when":{"op":"all","args":[]},
         "on_fail":"block","reason":""}]}"#,
    )
}

#[test]
fn ss01_no_send_email() {
    let send = Asked::new("email.send", EffectClass::Irreversible, "{}");
    let decided = verdict(&ss01(), &send);
    assert_eq!(decided, (Verdict::Deny, "constraint.no_send_email".into()));
    assert_eq!(advice(&ss01(), &send), (String::new(), "email sending is disabled".into()));
    let draft = Asked::new("email.draft", EffectClass::LocalWrite, "{}");
    assert_eq!(verdict(&ss01(), &draft), (Verdict::Allow, "everything".into()));
}

#[test]
fn ss01_requires_source() {
    let write = || Asked::new("fs.write", EffectClass::LocalWrite, r#"{"path":"a"}"#);
    let by = |asked: Asked| verdict(&ss01(), &asked);
    assert_eq!(by(write()), (Verdict::Ask, "constraint.requires_source".into()));
    let sourced = write().fact("fact.source_ref", Some("\"doc 7\""));
    assert_eq!(by(sourced), (Verdict::Allow, "everything".into()));
    // Erased: whether it was there can't be said, so the deny applies.
    let erased = write().fact("fact.source_ref", None);
    assert_eq!(by(erased), (Verdict::Ask, "constraint.requires_source".into()));
    assert_eq!(advice(&ss01(), &write()), (String::new(), "writes need a source".into()));
}

/// What an organisation says of a tool's risk counts where it is more than its class says.
#[test]
fn risk_is_raised_and_never_lowered() {
    let text = format!(
        concat!(
            r#"{{"v":1,"constraints":[{{"effect":"allow","id":"a","on_fail":"block","#,
            r#""subject":null,"when":{},"reason":""}}],"#,
            r#""params":{{"risk":{{"disk.wipe":5,"fs.read":70}}}}}}"#
        ),
        test("lt", r#""risk",50"#)
    );
    let policy = load(&text);
    for (tool, class, risk, wanted) in [
        ("disk.wipe", EffectClass::Irreversible, 90, Verdict::Deny),
        ("fs.read", EffectClass::Read, 70, Verdict::Deny),
        ("fs.list", EffectClass::Read, 10, Verdict::Allow),
    ] {
        let call = Asked::new(tool, class, "{}");
        let question = call.question();
        let seen = Seen::new(&question, policy.written());
        assert_eq!(seen.value(&Attribute::Risk), Value::Int(risk), "{tool}");
        assert_eq!(verdict(&policy, &call).0, wanted, "{tool}");
        // A scenario that says nothing of it gets the same.
        let mut scenario = Scenario::new();
        scenario.set(Attribute::Tool, Given::Text(tool.into()));
        scenario.set(Attribute::EffectClass, Given::Text(class.name().into()));
        assert_eq!(policy.decide_values(&scenario).verdict, wanted, "{tool}");
    }
}

#[test]
fn every_attribute_is_what_the_question_says() {
    let policy = policy(&[]);
    let host = Host::new("example.com").unwrap();
    let args = r#"{"t":"x","n":-5,"f":1.5,"none":null,"l":[1,[2],{"a":3}],"e":[],
        "m":{"k":{"j":true}},"h":"https://example.com","p":{"x":1}}"#;
    let mut call = Asked::new("net.get", EffectClass::ExternalRead, args)
        .demand("h", Resource::Host(host.clone()))
        .demand("q", Resource::Port(443))
        .demand("q", Resource::Name(Name::new("get").unwrap()))
        .path("p", "shared/a")
        .fact("fact.a", Some(r#"{"b":["x"]}"#))
        .fact("goal.g", None);
    call.body.depth = 2;
    call.body.flags = TokenFlags::READ_ONLY;
    call.hold = call.hold.with(Dimension::EgressBytes, 7);
    let question = call.question();
    let seen = Seen::new(&question, policy.written());
    let path = asking::rooted("shared/a");
    let hex = "ab".repeat(32);
    let length = i128::try_from(question.args.as_bytes().len()).unwrap();
    let expected = [
        ("args.t", Value::Text("x")),
        ("args.n", Value::Int(-5)),
        ("args.f", Value::Other(Other::Float)),
        ("args.none", Value::Other(Other::Null)),
        ("args.gone", Value::Missing),
        ("args.e", Value::Other(Other::EmptyList)),
        ("args.m", Value::Other(Other::Map)),
        ("args.m.k.j", Value::Bool(true)),
        ("args.m.k.j.i", Value::Missing),
        ("args.t.k", Value::Missing),
        (
            "args.l",
            Value::List(vec![
                Value::Int(1),
                Value::Other(Other::EmptyList),
                Value::Other(Other::Map),
            ]),
        ),
        ("args.h", Value::Resources(vec![Value::Host(&host)])),
        ("args.q", Value::Resources(vec![Value::Int(443), Value::Text("get")])),
        ("args.p", Value::Resources(vec![Value::Path(&path)])),
        ("args.p.x", Value::Int(1)),
        ("fact.a", Value::Other(Other::Map)),
        ("fact.a.b", Value::List(vec![Value::Text("x")])),
        ("fact.gone", Value::Missing),
        ("goal.g", Value::Erased),
        ("goal.g.x", Value::Erased),
        ("call.tool", Value::Text("net.get")),
        ("call.effect", Value::Text("external_read")),
        ("call.agent", Value::Agent("bob")),
        ("call.args_bytes", Value::Int(length)),
        ("call.hold.egress_bytes", Value::Int(7)),
        ("token.id", Value::Text(&hex)),
        ("token.depth", Value::Int(2)),
        ("token.read_only", Value::Bool(true)),
        ("token.left_ms", Value::Int(60_000)),
        ("budget.calls", Value::Int(100)),
        ("now.ms", Value::Int(NOW.into())),
        ("now.hour", Value::Int(13)),
        ("now.weekday", Value::Int(4)),
        ("risk", Value::Int(30)),
    ];
    for (text, value) in expected {
        assert_eq!(seen.value(&Attribute::parse(text).expect(text)), value, "{text}");
    }
}

#[test]
fn the_time_is_in_utc_and_never_below_zero() {
    let policy = policy(&[]);
    let mut late = Asked::new("a", EffectClass::Pure, "{}");
    // Sunday, 23 November 2025, 23:59:59.999.
    late.now = UnixMillis::new(1_763_942_399_999);
    let question = late.question();
    let seen = Seen::new(&question, policy.written());
    assert_eq!(seen.value(&Attribute::NowHour), Value::Int(23));
    assert_eq!(seen.value(&Attribute::NowWeekday), Value::Int(7));
    assert_eq!(seen.value(&Attribute::TokenLeftMs), Value::Int(0));
}

#[test]
fn an_explanation_shows_each_test_and_what_it_saw() {
    let within = test("within", r#""args.path","shared""#);
    let large = test("gt", r#""args.size",10"#);
    let policy = policy(&[
        &format!("allow files block null {within} Only shared files."),
        &format!("deny large ask null {large} Large files."),
        &format!(r#"deny other block {{"tool_id":"fs.write"}} {ALWAYS} Not here."#),
    ]);
    let call =
        Asked::new("fs.read", EffectClass::Read, r#"{"path":"shared/a"}"#).path("path", "shared/a");
    let explanation = policy.explain(&call.question());
    assert_eq!(explanation.decision.verdict, Verdict::Ask);
    let [files, large] = &explanation.constraints[..] else { panic!("{explanation}") };
    assert_eq!((files.effect, files.truth, files.matched), (Effect::Allow, Truth::True, true));
    assert_eq!((large.effect, large.truth, large.matched), (Effect::Deny, Truth::Unknown, true));
    let expected = concat!(
        "ask by large\n",
        "allow files (on_fail block): grants\n",
        "  reason: Only shared files.\n",
        "  yes     args.path within \"shared\" (is shared/a)\n",
        "deny large (on_fail ask): applies\n",
        "  reason: Large files.\n",
        "  unknown args.size gt 10 (is missing)\n",
    );
    assert_eq!(explanation.to_string(), expected);
    let long =
        Asked::new("fs.read", EffectClass::Read, &format!(r#"{{"size":"{}"}}"#, "x".repeat(9_999)));
    assert!(policy.explain(&long.question()).to_string().len() < 600);
}

/// Calls of `fs.read` with `{"path": .., "n": 5, "m": {"k": "v"}}` whose path is `other/a`.
fn refused() -> Asked {
    let args = r#"{"path":"other/a","n":5,"m":{"k":"v"}}"#;
    Asked::new("fs.read", EffectClass::Read, args).path("path", "other/a")
}

#[test]
fn advice_names_the_argument_that_an_allow_asks_for() {
    let join = |op: &str, parts: &[&str]| test(op, &parts.join(","));
    let within = test("within", r#""args.path","workspace/notes""#);
    let not_within = test("not", &test("within", r#""args.path","other""#));
    let n = |op: &str, bound: i32| test(op, &format!(r#""args.n",{bound}"#));
    let agent = test("eq", r#""call.agent","eve""#);
    let cases = [
        (within.clone(), "path", "below workspace/notes"),
        (not_within.clone(), "path", "not below other"),
        (n("le", 4), "n", "at most 4"),
        (n("lt", 4), "n", "less than 4"),
        (n("ge", 100), "n", "at least 100"),
        (test("in", r#""args.m.k",["a","b"]"#), "m.k", "one of: a, b"),
        (test("eq", r#""args.gone","x""#), "gone", "one of: x"),
        (test("missing", r#""args.n""#), "n", "left out"),
        (test("exists", r#""args.gone""#), "gone", "present"),
        (test("not", &test("exists", r#""args.n""#)), "n", "left out"),
        (test("schema", r#""args.n","text""#), "n", "of type text"),
        (test("prefix", r#""args.m.k","x""#), "m.k", "begins with \"x\""),
        (test("suffix", r#""args.m.k","x""#), "m.k", "ends with \"x\""),
        (test("domain", r#""args.h","https://Example.com/""#), "h", "a host of example.com"),
        (test("cidr", r#""args.h","10.0.0.0/8""#), "h", "an address of 10.0.0.0/8"),
        (join("all", &[&n("ge", 6), &n("le", 9)]), "n", "at least 6"),
        (join("all", &[&n("ge", 6), &n("ge", 8)]), "n", "at least 6; at least 8"),
        (join("any", &[&n("ge", 6), &within]), "n", "at least 6"),
        (
            join("any", &[&test("eq", r#""args.path","a""#), &within]),
            "path",
            "one of: a or below workspace/notes",
        ),
        // What is no argument must be so already, and so must all other arguments.
        (join("all", &[&within, &agent]), "", "Because."),
        (join("all", &[&within, &n("ge", 6)]), "", "Because."),
        (join("any", &[&within, &agent]), "path", "below workspace/notes"),
        (agent, "", "Because."),
    ];
    for (when, argument, allowed) in cases {
        let policy = policy(&[&format!("allow a block null {when} Because.")]);
        let got = advice(&policy, &refused());
        assert_eq!(got, (argument.into(), allowed.into()), "{when}");
    }
}

#[test]
fn advice_lists_a_few_alternatives() {
    let within = |n: u32| test("within", &format!(r#""args.path","r{n}""#));
    let allow = |n: u32| format!("allow a{n} block null {} R{n}.", within(n));
    let allows: Vec<String> = (1..=5).map(allow).collect();
    let lines: Vec<&str> = allows.iter().map(String::as_str).collect();
    let got = advice(&policy(&lines), &refused());
    assert_eq!(got, ("path".into(), "below r1 or below r2 or below r3".into()));
    // The one with the fewest tests that fail comes first.
    let both = test("all", &format!("{},{}", within(1), within(2)));
    let first = format!("allow a0 block null {both} R0.");
    let got = advice(&policy(&[&first, lines[4]]), &refused());
    assert_eq!(got, ("path".into(), "below r5 or below r1; below r2".into()));
    // They are told by id, whatever they ask and whichever subject they have.
    let class = format!(r#"allow a7 block {{"capability":"read"}} {} R7."#, within(2));
    let last = format!("allow a8 block null {} R8.", within(1));
    let got = advice(&policy(&[&class, &last, lines[4]]), &refused());
    assert_eq!(got, ("path".into(), "below r5 or below r2 or below r1".into()));
}

#[test]
fn advice_never_tells_what_a_deny_looks_for() {
    let all = format!("allow all block null {ALWAYS} Fine.");
    let secret = test("within", r#""args.path","other/secret""#);
    let secret = test("any", &format!("{secret},{}", test("eq", r#""args.path","other/a""#)));
    let agent = test("eq", r#""call.agent","bob""#);
    let both = |op: &str| test(op, &format!("{secret},{agent}"));
    let cases = [
        (secret.clone(), "block", "path"),
        (both("all"), "block", "path"),
        // Whatever the path is, the agent remains.
        (both("any"), "block", ""),
        (agent.clone(), "block", ""),
        (secret.clone(), "ask", ""),
        (secret.clone(), "defer", ""),
        (test("all", &format!("{secret},{}", test("eq", r#""args.n",5"#))), "block", ""),
        (test("eq", r#""args.m.k","v""#), "block", "m.k"),
    ];
    for (when, on_fail, argument) in cases {
        let policy = policy(&[&all, &format!("deny no {on_fail} null {when} Keep out.")]);
        let got = advice(&policy, &refused());
        assert_eq!(got, (argument.into(), "Keep out.".into()), "{when} {on_fail}");
    }
}

#[test]
fn an_engine_can_be_sent_to_another_thread() {
    let policy = policy(&[&format!("allow a block null {ALWAYS} Fine.")]);
    let engine: Box<dyn PolicyEngine> = Box::new(policy);
    let call = refused();
    let verdict =
        std::thread::scope(|scope| scope.spawn(|| engine_verdict(engine, &call)).join().unwrap());
    assert_eq!(verdict, Verdict::Allow);
}

fn engine_verdict(engine: Box<dyn PolicyEngine>, call: &Asked) -> Verdict {
    engine.decide(&call.question()).verdict
}

/// A question, a scenario and the definition know of the same lists: those of at most 256 elements.
/// Resources are all compared, however many they are.
#[test]
fn list_of_more_than_256_elements_is_unknown_to_question_scenario_and_definition() {
    let when = test("eq", r#""args.x","a""#);
    let policy = policy(&[&format!("allow a block null {when} -")]);
    for (count, wanted) in [(256, Verdict::Allow), (257, Verdict::Deny)] {
        let args = format!(r#"{{"x":[{}]}}"#, vec![r#""a""#; count].join(","));
        let asked = Asked::new("t.t", EffectClass::Read, &args);
        assert_eq!(policy.decide(&asked.question()).verdict, wanted, "{count} in a question");
        let question = asked.question();
        let seen = Seen::new(&question, policy.written());
        let is_list = matches!(seen.value(&Attribute::parse("args.x").unwrap()), Value::List(_));
        assert_eq!(is_list, count == 256, "no more are held");
        let scenario = |given| {
            let mut scenario = Scenario::new();
            scenario.set(Attribute::parse("args.x").unwrap(), given);
            scenario
        };
        let list = scenario(Given::List(vec![Given::text("a"); count]));
        assert_eq!(policy.decide_values(&list).verdict, wanted, "{count} in a scenario");
        assert_eq!(semantics::decide(policy.written(), &list).verdict, wanted, "{count} defined");
        let resources = scenario(Given::Resources(vec![Given::text("a"); count]));
        assert_eq!(policy.decide_values(&resources).verdict, Verdict::Allow);
        assert_eq!(semantics::decide(policy.written(), &resources).verdict, Verdict::Allow);
        let name = || Resource::Name(Name::new("a").unwrap());
        let named = (0..count)
            .fold(Asked::new("t.t", EffectClass::Read, "{}"), |asked, _| asked.demand("x", name()));
        assert_eq!(policy.decide(&named.question()).verdict, Verdict::Allow);
    }
}

/// The kernel holds a plan against the scopes before, and this engine by itself, too.
#[test]
fn within_token_denies_each_demand_that_no_scope_permits() {
    let names = |names: &[&str]| Scope::names(names.iter().copied()).unwrap();
    let name = |text: &str| Resource::Name(Name::new(text).unwrap());
    let mut asked = Asked::new("t.t", EffectClass::Read, "{}");
    asked.grant = ToolGrant::new().with("team", names(&["a", "b"]));
    let decided = |asked: &Asked| WithinToken.decide(&asked.question()).verdict;
    assert_eq!(decided(&asked), Verdict::Allow);
    let demand = |dimension, text: &str| {
        let (argument, resource) = ("x", name(text));
        syscap_kernel::Demand { dimension, resource, argument }
    };
    for (demands, wanted) in [
        (vec![demand("team", "a"), demand("team", "b")], Verdict::Allow),
        (vec![demand("team", "a"), demand("team", "c")], Verdict::Deny),
        (vec![demand("other", "a")], Verdict::Deny),
    ] {
        asked.demands = demands;
        assert_eq!(decided(&asked), wanted);
    }
}
