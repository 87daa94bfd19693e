//! Reaching a home: by the process that holds it, or by holding it; and letting go of it again
//! whatever happens in between.

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::Duration;
use std::{env, thread};

use clap::Args;
use syscap::audit::HomeLock;
use syscap::format::{AgentId, Reason, TokenId};
use syscap::view::TokenStanding;
use syscap::{Inspection, Operator, Options, Runtime, Session};

use crate::exit::{Failure, tell};
use crate::process;

/// How long a home may give no answer before it is said who holds it.
const SILENCE: Duration = Duration::from_secs(1);

/// Decides if calls of this process may wait for a person.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct People {
    /// Refuse at once each call of this client that the policy asks a person about, as nobody is there.
    #[arg(long)]
    headless: bool,
}

impl People {
    /// Somebody is there.
    pub(crate) const PRESENT: Self = Self { headless: false };

    pub(crate) const fn are_absent(self) -> bool {
        self.headless
    }
}

/// Does something in a home, with whoever holds it; where nobody does it is opened for that, and
/// closed, so that the log ends properly.
pub(crate) fn with<T>(
    folder: &Path,
    act: impl FnOnce(&Runtime) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let access = reached(folder, || Runtime::command(folder))?;
    finish(access, act)
}

/// The same for what stops something: it reaches a holder of any version, and a full one.
pub(crate) fn operate<T>(
    folder: &Path,
    act: impl FnOnce(&Operator) -> Result<T, syscap::Error>,
) -> Result<T, Failure> {
    let operator = reached(folder, || Operator::open(folder))?;
    let acted = act(&operator);
    let closed = operator.close();
    let value = acted?;
    closed?;
    Ok(value)
}

/// What the server of a home answers, if that comes within a second. Where there is a server that gives
/// no answer it is said that the log is read instead.
pub(crate) fn asked<T: Send + 'static>(
    folder: &Path,
    ask: impl FnOnce(&Runtime) -> Result<T, syscap::Error> + Send + 'static,
) -> Option<T> {
    let (says, heard) = mpsc::channel();
    let home = folder.to_path_buf();
    let look = move || {
        let answer = Runtime::connect(&home).and_then(|access| {
            let answer = ask(&access);
            access.close().and(answer)
        });
        // Nobody waits any longer where the log was read.
        says.send(answer).unwrap_or(());
    };
    thread::Builder::new().name("syscap-ask".to_owned()).spawn(look).ok()?;
    let why = match heard.recv_timeout(SILENCE) {
        Ok(Ok(answer)) => return Some(answer),
        Ok(Err(syscap::Error::NoServer { .. })) => return None,
        Ok(Err(error)) => error.to_string(),
        Err(_) => "no answer within a second".to_owned(),
    };
    tell(&format!(
        "the server of {} is not asked ({why}): this is what the log says",
        folder.display()
    ));
    None
}

/// The server of a home, where there is one.
pub(crate) fn connected(folder: &Path) -> Result<Option<Runtime>, syscap::Error> {
    match noticed(folder, || Runtime::connect(folder)) {
        Ok(access) => Ok(Some(access)),
        Err(syscap::Error::NoServer { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Reaches a home, as [`noticed`].
pub(crate) fn reached<T>(
    folder: &Path,
    reach: impl FnOnce() -> Result<T, syscap::Error>,
) -> Result<T, Failure> {
    noticed(folder, reach).map_err(Failure::home(folder))
}

/// Reaches a home. If its server gives no answer for a second, a person is told which process that
/// is: the wait may last ten.
pub(crate) fn noticed<T>(folder: &Path, reach: impl FnOnce() -> T) -> T {
    let (done, waits) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let notice = move || {
            if waits.recv_timeout(SILENCE) == Err(mpsc::RecvTimeoutError::Timeout)
                && let Some(holder) =
                    HomeLock::holder(folder).filter(|id| *id != std::process::id())
            {
                tell(&format!(
                    "waiting for {}, which {} has open",
                    process::named(holder),
                    folder.display()
                ));
            }
        };
        // Where there is no thread for it, it is not said.
        let noticing = thread::Builder::new().spawn_scoped(scope, notice);
        let reached = reach();
        drop((done, noticing));
        reached
    })
}

/// The home that `SYSCAP_HOME` names.
pub(crate) fn home_of_environment() -> Option<PathBuf> {
    env::var_os("SYSCAP_HOME").filter(|home| !home.is_empty()).map(PathBuf::from)
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

/// The token by which whoever names this one goes on: itself while it can be used, or where nothing took
/// its place.
pub(crate) fn going_on(access: &Runtime, token: TokenId) -> Result<TokenId, syscap::Error> {
    let found = access.tokens(&token.to_string())?.pop();
    if found.is_none_or(|found| found.info.standing == TokenStanding::Live) {
        return Ok(token);
    }
    let next = access.successor(token)?.map(|next| next.info);
    Ok(next.filter(|next| next.standing == TokenStanding::Live).map_or(token, |next| next.id))
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
