//! `fs.search`.

use std::sync::Arc;

use regex::bytes::{Regex, RegexBuilder};
use rustix::time::{ClockId, clock_gettime};
use syscap_format::{
    Canonical, Dimension, EffectClass, Item, Label, Manifest, MapBuilder, ObligationKind, Param,
    ParamType, Reason, Refused, Rights,
};
use syscap_kernel::{Demands, Request, Resolve};

use super::path::{self, Ending, Place};
use super::{manifest, refusal};
use crate::beneath::{FsError, Kind, Opener};
use crate::calls::{ReadBy, ReadCall};

/// Most files that one call looks into, and most folders.
pub const SEARCH_FILES_MAX: usize = 5_000;
/// Most bytes that one call looks at.
pub const SEARCH_BYTES_MAX: u64 = 16 << 20;
/// Largest file that is looked into. A larger one is counted as skipped.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Most names of one folder. A larger one is counted as skipped.
const NAMES_MAX: usize = 5_000;
/// How many folders down, from where the search begins.
const DEPTH_MAX: usize = 32;
/// Largest pattern, compiled, in bytes: the work for a byte of text grows with it.
const PATTERN_BYTES_MAX: usize = 256 << 10;
/// How deep a pattern may nest.
const NEST_MAX: u32 = 50;
/// How much of a line is looked at, in bytes: between lines the search can be ended.
const LOOKED_AT_LINE_BYTES: usize = 4 << 10;
/// The shown length of a line, in bytes.
const LINE_BYTES_MAX: usize = 300;
/// Most matches of one call, and how many where it doesn't say.
const MATCHES_MAX: u64 = 1_000;
const MATCHES_DEFAULT: u64 = 100;
/// Most bytes of a result that are not its matches, and of a match beside its texts.
const FRAME_BYTES: usize = 256;
/// A file with a zero byte among its first ones is no text.
const LOOKED_AT_BYTES: usize = 8 << 10;

/// `fs.search`: the lines that match a pattern, in the files below a folder. The token must let
/// all of the folder be read, and so must the policy: of a part of it neither could be asked.
///
/// Patterns are those of the `regex` crate: no backtracking, so the time grows with the length of
/// the text and of the pattern alone. With both it can be seconds: a search that has used half
/// of the processor time that was set aside ends there, and says so.
#[derive(Debug)]
pub(super) struct Search {
    place: Place,
    pattern: Regex,
    name: Option<Regex>,
    limit: usize,
}

impl ReadCall for Search {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let mut manifest = manifest("search", EffectClass::Read)?
            .described("Search files", "Finds the lines that match a pattern, below a folder.")
            .param(
                Param::required("pattern", ParamType::Text, "A regular expression.")
                    .within(1, 1_024),
            )
            .param(
                Param::optional("path", ParamType::Path, "The folder; the workspace if absent.")
                    .within(1, 4_096)
                    .or(Canonical::text(".")),
            )
            .param(Param::optional("literal", ParamType::Bool, "The pattern is plain text."))
            .param(Param::optional("ignore_case", ParamType::Bool, "Large letters are small ones."))
            .param(
                Param::optional("name", ParamType::Text, "Only files of such names: `*.md`.")
                    .within(1, 255),
            )
            .param(
                Param::optional("limit", ParamType::Int, "How many matches at most.")
                    .within(1, MATCHES_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = 1 << 20;
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        path::resolver(request, Ending::Folder, Rights::READ, base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::Folder, Rights::READ)?;
        let text = |name| request.args.get(name).and_then(Item::as_text);
        let set = |name| request.args.get(name).and_then(Item::as_bool) == Some(true);
        let pattern = text("pattern").unwrap_or_default();
        let escaped = set("literal").then(|| regex::escape(pattern));
        let pattern =
            compile(escaped.as_deref().unwrap_or(pattern), set("ignore_case"), "pattern")?;
        let name = text("name").map(|glob| compile(&of_glob(glob), false, "name")).transpose()?;
        let limit = request.args.get("limit").and_then(Item::as_uint).unwrap_or(MATCHES_DEFAULT);
        let demands = Demands { resources: vec![place.demand_tree()], ..Demands::default() };
        Ok((
            Self {
                place,
                pattern,
                name,
                limit: usize::try_from(limit.min(MATCHES_MAX)).unwrap_or(usize::MAX),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        // What is set aside must do: who exceeds it has no token any more.
        let set_aside_us = permit.hold().get(Dimension::CpuUs);
        let mut found = Found {
            ends_us: cpu_us().saturating_add(set_aside_us / 2),
            matches: Vec::new(),
            room: permit.result_bytes_max().saturating_sub(FRAME_BYTES),
            files: 0,
            skipped: 0,
            bytes: 0,
            is_cut: false,
            label: Label::PUBLIC,
        };
        let searched = self.search(&**on, &mut found);
        permit.brings(found.label);
        searched.map(|()| found.result())
    }
}

fn compile(pattern: &str, ignore_case: bool, argument: &'static str) -> Result<Regex, Refused> {
    let built = RegexBuilder::new(pattern)
        .case_insensitive(ignore_case)
        .size_limit(PATTERN_BYTES_MAX)
        .nest_limit(NEST_MAX)
        .build();
    built.map_err(|error| {
        let what = match error {
            regex::Error::CompiledTooBig(_) => "a smaller pattern",
            _ => "a regular expression without look-around and back-references, or `literal`",
        };
        Refused::new(Reason::BadArgument).field(argument).got(pattern).allowed(what)
    })
}

/// The pattern of names that `*` and `?` stand in.
fn of_glob(glob: &str) -> String {
    let mut pattern = String::from("^(?s-u:");
    let mut buffer = [0; 4];
    for letter in glob.chars() {
        match letter {
            '*' => pattern.push_str(".*"),
            // One letter, whatever its length in bytes.
            '?' => pattern.push_str("(?u:.)"),
            other => pattern.push_str(&regex::escape(other.encode_utf8(&mut buffer))),
        }
    }
    pattern.push_str(")$");
    pattern
}

/// The findings so far, and the work spent.
struct Found {
    /// At which time of this thread's the search ends, where it is still going on.
    ends_us: u64,
    matches: Vec<Canonical>,
    /// Bytes of the result that are free.
    room: usize,
    files: usize,
    skipped: u64,
    bytes: u64,
    is_cut: bool,
    /// The label of the files whose lines are shown.
    label: Label,
}

impl Search {
    /// Goes through the folders in the order of their paths' bytes.
    fn search(&self, base: &dyn Opener, found: &mut Found) -> Result<(), Refused> {
        let mut folders: Vec<Vec<String>> = vec![Vec::new()];
        let mut folders_seen = 0_usize;
        while let Some(folder) = folders.pop() {
            folders_seen = folders_seen.saturating_add(1);
            if folders_seen > SEARCH_FILES_MAX {
                found.is_cut = true;
                break;
            }
            let listing = self.place.below(&folder).ok_or(FsError::NameTooLong);
            let listing = match listing.and_then(|at| base.list(&at, NAMES_MAX)) {
                Ok(listing) => listing,
                // That the search can't begin is said; what lies below it may come and go.
                Err(error) if folder.is_empty() => return Err(refusal(error)),
                Err(_) => {
                    found.skip();
                    continue;
                }
            };
            if listing.truncated {
                found.skip();
            }
            let mut inner = Vec::new();
            for entry in listing.entries {
                // A name that is no text has no path that a call could say.
                let Ok(name) = String::from_utf8(entry.name) else {
                    found.skip();
                    continue;
                };
                let path = || folder.iter().cloned().chain([name.clone()]).collect::<Vec<_>>();
                match entry.kind {
                    Kind::Directory if folder.len() < DEPTH_MAX => inner.push(path()),
                    Kind::File if self.is_meant(&name) => {
                        if !self.look_into(base, &path(), entry.size_bytes, found) {
                            return Ok(());
                        }
                    }
                    Kind::File => {}
                    Kind::Directory | Kind::Link | Kind::Other => found.skip(),
                }
            }
            // The first is the next to be taken.
            folders.extend(inner.into_iter().rev());
        }
        Ok(())
    }

    fn is_meant(&self, name: &str) -> bool {
        self.name.as_ref().is_none_or(|pattern| pattern.is_match(name.as_bytes()))
    }

    /// Looks into a file; whether the search goes on.
    fn look_into(
        &self,
        base: &dyn Opener,
        path: &[String],
        size_bytes: u64,
        found: &mut Found,
    ) -> bool {
        if size_bytes > FILE_BYTES_MAX {
            found.skip();
            return true;
        }
        let bytes = found.bytes.saturating_add(size_bytes);
        if found.files >= SEARCH_FILES_MAX || bytes > SEARCH_BYTES_MAX {
            found.is_cut = true;
            return false;
        }
        let limit = usize::try_from(FILE_BYTES_MAX).unwrap_or(usize::MAX);
        let opened = self.place.below(path).ok_or(FsError::NameTooLong);
        let opened = opened.and_then(|at| base.open_file(&at, FILE_BYTES_MAX));
        let read = opened.and_then(|file| Ok((file.label()?, file.read(0, limit)?)));
        let (label, content) = match read {
            Ok((label, chunk)) if !chunk.more => (label, chunk.bytes),
            _ => {
                found.skip();
                return true;
            }
        };
        found.bytes = found.bytes.saturating_add(u64::try_from(content.len()).unwrap_or(u64::MAX));
        if content.iter().take(LOOKED_AT_BYTES).any(|byte| *byte == 0) {
            found.skip();
            return true;
        }
        found.files = found.files.saturating_add(1);
        let path = path.join("/");
        // Bytes since the clock was looked at: most of a file of one line is not.
        let mut spent = LOOKED_AT_LINE_BYTES;
        for (n, line) in content.split(|byte| *byte == b'\n').enumerate() {
            let looked_at = line.get(..LOOKED_AT_LINE_BYTES).unwrap_or(line);
            spent = spent.saturating_add(looked_at.len());
            if spent > LOOKED_AT_LINE_BYTES {
                spent = 0;
                if cpu_us() > found.ends_us {
                    found.is_cut = true;
                    return false;
                }
            }
            if !self.pattern.is_match(looked_at) {
                continue;
            }
            found.label = found.label.join(label);
            if !found.add(&path, n, line, self.limit) {
                return false;
            }
        }
        true
    }
}

impl Found {
    fn skip(&mut self) {
        self.skipped = self.skipped.saturating_add(1);
    }

    /// True if there was room for one more.
    fn add(&mut self, path: &str, before: usize, line: &[u8], limit: usize) -> bool {
        let shown = line.get(..LINE_BYTES_MAX).unwrap_or(line);
        let number = u64::try_from(before.saturating_add(1)).unwrap_or(u64::MAX);
        let map = MapBuilder::new().uint("line", number).text("path", path);
        let map = match std::str::from_utf8(shown) {
            Ok(text) => map.text("text", text),
            // Cut within a letter, it is still text.
            Err(error) if shown.len() < line.len() && error.error_len().is_none() => {
                let whole = shown.get(..error.valid_up_to()).unwrap_or_default();
                map.text("text", std::str::from_utf8(whole).unwrap_or_default())
            }
            Err(_) => map.bytes("bytes", shown),
        };
        let is_cut = shown.len() < line.len();
        let entry = if is_cut { map.boolean("cut", true).finish() } else { map.finish() };
        match self.room.checked_sub(entry.as_bytes().len()) {
            Some(left) if self.matches.len() < limit => {
                self.room = left;
                self.matches.push(entry);
                true
            }
            _ => {
                self.is_cut = true;
                false
            }
        }
    }

    /// `{matches: [{path, line, text | bytes, cut}], files, skipped, truncated}`: paths are
    /// relative to where the search began, `cut` says that the line goes on.
    fn result(self) -> Canonical {
        MapBuilder::new()
            .uint("files", u64::try_from(self.files).unwrap_or(u64::MAX))
            .item("matches", Canonical::list(self.matches.into_iter()).item())
            .uint("skipped", self.skipped)
            .boolean("truncated", self.is_cut)
            .finish()
    }
}

/// How long this thread has run.
fn cpu_us() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let whole = u64::try_from(time.tv_sec).unwrap_or(0).saturating_mul(1_000_000);
    whole.saturating_add(u64::try_from(time.tv_nsec / 1_000).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_is_of_the_whole_name() {
        let matches = |glob: &str, name: &[u8]| {
            compile(&of_glob(glob), false, "name").unwrap().is_match(name)
        };
        assert!(
            matches("*.md", b"a.md") && matches("*", b"") && matches("a?c", "a\u{e9}c".as_bytes())
        );
        assert!(!matches("*.md", b"a.mdx") && !matches("*.md", b"axmd") && !matches("a?c", b"ac"));
        assert!(matches("*\n*", b"a\nb") && matches("a*", b"a\xff"));
    }

    /// A pattern that would take long is refused.
    #[test]
    fn patterns_are_bounded() {
        for pattern in ["(a{1000}){1000}", "a(?=b)", "(a)\\1", "(", &"(".repeat(1_000)] {
            let refused = compile(pattern, false, "pattern").unwrap_err();
            assert_eq!(refused.reason(), Reason::BadArgument, "{pattern}");
        }
        for pattern in ["(a+)+$", "\\w+\\s\\d", "(?i)fn \\p{L}*", "^use .*;$"] {
            assert!(compile(pattern, false, "pattern").is_ok(), "{pattern}");
        }
    }
}
