//! Answers beside a person's own command: given by an agent's own client, where the policy lets that
//! count.

use std::path::Path;

use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, ControlBody, Reason, Refused, Role, Seq,
};

use crate::{Beside, Error, FileKeys, Home, Options, Runtime, Signer};

/// How often an answer is signed anew where another event of the same key's came first.
const TRIES: u32 = 5;

/// Answers a call that waits by a means of an agent's own client, with the approvers' key that lies
/// in the home: one that is not sealed, since nobody types a passphrase into a client's window. The
/// kernel takes it only where the policy names that means (`params.client_means`), for that call
/// alone, and where one approval is enough.
///
/// # Errors
/// [`Error::Signer`] where the key is sealed or is not there; [`Error::Refused`] where the answer
/// does not count, or no call waits under that number.
pub fn answer_in_client(
    home: &Path,
    access: &Runtime,
    ask: Seq,
    answer: ApprovalAnswer,
    means: ApprovalChannel,
) -> Result<Seq, Error> {
    if !means.is_a_clients() {
        return Err(Error::Refused(Refused::new(Reason::BadControl).field("means")));
    }
    let keys = FileKeys::open(&Home::at(home).keys())?;
    let mut tries = 0_u32;
    loop {
        let log = Options::new().inspect(home)?;
        keys.renew(log.kernel().roles());
        let key = keys.public_key(Role::Approver)?;
        let unknown = || Refused::new(Reason::UnknownAsk).field("ask").got(&ask);
        let body = log.answer(ask, answer, means, None).ok_or_else(unknown)?;
        let control = log.sign(&body, &key, |message| keys.sign(Role::Approver, message))?;
        drop(log);
        tries = tries.saturating_add(1);
        match access.submit_with(ApprovalBody::KIND, control, &Beside::Nothing) {
            Err(Error::Refused(why)) if overtaken(why.reason()) && tries < TRIES => {}
            done => return done,
        }
    }
}

const fn overtaken(reason: Reason) -> bool {
    matches!(reason, Reason::StaleCounter | Reason::StaleHead)
}
