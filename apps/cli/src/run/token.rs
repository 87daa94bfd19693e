//! By which token the agent within calls.

use clap::Parser;
use syscap::{
    Runtime,
    format::id::{TokenId, ToolId},
    view::TokenInfo,
};

use super::{Run, client::Known};
use crate::{
    exit::Failure,
    hook::{Hook, client::Client},
    mcp::Mcp,
    output::word_of,
};

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

/// The hook as it is to be run outside, but for its token.
pub(super) fn hook(run: &Run, client: Client) -> Result<Hook, Failure> {
    let home = std::path::absolute(&run.home).map_err(Failure::file(&run.home))?;
    let usage = |advice: String| Failure::Usage { what: "--hook".to_owned(), advice };
    let mut words = vec!["hook".into(), home.into_os_string(), "--agent".into()];
    words.extend([run.agent.to_string().into(), "--client".into(), client.option().into()]);
    words.extend(run.hook.iter().flat_map(|words| words.0.iter().map(Into::into)));
    let HookLine { hook } =
        HookLine::try_parse_from(words).map_err(|error| usage(first_line(&error)))?;
    match (hook.setup, hook.token) {
        (false, None) => Ok(hook),
        (true, _) => Err(usage("it is set up in any case: leave --setup out".to_owned())),
        (_, Some(_)) => Err(usage("write --token before it, as an option of `run`".to_owned())),
    }
}

/// That the gateway's words are a gateway's.
pub(super) fn check_mcp(run: &Run) -> Result<(), Failure> {
    let Some(more) = &run.mcp else { return Ok(()) };
    let usage = |advice: String| Failure::Usage { what: "--mcp".to_owned(), advice };
    let mut words = vec!["mcp".into(), run.home.clone().into_os_string(), "--agent".into()];
    words.push(run.agent.to_string().into());
    words.extend(more.0.iter().map(Into::into));
    let McpLine { mcp } =
        McpLine::try_parse_from(words).map_err(|error| usage(first_line(&error)))?;
    match mcp.print_config {
        false => Ok(()),
        true => Err(usage("it is configured in any case: leave --print-config out".to_owned())),
    }
}

fn first_line(error: &clap::Error) -> String {
    let text = error.to_string();
    let line = text.lines().next().unwrap_or_default();
    line.strip_prefix("error: ").unwrap_or(line).to_owned()
}

/// The token that is named; else the agent's newest that goes on and fits; else, for a client that
/// is known, a new one. What was revoked stays revoked, and what is spent is an operator's matter.
pub(super) fn of(run: &Run, known: Known, access: &Runtime) -> Result<TokenId, Failure> {
    let view = access.view()?;
    let goes_on = |token: &TokenInfo| token.is_live(view.now) && !token.is_spent();
    if let Some(id) = run.token {
        let token = view.token(id).ok_or(Failure::UnknownToken(id))?;
        return match token.agent == run.agent && goes_on(token) {
            true => Ok(id),
            false if token.agent != run.agent => {
                let what = format!("--token {id}");
                let advice = format!("is for {}: --agent {}", token.agent, token.agent);
                Err(Failure::Usage { what, advice })
            }
            false => Err(ended(run, id)),
        };
    }
    let client = known.client();
    let tools: Option<Vec<ToolId>> = client
        .map(|client| client.known().iter().filter_map(|(name, _, _)| client.tool(name)).collect());
    let fits = |token: &TokenInfo| match &tools {
        Some(tools) => token.tools.iter().any(|tool| tools.contains(tool)),
        None => !token.tools.is_empty(),
    };
    let mut own: Vec<&TokenInfo> =
        view.tokens.iter().filter(|token| token.agent == run.agent && fits(token)).collect();
    own.sort_by_key(|token| std::cmp::Reverse(token.issued));
    if let Some(token) = own.iter().find(|token| goes_on(token)) {
        return Ok(token.id);
    }
    let stopped = own.first().filter(|token| token.revoked || token.is_live(view.now));
    match (stopped, client) {
        (Some(token), _) => Err(ended(run, token.id)),
        (None, Some(client)) => {
            let hook = hook(run, client)?;
            hook.prepare(&hook.hands()?, access)
        }
        (None, None) => {
            let what = format!("--agent {}", run.agent);
            let advice = format!(
                "has no token that goes on; issue one with: syscap token issue {} --agent {} \
                 --tool TOOL",
                word_of(&run.home),
                run.agent
            );
            Err(Failure::Usage { what, advice })
        }
    }
}

fn ended(run: &Run, token: TokenId) -> Failure {
    let what = format!("token {token}");
    let home = word_of(&run.home);
    let advice =
        format!("was revoked or is spent; go on with: syscap token reissue {home} {token}");
    Failure::Usage { what, advice }
}
