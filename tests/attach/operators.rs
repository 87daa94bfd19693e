//! The frames that never change: an operator of any version stops a holder of any other.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use host_support::end;
use syscap::format::{
    Body, CONTROL_CONTEXT, Canonical, Control, ControlBody, Encoder, Freeze, FreezeChange,
    FreezeTarget, Item, ItemKind, RecordKind, Revocation, Role, Seq, Signed, preimage,
};
use syscap::prelude::*;
use syscap::verify::Soundness;
use syscap::{FileKeys, HolderStatus, Operator, Phase, Runtime, Session, Signer, Versions};

use crate::{attach::wire::*, attach::world::*};

/// Hello in versions that are not there yet, and in one that is not there any more.
const NEWER: [u8; 5] = [0x84, 1, 9, 10, 1];
const OLDER: [u8; 5] = [0x84, 1, 2, 3, 1];
const SHUTDOWN: [u8; 3] = [0x82, 7, 10];
/// For an agent `a`, under the id 8.
const FREEZE: [u8; 7] = [0x85, 5, 8, 1, 0x61, b'a', 1];
const THAW: [u8; 7] = [0x85, 5, 8, 1, 0x61, b'a', 2];

/// Of a token, under the id 7.
fn revoke(token: TokenId) -> Vec<u8> {
    [&[0x83, 4, 7, 0x58, 0x20][..], token.as_bytes()].concat()
}

/// The record that an answer names.
fn done(answer: &Canonical, id: u64) -> Seq {
    let items = uints(answer);
    assert_eq!((items.len(), &items[..2]), (3, &[9, id][..]), "{answer:?}");
    Seq::new(items[2])
}

fn reason(caller: &Session) -> Option<Reason> {
    echo(caller).unwrap().reason()
}

/// Everything that an operator can always do, by bytes that are written out here; then the home
/// is shut down.
fn stops(mut stream: UnixStream, home: &Path, holder: &Runtime) {
    let caller = caller(holder, &["echo"]);
    assert_eq!(reason(&caller), None);
    let frozen = done(&ask(&mut stream, &FREEZE), 8);
    assert_eq!(record(home, frozen).body.kind(), RecordKind::Freeze);
    assert_eq!(reason(&caller), Some(Reason::Frozen));

    let stands = ask(&mut stream, &STATUS);
    let view = holder.view().unwrap();
    let head = records(home).last().unwrap().clone();
    assert_eq!(view.head, head.seq);
    let items: Vec<Item<'_>> = stands.item().elements().collect();
    let uint = |place: usize| items[place].as_uint().unwrap();
    assert_eq!((items.len(), uint(0), uint(1)), (11, 11, 9));
    assert_eq!(items[2].as_byte_string(), Some(&view.home.as_bytes()[..]));
    assert_eq!((uint(3), uint(4), uint(5)), (8, 8, 1), "versions, and that it is open");
    assert_eq!((uint(6), items[7].as_byte_string().unwrap().len()), (view.head.get(), 32));
    assert_eq!((uint(8), uint(9), uint(10)), (view.sessions_in_all, 0, 1));

    done(&ask(&mut stream, &THAW), 8);
    assert_eq!(reason(&caller), None);
    let revoked = done(&ask(&mut stream, &revoke(caller.token())), 7);
    assert_eq!(record(home, revoked).body.kind(), RecordKind::Revoke);
    assert_eq!(reason(&caller), Some(Reason::Revoked));
    let unknown = ask(&mut stream, &revoke(TokenId::from_bytes([7; 32])));
    assert_eq!(uints(&unknown), [10, 7, Reason::UnknownToken.code()]);

    stream.write_all(&frame(&SHUTDOWN)).unwrap();
    let mut answer = receive(&mut stream).unwrap();
    if answer.item().kind() == ItemKind::Map {
        // On a lane everybody is told to ask nothing more, and says that he has heard.
        let (heard, carries, body) = parts(&answer);
        assert_eq!((carries, body), (ORDER, &[0x82, 3, 0xf6][..]));
        send(&mut stream, &carrying(heard, DONE, Encoder::null));
        answer = receive(&mut stream).unwrap();
    }
    let ended = done(&answer, 10);
    assert!(is_dropped(stream));
    assert_eq!(records(home).last().unwrap().seq, ended);
    assert_eq!(record(home, ended).body.kind(), RecordKind::Shutdown);
    assert!(!holder.is_holder());
    assert!(matches!(holder.view(), Err(Error::Closed)));
    assert_eq!(verdict(home), Soundness::Sound);
    Runtime::open(home).unwrap().close().unwrap();
}

#[test]
fn an_operator_needs_no_hello() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    stops(connect(&home), &home, &holder);
}

#[test]
fn an_operator_needs_no_common_version() {
    for hello in [NEWER, OLDER] {
        let (_dir, home) = home();
        let holder = Runtime::open(&home).unwrap();
        let mut stream = connect(&home);
        assert_eq!(uints(&ask(&mut stream, &hello)), [3, Reason::UnknownVersion.code(), 8, 8]);
        stops(stream, &home, &holder);
    }
}

#[test]
fn an_operator_needs_no_other_way_on_its_lane() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    stops(greeted(&home), &home, &holder);
}

/// So many are let in that there is no room, and as many others only wait or begin a frame.
#[test]
fn an_operator_needs_no_room() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let held: Vec<UnixStream> = (0..256).map(|_| greeted(&home)).collect();
    let waiting: Vec<UnixStream> = (0..200)
        .map(|n| {
            let mut stream = connect(&home);
            // Nothing, a part of a length, a length, a part of a frame.
            stream.write_all(&frame(&[0x82, 6])[..[0, 2, 4, 5][n % 4]]).unwrap();
            stream
        })
        .collect();
    let operator = Operator::open(&home).unwrap();
    assert_eq!(operator.status().unwrap().phase, Phase::Open);
    operator.close().unwrap();
    stops(connect(&home), &home, &holder);
    drop((held, waiting));
}

/// Who is turned away can stop the home all the same.
#[test]
fn an_operator_that_is_turned_away_goes_on() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let mut stream = connect(&home);
    let another_version = [0x84, 1, 9, 10, 1];
    let turned_away = [3, Reason::UnknownVersion.code(), 8, 8];
    assert_eq!(uints(&ask(&mut stream, &another_version)), turned_away);
    stops(stream, &home, &holder);
}

/// Those that only wait are as many as they may be, the newest: all others were told to end.
#[test]
fn waiting_connections_are_bounded() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let mut waiting: Vec<UnixStream> = (0..80).map(|_| connect(&home)).collect();
    until("they have come", || holder.view().unwrap().counts.connections == 80);
    until("some have gone", || holder.view().unwrap().counts.attached == 64);
    let newest = waiting.split_off(16);
    assert!(waiting.into_iter().all(is_dropped));
    for mut stream in newest {
        assert_eq!(uints(&ask(&mut stream, &STATUS))[..2], [11, 9]);
        stream.write_all(&frame(&STATUS)).unwrap();
    }
}

/// A connection without a place is dropped where it pauses, or asks for anything else.
#[test]
fn unadmitted_connection_is_dropped_at_its_next_request() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let others: [&[u8]; 4] = [
        b"\xa2bid\x01bopdview",
        &HELLO,
        // A frame that is too long, and one of a version's answers.
        &[0x80; 4_097],
        b"\xa2bid\x00ddone\xf6",
    ];
    for other in others {
        for first in [&STATUS[..], &NEWER] {
            let mut stream = connect(&home);
            ask(&mut stream, first);
            stream.write_all(&frame(other)).unwrap();
            assert!(is_dropped(stream), "{:02x?}", &other[..other.len().min(20)]);
        }
    }
    let mut idle = connect(&home);
    ask(&mut idle, &STATUS);
    assert!(is_dropped(idle));
    until("they have left", || holder.view().unwrap().counts.attached == 0);
}

#[test]
fn unfit_operator_request_changes_nothing() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let before = records(&home).len();
    let mut stream = connect(&home);
    let (version, control) = (Reason::UnknownVersion.code(), Reason::BadControl.code());
    for (bytes, id, code) in [
        (&[0x82, 12, 5][..], 5, version),
        (&[0x85, 5, 6, 4, 0x60, 1], 6, control),
        (&[0x85, 5, 6, 3, 0x60, 3], 6, control),
        // A policy is no frame's here; nor is what is no event.
        (&[0x85, 8, 7, 9, 2, 0x40], 7, control),
        (&[0x85, 8, 7, 7, 2, 0x41, 0xa0], 7, control),
        (&[0x85, 8, 7, 7, 3, 0x41, 0xa0], 7, version),
    ] {
        assert_eq!(uints(&ask(&mut stream, bytes)), [10, id, code], "{bytes:02x?}");
    }
    assert_eq!(records(&home).len(), before);
    holder.close().unwrap();
}

/// A revocation as it stands in a record, signed elsewhere by the home's revoker.
fn signed(home: &Path, holder: &Runtime, token: TokenId, counter: u64) -> Vec<u8> {
    let keys = FileKeys::open(&home.join("keys")).unwrap();
    let key = keys.public_key(Role::Revoker).unwrap();
    let body = Revocation::subtree(token).to_bytes();
    let (id, head) = (holder.id(), Operator::open(home).unwrap().status().unwrap().head);
    let message = Control::message(&id, &head, &key, counter, RecordKind::Revoke, &body);
    let signature = keys.sign(Role::Revoker, &preimage(CONTROL_CONTEXT, &message)).unwrap();
    Control::by_one(head, body, Signed { key, counter, signature }).to_bytes()
}

#[test]
fn an_event_that_was_signed_elsewhere_is_taken_as_it_is() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let caller = caller(&holder, &["echo"]);
    let event = signed(&home, &holder, caller.token(), 5);
    let send = |stream: &mut UnixStream, kind: RecordKind, event: &[u8]| {
        let mut bytes = Encoder::new();
        bytes.array(5);
        bytes.uint(8);
        bytes.uint(3);
        bytes.uint(kind.code());
        bytes.uint(2);
        bytes.bytes(event);
        ask(stream, &bytes.into_bytes())
    };
    let mut stream = connect(&home);
    let mut forged = event.clone();
    *forged.last_mut().unwrap() ^= 1;
    let refused = send(&mut stream, RecordKind::Revoke, &forged);
    assert_eq!(uints(&refused), [10, 3, Reason::BadSignature.code()]);
    let refused = send(&mut stream, RecordKind::Freeze, &event);
    assert_eq!(uints(&refused), [10, 3, Reason::BadSignature.code()]);
    assert_eq!(reason(&caller), None);
    let revoked = done(&send(&mut stream, RecordKind::Revoke, &event), 3);
    let Body::Revoke(on_record) = record(&home, revoked).body else { panic!("no revocation") };
    assert_eq!(on_record.control.signatures[0].counter, 5);
    assert_eq!(reason(&caller), Some(Reason::Revoked));
    let again = send(&mut stream, RecordKind::Revoke, &event);
    assert_eq!(uints(&again), [10, 3, Reason::StaleCounter.code()]);
    drop(stream);
    end(&holder, &home);
}

/// Each side says which versions it speaks, and both find the same one, or know who is older.
#[test]
fn versions_are_agreed_on() {
    let (_dir, home) = home();
    let _holder = Runtime::open(&home).unwrap();
    for (hello, answer) in [
        ([0x84, 1, 0, 9, 1], &[2, 8][..]),
        ([0x84, 1, 8, 8, 1], &[2, 8]),
        (NEWER, &[3, 106, 8, 8]),
        (OLDER, &[3, 106, 8, 8]),
        // A lane that only a later version has, in versions that are known, and that are not.
        ([0x84, 1, 7, 8, 3], &[3, 231, 8, 8]),
        ([0x84, 1, 9, 9, 3], &[3, 106, 8, 8]),
    ] {
        assert_eq!(uints(&ask(&mut connect(&home), &hello)), answer, "{hello:02x?}");
    }
    // On another lane than the operator's there is nothing more to say.
    for hello in [[0x84, 1, 9, 10, 2], [0x84, 1, 8, 8, 3]] {
        let mut stream = connect(&home);
        assert_eq!(uints(&ask(&mut stream, &hello))[0], 3);
        assert!(is_dropped(stream));
    }
}

/// A holder that speaks these versions: it answers hello and status, and says what else it was
/// sent, which it calls done by record 42.
fn other_holder(listener: &UnixListener, versions: [u8; 2], connections: usize) -> Vec<Vec<u8>> {
    let mut sent = Vec::new();
    for _ in 0..connections {
        let (mut stream, _) = listener.accept().unwrap();
        while let Some(asked) = receive(&mut stream) {
            let bytes = asked.as_bytes();
            let answer = match (bytes[1], uints(&asked).get(1)) {
                (1, _) => [&[0x84, 3, 0x18, 106][..], &versions].concat(),
                (6, Some(id)) => {
                    let id = u8::try_from(*id).unwrap();
                    let home = [&[0x8b, 11, id, 0x58, 0x20][..], &[0xaa; 32]].concat();
                    let head = [&versions[..], &[1, 5, 0x58, 0x20], &[0xcc; 32]].concat();
                    [home, head, vec![0, 0, 0]].concat()
                }
                (_, Some(id)) => {
                    sent.push(bytes.to_vec());
                    vec![0x83, 9, u8::try_from(*id).unwrap(), 0x18, 42]
                }
                (..) => panic!("{bytes:02x?}"),
            };
            stream.write_all(&frame(&answer)).unwrap();
        }
    }
    sent
}

#[test]
fn a_holder_of_another_version_is_stopped_all_the_same() {
    let ours = Versions::OURS;
    for (least, greatest) in [(0, 0), (9, 10)] {
        let (_dir, home) = home();
        let theirs = Versions { least: least.into(), greatest: greatest.into() };
        let listener = UnixListener::bind(home.join("socket")).unwrap();
        std::thread::scope(|scope| {
            let holder = scope.spawn(|| other_holder(&listener, [least, greatest], 3));
            // What needs a version says who is older.
            for error in
                [Runtime::connect(&home).err().unwrap(), Runtime::command(&home).err().unwrap()]
            {
                let Error::Version { holder, ours: own } = error else { panic!("{error}") };
                assert_eq!((holder, own), (theirs, ours));
                assert_eq!(
                    (holder.are_before(own), own.are_before(holder)),
                    (least == 0, least == 9)
                );
            }
            let operator = Operator::open(&home).unwrap();
            let token = TokenId::from_bytes([0xbb; 32]);
            let freeze = Freeze {
                target: FreezeTarget::Agent,
                name: Box::from("a"),
                change: FreezeChange::Freeze,
            };
            let record = Seq::new(42);
            assert_eq!(operator.revoke(token).unwrap(), record);
            assert_eq!(operator.freeze(&freeze).unwrap(), record);
            let HolderStatus { versions, phase, .. } = operator.status().unwrap();
            assert_eq!((versions, phase), (theirs, Phase::Open));
            assert_eq!(operator.shutdown().unwrap(), record);
            let sent = holder.join().unwrap();
            let wanted = [revoke(token), FREEZE.to_vec(), SHUTDOWN.to_vec()];
            // But for the ids, which are the client's to choose.
            let but_ids = |frames: &[Vec<u8>]| -> Vec<Vec<u8>> {
                frames.iter().map(|frame| [&frame[..2], &frame[3..]].concat()).collect()
            };
            assert_eq!(but_ids(&sent), but_ids(&wanted));
        });
    }
}

/// What is shut down is closed as its owner would: what runs ends first; a command that was
/// connected goes on by itself.
#[test]
fn a_home_that_is_shut_down_is_another_holders() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let attached = Runtime::command(&home).unwrap();
    let gate = Gate::new(WhenCancelled::Ends);
    attached.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    let theirs = caller(&attached, &["t.a"]);
    let ours = caller(&attached, &["echo"]);
    let ended = std::thread::scope(|scope| {
        let out = scope.spawn(|| call(&theirs, "t.a", args! {}));
        until("it runs", || gate.came().len() == 1);
        let operators = [(); 3].map(|()| Operator::open(&home).unwrap());
        let asked = operators.map(|operator| scope.spawn(move || operator.shutdown()));
        until("it ends", || !holder.is_holder());
        gate.open();
        assert_eq!(out.join().unwrap().unwrap().reason(), None);
        let ended = asked.map(|asked| asked.join().unwrap());
        // Who comes too late finds the next holder, if there is one by then.
        let told: Vec<Seq> = ended.into_iter().flatten().collect();
        assert!(!told.is_empty());
        told
    });
    for record in &ended {
        assert_eq!(self::record(&home, *record).body.kind(), RecordKind::Shutdown);
    }
    assert_eq!(reason(&ours), None);
    assert!(attached.is_holder() || attached.view().is_ok());
    // The owner of the one that was shut down hears nothing wrong.
    holder.close().unwrap();
    drop((theirs, ours));
    end(&attached, &home);
}

/// The owner who closes it meanwhile comes back when it is closed, and not before.
#[test]
fn an_owner_waits_until_it_is_shut_down() {
    let (_dir, home) = home();
    let holder = Runtime::open(&home).unwrap();
    let gate = Gate::new(WhenCancelled::Ends);
    holder.provide(vec![manifest("t.a")], gate.provider()).unwrap();
    let caller = caller(&holder, &["t.a"]);
    let operator = Operator::open(&home).unwrap();
    std::thread::scope(|scope| {
        let out = scope.spawn(|| call(&caller, "t.a", args! {}));
        until("it runs", || gate.came().len() == 1);
        let asked = scope.spawn(|| operator.shutdown());
        until("it ends", || !holder.is_holder());
        holder.close().unwrap();
        let last = records(&home).pop().unwrap();
        assert_eq!(last.body.kind(), RecordKind::Shutdown);
        assert_eq!(asked.join().unwrap().unwrap(), last.seq);
        // Nobody let it go on, and then it was given up.
        assert_eq!(out.join().unwrap().unwrap().reason(), Some(Reason::Cancelled));
    });
    assert_eq!(verdict(&home), Soundness::Sound);
}

/// Where nobody holds the home, an operator does.
#[test]
fn an_operator_holds_a_home_that_nobody_does() {
    let (_dir, home) = home();
    let runtime = Runtime::open(&home).unwrap();
    let token = runtime.issue(Grant::to("a").tools(["echo"])).unwrap();
    runtime.close().unwrap();
    let operator = Operator::open(&home).unwrap();
    assert!(!home.join("socket").exists());
    let revoked = operator.revoke(token).unwrap();
    assert_eq!(operator.status().unwrap().head.seq, revoked);
    let ended = operator.shutdown().unwrap();
    assert_eq!(records(&home).last().unwrap().seq, ended);
    // One that is only let go of ends properly too.
    Operator::open(&home).unwrap().close().unwrap();
    drop(Operator::open(&home).unwrap());
    assert_eq!(verdict(&home), Soundness::Sound);
}
