//! The first seed's `resume.json`: what an agent may do, read into a grant and written back.
//!
//! ```
//! use syscap::{prelude::*, resume::Resume, view::Whose};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let rt = Runtime::create(folder.path().join("home"))?;
//! let resume = Resume::read(
//!     br#"{"name": "researcher", "title": "Reads, and writes notes",
//!          "permissions": {"tools": ["file_read"],
//!                          "file_access": {"allow_read": ["shared"], "allow_write": []}}}"#,
//! )?;
//! let compiled = resume.compile(resume.agent()?, &rt.manifests(Whose::All)?, &[])?;
//! assert!(compiled.unknown.is_empty());
//! rt.issue(compiled.grant.expires_in(Duration::from_secs(3600)))?;
//! # rt.close()?;
//! # Ok(())
//! # }
//! ```
//!
//! Read are `name`, `permissions.tools`, `permissions.file_access` and `permissions.send_outboxes`.
//! All other fields are kept, byte for byte, when the resume is written ([`Resume::with`]), and
//! grant nothing. `docs/resume.md` says what each section becomes, and why.

mod compile;
mod error;
mod paths;
mod read;
mod text;
mod write;

pub use crate::runtime::resume::compile::Compiled;
pub use crate::runtime::resume::error::ResumeError;
pub use crate::runtime::resume::read::Resume;
pub use crate::runtime::resume::write::Written;
