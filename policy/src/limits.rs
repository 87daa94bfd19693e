//! Every limit of a policy in one place, each with its reason.

use syscap_format::{DETAIL_BYTES_MAX, OBJECT_BYTES_MAX, OBLIGATIONS_MAX as KERNEL_MAX};

/// Largest document, in canonical bytes: with its engine's name it is one control document.
pub const DOCUMENT_BYTES_MAX: usize = OBJECT_BYTES_MAX - 4_096;
/// Longest JSON text of a document, in bytes: indented it may be four times as long.
pub const TEXT_BYTES_MAX: usize = OBJECT_BYTES_MAX * 4;
/// Most constraints, those that parameters stand for included: their places are `u16`.
pub const CONSTRAINTS_MAX: usize = 65_535;
/// Most nodes of one condition, tests included: what one constraint may cost a decision.
pub const NODES_MAX: usize = 1_024;
/// Most constants of one `in`: an organisation's list of hosts, and not a data base.
pub const CONSTANTS_MAX: usize = 4_096;
/// Most constants of all `in` of a document, those that parameters stand for counted at each place:
/// a list that is named a thousand times is compiled a thousand times.
pub const CONSTANTS_ALL_MAX: usize = 1_000_000;
/// Most elements of a list that is compared element by element; of a longer one nothing is known.
pub const LIST_MAX: usize = 256;
/// Most allows that advice is looked for in: it is for callers, who read three.
pub const ADVISED_MAX: usize = 256;
/// Most constraints evaluated for all examples of a document that speak of its verdict.
pub const EXAMPLES_WORK_MAX: usize = 10_000_000;
/// Longest text constant, in bytes: the longest path that there is.
pub const TEXT_CONSTANT_BYTES_MAX: usize = 4_096;
/// Longest reason, in bytes: what an error may carry to a caller.
pub const REASON_BYTES_MAX: usize = DETAIL_BYTES_MAX;
/// Most examples of a constraint: each is evaluated whenever the document is loaded.
pub const EXAMPLES_MAX: usize = 64;
/// Most obligations of a constraint: a handful of kinds and a cut for each dimension.
pub const OBLIGATIONS_MAX: usize = 16;
/// Most distinct obligations in a document: all may come together in one decision.
pub const OBLIGATIONS_ALL_MAX: usize = KERNEL_MAX;
/// Most parameters: they are written by hand.
pub const PARAMS_MAX: usize = 1_024;
/// Longest name of a parameter, in bytes: it is typed by people.
pub const PARAM_NAME_BYTES_MAX: usize = 64;
/// Most fields below a fact or an argument: deeper data is no matter of policy.
pub const FIELDS_MAX: usize = 8;
/// Longest topic of a notice, in bytes: what a record takes.
pub const TOPIC_BYTES_MAX: usize = syscap_format::OBLIGATION_NAME_BYTES_MAX;
/// Most points of risk.
pub const RISK_MAX: u8 = 100;
