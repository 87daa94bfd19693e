//! A server that lies. Between the command and the server of a home stands one that forwards every
//! request and changes the answers. Whoever signs takes no word of what is signed from it.

use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::{fs, thread};

use serde_json::{Value, json};
use syscap::format::Reason;

use crate::cli::approvals::{POLICY, ask, asking, write};
use crate::cli::support::{TestHome, run};
use crate::cli::terminal::{self, Person, sealed};
use crate::cli::tooling::offer;

/// What it does to an answer of the server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lie {
    /// Nothing.
    Honest,
    /// Each number is this one: heads, counters, asks, limits.
    Number(u64),
    /// Each number is the next.
    Next,
    /// Each text is another of its length.
    Text,
    /// Each string of bytes is another: arguments, salts, ids, records.
    Bytes,
    /// The entries of each list stand in the opposite order.
    Order,
    /// Each list is empty.
    Nothing,
    /// What was done was refused for this.
    Refused(Reason),
    /// Another home.
    Home,
    /// The answer to the request before.
    Before,
    /// What sends is said to find.
    Finds,
}

pub(crate) const LIES: [Lie; 15] = [
    Lie::Finds,
    Lie::Number(0),
    Lie::Number(1),
    Lie::Number(1 << 32),
    Lie::Number(u64::MAX),
    Lie::Next,
    Lie::Text,
    Lie::Bytes,
    Lie::Order,
    Lie::Nothing,
    Lie::Refused(Reason::StaleCounter),
    Lie::Refused(Reason::StaleHead),
    Lie::Refused(Reason::BadSignature),
    Lie::Home,
    Lie::Before,
];

/// What a call is, of all that is shown of one.
const CALL: [&str; 6] = ["ask", "agent", "tool", "arguments", "resources", "constraint"];
/// The kinds of frames that it changes, and the one that says that nothing was done.
const DONE: u8 = 5;
const REFUSED: u8 = 6;

/// It, in the place of a home's server until that ends.
pub(crate) struct Liar(Arc<Mutex<Lie>>);

impl Liar {
    pub(crate) fn before(home: &TestHome) -> Self {
        let (socket, real) = (home.beside("home").join("socket"), home.beside("real"));
        fs::rename(&socket, &real).unwrap();
        let (listener, lie) =
            (UnixListener::bind(&socket).unwrap(), Arc::new(Mutex::new(Lie::Honest)));
        let told = Arc::clone(&lie);
        thread::spawn(move || {
            for stream in listener.incoming() {
                between(stream.unwrap(), &real, Arc::clone(&told));
            }
        });
        Self(lie)
    }

    pub(crate) fn tells(&self, lie: Lie) {
        *self.0.lock().unwrap() = lie;
    }
}

/// A connection, until one of the two ends it.
fn between(client: UnixStream, real: &Path, lie: Arc<Mutex<Lie>>) {
    let server = UnixStream::connect(real).unwrap();
    let (mut up, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
    thread::spawn(move || {
        drop(std::io::copy(&mut up, &mut to));
        drop(to.shutdown(std::net::Shutdown::Write));
    });
    thread::spawn(move || drop(lies(server, client, &lie)));
}

fn lies(mut server: UnixStream, mut client: UnixStream, lie: &Mutex<Lie>) -> std::io::Result<()> {
    let mut before = Vec::new();
    loop {
        let mut size = [0; 4];
        server.read_exact(&mut size)?;
        let mut frame = vec![0; usize::try_from(u32::from_be_bytes(size)).unwrap()];
        server.read_exact(&mut frame)?;
        let told = changed(&frame, *lie.lock().unwrap(), &mut before);
        client.write_all(&u32::try_from(told.len()).unwrap().to_be_bytes())?;
        client.write_all(&told)?;
    }
}

/// A frame as it is told: the id of its request stays.
fn changed(frame: &[u8], lie: Lie, before: &mut Vec<u8>) -> Vec<u8> {
    let is_array = frame[0] >> 5 == 4;
    if is_array && lie == Lie::Home {
        let mut told = frame.to_vec();
        *told.last_mut().unwrap() ^= 1;
        return told;
    }
    let mut at = 2;
    if is_array || lie == Lie::Honest || frame[0] != 0xa2 {
        return frame.to_vec();
    }
    number(frame, &mut at);
    if frame[at] != DONE {
        return frame.to_vec();
    }
    let (mut told, body) = (frame[..=at].to_vec(), &frame[at + 1..]);
    match lie {
        Lie::Before => {
            told.extend(if before.is_empty() { body } else { &*before });
            *before = body.to_vec();
        }
        Lie::Refused(reason) => {
            *told.last_mut().unwrap() = REFUSED;
            told.push(0x84);
            head(&mut told, 0, reason.code());
            told.extend([0xf6; 3]);
        }
        _ => item(body, &mut 0, &mut told, lie),
    }
    told
}

/// The number of an item's head.
fn number(bytes: &[u8], at: &mut usize) -> u64 {
    let info = bytes[*at] & 31;
    *at += 1;
    let width = if info < 24 { 0 } else { 1 << (info - 24) };
    let more = &bytes[*at..*at + width];
    *at += width;
    more.iter()
        .fold(if width == 0 { u64::from(info) } else { 0 }, |sum, byte| sum << 8 | u64::from(*byte))
}

/// The shortest head.
fn head(to: &mut Vec<u8>, major: u8, number: u64) {
    let (major, bytes) = (major << 5, number.to_be_bytes());
    match number {
        0..24 => to.push(major | bytes[7]),
        24..0x100 => to.extend([major | 24, bytes[7]]),
        0x100..0x1_0000 => to.extend([&[major | 25], &bytes[6..]].concat()),
        0x1_0000..0x1_0000_0000 => to.extend([&[major | 26], &bytes[4..]].concat()),
        _ => to.extend([&[major | 27], &bytes[..]].concat()),
    }
}

/// Tells an item of CBOR, changed. The keys of a map stay, so that it is still read.
fn item(bytes: &[u8], at: &mut usize, to: &mut Vec<u8>, lie: Lie) {
    let (major, begins) = (bytes[*at] >> 5, *at);
    let count = number(bytes, at);
    let long = usize::try_from(count).unwrap_or(0);
    match (major, lie) {
        (0, Lie::Number(told)) => head(to, 0, told),
        (0, Lie::Next) => head(to, 0, count.wrapping_add(1)),
        (2 | 3, _) => {
            let text = &bytes[*at..*at + long];
            *at += long;
            head(to, major, count);
            match (major, lie) {
                (_, Lie::Finds) => {
                    let mut told = text.to_vec();
                    for place in 0..told.len().saturating_sub(4) {
                        if told[place..].starts_with(b"Sends") {
                            told[place..place + 5].copy_from_slice(b"Finds");
                        }
                    }
                    to.extend(told);
                }
                (2, Lie::Bytes) => to.extend(text.iter().map(|byte| byte ^ 1)),
                (3, Lie::Text) => {
                    to.extend(text.iter().map(|byte| if byte.is_ascii() { b'z' } else { *byte }))
                }
                _ => to.extend(text),
            }
        }
        (4, _) => {
            let all: Vec<Vec<u8>> = (0..long).map(|_| one(bytes, at, lie)).collect();
            let told: Vec<_> = match lie {
                Lie::Nothing => Vec::new(),
                Lie::Order => all.into_iter().rev().collect(),
                _ => all,
            };
            head(to, 4, u64::try_from(told.len()).unwrap());
            to.extend(told.concat());
        }
        (5, _) => {
            head(to, 5, count);
            for _ in 0..long {
                to.extend(one(bytes, at, Lie::Honest));
                to.extend(one(bytes, at, lie));
            }
        }
        (6, _) => {
            to.extend(&bytes[begins..*at]);
            item(bytes, at, to, lie);
        }
        _ => to.extend(&bytes[begins..*at]),
    }
}

fn one(bytes: &[u8], at: &mut usize, lie: Lie) -> Vec<u8> {
    let mut told = Vec::new();
    item(bytes, at, &mut told, lie);
    told
}

/// The records from there on that somebody has signed, each as what it says.
fn signed(home: &TestHome, from: usize) -> Vec<Value> {
    let all = home.log().split_off(from);
    all.into_iter().filter(|record| !record["control"].is_null()).collect()
}

/// Whoever signs approves, denies, ends and puts in force what was named, or nothing: a server gets no
/// signature over anything else, and no counter that locks the key.
#[test]
fn liar_gets_no_signature_but_over_what_was_named() {
    let (home, _) = asking();
    let path = home.path();
    let served = syscap::Runtime::open(&path).unwrap();
    let liar = Liar::before(&home);
    let (mut kinds, mut failed) = (BTreeSet::new(), 0);
    for (number, lie) in LIES.into_iter().enumerate() {
        liar.tells(Lie::Honest);
        let agent = format!("a{number}");
        let flags = ["--tool", "fs.write", "--read", "workspace", "--write", "workspace"];
        let token = home.token(&agent, &flags);
        let asks = |name| ask(&home.call(&agent, &token, write(name, "x").as_bytes())[0]);
        // Others wait beside them, before and behind.
        let (_, one, other, _) = (asks("first"), asks("one"), asks("other"), asks("last"));
        let doomed = home.token("b", &["--tool", "echo"]);
        let file = home.file("policy.json", &POLICY.replace("Somebody", &agent));
        let policy = run(["--json", "policy", "check", &file]).fine().one()["hash"].clone();
        let honest = run(["--json", "approvals", "show", &path, &one]).fine().one();
        let from = home.log().len();
        liar.tells(lie);
        let seen = run(["--json", "approvals", "show", &path, &one]).one();
        // How it stands, and what else waits, is the server's word; what it is is not.
        for name in CALL {
            assert!(!honest[name].is_null(), "{name}");
            assert_eq!(seen[name], honest[name], "{lie:?} {name}");
        }
        let ran = [
            run(["approvals", "approve", &path, &one]),
            run(["approvals", "deny", &path, &other]),
            run(["token", "revoke", &path, &doomed, "--because", "of it"]),
            run(["policy", "set", &path, &file, "--because", "of it"]),
        ];
        failed += ran.iter().filter(|run| run.code != 0).count();
        liar.tells(Lie::Honest);
        for record in signed(&home, from) {
            let (says, answers) = (&record["control"]["says"], &record["answers"]["ask"]);
            let is_named = match record["kind"].as_str().unwrap() {
                "approval" if says["answer"] == "once" => *answers == one.parse::<u64>().unwrap(),
                "approval" if says["answer"] == "deny" => *answers == other.parse::<u64>().unwrap(),
                "revoke" => says["token"] == doomed && says["target"] == "subtree",
                "policy" => says["policy"] == policy && says["shadow"].is_null(),
                _ => false,
            };
            assert!(is_named, "{lie:?}: {record}");
            kinds.insert(record["kind"].to_string());
        }
    }
    assert!(kinds.len() == 3 && failed > 10, "{kinds:?} {failed}");
    // The keys sign on.
    let token = home.token("c", &["--tool", "fs.write", "--write", "workspace"]);
    let waits = ask(&home.call("c", &token, write("c", "x").as_bytes())[0]);
    run(["approvals", "approve", &path, &waits]).fine();
    served.close().unwrap();
    assert_eq!(home.verify(), 0);
}

/// What a person accepts of a tool is what was shown, beside what is on record, or nothing.
#[test]
fn liar_has_no_definition_accepted_but_the_one_shown() {
    if !terminal::is_there() {
        return;
    }
    let home = TestHome { folder: host_support::scratch() };
    let path = home.path();
    sealed(&path, "secret");
    let served = syscap::Runtime::open(&path).unwrap();
    let first = offer(&home, "Finds notes.");
    let accept = || Person::runs(["tools", "accept", &path, "notes.find"]);
    let mut person = accept();
    person.sees("Accept notes.find as shown?").types("y");
    person.sees("passphrase for the operator key: ").types("secret");
    person.end().fine();
    first.close().unwrap();
    let second = offer(&home, "Sends notes.");
    let liar = Liar::before(&home);
    let on_record =
        || run(["--json", "tools", "show", &path, "notes.find"]).fine().one()["manifest"].clone();
    let before = on_record();
    // These two say nothing false of the tool.
    let is_of_it = |lie: &Lie| ![Lie::Home, Lie::Before].contains(lie);
    for lie in LIES.into_iter().filter(is_of_it).chain([Lie::Home]) {
        liar.tells(lie);
        let mut person = accept();
        let is_asked = person.sees_or_ends("Accept notes.find as shown?");
        if is_asked {
            person.types("y");
            if person.sees_or_ends("passphrase for the operator key: ") {
                person.types("secret");
            }
        }
        let shown = person.end().shown;
        liar.tells(Lie::Honest);
        let is_old_shown =
            shown.lines().any(|line| line.starts_with('-') && line.contains("Finds"));
        let is_new_shown =
            shown.lines().any(|line| line.starts_with('+') && line.contains("Sends"));
        let is_taken = on_record() != before;
        assert!(!is_taken || is_asked && is_old_shown && is_new_shown, "{lie:?}: {shown}");
        assert_eq!(is_taken, lie == Lie::Home, "{lie:?}: {shown}");
    }
    // What is stated of it is stated of the one on record.
    liar.tells(Lie::Finds);
    let mut person = Person::runs(["tools", "class", &path, "notes.find", "external_read"]);
    person.sees("passphrase for the operator key: ").types("secret");
    person.end().fine();
    liar.tells(Lie::Honest);
    let tool = run(["--json", "tools", "show", &path, "notes.find"]).fine().one();
    assert_eq!(tool["on_record_definition"], json!({"description": "Sends notes."}));
    assert_eq!(tool["effect"], "external_read");
    second.close().unwrap();
    served.close().unwrap();
    assert_eq!(home.verify(), 0);
}
