//! Where there are no namespaces: refused, unless less was asked for; and what holds then.

use std::process::{Command, Output};

use crate::run::world::{AGENT, PYTHON, SYSCAP, World};

/// Runs it where no more namespaces are to be had; `None`, and says so, where they can't be taken
/// away.
fn run(world: &World, options: &[&str], code: &str) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: to take namespaces away takes root");
        return None;
    }
    let script = "echo 0 > /proc/sys/user/max_user_namespaces && exec setpriv \
        --bounding-set=-all --inh-caps=-all \"$@\"";
    let (home, work) = (world.home.path(), world.home.text_beside("work"));
    let mut command = Command::new("unshare");
    command.args(["-Ur", "sh", "-c", script, "sh", SYSCAP, "run", &home, "--agent", AGENT]);
    command.args(["--workspace", &work]).args(options);
    command.args(["--", PYTHON, "-c", &world.code(code)]);
    Some(command.output().unwrap())
}

#[test]
fn run_below_the_required_level_is_not_started() {
    let Some(world) = World::new() else { return };
    let before = world.of_kind("state");
    let Some(output) = run(&world, &[], "open('started', 'w')") else { return };
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("--require confined"), "{said}");
    assert!(!world.work().join("started").exists());
    assert_eq!(world.of_kind("state"), before);
    // A loopback without a namespace would be the host's.
    let options = ["--require", "confined", "--net", "loopback"];
    let output = run(&world, &options, "open('started', 'w')").unwrap();
    assert_eq!(output.status.code(), Some(125));
    assert!(!world.work().join("started").exists());
}

#[test]
fn the_same_attacks_fail_where_it_is_confined_only() {
    let Some(world) = World::new() else { return };
    let holder = world.home.hold(AGENT, &world.token);
    let code = format!(
        "
host = {}
print(told(os.kill, host, 9), told(os.kill, host, 0), ptrace(host), told(os.kill, os.getppid(), 9))
print(told(open, HOME + '/keys/operator.key'), told(open, HOME + '/home.db'),
    told(os.listdir, HOME), told(open, '/proc/%d/mem' % host),
    told(open, '/proc/%d/environ' % host),
    told(os.listdir, '/proc/%d/root' % host), told(os.listdir, '/proc/%d/fd' % host))
print(told(lambda: socket.socket(socket.AF_UNIX).connect(HOME + '/socket')))
line = json.dumps(dict(tool_id='echo', args=dict(value=1)))
print(ran(SYSCAP, 'call', HOME, '--agent', 'coder', '--token', TOKEN, input=line).returncode)
print(ran(SYSCAP, 'policy', 'set', HOME, 'preset:recording').returncode in (1, 4))
open('made', 'w')",
        holder.child.id()
    );
    let Some(output) = run(&world, &["--require", "confined"], &code) else { return };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}{err}");
    assert!(err.contains("coder runs confined"), "{err}");
    let lines: Vec<&str> = said.lines().collect();
    let refusals = ["EPERM", "EACCES", "ESRCH", "ENOENT"];
    let words = lines[..3].iter().flat_map(|line| line.split(' '));
    let words: Vec<&str> = words.collect();
    assert_eq!(words.len(), 12, "{said}");
    assert!(words.iter().all(|word| refusals.contains(word)), "{said}");
    assert_eq!(lines[3..], ["0", "True"], "{said}{err}");
    assert!(world.work().join("made").exists());
    assert_eq!(crate::cli::support::run(["token", "list", &world.home.path()]).code, 0);
}
