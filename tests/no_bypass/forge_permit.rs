//! expect: E0451
//! Makes a permit out of nothing, by naming its fields.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack() -> Permit<'static, MinePlan> {
    Permit {
        core: loop {},      //~
        brand: PhantomData, //~
    }
}

fn main() {
    drop(attack());
}
