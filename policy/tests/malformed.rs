//! Documents that are refused: what is wrong with each, where, and what could stand there.

use crate::written::{ALWAYS, constraint, deny, document, load, one, test, when, with_params};
use syscap_format::json::JsonFault;
use syscap_policy::LoadFault;

/// What is wrong, where, and what is suggested.
type Case = (String, LoadFault, &'static str, Option<&'static str>);

fn check(cases: Vec<Case>) {
    for (text, fault, place, suggestion) in cases {
        let error = load(&text).expect_err(&text);
        assert_eq!(
            (error.fault, &*error.place, error.suggestion.as_deref()),
            (fault, place, suggestion),
            "{error}\n{text}"
        );
        assert!(!error.to_string().contains('\n'));
    }
}

const A: &str = "constraints[0]";

#[test]
fn a_document_that_is_none_is_refused_with_its_place() {
    use LoadFault as Fault;
    let deep = format!("{}{}", r#"{"op":"not","args":["#.repeat(7), r#"]}"#.repeat(7));
    let very_deep = format!("{}{}", "[".repeat(70), "]".repeat(70));
    check(vec![
        (String::new(), Fault::Json(JsonFault::End), "byte 0", None),
        ("{".into(), Fault::Json(JsonFault::End), "byte 1", None),
        (r#"{"v":1,}"#.into(), Fault::Json(JsonFault::Unexpected), "byte 7", None),
        (r#"{"v":1} x"#.into(), Fault::Json(JsonFault::Trailing), "byte 8", None),
        (r#"{"v":1,"v":1}"#.into(), Fault::DuplicateKey, "byte 7", None),
        (very_deep, Fault::TooDeep, "byte 64", None),
        ("[]".into(), Fault::Type, "document", Some("a map with text keys")),
        ("{}".into(), Fault::MissingKey, "document", None),
        (r#"{"v":1}"#.into(), Fault::MissingKey, "document", None),
        (r#"{"v":2,"constraints":[]}"#.into(), Fault::Version, "v", Some("1")),
        (r#"{"v":"1","constraints":[]}"#.into(), Fault::Type, "v", Some("an integer from 0")),
        (r#"{"v":1.0,"constraints":[]}"#.into(), Fault::Float, "v", None),
        (r#"{"v":1,"constraints":{}}"#.into(), Fault::Type, "constraints", Some("a list")),
        (r#"{"v":1,"constraint":[]}"#.into(), Fault::UnknownKey, "document", Some("constraints")),
        (
            r#"{"v":1,"constraints":[],"param":{}}"#.into(),
            Fault::UnknownKey,
            "document",
            Some("params"),
        ),
        (r#"{"v":1,"constraints":[1]}"#.into(), Fault::Type, A, Some("a map with text keys")),
        (when(&deep), Fault::TooDeep, DEEPEST, None),
        (test("eq", r#"["args.a", 1.5]"#), Fault::Float, "constraints[0].when.args[1]", None),
        (
            test("in", r#"["args.a", [1, 1e3]]"#),
            Fault::Float,
            "constraints[0].when.args[1][1]",
            None,
        ),
    ]);
}

const DEEPEST: &str = "constraints[0].when.args[0].args[0].args[0].args[0].args[0].args[0].args";

#[test]
fn a_constraint_that_is_none_is_refused_with_its_place() {
    use LoadFault as Fault;
    let place = |key: &str| -> &'static str { format!("{A}.{key}").leak() };
    let unknown = |key: &'static str| one(&[(key, "1")]);
    let mut cases: Vec<Case> = ["id", "effect", "subject", "when", "on_fail", "reason"]
        .into_iter()
        .map(|key| (one(&[(key, "")]), Fault::MissingKey, A, None))
        .collect();
    cases.extend([
        (unknown("efect"), Fault::UnknownKey, A, Some("effect")),
        (unknown("obligation"), Fault::UnknownKey, A, Some("obligations")),
        (unknown("onfail"), Fault::UnknownKey, A, Some("on_fail")),
        (one(&[("v", "2")]), Fault::Version, place("v"), Some("1")),
        (one(&[("id", "1")]), Fault::Type, place("id"), Some("text")),
        (one(&[("id", r#""a b""#)]), Fault::BadId, place("id"), None),
        (one(&[("id", r#""""#)]), Fault::BadId, place("id"), None),
        (one(&[("id", r#""params.tools""#)]), Fault::ReservedId, place("id"), None),
        (one(&[("effect", r#""alow""#)]), Fault::UnknownEffect, place("effect"), Some("allow")),
        (
            one(&[("effect", r#""permit""#)]),
            Fault::UnknownEffect,
            place("effect"),
            Some("allow, deny"),
        ),
        (one(&[("on_fail", r#""blok""#)]), Fault::UnknownOnFail, place("on_fail"), Some("block")),
        (
            one(&[("on_fail", r#""degrade""#)]),
            Fault::DegradeOnAllow,
            place("on_fail"),
            Some("block, ask, defer"),
        ),
        (deny("degrade", ""), Fault::DegradeWithoutObligation, place("on_fail"), None),
        (
            deny("degrade", r#"[{"type":"notify","topic":"x"}]"#),
            Fault::DegradeWithoutObligation,
            place("on_fail"),
            None,
        ),
        (one(&[("subject", r#""fs.read""#)]), Fault::Subject, place("subject"), None),
        (one(&[("subject", "{}")]), Fault::Subject, place("subject"), None),
        (
            one(&[("subject", r#"{"tool_id":"a","capability":"read"}"#)]),
            Fault::Subject,
            place("subject"),
            None,
        ),
        (
            one(&[("subject", r#"{"tool":"fs.read"}"#)]),
            Fault::UnknownKey,
            place("subject"),
            Some("tool_id"),
        ),
        (
            one(&[("subject", r#"{"tool_id":"*"}"#)]),
            Fault::Wildcard,
            place("subject.tool_id"),
            None,
        ),
        (
            one(&[("subject", r#"{"tool_id":"fs.*"}"#)]),
            Fault::Wildcard,
            place("subject.tool_id"),
            None,
        ),
        (
            one(&[("subject", r#"{"tool_id":"Email.Send"}"#)]),
            Fault::BadTool,
            place("subject.tool_id"),
            Some("email.send"),
        ),
        (
            one(&[("subject", r#"{"capability":"wriet"}"#)]),
            Fault::UnknownEffectClass,
            place("subject.capability"),
            Some("pure, read, local_write, external_read, external_write, irreversible"),
        ),
        (
            one(&[("subject", r#"{"capability":"local-write"}"#)]),
            Fault::UnknownEffectClass,
            place("subject.capability"),
            Some("local_write"),
        ),
        (one(&[("reason", "null")]), Fault::Type, place("reason"), Some("text")),
        (
            one(&[("reason", &format!("\"{}\"", "x".repeat(257)))]),
            Fault::ReasonTooLong,
            place("reason"),
            None,
        ),
        (
            document(&[constraint(&[]), constraint(&[("id", r#""b""#)]), constraint(&[])]),
            Fault::DuplicateId,
            "constraints[2].id",
            None,
        ),
        (
            document(&[
                constraint(&[("effect", r#""deny""#), ("id", r#""no""#)]),
                constraint(&[("id", r#""yes""#)]),
            ]),
            Fault::Contradiction,
            "constraints[1]",
            Some("take out this or no"),
        ),
    ]);
    check(cases);
}

#[test]
fn a_condition_that_is_none_is_refused_with_its_place() {
    use LoadFault as Fault;
    let op = "constraints[0].when.op";
    let args = "constraints[0].when.args";
    let first = "constraints[0].when.args[0]";
    let second = "constraints[0].when.args[1]";
    let many = format!("[{}]", vec![ALWAYS; 1_024].join(","));
    let long = format!(r#"["args.a","{}"]"#, "x".repeat(4_097));
    let constants = format!(r#"["args.a",[{}1]]"#, "1,".repeat(4_096));
    check(vec![
        (when("true"), Fault::Type, "constraints[0].when", Some("a map with text keys")),
        (when(r#"{"op":"all"}"#), Fault::MissingKey, "constraints[0].when", None),
        (when(r#"{"op":"all","arg":[]}"#), Fault::UnknownKey, "constraints[0].when", Some("args")),
        (when(r#"{"op":"all","args":{}}"#), Fault::Type, args, Some("a list")),
        (test("exsits", r#"["fact.a"]"#), Fault::UnknownOp, op, Some("exists")),
        // A near miss by letters would mean the opposite of what was meant.
        (test("and", "[]"), Fault::UnknownOp, op, Some("all")),
        (test("OR", "[]"), Fault::UnknownOp, op, Some("any")),
        (test("ALL", "[]"), Fault::UnknownOp, op, Some("all")),
        (test("ne", r#"["fact.a", 1]"#), Fault::UnknownOp, op, Some("not around eq")),
        (test("lte", r#"["fact.a", 1]"#), Fault::UnknownOp, op, Some("le")),
        (test("label_le", r#"["args.a", 1]"#), Fault::NotYet, op, None),
        (test("source", r#"["args.a", "x"]"#), Fault::NotYet, op, None),
        (test("not", "[]"), Fault::Arity, args, Some("one condition")),
        (test("not", &format!("[{ALWAYS},{ALWAYS}]")), Fault::Arity, args, Some("one condition")),
        (test("all", r#"["fact.a"]"#), Fault::Type, first, Some("a map with text keys")),
        (test("all", &many), Fault::TooManyNodes, "constraints[0].when.args[1023]", None),
        (test("exists", "[]"), Fault::Arity, args, Some("one attribute")),
        (test("missing", r#"["fact.a", 1]"#), Fault::Arity, args, Some("one attribute")),
        (
            test("eq", r#"["fact.a"]"#),
            Fault::Arity,
            args,
            Some("an attribute and what it is held against"),
        ),
        (test("eq", r#"[1, "fact.a"]"#), Fault::Type, first, Some("text")),
        (test("exists", r#"["arg.path"]"#), Fault::UnknownAttribute, first, Some("args.path")),
        (test("exists", r#"["facts.a"]"#), Fault::UnknownAttribute, first, Some("fact.a")),
        (test("exists", r#"["call.agnet"]"#), Fault::UnknownAttribute, first, Some("call.agent")),
        (test("lt", r#"["budget.call", 1]"#), Fault::UnknownAttribute, first, Some("budget.calls")),
        (
            test("lt", r#"["call.hold.egres_bytes", 1]"#),
            Fault::UnknownAttribute,
            first,
            Some("call.hold.egress_bytes"),
        ),
        (
            test("eq", r#"["now.minute", 1]"#),
            Fault::UnknownAttribute,
            first,
            Some("now.ms, now.hour, now.weekday"),
        ),
        (
            test("ge", r#"["history.call.tool.minute", 1]"#),
            Fault::UnknownAttribute,
            first,
            Some("history.calls.tool.minute"),
        ),
        (test("eq", r#"["label.x", "y"]"#), Fault::NotYet, first, None),
        (test("exists", r#"["constraint.a"]"#), Fault::OfPolicy, first, None),
        (test("exists", r#"["policy.a"]"#), Fault::OfPolicy, first, None),
        (test("exists", r#"["fact.A b"]"#), Fault::AttributeName, first, None),
        (test("exists", r#"["args."]"#), Fault::AttributeName, first, None),
        (test("exists", r#"["args.a..b"]"#), Fault::AttributeName, first, None),
        (test("exists", r#"["args.a.1.2.3.4.5.6.7.8.9"]"#), Fault::AttributeFields, first, None),
        (test("eq", r#"["args.a", null]"#), Fault::BadConstant, second, None),
        (test("eq", r#"["args.a", ["x"]]"#), Fault::BadConstant, second, None),
        (test("eq", r#"["args.a", {"$bytes":"AA=="}]"#), Fault::BadConstant, second, None),
        (test("eq", &long), Fault::TextTooLong, second, None),
        (test("in", r#"["args.a", []]"#), Fault::EmptyIn, second, None),
        (test("in", r#"["args.a", "x"]"#), Fault::Type, second, Some("a list")),
        (test("in", &constants), Fault::TooManyConstants, second, None),
        (
            test("in", r#"["args.a", ["x", null]]"#),
            Fault::BadConstant,
            "constraints[0].when.args[1][1]",
            None,
        ),
        (test("lt", r#"["args.a", "1"]"#), Fault::Type, second, Some("an integer")),
        (test("prefix", r#"["args.a", 1]"#), Fault::Type, second, Some("text")),
        (
            test("schema", r#"["args.a", "any"]"#),
            Fault::UnknownType,
            second,
            Some("text, integer, boolean, bytes, list, map, path, number"),
        ),
        (test("schema", r#"["args.a", "int"]"#), Fault::UnknownType, second, Some("integer")),
        (test("within", r#"["args.a", "/etc"]"#), Fault::BadPath, second, Some("etc")),
        (test("within", r#"["args.a", "a/"]"#), Fault::BadPath, second, Some("a")),
        (test("within", r#"["args.a", "a/b/*"]"#), Fault::PathWildcard, second, Some("a/b")),
        (test("within", r#"["args.a", "a/*/b"]"#), Fault::PathWildcard, second, Some("a")),
        (test("within", r#"["args.a", "*.md"]"#), Fault::PathWildcard, second, None),
        (test("within", r#"["args.a", "a/../b"]"#), Fault::BadPath, second, None),
        (test("within", r#"["args.a", ""]"#), Fault::BadPath, second, None),
        (test("within", r#"["args.a", "a\\b"]"#), Fault::BadPath, second, None),
        (test("domain", r#"["args.a", "10.0.0.1"]"#), Fault::BadHost, second, None),
        (test("domain", r#"["args.a", "*.example.com"]"#), Fault::BadHost, second, None),
        (test("domain", r#"["args.a", "https://a.example/x"]"#), Fault::BadHost, second, None),
        (test("cidr", r#"["args.a", "10.0.0.1/8"]"#), Fault::BadCidr, second, None),
        (test("cidr", r#"["args.a", "10.0.0.0"]"#), Fault::BadCidr, second, None),
        (test("cidr", r#"["args.a", "10.0.0.0/+8"]"#), Fault::BadCidr, second, None),
    ]);
}

#[test]
fn impossible_value_of_a_closed_attribute_is_refused() {
    use LoadFault as Fault;
    let second = "constraints[0].when.args[1]";
    check(vec![
        (test("eq", r#"["risk", "high"]"#), Fault::ConstantType, second, Some("an integer")),
        (
            test("eq", r#"["token.read_only", 1]"#),
            Fault::ConstantType,
            second,
            Some("true or false"),
        ),
        (test("lt", r#"["call.tool", 1]"#), Fault::ConstantType, second, Some("text")),
        (test("within", r#"["call.tool", "fs"]"#), Fault::ConstantType, second, Some("text")),
        (test("prefix", r#"["risk", "9"]"#), Fault::ConstantType, second, Some("an integer")),
        (
            test("prefix", r#"["call.agent", "team"]"#),
            Fault::ConstantType,
            second,
            Some("an agent id, with eq, in or within"),
        ),
        (test("eq", r#"["call.tool", "Fs.Read"]"#), Fault::BadTool, second, Some("fs.read")),
        (test("eq", r#"["call.tool", "*"]"#), Fault::Wildcard, second, None),
        (
            test("in", r#"["call.tool", ["a", "b-c"]]"#),
            Fault::BadTool,
            "constraints[0].when.args[1][1]",
            Some("b_c"),
        ),
        (test("eq", r#"["call.effect", "reed"]"#), Fault::UnknownEffectClass, second, Some("read")),
        (test("eq", r#"["call.agent", "Bob"]"#), Fault::BadAgent, second, Some("bob")),
        (test("within", r#"["call.agent", "My Team"]"#), Fault::BadAgent, second, Some("my-team")),
        (test("eq", r#"["now.hour", 24]"#), Fault::ConstantRange, second, Some("0 to 23")),
        (
            test("in", r#"["now.weekday", [1, 0]]"#),
            Fault::ConstantRange,
            "constraints[0].when.args[1][1]",
            Some("1 to 7"),
        ),
    ]);
}

#[test]
fn an_obligation_that_can_not_be_is_refused() {
    use LoadFault as Fault;
    let first = "constraints[0].obligations[0]";
    let kinds = "result_cap, read_only, budget_cut, approval, notify, approval_uses, openat2";
    let on_allow = |obligation: &str| one(&[("obligations", &format!("[{obligation}]"))]);
    let cuts = |from: u32| {
        let each = (0..16).map(|n| format!(r#"{{"type":"notify","topic":"t{}"}}"#, from + n));
        let each: Vec<String> = each.collect();
        constraint(&[
            ("id", &format!("\"c{from}\"")),
            ("obligations", &format!("[{}]", each.join(","))),
        ])
    };
    let seventeen = vec![r#"{"type":"read_only"}"#; 17].join(",");
    check(vec![
        (one(&[("obligations", "{}")]), Fault::Type, "constraints[0].obligations", Some("a list")),
        (on_allow(r#"{"typ":"read_only"}"#), Fault::UnknownKey, first, Some("type")),
        (on_allow(r#"{"bytes":1}"#), Fault::MissingKey, first, None),
        (
            on_allow(r#"{"type":"readonly"}"#),
            Fault::UnknownObligation,
            "constraints[0].obligations[0].type",
            Some("read_only"),
        ),
        (
            on_allow(r#"{"type":"log"}"#),
            Fault::UnknownObligation,
            "constraints[0].obligations[0].type",
            Some(kinds),
        ),
        (on_allow(r#"{"type":"read_only","bytes":1}"#), Fault::UnknownKey, first, Some("type")),
        (on_allow(r#"{"type":"openat2","level":"x"}"#), Fault::UnknownKey, first, Some("type")),
        (on_allow(r#"{"type":"result_cap"}"#), Fault::MissingKey, first, None),
        (
            on_allow(r#"{"type":"result_cap","bytes":0}"#),
            Fault::BadObligation,
            "constraints[0].obligations[0].bytes",
            Some("at least 1"),
        ),
        (
            on_allow(r#"{"type":"budget_cut","dimension":"egress_byte","max":1}"#),
            Fault::UnknownDimension,
            "constraints[0].obligations[0].dimension",
            Some("egress_bytes"),
        ),
        (
            on_allow(r#"{"type":"budget_cut","dimension":"cpu_us","max":1}"#),
            Fault::UnknownDimension,
            "constraints[0].obligations[0].dimension",
            Some(concat!(
                "llm_tokens, disk_write_bytes, disk_files, egress_bytes, ingress_bytes, ",
                "credits_micro"
            )),
        ),
        (
            deny("ask", r#"[{"type":"approval","level":"high"}]"#),
            Fault::BadObligation,
            "constraints[0].obligations[0].level",
            Some("elevated"),
        ),
        (
            on_allow(r#"{"type":"notify","topic":"A b"}"#),
            Fault::BadObligation,
            "constraints[0].obligations[0].topic",
            Some("1 to 64 of [a-z0-9._-]"),
        ),
        (
            on_allow(r#"{"type":"approval","level":"elevated"}"#),
            Fault::ObligationNotHere,
            first,
            Some("result_cap, read_only, budget_cut, notify, openat2"),
        ),
        (
            deny("block", r#"[{"type":"read_only"}]"#),
            Fault::ObligationNotHere,
            first,
            Some("notify"),
        ),
        (
            deny("defer", r#"[{"type":"approval","level":"elevated"}]"#),
            Fault::ObligationNotHere,
            first,
            Some("notify"),
        ),
        (on_allow(&seventeen), Fault::TooManyObligations, "constraints[0].obligations", None),
        (
            document(&[cuts(0), cuts(16), cuts(32)]),
            Fault::TooManyObligations,
            "constraints[2].obligations",
            None,
        ),
    ]);
}

/// What the error says to do is true of every obligation.
#[test]
fn each_obligation_stands_in_a_deny_that_asks() {
    assert!(LoadFault::ObligationNotHere.to_string().contains("a deny with on_fail ask"));
    for obligation in [
        r#"{"type":"result_cap","bytes":9}"#,
        r#"{"type":"read_only"}"#,
        r#"{"type":"approval","level":"elevated"}"#,
        r#"{"type":"notify","topic":"seen"}"#,
    ] {
        load(&deny("ask", &format!("[{obligation}]"))).expect(obligation);
    }
}

#[test]
fn a_parameter_that_can_not_be_is_refused() {
    use LoadFault as Fault;
    let uses = |name: &str| {
        constraint(&[("when", &format!(r#"{{"op":"eq","args":["args.a",{{"param":"{name}"}}]}}"#))])
    };
    let lists = |name: &str| {
        constraint(&[("when", &format!(r#"{{"op":"in","args":["args.a",{{"param":"{name}"}}]}}"#))])
    };
    let all = constraint(&[]);
    let second = "constraints[0].when.args[1]";
    let many: Vec<String> = (0..1_025).map(|n| format!("\"p{n}\":1")).collect();
    check(vec![
        (with_params(&all, "[]"), Fault::Type, "params", Some("a map with text keys")),
        (with_params(&all, r#"{"Bad":1}"#), Fault::ParamName, "params.Bad", None),
        (with_params(&all, r#"{"a":null}"#), Fault::BadConstant, "params.a", None),
        (with_params(&all, r#"{"a":[[1]]}"#), Fault::BadConstant, "params.a[0]", None),
        (with_params(&all, r#"{"a":1.5}"#), Fault::Float, "params.a", None),
        (
            with_params(&all, &format!("{{{}}}", many.join(","))),
            Fault::TooManyParams,
            "params",
            None,
        ),
        (with_params(&all, r#"{"tools":"fs.read"}"#), Fault::Type, "params.tools", Some("a list")),
        (
            with_params(&all, r#"{"tools":["fs.read","FS"]}"#),
            Fault::BadTool,
            "params.tools[1]",
            Some("fs"),
        ),
        (with_params(&all, r#"{"tools":["*"]}"#), Fault::Wildcard, "params.tools[0]", None),
        (
            with_params(&all, r#"{"agents":[]}"#),
            Fault::Type,
            "params.agents",
            Some("a map with text keys"),
        ),
        (
            with_params(&all, r#"{"agents":{"Bob":[]}}"#),
            Fault::BadAgent,
            "params.agents.Bob",
            Some("bob"),
        ),
        (
            with_params(&all, r#"{"agents":{"bob":["x y"]}}"#),
            Fault::BadTool,
            "params.agents.bob[0]",
            Some("x_y"),
        ),
        (with_params(&all, r#"{"risk":{"a":101}}"#), Fault::Risk, "params.risk.a", None),
        (
            with_params(&all, r#"{"risk":{"a":-1}}"#),
            Fault::Type,
            "params.risk.a",
            Some("an integer from 0"),
        ),
        (with_params(&uses("host"), "{}"), Fault::UnknownParam, second, None),
        (with_params(&all, r#"{"tool":["a"]}"#), Fault::UnusedParam, "params", Some("tools")),
        (with_params(&all, r#"{"agnets":["a"]}"#), Fault::UnusedParam, "params", Some("agents")),
        (with_params(&all, r#"{"limit":1}"#), Fault::UnusedParam, "params", None),
        (with_params(&uses("hosst"), r#"{"host":"a"}"#), Fault::UnknownParam, second, Some("host")),
        (with_params(&uses("tools"), r#"{"tools":[]}"#), Fault::UnknownParam, second, None),
        (with_params(&uses("l"), r#"{"l":["a"]}"#), Fault::ListParam, second, None),
        (with_params(&lists("ll"), r#"{"l":[]}"#), Fault::UnknownParam, second, None),
        (test("eq", r#"["args.a", {"parm":"x"}]"#), Fault::UnknownKey, second, Some("param")),
        (
            test("eq", r#"["args.a", {"param":1}]"#),
            Fault::Type,
            "constraints[0].when.args[1].param",
            Some("text"),
        ),
    ]);
}

#[test]
fn an_example_that_does_not_hold_is_refused() {
    use LoadFault as Fault;
    let example = |example: &str| {
        one(&[
            ("subject", r#"{"tool_id":"fs.read"}"#),
            ("when", r#"{"op":"within","args":["args.path","shared"]}"#),
            ("examples", &format!("[{example}]")),
        ])
    };
    let given = r#"{"call.tool":"fs.read","args.path":{"path":"shared/a.txt"}}"#;
    let first = "constraints[0].examples[0]";
    let many = vec![format!(r#"{{"given":{given},"holds":true}}"#); 65].join(",");
    check(vec![
        (example("1"), Fault::Type, first, Some("a map with text keys")),
        (example(r#"{"holds":true}"#), Fault::MissingKey, first, None),
        (example(&format!(r#"{{"given":{given}}}"#)), Fault::EmptyExample, first, None),
        (
            example(&format!(r#"{{"given":{given},"hold":true}}"#)),
            Fault::UnknownKey,
            first,
            Some("holds"),
        ),
        (
            example(&format!(r#"{{"given":{given},"holds":1}}"#)),
            Fault::Type,
            "constraints[0].examples[0].holds",
            Some("true or false"),
        ),
        (
            example(&format!(r#"{{"given":{given},"verdict":"alow"}}"#)),
            Fault::UnknownVerdict,
            "constraints[0].examples[0].verdict",
            Some("allow"),
        ),
        (
            example(&format!(r#"{{"given":{given},"holds":false}}"#)),
            Fault::Example,
            "constraints[0].examples[0].holds",
            None,
        ),
        (
            example(&format!(r#"{{"given":{given},"verdict":"deny"}}"#)),
            Fault::Example,
            "constraints[0].examples[0].verdict",
            None,
        ),
        (example(&many), Fault::TooManyExamples, "constraints[0].examples", None),
    ]);
    let bad = load(&example(r#"{"given":{"arg.path":1},"holds":true}"#)).expect_err("a scenario");
    assert_eq!(bad.fault, Fault::Scenario);
    assert!(bad.place.starts_with("constraints[0].examples[0].given"), "{bad}");
    load(&example(&format!(r#"{{"given":{given},"holds":true,"verdict":"allow"}}"#))).unwrap();
    load(&example(r#"{"given":{"call.tool":"fs.write"},"holds":false,"verdict":"deny"}"#)).unwrap();
}
