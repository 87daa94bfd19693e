//! The agents' attempts.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use syscap::Written;
use syscap::{Args, Runtime, Session, args, format::Reason};

use super::stage::{Cast, Expected, SHORT_LIFE, Stage};
use crate::exit::Failure;

/// The text that the researcher writes.
pub(super) const PLAN: &str = "read, think, write\n";

type Played = Result<(), Failure>;

pub(super) fn all(stage: &mut Stage<'_>, runtime: &Runtime, secret: &Path) -> Played {
    let cast = Cast::new(runtime)?;
    allowed(stage, &cast)?;
    escapes(stage, runtime, &cast, secret)?;
    not_theirs(stage, runtime, &cast)?;
    malformed(stage, &cast)?;
    budgets(stage, &cast)?;
    ended(stage, runtime, &cast)
}

/// Calls `tool` and shows what came of it.
fn call(
    stage: &mut Stage<'_>,
    session: &Session,
    tried: &str,
    tool: &str,
    args: Args,
    expected: Expected,
) -> Played {
    let result = session.call(tool, args)?;
    stage.attempt(tried, expected, &result)
}

fn allowed(stage: &mut Stage<'_>, cast: &Cast) -> Played {
    let me = &cast.researcher;
    let plan = "notes/plan.txt";
    call(stage, me, "echo a value", "echo", args! { "value": "hello" }, Expected::Ok)?;
    call(stage, me, "tell the time", "current_time", args! {}, Expected::Ok)?;
    let write = args! { "path": plan, "text": PLAN, "parents": true };
    call(stage, me, "write notes/plan.txt", "fs.write", write, Expected::Ok)?;
    let result = me.call("fs.read", args! { "path": plan })?;
    stage.attempt("read it back", Expected::Ok, &result)?;
    let read = result.text().unwrap_or_default();
    stage.fact("it holds", &format!("{read:?}"), read == PLAN)?;
    call(stage, me, "list notes", "fs.list", args! { "path": "notes" }, Expected::Ok)?;
    let once = || args! { "path": "once.txt", "text": "once" };
    let first = me.request("fs.write").args(once()).key("turn-1").wait()?;
    stage.attempt("write once.txt with an idempotency key", Expected::Ok, &first)?;
    let again = me.request("fs.write").args(once()).key("turn-1").wait()?;
    stage.attempt("the same again: answered, not run again", Expected::Ok, &again)?;
    let other =
        me.request("fs.write").args(args! { "path": "b.txt", "text": "b" }).key("turn-1").wait()?;
    stage.attempt("that key for another file", Expected::Refused(Reason::KeyReused), &other)
}

/// Ways out of the workspace, to a file that lies there for the taking.
fn escapes(stage: &mut Stage<'_>, runtime: &Runtime, cast: &Cast, secret: &Path) -> Played {
    let me = &cast.researcher;
    let workspace = workspace(runtime, "researcher")?;
    // What somebody else who can write to the workspace might have left there.
    let link = workspace.join("shortcut");
    let outside = secret.parent().unwrap_or(secret);
    symlink(outside, &link).map_err(Failure::file(&link))?;
    let absolute = secret.display().to_string();
    let depth = workspace.components().count();
    let climb = format!("{}{}", "../".repeat(depth), absolute.trim_start_matches('/'));
    let bad_path = Expected::Refused(Reason::BadPath);
    let linked = Expected::Refused(Reason::Link);
    let read = |path: &str| args! { "path": path };
    let write = |path: &str| args! { "path": path, "text": "overwritten" };
    let (path, shortcut) = (&*climb, "shortcut/secret.txt");
    call(stage, me, "read the secret by ../../..", "fs.read", read(path), bad_path)?;
    call(stage, me, "overwrite it by ../../..", "fs.write", write(path), bad_path)?;
    call(stage, me, "read it by its absolute path", "fs.read", read(&absolute), bad_path)?;
    call(stage, me, "read it through a symbolic link", "fs.read", read(shortcut), linked)?;
    call(stage, me, "overwrite it through the link", "fs.write", write(shortcut), linked)?;
    let shared = write("shared/report.txt");
    let out_of_scope = Expected::Refused(Reason::OutOfScope);
    call(stage, me, "write to shared, granted for reading", "fs.write", shared, out_of_scope)
}

/// Things that belong to others, or to nobody.
fn not_theirs(stage: &mut Stage<'_>, runtime: &Runtime, cast: &Cast) -> Played {
    let (me, intern) = (&cast.researcher, &cast.intern);
    let diary = workspace(runtime, "intern")?.join("diary.txt");
    fs::write(&diary, "dear diary").map_err(Failure::file(&diary))?;
    let theirs = args! { "path": "../../intern/workspace/diary.txt" };
    let out_of_scope = Expected::Refused(Reason::OutOfScope);
    call(stage, me, "read another agent's diary", "fs.read", theirs, out_of_scope)?;
    let write = args! { "path": "a.txt", "text": "a" };
    let not_granted = Expected::Refused(Reason::NotGranted);
    call(stage, intern, "write, with a token for reading", "fs.write", write, not_granted)?;
    let unknown = Expected::Refused(Reason::UnknownTool);
    call(stage, me, "call a tool that there isn't", "shell.run", args! {}, unknown)?;
    let envelope = format!(
        r#"{{"tool_id": "echo", "args": {{"value": 1}}, "capability_token_id": "{}"}}"#,
        intern.token()
    );
    let not_bound = Expected::Refused(Reason::NotBound);
    let result = me.envelope(envelope.as_bytes(), Written::Json).wait()?;
    stage.attempt("name the intern's token in a call", not_bound, &result)?;
    let opened = runtime.session("intern", me.token());
    control(stage, runtime, "open a session with the other's token", not_bound, opened.err())
}

/// A control event that must be refused; its record is the last one.
fn control(
    stage: &mut Stage<'_>,
    runtime: &Runtime,
    tried: &str,
    expected: Expected,
    error: Option<syscap::Error>,
) -> Played {
    let record = runtime.look(|kernel| kernel.head().seq)?;
    let reason = match error {
        None => None,
        Some(syscap::Error::Refused(refused)) => Some(refused.reason()),
        Some(error) => return Err(error.into()),
    };
    let happened = if reason.is_some() { "refused" } else { "ok" };
    stage.row(tried, expected, happened, reason, record)
}

fn malformed(stage: &mut Stage<'_>, cast: &Cast) -> Played {
    let me = &cast.researcher;
    let broken = me.envelope(b"{\"tool_id\": \"echo\", \"args\": ", Written::Json).wait()?;
    let expected = Expected::Refused(Reason::Malformed);
    stage.attempt("send half a line of JSON", expected, &broken)?;
    let twice = me
        .envelope(br#"{"tool_id": "echo", "tool_id": "fs.write", "args": {}}"#, Written::Json)
        .wait()?;
    let expected = Expected::Refused(Reason::DuplicateKey);
    stage.attempt("name two tools in one call", expected, &twice)?;
    let smuggled = args! { "path": "a.txt", "text": "a", "mode": "0777" };
    let expected = Expected::Refused(Reason::UnknownArgument);
    call(stage, me, "add an argument that the tool lacks", "fs.write", smuggled, expected)
}

fn budgets(stage: &mut Stage<'_>, cast: &Cast) -> Played {
    let frugal = &cast.frugal;
    let write = |text: &str| args! { "path": "a.txt", "text": text };
    let over = Expected::Refused(Reason::OverBudget);
    let long = "x".repeat(100);
    let tried = "write 100 bytes with a budget of 16";
    call(stage, frugal, tried, "fs.write", write(&long), over)?;
    let tried = "write 3 bytes";
    call(stage, frugal, tried, "fs.write", write("abc"), Expected::Ok)?;
    call(stage, frugal, "write 3 more", "fs.write", write("def"), Expected::Ok)?;
    let tried = "make a fourth call with a budget of three";
    call(stage, frugal, tried, "fs.write", write("ghi"), over)
}

fn ended(stage: &mut Stage<'_>, runtime: &Runtime, cast: &Cast) -> Played {
    std::thread::sleep(SHORT_LIFE);
    let echo = || args! { "value": "still there?" };
    let expired = Expected::Refused(Reason::Expired);
    call(stage, &cast.hasty, "use a token that has expired", "echo", echo(), expired)?;
    runtime.revoke(cast.researcher.token())?;
    let revoked = Expected::Refused(Reason::Revoked);
    call(stage, &cast.researcher, "use a token that was revoked", "echo", echo(), revoked)
}

/// The path of an agent's workspace.
pub(super) fn workspace(runtime: &Runtime, agent: &str) -> Result<PathBuf, Failure> {
    let base = runtime.home().base()?.join("agents").join(agent).join("workspace");
    fs::canonicalize(&base).map_err(Failure::file(&base))
}
