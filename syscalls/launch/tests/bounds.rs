//! Bounds, ends, and what is told of them.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't set up fails")]

use crate::common;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::OwnedFd;
use std::process::Stdio;

use crate::common::{Place, alive, as_each, nap, token, until};
use syscap_launch::{Bound, Ended, LaunchError, Launcher, Level, Plan, Said};

#[test]
fn a_flood_of_output_ends_at_its_bound() {
    as_each(|place| {
        let ran = place.run(&["--output-bytes", "100000"], &["yes"]);
        assert_eq!(ran.code(), 124);
        assert_eq!(ran.output.stdout.len(), 100_000);
        let both = "yes >&2 & yes";
        let ran = place.run(&["--output-bytes", "100000"], &["sh", "-c", both]);
        assert_eq!(ran.code(), 124);
        let notice = "syscap-launch: ended at its bound: output\n";
        let written = ran.output.stdout.len() + ran.output.stderr.len();
        assert_eq!(written, 100_000 + notice.len());
    });
}

#[test]
fn output_up_to_the_bound_is_whole() {
    as_each(|place| {
        let ran = place.run(&["--output-bytes", "100000"], &["head", "-c", "100000", "/dev/zero"]);
        assert_eq!(ran.code(), 0, "{}", ran.err());
        assert_eq!(ran.output.stdout.len(), 100_000);
        let ran = place.run(&[], &["printf", r"\377\376 \033[31m"]);
        assert_eq!(ran.output.stdout, b"\xff\xfe \x1b[31m");
    });
}

#[test]
fn sleeping_program_ends_at_its_wall_bound() {
    as_each(|place| {
        for line in ["sleep 600", "kill -STOP $$", "trap '' TERM INT HUP; sleep 600"] {
            let ran = place.run(&["--wall-ms", "200"], &["sh", "-c", line]);
            assert_eq!(ran.code(), 124, "{line}");
            assert!(ran.report.starts_with("{\"bound\":\"wall\""), "{}", ran.report);
        }
    });
}

#[test]
fn processor_time_is_counted_over_forks() {
    as_each(|place| {
        let code = "
for _ in range(3): os.fork()
while True: pass";
        let ran = place.python(&["--cpu-ms", "400", "--wall-ms", "60000"], code);
        assert_eq!(ran.code(), 124, "{}", ran.report);
        assert!(ran.report.starts_with("{\"bound\":\"cpu\""), "{}", ran.report);
        let used = ran.number("cpu_us");
        assert!((400_000..1_000_000).contains(&used), "{used}");
        // What ends before its parent looks is counted too.
        let code = "
for _ in range(20):
    if os.fork() == 0:
        end = time.process_time() + 0.02
        while time.process_time() < end: pass
        os._exit(0)
    os.wait()";
        let ran = place.python(&["--cpu-ms", "10000"], code);
        assert!(ran.number("cpu_us") >= 400_000, "{}", ran.report);
    });
}

#[test]
fn memory_and_file_sizes_are_bounded() {
    as_each(|place| {
        let ran = place.python(
            &["--memory-bytes", "100000000"],
            "
try: x = bytearray(400_000_000)
except MemoryError: print('no more')",
        );
        assert_eq!(ran.fine(), "no more\n");
        let line = "head -c 1000000 /dev/zero > big";
        let work = place.work();
        let options = ["--rw", work.to_str().unwrap(), "--file-bytes", "65536"];
        let ran = place.run(&options, &["sh", "-c", line]);
        assert_ne!(ran.code(), 0);
        assert_eq!(fs::metadata(work.join("big")).unwrap().len(), 65_536);
    });
}

#[test]
fn exit_codes_are_those_that_are_promised() {
    as_each(|place| {
        let code = |options: &[&str], program: &[&str]| place.run(options, program).code();
        assert_eq!(code(&[], &["sh", "-c", "exit 9"]), 9);
        assert_eq!(code(&[], &["sh", "-c", "kill -9 $$"]), 137);
        assert_eq!(code(&[], &["no-such-program"]), 127);
        assert_eq!(code(&[], &["/no/such/program"]), 127);
        let file = place.file(&place.work().join("file"), "text", 0o644);
        assert_eq!(code(&[], &[file.to_str().unwrap()]), 126);
        assert_eq!(code(&["--ro", "/no/such/path"], &["true"]), 125);
        assert_eq!(code(&["--require", "loosely"], &["true"]), 125);
        assert_eq!(code(&["--env", "=x"], &["true"]), 125);
        assert_eq!(code(&["--env", "SURELY_NOT_SET"], &["true"]), 125);
        assert_eq!(place.command().status().unwrap().code(), Some(125));
        assert_eq!(place.command().arg("--help").output().unwrap().status.code(), Some(0));
    });
}

#[test]
fn standard_input_is_passed_on() {
    as_each(|place| {
        let mut child = place
            .command()
            .args(["--", "tr", "a-z", "A-Z"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(b"passed on").unwrap();
        assert_eq!(child.wait_with_output().unwrap().stdout, b"PASSED ON");
    });
}

/// Starts a program that says when it runs, and has two more about it.
fn started(place: &Place, token: &str) -> std::process::Child {
    let line = format!("(setsid sleep 600 &) ; sh -c 'echo runs; sleep 600; : {token}'; : {token}");
    let mut child =
        place.command().args(["--", "sh", "-c", &line]).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "runs\n");
    assert!(!alive(token).is_empty());
    child
}

#[test]
fn a_killed_host_leaves_nobody() {
    as_each(|place| {
        let token = token("orphan");
        let mut child = started(place, &token);
        child.kill().unwrap();
        child.wait().unwrap();
        until(|| alive(&token).is_empty());
    });
}

#[test]
fn a_killed_helper_leaves_nobody_and_is_told() {
    as_each(|place| {
        let token = token("orphan");
        let mut child = started(place, &token);
        let children = format!("/proc/{0}/task/{0}/children", child.id());
        let Ok(children) = fs::read_to_string(children) else {
            eprintln!("skipped: this system does not list a process's children");
            child.kill().unwrap();
            child.wait().unwrap();
            return;
        };
        let helper: i32 = children.trim().parse().unwrap();
        let helper = rustix::process::Pid::from_raw(helper).unwrap();
        rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(125));
        until(|| alive(&token).is_empty());
    });
}

fn handle(path: impl AsRef<std::path::Path>) -> OwnedFd {
    fs::File::open(path).unwrap().into()
}

fn launcher() -> Launcher {
    Launcher::open(env!("CARGO_BIN_EXE_syscap-launch").as_ref()).unwrap()
}

/// All that it says, and how it ended.
fn heard(plan: &Plan) -> Result<(Vec<u8>, Ended), LaunchError> {
    let mut running = launcher().start(plan)?;
    let mut out = Vec::new();
    loop {
        match running.recv()? {
            Said::Output(_, bytes) => out.extend(bytes),
            Said::Connected(_) => panic!("it has no door"),
            Said::Ended(report) => return Ok((out, report.ended)),
        }
    }
}

#[test]
fn a_program_that_is_swapped_after_it_was_opened_does_not_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tool");
    common::copy(std::path::Path::new("/bin/echo"), &path);
    let mut plan = Plan::new(handle(&path), "tool".into(), handle("/"));
    plan.arguments.push("the one".into());
    fs::remove_file(&path).unwrap();
    common::copy(std::path::Path::new("/bin/false"), &path);
    match heard(&plan) {
        // With mounts of its own it is found by its name, and the other is not it.
        Err(error) => assert!(matches!(error, LaunchError::Setup { .. }), "{error}"),
        // Without, it is the one that was opened.
        heard => assert_eq!(heard.unwrap(), (b"the one\n".to_vec(), Ended::Exited(0))),
    }
}

#[test]
fn a_folder_that_is_swapped_after_it_was_opened_is_not_granted() {
    let folder = tempfile::tempdir().unwrap();
    let (work, other) = (folder.path().join("work"), folder.path().join("other"));
    fs::create_dir(&work).unwrap();
    fs::create_dir(&other).unwrap();
    let mut plan = Plan::new(handle("/bin/touch"), "touch".into(), handle("/"));
    plan.arguments.push(work.join("file").into());
    let access = syscap_launch::Access::Write;
    plan.granted.push(syscap_launch::Granted { handle: handle(&work), access });
    fs::rename(&work, folder.path().join("gone")).unwrap();
    fs::rename(&other, &work).unwrap();
    match heard(&plan) {
        // The one that was opened is granted still; the one that has its name now is not.
        Ok((_, ended)) => assert_ne!(ended, Ended::Exited(0)),
        Err(error) => assert!(matches!(error, LaunchError::Level { .. }), "{error}"),
    }
    assert_eq!(fs::read_dir(&work).unwrap().count(), 0);
}

#[test]
fn cancelled_or_dropped_program_ends() {
    let token = token("dropped");
    let mut plan = Plan::new(handle("/bin/sh"), "sh".into(), handle("/"));
    plan.arguments.extend(["-c".into(), format!("echo runs; sleep 600; : {token}").into()]);
    let begin = || {
        let mut running = launcher().start(&plan).unwrap();
        assert!(matches!(running.recv(), Ok(Said::Output(_, bytes)) if bytes == b"runs\n"));
        assert!(!alive(&token).is_empty());
        running
    };
    let mut running = begin();
    // More often than it is read: the report comes all the same.
    (0..50).for_each(|_| running.cancel());
    until(|| alive(&token).is_empty());
    std::thread::sleep(std::time::Duration::from_millis(200));
    match running.recv().unwrap() {
        Said::Ended(report) => assert_eq!(report.ended, Ended::Cancelled),
        said @ (Said::Output(..) | Said::Connected(_)) => panic!("{said:?}"),
    }
    assert!(alive(&token).is_empty());
    drop(begin());
    assert!(alive(&token).is_empty());
}

#[test]
fn a_plan_that_cant_be_said_starts_nothing() {
    let plan = || Plan::new(handle("/bin/true"), "true".into(), handle("/"));
    let refused = |plan: Plan| matches!(heard(&plan), Err(LaunchError::Plan(_)));
    let mut nul = plan();
    nul.arguments.push("a\0b".into());
    assert!(refused(nul));
    let mut nobody = plan();
    nobody.arguments.clear();
    assert!(refused(nobody));
    let mut named = plan();
    named.environment.push(("A=B".into(), "c".into()));
    assert!(refused(named));
    let mut long = plan();
    long.arguments.push("x".repeat(5 << 20).into());
    assert!(refused(long));
    let mut wide = plan();
    let access = syscap_launch::Access::Read;
    wide.granted.extend((0..201).map(|_| syscap_launch::Granted { handle: handle("/"), access }));
    assert!(refused(wide));
    // More than the system takes in one argument.
    let mut large = plan();
    large.arguments.push("x".repeat(1 << 20).into());
    assert!(matches!(heard(&large), Err(LaunchError::Execute(_))));
}

#[test]
fn below_the_level_required_nothing_starts() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: to take namespaces away takes root");
        return;
    }
    let place = Place::new(None);
    let marker = place.work().join("marker");
    let nap = nap();
    // In a user namespace that allows no more of them, without capabilities.
    let run = |level: &str, line: &str| {
        let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
            --bounding-set=-all --inh-caps=-all \"$@\"";
        let launcher = place.command();
        let mut command = std::process::Command::new("unshare");
        command.args(["-Ur", "sh", "-c", script, "sh"]).arg(launcher.get_program());
        command.args(["--require", level, "--report", "-", "--rw"]).arg(place.work());
        command.args(["--", "sh", "-c", line]).current_dir(place.work()).output().unwrap()
    };
    let touch = format!(": > {}", marker.display());
    let output = run("contained", &touch);
    assert_eq!(output.status.code(), Some(125), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!marker.exists());
    let output = run("confined", &touch);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{told}");
    assert!(told.contains("\"level\":\"confined\""), "{told}");
    assert!(marker.exists());
    // Modes are not held by mounts then, but by seccomp; and who got away is found all the same.
    let line = format!(
        "chmod 777 {} && exit 1; (setsid sh -c 'exec >&- 2>&-; sleep {nap}; :' &); exit 5",
        marker.display()
    );
    // More than once: what is killed and not waited for is often gone by itself.
    for _ in 0..8 {
        let output = run("confined", &line);
        assert_eq!(output.status.code(), Some(5), "{}", String::from_utf8_lossy(&output.stderr));
        assert_eq!(alive(&nap), Vec::<u32>::new());
    }
}

#[test]
fn levels_have_an_order_and_names() {
    assert!(Level::Bounded < Level::Confined && Level::Confined < Level::Contained);
    for level in Level::ALL {
        assert_eq!(Level::named(level.name()), Some(level));
    }
    assert_eq!(Level::named("Contained"), None);
    assert_eq!(Bound::Wall.name(), "wall");
}
