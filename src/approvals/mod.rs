//! Calls that wait for a person, and what is answered.

pub(crate) mod asks;
pub(crate) mod carried;
#[cfg(feature = "sqlite")]
pub(crate) mod client_answer;
#[cfg(feature = "sqlite")]
pub(crate) mod compared;
pub(crate) mod live;
pub(crate) mod proposals;

pub use crate::approvals::asks::{SetTerms, WaitingCall, reason_given};
pub use crate::approvals::carried::{CarriedAnswer, CarriedAsk, CheckedAsk, Unsound};
#[cfg(feature = "sqlite")]
pub use crate::approvals::client_answer::answer_in_client;
#[cfg(feature = "sqlite")]
pub use crate::approvals::compared::{Changed, Compared};
#[cfg(feature = "sqlite")]
pub use crate::approvals::live::Rows;
pub use crate::approvals::proposals::Proposal;
pub use crate::runtime::session::{Stands, Waited};
