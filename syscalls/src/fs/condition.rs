//! Preconditions: the state of files that a person saw, and that must be unchanged.

use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use syscap_format::{PreconditionKind, Reason, Refused};
use syscap_kernel::{Condition, Inspect};

use super::path::Place;
use crate::beneath::{DIGEST_BYTES_MAX, Existing, FsError, Opener};

/// A look at the files that a call would replace or take away.
pub(super) struct Look {
    places: Vec<Place>,
    base: Arc<dyn Opener>,
}

impl Look {
    pub(super) fn at<const N: usize>(places: [Place; N], base: &Arc<dyn Opener>) -> Self {
        Self { places: Vec::from(places), base: Arc::clone(base) }
    }

    fn see(&self, place: &Place) -> Option<Condition> {
        let location = place.file().ok()?;
        let subject = place.in_full().into_boxed_str();
        let opened = self.base.open_file(&location, DIGEST_BYTES_MAX);
        let (kind, seen) = match opened.and_then(|file| file.digest()) {
            Ok(digest) => (PreconditionKind::Digest, Some(hex(&digest).into_boxed_str())),
            Err(FsError::NotFound) => (PreconditionKind::Absent, None),
            // What can't be read can't be held against anything: the approver sees no digest.
            Err(_) => return None,
        };
        Some(Condition { kind, subject, seen })
    }
}

impl Inspect for Look {
    fn inspect(self: Box<Self>) -> Vec<Condition> {
        self.places.iter().filter_map(|place| self.see(place)).collect()
    }
}

/// The conditions on a changed file.
pub(super) type Held = (Existing, Option<[u8; 32]>);

/// The conditions on each file, by the approved state: `Refuse` where none was there, else the
/// digest that it had; what stands beside the place where nobody was asked.
pub(super) fn held<const N: usize>(
    conditions: &[Condition],
    places: [(&Place, Existing); N],
) -> Result<[Held; N], Refused> {
    let changed = || Refused::new(Reason::Changed).field("path");
    let mut found = places.map(|(_, existing)| (existing, None));
    let subjects = places.map(|(place, _)| place.in_full());
    for condition in conditions {
        // Two arguments may name one file.
        let mut of_it =
            subjects.iter().zip(&mut found).filter(|(of, _)| **of == *condition.subject);
        let mut is_known = false;
        of_it.try_for_each(|(_, held)| {
            is_known = true;
            *held = match (condition.kind, condition.seen.as_deref().map(digest_of)) {
                (PreconditionKind::Absent, None) => (Existing::Refuse, held.1),
                (PreconditionKind::Digest, Some(Some(digest))) => (held.0, Some(digest)),
                // It was bound to what this version does not know.
                _ => return Err(changed()),
            };
            Ok(())
        })?;
        // It was looked at elsewhere.
        if !is_known {
            return Err(changed());
        }
    }
    Ok(found)
}

pub(crate) fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The digest that a text names.
pub(crate) fn digest_of(text: &str) -> Option<[u8; 32]> {
    let mut digest = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (n, byte) in digest.iter_mut().enumerate() {
        let at = n.checked_mul(2)?;
        *byte = u8::from_str_radix(text.get(at..at.checked_add(2)?)?, 16).ok()?;
    }
    Some(digest)
}

/// FIPS 180-4.
pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}
