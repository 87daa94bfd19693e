//! How many allocations a call costs: a count that noise can't move.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::alloc::System;

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::tokens::{budget, rows};
use kernel_support::sim::{self, Policed, Shared, Sim};
use serde_json::json;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use syscap_audit::MemoryStore;
use syscap_format::{
    Amounts, Dimension, EffectClass, Form, Grants, HomeLimits, Manifest, MapBuilder, Param,
    ParamType, REFUSALS_IN_A_ROW_MAX, Reason, Refused, Resource, Source, TokenBody, ToolGrant,
    ToolId, TxOutcome,
};
use syscap_kernel::{
    Demand, Demands, DistinctDemands, Event, Parts, Permit, Plan, Ran, Registry, Request, Tool,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// One thread, one test: nothing else allocates meanwhile.
#[test]
fn allocations_per_decision() {
    let mut sim = Sim::new(FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere));
    let token = sim.issue("a0", 1_000, 1_000, 1_000_000);
    sim.open("a0", token);
    sim.commit();
    let session = sim.sessions[0];
    let good = br#"{"tool_id": "spend", "args": {"units": 1}}"#;
    let bad = br#"{"tool_id": "spend", "args": {"units": -1}}"#;
    let mut count = |envelope: &[u8], times: usize| {
        let mut least = usize::MAX;
        for _ in 0..times {
            let canonical = syscap_format::json::to_cbor(envelope).unwrap().into_bytes();
            let submit = sim.submission(Source::Agent, session, canonical, Form::Cbor);
            let reading = sim.reading();
            let region = Region::new(ALLOCATOR);
            sim.kernel.handle(Event::Submit(submit), reading);
            least = least.min(region.change().allocations);
            sim.commit();
            while !sim.jobs.is_empty() {
                sim.end_job(0, sim::Ending::Runs);
            }
            sim.commit();
        }
        least
    };
    let admitted = count(good, 20);
    // The first in a row have a record each; of those after them one record tells.
    let recorded = count(bad, usize::try_from(REFUSALS_IN_A_ROW_MAX).unwrap());
    let counted = count(bad, 20);
    println!(
        "allocations: {admitted} to an intent, {recorded} to a refusal, {counted} to one more"
    );
    // Three of each of the first two are of a debug build, which reads each record again.
    assert!(admitted <= 9, "{admitted} allocations from envelope to intent");
    assert!(recorded <= 11, "{recorded} allocations from envelope to refusal");
    assert!(counted <= 7, "{counted} allocations from envelope to a refusal of a row");
    names_more_than_a_call_may();
}

/// Names a row for each integer of its list.
struct Rows(Manifest);

struct RowsPlan(Demands);

impl Tool for Rows {
    type Plan = RowsPlan;

    fn manifest(&self) -> &Manifest {
        &self.0
    }

    fn plan(&self, request: &Request<'_>) -> Result<RowsPlan, Refused> {
        let mut resources = DistinctDemands::default();
        for item in request.args.get("rows").unwrap().elements() {
            let resource = Resource::Int(item.as_int().unwrap());
            resources.push(Demand { dimension: "row", resource, argument: "rows" });
            if resources.is_over() {
                break;
            }
        }
        let resources = resources.into_vec();
        Ok(RowsPlan(Demands { resources, ..Demands::default() }))
    }
}

impl Plan for RowsPlan {
    fn demands(&self) -> &Demands {
        &self.0
    }

    fn run(self, permit: Permit<'_, Self>) -> Ran<'_> {
        permit.ok(MapBuilder::new().finish(), TxOutcome::Committed)
    }
}

/// A million integers, and what one call may name: before texts, salts and policy.
fn names_more_than_a_call_may() {
    let world = Shared::default();
    let mut registry = Registry::new();
    let tool = Manifest::new(ToolId::new("spend").unwrap(), EffectClass::ExternalWrite);
    let list = Param::required("rows", ParamType::List, "");
    let mut tool = tool.needs("row").param(list);
    tool.hold = Amounts::ZERO.with(Dimension::WallUs, 1_000).with(Dimension::CpuUs, 500);
    registry.add(Rows(tool)).unwrap();
    let Parts { engine, .. } = sim::parts_of(&world, Policed::ByToken);
    let parts = Parts { engine, registry };
    let store = FaultStore::new(MemoryStore::new(), FaultPoint::Nowhere);
    let mut sim = Sim::of(store, HomeLimits::default(), Policed::ByToken, (world, parts));
    let mut body = sim.token_body("a0", budget(1_000, 1_000), 3_600_000);
    let grant = ToolGrant::new().with("row", rows(0, 1 << 40));
    body.grants = Grants::new().with(ToolId::new("spend").unwrap(), grant);
    let ticket = sim.ticket();
    sim.event(Event::Issue(ticket, Sim::wire(&body), None));
    let session = sim.seat(TokenBody::id_of(&body.to_bytes()));
    sim.commit();
    let (distinct, equal) = (|n: usize| (0..n).collect::<Vec<_>>(), |n| vec![7_usize; n]);
    for (rows, wanted) in [
        (distinct(1_024), None),
        (distinct(1_025), Some(Reason::TooLarge)),
        (distinct(180_000), Some(Reason::TooLarge)),
        (equal(1_000_000), None),
    ] {
        let count = rows.len();
        let args = json!({"tool_id": "spend", "args": {"rows": rows}}).to_string();
        let received = syscap_format::json::to_cbor(args.as_bytes()).unwrap().into_bytes();
        let submit = sim.submission(Source::Agent, session, received, Form::Cbor);
        let ticket = submit.ticket;
        let reading = sim.reading();
        let region = Region::new(ALLOCATOR);
        sim.kernel.handle(Event::Submit(submit), reading);
        let allocations = region.change().allocations;
        sim.commit();
        println!("allocations: {allocations} for {count} rows, {:?}", sim.reason_of(ticket));
        assert!(allocations <= 2_048, "{allocations} allocations for {count} rows");
        assert_eq!(sim.jobs.len(), usize::from(wanted.is_none()), "{count}");
        while !sim.jobs.is_empty() {
            sim.end_job(0, sim::Ending::Runs);
        }
        sim.commit();
        assert_eq!(sim.reason_of(ticket), wanted, "{count}");
    }
}
