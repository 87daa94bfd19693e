//! `vecdb.query` of 100,000 vectors of 384 numbers through the kernel, with the log in memory
//! and durable, beside a plain scan of the same vectors.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(clippy::cast_precision_loss, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::path::Path;

use harness::{row, time};
use syscap::audit::MemoryStore;
use syscap::format::{Durability, Scope};
use syscap::prelude::*;

const COUNT: usize = 100_000;
const NUMBERS: usize = 384;
/// Vectors of one call: what fits into an envelope.
const BATCH: usize = 250;

fn main() {
    let mut state = 1_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        // A short number, so that many fit into an envelope.
        (state >> 40) as i32 % 100
    };
    let vectors: Vec<Vec<i32>> =
        (0..COUNT).map(|_| (0..NUMBERS).map(|_| next()).collect()).collect();
    let dir = tempfile::tempdir().unwrap();
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let (_memory, in_memory) = agent(options, &dir.path().join("memory"), &vectors);
    let (_disk, durable) = agent(Options::new(), &dir.path().join("disk"), &vectors);
    let plain: Vec<f32> = vectors.iter().flat_map(|vector| unit(vector)).collect();
    let asked = unit(&vectors[7]);
    let args = format!(r#"{{"embedding":{:?},"k":10}}"#, vectors[7]);
    let query =
        |agent: &Session| agent.request("vecdb.query").json(&args, Escapes::Data).wait().unwrap();
    for _ in 0..3 {
        let scan = time(9, 3, || nearest(&plain, &asked, 10));
        row("plain scan, 100,000 x 384", scan);
        let call = time(9, 3, || query(&in_memory));
        row("vecdb.query through the kernel, in memory", call);
        println!("ratio to the scan: {:.2}", call.median / scan.median);
        row("the same, durable", time(9, 3, || query(&durable)));
    }
}

/// The agent of a new home, whose collection has them all.
fn agent(options: Options, home: &Path, vectors: &[Vec<i32>]) -> (Runtime, Session) {
    let rt = options.create(home).unwrap();
    let big = 1 << 50;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::DiskFiles, big)
        .with(Dimension::DiskWriteBytes, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big);
    let scope = Scope::names(["docs"]).unwrap();
    let grant = Grant::to("a").tools(["vecdb.query", "vecdb.upsert"]).scope("collection", scope);
    let agent = rt.session("a", rt.issue(grant.budget(budget)).unwrap()).unwrap();
    for (n, batch) in vectors.chunks(BATCH).enumerate() {
        let items: Vec<String> = batch
            .iter()
            .enumerate()
            .map(|(m, vector)| format!(r#"{{"id":"{n}-{m}","embedding":{vector:?}}}"#))
            .collect();
        let args = format!(r#"{{"items":[{}]}}"#, items.join(","));
        let put = agent.request("vecdb.upsert").json(&args, Escapes::Data).wait().unwrap();
        assert_eq!(put.reason(), None, "{}", put.to_json());
    }
    (rt, agent)
}

fn unit(vector: &[i32]) -> Vec<f32> {
    let length = vector.iter().map(|n| (n * n) as f32).sum::<f32>().sqrt();
    vector.iter().map(|n| *n as f32 / length).collect()
}

/// What somebody would write first: all scores, then the best of them.
fn nearest(all: &[f32], asked: &[f32], k: usize) -> Vec<(f32, usize)> {
    let mut scores: Vec<(f32, usize)> =
        all.chunks_exact(NUMBERS).enumerate().map(|(n, vector)| (dot(vector, asked), n)).collect();
    scores.select_nth_unstable_by(k, |a, b| b.0.total_cmp(&a.0));
    scores.truncate(k);
    scores.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    scores
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut sums = [0.0_f32; 16];
    for (a, b) in a.chunks_exact(16).zip(b.chunks_exact(16)) {
        for n in 0..16 {
            sums[n] += a[n] * b[n];
        }
    }
    sums.iter().sum()
}
