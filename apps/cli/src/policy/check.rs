//! `syscap policy check`.

use std::path::PathBuf;

use clap::Args;
use syscap::{
    kernel::{
        id::{PolicyHash, ToolId},
        kernel::Kernel,
    },
    policy::{
        LoadError, Policy,
        analysis::{Finding, Lint, LintKind, NODES_DEFAULT, lints},
    },
};

use super::target::{Target, parse};
use crate::{
    Ended,
    exit::{Exit, Failure},
    output::{Form, Object, Out, array, quote},
    runtime,
};

/// What to check, and how strictly.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Exit codes: 0 sound, 1 not sound, or --strict and there is a warning.")]
pub(crate) struct Check {
    /// A file or preset:NAME.
    #[arg(value_name = "FILE|preset:NAME")]
    document: PathBuf,
    /// Also check that the tools that are named are this home's. It is only read.
    #[arg(long, value_name = "HOME")]
    home: Option<PathBuf>,
    /// Take warnings for errors.
    #[arg(long)]
    strict: bool,
}

/// One thing that is odd.
struct Warning {
    kind: &'static str,
    constraint: Option<String>,
    tool: Option<String>,
    says: String,
}

impl Check {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        let (_, bytes) = Target::document(&self.document)?;
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
                return Err(Failure::Unsound { file: None, error, exit });
            }
        };
        let mut warnings = odd(&policy);
        warnings.extend(kernel.into_iter().flat_map(|kernel| missing(&policy, kernel)));
        let (hash, count) = (policy.hash(), policy.written().constraints.len());
        let failed = self.strict && !warnings.is_empty();
        let printed = print(out, (hash, count), &warnings);
        out.conclude(printed, if failed { Exit::Failed } else { Exit::Done })
    }
}

fn print(
    out: &mut Out,
    (hash, count): (PolicyHash, usize),
    warnings: &[Warning],
) -> Result<(), Failure> {
    if out.form() == Form::Json {
        let json = Object::new()
            .flag("sound", true)
            .shown("hash", hash)
            .json("constraints", &count.to_string())
            .json("warnings", &array(warnings.iter().map(Warning::json)));
        return out.line(&json.finish());
    }
    out.line(&format!("{hash}  {count} constraints"))?;
    warnings.iter().try_for_each(|warning| out.line(&format!("warning: {}", warning.says)))
}

/// What is wrong with a document.
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
        if let Some(found) = kernel.manifests().find(|found| found.aliases.0.contains(tool)) {
            return Err(LoadError::alias(tool, &found.tool));
        }
    }
    Ok(())
}

/// Tools that the home does not have.
fn missing(policy: &Policy, kernel: &Kernel) -> Vec<Warning> {
    let is_missing = |tool: &&ToolId| kernel.manifests().all(|found| found.tool != **tool);
    let warning = |tool: &ToolId| Warning {
        kind: "unknown_tool",
        constraint: None,
        tool: Some(tool.to_string()),
        says: format!("the home has no tool {tool}"),
    };
    policy.tools().filter(is_missing).map(warning).collect()
}

/// What the analysis finds.
fn odd(policy: &Policy) -> Vec<Warning> {
    match lints(policy.written(), NODES_DEFAULT) {
        Finding::Holds { .. } => Vec::new(),
        Finding::Fails(found) => found.iter().map(Warning::of).collect(),
        Finding::Unknown { nodes } => vec![Warning {
            kind: "limit",
            constraint: None,
            tool: None,
            says: format!("the analysis reached its limit at {nodes} nodes; there may be more"),
        }],
    }
}

impl Warning {
    fn of(lint: &Lint) -> Self {
        let id = &lint.constraint;
        let (kind, tool, says) = match &lint.kind {
            LintKind::NeverMatches => ("never_matches", None, format!("{id}: no call matches it")),
            LintKind::AlwaysMatches => (
                "always_matches",
                None,
                format!("{id}: its tests tell nothing: every call that it is about matches"),
            ),
            LintKind::Redundant => {
                ("redundant", None, format!("{id}: without it nothing would change"))
            }
            LintKind::OutOfReach(tool) => (
                "out_of_reach",
                Some(tool.to_string()),
                format!("{id}: no call of {tool} is ever allowed, degraded or asked about"),
            ),
            other => ("odd", None, format!("{id}: {other:?}")),
        };
        Self { kind, constraint: Some(id.to_string()), tool, says }
    }

    fn json(&self) -> String {
        let optional = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quote);
        Object::new()
            .text("kind", self.kind)
            .json("constraint", &optional(&self.constraint))
            .json("tool", &optional(&self.tool))
            .text("says", &self.says)
            .finish()
    }
}
