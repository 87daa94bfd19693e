//! `syscap policy check`.

use std::path::PathBuf;

use clap::Args;
use syscap::Home;
use syscap::analysis::NODES_DEFAULT;
use syscap::format::PolicyHash;
use syscap::kernel::Kernel;
use syscap::policy::{LoadError, Policy};

use super::hosts;
use super::target::{Target, parse};
use super::warnings::{self, Odd, Warning};
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array};
use crate::runtime;

/// The documents to check, and the strictness.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A note is what only holds while the document's parameters are as they are: of a list that is still
empty, or of risk that no tool has.

Exit codes: 0 sound, 1 not sound, or --strict and there is a warning.")]
pub(crate) struct Check {
    /// A file or preset:NAME.
    #[arg(value_name = "FILE|preset:NAME")]
    document: PathBuf,
    /// Also check that tools, arguments and roots of paths are this home's. It is only read.
    #[arg(long, value_name = "HOME")]
    home: Option<PathBuf>,
    /// Take warnings for errors.
    #[arg(long)]
    strict: bool,
    /// How many nodes are looked at for a question, at most.
    #[arg(long, value_name = "NODES", default_value_t = NODES_DEFAULT)]
    limit: u64,
}

impl Check {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (target, bytes) = Target::document(&self.document)?;
        let home = self.home.as_deref().map(runtime::look).transpose()?;
        let kernel = home.as_ref().map(syscap::Inspection::kernel);
        let checked = parse(&bytes).and_then(|policy| match kernel {
            Some(kernel) => named_by_alias(&policy, kernel).map(|()| policy),
            None => Ok(policy),
        });
        let policy = match checked {
            Ok(policy) => policy,
            Err(error) => {
                if out.form() == Form::Json {
                    out.line(&fault(&error))?;
                }
                let (error, exit) = (Box::new(error), Exit::Failed);
                return Err(Failure::Unsound { file: target.file(), error, exit });
            }
        };
        let Odd { mut warnings, notes } = warnings::of_document(&policy, self.limit);
        if let (Some(kernel), Some(home)) = (kernel, &self.home) {
            let tools: Vec<_> = kernel.manifests().collect();
            warnings.extend(warnings::of_home(&policy, &tools, &Home::at(home)));
        }
        let tools: Vec<_> = kernel.into_iter().flat_map(Kernel::manifests).collect();
        let errors = hosts::never(&policy, &tools);
        let (hash, count) = (policy.hash(), policy.written().constraints.len());
        let failed = !errors.is_empty() || (self.strict && !warnings.is_empty());
        let printed = print(out, hash, count, [&errors, &warnings, &notes]);
        out.conclude(printed, if failed { Exit::Failed } else { Exit::Done })
    }
}

fn print(
    out: &mut Out,
    hash: PolicyHash,
    count: usize,
    [errors, warnings, notes]: [&[Warning]; 3],
) -> Result<(), Failure> {
    if out.form() == Form::Json {
        let json = Object::new()
            .flag("sound", true)
            .shown("hash", hash)
            .json("constraints", &count.to_string())
            .json("errors", &array(errors.iter().map(Warning::json)))
            .json("warnings", &array(warnings.iter().map(Warning::json)))
            .json("notes", &array(notes.iter().map(Warning::json)));
        return out.line(&json.finish());
    }
    out.line(&format!("{hash}  {count} constraints"))?;
    errors.iter().try_for_each(|error| out.line(&format!("error: {}", error.says)))?;
    warnings.iter().try_for_each(|warning| out.line(&format!("warning: {}", warning.says)))?;
    notes.iter().try_for_each(|note| out.line(&format!("note: {}", note.says)))
}

/// The fault of a document.
fn fault(error: &LoadError) -> String {
    let object = Object::new()
        .flag("sound", false)
        .text("place", &error.place)
        .shown("fault", error.fault)
        .text("key", &error.key);
    match &error.suggestion {
        Some(suggestion) => object.text("suggestion", suggestion),
        None => object.json("suggestion", "null"),
    }
    .finish()
}

/// As the home itself has it: calls are decided under a tool's own id.
fn named_by_alias(policy: &Policy, kernel: &Kernel) -> Result<(), LoadError> {
    for tool in policy.tools() {
        if let Some(found) = kernel.manifests().find(|found| found.aliases.contains(tool)) {
            return Err(LoadError::alias(tool, &found.tool));
        }
    }
    Ok(())
}
