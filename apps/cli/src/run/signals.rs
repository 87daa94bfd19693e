//! Signals to this process are passed on to the program.

use std::thread;

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::Signals;
use syscap::launch::Orders;

use super::screen::Sized;
use crate::exit::Failure;

/// Forwards them from here on; a change of the terminal's size goes to the program's own.
pub(super) fn forward(orders: Orders, screen: Option<Sized>) -> Result<(), Failure> {
    let heard = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH];
    let mut signals = Signals::new(heard).map_err(Failure::Stream)?;
    let hear = move || {
        for signal in signals.forever() {
            match (signal, &screen) {
                (SIGWINCH, Some(screen)) => screen.resize(),
                (SIGWINCH, None) => {}
                (signal, _) => orders.signal(u8::try_from(signal).unwrap_or(0)),
            }
        }
    };
    let started = thread::Builder::new().name("syscap-signals".to_owned()).spawn(hear);
    started.map(drop).map_err(Failure::Stream)
}
