//! Every bound of the protocol, with its reason.

use std::time::Duration;

use syscap_format::{ENVELOPE_BYTES_MAX, OBJECT_BYTES_MAX};

use crate::tools::{DELEGATED_MAX, MANIFEST_BYTES_MAX};

/// Longest frame, in bytes: a policy document is the largest thing that travels, an envelope and
/// a result are smaller; and the framing of each.
pub(crate) const FRAME_BYTES_MAX: usize = OBJECT_BYTES_MAX + (64 << 10);
/// Longest frame that an agent writes, in bytes: an envelope is all that it has to say.
pub(crate) const AGENTS_FRAME_BYTES_MAX: usize = ENVELOPE_BYTES_MAX + (64 << 10);
/// Longest frame that never changes, in bytes, and longest first frame: a signed event is the
/// largest, and who has not been let in may not fill the holder's memory.
pub(crate) const FROZEN_BYTES_MAX: usize = 4 << 10;
/// Longest text in an answer that never changes, in bytes: a line.
pub(crate) const FROZEN_TEXT_BYTES_MAX: usize = 256;
/// Most processes attached at once: each costs the holder a thread.
pub(crate) const CONNECTIONS_MAX: usize = 256;
/// Most of them where one more asks for the agents' lane: the rest is for the operator's.
pub(crate) const AGENTS_CONNECTIONS_MAX: usize = 224;
/// Most connections that have had a session or offered tools, and that ask for one. The others are
/// commands: they come, ask and go, and those that stay and ask nothing make room for the next. So
/// there is always a place for an operator's command.
pub(crate) const SETTLED_MAX: usize = 240;
/// Most of them on the agents' channel: whoever has a ticket gets in to show it.
pub(crate) const AGENTS_SETTLED_MAX: usize = 208;
/// Most connections that were not let in, or not yet, and that say nothing. With one more the
/// oldest ends: an operator's frame is there at once, and what is silent for long is no operator's.
pub(crate) const UNPLACED_MAX: usize = 64;
/// Most connections in all, with those that wait for an answer without having been let in, and
/// those that were told to end and have not ended yet.
pub(crate) const THREADS_MAX: usize = CONNECTIONS_MAX + 2 * UNPLACED_MAX;
/// Most requests of a connection in flight: each costs a thread of whoever works on it.
pub(crate) const REQUESTS_MAX: usize = 256;
/// Most requests of all connections in flight where one more comes on the agents' lane, and on the
/// operator's: each costs a thread, and there is always one for an operator.
pub(crate) const AGENTS_REQUESTS_ALL_MAX: usize = 1_280;
pub(crate) const REQUESTS_ALL_MAX: usize = 1_536;
/// Most bytes of answers that wait for a connection's peer to read them: with more it is not read
/// on, so that it asks for nothing more.
pub(crate) const ANSWERS_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;
/// Most calls of all connections in flight: as many as the kernel takes.
pub(crate) const CALLS_MAX: usize = syscap_format::IN_FLIGHT_MAX;
/// Most bytes of a connection's requests in flight: twice the longest frame.
pub(crate) const REQUEST_BYTES_MAX: usize = 2 * FRAME_BYTES_MAX;
/// Most calls that an attached process asks for at once, of those that are made together: a
/// quarter of a connection's requests, so that there is room for others beside them.
pub(crate) const TOGETHER_MAX: usize = REQUESTS_MAX / 4;
/// Most bytes of those.
pub(crate) const TOGETHER_BYTES_MAX: usize = REQUEST_BYTES_MAX / 2;
/// No fewer bytes than a call's frame has beside its envelope.
pub(crate) const CALL_FRAMING_BYTES: usize = 128;
/// Most bytes of all connections' requests in flight.
pub(crate) const REQUESTS_BYTES_MAX: usize = 8 * FRAME_BYTES_MAX;
/// Most bytes of all connections' long frames on a lane that have begun and are not whole. A frame
/// without room is not read further, and waits.
pub(crate) const PARTIAL_BYTES_MAX: usize = 4 * FRAME_BYTES_MAX;
/// A frame that is longer than this, in bytes, is a long one.
pub(crate) const SHORT_BYTES_MAX: usize = 64 << 10;
/// Most sessions of a connection.
pub(crate) const SESSIONS_MAX: usize = 1_024;
/// Most sessions that are lent and that nobody has taken.
pub(crate) const LENT_MAX: usize = 1_024;
/// Most connections at a time that have shown one ticket.
pub(crate) const TICKET_CONNECTIONS_MAX: usize = 16;
/// Most sessions that a ticket opens within that time: each is on record.
pub(crate) const TICKET_SESSIONS_MAX: usize = 256;
pub(crate) const TICKET_TIME: Duration = Duration::from_secs(60);
/// Most tools that a connection may offer at once.
pub(crate) const TOOLS_MAX: usize = 512;
/// Most tokens and most sessions in a view: the newest; and most running calls and freezes.
pub(crate) const VIEW_MAX: usize = 1_024;
/// Most tools in a view: all delegated ones that there can be, and as many of the holder's own as
/// a reasonable host has. Each takes some hundred bytes.
pub(crate) const VIEW_TOOLS_MAX: usize = DELEGATED_MAX + 1_024;
/// Longest title of a tool in a view, in bytes.
pub(crate) const TITLE_BYTES_MAX: usize = 128;
/// Most bytes of the names of the tools that the tokens in a view grant.
pub(crate) const GRANTED_BYTES_MAX: usize = 4 << 20;
/// Most bytes of manifests in an answer: those of all delegated tools, and as many again.
pub(crate) const MANIFESTS_BYTES_MAX: usize = 2 * MANIFEST_BYTES_MAX;
/// How long a new connection may take to say hello, and one that was not let in to its next frame.
pub(crate) const HELLO_TIME: Duration = Duration::from_secs(5);
/// How long a frame may take to arrive once it has begun.
pub(crate) const FRAME_TIME: Duration = Duration::from_secs(5);
/// How long a peer may take to read what is written to it.
pub(crate) const WRITE_TIME: Duration = Duration::from_secs(5);
/// How often a waiting reader looks whether it has waited too long.
pub(crate) const READ_PAUSE: Duration = Duration::from_millis(500);
/// How long an attached process looks for a holder while one comes or goes.
pub(crate) const TRY_TIME: Duration = Duration::from_secs(10);
/// The pause between two looks.
pub(crate) const TRY_PAUSE: Duration = Duration::from_millis(20);
/// How long a holder may take over what runs nothing and is asked in haste: what there is at
/// present, leave for a use, a report of one. The kernel's own time for a use is half of that.
pub(crate) const ANSWER_TIME: Duration = Duration::from_secs(30);
/// Most calls in an answer of what waits: the kernel keeps 1,024 that wait and 1,024 that were denied,
/// beside those that were approved and have not run.
pub(crate) const WAITING_MAX: usize = 4_096;
/// How long a client's request waits for a person's answer: then it is asked anew.
pub(crate) const WAIT_TIME: Duration = Duration::from_secs(30);
/// The same of a wait on the agents' channel: a longer one is refused.
pub(crate) const AGENTS_WAIT_TIME: Duration = Duration::from_secs(600);
/// The same of the process that holds the home.
pub(crate) const OWN_WAIT_TIME: Duration = Duration::from_millis(250);
/// How long the last client waits for the end of a server that ends with it.
pub(crate) const LEAVE_TIME: Duration = Duration::from_secs(5);
/// How long a holder that closes waits for what runs.
pub(crate) const DRAIN_TIME: Duration = Duration::from_secs(3);
/// How long it then waits for what was told to end.
pub(crate) const END_TIME: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    /// A number as the page writes it.
    fn written(number: usize) -> String {
        match number {
            0..1_000 => number.to_string(),
            _ => format!("{},{:03}", number / 1_000, number % 1_000),
        }
    }

    /// The page about deploying states these limits.
    #[test]
    fn limits_are_those_of_the_page() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/deploy.md");
        // A package has no pages.
        let Ok(page) = std::fs::read_to_string(page) else { return };
        let seconds = |time: Duration| usize::try_from(time.as_secs()).unwrap();
        let rows: [(&str, &[usize]); 12] = [
            ("connections", &[CONNECTIONS_MAX, AGENTS_CONNECTIONS_MAX, 2 * UNPLACED_MAX]),
            ("connections with", &[SETTLED_MAX, AGENTS_SETTLED_MAX]),
            ("requests out", &[REQUESTS_MAX, REQUESTS_ALL_MAX, AGENTS_REQUESTS_ALL_MAX]),
            ("calls out", &[CALLS_MAX]),
            ("waits for", &[seconds(WAIT_TIME)]),
            ("bytes of requests", &[REQUEST_BYTES_MAX >> 20, REQUESTS_BYTES_MAX >> 20]),
            ("bytes of answers", &[ANSWERS_BYTES_MAX >> 20]),
            ("sessions of", &[SESSIONS_MAX, LENT_MAX]),
            ("tools of", &[TOOLS_MAX, DELEGATED_MAX]),
            ("a view", &[VIEW_MAX, WAITING_MAX]),
            ("a client that", &[seconds(TRY_TIME), seconds(ANSWER_TIME)]),
            ("the end", &[seconds(DRAIN_TIME), seconds(END_TIME)]),
        ];
        for (name, numbers) in rows {
            let row = page.lines().find(|line| line.starts_with(&format!("| {name}")));
            let row = row.unwrap_or_else(|| panic!("{name}"));
            let found: Vec<&str> = row.split(|c: char| !c.is_ascii_digit() && c != ',').collect();
            for number in numbers {
                let number = written(*number);
                let has = found.iter().any(|word| word.trim_matches(',') == number);
                assert!(has, "{name}: {number} is not in {row}");
            }
        }
    }
}
