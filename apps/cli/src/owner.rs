//! A home has one user. Root at another's home goes on as its owner: what it makes is the owner's,
//! and an administrator's `freeze` reaches the server that runs.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use syscap::audit::DATABASE_FILE;

use crate::exit::{Exit, diagnose, tell};

/// Starts this program anew as the owner of the home that is named, where it is root's process and
/// the home another's. Comes back with an exit code where that can't be done. To be called before
/// anything is opened.
pub(crate) fn go_on_as_owner() -> Option<ExitCode> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let (home, user, group) = home()?;
    tell(&format!("{} is user {user}'s home: going on as that user", home.display()));
    let mut words = env::args_os();
    let mut program = Command::new("/proc/self/exe");
    program.arg0(words.next().unwrap_or_else(|| OsString::from("syscap"))).args(words);
    // Other groups of root's are given up with it.
    let failed = program.uid(user).gid(group).exec();
    diagnose(&format!(
        "{}: root can't go on as its owner ({failed}): sudo -u '#{user}' syscap ..",
        home.display()
    ));
    Some(Exit::Home.into())
}

/// The home that the command line, or the environment, names, where its database is not root's: the
/// owner and the group.
fn home() -> Option<(PathBuf, u32, u32)> {
    let words = env::args_os().skip(1).take_while(|word| word != "--");
    let named = words.chain(env::var_os("SYSCAP_HOME")).map(PathBuf::from);
    let of = |path: PathBuf| Some((fs::metadata(path.join(DATABASE_FILE)).ok()?, path));
    let (owner, home) = named.filter_map(of).find(|(database, _)| database.is_file())?;
    (owner.uid() != 0).then(|| (home, owner.uid(), owner.gid()))
}
