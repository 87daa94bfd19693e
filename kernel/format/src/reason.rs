//! Why a call was refused or failed: stable numbered codes, each with what to change.
//!
//! One table makes the enum, the names and the hints; `docs/spec/calls.md` is held against it.
//! Numbers are never used again for another meaning: 1xx decoding, 2xx authority, 3xx arguments,
//! 4xx policy, 5xx budget, 6xx the kernel's own state, 7xx a run that failed, 8xx control events.

use alloc::boxed::Box;
use core::fmt;

use crate::cbor::{Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item};
use crate::envelope::TxOutcome;
use crate::field::Field;
use crate::limits::DETAIL_BYTES_MAX;

/// The caller's next step after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Retry {
    /// Change the call as the hint says, then send it again.
    Fix,
    /// Send the same call again later.
    Wait,
    /// Ask a person for the authority that is missing.
    Ask,
    /// No step of the caller helps.
    Never,
}

impl Retry {
    /// The word in the error object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fix => "fix",
            Self::Wait => "wait",
            Self::Ask => "ask",
            Self::Never => "never",
        }
    }

    /// The stricter one of two: who may send again does less by it. Of equals the first.
    #[must_use]
    pub const fn stricter(self, other: Self) -> Self {
        const fn rank(retry: Retry) -> u8 {
            match retry {
                Retry::Fix | Retry::Wait => 0,
                Retry::Ask => 1,
                Retry::Never => 2,
            }
        }
        if rank(other) > rank(self) { other } else { self }
    }
}

/// Declares the reasons: number, name, what to do, hint.
macro_rules! reasons {
    ($($code:literal $variant:ident $name:literal $retry:ident $hint:literal)*) => {
        /// Why a call was refused, or why its run failed.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason {
            $( #[doc = $hint] $variant, )*
        }

        impl Reason {
            /// All of them, in the order of their numbers.
            pub const ALL: &'static [Self] = &[ $( Self::$variant, )* ];

            /// The stable number.
            pub const fn code(self) -> u64 {
                match self { $( Self::$variant => $code, )* }
            }

            /// The reason of that number.
            pub const fn from_code(code: u64) -> Option<Self> {
                match code { $( $code => Some(Self::$variant), )* _ => None }
            }

            /// The name in error objects.
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// The caller's next step, where nothing was done.
            pub const fn retry(self) -> Retry {
                match self { $( Self::$variant => Retry::$retry, )* }
            }

            /// The needed change, in one sentence.
            pub const fn hint(self) -> &'static str {
                match self { $( Self::$variant => $hint, )* }
            }
        }
    };
}

reasons! {
    101 Malformed "malformed" Fix "Send one canonical CBOR map, or one JSON object."
    102 TooLarge "too_large" Fix "Make the call smaller; put large content into a file."
    103 TooDeep "too_deep" Fix "Nest arrays and objects less deeply."
    104 DuplicateKey "duplicate_key" Fix "Give every key once."
    105 NumberRange "number_range" Fix "Use integers from -2^63 to 2^64-1 and finite floats."
    106 UnknownVersion "unknown_version" Fix "Use envelope version 1."
    107 MissingField "missing_field" Fix "Add the field that is named."
    108 BadField "bad_field" Fix "Give the field that is named in its documented form."
    201 NotBound "not_bound" Never "Use the agent and the token that this session is bound to."
    202 Revoked "revoked" Ask "The token was revoked; ask for a new one."
    203 Frozen "frozen" Wait "An operator has stopped this agent, tool or kernel for now."
    204 Expired "expired" Ask "The token has expired; ask for a new one."
    205 NotYetValid "not_yet_valid" Wait "The token is not valid yet."
    206 NotGranted "not_granted" Ask "The token does not grant this tool; use one that is allowed."
    207 UnknownTool "unknown_tool" Fix "There is no such tool; use one that is allowed."
    208 BadProof "bad_proof" Fix "Sign each call by the holder's key; in process leave it out."
    209 ReadOnlyToken "read_only_token" Ask "The token is read only; this would change things."
    210 ClockUnconfirmed "clock_unconfirmed" Ask "An operator must confirm the time first."
    211 ToolChanged "tool_changed" Ask "The definition has changed; an operator must accept it."
    212 NoProvider "no_provider" Wait "The process that runs this tool is not attached."
    213 StaleRevocations "stale_revocations" Wait "The revoker must bring a newer list first."
    221 KeyReused "key_reused" Fix "Use another key: this one stands for another call."
    222 KeyInFlight "key_in_flight" Wait "The call with this idempotency key is not done yet."
    223 OutcomeUnknown "outcome_unknown" Ask "What the first call did is not known; ask a person."
    224 OutcomeErased "outcome_erased" Never "The first call's result was erased."
    225 OutcomeLost "outcome_lost" Never "The first call was done, but its result is lost."
    231 WrongLane "wrong_lane" Never "The agents' lane takes calls only; an operator does this."
    251 UnknownReference "unknown_reference" Fix "Refer to a result given to this session."
    252 ReferenceErased "reference_erased" Never "The result that is referred to was erased."
    253 BadReference "bad_reference" Fix "Write {\"$ref\": {\"record\": N, \"path\": [..]}}."
    254 ReferenceInFlight "reference_in_flight" Wait "That result is not on record yet."
    301 UnknownArgument "unknown_argument" Fix "Leave out the argument, or use one that is allowed."
    302 MissingArgument "missing_argument" Fix "Add the missing arguments that are listed."
    303 BadArgument "bad_argument" Fix "Give the argument that is named as it is allowed."
    304 OutOfScope "out_of_scope" Fix "Change the argument that is named to what the token allows."
    305 BadPath "bad_path" Fix "Give the path as it is allowed, by slashes; relative below a root."
    306 NotCompared "not_compared" Never "The tool's fault: it declares a scope and compares none."
    401 PolicyMismatch "policy_mismatch" Fix "Name the policy in force, or leave the field out."
    402 Denied "denied" Never "The policy forbids this call."
    403 Asked "asked" Ask "The policy asks for a person's approval first."
    404 Deferred "deferred" Wait "The policy defers this call."
    405 Obligation "obligation" Never "The policy asks of the tool what it can't do."
    406 UnknownSnapshot "unknown_snapshot" Fix "Name a snapshot of this agent, or none."
    407 ToolsMismatch "tools_mismatch" Never "An operator must put this program's tools on record."
    408 Constraint "constraint" Fix "Change the argument that is named to what is allowed."
    409 Reduced "reduced" Fix "The policy leaves less than that; ask for no more than is allowed."
    410 PolicyNotInForce "policy_not_in_force" Never "An operator must put this policy on record."
    411 Namespace "namespace" Fix "Agents write goal.*, tools and encoders fact.*, nobody else."
    412 BadFact "bad_fact" Fix "Give keys as namespace.name and values within their limits."
    413 TooManyFacts "too_many_facts" Fix "Remove facts that are no longer needed first."
    414 StaleSnapshot "stale_snapshot" Fix "Propose from the agent's head snapshot."
    415 ApprovalDenied "approval_denied" Never "A person has refused this call."
    501 OverBudget "over_budget" Ask "The call would exceed what is left of the budget."
    502 Exhausted "exhausted" Ask "What the token, or its agent, may use has run out."
    503 ConcurrencyLimit "concurrency_limit" Wait "As many calls run as the token allows at once."
    601 Overloaded "overloaded" Wait "Too many calls are in flight."
    602 NoRoom "no_room" Wait "The disk is nearly full."
    603 Closing "closing" Never "The kernel is shutting down."
    604 NoSession "no_session" Never "The session was closed, or never opened."
    701 NotFound "not_found" Fix "There is no such file or folder."
    702 NotAFile "not_a_file" Fix "This is not a regular file with one name."
    703 NotAFolder "not_a_folder" Fix "This is not a folder."
    704 Link "link" Fix "A symbolic link stands on the way; use the path it stands for."
    705 Exists "exists" Fix "Something of that name exists already."
    706 FileTooLarge "file_too_large" Fix "Ask for a part of the file."
    707 AccessDenied "access_denied" Never "The operating system refused access."
    708 DiskFull "disk_full" Wait "The disk is full."
    709 Busy "busy" Wait "It is in use elsewhere, so this was not done; try again."
    710 Unsupported "unsupported" Never "The operating system lacks what this tool needs."
    711 Failed "failed" Wait "The run failed; what is named says more."
    712 Changed "changed" Ask "What was approved has changed since; the same call asks anew."
    713 NotEmpty "not_empty" Fix "The folder is not empty."
    714 NoMatch "no_match" Fix "The text to be replaced must stand there once, as it is given."
    715 Quota "quota" Fix "The store is full; remove or replace something first."
    716 Unreachable "unreachable" Wait "The server could not be reached."
    717 ForbiddenAddress "forbidden_address" Never "That name leads where no call may go."
    718 BadCertificate "bad_certificate" Never "The server did not prove who it is."
    719 BadResponse "bad_response" Wait "The server's answer can't be used."
    720 NoSecret "no_secret" Ask "An operator must set the secret that this needs."
    721 NotConfined "not_confined" Never "The program can't be confined here as is required."
    722 Mismatch "mismatch" Fix "Give what has the form of what is there already."
    723 NotHandedOn "not_handed_on" Ask "The token has ended, or another holds it; ask for one."
    750 Panicked "panicked" Never "The tool broke off; what it did is not known."
    751 TimedOut "timed_out" Ask "The tool did not return in time; what it did is not known."
    752 ResultTooLarge "result_too_large" Fix "The result exceeds the tool's limit; ask for less."
    753 NotRun "not_run" Ask "It was revoked, frozen, cancelled or given up before the run."
    754 Abandoned "abandoned" Never "The run was given up; what it did is not known."
    755 OverHold "over_hold" Fix "The run needed more than was set aside for it."
    756 Cancelled "cancelled" Never "The caller gave the call up; what it did is not known."
    757 ProviderGone "provider_gone" Ask "The tool's process broke off; what it did is not known."
    758 ToolFailed "tool_failed" Fix "The tool failed by its own word; see `output`."
    801 BadSignature "bad_signature" Fix "Sign with current keys of the role, as many as it wants."
    802 StaleCounter "stale_counter" Fix "Use a counter above the key's last one."
    803 BadControl "bad_control" Fix "The control event's body is not of its kind's form."
    804 BadToken "bad_token" Fix "The token is not of the form that version 2 has."
    805 WrongAudience "wrong_audience" Fix "The token is for another home."
    806 WrongIssuer "wrong_issuer" Fix "The token is not by a current key of the issuer."
    807 LifeTooLong "life_too_long" Fix "The token's life is empty or exceeds 90 days."
    808 UnknownAuthority "unknown_authority" Fix "The token has a flag, caveat or key not known."
    809 NoDelegation "no_delegation" Never "The token can't be handed on, or not further."
    810 AlreadyIssued "already_issued" Never "The token is registered already."
    811 UnknownToken "unknown_token" Fix "No such token is registered."
    812 TooManySessions "too_many_sessions" Wait "Close a session first."
    813 WrongPolicy "wrong_policy" Fix "The policy's hash is another."
    814 BadPolicy "bad_policy" Fix "The policy document is not sound; see what is named."
    815 UnknownHead "unknown_head" Fix "The head that it names is no durable record here."
    816 StaleHead "stale_head" Fix "Others, or this key, have signed since: look, and sign anew."
    817 UnknownAsk "unknown_ask" Fix "No such call waits for an answer any more."
    818 ApprovalExpired "approval_expired" Fix "It has waited too long; it must be asked anew."
    819 NotEligible "not_eligible" Never "This key may not answer that call, or has answered it."
    820 NotOpen "not_open" Never "No such call is open: it has ended, or was cancelled before."
    821 BadScope "bad_scope" Fix "Give scopes that the granted tools compare, of their types."
}

impl Reason {
    /// The caller's next step after that outcome of the effect. A call that may have been done is
    /// never resent automatically.
    pub const fn retry_after(self, tx: TxOutcome) -> Retry {
        match (tx, self.retry()) {
            (TxOutcome::Unknown, Retry::Fix | Retry::Wait) => Retry::Ask,
            (_, retry) => retry,
        }
    }

    /// The same by an error object of it: a tool that failed may have asked for a stricter one.
    pub fn retry_of(self, object: Item<'_>, tx: TxOutcome) -> Retry {
        let said = object.get("retry").and_then(Item::as_text);
        let all = [Retry::Ask, Retry::Never];
        let said = all.into_iter().find(|retry| Some(retry.name()) == said);
        let own = self.retry_after(tx);
        said.map_or(own, |said| own.stricter(said))
    }

    /// True if a constraint of the policy gave it, and nothing else stopped the call.
    #[must_use]
    pub const fn is_a_verdict(self) -> bool {
        matches!(
            self,
            Self::Denied | Self::Asked | Self::Deferred | Self::Constraint | Self::ApprovalDenied
        )
    }

    /// True if a run may end by it: 7xx except those that only the kernel and its host can know, and
    /// some that a run finds out late.
    #[must_use]
    pub const fn is_of_a_run(self) -> bool {
        let kernels =
            matches!(self, Self::Panicked | Self::TimedOut | Self::NotRun | Self::Abandoned);
        let found_late = matches!(self, Self::OutOfScope | Self::BadPath | Self::TooDeep);
        found_late || (700 <= self.code() && self.code() < 800 && !kernels)
    }

    /// True if a tool may give it for its run without more: all of these but
    /// [`ToolFailed`](Self::ToolFailed), which comes with what the tool gave.
    #[must_use]
    pub const fn is_of_a_refused_run(self) -> bool {
        self.is_of_a_run() && !matches!(self, Self::ToolFailed)
    }

    /// True if a tool may give it where it follows a link, or reads what a person is shown. The
    /// policy may have decided before.
    #[must_use]
    pub const fn is_of_a_look(self) -> bool {
        self.is_of_a_refused_run() || matches!(self, Self::Panicked)
    }

    /// True if a tool may give it where it reads a call's arguments, before the policy decides.
    #[must_use]
    pub const fn is_of_a_plan(self) -> bool {
        let of_arguments = 300 <= self.code() && self.code() < 400;
        let of_the_tool = matches!(
            self,
            Self::NotGranted | Self::ToolChanged | Self::NoProvider | Self::NoDelegation
        );
        self.is_of_a_look() || of_arguments || of_the_tool
    }
}

impl Field for Reason {
    const SHAPE: &'static str = "uint Reason";

    fn put(&self, encoder: &mut Encoder) {
        encoder.uint(self.code());
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        Self::from_code(decoder.uint()?).ok_or(fault)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a call ended short of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// It was refused: nothing ran.
    Refused,
    /// It waits for a person: nothing ran.
    Asked,
    /// It can be sent again on a condition: nothing ran.
    Deferred,
    /// It ran, and the run failed; what became of its effect.
    Failed(TxOutcome),
}

impl ErrorKind {
    /// The word in the error object.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::Asked => "asked",
            Self::Deferred => "deferred",
            Self::Failed(_) => "failed",
        }
    }

    /// The outcome of the effect.
    const fn tx(self) -> TxOutcome {
        match self {
            Self::Failed(tx) => tx,
            Self::Refused | Self::Asked | Self::Deferred => TxOutcome::NoOp,
        }
    }
}

/// A reason with what a model needs to repair the call: which field, what it got, what would
/// have been allowed. It holds nothing of the policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    reason: Reason,
    field: Option<Box<str>>,
    got: Option<Box<str>>,
    allowed: Option<Box<str>>,
}

impl Refused {
    /// A reason without details.
    pub const fn new(reason: Reason) -> Self {
        Self { reason, field: None, got: None, allowed: None }
    }

    /// Names the field or argument at fault.
    #[must_use]
    pub fn field<T: fmt::Display + ?Sized>(mut self, field: &T) -> Self {
        self.field = Some(shorten(field));
        self
    }

    /// Says what stood there, cut to [`DETAIL_BYTES_MAX`].
    #[must_use]
    pub fn got<T: fmt::Display + ?Sized>(mut self, got: &T) -> Self {
        self.got = Some(shorten(got));
        self
    }

    /// Says what would have been allowed, cut to [`DETAIL_BYTES_MAX`].
    #[must_use]
    pub fn allowed<T: fmt::Display + ?Sized>(mut self, allowed: &T) -> Self {
        self.allowed = Some(shorten(allowed));
        self
    }

    /// True if it names this field.
    pub fn is_about(&self, field: &str) -> bool {
        self.field.as_deref() == Some(field)
    }

    /// The allowed values.
    pub fn allowed_text(&self) -> Option<&str> {
        self.allowed.as_deref()
    }

    /// The value at the fault.
    pub fn got_text(&self) -> Option<&str> {
        self.got.as_deref()
    }

    /// The reason.
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// This refusal as a tool gives it, if `may_give` says that a tool can at that point
    /// ([`Reason::is_of_a_plan`] and the like). Any other becomes [`Reason::Failed`] without
    /// details: a tool can't speak for the kernel or the policy.
    pub fn by_tool(self, may_give: fn(Reason) -> bool) -> Self {
        if may_give(self.reason) { self } else { Self::new(Reason::Failed) }
    }

    /// The error object of a result: `{kind, code, reason, field, got, allowed, retry, hint}`.
    /// `retry` is the reason's; `ask` where a run failed, and what it did is not known.
    pub fn error_object(&self, kind: ErrorKind) -> Canonical {
        self.written(kind, self.reason.retry_after(kind.tx()), None)
    }

    /// The error object of a run whose tool failed by its own word: as
    /// [`error_object`](Self::error_object) of [`Reason::ToolFailed`], and under `output` what the
    /// tool gave. `retry` where that is stricter.
    pub fn tool_failed(output: Item<'_>, tx: TxOutcome, retry: Option<Retry>) -> Canonical {
        let own = Reason::ToolFailed.retry_after(tx);
        let retry = retry.map_or(own, |retry| own.stricter(retry));
        Self::new(Reason::ToolFailed).written(ErrorKind::Failed(tx), retry, Some(output))
    }

    fn written(&self, kind: ErrorKind, retry: Retry, output: Option<Item<'_>>) -> Canonical {
        let details = [&self.got, &self.field, &self.allowed];
        let given = details.iter().filter(|detail| detail.is_some()).count();
        let mut encoder = Encoder::with_capacity(384);
        encoder.map(given.saturating_add(5).saturating_add(usize::from(output.is_some())));
        // In canonical order: shorter keys first.
        let detail = |encoder: &mut Encoder, key: &str, value: &Option<Box<str>>| {
            if let Some(value) = value {
                encoder.text(key);
                encoder.text(value);
            }
        };
        detail(&mut encoder, "got", &self.got);
        encoder.text("code");
        encoder.uint(self.reason.code());
        encoder.text("hint");
        encoder.text(self.reason.hint());
        encoder.text("kind");
        encoder.text(kind.name());
        detail(&mut encoder, "field", &self.field);
        encoder.text("retry");
        encoder.text(retry.name());
        if let Some(output) = output {
            encoder.text("output");
            encoder.item(output);
        }
        encoder.text("reason");
        encoder.text(self.reason.name());
        detail(&mut encoder, "allowed", &self.allowed);
        Canonical::from_encoder(encoder)
    }
}

impl Refused {
    /// Reads an error object of a call whose effect became `tx`. `None` where it is not as
    /// [`Refused::error_object`], or [`Refused::tool_failed`], writes it; a hint may have other
    /// words.
    pub fn from_error_object(object: Item<'_>, tx: TxOutcome) -> Option<Self> {
        let text = |key| object.get(key)?.as_text();
        let kinds =
            [ErrorKind::Refused, ErrorKind::Asked, ErrorKind::Deferred, ErrorKind::Failed(tx)];
        let kind = kinds.into_iter().find(|kind| text("kind") == Some(kind.name()))?;
        let detail = |key| match (object.get(key), text(key)) {
            (None, _) => Some(None),
            (Some(_), Some(detail)) if is_short(detail) => Some(Some(detail.into())),
            (Some(_), _) => None,
        };
        let read = Self {
            reason: Reason::from_code(object.get("code")?.as_uint()?)?,
            field: detail("field")?,
            got: detail("got")?,
            allowed: detail("allowed")?,
        };
        let written = match (read.reason, kind) {
            (Reason::ToolFailed, ErrorKind::Failed(_)) if read == Self::new(read.reason) => {
                let all = [Retry::Ask, Retry::Never];
                let retry = all.into_iter().find(|retry| text("retry") == Some(retry.name()));
                Self::tool_failed(object.get("output")?, tx, retry)
            }
            (Reason::ToolFailed, _) => return None,
            _ => read.error_object(kind),
        };
        let is_same = |(key, item): (&str, Item<'_>)| match key {
            "hint" => item.as_text().is_some(),
            _ => written.item().get(key) == Some(item),
        };
        let is_whole = object.entries().count() == written.item().entries().count();
        (is_whole && object.entries().all(is_same)).then_some(read)
    }
}

/// A refusal's form in a message: the rest follows from the reason.
impl Field for Refused {
    const SHAPE: &'static str = "array [uint Reason, text, text, text]";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(4);
        self.reason.put(encoder);
        self.field.put(encoder);
        self.got.put(encoder);
        self.allowed.put(encoder);
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        if decoder.array()? != 4 {
            return Err(fault);
        }
        let reason = Reason::take(decoder)?;
        let mut detail = || {
            let detail: Option<Box<str>> = Field::take(decoder)?;
            if detail.as_deref().is_none_or(is_short) { Ok(detail) } else { Err(fault) }
        };
        Ok(Self { reason, field: detail()?, got: detail()?, allowed: detail()? })
    }
}

impl From<Reason> for Refused {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.reason.name(), self.reason.code())?;
        for (name, value) in
            [("field", &self.field), ("got", &self.got), ("allowed", &self.allowed)]
        {
            if let Some(value) = value {
                write!(f, ", {name}: {value}")?;
            }
        }
        write!(f, ". {}", self.reason.hint())
    }
}

impl core::error::Error for Refused {}

/// At most [`DETAIL_BYTES_MAX`] bytes, cut between characters, control characters replaced.
fn shorten<T: fmt::Display + ?Sized>(detail: &T) -> Box<str> {
    let mut short = Short { bytes: [0; DETAIL_BYTES_MAX], len: 0 };
    // An error is how it ends where it is full.
    fmt::write(&mut short, format_args!("{detail}")).unwrap_or_default();
    let written = short.bytes.get(..short.len).unwrap_or_default();
    Box::from(core::str::from_utf8(written).unwrap_or_default())
}

/// True if a detail stands as it would have been written here.
fn is_short(detail: &str) -> bool {
    *shorten(detail) == *detail
}

/// The part of a text that fits.
struct Short {
    bytes: [u8; DETAIL_BYTES_MAX],
    len: usize,
}

impl fmt::Write for Short {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let plain = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
        let end = self.len.saturating_add(text.len());
        if plain && let Some(place) = self.bytes.get_mut(self.len..end) {
            place.copy_from_slice(text.as_bytes());
            self.len = end;
            return Ok(());
        }
        for c in text.chars() {
            let c = if c.is_control() { '\u{fffd}' } else { c };
            let end = self.len.saturating_add(c.len_utf8());
            c.encode_utf8(self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?);
            self.len = end;
        }
        Ok(())
    }
}
