//! expect: E0451
//! Makes a profile of the codec that lets more through.
#[path = "support/mod.rs"]
mod support;
use support::*;

use syscap::format::Profile;

fn attack() -> Profile {
    Profile {
        depth_max: u8::MAX, //~
        floats: loop {},    //~
    }
}

fn main() {
    attack();
}
