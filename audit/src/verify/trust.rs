//! The trust file: what a verifier must know of a home from elsewhere than its log.

use syscap_kernel::{
    cbor::{DecodeError, Decoder, Encoder, Fault, Profile},
    control::{Role, Roles},
    id::HomeId,
    sign::PublicKey,
};

/// The usual name of the file.
pub const TRUST_FILE: &str = "trust.cbor";
/// Version of the file's form.
const VERSION: u64 = 1;

/// The home's id and the keys that it began with. Later keys follow from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Trust {
    /// The home.
    pub home: HomeId,
    /// The keys of its genesis record.
    pub roles: Roles,
}

impl Trust {
    /// The canonical bytes: {1: version, 2: home, 3: [issuer, policy, revoker, approver,
    /// operator]}.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut encoder = Encoder::with_capacity(256);
        encoder.map(3);
        encoder.uint(1);
        encoder.uint(VERSION);
        encoder.uint(2);
        encoder.bytes(self.home.as_bytes());
        encoder.uint(3);
        encoder.array(Role::ALL.len());
        for role in Role::ALL {
            encoder.bytes(self.roles.key(*role).as_bytes());
        }
        encoder.into_bytes()
    }

    /// Reads the canonical bytes.
    ///
    /// # Errors
    /// The first fault.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DecodeError> {
        let mut decoder = Decoder::new(bytes, Profile::CONTROL);
        decoder.shape(3)?;
        decoder.key(1)?;
        let version = decoder.fault(Fault::Value);
        if decoder.uint()? != VERSION {
            return Err(version);
        }
        decoder.key(2)?;
        let home = HomeId::from_bytes(decoder.array_of()?);
        decoder.key(3)?;
        let count = decoder.fault(Fault::Value);
        if decoder.array()? != 5 {
            return Err(count);
        }
        let mut key = || {
            let fault = decoder.fault(Fault::Value);
            PublicKey::new(decoder.array_of()?).map_err(|_| fault)
        };
        let keys = [key()?, key()?, key()?, key()?, key()?];
        decoder.finish()?;
        Ok(Self { home, roles: Roles::new(keys) })
    }
}
