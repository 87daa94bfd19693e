//! Lines of bounded length from input that nobody vouches for.

use std::io::{self, BufRead};

use syscap::format::ENVELOPE_BYTES_MAX;

/// The kept part of a line: one byte more than an envelope may have, so that the kernel can
/// recognise a line that is too long.
const KEPT_MAX: usize = ENVELOPE_BYTES_MAX.saturating_add(1);

/// The result of reading a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Read {
    /// There was one.
    Line,
    /// The input has ended.
    End,
}

/// Reads up to the next line feed, which is not kept, into `line`. If a line is longer than an
/// envelope may be, its beginning is kept and the rest dropped as it comes in.
pub(crate) fn read(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<Read> {
    line.clear();
    let mut any = Read::End;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any);
        }
        any = Read::Line;
        let mut parts = available.splitn(2, |byte| *byte == b'\n');
        let part = parts.next().unwrap_or_default();
        let ended = parts.next().is_some();
        let room = KEPT_MAX.saturating_sub(line.len());
        line.extend(part.iter().take(room));
        let used = part.len().saturating_add(usize::from(ended));
        input.consume(used);
        if ended {
            return Ok(Read::Line);
        }
    }
}

/// True if a line has only white space.
pub(crate) fn is_blank(line: &[u8]) -> bool {
    line.len() < KEPT_MAX && line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(input: &[u8], capacity: usize) -> Vec<usize> {
        let mut input = io::BufReader::with_capacity(capacity, input);
        let (mut line, mut lens) = (Vec::new(), Vec::new());
        while read(&mut input, &mut line).unwrap() == Read::Line {
            lens.push(line.len());
        }
        lens
    }

    #[test]
    fn lines_end_at_line_feeds_and_at_the_end() {
        for capacity in [1, 2, 3, 64] {
            assert_eq!(all(b"", capacity), [0_usize; 0]);
            assert_eq!(all(b"\n", capacity), [0]);
            assert_eq!(all(b"ab\n\ncde", capacity), [2, 0, 3]);
        }
    }

    #[test]
    fn overlong_line_is_cut_and_the_next_is_whole() {
        for (len, kept) in [
            (ENVELOPE_BYTES_MAX, ENVELOPE_BYTES_MAX),
            (KEPT_MAX, KEPT_MAX),
            (KEPT_MAX.saturating_mul(3), KEPT_MAX),
        ] {
            let mut input = vec![b' '; len];
            input.extend(b"\nabc\n");
            assert_eq!(all(&input, 8_192), [kept, 3]);
        }
        assert!(is_blank(b" \t\r"));
        assert!(!is_blank(&vec![b' '; KEPT_MAX]));
    }
}
