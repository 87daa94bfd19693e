//! The finding that a reading of a command makes.

use std::collections::BTreeSet;

use syscap::{format::manifest::EffectClass, host::Finding};
use syscap_commands::{Area, Effect, Said};

/// What the reading of a command says, as a finding.
pub(crate) fn finding(said: &Said) -> Finding {
    let paths = |areas: &BTreeSet<Area>| areas.iter().map(path).collect();
    Finding {
        effect: match said.effect() {
            Effect::Read => EffectClass::Read,
            Effect::LocalWrite => EffectClass::LocalWrite,
            Effect::ExternalRead => EffectClass::ExternalRead,
            Effect::ExternalWrite => EffectClass::ExternalWrite,
        },
        reads: paths(&said.reads),
        writes: paths(&said.writes),
        repositories: paths(&said.repositories),
        programs: said.programs.clone(),
        hosts: said.hosts.clone(),
        marks: said.marks.clone(),
    }
}

/// A path that ends in `/` is a folder and all below it.
fn path(area: &Area) -> String {
    let path = area.path();
    match area.is_tree() && !path.ends_with('/') {
        true => path + "/",
        false => path,
    }
}
