//! Programs that do nothing but tell how they were called.

use std::{
    collections::BTreeSet,
    fs,
    os::unix::fs::{PermissionsExt as _, symlink},
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use syscap_commands::{Place, Repository, Said, analyse};

/// Told of, and not run.
const STUBS: &[&str] = &[
    "awk",
    "bash-script",
    "cargo",
    "cat",
    "chmod",
    "cp",
    "curl",
    "cut",
    "date",
    "diff",
    "docker",
    "du",
    "find-stub",
    "git",
    "grep",
    "head",
    "jq",
    "ln",
    "ls",
    "make",
    "mkdir",
    "mv",
    "node",
    "npm",
    "pytest",
    "python",
    "python3",
    "rg",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sleep",
    "sort",
    "ssh",
    "stat",
    "tail",
    "tee",
    "touch",
    "tr",
    "tree",
    "uniq",
    "wc",
    "wget",
    "which",
    "z",
    "id",
    "realpath",
    "basename",
    "dirname",
    "nproc",
    "uname",
    "whoami",
    "file",
    "cmp",
    "yarn",
    "go",
];
/// Real ones, which run what they are given.
const REAL: &[&str] = &["bash", "env", "find", "nice", "nohup", "sh", "timeout", "xargs"];

pub(crate) struct Stubs {
    folder: tempfile::TempDir,
}

/// What a shell did.
pub(crate) struct Ran {
    pub(crate) programs: Vec<Vec<String>>,
    /// Files that were made or changed, by their paths.
    pub(crate) files: Vec<String>,
}

impl Stubs {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        fs::create_dir(root.join("bin")).unwrap();
        for name in STUBS {
            // Each into a file of its own: those of a pipeline run at once.
            let log = root.join("log");
            let text =
                format!("#!/bin/sh\nprintf '%s\\0' {name} \"$@\" > '{}'/$$\n", log.display());
            let path = root.join("bin").join(name);
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        for name in REAL {
            let real = ["/bin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
            let real = real.iter().find(|path| path.exists()).expect("a usual program");
            symlink(real, root.join("bin").join(name)).unwrap();
        }
        Self { folder }
    }

    fn root(&self) -> std::path::PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn project(&self) -> std::path::PathBuf {
        self.root().join("project")
    }

    pub(crate) fn analyse(&self, text: &str) -> Said {
        let project = self.project().to_str().unwrap().to_owned();
        let mut place = Place::at(&project).unwrap();
        place.home = Some(self.root().join("home").to_str().unwrap().to_owned());
        let bin = self.root().join("bin").to_str().unwrap().to_owned();
        for name in STUBS.iter().chain(REAL) {
            place.found.insert((*name).to_owned(), format!("{bin}/{name}"));
        }
        place.search = vec![bin];
        place.writable = [project.clone()].into();
        place.repository = Repository::Plain(project);
        analyse(text, &place)
    }

    /// In a folder that is made anew each time.
    pub(crate) fn run(&self, shell: &str, text: &str) -> Ran {
        let (root, project) = (self.root(), self.project());
        for folder in ["project", "home", "log"] {
            let folder = root.join(folder);
            drop(fs::remove_dir_all(&folder));
            fs::create_dir_all(&folder).unwrap();
        }
        fs::create_dir_all(project.join("sub/deep")).unwrap();
        for file in ["a", "b", "f", "sub/c", "sub/d.txt", "e.txt"] {
            fs::write(project.join(file), "old").unwrap();
        }
        let before = files(&project);
        let mut child = Command::new(format!("/bin/{shell}"))
            .args(["-c", text])
            .env_clear()
            .env("PATH", root.join("bin"))
            .env("HOME", root.join("home"))
            .current_dir(&project)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let until = Instant::now() + Duration::from_secs(2);
        while child.try_wait().unwrap().is_none() {
            if Instant::now() > until {
                child.kill().unwrap();
                child.wait().unwrap();
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        // What goes on in the background is soon over.
        if text.contains('&') || text.contains("<(") {
            std::thread::sleep(Duration::from_millis(30));
        }
        let log = fs::read_dir(root.join("log")).unwrap();
        let call = |text: String| {
            let words = text.strip_suffix('\0').unwrap_or(&text);
            words.split('\0').map(str::to_owned).collect::<Vec<_>>()
        };
        let calls = log.map(|entry| fs::read(entry.unwrap().path()).unwrap());
        let programs = calls.map(|text| call(String::from_utf8_lossy(&text).into_owned()));
        let programs = programs.filter(|words| !words[0].is_empty()).collect();
        let after = files(&project);
        let changed = after.difference(&before);
        let changed = changed.map(|(path, _)| format!("{}/{path}", project.to_str().unwrap()));
        Ran { programs, files: changed.collect() }
    }
}

/// Files below a folder, with what they hold.
fn files(folder: &Path) -> BTreeSet<(String, Vec<u8>)> {
    let mut found = BTreeSet::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(at) = folders.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            let short = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            match path.is_dir() {
                true => folders.push(path),
                false => drop(found.insert((short, fs::read(&path).unwrap_or_default()))),
            }
        }
    }
    found
}
