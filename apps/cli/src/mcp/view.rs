//! The options about the servers' views.

use std::path::PathBuf;

use clap::Args;
use syscap::launch::Network;
use syscap_gateway::{Opened, ServerCommand, ServerView};

use super::words::{of_server, path_of_server};
use super::{Mcp, server_name};
use crate::exit::Failure;
use crate::parse;
use crate::token::TokenName;

/// A path, of the server after -- or of one that is named.
type OfServer = (Option<String>, PathBuf);

/// One of the lists of what is opened.
type List = fn(&mut Opened) -> &mut Vec<PathBuf>;

/// The servers' views of this machine.
#[derive(Args, Debug)]
#[command(next_help_heading = "What servers see")]
pub(super) struct Views {
    /// Confine a server and let it read this file or folder (may be repeated). A server without
    /// these options sees all that you see, but for homes and keys.
    #[arg(long, value_name = "[SERVER:]PATH", value_parser = of_path)]
    ro: Vec<OfServer>,
    /// Confine a server and let it read and write this file or folder (may be repeated).
    #[arg(long, value_name = "[SERVER:]PATH", value_parser = of_path)]
    rw: Vec<OfServer>,
    /// Confine a server and let it read and execute this file or folder (may be repeated).
    #[arg(long, value_name = "[SERVER:]PATH", value_parser = of_path)]
    exec: Vec<OfServer>,
    /// Confine a server, with this network: none; loopback, its own; host (may be repeated).
    #[arg(long, value_name = "[SERVER:]NET", value_parser = of_network)]
    net: Vec<(Option<String>, Network)>,
    /// The folder that a server starts in; the gateway's own if absent (may be repeated).
    #[arg(long, value_name = "[SERVER:]DIR", value_parser = of_path)]
    cwd: Vec<OfServer>,
    /// Hide no home and no key from this server (may be repeated).
    #[arg(long, value_name = "SERVER", value_parser = server_name)]
    unhidden: Vec<String>,
    /// A place that the agent of this run may write: `syscap run` says so.
    #[arg(long, value_name = "PATH", hide = true)]
    pub(super) written: Vec<PathBuf>,
    /// The folder where the run's hook holds uses against this gateway's calls: `syscap run` says so.
    #[arg(long, value_name = "DIR", hide = true)]
    pub(super) uses: Option<PathBuf>,
    /// The token that `syscap run` settled.
    #[arg(long, value_name = "ID", hide = true, value_parser = TokenName::parse)]
    pub(super) settled: Option<TokenName>,
    /// A server that `syscap run` could not start.
    #[arg(long, value_name = "SERVER", hide = true, value_parser = server_name)]
    pub(super) without: Vec<String>,
}

fn of_path(text: &str) -> Result<OfServer, String> {
    let (server, path) = path_of_server(text);
    match path.as_os_str().is_empty() {
        true => Err("write [SERVER:]PATH".to_owned()),
        false => Ok((server, path)),
    }
}

fn of_network(text: &str) -> Result<(Option<String>, Network), String> {
    let (server, name) = of_server(text);
    Ok((server.map(str::to_owned), parse::network(name)?))
}

impl Mcp {
    /// Notes what each server sees, and where it starts.
    pub(super) fn put_views(&self, servers: &mut [ServerCommand]) -> Result<(), Failure> {
        let views = &self.views;
        for name in &views.unhidden {
            self.server(servers, Some(name), "--unhidden")?.view = ServerView::Unhidden;
        }
        let lists: [(_, _, List); 3] = [
            ("--ro", &views.ro, |opened| &mut opened.read),
            ("--rw", &views.rw, |opened| &mut opened.write),
            ("--exec", &views.exec, |opened| &mut opened.execute),
        ];
        for (option, all, list) in lists {
            for (server, path) in all {
                let opened = self.opened(servers, server.as_deref(), option)?;
                list(opened).push(std::path::absolute(path).map_err(Failure::file(path))?);
            }
        }
        for (server, network) in &views.net {
            self.opened(servers, server.as_deref(), "--net")?.network = *network;
        }
        for (server, folder) in &views.cwd {
            let server = self.server(servers, server.as_deref(), "--cwd")?;
            let whole = std::path::absolute(folder).map_err(Failure::file(folder))?;
            if !whole.is_dir() {
                let what = format!("--cwd {}", folder.display());
                return Err(Failure::Usage { what, advice: "names no folder".to_owned() });
            }
            server.folder = Some(whole);
        }
        Ok(())
    }

    fn opened<'s>(
        &self,
        servers: &'s mut [ServerCommand],
        name: Option<&str>,
        option: &str,
    ) -> Result<&'s mut Opened, Failure> {
        let server = self.server(servers, name, option)?;
        let name = server.name.clone();
        server.opened().ok_or_else(|| Failure::Usage {
            what: format!("--unhidden {name}"),
            advice: format!(
                "lets the server see everything, and {option} confines it: leave one out"
            ),
        })
    }
}
