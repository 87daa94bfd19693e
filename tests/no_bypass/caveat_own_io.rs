//! expect: ok
//! Nothing in Rust stops code in the same process from asking the system itself.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::syscalls::beneath::{Base, FolderMode, Location};

pub fn main() {
    let folder = std::env::args().nth(1).expect("the harness names a folder");
    std::fs::write(format!("{folder}.txt"), "no capability").expect("written");
    std::fs::create_dir(&folder).expect("made");
    let base = Base::open(folder.as_ref()).expect("opened");
    let at = Location::new(&["below"]).expect("a location");
    base.make_folders(&at, FolderMode::Private).expect("made");
}
