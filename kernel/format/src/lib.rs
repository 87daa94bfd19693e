//! Bytes and names: what syscap reads, writes, hashes and signs, and what each thing is called.
//!
//! Everything here is data. It decides, spends and runs nothing: that is the work of
//! `syscap-kernel`. Its verifier (`syscap-verify`) rests on this crate and not on the kernel's. No
//! I/O, no clock, no randomness, no `unsafe`; it builds without the standard library.
//!
//! All names are at the root, but for the functions of [`json`] and what declares documents
//! ([`field`]). Reading order: [`Item`] and [`json`] (bytes), [`field`], [`TokenId`] and [`leaf`]
//! (names), [`PublicKey`] (whose), [`ToolCall`] and [`ToolResult`] (what goes in and out),
//! [`Token`], [`Scope`] and [`Budget`] (authority), [`Manifest`] (tools), [`Decision`] and
//! [`Obligation`] (what a policy says), [`Facts`], [`Provenance`] and [`Label`] (where from),
//! [`Record`], [`Object`], [`Snapshot`] and [`VaultEntry`] (what is kept), [`StateImage`] (the
//! state of it all), [`Reason`] (why not).
#![no_std]
#![deny(clippy::arithmetic_side_effects, clippy::as_conversions)]

extern crate alloc;

mod budget;
mod cbor;
mod control;
mod decision;
mod envelope;
mod export;
mod facts;
pub mod field;
mod hash;
mod id;
mod image;
pub mod json;
mod label;
mod limits;
mod manifest;
mod object;
mod obligation;
mod provenance;
mod reason;
mod record;
mod scope;
mod shape;
mod sign;
mod snapshot;
pub mod summary;
mod time;
mod token;
mod vault;

pub use budget::{Amounts, Budget, Dimension};
pub use cbor::{
    Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item, ItemKind, MapBuilder, Profile,
};
pub use control::{
    Algorithm, CONTROL_CONTEXT, ConfigChange, Control, ControlBody, CreditChange, Freeze,
    FreezeBecause, FreezeChange, FreezeTarget, KeyChange, Notify, POSSESSION_CONTEXT,
    PolicyBecause, PolicyChange, Possession, Resolution, Revocation, RevocationList, RevokeTarget,
    Revoked, Role, RoleKey, RoleSet, Roles, Signed, ToolsChange, Trust, possession, recovery_hash,
};
pub use decision::{Decision, Shadow, Verdict, matches_digest};
pub use envelope::{
    Defaults, Faulty, Filled, Form, Named, Receipt, Status, ToolCall, ToolError, ToolResult,
    TxOutcome, kind_name, levels,
};
pub use export::{OBJECTS_FOLDER, RECORDS_FILE};
pub use facts::{Fact, FactKey, Facts, Namespace};
pub use hash::{
    Domain, Hasher, args_hash, call_digest, call_hash, changes_hash, definition_hash, fact_id,
    leaf, object_id, result_hash, sent_hash, text_hash,
};
pub use id::{
    AgentId, ArgsHash, CallDigest, CallHash, ConstraintId, DefinitionHash, FactId, HomeId,
    IdempotencyKey, Leaf, ObjectId, PolicyHash, RecoveryHash, RefusalsDigest, ResultHash, Salt,
    SentHash, Seq, SnapshotId, StateHash, TextHash, TokenId, ToolId, ToolsHash,
};
pub use image::{
    AccountImage, AgentImage, AskImage, FactImage, KeyImage, KeyStanding, KeysChangedImage,
    OpenImage, RateImage, ReleasedImage, RowImage, RunningImage, SessionImage, SetImage,
    SignerImage, StateImage, TermsImage, TokenImage, UnreportedImage,
};
pub use json::{Escapes, JsonError, JsonFault};
pub use label::{Confidentiality, Integrity, Label};
pub use limits::{
    AGGREGATE_FIRST, AGGREGATE_MAX, AGGREGATE_MS_MAX, ANCESTORS_MAX, ASK_LIFE_MS, CHANGES_MAX,
    CONTROL_BODY_BYTES_MAX, DEMANDS_MAX, DETAIL_BYTES_MAX, DIMENSIONS_MAX, ENVELOPE_BYTES_MAX,
    FACT_BYTES_MAX, FACTS_MAX, GRANTS_MAX, IN_FLIGHT_MAX, LOOKUPS_MAX, MATCHES_MAX,
    OBJECT_BYTES_MAX, OBLIGATION_NAME_BYTES_MAX, OBLIGATIONS_MAX, PARAMS_MAX,
    PROVENANCE_INPUTS_MAX, RECENT_HEADS_MAX, RECORD_BYTES_MAX, REFERENCES_MAX,
    REFUSALS_IN_A_ROW_MAX, RELEASED_MAX, RESULT_BYTES_MAX, ROLE_KEYS_MAX, SESSIONS_MAX,
    SET_LIFE_MS, SET_USES_MAX, SETS_MAX, SKEW_MS_MAX, TEXT_BYTES_MAX, TOKEN_BYTES_MAX,
    TOKEN_DEPTH_MAX, TOKEN_LIFE_MS_MAX, TRACE_BYTES_MAX,
};
pub use manifest::{
    ArgumentResource, EffectClass, Enforcement, Extra, Manifest, Param, ParamType, Presence,
};
pub use object::{EngineIdentity, Object, ObjectKind, PolicyObject, ToolEntry, ToolsObject};
pub use obligation::{Obligation, ObligationKind};
pub use provenance::{Provenance, Source};
pub use reason::{ErrorKind, Reason, Refused, Retry};
pub use record::{
    AggregatePhase, ApprovalAnswer, ApprovalBody, ApprovalChannel, ArgumentLabel, ArgumentSource,
    Ask, Body, BodyView, Boot, COMMON_FIELDS, CallFields, Cancel, CancelBody, Charge, Checkpoint,
    ClockFlags, Declassify, Durability, Genesis, Head, HomeLimits, Input, Intent, Issue, Late,
    LateReport, Opened, Outcome, OutcomeFlags, Precondition, PreconditionKind, PreviousRun, Prune,
    PruneBody, Record, RecordError, RecordKind, RecordView, Recovered, Recovery, RedactBody,
    Refusal, RefusalKind, Refusals, Repeat, RunMode, SessionChange, SessionPhase, Shutdown,
    SignedEvent, StateChange,
};
pub use scope::{
    Cidr, Cidrs, Host, HostPattern, Hosts, Ints, Name, Names, Paths, PortRange, Ports, Resource,
    Rights, Root, RootName, RootedPath, Rule, Scope, ScopeDimension, ScopeError, ScopeType,
    dimension,
};
pub use sign::{PublicKey, Signature, SignatureError, preimage, self_test};
pub use snapshot::Snapshot;
pub use time::UnixMillis;
pub use token::{
    Grants, Opening, Proof, TOKEN_CONTEXT, Token, TokenBody, TokenFlags, ToolGrant, attenuates,
};
pub use vault::{ArgsPiece, CallSalts, Commitment, VaultEntry, VaultText, VaultWrite};
