//! The host's names for what it asks.

/// The host's name for a request, echoed with its answer. The host must not use one twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);
