//! A tool that opens what a path leads to, through links of a file system that is a map.

use std::sync::Arc;

use syscap_format::{
    Amounts, Dimension, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Paths, Reason,
    Refused, Resource, Rights, Root, RootedPath, Rule, Scope, ToolId, TxOutcome,
};
use syscap_kernel::{Demand, Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request, Resolve};

use super::tools::Shared;

/// Where links lead from and to: some of it no token lets be opened.
pub const PLACES: [&str; 8] = [
    "shared/a",
    "shared/b",
    "shared/d/e",
    "shared/l1",
    "shared/l2",
    "shared/secret",
    "shared/secret/s",
    "shared/bad*/x",
];

/// `shared`, and a folder in it, by these rights.
pub fn scope(shared: Rights, secret: Rights) -> Scope {
    let rule = |below: &[&str], rights| {
        let path = RootedPath::new(Root::named("shared").unwrap(), below).unwrap();
        Rule { path, rights }
    };
    Scope::Paths(Paths::new([rule(&[], shared), rule(&["secret"], secret)]).unwrap())
}

/// The tool. Its resolver takes the world's links one by one, as they are when it runs.
pub struct Open {
    manifest: Manifest,
    world: Shared,
}

impl Open {
    pub fn new(world: &Shared) -> Self {
        Self::described(world, "")
    }

    /// The same with another definition.
    pub fn described(world: &Shared, text: &str) -> Self {
        let mut manifest = Manifest::new(ToolId::new("open").unwrap(), EffectClass::Read)
            .described("", text)
            .needs("path")
            .param(Param::required("at", ParamType::Path, "").within(1, 40))
            .param(Param::optional("note", ParamType::Any, ""))
            .param(Param::optional("lie", ParamType::Text, ""));
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest, world: Arc::clone(world) }
    }
}

fn at(request: &Request<'_>) -> Result<String, Refused> {
    let at = request.args.get("at").and_then(Item::as_text);
    at.map(str::to_owned).ok_or(Refused::new(Reason::BadArgument).field("at"))
}

impl ReadTool for Open {
    type Plan = OpenPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn resolver(&self, request: &Request<'_>) -> Result<Option<Box<dyn Resolve>>, Refused> {
        let follows = |rule: &Rule| Rights::FOLLOW.leq(rule.rights);
        match request.grant.scope("path") {
            Some(Scope::Paths(scope)) if scope.rules().iter().any(follows) => {}
            _ => return Ok(None),
        }
        let lie = request.args.get("lie").and_then(Item::as_text);
        // A tool that names an argument of another type, or none of its own.
        let argument = match lie {
            Some("note") => "note",
            Some("none") => "none",
            _ => "at",
        };
        let long = lie == Some("long");
        let (at, world) = (at(request)?, Arc::clone(&self.world));
        Ok(Some(Box::new(Walk { argument, at, long, world })))
    }

    fn plan(&self, request: &Request<'_>) -> Result<OpenPlan, Refused> {
        let at = at(request)?;
        let bad = || Refused::new(Reason::BadPath).field("at").got(&at);
        let mut names = at.split('/');
        let root = names.next().and_then(|root| Root::named(root).ok()).ok_or_else(bad)?;
        let path = RootedPath::new(root, names).map_err(|_| bad())?;
        let resource = Resource::Path { path, needs: Rights::READ };
        let demand = Demand { dimension: "path", resource, argument: "at" };
        let demands = Demands { resources: vec![demand], ..Demands::default() };
        Ok(OpenPlan { demands, at, world: Arc::clone(&self.world) })
    }
}

struct Walk {
    argument: &'static str,
    at: String,
    long: bool,
    world: Shared,
}

impl Resolve for Walk {
    fn argument(&self) -> &'static str {
        self.argument
    }

    fn resolve(self: Box<Self>) -> Result<String, Refused> {
        let mut world = self.world.lock().unwrap();
        world.lookups += 1;
        let out = || Refused::new(Reason::OutOfScope).field("at").got(&self.at).allowed("below");
        let mut at = self.at.clone();
        for _ in 0..4 {
            match world.links.get(&at) {
                Some(target) => at.clone_from(target),
                None if self.long => return Ok("shared/".repeat(40)),
                None => return Ok(at),
            }
        }
        Err(out())
    }
}

pub struct OpenPlan {
    demands: Demands,
    at: String,
    world: Shared,
}

impl ReadPlan for OpenPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        let mut world = self.world.lock().unwrap();
        world.opened.push((permit.intent(), self.at.clone()));
        drop(world);
        permit.ok(MapBuilder::new().text("opened", &self.at).finish(), TxOutcome::NoOp)
    }
}
