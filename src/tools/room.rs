//! How much may be known of delegated tools: what is on record stays there, and whoever looks at
//! the home gets it whole.

use syscap_format::{Manifest, ToolId};

use crate::Error;
use crate::tools::{ConnectionId, Known, Place, Table};

/// How many tools can be known at a time.
pub(crate) const DELEGATED_MAX: usize = 4_096;
/// Most bytes of the manifests of all of them; and of those that a process offers.
pub(crate) const MANIFEST_BYTES_MAX: usize = 4 << 20;
/// Most tools that a process can have put on record while it is attached.
const PINS_MAX: usize = 512;

impl Table {
    /// Checks that all may be offered, and that the new ones may be put on record; returns the
    /// number that the connection will have put on record then.
    pub(crate) fn room_for(
        &self,
        connection: ConnectionId,
        offered: &[Manifest],
        new: &[Manifest],
    ) -> Result<usize, Error> {
        let before = self.pins.get(&connection).copied().unwrap_or(0);
        let pins = before.saturating_add(new.len());
        // The holder's own are its host's, or of many clients.
        let own = connection == ConnectionId::HOLDER || connection == ConnectionId::DESK;
        if size_of_all(offered) > MANIFEST_BYTES_MAX || (!own && pins > PINS_MAX) {
            return Err(Error::TooManyTools);
        }
        if !new.is_empty() {
            self.has_room(new)?;
        }
        Ok(pins)
    }

    /// Checks that these fit on record beside, or in the place of, the present ones.
    pub(crate) fn has_room(&self, added: &[Manifest]) -> Result<(), Error> {
        let stays = |(tool, _): &(&ToolId, &Known)| added.iter().all(|new| new.tool != **tool);
        let stay: Vec<usize> =
            self.tools.iter().filter(stays).map(|(_, known)| known.bytes).collect();
        // What waits for an operator takes room too, until whoever offers it goes.
        let waits = |(tool, _): &(&ToolId, &Vec<Place>)| added.iter().all(|new| new.tool != **tool);
        let waiting = self.awaiting.iter().filter(waits);
        let waiting: Vec<usize> = waiting.map(|(_, places)| size_of_largest(places)).collect();
        let others = stay.iter().chain(&waiting);
        let bytes = others.fold(size_of_all(added), |sum, bytes| sum.saturating_add(*bytes));
        let count = stay.len().saturating_add(waiting.len()).saturating_add(added.len());
        match bytes <= MANIFEST_BYTES_MAX && count <= DELEGATED_MAX {
            true => Ok(()),
            false => Err(Error::TooManyTools),
        }
    }
}

/// The length of all of them together, in bytes.
fn size_of_all(manifests: &[Manifest]) -> usize {
    let sizes = manifests.iter().map(|manifest| manifest.to_bytes().len());
    sizes.fold(0, usize::saturating_add)
}

fn size_of_largest(places: &[Place]) -> usize {
    places.iter().map(|place| place.offered.to_bytes().len()).max().unwrap_or(0)
}
