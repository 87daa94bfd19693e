//! A trial of a home's disk: opened, locked, appended to, served, called.

use std::{fmt, fs, path::Path, process};

use syscap::format::{Budget, Durability};
use syscap::prelude::{Grant, args};
use syscap::{Error, Runtime};

use super::findings::Findings;
use crate::exit::Failure;

/// Makes a home beside the log of this one, works with it, and takes it away. Only a trial shows
/// that work will go well: a disk may be mounted read-only, a system may lack `/proc`, a folder may
/// be another user's.
pub(super) fn look(findings: &mut Findings<'_>, folder: &Path) -> Result<(), Failure> {
    let scratch = folder.join(format!(".doctor-{}", process::id()));
    let shown = scratch.display();
    let bad = |findings: &mut Findings<'_>, step: &str, error: &dyn fmt::Display| {
        let remedy = "calls would fail as this did: make the folder writable, and see that /proc \
                      is there";
        findings.bad("work", &format!("{shown}: {step}: {error}; {remedy}"))
    };
    // What is removed is what was made here.
    if let Err(error) = fs::create_dir(&scratch) {
        return bad(findings, "make a folder", &error);
    }
    match work(&scratch) {
        Ok(()) => findings.fine("work", "a home beside this one was made, served and called")?,
        Err((step, error)) => bad(findings, step, &error)?,
    }
    match fs::remove_dir_all(&scratch) {
        Ok(()) => Ok(()),
        Err(error) => findings.note("work", &format!("{shown} is left, remove it: {error}")),
    }
}

fn work(scratch: &Path) -> Result<(), (&'static str, Error)> {
    let at = |step| move |error| (step, error);
    let made = syscap::Options::new().durability(Durability::Full).create(scratch);
    made.map_err(at("make a home"))?.close().map_err(at("close it"))?;
    let holder = Runtime::open(scratch).map_err(at("open it, lock it and serve it"))?;
    let attached = Runtime::connect(scratch).map_err(at("connect to its socket"))?;
    let grant = Grant::to("doctor").tools(["echo"]).budget(Budget::standard());
    let token = attached.issue(grant).map_err(at("append to its log"))?;
    let session = attached.session("doctor", token).map_err(at("append to its log"))?;
    session.call("echo", args! { "value": "here" }).map_err(at("call a tool"))?;
    drop(session);
    attached.close().map_err(at("let go of it"))?;
    holder.close().map_err(at("close it"))
}
