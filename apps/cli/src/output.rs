//! Standard output, for people or for machines.

use std::cell::RefCell;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::rc::Rc;

use syscap::format::{Amounts, Canonical, Item, ItemKind, json};

pub(crate) use syscap::plain::plain;

use crate::exit::{Ended, Exit, Failure};

/// Whom the output is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// People.
    Text,
    /// Machines.
    Json,
}

/// The state of the output's reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    There,
    Gone,
}

/// Standard output, as a rule. A reader that has gone is a [`Failure::Pipe`], once, and never a
/// panic.
pub(crate) struct Out {
    form: Form,
    reader: Reader,
    stdout: BufWriter<Box<dyn Write>>,
}

impl Out {
    pub(crate) fn new(form: Form) -> Self {
        Self::to(form, Box::new(io::stdout()))
    }

    /// The lines that are printed for people.
    pub(crate) fn lines(
        print: impl FnOnce(&mut Self) -> Result<(), Failure>,
    ) -> Result<Vec<String>, Failure> {
        let kept = Kept::default();
        let mut out = Self::to(Form::Text, Box::new(kept.clone()));
        print(&mut out)?;
        out.flush()?;
        let bytes = kept.0.take();
        Ok(String::from_utf8_lossy(&bytes).lines().map(str::to_owned).collect())
    }

    /// Standard error, for people: where standard output is a file's.
    pub(crate) fn aside() -> Self {
        Self::to(Form::Text, Box::new(io::stderr()))
    }

    fn to(form: Form, stream: Box<dyn Write>) -> Self {
        Self { form, reader: Reader::There, stdout: BufWriter::new(stream) }
    }

    pub(crate) const fn form(&self) -> Form {
        self.form
    }

    /// One line, made plain.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        let line = plain(line);
        self.write(|stdout| {
            stdout.write_all(line.as_bytes())?;
            stdout.write_all(b"\n")
        })
    }

    /// One line, made plain but for tabulators: of a text that has lines.
    pub(crate) fn tabbed(&mut self, line: &str) -> Result<(), Failure> {
        let pieces: Vec<_> = line.split('\t').map(plain).collect();
        let line = pieces.join("\t");
        self.write(|stdout| {
            stdout.write_all(line.as_bytes())?;
            stdout.write_all(b"\n")
        })
    }

    /// One line for people; machines don't get it.
    pub(crate) fn text(&mut self, line: &str) -> Result<(), Failure> {
        match self.form {
            Form::Text => self.line(line),
            Form::Json => Ok(()),
        }
    }

    /// The same in both forms.
    pub(crate) fn both(&mut self, text: &str, json: Object) -> Result<(), Failure> {
        match self.form {
            Form::Text => self.line(text),
            Form::Json => self.line(&json.finish()),
        }
    }

    /// Several lines for people, one object for machines.
    pub(crate) fn all(&mut self, lines: &[String], json: Object) -> Result<(), Failure> {
        match self.form {
            Form::Text => lines.iter().try_for_each(|line| self.line(line)),
            Form::Json => self.line(&json.finish()),
        }
    }

    /// Clears a terminal's screen.
    pub(crate) fn clear(&mut self) -> Result<(), Failure> {
        self.write(|stdout| stdout.write_all(b"\x1b[H\x1b[2J"))
    }

    /// Hands over what is buffered.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        self.write(|stdout| stdout.flush())
    }

    /// Ends a command whose exit code is a verdict: whoever asks wants it, also where nobody
    /// reads what is printed.
    pub(crate) fn conclude(&mut self, printed: Result<(), Failure>, verdict: Exit) -> Ended {
        match printed.and_then(|()| self.flush()) {
            Ok(()) | Err(Failure::Pipe) => Ok(verdict),
            Err(failure) => Err(failure),
        }
    }

    fn write(
        &mut self,
        write: impl FnOnce(&mut BufWriter<Box<dyn Write>>) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.reader == Reader::Gone {
            return Ok(());
        }
        let written = write(&mut self.stdout).map_err(Failure::from);
        if matches!(written, Err(Failure::Pipe)) {
            self.reader = Reader::Gone;
        }
        written
    }
}

/// The output is kept.
#[derive(Clone, Default)]
struct Kept(Rc<RefCell<Vec<u8>>>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A JSON object in the making; keys stand in the order in which they are set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Object {
    inside: String,
}

impl Object {
    pub(crate) const fn new() -> Self {
        Self { inside: String::new() }
    }

    /// Sets a key to JSON.
    pub(crate) fn json(mut self, key: &str, value: &str) -> Self {
        if !self.inside.is_empty() {
            self.inside.push(',');
        }
        self.inside.push_str(&quote(key));
        self.inside.push(':');
        self.inside.push_str(value);
        self
    }

    pub(crate) fn text(self, key: &str, value: &str) -> Self {
        self.json(key, &quote(value))
    }

    /// Anything that prints, as text: ids, paths, times.
    pub(crate) fn shown(self, key: &str, value: impl std::fmt::Display) -> Self {
        self.text(key, &value.to_string())
    }

    pub(crate) fn uint(self, key: &str, value: u64) -> Self {
        self.json(key, &value.to_string())
    }

    pub(crate) fn flag(self, key: &str, value: bool) -> Self {
        self.json(key, if value { "true" } else { "false" })
    }

    pub(crate) fn amounts(self, key: &str, amounts: &Amounts) -> Self {
        self.json(key, &self::amounts(amounts))
    }

    pub(crate) fn finish(self) -> String {
        format!("{{{}}}", self.inside)
    }
}

/// A path as one word of a command that is told.
pub(crate) fn word_of(path: &Path) -> String {
    syscap::plain::shell_word(&path.to_string_lossy()).into_owned()
}

/// The entries of a map for people: what is short before what has parts of its own, so that a
/// beginning tells one call from another.
pub(crate) fn plain_first(map: Item<'_>) -> Vec<(&str, Item<'_>)> {
    let mut entries: Vec<(&str, Item<'_>)> = map.entries().collect();
    entries.sort_by_key(|(_, value)| matches!(value.kind(), ItemKind::Map | ItemKind::Array));
    entries
}

/// The same as one text, of the entries whose name `shows` takes.
pub(crate) fn plain_first_json(map: Item<'_>, shows: impl Fn(&str) -> bool) -> String {
    let entries = plain_first(map).into_iter().filter(|(name, _)| shows(name));
    let all = entries.map(|(name, value)| format!("{}:{}", quote(name), json::from_data(value)));
    format!("{{{}}}", all.collect::<Vec<_>>().join(","))
}

/// Text as JSON.
pub(crate) fn quote(text: &str) -> String {
    json::from_item(Canonical::text(text).item())
}

/// A JSON array.
pub(crate) fn array(items: impl IntoIterator<Item = String>) -> String {
    let items: Vec<String> = items.into_iter().collect();
    format!("[{}]", items.join(","))
}

/// The dimensions that are not zero, by name.
pub(crate) fn amounts(amounts: &Amounts) -> String {
    let mut object = Object::new();
    for (dimension, amount) in amounts.iter().filter(|(_, amount)| *amount > 0) {
        object = object.uint(dimension.name(), amount);
    }
    object.finish()
}

/// Bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;

    bytes.iter().fold(String::with_capacity(bytes.len().saturating_mul(2)), |mut text, byte| {
        // Writing to a String can't fail.
        let _infallible = write!(text, "{byte:02x}");
        text
    })
}

/// Data as JSON, but a byte string is hexadecimal text: for fields that hold ids and hashes.
pub(crate) fn with_hex(item: Item<'_>) -> String {
    match item.as_byte_string() {
        Some(bytes) => quote(&hex(bytes)),
        None => json::from_data(item),
    }
}
