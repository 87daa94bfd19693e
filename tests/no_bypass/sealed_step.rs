//! expect: E0603
//! Implements the sealed step, to add one that checks nothing.
#[path = "support/mod.rs"]
mod support;
use support::*;

struct Unchecked;

impl syscap::kernel::call::step::Step for Unchecked {} //~

fn main() {}
