//! `syscap policy set`.

use std::path::{Path, PathBuf};

use syscap::analysis::NODES_DEFAULT;
use syscap::format::{PolicyBecause, PolicyChange, PolicyObject, Reason, Refused, Role, Seq};
use syscap::kernel::object_of;
use syscap::policy::{LoadError, Policy};
use syscap::view::Whose;
use syscap::{Beside, Error, Home, Inspection, PolicyPlace, PolicyWhy, Runtime};

use clap::Args;

use super::hosts;
use super::target::{Target, located, parse, preset_of};
use super::warnings::{self, Warning};
use crate::exit::{Ended, Exit, Failure, diagnose};
use crate::learn::warn_of_policy;
use crate::output::{Object, Out, quote};
use crate::runtime;
use crate::signing::{self, Hand, Person};

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
    /// Why: on record as a commitment, the text in the vault.
    #[arg(long, value_name = "TEXT")]
    because: Option<String>,
}

impl Set {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        // What can't be read is no matter for the log.
        let document = self.document.as_deref().map(Target::document).transpose()?;
        // What is not sound nobody has to sign: the kernel refuses it.
        let sound = document.as_ref().and_then(|(_, bytes)| parse(bytes).ok());
        let hand = match document.is_none() || sound.is_some() {
            true => hand_for(&self.home, self.because.as_deref())?,
            false => Hand::Holder,
        };
        let why = self.because.as_deref();
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
                None => put(access, &hand, PolicyPlace::NoShadow, why)?,
                Some((target, bytes)) => {
                    let policy = object_of(&read(access, target.file(), bytes)?);
                    let place = match self.shadow {
                        true => PolicyPlace::Shadow(policy),
                        false => PolicyPlace::InForce(policy),
                    };
                    put(access, &hand, place, why)?
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

/// Whoever signs a policy: with a reason it is signed here, by the key that lies in the home.
pub(super) fn hand_for(home: &Path, why: Option<&str>) -> Result<Hand, Failure> {
    Ok(match why {
        Some(_) => Hand::Person(Box::new(signing::own(home, Role::Policy)?)),
        None => signing::hand(home, Role::Policy)?,
    })
}

/// Signs and submits a change of the policy, with the reason beside it.
pub(super) fn submit(
    access: &Runtime,
    person: &Person,
    change: impl Fn(&Inspection) -> Result<PolicyChange, Failure>,
    policy: Option<PolicyObject>,
    why: Option<&str>,
) -> Result<Seq, Failure> {
    let Some(why) = why else {
        let beside = policy.map_or(Beside::Nothing, |policy| Beside::Policy(Box::new(policy)));
        return person.submit(access, change, &beside, Failure::from);
    };
    let why = signing::salted::<PolicyBecause>(why)?;
    let cause = why.hash();
    let beside = Beside::PolicyWhy(Box::new(PolicyWhy { policy, why }));
    let because = |log: &Inspection| Ok(PolicyBecause::new(change(log)?, cause));
    person.submit(access, because, &beside, Failure::from)
}

fn put(
    access: &Runtime,
    hand: &Hand,
    place: PolicyPlace,
    why: Option<&str>,
) -> Result<Seq, Failure> {
    let Hand::Person(person) = hand else {
        return Ok(match &place {
            PolicyPlace::InForce(policy) => access.set_policy_object(policy)?,
            PolicyPlace::Shadow(policy) => access.set_shadow_object(policy)?,
            PolicyPlace::NoShadow => access.clear_shadow()?,
        });
    };
    let policy = match &place {
        PolicyPlace::InForce(policy) | PolicyPlace::Shadow(policy) => Some(policy.clone()),
        PolicyPlace::NoShadow => None,
    };
    let change = |log: &Inspection| {
        let none = Refused::new(Reason::PolicyNotInForce);
        log.policy_change(&place).ok_or(Failure::Refused(none))
    };
    submit(access, person, change, policy, why)
}
