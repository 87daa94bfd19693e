//! Hosts that are none: a constant with a port, a star or a path equals no host, and a deny by it
//! would never apply. Documents that are in force already decide as they always did (`doctor` says
//! which); none is checked or put in force anew.

use syscap::format::{Manifest, ScopeType, ToolId};
use syscap::policy::{Constraint, Policy, Subject, Test, host_of};
use syscap::syscalls::net::{HTTP_REQUEST, Network};

use super::warnings::{Warning, equals, tests_of};

/// The argument of requests that is compared as a host.
const URL: &str = "url";

/// The tests of a document that compare a host with what is none, by the tools of a home. The
/// built-in request is known without one.
pub(crate) fn never(policy: &Policy, manifests: &[&Manifest]) -> Vec<Warning> {
    let mut found = Vec::new();
    for constraint in &policy.written().constraints {
        let mut tests = Vec::new();
        tests_of(&constraint.when, &mut tests);
        let of_hosts = tests.into_iter().filter(|test| is_of_host(constraint, test, manifests));
        let constants = of_hosts.flat_map(|test| equals(&test.ask));
        let no_hosts = constants.filter(|constant| host_of(constant).is_none());
        found.extend(no_hosts.map(|constant| warning(constraint, constant)));
    }
    found
}

fn is_of_host(constraint: &Constraint, test: &Test, manifests: &[&Manifest]) -> bool {
    let Some(argument) = test.attribute.argument() else { return false };
    let is_about = |tool: &ToolId| match &constraint.subject {
        Subject::Tool(named) => named == tool,
        _ => true,
    };
    let is_own =
        matches!(&constraint.subject, Subject::Tool(tool) if tool.as_str() == HTTP_REQUEST);
    if is_own && argument == URL {
        return true;
    }
    manifests.iter().filter(|manifest| is_about(&manifest.tool)).any(|manifest| {
        let declared = manifest.argument_resources();
        let mut hosts = declared.filter(|one| one.kind == ScopeType::Hosts);
        hosts.any(|one| *one.argument == *argument) || (Network::makes(manifest) && argument == URL)
    })
}

fn warning(constraint: &Constraint, constant: &str) -> Warning {
    let id = &constraint.id;
    let says = format!(
        "{id}: no host is {constant:?}, so it never matches: name the host alone, or use domain for \
         all below one"
    );
    Warning::new("never_matches", id, says)
}
