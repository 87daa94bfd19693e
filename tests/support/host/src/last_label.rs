//! The label that a home's last call began with.

use std::path::Path;

use syscap::format::{Body, Label};

use super::records::records;

/// That of its last intent.
pub fn last_label(home: &Path) -> Label {
    let intent = records(home).into_iter().rev().find_map(|record| match record.body {
        Body::Intent(intent) => Some(intent.label),
        _ => None,
    });
    intent.unwrap()
}
