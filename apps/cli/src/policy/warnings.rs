//! Warnings about a sound document.

use std::{collections::BTreeSet, fs};

use syscap::Home;
use syscap::analysis::{Finding, Lint, LintKind, lints};
use syscap::format::{ConstraintId, Extra, Manifest, Param, ParamType, ToolId};
use syscap::host::MACHINE_ROOT;
use syscap::policy::{Ask, Condition, Constant, Constraint, Effect, OnFail, Policy, Subject, Test};
use syscap::syscalls::marks::Mark;
use syscap::syscalls::net::{NET_EGRESS, Network, URL_PATH_DIMENSION, URL_ROOT};

use super::client_arguments;
use crate::hook::client::Client;
use crate::near::{hint, near};
use crate::output::{Object, quote};

/// The suffix of a note that other parameters would change.
const AS_THEY_ARE: &str = " while the parameters are as they are";

/// One thing that is odd.
pub(crate) struct Warning {
    kind: &'static str,
    constraint: Option<String>,
    tool: Option<String>,
    pub(crate) says: String,
}

/// The warnings about a document, and the notes that hold only for its present parameters: a list
/// that is still empty, a threshold that nothing reaches. They are there to be changed, so that is
/// no mistake.
#[derive(Default)]
pub(super) struct Odd {
    pub(super) warnings: Vec<Warning>,
    pub(super) notes: Vec<Warning>,
}

/// The findings of the analysis, with a warning if nothing is allowed at all. The limit is for each
/// question, in nodes.
pub(super) fn of_document(policy: &Policy, limit: u64) -> Odd {
    let (found, unknown) = match lints(policy.written(), limit) {
        Finding::Holds { .. } => (Vec::new(), None),
        Finding::Fails(found) => (found, None),
        Finding::Unknown { nodes } => (Vec::new(), Some(nodes)),
    };
    let never = |id: &ConstraintId| {
        found.iter().any(|lint| lint.constraint == *id && lint.kind == LintKind::NeverMatches)
    };
    let mut odd = Odd::default();
    odd.warnings.extend(nothing_allowed(policy, never));
    let opened = if found.is_empty() { None } else { policy.opened() };
    // What was not looked at whole is not known to be so whatever the parameters are.
    let whatever = opened.map(|document| match lints(&document, limit) {
        Finding::Fails(found) => found,
        Finding::Holds { .. } | Finding::Unknown { .. } => Vec::new(),
    });
    for lint in &found {
        let constraint = policy.written().constraints.iter().find(|one| one.id == lint.constraint);
        let redundant = found.contains(&Lint { kind: LintKind::Redundant, ..lint.clone() });
        let rest = constraint.filter(|_| !redundant).and_then(of_the_rest);
        if whatever.as_ref().is_none_or(|certain| certain.contains(lint)) {
            odd.warnings.push(Warning::of(lint, rest, ""));
        } else if lint.kind != LintKind::Redundant || !never(&lint.constraint) {
            odd.notes.push(Warning::of(lint, rest, AS_THEY_ARE));
        }
    }
    odd.warnings.extend(unknown.map(|nodes| {
        let says = format!("the analysis reached its limit at {nodes} nodes; there may be more");
        Warning { kind: "limit", constraint: None, tool: None, says }
    }));
    odd
}

/// The remaining effect of an allow that never matches.
fn of_the_rest(constraint: &Constraint) -> Option<&'static str> {
    match (constraint.effect, constraint.on_fail) {
        (Effect::Allow, OnFail::Ask | OnFail::Defer) => Some(constraint.on_fail.name()),
        (Effect::Allow, OnFail::Block | OnFail::Degrade) | (Effect::Deny, _) => None,
    }
}

/// The warnings that need no analysis.
pub(super) fn unanalysed(policy: &Policy) -> Vec<Warning> {
    let count = policy.written().constraints.len();
    let says = format!("not analysed: {count} constraints; see `syscap policy check`");
    let limit = Warning { kind: "limit", constraint: None, tool: None, says };
    nothing_allowed(policy, |_| false).into_iter().chain([limit]).collect()
}

/// True if there is no allow, or none that ever matches.
fn nothing_allowed(policy: &Policy, never: impl Fn(&ConstraintId) -> bool) -> Option<Warning> {
    let mut allows =
        policy.written().constraints.iter().filter(|one| one.effect == Effect::Allow).peekable();
    let why = if allows.peek().is_some() { "no allow ever matches" } else { "there is no allow" };
    let asks = |one: &&Constraint| one.effect == Effect::Allow && one.on_fail == OnFail::Ask;
    let unasked = match policy.written().constraints.iter().any(|one| asks(&one)) {
        true => " unasked",
        false => "",
    };
    let nothing = allows.all(|allow| never(&allow.id));
    nothing.then(|| Warning {
        kind: "nothing_allowed",
        constraint: None,
        tool: None,
        says: format!("nothing is ever allowed{unasked}: {why}"),
    })
}

/// The document's names that a home does not have: tools, their arguments, roots of paths.
pub(super) fn of_home(policy: &Policy, manifests: &[&Manifest], home: &Home) -> Vec<Warning> {
    let mut warnings = tools(policy, manifests);
    let roots = roots(home);
    for constraint in &policy.written().constraints {
        let mut tests = Vec::new();
        tests_of(&constraint.when, &mut tests);
        warnings.extend(misspelt(constraint, &tests, manifests));
        if let Subject::Tool(tool) = &constraint.subject
            && let Some(found) = manifests.iter().find(|found| found.tool == *tool)
        {
            warnings.extend(arguments(constraint, &tests, found));
        }
        let is_of = |kind: ParamType, test: &Test| {
            let about = manifests.iter().filter(|found| match &constraint.subject {
                Subject::Tool(tool) => found.tool == *tool,
                _ => true,
            });
            // The method of a request is no text that is run.
            let about = about.filter(|found| kind != ParamType::Code || !Network::makes(found));
            let mut params = about.flat_map(|found| &found.params);
            let named = |param: &Param| test.attribute.argument() == Some(&*param.name);
            params.any(|param| param.kind == kind && named(param))
        };
        let is_path = |test: &Test| is_of(ParamType::Path, test);
        if constraint.effect == Effect::Allow {
            let texts = tests.iter().filter(|test| is_of(ParamType::Code, test));
            let named: BTreeSet<&str> =
                texts.filter_map(|test| test.attribute.argument()).collect();
            warnings.extend(named.into_iter().map(|name| written_around(constraint, name)));
        }
        warnings.extend(tests.iter().filter(|test| is_path(test)).filter_map(|test| {
            let name = test.attribute.argument()?;
            not_of_paths(&test.ask).then(|| never_said(constraint, name))
        }));
        if let Some(roots) = &roots {
            let named =
                tests.iter().filter(|test| is_path(test)).flat_map(|test| equals(&test.ask));
            warnings.extend(paths(constraint, &tests, named, roots));
        }
    }
    warnings
}

/// Tools that the home does not have. The shells of clients inside a run come on record when
/// `syscap run` starts the client.
fn tools(policy: &Policy, manifests: &[&Manifest]) -> Vec<Warning> {
    let is_missing = |tool: &&ToolId| {
        manifests.iter().all(|found| found.tool != **tool)
            && Client::shells_inside().all(|shell| shell != **tool)
    };
    let warning = |tool: &ToolId| Warning {
        kind: "unknown_tool",
        constraint: None,
        tool: Some(tool.to_string()),
        says: format!("the home has no tool {tool}"),
    };
    policy.tools().filter(is_missing).map(warning).collect()
}

/// Arguments that are asked about and that the tool never has.
fn arguments(constraint: &Constraint, tests: &[&Test], manifest: &Manifest) -> Vec<Warning> {
    let mut declared: Vec<&str> = manifest.params.iter().map(|param| &*param.name).collect();
    if manifest.extra == Extra::Taken {
        let Some(known) = client_arguments::of_tool(manifest.tool.as_str()) else {
            return Vec::new();
        };
        // An operator may have declared others.
        declared.extend(
            known.iter().filter(|name| !manifest.params.iter().any(|p| *p.name == ***name)),
        );
    }
    let asked: BTreeSet<&str> = tests.iter().filter_map(|test| test.attribute.argument()).collect();
    // What a command does, or writing a file is, is put beside the arguments.
    let code = manifest.params.iter().any(|param| param.kind == ParamType::Code)
        || manifest.extra == Extra::Taken;
    let unknown = asked.into_iter().filter(|name| !declared.contains(name));
    let unknown = unknown.filter(|name| !code || !does().any(|does| does == *name));
    let is_request = Network::makes(manifest) && manifest.tool.as_str() != NET_EGRESS;
    let unknown = unknown.filter(|name| !is_request || *name != URL_PATH_DIMENSION);
    let warning = |name: &str| {
        let (id, tool) = (&constraint.id, &manifest.tool);
        let hint = hint(name, "; it has", &declared);
        Warning {
            kind: "unknown_argument",
            constraint: Some(id.to_string()),
            tool: Some(tool.to_string()),
            says: format!("{id}: {tool} has no argument {name}{hint}"),
        }
    };
    unknown.map(warning).collect()
}

/// The policies' names for a command's effects.
fn does() -> impl Iterator<Item = &'static str> {
    let named = ["does_read", "does_write", "does_repository", "does_run", "does_reach"];
    named.into_iter().chain(Mark::ALL.map(Mark::argument))
}

/// Words that begin like a command's effect, and are none, nor an argument of any tool on record: a
/// deny of one would never apply.
fn misspelt(constraint: &Constraint, tests: &[&Test], manifests: &[&Manifest]) -> Vec<Warning> {
    let asked: BTreeSet<&str> = tests.iter().filter_map(|test| test.attribute.argument()).collect();
    let is_argument = |name: &str| {
        manifests.iter().any(|found| found.params.iter().any(|param| *param.name == *name))
    };
    let wrong = asked.into_iter().filter(|name| {
        name.starts_with("does_") && !does().any(|does| does == *name) && !is_argument(name)
    });
    let warning = |name: &str| {
        let all: Vec<&str> = does().collect();
        let (id, hint) = (&constraint.id, hint(name, "; there is", &all));
        Warning {
            kind: "unknown_mark",
            constraint: Some(id.to_string()),
            tool: None,
            says: format!("{id}: nothing that a command does is called {name}{hint}"),
        }
    };
    wrong.map(warning).collect()
}

/// True if it can never hold of a path.
const fn not_of_paths(ask: &Ask) -> bool {
    match ask {
        Ask::Eq(_) | Ask::In(_) | Ask::Exists | Ask::Missing | Ask::Schema(_) | Ask::Within(_) => {
            false
        }
        Ask::Prefix(_) | Ask::Suffix(_) | Ask::Domain(_) | Ask::Cidr(_) => true,
        Ask::Lt(_) | Ask::Le(_) | Ask::Gt(_) | Ask::Ge(_) => true,
    }
}

fn written_around(constraint: &Constraint, argument: &str) -> Warning {
    let id = &constraint.id;
    let says = format!(
        "{id}: allows by the text of {argument}, which is run: what a text does can be written in \
         another way"
    );
    Warning { kind: "text_of_code", constraint: Some(id.to_string()), tool: None, says }
}

fn never_said(constraint: &Constraint, argument: &str) -> Warning {
    let id = &constraint.id;
    let says = format!(
        "{id}: {argument} is a path, of which that is never known: name files with eq or in, \
         folders with within"
    );
    Warning { kind: "not_of_paths", constraint: Some(id.to_string()), tool: None, says }
}

/// The texts that it is held against.
pub(super) fn equals(ask: &Ask) -> Vec<&str> {
    fn text(constant: &Constant) -> Option<&str> {
        match constant {
            Constant::Text(text) => Some(text),
            Constant::Bool(_) | Constant::Int(_) => None,
        }
    }
    match ask {
        Ask::Eq(constant) => text(constant).into_iter().collect(),
        Ask::In(all) => all.iter().filter_map(text).collect(),
        _ => Vec::new(),
    }
}

/// Paths that lie below no root. Those of a URL have one of their own.
fn paths<'c>(
    constraint: &Constraint,
    tests: &[&'c Test],
    named: impl Iterator<Item = &'c str>,
    roots: &BTreeSet<String>,
) -> Vec<Warning> {
    let asked = tests.iter().filter_map(|test| match (test.attribute.argument()?, &test.ask) {
        (argument, Ask::Within(path)) => Some((argument == URL_PATH_DIMENSION, &**path)),
        _ => None,
    });
    // Nothing is no path that anybody has misspelt.
    let named = named.filter(|path| !path.is_empty()).map(|path| (false, path));
    let asked: BTreeSet<(bool, &str)> = asked.chain(named).collect();
    let id = &constraint.id;
    let says = |(is_of_url, path): (bool, &str)| {
        let (first, rest) = path.split_once('/').map_or((path, None), |(a, b)| (a, Some(b)));
        if is_of_url {
            let says =
                format!("{id}: the path of a URL begins with {URL_ROOT}/, as {URL_ROOT}/{path}");
            return (first != URL_ROOT).then_some(says);
        }
        if roots.contains(first) {
            return None;
        }
        let meant = match (near(first, roots.iter().map(String::as_str)), rest) {
            (None, _) => format!("workspace/{path}"),
            (Some(root), None) => root.to_owned(),
            (Some(root), Some(rest)) => format!("{root}/{rest}"),
        };
        Some(format!("{id}: the home has no root {first}, did you mean {meant}?"))
    };
    let warning =
        |says| Warning { kind: "unknown_root", constraint: Some(id.to_string()), tool: None, says };
    asked.into_iter().filter_map(says).map(warning).collect()
}

/// The roots of the home's paths: `workspace`, the folders that lie beside the agents' own, and
/// what stands for the machine's; `None` where that can't be looked at.
fn roots(home: &Home) -> Option<BTreeSet<String>> {
    let mut roots = BTreeSet::from(["workspace", "shared", MACHINE_ROOT].map(str::to_owned));
    for entry in fs::read_dir(home.base().ok()?).ok()? {
        let entry = entry.ok()?;
        if entry.file_type().ok()?.is_dir() && entry.file_name() != "agents" {
            roots.extend(entry.file_name().into_string());
        }
    }
    Some(roots)
}

pub(super) fn tests_of<'c>(condition: &'c Condition, tests: &mut Vec<&'c Test>) {
    match condition {
        Condition::All(parts) | Condition::Any(parts) => {
            parts.iter().for_each(|part| tests_of(part, tests));
        }
        Condition::Not(part) => tests_of(part, tests),
        Condition::Test(test) => tests.push(test),
    }
}

impl Warning {
    /// One about a constraint.
    pub(super) fn new(kind: &'static str, constraint: &ConstraintId, says: String) -> Self {
        Self { kind, constraint: Some(constraint.to_string()), tool: None, says }
    }

    /// `rest`: what it does where it does not match.
    fn of(lint: &Lint, rest: Option<&str>, given: &str) -> Self {
        let id = &lint.constraint;
        let (kind, tool, says) = match &lint.kind {
            LintKind::NeverMatches => {
                let rest = rest.map(|fail| format!("; its on_fail, {fail}, counts all the same"));
                let rest = rest.unwrap_or_default();
                ("never_matches", None, format!("{id}: no call matches it{given}{rest}"))
            }
            LintKind::AlwaysMatches => (
                "always_matches",
                None,
                format!("{id}: its tests tell nothing{given}: every call that it is about matches"),
            ),
            LintKind::Redundant => {
                ("redundant", None, format!("{id}: without it nothing would change{given}"))
            }
            LintKind::OutOfReach(tool) => (
                "out_of_reach",
                Some(tool.to_string()),
                format!("{id}: no call of {tool} is ever allowed, degraded or asked about{given}"),
            ),
            other => ("odd", None, format!("{id}: {other:?}{given}")),
        };
        Self { kind, constraint: Some(id.to_string()), tool, says }
    }

    pub(super) fn json(&self) -> String {
        let optional = |text: &Option<String>| text.as_deref().map_or("null".to_owned(), quote);
        Object::new()
            .text("kind", self.kind)
            .json("constraint", &optional(&self.constraint))
            .json("tool", &optional(&self.tool))
            .text("says", &self.says)
            .finish()
    }
}
