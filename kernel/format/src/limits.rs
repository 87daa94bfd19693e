//! Every limit of the kernel in one place, each with its reason.

/// Largest envelope, in bytes: one file of [`ARGS`](crate::cbor::Profile::DATA) size and its
/// framing; larger payloads belong into files.
pub const ENVELOPE_BYTES_MAX: usize = 1 << 20;
/// Largest record, in bytes: C2SP tlog-tiles frames an entry by a 16-bit length.
pub const RECORD_BYTES_MAX: usize = 65_535;
/// Largest body of a signed event, in bytes: with sixteen signatures and its frame it fits into a
/// record. The largest that is of a bounded form is a list of 1,024 revoked tokens, of 35 KB.
pub const CONTROL_BODY_BYTES_MAX: usize = 60_000;
/// Largest control document, in bytes: a policy of 10,000 constraints has room.
pub const OBJECT_BYTES_MAX: usize = 16 << 20;
/// Largest token wire, in bytes: what Tenuo allows, and four times a large real one.
pub const TOKEN_BYTES_MAX: usize = 64 << 10;
/// Largest result that a tool may deliver, in bytes, whatever its manifest says.
pub const RESULT_BYTES_MAX: usize = 4 << 20;
/// Longest life of a token: 90 days, so that revocations need not be kept for ever.
pub const TOKEN_LIFE_MS_MAX: u64 = 90 * 24 * 3_600_000;
/// Longest chain of tokens: each call walks it.
pub const TOKEN_DEPTH_MAX: u64 = 16;
/// Most tools that a token may grant: a linear look-up stays within one cache line's time.
pub const GRANTS_MAX: usize = 256;
/// Most dimensions that a grant may scope.
pub const DIMENSIONS_MAX: usize = 16;
/// Most input references that a provenance may carry: it stands in every record of a call.
pub const PROVENANCE_INPUTS_MAX: usize = 16;
/// Longest trace id, in bytes: a W3C `traceparent` has 55.
pub const TRACE_BYTES_MAX: usize = 64;
/// Most `$ref` values in one call's arguments.
pub const REFERENCES_MAX: usize = 16;
/// Most look-ups of an argument's links for one call: its arguments change meanwhile only where
/// an operator changes the tool.
pub const LOOKUPS_MAX: u32 = 4;
/// Most released results that a session can refer to by `$ref`; older ones are unknown.
pub const RELEASED_MAX: usize = 1_024;
/// Most calls in flight at once, over all sessions; one more is refused as overloaded.
pub const IN_FLIGHT_MAX: usize = 1_024;
/// Most open sessions.
pub const SESSIONS_MAX: usize = 65_536;
/// Refusals of a session in a row that get records of their own before an aggregate opens.
pub const REFUSALS_IN_A_ROW_MAX: u32 = 16;
/// Most refusals that the first aggregate of a session answers; each next one takes four times
/// as many, up to [`AGGREGATE_MAX`].
pub const AGGREGATE_FIRST: u64 = 64;
/// Most refusals that any aggregate answers: after a crash it counts in full.
pub const AGGREGATE_MAX: u64 = 65_536;
/// Kernel time after which an open aggregate closes.
pub const AGGREGATE_MS_MAX: u64 = 60_000;
/// Default for how far the wall clock may deviate within one boot.
pub const SKEW_MS_MAX: u64 = 300_000;
/// Longest text of `got` and `allowed` in an error, in bytes: models read it.
pub const DETAIL_BYTES_MAX: usize = 256;
/// Most arguments that a tool may declare.
pub const PARAMS_MAX: usize = 64;
/// Most obligations that a decision may hold: a handful of kinds, a cut for each dimension, and
/// notices.
pub const OBLIGATIONS_MAX: usize = 32;
/// Longest name in an obligation, in bytes: a topic is a word.
pub const OBLIGATION_NAME_BYTES_MAX: usize = 64;
/// Most matches that a decision lists; the count and a digest cover the rest.
pub const MATCHES_MAX: usize = 16;
/// Most facts that an agent's state may hold: each stands in every snapshot.
pub const FACTS_MAX: usize = 256;
/// Most keys that one change of a state may name: all that there may be, each in exchange for
/// another. They stand in its record.
pub const CHANGES_MAX: usize = 512;
/// Largest fact, in canonical bytes: the kernel keeps them in memory.
pub const FACT_BYTES_MAX: usize = 4_096;
/// Most snapshots before an agent's head that a call may name; older ones are unknown.
pub const ANCESTORS_MAX: usize = 1_024;
/// Most keys that a role may have: each signature of an event is verified whenever a home opens.
pub const ROLE_KEYS_MAX: usize = 16;
/// Most tokens that one list of revocations names: it stands in a record.
pub(crate) const LIST_MAX: usize = 1_024;
/// Most tokens that lists have named and that are not registered here: they are looked at with
/// every token that comes.
pub(crate) const LISTED_MAX: usize = 65_536;
/// Longest time, in milliseconds, that a program may take which tells of a call that waits.
pub(crate) const NOTIFY_MS_MAX: u64 = 60_000;
/// Durable heads that the kernel remembers, so that a signer need not name the very last one;
/// one before them is looked up in the store.
pub const RECENT_HEADS_MAX: usize = 1_024;
/// How long a call waits for a person: a day, so that one that comes at night is seen.
pub const ASK_LIFE_MS: u64 = 86_400_000;
/// Most calls that one approval may let through.
pub const SET_USES_MAX: u64 = 1_000;
/// How long an approval of more than one call stands at most: a day.
pub const SET_LIFE_MS: u64 = 86_400_000;
/// Most approvals of more than one call that stand at once; the oldest goes first.
pub const SETS_MAX: usize = 1_024;
/// Longest text that a person writes, or name that stands for one, in bytes: as long as a path.
pub const TEXT_BYTES_MAX: usize = 4_096;
/// Most texts that one row of the vault has: a record names no more.
pub(crate) const TEXTS_MAX: usize = 128;
/// Most resources that one call may name, equal ones counted once: each is held against scopes, each
/// test of the policy, and approvals. A request for approval shows 64, and what is found of a shell's
/// command has 512 of its own.
pub const DEMANDS_MAX: usize = 1_024;
