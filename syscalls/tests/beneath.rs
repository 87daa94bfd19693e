//! The handle layer of files against every trap of the attack catalogue: each test is named
//! after its trap or advisory and judges effects and error variants. All are run over both openers:
//! `setup::every_opener_passes_every_test`.

mod advisories;
mod appends;
mod changes;
mod differential;
mod faults;
mod judged;
mod limits;
mod links;
mod listing;
mod names;
mod race;
mod random;
mod setup;
mod special;
mod support;
mod turns;
mod writes;
