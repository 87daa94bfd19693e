//! From a tool's name to its constraints in a few steps, however many tools there are.

use alloc::boxed::Box;
use alloc::vec;
use alloc::vec::Vec;

use syscap_format::ToolId;

/// An open-addressing table, at most half full.
pub(super) struct Tools {
    /// The upper half of a name's hash, and its number plus one; 0 where nothing is.
    cells: Box<[(u32, u32)]>,
    names: Vec<ToolId>,
}

impl Tools {
    pub(super) fn new(names: Vec<ToolId>) -> Self {
        let size = names.len().saturating_mul(2).max(2).next_power_of_two();
        let mut table = Self { cells: vec![(0, 0); size].into_boxed_slice(), names: Vec::new() };
        for name in names {
            let (tag, start) = split(hash(name.as_str()));
            let free = table.cells_from(start).find(|(_, (_, number))| *number == 0);
            let place = free.map(|(place, _)| place);
            table.names.push(name);
            let number = u32::try_from(table.names.len()).unwrap_or(u32::MAX);
            if let Some(cell) = place.and_then(|place| table.cells.get_mut(place)) {
                *cell = (tag, number);
            }
        }
        table
    }

    /// The number of a tool, from 0 in the order in which they were given.
    pub(super) fn find(&self, tool: &str) -> Option<usize> {
        let (tag, start) = split(hash(tool));
        self.cells_from(start)
            .map(|(_, cell)| cell)
            .take_while(|(_, number)| *number != 0)
            .find_map(|(found, number)| {
                let number = usize::try_from(number).ok()?.checked_sub(1)?;
                let same = found == tag && self.names.get(number)?.as_str() == tool;
                same.then_some(number)
            })
    }

    /// The cells from the one at `start`, round to it again.
    fn cells_from(&self, start: u32) -> impl Iterator<Item = (usize, (u32, u32))> {
        let mask = self.cells.len().saturating_sub(1);
        let start = usize::try_from(start).unwrap_or_default() & mask;
        (0..self.cells.len()).map(move |step| {
            let place = start.wrapping_add(step) & mask;
            (place, self.cells.get(place).copied().unwrap_or_default())
        })
    }
}

/// FNV-1a: names are short and written by the policy's author.
fn hash(text: &str) -> u64 {
    let mix = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325, mix);
    hash ^ (hash >> 29)
}

fn split(hash: u64) -> (u32, u32) {
    let [a, b, c, d, e, f, g, h] = hash.to_be_bytes();
    (u32::from_be_bytes([a, b, c, d]), u32::from_be_bytes([e, f, g, h]))
}
