//! The keys of the simulated home.

use ed25519_dalek::SigningKey;
use syscap_format::{PublicKey, Role, Roles};

/// The key of a role.
pub fn key(role: Role) -> SigningKey {
    SigningKey::from_bytes(&[u8::try_from(role.code()).unwrap(); 32])
}

pub fn public(role: Role) -> PublicKey {
    public_of(&key(role))
}

/// The key by which every token can be handed on.
pub fn holder() -> SigningKey {
    SigningKey::from_bytes(&[77; 32])
}

pub fn public_of(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).unwrap()
}

/// The five roles, with a key each.
pub fn roles() -> Roles {
    Roles::new([
        public(Role::Issuer),
        public(Role::Policy),
        public(Role::Revoker),
        public(Role::Approver),
        public(Role::Operator),
    ])
}
