//! One home, many processes: who holds it, who is attached, and what becomes of either.

mod bounds;
mod frames;
mod holders;
mod lanes;
mod operators;
mod points;
mod providers;
mod share;
mod sockets;
mod tickets;
mod turns;
mod waits;
mod wire;
mod world;
