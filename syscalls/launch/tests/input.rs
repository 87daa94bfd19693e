//! Handles that a program holds: none of them changes anything outside.
#![cfg(target_os = "linux")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Output};

use crate::common::{PRELUDE, Place, as_each};

/// Python code within, with this input.
fn python(place: &Place, options: &[&str], input: impl Into<OwnedFd>, code: &str) -> Output {
    let mut command = place.command();
    command.args(options).args(["--", "python3", "-c", &format!("{PRELUDE}\n{code}")]);
    command.stdin(input.into()).output().unwrap()
}

#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Names each descriptor of a file, folder or device that lies on no mount of this namespace.
const ELSEWHERE: &str = "
own = {line.split()[0] for line in open('/proc/self/mountinfo')}
import stat
fds = {name: name for name in os.listdir('/proc/self/fd')}
exe = os.open('/proc/self/exe', os.O_RDONLY); fds['exe'] = str(exe)
for name, fd in fds.items():
    try: kind = stat.S_IFMT(os.fstat(int(fd)).st_mode)
    except OSError: continue
    info = dict(line.split(':\\t') for line in open('/proc/self/fdinfo/' + fd) if ':\\t' in line)
    if kind not in (stat.S_IFIFO, stat.S_IFSOCK) and info['mnt_id'].strip() not in own:
        print('elsewhere', name, os.readlink('/proc/self/fd/' + fd))
print('looked at', len(fds) > 3)";

#[test]
fn no_handle_lies_on_a_mount_of_the_host() {
    as_each(|place| {
        let file = place.file(&place.outside().join("file"), "text", 0o600);
        let null = || File::open("/dev/null").unwrap();
        for input in [File::open(&file).unwrap(), null(), File::open("/dev/zero").unwrap()] {
            assert_eq!(said(&python(place, &[], input, ELSEWHERE)), "looked at True\n");
        }
        // A script is read by a descriptor that its interpreter is left.
        let script = place.work().join("script");
        place.file(&script, &format!("#!/usr/bin/python3\nimport os\n{ELSEWHERE}"), 0o755);
        let mut command = place.command();
        command.args(["--ro", ".", "--"]).arg(&script).stdin(null());
        assert_eq!(said(&command.output().unwrap()), "looked at True\n");
    });
}

/// Changes the program's and the input's file in each way, and says which went.
const CHANGES: &str = "
import fcntl
ways = {
    'exe chmod': lambda: os.chmod('/proc/self/exe', 0o711),
    'exe utime': lambda: os.utime('/proc/self/exe', (1, 1)),
    'exe chown': lambda: os.chown('/proc/self/exe', os.getuid(), os.getgid()),
    'fchmod': lambda: os.fchmod(0, 0o777),
    'futimens': lambda: os.utime(0, (1, 1)),
    'fchown': lambda: os.fchown(0, os.getuid(), os.getgid()),
    'truncate': lambda: os.ftruncate(0, 0),
    'write': lambda: os.write(0, b'x'),
    'reopen': lambda: open('/proc/self/fd/0', 'r+b', 0).write(b'x'),
    'flags': lambda: fcntl.ioctl(0, 0x40086602, (64).to_bytes(8, 'little')),
}
print([name for name, way in ways.items() if told(way) == 'done'])";

#[test]
fn changes_of_a_program_or_an_input_stay_inside() {
    as_each(|place| {
        let of = |path: &Path| {
            let meta = fs::metadata(path).unwrap();
            (meta.mode(), meta.mtime(), meta.uid(), meta.len())
        };
        let file = place.file(&place.outside().join("file"), "text", 0o600);
        let program = place.outside().join("python");
        crate::common::copy(Path::new("/usr/bin/python3"), &program);
        std::os::unix::fs::chown(&program, place.user, place.user).unwrap();
        let before = (of(&file), of(&program), of(Path::new("/dev/null")));
        let open = || OpenOptions::new().read(true).write(true).open(&file).unwrap();
        let null = OpenOptions::new().read(true).write(true).open("/dev/null").unwrap();
        // The device may be written to, as everybody may.
        for (input, done) in [(open(), "[]\n"), (null, "['reopen']\n")] {
            let mut command = place.command();
            command.arg("--").arg(&program).args(["-c", &format!("{PRELUDE}\n{CHANGES}")]);
            assert_eq!(said(&command.stdin(input).output().unwrap()), done);
        }
        let fifo = place.outside().join("fifo");
        assert!(Command::new("mkfifo").args(["-m", "600"]).arg(&fifo).status().unwrap().success());
        let input = OpenOptions::new().read(true).write(true).open(&fifo).unwrap();
        (&input).write_all(b"by the pipe").unwrap();
        let code = format!("print(os.read(0, 11))\n{CHANGES}");
        // A pipe of its own has a mode that says nothing to anybody.
        let printed = said(&python(place, &[], input, &code));
        assert!(printed.starts_with("b'by the pipe'\n"), "{printed}");
        assert_eq!(fs::metadata(&fifo).unwrap().mode() & 0o777, 0o600);
        assert_eq!((of(&file), of(&program), of(Path::new("/dev/null"))), before);
    });
}

#[test]
fn bytes_of_each_kind_of_input_arrive() {
    as_each(|place| {
        let code = "print(sys.stdin.buffer.read())";
        let file = place.file(&place.outside().join("file"), "the text", 0o600);
        let mut at = File::open(&file).unwrap();
        at.seek(SeekFrom::Start(4)).unwrap();
        assert_eq!(said(&python(place, &[], at, code)), "b'text'\n");
        // Removed; another's, which this user may not open again; a folder.
        let removed = File::open(&file).unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!(said(&python(place, &[], removed, code)), "b'the text'\n");
        let others = place.outside().join("others");
        fs::write(&others, "theirs").unwrap();
        fs::set_permissions(&others, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(said(&python(place, &[], File::open(&others).unwrap(), code)), "b'theirs'\n");
        let folder = File::open(place.outside()).unwrap();
        assert_eq!(said(&python(place, &[], folder, code)), "b''\n");
        let (ours, theirs) = UnixStream::pair().unwrap();
        (&ours).write_all(b"by a socket").unwrap();
        drop(ours);
        assert_eq!(said(&python(place, &[], theirs, code)), "b'by a socket'\n");
        let (read, mut write) = std::io::pipe().unwrap();
        write.write_all(b"by a pipe").unwrap();
        drop(write);
        assert_eq!(said(&python(place, &[], read, code)), "b'by a pipe'\n");
    });
}

#[test]
fn socket_on_input_is_no_socket_inside() {
    let place = Place::new(None);
    let code = "
s = None
try: s = socket.socket(fileno=os.dup(0))
except OSError: print('none')
if s: print(told(s.send, b'out'), told(s.connect, '/run/x'))";
    let (ours, theirs) = UnixDatagram::pair().unwrap();
    ours.set_nonblocking(true).unwrap();
    assert_eq!(said(&python(&place, &[], theirs, code)), "none\n");
    assert!(ours.recv(&mut [0; 8]).is_err());
    let udp = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    assert_eq!(said(&python(&place, &["--net", "loopback"], udp, code)), "none\n");
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    assert_eq!(said(&python(&place, &[], theirs, code)), "none\n");
    let mut rest = Vec::new();
    ours.read_to_end(&mut rest).unwrap();
    assert_eq!(rest, b"");
}
