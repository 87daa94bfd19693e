//! expect: E0451
//! Makes a reading permit out of nothing, by naming its fields.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack() -> ReadPermit<'static, PeekPlan> {
    ReadPermit {
        core: loop {},      //~
        brand: PhantomData, //~
    }
}

fn main() {
    drop(attack());
}
