//! Each operation beneath the base does what plain std does in a copy, unless it escapes.

use std::fs;
use std::io::{Error, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use syscap_syscalls::beneath::{Effect, Existing, FolderMode, FsError, Parents};

use crate::beneath::support::{Links, World, names, snapshot};

const FILES: [&str; 4] = ["f", "e", "d/f2", "d/d2/f3"];
const LINKS: [(&str, &str); 26] = [
    ("l_file", "f"),
    ("l_dir", "d"),
    ("l_dot", "./d/./f2"),
    ("l_slashes", "d//d2///f3"),
    ("l_down_up", "d/../f"),
    ("l_down_up_dir", "d/d2/.."),
    ("l_dir_slash", "d/"),
    ("l_dir_dot", "d/."),
    ("l_file_slash", "f/"),
    ("l_file_dot", "f/."),
    ("l_file_up", "f/../f"),
    ("l_missing", "missing"),
    ("l_missing_slash", "missing/"),
    ("l_missing_up", "missing/../f"),
    ("l_missing_deep", "d/missing/x"),
    ("l_chain", "l_file"),
    ("l_chain_dir", "d/l_up_dir"),
    ("l_loop", "l_loop"),
    ("l_long", "l_loop/x"),
    ("d/l_up", "../f"),
    ("d/l_up_dir", "../d/d2"),
    ("l_out", "../outside/secret"),
    ("l_out_dir", "../outside"),
    ("l_out_new", "../outside/new"),
    ("l_out_up", "d/../../outside"),
    // Refused although they end inside: the path leaves the base.
    ("l_back", "../inside/f"),
];

fn world() -> World {
    let world = World::fast();
    for dir in ["d/d2", "empty"] {
        fs::create_dir_all(world.inside(dir)).unwrap();
    }
    for path in FILES {
        fs::write(world.inside(path), if path == "e" { "" } else { path }).unwrap();
    }
    for (path, target) in LINKS {
        symlink(target, world.inside(path)).unwrap();
    }
    symlink(world.outside("secret"), world.inside("l_abs")).unwrap();
    world
}

/// Every name of the tree, and below each a file, a folder, a link and what doesn't exist.
fn paths() -> Vec<String> {
    let mut tops: Vec<String> = LINKS.iter().map(|(path, _)| (*path).to_owned()).collect();
    tops.extend(FILES.map(str::to_owned));
    tops.extend(["", "d", "d/d2", "empty", "missing", "l_abs"].map(str::to_owned));
    let mut all = Vec::new();
    for top in tops {
        for below in ["f", "f2", "d2", "f3", "secret", "new", "new/new", "l_up", "l_up_dir/f3"] {
            all.push(format!("{top}/{below}").trim_start_matches('/').to_owned());
        }
        all.push(top);
    }
    all.sort();
    all.dedup();
    all
}

/// Our error for the system's.
fn class(error: &Error) -> FsError {
    match error.raw_os_error().unwrap() {
        2 => FsError::NotFound,
        17 => FsError::Exists,
        20 => FsError::NotDirectory,
        21 => FsError::IsDirectory,
        40 => FsError::Link,
        other => FsError::Io(other),
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Op {
    Read,
    List,
    Write,
    Create,
    WriteMaking,
}

/// What an operation answers: bytes of a file, or the names of a directory, joined.
type Answer = Result<Vec<u8>, FsError>;

fn ours(world: &World, op: Op, path: &str, links: Links) -> Answer {
    let write = |existing, parents| {
        let done = world.write(path, b"written", existing, parents, links);
        done.map(|_| Vec::new()).map_err(|failure| {
            assert!(failure.effect == Effect::NotDone || failure.folders > 0, "{failure:?}");
            failure.error
        })
    };
    match op {
        Op::Read => world.read(path, links),
        Op::List => world.list(path, links).map(|names| names.join(&b"/"[..])),
        Op::Write => write(Existing::Replace, Parents::Require),
        Op::Create => write(Existing::Refuse, Parents::Require),
        Op::WriteMaking => write(Existing::Replace, Parents::Create(FolderMode::Shared)),
    }
}

fn std_of(world: &World, op: Op, path: &str) -> Answer {
    let full = if path.is_empty() { world.inside(".") } else { world.inside(path) };
    let done = match op {
        Op::Read => fs::read(full),
        Op::List => fs::read_dir(full).map(|entries| {
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().as_bytes().to_vec()).collect();
            names.sort();
            names.join(&b"/"[..])
        }),
        Op::Write => fs::write(full, b"written").map(|()| Vec::new()),
        Op::Create => fs::File::create_new(full).and_then(|mut file| {
            file.write_all(b"written")?;
            Ok(Vec::new())
        }),
        Op::WriteMaking => fs::create_dir_all(full.parent().unwrap())
            .and_then(|()| fs::write(full, b"written"))
            .map(|()| Vec::new()),
    };
    done.map_err(|error| class(&error))
}

/// Whether a link stands on the way, or at the end.
fn passes_link(world: &World, path: &str) -> (bool, bool) {
    let mut full = world.inside("");
    let mut met = Vec::new();
    for name in names(path) {
        full.push(name);
        met.push(full.is_symlink());
    }
    let at_end = met.pop().unwrap_or(false);
    (met.contains(&true), at_end)
}

/// Where std would go: the real path of what exists of it, with links followed.
fn real(path: &Path) -> Option<PathBuf> {
    if let Ok(real) = path.canonicalize() {
        return Some(real);
    }
    if let Ok(target) = path.read_link() {
        // A loop ends in no answer.
        let next = path.parent()?.canonicalize().ok()?.join(target);
        return (next != path).then(|| real(&next)).flatten();
    }
    real(path.parent()?)
}

fn escapes(world: &World, path: &str) -> bool {
    let real = real(&world.inside(path));
    real.is_some_and(|real| !real.starts_with(world.inside("").canonicalize().unwrap()))
}

/// Links to what is no folder with something behind it, and where they lead by name: std says that
/// it is no folder, which would tell of a place what its owner did not let be looked at.
const BY_NAME: [(&str, &str); 5] = [
    ("l_file_slash", "f"),
    ("l_file_dot", "f"),
    ("l_file_up", "f"),
    ("l_missing_slash", "missing"),
    ("l_missing_up", "f"),
];

/// The path that std is asked for.
fn by_name(path: &str) -> String {
    let (top, below) = path.split_once('/').unwrap_or((path, ""));
    let found = BY_NAME.iter().find(|(link, _)| *link == top);
    let top = found.map_or(top, |(_, target)| target);
    format!("{top}/{below}").trim_end_matches('/').to_owned()
}

/// Runs one operation in both worlds and compares answers and trees.
fn compare(op: Op, path: &str, links: Links, expect: impl FnOnce(&World, Answer) -> Answer) {
    let (here, there) = (world(), world());
    let before = snapshot(here.root());
    let theirs = match links {
        Links::Refuse => std_of(&there, op, path),
        Links::FollowWithin => std_of(&there, op, &by_name(path)),
    };
    let expected = expect(&here, theirs.clone());
    let answer = ours(&here, op, path, links);
    assert_eq!(answer, expected, "{op:?} {path} {links:?}");
    if expected == theirs && theirs.is_ok() {
        let strip = |world: &World| {
            snapshot(world.root()).into_iter().filter(not_absolute).collect::<Vec<_>>()
        };
        assert_eq!(strip(&here), strip(&there), "{op:?} {path} {links:?}");
    } else if expected.is_err() {
        assert_eq!(snapshot(here.root()), before, "{op:?} {path} {links:?}");
    }
}

/// The one absolute link names its own world.
fn not_absolute(entry: &(PathBuf, (String, Vec<u8>))) -> bool {
    entry.0 != Path::new("inside/l_abs")
}

#[test]
fn links_followed_as_std_does_unless_they_escape() {
    let mut escaped = 0;
    for path in paths() {
        for op in [Op::Read, Op::List, Op::Write] {
            compare(op, &path, Links::FollowWithin, |world, theirs| {
                if escapes(world, &path) || path.starts_with("l_back") {
                    escaped += 1;
                    return Err(FsError::Escapes);
                }
                theirs
            });
        }
    }
    assert!(escaped > 100, "{escaped}");
}

#[test]
fn links_refused_and_the_rest_as_std_does() {
    let mut linked = 0;
    for path in paths() {
        for op in [Op::Read, Op::List, Op::Write, Op::Create, Op::WriteMaking] {
            compare(op, &path, Links::Refuse, |world, theirs| match passes_link(world, &path) {
                // As with std: something with this name is there.
                (false, true) if op == Op::Create => Err(FsError::Exists),
                // The base has no name that could be taken.
                (false, false) if op == Op::Create && path.is_empty() => Err(FsError::IsDirectory),
                // std's mkdir names the file that is in its way.
                (false, false) if theirs == Err(FsError::Exists) && op == Op::WriteMaking => {
                    Err(FsError::NotDirectory)
                }
                (false, false) => theirs,
                _ => {
                    linked += 1;
                    Err(FsError::Link)
                }
            });
        }
    }
    assert!(linked > 500, "{linked}");
}
