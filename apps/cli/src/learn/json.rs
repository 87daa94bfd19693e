//! A proposal for machines: one document.

use syscap::analysis::learn::{
    ArgumentLine, ForAgent, LeftOut, LimitLine, Proposal, ScopeLine, Support, ToolLine, Why,
};
use syscap::format::json;
use syscap::kernel::PolicyEngine as _;
use syscap::learn::Recorded;

use super::{Applied, not_seen};
use crate::output::{Object, amounts, array};

pub(super) fn proposal(
    proposal: &Proposal,
    recorded: &Recorded,
    applied: Option<&Applied>,
) -> Object {
    let policy = syscap::format::Canonical::check(
        proposal.policy.document(),
        syscap::format::Profile::CONTROL,
    );
    let policy = policy.map_or_else(|_| "null".to_owned(), |policy| json::from_item(policy.item()));
    let not_seen = not_seen(recorded)
        .into_iter()
        .fold(Object::new(), |object, (name, _, count)| object.uint(name, count));
    let applied = applied.map_or_else(
        || "null".to_owned(),
        |Applied { policy, tokens }| {
            let tokens = tokens.iter().map(|(agent, token)| {
                Object::new().shown("agent", agent).shown("token_id", token).finish()
            });
            Object::new().uint("record", policy.get()).json("tokens", &array(tokens)).finish()
        },
    );
    Object::new()
        .json("agents", &array(proposal.agents.iter().map(agent)))
        .json("left_out", &array(proposal.left_out.iter().map(left_out)))
        .json("not_seen", &not_seen.finish())
        .json("policy", &policy)
        .json("applied", &applied)
}

fn count(n: usize) -> u64 {
    u64::try_from(n).unwrap_or(u64::MAX)
}

fn agent(one: &ForAgent) -> String {
    supported(Object::new().shown("agent", &one.agent), &one.seen)
        .shown("ceiling", one.ceiling)
        .uint("refused", count(one.refused))
        .uint("alone_with_a_tool", count(one.alone_with_a_tool))
        .json("tools", &array(one.tools.iter().map(tool)))
        .json("budget", &amounts(one.budget.amounts()))
        .json("limits", &array(one.limits.iter().map(limit)))
        .finish()
}

fn supported(object: Object, seen: &Support) -> Object {
    let Support { calls, sessions, tasks } = seen;
    let object = object.uint("calls", count(*calls)).uint("sessions", count(*sessions));
    object.uint("tasks", count(*tasks))
}

fn tool(line: &ToolLine) -> String {
    let object = Object::new().shown("tool", &line.tool).shown("effect", line.effect);
    supported(object, &line.seen)
        .uint("confirmed", count(line.confirmed))
        .json("scopes", &array(line.scopes.iter().map(scope)))
        .json("arguments", &array(line.arguments.iter().map(argument)))
        .finish()
}

fn scope(line: &ScopeLine) -> String {
    let tried = line.tried.iter();
    let tried = tried.fold(Object::new(), |o, (reach, n)| o.uint(reach.name(), count(*n)));
    Object::new()
        .text("dimension", &line.dimension)
        .shown("scope", &line.scope)
        .text("reach", line.reach.name())
        .uint("resources", count(line.resources))
        .uint("alone", count(line.alone))
        .json("tried", &tried.finish())
        .finish()
}

fn argument(line: &ArgumentLine) -> String {
    let tried = line.tried.iter().filter_map(|(class, n)| n.map(|n| (class, n)));
    let tried = tried.fold(Object::new(), |o, (class, n)| o.uint(class.name(), count(n)));
    Object::new()
        .text("name", &line.name)
        .text("class", line.class.name())
        .json("when", &json::from_item(line.written().item()))
        .uint("values", count(line.values))
        .uint("alone", count(line.alone))
        .json("tried", &tried.finish())
        .finish()
}

fn limit(line: &LimitLine) -> String {
    let object = Object::new().text("dimension", line.dimension.name()).uint("limit", line.limit);
    match line.most {
        Some((most, session)) => object.uint("most", most).uint("session", session.get()),
        None => object.json("most", "null").json("session", "null"),
    }
    .finish()
}

fn left_out(left: &LeftOut) -> String {
    let object = Object::new()
        .shown("agent", &left.agent)
        .shown("tool", &left.tool)
        .text("why", left.why.name());
    let object = match left.why {
        Why::Refused(reason) => object.text("reason", reason.name()),
        _ => object.json("reason", "null"),
    };
    let object = object.uint("calls", left.calls);
    let object = match left.records.first() {
        Some(first) => object.uint("first", first.get()),
        None => object.json("first", "null"),
    };
    object.json("records", &array(left.records.iter().map(ToString::to_string))).finish()
}
