//! `syscap mcp`: MCP servers behind a home's kernel.

mod review;
mod view;
pub(crate) mod words;

use std::ffi::OsString;
use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use syscap::format::{AgentId, Dimension};
use syscap_gateway::{ClassRule, Hints, KnownClient, Options, Question, ServerCommand, Uses};

use self::review::{Confirmed, review};
use self::view::Views;
use self::words::{absolute, with_home};
use crate::call::by_lane;
use crate::exit::{Ended, Exit, Failure, diagnose, tell};
use crate::hook::setup;
use crate::output::Out;
use crate::token::TokenName;
use crate::{lane, parse, recording, runtime, starter, terminal};

/// Most bytes of a result that can be asked for: the kernel's own limit.
const RESULT_KIB_MAX: u64 = 4_096;

/// Put syscap in front of MCP servers: a gateway that one client starts in their place.
#[derive(Args, Debug)]
#[command(after_long_help = "\
Examples:
  syscap mcp home --agent me --review -- python3 server.py
  syscap mcp home --agent me --print-config -- python3 server.py

The gateway speaks MCP on standard input and output, and starts the servers. Put the text that
--print-config prints into the client's configuration.

A server's tool counts as external_write until you say otherwise, by --class or, where you trust the
server's own hints, by --confirm-hints. Its first definition is pinned; the gateway refuses another
one until you accept it. Prompts and resources are reads, decided and recorded as calls are. What a
server asks of the client (elicitation, sampling, roots) is off unless --allow lets it.")]
pub(crate) struct Mcp {
    /// The home.
    home: PathBuf,
    /// The agent that calls.
    #[arg(long, value_name = "NAME", value_parser = parse::agent)]
    agent: AgentId,
    /// Show the servers' tools with a proposed class each, ask whether to put them on record, and
    /// end. With --confirm-hints nobody is asked, and no class is guessed by a name.
    #[arg(long, conflicts_with = "print_config", help_heading = "Set up")]
    review: bool,
    /// Print the client's configuration, and end.
    #[arg(long, help_heading = "Set up")]
    pub(crate) print_config: bool,
    /// The configuration's form: claude-code, claude-desktop, cursor, vscode, gemini.
    #[arg(long, value_name = "CLIENT", requires = "print_config", value_parser = client)]
    #[arg(help_heading = "Set up")]
    client: Option<KnownClient>,
    /// The name of the server after --. Its tools are NAME.tool on record.
    #[arg(long, value_name = "SERVER", value_parser = server_name, requires = "command")]
    #[arg(help_heading = "Servers")]
    name: Option<String>,
    /// Another server. The command is split into words; no shell reads it.
    #[arg(long = "server", value_name = "NAME=COMMAND", value_parser = server)]
    #[arg(help_heading = "Servers")]
    servers: Vec<ServerCommand>,
    /// A variable of a server's environment: NAME as it is here, or NAME=VALUE; without SERVER of
    /// the one after -- (may be repeated).
    #[arg(long = "env", value_name = "[SERVER:]NAME[=VALUE]", value_parser = variable)]
    #[arg(help_heading = "Servers")]
    env: Vec<Variable>,
    /// A server's permitted requests to the client: elicitation, sampling, roots; without SERVER
    /// the one after -- (may be repeated).
    #[arg(long = "allow", value_name = "[SERVER:]WHAT,WHAT", value_parser = allowed)]
    #[arg(help_heading = "Servers")]
    allow: Vec<Allowed>,
    /// Take only these tools of a server: NAME, or NAME* for all that begin so; without SERVER of
    /// the one after -- (may be repeated).
    #[arg(long = "tool", value_name = "[SERVER:]NAME,NAME*", value_parser = chosen)]
    #[arg(help_heading = "Servers")]
    tools: Vec<Chosen>,
    /// Show tools as NAME_tool, also of a single server.
    #[arg(long, help_heading = "Servers")]
    prefix: bool,
    #[command(flatten)]
    views: Views,
    /// Let no prompts through.
    #[arg(long, help_heading = "Servers")]
    no_prompts: bool,
    /// Let no resources through.
    #[arg(long, help_heading = "Servers")]
    no_resources: bool,
    /// The classes of tools: read=read_*,list_* (may be repeated).
    #[arg(long = "class", value_name = "CLASS=TOOL,TOOL*", value_parser = ClassRule::parse)]
    #[arg(help_heading = "Trust")]
    classes: Vec<ClassRule>,
    /// Trust what the servers say of their own tools.
    #[arg(long, help_heading = "Trust")]
    confirm_hints: bool,
    /// Vouch for the servers' results: they count as trusted, for `syscap learn` too.
    #[arg(long, help_heading = "Trust")]
    trust_results: bool,
    /// The agent's token. Its newest valid one that fits if absent; a new one if there is none.
    #[arg(long, value_name = "ID", value_parser = TokenName::parse, help_heading = "Token")]
    token: Option<TokenName>,
    /// Let a token that is issued here grant the built-in tools, too, in the agent's workspace.
    #[arg(long, help_heading = "Token")]
    builtins: bool,
    /// Grant these tools when they turn up later: SERVER.TOOL, SERVER.*, or * (may be repeated).
    /// The gateway names the others with the command that grants them.
    #[arg(long, value_name = "TOOLS", value_delimiter = ',', conflicts_with = "token",
          value_parser = pattern, help_heading = "Token")]
    grant: Vec<String>,
    /// How long a token that is issued here is valid.
    #[arg(long, value_name = "TIME", default_value = "12h", value_parser = parse::life)]
    #[arg(help_heading = "Token")]
    expires: Duration,
    /// A limit of a token that is issued here, such as calls=100 (may be repeated). The defaults
    /// outlast a working day.
    #[arg(long, value_name = "DIMENSION=AMOUNT", value_delimiter = ',',
          value_parser = parse::limit, help_heading = "Token")]
    budget: Vec<(Dimension, u64)>,
    /// How often a token that expired or is used up is issued once more, with nothing used, counted
    /// over restarts; never one that was revoked, nor while the agent is frozen. If absent, one that
    /// expired is issued again at each start.
    #[arg(long, value_name = "N", conflicts_with = "token", help_heading = "Token")]
    renew: Option<u32>,
    /// How long a call may run. As on record if absent, at first 60s.
    #[arg(long, value_name = "TIME", value_parser = parse::life, help_heading = "Limits")]
    timeout: Option<Duration>,
    /// Largest result of a call, in KiB. As on record if absent, at first 1024.
    #[arg(long, value_name = "KIB",
          value_parser = clap::value_parser!(u64).range(1..=RESULT_KIB_MAX))]
    #[arg(help_heading = "Limits")]
    max_result: Option<u64>,
    /// How long a call waits for a person's approval; less than the client's own time-out. 0s: not
    /// at all.
    #[arg(long, value_name = "TIME", default_value = "45s", value_parser = parse::span)]
    #[arg(help_heading = "Limits")]
    approval_wait: Duration,
    #[command(flatten)]
    people: runtime::People,
    /// The server's command and its arguments.
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// A gateway's failure.
pub(crate) fn failed(home: &Path) -> impl FnOnce(syscap_gateway::Error) -> Failure {
    let home = home.to_path_buf();
    move |error| match error {
        syscap_gateway::Error::Home(source) => Failure::home(&home)(source),
        syscap_gateway::Error::Unsafe { server, why } => {
            Failure::Usage { what: format!("server {server}"), advice: why }
        }
        other => Failure::Gateway(other.to_string()),
    }
}

fn server_name(text: &str) -> Result<String, String> {
    let form = "a server is named [a-z][a-z0-9_]*, at most 24 long, and not `unknown`, `syscap`, \
                `claude_code` or `gemini_cli`";
    if syscap_gateway::is_server_name(text) { Ok(text.to_owned()) } else { Err(form.to_owned()) }
}

fn pattern(text: &str) -> Result<String, String> {
    parse::tools(text).map(|_| text.to_owned()).map_err(|error| error.to_string())
}

fn client(text: &str) -> Result<KnownClient, String> {
    let names = KnownClient::ALL.map(KnownClient::name).join(", ");
    KnownClient::named(text).ok_or(format!("there is no such client; there are {names}"))
}

/// A variable of a server's environment.
#[derive(Clone, Debug)]
struct Variable {
    server: Option<String>,
    name: String,
    value: Option<String>,
}

fn variable(text: &str) -> Result<Variable, String> {
    let (name, value) = match text.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (text, None),
    };
    let (server, name) = match name.split_once(':') {
        Some((server, name)) => (Some(server_name(server)?), name),
        None => (None, name),
    };
    if name.is_empty() || name.contains('\0') || text.contains('\0') {
        return Err("write [SERVER:]NAME, or [SERVER:]NAME=VALUE".to_owned());
    }
    Ok(Variable { server, name: name.to_owned(), value })
}

/// A server's permitted requests.
#[derive(Clone, Debug)]
struct Allowed {
    server: Option<String>,
    questions: Vec<Question>,
}

fn allowed(text: &str) -> Result<Allowed, String> {
    let (server, names) = match text.split_once(':') {
        Some((server, names)) => (Some(server_name(server)?), names),
        None => (None, text),
    };
    let known = Question::ALL.map(Question::name).join(", ");
    let read = |name| Question::named(name).ok_or(format!("{name:?}: there are {known}"));
    Ok(Allowed { server, questions: names.split(',').map(read).collect::<Result<_, _>>()? })
}

/// Which of a server's tools are taken.
#[derive(Clone, Debug)]
struct Chosen {
    server: Option<String>,
    tools: Vec<String>,
}

fn chosen(text: &str) -> Result<Chosen, String> {
    let (server, names) = match text.split_once(':') {
        Some((server, names)) => (Some(server_name(server)?), names),
        None => (None, text),
    };
    let tools: Vec<String> = names.split(',').map(str::to_owned).collect();
    let is_name = |name: &String| {
        let plain = name.strip_suffix('*').unwrap_or(name);
        !name.is_empty() && !plain.contains('*')
    };
    match tools.iter().all(is_name) {
        true => Ok(Chosen { server, tools }),
        false => Err("write [SERVER:]NAME,NAME, with a * at the end of a name alone".to_owned()),
    }
}

fn server(text: &str) -> Result<ServerCommand, String> {
    let (name, line) = text.split_once('=').ok_or("write NAME='COMMAND ARGS..'")?;
    let command = syscap_gateway::split(line).map_err(|error| error.to_string())?;
    Ok(ServerCommand::new(server_name(name)?, command))
}

impl Mcp {
    pub(crate) fn run(self, out: &mut Out) -> Ended {
        if lane::is_here() && !self.print_config {
            return by_lane(lane::Service::Mcp, std::io::stdin());
        }
        let options = match self.views.written.clone() {
            written if written.is_empty() => self.options()?,
            written => self.of_run(written)?,
        };
        if self.print_config {
            for line in self.config(&options)?.lines() {
                out.line(line)?;
            }
            if let Some(client) = self.client {
                tell(&format!("this goes into {}, beside what is there", client.file()));
            }
            return Ok(Exit::Done);
        }
        starter::follow(&self.home).map_err(Failure::home(&self.home))?;
        let first = terminal::is_there() && review::is_first(&self.home, &options)?;
        if self.review || first {
            return self.look(options, out);
        }
        if std::io::stdin().is_terminal() {
            diagnose("an MCP client is to start this: --print-config prints how");
        }
        recording::warn_of_recording_in(&self.home)?;
        syscap_gateway::run(options).map_err(failed(&self.home))?;
        Ok(Exit::Done)
    }

    /// The first look at servers.
    fn look(&self, options: Options, out: &mut Out) -> Ended {
        let confirmed = match self.confirm_hints {
            true => Confirmed::Beforehand,
            false if terminal::is_there() => Confirmed::Asked,
            false => {
                return Err(Failure::Usage {
                    what: "--review".to_owned(),
                    advice: "asks at a terminal; --confirm-hints takes what the servers say".into(),
                });
            }
        };
        review(&self.home, options, confirmed, out)
    }

    /// As a gateway of a run, which may write these places.
    pub(crate) fn of_run(&self, written: Vec<PathBuf>) -> Result<Options, Failure> {
        let mut options = self.options()?;
        for server in options.servers.iter_mut().filter(|server| server.folder.is_none()) {
            server.folder = Some(PathBuf::from("/"));
        }
        options.written = written;
        Ok(options)
    }

    fn options(&self) -> Result<Options, Failure> {
        let mut servers = Vec::new();
        if !self.command.is_empty() {
            let name =
                self.name.clone().unwrap_or_else(|| syscap_gateway::server_name(&self.command));
            let command = self.command.clone();
            servers.push(ServerCommand::new(name, command));
        }
        servers.extend(self.servers.iter().cloned());
        self.put_env(&mut servers)?;
        self.put_asks(&mut servers)?;
        self.put_tools(&mut servers)?;
        self.put_views(&mut servers)?;
        servers.retain(|server| !self.views.without.contains(&server.name));
        let is_named = self.token.is_some() || self.views.settled.is_some();
        if servers.is_empty() && !self.builtins && !is_named {
            return Err(Failure::Usage {
                what: "no server".to_owned(),
                advice: "write its command after --, or name one by --server".to_owned(),
            });
        }
        if let Some(timeout) = self.timeout.filter(|timeout| *timeout > Options::TIMEOUT_MAX) {
            return Err(Failure::Usage {
                what: format!("--timeout {}s", timeout.as_secs()),
                advice: format!("is {} h at most", Options::TIMEOUT_MAX.as_secs() / 3_600),
            });
        }
        let mut options = Options::new(self.home.clone(), self.agent.clone(), servers);
        options.token = TokenName::of_any(self.token.as_ref(), &self.home)?;
        options.expires = self.expires;
        options.limits.clone_from(&self.budget);
        options.settled = TokenName::of_any(self.views.settled.as_ref(), &self.home)?;
        options.uses = self.views.uses.clone().map(Uses::at);
        options.renewals = match options.settled {
            // An agent that connects again gets nothing new.
            Some(_) => Some(0),
            None => self.renew,
        };
        options.prefix = self.prefix;
        options.built_in = self.builtins;
        options.grants = self.grant.clone();
        options.classes = self.classes.clone();
        options.hints = if self.confirm_hints { Hints::Confirmed } else { Hints::Unconfirmed };
        options.trust_results = self.trust_results;
        options.timeout = self.timeout;
        options.result_bytes = self.max_result.map(|kib| kib.saturating_mul(1_024));
        options.starter = Some(starter::starter(&self.home));
        options.headless = self.people.are_absent();
        options.approval_wait = self.approval_wait;
        options.prompts = !self.no_prompts;
        options.resources = !self.no_resources;
        Ok(options)
    }

    /// Gives each server what is said of its environment.
    fn put_env(&self, servers: &mut [ServerCommand]) -> Result<(), Failure> {
        for variable in &self.env {
            let what = format!("--env {}", variable.name);
            let server = self.server(servers, variable.server.as_deref(), &what)?;
            let here = || std::env::var_os(&variable.name);
            match variable.value.clone().map(OsString::from).or_else(here) {
                Some(value) => server.env.push((variable.name.clone(), value)),
                None => diagnose(&format!("--env {}: it is not set here", variable.name)),
            }
        }
        Ok(())
    }

    /// Notes what each server may ask.
    fn put_asks(&self, servers: &mut [ServerCommand]) -> Result<(), Failure> {
        for allowed in &self.allow {
            let server = self.server(servers, allowed.server.as_deref(), "--allow")?;
            server.asks.extend(&allowed.questions);
        }
        Ok(())
    }

    /// Notes which tools of each server are taken.
    fn put_tools(&self, servers: &mut [ServerCommand]) -> Result<(), Failure> {
        for chosen in &self.tools {
            let server = self.server(servers, chosen.server.as_deref(), "--tool")?;
            server.tools.extend(chosen.tools.iter().cloned());
        }
        Ok(())
    }

    /// The server that an option is for.
    fn server<'s>(
        &self,
        servers: &'s mut [ServerCommand],
        name: Option<&str>,
        option: &str,
    ) -> Result<&'s mut ServerCommand, Failure> {
        let of = match name {
            Some(name) => servers.iter_mut().find(|server| server.name == name),
            None => servers.first_mut().filter(|_| !self.command.is_empty()),
        };
        of.ok_or_else(|| Failure::Usage {
            what: format!("{option}: there is no such server"),
            advice: "write SERVER:NAME, with the name that --server gives it".to_owned(),
        })
    }

    /// The same command line once more, with whole paths, as a client starts it.
    fn config(&self, options: &Options) -> Result<String, Failure> {
        let program = std::env::current_exe().map_err(Failure::file(Path::new("syscap")))?;
        let home = std::path::absolute(&self.home).map_err(Failure::file(&self.home))?;
        let words = std::env::args_os().skip(1).map(|word| setup::path(Path::new(&word)));
        let words = words.collect::<Result<Vec<_>, _>>()?.into_iter();
        let words = with_home(words, &setup::path(&self.home)?, &setup::path(&home)?);
        let args = absolute(words).words;
        let name = options.servers.first().map_or("syscap", |server| &server.name);
        let snippet = syscap_gateway::snippet(self.client, name, &setup::path(&program)?, &args);
        Ok(format!("{snippet:#}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_named_and_split() {
        let parsed = server("notes=npx -y 'a b'").unwrap();
        assert_eq!(parsed.name, "notes");
        assert_eq!(parsed.command, ["npx", "-y", "a b"]);
        for wrong in ["notes", "Notes=x", "unknown=x", "notes=", "notes='x", "a.b=x"] {
            assert!(server(wrong).is_err(), "{wrong}");
        }
    }
}
