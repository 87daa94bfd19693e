//! Tools of the host's own: closures, typed plans, futures.
//!
//! The kernel decides, records and meters a call of such a tool as any other; the host's code runs
//! it, and nothing stands between that code and the system. The record says so: enforcement
//! `delegated`.
//!
//! ```
//! use syscap::{host::HostTool, format::EffectClass, prelude::*};
//!
//! # fn main() -> Result<(), Error> {
//! # let folder = tempfile::tempdir().expect("a temporary folder");
//! let lookup = HostTool::new("org.lookup", EffectClass::Read)?
//!     .text("name", "Whose entry.")
//!     .run(|call| Ok(call.text("name")?.to_uppercase()));
//! let rt = Options::new().tool(lookup)?.create(folder.path().join("home"))?;
//! let token = rt.issue(Grant::to("clerk").tools(["org.lookup"]))?;
//! let found = rt.session("clerk", token)?.call("org.lookup", args! { "name": "ada" })?;
//! assert_eq!(found.text()?, "ADA");
//! # rt.close()
//! # }
//! ```
//!
//! * [`HostTool`] says what the kernel must know, and ends in one of four ways:
//!   [`run`](HostTool::run) takes a closure, [`run_async`](HostTool::run_async) one that makes a
//!   future, [`typed`](HostTool::typed) a type that parses its arguments once and says which
//!   scopes it needs, [`transactional`](HostTool::transactional) one that besides prepares its
//!   effect before it makes it.
//! * [`HostTools`] offers closures from another process than the one that holds the home.
//! * [`AsyncSession`] and [`in_background`] make calls from asynchronous code.
//!
//! A closure that panics, takes too long, wants more than was set aside or returns too much has
//! failed, and is recorded so. It can't be stopped: [`ToolCall::is_cancelled`] tells it that nobody
//! waits any more.

mod background;
mod builder;
mod call;
pub(crate) mod closure;
mod failure;
mod future;
mod offered;
mod transaction;
mod typed;
pub(crate) mod uses;

pub use crate::tools::commands::MACHINE_ROOT;
pub use syscap_syscalls::shell::DOES_DIMENSION;

pub use crate::tools::host::background::{AsyncSession, Background, Work, in_background};
pub use crate::tools::host::builder::HostTool;
pub use crate::tools::host::call::{Cancelled, HostArgs, ToolCall};
pub use crate::tools::host::closure::{ClosurePlan, ClosureTool};
pub use crate::tools::host::failure::Failure;
pub use crate::tools::host::future::Task;
pub use crate::tools::host::offered::HostTools;
pub use crate::tools::host::transaction::{Transactional, TransactionalPlan, TransactionalTool};
pub use crate::tools::host::typed::{Planned, Typed, TypedPlan, TypedTool};
pub use crate::tools::host::uses::{Begun, OwnUse, Prompt, Reported, Settled, ToolUse};
