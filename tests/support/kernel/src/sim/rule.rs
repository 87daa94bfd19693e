//! A policy that says everything there is to say, by a rule; and a tool that keeps to what it is
//! asked, or lies about it.

use std::sync::Arc;

use syscap_format::{
    Amounts, Canonical, ConstraintId, Decision, Dimension, EffectClass, EngineIdentity, Fact,
    FactKey, Item, Manifest, MapBuilder, Obligation, ObligationKind, Param, ParamType, Reason,
    Refused, Resource, ToolId, TxOutcome, Verdict, matches_digest,
};
use syscap_kernel::{Demand, Demands, Permit, Plan, PolicyEngine, Question, Ran, Request, Tool};

use super::Shared;

/// A policy: its number, the call's units and what the agent is after make up what it says.
pub struct Rule(pub u8);

impl Rule {
    /// Numbers that tests put in force.
    pub const ALL: std::ops::Range<u8> = 0..4;
}

impl PolicyEngine for Rule {
    fn identity(&self) -> EngineIdentity {
        EngineIdentity { name: Box::from("rule"), version: 1 }
    }

    fn document(&self) -> Vec<u8> {
        vec![0xa1, 0x01, self.0]
    }

    fn decide(&self, question: &Question<'_>) -> Decision {
        let Some(units) = question.args.get("units").and_then(Item::as_uint) else {
            return with(Verdict::Degrade, vec![Obligation::read_only()]);
        };
        let aim = match question.facts.get(&FactKey::new("goal.aim").unwrap()) {
            Fact::Known(value) => value.as_uint().unwrap_or(1),
            Fact::Missing => 0,
            Fact::Erased => return Decision::plain(Verdict::Deny),
        };
        match units % 32 {
            21 => return Decision::plain(Verdict::Ask),
            12 if question.manifest.tool.as_str() == "spend" => {
                return with(Verdict::Ask, vec![Obligation::notify("rule")]);
            }
            22 if question.args.get("long").is_some() => {
                return with(Verdict::Degrade, vec![Obligation::result_cap(1_000)]);
            }
            _ => {}
        }
        said(units, units + aim + u64::from(self.0))
    }
}

fn with(verdict: Verdict, obligations: Vec<Obligation>) -> Decision {
    Decision { obligations, ..Decision::plain(verdict) }
}

/// What a rule says where the sum of all is `turn`.
fn said(units: u64, turn: u64) -> Decision {
    let cut = |max| Obligation::budget_cut(Dimension::DiskWriteBytes, max).unwrap();
    let notify = Obligation::notify("rule");
    match turn % 16 {
        0 => with(Verdict::Deny, vec![notify]),
        1 => with(Verdict::Ask, vec![Obligation::elevated()]),
        2 => Decision::plain(Verdict::Defer),
        3 => with(Verdict::Degrade, vec![Obligation::read_only(), notify]),
        4 | 14 => with(Verdict::Degrade, vec![Obligation::result_cap(40)]),
        5 => with(Verdict::Degrade, vec![cut(units / 2)]),
        6 => with(Verdict::Degrade, vec![cut(units + 2), cut(units)]),
        7 => with(Verdict::Allow, vec![notify]),
        8 => with(Verdict::Allow, vec![Obligation::elevated()]),
        // What contradicts itself, or is too much, is a no.
        9 => Decision::plain(Verdict::Degrade),
        10 => with(Verdict::Allow, vec![notify; 33]),
        11 => Decision { match_count: 3, ..Decision::plain(Verdict::Allow) },
        12 => matched(),
        _ => Decision::plain(Verdict::Allow),
    }
}

fn matched() -> Decision {
    let name = |n: u16| ConstraintId::new(&format!("c/{n:02}")).unwrap();
    Decision {
        deciding: Some(name(3)),
        matches: (0..20).map(name).collect(),
        match_count: 20,
        matches_digest: Some(matches_digest(&(0..20).collect::<Vec<_>>())),
        ..Decision::plain(Verdict::Allow)
    }
}

/// A tool that spends like `spend`, sets more aside than a plan needs, and declares that it keeps
/// to a cap and to reading only. With `greedy` it tries to spend more than it may, with `long` it
/// delivers more.
pub struct Trim {
    manifest: Manifest,
    world: Shared,
}

impl Trim {
    /// What every call sets aside beside its units.
    pub const SPARE: u64 = 5;

    pub fn new(world: &Shared) -> Self {
        Self::giving_at_most(world, 1 << 20)
    }

    /// The tool with a limit of its own for its results, in bytes.
    pub fn giving_at_most(world: &Shared, bytes: u64) -> Self {
        let mut manifest = Manifest::new(ToolId::new("trim").unwrap(), EffectClass::LocalWrite)
            .param(Param::required("units", ParamType::Int, "").within(0, 1 << 40))
            .param(Param::optional("greedy", ParamType::Bool, ""))
            .param(Param::optional("long", ParamType::Bool, ""))
            .needs("row")
            .honours(ObligationKind::ResultCap)
            .honours(ObligationKind::ReadOnly);
        manifest.hold = Amounts::ZERO
            .with(Dimension::WallUs, 1_000)
            .with(Dimension::CpuUs, 500)
            .with(Dimension::DiskWriteBytes, Self::SPARE);
        manifest.result_bytes_max = bytes;
        Self { manifest, world: Arc::clone(world) }
    }
}

impl Tool for Trim {
    type Plan = TrimPlan;

    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn plan(&self, request: &Request<'_>) -> Result<TrimPlan, Refused> {
        let units = request.args.get("units").and_then(Item::as_uint);
        let units = units.ok_or(Refused::new(Reason::BadArgument).field("units"))?;
        let is = |name| request.args.get(name).and_then(Item::as_bool).unwrap_or(false);
        let (greedy, long) = (is("greedy"), is("long"));
        let hold = Amounts::ZERO.with(Dimension::DiskWriteBytes, units);
        // What it touches is named by the units, many to one.
        let resource = Resource::Int(i128::from(units / 32));
        let row = Demand { dimension: "row", resource, argument: "units" };
        let demands = Demands { resources: vec![row], hold };
        Ok(TrimPlan { demands, units, greedy, long, world: Arc::clone(&self.world) })
    }
}

pub struct TrimPlan {
    demands: Demands,
    units: u64,
    greedy: bool,
    long: bool,
    world: Shared,
}

impl TrimPlan {
    /// As many bytes as may be delivered, or too many.
    fn result(&self, bytes_max: usize, read_only: bool) -> Canonical {
        let room = if self.long { 200 } else { bytes_max.min(200) };
        let frame = 40;
        let text = "x".repeat(room.saturating_sub(frame));
        MapBuilder::new().boolean("read_only", read_only).text("text", &text).finish()
    }
}

impl Plan for TrimPlan {
    fn demands(&self) -> &Demands {
        &self.demands
    }

    fn run(self, mut permit: Permit<'_, Self>) -> Ran<'_> {
        let read_only = permit.is_read_only();
        // As much as was set aside, and one more.
        let tries = if self.greedy { self.units + Trim::SPARE + 1 } else { self.units };
        for _ in 0..if read_only { 0 } else { tries } {
            if permit.meter(Dimension::DiskWriteBytes, 1).is_err() {
                return permit.failed(Refused::new(Reason::OverHold), TxOutcome::Committed);
            }
            let mut world = self.world.lock().unwrap();
            world.spent.push((permit.intent(), 1));
        }
        let result = self.result(permit.result_bytes_max(), read_only);
        permit.ok(result, if read_only { TxOutcome::NoOp } else { TxOutcome::Committed })
    }
}
