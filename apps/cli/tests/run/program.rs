//! The program as its starter has it: streams, signals, exit codes, a terminal, what is on record.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::fd::AsFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, tcgetattr, tcsetwinsize};

use crate::cli::support::run;
use crate::run::world::{AGENT, PYTHON, World};

#[test]
fn its_exit_code_is_the_runs() {
    let Some(world) = World::new() else { return };
    for (line, code) in [("exit 0", 0), ("exit 7", 7), ("kill -9 $$", 137), ("kill -15 $$", 143)] {
        assert_eq!(world.run(&[], &["/bin/sh", "-c", line]).code, code, "{line}");
    }
    assert_eq!(world.run(&[], &["no-such-program"]).code, 127);
    assert_eq!(world.run(&[], &["/no/such/program"]).code, 127);
    let file = world.work().join("text");
    fs::write(&file, "text").unwrap();
    assert_eq!(world.run(&[], &[file.to_str().unwrap()]).code, 126);
}

/// What pyenv and asdf put into PATH starts programs that lie elsewhere: what is missing is said,
/// and what is said helps.
#[test]
fn a_script_that_starts_what_is_not_opened_says_so() {
    let Some(world) = World::new() else { return };
    let root = world.home.beside("versions");
    for (name, line) in [
        ("libexec/go", "echo went".to_owned()),
        (
            "shims/tool",
            format!("exec {}/libexec/go", root.canonicalize().unwrap_or(root.clone()).display()),
        ),
        ("shims/fails", "exit 7".to_owned()),
    ] {
        let file = root.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let [tool, fails] = ["tool", "fails"].map(|name| root.join("shims").join(name));
    let [tool, fails] = [&tool, &fails].map(|path| path.to_str().unwrap());
    let ran = world.run(&[], &[tool]);
    let option = format!("--exec {}", root.display());
    assert!(ran.code != 0 && ran.err.contains(&option), "{} {}", ran.code, ran.err);
    let helped = world.run(&["--exec", root.to_str().unwrap()], &[tool]);
    assert_eq!((helped.code, &*helped.out), (0, "went\n"), "{}", helped.err);
    // Of what fails by itself nothing is said.
    let ran = world.run(&[], &[fails]);
    assert!(ran.code == 7 && !ran.err.contains("--exec"), "{}", ran.err);
    let missing = world.run(&[], &["/bin/sh", "-c", "no-such-program"]);
    assert!(missing.code == 127 && !missing.err.contains("--exec"), "{}", missing.err);
}

#[test]
fn its_streams_and_its_workspace_are_its_own() {
    let Some(world) = World::new() else { return };
    let line =
        "cat; echo err >&2; echo made > made; echo state > $HOME/x; echo tmp > $TMPDIR/y; pwd;
        echo '#!/bin/sh\necho ran' > tool; chmod +x tool; ./tool";
    let ran = world.run_with(&[], &["/bin/sh", "-c", line], "input\n");
    assert_eq!((ran.code, &*ran.out), (0, &*format!("input\n{}\nran\n", world.work().display())));
    assert!(ran.err.contains("err\n") && ran.err.contains("coder runs contained"), "{}", ran.err);
    assert_eq!(fs::read_to_string(world.work().join("made")).unwrap(), "made\n");
}

#[test]
fn its_state_stays_where_it_is_named() {
    let Some(world) = World::new() else { return };
    let state = world.home.beside("state");
    fs::create_dir(&state).unwrap();
    let state = state.to_str().unwrap();
    let line = "cat $HOME/count 2>/dev/null; echo one >> $HOME/count; echo $HOME";
    let first = world.run(&["--state", state], &["/bin/sh", "-c", line]);
    assert_eq!(first.out, format!("{state}\n"));
    let second = world.run(&["--state", state], &["/bin/sh", "-c", line]);
    assert_eq!(second.out, format!("one\n{state}\n"));
    // Without a name it goes with the run, and so does what is temporary.
    let gone = world.run(&[], &["/bin/sh", "-c", "echo $HOME; echo x > $TMPDIR/x"]);
    assert!(!std::path::Path::new(gone.out.trim()).parent().unwrap().exists());
}

#[test]
fn variables_are_those_that_are_named() {
    let Some(world) = World::new() else { return };
    let mut command = world.command(&["--env", "GIVEN", "--env", "SAID=a=b", "--env", "PATH=/bin"]);
    command.args(["/usr/bin/env"]).env("GIVEN", "1").env("KEPT", "1").stdin(Stdio::null());
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    let has = |line: &str| said.lines().any(|found| found == line);
    assert!(has("GIVEN=1") && has("SAID=a=b") && has("PATH=/bin"), "{said}");
    assert!(!said.contains("KEPT") && said.contains("SYSCAP_LANE=call,call-short"), "{said}");
    assert_eq!(world.run(&["--env", "NOT_SET_HERE"], &["/bin/true"]).code, 2);
    assert_eq!(world.run(&["--env", "SYSCAP_LANE=x"], &["/bin/true"]).code, 2);
}

#[test]
fn signals_are_forwarded() {
    let Some(world) = World::new() else { return };
    let code = "
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'heard\\n'), os._exit(9)))
print('ready', flush=True)
while True: time.sleep(1)";
    let mut command = world.command(&[]);
    command.args([PYTHON, "-c", &world.code(code)]);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let pid = Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    kill_process(pid, Signal::TERM).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), "heard");
    assert_eq!(child.wait().unwrap().code(), Some(9));
    assert_eq!(world.home.verify(), 0);
}

/// Where this process is killed, all behind it ends.
#[test]
fn killed_run_leaves_no_process() {
    let Some(world) = World::new() else { return };
    let token = format!("left-{}", std::process::id());
    let code = format!("print('ready', flush=True)\nsubprocess.run(['sleep', '600'])\n# {token}");
    let mut command = world.command(&[]);
    command.args([PYTHON, "-c", &world.code(&code)]);
    // Its folders stay where it is killed.
    command.env("TMPDIR", world.home.folder.path());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    child.kill().unwrap();
    child.wait().unwrap();
    let alive = || {
        let all = fs::read_dir("/proc").unwrap().flatten();
        let lines = all.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
        lines.filter(|line| String::from_utf8_lossy(line).contains(&token)).count()
    };
    for _ in 0..2000 {
        if alive() == 0 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    panic!("it lives on");
}

#[test]
fn program_has_its_own_terminal() {
    let Some(world) = World::new() else { return };
    let upper = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&upper).unwrap();
    unlockpt(&upper).unwrap();
    let name = ptsname(&upper, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY;
    let lower = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    let size = rustix::termios::Winsize { ws_row: 33, ws_col: 99, ws_xpixel: 0, ws_ypixel: 0 };
    tcsetwinsize(&lower, size).unwrap();
    let code = "
import termios, tty, fcntl
print(os.isatty(0) and os.isatty(1) and os.isatty(2), os.get_terminal_size(), flush=True)
print(os.ttyname(0) != sys.argv[1], told(fcntl.ioctl, 0, termios.TIOCSTI, b'x'),
    told(open, sys.argv[1], 'r+b'), flush=True)
old = termios.tcgetattr(0); tty.setraw(0)
print('raw', end='', flush=True); key = os.read(0, 1)
termios.tcsetattr(0, termios.TCSADRAIN, old)
print('', key, flush=True)
try:
    print('wait', flush=True); time.sleep(60)
except KeyboardInterrupt:
    print('interrupted', flush=True)
sys.exit(5)";
    let terminal = rustix::termios::ttyname(&lower, Vec::new()).unwrap();
    let mut command = world.command(&[]);
    command.args([PYTHON, "-c", &world.code(code), terminal.to_str().unwrap()]);
    let end = || Stdio::from(lower.try_clone().unwrap());
    let mut child = command.stdin(end()).stdout(end()).stderr(Stdio::piped()).spawn().unwrap();
    let mut upper = fs::File::from(upper.as_fd().try_clone_to_owned().unwrap());
    let mut seen = String::new();
    let mut until = |word: &str, upper: &mut fs::File| {
        while !seen.contains(word) {
            let mut bytes = [0; 512];
            let size = upper.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..size]));
        }
        seen.clone()
    };
    until("raw", &mut upper);
    upper.write_all(b"\x03").unwrap();
    until("wait\r\n", &mut upper);
    upper.write_all(b"\x03").unwrap();
    let seen = until("interrupted\r\n", &mut upper);
    assert_eq!(child.wait().unwrap().code(), Some(5), "{seen}");
    assert!(seen.contains("True os.terminal_size(columns=99, lines=33)\r\n"), "{seen}");
    let second = seen.lines().nth(1).unwrap();
    assert!(second.starts_with("True EPERM E"), "{seen}");
    assert!(seen.contains("b'\\x03'"), "{seen}");
    // This one is as it was.
    let modes = tcgetattr(&lower).unwrap().local_modes;
    assert!(modes.contains(LocalModes::ICANON | LocalModes::ECHO));
}

/// The level stands in the agent's state while it runs, where policies see it.
#[test]
fn the_level_is_on_record() {
    let Some(world) = World::new() else { return };
    let before = world.of_kind("state");
    let mut command = world.command(&["--net", "loopback"]);
    command.args(["/bin/sh", "-c", "echo ready; read line"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    let home = world.home.path();
    let state = || run(["state", "show", &home, "--agent", AGENT, "--json"]).fine().one();
    let facts = state()["facts"].clone();
    assert_eq!(facts["fact.run_level"], "contained");
    assert_eq!(facts["fact.run_network"], "loopback");
    assert_eq!(facts["fact.run_contained"], true);
    assert_eq!(facts.get("fact.run_confined"), None);
    assert_eq!(facts["fact.run_workspace"], world.home.text_beside("work"));
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!(state()["facts"].as_object().unwrap().len(), 0);
    assert_eq!(world.of_kind("state"), before + 2);
    let log = run(["log", "show", &home]).fine().out;
    let line = log.lines().rfind(|line| line.contains("+fact.run_contained")).unwrap();
    assert!(line.contains(AGENT) && !line.contains("+fact.run_confined"), "{line}");
    assert_eq!(world.home.verify(), 0);
}

/// Where it can't be recorded nothing goes on.
#[test]
fn an_agent_that_is_frozen_is_not_started() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    assert_eq!(run(["freeze", &home, "--agent", AGENT]).code, 0);
    let ran = world.run(&[], &["/bin/sh", "-c", "sleep 5; echo on > on"]);
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(!world.work().join("on").exists());
}
