//! Peers that speak otherwise than they should: each harms its own connection and no other.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::{Duration, Instant};

use host_support::alone;
use syscap::format::{Canonical, EffectClass, Encoder, MapBuilder, Profile, Source, TxOutcome};
use syscap::prelude::*;
use syscap::{Runtime, Session};

use crate::{attach::wire::*, attach::world::*};

/// A home with a holder, and somebody attached who must not notice anything.
struct World {
    _dir: tempfile::TempDir,
    home: std::path::PathBuf,
    holder: Runtime,
    _attached: Runtime,
    caller: Session,
}

fn world() -> World {
    let (dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::connect(&home).unwrap();
    let caller = caller(&attached, &["echo"]);
    World { _dir: dir, home, holder, _attached: attached, caller }
}

impl World {
    fn notices_nothing(&self) {
        assert_eq!(echo(&self.caller).unwrap().reason(), None);
    }
}

#[test]
fn a_malformed_frame_ends_its_connection_and_no_other() {
    let world = world();
    let token = [7; 32];
    let nothing = |carries, number| frame(&asking(1, carries, number, |encoder| encoder.null()));
    let bad: Vec<Vec<u8>> = vec![
        vec![0xff; 64],
        frame(b""),
        frame(b"\xff\xff"),
        frame(b"\xa0"),
        frame(b"\x80"),
        frame(b"\xa1\x01\x02"),
        // Not the shortest form of 1; and bytes after the map.
        frame(b"\xa2\x01\x18\x01\x03\x82\x12\xf6"),
        frame(b"\xa0\x00"),
        frame(&[&asking(1, ASK, VIEW, |encoder| encoder.null())[..], &[0]].concat()),
        // What nobody asks, and what only a holder asks.
        nothing(ASK, 99),
        nothing(AGENT_ASK, 99),
        nothing(ORDER, 3),
        // Nothing that is carried, no number of it, no id, and a frame as it was in version 1.
        frame(&carrying(1, 8, Encoder::null)),
        frame(&carrying(1, ASK, |encoder| encoder.uint(VIEW))),
        frame(b"\xa1\x03\x82\x12\xf6"),
        frame(MapBuilder::new().uint("id", 1).text("op", "view").finish().as_bytes()),
        // No content at all.
        frame(b"\xa1\x01\x01"),
        // One entry too many, one of another type, and one that is missing.
        frame(b"\xa3\x01\x01\x03\x82\x12\xf6\x04\x01"),
        frame(&asking(1, ASK, VIEW, |encoder| encoder.uint(1))),
        frame(&asking(1, AGENT_ASK, TAKE, |encoder| encoder.text("x"))),
        frame(&asking(1, AGENT_ASK, TAKE, |encoder| encoder.bytes(&token[1..]))),
        frame(&asking(1, ASK, OPEN, |encoder| {
            encoder.map(1);
            encoder.uint(2);
            encoder.bytes(&token);
        })),
        frame(&asking(1, ASK, 2, |encoder| encoder.bytes(b"\xa0"))),
        // Such frames: an empty one, without an id, without a token, a holder's, hello again.
        frame(b"\x80"),
        frame(b"\x81\x06"),
        frame(b"\x82\x04\x01"),
        frame(b"\x83\x09\x01\x01"),
        frame(b"\x84\x01\x01\x01"),
        frame(b"\x84\x01\x02\x01\x01"),
        (32_u32 << 20).to_be_bytes().to_vec(),
        u32::MAX.to_be_bytes().to_vec(),
    ];
    let hello_again = frame(&HELLO);
    let mut stream = greeted(&world.home);
    stream.write_all(&hello_again).unwrap();
    assert!(is_dropped(stream));
    for bytes in bad {
        let mut stream = greeted(&world.home);
        stream.write_all(&bytes).unwrap();
        assert!(is_dropped(stream), "{:02x?}", &bytes[..bytes.len().min(60)]);
        world.notices_nothing();
        // The same, before anything was said.
        let mut stream = connect(&world.home);
        stream.write_all(&bytes).unwrap();
        assert!(is_dropped(stream), "{:02x?}", &bytes[..bytes.len().min(60)]);
    }
    until("they have left", || world.holder.view().unwrap().sessions_in_all == 1);
    world.notices_nothing();
}

/// An answer in a sound frame that nobody can read ends its own run, whose effect is unknown and which is
/// charged in full; so does none to no run. The connection and its other runs go on, more slowly.
#[test]
fn unreadable_answer_ends_its_run_alone() {
    let world = world();
    let mut stream = greeted(&world.home);
    let offered = Canonical::check(manifest("t.odd").to_bytes(), Profile::CONTROL).unwrap();
    let provided = ask(
        &mut stream,
        &asking(1, ASK, 9, |encoder| {
            encoder.array(1);
            encoder.map(1);
            encoder.uint(1);
            encoder.item(offered.item());
        }),
    );
    assert_eq!(parts(&provided).1, DONE, "{provided:?}");
    let caller = caller(&world.holder, &["t.odd"]);
    let run = |stream: &mut UnixStream, answer: &dyn Fn(u64) -> Vec<u8>| {
        std::thread::scope(|scope| {
            let called = scope.spawn(|| call(&caller, "t.odd", args! {}).unwrap());
            let order = receive(stream).unwrap();
            let (id, carries, _) = parts(&order);
            assert_eq!(carries, ORDER);
            stream.write_all(&frame(&answer(id))).unwrap();
            called.join().unwrap()
        })
    };
    let long = |encoder: &mut Encoder| {
        encoder.array(4);
        encoder.uint(Reason::NotFound.code());
        encoder.null();
        encoder.text(&"x".repeat(300));
        encoder.null();
    };
    let deep = |encoder: &mut Encoder| (0..200).for_each(|_| encoder.array(1));
    let ran = |encoder: &mut Encoder, came: u64| {
        encoder.map(3);
        encoder.uint(1);
        encoder.array(2);
        encoder.uint(came);
        encoder.text("fine");
        encoder.uint(2);
        encoder.uint(1);
        encoder.uint(3);
        encoder.array(10);
        (0..10).for_each(|_| encoder.uint(0));
    };
    type Body<'b> = (u64, &'b dyn Fn(&mut Encoder));
    let bodies: [Body<'_>; 6] = [
        (DONE, &|encoder| encoder.null()),
        (DONE, &|encoder| encoder.uint(7)),
        (DONE, &deep),
        (DONE, &|encoder| ran(encoder, 9)),
        (REFUSED, &long),
        (FAILED, &|encoder| encoder.text("odd")),
    ];
    for (carries, body) in bodies {
        let answer = run(&mut stream, &|id| carrying(id, carries, |encoder| body(encoder)));
        let came = (answer.reason(), answer.tx_outcome());
        assert_eq!(came, (Some(Reason::BadResponse), TxOutcome::Unknown), "{carries}");
        // Nothing waits for this one.
        stream.write_all(&frame(&carrying(9_999, DONE, Encoder::null))).unwrap();
        world.notices_nothing();
    }
    // Half a character.
    let cut = run(&mut stream, &|id| {
        let mut bytes = carrying(id, DONE, |encoder| ran(encoder, 1));
        let at = bytes.windows(4).position(|part| part == b"fine").unwrap();
        bytes[at + 3] = 0xc3;
        bytes
    });
    assert_eq!((cut.reason(), cut.tx_outcome()), (Some(Reason::BadResponse), TxOutcome::Unknown));
    let answer = run(&mut stream, &|id| carrying(id, DONE, |encoder| ran(encoder, 1)));
    assert_eq!(answer.value().unwrap().as_text(), Some("fine"));
    // Many of them hold up nobody but who sends them.
    let odd = frame(&carrying(9_999, DONE, Encoder::null));
    stream.write_all(&odd.repeat(1_000)).unwrap();
    world.notices_nothing();
    drop(stream);
    until("it has left", || world.holder.view().unwrap().sessions_in_all == 2);
    world.notices_nothing();
}

/// What is well formed, and makes no sense, is answered.
#[test]
fn a_request_that_makes_no_sense_is_answered() {
    let world = world();
    let mut stream = greeted(&world.home);
    let mut ask = |bytes: &[u8]| ask(&mut stream, bytes);
    let session = |number: u64| move |encoder: &mut Encoder| encoder.uint(number);
    let taken = ask(&asking(2, AGENT_ASK, TAKE, |encoder| encoder.bytes(&[7; 32])));
    assert_eq!(refused(&taken), Some(Reason::NotBound.code()));
    let lent = ask(&asking(2, ASK, LEND, session(9)));
    assert_eq!(refused(&lent), Some(Reason::NoSession.code()));
    let closed = ask(&asking(3, AGENT_ASK, CLOSE, session(9)));
    assert_eq!(refused(&closed), Some(Reason::NoSession.code()));
    // Nor is another's session anybody's.
    let others = world.holder.view().unwrap().sessions[0].number;
    let called = ask(&calling(others.get(), Source::Agent));
    assert_eq!(refused(&called), Some(Reason::NoSession.code()));
    let lent_others = ask(&asking(5, ASK, LEND, session(others.get())));
    assert_eq!(refused(&lent_others), Some(Reason::NoSession.code()));
    assert_eq!(world.holder.view().unwrap().counts.calls, 0);
    let named = ask(&asking(6, ASK, OPEN, |encoder| {
        encoder.map(2);
        encoder.uint(1);
        encoder.text("No Agent");
        encoder.uint(2);
        encoder.bytes(&[7; 32]);
    }));
    // [1, {1: what, 2: name}]: a name is not of its form.
    let failed = [&[0x82, 1, 0xa2, 1, 0x69][..], b"the agent", &[2, 0x68], b"No Agent"].concat();
    assert_eq!(parts(&named), (6, FAILED, &failed[..]));
    let ids = [taken, lent, closed, called, lent_others].map(|answer| parts(&answer).0);
    assert_eq!(ids, [2, 2, 3, 1, 5]);
    world.notices_nothing();
}

#[test]
fn a_peer_that_says_nothing_or_too_slowly_is_dropped() {
    let world = world();
    let silent = connect(&world.home);
    let mut slow = greeted(&world.home);
    let mut trickle = greeted(&world.home);
    slow.write_all(&[0, 0]).unwrap();
    trickle.write_all(&100_u32.to_be_bytes()).unwrap();
    let mut idle = greeted(&world.home);
    std::thread::scope(|scope| {
        let since = Instant::now();
        let silent = scope.spawn(|| is_dropped(silent));
        let slow = scope.spawn(|| is_dropped(slow));
        let trickled = scope.spawn(move || {
            // A byte now and then is not enough.
            while trickle.write_all(b"\xa0").is_ok() {
                assert!(since.elapsed() < Duration::from_secs(20));
                std::thread::sleep(Duration::from_millis(200));
            }
        });
        while !silent.is_finished() || !slow.is_finished() || !trickled.is_finished() {
            world.notices_nothing();
            std::thread::sleep(Duration::from_millis(50));
        }
        assert!(silent.join().unwrap() && slow.join().unwrap());
        trickled.join().unwrap();
    });
    // One that is only idle stays.
    let answer = ask(&mut idle, &asking(1, ASK, VIEW, Encoder::null));
    assert_eq!(parts(&answer).1, DONE);
}

/// A peer that asks and never reads: what is written to it fills the socket, and then it is
/// dropped. Nobody else waits for it.
#[test]
fn a_peer_that_does_not_read_is_dropped() {
    let world = world();
    let mut stream = greeted(&world.home);
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let view = |id| asking(id, ASK, VIEW, Encoder::null);
    let since = Instant::now();
    let mut longest = Duration::ZERO;
    let mut id = 0;
    loop {
        assert!(since.elapsed() < Duration::from_secs(30), "it was never dropped");
        id += 1;
        match stream.write_all(&frame(&view(id))) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
            Err(_) => break,
        }
        if id % 64 == 0 {
            let call = Instant::now();
            world.notices_nothing();
            longest = longest.max(call.elapsed());
        }
    }
    assert!(longest < Duration::from_secs(3), "somebody waited for it: {longest:?}");
    world.notices_nothing();
}

#[test]
fn connections_are_bounded() {
    let world = world();
    let token = world.caller.token();
    let lent = || world.holder.session("a", token).unwrap();
    let agent = || settled_by(&world.home, &HELLO_AGENTS, lent());
    let held: Vec<UnixStream> = (0..208).map(|_| agent()).collect();
    // Those without a session make room for each other, and have none for a session.
    let mut others: Vec<UnixStream> =
        (0..40).map(|_| greeted_by(&world.home, &HELLO_AGENTS)).collect();
    let newest = others.last_mut().unwrap();
    assert_eq!(untaken(newest), Some(Reason::Overloaded.code()));
    world.notices_nothing();
    // It gets the place of one that leaves.
    drop(held);
    until("there is room", || untaken(newest) == Some(Reason::NotBound.code()));
}

/// Who gives up what was never asked for, again and again, and reads nothing, keeps one thread
/// busy: its own. Who calls through what it has not takes nobody's place.
#[test]
fn a_flood_costs_a_thread() {
    alone("attach::frames::a_flood_costs_a_thread", flood);
}

fn flood() {
    let world = world();
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = threads();
    let other = world.holder.view().unwrap().sessions[0].number.get();
    let cancel = frame(&asking(7, AGENT_ASK, CANCEL, |encoder| encoder.uint(1)));
    let call = frame(&calling(other, Source::Agent));
    let floods: Vec<UnixStream> = (0..40)
        .map(|n| {
            let mut stream = greeted_by(&world.home, &HELLO_AGENTS);
            stream.set_write_timeout(Some(Duration::from_millis(200))).unwrap();
            let frames = if n % 2 == 0 { &cancel } else { &call };
            // Until nothing more goes in.
            for _ in 0..2_000 {
                if stream.write_all(&frames.repeat(20)).is_err() {
                    break;
                }
            }
            stream
        })
        .collect();
    let more = || threads().saturating_sub(before);
    let comes_to = |most: usize, looks: usize| {
        (0..looks).any(|_| {
            std::thread::sleep(Duration::from_millis(100));
            more() <= most
        })
    };
    // A thread for each frame would be some 1,300, which end in a few seconds.
    assert!(comes_to(500, 10), "{} threads for 40 connections", more());
    assert!(comes_to(60, 300), "{} threads for 40 connections", more());
    world.notices_nothing();
    let operator = syscap::Operator::open(&world.home).unwrap();
    assert_eq!(operator.status().unwrap().phase, syscap::Phase::Open);
    drop(floods);
}

/// Who does not read its answers is not read on: no more is done for it than it takes.
#[test]
fn client_that_reads_no_answers_is_not_read() {
    let (_dir, home) = home();
    let big = "x".repeat(3 << 20);
    let tool = syscap::host::HostTool::new("t.big", EffectClass::Read).unwrap();
    let tool = tool.result_bytes_max(4 << 20).run(move |_| Ok(big.clone()));
    let holder = Options::new().tool(tool).unwrap().open(&home).unwrap();
    let lent = caller(&holder, &["t.big"]);
    let session = lent.number().get();
    let mut stream = settled_by(&home, &HELLO_AGENTS, lent);
    let args = MapBuilder::new().finish();
    let envelope = MapBuilder::new().text("tool_id", "t.big").item("args", args.item()).finish();
    let calls = || holder.view().unwrap().counts.calls;
    let mut is_read = true;
    for id in 1..=30 {
        let before = calls();
        send(&mut stream, &calling_by(id, session, Source::Agent, envelope.as_bytes()));
        let since = Instant::now();
        while is_read && calls() == before {
            is_read = since.elapsed() < Duration::from_secs(1);
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    let done = calls();
    assert!((10..20).contains(&done), "{done} calls");
    // And when it reads, the others are done too.
    let mut answered: Vec<u64> = (0..30).map(|_| parts(&receive(&mut stream).unwrap()).0).collect();
    answered.sort_unstable();
    assert_eq!(answered, (1..=30).collect::<Vec<u64>>());
    assert_eq!(calls(), 30);
    holder.close().unwrap();
}

/// Of two calls under one id neither could be given up: it is a fault. An id is free again when
/// its call is answered.
#[test]
fn an_id_is_of_one_call() {
    let world = world();
    let gate = Gate::new(WhenCancelled::Ends);
    world.holder.provide(vec![manifest("t.wait")], gate.provider()).unwrap();
    let lent = caller(&world.holder, &["t.wait", "echo"]);
    let session = lent.number();
    let mut stream = settled_by(&world.home, &HELLO_AGENTS, lent);
    let envelope = |tool: &str, args: &[(&str, &str)]| {
        let args = args.iter().fold(MapBuilder::new(), |map, (key, value)| map.text(key, value));
        MapBuilder::new().text("tool_id", tool).item("args", args.finish().item()).finish()
    };
    let echo = envelope("echo", &[("value", "x")]);
    for _ in 0..20 {
        let called = calling_by(9, session.get(), Source::Agent, echo.as_bytes());
        assert_eq!(parts(&ask(&mut stream, &called)).1, DONE);
    }
    let wait = envelope("t.wait", &[]);
    let wait = calling_by(9, session.get(), Source::Agent, wait.as_bytes());
    send(&mut stream, &wait);
    until("it runs", || gate.came().len() == 1);
    send(&mut stream, &wait);
    assert!(is_dropped(stream));
    until("what it asked for has ended", || world.holder.view().unwrap().running.is_empty());
}

/// A holder that says something else than that it lets in, or does not.
#[test]
fn a_holder_that_speaks_otherwise_is_an_error() {
    let welcome = |version: u8| [&[0x83, 2, version, 0x58, 0x20][..], &[0; 32]].concat();
    let answers = [
        b"\xa2\x01\x00\x05\xf6".to_vec(),
        b"\x83\x09\x00\x01".to_vec(),
        // Versions that were not offered, and no range.
        welcome(7),
        welcome(9),
        vec![0x84, 3, 0x18, 106, 8, 7],
    ];
    for answer in answers {
        let (_dir, home) = home();
        let listener = UnixListener::bind(home.join("socket")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                assert_eq!(receive(&mut stream).unwrap().as_bytes(), HELLO);
                stream.write_all(&frame(&answer)).unwrap();
                assert!(is_dropped(stream));
            });
            let error = Runtime::connect(&home).err().unwrap();
            assert!(matches!(error, Error::Holder(_)), "{answer:02x?}: {error}");
        });
    }
}

/// A holder that refuses, because it ends, has done nothing: what was asked of it is asked of the
/// next one. What it was asked and did not answer is asked of nobody again.
#[test]
fn only_what_was_turned_away_is_sent_again() {
    for turns_away in [true, false] {
        let (_dir, home) = home();
        let runtime = Runtime::open(&home).unwrap();
        let id = runtime.id();
        runtime.close().unwrap();
        let listener = UnixListener::bind(home.join("socket")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                receive(&mut stream).unwrap();
                let welcome = [&[0x83, 2, 8, 0x58, 0x20][..], id.as_bytes()].concat();
                stream.write_all(&frame(&welcome)).unwrap();
                let asked = receive(&mut stream).unwrap();
                let (id, carries, body) = parts(&asked);
                assert_eq!((carries, &body[..2]), (ASK, &[0x82, 1][..]), "a token is issued");
                drop(listener);
                if turns_away {
                    send(&mut stream, &refusing(id, Reason::Closing));
                }
            });
            let access = Runtime::command(&home).unwrap();
            assert!(!access.is_holder());
            let issued = access.issue(Grant::to("a").tools(["echo"]));
            match turns_away {
                true => assert!(access.view().unwrap().token(issued.unwrap()).is_some()),
                false => assert!(matches!(issued, Err(Error::HolderGone))),
            }
            assert_eq!(access.view().unwrap().tokens_in_all, u64::from(turns_away));
            assert!(access.is_holder());
            access.close().unwrap();
        });
    }
}
