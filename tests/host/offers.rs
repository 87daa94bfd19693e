//! Closures that are offered as a connection's tools.

use std::sync::Arc;

use syscap::format::{
    Amounts, Canonical, DefinitionHash, EffectClass, Enforcement, Seq, TxOutcome,
};
use syscap::host::{Failure, HostTool, HostTools};
use syscap::prelude::*;
use syscap::provide::{Cancel, HostCall, Provider, Standing};

use super::world::{World, options};

fn tools() -> HostTools {
    let hello = HostTool::new("app.hello", EffectClass::ExternalWrite)
        .unwrap()
        .text("name", "Whom.")
        .hold(Dimension::EgressBytes, 10)
        .run(|call| {
            call.meter(Dimension::EgressBytes, 5)?;
            Ok(format!("hello {}", call.text("name")?))
        });
    let bad = HostTool::new("app.bad", EffectClass::ExternalWrite)
        .unwrap()
        .hold(Dimension::EgressBytes, 10)
        .run(|_| -> Result<(), Failure> { panic!("a closure that panics") });
    HostTools::new().with(hello).with(bad)
}

fn call(tool: &str, definition: DefinitionHash) -> HostCall {
    HostCall {
        tool: ToolId::new(tool).unwrap(),
        definition,
        agent: AgentId::new("a").unwrap(),
        session: Seq::new(1),
        intent: Seq::new(2),
        args: args! { "name": "ada" }.finish(),
        hold: Amounts::ZERO.with(Dimension::EgressBytes, 10),
        result_bytes_max: 1_000,
        read_only: false,
        tag: 0,
        cancel: Cancel::new(),
    }
}

#[test]
fn a_set_of_closures_is_a_provider() {
    let tools = tools();
    let names: Vec<String> =
        tools.manifests().iter().map(|manifest| manifest.tool.as_str().to_owned()).collect();
    assert_eq!(names, ["app.bad", "app.hello"]);
    let definition = |tool: &str| {
        let world = World::with(options(), &["echo"]);
        let provider: Arc<dyn Provider> = Arc::new(tools.clone());
        let offers = world.rt.provide(tools.manifests(), provider).unwrap();
        let offer = offers.iter().find(|offer| offer.tool().as_str() == tool).unwrap();
        let id = DefinitionHash::from_bytes(*offer.manifest.id().as_bytes());
        world.close();
        id
    };
    let hello = definition("app.hello");
    let ran = tools.run(call("app.hello", hello));
    assert_eq!(ran.result.unwrap(), Canonical::text("hello ada"));
    assert_eq!(ran.tx, TxOutcome::Committed);
    assert_eq!(ran.used.get(Dimension::EgressBytes), 5);
    // Its panic is not its process's end.
    let ran = tools.run(call("app.bad", definition("app.bad")));
    assert_eq!(ran.result.unwrap_err().reason(), Reason::ProviderGone);
    assert_eq!((ran.tx, ran.used.get(Dimension::EgressBytes)), (TxOutcome::Unknown, 10));
    // Nothing runs that is not what was let through.
    for (tool, definition) in [("app.other", hello), ("app.bad", hello)] {
        let ran = tools.run(call(tool, definition));
        assert_eq!(ran.result.unwrap_err().reason(), Reason::Failed);
        assert_eq!(ran.tx, TxOutcome::NoOp);
    }
}

#[test]
fn offered_closures_are_called_like_any_tool() {
    let world = World::with(options(), &["echo"]);
    let offered = tools();
    let manifests = offered.manifests();
    let provider: Arc<dyn Provider> = Arc::new(offered);
    let offers = world.rt.provide(manifests, provider).unwrap();
    assert!(offers.iter().all(|offer| offer.standing == Standing::Ready));
    let token = world.rt.issue(Grant::to("a").tools(["app.hello", "app.bad"])).unwrap();
    let agent = world.rt.session("a", token).unwrap();
    let hello = agent.call("app.hello", args! { "name": "ada" }).unwrap();
    assert_eq!(hello.text().unwrap(), "hello ada");
    assert_eq!(hello.receipt().enforcement, Enforcement::Delegated);
    assert_eq!(hello.receipt().used.get(Dimension::EgressBytes), 5);
    let bad = agent.call("app.bad", args! {}).unwrap();
    assert_eq!((bad.reason(), bad.tx_outcome()), (Some(Reason::ProviderGone), TxOutcome::Unknown));
    assert_eq!(bad.receipt().used.get(Dimension::EgressBytes), 10);
    drop(agent);
    world.close();
}

/// Scopes are checked by a plan, and the plan of what is offered from elsewhere is not here.
#[test]
fn offer_with_a_scope_is_refused() {
    let world = World::with(options(), &["echo"]);
    let scoped = HostTool::new("app.scoped", EffectClass::Read).unwrap().needs("team");
    let scoped = HostTools::new().with(scoped.run(|_| Ok(())));
    let manifests = scoped.manifests();
    let provider: Arc<dyn Provider> = Arc::new(scoped);
    let offers = world.rt.provide(manifests, provider).unwrap();
    assert_eq!(offers[0].standing, Standing::Taken);
    world.close();
}
