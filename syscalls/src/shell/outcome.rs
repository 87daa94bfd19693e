//! A program's output and end, within the room that a result has.

use syscap_format::{Canonical, MapBuilder};
use syscap_launch::{Ended, Network, Report, Stream};

/// Bytes of a result beside its texts.
const FRAME_BYTES: usize = 512;

/// The output of a program.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes of text that both streams have room for together.
    room: usize,
    streams: [Kept; 2],
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// The size of its whole output.
    size: u64,
}

impl Outcome {
    pub(super) fn within(room: usize) -> Self {
        Self { room: room.saturating_sub(FRAME_BYTES), streams: Default::default() }
    }

    /// Keeps what came first, as far as there may be room.
    pub(super) fn take(&mut self, stream: Stream, bytes: &[u8]) {
        let [out, err] = &mut self.streams;
        let kept = match stream {
            Stream::Out => out,
            Stream::Err => err,
        };
        let free = self.room.saturating_sub(kept.bytes.len()).min(bytes.len());
        kept.bytes.extend(bytes.iter().take(free));
        kept.size = kept.size.saturating_add(u64::try_from(bytes.len()).unwrap_or(u64::MAX));
    }

    pub(super) fn result(&self, report: &Report, network: Network) -> Canonical {
        let (out, err, is_cut) = self.texts();
        let [out_size, err_size] = self.streams.each_ref().map(|kept| kept.size);
        let mut result = MapBuilder::new()
            .text("stdout", &out)
            .text("stderr", &err)
            .boolean("truncated", is_cut)
            .uint("stdout_bytes", out_size)
            .uint("stderr_bytes", err_size)
            .uint("cpu_us", report.cpu_us)
            .uint("wall_us", report.wall_us)
            .text("confinement", report.achieved.level(network).name());
        result = match report.ended {
            Ended::Exited(code) => result.uint("exit_code", u64::from(code)),
            Ended::Signalled(signal) => result.uint("signal", u64::from(signal)),
            Ended::Bound(bound) => result.text("ended_at", bound.name()),
            Ended::Cancelled => result.text("ended_at", "cancelled"),
        };
        result.finish()
    }

    /// The output of both streams, and true if that is not all. Half of the room is for each; what
    /// one leaves is the other's.
    fn texts(&self) -> (String, String, bool) {
        let [(mut out, out_cut), (mut err, err_cut)] = self.streams.each_ref().map(Kept::text);
        let err_room = (self.room / 2).max(self.room.saturating_sub(out.len()));
        let err_cut = cut(&mut err, err_room) || err_cut;
        let out_cut = cut(&mut out, self.room.saturating_sub(err.len())) || out_cut;
        (out, err, out_cut || err_cut)
    }
}

impl Kept {
    /// As text, and whether that is not all of it. Bytes that are no text become U+FFFD, except for
    /// the beginning of a character at the end of the kept part.
    fn text(&self) -> (String, bool) {
        let is_cut = u64::try_from(self.bytes.len()).is_ok_and(|kept| kept < self.size);
        let broken = self.bytes.utf8_chunks().last().map(|chunk| chunk.invalid());
        let is_begun = |bytes: &&[u8]| {
            std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
        };
        let begun = broken.filter(is_begun).filter(|_| is_cut).map_or(0, <[u8]>::len);
        let whole = self.bytes.get(..self.bytes.len().saturating_sub(begun)).unwrap_or_default();
        (String::from_utf8_lossy(whole).into_owned(), is_cut)
    }
}

/// Cuts a text between two characters; whether anything was taken away.
fn cut(text: &mut String, room: usize) -> bool {
    let end = text.floor_char_boundary(room);
    let is_cut = end < text.len();
    text.truncate(end);
    is_cut
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(room: usize, out: &[u8], err: &[u8]) -> [(String, bool); 2] {
        let mut outcome = Outcome::within(room.saturating_add(FRAME_BYTES));
        // In pieces, as they come.
        out.chunks(3).for_each(|bytes| outcome.take(Stream::Out, bytes));
        err.chunks(3).for_each(|bytes| outcome.take(Stream::Err, bytes));
        outcome.streams.each_ref().map(Kept::text)
    }

    /// A cut lies between two characters, and no half of one is shown as something else.
    #[test]
    fn output_is_cut_between_two_characters() {
        let text = "\u{1f41d}".repeat(10);
        for room in 0..40 {
            let [(out, is_cut), _] = kept(room, text.as_bytes(), b"");
            assert_eq!((out.len(), is_cut), (room / 4 * 4, true), "{room}");
            assert!(out.chars().all(|c| c == '\u{1f41d}'), "{room}");
        }
        assert_eq!(kept(40, text.as_bytes(), b"")[0], (text, false));
        // What was never whole is shown as what it is.
        assert_eq!(kept(40, b"a\xf0\x9f", b"")[0], ("a\u{fffd}".to_owned(), false));
        assert_eq!(kept(3, b"\xffab\xf0\x9f\x90\x9d", b"")[0], ("\u{fffd}ab".to_owned(), true));
    }

    #[test]
    fn a_stream_has_half_of_the_room_and_what_the_other_leaves() {
        for (out, err, shown) in [
            (100, 0, (100, 0)),
            (0, 100, (0, 100)),
            (80, 10, (80, 10)),
            (200, 200, (50, 50)),
            (30, 200, (30, 70)),
            (200, 30, (70, 30)),
        ] {
            let mut outcome = Outcome::within(100 + FRAME_BYTES);
            outcome.take(Stream::Out, &vec![b'o'; out]);
            outcome.take(Stream::Err, &vec![b'e'; err]);
            let (said, complained, is_cut) = outcome.texts();
            assert_eq!((said.len(), complained.len()), shown, "{out} {err}");
            assert_eq!(is_cut, shown != (out, err), "{out} {err}");
        }
    }
}
