//! Roles and their keys.

use alloc::vec::Vec;

use crate::cbor::{DecodeError, DecodeFault, Decoder, Encoder};
use crate::field::{Field, code, shape};
use crate::hash::Domain;
use crate::id::{HomeId, RecoveryHash};
use crate::limits::ROLE_KEYS_MAX;
use crate::record::kind::RecordKind;
use crate::sign::PublicKey;

/// The domain separator of a proof of possession, before the message.
pub const POSSESSION_CONTEXT: &[u8] = b"syscap/possession/v1\0";

code! {
    /// A role: the records that a key may sign.
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
        /// Reserved: bundles of policies and revocations that many homes adopt.
        Publisher = 6 "publisher",
    }
}

impl Role {
    /// The roles that every home has keys for.
    pub const IN_USE: [Self; 5] =
        [Self::Issuer, Self::Policy, Self::Revoker, Self::Approver, Self::Operator];

    /// The role that signs control events of `kind`; `None` for kinds that are not signed. The
    /// signer of one event of a home is
    /// [`HomeLimits::role_of`](crate::record::HomeLimits::role_of).
    pub const fn of(kind: RecordKind) -> Option<Self> {
        match kind {
            RecordKind::Policy => Some(Self::Policy),
            RecordKind::Revoke | RecordKind::Freeze | RecordKind::Cancel => Some(Self::Revoker),
            RecordKind::Approval => Some(Self::Approver),
            RecordKind::Key
            | RecordKind::Tools
            | RecordKind::Config
            | RecordKind::Recovery
            | RecordKind::Credit
            | RecordKind::Redact
            | RecordKind::Prune => Some(Self::Operator),
            _ => None,
        }
    }
}

code! {
    /// How a key signs.
    pub enum Algorithm {
        /// Ed25519 (RFC 8032), verified strictly.
        Ed25519 = 1 "ed25519",
    }
}

shape! {
    /// A key of a role.
    pub struct RoleKey {
        /// How it signs.
        1 => pub algorithm: Algorithm,
        /// The key.
        2 => pub key: PublicKey,
    }
}

shape! {
    /// The keys of one role, and how many of them must sign.
    pub struct RoleSet {
        /// The role.
        1 => pub role: Role,
        /// How many of its keys must sign an event; 1 for the issuer, since a token has one
        /// signature.
        2 => pub threshold: u64,
        /// Its keys: 1 to [`ROLE_KEYS_MAX`], sorted by their bytes, none twice.
        3 => pub keys: Vec<RoleKey>,
    }
}

impl RoleSet {
    /// A role with these keys, any one of which may sign.
    pub fn any_of(role: Role, keys: impl IntoIterator<Item = PublicKey>) -> Self {
        let mut keys: Vec<PublicKey> = keys.into_iter().collect();
        keys.sort_unstable();
        keys.dedup();
        let keys = keys.into_iter().map(|key| RoleKey { algorithm: Algorithm::Ed25519, key });
        Self { role, threshold: 1, keys: keys.collect() }
    }

    /// The keys.
    pub fn keys(&self) -> impl Iterator<Item = PublicKey> {
        self.keys.iter().map(|key| key.key)
    }

    /// True if it contains the key.
    #[must_use]
    pub fn holds(&self, key: &PublicKey) -> bool {
        self.keys.iter().any(|found| found.key == *key)
    }

    /// True if the set keeps to the rules of its fields. A reserved role's never does.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        let keys = &self.keys;
        let count = crate::field::count(keys.len());
        let sorted = keys.windows(2).all(|pair| matches!(pair, [a, b] if a.key < b.key));
        let most = if self.role == Role::Issuer { count.min(1) } else { count };
        Role::IN_USE.contains(&self.role)
            && sorted
            && keys.len() <= ROLE_KEYS_MAX
            && (1..=most).contains(&self.threshold)
    }
}

/// The keys of the five roles.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles([RoleSet; 5]);

impl Roles {
    /// One key for each of issuer, policy, revoker, approver and operator.
    #[must_use]
    pub fn new(keys: [PublicKey; 5]) -> Self {
        let [issuer, policy, revoker, approver, operator] = keys;
        Self([
            RoleSet::any_of(Role::Issuer, [issuer]),
            RoleSet::any_of(Role::Policy, [policy]),
            RoleSet::any_of(Role::Revoker, [revoker]),
            RoleSet::any_of(Role::Approver, [approver]),
            RoleSet::any_of(Role::Operator, [operator]),
        ])
    }

    /// Sets for the five roles, in the order of their numbers; `None` where one is missing or
    /// not sound.
    #[must_use]
    pub fn from_sets(sets: [RoleSet; 5]) -> Option<Self> {
        let in_order = sets.iter().zip(Role::IN_USE).all(|(set, role)| set.role == role);
        (in_order && sets.iter().all(RoleSet::is_sound)).then_some(Self(sets))
    }

    /// The keys of a role; `None` for a reserved one.
    pub fn set(&self, role: Role) -> Option<&RoleSet> {
        self.0.iter().find(|set| set.role == role)
    }

    /// All sets, in the order of the roles' numbers.
    pub fn sets(&self) -> impl Iterator<Item = &RoleSet> {
        self.0.iter()
    }

    /// True if a key belongs to one of the roles.
    #[must_use]
    pub fn holds(&self, role: Role, key: &PublicKey) -> bool {
        self.set(role).is_some_and(|set| set.holds(key))
    }

    /// Puts a set in the place of its role's. A reserved role's changes nothing.
    pub fn replace(&mut self, set: RoleSet) {
        if let Some(old) = self.0.iter_mut().find(|old| old.role == set.role) {
            *old = set;
        }
    }
}

impl Field for Roles {
    const SHAPE: &'static str = "array of 5 RoleSet";

    fn put(&self, encoder: &mut Encoder) {
        encoder.array(self.0.len());
        self.0.iter().for_each(|set| set.put(encoder));
    }

    fn take(decoder: &mut Decoder<'_>) -> Result<Self, DecodeError> {
        let fault = decoder.fault(DecodeFault::Value);
        if decoder.array()? != 5 {
            return Err(fault);
        }
        let mut set = || RoleSet::take(decoder);
        Self::from_sets([set()?, set()?, set()?, set()?, set()?]).ok_or(fault)
    }
}

/// The message by which a key proves that somebody holds it: for one home and one role.
#[must_use]
pub fn possession(home: &HomeId, role: Role, key: &PublicKey) -> Vec<u8> {
    let mut encoder = Encoder::with_capacity(96);
    encoder.array(4);
    encoder.bytes(home.as_bytes());
    role.put(&mut encoder);
    Algorithm::Ed25519.put(&mut encoder);
    encoder.bytes(key.as_bytes());
    encoder.into_bytes()
}

/// The genesis record's commitment to a recovery key, whose public key shows only when it is used.
#[must_use]
pub fn recovery_hash(key: &PublicKey) -> RecoveryHash {
    let mut encoder = Encoder::with_capacity(40);
    encoder.array(2);
    Algorithm::Ed25519.put(&mut encoder);
    encoder.bytes(key.as_bytes());
    RecoveryHash::from_bytes(Domain::RECOVERY.hash(&[&encoder.into_bytes()]))
}
