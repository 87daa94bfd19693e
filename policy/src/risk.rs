//! Risk: how much a call can spoil, in points from 0 to 100.

use syscap_format::manifest::EffectClass;

use crate::document::Document;

/// Points of an effect class: the more of the world it changes, and the less of that can be
/// undone, the more.
#[must_use]
pub const fn base(class: EffectClass) -> u8 {
    match class {
        EffectClass::Pure => 0,
        EffectClass::Read => 10,
        EffectClass::LocalWrite => 20,
        EffectClass::ExternalRead => 30,
        EffectClass::ExternalWrite => 60,
        EffectClass::Irreversible => 90,
    }
}

/// Points of a tool: those of its class, raised and never lowered by `params.risk`.
#[must_use]
pub fn points(document: &Document, tool: &str, class: EffectClass) -> u8 {
    let written = document.risk.iter().find(|(id, _)| id.as_str() == tool);
    base(class).max(written.map_or(0, |(_, points)| *points))
}
