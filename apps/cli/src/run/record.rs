//! A run's limits are on record: facts of the agent's state, in records of their own, that policies
//! can read too.

use std::path::Path;

use syscap::format::{Canonical, Source};
use syscap::launch::{Achieved, Level, Network};
use syscap::{Args, Runtime, Session};

use crate::exit::Failure;

/// The level that was achieved: `confined` or `contained`.
const LEVEL: &str = "fact.run_level";
/// The same by a key, which stands in the record itself and can't be erased; values can.
const LEVELS: [(Level, &str); 2] =
    [(Level::Confined, "fact.run_confined"), (Level::Contained, "fact.run_contained")];
/// The reachable network: `none`, `loopback` or `host`.
const NETWORK: &str = "fact.run_network";
/// The ABI of Landlock that holds it.
const LANDLOCK: &str = "fact.run_landlock";
/// The folder that it works in.
const WORKSPACE: &str = "fact.run_workspace";

/// Writes what was had, before anybody is let in by the lane; the level.
pub(super) fn begun(
    access: &Runtime,
    caller: &Session,
    achieved: &Achieved,
    network: Network,
    workspace: &Path,
) -> Result<Level, Failure> {
    let level = achieved.level(network);
    let facts = Args::new()
        .with(LEVEL, level.name())
        .with(NETWORK, network.name())
        .with(LANDLOCK, i64::from(achieved.landlock))
        .with(WORKSPACE, workspace.to_string_lossy().as_ref());
    // One that a run left which was killed goes.
    let facts = LEVELS.iter().fold(facts, |facts, (known, key)| match *known == level {
        true => facts.with(key, true),
        false => facts.with(key, Canonical::null()),
    });
    access.observe(caller, Source::Tool, &[], facts)?;
    Ok(level)
}

/// Takes it back: nothing runs any more.
pub(super) fn ended(access: &Runtime, caller: &Session) -> Result<(), Failure> {
    let keys = [LEVEL, NETWORK, LANDLOCK, WORKSPACE].into_iter();
    let keys = keys.chain(LEVELS.map(|(_, key)| key));
    let none = keys.fold(Args::new(), |facts, key| facts.with(key, Canonical::null()));
    access.observe(caller, Source::Tool, &[], none)?;
    Ok(())
}
