//! Signed control events: what changes the kernel's state other than by a call.
//!
//! Each is signed by the key of its role over the home's id, the key, a counter that grows per
//! key, the kind and the body; all of them stay in the record, so a verifier needs nothing else.

use alloc::{boxed::Box, vec::Vec};

use crate::{
    cbor::{DecodeError, Encoder},
    field::{Field, code, decode, encode, shape},
    id::{HomeId, PolicyHash, Seq, TokenId, ToolsHash},
    record::{Kind, Recovered},
    sign::{PublicKey, Signature, SignatureError},
    time::UnixMillis,
};

/// What a control event's signature covers, before the message.
pub const CONTROL_CONTEXT: &[u8] = b"syscap/control/v1\0";

code! {
    /// What a key may sign.
    pub enum Role {
        /// Tokens.
        Issuer = 1 "issuer",
        /// Policies.
        Policy = 2 "policy",
        /// Revocations and freezes.
        Revoker = 3 "revoker",
        /// Approvals.
        Approver = 4 "approver",
        /// Keys, tools, configuration, resolutions of recoveries.
        Operator = 5 "operator",
    }
}

impl Role {
    /// The role that must sign a control event of `kind`; `None` for kinds that are not signed.
    #[must_use]
    pub const fn of(kind: Kind) -> Option<Self> {
        match kind {
            Kind::Policy => Some(Self::Policy),
            Kind::Revoke | Kind::Freeze => Some(Self::Revoker),
            Kind::Key | Kind::Tools | Kind::Config | Kind::Recovery => Some(Self::Operator),
            _ => None,
        }
    }
}

shape! {
    /// A signed control event as it stands in its record.
    pub struct Control {
        /// Who signed.
        1 => pub key: PublicKey,
        /// Above the key's last one.
        2 => pub counter: u64,
        /// The canonical body, of the kind's form.
        3 => pub body: Vec<u8>,
        /// Over [`CONTROL_CONTEXT`] and CBOR [home, key, counter, kind, body].
        4 => pub signature: Signature,
    }
}

impl Control {
    /// The message that is signed.
    #[must_use]
    pub fn message(
        home: &HomeId,
        key: &PublicKey,
        counter: u64,
        kind: Kind,
        body: &[u8],
    ) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(body.len().saturating_add(96));
        encoder.array(5);
        encoder.bytes(home.as_bytes());
        encoder.bytes(key.as_bytes());
        encoder.uint(counter);
        encoder.uint(kind.code());
        encoder.bytes(body);
        encoder.into_bytes()
    }

    /// Verifies the signature for a home and a kind. Whether the key has the role is the
    /// caller's question.
    ///
    /// # Errors
    /// [`SignatureError::Mismatch`].
    pub fn verify(&self, home: &HomeId, kind: Kind) -> Result<(), SignatureError> {
        let message = Self::message(home, &self.key, self.counter, kind, &self.body);
        self.key.verify(CONTROL_CONTEXT, &message, &self.signature)
    }
}

shape! {
    /// Body of a `key` event: a role gets another key.
    pub struct KeyChange {
        /// The role.
        1 => pub role: Role,
        /// Its new key.
        2 => pub key: PublicKey,
    }
}

shape! {
    /// Body of a `revoke` event: a token and all that was derived from it end, for ever.
    pub struct Revocation {
        /// The token.
        1 => pub token: TokenId,
    }
}

code! {
    /// What a freeze stops.
    pub enum FreezeTarget {
        /// One agent.
        Agent = 1 "agent",
        /// One tool.
        Tool = 2 "tool",
        /// Every call.
        Kernel = 3 "kernel",
    }
}

code! {
    /// Whether a freeze begins or ends.
    pub enum FreezeChange {
        /// It begins.
        Freeze = 1 "freeze",
        /// It ends.
        Thaw = 2 "thaw",
    }
}

shape! {
    /// Body of a `freeze` event.
    pub struct Freeze {
        /// What it stops.
        1 => pub target: FreezeTarget,
        /// The agent's or the tool's id; empty for the kernel.
        2 => pub name: Box<str>,
        /// Whether it begins or ends.
        3 => pub change: FreezeChange,
    }
}

shape! {
    /// Body of a `policy` event: which policy is in force from here on, and which one is asked
    /// beside it. One record swaps both.
    pub struct PolicyChange {
        /// The hash of the policy in force; the object is stored with the record.
        1 => pub policy: PolicyHash,
        /// The hash of the policy that is asked for the record only; null for none.
        2 => pub shadow: Option<PolicyHash>,
    }
}

shape! {
    /// Body of a `tools` event: the tools are others.
    pub struct ToolsChange {
        /// Their hash; the object and the manifests are stored with the record.
        1 => pub tools: ToolsHash,
    }
}

shape! {
    /// Body of a `config` event.
    pub struct ConfigChange {
        /// The operator says that this is about the time: tokens that a gap at boot suspended
        /// are valid again.
        1 => pub confirm_time: Option<UnixMillis>,
    }
}

shape! {
    /// Body of a signed `recovery` event: what an operator found out about an open intent.
    pub struct Resolution {
        /// The intent.
        1 => pub intent: Seq,
        /// What became of it.
        2 => pub verdict: Recovered,
    }
}

/// A body of one of the forms above, in its canonical bytes.
pub trait ControlBody: Sized {
    /// The kind of event that it is the body of.
    const KIND: Kind;
    /// The canonical bytes.
    fn to_bytes(&self) -> Vec<u8>;
    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError>;
}

/// Ties bodies to their kinds.
macro_rules! bodies {
    ($($kind:ident $name:ident)*) => {$(
        impl ControlBody for $name {
            const KIND: Kind = Kind::$kind;

            fn to_bytes(&self) -> Vec<u8> {
                encode(self)
            }

            fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
                decode::<Self>(bytes)
            }
        }
    )*};
}
bodies! {
    Key KeyChange Revoke Revocation Freeze Freeze Policy PolicyChange Tools ToolsChange
    Config ConfigChange Recovery Resolution
}

/// The keys of the five roles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Roles([PublicKey; 5]);

impl Roles {
    /// The keys of issuer, policy, revoker, approver and operator.
    #[must_use]
    pub const fn new(keys: [PublicKey; 5]) -> Self {
        Self(keys)
    }

    /// The key of a role.
    #[must_use]
    pub fn key(&self, role: Role) -> PublicKey {
        let [issuer, policy, revoker, approver, operator] = self.0;
        match role {
            Role::Issuer => issuer,
            Role::Policy => policy,
            Role::Revoker => revoker,
            Role::Approver => approver,
            Role::Operator => operator,
        }
    }

    /// Gives a role another key.
    pub fn set(&mut self, role: Role, key: PublicKey) {
        for (slot, r) in self.0.iter_mut().zip(Role::ALL) {
            if *r == role {
                *slot = key;
            }
        }
    }
}

impl Field for Roles {
    const SHAPE: &'static str = "array of 5 bstr of 32 key";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.0.len());
        self.0.iter().for_each(|key| key.put(encoder));
    }

    fn take(decoder: &mut crate::cbor::Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(crate::cbor::Fault::Value);
        if decoder.array()? != 5 {
            return Err(fault);
        }
        let mut keys = || PublicKey::take(decoder);
        Ok(Self([keys()?, keys()?, keys()?, keys()?, keys()?]))
    }
}
