//! Answers beside a person's own command: waited for from any process that reads the home, and
//! given by an agent's own client, where the policy lets that count.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use syscap_audit::SqliteReader;
use syscap_format::{
    ApprovalAnswer, ApprovalBody, ApprovalChannel, Body, ControlBody, Reason, Record, Refused,
    Role, Seq,
};
use syscap_kernel::Next;

use crate::{Beside, Error, FileKeys, Home, Options, Runtime, Signer, runtime::session::Waited};

/// How long nobody looks whether a call was answered.
const LOOK: Duration = Duration::from_millis(250);
/// How often an answer is signed anew where another event of the same key's came first.
const TRIES: u32 = 5;

/// Looks whether a call that waits for a person has been answered, by the log alone: whichever
/// process holds the home.
#[derive(Debug)]
pub struct AskWatch {
    home: PathBuf,
    ask: Seq,
    /// The last record that was read.
    read: Seq,
}

impl AskWatch {
    /// A watch for answers to one approval request.
    pub fn new(home: &Path, ask: Seq) -> Self {
        // It waited when it was asked.
        Self { home: home.to_path_buf(), ask, read: ask }
    }

    /// Waits for so long at most; as [`Session::wait`](crate::Session::wait), but for what expires
    /// without a record.
    ///
    /// # Errors
    /// As [`Options::inspect`].
    pub fn wait(&mut self, limit: Duration) -> Result<Waited, Error> {
        let since = Instant::now();
        loop {
            let found = self.look()?;
            let left = limit.saturating_sub(since.elapsed());
            if found != Waited::Waiting || left.is_zero() {
                return Ok(found);
            }
            thread::sleep(left.min(LOOK));
        }
    }

    /// How it stands now. The log is replayed only where something in it may have changed that.
    fn look(&mut self) -> Result<Waited, Error> {
        let mut reader = SqliteReader::open(&self.home)?;
        let (mut changed, mut last) = (false, self.read);
        reader.records(self.read.next(), &mut |seq, bytes| {
            last = seq;
            changed |= may_answer(bytes);
            if changed { Next::Enough } else { Next::More }
        })?;
        self.read = last;
        if !changed {
            return Ok(Waited::Waiting);
        }
        let log = Options::new().inspect(&self.home)?;
        self.read = log.kernel().head().seq;
        let now = log.kernel().now();
        let found = log.waiting()?.into_iter().find(|call| call.ask == self.ask);
        Ok(match found {
            Some(call) if call.denied => Waited::Denied,
            // No yes to it is taken any more; the same call asks anew.
            Some(call) if call.superseded => Waited::Over,
            Some(call) if call.approved.is_none() => Waited::Approved,
            Some(call) if now >= call.expires => Waited::Expired,
            Some(_) => Waited::Waiting,
            None => Waited::Over,
        })
    }
}

/// True if a record may affect a waiting request.
fn may_answer(record: &[u8]) -> bool {
    match Record::decode(record).map(|record| record.body) {
        Ok(Body::Approval(_)) => true,
        Ok(Body::Intent(intent)) => intent.approval.is_some(),
        // Calls, and what they came to, answer nothing.
        Ok(Body::Outcome(_) | Body::Refusal(_) | Body::Ask(_)) => false,
        Ok(_) | Err(_) => true,
    }
}

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
