//! Approvals: each name of the suite has a key.

use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::Value;
use syscap::format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, CONTROL_CONTEXT, Control, ControlBody as _,
    KeyChange, POSSESSION_CONTEXT, Possession, PublicKey, Role, RoleSet, Signature, Signed,
    possession, preimage,
};
use syscap::prelude::*;

use crate::{part, refused};

/// The key of a name, whoever that is.
fn key(name: &str) -> SigningKey {
    let mut seed = [0; 32];
    seed.iter_mut().zip(name.bytes()).for_each(|(place, byte)| *place = byte);
    SigningKey::from_bytes(&seed)
}

fn public(key: &SigningKey) -> PublicKey {
    PublicKey::new(key.verifying_key().to_bytes()).expect("a key")
}

fn sign(key: &SigningKey, context: &[u8], message: &[u8]) -> Signature {
    Signature::from_bytes(key.sign(&preimage(context, message)).to_bytes())
}

/// The home's approvers become those of the suite.
pub(crate) fn install(runtime: &Runtime, said: &Value) -> Result<(), Error> {
    let names = said["names"].as_array().cloned().unwrap_or_default();
    let mut keys: Vec<_> = names.iter().filter_map(Value::as_str).map(key).collect();
    keys.sort_by_key(|key| key.verifying_key().to_bytes());
    let (home, role) = (runtime.look(|kernel| kernel.home())?, Role::Approver);
    let proof = |one: &SigningKey| {
        let message = possession(&home, role, &public(one));
        Possession { key: public(one), signature: sign(one, POSSESSION_CONTEXT, &message) }
    };
    let threshold = said["needed"].as_u64().unwrap_or(1);
    let set = RoleSet { threshold, ..RoleSet::any_of(role, keys.iter().map(public)) };
    let proofs = keys.iter().map(proof).collect();
    runtime.control(&KeyChange { set, proofs, cut_off: None }).map(drop)
}

/// One name's answer, signed by its key: whether that may answer is the kernel's to say.
pub(crate) fn answer(runtime: &Runtime, ask: &Value) -> Result<(), Value> {
    let leaf = runtime.look(|kernel| {
        let asked = kernel.asks().find(|asked| asked.ask.get().to_string() == part(ask, "ask"));
        asked.map(|asked| asked.leaf)
    });
    let leaf = leaf.map_err(refused)?.ok_or_else(|| refused("no such ask"))?;
    let answer = match part(ask, "answer") {
        "yes" => ApprovalAnswer::Once,
        _ => ApprovalAnswer::Deny,
    };
    let means = ApprovalChannel::Signer;
    let (scopes, uses, expires, reason) = (None, None, None, None);
    let body = ApprovalBody { ask: leaf, answer, means, scopes, uses, expires, reason };
    let (key, bytes) = (key(part(ask, "by")), body.to_bytes());
    let (public, head) = (public(&key), runtime.durable().map_err(refused)?);
    let signed = runtime.look(|kernel| {
        let (home, counter) = (kernel.home(), kernel.counter(&public).saturating_add(1));
        let message = Control::message(&home, &head, &public, counter, ApprovalBody::KIND, &bytes);
        Signed { key: public, counter, signature: sign(&key, CONTROL_CONTEXT, &message) }
    });
    let control = Control::by_one(head, bytes, signed.map_err(refused)?);
    runtime.submit(ApprovalBody::KIND, control).map(drop).map_err(refused)
}
