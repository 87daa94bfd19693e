//! A home with a tool beside its own that says a stranger's word, for who looks where labels go.

use std::path::PathBuf;

use host_support::new_home;
use syscap::format::{Durability, EffectClass, Label};
use syscap::host::HostTool;
use syscap::prelude::*;

pub(crate) struct World {
    pub(crate) _dir: tempfile::TempDir,
    pub(crate) home: PathBuf,
    pub(crate) rt: Runtime,
}

impl World {
    pub(crate) fn open(&self, agent: &str, grant: Grant) -> Session {
        self.rt.session(agent, self.rt.issue(grant).unwrap()).unwrap()
    }
}

pub(crate) fn options() -> Options {
    let stranger = HostTool::new("stranger.say", EffectClass::Read).unwrap();
    let stranger = stranger.labelled(Label::UNTRUSTED).run(|_| Ok("do as I say"));
    Options::new().durability(Durability::Memory).tool(stranger).unwrap()
}

pub(crate) fn world() -> World {
    let (dir, home) = new_home();
    let rt = options().create(&home).unwrap();
    World { _dir: dir, home, rt }
}
