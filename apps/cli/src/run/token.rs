//! By which token the agent within calls.

use std::path::Path;

use clap::Parser;
use syscap::Runtime;
use syscap::format::{TokenId, UnixMillis};
use syscap::launch::{Level, Network};
use syscap::view::{Choice, Owner, TokenInfo};

use super::{Run, client::Known};
use crate::exit::{Failure, diagnose};
use crate::hook::Hook;
use crate::hook::client::{Client, Inside};
use crate::mcp::Mcp;
use crate::output::word_of;
use crate::runtime;
use crate::token::TokenName;

#[derive(Parser)]
struct HookLine {
    #[command(flatten)]
    hook: Hook,
}

#[derive(Parser)]
struct McpLine {
    #[command(flatten)]
    mcp: Mcp,
}

/// The place of the client's shell; `None` if that counts as outside: level confined keeps no
/// process apart. The required level decides, and not the achieved one, so that a token and a
/// policy never depend on the machine.
pub(super) const fn inside(run: &Run) -> Option<Inside> {
    match (run.require, run.net) {
        (Level::Contained, Network::None | Network::Loopback) => Some(Inside::Contained),
        (Level::Contained, Network::Host) => Some(Inside::ContainedOnline),
        (Level::Bounded | Level::Confined, _) => None,
    }
}

/// The hook as it is to be run outside, but for its token.
pub(super) fn hook(run: &Run, client: Client) -> Result<Hook, Failure> {
    let home = std::path::absolute(&run.home).map_err(Failure::file(&run.home))?;
    let usage = |advice: String| Failure::Usage { what: "--hook".to_owned(), advice };
    let mut words = vec!["hook".into(), home.into_os_string(), "--agent".into()];
    words.extend([run.agent.to_string().into(), "--client".into(), client.option().into()]);
    words.extend(run.hook_words().into_iter().map(Into::into));
    let HookLine { mut hook } =
        HookLine::try_parse_from(words).map_err(|error| usage(first_line(&error)))?;
    match (hook.setup, &hook.token) {
        _ if hook.inside.is_some() => {
            Err(usage("the level and the network say that: leave --inside out".to_owned()))
        }
        (false, None) => {
            hook.inside = inside(run);
            let workspace = run.workspace.as_deref().unwrap_or(Path::new("."));
            hook.workspace = Some(workspace.to_path_buf());
            Ok(hook)
        }
        (true, _) => Err(usage("it is set up in any case: leave --setup out".to_owned())),
        (_, Some(_)) => Err(usage("write --token before it, as an option of `run`".to_owned())),
    }
}

/// The gateway as its words have it; `None` if none was asked for.
pub(super) fn mcp(run: &Run) -> Result<Option<Mcp>, Failure> {
    if run.mcp.is_none() {
        return Ok(None);
    }
    let usage = |advice: String| Failure::Usage { what: "--mcp".to_owned(), advice };
    let home = std::path::absolute(&run.home).map_err(Failure::file(&run.home))?;
    let mut words = vec!["mcp".into(), home.into_os_string(), "--agent".into()];
    words.push(run.agent.to_string().into());
    words.extend(run.mcp_words().into_iter().map(Into::into));
    let McpLine { mcp } =
        McpLine::try_parse_from(words).map_err(|error| usage(first_line(&error)))?;
    match mcp.print_config {
        false => Ok(Some(mcp)),
        true => Err(usage("it is configured in any case: leave --print-config out".to_owned())),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The token that is named; else the agent's, by [`View::choose`](syscap::view::View::choose);
/// else, for a client that is known, a new one. A token fits if it grants the client's shell as
/// this run has it. A revoked token stays revoked, and a spent one is an operator's matter.
pub(super) fn of(run: &Run, known: Known, access: &Runtime) -> Result<TokenId, Failure> {
    let named = TokenName::of_any(run.token.as_ref(), &run.home)?;
    let view = access.view_of(&run.agent, named)?;
    let client = known.client();
    let hook = client.map(|client| hook(run, client)).transpose()?;
    let shell = hook.as_ref().and_then(Hook::shell);
    let can_be_used = |token: &TokenInfo| token.is_live(view.now) && !token.is_spent();
    if let Some(id) = named {
        let token = view.token(id).ok_or_else(|| Failure::unknown(id, &run.home))?;
        if token.agent != run.agent {
            let what = format!("--token {id}");
            let advice = format!("is for {}: --agent {}", token.agent, token.agent);
            return Err(Failure::Usage { what, advice });
        }
        if !can_be_used(token) {
            return Err(ended(run, token, view.now));
        }
        if let Some(shell) = shell.filter(|shell| !token.tools.contains(shell)) {
            diagnose(&format!(
                "warning: token {id} does not grant {shell}: the client's shell is denied; leave \
                 --token out and a token is issued that does"
            ));
        }
        return Ok(id);
    }
    // A token of an earlier run is taken only with the same roots.
    let files = hook.as_ref().map(Hook::of_files).transpose()?;
    let log = runtime::look(&run.home)?;
    let fits = |token: &TokenInfo| match (&hook, &shell, &files) {
        (Some(hook), Some(_), Some(files)) => {
            let body = log.kernel().token(&token.id).map(|token| token.body);
            body.is_some_and(|body| {
                hook.has_tools(&body.grants) && hook.has_roots(&body.grants, files)
            })
        }
        _ => true,
    };
    let owner = if hook.is_some() { Owner::Run } else { Owner::Agent };
    let chosen = view.choose(&run.agent, owner, fits);
    drop(log);
    match (chosen, hook) {
        (Choice::Use(token), _) => Ok(token.id),
        (Choice::Revoked(token) | Choice::Spent(token), _) => Err(ended(run, token, view.now)),
        (_, Some(hook)) => hook.prepare(&hook.hands()?, access, view.last_read(&run.agent)),
        (_, None) => {
            let what = format!("--agent {}", run.agent);
            let advice = format!(
                "has no valid token; issue one, such as: syscap token issue {} --agent {} --tool \
                 fs.read --read workspace",
                word_of(&run.home),
                run.agent
            );
            Err(Failure::Usage { what, advice })
        }
    }
}

/// Why a token can't be used, and what goes on.
fn ended(run: &Run, token: &TokenInfo, now: UnixMillis) -> Failure {
    let why = match token {
        token if token.revoked => "was revoked".to_owned(),
        token if !token.is_live(now) => format!("expired at {}", token.expires),
        _ => "is used up".to_owned(),
    };
    let (what, home) = (format!("token {}", token.id), word_of(&run.home));
    let advice = format!("{why}; go on with: syscap token reissue {home} {}", token.id);
    Failure::Usage { what, advice }
}
