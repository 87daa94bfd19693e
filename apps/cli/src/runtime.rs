//! Reaching a home: by the process that holds it, or by holding it; and letting go of it again
//! whatever happens in between.

use std::path::Path;

use clap::Args;
use syscap::{
    Inspection, Operator, Options, Runtime, Session,
    format::{
        id::{AgentId, TokenId},
        reason::Reason,
    },
};

use crate::exit::Failure;

/// Whether calls may wait for a person, where this process holds the home.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct People {
    /// Refuse at once each call that the policy asks a person about, as nobody is there. Counts only
    /// where this process serves the home.
    #[arg(long)]
    headless: bool,
}

impl People {
    pub(crate) const fn are_absent(self) -> bool {
        self.headless
    }

    pub(crate) fn options(self) -> Options {
        if self.headless { Options::new().headless() } else { Options::new() }
    }
}

/// Does something in a home, with whoever holds it; where nobody does it is opened for that, and
/// closed, so that the log ends properly.
pub(crate) fn with<T>(
    folder: &Path,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = Runtime::command(folder).map_err(Failure::home(folder))?;
    finish(access, act)
}

/// The same for what stops something: it reaches a holder of any version, and a full one.
pub(crate) fn operate<T>(
    folder: &Path,
    act: impl FnOnce(&Operator) -> Result<T, syscap::Error>,
) -> Result<T, Failure> {
    let operator = Operator::open(folder).map_err(Failure::home(folder))?;
    let acted = act(&operator);
    let closed = operator.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// The same for what takes long: where it holds the home it serves it to others.
pub(crate) fn serving<T>(
    folder: &Path,
    people: People,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = people.options().share(folder).map_err(Failure::home(folder))?;
    finish(access, act)
}

/// Does something, and closes.
pub(crate) fn finish<T>(
    access: Runtime,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let acted = act(&access);
    let closed = access.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// Replays a home's log to look at it. Another process may hold the home.
pub(crate) fn look(folder: &Path) -> Result<Inspection, Failure> {
    Options::new().inspect(folder).map_err(Failure::home(folder))
}

/// A session of an agent with its token; where those don't go together it is said what does.
pub(crate) fn session(
    access: &Runtime,
    agent: &AgentId,
    token: TokenId,
) -> Result<Session, Failure> {
    let refused = match access.session(agent.as_str(), token) {
        Err(syscap::Error::Refused(refused)) if refused.reason() == Reason::NotBound => refused,
        opened => return Ok(opened?),
    };
    let view = access.view()?;
    let meant = match view.token(token) {
        Some(found) => format!("--agent {}, whom it is for", found.agent),
        None => "a token that was issued here: see `syscap token list`".to_owned(),
    };
    Err(Failure::Refused(refused.got(&token).allowed(&meant)))
}
