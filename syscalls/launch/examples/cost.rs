//! What starting `/bin/true` confined costs beside starting it: medians of one run.
use std::path::Path;
use std::time::{Duration, Instant};

use syscap_launch::{Launcher, Plan, Said, entry};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    entry();
    let rounds = 300;
    let handle = |path: &str| std::fs::File::open(path).map(Into::into);
    let helper = std::env::args_os().nth(1);
    let launcher = match &helper {
        Some(helper) => Launcher::open(Path::new(helper))?,
        None => Launcher::this()?,
    };
    let (mut plain, mut confined) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let began = Instant::now();
        std::process::Command::new("/bin/true").output()?;
        plain.push(began.elapsed());
        let mut plan = Plan::new(handle("/bin/true")?, "true".into(), handle("/")?);
        plan.limits.wall_ms = Some(10_000);
        plan.limits.cpu_ms = Some(10_000);
        let began = Instant::now();
        let mut running = launcher.start(&plan)?;
        while !matches!(running.recv()?, Said::Ended(_)) {}
        confined.push(began.elapsed());
        drop(running);
    }
    let median = |times: &mut Vec<Duration>| {
        times.sort_unstable();
        times.get(rounds / 2).copied().unwrap_or_default()
    };
    let (plain, confined) = (median(&mut plain), median(&mut confined));
    println!("plain {plain:?}, confined {confined:?}, beyond it {:?}", confined - plain);
    Ok(())
}
