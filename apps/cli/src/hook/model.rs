//! The client's message to its model about a failure: standard error, on exit code 2.
//!
//! It holds no path of the home, no token id and no command of an operator. The user is told all of
//! it when the next prompt can't be recorded.

use syscap::kernel::StoreError;

use crate::exit::Failure;

/// Why the home can't be reached.
pub(super) fn unreached(failure: &Failure) -> String {
    let source = match failure {
        Failure::Home { source, .. } => Some(&**source),
        _ => None,
    };
    let state = match source {
        Some(syscap::Error::Home(StoreError::Missing)) => "missing",
        Some(syscap::Error::Home(StoreError::Damaged)) => "damaged",
        _ => "out of reach",
    };
    format!("the place where calls are recorded is {state}; tell your user")
}
