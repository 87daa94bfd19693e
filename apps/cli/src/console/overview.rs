//! The home in a few lines: its policy in words, its log, how it stands; each with the command that does
//! more.

use std::path::Path;

use syscap::audit::SqliteReader;
use syscap::kernel::StoreError;
use syscap::policy::{Constraint, Effect, Policy};
use syscap::view::View;

use crate::exit::Failure;
use crate::freeze;
use crate::log::head;
use crate::output::{Object, array, quote, word_of};
use crate::policy::Loaded;

/// The lines, for the page.
pub(super) fn json(home: &Path, view: &View) -> Result<String, Failure> {
    let failed = |error: StoreError| Failure::home(home)(syscap::Error::Home(error));
    let word = word_of(home);
    let row = |name: &str, lines: Vec<String>, command: String| {
        Object::new()
            .text("name", name)
            .json("lines", &array(lines.iter().map(|line| quote(line))))
            .text("command", &command)
            .finish()
    };
    let policy = match view.policy {
        Some(hash) => {
            let mut lines = vec![format!("{hash}")];
            lines.extend(constraints(&Loaded::of(home)?));
            lines
        }
        None => vec!["none is in force: no call is let through".to_owned()],
    };
    let mut reader = SqliteReader::open(home).map_err(failed)?;
    let head = reader.head().map_err(failed)?;
    let log = head.map(|head| format!("ends at {}", head::text(head)));
    let counts = &view.counts;
    let refused: u64 = counts.refused.values().sum();
    let mut status = vec![format!(
        "{} calls since the server began: {} let through, {refused} refused, {} failed",
        counts.calls, counts.allowed, counts.failed
    )];
    status.push(format!("{} running, {} sessions", view.running_in_all, view.sessions_in_all));
    status.extend(view.frozen.iter().map(|freeze| format!("frozen: {}", freeze::named(freeze))));
    let rows = [
        row("Policy", policy, format!("syscap policy show {word}")),
        row("Log", log.into_iter().collect(), format!("syscap verify {word}")),
        row("Status", status, format!("syscap doctor {word}")),
    ];
    Ok(array(rows))
}

/// A line for each constraint of a document: its name, its verdict, and why.
fn constraints(policy: &Loaded) -> Vec<String> {
    let document = policy.document().map(Policy::written);
    let all = document.into_iter().flat_map(|document| &document.constraints);
    let line = |constraint: &Constraint| {
        let Constraint { id, effect, on_fail, reason, .. } = constraint;
        let on_fail = on_fail.name();
        match effect {
            Effect::Allow => format!("{id}: allow, else {on_fail}. {reason}"),
            Effect::Deny => format!("{id}: {on_fail}. {reason}"),
        }
    };
    all.map(line).collect()
}
