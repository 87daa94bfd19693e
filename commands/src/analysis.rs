//! A reading of a command from its beginning.

use crate::{
    place::Place,
    said::{Mark, Said},
    table,
    walk::{Bases, Bound, Walk},
};

/// What a command would run and touch.
#[must_use]
pub fn analyse(text: &str, place: &Place) -> Said {
    let mut said = Said::default();
    let bases = Bases(place.base.clone().map(|base| [base].into()));
    let bound = Bound::default();
    Walk { place, said: &mut said, bases, bound, depth: 0, table: table::run }.text(text);
    if let Some(why) = said.moved.unclear() {
        said.mark(Mark::Unknown, why);
    }
    said
}
