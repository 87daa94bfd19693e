//! Names: what a client calls a tool, and the id under which the kernel knows it.
//!
//! A tool's id is `SERVER.name`. An upstream name may have capitals, hyphens, dots and up to 128
//! characters, an id may not; so names are folded, and where two fold to one, all but the one that
//! needed no folding get a part of their hash. Their order never matters.

use std::collections::{BTreeMap, BTreeSet};

use syscap::Prefix;
use syscap::format::{ToolId, object_id};
use syscap::plain::plain;

use crate::upstream::method::Method;

/// Longest name of an upstream tool that is offered: MCP's own limit.
pub(crate) const NAME_BYTES_MAX: usize = 128;
/// Longest name of a server, so that most of an id is left for the tool.
pub(crate) const SERVER_BYTES_MAX: usize = 24;
/// The server of tools that there are not; none may be called so.
pub(crate) const NOWHERE: &str = "unknown";
/// Our own name, before what we ask a client ourselves; no server may be called so.
pub(crate) const OWN: &str = "syscap";
/// Hexadecimal digits of a hash that stands in a name.
const MARK_DIGITS: usize = 8;

/// True if a tool of that name can be offered: visible characters that stand where they are, not
/// too many.
pub(crate) fn is_fit(name: &str) -> bool {
    let seen = plain(name) == name && !name.contains(char::is_whitespace);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && seen
}

/// True if that can be a server's name: one component of a tool id.
pub(crate) fn is_server(name: &str) -> bool {
    let kept = [NOWHERE, OWN].contains(&name) || Prefix::CLIENTS.contains(&name);
    let fit = name.len() <= SERVER_BYTES_MAX && !name.contains('.') && !kept;
    fit && ToolId::new(name).is_some()
}

/// A server's name from its command: the package or program, without what all are called.
pub(crate) fn server_of(command: &[String]) -> String {
    let runner = |word: &str| {
        let base = word.rsplit('/').next().unwrap_or(word);
        ["npx", "uvx", "node", "python", "python3", "uv", "run", "env", "pipx"].contains(&base)
    };
    let mut words = command.iter().filter(|word| !word.starts_with('-') && !word.contains('='));
    let word = words.find(|word| !runner(word)).or(command.first());
    // A file that is named like any other says nothing; the folder above it may.
    let says = |part: &&str| {
        let stem = part.split('.').next().unwrap_or(part);
        !["index", "main", "server", "cli", "dist", "build", "src", "bin", ""].contains(&stem)
    };
    let base = word.and_then(|word| word.rsplit('/').find(says)).unwrap_or_default();
    let stem = base.split(['@', '.']).next().unwrap_or(base);
    let folded = fold(stem);
    let bare = ["mcp_server_", "server_", "mcp_"]
        .iter()
        .find_map(|prefix| folded.strip_prefix(prefix))
        .unwrap_or(&folded);
    let bare = ["_mcp_server", "_server", "_mcp"]
        .iter()
        .find_map(|suffix| bare.strip_suffix(suffix))
        .unwrap_or(bare);
    let short: String = fold(bare).chars().take(SERVER_BYTES_MAX).collect();
    let says = stem.contains(|c: char| c.is_ascii_alphanumeric());
    if says && is_server(&short) { short } else { String::from("server") }
}

/// The ids of a server's tools, by their upstream names. Names that are not fit have none, nor
/// have those that collide even so.
pub(crate) fn ids<'n>(
    server: &str,
    names: impl IntoIterator<Item = &'n str>,
) -> BTreeMap<&'n str, ToolId> {
    let names: BTreeSet<&str> = names.into_iter().filter(|name| is_fit(name)).collect();
    let mut folded: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for name in &names {
        folded.entry(fold(name)).or_default().push(name);
    }
    let mut found: BTreeMap<ToolId, Vec<&str>> = BTreeMap::new();
    for (fold, group) in folded {
        for name in &group {
            let marked = group.len() > 1 && *name != fold;
            if let Some(id) = id(server, &fold, name, marked) {
                found.entry(id).or_default().push(name);
            }
        }
    }
    let alone = found.into_iter().filter_map(|(id, names)| match names.as_slice() {
        [name] => Some((*name, id)),
        _ => None,
    });
    alone.collect()
}

/// The id of what a server has one of.
pub(crate) fn single(server: &str, method: Method) -> Option<ToolId> {
    ToolId::new(&format!("{server}.{}", method.id()))
}

/// The id by which a tool is refused that there is not: of a server that there is not.
pub(crate) fn nowhere(name: &str) -> String {
    let name: String = name.chars().take(NAME_BYTES_MAX).collect();
    id(NOWHERE, &fold(&name), &name, false).map_or(String::from(NOWHERE), |id| id.to_string())
}

/// The names that clients see, for tools in the order of their right to the name they prefer:
/// each with that name, and with what its hash is made of where the name is not free. A tool that
/// has a name keeps it, and no other gets that name.
pub(crate) fn visible(
    wanted: Vec<(ToolId, String, String)>,
    had: &BTreeMap<String, ToolId>,
) -> BTreeMap<String, ToolId> {
    let kept: BTreeMap<&ToolId, &String> = had.iter().map(|(name, id)| (id, name)).collect();
    let mut given: BTreeMap<String, ToolId> = BTreeMap::new();
    for (id, preferred, whole) in wanted {
        if let Some(name) = kept.get(&id) {
            given.insert((*name).clone(), id);
            continue;
        }
        let marked = format!("{preferred}_{}", mark(&whole));
        let free = |name: &String| !given.contains_key(name) && !had.contains_key(name);
        if let Some(name) = [preferred, marked].into_iter().find(free) {
            given.insert(name, id);
        }
    }
    given
}

/// `[a-z][a-z0-9_]*`, like the name.
fn fold(name: &str) -> String {
    let mut folded = String::with_capacity(name.len());
    let mut before = '_';
    for c in name.chars() {
        match c {
            'A'..='Z' => {
                if before.is_ascii_lowercase() || before.is_ascii_digit() {
                    folded.push('_');
                }
                folded.push(c.to_ascii_lowercase());
            }
            'a'..='z' | '0'..='9' | '_' => folded.push(c),
            _ => folded.push('_'),
        }
        before = c;
    }
    if folded.starts_with(|c: char| c.is_ascii_lowercase()) {
        folded
    } else {
        format!("t{}{folded}", if folded.starts_with('_') { "" } else { "_" })
    }
}

fn id(server: &str, fold: &str, name: &str, marked: bool) -> Option<ToolId> {
    let whole = format!("{server}.{fold}");
    if whole.len() <= ToolId::BYTES_MAX && !marked {
        return ToolId::new(&whole);
    }
    let room = ToolId::BYTES_MAX.saturating_sub(MARK_DIGITS).saturating_sub(1);
    let cut: String = whole.chars().take(room).collect();
    ToolId::new(&format!("{cut}_{}", mark(name)))
}

/// A part of the text's hash.
fn mark(text: &str) -> String {
    object_id(text.as_bytes()).to_string().chars().take(MARK_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_of(names: &[&str], name: &str) -> Option<String> {
        ids("srv", names.iter().copied()).get(name).map(ToString::to_string)
    }

    #[test]
    fn plain_names_stay() {
        assert_eq!(id_of(&["read_file"], "read_file").as_deref(), Some("srv.read_file"));
        assert_eq!(id_of(&["readFile"], "readFile").as_deref(), Some("srv.read_file"));
        assert_eq!(id_of(&["get-sum.v2"], "get-sum.v2").as_deref(), Some("srv.get_sum_v2"));
        assert_eq!(id_of(&["2d"], "2d").as_deref(), Some("srv.t_2d"));
        assert_eq!(id_of(&["_x"], "_x").as_deref(), Some("srv.t_x"));
    }

    /// In whatever order the server lists them, each name has one id and each id one name.
    #[test]
    fn collisions_are_marked_whatever_the_order() {
        let names = ["read_file", "readFile", "read-file", "Read.File"];
        let given = ids("srv", names);
        let mut turned = names;
        turned.reverse();
        assert_eq!(given, ids("srv", turned));
        let distinct: BTreeSet<&ToolId> = given.values().collect();
        assert_eq!(distinct.len(), names.len());
        assert_eq!(given["read_file"].as_str(), "srv.read_file");
        assert!(given["readFile"].as_str().starts_with("srv.read_file_"));
    }

    #[test]
    fn a_name_made_to_collide_gets_neither() {
        let marked = ids("srv", ["readFile", "read-file"])["readFile"].to_string();
        let bait = marked.strip_prefix("srv.").unwrap();
        let given = ids("srv", ["readFile", "read-file", bait]);
        assert!(!given.contains_key("readFile") && !given.contains_key(bait));
        assert!(given.contains_key("read-file"));
    }

    #[test]
    fn long_and_unfit_names() {
        let long = "x".repeat(NAME_BYTES_MAX);
        let other = format!("{}y", "x".repeat(NAME_BYTES_MAX - 1));
        let given = ids("srv", [long.as_str(), other.as_str()]);
        assert_eq!(given.len(), 2);
        assert_ne!(given[long.as_str()], given[other.as_str()]);
        let longer = "x".repeat(NAME_BYTES_MAX + 1);
        assert!(
            ids("srv", [longer.as_str(), "", "a b", "a\n", "\u{1b}[2J", "a\u{202e}b", "a\u{200b}"])
                .is_empty()
        );
        assert_eq!(ids("srv", ["\u{e9}t\u{e9}"]).len(), 1);
    }

    #[test]
    fn visible_names_are_one_to_one() {
        let id = |text: &str| ToolId::new(text).unwrap();
        let wanted = |tool: &str, name: &str| (id(tool), name.to_owned(), format!("{tool} {name}"));
        let all =
            vec![wanted("a.b_c", "a_b_c"), wanted("a_b.c", "a_b_c"), wanted("fs.read", "fs_read")];
        let given = visible(all.clone(), &BTreeMap::new());
        assert_eq!(given.len(), 3);
        assert_eq!(given["a_b_c"], id("a.b_c"));
        assert_eq!(given["fs_read"], id("fs.read"));
        let other = given.iter().find(|(_, tool)| **tool == id("a_b.c")).unwrap().0;
        assert!(other.starts_with("a_b_c_"));
        // Whoever is there next: names stay with their tools, also of those that are gone.
        let next = visible(all[1..].to_vec(), &given);
        assert_eq!(next[other], id("a_b.c"));
        assert!(!next.contains_key("a_b_c"));
        let newcomer = visible(vec![wanted("x.y", "a_b_c")], &given);
        assert!(!newcomer.contains_key("a_b_c") && newcomer.len() == 1);
    }

    #[test]
    fn servers_are_named_by_their_package() {
        let of = |line: &str| server_of(&line.split(' ').map(String::from).collect::<Vec<_>>());
        let filesystem = "npx -y @modelcontextprotocol/server-filesystem ./docs";
        assert_eq!(of(filesystem), "filesystem");
        assert_eq!(of("uvx mcp-server-git"), "git");
        assert_eq!(of("python3 /opt/x/weather.py --port 1"), "weather");
        assert_eq!(of("/usr/bin/Notes-Server@1.2"), "notes");
        assert_eq!(of("npx -y @scope/x@latest"), "x");
        assert_eq!(of("node /opt/server-filesystem/dist/index.js /tmp"), "filesystem");
        assert_eq!(of("python3 ./src/server.py"), "server");
        assert_eq!(of("\u{e9}"), "server");
        // A client's own prefix is no server's.
        assert_eq!(of("python3 claude_code.py"), "server");
        assert!(Prefix::CLIENTS.iter().all(|client| !is_server(client)));
        assert!(is_server(&of("npx -y a-very-long-package-name-that-goes-on-and-on")));
    }
}
