//! `init`, and the interface as a whole.

use std::{ffi::OsStr, fs, os::unix::ffi::OsStrExt as _, os::unix::fs::PermissionsExt};

use crate::cli::support::{TestHome, is_hash, names, run};

#[test]
fn a_home_is_made_once() {
    let home = TestHome::new();
    let made = names(&home.beside("home"));
    for name in ["files", "home.db", "keys", "lock", "trust.cbor"] {
        assert!(made.iter().any(|made| made == name), "{name} in {made:?}");
    }
    assert_eq!(names(&home.beside("home/keys")).len(), 6);
    run(["init", &home.path()]).failed(4);
    assert_eq!(home.verify(), 0);
}

#[test]
fn init_says_where_things_are() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("base")).unwrap();
    let flags = ["--no-passphrase", "--json", "--base", &at("base"), "--trust-out", &at("trust")];
    let made = run(["init", &at("home")].into_iter().chain(flags)).fine().one();
    assert!(is_hash(&made["home_id"]));
    for key in ["home", "keys", "trust", "trust_out", "files"] {
        let path = made[key].as_str().unwrap();
        assert!(fs::metadata(path).is_ok(), "{key}: {path}");
    }
    assert_eq!(fs::read(at("trust")).unwrap(), fs::read(at("home/trust.cbor")).unwrap());
    assert!(fs::metadata(at("base/shared")).is_ok());
    assert_eq!(fs::metadata(at("home")).unwrap().permissions().mode() & 0o777, 0o700);
}

#[test]
fn init_says_what_opens_files() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    assert_eq!(run(["init", &home, "--opener", "lexical"]).code, 2);
    run(["init", &home, "--no-passphrase", "--opener", "cap_std"]).fine();
    assert_eq!(fs::read_to_string(format!("{home}/opener")).unwrap(), "cap_std");
}

/// What can be seen to fail is refused before anything is made.
#[test]
fn init_leaves_nothing_half_made() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::write(at("trust"), "mine").unwrap();
    fs::create_dir(at("empty")).unwrap();
    run(["init", &at("home"), "--trust-out", &at("trust")]).failed(1);
    for nowhere in ["missing/trust", "missing/deep/trust", "trust/trust"] {
        let line = run(["init", &at("home"), "--trust-out", &at(nowhere)]).failed(1).err;
        let folder = at(nowhere.rsplit_once('/').unwrap().0);
        assert!(line.starts_with(&format!("syscap: {folder}: ")), "{line}");
    }
    assert_eq!(fs::read_to_string(at("trust")).unwrap(), "mine");
    for base in [at("missing"), at("trust"), at("")] {
        run(["init", &at("home"), "--base", &base]).failed(2);
    }
    run(["init", &at("empty"), "--base", &at("empty")]).failed(2);
    run(["init", &at("")]).failed(2);
    run(["init", &at("trust")]).failed(1);
    assert_eq!(names(folder.path()), ["empty", "trust"]);
    assert_eq!(names(&folder.path().join("empty")), [""; 0]);
    run(["init", &at("empty"), "--no-passphrase"]).fine();
}

#[test]
fn a_link_to_a_folder_around_the_home_is_no_base() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("base")).unwrap();
    std::os::unix::fs::symlink(folder.path(), at("base/up")).unwrap();
    run(["init", &at("home"), "--base", &at("base/up")]).failed(2);
    assert_eq!(names(folder.path()), ["base"]);
}

#[test]
fn a_base_of_another_home_is_shared_or_taken_by_the_operators_word() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    fs::create_dir(at("base")).unwrap();
    let init = |home: &str, more: &[&str]| {
        let (home, base) = (at(home), at("base"));
        run([&["init", home.as_str(), "--no-passphrase", "--base", &base], more].concat())
    };
    init("one", &[]).fine();
    for more in [&[][..], &["--take-base"]] {
        let line = init("two", more).failed(4).err;
        assert!(line.contains(&at("one")) && line.contains("--shared-base"), "{line}");
    }
    assert_eq!(init("two", &["--take-base", "--shared-base"]).code, 2);
    assert_eq!(names(folder.path()), ["base", "one"]);
    init("two", &["--shared-base"]).fine();
    fs::remove_dir_all(at("one")).unwrap();
    init("three", &["--take-base"]).fine();
    let token = ["--agent", "a", "--tool", "fs.read", "--read", "workspace"];
    for home in ["two", "three"] {
        run([&["token", "issue", at(home).as_str()], &token[..]].concat()).fine();
    }
    let level = || {
        let found = run(["doctor", &at("three"), "--json"]).json();
        found.iter().find(|one| one["what"] == "base").unwrap()["level"].clone()
    };
    assert_eq!(level(), "ok");
    fs::remove_file(folder.path().join("base/agents/.home")).unwrap();
    assert_eq!(level(), "note");
}

#[test]
fn every_command_has_help_and_usage_errors_are_2() {
    let help = run(["help", "exit-codes"]).fine().out;
    for code in ["0 ", "1 ", "2 ", "3 ", "4 ", "5 ", "10 ", "11 ", "12 "] {
        assert!(help.lines().any(|line| line.trim_start().starts_with(code)), "{code}");
    }
    let commands: [&[&str]; 41] = [
        &["init"],
        &["keys", "list"],
        &["keys", "new"],
        &["keys", "prove"],
        &["keys", "add"],
        &["keys", "remove"],
        &["keys", "rotate"],
        &["policy", "check"],
        &["policy", "hash"],
        &["policy", "show"],
        &["policy", "set"],
        &["policy", "explain"],
        &["policy", "test"],
        &["policy", "diff"],
        &["policy", "who-can"],
        &["policy", "replay"],
        &["state", "show"],
        &["state", "propose"],
        &["token", "issue"],
        &["token", "list"],
        &["token", "show"],
        &["token", "revoke"],
        &["revoke"],
        &["cancel"],
        &["freeze"],
        &["thaw"],
        &["resume", "import"],
        &["resume", "export"],
        &["tools", "list"],
        &["tools", "show"],
        &["tools", "accept"],
        &["tools", "forget"],
        &["call"],
        &["serve"],
        &["top"],
        &["log", "show"],
        &["log", "export"],
        &["verify"],
        &["doctor"],
        &["erase"],
        &["demo"],
    ];
    for command in commands {
        assert_ne!(run(command.iter().chain(&["--help"])).fine().out, "");
        assert_eq!(run(command.iter().chain(&["--frob"])).code, 2, "{command:?}");
    }
    for word in ["frob", "token", "log", "policy", "tools", "resume", "keys", "init", "verify"] {
        assert_eq!(run([word]).code, 2, "{word}");
    }
    // Alone it says how to begin.
    assert_eq!(run([""; 0]).code, 0);
}

#[test]
fn a_home_that_is_missing_is_4() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join("home").to_str().unwrap().to_owned();
    let id = "0".repeat(64);
    let commands: [&[&str]; 23] = [
        &["keys", "list", &home],
        &["keys", "rotate", &home, "--role", "issuer"],
        &["token", "issue", &home, "--agent", "a", "--tool", "echo"],
        &["token", "list", &home],
        &["token", "show", &home, &id],
        &["token", "revoke", &home, &id],
        &["revoke", &home, &id],
        &["revoke", &home, "--epoch", "1"],
        &["cancel", &home, "7"],
        &["freeze", &home, "--all"],
        &["thaw", &home, "--all"],
        &["resume", "import", &home, "x"],
        &["resume", "export", &home, "--agent", "a"],
        &["tools", "list", &home],
        &["tools", "show", &home, "echo"],
        &["tools", "accept", &home, "echo"],
        &["tools", "forget", &home, "echo"],
        &["serve", &home],
        &["top", &home, "--once"],
        &["call", &home, "--agent", "a", "--token", &id],
        &["log", "show", &home],
        &["log", "export", &home, "--out", "x"],
        &["verify", &home],
    ];
    for command in commands {
        run(command).failed(4);
    }
    assert_eq!(run(["doctor", &home]).code, 1);
    assert_eq!(names(folder.path()), [""; 0]);
}

/// A path is what the system has, also where it is no UTF-8: it is used as it stands; and where it
/// would have to stand in JSON, that is said, and no other path takes its place.
#[test]
fn a_path_need_not_be_utf_8() {
    let folder = tempfile::tempdir().unwrap();
    let home = folder.path().join(OsStr::from_bytes(b"h\xe9"));
    let run = |words: &[&str]| {
        let words = words.iter().map(|word| match *word {
            "HOME" => home.as_os_str(),
            word => OsStr::new(word),
        });
        run(words.collect::<Vec<_>>())
    };
    run(&["init", "HOME", "--no-passphrase"]).fine();
    run(&["verify", "HOME"]).fine();
    run(&["token", "issue", "HOME", "--agent", "a", "--tool", "echo"]).fine();
    let asked: [&[&str]; 3] = [
        &["mcp", "HOME", "--agent", "a", "--builtins", "--print-config"],
        &["mcp", "--agent", "a", "HOME", "--print-config", "--", "HOME"],
        &["hook", "HOME", "--agent", "a", "--client", "claude-code", "--setup", "--print"],
    ];
    for words in asked {
        let asked = run(words);
        assert_eq!((asked.code, asked.out.as_str()), (2, ""), "{words:?}: {}", asked.err);
    }
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "no other home was made");
}

/// Root at another's home goes on as its owner: the owner can use all that root has made, and an
/// emergency stop reaches the owner's server. Anybody else is told who may.
#[test]
fn home_has_one_user() {
    const OWNER: u32 = 4_711;
    if !rustix::process::geteuid().is_root() {
        return println!("skipped: another user's home: only root can make one");
    }
    let home = TestHome::new();
    let all = |path: &str| {
        let mut found = vec![std::path::PathBuf::from(path)];
        let mut at = 0;
        while let Some(next) = found.get(at).cloned() {
            at += 1;
            found.extend(fs::read_dir(next).into_iter().flatten().flatten().map(|one| one.path()));
        }
        found
    };
    let open = |path: &std::path::Path| {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    };
    open(home.beside("home").parent().unwrap());
    for path in all(&home.path()) {
        std::os::unix::fs::lchown(&path, Some(OWNER), Some(OWNER)).unwrap();
    }
    for command in [
        &["freeze", &home.path(), "--all"][..],
        &["thaw", &home.path(), "--all"],
        &["token", "issue", &home.path(), "--agent", "a", "--tool", "echo"],
    ] {
        let ran = run(command);
        assert_eq!(ran.code, 0, "{}", ran.err);
        assert!(ran.err.contains(&format!("user {OWNER}'s home")), "{}", ran.err);
    }
    let others = all(&home.path()).into_iter().filter(|path| {
        std::os::unix::fs::MetadataExt::uid(&fs::symlink_metadata(path).unwrap()) != OWNER
    });
    assert_eq!(others.collect::<Vec<_>>(), Vec::<std::path::PathBuf>::new());
    // No home is made in another's folder.
    let theirs = home.beside("theirs");
    fs::create_dir(&theirs).unwrap();
    std::os::unix::fs::chown(&theirs, Some(OWNER), Some(OWNER)).unwrap();
    let made = run(["init", theirs.to_str().unwrap(), "--no-passphrase", "--no-recovery"]);
    assert_eq!((made.code, names(&theirs).len()), (4, 0), "{}", made.err);
    // Another may look, where the owner lets them, and write nothing.
    open(&home.beside("home"));
    let other = |folder: &str| {
        use std::os::unix::process::CommandExt as _;
        let mut command = crate::cli::support::syscap();
        let freeze = command.args(["freeze", folder, "--all"]).uid(OWNER + 1).gid(OWNER + 1);
        crate::cli::support::Run::of(freeze.output().unwrap())
    };
    let refused = other(&home.path());
    assert_eq!(refused.code, 4, "{}", refused.err);
    assert!(refused.err.contains(&format!("sudo -u '#{OWNER}'")), "{}", refused.err);
}

/// Each of the acts that come at once finds the home held by another, and waits for its turn.
#[test]
fn sixteen_acts_at_once_all_succeed() {
    let home = TestHome::new();
    let freeze = |n: usize| run(["freeze", &home.path(), "--agent", &format!("a{n}")]);
    std::thread::scope(|scope| {
        let acts: Vec<_> = (0..16)
            .map(|n| {
                scope.spawn({
                    let freeze = &freeze;
                    move || freeze(n)
                })
            })
            .collect();
        acts.into_iter().for_each(|act| assert_eq!(act.join().unwrap().code, 0));
    });
    assert_eq!(home.log().iter().filter(|record| record["kind"] == "freeze").count(), 16);
    assert_eq!(home.verify(), 0);
}
