//! `email.draft`: a message for a person to send. It never sends.
//!
//! Whom it may be for is in the token: exact addresses in [`RECIPIENT_DIMENSION`], or hosts in
//! [`RECIPIENT_HOST_DIMENSION`]; each recipient, of `to`, `cc` and `bcc`, must be permitted by one
//! of them. Addresses are taken in one plain form or refused, never mended: what two programs read
//! in two ways is how a message reaches somebody whom nobody checked.
//!
//! The message is built by one library and read back by another. Only if that one finds what was
//! meant, and nothing else, is it kept: in the Maildir `agents/NAME/mail/Drafts` beneath the base.

use syscap_format::dimension;

mod address;
#[cfg(feature = "mail")]
mod draft;
#[cfg(feature = "mail")]
mod message;
mod recipient;

pub use address::ADDRESS_BYTES_MAX;
#[cfg(feature = "mail")]
pub use draft::{BODY_BYTES_MAX, EmailDraft, EmailDraftPlan, RECIPIENTS_MAX, SUBJECT_BYTES_MAX};
pub(crate) use recipient::recipient;

/// The dimension of a grant that names addresses.
pub const RECIPIENT_DIMENSION: &str = dimension::RECIPIENT.name;
/// The dimension of a grant that names the hosts of addresses.
pub const RECIPIENT_HOST_DIMENSION: &str = dimension::RECIPIENT_HOST.name;
