//! `syscap-launch`: starts a program confined.
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use syscap_launch::{
    Ended, LaunchError, Launcher, Level, Network, Plan, Report, Said, Stream, entry,
};

mod command;

/// Starts a program that can touch only what is named, holds it to bounds, and ends all of it.
///
/// Without options it gets the system's programs and libraries to read and execute, and nothing
/// else: no file, no network, no environment.
#[derive(Debug, Parser)]
#[command(name = "syscap-launch", version)]
#[command(
    after_help = "Exit codes: the program's; 128+N ended by signal N; 124 ended at a bound; \
    125 not started (usage, confinement not to be had); 126 can't be executed; 127 not found."
)]
struct Cli {
    /// A file or folder to read.
    #[arg(long, value_name = "PATH")]
    ro: Vec<PathBuf>,
    /// A file or folder to read and write.
    #[arg(long, value_name = "PATH")]
    rw: Vec<PathBuf>,
    /// A file or folder to read and execute.
    #[arg(long, value_name = "PATH")]
    exec: Vec<PathBuf>,
    /// Don't open the system's folders to it.
    #[arg(long)]
    no_system: bool,
    /// A folder to hide, with all but the `files` in it (may be repeated). Nothing else is kept from
    /// the program then: this is no boundary.
    #[arg(long, value_name = "DIR", conflicts_with_all = ["ro", "rw", "exec", "no_system", "net",
        "wall_ms", "cpu_ms", "output_bytes", "processes", "memory_bytes", "file_bytes", "require",
        "report"])]
    hide: Vec<PathBuf>,
    /// A variable of its environment; by its name alone, with the value that it has here.
    #[arg(long, value_name = "NAME[=VALUE]")]
    env: Vec<OsString>,
    /// Its working folder. It is not opened by this: see --ro and --rw.
    #[arg(long, value_name = "PATH", default_value = ".")]
    cwd: PathBuf,
    /// The reachable network: none; its own loopback; the host's.
    #[arg(long, value_enum, default_value_t = Net::None)]
    net: Net,
    /// Milliseconds that it may take.
    #[arg(long, value_name = "N")]
    wall_ms: Option<u64>,
    /// Milliseconds of processor time, of all its processes together.
    #[arg(long, value_name = "N")]
    cpu_ms: Option<u64>,
    /// Bytes of output, of both streams together.
    #[arg(long, value_name = "N")]
    output_bytes: Option<u64>,
    /// Processes and threads at one time.
    #[arg(long, value_name = "N")]
    processes: Option<u32>,
    /// Bytes of memory.
    #[arg(long, value_name = "N")]
    memory_bytes: Option<u64>,
    /// Bytes of each file that it writes.
    #[arg(long, value_name = "N")]
    file_bytes: Option<u64>,
    /// The least confinement that will do: bounded, confined or contained.
    #[arg(long, value_name = "LEVEL", default_value = "contained", value_parser = level)]
    require: Level,
    /// The file for one line of JSON about the end, the use and the confinement; `-` is standard
    /// error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// The program and its arguments. Without a `/` it is looked for in /usr/local/bin, /usr/bin
    /// and /bin.
    #[arg(required = true, last = true, value_name = "PROGRAM")]
    program: Vec<OsString>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Net {
    None,
    Loopback,
    Host,
}

impl From<Net> for Network {
    fn from(net: Net) -> Self {
        match net {
            Net::None => Self::None,
            Net::Loopback => Self::Loopback,
            Net::Host => Self::Host,
        }
    }
}

fn level(name: &str) -> Result<Level, String> {
    Level::named(name).ok_or_else(|| "not a level: bounded, confined, contained".to_owned())
}

/// Ended at a bound.
const BOUND: u8 = 124;
/// Not started.
const REFUSED: u8 = 125;
/// Found, but can't be executed.
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;

fn main() -> ExitCode {
    entry();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(told) => {
            let code = if told.use_stderr() { REFUSED } else { 0 };
            return match told.print() {
                Ok(()) => code.into(),
                Err(_) => REFUSED.into(),
            };
        }
    };
    match run(&cli) {
        Ok(code) => code.into(),
        Err((code, reason)) => {
            eprintln!("syscap-launch: {reason}");
            code.into()
        }
    }
}

type Refused = (u8, String);

fn run(cli: &Cli) -> Result<u8, Refused> {
    let plan = plan(cli)?;
    // Opened before, so that what can't be reported is not begun.
    let mut report = match &cli.report {
        None => None,
        Some(path) if path.as_os_str() == "-" => Some(Box::new(io::stderr()) as Box<dyn Write>),
        Some(path) => Some(Box::new(
            File::create(path)
                .map_err(|error| (REFUSED, format!("{}: {error}", path.display())))?,
        ) as Box<dyn Write>),
    };
    let refused = |error: LaunchError| {
        let code = match &error {
            LaunchError::Execute(error) if error.kind() == io::ErrorKind::NotFound => NOT_FOUND,
            LaunchError::Execute(_) => NOT_EXECUTABLE,
            _ => REFUSED,
        };
        (code, error.to_string())
    };
    let launcher = Launcher::this().map_err(refused)?;
    if !plan.hidden.is_empty() {
        let ended = command::carry(launcher.serve(plan).map_err(refused)?);
        return ended.map_err(|error| (REFUSED, error.to_string()));
    }
    let mut running = launcher.start(&plan).map_err(refused)?;
    // Handles that the program holds alone end with it.
    drop(plan);
    let ended = loop {
        match running.recv().map_err(refused)? {
            Said::Output(stream, bytes) => {
                let written = match stream {
                    Stream::Out => {
                        io::stdout().write_all(&bytes).and_then(|()| io::stdout().flush())
                    }
                    Stream::Err => io::stderr().write_all(&bytes),
                };
                // Nobody listens any more: as a program that writes to a closed pipe is ended.
                if written.is_err() {
                    running.cancel();
                }
            }
            // It has no door.
            Said::Connected(_) => {}
            Said::Ended(ended) => break ended,
        }
    };
    if let Some(report) = &mut report {
        let line = command::line(&ended, cli.net.into());
        report.write_all(line.as_bytes()).map_err(|error| (REFUSED, error.to_string()))?;
    }
    Ok(code(&ended))
}

fn code(report: &Report) -> u8 {
    match report.ended {
        Ended::Exited(code) => code,
        Ended::Signalled(signal) => signal.saturating_add(128),
        Ended::Bound(bound) => {
            eprintln!("syscap-launch: ended at its bound: {}", bound.name());
            BOUND
        }
        // By a closed pipe.
        Ended::Cancelled => 128 + 13,
    }
}

fn plan(cli: &Cli) -> Result<Plan, Refused> {
    let opened = |path: &Path| {
        command::open(path).map_err(|error| (REFUSED, format!("{}: {error}", path.display())))
    };
    let (program, arguments) = cli.program.split_first().ok_or((REFUSED, String::new()))?;
    let handle = command::find(program).map_err(|error| {
        let code = if error.kind() == io::ErrorKind::NotFound { NOT_FOUND } else { NOT_EXECUTABLE };
        (code, format!("{}: {error}", program.display()))
    })?;
    let mut plan = Plan::new(handle, program.clone(), opened(&cli.cwd)?);
    plan.arguments.extend(arguments.iter().cloned());
    plan.system = !cli.no_system;
    plan.network = cli.net.into();
    plan.required = cli.require;
    plan.limits.wall_ms = cli.wall_ms;
    plan.limits.cpu_ms = cli.cpu_ms;
    plan.limits.output_bytes = cli.output_bytes;
    plan.limits.processes = cli.processes;
    plan.limits.memory_bytes = cli.memory_bytes;
    plan.limits.file_bytes = cli.file_bytes;
    for path in &cli.hide {
        plan.hidden.push(opened(path)?);
    }
    if !cli.hide.is_empty() {
        // By its name, and all variables are kept beside those that are named.
        let path = command::place(program).map_err(|error| (NOT_FOUND, error.to_string()))?;
        plan.arguments.splice(..1, [path.into_os_string()]);
        plan.environment = std::env::vars_os().collect();
    }
    plan.input = Some(command::input().map_err(|error| (REFUSED, error.to_string()))?);
    for (paths, access) in command::grants(&cli.ro, &cli.rw, &cli.exec) {
        for path in paths {
            plan.granted.push(syscap_launch::Granted { handle: opened(path)?, access });
        }
    }
    for variable in &cli.env {
        let (name, value) = variable_of(variable)?;
        plan.environment.retain(|(known, _)| *known != name);
        plan.environment.push((name, value));
    }
    Ok(plan)
}

fn variable_of(text: &OsStr) -> Result<(OsString, OsString), Refused> {
    let bytes = text.as_bytes();
    let Some(at) = bytes.iter().position(|byte| *byte == b'=') else {
        let value = std::env::var_os(text);
        let reason = || (REFUSED, format!("{}: no such variable here", text.display()));
        return Ok((text.to_owned(), value.ok_or_else(reason)?));
    };
    let (name, value) = bytes.split_at(at);
    let value = value.get(1..).unwrap_or_default();
    Ok((OsStr::from_bytes(name).to_owned(), OsStr::from_bytes(value).to_owned()))
}
