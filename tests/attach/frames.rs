//! Peers that speak otherwise than they should: each harms its own connection and no other.

use std::{
    io::Write,
    os::unix::net::{UnixListener, UnixStream},
    time::{Duration, Instant},
};

use syscap::{
    Runtime, Session,
    format::cbor::{Canonical, Item, MapBuilder},
    prelude::*,
};

use crate::{wire::*, world::*};

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
    let holder = Runtime::share(&home).unwrap();
    let attached = Runtime::share(&home).unwrap();
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
    let map = || MapBuilder::new().uint("id", 1);
    let token = [7; 32];
    let bad: Vec<Vec<u8>> = vec![
        vec![0xff; 64],
        frame(b""),
        frame(b"\xff\xff"),
        frame(b"\xa0"),
        frame(b"\x80"),
        frame(b"\xa1\x01\x02"),
        // Not the shortest form of 1; and bytes after the map.
        frame(b"\xa1bid\x18\x01"),
        frame(b"\xa0\x00"),
        frame(map().text("op", "no such op").finish().as_bytes()),
        // What only a holder asks.
        frame(map().text("op", "closing").finish().as_bytes()),
        frame(map().uint("op", 1).finish().as_bytes()),
        frame(MapBuilder::new().text("op", "view").finish().as_bytes()),
        // An answer to nothing, and none at all.
        frame(map().item("done", Item::NULL).finish().as_bytes()),
        frame(map().finish().as_bytes()),
        // One entry too many, one of another type, and one that is missing.
        frame(map().text("op", "view").uint("more", 1).finish().as_bytes()),
        frame(map().text("op", "take").text("ticket", "x").finish().as_bytes()),
        frame(map().text("op", "take").bytes("ticket", &token[1..]).finish().as_bytes()),
        frame(map().text("op", "open").bytes("token", &token).finish().as_bytes()),
        frame(map().text("op", "set_policy").bytes("policy", b"\xa0").finish().as_bytes()),
        // What is asked by frames that never change, and by no other.
        frame(map().text("op", "revoke").bytes("token", &token).finish().as_bytes()),
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

/// What is well formed, and makes no sense, is answered.
#[test]
fn a_request_that_makes_no_sense_is_answered() {
    let world = world();
    let mut stream = greeted(&world.home);
    let map = |id: u64, op: &str| MapBuilder::new().uint("id", id).text("op", op);
    let code = |answer: &Canonical| answer.item().get("refused")?.get("code")?.as_uint();
    let mut ask = |map: MapBuilder| {
        send(&mut stream, map);
        receive(&mut stream).unwrap()
    };
    let taken = ask(map(2, "take").bytes("ticket", &[7; 32]));
    assert_eq!(code(&taken), Some(Reason::NotBound.code()));
    let lent = ask(map(2, "lend").uint("session", 9));
    assert_eq!(code(&lent), Some(Reason::NoSession.code()));
    let closed = ask(map(3, "close").uint("session", 9));
    assert_eq!(code(&closed), Some(Reason::NoSession.code()));
    // Nor is another's session anybody's.
    let others = world.holder.view().unwrap().sessions[0].number;
    let called = map(4, "call").uint("session", others.get()).bytes("envelope", b"\xa0");
    let called = called.text("form", "cbor").text("source", "agent").uint("tag", 0);
    let called = ask(called);
    assert_eq!(code(&called), Some(Reason::NoSession.code()));
    let lent_others = ask(map(5, "lend").uint("session", others.get()));
    assert_eq!(code(&lent_others), Some(Reason::NoSession.code()));
    assert_eq!(world.holder.view().unwrap().counts.calls, 0);
    let named = ask(map(5, "open").text("agent", "No Agent").bytes("token", &[7; 32]));
    assert_eq!(
        named.item().get("failed").unwrap().get("name").unwrap().as_text(),
        Some("the agent")
    );
    for answer in [taken, lent, closed, called, lent_others, named] {
        assert!(answer.item().get("id").is_some());
    }
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
    send(&mut idle, MapBuilder::new().uint("id", 1).text("op", "view"));
    assert!(receive(&mut idle).unwrap().item().get("done").is_some());
}

/// A peer that asks and never reads: what is written to it fills the socket, and then it is
/// dropped. Nobody else waits for it.
#[test]
fn a_peer_that_does_not_read_is_dropped() {
    let world = world();
    let mut stream = greeted(&world.home);
    stream.set_write_timeout(Some(Duration::from_secs(1))).unwrap();
    let view = |id| MapBuilder::new().uint("id", id).text("op", "view").finish();
    let since = Instant::now();
    let mut longest = Duration::ZERO;
    let mut id = 0;
    loop {
        assert!(since.elapsed() < Duration::from_secs(30), "it was never dropped");
        id += 1;
        match stream.write_all(&frame(view(id).as_bytes())) {
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
    let agent = || settled_by(&world.home, &HELLO_AGENTS);
    // One more is attached.
    let held: Vec<UnixStream> = (0..223).map(|_| agent()).collect();
    let mut one_more = connect(&world.home);
    let overloaded = [3, Reason::Overloaded.code(), 1, 1];
    assert_eq!(uints(&ask(&mut one_more, &HELLO_AGENTS)), overloaded);
    assert!(is_dropped(one_more));
    world.notices_nothing();
    // One that waits gets the place of one that leaves.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| Runtime::agent(&world.home).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        drop(held);
        assert!(waits.join().unwrap().is_some());
    });
}

/// A holder that says something else than that it lets in, or does not.
#[test]
fn a_holder_that_speaks_otherwise_is_an_error() {
    let welcome = |version: u8| [&[0x83, 2, version, 0x58, 0x20][..], &[0; 32]].concat();
    let answers = [
        b"\xa1bid\x00".to_vec(),
        b"\x83\x09\x00\x01".to_vec(),
        // Versions that were not offered, and no range.
        welcome(0),
        welcome(2),
        vec![0x84, 3, 0x18, 106, 2, 1],
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
            let error = Runtime::share(&home).err().unwrap();
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
                let welcome = [&[0x83, 2, 1, 0x58, 0x20][..], id.as_bytes()].concat();
                stream.write_all(&frame(&welcome)).unwrap();
                let asked = receive(&mut stream).unwrap();
                assert_eq!(asked.item().get("op").unwrap().as_text(), Some("issue"));
                let id = asked.item().get("id").unwrap().as_uint().unwrap();
                let refused = MapBuilder::new().uint("code", Reason::Closing.code()).finish();
                drop(listener);
                if turns_away {
                    let map = MapBuilder::new().uint("id", id);
                    send(&mut stream, map.item("refused", refused.item()));
                }
            });
            let access = Runtime::share(&home).unwrap();
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
