//! A small timer: medians over rounds, in one process, beside what is compared.

use std::{hint::black_box, time::Instant};

/// Nanoseconds of one operation: smallest, median and largest of the rounds.
#[derive(Clone, Copy, Debug)]
pub struct Figure {
    pub min: f64,
    pub median: f64,
    pub max: f64,
}

/// Times `operation`, so many times a round.
pub fn time<T>(rounds: usize, each: u32, mut operation: impl FnMut() -> T) -> Figure {
    for _ in 0..each / 4 + 1 {
        black_box(operation());
    }
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            for _ in 0..each {
                black_box(operation());
            }
            start.elapsed().as_nanos() as f64 / f64::from(each)
        })
        .collect();
    figure(&mut times)
}

/// The figure of times that were taken elsewhere.
pub fn figure(times: &mut [f64]) -> Figure {
    times.sort_by(f64::total_cmp);
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize];
    Figure { min: at(0.0), median: at(0.5), max: at(1.0) }
}

/// Prints a row in microseconds.
pub fn row(what: &str, figure: Figure) {
    println!(
        "{what:<58} {:>10.2} us  (min {:.2}, max {:.2})",
        figure.median / 1e3,
        figure.min / 1e3,
        figure.max / 1e3
    );
}
