//! What an agent tries, by name: each fails within, and does what `docs/run.md` says outside.

use std::fs;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::process::Stdio;

use serde_json::json;

use crate::cli::support::{run, run_with};
use crate::run::world::{AGENT, World};

/// Leaves a call that waits for a person; its action.
fn asked(world: &World) -> String {
    let home = world.home.path();
    let words = ["hook", &home, "--agent", AGENT, "--client", "claude-code"];
    let set_up = run(words.iter().copied().chain(["--setup", "--print"]));
    assert_eq!(set_up.code, 0, "{}", set_up.err);
    // The hook finds a holder, and starts none.
    let _holder = world.held();
    let event = json!({"session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash",
        "tool_input": {"command": "rm -r /"}, "tool_use_id": "u1"});
    let words = words.into_iter().chain(["--patience", "6s"]);
    let ran = run_with(words, event.to_string().as_bytes());
    assert!(ran.out.contains("deny"), "{}{}", ran.out, ran.err);
    let waiting = run(["approvals", "list", &home, "--json"]).fine().json();
    assert_eq!(waiting.len(), 1);
    waiting[0]["ask"].as_u64().unwrap().to_string()
}

#[test]
fn agent_cannot_approve_its_own_call() {
    let Some(world) = World::new() else { return };
    let action = asked(&world);
    let code = format!(
        "print(ran(SYSCAP, 'approvals', 'list', HOME).returncode)
print(ran(SYSCAP, 'approvals', 'approve', HOME, '{action}').returncode)
os.environ.pop('SYSCAP_LANE', None)
print(ran(SYSCAP, 'approvals', 'approve', HOME, '{action}').returncode)"
    );
    assert_eq!(world.within(&[], &code), "4\n4\n4\n");
    assert_eq!(world.of_kind("approval"), 0);
    // Keys that are not sealed are whoever's that reads them.
    assert!(world.outside(&code).starts_with("0\n0\n"));
    assert_eq!(world.of_kind("approval"), 1);
}

#[test]
fn agent_cannot_read_keys_or_log() {
    let Some(world) = World::new() else { return };
    let code = "
names = ['home.db', 'trust.cbor', 'files'] + ['keys/%s.key' % role for role in
    ('issuer', 'revoker', 'policy', 'approver', 'operator', 'recovery')]
def read(name):
    path = os.path.join(HOME, name)
    os.listdir(path) if os.path.isdir(path) else open(path, 'rb').read()
print({told(read, name) for name in names}, told(os.listdir, HOME),
    told(os.listdir, HOME + '/keys'))
os.symlink(HOME + '/keys/operator.key', 'link')
print(told(open, 'link'), told(os.link, HOME + '/keys/operator.key', 'hard'))
fd = os.open(HOME + '/keys/operator.key', os.O_PATH)
print(told(open, '/proc/self/fd/%d' % fd), told(open, '/proc/1/root' + HOME + '/keys/issuer.key'))
print(told(open, HOME + '/new', 'w'), told(os.unlink, HOME + '/home.db'),
    told(os.rename, HOME, HOME + '2'), told(os.chmod, HOME, 0o777))";
    let said = world.within(&[], code);
    assert!(said.starts_with("{'EACCES'} EACCES EACCES\nEACCES "), "{said}");
    assert!(!said.contains("done"), "{said}");
    assert!(world.home.beside("home/home.db").exists());
    assert!(!world.work().join("hard").exists());
    let key = "print(open(HOME + '/keys/operator.key', 'rb').read()[:5])";
    assert_eq!(world.outside(key), "b'\\xa5cuse'\n");
}

#[test]
fn agent_cannot_reach_the_operator_socket() {
    let Some(world) = World::new() else { return };
    let code = "
def connect(kind=socket.SOCK_STREAM):
    s = socket.socket(socket.AF_UNIX, kind); s.settimeout(20); s.connect(HOME + '/socket')
print(os.path.exists(HOME + '/socket'), told(connect), told(connect, socket.SOCK_SEQPACKET))
tried = [ran(SYSCAP, 'token', 'issue', HOME, '--agent', 'coder', '--tool', 'echo'),
    ran(SYSCAP, 'freeze', HOME, '--all'), ran(SYSCAP, 'policy', 'set', HOME, 'preset:recording')]
print(*(one.returncode in (1, 4) and 'no home is reached' in one.stderr for one in tried))";
    let said = world.within(&[], code);
    assert_eq!(said, "True EPERM EPERM\nTrue True True\n");
    assert_eq!(
        (world.of_kind("issue"), world.of_kind("policy"), world.of_kind("freeze")),
        (1, 1, 0)
    );
    let said = world.outside(
        "
s = socket.socket(socket.AF_UNIX); s.connect(HOME + '/socket')
print(ran(SYSCAP, 'token', 'issue', HOME, '--agent', 'coder', '--tool', 'echo').returncode,
    ran(SYSCAP, 'policy', 'set', HOME, 'preset:recording').returncode)",
    );
    assert_eq!(said, "0 0\n");
    assert_eq!((world.of_kind("issue"), world.of_kind("policy")), (2, 2));
}

#[test]
fn agent_cannot_reach_other_sockets() {
    let Some(world) = World::new() else { return };
    // Also one in the folder that it may write.
    let path = world.work().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    listener.set_nonblocking(true).unwrap();
    let datagrams = world.work().join("datagrams");
    let letters = UnixDatagram::bind(&datagrams).unwrap();
    letters.set_nonblocking(true).unwrap();
    let name = format!("syscap-run-{}", std::process::id());
    let address = rustix::net::SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let (family, kind) = (rustix::net::AddressFamily::UNIX, rustix::net::SocketType::STREAM);
    let hidden = rustix::net::socket(family, kind, None).unwrap();
    rustix::net::bind(&hidden, &address).unwrap();
    rustix::net::listen(&hidden, 1).unwrap();
    let code = format!(
        "
for where in ({path:?}, '\\0{name}'):
    print(told(lambda: socket.socket(socket.AF_UNIX).connect(where)))
def letter():
    try: a, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    except PermissionError: a = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    a.sendto(b'x', {datagrams:?})
print(told(letter))"
    );
    for net in ["none", "host"] {
        assert_eq!(world.within(&["--net", net], &code), "EPERM\nEPERM\nEPERM\n", "{net}");
        assert!(listener.accept().is_err() && letters.recv(&mut [0; 8]).is_err());
    }
    assert_eq!(world.outside(&code), "done\ndone\ndone\n");
    assert!(listener.accept().is_ok() && letters.recv(&mut [0; 8]).is_ok());
}

#[test]
fn agent_cannot_kill_or_trace_the_server() {
    let Some(world) = World::new() else { return };
    let code = "
host = int(sys.stdin.readline()) if not sys.stdin.isatty() else 0
print(told(os.kill, host, 9), told(os.kill, host, 0), ptrace(host), ptrace(os.getppid()),
    told(open, '/proc/%d/mem' % host, 'r+b'), told(os.kill, -1, 9))
# Its own pid 1 does not die of it, and is not the holder.
told(os.kill, 1, 9); print(sorted(int(p) for p in os.listdir('/proc') if p.isdigit()))";
    let holder = world.home.hold(AGENT, &world.token);
    let ran = world.run_with(
        &[],
        &["/usr/bin/python3", "-c", &world.code(code)],
        &format!("{}\n", holder.child.id()),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    let words: Vec<&str> = ran.out.lines().next().unwrap().split(' ').collect();
    assert_eq!(words[..4], ["ESRCH", "ESRCH", "EPERM", "EPERM"], "{}", ran.out);
    assert!(["ENOENT", "EACCES"].contains(&words[4]), "{}", ran.out);
    assert!(ran.out.ends_with("[1, 2]\n"), "{}", ran.out);
    // The holder answers still.
    assert_eq!(run(["token", "list", &world.home.path()]).code, 0);
    let pid = holder.child.id();
    let kill = format!("print(told(os.kill, {pid}, 9))");
    let output = world.python(&kill).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "done\n");
    let mut holder = holder;
    assert!(!holder.child.wait().unwrap().success());
}

#[test]
fn agent_cannot_see_operator_environment_or_files() {
    let Some(world) = World::new() else { return };
    fs::write(world.home.beside("secret"), "SECRET").unwrap();
    let secret = world.home.text_beside("secret");
    let code = format!(
        "print(os.environ.get('SECRET'), told(open, {secret:?}), told(open, {secret:?}, 'a'),
    told(os.listdir, os.path.dirname({secret:?})), told(open, '/etc/shadow'),
    told(os.listdir, '/root'), told(os.listdir, '/tmp'), told(open, '/tmp/new', 'w'))"
    );
    let mut command = world.command(&[]);
    command.args([crate::run::world::PYTHON, "-c", &world.code(&code)]).env("SECRET", "SECRET");
    let output = command.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let words: Vec<&str> = said.split_whitespace().collect();
    assert_eq!(words[0], "None");
    assert!(words[1..].iter().all(|word| ["EACCES", "EROFS"].contains(word)), "{said}");
    assert_eq!(words.len(), 8);
}

#[test]
fn no_namespace_and_no_setting_of_the_hosts_leads_out() {
    let Some(world) = World::new() else { return };
    let code = "
print(ran('/usr/bin/unshare', '-Ur', 'true').returncode != 0,
    ran('/usr/bin/nsenter', '-t', '1', '-m', 'true').returncode != 0,
    ran('/bin/mount', '-t', 'tmpfs', 'x', '/tmp').returncode != 0,
    told(open, '/proc/sys/kernel/core_pattern', 'w'), told(open, '/proc/sysrq-trigger', 'w'))";
    let said = world.within(&[], code);
    assert!(said.starts_with("True True True ") && !said.contains("done"), "{said}");
}
