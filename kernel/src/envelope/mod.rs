//! What goes in and what comes out: the call's envelope and the result's.

mod call;
mod result;

pub(crate) use call::Defaults;
pub use call::{Filled, Form, ToolCall};
pub use result::{Receipt, Status, ToolError, ToolResult, TxOutcome};
