//! What reaches other hosts.

use crate::{
    options::{
        Operands::All,
        Spec,
        Use::{Data, Write},
    },
    run::{Run, literal},
    said::{Mark, Outside, Piece},
};

/// `-K` reads options from a file, `-b` and `-H @` values; `-x` goes another way.
const CURL: Spec = Spec {
    name: "curl",
    flags: "fGgIiLOSsv#46",
    long: &["compressed", "fail", "get", "head", "location", "show-error", "silent", "verbose"],
    valued: &[
        ("-A", Data),
        ("-d", Data),
        ("-e", Data),
        ("-F", Data),
        ("-H", Data),
        ("-m", Data),
        ("-o", Write),
        ("-T", Data),
        ("-u", Data),
        ("-w", Data),
        ("-X", Data),
        ("--connect-timeout", Data),
        ("--data", Data),
        ("--data-binary", Data),
        ("--data-raw", Data),
        ("--header", Data),
        ("--json", Data),
        ("--max-time", Data),
        ("--output", Write),
        ("--request", Data),
        ("--retry", Data),
    ],
    operands: All(Data),
    ..Spec::PLAIN
};

const WGET: Spec = Spec {
    name: "wget",
    flags: "cnqSv",
    long: &["no-verbose", "quiet"],
    valued: &[("-O", Write), ("-T", Data), ("-t", Data), ("--timeout", Data)],
    operands: All(Data),
    ..Spec::PLAIN
};

/// Their names.
pub(super) const NAMES: &[&str] = &["curl", "wget"];

/// Programs that do elsewhere what can't be told here.
const ELSEWHERE: &[&str] = &[
    "aws",
    "az",
    "docker",
    "ftp",
    "gcloud",
    "gh",
    "glab",
    "helm",
    "kubectl",
    "nc",
    "ncat",
    "netcat",
    "podman",
    "rclone",
    "rsync",
    "scp",
    "sftp",
    "socat",
    "ssh",
    "telnet",
    "terraform",
];

pub(super) fn run(run: &mut Run<'_, '_>, name: &str, args: &[Piece]) -> bool {
    match name {
        "curl" => fetch(run, &CURL, args),
        "wget" => fetch(run, &WGET, args),
        _ if ELSEWHERE.contains(&name) => {
            run.unknown(format!("what {name} does elsewhere"));
            run.mark(Mark::Network, name);
            run.goes_outside(Outside::Writes);
        }
        _ => return false,
    }
    true
}

fn fetch(run: &mut Run<'_, '_>, spec: &Spec, args: &[Piece]) {
    let name = spec.name;
    run.program(name);
    run.goes_outside(Outside::Reads);
    let line = match spec.line(args) {
        Ok(line) => line,
        Err(why) => {
            run.mark(Mark::Network, name);
            run.goes_outside(Outside::Writes);
            return run.unknown(format!("{name}: {why}"));
        }
    };
    let curl = name == "curl";
    for (option, kind, value) in &line.values {
        run.used(*kind, value);
        let text = literal(value);
        match *option {
            "-d" | "--data" | "--data-binary" | "--json" | "-H" | "--header" if curl => {
                match text {
                    Some(text) if !text.starts_with('@') => {}
                    Some(text) => {
                        let file = text.strip_prefix('@').unwrap_or(text).to_owned();
                        run.read(&Piece::Literal(file));
                    }
                    None => run.unknown("curl: what it sends"),
                }
            }
            "-F" | "-T" => run.unknown("curl: a file that it sends"),
            "-w" if text.is_none_or(|text| text.starts_with('@') || text.contains("output")) => {
                run.unknown("curl: -w may write");
            }
            _ => {}
        }
        let sends = ["-d", "-F", "-T", "--data", "--data-binary", "--data-raw", "--json"];
        let method = matches!(*option, "-X" | "--request");
        if sends.contains(option) || (method && !matches!(text, Some("GET" | "HEAD"))) {
            run.goes_outside(Outside::Writes);
        }
    }
    // A file whose name the server, or the address, gives.
    let named = if curl { line.has("O") } else { !line.says("-O") };
    if named {
        run.write_all(&Piece::Literal(".".to_owned()));
    }
    // Where an answer leads elsewhere is not known before.
    if !curl || line.has("L") || line.says("location") {
        run.mark(Mark::Network, format!("{name} goes where it is led"));
    }
    for operand in &line.operands {
        match literal(operand).and_then(host) {
            Some(host) => drop(run.said().hosts.insert(host)),
            None => {
                run.mark(Mark::Network, format!("{name}: an address that can't be told"));
                run.unknown(format!("{name}: an address that can't be told"));
            }
        }
    }
}

/// The host of a plain address of the web, by name.
fn host(url: &str) -> Option<String> {
    let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"))?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at_checked(end)?;
    // `curl` makes several addresses of one by brackets, and of `\` nobody knows what.
    if path.contains(['{', '}', '[', ']', '\\']) {
        return None;
    }
    let (name, port) = match authority.split_once(':') {
        Some((name, port)) => (name, port),
        None => (authority, "80"),
    };
    let letters = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    let fine = !name.is_empty()
        && name.chars().all(letters)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !port.is_empty()
        && port.chars().all(|c| c.is_ascii_digit());
    fine.then(|| name.to_ascii_lowercase())
}
