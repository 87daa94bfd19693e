//! Peers that speak otherwise than they should: each harms its own connection and no other.

use std::{
    io::{Read, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    time::{Duration, Instant},
};

use syscap::{
    access::{Access, Caller},
    kernel::cbor::{Canonical, Item, MapBuilder, Profile},
    prelude::*,
};

use crate::world::*;

fn connect(home: &Path) -> UnixStream {
    let stream = UnixStream::connect(home.join("socket")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    frame
}

fn hello(version: u64) -> MapBuilder {
    MapBuilder::new().uint("id", 0).text("op", "hello").uint("version", version)
}

fn send(stream: &mut UnixStream, map: MapBuilder) {
    stream.write_all(&frame(map.finish().as_bytes())).unwrap();
}

fn receive(stream: &mut UnixStream) -> Option<Canonical> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut bytes = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap()];
    stream.read_exact(&mut bytes).ok()?;
    Some(Canonical::check(bytes, Profile::DATA).unwrap())
}

/// A connection that has been greeted.
fn greeted(home: &Path) -> UnixStream {
    let mut stream = connect(home);
    send(&mut stream, hello(1));
    let greeting = receive(&mut stream).unwrap();
    assert_eq!(greeting.item().get("done").unwrap().get("version").unwrap().as_uint(), Some(1));
    stream
}

/// Whether the other side has closed it, having said nothing more.
fn is_dropped(mut stream: UnixStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => rest.is_empty(),
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// A home with a holder, and somebody attached who must not notice anything.
struct World {
    _dir: tempfile::TempDir,
    home: std::path::PathBuf,
    holder: Access,
    _attached: Access,
    caller: Caller,
}

fn world() -> World {
    let (dir, home) = home();
    let holder = Access::open(&home).unwrap();
    let attached = Access::open(&home).unwrap();
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
        frame(map().text("op", "revoke").text("token", "x").finish().as_bytes()),
        frame(map().text("op", "revoke").bytes("token", &token[1..]).finish().as_bytes()),
        frame(map().text("op", "open").bytes("token", &token).finish().as_bytes()),
        frame(map().text("op", "set_policy").bytes("policy", b"\xa0").finish().as_bytes()),
        frame(map().text("op", "freeze").bytes("freeze", b"").finish().as_bytes()),
        (32_u32 << 20).to_be_bytes().to_vec(),
        u32::MAX.to_be_bytes().to_vec(),
    ];
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
    let again = ask(map(1, "hello").uint("version", 1));
    assert_eq!(code(&again), Some(Reason::Malformed.code()));
    let revoked = ask(map(2, "revoke").bytes("token", &[7; 32]));
    assert_eq!(code(&revoked), Some(Reason::UnknownToken.code()));
    let closed = ask(map(3, "close").uint("session", 9));
    assert_eq!(code(&closed), Some(Reason::Closing.code()));
    // Nor is another's session anybody's.
    let others = world.holder.view().unwrap().sessions[0].number;
    let taken = map(4, "call").uint("session", others.get()).bytes("envelope", b"\xa0");
    let taken = ask(taken.text("form", "cbor").uint("tag", 0));
    assert_eq!(code(&taken), Some(Reason::Closing.code()));
    assert_eq!(world.holder.view().unwrap().counts.calls, 0);
    let named = ask(map(5, "open").text("agent", "No Agent").bytes("token", &[7; 32]));
    assert_eq!(
        named.item().get("failed").unwrap().get("name").unwrap().as_text(),
        Some("the agent")
    );
    for answer in [again, revoked, closed, taken, named] {
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
    let held: Vec<UnixStream> = (0..255).map(|_| greeted(&world.home)).collect();
    let mut one_more = connect(&world.home);
    let refused = receive(&mut one_more).unwrap();
    let code = refused.item().get("refused").unwrap().get("code").unwrap().as_uint();
    assert_eq!(code, Some(Reason::Overloaded.code()));
    assert!(is_dropped(one_more));
    world.notices_nothing();
    // One that waits gets the place of one that leaves.
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| Access::open(&world.home).unwrap());
        std::thread::sleep(Duration::from_millis(200));
        drop(held);
        assert!(!waits.join().unwrap().is_holder());
    });
}

#[test]
fn another_version_is_told_so() {
    let world = world();
    let mut stream = connect(&world.home);
    // What another version says besides is its own affair.
    send(&mut stream, hello(2).text("besides", "x"));
    let answer = receive(&mut stream).unwrap();
    let version = answer.item().get("failed").unwrap().get("version").unwrap().as_uint();
    assert_eq!(version, Some(1));
    assert!(is_dropped(stream));
    world.notices_nothing();
}

/// A holder of another version, and one that is none.
#[test]
fn a_holder_that_speaks_otherwise_is_an_error() {
    let answers = [
        MapBuilder::new().item("failed", MapBuilder::new().uint("version", 2).finish().item()),
        MapBuilder::new().item("failed", MapBuilder::new().text("text", "no").finish().item()),
        MapBuilder::new().item("done", Item::NULL),
    ];
    for (n, answer) in answers.into_iter().enumerate() {
        let (_dir, home) = home();
        let listener = UnixListener::bind(home.join("socket")).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let (mut stream, _) = listener.accept().unwrap();
                let asked = receive(&mut stream).unwrap();
                assert_eq!(asked.item().get("op").unwrap().as_text(), Some("hello"));
                send(&mut stream, answer.uint("id", 0));
                assert!(is_dropped(stream));
            });
            match Access::open(&home).err().unwrap() {
                Error::Version { holder } => assert_eq!((n, holder), (0, 2)),
                Error::Holder(_) => assert!(n > 0),
                error => panic!("{n}: {error}"),
            }
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
                let greeting = MapBuilder::new().uint("version", 1).uint("connection", 1);
                let greeting = greeting.bytes("home", id.as_bytes()).finish();
                send(&mut stream, MapBuilder::new().uint("id", 0).item("done", greeting.item()));
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
            let access = Access::open(&home).unwrap();
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
