//! Pages that name tests: rows of tables, and `file::name` between backticks within them.

use std::{fs, path::Path};

/// What stands between single backticks.
fn code(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The rows of a page's tables, in which each test that is named must be there; and how many are.
pub(crate) fn rows_and_tests(page: &str) -> (Vec<String>, usize) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join(page)).unwrap();
    let rows: Vec<String> =
        page.lines().filter(|line| line.starts_with("| ")).map(str::to_owned).collect();
    let mut tests = 0;
    for (file, name) in rows.iter().flat_map(|row| code(row)).filter_map(|word| {
        // A test in a module of a file that has others: its last name is looked for.
        let (file, name) = word.split_once(".rs::")?;
        Some((file, name.rsplit("::").next().unwrap_or(name)))
    }) {
        let text = fs::read_to_string(root.join(format!("{file}.rs"))).unwrap_or_default();
        assert!(has_test(&text, name), "there is no test {file}.rs::{name}");
        tests += 1;
    }
    (rows, tests)
}

fn has_test(text: &str, name: &str) -> bool {
    let is_test = |at: usize| {
        let before: Vec<&str> = text[..at].lines().rev().take(8).collect();
        before.iter().any(|line| line.trim() == "#[test]")
    };
    text.match_indices(&format!("fn {name}(")).any(|(at, _)| is_test(at))
}
