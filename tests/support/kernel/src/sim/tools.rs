//! A tool that spends and one that reads, and what they really did.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use syscap_format::{
    Amounts, Dimension, EffectClass, Item, Label, Manifest, MapBuilder, Param, ParamType, Reason,
    Refused, Resource, Seq, ToolId, TxOutcome,
};
use syscap_kernel::{
    Broken, Demand, Demands, Finding, Permit, Plan, Ran, ReadPermit, ReadPlan, ReadTool, Request,
    Tool,
};

/// Effects that the tools really made, by intent.
#[derive(Default)]
pub struct World {
    /// (intent, units) of every unit spent, in order.
    pub spent: Vec<(Seq, u64)>,
    /// The links that there are.
    pub links: BTreeMap<String, String>,
    /// How often links were followed.
    pub lookups: u64,
    /// Whether what spends can tell, after a crash, what it did.
    pub probes: bool,
    /// What was really opened since the process began: intent and path.
    pub opened: Vec<(Seq, String)>,
    /// What the next runs that spend say of their effect, where they say something else.
    pub ends: Option<TxOutcome>,
}

pub type Shared = Arc<Mutex<World>>;

/// A tool that spends: it writes `units`, one metered unit at a time, and may fail or lie about
/// how much it needs.
pub struct Spend {
    manifest: Manifest,
    world: Shared,
}

impl Spend {
    pub fn new(world: &Shared) -> Self {
        let mut manifest = Manifest::new(ToolId::new("spend").unwrap(), EffectClass::LocalWrite)
            .needs("row")
            .param(Param::required("units", ParamType::Int, "").within(0, 1 << 40))
            .param(Param::optional("tries", ParamType::Int, "").within(0, 1 << 40))
            .param(Param::optional("note", ParamType::Any, ""))
            .param(Param::optional("lost", ParamType::Bool, ""))
            .param(Param::optional("credits", ParamType::Int, "").within(0, 1 << 40))
            .labelled(Label::UNTRUSTED);
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest, world: Arc::clone(world) }
    }

    /// Another definition of it.
    pub fn described(world: &Shared, description: &str) -> Self {
        let mut spend = Self::new(world);
        spend.manifest.description = Box::from(description);
        spend
    }
}

impl Tool for Spend {
    type Plan = SpendPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<SpendPlan, Refused> {
        let units = request.args.get("units").and_then(Item::as_uint);
        let units = units.ok_or(Refused::new(Reason::BadArgument).field("units"))?;
        let tries = request.args.get("tries").and_then(Item::as_uint).unwrap_or(units);
        let lost = request.args.get("lost").is_some();
        let credits = request.args.get("credits").and_then(Item::as_uint).unwrap_or(0);
        let hold = Amounts::ZERO
            .with(Dimension::DiskWriteBytes, units)
            .with(Dimension::CreditsMicro, credits);
        // What it touches is named by the units, many to one; a few touch nothing that has a name.
        let resource = Resource::Int(i128::from(units / 32));
        let row = Demand { dimension: "row", resource, argument: "units" };
        let (resources, untouched): (_, &'static [&'static str]) =
            if units < 16 { (Vec::new(), &["row"]) } else { (vec![row], &[]) };
        let demands = Demands { resources, hold };
        let world = Arc::clone(&self.world);
        Ok(SpendPlan { demands, untouched, tries, credits, lost, world })
    }

    /// What it has not begun is not done; of the rest it knows all but what its answer was.
    fn probe(&self, broken: &Broken<'_>) -> Finding {
        let world = self.world.lock().unwrap();
        let units = broken.request.args.get("units").and_then(Item::as_uint).unwrap();
        let spent = world.spent.iter().filter(|(intent, _)| *intent == broken.intent).count();
        match (world.probes, u64::try_from(spent).unwrap()) {
            (false, _) => Finding::Unknown,
            // It asks for more than it may have: that is cut down.
            (true, 0) => Finding::NotDone(Amounts::ZERO.with(Dimension::CreditsMicro, 1 << 50)),
            (true, spent) if spent >= units => Finding::Done,
            (true, _) => Finding::Unknown,
        }
    }
}

pub struct SpendPlan {
    demands: Demands,
    untouched: &'static [&'static str],
    tries: u64,
    /// What it costs, of which it uses all but one.
    credits: u64,
    /// Whether it loses sight of what it did.
    lost: bool,
    world: Shared,
}

impl Plan for SpendPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn untouched(&self) -> &[&'static str] {
        self.untouched
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        for _ in 0..self.tries {
            if permit.meter(Dimension::DiskWriteBytes, 1).is_err() {
                return permit.failed(Refused::new(Reason::OverHold), TxOutcome::Committed);
            }
            let mut world = self.world.lock().unwrap();
            world.spent.push((permit.intent(), 1));
        }
        permit.meter(Dimension::CreditsMicro, self.credits.saturating_sub(1)).unwrap();
        if self.lost {
            return permit.failed(Refused::new(Reason::Failed), TxOutcome::Unknown);
        }
        let tx = self.world.lock().unwrap().ends.unwrap_or(TxOutcome::Committed);
        permit.ok(MapBuilder::new().uint("units", self.tries).finish(), tx)
    }
}

/// A tool that reads: it gives back its argument.
pub struct Look {
    manifest: Manifest,
}

impl Look {
    pub fn new() -> Self {
        let mut manifest = Manifest::new(ToolId::new("look").unwrap(), EffectClass::Read)
            .param(Param::required("at", ParamType::Any, ""));
        manifest.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
        Self { manifest }
    }
}

impl ReadTool for Look {
    type Plan = LookPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<LookPlan, Refused> {
        let at = request.args.get("at").unwrap_or(Item::NULL);
        Ok(LookPlan { demands: Demands::default(), at: at.into() })
    }
}

pub struct LookPlan {
    demands: Demands,
    at: syscap_format::Canonical,
}

impl ReadPlan for LookPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        permit.ok(MapBuilder::new().item("saw", self.at.item()).finish(), TxOutcome::NoOp)
    }
}
