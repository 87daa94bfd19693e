//! `syscap policy set`.

use std::path::PathBuf;

use clap::Args;
use syscap::{Error, Runtime, kernel::id::Seq};

use super::target::Target;
use crate::{
    Ended,
    exit::{Exit, Failure},
    output::{Object, Out, quote},
    runtime,
};

/// Which policy, and how.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A document that is not sound is refused, on the record, with exit code 3: the policy in force
stays. A shadow is asked about every call beside the policy in force, for the record only.")]
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
        let (seq, policy, shadow) = runtime::with(&self.home, |runtime| {
            let seq = match &document {
                None => runtime.clear_shadow()?,
                Some((_, bytes)) => put(runtime, bytes, self.shadow)?,
            };
            let (policy, shadow) = runtime.look(|k| (k.policy_hash(), k.shadow_hash()));
            Ok((seq, policy, shadow))
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
        Ok(Exit::Done)
    }
}

fn put(runtime: &Runtime, bytes: &[u8], shadow: bool) -> Result<Seq, Failure> {
    let policy = runtime.read_policy(bytes).map_err(|error| match error {
        Error::Policy(error) => {
            Failure::Unsound { file: None, error: Box::new(error), exit: Exit::Refused }
        }
        error => error.into(),
    })?;
    Ok(if shadow { runtime.set_shadow(policy)? } else { runtime.set_policy(policy)? })
}
