//! Bounds: what is longer, deeper or more is unknown.

/// Longest command, in bytes: what people and models write is a few hundred.
pub const TEXT_BYTES_MAX: usize = 32 << 10;
/// Most levels of substitutions and of `sh -c` within one another.
pub const DEPTH_MAX: usize = 6;
/// Most brackets, braces and quotes of substitutions that are open at once: the parser's own
/// stack and time grow with them.
pub const NESTING_MAX: usize = 12;
/// Most words that begin what holds other commands: `if`, `for`, `!`.
pub(crate) const HOLDING_MAX: usize = 24;
/// Most `case`s.
pub(crate) const CASES_MAX: usize = 3;
/// Most brackets that are closed.
pub(crate) const BRACKETS_MAX: usize = 256;
/// Most simple commands.
pub const COMMANDS_MAX: usize = 256;
/// Most words of one simple command.
pub const WORDS_MAX: usize = 1_024;
/// Most folders that a command may be in, depending on which `cd` succeeded.
pub const BASES_MAX: usize = 8;
/// Most values of a loop's variable that its body is read for.
pub(crate) const VALUES_MAX: usize = 16;
/// Most such readings, of all loops.
pub(crate) const ROUNDS_MAX: usize = 64;
/// Most paths times most of what is moved, each of which is looked at with each.
pub(crate) const WAYS_MAX: usize = 1 << 18;
/// Most reasons that are kept for people.
pub(crate) const REASONS_MAX: usize = 16;
