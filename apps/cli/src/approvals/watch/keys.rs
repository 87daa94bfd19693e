//! Pressed keys.

/// Escape: alone, or before what an arrow sends.
const ESCAPE: u8 = 0x1b;
/// How much of one key is kept, in bytes: what is longer is none.
const KEY_BYTES_MAX: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Key {
    Char(char),
    Enter,
    Erase,
    Escape,
    Up,
    Down,
    PageUp,
    PageDown,
}

/// Makes keys of bytes as they come: what an arrow sends may come in parts, and no part of it is a
/// key of its own.
#[derive(Default)]
pub(super) struct Decoder {
    begun: Vec<u8>,
}

impl Decoder {
    pub(super) const fn new() -> Self {
        Self { begun: Vec::new() }
    }

    /// The keys that have come whole. Without bytes a moment has passed in which nothing came.
    pub(super) fn keys(&mut self, bytes: &[u8]) -> Vec<Key> {
        if bytes.is_empty() {
            let alone = self.begun == [ESCAPE];
            self.begun.clear();
            return alone.then_some(Key::Escape).into_iter().collect();
        }
        let mut keys = Vec::new();
        for byte in bytes {
            let full = self.begun.len() >= KEY_BYTES_MAX;
            match self.begun.last_mut() {
                // It is no key that is known, and ends where it ends.
                Some(last) if full => *last = *byte,
                _ => self.begun.push(*byte),
            }
            if is_whole(&self.begun) {
                keys.extend(key(&self.begun));
                self.begun.clear();
            }
        }
        keys
    }
}

fn is_whole(bytes: &[u8]) -> bool {
    match bytes {
        [ESCAPE] | [ESCAPE, b'[' | b'O'] => false,
        [ESCAPE, b'[' | b'O', .., last] => (0x40..=0x7e).contains(last),
        [first, ..] if *first >= 0x80 => match std::str::from_utf8(bytes) {
            Ok(_) => true,
            // It can become a character, or never will.
            Err(error) => error.error_len().is_some(),
        },
        _ => true,
    }
}

fn key(bytes: &[u8]) -> Option<Key> {
    Some(match bytes {
        [b'\n' | b'\r'] => Key::Enter,
        [0x7f | 0x08] => Key::Erase,
        [ESCAPE, ESCAPE] => Key::Escape,
        [ESCAPE, b'[' | b'O', b'A'] => Key::Up,
        [ESCAPE, b'[' | b'O', b'B'] => Key::Down,
        [ESCAPE, b'[', b'5', b'~'] => Key::PageUp,
        [ESCAPE, b'[', b'6', b'~'] => Key::PageDown,
        [ESCAPE, ..] => return None,
        bytes => Key::Char(std::str::from_utf8(bytes).ok()?.chars().next()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_come_whole_or_in_parts() {
        let all = b"j\x1b[A\x1bOB\n\x7f\xc3\xa9\x1b[6~A";
        let keys = [
            Key::Char('j'),
            Key::Up,
            Key::Down,
            Key::Enter,
            Key::Erase,
            Key::Char('\u{e9}'),
            Key::PageDown,
            Key::Char('A'),
        ];
        assert_eq!(Decoder::new().keys(all), keys);
        let mut decoder = Decoder::new();
        let parts: Vec<Key> = all.iter().flat_map(|byte| decoder.keys(&[*byte])).collect();
        assert_eq!(parts, keys);
    }

    /// An arrow that comes in parts is never the letter at its end.
    #[test]
    fn an_escape_is_one_once_nothing_follows() {
        let mut decoder = Decoder::new();
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert_eq!(decoder.keys(b"[A"), [Key::Up]);
        assert_eq!(decoder.keys(b"\x1b"), []);
        assert_eq!(decoder.keys(b""), [Key::Escape]);
        assert_eq!(decoder.keys(b"\x1b[1;5A\x1b[200~\xff"), []);
        assert_eq!(decoder.keys(b"\x1b[99999999999"), []);
        assert_eq!(decoder.keys(b"99Aj"), [Key::Char('j')]);
    }
}
