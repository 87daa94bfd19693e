//! Built-in tools that touch nothing.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Manifest, MapBuilder, Param, ParamType, Reason, Refused, ToolId,
    TxOutcome,
};
use syscap_kernel::{Clock, Demands, Ran, ReadPermit, ReadPlan, ReadTool, Request};

/// `echo`: gives back its argument.
#[derive(Debug)]
pub struct Echo {
    manifest: Manifest,
}

impl Echo {
    /// The tool.
    pub fn new() -> Option<Self> {
        let manifest = Manifest::new(ToolId::new("echo")?, EffectClass::Pure)
            .described("Echo", "Gives back the value that it is given.")
            .param(Param::required("value", ParamType::Any, "What to give back."));
        Some(Self { manifest })
    }
}

impl ReadTool for Echo {
    type Plan = EchoPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<EchoPlan, Refused> {
        let value = request.args.get("value");
        let value = value.ok_or(Refused::new(Reason::MissingArgument).field("value"))?;
        Ok(EchoPlan { demands: Demands::default(), value: Canonical::from(value) })
    }
}

/// A planned `echo`.
#[derive(Debug)]
pub struct EchoPlan {
    demands: Demands,
    value: Canonical,
}

impl ReadPlan for EchoPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        let result = MapBuilder::new().item("value", self.value.item()).finish();
        permit.ok(result, TxOutcome::NoOp)
    }
}

/// `current_time`: the host's wall clock.
pub struct CurrentTime {
    manifest: Manifest,
    clock: Arc<dyn Clock>,
}

impl CurrentTime {
    /// The tool, on the host's clock.
    pub fn new(clock: Arc<dyn Clock>) -> Option<Self> {
        let manifest = Manifest::new(ToolId::new("current_time")?, EffectClass::Pure)
            .described("Current time", "Tells the time in UTC.");
        Some(Self { manifest, clock })
    }
}

impl ReadTool for CurrentTime {
    type Plan = CurrentTimePlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, _: &Request<'_>) -> Result<CurrentTimePlan, Refused> {
        Ok(CurrentTimePlan { demands: Demands::default(), clock: Arc::clone(&self.clock) })
    }
}

/// A planned `current_time`.
pub struct CurrentTimePlan {
    demands: Demands,
    clock: Arc<dyn Clock>,
}

impl ReadPlan for CurrentTimePlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, permit: ReadPermit<'_, Self>) -> Ran<'_> {
        let now = self.clock.read().wall;
        let result =
            MapBuilder::new().uint("unix_ms", now.get()).text("utc", &now.to_string()).finish();
        permit.ok(result, TxOutcome::NoOp)
    }
}
