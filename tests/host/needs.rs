//! Dimensions that a host's tool declares: each is compared with the token, or the tool is none.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use syscap::Error;
use syscap::format::{
    Canonical, EffectClass, Name, Param, ParamType, Refused, Resource, Scope, ScopeType,
};
use syscap::host::{Failure, HostArgs, HostTool, HostTools, Planned, ToolCall, Typed};
use syscap::kernel::RegistryError;
use syscap::prelude::*;
use syscap::provide::Standing;

use super::world::{World, options};

fn page() -> HostTool {
    HostTool::new("team.page", EffectClass::ExternalWrite)
        .unwrap()
        .arg(Param::optional("team", ParamType::Any, "Whom."))
        .argument("team", ScopeType::Names)
}

fn red() -> Scope {
    Scope::names(["red"]).unwrap()
}

/// What each call came to, by a token for the red team; then by one without any team.
fn pages(world: &World, ran: &AtomicU64) {
    let list = |teams: &[&str]| Canonical::list(teams.iter().map(|team| Canonical::text(team)));
    let both = args! { "team": list(&["red", "blue"]) };
    let calls = [
        (args! { "team": "red" }, None),
        (args! { "team": list(&["red"]) }, None),
        (args! {}, None),
        (args! { "team": "blue" }, Some(Reason::OutOfScope)),
        (both, Some(Reason::OutOfScope)),
        (args! { "team": 7 }, Some(Reason::BadArgument)),
    ];
    for (args, reason) in calls {
        let before = ran.load(Ordering::SeqCst);
        let result = world.agent.call("team.page", args).unwrap();
        assert_eq!(result.reason(), reason);
        assert_eq!(ran.load(Ordering::SeqCst) - before, u64::from(reason.is_none()));
    }
    let before = ran.load(Ordering::SeqCst);
    let bare = world.rt.issue(Grant::to("b").tools(["team.page"])).unwrap();
    let bare = world.rt.session("b", bare).unwrap();
    let result = bare.call("team.page", args! { "team": "red" }).unwrap();
    assert_eq!(result.reason(), Some(Reason::OutOfScope));
    assert_eq!(ran.load(Ordering::SeqCst), before);
    drop(bare);
}

#[test]
fn argument_of_a_closure_is_compared_with_the_scope() {
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let tool = page().run(move |_| Ok(counted.fetch_add(1, Ordering::SeqCst)));
    let grant = Grant::to("a").tools(["team.page"]).scope("team", red());
    let world = World::granting(options().tool(tool).unwrap(), grant);
    pages(&world, &ran);
    world.close();
}

#[test]
fn argument_of_an_asynchronous_closure_is_compared_with_the_scope() {
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let handle = tokio.handle().clone();
    let spawn = move |task| drop(handle.spawn(task));
    let tool = page().run_async(spawn, move |_| {
        let counted = Arc::clone(&counted);
        async move { Ok(counted.fetch_add(1, Ordering::SeqCst)) }
    });
    let grant = Grant::to("a").tools(["team.page"]).scope("team", red());
    let world = World::granting(options().tool(tool).unwrap(), grant);
    pages(&world, &ran);
    world.close();
}

#[test]
fn argument_of_a_delegated_closure_is_compared_with_the_scope() {
    let ran = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&ran);
    let tool = page().run(move |_| Ok(counted.fetch_add(1, Ordering::SeqCst)));
    let tools = HostTools::new().with(tool);
    let mut world = World::with(options(), &["echo"]);
    let offers = world.rt.provide(tools.manifests(), Arc::new(tools)).unwrap();
    assert_eq!(offers[0].standing, Standing::Ready);
    let grant = Grant::to("a").tools(["team.page"]).scope("team", red());
    let token = world.rt.issue(grant).unwrap();
    world.agent = world.rt.session("a", token).unwrap();
    pages(&world, &ran);
    world.close();
}

#[test]
fn closure_that_compares_nothing_with_its_scope_is_refused_when_it_is_added() {
    let tool = || HostTool::new("team.page", EffectClass::Read).unwrap().text("team", "Whom.");
    let needs = || tool().needs("team");
    let sync = options().tool(needs().run(|_| Ok(()))).err();
    let future = options().tool(needs().run_async(drop, |_| async { Ok(()) })).err();
    for error in [sync, future] {
        let of = match error {
            Some(Error::Registry(RegistryError::NotCompared { dimension, .. })) => dimension,
            other => panic!("{other:?}"),
        };
        assert_eq!(&*of, "team");
    }
    // An argument that is not there, or can't name such a thing, names nothing.
    for bad in [
        tool().argument("taem", ScopeType::Names),
        tool().argument("team", ScopeType::Ints),
        tool().argument("team", ScopeType::Paths),
        tool().argument_in("team", "host", ScopeType::Names),
    ] {
        let error = options().tool(bad.run(|_| Ok(()))).err();
        let is_bad = matches!(error, Some(Error::Registry(RegistryError::BadManifest(_))));
        assert!(is_bad, "{error:?}");
    }
}

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Compares the team that is given; says so where none is, unless it is told not to.
struct Careless;

impl Typed for Careless {
    type Answer = ();

    fn plan(args: HostArgs<'_>) -> Result<Planned<Self>, Refused> {
        let planned = Planned::new(Self);
        Ok(match (args.maybe_text("team")?, args.boolean("careless")?) {
            (_, true) => planned,
            (None, false) => planned.untouched("team"),
            (Some(team), false) => {
                let team = Resource::Name(Name::new(team).unwrap());
                planned.touches("team", team, "team")
            }
        })
    }

    fn run(self, _: &ToolCall) -> Result<(), Failure> {
        RUNS.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

#[test]
fn plan_that_compares_nothing_in_a_declared_dimension_is_refused() {
    let tool = HostTool::new("team.page", EffectClass::ExternalWrite)
        .unwrap()
        .arg(Param::optional("team", ParamType::Text, "Whom."))
        .boolean("careless", "Whether it forgets to compare.")
        .needs("team")
        .typed::<Careless>();
    let grant = Grant::to("a").tools(["team.page"]).scope("team", red());
    let world = World::granting(options().tool(tool).unwrap(), grant);
    for (args, reason) in [
        (args! { "team": "red", "careless": false }, None),
        (args! { "careless": false }, None),
        (args! { "team": "blue", "careless": false }, Some(Reason::OutOfScope)),
        (args! { "team": "red", "careless": true }, Some(Reason::NotCompared)),
        (args! { "team": "blue", "careless": true }, Some(Reason::NotCompared)),
        (args! { "careless": true }, Some(Reason::NotCompared)),
    ] {
        let before = RUNS.load(Ordering::SeqCst);
        let result = world.agent.call("team.page", args).unwrap();
        assert_eq!(result.reason(), reason);
        assert_eq!(RUNS.load(Ordering::SeqCst) - before, u64::from(reason.is_none()));
    }
    world.close();
}

/// `None` where it was issued; else what was refused, and the first of what would do.
fn issued(world: &World, grant: Grant) -> Option<(Reason, String)> {
    let refused = match world.rt.issue(grant) {
        Ok(_) => return None,
        Err(Error::Refused(refused)) => refused,
        Err(other) => panic!("{other:?}"),
    };
    let text = refused.allowed_text().unwrap_or_default().to_owned();
    Some((refused.reason(), text.split(", ").next().unwrap_or_default().to_owned()))
}

#[test]
fn issue_refuses_a_scope_that_no_granted_tool_compares() {
    let tool = page().run(|_| Ok(()));
    let size = HostTool::new("team.size", EffectClass::Read)
        .unwrap()
        .integer("size", "How many.")
        .argument("size", ScopeType::Ints)
        .run(|_| Ok(()));
    let options = options().tool(tool).unwrap().tool(size).unwrap();
    let world = World::with(options, &["echo"]);
    let bad = |allowed: &str| Some((Reason::BadScope, allowed.to_owned()));
    let page = || Grant::to("a").tools(["team.page"]);
    assert_eq!(issued(&world, page().scope("teem", red())), bad("team"));
    assert_eq!(issued(&world, page().scope("team", red())), None);
    let hosts = Scope::hosts(["red"]).unwrap();
    assert_eq!(issued(&world, page().scope("team", hosts.clone())), bad("names"));
    let echo = Grant::to("a").tools(["echo"]).scope("team", red());
    assert_eq!(issued(&world, echo), bad("none: the tools take no scope"));
    // One tool that compares it is enough, and no root is such a scope.
    let both = Grant::to("a").tools(["team.page", "echo"]).workspace();
    assert_eq!(issued(&world, both.scope("team", red())), None);
    let size = || Grant::to("a").tools(["team.size"]);
    assert_eq!(issued(&world, size().scope("size", red())), bad("ints"));
    assert_eq!(issued(&world, size().scope("size", Scope::ints(1, 9).unwrap())), None);
    // What a tool of this workspace compares beside, or in the place of, what it declares.
    let mail = || Grant::to("a").tools(["email.draft"]);
    assert_eq!(issued(&world, mail().scope("recipient_host", hosts.clone())), None);
    assert_eq!(issued(&world, mail().scope("recipient_host", red())), bad("hosts"));
    assert_eq!(issued(&world, mail().scope("recipient_hots", hosts)), bad("recipient_host"));
    world.close();
}
