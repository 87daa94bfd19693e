//! `fs.read` of 4 KiB through the kernel, without durability, beside `std::fs`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use harness::{row, time};
use syscap::audit::MemoryStore;
use syscap::format::Durability;
use syscap::prelude::*;
use syscap::syscalls::beneath::{Base, Location};

fn main() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().join("home");
    let options = Options::new().store(MemoryStore::new()).durability(Durability::Memory);
    let rt = options.create(&home).unwrap();
    let big = 1 << 50;
    let budget = Budget::standard()
        .with(Dimension::Calls, big)
        .with(Dimension::WallUs, big)
        .with(Dimension::CpuUs, big);
    let token = rt.issue(Grant::to("a").tools(["fs.read"]).workspace().budget(budget)).unwrap();
    let agent = rt.session("a", token).unwrap();
    let path = home.join("files/agents/a/workspace/four.txt");
    std::fs::write(&path, "x".repeat(4_096)).unwrap();
    let base = Base::open(&home.join("files")).unwrap();
    let at = Location::new(&["agents", "a", "workspace", "four.txt"]).unwrap();
    // What has just changed is looked at anew by each read.
    std::thread::sleep(std::time::Duration::from_secs(4));
    for _ in 0..3 {
        let std = time(15, 2_000, || std::fs::read(&path).unwrap());
        row("std::fs::read, 4 KiB", std);
        let beneath =
            time(15, 2_000, || base.open_file(&at, u64::MAX).unwrap().read(0, 1 << 20).unwrap());
        row("beneath the base, 4 KiB", beneath);
        let call = time(15, 1_000, || agent.call("fs.read", args! { "path": "four.txt" }).unwrap());
        row("fs.read through the kernel, 4 KiB, in memory", call);
        println!("ratio to std: {:.2}", call.median / std.median);
    }
}
