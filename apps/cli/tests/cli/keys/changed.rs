//! Keys that are listed, added, removed, rotated and taken back.

use std::{collections::BTreeSet, fs, path::Path, thread};

use serde_json::Value;

use crate::cli::support::{ECHO, Serving, TestHome, run};
use crate::cli::terminal::{self, Person, sealed};

const ROLES: [&str; 5] = ["issuer", "policy", "revoker", "approver", "operator"];

fn listed(home: &str, role: &str) -> Value {
    let all = run(["keys", "list", home, "--json"]).fine().json();
    all.into_iter().find(|one| one["use"] == role).unwrap()
}

/// The keys of a role on record.
fn keys(home: &str, role: &str) -> BTreeSet<String> {
    let listed = listed(home, role);
    let keys = listed["keys"].as_array().unwrap().iter();
    keys.map(|key| key["key"].as_str().unwrap().to_owned()).collect()
}

fn only(home: &str, role: &str) -> String {
    let keys = keys(home, role);
    assert_eq!(keys.len(), 1, "{keys:?}");
    keys.into_iter().next().unwrap()
}

/// What each role is there for works, and names how many records it left.
fn works(home: &TestHome) {
    let path = home.path();
    let token = home.worker("a");
    assert_eq!(home.call("a", &token, ECHO.as_bytes())[0]["status"], "ok");
    run(["revoke", &path, &token]).fine();
    run(["policy", "set", &path, "preset:standard"]).fine();
}

#[test]
fn keys_are_listed() {
    let home = TestHome::new();
    let path = home.path();
    home.worker("a");
    for role in ROLES {
        let one = listed(&path, role);
        assert_eq!(one["threshold"], 1);
        let key = &one["keys"][0];
        assert_eq!((&key["here"], &key["sealed"]), (&Value::from(true), &Value::from(false)));
        let signed = ["policy", "operator"].contains(&role);
        assert_eq!(key["counter"], u64::from(signed), "{role}");
        assert_eq!(one["not_on_record"], Value::Array(Vec::new()));
    }
    let recovery = listed(&path, "recovery");
    assert_eq!((&recovery["here"], &recovery["sealed"]), (&true.into(), &false.into()));
    let text = run(["keys", "list", &path]).fine().out;
    assert_eq!(text.lines().count(), 11, "{text}");
    // It only reads, beside whoever holds the home.
    let serving = Serving::of(&path, &[]);
    assert_eq!(listed(&path, "issuer")["keys"][0]["key"], only(&path, "issuer"));
    serving.stop();
}

/// Every role's key is rotated, with a home that nobody holds and with one that is held; whoever
/// holds it signs with the new one at once.
#[test]
fn every_key_is_rotated() {
    let home = TestHome::new();
    let path = home.path();
    let rotate = |role: &str| {
        let before = only(&path, role);
        let rotated = run(["keys", "rotate", &path, "--role", role, "--json", "--no-passphrase"]);
        let rotated = rotated.fine().one();
        assert!(rotated["record"].is_u64());
        let now = only(&path, role);
        assert_ne!(before, now);
        assert_eq!(rotated["key"], now);
        assert_eq!(listed(&path, role)["keys"][0]["here"], true, "{role}");
    };
    ROLES.iter().for_each(|role| rotate(role));
    works(&home);
    let serving = Serving::of(&path, &[]);
    for role in ROLES {
        rotate(role);
        works(&home);
    }
    serving.stop();
    works(&home);
    assert_eq!(home.log().iter().filter(|record| record["kind"] == "key").count(), 10);
    assert_eq!(home.verify(), 0);
    assert_eq!(run(["doctor", &path]).code, 0);
}

/// Keys that are made elsewhere come by their proof, and go by their names; the last one stays.
#[test]
fn keys_come_and_go() {
    let home = TestHome::new();
    let (path, file) = (home.path(), home.text_beside("second.key"));
    let first = only(&path, "operator");
    let made = run(["keys", "new", &file, "--role", "operator", "--no-passphrase", "--json"]);
    let second = made.fine().one()["public"].as_str().unwrap().to_owned();
    // It is not overwritten.
    run(["keys", "new", &file, "--role", "operator", "--no-passphrase"]).failed(1);
    let prove = |role: &str| run(["keys", "prove", &path, "--role", role, "--key-file", &file]);
    prove("issuer").failed(1);
    let proof = prove("operator").fine().out;
    let proof = proof.lines().find_map(|line| line.strip_prefix("proof  ")).unwrap().to_owned();
    let add = |role: &str, proof: &str| {
        run(["keys", "add", &path, "--role", role, "--public", &second, "--proof", proof])
    };
    // A proof is for one role, whole, and of one home.
    let records = home.log().len();
    add("issuer", &proof).failed(2);
    add(
        "operator",
        &proof.replacen(&proof[..1], if proof.starts_with('0') { "1" } else { "0" }, 1),
    )
    .failed(2);
    let other = TestHome::new();
    run([
        "keys",
        "add",
        &other.path(),
        "--role",
        "operator",
        "--public",
        &second,
        "--proof",
        &proof,
    ])
    .failed(2);
    assert_eq!(home.log().len(), records);
    add("operator", &proof).fine();
    add("operator", &proof).failed(2);
    assert_eq!(keys(&path, "operator"), BTreeSet::from([first.clone(), second.clone()]));
    let remove = |key: &str, more: &[&str]| {
        let args = ["keys", "remove", &path, "--role", "operator", "--key", key];
        run(args.iter().chain(more))
    };
    remove(&only(&path, "issuer"), &[]).failed(2);
    remove(&first, &["--cut-off", "1"]).failed(2);
    remove(&first, &[]).fine();
    remove(&second, &[]).failed(2);
    assert_eq!(only(&path, "operator"), second);
    // The one that lies here signs nothing now.
    let failed = run(["keys", "rotate", &path, "--role", "issuer"]).failed(2);
    assert!(failed.err.contains("--recovery"), "{}", failed.err);
    let findings = run(["doctor", &path, "--json"]);
    let bad = |finding: &Value| finding["what"] == "keys" && finding["level"] == "bad";
    assert!(findings.json().iter().any(bad) && findings.code == 1);
    fs::copy(home.beside("second.key"), home.beside("home/keys/operator.key")).unwrap();
    run(["keys", "add", &path, "--role", "issuer", "--key-file", &file]).failed(1);
    run(["keys", "rotate", &path, "--role", "issuer"]).fine();
    assert_eq!(home.verify(), 0);
}

/// What the issuer's old key signed after a record is over; what it signed before is not.
/// Changes of one role's keys that come at a time are each made over the last: none undoes another.
#[test]
fn changes_at_a_time_are_all_made() {
    let home = TestHome::new();
    let path = home.path();
    let serving = Serving::of(&path, &[]);
    let files: Vec<String> = (1..=4).map(|n| home.text_beside(&format!("{n}.key"))).collect();
    for file in &files {
        run(["keys", "new", file, "--role", "revoker", "--no-passphrase"]).fine();
    }
    thread::scope(|scope| {
        for file in &files {
            let add = ["keys", "add", &path, "--role", "revoker", "--key-file", file];
            scope.spawn(move || run(add).fine());
        }
    });
    assert_eq!(keys(&path, "revoker").len(), 5);
    serving.stop();
    assert_eq!(home.verify(), 0);
}

#[test]
fn a_cut_off_ends_what_came_after_it() {
    let home = TestHome::new();
    let path = home.path();
    let before = home.worker("a");
    let cut_off = home.log().last().unwrap()["seq"].as_u64().unwrap().to_string();
    let after = home.worker("a");
    run(["keys", "rotate", &path, "--role", "policy", "--cut-off", &cut_off]).failed(2);
    run(["keys", "rotate", &path, "--role", "issuer", "--cut-off", &cut_off]).fine();
    let new = home.worker("a");
    for (token, lives) in [(&before, true), (&after, false), (&new, true)] {
        let answer = &home.call("a", token, ECHO.as_bytes())[0];
        assert_eq!(answer["status"] == "ok", lives, "{answer}");
    }
    // A record that is not there yet is no cut-off.
    run(["keys", "rotate", &path, "--role", "issuer", "--cut-off", "99999"]).failed(2);
    run(["keys", "rotate", &path, "--role", "issuer"]).fine();
    works(&home);
    assert_eq!(home.verify(), 0);
}

/// A rotation that broke off is taken up: on record, its file is put in place; not on record, the
/// same key is.
#[test]
fn a_rotation_that_broke_off_is_taken_up() {
    let home = TestHome::new();
    let path = home.path();
    let (key, next) =
        (home.beside("home/keys/issuer.key"), home.beside("home/keys/issuer.key.next"));
    let old = fs::read(&key).unwrap();
    let rotate = || run(["keys", "rotate", &path, "--role", "issuer", "--json"]).fine().one();
    // On record, and not in place: the file of before lies there still.
    let recorded = rotate();
    fs::copy(&key, &next).unwrap();
    fs::write(&key, &old).unwrap();
    home.worker("a");
    let found = run(["doctor", &path, "--json"]).fine().json();
    let broke = |finding: &&Value| finding["says"].as_str().unwrap().contains("broke off");
    assert_eq!(found.iter().filter(broke).count(), 1);
    let finished = rotate();
    assert_eq!((&finished["key"], &finished["record"]), (&recorded["key"], &Value::Null));
    assert!(!next.exists());
    // Written, and not on record.
    let file = home.text_beside("made.key");
    let made = run(["keys", "new", &file, "--role", "issuer", "--no-passphrase", "--json"]);
    fs::rename(Path::new(&file), &next).unwrap();
    home.worker("a");
    let taken = rotate();
    assert_eq!(taken["key"], made.fine().one()["public"]);
    assert!(taken["record"].is_u64() && !next.exists());
    // What is no key file is not taken for one, and stops nothing but this.
    fs::write(&next, "half").unwrap();
    home.worker("a");
    run(["keys", "rotate", &path, "--role", "issuer"]).failed(1);
    fs::remove_file(&next).unwrap();
    works(&home);
    assert_eq!(home.verify(), 0);
}

/// The recovery key lies where it was asked for, and takes the home back from whoever has put
/// other keys in the place of all.
#[test]
fn the_recovery_key_takes_the_home_back() {
    let home = TestHome { folder: host_support::scratch() };
    let (path, recovery) = (home.path(), home.text_beside("recovery.key"));
    let init = ["init", &path, "--no-passphrase", "--recovery-out", &recovery, "--json"];
    assert_eq!(run(init).fine().one()["recovery"], recovery);
    assert!(!home.beside("home/keys/recovery.key").exists());
    let owners = fs::read(home.beside("home/keys/operator.key")).unwrap();
    // The thief, with a copy of the operator's key: every role's key is another now.
    for role in ROLES {
        let stolen = home.text_beside(&format!("{role}.key"));
        let made = run(["keys", "new", &stolen, "--role", role, "--no-passphrase", "--json"]);
        let key = made.fine().one()["public"].as_str().unwrap().to_owned();
        let was = only(&path, role);
        run(["keys", "add", &path, "--role", role, "--key-file", &stolen]).fine();
        if role == "operator" {
            fs::copy(&stolen, home.beside("home/keys/operator.key")).unwrap();
        }
        run(["keys", "remove", &path, "--role", role, "--key", &was]).fine();
        assert_eq!(only(&path, role), key);
    }
    fs::write(home.beside("home/keys/operator.key"), owners).unwrap();
    // The owner's keys sign nothing; the recovery key gives each role a new one.
    run(["token", "issue", &path, "--agent", "a", "--tool", "echo"]).failed(1);
    let wrong = home.text_beside("issuer.key");
    run(["keys", "rotate", &path, "--role", "operator", "--recovery", &wrong]).failed(1);
    let other = TestHome::new();
    let others = other.text_beside("home/keys/recovery.key");
    run(["keys", "rotate", &path, "--role", "operator", "--recovery", &others]).failed(2);
    let serving = Serving::of(&path, &[]);
    for role in ROLES {
        let args = ["keys", "rotate", &path, "--role", role, "--recovery", &recovery];
        run(args.iter().chain(&["--no-passphrase"])).fine();
        assert_eq!(keys(&path, role).len(), 1);
    }
    works(&home);
    serving.stop();
    // The thief's operator signs nothing any more.
    let mine = fs::read(home.beside("home/keys/operator.key")).unwrap();
    fs::copy(home.beside("operator.key"), home.beside("home/keys/operator.key")).unwrap();
    run(["keys", "rotate", &path, "--role", "issuer"]).failed(2);
    fs::write(home.beside("home/keys/operator.key"), mine).unwrap();
    works(&home);
    assert_eq!(home.verify(), 0);
    let found = run(["doctor", &path, "--json"]).fine().json();
    let of = |what: &str| found.iter().find(|finding| finding["what"] == what).unwrap().clone();
    assert_eq!(of("recovery")["level"], "ok");
}

/// A home without a recovery key says so, and has none to be taken back by.
#[test]
fn a_home_may_have_no_recovery_key() {
    let home = TestHome { folder: host_support::scratch() };
    let path = home.path();
    let made = run(["init", &path, "--no-passphrase", "--no-recovery", "--json"]).fine().one();
    assert_eq!(made["recovery"], Value::Null);
    assert_eq!(listed(&path, "recovery")["hash"], Value::Null);
    let other = TestHome::new();
    let others = other.text_beside("home/keys/recovery.key");
    run(["keys", "rotate", &path, "--role", "issuer", "--recovery", &others]).failed(2);
    let found = run(["doctor", &path, "--json"]).fine().json();
    let recovery = found.iter().find(|finding| finding["what"] == "recovery").unwrap();
    assert_eq!(recovery["level"], "note");
    let both = ["--no-recovery", "--recovery-out", "x"];
    assert_eq!(run(["init", "y"].iter().chain(&both)).code, 2);
}

/// Sealed keys are rotated by whoever knows their passphrases, and stay sealed.
#[test]
fn a_sealed_key_is_rotated_at_a_terminal() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    let path = home.path();
    sealed(&path, "secret");
    let serving = Serving::of(&path, &[]);
    // The issuer's is not sealed, and its new one is not.
    let mut person = Person::runs(["keys", "rotate", &path, "--role", "issuer"]);
    person.sees("passphrase for the operator key: ").types("secret");
    person.end().fine();
    home.worker("a");
    let mut person = Person::runs(["keys", "rotate", &path, "--role", "operator"]);
    person.sees("passphrase for the operator key: ").types("secret");
    person.sees("the new operator key (empty for no passphrase): ").types("other");
    person.sees("again: ").types("other");
    person.end().hides("other").fine();
    assert_eq!(listed(&path, "operator")["keys"][0]["sealed"], true);
    // From now on it takes the new one.
    let mut person = Person::runs(["keys", "rotate", &path, "--role", "policy", "--no-passphrase"]);
    let ask = "passphrase for the operator key: ";
    person.sees(ask).types("secret").sees(ask).types("other");
    person.end().fine();
    run(["policy", "set", &path, "preset:coder"]).fine();
    serving.stop();
    assert_eq!(home.verify(), 0);
}
