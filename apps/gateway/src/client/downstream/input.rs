//! Lines of a client, read ahead of who takes them by no more than two.
//!
//! They are read by a task of its own, so that the end of the input is seen whatever else waits.

use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

/// Longest line that a client may send; of more the rest is passed over.
pub(crate) const LINE_BYTES_MAX: usize = 4 << 20;
/// How much is kept of a longer one: enough to tell which request it is.
const HEAD_BYTES: usize = 4_096;
/// How often it is looked for the end of an input that nobody takes anything from.
const LOOK: Duration = Duration::from_millis(250);

/// A line, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// All of it.
    Whole(Vec<u8>),
    /// The beginning of one that is too long.
    TooLong(Vec<u8>),
}

/// Reads lines until the input ends or nobody takes them, and then says that it has ended.
pub(crate) async fn read<R: AsyncRead + Unpin>(
    read: R,
    lines: mpsc::Sender<Line>,
    eof: CancellationToken,
) {
    let _ended = eof.clone().drop_guard();
    let mut read = BufReader::with_capacity(64 << 10, read);
    while let Some(line) = next(&mut read).await {
        let place = loop {
            tokio::select! {
                place = lines.reserve() => break place,
                () = sleep(LOOK) => if has_hung_up() { eof.cancel() },
            }
        };
        let Ok(place) = place else { return };
        place.send(line);
    }
}

/// The next line. `None` at the end: what stands behind the last newline is no line.
async fn next<R: AsyncRead + Unpin>(read: &mut BufReader<R>) -> Option<Line> {
    let (mut line, mut long) = (Vec::new(), false);
    loop {
        let available = read.fill_buf().await.ok()?;
        if available.is_empty() {
            return None;
        }
        let newline = available.iter().position(|byte| *byte == b'\n');
        let part = available.get(..newline.unwrap_or(available.len())).unwrap_or_default();
        if line.len().saturating_add(part.len()) > LINE_BYTES_MAX {
            long = true;
            line.truncate(HEAD_BYTES);
            line.shrink_to_fit();
        }
        if !long {
            line.extend_from_slice(part);
        }
        let took = newline.map_or(available.len(), |place| place.saturating_add(1));
        read.consume(took);
        if newline.is_some() {
            return Some(if long { Line::TooLong(line) } else { Line::Whole(line) });
        }
    }
}

/// True if nobody can write to standard input any more, though it holds unread data.
fn has_hung_up() -> bool {
    let stdin = std::io::stdin();
    let mut fds = [PollFd::new(&stdin, PollFlags::empty())];
    // What can't be told now is asked again.
    let polled = poll(&mut fds, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }));
    polled.is_ok() && fds.iter().any(|fd| fd.revents().contains(PollFlags::HUP))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn lines_are_whole_or_too_long() {
        let mut input = b"one\n\ntwo\r\n".to_vec();
        input.extend(std::iter::repeat_n(b'x', LINE_BYTES_MAX));
        input.extend(b"\n");
        input.extend(std::iter::repeat_n(b'y', LINE_BYTES_MAX + 1));
        input.extend(b"\nlast\nno line");
        let mut read = BufReader::new(input.as_slice());
        for expected in ["one", "", "two\r"] {
            assert_eq!(next(&mut read).await, Some(Line::Whole(expected.into())));
        }
        assert!(matches!(next(&mut read).await, Some(Line::Whole(l)) if l.len() == LINE_BYTES_MAX));
        let long = next(&mut read).await;
        assert!(matches!(long, Some(Line::TooLong(l)) if l.len() <= HEAD_BYTES));
        assert_eq!(next(&mut read).await, Some(Line::Whole(b"last".to_vec())));
        assert_eq!(next(&mut read).await, None);
    }

    /// The end is seen though nobody takes the last line.
    #[tokio::test]
    async fn the_end_is_seen_ahead() {
        let (lines, mut taken) = mpsc::channel(1);
        let eof = CancellationToken::new();
        read(b"one\n".as_slice(), lines, eof.clone()).await;
        assert!(eof.is_cancelled());
        assert_eq!(taken.recv().await, Some(Line::Whole(b"one".to_vec())));
        assert_eq!(taken.recv().await, None);
    }
}
