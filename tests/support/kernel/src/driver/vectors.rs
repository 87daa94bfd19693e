//! The logs that tests forge are conformance vectors: `tests/conformance/vectors/logs` has them, a
//! file for each test, and here each is held against it. With `SYSCAP_VECTORS=write` the files are
//! written.
//!
//! A vector is a base and a patch. Its records are ranges of the base's, whose position and link are
//! made anew, and records of its own.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::{env, fs, thread};

use serde_json::{Map, Value, json};
use syscap_format::{Leaf, Record, Seq, Trust, leaf};
use syscap_verify::{Extent, Fault, Options, Report, TrustSource};

use super::log::Log;

/// Most records of a log that is a vector: what it is about is seen in short ones.
const RECORDS_MAX: usize = 100;
/// Most vectors of a test.
const CASES_MAX: usize = 40;
/// Faults that only the test which changes every field of a long log makes: one of each.
const OF_FIELDS: [Fault; 9] = [
    Fault::BootNumber,
    Fault::BootForm,
    Fault::ChargeForm,
    Fault::IntentForm,
    Fault::Head,
    Fault::Shadow,
    Fault::OutcomeCall,
    Fault::LateForm,
    Fault::AskForm,
];

thread_local! {
    static TEST: RefCell<Option<Test>> = const { RefCell::new(None) };
}

/// The text of a file of vectors: logs that differ a little from a base, each with the requirement
/// that it tests (else that of its first fault) and what it is about. They are verified with the
/// base's trust file.
#[must_use]
pub fn file_of(name: &str, base: &Log, logs: &[(Option<&str>, &str, Log)]) -> String {
    let mut test = Test::new(name.to_owned(), base);
    for (requirement, comment, log) in logs {
        let given = TrustSource::Given(Box::new(base.trust()));
        let options = Options { trust: given, ..Options::default() };
        let report = log.verify_with(Extent::AtRest, &options);
        let mut line = test.line(log, &base.trust(), &report, comment);
        if let Some(requirement) = requirement {
            line["requirement"] = json!(requirement);
        }
        test.lines.push(line.to_string());
    }
    test.text()
}

/// The vectors of the test that this thread runs.
struct Test {
    name: String,
    base: Log,
    lines: Vec<String>,
    /// The first faults that it has seen.
    faults: BTreeSet<Option<Fault>>,
    /// The lines of its file, to be held against.
    written: Option<Vec<String>>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn file(name: &str) -> PathBuf {
    root().join("tests/conformance/vectors/logs").join(format!("{name}.json"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The requirement of each fault, and what it is about, as `verification.md` has them.
fn requirements() -> BTreeMap<String, (String, String)> {
    let document =
        fs::read_to_string(root().join("docs/spec/verification.md")).expect("a document");
    let rows = document.lines().filter(|line| line.starts_with("| SYSCAP-VER-"));
    rows.filter_map(|row| {
        let cells: Vec<&str> = row.trim_matches('|').split('|').map(str::trim).collect();
        let [id, fault, about] = cells[..] else { return None };
        Some((fault.trim_matches('`').to_owned(), (id.to_owned(), about.to_owned())))
    })
    .collect()
}

/// Takes a log that a test of forged logs verifies.
pub(super) fn verified(log: &Log, trust: &Trust, report: &Report) {
    let name = thread::current().name().unwrap_or_default().to_owned();
    let Some(name) = name.strip_prefix("forge::") else { return };
    let every_field = name.starts_with("fields::");
    if !every_field && log.records.len() > RECORDS_MAX {
        return;
    }
    let name = name.replace("::", ".");
    TEST.with_borrow_mut(|test| {
        if test.as_ref().is_none_or(|test| test.name != name) {
            let written = fs::read_to_string(file(&name)).ok();
            let written = written.map(|text| text.lines().map(str::to_owned).collect());
            *test = Some(Test { written, ..Test::new(name, log) });
        }
        let test = test.as_mut().expect("a test");
        let fault = report.findings.first().map(|finding| finding.fault);
        let is_new = test.faults.insert(fault);
        let has_room = if every_field {
            is_new && fault.is_none_or(|fault| OF_FIELDS.contains(&fault))
        } else {
            test.lines.len() < CASES_MAX
        };
        if has_room {
            test.add(log, trust, report);
        }
    });
}

impl Test {
    fn new(name: String, base: &Log) -> Self {
        let (lines, faults) = (Vec::new(), BTreeSet::new());
        Self { name, base: base.clone(), lines, faults, written: None }
    }

    fn line(&self, log: &Log, trust: &Trust, report: &Report, comment: &str) -> Value {
        let first = report.findings.first();
        let verdict = format!("{:?}", report.verdict()).to_lowercase();
        let fault = first.map(|first| format!("{:?}", first.fault));
        let requirements = requirements();
        let sound = |requirement: &str| (requirement.to_owned(), "the log is sound".to_owned());
        let (requirement, about) = match (&fault, &*verdict) {
            (Some(fault), _) => {
                requirements.get(fault).unwrap_or_else(|| panic!("{fault}")).clone()
            }
            (None, "sound") => sound("SYSCAP-VER-001"),
            (None, "newer") => sound("SYSCAP-VER-004"),
            (None, _) => sound("SYSCAP-VER-003"),
        };
        let mut line = json!({
            "id": format!("{}-{:04}", self.name.replace(['.', '_'], "-"), self.lines.len() + 1),
            "requirement": requirement,
            "result": if verdict == "sound" { "valid" } else { "invalid" },
            "comment": comment,
            "catches": format!("it is not seen: {about}"),
            "kind": "log",
            "trust": hex(&trust.to_bytes()),
            "verdict": verdict,
            "records": self.patch(log),
            "objects": self.objects(log),
        });
        if let (Some(first), Some(fault)) = (first, fault) {
            line["seq"] = json!(first.seq.get());
            line["fault"] = json!(fault);
        }
        line
    }

    fn add(&mut self, log: &Log, trust: &Trust, report: &Report) {
        let line = self.line(log, trust, report, &self.name).to_string();
        self.lines.push(line);
        let place = self.lines.len() - 1;
        if env::var_os("SYSCAP_VECTORS").is_some_and(|what| what == "write") {
            fs::write(file(&self.name), self.text()).expect("writes");
        } else {
            // Two lines stand before the vectors.
            let written = self.written.as_ref().and_then(|lines| lines.get(place + 2));
            let written = written.map(|line| line.trim_end_matches(','));
            assert_eq!(
                written,
                Some(&*self.lines[place]),
                "SYSCAP_VECTORS=write writes {}",
                self.name
            );
        }
    }

    fn text(&self) -> String {
        let base: Vec<String> = self.base.records.iter().map(|bytes| hex(bytes)).collect();
        let objects: Map<String, Value> = self
            .base
            .objects
            .iter()
            .map(|object| (object.id.to_string(), json!(hex(&object.bytes))))
            .collect();
        let base = json!({"records": base, "objects": objects});
        let name = format!("logs/{}", self.name);
        format!(
            "{{\"schema\": 1, \"license\": \"CC0-1.0\", \"file\": \"{name}\",\n\"base\": {base}, \"cases\": [\n{}\n]}}\n",
            self.lines.join(",\n")
        )
    }

    /// The records of a log: `[from, to]` of the base, or a record of its own.
    fn patch(&self, log: &Log) -> Value {
        let mut parts: Vec<Value> = Vec::new();
        let (mut prev, mut range) = (Leaf::from_bytes([0; 32]), None::<(usize, usize)>);
        for (seq, bytes) in (0..).zip(&log.records) {
            // The next of the range first, then any.
            let next = range.map_or(0, |(_, end)| end);
            let all = (next..self.base.records.len()).chain(0..next);
            let same =
                all.into_iter().find(|place| self.again(*place, seq, prev).as_ref() == Some(bytes));
            match (same, &mut range) {
                (Some(place), Some((_, end))) if *end == place => *end += 1,
                (Some(place), _) => {
                    parts.extend(range.take().map(|(from, to)| json!([from, to])));
                    range = Some((place, place + 1));
                }
                (None, _) => {
                    parts.extend(range.take().map(|(from, to)| json!([from, to])));
                    parts.push(json!(hex(bytes)));
                }
            }
            prev = leaf(bytes);
        }
        parts.extend(range.map(|(from, to)| json!([from, to])));
        Value::Array(parts)
    }

    /// A record of the base at another position.
    fn again(&self, place: usize, seq: u64, prev: Leaf) -> Option<Vec<u8>> {
        let mut record = Record::decode(self.base.records.get(place)?).ok()?;
        (record.seq, record.prev) = (Seq::new(seq), prev);
        Some(record.encode())
    }

    /// Objects that the log has beside the base's, and those that it lacks.
    fn objects(&self, log: &Log) -> Value {
        let all = |log: &Log| -> BTreeMap<String, String> {
            let entry =
                |object: &syscap_format::Object| (object.id.to_string(), hex(&object.bytes));
            log.objects.iter().map(entry).collect()
        };
        let (base, mine) = (all(&self.base), all(log));
        let add: Map<String, Value> = mine
            .iter()
            .filter(|(id, bytes)| base.get(*id) != Some(bytes))
            .map(|(id, bytes)| (id.clone(), json!(bytes)))
            .collect();
        let remove: Vec<&String> = base.keys().filter(|id| !mine.contains_key(*id)).collect();
        json!({"add": add, "remove": remove})
    }
}
