//! `fs.read` of 4 KiB through the kernel, without durability, beside `std::fs`; and what `cap-std`
//! costs beside `openat2`, near the base and deep below it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

mod harness;

use std::path::Path;

use harness::{row, time};
use syscap::{
    audit::memory::MemoryStore,
    format::{label::Label, record::Durability},
    prelude::*,
    syscalls::beneath::{Existing, Location, Opener, Openers, Parents, TempName, Write, open_by},
};

/// How deep a file lies in the second part: as many folders as a project has.
const DEEP: usize = 9;

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
    let base = open_by(Openers::Openat2, &home.join("files")).unwrap();
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
    openers(dir.path());
}

/// A file is read, and one is listed and written, by each opener and by `std`.
fn openers(folder: &Path) {
    let base = folder.join("base");
    for depth in [1, DEEP] {
        let mut names = vec!["d"; depth - 1];
        names.push("four.txt");
        let path = base.join(names.join("/"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, "x".repeat(4_096)).unwrap();
        let at = Location::new(&names).unwrap();
        std::thread::sleep(std::time::Duration::from_secs(4));
        for _ in 0..3 {
            let std = time(15, 2_000, || std::fs::read(&path).unwrap());
            row(&format!("std::fs::read, 4 KiB, depth {depth}"), std);
            for openers in [Openers::Openat2, Openers::CapStd] {
                let base = open_by(openers, &base).unwrap();
                let name = openers.name();
                let read = || base.open_file(&at, u64::MAX).unwrap().read(0, 1 << 20).unwrap();
                let figure = time(15, 2_000, read);
                row(&format!("{name}, 4 KiB, depth {depth}"), figure);
                println!("ratio to std: {:.2}", figure.median / std.median);
                let looked = time(15, 2_000, || base.metadata(&at).unwrap());
                row(&format!("{name}, looked at, depth {depth}"), looked);
            }
        }
    }
    let at = Location::new(&["d", "written"]).unwrap();
    for openers in [Openers::Openat2, Openers::CapStd] {
        let base = open_by(openers, &base).unwrap();
        let figure = time(15, 40, || write(&*base, &at));
        row(&format!("{}, 4 KiB written, synced", openers.name()), figure);
    }
}

fn write(base: &dyn Opener, at: &Location) {
    let (content, temp) = ([7; 4_096], TempName::new("bench").unwrap());
    let job = Write {
        at,
        content: &content,
        existing: Existing::Replace,
        expected: None,
        parents: Parents::Require,
        temp: &temp,
        label: Label::PUBLIC,
    };
    base.write(&job, &mut |_| Ok(())).unwrap();
}
