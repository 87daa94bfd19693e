//! A server's standard error: each line under the server's name, without characters that a terminal
//! obeys, and no more lines than a person can read.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout};

use crate::say::say;

/// Most bytes of a line that are kept.
const LINE_BYTES_MAX: usize = 2_048;
/// Most lines that are said in one [`SPAN`].
const LINES_MAX: u32 = 100;
/// Most lines that are held back.
const LINES_HELD_MAX: usize = 100;
/// In how long.
const SPAN: Duration = Duration::from_secs(10);
/// How long what was written before the end may take to be read.
const END_MAX: Duration = Duration::from_millis(200);

/// A server's standard error, as it is read.
pub(super) struct Stderr {
    reading: JoinHandle<()>,
    last: Arc<Mutex<Option<String>>>,
    gate: Gate,
}

/// Holds lines back until it is opened.
#[derive(Clone)]
pub(super) struct Gate(Arc<Mutex<Gated>>);

struct Gated {
    /// The lines that are held back, at most [`LINES_HELD_MAX`]; `None` once it is open.
    held: Option<Vec<String>>,
    server: String,
    quota: Quota,
}

impl Gate {
    fn new(server: String) -> Self {
        let (held, quota) = (Some(Vec::new()), Quota::new(Instant::now()));
        Self(Arc::new(Mutex::new(Gated { held, server, quota })))
    }

    /// Says what was held back, and whatever comes.
    pub(super) fn open(&self) {
        let mut gated = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for line in gated.held.take().unwrap_or_default() {
            gated.say(&line);
        }
    }

    /// Forgets what was held back, and says whatever comes.
    pub(super) fn forget(&self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).held = None;
    }

    fn take(&self, line: &str) {
        let mut gated = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut gated.held {
            Some(held) if held.len() < LINES_HELD_MAX => held.push(line.to_owned()),
            Some(_) => {}
            None => gated.say(line),
        }
    }
}

impl Gated {
    fn say(&mut self, line: &str) {
        let server = &self.server;
        let news = self.quota.take(Instant::now());
        if let News::Again(unsaid @ 1..) = news {
            say(&format!("server {server}: {unsaid} lines were not shown"));
        }
        match news {
            News::Again(_) => say(&format!("server {server}: {line}")),
            News::Full => say(&format!("server {server}: more lines are not shown")),
            News::Unsaid => {}
        }
    }
}

impl Stderr {
    /// Reads it until it ends.
    pub(super) fn read(stream: ChildStderr, server: String) -> Self {
        let last = Arc::<Mutex<Option<String>>>::default();
        let (keeps, gate) = (Arc::clone(&last), Gate::new(server));
        let through = gate.clone();
        let reading = tokio::spawn(async move {
            let each = |line: String| {
                through.take(&line);
                *keeps.lock().unwrap_or_else(PoisonError::into_inner) = Some(line);
            };
            lines(stream, each).await;
        });
        Self { reading, last, gate }
    }

    pub(super) fn gate(&self) -> Gate {
        self.gate.clone()
    }

    /// The last line that says anything, once its process has ended.
    pub(super) async fn end(mut self) -> Option<String> {
        // Who left the server's group may hold it open.
        if timeout(END_MAX, &mut self.reading).await.is_err() {
            self.reading.abort();
        }
        // What did not start is told by all that it wrote.
        self.gate.open();
        self.last.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Gives each line that says anything, as far as it is kept.
async fn lines(stream: impl AsyncRead + Unpin, mut each: impl FnMut(String)) {
    let mut read = BufReader::new(stream);
    let mut line: Vec<u8> = Vec::new();
    loop {
        let available = match read.fill_buf().await {
            Ok(available) if !available.is_empty() => available,
            Ok(_) | Err(_) => break,
        };
        let newline = available.iter().position(|byte| *byte == b'\n');
        let end = newline.unwrap_or(available.len());
        let room = LINE_BYTES_MAX.saturating_sub(line.len());
        line.extend_from_slice(available.get(..end.min(room)).unwrap_or_default());
        let taken = end.saturating_add(usize::from(newline.is_some()));
        read.consume(taken);
        if newline.is_some() {
            give(&mut line, &mut each);
        }
    }
    give(&mut line, &mut each);
}

fn give(line: &mut Vec<u8>, each: &mut impl FnMut(String)) {
    let text = String::from_utf8_lossy(line).trim_end().to_owned();
    line.clear();
    if !text.is_empty() {
        each(text);
    }
}

/// The fate of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum News {
    /// It is said; and so many were not before.
    Again(u64),
    /// It is the first that is not said.
    Full,
    /// It is not said.
    Unsaid,
}

/// How many lines are said.
struct Quota {
    since: Instant,
    said: u32,
    unsaid: u64,
}

impl Quota {
    const fn new(now: Instant) -> Self {
        Self { since: now, said: 0, unsaid: 0 }
    }

    fn take(&mut self, now: Instant) -> News {
        if now.saturating_duration_since(self.since) >= SPAN {
            (self.since, self.said) = (now, 0);
        }
        if self.said < LINES_MAX {
            self.said = self.said.saturating_add(1);
            return News::Again(std::mem::take(&mut self.unsaid));
        }
        self.unsaid = self.unsaid.saturating_add(1);
        if self.unsaid == 1 { News::Full } else { News::Unsaid }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_without_end_is_cut_and_the_next_is_whole() {
        let mut written = vec![b'x'; 100_000];
        written.extend_from_slice(b"\n\n  \nnext\xff\nlast");
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let mut all = Vec::new();
        runtime.block_on(lines(&*written, |line| all.push(line)));
        assert_eq!(all, ["x".repeat(LINE_BYTES_MAX), "next\u{fffd}".into(), "last".into()]);
    }

    #[test]
    fn lines_of_a_flood_are_counted_and_not_said() {
        let begin = Instant::now();
        let mut quota = Quota::new(begin);
        let news: Vec<News> = (0..1_000).map(|_| quota.take(begin)).collect();
        let said = news.iter().filter(|news| **news == News::Again(0)).count();
        assert_eq!(said, usize::try_from(LINES_MAX).unwrap());
        assert_eq!(news.iter().filter(|news| **news == News::Full).count(), 1);
        assert_eq!(quota.take(begin + SPAN), News::Again(1_000 - u64::from(LINES_MAX)));
    }
}
