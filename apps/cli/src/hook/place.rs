//! Where a client's shell runs a command: what the command is read by.
//!
//! What can't be told for certain is left out, and then the command is judged as one that may do
//! anything.

use std::{
    collections::{BTreeMap, BTreeSet},
    env, fs,
    path::{Path, PathBuf},
};

use syscap::format::cbor::{Canonical, Encoder, Item, MapBuilder, Profile};
use syscap::syscalls::marks::Mark;
use syscap_commands::{Place, Repository, analyse, is_plain_config};

use super::{client::Client, finding::finding, unclear::Unclear};

/// Longest configuration of a repository that is read, in bytes.
const CONFIG_BYTES_MAX: u64 = 64 << 10;
/// Most folders of `PATH`.
const SEARCH_MAX: usize = 64;
/// Arguments of a client's shell that change nothing about what a command does.
const CLAUDE_CODE: &[&str] = &["command", "description", "run_in_background", "timeout"];
const GEMINI_CLI: &[&str] = &["command", "description"];

impl Client {
    /// Where the shell of a use runs, and what its command would do there, as the argument `place`
    /// of the call. It runs in the process that reads the command.
    pub(super) fn place(self, folder: Option<&str>, args: Item<'_>) -> Option<Canonical> {
        let command = args.get("command").and_then(Item::as_text)?;
        match self.placed(folder, args, command) {
            Ok(map) => Some(map.finish()),
            // It has no finding, so the command may do anything.
            Err(why) => unclear(MapBuilder::new(), &[why]).map(MapBuilder::finish),
        }
    }

    fn placed(
        self,
        folder: Option<&str>,
        args: Item<'_>,
        command: &str,
    ) -> Result<MapBuilder, Unclear> {
        let known = match self {
            Self::ClaudeCode => CLAUDE_CODE,
            Self::GeminiCli => GEMINI_CLI,
        };
        if args.entries().any(|(key, _)| !known.contains(&key)) {
            return Err(Unclear::Arguments);
        }
        self.expect_a_known_shell()?;
        let folder = folder.map(Path::new).ok_or(Unclear::Folder)?;
        // One that is reached by a link has another parent by name than in truth.
        let real = folder.canonicalize().ok().filter(|real| real == folder);
        let real = real.ok_or(Unclear::Folder)?;
        let name = real.to_str().ok_or(Unclear::Folder)?;
        let Programs { search, found } = programs(command).ok_or(Unclear::Search)?;
        let mut place = Place::at(name).ok_or(Unclear::Folder)?;
        // A script by its path is the project's where it lies in one of these. The server asks the
        // token whether they are.
        let mut own = BTreeSet::from([name.to_owned()]);
        let mut map = MapBuilder::new().text("folder", name);
        if let Some(home) = env::var_os("HOME").map(PathBuf::from).filter(|h| is_plain(h)) {
            let home = home.to_str().ok_or(Unclear::Environment)?;
            map = map.text("home", home);
            place.home = Some(home.to_owned());
        }
        if let Some(top) = repository(&real) {
            let top = top.to_str().ok_or(Unclear::Folder)?;
            map = map.text("repository", top);
            own.insert(top.to_owned());
            place.repository = Repository::Plain(top.to_owned());
        }
        map = map.item("own", list(&own).ok_or(Unclear::Folder)?.item());
        map = map.item("search", list(&search).ok_or(Unclear::Search)?.item());
        let programs = found.iter().fold(MapBuilder::new(), |map, (k, v)| map.text(k, v));
        map = map.item("found", programs.finish().item());
        (place.search, place.found, place.writable) = (search, found, own);
        let said = analyse(command, &place);
        let found = finding(&said).to_data().ok_or(Unclear::Part)?;
        map = map.item("finding", found.item());
        match Unclear::all(&said.reasons) {
            all if all.is_empty() => Ok(map),
            all => unclear(map, &all).ok_or(Unclear::Part),
        }
    }

    /// The shell that this client would run here, if its commands can't be read: all of them ask.
    pub(super) fn unread_shell(self) -> Option<String> {
        let shell = ["CLAUDE_CODE_SHELL", "SHELL"]
            .into_iter()
            .find_map(|name| env::var(name).ok().filter(|value| !value.is_empty()));
        match self {
            Self::ClaudeCode if self.known_shell().is_err() => Some(shell.unwrap_or_default()),
            _ => None,
        }
    }

    /// Claude Code runs the user's shell, Gemini CLI bash.
    fn expect_a_known_shell(self) -> Result<(), Unclear> {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let names = env::vars_os().map(|(name, _)| name);
        let mut names = names.filter_map(|name| name.into_string().ok());
        // They change what `cd` and programs' names mean, or run something first.
        if set("CDPATH") || set("BASH_ENV") || names.any(|name| name.starts_with("BASH_FUNC_")) {
            return Err(Unclear::Environment);
        }
        self.known_shell()
    }

    fn known_shell(self) -> Result<(), Unclear> {
        let set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        if self == Self::GeminiCli {
            return Ok(());
        }
        if set("CLAUDE_CODE_SHELL") {
            return Err(Unclear::Environment);
        }
        let known = env::var_os("SHELL").is_some_and(|shell| {
            let name = Path::new(&shell).file_name().and_then(|name| name.to_str());
            matches!(name, Some("bash" | "sh" | "dash"))
        });
        if known { Ok(()) } else { Err(Unclear::Shell) }
    }
}

/// Where a command runs, and what it does, as far as that can be told.
#[derive(Debug, Default)]
pub(super) struct Placed {
    pub(super) place: Option<Canonical>,
    /// Why it can't be told what it does.
    pub(super) unclear: Vec<Unclear>,
    /// What else it does.
    pub(super) marks: BTreeSet<Mark>,
}

/// Says so in the call too, for who reads the log; it is not what decides.
pub(super) fn unclear(map: MapBuilder, why: &[Unclear]) -> Option<MapBuilder> {
    let names: Vec<&str> = why.iter().map(|why| why.name()).collect();
    Some(map.item("unclear", list(&names)?.item()))
}

/// The folders of `PATH`, and programs by their names.
struct Programs {
    search: Vec<String>,
    found: BTreeMap<String, String>,
}

/// The folders of `PATH`, and the file of each program that the command names.
fn programs(command: &str) -> Option<Programs> {
    let path = env::var_os("PATH")?;
    let given: Vec<PathBuf> = env::split_paths(&path).collect();
    // The shell looks for others, and for an empty one, in its own folder, and not in the hook's.
    if given.len() > SEARCH_MAX || !given.iter().all(|folder| folder.is_absolute()) {
        return None;
    }
    // One that is not there may be made, and is compared as it is written.
    let real = |folder: &PathBuf| folder.canonicalize().unwrap_or_else(|_| folder.clone());
    let folders: Vec<PathBuf> = given.iter().map(real).collect();
    let names = folders.iter().map(|folder| folder.to_str().map(str::to_owned));
    let search = names.collect::<Option<Vec<String>>>()?;
    let needs: BTreeSet<String> = analyse(command, &Place::default()).needs;
    let mut found = BTreeMap::new();
    for name in needs {
        let files = folders.iter().map(|folder| folder.join(&name));
        // The first that could be run, and what it is in truth.
        let Some(file) = files.into_iter().find(|file| is_program(file)) else { continue };
        let file = file.canonicalize().ok()?;
        found.insert(name, file.to_str()?.to_owned());
    }
    Some(Programs { search, found })
}

fn list<'a, L>(texts: &'a L) -> Option<Canonical>
where
    &'a L: IntoIterator<Item: AsRef<str>, IntoIter: ExactSizeIterator>,
{
    let (mut encoder, texts) = (Encoder::new(), texts.into_iter());
    encoder.array(texts.len());
    texts.for_each(|text| encoder.text(text.as_ref()));
    Canonical::check(encoder.into_bytes(), Profile::DATA).ok()
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |meta: fs::Metadata| meta.is_file() && meta.permissions().mode() & 0o111 != 0;
    fs::metadata(file).is_ok_and(runs)
}

fn is_plain(folder: &Path) -> bool {
    folder.is_absolute() && folder.canonicalize().is_ok_and(|real| real == *folder)
}

/// The top of the repository that git finds, where nothing of its own runs: no hooks, nothing but
/// plain keys in its configuration, no submodules.
fn repository(folder: &Path) -> Option<PathBuf> {
    // Who wrote it, what a person is shown, and what is used for remotes alone, which are asked
    // about as such.
    let own = [
        "GIT_AUTHOR_",
        "GIT_COMMITTER_",
        "GIT_EDITOR",
        "GIT_PAGER",
        "GIT_TERMINAL_PROMPT",
        "GIT_ASKPASS",
        "GIT_SSH",
        "GIT_SSL_",
    ];
    let told =
        |name: &str| name.starts_with("GIT_") && !own.iter().any(|own| name.starts_with(own));
    if env::vars_os().any(|(name, _)| name.to_str().is_none_or(told)) {
        return None;
    }
    for top in folder.ancestors() {
        let git = top.join(".git");
        match fs::symlink_metadata(&git) {
            Ok(meta) if meta.is_dir() => {
                return (runs_nothing(&git) == Some(true)).then(|| top.to_path_buf());
            }
            // Another folder's repository.
            Ok(_) => return None,
            Err(_) if is_bare(top) => return None,
            Err(_) => {}
        }
    }
    None
}

fn is_bare(folder: &Path) -> bool {
    ["HEAD", "objects", "refs"].iter().all(|name| folder.join(name).exists())
}

fn runs_nothing(git: &Path) -> Option<bool> {
    let config = git.join("config");
    if fs::metadata(&config).ok()?.len() > CONFIG_BYTES_MAX {
        return None;
    }
    let plain = is_plain_config(&fs::read_to_string(config).ok()?);
    // Objects of another repository, its submodules, or a configuration of this folder's alone.
    let more = ["commondir", "config.worktree", "modules", "objects/info/alternates"];
    let plain = plain && more.iter().all(|name| fs::symlink_metadata(git.join(name)).is_err());
    let mut hooks = match fs::read_dir(git.join("hooks")) {
        Ok(hooks) => hooks,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Some(plain),
        Err(_) => return None,
    };
    let sample = |name: std::ffi::OsString| name.to_str().is_some_and(|n| n.ends_with(".sample"));
    let samples = hooks.all(|hook| hook.is_ok_and(|hook| sample(hook.file_name())));
    Some(plain && samples)
}
