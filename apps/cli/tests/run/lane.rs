//! The lane: what an agent within has of syscap, and what it makes of it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use serde_json::Value;

use crate::cli::support::{run, run_with, syscap};
use crate::run::world::{AGENT, PYTHON, World};

const CALL: &str = "
def call(*words, **line):
    line = json.dumps(line or {'tool_id': 'echo', 'args': {'value': 1}})
    done = ran(SYSCAP, 'call', HOME, '--agent', 'coder', '--token', TOKEN, *words, input=line)
    return done.returncode, done.stdout, done.stderr
";

#[test]
fn calls_are_answered_and_on_record() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CALL}
print(call(tool_id='fs.write', args={{'path': 'a.txt', 'text': 'by the kernel'}})[1], end='')
print(call('--short')[1], end='')
print(ran('sh', '-c', SYSCAP + ' call x --agent x --token ' + TOKEN + ' | cat',
    input='{{\"tool_id\": \"fs.read\", \"args\": {{\"path\": \"a.txt\"}}}}\\n' * 3).stdout, end='')"
    );
    let said = world.within(&[], &code);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 5, "{said}");
    assert!(lines.iter().all(|line| line["status"] == "ok"), "{said}");
    assert_eq!(lines[4]["result"]["text"], "by the kernel");
    assert!(lines[1].get("receipt").is_none(), "it is in short");
    let file = world.home.workspace(AGENT).join("a.txt");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "by the kernel");
    assert_eq!(world.home.verify(), 0);
}

/// Whatever stands on the command line within: it is this agent, by this token.
#[test]
fn channel_speaks_for_its_own_agent_only() {
    let Some(world) = World::new() else { return };
    let other = world.home.worker("other");
    let code = format!(
        "{CALL}
done = ran(SYSCAP, 'call', HOME, '--agent', 'other', '--token', '{other}',
    input='{{\"tool_id\": \"echo\", \"args\": {{\"value\": 1}}}}')
print(json.loads(done.stdout)['agent_id'])
line = {{'tool_id': 'echo', 'args': {{'value': 1}}, 'agent_id': 'other',
    'capability_token_id': {{'$bytes': ''}}}}
print(json.loads(call(**line)[1])['status'])
line = {{'tool_id': 'echo', 'args': {{'value': 1}}, 'provenance': {{'source': 'user'}}}}
print(json.loads(call(**line)[1]).get('provenance', {{}}).get('source'))"
    );
    let said = world.within(&[], &code);
    assert!(said.starts_with("coder\nerror\n") && !said.contains("user"), "{said}");
    let calls = world.home.log().into_iter().filter(|record| record["kind"] == "intent");
    assert!(calls.into_iter().all(|record| record["agent_id"] == AGENT));
}

const RAW: &str = "
def knock(words, shut=True):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x53595343); s.settimeout(30)
    s.sendall(words)
    if shut: s.shutdown(socket.SHUT_WR)
    said = b''
    while True:
        more = s.recv(65536)
        if not more: return said
        said += more
";

/// What comes by it is a service's name and an input; nothing of it is a word for a command.
#[test]
fn no_other_service_is_had_by_it() {
    let Some(world) = World::new() else { return };
    let records = world.home.log().len();
    let code = format!(
        "{RAW}
for words in (b'approvals\\n', b'call --token x\\n', b'hook\\n', b'mcp\\n', b'call\\0\\n',
    b'CALL\\n', b'\\n', b'x' * 100, b'../call\\n', b'call short\\n'):
    said = knock(words)
    print(said[:1], said[-6:-1] == bytes((3, 0, 0, 0, 1)), said[-1] in (1, 2), b'not given' in said)
print(knock(b'call'), knock(b''))"
    );
    let said = world.within(&[], &code);
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 11, "{said}");
    assert!(lines[..10].iter().all(|line| *line == "b'\\x02' True True True"), "{said}");
    assert_eq!(lines[10], "b'' b''");
    // The run's own, a session at each end and the state; no call.
    assert_eq!(world.of_kind("intent"), 0);
    assert!(world.home.log().len() < records + 10);
}

#[test]
fn a_flood_at_the_door_costs_the_agent_alone() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CALL}{RAW}
for _ in range(3):
    held = []
    for _ in range(300):
        try: held.append(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x53595343))
        except OSError: pass
    for s in held: s.close()
time.sleep(0.5)
print(call()[0])"
    );
    assert_eq!(world.within(&[], &code), "0\n");
    assert_eq!(world.home.verify(), 0);
}

#[test]
fn only_so_many_gateways_are_started() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CALL}{RAW}
import threading
held = []
for _ in range(6):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0x53595343); s.sendall(b'mcp\\n')
    s.settimeout(3)
    try: held.append(b'too many' in s.recv(65536))
    except TimeoutError: held.append(False)
    globals()['keep%d' % len(held)] = s
print(held, call()[0])"
    );
    let said = world.within(&["--mcp", "--builtins"], &code);
    assert_eq!(said, "[False, False, False, False, True, True] 0\n");
}

/// A tool that an operator stops meanwhile is stopped within; the run goes on.
#[test]
fn freeze_of_a_tool_reaches_it() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    let code = format!(
        "{CALL}
def reason():
    done = call(); answer = json.loads(done[1]) if done[1] else {{}}
    return answer.get('status') if answer.get('status') == 'ok' else 'no'
for line in sys.stdin:
    print(reason(), flush=True)"
    );
    let mut command = world.command(&[]);
    command.args([PYTHON, "-c", &world.code(&code)]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut ask = || {
        writeln!(stdin, "go").unwrap();
        lines.next().unwrap().unwrap()
    };
    assert_eq!(ask(), "ok");
    assert_eq!(run(["freeze", &home, "--tool", "echo"]).code, 0);
    assert_eq!(ask(), "no");
    assert_eq!(run(["thaw", &home, "--tool", "echo"]).code, 0);
    assert_eq!(ask(), "ok");
    drop(stdin);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(world.home.verify(), 0);
}

/// By the variable alone nobody is within: what asks the lane then has no answer, and that is a no.
#[test]
fn the_variable_alone_leads_nowhere() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    let mut hook = syscap();
    hook.args(["hook", &home, "--agent", AGENT, "--client", "claude-code"]);
    let output = hook.env("SYSCAP_LANE", "hook").stdin(Stdio::null()).output().unwrap();
    assert_eq!((output.status.code(), &*output.stdout), (Some(2), &b""[..]));
    let mut call = syscap();
    call.args(["call", &home, "--agent", AGENT, "--token", &world.token]);
    let output = call.env("SYSCAP_LANE", "call").stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let mut run = world.command(&[]);
    let output = run.arg("/bin/true").env("SYSCAP_LANE", "x").output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let calls = run_with(["call", &home, "--agent", AGENT, "--token", &world.token], b"");
    assert_eq!(calls.code, 0);
}
