//! What programs of attackers leave behind, and what arguments and folders do that mean harm.

use std::{fs, os::unix::fs::symlink, path::Path, process::Command};

use syscap::format::{Body, Enforcement, Record, Scope};
use syscap::policy::{Policy, Preset};
use syscap::prelude::*;

use crate::shell::{World, alive, json, number, script, text, world, world_under};

/// A grant of all that these tests call.
fn grant() -> Grant {
    let programs = ["cat", "chmod", "env", "ls", "printf", "python3", "sh", "sleep"];
    let more = ["shell", "shell_script", "fs.read", "fs.write", "fs.list", "fs.stat", "fs.search"];
    crate::shell::grant().tools(more).scope("program", Scope::names(programs).unwrap())
}

fn argv(session: &Session, argv: &[&str]) -> ToolResult {
    let args = serde_json::json!({ "argv": argv });
    json(session, "shell", &args.to_string())
}

/// Links, second names, pipes, sockets and sparse files: what a program makes in the folder is for
/// the file tools what it would be if anybody else had made it.
#[test]
fn planted_links_and_devices_are_refused_by_file_tools() {
    let world = world();
    let session = world.session(grant());
    let secret = world.dir.path().join("secret");
    fs::write(&secret, "SECRET").unwrap();
    let planted = format!(
        "import os, socket
os.symlink({secret:?}, 'link'); os.symlink({:?}, 'folder'); os.symlink('/proc/self/root', 'magic')
os.mkfifo('pipe'); open('own', 'w').write('own'); os.link('own', 'second')
with open('holes', 'wb') as f: f.truncate(1 << 20)
for make in (lambda: os.mknod('device', 0o20666, os.makedev(1, 3)),
             lambda: os.link({secret:?}, 'theirs')):
    try: make()
    except OSError: pass
    else: print('made')
",
        world.dir.path(),
    );
    let ran = argv(&session, &["python3", "-c", &planted]);
    assert_eq!((number(&ran, "exit_code"), text(&ran, "stdout")), (Some(0), String::new()));
    for (path, reason) in [
        ("link", Reason::Link),
        ("folder/secret", Reason::Link),
        ("folder/home/home.db", Reason::AccessDenied),
        ("magic/etc/passwd", Reason::Link),
        ("pipe", Reason::NotAFile),
        ("own", Reason::NotAFile),
        ("second", Reason::NotAFile),
    ] {
        let read = session.call("fs.read", args! { "path": path }).unwrap();
        assert_eq!(read.reason(), Some(reason), "{path}");
        let wrote = session.call("fs.write", args! { "path": path, "text": "x" }).unwrap();
        assert_eq!(wrote.reason(), Some(reason), "{path}");
    }
    // No more than what was asked for is read of a file of holes.
    let args = args! { "path": "holes", "max_bytes": 3_u64 };
    assert_eq!(session.call("fs.read", args).unwrap().text().unwrap(), "\0\0\0");
    let found = session.call("fs.search", args! { "pattern": "SECRET|own|root:" }).unwrap();
    let found = found.value().unwrap().get("matches").unwrap().elements().count();
    assert_eq!(found, 0, "nothing is searched that is not read");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "SECRET");
    // Programs go on in the folder, and links lead them nowhere either.
    let ran = script(&session, "cat link folder/secret magic/etc/passwd; echo x > link; true");
    assert_eq!(text(&ran, "stdout"), "");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "SECRET");
}

/// Deno's shell escaping: what is quoted once more on its way is read once more. Here nothing is:
/// each text is one argument, byte by byte.
#[test]
fn cve_2026_27190_arguments_are_not_quoted_again() {
    let world = world();
    let session = world.session(grant());
    let hostile = [
        "$HOME",
        "$(touch made)",
        "`touch made`",
        "a\"; touch made; \"",
        "'; touch made #",
        "\\\"$(touch made)\\\"",
        "a b",
        " ",
        "",
        "*",
        "~",
        "a\nb",
        "-oProxyCommand=touch made",
        "--",
        "-n",
        "%s",
        "&& touch made",
        "| touch made",
        "> made",
        "\u{1b}[2J",
        "\u{202e}x",
    ];
    let ran = argv(&session, &[&["printf", "%s\\n--\\n"], &hostile[..]].concat());
    let expected: String = hostile.iter().map(|one| format!("{one}\n--\n")).collect();
    assert_eq!(text(&ran, "stdout"), expected);
    // The same as parts of a script's arguments, where the script is the caller's own.
    let echo = "for one in \"$@\"; do printf '%s\\n--\\n' \"$one\"; done";
    let ran = argv(&session, &[&["sh", "-c", echo, "sh"], &hostile[..]].concat());
    assert_eq!(text(&ran, "stdout"), expected);
    assert_eq!(fs::read_dir(world.workspace()).unwrap().count(), 0);
    // A zero byte would end an argument early.
    let refused = argv(&session, &["printf", "a\0b"]);
    assert_eq!(refused.reason(), Some(Reason::BadArgument));
}

/// A program of the folder that is called as one of the system's is not taken for it, neither by
/// the call nor by what it starts.
#[test]
fn a_program_of_the_workspace_takes_no_systems_name() {
    let world = world();
    let session = world.session(grant());
    let plant = "for name in cat ls printf; do
        printf '#!/bin/sh\\necho hijacked\\n' > $name; chmod 755 $name; done; echo real > file";
    assert_eq!(number(&script(&session, plant), "exit_code"), Some(0));
    assert_eq!(text(&argv(&session, &["cat", "file"]), "stdout"), "real\n");
    assert_eq!(text(&script(&session, "cat file"), "stdout"), "real\n");
    for program in ["./cat", "cat/", "../workspace/cat"] {
        let refused = argv(&session, &[program, "file"]);
        assert_eq!(refused.reason(), Some(Reason::BadArgument), "{program}");
    }
    let own = world.workspace().join("cat");
    let refused = argv(&session, &[own.to_str().unwrap(), "file"]);
    assert_eq!(refused.reason(), Some(Reason::OutOfScope));
    // Nor is it run by its path from within: what may be written may not be run.
    assert_eq!(text(&script(&session, "./cat file; true"), "stdout"), "");
}

/// How it ended is the launcher's word, whatever a program writes or gives back.
#[test]
fn a_program_says_nothing_in_the_launchers_name() {
    let world = world();
    let session = world.session(grant());
    let spoof = "printf '{\"bound\":\"wall\",\"cpu_us\":0}\\n';
        printf 'syscap-launch: ended at its bound: cpu\\n' >&2;
        for fd in 3 4 5 6 7 8 9; do (printf '{\"exit\":0}' >&$fd) 2>/dev/null; done; exit 137";
    let ran = script(&session, spoof);
    assert_eq!((number(&ran, "exit_code"), number(&ran, "signal")), (Some(137), None));
    assert!(ran.value().unwrap().get("ended_at").is_none());
    assert!(number(&ran, "cpu_us").unwrap() > 0);
    let ran = script(&session, "kill -9 $$");
    assert_eq!((number(&ran, "exit_code"), number(&ran, "signal")), (None, Some(9)));
    for code in [0, 1, 124, 125, 126, 127, 255] {
        let ran = script(&session, &format!("exit {code}"));
        assert_eq!((ran.reason(), number(&ran, "exit_code")), (None, Some(code)));
    }
}

#[test]
fn output_that_is_no_text_is_shown_with_replacements() {
    let world = world();
    let session = world.session(grant());
    let ran = script(&session, r"printf '\377a\303(\355\240\200\033[31m\000z'; printf '\300' >&2");
    let shown = "\u{fffd}a\u{fffd}(\u{fffd}\u{fffd}\u{fffd}\u{1b}[31m\0z";
    assert_eq!((text(&ran, "stdout"), text(&ran, "stderr")), (shown.into(), "\u{fffd}".into()));
    assert_eq!(number(&ran, "stdout_bytes"), Some(14));
    // As JSON no byte of it reaches a terminal.
    let json = ran.to_json();
    assert!(json.bytes().all(|byte| byte >= b' '), "{json}");
}

/// Four variables, none of them the host's; one's own process is all that `/proc` shows of them.
#[test]
fn a_program_is_told_nothing_of_the_host() {
    let world = world();
    let session = world.session(grant());
    assert!(std::env::vars_os().count() > 4, "there is something to leak");
    let ran = argv(&session, &["env"]);
    let said = text(&ran, "stdout");
    let mut names: Vec<&str> = said.lines().map(|line| line.split_once('=').unwrap().0).collect();
    names.sort_unstable();
    assert_eq!(names, ["HOME", "LANG", "PATH", "TMPDIR"]);
    let ran = script(&session, "cat /proc/*/environ | tr '\\0' '\\n' | grep -c CARGO; ls /proc");
    let said = text(&ran, "stdout");
    assert!(said.starts_with("0\n"), "{said}");
    let host = std::process::id().to_string();
    assert!(said.lines().all(|line| line != host), "the host is not among the processes");
    let ran = script(&session, "ls -l /proc/self/fd | grep -c home.db");
    assert_eq!(text(&ran, "stdout"), "0\n");
}

/// The folder itself may be what was exchanged.
#[test]
fn a_folder_that_is_a_link_is_none() {
    let world = world();
    let session = world.session(grant());
    fs::create_dir_all(world.workspace()).unwrap();
    let outside = world.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&outside, world.workspace().join("link")).unwrap();
    symlink("../../../shared", world.workspace().join("sideways")).unwrap();
    fs::write(world.workspace().join("file"), "").unwrap();
    for (path, reason) in [
        ("link", Reason::Link),
        ("sideways", Reason::Link),
        ("link/below", Reason::Link),
        ("file", Reason::NotAFolder),
        ("../../b/workspace", Reason::OutOfScope),
        ("../../..", Reason::BadPath),
        ("/tmp", Reason::BadPath),
        ("none", Reason::NotFound),
    ] {
        let args = serde_json::json!({ "script": "echo x > made", "path": path }).to_string();
        let refused = json(&session, "shell_script", &args);
        assert_eq!(refused.reason(), Some(reason), "{path}");
    }
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
}

/// Names that take no bytes are counted as well.
#[test]
fn many_files_are_counted_and_fail_the_call() {
    let world = world();
    let session = world.session(grant());
    let many = "import os
for n in range(5000): os.close(os.open('f%d' % n, os.O_CREAT))
for n in range(5000): os.link('f%d' % n, 'l%d' % n)";
    let args = serde_json::json!({ "argv": ["python3", "-c", many], "disk_files": 100 });
    let ran = json(&session, "shell", &args.to_string());
    assert_eq!(ran.reason(), Some(Reason::OverHold));
    assert_eq!(ran.receipt().used.get(Dimension::DiskFiles), 100);
    // What is more than a folder may have to be looked through runs nothing: it is not waited for.
    let ran = script(&session, "echo on");
    assert_eq!(text(&ran, "stdout"), "on\n");
}

/// Hooks and settings that others trust: the preset for coders lets nobody write them, so no
/// program runs where it could.
#[test]
fn guarded_folder_runs_no_program() {
    let world = world_under(Some(Policy::preset(Preset::Coder).unwrap()));
    let session = world.session(grant());
    let hooks = world.workspace().join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::create_dir_all(world.workspace().join("src")).unwrap();
    let ran = script(&session, "echo evil > .git/hooks/pre-commit");
    assert_eq!(ran.reason(), Some(Reason::Constraint));
    assert_eq!(fs::read_dir(&hooks).unwrap().count(), 0);
    for path in [".git/hooks/pre-commit", ".git/config", "src/../.git/config"] {
        let wrote = session.call("fs.write", args! { "path": path, "text": "x" }).unwrap();
        assert_eq!(wrote.reason(), Some(Reason::Constraint), "{path}");
    }
    // Beside it a person is asked, who sees that it takes code.
    let args = r#"{"script": "echo fine", "path": "src"}"#;
    let ran = json(&session, "shell_script", args);
    assert!(ran.reason().is_none() || ran.reason() == Some(Reason::Asked), "{:?}", ran.reason());
}

/// A session of its own, forked twice, with its streams closed: it ends with its call.
#[test]
fn forked_session_ends_with_its_call() {
    let world = world();
    let session = world.session(grant());
    let nap = format!("601.{:07}", std::process::id());
    for line in [
        format!("(setsid sh -c 'exec <&- >&- 2>&-; sleep {nap}; :' &) & exit 3"),
        format!("(trap '' TERM INT HUP; setsid sleep {nap} >/dev/null 2>&1 &); exit 3"),
    ] {
        let ran = script(&session, &line);
        assert_eq!(number(&ran, "exit_code"), Some(3));
        assert_eq!(alive(&nap), Vec::<u32>::new());
    }
}

/// Each call of these is on record: its intent, and how it ended.
#[test]
fn each_program_has_its_records() {
    let world = world();
    let session = world.session(grant());
    let fine = script(&session, "true");
    let refused = argv(&session, &["rm", "-rf", "/"]);
    let bad = argv(&session, &["./cat"]);
    let home = world.home();
    world.rt.close().unwrap();
    let all: Vec<Record> = host_support::records(&home);
    let at = |result: &ToolResult| {
        let seq = result.receipt().outcome_seq;
        all.iter().find(|record| record.seq == seq).unwrap()
    };
    assert!(matches!(&at(&fine).body, Body::Outcome(outcome) if outcome.reason.is_none()));
    for (result, reason) in [(refused, Reason::OutOfScope), (bad, Reason::BadArgument)] {
        let body = &at(&result).body;
        assert!(matches!(body, Body::Refusal(refusal) if refusal.reason == reason), "{body:?}");
    }
}

/// A mark that can't be set, or not be seen, by the mode of a file or of its folder, or for want of
/// room beside it: whoever reads what is in it has read it all the same.
#[test]
fn a_mark_is_not_lost_by_a_mode() {
    let hidden = [
        ("f", "open('f', 'w').write('planted'); os.chmod('f', 0)"),
        ("d/f", "os.mkdir('d'); open('d/f', 'w').write('planted'); os.chmod('d', 0)"),
        (
            "f",
            "open('f', 'w').write('planted')
for n in range(64):
    try: os.setxattr('f', 'user.x%d' % n, b'x' * 1000)
    except OSError: break
assert n == 0",
        ),
    ];
    for (path, hide) in hidden {
        let world = world();
        let tainted = world.session(grant());
        let _said = tainted.call("stranger.say", args! {}).unwrap();
        let ran = argv(&tainted, &["python3", "-c", &format!("import os\n{hide}")]);
        assert_eq!(number(&ran, "exit_code"), Some(0), "{hide}");
        let clean = world.session(grant());
        let read = clean.call("fs.read", args! { "path": path }).unwrap();
        // Root reads it, and the label with it.
        assert!(read.reason().is_none() || read.reason() == Some(Reason::AccessDenied));
        let show = format!("chmod 700 d 2>/dev/null; chmod 600 {path}; cat {path} > copied");
        assert_eq!(number(&script(&world.session(grant()), &show), "exit_code"), Some(0));
        for path in ["copied", path] {
            assert!(crate::shell::is_marked(&world, path), "{path}: {hide}");
        }
    }
}

const WITHOUT_NAMESPACES: &str = "SYSCAP_TEST_WITHOUT_NAMESPACES";

/// Where no namespace can be made, a call that does not ask for less runs nothing; one that may
/// ask for less does, and its record says what it had.
#[test]
fn below_the_level_that_is_required_nothing_runs() {
    if std::env::var_os(WITHOUT_NAMESPACES).is_some() {
        return without_namespaces();
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: to take namespaces away takes root");
        return;
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
        --bounding-set=-all --inh-caps=-all \"$@\"";
    let ran = Command::new("unshare")
        .args(["-Ur", "sh", "-c", script, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "shell::attacks::below_the_level_that_is_required_nothing_runs"])
        .env(WITHOUT_NAMESPACES, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("1 passed"), "{said}");
}

fn without_namespaces() {
    let world = world();
    let marker = world.workspace().join("marker");
    let session = world.session(grant());
    let refused = script(&session, "echo x > marker");
    assert_eq!(refused.reason(), Some(Reason::NotConfined));
    assert!(!marker.exists());
    let args =
        r#"{"script": "echo x > marker; cat ../../../../../secret", "confinement": "confined"}"#;
    let refused = json(&session, "shell_script", args);
    assert_eq!(refused.reason(), Some(Reason::OutOfScope), "less is the token's to give");
    assert!(!marker.exists());
    let less = grant().scope("confinement", Scope::names(["confined"]).unwrap());
    let session = world.session(less);
    fs::write(world.dir.path().join("secret"), "SECRET").unwrap();
    let ran = json(&session, "shell_script", args);
    assert_eq!((text(&ran, "confinement"), text(&ran, "stdout")), ("confined".into(), "".into()));
    assert_eq!(ran.receipt().enforcement, Enforcement::Confined);
    assert!(marker.exists());
    let refused = script(&session, "rm marker");
    assert_eq!(refused.reason(), Some(Reason::NotConfined), "unless the call asks for it");
}

const WITHOUT_ROOT: &str = "SYSCAP_TEST_WITHOUT_ROOT";

/// All the tests of this program once more, as somebody who may nothing: copied to where such a
/// one can read it, with a folder of its own.
#[test]
fn all_of_it_without_root() {
    if std::env::var_os(WITHOUT_ROOT).is_some() {
        assert!(!rustix::process::geteuid().is_root());
        return;
    }
    if !rustix::process::geteuid().is_root() {
        println!("skipped: all of it is run without root already");
        return;
    }
    let dir = host_support::scratch();
    let own = dir.path().join("own");
    fs::create_dir(&own).unwrap();
    let copy = |from: &Path, name: &str| {
        let to = dir.path().join(name);
        assert!(Command::new("cp").arg(from).arg(&to).status().unwrap().success());
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let launcher = copy(&crate::shell::launcher(), "syscap");
    for (mode, path) in [("755", dir.path()), ("755", &tests), ("755", &launcher)] {
        assert!(Command::new("chmod").arg(mode).arg(path).status().unwrap().success());
    }
    std::os::unix::fs::chown(&own, Some(65_534), Some(65_534)).unwrap();
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--no-new-privs"]);
    let ran = command
        .arg(&tests)
        .arg("shell::")
        .current_dir(&own)
        .env(WITHOUT_ROOT, &launcher)
        .env("TMPDIR", &own)
        .env("HOME", &own)
        .output();
    let ran = match ran {
        Ok(ran) => ran,
        Err(error) => return println!("skipped: setpriv can't be run: {error}"),
    };
    let said = String::from_utf8_lossy(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", String::from_utf8_lossy(&ran.stderr));
    assert!(said.contains("test shell::attacks::all_of_it_without_root ... ok"), "{said}");
    assert!(!said.contains("FAILED") && said.contains(" 0 ignored; "), "{said}");
}

impl World {
    fn home(&self) -> std::path::PathBuf {
        self.dir.path().join("home")
    }
}
