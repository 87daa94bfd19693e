//! Frames by hand.

use std::{
    io::{Read, Write},
    os::unix::net::UnixStream,
    path::Path,
    time::Duration,
};

use syscap::format::{
    cbor::{Canonical, Item, MapBuilder, Profile},
    reason::Reason,
};

/// Hello: version 1, the operator's lane; and the agents'.
pub(crate) const HELLO: [u8; 5] = [0x84, 1, 1, 1, 1];
pub(crate) const HELLO_AGENTS: [u8; 5] = [0x84, 1, 1, 1, 2];
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

pub(crate) fn send(stream: &mut UnixStream, map: MapBuilder) {
    stream.write_all(&frame(map.finish().as_bytes())).unwrap();
}

pub(crate) fn receive(stream: &mut UnixStream) -> Option<Canonical> {
    let mut head = [0; 4];
    stream.read_exact(&mut head).ok()?;
    let mut bytes = vec![0; usize::try_from(u32::from_be_bytes(head)).unwrap()];
    stream.read_exact(&mut bytes).ok()?;
    Some(Canonical::check(bytes, Profile::DATA).unwrap())
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
    assert_eq!(uints(&welcome), [2, 1], "welcome, in version 1");
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

/// One that has asked for a session, or offered a tool, and stays: it has got none.
pub(crate) fn settled_by(home: &Path, hello: &[u8]) -> UnixStream {
    let mut stream = greeted_by(home, hello);
    assert_eq!(untaken(&mut stream), Some(Reason::NotBound.code()));
    stream
}

/// Why a session that nobody has lent can't be taken: also where there is no room for another.
pub(crate) fn untaken(stream: &mut UnixStream) -> Option<u64> {
    send(stream, MapBuilder::new().uint("id", 1).text("op", "take").bytes("ticket", &[7; 32]));
    receive(stream)?.item().get("refused")?.get("code")?.as_uint()
}
