//! A home whose issuer's key is sealed: who issues is a person, and what was issued goes on.

use crate::cli::support::{ECHO, Serving, TestHome, run, run_with};
use crate::cli::terminal::{self, Person, sealed};

const ASK: &str = "Enter passphrase for the issuer key: ";

/// A home whose keys are sealed, that of the issuer too.
fn home() -> TestHome {
    let home = TestHome { folder: host_support::scratch() };
    sealed(&home.path(), "secret");
    let path = home.path();
    let mut person = Person::runs(["keys", "rotate", &path, "--role", "issuer", "--passphrase"]);
    person.sees("Enter passphrase for the operator key: ").types("secret");
    person.sees("(empty for no passphrase): ").types("secret");
    person.sees("same passphrase again: ").types("secret");
    person.end().fine();
    home
}

fn issue<'a>(path: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["token", "issue", path, "--agent", "a", "--tool", "echo"], more].concat()
}

/// The token that a person at a terminal issues.
fn issued(args: &[&str]) -> String {
    let mut person = Person::runs(args.iter().copied());
    person.sees(ASK).types("guess").sees("not the passphrase").sees(ASK).types("secret");
    person.end().hides("guess").fine().out.trim().to_owned()
}

#[test]
fn only_a_person_issues_where_the_issuers_key_is_sealed() {
    if !terminal::is_there() {
        return;
    }
    let home = home();
    let path = home.path();
    // An agent's own program has no passphrase: not by the command, not by what it types.
    let needs = |args: &[&str]| {
        let records = home.log().len();
        let failed = run_with(args, b"secret\n").failed(1);
        let says = "syscap: the issuer key is sealed: run this at a terminal";
        assert!(failed.err.starts_with(says), "{}", failed.err);
        assert_eq!(home.log().len(), records, "nothing was recorded");
    };
    let worth = |token: &str| {
        assert_eq!(home.call("a", token, ECHO.as_bytes())[0]["status"], "ok");
    };
    needs(&issue(&path, &[]));
    let alone = issued(&issue(&path, &["--delegable", "1", "--expires", "2h"]));
    worth(&alone);
    // Beside a process that holds the home, too, and a lease's renewal.
    let serving = Serving::of(&path, &[]);
    needs(&issue(&path, &[]));
    let lease = issued(&issue(&path, &["--expires", "2h", "--renew-by", "1h", "--read", "docs"]));
    worth(&lease);
    needs(&["token", "renew", &path, &lease, "--renew-by", "90m"]);
    issued(&["token", "renew", &path, &lease, "--renew-by", "90m"]);
    worth(&lease);
    // Parts of what was issued are handed on without a person; the stop needs nobody either.
    let part = ["token", "attenuate", &path, "--from", &alone, "--agent", "a/b", "--tool", "echo"];
    let part = run(part).fine().out;
    assert_eq!(home.call("a/b", part.trim(), ECHO.as_bytes())[0]["status"], "ok");
    run(["freeze", &path, "--all"]).fine();
    assert_eq!(home.call("a/b", part.trim(), ECHO.as_bytes())[0]["error"]["reason"], "frozen");
    // But who goes on is a person.
    let thaw = ["thaw", &path, "--all"];
    let failed = run_with(thaw, b"secret\n").failed(1);
    assert!(failed.err.starts_with("syscap: the operator key is sealed"), "{}", failed.err);
    let mut person = Person::runs(thaw);
    person.sees("Enter passphrase for the operator key: ").types("secret").end().fine();
    assert_eq!(home.call("a/b", part.trim(), ECHO.as_bytes())[0]["status"], "ok");
    run(["revoke", &path, &alone]).fine();
    serving.stop();
    assert_eq!(home.verify(), 0);
}

/// A rotation does not open what was sealed, and the revoker's key is never sealed.
#[test]
fn a_sealed_issuer_stays_sealed() {
    if !terminal::is_there() {
        return;
    }
    let home = home();
    let path = home.path();
    let rotate = ["keys", "rotate", &path, "--role", "issuer"];
    let mut person = Person::runs(rotate);
    person.sees("Enter passphrase for the operator key: ").types("secret");
    person.sees("(empty for no passphrase): ").types("secret");
    person.sees("same passphrase again: ").types("secret");
    person.end().fine();
    issued(&issue(&path, &[]));
    let revoker = ["keys", "rotate", &path, "--role", "revoker", "--passphrase"];
    assert_eq!(run_with(revoker, b"").code, 2);
    assert_eq!(home.verify(), 0);
}
