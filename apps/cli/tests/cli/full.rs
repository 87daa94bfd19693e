//! A disk that is really full, and the way back.

use std::{fs, path::PathBuf, process::Command};

use serde_json::Value;

use crate::cli::support::{ECHO, Run, Serving, TestHome, reason, run, run_with};

/// More than the reserve and what calls need besides; so much has to be written to fill it.
const DISK_BYTES: u64 = 40 << 20;

/// A small file system of its own, as long as this lives.
struct Disk {
    folder: host_support::Scratch,
}

impl Disk {
    /// `None` where mounting is not allowed.
    fn mount() -> Option<Self> {
        let folder = host_support::scratch();
        let size = format!("size={DISK_BYTES}");
        let mounted = Command::new("mount")
            .args(["-t", "tmpfs", "-o", &size, "syscap-test"])
            .arg(folder.path())
            .output();
        match mounted {
            Ok(output) if output.status.success() => Some(Self { folder }),
            Ok(output) => {
                println!("skipped: mount: {}", String::from_utf8_lossy(&output.stderr));
                None
            }
            Err(error) => {
                println!("skipped: mount: {error}");
                None
            }
        }
    }

    fn free(&self) -> u64 {
        let disk = rustix::fs::statvfs(self.folder.path()).unwrap();
        disk.f_bavail * disk.f_frsize
    }

    /// Takes all room that is left.
    fn fill(&self, name: &str) -> PathBuf {
        let path = self.folder.path().join(name);
        let file = fs::File::create(&path).unwrap();
        while self.free() > 0 {
            let at = file.metadata().unwrap().len();
            let flags = rustix::fs::FallocateFlags::empty();
            rustix::fs::fallocate(&file, flags, at, self.free()).unwrap();
        }
        path
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        drop(Command::new("umount").arg("-l").arg(self.folder.path()).status());
    }
}

fn finding(home: &str, what: &str) -> (i32, Value) {
    let run = run(["doctor", home, "--json"]);
    let found = run.json().into_iter().find(|finding| finding["what"] == what);
    (run.code, found.expect(what))
}

fn call(home: &str, token: &str) -> Run {
    run_with(["call", home, "--agent", "a", "--token", token], ECHO.as_bytes())
}

/// What a person would do on a full disk, in turn; nothing that was answered is lost.
#[test]
fn there_is_a_way_back_from_a_full_disk() {
    let Some(disk) = Disk::mount() else { return };
    let at = TestHome { folder: host_support::scratch_in(disk.folder.path()) };
    run(["init", &at.path(), "--no-passphrase"]).fine();
    let (home, reserve) = (at.path(), at.beside("home/reserve"));
    let [token, other, third] = [(); 3].map(|()| at.token("a", &["--tool", "echo"]));
    assert_eq!(call(&home, &token).fine().one()["status"], "ok");
    assert_eq!(finding(&home, "disk").1["level"], "ok");
    assert_eq!(finding(&home, "reserve").1["level"], "ok");

    // Full, with the reserve: a call is refused for it, a revocation is not.
    let junk = disk.fill("junk");
    let (code, room) = finding(&home, "disk");
    assert_eq!((code, &room["level"]), (1, &Value::from("bad")));
    assert_eq!((&room["free_bytes"], &room["reserve"]), (&Value::from(0), &Value::from(true)));
    assert_eq!(reason(&call(&home, &token).fine().one()), "no_room");
    assert!(!reserve.exists(), "it was given up, or nothing could have been opened");
    run(["revoke", &home, &other]).fine();
    assert_eq!(run(["verify", &home]).code, 0);

    // A process holds the home when the rest is taken: it stops, and says why.
    let mut holder = at.hold("a", &token);
    assert_eq!(reason(&holder.ask(ECHO)), "no_room");
    let more = disk.fill("more");
    holder.send(ECHO);
    assert_ne!(holder.end(), 0, "what was not answered is no success");

    // Nothing opens now, and that is said in one line; the doctor knows how much is missing.
    run(["revoke", &home, &third]).failed(4);
    call(&home, &token).failed(4);
    for reading in [["log", "show", &home].as_slice(), &["verify", &home]] {
        let read = run(reading);
        assert!([0, 4, 11].contains(&read.code), "{reading:?}: {}{}", read.code, read.err);
        assert!(read.err.lines().count() <= 1, "{}", read.err);
    }
    let (code, room) = finding(&home, "disk");
    assert_eq!((code, &room["level"], &room["reserve"]), (1, &"bad".into(), &false.into()));
    let missing = room["missing_bytes"].as_u64().unwrap();
    assert!(missing > 16 << 20 && missing < DISK_BYTES, "{missing}");
    let next = room["next"].as_str().unwrap();
    assert_eq!(next, format!("syscap serve {home}"));

    // As much as the doctor says, and no more, is what it takes.
    fs::remove_file(more).unwrap();
    let file = fs::OpenOptions::new().write(true).open(&junk).unwrap();
    let left = file.metadata().unwrap().len() - missing.saturating_sub(disk.free());
    file.set_len(left).unwrap();
    assert_eq!(finding(&home, "disk").0, 0);
    assert_eq!(finding(&home, "reserve").1["level"], "note");
    goes_on(&home, &[&token, &other, &third]);
    assert_eq!(fs::metadata(&reserve).unwrap().len(), 4 << 20, "it is there again");
    assert_eq!(finding(&home, "reserve").1["level"], "ok");
    assert_eq!(run(["verify", &home]).code, 0);
    let log = at.log();
    let count = |kind: &str| log.iter().filter(|record| record["kind"] == kind).count();
    assert_eq!((count("revoke"), count("intent"), count("outcome")), (2, 2, 2));
}

/// By the command that the doctor names, whose holder others attach to, and alone.
fn goes_on(home: &str, [token, revoked, other]: &[&String; 3]) {
    let serving = Serving::of(home, &[]);
    assert_eq!(call(home, token).fine().one()["status"], "ok");
    serving.stop();
    assert_eq!(reason(&call(home, revoked).fine().one()), "revoked");
    run(["revoke", home, other]).fine();
}
