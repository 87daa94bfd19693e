//! Frames by hand.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use syscap::Session;
use syscap::format::{Canonical, Decoder, Encoder, Item, Profile, Reason, Source};

/// Hello: version 4, the operator's lane; and the agents'.
pub(crate) const HELLO: [u8; 5] = [0x84, 1, 8, 8, 1];
pub(crate) const HELLO_AGENTS: [u8; 5] = [0x84, 1, 8, 8, 2];
/// A question how things stand, under the id 9.
pub(crate) const STATUS: [u8; 3] = [0x82, 6, 9];

pub(crate) fn connect(home: &Path) -> UnixStream {
    let stream = UnixStream::connect(home.join("socket")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream
}

pub(crate) fn frame(bytes: &[u8]) -> Vec<u8> {
    let mut frame = u32::try_from(bytes.len()).unwrap().to_be_bytes().to_vec();
    frame.extend_from_slice(bytes);
    frame
}

/// What a frame of a version carries, by its number.
pub(crate) const AGENT_ASK: u64 = 2;
pub(crate) const ASK: u64 = 3;
pub(crate) const ORDER: u64 = 4;
pub(crate) const DONE: u64 = 5;
pub(crate) const REFUSED: u64 = 6;
pub(crate) const FAILED: u64 = 7;

/// What agents may ask, and some of what operators may, by their numbers.
pub(crate) const TAKE: u64 = 1;
pub(crate) const CALL: u64 = 2;
pub(crate) const CANCEL: u64 = 3;
pub(crate) const CLOSE: u64 = 4;
pub(crate) const TOOLS: u64 = 6;
pub(crate) const LEFT: u64 = 7;
pub(crate) const OPEN: u64 = 5;
pub(crate) const LEND: u64 = 6;
pub(crate) const VIEW: u64 = 18;

/// A frame of a version.
pub(crate) fn carrying(id: u64, carries: u64, body: impl FnOnce(&mut Encoder)) -> Vec<u8> {
    let mut encoder = Encoder::new();
    encoder.map(2);
    encoder.uint(1);
    encoder.uint(id);
    encoder.uint(carries);
    body(&mut encoder);
    encoder.into_bytes()
}

/// One that asks for something, by its number.
pub(crate) fn asking(
    id: u64,
    carries: u64,
    number: u64,
    what: impl FnOnce(&mut Encoder),
) -> Vec<u8> {
    carrying(id, carries, |encoder| {
        encoder.array(2);
        encoder.uint(number);
        what(encoder);
    })
}

/// A call through a session, by this source, whose envelope is not one.
pub(crate) fn calling(session: u64, source: Source) -> Vec<u8> {
    calling_by(1, session, source, b"\xa0")
}

/// A call by its envelope.
pub(crate) fn calling_by(id: u64, session: u64, source: Source, envelope: &[u8]) -> Vec<u8> {
    asking(id, AGENT_ASK, CALL, |encoder| {
        sending(encoder, session, (source, &[]), envelope);
    })
}

/// What a call carries: by whom, and on whose behalf, it is made.
pub(crate) fn sending(
    encoder: &mut Encoder,
    session: u64,
    (source, within): (Source, &[u64]),
    envelope: &[u8],
) {
    encoder.map(2);
    encoder.uint(1);
    encoder.uint(session);
    encoder.uint(2);
    encoder.map(4);
    encoder.uint(1);
    encoder.bytes(envelope);
    encoder.uint(2);
    encoder.uint(1);
    encoder.uint(3);
    encoder.uint(source.code());
    encoder.uint(4);
    encoder.map(3);
    encoder.uint(1);
    encoder.uint(0);
    encoder.uint(2);
    encoder.array(within.len());
    within.iter().for_each(|intent| encoder.uint(*intent));
    encoder.uint(3);
    encoder.boolean(false);
}

pub(crate) fn send(stream: &mut UnixStream, bytes: &[u8]) {
    stream.write_all(&frame(bytes)).unwrap();
}

pub(crate) fn receive(stream: &mut UnixStream) -> Option<Canonical> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut bytes = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap()];
    stream.read_exact(&mut bytes).ok()?;
    Some(Canonical::check(bytes, Profile::DATA).unwrap())
}

/// The id of a frame, what it carries, and the bytes of that.
pub(crate) fn parts(frame: &Canonical) -> (u64, u64, &[u8]) {
    let mut decoder = Decoder::new(frame.as_bytes(), Profile::DATA);
    decoder.shape(2).unwrap();
    decoder.key(1).unwrap();
    let (id, carries) = (decoder.uint().unwrap(), decoder.uint().unwrap());
    (id, carries, &frame.as_bytes()[decoder.position()..])
}

/// The reason of a frame that refuses.
pub(crate) fn refused(frame: &Canonical) -> Option<u64> {
    let (_, carries, body) = parts(frame);
    let first = Item::check(body, Profile::DATA).unwrap().elements().next();
    first.and_then(Item::as_uint).filter(|_| carries == REFUSED)
}

/// The frame that refuses what was asked under this id.
pub(crate) fn refusing(id: u64, reason: Reason) -> Vec<u8> {
    carrying(id, REFUSED, |encoder| {
        encoder.array(4);
        encoder.uint(reason.code());
        (0..3).for_each(|_| encoder.null());
    })
}

/// Writes a frame, and reads the next one.
pub(crate) fn ask(stream: &mut UnixStream, bytes: &[u8]) -> Canonical {
    stream.write_all(&frame(bytes)).unwrap();
    receive(stream).unwrap()
}

/// The items of an array that are uint.
pub(crate) fn uints(frame: &Canonical) -> Vec<u64> {
    frame.item().elements().filter_map(Item::as_uint).collect()
}

/// A connection that has been let in on the operator's lane.
pub(crate) fn greeted(home: &Path) -> UnixStream {
    greeted_by(home, &HELLO)
}

pub(crate) fn greeted_by(home: &Path, hello: &[u8]) -> UnixStream {
    let mut stream = connect(home);
    let welcome = ask(&mut stream, hello);
    assert_eq!(uints(&welcome), [2, 8], "welcome, in version 8");
    stream
}

/// Whether the other side has closed it, having said nothing more.
pub(crate) fn is_dropped(mut stream: UnixStream) -> bool {
    let mut rest = Vec::new();
    match stream.read_to_end(&mut rest) {
        Ok(_) => rest.is_empty(),
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

/// One that has a session, which the holder lends it.
pub(crate) fn settled_by(home: &Path, hello: &[u8], lent: Session) -> UnixStream {
    let ticket = lent.lend().unwrap();
    let mut stream = greeted_by(home, hello);
    let take = asking(1, AGENT_ASK, TAKE, |encoder| encoder.bytes(ticket.as_bytes()));
    assert_eq!(parts(&ask(&mut stream, &take)).1, DONE);
    stream
}

/// Why a session that nobody has lent can't be taken: also where there is no room for another.
pub(crate) fn untaken(stream: &mut UnixStream) -> Option<u64> {
    send(stream, &asking(1, AGENT_ASK, TAKE, |encoder| encoder.bytes(&[7; 32])));
    refused(&receive(stream)?)
}
