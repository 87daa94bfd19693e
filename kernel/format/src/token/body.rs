//! The token's body and its wire.

use alloc::vec::Vec;

use super::Grants;
use crate::budget::Budget;
use crate::cbor::{
    Canonical, DecodeError, DecodeFault, Decoder, Encoder, Item, ItemKind, MapBuilder, Profile,
};
use crate::control::Algorithm;
use crate::field::{Field, decode, encode, flags, shape};
use crate::hash::Domain;
use crate::id::{AgentId, HomeId, PolicyHash, TokenId};
use crate::label::{Confidentiality, Integrity, Label};
use crate::limits::{TOKEN_BYTES_MAX, TOKEN_DEPTH_MAX, TOKEN_LIFE_MS_MAX};
use crate::reason::{Reason, Refused};
use crate::record::Head;
use crate::sign::{PublicKey, Signature};
use crate::time::UnixMillis;

/// The domain separator of a token's signature, before the body.
pub const TOKEN_CONTEXT: &[u8] = b"syscap/token/v2\0";

/// The entry of [`TokenBody::ext`] that is a label.
const LABEL: &str = "session_label";

/// Version of wire and body.
const VERSION: u64 = 2;

flags! {
    /// Flags of a token: bits, each of which takes away.
    pub open struct TokenFlags {
        /// Only tools of class `pure` and `read`.
        READ_ONLY = 1,
        /// No delegation.
        TERMINAL = 2,
    }
}

shape! {
    /// The body of a token. All keys are critical: one that is not known, or missing, refuses it.
    pub struct TokenBody {
        /// Version of this form: 2.
        0 => pub version: u64,
        /// Random: makes the same authority, issued again, another token.
        1 => pub nonce: [u8; 16],
        /// The issuer that signed it.
        2 => pub issuer: PublicKey,
        /// The key that may delegate it and prove possession; null: in process only, not delegable.
        3 => pub holder: Option<PublicKey>,
        /// The agent that may use it.
        4 => pub agent: AgentId,
        /// The token that it was derived from; null for a root.
        5 => pub parent: Option<TokenId>,
        /// 0 for a root, one more than the parent's otherwise.
        6 => pub depth: u64,
        /// The depth that its descendants may reach.
        7 => pub depth_max: u64,
        /// From when it is valid.
        8 => pub not_before: UnixMillis,
        /// When it ends: at this time it has expired.
        9 => pub expires: UnixMillis,
        /// The issuer's epoch.
        10 => pub epoch: u64,
        /// The tools and their scopes.
        11 => pub grants: Grants,
        /// Its limits.
        12 => pub budget: Budget,
        /// Further conditions: [`TokenBody::renew_by`], [`TokenBody::fresh_within`]. A token with
        /// any other is refused.
        13 => pub caveats: Vec<Canonical>,
        /// The only policy under which it is valid; null for any.
        14 => pub policy: Option<PolicyHash>,
        /// The restrictions besides.
        15 => pub flags: TokenFlags,
        /// A map that is kept and hashed, and never authority: [`TokenBody::label`].
        16 => pub ext: Canonical,
        /// The home that it is for.
        17 => pub audience: HomeId,
        /// For a root token, the head of the log as its issuer saw it: no record up to there can be
        /// cut out. Null for a derived token.
        18 => pub head: Option<Head>,
        /// The token, also a root, that it takes the place of: it answers the idempotency keys of
        /// that one besides its own. Null for none, and in a derived token.
        19 => pub renews: Option<TokenId>,
    }
}

impl TokenBody {
    /// True if that key is its issuer or its holder.
    #[must_use]
    pub fn concerns(&self, key: &PublicKey) -> bool {
        self.issuer == *key || self.holder == Some(*key)
    }

    /// The value of [`TokenBody::ext`] for a token whose sessions begin with a label: the agent's
    /// creator had read content of that label.
    pub fn ext_with(label: Label) -> Canonical {
        let mut number = Encoder::new();
        label.put(&mut number);
        match label {
            Label::PUBLIC => MapBuilder::new().finish(),
            _ => MapBuilder::new().item(LABEL, Canonical::from_encoder(number).item()).finish(),
        }
    }

    /// The label that a session by it begins with, joined with those of the tokens above it. A
    /// malformed label there counts as untrusted content that few may see.
    pub fn label(&self) -> Label {
        match self.ext.item().get(LABEL) {
            None => Label::PUBLIC,
            Some(found) => decode(found.as_bytes())
                .unwrap_or(Label::new(Integrity::Untrusted, Confidentiality::Sensitive)),
        }
    }

    /// The canonical bytes: what is hashed and signed.
    pub fn to_bytes(&self) -> Vec<u8> {
        encode(self)
    }

    /// Reads the canonical bytes. That somebody signed them is not asked.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        decode(bytes)
    }

    /// The id of a body.
    pub fn id_of(body: &[u8]) -> TokenId {
        TokenId::from_bytes(Domain::TOKEN_ID.hash(&[body]))
    }

    /// Rules of the form that hold for every token by itself.
    fn check(&self) -> Result<(), Refused> {
        let bad = |field| Refused::new(Reason::BadToken).field(field);
        if self.version != VERSION {
            return Err(bad("version").allowed("2"));
        }
        if self.depth > self.depth_max || self.depth_max > TOKEN_DEPTH_MAX {
            return Err(bad("depth"));
        }
        if self.parent.is_some() != (self.depth > 0) {
            return Err(bad("parent"));
        }
        if self.head.is_some() != self.parent.is_none() {
            return Err(bad("head"));
        }
        if self.renews.is_some() && self.parent.is_some() {
            return Err(bad("renews"));
        }
        if self.ext.item().kind() != ItemKind::Map {
            return Err(bad("ext"));
        }
        if !self.knows_its_caveats() {
            return Err(Refused::new(Reason::UnknownAuthority).field("caveats"));
        }
        // Who hands something on can't renew it: it ends with its parent, or by its own end.
        let within = |by| self.parent.is_none() && self.not_before < by && by < self.expires;
        if !self.renew_by().is_none_or(within) {
            return Err(
                bad("renew_by").allowed("of a root, a time between its beginning and its end")
            );
        }
        let is_fine = |ms| self.parent.is_none() && 0 < ms && ms <= TOKEN_LIFE_MS_MAX;
        if !self.fresh_within().is_none_or(is_fine) {
            return Err(bad("fresh_within").allowed("of a root, more than nothing"));
        }
        if !TokenFlags::KNOWN.has(self.flags) {
            return Err(Refused::new(Reason::UnknownAuthority).field("flags"));
        }
        let life = self.expires.since(self.not_before);
        if life == 0 || life > TOKEN_LIFE_MS_MAX {
            return Err(Refused::new(Reason::LifeTooLong).field("expires"));
        }
        Ok(())
    }
}

/// A token whose form and signature were checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    id: TokenId,
    body: TokenBody,
}

impl Token {
    /// Reads a wire and verifies the signature by the issuer that it names. The kernel checks that
    /// the issuer may issue.
    ///
    /// # Errors
    /// [`Reason::BadToken`], [`Reason::UnknownAuthority`], [`Reason::LifeTooLong`],
    /// [`Reason::TooLarge`] or [`Reason::BadSignature`].
    pub fn read(wire: &[u8]) -> Result<Self, Refused> {
        if wire.len() > TOKEN_BYTES_MAX {
            return Err(Refused::new(Reason::TooLarge).field("token"));
        }
        let (body_bytes, signature) =
            split(wire).map_err(|_| Refused::new(Reason::BadToken).field("wire"))?;
        // Before anything of it is looked at: what follows may take its form for granted.
        Item::check(body_bytes, Profile::CONTROL)
            .map_err(|_| Refused::new(Reason::BadToken).field("body"))?;
        let body: TokenBody =
            decode(body_bytes).map_err(|_| Refused::new(Reason::BadToken).field("body"))?;
        body.check()?;
        body.issuer
            .verify(TOKEN_CONTEXT, body_bytes, &signature)
            .map_err(|_| Refused::new(Reason::BadSignature).field("token"))?;
        Ok(Self { id: TokenBody::id_of(body_bytes), body })
    }

    /// The body in a wire, not yet decoded, and not verified.
    pub fn body_of(wire: &[u8]) -> Option<&[u8]> {
        split(wire).ok().map(|(body, _)| body)
    }

    /// Puts a body and its signature together.
    pub fn wire(body: &[u8], signature: &Signature) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(body.len().saturating_add(80));
        encoder.array(4);
        encoder.uint(VERSION);
        Algorithm::Ed25519.put(&mut encoder);
        encoder.bytes(body);
        encoder.bytes(signature.as_bytes());
        encoder.into_bytes()
    }

    /// The id.
    pub const fn id(&self) -> TokenId {
        self.id
    }

    /// The token's body.
    pub fn into_body(self) -> TokenBody {
        self.body
    }

    /// The body.
    pub const fn body(&self) -> &TokenBody {
        &self.body
    }
}

/// Body and signature of a wire `[version, algorithm, body, signature]`.
fn split(wire: &[u8]) -> Result<(&[u8], Signature), DecodeError> {
    let mut decoder = Decoder::new(wire, Profile::CONTROL);
    let head = (decoder.array()?, decoder.uint()?, decoder.uint()?);
    if head != (4, VERSION, Algorithm::Ed25519.code()) {
        return Err(decoder.fault(DecodeFault::Value));
    }
    let body = decoder.bytes()?;
    let signature = Signature::from_bytes(decoder.array_of()?);
    decoder.finish()?;
    Ok((body, signature))
}
