use super::*;

fn read(text: &str) -> Result<Scenario, (ScenarioFault, Box<str>)> {
    Scenario::from_json(text.as_bytes()).map_err(|error| (error.fault, error.place))
}

#[test]
fn every_notation_reads() {
    let text = r#"{"args.a":"x","args.b":-3,"args.c":true,"args.d":null,
        "args.e":{"path":"workspace/a/b"},"args.f":{"path":"shared"},"args.g":{"host":"a.b"},
        "args.h":{"address":"::1"},"fact.i":{"erased":true},"args.j":{"type":"float"},
        "args.k":{"type":"empty_list"},"args.l":["x",1,{"type":"map"}],
        "args.m":{"resources":[{"host":"a.b"},443,{"address":"10.0.0.1"},"n"]},
        "args.n.o":{"type":"bytes"},"call.tool":"fs.read","call.effect":"read",
        "call.agent":"team/a","now.hour":23,"now.weekday":7,"risk":100,"token.read_only":false,
        "budget.calls":18446744073709551615,"goal.p":[null]}"#;
    let scenario = read(text).unwrap();
    assert_eq!(scenario.iter().count(), 23);
    let agent = Given::Agent(AgentId::new("team/a").unwrap());
    assert_eq!(scenario.get(&Attribute::Agent), Some(&agent));
    assert_eq!(scenario.value(&Attribute::NowHour), Value::Int(23));
    assert_eq!(scenario.value(&Attribute::NowMs), Value::Missing);
}

#[test]
fn mistakes_have_their_fault_and_place() {
    for (text, fault, place) in [
        ("{", ScenarioFault::Json, "byte 1"),
        ("[]", ScenarioFault::Map, ""),
        (r#"{"arg.a":1}"#, ScenarioFault::Attribute, "arg.a"),
        (r#"{"args.a":1.5}"#, ScenarioFault::Value, "args.a"),
        (r#"{"args.a":{}}"#, ScenarioFault::Value, "args.a"),
        (r#"{"args.a":{"paht":"shared/a"}}"#, ScenarioFault::Value, "args.a"),
        (r#"{"args.a":{"erased":false}}"#, ScenarioFault::Value, "args.a"),
        (r#"{"args.a":{"type":"text"}}"#, ScenarioFault::Value, "args.a"),
        (r#"{"args.a":{"path":"/a"}}"#, ScenarioFault::Path, "args.a"),
        (r#"{"args.a":{"path":"shared/../b"}}"#, ScenarioFault::Path, "args.a"),
        (r#"{"args.a":{"host":"A"}}"#, ScenarioFault::Host, "args.a"),
        (r#"{"args.a":{"address":"1"}}"#, ScenarioFault::Address, "args.a"),
        (r#"{"args.a":[]}"#, ScenarioFault::List, "args.a"),
        (r#"{"args.a":[1,[2]]}"#, ScenarioFault::List, "args.a[1]"),
        (r#"{"args.a":{"resources":[1,true]}}"#, ScenarioFault::Value, "args.a.resources[1]"),
        (r#"{"args.a":{"erased":true}}"#, ScenarioFault::Never, "args.a"),
        (r#"{"args.a.b":{"host":"a"}}"#, ScenarioFault::Never, "args.a.b"),
        (r#"{"fact.a":{"host":"a"}}"#, ScenarioFault::Never, "fact.a"),
        (r#"{"call.tool":"Fs"}"#, ScenarioFault::Never, "call.tool"),
        (r#"{"call.effect":"reed"}"#, ScenarioFault::Never, "call.effect"),
        (r#"{"call.agent":".a"}"#, ScenarioFault::Never, "call.agent"),
        (r#"{"now.hour":24}"#, ScenarioFault::Never, "now.hour"),
        (r#"{"now.weekday":0}"#, ScenarioFault::Never, "now.weekday"),
        (r#"{"budget.calls":-1}"#, ScenarioFault::Never, "budget.calls"),
        (r#"{"token.id":"ab"}"#, ScenarioFault::Never, "token.id"),
    ] {
        assert_eq!(read(text), Err((fault, Box::from(place))), "{text}");
    }
}
