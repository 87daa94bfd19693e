//! The document's tables and dumps, and what the sources declare.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The documents, one after another.
pub(crate) fn spec() -> String {
    let read = |name: &str| {
        fs::read_to_string(root().join("docs/spec").join(format!("{name}.md"))).unwrap()
    };
    ["cbor", "tokens", "log", "verification", "calls", "policy"].map(read).concat()
}

/// A table and the heading that it stands under.
pub(crate) struct Table {
    pub(crate) heading: String,
    pub(crate) head: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

pub(crate) fn tables() -> Vec<Table> {
    tables_of(&spec())
}

pub(crate) fn tables_of(document: &str) -> Vec<Table> {
    let (mut tables, mut heading, mut fenced, mut open) =
        (Vec::<Table>::new(), String::new(), false, false);
    for line in document.lines() {
        fenced ^= line.starts_with("```");
        let is_row = !fenced && line.starts_with('|');
        if !fenced && line.starts_with('#') {
            heading = line.trim_start_matches('#').trim().to_owned();
        }
        if is_row {
            let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
            let cells = inner.expect(line).split('|').map(|cell| cell.trim().to_owned());
            let cells: Vec<String> = cells.collect();
            if !open {
                tables.push(Table { heading: heading.clone(), head: cells, rows: Vec::new() });
            } else if !cells.iter().all(|cell| cell == "---") {
                let table = tables.last_mut().unwrap();
                assert_eq!(cells.len(), table.head.len(), "{line}");
                table.rows.push(cells);
            }
        }
        open = is_row;
    }
    tables
}

/// The one table with this head.
pub(crate) fn table(head: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Table> =
        tables().into_iter().filter(|table| table.head.join(" | ") == head).collect();
    assert_eq!(found.len(), 1, "tables with the head {head}");
    found.remove(0).rows
}

/// What stands between backticks.
pub(crate) fn code(cell: &str) -> Vec<&str> {
    cell.split('`').skip(1).step_by(2).collect()
}

/// Joins all but the last column, which is prose that must be there.
pub(crate) fn facts(rows: &[Vec<String>]) -> Vec<String> {
    let fact = |row: &Vec<String>| {
        let (meaning, facts) = row.split_last().unwrap();
        assert!(!meaning.is_empty(), "{row:?}");
        facts.join(" | ")
    };
    rows.iter().map(fact).collect()
}

/// The bytes of a dump: what stands before semicolons in the block of that name.
pub(crate) fn dump(name: &str) -> Vec<u8> {
    let spec = spec();
    let block = spec.split(&format!("```hex {name}\n")).nth(1).expect(name);
    let block = block.split("```").next().unwrap();
    let digits: String = block.lines().map(|line| line.split(';').next().unwrap()).collect();
    let digits: Vec<char> = digits.chars().filter(|char| *char != ' ').collect();
    let byte = |pair: &[char]| u8::from_str_radix(&pair.iter().collect::<String>(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

// The sources, for what a `FieldSpec` does not say: null and lists; and for names of constants.

pub(crate) fn sources() -> Vec<String> {
    fn walk(folder: &Path, found: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, found);
            } else {
                found.push(fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join("kernel/format/src"), &mut found);
    found
}

/// Names declared by a macro, each with the lines of its body.
pub(crate) fn declared(start: &str, keyword: &str) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    for source in sources() {
        for part in source.split(&format!("\n{start} {{\n")).skip(1) {
            let mut lines = part.lines().skip_while(|line| !line.trim().starts_with(keyword));
            let Some(head) = lines.next() else { continue };
            let name = head.trim().trim_start_matches(keyword).trim().trim_end_matches(" {");
            let body = lines.take_while(|line| *line != "    }").map(str::to_owned);
            found.insert(name.to_owned(), body.collect());
        }
    }
    found
}

/// The types of a shape's own fields, by key.
pub(crate) fn types(lines: &[String]) -> BTreeMap<u64, String> {
    let field = |line: &String| {
        let (key, rest) = line.trim().split_once(" => pub ")?;
        let (_, of) = rest.trim_end_matches(',').split_once(": ")?;
        Some((key.parse().unwrap(), of.to_owned()))
    };
    lines.iter().filter_map(field).collect()
}

/// The names of a set of flags; or constants `pub const NAME: Self = Self(1);`, single bits only.
pub(crate) fn bits(set: &str) -> Vec<String> {
    let sources = sources();
    let after =
        |head: &str| sources.iter().find_map(|source| source.split(head).nth(1)).map(str::to_owned);
    if let Some(body) = after(&format!("struct {set} {{\n")) {
        let flag = |line: &str| {
            let (name, value) = line.trim().strip_suffix(',')?.split_once(" = ")?;
            Some(format!("`{set}` | {value} | `{name}`"))
        };
        return body.lines().take_while(|line| *line != "    }").filter_map(flag).collect();
    }
    let body = after(&format!("\nimpl {set} {{\n")).expect(set);
    let constant = |line: &str| {
        let (name, value) = line.trim().strip_prefix("pub const ")?.split_once(": Self = Self(")?;
        let value: u64 = value.trim_end_matches(");").parse().ok()?;
        value.is_power_of_two().then(|| format!("`{set}` | {value} | `{name}`"))
    };
    body.lines().take_while(|line| *line != "}").filter_map(constant).collect()
}
