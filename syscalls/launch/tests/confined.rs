//! The escapes once more where there are no namespaces: what Landlock, seccomp and the helper hold
//! by themselves.
#![cfg(all(target_os = "linux", target_arch = "x86_64"))]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't set up fails")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output, Stdio};

use crate::common::{FORKS, NOBODY, PRELUDE, Place, alive, nap, token, until};

/// Takes namespaces and capabilities away before it executes what follows.
const APART: &str = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
    --bounding-set=-all --inh-caps=-all \"$@\"";

/// For what is to end at the bound of processes, and by the clock if that fails.
const BOMB: [&str; 4] = ["--processes", "8", "--wall-ms", "10000"];

/// Runs Python code at the level `confined`, in a user namespace that allows no more of them and
/// without capabilities; `None`, and says so, where that can't be had.
fn python(place: &Place, options: &[&str], code: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: to take namespaces away takes root");
        return None;
    }
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", APART, "sh"]).arg(place.command().get_program());
    command.args(["--require", "confined", "--report", "-", "--rw"]).arg(place.work());
    command.args(options).args(["--", "python3", "-c", &format!("{PRELUDE}\n{code}")]);
    let output = command.current_dir(place.work()).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("\"level\":\"confined\""), "{told}");
    Some(output)
}

fn said(output: &Output) -> String {
    let told = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn processes_of_the_host_are_out_of_reach() {
    let place = Place::new(None);
    let nap = nap();
    let mut host = Command::new("sleep").arg(&nap).spawn().unwrap();
    let code = format!(
        "p = {}
print(told(os.kill, p, 9), told(os.kill, p, 0), call(101, 16, p, 0, 0),
    call(310, p, 0, 0, 0, 0, 0), call(311, p, 0, 0, 0, 0, 0), call(438, 0, 0, 0))
print(*(told(open, '/proc/%d/%s' % (p, name)) for name in ('mem', 'environ', 'maps', 'cmdline')))
print(*(told(os.listdir, '/proc/%d/%s' % (p, name)) for name in ('fd', 'root', 'cwd')))",
        host.id()
    );
    let Some(output) = python(&place, &[], &code) else {
        host.kill().unwrap();
        host.wait().unwrap();
        return;
    };
    let text = said(&output);
    let still = alive(&nap);
    host.kill().unwrap();
    host.wait().unwrap();
    assert_eq!(still, [host.id()], "it was not killed");
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 13, "{text}");
    let refusals = ["EPERM", "EACCES", "ESRCH", "ENOENT"];
    assert!(words.iter().all(|word| refusals.contains(word)), "{text}");
}

#[test]
fn files_and_attributes_outside_stay_as_they_are() {
    let place = Place::new(None);
    let secret = place.file(&place.outside().join("secret"), "SECRET", 0o600);
    let code = format!(
        "s = {secret:?}; d = {:?}
print(told(open, s), told(open, s, 'a'), told(os.listdir, d), told(os.truncate, s, 0),
    told(os.chmod, s, 0o777), told(os.utime, s), told(os.chown, s, os.getuid(), -1),
    told(os.setxattr, s, 'user.a', b'x'), told(os.unlink, s), told(os.rename, s, s + '2'),
    told(os.mkdir, d + '/new'), told(os.mkfifo, d + '/fifo'), told(os.symlink, 'x', d + '/link'),
    told(os.link, s, 'hard'), told(os.rename, s, 'moved'), told(open, '/etc/passwd'),
    told(open, '/dev/kmsg'))
os.symlink(s, 'soft'); print(told(open, 'soft'), told(os.chmod, 'soft', 0o777))
# By the newer calls too, and by an open handle that names it only.
print(call(463, -100, s.encode(), 0, b'user.a', 0, 0), call(466, -100, s.encode(), 0, b'user.a'))
fd = os.open(s, os.O_PATH)
print(told(open, '/proc/self/fd/%d' % fd), told(os.chmod, '/proc/self/fd/%d' % fd, 0o777))",
        place.outside()
    );
    let Some(output) = python(&place, &[], &code) else { return };
    let text = said(&output);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words.len(), 23, "{text}");
    let refusals = ["EACCES", "EROFS", "EPERM", "EXDEV", "ENOENT", "ENOSYS"];
    assert!(words.iter().all(|word| refusals.contains(word)), "{text}");
    assert_eq!(fs::read_to_string(&secret).unwrap(), "SECRET");
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(place.outside()).unwrap().count(), 1);
}

#[test]
fn no_network_and_no_namespace_is_had() {
    let place = Place::new(None);
    let code = "
print({call(41, family, kind, 0) for family in range(64) for kind in (1, 2, 3, 5)})
print(*(call(*(ctypes.c_long(a) for a in args)) for args in (
    (272, 0x10000000), (56, 0x10000011, 0, 0, 0, 0), (56, 0x40000011, 0, 0, 0, 0),
    (308, 0, 0), (165, 0, 0, 0, 0, 0), (161, 0), (321, 0, 0, 0), (250, 0, 0, 0, 0))))
print(call(425, 1, 0), call(435, 0, 0))";
    let Some(output) = python(&place, &[], code) else { return };
    let refused = ["EPERM"; 8].join(" ");
    assert_eq!(said(&output), format!("{{'EPERM'}}\n{refused}\nENOSYS ENOSYS\n"));
}

#[test]
fn a_bomb_does_not_outrun_the_helper() {
    let place = Place::new(None);
    let mut forked = Vec::new();
    for _ in 0..10 {
        // Each process leaves a byte.
        let log = place.work().join("log");
        fs::write(&log, "").unwrap();
        let code = format!(
            "log = os.open({log:?}, os.O_WRONLY | os.O_APPEND)
while True:
    try: os.fork() or os.write(log, b'.')
    except OSError: pass"
        );
        let Some(output) = python(&place, &BOMB, &code) else { return };
        assert_eq!(output.status.code(), Some(124));
        let report = String::from_utf8_lossy(&output.stderr);
        assert!(report.contains("\"bound\":\"processes\""), "{report}");
        forked.push(fs::metadata(&log).unwrap().len());
    }
    // A child may be killed before it has left its byte.
    let any = forked.iter().any(|forked| *forked > 0);
    assert!(any && forked.iter().all(|forked| *forked <= 8), "{forked:?}");
}

/// What nobody waits for keeps its number.
#[test]
fn unreaped_process_counts_against_the_bound() {
    let place = Place::new(None);
    let log = place.work().join("log");
    fs::write(&log, "").unwrap();
    let code = format!(
        "log = os.open({log:?}, os.O_WRONLY | os.O_APPEND)
while True:
    if os.fork() == 0:
        os.write(log, b'.'); os._exit(0)"
    );
    let Some(output) = python(&place, &BOMB, &code) else { return };
    assert_eq!(output.status.code(), Some(124));
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("\"bound\":\"processes\""), "{report}");
    assert!(fs::metadata(&log).unwrap().len() < 8);
}

#[test]
fn threads_count_and_none_begins_unseen() {
    let place = Place::new(None);
    let code = "
import threading
print(call(56, ctypes.c_long(0x00800000 | 17), 0, 0, 0, 0), flush=True)
while True: threading.Thread(target=time.sleep, args=(600,)).start()";
    let Some(output) = python(&place, &BOMB, code) else { return };
    assert_eq!(output.status.code(), Some(124));
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("\"bound\":\"processes\""), "{report}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "EPERM\n");
}

/// Who traces sees each stop first, and must leave it to whom it is meant for.
#[test]
fn stops_signals_and_executions_are_as_ever() {
    let place = Place::new(None);
    let code = "
import threading
def child(what):
    p = os.fork()
    if p == 0:
        what(); os._exit(0)
    return p
def ends(p): return os.waitstatus_to_exitcode(os.waitpid(p, 0)[1])
def busy():
    os.setpgid(0, 0)
    for _ in range(3): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    os.write(w, b'+')
    while True:
        os.write(w, b'.'); time.sleep(0.001)
for stop in (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN):
    r, w = os.pipe()
    p = child(busy)
    while b'+' not in os.read(r, 1): pass
    os.kill(p, stop)
    status = os.waitpid(p, os.WUNTRACED)[1]
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == stop, status
    os.set_blocking(r, False)
    told(os.read, r, 100000)
    time.sleep(0.05)
    assert told(os.read, r, 1) == 'EAGAIN', 'it runs'
    os.set_blocking(r, True)
    os.kill(p, signal.SIGCONT)
    assert os.WIFCONTINUED(os.waitpid(p, os.WCONTINUED)[1])
    assert os.read(r, 1) == b'.'
    os.kill(p, signal.SIGTERM)
    assert ends(p) == -15
def execute():
    for _ in range(3): threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
    threading.Thread(target=os.execv, args=('/bin/sh', ['sh', '-c', 'exit 7'])).start()
    time.sleep(600)
for _ in range(10): assert ends(child(execute)) == 7
for _ in range(20): assert ends(os.posix_spawn('/bin/sh', ['sh', '-c', 'exit 5'], {})) == 5
# Killed at any moment, at a fork too.
def forks():
    while True: ends(child(lambda: None))
for n in range(100):
    p = child(forks)
    time.sleep(n / 50000)
    os.kill(p, 9)
    assert ends(p) == -9
print('all')";
    let options = ["--processes", "32", "--wall-ms", "30000"];
    let Some(output) = python(&place, &options, code) else { return };
    assert_eq!(said(&output), "all\n");
}

#[test]
fn a_killed_helper_leaves_nobody() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: to take namespaces away takes root");
        return;
    }
    let place = Place::new(None);
    let nap = nap();
    let line = format!("(setsid sh -c 'echo runs; exec sleep {nap}' &); exec sleep {nap}");
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", APART, "sh"]).arg(place.command().get_program());
    command.args(["--require", "confined", "--processes", "16", "--", "sh", "-c", &line]);
    let mut host = command.stdout(Stdio::piped()).spawn().unwrap();
    let mut runs = [0; 5];
    host.stdout.take().unwrap().read_exact(&mut runs).unwrap();
    let children = fs::read_to_string(format!("/proc/{0}/task/{0}/children", host.id())).unwrap();
    let helper = rustix::process::Pid::from_raw(children.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(helper, rustix::process::Signal::KILL).unwrap();
    assert_eq!(host.wait().unwrap().code(), Some(125));
    until(|| alive(&nap).is_empty());
}

/// The bound is the program's own, not its user's.
#[test]
fn other_processes_of_the_user_are_no_part_of_the_bound() {
    let place = Place::new(Some(NOBODY));
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: several users in a namespace take root");
        return;
    }
    // Beside it run more of the same user than its bound says.
    let beside = "for i in $(seq 60); do sleep 60 >&- 2>&- & naps=\"$naps $!\"; done
        \"$@\"; code=$?; kill $naps; exit $code";
    let apart = format!("read -r _; exec sh -c '{APART}' sh \"$@\"");
    let mut command = Command::new("unshare");
    command.args(["-U", "sh", "-c", &apart, "sh"]);
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    command.args(["sh", "-c", beside, "sh"]).arg(place.command().get_program());
    command.args(["--require", "confined", "--processes", "16", "--report", "-", "--"]);
    command.args(["sh", "-c", "echo a | cat | cat"]).current_dir(place.work());
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let map = |kind: &str| fs::write(format!("/proc/{}/{kind}", child.id()), "0 0 70000");
    // Once it has its namespace.
    let own = format!("/proc/{}/ns/user", child.id());
    let ours = fs::read_link("/proc/self/ns/user").unwrap();
    until(|| fs::read_link(&own).is_ok_and(|own| own != ours));
    if let Err(error) = map("uid_map").and_then(|()| map("gid_map")) {
        eprintln!("skipped: no other user can be mapped here: {error}");
        child.kill().unwrap();
        child.wait().unwrap();
        return;
    }
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(said(&output), "a\n");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("\"level\":\"confined\""), "{told}");
}

#[test]
fn no_fork_is_interrupted() {
    let place = Place::new(None);
    let Some(output) = python(&place, &["--processes", "128"], FORKS) else { return };
    assert_eq!(said(&output), "0\n");
    let code = "
for _ in range(50):
    ran = subprocess.run(['sh', '-c', 'echo a | cat | cat | cat'], capture_output=True)
    assert ran.stdout == b'a\\n' and not ran.stderr, ran";
    said(&python(&place, &["--processes", "128"], code).unwrap());
}

#[test]
fn many_processes_may_follow_one_another() {
    let place = Place::new(None);
    let code = "
for n in range(500):
    p = os.fork()
    if p == 0: os._exit(n % 100)
    assert os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]) == n % 100
import threading
for n in range(500):
    t = threading.Thread(target=lambda: None); t.start(); t.join()
print(subprocess.run(['echo', 'spawned'], capture_output=True).stdout)";
    let Some(output) = python(&place, &["--processes", "8"], code) else { return };
    assert_eq!(said(&output), "b'spawned\\n'\n");
}

#[test]
fn bombs_end_within_their_bounds() {
    let place = Place::new(None);
    let token = token("confined");
    let code = format!("while True:\n  try: os.fork()\n  except OSError: pass\n# {token}");
    let options = ["--processes", "32", "--wall-ms", "3000"];
    let Some(output) = python(&place, &options, &code) else { return };
    assert_eq!(output.status.code(), Some(124));
    assert_eq!(alive(&token), Vec::<u32>::new());
    let code = format!(
        "
for _ in range(4):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for s in (1, 2, 15): signal.signal(s, signal.SIG_IGN)
            os.closerange(0, 3)
            time.sleep(600)
        os._exit(0)
# {token}"
    );
    let output = python(&place, &[], &code).unwrap();
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(alive(&token), Vec::<u32>::new());
}
