//! Rotations that find a next key which lies there already: left by one that broke off, or put
//! there by whoever writes to the folder.

use std::fs;

use serde_json::Value;
use syscap::SystemEntropy;
use syscap::format::Role;
use syscap::keys::{KeyFile, KeyUse, Passphrase, Seal};

use crate::cli::support::{TestHome, run};
use crate::cli::terminal::{self, Person, sealed};

/// The keys of a role on record.
fn keys(home: &str, role: &str) -> Vec<String> {
    let all = run(["keys", "list", home, "--json"]).fine().json();
    let listed = all.into_iter().find(|one| one["use"] == role).unwrap();
    let keys = listed["keys"].as_array().unwrap().iter();
    keys.map(|key| key["key"].as_str().unwrap().to_owned()).collect()
}

/// Makes a key in a file, and says which.
fn made(file: &str, role: &str) -> String {
    let made = run(["keys", "new", file, "--role", role, "--no-passphrase", "--json"]);
    made.fine().one()["public"].as_str().unwrap().to_owned()
}

/// A rotation that broke off when it was on record does not stand in for what is asked for now:
/// with the recovery key the role has one key in the end, and what was cut off is over.
#[test]
fn interrupted_rotation_does_not_replace_a_recovery_or_cut_off() {
    let home = TestHome::new();
    let path = home.path();
    let thiefs = home.text_beside("thiefs.key");
    for role in ["operator", "issuer"] {
        let file = home.beside(&format!("home/keys/{role}.key"));
        let before = fs::read(&file).unwrap();
        run(["keys", "rotate", &path, "--role", role, "--no-passphrase"]).fine();
        fs::rename(&file, file.with_extension("key.next")).unwrap();
        fs::write(&file, before).unwrap();
    }
    // The thief, by the key that the operator has now, has one too.
    let theirs = made(&thiefs, "operator");
    let after = home.log().last().unwrap()["seq"].as_u64().unwrap().to_string();
    let token = home.worker("a");
    run(["keys", "add", &path, "--role", "operator", "--key-file", &thiefs]).fine();
    assert_eq!(keys(&path, "operator").len(), 2);
    let recovery = home.text_beside("home/keys/recovery.key");
    let args = ["keys", "rotate", &path, "--role", "operator", "--recovery", &recovery];
    let rotated = run(args.iter().chain(&["--no-passphrase", "--json"])).fine().json();
    assert!(rotated.last().unwrap()["record"].is_u64());
    let alone = keys(&path, "operator");
    assert_eq!(alone.len(), 1, "the thief's key stays on record");
    assert!(!alone.contains(&theirs));
    let args = ["keys", "rotate", &path, "--role", "issuer", "--cut-off", &after];
    run(args).fine();
    let answer = &home.call("a", &token, crate::cli::support::ECHO.as_bytes())[0];
    assert_eq!(answer["status"], "error", "what was to be cut off still calls");
    for role in ["operator", "issuer"] {
        assert!(!home.beside(&format!("home/keys/{role}.key.next")).exists());
    }
    home.worker("a");
    assert_eq!(home.verify(), 0);
}

/// A next key that is not on record may be the thief's own: who takes the home back makes another.
#[test]
fn a_recovery_takes_up_no_key_that_lies_there() {
    let home = TestHome::new();
    let path = home.path();
    let next = home.beside("home/keys/operator.key.next");
    let planted = made(next.to_str().unwrap(), "operator");
    let recovery = home.text_beside("home/keys/recovery.key");
    let args = ["keys", "rotate", &path, "--role", "operator", "--recovery", &recovery];
    run(args.iter().chain(&["--no-passphrase"])).fine();
    let now = keys(&path, "operator");
    assert_eq!(now.len(), 1);
    assert!(!now.contains(&planted), "the planted key signs for the operator now");
    assert!(!next.exists());
    run(["keys", "rotate", &path, "--role", "issuer"]).fine();
    assert_eq!(home.verify(), 0);
}

/// Nor does one that is not sealed take the place of a key that is, without a word.
#[test]
fn no_open_key_follows_a_sealed_one_without_a_word() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    let path = home.path();
    sealed(&path, "secret");
    let next = home.beside("home/keys/operator.key.next");
    let planted = made(next.to_str().unwrap(), "operator");
    let mut person = Person::runs(["keys", "rotate", &path, "--role", "operator"]);
    person.sees("operator.key.next: is not sealed");
    assert_eq!(person.end().code, Some(2));
    assert!(!keys(&path, "operator").contains(&planted));
    // Somebody says that it is meant.
    let args = ["keys", "rotate", &path, "--role", "operator", "--no-passphrase", "--json"];
    let mut person = Person::runs(args);
    person.sees("passphrase for the operator key: ").types("secret");
    let said: Value = serde_json::from_str(person.end().fine().out.trim_end()).unwrap();
    assert_eq!(said["key"], planted);
}

/// One that somebody sealed is named, where its passphrase is asked for and where that is wrong; who
/// did not make it goes past it.
#[test]
fn sealed_next_key_is_named_and_can_be_passed_over() {
    let home = TestHome { folder: host_support::scratch() };
    let path = home.path();
    run(["init", &path, "--no-passphrase"]);
    let next = home.beside("home/keys/operator.key.next");
    let seal = Seal::By(Passphrase::new(b"a thief's own".to_vec()).unwrap());
    let operator = KeyUse::Role(Role::Operator);
    let (planted, _) = KeyFile::generate(operator, &seal, &SystemEntropy).unwrap();
    planted.write_new(&next).unwrap();
    if terminal::is_there() {
        let mut person = Person::runs(["keys", "rotate", &path, "--role", "operator"]);
        person.sees("operator.key.next lies there");
        for _ in 0..3 {
            person.sees("passphrase for the operator key: ").types("secret");
        }
        person.sees("operator.key.next: this is not its passphrase").sees("--anew");
        assert_eq!(person.end().code, Some(2));
    }
    let rotated = ["keys", "rotate", &path, "--role", "operator", "--anew", "--no-passphrase"];
    run(rotated).fine();
    assert!(!next.exists() && !keys(&path, "operator").contains(&planted.public_key().to_string()));
    assert_eq!(home.verify(), 0);
}
