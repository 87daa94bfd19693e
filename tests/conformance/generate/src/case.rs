//! A vector: its requirement, what any implementation must answer, and what is given to it.

use serde_json::{Map, Value, json};

/// One vector.
pub(crate) struct Case {
    /// The requirement that it tests.
    pub(crate) requirement: &'static str,
    /// True if an implementation accepts it.
    pub(crate) valid: bool,
    /// The input, by the file's own keys.
    given: Map<String, Value>,
    comment: String,
    /// The bug that it catches.
    catches: &'static str,
}

/// The vectors of one file.
#[derive(Default)]
pub(crate) struct Cases(pub(crate) Vec<Case>);

/// A requirement and the bug that its vectors catch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Of(pub(crate) &'static str, pub(crate) &'static str);

impl Cases {
    /// Adds one that an implementation takes.
    pub(crate) fn valid(&mut self, of: Of, comment: impl Into<String>, given: Value) {
        self.add(of, true, comment, given);
    }

    /// Adds one, with whether an implementation takes it.
    pub(crate) fn add(&mut self, of: Of, valid: bool, comment: impl Into<String>, given: Value) {
        let comment = comment.into();
        let Value::Object(given) = given else { panic!("{comment}: a vector is an object") };
        let Of(requirement, catches) = of;
        self.0.push(Case { requirement, valid, given, comment, catches });
    }

    /// The file: one vector a line, so that a difference can be read.
    pub(crate) fn text(&self, name: &str) -> String {
        let lines = self.0.iter().enumerate().map(|(n, case)| {
            let mut line = json!({
                "id": format!("{name}-{:04}", n + 1),
                "requirement": case.requirement,
                "result": if case.valid { "valid" } else { "invalid" },
                "comment": case.comment,
                "catches": case.catches,
            });
            line.as_object_mut().expect("an object").extend(case.given.clone());
            line.to_string()
        });
        let lines = lines.collect::<Vec<_>>().join(",\n");
        format!(
            "{{\"schema\": 1, \"license\": \"CC0-1.0\", \"file\": \"{name}\", \"cases\": [\n{lines}\n]}}\n"
        )
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn unhex(digits: &str) -> Vec<u8> {
    let byte = |at: usize| u8::from_str_radix(&digits[at..at + 2], 16).expect(digits);
    (0..digits.len()).step_by(2).map(byte).collect()
}
