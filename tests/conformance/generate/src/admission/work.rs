//! The tool of the calls that are brought before the kernel.

use std::sync::Arc;

use kernel_support::sim::Shared;
use syscap_format::{
    Amounts, Dimension, EffectClass, Item, Manifest, MapBuilder, Param, ParamType, Reason, Refused,
    Resource, ToolId, TxOutcome,
};
use syscap_kernel::{Broken, Demand, Demands, Finding, Permit, Plan, Ran, Request, Tool};

/// Below this many units it touches no row.
const ROWS_FROM: u64 = 16;

/// Spends units. It refuses what `absent` names, with `careless` it says nothing of rows, and with
/// `many` it names too many.
pub(super) struct Work {
    manifest: Manifest,
    world: Shared,
}

impl Work {
    pub(super) fn new(world: &Shared) -> Self {
        let mut manifest =
            Manifest::new(ToolId::new("work").expect("a name"), EffectClass::LocalWrite)
                .needs("row")
                .param(Param::required("units", ParamType::Int, "").within(0, 1 << 40))
                .param(Param::optional("absent", ParamType::Bool, ""))
                .param(Param::optional("careless", ParamType::Bool, ""))
                .param(Param::optional("many", ParamType::Bool, ""))
                .param(Param::optional("note", ParamType::Any, ""));
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest, world: Arc::clone(world) }
    }
}

fn units(request: &Request<'_>) -> u64 {
    request.args.get("units").and_then(Item::as_uint).expect("units")
}

impl Tool for Work {
    type Plan = WorkPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<WorkPlan, Refused> {
        let is = |name| request.args.get(name).and_then(Item::as_bool).unwrap_or(false);
        if is("absent") {
            return Err(Refused::new(Reason::NotFound).field("absent"));
        }
        let units = units(request);
        let row = Demand {
            dimension: "row",
            resource: Resource::Int(i128::from(units / 32)),
            argument: "units",
        };
        let (named, untouched): (_, &'static [&'static str]) = match (is("careless"), units) {
            (true, _) => (false, &[]),
            (false, ..ROWS_FROM) => (false, &["row"]),
            _ => (true, &[]),
        };
        let mut resources = if named { vec![row.clone()] } else { Vec::new() };
        if is("many") {
            // One more than a call may name, beside the row that it may be granted.
            let other = |n: i128| Demand { resource: Resource::Int(n), ..row.clone() };
            resources.extend((1 << 40..=(1 << 40) + 1_024).map(other));
        }
        let hold = Amounts::ZERO.with(Dimension::DiskWriteBytes, units);
        let demands = Demands { resources, hold };
        Ok(WorkPlan { demands, untouched, units, world: Arc::clone(&self.world) })
    }

    /// After a crash it knows what it did, where the world does.
    fn probe(&self, broken: &Broken<'_>) -> Finding {
        let world = self.world.lock().expect("the world");
        let spent = world.spent.iter().filter(|(intent, _)| *intent == broken.intent);
        let spent: u64 = spent.map(|(_, units)| units).sum();
        match world.probes && spent == units(&broken.request) {
            true => Finding::Done,
            false => Finding::Unknown,
        }
    }
}

pub(super) struct WorkPlan {
    demands: Demands,
    untouched: &'static [&'static str],
    units: u64,
    world: Shared,
}

impl Plan for WorkPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        self.untouched
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        permit.meter(Dimension::DiskWriteBytes, self.units).expect("was set aside");
        self.world.lock().expect("the world").spent.push((permit.intent(), self.units));
        permit.ok(MapBuilder::new().uint("units", self.units).finish(), TxOutcome::Committed)
    }
}
