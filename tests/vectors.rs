//! Every seed and finding of the fuzz targets, on any compiler; and the seeds are what the code
//! makes. Those of the socket's frames stand in `src/transport/fuzz.rs`.
#![allow(dead_code, unreachable_pub, reason = "shared with the fuzz targets")]
#![allow(clippy::as_conversions, clippy::cast_possible_truncation, reason = "tests")]

#[path = "../kernel/format/tests/common/vectors.rs"]
mod cbor;
#[path = "fuzz/src/corpus.rs"]
mod corpus;
mod documents;
mod seeds;
#[path = "fuzz/src/lib.rs"]
mod targets;
#[path = "../kernel/format/tests/common/tree.rs"]
mod tree;

use targets::TARGETS;

fn replayed(target: &str) {
    let (_, run) = TARGETS.iter().find(|(name, _)| *name == target).unwrap();
    assert!(corpus::replay(target, run) > 0);
}

/// A test for each target, so that they run beside each other.
macro_rules! replayed {
    ($($target:ident)*) => {$(
        #[test]
        fn $target() {
            replayed(stringify!($target));
        }
    )*};
}
replayed! { codec control envelope events json policy record token }

#[test]
fn every_target_is_replayed_and_has_a_program() {
    let manifest = include_str!("fuzz/Cargo.toml");
    let program =
        |line: &'static str| line.strip_prefix("path = \"targets/")?.strip_suffix(".rs\"");
    let mut programs: Vec<&str> = manifest.lines().filter_map(program).collect();
    let mut names: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).chain(["frame"]).collect();
    programs.sort_unstable();
    names.sort_unstable();
    assert_eq!(programs, names);
}

#[test]
fn seeds_are_what_the_code_makes() {
    for (target, made) in seeds::all() {
        corpus::hold(target, made);
    }
}

/// A seed that is refused at the door leads nowhere.
#[test]
fn seeds_reach_what_they_are_for() {
    seeds::reach();
}
