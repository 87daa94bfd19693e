//! `syscap artifacts show`.

use std::path::PathBuf;

use clap::Args;
use syscap::artifact::{Kept, Whole, whole};
use syscap::audit::SqliteReader;
use syscap::format::json::from_data;
use syscap::format::{Item, ItemKind, Seq};
use syscap::kernel::StoreError;

use super::found::{altered, status};
use super::json::json;
use crate::exit::{Ended, Exit, Failure};
use crate::output::{Form, Object, Out, array, plain};

/// Which result, and which part of it.
#[derive(Args, Debug)]
#[command(after_long_help = "\
A result is shown by its parts: the entries of its map, each text as its lines, all else as JSON. Of
each part so many bytes are shown from the offset on, cut between two characters; where it goes on,
the offset of the next page is said.")]
pub(crate) struct Show {
    /// The home.
    home: PathBuf,
    /// The record of the outcome, as `artifacts list` and `log show` have it.
    #[arg(value_name = "RECORD")]
    record: u64,
    /// Only this part.
    #[arg(long, value_name = "NAME")]
    part: Option<String>,
    /// From which byte of each part on.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,
    /// How many bytes of each part at most.
    #[arg(long, value_name = "N", default_value_t = 16_384,
          value_parser = clap::value_parser!(u32).range(4..))]
    bytes: u32,
}

/// A page of a part.
struct Page<'a> {
    name: &'a str,
    kind: &'static str,
    text: &'a str,
    offset: usize,
    size: usize,
}

impl Show {
    pub(super) fn run(self, out: &mut Out) -> Ended {
        let failed = |error: StoreError| Failure::home(&self.home)(syscap::Error::Home(error));
        let mut reader = SqliteReader::open(&self.home).map_err(failed)?;
        let found = match i64::try_from(self.record) {
            Ok(_) => whole(&mut reader, Seq::new(self.record)).map_err(failed)?,
            // No log has so many.
            Err(_) => None,
        };
        let Some(Whole { artifact, delivered }) = found else {
            let advice = "no result stands under it; `syscap artifacts list` shows those there are";
            let what = format!("record {}", self.record);
            return Err(Failure::Usage { what, advice: advice.to_owned() });
        };
        let parts = delivered.as_ref().map(|delivered| parts(delivered.item()));
        let parts = parts.unwrap_or_default();
        let meant = |part: &&(String, &'static str, String)| {
            self.part.as_ref().is_none_or(|name| *name == part.0)
        };
        let pages: Vec<Page<'_>> = parts.iter().filter(meant).map(|part| self.page(part)).collect();
        if let (Some(name), true, true) = (&self.part, pages.is_empty(), delivered.is_some()) {
            let names: Vec<&str> = parts.iter().map(|(name, ..)| name.as_str()).collect();
            let advice = format!("it has: {}", names.join(", "));
            return Err(Failure::Usage { what: format!("part {name}"), advice });
        }
        match out.form() {
            Form::Json => {
                let object = json(&artifact).json("parts", &array(pages.iter().map(Page::json)));
                out.line(&object.finish())?;
            }
            Form::Text => {
                header(out, &artifact)?;
                pages.iter().try_for_each(|page| page.print(out))?;
            }
        }
        match artifact.kept {
            Kept::Altered => Err(altered(&self.home, &artifact)),
            Kept::There(_) | Kept::Erased => Ok(Exit::Done),
        }
    }

    fn page<'a>(&self, (name, kind, text): &'a (String, &'static str, String)) -> Page<'a> {
        let number = |number| usize::try_from(number).unwrap_or(usize::MAX);
        let offset = text.floor_char_boundary(number(self.offset));
        let bytes = usize::try_from(self.bytes).unwrap_or(usize::MAX);
        let end = text.floor_char_boundary(offset.saturating_add(bytes));
        let shown = text.get(offset..end).unwrap_or_default();
        Page { name, kind, text: shown, offset, size: text.len() }
    }
}

fn header(out: &mut Out, artifact: &syscap::artifact::Artifact) -> Result<(), Failure> {
    let none = || "none".to_owned();
    let (size, digest) = match &artifact.kept {
        Kept::There(short) => (format!("{} bytes", short.size_bytes), short.digest.to_string()),
        Kept::Erased => ("erased".to_owned(), artifact.digest.map_or_else(none, |d| d.to_string())),
        Kept::Altered => ("altered".to_owned(), none()),
    };
    for (name, value) in [
        ("record", artifact.record.to_string()),
        ("intent", artifact.intent.to_string()),
        ("time", artifact.time.to_string()),
        ("agent", artifact.agent.as_ref().map_or_else(none, ToString::to_string)),
        ("session", artifact.session.map_or_else(none, |session| session.to_string())),
        ("tool", artifact.tool.as_ref().map_or_else(none, ToString::to_string)),
        ("status", status(artifact)),
        ("label", artifact.label.to_string()),
        ("size", size),
        ("digest", digest),
    ] {
        out.line(&format!("{name:<10} {value}"))?;
    }
    Ok(())
}

/// Its parts by name: texts as they are, all else as JSON.
fn parts(delivered: Item<'_>) -> Vec<(String, &'static str, String)> {
    let part = |name: &str, value: Item<'_>| match value.as_text() {
        Some(text) => (name.to_owned(), "text", text.to_owned()),
        None => (name.to_owned(), "json", from_data(value)),
    };
    // A map with other keys than text has no entries.
    let count = delivered.entries().count();
    if delivered.kind() != ItemKind::Map || count != delivered.count() {
        return vec![part("result", delivered)];
    }
    delivered.entries().map(|(name, value)| part(name, value)).collect()
}

impl Page<'_> {
    /// The place to read on.
    fn next(&self) -> Option<usize> {
        let end = self.offset.saturating_add(self.text.len());
        (end < self.size).then_some(end)
    }

    fn json(&self) -> String {
        let number = |number| u64::try_from(number).unwrap_or(u64::MAX);
        let object = Object::new()
            .text("name", self.name)
            .text("kind", self.kind)
            .uint("size_bytes", number(self.size))
            .uint("offset", number(self.offset))
            .text("text", self.text);
        match self.next() {
            Some(next) => object.uint("next_offset", number(next)),
            None => object,
        }
        .finish()
    }

    fn print(&self, out: &mut Out) -> Result<(), Failure> {
        let name = plain(self.name);
        let whole = self.text.len() == self.size;
        if whole && !self.text.contains('\n') && self.kind == "json" {
            return out.line(&format!("{name}: {}", self.text));
        }
        let from = if whole { String::new() } else { format!(" from {}", self.offset) };
        out.line(&format!("{name}: {} of {} bytes{from}", self.text.len(), self.size))?;
        for line in self.text.split_inclusive('\n') {
            out.tabbed(&format!("  {}", line.strip_suffix('\n').unwrap_or(line)))?;
        }
        match self.next() {
            Some(next) => out.line(&format!("{name}: more with --part {name} --offset {next}")),
            None => Ok(()),
        }
    }
}
