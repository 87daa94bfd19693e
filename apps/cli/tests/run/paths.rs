//! What may be opened to an agent: nothing that leads to the home.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Command;

use crate::cli::support::{Run, run};
use crate::run::world::{AGENT, SYSCAP, World};

fn run_in(world: &World, workspace: &str, options: &[&str]) -> Run {
    let home = world.home.path();
    let mut words = vec!["run", &home, "--agent", AGENT, "--workspace", workspace];
    words.extend(options);
    words.extend(["--", "/bin/sh", "-c", "echo started"]);
    run(words)
}

/// Refused as the command line's fault, before anything is started or recorded.
#[track_caller]
fn refused(world: &World, workspace: &str, options: &[&str]) {
    let before = world.home.log().len();
    let ran = run_in(world, workspace, options).failed(2);
    assert_eq!(world.home.log().len(), before);
    assert!(!ran.err.is_empty());
}

#[test]
fn a_workspace_leads_to_no_home() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    let beside = |name: &str| world.home.text_beside(name);
    let keys = format!("{home}/keys");
    let inner = format!("{home}/files/agents/{AGENT}/workspace");
    let up = format!("{}/../work/..", beside("work"));
    for folder in [&*home, &keys, &inner, &format!("{home}/files"), &beside(""), &up, "/"] {
        refused(&world, folder, &[]);
    }
    // Links, from anywhere.
    for (name, to) in
        [("to-home", &*home), ("to-keys", &keys), ("to-above", &beside("")), ("to-root", "/")]
    {
        symlink(to, world.home.beside(name)).unwrap();
        refused(&world, &beside(name), &[]);
    }
    symlink("to-home", world.home.beside("to-link")).unwrap();
    refused(&world, &format!("{}/files", beside("to-link")), &[]);
    // The home is the same by another name.
    let ran =
        run(["run", &beside("to-home"), "--agent", AGENT, "--workspace", &home, "--", "/bin/true"]);
    ran.failed(2);
    assert_eq!(run_in(&world, &beside("work"), &[]).out, "started\n");
}

#[test]
fn option_that_opens_the_home_is_refused() {
    let Some(world) = World::new() else { return };
    let (home, work) = (world.home.path(), world.home.text_beside("work"));
    let key = format!("{home}/keys/operator.key");
    for option in ["--ro", "--rw", "--exec"] {
        for path in [&*home, &key, &format!("{home}/home.db"), &format!("{home}/trust.cbor"), "/"] {
            refused(&world, &work, &[option, path]);
        }
        // By a second name elsewhere, which is the same file.
        let hard = world.home.text_beside(&format!("hard{option}"));
        fs::hard_link(&key, &hard).unwrap();
        refused(&world, &work, &[option, &hard]);
        fs::remove_file(&hard).unwrap();
    }
    refused(&world, &work, &["--state", &home]);
    let program = run(["run", &home, "--agent", AGENT, "--workspace", &work, "--", &key]);
    program.failed(2);
}

/// A second name of a key in the workspace is that key.
#[test]
fn no_second_name_of_a_key_lies_in_the_workspace() {
    let Some(world) = World::new() else { return };
    let work = world.home.text_beside("work");
    let second = format!("{work}/second");
    fs::hard_link(format!("{}/keys/approver.key", world.home.path()), &second).unwrap();
    refused(&world, &work, &[]);
    fs::remove_file(&second).unwrap();
    assert_eq!(run_in(&world, &work, &[]).code, 0);
}

/// Keys that lie elsewhere are as those in the home.
#[test]
fn keys_elsewhere_are_kept_too() {
    let Some(world) = World::new() else { return };
    let (keys, work) = (world.home.beside("home/keys"), world.home.text_beside("work"));
    let elsewhere = world.home.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::rename(&keys, elsewhere.join("keys")).unwrap();
    symlink(elsewhere.join("keys"), &keys).unwrap();
    for folder in [elsewhere.clone(), elsewhere.join("keys")] {
        refused(&world, folder.to_str().unwrap(), &[]);
        refused(&world, &work, &["--ro", folder.to_str().unwrap()]);
    }
    assert_eq!(run_in(&world, &work, &[]).code, 0);
}

/// Also by a mount, from which no way leads up to the home.
#[test]
fn a_mount_of_the_home_in_the_workspace_is_found() {
    let Some(world) = World::new() else { return };
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: to mount takes root");
        return;
    }
    let (home, work) = (world.home.path(), world.home.text_beside("work"));
    fs::create_dir(world.work().join("a b")).unwrap();
    fs::write(world.work().join("file"), "").unwrap();
    for (from, to, code) in [
        (&*home, "a b", 2),
        (&format!("{home}/keys"), "a b", 2),
        ("/usr/share", "a b", 0),
        // Of one file no folder is above.
        (&format!("{home}/keys/operator.key"), "file", 2),
        ("/etc/passwd", "file", 0),
    ] {
        let line = format!(
            "mount --bind '{from}' '{work}/{to}' && exec \"$0\" run '{home}' --agent {AGENT} \
             --workspace '{work}' -- /bin/true"
        );
        let output =
            Command::new("unshare").args(["-m", "sh", "-c", &line, SYSCAP]).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{from}: {said}");
    }
}

/// What holds the boundary is not the agent's to write.
#[test]
fn neither_the_program_nor_its_configuration_is_writable() {
    let Some(world) = World::new() else { return };
    let work = world.home.text_beside("work");
    let bin = world.home.beside("own");
    fs::create_dir(&bin).unwrap();
    let copy = bin.join("syscap");
    assert!(Command::new("cp").arg(SYSCAP).arg(&copy).status().unwrap().success());
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    let home = world.home.path();
    let run_copy = |options: &[&str]| {
        let mut command = Command::new(&copy);
        command.args(["run", &home, "--agent", AGENT, "--workspace", &work]).args(options);
        command.args(["--", "/bin/true"]).output().unwrap().status.code()
    };
    assert_eq!(run_copy(&[]), Some(0));
    assert_eq!(run_copy(&["--ro", bin.to_str().unwrap()]), Some(0));
    for path in [&bin, &copy] {
        assert_eq!(run_copy(&["--rw", path.to_str().unwrap()]), Some(2));
    }
    let temporary = world.home.beside("temporary");
    fs::create_dir(&temporary).unwrap();
    let mut command = world.command(&["--rw", temporary.to_str().unwrap()]);
    let output = command.arg("/bin/true").env("TMPDIR", &temporary).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn less_than_a_boundary_is_not_had() {
    let Some(world) = World::new() else { return };
    assert_eq!(world.run(&["--require", "bounded"], &["/bin/true"]).code, 2);
    assert_eq!(world.run(&["--require", "none"], &["/bin/true"]).code, 2);
    assert_eq!(world.run(&["--net", "all"], &["/bin/true"]).code, 2);
}

#[test]
fn link_that_an_agent_could_have_put_is_followed_to_no_write() {
    let Some(world) = World::new() else { return };
    let beside = |name: &str| world.home.text_beside(name);
    let real = beside("real");
    fs::create_dir(&real).unwrap();
    // An ordinary link of the user's own is followed, and what it leads to is named.
    symlink(&real, beside("link")).unwrap();
    let ran = run_in(&world, &beside("link"), &[]);
    assert_eq!((ran.code, &*ran.out), (0, "started\n"), "{}", ran.err);
    assert!(ran.err.contains(&format!("{} is {real}", beside("link"))), "{}", ran.err);
    // An earlier run put these into its workspace.
    fs::create_dir(world.home.beside("mono")).unwrap();
    let put = format!("ln -s {real} pkg; ln -s {real} data; ln -s pkg/../real deep");
    let home = world.home.path();
    let mono = beside("mono");
    let words = ["run", &home, "--agent", AGENT, "--workspace", &mono, "--"];
    run(words.iter().chain(&["/bin/sh", "-c", &put]));
    let work = beside("work");
    for (workspace, options) in [
        ("mono/pkg", &[][..]),
        ("work", &["--rw", "mono/data"]),
        ("work", &["--state", "mono/data"]),
        ("work", &["--rw", "mono/deep"]),
        ("mono", &["--rw", "mono/data"]),
    ] {
        let options: Vec<String> = options
            .iter()
            .map(|word| if word.starts_with('-') { (*word).to_owned() } else { beside(word) })
            .collect();
        let options: Vec<&str> = options.iter().map(String::as_str).collect();
        refused(&world, &beside(workspace), &options);
    }
    // By a shell that went there by the link.
    let mut command = Command::new(SYSCAP);
    command.args(["run", &home, "--agent", AGENT, "--", "/bin/true"]).current_dir(&real);
    command.env("PWD", beside("mono/pkg"));
    assert_eq!(command.output().unwrap().status.code(), Some(2));
    // To read they lead where the operator could look, too. What was looked at may be forgotten.
    assert_eq!(run_in(&world, &work, &["--ro", &beside("mono/data")]).code, 0);
    run(["changes", &home, "--forget"]).fine();
    assert_eq!(run_in(&world, &beside("mono/pkg"), &[]).code, 0);
    // Others could have put it there.
    let shared = beside("shared");
    fs::create_dir(&shared).unwrap();
    symlink(&real, format!("{shared}/link")).unwrap();
    fs::set_permissions(&shared, fs::Permissions::from_mode(0o777)).unwrap();
    refused(&world, &format!("{shared}/link"), &[]);
}

#[test]
fn path_to_read_within_one_to_write_is_refused() {
    let Some(world) = World::new() else { return };
    let keep = world.home.text_beside("work/keep");
    fs::create_dir(&keep).unwrap();
    refused(&world, &world.home.text_beside("work"), &["--ro", &keep]);
}

#[test]
fn servers_settings_lie_where_the_agent_writes_nothing() {
    let Some(world) = World::new() else { return };
    let work = world.home.text_beside("work");
    for variable in ["HOME", "TMPDIR"] {
        let mut command = world.command(&["--mcp", "--builtins"]);
        fs::create_dir_all(format!("{work}/user")).unwrap();
        command.arg("/bin/true").env(variable, format!("{work}/user"));
        let refused = Run::of(command.output().unwrap()).failed(2);
        assert!(refused.err.contains(variable), "{}", refused.err);
    }
    // A name of a folder that stays a word is told.
    let mut command = world.command(&["--mcp", "--name s -- /bin/false work"]);
    command.arg("/bin/true").current_dir(world.home.folder.path());
    let ran = Run::of(command.output().unwrap());
    assert!(ran.err.contains("write ./work"), "{}", ran.err);
}
