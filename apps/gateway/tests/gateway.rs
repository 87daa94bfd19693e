//! The gateway between a raw client and a server that misbehaves.

mod apart;
mod bench;
mod bounds;
mod calls;
mod ends;
mod exits;
mod floods;
mod goes_on;
mod governed;
mod hostile;
mod kills;
mod lost;
mod offered;
mod others;
mod pins;
mod questions;
mod servers;
mod several;
mod starting;
mod told;
mod twins;
mod waits;
mod wires;
