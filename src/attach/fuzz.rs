//! What comes in by the socket, as the fuzz target `frame` tries it: each frame is refused, or
//! read as something that has one form.
#![allow(clippy::expect_used, reason = "what does not hold must show")]

#[cfg(test)]
#[allow(unreachable_pub, reason = "it is shared with the tests of the other targets")]
#[path = "../../fuzz/src/corpus.rs"]
mod corpus;
#[cfg(test)]
mod tests;

use std::{io::Write as _, net::Shutdown, os::unix::net::UnixStream, sync::Arc};

use syscap_format::cbor::{Canonical, Item};

use super::{
    frozen::{Answer, Said},
    hello::{Greeting, Hello},
    limits::{FRAME_BYTES_MAX, FROZEN_BYTES_MAX, FROZEN_TEXT_BYTES_MAX},
    message::{Ask, Frame, Order},
    reply::{self, Reply},
    uses, views,
    wire::{Broken, Reader},
};
use crate::view::{ToolDetail, View};

/// What a pair of sockets holds before anybody reads.
const HELD_BYTES_MAX: usize = 64 << 10;

/// Bytes as they come in by a connection, and as one frame.
pub fn frame(data: &[u8]) {
    if data.len() <= HELD_BYTES_MAX {
        arrives(data);
    }
    taken(data);
}

fn arrives(data: &[u8]) {
    let (here, mut there) = UnixStream::pair().expect("a pair of sockets");
    there.write_all(data).expect("written");
    there.shutdown(Shutdown::Write).expect("ended");
    let mut reader = Reader::new(Arc::new(here), Arc::default()).expect("a reader");
    let (mut rest, mut most) = (data, FROZEN_BYTES_MAX);
    loop {
        let wanted = cut(rest, most);
        let found = reader.next(None);
        assert_eq!(found.as_deref(), wanted.as_ref().map(|(frame, _)| *frame));
        let Ok((frame, after)) = wanted else { return };
        taken(frame);
        // As after a welcome.
        reader.take_long_frames();
        (rest, most) = (after, FRAME_BYTES_MAX);
    }
}

/// The first frame and what follows it.
fn cut(bytes: &[u8], most: usize) -> Result<(&[u8], &[u8]), Broken> {
    if bytes.is_empty() {
        return Err(Broken::Ended);
    }
    let (head, rest) = bytes.split_first_chunk().ok_or(Broken::Cut)?;
    match usize::try_from(u32::from_be_bytes(*head)) {
        Ok(length) if (1..=most).contains(&length) => {
            rest.split_at_checked(length).ok_or(Broken::Cut)
        }
        _ => Err(Broken::Length),
    }
}

/// One frame, read by whichever side it may be for.
fn taken(bytes: &[u8]) {
    let same = |written: Canonical| assert_eq!(written.as_bytes(), bytes);
    match Said::read(bytes) {
        Ok(Said::Hello(Hello { versions, lane: Some(lane) })) => same(Hello::write(versions, lane)),
        Ok(Said::Asked(id, Ok(command))) => same(command.write(id)),
        _ => {}
    }
    if let Ok(greeting) = Greeting::read(bytes) {
        same(greeting.write());
    }
    if let Ok((id, answer)) = Answer::read(bytes) {
        match &answer {
            Answer::Refused(_, text) if text.len() > FROZEN_TEXT_BYTES_MAX => {}
            _ => same(answer.write(id)),
        }
        drop(answer.into_reply().into_result());
    }
    if let Some(written) = again(bytes) {
        assert_eq!(again(written.as_bytes()), Some(written));
    }
}

/// A frame of version 1, written as it was understood.
fn again(bytes: &[u8]) -> Option<Canonical> {
    match Frame::read(bytes).ok()? {
        Frame::Asked(id, op, fields) => match Ask::read(op, fields) {
            Ok(ask) => Some(ask.write(id)),
            // No word is one of either side.
            Err(_) => match Frame::read(bytes).ok()? {
                Frame::Asked(id, op, fields) => Some(Order::read(op, fields).ok()?.write(id)),
                Frame::Replied(..) => None,
            },
        },
        Frame::Replied(id, answer) => {
            if let Reply::Done(item) = &answer {
                done(item.item());
            }
            Some(answer.write(id))
        }
    }
}

/// What was asked for, as each of those reads it who may have asked.
fn done(item: Item<'_>) {
    settles(item, reply::read_record, |seq| reply::record(*seq));
    settles(item, reply::read_token, |token| reply::token(*token));
    settles(item, reply::read_ticket, reply::ticket);
    settles(item, reply::read_taken, reply::taken);
    settles(item, reply::read_changed, |changed| reply::changed(*changed));
    settles(item, reply::read_answer, reply::answer);
    settles(item, reply::read_offers, |offers| reply::offers(offers));
    settles(item, reply::read_ran, reply::ran);
    settles(item, uses::read_begun, uses::begun);
    settles(item, views::read_manifests, |manifests| views::manifests(manifests));
    settles(item, ToolDetail::read, ToolDetail::to_canonical);
    settles(item, View::read, View::to_canonical);
}

/// What was read and is written reads as it was written.
fn settles<T>(
    item: Item<'_>,
    read: impl Fn(Item<'_>) -> Result<T, Broken>,
    write: impl Fn(&T) -> Canonical,
) {
    let Ok(value) = read(item) else { return };
    let written = write(&value);
    assert_eq!(read(written.item()).map(|value| write(&value)), Ok(written));
}
