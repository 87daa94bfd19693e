//! How many allocations a call costs: a count that noise can't move.

use std::alloc::System;

use kernel_support::fault::{FaultPoint, FaultStore};
use kernel_support::sim::{self, Sim};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use syscap_audit::MemoryStore;
use syscap_format::{Form, REFUSALS_IN_A_ROW_MAX, Source};
use syscap_kernel::{Event, Submit};

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
            let (ticket, salts) = (sim.ticket(), sim.salts());
            let form = Form::Cbor;
            let (received, source) = (canonical, Source::Agent);
            let submit = Submit { ticket, session, received, form, source, salts, proof: None };
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
}
