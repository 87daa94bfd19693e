//! From arguments to what is to be started.

use syscap_format::{Amounts, Dimension, Item, Name, Reason, Refused, Resource, Rights};
use syscap_kernel::{Demand, Demands, Request};
use syscap_launch::{Level, Network};

use super::{CONFINEMENT_DIMENSION, NETWORK_DIMENSION, PROGRAM_DIMENSION, script};
use crate::fs::path::{Ending, Place};

/// Most texts of `argv`.
pub const ARGUMENTS_MAX: u64 = 1_024;
/// Longest script, in bytes.
pub const SCRIPT_BYTES_MAX: u64 = 64 << 10;
/// Milliseconds that a program may take, and use of a processor, where the call doesn't say.
const MS: u64 = 10_000;
/// Bytes that it may write.
const DISK_BYTES: u64 = 16 << 20;
/// Files that it may make or change.
const DISK_FILES: u64 = 256;
/// The shell that runs scripts.
const SHELL: &str = "sh";

/// A call's arguments.
#[derive(Debug)]
pub(super) struct Parsed {
    /// The program: a name, or an absolute path.
    pub(super) program: Name,
    /// `argv`, the program first.
    pub(super) argv: Vec<String>,
    pub(super) input: Option<String>,
    pub(super) wall_ms: u64,
    pub(super) cpu_ms: u64,
    pub(super) disk_bytes: u64,
    pub(super) read_only: bool,
    pub(super) network: Network,
    pub(super) required: Level,
    pub(super) folder: Place,
    pub(super) demands: Demands,
}

impl Parsed {
    pub(super) fn parse(request: &Request<'_>) -> Result<Self, Refused> {
        let text = |name| request.args.get(name).and_then(Item::as_text);
        let int = |name, absent| request.args.get(name).and_then(Item::as_uint).unwrap_or(absent);
        let (argument, argv) = match text("script") {
            Some(script) => ("script", vec![SHELL.to_owned(), "-c".to_owned(), script.to_owned()]),
            None => ("argv", argv(request)?),
        };
        let program = program(argv.first().map_or("", String::as_str), argument)?;
        if argv.iter().any(|text| text.contains('\0')) {
            let refused = Refused::new(Reason::BadArgument).field(argument);
            return Err(refused.allowed("texts without zero bytes"));
        }
        let read_only = request.args.get("read_only").and_then(Item::as_bool) == Some(true);
        let needs = if read_only { Rights::READ } else { Rights::READ.union(Rights::WRITE) };
        let folder = Place::parse(request, Ending::Folder, needs)?;
        let (network, required) = (network(text("network"))?, level(text("confinement"))?);
        let (wall_ms, cpu_ms) = (int("timeout_ms", MS), int("cpu_ms", MS));
        let (disk_bytes, disk_files) = match read_only {
            true => (0, 0),
            false => (int("disk_bytes", DISK_BYTES), int("disk_files", DISK_FILES)),
        };
        let name = |dimension, name: &str, argument| -> Result<Demand, Refused> {
            let name = Name::new(name).map_err(|_| bad(argument, name, "a name"))?;
            Ok(Demand { dimension, resource: Resource::Name(name), argument })
        };
        let mut resources =
            vec![name(PROGRAM_DIMENSION, program.as_str(), argument)?, folder.demand_tree()];
        if let Some(network) = text("network") {
            resources.push(name(NETWORK_DIMENSION, network, "network")?);
        }
        if required < Level::Contained {
            resources.push(name(CONFINEMENT_DIMENSION, required.name(), "confinement")?);
        }
        if text("script").is_some() {
            resources.extend(script::demands(request)?);
        }
        let us = |ms: u64| ms.saturating_mul(1_000);
        let hold = Amounts::ZERO
            .with(Dimension::CpuUs, us(cpu_ms))
            .with(Dimension::WallUs, us(wall_ms))
            .with(Dimension::DiskWriteBytes, disk_bytes)
            .with(Dimension::DiskFiles, disk_files);
        Ok(Self {
            program,
            argv,
            input: text("input").map(str::to_owned),
            wall_ms,
            cpu_ms,
            disk_bytes,
            read_only,
            network,
            required,
            folder,
            demands: Demands { resources, hold },
        })
    }
}

fn bad(field: &'static str, got: &str, allowed: &str) -> Refused {
    Refused::new(Reason::BadArgument).field(field).got(got).allowed(allowed)
}

fn argv(request: &Request<'_>) -> Result<Vec<String>, Refused> {
    let refused = || Refused::new(Reason::BadArgument).field("argv").allowed("a list of texts");
    let list = request.args.get("argv").ok_or_else(refused)?;
    let texts = list.elements().map(|item| item.as_text().map(str::to_owned));
    texts.collect::<Option<Vec<String>>>().ok_or_else(refused)
}

/// A name without a slash is one of the system's; a path is absolute and in its plain form, so
/// that what the token names is what is opened.
fn program(text: &str, argument: &'static str) -> Result<Name, Refused> {
    let allowed = "the name of a program, or an absolute path without `.`, `..` and empty parts";
    let is_part = |part: &str| !part.is_empty() && part != "." && part != "..";
    let is_fine = match text.strip_prefix('/') {
        Some(path) => path.split('/').all(is_part),
        None => is_part(text) && !text.contains('/'),
    };
    let name = Name::new(text).ok().filter(|_| is_fine);
    name.ok_or_else(|| bad(argument, text, allowed))
}

fn network(text: Option<&str>) -> Result<Network, Refused> {
    match text {
        None => Ok(Network::None),
        Some("loopback") => Ok(Network::Loopback),
        Some("host") => Ok(Network::Host),
        Some(other) => Err(bad("network", other, "loopback or host")),
    }
}

fn level(text: Option<&str>) -> Result<Level, Refused> {
    let text = text.unwrap_or(Level::Contained.name());
    let level = Level::named(text).filter(|level| *level >= Level::Confined);
    level.ok_or_else(|| bad("confinement", text, "contained or confined"))
}
