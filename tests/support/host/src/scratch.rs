//! A folder for a home, whose end is the end of the servers that were started for what lies in it.

use std::{fs, ops::Deref, path::Path};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// A temporary folder. Commands start `syscap serve HOME`, which stays for minutes in case somebody
/// comes again: where HOME lies below this folder, it is killed when the folder is removed.
pub struct Scratch(TempDir);

/// A new one.
pub fn scratch() -> Scratch {
    Scratch(TempDir::new().unwrap())
}

/// A new one below a folder.
pub fn scratch_in(folder: &Path) -> Scratch {
    Scratch(TempDir::new_in(folder).unwrap())
}

impl Deref for Scratch {
    type Target = TempDir;

    fn deref(&self) -> &TempDir {
        &self.0
    }
}

impl AsRef<Path> for Scratch {
    fn as_ref(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        for pid in servers(self.0.path()) {
            // An error says that it has ended meanwhile.
            let (Ok(()) | Err(_)) = kill_process(pid, Signal::KILL);
        }
    }
}

/// The processes whose command line is `.. serve PATH..` with a path below a folder.
fn servers(folder: &Path) -> impl Iterator<Item = Pid> {
    let below = format!("{}/", folder.display());
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |process| {
        let pid: i32 = process.file_name().to_str()?.parse().ok()?;
        let line = fs::read(process.path().join("cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut words = line.split('\0').skip(1);
        let is_server = words.next() == Some("serve") && words.any(|word| word.starts_with(&below));
        Pid::from_raw(pid).filter(|_| is_server)
    })
}
