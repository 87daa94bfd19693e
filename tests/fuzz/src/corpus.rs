//! Seeds and findings: `tests/fuzz/seeds/TARGET/NAME` is what code makes, `tests/fuzz/findings/TARGET/NAME`
//! what has broken something once.

use std::{collections::BTreeMap, env, fs, path::PathBuf};

/// Files of a folder, by name. One that is not there has none.
fn files(kind: &str, target: &str) -> BTreeMap<String, Vec<u8>> {
    let Ok(folder) = fs::read_dir(folder(kind, target)) else { return BTreeMap::new() };
    let paths = folder.map(|entry| entry.unwrap().path());
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    paths.map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

fn folder(kind: &str, target: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(kind).join(target)
}

/// Holds a target's committed seeds against those that code makes; with `SYSCAP_SEEDS=write` in
/// the environment it writes them instead.
pub fn hold(target: &str, made: Vec<(String, Vec<u8>)>) {
    let count = made.len();
    let made: BTreeMap<String, Vec<u8>> = made.into_iter().collect();
    assert_eq!(made.len(), count, "two seeds of {target} have one name");
    if env::var_os("SYSCAP_SEEDS").is_some_and(|word| word == "write") {
        let folder = folder("seeds", target);
        fs::create_dir_all(&folder).unwrap();
        made.iter().for_each(|(name, bytes)| fs::write(folder.join(name), bytes).unwrap());
        // Only then: the test that runs them may do so at this moment.
        let old = files("seeds", target).into_keys().filter(|name| !made.contains_key(name));
        old.for_each(|name| fs::remove_file(folder.join(name)).unwrap());
    }
    let there = files("seeds", target);
    let names = |files: &BTreeMap<String, Vec<u8>>| files.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&there), names(&made), "{target}: {WRITE}");
    for (name, bytes) in &made {
        assert!(there[name] == *bytes, "{target}/{name} is out of date: {WRITE}");
    }
}

const WRITE: &str = "run the tests of seeds with SYSCAP_SEEDS=write";

/// Runs a target on each of its seeds and findings, and says how many there were.
pub fn replay(target: &str, run: impl Fn(&[u8])) -> usize {
    let mut count = 0;
    for kind in ["seeds", "findings"] {
        for (name, bytes) in files(kind, target) {
            // Shown where it fails.
            println!("fuzz/{kind}/{target}/{name}");
            run(&bytes);
            count += 1;
        }
    }
    count
}
