//! A static library without the standard library that links syscap's kernel, policy and
//! analysis.
//!
//! It has a panic handler of its own. If anything that it links brought `std` along there would
//! be two of them, and the compiler stops with E0152: what builds here has no files, no sockets,
//! no clock and no threads to call. `tests/no_std.rs` builds it, with and without `std`.
#![no_std]

extern crate alloc;
#[cfg(feature = "with_std")]
extern crate std;

use alloc::{boxed::Box, vec::Vec};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::panic::PanicInfo;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};
use syscap_kernel::{Kernel, NewHome, Parts, PolicyEngine, Reading, Registry, object_of};

use syscap_analysis::{Finding, lints};
use syscap_format::{
    Durability, HomeLimits, Item, PolicyObject, Profile, PublicKey, Roles, Token, UnixMillis, json,
    self_test,
};
use syscap_policy::{Policy, WithinToken};

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// What no part of the kernel may do.
#[cfg(feature = "with_system")]
#[unsafe(no_mangle)]
pub extern "C" fn probe_system() -> i32 {
    unsafe extern "C" {
        fn getpid() -> i32;
    }
    // SAFETY: it takes nothing and always succeeds.
    unsafe { getpid() }
}

const ARENA_BYTES: usize = 1 << 20;

/// Memory that is handed out once and never taken back.
struct Arena {
    bytes: UnsafeCell<[u8; ARENA_BYTES]>,
    used: AtomicUsize,
}

// SAFETY: `used` only grows, atomically, so no two callers are given the same bytes.
unsafe impl Sync for Arena {}

// SAFETY: a block is within the arena, aligned, and given out once.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let base = self.bytes.get().cast::<u8>();
        let room = layout.size().saturating_add(layout.align());
        let start = self.used.fetch_add(room, Ordering::Relaxed);
        if start.saturating_add(room) > ARENA_BYTES {
            return ptr::null_mut();
        }
        // SAFETY: `start + room` is within the arena, and `room` covers the alignment.
        unsafe {
            let block = base.add(start);
            block.add(block.align_offset(layout.align()))
        }
    }

    unsafe fn dealloc(&self, _: *mut u8, _: Layout) {}
}

#[global_allocator]
static ARENA: Arena = Arena { bytes: UnsafeCell::new([0; ARENA_BYTES]), used: AtomicUsize::new(0) };

/// Uses something of every part: codec, JSON, tokens, signatures, the kernel, the engines and the
/// analysis.
#[unsafe(no_mangle)]
pub extern "C" fn probe(byte: u8, wall_ms: u64) -> usize {
    let bytes = [byte, 0xf6];
    let checked = usize::from(Item::check(&bytes, Profile::DATA).is_ok());
    let parsed = usize::from(json::to_cbor(&bytes).is_ok());
    let token = usize::from(Token::read(&bytes).is_ok());
    let signed = usize::from(self_test().is_ok());
    let policy = object_of(&WithinToken).hash();
    let odd = Policy::from_json(&bytes)
        .map_or(0, |policy| usize::from(lints(policy.written(), 1) == Finding::Holds { nodes: 0 }));
    let Ok(key) = PublicKey::new([byte; 32]) else {
        return checked + parsed + token + signed + odd + usize::from(policy.as_bytes()[0]);
    };
    let new = NewHome {
        entropy: [byte; 32],
        origin: Box::from("probe"),
        limits: HomeLimits::default(),
        durability: Durability::Full,
        roles: Roles::new([key; 5]),
        recovery: None,
    };
    let engine: Box<dyn PolicyEngine> = Box::new(WithinToken);
    let parts = Parts { engine, registry: Registry::new() };
    let reading = Reading { wall: UnixMillis::new(wall_ms), boottime_ms: 0 };
    let image: Vec<u8> = Kernel::create(new, parts, reading)
        .map_or_else(|_| Vec::new(), |kernel| kernel.state_image());
    image.len()
}
