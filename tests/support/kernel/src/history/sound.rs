//! What must hold of a simulated home, whatever has come in.

use syscap_format::{Reason, Refused};
use syscap_kernel::{Kernel, Store};
use syscap_verify::{Extent, Options, Soundness, verify};

use crate::{FromStore, sim::Sim};

/// The log makes the state that the kernel has, byte for byte, and verifies.
pub fn sound(sim: &mut Sim) {
    settled(sim);
    assert_eq!(sim.kernel.halted(), None);
    let again = sim.reopened().unwrap();
    assert_eq!(seen(&again), seen(&sim.kernel));
    verifies(&mut sim.store);
    sim.check();
}

/// Makes everything durable that is on its way.
pub fn settled(sim: &mut Sim) {
    // A commit may lead to a further record: a call that was revoked before its run.
    loop {
        sim.take();
        if sim.flights.is_empty() {
            break;
        }
        sim.land();
    }
}

/// A verifier, which shares nothing with the kernel's fold, finds nothing.
pub fn verifies(store: &mut dyn Store) {
    let report = verify(&mut FromStore(store), Extent::AtRest, &Options::default()).unwrap();
    assert_eq!(report.findings, []);
    assert!(matches!(report.verdict(), Soundness::Sound | Soundness::Incomplete));
}

/// A refusal has a reason that the registry knows.
pub fn known(refused: &Refused) {
    assert_eq!(Reason::from_code(refused.reason().code()), Some(refused.reason()));
}

/// A kernel's state, byte for byte, and what it knows of every agent.
pub fn seen(kernel: &Kernel) -> (Vec<u8>, Vec<String>) {
    (kernel.state_image(), kernel.states().map(|state| format!("{state:?}")).collect())
}
