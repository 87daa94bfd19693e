//! Keys that were damaged, exchanged or taken away: what stops agents works all the same, and the
//! recovery key puts others in their place.

use std::{fs, process::Command};

use crate::cli::support::{TestHome, run, syscap};
use crate::cli::terminal::{self, Person};

/// A file that is no key of its role signs nothing. Nothing else waits for it to be mended.
#[test]
fn a_file_that_is_no_key_stops_no_stop() {
    let home = TestHome::new();
    let path = home.path();
    let recovery = home.text_beside("recovery.key");
    fs::rename(home.beside("home/keys/recovery.key"), &recovery).unwrap();
    let token = home.worker("a");
    for role in ["policy", "approver", "operator"] {
        let file = home.beside(&format!("home/keys/{role}.key"));
        let whole = fs::read(&file).unwrap();
        for bytes in [&whole[..whole.len() / 2], b"", &[7; 5_000]] {
            fs::write(&file, bytes).unwrap();
            run(["freeze", &path, "--all"]).fine();
            match role {
                "operator" => drop(run(["thaw", &path, "--all"]).failed(1)),
                _ => drop(run(["thaw", &path, "--all"]).fine()),
            }
            home.worker("b");
            assert_eq!(run(["doctor", &path]).code, 1);
            // Who looks what is wrong sees the others.
            let listed = run(["keys", "list", &path, "--json"]).fine().json();
            assert_eq!(listed.len(), 6);
            let here = listed.iter().filter(|one| one["keys"][0]["here"] == true);
            assert!(here.clone().all(|one| one["use"] != role) && here.count() >= 2);
        }
    }
    run(["revoke", &path, &token]).fine();
    // The operator's key signs no change of keys; the recovery key does.
    run(["keys", "rotate", &path, "--role", "issuer"]).failed(2);
    for role in ["operator", "policy", "approver"] {
        // Nor does what somebody put in the next key's place.
        fs::write(home.beside(&format!("home/keys/{role}.key.next")), "planted").unwrap();
        let rotate = ["keys", "rotate", &path, "--role", role, "--recovery", &recovery];
        run(rotate.iter().chain(&["--no-passphrase"])).fine();
    }
    run(["keys", "rotate", &path, "--role", "issuer"]).fine();
    assert_eq!(run(["doctor", &path]).code, 0);
    assert_eq!(home.verify(), 0);
}

/// Keys that were taken away, folder and all, are made anew.
#[test]
fn keys_that_are_gone_are_made_anew() {
    let home = TestHome::new();
    let path = home.path();
    let recovery = home.text_beside("recovery.key");
    fs::rename(home.beside("home/keys/recovery.key"), &recovery).unwrap();
    fs::remove_dir_all(home.beside("home/keys")).unwrap();
    for role in ["operator", "issuer", "policy", "revoker", "approver"] {
        let rotate = ["keys", "rotate", &path, "--role", role, "--recovery", &recovery];
        run(rotate.iter().chain(&["--no-passphrase"])).fine();
    }
    home.worker("a");
    run(["freeze", &path, "--all"]).fine();
    assert_eq!(home.verify(), 0);
}

/// A cut-off after the last record is no cut-off, and leaves nothing behind.
#[test]
fn cut_off_after_the_last_record_is_refused() {
    let home = TestHome::new();
    let path = home.path();
    run(["keys", "rotate", &path, "--role", "issuer", "--cut-off", "9999"]).failed(2);
    assert!(!home.beside("home/keys/issuer.key.next").exists());
}

/// Who ends the input answers nothing: no home is made that is open without a word.
#[test]
fn the_end_of_input_is_no_empty_passphrase() {
    if !terminal::is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home");
    let mut person = Person::runs(["init", home.to_str().unwrap()]);
    person.sees("(empty for no passphrase): ").press(b"\x04");
    assert_eq!(person.end().code, Some(1));
    assert!(!home.exists());
}

/// A key that can't be written whole leaves no half one, which would be in the way of the next.
#[test]
fn a_key_that_can_t_be_written_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("second.key");
    let new = |limit: &str| {
        let limited = format!("trap '' XFSZ; ulimit -f {limit}; exec \"$0\" \"$@\"");
        let syscap = syscap();
        let mut shell = Command::new("sh");
        shell.args(["-c", &limited]).arg(syscap.get_program());
        let ended = shell.args(["keys", "new", "--role", "operator", "--no-passphrase"]).arg(&file);
        ended.output().unwrap().status.code()
    };
    assert_eq!((new("0"), file.exists()), (Some(1), false));
    assert_eq!((new("unlimited"), file.exists()), (Some(0), true));
}
