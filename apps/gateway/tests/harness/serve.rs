//! The server of a home, as the command line starts one: `serve HOME` says `ready`, and ends with the
//! last gateway.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use syscap::{Error, Options, Starter, Until};

/// How long one stays where no gateway comes.
const IDLE: Duration = Duration::from_secs(20);
/// The pause between two looks.
const LOOK: Duration = Duration::from_millis(20);

/// Starts one where there is none.
pub(crate) fn starter(home: &Path) -> Starter {
    let home = home.to_path_buf();
    Starter::new(move || {
        let none = |why: &str| Error::NoServer { home: home.clone(), why: why.to_owned() };
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.arg("serve").arg(&home).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        thread::spawn(move || child.wait());
        match said.trim() {
            "ready" | "" => Ok(()),
            why => Err(none(why)),
        }
    })
}

pub(crate) fn serve(words: Vec<String>) {
    rustix::process::setsid().unwrap();
    let home = PathBuf::from(&words[0]);
    let access = match Options::new().serve_until(Until::LastOut(IDLE)).open_unless_served(&home) {
        Ok(Some(access)) => access,
        Ok(None) => return,
        Err(why) => return println!("{why}"),
    };
    println!("ready");
    while access.wait_unused(LOOK).is_ok_and(|unused| !unused) && access.tick().is_ok() {}
    // It may have been shut down.
    drop(access.close());
}
