//! The person who answers with the approvers' key of the home.

use std::path::Path;

use syscap::approvals::SetTerms;
use syscap::format::{ApprovalAnswer, ApprovalBody, ApprovalChannel, Role, Seq};
use syscap::{Beside, Error, FileKeys, Home, Signer as _};

use crate::exit::Failure;
use crate::runtime;
use crate::signing::{salted, submit};
use crate::terminal::{self, Terminal};

/// The approvers' key of a home, which is unsealed once.
pub(crate) struct Approver<'h> {
    home: &'h Path,
    keys: FileKeys,
    means: ApprovalChannel,
}

impl<'h> Approver<'h> {
    pub(crate) fn of(home: &'h Path) -> Result<Self, Failure> {
        let keys = FileKeys::open(&Home::at(home).keys())?.asking(Terminal);
        keys.renew(runtime::look(home)?.kernel().roles());
        // What it is now: once it is unsealed nobody is asked any more.
        let sealed = keys.needs_person(Role::Approver);
        let means = if sealed { ApprovalChannel::Terminal } else { ApprovalChannel::Command };
        Ok(Self { home, keys, means })
    }

    /// True if its passphrase is asked for, or was.
    pub(crate) const fn is_sealed(&self) -> bool {
        matches!(self.means, ApprovalChannel::Terminal)
    }

    /// The same key, unsealed now, for answers that a click alone gives: no person confirms them.
    pub(crate) fn at_a_click(self) -> Result<Self, Failure> {
        terminal::unsealed(|| self.keys.prepare(Role::Approver)).map_err(Error::from)?;
        Ok(Self { means: ApprovalChannel::Command, ..self })
    }

    /// Signs an answer, and has it recorded: within these terms where it is for more than one call.
    pub(crate) fn answer(
        &self,
        ask: Seq,
        answer: ApprovalAnswer,
        terms: Option<&SetTerms>,
        why: Option<&str>,
    ) -> Result<Seq, Failure> {
        let role = Role::Approver;
        terminal::unsealed(|| self.keys.prepare(role)).map_err(Error::from)?;
        let key = self.keys.public_key(role).map_err(Error::from)?;
        let why = why.map(salted::<ApprovalBody>).transpose()?;
        let beside = why.clone().map_or(Beside::Nothing, Beside::Why);
        let sign = |message: &[u8]| self.keys.sign(role, message);
        let body = |log: &syscap::Inspection| {
            let body = match terms {
                Some(terms) => log.answer_set(ask, terms, self.means, why.as_ref()),
                None => log.answer(ask, answer, self.means, why.as_ref()),
            };
            body.ok_or_else(|| over(ask))
        };
        runtime::with(self.home, |access| {
            submit(self.home, access, &key, sign, body, &beside, Failure::from)
        })
    }
}

/// Nobody can answer it.
pub(crate) fn over(ask: Seq) -> Failure {
    Failure::Usage { what: ask.to_string(), advice: "is not waiting any more".to_owned() }
}
