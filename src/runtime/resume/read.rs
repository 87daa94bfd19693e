//! The parsed form of a resume.

use syscap_format::{AgentId, Rights};

use crate::runtime::resume::error::ResumeError;
use crate::runtime::resume::text::{self, Kind, Value};

/// The key `permissions`, and the keys that are read below it.
pub(crate) const PERMISSIONS: &str = "permissions";
pub(crate) const TOOLS: &str = "permissions.tools";
pub(crate) const FILES: &str = "permissions.file_access";
pub(crate) const OUTBOXES: &str = "permissions.send_outboxes";
/// The lists of `file_access`, and the right that each gives.
pub(crate) const LISTS: [(&str, &str, Rights); 2] = [
    ("allow_read", "permissions.file_access.allow_read", Rights::READ),
    ("allow_write", "permissions.file_access.allow_write", Rights::WRITE),
];

/// A resume as it stands in its file.
#[derive(Clone, Debug)]
pub struct Resume {
    pub(crate) text: String,
    pub(crate) whole: Value,
    name: Option<AgentId>,
    pub(crate) tools: Option<Vec<String>>,
    /// The lists of [`LISTS`].
    pub(crate) files: Option<[Vec<String>; 2]>,
    pub(crate) outboxes: Option<Vec<AgentId>>,
}

impl Resume {
    /// Longest text, in bytes: a resume is written by people.
    pub const BYTES_MAX: usize = 1 << 20;

    /// Reads a file's content. A missing section is an error only when it is needed: a resume
    /// without it can still be written to.
    ///
    /// # Errors
    /// Where it is no JSON with one meaning, has more than [`Resume::BYTES_MAX`], or a section that
    /// is read is of another type; `null` is no list and no map.
    pub fn read(text: &[u8]) -> Result<Self, ResumeError> {
        if text.len() > Self::BYTES_MAX {
            return Err(ResumeError::TooLong { most: Self::BYTES_MAX });
        }
        let whole = text::read(text)?;
        expect_map(&whole, "the resume")?;
        let name = whole.get("name").map(|name| match &name.kind {
            Kind::Text(name) => agent("name", name),
            _ => Err(wrong("name", "a text")),
        });
        let (name, permissions) = (name.transpose()?, whole.get(PERMISSIONS));
        permissions.map_or(Ok(()), |it| expect_map(it, PERMISSIONS))?;
        let section = |key| permissions.and_then(|it| it.get(key));
        let tools = section("tools").map(|list| texts(list, TOOLS)).transpose()?;
        let files = section("file_access").map(|files| {
            expect_map(files, FILES)?;
            let [read, write] = LISTS.map(|(key, place, _)| {
                // Nothing is granted that is not listed.
                files.get(key).map_or(Ok(Vec::new()), |list| texts(list, place))
            });
            Ok::<_, ResumeError>([read?, write?])
        });
        let outboxes = section("send_outboxes")
            .map(|list| texts(list, OUTBOXES)?.iter().map(|name| agent(OUTBOXES, name)).collect());
        let (files, outboxes) = (files.transpose()?, outboxes.transpose()?);
        // It was read as UTF-8.
        let text = String::from_utf8_lossy(text).into_owned();
        Ok(Self { text, whole, name, tools, files, outboxes })
    }

    /// A resume of that agent that grants nothing.
    ///
    /// # Errors
    /// As [`Resume::read`], which takes what is written here.
    pub fn new(agent: &AgentId) -> Result<Self, ResumeError> {
        let text = format!(
            "{{\n  \"name\": \"{agent}\",\n  \"permissions\": {{\n    \"tools\": [],\n    \
             \"file_access\": {{\n      \"allow_read\": [],\n      \"allow_write\": []\n    }}\n  \
             }}\n}}\n"
        );
        Self::read(text.as_bytes())
    }

    /// The agent that the resume names.
    ///
    /// # Errors
    /// [`ResumeError::Missing`]: then who reads it has to know.
    pub fn agent(&self) -> Result<&AgentId, ResumeError> {
        self.name.as_ref().ok_or(ResumeError::Missing { section: "name" })
    }

    /// Checks that it may be that agent's: it names the agent, or no agent.
    ///
    /// # Errors
    /// [`ResumeError::Name`].
    pub fn expect(&self, agent: &AgentId) -> Result<(), ResumeError> {
        match &self.name {
            Some(name) if name != agent => {
                Err(ResumeError::Name { got: name.to_string(), wanted: agent.to_string() })
            }
            _ => Ok(()),
        }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The fields that nothing here reads, by their places: `title`, `permissions.network`.
    pub fn unread(&self) -> Vec<String> {
        let permissions = self.whole.get(PERMISSIONS);
        let files = permissions.and_then(|it| it.get("file_access"));
        let others = |of: Option<&Value>, before: &str, known: &[&str]| -> Vec<String> {
            let entries = of.map(Value::entries).unwrap_or_default();
            let others = entries.iter().filter(|entry| !known.contains(&&*entry.key));
            others.map(|entry| format!("{before}{}", entry.key)).collect()
        };
        let mut unread = others(Some(&self.whole), "", &["name", PERMISSIONS]);
        let known = ["tools", "file_access", "send_outboxes"];
        unread.extend(others(permissions, "permissions.", &known));
        unread.extend(others(files, "permissions.file_access.", &["allow_read", "allow_write"]));
        unread
    }
}

fn expect_map(value: &Value, section: &str) -> Result<(), ResumeError> {
    match value.kind {
        Kind::Map(_) => Ok(()),
        _ => Err(wrong(section, "a map")),
    }
}

fn wrong(section: &str, wanted: &'static str) -> ResumeError {
    ResumeError::Type { section: section.to_owned(), wanted }
}

/// A list of texts: never a text alone, which somebody may have meant as a list of one.
fn texts(value: &Value, section: &str) -> Result<Vec<String>, ResumeError> {
    let Kind::List(items) = &value.kind else { return Err(wrong(section, "a list of texts")) };
    let text = |item: &Value| match &item.kind {
        Kind::Text(text) => Ok(text.clone()),
        _ => Err(wrong(section, "a list of texts")),
    };
    items.iter().map(text).collect()
}

fn agent(section: &'static str, name: &str) -> Result<AgentId, ResumeError> {
    let got = || ResumeError::Agent { section, got: name.to_owned() };
    AgentId::new(name).ok_or_else(got)
}
