//! Input from the socket, as the fuzz target `frame` tries it: each frame is refused, or read as
//! something that has one form.
#![allow(clippy::expect_used, reason = "what does not hold must show")]

#[cfg(test)]
#[allow(unreachable_pub, reason = "it is shared with the tests of the other targets")]
#[path = "../../tests/fuzz/src/corpus.rs"]
mod corpus;
#[cfg(test)]
mod tests;

use std::{io::Write as _, net::Shutdown, os::unix::net::UnixStream, sync::Arc};

use syscap_format::{Manifest, Seq, TokenId, field::Field};

use crate::Changed;
use crate::inspect::view::{ToolDetail, View};
use crate::server::lend::SessionTicket;
use crate::transport::frame::{Carries, Frame, Message as _, take};
use crate::transport::frozen::{HolderStatus, Response, Said};
use crate::transport::hello::{Greeting, Hello};
use crate::transport::limits::{FRAME_BYTES_MAX, FROZEN_BYTES_MAX, FROZEN_TEXT_BYTES_MAX};
use crate::transport::message::{AgentAsk, Ask, Order};
use crate::transport::reply::{Answered, Leave, Offers, OnRecord, Ran, Reply, Taken};
use crate::transport::wire::{Broken, Reader};

/// The capacity of a pair of sockets without a reader.
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
    let mut reader = Reader::new(Arc::new(here)).expect("a reader");
    let (mut rest, mut most) = (data, FROZEN_BYTES_MAX);
    loop {
        let wanted = cut(rest, most);
        let found = reader.next(None);
        assert_eq!(found.as_deref(), wanted.as_ref().map(|(frame, _)| *frame));
        let Ok((frame, after)) = wanted else { return };
        taken(frame);
        // As after a welcome.
        reader.take_long_frames(FRAME_BYTES_MAX, Arc::default());
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
    let same = |written: Vec<u8>| assert_eq!(written, bytes);
    match Said::read(bytes) {
        Ok(Said::Hello(Hello { versions, lane: Some(lane) })) => same(Hello::write(versions, lane)),
        Ok(Said::Asked(id, Ok(command))) => same(command.write(id)),
        _ => {}
    }
    if let Ok(greeting) = Greeting::read(bytes) {
        same(greeting.write());
    }
    if let Ok((id, answer)) = Response::read(bytes) {
        match &answer {
            Response::Refused(_, text) if text.len() > FROZEN_TEXT_BYTES_MAX => {}
            _ => same(answer.write(id)),
        }
        drop(answer.into_reply().into_bytes().map(|bytes| take::<HolderStatus>(&bytes)));
    }
    let Ok(frame) = Frame::read(bytes) else { return };
    let id = frame.id;
    let same = |written: Option<Vec<u8>>| assert!(written.is_none_or(|written| written == bytes));
    match frame.carries {
        Carries::AgentAsk => same(frame.take::<AgentAsk>().ok().map(|ask| ask.frame(id))),
        Carries::Ask => same(frame.take::<Ask>().ok().map(|ask| ask.frame(id))),
        Carries::Order => same(frame.take::<Order>().ok().map(|order| order.frame(id))),
        Carries::Done | Carries::Refused | Carries::Failed => {
            same(Reply::read(&frame).ok().map(|reply| reply.frame(id)));
        }
    }
    if frame.carries == Carries::Done {
        done(frame.body());
    }
}

/// Reads the answer as each possible requester reads it.
fn done(body: &[u8]) {
    same::<()>(body);
    same::<Seq>(body);
    same::<TokenId>(body);
    same::<SessionTicket>(body);
    same::<Taken>(body);
    same::<Changed>(body);
    same::<Offers>(body);
    same::<Ran>(body);
    same::<Vec<Manifest>>(body);
    same::<ToolDetail>(body);
    same::<View>(body);
    same::<HolderStatus>(body);
    // What a result says beside what was delivered may stand there in more than one form.
    settles::<Answered>(body);
    settles::<OnRecord>(body);
    settles::<Leave>(body);
}

/// A read frame has one form.
fn same<T: Field>(body: &[u8]) {
    let Ok(value) = take::<T>(body) else { return };
    assert_eq!(Reply::done(&value), Reply::Done(body.to_vec()));
}

/// A frame that is read and written reads back equal.
fn settles<T: Field>(body: &[u8]) {
    let Ok(value) = take::<T>(body) else { return };
    let Reply::Done(written) = Reply::done(&value) else { return };
    let again = take::<T>(&written).expect("what was written");
    assert_eq!(Reply::done(&again), Reply::Done(written));
}
