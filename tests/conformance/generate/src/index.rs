//! The requirements that the documents state, and which of them have no vector.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::json;
use syscap_format::Reason;

use crate::case::Cases;
use crate::errors::requirement;
use crate::tables::{REASONS, tables};

/// Requirements by id, of each document by name.
pub(crate) type Documents = BTreeMap<String, BTreeMap<String, String>>;

/// Rows of the table of admission: a call without any fault is admitted, and tests none of them.
/// Rows about arguments have valid vectors of their own.
const ADMISSION: [std::ops::RangeInclusive<u16>; 6] =
    [21..=38, 40..=44, 57..=66, 68..=69, 72..=80, 89..=89];

/// Requirements that no input can break, or none can keep, with why.
const ONE_SIDED: &[(&str, &str)] = &[
    ("SYSCAP-CALL-015", "what is taken can't be broken"),
    ("SYSCAP-CALL-019", "every envelope that is taken is without a fault"),
    ("SYSCAP-CALL-045", "a call with a fault is refused"),
    ("SYSCAP-CALL-020", "what is absent is filled in"),
    ("SYSCAP-CALL-081", "a step that leads nowhere is CALL-084's"),
    ("SYSCAP-CALL-082", "what is quoted can't be broken"),
    ("SYSCAP-CALL-083", "what is put in can't be broken"),
    ("SYSCAP-CALL-084", "a step that leads somewhere gives a part"),
    ("SYSCAP-CALL-086", "a default is added"),
    ("SYSCAP-CALL-087", "a null is dropped"),
    ("SYSCAP-CALL-088", "a null is kept"),
    ("SYSCAP-CALL-055", "it has an answer: nothing ends"),
    ("SYSCAP-CHAN-003", "it has an answer: nothing ends"),
    ("SYSCAP-CHAN-006", "it has an answer: nothing ends"),
    ("SYSCAP-CBOR-013", "text that is normalised is other text: nothing is refused"),
    ("SYSCAP-CBOR-018", "the bytes are given: what is hashed tells"),
    ("SYSCAP-DER-015", "what is free can't be broken"),
    ("SYSCAP-HASH-00*", "a hash is another"),
    ("SYSCAP-STATE-001", "a hash is another"),
    ("SYSCAP-REC-114", "reserved"),
    ("SYSCAP-REC-127", "reserved"),
    ("SYSCAP-REC-128", "reserved"),
    ("SYSCAP-VER-00*", "a verdict is another"),
    ("SYSCAP-VER-1*", "every sound log is without the fault"),
    ("SYSCAP-POL-03*", "a policy has other bytes"),
    ("SYSCAP-POL-04*", "a decision is another"),
    ("SYSCAP-POL-05*", "a decision is another"),
    ("SYSCAP-POL-06*", "a decision is another"),
    ("SYSCAP-POL-07*", "a decision is another"),
    ("SYSCAP-TOK-003", "the bytes are given: another id tells"),
    ("SYSCAP-JSON-010", "a number that is read otherwise has other bytes"),
    ("SYSCAP-JSON-011", "a number that is read otherwise has other bytes"),
    ("SYSCAP-JSON-012", "a map in another order has other bytes"),
    ("SYSCAP-JSON-015", "an escape that is read has other bytes"),
    ("SYSCAP-JSON-016", "a map that is read as an escape has other bytes"),
    ("SYSCAP-JSON-018", "a map that is read as an escape has other bytes"),
    ("SYSCAP-JSON-019", "prints"),
    ("SYSCAP-JSON-020", "prints"),
    ("SYSCAP-JSON-021", "prints"),
];

/// Reads the documents of a folder.
pub(crate) fn documents(folder: &Path) -> Documents {
    let mut documents = Documents::new();
    for entry in fs::read_dir(folder).expect("the documents") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let stated = stated(&fs::read_to_string(&path).expect("a document"));
        if !stated.is_empty() {
            let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
            documents.insert(name, stated);
        }
    }
    documents
}

/// The requirements of a document: list items that begin with `**SYSCAP-..**`, rows of tables that
/// begin with an id, and the rows of the table of reasons.
fn stated(document: &str) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let mut open: Option<String> = None;
    for line in document.lines() {
        if let Some((id, text)) = line.strip_prefix("- **").and_then(|line| line.split_once("** "))
        {
            let twice = found.insert(id.to_owned(), text.trim().to_owned());
            assert!(twice.is_none(), "{id} is stated twice");
            open = Some(id.to_owned());
        } else if let Some(row) = line.strip_prefix("| SYSCAP-") {
            let (id, text) = row.split_once(" |").expect("a row");
            let text = text.trim().trim_end_matches('|').trim();
            let twice = found.insert(format!("SYSCAP-{id}"), text.to_owned());
            assert!(twice.is_none(), "SYSCAP-{id} is stated twice");
        } else if let (Some(id), true) = (&open, line.starts_with("  ")) {
            let text = found.get_mut(id).expect("open");
            *text = format!("{text} {}", line.trim());
        } else {
            open = None;
        }
    }
    let reasons = tables(document).into_iter().filter(|table| table.head == REASONS);
    for row in reasons.flat_map(|table| table.rows) {
        let (code, reason, retry) = (&row[0], &row[1], &row[2]);
        let text = format!(
            "An error object of the reason {reason} MUST have the code {code} and retry {retry}."
        );
        found.insert(format!("SYSCAP-ERR-{code}"), text);
    }
    found
}

/// The requirements without a vector, and the vectors without a requirement.
pub(crate) fn faults(
    documents: &Documents,
    files: &[(&'static str, Cases)],
    logs: &[(String, bool)],
) -> Vec<String> {
    let mut faults = Vec::new();
    let stated: BTreeSet<&str> =
        documents.values().flat_map(|of| of.keys()).map(String::as_str).collect();
    let mut tested: BTreeSet<(&str, bool)> = BTreeSet::new();
    let made = files.iter().flat_map(|(_, cases)| &cases.0);
    let made = made.map(|case| (case.requirement, case.valid));
    for (requirement, valid) in made.chain(logs.iter().map(|(id, valid)| (&**id, *valid))) {
        if !stated.contains(requirement) {
            faults.push(format!("{requirement}: a vector of no requirement"));
        }
        tested.insert((requirement, valid));
    }
    for id in stated {
        let sides = [true, false].map(|valid| tested.contains(&(id, valid)));
        let row = id.strip_prefix("SYSCAP-CALL-").and_then(|number| number.parse().ok());
        let one_sided = row.is_some_and(|row| ADMISSION.iter().any(|rows| rows.contains(&row)));
        let one_sided = one_sided
            || ONE_SIDED.iter().any(|(one, _)| match one.strip_suffix('*') {
                Some(several) => id.starts_with(several),
                None => *one == id,
            });
        match (sides, one_sided) {
            ([false, false], _) => faults.push(format!("{id}: no vector")),
            ([true, true], true) => {
                faults.push(format!("{id}: both sides, and listed as one-sided"))
            }
            ([true, false], false) => faults.push(format!("{id}: no invalid vector")),
            ([false, true], false) => faults.push(format!("{id}: no valid vector")),
            _ => {}
        }
    }
    faults
}

/// Reasons that no document states.
pub(crate) fn missing_reasons(documents: &Documents) -> Vec<String> {
    let is_stated = |id: &String| documents.values().any(|of| of.contains_key(id));
    let all = Reason::ALL.iter().map(|reason| requirement(*reason));
    all.filter(|id| !is_stated(id)).map(|id| format!("{id}: not in a document")).collect()
}

/// The requirements of vectors that lie in a folder, and whether each is valid.
pub(crate) fn in_folder(folder: &Path) -> Vec<(String, bool)> {
    let files =
        fs::read_dir(folder).expect("the logs").map(|entry| entry.expect("an entry").path());
    let cases = files.flat_map(|path| {
        let text = fs::read_to_string(path).expect("a file");
        let file: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        file["cases"].as_array().expect("cases").clone()
    });
    cases
        .map(|case| {
            (case["requirement"].as_str().expect("an id").to_owned(), case["result"] == "valid")
        })
        .collect()
}

/// `requirements.json`.
pub(crate) fn text(documents: &Documents) -> String {
    let lines: Vec<String> = documents
        .iter()
        .flat_map(|(document, of)| {
            of.iter().map(move |(id, text)| {
                json!({"id": id, "document": document, "text": text}).to_string()
            })
        })
        .collect();
    format!("{{\"version\": \"2026-12\", \"requirements\": [\n{}\n]}}\n", lines.join(",\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::case::Of;

    fn documents() -> Documents {
        let text =
            "- **SYSCAP-X-001** A decoder MUST\n  refuse.\n\nText.\n| SYSCAP-X-002 | row |\n";
        let stated = stated(text);
        assert_eq!(stated["SYSCAP-X-001"], "A decoder MUST refuse.");
        Documents::from([("x".to_owned(), stated)])
    }

    #[test]
    fn requirement_without_vector_is_a_fault() {
        let mut cases = Cases::default();
        for id in ["SYSCAP-X-001", "SYSCAP-X-002"] {
            cases.valid(Of(id, ""), "", json!({}));
            cases.add(Of(id, ""), false, "", json!({}));
        }
        assert_eq!(faults(&documents(), &[("x", Cases::default())], &[]).len(), 2);
        let mut files = [("x", cases)];
        assert_eq!(faults(&documents(), &files, &[]), [""; 0]);
        files[0].1.0.pop();
        assert_eq!(faults(&documents(), &files, &[]), ["SYSCAP-X-002: no invalid vector"]);
    }

    #[test]
    fn reason_without_requirement_is_a_fault() {
        let stated =
            stated(&format!("| {REASONS} |\n|---|---|---|\n| 101 | `malformed` | fix |\n"));
        let documents = Documents::from([("x".to_owned(), stated)]);
        assert_eq!(missing_reasons(&documents).len(), Reason::ALL.len() - 1);
    }

    #[test]
    fn vector_without_requirement_is_a_fault() {
        let mut cases = Cases::default();
        cases.valid(Of("SYSCAP-X-003", ""), "", json!({}));
        let found = faults(&Documents::new(), &[("x", cases)], &[]);
        assert_eq!(found, ["SYSCAP-X-003: a vector of no requirement"]);
    }
}
