//! The machine's randomness.

use std::sync::{Arc, Mutex, PoisonError};

use syscap_format::{CallSalts, Salt};
use syscap_kernel::{Entropy, NoEntropy};

/// The operating system's generator.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn fill(&self, buffer: &mut [u8]) -> Result<(), NoEntropy> {
        getrandom::fill(buffer).map_err(|_| NoEntropy)
    }
}

/// Random bytes drawn in larger pieces: a call needs 96, and a system call each time would cost as
/// much as the decision. Bytes that were handed out are wiped.
pub(crate) struct Salts {
    entropy: Arc<dyn Entropy>,
    pool: Mutex<Pool>,
}

struct Pool {
    bytes: Box<[u8; 4_032]>,
    used: usize,
}

impl Salts {
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        let bytes = Box::new([0; 4_032]);
        let used = bytes.len();
        Self { entropy, pool: Mutex::new(Pool { bytes, used }) }
    }

    /// Three salts.
    pub(crate) fn draw(&self) -> Result<CallSalts, NoEntropy> {
        let bytes: [u8; 96] = self.bytes()?;
        let (salts, _) = bytes.as_chunks::<32>();
        let mut salts = salts.iter().copied().map(Salt::from_bytes);
        match (salts.next(), salts.next(), salts.next()) {
            (Some(call), Some(args), Some(result)) => Ok(CallSalts { call, args, result }),
            _ => Err(NoEntropy),
        }
    }

    /// `N` bytes, at most what the pool holds.
    pub(crate) fn bytes<const N: usize>(&self) -> Result<[u8; N], NoEntropy> {
        // A panic while the pool was locked leaves at worst bytes that were not given out.
        let mut pool = self.pool.lock().unwrap_or_else(PoisonError::into_inner);
        let pool = &mut *pool;
        if pool.used.saturating_add(N) > pool.bytes.len() {
            self.entropy.fill(&mut pool.bytes[..])?;
            pool.used = 0;
        }
        let end = pool.used.saturating_add(N);
        let source = pool.bytes.get_mut(pool.used..end).ok_or(NoEntropy)?;
        let mut drawn = [0; N];
        drawn.copy_from_slice(source);
        source.fill(0);
        pool.used = end;
        Ok(drawn)
    }
}
