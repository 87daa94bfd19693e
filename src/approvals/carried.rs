//! Answers that are signed on another machine: what is carried there, held against its record,
//! and what is brought back.

use syscap_format::{
    ApprovalAnswer, ApprovalChannel, Body, CONTROL_CONTEXT, CallSalts, Control, ControlBody, Head,
    HomeId, Leaf, PublicKey, Record, RecordKind, Salt, Seq, Signature, Signed, TextHash,
    VaultEntry, VaultText, leaf, preimage,
};
use syscap_kernel::{AskView, Halt, StoreError, record_at, vault_entry};

use crate::approvals::asks::{WaitingCall, body, said};
use crate::keys::SignerError;
use crate::{Error, Inspection};

/// A call that waits for a person, as it is carried to a signer on another machine. The signer
/// trusts none of it: the signature covers the record's leaf, and [`check`](Self::check) compares
/// the rest with that. It holds the arguments themselves, so it is as secret as they are.
#[derive(Clone, Debug)]
pub struct CarriedAsk {
    /// The home.
    pub home: HomeId,
    /// The record that asks, by which the home knows it.
    pub ask: Seq,
    /// The head of the log, which the signature names.
    pub head: Head,
    /// The exact bytes of the record.
    pub record: Vec<u8>,
    /// The salt of the commitment to the arguments.
    pub salt: Salt,
    /// The arguments, in canonical CBOR.
    pub arguments: Vec<u8>,
    /// The texts that the record commits to: what the call would touch.
    pub texts: Vec<VaultText>,
    /// The keys that may answer, each with the counter that it signs with next.
    pub keys: Vec<(PublicKey, u64)>,
}

/// A signed answer, as it travels back.
#[derive(Clone, Debug)]
pub struct CarriedAnswer {
    /// The home that it is for.
    pub home: HomeId,
    /// The record that it answers.
    pub ask: Seq,
    /// The event, to be [submitted](crate::Runtime::submit_with) as an `approval`.
    pub control: Control,
    /// The text of the reason, to go [beside](crate::Beside::Why) it.
    pub why: Option<VaultText>,
}

/// Why something that was carried is not signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsound {
    /// The record is none that asks, or not the one that is named.
    #[error("the record is not that of a call that waits")]
    Record,
    /// The record commits to other arguments.
    #[error("the arguments are not those that the record commits to")]
    Arguments,
    /// The record commits to other resources, or to more.
    #[error("what the call would touch is not what the record commits to")]
    Resources,
    /// The record commits to something else that must still be so when it runs, or to more.
    #[error("what must still be so is not what the record commits to")]
    Conditions,
    /// The head lies before the record, or is another one of its place.
    #[error("the end of the log does not fit the record")]
    Head,
    /// The key is not among those that may answer.
    #[error("the key may not answer this call")]
    Key,
    /// The counter is none that a key can have come to in that log: signed, it would use up those
    /// before it.
    #[error("the key's counter does not fit the log")]
    Counter,
    /// The policy wants it answered by other means than a file.
    #[error("the policy does not take an answer by file")]
    Means,
    /// Only one call is answered by file, by yes or no.
    #[error("an answer by file is yes or no to one call")]
    Answer,
    /// A signature can't be had.
    #[error("signing failed: {0}")]
    Signer(SignerError),
}

/// A call that was carried, and is what its record commits to.
#[derive(Debug)]
pub struct CheckedAsk<'a> {
    carried: &'a CarriedAsk,
    leaf: Leaf,
    means: Vec<ApprovalChannel>,
    call: WaitingCall,
}

impl Inspection {
    /// A call that waits, to be carried to a signer on another machine; `None` where none waits
    /// under that number, or its arguments were erased, so that nobody could see what they sign.
    ///
    /// # Errors
    /// [`Error::Home`]: the log or the vault can't be read; [`Error::Halted`]: the log is empty.
    pub fn carry(&self, ask: Seq) -> Result<Option<CarriedAsk>, Error> {
        let kernel = self.kernel();
        let Some(view) = kernel.asks().find(|view| view.ask == ask) else { return Ok(None) };
        let head = kernel.durable().ok_or(Halt::Empty)?;
        let mut store = self.store();
        let record = record_at(&mut **store, ask)?.ok_or(StoreError::Damaged)?;
        let VaultEntry { salts, args, texts, .. } = vault_entry(&mut **store, ask, ask)?;
        let Some((salts, arguments)) = salts.zip(args) else { return Ok(None) };
        let next = |key| (key, kernel.counter(&key).saturating_add(1));
        Ok(Some(CarriedAsk {
            home: kernel.home(),
            ask,
            head,
            record,
            salt: salts.args,
            arguments,
            texts,
            keys: view.eligible.into_iter().map(next).collect(),
        }))
    }
}

impl CarriedAsk {
    /// Holds all that is carried against the record. That the record is the home's is known once
    /// the answer is brought there: it is for the leaf of these bytes, and no other.
    ///
    /// # Errors
    /// [`Unsound`]: what does not fit.
    pub fn check(&self) -> Result<CheckedAsk<'_>, Unsound> {
        let record = Record::decode(&self.record).map_err(|_| Unsound::Record)?;
        let leaf = leaf(&self.record);
        let Body::Ask(ask) = &record.body else { return Err(Unsound::Record) };
        if record.seq != self.ask {
            return Err(Unsound::Record);
        }
        let last = self.head.seq == self.ask;
        if self.head.seq < self.ask || (last && self.head.leaf != leaf) {
            return Err(Unsound::Head);
        }
        // The other two are no part of what is carried: nothing here is committed to by them.
        let salts = CallSalts { call: self.salt, args: self.salt, result: self.salt };
        let (args, texts) = (Some(self.arguments.clone()), self.texts.clone());
        let entry = VaultEntry { salts: Some(salts), args, texts, ..VaultEntry::default() };
        let known = |hash: &TextHash| entry.text(hash).is_some();
        let conditions = &ask.preconditions;
        let conditions = conditions.iter().flat_map(|one| [Some(one.subject), one.seen]);
        let (all, means) = (ask.resources.iter().all(known), ask.means.clone());
        let conditions = conditions.flatten().all(|hash| known(&hash));
        let view = self.view(leaf, ask).ok_or(Unsound::Record)?;
        let call = said(record, &entry, view).ok_or(Unsound::Record)?;
        if call.args.is_none() {
            Err(Unsound::Arguments)
        } else if !all {
            Err(Unsound::Resources)
        } else if !conditions {
            Err(Unsound::Conditions)
        } else {
            Ok(CheckedAsk { carried: self, leaf, means, call })
        }
    }

    /// The view of the call from its record alone; only its home knows its present state.
    fn view(&self, leaf: Leaf, ask: &syscap_format::Ask) -> Option<AskView> {
        Some(AskView {
            ask: self.ask,
            leaf,
            agent: ask.call.agent_id.clone()?,
            tool: ask.call.tool_id.clone()?,
            eligible: ask.eligible.clone(),
            threshold: ask.threshold,
            expires: ask.expires,
            approved: Some(0),
            denied: false,
            session: None,
            uses_max: 0,
            may_widen: false,
        })
    }
}

impl CheckedAsk<'_> {
    /// The call, to be shown to whoever signs: all of it is what the record commits to. How many
    /// have approved, and whether its session is open, is not known here.
    pub const fn call(&self) -> &WaitingCall {
        &self.call
    }

    /// The counter by which a key may sign an answer.
    ///
    /// # Errors
    /// [`Unsound::Key`], [`Unsound::Counter`] or [`Unsound::Means`] where the home would refuse it,
    /// or should.
    pub fn may_sign(&self, key: &PublicKey) -> Result<u64, Unsound> {
        let CarriedAsk { head, keys, .. } = self.carried;
        let listed = keys.iter().find(|(listed, _)| listed == key);
        let counter = match listed {
            Some((_, counter)) if self.call.eligible.contains(key) => *counter,
            _ => return Err(Unsound::Key),
        };
        // Each counter has a record: none is above the next one's number.
        if counter == 0 || counter > head.seq.next().get() {
            return Err(Unsound::Counter);
        }
        if self.means.contains(&ApprovalChannel::File) { Ok(counter) } else { Err(Unsound::Means) }
    }

    /// Signs an answer to it. `why` is a [reason](crate::approvals::reason_given) with its salt.
    ///
    /// # Errors
    /// As [`may_sign`](Self::may_sign); [`Unsound::Answer`] for a set; [`Unsound::Signer`]: what
    /// `sign` says.
    pub fn sign(
        &self,
        answer: ApprovalAnswer,
        why: Option<VaultText>,
        key: &PublicKey,
        sign: impl FnOnce(&[u8]) -> Result<Signature, SignerError>,
    ) -> Result<CarriedAnswer, Unsound> {
        let CarriedAsk { home, ask, head, .. } = self.carried;
        let counter = self.may_sign(key)?;
        if answer == ApprovalAnswer::Set {
            return Err(Unsound::Answer);
        }
        let body = body(self.leaf, answer, None, ApprovalChannel::File, why.as_ref()).to_bytes();
        let message = Control::message(home, head, key, counter, RecordKind::Approval, &body);
        let signature = sign(&preimage(CONTROL_CONTEXT, &message)).map_err(Unsound::Signer)?;
        let control = Control::by_one(*head, body, Signed { key: *key, counter, signature });
        Ok(CarriedAnswer { home: *home, ask: *ask, control, why })
    }
}
