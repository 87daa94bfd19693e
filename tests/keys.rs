//! Keys: their files, who is asked, how others come in their place, and what a thief keeps.

mod key_files;
mod offers;
mod rotation;
mod sealed;
mod stolen;
mod world;
