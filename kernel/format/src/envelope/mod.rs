//! Envelopes: of calls, and of results.

mod call;
mod read;
mod result;

pub use call::{Defaults, Faulty, Filled, Form, Named, ToolCall, kind_name, levels};
pub use result::{Receipt, Status, ToolError, ToolResult, TxOutcome};
