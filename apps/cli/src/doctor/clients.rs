//! How long clients wait for a call, and how long a call may take here.

use syscap::{format::Manifest, kernel::Kernel, syscalls::net::Network};

use super::findings::{Findings, Level};
use crate::exit::Failure;
use crate::hook::version;
use crate::output::{Object, array, plain};

/// A client's time-out for a call of an MCP tool where nothing is set, and how it is set.
struct Patience {
    client: &'static str,
    ms: u64,
    set_by: &'static str,
}

/// As the clients' own documents and sources say: docs/deploy.md has where.
const CLIENTS: [Patience; 5] = [
    Patience { client: "codex", ms: 60_000, set_by: "tool_timeout_sec" },
    Patience { client: "cline", ms: 60_000, set_by: "timeout" },
    Patience {
        client: "clients made with the TypeScript SDK",
        ms: 60_000,
        set_by: "their own setting, if they have one",
    },
    Patience { client: "gemini", ms: 600_000, set_by: "timeout" },
    Patience { client: "claude-code", ms: 1_800_000, set_by: "timeout, or MCP_TOOL_TIMEOUT" },
];

/// The tool whose calls may take longest.
fn slowest(kernel: &Kernel) -> Option<(&Manifest, u64)> {
    let of = |manifest: &Manifest| manifest.wall_ms_max.or(Network::timeout_ms(manifest));
    let limited = kernel.manifests().filter_map(|manifest| Some((manifest, of(manifest)?)));
    limited.max_by_key(|(_, ms)| *ms)
}

/// Checks that Claude Code denies a use if the hook fails.
pub(super) fn hooks(findings: &mut Findings<'_>) -> Result<(), Failure> {
    for file in version::unblocked() {
        let file = file.display().to_string();
        findings.bad(
            "hook",
            &format!(
                "{} has no onFailure \"block\" before a use: where the hook can't be started the \
                 tool runs; write the settings anew: syscap hook, with --setup and --token",
                plain(&file)
            ),
        )?;
    }
    let Some(version) = version::installed() else { return Ok(()) };
    match version.lets_tools_run() {
        Some(problem) => findings.bad("claude", &problem),
        None => findings.fine("claude", &format!("{version}, which denies where the hook fails")),
    }
}

pub(super) fn look(findings: &mut Findings<'_>, kernel: &Kernel) -> Result<(), Failure> {
    let Some((manifest, ms)) = slowest(kernel) else {
        return findings.fine("clients", "no tool on record has a limit of time to be outwaited");
    };
    let (tool, seconds) = (plain(manifest.tool.as_str()), ms.div_euclid(1_000));
    let short = || CLIENTS.iter().filter(|client| client.ms <= ms);
    let named: Vec<String> = short()
        .map(|one| format!("{} after {} s ({})", one.client, one.ms.div_euclid(1_000), one.set_by))
        .collect();
    let says = match named.is_empty() {
        true => format!("wait longer than any call may take ({tool}: {seconds} s)"),
        false => format!(
            "a call of {tool} may take {seconds} s, and where nothing else is set these give up \
             before, while the call goes on and is charged: {}; give them more, or the tool less \
             (`syscap mcp --timeout`, `timeout_ms` of `syscap http set`)",
            named.join(", ")
        ),
    };
    let level = if named.is_empty() { Level::Fine } else { Level::Note };
    let clients = short()
        .map(|one| Object::new().text("client", one.client).uint("timeout_ms", one.ms).finish());
    findings.add_with(level, "clients", &says, |json| {
        json.shown("tool", &manifest.tool)
            .uint("limit_ms", ms)
            .json("give_up_before", &array(clients))
    })
}
