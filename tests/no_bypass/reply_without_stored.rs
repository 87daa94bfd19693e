//! expect: E0624
//! Makes the kernel start a run or answer before its record is durable.
#[path = "support/mod.rs"]
mod support;
use support::*;

fn attack(kernel: &mut Kernel) {
    kernel.start(any(), any(), any()); //~
    kernel.answer(any(), any(), any(), any()); //~
    drop(kernel.proceed(any(), any())); //~
    drop(kernel.stored(any())); //~
    kernel.emit(any()); //~
}

fn main() {
    attack(any());
}
