//! Messages: their locations, names and number.

use syscap_format::{AgentId, Leaf, Reason, Refused, Seq};

use crate::beneath::{FsError, Kind, Location, Opener};
use crate::fs::{hex, refusal};

/// Most messages in an inbox.
pub const INBOX_MESSAGES_MAX: usize = 1_000;
/// Most bytes in an inbox.
pub const INBOX_BYTES_MAX: u64 = 16 << 20;
/// Most messages of one sender in an inbox: nobody fills another's.
pub const SENDER_MESSAGES_MAX: usize = 100;
/// Most bytes of one sender in an inbox.
pub const SENDER_BYTES_MAX: u64 = 2 << 20;
/// Most messages in an inbox of all senders whose names begin alike: who makes agents sends no
/// more by them.
pub const TREE_MESSAGES_MAX: usize = 500;
/// Most bytes in an inbox of all senders whose names begin alike.
pub const TREE_BYTES_MAX: u64 = 8 << 20;

/// The folder beside an agent's workspace.
const INBOX: &str = "inbox";
/// The folder of what is on its way, until all of its recipients have room for it.
const INCOMING: &str = "incoming";
/// The suffix of a message's file, behind its id.
const SUFFIX: &str = ".msg";
/// Half of a leaf, in hexadecimal digits: tells homes that share a base apart.
const LEAF_DIGITS: usize = 16;

/// The id of a message: the intent that sent it, and the folder's name of its sender. The order of
/// the ids is that in which they were sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct MessageId(String);

impl MessageId {
    pub(super) fn of(intent: Seq, leaf: Leaf, from: &AgentId) -> Self {
        let leaf: String = hex(leaf.as_bytes()).chars().take(LEAF_DIGITS).collect();
        Self(format!("{:012}-{leaf}.{}", intent.get(), from.folder()))
    }

    /// Reads one that somebody sent. It is a name and no path: digits, a dot, and the name of a
    /// folder of an agent's.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (number, _) = text.split_once('.')?;
        let (intent, leaf) = number.split_once('-')?;
        let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
        let hex =
            |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let id = Self(text.to_owned());
        let is_id = (12..=20).contains(&intent.len())
            && digits(intent)
            && leaf.len() == LEAF_DIGITS
            && hex(leaf)
            && id.from().is_some_and(|from| from.folder() == id.sender());
        is_id.then_some(id)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    fn sender(&self) -> &str {
        self.0.split_once('.').map_or("", |(_, sender)| sender)
    }

    pub(super) fn from(&self) -> Option<AgentId> {
        AgentId::new(&self.sender().replace('+', "/"))
    }

    /// Its location in the inbox of that agent.
    pub(super) fn in_inbox(&self, of: &AgentId) -> Result<Location, FsError> {
        self.at(of, INBOX)
    }

    /// Its location before it is delivered.
    pub(super) fn incoming(&self, of: &AgentId) -> Result<Location, FsError> {
        self.at(of, INCOMING)
    }

    fn at(&self, of: &AgentId, folder: &str) -> Result<Location, FsError> {
        let file = format!("{}{SUFFIX}", self.0);
        Location::new(&["agents", of.folder().as_str(), folder, file.as_str()])
    }
}

/// The messages in an inbox, the oldest first, and the sizes of their files; and how much else lies
/// there. Nobody's inbox is there before somebody writes to it.
pub(super) fn messages(base: &dyn Opener, of: &AgentId) -> Result<Inbox, FsError> {
    let folder = Location::new(&["agents", of.folder().as_str(), INBOX])?;
    let listing = match base.list(&folder, INBOX_MESSAGES_MAX.saturating_add(1)) {
        Ok(listing) => listing,
        Err(FsError::NotFound) => return Ok((Vec::new(), 0)),
        Err(error) => return Err(error),
    };
    let all = listing.entries.len().saturating_add(usize::from(listing.truncated));
    let files = listing.entries.into_iter().filter(|entry| entry.kind == Kind::File);
    let messages = files.filter_map(|entry| {
        let name = String::from_utf8(entry.name).ok()?;
        Some((MessageId::parse(name.strip_suffix(SUFFIX)?)?, entry.size_bytes))
    });
    let messages: Vec<(MessageId, u64)> = messages.collect();
    let others = all.saturating_sub(messages.len());
    Ok((messages, u64::try_from(others).unwrap_or(u64::MAX)))
}

/// Messages by their names, with the sizes of their files; and the number of other names.
pub(super) type Inbox = (Vec<(MessageId, u64)>, u64);

/// There is room for one more, by that sender.
pub(super) fn expect_room(
    base: &dyn Opener,
    of: &AgentId,
    from: &AgentId,
    size_bytes: u64,
) -> Result<(), Refused> {
    let (kept, _) = messages(base, of).map_err(|error| refusal(error).field("recipients"))?;
    let (mut all, mut tree, mut own) =
        (Use::one(size_bytes), Use::one(size_bytes), Use::one(size_bytes));
    for (id, size_bytes) in kept {
        all.add(size_bytes);
        let Some(sender) = id.from() else { continue };
        if top(&sender) == top(from) {
            tree.add(size_bytes);
        }
        if sender == *from {
            own.add(size_bytes);
        }
    }
    let whose = [
        (own, SENDER_MESSAGES_MAX, SENDER_BYTES_MAX, "your share of the inbox"),
        (tree, TREE_MESSAGES_MAX, TREE_BYTES_MAX, "the share of all agents named as you"),
        (all, INBOX_MESSAGES_MAX, INBOX_BYTES_MAX, "the inbox"),
    ];
    match whose.iter().find(|(used, count, bytes, _)| used.is_beyond(*count, *bytes)) {
        Some((_, count, bytes, what)) => {
            let full = Refused::new(Reason::Quota).field("recipients").got(of.as_str());
            Err(full.allowed(&format!("at most {count} messages and {bytes} bytes in {what}")))
        }
        None => Ok(()),
    }
}

/// The first component of a name.
fn top(agent: &AgentId) -> &str {
    agent.lineage().last().unwrap_or_default()
}

#[derive(Clone, Copy)]
struct Use {
    messages: usize,
    bytes: u64,
}

impl Use {
    const fn one(bytes: u64) -> Self {
        Self { messages: 1, bytes }
    }

    const fn add(&mut self, bytes: u64) {
        self.messages = self.messages.saturating_add(1);
        self.bytes = self.bytes.saturating_add(bytes);
    }

    const fn is_beyond(&self, messages: usize, bytes: u64) -> bool {
        self.messages > messages || self.bytes > bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_a_name_and_no_path() {
        let from = AgentId::new("team/a.b").unwrap();
        let id = MessageId::of(Seq::new(42), Leaf::from_bytes([0xab; 32]), &from);
        assert_eq!(id.as_str(), "000000000042-abababababababab.team+a.b");
        assert_eq!(MessageId::parse(id.as_str()), Some(id.clone()));
        assert_eq!(id.from(), Some(from));
        for text in [
            "",
            "000000000042-abababababababab",
            "000000000042-abababababababab.",
            "000000000042-abababababababab..",
            "000000000042-abababababababab.team/a",
            "000000000042-abababababababab.team+",
            "000000000042-abababababababab.Team",
            "000000000042-ABABABABABABABAB.team",
            "000000000042-abab.team",
            "42-abababababababab.team",
            "../../b/inbox/000000000042-abababababababab.team",
            "000000000042-abababababababab.team/../../../b",
            "000000000042-abababababababab.team\0",
            "00000000004\u{661}-abababababababab.team",
        ] {
            assert_eq!(MessageId::parse(text), None, "{text:?}");
        }
    }
}
