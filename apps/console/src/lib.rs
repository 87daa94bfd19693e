//! A page for the person who answers for agents: what waits, what happened, what may be done.
//!
//! [`Console`] listens on loopback and shows what a [`Home`] says. It holds no key and no kernel, and
//! decides about nothing but who may ask: the page wishes, the home's side asks the person at the
//! terminal, signs and records. Every request passes the same gate (`gate`), in one order.
//!
//! No cookie, no account, no secret in an address: the person types a code, once, and the page holds a
//! token in its memory. The origin is new at each start, so that no other local page owns it.

mod cards;
mod files;
mod gate;
mod listen;
mod pages;
mod service;

use std::fmt::Write as _;
use std::io;
use std::net::TcpListener;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::rand::{GetRandomFlags, getrandom};

use crate::cards::Cards;
use crate::pages::Pages;

/// Letters of which codes and names consist: none looks like another.
const LETTERS: &[u8; 32] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Letters of the name in the address: 80 bits.
const NAME_LETTERS: usize = 16;

/// What the page can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wanted {
    /// The state of the home in a line.
    Status,
    /// The calls that wait.
    Approvals,
    /// One of them, whole, by the record that asks.
    Approval(u64),
    /// A stretch of the log, a line a call.
    Timeline(Stretch),
    /// A record, whole.
    Record(u64),
    /// The tools, and which agents may call each.
    Tools,
    /// A tool, whole, with the difference of a changed definition.
    Tool(String),
    /// The token by which an agent would have a tool.
    Gift {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// The agents and their tokens that can be used.
    Agents,
    /// The tools that make requests by an operator's settings.
    Connectors,
    /// One of them, whole, or a new one of that name.
    Connector(String),
    /// Policy, log and state in words.
    Home,
}

/// A stretch of the log that the page shows, and which of its lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stretch {
    /// Before this record; the end of the log if `None`.
    pub before: Option<u64>,
    /// Of this agent.
    pub agent: Option<String>,
    /// Of this tool.
    pub tool: Option<String>,
    /// No older than so long, as the command line writes it.
    pub since: Option<String>,
    /// Only what was refused.
    pub refused: bool,
    /// Only what reaches outside.
    pub outside: bool,
}

/// An answer to a waiting call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Answer {
    /// Yes, for one call.
    Once,
    /// Yes, for so many calls that touch nothing but what this one does.
    More {
        /// How many, this one among them.
        uses: u64,
        /// For how long, in minutes.
        minutes: u64,
    },
    /// No.
    Deny,
}

/// What the page wishes to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wish {
    /// A waiting call is answered, as it was shown.
    Answer {
        /// The record that asks.
        ask: u64,
        /// The answer.
        answer: Answer,
        /// Why, if the person said so: at most 4 KiB.
        why: Option<String>,
        /// What the page was shown of it: the act is of this, or of nothing.
        shown: String,
    },
    /// The definition of a tool that was shown is put on record.
    Accept {
        /// The tool.
        tool: String,
        /// What the page was shown of it.
        shown: String,
    },
    /// Each token of an agent that grants a tool gives way to one that does not.
    Narrow {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
    },
    /// An agent gets a tool, by the token that was shown.
    Give {
        /// The agent.
        agent: String,
        /// The tool.
        tool: String,
        /// What the page was shown of the token.
        shown: String,
    },
    /// Each token of an agent gives way to one that reaches these paths at most.
    Paths {
        /// The agent.
        agent: String,
        /// The paths that stay, as the command line writes them: at least one.
        keep: Vec<String>,
    },
    /// A token is revoked, and what was derived from it.
    Revoke {
        /// The token's id.
        token: String,
    },
    /// Settings of a tool that makes requests are changed.
    Connect {
        /// The tool.
        tool: String,
        /// The fields that change: a JSON object, null takes one away.
        changes: String,
        /// What the page was shown of it.
        shown: String,
    },
    /// A secret that such a tool names gets another value, which is typed at the terminal.
    Secret {
        /// The tool.
        tool: String,
        /// The secret's name.
        name: String,
        /// What the page was shown of the tool.
        shown: String,
    },
    /// An agent that was frozen runs again.
    Thaw {
        /// The agent.
        agent: String,
    },
    /// An agent, and all below it, is frozen.
    Freeze {
        /// The agent.
        agent: String,
    },
}

impl Wish {
    /// True for what takes away and can be undone: it needs no person at the terminal.
    #[must_use]
    pub const fn is_stop(&self) -> bool {
        matches!(
            self,
            Self::Freeze { .. } | Self::Narrow { .. } | Self::Paths { .. } | Self::Revoke { .. }
        )
    }
}

/// Why something was not shown or done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The status of the answer.
    pub status: u16,
    /// In one word, for the page.
    pub reason: &'static str,
    /// In words, for the person.
    pub words: String,
}

impl Problem {
    /// One of these.
    pub fn new(status: u16, reason: &'static str, words: impl Into<String>) -> Self {
        Self { status, reason, words: words.into() }
    }
}

/// The home as a console has it. Its functions block, and are called by threads that may.
pub trait Home: Send + Sync + 'static {
    /// What the page shows: JSON, as the command prints it with `--json`.
    ///
    /// # Errors
    /// A [`Problem`], which the page shows.
    fn look(&self, wanted: &Wanted) -> Result<String, Problem>;

    /// How often what the page shows has changed; waits up to the limit for another count than that.
    ///
    /// # Errors
    /// A [`Problem`], where nobody knows.
    fn changed(&self, since: Option<u64>, limit: Duration) -> Result<u64, Problem>;

    /// Does something, once the person at the terminal has agreed to what is no stop; JSON about the
    /// record.
    ///
    /// # Errors
    /// A [`Problem`]: then nothing was done.
    fn act(&self, wish: Wish) -> Result<String, Problem>;
}

/// How a console is opened.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The port, on both loopback addresses; drawn by the system if `None`.
    pub port: Option<u16>,
    /// True if the page may wish for nothing.
    pub view: bool,
    /// How long a page may be idle.
    pub idle: Duration,
}

/// A console that listens.
pub struct Console {
    shared: Arc<Shared>,
    listeners: Vec<TcpListener>,
}

/// What its threads share.
struct Shared {
    /// The one `Host` that is answered.
    host: String,
    origin: String,
    view: bool,
    home: Arc<dyn Home>,
    pages: Mutex<Pages>,
    cards: Mutex<Cards>,
}

impl Console {
    /// Listens on both loopback addresses, under a name that no page had before.
    ///
    /// # Errors
    /// Where the port is taken on one of them, or there is no randomness.
    pub fn open(options: Options, home: Arc<dyn Home>) -> io::Result<Self> {
        let (listeners, port) = listen::bind(options.port)?;
        let host = format!("{}.localhost:{port}", letters(NAME_LETTERS)?);
        let origin = format!("http://{host}");
        let (pages, cards) = (Mutex::new(Pages::new(options.idle)), Mutex::default());
        let shared = Shared { host, origin, view: options.view, home, pages, cards };
        Ok(Self { shared: Arc::new(shared), listeners })
    }

    /// The address of the page. It holds no secret.
    #[must_use]
    pub fn address(&self) -> String {
        format!("{}/", self.shared.origin)
    }

    /// The port.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.listeners.first().and_then(|it| it.local_addr().ok()).map(|at| at.port())
    }

    /// The side that draws codes and ends pages, for the person at the terminal.
    #[must_use]
    pub fn codes(&self) -> Codes {
        Codes(Arc::clone(&self.shared))
    }

    /// Answers requests, until the process ends.
    ///
    /// # Errors
    /// Where no thread can be had, or a listener fails.
    pub fn serve(self) -> io::Result<()> {
        listen::serve(self.listeners, self.shared)
    }
}

/// Draws codes for a [`Console`].
#[derive(Clone)]
pub struct Codes(Arc<Shared>);

impl Codes {
    /// A new code: 8 letters, for 60 seconds and one page. The one before is over.
    ///
    /// # Errors
    /// Where there is no randomness.
    pub fn draw(&self) -> io::Result<String> {
        let code = letters(pages::CODE_LETTERS)?;
        self.0.pages().expect(&code);
        Ok(code)
    }

    /// Ends all pages.
    pub fn end_all(&self) {
        self.0.pages().end_all();
        *self.0.cards() = Cards::default();
    }
}

impl Shared {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        // Every change is one step.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn cards(&self) -> MutexGuard<'_, Cards> {
        // Every change is one step.
        self.cards.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Random bytes.
fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        filled = filled.saturating_add(getrandom(rest, GetRandomFlags::empty())?);
    }
    Ok(bytes)
}

/// So many random letters, at most 16.
fn letters(count: usize) -> io::Result<String> {
    let bytes = random::<NAME_LETTERS>()?;
    let letters = bytes.iter().take(count).filter_map(|byte| LETTERS.get(usize::from(byte & 31)));
    Ok(letters.map(|letter| char::from(*letter)).collect())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut all, byte| {
        write!(all, "{byte:02x}").unwrap_or(());
        all
    })
}
