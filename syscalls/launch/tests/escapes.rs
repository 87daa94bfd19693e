//! What a hostile program tries: each ends refused, or inside.
//!
//! Python calls the system by its numbers of x86-64; elsewhere those tests say that they are
//! skipped.
#![cfg(target_os = "linux")]
#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test that can't set up fails")]

use crate::common;
use std::{fs, net::TcpListener, os::unix::fs::PermissionsExt};

use crate::common::{FORKS, NOBODY, Place, alive, as_each, nap, token};

fn numbers() -> bool {
    let here = cfg!(target_arch = "x86_64");
    if !here {
        eprintln!("skipped: the numbers of these calls are x86-64's");
    }
    here
}

#[test]
fn setsid_and_double_fork_leave_nobody() {
    as_each(|place| {
        let nap = nap();
        let script = format!("(setsid sh -c 'sleep {nap}; :' &) & exit 7");
        let ran = place.run(&[], &["sh", "-c", &script]);
        assert_eq!(ran.code(), 7);
        assert_eq!(alive(&nap), Vec::<u32>::new());
    });
}

#[test]
fn a_fork_bomb_ends_within_its_bound() {
    as_each(|place| {
        let token = token("bomb");
        let code = format!("while True:\n  try: os.fork()\n  except OSError: pass\n# {token}");
        let ran = place.python(&["--processes", "32", "--wall-ms", "3000"], &code);
        assert_eq!(ran.code(), 124);
        assert_eq!(alive(&token), Vec::<u32>::new());
    });
}

#[test]
fn no_fork_is_interrupted() {
    as_each(|place| {
        let ran = place.python(&["--processes", "128"], FORKS);
        assert_eq!(ran.out(), "0\n");
    });
}

#[test]
fn a_thread_bomb_ends_within_its_bound() {
    as_each(|place| {
        let code = "
import threading
while True:
    try: threading.Thread(target=time.sleep, args=(600,)).start()
    except RuntimeError: break
print('no more')
time.sleep(600)";
        let ran = place.python(&["--processes", "32", "--wall-ms", "3000"], code);
        assert_eq!(ran.code(), 124);
    });
}

#[test]
fn descriptors_are_not_inherited() {
    as_each(|place| {
        let secret = place.file(&place.outside().join("secret"), "SECRET", 0o644);
        let mut shell = std::process::Command::new("sh");
        let launcher = place.command();
        let line = "exec \"$0\" -- ls /proc/self/fd 7<\"$1\" 9<\"$1\"";
        shell.args(["-c", line]).arg(launcher.get_program()).arg(secret);
        let output = shell.output().unwrap();
        // The fourth is the folder that `ls` lists.
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n1\n2\n3\n");
    });
}

#[test]
fn the_environment_is_empty() {
    as_each(|place| {
        let mut command = place.command();
        command.env("SECRET", "SECRET").env("LD_PRELOAD", "/nothing.so");
        let output = command.args(["--env", "A=b", "--", "env"]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "A=b\n");
    });
}

#[test]
fn other_processes_are_out_of_reach() {
    if !numbers() {
        return;
    }
    as_each(|place| {
        let host = std::process::id();
        let code = format!(
            "print(call(101, 16, {host}, 0, 0), call(310, {host}, 0, 0, 0, 0, 0),
                call(311, {host}, 0, 0, 0, 0, 0), call(438, 0, 0, 0), told(os.kill, {host}, 0),
                call(101, 16, 1, 0, 0), told(open, '/proc/1/mem', 'r+b'),
                told(open, '/proc/1/environ'))"
        );
        let said = place.python(&[], &code).fine();
        let words: Vec<&str> = said.split_whitespace().collect();
        let (memory, calls) =
            words.split_last_chunk::<2>().map(|(rest, last)| (last, rest)).unwrap();
        assert_eq!(calls, ["EPERM", "EPERM", "EPERM", "EPERM", "ESRCH", "EPERM"]);
        assert!(memory.iter().all(|word| ["EACCES", "EPERM"].contains(word)), "{memory:?}");
    });
}

#[test]
fn the_hosts_processes_are_not_seen() {
    as_each(|place| {
        let said =
            place.python(&[], "print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))");
        assert_eq!(said.fine(), "[1, 2]\n");
    });
}

#[test]
fn no_socket_of_any_family() {
    if !numbers() {
        return;
    }
    as_each(|place| {
        let code =
            "print({call(41, family, kind, 0) for family in range(64) for kind in (1, 2, 3, 5)})
print(sorted({call(53, family, 1, 0, ctypes.create_string_buffer(8)) for family in range(2, 64)}))
a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))";
        assert_eq!(place.python(&[], code).fine(), "{'EPERM'}\n['EPERM']\nb'x'\n");
    });
}

#[test]
fn unix_sockets_of_the_host_are_nobodys() {
    as_each(|place| {
        let path = place.work().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o777)).unwrap();
        for network in ["none", "loopback", "host"] {
            let code =
                format!("print(told(lambda: socket.socket(socket.AF_UNIX).connect({path:?})))");
            assert_eq!(place.python(&["--net", network], &code).fine(), "EPERM\n", "{network}");
        }
        drop(listener);
    });
}

#[test]
fn loopback_is_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    as_each(|place| {
        let code = format!(
            "s = socket.socket(); s.settimeout(5)
print(told(s.connect, ('127.0.0.1', {port})))
l = socket.create_server(('127.0.0.1', 0))
c = socket.create_connection(l.getsockname()); c.send(b'in'); print(l.accept()[0].recv(2))
print(told(socket.socket, socket.AF_PACKET, socket.SOCK_RAW),
    told(socket.socket, socket.AF_NETLINK), told(socket.socket, socket.AF_INET, socket.SOCK_RAW, 1))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
print(told(u.sendto, b'x', ('192.0.2.1', 53)))"
        );
        let said = place.python(&["--net", "loopback"], &code).fine();
        assert_eq!(said, "ECONNREFUSED\nb'in'\nEPERM EPERM EPERM\nENETUNREACH\n");
    });
}

#[test]
fn the_hosts_network_is_reached_only_when_granted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    as_each(|place| {
        let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port} && echo reached");
        let without = place.run(&[], &["bash", "-c", &line]);
        assert_eq!((without.code(), without.out()), (1, String::new()));
        assert_eq!(place.run(&["--net", "host"], &["bash", "-c", &line]).fine(), "reached\n");
    });
}

#[test]
fn the_kernels_doors_are_shut() {
    if !numbers() {
        return;
    }
    let refused = [
        ("unshare", "272, 0x10000000"),
        ("setns", "308, 0, 0"),
        ("mount", "165, 0, 0, 0, 0, 0"),
        ("umount2", "166, 0, 0"),
        ("pivot_root", "155, 0, 0"),
        ("chroot", "161, 0"),
        ("open_tree", "428, 0, 0, 0"),
        ("fsopen", "430, 0, 0"),
        ("mount_setattr", "442, 0, 0, 0, 0, 0"),
        ("keyctl", "250, 0, 0, 0"),
        ("add_key", "248, 0, 0, 0, 0, 0"),
        ("request_key", "249, 0, 0, 0, 0"),
        ("bpf", "321, 0, 0, 0"),
        ("perf_event_open", "298, 0, 0, 0, 0, 0"),
        ("userfaultfd", "323, 0"),
        ("open_by_handle_at", "304, 0, 0, 0"),
        ("name_to_handle_at", "303, 0, 0, 0, 0, 0"),
        ("init_module", "175, 0, 0, 0"),
        ("kexec_load", "246, 0, 0, 0, 0"),
        ("personality", "135, 0x40000"),
        ("iopl", "172, 3"),
        ("modify_ldt", "154, 0, 0, 0"),
        ("TIOCSTI", "16, 0, 0x5412, 0"),
        ("TIOCLINUX", "16, 0, 0x541c, 0"),
        ("TIOCSTI with high bits", "16, 0, 0x100005412, 0"),
        ("clone NEWUSER", "56, 0x10000011, 0, 0, 0, 0"),
        ("clone NEWNET", "56, 0x40000011, 0, 0, 0, 0"),
    ];
    let absent = [
        ("io_uring_setup", "425, 1, 0"),
        ("io_uring_enter", "426, 0, 0, 0, 0, 0"),
        ("clone3", "435, 0, 0"),
        ("ptrace of x32", "0x40000000 + 521, 16, 1, 0, 0"),
        ("socket of x32", "0x40000000 + 41, 1, 1, 0"),
        ("a call of tomorrow", "470, 0"),
    ];
    as_each(|place| {
        for (list, answer) in [(&refused[..], "EPERM"), (&absent[..], "ENOSYS")] {
            let calls: Vec<String> = list
                .iter()
                .map(|(name, args)| {
                    format!("print({name:?}, call(*(ctypes.c_long(a) for a in ({args},))))")
                })
                .collect();
            let said = place.python(&[], &calls.join("\n")).fine();
            let expected: String =
                list.iter().map(|(name, _)| format!("{name} {answer}\n")).collect();
            assert_eq!(said, expected);
        }
    });
}

#[test]
fn files_outside_are_neither_read_nor_changed() {
    as_each(|place| {
        let secret = place.file(&place.outside().join("secret"), "SECRET", 0o600);
        let code = format!(
            "s = {secret:?}; d = {:?}
print(told(open, s), told(open, s, 'a'), told(os.listdir, d), told(os.truncate, s, 0))
print(told(os.chmod, s, 0o777), told(os.utime, s), told(os.chown, s, os.getuid(), -1),
    told(os.setxattr, s, 'user.a', b'x'), told(os.unlink, s), told(os.rename, s, s + '2'),
    told(os.mkdir, d + '/new'), told(os.mkfifo, d + '/fifo'), told(os.symlink, 'x', d + '/link'))
print(told(os.link, s, 'hard'))
os.symlink(s, 'soft'); print(told(open, 'soft'), told(os.chmod, 'soft', 0o777))
fd = os.open(s, os.O_PATH)
print(told(open, '/proc/self/fd/%d' % fd), told(os.chmod, '/proc/self/fd/%d' % fd, 0o777))
print(told(open, '/etc/passwd'), told(open, '/proc/sys/kernel/core_pattern', 'w'),
    told(open, '/dev/kmsg'), told(open, '/dev/mem'), told(open, '/sys/power/state', 'w'))",
            place.outside()
        );
        let said = place.python(&[], &code).fine();
        let words: Vec<&str> = said.split_whitespace().collect();
        assert_eq!(words.len(), 23, "{said}");
        let refusals = ["EACCES", "EROFS", "EPERM", "EXDEV", "ENOENT"];
        assert!(words.iter().all(|word| refusals.contains(word)), "{said}");
        assert_eq!(fs::read_to_string(&secret).unwrap(), "SECRET");
        assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::read_dir(place.outside()).unwrap().count(), 1);
    });
}

#[test]
fn path_right_gives_no_other_right() {
    as_each(|place| {
        let work = place.work();
        let tool = place.file(&work.join("tool"), "#!/bin/sh\necho ran\n", 0o755);
        let file = place.file(&work.join("file"), "text", 0o644);
        let (work, tool) = (work.to_str().unwrap(), tool.to_str().unwrap());
        let line =
            format!("cat file; (echo more >> file) 2>/dev/null && echo wrote; {tool} 2>/dev/null");
        let run = |options: &[&str]| place.run(options, &["sh", "-c", &line]).out();
        assert_eq!(run(&[]), "");
        assert_eq!(run(&["--ro", work]), "text");
        assert_eq!(run(&["--exec", work]), "textran\n");
        assert_eq!(run(&["--rw", work]), "textwrote\n");
        assert_eq!(run(&["--rw", work, "--exec", work]), "textmore\nwrote\nran\n");
        assert_eq!(fs::read_to_string(file).unwrap(), "textmore\nmore\n");
        // By its own grant the program itself may run, a script too.
        assert_eq!(place.run(&[], &[tool]).fine(), "ran\n");
    });
}

#[test]
fn program_from_memory_is_confined() {
    as_each(|place| {
        let secret = place.file(&place.outside().join("secret"), "SECRET", 0o600);
        let code = format!(
            "fd = os.memfd_create('x', 0); os.write(fd, open('/bin/cat', 'rb').read())
os.execve('/proc/self/fd/%d' % fd, ['cat', {secret:?}], {{}})"
        );
        let ran = place.python(&[], &code);
        assert_ne!(ran.code(), 0);
        assert_eq!(ran.out(), "");
    });
}

#[test]
fn no_privilege_is_gained_by_an_exec() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: a program of root's with the set-uid bit takes root");
        return;
    }
    let place = Place::new(Some(NOBODY));
    let tool = place.work().join("id");
    common::copy(std::path::Path::new("/usr/bin/id"), &tool);
    fs::set_permissions(&tool, fs::Permissions::from_mode(0o4755)).unwrap();
    let tool = tool.to_str().unwrap();
    assert_eq!(place.run(&["--require", "bounded"], &[tool, "-u"]).fine(), "65534\n");
    let caps = "print([l.split()[1] for l in open('/proc/self/status') if l.startswith('Cap')])";
    let none = "0000000000000000";
    as_each(|place| {
        assert_eq!(place.python(&[], caps).fine(), format!("{:?}\n", [none; 5]).replace('"', "'"));
    });
}

#[test]
fn no_core_is_left() {
    as_each(|place| {
        let ran = place.python(&[], "os.kill(os.getpid(), signal.SIGSEGV)");
        assert_eq!(ran.code(), 128 + 11);
        assert_eq!(fs::read_dir(place.work()).unwrap().count(), 0);
    });
}

/// Nor one that runs as its owner for whoever finds it.
#[test]
fn no_file_is_made_that_runs_as_its_owner() {
    as_each(|place| {
        let code = "open('a', 'w').close(); os.mkdir('d')
print(told(os.chmod, 'a', 0o4755), told(os.chmod, 'a', 0o2755), told(os.fchmod,
    os.open('a', os.O_RDWR), 0o6755), told(os.open, 'b', os.O_CREAT | os.O_WRONLY, 0o4755),
    told(os.mknod, 'c', 0o104755), told(os.chmod, 'd', 0o2755))
os.chmod('a', 0o1755)";
        assert_eq!(place.python(&[], code).fine(), "EPERM EPERM EPERM EPERM EPERM EPERM\n");
        for entry in fs::read_dir(place.work()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o6000, 0);
        }
    });
}

#[test]
fn fifos_and_links_may_be_made_inside_only() {
    as_each(|place| {
        let code = "os.mkfifo('fifo'); open('a', 'w').close(); os.link('a', 'b'); os.mkdir('c')
os.rename('a', 'c/a'); os.chmod('b', 0o600)
print(told(os.mknod, 'device', 0o20666, os.makedev(1, 5)), sorted(os.listdir('.')))";
        assert_eq!(
            place.python(&[], code).fine(),
            "EPERM ['b', 'c', 'fifo']\n".replace("EPERM", "EACCES")
        );
    });
}
