//! The tool, and the files that it reads.

use std::sync::Arc;

use syscap_format::{
    Canonical, EffectClass, Item, Manifest, ObligationKind, Param, ParamType, Refused, Rights,
    ToolId,
};
use syscap_kernel::{Demands, Request, Resolve};

use super::event::{Event, Said, Series};
use super::found::Found;
use super::lines::unfolded;
use super::series::{Times, Window};
use super::skip::{Skip, Steps};
use super::zones::Zones;
use crate::beneath::{FsError, Kind, Location, Opener};
use crate::calls::{ReadBy, ReadCall};
use crate::fs::path::{Ending, Place, resolver};
use crate::fs::{PATH_DIMENSION, refusal};

/// Most files that one call reads, and most folders.
pub const FILES_MAX: usize = 2_000;
/// Largest file that is read.
pub const FILE_BYTES_MAX: u64 = 4 << 20;
/// Most bytes that one call reads.
const CALL_BYTES_MAX: u64 = 16 << 20;
/// Most names of one folder.
const NAMES_MAX: usize = 5_000;
/// How many folders down, from where the search begins.
const DEPTH_MAX: usize = 4;
/// Most occurrences of one result, and how many where the call doesn't say.
pub const EVENTS_FOUND_MAX: u64 = 1_000;
const EVENTS_FOUND_DEFAULT: u64 = 100;
/// The suffix of a file of events, in any case.
const SUFFIX: &str = ".ics";

fn is_meant(name: &str) -> bool {
    let at = name.len().checked_sub(SUFFIX.len());
    at.and_then(|at| name.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(SUFFIX))
}

/// `calendar.find`: what is in a time, sorted by its start.
#[derive(Debug)]
pub(super) struct FindEvents {
    window: Window,
    place: Place,
    is_file: bool,
    text: Option<String>,
    limit: usize,
}

impl ReadCall for FindEvents {
    type On = Arc<dyn Opener>;

    fn manifest() -> Option<Manifest> {
        let time = |name, what| Param::optional(name, ParamType::Text, what).within(1, 40);
        let path = "An .ics file, or a folder of them; the workspace's `calendar` if absent.";
        let range = "FROM/TO, or a map of `from` and `to`, in place of those two.";
        let mut manifest = Manifest::new(ToolId::new("calendar.find")?, EffectClass::Read)
            .alias(ToolId::new("calendar_find")?)
            .needs(PATH_DIMENSION)
            .described("Find events", "Finds what is in a calendar from one time to another.")
            .param(time("from", "From when: a date (its midnight) or a time."))
            .param(time("to", "Until when, which is not included: a date or a time."))
            .param(Param::optional("range", ParamType::Any, range))
            .param(
                Param::optional("zone", ParamType::Text, "Zone of times without one; else UTC.")
                    .within(1, 64),
            )
            .param(
                Param::optional("path", ParamType::Path, path)
                    .within(1, 4_096)
                    .or(Canonical::text("calendar")),
            )
            .param(
                Param::optional("text", ParamType::Text, "Only events with these words.")
                    .within(1, 256),
            )
            .param(
                Param::optional("limit", ParamType::Int, "How many occurrences at most.")
                    .within(1, EVENTS_FOUND_MAX),
            )
            .honours(ObligationKind::ResultCap);
        manifest.result_bytes_max = 512 << 10;
        Some(manifest)
    }

    fn resolver(
        request: &Request<'_>,
        base: &Self::On,
    ) -> Result<Option<Box<dyn Resolve>>, Refused> {
        resolver(request, Ending::Folder, Rights::READ, base)
    }

    fn parse(request: &Request<'_>) -> Result<(Self, Demands), Refused> {
        let place = Place::parse(request, Ending::Folder, Rights::READ)?;
        let text = |name| request.args.get(name).and_then(Item::as_text);
        // By its name, since nothing is looked up before it is permitted.
        let is_file = text("path").is_some_and(is_meant);
        let demand = if is_file { place.demand() } else { place.demand_tree() };
        let limit = request.args.get("limit").and_then(Item::as_uint);
        let limit = limit.unwrap_or(EVENTS_FOUND_DEFAULT).min(EVENTS_FOUND_MAX);
        let demands = Demands { resources: vec![demand], ..Demands::default() };
        Ok((
            Self {
                window: Window::parse(request)?,
                place,
                is_file,
                text: text("text").map(str::to_lowercase),
                limit: usize::try_from(limit).unwrap_or(usize::MAX),
            },
            demands,
        ))
    }

    fn run(&self, on: &Self::On, permit: &mut ReadBy<'_, Self>) -> Result<Canonical, Refused> {
        let mut search = Search {
            call: self,
            base: &**on,
            found: Found::new(self.limit, self.text.clone()),
            zones: Zones::new(),
            steps: Steps::new(),
            bytes: CALL_BYTES_MAX,
        };
        let searched = search.all();
        let found = search.found;
        permit.brings(found.label);
        searched.map(|()| found.result(&self.window, permit.result_bytes_max()))
    }
}

/// A run: what is found, and what is left of what it may use.
struct Search<'p> {
    call: &'p FindEvents,
    base: &'p dyn Opener,
    found: Found,
    zones: Zones,
    steps: Steps,
    bytes: u64,
}

impl Search<'_> {
    fn all(&mut self) -> Result<(), Refused> {
        if !self.call.is_file {
            return self.folders();
        }
        let at = self.call.place.file()?;
        let name = at.names().last().unwrap_or_default().to_owned();
        match self.read(&at) {
            Ok(text) => self.file(&name, text),
            // The one file that is asked for is there, or the call fails.
            Err(error) => return Err(refusal(error)),
        }
        Ok(())
    }

    /// Goes through the folders in the order of their paths' bytes.
    fn folders(&mut self) -> Result<(), Refused> {
        let mut folders: Vec<Vec<String>> = vec![Vec::new()];
        let mut seen = 0_usize;
        while let Some(folder) = folders.pop() {
            let path = folder.join("/");
            seen = seen.saturating_add(1);
            let at = self.call.place.below(&folder).ok_or(FsError::NameTooLong);
            let listing = match at.and_then(|at| self.base.list(&at, NAMES_MAX)) {
                Ok(_) if seen > FILES_MAX => {
                    self.over(&path);
                    return Ok(());
                }
                Ok(listing) => listing,
                Err(error) if folder.is_empty() => return Err(refusal(error)),
                Err(_) => {
                    self.found.skip(&path, None, Skip::Unreadable);
                    continue;
                }
            };
            if listing.truncated {
                self.over(&path);
            }
            let mut inner = Vec::new();
            for entry in listing.entries {
                let is_folder = entry.kind == Kind::Directory;
                let within = |name| folder.iter().cloned().chain([name]).collect::<Vec<String>>();
                let name = match String::from_utf8(entry.name) {
                    Ok(name) => name,
                    Err(error) => {
                        let shown = String::from_utf8_lossy(error.as_bytes()).into_owned();
                        if is_folder || is_meant(&shown) {
                            self.found.skip(&within(shown).join("/"), None, Skip::Name);
                        }
                        continue;
                    }
                };
                let (is_meant, names) = (is_meant(&name), within(name));
                match (is_folder, is_meant) {
                    (true, _) if folder.len() < DEPTH_MAX => inner.push(names),
                    (true, _) => self.found.skip(&names.join("/"), None, Skip::TooDeep),
                    (false, true) if !self.one(&names, entry.size_bytes) => return Ok(()),
                    (false, _) => {}
                }
            }
            folders.extend(inner.into_iter().rev());
        }
        Ok(())
    }

    /// Looks into a file; whether the search goes on.
    fn one(&mut self, names: &[String], size_bytes: u64) -> bool {
        let path = names.join("/");
        let files = usize::try_from(self.found.files).unwrap_or(usize::MAX);
        if files >= FILES_MAX || self.steps.are_over() {
            self.over(&path);
            return false;
        }
        if size_bytes > FILE_BYTES_MAX || size_bytes > self.bytes {
            self.found.is_cut |= size_bytes <= FILE_BYTES_MAX;
            self.found.skip(&path, None, Skip::TooLarge);
            return true;
        }
        let at = self.call.place.below(names).ok_or(FsError::NameTooLong);
        match at.and_then(|at| self.read(&at)) {
            Ok(text) => self.file(&path, text),
            Err(FsError::TooLarge) => self.found.skip(&path, None, Skip::TooLarge),
            Err(_) => self.found.skip(&path, None, Skip::Unreadable),
        }
        true
    }

    fn over(&mut self, path: &str) {
        self.found.is_cut = true;
        self.found.skip(path, None, Skip::TooMany);
    }

    /// Reads a file, within what is left of the call's bytes, and takes its label.
    fn read(&mut self, at: &Location) -> Result<Result<String, Skip>, FsError> {
        let most = FILE_BYTES_MAX.min(self.bytes);
        let file = self.base.open_file(at, most)?;
        let label = file.label()?;
        let chunk = file.read(0, usize::try_from(most).unwrap_or(usize::MAX))?;
        self.found.label = self.found.label.join(label);
        let read = u64::try_from(chunk.bytes.len()).unwrap_or(u64::MAX);
        self.bytes = self.bytes.saturating_sub(read);
        // It has grown since it was opened.
        if chunk.more { Err(FsError::TooLarge) } else { Ok(unfolded(&chunk.bytes)) }
    }

    /// Finds the occurrences of all that a file says.
    fn file(&mut self, path: &str, text: Result<String, Skip>) {
        self.found.files = self.found.files.saturating_add(1);
        let window = &self.call.window;
        let (zones, steps) = (&mut self.zones, &mut self.steps);
        let read = text.as_ref().map_err(|skip| *skip);
        let said = match read.and_then(|text| Said::read(text, &window.here, zones, steps)) {
            Ok(said) => said,
            Err(why) => return self.found.skip(path, None, why),
        };
        for why in said.nameless {
            self.found.skip(path, None, why);
        }
        for (uid, series) in &said.series {
            self.steps.next_event();
            if let Err(why) = self.series(path, uid, series) {
                self.found.is_cut |= self.steps.are_over();
                self.found.skip(path, Some(uid), why);
            }
        }
    }

    fn series(&mut self, path: &str, uid: &str, series: &Series<'_>) -> Result<(), Skip> {
        let mut all: Vec<(&Event<'_>, Vec<Times>)> = Vec::new();
        let (zones, steps) = (&mut self.zones, &mut self.steps);
        series.each(&self.call.window, zones, steps, &mut |event, times| match all.last_mut() {
            Some((last, found)) if std::ptr::eq(*last, event) => found.push(times),
            _ => all.push((event, vec![times])),
        })?;
        for (event, times) in all {
            self.found.add(path, uid, event, &times);
        }
        Ok(())
    }
}
