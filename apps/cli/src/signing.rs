//! The signer of an operator's event: the server, or, if the key is sealed, the person at this
//! terminal. The event is made here, from the log, and not taken from the server: a hostile one
//! gets nothing signed but the requested event.

use std::path::{Path, PathBuf};

use syscap::format::{
    ControlBody, PublicKey, Reason, Role, Salt, Seq, Signature, TOKEN_CONTEXT, TextHash, Token,
    TokenId, VaultText, preimage,
};
use syscap::kernel::Entropy as _;
use syscap::{
    Beside, Error, FileKeys, Grant, Home, Inspection, Options, Runtime, Signer, SignerError,
};

use crate::exit::Failure;
use crate::runtime;
use crate::terminal::{self, Terminal};

/// How often an event is signed anew where another one came first.
const TRIES: u32 = 5;

/// The signer for a role.
pub(crate) enum Hand {
    /// The server.
    Holder,
    /// A person, who has unsealed the key.
    Person(Box<Person>),
}

/// A key of the home's that a person has unsealed.
pub(crate) struct Person {
    home: PathBuf,
    role: Role,
    keys: FileKeys,
}

/// The signer for a role; a person is asked at once, before anything is opened that others wait
/// for.
pub(crate) fn hand(home: &Path, role: Role) -> Result<Hand, Failure> {
    let keys = FileKeys::open(&Home::at(home).keys())?.asking(Terminal);
    if keys.needs_person(role) || keys.public_key(role).is_err() {
        keys.renew(runtime::look(home)?.kernel().roles());
    }
    if !keys.needs_person(role) {
        return Ok(Hand::Holder);
    }
    terminal::unsealed(|| keys.prepare(role)).map_err(Error::from)?;
    Ok(Hand::Person(Box::new(Person { home: home.to_path_buf(), role, keys })))
}

/// True if a person must unseal the key of a role that lies in this home.
pub(crate) fn is_sealed(home: &Path, role: Role) -> Result<bool, Failure> {
    let keys = FileKeys::open(&Home::at(home).keys())?;
    Ok(keys.needs_person(role))
}

/// The same for what is signed here in any case: by the key that lies in the home, sealed or not.
pub(crate) fn own(home: &Path, role: Role) -> Result<Person, Failure> {
    match hand(home, role)? {
        Hand::Person(person) => Ok(*person),
        Hand::Holder => {
            let keys = FileKeys::open(&Home::at(home).keys())?.asking(Terminal);
            keys.renew(runtime::look(home)?.kernel().roles());
            Ok(Person { home: home.to_path_buf(), role, keys })
        }
    }
}

/// Has an event recorded that the key which lies in this home signs here, whoever holds the home,
/// with the reason for it.
pub(crate) fn because<B: ControlBody>(
    home: &Path,
    role: Role,
    body: impl Fn(Option<TextHash>) -> B,
    why: Option<&str>,
) -> Result<Seq, Failure> {
    let person = own(home, role)?;
    let why = why.map(salted::<B>).transpose()?;
    let cause = why.as_ref().map(VaultText::hash);
    let beside = why.map_or(Beside::Nothing, Beside::Why);
    runtime::with(home, |access| person.submit(access, |_| Ok(body(cause)), &beside, Failure::from))
}

/// True if another record of the same key's came first.
fn overtaken(error: &Error) -> bool {
    match error {
        Error::Refused(refused) => {
            matches!(refused.reason(), Reason::StaleCounter | Reason::StaleHead)
        }
        _ => false,
    }
}

/// A reason, as a body of that form commits to it.
pub(crate) fn salted<B: ControlBody>(why: &str) -> Result<VaultText, Failure> {
    let mut salt = [0; 32];
    syscap::SystemEntropy.fill(&mut salt).map_err(Error::from)?;
    Ok(VaultText { salt: Salt::from_bytes(salt), field: B::CAUSE, text: Box::from(why) })
}

impl Hand {
    /// Signs a token and has it registered.
    pub(crate) fn issue(&self, access: &Runtime, grant: &Grant) -> Result<TokenId, Error> {
        match self {
            Self::Holder => access.issue(grant.clone()),
            Self::Person(person) => person.issue(access, grant),
        }
    }
}

impl Person {
    /// Has a token registered that is signed here, over the log as it is. If another record of the
    /// key's came first it is made and signed anew.
    pub(crate) fn issue(&self, access: &Runtime, grant: &Grant) -> Result<TokenId, Error> {
        let issuer = self.keys.public_key(self.role)?;
        let mut tries = 0_u32;
        loop {
            let log = Options::new().inspect(&self.home)?;
            let body = log.token(grant, issuer, || self.keys.holder_key())?.to_bytes();
            let signature = self.keys.sign(self.role, &preimage(TOKEN_CONTEXT, &body))?;
            tries = tries.saturating_add(1);
            match access.register(&Token::wire(&body, &signature)) {
                Err(error) if overtaken(&error) && tries < TRIES => {}
                done => return done,
            }
        }
    }

    /// Has an event recorded that is made from the log as it is.
    pub(crate) fn submit<B: ControlBody>(
        &self,
        access: &Runtime,
        body: impl Fn(&Inspection) -> Result<B, Failure>,
        beside: &Beside,
        failed: impl Fn(Error) -> Failure,
    ) -> Result<Seq, Failure> {
        let key = self.keys.public_key(self.role).map_err(Error::from)?;
        let sign = |message: &[u8]| self.keys.sign(self.role, message);
        submit(&self.home, access, &key, sign, body, beside, failed)
    }
}

/// Has an event recorded that some key signs. If another event came first it is made and signed
/// anew.
pub(crate) fn submit<B: ControlBody>(
    home: &Path,
    access: &Runtime,
    key: &PublicKey,
    sign: impl Fn(&[u8]) -> Result<Signature, SignerError>,
    body: impl Fn(&Inspection) -> Result<B, Failure>,
    beside: &Beside,
    failed: impl Fn(Error) -> Failure,
) -> Result<Seq, Failure> {
    let mut tries = 0_u32;
    loop {
        let log = runtime::look(home)?;
        let control = log.sign(&body(&log)?, key, &sign)?;
        tries = tries.saturating_add(1);
        match access.submit_with(B::KIND, control.clone(), beside) {
            Err(error) if overtaken(&error) && tries < TRIES => {}
            done => return done.map_err(failed),
        }
    }
}
