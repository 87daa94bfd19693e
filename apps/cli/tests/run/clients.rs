//! Clients that are known: stand-ins that read the configuration which they are given, and ask the
//! hook and the gateway as the real ones do. Neither real client is run here.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::run::world::{AGENT, World};

/// A stand-in by that name; its path.
pub(super) fn client(world: &World, name: &str, code: &str) -> String {
    let folder = world.home.beside("bin");
    fs::create_dir_all(&folder).unwrap();
    let path = folder.join(name);
    let text = format!("#!/usr/bin/python3\n{}", world.code(code));
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path.to_str().unwrap().to_owned()
}

pub(super) const CLAUDE: &str = "
options = dict(word.split('=', 1) for word in sys.argv[1:] if '=' in word)
FILE = sys.argv[sys.argv.index('--settings') + 1]
settings = json.load(open(FILE))
def hook(event, tool, use, input, **more):
    said = dict(session_id='s', hook_event_name=event, tool_name=tool, tool_input=input,
        tool_use_id=use, cwd=os.getcwd(), **more)
    results = []
    for group in settings['hooks'][event]:
        for one in group['hooks']:
            results.append(subprocess.run(['sh', '-c', one['command']], input=json.dumps(said),
                capture_output=True, text=True))
    return results[0]
";

#[test]
fn claude_code_asks_the_hook() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CLAUDE}
print(sys.argv[-1], settings['disableAllHooks'], sorted(settings['hooks']))
file = {{'file_path': 'a.txt', 'content': 'x'}}
before = hook('PreToolUse', 'Write', 'u1', file)
print(before.returncode, before.stdout == '', before.stderr)
open('a.txt', 'w').write('x')
after = hook('PostToolUse', 'Write', 'u1', file, tool_response={{'ok': True}})
print(after.returncode, after.stderr)
bash = hook('PreToolUse', 'Bash', 'u2', {{'command': 'ls'}})
print(bash.returncode, bash.stdout == '')
said = hook('UserPromptSubmit', '', '', {{}}, prompt='Hello.')
print(said.returncode, said.stdout == '', said.stderr)"
    );
    let program = client(&world, "claude", &code);
    // Nobody is there who answers.
    let ask = ["--hook", "--ask deny"];
    let ran = world.run(&ask, &[&program, "prompt"]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let events = "['PostToolBatch', 'PostToolUse', 'PostToolUseFailure', 'PreToolUse', \
                  'UserPromptSubmit']";
    assert_eq!(ran.out, format!("prompt False {events}\n0 True \n0 \n0 True\n0 True \n"));
    assert_eq!(world.of_kind("input"), 1);
    let log = world.home.log();
    let uses = log.iter().filter(|record| record["tool_id"] == "claude_code.write");
    let kinds: Vec<&str> = uses.filter_map(|record| record["kind"].as_str()).collect();
    assert_eq!(kinds, ["intent", "outcome"]);
    assert_eq!(world.home.verify(), 0);
    // A second run goes on by the token that there is.
    let issued = world.of_kind("issue");
    assert_eq!(world.run(&ask, &[&program, "prompt"]).code, 0);
    assert_eq!(world.of_kind("issue"), issued);
}

/// Neither the configuration nor what it starts is the agent's to change, and what it writes
/// elsewhere stands below.
#[test]
fn agent_cannot_change_its_hooks_or_configuration() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CLAUDE}
folder = os.path.dirname(FILE)
print(told(open, FILE, 'w'), told(open, FILE, 'a'), told(os.unlink, FILE),
    told(os.truncate, FILE, 0), told(os.rename, FILE, FILE + '2'),
    told(os.rename, folder, folder + '2'),
    told(os.chmod, FILE, 0o777), told(open, folder + '/mcp.json', 'w'),
    told(os.symlink, '/dev/null', folder + '/x'), told(open, SYSCAP, 'r+b'),
    told(os.unlink, SYSCAP), told(os.rename, SYSCAP, SYSCAP + '2'))
for place in ('.claude', os.environ['HOME'] + '/.claude'):
    os.makedirs(place); open(place + '/settings.json', 'w').write('{{\"disableAllHooks\": true}}')
again = json.load(open(FILE))
print(again == settings, again['disableAllHooks'])
# Without the lane a hook is a no; by another's words it is the same hook.
for lane in ('', 'x'):
    command = settings['hooks']['PreToolUse'][0]['hooks'][0]['command']
    done = subprocess.run(['sh', '-c', command], input='{{}}', capture_output=True, text=True,
        env=dict(os.environ, SYSCAP_LANE=lane))
    print(done.returncode)
words = [SYSCAP, 'hook', HOME, '--agent', 'other', '--client', 'claude-code', '--allow',
    '--class', 'pure=mcp__x__send']
said = dict(session_id='s', hook_event_name='PreToolUse', tool_name='mcp__x__send',
    tool_input=dict(to='x'), tool_use_id='u9')
print('deny' in ran(*words, input=json.dumps(said)).stdout)"
    );
    let program = client(&world, "claude", &code);
    let ran = world.run(&["--hook", "--patience 6s"], &[&program]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    let refused: Vec<&str> = lines[0].split(' ').collect();
    assert_eq!(refused.len(), 12, "{}", ran.out);
    let refusals = ["EACCES", "EROFS", "EXDEV", "EBUSY", "EPERM", "ETXTBSY"];
    assert!(refused.iter().all(|word| refusals.contains(word)), "{}", ran.out);
    assert_eq!(lines[1..], ["True False", "2", "2", "True"], "{}", ran.out);
    // Without the boundary a project's settings are the agent's to write.
    let said = world.outside("print(told(open, '.claude/settings.json', 'w'))");
    assert_eq!(said, "done\n");
}

const SPEAK: &str = "
def speak(command, args):
    p = subprocess.Popen([command, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    def ask(id, method, params):
        p.stdin.write(json.dumps(dict(jsonrpc='2.0', id=id, method=method, params=params)) + '\\n')
        p.stdin.flush()
        while True:
            answer = json.loads(p.stdout.readline())
            if answer.get('id') == id: return answer['result']
    ask(1, 'initialize', dict(protocolVersion='2025-11-25', capabilities={},
        clientInfo=dict(name='test', version='1')))
    p.stdin.write('{\"jsonrpc\": \"2.0\", \"method\": \"notifications/initialized\"}\\n')
    return p, ask
";

#[test]
fn claude_code_finds_the_gateway() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CLAUDE}{SPEAK}
server = json.load(open(options['--mcp-config']))['mcpServers']['syscap']
p, ask = speak(server['command'], server['args'])
print(sorted(tool['name'] for tool in ask(2, 'tools/list', {{}})['tools']))
said = ask(3, 'tools/call', dict(name='echo', arguments=dict(value='by the gateway')))
print(said.get('isError'))
p.stdin.close(); print(p.wait())"
    );
    let program = client(&world, "claude", &code);
    let ran = world.run(&["--mcp", "--builtins"], &[&program]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert!(lines[0].contains("'echo'") && lines[0].contains("'fs_read'"), "{}", ran.out);
    assert!(["False", "None"].contains(&lines[1]), "{}", ran.out);
    assert_eq!(lines[2], "0", "{}", ran.out);
    let called = world.home.log().into_iter().filter(|record| record["tool_id"] == "echo");
    assert_eq!(called.filter(|record| record["agent_id"] == AGENT).count(), 2);
    assert_eq!(world.home.verify(), 0);
}

/// The gateway decides about its own tools: the hook passes these names, and no other.
#[test]
fn hook_passes_the_gateways_tools_alone() {
    let Some(world) = World::new() else { return };
    let code = format!(
        "{CLAUDE}{SPEAK}
print('--strict-mcp-config' in sys.argv)
tools = ['mcp__syscap__echo', 'mcp__syscap___echo', 'mcp__syscap__nosuch', 'mcp__syscap2__echo',
    'mcp__syscap__fs.read', 'MCP__syscap__echo']
def asked(tool, use):
    before = hook('PreToolUse', tool, use, dict(value=1))
    return before.returncode, 'deny' in before.stdout
print(asked(tools[0], 'early'))
server = json.load(open(options['--mcp-config']))['mcpServers']['syscap']
p, ask = speak(server['command'], server['args'])
ask(2, 'tools/list', {{}})
for n, tool in enumerate(tools): print(asked(tool, 'u%d' % n))
def call(id, use, value):
    meta = {{'claudecode/toolUseId': use}}
    params = {{'name': 'echo', 'arguments': dict(value=value), '_meta': meta}}
    return ask(id, 'tools/call', params).get('isError')
def after(use): return hook('PostToolUse', tools[0], use, dict(value=1), tool_response={{}})
print(call(3, 'u0', 1), after('u0').returncode)
# Sent twice it is made once; by another input it is another call of the same name.
print(call(4, 'u0', 1), call(5, 'u0', 2))
# One that no gateway got.
print(asked(tools[0], 'past'))
past = after('past')
print(past.returncode, 'got no call' in past.stderr, after('past').returncode)
p.stdin.close(); p.wait()
print(asked(tools[0], 'late'))"
    );
    let program = client(&world, "claude", &code);
    let ran = world.run(&["--mcp", "--builtins", "--hook", "--patience 6s"], &[&program]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let passed = "(0, False)\n";
    let judged = "(0, True)\n";
    let expected = format!(
        "True\n{judged}{passed}{}False 0\nFalse True\n{passed}1 True 1\n{judged}",
        judged.repeat(5)
    );
    assert_eq!(ran.out.replace("None", "False"), expected, "{}", ran.err);
    assert!(ran.err.contains("got no call of: mcp__syscap__echo: not_granted"), "{}", ran.err);
    let log = world.home.log();
    let of = |tool: &str, kind: &str| {
        log.iter().filter(|one| one["tool_id"] == tool && one["kind"] == kind).count()
    };
    assert_eq!((of("echo", "intent"), of("echo", "repeat"), of("echo", "refusal")), (1, 1, 1));
    let hooked = "claude_code.tool.mcp__syscap__echo";
    // Before the gateway's list, past it, and after its end.
    assert_eq!((of(hooked, "refusal"), of(hooked, "intent")), (3, 0));
    assert_eq!(world.home.verify(), 0);
}

/// A gateway's servers run outside, with what they need there, and the agent reaches neither that
/// nor what they say to the operator.
#[test]
fn servers_run_outside() {
    let Some(world) = World::new() else { return };
    let trace = world.home.text_beside("trace");
    let code = format!(
        "p = subprocess.Popen([SYSCAP, 'mcp', HOME, '--agent', 'coder'], stdin=subprocess.PIPE,
    stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
params = dict(protocolVersion='2025-11-25', capabilities={{}},
    clientInfo=dict(name='t', version='1'))
line = dict(jsonrpc='2.0', id=1, method='initialize', params=params)
p.stdin.write(json.dumps(line) + '\\n')
p.stdin.flush()
for _ in range(600):
    if os.path.exists({trace:?}): break
    time.sleep(0.05)
out, err = p.communicate()
print(told(open, {trace:?}), 'said by the server' in err, os.environ.get('SERVERS_SECRET'))"
    );
    let server = format!(
        "--env SERVERS_SECRET -- /bin/sh -c 'echo said by the server >&2; \
         echo $SERVERS_SECRET > {trace}'"
    );
    let mut command = world.command(&["--mcp", &server]);
    command.args([crate::run::world::PYTHON, "-c", &world.code(&code)]);
    command.env("SERVERS_SECRET", "SECRET").stdin(std::process::Stdio::null());
    let output = command.output().unwrap();
    let err = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "EACCES False None\n", "{err}");
    assert!(err.contains("said by the server"), "{err}");
    assert_eq!(fs::read_to_string(trace).unwrap(), "SECRET\n");
}

#[test]
fn gemini_cli_asks_the_hook() {
    let Some(world) = World::new() else { return };
    let code = "
FILE = os.environ['GEMINI_CLI_SYSTEM_SETTINGS_PATH']
settings = json.load(open(FILE))
command = settings['hooks']['BeforeTool'][0]['hooks'][0]['command']
def before(tool, input):
    said = dict(session_id='s', hook_event_name='BeforeTool', tool_name=tool, tool_input=input)
    done = ran('sh', '-c', command, input=json.dumps(said))
    return done.returncode, json.loads(done.stdout or '{}').get('decision')
print(before('read_file', dict(path='a')), before('run_shell_command', dict(command='ls')))
print(sorted(settings), told(open, FILE, 'w'))";
    let program = client(&world, "gemini", code);
    let options = ["--mcp", "--builtins", "--hook", "--patience 6s"];
    // A version that would skip the settings, and with them the hook, is not started, nor is one that
    // does not say which it is.
    let package = world.home.beside("bin/package.json");
    for version in ["", "0.60.0", "0.61.1", "x"] {
        if !version.is_empty() {
            let text = format!(r#"{{"name": "@google/gemini-cli", "version": "{version}"}}"#);
            fs::write(&package, text).unwrap();
        }
        let ran = world.run(&options, &[&program]);
        assert_eq!((ran.code, &*ran.out), (2, ""), "{}", ran.err);
        assert!(ran.err.contains("--client none"), "{}", ran.err);
    }
    fs::write(&package, r#"{"name": "@google/gemini-cli", "version": "0.59.0"}"#).unwrap();
    let ran = world.run(&options, &[&program]);
    assert_eq!(ran.code, 0, "{}", ran.err);
    let (first, second) = ran.out.split_once('\n').unwrap();
    assert_eq!(first, "(0, None) (0, None)");
    assert!(second.starts_with("['hooks', 'mcp', 'mcpServers'] E"), "{}", ran.out);
}

/// The token that is named is the gateway's too, though the agent has a wider one.
#[test]
fn a_gateway_within_goes_by_the_token_that_is_named() {
    let Some(world) = World::new() else { return };
    let narrow = world.home.token("coder", &["--tool", "echo"]);
    world.home.worker("coder");
    let issued = world.of_kind("issue");
    let lines = [
        serde_json::json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-06-18", "capabilities": {},
                "clientInfo": {"name": "x", "version": "1"}}}),
        serde_json::json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        serde_json::json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}}),
    ];
    let code = format!(
        "
gateway = subprocess.Popen([SYSCAP, 'mcp', 'home', '--agent', 'coder'], stdin=subprocess.PIPE,
    stdout=subprocess.PIPE, text=True)
for line in {:?}: gateway.stdin.write(line + '\\n')
gateway.stdin.flush()
while True:
    heard = json.loads(gateway.stdout.readline())
    if heard.get('id') == 2: break
print(sorted(tool['name'] for tool in heard['result']['tools']))
gateway.stdin.close(); gateway.wait()",
        lines.map(|line| line.to_string())
    );
    let said = world.within(&["--token", &narrow, "--mcp", "--builtins"], &code);
    assert_eq!(said.trim(), "['echo']");
    assert_eq!(world.of_kind("issue"), issued, "and none is issued");
}

/// As the clients are: a program of Node's whose children are given three streams and no more.
#[test]
fn a_child_of_nodes_finds_the_lane() {
    let Some(world) = World::new() else { return };
    if !std::path::Path::new("/usr/bin/node").exists() {
        eprintln!("skipped: there is no /usr/bin/node");
        return;
    }
    let code = "
const [syscap, token] = process.argv.slice(1), children = require('child_process');
const line = syscap + ' call home --agent coder --token ' + token + ' --short';
const input = '{\"tool_id\": \"echo\", \"args\": {\"value\": 1}}';
console.log(JSON.parse(children.execSync(line, {input}).toString()).status);
children.exec(line, (error, out) => console.log(error, JSON.parse(out).status)).stdin.end(input);";
    let program = ["/usr/bin/node", "-e", code, crate::run::world::SYSCAP, &world.token];
    for net in ["none", "host"] {
        let ran = world.run(&["--net", net], &program);
        assert_eq!((ran.code, &*ran.out), (0, "ok\nnull ok\n"), "{}", ran.err);
    }
}

/// What `docs/run.md` shows works as it stands: the first block outside, with a stand-in for the
/// client, which runs the second.
#[test]
fn run_page_examples_work() {
    let Some(world) = World::new() else { return };
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/run.md");
    let page = fs::read_to_string(page).unwrap();
    let blocks: Vec<&str> = page.split("```sh\n").skip(1).collect();
    let blocks: Vec<&str> = blocks.iter().map(|block| block.split("```").next().unwrap()).collect();
    let [start, call, server] = blocks[..] else { panic!("{blocks:?}") };
    let folder = world.home.beside("page");
    fs::create_dir(&folder).unwrap();
    client(&world, "claude", &format!("print(ran('sh', '-ec', {call:?}).stdout)"));
    let own = std::path::Path::new(crate::run::world::SYSCAP).parent().unwrap();
    let path = format!("{}:{}:/usr/bin:/bin", world.home.text_beside("bin"), own.display());
    let run_in = |folder: &std::path::Path, block: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", block]).current_dir(folder).env("ANTHROPIC_API_KEY", "x");
        shell.env("PATH", &path).stdin(std::process::Stdio::null()).output().unwrap()
    };
    let output = run_in(&folder, start);
    let (out, err) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{out}{err}");
    let notes = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/run/server.py");
    fs::copy(notes, folder.join("project/notes.py")).unwrap();
    let with_server = run_in(&folder, server);
    assert!(with_server.status.success());
    let told = String::from_utf8_lossy(&with_server.stderr);
    assert!(told.contains("notes confined"), "{told}");
    let answer: serde_json::Value =
        serde_json::from_str(out.lines().rfind(|l| !l.is_empty()).unwrap()).unwrap();
    // The client's token grants the client's tools.
    assert_eq!(
        (&answer["agent_id"], &answer["error"]["reason"]),
        (&AGENT.into(), &"not_granted".into())
    );
}

/// A client by another name is what it is said to be; a name alone is not taken where it is denied.
#[test]
fn which_client_it_is_can_be_said() {
    let Some(world) = World::new() else { return };
    let program = client(&world, "claude", "print(len(sys.argv), os.environ['SYSCAP_LANE'])");
    let run = |options: &[&str], program: &str| world.run(options, &[program]).out;
    assert_eq!(run(&[], &program), "3 call,call-short,hook,channel\n");
    assert_eq!(run(&["--client", "none"], &program), "1 call,call-short,channel\n");
    let other = client(&world, "other", "print(len(sys.argv), os.environ['SYSCAP_LANE'])");
    assert_eq!(run(&[], &other), "1 call,call-short,channel\n");
    assert_eq!(run(&["--client", "claude-code"], &other), "3 call,call-short,hook,channel\n");
    for wrong in [["--hook", "--setup"], ["--hook", "--no-such"], ["--mcp", "--no-such"]] {
        assert_eq!(world.run(&wrong, &[&program]).code, 2, "{wrong:?}");
    }
}

/// A token that was revoked stays so, and the command that goes on is named.
#[test]
fn no_token_is_issued_in_the_place_of_one_that_was_revoked() {
    let Some(world) = World::new() else { return };
    let home = world.home.path();
    let program = client(&world, "claude", "");
    assert_eq!(world.run(&[], &[&program]).code, 0);
    let tokens = crate::cli::support::run(["token", "list", &home, "--json"]).fine().json();
    for token in &tokens {
        let id = token["token_id"].as_str().unwrap();
        assert_eq!(crate::cli::support::run(["revoke", &home, id]).code, 0);
    }
    let issued = world.of_kind("issue");
    let ran = world.run(&[], &[&program]);
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("syscap token reissue "), "{}", ran.err);
    assert_eq!(world.of_kind("issue"), issued);
    let nobody = crate::cli::support::run([
        "run",
        &home,
        "--agent",
        "nobody",
        "--workspace",
        world.work().to_str().unwrap(),
        "--",
        "/bin/true",
    ]);
    assert_eq!(nobody.code, 2);
    assert!(nobody.err.contains("syscap token issue "), "{}", nobody.err);
}
