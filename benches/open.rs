//! Opening a home: how many records are folded in a second, how many signatures verified.

use std::time::Instant;

use syscap::audit::MemoryStore;
use syscap::format::{Budget, Dimension, Durability};
use syscap::kernel::{Anchor, Kernel, Parts, Registry};
use syscap::policy::WithinToken;
use syscap::prelude::*;
use syscap::verify::{Extent, FromStore, Options as VerifyOptions, verify};
use syscap::{Grant, Options};

const CALLS: u64 = 250_000;
const TOKENS: u64 = 20_000;
const ROUNDS: usize = 5;

fn median(mut of: Vec<f64>) -> f64 {
    of.sort_by(f64::total_cmp);
    of.get(of.len() / 2).copied().unwrap_or_default()
}

/// Records a second when a log is opened, and when it is verified.
fn measure(what: &str, store: &MemoryStore, unit: u64) {
    let records = store.all_records().len();
    let (mut opened, mut verified) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let parts = Parts { engine: Box::new(WithinToken), registry: Registry::new() };
        let began = Instant::now();
        let kernel = Kernel::open(&mut store.share(), parts, &Anchor::default());
        opened.push(began.elapsed().as_secs_f64());
        assert!(kernel.is_ok(), "it opens");
        let began = Instant::now();
        let options = VerifyOptions::default();
        let report = verify(&mut FromStore(&mut store.share()), Extent::AtRest, &options);
        verified.push(began.elapsed().as_secs_f64());
        assert!(report.is_ok_and(|report| report.findings.is_empty()), "it is sound");
    }
    let rate = |seconds: f64| unit as f64 / seconds;
    println!(
        "{what}: {records} records, opened {:.0} {what}/s, verified {:.0} {what}/s",
        rate(median(opened)),
        rate(median(verified))
    );
}

fn main() -> Result<(), Error> {
    let folder = tempfile::tempdir().map_err(|_| Error::Entropy(syscap::kernel::NoEntropy))?;
    let open = |name: &str, store: &MemoryStore| {
        let options = Options::new().durability(Durability::Memory).store(store.share());
        options.create(folder.path().join(name))
    };
    let budget = [Dimension::Calls, Dimension::CpuUs, Dimension::WallUs]
        .into_iter()
        .fold(Budget::standard(), |budget, dimension| budget.with(dimension, 1 << 40));
    let grant = || Grant::to("ada").tools(["echo"]).budget(budget);

    let calls = MemoryStore::new();
    let rt = open("calls", &calls)?;
    let token = rt.issue(grant())?;
    let session = rt.session("ada", token)?;
    for value in 0..CALLS {
        session.call("echo", args! { "value": value })?;
    }
    rt.close()?;
    measure("records", &calls, calls.all_records().len() as u64);
    drop(calls);

    let tokens = MemoryStore::new();
    let rt = open("tokens", &tokens)?;
    for _ in 0..TOKENS {
        rt.issue(grant())?;
    }
    rt.close()?;
    measure("signatures", &tokens, TOKENS);
    Ok(())
}
