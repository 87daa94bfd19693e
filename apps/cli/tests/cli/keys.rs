//! `keys`, and the passphrases that are asked for.

mod asked;
mod changed;
mod durable;
mod planted;
