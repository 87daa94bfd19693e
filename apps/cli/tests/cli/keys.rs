//! `keys`, and the passphrases that are asked for.

mod asked;
mod changed;
mod damaged;
mod durable;
mod issuing;
mod planted;
