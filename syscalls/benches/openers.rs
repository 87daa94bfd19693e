//! What `cap-std` costs beside `openat2` and `std`, near the base and deep below it.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::as_conversions, reason = "bench")]
#![allow(dead_code, unreachable_pub, missing_docs, reason = "a part of the harness is used")]

#[path = "../../benches/harness/mod.rs"]
mod harness;

use std::{path::Path, time::Duration};

use harness::{row, time};
use syscap_format::Label;
use syscap_syscalls::beneath::{
    Existing, Location, Opener, Openers, Parents, TempName, Write, open_by,
};

/// How many names deep a file lies in the second part: as a project's do.
const DEEP: usize = 9;

fn main() {
    let dir = tempfile::tempdir().unwrap();
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
        content: &content,
        existing: Existing::Replace,
        expected: None,
        made_from: None,
        temp: &temp,
        label: Label::PUBLIC,
    };
    let turn = base.turn(at, Parents::Require, &[], Duration::ZERO, &mut |_| Ok(())).unwrap();
    base.write(turn, &job, &mut |_| Ok(())).unwrap();
}
