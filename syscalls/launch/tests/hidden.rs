//! The view in which folders are hidden, and programs that keep their caller's streams.
#![cfg(target_os = "linux")]

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::{Command, Output};

use syscap_launch::{Access, Granted, LaunchError, Launcher, Level, Plan};

use crate::common::{PRELUDE, Place, alive, as_each, nap, until};

/// A home with a key and a file of an agent's, and beside it a second that lies in its files.
fn homes(place: &Place) {
    let work = place.work();
    for folder in ["home", "home/keys", "home/files", "home/files/inner", "home/files/inner/keys"] {
        fs::create_dir(work.join(folder)).unwrap();
        std::os::unix::fs::chown(work.join(folder), place.user, place.user).unwrap();
    }
    for key in ["home/keys/key", "home/files/inner/keys/key"] {
        place.file(&work.join(key), "the key\n", 0o600);
    }
    place.file(&work.join("home/files/notes"), "notes\n", 0o644);
}

/// Runs Python code in the work folder, from which these are hidden.
fn hidden(place: &Place, folders: &[&str], code: &str) -> Output {
    let mut command = place.command();
    for folder in folders {
        command.args(["--hide", folder]);
    }
    let code = format!("{PRELUDE}\n{code}");
    command.args(["--", "python3", "-c", &code]).output().unwrap()
}

#[track_caller]
fn said(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn hidden_folder_shows_its_files_alone() {
    as_each(|place| {
        homes(place);
        let code = "
print(os.listdir('home'), sorted(os.listdir('home/files')), open('home/files/notes').read().strip())
print(told(open, 'home/keys/key'), told(open, 'home/keys/key', 'w'), told(os.mkdir, 'home/keys'))
print(os.listdir('home/files/inner'), told(open, 'home/files/inner/keys/key'))
open('home/files/new', 'w').write('new')
os.chdir('home'); print(os.listdir('.'), told(open, '../home/keys/key'), os.getpid() == os.getpgid(0))";
        let output = hidden(place, &["home", "home/keys", "home/files/inner"], code);
        assert_eq!(
            said(&output),
            "['files'] ['inner', 'notes'] notes\nENOENT ENOENT EROFS\n[] ENOENT\n\
             ['files'] ENOENT True\n"
        );
        let work = place.work();
        assert_eq!(fs::read_to_string(work.join("home/files/new")).unwrap(), "new");
        assert_eq!(fs::read_to_string(work.join("home/keys/key")).unwrap(), "the key\n");
    });
}

#[test]
fn program_does_not_uncover_a_hidden_folder() {
    as_each(|place| {
        homes(place);
        // One outside with the program's own user, and no more.
        let nap = nap();
        let mut outside = Command::new("sleep");
        outside.arg(&nap);
        if let Some(user) = place.user {
            std::os::unix::process::CommandExt::uid(&mut outside, user);
        }
        let mut outside = outside.spawn().unwrap();
        // Unmounting, and binding what lies below; then the same in namespaces of its own.
        let code = format!(
            "
p = {}
key = 'home/keys/key'
def tries():
    r = [call(166, b'home', 2), call(165, b'.', b'home/files', 0, 4096, 0)]
    r += [told(open, '/proc/%d/%s/%s' % (p, at, key)) for at in ('root' + os.getcwd(), 'cwd')]
    r += [told(open, '/proc/%d/ns/mnt' % p), told(open, key), told(os.rename, 'home', 'moved')]
    return r
print(tries())
pid = os.fork()
if pid == 0:
    print(call(272, 0x10020000), tries()[:-1], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(int(open('/proc/self/status').read().split('CapEff:')[1].split()[0], 16) & 0x{:x})",
            outside.id(),
            // SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, MKNOD, DAC_READ_SEARCH.
            1_u64 << 16 | 1 << 17 | 1 << 19 | 1 << 21 | 1 << 27 | 1 << 2
        );
        let output = hidden(place, &["home"], &code);
        outside.kill().unwrap();
        outside.wait().unwrap();
        assert_eq!(
            said(&output),
            "['EPERM', 'EPERM', 'EACCES', 'EACCES', 'EACCES', 'ENOENT', 'EBUSY']\n\
             done ['EINVAL', 'EINVAL', 'EACCES', 'EACCES', 'EACCES', 'ENOENT']\n0\n"
        );
        assert!(place.work().join("home/keys/key").exists());
    });
}

#[test]
fn cover_moves_with_a_folder_that_is_renamed_outside() {
    as_each(|place| {
        homes(place);
        let mut command = place.command();
        let code = "import os, sys, time
print('in', flush=True); sys.stdin.readline()
print(os.listdir('moved'), os.path.exists('home'))";
        command.args(["--hide", "home", "--", "python3", "-c", code]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let mut line = [0; 3];
        out.read_exact(&mut line).unwrap();
        fs::rename(place.work().join("home"), place.work().join("moved")).unwrap();
        child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut rest = String::new();
        out.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "['files'] False\n");
        assert!(child.wait().unwrap().success());
    });
}

#[test]
fn program_keeps_streams_variables_name_and_code() {
    as_each(|place| {
        homes(place);
        place.file(&place.work().join("script"), "#!/bin/sh\necho \"$0 $X\"; cat; exit 7", 0o755);
        let mut command = place.command();
        command.env("X", "kept").args(["--hide", "home", "--", "./script"]);
        command.stdin(File::open(place.work().join("home/files/notes")).unwrap());
        let output = command.output().unwrap();
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!((told.as_str(), output.status.code()), ("./script kept\nnotes\n", Some(7)));
    });
}

fn launcher() -> Launcher {
    Launcher::open(Path::new(env!("CARGO_BIN_EXE_syscap-launch"))).unwrap()
}

fn open(path: &Path) -> OwnedFd {
    File::open(path).unwrap().into()
}

#[test]
fn failure_to_hide_starts_nothing() {
    let place = Place::new(None);
    homes(&place);
    let work = place.work();
    let started = work.join("started");
    let plan = |hidden: Vec<OwnedFd>| {
        let program = Path::new("/usr/bin/touch");
        let mut plan = Plan::new(open(program), program.into(), open(&work));
        plan.arguments.push(started.clone().into());
        plan.hidden = hidden;
        plan
    };
    let code = |error: LaunchError| match error {
        LaunchError::Setup { source, .. } => source.raw_os_error(),
        LaunchError::Execute(source) => source.raw_os_error(),
        LaunchError::Plan(_) => Some(0),
        _ => None,
    };
    let refused = |plan: Plan| code(launcher().serve(plan).unwrap_err());
    // A file; a folder that was moved away since; one that is gone; too many.
    assert_eq!(refused(plan(vec![open(&work.join("home/keys/key"))])), Some(20));
    let moved = open(&work.join("home/keys"));
    fs::rename(work.join("home/keys"), work.join("home/other")).unwrap();
    fs::create_dir(work.join("home/keys")).unwrap();
    let gone = open(&work.join("home/keys"));
    fs::remove_dir(work.join("home/keys")).unwrap();
    launcher().can_hide(vec![moved]).unwrap();
    assert_eq!(refused(plan(vec![gone])), Some(2));
    let many = (0..33).map(|_| open(&work.join("home"))).collect();
    assert_eq!(refused(plan(many)), Some(0));
    // Another file has the program's name now.
    let mut other = plan(vec![open(&work.join("home"))]);
    other.program = open(Path::new("/bin/sh"));
    assert_eq!(refused(other), Some(116));
    let mut other = plan(vec![open(&work.join("home"))]);
    other.terminal = Some(open(Path::new("/dev/null")));
    assert_eq!(refused(other), Some(0));
    assert!(launcher().start(&plan(vec![open(&work.join("home"))])).is_err());
    assert!(!started.exists());
    let mut served = launcher().serve(plan(vec![open(&work.join("home"))])).unwrap();
    assert!(served.child.wait().unwrap().success() && started.exists());
}

/// A plan of a shell's line, confined.
fn confined(place: &Place, line: &str) -> Plan {
    let shell = Path::new("/bin/sh");
    let mut plan = Plan::new(open(shell), shell.into(), open(&place.work()));
    plan.arguments.extend(["-c".into(), line.into()]);
    plan.environment.push(("PATH".into(), "/usr/bin:/bin".into()));
    plan.granted.push(Granted { handle: open(&place.work()), access: Access::Execute });
    plan.required = Level::Confined;
    plan
}

#[test]
fn served_program_is_confined_and_has_its_exit_code() {
    let place = Place::new(None);
    place.file(&place.outside().join("secret"), "secret", 0o644);
    let line = format!("read x; echo $x; cat {}; exit 7", place.outside().join("secret").display());
    let mut served = launcher().serve(confined(&place, &line)).unwrap();
    assert!(served.achieved.is_some() && served.lease.is_held());
    served.stdin.write_all(b"heard\n").unwrap();
    let mut out = String::new();
    served.stdout.read_to_string(&mut out).unwrap();
    assert_eq!((out.as_str(), served.child.wait().unwrap().code()), ("heard\n", Some(7)));
    let mut served = launcher().serve(confined(&place, "kill -TERM $$")).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(128 + 15));
    // A program that can't be executed is told of on standard error.
    let mut plan = confined(&place, "true");
    let script = place.file(&place.work().join("script"), "#!/no/such\n", 0o755);
    plan.program = open(&script);
    let mut served = launcher().serve(plan).unwrap();
    let mut err = String::new();
    served.stderr.read_to_string(&mut err).unwrap();
    assert_eq!(served.child.wait().unwrap().code(), Some(127));
    assert!(err.contains("can't execute"), "{err}");
}

#[test]
fn served_program_ends_with_its_lease() {
    let place = Place::new(None);
    let nap = nap();
    // Children that left their parent and its session behind, too.
    let line =
        format!("setsid sh -c 'trap \"\" TERM HUP; sleep {nap} & sleep {nap}' & sleep {nap}");
    let mut served = launcher().serve(confined(&place, &line)).unwrap();
    until(|| alive(&nap).len() >= 3);
    drop(served.lease);
    assert_eq!(served.child.wait().unwrap().code(), Some(128 + 9));
    assert_eq!(alive(&nap), Vec::<u32>::new());
}
