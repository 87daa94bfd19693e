//! What a program said and how it ended, within the room that a result has.

use syscap_format::cbor::{Canonical, MapBuilder};
use syscap_launch::{Ended, Network, Report, Stream};

/// Bytes of a result beside its texts.
const FRAME_BYTES: usize = 512;

/// What was read of a program.
#[derive(Debug)]
pub(super) struct Outcome {
    /// Bytes of text that a stream has room for.
    room: usize,
    streams: [Kept; 2],
}

#[derive(Debug, Default)]
struct Kept {
    bytes: Vec<u8>,
    /// Of all that it wrote.
    size: u64,
}

impl Outcome {
    pub(super) fn within(room: usize) -> Self {
        Self { room: room.saturating_sub(FRAME_BYTES) / 2, streams: Default::default() }
    }

    /// Keeps what came first, as far as there is room.
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
        let [(out, out_cut), (err, err_cut)] = self.streams.each_ref().map(|kept| self.text(kept));
        let [out_size, err_size] = self.streams.each_ref().map(|kept| kept.size);
        let mut result = MapBuilder::new()
            .text("stdout", &out)
            .text("stderr", &err)
            .boolean("truncated", out_cut || err_cut)
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

    /// As text: what is none becomes U+FFFD, which is longer. Cut between two characters.
    fn text(&self, kept: &Kept) -> (String, bool) {
        let mut text = String::from_utf8_lossy(&kept.bytes).into_owned();
        let mut end = text.len().min(self.room);
        let is_cut = end < text.len();
        while !text.is_char_boundary(end) {
            end = end.saturating_sub(1);
        }
        text.truncate(end);
        let is_cut = is_cut || u64::try_from(kept.bytes.len()).is_ok_and(|size| size < kept.size);
        (text, is_cut)
    }
}
