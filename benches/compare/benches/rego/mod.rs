//! The documents of [`world`](super::world) in Rego, in two ways that people write it:
//!
//! * a rule for each constraint, with its values in it;
//! * five rules for all, and the values as data by tool, so that only one tool's are looked at.
//!
//! Both run in regorus's virtual machine, its fastest documented path, and in its interpreter by
//! `eval_rule`, prepared by a first evaluation.

use std::{collections::BTreeMap, fmt::Write as _, num::NonZeroUsize, sync::Arc};

use regorus::languages::rego::compiler::Compiler;
use regorus::rvm::vm::RegoVM;
use regorus::{Engine, PolicyLengthConfig, Value};
use serde_json::{Map, json};
use syscap_policy::{Ask, Condition, Constant, Document, Effect, Subject, Test};

const RULE: &str = "data.syscap.allow";

/// What both ways begin with. Texts are joined once a call, so that a prefix is a component.
const HEAD: &str = r#"package syscap
import rego.v1
default allow := false
allow if { granted; not denied }
agent := concat("", [input.agent, "/"])
path := concat("", [input.path, "/"])
host := concat("", [".", input.host])
"#;

/// A policy, ready to be asked.
pub struct Rego {
    engine: Engine,
    /// None where the program is longer than 65,535 instructions, which it does not take.
    machine: Option<RegoVM>,
}

impl Rego {
    /// Compiles rules and data, for the interpreter and for the machine.
    pub fn new(rules: &str, data: Option<&str>) -> Self {
        Self { engine: interpreter(rules, data), machine: machine(rules, data) }
    }

    /// Whether the machine takes it.
    pub const fn is_in_machine(&self) -> bool {
        self.machine.is_some()
    }

    /// What the machine says.
    pub fn decide(&mut self, input: &Value) -> bool {
        let machine = self.machine.as_mut().unwrap();
        machine.set_input(input.clone());
        machine.execute().unwrap() == Value::Bool(true)
    }

    /// What the interpreter says.
    pub fn interpret(&mut self, input: &Value) -> bool {
        self.engine.set_input(input.clone());
        self.engine.eval_rule(RULE.into()).unwrap() == Value::Bool(true)
    }
}

fn read(rules: &str, data: Option<&str>) -> Engine {
    let mut engine = Engine::new();
    // 10,000 rules are longer than it takes by itself.
    engine.set_policy_length_config(PolicyLengthConfig {
        max_file_bytes: NonZeroUsize::MAX,
        max_lines: NonZeroUsize::MAX,
        ..PolicyLengthConfig::default()
    });
    engine.add_policy("syscap.rego".into(), rules.into()).unwrap();
    if let Some(data) = data {
        engine.add_data_json(data).unwrap();
    }
    engine
}

/// The interpreter, prepared by a first evaluation.
pub fn interpreter(rules: &str, data: Option<&str>) -> Engine {
    let mut engine = read(rules, data);
    engine.set_input(Value::from_json_str("{}").unwrap());
    engine.eval_rule(RULE.into()).unwrap();
    engine
}

/// The machine, with program and data; none where the program is too long for it.
pub fn machine(rules: &str, data: Option<&str>) -> Option<RegoVM> {
    let compiled = read(rules, data).compile_with_entrypoint(&Arc::from(RULE)).unwrap();
    let mut machine = RegoVM::new();
    match Compiler::compile_from_policy(&compiled, &[RULE]) {
        Ok(program) => machine.load_program(program),
        Err(error) if error.to_string().contains("max instructions") => return None,
        Err(error) => panic!("{error}"),
    }
    if let Some(data) = data {
        machine.set_data(Value::from_json_str(data).unwrap()).unwrap();
    }
    Some(machine)
}

/// A rule for each constraint.
pub fn rules(document: &Document) -> String {
    let mut text = String::from(HEAD);
    for constraint in &document.constraints {
        let Subject::Tool(tool) = &constraint.subject else { panic!("not of a tool") };
        let name = match constraint.effect {
            Effect::Allow => "granted",
            Effect::Deny => "denied",
        };
        let _ = write!(text, "{name} if {{ input.tool == \"{}\"", tool.as_str());
        for test in tests(&constraint.when) {
            let name = test.attribute.to_string();
            let _ = match (&*name, &test.ask) {
                ("call.agent", Ask::Eq(Constant::Text(is))) => {
                    write!(text, "; input.agent == \"{is}\"")
                }
                ("call.agent", Ask::Within(outer)) => {
                    write!(text, "; startswith(agent, \"{outer}/\")")
                }
                ("args.path", Ask::Within(outer)) => {
                    write!(text, "; startswith(path, \"{outer}/\")")
                }
                ("args.host", Ask::Domain(host)) => {
                    write!(text, "; endswith(host, \".{}\")", host.as_str())
                }
                ("args.bytes", Ask::Le(most)) => write!(text, "; input.bytes <= {most}"),
                ("args.bytes", Ask::Ge(least)) => write!(text, "; input.bytes >= {least}"),
                other => panic!("not in Rego: {other:?}"),
            };
        }
        text.push_str(" }\n");
    }
    text
}

/// Rules for all documents, and the document as data: what is not asked is any.
pub fn table(document: &Document) -> (String, String) {
    let mut tools: BTreeMap<&str, BTreeMap<&str, Vec<serde_json::Value>>> = BTreeMap::new();
    for constraint in &document.constraints {
        let Subject::Tool(tool) = &constraint.subject else { panic!("not of a tool") };
        let mut row = Map::new();
        for (key, any) in [("agent", json!("")), ("path", json!("")), ("host", json!(""))] {
            row.insert(key.into(), any);
        }
        row.insert("least".into(), json!(0));
        row.insert("most".into(), json!(i64::MAX));
        let mut list = match constraint.effect {
            Effect::Allow => "allow_below",
            Effect::Deny => "deny_below",
        };
        for test in tests(&constraint.when) {
            let name = test.attribute.to_string();
            let (key, value) = match (&*name, &test.ask) {
                ("call.agent", Ask::Eq(Constant::Text(is))) => {
                    list = if list == "allow_below" { "allow_same" } else { "deny_same" };
                    ("agent", json!(is))
                }
                ("call.agent", Ask::Within(outer)) => ("agent", json!(format!("{outer}/"))),
                ("args.path", Ask::Within(outer)) => ("path", json!(format!("{outer}/"))),
                ("args.host", Ask::Domain(host)) => ("host", json!(format!(".{}", host.as_str()))),
                ("args.bytes", Ask::Le(most)) => ("most", json!(i64::try_from(*most).unwrap())),
                ("args.bytes", Ask::Ge(least)) => ("least", json!(i64::try_from(*least).unwrap())),
                other => panic!("not in Rego: {other:?}"),
            };
            row.insert(key.into(), value);
        }
        tools.entry(tool.as_str()).or_default().entry(list).or_default().push(row.into());
    }
    let mut text = String::from(HEAD);
    for (rule, list, first) in [
        ("granted", "allow_same", "input.agent == row.agent"),
        ("granted", "allow_below", "startswith(agent, row.agent)"),
        ("denied", "deny_same", "input.agent == row.agent"),
        ("denied", "deny_below", "startswith(agent, row.agent)"),
    ] {
        let _ = writeln!(
            text,
            "{rule} if {{ some row in data.tools[input.tool].{list}; {first}; \
             startswith(path, row.path); endswith(host, row.host); \
             input.bytes >= row.least; input.bytes <= row.most }}"
        );
    }
    (text, json!({"tools": tools}).to_string())
}

fn tests(condition: &Condition) -> impl Iterator<Item = &Test> {
    let Condition::All(parts) = condition else { panic!("not a list of tests") };
    parts.iter().map(|part| match part {
        Condition::Test(test) => test,
        other => panic!("not a test: {other:?}"),
    })
}
