//! A client's settings: the hook is written into them, or taken out, and all else keeps its bytes.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, Stat, fchmod, fstat, mkdirat, openat,
    openat2, renameat, statat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use syscap::SystemEntropy;
use syscap::format::{Item, json};
use syscap::kernel::Entropy as _;

use super::client::Client;
use super::json_text::{Text, kept, replaced, value_of};
use crate::{exit::Failure, output::hex};

/// The file of a user's settings; that of a project's own, which its repository does not hold.
const FILE: &str = "settings.json";
const LOCAL_FILE: &str = "settings.local.json";
/// What the name of the backup of the file ends with. The first one is kept.
const BACKUP: &str = ".syscap-backup";
/// Largest file that is taken, in bytes.
const BYTES_MAX: u64 = 1 << 20;

/// The settings as they are to be. They are not written yet.
#[derive(Debug)]
pub(super) struct UserSettings {
    path: PathBuf,
    name: &'static str,
    folder: OwnedFd,
    before: Option<(String, Stat)>,
    /// `None` where there is to be none.
    after: Option<String>,
    /// Entries of the hook's that somebody has edited: they are left.
    edited: Vec<String>,
}

/// Whose settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The user's.
    User,
    /// Those of the project in this folder.
    Project,
}

/// The action taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// The hook stands there as it should already.
    Unchanged,
    /// The file is new.
    New,
    /// The file was another; the first such is kept as the backup.
    Changed,
    /// There is none any more.
    Gone,
}

impl UserSettings {
    /// Reads a client's settings, and puts these hooks into them.
    pub(super) fn with(client: Client, place: Place, hooks: &str) -> Result<Self, Failure> {
        let mut settings = Self::of(client, place)?;
        let text = settings.before.as_ref().map_or("{}", |(text, _)| text);
        let after = merged(text, hooks).map_err(|why| settings.refused(why))?;
        settings.after = Some(after);
        Ok(settings)
    }

    /// Reads them, and takes out what a set-up for that home has put in. Where nothing else has changed
    /// they are, byte for byte, what they were before the first.
    pub(super) fn without(client: Client, place: Place, home: &Path) -> Result<Self, Failure> {
        let mut settings = Self::of(client, place)?;
        let Some((text, _)) = &settings.before else { return Ok(settings) };
        let out = taken_out(text, home).map_err(|why| settings.refused(why))?;
        settings.after = match out {
            None => Some(text.clone()),
            Some(TakenOut { hooks, after, edited }) => {
                settings.edited = edited;
                let first =
                    settings.first().map_err(|problem| settings.refused(&problem.words()))?;
                let is_first = |first: &str| merged(first, &hooks).is_ok_and(|made| made == *text);
                match first {
                    Some(first) if is_first(&first) => Some(first),
                    None if is_first("{}") => None,
                    _ => Some(after),
                }
            }
        };
        Ok(settings)
    }

    fn of(client: Client, place: Place) -> Result<Self, Failure> {
        let (folder, name) = folder(client, place)?;
        let path = folder.join(name);
        let opened = open_folder(&folder).map_err(|problem| refused(&path, &problem.words()))?;
        let before = read(&opened, name).map_err(|problem| refused(&path, &problem.words()))?;
        let after = before.as_ref().map(|(text, _)| text.clone());
        Ok(Self { path, name, folder: opened, before, after, edited: Vec::new() })
    }

    fn refused(&self, why: &str) -> Failure {
        refused(&self.path, why)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// The entries of the hook's that are left, since somebody has edited them.
    pub(super) fn edited(&self) -> &[String] {
        &self.edited
    }

    /// The name of the backup.
    pub(super) fn backup(&self) -> String {
        format!("{}{BACKUP}", self.name)
    }

    /// The text as it was before the first set-up, where that is kept.
    fn first(&self) -> Result<Option<String>, Problem> {
        Ok(read(&self.folder, &self.backup())?.map(|(text, _)| text))
    }

    /// What is there, and what is to be.
    pub(super) fn change(&self) -> Option<(&str, &str)> {
        let before = self.before.as_ref().map_or("", |(text, _)| text);
        let after = self.after.as_deref().unwrap_or_default();
        (self.before.is_some() != self.after.is_some() || before != after)
            .then_some((before, after))
    }

    /// Writes them: a backup, if there is none, then a new file in the place of the old one.
    pub(super) fn write(&self) -> Result<Written, Failure> {
        if self.change().is_none() {
            return Ok(Written::Unchanged);
        }
        let written = match (&self.before, &self.after) {
            (Some((text, stat)), Some(after)) => {
                let mode = Mode::from_raw_mode(stat.st_mode & 0o777);
                self.keep(text, mode)
                    .and_then(|()| self.put(self.name, after, mode, || self.expect_same(stat)))
                    .map(|()| Written::Changed)
            }
            (None, Some(after)) => {
                let mode = Mode::RUSR | Mode::WUSR;
                self.put(self.name, after, mode, || self.expect_none()).map(|()| Written::New)
            }
            (Some((_, stat)), None) => self.expect_same(stat).and_then(|()| {
                unlinkat(&self.folder, self.name, AtFlags::empty())?;
                Ok(Written::Gone)
            }),
            (None, None) => Ok(Written::Unchanged),
        };
        written.map_err(Failure::file(&self.path))
    }

    /// Keeps the file as it was before the first set-up.
    fn keep(&self, text: &str, mode: Mode) -> io::Result<()> {
        let backup = self.backup();
        match statat(&self.folder, &*backup, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(()),
            Err(Errno::NOENT) => self.put(&backup, text, mode, || Ok(())),
            Err(error) => Err(error.into()),
        }
    }

    /// The client may have written them meanwhile.
    fn expect_same(&self, before: &Stat) -> io::Result<()> {
        let now = statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let of = |stat: &Stat| {
            (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec)
        };
        if of(&now) == of(before) { Ok(()) } else { Err(changed()) }
    }

    fn expect_none(&self) -> io::Result<()> {
        match statat(&self.folder, self.name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
            Ok(_) => Err(changed()),
        }
    }

    /// A file of that name, whole at once; `check` is asked just before it gets the name.
    fn put(
        &self,
        name: &str,
        text: &str,
        mode: Mode,
        check: impl FnOnce() -> io::Result<()>,
    ) -> io::Result<()> {
        let mut random = [0; 8];
        SystemEntropy.fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
        let part = format!(".{name}.{}", hex(&random));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.folder, &part, flags | OFlags::NOFOLLOW, mode)?);
        let written = fchmod(&file, mode)
            .map_err(io::Error::from)
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.sync_all())
            .and_then(|()| check())
            .and_then(|()| Ok(renameat(&self.folder, &part, &self.folder, name)?));
        if written.is_err() {
            // What can't be removed either is a file that nobody reads.
            unlinkat(&self.folder, &part, AtFlags::empty()).unwrap_or(());
        }
        written.and_then(|()| Ok(rustix::fs::fsync(&self.folder)?))
    }
}

fn refused(path: &Path, why: &str) -> Failure {
    let advice = format!("{why}; --print shows what belongs there");
    Failure::Usage { what: path.display().to_string(), advice }
}

fn changed() -> io::Error {
    io::Error::new(io::ErrorKind::ResourceBusy, "the file has changed meanwhile: run this again")
}

/// Why a file is not taken.
enum Problem {
    Not(&'static str),
    System(io::Error),
}

impl Problem {
    fn words(&self) -> String {
        match self {
            Self::Not(why) => (*why).to_owned(),
            Self::System(error) => format!("can't be opened: {error}"),
        }
    }
}

impl From<Errno> for Problem {
    fn from(error: Errno) -> Self {
        match error {
            Errno::LOOP => Self::Not("is a link, which is not followed"),
            error => Self::System(error.into()),
        }
    }
}

/// The client's folder of settings, by its documentation, and the file in it.
fn folder(client: Client, place: Place) -> Result<(PathBuf, &'static str), Failure> {
    let set = |name: &str| env::var_os(name).filter(|value: &OsString| !value.is_empty());
    let home = || {
        let advice = "is not set: --print shows what belongs into the client's settings";
        let bad = || Failure::Usage { what: "HOME".to_owned(), advice: advice.to_owned() };
        set("HOME").map(PathBuf::from).ok_or_else(bad)
    };
    match (client, place, set("CLAUDE_CONFIG_DIR")) {
        (Client::ClaudeCode, Place::Project, _) => Ok((PathBuf::from(".claude"), LOCAL_FILE)),
        (Client::ClaudeCode, Place::User, Some(folder)) => Ok((PathBuf::from(folder), FILE)),
        (Client::ClaudeCode, Place::User, None) => Ok((home()?.join(".claude"), FILE)),
        (Client::GeminiCli, Place::User, _) => Ok((home()?.join(".gemini"), FILE)),
        (Client::GeminiCli, Place::Project, _) => {
            let advice =
                "this client has no settings of a project that its repository does not hold";
            let (what, advice) = ("--project".to_owned(), advice.to_owned());
            Err(Failure::Usage { what, advice })
        }
    }
}

const NO_LINKS: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);

/// The client's folder, made where there is none. The folder above it is the user's own.
fn open_folder(path: &Path) -> Result<OwnedFd, Problem> {
    let not = Problem::Not("has no folder that can be named");
    let (above, name) = path.parent().zip(path.file_name()).ok_or(not)?;
    let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let above = openat(CWD, above, flags, Mode::empty())?;
    match mkdirat(&above, name, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let folder = openat2(&above, name, flags, Mode::empty(), NO_LINKS)?;
    expect_own(&fstat(&folder)?)?;
    Ok(folder)
}

fn expect_own(stat: &Stat) -> Result<(), Problem> {
    match stat.st_uid == geteuid().as_raw() {
        true => Ok(()),
        false => Err(Problem::Not("belongs to another user, or lies in another's folder")),
    }
}

fn read(folder: &OwnedFd, name: &str) -> Result<Option<(String, Stat)>, Problem> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat2(folder, name, flags, Mode::empty(), NO_LINKS) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let stat = fstat(&file)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(Problem::Not("is no regular file"));
    }
    expect_own(&stat)?;
    let mut bytes = Vec::new();
    let most = BYTES_MAX.saturating_add(1);
    File::from(file).take(most).read_to_end(&mut bytes).map_err(Problem::System)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length > BYTES_MAX) {
        return Err(Problem::Not("is larger than a mebibyte"));
    }
    let text = String::from_utf8(bytes).map_err(|_| Problem::Not("is no UTF-8"))?;
    Ok(Some((text, stat)))
}

/// The settings with these hooks in the place of those that an earlier set-up wrote. All that is
/// not the hook's stays byte for byte.
fn merged(settings: &str, ours: &str) -> Result<String, &'static str> {
    const NO_JSON: &str = "is no JSON";
    // After this the text is known to be JSON (RFC 8259) without a key that stands twice.
    let whole = json::to_data(settings.as_bytes()).map_err(|_| NO_JSON)?;
    let all = Text(settings).members().ok_or("is no JSON object")?;
    let wanted = Text(ours).member("hooks").and_then(|hooks| hooks.members()).ok_or(NO_JSON)?;
    let hooks = all.iter().find(|(key, _)| *key == "hooks");
    let there = match hooks {
        Some((_, hooks)) => hooks.members().ok_or("has `hooks` that are no object")?,
        None => Vec::new(),
    };
    let mut made: Vec<(String, String)> = Vec::new();
    for (event, value) in &there {
        let mut kept = Vec::new();
        let is_wanted = wanted.iter().any(|(wanted, _)| wanted == event);
        if !is_wanted {
            made.push((event.clone(), value.0.to_owned()));
            continue;
        }
        for entry in value.elements().ok_or("has an event's hooks that are no list")? {
            match is_ours(entry)? {
                true => {}
                false => kept.push(entry.0),
            }
        }
        let ours = wanted.iter().filter(|(wanted, _)| wanted == event);
        kept.extend(ours.filter_map(|(_, value)| value.elements()).flatten().map(|it| it.0));
        made.push((event.clone(), format!("[{}]", kept.join(", "))));
    }
    for (event, value) in &wanted {
        if there.iter().all(|(known, _)| known != event) {
            made.push((event.clone(), value.0.to_owned()));
        }
    }
    let line =
        |(event, value): &(String, String)| format!("    {}: {value}", crate::output::quote(event));
    let lines: Vec<String> = made.iter().map(line).collect();
    let object = format!("{{\n{}\n  }}", lines.join(",\n"));
    let after = match hooks {
        Some((_, hooks)) => replaced(settings, hooks.0, &object),
        None => {
            let end = settings.rfind('}').ok_or(NO_JSON)?;
            let (begin, end) = settings.split_at(end);
            let comma = if all.is_empty() { "" } else { "," };
            format!("{}{comma}\n  \"hooks\": {object}\n{end}", begin.trim_end())
        }
    };
    match json::to_data(after.as_bytes()) {
        Ok(same) if same == whole => Ok(settings.to_owned()),
        Ok(_) => Ok(after),
        Err(_) => Err("can't be changed by this program"),
    }
}

/// Settings without a hook.
#[derive(Debug, PartialEq, Eq)]
struct TakenOut {
    /// The entries that went, as a set-up writes them.
    hooks: String,
    after: String,
    edited: Vec<String>,
}

/// The settings without the entries that a set-up for that home wrote; `None` where there are none. What an
/// entry was alone in goes with it.
fn taken_out(settings: &str, home: &Path) -> Result<Option<TakenOut>, &'static str> {
    json::to_data(settings.as_bytes()).map_err(|_| "is no JSON")?;
    let all = Text(settings).members().ok_or("is no JSON object")?;
    let Some((_, hooks)) = all.iter().find(|(key, _)| key == "hooks") else { return Ok(None) };
    let there = hooks.members().ok_or("has `hooks` that are no object")?;
    let (mut found, mut edited): (Vec<(String, Vec<&str>)>, Vec<String>) = (Vec::new(), Vec::new());
    for (event, value) in &there {
        let entries = value.elements().ok_or("has an event's hooks that are no list")?;
        let mut own = Vec::new();
        for entry in entries {
            if is_ours(entry)? && is_of(entry, home) {
                match is_as_written(entry) {
                    true => own.push(entry.0),
                    false => edited.push(entry.0.to_owned()),
                }
            }
        }
        if !own.is_empty() {
            found.push((event.clone(), own));
        }
    }
    if found.is_empty() && edited.is_empty() {
        return Ok(None);
    }
    let own =
        |part: &str| found.iter().flat_map(|(_, own)| own).any(|own| own.as_ptr() == part.as_ptr());
    let event = |part: &str| -> Option<String> {
        let list = value_of(part)?;
        let has = Text(list).elements()?.iter().any(|entry| own(entry.0));
        match has {
            false => Some(part.to_owned()),
            true => kept(list, |entry| (!own(entry)).then(|| entry.to_owned()))
                .map(|made| replaced(part, list, &made)),
        }
    };
    let member = |part: &str| -> Option<String> {
        let value = value_of(part)?;
        match value.as_ptr() == hooks.0.as_ptr() {
            false => Some(part.to_owned()),
            true => kept(value, event).map(|made| replaced(part, value, &made)),
        }
    };
    let whole = settings.trim();
    let after = kept(whole, member).unwrap_or_else(|| "{}".to_owned());
    let after = replaced(settings, whole, &after);
    json::to_data(after.as_bytes()).map_err(|_| "can't be changed by this program")?;
    let lists = found
        .iter()
        .map(|(event, own)| format!("{}:[{}]", crate::output::quote(event), own.join(",")));
    let hooks = format!("{{\"hooks\":{{{}}}}}", lists.collect::<Vec<_>>().join(","));
    Ok(Some(TakenOut { hooks, after, edited }))
}

/// True if the entry has nothing but what a set-up writes.
fn is_as_written(entry: Text<'_>) -> bool {
    let Ok(entry) = json::to_data(entry.0.as_bytes()) else { return false };
    let entry = entry.item();
    let only = |item: Item<'_>, keys: &[&str]| item.entries().all(|(key, _)| keys.contains(&key));
    let hooks: Vec<Item<'_>> =
        entry.get("hooks").into_iter().flat_map(|hooks| hooks.elements()).collect();
    let matches = entry.get("matcher").is_none_or(|all| all.as_text() == Some("*"));
    let keys = ["type", "command", "timeout", "onFailure", "name"];
    only(entry, &["matcher", "hooks"])
        && matches
        && hooks.len() == 1
        && hooks.iter().all(|hook| only(*hook, &keys))
}

/// True if the entry's commands are of that home.
fn is_of(entry: Text<'_>, home: &Path) -> bool {
    let Ok(entry) = json::to_data(entry.0.as_bytes()) else { return false };
    let hooks = entry.item().get("hooks");
    let names = |hook: Item<'_>| {
        let command = hook.get("command").and_then(Item::as_text).unwrap_or_default();
        let words = syscap_gateway::split(command).unwrap_or_default();
        words.get(2).is_some_and(|word| Path::new(word) == home)
    };
    hooks.is_some_and(|hooks| hooks.elements().all(names))
}

/// True if a set-up wrote the entry: all its commands are `syscap hook`.
fn is_ours(entry: Text<'_>) -> Result<bool, &'static str> {
    let Ok(entry) = json::to_data(entry.0.as_bytes()) else { return Ok(false) };
    let hooks = entry.item().get("hooks");
    let commands: Vec<bool> =
        hooks.map(|hooks| hooks.elements().map(is_our_command).collect()).unwrap_or_default();
    match (commands.contains(&true), commands.contains(&false)) {
        (true, true) => Err("has `syscap hook` in a group with other hooks: take it out first"),
        (ours, _) => Ok(ours),
    }
}

fn is_our_command(hook: Item<'_>) -> bool {
    let command = hook.get("command").and_then(Item::as_text).unwrap_or_default();
    let words = syscap_gateway::split(command).unwrap_or_default();
    let name = |word: &String| Path::new(word).file_name().is_some_and(|name| name == "syscap");
    words.first().is_some_and(name) && words.get(1).is_some_and(|word| word == "hook")
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = r#"{"hooks":{"PreToolUse":[{"matcher":"*","hooks":[{"type":"command","command":"/a/syscap hook h"}]}],"Stop":[{"hooks":[{"command":"/a/syscap hook h"}]}]}}"#;

    #[test]
    fn all_that_is_not_the_hooks_keeps_its_bytes() {
        let settings = "{ \"model\" : \"x\", \"n\": 1.50,\n\t\"hooks\": {\"Other\": [ 1, {} ], \
                        \"PreToolUse\": [ {\"hooks\": [{\"command\": \"lint, [\\\"a\\\"] }\"}]} , \
                        {\"hooks\": [{\"command\": \"'/old place/syscap' hook old\"}]} ]},\n \
                        \"z\": {\"a\": [\"}\"]} }\n";
        let after = merged(settings, OURS).unwrap();
        for kept in [
            "{ \"model\" : \"x\", \"n\": 1.50,\n\t\"hooks\": ",
            "\"Other\": [ 1, {} ]",
            "{\"hooks\": [{\"command\": \"lint, [\\\"a\\\"] }\"}]}",
            ",\n \"z\": {\"a\": [\"}\"]} }\n",
        ] {
            assert!(after.contains(kept), "{after}");
        }
        assert!(!after.contains("old place"), "{after}");
        assert_eq!(after.matches("/a/syscap hook h").count(), 2);
        // Once more it is the same.
        assert_eq!(merged(&after, OURS).unwrap(), after);
    }

    #[test]
    fn hooks_are_added_where_there_are_none() {
        let wanted = json::to_data(OURS.as_bytes()).unwrap();
        for empty in ["{}", " {\n}\n", "{\"hooks\": {}}"] {
            let after = merged(empty, OURS).unwrap();
            assert_eq!(json::to_data(after.as_bytes()).unwrap(), wanted, "{after}");
        }
        let after = merged("{\"a\": 1}\n", OURS).unwrap();
        assert!(after.starts_with("{\"a\": 1,\n") && after.ends_with("}\n"), "{after}");
    }

    #[test]
    fn what_was_put_in_is_taken_out() {
        let home = Path::new("h");
        for first in [
            "{}",
            "{\"a\": 1}\n",
            "{\n  \"hooks\": {\"Stop\": [ {\"hooks\": [{\"command\": \"lint\"}]} ]},\n  \"z\": [1 , 2]\n}\n",
            "{\"hooks\": {\"Other\": []}}",
        ] {
            let written = merged(first, OURS).unwrap();
            let TakenOut { hooks, after, .. } = taken_out(&written, home).unwrap().unwrap();
            assert_eq!(merged(first, &hooks).unwrap(), written, "{first}");
            let data = |text: &str| json::to_data(text.as_bytes()).unwrap();
            assert_eq!(data(&after), data(first), "{after}");
            assert_eq!(taken_out(&after, home).unwrap(), None);
            assert_eq!(taken_out(&written, Path::new("other")).unwrap(), None);
        }
        // What has come since stays, byte for byte.
        let written = merged("{\"a\": 1}\n", OURS).unwrap();
        let since = written
            .replace("\"a\": 1", "\"a\" :  2, \"b\": [ ]")
            .replace("\"Stop\": [", "\"Stop\": [ {\"hooks\":  [{\"command\": \"mine\"}]}, ");
        let TakenOut { after, edited, .. } = taken_out(&since, home).unwrap().unwrap();
        assert!(edited.is_empty(), "{edited:?}");
        assert!(after.starts_with("{\"a\" :  2, \"b\": [ ],\n"), "{after}");
        assert!(after.contains("\"Stop\": [ {\"hooks\":  [{\"command\": \"mine\"}]}]"), "{after}");
        assert!(!after.contains("syscap") && !after.contains("PreToolUse"), "{after}");
        // What somebody has edited is left, and the rest goes.
        let mine = written.replacen("\"matcher\":\"*\"", "\"matcher\":\"Bash\"", 1);
        let TakenOut { after, edited, .. } = taken_out(&mine, home).unwrap().unwrap();
        assert!(edited.len() == 1 && edited[0].contains("Bash"), "{edited:?}");
        assert!(after.contains(&edited[0]) && !after.contains("Stop"), "{after}");
    }

    #[test]
    fn unreadable_settings_are_refused() {
        for settings in [
            "",
            "[]",
            "{\"a\": 1,}",
            "// mine\n{}",
            "{\"a\": 1, \"a\": 2}",
            "{\"hooks\": []}",
            "{\"hooks\": {\"PreToolUse\": {}}}",
            "{\"hooks\": {\"Stop\": [{\"hooks\": [{\"command\": \"syscap hook h\"}, \
             {\"command\": \"lint\"}]}]}}",
        ] {
            merged(settings, OURS).unwrap_err();
        }
    }
}
