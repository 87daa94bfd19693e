//! The door to the host, signals, and a terminal of its own: what a host gives a program besides.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't set up fails")]

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::channel;

use crate::common::PRELUDE;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use syscap_launch::{Access, DOOR, Ended, Granted, Launcher, Level, Network, Plan, Said};

/// Python code as a plan, at the strongest level that is to be had here.
fn plan(code: &str) -> Plan {
    let open = |path: &str| OwnedFd::from(File::open(path).unwrap());
    let mut plan = Plan::new(open("/usr/bin/env"), "env".into(), open("/"));
    let code = format!("DOOR = {DOOR}\n{PRELUDE}\n{code}");
    plan.arguments.extend(["python3", "-c", &code].map(OsString::from));
    plan.environment.push(("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into()));
    plan.required = Level::Confined;
    plan.door = true;
    plan
}

/// What it printed, how it ended; who comes to the door is answered with what it says, once.
fn run(plan: &Plan, order: impl Fn(&str, &syscap_launch::Orders)) -> (String, Ended, usize) {
    let launcher = Launcher::open(Path::new(env!("CARGO_BIN_EXE_syscap-launch"))).unwrap();
    let mut running = launcher.start(plan).unwrap();
    let orders = running.orders().unwrap();
    let (mut said, mut guests) = (String::new(), 0);
    loop {
        match running.recv().unwrap() {
            Said::Output(_, bytes) => {
                said.push_str(&String::from_utf8(bytes).unwrap());
                order(&said, &orders);
            }
            Said::Connected(end) => {
                guests += 1;
                let mut end = UnixStream::from(end);
                std::thread::spawn(move || {
                    let mut bytes = [0; 64];
                    let size = end.read(&mut bytes).unwrap();
                    end.write_all(bytes.get(..size).unwrap()).unwrap();
                });
            }
            Said::Ended(report) => return (said, report.ended, guests),
        }
    }
}

const KNOCK: &str = "
def knock(word):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, DOOR)
    s.settimeout(20); s.sendall(word); return s.recv(64)
";

#[test]
fn a_program_and_its_children_come_to_the_door() {
    for network in [Network::None, Network::Loopback, Network::Host] {
        let code = format!(
            "{KNOCK}
print(knock(b'one'), flush=True)
child = os.fork()
if child == 0:
    os.setsid(); os.execvp('python3', ['python3', '-c', '''import socket; DOOR = {DOOR}
{KNOCK}
print(knock(b'two'), flush=True)'''])
os.waitpid(child, 0)"
        );
        let mut plan = plan(&code);
        plan.network = network;
        let (said, ended, guests) = run(&plan, |_, _| {});
        assert_eq!(said, "b'one'\nb'two'\n", "{network:?}");
        assert_eq!((ended, guests), (Ended::Exited(0), 2));
    }
}

#[test]
fn no_other_unix_socket_is_reached_by_who_has_a_door() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let datagrams = folder.path().join("datagrams");
    let letters = UnixDatagram::bind(&datagrams).unwrap();
    letters.set_nonblocking(true).unwrap();
    let name = format!("syscap-door-{}", std::process::id());
    let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let hidden = rustix::net::socket(
        rustix::net::AddressFamily::UNIX,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&hidden, &address).unwrap();
    rustix::net::listen(&hidden, 1).unwrap();
    let code = format!(
        "print({{told(socket.socket, 1, kind, number) for kind in (1, 2, 3, 5) for number in
    (0, 1, 2, DOOR ^ 1, -DOOR, DOOR >> 16)}})
print({{told(socket.socket, family, 1, DOOR) for family in range(3, 46) if family not in (10, 16)}})
for where in ({path:?}, '\\0{name}'):
    print(told(lambda: socket.socket(socket.AF_UNIX).connect(where)))
# The one that is had is connected, and to nobody else.
s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, DOOR)
print(told(s.connect, {path:?}), told(s.connect, '\\0{name}'), told(s.bind, '/tmp/x'),
    told(s.listen))
a, b = socket.socketpair()
print(told(a.connect, {path:?}), told(a.connect, '\\0{name}'))
for kind in (1, 2, 3, 5):
    try: d, e = socket.socketpair(socket.AF_UNIX, kind)
    except OSError: continue
    for where in ({path:?}, {datagrams:?}):
        print(told(d.connect, where))
        told(d.sendto, b'x', where)"
    );
    for network in [Network::None, Network::Host] {
        let mut plan = plan(&code);
        plan.network = network;
        // Also where the folder of the socket is the program's.
        let handle = File::open(folder.path()).unwrap().into();
        plan.granted.push(Granted { handle, access: Access::Write });
        let (said, ended, guests) = run(&plan, |_, _| {});
        assert_eq!((ended, guests), (Ended::Exited(0), 1), "{said}");
        let lines: Vec<&str> = said.lines().collect();
        assert_eq!(lines[..4], ["{'EPERM'}", "{'EPERM'}", "EPERM", "EPERM"], "{said}");
        assert!(!lines[4..].concat().contains("done"), "{said}");
        assert!(listener.accept().is_err(), "somebody came");
        assert!(letters.recv(&mut [0; 8]).is_err(), "something came");
    }
    drop(hidden);
}

#[test]
fn without_a_door_there_is_none() {
    let mut plan = plan("print(told(socket.socket, 1, 1, DOOR))");
    plan.door = false;
    assert_eq!(run(&plan, |_, _| {}), ("EPERM\n".to_owned(), Ended::Exited(0), 0));
}

#[test]
fn the_door_and_the_bound_of_processes_have_one_listener() {
    let mut plan = plan(&format!("{KNOCK}\nprint(knock(b'a'), flush=True)\nwhile True: os.fork()"));
    plan.limits.processes = Some(8);
    let (said, ended, guests) = run(&plan, |_, _| {});
    assert_eq!((said.as_str(), guests), ("b'a'\n", 1));
    assert_eq!(ended, Ended::Bound(syscap_launch::Bound::Processes));
}

/// One that nobody takes costs those behind it, and the helper nothing.
#[test]
fn a_host_that_takes_nobody_in_is_no_harm_to_the_watch() {
    let mut plan = plan(
        "
open_ = []
while True:
    try: open_.append(socket.socket(1, 1, DOOR))
    except OSError: pass",
    );
    plan.limits.wall_ms = Some(500);
    let launcher = Launcher::open(Path::new(env!("CARGO_BIN_EXE_syscap-launch"))).unwrap();
    let mut running = launcher.start(&plan).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(2));
    loop {
        if let Said::Ended(report) = running.recv().unwrap() {
            assert_eq!(report.ended, Ended::Bound(syscap_launch::Bound::Wall));
            assert!(report.wall_us < 1_500_000, "{}", report.wall_us);
            return;
        }
    }
}

#[test]
fn signals_reach_the_program() {
    let code = "
signal.signal(signal.SIGTERM, lambda *_: (os.write(1, b'heard'), os._exit(7)))
print('ready', flush=True)
while True: time.sleep(1)";
    let (said, ended, _) = run(&plan(code), |said, orders| {
        if said == "ready\n" {
            orders.signal(15);
        }
    });
    assert_eq!((said.as_str(), ended), ("ready\nheard", Ended::Exited(7)));
    // Naps: a signal that comes just before a long sleep begins would be noticed after it.
    let mut plan = plan("print('ready', flush=True)\nwhile True: time.sleep(0.1)");
    plan.door = false;
    let (_, ended, _) = run(&plan, |_, orders| orders.signal(2));
    // Python raises it and says so by ending itself with it.
    assert_eq!(ended, Ended::Signalled(2));
}

/// An upper end and a lower one.
fn pair() -> (OwnedFd, OwnedFd) {
    let upper = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&upper).unwrap();
    unlockpt(&upper).unwrap();
    let name = ptsname(&upper, Vec::new()).unwrap();
    let flags = rustix::fs::OFlags::RDWR | rustix::fs::OFlags::NOCTTY | rustix::fs::OFlags::CLOEXEC;
    let lower = rustix::fs::open(name, flags, rustix::fs::Mode::empty()).unwrap();
    (upper, lower)
}

#[test]
fn a_terminal_is_its_own() {
    let code = "
import fcntl, termios, tty
print(*(os.isatty(fd) for fd in (0, 1, 2)), os.tcgetpgrp(0) == os.getpgrp(), flush=True)
again = os.open('/dev/tty', os.O_RDWR); named = os.open(os.ttyname(0), os.O_RDWR)
print(*(os.get_terminal_size(fd).columns for fd in (1, again, named)), flush=True)
old = termios.tcgetattr(again); tty.setraw(again); termios.tcsetattr(again, termios.TCSANOW, old)
print(told(fcntl.ioctl, 0, termios.TIOCSTI, b'x'), told(open, '/dev/ptmx', 'r+b'), flush=True)
try:
    print('type', flush=True)
    while True: time.sleep(0.1)
except KeyboardInterrupt:
    print('broken off', input(), flush=True)";
    let (upper, lower) = pair();
    let size = rustix::termios::Winsize { ws_row: 30, ws_col: 123, ws_xpixel: 0, ws_ypixel: 0 };
    rustix::termios::tcsetwinsize(&lower, size).unwrap();
    let mut plan = plan(code);
    plan.terminal = Some(lower);
    let (ended, ends) = channel();
    let thread = std::thread::spawn(move || {
        ended.send(run(&plan, |_, _| {})).unwrap();
    });
    let (mut seen, mut upper) =
        (String::new(), File::from(upper.as_fd().try_clone_to_owned().unwrap()));
    let mut until = |word: &str, upper: &mut File| {
        while !seen.contains(word) {
            let mut bytes = [0; 512];
            let size = upper.read(&mut bytes).unwrap();
            seen.push_str(&String::from_utf8_lossy(&bytes[..size]));
        }
        seen.clone()
    };
    until("type\r\n", &mut upper);
    upper.write_all(b"\x03word\n").unwrap();
    let seen = until("broken off word\r\n", &mut upper);
    assert!(seen.contains("True True True True\r\n123 123 123\r\n"), "{seen}");
    let refused = seen.lines().nth(2).unwrap();
    assert!(refused.starts_with("EPERM E") && !refused.contains("done"), "{seen}");
    let (said, ended, _) = ends.recv().unwrap();
    assert_eq!((said.as_str(), ended), ("", Ended::Exited(0)));
    thread.join().unwrap();
}
