//! expect: E0277
//! Asks for a permit as a deserialiser would: by default, from text, from bytes.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn by_default<T: Default>() {}
fn from_text<T: core::str::FromStr>() {}
fn from_bytes<T: From<Vec<u8>>>() {}
fn from_some<T: for<'a> TryFrom<&'a [u8]>>() {}

fn main() {
    by_default::<Permit<'_, MinePlan>>(); //~
    by_default::<ReadPermit<'_, PeekPlan>>(); //~
    from_text::<Permit<'_, MinePlan>>(); //~
    from_bytes::<Permit<'_, MinePlan>>(); //~
    from_some::<Permit<'_, MinePlan>>(); //~
    by_default::<Ran>(); //~
    by_default::<Stored>(); //~
    by_default::<ToolResult>(); //~
}
