//! The frames that never change have the bytes that `docs/spec/calls.md` says, and no others are taken.

use std::{fs, path::Path};

use syscap_format::Canonical;

use crate::transport::frame::take;
use crate::transport::frozen::*;
use crate::transport::hello::{Greeting, Lane};
use crate::transport::limits::{
    AGENTS_CONNECTIONS_MAX, AGENTS_FRAME_BYTES_MAX, CONNECTIONS_MAX, FRAME_BYTES_MAX, FRAME_TIME,
    HELLO_TIME, SETTLED_MAX, UNPLACED_MAX,
};
use crate::transport::message::AgentAsk;
use crate::transport::wire::Broken;

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

/// What a frame is taken for, by whichever side it is for.
fn taken(bytes: &[u8]) -> Result<(), Broken> {
    let said = Said::read(bytes).map(drop);
    said.or_else(|_| Greeting::read(bytes).map(drop)).or_else(|_| Response::read(bytes).map(drop))
}

#[test]
fn no_other_form_is_taken() {
    let names = ["hello", "hello_agents"].into_iter();
    let names = names.chain(greetings().into_iter().map(|(name, _)| name));
    let names = names.chain(commands().into_iter().map(|(name, ..)| name));
    for name in names.chain(answers().into_iter().map(|(name, ..)| name)) {
        let good = example(name);
        assert_eq!(taken(&good), Ok(()), "{name}");
        // One item more or less, bytes after it, the number in a longer form.
        let items: Vec<Canonical> = Item::check(&good, syscap_format::Profile::CONTROL)
            .unwrap()
            .elements()
            .map(Canonical::from)
            .collect();
        let more = items.iter().cloned().chain([Canonical::null()]);
        let more = Canonical::list(more.collect::<Vec<_>>().into_iter());
        let less = Canonical::list(items[..items.len() - 1].iter().cloned());
        let long = [&good[..1], &[0x18], &good[1..]].concat();
        let trailing = [&good[..], &[0]].concat();
        for bytes in [more.into_bytes(), less.into_bytes(), long, trailing, good[1..].to_vec()] {
            assert_eq!(taken(&bytes), Err(Broken::Form), "{name}: {bytes:02x?}");
        }
        // Each item of another type.
        for place in 0..items.len() {
            let mut other = items.clone();
            other[place] = Canonical::null();
            let bytes = Canonical::list(other.into_iter()).into_bytes();
            assert_eq!(taken(&bytes), Err(Broken::Form), "{name}: {bytes:02x?}");
        }
    }
    // A range that is none; a token of 31 bytes; an answer where a question is wanted.
    assert_eq!(Said::read(&[0x84, 1, 2, 1, 1]), Err(Broken::Form));
    let short = [&[0x83, 4, 7, 0x58, 0x1f][..], &[0; 31]].concat();
    assert_eq!(Said::read(&short), Err(Broken::Form));
    for answer in ["welcome", "turned_away", "done", "refused", "stands"] {
        assert_eq!(Said::read(&example(answer)), Err(Broken::Form), "{answer}");
    }
    let event = vec![0; FROZEN_BYTES_MAX];
    let long = Command::Signed { kind: RecordKind::Revoke, version: 2, event }.write(1);
    assert_eq!(Said::read(&long), Err(Broken::Length));
}

/// What only a later version knows is answered, by its id.
#[test]
fn what_is_not_known_yet_has_an_answer() {
    let asked = |bytes: &[u8]| match Said::read(bytes) {
        Ok(Said::Asked(id, Err(reason))) => Some((id, reason)),
        _ => None,
    };
    assert_eq!(asked(&[0x83, 12, 3, 0xf6]), Some((3, Reason::UnknownVersion)));
    // A freeze of another target, another change of one, an event of another kind.
    assert_eq!(asked(&[0x85, 5, 3, 9, 0x60, 1]), Some((3, Reason::BadControl)));
    assert_eq!(asked(&[0x85, 5, 3, 3, 0x60, 9]), Some((3, Reason::BadControl)));
    for kind in [0, 8, 30] {
        let bytes =
            [&[0x85, 8, 3][..], &[0x18, kind][usize::from(kind < 24)..], &[2, 0x40]].concat();
        let known = RecordKind::from_code(kind.into());
        let wanted = (known != Some(RecordKind::Freeze)).then_some((3, Reason::BadControl));
        assert_eq!(asked(&bytes), wanted, "{known:?}");
    }
    let lane = Said::read(&[0x84, 1, 1, 1, 3]);
    assert!(matches!(lane, Ok(Said::Hello(Hello { lane: None, .. }))), "{lane:?}");
    // And a reason that a later holder gives is passed on in its words.
    let later = Response::Refused(9_999, "later".to_owned()).into_reply();
    let error = later.into_result::<HolderStatus>().unwrap().unwrap_err();
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
    let lane =
        "to take a session that was lent, to call through it, to cancel such a call, to close it";
    assert!(section.contains(lane));
    // Those are all: the compiler says so of the first four, and no fifth is taken.
    let _all = |ask: AgentAsk| match ask {
        AgentAsk::Take(_) | AgentAsk::Call(_) | AgentAsk::Cancel(_) | AgentAsk::Close(_) => {}
    };
    assert!(take::<AgentAsk>(&[0x82, 4, 1]).is_ok());
    assert!((5..24).all(|other| take::<AgentAsk>(&[0x82, other, 1]).is_err()));
}
