//! Writes what was learned as a policy's document.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use syscap_format::{AgentId, Canonical, ConstraintId, Encoder, MapBuilder, Profile, ToolId};
use syscap_policy::{Ask, Attribute, Condition, Constant, LoadError, Policy, Test};

use super::proposal::{ForAgent, ToolLine};

/// The policy that allows what the lines say, to the agents that they are about.
pub(super) fn policy(agents: &[ForAgent]) -> Result<Policy, LoadError> {
    let lines = agents.iter().flat_map(|one| one.tools.iter().map(move |line| (&one.agent, line)));
    let constraints: Vec<Canonical> =
        lines.enumerate().map(|(n, (agent, line))| constraint(n, agent, line)).collect();
    let list = Canonical::list(constraints.into_iter());
    let document = MapBuilder::new().uint("v", 1).item("constraints", list.item()).finish();
    Policy::from_cbor(document.as_bytes())
}

fn constraint(place: usize, agent: &AgentId, line: &ToolLine) -> Canonical {
    let is_agent = Condition::Test(Test {
        attribute: Attribute::Agent,
        ask: Ask::Eq(Constant::Text(agent.as_str().into())),
    });
    let asked = line.arguments.iter().filter_map(|argument| argument.condition.clone());
    let when = Condition::All(core::iter::once(is_agent).chain(asked).collect());
    let subject = MapBuilder::new().text("tool_id", line.tool.as_str()).finish();
    MapBuilder::new()
        .text("id", &id(place, agent, &line.tool))
        .text("effect", "allow")
        .item("subject", subject.item())
        .item("when", condition(&when).item())
        .text("on_fail", "block")
        .text("reason", &reason(line))
        .finish()
}

/// Tool and agent; where that is too long, a number.
fn id(place: usize, agent: &AgentId, tool: &ToolId) -> String {
    let named = format!("{tool}/{agent}");
    match ConstraintId::new(&named) {
        Some(_) => named,
        None => format!("{tool}/{place}"),
    }
}

/// The evidence. It stands in the policy, so it names no value.
fn reason(line: &ToolLine) -> String {
    if line.seen.calls == 0 {
        return "Named by the operator; never called while it was recorded.".to_string();
    }
    let (calls, tasks) = (line.seen.calls, line.seen.tasks);
    format!("Learned from {}, {}.", counted(calls, "call"), counted(tasks, "task"))
}

fn counted(n: usize, what: &str) -> String {
    if n == 1 { format!("{n} {what}") } else { format!("{n} {what}s") }
}

/// A condition as documents write it.
pub(super) fn condition(of: &Condition) -> Canonical {
    let (op, args) = match of {
        Condition::All(parts) => ("all", parts.iter().map(condition).collect()),
        Condition::Any(parts) => ("any", parts.iter().map(condition).collect()),
        Condition::Not(part) => ("not", Vec::from([condition(part)])),
        Condition::Test(Test { attribute, ask }) => {
            let (op, held_against) = test(ask);
            let attribute = Canonical::text(&attribute.to_string());
            (op, core::iter::once(attribute).chain(held_against).collect::<Vec<_>>())
        }
    };
    let args = Canonical::list(args.into_iter());
    MapBuilder::new().text("op", op).item("args", args.item()).finish()
}

/// An operator and what the attribute is held against.
fn test(ask: &Ask) -> (&'static str, Option<Canonical>) {
    let text = |text: &str| Some(Canonical::text(text));
    match ask {
        Ask::Eq(value) => ("eq", Some(constant(value))),
        Ask::In(values) => {
            let values: Vec<Canonical> = values.iter().map(constant).collect();
            ("in", Some(Canonical::list(values.into_iter())))
        }
        Ask::Exists => ("exists", None),
        Ask::Missing => ("missing", None),
        Ask::Schema(kind) => ("schema", text(kind.name())),
        Ask::Lt(n) => ("lt", Some(integer(*n))),
        Ask::Le(n) => ("le", Some(integer(*n))),
        Ask::Gt(n) => ("gt", Some(integer(*n))),
        Ask::Ge(n) => ("ge", Some(integer(*n))),
        Ask::Prefix(start) => ("prefix", text(start)),
        Ask::Suffix(end) => ("suffix", text(end)),
        Ask::Within(outer) => ("within", text(outer)),
        Ask::Domain(host) => ("domain", text(host.as_str())),
        Ask::Cidr(block) => ("cidr", text(&format!("{}/{}", block.addr(), block.prefix()))),
    }
}

fn constant(of: &Constant) -> Canonical {
    match of {
        Constant::Text(text) => Canonical::text(text),
        Constant::Int(n) => integer(*n),
        Constant::Bool(value) => written(|encoder| encoder.boolean(*value)),
    }
}

/// No integer here is beyond the codec's range; such a one would be null, and not load.
fn integer(n: i128) -> Canonical {
    written(|encoder| match (u64::try_from(n), i64::try_from(n)) {
        (Ok(n), _) => encoder.uint(n),
        (_, Ok(n)) => encoder.int(n),
        _ => encoder.null(),
    })
}

fn written(write: impl FnOnce(&mut Encoder)) -> Canonical {
    let mut encoder = Encoder::new();
    write(&mut encoder);
    Canonical::check(encoder.into_bytes(), Profile::DATA).unwrap_or_else(|_| Canonical::null())
}
