//! `syscap policy set`.

use std::path::PathBuf;
use syscap::analysis::NODES_DEFAULT;
use syscap::format::{Reason, Refused, Role, Seq};
use syscap::kernel::object_of;
use syscap::policy::{LoadError, Policy};
use syscap::view::Whose;
use syscap::{Beside, Error, Home, Inspection, PolicyPlace, Runtime};

use clap::Args;

use super::hosts;
use super::target::{Target, located, parse, preset_of};
use super::warnings::{self, Warning};
use crate::exit::{Ended, Exit, Failure, diagnose};
use crate::learn::warn_of_policy;
use crate::output::{Object, Out, quote};
use crate::runtime;
use crate::signing::{self, Hand};

/// Most constraints of a document that is analysed when it is put in force.
const ANALYSED_MAX: usize = 200;
/// How many nodes are looked at for a question then.
const NODES_EACH: u64 = NODES_DEFAULT / 100;

/// Which policy, and how.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A document that is not sound is refused, on the record, with exit code 3: the policy in force
stays. What is odd about a sound one is said on standard error, as by `policy check --home`; it is
put in force all the same. A shadow is asked about every call beside the policy in force, for the
record only.")]
pub(crate) struct Set {
    /// The home.
    home: PathBuf,
    /// A file or preset:NAME.
    #[arg(value_name = "FILE|preset:NAME", required_unless_present = "no_shadow")]
    document: Option<PathBuf>,
    /// Ask it beside the policy in force.
    #[arg(long)]
    shadow: bool,
    /// Ask no policy beside the one in force any more.
    #[arg(long, conflicts_with_all = ["shadow", "document"])]
    no_shadow: bool,
}

impl Set {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        // What can't be read is no matter for the log.
        let document = self.document.as_deref().map(Target::document).transpose()?;
        // What is not sound nobody has to sign: the kernel refuses it.
        let sound = document.as_ref().and_then(|(_, bytes)| parse(bytes).ok());
        let hand = match document.is_none() || sound.is_some() {
            true => signing::hand(&self.home, Role::Policy)?,
            false => Hand::Holder,
        };
        let mut warnings = Vec::new();
        let (seq, policy, shadow) = runtime::with(&self.home, |access| {
            let tools = access.manifests(Whose::All)?;
            let tools: Vec<_> = tools.iter().collect();
            if let (Some((target, _)), Some(policy)) = (&document, &sound)
                && let Some(never) = hosts::never(policy, &tools).into_iter().next()
            {
                let what = target.file().unwrap_or_default().display().to_string();
                return Err(Failure::Policy { what, problem: never.says });
            }
            let seq = match &document {
                None => put(access, &hand, PolicyPlace::NoShadow)?,
                Some((target, bytes)) => {
                    let policy = object_of(&read(access, target.file(), bytes)?);
                    let place = match self.shadow {
                        true => PolicyPlace::Shadow(policy),
                        false => PolicyPlace::InForce(policy),
                    };
                    put(access, &hand, place)?
                }
            };
            let view = access.view()?;
            if let Some(policy) = &sound {
                warnings = warnings::of_home(policy, &tools, &Home::at(&self.home));
            }
            Ok((seq, view.policy, view.shadow))
        })?;
        let shown = |hash: Option<_>| hash.map_or("none".to_owned(), |hash| format!("{hash}"));
        let text = match (&document, self.shadow) {
            (None, _) => format!("no shadow by record {seq}"),
            (_, true) => format!("shadow {} by record {seq}", shown(shadow)),
            (_, false) => format!("policy {} by record {seq}", shown(policy)),
        };
        let json = |hash: Option<_>| hash.map_or("null".to_owned(), |_| quote(&shown(hash)));
        let json = Object::new()
            .json("policy", &json(policy))
            .json("shadow", &json(shadow))
            .uint("record", seq.get());
        out.both(&text, json)?;
        out.flush()?;
        // The analysis takes its time: the home is free again meanwhile.
        let in_force = document.as_ref().filter(|_| !self.shadow);
        let recording = in_force.and_then(|(_, bytes)| parse(bytes).ok());
        let mut odd = document.map_or_else(Vec::new, |(_, bytes)| own(&bytes));
        odd.append(&mut warnings);
        if let Some(policy) = recording {
            warn_of_policy(&policy);
        }
        odd.iter().for_each(|warning| diagnose(&format!("warning: {}", warning.says)));
        Ok(Exit::Done)
    }
}

/// The warnings about a document of one's own. A preset's are known, and expected. A large document
/// is left to `policy check`: setting a policy must not take long.
fn own(bytes: &[u8]) -> Vec<Warning> {
    match parse(bytes) {
        Ok(policy) if preset_of(policy.hash()).is_none() => {
            match policy.written().constraints.len() {
                0..=ANALYSED_MAX => warnings::of_document(&policy, NODES_EACH).warnings,
                _ => warnings::unanalysed(&policy),
            }
        }
        _ => Vec::new(),
    }
}

/// Reads a document as the home does; one that is not sound is refused, on the record.
fn read(access: &Runtime, file: Option<PathBuf>, bytes: &[u8]) -> Result<Policy, Failure> {
    access.read_policy(bytes).map_err(|error| match error {
        Error::Policy(error) => {
            let error = LoadError { place: located(bytes, &error.place).into(), ..error };
            Failure::Unsound { file, error: Box::new(error), exit: Exit::Refused }
        }
        error => error.into(),
    })
}

fn put(access: &Runtime, hand: &Hand, place: PolicyPlace) -> Result<Seq, Failure> {
    let Hand::Person(person) = hand else {
        return Ok(match &place {
            PolicyPlace::InForce(policy) => access.set_policy_object(policy)?,
            PolicyPlace::Shadow(policy) => access.set_shadow_object(policy)?,
            PolicyPlace::NoShadow => access.clear_shadow()?,
        });
    };
    let beside = match &place {
        PolicyPlace::InForce(policy) | PolicyPlace::Shadow(policy) => {
            Beside::Policy(Box::new(policy.clone()))
        }
        PolicyPlace::NoShadow => Beside::Nothing,
    };
    let change = |log: &Inspection| {
        let none = Refused::new(Reason::PolicyNotInForce);
        log.policy_change(&place).ok_or(Failure::Refused(none))
    };
    person.submit(access, change, &beside, Failure::from)
}
