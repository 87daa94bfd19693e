//! From a submitted call to its answer: what waits, what is written down and when, what runs.
//!
//! | | file | record |
//! |---|---|---|
//! | a call comes in, takes the [steps](crate::call), and waits where it must | `admit` | `intent`, `repeat` |
//! | it is refused; a flood of refusals is counted | `refuse`, `aggregate` | `refusal`, `refusals` |
//! | its record is made, and handed to the store | `log`, `pending` | |
//! | once that is durable: it runs, and is settled | `settle` | `outcome` |
//! | once that is durable: it is answered | `answer` | |

mod admit;
pub(crate) mod aggregate;
pub(crate) mod answer;
pub(crate) mod flight;
mod log;
pub(crate) mod pending;
mod refuse;
mod settle;
