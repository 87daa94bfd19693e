//! expect: E0277
//! Asks for a permit by `Default`, by parsing text and by conversion, as a deserialiser would.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn default<T: Default>() {}
fn parsed<T: core::str::FromStr>() {}
fn converted<T: From<Vec<u8>>>() {}

fn main() {
    default::<Permit<MinePlan>>(); //~
    default::<ReadPermit<PeekPlan>>(); //~
    parsed::<Permit<MinePlan>>(); //~
    converted::<Permit<MinePlan>>(); //~
    default::<Ran>(); //~
    default::<Stored>(); //~
}
