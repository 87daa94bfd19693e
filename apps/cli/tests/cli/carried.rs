//! `approvals export`, `sign` and `bring`: an answer that is signed on another machine.

use serde_json::{Value, json};

use crate::cli::approvals::{ask, asking, write};
use crate::cli::support::{TestHome, reason, run};
use crate::cli::terminal::{self, Person};

/// A home with a call that waits, and what was exported of it.
struct Carried {
    home: TestHome,
    token: String,
    call: String,
    ask: String,
    file: Value,
}

fn carried() -> Carried {
    let (home, token) = asking();
    let call = write("a.txt", "hello");
    let ask = ask(&home.call("a", &token, call.as_bytes())[0]);
    let file = run(["approvals", "export", &home.path(), &ask]).fine().one();
    Carried { home, token, call, ask, file }
}

impl Carried {
    fn key(&self) -> String {
        self.home.beside("home/keys/approver.key").to_str().unwrap().to_owned()
    }

    /// Writes a file, and has it signed as `flags` say.
    fn sign(&self, file: &Value, flags: &[&str]) -> crate::cli::support::Run {
        let (file, key) = (self.home.file("ask.json", &file.to_string()), self.key());
        run(["approvals", "sign", &file, "--key", &key].into_iter().chain(flags.iter().copied()))
    }

    fn signed(&self, flags: &[&str]) -> Value {
        let run = self.sign(&self.file, flags);
        assert_eq!(run.code, 0, "{}", run.err);
        run.one()
    }

    fn bring(&self, answer: &Value) -> crate::cli::support::Run {
        let file = self.home.file("answer.json", &answer.to_string());
        run(["approvals", "bring", &self.home.path(), &file])
    }

    fn made(&self) -> Value {
        self.home.call("a", &self.token, self.call.as_bytes()).remove(0)
    }

    /// It is not signed, for that reason, and nothing is written.
    fn unsound(&self, file: &Value, why: &str) {
        let run = self.sign(file, &["--approve"]);
        assert_eq!((run.code, &*run.out), (2, ""), "{}", run.err);
        assert!(run.err.contains(why), "{}", run.err);
    }
}

#[test]
fn an_answer_is_signed_elsewhere_and_brought_back() {
    let it = carried();
    let home = it.home.path();
    let records = it.home.log().len();
    let of = it.file["home"].as_str().unwrap().to_owned();
    let signing = it.sign(&it.file, &["--approve", "--home-id", &of, "--because", "as agreed"]);
    assert_eq!(signing.code, 0, "{}", signing.err);
    // All of it was shown, but not in the file.
    for shown in [&of[..], "path: write workspace/a.txt of a", "\"hello\"", "writes"] {
        assert!(signing.err.contains(shown), "{}", signing.err);
    }
    let answer = signing.one();
    assert_eq!((&answer["form"], &answer["home"]), (&json!("syscap/answer/v1"), &json!(of)));
    // Nothing is known of it before it is brought.
    assert_eq!(it.home.log().len(), records);
    assert_eq!(reason(&it.made()), "asked");
    let brought = it.bring(&answer).fine();
    assert!(brought.out.starts_with("approved by record "), "{}", brought.out);
    assert_eq!(it.made()["status"], "ok");
    let written = std::fs::read_to_string(it.home.workspace("a").join("a.txt")).unwrap();
    assert_eq!(written, "hello");
    run(["approvals", "export", &home, &it.ask]).failed(2);
    assert_eq!(it.home.verify(), 0);
}

#[test]
fn a_no_is_signed_elsewhere_with_its_reason() {
    let it = carried();
    let answer = it.signed(&["--deny", "--because", "not there"]);
    let file = it.home.file("answer.json", &answer.to_string());
    let said = run(["--json", "approvals", "bring", &it.home.path(), &file]).fine().one();
    assert_eq!((&said["answer"], said["ask"].to_string()), (&json!("deny"), it.ask.clone()));
    let refused = it.made();
    assert_eq!(reason(&refused), "approval_denied");
    assert_eq!(refused["error"]["allowed"], "not there");
    assert_eq!(it.home.verify(), 0);
}

/// What is shown is what the record commits to, or nothing is signed.
#[test]
fn altered_request_file_is_not_signed() {
    let it = carried();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    let swapped = |at: &str, from: &str, to: &str| {
        let mut file = it.file.clone();
        let changed = file[at].as_str().unwrap().replace(&hex(from), &hex(to));
        assert_ne!(file[at], changed);
        file[at] = json!(changed);
        file
    };
    it.unsound(&swapped("arguments", "hello", "jello"), "the arguments are not those");
    // The tool of the record is one that its arguments were not for.
    it.unsound(&swapped("record", "fs.write", "fs.wrote"), "the arguments are not those");
    let mut file = it.file.clone();
    let text = file["texts"][0]["text"].as_str().unwrap().replace("a.txt", "b.txt");
    file["texts"][0]["text"] = json!(text);
    it.unsound(&file, "what the call would touch is not");
    let mut file = it.file.clone();
    file["texts"] = json!([]);
    it.unsound(&file, "what the call would touch is not");
    let mut file = it.file.clone();
    file["salt"] = json!("00".repeat(32));
    it.unsound(&file, "the arguments are not those");
    let mut file = it.file.clone();
    file["keys"][0]["counter"] = json!(u64::MAX);
    it.unsound(&file, "counter does not fit");
    let mut file = it.file.clone();
    file["ask"] = json!(1);
    it.unsound(&file, "the record is not that of a call that waits");
    for bad in [json!({}), json!([]), json!({"form": "syscap/ask/v2"}), json!("x")] {
        it.unsound(&bad, "is no file of the form syscap/ask/v1");
    }
    let of = it.home.file("none.json", "");
    run(["approvals", "sign", &of, "--key", &it.key(), "--approve"]).failed(2);
    // Neither yes nor no, or both, is none.
    assert_eq!(it.sign(&it.file, &[]).code, 2);
    assert_eq!(it.sign(&it.file, &["--approve", "--deny"]).code, 2);
    assert_eq!(it.sign(&it.file, &["--approve", "--home-id", &"0".repeat(64)]).code, 2);
    assert_eq!(reason(&it.made()), "asked");
}

#[test]
fn an_answer_is_brought_once_and_to_its_own_home() {
    let it = carried();
    let answer = it.signed(&["--approve"]);
    let (other, of_token) = asking();
    let call = write("a.txt", "hello");
    let of_other = ask(&other.call("a", &of_token, call.as_bytes())[0]);
    let file = it.home.file("answer.json", &answer.to_string());
    let records = other.log().len();
    run(["approvals", "bring", &other.path(), &file]).failed(2);
    assert_eq!(other.log().len(), records);
    // Nor where the file says that it is that one's.
    let own = run(["approvals", "export", &other.path(), &of_other]).fine().one();
    let mut forged = answer.clone();
    forged["home"] = own["home"].clone();
    let file = other.file("answer.json", &forged.to_string());
    let refused = run(["approvals", "bring", &other.path(), &file]).failed(3);
    assert!(refused.err.contains("unknown_head"), "{}", refused.err);
    assert_eq!(reason(&other.call("a", &of_token, call.as_bytes())[0]), "asked");
    // The last bytes are the signature's.
    let mut turned = answer.clone();
    let control = answer["control"].as_str().unwrap();
    let (most, last) = control.split_at(control.len() - 2);
    turned["control"] = json!(format!("{most}{}", if last == "00" { "01" } else { "00" }));
    let refused = it.bring(&turned).failed(3);
    assert!(refused.err.contains("bad_signature"), "{}", refused.err);
    it.bring(&answer).fine();
    let again = it.bring(&answer).failed(3);
    assert!(again.err.contains("stale_counter"), "{}", again.err);
    assert_eq!(it.made()["status"], "ok");
    it.bring(&answer).failed(3);
    assert_ne!(ask(&it.made()), it.ask);
    for bad in [json!({}), it.file.clone()] {
        it.bring(&bad).failed(2);
    }
    assert_eq!(it.home.verify(), 0);
}

#[test]
fn a_key_that_may_not_answer_signs_nothing() {
    let it = carried();
    let keys = it.home.beside("home/keys");
    let file = it.home.file("ask.json", &it.file.to_string());
    // Of another role, and of the role but of no home.
    let issuer = keys.join("issuer.key").to_str().unwrap().to_owned();
    let made = it.home.text_beside("new.key");
    run(["keys", "new", &made, "--role", "approver", "--no-passphrase"]).fine();
    for key in [issuer, made] {
        let run = run(["approvals", "sign", &file, "--key", &key, "--approve"]);
        assert_ne!(run.code, 0);
        assert_eq!(run.out, "");
    }
    assert_eq!(reason(&it.made()), "asked");
}

/// The key is sealed: a person unseals it, after all of the call was shown.
#[test]
fn a_person_signs_at_another_machine() {
    if !terminal::is_there() {
        return;
    }
    let it = carried();
    let home = it.home.path();
    let key = it.home.text_beside("away.key");
    let mut person = Person::runs(["keys", "new", &key, "--role", "approver"]);
    person.sees("(empty for no passphrase): ").types("secret");
    person.sees("same passphrase again: ").types("secret");
    person.end().fine();
    let mut person = Person::runs(["keys", "add", &home, "--role", "approver", "--key-file", &key]);
    person.sees("Enter passphrase for the approver key: ").types("secret");
    person.end().fine();
    // What waited already can be answered by whom it was shown to have been asked of.
    let call = write("b.txt", "there");
    let second = ask(&it.home.call("a", &it.token, call.as_bytes())[0]);
    let file = run(["approvals", "export", &home, &second]).fine().out;
    let file = it.home.file("ask.json", &file);
    let alone = run(["approvals", "sign", &file, "--key", &key, "--approve"]);
    assert_eq!((alone.code, &*alone.out), (1, ""));
    let mut person = Person::runs(["approvals", "sign", &file, "--key", &key, "--approve"]);
    person.sees("path: write workspace/b.txt of a");
    person.sees("Enter passphrase for the approver key: ").types("secret");
    let answer = person.end().fine().out;
    let file = it.home.file("answer.json", &answer);
    run(["approvals", "bring", &home, &file]).fine();
    let done = it.home.call("a", &it.token, call.as_bytes());
    assert_eq!(done[0]["status"], "ok");
    assert_eq!(it.home.verify(), 0);
}
