//! Refusals that their caller can't repair: the model must give up at once.

use syscap::{
    format::control::{Freeze, FreezeChange, FreezeTarget, Revocation},
    prelude::Reason,
};

use super::{Case, final_};
use crate::repair::world::{World, allow, any, deny};

const ECHO: &str = r#"{"tool_id": "echo", "args": {"value": 1}}"#;
const PAY: &str = r#"{"tool_id": "pay", "args": {"account": "rent", "amount": 5}}"#;
const ALWAYS: &str = r#"{"op": "all", "args": []}"#;
/// The same in other words: an allow and a deny of one condition are a contradiction.
const NEVER_NOT: &str = r#"{"op": "not", "args": [{"op": "any", "args": []}]}"#;

fn echo(_: &World) -> String {
    ECHO.to_owned()
}

fn pay(_: &World) -> String {
    PAY.to_owned()
}

fn frozen(target: FreezeTarget, name: &'static str) -> impl Fn(&World) -> String + Send + Sync {
    move |world| {
        let name = Box::from(name);
        world.runtime.freeze(&Freeze { target, name, change: FreezeChange::Freeze }).unwrap();
        ECHO.to_owned()
    }
}

fn revoked(world: &World) -> String {
    world.runtime.control(&Revocation::subtree(world.session.token())).unwrap();
    ECHO.to_owned()
}

pub(crate) fn cases() -> Vec<Case> {
    let named = |text: &'static str| move |_: &World| text.to_owned();
    let hour = r#"{"op": "lt", "args": ["now.ms", 1]}"#;
    vec![
        final_("a revoked token", revoked, Reason::Revoked),
        final_("a frozen agent", frozen(FreezeTarget::Agent, "a"), Reason::Frozen),
        final_("a frozen tool", frozen(FreezeTarget::Tool, "echo"), Reason::Frozen),
        final_(
            "a tool that is not granted",
            named(r#"{"tool_id": "current_time", "args": {}}"#),
            Reason::NotGranted,
        ),
        final_(
            "another agent",
            named(r#"{"tool_id": "echo", "args": {"value": 1}, "agent_id": "leakmark"}"#),
            Reason::NotBound,
        ),
        final_(
            "another's token",
            |world| {
                let token = world
                    .runtime
                    .look(|kernel| {
                        kernel
                            .tokens()
                            .map(|t| t.id)
                            .find(|id| *id != world.session.token())
                            .unwrap()
                    })
                    .unwrap();
                format!(r#"{{"tool_id": "echo", "args": {{}}, "capability_token_id": "{token}"}}"#)
            },
            Reason::NotBound,
        ),
        final_("a deny of everything", pay, Reason::Denied).under([deny(
            "pay",
            NEVER_NOT,
            "block",
            "Nobody pays.",
        )]),
        final_("no allow", pay, Reason::Denied)
            .under([allow("pay", r#"{"op": "any", "args": []}"#)]),
        final_("a deny that asks", pay, Reason::Asked).under([deny(
            "pay",
            ALWAYS,
            "ask",
            "Ask a person.",
        )]),
        final_("a deny that defers", pay, Reason::Deferred).under([deny(
            "pay",
            ALWAYS,
            "defer",
            "Not today.",
        )]),
        final_("an allow at another time", pay, Reason::Denied).under([allow("pay", hour)]),
        final_("what the tool can't keep", pay, Reason::Obligation).under([any("pay").replace(
            r#""on_fail""#,
            r#""obligations": [{"type": "read_only"}],
                "on_fail""#,
        )]),
        final_(
            "more than the budget has",
            |world| {
                for _ in 0..1_000 {
                    if world.send(ECHO).0.is_some() {
                        break;
                    }
                }
                ECHO.to_owned()
            },
            Reason::OverBudget,
        ),
        final_("a value that its tool may not have", echo, Reason::Deferred).under([deny(
            "echo",
            ALWAYS,
            "defer",
            "Wait for the others.",
        )]),
    ]
}
