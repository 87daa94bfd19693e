//! Medians of rounds, and counts of allocations.

use std::{alloc::System, hint::black_box, time::Instant};

use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

use super::harness;
pub use super::harness::{Figure, figure, row};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// Rounds of which the median is shown, and how long each takes at least.
pub const ROUNDS: usize = 15;
const ROUND_NS: u128 = 10_000_000;

/// Times `operation`, as often in a round as fills it.
pub fn timed<T>(mut operation: impl FnMut() -> T) -> Figure {
    let each = filling(&mut operation);
    harness::time(ROUNDS, each, operation)
}

/// How often an operation fills a round.
fn filling<T>(mut operation: impl FnMut() -> T) -> u32 {
    black_box(operation());
    let start = Instant::now();
    black_box(operation());
    u32::try_from(ROUND_NS / start.elapsed().as_nanos().max(1)).unwrap().max(1)
}

/// Times operations in turn, round by round, so that noise meets all alike.
pub fn in_turn(operations: &mut [Option<Box<dyn FnMut() + '_>>]) -> Vec<Option<Figure>> {
    let each: Vec<u32> = operations.iter_mut().map(|one| one.as_mut().map_or(0, filling)).collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); operations.len()];
    for _ in 0..ROUNDS {
        for ((operation, each), times) in operations.iter_mut().zip(&each).zip(&mut times) {
            let Some(operation) = operation else { continue };
            let start = Instant::now();
            (0..*each).for_each(|_| operation());
            times.push(start.elapsed().as_nanos() as f64 / f64::from(*each));
        }
    }
    times.iter_mut().map(|times| (!times.is_empty()).then(|| figure(times))).collect()
}

/// Allocations of an operation.
pub fn allocations<T>(operation: impl FnOnce() -> T) -> usize {
    let region = Region::new(ALLOCATOR);
    black_box(operation());
    let change = region.change();
    change.allocations + change.reallocations
}

/// Few rounds: each takes long.
pub fn slow<T>(mut operation: impl FnMut() -> T) -> Figure {
    let mut times: Vec<f64> = (0..7)
        .map(|_| {
            let start = Instant::now();
            let made = black_box(operation());
            let time = start.elapsed().as_nanos() as f64;
            drop(made);
            time
        })
        .collect();
    figure(&mut times)
}
