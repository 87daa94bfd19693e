//! Typed plans: parsed once, judged by scope, run as they were judged.

use std::sync::atomic::{AtomicU64, Ordering};

use syscap::format::{EffectClass, Enforcement, Name, Names, Refused, Resource, Scope};
use syscap::host::{Failure, HostArgs, HostTool, Planned, ToolCall, Typed};
use syscap::prelude::*;

use super::world::{World, options};

static PLANNED: AtomicU64 = AtomicU64::new(0);
static RUN: AtomicU64 = AtomicU64::new(0);

struct Mail {
    team: String,
    bytes: u64,
}

impl Typed for Mail {
    type Answer = u64;

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        PLANNED.fetch_add(1, Ordering::SeqCst);
        let team = args.text("team")?;
        assert_ne!(team, "panic", "a plan that panics");
        let resource = Name::new(team).map_err(|_| args.bad("team", "a short name"))?;
        let bytes = u64::try_from(args.integer("bytes")?).map_err(|_| args.bad("bytes", "0.."))?;
        let mail = Self { team: team.to_owned(), bytes };
        let planned = Planned::new(mail).touches("team", Resource::Name(resource), "team");
        Ok(planned.hold(Dimension::EgressBytes, bytes))
    }

    fn run(self, call: &ToolCall) -> Result<u64, Failure> {
        RUN.fetch_add(1, Ordering::SeqCst);
        assert_eq!(self.team, "red");
        call.meter(Dimension::EgressBytes, self.bytes)?;
        call.meter(Dimension::EgressBytes, 1).unwrap_err();
        Ok(self.bytes)
    }
}

#[test]
fn a_typed_tool_is_planned_once_and_runs_as_it_was_judged() {
    let mail = HostTool::new("team.mail", EffectClass::ExternalWrite)
        .unwrap()
        .text("team", "Whom.")
        .integer("bytes", "How much.")
        .needs("team")
        .typed::<Mail>();
    let red = Scope::Names(Names::new([Name::new("red").unwrap()]).unwrap());
    let budget = Budget::standard().with(Dimension::EgressBytes, 100);
    let grant = Grant::to("a").tools(["team.mail"]).scope("team", red).budget(budget);
    let world = World::granting(options().tool(mail).unwrap(), grant);
    let mail = |team: &str, bytes: i64| {
        let before = (PLANNED.load(Ordering::SeqCst), RUN.load(Ordering::SeqCst));
        let args = args! { "team": team, "bytes": bytes };
        let result = world.agent.call("team.mail", args).unwrap();
        let after = (PLANNED.load(Ordering::SeqCst), RUN.load(Ordering::SeqCst));
        (result, (after.0 - before.0, after.1 - before.1))
    };
    let (sent, counts) = mail("red", 60);
    assert_eq!(sent.value().unwrap().as_uint(), Some(60));
    assert_eq!(sent.receipt().used.get(Dimension::EgressBytes), 60);
    assert_eq!(sent.receipt().enforcement, Enforcement::Delegated);
    assert_eq!(counts, (1, 1));
    for (team, bytes, reason) in [
        ("blue", 1, Reason::OutOfScope),
        ("red", -1, Reason::BadArgument),
        ("red", 41, Reason::OverBudget),
        ("panic", 1, Reason::Panicked),
    ] {
        let (refused, counts) = mail(team, bytes);
        assert_eq!(refused.reason(), Some(reason), "{team} {bytes}");
        assert_eq!(refused.receipt().intent, None);
        assert_eq!(counts, (1, 0));
    }
    let (sent, _) = mail("red", 40);
    assert_eq!(sent.reason(), None);
    world.close();
}
