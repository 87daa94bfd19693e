//! The frames that never change have the bytes that `docs/spec/calls.md` says, and no others are taken.

use std::{fs, path::Path};

use serde_json::Value;

use crate::transport::frame::take;
use crate::transport::frozen::*;
use crate::transport::hello::{Greeting, Lane};
use crate::transport::limits::{
    AGENTS_CONNECTIONS_MAX, AGENTS_FRAME_BYTES_MAX, AGENTS_SETTLED_MAX, CONNECTIONS_MAX,
    FRAME_BYTES_MAX, FRAME_TIME, HELLO_TIME, SETTLED_MAX, UNPLACED_MAX,
};
use crate::transport::message::AgentAsk;

/// The section of the document that this is held against.
fn section() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/spec/calls.md");
    let page = fs::read_to_string(page).unwrap();
    page.split("\n## The socket\n").nth(1).unwrap().to_owned()
}

/// An example's frame, without the length that stands before it.
fn example(name: &str) -> Vec<u8> {
    let section = section();
    let block = section.split(&format!("```hex {name}\n")).nth(1).expect(name);
    let block = block.split("```").next().unwrap();
    let digits: String = block.lines().map(|line| line.split(';').next().unwrap()).collect();
    let digits: Vec<char> = digits.chars().filter(|char| *char != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
    let (length, frame) = bytes.split_first_chunk().unwrap();
    assert_eq!(usize::try_from(u32::from_be_bytes(*length)).unwrap(), frame.len(), "{name}");
    frame.to_vec()
}

fn hellos() -> Vec<(&'static str, Hello)> {
    let hello = |least, greatest, lane| Hello { versions: Versions { least, greatest }, lane };
    vec![
        ("hello", hello(2, 2, Some(Lane::Operator))),
        ("hello_agents", hello(2, 4, Some(Lane::Agents))),
    ]
}

fn greetings() -> Vec<(&'static str, Greeting)> {
    vec![
        ("welcome", Greeting::Welcome { version: 2, home: HomeId::from_bytes([0xaa; 32]) }),
        ("turned_away", Greeting::turned_away(Reason::UnknownVersion)),
    ]
}

fn commands() -> Vec<(&'static str, u64, Command)> {
    let (target, change) = (FreezeTarget::Agent, FreezeChange::Freeze);
    vec![
        ("revoke", 7, Command::Revoke(TokenId::from_bytes([0xbb; 32]))),
        ("freeze", 8, Command::Freeze(Freeze { target, name: Box::from("team/a"), change })),
        ("status", 9, Command::Status),
        ("shutdown", 10, Command::Shutdown),
        ("signed", 11, Command::Signed { kind: RecordKind::Revoke, version: 2, event: vec![0xa0] }),
    ]
}

fn answers() -> Vec<(&'static str, u64, Response)> {
    let status = HolderStatus {
        home: HomeId::from_bytes([0xaa; 32]),
        versions: Versions { least: 2, greatest: 2 },
        phase: Phase::Open,
        head: Head { seq: Seq::new(42), leaf: Leaf::from_bytes([0xcc; 32]) },
        sessions: 2,
        running: 0,
        frozen: 1,
    };
    let unknown = Refused::new(Reason::UnknownToken).field("token");
    vec![
        ("done", 7, Response::Done(Seq::new(42))),
        ("refused", 7, Response::of(&Err(unknown.into()))),
        ("stands", 9, Response::Status(status)),
    ]
}

#[test]
fn the_frames_that_never_change_have_these_bytes() {
    for (name, hello) in hellos() {
        let written = Hello::write(hello.versions, hello.lane.unwrap());
        assert_eq!(written, example(name), "{name}");
        assert_eq!(Said::read(&example(name)), Ok(Said::Hello(hello)), "{name}");
    }
    for (name, greeting) in greetings() {
        assert_eq!(greeting.write(), example(name), "{name}");
        assert_eq!(Greeting::read(&example(name)), Ok(greeting), "{name}");
    }
    for (name, id, command) in commands() {
        assert_eq!(command.write(id), example(name), "{name}");
        assert_eq!(Said::read(&example(name)), Ok(Said::Asked(id, Ok(command))), "{name}");
    }
    for (name, id, answer) in answers() {
        assert_eq!(answer.write(id), example(name), "{name}");
        assert_eq!(Response::read(&example(name)), Ok((id, answer)), "{name}");
    }
    let examples = section().matches("```hex ").count();
    let held = hellos().len() + greetings().len() + commands().len() + answers().len();
    assert_eq!(examples, held, "every example is held");
}

/// The conformance vectors of frames: what is taken, what has an answer, and what ends a connection.
#[test]
fn frames_are_taken_as_the_vectors_say() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/conformance/vectors/frames.json");
    let file: Value = serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let text = |key: &str| case[key].as_str();
        let digits = text("bytes").unwrap().as_bytes();
        let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap();
        let bytes: Vec<u8> = digits.chunks(2).map(byte).collect();
        let taken = match text("by").unwrap() {
            "holder" => match Greeting::read(&bytes) {
                Ok(_) => Ok(None),
                Err(_) => Response::read(&bytes).map(|_| None),
            },
            _ => Said::read(&bytes).map(|said| match said {
                Said::Hello(hello) => hello.lane.is_none().then_some(Reason::WrongLane),
                Said::Asked(_, command) => command.err(),
            }),
        };
        assert_eq!(taken.is_ok(), text("result") == Some("valid"), "{case}");
        assert_eq!(taken.ok().flatten().map(Reason::name), text("reason"), "{case}");
    }
}

/// A reason that a later holder gives is passed on in its words.
#[test]
fn a_later_reason_is_passed_on() {
    let later = Response::Refused(9_999, "later".to_owned()).into_reply();
    let error = later.into_bytes().unwrap_err();
    assert!(
        matches!(error, Error::Holder(text) if text.contains("9999") && text.contains("later"))
    );
}

#[test]
fn versions_are_chosen() {
    let versions = |least, greatest| Versions { least, greatest };
    for (ours, theirs, common) in [
        (versions(1, 1), versions(1, 1), Some(1)),
        (versions(1, 3), versions(2, 9), Some(3)),
        (versions(2, 9), versions(1, 3), Some(3)),
        (versions(1, 9), versions(4, 5), Some(5)),
        (versions(1, 2), versions(3, 4), None),
        (versions(0, u64::MAX), versions(7, u64::MAX), Some(u64::MAX)),
    ] {
        assert_eq!((ours.common(theirs), theirs.common(ours)), (common, common));
        assert_eq!(ours.are_before(theirs), common.is_none());
        assert!(!theirs.are_before(ours));
    }
}

#[test]
fn the_document_has_these_lanes_and_limits() {
    let ms = |time: std::time::Duration| usize::try_from(time.as_millis()).unwrap();
    let limits = [
        FROZEN_BYTES_MAX,
        FRAME_BYTES_MAX,
        AGENTS_FRAME_BYTES_MAX,
        FROZEN_TEXT_BYTES_MAX,
        CONNECTIONS_MAX,
        AGENTS_CONNECTIONS_MAX,
        SETTLED_MAX,
        AGENTS_SETTLED_MAX,
        UNPLACED_MAX,
        ms(HELLO_TIME),
        ms(FRAME_TIME),
    ];
    let section = section();
    let rows = section.split("| Limit of the socket | Value |\n|---|---|\n").nth(1).unwrap();
    let rows = rows.lines().map_while(|line| line.strip_prefix('|')?.strip_suffix(" |"));
    let values: Vec<usize> =
        rows.map(|row| row.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert_eq!(values, limits);
    let lane = "to take a session that was lent, to call through it, to cancel such a call, to close \
                it, to wait for a person's answer to a call of its agent, to ask which tools its token \
                grants and what is left of it, to offer tools by a ticket, and to run them itself";
    assert!(section.split_whitespace().collect::<Vec<_>>().join(" ").contains(lane));
    // Those are all: the compiler says so of the first eleven, and no twelfth is taken.
    let _all = |ask: AgentAsk| match ask {
        AgentAsk::Take(_) | AgentAsk::Call(_) | AgentAsk::Cancel(_) | AgentAsk::Close(_) => {}
        AgentAsk::Wait(_) | AgentAsk::Tools(_) | AgentAsk::Left(_) => {}
        AgentAsk::Offer(_) | AgentAsk::Withdraw(_) => {}
        AgentAsk::Begin(_) | AgentAsk::Settle(_) => {}
    };
    assert!(take::<AgentAsk>(&[0x82, 4, 1]).is_ok() && take::<AgentAsk>(&[0x82, 7, 1]).is_ok());
    assert!((12..24).all(|other| take::<AgentAsk>(&[0x82, other, 1]).is_err()));
}
