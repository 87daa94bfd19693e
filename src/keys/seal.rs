//! Seeds sealed by a passphrase: Argon2id makes a key of it, and XChaCha20-Poly1305 seals.

use std::fmt;

#[cfg(feature = "seal")]
use argon2::{Argon2, Block, Params};
#[cfg(feature = "seal")]
use chacha20poly1305::aead::{Aead as _, Payload};
#[cfg(feature = "seal")]
use chacha20poly1305::{KeyInit as _, XChaCha20Poly1305};
use syscap_format::{Canonical, MapBuilder};
use syscap_kernel::Entropy;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::keys::fields::Fields;
use crate::keys::kinds::{KeyFileError, SignerError};

/// The cost of one passphrase attempt: the second of the two choices of RFC 9106, section 4.
#[cfg(feature = "seal")]
const COST: Cost = Cost { kib: 64 << 10, passes: 3, lanes: 4 };
/// The most that a file may ask for: four times as much memory, five times as many passes. A file
/// that asks for more is refused before anything is set aside.
const KIB_MAX: u32 = 256 << 10;
const PASSES_MAX: u32 = 16;
const LANES_MAX: u32 = 16;
/// Longest passphrase, in bytes.
const PASSPHRASE_BYTES_MAX: usize = 1_024;

/// A typed passphrase. It is wiped when it is dropped.
#[derive(Clone)]
pub struct Passphrase(Zeroizing<Vec<u8>>);

impl Passphrase {
    /// `None` where there is nothing, or more than 1,024 bytes: then it seals nothing.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let bytes = Zeroizing::new(bytes);
        (1..=PASSPHRASE_BYTES_MAX).contains(&bytes.len()).then_some(Self(bytes))
    }
}

impl PartialEq for Passphrase {
    /// Compares the two entries of a new passphrase. It is no check of a secret: its time may tell.
    fn eq(&self, other: &Self) -> bool {
        *self.0 == *other.0
    }
}

impl Eq for Passphrase {}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

/// Decides if a new key is sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Seal {
    /// It is not: whoever reads its file can sign.
    #[default]
    Open,
    /// By this passphrase.
    By(Passphrase),
}

/// The parameters of Argon2id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cost {
    kib: u32,
    passes: u32,
    lanes: u32,
}

/// A sealed seed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sealed {
    cost: Cost,
    salt: [u8; 16],
    nonce: [u8; 24],
    bytes: Box<[u8]>,
}

impl Sealed {
    pub(super) fn to_canonical(&self) -> Canonical {
        MapBuilder::new()
            .text("kdf", "argon2id")
            .uint("kib", self.cost.kib.into())
            .uint("passes", self.cost.passes.into())
            .uint("lanes", self.cost.lanes.into())
            .bytes("salt", &self.salt)
            .text("cipher", "xchacha20-poly1305")
            .bytes("nonce", &self.nonce)
            .bytes("box", &self.bytes)
            .finish()
    }

    pub(super) fn read(mut fields: Fields<'_>) -> Result<Self, KeyFileError> {
        let known =
            fields.text("kdf")? == "argon2id" && fields.text("cipher")? == "xchacha20-poly1305";
        let mut number = |key| u32::try_from(fields.uint(key)?).map_err(|_| KeyFileError::Form);
        let cost = Cost { kib: number("kib")?, passes: number("passes")?, lanes: number("lanes")? };
        let (salt, nonce) = (fields.array("salt")?, fields.array("nonce")?);
        let sealed = Self { cost, salt, nonce, bytes: fields.bytes("box")?.into() };
        fields.end()?;
        let Cost { kib, passes, lanes } = sealed.cost;
        if !known {
            return Err(KeyFileError::Unknown);
        }
        if kib > KIB_MAX || passes > PASSES_MAX || lanes > LANES_MAX {
            return Err(KeyFileError::Costly);
        }
        // Also what makes no sense of them.
        #[cfg(feature = "seal")]
        sealed.cost.params().map_err(|_| KeyFileError::Form)?;
        Ok(sealed)
    }
}

#[cfg(feature = "seal")]
impl Sealed {
    /// Seals a seed. The seal is bound to `belongs`.
    pub(super) fn seal(
        seed: &[u8; 32],
        passphrase: &Passphrase,
        belongs: &[u8],
        entropy: &dyn Entropy,
    ) -> Result<Self, Error> {
        let cost = COST;
        let (mut salt, mut nonce) = ([0; 16], [0; 24]);
        entropy.fill(&mut salt)?;
        entropy.fill(&mut nonce)?;
        let cipher = cost.cipher(passphrase, &salt)?;
        let payload = Payload { msg: seed, aad: belongs };
        let sealed = cipher.encrypt(&nonce.into(), payload).map_err(|_| SignerError::BadKey)?;
        Ok(Self { cost, salt, nonce, bytes: sealed.into() })
    }

    /// The seed; `None` where the passphrase is another, or something was changed.
    pub(super) fn open(
        &self,
        passphrase: &Passphrase,
        belongs: &[u8],
    ) -> Result<Option<Zeroizing<[u8; 32]>>, SignerError> {
        let cipher = self.cost.cipher(passphrase, &self.salt)?;
        let payload = Payload { msg: &self.bytes, aad: belongs };
        let Ok(opened) = cipher.decrypt(&self.nonce.into(), payload) else { return Ok(None) };
        let opened = Zeroizing::new(opened);
        let seed = <[u8; 32]>::try_from(&opened[..]).map_err(|_| SignerError::BadKey)?;
        Ok(Some(Zeroizing::new(seed)))
    }
}

/// Without the feature `seal` a sealed key is known as such, and none is made or opened.
#[cfg(not(feature = "seal"))]
impl Sealed {
    pub(super) fn seal(
        _: &[u8; 32],
        _: &Passphrase,
        _: &[u8],
        _: &dyn Entropy,
    ) -> Result<Self, Error> {
        Err(SignerError::NoSeal.into())
    }

    pub(super) fn open(
        &self,
        _: &Passphrase,
        _: &[u8],
    ) -> Result<Option<Zeroizing<[u8; 32]>>, SignerError> {
        Err(SignerError::NoSeal)
    }
}

#[cfg(feature = "seal")]
impl Cost {
    fn params(self) -> Result<Params, SignerError> {
        let Self { kib, passes, lanes } = self;
        Params::new(kib, passes, lanes, Some(32)).map_err(|_| SignerError::BadKey)
    }

    fn cipher(
        self,
        passphrase: &Passphrase,
        salt: &[u8],
    ) -> Result<XChaCha20Poly1305, SignerError> {
        let params = self.params()?;
        let mut blocks: Zeroizing<Vec<Block>> = Zeroizing::default();
        // A machine that has not so much memory says so, and does not end the process.
        blocks.try_reserve_exact(params.block_count()).map_err(|_| SignerError::NoMemory)?;
        blocks.resize(params.block_count(), Block::default());
        let mut key = Zeroizing::new([0; 32]);
        Argon2::from(params)
            .hash_password_into_with_memory(&passphrase.0, salt, &mut key[..], &mut blocks[..])
            .map_err(|_| SignerError::BadKey)?;
        Ok(XChaCha20Poly1305::new((&*key).into()))
    }
}
